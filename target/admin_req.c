/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One request of the admin protocol: parsing, the table of verbs, arguments, answers.  Main only.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/secret.h"
#include "target/admin_priv.h"
#include "target/apply_saved.h"

static const struct {
    const char *code, *words;
} errors[AE_COUNT] = {
    [AE_INVALID] = {"invalid", "invalid request"},
    [AE_NO_DRIVER] = {"no-driver", "can't find the driver"},
    [AE_NO_TARGET] = {"no-target", "can't find the target"},
    [AE_NO_LUN] = {"no-lun", "can't find the logical unit"},
    [AE_NO_SESSION] = {"no-session", "can't find the session"},
    [AE_NO_CONNECTION] = {"no-connection", "can't find the connection"},
    [AE_TARGET_EXISTS] = {"target-exists", "this target already exists"},
    [AE_LUN_EXISTS] = {"lun-exists", "this logical unit number already exists"},
    [AE_RULE_EXISTS] = {"rule-exists", "this access control rule already exists"},
    [AE_NO_RULE] = {"no-rule", "this access control rule does not exist"},
    [AE_ACCOUNT_EXISTS] = {"account-exists", "this account already exists"},
    [AE_NO_ACCOUNT] = {"no-account", "can't find the account"},
    [AE_OUTGOING_EXISTS] = {"outgoing-exists", "this target already has an outgoing account"},
    [AE_TARGET_ACTIVE] = {"target-active", "this target is still active"},
    [AE_CONFIG] = {"config", "the configuration has errors"},
    [AE_NOT_SAVED] = {"not-saved", "the change is in force, but could not be saved"},
    [AE_LUN_ACTIVE] = {"lun-active", "this logical unit is still active"},
    [AE_DRIVER_ACTIVE] = {"driver-active", "this driver is busy"},
    [AE_REMOVAL_PREVENTED] = {"removal-prevented", "this device has Prevent Removal set"},
    [AE_UNKNOWN_PARAMETER] = {"unknown-parameter", "unknown parameter"},
    [AE_UNSUPPORTED] = {"unsupported", "this operation isn't supported"},
    [AE_TIMEOUT] = {"timeout", "no answer in time; the request may still take effect"},
};

/* What a verb changes, as far as a configuration knows it. */
enum touches { T_NONE, T_ARGS /* the target that "tid" names, else globals */, T_ITSELF };

/* clang-format off */
static const struct verb {
    const char *mode, *op;
    void (*run)(struct admin_req *r);
    enum touches touches;
} verbs[] = {
    {"system", "show", admin_system_show, T_NONE},
    {"system", "update", admin_system_update, T_ARGS},
    {"system", "delete", admin_system_delete, T_NONE},
    {"system", "stat", admin_sess_stat, T_NONE},
    {"system", "drain", admin_system_drain, T_NONE},
    {"system", "undrain", admin_system_undrain, T_NONE},
    {"target", "new", admin_target_new, T_ITSELF},
    {"target", "delete", admin_target_delete, T_ARGS},
    {"target", "show", admin_target_show, T_NONE},
    {"target", "update", admin_target_update, T_ARGS},
    {"target", "bind", admin_target_bind, T_ARGS},
    {"target", "unbind", admin_target_unbind, T_ARGS},
    {"target", "drain", admin_target_drain, T_NONE},
    {"target", "undrain", admin_target_undrain, T_NONE},
    {"target", "stat", admin_sess_stat, T_NONE},
    {"logicalunit", "new", admin_lun_new, T_ARGS},
    {"logicalunit", "delete", admin_lun_delete, T_ARGS},
    {"logicalunit", "update", admin_lun_update, T_ARGS},
    {"portal", "show", admin_portal_show, T_NONE},
    {"portal", "new", admin_portal_new, T_ARGS},
    {"portal", "delete", admin_portal_delete, T_ARGS},
    {"session", "show", admin_sess_show, T_NONE},
    {"session", "delete", admin_sess_delete, T_NONE},
    {"session", "stat", admin_sess_stat, T_NONE},
    {"session", "renegotiate", admin_sess_renegotiate, T_NONE},
    {"connection", "show", admin_sess_show, T_NONE},
    {"connection", "delete", admin_conn_delete, T_NONE},
    {"connection", "stat", admin_sess_stat, T_NONE},
    {"logicalunit", "stat", admin_lun_stat, T_NONE},
    {"logicalunit", "acknowledge", admin_lun_acknowledge, T_NONE},
    {"zram", "show", admin_zram_show, T_NONE},
    {"zram", "compact", admin_zram_compact, T_NONE},
    {"zram", "recompress", admin_zram_recompress, T_NONE},
    {"lld", "show", admin_lld_show, T_NONE},
    {"lld", "start", admin_lld_start, T_NONE},
    {"lld", "stop", admin_lld_stop, T_NONE},
    {"account", "new", admin_account_new, T_ITSELF},
    {"account", "delete", admin_account_delete, T_ITSELF},
    {"account", "bind", admin_account_bind, T_ARGS},
    {"account", "unbind", admin_account_unbind, T_ARGS},
    {"account", "show", admin_account_show, T_NONE},
    {"config", "dump", admin_config_dump, T_NONE},
    {"config", "apply", admin_config_apply, T_ITSELF},
    {"config", "reload", admin_config_reload, T_NONE},
    {"config", "save", admin_config_save, T_NONE},
    {"config", "forget", admin_config_forget, T_NONE},
    {"config", "saved", admin_config_saved, T_NONE},
    {"config", "export", admin_config_export, T_NONE},
    {"config", "import", admin_config_import, T_NONE},
};
/* clang-format on */

