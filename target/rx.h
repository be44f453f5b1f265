/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver: bytes -> complete PDUs.  Five waiting points are its states.  One read fills a
 * buffer that may hold many PDUs; the tail of a large Data-Out is received straight into its
 * task's buffer.  Header digest is checked before anything of the header is believed; data are
 * announced only after their digest was right.
 */
#ifndef TARGET_RX_H
#define TARGET_RX_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/worker.h"
#include "target/pdu.h"

struct buf;
struct conn;
struct task;

enum rx_state { RX_HEADER, RX_AHS, RX_HEADER_DIGEST, RX_DATA, RX_DATA_DIGEST };

/* Why nothing is read; a connection reads when none is set. */
enum rx_pause {
    RX_PAUSE_OUT = 1,   /* the out-queue is too long */
    RX_PAUSE_LOGIN = 2, /* the session is being established, or the connection moves */
    RX_PAUSE_CLOSE = 4, /* for good */
};

struct rx {
    struct ev_io ev;
    struct deferred again; /* bytes are in `in` that were left when reading was paused */
    uint8_t state;         /* enum rx_state */
    uint8_t paused;        /* enum rx_pause bits */
    bool hd, dd;           /* digests in force for this PDU */
    bool lost;             /* the peer closed or the socket failed */
    struct buf *in;        /* receive buffer; NULL while nothing is unread */
    uint32_t head, tail;   /* unread bytes in `in` */
    struct pdu pdu;        /* being assembled */
    const struct pdu_row *row;
    uint8_t ahs[1024];     /* TotalAHSLength is one byte of words: at most 1020 bytes */
    uint32_t fill;         /* bytes of the data segment that are there (with padding) */
    uint32_t want;         /* bytes of the data segment with padding */
    bool bulk;             /* the last data segment was large */
    bool whole;            /* the data segment is waited for in `in` */
    uint8_t *to;           /* else: where it goes; NULL: discarded */
    struct buf *own;       /* memory behind `to` when it is not a task's */
    struct task *task;     /* Data-Out: whose it is; `to` points into its memory */
    uint8_t refuse;        /* Data-Out nobody wants: enum reject_reason; 0: ignored */
    uint32_t crc;
};

void rx_init(struct conn *c);
void rx_fini(struct conn *c);
/* Starts watching the socket (after rx_init, and on the new worker after a move). */
void rx_start(struct conn *c);
/* Reading stops after the current PDU until every reason is taken back. */
void rx_pause(struct conn *c, enum rx_pause why);
void rx_resume(struct conn *c, enum rx_pause why);
/* The task's memory goes away: the rest of a Data-Out on its way there is discarded. */
void rx_forget_task(struct conn *c, struct task *t);
/* For a move between workers, paused at a PDU boundary: unread bytes as malloc'ed memory (NULL:
 * none) on the old worker, and back on the new one. */
uint8_t *rx_detach(struct conn *c, uint32_t *len);
void rx_attach(struct conn *c, uint8_t *bytes, uint32_t len);

#endif
