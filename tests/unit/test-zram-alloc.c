/* SPDX-License-Identifier: BSD-2-Clause */
/* backends/zram_alloc.c, zram_compact.c: slots, what they cost, limits, moving, giving back. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/zram_alloc.h"
#include "backends/zram_store.h"
#include "base/clock.h"
#include "tests/unit/unit.h"

#define MANY 20000u

static struct zram_alloc *a;
static struct zram_mem mem;
static uint32_t rng = 1;

struct object {
    uint64_t handle;
    uint32_t size; /* 0: not there */
};

static struct object objects[MANY];

static uint32_t
next(void)
{
    rng = rng * 1664525u + 1013904223u;
    return rng >> 8;
}

static void
set_up(uint64_t limit)
{
    a = aligned_alloc(64, sizeof(*a));
    memset(a, 0, sizeof(*a));
    memset(objects, 0, sizeof(objects));
    zram_mem_init(&mem, limit);
    CU_ASSERT_EQUAL_FATAL(zram_alloc_open(a, &mem, UINT64_C(1) << 30), 0);
}

static void
tear_down(void)
{
    zram_alloc_close(a);
    CU_ASSERT_EQUAL(atomic_load(&mem.used), 0);
    free(a);
}

/* Every byte tells whose it is. */
static void
fill(uint32_t i)
{
    uint8_t *p = zram_alloc_ptr(a, objects[i].handle);
    for (uint32_t k = 0; k < objects[i].size; k++)
        p[k] = (uint8_t)(i * 7u + k);
}

static bool
is_whole(uint32_t i)
{
    const uint8_t *p = zram_alloc_ptr(a, objects[i].handle);
    for (uint32_t k = 0; k < objects[i].size; k++)
        if (p[k] != (uint8_t)(i * 7u + k))
            return false;
    return true;
}

static int
get(uint32_t i, uint32_t size)
{
    int err = zram_alloc_get(a, size, i, &objects[i].handle);
    if (err != 0)
        return err;
    objects[i].size = size;
    fill(i);
    return 0;
}

static void
put(uint32_t i)
{
    zram_alloc_put(a, objects[i].handle);
    objects[i].size = 0;
}

static void
check_all(void)
{
    unsigned bad = 0;
    for (uint32_t i = 0; i < MANY; i++)
        bad += objects[i].size != 0 && !is_whole(i);
    CU_ASSERT_EQUAL(bad, 0);
}

/* Each size from 1 to 64 KiB has a slot that is large enough and little larger. */
static void
test_sizes(void)
{
    set_up(0);
    unsigned bad = 0;
    for (uint32_t size = 1; size <= 65536; size += size < 5000 ? 1 : 61) {
        CU_ASSERT_EQUAL_FATAL(get(0, size), 0);
        uint32_t room = zram_alloc_room(a, objects[0].handle);
        bad += room < size || (size >= 32 && room - size > (size <= 4096 ? 15 : size / 64));
        bad += !zram_alloc_suits(a, objects[0].handle, size) ||
               zram_alloc_suits(a, objects[0].handle, room + 1 <= 65536 ? room + 1 : 1);
        bad += !is_whole(0);
        put(0);
    }
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT_EQUAL(get(0, 65536), 0);
    CU_ASSERT_EQUAL(zram_alloc_room(a, objects[0].handle), 65536);
    put(0);
    CU_ASSERT_EQUAL(atomic_load(&mem.used), 0);
    tear_down();
}

/* Objects of many sizes cost no more than 3 % and a page or two a class; nothing when they went. */
static void
test_cost(void)
{
    set_up(0);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t size = 1000 + next() % 3000;
        CU_ASSERT_EQUAL(get(i, size), 0);
        sum += size;
    }
    CU_ASSERT(atomic_load(&mem.used) < sum + sum * 3 / 100 + 190 * 2 * ZRAM_PAGE);
    check_all();
    for (uint32_t i = 0; i < MANY; i++)
        put(i);
    CU_ASSERT_EQUAL(atomic_load(&mem.used), 0);
    CU_ASSERT_EQUAL(atomic_load(&a->filled), 0);
    tear_down();
}

/* --- compaction ------------------------------------------------------------------------------ */

static unsigned refuse; /* one move in so many */
static unsigned wrong_moves;

static bool
move(void *arg, uint32_t owner, uint64_t from, uint64_t to, uint32_t room)
{
    (void)arg;
    struct object *o = &objects[owner];
    if (o->size == 0 || o->handle != from || room < o->size)
        wrong_moves++;
    if (refuse != 0 && next() % refuse == 0)
        return false;
    memcpy(zram_alloc_ptr(a, to), zram_alloc_ptr(a, from), o->size);
    o->handle = to;
    return true;
}

static uint64_t
live_bytes(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < MANY; i++)
        sum += objects[i].size;
    return sum;
}

