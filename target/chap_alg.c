/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What CHAP is made of: digests through OpenSSL's EVP, challenges, binary values.
 *
 * A challenge carries its own mark: 16 random bytes, then the first 16 bytes of their HMAC under a
 * key of this process.  So a challenge that comes back, on whichever connection and however much
 * later, is known as ours without a table that would have to be bounded, locked and aged (RFC 7143
 * 9.2.1: reflection).  128 random bits do not repeat; to everybody else the mark is random, too.
 */
#include "config.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "base/secret.h"
#include "target/chap.h"
#include "target/keys.h"

#define RANDOM_LEN 16u /* of a challenge; the rest is the mark */

/* --- algorithms ------------------------------------------------------------------------------ */

static struct alg {
    uint32_t bit;
    const char *name; /* OpenSSL's */
    size_t len;
    EVP_MD *md; /* NULL: not to be had */
} algs[] = {
    {CHAP_ALG_MD5, "MD5", 16, NULL},
    {CHAP_ALG_SHA1, "SHA1", 20, NULL},
    {CHAP_ALG_SHA256, "SHA256", 32, NULL},
    {CHAP_ALG_SHA3_256, "SHA3-256", 32, NULL},
};
#define NALGS (sizeof algs / sizeof algs[0])

static pthread_once_t once = PTHREAD_ONCE_INIT;

void
chap_algs_probe(const char *properties)
{
    for (unsigned i = 0; i < NALGS; i++) {
        EVP_MD_free(algs[i].md);
        algs[i].md = EVP_MD_fetch(NULL, algs[i].name, properties);
        if (algs[i].md == NULL)
            log_event(LL_WARN, LA_LOGIN,
                      "chap-algorithm-missing name=%s why=\"OpenSSL does not offer it here\"",
                      algs[i].name);
    }
}

static void
probe_all(void)
{
    chap_algs_probe(NULL);
}

uint32_t
chap_algs_here(void)
{
    uint32_t bits = 0;
    (void)pthread_once(&once, probe_all);
    for (unsigned i = 0; i < NALGS; i++)
        bits |= algs[i].md != NULL ? algs[i].bit : 0;
    return bits;
}

static const struct alg *
find(uint32_t bit)
{
    for (unsigned i = 0; i < NALGS; i++) {
        if (algs[i].bit == bit)
            return &algs[i];
    }
    return NULL;
}

size_t
chap_digest_len(uint32_t alg)
{
    const struct alg *a = find(alg);
    return a != NULL ? a->len : 0;
}

bool
chap_digest(uint32_t alg, uint8_t id, const struct secret *secret, const uint8_t *challenge,
            size_t len, uint8_t out[CHAP_DIGEST_MAX])
{
    const struct alg *a = find(alg);
    unsigned n = 0;
    if (!(chap_algs_here() & alg) || a == NULL)
        return false;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new(); /* wiped when it is freed */
    bool ok = ctx != NULL && EVP_DigestInit_ex2(ctx, a->md, NULL) == 1 &&
              EVP_DigestUpdate(ctx, &id, 1) == 1 &&
              EVP_DigestUpdate(ctx, secret_bytes(secret), secret_len(secret)) == 1 &&
              EVP_DigestUpdate(ctx, challenge, len) == 1 && EVP_DigestFinal_ex(ctx, out, &n) == 1 &&
              n == a->len;
    EVP_MD_CTX_free(ctx);
    return ok;
}

/* --- challenges ------------------------------------------------------------------------------ */

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static uint8_t mark_key[32];
static bool have_key;

static bool
random_bytes(uint8_t *p, size_t len)
{
    while (len != 0) {
        ssize_t n = getrandom(p, len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

static void
make_key(void)
{
    have_key = random_bytes(mark_key, sizeof mark_key);
}

static bool
mark(const uint8_t *random, uint8_t out[EVP_MAX_MD_SIZE])
{
    size_t n = 0;
    (void)pthread_once(&key_once, make_key);
    return have_key &&
           EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, mark_key, sizeof mark_key, random,
                     RANDOM_LEN, out, EVP_MAX_MD_SIZE, &n) != NULL &&
           n >= CHAP_CHALLENGE_LEN - RANDOM_LEN;
}

bool
chap_challenge_new(uint8_t out[CHAP_CHALLENGE_LEN], uint8_t *id)
{
    uint8_t m[EVP_MAX_MD_SIZE];
    if (!random_bytes(out, RANDOM_LEN) || !random_bytes(id, 1) || !mark(out, m))
        return false;
    memcpy(out + RANDOM_LEN, m, CHAP_CHALLENGE_LEN - RANDOM_LEN);
    return true;
}

bool
chap_challenge_is_ours(const uint8_t *challenge, size_t len)
{
    uint8_t m[EVP_MAX_MD_SIZE];
    return len == CHAP_CHALLENGE_LEN && mark(challenge, m) &&
           CRYPTO_memcmp(m, challenge + RANDOM_LEN, CHAP_CHALLENGE_LEN - RANDOM_LEN) == 0;
}

/* --- binary values --------------------------------------------------------------------------- */

static int
hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static ssize_t
decode_hex(const char *s, size_t digits, uint8_t *out, size_t max)
{
    if (digits == 0 || digits % 2 != 0 || digits / 2 > max)
        return -1;
    for (size_t i = 0; i < digits; i += 2) {
        int hi = hex_digit(s[i]), lo = hex_digit(s[i + 1]);
        if (hi < 0 || lo < 0)
            return -1;
        out[i / 2] = (uint8_t)(hi << 4 | lo);
    }
    return (ssize_t)(digits / 2);
}

static int
base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static ssize_t
decode_base64(const char *s, size_t chars, uint8_t *out, size_t max)
{
    if (chars == 0 || chars % 4 != 0)
        return -1;
    size_t pad = s[chars - 1] != '=' ? 0 : s[chars - 2] != '=' ? 1 : 2;
    size_t len = chars / 4 * 3 - pad, n = 0;
    if (len > max)
        return -1;
    uint32_t bits = 0;
    unsigned nbits = 0;
    for (size_t i = 0; i < chars - pad; i++) {
        int d = base64_digit(s[i]);
        if (d < 0)
            return -1;
        bits = bits << 6 | (uint32_t)d;
        nbits += 6;
        if (nbits >= 8) {
            nbits -= 8;
            out[n++] = (uint8_t)(bits >> nbits);
            bits &= (1u << nbits) - 1;
        }
    }
    return bits == 0 ? (ssize_t)n : -1; /* what is left over must be zero */
}

ssize_t
chap_decode(const char *text, uint8_t *out, size_t max)
{
    size_t len = strlen(text);
    if (len < 2 || text[0] != '0')
        return -1;
    if (text[1] == 'x' || text[1] == 'X')
        return decode_hex(text + 2, len - 2, out, max);
    if (text[1] == 'b' || text[1] == 'B')
        return decode_base64(text + 2, len - 2, out, max);
    return -1;
}

void
chap_encode(const uint8_t *p, size_t len, char *text)
{
    static const char digits[] = "0123456789abcdef";
    *text++ = '0';
    *text++ = 'x';
    for (size_t i = 0; i < len; i++) {
        *text++ = digits[p[i] >> 4];
        *text++ = digits[p[i] & 15];
    }
    *text = '\0';
}
