/* SPDX-License-Identifier: BSD-2-Clause */
/* The login phase (RFC 7143 6.3, 11.12, 11.13) over a connection without a socket. */
#include "config.h"

#include "target/account.h"
#include "tests/unit/login_fake.h"
#include "tests/unit/unit.h"

#define T                0x80
#define C                0x40
#define STAGES(csg, nsg) (uint8_t)((csg) << 2 | (nsg))

#define TARGET    "iqn.2001-04.com.example:disk"
#define INITIATOR "iqn.2001-04.com.example:i"
#define NAMES     "InitiatorName=" INITIATOR "\0TargetName=" TARGET "\0"

static const uint8_t isid[6] = {0x80, 1, 2, 3, 4, 5};
static uint16_t tsih;
static uint8_t version_min, version_max;
static uint32_t ahs_len;

static enum verdict
send_bytes(uint8_t flags, const void *text, size_t len)
{
    struct pdu pdu = {
        .opcode = OPC_LOGIN_REQ,
        .immediate = true,
        .flags = flags,
        .byte2 = version_max,
        .byte3 = version_min,
        .itt = 0xcafe,
        .ttt = 5u << 16,
        .cmd_sn = 0x100,
        .data_len = (uint32_t)len,
        .ahs_len = ahs_len,
    };
    memcpy(pdu.lun, isid, 6);
    put_be16(pdu.lun + 6, tsih);
    pdu.data = xmalloc(len + 1); /* exact size: ASan sees an over-read */
    if (len != 0)
        memcpy(pdu.data, text, len);
    uint8_t *exact = realloc(pdu.data, len ? len : 1);
    pdu.data = exact;
    enum verdict v = login_pdu(&fake.c, &pdu);
    free(pdu.data);
    return v;
}

#define SEND(flags, literal) send_bytes((uint8_t)(flags), (literal), sizeof(literal) - 1)
#define EMPTY(flags)         send_bytes((uint8_t)(flags), NULL, 0)

static void
fresh(void)
{
    (void)fake_connect("192.0.2.9", "192.0.2.1");
    tsih = 0;
    version_min = version_max = 0;
    ahs_len = 0;
}

static unsigned
status(void)
{
    return get_be16(fake.bhs + 36);
}

static bool
is_response(uint8_t flags)
{
    return fake.bhs[0] == 0x23 && fake.bhs[1] == flags && status() == 0 && !fake.closed;
}

static bool
is_refusal(unsigned want)
{
    bool ok = fake.bhs[0] == 0x23 && fake.bhs[1] == 0 && status() == want && fake.closed &&
              fake.flushed && fake.len == 0 && !fake.established;
    if (!ok)
        fprintf(stderr, "status %04x, wanted %04x\n", status(), want);
    return ok;
}

static bool
has(const char *key, const char *want)
{
    const char *v = fake_value(key);
    return want == NULL ? v == NULL : v != NULL && strcmp(v, want) == 0;
}

/* Says that the session stands. */
static void
establish(void)
{
    CU_ASSERT_TRUE_FATAL(fake.established);
    struct tgt_node *node = fake.res.node;
    fake_session(fake.res.initiator, node);
    login_established(&fake.c, LS_OK);
}

