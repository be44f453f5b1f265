/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logical units as the transport (target/) sees them.  This is the room's one public header.
 *
 * One command: the transport fills a scsi_cmd and calls scsi_submit on the session's worker.
 * The room checks it against the opcode table, may park it, asks the transport for data-out
 * (xport->pull), runs backend requests, and ends with xport->done exactly once, never inside
 * scsi_submit.  After done the command is the transport's; when its last byte is sent (or it is
 * dropped) the transport calls scsi_release, then may reuse the memory.
 *
 * Threads: everything with a cmd or an itn belongs to the session's worker.  A `lun` is shared:
 * see each function.
 */
#ifndef SCSI_SCSI_H
#define SCSI_SCSI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "base/budget.h"
#include "base/list.h"

struct buf;
struct cstore;
struct itn;
struct lun;
struct lun_map;
struct mode_change;
struct nexus;
struct scsi_cmd;
struct scsi_op;
struct tmf_job;
struct worker;

/* --- identity (SPC-4 7.8.6; unique across hosts, stable over restarts and re-ordering) ------- */

#define LUN_DESIGNATORS_MAX 200u   /* bytes of all descriptors that are given whole */
#define LUN_MAX_NUMBER      16383u /* flat space addressing (SAM-5 4.7.7) */

struct lun_ident {
    uint8_t naa[16]; /* NAA designator, naa_len 8 or 16; 0: none */
    uint8_t naa_len;
    uint8_t eui[16]; /* EUI-64 designator, 8, 12 or 16; 0: none */
    uint8_t eui_len;
    char t10_id[64];      /* vendor specific part of the T10 vendor id designator ("scsi_id") */
    char serial[64];      /* unit serial number, VPD 80 ("scsi_sn") */
    uint8_t serial_width; /* VPD 80 has at least so many bytes: blanks stand before the number */
    /* What another target reported: designation descriptors (SPC-4 7.8.6.1) of the logical unit as
     * they stand in VPD 83, in place of those made of the above. 0: none. */
    uint8_t raw[LUN_DESIGNATORS_MAX];
    uint8_t raw_len;
};

/* The default identity from the host's random seed (32 bytes, kept in the control store) and
 * be_identity(): SHA-256 of both; NAA 3h (locally assigned) of 8 bytes, serial and T10 id of 32
 * hex digits.  Nothing of tid, LUN number or order goes in. */
void lun_ident_default(struct lun_ident *id, const uint8_t seed[32], const char *store_identity);

/* --- logical units --------------------------------------------------------------------------- */

struct lun_conf {
    struct lun_ident ident;
    char vendor_id[9];      /* default "EVTGT" */
    char product_id[17];    /* default "VIRTUAL-DISK" */
    char product_rev[5];    /* default from the package version */
    uint32_t block_size;    /* bytes: 512 or 4096 */
    uint8_t lbppbe;         /* log2 of logical blocks per physical block */
    uint16_t la_lba;        /* lowest aligned LBA */
    uint16_t opt_xfer_gran; /* blocks; 0: not reported */
    uint32_t opt_xfer_len;  /* blocks; 0: not reported */
    uint16_t rotation_rate; /* VPD B1: 0 unknown, 1 non-rotating, else rpm; 0xffff: ask backend */
    bool thin;              /* thin_provisioning: LBPME as far as the backend can discard */
    bool read_only;
    bool removable;
    bool write_cache;      /* initial WCE */
    bool swp;              /* initial software write protect */
    bool descriptor_sense; /* initial D_SENSE ("sense_format") */
    bool online;
    bool volatile_ack; /* of a volatile backend: not ready until lun_acknowledge */
    /* Settings of mode pages: blank-separated PAGE:SUBPAGE:LENGTH:BYTE:...; NULL: none. Read by
     * lun_new and lun_update, not kept. */
    const char *mode_pages;
    struct cstore *cstore; /* where saved mode pages live; NULL: PS=0, nothing is saved */
};

/* Are these settings of mode pages right? 0, or -EINVAL and why. */
int lun_mode_pages_check(const char *text, char *err, size_t errsize);

