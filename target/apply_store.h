/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to apply.c and apply_store.c: a store's way from settings to a logical unit.  Main only.
 */
#ifndef TARGET_APPLY_STORE_H
#define TARGET_APPLY_STORE_H

#include "target/model.h"

/* Would be_new take it? 0, or -EINVAL and why. No system call that can block. */
int apply_store_check(const struct conf_lun *l, char *err, size_t errsize);
/* Tells the opener what this unit opens. In a service of the opener, or on main. */
void apply_store_permit(const struct conf_lun *l);
/* The paths of the unit and its layers. */
void apply_store_paths(const struct conf_lun *l, void (*fn)(const char *path, bool made, void *arg),
                       void *arg);
/* In model.stores, one user; alone_id: identity text when the store has none of its own. */
struct store *apply_store_new(const struct conf_lun *l, const char *alone_id);
/* Tries to open it (helper); then(s) on main with s->result 0 or -errno, s->be set or NULL (then
 * s->result is -EINVAL and the reason was logged). */
void apply_store_open(struct store *s, void (*then)(struct store *s));
/* Closes a store that stays in the model, and opens it again (s->result); then(s) on main. False:
 * another job of its own is under way. */
bool apply_store_close(struct store *s, void (*then)(struct store *s));
bool apply_store_reopen(struct store *s, void (*then)(struct store *s));
/* The settings `s` would have with these changes: 0 and *next (the caller's to fini); -EINVAL and
 * why. */
int apply_lun_next(const struct store *s, const struct apply_kv *kv, unsigned n,
                   struct conf_lun *next, char *err, size_t errsize);
/* Another logical unit than s's has an identity that these settings give. */
bool apply_lun_ident_taken(const struct conf_lun *l, const struct store *s, char *err,
                           size_t errsize);
/* A read-only open cannot become writable by a word: 0, or -EINVAL and err. */
int apply_store_check_writable(const struct store *s, char *err, size_t errsize);
/* After an attempt to open: makes the LUN when there is none yet, else tells it. */
void apply_store_settle(struct store *s, int result);
/* What next says of a zram store and it can change while it serves holds from now on; s->conf is
 * what it was. 0, or -EINVAL and why. */
int apply_store_tune(struct store *s, const struct conf_lun *next, char *err, size_t errsize);
/* The LUN object for a store in whatever state; 0 or -EINVAL (logged, or in err when given). */
int apply_store_make_lun(struct store *s);
/* The settings with what the store itself says filled in. */
void apply_store_lun_conf(struct store *s, struct lun_conf *c);
/* Why the last attempt failed, for people. */
const char *apply_store_why(const struct store *s, char *buf, size_t size);

#endif
