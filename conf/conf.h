/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration files -> one tree.  The syntax is tgt's targets.conf (Apache-like).  Everything
 * wrong is collected with file, line and column; a tree comes out only when nothing was wrong.
 * This room knows directives, not iSCSI: keys, names and addresses are judged by the caller's
 * callbacks.  Plain functions without state; called on main, before its loop or from a helper.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/hostport.h"

#define CONF_UNSET    0xffffffffu
#define CONF_NAME_MAX 223

struct secret;

struct conf_pos {
    const char *file;   /* lives as long as the conf; never NULL once set */
    unsigned line, col; /* from 1; col counts bytes */
};

struct conf_kv {
    const char *name, *value; /* the conf's */
    struct conf_pos pos;      /* of the name */
};

enum conf_bs { CONF_BS_AUTO, CONF_BS_FILE, CONF_BS_BLOCK, CONF_BS_NULL, CONF_BS_ZRAM };

/* Where the values that must be unique came from. */
enum conf_lun_at {
    LUN_AT_NUMBER,
    LUN_AT_ID,
    LUN_AT_SN,
    LUN_AT_NAA,
    LUN_AT_EUI,
    LUN_AT_DESIGNATORS,
    LUN_AT_COUNT
};

/* Whose rules make the identity of a LUN that does not say its own. */
enum conf_ids { IDS_EVTGT, IDS_TGT, IDS_IET };

#define CONF_DESIGNATORS_MAX 200u

/* A logical unit's settings; owns its strings (conf_lun_init, _copy, _fini). */
struct conf_lun {
    struct conf_pos pos, at[LUN_AT_COUNT];
    /* absolute; of zram the store's name; "" only for null, and for a removable unit without a
     * medium */
    char *path;
    char *bsopts; /* "k=v;k=v" or "" */
    char *layers; /* as be_opts.layers, or "" */
    /* mode_page, each once, blank-separated, or "". The bits that write_cache and descriptor_sense
     * say are 0 here. */
    char *mode_pages;
    enum conf_bs bs;
    int number;                    /* 0..16383; -1: not assigned yet */
    char scsi_id[64], scsi_sn[64]; /* "": default */
    uint8_t naa[16], eui[16];
    uint8_t naa_len, eui_len;
    /* descriptors of VPD 83h (SPC-4 7.8.6.1) in place of all others of the unit; 0: none */
    uint8_t designators[CONF_DESIGNATORS_MAX], designators_len;
    unsigned scsi_sn_width; /* blanks before the number fill it up to this; 0: none */
    char vendor_id[9], product_id[17], product_rev[5]; /* "": default */
    unsigned block_size;                               /* 512, 4096; 0: the store's own, else 512 */
    unsigned lbppbe;                                   /* 0..15, CONF_UNSET */
    unsigned la_lba;                                   /* 0..16383 */
    unsigned opt_xfer_gran;                            /* blocks; 0: not reported */
    unsigned opt_xfer_len;                             /* blocks; 0: not reported */
    unsigned rotation_rate; /* 0, 1, 0x401..0xfffe; CONF_UNSET: ask the store */
    uint64_t size;          /* bytes, null and zram only */
    unsigned algorithm;     /* zram: of conf_zram_algorithms; CONF_UNSET: the first */
    unsigned level;         /* zram: of the algorithm; 0: its own */
    unsigned chunk_size;    /* zram: bytes */
    uint64_t mem_limit;     /* zram: bytes; 0: none */
    bool volatile_ack;      /* zram: not ready until somebody has said that it is empty */
    bool direct, sync;      /* bsoflags */
    bool direct_store;      /* vendor, product, revision and serial number are the device's */
    bool write_cache, removable, online, read_only, allow_in_use, thin, descriptor_sense;
};

/* A CHAP account; owns what it points to. */
struct conf_account {
    struct conf_pos pos;
    bool outgoing;
    char *user;
    struct secret *secret; /* base/secret.h; a reference */
    char **names;          /* initiator names that may use it; none: all */
    unsigned nnames;
};

struct conf_accounts {
    struct conf_account *v;
    unsigned n;
};

