/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests on descriptors for file.c and block.c; see fdio.h.  Submits and completions run on
 * the request's worker, IO_MAP's search on a helper thread, attach and detach where open, close
 * and probe run.
 */
#include "config.h"

#include "backends/fdio.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/log.h"
#include "base/pool.h"

/* How many helper threads one store may occupy where disk I/O goes through the pool. */
#define FDIO_LANE 8

/* io->priv */
#define P_FD   0 /* struct fdio_fd * held by the request */
#define P_DONE 1 /* bytes transferred */
#define P_STEP 2 /* enum step */
#define P_ERR  3 /* STEP_NOSYNC: what the first try said */

enum step {
    STEP_IO,     /* the operation itself is in the engine */
    STEP_NOSYNC, /* a FUA write that had no space, again without FUA */
    STEP_SYNC,   /* fdatasync behind an operation */
    STEP_MAP,    /* in the helper pool */
};

/* --- descriptors ----------------------------------------------------------------------------- */

/*
 * The upper bits of fdio_fd.users.  A struct is taken again for a later open while somebody late
 * may still count on it for a moment, so every step is one change of that one word:
 *
 *     n           in use by n requests
 *     DEAD | n    no new ones; whoever makes it DEAD alone ...
 *     DEAD | CLOSING            ... and is first to make it this, closes the descriptors
 *     DEAD | CLOSING | CLOSED   free for fdio_attach, which takes CLOSED away while it fills it
 *
 * A late submitter counts up, sees DEAD and counts down again; in no state but "DEAD alone" has
 * that any consequence.
 */
enum fd_flag {
    FD_DEAD = 1 << 30,
    FD_CLOSING = 1 << 29,
    FD_CLOSED = 1 << 28,
};

struct closing {
    struct helper_job job;
    struct fdio_fd what;
};

static void
close_all(const struct fdio_fd *what)
{
    fdmap_free(what->map);
    close(what->fd);
    if (what->buffered >= 0)
        close(what->buffered);
}

static void
closing_run(struct helper_job *job)
{
    struct closing *c = container_of(job, struct closing, job);
    close_all(&c->what);
}

static void
closing_done(struct helper_job *job)
{
    free(container_of(job, struct closing, job));
}

/* The count was seen DEAD and zero: by the last request, the detacher or somebody late.
 * w: not NULL on the thread of a worker that must not wait. */
static void
fd_close(struct fdio_fd *ff, struct worker *w)
{
    unsigned alone = FD_DEAD;
    if (!atomic_compare_exchange_strong(&ff->users, &alone, FD_DEAD | FD_CLOSING))
        return; /* another one does it, or will */
    struct fdio_fd what = {.fd = ff->fd, .buffered = ff->buffered, .map = ff->map};
    atomic_fetch_or(&ff->users, FD_CLOSED);
    if (w == NULL) {
        close_all(&what);
        return;
    }
    struct closing *c = xcalloc(1, sizeof(*c)); /* close may wait for a disk */
    c->what.fd = what.fd;
    c->what.buffered = what.buffered;
    c->what.map = what.map;
    c->job.run = closing_run;
    c->job.done = closing_done;
    c->job.w = w;
    helper_submit(&c->job);
}

static void
fd_put(struct fdio_fd *ff)
{
    if (atomic_fetch_sub_explicit(&ff->users, 1, memory_order_acq_rel) == (FD_DEAD | 1u))
        fd_close(ff, worker_self());
}

static struct fdio_fd *
fd_get(struct fdio *f)
{
    struct fdio_fd *ff = atomic_load_explicit(&f->cur, memory_order_acquire);
    if (ff == NULL)
        return NULL;
    unsigned old = atomic_fetch_add_explicit(&ff->users, 1, memory_order_acq_rel);
    if ((old & FD_DEAD) == 0)
        return ff;
    fd_put(ff);
    return NULL;
}

