/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compaction of zram_alloc.h's segments.  The holes of the segment that has most leave the lists,
 * so that nothing new comes in; its objects go to holes of the others or to the end; then the
 * whole of it goes back to the system.  The data path waits for nothing of this but one class's
 * lock for some instructions, and for one object while it is copied.
 */
#include "config.h"

#include "backends/zram_alloc_priv.h"
#include "base/clock.h"

/* Segments with fewer holes are left alone: moving 63 bytes for each that is gained. */
#define HOLES_MIN 64u

enum result { DONE, GONE, NO_TIME, NO_MEMORY };

static bool
time_over(const struct zram_compact *job)
{
    return job->until_us != 0 && clock_us() >= job->until_us;
}

static bool
has_holes(const struct zram_segment *s, uint32_t bytes)
{
    uint32_t live = atomic_load(&s->live);
    return bytes > live && bytes - live >= bytes / HOLES_MIN + ZRAM_PAGE;
}

/* The one with most holes; SEGMENT_NONE: none has enough. One that could not be emptied because
 * its objects were in use is not looked at again in this round. */
static uint32_t
choose(struct zram_alloc *a, uint32_t not_this)
{
    uint32_t best = SEGMENT_NONE, most = 0;
    uint32_t n = atomic_load(&a->fresh);
    for (uint32_t no = 0; no < n; no++) {
        struct zram_segment *s = &a->segments[no];
        unsigned state = atomic_load(&s->state);
        if (no == not_this || (state != SEG_FILLED && state != SEG_EMPTYING))
            continue;
        uint32_t taken = s->taken;
        if (has_holes(s, taken) && taken - atomic_load(&s->live) > most) {
            most = taken - atomic_load(&s->live);
            best = no;
        }
    }
    return best;
}

static enum result
move_slot(struct zram_alloc *a, uint64_t from, struct zram_compact *job)
{
    struct slot *slot = slot_of(a, from);
    uint32_t cls = slot->cls;
    struct zram_class *c = &a->classes[cls];
    pthread_mutex_lock(&c->lock);
    bool used = slot->state == SLOT_USED;
    uint32_t owner = slot->owner;
    pthread_mutex_unlock(&c->lock);
    if (!used)
        return DONE;
    uint64_t to, taken = 0;
    if (zram_alloc_get_counted(a, zram_class_room(cls), owner, &to, &taken) != 0)
        return NO_MEMORY;
    bool moved = job->move(job->arg, owner, from, to, zram_class_room(cls));
    job->gained += (int64_t)zram_alloc_put_counted(a, moved ? from : to) - (int64_t)taken;
    job->seen++;
    job->moved += moved;
    return DONE;
}

#define UNITS (ZRAM_SEGMENT / ZRAM_UNIT)

/* Where a walk through the segment, which is claimed, goes on, if it is the same as then. */
static uint32_t
resume_at(const struct zram_alloc *a, uint32_t no)
{
    if (a->resume == 0 || a->resume / UNITS != no || a->resume_use != a->segments[no].use)
        return 0;
    return (uint32_t)(a->resume % UNITS) * ZRAM_UNIT - SLOT_HEAD;
}

static enum result
evacuate(struct zram_alloc *a, uint32_t no, struct zram_compact *job)
{
    const struct zram_segment *s = &a->segments[no];
    uint32_t at = resume_at(a, no);
    a->resume = 0;
    while (at < s->end) {
        uint64_t from = slot_handle(no, at);
        if (time_over(job)) {
            a->resume = from;
            a->resume_use = s->use;
            return NO_TIME;
        }
        at += slot_bytes(slot_of(a, from)->cls);
        enum result r = move_slot(a, from, job);
        if (r != DONE)
            return r;
    }
    return DONE;
}

static enum result
empty(struct zram_alloc *a, uint32_t no, struct zram_compact *job)
{
    if (!zram_segment_claim(a, no)) {
        a->resume = 0;
        return GONE; /* or it is about to go */
    }
    enum result r = evacuate(a, no, job);
    if (r == NO_MEMORY)
        zram_segment_restore(a, no);
    else
        job->gained += (int64_t)zram_segment_let_go(a, no);
    return r;
}

/* Segments that are still filled take part, too. */
static void
detach_ends(struct zram_alloc *a)
{
    for (uint32_t i = 0; i < ZRAM_ENDS; i++) {
        struct zram_end *e = &a->ends[i];
        pthread_mutex_lock(&e->lock);
        if (e->no != SEGMENT_NONE && has_holes(&a->segments[e->no], a->segments[e->no].end))
            zram_end_detach(a, e);
        pthread_mutex_unlock(&e->lock);
    }
}

bool
zram_alloc_compact(struct zram_alloc *a, struct zram_compact *job)
{
    uint32_t last = SEGMENT_NONE;
    detach_ends(a);
    for (;;) {
        uint32_t no = a->resume != 0 ? (uint32_t)(a->resume / UNITS) : choose(a, last);
        if (no == SEGMENT_NONE)
            return false;
        uint64_t moved = job->moved;
        int64_t gained = job->gained;
        enum result r = empty(a, no, job);
        if (r == NO_TIME)
            return true;
        if (r == NO_MEMORY || (r == DONE && job->moved == moved && job->gained == gained))
            return false; /* no place to move to, or all in use just now */
        last = no;
    }
}
