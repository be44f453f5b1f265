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

#include "target/pdu.h"

struct conn;
struct buf;

enum rx_state { RX_HEADER, RX_AHS, RX_HEADER_DIGEST, RX_DATA, RX_DATA_DIGEST };

struct rx {
    struct ev_io ev;
    uint8_t state; /* enum rx_state */
    bool paused;   /* nothing is read: login being established, out-queue too long, memory */
    struct buf *in; /* receive buffer */
    uint32_t head, tail; /* unread bytes in `in` */
    struct pdu pdu;      /* being assembled */
    uint8_t ahs[1024];   /* TotalAHSLength is one byte of words: at most 1020 bytes */
    uint32_t fill;       /* bytes of the current state's part that are there */
    uint8_t *to;         /* where data go; NULL: being discarded */
    uint8_t *own;        /* heap memory when data are neither in `in` nor a task's */
    uint32_t crc;
    uint8_t digest[4];
};

void rx_init(struct conn *c);
void rx_fini(struct conn *c);
/* Reads and delivers until EAGAIN, a fairness bound, or pause. Scheduled by the loop. */
void rx_pause(struct conn *c);
void rx_resume(struct conn *c);

#endif
