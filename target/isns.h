/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The iSNS client (RFC 4171): makes targets and portals known to a name server and, where it is
 * asked to, admits only initiators that share a discovery domain with the target.  All on main, on
 * its loop; nothing here blocks.
 *
 *   isns.c         settings, start and end                    (main.c, admin_sys.c)
 *   isns_client.c  which request is next, answers, servers in turn
 *   isns_reg.c     what is to be registered, requests
 *   isns_link.c    connections          isns_inbound.c  those that the server makes (SCN, ESI)
 *   isns_proto.c   the wire             isns_dd.c       the published sets
 */
#ifndef TARGET_ISNS_H
#define TARGET_ISNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ISNS_SERVERS_MAX 8u

struct worker;

struct isns_server {
    struct sockaddr_storage addr;
    socklen_t len;
};

struct isns_settings {
    bool on;
    bool access;       /* iSNSAccessControl; in force while on */
    uint16_t port;     /* of servers given without one */
    char servers[512]; /* "192.0.2.1, [2001:db8::1]:3206"; numbers only */
    /* Made of it by isns_settings_check. */
    unsigned nservers;
    struct isns_server server[ISNS_SERVERS_MAX];
};

void isns_settings_init(struct isns_settings *s);
/* Fills server[]. 0, or -EINVAL and why. */
int isns_settings_check(struct isns_settings *s, char *err, size_t errsize);

/* Before targets are published first: an access control that is on holds from then. `s` was
 * checked. seed: 32 bytes that name this daemon for ever. */
void isns_start(struct worker *main_worker, const struct isns_settings *s, const uint8_t *seed);
const struct isns_settings *isns_settings(void);
/* Live change, checked like at the start; 0, or -EINVAL and why and nothing changed. Publishes the
 * targets when access control begins or ends. */
int isns_change(const struct isns_settings *s, char *err, size_t errsize);
/* For show: "off", "connecting", "registered", ... and the server in use ("" : none). */
const char *isns_state(char *server, size_t size);
/* Takes everything off the server, for two seconds at most; then done(arg), perhaps at once. */
void isns_end(void (*done)(void *arg), void *arg);

#endif
