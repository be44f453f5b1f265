/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The difference of two configurations as a list of changes, in the order in which they are told.
 * Knows nothing of the model: what is found here is made so by apply_commit.c.  Any thread.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/apply.h"

const char *
apply_how_name(enum apply_how how)
{
    static const char *const names[] = {[HOW_LIVE] = "live",
                                        [HOW_SESSIONS] = "sessions",
                                        [HOW_LUN] = "lun",
                                        [HOW_RESTART] = "restart"};
    return names[how];
}

void
apply_plan_add(struct apply_plan *p, struct apply_change ch, const char *fmt, ...)
{
    char text[1600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ch.what = xstrdup(text);
    ch.target = ch.target ? xstrdup(ch.target) : NULL;
    if ((p->n & (p->n - 1)) == 0)
        p->v = xrealloc(p->v, (p->n ? 2 * p->n : 1) * sizeof *p->v);
    p->v[p->n++] = ch;
}

void
apply_plan_fini(struct apply_plan *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        free(p->v[i].target);
        free(p->v[i].what);
    }
    free(p->v);
    *p = (struct apply_plan){.n = 0};
}

/* --- the daemon ------------------------------------------------------------------------------ */

static void
say(struct apply_plan *p, bool *any, const char *name)
{
    apply_plan_add(p, (struct apply_change){.op = OP_NOTE}, "%s", name);
    *any = true;
}

static void
diff_options(struct apply_plan *p, const struct conf *have, const struct conf *want,
             const struct conf *started, bool *any)
{
    for (unsigned i = 0; i < apply_nopts; i++) {
        const struct apply_opt *o = &apply_opts[i];
        unsigned a = apply_opt_of(o, o->opt < 0 && started ? started : have);
        unsigned b = apply_opt_of(o, want);
        if (a == b)
            continue;
        if (o->opt < 0)
            apply_plan_add(p, (struct apply_change){.op = OP_NOTE, .how = HOW_RESTART}, "%s",
                           o->name);
        else if (b == CONF_UNSET || (int)b < 0)
            say(p, any, o->name);
        else {
            apply_plan_add(p, (struct apply_change){.op = OP_NOTE}, "%s %u", o->name, b);
            *any = true;
        }
    }
}

