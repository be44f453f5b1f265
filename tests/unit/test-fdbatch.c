/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Batches of small writes: by themselves, over a pwritev that can be held up, and by a file store
 * on a file system that uses them.
 */
#include "config.h"

#include "tests/unit/be_unit.h"

#include <linux/magic.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/statfs.h>
#include <sys/uio.h>

#include "base/counter.h"

static atomic_bool gate_shut;
static atomic_uint at_gate; /* writes that came to it */
static sem_t gate;

static ssize_t
gated_pwritev(int fd, const struct iovec *iov, int n, off_t off)
{
    atomic_fetch_add(&at_gate, 1);
    if (atomic_load(&gate_shut))
        while (sem_wait(&gate) != 0)
            ;
    return pwritev(fd, iov, n, off);
}

/* The library's own stays out: this one is linked first. */
#define pwritev gated_pwritev
#include "backends/fdbatch.c"
#undef pwritev

/* --- by themselves --------------------------------------------------------------------------- */

#define UNIT FDBATCH_UNIT
#define NONE 12345 /* over was not called */

struct req {
    struct io io;
    struct iovec iov[2];
    uint8_t data[UNIT];
    int res;
    unsigned ends;
};

static struct helper_lane lane;
static struct fdbatch *batch;
static int fd;

static void
on_over(struct io *io, int res)
{
    struct req *r = container_of(io, struct req, io);
    r->ends++;
    r->res = res;
}

static void
begin(const char *name, int flags)
{
    CU_ASSERT_EQUAL(sem_init(&gate, 0, 0), 0);
    atomic_store(&gate_shut, false);
    atomic_store(&at_gate, 0);
    helper_lane_init(&lane, 1);
    batch = fdbatch_new(bu_w, &lane, on_over);
    fd = open(bu_file(bu_dir, name, 64 * UNIT), flags | O_CLOEXEC);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
}

static void
end(void)
{
    fdbatch_free(batch);
    helper_lane_fini(&lane);
    close(fd);
    sem_destroy(&gate);
}

/* n requests, the i-th of block i, in two pieces. */
static struct req *
make(unsigned n)
{
    struct req *r = calloc(n, sizeof(*r));
    for (unsigned i = 0; i < n; i++) {
        memset(r[i].data, (int)(i + 1), UNIT);
        r[i].iov[0] = (struct iovec){r[i].data, 512};
        r[i].iov[1] = (struct iovec){r[i].data + 512, UNIT - 512};
        r[i].io = (struct io){.w = bu_w, .iov = r[i].iov, .niov = 2, .len = UNIT};
        r[i].io.offset = (uint64_t)i * UNIT;
        r[i].res = NONE;
        list_init(&r[i].io.link);
    }
    return r;
}

static void
wait_for(const atomic_uint *n, unsigned want)
{
    for (unsigned ms = 0; ms < 10000 && atomic_load(n) < want; ms++)
        bu_turn_ms(1);
    CU_ASSERT_EQUAL(atomic_load(n), want);
}

static void
wait_over(struct req *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        for (unsigned ms = 0; ms < 10000 && r[i].ends == 0; ms++)
            bu_turn_ms(1);
        CU_ASSERT_EQUAL(r[i].ends, 1);
    }
}

static void
open_gate(unsigned held)
{
    atomic_store(&gate_shut, false);
    for (unsigned i = 0; i < held; i++)
        sem_post(&gate);
}

static bool
is_in_file(unsigned block, int byte)
{
    uint8_t got[UNIT];
    CU_ASSERT_EQUAL(pread(fd, got, UNIT, (off_t)block * UNIT), UNIT);
    for (unsigned i = 0; i < UNIT; i++) {
        if (got[i] != byte)
            return false;
    }
    return true;
}

static void
test_many(void)
{
    begin("many", O_RDWR);
    struct req *r = make(60);
    uint64_t n = counter_sum(CT_DISK_BATCHED);
    for (unsigned i = 0; i < 60; i++)
        fdbatch_add(batch, &r[i].io, fd);
    CU_ASSERT_EQUAL(r[0].ends, 0); /* never inside the call */
    wait_over(r, 60);
    for (unsigned i = 0; i < 60; i++) {
        CU_ASSERT_EQUAL(r[i].res, (int)UNIT);
        CU_ASSERT_TRUE(is_in_file(i, (int)i + 1));
    }
    CU_ASSERT_EQUAL(counter_sum(CT_DISK_BATCHED), n + 60);
    free(r);
    end();
}

