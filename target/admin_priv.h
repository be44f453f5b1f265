/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to admin*.c.  A request is one line; it is checked and routed by admin_req.c to a verb
 * (mode x op), which answers exactly once by admin_ok or admin_fail, at once or later.  One
 * request is under way at a time.  A request that takes longer than its deadline is answered with
 * an error and the queue goes on; what the verb answers afterwards is dropped, and it can ask
 * (admin_is_late) so as to leave nothing behind.  Main only.
 */
#ifndef TARGET_ADMIN_PRIV_H
#define TARGET_ADMIN_PRIV_H

#include <jansson.h>
#include <stdbool.h>

#include "target/model.h"

#define ADMIN_VERSION  1
#define ADMIN_LINE_MAX (16u << 20)
#define ADMIN_HELD_MAX (64u << 20)  /* bytes that all clients together have sent and wait for */
#define ADMIN_SMALL    (64u << 10)  /* longer lines are looked at before they are read as JSON */
#define ADMIN_VALUES   (256u << 10) /* values that a longer line may have */

enum admin_code { /* code, and the words tgtadm's callers look for */
                  AE_INVALID,
                  AE_NO_DRIVER,
                  AE_NO_TARGET,
                  AE_NO_LUN,
                  AE_NO_SESSION,
                  AE_NO_CONNECTION,
                  AE_TARGET_EXISTS,
                  AE_LUN_EXISTS,
                  AE_RULE_EXISTS,
                  AE_NO_RULE,
                  AE_ACCOUNT_EXISTS,
                  AE_NO_ACCOUNT,
                  AE_OUTGOING_EXISTS,
                  AE_TARGET_ACTIVE,
                  AE_CONFIG,
                  AE_NOT_SAVED,
                  AE_LUN_ACTIVE,
                  AE_DRIVER_ACTIVE,
                  AE_REMOVAL_PREVENTED,
                  AE_UNKNOWN_PARAMETER,
                  AE_UNSUPPORTED,
                  AE_TIMEOUT,
                  AE_COUNT
};

struct admin_req {
    json_t *args; /* object; never NULL */
    /* who gets the answer */
    void (*answer)(struct admin_req *r, json_t *reply, void *arg);
    void *answer_arg;
    bool late; /* the deadline is over: answered already */
    bool over; /* the verb has answered */
    int refs;
    /* for the verb */
    struct model_target *target;
    unsigned tid, lun;
    void *data;
    /* what it changes, for who wants it saved */
    bool keep;       /* "persist", or autosave is on */
    bool reloads;    /* the service manager waits for the end */
    json_t *touched; /* names of targets; NULL: none */
    bool touched_globals;
    json_t *reply; /* waits for the saving */
};

/* admin_req.c: parses and runs one line.  *slot is the request from before the verb runs;
 * answer(r, reply) comes exactly once, perhaps inside this call (reply: a new reference), and r is
 * not to be touched after it.  Fuzzed. */
void admin_req_run(const char *line, size_t len, struct admin_req **slot,
                   void (*answer)(struct admin_req *r, json_t *reply, void *arg), void *arg);
/* The deadline: answered with AE_TIMEOUT unless it is answered already. */
void admin_req_timeout(struct admin_req *r);

/* data: stolen reference or NULL. */
void admin_ok(struct admin_req *r, json_t *data);
/* fmt: more about it, after the code's own words; NULL: nothing. */
void admin_fail(struct admin_req *r, enum admin_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same with data beside the error; steals it. */
void admin_fail_data(struct admin_req *r, enum admin_code code, json_t *data, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The request changes this target, or what stands outside of targets: saved when it is over and
 * has gone well, if that is wanted. */
void admin_touch(struct admin_req *r, const char *target);
void admin_touch_globals(struct admin_req *r);
static inline bool
admin_is_late(const struct admin_req *r)
{
    return r->late;
}

/* Arguments. NULL / false: absent (or of the wrong type: then answered with AE_INVALID and
 * *bad set). */
const char *admin_str(struct admin_req *r, const char *name, bool *bad);
bool admin_uint(struct admin_req *r, const char *name, unsigned max, unsigned *out, bool *bad);
/* r->target from "tid"; false: answered. */
bool admin_target(struct admin_req *r);

/* Publishes and answers: ok when every worker has it. */
void admin_publish(struct admin_req *r);
/* The same, with data (stolen). */
void admin_publish_with(struct admin_req *r, json_t *data);

/* The verbs, one function a row of the table in admin_req.c. */
void admin_target_new(struct admin_req *r);
void admin_target_delete(struct admin_req *r);
void admin_target_show(struct admin_req *r);
void admin_target_update(struct admin_req *r);
void admin_target_bind(struct admin_req *r);
void admin_target_unbind(struct admin_req *r);
void admin_lun_new(struct admin_req *r);
void admin_lun_delete(struct admin_req *r);
void admin_lun_update(struct admin_req *r);
void admin_lun_acknowledge(struct admin_req *r);
void admin_zram_show(struct admin_req *r);
void admin_zram_compact(struct admin_req *r);
void admin_zram_recompress(struct admin_req *r);
void admin_sess_show(struct admin_req *r);
void admin_sess_delete(struct admin_req *r);
void admin_conn_delete(struct admin_req *r);
void admin_sess_stat(struct admin_req *r);
void admin_lun_stat(struct admin_req *r);
void admin_lld_start(struct admin_req *r);
void admin_lld_stop(struct admin_req *r);
void admin_sess_renegotiate(struct admin_req *r);
void admin_target_drain(struct admin_req *r);
void admin_target_undrain(struct admin_req *r);
void admin_system_drain(struct admin_req *r);
void admin_system_undrain(struct admin_req *r);
void admin_portal_show(struct admin_req *r);
void admin_portal_new(struct admin_req *r);
void admin_portal_delete(struct admin_req *r);
/* admin_portal.c: a bind or unbind that names a portal or group; false: it names none. r->target is
 * set. */
bool admin_portal_bind(struct admin_req *r, bool on);
json_t *admin_portal_binds(const struct model_target *t); /* for show */
void admin_system_show(struct admin_req *r);
void admin_system_update(struct admin_req *r);
void admin_system_delete(struct admin_req *r);
void admin_lld_show(struct admin_req *r);
void admin_config_export(struct admin_req *r);
void admin_config_import(struct admin_req *r);
void admin_config_dump(struct admin_req *r);
void admin_config_apply(struct admin_req *r);
void admin_config_reload(struct admin_req *r);
void admin_config_save(struct admin_req *r);
void admin_config_forget(struct admin_req *r);
void admin_config_saved(struct admin_req *r);
void admin_account_new(struct admin_req *r);
void admin_account_delete(struct admin_req *r);
void admin_account_show(struct admin_req *r);
void admin_account_bind(struct admin_req *r);
void admin_account_unbind(struct admin_req *r);

/* admin_sess.c: sessions of all workers, gathered: then(r, sessions) on main; `sessions` is an
 * array of objects sorted by sid, borrowed. target NULL: all. */
void admin_sess_gather(struct admin_req *r, const char *target,
                       void (*then)(struct admin_req *r, json_t *sessions));
/* Names bound there, without secrets. */
json_t *admin_account_list(const struct model_auth *where);
json_t *admin_counters_json(void);
json_t *admin_stat_json(const struct scsi_stat *s);
json_t *admin_lun_json(const struct model_lun *l);

extern void (*admin_stop_daemon)(void);

#endif
