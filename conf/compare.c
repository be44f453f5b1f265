/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must not be twice: one store under unlike settings, one identity on different disks.
 * Thousands of logical units are compared by sorting, not each with each.  Called by build.c.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "conf/priv.h"

struct item {
    const struct conf_lun *l;
    unsigned target;
    char *store; /* canonical path; NULL for null */
};

/* An item under one of the things it is compared by. */
struct entry {
    const void *key;
    size_t len;
    unsigned i; /* items[i]; equal keys stay in the order of the files */
};

const char *
compare_where(const struct conf_pos *pos, char *buf, size_t size)
{
    if (pos->line)
        snprintf(buf, size, "%s:%u:%u", pos->file, pos->line, pos->col);
    else
        snprintf(buf, size, "%s", pos->file);
    return buf;
}

static int
by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int d = memcmp(x->key, y->key, n);

    if (d == 0)
        d = x->len < y->len ? -1 : x->len > y->len;
    return d != 0 ? d : x->i < y->i ? -1 : x->i > y->i;
}

static bool
same_key(const struct entry *x, const struct entry *y)
{
    return x->len == y->len && memcmp(x->key, y->key, x->len) == 0;
}

static bool
same_store(const struct item *x, const struct item *y)
{
    return x->store && y->store && strcmp(x->store, y->store) == 0;
}

/* True: complained. */
static bool
compare_store(struct conf_report *r, const struct item *x, const struct item *y)
{
    if (x->target == y->target) {
        conf_report_add(r, true, &x->l->pos, "%s is a logical unit of this target already, at %s",
                        x->l->path, WHERE(&y->l->pos));
        return true;
    }
    if (conf_lun_same(x->l, y->l) || (x->l->allow_in_use && y->l->allow_in_use))
        return false;
    conf_report_add(r, true, &x->l->pos,
                    "%s is a logical unit at %s already, with other settings; give both the same "
                    "settings, or `allow-in-use yes`",
                    x->l->path, WHERE(&y->l->pos));
    return true;
}

/* x and y have the same identity `at`; one disk under two names may. */
static bool
compare_ident(struct conf_report *r, const struct item *x, const struct item *y, unsigned at)
{
    static const char *const what[LUN_AT_COUNT] = {"",    "scsi_id", "scsi_sn",
                                                   "naa", "eui",     "designator"};
    const struct conf_pos *px = x->l->at[at].file ? &x->l->at[at] : &x->l->pos;
    const struct conf_pos *py = y->l->at[at].file ? &y->l->at[at] : &y->l->pos;

    if (same_store(x, y))
        return false;
    /* one line at the target's level for several LUNs: point at the LUN instead */
    if (px->file == py->file && px->line == py->line && px->col == py->col)
        px = &x->l->pos, py = &y->l->pos;
    conf_report_add(r, true, px,
                    "two different logical units have the same %s; the other is at %s: initiators "
                    "would take them for one disk",
                    what[at], WHERE(py));
    return true;
}

/* What item is compared by; at LUN_AT_NUMBER: its store. len 0: not at all. */
static struct entry
entry_of(const struct item *v, unsigned at, unsigned i)
{
    const struct conf_lun *l = v->l;

    switch (at) {
    case LUN_AT_NUMBER:
        return (struct entry){v->store, v->store ? strlen(v->store) : 0, i};
    case LUN_AT_ID:
        return (struct entry){l->scsi_id, strlen(l->scsi_id), i};
    case LUN_AT_SN:
        return (struct entry){l->scsi_sn, strlen(l->scsi_sn), i};
    case LUN_AT_NAA:
        return (struct entry){l->naa, l->naa_len, i};
    case LUN_AT_EUI:
        return (struct entry){l->eui, l->eui_len, i};
    default:
        return (struct entry){l->designators, l->designators_len, i};
    }
}

/* Each of a run of equal keys is held against those before it, up to the first complaint. */
static void
compare_run(struct conf_report *r, const struct item *v, const struct entry *e, unsigned n,
            unsigned at)
{
    for (unsigned i = 1; i < n; i++) {
        for (unsigned k = 0; k < i; k++) {
            const struct item *x = &v[e[i].i], *y = &v[e[k].i];
            if (at == LUN_AT_NUMBER ? compare_store(r, x, y) : compare_ident(r, x, y, at))
                break;
        }
    }
}

static void
compare_by(struct conf_report *r, const struct item *v, unsigned n, struct entry *e, unsigned at)
{
    unsigned m = 0;

    for (unsigned i = 0; i < n; i++) {
        e[m] = entry_of(&v[i], at, i);
        m += e[m].len != 0;
    }
    if (m == 0)
        return;
    qsort(e, m, sizeof *e, by_key);
    for (unsigned from = 0, to; from < m; from = to) {
        for (to = from + 1; to < m && same_key(&e[from], &e[to]); to++)
            ;
        compare_run(r, v, e + from, to - from, at);
    }
}

void
compare_luns(const struct conf *c, struct conf_report *r)
{
    unsigned n = 0, k = 0;

    for (unsigned i = 0; i < c->ntargets; i++)
        n += c->targets[i].nluns;
    struct item *v = xcalloc(n + 1, sizeof *v);
    struct entry *e = xcalloc(n + 1, sizeof *e);
    for (unsigned i = 0; i < c->ntargets; i++) {
        for (unsigned m = 0; m < c->targets[i].nluns; m++, k++) {
            const struct conf_lun *l = &c->targets[i].luns[m];
            v[k] = (struct item){l, i, NULL};
            if (l->bs == CONF_BS_ZRAM) /* a name, wherever this process stands */
                v[k].store = xstrdup(l->path);
            else if (l->bs != CONF_BS_NULL && l->path[0] && !(v[k].store = realpath(l->path, NULL)))
                v[k].store = xstrdup(l->path);
        }
    }
    for (unsigned at = 0; at < LUN_AT_COUNT; at++)
        compare_by(r, v, n, e, at);
    for (unsigned i = 0; i < n; i++)
        free(v[i].store);
    free(e);
    free(v);
}
