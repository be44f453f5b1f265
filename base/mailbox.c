/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between threads: two locked lists (messages; helper jobs that are over) and an ev_async
 * on each worker, the set of data workers, and broadcasts.  Whoever makes a list non-empty wakes
 * the loop.  worker_post, worker_broadcast and worker_job_done: any thread.
 */
#include "config.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/pool.h"
#include "base/worker.h"
#include "base/worker_priv.h"

struct msg {
    struct list link;
    void (*fn)(struct worker *w, void *arg);
    void *arg;
    struct broadcast *bc; /* or NULL */
};

struct broadcast {
    atomic_uint left;
    void (*fn)(struct worker *w, void *arg);
    void *arg;
    struct worker *back;
    void (*done)(struct worker *back, void *arg);
};

struct worker_set {
    struct worker_set *older; /* kept: a reader may still look at it */
    unsigned n;
    struct worker *ws[];
};

static _Atomic(struct worker_set *) set;

/* True when it was taken. */
static bool
post(struct worker *w, struct msg *m)
{
    pthread_mutex_lock(&w->lock);
    bool closed = w->closed;
    if (!closed) {
        bool was_empty = list_is_empty(&w->msgs);
        list_add_tail(&w->msgs, &m->link);
        if (was_empty)
            ev_async_send(w->loop, &w->async);
    }
    pthread_mutex_unlock(&w->lock);
    return !closed;
}

void
worker_post(struct worker *w, void (*fn)(struct worker *w, void *arg), void *arg)
{
    struct msg *m = xcalloc(1, sizeof *m);
    m->fn = fn;
    m->arg = arg;
    if (!post(w, m))
        free(m);
}

void
worker_job_done(struct worker *w, struct helper_job *job)
{
    pthread_mutex_lock(&w->lock);
    bool was_empty = list_is_empty(&w->jobs_done);
    list_add_tail(&w->jobs_done, &job->link);
    if (was_empty && !w->closed)
        ev_async_send(w->loop, &w->async);
    pthread_mutex_unlock(&w->lock);
}

static void
broadcast_ran(struct broadcast *bc)
{
    if (atomic_fetch_sub(&bc->left, 1) != 1)
        return;
    worker_post(bc->back, bc->done, bc->arg);
    free(bc);
}

static void
run_jobs(struct worker *w, struct list *jobs)
{
    struct list *n;
    while ((n = list_pop(jobs)) != NULL) {
        struct helper_job *job = container_of(n, struct helper_job, link);
        atomic_fetch_sub_explicit(&w->jobs_out, 1, memory_order_relaxed);
        job->done(job);
    }
}

static void
run_msgs(struct worker *w, struct list *msgs)
{
    struct list *n;
    while ((n = list_pop(msgs)) != NULL) {
        struct msg *m = container_of(n, struct msg, link);
        m->fn(w, m->arg);
        if (m->bc)
            broadcast_ran(m->bc);
        free(m);
    }
}

void
mailbox_run_jobs(struct worker *w)
{
    struct list jobs;
    list_init(&jobs);
    pthread_mutex_lock(&w->lock);
    list_splice_tail(&jobs, &w->jobs_done);
    pthread_mutex_unlock(&w->lock);
    run_jobs(w, &jobs);
}

static void
on_async(struct ev_loop *loop, struct ev_async *a, int revents)
{
    (void)loop;
    (void)revents;
    struct worker *w = a->data;
    struct list msgs;
    list_init(&msgs);
    pthread_mutex_lock(&w->lock);
    list_splice_tail(&msgs, &w->msgs);
    pthread_mutex_unlock(&w->lock);
    mailbox_run_jobs(w);
    run_msgs(w, &msgs);
}

void
mailbox_init(struct worker *w)
{
    ev_async_init(&w->async, on_async);
    w->async.data = w;
    ev_async_start(w->loop, &w->async);
}

void
mailbox_close(struct worker *w)
{
    struct list msgs, *n;
    list_init(&msgs);
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    list_splice_tail(&msgs, &w->msgs);
    pthread_mutex_unlock(&w->lock);
    while ((n = list_pop(&msgs)) != NULL) {
        struct msg *m = container_of(n, struct msg, link);
        if (m->bc)
            broadcast_ran(m->bc);
        free(m);
    }
}

void
mailbox_fini(struct worker *w)
{
    ev_async_stop(w->loop, &w->async);
}

/* --- the set of data workers, broadcasts ------------------------------------------------------ */

void
worker_set_publish(struct worker **ws, unsigned n)
{
    struct worker_set *s = xmalloc(sizeof *s + n * sizeof s->ws[0]);
    s->older = atomic_load(&set);
    s->n = n;
    for (unsigned i = 0; i < n; i++)
        s->ws[i] = ws[i];
    atomic_store(&set, s);
}

unsigned
worker_count(void)
{
    struct worker_set *s = atomic_load(&set);
    return s ? s->n : 0;
}

struct worker *
worker_at(unsigned i)
{
    struct worker_set *s = atomic_load(&set);
    if (!s || i >= s->n)
        log_abort("no worker %u", i);
    return s->ws[i];
}

void
worker_broadcast(void (*fn)(struct worker *w, void *arg), void *arg, struct worker *back,
                 void (*done)(struct worker *back, void *arg))
{
    struct worker_set *s = atomic_load(&set);
    struct broadcast *bc = xcalloc(1, sizeof *bc);
    unsigned n = s ? s->n : 0;
    atomic_init(&bc->left, n + 1); /* one for this function */
    bc->fn = fn;
    bc->arg = arg;
    bc->back = back;
    bc->done = done;
    for (unsigned i = 0; i < n; i++) {
        struct msg *m = xcalloc(1, sizeof *m);
        m->fn = fn;
        m->arg = arg;
        m->bc = bc;
        if (!post(s->ws[i], m)) {
            free(m);
            broadcast_ran(bc);
        }
    }
    broadcast_ran(bc);
}
