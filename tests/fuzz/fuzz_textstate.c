/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: text exchanges in full feature phase, many PDUs deep on one connection that
 * stays (RFC 7143 6.4, 11.10, 11.11).  Input: a byte of settings, then steps.  A step is a byte of
 * choices (tag: fresh, right, old, any; F and C; the text: empty, one of the list, raw bytes with
 * a length, or all at once what a proper initiator would send next) and what it needs.  Now and
 * then the targets change beneath an answer that is being fetched.
 *
 * Whatever comes: a PDU is answered by one Text Response or one Reject; tags, F and C of responses
 * follow the rules; a response fits the initiator; what an exchange may keep is bounded; a list of
 * targets that is fetched to its end is whole pairs, names each target once and none that is not
 * to be seen.
 */
#include "config.h"

#include "base/cur.h"
#include "tests/unit/login_fake.h"

#define INITIATOR "iqn.2001-04.com.example:i"
#define KEPT_MAX  (1u << 20) /* bytes that one connection may hold for its exchange */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const char *const texts[] = {
    "SendTargets=All",
    "SendTargets=",
    "SendTargets=iqn.2001-04.com.example:a",
    "SendTargets=iqn.2001-04.com.example:hidden",
    "SendTargets=nowhere",
    "MaxRecvDataSegmentLength=512",
    "MaxRecvDataSegmentLength=1024",
    "MaxRecvDataSegmentLength=16777215",
    "MaxRecvDataSegmentLength=511",
    "InitiatorAlias=x",
    "HeaderDigest=CRC32C",
    "iSCSIProtocolLevel=2",
    "TaskReporting=FastAbort",
    "X-com.example.key=value",
    "X-com.example.long.key.that.is.as.long.as.a.key.may.be.at.the.=v",
    "MaxConnections=",
};
#define NTEXTS (sizeof texts / sizeof texts[0])

/* What of the exchange is known from outside. */
static struct {
    uint32_t itt, ttt; /* TAG_RESERVED: none is open */
    uint32_t old_ttt;
    bool listing;   /* the answer being fetched is to SendTargets=All alone */
    bool disturbed; /* the targets changed meanwhile */
    char list[65536];
    size_t list_len;
} seen;

static void
check(bool ok)
{
    if (!ok)
        abort();
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fake_begin();
    (void)fake_node("iqn.2001-04.com.example:a", "ALL");
    (void)fake_node("iqn.2001-04.com.example:b", "10.0.0.0/8");
    fake_node("iqn.2001-04.com.example:hidden", "ALL")->hidden = true;
    (void)fake_node("iqn.2001-04.com.example:z", "ALL");
    fake_portal("192.0.2.1", 3260);
    fake_portal("2001:db8::1", 3260);
    log_open("fuzz_textstate", true); /* stderr is libFuzzer's */
    return 0;
}

static unsigned
count(const char *pair)
{
    unsigned n = 0;
    for (size_t i = 0; i < seen.list_len; i += strlen(seen.list + i) + 1)
        n += strcmp(seen.list + i, pair) == 0;
    return n;
}

static void
check_list(void)
{
    check(seen.list_len > 0 && seen.list[seen.list_len - 1] == '\0');
    check(strncmp(seen.list, "TargetName=", 11) == 0);
    check(count("TargetName=iqn.2001-04.com.example:b") == 0);
    check(count("TargetName=iqn.2001-04.com.example:hidden") == 0);
    check(count("TargetName=iqn.2001-04.com.example:a") == 1);
    unsigned z = count("TargetName=iqn.2001-04.com.example:z");
    check(seen.disturbed ? z <= 1 : z == 1);
}

/* The response that was sent to a request with these flags. */
static void
check_response(const struct pdu *pdu, uint32_t max)
{
    uint8_t flags = fake.bhs[1];
    uint32_t ttt = get_be32(fake.bhs + 20);
    bool final = flags & 0x80, more = flags & 0x40;
    check(fake.bhs[0] == OPC_TEXT_RSP && fake.len <= max);
    check(get_be32(fake.bhs + 16) == pdu->itt);
    check(!(final && more) && (flags & 0x3f) == 0);
    check(!final || (pdu->flags & 0x80));  /* F answers F only (11.11.1) */
    check(final == (ttt == TAG_RESERVED)); /* (11.11.4) */
    check(more || fake.len == 0 || fake.text[fake.len - 1] == 0);
    check(fake.c.text.in_len + (uint64_t)(fake.c.text.out_len - fake.c.text.out_pos) < KEPT_MAX);
    check(final ? !fake.c.text.open && fake.c.text.walk == NULL : fake.c.text.open);
    if (seen.listing) {
        check(seen.list_len + fake.len < sizeof seen.list);
        memcpy(seen.list + seen.list_len, fake.text, fake.len);
        seen.list_len += fake.len;
        if (!more)
            check_list();
    }
    if (!more)
        seen.listing = false;
    seen.old_ttt = seen.ttt != TAG_RESERVED ? seen.ttt : seen.old_ttt;
    seen.ttt = final ? TAG_RESERVED : ttt;
    seen.itt = pdu->itt;
}