/* --- answers --------------------------------------------------------------------------------- */

static void
req_put(struct admin_req *r)
{
    if (--r->refs)
        return;
    json_decref(r->args);
    json_decref(r->touched);
    free(r);
}

static json_t *fault(enum admin_code code, const char *more);

static void
give(struct admin_req *r, json_t *reply)
{
    r->keep = false; /* nothing is waited for any more */
    if (r->late) {
        json_decref(reply); /* answered by the deadline */
    } else {
        r->answer(r, reply, r->answer_arg);
    }
    req_put(r);
}

static void
on_kept(void *arg, const char *why, json_t *what)
{
    struct admin_req *r = arg;
    json_t *reply = r->reply, *data = json_object_get(reply, "data");

    (void)what;
    r->reply = NULL;
    if (why) {
        json_t *f = fault(AE_NOT_SAVED, why);
        if (data)
            json_object_set(f, "data", data);
        json_decref(reply);
        reply = f;
    }
    give(r, reply);
}

/* The verb has answered: what it changed is on the disk before anybody is told, if that is wanted.
 */
static void
finish(struct admin_req *r, json_t *reply)
{
    if (r->over)
        log_abort("a request was answered twice");
    r->over = true;
    if (!json_is_true(json_object_get(reply, "ok")) || (!r->touched && !r->touched_globals))
        r->keep = false;
    if (!r->keep) {
        give(r, reply);
        return;
    }
    r->reply = reply;
    apply_save(&(struct apply_saving){
        .targets = r->touched, .globals = r->touched_globals, .done = on_kept, .arg = r});
}

void
admin_ok(struct admin_req *r, json_t *data)
{
    json_t *reply = json_object();
    json_object_set_new(reply, "v", json_integer(ADMIN_VERSION));
    json_object_set_new(reply, "ok", json_true());
    if (data)
        json_object_set_new(reply, "data", data);
    finish(r, reply);
}

static json_t *
fault(enum admin_code code, const char *more)
{
    json_t *reply = json_object(), *e = json_object();
    char *text =
        *more ? xasprintf("%s: %s", errors[code].words, more) : xstrdup(errors[code].words);

    json_object_set_new(reply, "v", json_integer(ADMIN_VERSION));
    json_object_set_new(reply, "ok", json_false());
    json_object_set_new(e, "code", json_string(errors[code].code));
    json_t *words = json_string(text);
    json_object_set_new(e, "message", words ? words : json_string(errors[code].words));
    json_object_set_new(reply, "error", e);
    free(text);
    return reply;
}

void
admin_fail(struct admin_req *r, enum admin_code code, const char *fmt, ...)
{
    char more[1024] = "";
    va_list ap;

    if (fmt) {
        va_start(ap, fmt);
        vsnprintf(more, sizeof more, fmt, ap);
        va_end(ap);
    }
    finish(r, fault(code, more));
}

