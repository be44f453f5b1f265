/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs of the configuration as a whole: dump, apply, reload.  What is said of files stands
 * with file, line and column of the files that the tool or the opener has read.  Main only.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "target/admin_priv.h"
#include "target/apply_ask.h"
#include "target/apply_saved.h"
#include "target/notify.h"

#define TARGETS_MAX 65535u

/* --- arguments ------------------------------------------------------------------------------- */

static bool
flag(const struct admin_req *r, const char *name)
{
    return json_is_true(json_object_get(r->args, name));
}

static void
free_names(char **v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        free(v[i]);
    free(v);
}

/* "targets" as folded names; false: answered. */
static bool
targets_arg(struct admin_req *r, char ***out, unsigned *n)
{
    const json_t *a = json_object_get(r->args, "targets");
    size_t count = json_array_size(a);

    *out = NULL;
    *n = 0;
    if (!a)
        return true;
    if (!json_is_array(a) || count == 0 || count > TARGETS_MAX) {
        admin_fail(r, AE_INVALID, "\"targets\" wants an array of names");
        return false;
    }
    *out = xcalloc(count, sizeof **out);
    for (size_t i = 0; i < count; i++) {
        const char *s = json_string_value(json_array_get(a, i)), *why = "no name";
        char name[ISCSI_NAME_MAX + 1];
        if (!s || name_fold(s, strlen(s), name, &why) < 0) {
            admin_fail(r, AE_INVALID, "\"targets\": \"%.100s\": %s", s ? s : "", why);
            free_names(*out, *n);
            return false;
        }
        (*out)[(*n)++] = xstrdup(name);
    }
    return true;
}

/* --- answers --------------------------------------------------------------------------------- */

static json_t *
text_json(const char *s)
{
    json_t *j = json_string(s);
    return j ? j : json_string("?"); /* a path that is no UTF-8 */
}

static void
on_change(void *arg, const char *target, const char *what, const char *how)
{
    json_t *o = json_object();
    if (target)
        json_object_set_new(o, "target", text_json(target));
    json_object_set_new(o, "what", text_json(what));
    json_object_set_new(o, "how", json_string(how));
    json_array_append_new(arg, o);
}

static void
on_message(void *arg, const char *file, unsigned line, unsigned col, bool error, const char *text)
{
    json_array_append_new(arg,
                          json_pack("{so si si sb so}", "file", text_json(file), "line", (int)line,
                                    "col", (int)col, "error", error, "text", text_json(text)));
}

static json_t *
result_json(const struct apply_job *job)
{
    json_t *changes = json_array(), *messages = json_array();

    apply_each_change(job, on_change, changes);
    apply_each_message(job, on_message, messages);
    return json_pack("{so so}", "changes", changes, "messages", messages);
}

/* The first error of the messages, and how many more there are. */
static void
fail_wrong(struct admin_req *r, json_t *data)
{
    const json_t *first = NULL;
    json_t *m;
    size_t i, n = 0;

    json_array_foreach(json_object_get(data, "messages"), i, m)
    {
        if (!json_is_true(json_object_get(m, "error")))
            continue;
        first = first ? first : m;
        n++;
    }
    const char *file = json_string_value(json_object_get(first, "file"));
    json_int_t line = json_integer_value(json_object_get(first, "line"));
    char where[64] = "", more[64] = "";
    if (line)
        snprintf(where, sizeof where, ":%lld:%lld", (long long)line,
                 (long long)json_integer_value(json_object_get(first, "col")));
    if (n > 1)
        snprintf(more, sizeof more, " (and %zu more)", n - 1);
    admin_fail_data(r, AE_CONFIG, data, "%s%s: %s%s", file ? file : "", where,
                    first ? json_string_value(json_object_get(first, "text")) : "", more);
}

static void
note_touched(struct admin_req *r, const struct apply_job *job)
{
    const json_t *changes;
    json_t *all = json_array(), *c;
    size_t i;

    apply_each_change(job, on_change, all);
    changes = all;
    json_array_foreach(changes, i, c)
    {
        const char *t = json_string_value(json_object_get(c, "target"));
        if (t)
            admin_touch(r, t);
        else
            admin_touch_globals(r);
    }
    json_decref(all);
}

static bool
is_late(void *arg)
{
    return admin_is_late(arg);
}

static void
on_done(struct apply_job *job, void *arg)
{
    struct admin_req *r = arg;
    const char *why;
    json_t *data = result_json(job);
    enum apply_end how = apply_job_end(job, &why);

    if (flag(r, "pretend") || r->reloads) /* what a file says stays the file's */
        r->keep = false;
    else if (how == APPLY_DONE)
        note_touched(r, job);
    if (r->reloads)
        notify_send("READY=1");
    switch (how) {
    case APPLY_DONE:
        admin_ok(r, data);
        break;
    case APPLY_WRONG:
        fail_wrong(r, data);
        break;
    case APPLY_EXISTS:
        admin_fail_data(r, AE_TARGET_EXISTS, data, "%s", why);
        break;
    case APPLY_IN_USE:
        admin_fail_data(r, AE_TARGET_ACTIVE, data, "%s; with force it is done nevertheless", why);
        break;
    }
    apply_job_free(job);
}

