/* SPDX-License-Identifier: BSD-2-Clause */
/* Pieces that several verbs share. */
#ifndef TOOLS_VERB_PARTS_H
#define TOOLS_VERB_PARTS_H

#include "tools/verb.h"

/* verb_target.c */
void lun_table(const json_t *luns);
void session_table(const json_t *sessions, bool with_target);
void print_rules(const json_t *target);
/* NAME=VALUE arguments from the n-th on, as an object of strings. */
json_t *settings_args(struct call *c, unsigned n);

/* verb_lun.c */
/* PATH[,name[=value]...] as params of "logicalunit new"; makes the file when asked (create=SIZE).
 * number: of the LUN; -1: not said. */
json_t *lun_spec(struct call *c, const char *text, long *number);
/* Lowest number from 1 that no LUN of the array has. */
long lun_free(const json_t *luns);

/* verb_access.c */
/* What a rule is: "address" or "initiator". */
const char *acl_kind(const char *rule);
/* How an initiator connects, after a target was made or opened. */
void next_connect(struct call *c, const char *name);

/* verb_conf.c */
/* Of an answer of apply or reload: messages on standard error, changes as a table. */
void conf_print_messages(const json_t *data);
void conf_print_changes(const json_t *data);

/* --- verb_complete.c, verb_complete_old.c ---------------------------------------------------- */

/* Offers what a place stands for, as far as it begins with start: TARGET, FILE, a|b|c. */
void complete_place(const char *start, const char *place);
/* Whether evtgtadm has this other name. */
bool complete_knows(const char *program);

#endif
