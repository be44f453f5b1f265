/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker: one thread, one libev loop (epoll), one io_uring (or the helper pool in its place),
 * one mailbox.  Everything that has an owner lives on one worker and is touched by its thread
 * only; other threads reach it by worker_post.  The main thread is a worker too (worker_main):
 * it owns the configuration, the portals' listeners, the registry and the admin socket; it has
 * no sessions.  Nothing ever blocks on a loop: what can block goes to base/helper.h.
 *
 * Order within one loop turn, in ev_prepare, repeated until nothing is left (bounded, then the
 * loop turns without sleeping): ready list -> flush list -> one io_uring_submit for all SQEs.
 *
 * The ring is IORING_SETUP_SINGLE_ISSUER | COOP_TASKRUN | TASKRUN_FLAG, its descriptor a watcher
 * in the loop.  Never DEFER_TASKRUN with the ring's descriptor in epoll: completions would not
 * wake the loop.  It is created on the worker's own thread.
 */
#ifndef BASE_WORKER_H
#define BASE_WORKER_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"

struct worker;
struct bufpool; /* base/buf.h */
struct budget;  /* base/budget.h */

enum disk_engine {
    ENGINE_AUTO, /* ring when it is to be had, else pool (said once in the log) */
    ENGINE_RING,
    ENGINE_POOL,
};

struct worker_opts {
    unsigned id; /* 0.. for workers; ignored by worker_main_init */
    enum disk_engine engine;
    unsigned ring_entries; /* 0: 256 */
    uint64_t mem_bytes;    /* budget of this worker; 0: 256 MiB, and half as much in reserve */
    uint64_t mem_reserve;  /* with mem_bytes: see budget.h */
    struct budget *parent; /* the daemon's budget, or NULL */
    uint32_t spin_us;      /* how long to look on before sleeping, where that pays; 0: not */
};

/* Starts the thread and returns once its loop and engine stand; NULL with errno set. Main only. */
struct worker *worker_start(const struct worker_opts *opts);
/* Asks the loop to end after the current turn (posts). Any thread. */
void worker_stop(struct worker *w);
/* Waits for the thread to end and frees the worker. A disk request that the kernel still has is
 * left behind on purpose (its memory with it): exit never waits for a hung device. Where a thread
 * cannot leave the kernel (a frozen file system), the process ends for its users but the kernel
 * keeps it and its descriptors until the device answers: main closes listeners and locks itself
 * before it exits, so that a new daemon can start. Main only. */
void worker_join(struct worker *w);

/* The main thread's worker, in the calling thread, on libev's default loop, with a mailbox but
 * without a ring (its disk requests go to the helper pool). Run it by worker_run. */
struct worker *worker_main_init(const struct worker_opts *opts);
void worker_run(struct worker *w);
void worker_main_fini(struct worker *w);

/* Unit tests: a worker in the calling thread with its own loop and the given engine; drive it
 * with worker_turn (one loop iteration; wait: may sleep). */
struct worker *worker_new_local(const struct worker_opts *opts);
void worker_turn(struct worker *w, bool wait);
void worker_free_local(struct worker *w);

unsigned worker_id(const struct worker *w);
struct ev_loop *worker_loop(struct worker *w);
enum disk_engine worker_engine(const struct worker *w); /* RING or POOL, never AUTO */
struct bufpool *worker_bufs(struct worker *w);
struct budget *worker_budget(struct worker *w);
/* A command came in: for the judgement whether busy polling pays. */
void worker_command(struct worker *w);
/* The worker whose thread this is, or NULL. */
struct worker *worker_self(void);
/* Aborts with a message when called on another thread: at the entry of every owned function. */
extern _Thread_local struct worker *worker_here; /* mostly the only worker of a thread */
void worker_assert_slowly(const struct worker *w);
static inline void
worker_assert_owner(const struct worker *w)
{
    if (worker_here != w)
        worker_assert_slowly(w);
}

/* --- messages ------------------------------------------------------------------------------ */

/* fn(w, arg) runs on w's thread in a later loop turn, in the order posted by one thread.
 * Any thread (also w's own). Never fails: memory is taken with abort-on-failure. */
void worker_post(struct worker *w, void (*fn)(struct worker *w, void *arg), void *arg);

/* The set of data workers, fixed between worker_set_publish calls (main, before sessions). */
void worker_set_publish(struct worker **ws, unsigned n);
unsigned worker_count(void);
struct worker *worker_at(unsigned i);

/* fn on every data worker, then done(arg) on `back` once all have run it. Any thread.
 * A worker that was stopped counts as having run it. */
void worker_broadcast(void (*fn)(struct worker *w, void *arg), void *arg, struct worker *back,
                      void (*done)(struct worker *back, void *arg));

/* --- deferred work on the own loop ----------------------------------------------------------- */

/* Embedded; must be initialised with deferred_init; cancel by deferred_cancel (idempotent). */
struct deferred {
    struct list link;
    void (*fn)(struct deferred *d);
};

static inline void
deferred_init(struct deferred *d, void (*fn)(struct deferred *d))
{
    list_init(&d->link);
    d->fn = fn;
}

static inline void
deferred_cancel(struct deferred *d)
{
    list_del(&d->link);
}

/* Runs d->fn before the loop sleeps, on the ready list (completions). Already queued: no-op. */
void worker_defer(struct worker *w, struct deferred *d);
/* The same on the flush list, after the ready list is empty (gathering sends). */
void worker_defer_flush(struct worker *w, struct deferred *d);

/* --- timers ---------------------------------------------------------------------------------- */

/* One-shot timer in base/clock time, coarse (coalesced to 10 ms unless `us` is small); embedded. */
struct worker_timer {
    struct ev_timer ev; /* private */
    struct list link;   /* private */
    uint64_t due_us;    /* private */
    struct worker *w;
    void (*fn)(struct worker_timer *t);
};

void worker_timer_init(struct worker_timer *t, struct worker *w, void (*fn)(struct worker_timer *));
void worker_timer_start_us(struct worker_timer *t, uint64_t us); /* restarts when running */
static inline void
worker_timer_start_ms(struct worker_timer *t, uint64_t ms)
{
    worker_timer_start_us(t, ms * 1000);
}
void worker_timer_stop(struct worker_timer *t);
bool worker_timer_is_active(const struct worker_timer *t);

/* --- the orphan list: what outlives its session (DESIGN 3.7) ---------------------------------- */

/* Count of requests whose owner died while a backend still has them; shown by counters and
 * waited for by nobody. */
void worker_orphan_add(struct worker *w, struct list *n);
void worker_orphan_del(struct worker *w, struct list *n);
unsigned worker_orphan_count(const struct worker *w);

#endif