static void
test_two_stages(void)
{
    fresh();
    CU_ASSERT_EQUAL(SEND(T | STAGES(0, 1), NAMES "SessionType=Normal\0AuthMethod=None\0"), KEEP);
    CU_ASSERT(is_response(T | STAGES(0, 1)));
    CU_ASSERT(has("AuthMethod", "None"));
    CU_ASSERT(has("TargetPortalGroupTag", "1"));
    CU_ASSERT(has("MaxRecvDataSegmentLength", NULL));
    CU_ASSERT_EQUAL(memcmp(fake.bhs + 8, isid, 6), 0);
    CU_ASSERT_EQUAL(get_be16(fake.bhs + 14), 0); /* TSIH only in the final response */
    CU_ASSERT_EQUAL(get_be32(fake.bhs + 16), 0xcafe);
    CU_ASSERT_EQUAL(get_be32(fake.bhs + 24), 7);
    CU_ASSERT_EQUAL(get_be32(fake.bhs + 28), 0x100); /* ExpCmdSN: login takes no number */
    CU_ASSERT_EQUAL(fake.bhs[2], 0);
    CU_ASSERT_EQUAL(fake.bhs[3], 0);
    CU_ASSERT_EQUAL(SEND(T | STAGES(1, 3),
                         "HeaderDigest=CRC32C,None\0DataDigest=None\0InitialR2T=No\0"
                         "MaxRecvDataSegmentLength=65536\0MaxBurstLength=1048576\0"),
                    KEEP);
    CU_ASSERT_EQUAL(fake.sent, 1); /* the final response waits for the session */
    establish();
    CU_ASSERT_EQUAL(fake.sent, 2);
    CU_ASSERT(is_response(T | STAGES(1, 3)));
    CU_ASSERT_EQUAL(get_be16(fake.bhs + 14), FAKE_TSIH);
    CU_ASSERT_EQUAL(get_be32(fake.bhs + 24), 8);
    CU_ASSERT_EQUAL(get_be32(fake.bhs + 28), 100);
    CU_ASSERT(has("HeaderDigest", "CRC32C"));
    CU_ASSERT(has("InitialR2T", "No"));
    CU_ASSERT(has("MaxBurstLength", "1048576"));
    CU_ASSERT(has("MaxRecvDataSegmentLength", "262144"));
    CU_ASSERT(has("TargetPortalGroupTag", NULL));
    CU_ASSERT_EQUAL(fake.event, CE_LOGGED_IN);
    CU_ASSERT_PTR_NULL(fake.c.login);
    CU_ASSERT(fake.c.p.header_digest && !fake.c.p.data_digest);
    CU_ASSERT_EQUAL(fake.c.p.max_xmit, 65536);
    CU_ASSERT_EQUAL(fake.c.p.max_recv, 262144);
    CU_ASSERT_EQUAL(fake.res.sp.max_burst, 1048576);
    CU_ASSERT_EQUAL(fake.res.sp.first_burst, 65536);
    CU_ASSERT_FALSE(fake.res.sp.initial_r2t);
    CU_ASSERT_EQUAL(fake.res.cid, 5);
    CU_ASSERT_EQUAL(fake.res.cmd_sn, 0x100);
    CU_ASSERT_EQUAL(fake.c.cid, 5);
}

static void
test_operational_at_once(void)
{
    fresh();
    (void)SEND(T | STAGES(1, 3), NAMES "HeaderDigest=None\0");
    establish();
    CU_ASSERT(is_response(T | STAGES(1, 3)));
    CU_ASSERT(has("TargetPortalGroupTag", "1"));
    CU_ASSERT(has("HeaderDigest", "None"));
    CU_ASSERT_EQUAL(fake.res.sp.max_r2t, 1); /* not negotiated: the defaults of RFC 7143 */
    CU_ASSERT(fake.res.sp.initial_r2t && fake.res.sp.immediate_data);
}

static void
test_security_to_full_feature(void)
{
    fresh();
    (void)SEND(T | STAGES(0, 3), NAMES "AuthMethod=None\0");
    establish();
    CU_ASSERT(is_response(T | STAGES(0, 3)));
}

static void
test_discovery(void)
{
    fresh();
    (void)SEND(T | STAGES(1, 3), "InitiatorName=" INITIATOR "\0SessionType=Discovery\0"
                                 "HeaderDigest=CRC32C,None\0");
    CU_ASSERT_PTR_NULL(fake.res.node);
    CU_ASSERT(fake.res.discovery && fake.c.discovery);
    establish();
    CU_ASSERT(is_response(T | STAGES(1, 3)));
    CU_ASSERT(has("HeaderDigest", "None"));
    CU_ASSERT(has("TargetPortalGroupTag", NULL));
}

