/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The difference of one target's settings and logical units, see apply_diff.c.  Any thread.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "target/apply.h"
#include "target/redirect.h"

/* One target, and whether something of it but its LUNs changes. */
struct one {
    struct apply_plan *p;
    const struct conf_target *have, *want;
    bool any;
};

static void say(struct one *o, enum apply_how how, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void
say(struct one *o, enum apply_how how, const char *fmt, ...)
{
    char text[1500];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    apply_plan_add(
        o->p, (struct apply_change){.op = OP_NOTE, .how = how, .target = (char *)o->want->name},
        "%s", text);
    o->any = true;
}

/* --- lists of texts -------------------------------------------------------------------------- */

static int
by_value(const void *a, const void *b)
{
    const struct conf_kv *const *x = a, *const *y = b;
    int d = strcasecmp((*x)->name, (*y)->name);
    return d ? d : strcmp((*x)->value, (*y)->value);
}

static const struct conf_kv **
sorted(const struct conf_kv *v, unsigned n)
{
    const struct conf_kv **s = xcalloc(n + 1, sizeof *s);
    for (unsigned i = 0; i < n; i++)
        s[i] = &v[i];
    if (n)
        qsort(s, n, sizeof *s, by_value);
    return s;
}

/* What is in one list and not in the other; order is of no account. */
static void
diff_set(struct one *o, const struct conf_kv *hv, unsigned hn, const struct conf_kv *wv,
         unsigned wn)
{
    const struct conf_kv **h = sorted(hv, hn), **w = sorted(wv, wn);
    unsigned i = 0, k = 0;

    while (i < hn || k < wn) {
        int d = i == hn ? 1 : k == wn ? -1 : by_value(&h[i], &w[k]);
        if (d < 0)
            say(o, HOW_LIVE, "%s %s deleted", h[i]->name, h[i]->value);
        else if (d > 0)
            say(o, HOW_LIVE, "%s %s added", w[k]->name, w[k]->value);
        i += d <= 0;
        k += d >= 0;
    }
    free(h);
    free(w);
}

/* --- redirection: an address may hold the port, so what is made of it is compared ------------ */

struct redirect *
apply_redirect(const struct conf_target *t)
{
    struct redirect *r = NULL;
    char err[512];
    int rc;

    for (unsigned i = 0; i < t->nredirects; i++) {
        const struct conf_kv *kv = &t->redirects[i];
        struct redirect *next = redirect_with(r, kv->name, kv->value, &rc, err, sizeof err);
        if (!next)
            log_abort("checked configuration does not hold: %s", err);
        redirect_put(r);
        r = next;
    }
    return r;
}

/* One that was said and leads nowhere is the same as none. */
static struct redirect *
redirect_or_nowhere(const struct conf_target *t)
{
    struct redirect *r = apply_redirect(t);
    int rc;

    return r ? r : redirect_with(NULL, "RedirectAddress", "none", &rc, NULL, 0);
}

static bool
same_redirect(const struct conf_target *a, const struct conf_target *b)
{
    struct redirect *ra = redirect_or_nowhere(a), *rb = redirect_or_nowhere(b);
    const char *na, *nb;
    char va[1400], vb[1400];
    bool same = true, more = true;

    for (unsigned i = 0; same && more; i++) {
        more = redirect_show(ra, i, &na, va, sizeof va);
        same = more == redirect_show(rb, i, &nb, vb, sizeof vb) &&
               (!more || (strcmp(na, nb) == 0 && strcmp(va, vb) == 0));
    }
    redirect_put(ra);
    redirect_put(rb);
    return same;
}

/* --- accounts -------------------------------------------------------------------------------- */

static bool
same_account(const struct conf_account *a, const struct conf_account *b)
{
    if (a->outgoing != b->outgoing || a->nnames != b->nnames || strcmp(a->user, b->user) != 0 ||
        !secret_same(a->secret, b->secret))
        return false;
    for (unsigned i = 0; i < a->nnames; i++) {
        if (strcmp(a->names[i], b->names[i]) != 0)
            return false;
    }
    return true;
}

static const struct conf_account *
find_account(const struct conf_accounts *list, const struct conf_account *a, bool exactly)
{
    for (unsigned i = 0; i < list->n; i++) {
        const struct conf_account *b = &list->v[i];
        if (exactly ? same_account(a, b)
                    : a->outgoing == b->outgoing && strcmp(a->user, b->user) == 0)
            return b;
    }
    return NULL;
}

/* The next one that way, from *i on; NULL: none. */
static const struct conf_account *
next_account(const struct conf_accounts *list, bool outgoing, unsigned *i)
{
    while (*i < list->n) {
        const struct conf_account *a = &list->v[(*i)++];
        if (a->outgoing == outgoing)
            return a;
    }
    return NULL;
}

/* The order counts among those of one way only. */
bool
apply_same_accounts(const struct conf_accounts *a, const struct conf_accounts *b)
{
    bool same = true;

    for (unsigned way = 0; way < 2; way++) {
        const struct conf_account *x = NULL, *y = NULL;
        unsigned i = 0, k = 0;
        do {
            x = next_account(a, way, &i);
            y = next_account(b, way, &k);
            same = same && (x && y ? same_account(x, y) : x == y);
        } while (same && x);
    }
    return same;
}

/* What stands before "user" in the name of the directive. */
static const char *
way(const struct conf_account *a, const char *what)
{
    if (strcmp(what, "account") == 0)
        return "";
    return a->outgoing ? "outgoing" : "incoming";
}

bool
apply_diff_accounts(struct apply_plan *p, const char *target, const char *what,
                    const struct conf_accounts *have, const struct conf_accounts *want)
{
    const struct apply_change note = {.op = OP_NOTE, .target = (char *)target};
    unsigned before = p->n;

    for (unsigned i = 0; i < want->n; i++) {
        const struct conf_account *a = &want->v[i];
        if (find_account(have, a, true))
            continue;
        apply_plan_add(p, note, "%s%s %s %s", way(a, what), what, a->user,
                       find_account(have, a, false) ? "changed" : "added");
    }
    for (unsigned i = 0; i < have->n; i++) {
        const struct conf_account *a = &have->v[i];
        if (!find_account(want, a, false))
            apply_plan_add(p, note, "%s%s %s deleted", way(a, what), what, a->user);
    }
    bool same = apply_same_accounts(have, want);
    if (!same && p->n == before)
        apply_plan_add(p, note, "%s accounts in another order", what);
    return !same;
}

/* --- settings -------------------------------------------------------------------------------- */

/* Every key as it will be: defaults, then what is said. */
static void
make_keys(struct key_values *kv, const struct conf_target *t)
{
    char err[512];
    keys_defaults(kv);
    for (unsigned i = 0; i < t->nkeys; i++)
        (void)keys_set(kv, t->keys[i].name, t->keys[i].value, err, sizeof err);
}

static void
diff_keys(struct one *o)
{
    struct key_values h, w;
    const char *name;
    char a[256], b[256];

    make_keys(&h, o->have);
    make_keys(&w, o->want);
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (keys_show(&h, i, &name, a, sizeof a) && keys_show(&w, i, &name, b, sizeof b) &&
            strcmp(a, b) != 0)
            say(o, HOW_LIVE, "%s %s", name, b);
    }
}

