/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CHAP's rounds (RFC 7143 12.1.3, RFC 1994) through login.c over a connection without a socket. The
 * digests that are expected were computed by Python's hashlib.
 */
#include "config.h"

#include "base/clock.h"
#include "target/account.h"
#include "target/chap.h"
#include "tests/unit/login_fake.h"
#include "tests/unit/unit.h"

#define T                0x80
#define STAGES(csg, nsg) (uint8_t)((csg) << 2 | (nsg))
#define T01              (T | STAGES(0, 1))

#define TARGET    "iqn.2001-04.com.example:disk"
#define INITIATOR "iqn.2001-04.com.example:i"
#define NAMES     "InitiatorName=" INITIATOR "\0TargetName=" TARGET "\0"

#define SECRET     "correct horse 42"
#define OUT_SECRET "target's own 987"

static const struct {
    uint32_t bit;
    const char *number;
    /* of identifier 3fh, OUT_SECRET, challenge 00112233445566778899aabbccddeeff */
    const char *mutual;
} vectors[] = {
    {CHAP_ALG_MD5, "5", "0xd47218b749c6cccb37159af019e997a5"},
    {CHAP_ALG_SHA1, "6", "0x0952e8ff6ac5c54787f3b5cfffdb26c27d1e88c5"},
    {CHAP_ALG_SHA256, "7", "0x6ba782dcc940ab68912611166ff68764944e2e827eb3e93dade51541fff9fcff"},
    {CHAP_ALG_SHA3_256, "8", "0xc1f0cdfa54cb09584cf6d33f4330458c3023146197656413ac0973cbc006e0af"},
};
#define NVECTORS (sizeof vectors / sizeof vectors[0])

static struct secret *secret, *out_secret;
static struct tgt_node *node;
static char peer[INET_ADDRSTRLEN] = "192.0.2.9";
/* of the challenge in the last response */
static uint8_t id, challenge[CHAP_CHALLENGE_MAX];
static size_t challenge_len;

/* --- accounts and requests -------------------------------------------------------------------- */

struct want {
    const char *user;
    const char *names[2];
};

static struct account_set *
make_set(const struct want *want, unsigned n, struct secret *own, uint32_t algs, bool sha1_7)
{
    struct account *in[4], *out = NULL;
    char err[128];
    for (unsigned i = 0; i < n; i++)
        in[i] = account_new(want[i].user, secret, want[i].names, err, sizeof err);
    if (own != NULL)
        out = account_new("the target", own, NULL, err, sizeof err);
    struct account_set *s = account_set_new(in, n, out, algs, sha1_7);
    for (unsigned i = 0; i < n; i++)
        account_put(in[i]);
    account_put(out);
    return s;
}

static void
demand(struct account_set *s)
{
    login_free(&fake.c);
    account_set_put(node->accounts);
    node->accounts = s;
}

static void
demand_usual(void)
{
    static const struct want want[] = {{"user", {NULL}}, {"0x41", {NULL}}, {"0bAA", {NULL}}};
    demand(make_set(want, 3, out_secret, CHAP_ALG_ALL, false));
}

static void
send_bytes(uint8_t flags, const void *text, size_t len)
{
    struct pdu pdu = {.opcode = OPC_LOGIN_REQ,
                      .immediate = true,
                      .flags = flags,
                      .itt = 0xcafe,
                      .cmd_sn = 1,
                      .data_len = (uint32_t)len};
    pdu.lun[0] = 0x80;
    pdu.data = malloc(len ? len : 1); /* exact size: ASan sees an over-read */
    CU_ASSERT_PTR_NOT_NULL_FATAL(pdu.data);
    if (len != 0)
        memcpy(pdu.data, text, len);
    CU_ASSERT_EQUAL(login_pdu(&fake.c, &pdu), KEEP);
    free(pdu.data);
}

#define SEND(flags, literal) send_bytes((uint8_t)(flags), (literal), sizeof(literal) - 1)

/* Pairs parted by blanks. */
static void
say(uint8_t flags, const char *pairs)
{
    char *text = xstrdup(pairs);
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i++)
        text[i] = text[i] == ' ' ? '\0' : text[i];
    send_bytes(flags, text, len + 1);
    free(text);
}

