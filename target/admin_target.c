/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs of targets: new, delete, show, update, bind, unbind.  Main only.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "target/admin_priv.h"
#include "target/apply_access.h"
#include "target/redirect.h"

#define TID_MAX 65535u

/* --- new, delete ----------------------------------------------------------------------------- */

void
admin_target_new(struct admin_req *r)
{
    char name[ISCSI_NAME_MAX + 1];
    const char *why = "", *given;
    unsigned tid;
    bool bad;

    if (!admin_uint(r, "tid", TID_MAX, &tid, &bad)) {
        if (bad)
            return;
        tid = model_tid_free();
    }
    given = admin_str(r, "name", &bad);
    if (bad)
        return;
    if (tid == 0 || tid > TID_MAX) {
        admin_fail(r, AE_INVALID, "\"tid\" wants a number from 1 to %u", TID_MAX);
    } else if (!given) {
        admin_fail(r, AE_INVALID, "\"name\" is necessary");
    } else if (name_normalise(given, strlen(given), name, &why) < 0) {
        admin_fail(r, AE_INVALID, "target name: %s", why);
    } else if (model_target_find(tid) || model_target_by_name(name)) {
        admin_fail(r, AE_TARGET_EXISTS, NULL);
    } else {
        struct model_target *t = model_target_new(tid, name);
        snprintf(t->given, sizeof t->given, "%s", given);
        admin_touch(r, name);
        log_event(LL_NOTICE, LA_ADMIN, "target-new tid=%u name=%s", tid, LOG_ESC(name));
        admin_publish(r);
    }
}

static void
on_deleted(void *arg)
{
    struct admin_req *r = arg;
    model_target_free(r->target);
    admin_ok(r, NULL);
}

static void
delete_now(struct admin_req *r)
{
    char err[512] = "";
    log_event(LL_NOTICE, LA_ADMIN, "target-delete tid=%u name=%s", r->tid,
              LOG_ESC(r->target->name));
    list_del(&r->target->link); /* workers end its sessions when they get the set without it */
    if (model_publish(on_deleted, r, err, sizeof err) < 0)
        log_abort("what was published before does not hold: %s", err);
}

static void
on_counted(struct admin_req *r, json_t *sessions)
{
    if (admin_is_late(r))
        admin_ok(r, NULL); /* nobody waits for it any more: nothing is done */
    else if (json_array_size(sessions))
        admin_fail(r, AE_TARGET_ACTIVE, NULL);
    else
        delete_now(r);
}

void
admin_target_delete(struct admin_req *r)
{
    if (!admin_target(r))
        return;
    if (json_is_true(json_object_get(r->args, "force")))
        delete_now(r);
    else
        admin_sess_gather(r, r->target->name, on_counted);
}

/* --- show ------------------------------------------------------------------------------------ */

static json_t *
rules_json(const struct model_target *t, enum model_rule_kind kind)
{
    json_t *a = json_array();
    list_each(it, &t->rules) {
        const struct model_rule *rule = container_of(it, struct model_rule, link);
        if (rule->kind == kind)
            json_array_append_new(a, json_string(rule->text));
    }
    return a;
}

static json_t *
keys_json(const struct model_target *t)
{
    json_t *a = json_array();
    const char *name;
    char value[256];
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (keys_show(&t->keys, i, &name, value, sizeof value))
            json_array_append_new(a, json_pack("[ss]", name, value));
    }
    return a;
}

static void
redirect_json(const struct model_target *t, json_t *o)
{
    const struct drain *d = t->drain ? t->drain : model.drain;
    json_t *a = json_array();
    const char *name;
    char value[1400];
    for (unsigned i = 0; redirect_show(t->redirect, i, &name, value, sizeof value); i++)
        json_array_append_new(a, json_pack("[ss]", name, value));
    json_object_set_new(o, "redirect", a);
    json_object_set_new(o, "draining", json_boolean(d != NULL));
    if (d)
        json_object_set_new(o, "drain_to", json_string(d->to.text));
}

/* IET's, which judge initiators of every target. */
static json_t *
access_files_json(void)
{
    json_t *a = json_array();
    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        const char *path = apply_access_path((enum conf_access_file)i);
        json_t *j = path ? json_string(path) : NULL;
        if (path)
            json_array_append_new(a, j ? j : json_string("?")); /* a path that is no UTF-8 */
    }
    return a;
}