void
fdio_init(struct fdio *f)
{
    helper_lane_init(&f->lane, FDIO_LANE);
}

void
fdio_fini(struct fdio *f)
{
    while (f->all != NULL) {
        struct fdio_fd *next = f->all->next;
        free(f->all);
        f->all = next;
    }
    helper_lane_fini(&f->lane);
}

void
fdio_attach(struct fdio *f, const struct fdio_fd *fds)
{
    assert(atomic_load(&f->cur) == NULL);
    struct fdio_fd *ff;
    for (ff = f->all; ff != NULL; ff = ff->next) {
        unsigned is_free = FD_DEAD | FD_CLOSING | FD_CLOSED;
        if (atomic_compare_exchange_strong(&ff->users, &is_free, FD_DEAD | FD_CLOSING))
            break;
    }
    if (ff == NULL) {
        ff = xcalloc(1, sizeof(*ff));
        atomic_init(&ff->users, FD_DEAD | FD_CLOSING);
        ff->next = f->all;
        f->all = ff;
    }
    ff->fd = fds->fd;
    ff->buffered = fds->buffered;
    ff->dio_off = fds->dio_off;
    ff->dio_mem = fds->dio_mem;
    ff->is_inline = fds->is_inline;
    ff->is_nowait = fds->is_nowait;
    ff->map = fds->map;
    atomic_fetch_and(&ff->users, ~(unsigned)(FD_DEAD | FD_CLOSING));
    atomic_store_explicit(&f->cur, ff, memory_order_release);
}

void
fdio_detach(struct fdio *f)
{
    struct fdio_fd *ff = atomic_exchange(&f->cur, NULL);
    if (ff != NULL && atomic_fetch_or(&ff->users, FD_DEAD) == 0)
        fd_close(ff, NULL); /* close, open and probe may wait */
}

const struct fdio_fd *
fdio_current(struct fdio *f)
{
    return atomic_load(&f->cur);
}

/* --- the request's way through the engine ---------------------------------------------------- */

static struct fdio *
fdio_of(struct backend *be)
{
    return be->priv;
}

static struct fdio_fd *
io_fd(const struct io *io)
{
    return (struct fdio_fd *)(uintptr_t)io->priv[P_FD];
}

static atomic_uint *
slot_of(struct fdio *f, const struct io *io)
{
    unsigned id = worker_id(io->w);
    return id < FDIO_WORKERS ? &f->slot[id].n : NULL;
}

static void
slot_add(struct fdio *f, const struct io *io, unsigned n)
{
    atomic_uint *s = slot_of(f, io);
    if (s != NULL)
        atomic_fetch_add_explicit(s, n, memory_order_relaxed);
}

/* The end of a request that was in the engine. */
static void
finish(struct io *io, int res)
{
    struct fdio_fd *ff = io_fd(io);
    if (res != 0)
        io->fail_offset = io->offset + io->priv[P_DONE];
    fd_put(ff);
    io_complete(io, res);
}

/* The end of a request inside submit. */
static void
finish_later(struct io *io, int res)
{
    if (res != 0)
        io->fail_offset = io->offset + io->priv[P_DONE];
    fd_put(io_fd(io));
    io_complete_later(io, res);
}

static void on_disk_done(struct disk_req *req, int res);

static void
engine_submit(struct backend *be, struct io *io, enum step step)
{
    struct fdio *f = fdio_of(be);
    io->priv[P_STEP] = step;
    io->at = be;
    io->disk.lane = &f->lane;
    io->disk.done = on_disk_done;
    io->lender = be; /* whose store this is, for the completion */
    slot_add(f, io, 1);
    disk_submit(io->w, &io->disk);
}

