/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rounds of CHAP (RFC 7143 12.1.3), called by login.c once for each complete text of the
 * security stage, on the connection's worker:
 *
 *   CHAP_A                           -> CHAP_A, CHAP_I, CHAP_C
 *   CHAP_N, CHAP_R [CHAP_I, CHAP_C]  -> nothing [CHAP_N, CHAP_R]
 *
 * An unknown name, a name that this initiator may not use and a wrong secret take the same way
 * through the code: a digest is computed in each case and the answer is the same.  A key out of
 * its place ends the login.
 */
#include "config.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/account.h"
#include "target/auth.h"
#include "target/chap.h"

enum chap_state { WANT_A, WANT_R, OVER };

struct chap {
    uint8_t state;      /* enum chap_state */
    const char *number; /* the algorithm as the initiator wrote it: a word of the key's row */
    uint32_t alg;       /* CHAP_ALG_*: what is computed */
    uint8_t id;
    uint8_t challenge[CHAP_CHALLENGE_LEN];
};

/* The initiator's text of the second round, decoded. */
struct proof {
    const char *user;
    uint8_t response[CHAP_DIGEST_MAX];
    bool mutual;
    uint8_t id;
    size_t challenge_len;
    uint8_t challenge[CHAP_CHALLENGE_MAX];
};

static enum auth_step
failed(struct auth *a, const char *why)
{
    struct chap *ch = a->priv;
    ch->state = OVER;
    a->why = why;
    return AUTH_FAILED;
}

/* One of the list's numbers, which may be written in hexadecimal, too (6.1): its bit, or 0. */
static uint32_t
algorithm(const char *item, size_t len)
{
    char text[24];
    uint64_t n = 0;
    if (len >= sizeof text)
        return 0;
    memcpy(text, item, len);
    text[len] = '\0';
    if (!keys_number(text, &n))
        return 0;
    (void)snprintf(text, sizeof text, "%" PRIu64, n);
    return keys_word(keys_def(KEY_CHAP_A), text, strlen(text));
}

/* The first algorithm of the initiator's list that may be used here (12.1.3). */
static bool
choose(struct chap *ch, const struct account_set *set, const char *list)
{
    const struct key_def *d = keys_def(KEY_CHAP_A);
    for (const char *p = list;; p++) {
        size_t len = strcspn(p, ",");
        uint32_t bit = algorithm(p, len);
        uint32_t computed = bit == CHAP_ALG_SHA256 && set->sha1_7 ? CHAP_ALG_SHA1 : bit;
        if ((bit & set->algs) && (computed & chap_algs_here())) {
            for (const struct key_word *w = d->words; w->name != NULL; w++)
                ch->number = w->bit == bit ? w->name : ch->number;
            ch->alg = computed;
            return true;
        }
        p += len;
        if (*p == '\0')
            return false;
    }
}

static enum auth_step
first_round(struct auth *a, struct text_out *out)
{
    struct chap *ch = a->priv;
    char text[2 * CHAP_CHALLENGE_LEN + 3];
    const char *list = nego_offered(a->nego, KEY_CHAP_A);
    if (nego_offered(a->nego, KEY_CHAP_I) != NULL || nego_offered(a->nego, KEY_CHAP_C) != NULL ||
        nego_offered(a->nego, KEY_CHAP_N) != NULL || nego_offered(a->nego, KEY_CHAP_R) != NULL)
        return failed(a, "a CHAP key before its turn");
    if (list == NULL)
        return AUTH_MORE; /* it only heard that CHAP was agreed */
    if (!choose(ch, a->accounts, list))
        return failed(a, "no CHAP algorithm that both sides have");
    if (!chap_challenge_new(ch->challenge, &ch->id))
        return failed(a, "no random bytes for a challenge");
    chap_encode(ch->challenge, sizeof ch->challenge, text);
    text_put(out, keys_def(KEY_CHAP_A)->name, ch->number);
    text_put_num(out, keys_def(KEY_CHAP_I)->name, ch->id);
    text_put(out, keys_def(KEY_CHAP_C)->name, text);
    ch->state = WANT_R;
    return AUTH_MORE;
}

