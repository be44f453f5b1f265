/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record of what is saved, and changing it: apply_saved.h.  A change is made on a copy, which
 * takes the record's place when it is on the disk.  Main only.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cstore.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/secret.h"
#include "target/apply.h"
#include "target/apply_saved.h"
#include "target/apply_store.h"

#define RECORD         "saved-config"
#define RECORD_VERSION 1

static struct {
    json_t
        *record;  /* {v, targets: {name: {text | deleted, when}}, globals?: {text, when, access}} */
    json_t *bad;  /* name: why it is not used */
    json_t *file; /* targets of the configuration file, as it was last read */
    json_t *paths; /* stores of saved targets; only grows */
    char broken[256];
    struct list queue; /* of saving; the first is being written */
} saved = {.queue = {&saved.queue, &saved.queue}};

/* One change under way. */
struct saving {
    struct list link;
    struct apply_saving ask;
    json_t *next, *what;
    char why[512];
};

/* --- the record ------------------------------------------------------------------------------ */

static json_t *
empty_record(void)
{
    return json_pack("{si s{}}", "v", RECORD_VERSION, "targets");
}

/* Whether it has the form that this file writes. */
static bool
is_record(const json_t *j, char *why, size_t size)
{
    json_t *targets = json_object_get(j, "targets"), *globals = json_object_get(j, "globals"), *e;
    json_int_t v = json_integer_value(json_object_get(j, "v"));
    const char *name;

    if (v != RECORD_VERSION) {
        snprintf(why, size, "its version is %lld; this daemon reads %d", (long long)v,
                 RECORD_VERSION);
        return false;
    }
    bool good = json_is_object(targets) && (!globals || json_is_object(globals));
    json_object_foreach(targets, name, e) good = good && *name && json_is_object(e);
    if (!good)
        snprintf(why, size, "it has not the form of such a record");
    return good;
}

/* The record as it is in the store; NULL and why: it cannot be used. */
static json_t *
read_record(struct cstore *cs, char *why, size_t size)
{
    void *p = NULL;
    json_error_t je;
    int64_t n = cstore_read(cs, RECORD, &p);

    if (n == -ENOENT)
        return empty_record();
    if (n < 0) {
        snprintf(why, size, "%s", n == -EBADMSG ? "its checksum is wrong" : strerror((int)-n));
        return NULL;
    }
    json_t *j = json_loadb(p, (size_t)n, JSON_REJECT_DUPLICATES, &je);
    secret_wipe(p, (size_t)n);
    free(p);
    if (!j)
        snprintf(why, size, "it is no JSON: %s", je.text);
    if (j && !is_record(j, why, size)) {
        json_decref(j);
        j = NULL;
    }
    return j;
}

static json_t *
entry_of(const json_t *record, const char *name)
{
    return *name ? json_object_get(json_object_get(record, "targets"), name)
                 : json_object_get(record, "globals");
}

static void
note_path(const char *path, bool made, void *arg)
{
    (void)made;
    (void)arg;
    json_t *name = apply_saved_encode(path);
    json_object_set_new(saved.paths, json_string_value(name), json_true());
    json_decref(name);
}

static void
note_paths(const struct conf_target *t)
{
    for (unsigned i = 0; i < t->nluns; i++)
        apply_store_paths(&t->luns[i], note_path, NULL);
}

bool
apply_saved_has_path(const char *path)
{
    json_t *name = apply_saved_encode(path);
    bool has = json_object_get(saved.paths, json_string_value(name)) != NULL;
    json_decref(name);
    return has;
}

bool
apply_saved_any_bad(void)
{
    return *saved.broken || json_object_size(saved.bad) > 0;
}

/* --- the start, and reloads ------------------------------------------------------------------ */

void
apply_saved_begin(struct apply_saved_job *j)
{
    *j = (struct apply_saved_job){json_deep_copy(saved.record), json_object(), json_object()};
}

void
apply_saved_take(struct apply_saved_job *j)
{
    json_decref(saved.bad);
    json_decref(saved.file);
    saved.bad = json_incref(j->bad);
    saved.file = json_incref(j->file);
}

void
apply_saved_fini(struct apply_saved_job *j)
{
    json_decref(j->record);
    json_decref(j->bad);
    json_decref(j->file);
    *j = (struct apply_saved_job){NULL, NULL, NULL};
}

