/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Disk requests by the worker's ring, or by the helper pool where there is no ring.  The worker's
 * prepare step calls disk_reap and disk_flush; nothing here waits.  Owner's thread, but for
 * disk_run, which a helper runs.
 *
 * A cancel names the request by its address.  That is safe because SQEs are taken by the kernel in
 * order: a new request at the same address lies behind the cancel that meant the old one.
 */
#include "config.h"

#include "base/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counter.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/worker_priv.h"

#define DEFAULT_ENTRIES 256u
#define CQ_PER_SQ       16u  /* completions the ring has room for, so requests in flight */
#define CQ_SPARE        32u  /* of these kept for the completions of cancels */
#define BLOCKED_MAX     512u /* kernel threads for what blocks: ring_init */
#define REAP_BATCH      64u
#define RETRY_MS        10u /* after a submit the kernel refused for want of memory */

enum req_state {
    DS_IDLE,
    DS_WAITING, /* in disk_wait */
    DS_RING,    /* in disk_busy; SQE made */
    DS_POOL,    /* in disk_busy */
    DS_DONE,    /* in disk_done, or about to complete */
};
#define DS_MASK   0x0fu
#define DS_CANCEL 0x10u /* a cancel was asked for */
#define DS_SEND   0x20u /* ... and its SQE is still to be made */

struct disk_ring {
    struct io_uring u;
    struct ev_io io;
    struct worker_timer retry;
    unsigned max_busy;
    unsigned busy;    /* requests with an SQE, not completed */
    unsigned cancels; /* requests in disk_busy with DS_SEND */
    struct log_rate rate;
    struct disk_ring *left;
};

/* Rings that the kernel still uses; reachable for leak checkers. */
static _Atomic(struct disk_ring *) left_behind;

static enum req_state
state_of(const struct disk_req *req)
{
    return (enum req_state)(req->state & DS_MASK);
}

static void
complete(struct disk_req *req, int res)
{
    struct worker *w = req->w;
    if (res == -EINTR && (req->state & DS_CANCEL))
        res = -ECANCELED; /* how a thread of the ring says so */
    list_del(&req->link);
    req->state = DS_IDLE;
    w->disk_count--;
    req->done(req, res);
}

static void
on_disk_deferred(struct deferred *d)
{
    struct worker *w = container_of(d, struct worker, disk_deferred);
    struct list *n;
    while ((n = list_pop(&w->disk_done)) != NULL) {
        struct disk_req *req = container_of(n, struct disk_req, link);
        complete(req, req->res);
    }
}

static void
complete_later(struct disk_req *req, int res)
{
    req->state = (uint8_t)((req->state & ~DS_MASK) | DS_DONE);
    req->res = res;
    list_del(&req->link);
    list_add_tail(&req->w->disk_done, &req->link);
    worker_defer(req->w, &req->w->disk_deferred);
}

/* --- the pool engine ------------------------------------------------------------------------- */

static void
disk_run(struct helper_job *job)
{
    struct disk_req *req = container_of(job, struct disk_req, job);
    ssize_t n = 0;
    switch (req->op) {
    case DISK_READV:
        n = preadv2(req->fd, req->iov, (int)req->niov, (off_t)req->off, req->rwf);
        break;
    case DISK_WRITEV:
        n = pwritev2(req->fd, req->iov, (int)req->niov, (off_t)req->off, req->rwf);
        break;
    case DISK_FDATASYNC:
        n = fdatasync(req->fd);
        break;
    case DISK_FALLOCATE:
        n = fallocate(req->fd, req->mode, (off_t)req->off, (off_t)req->len);
        break;
    case DISK_NOP:
        break;
    }
    req->res = n < 0 ? -errno : (int)n;
}

static void
disk_ran(struct helper_job *job)
{
    struct disk_req *req = container_of(job, struct disk_req, job);
    complete(req, req->res);
}

static void
pool_submit(struct worker *w, struct disk_req *req)
{
    req->job.run = disk_run;
    req->job.done = disk_ran;
    req->job.w = w;
    req->job.lane = req->lane;
    req->state = DS_POOL;
    list_add_tail(&w->disk_busy, &req->link);
    helper_submit(&req->job);
}

