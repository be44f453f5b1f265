/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Portals: listening sockets on main, whose connections go to the workers in turn.  Opened and
 * closed by apply.c and main.c; everything here runs on main, but portal_text and on_accepted.
 *
 * Accepting must never spin: when descriptors or memory run out, the listeners rest for a while
 * and the peer in the front is turned away by means of a descriptor kept in reserve.
 */
#include "config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/counter.h"
#include "base/opener.h"
#include "base/pool.h"
#include "target/target.h"

#define BACKLOG      1024
#define ACCEPT_BURST 64    /* connections of one portal in one loop turn */
#define REST_MS      100   /* after running out of descriptors or memory */
#define REFRESH_MS   15000 /* the host's addresses are looked up this often */

struct portal {
    struct list link;
    struct node_portal pub; /* port resolved */
    struct ev_io ev;
    int fd;
};

struct accepted {
    int fd;
    struct sockaddr_storage peer, local;
};

static struct {
    struct list portals;
    struct worker *main; /* NULL: nothing was opened yet */
    struct worker_timer rest, refresh;
    int spare; /* see turn_away */
    unsigned next_worker;
    struct log_rate rate;
} pt;

/* Sockets on their way to a worker: not yet counted by conn_half_open. */
static atomic_uint on_the_way;

/* --- addresses as text ----------------------------------------------------------------------- */

const char *
portal_text(const struct sockaddr_storage *sa, char *buf, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (sa->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)sa;
        unsigned port = ntohs(in6->sin6_port);
        if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
            (void)inet_ntop(AF_INET, in6->sin6_addr.s6_addr + 12, host, sizeof host);
            (void)snprintf(buf, size, "%s:%u", host, port);
        } else {
            (void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
            (void)snprintf(buf, size, "[%s]:%u", host, port);
        }
    } else if (sa->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)sa;
        (void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        (void)snprintf(buf, size, "%s:%u", host, (unsigned)ntohs(in->sin_port));
    } else {
        (void)snprintf(buf, size, "?");
    }
    return buf;
}

/* --- accepting ------------------------------------------------------------------------------- */

static void
on_accepted(struct worker *w, void *arg)
{
    struct accepted *a = arg;
    conn_accept(w, a->fd, &a->peer, &a->local);
    atomic_fetch_sub_explicit(&on_the_way, 1, memory_order_relaxed);
    free(a);
}

static void
complain(const struct portal *p, const char *what)
{
    uint32_t suppressed = 0;
    char text[64], more[32] = "";
    if (!log_rate_ok(&pt.rate, &suppressed))
        return;
    if (suppressed != 0)
        (void)snprintf(more, sizeof more, " suppressed=%" PRIu32, suppressed);
    log_event(LL_WARN, LA_NET, "portal-trouble addr=%s why=\"%s\"%s",
              portal_text(&p->pub.addr, text, sizeof text), what, more);
}

/* Takes over fd. */
static void
hand_over(struct portal *p, int fd, const struct sockaddr_storage *peer)
{
    unsigned waiting = conn_half_open() + atomic_load_explicit(&on_the_way, memory_order_relaxed);
    struct sockaddr_storage local = {0};
    socklen_t len = sizeof local;
    unsigned n = worker_count();
    /* At max_half_open a worker drops its oldest for each new one (conn.c); here is the end. */
    bool full = waiting >= 2 * tgt_opts.max_half_open;
    if (n == 0 || full || getsockname(fd, (struct sockaddr *)&local, &len) != 0) {
        counter_add(CT_CONN_REFUSED, 1);
        if (full)
            complain(p, "connection refused, too many before login");
        (void)close(fd);
        return;
    }
    struct accepted *a = xmalloc(sizeof *a);
    *a = (struct accepted){.fd = fd, .peer = *peer, .local = local};
    atomic_fetch_add_explicit(&on_the_way, 1, memory_order_relaxed);
    worker_post(worker_at(pt.next_worker++ % n), on_accepted, a);
}

