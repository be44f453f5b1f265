/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A configuration applied to a daemon that has one: what is there now as a configuration, the
 * difference to another one, and making it so.  Private to apply*.c, but for what says otherwise.
 *
 *   apply_view.c    model -> struct conf           apply_opts.c   settings of the daemon as a whole
 *   apply_diff.c    two configurations -> list of changes; knows nothing of the model
 *   apply_run.c     one application: reading, checks, preparation, the change, the end
 *   apply_prepare.c stores and portals that are opened first and closed again on failure
 *   apply_commit.c  the change itself, at once on main
 *   apply_source.c  where a configuration comes from
 *   apply_users.c   who would notice               apply_target.c  settings -> model
 *   apply_saved.c   what is saved in the control store and laid over the file
 *
 * Main only, but for the bodies of helper jobs.
 */
#ifndef TARGET_APPLY_H
#define TARGET_APPLY_H

#include <stdbool.h>

#include "conf/conf.h"
#include "conf/source.h"
#include "target/apply_ask.h"
#include "target/apply_saved.h"
#include "target/model.h"

/* --- apply_opts.c ---------------------------------------------------------------------------- */

/* A setting that stands outside of targets and is one number. */
struct apply_opt {
    const char *name; /* the directive */
    size_t conf;      /* of its field in struct conf */
    int opt;          /* of its field in struct tgt_opts; -1: only a new start heeds it */
    unsigned initial; /* what CONF_UNSET stands for; with a field in tgt_opts: what it began with */
};
extern const struct apply_opt apply_opts[];
extern const unsigned apply_nopts;
unsigned apply_opt_of(const struct apply_opt *o, const struct conf *c); /* unset: what it is then */

/* --- apply_view.c ---------------------------------------------------------------------------- */

/* Positions of what apply_view gives name this file, and line 0. */
extern const char apply_running[];
void apply_view_accounts(struct conf_accounts *list, const struct model_auth *where);
void apply_view_unbound(struct conf_accounts *list); /* those that are bound nowhere */
/* What there is now; the caller frees it. Drains, State offline of the whole daemon and debugging
 * are no configuration. */
struct conf *apply_view(void);
/* The target of that name alone; NULL: there is none. */
struct conf *apply_view_target(const char *name);

/* --- apply_diff.c ---------------------------------------------------------------------------- */

enum apply_how { HOW_LIVE, HOW_SESSIONS, HOW_LUN, HOW_RESTART };
const char *apply_how_name(enum apply_how how);

enum apply_op {
    OP_NOTE,          /* for people only: part of another, or for the next start */
    OP_GLOBAL,        /* settings of the daemon, accounts and discovery too */
    OP_PORTAL_ADD,    /* portal: index in `want` */
    OP_PORTAL_CHANGE, /* group or advertise; of `want` */
    OP_PORTAL_DEL,    /* of `have` */
    OP_TARGET_ADD,
    OP_TARGET_DEL,
    OP_TARGET_SET, /* everything but its LUNs */
    OP_LUN_ADD,
    OP_LUN_DEL,
    OP_LUN_SET,     /* live settings */
    OP_LUN_REPLACE, /* taken away and made anew */
};

struct apply_change {
    enum apply_op op;
    enum apply_how how;
    const struct conf_target *have, *want; /* of targets and LUNs; NULL: not there */
    const struct conf_lun *lun_have, *lun_want;
    const struct conf_portal *portal;
    char *target; /* its name; NULL: the daemon */
    char *what;   /* for people: no secret */
};

struct apply_job;

struct apply_plan {
    struct apply_change *v;
    unsigned n;
};

/* Borrows from both; started: settings the daemon started with (struct conf without targets), for
 * those that only a start heeds. */
void apply_diff(struct apply_plan *p, const struct conf *have, const struct conf *want,
                const struct conf *started);
