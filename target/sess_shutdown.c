/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's orderly end: every session is asked to log out (RFC 7143 11.9.1 event 1), and those
 * that are left at the deadline are dropped.  Called by main.c; main and every worker.
 */
#include "config.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/pool.h"
#include "target/target.h"

#define POLL_MS  20u
#define FLUSH_MS 500u /* for the last words of those that were dropped */

struct sess_shutdown {
    void (*done)(void *arg);
    void *arg;
    struct worker *main;
    struct worker_timer timer;
    uint64_t deadline_ms;
    atomic_uint left; /* connections, counted anew by each round */
    bool killed;
};

static void
on_ask(struct worker *w, void *arg)
{
    (void)w;
    (void)arg;
    list_each(it, &tgt_here()->conns) {
        struct conn *c = container_of(it, struct conn, on_worker);
        if (c->closing)
            continue;
        if (!conn_is_full_feature(c) || c->discovery) {
            conn_close(c, "the daemon ends", true);
            continue;
        }
        async_ask_logout(c, tgt_opts.shutdown_s, "the daemon ends");
    }
}

static void
on_kill(struct worker *w, void *arg)
{
    (void)w;
    (void)arg;
    list_each_safe(it, &tgt_here()->sessions)
        sess_drop(container_of(it, struct sess, on_worker), "the daemon ends");
    list_each(it, &tgt_here()->conns) {
        struct conn *c = container_of(it, struct conn, on_worker);
        if (!c->closing)
            conn_close(c, "the daemon ends", false);
    }
}

static void
on_count(struct worker *w, void *arg)
{
    struct sess_shutdown *sd = arg;
    (void)w;
    atomic_fetch_add(&sd->left, tgt_here()->nconns);
}

static void
on_counted(struct worker *back, void *arg)
{
    struct sess_shutdown *sd = arg;
    bool late = clock_ms() >= sd->deadline_ms;
    if (atomic_load(&sd->left) > 0 && !late) {
        worker_timer_start_ms(&sd->timer, POLL_MS);
        return;
    }
    if (atomic_load(&sd->left) > 0 && !sd->killed) {
        sd->killed = true;
        sd->deadline_ms = clock_ms() + FLUSH_MS;
        worker_broadcast(on_kill, sd, back, on_counted);
        return;
    }
    worker_timer_stop(&sd->timer);
    sd->done(sd->arg);
    free(sd);
}

static void
on_poll(struct worker_timer *t)
{
    struct sess_shutdown *sd = container_of(t, struct sess_shutdown, timer);
    atomic_store(&sd->left, 0);
    worker_broadcast(on_count, sd, sd->main, on_counted);
}

static void
on_asked(struct worker *back, void *arg)
{
    struct sess_shutdown *sd = arg;
    (void)back;
    worker_timer_start_ms(&sd->timer, POLL_MS);
}

void
sess_shutdown_all(void (*done)(void *arg), void *arg)
{
    struct sess_shutdown *sd = xcalloc(1, sizeof *sd);
    sd->done = done;
    sd->arg = arg;
    sd->main = worker_self();
    sd->deadline_ms = clock_ms() + tgt_opts.shutdown_s * 1000ull;
    worker_timer_init(&sd->timer, sd->main, on_poll);
    worker_broadcast(on_ask, sd, sd->main, on_asked);
}
