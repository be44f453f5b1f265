/* SPDX-License-Identifier: BSD-2-Clause */
/* SendTargets (RFC 7143 Appendix C) and text exchanges in full feature phase (6.4, 11.10, 11.11).
 */
#include "config.h"

#include "tests/unit/login_fake.h"
#include "tests/unit/unit.h"

#define F    0x80
#define C    0x40
#define NONE TAG_RESERVED

#define A         "iqn.2001-04.com.example:a"
#define B         "iqn.2001-04.com.example:b"
#define GUARDED   "iqn.2001-04.com.example:guarded"
#define INITIATOR "iqn.2001-04.com.example:i"

static enum verdict
send_bytes(uint8_t flags, uint32_t itt, uint32_t ttt, const void *text, size_t len)
{
    struct pdu pdu = {
        .opcode = OPC_TEXT_REQ,
        .flags = flags,
        .itt = itt,
        .ttt = ttt,
        .data_len = (uint32_t)len,
    };
    pdu.data = xmalloc(len ? len : 1);
    if (len != 0)
        memcpy(pdu.data, text, len);
    unsigned before = fake.sent;
    fake.c.reject_reason = 0;
    enum verdict v = text_pdu(&fake.c, &pdu);
    CU_ASSERT_EQUAL(fake.sent - before, v == KEEP ? 1 : 0);
    free(pdu.data);
    return v;
}

#define SEND(flags, ttt, literal) send_bytes((flags), 5, (ttt), (literal), sizeof(literal) - 1)

static uint32_t
ttt(void)
{
    return get_be32(fake.bhs + 20);
}

/* A whole answer: F=1, TTT reserved. */
static bool
is_final(void)
{
    return fake.bhs[0] == 0x24 && fake.bhs[1] == F && ttt() == NONE && get_be32(fake.bhs + 16) == 5;
}

static void
discover(const char *peer, const char *local)
{
    (void)fake_connect(peer, local);
    fake_session(INITIATOR, NULL);
}

static void
log_in(void)
{
    (void)fake_connect("192.0.2.9", "192.0.2.1");
    fake_session(INITIATOR, &fake.nodes[0]);
}

static unsigned
count(const char *pair)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < fake.len; i += (uint32_t)strlen((char *)fake.text + i) + 1)
        n += strcmp((char *)fake.text + i, pair) == 0;
    return n;
}

static unsigned
count_key(const char *key)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < fake.len; i += (uint32_t)strlen((char *)fake.text + i) + 1)
        n += strncmp((char *)fake.text + i, key, strlen(key)) == 0;
    return n;
}

static void
portals(const char *one, const char *two)
{
    fake.set.nportals = 0;
    fake_portal(one, 3260);
    if (two != NULL)
        fake_portal(two, 3261);
}

static void
test_all(void)
{
    portals("192.0.2.1", "2001:db8::1");
    discover("192.0.2.9", "192.0.2.1");
    CU_ASSERT_EQUAL(SEND(F, NONE, "SendTargets=All\0"), KEEP);
    CU_ASSERT(is_final());
    CU_ASSERT_EQUAL(strcmp((char *)fake.text, "TargetName=" A), 0);
    CU_ASSERT_EQUAL(count_key("TargetName="), 2); /* neither the guarded nor the offline one */
    CU_ASSERT_EQUAL(count("TargetName=" B), 1);
    CU_ASSERT_EQUAL(count("TargetAddress=192.0.2.1:3260,1"), 2);
    CU_ASSERT_EQUAL(count("TargetAddress=[2001:db8::1]:3261,1"), 2);
    CU_ASSERT_EQUAL(count_key("Target"), 6); /* and no other key */
    CU_ASSERT_EQUAL(get_be32(fake.bhs + 28), 100);
}

