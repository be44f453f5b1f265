/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accepting: listening sockets on main, whose connections go to the workers in turn.  Made by
 * portal.c; everything here runs on main, but on_accepted.
 *
 * Accepting must never spin: when descriptors or memory run out, the listeners rest for a while
 * and the peer in the front is turned away by means of a descriptor kept in reserve.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/pool.h"
#include "target/target.h"

#define ACCEPT_BURST 64  /* connections of one listener in one loop turn */
#define REST_MS      100 /* after running out of descriptors or memory */

struct listener {
    struct list link;
    struct portal_id id;
    struct sockaddr_storage addr;
    struct ev_io ev;
    int fd;
};

struct accepted {
    int fd;
    struct conn_from from;
};

static struct {
    struct list listeners;
    struct worker *main; /* NULL: nothing listens yet */
    struct worker_timer rest;
    int spare; /* see turn_away */
    unsigned next_worker;
    struct log_rate rate;
} ac;

static void
on_accepted(struct worker *w, void *arg)
{
    struct accepted *a = arg;
    conn_accept(w, a->fd, &a->from);
    free(a);
}

static void
complain(const struct listener *l, const char *what)
{
    uint32_t suppressed = 0;
    char text[64], more[32] = "";
    if (!log_rate_ok(&ac.rate, &suppressed))
        return;
    if (suppressed != 0)
        (void)snprintf(more, sizeof more, " suppressed=%" PRIu32, suppressed);
    log_event(LL_WARN, LA_NET, "portal-trouble addr=%s why=\"%s\"%s",
              portal_text(&l->addr, text, sizeof text), what, more);
}

/* Takes over fd. */
static void
hand_over(struct listener *l, int fd, const struct sockaddr_storage *peer)
{
    struct conn_from from = {.peer = *peer, .via = l->id};
    socklen_t len = sizeof from.local;
    unsigned n = worker_count();
    struct worker *w = n > 0 ? worker_at(ac.next_worker++ % n) : NULL;
    if (w == NULL || getsockname(fd, (struct sockaddr *)&from.local, &len) != 0) {
        (void)close(fd);
        return;
    }
    from.half = half_new(peer, w);
    if (from.half == NULL) {
        counter_add(CT_CONN_REFUSED, 1);
        complain(l, "connection refused, too many before login");
        (void)close(fd);
        return;
    }
    struct accepted *a = xmalloc(sizeof *a);
    *a = (struct accepted){.fd = fd, .from = from};
    worker_post(w, on_accepted, a);
}

static void
watch_all(bool on)
{
    list_each(it, &ac.listeners) {
        struct listener *l = container_of(it, struct listener, link);
        if (on)
            ev_io_start(worker_loop(ac.main), &l->ev);
        else
            ev_io_stop(worker_loop(ac.main), &l->ev);
    }
}

static int
open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* No descriptor for the connection in front: it stays in the backlog and the listener readable.
 * The spare one lets it be taken and closed, so that the peer learns of it at once; then all
 * listeners rest. */
static void
turn_away(struct listener *l, int error)
{
    if (error == EMFILE || error == ENFILE) {
        if (ac.spare >= 0)
            (void)close(ac.spare);
        int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)close(fd);
            counter_add(CT_CONN_REFUSED, 1);
        }
        ac.spare = open_spare();
    }
    complain(l, error == EMFILE || error == ENFILE ? "out of file descriptors" : "out of memory");
    watch_all(false);
    worker_timer_start_ms(&ac.rest, REST_MS);
}

static void
on_readable(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    struct listener *l = container_of(ev, struct listener, ev);
    (void)loop;
    (void)revents;
    for (unsigned i = 0; i < ACCEPT_BURST; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t len = sizeof peer;
        int fd = accept4(l->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            hand_over(l, fd, &peer);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            turn_away(l, errno);
            return;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return;
        /* Others (ECONNABORTED, EPROTO, network errors) concern the one connection (accept(2)). */
    }
}

static void
on_rest_over(struct worker_timer *t)
{
    (void)t;
    watch_all(true);
}

struct listener *
listener_new(int fd, const struct portal_id *id, const struct sockaddr_storage *addr)
{
    if (ac.main == NULL) {
        ac.main = worker_self();
        list_init(&ac.listeners);
        worker_timer_init(&ac.rest, ac.main, on_rest_over);
        ac.spare = open_spare();
    }
    worker_assert_owner(ac.main);
    struct listener *l = xcalloc(1, sizeof *l);
    l->fd = fd;
    l->id = *id;
    l->addr = *addr;
    xp_set_dscp(fd);
    list_add_tail(&ac.listeners, &l->link);
    ev_io_init(&l->ev, on_readable, fd, EV_READ);
    if (!worker_timer_is_active(&ac.rest))
        ev_io_start(worker_loop(ac.main), &l->ev);
    return l;
}

void
listener_set_group(struct listener *l, uint16_t tpgt)
{
    worker_assert_owner(ac.main);
    l->id.tpgt = tpgt;
}

void
listener_free(struct listener *l)
{
    worker_assert_owner(ac.main);
    ev_io_stop(worker_loop(ac.main), &l->ev);
    list_del(&l->link);
    (void)close(l->fd);
    free(l);
}

void
listener_end(void)
{
    if (ac.main == NULL)
        return;
    worker_assert_owner(ac.main);
    worker_timer_stop(&ac.rest);
    if (ac.spare >= 0)
        (void)close(ac.spare);
    ac.spare = -1;
    ac.main = NULL;
}
