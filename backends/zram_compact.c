/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compaction of zram_alloc.h's slabs.  The emptiest slab of a class is isolated: nothing new
 * comes in.  Its objects, from the last on, go to holes of the other slabs, and when there are
 * no more, to its own first ones; then its end goes back to the system, or all of it.  The data
 * path waits for nothing of this but one class's lock for some bit operations, and for one object
 * while it is copied.
 */
#include "config.h"

#include "backends/zram_alloc_priv.h"
#include "base/clock.h"
#include "base/poison.h"

/* One slab that is being emptied. */
struct source {
    struct zram_alloc *a;
    struct zram_class *c;
    uint32_t no;
    uint32_t below; /* slots from here on have been looked at */
    uint64_t moved;
    bool gave; /* pages */
};

static bool
time_over(const struct zram_compact *job)
{
    return job->until_us != 0 && clock_us() >= job->until_us;
}

/* The emptiest slab with holes, isolated. Holes of less than a page are left alone. */
static bool
isolate(struct source *src)
{
    struct zram_class *c = src->c;
    bool found = false;
    pthread_mutex_lock(&c->lock);
    for (unsigned i = 0; i < ZRAM_HOLEY && !found && c->holes * c->slot >= ZRAM_PAGE; i++) {
        if (c->heads[i] == SLAB_NONE)
            continue;
        found = true;
        src->no = c->heads[i];
        struct zram_slab *s = &src->a->slabs[src->no];
        s->isolated = true;
        src->below = s->end;
        zram_slab_relist(src->a, c, src->no);
    }
    for (uint32_t no = c->heads[LIST_END]; no != SLAB_NONE && !found; no = src->a->slabs[no].next) {
        struct zram_slab *s = &src->a->slabs[no];
        if (zram_page_up(c->first + s->end * c->slot) >= s->taken)
            continue;
        found = true; /* dense, but what lay behind its end has not gone back */
        src->no = no;
        s->isolated = true;
        zram_slab_relist(src->a, c, no);
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

/* The last object not yet looked at and a better place for it, which is taken. */
static bool
next_move(struct source *src, uint32_t *owner, uint64_t *from, uint64_t *to)
{
    struct zram_alloc *a = src->a;
    struct zram_class *c = src->c;
    const struct zram_slab *s = &a->slabs[src->no];
    const uint64_t *bits = slab_bits(a, src->no, c);
    if (src->below > s->end)
        src->below = s->end;
    while (src->below > 0 && (bits[(src->below - 1) / 64] >> (src->below - 1) % 64 & 1) == 0)
        src->below--;
    if (src->below == 0)
        return false;
    uint32_t slot = --src->below;
    *owner = slab_owners(a, src->no, c)[slot];
    *from = slot_handle(c, src->no, slot);
    uint32_t there = zram_class_fullest(c);
    if (there != SLAB_NONE) {
        *to = slot_handle(c, there, zram_slab_fill(a, c, there, *owner));
        zram_slab_relist(a, c, there);
        return true;
    }
    /* Its own first hole, if that is before the object. */
    uint32_t word = s->hint;
    while (word <= slot / 64 && bits[word] == UINT64_MAX)
        word++;
    if (word > slot / 64 || word * 64 + (uint32_t)__builtin_ctzll(~bits[word]) >= slot)
        return false;
    *to = slot_handle(c, src->no, zram_slab_fill(a, c, src->no, *owner));
    return true;
}

static void
evacuate(struct source *src, struct zram_compact *job)
{
    uint32_t owner;
    uint64_t from, to;
    while (!time_over(job)) {
        pthread_mutex_lock(&src->c->lock);
        bool more = next_move(src, &owner, &from, &to);
        pthread_mutex_unlock(&src->c->lock);
        if (!more)
            return;
        bool moved = job->move(job->arg, owner, from, to, src->c->slot);
        zram_alloc_put(src->a, moved ? from : to);
        job->seen++;
        job->moved += moved;
        src->moved += moved;
    }
}

/* What lies behind the last object goes back; then the slab takes part again. */
static void
finish(struct source *src, struct zram_compact *job)
{
    struct zram_alloc *a = src->a;
    struct zram_class *c = src->c;
    struct zram_slab *s = &a->slabs[src->no];
    pthread_mutex_lock(&c->lock);
    uint32_t keep = s->used == 0 ? 0 : (uint32_t)zram_page_up(c->first + s->end * c->slot);
    uint32_t drop = s->taken > keep && keep > 0 ? s->taken - keep : 0;
    pthread_mutex_unlock(&c->lock);
    src->gave = drop > 0;
    if (drop > 0) { /* nothing is put there while it is isolated */
        zram_mem_drop(slab_at(a, src->no) + keep, drop);
        job->gained += drop;
        atomic_fetch_sub_explicit(&a->taken, drop, memory_order_relaxed);
        zram_mem_give(a->mem, drop);
    }
    pthread_mutex_lock(&c->lock);
    s->taken -= drop;
    s->isolated = false;
    zram_slab_relist(a, c, src->no);
    bool empty = s->used == 0;
    pthread_mutex_unlock(&c->lock);
    if (empty)
        job->gained += zram_slab_release(a, src->no);
}

/* False: time was over. */
static bool
compact_class(struct zram_alloc *a, uint32_t i, struct zram_compact *job)
{
    for (;;) {
        struct source src = {.a = a, .c = &a->classes[i]};
        if (!isolate(&src))
            return true;
        evacuate(&src, job);
        finish(&src, job);
        if (time_over(job))
            return false;
        if (src.moved == 0 && !src.gave)
            return true; /* all in use just now */
    }
}

bool
zram_alloc_compact(struct zram_alloc *a, struct zram_compact *job)
{
    for (; a->next_class < ZRAM_CLASSES; a->next_class++)
        if (!compact_class(a, a->next_class, job))
            return true;
    a->next_class = 0;
    return false;
}
