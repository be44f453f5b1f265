/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the compressed RAM store share (zram_store.c, zram_table.c, zram_chunk.c,
 * zram_io.c, zram_step.c); its users see zram_store.h.
 *
 * The table has 16 bytes a chunk, in pages of 256 (a group).  An entry is its own lock: many
 * readers or one writer; who waits sleeps in the kernel.  A group has memory only while it is
 * touched; who locks one of its entries has entered it, which keeps it.
 * Locks are taken in the order group (entered), entry, class of the allocator, allocator.
 */
#ifndef BACKENDS_ZRAM_PRIV_H
#define BACKENDS_ZRAM_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "backends/zram_alloc.h"
#include "backends/zram_store.h"

/* --- the table ------------------------------------------------------------------------------- */

enum zram_kind {
    ZRAM_EMPTY, /* unmapped: the whole entry but its lock is 0 */
    ZRAM_ZERO,  /* mapped, all zeros */
    ZRAM_FILL,  /* one 64-bit value, in lo and hi */
    ZRAM_OBJECT,
};

/* The word: lock 5 bits (0 free, 1-30 readers, 31 a writer), 1 bit somebody sleeps, kind 2,
 * algorithm 3, size - 1 16, handle 37. Only who holds the lock as writer changes more than the
 * first six. */
#define ENTRY_WRITER     31u
#define ENTRY_LOCK       31u
#define ENTRY_SLEEPERS   32u
#define ENTRY_LOCK_BITS  63u
#define ENTRY_KIND_AT    6
#define ENTRY_ALG_AT     8
#define ENTRY_SIZE_AT    11
#define ENTRY_HANDLE_AT  27
/* hi of an object: seconds since open when it was used last, then flags. */
#define HI_AGE           0xffffffu
#define HI_TRIED_AT      24 /* 3 bits: recompression with this one gained nothing */
#define HI_TRIED         (7u << HI_TRIED_AT)
#define HI_RECOMPRESSING (8u << HI_TRIED_AT) /* gone when it was written since */

struct zram_entry {
    atomic_uint_fast64_t word;
    atomic_uint lo; /* of an object: room for a checksum */
    atomic_uint hi;
};

_Static_assert(sizeof(struct zram_entry) == 16, "16 bytes a chunk");

#define GROUP_CHUNKS (ZRAM_PAGE / (uint32_t)sizeof(struct zram_entry))

static inline enum zram_kind
word_kind(uint64_t w)
{
    return (enum zram_kind)(w >> ENTRY_KIND_AT & 3);
}

static inline unsigned
word_alg(uint64_t w)
{
    return (unsigned)(w >> ENTRY_ALG_AT & 7);
}

static inline uint32_t
word_size(uint64_t w)
{
    return (uint32_t)(w >> ENTRY_SIZE_AT & 0xffff) + 1;
}

static inline uint64_t
word_handle(uint64_t w)
{
    return w >> ENTRY_HANDLE_AT;
}

static inline uint64_t
word_object(unsigned alg, uint32_t size, uint64_t handle)
{
    return (uint64_t)ZRAM_OBJECT << ENTRY_KIND_AT | (uint64_t)alg << ENTRY_ALG_AT |
           (uint64_t)(size - 1) << ENTRY_SIZE_AT | handle << ENTRY_HANDLE_AT;
}

/* --- counters -------------------------------------------------------------------------------- */

enum zram_count {
    ZC_SAME,
    ZC_HUGE_SINCE,
    ZC_FAILED_READS,
    ZC_FAILED_WRITES,
    ZC_INVALID,
    ZC_NOTIFY_FREE,
    ZC_NO_SPACE,
    ZC_PAGES_COMPACTED,
    ZC_MOVED,
    ZC_RECOMPRESSED,
    ZC_OBJECTS, /* one for each algorithm */
    ZC_BYTES = ZC_OBJECTS + ZRAM_ALG_COUNT,
    ZC_COUNT = ZC_BYTES + ZRAM_ALG_COUNT
};

#define STRIPES 8u

