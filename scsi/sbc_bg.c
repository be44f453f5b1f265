/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes on after an IMMED command has its status: flushes (SYNCHRONIZE CACHE, START STOP UNIT)
 * and pre-fetches.  Such a job belongs to no command and no session; it holds the unit.  Its
 * failure is told by nobody here: a failed flush is sticky in the backend and fails the next
 * flush or FUA; a failed pre-fetch shows when the blocks are read.
 *
 * Called by sbc_misc.c; all on one worker's thread, the unit's count by several.
 */
#include "config.h"

#include <stdlib.h>

#include "base/budget.h"
#include "base/pool.h"
#include "base/worker.h"
#include "scsi/sbc.h"

#define BG_MAX    4u /* jobs of one unit */
#define BG_WINDOW (128u * 1024)

struct bg {
    struct io io;
    struct iovec iov;
    struct worker *w;
    struct lun *lu;
    struct buf *buf; /* NULL: a flush */
    uint64_t pos, end;
};

static struct bg *
bg_make(struct lun *lun, struct worker *w)
{
    struct bg *g = xcalloc(1, sizeof *g);
    g->w = w;
    g->lu = lun_get(lun);
    g->io.w = w;
    return g;
}

static struct bg *
bg_new(struct scsi_cmd *cmd)
{
    if (atomic_fetch_add(&cmd->lu->background, 1) >= BG_MAX) {
        atomic_fetch_sub(&cmd->lu->background, 1);
        return NULL;
    }
    return bg_make(cmd->lu, cmd->w);
}

static void
bg_end(struct bg *g)
{
    if (g->buf != NULL) {
        buf_put(g->buf);
        budget_give(worker_budget(g->w), BG_WINDOW);
    }
    atomic_fetch_sub(&g->lu->background, 1);
    lun_put(g->lu);
    free(g);
}

static void
on_flushed(struct io *io)
{
    bg_end(io_frame(io)->arg);
}

/* Of the settings, not of a command: it is not counted against what initiators may have. */
void
lun_flush(struct lun *lun)
{
    if (be_state(lun->be) != BE_READY)
        return;
    struct bg *g = bg_make(lun, worker_self());
    atomic_fetch_add(&lun->background, 1);
    g->io.op = IO_FLUSH;
    g->io.len = be_size(lun->be);
    io_push(&g->io, on_flushed, g);
    be_submit(lun->be, &g->io);
}

bool
sbc_bg_flush(struct scsi_cmd *cmd, uint64_t offset, uint64_t len)
{
    struct bg *g = bg_new(cmd);

    if (g == NULL)
        return false;
    g->io.op = IO_FLUSH;
    g->io.offset = offset;
    g->io.len = len;
    io_push(&g->io, on_flushed, g);
    be_submit(g->lu->be, &g->io);
    return true;
}

static void on_fetched(struct io *io);

static void
fetch(struct bg *g)
{
    uint64_t left = g->end - g->pos;
    uint64_t len = left < BG_WINDOW ? left : BG_WINDOW;

    g->iov = (struct iovec){.iov_base = g->buf->p, .iov_len = (size_t)len};
    g->io.op = IO_READ;
    g->io.offset = g->pos;
    g->io.len = len;
    g->io.iov = &g->iov;
    g->io.niov = 1;
    g->pos += len;
    io_push(&g->io, on_fetched, g);
    be_submit(g->lu->be, &g->io);
}

static void
on_fetched(struct io *io)
{
    struct bg *g = io_frame(io)->arg;

    if (io->res != 0 || g->pos == g->end)
        bg_end(g);
    else
        fetch(g);
}

bool
sbc_bg_prefetch(struct scsi_cmd *cmd, uint64_t offset, uint64_t len)
{
    struct be_info info;

    be_info(cmd->lu->be, &info);
    if (len == 0 || (info.max_io != 0 && info.max_io < BG_WINDOW))
        return false;
    if (!budget_take(worker_budget(cmd->w), BG_WINDOW))
        return false;
    struct buf *buf = buf_get(worker_bufs(cmd->w), BG_WINDOW);
    struct bg *g = buf != NULL ? bg_new(cmd) : NULL;
    if (g == NULL) {
        if (buf != NULL)
            buf_put(buf);
        budget_give(worker_budget(cmd->w), BG_WINDOW);
        return false;
    }
    g->buf = buf;
    g->pos = offset;
    g->end = offset + len;
    fetch(g);
    return true;
}
