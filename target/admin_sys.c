/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs of the daemon as a whole, and of drivers.  Main only.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/counter.h"
#include "base/pool.h"
#include "target/admin_priv.h"
#include "target/apply_saved.h"
#include "target/isns.h"
#include "target/redirect.h"

/* --- system ---------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    enum discovery_filter filter;
} filters[] = {
    {"name", DF_NAME}, {"portal", DF_PORTAL}, {"all", DF_ALL}, {"authenticated", DF_AUTHENTICATED}};

static const char *
filter_word(void)
{
    for (unsigned i = 0; i < sizeof filters / sizeof *filters; i++) {
        if (filters[i].filter == model.filter)
            return filters[i].word;
    }
    return "";
}

/* As it is in force at targets that say nothing. */
static json_t *
chap_json(void)
{
    static const char *const words[] = {"md5", "sha1", "sha256", "sha3-256"};
    json_t *algs = json_array();

    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (model.auth.algs & 1u << i)
            json_array_append_new(algs, json_string(words[i]));
    }
    return json_pack("{so sb}", "algorithms", algs, "legacy_sha1_7", model.auth.sha1_7 == 1);
}

static bool
is_debugging(void)
{
    for (int i = 0; i < LA_COUNT; i++) {
        if (log_debug_on((enum log_area)i))
            return true;
    }
    return false;
}

static json_t *
isns_json(void)
{
    const struct isns_settings *s = isns_settings();
    char server[64];
    const char *state = isns_state(server, sizeof server);

    return json_pack("{sb ss si sb ss ss}", "on", s->on, "servers", s->servers, "port",
                     (int)s->port, "access_control", s->access, "state", state, "server", server);
}

/* What is saved and not in force, and why. */
static json_t *
unusable_json(void)
{
    json_t *all = apply_saved_list(), *bad = json_array(), *e;
    size_t i;

    if (apply_saved_broken())
        json_array_append_new(bad, json_pack("{ss*}", "error", apply_saved_broken()));
    json_array_foreach(all, i, e)
    {
        if (json_object_get(e, "error"))
            json_array_append(bad, e);
    }
    json_decref(all);
    return bad;
}

void
admin_system_show(struct admin_req *r)
{
    json_t *o = json_object();
    json_object_set_new(o, "version", json_string(PACKAGE_VERSION));
    json_object_set_new(o, "state", json_string(model.offline ? "offline" : "ready"));
    json_object_set_new(o, "draining", json_boolean(model.drain != NULL));
    if (model.drain)
        json_object_set_new(o, "drain_to", json_string(model.drain->to.text));
    json_object_set_new(o, "debug", json_boolean(is_debugging()));
    json_object_set_new(o, "drivers", json_pack("[s]", "iscsi"));
    json_object_set_new(o, "workers", json_integer(worker_count()));
    json_object_set_new(o, "engine",
                        json_string(worker_engine(worker_at(0)) == ENGINE_RING ? "ring" : "pool"));
    json_object_set_new(o, "placement", json_string(tgt_opts.affine ? "affine" : "spread"));
    json_object_set_new(o, "backing_stores",
                        json_pack("[ssss]", "fileio", "blockio", "null", "zram"));
    json_object_set_new(o, "device_types", json_pack("[ss]", "disk", "controller"));
    json_object_set_new(o, "discovery", admin_account_list(&model.discovery));
    json_object_set_new(o, "isns", isns_json());
    json_object_set_new(o, "chap", chap_json());
    json_object_set_new(o, "discovery_filter", json_string(filter_word()));
    json_object_set_new(o, "nop_interval", json_integer(model_nop_interval_s()));
    json_object_set_new(o, "nop_count", json_integer(model_nop_count()));
    json_object_set_new(o, "autosave", json_boolean(apply_autosave()));
    json_object_set_new(o, "saved_unusable", unusable_json());
    admin_ok(r, o);
}

static void
said(const char *name, const char *value)
{
    log_event(LL_NOTICE, LA_ADMIN, "system-update name=%s value=%s", LOG_ESC(name), LOG_ESC(value));
}