static bool
has_bind(const struct conf_target *t, const struct conf_bind *b)
{
    for (unsigned i = 0; i < t->nbinds; i++) {
        const struct conf_bind *k = &t->binds[i];
        if (strcmp(k->name, b->name) == 0 && (*b->name || k->group == b->group))
            return true;
    }
    return false;
}

static void
say_bind(struct one *o, const struct conf_bind *b, const char *what)
{
    if (*b->name)
        say(o, HOW_LIVE, "portal %s %s", b->name, what);
    else
        say(o, HOW_LIVE, "portal-group %u %s", b->group, what);
}

static void
diff_binds(struct one *o)
{
    for (unsigned i = 0; i < o->want->nbinds; i++) {
        if (!has_bind(o->have, &o->want->binds[i]))
            say_bind(o, &o->want->binds[i], "added");
    }
    for (unsigned i = 0; i < o->have->nbinds; i++) {
        if (!has_bind(o->want, &o->have->binds[i]))
            say_bind(o, &o->have->binds[i], "deleted");
    }
}

static unsigned
or_usual(unsigned v, unsigned usual)
{
    return v != CONF_UNSET ? v : usual;
}

static void
diff_numbers(struct one *o)
{
    const struct conf_target *h = o->have, *w = o->want;

    if (h->tid != w->tid)
        say(o, HOW_LIVE, "controller_tid %u", w->tid);
    if (h->hidden != w->hidden)
        say(o, HOW_LIVE, "discoverable %s", w->hidden ? "no" : "yes");
    if (h->nop_interval_s != w->nop_interval_s)
        say(o, HOW_LIVE, "nop_interval");
    if (h->nop_count != w->nop_count)
        say(o, HOW_LIVE, "nop_count");
    if (or_usual(h->max_cmds, MODEL_MAX_CMDS) != or_usual(w->max_cmds, MODEL_MAX_CMDS))
        say(o, HOW_LIVE, "MaxQueueCmd %u", or_usual(w->max_cmds, MODEL_MAX_CMDS));
    if (h->chap_algs != w->chap_algs)
        say(o, HOW_LIVE, "chap-algorithms");
    if (h->ids != w->ids) /* of disks that come; those that are there are compared by themselves */
        say(o, HOW_LIVE, "ids");
    if (h->chap_sha1_7 != w->chap_sha1_7)
        say(o, HOW_LIVE, "chap-legacy-sha1-7");
    if (h->offline != w->offline)
        say(o, w->offline ? HOW_SESSIONS : HOW_LIVE, "state %s", w->offline ? "offline" : "ready");
}

