/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What CHAP is made of (RFC 7143 6.1, 12.1.3, RFC 1994): digests, binary values, challenges, the
 * brake's table.  The digests that are expected were computed by Python's hashlib.
 */
#include "config.h"

#include "base/clock.h"
#include "target/account.h"
#include "target/chap.h"
#include "tests/unit/login_fake.h"
#include "tests/unit/unit.h"

#define TARGET "iqn.2001-04.com.example:disk"
#define SECRET "correct horse 42"

static const struct {
    uint32_t bit;
    size_t len;
    const char *digest; /* of identifier 27h, SECRET, challenge 01h..10h */
} vectors[] = {
    {CHAP_ALG_MD5, 16, "0x5a4b3c456a273e8014dcc859fa9fd561"},
    {CHAP_ALG_SHA1, 20, "0x1ce8746ee54044fc3e2ac98cb602057d3e12d2a8"},
    {CHAP_ALG_SHA256, 32, "0xabec1c65c78d86f6a9f9ea5347c2ed3000f92eda126dbf52ad413985b519423f"},
    {CHAP_ALG_SHA3_256, 32, "0x0361b45cce111e12e4a83e81350af96700e24fbb15be1f70c4d2f22bf76f1265"},
};
#define NVECTORS (sizeof vectors / sizeof vectors[0])

static struct secret *secret;

static void
test_digests(void)
{
    uint8_t ch[16], got[CHAP_DIGEST_MAX];
    char text[2 * CHAP_DIGEST_MAX + 3];
    for (uint8_t i = 0; i < 16; i++)
        ch[i] = (uint8_t)(i + 1);
    CU_ASSERT_EQUAL(chap_algs_here(), CHAP_ALG_ALL);
    for (size_t i = 0; i < NVECTORS; i++) {
        CU_ASSERT_EQUAL(chap_digest_len(vectors[i].bit), vectors[i].len);
        CU_ASSERT(chap_digest(vectors[i].bit, 0x27, secret, ch, sizeof ch, got));
        chap_encode(got, vectors[i].len, text);
        CU_ASSERT_STRING_EQUAL(text, vectors[i].digest);
    }
    CU_ASSERT_FALSE(chap_digest(16, 0x27, secret, ch, sizeof ch, got)); /* no such algorithm */
    CU_ASSERT_EQUAL(chap_digest_len(3), 0);
    const uint8_t one = 0xff;
    CU_ASSERT(chap_digest(CHAP_ALG_MD5, 0, secret, &one, 1, got));
    chap_encode(got, 16, text);
    CU_ASSERT_STRING_EQUAL(text, "0xb2db700ea343bb7a3565280f3c75696e");
}