static void
test_access(void)
{
    portals("192.0.2.1", NULL);
    discover("10.1.1.1", "192.0.2.1");
    (void)SEND(F, NONE, "SendTargets=All\0");
    CU_ASSERT_EQUAL(count("TargetName=" GUARDED), 1);
    (void)SEND(F, NONE, "SendTargets=" GUARDED "\0");
    CU_ASSERT_EQUAL(count_key("TargetName="), 1);
    discover("192.0.2.9", "192.0.2.1");
    (void)SEND(F, NONE, "SendTargets=" GUARDED "\0");
    CU_ASSERT(is_final());
    CU_ASSERT_EQUAL(fake.len, 0);
}

static void
test_by_name(void)
{
    discover("192.0.2.9", "192.0.2.1");
    (void)SEND(F, NONE, "SendTargets=iqn.2001-04.com.EXAMPLE:b\0");
    CU_ASSERT(is_final());
    CU_ASSERT_EQUAL(count_key("TargetName="), 1);
    CU_ASSERT_EQUAL(count("TargetName=" B), 1);
    (void)SEND(F, NONE, "SendTargets=iqn.2001-04.com.example:none\0");
    CU_ASSERT(is_final() && fake.len == 0);
    (void)SEND(F, NONE, "SendTargets=iqn.2001-04.com.example:off\0");
    CU_ASSERT(is_final() && fake.len == 0);
    (void)SEND(F, NONE, "SendTargets=\0");
    CU_ASSERT_EQUAL(count("SendTargets=Reject"), 1);
}

static void
test_long_name(void)
{
    char text[7100];
    memset(text, 'n', sizeof text);
    memcpy(text, "SendTargets=", 12);
    text[7012] = '\0';
    discover("192.0.2.9", "192.0.2.1");
    CU_ASSERT_EQUAL(send_bytes(F, 5, NONE, text, 7013), KEEP);
    CU_ASSERT(is_final() && fake.len == 0);
}

static void
test_normal_session(void)
{
    portals("192.0.2.1", NULL);
    log_in();
    (void)SEND(F, NONE, "SendTargets=\0");
    CU_ASSERT(is_final());
    CU_ASSERT_EQUAL(count("TargetName=" A), 1);
    CU_ASSERT_EQUAL(count("TargetAddress=192.0.2.1:3260,1"), 1);
    CU_ASSERT_EQUAL(count_key("TargetName="), 1);
    (void)SEND(F, NONE, "SendTargets=" A "\0");
    CU_ASSERT_EQUAL(count("TargetName=" A), 1);
    (void)SEND(F, NONE, "SendTargets=All\0");
    CU_ASSERT_EQUAL(count("SendTargets=Reject"), 1);
    CU_ASSERT_EQUAL(count_key("TargetName="), 0);
    (void)SEND(F, NONE, "SendTargets=" B "\0");
    CU_ASSERT(is_final() && fake.len == 0);
}

/* What a wildcard stands for: the address this connection came to, first. */
static void
test_wildcard(void)
{
    portals("0.0.0.0", "::");
    announce_refresh();
    discover("192.0.2.9", "192.0.2.1");
    (void)SEND(F, NONE, "SendTargets=" A "\0");
    const char *first = fake_value("TargetAddress");
    CU_ASSERT_PTR_NOT_NULL_FATAL(first);
    CU_ASSERT_STRING_EQUAL(first, "192.0.2.1:3260,1");
    CU_ASSERT_EQUAL(count_key("TargetAddress=127."), 0);
    CU_ASSERT_EQUAL(count_key("TargetAddress=[::1]"), 0);
    CU_ASSERT_EQUAL(count_key("TargetAddress=[fe80"), 0);
    CU_ASSERT_EQUAL(count_key("TargetAddress=0.0.0.0"), 0);
    CU_ASSERT_EQUAL(count_key("TargetAddress=[::]"), 0);
}

static void
test_loopback(void)
{
    portals("0.0.0.0", NULL);
    discover("127.0.0.1", "127.0.0.1");
    (void)SEND(F, NONE, "SendTargets=" A "\0");
    CU_ASSERT_EQUAL(count("TargetAddress=127.0.0.1:3260,1"), 1);
    portals("127.0.0.1", "192.0.2.1"); /* bound to loopback: nothing for others */
    discover("192.0.2.9", "192.0.2.1");
    (void)SEND(F, NONE, "SendTargets=" A "\0");
    CU_ASSERT_EQUAL(count_key("TargetAddress="), 1);
    CU_ASSERT_EQUAL(count("TargetAddress=192.0.2.1:3261,1"), 1);
}

