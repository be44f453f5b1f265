/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers: the loop, its prepare step, timers and the life of the thread.  The mailbox and
 * broadcasts are in base/mailbox.c.  Everything here runs on the worker's own thread but for
 * worker_start, worker_join (main).
 */
#include "config.h"

#include "base/worker.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/guard.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/worker_priv.h"

#define DEFAULT_MEM    (256ull * 1024 * 1024)
#define MAX_ROUNDS     64u
#define SHRINK_MS      1000u
#define COARSE_FROM_US 100000u /* timers of this length and more end on a multiple of ... */
#define FINE_BELOW_US  50000u
#define COARSE_US      10000u

_Thread_local struct worker *worker_here;

/* Workers that requests still point to; never freed. Main only. */
static struct worker *left_behind;

/* --- the prepare step ------------------------------------------------------------------------ */

static bool
run_list(struct list *l)
{
    struct list batch, *n;
    bool any = false;
    list_init(&batch);
    list_splice_tail(&batch, l); /* what is deferred meanwhile is the next round's */
    while ((n = list_pop(&batch)) != NULL) {
        struct deferred *d = container_of(n, struct deferred, link);
        d->fn(d);
        any = true;
    }
    return any;
}

static bool run_fake_timers(struct worker *w);

/* Ready list -> flush list -> disk requests, until nothing is left. True when anything was done;
 * *more when the bound was met before the end. */
static bool
work(struct worker *w, bool *more)
{
    bool any = clock_is_fake() && run_fake_timers(w);
    for (unsigned round = 0; round < MAX_ROUNDS; round++) {
        bool did = disk_reap(w);
        did |= run_list(&w->ready);
        if (list_is_empty(&w->ready))
            did |= run_list(&w->flush);
        if (list_is_empty(&w->ready) && list_is_empty(&w->flush))
            did |= disk_flush(w);
        any |= did;
        if (!did) {
            *more = false;
            return any;
        }
    }
    disk_flush(w);
    *more = true;
    return any;
}

static void
on_idle(struct ev_loop *loop, struct ev_idle *idle, int revents)
{
    (void)loop;
    (void)idle;
    (void)revents; /* its being active keeps the loop from sleeping */
}

static void
on_prepare(struct ev_loop *loop, struct ev_prepare *p, int revents)
{
    (void)revents;
    struct worker *w = p->data;
    bool more;
    bool did = work(w, &more);
    if (w->spin.limit_us != 0 && spin_turn(&w->spin, did, clock_us()))
        more = true;
    /* worker_turn must not sleep when what the test waits for happened in here */
    if (more || (did && w->kind == WK_LOCAL))
        ev_idle_start(loop, &w->idle);
    else
        ev_idle_stop(loop, &w->idle);
}

void
worker_defer(struct worker *w, struct deferred *d)
{
    worker_assert_owner(w);
    if (!list_is_linked(&d->link))
        list_add_tail(&w->ready, &d->link);
}

void
worker_defer_flush(struct worker *w, struct deferred *d)
{
    worker_assert_owner(w);
    if (!list_is_linked(&d->link))
        list_add_tail(&w->flush, &d->link);
}

/* --- timers ---------------------------------------------------------------------------------- */

static void
timer_fire(struct worker_timer *t)
{
    list_del(&t->link);
    t->fn(t);
}

/* Short timers: epoll waits whole milliseconds, so a timerfd tells when the first of them is due. */
static void
fine_arm(struct worker *w)
{
    if (list_is_empty(&w->fine))
        return;
    uint64_t due = list_first(&w->fine, struct worker_timer, link)->due_us;
    if (due == w->fine_armed_us)
        return;
    struct itimerspec its = {
        .it_value = {.tv_sec = (time_t)(due / 1000000), .tv_nsec = (long)(due % 1000000) * 1000}};
    timerfd_settime(w->fine_fd, TFD_TIMER_ABSTIME, &its, NULL);
    w->fine_armed_us = due;
}

