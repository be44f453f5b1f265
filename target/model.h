/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What main knows of targets and logical units: the changeable form of what node.c publishes to
 * the workers.  Made by apply.c (configuration) and admin.c (live changes), walked by watch.c.
 * Main's thread only.
 */
#ifndef TARGET_MODEL_H
#define TARGET_MODEL_H

#include "base/helper.h"
#include "target/account.h"
#include "target/target.h"

struct conf;
struct conf_checks;
struct conf_lun;
struct conf_report;
struct cstore;

/* One logical unit and its backing store; several targets may map the same one. */
struct store {
    struct list link;         /* model.stores */
    struct list path_link;    /* model.by_path */
    struct list ident_link;   /* model.by_ident, once what it is is known */
    unsigned users;           /* model_lun entries, and an operation under way */
    struct conf_lun *conf;    /* settings; apply.c looks inside */
    char type[16];            /* "fileio", ...; "" until known */
    char *alone_id;           /* identity text of a store that has none of its own (null) */
    bool is_twin;             /* opened more than once with different settings */
    bool is_leaving;          /* another is being put in its place */
    bool is_gone;             /* removed: nobody may start anything with it */
    bool permit_stays;        /* another store of this path follows when it is closed */
    unsigned mapped, leaving; /* model_lun entries; those that a planned change takes away */
    struct backend *be;       /* NULL until its type is known */
    struct lun *lun;          /* NULL until the first attempt to open has ended */
    bool identity_known;      /* the lun's identity is the store's own */
    /* one helper job at once: open, probe or close */
    struct helper_job job;
    bool busy;
    int result;
    unsigned events;
    void (*then)(struct store *s);
    void *arg;
    void (*gone)(void *arg); /* once it is closed and freed */
    void *gone_arg;
    struct worker_timer gone_late;
};

struct model_lun {
    struct list link; /* model_target.luns, by number */
    unsigned number;
    struct store *store;
};

enum model_rule_kind { RULE_ADDRESS, RULE_NAME, RULE_LOCAL, RULE_KINDS };

struct model_rule { /* one access rule as it was given */
    struct list link;
    char *text;
    enum model_rule_kind kind;
};

/* An account that the daemon knows, by whatever way; bound to any number of places. */
struct model_account {
    struct list link; /* model.accounts, in the order given */
    struct account *account;
};

struct model_bind {
    struct list link; /* of a model_auth, in the order given */
    struct model_account *ma;
    bool outgoing;
};

/* What CHAP is to be somewhere: at a target, in discovery, or at targets that say nothing. */
struct model_auth {
    struct list binds;
    uint32_t algs;   /* CHAP_ALG_*; MODEL_UNSET: as for targets that say nothing */
    uint32_t sha1_7; /* bool, likewise */
};
#define MODEL_UNSET    0xffffffffu
#define MODEL_MAX_CMDS 128u /* a target's window unless it says otherwise */

struct model_target {
    struct list link; /* model.targets, by tid */
    unsigned tid;
    char name[ISCSI_NAME_MAX + 1];
    char given[ISCSI_NAME_MAX + 1]; /* the name as it was written: IET's ids are made of it */
    char alias[256];
    bool offline;
    bool hidden;                        /* discovery does not tell of it */
    unsigned nop_interval_s, nop_count; /* 0xffffffff: the daemon's */
    unsigned max_cmds;
    unsigned ids; /* enum conf_ids: the rules for disks that come; MODEL_UNSET: the daemon's */
    struct key_values keys;
    struct model_auth auth;
    struct portal_id *binds; /* portals and groups (name ""); none: all */
    unsigned nbinds;
    struct list rules; /* struct model_rule, in the order given */
    struct list luns;
    struct isns_dd *dd;        /* initiators in its discovery domains; NULL: not known */
    struct redirect *redirect; /* counted; NULL: nothing is set */
    struct drain *drain;       /* its own, or NULL */
    struct tgt_node *node;     /* as published last; NULL: must be made anew */
    struct lun_map *map; /* its LUNs; NULL: must be made anew. The same object as long as nothing
                            changed: a new one is announced to initiators */
};

#define MODEL_BUCKETS 1024u /* thousands of stores are looked up by path */