static void
set_offline(struct admin_req *r, bool offline)
{
    said("state", offline ? "offline" : "ready");
    model.offline = offline;
    list_each(it, &model.targets)
        model_touch(container_of(it, struct model_target, link));
    admin_publish(r);
}

static bool
on_off(const char *value, bool *out)
{
    *out = strcasecmp(value, "on") == 0;
    return *out || strcasecmp(value, "off") == 0;
}

static void
update_isns(struct admin_req *r, const char *name, const char *value)
{
    struct isns_settings s = *isns_settings();
    char err[256] = "";
    unsigned port;

    if (strcasecmp(name, "iSNS") == 0 || strcasecmp(name, "iSNSAccessControl") == 0) {
        if (!on_off(value, strcasecmp(name, "iSNS") == 0 ? &s.on : &s.access)) {
            admin_fail(r, AE_INVALID, "%s wants on or off, not \"%.40s\"", name, value);
            return;
        }
    } else if (strcasecmp(name, "iSNSServerPort") == 0) {
        char *end;
        port = (unsigned)strtoul(value, &end, 10);
        if (*value < '0' || *value > '9' || *end || strlen(value) > 5 || port < 1 || port > 65535) {
            admin_fail(r, AE_INVALID, "%s wants a port, 1 to 65535, not \"%.40s\"", name, value);
            return;
        }
        s.port = (uint16_t)port;
    } else if (strcasecmp(name, "iSNSServerIP") == 0) {
        if (snprintf(s.servers, sizeof s.servers, "%s", value) >= (int)sizeof s.servers) {
            admin_fail(r, AE_INVALID, "%s is too long", name);
            return;
        }
    } else {
        admin_fail(r, AE_UNKNOWN_PARAMETER, "%.100s", name);
        return;
    }
    if (isns_change(&s, err, sizeof err) < 0) {
        admin_fail(r, AE_INVALID, "%s", err);
        return;
    }
    said(name, value);
    admin_publish(r);
}

/* --- what can be set ------------------------------------------------------------------------- */

static void
update_state(struct admin_req *r, const char *name, const char *value)
{
    bool offline = strcasecmp(value, "offline") == 0;

    if (offline || strcasecmp(value, "ready") == 0)
        set_offline(r, offline);
    else
        admin_fail(r, AE_INVALID, "%s wants ready or offline, not \"%.40s\"", name, value);
}

static void
update_debug(struct admin_req *r, const char *name, const char *value)
{
    bool on;

    if (!on_off(value, &on)) {
        admin_fail(r, AE_INVALID, "%s wants on or off, not \"%.40s\"", name, value);
        return;
    }
    said(name, value);
    if (log_set_debug(on ? "all" : "") < 0)
        admin_fail(r, AE_INVALID, NULL);
    else
        admin_ok(r, NULL);
}

static void
touch_all(void)
{
    list_each(it, &model.targets)
        model_touch(container_of(it, struct model_target, link));
}

static void
update_algs(struct admin_req *r, const char *name, const char *value)
{
    unsigned algs;

    if (apply_chap_algs(value, &algs) < 0) {
        admin_fail(r, AE_INVALID,
                   "%s wants a comma list of md5, sha1, sha256, sha3-256, not \"%.60s\"", name,
                   value);
        return;
    }
    said(name, value);
    model.auth.algs = algs;
    model_auth_touch(&model.auth);
    admin_publish(r);
}

static void
update_sha1_7(struct admin_req *r, const char *name, const char *value)
{
    bool on;

    if (!on_off(value, &on)) {
        admin_fail(r, AE_INVALID, "%s wants on or off, not \"%.40s\"", name, value);
        return;
    }
    said(name, value);
    model.auth.sha1_7 = on;
    model_auth_touch(&model.auth);
    admin_publish(r);
}

