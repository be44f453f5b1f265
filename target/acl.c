/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may log in: lists of addresses and of initiator names, as the configuration gives them.
 * Built on main, then immutable; acl_admits is asked on any worker.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "target/target.h"

/* All addresses are kept as 16 bytes, IPv4 as ::ffff:a.b.c.d, so that a v4-mapped peer is the
 * IPv4 host it is. */
struct prefix {
    uint8_t addr[16];
    uint8_t bits; /* 0..128 */
};

struct acl {
    struct ref ref;
    bool all_addrs, all_names;
    unsigned naddrs, nnames;
    struct prefix *addrs;
    char **names; /* folded patterns */
};

static const uint8_t v4_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* True when the first `bits` bits are the same. */
static bool
same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    unsigned rest = bits % 8;
    return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

static bool
mask_host_bits(struct prefix *p)
{
    bool had = false;
    for (unsigned i = 0; i < 16; i++) {
        unsigned keep = p->bits >= 8 * (i + 1) ? 8 : p->bits > 8 * i ? p->bits - 8 * i : 0;
        uint8_t mask = (uint8_t)(0xff00u >> keep);
        had = had || (p->addr[i] & ~mask & 0xff);
        p->addr[i] &= mask;
    }
    return had;
}

static bool
parse_bits(const char *s, unsigned max, unsigned *bits)
{
    if (*s == '\0' || strlen(s) > 3)
        return false;
    *bits = 0;
    for (; *s != '\0'; s++) {
        if (*s < '0' || *s > '9')
            return false;
        *bits = *bits * 10 + (unsigned)(*s - '0');
    }
    return *bits <= max;
}

/* "10.0.0.0/8", "192.168.1.7", "2001:db8::/32", "[::1]/128". */
static bool
parse_prefix(const char *text, struct prefix *p)
{
    char addr[INET6_ADDRSTRLEN + 1];
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    if (len == 0 || len >= sizeof addr)
        return false;
    memcpy(addr, text, len);
    addr[len] = '\0';
    unsigned max = 128, bits;
    if (inet_pton(AF_INET, addr, p->addr + 12) == 1) {
        memcpy(p->addr, v4_mapped, sizeof v4_mapped);
        max = 32;
    } else if (inet_pton(AF_INET6, addr, p->addr) != 1) {
        return false;
    }
    bits = max;
    if (slash != NULL && !parse_bits(slash + 1, max, &bits))
        return false;
    p->bits = (uint8_t)(bits + (max == 32 ? 96 : 0));
    return true;
}

static int
add_addrs(struct acl *a, const char *const *addrs, char *err, size_t errsize, char *warn,
          size_t warnsize)
{
    for (unsigned i = 0; addrs != NULL && addrs[i] != NULL; i++) {
        if (strcasecmp(addrs[i], "ALL") == 0) {
            a->all_addrs = true;
            continue;
        }
        a->addrs = xrealloc(a->addrs, (a->naddrs + 1) * sizeof *a->addrs);
        struct prefix *p = &a->addrs[a->naddrs];
        if (!parse_prefix(addrs[i], p)) {
            (void)snprintf(err, errsize,
                           "\"%.64s\" is no address: ALL, an IPv4 or IPv6 address, or one with "
                           "/0../32 or /0../128%s",
                           addrs[i], strpbrk(addrs[i], ", \t") ? "; one at a time" : "");
            return -EINVAL;
        }
        a->naddrs++;
        if (mask_host_bits(p) && warn != NULL && warnsize != 0 && warn[0] == '\0')
            (void)snprintf(warn, warnsize, "%.64s has bits set beyond its prefix; they are ignored",
                           addrs[i]);
    }
    return 0;
}

