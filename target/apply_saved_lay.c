/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Saved texts laid over the configuration file.  All at once, and when the sum does not hold, half
 * by half until those are found that do not fit: one bad text costs nothing but itself.  In
 * helpers, and on main before its loop.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pool.h"
#include "base/secret.h"
#include "target/apply.h"
#include "target/apply_saved.h"

/* --- texts in the record --------------------------------------------------------------------- */

json_t *
apply_saved_encode(const char *text)
{
    size_t n = strlen(text), k = 0;
    char *u = xmalloc(2 * n + 1);

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x80)
            u[k++] = (char)(0xc0 | c >> 6);
        u[k++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
    }
    u[k] = 0;
    json_t *j = json_string(u);
    secret_free_text(u);
    return j;
}

char *
apply_saved_decode(const json_t *j)
{
    const char *u = json_string_value(j);
    size_t n = json_string_length(j), k = 0;

    if (!u || strlen(u) != n)
        return NULL;
    char *text = xmalloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)u[i];
        if (c >= 0x80 && (c & 0xfc) == 0xc0)
            c = (unsigned char)(c << 6 | ((unsigned char)u[++i] & 0x3f));
        else if (c >= 0x80) { /* no byte of ours */
            text[k] = 0;
            secret_free_text(text);
            return NULL;
        }
        text[k++] = (char)c;
    }
    text[k] = 0;
    return text;
}

/* --- pieces ---------------------------------------------------------------------------------- */

struct piece {
    const char *name; /* "": the daemon */
    struct conf *c;   /* NULL: deleted */
    char *hides;      /* what the file says otherwise, for people; NULL: nothing */
    char *file;       /* where */
    unsigned line, col;
};

struct laying {
    struct apply_saved_job *job;
    struct conf *base;
    struct conf_report *report; /* or NULL */
};

static void
reject(struct laying *l, const char *name, const char *why)
{
    char file[CONF_NAME_MAX + 32];
    json_t *j = json_string(why);

    snprintf(file, sizeof file, "what is saved of %s", *name ? name : "the daemon");
    json_object_set_new(l->job->bad, name, j ? j : json_string("it cannot be used"));
    log_event(LL_ERROR, LA_CONF, "saved-unusable target=%s why=\"%s\" then=\"%s\"",
              *name ? name : "-", LOG_TEXT(why), "it is kept; the file's stands in its place");
    const struct conf_pos pos = {file, 0, 0};
    if (l->report)
        conf_report_add(l->report, false, &pos, "it is not used: %s", why);
}

static void
reject_report(struct laying *l, const char *name, const struct conf_report *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        if (r->v[i].is_error) {
            char *why = r->v[i].line ? xasprintf("line %u: %s", r->v[i].line, r->v[i].text)
                                     : xstrdup(r->v[i].text);
            reject(l, name, why);
            free(why);
            return;
        }
    }
    reject(l, name, "it cannot be read");
}

/* Lines of IET's access files stand beside the text: a start without those files has them too. */
static void
take_access(struct conf *c, const json_t *list)
{
    json_t *a, *line;
    size_t i, k;

    json_array_foreach(list, i, a)
    {
        json_int_t which = json_integer_value(json_object_get(a, "which"));
        json_t *lines = json_object_get(a, "lines");
        char *path = apply_saved_decode(json_object_get(a, "path"));
        if (!path || which < 0 || which >= CONF_ACCESS_FILES || c->access[which].path) {
            free(path);
            continue;
        }
        struct conf_access *to = &c->access[which];
        to->path = conf_keep(c, path);
        to->pos = (struct conf_pos){to->path, 0, 0};
        free(path);
        to->lines = xcalloc(json_array_size(lines) + 1, sizeof *to->lines);
        json_array_foreach(lines, k, line)
        {
            char err[256];
            char *t = apply_saved_decode(json_array_get(line, 0));
            char *e = apply_saved_decode(json_array_get(line, 1));
            const struct conf_checks *ck = apply_checks();
            if (t && e &&
                ck->access((enum conf_access_file)which, t, e, err, sizeof err, NULL, 0, NULL) >= 0)
                to->lines[to->n++] = (struct conf_access_line){to->pos, t, e};
            else {
                free(t);
                free(e);
            }
        }
    }
}