/* n bytes of the vector are done: the entries are moved on in place. */
static void
iov_skip(struct disk_req *d, struct io *io, uint64_t n)
{
    struct iovec *iov = &io->iov[d->iov - io->iov];
    while (n > 0) {
        if (n < iov->iov_len) {
            iov->iov_base = (char *)iov->iov_base + n;
            iov->iov_len -= (size_t)n;
            break;
        }
        n -= iov->iov_len;
        iov->iov_len = 0;
        iov++;
        d->niov--;
    }
    d->iov = iov;
}

/* Does what is left of the request meet the rules of O_DIRECT? */
static bool
is_dio_aligned(const struct fdio_fd *ff, const struct disk_req *d)
{
    if ((d->off & (ff->dio_off - 1)) != 0)
        return false;
    for (unsigned i = 0; i < d->niov; i++) {
        if (((uintptr_t)d->iov[i].iov_base & (ff->dio_mem - 1)) != 0 ||
            (d->iov[i].iov_len & (ff->dio_off - 1)) != 0)
            return false;
    }
    return true;
}

static int
pick_fd(const struct fdio_fd *ff, const struct disk_req *d)
{
    if (ff->dio_off == 0 || ff->buffered < 0 || is_dio_aligned(ff, d))
        return ff->fd;
    return ff->buffered;
}

/* What is left of a READ or WRITE goes to the engine; one call takes at most IOV_MAX entries. */
static void
rw_continue(struct backend *be, struct io *io, enum step step)
{
    struct disk_req *d = &io->disk;
    d->op = io->op == IO_READ ? DISK_READV : DISK_WRITEV;
    d->off = io->offset + io->priv[P_DONE];
    d->rwf = io->op == IO_WRITE && (io->flags & IO_FUA) != 0 && step == STEP_IO ? RWF_DSYNC : 0;
    unsigned all = io->niov - (unsigned)(d->iov - io->iov);
    d->niov = all < IOV_MAX ? all : IOV_MAX;
    d->fd = pick_fd(io_fd(io), d);
    engine_submit(be, io, step);
}

static bool
is_no_space(int err)
{
    return err == -ENOSPC || err == -EDQUOT || err == -EFBIG;
}

/* After a READ or WRITE call: true and *out when the request is at its end. */
static bool
rw_is_over(struct io *io, int res, int *out)
{
    if (res == 0) {
        *out = -EIO; /* the end of the store inside the request */
        return true;
    }
    if (res > 0) {
        io->priv[P_DONE] += (unsigned)res;
        iov_skip(&io->disk, io, (unsigned)res);
        *out = 0;
        if (io->priv[P_DONE] == io->len)
            return true;
        assert(io->priv[P_DONE] < io->len);
    } else if (res != -EINTR && res != -EAGAIN) {
        *out = res;
        return true;
    }
    *out = -ECANCELED;
    return io->canceled;
}

static void
rw_done(struct backend *be, struct io *io, int res)
{
    enum step step = (enum step)io->priv[P_STEP];
    if (step == STEP_IO && io->disk.rwf != 0 && is_no_space(res) && !io->canceled) {
        io->priv[P_ERR] = (uint64_t)-res;
        rw_continue(be, io, STEP_NOSYNC);
        return;
    }
    int out;
    if (step == STEP_NOSYNC && res > 0) {
        /* There was space: it was the sync that failed, and what it did not write is lost. */
        log_event(LL_ERROR, LA_BACKEND, "sync-failed path=%s error=%d", LOG_ESC(be_path(be)),
                  (int)io->priv[P_ERR]);
        finish(io, -EIO);
    } else if (rw_is_over(io, res, &out)) {
        finish(io, out);
    } else {
        rw_continue(be, io, step);
    }
}

static void
sync_submit(struct backend *be, struct io *io)
{
    io->disk.op = DISK_FDATASYNC;
    io->disk.fd = io_fd(io)->fd;
    engine_submit(be, io, STEP_SYNC);
}

