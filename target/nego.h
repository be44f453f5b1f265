/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Negotiation of text keys by the rows of keys.c; the code knows no key by name.  One struct nego
 * is one negotiation: a whole login, or one text exchange in full feature phase.  No thread of
 * its own, no I/O; the owner is login.c or text.c.
 *
 *   nego_init -> { nego_read -> (look at nego_offered) -> nego_answer }... -> nego_finish
 */
#ifndef TARGET_NEGO_H
#define TARGET_NEGO_H

#include "target/keys.h"

#define KEY_NAME_MAX 63 /* bytes, RFC 7143 6.1 */

/* Text being built: key=value NUL, repeated; never grows beyond limit (then `over`). */
struct text_out {
    uint8_t *p; /* malloc'ed */
    size_t len, cap, limit;
    bool over;
};

void text_put(struct text_out *o, const char *key, const char *value);
void text_put_num(struct text_out *o, const char *key, uint32_t value);
void text_put_raw(struct text_out *o, const void *p, size_t len);
void text_out_free(struct text_out *o);

/* Bits, per key. */
enum nego_state {
    NS_OFFERED = 1,   /* the initiator spoke of it in an earlier text */
    NS_AGREED = 2,    /* v[] is negotiated, not a default */
    NS_PROPOSED = 4,  /* the target spoke first; closed by NS_AGREED or NS_REFUSED */
    NS_REFUSED = 8,   /* answered Reject or Irrelevant, by either side */
    NS_DECLARED = 16, /* the target has declared its own value */
};

struct nego {
    struct key_values ours;
    uint8_t phase;         /* enum key_phase, one bit */
    bool discovery;        /* session type */
    bool leading;          /* this login makes the session */
    uint32_t v[KEY_COUNT]; /* in force; lists: the bit of the word */
    uint8_t state[KEY_COUNT];
    uint64_t offer_hash[KEY_COUNT], answer_hash[KEY_COUNT];
    /* of the text being read; pointers into it */
    const uint8_t *text;
    size_t text_len;
    const char *offer[KEY_COUNT];
    /* KR_ASK keys: appends the answer */
    void (*ask)(void *arg, enum key_id id, const char *value, struct text_out *out);
    void *ask_arg;
    /* why it failed */
    enum login_status status;
    const char *why;    /* static text */
    enum key_id bad;    /* KEY_COUNT: none */
    char bad_value[64]; /* cut; the peer's bytes: escape before logging */
};

void nego_init(struct nego *n, const struct key_values *ours, enum key_phase phase);

/* Splits and checks a complete text, which must stay until nego_answer. False: the negotiation has
 * failed, see status and why. */
bool nego_read(struct nego *n, const uint8_t *text, size_t len);
/* Value of a key in the text just read, or NULL. */
const char *nego_offered(const struct nego *n, enum key_id id);
/* Decides every key of the text just read and appends the answers. False: failed. */
bool nego_answer(struct nego *n, struct text_out *out);
/* Appends what the target has to say first; each key once. Number of proposals made now. */
unsigned nego_propose(struct nego *n, struct text_out *out);
/* Target's own declaration of a number, once. */
void nego_declare(struct nego *n, enum key_id id, struct text_out *out);
/* The end: what is in force must be what this target accepts. False: failed. */
bool nego_finish(struct nego *n);

#endif
