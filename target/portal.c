/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Portals: which addresses the daemon listens on.  A portal names an address or an interface; an
 * interface's addresses are followed as they come and go (base/netif.h), each with a listener of
 * its own (accept.c).  Opened and closed by apply.c, main.c and the admin socket.  Main only.
 */
#include "config.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/netif.h"
#include "base/opener.h"
#include "base/pool.h"
#include "target/target.h"

#define BACKLOG  1024
#define RETRY_MS 5000 /* an interface's address that could not be bound */

/* One address of a portal. */
struct bound {
    struct list link;
    struct sockaddr_storage addr; /* port resolved; with the scope id */
    struct listener *listener;    /* NULL: could not be bound; tried again */
    bool absent;                  /* no interface has it (yet) */
    bool seen;                    /* in the round of follow */
};

struct portal {
    struct list link;
    struct portal_spec spec;
    struct hostport asked; /* spec.at before a port 0 was resolved */
    struct list bounds;
};

static struct {
    struct list portals;
    struct worker *main; /* NULL: nothing was opened yet */
    struct netif_watch watch;
    struct worker_timer retry;
    void (*on_change)(void);
    struct log_rate rate;
} pt;

static void on_netif(struct netif_watch *w);
static void on_retry(struct worker_timer *t);

static void
init_once(void)
{
    if (pt.main != NULL)
        return;
    pt.main = worker_self();
    assert(pt.main != NULL); /* main has made its worker before it opens portals */
    list_init(&pt.portals);
    worker_timer_init(&pt.retry, pt.main, on_retry);
    netif_watch_start(&pt.watch, on_netif);
    announce_refresh();
}

static socklen_t
addr_len(const struct sockaddr_storage *sa)
{
    return sa->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Port apart; the scope counts: two interfaces may have the same link-local address. */
static bool
same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0 &&
           a6->sin6_scope_id == b6->sin6_scope_id;
}

/* --- one address ----------------------------------------------------------------------------- */

static int
explain(int error, const char *name, char *err, size_t errsize)
{
    static const struct {
        int error;
        const char *more;
    } hints[] = {
        {EADDRINUSE, "; does another target or program listen there?"},
        {EACCES, "; ports below 1024 are for root and CAP_NET_BIND_SERVICE"},
        {EADDRNOTAVAIL, "; no interface of this host has the address"},
        {EEXIST, "; this portal is open already"},
        {ENODEV, "; no interface of this name has an address"},
        {ETIMEDOUT, "; the process that has the rights to listen there does not answer"},
    };
    const char *more = "";
    for (unsigned i = 0; i < sizeof hints / sizeof hints[0]; i++) {
        if (hints[i].error == error)
            more = hints[i].more;
    }
    (void)snprintf(err, errsize, "portal %s: %s%s", name, strerror(error), more);
    return -error;
}

/* The same of a portal that names an address, and who has it. */
static int
explain_open(int error, const struct portal_spec *spec, char *err, size_t errsize)
{
    char owner[80];
    if (error == EADDRINUSE && spec->at.addr.ss_family != AF_UNSPEC &&
        portal_owner(&spec->at.addr, owner, sizeof owner)) {
        (void)snprintf(err, errsize, "portal %s: %s by %s", spec->at.name, strerror(error), owner);
        return -error;
    }
    return explain(error, spec->at.name, err, errsize);
}

