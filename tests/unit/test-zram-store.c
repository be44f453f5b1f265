/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The compressed RAM store by one thread: random operations against plain memory, for every
 * algorithm and several chunk sizes; sparse giants, limits, numbers, background steps.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/zram_store.h"
#include "base/clock.h"
#include "tests/unit/unit.h"

#define CHUNK 4096u

static uint32_t rng = 1;

static uint32_t
next(void)
{
    rng = rng * 1664525u + 1013904223u;
    return rng >> 8;
}

static struct zram_store *
open_store(uint64_t size, uint32_t chunk, struct zram_codec codec, uint64_t limit)
{
    struct zram_store *st = NULL;
    char err[160] = "";
    struct zram_store_opts o = {
        .size = size, .chunk_size = chunk, .codec = codec, .mem_limit = limit};
    CU_ASSERT_EQUAL_FATAL(zram_store_open(&o, &st, err, sizeof(err)), 0);
    return st;
}

static struct zram_stats
stats(struct zram_store *st)
{
    struct zram_stats s;
    zram_store_stats(st, &s);
    return s;
}

static int
put(struct zram_store *st, uint64_t at, const void *p, size_t n)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
    return zram_store_write(st, at, &iov, 1, NULL);
}

static int
get(struct zram_store *st, uint64_t at, void *p, size_t n)
{
    struct iovec iov = {.iov_base = p, .iov_len = n};
    return zram_store_read(st, at, &iov, 1, NULL);
}

/* kind: 0 zeros, 1 one value, 2 noise, else text of that much noise. */
static void
fill(uint8_t *p, size_t n, unsigned kind)
{
    if (kind == 0) {
        memset(p, 0, n);
        return;
    }
    uint8_t value[8];
    for (unsigned i = 0; i < sizeof(value); i++)
        value[i] = (uint8_t)next();
    for (size_t i = 0; i < n; i++)
        p[i] = kind == 1 || (kind > 2 && i / 16 % kind != 0) ? value[i % 8] : (uint8_t)next();
}

/* --- against plain memory -------------------------------------------------------------------- */

#define MODEL_CHUNKS 48u

struct model {
    struct zram_store *st;
    uint8_t *mem, *buf;
    bool *mapped; /* what must be; where a chunk was discarded in part, what is */
    uint64_t size;
    uint32_t chunk;
};

static unsigned
split(struct iovec *iov, unsigned max, uint8_t *p, size_t n)
{
    unsigned k = 0;
    while (n > 0) {
        size_t part = k + 1 == max || next() % 2 == 0 ? n : next() % (n + 1);
        iov[k++] = (struct iovec){.iov_base = p, .iov_len = part};
        p += part;
        n -= part;
    }
    return k;
}

static void
pick(const struct model *m, uint64_t *at, uint64_t *n)
{
    *at = next() % m->size;
    *n = next() % (next() % 4 == 0 ? 6 * m->chunk : m->chunk + 1);
    if (next() % 2 == 0) { /* whole chunks */
        *at -= *at % m->chunk;
        *n = (*n / m->chunk + 1) * m->chunk;
    }
    if (*n > m->size - *at)
        *n = m->size - *at;
}

static void
model_write(struct model *m, uint64_t at, uint64_t n)
{
    struct iovec iov[5];
    uint64_t done = 0;
    fill(m->buf, n, next() % 10);
    unsigned k = split(iov, 5, m->buf, n);
    CU_ASSERT_EQUAL(zram_store_write(m->st, at, iov, k, &done), 0);
    CU_ASSERT_EQUAL(done, n);
    memcpy(m->mem + at, m->buf, n);
    for (uint64_t i = at / m->chunk; n > 0 && i <= (at + n - 1) / m->chunk; i++)
        m->mapped[i] = true;
}

