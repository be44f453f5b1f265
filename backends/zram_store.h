/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compressed RAM store: a sparse range of bytes, kept in chunks, each compressed alone.
 * backends/zram.c makes a backend of it; tests/perf/zram-bench and the unit tests use it bare.
 *
 * Threads: everything but open and close may be called by any number of threads at once.  Calls
 * are synchronous: a read of 1 MiB takes about half a millisecond, a write some milliseconds
 * (lz4; others see docs/performance.md), a discard microseconds.  They never wait for steps
 * (compaction, recompression); they wait for each other only where they touch the same chunk.
 * Each calling thread gets working memory of its own at its first read or write, freed when the
 * thread ends (about 200 KiB, more with lz4hc, zstd and deflate).
 *
 * Order and atomicity: a chunk changes at once.  What overlaps in a chunk happens in some order;
 * parts of a chunk that are written by different threads at the same time are all kept.  Requests
 * over several chunks are not one atom.  What was written is seen by every call that starts after
 * the writing call has returned.
 *
 * Errors: 0 or -errno.  All offsets and lengths are bytes, with no alignment; chunks that are
 * written in part are read, changed and compressed again, so whole chunks are better.
 */
#ifndef BACKENDS_ZRAM_STORE_H
#define BACKENDS_ZRAM_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "backends/zram_codec.h"

struct zram_store;

#define ZRAM_CHUNK_MIN     4096u
#define ZRAM_CHUNK_MAX     65536u
#define ZRAM_CHUNK_DEFAULT 4096u
/* Chunks are counted in 32 bits: 16 TiB with chunks of 4 KiB, 256 TiB with 64 KiB. */
#define ZRAM_CHUNKS_MAX    (UINT64_C(1) << 32)

struct zram_store_opts {
    uint64_t size;           /* bytes, > 0; need not be whole chunks */
    uint32_t chunk_size;     /* power of two, ZRAM_CHUNK_MIN to _MAX; 0: default */
    struct zram_codec codec; /* for writes; alg 0: default */
    uint64_t mem_limit;      /* bytes of memory the store may use (mem_used_total); 0: no limit but
                                the process's. Settable later */
};

/* The store, empty, and 0; else -EINVAL, -ENOMEM with a reason in err. Costs some KiB until
 * something is written, whatever its size. */
int zram_store_open(const struct zram_store_opts *opts, struct zram_store **out, char *err,
                    size_t errsize);
/* Gives all memory back to the system. No call may be running, none may follow. NULL is fine.
 * Takes milliseconds a GiB: a helper thread's work. */
void zram_store_close(struct zram_store *st);

/* [offset, +sum of iov), within the size (else -EINVAL). The iovs are only read. `done` may be
 * NULL, else gets the bytes from the start that were transferred: the whole on success; on an
 * error what is beyond may have been transferred or not.
 *   read:  -EIO: an object does not decode (memory was damaged); never -ENOSPC.
 *   write: -ENOSPC: mem_limit of the store or the process is reached: what the failing chunk had
 *          held is kept. A write that needs no more memory than its chunk has still works.
 *   both:  -ENOMEM: no working memory for this thread. */
int zram_store_read(struct zram_store *st, uint64_t offset, const struct iovec *iov, unsigned niov,
                    uint64_t *done);
int zram_store_write(struct zram_store *st, uint64_t offset, const struct iovec *iov, unsigned niov,
                     uint64_t *done);
/* [offset, +len) reads as zeros afterwards; memory of whole chunks is given back at once.
 * zero: stays mapped (16 bytes a chunk remain). discard: whole chunks are unmapped, parts at the
 * edges zeroed; a chunk that holds only zeros afterwards is unmapped as well. Both -ENOSPC only
 * for parts of chunks (and zero for the 16 bytes), -EIO, -ENOMEM likewise. */
int zram_store_zero(struct zram_store *st, uint64_t offset, uint64_t len);
int zram_store_discard(struct zram_store *st, uint64_t offset, uint64_t len);

/* The length of the run at offset, within [offset, +len), that is all mapped or all unmapped;
 * *mapped says which. len > 0, within the size. A chunk is mapped when it was written (with
 * zeros, too) and not discarded since; runs end at chunks. Fast over ranges never written: 16 TiB
 * take some milliseconds. */
uint64_t zram_store_map(struct zram_store *st, uint64_t offset, uint64_t len, bool *mapped);

uint64_t zram_store_size(const struct zram_store *st);
uint32_t zram_store_chunk_size(const struct zram_store *st);