/* --- the ring engine ------------------------------------------------------------------------- */

static void
prep(struct io_uring_sqe *sqe, const struct disk_req *req)
{
    switch (req->op) {
    case DISK_READV:
        if (req->niov == 1 && req->iov[0].iov_len <= INT32_MAX)
            io_uring_prep_read(sqe, req->fd, req->iov[0].iov_base, (unsigned)req->iov[0].iov_len,
                               req->off);
        else
            io_uring_prep_readv(sqe, req->fd, req->iov, req->niov, req->off);
        sqe->rw_flags = req->rwf;
        break;
    case DISK_WRITEV:
        if (req->niov == 1 && req->iov[0].iov_len <= INT32_MAX)
            io_uring_prep_write(sqe, req->fd, req->iov[0].iov_base, (unsigned)req->iov[0].iov_len,
                                req->off);
        else
            io_uring_prep_writev(sqe, req->fd, req->iov, req->niov, req->off);
        sqe->rw_flags = req->rwf;
        break;
    case DISK_FDATASYNC:
        io_uring_prep_fsync(sqe, req->fd, IORING_FSYNC_DATASYNC);
        break;
    case DISK_FALLOCATE:
        io_uring_prep_fallocate(sqe, req->fd, req->mode, (off_t)req->off, (off_t)req->len);
        break;
    case DISK_NOP:
        io_uring_prep_nop(sqe);
        break;
    }
}

/* All prepared SQEs to the kernel. False when it took none of them now. */
static bool
ring_enter(struct worker *w)
{
    struct disk_ring *r = w->ring;
    while (io_uring_sq_ready(&r->u) > 0) {
        counter_add(CT_DISK_ENTERS, 1);
        int n = io_uring_submit(&r->u);
        if (n > 0 || n == -EINTR)
            continue;
        uint32_t suppressed;
        if (n != 0 && n != -EAGAIN && n != -EBUSY && log_rate_ok(&r->rate, &suppressed))
            log_event(LL_WARN, LA_WORKER, "ring-submit-failed worker=%u error=\"%s\" suppressed=%u",
                      w->id, strerror(-n), suppressed);
        return false;
    }
    return true;
}

static struct io_uring_sqe *
get_sqe(struct worker *w)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&w->ring->u);
    if (sqe || !ring_enter(w))
        return sqe;
    return io_uring_get_sqe(&w->ring->u);
}

/* False: no room; the request waits. */
static bool
ring_start(struct worker *w, struct disk_req *req)
{
    struct disk_ring *r = w->ring;
    struct io_uring_sqe *sqe = r->busy < r->max_busy ? get_sqe(w) : NULL;
    if (!sqe)
        return false;
    prep(sqe, req);
    io_uring_sqe_set_data(sqe, req);
    req->state = (uint8_t)((req->state & ~DS_MASK) | DS_RING);
    list_add_tail(&w->disk_busy, &req->link);
    r->busy++;
    return true;
}

static bool
ring_cancel(struct worker *w, struct disk_req *req)
{
    struct io_uring_sqe *sqe = get_sqe(w);
    if (!sqe)
        return false;
    io_uring_prep_cancel(sqe, req, 0);
    io_uring_sqe_set_data(sqe, NULL);
    return true;
}

/* Requests and cancels that found the ring full. */
static void
ring_start_waiting(struct worker *w)
{
    struct disk_ring *r = w->ring;
    if (r->cancels > 0) {
        list_each(it, &w->disk_busy) {
            struct disk_req *req = container_of(it, struct disk_req, link);
            if (!(req->state & DS_SEND))
                continue;
            if (!ring_cancel(w, req))
                break;
            req->state &= (uint8_t)~DS_SEND;
            r->cancels--;
        }
    }
    while (!list_is_empty(&w->disk_wait)) {
        struct disk_req *req = list_first(&w->disk_wait, struct disk_req, link);
        list_del(&req->link);
        if (!ring_start(w, req)) {
            list_add_head(&w->disk_wait, &req->link);
            return;
        }
    }
}

static void
ring_complete(struct worker *w, struct disk_req *req, int res)
{
    if (req->state & DS_SEND)
        w->ring->cancels--;
    w->ring->busy--;
    complete(req, res);
}