static void
model_clear(struct model *m, uint64_t at, uint64_t n, bool discard)
{
    int err = discard ? zram_store_discard(m->st, at, n) : zram_store_zero(m->st, at, n);
    CU_ASSERT_EQUAL(err, 0);
    memset(m->mem + at, 0, n);
    for (uint64_t i = at / m->chunk; n > 0 && i <= (at + n - 1) / m->chunk; i++) {
        uint64_t from = i * m->chunk, to = from + m->chunk;
        to = to < m->size ? to : m->size;
        bool zeros = true;
        for (uint64_t k = from; k < to; k++)
            zeros = zeros && m->mem[k] == 0;
        if (discard)
            m->mapped[i] = m->mapped[i] && !zeros;
        else
            m->mapped[i] = true; /* a write of zeros is a write */
    }
}

static void
model_check(struct model *m, uint64_t at, uint64_t n)
{
    struct iovec iov[5];
    memset(m->buf, 0xaa, n);
    unsigned k = split(iov, 5, m->buf, n);
    CU_ASSERT_EQUAL(zram_store_read(m->st, at, iov, k, NULL), 0);
    CU_ASSERT(memcmp(m->buf, m->mem + at, n) == 0);
}

static void
model_map(const struct model *m)
{
    uint64_t mapped = 0, sum = 0;
    for (uint64_t at = 0; at < m->size;) {
        bool is;
        uint64_t n = zram_store_map(m->st, at, m->size - at, &is);
        CU_ASSERT_FATAL(n > 0 && n <= m->size - at);
        for (uint64_t i = at / m->chunk; i <= (at + n - 1) / m->chunk; i++)
            CU_ASSERT_EQUAL(m->mapped[i], is);
        at += n;
    }
    for (uint64_t i = 0; i < (m->size + m->chunk - 1) / m->chunk; i++)
        mapped += m->mapped[i];
    struct zram_stats s = stats(m->st);
    CU_ASSERT_EQUAL(s.orig_data_size, mapped * m->chunk);
    struct zram_usage u;
    zram_store_usage(m->st, 0, m->size, &u);
    sum = u.same + u.huge + u.compressed;
    CU_ASSERT_EQUAL(sum, mapped);
    CU_ASSERT_EQUAL(u.same, s.same_pages);
    CU_ASSERT_EQUAL(u.huge, s.huge_pages);
    CU_ASSERT_EQUAL(u.bytes, s.compr_data_size);
}

static void
model_other(struct model *m)
{
    struct zram_step step = {.codec = {(uint8_t)(1 + next() % 4), 2}, .huge = true, .idle = true};
    struct zram_codec c = {(uint8_t)(1 + next() % 4), 1};
    switch (next() % 3) {
    case 0:
        CU_ASSERT_EQUAL(zram_store_set_codec(m->st, c), 0);
        break;
    case 1:
        step.work = ZRAM_RECOMPRESS;
        step.codec.level = step.codec.alg == ZRAM_ALG_LZ4 ? 1 : 2;
        /* fall through */
    default:
        CU_ASSERT_EQUAL(zram_store_step(m->st, &step), 0);
        CU_ASSERT(!step.again);
    }
}

static void
model_run(uint32_t chunk, struct zram_codec codec, unsigned ops, bool changes)
{
    struct model m = {.size = (uint64_t)MODEL_CHUNKS * chunk - 1536, .chunk = chunk};
    m.st = open_store(m.size, chunk, codec, 0);
    m.mem = calloc(1, m.size);
    m.buf = malloc(m.size);
    m.mapped = calloc(MODEL_CHUNKS, sizeof(bool));
    for (unsigned i = 0; i < ops; i++) {
        uint64_t at, n;
        pick(&m, &at, &n);
        unsigned what = next() % 10;
        if (what < 5)
            model_write(&m, at, n);
        else if (what < 7)
            model_clear(&m, at, n, what == 5);
        else
            model_check(&m, at, n);
        if (changes && next() % 16 == 0)
            model_other(&m);
    }
    model_map(&m);
    model_check(&m, 0, m.size);
    CU_ASSERT_EQUAL(zram_store_discard(m.st, 0, m.size), 0);
    struct zram_stats s = stats(m.st);
    CU_ASSERT_EQUAL(s.mem_used_total, 0);
    CU_ASSERT_EQUAL(s.orig_data_size, 0);
    CU_ASSERT_EQUAL(s.compr_data_size, 0);
    zram_store_close(m.st);
    CU_ASSERT_EQUAL(zram_process_used(), 0);
    free(m.mem);
    free(m.buf);
    free(m.mapped);
}

