/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for compressed objects: segments of 2 MiB in one reserved range of addresses, filled
 * from their start with slots.  A slot is 8 bytes that tell its owner (a chunk) and its class
 * (of sizes: 16 bytes apart up to 4 KiB, 1/128 apart beyond), and room for an object; one that
 * became free waits in a list of its class for the next object of that class.  So objects lie
 * close together whatever their sizes are, in the order they came.  Compaction empties segments
 * with many holes; it tells the owners, which address objects by handles.
 *
 * The first segments take memory page by page; where a store has become large, each takes a huge
 * page: a fifth of the time the kernel needs for small ones, and the most that is wasted is one.
 *
 * Threads: any, but open and close.  A lock a class, held for some instructions; what has to ask
 * the kernel for more than a page happens outside.
 */
#ifndef BACKENDS_ZRAM_ALLOC_H
#define BACKENDS_ZRAM_ALLOC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/zram_mem.h"

#define ZRAM_UNIT        8u /* bytes a handle counts in */
#define ZRAM_HANDLE_BITS 37 /* 1 TiB of objects a store */
#define ZRAM_SEGMENT     (2u * 1024u * 1024u)
#define ZRAM_CLASSES     768u
#define ZRAM_ENDS        4u /* segments that are filled at the same time, by as many threads */

struct zram_segment;

struct zram_class {
    pthread_mutex_t lock;
    uint64_t holes; /* handle of the first; 0: none */
} __attribute__((aligned(64)));

/* A segment that is being filled. */
struct zram_end {
    pthread_mutex_t lock;
    uint32_t no; /* UINT32_MAX: none */
} __attribute__((aligned(64)));

struct zram_alloc {
    uint8_t *base;
    void *range; /* base is aligned in it */
    struct zram_segment *segments;
    uint32_t nsegments;
    struct zram_mem *mem;
    pthread_mutex_t lock;        /* the three below */
    atomic_uint fresh;           /* segments from here on have never been used */
    uint32_t open;               /* and from here on are not accessible yet */
    uint32_t free_heads[2];      /* of small pages, of huge ones */
    atomic_uint_fast64_t taken;  /* bytes of memory that segments hold */
    atomic_uint_fast64_t filled; /* bytes of slots in use */
    uint64_t resume;             /* where compaction ended, a handle or 0; its caller's */
    uint32_t resume_use;         /* of its segment */
    struct zram_end ends[ZRAM_ENDS];
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
    /* Moves the owner's object, at most `room` bytes at `from`, to `to`, if it is still there and
     * nobody uses it just now; false: it was not moved. No lock is held. */
    bool (*move)(void *arg, uint32_t owner, uint64_t from, uint64_t to, uint32_t room);
    void *arg;
    uint64_t until_us; /* by clock_us(); 0: to the end */
    /* out, added to */
    uint64_t seen, moved; /* objects */
    int64_t gained;       /* bytes given back, less those taken for what was moved */
};

/* Empties the segments with most holes into holes of the others and gives them back. True: time
 * was over before the end. One thread at a time. */
bool zram_alloc_compact(struct zram_alloc *a, struct zram_compact *job);
/* Bytes that holes cost, about. */
uint64_t zram_alloc_waste(const struct zram_alloc *a);

#endif