struct conf_target {
    struct conf_pos pos;
    char name[CONF_NAME_MAX + 1]; /* as the caller's normalisation gave it */
    const char *given;            /* the name as the file has it; the conf's */
    unsigned tid;                 /* > 0, unique */
    bool tid_auto;                /* nobody chose it: it may change */
    const char *alias;            /* or NULL */
    /* What a file of tgt asks of it and is not served: a line each, with its place; or NULL. */
    const char *unserved;
    bool offline, hidden;
    unsigned nop_interval_s, nop_count; /* CONF_UNSET: the daemon's */
    unsigned max_cmds;                  /* CONF_UNSET: default */
    unsigned ids;                       /* enum conf_ids; CONF_UNSET: the daemon's */
    struct conf_kv *keys;
    unsigned nkeys;
    struct conf_kv *addrs, *names, *locals; /* initiator-address, initiator-name, local-address */
    unsigned naddrs, nnames, nlocals;
    struct conf_accounts accounts;
    unsigned chap_algs;      /* bit 0: MD5 (5), 1: SHA-1 (6), 2: SHA-256 (7), 3: SHA3-256 (8) */
    unsigned chap_sha1_7;    /* both: CONF_UNSET: the daemon's */
    struct conf_bind *binds; /* none: every portal */
    unsigned nbinds;
    struct conf_kv *redirects; /* Redirect..., redirect-initiator, in the order of the file */
    unsigned nredirects;
    struct conf_lun *luns; /* sorted by number */
    unsigned nluns;
};

struct conf_portal {
    struct conf_pos pos;
    struct hostport at;
    unsigned group;                    /* portal group tag, 0..65535; 1 unless said */
    char advertise[HOSTPORT_HOST_MAX]; /* shown instead of the address; "" */
};

/* What a target is bound to. */
struct conf_bind {
    unsigned group;               /* when name is "" */
    char name[HOSTPORT_NAME_MAX]; /* of a portal */
    struct conf_pos pos;
};

/* The access files of IET. */
enum conf_access_file {
    CONF_INITIATORS_ALLOW,
    CONF_INITIATORS_DENY,
    CONF_TARGETS_ALLOW,
    CONF_ACCESS_FILES
};

struct conf_access_line {
    struct conf_pos pos;
    char *target, *entries; /* a name or "ALL"; a comma list */
};

struct conf_access {
    struct conf_pos pos; /* of the directive */
    const char *path;    /* NULL: not given */
    struct conf_access_line *lines;
    unsigned n;
};
#define CONF_ACCESS_MAX (1u << 20) /* bytes of an access file */

struct conf {
    unsigned workers;      /* CONF_UNSET: not said; likewise below */
    unsigned busy_poll_us; /* microseconds a worker looks on before it sleeps; 0: never */
    unsigned affine;       /* 0 spread, 1 affine */
    unsigned login_timeout_s, max_half_open, max_half_open_per_addr;
    unsigned max_sessions, shutdown_timeout_s, redirect_timeout_s;
    unsigned keepalive_idle_s, keepalive_interval_s, keepalive_count, user_timeout_s;
    unsigned dscp;
    unsigned nop_interval_s, nop_count; /* of targets that say nothing */
    unsigned ids;                   /* enum conf_ids; CONF_UNSET: evtgt, or as the file's syntax */
    unsigned discovery_filter;      /* 0 name, 1 portal, 2 all, 3 authenticated */
    const char *state_dir;          /* or NULL */
    const char *user;               /* NAME or NAME:GROUP, or NULL */
    struct conf_accounts accounts;  /* of targets that have none of that direction themselves */
    struct conf_accounts discovery; /* of discovery sessions */
    struct conf_accounts unbound;   /* of nobody yet; none that is bound as well */
    unsigned chap_algs, chap_sha1_7, login_delay_ms;
    bool isns_on, isns_access;
    unsigned isns_port;           /* CONF_UNSET: 3205 */
    struct conf_kv *isns_servers; /* in the order in which they are tried */
    unsigned nisns_servers;
    struct conf_access access[CONF_ACCESS_FILES];
    unsigned autosave; /* changes outlive the daemon; CONF_UNSET: not said */
    /* Nothing to the daemon: which one tgt-admin means (CONF_UNSET: not said), and what it does
     * after an error. */
    unsigned control_port;
    bool ignore_errors;
    uint64_t zram_mem_limit; /* bytes of all zram stores together; 0: the daemon's default */
    struct conf_portal *portals;
    unsigned nportals;           /* 0: every address, port 3260 */
    bool no_portals;             /* 0, and not even these: "portal none" */
    struct conf_target *targets; /* in the order of the files */
    unsigned ntargets;
    struct conf_raw *raw;   /* private; so is kept */
    struct conf_kept *kept; /* of conf_keep */
};

