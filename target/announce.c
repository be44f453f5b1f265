/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * At which addresses a target is announced (SendTargets, RFC 7143 Appendix C).  Each comes with the
 * tag of its portal's group (13.9).
 *
 * The way by which this very connection came goes first: it is known to work, and many initiators
 * take the first.  A portal with an address to advertise is shown as that only.  A wildcard portal
 * stands for the host's addresses.  IPv6 link-local addresses are never shown (their zone means
 * nothing to the peer), loopback and IPv4 link-local ones only to a peer that came over such a one.
 */
#include "config.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/netif.h"
#include "target/target.h"

#define HOST_ADDRS_MAX 64u
#define RECORD_MAX     256u /* addresses shown for one target */

/* --- single addresses ------------------------------------------------------------------------ */

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

static bool
is_v6(const struct sockaddr_storage *sa)
{
    return sa->ss_family == AF_INET6;
}

static const struct in_addr *
in4(const struct sockaddr_storage *sa)
{
    return &((const struct sockaddr_in *)(const void *)sa)->sin_addr;
}

static const struct in6_addr *
in6(const struct sockaddr_storage *sa)
{
    return &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
}

/* sin_port and sin6_port lie at the same place (POSIX does not say so, Linux does). */
static in_port_t
port_of(const struct sockaddr_storage *sa)
{
    return is_v6(sa) ? ((const struct sockaddr_in6 *)(const void *)sa)->sin6_port
                     : ((const struct sockaddr_in *)(const void *)sa)->sin_port;
}

static void
set_port(struct sockaddr_storage *sa, in_port_t port)
{
    if (is_v6(sa))
        ((struct sockaddr_in6 *)(void *)sa)->sin6_port = port;
    else
        ((struct sockaddr_in *)(void *)sa)->sin_port = port;
}

bool
sockaddr_is_wildcard(const struct sockaddr_storage *sa)
{
    return is_v6(sa) ? IN6_IS_ADDR_UNSPECIFIED(in6(sa)) : in4(sa)->s_addr == htonl(INADDR_ANY);
}

static bool
is_loopback(const struct sockaddr_storage *sa)
{
    if (!is_v6(sa))
        return ntohl(in4(sa)->s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(in6(sa)) ||
           (IN6_IS_ADDR_V4MAPPED(in6(sa)) && in6(sa)->s6_addr[12] == 127);
}

static bool
is_link_local4(const struct sockaddr_storage *sa)
{
    return !is_v6(sa) && ntohl(in4(sa)->s_addr) >> 16 == 0xa9fe;
}

static bool
is_link_local6(const struct sockaddr_storage *sa)
{
    return is_v6(sa) && IN6_IS_ADDR_LINKLOCAL(in6(sa));
}

static bool
same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family || port_of(a) != port_of(b))
        return false;
    return is_v6(a) ? memcmp(in6(a), in6(b), sizeof(struct in6_addr)) == 0
                    : in4(a)->s_addr == in4(b)->s_addr;
}

/* --- the host's addresses -------------------------------------------------------------------- */

/* Without ports; replaced by main, copied by workers. Under the lock only memory is touched. */
static struct host_addrs {
    unsigned n;
    struct sockaddr_storage addr[HOST_ADDRS_MAX];
} host;
static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;

static void
note_host_addr(const struct netif_addr *a, void *arg)
{
    struct host_addrs *h = arg;
    if (h->n < HOST_ADDRS_MAX && !is_loopback(&a->addr) && !is_link_local6(&a->addr))
        h->addr[h->n++] = a->addr;
}

void
announce_refresh(void)
{
    struct host_addrs now = {.n = 0};
    if (netif_addrs(NULL, note_host_addr, &now) == 0)
        return; /* what was known stays */
    (void)pthread_mutex_lock(&host_lock);
    host = now;
    (void)pthread_mutex_unlock(&host_lock);
}

/* --- one target, one connection -------------------------------------------------------------- */

