/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments and slots as zram_alloc.c and zram_compact.c see them; see zram_alloc.h.
 *
 * A segment: free -> filling -> filled; then, when it is empty or compaction chose it, claimed (by
 * one thread, which takes its holes out of the lists) -> emptying (no hole is left in a list, slots
 * that become free stay dead) -> claimed again by whoever moves its objects or gives it back.
 * Locks in the order end, class; the allocator's own is the last.
 */
#ifndef BACKENDS_ZRAM_ALLOC_PRIV_H
#define BACKENDS_ZRAM_ALLOC_PRIV_H

#include "backends/zram_alloc.h"

#define SEGMENT_NONE UINT32_MAX
/* Below this one segments take memory by the page: what one may waste is little of 128 MiB. */
#define SEGMENT_HUGE 64u

enum segment_state { SEG_FREE, SEG_FILLING, SEG_FILLED, SEG_CLAIMED, SEG_EMPTYING };

struct zram_segment {
    atomic_uint state; /* enum segment_state */
    atomic_uint live;  /* bytes of slots in use, and of those about to be free */
    atomic_uint end;   /* bytes; changes under the lock of the zram_end until it is filled */
    atomic_uint taken; /* bytes that have memory; likewise */
    uint32_t next;     /* while free; under a->lock */
    uint32_t use;      /* how often it was taken; fixed while it is not free */
};

enum slot_state {
    SLOT_USED,
    SLOT_HOLE, /* in the list of its class */
    SLOT_DEAD, /* free, of a segment that is emptied */
};

/* Before each object. cls never changes; the rest under the class's lock. */
struct slot {
    uint32_t owner;
    uint16_t cls;
    uint16_t state; /* enum slot_state */
    /* Of a hole, where an object would be: handles. */
    uint64_t prev, next;
};

#define SLOT_HEAD 8u

static inline struct slot *
slot_of(const struct zram_alloc *a, uint64_t handle)
{
    return (struct slot *)(void *)(zram_alloc_ptr(a, handle) - SLOT_HEAD);
}

static inline struct zram_segment *
segment_of(const struct zram_alloc *a, uint64_t handle)
{
    return &a->segments[handle / (ZRAM_SEGMENT / ZRAM_UNIT)];
}

/* The handle of the slot that begins so far into a segment. */
static inline uint64_t
slot_handle(uint32_t no, uint32_t offset)
{
    return ((uint64_t)no * ZRAM_SEGMENT + offset + SLOT_HEAD) / ZRAM_UNIT;
}

uint32_t zram_class_room(uint32_t cls); /* bytes of an object at most */

static inline uint32_t
slot_bytes(uint32_t cls)
{
    return SLOT_HEAD + zram_class_room(cls);
}

/* As zram_alloc_get; adds to *taken what memory it took. */
int zram_alloc_get_counted(struct zram_alloc *a, uint32_t size, uint32_t owner, uint64_t *handle,
                           uint64_t *taken);
/* As zram_alloc_put; the bytes that went back. */
uint64_t zram_alloc_put_counted(struct zram_alloc *a, uint64_t handle);

/* Nothing new comes into the segment from now on, and it stays until the caller, who has claimed
 * it, lets it go or restores it. False: it is not filled, or claimed. */
bool zram_segment_claim(struct zram_alloc *a, uint32_t no);
/* If nothing is left in it its memory goes back; the bytes. */
uint64_t zram_segment_let_go(struct zram_alloc *a, uint32_t no);
/* Its free slots are holes again. */
void zram_segment_restore(struct zram_alloc *a, uint32_t no);
/* The segment that this end fills is no longer filled. Under the end's lock. */
void zram_end_detach(struct zram_alloc *a, struct zram_end *e);
/* Of a filled segment without objects, or one that is being filled: its memory goes back. */
uint64_t zram_segment_empty(struct zram_alloc *a, uint32_t no);

#endif
