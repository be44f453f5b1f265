/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where an iSNS server reaches its client, see isns_inbound.h.  What comes in is a hint at most:
 * it makes the client ask the server that it has chosen itself.  Few connections, the oldest goes
 * when one more comes; small messages.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "target/isns_inbound.h"

#define LINKS_MAX    8u
#define MSG_MAX      65536u
#define BACKLOG      16
#define ACCEPT_BURST 16
#define REST_MS      1000 /* after accept failed for want of something */

struct listener {
    int fd; /* -1: none */
    uint16_t port;
    struct ev_io ev;
};

static struct {
    struct worker *w; /* NULL: not started */
    bool (*allowed)(const struct sockaddr_storage *peer);
    struct listener l4, l6;
    struct isns_link links[LINKS_MAX];
    unsigned next; /* the slot that was taken longest ago */
    struct worker_timer rest;
    struct log_rate rate;
    struct isns_link_ops ops;
} in = {.l4.fd = -1, .l6.fd = -1};

static void
on_down(struct isns_link *l, const char *why)
{
    (void)l;
    log_debug(LA_NET, "isns-inbound-closed why=\"%s\"", why);
}

static struct isns_link *
free_link(void)
{
    for (unsigned i = 0; i < LINKS_MAX; i++) {
        if (!isns_link_is_open(&in.links[i]))
            return &in.links[i];
    }
    struct isns_link *l = &in.links[in.next++ % LINKS_MAX];
    isns_link_close(l);
    return l;
}

static void
watch(bool on)
{
    struct listener *both[] = {&in.l4, &in.l6};
    for (unsigned i = 0; i < 2; i++) {
        if (both[i]->fd < 0)
            continue;
        if (on)
            ev_io_start(worker_loop(in.w), &both[i]->ev);
        else
            ev_io_stop(worker_loop(in.w), &both[i]->ev);
    }
}

static void
on_rest_over(struct worker_timer *t)
{
    (void)t;
    watch(true);
}

static void
on_acceptable(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    struct listener *l = container_of(ev, struct listener, ev);
    (void)loop;
    (void)revents;

    for (unsigned i = 0; i < ACCEPT_BURST; i++) {
        struct sockaddr_storage peer = {0};
        socklen_t len = sizeof peer;
        uint32_t suppressed;
        int fd = accept4(l->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                watch(false);
                worker_timer_start_ms(&in.rest, REST_MS);
            }
            return;
        }
        if (in.allowed(&peer)) {
            isns_link_adopt(free_link(), fd);
            continue;
        }
        (void)close(fd);
        if (log_rate_ok(&in.rate, &suppressed))
            log_event(LL_WARN, LA_NET,
                      "isns-inbound-refused why=\"peer is no iSNS server of ours\"%s",
                      suppressed ? " suppressed=more" : "");
    }
}

static void
open_listener(struct listener *l, const struct sockaddr *addr, socklen_t len)
{
    struct sockaddr_storage sa = {0};
    socklen_t salen = sizeof sa;
    int one = 1, fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return; /* a host without IPv6, for example */
    if (addr->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, addr, len) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &salen) != 0) {
        (void)close(fd);
        return;
    }
    l->fd = fd;
    l->port =
        ntohs(sa.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)(const void *)&sa)->sin6_port
                                       : ((const struct sockaddr_in *)(const void *)&sa)->sin_port);
    ev_io_init(&l->ev, on_acceptable, fd, EV_READ);
    ev_io_start(worker_loop(in.w), &l->ev);
}

void
isns_inbound_start(struct worker *w, bool (*allowed)(const struct sockaddr_storage *peer),
                   void (*message)(struct isns_link *l))
{
    struct sockaddr_in any4 = {.sin_family = AF_INET};
    struct sockaddr_in6 any6 = {.sin6_family = AF_INET6};

    if (in.w != NULL)
        return;
    worker_assert_owner(w);
    in.w = w;
    in.allowed = allowed;
    in.ops = (struct isns_link_ops){.message = message, .down = on_down};
    for (unsigned i = 0; i < LINKS_MAX; i++)
        isns_link_init(&in.links[i], w, &in.ops, MSG_MAX);
    worker_timer_init(&in.rest, w, on_rest_over);
    open_listener(&in.l4, (const struct sockaddr *)&any4, sizeof any4);
    open_listener(&in.l6, (const struct sockaddr *)&any6, sizeof any6);
    if (in.l4.fd < 0 && in.l6.fd < 0)
        log_event(LL_WARN, LA_NET,
                  "isns-no-port why=\"no port to listen on: the server cannot "
                  "notify; it is asked now and then\"");
}

static void
close_listener(struct listener *l)
{
    if (l->fd < 0)
        return;
    ev_io_stop(worker_loop(in.w), &l->ev);
    (void)close(l->fd);
    l->fd = -1;
    l->port = 0;
}

void
isns_inbound_stop(void)
{
    if (in.w == NULL)
        return;
    worker_assert_owner(in.w);
    for (unsigned i = 0; i < LINKS_MAX; i++)
        isns_link_close(&in.links[i]);
    close_listener(&in.l4);
    close_listener(&in.l6);
    worker_timer_stop(&in.rest);
    in.w = NULL;
}

uint16_t
isns_inbound_port(int family)
{
    return family == AF_INET6 ? in.l6.port : in.l4.port;
}
