/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SendTargets (RFC 7143 Appendix C): which targets an initiator is told of, and at which
 * addresses.  discovery_answer runs on the connection's worker; discovery_refresh_addrs on main.
 *
 * An initiator hears only of what it could log in to from where it is.  A wildcard portal stands
 * for the address that this very connection came to, first, then for the host's other addresses.
 * IPv6 link-local addresses are never shown (their zone means nothing to the peer), loopback and
 * IPv4 link-local ones only to a peer that came over such a one.  A record without an address
 * means the address of the connection (Appendix C).
 */
#include "config.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "target/nego.h"
#include "target/target.h"

#define HOST_ADDRS_MAX 64u
#define RECORD_MAX     256u /* addresses shown for one target */

/* --- addresses ------------------------------------------------------------------------------- */

/* The host's addresses, without ports; replaced by main, copied by workers. Under the lock only
 * memory is touched. */
static struct {
    pthread_mutex_t lock;
    unsigned n;
    struct sockaddr_storage addr[HOST_ADDRS_MAX];
} host = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

static bool
is_wildcard(const struct sockaddr_storage *sa)
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

void
discovery_refresh_addrs(void)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return; /* what was known stays */
    (void)pthread_mutex_lock(&host.lock);
    host.n = 0;
    for (const struct ifaddrs *i = all; i != NULL && host.n < HOST_ADDRS_MAX; i = i->ifa_next) {
        if (i->ifa_addr == NULL || !(i->ifa_flags & IFF_UP))
            continue;
        sa_family_t family = i->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6)
            continue;
        struct sockaddr_storage sa = {0};
        memcpy(&sa, i->ifa_addr,
               family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
        if (!is_loopback(&sa) && !is_link_local6(&sa))
            host.addr[host.n++] = sa;
    }
    (void)pthread_mutex_unlock(&host.lock);
    freeifaddrs(all);
}

/* Addresses of one portal group as one connection may see them. */
struct addr_list {
    const struct conn *c;
    unsigned n;
    struct sockaddr_storage addr[RECORD_MAX];
};

static void
add_address(struct addr_list *l, const struct sockaddr_storage *sa)
{
    const struct sockaddr_storage *here = &l->c->local;
    if (l->n == RECORD_MAX || is_link_local6(sa) || is_wildcard(sa) ||
        (is_loopback(sa) && !is_loopback(here)) || (is_link_local4(sa) && !is_link_local4(here)))
        return;
    for (unsigned i = 0; i < l->n; i++) {
        if (same_address(&l->addr[i], sa))
            return;
    }
    l->addr[l->n++] = *sa;
}

static void
add_wildcard(struct addr_list *l, const struct sockaddr_storage *portal)
{
    (void)pthread_mutex_lock(&host.lock);
    for (unsigned i = 0; i < host.n; i++) {
        struct sockaddr_storage sa = host.addr[i];
        set_port(&sa, port_of(portal));
        if (sa.ss_family == portal->ss_family)
            add_address(l, &sa);
    }
    (void)pthread_mutex_unlock(&host.lock);
}

/* Does the connection's own local address belong to this portal? */
static bool
came_through(const struct conn *c, const struct sockaddr_storage *portal)
{
    return c->local.ss_family == portal->ss_family && port_of(&c->local) == port_of(portal) &&
           (is_wildcard(portal) || same_address(&c->local, portal));
}

static void
list_addresses(struct addr_list *l, const struct conn *c, const struct node_set *set, uint16_t tpgt)
{
    l->c = c;
    l->n = 0;
    /* The way that is known to work goes first: many initiators take the first. */
    for (unsigned i = 0; i < set->nportals; i++) {
        if (set->portals[i].tpgt == tpgt && came_through(c, &set->portals[i].addr))
            add_address(l, &c->local);
    }
    for (unsigned i = 0; i < set->nportals; i++) {
        const struct node_portal *p = &set->portals[i];
        if (p->tpgt != tpgt)
            continue;
        if (is_wildcard(&p->addr))
            add_wildcard(l, &p->addr);
        else
            add_address(l, &p->addr);
    }
}

/* --- records --------------------------------------------------------------------------------- */

static void
put_record(struct text_out *out, struct conn *c, const struct node_set *set,
           const struct tgt_node *node)
{
    struct addr_list list;
    list_addresses(&list, c, set, node->tpgt);
    text_put(out, keys_def(KEY_TARGET_NAME)->name, node->name);
    for (unsigned i = 0; i < list.n; i++) {
        char addr[64], value[80];
        (void)portal_text(&list.addr[i], addr, sizeof addr);
        (void)snprintf(value, sizeof value, "%s,%u", addr, (unsigned)node->tpgt);
        text_put(out, keys_def(KEY_TARGET_ADDRESS)->name, value);
    }
}

static bool
may_see(const struct conn *c, const struct tgt_node *node)
{
    return !node->offline &&
           node_admits(node, (const struct sockaddr *)&c->peer, c->sess->initiator);
}

static void
put_refusal(struct text_out *out)
{
    text_put(out, keys_def(KEY_SEND_TARGETS)->name, "Reject");
}

static void
answer_discovery(struct text_out *out, struct conn *c, const char *value)
{
    const struct node_set *set = node_set_here();
    if (value[0] == '\0') { /* means "the target of this session", and there is none */
        put_refusal(out);
        return;
    }
    if (strcmp(value, "All") == 0) {
        for (unsigned i = 0; i < set->n; i++) {
            if (may_see(c, set->nodes[i]))
                put_record(out, c, set, set->nodes[i]);
        }
        return;
    }
    char name[ISCSI_NAME_MAX + 1];
    const char *why;
    if (name_fold(value, strlen(value), name, &why) != 0)
        return; /* no target has such a name */
    const struct tgt_node *node = node_find(set, name);
    if (node != NULL && may_see(c, node))
        put_record(out, c, set, node);
}

/* In a normal session nothing but its own target is spoken of. */
static void
answer_normal(struct text_out *out, struct conn *c, const char *value)
{
    char name[ISCSI_NAME_MAX + 1];
    const char *why;
    if (strcmp(value, "All") == 0) {
        put_refusal(out);
        return;
    }
    if (value[0] == '\0' || (name_fold(value, strlen(value), name, &why) == 0 &&
                             strcmp(name, c->sess->node->name) == 0))
        put_record(out, c, node_set_here(), c->sess->node);
}

uint8_t *
discovery_answer(struct conn *c, const char *value, uint32_t *len)
{
    worker_assert_owner(c->w);
    struct text_out out = {.limit = UINT32_MAX};
    if (c->sess->discovery)
        answer_discovery(&out, c, value);
    else
        answer_normal(&out, c, value);
    *len = (uint32_t)out.len;
    return out.p;
}
