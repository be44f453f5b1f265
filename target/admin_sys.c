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
#include "target/isns.h"
#include "target/redirect.h"

/* --- system ---------------------------------------------------------------------------------- */

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
    json_object_set_new(o, "backing_stores", json_pack("[sss]", "fileio", "blockio", "null"));
    json_object_set_new(o, "device_types", json_pack("[ss]", "disk", "controller"));
    json_object_set_new(o, "discovery", admin_account_list(&model.discovery));
    json_object_set_new(o, "isns", isns_json());
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
    } else if (strcasecmp(name, "state") == 0 &&
               (strcasecmp(value, "offline") == 0 || strcasecmp(value, "ready") == 0)) {
        set_offline(r, strcasecmp(value, "offline") == 0);
    } else if (strcasecmp(name, "debug") == 0 &&
               (strcasecmp(value, "on") == 0 || strcasecmp(value, "off") == 0)) {
        if (log_set_debug(strcasecmp(value, "on") == 0 ? "all" : "") < 0)
            admin_fail(r, AE_INVALID, NULL);
        else
            admin_ok(r, NULL);
    } else if (strncasecmp(name, "iSNS", 4) == 0) {
        update_isns(r, name, value);
    } else if (strcasecmp(name, "state") == 0 || strcasecmp(name, "debug") == 0) {
        admin_fail(r, AE_INVALID, "%s wants %s, not \"%.40s\"", name,
                   strcasecmp(name, "state") == 0 ? "ready or offline" : "on or off", value);
    } else {
        admin_fail(r, AE_UNKNOWN_PARAMETER, "%.100s", name);
    }
}

void
admin_system_delete(struct admin_req *r)
{
    log_event(LL_NOTICE, LA_ADMIN, "system-delete");
    admin_ok(r, NULL);
    admin_stop_daemon();
}

void
admin_system_stat(struct admin_req *r)
{
    json_t *o = json_object();
    for (int i = 0; i < CT_COUNT; i++)
        json_object_set_new(o, counter_name((enum counter)i),
                            json_integer((json_int_t)counter_sum((enum counter)i)));
    admin_ok(r, json_pack("{so}", "counters", o));
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