/* What this room cannot judge itself; any of them may be NULL (then: all is well). */
struct conf_checks {
    /* An operational key of a target: 0; > 0 and why it is cut down; -ENOENT: no such key; -EINVAL
     * and why. */
    int (*key)(const char *name, const char *value, char *err, size_t errsize, void *arg);
    /* A target name: 0 and its normal form in out (CONF_NAME_MAX + 1 bytes); -EINVAL and why. */
    int (*target_name)(const char *name, char *out, char *err, size_t errsize, void *arg);
    /* initiator-address and local-address, initiator-name: 0, perhaps with a warning; -EINVAL and
     * why. */
    int (*address)(const char *text, char *err, size_t errsize, char *warn, size_t warnsize,
                   void *arg);
    int (*initiator)(const char *text, char *err, size_t errsize, void *arg);
    /* A line of an access file: 0, perhaps with a warning; -EINVAL and why. */
    int (*access)(enum conf_access_file which, const char *target, const char *entries, char *err,
                  size_t errsize, char *warn, size_t warnsize, void *arg);
    /* A setting of redirection, by its directive's name: 0; -EINVAL and why. */
    int (*redirect)(const char *name, const char *value, char *err, size_t errsize, void *arg);
    /* An iSNS server's address. 0; -EINVAL and why. */
    int (*isns_server)(const char *text, char *err, size_t errsize, void *arg);
    /* A whole LUN (unknown layers, options of the backing store): 0; -EINVAL and why. */
    int (*lun)(const struct conf_lun *lun, char *err, size_t errsize, void *arg);
    /* What is served now, for the numbers of targets (NULL: nothing); running_stays: also what the
     * files do not name stays. */
    const struct conf *running;
    bool running_stays;
    bool part; /* of a sum: what must hold over all of it is not looked at (conf_check_across) */
    void *arg;
};

struct conf_msg {
    bool is_error; /* else a warning */
    bool is_loss;  /* a warning of what a foreign file says and nothing here can say */
    bool is_admin; /* a loss to others than tgt-admin, which does what is said, or refuses it */
    char *file;
    unsigned line, col; /* 0, 0: about the file as a whole */
    char *text;
};

struct conf_report {
    struct conf_msg *v;
    unsigned n, nerrors, nlosses;
};

