/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to target/: connections, sessions, tasks and who may call what.
 *
 *   portal.c  which addresses to listen on, on main; accept.c hands sockets to the workers
 *   conn.c    a connection's life and state machine; closing is always scheduled
 *   rx.c      bytes -> PDUs            tx.c     out-queue -> one gathering send a loop turn
 *   login.c   login phase, keys.c/nego.c text keys, name.c, acl.c, discovery.c, text.c
 *   announce.c  which addresses a peer is told
 *   chap*.c   CHAP's rounds, digests, brake on guessing    account*.c   names and secrets
 *   redirect.c, redirect_ask.c  where logins are sent; admin_drain.c  emptying a node
 *   sess.c    sessions, CmdSN window   registry.c  (name, ISID, target, TPGT) -> session, TSIH
 *   task.c    SCSI commands            datain.c, dataout.c  their data
 *   tmf.c nop.c logout.c reject.c async.c
 *   node.c    targets as published to the workers
 *   apply.c   configuration -> nodes, LUNs, portals    watch.c  probes backing stores
 *   admin.c   the admin socket         main.c   the daemon
 *
 * A conn belongs to its worker, a sess to its worker with all its connections; nothing here has
 * a lock but the registry.
 */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/budget.h"
#include "base/hostport.h"
#include "base/list.h"
#include "base/log.h"
#include "base/ref.h"
#include "base/worker.h"
#include "scsi/scsi.h"
#include "target/isns_dd.h"
#include "target/pdu.h"

#define ISCSI_NAME_MAX 223 /* bytes, RFC 7143 4.2.7.1 */

struct conn;
struct redirect;
struct drain;
struct sess;
struct task;
struct login;
struct account;
struct account_set;

/* --- daemon-wide options; written by main before the workers start, or published by broadcast - */

struct tgt_opts {
    /* Those of type atomic may change while the daemon runs (apply_opts.c): each use reads once. */
    atomic_uint login_timeout_s;        /* 15: from accept to full feature phase */
    atomic_uint max_half_open;          /* 512 connections before login, all portals; see half.c */
    atomic_uint max_half_open_per_addr; /* 0: half of them */
    atomic_uint max_sessions;           /* 4096 */
    unsigned login_bytes_max;           /* 64 KiB of text in one login */
    unsigned nop_interval_s;            /* 10; 0: off. per node overridable */
    unsigned nop_count;                 /* 3 unanswered pings (as tgt) */
    atomic_uint shutdown_s;             /* 5: deadline for an orderly SIGTERM */
    atomic_uint redirect_timeout_s;     /* 5: for the answer of a RedirectCallback */
    atomic_uint login_delay_ms;   /* 2000: most that the answer to a guessed secret is held back */
    uint64_t sess_mem_bytes;      /* 32 MiB: 128 commands with a first burst of 256 KiB */
    atomic_uint keepalive_idle_s; /* 60; 0: off. TCP_KEEPIDLE, _KEEPINTVL, _KEEPCNT */
    atomic_uint keepalive_interval_s, keepalive_count; /* 10, 6 */
    atomic_uint user_timeout_s;                        /* TCP_USER_TIMEOUT; 0: the kernel's */
    atomic_int dscp; /* 0..63 of what is sent (RFC 2474); -1: the kernel's */
    bool affine;     /* placement: all sessions of a target on one worker */
};
extern struct tgt_opts tgt_opts; /* conn.c, with the defaults above */

/* --- names and access (name.c, acl.c) --------------------------------------------------------- */

/* RFC 7143 4.2.7.2 / RFC 3722 as far as ASCII goes: lower case; iqn., eui., naa. forms checked;
 * no control characters or blanks; <= 223 bytes. Returns 0 and the normalised name in out
 * (ISCSI_NAME_MAX + 1 bytes), or -EINVAL and *why (static text). */
int name_normalise(const char *in, size_t len, char *out, const char **why);
/* The same without the check of the iqn., eui., naa. forms: for what a peer calls itself or asks
 * for, where strictness would only lock out old installations. */
int name_fold(const char *in, size_t len, char *out, const char **why);

struct acl;       /* immutable, counted */
struct acl_files; /* the rules of IET's access files (acl_files.c); main's */
enum acl_file { ACL_INITIATORS_ALLOW, ACL_INITIATORS_DENY, ACL_TARGETS_ALLOW, ACL_FILES };

/* What a target's access list is made of; lists end with NULL, NULL is an empty one. */
struct acl_rules {
    const char *const *addrs; /* "ALL", "10.0.0.0/8", "::1/128", "192.168.1.7", "iface:eth0" */
    const char *const *names; /* exact, or with *, ? and [..] */
    const char *const *local; /* as addrs: which of the host's own addresses the target is at */
    const struct acl_files *files; /* or NULL; `target` is the normalised name to look up */
    const char *target;
};
/* addrs and names both given: both must match. Neither (and no files): nobody. NULL and a message
 * on bad input; warn (may be NULL) receives a warning such as host bits set. An interface stands
 * for the subnets that it has now. */