static void
test_names_are_folded(void)
{
    fresh();
    (void)SEND(
        T | STAGES(1, 3),
        "TargetName=IQN.2001-04.com.example:DISK\0InitiatorName=iqn.2001-04.COM.example:i\0");
    CU_ASSERT(fake.established);
    CU_ASSERT_STRING_EQUAL(fake.res.initiator, INITIATOR);
}

static void
test_missing_names(void)
{
    fresh();
    (void)SEND(T | STAGES(0, 1), "TargetName=" TARGET "\0");
    CU_ASSERT(is_refusal(0x0207));
    fresh();
    (void)SEND(T | STAGES(0, 1), "InitiatorName=" INITIATOR "\0");
    CU_ASSERT(is_refusal(0x0207));
    fresh();
    (void)SEND(T | STAGES(1, 3), "InitiatorName=" INITIATOR "\0SessionType=Normal\0");
    CU_ASSERT(is_refusal(0x0207));
    fresh();
    (void)EMPTY(T | STAGES(1, 3));
    CU_ASSERT(is_refusal(0x0207));
}

static void
test_target_status(void)
{
    fresh();
    (void)SEND(T | STAGES(0, 1),
               "InitiatorName=" INITIATOR "\0TargetName=iqn.2001-04.com.example:none\0");
    CU_ASSERT(is_refusal(0x0203));
    fresh();
    (void)SEND(T | STAGES(0, 1), "InitiatorName=" INITIATOR "\0TargetName=\xff\xfe\0");
    CU_ASSERT(is_refusal(0x0203));
    fresh();
    (void)SEND(T | STAGES(0, 1),
               "InitiatorName=" INITIATOR "\0TargetName=iqn.2001-04.com.example:guarded\0");
    CU_ASSERT(is_refusal(0x0202));
    fresh();
    (void)SEND(T | STAGES(0, 1),
               "InitiatorName=" INITIATOR "\0TargetName=iqn.2001-04.com.example:off\0");
    CU_ASSERT(is_refusal(0x0301));
    fresh();
    (void)SEND(T | STAGES(0, 1), NAMES "SessionType=nonsense\0");
    CU_ASSERT(is_refusal(0x0209));
    fresh();
    (void)SEND(T | STAGES(0, 1), "InitiatorName=a b\0TargetName=" TARGET "\0");
    CU_ASSERT(is_refusal(0x0200));
}

static bool
is_redirection(unsigned want, const char *to)
{
    return fake.bhs[0] == 0x23 && fake.bhs[1] == 0 && status() == want && fake.closed &&
           fake.flushed && has("TargetAddress", to) && !fake.established;
}

static void
test_redirection(void)
{
    fresh();
    fake.where = (struct redirect_answer){LS_MOVED_PERM, "192.0.2.5:3260", "moved"};
    CU_ASSERT_EQUAL(SEND(T | STAGES(0, 1), NAMES "AuthMethod=CHAP\0"), KEEP);
    CU_ASSERT(is_redirection(0x0102, "192.0.2.5:3260"));
    CU_ASSERT_EQUAL(fake.sent, 1);
    fresh();
    fake.where = (struct redirect_answer){LS_UNAVAILABLE, "", "drained"};
    CU_ASSERT_EQUAL(SEND(T | STAGES(1, 3), NAMES), KEEP);
    CU_ASSERT(is_refusal(0x0301));
    fresh(); /* a discovery session is not asked where it wants to go */
    fake.where = (struct redirect_answer){LS_MOVED_TEMP, "192.0.2.5:3260", "moved"};
    CU_ASSERT_EQUAL(SEND(T | STAGES(1, 3), "InitiatorName=" INITIATOR "\0SessionType=Discovery\0"),
                    KEEP);
    CU_ASSERT(fake.established);
}

/* The login waits for an answer that comes later; nothing is sent and nothing read meanwhile. */
static void
ask_now(void)
{
    fresh();
    fake.where.status = LS_ASKING;
    CU_ASSERT_EQUAL(SEND(T | STAGES(0, 1), NAMES "AuthMethod=None\0"), KEEP);
    CU_ASSERT_PTR_NOT_NULL_FATAL(fake.asked);
    CU_ASSERT(fake.paused && fake.sent == 0 && !fake.closed);
}

