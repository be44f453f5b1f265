/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of base/ share about a worker; nobody outside of base/ includes this.  All of it
 * is the owner's thread's but what stands under `lock` and the atomics.
 */
#ifndef BASE_WORKER_PRIV_H
#define BASE_WORKER_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/budget.h"
#include "base/helper.h"
#include "base/spin.h"
#include "base/worker.h"

struct disk_ring;

enum worker_kind { WK_THREAD, WK_MAIN, WK_LOCAL };

struct worker {
    unsigned id;
    enum worker_kind kind;
    enum disk_engine engine; /* RING or POOL once it stands */
    pthread_t thread;        /* for pthread_join */
    pthread_t owner;
    struct ev_loop *loop;
    struct ev_prepare prepare;
    struct ev_idle idle;
    struct spin spin;
    struct ev_async async;

    pthread_mutex_t lock;
    pthread_cond_t cond;   /* state changes of the thread, for worker_start and worker_join */
    int started;           /* 0: not yet; 1: stands; -errno */
    bool ended;            /* the thread touches the worker no more */
    bool closed;           /* nothing is taken from the mailbox any more */
    struct list msgs;      /* struct msg */
    struct list jobs_done; /* struct helper_job */

    atomic_int jobs_out; /* helper jobs submitted whose done has not run */

    struct list ready, flush; /* struct deferred */
    struct list timers;       /* active worker_timers */
    struct list fine;         /* the short ones of them, in the order in which they are due */
    struct ev_io fine_ev;     /* their timerfd */
    int fine_fd;
    uint64_t fine_armed_us; /* what it is set to; 0: not */

    /* disk.c */
    struct disk_ring *ring; /* NULL: pool engine */
    unsigned disk_count;    /* submitted, not completed */
    struct list disk_busy;  /* disk_req with the kernel or the pool */
    struct list disk_wait;  /* disk_req without an SQE yet */
    struct list disk_done;  /* disk_req taken back, completion due */
    struct deferred disk_deferred;

    struct bufpool *bufs;
    struct worker_timer shrink_timer;

    struct budget budget;
    struct list budget_retry;   /* budgets whose first waiter lacks bytes of a shared level */
    struct list budget_granted; /* budget_wait, fn due */
    struct deferred budget_deferred;
    struct worker_timer budget_timer;

    struct list orphans;
    unsigned norphans;

    struct worker *next_left; /* workers that could not be freed */
    struct worker_opts opts;
};

/* mailbox.c. Between close and fini nothing is taken or run any more, but may still be tried. */
void mailbox_init(struct worker *w);
void mailbox_run_jobs(struct worker *w); /* jobs that came back so far */
void mailbox_close(struct worker *w);
void mailbox_fini(struct worker *w);

/* helper.c -> mailbox: job->done on w. Any thread. */
void worker_job_done(struct worker *w, struct helper_job *job);

/* buf.c: something is idle now. */
void worker_housekeep(struct worker *w);

/* disk.c. disk_init: 0 or -errno (ENGINE_RING only). */
int disk_init(struct worker *w);
/* The ring is left to the kernel when it still has requests. */
void disk_fini(struct worker *w);
/* Completions that are there already; true when there were any. */
bool disk_reap(struct worker *w);
/* Hands all prepared requests to the kernel; true when completions came of it. */
bool disk_flush(struct worker *w);
/* A request of w that is with the kernel or the pool uses some of these bytes. Slow: debug. */
bool disk_uses_memory(const struct worker *w, const void *p, size_t len);

/* budget.c */
void budget_worker_init(struct worker *w);
void budget_worker_fini(struct worker *w);

#endif