struct acl *acl_make(const struct acl_rules *r, char *err, size_t errsize, char *warn,
                     size_t warnsize);
struct acl *acl_new(const char *const *addrs, const char *const *names, char *err, size_t errsize,
                    char *warn, size_t warnsize);
struct acl *acl_get(struct acl *a);
void acl_put(struct acl *a);
/* May this initiator (its name folded) log in? NULL lists admit nobody. Any thread. */
bool acl_admits(const struct acl *a, const struct sockaddr *peer, const char *initiator_name);
/* By the names alone. */
bool acl_admits_name(const struct acl *a, const char *initiator_name);
/* Is the target there at all, for who came to this address of ours? Any thread. */
bool acl_is_at(const struct acl *a, const struct sockaddr *local);
bool acl_is_iface(const char *text); /* an address rule that names an interface */

/* open: what holds when neither initiators.allow nor initiators.deny exists: IET 1.4.19 admits
 * nobody, 0.4 and 1.4.20 everybody. */
struct acl_files *acl_files_new(bool open);
void acl_files_free(struct acl_files *f); /* access lists made of it stay whole */
/* The file exists, if only without a line. */
void acl_files_exists(struct acl_files *f, enum acl_file which);
/* One line: "ALL" or a target's name, and what follows it. 0, or -EINVAL and why. */
int acl_files_add(struct acl_files *f, enum acl_file which, const char *target, const char *entries,
                  char *err, size_t errsize, char *warn, size_t warnsize);

/* --- text keys (keys.c): one row each --------------------------------------------------------- */

enum key_id {
    KEY_AUTH_METHOD,
    KEY_CHAP_A, /* to KEY_CHAP_R: one after the other */
    KEY_CHAP_I,
    KEY_CHAP_C,
    KEY_CHAP_N,
    KEY_CHAP_R,
    KEY_HEADER_DIGEST,
    KEY_DATA_DIGEST,
    KEY_MAX_CONNECTIONS,
    KEY_SEND_TARGETS,
    KEY_TARGET_NAME,
    KEY_INITIATOR_NAME,
    KEY_TARGET_ALIAS,
    KEY_INITIATOR_ALIAS,
    KEY_TARGET_ADDRESS,
    KEY_TARGET_PORTAL_GROUP_TAG,
    KEY_INITIAL_R2T,
    KEY_IMMEDIATE_DATA,
    KEY_MAX_RECV_DSL,
    KEY_MAX_BURST,
    KEY_FIRST_BURST,
    KEY_TIME2WAIT,
    KEY_TIME2RETAIN,
    KEY_MAX_R2T,
    KEY_DATA_PDU_IN_ORDER,
    KEY_DATA_SEQ_IN_ORDER,
    KEY_ERL,
    KEY_SESSION_TYPE,
    KEY_IF_MARKER,
    KEY_OF_MARKER,
    KEY_IF_MARK_INT,
    KEY_OF_MARK_INT,
    KEY_TASK_REPORTING,
    KEY_PROTOCOL_LEVEL,
    KEY_COUNT
};

/* What a target offers and accepts at most, per key; numbers, booleans 0/1, digests as a bit set
 * (1 None, 2 CRC32C) plus an order flag. Set from configuration and `update` by key name. */
struct key_values {
    uint32_t v[KEY_COUNT];
};
void keys_defaults(struct key_values *kv);
/* name as in RFC 7143 (tgt's spelling, any case).  0; 1 when the RFC allows the value but this
 * target cannot go so far: the nearest it can is set and err says so (files of other targets name
 * such limits, and a limit that is negotiated lower breaks nobody); or -EINVAL with a message. */
int keys_set(struct key_values *kv, const char *name, const char *value, char *err, size_t errsize);
/* For show and dump: name and value text of key i; false when the key is not settable. */
bool keys_show(const struct key_values *kv, unsigned i, const char **name, char *value,
               size_t size);
/* The table as Markdown, line by line, for the documentation. */
void keys_dump(void (*line)(const char *s, void *arg), void *arg);

/* --- targets as workers see them (node.c): immutable, counted --------------------------------- */

/* A portal by its normal name ("192.0.2.1:3260", "iface:eth0:3260", see base/hostport.h) and the
 * tag of its portal group. */
struct portal_id {
    uint16_t tpgt;
    char name[HOSTPORT_NAME_MAX];
};

struct tgt_node {
    struct ref ref;
    unsigned tid;
    char name[ISCSI_NAME_MAX + 1]; /* normalised */
    char alias[256];
    bool offline;                       /* state offline: logins answered 03/01 */
    bool hidden;                        /* discovery sessions do not hear of it */
    unsigned nop_interval_s, nop_count; /* 0xffffffff: daemon's */
    unsigned max_cmds;                  /* CmdSN window; MaxQueueCmd, default 128 */
    struct key_values keys;
    struct portal_id *binds; /* portals (name) and groups (name "") it is bound to */
    unsigned nbinds;         /* 0: reached through all */
    struct acl *acl;
    struct isns_dd *dd;           /* access by discovery domain; NULL: not asked for */
    struct account_set *accounts; /* NULL: nobody has to authenticate itself */
    struct lun_map *map;
    struct redirect *redirect; /* NULL: logins stay here */
    struct drain *drain;       /* NULL: not being drained */
};

