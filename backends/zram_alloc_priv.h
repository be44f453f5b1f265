/* SPDX-License-Identifier: BSD-2-Clause */
/* Slabs as zram_alloc.c and zram_compact.c see them; see zram_alloc.h. */
#ifndef BACKENDS_ZRAM_ALLOC_PRIV_H
#define BACKENDS_ZRAM_ALLOC_PRIV_H

#include "backends/zram_alloc.h"

#define SLAB_NONE   UINT32_MAX
#define LIST_END    ZRAM_HOLEY /* filled at their end */
#define LIST_NO     255u       /* full, or isolated */
#define SLAB_HANDLE (ZRAM_SLAB / ZRAM_UNIT)

/* Under the lock of its class, but cls, which stands while it has an object. */
struct zram_slab {
    uint32_t prev, next;
    uint16_t cls;
    uint8_t list;
    bool isolated;  /* compaction empties it: nothing new comes in, and it stays when it is empty */
    uint16_t used;  /* slots */
    uint16_t end;   /* slots from here on are free; the one before is not */
    uint16_t hint;  /* no hole before this word of the bitmap */
    uint32_t taken; /* bytes from its start that have memory */
};

#define SIDE_SLOTS 64u

struct zram_side {
    uint64_t bits;
    uint32_t owners[SIDE_SLOTS];
};

static inline uint8_t *
slab_at(const struct zram_alloc *a, uint32_t no)
{
    return a->base + (size_t)no * ZRAM_SLAB;
}

/* Bit set: in use. */
static inline uint64_t *
slab_bits(const struct zram_alloc *a, uint32_t no, const struct zram_class *c)
{
    return c->first == 0 ? &a->side[no].bits : (uint64_t *)(void *)slab_at(a, no);
}

static inline uint32_t
bitmap_bytes(uint32_t cap)
{
    return (cap + 63) / 64 * 8;
}

static inline uint32_t *
slab_owners(const struct zram_alloc *a, uint32_t no, const struct zram_class *c)
{
    return c->first == 0 ? a->side[no].owners
                         : (uint32_t *)(void *)(slab_at(a, no) + bitmap_bytes(c->cap));
}

static inline uint64_t
slot_handle(const struct zram_class *c, uint32_t no, uint32_t slot)
{
    return (uint64_t)no * SLAB_HANDLE + (c->first + slot * c->slot) / ZRAM_UNIT;
}

static inline uint32_t
slot_no(const struct zram_class *c, uint64_t handle)
{
    return ((uint32_t)(handle % SLAB_HANDLE) * ZRAM_UNIT - c->first) / c->slot;
}

/* All under the class's lock. */
void zram_slab_relist(struct zram_alloc *a, struct zram_class *c, uint32_t no);
/* A hole in the slab, marked as used. It has one. */
uint32_t zram_slab_fill(struct zram_alloc *a, struct zram_class *c, uint32_t no, uint32_t owner);
/* The slot is free; the caller lists the slab anew or releases it. */
void zram_slab_clear(struct zram_alloc *a, struct zram_class *c, uint32_t no, uint32_t slot);
/* The fullest slab with holes; SLAB_NONE: there is none. */
uint32_t zram_class_fullest(const struct zram_class *c);

/* Without it: an empty slab, in no list, goes back to the system. The bytes that became free. */
uint64_t zram_slab_release(struct zram_alloc *a, uint32_t no);

#endif