bool
disk_reap(struct worker *w)
{
    struct disk_ring *r = w->ring;
    if (!r)
        return false;
    bool any = false;
    for (unsigned round = 0; round < 16; round++) {
        struct io_uring_cqe *cqes[REAP_BATCH];
        struct disk_req *reqs[REAP_BATCH];
        int res[REAP_BATCH];
        if (*r->u.sq.kflags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) {
            /* completions that are only posted when this thread enters the kernel */
            counter_add(CT_DISK_ENTERS, 1);
            io_uring_get_events(&r->u);
        }
        unsigned n = io_uring_peek_batch_cqe(&r->u, cqes, REAP_BATCH);
        if (n == 0)
            break;
        for (unsigned i = 0; i < n; i++) {
            reqs[i] = io_uring_cqe_get_data(cqes[i]);
            res[i] = cqes[i]->res;
            if (reqs[i]) /* over for disk_cancel, though done runs below */
                reqs[i]->state = (uint8_t)((reqs[i]->state & ~DS_MASK) | DS_DONE);
        }
        io_uring_cq_advance(&r->u, n);
        for (unsigned i = 0; i < n; i++)
            if (reqs[i])
                ring_complete(w, reqs[i], res[i]);
        any = true;
    }
    return any;
}

static void
on_ring_retry(struct worker_timer *t)
{
    (void)t; /* the prepare step of this turn submits */
}

bool
disk_flush(struct worker *w)
{
    struct disk_ring *r = w->ring;
    if (!r)
        return false;
    if (!list_is_empty(&w->disk_wait) || r->cancels > 0)
        ring_start_waiting(w);
    bool sent = ring_enter(w);
    bool any = disk_reap(w);
    if (!sent && !any && !worker_timer_is_active(&r->retry))
        worker_timer_start_ms(&r->retry, RETRY_MS);
    return any;
}

static void
on_ring_readable(struct ev_loop *loop, struct ev_io *io, int revents)
{
    (void)loop;
    (void)revents;
    disk_reap(io->data);
}

/* 0 or -errno. Newer flags first; a kernel that does not know them says EINVAL. */
static int
ring_setup(struct io_uring *u, unsigned entries)
{
    static const unsigned flags[] = {
        IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL |
            IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SINGLE_ISSUER,
        IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL |
            IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
        IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL,
        IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP,
    };
    int err = -EINVAL;
    for (unsigned i = 0; i < sizeof flags / sizeof flags[0] && err == -EINVAL; i++) {
        struct io_uring_params p = {.flags = flags[i], .cq_entries = entries * CQ_PER_SQ};
        err = io_uring_queue_init_params(entries, u, &p);
        if (err == 0 && !(p.features & IORING_FEAT_NODROP)) {
            io_uring_queue_exit(u);
            return -ENOSYS;
        }
    }
    return err;
}

/* Kernels before 5.6 have rings without the operations needed here. */
static bool
ring_has_ops(struct io_uring *u)
{
    struct io_uring_probe *p = io_uring_get_probe_ring(u);
    if (!p)
        return false;
    bool ok = io_uring_opcode_supported(p, IORING_OP_READ) &&
              io_uring_opcode_supported(p, IORING_OP_WRITE) &&
              io_uring_opcode_supported(p, IORING_OP_FALLOCATE) &&
              io_uring_opcode_supported(p, IORING_OP_ASYNC_CANCEL);
    io_uring_free_probe(p);
    return ok;
}

static int
ring_init(struct worker *w)
{
    struct disk_ring *r = xcalloc(1, sizeof *r);
    unsigned entries = w->opts.ring_entries ? w->opts.ring_entries : DEFAULT_ENTRIES;
    int err = ring_setup(&r->u, entries);
    if (err < 0) {
        free(r);
        return err;
    }
    if (!ring_has_ops(&r->u)) {
        io_uring_queue_exit(&r->u);
        free(r);
        return -ENOSYS;
    }
    io_uring_ring_dontfork(&r->u);
    /* What would block is done by threads of the kernel, a few for each processor unless told
     * otherwise: one hung file system would hold them all, and every other store of this worker
     * behind it.  More are made only when all there are sleep.  (Linux 5.15 on.) */
    unsigned iowq[2] = {BLOCKED_MAX, 0};
    io_uring_register_iowq_max_workers(&r->u, iowq);
    unsigned cq = *r->u.cq.kring_entries;
    r->max_busy = cq > 2 * CQ_SPARE ? cq - CQ_SPARE : cq / 2 + 1;
    worker_timer_init(&r->retry, w, on_ring_retry);
    ev_io_init(&r->io, on_ring_readable, r->u.ring_fd, EV_READ);
    r->io.data = w;
    ev_io_start(w->loop, &r->io);
    w->ring = r;
    return 0;
}