void apply_plan_fini(struct apply_plan *p);
/* apply_diff_target.c */
void apply_plan_add(struct apply_plan *p, struct apply_change ch, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void apply_diff_target(struct apply_plan *p, const struct conf_target *have,
                       const struct conf_target *want);
/* Which came, went or changed; what: "user". False: none. */
bool apply_diff_accounts(struct apply_plan *p, const char *target, const char *what,
                         const struct conf_accounts *have, const struct conf_accounts *want);
bool apply_same_accounts(const struct conf_accounts *a, const struct conf_accounts *b);
void apply_diff_luns(struct apply_plan *p, const struct conf_target *have,
                     const struct conf_target *want);
/* Its settings of redirection, a new reference; NULL: none. Judged before. */
struct redirect *apply_redirect(const struct conf_target *t);

/* --- apply_target.c -------------------------------------------------------------------------- */

/* Everything but its LUNs, whatever it was before. */
void apply_target_set(struct model_target *t, const struct conf_target *ct);
/* The daemon as a whole: accounts, discovery, iSNS when it runs, options. */
void apply_globals_set(const struct conf *c);
/* Accounts that are bound nowhere: after all that binds and unbinds. */
void apply_unbound_set(const struct conf_accounts *list);
/* Binds nothing any more; accounts that nobody else binds go. */
void apply_auth_clear(struct model_auth *where);
struct isns_settings;
/* 0, or -EINVAL and why. */
int apply_isns(const struct conf *c, struct isns_settings *s, char *err, size_t errsize);
struct portal_spec apply_portal_spec(const struct conf_portal *p);
/* Its settings by conf_lun, live: 0, or -EINVAL and err. check: nothing is changed. */
int apply_lun_set(struct store *s, const struct conf_lun *l, bool check, char *err, size_t errsize);

/* --- apply_run.c: one application ------------------------------------------------------------ */

/* A store that one or more new LUNs get. */
struct apply_slot {
    const struct conf_lun *lun;
    struct store *store;      /* a user of it; NULL: opened when the old one is closed */
    struct apply_opening *op; /* being opened for this; NULL: not, or over */
    bool late;
};

struct apply_job {
    struct apply_ask ask;
    struct helper_job helper;
    struct conf *have, *result;
    struct apply_saved_job saved; /* of a reload */
    bool usual_portals;           /* nobody names one then */
    struct conf_report report;
    struct apply_plan plan;
    enum apply_end end;
    char why[2048]; /* of an end that is not DONE, beside the report */
    /* prepared */
    struct apply_slot *slots;
    unsigned nslots;
    unsigned pending; /* stores being opened */
    struct worker_timer deadline;
    char **opened, **closed; /* names of portals */
    unsigned nopened, nclosed;
    /* changed */
    struct list dead; /* model_target.link */
    struct store **dropped;
    unsigned ndropped;
    unsigned closing;
};

/* apply_source.c: the configuration that is asked for, from the bundle or by the opener's task;
 * NULL: errors are in the report. In a helper. */
struct conf *apply_source(struct apply_job *job);
/* What the daemon was started with. */
struct apply_file {
    const char *path; /* NULL: the daemon has none */
    enum conf_syntax syntax;
    const char *listen; /* portals of the command line, or NULL */
};
/* Before the opener starts; what it points to stays. */
void apply_set_file(const struct apply_file *file);
/* Whoever may write the daemon's configuration says what is opened and where is listened. */
void apply_permit(const struct conf *c);
/* apply_users.c: who is logged in to these targets, as text for a message; "" nobody. */
void apply_users(char **targets, unsigned n, void (*then)(void *arg, const char *who), void *arg);
/* apply_prepare.c: all that may fail. then(job) with job->end; on failure nothing is left. */
void apply_prepare(struct apply_job *job, void (*then)(struct apply_job *job));
void apply_undo(struct apply_job *job);
struct apply_slot *apply_slot_find(struct apply_job *job, const struct conf_lun *l);
/* A store whose opening has ended late, or was begun late: its LUN is shown. */
void apply_store_show(struct store *s);
/* apply_commit.c: the change; then(job) when all is over. */
void apply_commit(struct apply_job *job, void (*then)(struct apply_job *job));

#endif