/* What comes while a batch is under way is the next one, and does not wait for a later turn. */
static void
test_next(void)
{
    begin("next", O_RDWR);
    struct req *r = make(5);
    atomic_store(&gate_shut, true);
    fdbatch_add(batch, &r[0].io, fd);
    wait_for(&at_gate, 1);
    for (unsigned i = 1; i < 5; i++)
        fdbatch_add(batch, &r[i].io, fd);
    bu_turn_ms(20);
    CU_ASSERT_EQUAL(atomic_load(&at_gate), 1); /* one batch at a time */
    CU_ASSERT_EQUAL(r[0].ends, 0);
    open_gate(1);
    wait_over(r, 5);
    for (unsigned i = 0; i < 5; i++)
        CU_ASSERT_TRUE(is_in_file(i, (int)i + 1));
    free(r);
    end();
}

/* Taken back before a helper has it: not written, `over` not called. The batch may go at once,
 * though its worker was asked to start it. */
static void
test_cancel_waiting(void)
{
    begin("waiting", O_RDWR);
    struct req *r = make(3);
    fdbatch_add(batch, &r[0].io, fd);
    fdbatch_add(batch, &r[1].io, fd);
    CU_ASSERT_TRUE(fdbatch_cancel(batch, &r[0].io));
    CU_ASSERT_FALSE(fdbatch_cancel(batch, &r[0].io)); /* it has gone */
    wait_over(&r[1], 1);
    CU_ASSERT_EQUAL(r[0].ends, 0);
    CU_ASSERT_TRUE(is_in_file(0, 0));
    CU_ASSERT_TRUE(is_in_file(1, 2));
    fdbatch_add(batch, &r[2].io, fd);
    CU_ASSERT_TRUE(fdbatch_cancel(batch, &r[2].io));
    end();
    bu_turn_ms(5);
    free(r);
}

static void
test_cancel_running(void)
{
    begin("running", O_RDWR);
    struct req *r = make(3);
    atomic_store(&gate_shut, true);
    fdbatch_add(batch, &r[0].io, fd);
    wait_for(&at_gate, 1);
    fdbatch_add(batch, &r[1].io, fd);
    fdbatch_add(batch, &r[2].io, fd);
    CU_ASSERT_FALSE(fdbatch_cancel(batch, &r[0].io));
    CU_ASSERT_TRUE(fdbatch_cancel(batch, &r[1].io));
    open_gate(1);
    wait_over(&r[0], 1);
    wait_over(&r[2], 1);
    CU_ASSERT_EQUAL(r[0].res, (int)UNIT);
    CU_ASSERT_EQUAL(r[1].ends, 0);
    CU_ASSERT_TRUE(is_in_file(1, 0));
    free(r);
    end();
}

static void
hold_run(struct helper_job *job)
{
    (void)job;
    while (sem_wait(&gate) != 0)
        ;
}

static void
hold_done(struct helper_job *job)
{
    (void)job;
}

/* The store's lane is full of what hangs: a batch that was launched waits in it, and what is in
 * the batch can still be taken back. */
