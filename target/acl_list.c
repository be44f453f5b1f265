/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of access lists: addresses with prefixes, interfaces, patterns of names.  Built on main
 * (or in a helper that judges a configuration), then read by any worker.
 *
 * All addresses are kept as 16 bytes, IPv4 as ::ffff:a.b.c.d, so that a v4-mapped peer is the IPv4
 * host it is.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/netif.h"
#include "base/pool.h"
#include "target/acl_priv.h"

#define IFACE       "iface:"
#define PATTERN_MAX 255u /* bytes; names have at most 223 */

static const uint8_t v4_mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct acl_list *
acl_list_new(void)
{
    struct acl_list *l = xcalloc(1, sizeof *l);
    ref_init(&l->ref);
    return l;
}

struct acl_list *
acl_list_get(struct acl_list *l)
{
    ref_get(&l->ref);
    return l;
}

void
acl_list_put(struct acl_list *l)
{
    if (l == NULL || !ref_put(&l->ref))
        return;
    for (unsigned i = 0; i < l->npatterns; i++) {
        if (l->patterns[i].glob == NULL)
            regfree(&l->patterns[i].re);
        free(l->patterns[i].glob);
    }
    free(l->patterns);
    free(l->nets);
    free(l);
}

static void
warn_once(const struct acl_says *says, const char *text, const char *why)
{
    if (says->warn != NULL && says->warnsize != 0 && says->warn[0] == '\0')
        (void)snprintf(says->warn, says->warnsize, "%.64s %s", text, why);
}

/* --- addresses ------------------------------------------------------------------------------- */

static bool
mask_host_bits(struct acl_net *p)
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
parse_prefix(const char *text, struct acl_net *p)
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
    *p = (struct acl_net){.scope = 0};
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

static bool
address_bytes(const struct sockaddr *sa, uint8_t out[16], uint32_t *scope)
{
    *scope = 0;
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)sa;
        memcpy(out, v4_mapped, sizeof v4_mapped);
        memcpy(out + 12, &in->sin_addr, 4);
        return true;
    }
    if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)sa;
        memcpy(out, &in6->sin6_addr, 16);
        /* the same link-local subnet is on every interface: only the zone tells them apart */
        if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
            *scope = in6->sin6_scope_id;
        return true;
    }
    return false;
}

static void
add_net(struct acl_list *l, const struct acl_net *net)
{
    l->nets = xrealloc(l->nets, (l->nnets + 1) * sizeof *l->nets);
    l->nets[l->nnets++] = *net;
}

static void
add_subnet(const struct netif_addr *a, void *arg)
{
    struct acl_net net;
    if (!address_bytes((const struct sockaddr *)&a->addr, net.addr, &net.scope))
        return;
    net.bits = (uint8_t)(a->addr.ss_family == AF_INET ? 96 + a->bits : a->bits);
    (void)mask_host_bits(&net);
    add_net(arg, &net);
}

/* The subnets that the interface has now; whoever made the list makes it anew when they change. */
static int
add_iface(struct acl_list *l, const char *text, const struct acl_says *says)
{
    const char *name = text + strlen(IFACE);
    if (!netif_name_ok(name)) {
        (void)snprintf(says->err, says->errsize,
                       "\"%.64s\": " IFACE " wants the name of a network interface", text);
        return -EINVAL;
    }
    if (netif_addrs(name, add_subnet, l) == 0)
        warn_once(says, text, "has no address now; it stands for nobody until it has one");
    return 0;
}

/* An address or prefix: 1; else 0. */
static int
add_prefix(struct acl_list *l, const char *text, const struct acl_says *says)
{
    struct acl_net net;
    if (!parse_prefix(text, &net))
        return 0;
    if (mask_host_bits(&net))
        warn_once(says, text, "has bits set beyond its prefix; they are ignored");
    add_net(l, &net);
    return 1;
}

int
acl_list_address(struct acl_list *l, const char *text, const struct acl_says *says)
{
    if (strcasecmp(text, "ALL") == 0) {
        l->all = true;
        return 0;
    }
    if (acl_is_iface(text))
        return add_iface(l, text, says);
    if (add_prefix(l, text, says))
        return 0;
    (void)snprintf(says->err, says->errsize,
                   "\"%.64s\" is no address: ALL, an IPv4 or IPv6 address, one with /0../32 or "
                   "/0../128, or " IFACE "NAME%s",
                   text, strpbrk(text, ", \t") ? "; one at a time" : "");
    return -EINVAL;
}

bool
acl_is_iface(const char *text)
{
    return strncasecmp(text, IFACE, strlen(IFACE)) == 0;
}

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

bool
acl_list_has_address(const struct acl_list *l, const struct sockaddr *sa)
{
    uint8_t addr[16];
    uint32_t scope;
    if (l == NULL || l->all)
        return l != NULL;
    if (!address_bytes(sa, addr, &scope))
        return false;
    bool v4 = memcmp(addr, v4_mapped, sizeof v4_mapped) == 0;
    for (unsigned i = 0; i < l->nnets; i++) {
        const struct acl_net *net = &l->nets[i];
        /* ::/0 and other short IPv6 prefixes do not mean the IPv4 hosts that are mapped there. */
        if ((v4 && net->bits < 96) || (net->scope != 0 && net->scope != scope))
            continue;
        if (same_prefix(net->addr, addr, net->bits))
            return true;
    }
    return false;
}

/* --- names ----------------------------------------------------------------------------------- */

/* End of the [..] that begins at p (behind its ]), or NULL: it has none. */
static const char *
class_end(const char *p)
{
    p += p[1] == '!' || p[1] == '^' ? 2 : 1;
    if (*p == ']') /* first: a member */
        p++;
    p = strchr(p, ']');
    return p ? p + 1 : NULL;
}