static void
on_fine(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    (void)loop;
    (void)revents;
    struct worker *w = ev->data;
    uint64_t n, now = clock_us();
    (void)!read(w->fine_fd, &n, sizeof n);
    w->fine_armed_us = 0;
    while (!list_is_empty(&w->fine)) {
        struct worker_timer *t = list_first(&w->fine, struct worker_timer, link);
        if (t->due_us > now)
            break;
        timer_fire(t);
    }
    fine_arm(w);
}

/* In the order in which they are due; mostly all are equally long, and this is the last. */
static void
fine_start(struct worker *w, struct worker_timer *t)
{
    struct list *after = w->fine.prev;
    while (after != &w->fine && container_of(after, struct worker_timer, link)->due_us > t->due_us)
        after = after->prev;
    list_insert_between(&t->link, after, after->next);
    fine_arm(w);
}

static bool
fine_init(struct worker *w)
{
    list_init(&w->fine);
    w->fine_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (w->fine_fd < 0)
        return false;
    ev_io_init(&w->fine_ev, on_fine, w->fine_fd, EV_READ);
    w->fine_ev.data = w;
    ev_io_start(w->loop, &w->fine_ev);
    return true;
}

static void
fine_fini(struct worker *w)
{
    ev_io_stop(w->loop, &w->fine_ev);
    close(w->fine_fd);
}

static void
timer_arm(struct worker_timer *t, uint64_t now)
{
    if (clock_is_fake())
        return; /* run_fake_timers finds it */
    double after = t->due_us > now ? (double)(t->due_us - now) / 1e6 : 0.;
    ev_timer_set(&t->ev, after, 0.);
    ev_timer_start(t->w->loop, &t->ev);
}

static void
on_timer(struct ev_loop *loop, struct ev_timer *ev, int revents)
{
    (void)loop;
    (void)revents;
    struct worker_timer *t = container_of(ev, struct worker_timer, ev);
    uint64_t now = clock_us();
    if (now < t->due_us)
        timer_arm(t, now); /* the loop's own idea of now was old when it was started */
    else
        timer_fire(t);
}

void
worker_timer_init(struct worker_timer *t, struct worker *w, void (*fn)(struct worker_timer *))
{
    ev_timer_init(&t->ev, on_timer, 0., 0.);
    list_init(&t->link);
    t->due_us = 0;
    t->w = w;
    t->fn = fn;
}

void
worker_timer_start_us(struct worker_timer *t, uint64_t us)
{
    worker_assert_owner(t->w);
    worker_timer_stop(t);
    uint64_t now = clock_us();
    t->due_us = us < UINT64_MAX - now - COARSE_US ? now + us : UINT64_MAX - COARSE_US;
    if (us >= COARSE_FROM_US && !clock_is_fake())
        t->due_us = (t->due_us + COARSE_US - 1) / COARSE_US * COARSE_US;
    if (us < FINE_BELOW_US && !clock_is_fake()) {
        fine_start(t->w, t);
        return;
    }
    list_add_tail(&t->w->timers, &t->link);
    timer_arm(t, now);
}

void
worker_timer_stop(struct worker_timer *t)
{
    if (!worker_timer_is_active(t))
        return;
    worker_assert_owner(t->w);
    list_del(&t->link);
    ev_timer_stop(t->w->loop, &t->ev);
}

bool
worker_timer_is_active(const struct worker_timer *t)
{
    return t->link.next && list_is_linked(&t->link);
}

/* Timers in the order of a faked clock. Tests only: a search each. */
static bool
run_fake_timers(struct worker *w)
{
    list_splice_tail(&w->timers, &w->fine); /* started before the clock was faked */
    for (unsigned n = 0;; n++) {
        struct worker_timer *first = NULL;
        list_each(it, &w->timers) {
            struct worker_timer *t = container_of(it, struct worker_timer, link);
            if (t->due_us <= clock_us() && (!first || t->due_us < first->due_us))
                first = t;
        }
        if (!first || n == 1000)
            return n > 0;
        ev_timer_stop(w->loop, &first->ev); /* may have been started before the clock was faked */
        timer_fire(first);
    }
}