static unsigned
status(void)
{
    return get_be16(fake.bhs + 36);
}

static bool
is_refusal(unsigned want)
{
    bool ok =
        fake.bhs[1] == 0 && status() == want && fake.closed && fake.len == 0 && !fake.established;
    if (!ok)
        fprintf(stderr, "status %04x, wanted %04x\n", status(), want);
    return ok;
}

static bool
goes_on(uint8_t flags)
{
    return fake.bhs[1] == flags && status() == 0 && !fake.closed;
}

static bool
has(const char *key, const char *want)
{
    const char *v = fake_value(key);
    return want == NULL ? v == NULL : v != NULL && strcmp(v, want) == 0;
}

static void
take_challenge(void)
{
    uint64_t num = 256;
    CU_ASSERT_FATAL(fake_value("CHAP_I") != NULL && fake_value("CHAP_C") != NULL);
    CU_ASSERT(keys_number(fake_value("CHAP_I"), &num) && num < 256);
    id = (uint8_t)num;
    ssize_t n = chap_decode(fake_value("CHAP_C"), challenge, sizeof challenge);
    CU_ASSERT_FATAL(n >= 16 && n <= 1024); /* 12.1.3; 96 bits at least (9.2.1) */
    challenge_len = (size_t)n;
}

/* To the point where the target waits for a response, with the T bit or without. */
static void
begin(uint8_t flags, const char *algs)
{
    char pair[256];
    (void)fake_connect(peer, "192.0.2.1");
    send_bytes(flags, NAMES "AuthMethod=CHAP,None", sizeof(NAMES "AuthMethod=CHAP,None"));
    CU_ASSERT(goes_on(STAGES(0, 0)));
    CU_ASSERT(has("AuthMethod", "CHAP"));
    (void)snprintf(pair, sizeof pair, "CHAP_A=%s", algs);
    say(flags, pair);
    CU_ASSERT_FATAL(goes_on(STAGES(0, 0)));
    take_challenge();
}

/* "CHAP_N=user CHAP_R=...", with what `more` says behind. */
static void
respond_as(uint8_t flags, const char *user, uint32_t alg, struct secret *by, const char *more)
{
    uint8_t digest[CHAP_DIGEST_MAX];
    char text[2 * CHAP_DIGEST_MAX + 3], pairs[8192];
    CU_ASSERT_FATAL(chap_digest(alg, id, by, challenge, challenge_len, digest));
    chap_encode(digest, chap_digest_len(alg), text);
    (void)snprintf(pairs, sizeof pairs, "CHAP_N=%s CHAP_R=%s%s%s", user, text, *more ? " " : "",
                   more);
    say(flags, pairs);
}

static void
right_or_wrong(const char *algs, uint32_t alg, bool right)
{
    begin(STAGES(0, 0), algs);
    respond_as(T01, "user", alg, secret, "");
    CU_ASSERT(right ? goes_on(T01) : is_refusal(0x0201));
}

/* RFC 4648 4, by hand. */
static void
base64(const uint8_t *p, size_t len, char *text)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < len ? (uint32_t)p[i + 1] << 8 : 0) |
                     (i + 2 < len ? p[i + 2] : 0u);
        *text++ = set[v >> 18];
        *text++ = set[v >> 12 & 63];
        *text++ = i + 1 < len ? set[v >> 6 & 63] : '=';
        *text++ = i + 2 < len ? set[v & 63] : '=';
    }
    *text = '\0';
}

/* --- one way ---------------------------------------------------------------------------------- */