struct model {
    struct list targets, stores;
    struct list accounts;                /* struct model_account */
    struct model_auth auth, discovery;   /* of all targets that say nothing; of discovery */
    struct list by_path[MODEL_BUCKETS];  /* the stores again, by model_stores_at */
    struct list by_ident[MODEL_BUCKETS]; /* and by model_stores_like */
    struct worker *main;
    struct cstore *cstore;
    uint8_t seed[32];
    unsigned nop_interval_s, nop_count; /* of targets that say nothing; MODEL_UNSET: tgt_opts' */
    bool offline;        /* the whole daemon: every target answers as if it were offline */
    struct drain *drain; /* of the whole daemon, or NULL */
    enum discovery_filter filter;
    struct conf *conf;       /* what stands outside of targets, as configured last; apply*.c */
    struct conf *started;    /* the same when the daemon started */
    bool usual_portals;      /* nobody named one */
    struct acl_files *files; /* IET's access files; NULL: none are in force */
    bool dd_only;            /* access by discovery domain; where it is not known: nobody */
};
extern struct model model;

void model_init(struct worker *main_worker, struct cstore *cs);

struct model_target *model_target_new(unsigned tid, const char *name);
struct model_target *model_target_find(unsigned tid);
struct model_target *model_target_by_name(const char *name);
unsigned model_tid_free(void); /* lowest unused, from 1 */
/* Where the stores of this path are, linked by path_link; some of other paths may be there too. */
struct list *model_stores_at(const char *path);
/* The same by what a store says it is (be_identity), linked by ident_link. */
struct list *model_stores_like(const char *identity);
/* Another number, and place in the list; nobody else has it. */
void model_target_renumber(struct model_target *t, unsigned tid);
/* Unlinks and frees; its stores lose a user (see apply_store_drop). */
void model_target_free(struct model_target *t);
/* What holds for targets that say nothing of it. */
unsigned model_nop_interval_s(void);
unsigned model_nop_count(void);
/* Something of t changed: its node is made anew at the next publish. */
void model_touch(struct model_target *t);
/* The same, and it is a LUN. */
void model_touch_luns(struct model_target *t);

/* The rule that says the same: names are compared without regard to case. */
struct model_rule *model_rule_find(const struct model_target *t, const char *text,
                                   enum model_rule_kind kind);
void model_rule_add(struct model_target *t, const char *text, enum model_rule_kind kind);
void model_rule_del(struct model_target *t, struct model_rule *r);

/* account_model.c: `where` is a target's auth, &model.auth or &model.discovery. */
void model_auth_init(struct model_auth *auth, bool is_common);
void model_auth_fini(struct model_auth *auth);
/* Something of `where` changed: made anew at the next publish. */
void model_auth_touch(struct model_auth *where);
/* The first account of that name, or NULL. */
struct model_account *model_account_find(const char *user);
/* The one of that name, secret and restriction, made if need be. NULL and err: a bad name. */
struct model_account *model_account_get(const char *user, struct secret *secret,
                                        const char *const *names, char *err, size_t errsize);
bool model_account_is_bound(const struct model_account *ma);
/* Lets it go when it is bound nowhere. */
void model_account_unused(struct model_account *ma);
/* Every account of that name and what it is bound to. False: there is none. */
bool model_account_delete(const char *user);
/* Those accounts of that name that nothing binds. */
void model_account_prune(const char *user);
struct model_bind *model_bind_find(const struct model_auth *where, const char *user, bool outgoing);
struct model_bind *model_bind_outgoing(const struct model_auth *where);
void model_bind_add(struct model_auth *where, struct model_account *ma, bool outgoing);
void model_bind_del(struct model_auth *where, struct model_bind *b);
/* Why this account cannot be bound there, or NULL: both directions would have one secret. */
const char *model_bind_clash(const struct model_auth *where, const struct account *a,
                             bool outgoing);
/* A new set for publication; NULL: nothing is demanded there. */
/* Initiators must prove themselves there. */
bool model_auth_demands(const struct model_auth *where);
struct account_set *model_auth_set(const struct model_auth *where);
/* Portals (name) and groups (name "", tag) a target is bound to; adding twice is the same as once.
 */
struct portal_id *model_via_find(const struct model_target *t, const struct portal_id *id);
void model_via_add(struct model_target *t, const struct portal_id *id);
void model_via_del(struct model_target *t, struct portal_id *b);

struct model_lun *model_lun_find(const struct model_target *t, unsigned number);
/* Takes a user of s. */
struct model_lun *model_lun_add(struct model_target *t, unsigned number, struct store *s);
void model_lun_del(struct model_target *t, struct model_lun *l);

