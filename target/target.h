/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to target/: connections, sessions, tasks and who may call what.
 *
 *   portal.c  accepts on main, hands the socket to a worker
 *   conn.c    a connection's life and state machine; closing is always scheduled
 *   rx.c      bytes -> PDUs            tx.c     out-queue -> one gathering send a loop turn
 *   login.c   login phase, keys.c/nego.c text keys, name.c, acl.c, discovery.c, text.c
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
#include <sys/socket.h>

#include "base/budget.h"
#include "base/list.h"
#include "base/log.h"
#include "base/ref.h"
#include "base/worker.h"
#include "scsi/scsi.h"
#include "target/pdu.h"

#define ISCSI_NAME_MAX 223 /* bytes, RFC 7143 4.2.7.1 */

struct conn;
struct sess;
struct task;
struct login;

/* What a protocol check decides; never mixed with errno or sense. */
enum verdict { KEEP, REJECT, DROP_CONN, DROP_SESS };

/* --- daemon-wide options; written by main before the workers start, or published by broadcast ---- */

struct tgt_opts {
    unsigned login_timeout_s;   /* 15: from accept to full feature phase */
    unsigned max_half_open;     /* 512 connections before login, all portals */
    unsigned max_sessions;      /* 4096 */
    unsigned login_bytes_max;   /* 64 KiB of text in one login */
    unsigned nop_interval_s;    /* 10; 0: off. per node overridable */
    unsigned nop_count;         /* 3 unanswered pings (as tgt) */
    unsigned shutdown_s;        /* 5: deadline for an orderly SIGTERM */
    uint64_t sess_mem_bytes;    /* 16 MiB */
    bool affine;                /* placement: all sessions of a target on one worker */
};
extern struct tgt_opts tgt_opts;

/* --- names and access (name.c, acl.c) ----------------------------------------------------------------- */

/* RFC 7143 4.2.7.2 / RFC 3722 as far as ASCII goes: lower case; iqn., eui., naa. forms checked;
 * no control characters or blanks; <= 223 bytes. Returns 0 and the normalised name in out
 * (ISCSI_NAME_MAX + 1 bytes), or -EINVAL and *why (static text). */
int name_normalise(const char *in, size_t len, char *out, const char **why);
/* The same without the check of the iqn., eui., naa. forms: for what a peer calls itself or asks
 * for, where strictness would only lock out old installations. */
int name_fold(const char *in, size_t len, char *out, const char **why);

struct acl; /* immutable, counted */
/* addrs: NULL-terminated "ALL", "10.0.0.0/8", "::1/128", "192.168.1.7"...; names: exact or with
 * * and ?.  Both given: both must match.  Neither: nobody.  NULL and a message on bad input;
 * warn (may be NULL) receives a warning such as host bits set. */
struct acl *acl_new(const char *const *addrs, const char *const *names, char *err, size_t errsize,
                    char *warn, size_t warnsize);
struct acl *acl_get(struct acl *a);
void acl_put(struct acl *a);
bool acl_admits(const struct acl *a, const struct sockaddr *peer, const char *initiator_name);

/* --- text keys (keys.c): one row each -------------------------------------------------------------------- */