static int
add_names(struct acl *a, const char *const *names, char *err, size_t errsize)
{
    for (unsigned i = 0; names != NULL && names[i] != NULL; i++) {
        char folded[ISCSI_NAME_MAX + 1];
        const char *why;
        if (strcasecmp(names[i], "ALL") == 0) {
            a->all_names = true;
            continue;
        }
        if (name_fold(names[i], strlen(names[i]), folded, &why) != 0) {
            (void)snprintf(err, errsize, "initiator name \"%.64s\": %s", names[i], why);
            return -EINVAL;
        }
        a->names = xrealloc(a->names, (a->nnames + 1) * sizeof *a->names);
        a->names[a->nnames++] = xstrdup(folded);
    }
    return 0;
}

static bool
given(const char *const *list)
{
    return list != NULL && list[0] != NULL;
}

struct acl *
acl_new(const char *const *addrs, const char *const *names, char *err, size_t errsize, char *warn,
        size_t warnsize)
{
    struct acl *a = xcalloc(1, sizeof *a);
    ref_init(&a->ref);
    if (warn != NULL && warnsize != 0)
        warn[0] = '\0';
    if (add_addrs(a, addrs, err, errsize, warn, warnsize) != 0 ||
        add_names(a, names, err, errsize) != 0) {
        acl_put(a);
        return NULL;
    }
    /* A list that was not given does not restrict, unless neither was. */
    if (given(names) && !given(addrs))
        a->all_addrs = true;
    if (given(addrs) && !given(names))
        a->all_names = true;
    return a;
}

struct acl *
acl_get(struct acl *a)
{
    ref_get(&a->ref);
    return a;
}

void
acl_put(struct acl *a)
{
    if (a == NULL || !ref_put(&a->ref))
        return;
    for (unsigned i = 0; i < a->nnames; i++)
        free(a->names[i]);
    free(a->names);
    free(a->addrs);
    free(a);
}

static bool
peer_bytes(const struct sockaddr *peer, uint8_t out[16])
{
    if (peer->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)peer;
        memcpy(out, v4_mapped, sizeof v4_mapped);
        memcpy(out + 12, &in->sin_addr, 4);
        return true;
    }
    if (peer->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)peer;
        memcpy(out, &in6->sin6_addr, 16);
        return true;
    }
    return false;
}

static bool
addr_admitted(const struct acl *a, const struct sockaddr *peer)
{
    uint8_t addr[16];
    if (a->all_addrs)
        return true;
    if (!peer_bytes(peer, addr))
        return false;
    bool v4 = memcmp(addr, v4_mapped, sizeof v4_mapped) == 0;
    for (unsigned i = 0; i < a->naddrs; i++) {
        /* ::/0 and other short IPv6 prefixes do not mean the IPv4 hosts that are mapped there. */
        if (v4 && a->addrs[i].bits < 96)
            continue;
        if (same_prefix(a->addrs[i].addr, addr, a->addrs[i].bits))
            return true;
    }
    return false;
}

/* * any run, ? any one byte.  One step back is enough: the last * decides; time is bounded by
 * the product of the lengths, both at most 223. */
static bool
wildcard(const char *pat, const char *s)
{
    const char *star = NULL, *retry = NULL;
    while (*s != '\0') {
        if (*pat == '*') {
            star = pat++;
            retry = s;
        } else if (*pat == '?' || *pat == *s) {
            pat++;
            s++;
        } else if (star != NULL) {
            pat = star + 1;
            s = ++retry;
        } else {
            return false;
        }
    }
    while (*pat == '*')
        pat++;
    return *pat == '\0';
}

bool
acl_admits_name(const struct acl *a, const char *initiator_name)
{
    if (a->all_names)
        return true;
    for (unsigned i = 0; i < a->nnames; i++) {
        if (wildcard(a->names[i], initiator_name))
            return true;
    }
    return false;
}

bool
acl_admits(const struct acl *a, const struct sockaddr *peer, const char *initiator_name)
{
    return a != NULL && addr_admitted(a, peer) && acl_admits_name(a, initiator_name);
}