/* Publishes what there is now; done(arg) on main when every worker has it. 0, or -EINVAL and a
 * message when an access list does not hold (nothing is published then). */
int model_publish(void (*done)(void *arg), void *arg, char *err, size_t errsize);
/* Called after each publication that was begun; NULL: nobody. */
extern void (*model_published)(void);

/* From now on rules that name an interface follow its addresses: their targets are published anew
 * when these change. */
void model_ifaces_start(void);
void model_ifaces_stop(void);

/* --- apply.c: the side that knows conf/ and opens backends ----------------------------------- */

/* 32 random bytes, made at the first start, kept as record "host-seed". 0 or -errno. Blocking. */
int apply_seed(void);
/* A comma list of CHAP's digests as bits CHAP_ALG_*; 0 or -EINVAL. */
int apply_chap_algs(const char *text, unsigned *out);
/* Whether a configuration can hold this text: what cannot be dumped must not get into the model. */
bool apply_can_hold(const char *text);
/* The numbers outside of targets that tgt_opts holds, unset ones as they were at first. */
void apply_options(const struct conf *c);
/* Judges iSCSI values for conf_read. */
const struct conf_checks *apply_checks(void);
/* Warns of backing stores that could not be opened now, without opening them. Blocking. */
void apply_look(const struct conf *c, struct conf_report *r);
/* A checked configuration -> targets and LUNs, then portals; done(arg, err) on main once all stores
 * were tried (or the slow ones left to watch.c) and every worker knows the targets. err: "", or why
 * a portal cannot be bound. c must live until then. */
void apply_start(const struct conf *c, void (*done)(void *arg, const char *err), void *arg);

struct apply_kv {
    const char *name, *value;
};
/* A new LUN, which t will have under this number (its identity may be made of both): settings by
 * directive names ("backing-store" for the path). done(store, err): err ""
 * and the store with one user, which the caller hands to model_lun_add and drops; or NULL and the
 * message, nothing left behind. Settings that are wrong come back at once: -EINVAL and err. */
int apply_lun_new(const struct model_target *t, unsigned number, const struct apply_kv *kv,
                  unsigned n, const char *alone_id,
                  void (*done)(struct store *s, const char *err, void *arg), void *arg, char *err,
                  size_t errsize);
/* Live change of settings: all or nothing. 0, or -EINVAL and err. Refuses what wants the backing
 * store opened anew. */
int apply_lun_update(struct store *s, const struct apply_kv *kv, unsigned n, char *err,
                     size_t errsize);
/* The same, and `path`, `bsopts`, direct I/O and leaving read-only too, where the store is opened
 * anew (apply_exchange.c): the unit must be offline or removable. Every map that has the unit has
 * the new one then; what the initiators had reserved stays. done(err, arg), perhaps inside this
 * call, once every worker has it; err: "", or why all is as it was. */
void apply_lun_change(struct store *s, const struct apply_kv *kv, unsigned n,
                      void (*done)(const char *err, void *arg), void *arg);
/* Every LUN is made anew, with the identity and the saved mode pages that the control store and
 * model.seed give it now; initiators see a change of the LUN inventory. done(arg) when every worker
 * has them. */
void apply_store_replace_all(void (*done)(void *arg), void *arg);
/* For show. */
struct apply_lun_view {
    const char *path, *bsopts, *layers, *type;
    bool direct, sync, allow_in_use;
    unsigned in_flight; /* requests the backing store has now */
};
void apply_lun_view(const struct store *s, struct apply_lun_view *v);
/* One user less; the last one closes the backing store (in a helper) and lets the LUN go. Call
 * it for a mapped LUN only after the map without it is published. */
void apply_store_drop(struct store *s);
/* The same; gone(arg) when it is closed and freed, at once when others still use it, and after two
 * seconds when it hangs. */
void apply_store_drop_then(struct store *s, void (*gone)(void *arg), void *arg);
/* s came or changed (watch.c found events): settles block size and identity, tells the LUN. */
void apply_store_probed(struct store *s, unsigned be_events);
/* Runs fn in a helper (bounded by lane, or NULL) with then on main; false: a job is under way. */
bool apply_store_run(struct store *s, struct helper_lane *lane, void (*fn)(struct helper_job *job),
                     void (*then)(struct store *s));

/* --- watch.c --------------------------------------------------------------------------------- */

/* From now on every store is looked at every few seconds. */
void watch_start(struct worker *main_worker);
void watch_stop(void);

#endif