/* Reads the keys of the second round. NULL: they are of the right form; else why not. */
static const char *
read_proof(const struct auth *a, struct proof *p)
{
    const struct chap *ch = a->priv;
    const char *response = nego_offered(a->nego, KEY_CHAP_R);
    const char *id = nego_offered(a->nego, KEY_CHAP_I);
    const char *challenge = nego_offered(a->nego, KEY_CHAP_C);
    ssize_t len = (ssize_t)chap_digest_len(ch->alg);
    uint64_t num = 0;
    *p = (struct proof){.user = nego_offered(a->nego, KEY_CHAP_N)};
    if (nego_offered(a->nego, KEY_CHAP_A) != NULL)
        return "CHAP_A again";
    if (p->user == NULL || response == NULL)
        return "CHAP_N and CHAP_R belong together";
    if (chap_decode(response, p->response, sizeof p->response) != len)
        return "CHAP_R is no binary value of the digest's length";
    if ((id == NULL) != (challenge == NULL))
        return "CHAP_I and CHAP_C belong together";
    if (challenge == NULL)
        return NULL;
    if (!keys_number(id, &num) || num > 255)
        return "CHAP_I is no number from 0 to 255";
    len = chap_decode(challenge, p->challenge, sizeof p->challenge);
    if (len < 0)
        return "CHAP_C is no binary value of 1 to 1024 bytes";
    p->mutual = true;
    p->id = (uint8_t)num;
    p->challenge_len = (size_t)len;
    return NULL;
}

/* What a name without an account is measured by: so it takes as long as a wrong secret. */
static struct secret *nobody;
static pthread_once_t nobody_once = PTHREAD_ONCE_INIT;

static void
make_nobody(void)
{
    static const char text[] = "sixteen  bytes..";
    nobody = secret_new(text, sizeof text - 1);
}

/* The account that the proof is right for, or NULL and *why. */
static struct account *
verify(const struct auth *a, const struct proof *p, const char **why)
{
    const struct chap *ch = a->priv;
    struct account *acc = account_find(a->accounts, p->user, a->initiator);
    uint8_t want[CHAP_DIGEST_MAX] = {0};
    (void)pthread_once(&nobody_once, make_nobody);
    *why = "OpenSSL cannot compute the digest";
    if (!chap_digest(ch->alg, ch->id, acc != NULL ? acc->secret : nobody, ch->challenge,
                     sizeof ch->challenge, want))
        return NULL;
    bool same = CRYPTO_memcmp(want, p->response, chap_digest_len(ch->alg)) == 0;
    OPENSSL_cleanse(want, sizeof want);
    *why = acc != NULL ? "wrong CHAP secret" : "no such CHAP account for this initiator";
    return acc != NULL && same ? acc : NULL;
}

/* The target's own proof. NULL: appended; else why it is not given. */
static const char *
prove(const struct auth *a, const struct account *in, const struct proof *p, struct text_out *out)
{
    const struct chap *ch = a->priv;
    const struct account *self = a->accounts->out;
    uint8_t digest[CHAP_DIGEST_MAX];
    char text[2 * CHAP_DIGEST_MAX + 3];
    if (self == NULL)
        return "the initiator wants the target to prove itself: there is no outgoing account";
    if (chap_challenge_is_ours(p->challenge, p->challenge_len))
        return "the initiator sent a challenge of this target back (reflection)";
    if (secret_same(in->secret, self->secret))
        return "incoming and outgoing account have the same secret";
    if (!chap_digest(ch->alg, p->id, self->secret, p->challenge, p->challenge_len, digest))
        return "OpenSSL cannot compute the digest";
    chap_encode(digest, chap_digest_len(ch->alg), text);
    text_put(out, keys_def(KEY_CHAP_N)->name, self->user);
    text_put(out, keys_def(KEY_CHAP_R)->name, text);
    return out->over ? "more text than a login may have" : NULL;
}

static enum auth_step
second_round(struct auth *a, struct text_out *out)
{
    struct proof p;
    bool any = false;
    for (unsigned i = KEY_CHAP_A; i <= KEY_CHAP_R; i++)
        any = any || nego_offered(a->nego, (enum key_id)i) != NULL;
    if (!any)
        return AUTH_MORE;
    const char *why = read_proof(a, &p);
    if (why != NULL)
        return failed(a, why);
    (void)snprintf(a->user, sizeof a->user, "%s", p.user);
    struct account *acc = verify(a, &p, &why);
    a->judged = true; /* also when it is right and the login fails: that must not tell it faster */
    if (acc == NULL)
        return failed(a, why);
    why = p.mutual ? prove(a, acc, &p, out) : NULL;
    if (why != NULL)
        return failed(a, why);
    struct chap *ch = a->priv;
    ch->state = OVER;
    a->account = account_get(acc);
    return AUTH_DONE;
}

static enum auth_step
chap_step(struct auth *a, struct text_out *out)
{
    struct chap *ch = a->priv;
    if (ch == NULL)
        a->priv = ch = xcalloc(1, sizeof *ch);
    switch (ch->state) {
    case WANT_A:
        return first_round(a, out);
    case WANT_R:
        return second_round(a, out);
    default:
        return failed(a, "CHAP is over");
    }
}

static void
chap_free(struct auth *a)
{
    free(a->priv);
    a->priv = NULL;
}

const struct auth_method chap_method = {AUTH_CHAP, chap_step, chap_free};