/* The last of what a burst of work took: the C library keeps it for the next one otherwise. */
static void
trim_heap(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static void
on_shrink(struct worker_timer *t)
{
    bufpool_shrink(t->w->bufs);
    if (bufpool_can_shrink(t->w->bufs))
        worker_timer_start_ms(t, SHRINK_MS);
    else
        trim_heap();
}

void
worker_housekeep(struct worker *w)
{
    if (!worker_timer_is_active(&w->shrink_timer))
        worker_timer_start_ms(&w->shrink_timer, SHRINK_MS);
}

/* --- life ------------------------------------------------------------------------------------ */

static struct worker *
worker_alloc(const struct worker_opts *opts, enum worker_kind kind)
{
    struct worker *w = xcalloc(1, sizeof *w);
    w->id = opts->id;
    w->kind = kind;
    w->opts = *opts;
    spin_init(&w->spin, opts->spin_us);
    if (w->opts.mem_bytes == 0) {
        w->opts.mem_bytes = DEFAULT_MEM;
        w->opts.mem_reserve = DEFAULT_MEM / 2;
    }
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->cond, NULL);
    list_init(&w->msgs);
    list_init(&w->jobs_done);
    list_init(&w->ready);
    list_init(&w->flush);
    list_init(&w->timers);
    list_init(&w->orphans);
    return w;
}