static json_t *
target_json(const struct model_target *t, json_t *sessions)
{
    json_t *o = json_object(), *luns = json_array(), *mine = json_array();
    unsigned nop_s = t->nop_interval_s != MODEL_UNSET ? t->nop_interval_s : model_nop_interval_s();
    unsigned nop_n = t->nop_count != MODEL_UNSET ? t->nop_count : model_nop_count();
    size_t i;
    json_t *s;

    json_object_set_new(o, "tid", json_integer(t->tid));
    json_object_set_new(o, "name", json_string(t->name));
    json_object_set_new(o, "alias", json_string(t->alias));
    json_object_set_new(o, "driver", json_string("iscsi"));
    json_object_set_new(o, "state", json_string(t->offline || model.offline ? "offline" : "ready"));
    json_object_set_new(o, "nop_interval", json_integer(nop_s));
    json_object_set_new(o, "nop_count", json_integer(nop_n));
    json_object_set_new(o, "nop_set", json_boolean(t->nop_interval_s != 0xffffffffu));
    json_object_set_new(o, "MaxQueueCmd", json_integer(t->max_cmds));
    json_object_set_new(o, "keys", keys_json(t));
    redirect_json(t, o);
    json_object_set_new(o, "addresses", rules_json(t, RULE_ADDRESS));
    json_object_set_new(o, "initiators", rules_json(t, RULE_NAME));
    json_object_set_new(o, "local_addresses", rules_json(t, RULE_LOCAL));
    json_object_set_new(o, "access_files", access_files_json());
    json_object_set_new(o, "chap", json_boolean(model_auth_demands(&t->auth)));
    json_object_set_new(o, "discoverable", json_boolean(!t->hidden));
    json_object_set_new(o, "accounts", admin_account_list(&t->auth));
    json_object_set_new(o, "portals", admin_portal_binds(t));
    list_each(it, &t->luns)
        json_array_append_new(luns, admin_lun_json(container_of(it, struct model_lun, link)));
    json_object_set_new(o, "luns", luns);
    json_array_foreach(sessions, i, s)
    {
        if (strcmp(json_string_value(json_object_get(s, "target")), t->name) == 0)
            json_array_append(mine, s);
    }
    json_object_set_new(o, "sessions", mine);
    return o;
}

static void
on_shown(struct admin_req *r, json_t *sessions)
{
    json_t *a = json_array();
    list_each(it, &model.targets) {
        const struct model_target *t = container_of(it, struct model_target, link);
        if (!r->tid || r->tid == t->tid)
            json_array_append_new(a, target_json(t, sessions));
    }
    admin_ok(r, json_pack("{so}", "targets", a));
}

void
admin_target_show(struct admin_req *r)
{
    if (json_object_get(r->args, "tid") && !admin_target(r))
        return;
    admin_sess_gather(r, r->target ? r->target->name : NULL, on_shown);
}

/* --- update ---------------------------------------------------------------------------------- */

/* What `update` may change, kept together so that all of it or nothing is taken. */
struct target_change {
    struct key_values keys;
    bool offline, hidden;
    unsigned nop_interval_s, nop_count, max_cmds;
    char alias[256];
    struct redirect *redirect; /* a reference, or NULL */
};

/* 0; -ENOENT; -EINVAL and err. */
static int
change_redirect(struct target_change *c, const char *name, const char *value, char *err,
                size_t errsize)
{
    int rc;
    struct redirect *r = redirect_with(c->redirect, name, value, &rc, err, errsize);
    if (!r)
        return rc;
    redirect_put(c->redirect);
    c->redirect = r;
    return 0;
}

static bool
number(const char *text, unsigned min, unsigned max, unsigned *out)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || v < min || v > max)
        return false;
    *out = (unsigned)v;
    return true;
}

/* Keys that tgt knows and iSCSI over TCP as it is served here has no use for (iSER's, markers, what
 * the initiator declares): their values are judged and change nothing. */
static const struct {
    const char *name;
    unsigned min, max; /* max 0: Yes or No */
} unused_keys[] = {
    {"RDMAExtensions", 0, 0},
    {"TargetRecvDataSegmentLength", 512, 16777215},
    {"InitiatorRecvDataSegmentLength", 512, 16777215},
    {"MaxOutstandingUnexpectedPDUs", 0, 0xffffffffu},
    {"MaxXmitDataSegmentLength", 512, 16777215},
    {"IFMarkInt", 1, 65535},
    {"OFMarkInt", 1, 65535},
};