struct node_portal {
    struct portal_id id;
    struct sockaddr_storage addr;      /* as bound; may be a wildcard; AF_UNSPEC: has none now */
    bool absent;                       /* bound, but no interface has the address yet */
    char advertise[HOSTPORT_HOST_MAX]; /* shown in its place, with the port; "" */
};

/* What discovery tells of, beside what is offline or hidden and never told of. */
enum discovery_filter {
    DF_NAME,   /* what the initiator may log in to; the default */
    DF_PORTAL, /* what is at the address it came to, whoever asks */
    DF_ALL,
    DF_AUTHENTICATED, /* as DF_NAME; but what has accounts only to who authenticated itself */
};

struct node_set {
    struct ref ref;
    enum discovery_filter filter;
    unsigned n;
    struct tgt_node **nodes; /* sorted by name */
    unsigned nportals;
    struct node_portal *portals;
    struct account_set *discovery; /* accounts of discovery sessions, or NULL */
};

/* May this initiator (folded name) log in from there, and hear of the target? Any thread. */
static inline bool
node_admits(const struct tgt_node *n, const struct sockaddr *peer, const char *initiator_name)
{
    return acl_admits(n->acl, peer, initiator_name) &&
           (n->dd == NULL || isns_dd_admits(n->dd, initiator_name));
}
/* Do these portals and groups (none: all) comprise this portal? Any thread. */
static inline bool
binds_serve(const struct portal_id *binds, unsigned nbinds, const struct portal_id *via)
{
    for (unsigned i = 0; i < nbinds; i++) {
        const struct portal_id *b = &binds[i];
        if (b->name[0] != '\0' ? strcmp(b->name, via->name) == 0 : b->tpgt == via->tpgt)
            return true;
    }
    return nbinds == 0;
}
/* Is the target reached through this portal? Any thread. */
static inline bool
node_serves(const struct tgt_node *n, const struct portal_id *via)
{
    return binds_serve(n->binds, n->nbinds, via);
}
struct tgt_node *node_get(struct tgt_node *n);
void node_put(struct tgt_node *n);
/* On a worker: the set published to it; borrowed until the next loop turn. */
const struct node_set *node_set_here(void);
void node_forget_here(void);                                              /* the worker ends */
struct tgt_node *node_find(const struct node_set *set, const char *name); /* borrowed */
/* Main: takes over `set`; every worker switches (sessions of removed or changed nodes are told:
 * sess_node_changed); then done(arg) on main and the old set is let go. */
void node_publish(struct node_set *set, void (*done)(void *arg), void *arg);

/* --- portals, on main ------------------------------------------------------------------------ */

struct portal_spec {
    struct hostport at;
    uint16_t tpgt;                     /* of its portal group */
    char advertise[HOSTPORT_HOST_MAX]; /* "", or as hostport_announce makes it */
};

/* portal.c.  Listens (through the opener) from now on; sockets go to the workers. may_come: at the
 * start an address that no interface has yet is bound all the same (with a warning in the log) and
 * an interface may have none; without it these are errors.  The addresses of an interface are
 * followed.  0, or -errno with a message that names the portal. Main, before or in its loop. */
int portal_open(const struct portal_spec *spec, bool may_come, char *err, size_t errsize);
/* Stops listening; connections made stay. name: hostport's normal form. -ENOENT. Main. */
int portal_close(const char *name);
void portal_close_all(void);
/* What was asked for (port 0 as it was given), at most max; how many there are. Main. */
unsigned portal_specs(struct portal_spec *out, unsigned max);
/* By the name that was asked for: another group and announcement, for who logs in from now on;
 * closed. 0 or -ENOENT. Main. */
int portal_change(const struct portal_spec *spec);
int portal_close_asked(const char *name);
/* It is open, and no interface has its address: it is served as soon as one has. Main. */
bool portal_is_absent(const char *name);
/* What is bound now (port 0 resolved), at most max; a portal without any address counts as one.
 * How many there are. Main. */
unsigned portal_list(struct node_portal *out, unsigned max);
/* fn runs on main whenever portal_list changes by itself (an interface's addresses). */
void portal_on_change(void (*fn)(void));

/* portal_owner.c.  Who listens there: "nginx (process 4711)", or that it is this daemon.  False: not
 * to be found out.  Blocks for as long as /proc takes. */
void portal_owner_init(void); /* before opener_start, in the process that will be the daemon */
bool portal_owner(const struct sockaddr_storage *sa, char *buf, size_t size);

/* accept.c.  One listening socket. */
struct listener;
/* Takes over fd. */
struct listener *listener_new(int fd, const struct portal_id *id,
                              const struct sockaddr_storage *addr);
void listener_set_group(struct listener *l, uint16_t tpgt);
void listener_free(struct listener *l);
/* No listener is left: what they share is let go. */
void listener_end(void);