/* Listens on b->addr. 0 or -errno. */
static int
bind_one(struct portal *p, struct bound *b, bool may_come)
{
    socklen_t len = sizeof b->addr;
    const struct sockaddr_in *in4 = (const void *)&b->addr; /* sin6_port lies there as well */
    int fd = opener_permit_port(ntohs(in4->sin_port));
    if (fd < 0)
        return fd;
    fd = opener_listen((const struct sockaddr *)&b->addr, addr_len(&b->addr), BACKLOG, 0);
    b->absent = fd == -EADDRNOTAVAIL;
    if (b->absent && may_come)
        fd = opener_listen((const struct sockaddr *)&b->addr, addr_len(&b->addr), BACKLOG,
                           OPENER_FREEBIND);
    if (fd < 0)
        return fd;
    if (getsockname(fd, (struct sockaddr *)&b->addr, &len) != 0) {
        int error = errno;
        (void)close(fd);
        return -error;
    }
    if (p->spec.at.port == 0 && p->spec.at.iface[0] == '\0') { /* the kernel chose it */
        const struct sockaddr_in *in = (const void *)&b->addr;
        p->spec.at.port = ntohs(in->sin_port); /* at the same place in sockaddr_in6 */
        hostport_set_name(&p->spec.at);
    }
    struct portal_id id = {.tpgt = p->spec.tpgt};
    char text[64];
    memcpy(id.name, p->spec.at.name, sizeof id.name);
    b->listener = listener_new(fd, &id, &b->addr);
    log_event(LL_INFO, LA_NET, "portal-open addr=%s portal=%s group=%u",
              portal_text(&b->addr, text, sizeof text), LOG_ESC(p->spec.at.name),
              (unsigned)p->spec.tpgt);
    if (b->absent && p->spec.at.iface[0] == '\0')
        log_event(LL_WARN, LA_NET,
                  "portal-absent addr=%s why=\"no interface has the address; it is served as soon "
                  "as one has\"",
                  text);
    return 0;
}

/* The address of a portal that names one; -ENODEV: its interface (of "fe80::1%NAME") is missing. */
static int
bind_address(struct portal *p, struct bound *b, bool may_come)
{
    if (p->spec.at.zone[0] != '\0') {
        struct sockaddr_in6 *in6 = (void *)&b->addr;
        in6->sin6_scope_id = if_nametoindex(p->spec.at.zone);
        if (in6->sin6_scope_id == 0)
            return -ENODEV;
    }
    return bind_one(p, b, may_come);
}

static struct bound *
bound_new(struct portal *p, const struct sockaddr_storage *addr)
{
    struct bound *b = xcalloc(1, sizeof *b);
    b->addr = *addr;
    list_add_tail(&p->bounds, &b->link);
    return b;
}

static void
bound_free(struct bound *b)
{
    char text[64];
    if (b->listener != NULL) {
        log_event(LL_INFO, LA_NET, "portal-closed addr=%s",
                  portal_text(&b->addr, text, sizeof text));
        listener_free(b->listener);
    }
    list_del(&b->link);
    free(b);
}

static void
drop(struct portal *p)
{
    list_each_safe(it, &p->bounds)
        bound_free(container_of(it, struct bound, link));
    list_del(&p->link);
    free(p);
}

/* --- following interfaces -------------------------------------------------------------------- */

static void
note_iface_addr(const struct netif_addr *a, void *arg)
{
    struct portal *p = arg;
    struct sockaddr_storage sa = a->addr;
    if (sa.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)&sa)->sin6_port = htons(p->spec.at.port);
    else
        ((struct sockaddr_in *)(void *)&sa)->sin_port = htons(p->spec.at.port);
    list_each(it, &p->bounds) {
        struct bound *b = container_of(it, struct bound, link);
        if (same_host(&b->addr, &sa)) {
            b->seen = true;
            return;
        }
    }
    bound_new(p, &sa)->seen = true;
}

/* Has another portal this very address and port? It keeps it. */
static bool
is_served(const struct portal *p, const struct bound *b)
{
    list_each(it, &pt.portals) {
        const struct portal *o = container_of(it, struct portal, link);
        if (o == p || o->spec.at.port != p->spec.at.port)
            continue;
        list_each(bt, &o->bounds) {
            const struct bound *ob = container_of(bt, struct bound, link);
            if (ob->listener != NULL && same_host(&ob->addr, &b->addr))
                return true;
        }
    }
    return false;
}

/* The portal's listeners as the interface has addresses now; whether something changed. The first
 * error that is not "gone again" comes back in *error. */
static bool
follow(struct portal *p, int *error)
{
    bool changed = false;
    list_each(it, &p->bounds)
        container_of(it, struct bound, link)->seen = false;
    (void)netif_addrs(p->spec.at.iface, note_iface_addr, p);
    list_each_safe(it, &p->bounds) {
        struct bound *b = container_of(it, struct bound, link);
        if (!b->seen) {
            changed = true;
            bound_free(b);
            continue;
        }
        if (b->listener != NULL || is_served(p, b))
            continue;
        /* a new IPv6 address cannot be bound until it is known to be nobody else's */
        int rc = bind_one(p, b, true);
        changed |= rc == 0;
        b->absent = false;
        if (rc < 0 && *error == 0)
            *error = rc;
    }
    return changed;
}

