/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a command inside the room: entering the task set of its nexus, ordering, parking,
 * buffers, data windows, backend requests, aborting and the end.  Called by dispatch, the
 * handlers and the transport, always on the command's worker.
 *
 * One task set a nexus (TST=001b), so ordering never crosses workers.  An aborted command ends at
 * once in every phase but PH_IO: there its buffer belongs to the kernel until the completion, and
 * what it still may write is registered with the unit so that newer commands wait for it.
 */
#include "scsi/priv.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/worker.h"

/* --- the end --------------------------------------------------------------------------------- */

static struct scsi_cmd *
cmd_of(struct list *l)
{
    return container_of(l, struct scsi_cmd, link);
}

/* ORDERED waits for all older ones, everything else for older ORDERED ones (SAM-5 8.7). */
static bool
is_in_order(struct scsi_cmd *cmd)
{
    struct nexus *nx = cmd->nx;

    if (cmd->attr == ATTR_ORDERED)
        return nx->tasks.next == &cmd->link;
    if (nx->nordered == 0 || cmd->attr == ATTR_HEAD)
        return true;
    list_each(it, &nx->tasks) {
        if (it == &cmd->link)
            return true;
        if (cmd_of(it)->attr == ATTR_ORDERED)
            return false;
    }
    return true;
}

static void
wake_ordered(struct nexus *nx)
{
    while (!list_is_empty(&nx->ordered)) {
        struct scsi_cmd *cmd = list_first(&nx->ordered, struct scsi_cmd, parkq);
        if (!is_in_order(cmd))
            return;
        scsi_unpark(cmd);
    }
}

static void
leave_task_set(struct scsi_cmd *cmd)
{
    struct nexus *nx = cmd->nx;

    list_del(&cmd->link);
    cmd->itn->active--;
    if (nx == NULL)
        return;
    if (cmd->attr == ATTR_ORDERED)
        nx->nordered--;
    if (!list_is_empty(&nx->ordered))
        wake_ordered(nx);
}

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Commands by what they move; those without data are counted nowhere but among the errors. */
void
task_count(struct scsi_cmd *cmd)
{
    struct scsi_stat *s = &cmd->nx->stat;

    if (cmd->op->dir == DIR_IN && cmd->exp_in != 0) {
        s->rd_subm++;
        s->rd_subm_bytes += least(cmd->xfer_in != 0 ? cmd->xfer_in : cmd->alloc_len, cmd->exp_in);
        cmd->is_counted = true;
    } else if (cmd->op->dir == DIR_OUT && cmd->exp_out != 0) {
        s->wr_subm++;
        s->wr_subm_bytes += least(cmd->xfer_out, cmd->exp_out);
        cmd->is_counted = true;
    }
}

static void
stat_done(struct scsi_stat *s, const struct scsi_cmd *cmd)
{
    bool good = !cmd->aborted && (cmd->status == SAM_GOOD || cmd->status == SAM_CONDITION_MET);

    if (!good)
        s->errs++;
    if (!cmd->is_counted)
        return;
    if (cmd->op->dir == DIR_IN) {
        s->rd_done++;
        s->rd_done_bytes += good ? least(cmd->xfer_in, cmd->exp_in) : 0;
    } else {
        s->wr_done++;
        s->wr_done_bytes += good ? least(cmd->xfer_out, cmd->exp_out) : 0;
    }
}

static void
on_end(struct deferred *d)
{
    struct scsi_cmd *cmd = container_of(d, struct scsi_cmd, later);
    struct list waiters;

    if (cmd->holds_range)
        orphan_del(cmd);
    if (cmd->is_orphan)
        worker_orphan_del(cmd->w, &cmd->parkq);
    cmd->phase = PH_DONE;
    if (cmd->nx != NULL)
        stat_done(&cmd->nx->stat, cmd);
    leave_task_set(cmd);
    list_init(&waiters);
    list_splice_tail(&waiters, &cmd->waiters);
    cmd->xport->done(cmd); /* the memory may be reused from here on */
    tmf_waiters_notify(&waiters);
}

void
task_end(struct scsi_cmd *cmd)
{
    assert(cmd->phase != PH_ENDING && cmd->phase != PH_DONE);
    cmd->phase = PH_ENDING;
    cmd->later.fn = on_end;
    worker_defer(cmd->w, &cmd->later);
}

/* --- parking --------------------------------------------------------------------------------- */

static void
on_resume(struct deferred *d)
{
    struct scsi_cmd *cmd = container_of(d, struct scsi_cmd, later);

    cmd->phase = PH_RUNNING;
    cmd->resume(cmd);
}

