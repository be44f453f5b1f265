/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configurations in memory: copies, one laid over another, what must hold over all targets of the
 * sum.  Used by who applies a configuration to a daemon that has one already.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/priv.h"

struct conf_kept {
    struct conf_kept *next;
    char text[];
};

const char *
conf_keep(struct conf *c, const char *text)
{
    size_t n = strlen(text) + 1;
    struct conf_kept *k = xmalloc(sizeof *k + n);

    memcpy(k->text, text, n);
    k->next = c->kept;
    c->kept = k;
    return k->text;
}

void
conf_kept_free(struct conf *c)
{
    while (c->kept) {
        struct conf_kept *k = c->kept;
        c->kept = k->next;
        free(k);
    }
}

/* --- copies ---------------------------------------------------------------------------------- */

/* Names of files come again and again: each is kept once as long as it is the same one. */
struct copier {
    struct conf *c;
    const char *file, *file_kept;
};

static void
copy_pos(struct copier *k, struct conf_pos *p)
{
    if (!p->file)
        return;
    if (p->file != k->file) {
        k->file = p->file;
        k->file_kept = conf_keep(k->c, p->file);
    }
    p->file = k->file_kept;
}

static void *
copy_mem(const void *p, size_t n)
{
    void *d = xmalloc(n + 1);
    if (n)
        memcpy(d, p, n);
    return d;
}

static void
copy_kvs(struct copier *k, struct conf_kv **v, unsigned n)
{
    *v = copy_mem(*v, n * sizeof **v);
    for (unsigned i = 0; i < n; i++) {
        struct conf_kv *kv = &(*v)[i];
        kv->name = conf_keep(k->c, kv->name);
        kv->value = conf_keep(k->c, kv->value);
        copy_pos(k, &kv->pos);
    }
}

static void
copy_accounts(struct copier *k, struct conf_accounts *list)
{
    list->v = copy_mem(list->v, list->n * sizeof *list->v);
    for (unsigned i = 0; i < list->n; i++) {
        struct conf_account *a = &list->v[i];
        copy_pos(k, &a->pos);
        a->user = xstrdup(a->user);
        a->secret = secret_get(a->secret);
        a->names = copy_mem(a->names, a->nnames * sizeof *a->names);
        for (unsigned n = 0; n < a->nnames; n++)
            a->names[n] = xstrdup(a->names[n]);
    }
}

static void
copy_luns(struct copier *k, struct conf_target *t)
{
    const struct conf_lun *from = t->luns;

    t->luns = xmalloc(t->nluns * sizeof *t->luns + 1);
    for (unsigned i = 0; i < t->nluns; i++) {
        conf_lun_copy(&t->luns[i], &from[i]);
        copy_pos(k, &t->luns[i].pos);
        for (unsigned p = 0; p < LUN_AT_COUNT; p++)
            copy_pos(k, &t->luns[i].at[p]);
    }
}

struct conf_target *
conf_add_target(struct conf *c, const struct conf_target *from)
{
    struct copier k = {.c = c};

    if ((c->ntargets & (c->ntargets - 1)) == 0)
        c->targets = xrealloc(c->targets, (c->ntargets ? 2 * c->ntargets : 1) * sizeof *c->targets);
    struct conf_target *t = &c->targets[c->ntargets++];
    *t = *from;
    copy_pos(&k, &t->pos);
    t->given = t->given ? conf_keep(c, t->given) : NULL;
    t->alias = t->alias ? conf_keep(c, t->alias) : NULL;
    t->unserved = t->unserved ? conf_keep(c, t->unserved) : NULL;
    copy_kvs(&k, &t->keys, t->nkeys);
    copy_kvs(&k, &t->addrs, t->naddrs);
    copy_kvs(&k, &t->names, t->nnames);
    copy_kvs(&k, &t->locals, t->nlocals);
    copy_kvs(&k, &t->redirects, t->nredirects);
    copy_accounts(&k, &t->accounts);
    t->binds = copy_mem(t->binds, t->nbinds * sizeof *t->binds);
    for (unsigned i = 0; i < t->nbinds; i++)
        copy_pos(&k, &t->binds[i].pos);
    copy_luns(&k, t);
    return t;
}

static void
copy_access(struct copier *k, struct conf_access *a)
{
    a->path = a->path ? conf_keep(k->c, a->path) : NULL;
    copy_pos(k, &a->pos);
    a->lines = copy_mem(a->lines, a->n * sizeof *a->lines);
    for (unsigned i = 0; i < a->n; i++) {
        a->lines[i].target = xstrdup(a->lines[i].target);
        a->lines[i].entries = xstrdup(a->lines[i].entries);
        copy_pos(k, &a->lines[i].pos);
    }
}