/* What outside of targets is never taken from what is saved. */
static void
keep_own(struct conf *c, const struct conf *file, bool own_portals)
{
    c->state_dir = file->state_dir ? conf_keep(c, file->state_dir) : NULL;
    c->user = file->user ? conf_keep(c, file->user) : NULL;
    c->ids = file->ids;
    if (!own_portals)
        return;
    free(c->portals);
    c->nportals = file->nportals;
    c->no_portals = file->no_portals;
    c->portals = xmalloc((c->nportals + 1) * sizeof *c->portals);
    if (c->nportals)
        memcpy(c->portals, file->portals, c->nportals * sizeof *c->portals);
    for (unsigned i = 0; i < c->nportals; i++)
        c->portals[i].pos.file = conf_keep(c, c->portals[i].pos.file ? c->portals[i].pos.file : "");
}

/* The piece of an entry; false: it was rejected. */
static bool
read_piece(struct laying *l, const char *name, const json_t *entry, struct piece *p)
{
    struct conf_checks checks = *apply_checks();
    char *text, label[CONF_NAME_MAX + 16];
    struct conf_report r;

    *p = (struct piece){.name = name};
    if (*name && json_is_true(json_object_get(entry, "deleted")))
        return true;
    text = apply_saved_decode(json_object_get(entry, "text"));
    if (!text) {
        reject(l, name, "it has no text");
        return false;
    }
    snprintf(label, sizeof label, "saved:%s", name);
    conf_report_init(&r);
    checks.part = true;
    p->c = conf_parse(label, text, strlen(text), &checks, &r);
    secret_free_text(text);
    if (!p->c) {
        reject_report(l, name, &r);
    } else if (*name ? p->c->ntargets != 1 || strcmp(p->c->targets[0].name, name) != 0
                     : p->c->ntargets != 0) {
        reject(l, name, *name ? "it is not this target, and it alone" : "there is a target in it");
        conf_free(p->c);
        p->c = NULL;
    }
    conf_report_fini(&r);
    return p->c != NULL;
}

/* --- what of the file it hides --------------------------------------------------------------- */

/* The first change that forgetting it would make, and how many more there are. */
static char *
plan_words(const struct apply_plan *p)
{
    const char *first = NULL;
    unsigned n = 0;

    for (unsigned i = 0; i < p->n; i++) {
        if (!p->v[i].what[0])
            continue;
        first = first ? first : p->v[i].what;
        n++;
    }
    if (n == 0)
        return NULL;
    return n == 1 ? xstrdup(first) : xasprintf("%s, and %u more", first, n - 1);
}

/* Before it is laid: afterwards nobody knows what the file said. */
static void
note_hidden(struct piece *p, const struct conf *file)
{
    const struct conf_target *t = *p->name ? conf_find_target(file, p->name) : NULL;
    struct apply_plan plan = {NULL, 0};

    if (*p->name && !t)
        return;
    if (!*p->name) {
        struct conf *globals = conf_new();
        conf_copy_globals(globals, file);
        apply_diff(&plan, p->c, globals, NULL);
        p->hides = plan_words(&plan);
        apply_plan_fini(&plan);
        conf_free(globals);
    } else if (!p->c) {
        p->hides = xstrdup("it was deleted");
    } else {
        apply_diff_target(&plan, &p->c->targets[0], t);
        p->hides = plan_words(&plan);
        apply_plan_fini(&plan);
    }
    p->file = xstrdup(t ? t->pos.file : "the configuration file");
    p->line = t ? t->pos.line : 0;
    p->col = t ? t->pos.col : 0;
}

