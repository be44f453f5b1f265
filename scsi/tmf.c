/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Task management functions (SAM-5 7, RFC 7143 11.5).  A function is one job: it marks the
 * commands it affects, on each worker that has some, and answers when the last of them is over.
 * The job does not depend on its session: when that dies (scsi_tmf_forget) it goes on in silence.
 *
 * Called by the transport on the session's worker; parts run on the other workers by messages.
 */
#include "scsi/priv.h"

#include <stdlib.h>

#include "base/pool.h"
#include "base/worker.h"

struct tmf_job {
    struct scsi_tmf *t; /* NULL: forgotten; owner: w */
    struct worker *w;
    atomic_uint pending; /* commands awaited, workers not yet visited, and one for the start */
};

struct tmf_wait {
    struct list link; /* cmd->waiters */
    struct tmf_job *job;
};

/* A visit to a worker for a reset. */
struct tmf_visit {
    struct tmf_job *job;
    struct lun *lun; /* reference */
};

/* --- the end --------------------------------------------------------------------------------- */

static void
on_complete(struct worker *w, void *arg)
{
    struct tmf_job *job = arg;
    struct scsi_tmf *t = job->t;

    worker_assert_owner(w);
    free(job);
    if (t == NULL)
        return;
    t->job = NULL;
    t->done(t);
}

static void
job_put(struct tmf_job *job)
{
    if (atomic_fetch_sub_explicit(&job->pending, 1, memory_order_acq_rel) == 1)
        worker_post(job->w, on_complete, job);
}

void
tmf_waiters_notify(struct list *waiters)
{
    while (!list_is_empty(waiters)) {
        struct tmf_wait *wt = list_first(waiters, struct tmf_wait, link);
        list_del(&wt->link);
        job_put(wt->job);
        free(wt);
    }
}

/* --- one command, one nexus ------------------------------------------------------------------ */

static void
abort_and_wait(struct tmf_job *job, struct scsi_cmd *cmd)
{
    struct tmf_wait *wt = xcalloc(1, sizeof *wt);

    wt->job = job;
    atomic_fetch_add_explicit(&job->pending, 1, memory_order_relaxed);
    list_add_tail(&cmd->waiters, &wt->link);
    scsi_abort(cmd);
}

static void
abort_list(struct tmf_job *job, struct list *tasks)
{
    list_each(it, tasks) /* aborted commands end later: the list stays */
        abort_and_wait(job, container_of(it, struct scsi_cmd, link));
}

static void
abort_loose(struct tmf_job *job, const struct scsi_tmf *t)
{
    list_each(it, &t->itn->loose) {
        struct scsi_cmd *cmd = container_of(it, struct scsi_cmd, link);
        if (get_be64(cmd->lun) == get_be64(t->lun))
            abort_and_wait(job, cmd);
    }
}

/* --- resets: every nexus of the unit, on its worker ------------------------------------------ */

/* Nexuses of this worker come and go on this thread only, so the copied pointers stay good; the
 * lock cannot be held while commands are aborted. */
static unsigned
own_nexuses(struct lun *lun, const struct worker *w, struct nexus ***out)
{
    unsigned n = 0, max = 0;

    pthread_mutex_lock(&lun->lock);
    list_each(it, &lun->nexuses)
        max++;
    *out = xcalloc(max + 1, sizeof **out);
    list_each(it, &lun->nexuses) {
        struct nexus *nx = container_of(it, struct nexus, on_lun);
        if (nx->w == w)
            (*out)[n++] = nx;
    }
    pthread_mutex_unlock(&lun->lock);
    return n;
}

/* What a nexus has is aborted before it can be told of the reset, on its own worker and in one go:
 * who sees 29/03 takes everything older for gone (SAM-5 6.3.3), so nothing older may be answered,
 * or written, after it. */
static void
visit(struct worker *w, struct tmf_job *job, struct lun *lun)
{
    struct nexus **nx;
    unsigned n = own_nexuses(lun, w, &nx);

    for (unsigned i = 0; i < n; i++) {
        abort_list(job, &nx[i]->tasks);
        ua_set(nx[i], UA_LUN_RESET); /* every I_T nexus, who asked for it too */
    }
    free(nx);
}

static void
on_visit(struct worker *w, void *arg)
{
    struct tmf_visit *v = arg;

    visit(w, v->job, v->lun);
    lun_put(v->lun);
    job_put(v->job);
    free(v);
}

/* One message to each other worker that has a nexus of the unit; here at once, so that what its
 * initiator sends after the function is not taken for older. */
static void
visit_workers(struct tmf_job *job, struct lun *lun)
{
    struct worker **ws;
    unsigned n = 0, max = 0;

    pthread_mutex_lock(&lun->lock);
    list_each(it, &lun->nexuses)
        max++;
    ws = xcalloc(max + 1, sizeof *ws);
    list_each(it, &lun->nexuses) {
        struct worker *w = container_of(it, struct nexus, on_lun)->w;
        unsigned i = 0;
        while (i < n && ws[i] != w)
            i++;
        if (i == n)
            ws[n++] = w;
    }
    pthread_mutex_unlock(&lun->lock);
    for (unsigned i = 0; i < n; i++) {
        if (ws[i] == job->w) {
            visit(job->w, job, lun);
            continue;
        }
        struct tmf_visit *v = xcalloc(1, sizeof *v);
        v->job = job;
        v->lun = lun_get(lun);
        atomic_fetch_add_explicit(&job->pending, 1, memory_order_relaxed);
        worker_post(ws[i], on_visit, v);
    }
    free(ws);
}

