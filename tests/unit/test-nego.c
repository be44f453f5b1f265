/* SPDX-License-Identifier: BSD-2-Clause */
/* Negotiation of text keys: RFC 7143 6.1, 6.2 and the result functions of 13. */
#include "config.h"

#include <string.h>

#include "target/nego.h"
#include "tests/unit/unit.h"

static struct nego n;
static struct text_out out;
static char texts[8][65536]; /* what was said stays, as the contract wants */
static unsigned said;

static void
start(enum key_phase phase)
{
    struct key_values ours;
    keys_defaults(&ours);
    nego_init(&n, &ours, phase);
    n.leading = true;
    text_out_free(&out);
    out.limit = 65536;
    said = 0;
}

static bool
say_bytes(const void *text, size_t len)
{
    out.len = 0;
    char *copy = texts[said++ % 8];
    memcpy(copy, text, len);
    return nego_read(&n, (const uint8_t *)copy, len) && nego_answer(&n, &out);
}

/* A literal's own NUL ends the last pair. */
#define SAY(literal) say_bytes((literal), sizeof(literal))

/* The answer to a key; NULL: none. Twice: "TWICE". */
static const char *
answer(const char *key)
{
    const char *found = NULL;
    size_t klen = strlen(key);
    for (size_t i = 0; i < out.len;) {
        const char *pair = (const char *)out.p + i;
        if (strncmp(pair, key, klen) == 0 && pair[klen] == '=') {
            if (found)
                return "TWICE";
            found = pair + klen + 1;
        }
        i += strlen(pair) + 1;
    }
    return found;
}

static bool
answers(const char *key, const char *want)
{
    const char *a = answer(key);
    bool ok = want == NULL ? a == NULL : a != NULL && strcmp(a, want) == 0;
    if (!ok)
        fprintf(stderr, "%s=%s, wanted %s\n", key, a ? a : "(none)", want ? want : "(none)");
    return ok;
}

/* One offer in a fresh operational negotiation. */
static bool
one(const char *offer, const char *want)
{
    char key[64] = "";
    memcpy(key, offer, strcspn(offer, "="));
    start(KP_OPERATIONAL);
    return say_bytes(offer, strlen(offer) + 1) && answers(key, want);
}

static void
set(const char *key, const char *value)
{
    char err[128];
    CU_ASSERT_EQUAL_FATAL(keys_set(&n.ours, key, value, err, sizeof err), 0);
}

/* 6.2.1: the first value of the offer that the responder supports. */
static void
test_lists(void)
{
    CU_ASSERT(one("HeaderDigest=None,CRC32C", "None"));
    CU_ASSERT(one("HeaderDigest=CRC32C,None", "CRC32C"));
    CU_ASSERT(one("HeaderDigest=CRC32C", "CRC32C"));
    CU_ASSERT(one("DataDigest=Y-unknown,CRC32C,None", "CRC32C"));
    CU_ASSERT(one("DataDigest=crc32c", "Reject"));
    CU_ASSERT(one("DataDigest=", "Reject"));
    CU_ASSERT(one("DataDigest=CRC32CX", "Reject"));
    CU_ASSERT(one("DataDigest=CRC32", "Reject"));
    CU_ASSERT(one("DataDigest=,,", "Reject"));
    CU_ASSERT(one("TaskReporting=ResponseFence,RFC3720", "RFC3720"));
}

static void
test_discovery_prefers_none(void)
{
    start(KP_OPERATIONAL);
    n.discovery = true;
    CU_ASSERT(SAY("HeaderDigest=CRC32C,None\0DataDigest=CRC32C"));
    CU_ASSERT(answers("HeaderDigest", "None"));
    CU_ASSERT(answers("DataDigest", "CRC32C"));
}