/* Is c in the [..] at p? Single bytes and ranges of them. */
static bool
class_has(const char *p, unsigned char c)
{
    const char *end = class_end(p) - 1;
    bool not = p[1] == '!' || p[1] == '^', in = false;
    for (p += not ? 2 : 1; p < end; p++) {
        unsigned char from = (unsigned char)*p, to = from;
        if (p[1] == '-' && p + 2 < end) {
            to = (unsigned char)p[2];
            p += 2;
        }
        in = in || (c >= from && c <= to);
    }
    return in != not ;
}

/* Bytes of the character at s. Names are well-formed UTF-8 (name.c). */
static size_t
char_len(const char *s)
{
    unsigned char c = (unsigned char)*s;
    return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* Does what is at pat (no *) take the character at s? *next: behind it in the pattern. */
static bool
takes(const char *pat, const char *s, const char **next)
{
    if (*pat == '?') {
        *next = pat + 1;
        return true;
    }
    if (*pat == '[') {
        *next = class_end(pat);
        return class_has(pat, (unsigned char)*s);
    }
    *next = pat + char_len(s);
    return *pat != '\0' && strncmp(pat, s, char_len(s)) == 0;
}

/* * any run, ? any one character, [..] one of a set.  One step back is enough: the last * decides;
 * time is bounded by the product of the lengths. */
static bool
wildcard(const char *pat, const char *s)
{
    const char *star = NULL, *retry = NULL, *next;
    while (*s != '\0') {
        if (*pat == '*') {
            star = pat++;
            retry = s;
        } else if (takes(pat, s, &next)) {
            pat = next;
            s += char_len(s);
        } else if (star != NULL) {
            pat = star + 1;
            retry += char_len(retry);
            s = retry;
        } else {
            return false;
        }
    }
    while (*pat == '*')
        pat++;
    return *pat == '\0';
}

static struct acl_pattern *
add_pattern(struct acl_list *l)
{
    l->patterns = xrealloc(l->patterns, (l->npatterns + 1) * sizeof *l->patterns);
    l->patterns[l->npatterns] = (struct acl_pattern){.glob = NULL};
    return &l->patterns[l->npatterns];
}

static bool
sets_are_closed(const char *pat)
{
    for (; pat != NULL && *pat != '\0'; pat = *pat == '[' ? class_end(pat) : pat + 1)
        ;
    return pat != NULL;
}

int
acl_list_name(struct acl_list *l, const char *text, const struct acl_says *says)
{
    char folded[ISCSI_NAME_MAX + 1];
    const char *why;
    if (strcasecmp(text, "ALL") == 0) {
        l->all = true;
        return 0;
    }
    bool ok = name_fold(text, strlen(text), folded, &why) == 0;
    if (ok && !sets_are_closed(folded)) {
        ok = false;
        why = "a [ has no ]";
    }
    if (!ok) {
        (void)snprintf(says->err, says->errsize, "initiator name \"%.64s\": %s", text, why);
        return -EINVAL;
    }
    add_pattern(l)->glob = xstrdup(folded);
    l->npatterns++;
    return 0;
}

/* A basic regular expression for the whole name. References back are refused: matching could
 * take exponential time, and the name is the peer's. */
static int
add_regex(struct acl_list *l, const char *text, const struct acl_says *says)
{
    char anchored[PATTERN_MAX + 8], why[128] = "is longer than 255 bytes";
    bool bad = strlen(text) > PATTERN_MAX;
    for (const char *p = text; !bad && *p != '\0'; p++) {
        if (*p != '\\')
            continue;
        p++;
        bad = *p >= '1' && *p <= '9';
        (void)snprintf(why, sizeof why, "refers back to a part of itself");
        if (*p == '\0')
            break;
    }
    if (!bad) {
        struct acl_pattern *p = add_pattern(l);
        /* in a group, so that an alternative inside does not escape the anchors */
        (void)snprintf(anchored, sizeof anchored, "^\\(%s\\)$", text);
        int rc = regcomp(&p->re, anchored, REG_NOSUB | REG_ICASE);
        if (rc == 0) {
            l->npatterns++;
            return 0;
        }
        (void)regerror(rc, &p->re, why, sizeof why);
    }
    (void)snprintf(says->err, says->errsize, "\"%.64s\" is neither an address nor a pattern: %s",
                   text, why);
    return -EINVAL;
}

/* Digits and signs of addresses alone: no initiator's name fits it. */
static void
look_like_address(const char *text, const struct acl_says *says)
{
    if (text[strspn(text, "0123456789./:[]")] == '\0' && says->warn != NULL)
        (void)snprintf(says->warn, says->warnsize,
                       "\"%.64s\" is no address, and taken as a pattern of names it fits nobody",
                       text);
}

int
acl_list_iet(struct acl_list *l, const char *text, bool names, const struct acl_says *says)
{
    if (strcmp(text, "ALL") == 0) {
        l->all = true;
        return 0;
    }
    if (add_prefix(l, text, says))
        return 0;
    if (names)
        look_like_address(text, says);
    return names ? add_regex(l, text, says) : acl_list_address(l, text, says);
}

bool
acl_list_has_name(const struct acl_list *l, const char *folded)
{
    if (l == NULL || l->all)
        return l != NULL;
    for (unsigned i = 0; i < l->npatterns; i++) {
        const struct acl_pattern *p = &l->patterns[i];
        if (p->glob ? wildcard(p->glob, folded) : regexec(&p->re, folded, 0, NULL, 0) == 0)
            return true;
    }
    return false;
}
