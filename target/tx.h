/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The out-queue: PDUs whose serial numbers were stamped when queued leave in that order by one
 * gathering send per connection and loop turn.  Small data are copied into the staging buffer,
 * from 32 KiB on they are sent in place: the item then holds a reference on the task.
 */
#ifndef TARGET_TX_H
#define TARGET_TX_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/worker.h"

struct buf;
struct conn;

/* Above this many bytes of copied PDUs a connection reads nothing more until half of them left. */
#define TX_HIGH_WATER (1024u * 1024u)
/* Data of this size and more are worth sending in place. */
#define TX_IN_PLACE (32u * 1024u)

struct tx_item { /* a piece of the queue, from the worker's pool */
    struct list link;
    const uint8_t *p;
    uint32_t len;
    struct buf *stage; /* a reference: copied bytes; NULL: in place */
    void (*release)(void *arg);
    void *arg;
};

struct tx {
    struct ev_io ev;
    struct list queue;       /* struct tx_item */
    uint32_t queued_bytes;   /* copied bytes, unsent */
    uint32_t sent_of_first;  /* bytes of the first item that have left */
    struct buf *stage;       /* where PDUs are being copied to; NULL while the queue is empty */
    uint32_t stage_used;
    struct deferred flush;
    bool blocked; /* the socket takes no more: ev is active */
    bool lost;    /* sending failed */
    void (*drained)(struct conn *c); /* called once when the queue is empty, or NULL */
};

void tx_init(struct conn *c);
void tx_fini(struct conn *c); /* drops the queue; every item's release is called */

/* Queues one PDU. bhs: 48 bytes, DataSegmentLength is set here from len. data: copied when
 * release is NULL; else sent in place and release(arg) is called once, later, when the kernel has
 * it or the connection dropped. Digests and padding as agreed. Flushed before the loop sleeps. */
void tx_pdu(struct conn *c, uint8_t bhs[48], const void *data, uint32_t len,
            void (*release)(void *arg), void *arg);
bool tx_is_empty(const struct conn *c);
/* Calls fn(c) when everything queued so far has left (at once when there is nothing, never when
 * the connection is lost). */
void tx_when_drained(struct conn *c, void (*fn)(struct conn *c));

#endif