/* A thread adds to one of these; only their sums mean something. */
struct zram_stripe {
    atomic_uint_fast64_t n[ZC_COUNT];
} __attribute__((aligned(64)));

/* --- the store ------------------------------------------------------------------------------- */

struct zram_store {
    uint64_t size;
    uint64_t nchunks;
    uint32_t chunk;
    unsigned shift; /* chunk = 1 << shift */
    struct zram_entry *table;
    atomic_uint_fast64_t *groups;
    uint64_t ngroups;
    atomic_uint_fast64_t touched; /* groups with memory */
    atomic_uint codec;            /* alg | level << 8 */
    uint64_t opened_ms;
    struct zram_mem mem;
    pthread_mutex_t step_lock; /* held by the one step that runs; the next as well */
    uint64_t recompress_next;  /* chunk */
    struct zram_stripe stripes[STRIPES];
    struct zram_alloc alloc;
};

/* What a thread works with. */
struct zram_thread {
    struct zram_codec_ctx *codec;
    unsigned stripe;
    uint8_t *chunk; /* ZRAM_CHUNK_MAX */
    uint8_t *out;   /* what a chunk becomes */
};

/* The calling thread's; NULL: no memory. */
struct zram_thread *zram_thread_get(void);

static inline void
zram_count(struct zram_store *st, const struct zram_thread *t, unsigned what, uint64_t n)
{
    (void)atomic_fetch_add_explicit(&st->stripes[t->stripe].n[what], n, memory_order_relaxed);
}

static inline struct zram_codec
zram_codec_now(const struct zram_store *st)
{
    unsigned v = atomic_load_explicit(&st->codec, memory_order_relaxed);
    return (struct zram_codec){.alg = (uint8_t)v, .level = (int8_t)(v >> 8)};
}

uint32_t zram_now_s(const struct zram_store *st); /* as HI_AGE has it */

/* --- zram_table.c ---------------------------------------------------------------------------- */

/* Mapped chunks of a group. */
unsigned zram_group_used(const struct zram_store *st, uint64_t g);
/* Keeps the group until left. With touch it gets memory: 0 or -ENOSPC. */
int zram_group_enter(struct zram_store *st, uint64_t g, bool touch);
void zram_group_leave(struct zram_store *st, uint64_t g);
/* A mapped chunk more or fewer, by the writer of the entry. */
void zram_group_add(struct zram_store *st, uint64_t g, int n);
/* Gives the group's memory back if nothing is mapped in it and nobody is there. */
void zram_group_trim(struct zram_store *st, uint64_t g);

/* The word as it is then; waits. */
uint64_t zram_entry_read_lock(struct zram_entry *e);
uint64_t zram_entry_write_lock(struct zram_entry *e);
bool zram_entry_try_write(struct zram_entry *e, uint64_t *word);
void zram_entry_read_unlock(struct zram_entry *e);
/* The word from now on, without lock bits. */
void zram_entry_write_unlock(struct zram_entry *e, uint64_t word);

static inline uint64_t
zram_entry_peek(const struct zram_entry *e)
{
    return atomic_load_explicit(&e->word, memory_order_acquire);
}

/* --- zram_chunk.c ---------------------------------------------------------------------------- */

/* What a chunk shall be. */
struct zram_piece {
    enum zram_kind kind;
    unsigned alg;
    uint32_t size;
    uint64_t fill;
    const uint8_t *data;
};

/* Looks at a whole chunk: filled, compressed into t->out, or as it is. */
void zram_piece_make(const struct zram_store *st, struct zram_thread *t, const uint8_t *data,
                     struct zram_piece *p);
/* The entry, locked as writer with word w, becomes the piece and is unlocked; on -ENOSPC it is
 * unlocked as it was. */
int zram_chunk_put(struct zram_store *st, struct zram_thread *t, uint64_t no, uint64_t w,
                   const struct zram_piece *p, uint32_t age);
/* The whole chunk into dst; locked by the caller. 0, -EIO, -ENOMEM. */
int zram_chunk_load(const struct zram_store *st, struct zram_thread *t, uint64_t no, uint64_t w,
                    uint8_t *dst);

#endif
