/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Targets and portals as an iSNS server is to have them, see isns_reg.h.
 *
 * One network entity holds everything.  A registration is cut into requests of one PDU each
 * (servers exist that do not join PDUs): the first carries the portals, each carries some nodes.
 * A node names the portals of each group by the tag, and with an empty tag those that do not lead
 * to it (RFC 4171 5.6.5.1); that is why a change of portals sends all nodes again.
 */
#include "config.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/netif.h"
#include "base/pool.h"
#include "target/isns_reg.h"

#define REGISTER_BYTES                                                                             \
    32768u /* a request is full; the largest node stays far below as much more                     \
            */
#define DEREG_BYTES    32768u
#define ESI_INTERVAL_S 60u

void
isns_reg_init(struct isns_reg *r, const uint8_t seed[32])
{
    uint64_t h = 14695981039346656037u; /* FNV-1a: a name, not a secret */
    memset(r, 0, sizeof *r);
    for (unsigned i = 0; i < 32; i++)
        h = (h ^ seed[i]) * 1099511628211u;
    snprintf(r->eid, sizeof r->eid, "evtgt-%016llx", (unsigned long long)h);
}

void
isns_reg_fini(struct isns_reg *r)
{
    for (unsigned i = 0; i < r->nnodes; i++)
        free(r->nodes[i].binds);
    free(r->nodes);
    r->nodes = NULL;
    r->nnodes = r->nportals = 0;
}

/* --- addresses ------------------------------------------------------------------------------- */

static bool
is_loopback(const struct sockaddr_storage *sa)
{
    const struct sockaddr_in *in = (const void *)sa;
    const struct sockaddr_in6 *in6 = (const void *)sa;
    return sa->ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr)
                                     : ntohl(in->sin_addr.s_addr) >> 24 == 127;
}

static bool
is_link_local(const struct sockaddr_storage *sa)
{
    const struct sockaddr_in *in = (const void *)sa;
    const struct sockaddr_in6 *in6 = (const void *)sa;
    return sa->ss_family == AF_INET6 ? IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr)
                                     : ntohl(in->sin_addr.s_addr) >> 16 == 0xa9fe;
}

/* As portals are compared and registered: sixteen bytes and the port. */
static void
key_of(const struct sockaddr_storage *sa, uint8_t ip[16], uint32_t *port)
{
    const struct sockaddr_in *in = (const void *)sa;
    const struct sockaddr_in6 *in6 = (const void *)sa;
    memset(ip, 0, 16);
    if (sa->ss_family == AF_INET6) {
        memcpy(ip, &in6->sin6_addr, 16);
        *port = ntohs(in6->sin6_port);
    } else {
        ip[10] = ip[11] = 0xff;
        memcpy(ip + 12, &in->sin_addr, 4);
        *port = ntohs(in->sin_port);
    }
}

static bool
same_portal(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    uint8_t x[16], y[16];
    uint32_t p, q;
    key_of(a, x, &p);
    key_of(b, y, &q);
    return p == q && memcmp(x, y, sizeof x) == 0;
}

struct gather {
    struct node_portal *out;
    unsigned n, max;
    const struct sockaddr_storage *here;
    const struct node_portal *wild; /* the wildcard being spelled out */
};

static void
add(struct gather *g, const struct sockaddr_storage *sa, const struct node_portal *from)
{
    unsigned held = g->n < g->max ? g->n : g->max;
    if ((is_loopback(sa) && !is_loopback(g->here)) ||
        (is_link_local(sa) && (sa->ss_family == AF_INET6 || !is_link_local(g->here))))
        return;
    for (unsigned i = 0; i < held; i++) {
        if (same_portal(&g->out[i].addr, sa))
            return;
    }
    if (g->n < g->max)
        g->out[g->n] = *from;
    if (g->n < g->max)
        g->out[g->n].addr = *sa;
    g->n++;
}