/* For writes from now on; what is there stays readable as it is. -EINVAL when it is not valid. */
int zram_store_set_codec(struct zram_store *st, struct zram_codec c);
struct zram_codec zram_store_codec(const struct zram_store *st);
/* 0: none. May be below what is used: then only writes that need no more memory work. */
void zram_store_set_limit(struct zram_store *st, uint64_t bytes);

/* The limit of all stores together; 0: none. At first three quarters of the machine's memory. */
void zram_process_set_limit(uint64_t bytes);
uint64_t zram_process_limit(void);
uint64_t zram_process_used(void); /* sum of mem_used_total */

/* Names as in the kernel's mm_stat and io_stat, all in bytes but what counts pages or events; a
 * page is a chunk here. Each number is right by itself; together they are no snapshot while
 * others write. */
struct zram_stats {
    /* mm_stat */
    uint64_t orig_data_size;   /* chunks written and not discarded, x chunk_size */
    uint64_t compr_data_size;  /* bytes of the objects */
    uint64_t mem_used_total;   /* memory taken from the system: pages of objects, what describes
                                  them, and the table */
    uint64_t mem_limit;        /* 0: none */
    uint64_t mem_used_max;     /* highest mem_used_total since open or zram_store_reset_max */
    uint64_t same_pages;       /* filled with one 64-bit value; cost nothing but the table */
    uint64_t pages_compacted;  /* 4 KiB pages given back by compaction */
    uint64_t huge_pages;       /* kept as they are */
    uint64_t huge_pages_since; /* likewise, ever written */
    /* io_stat */
    uint64_t failed_reads;  /* requests */
    uint64_t failed_writes; /* requests; of these -ENOSPC: no_space */
    uint64_t invalid_io;    /* outside the store */
    uint64_t notify_free;   /* mapped chunks that were discarded */
    /* ours */
    uint64_t no_space;
    uint64_t table_bytes;               /* of mem_used_total: the table */
    uint64_t objects;                   /* compressed or raw */
    uint64_t moved;                     /* objects moved by compaction */
    uint64_t recompressed;              /* chunks that recompression made smaller */
    uint64_t by_alg[ZRAM_ALG_COUNT];    /* objects of each algorithm */
    uint64_t bytes_alg[ZRAM_ALG_COUNT]; /* their compressed bytes */
};

void zram_store_stats(struct zram_store *st, struct zram_stats *out);
void zram_store_reset_max(struct zram_store *st);

/* What a range of chunks is made of, for pictures: chunks of the range by kind, and bytes. */
struct zram_usage {
    uint64_t unmapped, same, huge, compressed; /* chunks */
    uint64_t bytes;                            /* of objects */
};

/* [offset, +len), rounded out to chunks. */
void zram_store_usage(struct zram_store *st, uint64_t offset, uint64_t len, struct zram_usage *out);

enum zram_work {
    ZRAM_COMPACT,    /* fills holes that overwriting and discards left, gives pages back */
    ZRAM_RECOMPRESS, /* compresses what is old or was kept raw with another algorithm */
};

/* One step of background work. Any thread that may take its time; a second thread's step of the
 * same store returns at once with `again` set. */
struct zram_step {
    /* in */
    enum zram_work work;
    uint64_t max_us;         /* stop after about this long; 0: at the end */
    struct zram_codec codec; /* RECOMPRESS: into this */
    bool huge;               /* RECOMPRESS: chunks that are kept raw */
    bool idle;               /* RECOMPRESS: chunks of idle_s and older (with huge: either) */
    uint32_t idle_s;         /* seconds since last read or written */
    uint32_t min_size;       /* RECOMPRESS: only objects of this many bytes and more; 0: all */
    /* out */
    bool again;     /* the time was over before the end: call it again to go on */
    uint64_t seen;  /* objects looked at */
    uint64_t done;  /* objects moved or made smaller */
    int64_t gained; /* COMPACT: bytes given back, less those taken for objects to move to (what a
                       segment costs comes before what it gives); RECOMPRESS: compressed bytes
                       saved */
};

/* 0, or -EINVAL (codec), -ENOMEM. RECOMPRESS goes through the store from where the last step with
 * `again` ended; a chunk that did not become smaller is not tried again with the same or a weaker
 * algorithm until it is written. */
int zram_store_step(struct zram_store *st, struct zram_step *step);
/* Would compaction give back a worthwhile amount (about 1 % of the store or more)? Cheap. */
bool zram_store_wants_compact(struct zram_store *st);

#endif