static int
change_unused(unsigned i, const char *value, char *err, size_t errsize)
{
    unsigned v;

    if (unused_keys[i].max == 0) {
        snprintf(err, errsize, "%s wants Yes or No, not \"%.40s\"", unused_keys[i].name, value);
        return strcmp(value, "Yes") == 0 || strcmp(value, "No") == 0 ? 0 : -EINVAL;
    }
    snprintf(err, errsize, "%s wants a number from %u to %u, not \"%.40s\"", unused_keys[i].name,
             unused_keys[i].min, unused_keys[i].max, value);
    return number(value, unused_keys[i].min, unused_keys[i].max, &v) ? 0 : -EINVAL;
}

static const char *
unused_key(const char *name, unsigned *at)
{
    for (unsigned i = 0; i < sizeof unused_keys / sizeof *unused_keys; i++) {
        *at = i;
        if (strcasecmp(name, unused_keys[i].name) == 0)
            return unused_keys[i].name;
    }
    return NULL;
}

/* What was taken and does nothing, as "warnings" of the answer and in the log. */
static json_t *
odd_json(const struct model_target *t, json_t *params)
{
    json_t *a = json_array(), *v;
    const char *name, *odd = redirect_odd(t->redirect);
    unsigned at;

    json_object_foreach(params, name, v)
    {
        if (unused_key(name, &at))
            json_array_append_new(a, json_sprintf("%s has no effect here", unused_keys[at].name));
    }
    if (odd)
        json_array_append_new(a, json_string(odd));
    for (size_t i = 0; i < json_array_size(a); i++)
        log_event(LL_WARN, LA_ADMIN, "no-effect target=%s what=\"%s\"", t->name,
                  json_string_value(json_array_get(a, i)));
    return a;
}

/* 0; -ENOENT: no such name; -EINVAL and err. */
static int
change_one(struct target_change *c, const char *name, const char *value, char *err, size_t errsize)
{
    const char *n;
    char v[256];
    bool ok = true;
    unsigned at;

    if (strcmp(name, "state") == 0) {
        ok = strcasecmp(value, "offline") == 0 || strcasecmp(value, "ready") == 0;
        c->offline = strcasecmp(value, "offline") == 0;
        snprintf(err, errsize, "state wants offline or ready");
    } else if (strcmp(name, "discoverable") == 0) {
        bool yes = strcasecmp(value, "yes") == 0 || strcasecmp(value, "on") == 0;
        ok = yes || strcasecmp(value, "no") == 0 || strcasecmp(value, "off") == 0;
        c->hidden = !yes;
        snprintf(err, errsize, "discoverable wants yes or no");
    } else if (strcmp(name, "nop_interval") == 0) {
        ok = number(value, 0, 3600, &c->nop_interval_s);
        snprintf(err, errsize, "nop_interval wants seconds from 0 to 3600");
    } else if (strcmp(name, "nop_count") == 0) {
        ok = number(value, 1, 1000, &c->nop_count);
        snprintf(err, errsize, "nop_count wants a number from 1 to 1000");
    } else if (strcmp(name, "MaxQueueCmd") == 0) {
        ok = number(value, 1, 512, &c->max_cmds);
        snprintf(err, errsize, "MaxQueueCmd wants a number from 1 to 512");
    } else if (strcmp(name, "alias") == 0) {
        ok = strlen(value) < sizeof c->alias;
        snprintf(c->alias, sizeof c->alias, "%s", value);
        snprintf(err, errsize, "alias holds at most 255 bytes");
    } else {
        for (unsigned i = 0; i < KEY_COUNT; i++) {
            if (keys_show(&c->keys, i, &n, v, sizeof v) && strcasecmp(n, name) == 0)
                return keys_set(&c->keys, name, value, err, errsize) == 0 ? 0 : -EINVAL;
        }
        if (unused_key(name, &at))
            return change_unused(at, value, err, errsize);
        return change_redirect(c, name, value, err, errsize);
    }
    return ok ? 0 : -EINVAL;
}