static void
test_each_algorithm(void)
{
    demand_usual();
    for (size_t i = 0; i < NVECTORS; i++) {
        begin(STAGES(0, 0), vectors[i].number);
        CU_ASSERT(has("CHAP_A", vectors[i].number));
        CU_ASSERT(has("CHAP_N", NULL) && has("CHAP_R", NULL));
        respond_as(T01, "user", vectors[i].bit, secret, "");
        CU_ASSERT(goes_on(T01));
        CU_ASSERT(has("CHAP_N", NULL) && has("CHAP_R", NULL)); /* nobody asked for it */
        say(T | STAGES(1, 3), "HeaderDigest=None");
        CU_ASSERT(fake.established && fake.res.account != NULL);
        /* the digest of every other algorithm is wrong */
        for (size_t k = 0; k < NVECTORS; k++) {
            if (k == i)
                continue;
            begin(STAGES(0, 0), vectors[i].number);
            respond_as(T01, "user", vectors[k].bit, secret, "");
            CU_ASSERT(is_refusal(0x0201));
        }
    }
}

static void
test_choice(void)
{
    static const struct {
        const char *list, *chosen; /* NULL: 02/01 */
    } cases[] = {
        {"8,7,6,5", "8"}, {"5,6,7,8", "5"}, {"7,5", "7"},   {"99,6,5", "6"}, {"1,2,5", "5"},
        {"56", NULL},     {"15", NULL},     {"", NULL},     {"99,98", NULL}, {"05", NULL},
        {"0x5", "5"},     {"5x,6", "6"},    {",5", "5"},    {"None", NULL},  {"55,5", "5"},
        {"-5", NULL},     {"5 ", NULL},     {"5,5,5", "5"},
    };
    char pair[64], *many = xmalloc(8192);
    demand_usual();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)fake_connect(peer, "192.0.2.1");
        send_bytes(0, NAMES "AuthMethod=CHAP", sizeof(NAMES "AuthMethod=CHAP"));
        int n = snprintf(pair, sizeof pair, "CHAP_A=%s", cases[i].list);
        send_bytes(T01, pair, (size_t)n + 1);
        CU_ASSERT(cases[i].chosen == NULL
                      ? is_refusal(0x0201)
                      : goes_on(STAGES(0, 0)) && has("CHAP_A", cases[i].chosen));
    }
    size_t len = (size_t)snprintf(many, 8192, "CHAP_A="); /* 1200 of them, the last one known */
    for (unsigned i = 1; i < 1200; i++)
        len += (size_t)snprintf(many + len, 8192 - len, "%u,", 100 + i);
    len += (size_t)snprintf(many + len, 8192 - len, "5") + 1;
    (void)fake_connect(peer, "192.0.2.1");
    send_bytes(0, NAMES "AuthMethod=CHAP", sizeof(NAMES "AuthMethod=CHAP"));
    send_bytes(0, many, len);
    CU_ASSERT(has("CHAP_A", "5"));
    free(many);
}

/* What is switched off, and what OpenSSL does not have, is not chosen. */
static void
test_allowed(void)
{
    static const struct want want[] = {{"user", {NULL}}};
    demand(make_set(want, 1, NULL, CHAP_ALG_SHA256 | CHAP_ALG_SHA3_256, false));
    begin(0, "5,6,7,8");
    CU_ASSERT(has("CHAP_A", "7"));
    (void)fake_connect(peer, "192.0.2.1");
    send_bytes(0, NAMES "AuthMethod=CHAP", sizeof(NAMES "AuthMethod=CHAP"));
    say(0, "CHAP_A=5,6");
    CU_ASSERT(is_refusal(0x0201));
    demand_usual();
    chap_algs_probe("provider=none-of-that-name");
    CU_ASSERT_EQUAL(chap_algs_here(), 0);
    (void)fake_connect(peer, "192.0.2.1");
    send_bytes(0, NAMES "AuthMethod=CHAP", sizeof(NAMES "AuthMethod=CHAP"));
    say(0, "CHAP_A=5,6,7,8");
    CU_ASSERT(is_refusal(0x0201));
    chap_algs_probe(NULL);
    right_or_wrong("5", CHAP_ALG_MD5, true);
}

static void
test_legacy_number(void)
{
    static const struct want want[] = {{"user", {NULL}}};
    demand(make_set(want, 1, NULL, CHAP_ALG_ALL, true));
    begin(0, "7,5");
    CU_ASSERT(has("CHAP_A", "7"));
    respond_as(T01, "user", CHAP_ALG_SHA1, secret, "");
    CU_ASSERT(goes_on(T01));
    right_or_wrong("7", CHAP_ALG_SHA256, false);
    right_or_wrong("6", CHAP_ALG_SHA1, true);
    right_or_wrong("8,7", CHAP_ALG_SHA3_256, true);
}