/* A reset that takes a write cache off (an initiator had turned it on) owes what MODE SELECT owes
 * then: who reads WCE=0 afterwards sends no SYNCHRONIZE CACHE for what was written before. */
struct tmf_flush {
    struct io io;
    struct tmf_job *job;
    struct lun *lun; /* reference */
};

static void
on_cache_flushed(struct io *io)
{
    struct tmf_flush *f = io_frame(io)->arg;

    lun_put(f->lun); /* a failure is sticky in the backend */
    job_put(f->job);
    free(f);
}

static void
flush_cache(struct tmf_job *job, struct lun *lun)
{
    struct tmf_flush *f = xcalloc(1, sizeof *f);

    f->job = job;
    f->lun = lun_get(lun);
    f->io.w = job->w;
    f->io.op = IO_FLUSH;
    f->io.len = be_size(lun->be);
    atomic_fetch_add_explicit(&job->pending, 1, memory_order_relaxed);
    io_push(&f->io, on_cache_flushed, f);
    be_submit(lun->be, &f->io);
}

static void
reset_unit(struct tmf_job *job, struct lun *lun)
{
    if (lun_reset_state(lun))
        flush_cache(job, lun);
    visit_workers(job, lun);
}

/* The rest of the session's end, for a session that lives on: what was reserved and prevented for
 * it goes.  In one go with the abort of what it has, as in visit(). */
static void
lose_nexus(struct tmf_job *job, struct nexus *nx)
{
    abort_list(job, &nx->tasks);
    pthread_mutex_lock(&nx->lun->lock);
    lun_forget_nexus(nx->lun, nx);
    pthread_mutex_unlock(&nx->lun->lock);
    ua_set(nx, UA_NEXUS_LOSS);
}

/* --- submit ---------------------------------------------------------------------------------- */

static uint8_t
run_on_unit(struct tmf_job *job, struct scsi_tmf *t)
{
    int number = lun_decode(t->lun);
    struct nexus *nx = number >= 0 ? itn_nexus(t->itn, (uint16_t)number) : NULL;

    if (nx == NULL && !lun_is_wlun(t->lun))
        return TMF_NO_LUN;
    if (nx == NULL)
        abort_loose(job, t);
    else if (t->function == TMF_LOGICAL_UNIT_RESET)
        reset_unit(job, nx->lun);
    else
        abort_list(job, &nx->tasks); /* TST=001b: CLEAR TASK SET reaches no further */
    return TMF_COMPLETE;
}

static uint8_t
run(struct tmf_job *job, struct scsi_tmf *t)
{
    switch (t->function) {
    case TMF_ABORT_TASK:
        if (t->ref == NULL || t->ref->phase == PH_NEW || t->ref->phase == PH_DONE)
            return TMF_NO_TASK;
        abort_and_wait(job, t->ref);
        return TMF_COMPLETE;
    case TMF_ABORT_TASK_SET:
    case TMF_CLEAR_TASK_SET:
    case TMF_LOGICAL_UNIT_RESET:
        return run_on_unit(job, t);
    case TMF_TARGET_WARM_RESET:
        for (unsigned i = 0; i < t->itn->nnx; i++)
            reset_unit(job, t->itn->nx[i]->lun);
        return TMF_COMPLETE;
    case TMF_I_T_NEXUS_RESET:
        for (unsigned i = 0; i < t->itn->nnx; i++)
            lose_nexus(job, t->itn->nx[i]);
        abort_list(job, &t->itn->loose);
        return TMF_COMPLETE;
    default:
        return TMF_NOT_SUPPORTED;
    }
}

uint8_t
scsi_tmf_query(const struct itn *itn, uint8_t function, const uint8_t lun[8], bool is_there)
{
    worker_assert_owner(itn->w);
    int number = lun_decode(lun);
    const struct nexus *nx = number >= 0 ? itn_nexus(itn, (uint16_t)number) : NULL;

    if (nx == NULL && !lun_is_wlun(lun))
        return TMF_NO_LUN;
    if (function == TMF_QUERY_ASYNC_EVENT)
        is_there = nx != NULL && atomic_load_explicit(&nx->ua, memory_order_acquire) != 0;
    return is_there ? TMF_SUCCEEDED : TMF_COMPLETE;
}

void
scsi_tmf_submit(struct scsi_tmf *t)
{
    worker_assert_owner(t->itn->w);
    struct tmf_job *job = xcalloc(1, sizeof *job);

    job->t = t;
    job->w = t->itn->w;
    atomic_init(&job->pending, 1);
    t->job = job;
    t->response = run(job, t);
    job_put(job);
}

void
scsi_tmf_forget(struct scsi_tmf *t)
{
    if (t->job == NULL)
        return;
    worker_assert_owner(t->job->w);
    t->job->t = NULL;
    t->job = NULL;
}