static void
test_digest_policy(void)
{
    start(KP_OPERATIONAL);
    set("HeaderDigest", "CRC32C");
    CU_ASSERT_FALSE(SAY("HeaderDigest=None"));
    CU_ASSERT_EQUAL(n.status, LS_INITIATOR_ERROR);
    CU_ASSERT_EQUAL(n.bad, KEY_HEADER_DIGEST); /* the log line names key and offer */
    CU_ASSERT_STRING_EQUAL(n.bad_value, "None");
    start(KP_OPERATIONAL);
    set("HeaderDigest", "None");
    CU_ASSERT(SAY("HeaderDigest=CRC32C"));
    CU_ASSERT(answers("HeaderDigest", "Reject"));
    CU_ASSERT(nego_finish(&n));
    CU_ASSERT_EQUAL(n.v[KEY_HEADER_DIGEST], DIGEST_NONE);
}

static void
test_auth_method(void)
{
    start(KP_SECURITY);
    CU_ASSERT(SAY("AuthMethod=KRB5,SRP,None"));
    CU_ASSERT(answers("AuthMethod", "None"));
    start(KP_SECURITY);
    CU_ASSERT_FALSE(SAY("AuthMethod=SRP,KRB5"));
    CU_ASSERT_EQUAL(n.status, LS_AUTH_FAILURE);
}

/* 6.2.2 and 13.10, 13.11: AND, OR; values are case-sensitive. */
static void
test_booleans(void)
{
    CU_ASSERT(one("ImmediateData=No", "No"));
    CU_ASSERT(one("ImmediateData=Yes", "Yes"));
    CU_ASSERT(one("InitialR2T=Yes", "Yes"));
    CU_ASSERT(one("InitialR2T=No", "No"));
    CU_ASSERT(one("DataPDUInOrder=No", "Yes"));
    CU_ASSERT(one("DataSequenceInOrder=Yes", "Yes"));
    CU_ASSERT(one("ImmediateData=yes", "Reject"));
    CU_ASSERT(one("ImmediateData=Maybe", "Reject"));
    CU_ASSERT(one("ImmediateData=1", "Reject"));
    CU_ASSERT(one("ImmediateData=", "Reject"));
    start(KP_OPERATIONAL);
    set("ImmediateData", "No");
    set("InitialR2T", "Yes");
    CU_ASSERT(SAY("ImmediateData=Yes\0InitialR2T=No"));
    CU_ASSERT(answers("ImmediateData", "No"));
    CU_ASSERT(answers("InitialR2T", "Yes"));
}

static void
test_numbers(void)
{
    CU_ASSERT(one("MaxBurstLength=8192", "8192"));
    CU_ASSERT(one("MaxBurstLength=0x4000", "16384"));
    CU_ASSERT(one("MaxBurstLength=0X4000", "16384"));
    CU_ASSERT(one("MaxBurstLength=16777215", "16776192"));
    CU_ASSERT(one("MaxOutstandingR2T=65535", "16"));
    CU_ASSERT(one("MaxOutstandingR2T=1", "1"));
    CU_ASSERT(one("MaxConnections=65535", "1"));
    CU_ASSERT(one("ErrorRecoveryLevel=2", "0"));
    CU_ASSERT(one("DefaultTime2Wait=100", "100"));
    CU_ASSERT(one("DefaultTime2Wait=0", "2"));
    CU_ASSERT(one("DefaultTime2Retain=3600", "0"));
    CU_ASSERT(one("FirstBurstLength=16777215", "262144"));
    CU_ASSERT(one("iSCSIProtocolLevel=2", "2"));
    CU_ASSERT(one("iSCSIProtocolLevel=31", "2"));
    CU_ASSERT(one("iSCSIProtocolLevel=1", "1"));
    CU_ASSERT(one("iSCSIProtocolLevel=0", "0"));
}