void
admin_fail_data(struct admin_req *r, enum admin_code code, json_t *data, const char *fmt, ...)
{
    char more[4096];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(more, sizeof more, fmt, ap);
    va_end(ap);
    json_t *reply = fault(code, more);
    json_object_set_new(reply, "data", data);
    finish(r, reply);
}

void
admin_touch(struct admin_req *r, const char *target)
{
    if (!r->touched)
        r->touched = json_array();
    size_t n = json_array_size(r->touched);
    if (n && strcmp(json_string_value(json_array_get(r->touched, n - 1)), target) == 0)
        return;
    json_array_append_new(r->touched, json_string(target));
}

void
admin_touch_globals(struct admin_req *r)
{
    r->touched_globals = true;
}

void
admin_req_timeout(struct admin_req *r)
{
    bool saving = r->over && r->keep;

    if (r->late || (r->over && !saving))
        return;
    r->late = true; /* the verb, or the saving, still has it and frees it by its answer */
    r->answer(r,
              saving ? fault(AE_NOT_SAVED, "the state directory does not answer")
                     : fault(AE_TIMEOUT, ""),
              r->answer_arg);
}

/* --- arguments ------------------------------------------------------------------------------- */

const char *
admin_str(struct admin_req *r, const char *name, bool *bad)
{
    const json_t *v = json_object_get(r->args, name);
    *bad = false;
    if (!v)
        return NULL;
    if (json_is_string(v) && json_string_length(v) == strlen(json_string_value(v)) &&
        json_string_length(v) <= 4096)
        return json_string_value(v);
    *bad = true;
    admin_fail(r, AE_INVALID, "\"%s\" wants a string", name);
    return NULL;
}

bool
admin_uint(struct admin_req *r, const char *name, unsigned max, unsigned *out, bool *bad)
{
    const json_t *v = json_object_get(r->args, name);
    *bad = false;
    if (!v)
        return false;
    if (json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= max) {
        *out = (unsigned)json_integer_value(v);
        return true;
    }
    *bad = true;
    admin_fail(r, AE_INVALID, "\"%s\" wants a number from 0 to %u", name, max);
    return false;
}

bool
admin_target(struct admin_req *r)
{
    bool bad;
    if (!admin_uint(r, "tid", 65535, &r->tid, &bad)) {
        if (!bad)
            admin_fail(r, AE_INVALID, "\"tid\" is necessary");
        return false;
    }
    r->target = model_target_find(r->tid);
    if (!r->target)
        admin_fail(r, AE_NO_TARGET, NULL);
    return r->target != NULL;
}

struct publishing {
    struct admin_req *r;
    json_t *data;
};

static void
on_published(void *arg)
{
    struct publishing *p = arg;
    admin_ok(p->r, p->data);
    free(p);
}

void
admin_publish_with(struct admin_req *r, json_t *data)
{
    struct publishing *p = xmalloc(sizeof *p);
    char err[512] = "";

    *p = (struct publishing){r, data};
    if (model_publish(on_published, p, err, sizeof err) == 0)
        return;
    json_decref(data);
    free(p);
    admin_fail(r, AE_INVALID, "%s", err);
}

void
admin_publish(struct admin_req *r)
{
    admin_publish_with(r, NULL);
}

static void
note_touched(struct admin_req *r, enum touches touches)
{
    const json_t *tid = json_object_get(r->args, "tid");
    const struct model_target *t;

    if (touches != T_ARGS)
        return;
    if (!tid)
        admin_touch_globals(r);
    else if (json_is_integer(tid) && json_integer_value(tid) > 0 &&
             json_integer_value(tid) <= 65535 &&
             (t = model_target_find((unsigned)json_integer_value(tid))))
        admin_touch(r, t->name);
}

/* --- running --------------------------------------------------------------------------------- */

static const struct verb *
find_verb(const char *mode, const char *op, bool *mode_known)
{
    *mode_known = false;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(verbs[i].mode, mode) != 0)
            continue;
        *mode_known = true;
        if (strcmp(verbs[i].op, op) == 0)
            return &verbs[i];
    }
    return NULL;
}