static void
tell_hidden(struct laying *l, const struct piece *p)
{
    const struct conf_pos pos = {p->file, p->line, p->col};

    if (!p->hides || json_object_get(l->job->bad, p->name))
        return;
    log_event(LL_NOTICE, LA_CONF, "saved-hides target=%s at=%s:%u what=\"%s\"",
              *p->name ? p->name : "-", LOG_ESC(p->file), p->line, LOG_TEXT(p->hides));
    if (l->report && *p->name)
        conf_report_add(l->report, false, &pos,
                        "target %s is not as it stands here, for what was saved of it comes first "
                        "(%s); evtgtadm forget %s, then reload, takes the file's word",
                        p->name, p->hides, p->name);
    else if (l->report)
        conf_report_add(l->report, false, &pos,
                        "what stands outside of targets is not as it says, for what was saved of "
                        "it comes first (%s); evtgtadm forget --globals, then reload, takes the "
                        "file's word",
                        p->hides);
}

/* --- over the file --------------------------------------------------------------------------- */

/* base with these pieces over it; the report says whether it holds. */
static struct conf *
sum(const struct conf *base, const struct piece *v, unsigned n, struct conf_report *r)
{
    struct conf *over = conf_new();
    const char **names = xcalloc(n + 1, sizeof *names);
    struct conf_parts parts = {.names = names};

    for (unsigned i = 0; i < n; i++) {
        if (!*v[i].name) {
            conf_copy_globals(over, v[i].c);
            parts.globals = true;
            continue;
        }
        names[parts.n++] = v[i].name;
        if (v[i].c)
            conf_add_target(over, &v[i].c->targets[0]);
    }
    struct conf *c = conf_merge(base, over, &parts);
    conf_check_across(c, r);
    conf_free(over);
    free(names);
    return c;
}

static void
lay(struct laying *l, const struct piece *v, unsigned n)
{
    struct conf_report r;

    if (n == 0)
        return;
    conf_report_init(&r);
    struct conf *c = sum(l->base, v, n, &r);
    if (r.nerrors == 0) {
        conf_free(l->base);
        l->base = c;
    } else {
        conf_free(c);
        if (n == 1) {
            reject_report(l, v->name, &r);
        } else {
            lay(l, v, n / 2);
            lay(l, v + n / 2, n - n / 2);
        }
    }
    conf_report_fini(&r);
}

/* Deletions make room first. */
static int
by_kind(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (!x->c != !y->c)
        return x->c ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void
log_used(const struct apply_saved_job *j, const struct piece *p)
{
    const json_t *e = *p->name ? json_object_get(json_object_get(j->record, "targets"), p->name)
                               : json_object_get(j->record, "globals");
    if (!json_object_get(j->bad, p->name))
        log_event(LL_NOTICE, LA_CONF, "saved-used target=%s deleted=%d when=%s",
                  *p->name ? p->name : "-", !p->c,
                  LOG_ESC(json_string_value(json_object_get(e, "when"))));
}

struct conf *
apply_saved_lay(struct apply_saved_job *j, struct conf *file, bool own_portals,
                struct conf_report *report)
{
    struct laying l = {.job = j, .base = file, .report = report};
    json_t *targets = json_object_get(j->record, "targets"), *e;
    struct piece *v = xcalloc(json_object_size(targets) + 1, sizeof *v);
    const char *name;
    unsigned n = 0;

    for (unsigned i = 0; i < file->ntargets; i++)
        json_object_set_new(j->file, file->targets[i].name, json_true());
    json_object_foreach(targets, name, e) n += read_piece(&l, name, e, &v[n]);
    e = json_object_get(j->record, "globals");
    if (e && read_piece(&l, "", e, &v[n])) {
        take_access(v[n].c, json_object_get(e, "access"));
        keep_own(v[n].c, file, own_portals);
        n++;
    }
    if (n)
        qsort(v, n, sizeof *v, by_kind);
    for (unsigned i = 0; i < n; i++)
        note_hidden(&v[i], file);
    lay(&l, v, n);
    for (unsigned i = 0; i < n; i++) {
        log_used(j, &v[i]);
        tell_hidden(&l, &v[i]);
        conf_free(v[i].c);
        free(v[i].hides);
        free(v[i].file);
    }
    free(v);
    return l.base;
}
