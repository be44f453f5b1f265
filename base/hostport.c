/* SPDX-License-Identifier: BSD-2-Clause */
/* HOST:PORT in its spellings.  Pure functions. */
#include "config.h"

#include "base/hostport.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/netif.h"

static const char iface_word[] = "iface:";

/* 0..65535 in decimal. */
static bool
read_port(const char *text, uint16_t *port)
{
    unsigned long v = 0;
    size_t n = strlen(text);
    if (n == 0 || n > 5 || strspn(text, "0123456789") != n)
        return false;
    v = strtoul(text, NULL, 10);
    *port = (uint16_t)v;
    return v <= 65535;
}

struct parts {
    char host[256];
    uint16_t port;
    bool v6; /* in brackets, or with two colons */
};

/* Host and port apart; the port stays as it was when none is given. */
static int
split(const char *text, struct parts *p, char *err, size_t errsize)
{
    const char *end = text + strlen(text), *port = NULL;

    if (text[0] == '[') {
        text++;
        end = strchr(text, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':')) {
            (void)snprintf(err, errsize, "\"[%s\": want [IPV6-ADDRESS]:PORT", text);
            return -EINVAL;
        }
        if (end[1] != '\0')
            port = end + 2;
        p->v6 = true;
    } else {
        const char *colon = strchr(text, ':');
        p->v6 = colon != NULL && strchr(colon + 1, ':') != NULL;
        if (colon != NULL && !p->v6) {
            end = colon;
            port = colon + 1;
        }
    }
    size_t n = (size_t)(end - text);
    if (n >= sizeof p->host) {
        (void)snprintf(err, errsize, "the address is too long");
        return -EINVAL;
    }
    memcpy(p->host, text, n);
    p->host[n] = '\0';
    if (port != NULL && !read_port(port, &p->port)) {
        (void)snprintf(err, errsize, "\"%s\" is no port", port);
        return -EINVAL;
    }
    return 0;
}

/* --- numeric addresses ----------------------------------------------------------------------- */

static int
read_v4(const char *host, struct sockaddr_in *in, char *err, size_t errsize)
{
    in->sin_family = AF_INET;
    if (inet_pton(AF_INET, host, &in->sin_addr) != 1) {
        (void)snprintf(err, errsize,
                       "\"%s\" is no numeric address; want 192.0.2.1:3260, [2001:db8::1]:3260 or "
                       "iface:NAME:3260",
                       host);
        return -EINVAL;
    }
    uint32_t a = ntohl(in->sin_addr.s_addr);
    if (IN_MULTICAST(a) || a == INADDR_BROADCAST) {
        (void)snprintf(err, errsize, "%s is no address of a host", host);
        return -EINVAL;
    }
    return 0;
}

static int
read_v6(char *host, struct sockaddr_in6 *in6, char zone[IF_NAMESIZE], char *err, size_t errsize)
{
    char *percent = strchr(host, '%');

    in6->sin6_family = AF_INET6;
    if (percent != NULL) {
        *percent++ = '\0';
        if (!netif_name_ok(percent)) {
            (void)snprintf(err, errsize, "\"%s\" is no interface", percent);
            return -EINVAL;
        }
        (void)snprintf(zone, IF_NAMESIZE, "%s", percent);
    }
    if (inet_pton(AF_INET6, host, &in6->sin6_addr) != 1) {
        (void)snprintf(err, errsize,
                       "\"%s\" is no numeric address; want 192.0.2.1:3260 or [2001:db8::1]:3260",
                       host);
        return -EINVAL;
    }
    const char *why = NULL;
    bool local = IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
    if (IN6_IS_ADDR_MULTICAST(&in6->sin6_addr))
        why = "is no address of a host";
    else if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
        why = "is an IPv4 address: write it as one";
    else if (local && percent == NULL)
        why = "is link-local and needs its interface: [fe80::1%eth0]";
    else if (!local && percent != NULL)
        why = "is not link-local and takes no interface";
    if (why == NULL)
        return 0;
    (void)snprintf(err, errsize, "%s %s", host, why);
    return -EINVAL;
}

void
hostport_set_name(struct hostport *hp)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (hp->addr.ss_family == AF_UNSPEC) {
        (void)snprintf(hp->name, sizeof hp->name, "%s%s:%u", iface_word, hp->iface,
                       (unsigned)hp->port);
    } else if (hp->addr.ss_family == AF_INET) {
        struct sockaddr_in *in = (void *)&hp->addr;
        in->sin_port = htons(hp->port);
        (void)inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
        (void)snprintf(hp->name, sizeof hp->name, "%s:%u", host, (unsigned)hp->port);
    } else {
        struct sockaddr_in6 *in6 = (void *)&hp->addr;
        in6->sin6_port = htons(hp->port);
        (void)inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
        (void)snprintf(hp->name, sizeof hp->name, "[%s%s%s]:%u", host, *hp->zone ? "%" : "",
                       hp->zone, (unsigned)hp->port);
    }
}