void
scsi_park(struct scsi_cmd *cmd, struct list *queue, enum park_why why,
          void (*resume)(struct scsi_cmd *cmd))
{
    cmd->phase = PH_PARKED;
    cmd->park_why = (uint8_t)why;
    cmd->resume = resume;
    if (queue != NULL)
        list_add_tail(queue, &cmd->parkq);
}

void
scsi_unpark(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    list_del(&cmd->parkq);
    if (cmd->phase != PH_PARKED)
        return;
    cmd->later.fn = on_resume;
    worker_defer(cmd->w, &cmd->later);
}

/* --- orphans: aborted writes that a backend still has (DESIGN 3.5) --------------------------- */

static bool
overlaps(const struct scsi_cmd *cmd, const struct lun *lun)
{
    uint64_t nblocks = lun_nblocks(lun);
    uint64_t n = cmd->nblk;

    if (n == 0 && (cmd->op->flags & OP_BLOCKS))
        return false;
    if (n == 0)
        n = nblocks > cmd->lba ? nblocks - cmd->lba : 0;

    uint64_t from = cmd->lba << lun->block_shift, to = from + (n << lun->block_shift);
    list_each(it, &lun->orphan_cmds) {
        const struct scsi_cmd *o = container_of(it, struct scsi_cmd, orphan);
        if (o->io.offset < to && from < o->io.offset + o->io.len)
            return true;
    }
    return false;
}

/* True: parked until the orphans on its range are gone. */
static bool
wait_for_orphans(struct scsi_cmd *cmd)
{
    struct lun *lun = cmd->lu;
    bool wait;

    if (atomic_load_explicit(&lun->orphans, memory_order_acquire) == 0 ||
        !(cmd->op->flags & OP_RANGE))
        return false;
    pthread_mutex_lock(&lun->lock);
    wait = overlaps(cmd, lun);
    if (wait)
        scsi_park(cmd, &lun->range_waiters, PARK_RANGE, task_enable);
    pthread_mutex_unlock(&lun->lock);
    return wait;
}

static void
on_range_free(struct worker *w, void *arg)
{
    struct lun *lun = arg;
    struct list ready;

    list_init(&ready);
    pthread_mutex_lock(&lun->lock);
    list_each_safe(it, &lun->range_waiters) {
        struct scsi_cmd *cmd = container_of(it, struct scsi_cmd, parkq);
        if (cmd->w == w && !overlaps(cmd, lun)) {
            list_del(it);
            list_add_tail(&ready, it);
        }
    }
    pthread_mutex_unlock(&lun->lock);
    while (!list_is_empty(&ready))
        scsi_unpark(list_first(&ready, struct scsi_cmd, parkq));
    lun_put(lun);
}

void
orphan_add(struct scsi_cmd *cmd)
{
    struct lun *lun = cmd->lu;

    cmd->holds_range = true;
    pthread_mutex_lock(&lun->lock);
    list_add_tail(&lun->orphan_cmds, &cmd->orphan);
    atomic_fetch_add_explicit(&lun->orphans, 1, memory_order_release);
    pthread_mutex_unlock(&lun->lock);
}

void
orphan_del(struct scsi_cmd *cmd)
{
    struct lun *lun = cmd->lu;
    struct worker *last = NULL;

    cmd->holds_range = false;
    pthread_mutex_lock(&lun->lock);
    list_del(&cmd->orphan);
    atomic_fetch_sub_explicit(&lun->orphans, 1, memory_order_release);
    list_each(it, &lun->range_waiters) {
        struct worker *w = container_of(it, struct scsi_cmd, parkq)->w;
        if (w != last) /* a worker may be posted to twice: harmless */
            worker_post(w, on_range_free, lun_get(lun));
        last = w;
    }
    pthread_mutex_unlock(&lun->lock);
}

/* --- entering and running -------------------------------------------------------------------- */

void
task_enter(struct scsi_cmd *cmd)
{
    struct nexus *nx = cmd->nx;

    cmd->itn->active++;
    if (nx == NULL) {
        list_add_tail(&cmd->itn->loose, &cmd->link);
        return;
    }
    list_add_tail(&nx->tasks, &cmd->link);
    nx->ntasks++;
    if (cmd->attr == ATTR_ORDERED)
        nx->nordered++;
}

void
task_enable(struct scsi_cmd *cmd)
{
    bool was_parked = cmd->park_why != PARK_NONE;

    if (cmd->nx != NULL) {
        if (!is_in_order(cmd)) {
            scsi_park(cmd, &cmd->nx->ordered, PARK_ORDER, task_enable);
            return;
        }
        if (wait_for_orphans(cmd))
            return;
    }
    cmd->phase = PH_RUNNING;
    if (was_parked) {
        cmd->park_why = PARK_NONE;
        if (!dispatch_recheck(cmd))
            return;
    }
    dispatch_run(cmd);
}

