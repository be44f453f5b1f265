/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state machine of the iSNS client: connects to one server of several, keeps what is
 * registered there up to date, asks for discovery domains, answers notices.  Main only.
 */
#ifndef TARGET_ISNS_CLIENT_H
#define TARGET_ISNS_CLIENT_H

#include "target/isns.h"
#include "target/isns_link.h"
#include "target/isns_reg.h"

/* Once, before all others. */
void isns_client_init(struct worker *main_worker, const uint8_t *seed);
/* The client is off: it begins with these servers. */
void isns_client_run(const struct isns_server *server, unsigned n);
/* Takes everything off the server (two seconds at most), then it is off: done(arg), at once when
 * there is nothing to take off. */
void isns_client_leave(void (*done)(void *arg), void *arg);
bool isns_client_is_off(void);
/* Discovery domains are of interest, or no more. */
void isns_client_access(bool on);
/* Targets or portals may have changed: looked at a moment later. */
void isns_client_changed(void);
/* "off", "waiting", "connecting", "registering", "registered"; the server in use or NULL. */
const char *isns_client_state(const struct isns_server **server);

/* isns_client_dd.c: the answer to a query -> the set of node's target, published a moment later.
 * False: it makes no sense; nothing changed. body: behind the status. */
bool isns_client_domains(const char *target, struct cur body);
void isns_client_domains_init(struct worker *main_worker);
/* What was known is no longer held against anybody: access control is off. */
void isns_client_domains_drop(void);

/* isns_client_notice.c: a message that is no answer. On a link of either kind; answers there. */
struct isns_notice {
    bool is_scn;       /* a State Change Notification for `node` came */
    bool self_removed; /* it says that an object of ours is gone */
    struct isns_node *node;
};
void isns_client_notice(const struct isns_reg *r, struct isns_link *l, struct isns_notice *out);

#endif