static void
test_link_local(void)
{
    portals("::", "fe80::1");
    discover("fe80::9", "fe80::1");
    (void)SEND(F, NONE, "SendTargets=" A "\0");
    CU_ASSERT_EQUAL(count("TargetName=" A), 1);
    CU_ASSERT_EQUAL(count_key("TargetAddress=[fe80"), 0);
    portals("0.0.0.0", NULL); /* a cable between two machines */
    discover("169.254.9.9", "169.254.1.1");
    (void)SEND(F, NONE, "SendTargets=" A "\0");
    CU_ASSERT_EQUAL(count("TargetAddress=169.254.1.1:3260,1"), 1);
}

/* Each address comes with the tag of its group (RFC 7143 13.8, 13.9). A target that is bound to a
 * group is not heard of, and has no address, elsewhere. */
static void
test_groups(void)
{
    struct portal_id two = {.tpgt = 2}, second = {.tpgt = 0, .name = "192.0.2.2:3261"};
    portals("192.0.2.1", "192.0.2.2");
    fake.portals[1].id.tpgt = 2;
    (void)snprintf(fake.portals[1].id.name, sizeof fake.portals[1].id.name, "192.0.2.2:3261");
    discover("192.0.2.9", "192.0.2.1");
    (void)SEND(F, NONE, "SendTargets=" A "\0");
    CU_ASSERT_EQUAL(count_key("TargetAddress="), 2);
    CU_ASSERT_STRING_EQUAL(fake_value("TargetAddress"), "192.0.2.1:3260,1");
    CU_ASSERT_EQUAL(count("TargetAddress=192.0.2.2:3261,2"), 1);
    for (unsigned by_name = 0; by_name < 2; by_name++) {
        fake.nodes[0].binds = by_name ? &second : &two;
        fake.nodes[0].nbinds = 1;
        discover("192.0.2.9", "192.0.2.1");
        (void)SEND(F, NONE, "SendTargets=All\0");
        CU_ASSERT_EQUAL(count("TargetName=" A), 0);
        CU_ASSERT_EQUAL(count("TargetName=" B), 1);
        (void)SEND(F, NONE, "SendTargets=" A "\0");
        CU_ASSERT(is_final() && fake.len == 0);
        discover("192.0.2.9", "192.0.2.2");
        fake.c.via = fake.portals[1].id;
        (void)SEND(F, NONE, "SendTargets=" A "\0");
        CU_ASSERT_EQUAL(count_key("TargetAddress="), 1);
        CU_ASSERT_EQUAL(count("TargetAddress=192.0.2.2:3261,2"), 1);
    }
    fake.nodes[0].binds = NULL;
    fake.nodes[0].nbinds = 0;
}

/* A portal's advertised address stands in its place, also a wildcard's; that of the portal the
 * connection came by goes first. */
static void
test_advertise(void)
{
    portals("192.0.2.1", "0.0.0.0");
    announce_refresh();
    (void)snprintf(fake.portals[1].advertise, sizeof fake.portals[1].advertise,
                   "san.example.com:13260");
    fake.portals[1].id.tpgt = 3;
    discover("192.0.2.9", "10.0.0.1");
    fake.c.local = fake_addr("10.0.0.1", 3261);
    fake.c.via.tpgt = 3;
    (void)SEND(F, NONE, "SendTargets=" A "\0");
    CU_ASSERT_STRING_EQUAL(fake_value("TargetAddress"), "san.example.com:13260,3");
    CU_ASSERT_EQUAL(count_key("TargetAddress="), 2);
    CU_ASSERT_EQUAL(count("TargetAddress=192.0.2.1:3260,1"), 1);
    fake.portals[0].absent = true; /* nobody could reach it */
    (void)SEND(F, NONE, "SendTargets=" A "\0");
    CU_ASSERT_EQUAL(count_key("TargetAddress="), 1);
    portals("192.0.2.1", NULL);
}

