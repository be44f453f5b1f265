/* SPDX-License-Identifier: BSD-2-Clause */
/* Object pools and data buffers. */
#include "config.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/poison.h"
#include "base/pool.h"
#include "base/worker.h"
#include "tests/unit/unit.h"

static void
test_pool(void)
{
    enum { N = 100 };
    struct pool *p = pool_new(40, 8);
    void *o[N];
    for (int i = 0; i < N; i++) {
        o[i] = pool_get(p);
        CU_ASSERT_EQUAL((uintptr_t)o[i] % 16, 0);
        for (int k = 0; k < 40; k++)
            CU_ASSERT_EQUAL(((uint8_t *)o[i])[k], 0);
        memset(o[i], 0xff, 40);
    }
    CU_ASSERT_EQUAL(pool_in_use(p), N);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 40; k++)
            CU_ASSERT_EQUAL(((uint8_t *)o[i])[k], 0xff); /* they do not overlap */
    void *last = o[N - 1];
    pool_put(p, last);
#ifdef POISON_ASAN
    CU_ASSERT_TRUE(is_poisoned(last));
#endif
    o[N - 1] = pool_get(p);
    CU_ASSERT_PTR_EQUAL(o[N - 1], last); /* last in, first out, and zeroed again */
    CU_ASSERT_EQUAL(((uint8_t *)last)[39], 0);
    for (int i = 0; i < N; i++)
        pool_put(p, o[i]);
    CU_ASSERT_EQUAL(pool_in_use(p), 0);
    pool_free(p);

    p = pool_new(1, 0); /* smaller than a link */
    void *a = pool_get(p), *b = pool_get(p);
    CU_ASSERT_PTR_NOT_EQUAL(a, b);
    pool_put(p, a);
    pool_put(p, b);
    pool_free(p);
    pool_free(NULL);
}

static void
test_x(void)
{
    char *s = xasprintf("%d-%s", 7, "x");
    CU_ASSERT_STRING_EQUAL(s, "7-x");
    s = xrealloc(s, 100);
    CU_ASSERT_STRING_EQUAL(s, "7-x");
    free(s);
    s = xstrdup("");
    CU_ASSERT_STRING_EQUAL(s, "");
    free(s);
    free(xmalloc(0));
    free(xcalloc(0, 8));
}

static void
test_buf_classes(void)
{
    struct bufpool *bp = bufpool_new(NULL);
    static const struct {
        size_t len, cap;
    } t[] = {{0, 4096},      {1, 4096},       {4096, 4096},       {4097, 8192},
             {65536, 65536}, {65537, 131072}, {1048575, 1048576}, {1048576, 1048576}};
    for (unsigned i = 0; i < sizeof t / sizeof t[0]; i++) {
        struct buf *b = buf_get(bp, t[i].len);
        CU_ASSERT_PTR_NOT_NULL_FATAL(b);
        CU_ASSERT_EQUAL(b->cap, t[i].cap);
        CU_ASSERT_EQUAL((uintptr_t)b->p % 4096, 0);
        memset(b->p, 1, b->cap);
        buf_put(b);
    }
    bufpool_free(bp);
    bufpool_free(NULL);
}

static void
test_buf_refs(void)
{
    struct bufpool *bp = bufpool_new(NULL);
    struct buf *b = buf_get(bp, 5000);
    size_t idle = bufpool_idle_bytes(bp);
    uint8_t *mem = b->p;
#ifdef EVTGT_DEBUG
    CU_ASSERT_EQUAL(mem[0], 0xdb);
    CU_ASSERT_EQUAL(mem[8191], 0xdb);
#endif
    memset(mem, 3, b->cap);
    buf_ref(b);
    buf_put(b);
    CU_ASSERT_EQUAL(mem[8191], 3); /* still there */
    CU_ASSERT_EQUAL(bufpool_idle_bytes(bp), idle);
    buf_put(b);
    CU_ASSERT_EQUAL(bufpool_idle_bytes(bp), idle + 8192);
#ifdef POISON_ASAN
    CU_ASSERT_TRUE(is_poisoned(mem));
#endif
    struct buf *again = buf_get(bp, 8192);
    CU_ASSERT_PTR_EQUAL(again->p, mem); /* from the free list */
    buf_put(again);
    bufpool_free(bp);
}