void
apply_diff_target(struct apply_plan *p, const struct conf_target *have,
                  const struct conf_target *want)
{
    struct one o = {p, have, want, false};
    const char *a = have->alias ? have->alias : "", *b = want->alias ? want->alias : "";

    diff_numbers(&o);
    if (strcmp(a, b) != 0)
        say(&o, HOW_LIVE, "alias \"%s\"", b);
    diff_keys(&o);
    diff_set(&o, have->addrs, have->naddrs, want->addrs, want->naddrs);
    diff_set(&o, have->names, have->nnames, want->names, want->nnames);
    diff_set(&o, have->locals, have->nlocals, want->locals, want->nlocals);
    diff_binds(&o);
    if (!same_redirect(have, want))
        say(&o, HOW_LIVE, "redirection");
    o.any |= apply_diff_accounts(p, want->name, "user", &have->accounts, &want->accounts);
    if (o.any)
        apply_plan_add(
            p,
            (struct apply_change){
                .op = OP_TARGET_SET, .have = have, .want = want, .target = (char *)want->name},
            "%s", "");
    apply_diff_luns(p, have, want);
}

/* --- logical units --------------------------------------------------------------------------- */

/* What cannot change while a backing store is open; bs-type auto is what was found. */
static bool
same_store(const struct conf_lun *a, const struct conf_lun *b)
{
    return strcmp(a->path, b->path) == 0 && strcmp(a->bsopts, b->bsopts) == 0 &&
           strcmp(a->layers, b->layers) == 0 &&
           (a->size == b->size || (b->bs == CONF_BS_ZRAM && b->size > a->size)) &&
           a->chunk_size == b->chunk_size && a->direct == b->direct &&
           (b->bs == CONF_BS_ZRAM || (a->sync == b->sync && a->write_cache == b->write_cache)) &&
           a->block_size == b->block_size &&
           (a->bs == b->bs || a->bs == CONF_BS_AUTO || b->bs == CONF_BS_AUTO) &&
           conf_bs_made(a->bs) == conf_bs_made(b->bs) &&
           !(a->read_only && !b->read_only); /* it was opened so */
}

static void
diff_lun(struct apply_plan *p, struct apply_change ch)
{
    const struct conf_lun *h = ch.lun_have, *w = ch.lun_want;
    const char *path = w->path[0] ? w->path : "null";

    if (conf_lun_same(h, w))
        return;
    if (same_store(h, w)) {
        ch.op = OP_LUN_SET;
        apply_plan_add(p, ch, "lun %d changed", w->number);
        return;
    }
    ch.op = OP_LUN_REPLACE;
    ch.how = HOW_LUN;
    if (strcmp(h->path, w->path) != 0)
        apply_plan_add(p, ch, "lun %d replaced: %s, not %s", w->number, path, h->path);
    else
        apply_plan_add(p, ch, "lun %d replaced: %s with other settings", w->number, path);
}

void
apply_diff_luns(struct apply_plan *p, const struct conf_target *have,
                const struct conf_target *want)
{
    unsigned i = 0, k = 0;

    while (i < have->nluns || k < want->nluns) { /* both are sorted */
        const struct conf_lun *h = i < have->nluns ? &have->luns[i] : NULL;
        const struct conf_lun *w = k < want->nluns ? &want->luns[k] : NULL;
        int d = !h ? 1 : !w ? -1 : h->number - w->number;
        struct apply_change ch = {.have = have,
                                  .want = want,
                                  .lun_have = d <= 0 ? h : NULL,
                                  .lun_want = d >= 0 ? w : NULL,
                                  .target = (char *)want->name};
        if (d < 0) {
            ch.op = OP_LUN_DEL;
            ch.how = HOW_LUN;
            apply_plan_add(p, ch, "lun %d deleted", h->number);
        } else if (d > 0) {
            ch.op = OP_LUN_ADD;
            apply_plan_add(p, ch, "lun %d added: %s", w->number, w->path[0] ? w->path : "null");
        } else {
            diff_lun(p, ch);
        }
        i += d <= 0;
        k += d >= 0;
    }
}