static void
on_host_addr(const struct netif_addr *a, void *arg)
{
    struct gather *g = arg;
    struct sockaddr_storage sa = a->addr;
    if (sa.ss_family != g->wild->addr.ss_family || is_loopback(&sa))
        return;
    if (sa.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)&sa)->sin6_port =
            ((const struct sockaddr_in6 *)(const void *)&g->wild->addr)->sin6_port;
    else
        ((struct sockaddr_in *)(void *)&sa)->sin_port =
            ((const struct sockaddr_in *)(const void *)&g->wild->addr)->sin_port;
    add(g, &sa, g->wild);
}

unsigned
isns_reg_addresses(const struct node_portal *bound, unsigned nbound,
                   const struct sockaddr_storage *here, struct node_portal *out, unsigned max)
{
    struct gather g = {.out = out, .max = max, .here = here};
    for (unsigned i = 0; i < nbound; i++) {
        const struct node_portal *p = &bound[i];
        struct hostport told;
        char err[128];
        if (p->addr.ss_family == AF_UNSPEC || p->absent)
            continue;
        g.wild = p;
        if (p->advertise[0] == '\0' && sockaddr_is_wildcard(&p->addr))
            (void)netif_addrs(NULL, on_host_addr, &g);
        else if (p->advertise[0] == '\0')
            add(&g, &p->addr, p);
        else if (hostport_parse(p->advertise, &told, err, sizeof err) == 0 &&
                 told.addr.ss_family != AF_UNSPEC)
            add(&g, &told.addr, p);
    }
    return g.n;
}

/* --- what is wanted -------------------------------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct isns_node *)a)->name, ((const struct isns_node *)b)->name);
}

struct isns_node *
isns_reg_find(const struct isns_reg *r, const char *name)
{
    unsigned low = 0, high = r->nnodes;
    while (low < high) {
        unsigned mid = (low + high) / 2;
        int c = strcmp(name, r->nodes[mid].name);
        if (c == 0)
            return &r->nodes[mid];
        if (c < 0)
            high = mid;
        else
            low = mid + 1;
    }
    return NULL;
}

static bool
same_binds(const struct isns_node *n, const struct isns_want *w)
{
    if (n->nbinds != w->nbinds)
        return false;
    for (unsigned i = 0; i < n->nbinds; i++) {
        if (n->binds[i].tpgt != w->binds[i].tpgt || strcmp(n->binds[i].name, w->binds[i].name) != 0)
            return false;
    }
    return true;
}

static void
want_node(struct isns_node *n, const struct isns_want *w)
{
    if (!same_binds(n, w) || strcmp(n->alias, w->alias) != 0) {
        free(n->binds);
        n->binds = xcalloc((size_t)w->nbinds + 1, sizeof *n->binds);
        for (unsigned i = 0; i < w->nbinds; i++)
            n->binds[i] = w->binds[i];
        n->nbinds = w->nbinds;
        snprintf(n->alias, sizeof n->alias, "%s", w->alias);
        n->o.fresh = false;
        n->o.changed = true;
    }
    if (!n->o.wanted)
        n->stale = true;
    n->o.wanted = true;
}

/* Merges the wanted nodes (sorted copies in fresh[]) into the table. */
static void
want_nodes(struct isns_reg *r, const struct isns_want *nodes, unsigned n)
{
    struct isns_node *v = xcalloc((size_t)r->nnodes + n + 1, sizeof *v);
    bool *again = xcalloc((size_t)r->nnodes + 1, sizeof *again);
    unsigned kept = 0, old = 0;

    for (unsigned i = 0; i < n; i++) {
        struct isns_node *have = isns_reg_find(r, nodes[i].name);
        if (have != NULL) {
            want_node(have, &nodes[i]);
            again[have - r->nodes] = true;
            continue;
        }
        snprintf(v[kept].name, sizeof v[kept].name, "%s", nodes[i].name);
        want_node(&v[kept], &nodes[i]);
        kept++;
    }
    for (; old < r->nnodes; old++) {
        struct isns_node *have = &r->nodes[old];
        have->o.wanted = again[old];
        if (have->o.wanted || have->o.known || have->o.sent)
            v[kept++] = *have;
        else
            free(have->binds);
    }
    if (kept != 0)
        qsort(v, kept, sizeof *v, by_name);
    free(again);
    free(r->nodes);
    r->nodes = v;
    r->nnodes = kept;
}