/* Shared, counted.  Takes over the caller's reference on `be` (any state).  NULL with a message:
 * bad values, or block size and backend do not fit.  Main. */
struct lun *lun_new(const struct lun_conf *conf, struct backend *be, char *err, size_t errsize);
struct lun *lun_get(struct lun *lun);
/* Last reference frees it (any thread); the backend must be closed or closes by itself then. */
void lun_put(struct lun *lun);
struct backend *lun_backend(struct lun *lun);
const struct lun_conf *lun_conf(const struct lun *lun);

/* Live changes, main (a worker: the cache is flushed when it goes off); atomic for the data
 * workers. Each sets the unit attentions it owes. */
int lun_update(struct lun *lun, const struct lun_conf *conf, char *err, size_t errsize);
/* Would it? */
int lun_check(const struct lun *lun, const struct lun_conf *conf, char *err, size_t errsize);
void lun_set_online(struct lun *lun, bool online);
/* Volatile contents that nobody has said to know of: the unit is not ready (02/04/03). Any thread.
 */
bool lun_awaits_ack(struct lun *lun);
/* Says so: the unit becomes ready, every nexus is told. False: it awaits nothing. Main. */
bool lun_acknowledge(struct lun *lun);
/* `lun`, which nobody has seen yet, takes the place of `old` in LUN maps (the medium was
 * exchanged): a nexus that had `old` gets the unit attentions of what differs instead of those of
 * another unit, and keeps its reservation and its PREVENT. Main, before `lun` is in any map. */
void lun_follow(struct lun *lun, struct lun *old);
/* What is in the backend's cache goes to the medium, in the background; a failure is sticky in the
 * backend. Any worker's thread. */
void lun_flush(struct lun *lun);
/* Told what be_probe found (bits of enum be_event): capacity and not-ready-to-ready unit
 * attentions (SBC-3, SPC-4 5.14).  Any thread. */
void lun_probed(struct lun *lun, unsigned be_events);

struct lun_state {
    uint64_t nblocks;
    uint32_t block_size;
    bool ready, online, read_only, swp, wce, removable, thin, reserved, prevent_removal;
    bool flush_failed;
    bool is_volatile, awaits_ack;
    unsigned itns;    /* I_T nexuses that see it */
    char reason[160]; /* why not ready, in words; "" when ready */
};
void lun_state(struct lun *lun, struct lun_state *out); /* any thread */
/* Who may write the unit though another may, too, without a reservation: names of initiators, at
 * most `max` of them; 0: that is not so. Any thread. */
unsigned lun_sharers(struct lun *lun, char (*names)[224], unsigned max);

/* --- LUN maps: immutable, counted, any thread ------------------------------------------------ */

struct lun_map_entry {
    uint16_t number;
    struct lun *lun;
};

/* Sorted copy with references on the LUNs; -> NULL only for duplicate or too large numbers. */
struct lun_map *lun_map_new(const struct lun_map_entry *e, unsigned n);
struct lun_map *lun_map_get(struct lun_map *m);
void lun_map_put(struct lun_map *m);
unsigned lun_map_count(const struct lun_map *m);
const struct lun_map_entry *lun_map_at(const struct lun_map *m, unsigned i);
struct lun *lun_map_find(const struct lun_map *m, uint16_t number); /* borrowed; NULL: absent */

/* 8-byte LUN field: peripheral (< 256) or flat form (SAM-5 4.7). */
void lun_encode(uint16_t number, uint8_t out[8]);
/* The number, or -1 when the field names something else (well-known unit, multi level). */
int lun_decode(const uint8_t in[8]);

/* --- I_T nexus: one a session ---------------------------------------------------------------- */

struct itn_params {
    const char *initiator_name; /* iSCSI name, normalised */
    uint8_t isid[6];
    const char *target_name;
    uint16_t tpgt;         /* portal group tag: relative target port identifier too */
    struct budget *budget; /* the session's; data buffers are taken from it */
    struct lun_map *map;   /* a reference is taken */
    bool queries;          /* the transport carries the functions of RFC 7144: they are reported */
};

