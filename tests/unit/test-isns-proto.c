/* SPDX-License-Identifier: BSD-2-Clause */
/* The iSNS wire format (RFC 4171 5, 6): PDUs joined into messages, attributes, requests. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/isns_proto.h"
#include "unit.h"

enum { FIRST = 0x0400, LAST = 0x0800, SERVER = 0x4000, BOTH = SERVER | FIRST | LAST };

/* One PDU as 5 draws it; returns its length. */
static size_t
pdu(uint8_t *to, uint16_t func, uint16_t flags, uint16_t xid, uint16_t seq, const void *p,
    size_t len)
{
    const uint8_t hdr[12] = {0,
                             1,
                             (uint8_t)(func >> 8),
                             (uint8_t)func,
                             (uint8_t)(len >> 8),
                             (uint8_t)len,
                             (uint8_t)(flags >> 8),
                             (uint8_t)flags,
                             (uint8_t)(xid >> 8),
                             (uint8_t)xid,
                             (uint8_t)(seq >> 8),
                             (uint8_t)seq};
    memcpy(to, hdr, sizeof hdr);
    if (len != 0)
        memcpy(to + sizeof hdr, p, len);
    return sizeof hdr + len;
}

/* Feeds all; how many messages came, or the error. */
static int
feed(struct isns_rx *rx, const uint8_t *p, size_t n, size_t step)
{
    int messages = 0;
    while (n != 0) {
        size_t k = n < step ? n : step, used;
        int rc = isns_rx_feed(rx, p, k, &used);
        if (rc < 0)
            return rc;
        messages += rc;
        CU_ASSERT_FATAL(used != 0 || rc != 0);
        p += used;
        n -= used;
    }
    return messages;
}

static void
test_one_pdu(void)
{
    static const uint8_t body[8] = {0, 0, 0, 0, 1, 2, 3, 4};
    uint8_t b[64];
    size_t n = pdu(b, 0x8001, BOTH, 0x1234, 0, body, sizeof body);
    for (size_t step = 1; step <= n; step++) { /* however the bytes come */
        struct isns_rx rx;
        isns_rx_init(&rx, 1024);
        CU_ASSERT(!isns_rx_is_partial(&rx));
        CU_ASSERT(feed(&rx, b, n, step) == 1);
        CU_ASSERT(rx.h.func == 0x8001 && rx.h.xid == 0x1234 && rx.len == 8);
        CU_ASSERT(memcmp(rx.msg, body, 8) == 0);
        CU_ASSERT(!isns_rx_is_partial(&rx));
        CU_ASSERT(feed(&rx, b, 5, 5) == 0 && isns_rx_is_partial(&rx));
        isns_rx_fini(&rx);
    }
}

static void
test_two_in_one(void)
{
    uint8_t b[64];
    struct isns_rx rx;
    size_t used, n = pdu(b, 0x8002, BOTH, 1, 0, "abcd", 4);
    size_t m = n + pdu(b + n, 8, BOTH, 2, 0, NULL, 0);
    isns_rx_init(&rx, 1024);
    CU_ASSERT(isns_rx_feed(&rx, b, m, &used) == 1 && used == n && rx.h.xid == 1 && rx.len == 4);
    CU_ASSERT(isns_rx_feed(&rx, b + n, m - n, &used) == 1 && used == m - n && rx.h.xid == 2);
    CU_ASSERT(rx.len == 0);
    isns_rx_fini(&rx);
}

/* 5.2: first, middle, last; TLVs need not end with a PDU (5.3). */
static void
test_joined(void)
{
    uint8_t b[128];
    size_t n = pdu(b, 0x8002, SERVER | FIRST, 9, 0, "abcd", 4);
    n += pdu(b + n, 0x8002, SERVER, 9, 1, "efghijkl", 8);
    n += pdu(b + n, 0x8002, SERVER, 9, 2, NULL, 0);
    n += pdu(b + n, 0x8002, SERVER | LAST, 9, 3, "mnop", 4);
    for (size_t step = 1; step <= n; step++) {
        struct isns_rx rx;
        isns_rx_init(&rx, 16);
        CU_ASSERT(feed(&rx, b, n, step) == 1);
        CU_ASSERT(rx.len == 16 && memcmp(rx.msg, "abcdefghijklmnop", 16) == 0);
        isns_rx_fini(&rx);
    }
    struct isns_rx rx;
    isns_rx_init(&rx, 12); /* a cap of four bytes less */
    CU_ASSERT(feed(&rx, b, n, n) == -EPROTO && rx.why != NULL);
    isns_rx_fini(&rx);
}

