/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for compressed objects: slabs of 256 KiB, each of slots of one size (16 bytes apart up
 * to 4 KiB, 1/128 apart beyond), in one reserved range of addresses.  A slab keeps its bitmap and
 * the owners of its slots at its own start (where slots are large, beside all slabs: a page would
 * be lost else), and only the pages up to its highest slot have memory.  An object is addressed by
 * a handle and has an owner (a chunk), by which compaction finds who must be told when it moves.
 *
 * Threads: any, but open and close.  A lock a class, held for some bit operations; what has to
 * ask the kernel happens outside.
 */
#ifndef BACKENDS_ZRAM_ALLOC_H
#define BACKENDS_ZRAM_ALLOC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/zram_mem.h"

#define ZRAM_UNIT        16u /* bytes a handle counts in; slots are multiples of it */
#define ZRAM_HANDLE_BITS 37  /* 2 TiB of objects a store */
#define ZRAM_SLAB        (256u * 1024u)
#define ZRAM_CLASSES     768u
#define ZRAM_HOLEY       4u                /* lists of slabs with holes, by fullness */
#define ZRAM_LISTS       (ZRAM_HOLEY + 1u) /* the last: slabs that are filled at their end */

struct zram_slab;
struct zram_side;

struct zram_class {
    pthread_mutex_t lock;
    uint32_t heads[ZRAM_LISTS];
    uint32_t slot;  /* bytes */
    uint32_t cap;   /* slots a slab */
    uint32_t first; /* where slots begin in a slab; 0: it is described by zram_alloc.side */
    uint64_t holes; /* slots below the ends of slabs that are free */
} __attribute__((aligned(64)));

struct zram_alloc {
    uint8_t *base;
    struct zram_slab *slabs; /* one for each 256 KiB of the range, mapped lazily */
    struct zram_side *side;  /* likewise: bitmaps and owners of slabs with large slots */
    uint32_t nslabs;
    struct zram_mem *mem;
    pthread_mutex_t lock; /* the four below */
    uint32_t fresh;       /* slabs from here on have never been used */
    uint32_t open;        /* and from here on are not accessible yet */
    uint32_t free_head;
    uint32_t next_class;         /* where compaction goes on; its caller's */
    atomic_uint_fast64_t taken;  /* bytes of pages that slabs hold */
    atomic_uint_fast64_t filled; /* bytes of slots in use */
    struct zram_class classes[ZRAM_CLASSES];
};

/* Room for objects of about max_bytes together. 0 or -ENOMEM; a is zeroed by the caller. */
int zram_alloc_open(struct zram_alloc *a, struct zram_mem *mem, uint64_t max_bytes);
void zram_alloc_close(struct zram_alloc *a);

/* A slot for size bytes (1 to 64 KiB), with what is in it undefined. 0, or -ENOSPC: the limit of
 * memory is reached and there is no slot free that would do. */
int zram_alloc_get(struct zram_alloc *a, uint32_t size, uint32_t owner, uint64_t *handle);
void zram_alloc_put(struct zram_alloc *a, uint64_t handle);

/* Is the object's slot the one that size would get? Its holder may then fill it anew. */
bool zram_alloc_suits(const struct zram_alloc *a, uint64_t handle, uint32_t size);
/* Bytes of the object's slot. */
uint32_t zram_alloc_room(const struct zram_alloc *a, uint64_t handle);

static inline uint8_t *
zram_alloc_ptr(const struct zram_alloc *a, uint64_t handle)
{
    return a->base + handle * ZRAM_UNIT;
}

struct zram_compact {
    /* Moves the owner's object, slot bytes at `from`, to `to`, if it is still there and nobody
     * uses it just now; false: it was not moved. No lock is held. */
    bool (*move)(void *arg, uint32_t owner, uint64_t from, uint64_t to, uint32_t slot);
    void *arg;
    uint64_t until_us; /* by clock_us(); 0: to the end */
    /* out, added to */
    uint64_t seen, moved, gained; /* objects, objects, bytes */
};

/* Goes through the classes from where it ended last, fills holes with objects from the emptiest
 * slabs and gives pages back. True: time was over before the end. One thread at a time. */
bool zram_alloc_compact(struct zram_alloc *a, struct zram_compact *c);
/* Bytes that holes cost, about. */
uint64_t zram_alloc_waste(const struct zram_alloc *a);

#endif