static void
test_binary_values(void)
{
    static const struct {
        const char *text, *bytes; /* NULL: refused */
    } cases[] = {
        {"0x00", "\0"},
        {"0X4aF0", "\x4a\xf0"},
        {"0xABCdef", "\xab\xcd\xef"},
        {"0bAA==", "\0"},
        {"0BZm9v", "foo"},
        {"0bZm8=", "fo"},
        {"0b+/+/", "\xfb\xff\xbf"},
        {"", NULL},
        {"0", NULL},
        {"0x", NULL},
        {"0b", NULL},
        {"0x1", NULL},
        {"0x123", NULL},
        {"0x1g", NULL},
        {"0x 1", NULL},
        {"1234", NULL},
        {"x12", NULL},
        {"12", NULL},
        {"0c12", NULL},
        {"0bZm9", NULL},
        {"0bZm8", NULL},
        {"0bZm8==", NULL},
        {"0bZ===", NULL},
        {"0b====", NULL},
        {"0bZm=v", NULL},
        {"0bZm9=", NULL}, /* stray bits */
        {"0bZh==", NULL}, /* likewise */
        {"0bZm9vZg", NULL},
        {"0bZm9-", NULL},
        {"0bZm9 ", NULL},
        {"0x0102030405", NULL}, /* longer than there is room */
        {"0bAQIDBAU=", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t *out = malloc(4); /* exact: ASan sees a write beyond */
        CU_ASSERT_PTR_NOT_NULL_FATAL(out);
        ssize_t n = chap_decode(cases[i].text, out, 4);
        bool ok = cases[i].bytes == NULL
                      ? n == -1
                      : n > 0 && memcmp(out, cases[i].bytes, (size_t)n) == 0 &&
                            (size_t)n == (cases[i].bytes[0] ? strlen(cases[i].bytes) : 1);
        if (!ok)
            fprintf(stderr, "\"%s\": %zd\n", cases[i].text, n);
        CU_ASSERT(ok);
        free(out);
    }
    uint8_t four[4];
    CU_ASSERT_EQUAL(chap_decode("0x01020304", four, 4), 4);
    CU_ASSERT_EQUAL(chap_decode("0bAQIDBA==", four, 4), 4);
    CU_ASSERT_EQUAL(memcmp(four, "\1\2\3\4", 4), 0);
}

static void
test_challenges(void)
{
    uint8_t seen[64][CHAP_CHALLENGE_LEN], ids[64], other[CHAP_CHALLENGE_LEN + 1];
    unsigned same_id = 0;
    for (unsigned i = 0; i < 64; i++) {
        CU_ASSERT_FATAL(chap_challenge_new(seen[i], &ids[i]));
        for (unsigned k = 0; k < i; k++)
            CU_ASSERT_NOT_EQUAL(memcmp(seen[i], seen[k], CHAP_CHALLENGE_LEN), 0);
        same_id += ids[i] == ids[0];
    }
    CU_ASSERT(same_id < 8);
    for (unsigned i = 0; i < 64; i++) { /* all of them, in any order, not only the last */
        CU_ASSERT(chap_challenge_is_ours(seen[i], CHAP_CHALLENGE_LEN));
        memcpy(other, seen[i], CHAP_CHALLENGE_LEN);
        other[i % CHAP_CHALLENGE_LEN] ^= (uint8_t)(1u << i % 8);
        CU_ASSERT_FALSE(chap_challenge_is_ours(other, CHAP_CHALLENGE_LEN));
    }
    CU_ASSERT_FALSE(chap_challenge_is_ours(seen[0], CHAP_CHALLENGE_LEN - 1));
    memset(other, 0, sizeof other);
    CU_ASSERT_FALSE(chap_challenge_is_ours(other, CHAP_CHALLENGE_LEN));
    CU_ASSERT_FALSE(chap_challenge_is_ours(other, sizeof other));
    CU_ASSERT_FALSE(chap_challenge_is_ours(NULL, 0));
}

static void
test_brake_table(void)
{
    struct sockaddr_storage a = fake_addr("192.0.2.1", 1), b = fake_addr("192.0.2.1", 2);
    struct sockaddr_storage m = fake_addr("::ffff:192.0.2.1", 3), x = fake_addr("2001:db8::1", 3);
    struct sockaddr_storage y = fake_addr("2001:db8::ffff:1", 3), z = fake_addr("192.0.2.2", 1);
#define SA(s) ((const struct sockaddr *)&(s))
    clock_fake_set(5000000000);
    chap_slow_reset();
    tgt_opts.login_delay_ms = 2000;
    static const unsigned want[] = {0, 0, 0, 250, 500, 1000, 2000, 2000, 2000};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        CU_ASSERT_EQUAL(chap_slow_failed(SA(a), TARGET, "u"), want[i]);
    CU_ASSERT_EQUAL(chap_slow_passed(SA(b)), 2000); /* the port does not matter */
    CU_ASSERT_EQUAL(chap_slow_passed(SA(m)), 2000);
    CU_ASSERT_EQUAL(chap_slow_passed(SA(z)), 0);
    CU_ASSERT_EQUAL(chap_slow_failed(SA(z), TARGET, "u"), 2000); /* the account's */
    CU_ASSERT_EQUAL(chap_slow_failed(SA(z), TARGET ":b", "u"), 0);
    for (unsigned i = 0; i < 4; i++)
        (void)chap_slow_failed(SA(x), TARGET, i % 2 ? "v" : "w");
    CU_ASSERT_EQUAL(chap_slow_passed(SA(y)), 250); /* one /64 */
    clock_fake_advance(10000ull * 1000 * 20);      /* all is forgotten */
    CU_ASSERT_EQUAL(chap_slow_passed(SA(a)), 0);
    CU_ASSERT_EQUAL(chap_slow_failed(SA(a), TARGET, "u"), 0);
    /* more than the table holds: only forgets */
    for (unsigned i = 0; i < 5000; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "n%u", i);
        (void)chap_slow_failed(SA(z), TARGET, name);
    }
    CU_ASSERT_EQUAL(chap_slow_passed(SA(z)), 2000);
    chap_slow_reset();
    tgt_opts.login_delay_ms = 0;
    for (unsigned i = 0; i < 50; i++)
        CU_ASSERT_EQUAL(chap_slow_failed(SA(a), TARGET, "u"), 0);
    chap_slow_reset();
    clock_fake_off();
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"digests", test_digests},
        {"binary values", test_binary_values},
        {"challenges", test_challenges},
        {"brake: the table", test_brake_table},
    };
    secret = secret_new(SECRET, strlen(SECRET));
    int rc = UNIT_RUN("chap-alg", tests);
    secret_put(secret);
    return rc;
}