static void
test_model(void)
{
    static const uint32_t chunks[] = {4096, 16384, 65536};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned alg = ZRAM_ALG_LZ4; alg < ZRAM_ALG_COUNT; alg++)
            model_run(chunks[i], (struct zram_codec){(uint8_t)alg, 1}, 400, false);
        model_run(chunks[i], ZRAM_CODEC_DEFAULT, 1500, true);
    }
}

/* --- sparse ---------------------------------------------------------------------------------- */

static uint64_t
rss(void)
{
    unsigned long all, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    CU_ASSERT_FATAL(f != NULL && fscanf(f, "%lu %lu", &all, &resident) == 2);
    (void)fclose(f);
    return (uint64_t)resident * 4096;
}

static void
test_sparse(void)
{
    const uint64_t tib = UINT64_C(1) << 40, size = 16 * tib;
    uint8_t block[CHUNK], back[CHUNK];
    bool mapped;
    uint64_t before = rss();
    struct zram_store *st = open_store(size, 0, ZRAM_CODEC_DEFAULT, 0);
    CU_ASSERT_EQUAL(zram_store_map(st, 0, size, &mapped), size);
    CU_ASSERT(!mapped);
    CU_ASSERT_EQUAL(zram_store_discard(st, 0, size), 0);
    CU_ASSERT_EQUAL(get(st, 5 * tib, back, CHUNK), 0);
    CU_ASSERT_EQUAL(stats(st).mem_used_total, 0);
    fill(block, CHUNK, 9);
    CU_ASSERT_EQUAL(put(st, 9 * tib, block, CHUNK), 0);
    CU_ASSERT_EQUAL(put(st, size - CHUNK, block, CHUNK), 0);
    CU_ASSERT_EQUAL(stats(st).table_bytes, 8192);
    CU_ASSERT(stats(st).mem_used_total <= 32768);
    CU_ASSERT_EQUAL(zram_store_map(st, 0, size, &mapped), 9 * tib);
    CU_ASSERT(!mapped);
    CU_ASSERT_EQUAL(zram_store_map(st, 9 * tib, size - 9 * tib, &mapped), CHUNK);
    CU_ASSERT(mapped);
    CU_ASSERT_EQUAL(get(st, size - CHUNK, back, CHUNK), 0);
    CU_ASSERT(memcmp(block, back, CHUNK) == 0);
    CU_ASSERT_EQUAL(zram_store_discard(st, 0, size), 0);
    CU_ASSERT_EQUAL(stats(st).mem_used_total, 0);
#ifndef EVTGT_DEBUG /* sanitizers have shadows of what is reserved */
    CU_ASSERT(rss() < before + (2u << 20));
#endif
    (void)before;
    zram_store_close(st);
}

/* --- limits ---------------------------------------------------------------------------------- */