static void
test_cancel_launched(void)
{
    begin("launched", O_RDWR);
    struct req *r = make(4);
    struct helper_job hold = {.run = hold_run, .done = hold_done, .w = bu_w, .lane = &lane};
    helper_submit(&hold);
    for (unsigned i = 0; i < 3; i++)
        fdbatch_add(batch, &r[i].io, fd);
    bu_turn_ms(5); /* launched */
    fdbatch_add(batch, &r[3].io, fd);
    CU_ASSERT_TRUE(fdbatch_cancel(batch, &r[1].io));
    CU_ASSERT_FALSE(fdbatch_cancel(batch, &r[1].io));
    bu_turn_ms(5);
    for (unsigned i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(r[i].ends, 0);
    CU_ASSERT_TRUE(fdbatch_cancel(batch, &r[0].io));
    sem_post(&gate);
    wait_over(&r[2], 2);
    CU_ASSERT_EQUAL(r[0].ends + r[1].ends, 0);
    CU_ASSERT_TRUE(is_in_file(0, 0));
    CU_ASSERT_TRUE(is_in_file(2, 3));
    CU_ASSERT_TRUE(is_in_file(3, 4));
    free(r);
    end();
}

static void
test_cancel_all_launched(void)
{
    begin("launched-all", O_RDWR);
    struct req *r = make(2);
    struct helper_job hold = {.run = hold_run, .done = hold_done, .w = bu_w, .lane = &lane};
    helper_submit(&hold);
    for (unsigned i = 0; i < 2; i++)
        fdbatch_add(batch, &r[i].io, fd);
    bu_turn_ms(5);
    CU_ASSERT_TRUE(fdbatch_cancel(batch, &r[0].io));
    CU_ASSERT_TRUE(fdbatch_cancel(batch, &r[1].io));
    sem_post(&gate);
    bu_turn_ms(20);
    CU_ASSERT_EQUAL(r[0].ends + r[1].ends, 0);
    CU_ASSERT_EQUAL(atomic_load(&at_gate), 0);
    free(r);
    end();
}

/* Errors are those of the call; one request's are not its neighbours'. */
static void
test_errors(void)
{
    begin("errors", O_RDONLY);
    int rw = open(bu_file(bu_dir, "errors2", 64 * UNIT), O_RDWR | O_CLOEXEC);
    struct req *r = make(3);
    fdbatch_add(batch, &r[0].io, rw);
    fdbatch_add(batch, &r[1].io, fd);
    fdbatch_add(batch, &r[2].io, rw);
    wait_over(r, 3);
    CU_ASSERT_EQUAL(r[0].res, (int)UNIT);
    CU_ASSERT_EQUAL(r[1].res, -EBADF);
    CU_ASSERT_EQUAL(r[2].res, (int)UNIT);
    close(rw);
    free(r);
    end();
}

/* --- by a file store ------------------------------------------------------------------------- */

static bool
is_ext4(void)
{
    struct statfs fs;
    CU_ASSERT_EQUAL(statfs(bu_dir, &fs), 0);
    if (fs.f_type == EXT4_SUPER_MAGIC)
        return true;
    printf("(SKIP: %s is not on ext4) ", bu_dir);
    return false;
}

static uint64_t
batched_by(struct backend *be, uint64_t off, const void *p, uint64_t len, unsigned flags)
{
    uint64_t before = counter_sum(CT_DISK_BATCHED);
    uint8_t *got = bu_mem(64 * KIB, 2);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, off, (void *)(uintptr_t)p, len, flags), 0);
    uint64_t n = counter_sum(CT_DISK_BATCHED) - before;
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, off, got, len, 0), 0); /* at once there for a READ */
    CU_ASSERT_EQUAL(memcmp(got, p, len), 0);
    free(got);
    return n;
}

/* Which writes go by batches: whole pages, few, that need not be durable. */
static void
test_which(void)
{
    if (!is_ext4())
        return;
    uint8_t *p = bu_mem(64 * KIB, 1);
    const char *path = bu_file(bu_dir, "which", MIB);
    struct backend *be = bu_open("fileio", path, false, NULL);
    CU_ASSERT_EQUAL(batched_by(be, 0, p, 4 * KIB, 0), 1);
    CU_ASSERT_EQUAL(batched_by(be, 64 * KIB, p, 8 * KIB, 0), 1);
    CU_ASSERT_EQUAL(batched_by(be, 0, p, 12 * KIB, 0), 0);
    CU_ASSERT_EQUAL(batched_by(be, 0, p, 512, 0), 0);
    CU_ASSERT_EQUAL(batched_by(be, 512, p, 4 * KIB, 0), 0);
    CU_ASSERT_EQUAL(batched_by(be, 0, p, 4 * KIB, IO_FUA), 0);
    be_set_write_cache(be, false);
    CU_ASSERT_EQUAL(batched_by(be, 0, p, 4 * KIB, 0), 0);
    be_set_write_cache(be, true);
    CU_ASSERT_EQUAL(batched_by(be, 4 * KIB, p, 4 * KIB, 0), 1);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    bu_close(be);
    be = bu_open("fileio", path, true, NULL);
    CU_ASSERT_EQUAL(batched_by(be, 0, p, 4 * KIB, 0), 0);
    bu_close(be);
    free(p);
}