static bool
same_id(const struct portal_id *a, const struct portal_id *b)
{
    return a->tpgt == b->tpgt && strcmp(a->name, b->name) == 0;
}

/* True when something is different. */
static bool
want_portals(struct isns_reg *r, const struct node_portal *portals, unsigned n)
{
    bool changed = false;
    unsigned kept = 0;

    for (unsigned i = 0; i < r->nportals; i++) {
        struct isns_portal *p = &r->portals[i];
        bool was = p->o.wanted;
        p->o.wanted = false;
        for (unsigned k = 0; k < n && !p->o.wanted; k++)
            p->o.wanted =
                same_portal(&p->addr, &portals[k].addr) && same_id(&p->id, &portals[k].id);
        changed = changed || was != p->o.wanted;
        if (p->o.wanted || p->o.known || p->o.sent)
            r->portals[kept++] = *p;
    }
    r->nportals = kept;
    for (unsigned k = 0; k < n; k++) {
        bool have = false;
        for (unsigned i = 0; i < kept; i++) {
            struct isns_portal *p = &r->portals[i];
            if (!same_portal(&p->addr, &portals[k].addr))
                continue;
            have = true;
            if (!same_id(&p->id, &portals[k].id)) { /* another portal, another group */
                p->id = portals[k].id;
                p->o.wanted = changed = true;
                p->o.fresh = false;
                p->o.changed = true;
            }
        }
        if (!have && r->nportals < sizeof r->portals / sizeof *r->portals) {
            r->portals[r->nportals++] =
                (struct isns_portal){.o = {.wanted = true},
                                     .id = portals[k].id,
                                     .addr = portals[k].addr,
                                     .translated = portals[k].advertise[0] != '\0'};
            changed = true;
        }
    }
    return changed;
}

void
isns_reg_want(struct isns_reg *r, const struct isns_want *nodes, unsigned nnodes,
              const struct node_portal *portals, unsigned nportals)
{
    want_nodes(r, nodes, nnodes);
    if (want_portals(r, portals, nportals)) {
        for (unsigned i = 0; i < r->nnodes; i++) {
            r->nodes[i].o.fresh = false;
            r->nodes[i].o.changed = true;
        }
    }
}

void
isns_reg_forget(struct isns_reg *r)
{
    for (unsigned i = 0; i < r->nnodes; i++) {
        r->nodes[i].o = (struct isns_object){.wanted = r->nodes[i].o.wanted};
        r->nodes[i].scn = false;
        r->nodes[i].stale = true;
    }
    for (unsigned i = 0; i < r->nportals; i++)
        r->portals[i].o = (struct isns_object){.wanted = r->portals[i].o.wanted};
    r->no_esi = r->no_pg = false;
}

void
isns_reg_refresh(struct isns_reg *r)
{
    for (unsigned i = 0; i < r->nnodes; i++) {
        r->nodes[i].o.fresh = r->nodes[i].scn = false;
        r->nodes[i].stale = true;
    }
    for (unsigned i = 0; i < r->nportals; i++)
        r->portals[i].o.fresh = false;
}

/* --- questions ------------------------------------------------------------------------------- */

const struct isns_node *
isns_reg_source(const struct isns_reg *r)
{
    const struct isns_node *best = NULL;
    for (unsigned i = 0; i < r->nnodes; i++) {
        const struct isns_node *n = &r->nodes[i];
        if (n->o.known && n->o.wanted)
            return n;
        if (n->o.known ? best == NULL || !best->o.known : n->o.wanted && best == NULL)
            best = n;
    }
    return best;
}

bool
isns_reg_has_portal(const struct isns_reg *r, const uint8_t ip[16], uint32_t port)
{
    for (unsigned i = 0; i < r->nportals; i++) {
        uint8_t mine[16];
        uint32_t p;
        key_of(&r->portals[i].addr, mine, &p);
        if (r->portals[i].o.wanted && p == port && memcmp(mine, ip, sizeof mine) == 0)
            return true;
    }
    return false;
}

