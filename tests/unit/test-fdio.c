/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * backends/fdio.c over a scripted disk engine: what the kernel may answer and files seldom do.
 */
#include "config.h"

#define disk_submit script_submit
#define disk_cancel script_cancel
#include "backends/fdio.c"
#undef disk_submit
#undef disk_cancel

#include "tests/unit/be_unit.h"

/* What the next requests answer, and what they were. */
#define STEPS 16
static int answer[STEPS];
static unsigned nsteps, steps_done;
static struct disk_req *held; /* the request that waits for its answer */
static struct {
    enum disk_op op;
    int fd, rwf, mode;
    unsigned niov;
    uint64_t off, len;
} seen[STEPS];
static unsigned ncancel;

static struct deferred later;

static void
on_later(struct deferred *d)
{
    (void)d;
    struct disk_req *req = held;
    held = NULL;
    req->done(req, answer[steps_done++]);
}

void
script_submit(struct worker *w, struct disk_req *req)
{
    unsigned i = steps_done;
    CU_ASSERT_TRUE_FATAL(i < nsteps && held == NULL);
    held = req;
    seen[i].op = req->op;
    seen[i].fd = req->fd;
    seen[i].rwf = req->rwf;
    seen[i].mode = req->mode;
    seen[i].niov = req->niov;
    seen[i].off = req->off;
    seen[i].len = req->len;
    if (req->op == DISK_READV || req->op == DISK_WRITEV) {
        seen[i].len = 0;
        for (unsigned k = 0; k < req->niov; k++)
            seen[i].len += req->iov[k].iov_len;
    }
    deferred_init(&later, on_later);
    worker_defer(w, &later);
}

void
script_cancel(struct disk_req *req)
{
    CU_ASSERT_EQUAL(req, held);
    ncancel++;
}

static int
script_open(struct backend *be)
{
    struct fdio *f = be->priv;
    struct be_info in = {
        .size = 64 * MIB, .block_size = 512, .mem_align = 1, .caps = BE_CAP_DISCARD | BE_CAP_ZERO};
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC), fd2 = open("/dev/null", O_RDWR | O_CLOEXEC);
    atomic_store(&f->usable, in.size);
    fdio_attach(f, &(struct fdio_fd){.fd = fd, .buffered = fd2, .dio_off = 4096, .dio_mem = 512});
    return be_publish(be, &in, "script");
}

static void
script_init(struct backend *be)
{
    fdio_init(be->priv);
}

static void
script_close(struct backend *be)
{
    fdio_detach(be->priv);
}

static void
script_destroy(struct backend *be)
{
    fdio_fini(be->priv);
}

static const struct be_ops script_ops = {
    .type = "script",
    .init = script_init,
    .open = script_open,
    .close = script_close,
    .submit = fdio_submit,
    .cancel = fdio_cancel,
    .destroy = script_destroy,
    .priv_size = sizeof(struct fdio),
};

static struct backend *be;
static int fd_direct, fd_buffered;

static void
script(unsigned n, const int *answers)
{
    memset(seen, 0, sizeof(seen));
    nsteps = n;
    steps_done = ncancel = 0;
    for (unsigned i = 0; i < n; i++)
        answer[i] = answers[i];
}

#define SCRIPT(...) script(sizeof((int[]){__VA_ARGS__}) / sizeof(int), (int[]){__VA_ARGS__})

/* be_new knows no such type: the null store, with other operations. */
static void
begin(void)
{
    char err[64];
    be = be_new(&(struct be_opts){.type = "null", .write_cache = true}, err, sizeof(err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(be);
    be->ops = &script_ops;
    free(be->priv);
    be->priv = calloc(1, sizeof(struct fdio));
    script_init(be);
    CU_ASSERT_EQUAL_FATAL(be_open(be), 0);
    const struct fdio_fd *ff = fdio_current(be->priv);
    fd_direct = ff->fd;
    fd_buffered = ff->buffered;
}

static void
end(void)
{
    CU_ASSERT_EQUAL(steps_done, nsteps);
    bu_close(be);
}

static void
test_short_transfers(void)
{
    begin();
    uint8_t *p = bu_mem(64 * KIB, 1);
    struct iovec iov[3] = {{p, 8192}, {p + 8192, 8192}, {p + 16384, 4096}};
    struct bu_io b = {.io = {.iov = iov, .niov = 3}};
    SCRIPT(4096, 8192, -EINTR, 512, 7680);
    bu_start(be, &b, IO_WRITE, 4096, NULL, 20480, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    static const uint64_t offs[] = {4096, 8192, 16384, 16384, 16896};
    static const uint64_t lens[] = {20480, 16384, 8192, 8192, 7680};
    static const unsigned n[] = {3, 3, 2, 2, 2};
    for (unsigned i = 0; i < 5; i++) {
        CU_ASSERT_EQUAL(seen[i].off, offs[i]);
        CU_ASSERT_EQUAL(seen[i].len, lens[i]);
        CU_ASSERT_EQUAL(seen[i].niov, n[i]);
        CU_ASSERT_EQUAL(seen[i].rwf, 0);
        /* what no longer fits O_DIRECT goes to the other descriptor */
        CU_ASSERT_EQUAL(seen[i].fd, i < 4 ? fd_direct : fd_buffered);
    }
    free(p);
    end();
}

static void
test_end_of_file(void)
{
    begin();
    uint8_t *p = bu_mem(8192, 1);
    struct bu_io b = {0};
    SCRIPT(4096, 0);
    bu_start(be, &b, IO_READ, 0, p, 8192, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), -EIO);
    CU_ASSERT_EQUAL(b.io.fail_offset, 4096);
    end();
    begin();
    SCRIPT(0); /* a write that gets nowhere must not turn for ever */
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 8192, 0), -EIO);
    end();
    free(p);
}