/* announce.c.  "192.0.2.1:3260", "[2001:db8::1]:3260"; v4-mapped addresses as IPv4, zone ids left
 * out. Any thread; buf of 64 bytes always suffices. */
const char *portal_text(const struct sockaddr_storage *sa, char *buf, size_t size);
bool sockaddr_is_wildcard(const struct sockaddr_storage *sa);

/* The addresses of a target's portals as the peer of one connection may see them: that by which it
 * came first, each once. put(text, tpgt, arg): "192.0.2.1:3260" or "host.example:3260", without
 * the tag. On the connection's worker. */
void announce(const struct conn *c, const struct node_set *set, const struct tgt_node *node,
              void (*put)(const char *addr, uint16_t tpgt, void *arg), void *arg);
/* The host's addresses changed: shown for wildcard portals. Main. */
void announce_refresh(void);

/* --- what this room keeps on each worker ------------------------------------------------------ */

struct tgt_worker {
    struct worker *w;
    struct node_set *nodes;
    struct list conns;    /* struct conn.on_worker: all, in any phase */
    struct list sessions; /* struct sess.on_worker */
    struct pool *tasks, *txitems;
    unsigned nconns, nsessions;
    struct deferred reap;
    uint64_t retained; /* bytes of unsolicited data kept for commands that wait */
};
/* Set up by a broadcast before the first connection; tgt_here: of the calling worker thread. */
void tgt_worker_init(struct worker *w);
void tgt_worker_fini(struct worker *w); /* at exit, sessions are gone; tasks may be left behind */
struct tgt_worker *tgt_here(void);

/* --- transports: bytes, not PDUs -------------------------------------------------------------- */

enum xp_caps { XP_ZEROCOPY = 1, XP_SPLICE = 2, XP_RECORDS = 4 };
struct xp {
    const struct xp_ops *ops;
    int fd;
    void *priv;
};
struct xp_ops {
    const char *name;
    int (*handshake)(struct xp *xp);                             /* 0, -EAGAIN, -errno */
    ssize_t (*read)(struct xp *xp, struct iovec *iov, int niov); /* 0: end; -EAGAIN */
    ssize_t (*writev)(struct xp *xp, const struct iovec *iov, int niov, bool more);
    bool (*pending)(const struct xp *xp);  /* decrypted bytes that raise no event */
    int (*wants)(const struct xp *xp);     /* EV_READ | EV_WRITE it needs beyond the caller's */
    unsigned (*caps)(const struct xp *xp); /* enum xp_caps */
    size_t (*record_size)(const struct xp *xp); /* 0: none */
    void (*shutdown)(struct xp *xp);            /* orderly end of sending */
    void (*close)(struct xp *xp);
    const char *(*peer_id)(const struct xp *xp); /* authenticated identity, or NULL */
};
int xp_plain_init(struct xp *xp, int fd); /* owns fd; non-blocking, options of tgt_opts */
void xp_set_dscp(int fd);                 /* tgt_opts.dscp, also for listeners' SYN-ACKs */

/* --- connections ------------------------------------------------------------------------------ */

enum conn_state {              /* RFC 7143 8.1.3: the target's transitions T1..T18 as far as used */
                  CS_FREE,     /* S1 */
                  CS_XPT_UP,   /* S3: connected, no login yet */
                  CS_IN_LOGIN, /* S4 */
                  CS_LOGGED_IN,        /* S5 */
                  CS_IN_LOGOUT,        /* S6 */
                  CS_LOGOUT_REQUESTED, /* S7 */
                  CS_CLEANUP,          /* S8: transport gone or dropped, being torn down */
};

enum conn_ev {
    CE_ACCEPTED,     /* T3 */
    CE_LOGIN_PDU,    /* T4: conn.c, at the first Login Request */
    CE_LOGGED_IN,    /* T5: login.c, after it queued the final Login Response */
    CE_LOGOUT_PDU,   /* T10, T18 */
    CE_LOGOUT_ASKED, /* T11, T14: Async Message sent */
    CE_CLOSE,        /* T6, T7, T8, T13, T15..T17: conn_close */
    CE_GONE,         /* M1: nothing is left of it */
};

struct conn_params { /* per connection, in force from full feature phase */
    bool header_digest, data_digest;
    uint32_t max_recv; /* our MaxRecvDataSegmentLength, bytes */
    uint32_t max_xmit; /* the initiator's, bytes; 8192 until declared */
};

/* A connection's receiver and sender keep their state in rx.h / tx.h structs. */
#include "target/rx.h"
#include "target/tx.h"