static void
test_buf_distinct(void)
{
    enum { N = 600 }; /* more than two slabs of the smallest class */
    struct bufpool *bp = bufpool_new(NULL);
    struct buf *b[N];
    for (unsigned i = 0; i < N; i++) {
        b[i] = buf_get(bp, 4096);
        memset(b[i]->p, (int)(i & 255), 4096);
    }
    for (unsigned i = 0; i < N; i++) {
        CU_ASSERT_EQUAL(b[i]->p[0], (uint8_t)i);
        CU_ASSERT_EQUAL(b[i]->p[4095], (uint8_t)i);
    }
    CU_ASSERT_EQUAL(bufpool_bytes(bp), 3u << 20);
    for (unsigned i = 0; i < N; i++)
        buf_put(b[i]);
    CU_ASSERT_EQUAL(bufpool_idle_bytes(bp), 3u << 20);
    CU_ASSERT_TRUE(bufpool_can_shrink(bp));
    /* what was in use until now is kept for one period; then it goes step by step */
    bufpool_shrink(bp);
    CU_ASSERT_EQUAL(bufpool_bytes(bp), 3u << 20);
    size_t before = bufpool_bytes(bp);
    bufpool_shrink(bp);
    CU_ASSERT(bufpool_bytes(bp) < before);
    CU_ASSERT(bufpool_bytes(bp) > 0);
    for (int i = 0; i < 10; i++)
        bufpool_shrink(bp);
    CU_ASSERT_EQUAL(bufpool_bytes(bp), 0);
    CU_ASSERT_FALSE(bufpool_can_shrink(bp));
    bufpool_free(bp);
}

static void
test_buf_used_stays(void)
{
    struct bufpool *bp = bufpool_new(NULL);
    struct buf *keep = buf_get(bp, 65536);
    memset(keep->p, 7, 65536);
    for (int i = 0; i < 20; i++) {
        struct buf *b[4]; /* every period needs four more: they are never given back */
        for (int k = 0; k < 4; k++)
            b[k] = buf_get(bp, 65536);
        for (int k = 0; k < 4; k++)
            buf_put(b[k]);
        bufpool_shrink(bp);
        CU_ASSERT_EQUAL(bufpool_bytes(bp), 5u * 65536);
    }
    for (int i = 0; i < 10; i++)
        bufpool_shrink(bp);
    CU_ASSERT_EQUAL(bufpool_bytes(bp), 65536);
    CU_ASSERT_EQUAL(keep->p[65535], 7);
    buf_put(keep);
    bufpool_free(bp);
}

/* A buffer that an orphan still has outlives its pool. */
static void
test_buf_left_behind(void)
{
    struct bufpool *bp = bufpool_new(NULL);
    struct buf *b = buf_get(bp, 4096);
    buf_put(buf_get(bp, 1048576));
    bufpool_free(bp);
    memset(b->p, 9, 4096);
    CU_ASSERT_EQUAL(b->p[4095], 9);
    buf_put(b);
}

static void
test_housekeeping(void)
{
    clock_fake_set(5000000);
    struct worker_opts o = {.engine = ENGINE_POOL};
    struct worker *w = worker_new_local(&o);
    struct bufpool *bp = worker_bufs(w);
    buf_put(buf_get(bp, 1048576));
    CU_ASSERT_EQUAL(bufpool_bytes(bp), 1048576);
    for (int i = 0; i < 5; i++) {
        clock_fake_advance(1000000);
        worker_turn(w, false);
    }
    CU_ASSERT_EQUAL(bufpool_bytes(bp), 0);
    worker_free_local(w);
    clock_fake_off();
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"pool", test_pool},
        {"allocations that cannot fail", test_x},
        {"buffer classes", test_buf_classes},
        {"buffer references", test_buf_refs},
        {"buffers do not overlap, idle ones go", test_buf_distinct},
        {"buffers in use stay", test_buf_used_stays},
        {"a buffer outlives its pool", test_buf_left_behind},
        {"the worker gives idle buffers back", test_housekeeping},
    };
    return UNIT_RUN("pool", tests);
}