/* All texts of the arguments, however deep; configurations and states (mode config) are judged by
 * those who read them. `bad`: the name of the one that no configuration can hold. */
static bool
texts_ok(const json_t *v, const char *name, const char **bad)
{
    const char *key;
    json_t *k;
    size_t i;
    bool ok = true;

    if (json_is_string(v))
        ok = apply_can_hold(json_string_value(v));
    if (!ok)
        *bad = name;
    json_object_foreach((json_t *)v, key, k) ok = ok && texts_ok(k, key, bad);
    json_array_foreach(v, i, k) ok = ok && texts_ok(k, name, bad);
    return ok;
}

/* A small line of many empty arrays would become a hundred times its size: long lines are counted
 * before they are read. */
static bool
is_too_much(const char *line, size_t len)
{
    bool in_text = false;
    unsigned n = 0;

    for (size_t i = 0; len > ADMIN_SMALL && i < len && n <= ADMIN_VALUES; i++) {
        if (in_text && line[i] == '\\')
            i++;
        else if (line[i] == '"')
            in_text = !in_text;
        else if (!in_text)
            n += line[i] == ',' || line[i] == ':' || line[i] == '[' || line[i] == '{';
    }
    return n > ADMIN_VALUES;
}

void
admin_req_run(const char *line, size_t len, struct admin_req **slot,
              void (*answer)(struct admin_req *r, json_t *reply, void *arg), void *arg)
{
    struct admin_req *r = xcalloc(1, sizeof *r);
    json_error_t je;
    bool too_much = is_too_much(line, len);
    json_t *root = too_much ? NULL : json_loadb(line, len, JSON_REJECT_DUPLICATES, &je);
    json_int_t v = 0;
    const char *mode = NULL, *op = NULL;
    json_t *args = NULL;
    bool mode_known;

    r->answer = answer;
    r->answer_arg = arg;
    r->refs = 2; /* this function's and the answer's */
    *slot = r;
    if (!root || !json_is_object(root)) {
        r->args = json_object();
        admin_fail(r, AE_INVALID, "not a JSON object: %s",
                   too_much ? "more values than any request has"
                   : root   ? "another value"
                            : secret_free_words(je.text));
        json_decref(root);
        req_put(r);
        return;
    }
    int rc = json_unpack_ex(root, &je, 0, "{s:I, s:s, s:s, s?o}", "v", &v, "mode", &mode, "op", &op,
                            "args", &args);
    r->args = args && json_is_object(args) ? json_incref(args) : json_object();
    if (rc < 0) {
        admin_fail(r, AE_INVALID, "want {\"v\":%d,\"mode\":...,\"op\":...,\"args\":{...}}: %s",
                   ADMIN_VERSION, je.text);
    } else if (v != ADMIN_VERSION) {
        admin_fail(r, AE_UNSUPPORTED, "protocol version %lld; this daemon speaks %d", (long long)v,
                   ADMIN_VERSION);
    } else if (args && !json_is_object(args)) {
        admin_fail(r, AE_INVALID, "\"args\" wants an object");
    } else {
        const struct verb *verb = find_verb(mode, op, &mode_known);
        log_debug(LA_ADMIN, "request mode=%s op=%s", LOG_ESC(mode), LOG_ESC(op));
        const json_t *persist = json_object_get(r->args, "persist");
        const char *bad = NULL;
        if (persist && !json_is_boolean(persist)) {
            admin_fail(r, AE_INVALID, "\"persist\" wants true or false");
        } else if (verb && strcmp(mode, "config") != 0 && !texts_ok(r->args, "args", &bad)) {
            admin_fail(r, AE_INVALID, "\"%.40s\" is too long or holds the end of a line", bad);
        } else if (verb) {
            r->keep = json_is_true(persist) || apply_autosave();
            note_touched(r, verb->touches);
            verb->run(r);
        } else if (mode_known) {
            admin_fail(r, AE_UNSUPPORTED, "operation %.40s in %s mode", op, mode);
        } else {
            admin_fail(r, AE_INVALID, "unknown mode: %.40s", mode);
        }
    }
    json_decref(root);
    req_put(r);
}