static void
test_unaligned(void)
{
    begin();
    uint8_t *p = bu_mem(16384, 1);
    SCRIPT(4096, 512, 512, 4096, 4096);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 4096, p, 4096, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 4096, p, 512, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 512, p, 512, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 4096, p + 8, 4096, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 4096, p + 512, 4096, 0), 0);
    CU_ASSERT_EQUAL(seen[0].fd, fd_direct);
    CU_ASSERT_EQUAL(seen[1].fd, fd_buffered);
    CU_ASSERT_EQUAL(seen[2].fd, fd_buffered);
    CU_ASSERT_EQUAL(seen[3].fd, fd_buffered);
    CU_ASSERT_EQUAL(seen[4].fd, fd_direct);
    free(p);
    end();
}

/* FUA is asked for on every piece; want of space is looked into. */
static void
test_fua_write(void)
{
    uint8_t *p = bu_mem(8192, 1);
    begin();
    SCRIPT(4096, 4096);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 8192, IO_FUA), 0);
    CU_ASSERT_EQUAL(seen[0].rwf, RWF_DSYNC);
    CU_ASSERT_EQUAL(seen[1].rwf, RWF_DSYNC);
    end();
    begin(); /* the write itself has no space */
    SCRIPT(4096, -ENOSPC, -ENOSPC);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 8192, IO_FUA), -ENOSPC);
    CU_ASSERT_EQUAL(seen[2].rwf, 0);
    CU_ASSERT_EQUAL(seen[2].off, 4096);
    CU_ASSERT_FALSE(be_flush_failed(be));
    end();
    begin(); /* its sync has not: some page was lost */
    SCRIPT(-EDQUOT, 8192);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 8192, IO_FUA), -EIO);
    CU_ASSERT_TRUE(be_flush_failed(be));
    end();
    begin();
    SCRIPT(-EIO);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 8192, IO_FUA), -EIO);
    CU_ASSERT_TRUE(be_flush_failed(be));
    end();
    begin();
    SCRIPT(-ENOSPC); /* without FUA it is simply so */
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 8192, 0), -ENOSPC);
    CU_ASSERT_FALSE(be_flush_failed(be));
    end();
    free(p);
}

static void
test_flush(void)
{
    begin();
    SCRIPT(-EINTR, 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    CU_ASSERT_EQUAL(seen[1].op, DISK_FDATASYNC);
    end();
    begin();
    SCRIPT(-ENOSPC);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), -ENOSPC);
    CU_ASSERT_TRUE(be_flush_failed(be)); /* a page that found no space is lost */
    end();
    begin();
    SCRIPT(-ENXIO);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), -ENXIO);
    CU_ASSERT_TRUE(be_flush_failed(be));
    end();
}

static void
test_fallocate(void)
{
    begin();
    SCRIPT(0, 0, 0, -EINTR, 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_DISCARD, 4096, NULL, 8192, 0), 0);
    CU_ASSERT_EQUAL(seen[0].op, DISK_FALLOCATE);
    CU_ASSERT_EQUAL(seen[0].mode, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
    CU_ASSERT_EQUAL(seen[0].off, 4096);
    CU_ASSERT_EQUAL(seen[0].len, 8192);
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 4096, NULL, 8192, IO_FUA), 0);
    CU_ASSERT_EQUAL(seen[1].mode, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
    CU_ASSERT_EQUAL(seen[2].op, DISK_FDATASYNC);
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 4096, NULL, 8192, 0), 0);
    end();
    begin(); /* the sync behind a FUA zero has no space: that is lost data */
    SCRIPT(0, -ENOSPC);
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 4096, NULL, 8192, IO_FUA), -EIO);
    CU_ASSERT_TRUE(be_flush_failed(be));
    end();
    begin(); /* the zeroing itself: refused, nothing lost */
    SCRIPT(-ENOSPC);
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 4096, NULL, 8192, IO_FUA), -ENOSPC);
    CU_ASSERT_FALSE(be_flush_failed(be));
    end();
}