static void
test_redirection_asked(void)
{
    struct redirect_answer a = {LS_MOVED_TEMP, "[2001:db8::1]:3260", "moved"};
    ask_now();
    fake.asked(&fake.c, &a);
    CU_ASSERT(is_redirection(0x0101, "[2001:db8::1]:3260"));
    a = (struct redirect_answer){LS_UNAVAILABLE, "", "failed"};
    ask_now();
    fake.asked(&fake.c, &a);
    CU_ASSERT(is_refusal(0x0301));
    a = (struct redirect_answer){LS_OK, "", ""};
    ask_now();
    fake.asked(&fake.c, &a);
    CU_ASSERT(!fake.paused && fake.sent == 1);
    CU_ASSERT(is_response(T | STAGES(0, 1)));
    CU_ASSERT(has("AuthMethod", "None") && has("TargetPortalGroupTag", "1"));
    CU_ASSERT_EQUAL(EMPTY(T | STAGES(1, 3)), KEEP);
    establish();
    CU_ASSERT_EQUAL(fake.event, CE_LOGGED_IN);
    /* Drained while the program ran: that is the word. */
    ask_now();
    fake.where = (struct redirect_answer){LS_MOVED_TEMP, "192.0.2.6:3260", "moved"};
    fake.asked(&fake.c, &a);
    CU_ASSERT(is_redirection(0x0101, "192.0.2.6:3260"));
    /* The connection went away meanwhile. */
    ask_now();
    void (*done)(struct conn *c, const struct redirect_answer *a) = fake.asked;
    login_free(&fake.c);
    CU_ASSERT_PTR_NULL(fake.asked); /* who asks was told */
    fake.c.closing = true;
    done(&fake.c, &a); /* a program that ran already ends nevertheless */
    CU_ASSERT_EQUAL(fake.sent, 0);
}

static void
test_version(void)
{
    fresh();
    version_max = 5;
    (void)SEND(T | STAGES(0, 1), NAMES);
    CU_ASSERT(is_response(T | STAGES(0, 1)));
    CU_ASSERT_EQUAL(fake.bhs[2], 0);
    CU_ASSERT_EQUAL(fake.bhs[3], 0);
    fresh();
    version_min = 1;
    version_max = 1;
    (void)SEND(T | STAGES(0, 1), NAMES);
    CU_ASSERT(is_refusal(0x0205));
}

static void
test_bad_stages(void)
{
    static const uint8_t bad[] = {
        STAGES(2, 3) | T, STAGES(2, 0),     STAGES(0, 2) | T, STAGES(3, 3) | T, STAGES(3, 0),
        STAGES(1, 1) | T, STAGES(1, 0) | T, STAGES(0, 0) | T, STAGES(1, 2) | T,
    };
    for (size_t i = 0; i < sizeof bad; i++) {
        fresh();
        (void)SEND(bad[i], NAMES);
        CU_ASSERT(is_refusal(0x0200));
    }
    fresh(); /* stages never go back */
    (void)SEND(STAGES(1, 0), NAMES);
    CU_ASSERT(is_response(STAGES(1, 0)));
    (void)EMPTY(STAGES(0, 0));
    CU_ASSERT(is_refusal(0x0200));
    fresh();
    (void)SEND(T | C | STAGES(0, 1), NAMES);
    CU_ASSERT(is_refusal(0x0200));
    fresh(); /* NSG is reserved without T */
    (void)SEND(STAGES(0, 2), NAMES);
    CU_ASSERT(is_response(STAGES(0, 0)));
}

static void
test_many_rounds(void)
{
    fresh();
    (void)SEND(STAGES(1, 0), NAMES);
    for (unsigned i = 0; i < 5; i++) {
        (void)EMPTY(STAGES(1, 0));
        CU_ASSERT(is_response(STAGES(1, 0)));
        CU_ASSERT_EQUAL(fake.len, 0);
        CU_ASSERT_EQUAL(get_be32(fake.bhs + 24), 8 + i);
    }
    (void)EMPTY(T | STAGES(1, 3));
    CU_ASSERT(fake.established);
    fresh();
    (void)SEND(STAGES(1, 0), NAMES);
    for (unsigned i = 0; i < 1000 && !fake.closed; i++)
        (void)EMPTY(STAGES(1, 0));
    CU_ASSERT(is_refusal(0x0200));
}