static void
watch_all(bool on)
{
    list_each(it, &pt.portals) {
        struct portal *p = container_of(it, struct portal, link);
        if (on)
            ev_io_start(worker_loop(pt.main), &p->ev);
        else
            ev_io_stop(worker_loop(pt.main), &p->ev);
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
turn_away(struct portal *p, int error)
{
    if (error == EMFILE || error == ENFILE) {
        if (pt.spare >= 0)
            (void)close(pt.spare);
        int fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            (void)close(fd);
            counter_add(CT_CONN_REFUSED, 1);
        }
        pt.spare = open_spare();
    }
    complain(p, error == EMFILE || error == ENFILE ? "out of file descriptors" : "out of memory");
    watch_all(false);
    worker_timer_start_ms(&pt.rest, REST_MS);
}

static void
on_readable(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    struct portal *p = container_of(ev, struct portal, ev);
    (void)loop;
    (void)revents;
    for (unsigned i = 0; i < ACCEPT_BURST; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t len = sizeof peer;
        int fd = accept4(p->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            hand_over(p, fd, &peer);
            continue;
        }
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            turn_away(p, errno);
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

/* --- opening and closing --------------------------------------------------------------------- */

static bool
any_wildcard(void)
{
    list_each(it, &pt.portals) {
        const struct sockaddr_storage *sa = &container_of(it, struct portal, link)->pub.addr;
        if (sa->ss_family == AF_INET6
                ? IN6_IS_ADDR_UNSPECIFIED(
                      &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr)
                : ((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr == INADDR_ANY)
            return true;
    }
    return false;
}

static void
on_refresh(struct worker_timer *t)
{
    if (!any_wildcard())
        return; /* portal_open starts it again */
    discovery_refresh_addrs();
    worker_timer_start_ms(t, REFRESH_MS);
}

static void
init_once(void)
{
    if (pt.main != NULL)
        return;
    pt.main = worker_self();
    assert(pt.main != NULL); /* main has made its worker before it opens portals */
    list_init(&pt.portals);
    worker_timer_init(&pt.rest, pt.main, on_rest_over);
    worker_timer_init(&pt.refresh, pt.main, on_refresh);
    pt.spare = open_spare();
}

static struct portal *
find(const struct sockaddr *addr, socklen_t addrlen)
{
    if (pt.main == NULL || addrlen > sizeof(struct sockaddr_storage))
        return NULL;
    struct sockaddr_storage want = {0};
    char a[64], b[64];
    memcpy(&want, addr, addrlen);
    (void)portal_text(&want, a, sizeof a);
    list_each(it, &pt.portals) {
        struct portal *p = container_of(it, struct portal, link);
        if (p->pub.addr.ss_family == want.ss_family &&
            strcmp(portal_text(&p->pub.addr, b, sizeof b), a) == 0)
            return p;
    }
    return NULL;
}

static int
explain(int error, const struct sockaddr_storage *sa, char *err, size_t errsize)
{
    char text[64];
    const char *why = strerror(error);
    (void)portal_text(sa, text, sizeof text);
    if (error == EADDRINUSE)
        why = "the address is in use; does another target listen there?";
    else if (error == EACCES)
        why = "permission denied; ports below 1024 are for root and CAP_NET_BIND_SERVICE";
    else if (error == EADDRNOTAVAIL)
        why = "no interface of this host has the address";
    else if (error == EEXIST)
        why = "is open already";
    (void)snprintf(err, errsize, "portal %s: %s", text, why);
    return -error;
}

int
portal_open(const struct sockaddr *addr, socklen_t addrlen, uint16_t tpgt, char *err,
            size_t errsize)
{
    init_once();
    worker_assert_owner(pt.main);
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof sa;
    if (addrlen > sizeof sa || (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)) {
        (void)snprintf(err, errsize, "portals are IPv4 or IPv6 addresses");
        return -EAFNOSUPPORT;
    }
    memcpy(&sa, addr, addrlen);
    if (find(addr, addrlen) != NULL)
        return explain(EEXIST, &sa, err, errsize);
    int fd = opener_listen(addr, addrlen, BACKLOG);
    if (fd < 0)
        return explain(-fd, &sa, err, errsize);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &len) != 0) {
        int error = errno;
        (void)close(fd);
        return explain(error, &sa, err, errsize);
    }
    struct portal *p = xcalloc(1, sizeof *p);
    p->fd = fd;
    p->pub = (struct node_portal){.addr = sa, .tpgt = tpgt};
    list_add_tail(&pt.portals, &p->link);
    ev_io_init(&p->ev, on_readable, fd, EV_READ);
    if (!worker_timer_is_active(&pt.rest))
        ev_io_start(worker_loop(pt.main), &p->ev);
    on_refresh(&pt.refresh);
    char text[64];
    log_event(LL_INFO, LA_NET, "portal-open addr=%s", portal_text(&sa, text, sizeof text));
    return 0;
}

static void
drop(struct portal *p)
{
    ev_io_stop(worker_loop(pt.main), &p->ev);
    list_del(&p->link);
    (void)close(p->fd);
    free(p);
}

int
portal_close(const struct sockaddr *addr, socklen_t addrlen)
{
    struct portal *p = find(addr, addrlen);
    if (p == NULL)
        return -ENOENT;
    worker_assert_owner(pt.main);
    char text[64];
    log_event(LL_INFO, LA_NET, "portal-closed addr=%s",
              portal_text(&p->pub.addr, text, sizeof text));
    drop(p);
    return 0;
}

void
portal_close_all(void)
{
    if (pt.main == NULL)
        return;
    worker_assert_owner(pt.main);
    list_each_safe(it, &pt.portals)
        drop(container_of(it, struct portal, link));
    worker_timer_stop(&pt.rest);
    worker_timer_stop(&pt.refresh);
    if (pt.spare >= 0)
        (void)close(pt.spare);
    pt.spare = -1;
    pt.main = NULL;
}

unsigned
portal_list(struct node_portal *out, unsigned max)
{
    unsigned n = 0;
    if (pt.main == NULL)
        return 0;
    worker_assert_owner(pt.main);
    list_each(it, &pt.portals) {
        if (n < max)
            out[n] = container_of(it, struct portal, link)->pub;
        n++;
    }
    return n;
}