void
admin_target_update(struct admin_req *r)
{
    struct model_target *t;
    struct target_change c;
    json_t *params, *v;
    const char *name;
    char err[512] = "";

    if (!admin_target(r))
        return;
    t = r->target;
    params = json_object_get(r->args, "params");
    if (!json_is_object(params) || !json_object_size(params)) {
        admin_fail(r, AE_INVALID, "\"params\" wants names and values");
        return;
    }
    c = (struct target_change){.keys = t->keys,
                               .offline = t->offline,
                               .hidden = t->hidden,
                               .nop_interval_s = t->nop_interval_s,
                               .nop_count = t->nop_count,
                               .max_cmds = t->max_cmds};
    memcpy(c.alias, t->alias, sizeof c.alias);
    c.redirect = t->redirect ? redirect_get(t->redirect) : NULL;
    json_object_foreach(params, name, v)
    {
        int rc = json_is_string(v) ? change_one(&c, name, json_string_value(v), err, sizeof err)
                                   : -EINVAL;
        if (rc < 0)
            redirect_put(c.redirect);
        if (rc == -ENOENT) {
            admin_fail(r, AE_UNKNOWN_PARAMETER, "%.100s", name);
            return;
        }
        if (rc < 0) {
            admin_fail(r, AE_INVALID, "%s", json_is_string(v) ? err : "values are strings");
            return;
        }
    }
    t->keys = c.keys;
    t->offline = c.offline;
    t->hidden = c.hidden;
    t->nop_interval_s = c.nop_interval_s;
    t->nop_count = c.nop_count;
    t->max_cmds = c.max_cmds;
    memcpy(t->alias, c.alias, sizeof t->alias);
    redirect_put(t->redirect);
    t->redirect = c.redirect;
    json_object_foreach(params, name, v)
        log_event(LL_NOTICE, LA_ADMIN, "target-update target=%s name=%s value=%s", t->name,
                  LOG_ESC(name), LOG_ESC(json_string_value(v)));
    model_touch(t);
    admin_publish_with(r, json_pack("{so}", "warnings", odd_json(t, params)));
}

/* --- access ---------------------------------------------------------------------------------- */

/* The one rule that the request names; NULL: answered. */
static const char *
rule_arg(struct admin_req *r, enum model_rule_kind *kind)
{
    static const char *const names[RULE_KINDS] = {"address", "initiator", "local"};
    const char *text = NULL;
    unsigned given = 0;
    bool bad;

    for (unsigned k = 0; k < RULE_KINDS; k++) {
        const char *t = admin_str(r, names[k], &bad);
        if (bad)
            return NULL;
        if (t) {
            text = t;
            *kind = (enum model_rule_kind)k;
            given++;
        }
    }
    if (given != 1) {
        admin_fail(r, AE_INVALID, "either \"address\", \"initiator\" or \"local\" is necessary");
        return NULL;
    }
    return text;
}

void
admin_target_bind(struct admin_req *r)
{
    const char *text, *one[2] = {NULL, NULL};
    char err[512] = "", warn[256] = "";
    enum model_rule_kind kind;

    if (!admin_target(r) || admin_portal_bind(r, true) || !(text = rule_arg(r, &kind)))
        return;
    if (model_rule_find(r->target, text, kind)) {
        admin_fail(r, AE_RULE_EXISTS, NULL);
        return;
    }
    one[0] = text;
    struct acl *a = acl_new(kind == RULE_NAME ? NULL : one, kind == RULE_NAME ? one : NULL, err,
                            sizeof err, warn, sizeof warn);
    if (!a) {
        admin_fail(r, AE_INVALID, "%s", err);
        return;
    }
    acl_put(a);
    model_rule_add(r->target, text, kind);
    log_event(LL_NOTICE, LA_ADMIN, "bind tid=%u rule=%s", r->tid, LOG_ESC(text));
    if (*warn)
        log_event(LL_WARN, LA_ADMIN, "bind-rule why=\"%s\"", LOG_TEXT(warn));
    admin_publish(r);
}

void
admin_target_unbind(struct admin_req *r)
{
    struct model_rule *rule;
    const char *text;
    enum model_rule_kind kind;

    if (!admin_target(r) || admin_portal_bind(r, false) || !(text = rule_arg(r, &kind)))
        return;
    rule = model_rule_find(r->target, text, kind);
    if (!rule) {
        admin_fail(r, AE_NO_RULE, NULL);
        return;
    }
    log_event(LL_NOTICE, LA_ADMIN, "unbind tid=%u rule=%s", r->tid, LOG_ESC(text));
    model_rule_del(r->target, rule);
    admin_publish(r);
}