enum key_id {
    KEY_AUTH_METHOD,
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
/* name as in RFC 7143 (tgt's spelling, any case); 0 or -EINVAL with a message that gives the
 * range. */
int keys_set(struct key_values *kv, const char *name, const char *value, char *err, size_t errsize);
/* For show and dump: name and value text of key i; false when the key is not settable. */
bool keys_show(const struct key_values *kv, unsigned i, const char **name, char *value, size_t size);
/* The table as Markdown, line by line, for the documentation. */
void keys_dump(void (*line)(const char *s, void *arg), void *arg);

/* --- targets as workers see them (node.c): immutable, counted ----------------------------------------------- */

struct tgt_node {
    struct ref ref;
    unsigned tid;
    char name[ISCSI_NAME_MAX + 1]; /* normalised */
    char alias[256];
    uint16_t tpgt; /* 1 */
    bool offline;  /* state offline: logins answered 03/01 */
    unsigned nop_interval_s, nop_count; /* 0xffffffff: daemon's */
    unsigned max_cmds; /* CmdSN window; MaxQueueCmd, default 128 */
    struct key_values keys;
    struct acl *acl;
    struct lun_map *map;
};

struct node_portal {
    struct sockaddr_storage addr; /* as bound; may be a wildcard */
    uint16_t tpgt;
};

struct node_set {
    struct ref ref;
    unsigned n;
    struct tgt_node **nodes; /* sorted by name */
    unsigned nportals;
    struct node_portal *portals;
};

struct tgt_node *node_get(struct tgt_node *n);
void node_put(struct tgt_node *n);
/* On a worker: the set published to it; borrowed until the next loop turn. */
const struct node_set *node_set_here(void);
struct tgt_node *node_find(const struct node_set *set, const char *name); /* borrowed */
/* Main: takes over `set`; every worker switches (sessions of removed or changed nodes are told:
 * sess_node_changed); then done(arg) on main and the old set is let go. */
void node_publish(struct node_set *set, void (*done)(void *arg), void *arg);

/* --- portals (portal.c): listeners, on main ------------------------------------------------------------------ */

/* Binds (through the opener) and accepts from now on; sockets go to the workers. tpgt: 1.
 * 0, or -errno with a message. Main, before or in its loop. */
int portal_open(const struct sockaddr *addr, socklen_t addrlen, uint16_t tpgt, char *err,
                size_t errsize);
/* Stops listening; connections made stay. -ENOENT. Main. */
int portal_close(const struct sockaddr *addr, socklen_t addrlen);
void portal_close_all(void);
/* What is bound now (port 0 resolved), at most max; returns how many there are. Main. */
unsigned portal_list(struct node_portal *out, unsigned max);
/* "192.0.2.1:3260", "[2001:db8::1]:3260"; v4-mapped addresses as IPv4, zone ids left out. Any
 * thread; buf of 64 bytes always suffices. */
const char *portal_text(const struct sockaddr_storage *sa, char *buf, size_t size);

/* --- what this room keeps on each worker --------------------------------------------------------------------- */

struct tgt_worker {
    struct worker *w;
    struct node_set *nodes;
    struct list conns;    /* struct conn.on_worker: all, in any phase */
    struct list sessions; /* struct sess.on_worker */
    struct pool *tasks, *txitems;
    unsigned nconns, nsessions;
};
/* Set up by a broadcast before the first connection; tgt_here: of the calling worker thread. */
void tgt_worker_init(struct worker *w);
struct tgt_worker *tgt_here(void);

/* --- transports: bytes, not PDUs ------------------------------------------------------------------------------- */

enum xp_caps { XP_ZEROCOPY = 1, XP_SPLICE = 2, XP_RECORDS = 4 };
struct xp {
    const struct xp_ops *ops;
    int fd;
    void *priv;
};
struct xp_ops {
    const char *name;
    int (*handshake)(struct xp *xp);                                  /* 0, -EAGAIN, -errno */
    ssize_t (*read)(struct xp *xp, struct iovec *iov, int niov);      /* 0: end; -EAGAIN */
    ssize_t (*writev)(struct xp *xp, const struct iovec *iov, int niov, bool more);
    bool (*pending)(const struct xp *xp);   /* decrypted bytes that raise no event */
    int (*wants)(const struct xp *xp);      /* EV_READ | EV_WRITE it needs beyond the caller's */
    unsigned (*caps)(const struct xp *xp);  /* enum xp_caps */
    size_t (*record_size)(const struct xp *xp); /* 0: none */
    void (*shutdown)(struct xp *xp);        /* orderly end of sending */
    void (*close)(struct xp *xp);
    const char *(*peer_id)(const struct xp *xp); /* authenticated identity, or NULL */
};
int xp_plain_init(struct xp *xp, int fd); /* owns fd; non-blocking, TCP_NODELAY */

/* --- connections ---------------------------------------------------------------------------------------------------- */

enum conn_state { /* RFC 7143 8.1.3: the target's transitions T1..T18 as far as used */
    CS_FREE,       /* S1 */
    CS_XPT_UP,     /* S3: connected, no login yet */
    CS_IN_LOGIN,   /* S4 */
    CS_LOGGED_IN,  /* S5 */
    CS_IN_LOGOUT,  /* S6 */
    CS_LOGOUT_REQUESTED, /* S7 */
    CS_CLEANUP,    /* S8: transport gone or dropped, being torn down */
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
    bool closing;        /* conn_close was called; nothing more is read or sent */
    bool discovery;
    uint16_t cid;
    struct conn_params p;
    uint32_t stat_sn;     /* next to be stamped */
    uint32_t exp_stat_sn; /* the initiator's last word */
    struct xp xp;
    struct rx rx;
    struct tx tx;
    struct sockaddr_storage peer, local;
    char peer_text[64];   /* "192.0.2.1:3260", "[::1]:3260", for logs */
    struct worker_timer timer; /* login deadline, then NOP, then logout/close deadline */
    struct {
        uint32_t ttt;      /* of the ping in flight; TAG_RESERVED: none */
        unsigned missed;
        uint64_t last_rx_ms;
    } nop;
    struct {               /* text negotiation in full feature phase, text.c; zeroed at start */
        bool open;         /* an exchange is under way: itt and ttt are its tags */
        uint32_t ttt, itt;
        uint8_t *in;       /* pieces of a request with the C bit */
        uint32_t in_len;
        uint8_t *out;      /* answer not yet sent */
        uint32_t out_len, out_pos;
        uint32_t new_max_xmit; /* in force when the exchange ends; 0: unchanged */
    } text;
    struct log_rate rate;
    struct deferred close_later;
    unsigned refs; /* out-queue items, tasks: memory is freed when 0 and closed */
};

/* On w: takes over fd. Called by portal.c through worker_post. */
void conn_accept(struct worker *w, int fd, const struct sockaddr_storage *peer,
                 const struct sockaddr_storage *local);
/* Schedules the end: nothing is freed inside the caller; tasks of the session are ended by sess.c.
 * why: static text, logged. flush: what is queued is sent first (bounded by a deadline). */
void conn_close(struct conn *c, const char *why, bool flush);
/* Moves a connection that is in login, at a PDU boundary and with an empty out-queue, to another
 * worker; then(c) runs there. */
void conn_move(struct conn *c, struct worker *to, void (*then)(struct conn *c));
/* A complete PDU from rx: looked up in pdutab, phase checked, handler called; acts on the verdict. */
void conn_on_pdu(struct conn *c, struct pdu *pdu);
/* Connections accepted and not yet in full feature phase, all workers. */
unsigned conn_half_open(void);

/* --- login (login.c) ------------------------------------------------------------------------------------------------- */

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
};