static int
parse_iface(const char *text, struct hostport *out, char *err, size_t errsize)
{
    char buf[64];
    const char *name = text + sizeof iface_word - 1;
    (void)snprintf(buf, sizeof buf, "%s", name);
    char *colon = strchr(buf, ':');
    if (colon != NULL) {
        *colon++ = '\0';
        if (!read_port(colon, &out->port)) {
            (void)snprintf(err, errsize, "\"%s\" is no port", colon);
            return -EINVAL;
        }
    }
    if (strlen(name) >= sizeof buf || !netif_name_ok(buf)) {
        (void)snprintf(err, errsize, "\"%s\" is no interface; want iface:NAME or iface:NAME:PORT",
                       buf);
        return -EINVAL;
    }
    memcpy(out->iface, buf, strlen(buf) + 1); /* netif_name_ok: it fits */
    return 0;
}

int
hostport_parse(const char *text, struct hostport *out, char *err, size_t errsize)
{
    struct parts p = {.port = HOSTPORT_DEFAULT};
    int rc;

    *out = (struct hostport){.port = HOSTPORT_DEFAULT};
    if (strncmp(text, iface_word, sizeof iface_word - 1) == 0) {
        rc = parse_iface(text, out, err, errsize);
    } else {
        rc = split(text, &p, err, errsize);
        if (rc == 0)
            rc = p.v6 ? read_v6(p.host, (void *)&out->addr, out->zone, err, errsize)
                      : read_v4(p.host, (void *)&out->addr, err, errsize);
        out->port = p.port;
    }
    if (rc == 0)
        hostport_set_name(out);
    return rc;
}

/* --- what is announced ----------------------------------------------------------------------- */

/* RFC 1123 2.1: labels of 1 to 63 letters, digits and hyphens inside; not digits and dots only. */
static bool
is_dns_name(const char *host)
{
    bool letter = false;
    size_t n = strlen(host);
    if (n == 0 || n > 253)
        return false;
    for (const char *p = host; *p != '\0';) {
        size_t len = strcspn(p, ".");
        if (len == 0 || len > 63 || p[0] == '-' || p[len - 1] == '-')
            return false;
        for (size_t i = 0; i < len; i++) {
            if (!isalnum((unsigned char)p[i]) && p[i] != '-')
                return false;
            letter |= isalpha((unsigned char)p[i]) != 0;
        }
        p += len;
        p += *p != '\0';
    }
    return letter;
}

int
hostport_announce(const char *text, uint16_t port, char out[HOSTPORT_HOST_MAX], char *err,
                  size_t errsize)
{
    struct parts p = {.port = port};
    struct hostport hp = {.port = 0};
    int rc = split(text, &p, err, errsize);

    if (rc < 0)
        return rc;
    if (p.port == 0) {
        (void)snprintf(err, errsize, "0 is no port that an initiator can be told");
        return -EINVAL;
    }
    if (!p.v6 && is_dns_name(p.host)) {
        (void)snprintf(out, HOSTPORT_HOST_MAX, "%s:%u", p.host, (unsigned)p.port);
        return 0;
    }
    struct in_addr probe;
    if (!p.v6 && inet_pton(AF_INET, p.host, &probe) != 1) {
        (void)snprintf(err, errsize, "\"%s\" is neither a host name nor an address", p.host);
        return -EINVAL;
    }
    rc = p.v6 ? read_v6(p.host, (void *)&hp.addr, hp.zone, err, errsize)
              : read_v4(p.host, (void *)&hp.addr, err, errsize);
    if (rc == 0 && (p.v6 ? *hp.zone || IN6_IS_ADDR_UNSPECIFIED(
                                           &((struct sockaddr_in6 *)(void *)&hp.addr)->sin6_addr)
                         : ((struct sockaddr_in *)(void *)&hp.addr)->sin_addr.s_addr == 0)) {
        (void)snprintf(err, errsize, "%s is no address that an initiator can be told", text);
        rc = -EINVAL;
    }
    if (rc < 0)
        return rc;
    hp.port = p.port;
    hostport_set_name(&hp);
    (void)snprintf(out, HOSTPORT_HOST_MAX, "%s", hp.name);
    return 0;
}