/* No holes, no ZERO_RANGE: writes of zeros, and no second question. */
static void
test_zero_by_writes(void)
{
    begin();
    SCRIPT(-EOPNOTSUPP, -EOPNOTSUPP, MIB, MIB, 4096, 4096);
    struct bu_io b = {0};
    bu_start(be, &b, IO_DISCARD, 4096, NULL, 2 * MIB + 4096, IO_FUA);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    CU_ASSERT_EQUAL(b.io.op, IO_DISCARD);
    CU_ASSERT_EQUAL(b.io.offset, 4096);
    CU_ASSERT_EQUAL(b.io.len, 2 * MIB + 4096);
    for (unsigned i = 2; i < 5; i++) {
        CU_ASSERT_EQUAL(seen[i].op, DISK_WRITEV);
        CU_ASSERT_EQUAL(seen[i].rwf, RWF_DSYNC);
        CU_ASSERT_EQUAL(seen[i].off, 4096 + (i - 2) * MIB);
        CU_ASSERT_EQUAL(seen[i].fd, fd_direct); /* the zeros are aligned */
    }
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 0, NULL, 4096, 0), 0);
    CU_ASSERT_EQUAL(seen[5].op, DISK_WRITEV);
    end();
    begin();
    SCRIPT(-EOPNOTSUPP, MIB, -EIO);
    bu_start(be, &b, IO_ZERO, 0, NULL, 4 * MIB, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), -EIO);
    CU_ASSERT_EQUAL(b.io.fail_offset, MIB);
    end();
}

static void
test_cancel(void)
{
    uint8_t *p = bu_mem(8192, 1);
    struct bu_io b = {0};
    begin();
    SCRIPT(-ECANCELED);
    bu_start(be, &b, IO_WRITE, 0, p, 8192, IO_FUA);
    be_cancel(&b.io);
    CU_ASSERT_EQUAL(bu_wait(&b), -ECANCELED);
    CU_ASSERT_EQUAL(ncancel, 1);
    CU_ASSERT_FALSE(be_flush_failed(be));
    end();
    begin(); /* too late to take back, but the rest of it does not start */
    SCRIPT(4096);
    bu_start(be, &b, IO_WRITE, 0, p, 8192, 0);
    be_cancel(&b.io);
    CU_ASSERT_EQUAL(bu_wait(&b), -ECANCELED);
    CU_ASSERT_EQUAL(b.io.fail_offset, 4096);
    end();
    begin(); /* all done: success, whatever was asked meanwhile */
    SCRIPT(8192);
    bu_start(be, &b, IO_READ, 0, p, 8192, 0);
    be_cancel(&b.io);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    end();
    begin();
    SCRIPT(-EOPNOTSUPP, MIB);
    bu_start(be, &b, IO_ZERO, 0, NULL, 4 * MIB, 0);
    be_cancel(&b.io);
    CU_ASSERT_EQUAL(bu_wait(&b), -ECANCELED);
    CU_ASSERT_EQUAL(b.io.op, IO_ZERO);
    end();
    free(p);
}

/* The descriptor of a request under way outlives close, and a new open. */
static void
test_close_meanwhile(void)
{
    uint8_t *p = bu_mem(8192, 1);
    struct bu_io b = {0};
    begin();
    int old = fd_direct;
    SCRIPT(4096, 4096, 4096);
    bu_start(be, &b, IO_WRITE, 0, p, 8192, 0);
    be_close(be);
    CU_ASSERT_TRUE(fcntl(old, F_GETFD) >= 0);
    CU_ASSERT_EQUAL(be_open(be), 0);
    const struct fdio_fd *ff = fdio_current(be->priv);
    CU_ASSERT_NOT_EQUAL(ff->fd, old);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    CU_ASSERT_EQUAL(seen[1].fd, old); /* it ends where it began */
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 4096, 0), 0);
    CU_ASSERT_EQUAL(seen[2].fd, ff->fd);
    for (int i = 0; i < 100 && fcntl(old, F_GETFD) >= 0; i++)
        bu_turn_ms(2);
    CU_ASSERT_TRUE(fcntl(old, F_GETFD) < 0);
    end();
    free(p);
}

int
main(void)
{
    static const struct bu_case cases[] = {
        {"short transfers are continued", test_short_transfers},
        {"the end of the file inside a request", test_end_of_file},
        {"what O_DIRECT does not take", test_unaligned},
        {"FUA writes", test_fua_write},
        {"flush", test_flush},
        {"fallocate", test_fallocate},
        {"zeros by writes", test_zero_by_writes},
        {"cancel", test_cancel},
        {"close under a request", test_close_meanwhile},
    };
    return bu_main("fdio", cases, sizeof(cases) / sizeof(cases[0]));
}