/* Every LUN starts with unit attention 29/00 (POWER ON, RESET OR BUS DEVICE RESET OCCURRED). */
struct itn *itn_new(struct worker *w, const struct itn_params *p);
/* Commands of LUNs that are no longer mapped are aborted; REPORTED LUNS DATA HAS CHANGED
 * (3F/0E) is set for all LUNs of this nexus. */
void itn_set_map(struct itn *itn, struct lun_map *map);
/* The session ends: every command not yet done is aborted; those whose backend request cannot be
 * taken back become orphans of the worker (done is still called for each, with cmd->aborted,
 * later or now; itn stays valid inside the room until then, so the transport only keeps the cmd
 * memory alive until done). Nothing waits. Reservations of RESERVE(6/10) end. */
void itn_free(struct itn *itn);
unsigned itn_active(const struct itn *itn); /* commands between submit and done */

/* --- statistics ------------------------------------------------------------------------------ */

/* Of one I_T_L nexus since it exists; bytes of data as they were moved. */
struct scsi_stat {
    uint64_t rd_subm_bytes, rd_subm, rd_done_bytes, rd_done; /* commands with data-in */
    uint64_t wr_subm_bytes, wr_subm, wr_done_bytes, wr_done; /* with data-out */
    uint64_t errs;                                           /* commands that did not end GOOD */
};
void scsi_stat_add(struct scsi_stat *to, const struct scsi_stat *s);
/* The nexus to unit `i` of the map (0..): false: there are no more. Owner's thread. */
bool itn_stat(const struct itn *itn, unsigned i, uint16_t *number, struct scsi_stat *out);
/* Of nexuses to this unit that are no more. Any thread. */
void lun_stat_past(struct lun *lun, struct scsi_stat *out);

/* --- commands -------------------------------------------------------------------------------- */

enum scsi_attr { /* values as in the iSCSI ATTR field (RFC 7143 11.3.1) */
                 ATTR_UNTAGGED = 0,
                 ATTR_SIMPLE = 1,
                 ATTR_ORDERED = 2,
                 ATTR_HEAD = 3,
                 ATTR_ACA = 4,
};

enum scsi_status {
    SAM_GOOD = 0x00,
    SAM_CHECK = 0x02,
    SAM_CONDITION_MET = 0x04,
    SAM_BUSY = 0x08,
    SAM_RESERVATION_CONFLICT = 0x18,
    SAM_TASK_SET_FULL = 0x28,
    SAM_ACA_ACTIVE = 0x30,
    SAM_TASK_ABORTED = 0x40,
};

#define SCSI_SENSE_MAX  96
#define SCSI_CDB_INLINE 16
#define SCSI_CDB_MAX    260

struct scsi_xport {
    /* Wants data-out bytes [win_off, win_off + win_len) of the command at cmd->data.  True: they
     * are there already (immediate data).  False: scsi_pulled will be called, later.  Inside the
     * call scsi_swap_buf may put a buffer of the transport's that holds them in place. */
    bool (*pull)(struct scsi_cmd *cmd);
    /* Data-in bytes [win_off, +win_len) at cmd->data, not the last ones: send them, no status;
     * scsi_pushed is called, later, when they have left and cmd->data may be overwritten. */
    void (*push)(struct scsi_cmd *cmd);
    /* Over.  Data-in (if win_len != 0 and the command reads): the last bytes, at win_off; then
     * status, sense.  Or cmd->aborted: send nothing at all. */
    void (*done)(struct scsi_cmd *cmd);
    /* Instead of a pull: the first len bytes of data-out where the transport has them, good until
     * scsi_submit returns; NULL: not to be had so.  May be NULL itself. */
    const uint8_t *(*peek)(struct scsi_cmd *cmd, uint32_t len);
    /* The unit was taken away while the command was under way: it is to be answered with CHECK
     * CONDITION, LOGICAL UNIT NOT SUPPORTED (scsi_fail_early), as soon as the protocol allows.
     * `done` with cmd->aborted set follows, late when a backend hangs.  NULL: the command ends
     * silently. */
    void (*lost)(struct scsi_cmd *cmd);
};