static void
fallocate_submit(struct backend *be, struct io *io, int mode)
{
    struct disk_req *d = &io->disk;
    d->op = DISK_FALLOCATE;
    d->fd = io_fd(io)->fd;
    d->mode = mode | FALLOC_FL_KEEP_SIZE;
    d->off = io->offset;
    d->len = io->len;
    engine_submit(be, io, STEP_IO);
}

static void
zero_submit(struct backend *be, struct io *io)
{
    if (!atomic_load_explicit(&fdio_of(be)->no_zero_range, memory_order_relaxed)) {
        fallocate_submit(be, io, FALLOC_FL_ZERO_RANGE);
        return;
    }
    fd_put(io_fd(io));
    be_zero_by_writes(be, io);
}

/* A DISCARD where holes cannot be made still owes zeros. */
static void
discard_submit(struct backend *be, struct io *io)
{
    atomic_store_explicit(&be->no_lend, true, memory_order_relaxed); /* there will be holes */
    if (!atomic_load_explicit(&fdio_of(be)->no_punch, memory_order_relaxed))
        fallocate_submit(be, io, FALLOC_FL_PUNCH_HOLE);
    else
        zero_submit(be, io);
}

static void
fallocate_done(struct backend *be, struct io *io, int res)
{
    struct fdio *f = fdio_of(be);
    if (res == -EINTR && !io->canceled) {
        engine_submit(be, io, STEP_IO);
    } else if (res == -EOPNOTSUPP || res == -ENOSYS) {
        bool zero = (io->disk.mode & FALLOC_FL_ZERO_RANGE) != 0;
        atomic_store_explicit(zero ? &f->no_zero_range : &f->no_punch, true, memory_order_relaxed);
        zero_submit(be, io);
    } else if (res == 0 && (io->flags & IO_FUA) != 0) {
        sync_submit(be, io);
    } else {
        finish(io, res == -EINTR ? -ECANCELED : res);
    }
}

static void
sync_done(struct backend *be, struct io *io, int res)
{
    if (res == -EINTR && !io->canceled) {
        sync_submit(be, io);
        return;
    }
    /* Want of space found by the sync is lost data, unlike want of space found by a write. */
    if (io->op != IO_FLUSH && is_no_space(res))
        res = -EIO;
    finish(io, res == -EINTR ? -ECANCELED : res);
}

static void
on_disk_done(struct disk_req *req, int res)
{
    struct io *io = container_of(req, struct io, disk);
    struct backend *be = io->lender;
    io->lender = NULL;
    slot_add(fdio_of(be), io, -1u);
    if (res > 0 && req->op != DISK_READV && req->op != DISK_WRITEV)
        res = 0;
    if (io->priv[P_STEP] == STEP_SYNC)
        sync_done(be, io, res);
    else if (io->op == IO_READ || io->op == IO_WRITE)
        rw_done(be, io, res);
    else
        fallocate_done(be, io, res);
}

/* --- READ and WRITE: in place where that cannot wait ----------------------------------------- */

/* Memory of the file where the request lies, or NULL. */
static uint8_t *
mapped(const struct backend *be, const struct fdio_fd *ff, const struct io *io)
{
    if (ff->map == NULL || !be_lends(be))
        return NULL;
    return fdmap_use(ff->map, io->offset, io->len);
}

static bool
rw_mapped(struct backend *be, const struct fdio_fd *ff, struct io *io)
{
    if (io->op == IO_WRITE && ff->map != NULL && !fdmap_can_write(ff->map))
        return false;
    uint8_t *p = mapped(be, ff, io);
    if (p == NULL)
        return false;
    for (unsigned i = 0; i < io->niov; i++) {
        const struct iovec *v = &io->iov[i];
        bool ok = io->op == IO_READ ? guard_copy(v->iov_base, p, v->iov_len)
                                    : guard_copy(p, v->iov_base, v->iov_len);
        if (!ok)
            return false; /* the system call tells what is wrong */
        p += v->iov_len;
    }
    return true;
}