struct conn {
    struct worker *w;
    struct list on_worker;
    struct list on_sess;
    struct sess *sess;   /* NULL before the end of login */
    struct login *login; /* NULL after it; login.c's */
    uint8_t state;       /* enum conn_state; assigned in one place: conn_event */
    bool closing;        /* conn_close was called; nothing more is handled or queued */
    bool flushing;       /* closing: what was queued is sent first */
    bool lingering;      /* closing: all is sent, the peer's end is awaited */
    bool detached;       /* closing: the session is done with it */
    bool discovery;
    uint8_t reject_reason; /* enum reject_reason, set by a handler that returns REJECT */
    uint16_t cid;
    struct conn_params p;
    uint32_t stat_sn;     /* next to be stamped */
    uint32_t exp_stat_sn; /* the initiator's last word */
    struct xp xp;
    struct rx rx;
    struct tx tx;
    struct sockaddr_storage peer, local;
    struct portal_id via;      /* the portal it came by */
    struct half *half;         /* its place among those before login; NULL afterwards */
    char peer_text[64];        /* "192.0.2.1:3260", "[::1]:3260", for logs */
    struct worker_timer timer; /* login deadline, then NOP, then logout/close deadline */
    struct {
        uint32_t ttt; /* of the ping in flight; TAG_RESERVED: none */
        unsigned missed;
        unsigned interval_ms, count; /* 0: off */
        uint64_t last_rx_ms;
    } nop;
    uint64_t login_due_ms; /* deadline of the login phase */
    struct {               /* text negotiation in full feature phase, text.c; zeroed at start */
        bool open;         /* an exchange is under way: itt and ttt are its tags */
        uint32_t ttt, itt;
        uint8_t *in; /* pieces of a request with the C bit */
        uint32_t in_len;
        uint8_t *out; /* answer not yet sent, as far as it was made */
        uint32_t out_len, out_pos;
        struct discovery_walk *walk; /* what makes the rest of it; NULL: that is all */
        bool declared;               /* our MaxRecvDataSegmentLength was said in it */
        uint32_t new_max_xmit;       /* in force when the exchange ends; 0: unchanged */
    } text;
    struct { /* async.c: what the initiator was asked for */
        struct worker_timer timer;
        uint8_t event; /* enum async_event; 0: nothing */
        const char *why;
    } asked;
    struct {               /* for administration; by the worker, so read there */
        uint64_t bytes_in, bytes_out, cmds, responses, data_out, data_in;
    } count;
    struct deferred close_later;
    struct establish *est;             /* sess.c: establishment under way */
    void (*move_then)(struct conn *c); /* conn_move under way */
    struct worker *move_to;
    uint8_t *move_bytes;
    uint32_t move_len;
    unsigned refs; /* 1 until closed, pending establishment or move: memory is freed at 0 */
};

/* Where a connection comes from: its ends, and the portal. */
struct conn_from {
    struct sockaddr_storage peer, local;
    struct portal_id via;
    struct half *half; /* the connection takes it over; NULL: not counted */
};
/* On w: takes over fd. Called by accept.c through worker_post. */
void conn_accept(struct worker *w, int fd, const struct conn_from *from);
/* Schedules the end: nothing is freed inside the caller; tasks of the session are ended by sess.c.
 * why: static text, logged. flush: what is queued is sent first (bounded by a deadline). */
void conn_close(struct conn *c, const char *why, bool flush);
/* Moves a connection that is in login, at a PDU boundary and with an empty out-queue, to another
 * worker; then(c) runs there. */
void conn_move(struct conn *c, struct worker *to, void (*then)(struct conn *c));
/* A complete PDU from rx: looked up in pdutab, phase checked, handler called; acts on the verdict.
 */
void conn_on_pdu(struct conn *c, struct pdu *pdu);
/* The one place that assigns conn.state; a pair that is not in the table drops the connection. */
void conn_event(struct conn *c, enum conn_ev ev);
bool conn_is_full_feature(const struct conn *c);
/* Serial numbers of an outgoing PDU: StatSN (bytes 24..27; the next one is taken when `takes`),
 * and in a session ExpCmdSN and MaxCmdSN (28..35). Right before tx_pdu. */
void conn_stamp(struct conn *c, uint8_t bhs[BHS_LEN], bool takes);
/* A handler's `return conn_reject(c, REJ_x)`. */
static inline enum verdict
conn_reject(struct conn *c, enum reject_reason reason)
{
    c->reject_reason = (uint8_t)reason;
    return REJECT;
}
void conn_linger(struct conn *c); /* rx.c: readable while lingering */
void conn_get(struct conn *c);
void conn_put(struct conn *c);

/* half.c: connections accepted and not yet logged in.  half_new: one from `peer` is going to w;
 * takes the place of the oldest at a limit, which is closed by its worker; NULL: no more for now.
 * Main. */
struct half;
struct half *half_new(const struct sockaddr_storage *peer, struct worker *w);
/* On w: the connection is made. False: it has lost its place meanwhile. */
bool half_enter(struct half *h, struct conn *c);
/* It is logged in or gone (NULL: nothing). On w; without half_enter, any thread. */
void half_leave(struct half *h);
unsigned half_count(void); /* all workers; any thread */
/* The same peer, as far as fair shares go: IPv6 by its /64. */
bool half_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

/* --- login (login.c) -------------------------------------------------------------------------- */

