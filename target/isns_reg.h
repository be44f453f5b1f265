/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the iSNS client keeps of targets and portals: what is wanted on the server, what it is known
 * to have, and the requests that bring one to the other.  Main only.
 */
#ifndef TARGET_ISNS_REG_H
#define TARGET_ISNS_REG_H

#include "target/isns_proto.h"
#include "target/target.h"

#define ISNS_PORTALS_MAX 64u /* registered; more are left out, and said */

/* One registered object, or one that is to be. The server has it as far as we know: `known`; as it
 * is now: `fresh`. */
struct isns_object {
    bool wanted, known, fresh;
    bool sent;    /* part of the request under way */
    bool changed; /* since it was put there */
};

struct isns_node {
    struct isns_object o;
    char name[ISCSI_NAME_MAX + 1];
    char alias[256];
    struct portal_id *binds; /* as in struct tgt_node; its own copy */
    unsigned nbinds;
    bool scn;   /* registered for state change notifications, or refused */
    bool stale; /* its discovery domains are to be asked for */
};

struct isns_portal {
    struct isns_object o;
    struct portal_id id;          /* of the portal it stands for; several may stand for one */
    struct sockaddr_storage addr; /* never a wildcard */
    bool translated;              /* an address that somebody else passes on to us */
};

struct isns_reg {
    char eid[64];
    struct isns_node *nodes; /* sorted by name */
    unsigned nnodes;
    struct isns_portal portals[2 * ISNS_PORTALS_MAX];
    unsigned nportals;
    /* What requests are made with. */
    uint16_t notice_port4, notice_port6; /* of SCN and ESI; 0: none */
    bool no_esi, no_pg;                  /* this server will not have them */
};

/* The parts of a target that are registered. */
struct isns_want {
    const char *name, *alias;
    const struct portal_id *binds;
    unsigned nbinds;
};

void isns_reg_init(struct isns_reg *r, const uint8_t seed[32]);
void isns_reg_fini(struct isns_reg *r);
/* What is there now; nodes in any order, names unique. */
void isns_reg_want(struct isns_reg *r, const struct isns_want *nodes, unsigned nnodes,
                   const struct node_portal *portals, unsigned nportals);
/* Out of the portals as they are bound: addresses that a peer can use. Wildcards stand for the
 * host's addresses; what is advertised stands for its portal when it is a number (a name has no
 * place in iSNS: left out). Loopback only when the server is reached over it (`here`: our end), as
 * link local IPv4; IPv6 link-local never. At most max; more is how many there would have been. */
unsigned isns_reg_addresses(const struct node_portal *bound, unsigned nbound,
                            const struct sockaddr_storage *here, struct node_portal *out,
                            unsigned max);
/* The server is a new one, or lost all. */
void isns_reg_forget(struct isns_reg *r);
/* All must be sent again, as an update. */
void isns_reg_refresh(struct isns_reg *r);

struct isns_node *isns_reg_find(const struct isns_reg *r, const char *name);
/* A node the server knows (as source of requests), else one that is wanted, else NULL. */
const struct isns_node *isns_reg_source(const struct isns_reg *r);
bool isns_reg_has_portal(const struct isns_reg *r, const uint8_t ip[16], uint32_t port);

bool isns_reg_need_register(const struct isns_reg *r);
bool isns_reg_need_deregister(const struct isns_reg *r);
bool isns_reg_is_known(const struct isns_reg *r); /* the server has something of ours */
unsigned isns_reg_known_nodes(const struct isns_reg *r);
unsigned isns_reg_known_portals(const struct isns_reg *r);

/* The body of a request (after isns_out_begin); marks what it carries. DevAttrReg carries as much
 * as fits in one PDU: ask again until nothing is needed. */
void isns_reg_put_register(struct isns_reg *r, struct isns_out *o);
void isns_reg_put_deregister(struct isns_reg *r, struct isns_out *o);
void isns_reg_put_leave(struct isns_reg *r, struct isns_out *o);
/* Its answer: what was marked is on the server now / is gone from it / is as before. */
void isns_reg_registered(struct isns_reg *r);
void isns_reg_deregistered(struct isns_reg *r);
void isns_reg_refused(struct isns_reg *r);

#endif
