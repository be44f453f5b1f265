/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte budgets.  An owned level is touched by its worker only; the shared one (the daemon's) by
 * compare-and-swap.  A budget whose first waiter lacks bytes is linked to the level that lacks
 * them: to `blocked` of an owned level, which serves it when bytes come back, or to the worker's
 * retry list when the level is shared and bytes may come back on another thread.
 */
#include "config.h"

#include "base/budget.h"

#include <assert.h>

#include "base/log.h"
#include "base/worker_priv.h"

#define RETRY_MS 10

void
budget_init(struct budget *b, struct budget *parent, struct worker *w, uint64_t limit)
{
    b->parent = parent;
    b->w = w;
    b->limit = limit;
    b->reserve = 0;
    atomic_init(&b->used, 0);
    list_init(&b->waiters);
    list_init(&b->blocked);
    list_init(&b->link);
    b->blocked_on = NULL;
}

void
budget_fini(struct budget *b)
{
    if (!list_is_empty(&b->waiters) || !list_is_empty(&b->blocked))
        log_abort("budget ended with waiters");
    list_del(&b->link);
    b->blocked_on = NULL;
}

static bool
level_fits(uint64_t limit, uint64_t used, uint64_t bytes)
{
    return used == 0 || (used <= limit && bytes <= limit - used);
}

static bool
level_take(struct budget *l, uint64_t bytes, uint64_t limit)
{
    uint_fast64_t used = atomic_load_explicit(&l->used, memory_order_relaxed);
    if (l->w) {
        if (!level_fits(limit, used, bytes))
            return false;
        atomic_store_explicit(&l->used, used + bytes, memory_order_relaxed);
        return true;
    }
    do {
        if (!level_fits(limit, used, bytes))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&l->used, &used, used + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void
level_give(struct budget *l, uint64_t bytes)
{
    uint64_t used;
    if (l->w) {
        used = atomic_load_explicit(&l->used, memory_order_relaxed);
        atomic_store_explicit(&l->used, used - bytes, memory_order_relaxed);
    } else {
        used = atomic_fetch_sub_explicit(&l->used, bytes, memory_order_relaxed);
    }
    if (used < bytes)
        log_abort("budget given more than was taken");
}

static bool
holds_nothing(const struct budget *b)
{
    return atomic_load_explicit(&b->used, memory_order_relaxed) == 0;
}

/* Bytes of b and every level above, or nothing and the level that lacks them. */
static struct budget *
chain_take(struct budget *b, uint64_t bytes)
{
    bool first = holds_nothing(b);
    for (struct budget *l = b; l; l = l->parent) {
        if (level_take(l, bytes, first && l != b ? l->limit + l->reserve : l->limit))
            continue;
        for (struct budget *k = b; k != l; k = k->parent)
            level_give(k, bytes);
        return l;
    }
    return NULL;
}

static void
grant(struct worker *w, struct budget_wait *bw)
{
    list_del(&bw->link);
    bw->granted = true;
    list_add_tail(&w->budget_granted, &bw->link);
    worker_defer(w, &w->budget_deferred);
}

static void
block_on(struct budget *b, struct budget *lvl)
{
    if (lvl == b)
        return; /* served when b itself is given bytes */
    b->blocked_on = lvl;
    if (lvl->w) {
        list_add_tail(&lvl->blocked, &b->link);
        return;
    }
    list_add_tail(&b->w->budget_retry, &b->link);
    if (!worker_timer_is_active(&b->w->budget_timer))
        worker_timer_start_ms(&b->w->budget_timer, RETRY_MS);
}

static void
unblock(struct budget *b)
{
    list_del(&b->link);
    b->blocked_on = NULL;
}

static struct budget_wait *
first_waiter(struct budget *b)
{
    return list_first(&b->waiters, struct budget_wait, link);
}

/* b's waiters as far as the bytes go. b is not blocked on a level above. */
static void
serve(struct budget *b)
{
    while (!list_is_empty(&b->waiters)) {
        struct budget_wait *bw = first_waiter(b);
        struct budget *lvl = chain_take(b, bw->bytes);
        if (lvl) {
            block_on(b, lvl);
            return;
        }
        grant(b->w, bw);
    }
}

/* Budgets blocked on one level take turns, one waiter each. */
static void
serve_blocked(struct list *blocked)
{
    while (!list_is_empty(blocked)) {
        struct budget *b = list_first(blocked, struct budget, link);
        struct budget_wait *bw = first_waiter(b);
        struct budget *lvl = chain_take(b, bw->bytes);
        if (lvl && lvl == b->blocked_on)
            return;
        if (lvl) {
            unblock(b);
            block_on(b, lvl);
            continue;
        }
        grant(b->w, bw);
        list_del(&b->link);
        if (list_is_empty(&b->waiters))
            b->blocked_on = NULL;
        else
            list_add_tail(blocked, &b->link); /* still blocked_on the same, until found otherwise */
    }
}

/* Bytes of an owned level came back: its own waiters, then those of its children. */
static void
kick(struct budget *l)
{
    if (!list_is_empty(&l->waiters) && !l->blocked_on)
        serve(l);
    serve_blocked(&l->blocked);
}

/* Somebody is before a newcomer at b or a level above it. */
static bool
must_queue(const struct budget *b)
{
    if (!list_is_empty(&b->waiters))
        return true;
    for (const struct budget *l = b; l; l = l->parent)
        if (l->w ? !list_is_empty(&l->blocked) : b->w && !list_is_empty(&b->w->budget_retry))
            return true;
    return false;
}

/* May b overtake those who wait at the levels above? */
static bool
is_owed_first(const struct budget *b)
{
    return b->parent && b->parent->reserve > 0 && holds_nothing(b) && list_is_empty(&b->waiters);
}

bool
budget_take(struct budget *b, uint64_t bytes)
{
    if (b->w)
        worker_assert_owner(b->w);
    bool in_turn = !must_queue(b) || is_owed_first(b);
    return in_turn && !chain_take(b, bytes);
}

/* All that b held has come back while its waiters stand behind others at a full level above. */
static void
serve_first(struct budget *b)
{
    if (!holds_nothing(b) || list_is_empty(&b->waiters) || !b->blocked_on)
        return;
    struct budget_wait *bw = first_waiter(b);
    if (chain_take(b, bw->bytes))
        return;
    grant(b->w, bw);
    if (list_is_empty(&b->waiters))
        unblock(b); /* else still blocked on the same, until found otherwise */
}

void
budget_give(struct budget *b, uint64_t bytes)
{
    if (b->w)
        worker_assert_owner(b->w);
    for (struct budget *l = b; l; l = l->parent)
        level_give(l, bytes);
    if (!b->w)
        return;
    for (struct budget *l = b; l && l->w; l = l->parent)
        kick(l);
    serve_blocked(&b->w->budget_retry);
    if (b->parent && b->parent->reserve > 0)
        serve_first(b);
}

void
budget_wait(struct budget *b, struct budget_wait *bw, uint64_t bytes,
            void (*fn)(struct budget_wait *bw))
{
    assert(b->w);
    worker_assert_owner(b->w);
    list_init(&bw->link);
    bw->bytes = bytes;
    bw->fn = fn;
    bw->granted = false;

    bool first = list_is_empty(&b->waiters);
    list_add_tail(&b->waiters, &bw->link);
    if (!first)
        return; /* b's state says already what the first one waits for */
    for (struct budget *l = b; l; l = l->parent) {
        if (l->w ? !list_is_empty(&l->blocked) : !list_is_empty(&b->w->budget_retry)) {
            block_on(b, l); /* where l is b: its lack ends with a give, which comes here */
            return;
        }
    }
    serve(b);
}

void
budget_wait_cancel(struct budget *b, struct budget_wait *bw)
{
    if (!bw->link.next || !list_is_linked(&bw->link))
        return;
    worker_assert_owner(b->w);
    list_del(&bw->link);
    if (bw->granted) {
        bw->granted = false;
        budget_give(b, bw->bytes);
        return;
    }
    /* it may have been what held up those behind it */
    struct budget *was = b->blocked_on;
    if (list_is_empty(&b->waiters)) {
        unblock(b);
    } else if (!was) {
        serve(b);
    }
    if (was && was->w)
        kick(was);
    else if (was)
        serve_blocked(&b->w->budget_retry);
}

static void
on_granted(struct deferred *d)
{
    struct worker *w = container_of(d, struct worker, budget_deferred);
    struct list *n;
    while ((n = list_pop(&w->budget_granted)) != NULL) {
        struct budget_wait *bw = container_of(n, struct budget_wait, link);
        bw->granted = false;
        bw->fn(bw);
    }
}

static void
on_retry(struct worker_timer *t)
{
    struct worker *w = t->w;
    serve_blocked(&w->budget_retry);
    if (!list_is_empty(&w->budget_retry))
        worker_timer_start_ms(t, RETRY_MS);
}

void
budget_worker_init(struct worker *w)
{
    list_init(&w->budget_retry);
    list_init(&w->budget_granted);
    deferred_init(&w->budget_deferred, on_granted);
    worker_timer_init(&w->budget_timer, w, on_retry);
    budget_init(&w->budget, w->opts.parent, w, w->opts.mem_bytes);
    w->budget.reserve = w->opts.mem_reserve;
}

void
budget_worker_fini(struct worker *w)
{
    worker_timer_stop(&w->budget_timer);
    deferred_cancel(&w->budget_deferred);
    /* what an orphan still holds is given back to the daemon's budget with the worker */
    uint64_t held = atomic_load_explicit(&w->budget.used, memory_order_relaxed);
    for (struct budget *l = w->budget.parent; l && held > 0; l = l->parent)
        level_give(l, held);
}