enum login_status { /* class << 8 | detail, RFC 7143 11.13.5 */
                    LS_OK = 0x0000,
                    LS_MOVED_TEMP = 0x0101,
                    LS_MOVED_PERM = 0x0102,
                    LS_INITIATOR_ERROR = 0x0200,
                    LS_AUTH_FAILURE = 0x0201,
                    LS_AUTHORIZATION = 0x0202,
                    LS_NOT_FOUND = 0x0203,
                    LS_REMOVED = 0x0204,
                    LS_VERSION = 0x0205,
                    LS_TOO_MANY_CONNS = 0x0206,
                    LS_MISSING_PARAMETER = 0x0207,
                    LS_CANT_INCLUDE = 0x0208,
                    LS_SESSION_TYPE = 0x0209,
                    LS_NO_SESSION = 0x020a,
                    LS_INVALID_REQUEST = 0x020b,
                    LS_TARGET_ERROR = 0x0300,
                    LS_UNAVAILABLE = 0x0301,
                    LS_NO_RESOURCES = 0x0302,
                    LS_ASKING = 0xffff, /* of this target only: not known yet */
};

struct sess_params { /* agreed by the leading login */
    uint32_t max_burst, first_burst, max_r2t;
    uint32_t time2wait, time2retain, max_connections, erl;
    uint32_t protocol_level; /* 2: RFC 7144 */
    bool initial_r2t, immediate_data, data_pdu_in_order, data_seq_in_order;
};

/* What sess_establish needs of a login; filled by login.c. */
struct login_result {
    char initiator[ISCSI_NAME_MAX + 1];
    char initiator_alias[256];
    uint8_t isid[6];
    uint16_t tsih; /* as asked: 0 new session */
    uint16_t tpgt; /* of the portal group it came by */
    uint16_t cid;
    bool discovery;
    struct tgt_node *node;   /* reference; NULL in discovery */
    struct account *account; /* by which it authenticated itself, borrowed; NULL: none */
    struct sess_params sp;
    struct conn_params cp;
    uint32_t cmd_sn; /* of the login request: first CmdSN expected (RFC 7143 11.12.8) */
};

/* First PDU and all later ones until full feature phase. */
enum verdict login_pdu(struct conn *c, struct pdu *pdu);
/* Frees c->login (NULL: nothing to do). Called by conn.c when the connection ends. */
void login_free(struct conn *c);
/* A PDU that is no Login Request came in state CS_IN_LOGIN: answers 02/0b and closes (RFC 7143
 * 6.3.1). In CS_XPT_UP the connection is dropped without a word instead. */
enum verdict login_foreign_pdu(struct conn *c, const struct pdu *pdu);
/* `res` is copied (its node reference stays the caller's).
 * login.c -> sess.c: the negotiation is complete; sess.c decides on session, TSIH and worker
 * (reinstating where due), moves the connection, and answers with login_established on the
 * connection's (new) worker, never inside this call.  Until then the connection reads nothing; it
 * may close meanwhile (then login_established does not come, login_free does). */
void sess_establish(struct conn *c, const struct login_result *res);
/* status LS_OK: c->sess is set, login.c sends the final response (TSIH = c->sess->tsih) and calls
 * conn_event to LOGGED_IN; else: sends the refusal and closes. */
void login_established(struct conn *c, enum login_status status);

/* --- registry (registry.c): its own lock; any thread ------------------------------------------ */

struct registry_entry; /* opaque: a claim on a key, a TSIH and a worker */

struct registry_claim {
    struct registry_entry *entry; /* the caller's, until registry_remove; NULL with TSIH given */
    struct worker *w;             /* where the session is to live, or lives */
    struct worker *old_w;         /* session to be ended first (RFC 7143 6.3.5), or NULL */
    uint64_t old_sid, sid;
    uint16_t tsih;
};

/* TSIH 0: takes the key (initiator, ISID, target, TPGT) over, chooses TSIH and worker: LS_OK,
 * LS_NO_RESOURCES. TSIH given: LS_OK and where that session is, or LS_NO_SESSION. `here`: where
 * discovery sessions stay. */
enum login_status registry_claim(const struct login_result *res, struct worker *here,
                                 struct registry_claim *claim);
/* The session stands. False: somebody took the key meanwhile; the session must not be made. */
bool registry_commit(struct registry_entry *e);
void registry_remove(struct registry_entry *e);
unsigned registry_count(void); /* sessions, in the making too */

/* --- sessions (sess.c) ------------------------------------------------------------------------ */

