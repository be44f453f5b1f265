/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iSNS messages and attributes, see isns_proto.h.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/isns_proto.h"

#define ISNSP_VERSION 1
#define ATTR_HDR      8u
#define MSG_ROOM      4096u /* kept between messages */
#define SEQ_LAST      0xffffu
#define ROOM_FIRST    512u

const char *
isns_status_text(uint32_t status)
{
    static const char *const texts[] = {
        [0] = "successful",
        [1] = "unknown error",
        [2] = "message format error",
        [3] = "invalid registration",
        [5] = "invalid query",
        [6] = "source unknown",
        [7] = "source absent",
        [8] = "source unauthorized",
        [9] = "no such entry",
        [10] = "version not supported",
        [11] = "internal error",
        [12] = "busy",
        [13] = "option not understood",
        [14] = "invalid update",
        [15] = "message not supported",
        [16] = "SCN event rejected",
        [17] = "SCN registration rejected",
        [18] = "attribute not implemented",
        [21] = "ESI not available",
        [22] = "invalid deregistration",
        [23] = "registration feature not supported",
    };
    if (status >= sizeof texts / sizeof *texts || texts[status] == NULL)
        return "reserved status";
    return texts[status];
}

/* --- messages out of a stream ---------------------------------------------------------------- */

void
isns_rx_init(struct isns_rx *rx, size_t cap)
{
    *rx = (struct isns_rx){.cap = cap};
}

void
isns_rx_fini(struct isns_rx *rx)
{
    free(rx->msg);
    *rx = (struct isns_rx){.cap = rx->cap};
}

bool
isns_rx_is_partial(const struct isns_rx *rx)
{
    return !rx->whole && (rx->hdr_len != 0 || rx->in_pdu || rx->in_msg);
}

static int
broken(struct isns_rx *rx, const char *why)
{
    rx->why = why;
    return -EPROTO;
}

static struct isns_hdr
parse_hdr(const uint8_t *p)
{
    struct cur c = cur_init(p, ISNS_HDR_LEN);
    struct isns_hdr h;
    h.version = cur_be16(&c);
    h.func = cur_be16(&c);
    h.len = cur_be16(&c);
    h.flags = cur_be16(&c);
    h.xid = cur_be16(&c);
    h.seq = cur_be16(&c);
    return h;
}

/* A header is whole: does it begin a message, or go on with the one that is open? */
static int
begin_pdu(struct isns_rx *rx)
{
    struct isns_hdr h = parse_hdr(rx->hdr);

    if (h.version != ISNSP_VERSION)
        return broken(rx, "version is not 1");
    if (h.len % 4 != 0)
        return broken(rx, "PDU length is no multiple of 4");
    if (h.flags & ISNS_F_AUTH)
        return broken(rx, "message is signed, which is not understood");
    if (!rx->in_msg) {
        if (!(h.flags & ISNS_F_FIRST) || h.seq != 0)
            return broken(rx, "message does not begin with its first PDU");
        rx->len = 0;
    } else if ((h.flags & ISNS_F_FIRST) || h.func != rx->h.func || h.xid != rx->h.xid ||
               rx->h.seq == SEQ_LAST || h.seq != rx->h.seq + 1) {
        return broken(rx, "PDU does not go on with the message that is open");
    }
    if (rx->len + h.len > rx->cap)
        return broken(rx, "message is too long");
    rx->h = h;
    rx->hdr_len = 0;
    rx->left = h.len;
    rx->in_pdu = rx->in_msg = true;
    return 0;
}

/* Room in steps of what is there, not of what is promised. */
static void
put_payload(struct isns_rx *rx, const uint8_t *p, size_t n)
{
    if (rx->len + n > rx->room) {
        size_t room = rx->room ? rx->room : MSG_ROOM;
        while (room < rx->len + n)
            room *= 2;
        rx->msg = xrealloc(rx->msg, room);
        rx->room = room;
    }
    if (n != 0)
        memcpy(rx->msg + rx->len, p, n);
    rx->len += n;
    rx->left -= (uint32_t)n;
}

int
isns_rx_feed(struct isns_rx *rx, const uint8_t *p, size_t n, size_t *used)
{
    *used = 0;
    if (rx->whole) { /* the one before is over */
        rx->whole = false;
        rx->len = 0;
        if (rx->room > MSG_ROOM) {
            free(rx->msg);
            rx->msg = NULL;
            rx->room = 0;
        }
    }
    for (;;) {
        if (!rx->in_pdu) {
            size_t want = ISNS_HDR_LEN - rx->hdr_len, k = n - *used < want ? n - *used : want;
            if (k != 0)
                memcpy(rx->hdr + rx->hdr_len, p + *used, k);
            rx->hdr_len += (unsigned)k;
            *used += k;
            if (rx->hdr_len < ISNS_HDR_LEN)
                return 0;
            int rc = begin_pdu(rx);
            if (rc < 0)
                return rc;
        }
        size_t k = n - *used < rx->left ? n - *used : rx->left;
        put_payload(rx, p + *used, k);
        *used += k;
        if (rx->left != 0)
            return 0;
        rx->in_pdu = false;
        if (rx->h.flags & ISNS_F_LAST) {
            rx->in_msg = false;
            rx->whole = true;
            return 1;
        }
    }
}