static void
test_limit(void)
{
    const uint64_t size = 8u << 20, limit = 1u << 20;
    struct zram_store *st = open_store(size, CHUNK, ZRAM_CODEC_DEFAULT, limit);
    uint8_t noise[CHUNK], text[CHUNK], back[CHUNK];
    uint64_t at = 0, done;
    fill(noise, CHUNK, 2);
    fill(text, CHUNK, 9);
    int err;
    while ((err = put(st, at, noise, CHUNK)) == 0 && at < size)
        at += CHUNK;
    CU_ASSERT_EQUAL(err, -ENOSPC);
    CU_ASSERT(at > limit * 95 / 100 && at < limit);
    CU_ASSERT(stats(st).mem_used_total <= limit);
    CU_ASSERT_EQUAL(stats(st).no_space, 1);
    CU_ASSERT_EQUAL(stats(st).failed_writes, 1);
    CU_ASSERT_EQUAL(get(st, at - CHUNK, back, CHUNK), 0);
    CU_ASSERT(memcmp(noise, back, CHUNK) == 0);
    /* What was refused reads as before; so does a part of a chunk. */
    CU_ASSERT_EQUAL(get(st, at, back, CHUNK), 0);
    CU_ASSERT(back[0] == 0 && memcmp(back, back + 1, CHUNK - 1) == 0);
    /* Overwriting with as much or less works, without any new memory. */
    CU_ASSERT_EQUAL(put(st, 0, noise, CHUNK), 0);
    CU_ASSERT_EQUAL(put(st, CHUNK, text, CHUNK), 0);
    CU_ASSERT_EQUAL(get(st, CHUNK, back, CHUNK), 0);
    CU_ASSERT(memcmp(text, back, CHUNK) == 0);
    CU_ASSERT_EQUAL(zram_store_zero(st, 2 * CHUNK, CHUNK), 0);
    /* That made a hole or two. */
    struct iovec iov[3] = {{noise, CHUNK}, {noise, CHUNK}, {noise, CHUNK}};
    CU_ASSERT_EQUAL(zram_store_write(st, at, iov, 3, &done), -ENOSPC);
    CU_ASSERT(done == CHUNK || done == 2 * CHUNK);
    CU_ASSERT_EQUAL(get(st, at, back, CHUNK), 0);
    CU_ASSERT(memcmp(noise, back, CHUNK) == 0);
    CU_ASSERT_EQUAL(zram_store_discard(st, 0, size), 0);
    CU_ASSERT_EQUAL(put(st, at, noise, CHUNK), 0);
    zram_store_set_limit(st, 1);
    CU_ASSERT_EQUAL(put(st, 0, noise, CHUNK), -ENOSPC);
    CU_ASSERT_EQUAL(put(st, 4u << 20, text, CHUNK), -ENOSPC); /* not even the table */
    zram_store_set_limit(st, 0);
    uint64_t had = zram_process_limit();
    CU_ASSERT(had > 0);
    zram_process_set_limit(zram_process_used());
    CU_ASSERT_EQUAL(put(st, 4u << 20, text, CHUNK), -ENOSPC);
    zram_process_set_limit(had);
    CU_ASSERT_EQUAL(put(st, 4u << 20, text, CHUNK), 0);
    zram_store_close(st);
    CU_ASSERT_EQUAL(zram_process_used(), 0);
}

/* --- numbers --------------------------------------------------------------------------------- */

static void
test_stats(void)
{
    struct zram_store *st = open_store(1u << 20, CHUNK, ZRAM_CODEC_DEFAULT, 0);
    uint8_t b[4 * CHUNK];
    fill(b, CHUNK, 0);
    fill(b + CHUNK, CHUNK, 1);
    fill(b + 2 * CHUNK, CHUNK, 2);
    fill(b + 3 * CHUNK, CHUNK, 9);
    CU_ASSERT_EQUAL(put(st, 0, b, sizeof(b)), 0);
    struct zram_stats s = stats(st);
    CU_ASSERT_EQUAL(s.orig_data_size, sizeof(b));
    CU_ASSERT_EQUAL(s.same_pages, 2);
    CU_ASSERT_EQUAL(s.huge_pages, 1);
    CU_ASSERT_EQUAL(s.huge_pages_since, 1);
    CU_ASSERT_EQUAL(s.objects, 2);
    CU_ASSERT_EQUAL(s.by_alg[ZRAM_ALG_LZ4], 1);
    CU_ASSERT(s.compr_data_size > CHUNK && s.compr_data_size < 2 * CHUNK);
    CU_ASSERT_EQUAL(s.table_bytes, 4096);
    CU_ASSERT_EQUAL(s.mem_used_max, s.mem_used_total);
    CU_ASSERT_EQUAL(get(st, (1u << 20) - 1, b, 2), -EINVAL);
    CU_ASSERT_EQUAL(put(st, 1u << 20, b, 1), -EINVAL);
    CU_ASSERT_EQUAL(put(st, UINT64_MAX, b, 2), -EINVAL);
    CU_ASSERT_EQUAL(zram_store_discard(st, CHUNK, 1u << 20), -EINVAL);
    CU_ASSERT_EQUAL(stats(st).invalid_io, 4);
    CU_ASSERT_EQUAL(put(st, 1u << 20, b, 0), 0);
    CU_ASSERT_EQUAL(zram_store_discard(st, 0, 1u << 20), 0);
    s = stats(st);
    CU_ASSERT_EQUAL(s.notify_free, 4);
    CU_ASSERT_EQUAL(s.mem_used_total, 0);
    CU_ASSERT(s.mem_used_max > 0);
    CU_ASSERT_EQUAL(s.huge_pages_since, 1);
    zram_store_reset_max(st);
    CU_ASSERT_EQUAL(stats(st).mem_used_max, 0);
    zram_store_close(st);
}