struct conf *
apply_saved_start(struct cstore *cs, struct conf *file, bool own_portals)
{
    struct apply_saved_job j;

    saved.paths = json_object();
    saved.record = read_record(cs, saved.broken, sizeof saved.broken);
    if (!saved.record) {
        log_event(LL_ERROR, LA_CONF, "saved-unreadable record=%s why=\"%s\" then=\"%s\"", RECORD,
                  LOG_TEXT(saved.broken), "it is kept; the file alone is used");
        saved.record = empty_record();
    }
    apply_saved_begin(&j);
    struct conf *c = apply_saved_lay(&j, file, own_portals, NULL);
    apply_saved_take(&j);
    apply_saved_fini(&j);
    for (unsigned i = 0; i < c->ntargets; i++) {
        if (entry_of(saved.record, c->targets[i].name))
            note_paths(&c->targets[i]);
    }
    return c;
}

/* --- what is to be saved --------------------------------------------------------------------- */

static json_t *
now_json(void)
{
    char text[64];

    clock_stamp(text, sizeof text);
    return json_string(text);
}

static json_t *
text_entry(char *text)
{
    json_t *e = json_pack("{so so}", "text", apply_saved_encode(text), "when", now_json());
    secret_free_text(text);
    return e;
}

static json_t *
access_json(const struct conf *c)
{
    json_t *all = json_array();

    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        const struct conf_access *a = &c->access[i];
        json_t *lines = json_array();
        for (unsigned k = 0; k < a->n && a->path; k++)
            json_array_append_new(lines, json_pack("[oo]", apply_saved_encode(a->lines[k].target),
                                                   apply_saved_encode(a->lines[k].entries)));
        if (a->path)
            json_array_append_new(all, json_pack("{si so sO}", "which", (int)i, "path",
                                                 apply_saved_encode(a->path), "lines", lines));
        json_decref(lines);
    }
    return all;
}

static json_t *
globals_entry(void)
{
    struct conf *c = apply_view();
    json_t *access = access_json(c);

    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++)
        c->access[i].path = NULL; /* their lines stand beside the text */
    c->state_dir = c->user = NULL;
    json_t *e = text_entry(conf_write_globals(c, CONF_WRITE_SECRETS));
    json_object_set_new(e, "access", access);
    conf_free(c);
    return e;
}

/* NULL: there is nothing to be kept of it. */
static json_t *
target_entry(const char *name)
{
    struct conf *c = apply_view_target(name);

    if (!c && json_object_get(saved.file, name))
        return json_pack("{sb so}", "deleted", 1, "when", now_json());
    if (!c)
        return NULL;
    json_t *e = text_entry(conf_write_target(&c->targets[0], CONF_WRITE_SECRETS));
    note_paths(&c->targets[0]);
    conf_free(c);
    return e;
}

static json_t *
entry_json(const char *name, const json_t *e)
{
    const char *when = json_string_value(json_object_get(e, "when"));
    json_t *o = json_pack("{ss sb}", "when", when ? when : "?", "deleted",
                          json_is_true(json_object_get(e, "deleted")));
    if (*name)
        json_object_set_new(o, "target", json_string(name));
    json_t *why = json_object_get(saved.bad, name);
    if (why)
        json_object_set(o, "error", why);
    return o;
}

static void
change_one(struct saving *s, const char *name)
{
    json_t *targets = json_object_get(s->next, "targets"), *had = entry_of(s->next, name), *e;

    if (s->ask.forget) {
        if (had)
            json_array_append_new(s->what, entry_json(name, had));
        e = NULL;
    } else if (json_object_get(saved.bad, name)) {
        snprintf(s->why, sizeof s->why,
                 "what is saved of %s cannot be used and is kept until it is forgotten: %s",
                 *name ? name : "the daemon", json_string_value(json_object_get(saved.bad, name)));
        return;
    } else {
        e = *name ? target_entry(name) : globals_entry();
        if (e)
            json_array_append_new(s->what, entry_json(name, e));
        else
            json_array_append_new(
                s->what, json_pack("{ss sb so}", "target", name, "deleted", 1, "when", now_json()));
    }
    if (e && *name)
        json_object_set_new(targets, name, e);
    else if (e)
        json_object_set_new(s->next, "globals", e);
    else if (*name)
        json_object_del(targets, name);
    else
        json_object_del(s->next, "globals");
}

/* The names that "everything" stands for. */
static json_t *
all_names(const struct saving *s)
{
    json_t *set = json_object(), *names = json_array(), *v;
    const char *name;

    json_object_update(set, json_object_get(s->next, "targets"));
    if (!s->ask.forget) {
        json_object_update(set, saved.file);
        list_each(it, &model.targets)
            json_object_set_new(set, container_of(it, struct model_target, link)->name,
                                json_true());
    }
    json_object_foreach(set, name, v) json_array_append_new(names, json_string(name));
    json_decref(set);
    return names;
}

