/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CHAP accounts as the workers see them.  An account is a name, a secret and perhaps the initiator
 * names that may use it; a set is what one target (or discovery) demands and offers.  Both are
 * immutable and counted; sets are published with the targets (struct tgt_node) by main.  Any
 * thread.
 */
#ifndef TARGET_ACCOUNT_H
#define TARGET_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ref.h"
#include "base/secret.h"

#define ACCOUNT_NAME_MAX   255u /* bytes */
#define ACCOUNT_SECRET_MIN 12u  /* bytes: 96 bits, RFC 7143 9.2.1; shorter ones are warned about */

struct account {
    struct ref ref;
    char *user; /* CHAP_N, byte for byte */
    struct secret *secret;
    struct acl *names; /* initiator names that may use it; NULL: all */
    char **name_texts; /* the same as they were given, NULL behind the last; or NULL */
};

/* Takes a reference of secret. names: NULL-terminated patterns (see acl_new) or NULL. NULL and err
 * when a name or a pattern is wrong. */
struct account *account_new(const char *user, struct secret *secret, const char *const *names,
                            char *err, size_t errsize);
struct account *account_get(struct account *a);
void account_put(struct account *a); /* NULL: nothing */

struct account_set {
    struct ref ref;
    uint32_t algs;       /* CHAP_ALG_* that may be used */
    bool sha1_7;         /* number 7 is SHA-1, as old tgt and IET have it */
    struct account *out; /* how the target proves itself, or NULL */
    unsigned nin;
    struct account *in[]; /* who may log in */
};

/* Takes references. */
struct account_set *account_set_new(struct account *const *in, unsigned nin, struct account *out,
                                    uint32_t algs, bool sha1_7);
struct account_set *account_set_get(struct account_set *s); /* NULL: NULL */
void account_set_put(struct account_set *s);                /* NULL: nothing */
/* Must an initiator authenticate itself? NULL: no. */
bool account_set_demands(const struct account_set *s);
/* The account of that name that this initiator (folded name) may use, or NULL. */
struct account *account_find(const struct account_set *s, const char *user, const char *initiator);
/* Is a login by this account (NULL: by none) what the set wants? For a login that began under an
 * older set. */
bool account_set_admits(const struct account_set *s, const struct account *a);

#endif
