/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CHAP (RFC 7143 12.1.3, RFC 1994): the method's row for login.c (chap.c) and what it is made of:
 * algorithms, challenges, binary values (chap_alg.c), and the brake on guessing (chap_slow.c).
 * Any thread; nothing blocks.
 */
#ifndef TARGET_CHAP_H
#define TARGET_CHAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct secret;

#define CHAP_DIGEST_MAX    32u   /* bytes */
#define CHAP_CHALLENGE_LEN 32u   /* bytes, of ours */
#define CHAP_CHALLENGE_MAX 1024u /* bytes, RFC 7143 12.1.3: of the initiator's */

/* --- algorithms ------------------------------------------------------------------------------ */

/* Bits CHAP_ALG_* of those that this machine's OpenSSL can do; the first call finds out, and logs
 * what is missing (a FIPS provider has no MD5). */
uint32_t chap_algs_here(void);
/* Bytes of a digest of the algorithm with this bit. */
size_t chap_digest_len(uint32_t alg);
/* RFC 1994 4.1: out = H(id, secret, challenge), chap_digest_len(alg) bytes. False: OpenSSL failed.
 */
bool chap_digest(uint32_t alg, uint8_t id, const struct secret *secret, const uint8_t *challenge,
                 size_t len, uint8_t out[CHAP_DIGEST_MAX]);
/* Tests: as if OpenSSL had only what `properties` names (NULL: everything); logs again. */
void chap_algs_probe(const char *properties);

/* --- challenges ------------------------------------------------------------------------------ */

/* A new one and its identifier. False: no randomness is to be had; nobody may log in. */
bool chap_challenge_new(uint8_t out[CHAP_CHALLENGE_LEN], uint8_t *id);
/* Was it made by chap_challenge_new of this process, whenever and for whichever connection? */
bool chap_challenge_is_ours(const uint8_t *challenge, size_t len);

/* --- binary values of text keys (RFC 7143 6.1) ------------------------------------------------ */

/* 0x, 0X: an even number of hexadecimal digits; 0b, 0B: base64 (RFC 4648 4) with its padding and no
 * stray bits. Bytes written, 1..max, or -1: not of that form, empty, longer than max. */
ssize_t chap_decode(const char *text, uint8_t *out, size_t max);
/* "0x..."; text holds 2 * len + 3 bytes. */
void chap_encode(const uint8_t *p, size_t len, char *text);

/* --- the brake (chap_slow.c) ------------------------------------------------------------------ */

/* How long the answer to a proof is to be held back, ms. By the recent failures of the peer's
 * address; a wrong proof is counted there and for the account's name at that target, and waits for
 * the worse of both. A right proof never waits for what came from other addresses. 0: at once. */
unsigned chap_slow_failed(const struct sockaddr *peer, const char *target, const char *user);
unsigned chap_slow_passed(const struct sockaddr *peer);
void chap_slow_reset(void); /* tests */

#endif
