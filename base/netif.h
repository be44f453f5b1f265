/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's network interfaces: which addresses they have, and a word whenever that may have
 * changed (rtnetlink).  For portals and access lists that name an interface, and for what wildcard
 * portals stand for.  Owner: the thread of the first netif_watch_start (main).
 */
#ifndef BASE_NETIF_H
#define BASE_NETIF_H

#include <net/if.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "base/list.h"

struct netif_addr {
    char name[IF_NAMESIZE];
    struct sockaddr_storage addr; /* AF_INET or AF_INET6, port 0; scope id of link-local ones */
    unsigned bits;                /* of its subnet: 0..32 or 0..128 */
};

/* cb for each address of the interface that is up and called `name` (NULL: of all that are up), in
 * the kernel's order. How many; 0 when there is no such interface. Any thread; a few system calls
 * that do not wait for anything. */
unsigned netif_addrs(const char *name, void (*cb)(const struct netif_addr *a, void *arg),
                     void *arg);
/* Could an interface have this name? 1 to 15 bytes, printable, no blank, '/' or ':'. */
bool netif_name_ok(const char *name);

/* Embedded. `changed` runs in a later loop turn, once for a burst of changes: addresses or
 * interfaces came, went or were renamed, perhaps not the ones of interest. Where the kernel does
 * not tell (no rtnetlink), it runs every few seconds. It may stop its own watch, not others. */
struct netif_watch {
    struct list link; /* private */
    void (*changed)(struct netif_watch *w);
};
void netif_watch_start(struct netif_watch *w, void (*changed)(struct netif_watch *w));
void netif_watch_stop(struct netif_watch *w); /* not started: nothing happens */

#endif