static void
test_continuation(void)
{
    fresh();
    (void)SEND(C | STAGES(0, 0), "InitiatorName=" INITIATOR "\0Sess");
    CU_ASSERT(is_response(STAGES(0, 0)));
    CU_ASSERT_EQUAL(fake.len, 0);
    (void)SEND(C | STAGES(0, 0), "ionType=Disc");
    CU_ASSERT(is_response(STAGES(0, 0)));
    (void)SEND(T | STAGES(0, 1), "overy\0AuthMethod=None\0");
    CU_ASSERT(is_response(T | STAGES(0, 1)));
    CU_ASSERT(has("AuthMethod", "None"));
    (void)SEND(C | STAGES(1, 0), "HeaderDigest=No");
    CU_ASSERT(is_response(STAGES(1, 0)));
    (void)SEND(T | STAGES(1, 3), "ne\0");
    CU_ASSERT(fake.established && fake.res.discovery);
    establish();
    CU_ASSERT(has("HeaderDigest", "None"));
}

static void
test_text_is_bounded(void)
{
    static char text[8192];
    memset(text, 'A', sizeof text);
    fresh();
    for (unsigned i = 0; i < 100 && !fake.closed; i++)
        (void)send_bytes(C | STAGES(0, 0), text, sizeof text);
    CU_ASSERT(is_refusal(0x0200));
    CU_ASSERT(fake.sent <= 9);
    for (size_t len = 8188; len <= 8192; len++) {
        fresh();
        (void)send_bytes(STAGES(0, 0), text, len);
        CU_ASSERT(is_refusal(0x0200));
    }
}

static void
test_header_limits(void)
{
    static char text[8193];
    fresh();
    (void)send_bytes(STAGES(0, 0), text, sizeof text);
    CU_ASSERT(is_refusal(0x0200));
    fresh();
    ahs_len = 4;
    (void)SEND(STAGES(0, 0), NAMES);
    CU_ASSERT(is_refusal(0x0200));
    fresh(); /* TSIH changes in the middle */
    (void)SEND(STAGES(1, 0), NAMES);
    tsih = 9;
    (void)EMPTY(STAGES(1, 0));
    CU_ASSERT(is_refusal(0x0200));
}

/* An answer that does not fit one PDU comes in pieces, C=1 on all but the last, T only there. */
static void
test_long_answer(void)
{
    static char text[8192], all[65536];
    size_t len = sizeof(NAMES) - 1, got = 0;
    memcpy(text, NAMES, len);
    unsigned keys = 0;
    for (; len + 12 < sizeof text; keys++)
        len += (size_t)snprintf(text + len, sizeof text - len, "X-k%u=1", keys) + 1;
    fresh();
    (void)send_bytes(T | STAGES(1, 3), text, len);
    while (fake.bhs[1] & C) {
        CU_ASSERT(is_response(C | STAGES(1, 0)));
        CU_ASSERT(fake.len <= 8192 && fake.len > 0);
        memcpy(all + got, fake.text, fake.len);
        got += fake.len;
        CU_ASSERT_FALSE_FATAL(fake.established);
        (void)EMPTY(T | STAGES(1, 3));
        if (fake.established)
            break;
    }
    establish();
    CU_ASSERT(is_response(T | STAGES(1, 3)));
    memcpy(all + got, fake.text, fake.len);
    got += fake.len;
    unsigned found = 0;
    for (size_t i = 0; i < got; i += strlen(all + i) + 1)
        found += strstr(all + i, "=NotUnderstood") != NULL;
    CU_ASSERT_EQUAL(found, keys);
    fresh(); /* new text before the answer was fetched */
    (void)send_bytes(STAGES(1, 0), text, len);
    CU_ASSERT(fake.bhs[1] & C);
    (void)SEND(STAGES(1, 0), "DataDigest=None\0");
    CU_ASSERT(is_refusal(0x0200));
}

