/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where to listen and what to announce, as text: read the same way from the configuration and
 * from administration, with one normal form each, so that two spellings are one thing.
 */
#ifndef BASE_HOSTPORT_H
#define BASE_HOSTPORT_H

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define HOSTPORT_NAME_MAX 80  /* bytes with the NUL */
#define HOSTPORT_HOST_MAX 272 /* a DNS name, a port, the NUL */
#define HOSTPORT_DEFAULT  3260

struct hostport {
    char iface[IF_NAMESIZE];      /* of "iface:NAME": its addresses, whatever they are; else "" */
    char zone[IF_NAMESIZE];       /* of "[fe80::1%NAME]"; the scope id is not filled in */
    struct sockaddr_storage addr; /* with the port; ss_family AF_UNSPEC when iface is given */
    uint16_t port;
    char name[HOSTPORT_NAME_MAX]; /* normal form */
};

/* "ADDR[:PORT]", "[v6]:PORT", a bare v6 address, "[fe80::1%NAME]:PORT", "iface:NAME[:PORT]".
 * Numbers only: nothing is looked up. 0, or -EINVAL and why. Any thread. */
int hostport_parse(const char *text, struct hostport *out, char *err, size_t errsize);
/* hp->addr and hp->port are given (and the zone): the name is made. */
void hostport_set_name(struct hostport *hp);
/* What peers are to be told: "HOST[:PORT]" with a numeric address or a DNS name (RFC 7143 13.8);
 * in normal form with the port, which is `port` when not said. 0, or -EINVAL and why. */
int hostport_announce(const char *text, uint16_t port, char out[HOSTPORT_HOST_MAX], char *err,
                      size_t errsize);

#endif
