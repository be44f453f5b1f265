/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of text keys (RFC 7143 12 and 13): one row each, read by the negotiation (nego.c), the
 * configuration (keys_set), the documentation (keys_dump).  Immutable, any thread.
 */
#ifndef TARGET_KEYS_H
#define TARGET_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/target.h"

enum key_type {
    KT_TEXT, /* up to max bytes */
    KT_NAME, /* an iSCSI name; whoever uses it checks it */
    KT_LIST, /* words in order of preference */
    KT_BOOL, /* Yes, No */
    KT_NUM,  /* min..max */
    KT_BIN,  /* a binary value of up to max bytes */
};

enum key_rule {
    KR_DECLARE, /* no answer (declarative, 6.2) */
    KR_FIRST,   /* the first word of the list that the responder supports (6.2.1) */
    KR_AND,
    KR_OR,
    KR_MIN,
    KR_MAX,
    KR_REJECT, /* obsolete: always answered Reject (13.25) */
    KR_ASK,    /* a question: the answer is made by the owner of the negotiation */
    KR_AUTH,   /* the authentication method's; never answered by the table, never logged */
};

enum key_from { KF_INITIATOR = 1, KF_TARGET = 2, KF_BOTH = 3 };
enum key_phase { KP_SECURITY = 1, KP_OPERATIONAL = 2, KP_FFP = 4, KP_LOGIN = 3, KP_ALL = 7 };
enum key_scope { KS_CONNECTION, KS_SESSION };

struct key_word {
    const char *name;
    uint32_t bit;
};

struct key_cond {
    enum key_id key;
    uint32_t value;
};

/* Bits of digest keys, and the flag that the configuration named CRC32C first. */
#define DIGEST_NONE       1u
#define DIGEST_CRC32C     2u
#define LIST_LAST_FIRST   0x80000000u
#define AUTH_NONE         1u
#define AUTH_CHAP         2u
#define CHAP_ALG_MD5      1u
#define CHAP_ALG_SHA1     2u
#define CHAP_ALG_SHA256   4u
#define CHAP_ALG_SHA3_256 8u
#define CHAP_ALG_ALL      15u
#define SESSION_NORMAL    1u
#define SESSION_DISCOVERY 2u

struct key_def {
    const char *name;
    const char *section; /* of RFC 7143 */
    uint8_t type, rule, from, phases, scope;
    bool leading_only; /* only in the login that makes the session */
    bool normal_only;  /* irrelevant when SessionType=Discovery */
    bool settable;
    bool propose;      /* the target speaks first where the default would break its own setting */
    bool must_agree;   /* no common word: the login ends with `failure`, whatever the default */
    uint16_t failure;  /* enum login_status */
    uint32_t min, max; /* RFC 7143: numbers, or bytes of text */
    uint32_t def;      /* RFC 7143: in force when nobody speaks */
    uint32_t ours;     /* what this target offers unless told otherwise */
    uint32_t lo, hi;   /* what this target can be told to offer */
    const struct key_word *words;         /* ended by a NULL name */
    const struct key_cond *irrelevant_if; /* all of them true; ended by key KEY_COUNT */
    const struct key_cond *bound;         /* its key's value is this key's upper limit */
};

const struct key_def *keys_def(enum key_id id);
/* Exact, case-sensitive (RFC 7143 6.1). KEY_COUNT: unknown. */
enum key_id keys_find(const char *name, size_t len);

/* The bit of a word of a KT_LIST key, case-sensitive; 0: none of its words. */
uint32_t keys_word(const struct key_def *d, const char *s, size_t len);

/* A value as text, as it goes on the wire: numbers, Yes and No, words in order of preference. */
void keys_value_text(enum key_id id, uint32_t v, char *out, size_t size);

/* A whole string as a decimal (no leading zero, no sign) or hexadecimal (0x, 0X) constant of at
 * most 64 bits (RFC 7143 6.1). */
bool keys_number(const char *s, uint64_t *out);

#endif