static void
test_broken_streams(void)
{
    static const struct {
        const char *what;
        uint16_t func2, flags1, flags2, xid2, seq1, seq2;
    } cases[] = {
        {"does not begin", 2, SERVER | LAST, LAST, 9, 0, 1},
        {"begins with number 1", 2, SERVER | FIRST, LAST, 9, 1, 2},
        {"gap", 2, SERVER | FIRST, SERVER | LAST, 9, 0, 2},
        {"same number", 2, SERVER | FIRST, SERVER | LAST, 9, 0, 0},
        {"other transaction", 2, SERVER | FIRST, SERVER | LAST, 10, 0, 1},
        {"other function", 3, SERVER | FIRST, SERVER | LAST, 9, 0, 1},
        {"first again", 2, SERVER | FIRST, SERVER | FIRST | LAST, 9, 0, 1},
        {"signed", 2, BOTH | 0x2000, LAST, 9, 0, 1},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t b[64];
        struct isns_rx rx;
        size_t n = pdu(b, 2, cases[i].flags1, 9, cases[i].seq1, "abcd", 4);
        n += pdu(b + n, cases[i].func2, cases[i].flags2, cases[i].xid2, cases[i].seq2, "efgh", 4);
        isns_rx_init(&rx, 1024);
        CU_ASSERT(feed(&rx, b, n, n) == -EPROTO);
        CU_ASSERT(rx.why != NULL);
        isns_rx_fini(&rx);
    }
    uint8_t b[64];
    struct isns_rx rx;
    size_t n = pdu(b, 2, BOTH, 9, 0, "abcdef", 6); /* 5.1.3: a multiple of four */
    isns_rx_init(&rx, 1024);
    CU_ASSERT(feed(&rx, b, n, n) == -EPROTO);
    isns_rx_fini(&rx);
    n = pdu(b, 2, BOTH, 9, 0, "abcd", 4);
    b[1] = 2; /* 5.1.1 */
    isns_rx_init(&rx, 1024);
    CU_ASSERT(feed(&rx, b, n, n) == -EPROTO);
    isns_rx_fini(&rx);
}

/* Empty PDUs without end: the numbers run out (5.1.6). */
static void
test_endless(void)
{
    uint8_t b[16];
    struct isns_rx rx;
    isns_rx_init(&rx, 1024);
    unsigned seq = 0;
    int rc;
    do {
        size_t used;
        (void)pdu(b, 2, seq == 0 ? SERVER | FIRST : SERVER, 9, (uint16_t)seq, NULL, 0);
        rc = isns_rx_feed(&rx, b, 12, &used);
    } while (rc == 0 && ++seq < 70000);
    CU_ASSERT(rc == -EPROTO && seq == 65536);
    isns_rx_fini(&rx);
}

/* A length is a promise: no memory comes of it. */
static void
test_memory_follows_bytes(void)
{
    uint8_t b[64];
    struct isns_rx rx;
    size_t n = pdu(b, 2, BOTH, 9, 0, "abcd", 4);
    b[4] = b[5] = 0xfc;
    isns_rx_init(&rx, 1 << 20);
    CU_ASSERT(feed(&rx, b, n, n) == 0);
    CU_ASSERT(rx.room <= 4096 && isns_rx_is_partial(&rx));
    isns_rx_fini(&rx);
}

static void
test_attributes(void)
{
    static const uint8_t b[] = {0, 0, 0, 32, 0, 0, 0, 4, 'a', 'b', 'c', 0, 0, 0, 0, 33,
                                0, 0, 0, 4,  0, 0, 0, 2, 0,   0,   0,   0, 0, 0, 0, 0};
    struct cur c = cur_init(b, sizeof b);
    struct isns_attr a;
    char text[8];
    uint32_t v;
    CU_ASSERT(isns_attr_next(&c, &a) && a.tag == 32 && a.len == 4);
    CU_ASSERT(isns_attr_text(&a, text, sizeof text) && strcmp(text, "abc") == 0);
    CU_ASSERT(!isns_attr_text(&a, text, 3)); /* no room */
    CU_ASSERT(isns_attr_text(&a, text, 4));
    CU_ASSERT(isns_attr_next(&c, &a) && a.tag == 33 && isns_attr_u32(&a, &v) && v == 2);
    CU_ASSERT(!isns_attr_text(&a, text, sizeof text));
    CU_ASSERT(isns_attr_next(&c, &a) && a.tag == 0 && a.len == 0);
    CU_ASSERT(!isns_attr_u32(&a, &v) && !isns_attr_text(&a, text, sizeof text));
    CU_ASSERT(!isns_attr_next(&c, &a) && cur_ok(&c));
}

static void
test_bad_attributes(void)
{
    static const struct {
        uint8_t b[16];
        size_t n;
    } cases[] = {
        {{0, 0, 0}, 3},
        {{0, 0, 0, 32, 0, 0, 0}, 7},
        {{0, 0, 0, 32, 0, 0, 0, 8, 1, 2, 3, 4}, 12},
        {{0, 0, 0, 32, 0xff, 0xff, 0xff, 0xfc, 1, 2, 3, 4}, 12},
        {{0, 0, 0, 32, 0x80, 0, 0, 0, 1, 2, 3, 4}, 12},
        {{0, 0, 0, 32, 0, 0, 0, 3, 1, 2, 0, 4}, 12},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t *exact = malloc(cases[i].n); /* an over-read is seen */
        struct isns_attr a;
        memcpy(exact, cases[i].b, cases[i].n);
        struct cur c = cur_init(exact, cases[i].n);
        CU_ASSERT(!isns_attr_next(&c, &a) && !cur_ok(&c));
        CU_ASSERT(!isns_attr_next(&c, &a));
        free(exact);
    }
}