struct sess {
    struct worker *w;
    struct list on_worker;
    struct list conns;
    struct tgt_node *node; /* reference; NULL in discovery */
    struct itn *itn;       /* NULL in discovery */
    char initiator[ISCSI_NAME_MAX + 1];
    char alias[256];
    uint8_t isid[6];
    uint16_t tsih;
    uint64_t sid; /* for tools, unique in the daemon */
    bool discovery, dying;
    bool authenticated; /* it proved who it is */
    unsigned refs;      /* 1 until it ended, tasks: their buffers are in its budget */
    struct deferred free_later, run_later;
    struct sess_params p;
    struct budget budget;
    /* numbering, RFC 7143 4.2.2.1 */
    uint32_t exp_cmd_sn, max_cmd_sn;
    unsigned max_cmds; /* window */
    struct list held;  /* PDUs (copies) that came before their turn, in CmdSN order */
    unsigned nheld;
    uint32_t held_bytes; /* their data */
    /* tasks */
    struct list tasks; /* all, oldest first */
    unsigned ntasks;
    unsigned nqueued, nimmediate; /* of them: unanswered, by kind; the window follows nqueued */
    struct task **by_itt;         /* hash with chains, fixed at creation */
    unsigned by_itt_size;         /* power of two */
    uint32_t next_ttt;
    struct list tmfs; /* pending, in order of arrival */
    unsigned ntmfs;
    uint64_t cmds, bytes_in, bytes_out;
    uint64_t created_ms;
    struct registry_entry *entry;
};

/* CmdSN order (RFC 7143 4.2.2.1): immediate PDUs run at once; others in order, held when early,
 * dropped silently outside the window. Calls `run` for pdu (and for held ones that follow). */
enum verdict sess_admit(struct sess *s, struct conn *c, struct pdu *pdu);
/* Fills ExpCmdSN and MaxCmdSN of a response. */
void sess_stamp(struct sess *s, uint8_t *bhs);
/* A CmdSN that will not come counts as received (RFC 7143 4.2.2.1, 11.5.1): all below `below`;
 * one. False: outside [ExpCmdSN, MaxCmdSN]. Held PDUs with such a number are dropped, those whose
 * turn it is now run (later). */
void sess_plug_below(struct sess *s, uint32_t below);
bool sess_plug(struct sess *s, uint32_t cmd_sn);
void sess_get(struct sess *s);
void sess_put(struct sess *s);
/* For administration: Async Message event 3 (target drops the session) first, then sess_kill. */
void sess_drop(struct sess *s, const char *why);
/* Main: ends every session of the named target on all workers (NULL name: every session). */
void sess_kill_target(const char *target_name, const char *why);
/* Ends the session: all its tasks are aborted or orphaned, its connections closed. */
void sess_kill(struct sess *s, const char *why);
void sess_conn_gone(struct sess *s, struct conn *c);
void sess_establish_gone(struct conn *c); /* the connection ends in the middle of it */
/* On the session's worker: a session for this claim. */
struct sess *sess_new(struct worker *w, const struct login_result *res,
                      const struct registry_claim *claim);
void sess_attach(struct sess *s, struct conn *c, const struct login_result *res);
struct sess *sess_find_here(uint64_t sid); /* NULL: not on this worker (any more) */
void sess_node_changed(struct sess *s, struct tgt_node *n); /* NULL: removed */
/* Main, at the daemon's end (portals are closed): every session is asked to log out (Async Message
 * event 1), those left after tgt_opts.shutdown_s are killed; then done(arg) on main. */
void sess_shutdown_all(void (*done)(void *arg), void *arg);

/* --- tasks (task.c, datain.c, dataout.c) ------------------------------------------------------ */

#define R2T_MAX 16

struct r2t {
    uint32_t ttt, offset, len, got; /* got: bytes received in order */
    uint32_t data_sn;               /* next expected */
    bool open;
};

enum data_place { DP_NOWHERE, DP_WINDOW, DP_KEPT }; /* where a Data-Out on its way goes */

struct task {
    struct scsi_cmd cmd; /* first: one block from the pool */
    struct sess *sess;   /* a reference; may be dying */
    struct conn *conn;   /* allegiance; NULL once that is gone */
    struct list on_sess; /* until it is answered or dropped */
    struct task *hash_next;
    struct deferred later;
    uint32_t itt, cmd_sn, edtl;
    bool is_read, is_write, immediate;
    bool submitted; /* scsi_release is owed */
    bool done;      /* scsi is through with it */
    bool linked;    /* in by_itt and in sess->tasks: unanswered */
    bool quiet;     /* aborted: nothing more is sent */
    bool no_room;   /* given up by us for want of memory: ends TASK SET FULL */
    bool lost;      /* its unit was taken away: ends CHECK CONDITION, answered or not yet */
    unsigned refs;  /* out-queue items that point into it, plus one until it is answered */
    uint8_t *long_cdb;
    /* data-out; offsets are bytes in the command's data */
    const uint8_t *imm; /* immediate data in the receive buffer: during task_start only */
    uint32_t imm_len;
    uint8_t *kept; /* data that came before they were pulled: [kept_off, +kept_len) */
    uint32_t kept_off, kept_len, kept_cap;
    bool pulling;       /* scsi waits for [cmd.win_off, +cmd.win_len) */
    bool unsol_open;    /* an unsolicited burst is expected and has not had its F bit */
    bool answer_waits;  /* done, but data are still on their way (RFC 7143 11.4.2) */
    uint8_t place;      /* enum data_place of the Data-Out being received */
    uint16_t fail_asc;  /* the data phase failed; 0: not */
    uint32_t have;      /* bytes of the window that are in place */
    uint32_t pulled_to; /* end of the last window asked for */
    uint32_t unsol_next, unsol_end, unsol_data_sn;
    uint32_t asked; /* end of what immediate, unsolicited data and R2Ts cover */
    uint32_t r2t_sn;
    unsigned nr2t; /* open ones */
    struct r2t r2t[R2T_MAX];
    /* data-in */
    uint32_t data_sn;
    uint32_t burst;  /* bytes since the last F bit */
    unsigned unsent; /* out-queue items of the window pushed */
    bool pushing;
};