static void
send_pdu(uint8_t flags, uint32_t itt, uint32_t ttt, const void *text, size_t len)
{
    struct pdu pdu = {.opcode = OPC_TEXT_REQ, .flags = flags, .itt = itt, .ttt = ttt};
    unsigned before = fake.sent;
    uint32_t sn = fake.c.stat_sn, max = fake.c.p.max_xmit;
    pdu.data = malloc(len ? len : 1); /* exact size: an over-read is seen */
    check(pdu.data != NULL);
    if (len != 0)
        memcpy(pdu.data, text, len);
    pdu.data_len = (uint32_t)len;
    fake.c.reject_reason = 0;
    enum verdict v = text_pdu(&fake.c, &pdu);
    free(pdu.data);
    check(v == KEEP || v == REJECT);
    check(fake.sent - before == (v == KEEP ? 1 : 0));
    check(fake.c.stat_sn - sn == (uint32_t)(fake.sent - before)); /* each takes a StatSN */
    check(v == KEEP || fake.c.reject_reason != 0);
    check(fake.c.p.max_xmit >= 64 && fake.c.p.max_xmit < 1u << 24);
    if (v == KEEP) {
        check_response(&pdu, max);
    } else if (!fake.c.text.open) {
        seen.ttt = TAG_RESERVED;
        seen.listing = false;
    }
}

static uint32_t
pick_tag(uint8_t how, struct cur *in)
{
    switch (how & 3) {
    case 0:
        return TAG_RESERVED;
    case 1:
        return seen.ttt;
    case 2:
        return seen.old_ttt;
    default:
        return cur_be32(in);
    }
}

static void
step(struct cur *in)
{
    uint8_t how = cur_u8(in);
    uint8_t flags = (uint8_t)((how & 4 ? 0x80 : 0) | (how & 8 ? 0x40 : 0));
    uint32_t ttt = pick_tag(how, in);
    uint32_t itt = ttt == TAG_RESERVED ? 5 + (how >> 7) : seen.itt;
    const uint8_t *raw;
    switch (how >> 4 & 3) {
    case 0:
        if (ttt == TAG_RESERVED)
            seen.listing = false;
        send_pdu(flags, itt, ttt, NULL, 0);
        break;
    case 1: { /* a text of the list */
        unsigned which = cur_u8(in) % NTEXTS;
        bool alone = ttt == TAG_RESERVED && !(flags & 0x40) && which == 0;
        if (ttt == TAG_RESERVED || !seen.listing)
            seen.listing = alone && fake.c.sess->discovery;
        if (seen.listing && alone) {
            seen.list_len = 0;
            seen.disturbed = fake.set.n != 4;
        }
        send_pdu(flags, itt, ttt, texts[which], strlen(texts[which]) + 1);
        break;
    }
    case 2: { /* raw */
        size_t len = cur_u8(in);
        len = len < in->left ? len : in->left;
        raw = cur_take(in, len);
        if (ttt == TAG_RESERVED)
            seen.listing = false;
        send_pdu(flags, itt, ttt, raw, len);
        break;
    }
    default: /* the targets change; then what a proper initiator does next */
        if (how & 8) {
            fake.set.n = fake.set.n == 4 ? 3 : 4;
            seen.disturbed = true;
        }
        send_pdu(0x80, seen.ttt == TAG_RESERVED ? 5 : seen.itt, seen.ttt, NULL, 0);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cur in = cur_init(data, size);
    uint8_t settings = cur_u8(&in);
    (void)fake_connect("192.0.2.9", "192.0.2.1");
    fake.set.n = 4;
    fake_session(INITIATOR, (settings & 1) ? &fake.nodes[0] : NULL);
    fake.c.p.max_xmit = (settings & 2) ? 64 : 8192; /* 64: pieces of a short list */
    fake.set.filter = DF_NAME;
    memset(&seen, 0, sizeof seen);
    seen.ttt = TAG_RESERVED;
    for (unsigned i = 0; i < 200 && in.left != 0; i++)
        step(&in);
    fake.set.n = 4;
    (void)fake_connect("192.0.2.9", "192.0.2.1"); /* frees the connection before */
    check(fake.c.text.in == NULL && fake.c.text.out == NULL && fake.c.text.walk == NULL);
    return 0;
}
