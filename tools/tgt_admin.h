/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to tgt-admin: tgt_admin.c (the command line), tgt_admin_daemon.c (requests; what needs no
 * configuration), tgt_admin_conf.c (--execute and --update), tgt_admin_lines.c (a target as lines
 * of tgtadm).
 */
#ifndef TOOLS_TGT_ADMIN_H
#define TOOLS_TGT_ADMIN_H

#include <jansson.h>
#include <stdbool.h>

struct conf;
struct conf_target;

struct tgt_admin {
    const char *conf; /* -c, or NULL */
    bool execute, show, dump, pretend, verbose, force, ignore_errors;
    const char *del, *offline, *ready, *update; /* their values */
    int status;                                 /* of the first wish that was not met; 0 */
    bool broken; /* not only because something is in use: the end, unless ignore_errors */
};

/* --- tgt_admin.c ----------------------------------------------------------------------------- */

/* A line of what is done (--verbose) or would be (--pretend). */
void ta_say(const struct tgt_admin *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Whether there is reason to do the rest. */
bool ta_go_on(const struct tgt_admin *t);
/* Why a wish is not met, on stderr; t->status and t->broken. */
void ta_fault(struct tgt_admin *t, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --- tgt_admin_daemon.c ---------------------------------------------------------------------- */

/* The daemon's answer; args is consumed. */
json_t *ta_ask(const char *mode, const char *op, json_t *args);
bool ta_ok(const json_t *reply);
const char *ta_code(const json_t *reply); /* "no-target", ...; "" when all is well */
const char *ta_words(const json_t *reply);
/* Asks, unless --pretend. line: what tgtadm would be called with, which is shown when it fails. */
bool ta_do(struct tgt_admin *t, const char *line, const char *mode, const char *op, json_t *args);

/* The targets there are now, by tid: an array for json_decref. */
json_t *ta_targets(void);
const json_t *ta_by_name(const json_t *targets, const char *name);
const json_t *ta_by_tid(const json_t *targets, const char *tid);
bool ta_in_use(const json_t *target);
/* What is printed when a target is left alone because of its sessions; doing: "deleted", "updated".
 */
void ta_used(struct tgt_admin *t, const json_t *target, const char *doing);
/* Deletes; how: "deleted", "updated" in what is said when it is in use. */
void ta_delete(struct tgt_admin *t, const json_t *target, const char *how);

void ta_show(struct tgt_admin *t);
void ta_delete_all(struct tgt_admin *t);                                  /* t->del */
void ta_state(struct tgt_admin *t, const char *state, const char *which); /* "offline", "ready" */
/* The first line of --dump. */
#define TA_DUMP_MARK "# The running configuration of evtgtd; see evtgt.conf(5)"
void ta_dump(struct tgt_admin *t);

/* --- tgt_admin_conf.c ------------------------------------------------------------------------ */

void ta_execute(struct tgt_admin *t);
void ta_update(struct tgt_admin *t);

/* --- tgt_admin_lines.c ----------------------------------------------------------------------- */

/* The lines of tgtadm that make the target, in tgt-admin's order; no secret is in them. known:
 * names of accounts that need not be made. */
void ta_lines(const struct tgt_admin *t, const struct conf_target *target, long long tid,
              const json_t *known);

#endif
