/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The iSNS protocol on the wire (RFC 4171 5, 6): messages out of a byte stream, attributes out of
 * a message, requests into bytes.  No sockets, no state beyond the structs; any thread, one at a
 * time.  What a server sends is read through base/cur.h and bounded by caps of ours, never by
 * lengths of its.
 */
#ifndef TARGET_ISNS_PROTO_H
#define TARGET_ISNS_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/cur.h"

#define ISNS_PORT    3205
#define ISNS_HDR_LEN 12u
#define ISNS_PDU_MAX 65532u /* bytes of payload: 16 bits, a multiple of 4 (5.1.3) */

enum isns_func { /* 4.1.3 */
                 ISNS_DEV_ATTR_REG = 0x0001,
                 ISNS_DEV_ATTR_QRY = 0x0002,
                 ISNS_DEV_DEREG = 0x0004,
                 ISNS_SCN_REG = 0x0005,
                 ISNS_SCN = 0x0008,
                 ISNS_ESI = 0x000d,
                 ISNS_RSP = 0x8000, /* added in responses */
};

enum isns_flag { /* 5.1.4 */
                 ISNS_F_CLIENT = 0x8000,
                 ISNS_F_SERVER = 0x4000,
                 ISNS_F_AUTH = 0x2000,
                 ISNS_F_REPLACE = 0x1000,
                 ISNS_F_LAST = 0x0800,
                 ISNS_F_FIRST = 0x0400,
};

enum isns_status { /* 5.4, those that are acted upon */
                   ISNS_OK = 0,
                   ISNS_SOURCE_UNKNOWN = 6,
                   ISNS_NO_SUCH_ENTRY = 9,
                   ISNS_NOT_SUPPORTED = 15,
                   ISNS_ESI_NOT_AVAILABLE = 21,
                   ISNS_FEATURE_NOT_SUPPORTED = 23,
};

enum isns_tag { /* 6.1 */
                ISNS_DELIMITER = 0,
                ISNS_EID = 1,
                ISNS_ENTITY_PROTOCOL = 2,
                ISNS_TIMESTAMP = 4,
                ISNS_REGISTRATION_PERIOD = 6,
                ISNS_PORTAL_IP = 16,
                ISNS_PORTAL_PORT = 17,
                ISNS_ESI_INTERVAL = 19,
                ISNS_ESI_PORT = 20,
                ISNS_SCN_PORT = 23,
                ISNS_NAME = 32,
                ISNS_NODE_TYPE = 33,
                ISNS_ALIAS = 34,
                ISNS_SCN_BITMAP = 35,
                ISNS_PG_NAME = 48,
                ISNS_PG_IP = 49,
                ISNS_PG_PORT = 50,
                ISNS_PG_TAG = 51,
};

enum isns_node_type { ISNS_TYPE_TARGET = 1, ISNS_TYPE_INITIATOR = 2 }; /* 6.4.2 */

enum isns_scn_bit { /* 6.4.4; bit 31 is the least significant */
                    ISNS_SCN_INITIATOR_AND_SELF = 0x80,
                    ISNS_SCN_REMOVED = 0x10,
                    ISNS_SCN_ADDED = 0x08,
                    ISNS_SCN_UPDATED = 0x04,
};

#define ISNS_PROTOCOL_ISCSI 2u /* 6.2.2 */

const char *isns_status_text(uint32_t status);

/* --- messages out of a stream ----------------------------------------------------------------- */

struct isns_hdr {
    uint16_t version, func, len, flags, xid, seq;
};

/* Joins the PDUs of a message (5.2). One message at a time: PDUs of another one in between are an
 * error, as are gaps. */
struct isns_rx {
    size_t cap; /* most bytes of one message */
    uint8_t hdr[ISNS_HDR_LEN];
    unsigned hdr_len;  /* bytes of the header that are there */
    uint32_t left;     /* payload bytes of the current PDU that are missing */
    struct isns_hdr h; /* of the current PDU; of a whole message: its func and xid */
    bool in_pdu, in_msg, whole;
    uint8_t *msg; /* payloads so far, without headers */
    size_t len, room;
    const char *why; /* of the error */
};

void isns_rx_init(struct isns_rx *rx, size_t cap);
void isns_rx_fini(struct isns_rx *rx);
/* Takes bytes up to the end of one message at most; *used: how many. 1: a message is whole (h,
 * msg, len, until the next call); 0: all bytes are taken; -EPROTO: the stream makes no sense, and
 * nothing that follows would; rx->why says what. */
int isns_rx_feed(struct isns_rx *rx, const uint8_t *p, size_t n, size_t *used);
/* Something of a message was received, and not all of it. */
bool isns_rx_is_partial(const struct isns_rx *rx);

/* --- attributes ------------------------------------------------------------------------------- */

struct isns_attr {
    uint32_t tag, len;
    const uint8_t *value; /* in the message */
};

/* The next attribute; false at the end, or when there is no whole one (then cur_ok is false). */
bool isns_attr_next(struct cur *c, struct isns_attr *a);
/* A NUL-terminated text (6.1) with its padding, of at most size - 1 bytes. False: not that. */
bool isns_attr_text(const struct isns_attr *a, char *out, size_t size);
bool isns_attr_u32(const struct isns_attr *a, uint32_t *v);

/* --- messages to send --------------------------------------------------------------------------
 */

/* A message in one PDU; grows. Longer than ISNS_PDU_MAX: isns_out_end fails. */
struct isns_out {
    uint8_t *p;
    size_t len, room;
};

void isns_out_begin(struct isns_out *o, uint16_t func, uint16_t xid, uint16_t flags);
void isns_out_raw(struct isns_out *o, const void *p, size_t len);
void isns_out_status(struct isns_out *o, uint32_t status);
void isns_out_attr(struct isns_out *o, uint32_t tag, const void *value, uint32_t len);
void isns_out_empty(struct isns_out *o, uint32_t tag); /* zero length: asks, or delimits */
void isns_out_u32(struct isns_out *o, uint32_t tag, uint32_t v);
void isns_out_text(struct isns_out *o, uint32_t tag, const char *s);
/* Address (IPv4 as IPv4-mapped, 6.3.1) and TCP port of sa. */
void isns_out_portal(struct isns_out *o, uint32_t ip_tag, uint32_t port_tag,
                     const struct sockaddr_storage *sa);
/* Sets the length. False: too long for a PDU. */
bool isns_out_end(struct isns_out *o);
void isns_out_fini(struct isns_out *o);

#endif
