/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw engine's connection, and what its two files (login; full feature phase) share. */
#ifndef TESTS_PERF_LOAD_RAW_H
#define TESTS_PERF_LOAD_RAW_H

#include <stddef.h>

#include "tests/perf/load.h"

#define BHS      48
#define DIGEST   4
#define SEG_OURS 262144u /* our MaxRecvDataSegmentLength, as libiscsi's */
#define SYNC_ITT 0xfffffff0u
#define NO_TAG   0xffffffffu

/* Operation codes, RFC 7143 11.2.1.2. */
enum {
    OP_NOP_OUT = 0x00,
    OP_SCSI = 0x01,
    OP_LOGIN = 0x03,
    OP_DATA_OUT = 0x05,
    OP_LOGOUT = 0x06,
    OP_NOP_IN = 0x20,
    OP_SCSI_RSP = 0x21,
    OP_LOGIN_RSP = 0x23,
    OP_DATA_IN = 0x25,
    OP_LOGOUT_RSP = 0x26,
    OP_R2T = 0x31,
    OP_ASYNC = 0x32,
    OP_REJECT = 0x3f,
    IMMEDIATE = 0x40,
    FINAL = 0x80,
};

/* A PDU to send; its data stay where they are. */
struct out {
    uint8_t h[BHS + DIGEST];
    uint8_t digest[DIGEST];
    const uint8_t *data;
    uint32_t len;
};

struct raw {
    int fd;
    /* Agreed on by login. */
    bool hd, dd, immediate_data, initial_r2t;
    uint32_t seg_theirs, first_burst;
    uint32_t cmdsn, max_cmdsn, exp_statsn;
    /* Receiving: a header, then its data as they come. */
    uint8_t *rbuf;
    uint8_t h[BHS + DIGEST];
    unsigned hlen;
    bool in_data;
    uint32_t left, at; /* data and padding still to come; data taken so far */
    uint32_t len;      /* of the data segment, without padding */
    uint8_t digest[DIGEST];
    unsigned dlen;
    uint32_t crc;
    struct io *io;      /* whose data these are */
    uint8_t text[1024]; /* sense data and the like: what is over is dropped */
    /* Sending. */
    struct out *q;
    size_t nq, cap, first, skip; /* PDUs queued; first not wholly sent, bytes of it sent */
    struct io *wait, **wait_end; /* commands that the window keeps back */
    uint8_t form[2][BHS];        /* a READ and a WRITE without what differs */
    /* One command at a time outside the load. */
    struct io sync;
    uint8_t sync_buf[64];
    int sync_status;
    bool logged_out;
    char why[160];
};

/* Connects, logs in, and fills in what was agreed. -1 and a message on stderr otherwise. */
int raw_login(struct session *s, struct raw *r, unsigned idx);

#endif