static void
test_response_forms(void)
{
    static const char *const bad[] = {
        "",   "0x",    "5a4b3c456a273e8014dcc859fa9fd561", "0xzz4b3c456a273e8014dcc859fa9fd561",
        "0b", "0bAA=="};
    uint8_t digest[CHAP_DIGEST_MAX + 1];
    char text[2 * sizeof digest + 3], pairs[9000];
    demand_usual();
    /* upper case, base64 */
    begin(0, "5");
    CU_ASSERT_FATAL(chap_digest(CHAP_ALG_MD5, id, secret, challenge, challenge_len, digest));
    chap_encode(digest, 16, text);
    for (char *p = text; *p != '\0'; p++)
        *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p;
    (void)snprintf(pairs, sizeof pairs, "CHAP_N=user CHAP_R=%s", text);
    say(T01, pairs);
    CU_ASSERT(goes_on(T01));
    begin(0, "5");
    CU_ASSERT_FATAL(chap_digest(CHAP_ALG_MD5, id, secret, challenge, challenge_len, digest));
    base64(digest, 16, text);
    (void)snprintf(pairs, sizeof pairs, "CHAP_N=user CHAP_R=0b%s", text);
    say(T01, pairs);
    CU_ASSERT(goes_on(T01));
    /* the right digest with a byte or half a byte too many or too few */
    for (int cut = -2; cut <= 2; cut++) {
        if (cut == 0)
            continue;
        begin(0, "5");
        CU_ASSERT_FATAL(chap_digest(CHAP_ALG_MD5, id, secret, challenge, challenge_len, digest));
        digest[16] = 0;
        chap_encode(digest, 17, text);
        text[2 + 32 + cut] = '\0';
        (void)snprintf(pairs, sizeof pairs, "CHAP_N=user CHAP_R=%s", text);
        say(T01, pairs);
        CU_ASSERT(is_refusal(0x0201));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin(0, "5");
        (void)snprintf(pairs, sizeof pairs, "CHAP_N=user CHAP_R=%s", bad[i]);
        say(T01, pairs);
        CU_ASSERT(is_refusal(0x0201));
    }
    begin(0, "5");
    int n = snprintf(pairs, sizeof pairs, "CHAP_N=user CHAP_R=0x");
    memset(pairs + n, 'a', 4000);
    pairs[n + 4000] = '\0';
    say(T01, pairs);
    CU_ASSERT(is_refusal(0x0201));
}

static void
test_names(void)
{
    static const char *const good[] = {"user", "0x41", "0bAA"};
    static const char *const bad[] = {"USER", "use", "user2", "A", "", "0x"};
    demand_usual();
    for (size_t i = 0; i < 3; i++) {
        begin(0, "5");
        respond_as(T01, good[i], CHAP_ALG_MD5, secret, "");
        CU_ASSERT(goes_on(T01));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin(0, "5");
        respond_as(T01, bad[i], CHAP_ALG_MD5, secret, "");
        CU_ASSERT(is_refusal(0x0201));
    }
    begin(0, "5"); /* a wrong secret looks the same */
    respond_as(T01, "user", CHAP_ALG_MD5, out_secret, "");
    CU_ASSERT(is_refusal(0x0201));
}

static void
test_limited_to_initiators(void)
{
    static const struct want want[] = {{"user", {"iqn.2001-04.com.example:other", NULL}},
                                       {"user2", {"iqn.2001-04.com.*", NULL}}};
    demand(make_set(want, 2, NULL, CHAP_ALG_ALL, false));
    begin(0, "5");
    respond_as(T01, "user", CHAP_ALG_MD5, secret, "");
    CU_ASSERT(is_refusal(0x0201));
    begin(0, "5");
    respond_as(T01, "user2", CHAP_ALG_MD5, secret, "");
    CU_ASSERT(goes_on(T01));
}