static void
test_repeated_names(void)
{
    fresh();
    (void)SEND(T | STAGES(0, 1), NAMES "SessionType=Normal\0AuthMethod=None\0");
    (void)SEND(T | STAGES(1, 3), NAMES "SessionType=Normal\0HeaderDigest=None\0");
    CU_ASSERT(fake.established);
    fresh();
    (void)SEND(T | STAGES(0, 1), NAMES);
    (void)SEND(T | STAGES(1, 3), "InitiatorName=iqn.2001-04.com.example:other\0");
    CU_ASSERT(is_refusal(0x0200));
}

static void
test_auth_refused(void)
{
    fresh();
    (void)SEND(T | STAGES(0, 1), NAMES "AuthMethod=SRP,KRB5\0");
    CU_ASSERT(is_refusal(0x0201));
    fresh();
    (void)SEND(T | STAGES(0, 1), NAMES "AuthMethod=KRB5,SRP,None\0");
    CU_ASSERT(is_response(T | STAGES(0, 1)));
    CU_ASSERT(has("AuthMethod", "None"));
    /* a target that demands a method which the initiator does not have */
    struct secret *secret = secret_new("sixteen bytes...", 16);
    char err[64];
    struct account *acc = account_new("user", secret, NULL, err, sizeof err);
    fake.nodes[0].accounts = account_set_new(&acc, 1, NULL, CHAP_ALG_ALL, false);
    secret_put(secret);
    account_put(acc);
    fresh();
    (void)SEND(T | STAGES(0, 1), NAMES "AuthMethod=None\0");
    CU_ASSERT(is_refusal(0x0201));
    fresh();
    (void)SEND(T | STAGES(1, 3), NAMES);
    CU_ASSERT(is_refusal(0x0201));
    fresh();
    (void)SEND(T | STAGES(0, 1), NAMES);
    CU_ASSERT(is_refusal(0x0201));
    fresh();
    (void)SEND(T | STAGES(0, 3), NAMES);
    CU_ASSERT(is_refusal(0x0201));
    login_free(&fake.c);
    account_set_put(fake.nodes[0].accounts);
    fake.nodes[0].accounts = NULL;
}

/* The target's own proposals hold the transit back once, and never for ever. */
static void
test_proposals(void)
{
    fake.nodes[0].keys.v[KEY_IMMEDIATE_DATA] = 0;
    fresh();
    (void)SEND(T | STAGES(1, 3), NAMES);
    CU_ASSERT_FALSE(fake.established);
    CU_ASSERT(is_response(STAGES(1, 0)));
    CU_ASSERT(has("ImmediateData", "No"));
    (void)SEND(T | STAGES(1, 3), "ImmediateData=No\0");
    CU_ASSERT(fake.established);
    CU_ASSERT_FALSE(fake.res.sp.immediate_data);
    fresh();
    (void)SEND(T | STAGES(1, 3), NAMES);
    (void)EMPTY(T | STAGES(1, 3)); /* deaf */
    CU_ASSERT(fake.established);
    CU_ASSERT(fake.res.sp.immediate_data);
    fake.nodes[0].keys.v[KEY_IMMEDIATE_DATA] = 1;
}

static void
test_header_digest_policy(void)
{
    fake.nodes[0].keys.v[KEY_HEADER_DIGEST] = DIGEST_CRC32C;
    fresh();
    (void)SEND(T | STAGES(1, 3), NAMES "HeaderDigest=None\0");
    CU_ASSERT(is_refusal(0x0200));
    fresh();
    (void)SEND(T | STAGES(1, 3), NAMES);
    CU_ASSERT(has("HeaderDigest", "CRC32C"));
    (void)EMPTY(T | STAGES(1, 3));
    CU_ASSERT(is_refusal(0x0200));
    fake.nodes[0].keys.v[KEY_HEADER_DIGEST] = DIGEST_NONE | DIGEST_CRC32C;
}