/* tmpfs: plain system calls until all is done. */
static int
rw_inline(struct backend *be, const struct fdio_fd *ff, struct io *io)
{
    int out = 0, fd = ff->fd;
    if (rw_mapped(be, ff, io))
        return 0;
    for (;;) {
        off_t off = (off_t)(io->offset + io->priv[P_DONE]);
        struct disk_req *d = &io->disk;
        unsigned all = io->niov - (unsigned)(d->iov - io->iov);
        d->niov = all < IOV_MAX ? all : IOV_MAX;
        ssize_t n = io->op == IO_READ ? preadv(fd, d->iov, (int)d->niov, off)
                                      : pwritev(fd, d->iov, (int)d->niov, off);
        if (rw_is_over(io, n < 0 ? -errno : (int)n, &out))
            return out;
    }
}

/* Alone on this worker, a read that the page cache holds is cheapest done at once. True when the
 * whole request was served. */
static bool
rw_nowait(struct fdio *f, struct io *io, int fd)
{
    atomic_uint *slot = slot_of(f, io);
    if (slot == NULL || atomic_load_explicit(slot, memory_order_relaxed) != 0 ||
        atomic_load_explicit(&f->no_nowait, memory_order_relaxed))
        return false;
    struct disk_req *d = &io->disk;
    int niov = io->niov < IOV_MAX ? (int)io->niov : IOV_MAX;
    d->niov = (unsigned)niov;
    ssize_t n = preadv2(fd, d->iov, niov, (off_t)io->offset, RWF_NOWAIT);
    if (n <= 0) { /* 0 too: the engine finds the end of the file again */
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            atomic_store_explicit(&f->no_nowait, errno == EOPNOTSUPP, memory_order_relaxed);
        return false;
    }
    io->priv[P_DONE] = (uint64_t)n;
    iov_skip(d, io, (uint64_t)n);
    return io->priv[P_DONE] == io->len;
}

static void
rw_submit(struct backend *be, struct io *io)
{
    struct fdio_fd *ff = io_fd(io);
    io->disk.iov = io->iov;
    if (ff->is_inline)
        finish_later(io, rw_inline(be, ff, io));
    else if (io->op == IO_READ && ff->is_nowait && rw_nowait(fdio_of(be), io, ff->fd))
        finish_later(io, 0);
    else
        rw_continue(be, io, STEP_IO);
}

/* --- READ_REF: the store's own pages ---------------------------------------------------------- */

/* Only of files in memory without holes: a fault in a hole would allocate it. */
static void
lend(struct backend *be, struct io *io)
{
    uint8_t *p = mapped(be, io_fd(io), io);
    if (p == NULL) {
        finish_later(io, -EOPNOTSUPP);
        return;
    }
    io->one = (struct iovec){.iov_base = p, .iov_len = (size_t)io->len};
    io->iov = &io->one;
    io->niov = 1;
    io->lender = be;
    io_complete_later(io, 0); /* the descriptor is held until the release */
}

void
fdio_release_ref(struct backend *be, struct io *io)
{
    (void)be;
    fd_put(io_fd(io));
}

/* --- IO_MAP ---------------------------------------------------------------------------------- */

static void
map_add(struct io *io, uint64_t len, bool mapped)
{
    struct io_extent *last = io->ext_n > 0 ? &io->ext[io->ext_n - 1] : NULL;
    if (len == 0)
        return;
    if (last != NULL && last->mapped == mapped)
        last->len += len;
    else if (io->ext_n < io->ext_max)
        io->ext[io->ext_n++] = (struct io_extent){.len = len, .mapped = mapped};
}