void
conf_copy_globals(struct conf *c, const struct conf *from)
{
    struct copier k = {.c = c};
    const struct conf mine = *c;

    conf_accounts_fini(&c->accounts);
    conf_accounts_fini(&c->discovery);
    conf_accounts_fini(&c->unbound);
    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++)
        conf_access_fini(&c->access[i]);
    free(c->isns_servers);
    free(c->portals);
    *c = *from;
    c->kept = mine.kept;
    c->raw = mine.raw;
    c->targets = mine.targets;
    c->ntargets = mine.ntargets;
    c->state_dir = c->state_dir ? conf_keep(c, c->state_dir) : NULL;
    c->user = c->user ? conf_keep(c, c->user) : NULL;
    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++)
        copy_access(&k, &c->access[i]);
    copy_accounts(&k, &c->accounts);
    copy_accounts(&k, &c->discovery);
    copy_accounts(&k, &c->unbound);
    copy_kvs(&k, &c->isns_servers, c->nisns_servers);
    c->portals = copy_mem(c->portals, c->nportals * sizeof *c->portals);
    for (unsigned i = 0; i < c->nportals; i++)
        copy_pos(&k, &c->portals[i].pos);
}

void
conf_accounts_clear(struct conf_accounts *list)
{
    conf_accounts_fini(list);
    *list = (struct conf_accounts){.n = 0};
}

/* --- one over another ------------------------------------------------------------------------ */

static int
by_name(const void *a, const void *b)
{
    const struct conf_target *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* The targets sorted by name; NULL behind the last. */
static const struct conf_target **
sorted(const struct conf *c)
{
    const struct conf_target **v = xcalloc(c->ntargets + 1, sizeof *v);

    for (unsigned i = 0; i < c->ntargets; i++)
        v[i] = &c->targets[i];
    if (c->ntargets)
        qsort(v, c->ntargets, sizeof *v, by_name);
    return v;
}

static const struct conf_target *
find(const struct conf_target *const *v, unsigned n, const char *name)
{
    unsigned lo = 0;

    while (n) {
        unsigned half = n / 2;
        int d = strcmp(v[lo + half]->name, name);
        if (d == 0)
            return v[lo + half];
        if (d < 0) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return NULL;
}

void
conf_number(struct conf *c, const struct conf *running, bool stays)
{
    enum { FREE, RUNNING, TAKEN };
    const struct conf_target **old = running ? sorted(running) : NULL;
    uint8_t *used = xcalloc(1, TID_MAX + 1);
    unsigned next = 1, nold = running ? running->ntargets : 0;

    for (unsigned i = 0; i < nold && stays; i++)
        used[old[i]->tid] = RUNNING;
    for (unsigned i = 0; i < c->ntargets; i++) {
        struct conf_target *t = &c->targets[i];
        t->tid_auto = t->tid_auto || !t->tid;
        if (!t->tid_auto)
            used[t->tid] = TAKEN;
    }
    for (unsigned i = 0; i < c->ntargets; i++) { /* number 0 is nobody's: it is none */
        struct conf_target *t = &c->targets[i];
        const struct conf_target *was = t->tid_auto ? find(old, nold, t->name) : NULL;
        if (was)
            t->tid = used[was->tid] != TAKEN ? was->tid : 0;
        if (was)
            used[t->tid] = TAKEN;
    }
    for (unsigned i = 0; i < c->ntargets; i++) {
        struct conf_target *t = &c->targets[i];
        if (!t->tid_auto || find(old, nold, t->name))
            continue;
        if (used[t->tid] != FREE)
            t->tid = 0;
        used[t->tid] = TAKEN;
    }
    for (unsigned i = 0; i < c->ntargets; i++) {
        if (c->targets[i].tid)
            continue;
        while (next < TID_MAX && used[next] != FREE)
            next++;
        c->targets[i].tid = next;
        used[next] = TAKEN;
    }
    free(used);
    free(old);
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool
is_named(const char *const *names, unsigned n, const char *name)
{
    return n && bsearch(&name, names, n, sizeof *names, by_text);
}

struct conf *
conf_merge(const struct conf *base, const struct conf *over, const struct conf_parts *what)
{
    struct conf *c = conf_new();
    const char **names = xcalloc(what->n + 1, sizeof *names);

    for (unsigned i = 0; i < what->n; i++)
        names[i] = what->names[i];
    if (what->n)
        qsort(names, what->n, sizeof *names, by_text);
    conf_copy_globals(c, what->globals ? over : base);
    for (unsigned i = 0; i < base->ntargets; i++) {
        if (!what->all && !is_named(names, what->n, base->targets[i].name))
            conf_add_target(c, &base->targets[i]);
    }
    for (unsigned i = 0; i < over->ntargets; i++) {
        if (what->all || is_named(names, what->n, over->targets[i].name))
            conf_add_target(c, &over->targets[i]);
    }
    conf_number(c, base, false);
    if (what->all || what->globals)
        conf_unbound_only(c, NULL);
    free(names);
    return c;
}