/* Random ends of life, then compaction: what is left is whole, and lies close together. */
static void
compact_after(unsigned keep_one_in, unsigned steps_us)
{
    wrong_moves = 0;
    for (uint32_t i = 0; i < MANY; i++) {
        if (objects[i].size != 0 && next() % keep_one_in != 0)
            put(i);
        else if (objects[i].size == 0 && next() % 8 == 0)
            CU_ASSERT_EQUAL(get(i, 1000 + next() % 3000), 0);
    }
    uint64_t before = atomic_load(&mem.used);
    struct zram_compact job = {.move = move};
    unsigned rounds = 0;
    bool again = true;
    for (; again && rounds < 100000; rounds++) {
        job.until_us = steps_us != 0 ? clock_us() + steps_us : 0;
        again = zram_alloc_compact(a, &job);
    }
    CU_ASSERT(!again);
    CU_ASSERT(rounds == 1 || steps_us != 0);
    CU_ASSERT_EQUAL(wrong_moves, 0);
    CU_ASSERT_EQUAL((int64_t)(before - atomic_load(&mem.used)), job.gained);
    CU_ASSERT(job.moved <= job.seen);
    check_all();
    if (refuse == 0)
        CU_ASSERT(atomic_load(&mem.used) <
                  live_bytes() + live_bytes() * 3 / 100 + 190 * 3 * ZRAM_PAGE);
    CU_ASSERT_EQUAL(atomic_load(&mem.used), atomic_load(&a->taken));
}

static void
test_compact(void)
{
    set_up(0);
    for (uint32_t i = 0; i < MANY; i++)
        CU_ASSERT_EQUAL(get(i, 1000 + next() % 3000), 0);
    compact_after(2, 0);
    compact_after(3, 100);
    refuse = 3;
    compact_after(2, 0);
    refuse = 0;
    compact_after(10, 0);
    for (uint32_t i = 0; i < MANY; i++)
        if (objects[i].size != 0)
            put(i);
    CU_ASSERT_EQUAL(atomic_load(&mem.used), 0);
    tear_down();
}

/* A segment that is still being filled takes part. */
static void
test_compact_end(void)
{
    set_up(0);
    for (uint32_t i = 0; i < 60; i++)
        CU_ASSERT_EQUAL(get(i, 4096), 0);
    for (uint32_t i = 10; i < 60; i++)
        put(i);
    CU_ASSERT(atomic_load(&mem.used) >= 60 * ZRAM_PAGE);
    struct zram_compact job = {.move = move};
    CU_ASSERT(!zram_alloc_compact(a, &job));
    CU_ASSERT_EQUAL(job.moved, 10);
    CU_ASSERT(atomic_load(&mem.used) <= 12 * ZRAM_PAGE);
    check_all();
    for (uint32_t i = 10; i < 60; i++)
        CU_ASSERT_EQUAL(get(i, 4096), 0);
    check_all();
    tear_down();
}

static bool
move_nothing(void *arg, uint32_t owner, uint64_t from, uint64_t to, uint32_t room)
{
    (void)arg;
    (void)room;
    if (objects[owner].handle != from)
        return false;
    objects[owner].handle = to;
    return true;
}

/* What is large takes 2 MiB at a time; that and small memory alike goes back. */
static void
test_huge(void)
{
    const uint32_t n = 2600, size = 65536;
    const uint64_t step = 2u << 20;
    uint64_t most = 0;
    set_up(0);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t before = atomic_load(&mem.used);
        CU_ASSERT_EQUAL(zram_alloc_get(a, size, i, &objects[i].handle), 0);
        uint64_t grew = atomic_load(&mem.used) - before;
        most = grew > most ? grew : most;
        CU_ASSERT(before > 10 * step || grew <= size + ZRAM_PAGE);
    }
    CU_ASSERT_EQUAL(most, step);
    CU_ASSERT(atomic_load(&mem.used) < (uint64_t)n * size * 102 / 100 + step);
    for (uint32_t i = 0; i < n; i++)
        if (i % 3 != 0)
            zram_alloc_put(a, objects[i].handle);
    struct zram_compact job = {.move = move_nothing};
    CU_ASSERT(!zram_alloc_compact(a, &job));
    CU_ASSERT(job.moved > n / 6);
    CU_ASSERT(atomic_load(&mem.used) < (uint64_t)n * size / 3 * 104 / 100 + 2 * step);
    for (uint32_t i = 0; i < n; i += 3)
        zram_alloc_put(a, objects[i].handle);
    CU_ASSERT_EQUAL(atomic_load(&mem.used), 0);
    tear_down();
}

/* --- limits ---------------------------------------------------------------------------------- */

static void
test_limit(void)
{
    set_up(2u << 20);
    uint32_t n = 0;
    while (get(n, 2000 + n % 500) == 0)
        n++;
    CU_ASSERT(n > 500 && n < 1100);
    CU_ASSERT(atomic_load(&mem.used) <= 2u << 20);
    check_all();
    /* A hole among larger ones will do, one among smaller ones will not. */
    put(450);
    CU_ASSERT_EQUAL(get(MANY - 1, 4000), -ENOSPC);
    CU_ASSERT_EQUAL(get(MANY - 2, 1500), 0);
    CU_ASSERT_EQUAL(objects[MANY - 2].handle == objects[450].handle || is_whole(MANY - 2), true);
    check_all();
    atomic_store(&mem.limit, 0);
    CU_ASSERT_EQUAL(get(MANY - 1, 4000), 0);
    uint64_t had = zram_process_limit();
    zram_process_set_limit(zram_process_used());
    CU_ASSERT_EQUAL(get(MANY - 3, 60000), -ENOSPC);
    zram_process_set_limit(had);
    CU_ASSERT_EQUAL(get(MANY - 3, 60000), 0);
    check_all();
    tear_down();
    CU_ASSERT_EQUAL(zram_process_used(), 0);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"sizes", test_sizes},        {"what objects cost", test_cost},
        {"compaction", test_compact}, {"compaction of an end", test_compact_end},
        {"large stores", test_huge},  {"limits", test_limit},
    };
    return UNIT_RUN("zram-alloc", tests);
}