void conf_report_init(struct conf_report *r);
void conf_report_fini(struct conf_report *r);
void conf_report_add(struct conf_report *r, bool is_error, const struct conf_pos *pos,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void conf_report_loss(struct conf_report *r, const struct conf_pos *pos, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, is_admin. */
void conf_report_admin(struct conf_report *r, const struct conf_pos *pos, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* conf_checks.key of who has not the daemon's table: a value that is wrong passes. */
int conf_key_any(const char *name, const char *value, char *err, size_t errsize, void *arg);

/* The file and what it includes (blocking). NULL when there was an error: all are in `r`. */
struct conf *conf_read(const char *path, const struct conf_checks *checks, struct conf_report *r);
/* The same from memory; `include` is refused. name: for messages. */
struct conf *conf_parse(const char *name, const char *text, size_t len,
                        const struct conf_checks *checks, struct conf_report *r);
/* An empty configuration. */
struct conf *conf_new(void);
void conf_free(struct conf *c);
/* A target with nothing set; what it owns, but for the texts of conf_kv and alias. */
void conf_target_init(struct conf_target *t);
void conf_target_fini(struct conf_target *t);
const struct conf_target *conf_find_target(const struct conf *c, const char *name);

/* --- writing --------------------------------------------------------------------------------- */

/* Without it each secret is written as the file @/secret-left-out: such a text says what is missing
 * and is refused when it is read, so that no target is opened by it. */
#define CONF_WRITE_SECRETS 1u
/* Canonical text: reading it gives a conf that is the same. What has its default value is not
 * written; numbers of targets and logical units are. secret_free_text. */
char *conf_write(const struct conf *c, unsigned flags);
char *conf_write_globals(const struct conf *c, unsigned flags); /* without the targets */
char *conf_write_target(const struct conf_target *t, unsigned flags);
/* Whether a text can be a directive's value in a file. Reading gives no other; who takes values
 * from elsewhere and has them written refuses those. */
bool conf_can_write(const char *value);

/* --- comparing ------------------------------------------------------------------------------- */

enum conf_how { CONF_CHANGED, CONF_ADDED, CONF_REMOVED };

/* One thing that differs. */
struct conf_difference {
    const char *directive; /* its name; "backing-store": the LUN as such, or its path */
    const char *of;        /* the target's name, the portal; NULL: the daemon */
    int lun;               /* -1: of the target itself */
    enum conf_how how;     /* ADDED, REMOVED: LUNs, portals, operational keys */
};
typedef void conf_diff_fn(void *arg, const struct conf_difference *d);
/* How many things differ, each told to fn (or NULL). Names and positions are not compared. Of a
 * target: its settings, then the LUNs in the order of their numbers. */
unsigned conf_target_diff(const struct conf_target *a, const struct conf_target *b,
                          conf_diff_fn *fn, void *arg);
unsigned conf_globals_diff(const struct conf *a, const struct conf *b, conf_diff_fn *fn, void *arg);
unsigned conf_lun_diff(const struct conf_lun *a, const struct conf_lun *b, conf_diff_fn *fn,
                       void *arg);
/* The same settings and targets, whatever the targets' order. */
bool conf_same(const struct conf *a, const struct conf *b);

/* --- configurations in memory ---------------------------------------------------------------- */

/* A copy of text that lives as long as c: what the borrowed strings of a conf point to. */
const char *conf_keep(struct conf *c, const char *text);
/* A deep copy of t behind the last target of c. */
struct conf_target *conf_add_target(struct conf *c, const struct conf_target *t);
/* All but the targets of `from` in place of what c has. */
void conf_copy_globals(struct conf *c, const struct conf *from);
void conf_accounts_clear(struct conf_accounts *list); /* empty, and may be filled again */
/* Takes those out of c->unbound that are bound somewhere; r: they are warned about, or NULL. */
void conf_unbound_only(struct conf *c, struct conf_report *r);

/* Parts of a configuration: targets by name (or all of them), and what stands outside of them. */
struct conf_parts {
    bool all, globals;
    const char *const *names;
    unsigned n;
};
/* A new one: `what` as `over` has it (targets that it does not have are gone), the rest as in
 * `base`. Targets without a controller_tid of their own keep that of `base`. Copies deeply. */
struct conf *conf_merge(const struct conf *base, const struct conf *over,
                        const struct conf_parts *what);
/* What must hold over all targets, as conf_read looks at it. Blocking: paths are resolved. */
void conf_check_across(const struct conf *c, struct conf_report *r);

/* --- LUN settings on their own, as the admin socket changes them ----------------------------- */

void conf_lun_init(struct conf_lun *l);
void conf_lun_fini(struct conf_lun *l);
void conf_lun_copy(struct conf_lun *dst, const struct conf_lun *src); /* dst: uninitialised */
/* After "unknown parameter: NAME": a near name, or why it is none here; "" when there is nothing.
 */
void conf_lun_hint(const char *name, bool live, char *out, size_t size);
/* One LUN directive by name; live: only what `--op update --params` may change. 0; -ENOENT: no
 * such directive; -EINVAL and why. warn may come back non-empty with 0. */
int conf_lun_set(struct conf_lun *l, bool live, const char *name, const char *value, char *err,
                 size_t errsize, char *warn, size_t warnsize);
/* What only shows when all is set (size without null, ...). 0 or -EINVAL and why. */
int conf_lun_check(const struct conf_lun *l, char *err, size_t errsize);
/* Same settings but for number and positions: may be one logical unit. */
bool conf_lun_same(const struct conf_lun *a, const struct conf_lun *b);
/* Fills in what a LUN does not say of its identity, by the rules of another target: serial number,
 * SCSI id, designators, vendor, product, revision. 0, or -EINVAL and why. */
int conf_lun_ids(struct conf_lun *l, enum conf_ids ids, unsigned tid, const char *target_name,
                 char *err, size_t errsize);
/* Which identity given in the settings both have ("scsi_sn", ...), or NULL. */
const char *conf_lun_twin(const struct conf_lun *a, const struct conf_lun *b);
/* CONF_BS_AUTO decided by what is at the path; st NULL (nothing, or not known): by its place. */
enum conf_bs conf_lun_kind(const struct conf_lun *l, const struct stat *st);
const char *conf_bs_name(enum conf_bs bs); /* "fileio", "blockio", "null", "zram" */
/* Without a file or device of its own: null, zram. */
bool conf_bs_made(enum conf_bs bs);
extern const char *const conf_zram_algorithms[]; /* NULL after the last */

/* The first line of a file that only its owner (root or this user) may read, as a new secret. 0, or
 * -EINVAL and why. Blocking. */
int conf_secret_file(const char *path, struct secret **out, char *err, size_t errsize);
/* The lines of an access file, added to a, whose path is set; checks may be NULL. False: some do
 * not hold, all told in r. */
bool conf_access_text(struct conf_access *a, enum conf_access_file which, const char *text,
                      size_t len, const struct conf_checks *checks, struct conf_report *r);
bool conf_access_same(const struct conf_access *a, const struct conf_access *b);
void conf_access_fini(struct conf_access *a); /* the lines */
/* A comma list of md5, sha1, sha256, sha3-256 or their numbers, as bits. 0 or -EINVAL. */
int conf_parse_chap_algs(const char *text, unsigned *out);
/* on/off, yes/no, true/false, 1/0 in any case; -EINVAL. */
int conf_parse_bool(const char *text, bool *out);
/* Decimal or 0x hexadecimal within [min, max]; -EINVAL. */
int conf_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* The directive table, for the manual's test: names one by one, NULL after the last. understood:
 * false for those that are refused by name. */
const char *conf_directive(unsigned i, bool *understood);

#endif