/* --- no way around ---------------------------------------------------------------------------- */

static void
test_no_way_around(void)
{
    static const struct {
        uint8_t flags;
        const char *pairs;
    } ways[] = {
        {T01, "AuthMethod=None"},
        {0, "AuthMethod=None"},
        {T | STAGES(0, 3), "AuthMethod=None"},
        {T | STAGES(1, 3), "HeaderDigest=None"},
        {STAGES(1, 0), "HeaderDigest=None"},
        {T01, "HeaderDigest=None"}, /* no AuthMethod: None is meant (6.3.2) */
        {T | STAGES(0, 3), "InitiatorAlias=x"},
        {T01, "AuthMethod=KRB5,SRP"},
        {T | STAGES(1, 3), "AuthMethod=CHAP"},
    };
    demand_usual();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char pairs[512];
        (void)fake_connect(peer, "192.0.2.1");
        (void)snprintf(pairs, sizeof pairs, "InitiatorName=%s TargetName=%s %s", INITIATOR, TARGET,
                       ways[i].pairs);
        say(ways[i].flags, pairs);
        CU_ASSERT(is_refusal(0x0201));
    }
    /* None,CHAP: only CHAP is accepted here */
    (void)fake_connect(peer, "192.0.2.1");
    send_bytes(T01, NAMES "AuthMethod=None,CHAP", sizeof(NAMES "AuthMethod=None,CHAP"));
    CU_ASSERT(goes_on(0) && has("AuthMethod", "CHAP"));
    say(T | STAGES(1, 3), "HeaderDigest=None"); /* the stage is not left */
    CU_ASSERT(fake.closed && status() >> 8 == 2 && !fake.established);
}

/* Empty requests with T at every point move nothing (S-16, S-17; 6.3.2). */
static void
test_t_bit(void)
{
    static const uint8_t to[] = {T01, T | STAGES(0, 3)};
    demand_usual();
    for (unsigned i = 0; i < 2; i++) {
        (void)fake_connect(peer, "192.0.2.1");
        send_bytes(to[i], NAMES "AuthMethod=CHAP", sizeof(NAMES "AuthMethod=CHAP"));
        CU_ASSERT(goes_on(0));
        send_bytes(to[i], NULL, 0);
        CU_ASSERT(goes_on(0) && fake.len == 0);
        say(to[i], "CHAP_A=7,5");
        CU_ASSERT(goes_on(0) && has("CHAP_A", "7"));
        take_challenge();
        send_bytes(to[i], NULL, 0);
        CU_ASSERT(goes_on(0) && fake.len == 0 && !fake.established);
        /* mutual with T in every round, as iPXE does: the proof comes with the transit */
        respond_as(to[i], "user", CHAP_ALG_SHA256, secret,
                   "CHAP_I=63 CHAP_C=0x00112233445566778899aabbccddeeff");
        if (i == 1) {
            CU_ASSERT_FATAL(fake.established);
            fake_session(fake.res.initiator, fake.res.node);
            login_established(&fake.c, LS_OK);
        }
        CU_ASSERT(goes_on(to[i]));
        CU_ASSERT(has("CHAP_N", "the target") && has("CHAP_R", vectors[2].mutual));
    }
}

