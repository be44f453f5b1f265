/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compressed RAM store by several threads, with compaction, recompression and changes of the
 * algorithm meanwhile.  For ThreadSanitizer above all; what is read is checked throughout.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backends/zram_store.h"
#include "base/clock.h"
#include "tests/unit/unit.h"

#define WRITERS 3u
#define CHUNKS  64u
#define SECTOR  512u
#define RUN_MS  1500u

static struct zram_store *st;
static uint32_t chunk;
static atomic_bool stop;
static atomic_uint bad, done_ops, refused;

struct thread {
    pthread_t id;
    unsigned no;
    uint32_t rng;
};

static uint32_t
next(struct thread *t)
{
    t->rng = t->rng * 1664525u + 1013904223u;
    return t->rng >> 8;
}

static bool
put(uint64_t at, void *p, size_t n)
{
    struct iovec iov = {.iov_base = p, .iov_len = n};
    int err = zram_store_write(st, at, &iov, 1, NULL);
    if (err == -ENOSPC)
        atomic_fetch_add(&refused, 1);
    else if (err != 0)
        atomic_fetch_add(&bad, 1);
    return err == 0;
}

static void
get(uint64_t at, void *p, size_t n)
{
    struct iovec iov = {.iov_base = p, .iov_len = n};
    if (zram_store_read(st, at, &iov, 1, NULL) != 0)
        atomic_fetch_add(&bad, 1);
}

/* Every 8 bytes tell of the place and the version, the first are the version alone; some versions
 * do not compress, some are zeros, as is 0. */
static void
fill(uint8_t *p, uint64_t at, size_t n, uint64_t version)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t v = version << 32 ^ (at + i) / 64;
        if (version % 3 == 1 && i > 0)
            v = (v + i) * UINT64_C(0x9e3779b97f4a7c15);
        if (version == 0 || version % 7 == 2)
            v = 0;
        memcpy(p + i, &v, 8);
    }
}

/* --- sectors of the same chunks: each thread has its own ------------------------------------- */

static void *
sectors(void *arg)
{
    struct thread *t = arg;
    unsigned n = CHUNKS * chunk / SECTOR;
    uint32_t *versions = calloc(n, sizeof(*versions));
    uint8_t want[SECTOR], is[SECTOR];
    while (!atomic_load(&stop)) {
        unsigned s = next(t) % n;
        s = s - s % WRITERS + t->no;
        if (s >= n)
            continue;
        uint64_t at = (uint64_t)s * SECTOR;
        if (next(t) % 3 == 0) {
            uint32_t version = next(t) % 1000 + 1;
            fill(want, at, SECTOR, version);
            if (put(at, want, SECTOR))
                versions[s] = version;
        } else if (next(t) % 16 == 0) {
            if (zram_store_discard(st, at, SECTOR) == 0)
                versions[s] = 0;
        }
        fill(want, at, SECTOR, versions[s]);
        get(at, is, SECTOR);
        if (memcmp(want, is, SECTOR) != 0)
            atomic_fetch_add(&bad, 1);
        atomic_fetch_add(&done_ops, 1);
    }
    free(versions);
    return NULL;
}

/* --- whole chunks, everybody everywhere: never torn ------------------------------------------ */

static void *
wholes(void *arg)
{
    struct thread *t = arg;
    uint8_t *b = malloc(chunk), *want = malloc(chunk);
    while (!atomic_load(&stop)) {
        uint64_t at = (uint64_t)(next(t) % CHUNKS) * chunk, version;
        unsigned what = next(t) % 8;
        if (what < 3) {
            fill(b, 0, chunk, next(t) % 1000);
            (void)put(at, b, chunk);
        } else if (what == 3) {
            bool mapped;
            if (zram_store_discard(
                    st, at,
                    2 * (uint64_t)chunk > CHUNKS * chunk - at ? chunk : 2 * (uint64_t)chunk) != 0)
                atomic_fetch_add(&bad, 1);
            (void)zram_store_map(st, at, CHUNKS * (uint64_t)chunk - at, &mapped);
        }
        get(at, b, chunk);
        memcpy(&version, b, 8);
        fill(want, 0, chunk, version >> 32);
        if (memcmp(b, want, chunk) != 0)
            atomic_fetch_add(&bad, 1);
        atomic_fetch_add(&done_ops, 1);
    }
    free(b);
    free(want);
    return NULL;
}

