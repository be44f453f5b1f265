/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One TCP connection of the iSNS client, either way, on main's loop.  Whole messages come out,
 * bytes go in; what cannot be sent at once waits, up to a bound.  Embedded in its owner, which may
 * close it in any callback.  Main only.
 */
#ifndef TARGET_ISNS_LINK_H
#define TARGET_ISNS_LINK_H

#include "base/worker.h"
#include "target/isns_proto.h"

#define ISNS_PARTIAL_MS 10000u /* a message that began must end within this */

struct isns_link;

struct isns_link_ops {
    void (*up)(struct isns_link *l); /* connected (isns_link_connect only) */
    /* A whole message: l->rx.h, .msg, .len; they hold during the call. */
    void (*message)(struct isns_link *l);
    /* It is closed already. why: static text. */
    void (*down)(struct isns_link *l, const char *why);
};

struct isns_link {
    const struct isns_link_ops *ops;
    struct worker *w;
    int fd; /* -1: closed */
    bool connecting;
    bool in_message; /* the callback runs: its message stays until it returns */
    struct ev_io in, out;
    struct isns_rx rx;
    uint8_t *tx; /* unsent: [tx_pos, tx_len) */
    size_t tx_len, tx_pos, tx_room;
    struct worker_timer partial;
};

void isns_link_init(struct isns_link *l, struct worker *w, const struct isns_link_ops *ops,
                    size_t msg_max);
/* 0: `up` or `down` follows, never within the call; or -errno. Whoever calls keeps a deadline. */
int isns_link_connect(struct isns_link *l, const struct sockaddr *addr, socklen_t len);
/* A connection that was accepted; takes over fd (non-blocking). */
void isns_link_adopt(struct isns_link *l, int fd);
/* `down` may come of it, never within the call. */
void isns_link_send(struct isns_link *l, const void *p, size_t len);
/* No callback follows. Closed already: nothing happens. */
void isns_link_close(struct isns_link *l);
static inline bool
isns_link_is_open(const struct isns_link *l)
{
    return l->fd >= 0;
}
/* The address on our side. False: not known. */
bool isns_link_local(const struct isns_link *l, struct sockaddr_storage *sa);

#endif