static void
test_order(void)
{
    static const char *const early[] = {
        "CHAP_N=user", "CHAP_R=0x00",          "CHAP_I=1",
        "CHAP_C=0x00", "CHAP_A=5 CHAP_N=user", "CHAP_N=user CHAP_R=0x00"};
    static const char *const late[] = {"CHAP_A=5",
                                       "CHAP_A=5 CHAP_N=user CHAP_R=0x00",
                                       "CHAP_N=user",
                                       "CHAP_R=0x00",
                                       "CHAP_I=1",
                                       "CHAP_C=0x00",
                                       "CHAP_I=1 CHAP_C=0x0011"};
    static const char *const over[] = {"CHAP_A=5", "CHAP_A=6",    "CHAP_N=user",
                                       "CHAP_I=1", "CHAP_C=0x00", "CHAP_R=0x00"};
    demand_usual();
    for (size_t i = 0; i < sizeof early / sizeof early[0]; i++) {
        (void)fake_connect(peer, "192.0.2.1");
        send_bytes(0, NAMES "AuthMethod=CHAP", sizeof(NAMES "AuthMethod=CHAP"));
        say(0, early[i]);
        CU_ASSERT(fake.closed && status() >> 8 == 2);
    }
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
        begin(0, "5");
        say(0, late[i]);
        CU_ASSERT(fake.closed && status() >> 8 == 2);
    }
    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++) {
        begin(0, "5");
        respond_as(0, "user", CHAP_ALG_MD5, secret, ""); /* without T */
        CU_ASSERT(goes_on(0) && fake.len == 0);
        say(T01, over[i]);
        CU_ASSERT(fake.closed && status() >> 8 == 2);
    }
    begin(0, "5"); /* and in the next stage */
    respond_as(T01, "user", CHAP_ALG_MD5, secret, "");
    say(T | STAGES(1, 3), "CHAP_A=5");
    CU_ASSERT(fake.closed && status() >> 8 == 2 && !fake.established);
    begin(0, "5"); /* nothing but T after it is done */
    respond_as(0, "user", CHAP_ALG_MD5, secret, "");
    send_bytes(T01, NULL, 0);
    CU_ASSERT(goes_on(T01));
    /* where nobody authenticates, CHAP's keys have no place */
    demand(NULL);
    (void)fake_connect(peer, "192.0.2.1");
    send_bytes(0, NAMES "AuthMethod=None", sizeof(NAMES "AuthMethod=None"));
    say(T01, "CHAP_A=5");
    CU_ASSERT(fake.closed && status() >> 8 == 2);
    (void)fake_connect(peer, "192.0.2.1");
    send_bytes(0, NAMES "AuthMethod=CHAP,None", sizeof(NAMES "AuthMethod=CHAP,None"));
    CU_ASSERT(has("AuthMethod", "None"));
    (void)fake_connect(peer, "192.0.2.1");
    send_bytes(0, NAMES "AuthMethod=CHAP", sizeof(NAMES "AuthMethod=CHAP"));
    CU_ASSERT(is_refusal(0x0201));
}

/* Challenges differ, and a response of another login is worth nothing (9.2.1). */
static void
test_replay(void)
{
    uint8_t first[CHAP_CHALLENGE_MAX], first_id;
    demand_usual();
    begin(0, "5");
    memcpy(first, challenge, sizeof first);
    first_id = id;
    respond_as(T01, "user", CHAP_ALG_MD5, secret, "");
    CU_ASSERT(goes_on(T01));
    begin(0, "5");
    CU_ASSERT_NOT_EQUAL(memcmp(first, challenge, challenge_len), 0);
    memcpy(challenge, first, sizeof first);
    id = first_id;
    respond_as(T01, "user", CHAP_ALG_MD5, secret, "");
    CU_ASSERT(is_refusal(0x0201));
}

static void
test_discovery(void)
{
    static const struct want want[] = {{"finder", {NULL}}};
    static const char names[] = "InitiatorName=" INITIATOR "\0SessionType=Discovery\0";
    demand_usual();
    (void)fake_connect(peer, "192.0.2.1"); /* a target's accounts are not discovery's */
    send_bytes(T | STAGES(1, 3), names, sizeof names - 1);
    CU_ASSERT(fake.established);
    fake.set.discovery = make_set(want, 1, NULL, CHAP_ALG_ALL, false);
    (void)fake_connect(peer, "192.0.2.1");
    send_bytes(T | STAGES(1, 3), names, sizeof names - 1);
    CU_ASSERT(is_refusal(0x0201));
    for (unsigned i = 0; i < 2; i++) {
        (void)fake_connect(peer, "192.0.2.1");
        send_bytes(0, names, sizeof names - 1);
        say(0, "AuthMethod=None,CHAP");
        CU_ASSERT(has("AuthMethod", "CHAP"));
        say(0, "CHAP_A=5");
        take_challenge();
        respond_as(T01, i ? "user" : "finder", CHAP_ALG_MD5, secret, "");
        CU_ASSERT(i ? is_refusal(0x0201) : goes_on(T01));
    }
    login_free(&fake.c);
    account_set_put(fake.set.discovery);
    fake.set.discovery = NULL;
}