/* A block in a hole that was read costs that block, not what the page cache put round it. */
static void
test_hole(void)
{
    if (!is_ext4())
        return;
    struct stat st;
    const char *path = bu_file(bu_dir, "hole", 16 * MIB);
    uint8_t *p = bu_mem(MIB, 1);
    struct backend *be = bu_open("fileio", path, false, NULL);
    for (unsigned i = 0; i < 16; i++)
        CU_ASSERT_EQUAL(bu_do(be, IO_READ, i * MIB, p, MIB, 0), 0);
    memset(p, 7, 4 * KIB);
    CU_ASSERT_EQUAL(batched_by(be, 9 * MIB + 8 * KIB, p, 4 * KIB, 0), 1);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    CU_ASSERT_TRUE(st.st_blocks * 512 >= 4 * KIB && st.st_blocks * 512 <= 16 * KIB);
    bu_close(be);
    free(p);
}

/* Cut before anybody has looked: what is acknowledged is there, as with any write. */
static void
test_cut(void)
{
    if (!is_ext4())
        return;
    const char *path = bu_file(bu_dir, "cut", 64 * KIB);
    uint8_t *p = bu_mem(4 * KIB, 1), got[4 * KIB];
    struct backend *be = bu_open("fileio", path, false, NULL);
    CU_ASSERT_EQUAL(batched_by(be, 8 * KIB, p, 4 * KIB, 0), 1);
    CU_ASSERT_EQUAL(truncate(path, 9 * KIB), 0); /* inside that page */
    CU_ASSERT_EQUAL(batched_by(be, 8 * KIB, p, 4 * KIB, 0), 1);
    int f = open(path, O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL(pread(f, got, sizeof(got), 8 * KIB), (ssize_t)sizeof(got));
    CU_ASSERT_EQUAL(memcmp(got, p, sizeof(got)), 0);
    close(f);
    CU_ASSERT_EQUAL(truncate(path, 0), 0);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_SHRANK);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 8 * KIB, p, 4 * KIB, 0), -EIO);
    bu_close(be);
    free(p);
}

/* Canceled, or closed and opened again, while batches are under way: each ends once, on its own
 * descriptor. */
static void
test_store_cancel_and_reopen(void)
{
    enum { N = 40 };
    if (!is_ext4())
        return;
    const char *path = bu_file(bu_dir, "reopen", MIB);
    struct bu_io *b = calloc(N, sizeof(*b));
    uint8_t *p = bu_mem(N * UNIT, 1);
    struct backend *be = bu_open("fileio", path, false, NULL);
    atomic_store(&at_gate, 0);
    CU_ASSERT_EQUAL(sem_init(&gate, 0, 0), 0);
    atomic_store(&gate_shut, true);
    for (unsigned i = 0; i < N; i++) {
        bu_start(be, &b[i], IO_WRITE, i * UNIT, p + i * UNIT, UNIT, 0);
        if (i == N / 2 - 1)
            wait_for(&at_gate, 1);
    }
    for (unsigned i = 1; i < N; i += 4)
        be_cancel(&b[i].io);
    be_close(be);
    open_gate(1);
    for (unsigned i = 0; i < N; i++) {
        int res = bu_wait(&b[i]);
        CU_ASSERT_TRUE(res == 0 || (res == -ECANCELED && i % 4 == 1));
        CU_ASSERT_FALSE(res == 0 && i % 4 == 1 && i >= N / 2); /* these had only waited */
    }
    CU_ASSERT_EQUAL(be_open(be), 0);
    uint8_t *got = bu_mem(N * UNIT, 2);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, got, N * UNIT, 0), 0);
    for (unsigned i = 0; i < N; i++)
        CU_ASSERT_TRUE(b[i].res != 0 || memcmp(got + i * UNIT, p + i * UNIT, UNIT) == 0);
    bu_close(be);
    sem_destroy(&gate);
    free(b);
    free(p);
    free(got);
}

int
main(void)
{
    static const struct bu_case cases[] = {
        {"many in one batch", test_many},
        {"the next while one runs", test_next},
        {"cancel while waiting", test_cancel_waiting},
        {"cancel while another runs", test_cancel_running},
        {"cancel in a batch that waits for a helper", test_cancel_launched},
        {"cancel all of such a batch", test_cancel_all_launched},
        {"errors", test_errors},
        {"which writes a file store batches", test_which},
        {"a hole that was read", test_hole},
        {"a file that is cut", test_cut},
        {"cancel, close and open under batches", test_store_cancel_and_reopen},
    };
    return bu_main("fdbatch", cases, sizeof(cases) / sizeof(cases[0]));
}