static void
test_options(void)
{
    static const struct {
        struct zram_store_opts o;
        const char *err;
    } bad[] = {
        {{.size = 0}, "a size of 0 bytes: with chunks of 4096 it is 1 to 17592186044416"},
        {{.size = UINT64_C(17592186044417)},
         "a size of 17592186044417 bytes: with chunks of 4096 it is 1 to 17592186044416"},
        {{.size = 4096, .chunk_size = 2048},
         "chunks of 2048 bytes: they are a power of two from 4096 to 65536"},
        {{.size = 4096, .chunk_size = 12288},
         "chunks of 12288 bytes: they are a power of two from 4096 to 65536"},
        {{.size = 4096, .codec = {ZRAM_ALG_ZSTD, 99}}, "algorithm 3 has no level 99"},
    };
    struct zram_store *st;
    char err[160];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CU_ASSERT_EQUAL(zram_store_open(&bad[i].o, &st, err, sizeof(err)), -EINVAL);
        CU_ASSERT_STRING_EQUAL(err, bad[i].err);
    }
    st = open_store(100, 0, (struct zram_codec){0, 0}, 77);
    CU_ASSERT_EQUAL(zram_store_size(st), 100);
    CU_ASSERT_EQUAL(zram_store_chunk_size(st), ZRAM_CHUNK_DEFAULT);
    CU_ASSERT_EQUAL(zram_store_codec(st).alg, ZRAM_ALG_LZ4);
    CU_ASSERT_EQUAL(stats(st).mem_limit, 77);
    CU_ASSERT_EQUAL(zram_store_set_codec(st, (struct zram_codec){ZRAM_ALG_LZ4, 5}), -EINVAL);
    zram_store_close(st);
    zram_store_close(NULL);
}

/* --- steps ----------------------------------------------------------------------------------- */

static void
test_recompress(void)
{
    clock_fake_set(UINT64_C(1000000000));
    struct zram_store *st = open_store(1u << 20, CHUNK, ZRAM_CODEC_DEFAULT, 0);
    uint8_t text[CHUNK], noise[CHUNK], back[CHUNK];
    fill(noise, CHUNK, 2);
    for (unsigned i = 0; i < CHUNK; i++) /* six bits: nothing for lz4, much for zstd */
        text[i] = (uint8_t)(32 + next() % 32);
    CU_ASSERT_EQUAL(put(st, 0, noise, CHUNK), 0);
    CU_ASSERT_EQUAL(put(st, CHUNK, text, CHUNK), 0);
    fill(back, CHUNK, 5);
    CU_ASSERT_EQUAL(put(st, 2 * CHUNK, back, CHUNK), 0);
    CU_ASSERT_EQUAL(stats(st).huge_pages, 2);
    struct zram_step step = {.work = ZRAM_RECOMPRESS, .codec = {ZRAM_ALG_ZSTD, 3}, .huge = true};
    CU_ASSERT_EQUAL(zram_store_step(st, &step), 0);
    CU_ASSERT(!step.again);
    CU_ASSERT_EQUAL(step.seen, 2);
    CU_ASSERT_EQUAL(step.done, 1);
    CU_ASSERT(step.gained > CHUNK / 4);
    CU_ASSERT_EQUAL(stats(st).huge_pages, 1);
    CU_ASSERT_EQUAL(stats(st).by_alg[ZRAM_ALG_ZSTD], 1);
    CU_ASSERT_EQUAL(stats(st).recompressed, 1);
    CU_ASSERT_EQUAL(zram_store_step(st, &step), 0);
    CU_ASSERT_EQUAL(step.seen, 0); /* noise was tried */
    /* Age: used last when written or read. */
    step.huge = false;
    step.idle = true;
    step.idle_s = 60;
    clock_fake_advance(UINT64_C(59000000));
    CU_ASSERT_EQUAL(zram_store_step(st, &step), 0);
    CU_ASSERT_EQUAL(step.seen, 0);
    CU_ASSERT_EQUAL(get(st, 2 * CHUNK, back, CHUNK), 0);
    clock_fake_advance(UINT64_C(2000000));
    CU_ASSERT_EQUAL(zram_store_step(st, &step), 0);
    CU_ASSERT_EQUAL(step.seen, 0);
    clock_fake_advance(UINT64_C(58000000));
    step.min_size = CHUNK;
    CU_ASSERT_EQUAL(zram_store_step(st, &step), 0);
    CU_ASSERT_EQUAL(step.seen, 0);
    step.min_size = 0;
    CU_ASSERT_EQUAL(zram_store_step(st, &step), 0);
    CU_ASSERT_EQUAL(step.seen, 1);
    step.codec.level = 100;
    CU_ASSERT_EQUAL(zram_store_step(st, &step), -EINVAL);
    clock_fake_off();
    CU_ASSERT_EQUAL(get(st, CHUNK, back, CHUNK), 0);
    CU_ASSERT(memcmp(back, text, CHUNK) == 0);
    CU_ASSERT_EQUAL(get(st, 0, back, CHUNK), 0);
    CU_ASSERT(memcmp(back, noise, CHUNK) == 0);
    zram_store_close(st);
}