/* --- mutual ----------------------------------------------------------------------------------- */

static void
test_mutual(void)
{
    static const char *const ids[] = {"63", "0x3f", "0X3F"};
    demand_usual();
    for (size_t i = 0; i < NVECTORS; i++) {
        char more[128];
        (void)snprintf(more, sizeof more, "CHAP_I=%s CHAP_C=%s", ids[i % 3],
                       i % 2 ? "0bABEiM0RVZneImaq7zN3u/w==" : "0x00112233445566778899AABBCCDDEEFF");
        begin(0, vectors[i].number);
        respond_as(T01, "user", vectors[i].bit, secret, more);
        CU_ASSERT(goes_on(T01));
        CU_ASSERT(has("CHAP_N", "the target") && has("CHAP_R", vectors[i].mutual));
    }
    begin(0, "5"); /* who is not right learns nothing of ours */
    respond_as(T01, "user", CHAP_ALG_MD5, out_secret,
               "CHAP_I=63 CHAP_C=0x00112233445566778899aabbccddeeff");
    CU_ASSERT(is_refusal(0x0201));
}

static void
test_mutual_limits(void)
{
    char more[5000];
    demand_usual();
    begin(0, "5");
    int n = snprintf(more, sizeof more, "CHAP_I=1 CHAP_C=0x");
    for (int i = 0; i < 1024; i++)
        memcpy(more + n + 2 * i, "5a", 3);
    respond_as(T01, "user", CHAP_ALG_MD5, secret, more);
    CU_ASSERT(goes_on(T01) && has("CHAP_R", "0xa57658ffa47a8910c3854520567050e7"));
    begin(0, "5");
    memcpy(more + n + 2048, "5a", 3);
    respond_as(T01, "user", CHAP_ALG_MD5, secret, more);
    CU_ASSERT(is_refusal(0x0201));
    static const char *const bad[] = {
        "CHAP_I=1",
        "CHAP_C=0x0011",
        "CHAP_I=256 CHAP_C=0x0011",
        "CHAP_I=-1 CHAP_C=0x0011",
        "CHAP_I=1x CHAP_C=0x0011",
        "CHAP_I= CHAP_C=0x0011",
        "CHAP_I=1 CHAP_C=",
        "CHAP_I=1 CHAP_C=0x",
        "CHAP_I=1 CHAP_C=0x001",
        "CHAP_I=1 CHAP_C=17",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        begin(0, "5");
        respond_as(T01, "user", CHAP_ALG_MD5, secret, bad[i]);
        CU_ASSERT(is_refusal(0x0201));
    }
}

/* An initiator must not believe that the target proved itself: so it is refused. */
static void
test_mutual_without_account(void)
{
    static const struct want want[] = {{"user", {NULL}}};
    demand(make_set(want, 1, NULL, CHAP_ALG_ALL, false));
    begin(0, "5");
    respond_as(T01, "user", CHAP_ALG_MD5, secret, "CHAP_I=1 CHAP_C=0x00112233445566778899");
    CU_ASSERT(is_refusal(0x0201));
    demand(make_set(want, 1, secret, CHAP_ALG_ALL, false)); /* one secret both ways (9.2.1) */
    begin(0, "5");
    respond_as(T01, "user", CHAP_ALG_MD5, secret, "CHAP_I=1 CHAP_C=0x00112233445566778899");
    CU_ASSERT(is_refusal(0x0201));
}