struct sess_params { /* agreed by the leading login */
    uint32_t max_burst, first_burst, max_r2t;
    uint32_t time2wait, time2retain, max_connections, erl;
    bool initial_r2t, immediate_data, data_pdu_in_order, data_seq_in_order;
};

/* What sess_establish needs of a login; filled by login.c. */
struct login_result {
    char initiator[ISCSI_NAME_MAX + 1];
    char initiator_alias[256];
    uint8_t isid[6];
    uint16_t tsih; /* as asked: 0 new session */
    uint16_t cid;
    bool discovery;
    struct tgt_node *node; /* reference; NULL in discovery */
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
/* login.c -> sess.c: the negotiation is complete; sess.c decides on session, TSIH and worker
 * (reinstating where due), moves the connection, and answers with login_established on the
 * connection's (new) worker.  Until then the connection reads nothing. */
void sess_establish(struct conn *c, const struct login_result *res);
/* status LS_OK: c->sess is set, login.c sends the final response (TSIH = c->sess->tsih) and calls
 * conn_event to LOGGED_IN; else: sends the refusal and closes. */
void login_established(struct conn *c, enum login_status status);

/* --- sessions (sess.c) -------------------------------------------------------------------------------------------------- */

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
    struct sess_params p;
    struct budget budget;
    /* numbering, RFC 7143 4.2.2.1 */
    uint32_t exp_cmd_sn, max_cmd_sn;
    unsigned max_cmds;       /* window */
    struct list held;        /* PDUs (copies) that came before their turn, in CmdSN order */
    unsigned nheld;
    /* tasks */
    struct list tasks;       /* all, oldest first */
    unsigned ntasks;
    struct task **by_itt;    /* small open hash of ntasks, power of two */
    unsigned by_itt_size;
    uint32_t next_ttt;
    struct list tmfs;        /* pending */
    uint64_t cmds, bytes_in, bytes_out;
    uint64_t created_ms;
};