struct scsi_cmd {
    /* --- set by the transport before scsi_submit -------------------------------------------------
     */
    struct itn *itn;
    struct worker *w;
    const struct scsi_xport *xport;
    const uint8_t *cdb; /* cdb_inline or longer memory that lives until release */
    uint16_t cdb_len;   /* bytes received: 16, or more with an extended-CDB AHS */
    uint8_t cdb_inline[SCSI_CDB_INLINE];
    uint8_t lun[8];
    uint8_t attr;     /* enum scsi_attr */
    uint8_t priority; /* RFC 7144 */
    bool no_lend;     /* data-in has to stay as it is (a digest): never the store's own memory */
    uint32_t exp_out; /* bytes the initiator will send (0 unless the W bit) */
    uint32_t exp_in;  /* bytes the initiator will take (0 unless the R bit) */
    uint64_t tag;     /* for logs */

    /* --- results, valid in done ------------------------------------------------------------------
     */
    uint8_t status; /* enum scsi_status */
    uint8_t sense_len;
    bool aborted;
    uint64_t xfer_out; /* data-out bytes the CDB describes; residual = exp_out - xfer_out */
    uint64_t xfer_in;  /* data-in bytes the command has to give, may exceed exp_in: residual */
    uint8_t sense[SCSI_SENSE_MAX];

    /* --- the data window -------------------------------------------------------------------------
     */
    uint8_t
        *data; /* room's memory (buf or lent by the backend), stable until release or next window */
    uint32_t win_off; /* byte offset of the window in the command's data */
    uint32_t win_len; /* bytes; never beyond exp_in / exp_out */

    /* --- private to scsi/ ------------------------------------------------------------------------
     */
    const struct scsi_op *op;
    struct nexus *nx; /* NULL: absent LUN or well-known unit */
    struct lun *lu;   /* the nexus holds it, until release */
    struct buf *buf;
    uint64_t lba, nblk; /* decoded by dispatch where the table says so */
    uint32_t alloc_len; /* allocation or parameter list length, decoded */
    uint32_t budgeted;  /* bytes held of the budget */
    struct budget_wait bw;
    struct list link;  /* nexus->tasks */
    struct list parkq; /* where parked */
    void (*resume)(struct scsi_cmd *cmd);
    struct deferred later;
    struct iovec iov[2];
    struct iovec md[1];
    struct io io;
    uint64_t pos, end; /* progress of the handler, bytes or blocks */
    uint8_t phase;     /* enum scsi_phase, scsi/priv.h */
    uint8_t park_why;
    bool is_orphan, is_counted;
    /* data is the backend's: io_release_ref owed; to be sent in place, never touched, because the
     * store may be cut meanwhile (SIGBUS) */
    bool lent;
    uint32_t scratch[8];
    struct list waiters;        /* task management functions that wait for the end */
    struct list orphan;         /* lun->orphan_cmds, under lun->lock */
    bool holds_range;           /* it is in there */
    struct budget *held_from;   /* whose `budgeted` bytes they are */
    struct mode_change *change; /* MODE SELECT that is being made durable */
};

/* The transport zeroes the command once when it takes it from its pool, then sets its fields. */
void scsi_submit(struct scsi_cmd *cmd);
/* Answers to pull and push. err: 0, or -ECANCELED (the transport gives the command up: done comes
 * with aborted), or another -errno: the data phase failed, the command ends with CHECK CONDITION
 * ABORTED COMMAND and the additional sense code `asc` (e.g. 0x0c0d, 0x0c0c, 0x4705). */
void scsi_pulled(struct scsi_cmd *cmd, int err, uint16_t asc);
void scsi_pushed(struct scsi_cmd *cmd);
/* Inside a pull: the window's memory becomes *b, whose bytes are the command's from win_off on, and
 * *b what it was. False: they differ in size, nothing was done. */
bool scsi_swap_buf(struct scsi_cmd *cmd, struct buf **b);
/* Ends the command as soon as possible: cancels parking and backend requests; done comes, later,
 * with aborted = true. After done: no effect. */