static void
test_reflection(void)
{
    char more[128], text[2 * CHAP_CHALLENGE_LEN + 3];
    demand_usual();
    begin(0, "5"); /* of this connection */
    (void)snprintf(more, sizeof more, "CHAP_I=%u CHAP_C=%s", id, fake_value("CHAP_C"));
    respond_as(T01, "user", CHAP_ALG_MD5, secret, more);
    CU_ASSERT(is_refusal(0x0201));
    begin(0, "5"); /* of another one that goes on meanwhile */
    uint8_t old[CHAP_CHALLENGE_LEN];
    memcpy(old, challenge, sizeof old);
    begin(0, "5");
    base64(old, sizeof old, text);
    (void)snprintf(more, sizeof more, "CHAP_I=77 CHAP_C=0b%s", text);
    respond_as(T01, "user", CHAP_ALG_MD5, secret, more);
    CU_ASSERT(is_refusal(0x0201));
}

/* --- the brake -------------------------------------------------------------------------------- */

static void
pass_ms(unsigned ms)
{
    clock_fake_advance(ms * 1000ull);
    for (unsigned i = 0; i < 3; i++)
        worker_turn(fake.w, false);
}

static void
fail_once(void)
{
    begin(0, "5");
    fake.c.login_due_ms = clock_ms() + 15000;
    respond_as(T01, "user", CHAP_ALG_MD5, out_secret, "");
}

static void
test_brake_in_login(void)
{
    demand_usual();
    clock_fake_set(1000000000);
    chap_slow_reset();
    tgt_opts.login_delay_ms = 1000;
    for (unsigned i = 0; i < 3; i++) {
        fail_once();
        CU_ASSERT(is_refusal(0x0201)); /* at once */
    }
    fail_once();
    unsigned sent = fake.sent;
    CU_ASSERT(fake.paused && !fake.closed);
    pass_ms(200);
    CU_ASSERT_EQUAL(fake.sent, sent);
    pass_ms(100);
    CU_ASSERT(fake.sent == sent + 1 && is_refusal(0x0201));
    /* the right secret from there waits too, and then goes on */
    begin(0, "5");
    fake.c.login_due_ms = clock_ms() + 15000;
    respond_as(T01, "user", CHAP_ALG_MD5, secret, "");
    sent = fake.sent;
    CU_ASSERT(fake.paused && !fake.closed);
    pass_ms(300);
    CU_ASSERT(fake.sent == sent + 1 && goes_on(T01) && !fake.paused);
    /* the connection ends meanwhile: nothing comes of it */
    fail_once();
    CU_ASSERT(fake.paused);
    login_free(&fake.c);
    sent = fake.sent;
    pass_ms(2000);
    CU_ASSERT_EQUAL(fake.sent, sent);
    /* the right secret from elsewhere does not wait */
    (void)snprintf(peer, sizeof peer, "192.0.2.77");
    begin(0, "5");
    fake.c.login_due_ms = clock_ms() + 15000;
    respond_as(T01, "user", CHAP_ALG_MD5, secret, "");
    CU_ASSERT(goes_on(T01));
    /* a wrong one for that account does: somebody who tries from many addresses */
    fail_once();
    CU_ASSERT(fake.paused && !fake.closed);
    tgt_opts.login_delay_ms = 0;
    (void)snprintf(peer, sizeof peer, "192.0.2.9");
    chap_slow_reset();
    clock_fake_off();
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"each algorithm", test_each_algorithm},
        {"choice of the algorithm", test_choice},
        {"allowed algorithms", test_allowed},
        {"number 7 of old", test_legacy_number},
        {"forms of the response", test_response_forms},
        {"names", test_names},
        {"limited to initiators", test_limited_to_initiators},
        {"no way around", test_no_way_around},
        {"T bit", test_t_bit},
        {"order of keys", test_order},
        {"replay", test_replay},
        {"discovery", test_discovery},
        {"mutual", test_mutual},
        {"mutual: limits", test_mutual_limits},
        {"mutual: without an account", test_mutual_without_account},
        {"reflection", test_reflection},
        {"brake in a login", test_brake_in_login},
    };
    secret = secret_new(SECRET, strlen(SECRET));
    out_secret = secret_new(OUT_SECRET, strlen(OUT_SECRET));
    fake_begin();
    node = fake_node(TARGET, "ALL");
    int rc = UNIT_RUN("chap", tests);
    demand(NULL);
    fake_end();
    secret_put(secret);
    secret_put(out_secret);
    return rc;
}
