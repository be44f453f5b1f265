/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: key text through login and, once a login succeeds, through text requests.
 * Input: a byte of settings, then PDUs: flags, two bytes of length, the text (what is left when
 * short).  Whatever comes: every answer is whole pairs of bounded size, what is agreed lies in
 * the ranges of RFC 7143, and only a login that named a target gets in; where CHAP is demanded,
 * none without a right response.
 */
#include "config.h"

#include "base/cur.h"
#include "target/account.h"
#include "tests/unit/login_fake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct account_set *accounts;

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    fake_begin();
    (void)fake_node("iqn.2001-04.com.example:a", "ALL");
    (void)fake_node("iqn.2001-04.com.example:b", "10.0.0.0/8");
    fake_portal("192.0.2.1", 3260);
    fake_portal("::", 3260);
    struct secret *in = secret_new("sixteen bytes...", 16),
                  *out = secret_new("seventeen bytes..", 17);
    char err[64];
    struct account *user = account_new("user", in, NULL, err, sizeof err);
    struct account *self = account_new("self", out, NULL, err, sizeof err);
    accounts = account_set_new(&user, 1, self, CHAP_ALG_ALL, false);
    log_open("fuzz_text", true); /* stderr is libFuzzer's */
    return 0;
}

static void
check(bool ok)
{
    if (!ok)
        abort();
}

static void
check_answer(uint32_t max)
{
    check(fake.len <= max);
    bool more = fake.bhs[1] & 0x40;
    check(fake.len == 0 || more || fake.text[fake.len - 1] == 0);
    check(!more || !(fake.bhs[1] & 0x80)); /* C excludes T and F */
}

static void
check_agreed(void)
{
    const struct sess_params *p = &fake.res.sp;
    check(fake.res.initiator[0] != '\0');
    check(fake.res.node == NULL || fake.res.node->accounts == NULL || fake.res.account != NULL);
    check((fake.res.node != NULL) != fake.res.discovery);
    check(p->max_burst >= 512 && p->max_burst < 1u << 24);
    check(p->first_burst >= 512 && p->first_burst <= p->max_burst);
    check(p->max_r2t >= 1 && p->max_r2t <= R2T_MAX);
    check(p->max_connections == 1 && p->erl == 0 && p->time2wait <= 3600);
    check(fake.res.cp.max_xmit >= 512 && fake.res.cp.max_xmit < 1u << 24);
}

/* False: the connection is over. */
static bool
one_pdu(struct cur *in, bool full_feature, uint32_t ttt)
{
    struct pdu pdu = {.itt = 1, .ttt = full_feature ? ttt : 0};
    pdu.flags = cur_u8(in);
    size_t len = cur_be16(in) & 0x3fffu;
    if (!cur_ok(in))
        return false;
    if (len > in->left)
        len = in->left;
    pdu.data = malloc(len ? len : 1); /* exact size: an over-read is seen */
    check(pdu.data != NULL);
    if (len != 0)
        memcpy(pdu.data, cur_take(in, len), len);
    pdu.data_len = (uint32_t)len;
    unsigned before = fake.sent;
    enum verdict v = full_feature ? text_pdu(&fake.c, &pdu) : login_pdu(&fake.c, &pdu);
    free(pdu.data);
    if (fake.sent != before)
        check_answer(full_feature ? fake.c.p.max_xmit : 8192);
    if (fake.established && fake.c.sess == NULL) {
        check_agreed();
        fake_session(fake.res.initiator, fake.res.node);
        login_established(&fake.c, LS_OK);
        check_answer(8192);
    }
    return (v == KEEP || v == REJECT) && !fake.closed;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cur in = cur_init(data, size);
    uint8_t settings = cur_u8(&in);
    (void)fake_connect("192.0.2.9", "192.0.2.1");
    fake.nodes[0].keys.v[KEY_IMMEDIATE_DATA] = settings & 1;
    fake.nodes[0].keys.v[KEY_HEADER_DIGEST] = (settings & 2) ? DIGEST_CRC32C : 3;
    fake.nodes[0].keys.v[KEY_MAX_BURST] = (settings & 4) ? 512 : 1u << 20;
    fake.nodes[0].accounts = (settings & 8) ? accounts : NULL;
    bool alive = true;
    while (alive && in.left != 0) {
        bool full_feature = fake.c.sess != NULL;
        bool fresh = fake.bhs[0] != OPC_TEXT_RSP || (fake.bhs[1] & 0x80);
        alive = one_pdu(&in, full_feature, fresh ? TAG_RESERVED : get_be32(fake.bhs + 20));
    }
    (void)fake_connect("192.0.2.9", "192.0.2.1"); /* frees the connection before */
    check(atomic_load(&fake.nodes[0].ref.n) == 1);
    return 0;
}