/* Directives that are told apart below, or say nothing by themselves. */
static bool
is_known(const char *name)
{
    static const char *const others[] = {"account",
                                         "iSNS",
                                         "iSNSServerIP",
                                         "iSNSServer",
                                         "iSNSServerPort",
                                         "iSNSAccessControl",
                                         "incominguser",
                                         "outgoinguser",
                                         "incomingdiscoveryuser",
                                         "outgoingdiscoveryuser",
                                         "portal"};
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(others[i], name) == 0)
            return true;
    }
    for (unsigned i = 0; i < apply_nopts; i++) {
        if (strcmp(apply_opts[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool
is_live(const char *name)
{
    static const char *const live[] = {
        "discovery-filter",   "nop_interval", "nop_count",        "chap-algorithms",
        "chap-legacy-sha1-7", "autosave",     "initiators-allow", "initiators-deny",
        "targets-allow",      "ids",          "zram-mem-limit"};
    for (unsigned i = 0; i < sizeof live / sizeof *live; i++) {
        if (strcmp(live[i], name) == 0)
            return true;
    }
    return false;
}

struct others {
    struct apply_plan *p;
    bool live, any;
};

/* Twice: what is heeded at once, against what there is; and whatever nobody here knows how to
 * change, which waits for the next start, against what there was at the last one. */
static void
on_other(void *arg, const struct conf_difference *d)
{
    struct others *o = arg;
    if (d->of || is_known(d->directive) || is_live(d->directive) != o->live)
        return;
    apply_plan_add(o->p,
                   (struct apply_change){.op = OP_NOTE, .how = o->live ? HOW_LIVE : HOW_RESTART},
                   "%s", d->directive);
    o->any = true;
}

static bool
same_isns(const struct conf *a, const struct conf *b)
{
    unsigned pa = a->isns_port, pb = b->isns_port;
    pa = pa == CONF_UNSET ? 3205 : pa;
    pb = pb == CONF_UNSET ? 3205 : pb;
    if (a->isns_on != b->isns_on || a->isns_access != b->isns_access || pa != pb ||
        a->nisns_servers != b->nisns_servers)
        return false;
    for (unsigned i = 0; i < a->nisns_servers; i++) {
        if (strcmp(a->isns_servers[i].value, b->isns_servers[i].value) != 0)
            return false;
    }
    return true;
}

static void
diff_globals(struct apply_plan *p, const struct conf *have, const struct conf *want,
             const struct conf *started)
{
    const struct conf *was = started ? started : have;
    struct others later = {p, false, false}, now = {p, true, false};
    bool any = false;

    diff_options(p, have, want, started, &any);
    (void)conf_globals_diff(was, want, on_other, &later);
    (void)conf_globals_diff(have, want, on_other, &now);
    if (!same_isns(have, want))
        say(p, &any, "iSNS");
    any |= apply_diff_accounts(p, NULL, "user", &have->accounts, &want->accounts);
    any |= apply_diff_accounts(p, NULL, "discoveryuser", &have->discovery, &want->discovery);
    any |= apply_diff_accounts(p, NULL, "account", &have->unbound, &want->unbound);
    /* what only a start heeds is remembered all the same */
    if (any || now.any || p->n)
        apply_plan_add(p, (struct apply_change){.op = OP_GLOBAL}, "%s", "");
}

/* --- portals --------------------------------------------------------------------------------- */

static const struct conf_portal *
find_portal(const struct conf *c, const char *name)
{
    for (unsigned i = 0; i < c->nportals; i++) {
        if (strcmp(c->portals[i].at.name, name) == 0)
            return &c->portals[i];
    }
    return NULL;
}

static void
diff_portals(struct apply_plan *p, const struct conf *have, const struct conf *want)
{
    for (unsigned i = 0; i < want->nportals; i++) {
        const struct conf_portal *w = &want->portals[i];
        const struct conf_portal *h = find_portal(have, w->at.name);
        if (!h)
            apply_plan_add(p, (struct apply_change){.op = OP_PORTAL_ADD, .portal = w},
                           "portal %s added", w->at.name);
        else if (h->group != w->group || strcmp(h->advertise, w->advertise) != 0)
            apply_plan_add(p, (struct apply_change){.op = OP_PORTAL_CHANGE, .portal = w},
                           "portal %s changed", w->at.name);
    }
    for (unsigned i = 0; i < have->nportals; i++) {
        const struct conf_portal *h = &have->portals[i];
        if (!find_portal(want, h->at.name))
            apply_plan_add(p, (struct apply_change){.op = OP_PORTAL_DEL, .portal = h},
                           "portal %s deleted", h->at.name);
    }
}

/* --- all of it ------------------------------------------------------------------------------- */

struct named {
    const struct conf_target *t;
};

static int
by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    return strcmp(x->t->name, y->t->name);
}

static struct named *
sorted(const struct conf *c)
{
    struct named *v = xcalloc(c->ntargets + 1, sizeof *v);

    for (unsigned i = 0; i < c->ntargets; i++)
        v[i].t = &c->targets[i];
    if (c->ntargets)
        qsort(v, c->ntargets, sizeof *v, by_name);
    return v;
}

static void
add_whole(struct apply_plan *p, const struct conf_target *t)
{
    struct apply_change ch = {.op = OP_TARGET_ADD, .want = t, .target = (char *)t->name};

    apply_plan_add(p, ch, "target added, tid %u", t->tid);
    for (unsigned i = 0; i < t->nluns; i++) {
        ch.op = OP_LUN_ADD;
        ch.lun_want = &t->luns[i];
        apply_plan_add(p, ch, "lun %d added: %s", t->luns[i].number,
                       t->luns[i].path[0] ? t->luns[i].path : "null");
    }
}

/* Live settings of a logical unit that others map as it was: theirs stays, this one is made anew.
 */
static void
split_shared(struct apply_plan *p, const struct conf *want)
{
    for (unsigned i = 0; i < p->n; i++) {
        struct apply_change *ch = &p->v[i];
        bool kept = false;
        if (ch->op != OP_LUN_SET || ch->lun_have->bs == CONF_BS_NULL)
            continue;
        for (unsigned k = 0; k < want->ntargets && !kept; k++) {
            for (unsigned n = 0; n < want->targets[k].nluns && !kept; n++)
                kept = conf_lun_same(&want->targets[k].luns[n], ch->lun_have);
        }
        if (kept) {
            ch->op = OP_LUN_REPLACE;
            ch->how = HOW_LUN;
        }
    }
}

void
apply_diff(struct apply_plan *p, const struct conf *have, const struct conf *want,
           const struct conf *started)
{
    struct named *h = sorted(have), *w = sorted(want);
    unsigned i = 0, k = 0;

    diff_globals(p, have, want, started);
    diff_portals(p, have, want);
    while (i < have->ntargets || k < want->ntargets) {
        int d = i == have->ntargets   ? 1
                : k == want->ntargets ? -1
                                      : strcmp(h[i].t->name, w[k].t->name);
        if (d < 0) {
            apply_plan_add(p,
                           (struct apply_change){.op = OP_TARGET_DEL,
                                                 .how = HOW_SESSIONS,
                                                 .have = h[i].t,
                                                 .target = (char *)h[i].t->name},
                           "target deleted");
        } else if (d > 0) {
            add_whole(p, w[k].t);
        } else {
            apply_diff_target(p, h[i].t, w[k].t);
        }
        i += d <= 0;
        k += d >= 0;
    }
    split_shared(p, want);
    free(h);
    free(w);
}