/* --- buffers --------------------------------------------------------------------------------- */

static void
buffer_drop(struct scsi_cmd *cmd)
{
    if (cmd->buf != NULL)
        buf_put(cmd->buf);
    cmd->buf = NULL;
    cmd->data = NULL;
    if (cmd->budgeted != 0 && cmd->held_from != NULL)
        budget_give(cmd->held_from, cmd->budgeted);
    cmd->budgeted = 0;
    cmd->held_from = NULL;
}

static bool
buffer_attach(struct scsi_cmd *cmd, uint32_t len)
{
    cmd->buf = buf_get(worker_bufs(cmd->w), len);
    if (cmd->buf == NULL) {
        buffer_drop(cmd);
        scsi_status(cmd, SAM_BUSY);
        return false;
    }
    cmd->data = cmd->buf->p;
    return true;
}

static void
on_budget(struct budget_wait *bw)
{
    struct scsi_cmd *cmd = container_of(bw, struct scsi_cmd, bw);

    cmd->budgeted = (uint32_t)bw->bytes;
    cmd->phase = PH_RUNNING;
    cmd->park_why = PARK_NONE;
    if (buffer_attach(cmd, cmd->budgeted))
        cmd->resume(cmd);
}

static uint32_t
buffer_class(uint32_t len)
{
    uint32_t c = BUF_MIN;

    while (c < len)
        c <<= 1;
    return c;
}

bool
scsi_buffer(struct scsi_cmd *cmd, uint32_t len, void (*next)(struct scsi_cmd *cmd))
{
    assert(len <= BUF_MAX);
    if (cmd->buf != NULL && cmd->buf->cap >= len) {
        cmd->data = cmd->buf->p;
        return true;
    }
    buffer_drop(cmd);

    uint32_t bytes = buffer_class(len);
    cmd->held_from = cmd->itn->budget;
    if (!budget_take(cmd->held_from, bytes)) {
        scsi_park(cmd, NULL, PARK_MEMORY, next);
        budget_wait(cmd->held_from, &cmd->bw, bytes, on_budget);
        return false;
    }
    cmd->budgeted = bytes;
    return buffer_attach(cmd, len);
}

bool
scsi_reply(struct scsi_cmd *cmd, struct wcur *w)
{
    uint32_t cap = cmd->alloc_len < cmd->exp_in ? cmd->alloc_len : cmd->exp_in;

    cmd->win_off = 0;
    cmd->win_len = 0;
    if (cap > BUF_MAX)
        cap = BUF_MAX;
    if (cap == 0) {
        *w = wcur_init(NULL, 0);
        return true;
    }
    uint32_t bytes = buffer_class(cap);
    if (budget_take(cmd->itn->budget, bytes)) {
        cmd->held_from = cmd->itn->budget;
        cmd->budgeted = bytes;
    } else if (bytes > BUF_MIN) { /* the smallest are bounded by the queue depth alone */
        scsi_status(cmd, SAM_BUSY);
        return false;
    }
    if (!buffer_attach(cmd, cap))
        return false;
    memset(cmd->data, 0, cap);
    *w = wcur_init(cmd->data, cap);
    return true;
}

void
scsi_data_in(struct scsi_cmd *cmd, uint32_t len)
{
    cmd->xfer_in = len < cmd->alloc_len ? len : cmd->alloc_len;
    cmd->win_off = 0;
    cmd->win_len = (uint32_t)(cmd->xfer_in < cmd->exp_in ? cmd->xfer_in : cmd->exp_in);
    if (cmd->win_len > BUF_MAX)
        cmd->win_len = BUF_MAX;
    scsi_good(cmd);
}

/* --- data windows ---------------------------------------------------------------------------- */

/* A handler wants more than the initiator agreed to: a fault of ours that costs one command. */
static void
beyond(struct scsi_cmd *cmd, const char *dir, uint32_t off, uint32_t len)
{
    log_event(LL_ERROR, LA_SCSI, "window-beyond-data dir=%s op=%02x off=%u len=%u", dir,
              cmd->cdb[0], off, len);
    scsi_fail(cmd, SENSE_HARDWARE_ERROR, NO_FIELD);
}