/* Runs of holes and data; edges that are no block boundary go to the data. Blocking. */
static int
map_fill(struct io *io, int fd, uint64_t block)
{
    uint64_t pos = io->offset, end = io->offset + io->len;
    while (pos < end && io->ext_n < io->ext_max) {
        off_t data = lseek(fd, (off_t)pos, SEEK_DATA);
        if (data < 0 && errno == ENXIO) {
            struct stat st;
            if (fstat(fd, &st) != 0)
                return -errno;
            /* No data from here to the end of the file; what lies beyond that end is no hole. */
            uint64_t size = (uint64_t)st.st_size & ~(block - 1);
            uint64_t hole_end = size < end ? size : end;
            if (hole_end > pos)
                map_add(io, hole_end - pos, false);
            map_add(io, end - (hole_end > pos ? hole_end : pos), true);
            return 0;
        }
        if (data < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) {
            map_add(io, end - pos, true);
            return 0;
        }
        off_t hole = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);
        if (hole < 0 && errno == ENXIO) /* cut in between: look again */
            continue;
        if (hole < 0)
            return -errno;
        uint64_t from = (uint64_t)data & ~(block - 1);
        uint64_t to = ((uint64_t)hole + block - 1) & ~(block - 1);
        from = from < pos ? pos : from > end ? end : from;
        to = to > end ? end : to;
        map_add(io, from - pos, false);
        map_add(io, to - from, true);
        pos = to;
    }
    return 0;
}

static void
map_run(struct helper_job *job)
{
    struct io *io = container_of(job, struct io, job);
    io->ext_n = 0;
    io->res = map_fill(io, io_fd(io)->fd, io->lender->info.block_size);
}

static void
map_done(struct helper_job *job)
{
    struct io *io = container_of(job, struct io, job);
    io->lender = NULL;
    finish(io, io->res);
}

static void
map_submit(struct backend *be, struct io *io)
{
    if ((be->info.caps & BE_CAP_MAP) == 0) {
        io->ext[0] = (struct io_extent){.len = io->len, .mapped = true};
        io->ext_n = 1;
        finish_later(io, 0);
        return;
    }
    io->priv[P_STEP] = STEP_MAP;
    io->lender = be;
    io->job.run = map_run;
    io->job.done = map_done;
    io->job.w = io->w;
    io->job.lane = &fdio_of(be)->lane;
    helper_submit(&io->job);
}

/* --- the entry points ------------------------------------------------------------------------ */

void
fdio_submit(struct backend *be, struct io *io)
{
    struct fdio *f = fdio_of(be);
    struct fdio_fd *ff = fd_get(f);
    if (ff == NULL) {
        io_complete_later(io, -ESHUTDOWN);
        return;
    }
    io->priv[P_FD] = (uint64_t)(uintptr_t)ff;
    io->priv[P_DONE] = 0;
    uint64_t usable = atomic_load_explicit(&f->usable, memory_order_relaxed);
    if (io->op != IO_FLUSH && io->offset + io->len > usable) {
        io->priv[P_DONE] = usable > io->offset ? usable - io->offset : 0;
        /* Nothing of it was done; fail_offset says where it would have failed. */
        finish_later(io, -EIO);
        return;
    }
    if (io->op != IO_FLUSH && io->len == 0) {
        io->ext_n = 0;
        finish_later(io, 0);
        return;
    }
    switch (io->op) {
    case IO_READ:
    case IO_WRITE:
        rw_submit(be, io);
        break;
    case IO_FLUSH:
        sync_submit(be, io);
        break;
    case IO_DISCARD:
        discard_submit(be, io);
        break;
    case IO_ZERO:
        zero_submit(be, io);
        break;
    case IO_MAP:
        map_submit(be, io);
        break;
    case IO_READ_REF:
        lend(be, io);
        break;
    default:
        finish_later(io, -EOPNOTSUPP);
    }
}

void
fdio_cancel(struct backend *be, struct io *io)
{
    (void)be;
    if (io->priv[P_STEP] != STEP_MAP) {
        disk_cancel(&io->disk);
        return;
    }
    if (helper_cancel(&io->job)) {
        io->lender = NULL;
        finish_later(io, -ECANCELED);
    }
}