void scsi_abort(struct scsi_cmd *cmd);
/* Frees what the command holds (buffers, lent memory, references). After done only, and for every
 * command; those that are done when itn_free is called, before the session's budget goes. */
void scsi_release(struct scsi_cmd *cmd);
/* For the transport's own errors before submit: fills status and sense (fixed or descriptor as
 * the LUN has it set is not known here: fixed). */
void scsi_fail_early(struct scsi_cmd *cmd, uint8_t key, uint16_t asc);

/* --- task management (SAM-5 7, RFC 7143 11.5, 11.6) ------------------------------------------ */

enum tmf_function { /* RFC 7143 11.5.1, RFC 7144 */
                    TMF_ABORT_TASK = 1,
                    TMF_ABORT_TASK_SET = 2,
                    TMF_CLEAR_ACA = 3,
                    TMF_CLEAR_TASK_SET = 4,
                    TMF_LOGICAL_UNIT_RESET = 5,
                    TMF_TARGET_WARM_RESET = 6,
                    TMF_TARGET_COLD_RESET = 7,
                    TMF_TASK_REASSIGN = 8,
                    TMF_QUERY_TASK = 9,
                    TMF_QUERY_TASK_SET = 10,
                    TMF_I_T_NEXUS_RESET = 11,
                    TMF_QUERY_ASYNC_EVENT = 12,
};

enum tmf_response { /* RFC 7143 11.6.1, RFC 7144 */
                    TMF_COMPLETE = 0,
                    TMF_NO_TASK = 1,
                    TMF_NO_LUN = 2,
                    TMF_STILL_ALLEGIANT = 3,
                    TMF_NO_REASSIGN = 4,
                    TMF_NOT_SUPPORTED = 5,
                    TMF_AUTH_FAILED = 6,
                    TMF_SUCCEEDED = 7, /* a query found what it asked for */
                    TMF_REJECTED = 255,
};

struct scsi_tmf {
    uint8_t function; /* ABORT_TASK .. TARGET_WARM_RESET, I_T_NEXUS_RESET; others:
                         TMF_NOT_SUPPORTED */
    struct itn *itn;
    uint8_t lun[8];
    struct scsi_cmd *ref; /* ABORT_TASK: between submit and done */
    void (*done)(struct scsi_tmf *t);
    uint8_t response;
    /* private */
    struct tmf_job *job;
};

/* Affected commands get done(aborted) first; t->done comes, later, when the last of them has ended
 * (its backend request is over: nothing of it can touch the medium any more).  A reset reaches
 * every worker, gives every nexus unit attention 29/03 (LUN RESET: BUS DEVICE RESET FUNCTION
 * OCCURRED), clears RESERVE(6/10), restores mode pages to saved values.  LUN absent: TMF_NO_LUN.
 * I_T NEXUS RESET is an I_T nexus loss (SAM-5 6.3.4) of this nexus alone: its commands at every
 * unit end, its reservations and PREVENTs go, each unit has unit attention 29/07 for it. */
void scsi_tmf_submit(struct scsi_tmf *t);
/* QUERY TASK, QUERY TASK SET (is_there: the transport has such a task unanswered) and QUERY
 * ASYNCHRONOUS EVENT (a unit attention is pending; it stays so): TMF_SUCCEEDED, TMF_COMPLETE where
 * there is none, TMF_NO_LUN.  Owner of the nexus. */
uint8_t scsi_tmf_query(const struct itn *itn, uint8_t function, const uint8_t lun[8],
                       bool is_there);
/* The session dies while t is pending: t->done will not be called, t is not touched after this. */
void scsi_tmf_forget(struct scsi_tmf *t);

/* --- tables, for documentation and tests ----------------------------------------------------- */

/* Prints the opcode table as Markdown; used by the docs generator. */
void scsi_ops_dump(void (*line)(const char *s, void *arg), void *arg);
const char *scsi_op_name(uint8_t opcode, int service_action); /* "?" when unknown */

#endif