/* Is one of the host's interfaces' addresses this one? */
static void
note_present(const struct netif_addr *a, void *arg)
{
    struct bound *b = arg;
    if (same_host(&a->addr, &b->addr))
        b->seen = true;
}

static bool
look_for(struct bound *b)
{
    char text[64];
    b->seen = false;
    (void)netif_addrs(NULL, note_present, b);
    if (!b->seen)
        return false;
    b->absent = false;
    log_event(LL_NOTICE, LA_NET, "portal-present addr=%s",
              portal_text(&b->addr, text, sizeof text));
    return true;
}

/* The interface of "fe80::1%NAME" was made anew: its number is another, the listener deaf. */
static void
forget_old_zone(const struct portal *p, struct bound *b)
{
    const struct sockaddr_in6 *in6 = (const void *)&b->addr;
    unsigned now = p->spec.at.zone[0] != '\0' ? if_nametoindex(p->spec.at.zone) : 0;
    if (b->listener == NULL || now == 0 || now == in6->sin6_scope_id)
        return;
    listener_free(b->listener);
    b->listener = NULL;
}

static void
follow_all(void)
{
    bool changed = false;
    int error = 0;
    char why[256];
    uint32_t suppressed;

    list_each(it, &pt.portals) {
        struct portal *p = container_of(it, struct portal, link);
        int one = 0;
        if (p->spec.at.addr.ss_family == AF_UNSPEC) {
            changed |= follow(p, &one);
        } else {
            struct bound *b = list_first(&p->bounds, struct bound, link);
            forget_old_zone(p, b);
            if (b->listener != NULL)
                changed |= b->absent && look_for(b);
            else if (bind_address(p, b, true) == 0)
                changed = true;
        }
        if (one < 0 && log_rate_ok(&pt.rate, &suppressed)) {
            (void)explain(-one, p->spec.at.name, why, sizeof why);
            log_event(LL_ERROR, LA_NET, "portal-not-open why=\"%s\" suppressed=%u", why,
                      (unsigned)suppressed);
        }
        error = one < 0 ? one : error;
    }
    if (error < 0)
        worker_timer_start_ms(&pt.retry, RETRY_MS);
    if (changed && pt.on_change != NULL)
        pt.on_change();
}

static void
on_netif(struct netif_watch *w)
{
    (void)w;
    announce_refresh();
    follow_all();
}

static void
on_retry(struct worker_timer *t)
{
    (void)t;
    follow_all();
}

/* --- opening and closing --------------------------------------------------------------------- */

static struct portal *
find(const char *name)
{
    if (pt.main == NULL)
        return NULL;
    list_each(it, &pt.portals) {
        struct portal *p = container_of(it, struct portal, link);
        if (strcmp(p->spec.at.name, name) == 0)
            return p;
    }
    return NULL;
}

static int
open_iface(struct portal *p, bool may_come)
{
    int error = 0;
    (void)follow(p, &error);
    if (error < 0)
        return error;
    if (!list_is_empty(&p->bounds))
        return 0;
    if (!may_come)
        return -ENODEV;
    log_event(LL_WARN, LA_NET,
              "portal-absent portal=%s why=\"the interface has no address; they are served as they "
              "come\"",
              LOG_ESC(p->spec.at.name));
    return 0;
}

static int
open_address(struct portal *p, bool may_come)
{
    struct hostport *at = &p->spec.at;
    struct bound *b = bound_new(p, &at->addr);
    int rc = bind_address(p, b, may_come);
    if (rc == -ENODEV && may_come) {
        log_event(
            LL_WARN, LA_NET,
            "portal-absent portal=%s why=\"there is no such interface; it is served as soon as "
            "it comes\"",
            LOG_ESC(at->name));
        return 0;
    }
    return rc;
}