static void
change(struct saving *s)
{
    json_t *name, *targets = json_object_get(saved.record, "targets");
    size_t i;

    s->next = json_copy(saved.record);
    json_object_set_new(s->next, "targets", json_copy(targets));
    s->what = json_array();
    if (s->ask.all)
        s->ask.targets = all_names(s);
    json_array_foreach(s->ask.targets, i, name) change_one(s, json_string_value(name));
    if (s->ask.globals || s->ask.all)
        change_one(s, "");
}

/* --- writing --------------------------------------------------------------------------------- */

static void write_first(void);

/* The first is over. */
static void
over(struct saving *s)
{
    const char *why = *s->why ? s->why : NULL;

    list_del(&s->link);
    if (why)
        log_event(LL_ERROR, LA_CONF, "save-failed why=\"%s\"", LOG_TEXT(why));
    else
        log_event(LL_NOTICE, LA_CONF, "saved-changed how=%s count=%zu",
                  s->ask.forget ? "forget" : "save", json_array_size(s->what));
    s->ask.done(s->ask.arg, why, s->what);
    json_decref(s->ask.targets);
    json_decref(s->next);
    json_decref(s->what);
    free(s);
    if (!list_is_empty(&saved.queue))
        write_first();
}

static void
on_written(void *arg, int err)
{
    struct saving *s = arg;
    json_t *e;
    size_t i;

    worker_assert_owner(model.main);
    if (err < 0) {
        snprintf(s->why, sizeof s->why, "%s%s", strerror(-err),
                 err == -EFBIG ? ": all that is saved together may have 16 MiB" : "");
        over(s);
        return;
    }
    json_decref(saved.record);
    saved.record = json_incref(s->next);
    if (s->ask.forget && s->ask.all)
        saved.broken[0] = 0;
    json_array_foreach(s->what, i, e)
    {
        const char *name = json_string_value(json_object_get(e, "target"));
        json_object_del(saved.bad, name ? name : "");
    }
    over(s);
}

static void
write_first(void)
{
    struct saving *s = container_of(saved.queue.next, struct saving, link);

    if (!saved.record)
        snprintf(s->why, sizeof s->why, "this daemon has no record of what is saved");
    else if (*saved.broken && !(s->ask.forget && s->ask.all))
        snprintf(
            s->why, sizeof s->why,
            "the record of what is saved cannot be read and is kept until all is forgotten: %s",
            saved.broken);
    else
        change(s);
    if (*s->why) {
        over(s);
        return;
    }
    bool none = !json_object_size(json_object_get(s->next, "targets")) &&
                !json_object_get(s->next, "globals");
    char *text = none ? NULL : json_dumps(s->next, JSON_COMPACT);
    if (!none && !text) {
        snprintf(s->why, sizeof s->why, "it cannot be written as JSON");
        over(s);
        return;
    }
    size_t n = text ? strlen(text) : 0;
    cstore_write(model.cstore, RECORD, text, n, model.main, on_written, s);
    if (text)
        secret_free_text(text);
}

void
apply_save(const struct apply_saving *ask)
{
    struct saving *s = xcalloc(1, sizeof *s);
    bool idle = list_is_empty(&saved.queue);

    worker_assert_owner(model.main);
    s->ask = *ask;
    s->ask.targets = ask->targets && !ask->all ? json_incref(ask->targets) : NULL;
    list_init(&s->link);
    list_add_tail(&saved.queue, &s->link);
    if (idle)
        write_first();
}

/* --- what is saved --------------------------------------------------------------------------- */

json_t *
apply_saved_list(void)
{
    json_t *all = json_array(), *e = json_object_get(saved.record, "globals");
    const char *name;

    if (e)
        json_array_append_new(all, entry_json("", e));
    json_object_foreach(json_object_get(saved.record, "targets"), name, e)
        json_array_append_new(all, entry_json(name, e));
    return all;
}

const char *
apply_saved_broken(void)
{
    return *saved.broken ? saved.broken : NULL;
}

bool
apply_saved_has(const char *target)
{
    return entry_of(saved.record, target) != NULL;
}

bool
apply_saved_in_file(const char *target)
{
    return json_object_get(saved.file, target) != NULL;
}

bool
apply_autosave(void)
{
    return model.conf && model.conf->autosave == 1;
}
