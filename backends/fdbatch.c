/* SPDX-License-Identifier: BSD-2-Clause */
/* See fdbatch.h. */
#include "config.h"

#include "backends/fdbatch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/guard.h"
#include "base/list.h"
#include "base/pool.h"
#include "base/worker.h"

struct fdbatch {
    struct worker *w;
    void (*over)(struct io *io, bool written);
    struct deferred start;
    struct helper_job job;
    struct list waiting; /* struct io.link */
    struct list running; /* the helper's while busy */
    bool busy;
};

/* On a helper thread. */
static bool
copy_in(const struct io *io)
{
    struct fdmap *map = (struct fdmap *)(uintptr_t)io->priv[FDBATCH_PRIV];
    uint8_t *p = fdmap_cached(map, io->offset, io->len);
    if (p == NULL)
        return false;
    for (unsigned i = 0; i < io->niov; i++) {
        if (!guard_copy(p, io->iov[i].iov_base, io->iov[i].iov_len))
            return false;
        p += io->iov[i].iov_len;
    }
    return true;
}

static void
batch_run(struct helper_job *job)
{
    struct fdbatch *b = container_of(job, struct fdbatch, job);
    list_each(n, &b->running)
    {
        struct io *io = container_of(n, struct io, link);
        io->res = copy_in(io) ? 0 : -EAGAIN;
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
    while ((n = list_pop(&done)) != NULL) {
        struct io *io = container_of(n, struct io, link);
        b->over(io, io->res == 0);
    }
}

struct fdbatch *
fdbatch_new(struct worker *w, struct helper_lane *lane, void (*over)(struct io *io, bool written))
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
    assert(!b->busy && list_is_empty(&b->waiting));
    free(b);
}

void
fdbatch_add(struct fdbatch *b, struct io *io, struct fdmap *map)
{
    worker_assert_owner(b->w);
    io->priv[FDBATCH_PRIV] = (uint64_t)(uintptr_t)map;
    list_add_tail(&b->waiting, &io->link);
    if (!b->busy)
        worker_defer_flush(b->w, &b->start);
}

bool
fdbatch_cancel(struct fdbatch *b, struct io *io)
{
    worker_assert_owner(b->w);
    list_each(n, &b->waiting)
    {
        if (n == &io->link) {
            list_del(n);
            return true;
        }
    }
    return false;
}