static void
test_compact(void)
{
    const uint64_t size = 32u << 20;
    struct zram_store *st = open_store(size, CHUNK, ZRAM_CODEC_DEFAULT, 0);
    static const uint8_t zeros[CHUNK];
    uint8_t noise[CHUNK], back[CHUNK];
    fill(noise, CHUNK, 2);
    CU_ASSERT(!zram_store_wants_compact(st));
    for (uint64_t at = 0; at < size; at += CHUNK) {
        memcpy(noise, &at, sizeof(at));
        CU_ASSERT_EQUAL(put(st, at, noise, CHUNK), 0);
    }
    CU_ASSERT(!zram_store_wants_compact(st));
    for (uint64_t at = 0; at < size; at += CHUNK)
        if (at / CHUNK % 3 != 0)
            CU_ASSERT_EQUAL(zram_store_discard(st, at, CHUNK), 0);
    CU_ASSERT(zram_store_wants_compact(st));
    uint64_t before = stats(st).mem_used_total;
    struct zram_step step = {.work = ZRAM_COMPACT, .max_us = 200};
    int64_t gained = 0;
    unsigned rounds = 0;
    do {
        CU_ASSERT_EQUAL(zram_store_step(st, &step), 0);
        gained += step.gained;
    } while (step.again && ++rounds < 100000);
    CU_ASSERT(!step.again);
    CU_ASSERT(!zram_store_wants_compact(st));
    CU_ASSERT_EQUAL((int64_t)(before - stats(st).mem_used_total), gained);
    CU_ASSERT_EQUAL((int64_t)stats(st).pages_compacted, gained / 4096);
    CU_ASSERT(stats(st).mem_used_total < size / 3 * 103 / 100);
    CU_ASSERT(stats(st).moved > 0);
    for (uint64_t at = 0; at < size; at += CHUNK) {
        CU_ASSERT_EQUAL(get(st, at, back, CHUNK), 0);
        memcpy(noise, &at, sizeof(at));
        CU_ASSERT(memcmp(back, at / CHUNK % 3 == 0 ? noise : zeros, CHUNK) == 0);
    }
    zram_store_close(st);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"options", test_options},
        {"numbers", test_stats},
        {"sparse", test_sparse},
        {"limits", test_limit},
        {"recompression", test_recompress},
        {"compaction", test_compact},
        {"random operations against plain memory", test_model},
    };
    return UNIT_RUN("zram-store", tests);
}