/* Longer than the initiator takes: pieces, which end after whole pairs. */
static void
test_pieces(void)
{
    static char all[65536];
    size_t got = 0;
    unsigned pieces = 0;
    fake.set.nportals = 0;
    portals("192.0.2.1", "2001:db8::1");
    discover("192.0.2.9", "192.0.2.1");
    (void)SEND(F, NONE, "SendTargets=All\0");
    size_t want = fake.len;
    fake.c.p.max_xmit = 64;
    uint32_t first_sn = fake.c.stat_sn;
    (void)SEND(F, NONE, "SendTargets=All\0");
    for (;;) {
        memcpy(all + got, fake.text, fake.len);
        got += fake.len;
        pieces++;
        CU_ASSERT(fake.len <= 64 && fake.text[fake.len - 1] == 0);
        CU_ASSERT_EQUAL(get_be32(fake.bhs + 24), first_sn++);
        if (fake.bhs[1] & F)
            break;
        CU_ASSERT_EQUAL(fake.bhs[1], C);
        CU_ASSERT_NOT_EQUAL(ttt(), NONE);
        CU_ASSERT_EQUAL_FATAL(SEND(F, ttt(), ""), KEEP);
    }
    CU_ASSERT(is_final());
    CU_ASSERT_EQUAL(got, want);
    CU_ASSERT(pieces > 2);
    CU_ASSERT_EQUAL(SEND(F, 1, ""), REJECT); /* it is over */
}

static void
test_not_final(void)
{
    portals("192.0.2.1", NULL);
    discover("192.0.2.9", "192.0.2.1");
    (void)SEND(0, NONE, "SendTargets=All\0");
    CU_ASSERT_EQUAL(fake.bhs[1], 0);
    CU_ASSERT_NOT_EQUAL(ttt(), NONE);
    CU_ASSERT_EQUAL(count_key("TargetName="), 2);
    (void)SEND(F, ttt(), "");
    CU_ASSERT(is_final() && fake.len == 0);
}

static void
test_empty(void)
{
    log_in();
    (void)SEND(F, NONE, "");
    CU_ASSERT(is_final() && fake.len == 0);
}

static void
test_joined(void)
{
    log_in();
    (void)SEND(C, NONE, "SendTar");
    CU_ASSERT_EQUAL(fake.len, 0);
    CU_ASSERT_EQUAL(fake.bhs[1], 0);
    uint32_t tag = ttt();
    CU_ASSERT_NOT_EQUAL(tag, NONE);
    (void)SEND(F, tag, "gets=\0");
    CU_ASSERT(is_final());
    CU_ASSERT_EQUAL(count("TargetName=" A), 1);
}

static void
test_tags(void)
{
    log_in();
    CU_ASSERT_EQUAL(SEND(F, 0, "SendTargets=\0"), REJECT); /* no exchange is open */
    CU_ASSERT_EQUAL(SEND(F, 77, "SendTargets=\0"), REJECT);
    CU_ASSERT_EQUAL(fake.c.reject_reason, REJ_INVALID_FIELD);
    (void)SEND(C, NONE, "SendTar");
    uint32_t tag = ttt();
    CU_ASSERT_EQUAL(SEND(F, tag + 1, "gets=\0"), REJECT);
    CU_ASSERT_EQUAL(send_bytes(F, 6, tag, "gets=\0", 6), REJECT); /* another ITT */
    CU_ASSERT_EQUAL(SEND(F, tag, "gets=\0"), KEEP);               /* the exchange is still there */
    CU_ASSERT(is_final());
    (void)SEND(C, NONE, "SendTar"); /* forgotten by the next */
    CU_ASSERT_EQUAL(SEND(F, NONE, "X-a=b\0"), KEEP);
    CU_ASSERT(is_final());
    CU_ASSERT_EQUAL(count("X-a=NotUnderstood"), 1);
    CU_ASSERT_EQUAL(SEND(F | C, NONE, "X-a=b\0"), REJECT);
    CU_ASSERT_EQUAL(fake.c.reject_reason, REJ_PROTOCOL);
    CU_ASSERT_EQUAL(send_bytes(F, NONE, NONE, "", 0), REJECT);
}