static void
update_filter(struct admin_req *r, const char *name, const char *value)
{
    for (unsigned i = 0; i < sizeof filters / sizeof *filters; i++) {
        if (strcasecmp(value, filters[i].word) != 0)
            continue;
        said(name, value);
        model.filter = filters[i].filter;
        admin_publish(r);
        return;
    }
    admin_fail(r, AE_INVALID, "%s wants name, portal, all or authenticated, not \"%.40s\"", name,
               value);
}

/* For targets that say nothing themselves; connections that are there keep theirs. */
static void
update_nop(struct admin_req *r, const char *name, const char *value)
{
    bool interval = strcasecmp(name, "nop_interval") == 0;
    unsigned min = interval ? 0 : 1, max = interval ? 3600 : 1000;
    char *e;
    unsigned long v = strtoul(value, &e, 10);

    if (*value < '0' || *value > '9' || *e || strlen(value) > 5 || v < min || v > max) {
        admin_fail(r, AE_INVALID, "%s wants a number from %u to %u, not \"%.40s\"", name, min, max,
                   value);
        return;
    }
    said(name, value);
    if (interval)
        model.nop_interval_s = (unsigned)v;
    else
        model.nop_count = (unsigned)v;
    touch_all();
    admin_publish(r);
}

static const struct {
    const char *name;
    void (*set)(struct admin_req *r, const char *name, const char *value);
} settings[] = {
    {"State", update_state},
    {"debug", update_debug},
    {"iSNS", update_isns},
    {"iSNSServerIP", update_isns},
    {"iSNSServerPort", update_isns},
    {"iSNSAccessControl", update_isns},
    {"chap-algorithms", update_algs},
    {"chap-legacy-sha1-7", update_sha1_7},
    {"discovery-filter", update_filter},
    {"nop_interval", update_nop},
    {"nop_count", update_nop},
};

void
admin_system_update(struct admin_req *r)
{
    bool bad;
    const char *name = admin_str(r, "name", &bad), *value;
    if (bad)
        return;
    value = admin_str(r, "value", &bad);
    if (bad)
        return;
    if (!name || !value) {
        admin_fail(r, AE_INVALID, "\"name\" and \"value\" are necessary");
        return;
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (strcasecmp(name, settings[i].name) == 0) {
            settings[i].set(r, settings[i].name, value);
            return;
        }
    }
    admin_fail(r, AE_UNKNOWN_PARAMETER, "%.100s", name);
}

void
admin_system_delete(struct admin_req *r)
{
    log_event(LL_NOTICE, LA_ADMIN, "system-delete");
    admin_ok(r, NULL);
    admin_stop_daemon();
}

json_t *
admin_counters_json(void)
{
    json_t *o = json_object();
    for (int i = 0; i < CT_COUNT; i++)
        json_object_set_new(o, counter_name((enum counter)i),
                            json_integer((json_int_t)counter_sum((enum counter)i)));
    return o;
}

/* --- drivers --------------------------------------------------------------------------------- */

void
admin_lld_show(struct admin_req *r)
{
    json_t *a = json_array();
    list_each(it, &model.targets) {
        const struct model_target *t = container_of(it, struct model_target, link);
        json_array_append_new(a, json_pack("{siss}", "tid", (int)t->tid, "name", t->name));
    }
    admin_ok(
        r, json_pack("{s[{ssssso}]}", "drivers", "name", "iscsi", "state", "ready", "targets", a));
}

/* The one driver runs from the daemon's start to its end, as tgt's does. */
static bool
driver_arg(struct admin_req *r)
{
    bool bad;
    const char *name = admin_str(r, "driver", &bad);

    if (bad)
        return false;
    if (!name || strcmp(name, "iscsi") == 0)
        return true;
    admin_fail(r, AE_NO_DRIVER, NULL);
    return false;
}

void
admin_lld_start(struct admin_req *r)
{
    if (driver_arg(r))
        admin_ok(r, NULL);
}

void
admin_lld_stop(struct admin_req *r)
{
    if (driver_arg(r))
        admin_fail(r, AE_DRIVER_ACTIVE, NULL);
}