/* --- dump ------------------------------------------------------------------------------------ */

/* Bytes that are no UTF-8 (paths may hold any) stand as in bundles: U+0080 to U+00FF. */
static json_t *
dump_json(const char *text)
{
    json_t *j = json_string(text);
    return j ? j : apply_saved_encode(text);
}

void
admin_config_dump(struct admin_req *r)
{
    char name[ISCSI_NAME_MAX + 1];
    const char *why = "", *target;
    bool bad;

    target = admin_str(r, "target", &bad);
    if (bad)
        return;
    if (target && name_fold(target, strlen(target), name, &why) < 0) {
        admin_fail(r, AE_INVALID, "\"target\": %s", why);
        return;
    }
    char *text = apply_dump(target ? name : NULL, flag(r, "secrets"));
    if (!text) {
        admin_fail(r, AE_NO_TARGET, NULL);
        return;
    }
    admin_ok(r, json_pack("{so}", "text", dump_json(text)));
    secret_free_text(text);
}

/* --- verbs ----------------------------------------------------------------------------------- */

void
admin_config_apply(struct admin_req *r)
{
    struct apply_ask ask = {.add = flag(r, "add"),
                            .force = flag(r, "force"),
                            .pretend = flag(r, "pretend"),
                            .is_late = is_late,
                            .done = on_done,
                            .arg = r};

    ask.bundle = json_object_get(r->args, "bundle");
    if (!json_is_object(ask.bundle)) {
        admin_fail(r, AE_INVALID, "\"bundle\" wants an object");
        return;
    }
    if (!targets_arg(r, &ask.targets, &ask.ntargets))
        return;
    ask.whole = !ask.add && ask.ntargets == 0;
    log_event(LL_INFO, LA_ADMIN, "apply targets=%u add=%d force=%d pretend=%d", ask.ntargets,
              ask.add, ask.force, ask.pretend);
    apply_begin(&ask);
    free_names(ask.targets, ask.ntargets);
}

void
admin_config_reload(struct admin_req *r)
{
    struct apply_ask ask = {.whole = true,
                            .reload = true,
                            .force = flag(r, "force"),
                            .pretend = flag(r, "pretend"),
                            .is_late = is_late,
                            .done = on_done,
                            .arg = r};
    char text[80];

    r->reloads = true;

    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%llu",
             (unsigned long long)clock_ms() * 1000);
    notify_send(text);
    log_event(LL_NOTICE, LA_ADMIN, "reload force=%d pretend=%d", ask.force, ask.pretend);
    apply_begin(&ask);
}

/* --- what is saved --------------------------------------------------------------------------- */

static void
on_saved(void *arg, const char *why, json_t *what)
{
    struct admin_req *r = arg;

    if (why)
        admin_fail(r, AE_NOT_SAVED, "%s", why);
    else
        admin_ok(r, json_pack("{sO}", "saved", what));
}

static void
on_forgotten(void *arg, const char *why, json_t *what)
{
    struct admin_req *r = arg;

    if (why)
        admin_fail(r, AE_NOT_SAVED, "nothing is forgotten: %s", why);
    else
        admin_ok(r, json_pack("{sO}", "forgotten", what));
}

/* Every name is known, as one that is saved, or else served or in the file; false: answered. */
static bool
are_known(struct admin_req *r, char *const *names, unsigned n, bool forget)
{
    for (unsigned i = 0; i < n; i++) {
        if (apply_saved_has(names[i]) ||
            (!forget && (model_target_by_name(names[i]) || apply_saved_in_file(names[i]))))
            continue;
        admin_fail(r, AE_NO_TARGET, "%s%s", names[i], forget ? ": nothing of it is saved" : "");
        return false;
    }
    return true;
}

static void
save_or_forget(struct admin_req *r, bool forget)
{
    struct apply_saving s = {.globals = flag(r, "globals"),
                             .forget = forget,
                             .done = forget ? on_forgotten : on_saved,
                             .arg = r};
    char **names;
    unsigned n;

    if (!targets_arg(r, &names, &n))
        return;
    if (are_known(r, names, n, forget)) {
        s.all = n == 0 && !s.globals;
        s.targets = json_array();
        for (unsigned i = 0; i < n; i++)
            json_array_append_new(s.targets, json_string(names[i]));
        apply_save(&s);
        json_decref(s.targets);
    }
    free_names(names, n);
}

void
admin_config_save(struct admin_req *r)
{
    save_or_forget(r, false);
}

void
admin_config_forget(struct admin_req *r)
{
    save_or_forget(r, true);
}

void
admin_config_saved(struct admin_req *r)
{
    json_t *data = json_pack("{so sb}", "saved", apply_saved_list(), "autosave", apply_autosave());

    if (apply_saved_broken())
        json_object_set_new(data, "error", text_json(apply_saved_broken()));
    admin_ok(r, data);
}