static void
test_bounded(void)
{
    static char piece[8000];
    memset(piece, 'A', sizeof piece);
    log_in();
    uint32_t tag = NONE;
    unsigned i = 0;
    for (; i < 100 && send_bytes(C, 5, tag, piece, sizeof piece) == KEEP; i++)
        tag = ttt();
    CU_ASSERT(i > 0 && i <= 8);
    CU_ASSERT_PTR_NULL(fake.c.text.in);
    CU_ASSERT_EQUAL(SEND(F, NONE, ""), KEEP);
}

static void
test_max_recv(void)
{
    log_in();
    (void)SEND(F, NONE, "MaxRecvDataSegmentLength=4096\0");
    CU_ASSERT(is_final() && fake.len == 0);
    CU_ASSERT_EQUAL(fake.c.p.max_xmit, 4096);
    (void)SEND(F, NONE, "MaxRecvDataSegmentLength=511\0");
    CU_ASSERT_EQUAL(count("MaxRecvDataSegmentLength=Reject"), 1);
    CU_ASSERT_EQUAL(fake.c.p.max_xmit, 4096);
    (void)SEND(0, NONE, "MaxRecvDataSegmentLength=512\0");
    CU_ASSERT_EQUAL(fake.c.p.max_xmit, 4096); /* in force when the exchange ends */
    (void)SEND(F, ttt(), "");
    CU_ASSERT_EQUAL(fake.c.p.max_xmit, 512);
    (void)SEND(0, NONE, "MaxRecvDataSegmentLength=8192\0");
    (void)SEND(F, NONE, ""); /* abandoned */
    CU_ASSERT_EQUAL(fake.c.p.max_xmit, 512);
}

static void
test_leading_only(void)
{
    log_in();
    (void)SEND(F, NONE, "MaxConnections=2\0HeaderDigest=CRC32C\0ErrorRecoveryLevel=1\0");
    CU_ASSERT(is_final());
    CU_ASSERT_EQUAL(count("MaxConnections=Reject"), 1);
    CU_ASSERT_EQUAL(count("HeaderDigest=Reject"), 1);
    CU_ASSERT_EQUAL(count("ErrorRecoveryLevel=Reject"), 1);
    CU_ASSERT_FALSE(fake.c.p.header_digest);
}

static void
test_malformed(void)
{
    log_in();
    CU_ASSERT_EQUAL(SEND(F, NONE, "SendTargets"), REJECT);
    CU_ASSERT_EQUAL(SEND(F, NONE, "=x\0"), REJECT);
    CU_ASSERT_EQUAL(SEND(F, NONE, "\0\0\0\0\0\0"), REJECT);
    CU_ASSERT_FALSE(fake.c.text.open);
    CU_ASSERT_EQUAL(SEND(F, NONE, ""), KEEP);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"All", test_all},
        {"access", test_access},
        {"by name", test_by_name},
        {"long name", test_long_name},
        {"normal session", test_normal_session},
        {"wildcard", test_wildcard},
        {"loopback", test_loopback},
        {"link-local", test_link_local},
        {"portal groups", test_groups},
        {"advertise", test_advertise},
        {"pieces", test_pieces},
        {"not final", test_not_final},
        {"empty", test_empty},
        {"joined", test_joined},
        {"tags", test_tags},
        {"bounded", test_bounded},
        {"MaxRecvDataSegmentLength", test_max_recv},
        {"leading-only", test_leading_only},
        {"malformed", test_malformed},
    };
    fake_begin();
    (void)fake_node(A, "ALL");
    (void)fake_node(B, "ALL");
    (void)fake_node(GUARDED, "10.0.0.0/8");
    fake_node("iqn.2001-04.com.example:off", "ALL")->offline = true;
    int rc = UNIT_RUN("discovery", tests);
    fake_end();
    return rc;
}