/* --- attributes ------------------------------------------------------------------------------ */

bool
isns_attr_next(struct cur *c, struct isns_attr *a)
{
    if (c->left == 0 || c->bad)
        return false;
    a->tag = cur_be32(c);
    a->len = cur_be32(c);
    a->value = cur_take(c, a->len);
    if (a->len % 4 != 0) /* 5.3: values are padded */
        c->bad = true;
    return cur_ok(c);
}

bool
isns_attr_text(const struct isns_attr *a, char *out, size_t size)
{
    size_t n = strnlen((const char *)a->value, a->len);
    if (n == a->len || n >= size)
        return false;
    for (size_t i = n; i < a->len; i++) {
        if (a->value[i] != 0) /* a NUL inside: two readers would see two texts */
            return false;
    }
    memcpy(out, a->value, n);
    out[n] = '\0';
    return true;
}

bool
isns_attr_u32(const struct isns_attr *a, uint32_t *v)
{
    if (a->len != 4)
        return false;
    *v = get_be32(a->value);
    return true;
}

/* --- messages to send ------------------------------------------------------------------------ */

void
isns_out_raw(struct isns_out *o, const void *p, size_t len)
{
    if (o->len + len > o->room) {
        size_t room = o->room ? o->room : ROOM_FIRST;
        while (room < o->len + len)
            room *= 2;
        o->p = xrealloc(o->p, room);
        o->room = room;
    }
    if (len != 0)
        memcpy(o->p + o->len, p, len);
    o->len += len;
}

static void
put_u16(struct isns_out *o, uint16_t v)
{
    uint8_t b[2];
    put_be16(b, v);
    isns_out_raw(o, b, sizeof b);
}

static void
put_u32(struct isns_out *o, uint32_t v)
{
    uint8_t b[4];
    put_be32(b, v);
    isns_out_raw(o, b, sizeof b);
}

void
isns_out_begin(struct isns_out *o, uint16_t func, uint16_t xid, uint16_t flags)
{
    o->len = 0;
    put_u16(o, ISNSP_VERSION);
    put_u16(o, func);
    put_u16(o, 0); /* isns_out_end */
    put_u16(o, (uint16_t)(flags | ISNS_F_CLIENT | ISNS_F_FIRST | ISNS_F_LAST));
    put_u16(o, xid);
    put_u16(o, 0);
}

void
isns_out_status(struct isns_out *o, uint32_t status)
{
    put_u32(o, status);
}

void
isns_out_attr(struct isns_out *o, uint32_t tag, const void *value, uint32_t len)
{
    static const uint8_t zeros[4];
    uint32_t pad = (4 - len % 4) % 4;

    put_u32(o, tag);
    put_u32(o, len + pad);
    isns_out_raw(o, value, len);
    isns_out_raw(o, zeros, pad);
}

void
isns_out_empty(struct isns_out *o, uint32_t tag)
{
    isns_out_attr(o, tag, NULL, 0);
}

void
isns_out_u32(struct isns_out *o, uint32_t tag, uint32_t v)
{
    uint8_t b[4];
    put_be32(b, v);
    isns_out_attr(o, tag, b, sizeof b);
}

void
isns_out_text(struct isns_out *o, uint32_t tag, const char *s)
{
    isns_out_attr(o, tag, s, (uint32_t)strlen(s) + 1); /* with its NUL, 6.1 */
}

void
isns_out_portal(struct isns_out *o, uint32_t ip_tag, uint32_t port_tag,
                const struct sockaddr_storage *sa)
{
    uint8_t ip[16] = {0};
    uint16_t port;

    if (sa->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)sa;
        memcpy(ip, &in6->sin6_addr, sizeof ip);
        port = ntohs(in6->sin6_port);
    } else {
        const struct sockaddr_in *in = (const void *)sa;
        ip[10] = ip[11] = 0xff;
        memcpy(ip + 12, &in->sin_addr, 4);
        port = ntohs(in->sin_port);
    }
    isns_out_attr(o, ip_tag, ip, sizeof ip);
    isns_out_u32(o, port_tag, port); /* TCP: bit 15 is 0 (6.3.2) */
}

bool
isns_out_end(struct isns_out *o)
{
    size_t len = o->len - ISNS_HDR_LEN;
    if (len > ISNS_PDU_MAX)
        return false;
    put_be16(o->p + 4, (uint16_t)len);
    return true;
}

void
isns_out_fini(struct isns_out *o)
{
    free(o->p);
    *o = (struct isns_out){0};
}
