/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Authentication methods as login.c sees them: one row each in its table.  A method owns the
 * rounds of the security stage from the moment AuthMethod was agreed until it says AUTH_DONE.
 */
#ifndef TARGET_AUTH_H
#define TARGET_AUTH_H

#include "target/nego.h"

struct account;
struct account_set;

enum auth_step {
    AUTH_MORE,   /* another round is needed; the stage must not be left */
    AUTH_DONE,   /* the initiator is who it says */
    AUTH_FAILED, /* 02/01 */
};

/* One authentication; lives in the login. */
struct auth {
    const struct auth_method *method; /* NULL: none agreed yet */
    bool done;
    bool judged;                  /* a proof was looked at: the answer may be held back */
    struct nego *nego;            /* of the login: nego_offered gives the keys of this round */
    const char *initiator;        /* folded */
    const struct tgt_node *node;  /* NULL: discovery */
    struct account_set *accounts; /* of the node or of discovery, a reference; NULL: none */
    struct account *account;      /* whose proof was right, a reference; NULL: none */
    char user[256];               /* as the initiator calls itself, for the log and the brake */
    const char *why;              /* static text, set with AUTH_FAILED */
    void *priv;                   /* the method's */
};

struct auth_method {
    uint32_t bit; /* of its word in the AuthMethod row */
    /* One text of the initiator was read and answered by the rows; appends the method's keys. */
    enum auth_step (*step)(struct auth *a, struct text_out *out);
    void (*free)(struct auth *a); /* may be NULL */
};

extern const struct auth_method chap_method; /* chap.c */

#endif