bool
isns_reg_need_register(const struct isns_reg *r)
{
    bool some = false; /* an entity without nodes is none */
    for (unsigned i = 0; i < r->nnodes; i++) {
        some = some || r->nodes[i].o.wanted;
        if (r->nodes[i].o.wanted && !r->nodes[i].o.fresh)
            return true;
    }
    for (unsigned i = 0; i < r->nportals && some; i++) {
        if (r->portals[i].o.wanted && !r->portals[i].o.fresh)
            return true;
    }
    return false;
}

bool
isns_reg_need_deregister(const struct isns_reg *r)
{
    for (unsigned i = 0; i < r->nnodes; i++) {
        if (r->nodes[i].o.known && !r->nodes[i].o.wanted)
            return true;
    }
    for (unsigned i = 0; i < r->nportals; i++) {
        if (r->portals[i].o.known && !r->portals[i].o.wanted)
            return true;
    }
    return false;
}

unsigned
isns_reg_known_nodes(const struct isns_reg *r)
{
    unsigned n = 0;
    for (unsigned i = 0; i < r->nnodes; i++)
        n += r->nodes[i].o.known;
    return n;
}

unsigned
isns_reg_known_portals(const struct isns_reg *r)
{
    unsigned n = 0;
    for (unsigned i = 0; i < r->nportals; i++)
        n += r->portals[i].o.known;
    return n;
}

bool
isns_reg_is_known(const struct isns_reg *r)
{
    return isns_reg_known_nodes(r) != 0 || isns_reg_known_portals(r) != 0;
}

/* --- requests -------------------------------------------------------------------------------- */

static void
put_source(const struct isns_reg *r, struct isns_out *o)
{
    const struct isns_node *n = isns_reg_source(r);
    isns_out_text(o, ISNS_NAME, n != NULL ? n->name : "");
}

static void
put_portal(const struct isns_reg *r, const struct isns_portal *p, struct isns_out *o)
{
    uint16_t port = p->addr.ss_family == AF_INET6 ? r->notice_port6 : r->notice_port4;

    isns_out_portal(o, ISNS_PORTAL_IP, ISNS_PORTAL_PORT, &p->addr);
    if (port != 0 && !r->no_esi && !p->translated) {
        isns_out_u32(o, ISNS_ESI_INTERVAL, ESI_INTERVAL_S);
        isns_out_u32(o, ISNS_ESI_PORT, port);
    }
    if (port != 0)
        isns_out_u32(o, ISNS_SCN_PORT, port);
}

static bool
leads_to(const struct isns_portal *p, const struct isns_node *n)
{
    return p->o.wanted && binds_serve(n->binds, n->nbinds, &p->id);
}

static void
put_group_portal(const struct isns_portal *p, struct isns_out *o)
{
    isns_out_portal(o, ISNS_PG_IP, ISNS_PG_PORT, &p->addr);
}

/* Each tag with its portals, then an empty tag with those that do not lead to the node. */
static void
put_groups(const struct isns_reg *r, const struct isns_node *n, struct isns_out *o)
{
    bool done[sizeof r->portals / sizeof *r->portals] = {false}, none = false;

    for (unsigned i = 0; i < r->nportals; i++) {
        const struct isns_portal *first = &r->portals[i];
        if (done[i] || !leads_to(first, n))
            continue;
        isns_out_u32(o, ISNS_PG_TAG, first->id.tpgt);
        for (unsigned k = i; k < r->nportals; k++) {
            const struct isns_portal *p = &r->portals[k];
            if (p->id.tpgt != first->id.tpgt || !leads_to(p, n))
                continue;
            done[k] = true;
            put_group_portal(p, o);
        }
    }
    for (unsigned i = 0; i < r->nportals; i++) {
        const struct isns_portal *p = &r->portals[i];
        if (!p->o.wanted || leads_to(p, n))
            continue;
        if (!none)
            isns_out_empty(o, ISNS_PG_TAG);
        none = true;
        put_group_portal(p, o);
    }
}

static void
put_node(const struct isns_reg *r, const struct isns_node *n, struct isns_out *o)
{
    isns_out_text(o, ISNS_NAME, n->name);
    isns_out_u32(o, ISNS_NODE_TYPE, ISNS_TYPE_TARGET);
    if (n->alias[0] != '\0')
        isns_out_text(o, ISNS_ALIAS, n->alias);
    if (!r->no_pg)
        put_groups(r, n, o);
}

