/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interfaces and their addresses.  rtnetlink is used as a bell only: what it says is thrown away
 * and the whole list is read anew, so that a message that was lost (ENOBUFS) costs nothing.
 */
#include "config.h"

#include "base/netif.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/worker.h"

#define SETTLE_MS 50    /* one change of an interface comes as several messages */
#define POLL_MS   15000 /* without rtnetlink */

static struct {
    struct list watches;
    struct worker *owner; /* NULL: nobody watches */
    int fd;               /* -1: no rtnetlink, `bell` polls */
    struct ev_io ev;
    struct worker_timer bell;
} nf = {.fd = -1};

/* Leading one bits of a netmask (the kernel has none with holes); NULL: the address is alone. */
static unsigned
mask_bits(const struct sockaddr *mask, sa_family_t family)
{
    unsigned bits = 0, max = family == AF_INET6 ? 128 : 32;
    if (mask == NULL)
        return max;
    const uint8_t *m =
        family == AF_INET6
            ? ((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr.s6_addr
            : (const uint8_t *)&((const struct sockaddr_in *)(const void *)mask)->sin_addr;
    while (bits < max && (m[bits / 8] & (0x80u >> bits % 8)))
        bits++;
    return bits;
}

unsigned
netif_addrs(const char *name, void (*cb)(const struct netif_addr *a, void *arg), void *arg)
{
    struct ifaddrs *all;
    unsigned n = 0;

    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        struct netif_addr a = {.name = ""};
        if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP))
            continue;
        sa_family_t family = i->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6)
            continue;
        size_t len = strcspn(i->ifa_name, ":"); /* "eth0:1" labels an address of eth0 */
        if (len >= sizeof a.name)
            continue;
        memcpy(a.name, i->ifa_name, len);
        if (name != NULL && strcmp(name, a.name) != 0)
            continue;
        memcpy(&a.addr, i->ifa_addr,
               family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
        a.bits = mask_bits(i->ifa_netmask, family);
        n++;
        cb(&a, arg);
    }
    freeifaddrs(all);
    return n;
}

bool
netif_name_ok(const char *name)
{
    size_t n = strlen(name);
    if (n == 0 || n >= IF_NAMESIZE || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    for (const char *p = name; *p != '\0'; p++) {
        if (*p <= 0x20 || *p > 0x7e || *p == '/' || *p == ':')
            return false;
    }
    return true;
}

/* --- the bell -------------------------------------------------------------------------------- */

static void
on_bell(struct worker_timer *t)
{
    if (nf.fd < 0)
        worker_timer_start_ms(t, POLL_MS);
    list_each_safe(it, &nf.watches) {
        struct netif_watch *w = container_of(it, struct netif_watch, link);
        w->changed(w);
    }
}

static void
on_message(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    char waste[8192];
    (void)loop;
    (void)revents;
    for (;;) {
        ssize_t n = recv(ev->fd, waste, sizeof waste, MSG_DONTWAIT);
        if (n > 0 || (n < 0 && (errno == EINTR || errno == ENOBUFS)))
            continue;
        break;
    }
    if (!worker_timer_is_active(&nf.bell))
        worker_timer_start_ms(&nf.bell, SETTLE_MS);
}

static int
open_netlink(void)
{
    struct sockaddr_nl sa = {.nl_family = AF_NETLINK,
                             .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd >= 0 && bind(fd, (const struct sockaddr *)&sa, sizeof sa) == 0)
        return fd;
    log_event(LL_WARN, LA_NET, "no-rtnetlink why=\"%s\" poll_ms=%d", strerror(errno), POLL_MS);
    if (fd >= 0)
        (void)close(fd);
    return -1;
}

void
netif_watch_start(struct netif_watch *w, void (*changed)(struct netif_watch *w))
{
    if (nf.owner == NULL) {
        nf.owner = worker_self();
        assert(nf.owner != NULL); /* on a thread with a loop */
        list_init(&nf.watches);
        worker_timer_init(&nf.bell, nf.owner, on_bell);
        nf.fd = open_netlink();
        if (nf.fd >= 0) {
            ev_io_init(&nf.ev, on_message, nf.fd, EV_READ);
            ev_io_start(worker_loop(nf.owner), &nf.ev);
        } else {
            worker_timer_start_ms(&nf.bell, POLL_MS);
        }
    }
    worker_assert_owner(nf.owner);
    w->changed = changed;
    list_add_tail(&nf.watches, &w->link);
}

void
netif_watch_stop(struct netif_watch *w)
{
    if (nf.owner == NULL || w->changed == NULL)
        return;
    worker_assert_owner(nf.owner);
    w->changed = NULL;
    list_del(&w->link);
    if (!list_is_empty(&nf.watches))
        return;
    worker_timer_stop(&nf.bell);
    if (nf.fd >= 0) {
        ev_io_stop(worker_loop(nf.owner), &nf.ev);
        (void)close(nf.fd);
    }
    nf.fd = -1;
    nf.owner = NULL;
}
