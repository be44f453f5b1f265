/* SPDX-License-Identifier: BSD-2-Clause */
/* guard_copy: a mapped file that is cut is an answer, again and again, on any thread. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/helper.h"
#include "base/worker.h"
#include "tests/unit/unit.h"

#define PAGE 4096u

static uint8_t *map;
static int fd;

static void
test_copies(void)
{
    uint8_t buf[PAGE];
    memset(buf, 7, sizeof buf);
    CU_ASSERT(guard_copy(map, buf, sizeof buf));
    memset(buf, 0, sizeof buf);
    CU_ASSERT(guard_copy(buf, map, sizeof buf));
    CU_ASSERT(buf[0] == 7 && buf[PAGE - 1] == 7);
}

static void *
cut_copies(void *arg)
{
    uint8_t buf[2 * PAGE] = {0};
    for (unsigned i = 0; i < 3; i++) {
        CU_ASSERT(!guard_copy(buf, map + PAGE, PAGE));
        CU_ASSERT(!guard_copy(map + PAGE, buf, PAGE));
        CU_ASSERT(!guard_copy(map, buf, 2 * PAGE));
        CU_ASSERT(guard_copy(buf, map, PAGE));
    }
    return arg;
}

/* Workers and helpers block signals, but not those of their own faults. */
static void
on_worker(struct worker *w, void *arg)
{
    (void)w;
    cut_copies(NULL);
    atomic_store((atomic_bool *)arg, true);
}

static void
helper_run(struct helper_job *job)
{
    (void)job;
    cut_copies(NULL);
}

static void
helper_done(struct helper_job *job)
{
    job->w = NULL;
}

static void
test_cut(void)
{
    pthread_t t;
    static atomic_bool seen;
    struct helper_job job = {.run = helper_run, .done = helper_done};
    CU_ASSERT_EQUAL(ftruncate(fd, PAGE), 0);
    cut_copies(NULL);
    CU_ASSERT_EQUAL(pthread_create(&t, NULL, cut_copies, NULL), 0);
    pthread_join(t, NULL);
    CU_ASSERT_EQUAL_FATAL(helper_pool_start(1, 2), 0);
    struct worker *w = worker_start(&(struct worker_opts){.engine = ENGINE_POOL});
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    worker_post(w, on_worker, &seen);
    while (!atomic_load(&seen))
        clock_pause_ms(1);
    worker_stop(w);
    worker_join(w);
    struct worker *l = worker_new_local(&(struct worker_opts){.engine = ENGINE_POOL});
    job.w = l;
    helper_submit(&job);
    while (job.w)
        worker_turn(l, true);
    worker_free_local(l);
    helper_pool_stop();
    CU_ASSERT_EQUAL(ftruncate(fd, 2 * PAGE), 0);
    test_copies();
}

int
main(void)
{
    guard_init();
    guard_init();
    fd = memfd_create("guard", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, 2 * PAGE) != 0)
        return 1;
    map = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return 1;
    static const struct unit_test tests[] = {
        {"copies", test_copies},
        {"cut files", test_cut},
    };
    return UNIT_RUN("guard", tests);
}
