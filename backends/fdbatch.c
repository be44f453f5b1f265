/* SPDX-License-Identifier: BSD-2-Clause */
/* See fdbatch.h. */
#include "config.h"

#include "backends/fdbatch.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "base/counter.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/worker.h"

struct fdbatch {
    struct worker *w;
    void (*over)(struct io *io, int res);
    struct deferred start;
    struct helper_job job;
    struct list waiting; /* struct io.link */
    struct list running; /* the helper's while busy */
    bool busy;
};

/* On a helper thread. */
static void
batch_run(struct helper_job *job)
{
    struct fdbatch *b = container_of(job, struct fdbatch, job);
    list_each(n, &b->running) {
        struct io *io = container_of(n, struct io, link);
        int niov = io->niov < IOV_MAX ? (int)io->niov : IOV_MAX;
        ssize_t done = pwritev((int)io->priv[FDBATCH_PRIV], io->iov, niov, (off_t)io->offset);
        io->res = done < 0 ? -errno : (int)done;
    }
}

static void
launch(struct fdbatch *b)
{
    if (b->busy || list_is_empty(&b->waiting))
        return;
    list_splice_tail(&b->running, &b->waiting);
    b->busy = true;
    helper_submit(&b->job);
}

static void
on_start(struct deferred *d)
{
    launch(container_of(d, struct fdbatch, start));
}

static void
batch_done(struct helper_job *job)
{
    struct fdbatch *b = container_of(job, struct fdbatch, job);
    struct list done, *n;
    list_init(&done);
    list_splice_tail(&done, &b->running);
    b->busy = false;
    launch(b);
    while ((n = list_pop(&done)) != NULL) { /* the last one may free b */
        struct io *io = container_of(n, struct io, link);
        counter_add(CT_DISK_BATCHED, 1);
        b->over(io, io->res);
    }
}

struct fdbatch *
fdbatch_new(struct worker *w, struct helper_lane *lane, void (*over)(struct io *io, int res))
{
    struct fdbatch *b = xcalloc(1, sizeof(*b));
    b->w = w;
    b->over = over;
    b->job.w = w;
    b->job.lane = lane;
    b->job.run = batch_run;
    b->job.done = batch_done;
    deferred_init(&b->start, on_start);
    list_init(&b->waiting);
    list_init(&b->running);
    return b;
}

void
fdbatch_free(struct fdbatch *b)
{
    if (b == NULL)
        return;
    assert(!b->busy && list_is_empty(&b->waiting) && !list_is_linked(&b->start.link));
    free(b);
}

void
fdbatch_add(struct fdbatch *b, struct io *io, int fd)
{
    worker_assert_owner(b->w);
    io->priv[FDBATCH_PRIV] = (uint64_t)fd;
    list_add_tail(&b->waiting, &io->link);
    if (!b->busy)
        worker_defer_flush(b->w, &b->start);
}

static bool
take_out(struct list *from, struct io *io)
{
    list_each(n, from) {
        if (n == &io->link) {
            list_del(n);
            return true;
        }
    }
    return false;
}

/* The batch that is under way may itself wait for a helper: a store that hangs has them all. */
static bool
take_from_launched(struct fdbatch *b, struct io *io)
{
    if (!b->busy || !helper_cancel(&b->job))
        return false;
    bool found = take_out(&b->running, io);
    b->busy = false;
    list_splice_tail(&b->running, &b->waiting); /* older ones first */
    list_splice_tail(&b->waiting, &b->running);
    launch(b);
    return found;
}

bool
fdbatch_cancel(struct fdbatch *b, struct io *io)
{
    worker_assert_owner(b->w);
    bool found = take_out(&b->waiting, io) || take_from_launched(b, io);
    if (list_is_empty(&b->waiting)) /* nobody may be left to keep b until it is called */
        deferred_cancel(&b->start);
    return found;
}