static void
worker_release(struct worker *w)
{
    pthread_cond_destroy(&w->cond);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* On the worker's thread. 0 or -errno; on failure there is nothing to undo but w itself. */
static int
worker_setup(struct worker *w)
{
    unsigned flags = EVBACKEND_EPOLL | EVFLAG_NOENV;
    w->owner = pthread_self();
    w->loop = w->kind == WK_MAIN ? ev_default_loop(flags) : ev_loop_new(flags);
    if (!w->loop)
        return -ENOMEM;
    int err = fine_init(w) ? disk_init(w) : -errno;
    if (err < 0) {
        if (w->fine_fd >= 0)
            fine_fini(w);
        ev_loop_destroy(w->loop);
        return err;
    }
    worker_here = w;
    counter_attach();
    ev_prepare_init(&w->prepare, on_prepare);
    w->prepare.data = w;
    ev_prepare_start(w->loop, &w->prepare);
    ev_idle_init(&w->idle, on_idle);
    mailbox_init(w);
    w->bufs = bufpool_new(w);
    worker_timer_init(&w->shrink_timer, w, on_shrink);
    budget_worker_init(w);
    return 0;
}

/* On the worker's thread. Afterwards only worker_post and worker_job_done may touch w. */
static void
worker_teardown(struct worker *w)
{
    bool more;
    mailbox_run_jobs(w);
    work(w, &more); /* what the last callbacks deferred */
    mailbox_close(w);
    budget_worker_fini(w);
    worker_timer_stop(&w->shrink_timer);
    bufpool_free(w->bufs);
    disk_fini(w);
    mailbox_fini(w);
    fine_fini(w);
    ev_idle_stop(w->loop, &w->idle);
    ev_prepare_stop(w->loop, &w->prepare);
    ev_loop_destroy(w->loop);
    counter_detach();
    if (worker_here == w)
        worker_here = NULL;
}

/* Frees w unless a request or a job still points to it. */
static void
worker_drop(struct worker *w)
{
    if (w->disk_count == 0 && atomic_load(&w->jobs_out) == 0) {
        worker_release(w);
        return;
    }
    log_event(LL_NOTICE, LA_WORKER, "worker-ends-busy id=%u disk=%u jobs=%d",
              w->id, w->disk_count, atomic_load(&w->jobs_out));
    w->next_left = left_behind;
    left_behind = w;
}

static void
thread_report(struct worker *w, int started, bool ended)
{
    pthread_mutex_lock(&w->lock);
    if (w->started == 0)
        w->started = started;
    w->ended = ended;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static void *
worker_thread(void *arg)
{
    struct worker *w = arg;
    int err = worker_setup(w);
    if (err < 0) {
        thread_report(w, err, true);
        return NULL;
    }
    thread_report(w, 1, false);
    ev_run(w->loop, 0);
    worker_teardown(w);
    thread_report(w, 1, true);
    return NULL;
}

struct worker *
worker_start(const struct worker_opts *opts)
{
    struct worker *w = worker_alloc(opts, WK_THREAD);
    sigset_t all, old;
    guard_thread_signals(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
    int err = pthread_create(&w->thread, NULL, worker_thread, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (err) {
        worker_release(w);
        errno = err;
        return NULL;
    }
    pthread_mutex_lock(&w->lock);
    while (w->started == 0)
        pthread_cond_wait(&w->cond, &w->lock);
    int started = w->started;
    pthread_mutex_unlock(&w->lock);
    if (started < 0) {
        pthread_join(w->thread, NULL);
        worker_release(w);
        errno = -started;
        return NULL;
    }
    return w;
}

static void
on_stop(struct worker *w, void *arg)
{
    (void)arg;
    ev_break(w->loop, EVBREAK_ALL);
}

void
worker_stop(struct worker *w)
{
    worker_post(w, on_stop, NULL);
}

void
worker_join(struct worker *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->ended)
        pthread_cond_wait(&w->cond, &w->lock);
    pthread_mutex_unlock(&w->lock);
    /* The kernel makes an ending thread wait for threads of its ring that hang in a device, so a
     * thread with requests in flight is not waited for. */
    if (w->disk_count == 0)
        pthread_join(w->thread, NULL);
    else
        pthread_detach(w->thread);
    worker_drop(w);
}

struct worker *
worker_main_init(const struct worker_opts *opts)
{
    struct worker *w = worker_alloc(opts, WK_MAIN);
    w->opts.engine = ENGINE_POOL;
    int err = worker_setup(w);
    if (err < 0) {
        worker_release(w);
        errno = -err;
        return NULL;
    }
    return w;
}

void
worker_run(struct worker *w)
{
    worker_assert_owner(w);
    ev_run(w->loop, 0);
}

void
worker_main_fini(struct worker *w)
{
    worker_assert_owner(w);
    worker_teardown(w);
    worker_drop(w);
}

struct worker *
worker_new_local(const struct worker_opts *opts)
{
    struct worker *w = worker_alloc(opts, WK_LOCAL);
    int err = worker_setup(w);
    if (err < 0) {
        worker_release(w);
        errno = -err;
        return NULL;
    }
    return w;
}

void
worker_turn(struct worker *w, bool wait)
{
    bool more;
    worker_assert_owner(w);
    struct worker *outer = worker_here;
    worker_here = w;
    bool did = work(w, &more);
    ev_run(w->loop, wait && !did ? EVRUN_ONCE : EVRUN_NOWAIT);
    work(w, &more);
    worker_here = outer;
}

void
worker_free_local(struct worker *w)
{
    worker_assert_owner(w);
    worker_teardown(w);
    worker_drop(w);
}

unsigned
worker_id(const struct worker *w)
{
    return w->id;
}

struct ev_loop *
worker_loop(struct worker *w)
{
    return w->loop;
}

enum disk_engine
worker_engine(const struct worker *w)
{
    return w->engine;
}

struct bufpool *
worker_bufs(struct worker *w)
{
    return w->bufs;
}

struct budget *
worker_budget(struct worker *w)
{
    return &w->budget;
}

void
worker_command(struct worker *w)
{
    spin_command(&w->spin);
}

struct worker *
worker_self(void)
{
    return worker_here;
}

void
worker_assert_slowly(const struct worker *w)
{
    if (!pthread_equal(w->owner, pthread_self()))
        log_abort("worker %u: owned state touched by another thread", w->id);
}

void
worker_orphan_add(struct worker *w, struct list *n)
{
    worker_assert_owner(w);
    list_add_tail(&w->orphans, n);
    w->norphans++;
}

void
worker_orphan_del(struct worker *w, struct list *n)
{
    worker_assert_owner(w);
    list_del(n);
    w->norphans--;
}

unsigned
worker_orphan_count(const struct worker *w)
{
    worker_assert_owner(w);
    return w->norphans;
}