enum verdict task_start(struct conn *c, struct pdu *pdu); /* SCSI Command, in order */
struct task *task_find(struct sess *s, uint32_t itt);     /* unanswered ones only */
/* Status and sense of t->cmd are final: data, status, end. Waits for data-out on its way. */
void task_answer(struct task *t);
/* Ends a task without a word: at once when scsi is through with it, else when it says done. */
void task_drop(struct task *t);
void task_get(struct task *t);
void task_put(struct task *t);
/* No longer found by its tag and out of the window's count: right before its status is stamped. */
void task_unlink(struct task *t);

/* Data-In PDUs of the window; with status in the last one when `last` and GOOD (then true). */
bool datain_send(struct task *t, bool last);
void datain_push(struct scsi_cmd *cmd);
/* Residual flags (byte 1) and count for a response of this task. */
uint8_t datain_residual(const struct task *t, uint32_t *count);

/* The header of a Data-Out: says where its data go (rx.to, rx.task) before they come. */
void dataout_begin(struct conn *c, struct pdu *pdu);
enum verdict dataout_pdu(struct conn *c, struct pdu *pdu); /* whole; pdu->bad_data: digest */
/* Sets up what the command promises (after edtl, flags, imm). 0, or the additional sense code of
 * the violation (RFC 7143 11.4.7.2). */
uint16_t dataout_init(struct task *t, bool final);
bool dataout_pull(struct scsi_cmd *cmd);
const uint8_t *dataout_peek(struct scsi_cmd *cmd, uint32_t len);
/* After scsi_submit: immediate data that were not pulled yet are copied. */
void dataout_keep_immediate(struct task *t);
bool dataout_is_open(const struct task *t); /* data that were promised or asked for are missing */
void dataout_fini(struct task *t);

/* tmf.c: ExpCmdSN moved; the session or a connection ends */
void tmf_kick(struct sess *s);
void tmf_forget_all(struct sess *s);
void tmf_forget_conn(struct sess *s, struct conn *c);
/* The last Data-Out of a burst (F bit) that no task wants: a function may wait for it. */
void tmf_data_final(struct sess *s, const struct pdu *pdu);
/* nop.c */
void nop_start(struct conn *c);
void nop_timer(struct conn *c);
void conn_verdict(struct conn *c, const struct pdu *pdu, enum verdict v);

/* handlers of pdutab.c, each on the connection's worker */
enum verdict tmf_pdu(struct conn *c, struct pdu *pdu);
enum verdict nop_out_pdu(struct conn *c, struct pdu *pdu);
enum verdict text_pdu(struct conn *c, struct pdu *pdu);
void text_free(struct conn *c); /* the connection ends: what c->text holds */
enum verdict logout_pdu(struct conn *c, struct pdu *pdu);

/* Reject with a copy of the header (RFC 7143 11.17). */
void reject_send(struct conn *c, const struct pdu *pdu, enum reject_reason reason);

/* --- Asynchronous Messages (async.c; RFC 7143 11.9) ------------------------------------------- */

enum async_event { ASYNC_LOGOUT = 1, ASYNC_DROP_CONN = 2, ASYNC_DROP_SESS = 3, ASYNC_TEXT = 4 };
void async_send(struct conn *c, enum async_event event, uint16_t p1, uint16_t p2, uint16_t p3);
/* Asks the initiator to log out within `s` seconds; whoever is still there then is dropped (event
 * 3, why in the log). Asking again moves the deadline. */
void async_ask_logout(struct conn *c, unsigned s, const char *why);
/* What was asked is not enforced any more. */
void async_withdraw(struct conn *c);
/* Asks for a Text Request within `s` seconds, in answer to which the target declares its
 * MaxRecvDataSegmentLength anew; a connection without one is dropped (event 2). Of no effect while
 * a logout is asked for. */
void async_ask_text(struct conn *c, unsigned s);
bool async_text_is_due(const struct conn *c);
void async_text_came(struct conn *c); /* a negotiation has ended */
void async_init(struct conn *c);      /* the connection comes to its worker */

/* --- discovery (discovery.c) ------------------------------------------------------------------ */

struct text_out;
struct discovery_walk;

/* Answers SendTargets=value: appends what there is to say at once; for all targets c->text.walk is
 * set, and discovery_more has the records. */
void discovery_ask(struct conn *c, const char *value, struct text_out *out);
/* Appends records of c->text.walk until more than `want` bytes are in out or the walk has ended
 * (then it is NULL). */
void discovery_more(struct conn *c, struct text_out *out, size_t want);
void discovery_forget(struct conn *c);

#endif
