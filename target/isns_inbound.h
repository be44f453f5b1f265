/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that an iSNS server makes to its client, for State Change Notifications and Entity
 * Status Inquiries (RFC 4171 5.6.5.8, 5.6.5.13).  Main only.
 */
#ifndef TARGET_ISNS_INBOUND_H
#define TARGET_ISNS_INBOUND_H

#include "target/isns_link.h"

/* Listens on ports the system chooses, on all addresses: a server may come to any portal. allowed:
 * is this peer one of our servers? Others are turned away. message: as isns_link_ops. */
void isns_inbound_start(struct worker *w, bool (*allowed)(const struct sockaddr_storage *peer),
                        void (*message)(struct isns_link *l));
void isns_inbound_stop(void);
/* 0: none. */
uint16_t isns_inbound_port(int family);

#endif