void
scsi_pull(struct scsi_cmd *cmd, uint32_t off, uint32_t len, void (*next)(struct scsi_cmd *cmd))
{
    if ((uint64_t)off + len > cmd->exp_out) {
        beyond(cmd, "out", off, len);
        return;
    }
    cmd->win_off = off;
    cmd->win_len = len;
    cmd->resume = next;
    if (len == 0) {
        next(cmd);
        return;
    }
    cmd->phase = PH_PULL;
    if (cmd->xport->pull(cmd) && cmd->phase == PH_PULL) {
        cmd->phase = PH_RUNNING;
        next(cmd);
    }
}

bool
scsi_swap_buf(struct scsi_cmd *cmd, struct buf **b)
{
    struct buf *was = cmd->buf;

    if (was == NULL || cmd->data != was->p || was->cap != (*b)->cap)
        return false;
    cmd->buf = *b;
    cmd->data = cmd->buf->p;
    *b = was;
    return true;
}

void
scsi_push(struct scsi_cmd *cmd, uint32_t off, uint32_t len, void (*next)(struct scsi_cmd *cmd))
{
    if ((uint64_t)off + len > cmd->exp_in) {
        beyond(cmd, "in", off, len);
        return;
    }
    cmd->win_off = off;
    cmd->win_len = len;
    cmd->resume = next;
    cmd->phase = PH_PUSH;
    cmd->xport->push(cmd);
}

void
scsi_pulled(struct scsi_cmd *cmd, int err, uint16_t asc)
{
    worker_assert_owner(cmd->w);
    if (cmd->phase != PH_PULL)
        return;
    if (err == -ECANCELED) {
        scsi_abort(cmd);
        return;
    }
    cmd->phase = PH_RUNNING;
    if (err != 0)
        scsi_check(cmd, SK_ABORTED, asc);
    else
        cmd->resume(cmd);
}

void
scsi_pushed(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    if (cmd->phase != PH_PUSH)
        return;
    cmd->phase = PH_RUNNING;
    cmd->resume(cmd);
}

/* --- backend requests ------------------------------------------------------------------------ */

static void
on_io(struct io *io)
{
    struct scsi_cmd *cmd = io_frame(io)->arg;

    worker_assert_owner(cmd->w);
    cmd->phase = PH_RUNNING;
    if (cmd->aborted) {
        if (io->op == IO_READ_REF && io->res == 0)
            io_release_ref(io);
        task_end(cmd);
        return;
    }
    cmd->resume(cmd);
}

void
scsi_io(struct scsi_cmd *cmd, void (*next)(struct scsi_cmd *cmd))
{
    cmd->phase = PH_IO;
    cmd->resume = next;
    cmd->io.w = cmd->w;
    io_push(&cmd->io, on_io, cmd);
    be_submit(cmd->lu->be, &cmd->io);
}

/* --- abort and release ----------------------------------------------------------------------- */

static bool
may_write(const struct io *io)
{
    return io->op == IO_WRITE || io->op == IO_DISCARD || io->op == IO_ZERO;
}

static void
abort_parked(struct scsi_cmd *cmd)
{
    switch (cmd->park_why) {
    case PARK_MEMORY:
        budget_wait_cancel(cmd->held_from, &cmd->bw);
        cmd->held_from = NULL;
        break;
    case PARK_RANGE:
        pthread_mutex_lock(&cmd->lu->lock);
        list_del(&cmd->parkq);
        pthread_mutex_unlock(&cmd->lu->lock);
        break;
    case PARK_PERSIST:
        mode_abandon(cmd);
        break;
    default:
        list_del(&cmd->parkq);
        break;
    }
    deferred_cancel(&cmd->later);
    task_end(cmd);
}

void
scsi_abort(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    if (cmd->phase == PH_DONE || cmd->phase == PH_NEW || cmd->aborted)
        return;
    cmd->aborted = true;
    switch (cmd->phase) {
    case PH_IO:
        if (may_write(&cmd->io))
            orphan_add(cmd);
        be_cancel(&cmd->io); /* on_io comes */
        break;
    case PH_PARKED:
        abort_parked(cmd);
        break;
    case PH_PULL:
    case PH_PUSH:
        task_end(cmd);
        break;
    default: /* PH_ENDING: on its way, and now silent */
        break;
    }
}

void
scsi_release(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    if (cmd->phase != PH_DONE)
        return; /* never submitted: nothing is held */
    cmd->phase = PH_NEW;
    if (cmd->lent)
        io_release_ref(&cmd->io);
    cmd->lent = false;
    buffer_drop(cmd);
    if (cmd->nx != NULL)
        nexus_task_gone(cmd->nx);
    cmd->nx = NULL;
    cmd->lu = NULL;
    itn_unref(cmd->itn);
}
