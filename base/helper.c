/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper pool.  One lock, one queue; a job whose lane is full waits in the lane and enters the
 * queue when a job of the lane ends.  A lane counts its jobs from the queue on, so a slow lane
 * neither holds threads beyond its limit nor hides others behind it in the queue.  Results go
 * back through the mailbox of the job's worker.  Submit and cancel: any thread.
 */
#include "config.h"

#include "base/helper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/worker_priv.h"

#define STOP_WAIT_MS 2000 /* how long helper_pool_stop gives threads that are busy */

enum job_state { JOB_IDLE, JOB_IN_LANE, JOB_QUEUED, JOB_RUNNING };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work;  /* the queue has something, or stop */
    pthread_cond_t ended; /* a thread ended */
    struct list queue;
    unsigned queued, idle, threads, max;
    bool started, stopping;
} pool = {
    .lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP, /* held for a few loads and stores */
    .work = PTHREAD_COND_INITIALIZER,
    .ended = PTHREAD_COND_INITIALIZER,
    .queue = {&pool.queue, &pool.queue},
};

static void
enqueue(struct helper_job *job)
{
    job->state = JOB_QUEUED;
    if (job->lane)
        job->lane->running++;
    list_add_tail(&pool.queue, &job->link);
    pool.queued++;
    pthread_cond_signal(&pool.work);
}

/* A job of the lane is over: the next one of the lane moves up. */
static void
lane_next(struct helper_lane *lane)
{
    lane->running--;
    struct list *n = list_pop(&lane->waiting);
    if (n)
        enqueue(container_of(n, struct helper_job, link));
}

static void *
helper_main(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        struct list *n = list_pop(&pool.queue);
        if (!n) {
            if (pool.stopping)
                break;
            pool.idle++;
            pthread_cond_wait(&pool.work, &pool.lock);
            pool.idle--;
            continue;
        }
        struct helper_job *job = container_of(n, struct helper_job, link);
        struct helper_lane *lane = job->lane;
        job->state = JOB_RUNNING;
        pool.queued--;
        pthread_mutex_unlock(&pool.lock);
        job->run(job);
        pthread_mutex_lock(&pool.lock);
        job->state = JOB_IDLE;
        if (lane)
            lane_next(lane);
        pthread_mutex_unlock(&pool.lock);
        /* from here on the job is its worker's: nothing of it may be touched */
        worker_job_done(job->w, job);
        pthread_mutex_lock(&pool.lock);
    }
    pool.threads--;
    pthread_cond_signal(&pool.ended);
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* Under the lock. 0 or -errno. */
static int
thread_start(void)
{
    sigset_t all, old;
    pthread_t t;
    guard_thread_signals(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
    int err = pthread_create(&t, NULL, helper_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err)
        return -err;
    pthread_detach(t); /* it may hang in the kernel for ever */
    pool.threads++;
    return 0;
}

int
helper_pool_start(unsigned min_threads, unsigned max_threads)
{
    pthread_mutex_lock(&pool.lock);
    pool.max = max_threads > min_threads ? max_threads : min_threads;
    if (pool.max == 0)
        pool.max = 1;
    pool.stopping = false;
    pool.started = true;
    int err = 0;
    while (pool.threads < (min_threads > 0 ? min_threads : 1) && !err)
        err = thread_start();
    if (pool.threads > 0)
        err = 0; /* fewer than wished for do as well */
    pool.started = err == 0;
    pthread_mutex_unlock(&pool.lock);
    return err;
}

void
helper_pool_stop(void)
{
    struct timespec until;
    clock_deadline(&until, STOP_WAIT_MS);
    pthread_mutex_lock(&pool.lock);
    pool.stopping = true;
    pool.started = false;
    pthread_cond_broadcast(&pool.work);
    while (pool.threads > 0)
        if (pthread_cond_timedwait(&pool.ended, &pool.lock, &until) == ETIMEDOUT)
            break;
    unsigned hung = pool.threads;
    pthread_mutex_unlock(&pool.lock);
    if (hung > 0)
        log_event(LL_WARN, LA_WORKER, "helpers-left-behind n=%u", hung);
}

void
helper_lane_init(struct helper_lane *lane, unsigned limit)
{
    list_init(&lane->waiting);
    list_init(&lane->link);
    lane->running = 0;
    lane->limit = limit > 0 ? limit : 1;
}

void
helper_lane_fini(struct helper_lane *lane)
{
    pthread_mutex_lock(&pool.lock);
    bool busy = lane->running > 0 || !list_is_empty(&lane->waiting);
    pthread_mutex_unlock(&pool.lock);
    if (busy)
        log_abort("helper lane ended with jobs");
}

void
helper_submit(struct helper_job *job)
{
    atomic_fetch_add_explicit(&job->w->jobs_out, 1, memory_order_relaxed);
    pthread_mutex_lock(&pool.lock);
    if (!pool.started && !pool.stopping)
        log_abort("helper job before helper_pool_start");
    if (job->lane && job->lane->running >= job->lane->limit) {
        job->state = JOB_IN_LANE;
        list_add_tail(&job->lane->waiting, &job->link);
        pthread_mutex_unlock(&pool.lock);
        return;
    }
    enqueue(job);
    if (pool.queued > pool.idle && pool.threads < pool.max && !pool.stopping) {
        int err = thread_start();
        if (err && pool.threads == 0)
            log_event(LL_ERROR, LA_WORKER, "no-helper-thread error=\"%s\"", strerror(-err));
    }
    pthread_mutex_unlock(&pool.lock);
}

bool
helper_cancel(struct helper_job *job)
{
    bool taken = false;
    pthread_mutex_lock(&pool.lock);
    if (job->state == JOB_IN_LANE) {
        list_del(&job->link);
        taken = true;
    } else if (job->state == JOB_QUEUED) {
        list_del(&job->link);
        pool.queued--;
        if (job->lane)
            lane_next(job->lane);
        taken = true;
    }
    if (taken)
        job->state = JOB_IDLE;
    pthread_mutex_unlock(&pool.lock);
    if (taken)
        atomic_fetch_sub_explicit(&job->w->jobs_out, 1, memory_order_relaxed);
    return taken;
}