/* Outside the ranges of 13.x, or not a number at all. */
static void
test_bad_numbers(void)
{
    static const char *const bad[] = {
        "MaxConnections=0",
        "MaxConnections=65536",
        "MaxBurstLength=511",
        "MaxBurstLength=16777216",
        "FirstBurstLength=0",
        "FirstBurstLength=511",
        "ErrorRecoveryLevel=3",
        "MaxOutstandingR2T=0",
        "MaxOutstandingR2T=65536",
        "DefaultTime2Wait=3601",
        "DefaultTime2Retain=3601",
        "MaxBurstLength=-1",
        "MaxBurstLength=08192",
        "MaxBurstLength=4294968320",
        "MaxBurstLength=",
        "MaxBurstLength=8192~16384",
        "MaxBurstLength=99999999999999999999999999",
        "MaxBurstLength=8192,16384",
        "MaxBurstLength=0x",
        "MaxRecvDataSegmentLength=511",
        "MaxRecvDataSegmentLength=16777216",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CU_ASSERT(one(bad[i], "Reject"));
}

/* 6.2: rejected means the value in force stays. */
static void
test_reject_keeps_default(void)
{
    start(KP_OPERATIONAL);
    CU_ASSERT(SAY("MaxBurstLength=1\0MaxRecvDataSegmentLength=511\0ImmediateData=x"));
    CU_ASSERT(nego_finish(&n));
    CU_ASSERT_EQUAL(n.v[KEY_MAX_BURST], 262144);
    CU_ASSERT_EQUAL(n.v[KEY_MAX_RECV_DSL], 8192);
    CU_ASSERT_EQUAL(n.v[KEY_IMMEDIATE_DATA], 1);
}

static void
test_declarative(void)
{
    CU_ASSERT(one("MaxRecvDataSegmentLength=512", NULL));
    CU_ASSERT_EQUAL(n.v[KEY_MAX_RECV_DSL], 512);
    CU_ASSERT(one("InitiatorAlias=my host", NULL));
    CU_ASSERT(one("InitiatorName=iqn.2001-04.com.example:i", NULL));
    CU_ASSERT(one("SessionType=Normal", NULL));
    CU_ASSERT(one("TargetAlias=x", "Reject")); /* only a target may say that */
    start(KP_OPERATIONAL);
    nego_declare(&n, KEY_MAX_RECV_DSL, &out);
    CU_ASSERT(answers("MaxRecvDataSegmentLength", "262144"));
    out.len = 0;
    nego_declare(&n, KEY_MAX_RECV_DSL, &out); /* once */
    CU_ASSERT_EQUAL(out.len, 0);
    start(KP_OPERATIONAL); /* 6.1: a key is not sent twice */
    CU_ASSERT(SAY("MaxRecvDataSegmentLength=511"));
    nego_declare(&n, KEY_MAX_RECV_DSL, &out);
    CU_ASSERT(answers("MaxRecvDataSegmentLength", "Reject"));
}

/* 13.14: never above MaxBurstLength, whatever the order on the wire. */
static void
test_first_burst_bound(void)
{
    start(KP_OPERATIONAL);
    CU_ASSERT(SAY("FirstBurstLength=65536\0MaxBurstLength=8192"));
    CU_ASSERT(answers("MaxBurstLength", "8192"));
    CU_ASSERT(answers("FirstBurstLength", "8192"));
    start(KP_OPERATIONAL); /* one key a request: what was agreed must not be undercut */
    CU_ASSERT(SAY("FirstBurstLength=65536"));
    CU_ASSERT(SAY("MaxBurstLength=8192"));
    CU_ASSERT(answers("MaxBurstLength", "Reject"));
    CU_ASSERT(nego_finish(&n));
    CU_ASSERT(n.v[KEY_FIRST_BURST] <= n.v[KEY_MAX_BURST]);
    start(KP_OPERATIONAL); /* not said: the default is bounded too */
    CU_ASSERT(SAY("MaxBurstLength=8192"));
    CU_ASSERT(nego_finish(&n));
    CU_ASSERT_EQUAL(n.v[KEY_FIRST_BURST], 8192);
}

/* 13.14: irrelevant with InitialR2T=Yes and ImmediateData=No. */
static void
test_first_burst_irrelevant(void)
{
    start(KP_OPERATIONAL);
    CU_ASSERT(SAY("FirstBurstLength=8192\0ImmediateData=No\0InitialR2T=Yes"));
    CU_ASSERT(answers("FirstBurstLength", "Irrelevant"));
    start(KP_OPERATIONAL);
    CU_ASSERT(SAY("FirstBurstLength=8192\0ImmediateData=No\0InitialR2T=No"));
    CU_ASSERT(answers("FirstBurstLength", "8192"));
}

static void
test_discovery_irrelevant(void)
{
    start(KP_OPERATIONAL);
    n.discovery = true;
    CU_ASSERT(SAY("MaxConnections=1\0InitialR2T=No\0ImmediateData=Yes\0MaxBurstLength=8192\0"
                  "FirstBurstLength=8192\0MaxOutstandingR2T=1\0DataPDUInOrder=Yes\0"
                  "DataSequenceInOrder=Yes\0ErrorRecoveryLevel=0\0DefaultTime2Wait=2\0"
                  "DefaultTime2Retain=20\0MaxRecvDataSegmentLength=32768"));
    CU_ASSERT(answers("MaxConnections", "Irrelevant"));
    CU_ASSERT(answers("InitialR2T", "Irrelevant"));
    CU_ASSERT(answers("ImmediateData", "Irrelevant"));
    CU_ASSERT(answers("MaxBurstLength", "Irrelevant"));
    CU_ASSERT(answers("FirstBurstLength", "Irrelevant"));
    CU_ASSERT(answers("MaxOutstandingR2T", "Irrelevant"));
    CU_ASSERT(answers("DataPDUInOrder", "Irrelevant"));
    CU_ASSERT(answers("DataSequenceInOrder", "Irrelevant"));
    CU_ASSERT(answers("ErrorRecoveryLevel", "0"));
    CU_ASSERT(answers("DefaultTime2Wait", "2"));
    CU_ASSERT(answers("MaxRecvDataSegmentLength", NULL));
    CU_ASSERT_EQUAL(n.v[KEY_MAX_RECV_DSL], 32768);
}

static void
test_unknown(void)
{
    start(KP_OPERATIONAL);
    CU_ASSERT(SAY("X-com.example.key=1\0MaxBurstlength=5\0X#Node=a\0DataDigest=None"));
    CU_ASSERT(answers("X-com.example.key", "NotUnderstood"));
    CU_ASSERT(answers("MaxBurstlength", "NotUnderstood"));
    CU_ASSERT(answers("X#Node", "NotUnderstood"));
    CU_ASSERT(answers("DataDigest", "None"));
}

/* 13.25: never NotUnderstood, never Yes. */
static void
test_markers(void)
{
    start(KP_OPERATIONAL);
    CU_ASSERT(SAY("IFMarker=Yes\0OFMarker=No\0IFMarkInt=2048~8192\0OFMarkInt=2048"));
    CU_ASSERT(answers("IFMarker", "No"));
    CU_ASSERT(answers("OFMarker", "No"));
    CU_ASSERT(answers("IFMarkInt", "Reject"));
    CU_ASSERT(answers("OFMarkInt", "Reject"));
}

static void
test_phases(void)
{
    start(KP_SECURITY); /* 12: operational keys do not belong there */
    CU_ASSERT(SAY("HeaderDigest=CRC32C\0MaxBurstLength=8192"));
    CU_ASSERT(answers("HeaderDigest", "Reject"));
    CU_ASSERT_EQUAL(n.v[KEY_HEADER_DIGEST], DIGEST_NONE);
    CU_ASSERT_EQUAL(n.v[KEY_MAX_BURST], 262144);
    CU_ASSERT(one("AuthMethod=None", "Reject"));
    CU_ASSERT(one("SendTargets=All", "Reject"));
    start(KP_FFP); /* leading-only and login-only keys change nothing there */
    CU_ASSERT(SAY("MaxConnections=2\0HeaderDigest=CRC32C\0ErrorRecoveryLevel=1\0"
                  "MaxRecvDataSegmentLength=4096\0InitiatorAlias=x"));
    CU_ASSERT(answers("MaxConnections", "Reject"));
    CU_ASSERT(answers("HeaderDigest", "Reject"));
    CU_ASSERT(answers("ErrorRecoveryLevel", "Reject"));
    CU_ASSERT(answers("MaxRecvDataSegmentLength", NULL));
    CU_ASSERT(answers("InitiatorAlias", NULL));
    CU_ASSERT_EQUAL(n.v[KEY_MAX_RECV_DSL], 4096);
}

static void
test_second_connection(void)
{
    start(KP_OPERATIONAL);
    n.leading = false;
    CU_ASSERT(
        SAY("MaxConnections=2\0MaxBurstLength=8192\0HeaderDigest=CRC32C\0SessionType=Normal"));
    CU_ASSERT(answers("MaxConnections", "Reject"));
    CU_ASSERT(answers("MaxBurstLength", "Reject"));
    CU_ASSERT(answers("HeaderDigest", "CRC32C"));
    CU_ASSERT(answers("SessionType", NULL));
}

static bool
refused(const void *text, size_t len)
{
    start(KP_OPERATIONAL);
    return !say_bytes(text, len) && n.status == LS_INITIATOR_ERROR && n.why != NULL;
}

static void
test_malformed(void)
{
    char big[8193];
    CU_ASSERT(refused("DataDigest=None", 15)); /* no NUL at the end */
    CU_ASSERT(refused("DataDigest", 11));      /* no = */
    CU_ASSERT(refused("=None", 6));            /* empty key */
    CU_ASSERT(refused("\0DataDigest=None", 17));
    CU_ASSERT(refused("DataDigest=None\0\0\0\0\0\0HeaderDigest=None", 39));
    CU_ASSERT(refused("Data\nDigest=None", 17));
    CU_ASSERT(refused("Data Digest=None", 17));
    CU_ASSERT(refused("Data\xff=None", 11));
    CU_ASSERT(refused("DataDigest=None\0DataDigest=None", 32)); /* twice in one text */
    memset(big, 'A', sizeof big);
    for (size_t len = 8188; len <= 8192; len++) {
        CU_ASSERT(refused(big, len)); /* neither = nor NUL */
        big[len - 1] = 0;
        CU_ASSERT(refused(big, len));
        big[len - 1] = 'A';
    }
}

/* 6.1: key names are 63 bytes at most. */
static void
test_key_length(void)
{
    static const size_t lens[] = {64, 255, 8000};
    char text[8100];
    for (size_t i = 0; i < 3; i++) {
        memset(text, 'K', sizeof text);
        memcpy(text + lens[i], "=1", 3);
        CU_ASSERT(refused(text, lens[i] + 3));
    }
    memset(text, 'K', sizeof text);
    memcpy(text + 63, "=1", 3);
    start(KP_OPERATIONAL);
    CU_ASSERT(say_bytes(text, 66));
    CU_ASSERT_EQUAL(out.len, 63 + 1 + sizeof "NotUnderstood");
}

/* Padding counted into the length is forgiven: it ends a word and is shorter than one. */
static void
test_padding(void)
{
    start(KP_OPERATIONAL);
    CU_ASSERT(say_bytes("DataDigest=None\0\0\0\0", 16));
    start(KP_OPERATIONAL);
    CU_ASSERT(say_bytes("MaxBurstLength=512\0\0\0", 20));
    CU_ASSERT(answers("MaxBurstLength", "512"));
    CU_ASSERT(refused("MaxBurstLength=512\0\0\0\0\0\0", 24));
    start(KP_OPERATIONAL);
    CU_ASSERT(say_bytes("", 0));
}

static void
test_repeats(void)
{
    start(KP_OPERATIONAL);
    CU_ASSERT(SAY(
        "InitiatorName=iqn.2001-04.com.example:i\0SessionType=Normal\0MaxBurstLength=16777215"));
    CU_ASSERT(SAY("InitiatorName=iqn.2001-04.com.example:i\0SessionType=Normal"));
    CU_ASSERT_EQUAL(out.len, 0);
    CU_ASSERT(SAY("MaxBurstLength=16777215")); /* what was offered: the same answer */
    CU_ASSERT(answers("MaxBurstLength", "16776192"));
    CU_ASSERT(SAY("MaxBurstLength=16776192")); /* our answer confirmed: nothing to add */
    CU_ASSERT_EQUAL(out.len, 0);
    CU_ASSERT_FALSE(SAY("MaxBurstLength=8192")); /* a renegotiation */
    CU_ASSERT_EQUAL(n.status, LS_INITIATOR_ERROR);
    start(KP_OPERATIONAL);
    CU_ASSERT(SAY("InitiatorName=iqn.2001-04.com.example:i"));
    CU_ASSERT_FALSE(SAY("InitiatorName=iqn.2001-04.com.example:j"));
}

static void
test_no_needless_proposals(void)
{
    start(KP_OPERATIONAL);
    CU_ASSERT_EQUAL(nego_propose(&n, &out), 0);
    CU_ASSERT_EQUAL(out.len, 0);
}

static void
test_proposals(void)
{
    start(KP_OPERATIONAL);
    set("ImmediateData", "No");
    set("MaxBurstLength", "65536");
    set("HeaderDigest", "CRC32C");
    CU_ASSERT(SAY("MaxBurstLength=262144"));
    CU_ASSERT_EQUAL(nego_propose(&n, &out), 2);
    CU_ASSERT(answers("MaxBurstLength", "65536"));
    CU_ASSERT(answers("ImmediateData", "No"));
    CU_ASSERT(answers("HeaderDigest", "CRC32C"));
    CU_ASSERT_EQUAL(nego_propose(&n, &out), 0); /* each once */
    CU_ASSERT(SAY("ImmediateData=No\0HeaderDigest=CRC32C"));
    CU_ASSERT_EQUAL(out.len, 0); /* answers are not answered */
    CU_ASSERT(nego_finish(&n));
    CU_ASSERT_EQUAL(n.v[KEY_IMMEDIATE_DATA], 0);
    CU_ASSERT_EQUAL(n.v[KEY_HEADER_DIGEST], DIGEST_CRC32C);
}

/* An initiator that does not hear proposals comes in with the defaults, but not past a policy. */
static void
test_proposals_ignored(void)
{
    start(KP_OPERATIONAL);
    set("ImmediateData", "No");
    CU_ASSERT_EQUAL(nego_propose(&n, &out), 1);
    CU_ASSERT(say_bytes("", 0));
    CU_ASSERT(nego_finish(&n));
    CU_ASSERT_EQUAL(n.v[KEY_IMMEDIATE_DATA], 1);
    start(KP_OPERATIONAL);
    set("HeaderDigest", "CRC32C");
    CU_ASSERT_EQUAL(nego_propose(&n, &out), 1);
    CU_ASSERT(SAY("HeaderDigest=Reject"));
    CU_ASSERT_FALSE(nego_finish(&n));
    start(KP_OPERATIONAL);
    set("ImmediateData", "No");
    (void)nego_propose(&n, &out);
    CU_ASSERT(SAY("ImmediateData=NotUnderstood"));
    CU_ASSERT(nego_finish(&n));
    start(KP_OPERATIONAL);
    set("ImmediateData", "No");
    (void)nego_propose(&n, &out);
    CU_ASSERT_FALSE(SAY("ImmediateData=perhaps"));
}

static void
test_answer_is_bounded(void)
{
    static char text[65536];
    size_t len = 0;
    while (len + 4 <= sizeof text) {
        memcpy(text + len, "a=b", 4);
        len += 4;
    }
    start(KP_OPERATIONAL);
    CU_ASSERT_FALSE(say_bytes(text, len));
    CU_ASSERT(out.len <= 65536);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"lists", test_lists},
        {"discovery prefers None", test_discovery_prefers_none},
        {"digest policy", test_digest_policy},
        {"AuthMethod", test_auth_method},
        {"booleans", test_booleans},
        {"numbers", test_numbers},
        {"bad numbers", test_bad_numbers},
        {"reject keeps the default", test_reject_keeps_default},
        {"declarative", test_declarative},
        {"FirstBurstLength bound", test_first_burst_bound},
        {"FirstBurstLength irrelevant", test_first_burst_irrelevant},
        {"discovery irrelevant", test_discovery_irrelevant},
        {"unknown", test_unknown},
        {"markers", test_markers},
        {"phases", test_phases},
        {"second connection", test_second_connection},
        {"malformed", test_malformed},
        {"key length", test_key_length},
        {"padding", test_padding},
        {"repeats", test_repeats},
        {"no needless proposals", test_no_needless_proposals},
        {"proposals", test_proposals},
        {"proposals ignored", test_proposals_ignored},
        {"bounded answer", test_answer_is_bounded},
    };
    int rc = UNIT_RUN("nego", tests);
    text_out_free(&out);
    return rc;
}