static void
test_alias(void)
{
    (void)snprintf(fake.nodes[0].alias, sizeof fake.nodes[0].alias, "Backup disk");
    fresh();
    (void)SEND(T | STAGES(0, 1), NAMES "InitiatorAlias=mac\0");
    CU_ASSERT(has("TargetAlias", "Backup disk"));
    CU_ASSERT(has("InitiatorAlias", NULL));
    (void)EMPTY(T | STAGES(1, 3));
    CU_ASSERT_STRING_EQUAL(fake.res.initiator_alias, "mac");
    fake.nodes[0].alias[0] = '\0';
}

static void
test_session_refused(void)
{
    fresh();
    tsih = 0x7abc;
    (void)SEND(T | STAGES(1, 3), NAMES);
    CU_ASSERT_EQUAL(fake.res.tsih, 0x7abc);
    fake.established = false;
    login_established(&fake.c, LS_NO_SESSION);
    CU_ASSERT(is_refusal(0x020a));
    CU_ASSERT_EQUAL(get_be16(fake.bhs + 14), 0x7abc);
    CU_ASSERT_NOT_EQUAL(fake.event, CE_LOGGED_IN);
}

static void
test_foreign_pdu(void)
{
    struct pdu pdu = {.opcode = OPC_NOP_OUT, .itt = 77};
    fresh();
    CU_ASSERT_EQUAL(login_foreign_pdu(&fake.c, &pdu), DROP_CONN); /* before any login */
    CU_ASSERT_EQUAL(fake.sent, 0);
    fresh();
    (void)SEND(STAGES(1, 0), NAMES);
    (void)login_foreign_pdu(&fake.c, &pdu);
    CU_ASSERT(is_refusal(0x020b));
    CU_ASSERT_EQUAL(get_be32(fake.bhs + 16), 77);
}

/* Nothing more is heard after a refusal, nothing while the session is being made. */
static void
test_after_the_end(void)
{
    fresh();
    (void)EMPTY(T | STAGES(1, 3));
    CU_ASSERT(is_refusal(0x0207));
    (void)SEND(T | STAGES(1, 3), NAMES);
    CU_ASSERT_EQUAL(fake.sent, 1);
    CU_ASSERT_FALSE(fake.established);
    fresh();
    (void)SEND(T | STAGES(1, 3), NAMES);
    CU_ASSERT_EQUAL(SEND(T | STAGES(1, 3), NAMES), DROP_CONN);
}

static void
test_node_references(void)
{
    fresh(); /* frees the login before */
    for (unsigned i = 0; i < fake.set.n; i++)
        CU_ASSERT_EQUAL(atomic_load(&fake.nodes[i].ref.n), 1);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"two stages", test_two_stages},
        {"operational at once", test_operational_at_once},
        {"security to full feature", test_security_to_full_feature},
        {"discovery", test_discovery},
        {"names are folded", test_names_are_folded},
        {"missing names", test_missing_names},
        {"target status", test_target_status},
        {"redirection", test_redirection},
        {"redirection, a program asked", test_redirection_asked},
        {"version", test_version},
        {"bad stages", test_bad_stages},
        {"many rounds", test_many_rounds},
        {"continuation", test_continuation},
        {"text is bounded", test_text_is_bounded},
        {"header limits", test_header_limits},
        {"long answer", test_long_answer},
        {"repeated names", test_repeated_names},
        {"authentication refused", test_auth_refused},
        {"proposals", test_proposals},
        {"digest policy", test_header_digest_policy},
        {"aliases", test_alias},
        {"session refused", test_session_refused},
        {"foreign PDU", test_foreign_pdu},
        {"after the end", test_after_the_end},
        {"references", test_node_references},
    };
    fake_begin();
    (void)fake_node(TARGET, "ALL");
    (void)fake_node("iqn.2001-04.com.example:guarded", "10.0.0.0/8");
    fake_node("iqn.2001-04.com.example:off", "ALL")->offline = true;
    int rc = UNIT_RUN("login", tests);
    fake_end();
    return rc;
}