int
disk_init(struct worker *w)
{
    static atomic_flag said = ATOMIC_FLAG_INIT;
    list_init(&w->disk_busy);
    list_init(&w->disk_wait);
    list_init(&w->disk_done);
    deferred_init(&w->disk_deferred, on_disk_deferred);
    w->engine = ENGINE_POOL;
    if (w->opts.engine == ENGINE_POOL)
        return 0;
    int err = ring_init(w);
    if (err == 0) {
        w->engine = ENGINE_RING;
        return 0;
    }
    if (w->opts.engine == ENGINE_RING)
        return err;
    if (!atomic_flag_test_and_set(&said))
        log_event(LL_NOTICE, LA_WORKER, "no-io-uring disks_by=helper-threads error=\"%s\"",
                  strerror(-err));
    return 0;
}

void
disk_fini(struct worker *w)
{
    struct disk_ring *r = w->ring;
    if (!r)
        return;
    worker_timer_stop(&r->retry);
    ev_io_stop(w->loop, &r->io);
    w->ring = NULL;
    if (r->busy == 0) {
        io_uring_queue_exit(&r->u);
        free(r);
        return;
    }
    /* The kernel has requests that may never end (a hung device).  Closing the ring would ask it to
     * end them and a request's memory must stay whatever comes of that: all is left as it is. */
    r->left = atomic_load(&left_behind);
    while (!atomic_compare_exchange_weak(&left_behind, &r->left, r))
        ;
}

/* --- both engines ---------------------------------------------------------------------------- */

void
disk_submit(struct worker *w, struct disk_req *req)
{
    worker_assert_owner(w);
    req->w = w;
    req->state = DS_IDLE;
    req->res = 0;
    list_init(&req->link);
    w->disk_count++;
    counter_add(CT_DISK_SUBMITTED, 1);
    if (!w->ring) {
        pool_submit(w, req);
        return;
    }
    if (!list_is_empty(&w->disk_wait) || !ring_start(w, req)) {
        req->state = DS_WAITING;
        list_add_tail(&w->disk_wait, &req->link);
    }
}

void
disk_cancel(struct disk_req *req)
{
    struct worker *w = req->w;
    if (!w || (req->state & DS_CANCEL))
        return;
    worker_assert_owner(w);
    switch (state_of(req)) {
    case DS_IDLE:
    case DS_DONE:
        return;
    case DS_WAITING:
        complete_later(req, -ECANCELED);
        return;
    case DS_POOL:
        if (helper_cancel(&req->job))
            complete_later(req, -ECANCELED);
        return;
    case DS_RING:
        req->state |= DS_CANCEL;
        if (!ring_cancel(w, req)) {
            req->state |= DS_SEND;
            w->ring->cancels++;
        }
        return;
    }
}

unsigned
disk_in_flight(const struct worker *w)
{
    worker_assert_owner(w);
    return w->disk_count;
}

bool
disk_uses_memory(const struct worker *w, const void *p, size_t len)
{
    uintptr_t lo = (uintptr_t)p, hi = lo + len;
    list_each(it, &w->disk_busy) {
        const struct disk_req *req = container_of(it, struct disk_req, link);
        if (state_of(req) != DS_RING && state_of(req) != DS_POOL)
            continue;
        if (req->op != DISK_READV && req->op != DISK_WRITEV)
            continue;
        for (unsigned i = 0; i < req->niov; i++) {
            uintptr_t a = (uintptr_t)req->iov[i].iov_base;
            if (a < hi && a + req->iov[i].iov_len > lo)
                return true;
        }
    }
    return false;
}