struct shown {
    const char *text; /* a portal's advertise, or NULL: addr */
    struct sockaddr_storage addr;
    uint16_t tpgt;
};

struct shown_list {
    const struct conn *c;
    const struct acl *acl; /* which addresses the target is at */
    unsigned n;
    struct shown v[RECORD_MAX];
};

static void
add_text(struct shown_list *l, const struct node_portal *p)
{
    if (!sockaddr_is_wildcard(&p->addr) && !acl_is_at(l->acl, (const struct sockaddr *)&p->addr))
        return;
    for (unsigned i = 0; i < l->n; i++) {
        if (l->v[i].text != NULL && l->v[i].tpgt == p->id.tpgt &&
            strcmp(l->v[i].text, p->advertise) == 0)
            return;
    }
    if (l->n < RECORD_MAX)
        l->v[l->n++] = (struct shown){.text = p->advertise, .tpgt = p->id.tpgt};
}

static void
add_address(struct shown_list *l, const struct sockaddr_storage *sa, uint16_t tpgt)
{
    const struct sockaddr_storage *here = &l->c->local;
    if (l->n == RECORD_MAX || !acl_is_at(l->acl, (const struct sockaddr *)sa) ||
        is_link_local6(sa) || sockaddr_is_wildcard(sa) || (is_loopback(sa) && !is_loopback(here)) ||
        (is_link_local4(sa) && !is_link_local4(here)))
        return;
    for (unsigned i = 0; i < l->n; i++) {
        if (l->v[i].text == NULL && l->v[i].tpgt == tpgt && same_address(&l->v[i].addr, sa))
            return;
    }
    l->v[l->n++] = (struct shown){.addr = *sa, .tpgt = tpgt};
}

static void
add_wildcard(struct shown_list *l, const struct node_portal *p)
{
    (void)pthread_mutex_lock(&host_lock);
    for (unsigned i = 0; i < host.n; i++) {
        struct sockaddr_storage sa = host.addr[i];
        set_port(&sa, port_of(&p->addr));
        if (sa.ss_family == p->addr.ss_family)
            add_address(l, &sa, p->id.tpgt);
    }
    (void)pthread_mutex_unlock(&host_lock);
}

/* Does the connection's own local address belong to this portal? */
static bool
came_through(const struct conn *c, const struct node_portal *p)
{
    return c->local.ss_family == p->addr.ss_family && port_of(&c->local) == port_of(&p->addr) &&
           c->via.tpgt == p->id.tpgt &&
           (sockaddr_is_wildcard(&p->addr) || same_address(&c->local, &p->addr));
}

void
announce(const struct conn *c, const struct node_set *set, const struct tgt_node *node,
         void (*put)(const char *addr, uint16_t tpgt, void *arg), void *arg)
{
    struct shown_list l;
    char text[64];

    worker_assert_owner(c->w);
    l.c = c;
    l.acl = node->acl;
    l.n = 0;
    for (unsigned i = 0; i < set->nportals; i++) {
        const struct node_portal *p = &set->portals[i];
        if (!node_serves(node, &p->id) || !came_through(c, p))
            continue;
        if (p->advertise[0] != '\0')
            add_text(&l, p);
        else
            add_address(&l, &c->local, p->id.tpgt);
    }
    for (unsigned i = 0; i < set->nportals; i++) {
        const struct node_portal *p = &set->portals[i];
        if (p->addr.ss_family == AF_UNSPEC || p->absent || !node_serves(node, &p->id))
            continue;
        if (p->advertise[0] != '\0')
            add_text(&l, p);
        else if (sockaddr_is_wildcard(&p->addr))
            add_wildcard(&l, p);
        else
            add_address(&l, &p->addr, p->id.tpgt);
    }
    for (unsigned i = 0; i < l.n; i++)
        put(l.v[i].text != NULL ? l.v[i].text : portal_text(&l.v[i].addr, text, sizeof text),
            l.v[i].tpgt, arg);
}