int
portal_open(const struct portal_spec *spec, bool may_come, char *err, size_t errsize)
{
    init_once();
    worker_assert_owner(pt.main);
    if (find(spec->at.name) != NULL)
        return explain(EEXIST, spec->at.name, err, errsize);
    struct portal *p = xcalloc(1, sizeof *p);
    p->spec = *spec;
    p->asked = spec->at;
    list_init(&p->bounds);
    list_add_tail(&pt.portals, &p->link);
    int rc =
        spec->at.addr.ss_family == AF_UNSPEC ? open_iface(p, may_come) : open_address(p, may_come);
    if (rc == 0)
        return 0;
    drop(p);
    return explain_open(-rc, spec, err, errsize);
}

int
portal_close(const char *name)
{
    struct portal *p = find(name);
    if (p == NULL)
        return -ENOENT;
    worker_assert_owner(pt.main);
    drop(p);
    worker_timer_start_ms(&pt.retry, 1); /* an interface's portal may have waited for the address */
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
    worker_timer_stop(&pt.retry);
    netif_watch_stop(&pt.watch);
    listener_end();
    pt.main = NULL;
}

void
portal_on_change(void (*fn)(void))
{
    pt.on_change = fn;
}

static void
list_one(const struct portal *p, const struct bound *b, struct node_portal *out)
{
    *out = (struct node_portal){.id.tpgt = p->spec.tpgt};
    memcpy(out->id.name, p->spec.at.name, sizeof out->id.name);
    memcpy(out->advertise, p->spec.advertise, sizeof out->advertise);
    if (b != NULL) {
        out->addr = b->addr;
        out->absent = b->absent;
    }
}

unsigned
portal_list(struct node_portal *out, unsigned max)
{
    unsigned n = 0;
    if (pt.main == NULL)
        return 0;
    worker_assert_owner(pt.main);
    list_each(it, &pt.portals) {
        const struct portal *p = container_of(it, struct portal, link);
        unsigned before = n;
        list_each(bt, &p->bounds) {
            const struct bound *b = container_of(bt, struct bound, link);
            if (b->listener == NULL)
                continue;
            if (n < max)
                list_one(p, b, &out[n]);
            n++;
        }
        if (n > before)
            continue;
        if (n < max)
            list_one(p, NULL, &out[n]);
        n++;
    }
    return n;
}

unsigned
portal_specs(struct portal_spec *out, unsigned max)
{
    unsigned n = 0;
    if (pt.main == NULL)
        return 0;
    worker_assert_owner(pt.main);
    list_each(it, &pt.portals) {
        const struct portal *p = container_of(it, struct portal, link);
        if (n < max) {
            out[n] = p->spec;
            out[n].at = p->asked;
        }
        n++;
    }
    return n;
}

static struct portal *
find_asked(const char *name)
{
    list_each(it, &pt.portals) {
        struct portal *p = container_of(it, struct portal, link);
        if (strcmp(p->asked.name, name) == 0)
            return p;
    }
    return NULL;
}

int
portal_change(const struct portal_spec *spec)
{
    struct portal *p = pt.main != NULL ? find_asked(spec->at.name) : NULL;
    if (p == NULL)
        return -ENOENT;
    worker_assert_owner(pt.main);
    p->spec.tpgt = spec->tpgt;
    memcpy(p->spec.advertise, spec->advertise, sizeof p->spec.advertise);
    list_each(it, &p->bounds) {
        const struct bound *b = container_of(it, struct bound, link);
        if (b->listener != NULL)
            listener_set_group(b->listener, spec->tpgt);
    }
    return 0;
}

bool
portal_is_absent(const char *name)
{
    const struct portal *p = pt.main != NULL ? find_asked(name) : NULL;
    bool present = false;
    if (p == NULL)
        return false;
    list_each(it, &p->bounds) {
        const struct bound *b = container_of(it, struct bound, link);
        present |= b->listener != NULL && !b->absent;
    }
    return !present;
}

int
portal_close_asked(const char *name)
{
    const struct portal *p = pt.main != NULL ? find_asked(name) : NULL;
    return p == NULL ? -ENOENT : portal_close(p->spec.at.name);
}