static void
test_bad_texts(void)
{
    static const struct {
        const char *v;
        uint32_t n;
    } cases[] = {{"abcd", 4}, {"a\0b\0", 4}, {"abc\0\0\0x\0", 8}};
    char text[64];
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct isns_attr a = {.tag = 32, .len = cases[i].n, .value = (const uint8_t *)cases[i].v};
        CU_ASSERT(!isns_attr_text(&a, text, sizeof text));
    }
    struct isns_attr empty = {.tag = 32, .len = 4, .value = (const uint8_t *)"\0\0\0"};
    CU_ASSERT(isns_attr_text(&empty, text, sizeof text) && text[0] == '\0');
}

/* A request as 5 and 5.6 have it, byte for byte. */
static void
test_request(void)
{
    /* clang-format off */
    static const uint8_t want[] = {
        0, 1, 0, 1, 0, 72, 0x9c, 0, 0xab, 0xcd, 0, 0,        /* client, replace, last, first */
        0, 0, 0, 32, 0, 0, 0, 4, 'i', 'q', 'n', 0,           /* fits with its NUL */
        0, 0, 0, 1, 0, 0, 0, 8, 'a', 'b', 'c', 'd', 0, 0, 0, 0, /* padded */
        0, 0, 0, 0, 0, 0, 0, 0,                              /* delimiter */
        0, 0, 0, 16, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1,
        0, 0, 0, 17, 0, 0, 0, 4, 0, 0, 0x0c, 0xbc,
    };
    /* clang-format on */
    struct sockaddr_storage sa = {.ss_family = AF_INET};
    struct sockaddr_in *in = (void *)&sa;
    struct isns_out o = {0};
    in->sin_port = htons(3260);
    CU_ASSERT_FATAL(inet_pton(AF_INET, "192.0.2.1", &in->sin_addr) == 1);
    isns_out_begin(&o, ISNS_DEV_ATTR_REG, 0xabcd, ISNS_F_REPLACE);
    isns_out_text(&o, ISNS_NAME, "iqn");
    isns_out_text(&o, ISNS_EID, "abcd");
    isns_out_empty(&o, ISNS_DELIMITER);
    isns_out_portal(&o, ISNS_PORTAL_IP, ISNS_PORTAL_PORT, &sa);
    CU_ASSERT(isns_out_end(&o));
    CU_ASSERT(o.len == sizeof want && memcmp(o.p, want, sizeof want) == 0);
    isns_out_fini(&o);
}

static void
test_request_v6_and_limits(void)
{
    struct sockaddr_storage sa = {.ss_family = AF_INET6};
    struct sockaddr_in6 *in6 = (void *)&sa;
    struct isns_out o = {0};
    uint8_t ip[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
    in6->sin6_port = htons(860);
    memcpy(&in6->sin6_addr, ip, sizeof ip);
    isns_out_begin(&o, ISNS_DEV_DEREG, 1, 0);
    isns_out_portal(&o, ISNS_PG_IP, ISNS_PG_PORT, &sa);
    CU_ASSERT(o.len == 12 + 24 + 12 && memcmp(o.p + 20, ip, 16) == 0);
    CU_ASSERT(memcmp(o.p + 36, "\0\0\0\x32\0\0\0\4\0\0\x03\x5c", 12) == 0);
    while (o.len < 12 + ISNS_PDU_MAX)
        isns_out_status(&o, 0);
    CU_ASSERT(isns_out_end(&o));
    isns_out_status(&o, 0);
    CU_ASSERT(!isns_out_end(&o));
    isns_out_fini(&o);
}

static void
test_status_texts(void)
{
    CU_ASSERT_STRING_EQUAL(isns_status_text(0), "successful");
    CU_ASSERT_STRING_EQUAL(isns_status_text(23), "registration feature not supported");
    CU_ASSERT_STRING_EQUAL(isns_status_text(4), "reserved status");
    CU_ASSERT_STRING_EQUAL(isns_status_text(24), "reserved status");
    CU_ASSERT_STRING_EQUAL(isns_status_text(0xffffffff), "reserved status");
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"one PDU", test_one_pdu},
        {"two messages at once", test_two_in_one},
        {"PDUs joined", test_joined},
        {"broken streams", test_broken_streams},
        {"endless", test_endless},
        {"memory follows bytes", test_memory_follows_bytes},
        {"attributes", test_attributes},
        {"bad attributes", test_bad_attributes},
        {"bad texts", test_bad_texts},
        {"request", test_request},
        {"IPv6, limits", test_request_v6_and_limits},
        {"status texts", test_status_texts},
    };
    return UNIT_RUN("isns-proto", tests);
}