void
isns_reg_put_register(struct isns_reg *r, struct isns_out *o)
{
    put_source(r, o);
    isns_out_text(o, ISNS_EID, r->eid); /* the key, then the object (5.6.5.1) */
    isns_out_empty(o, ISNS_DELIMITER);
    isns_out_text(o, ISNS_EID, r->eid);
    isns_out_u32(o, ISNS_ENTITY_PROTOCOL, ISNS_PROTOCOL_ISCSI);
    for (unsigned i = 0; i < r->nportals; i++) {
        struct isns_portal *p = &r->portals[i];
        p->o.sent = p->o.wanted && !p->o.fresh;
        p->o.changed = false;
        if (p->o.sent)
            put_portal(r, p, o);
    }
    for (unsigned i = 0; i < r->nnodes; i++) {
        struct isns_node *n = &r->nodes[i];
        n->o.sent = n->o.wanted && !n->o.fresh && o->len < REGISTER_BYTES;
        n->o.changed = false;
        if (n->o.sent)
            put_node(r, n, o);
    }
}

void
isns_reg_put_deregister(struct isns_reg *r, struct isns_out *o)
{
    put_source(r, o);
    isns_out_empty(o, ISNS_DELIMITER);
    for (unsigned i = 0; i < r->nportals; i++) {
        struct isns_portal *p = &r->portals[i];
        p->o.sent = p->o.known && !p->o.wanted;
        if (p->o.sent)
            isns_out_portal(o, ISNS_PORTAL_IP, ISNS_PORTAL_PORT, &p->addr);
    }
    for (unsigned i = 0; i < r->nnodes; i++) {
        struct isns_node *n = &r->nodes[i];
        n->o.sent = n->o.known && !n->o.wanted && o->len < DEREG_BYTES;
        if (n->o.sent)
            isns_out_text(o, ISNS_NAME, n->name);
    }
}

void
isns_reg_put_leave(struct isns_reg *r, struct isns_out *o)
{
    put_source(r, o);
    isns_out_empty(o, ISNS_DELIMITER);
    isns_out_text(o, ISNS_EID, r->eid);
    for (unsigned i = 0; i < r->nportals; i++)
        r->portals[i].o.sent = r->portals[i].o.known;
    for (unsigned i = 0; i < r->nnodes; i++)
        r->nodes[i].o.sent = r->nodes[i].o.known;
}

/* --- answers --------------------------------------------------------------------------------- */

static void
each_object(struct isns_reg *r, void (*fn)(struct isns_object *o))
{
    for (unsigned i = 0; i < r->nportals; i++)
        fn(&r->portals[i].o);
    for (unsigned i = 0; i < r->nnodes; i++)
        fn(&r->nodes[i].o);
}

static void
on_registered(struct isns_object *o)
{
    if (o->sent) {
        o->known = true;
        o->fresh = !o->changed;
    }
    o->sent = false;
}

static void
on_gone(struct isns_object *o)
{
    if (o->sent)
        o->known = o->fresh = false;
    o->sent = false;
}

static void
on_refused(struct isns_object *o)
{
    o->sent = false;
}

void
isns_reg_registered(struct isns_reg *r)
{
    each_object(r, on_registered);
}

void
isns_reg_deregistered(struct isns_reg *r)
{
    unsigned kept = 0;
    each_object(r, on_gone);
    for (unsigned i = 0; i < r->nnodes; i++) {
        if (!r->nodes[i].o.known)
            r->nodes[i].scn = false;
        if (r->nodes[i].o.known || r->nodes[i].o.wanted)
            r->nodes[kept++] = r->nodes[i];
        else
            free(r->nodes[i].binds);
    }
    r->nnodes = kept;
    kept = 0;
    for (unsigned i = 0; i < r->nportals; i++) {
        if (r->portals[i].o.known || r->portals[i].o.wanted)
            r->portals[kept++] = r->portals[i];
    }
    r->nportals = kept;
}

void
isns_reg_refused(struct isns_reg *r)
{
    each_object(r, on_refused);
}