/* CmdSN order (RFC 7143 4.2.2.1): immediate PDUs run at once; others in order, held when early,
 * dropped silently outside the window. Calls `run` for pdu (and for held ones that follow). */
enum verdict sess_admit(struct sess *s, struct conn *c, struct pdu *pdu);
/* Fills ExpCmdSN and MaxCmdSN of a response. */
void sess_stamp(struct sess *s, uint8_t *bhs);
/* Ends the session: all its tasks are aborted or orphaned, its connections closed. */
void sess_kill(struct sess *s, const char *why);
void sess_conn_gone(struct sess *s, struct conn *c);
void sess_node_changed(struct sess *s, struct tgt_node *n); /* NULL: removed */
/* Main, at the daemon's end (portals are closed): every session is asked to log out (Async Message
 * event 1), those left after tgt_opts.shutdown_s are killed; then done(arg) on main. */
void sess_shutdown_all(void (*done)(void *arg), void *arg);

/* --- registry (registry.c): its own lock; any thread ---------------------------------------------------------------------- */

struct registry_entry; /* opaque to callers but sess.c */

/* --- tasks (task.c, datain.c, dataout.c) ------------------------------------------------------------------------------------ */

#define R2T_MAX 16

struct r2t {
    uint32_t ttt, offset, len, got; /* got: bytes received in order */
    uint32_t data_sn;               /* next expected */
    bool open;
};

struct task {
    struct scsi_cmd cmd; /* first: one block from the pool */
    struct sess *sess;   /* NULL once orphaned */
    struct conn *conn;   /* allegiance; may be gone */
    struct list on_sess;
    struct task *hash_next;
    uint32_t itt, cmd_sn, edtl;
    uint8_t flags;
    bool is_read, is_write, immediate;
    bool done;      /* scsi is through with it */
    bool quiet;     /* aborted: nothing more is sent */
    unsigned refs;  /* out-queue items that point into it, plus one until done */
    /* data-out */
    uint8_t *imm;   /* immediate data kept until pulled; own memory, or the receive buffer during submit */
    uint32_t imm_len;
    bool imm_owned;
    uint32_t unsol_left;  /* bytes of unsolicited Data-Out still allowed */
    bool unsol_open;      /* an unsolicited burst is expected and has not had its F bit */
    uint32_t unsol_data_sn;
    uint32_t got;         /* bytes in place, in order from 0 */
    uint32_t asked;       /* bytes covered by immediate, unsolicited and R2T so far */
    uint32_t r2t_sn;
    struct r2t r2t[R2T_MAX];
    unsigned nr2t;
    /* data-in */
    uint32_t data_sn, sent;
    struct list rx_waiters;
};

enum verdict task_start(struct conn *c, struct pdu *pdu);       /* SCSI Command, in order */
enum verdict dataout_pdu(struct conn *c, struct pdu *pdu);      /* checked header; data in place */
struct task *task_find(struct sess *s, uint32_t itt);
void task_abort_all(struct sess *s);

/* handlers of pdutab.c, each on the connection's worker */
enum verdict tmf_pdu(struct conn *c, struct pdu *pdu);
enum verdict nop_out_pdu(struct conn *c, struct pdu *pdu);
enum verdict text_pdu(struct conn *c, struct pdu *pdu);
void text_free(struct conn *c); /* the connection ends: what c->text holds */
enum verdict logout_pdu(struct conn *c, struct pdu *pdu);

/* Reject with a copy of the header (RFC 7143 11.17). */
void reject_send(struct conn *c, const struct pdu *pdu, enum reject_reason reason);
/* Asynchronous Message (RFC 7143 11.9): event 1 logout request, 2 connection drop, 3 session drop,
 * 4 renegotiate. */
void async_send(struct conn *c, uint8_t event, uint16_t p1, uint16_t p2, uint16_t p3);

/* --- discovery (discovery.c) ----------------------------------------------------------------------------------------------------- */

/* Appends the answer to SendTargets=value for this connection: what it may log in to, at
 * addresses it can reach. Returns malloc'ed text (keys separated by NUL) and its length. */
uint8_t *discovery_answer(struct conn *c, const char *value, uint32_t *len);
/* The host's addresses, shown for wildcard portals. Main, now and then (portal.c). */
void discovery_refresh_addrs(void);

#endif
