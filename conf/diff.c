/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What differs between two configurations, by directive: a row's values are the same when they are
 * written the same.  Pure.
 */
#include "config.h"

#include <string.h>

#include "conf/priv.h"

struct differ {
    conf_diff_fn *fn;
    void *arg;
    unsigned n;
};

static void
tell(struct differ *df, const char *directive, const char *of, int lun, enum conf_how how)
{
    const struct conf_difference d = {directive, of, lun, how};
    df->n++;
    if (df->fn)
        df->fn(df->arg, &d);
}

/* All values of one row. */
static bool
row_same(const struct directive *d, const void *a, const void *b)
{
    struct text x = {.secrets = true}, y = {.secrets = true};
    bool same = true, more = true;

    if (d->type->same)
        return d->type->same(a, b, d);

    for (unsigned i = 0; same && more; i++) {
        text_reset(&x);
        text_reset(&y);
        more = d->type->show(a, d, i, &x);
        same = d->type->show(b, d, i, &y) == more &&
               (!more || (x.n == y.n && (x.n == 0 || memcmp(x.p, y.p, x.n) == 0)));
        more = more && d->many;
    }
    text_fini(&x);
    text_fini(&y);
    return same;
}

static void
diff_rows(struct differ *df, enum conf_scope scope, const void *a, const void *b, const char *of,
          int lun)
{
    const struct directive *d;

    for (unsigned r = 0; (d = table_row(r)); r++) {
        if (table_shown(d, scope) && !row_same(d, a, b))
            tell(df, d->name, of, lun, CONF_CHANGED);
    }
}

static const struct conf_kv *
find_key(const struct conf_target *t, const char *name)
{
    for (unsigned i = 0; i < t->nkeys; i++) {
        if (strcmp(t->keys[i].name, name) == 0)
            return &t->keys[i];
    }
    return NULL;
}

static void
diff_keys(struct differ *df, const struct conf_target *a, const struct conf_target *b)
{
    for (unsigned i = 0; i < a->nkeys; i++) {
        const struct conf_kv *kv = find_key(b, a->keys[i].name);
        if (!kv)
            tell(df, a->keys[i].name, a->name, -1, CONF_REMOVED);
        else if (strcmp(a->keys[i].value, kv->value) != 0)
            tell(df, kv->name, a->name, -1, CONF_CHANGED);
    }
    for (unsigned i = 0; i < b->nkeys; i++) {
        if (!find_key(a, b->keys[i].name))
            tell(df, b->keys[i].name, a->name, -1, CONF_ADDED);
    }
}

static void
diff_lun(struct differ *df, const struct conf_lun *a, const struct conf_lun *b, const char *of)
{
    if (strcmp(a->path, b->path) != 0)
        tell(df, "backing-store", of, b->number, CONF_CHANGED);
    if (a->direct_store != b->direct_store)
        tell(df, "direct-store", of, b->number, CONF_CHANGED);
    diff_rows(df, SC_LUN, a, b, of, b->number);
}

/* Both are sorted by number. */
static void
diff_luns(struct differ *df, const struct conf_target *a, const struct conf_target *b)
{
    unsigned i = 0, k = 0;

    while (i < a->nluns || k < b->nluns) {
        const struct conf_lun *x = i < a->nluns ? &a->luns[i] : NULL;
        const struct conf_lun *y = k < b->nluns ? &b->luns[k] : NULL;
        if (!y || (x && x->number < y->number)) {
            tell(df, "backing-store", a->name, x->number, CONF_REMOVED);
            i++;
        } else if (!x || y->number < x->number) {
            tell(df, "backing-store", a->name, y->number, CONF_ADDED);
            k++;
        } else {
            diff_lun(df, x, y, a->name);
            i++;
            k++;
        }
    }
}

unsigned
conf_target_diff(const struct conf_target *a, const struct conf_target *b, conf_diff_fn *fn,
                 void *arg)
{
    struct differ df = {fn, arg, 0};

    diff_rows(&df, SC_TARGET, a, b, a->name, -1);
    diff_keys(&df, a, b);
    diff_luns(&df, a, b);
    return df.n;
}

unsigned
conf_lun_diff(const struct conf_lun *a, const struct conf_lun *b, conf_diff_fn *fn, void *arg)
{
    struct differ df = {fn, arg, 0};

    diff_lun(&df, a, b, NULL);
    return df.n;
}

static const struct conf_portal *
find_portal(const struct conf *c, const char *name)
{
    for (unsigned i = 0; i < c->nportals; i++) {
        if (strcmp(c->portals[i].at.name, name) == 0)
            return &c->portals[i];
    }
    return NULL;
}

unsigned
conf_globals_diff(const struct conf *a, const struct conf *b, conf_diff_fn *fn, void *arg)
{
    struct differ df = {fn, arg, 0};

    diff_rows(&df, SC_GLOBAL, a, b, NULL, -1);
    if (a->no_portals != b->no_portals)
        tell(&df, "portal", "none", -1, b->no_portals ? CONF_ADDED : CONF_REMOVED);
    for (unsigned i = 0; i < a->nportals; i++) {
        const struct conf_portal *p = &a->portals[i], *q = find_portal(b, p->at.name);
        if (!q)
            tell(&df, "portal", p->at.name, -1, CONF_REMOVED);
        else
            diff_rows(&df, SC_PORTAL, p, q, p->at.name, -1);
    }
    for (unsigned i = 0; i < b->nportals; i++) {
        if (!find_portal(a, b->portals[i].at.name))
            tell(&df, "portal", b->portals[i].at.name, -1, CONF_ADDED);
    }
    return df.n;
}

const struct conf_target *
conf_find_target(const struct conf *c, const char *name)
{
    for (unsigned i = 0; i < c->ntargets; i++) {
        if (strcmp(c->targets[i].name, name) == 0)
            return &c->targets[i];
    }
    return NULL;
}

bool
conf_same(const struct conf *a, const struct conf *b)
{
    if (a->ntargets != b->ntargets || conf_globals_diff(a, b, NULL, NULL) != 0)
        return false;
    for (unsigned i = 0; i < a->ntargets; i++) {
        const struct conf_target *t = conf_find_target(b, a->targets[i].name);
        if (!t || conf_target_diff(&a->targets[i], t, NULL, NULL) != 0)
            return false;
    }
    return true;
}