/* --- meanwhile ------------------------------------------------------------------------------- */

static void *
steps(void *arg)
{
    struct thread *t = arg;
    struct zram_stats s;
    while (!atomic_load(&stop)) {
        struct zram_step step = {.work = next(t) % 2 == 0 ? ZRAM_COMPACT : ZRAM_RECOMPRESS,
                                 .max_us = 500,
                                 .codec = {(uint8_t)(1 + next(t) % 4), 1},
                                 .huge = true,
                                 .idle = true};
        if (zram_store_step(st, &step) != 0)
            atomic_fetch_add(&bad, 1);
        (void)zram_store_set_codec(st, (struct zram_codec){(uint8_t)(1 + next(t) % 4), 1});
        zram_store_stats(st, &s);
        if (s.mem_used_total > 64u << 20)
            atomic_fetch_add(&bad, 1);
    }
    return NULL;
}

static void
run(void *(*writer)(void *), uint32_t chunk_size, uint64_t limit)
{
    struct thread t[WRITERS + 2] = {0};
    char err[128];
    chunk = chunk_size;
    struct zram_store_opts o = {
        .size = (uint64_t)CHUNKS * chunk, .chunk_size = chunk, .mem_limit = limit};
    CU_ASSERT_EQUAL_FATAL(zram_store_open(&o, &st, err, sizeof(err)), 0);
    atomic_store(&stop, false);
    atomic_store(&bad, 0);
    atomic_store(&done_ops, 0);
    atomic_store(&refused, 0);
    for (unsigned i = 0; i < WRITERS + 2; i++) {
        t[i].no = i;
        t[i].rng = i + 1;
        CU_ASSERT_EQUAL(pthread_create(&t[i].id, NULL, i < WRITERS ? writer : steps, &t[i]), 0);
    }
    clock_pause_ms(RUN_MS);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < WRITERS + 2; i++)
        pthread_join(t[i].id, NULL);
    CU_ASSERT_EQUAL(atomic_load(&bad), 0);
    CU_ASSERT(atomic_load(&done_ops) > 100);
    CU_ASSERT(limit != 0 || atomic_load(&refused) == 0);
    /* What the counters say is what there is. */
    struct zram_stats s;
    struct zram_usage u;
    zram_store_stats(st, &s);
    zram_store_usage(st, 0, o.size, &u);
    CU_ASSERT_EQUAL(u.bytes, s.compr_data_size);
    CU_ASSERT_EQUAL((u.same + u.huge + u.compressed) * chunk, s.orig_data_size);
    CU_ASSERT_EQUAL(zram_store_discard(st, 0, o.size), 0);
    zram_store_stats(st, &s);
    CU_ASSERT_EQUAL(s.mem_used_total, 0);
    CU_ASSERT_EQUAL(s.compr_data_size, 0);
    zram_store_close(st);
    CU_ASSERT_EQUAL(zram_process_used(), 0);
}

static void
test_sectors(void)
{
    run(sectors, 4096, 0);
}

static void
test_sectors_large(void)
{
    run(sectors, 65536, 0);
}

static void
test_sectors_limit(void)
{
    run(sectors, 4096, 128u << 10);
}

static void
test_wholes(void)
{
    run(wholes, 4096, 0);
}

static void
test_wholes_large(void)
{
    run(wholes, 16384, 0);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"parts of the same chunks", test_sectors},
        {"parts of the same large chunks", test_sectors_large},
        {"parts of the same chunks, too little memory", test_sectors_limit},
        {"whole chunks", test_wholes},
        {"whole large chunks", test_wholes_large},
    };
    return UNIT_RUN("zram-threads", tests);
}
