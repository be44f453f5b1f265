/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to scsi/: the opcode row, sense codes, nexus and lun, and what handlers use.
 *
 * A handler is called once, on the command's worker, after dispatch has checked: CDB length,
 * reserved bits (usage mask), LUN, unit attention, readiness, reservation, write protection, LBA
 * range, and after the parameter list is in (OP_PARAM).  It ends by exactly one of scsi_good,
 * scsi_data_in, scsi_fail*, scsi_status or goes on asynchronously (io_push + be_submit, pull,
 * park) and ends later.
 */
#ifndef SCSI_PRIV_H
#define SCSI_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/cur.h"
#include "base/log.h"
#include "scsi/scsi.h"

/* --- the opcode table (scsi/ops.c) ----------------------------------------------------------- */

enum op_dir { DIR_NONE, DIR_IN, DIR_OUT };

/* What a RESERVE(6/10) of another nexus does to it (SPC-2 table "commands allowed"); later
 * persistent reservations use the same column. */
enum op_resv {
    RESV_ALWAYS,   /* allowed: INQUIRY, REPORT LUNS, REQUEST SENSE, ... */
    RESV_READ,     /* reads the medium */
    RESV_WRITE,    /* writes the medium or changes state */
    RESV_CONFLICT, /* never allowed for others: RESERVE, MODE SELECT, ... */
    RESV_RELEASE,  /* RELEASE: GOOD and no effect */
    RESV_PREVENT,  /* PREVENT ALLOW MEDIUM REMOVAL: conflicts unless it allows */
};

enum op_flag {
    OP_NO_LUN = 1,     /* runs on an absent LUN too (INQUIRY, REPORT LUNS, REQUEST SENSE) */
    OP_NO_UA = 2,      /* does not report a pending unit attention (SAM-5 5.14) */
    OP_NOT_READY = 4,  /* runs though the backend is not ready */
    OP_PARAM = 8,      /* DIR_OUT: parameter list of alloc_len bytes is pulled before the handler */
    OP_BLOCKS = 16,    /* xfer = nblk * block size, moved by the handler itself */
    OP_WRITES = 32,    /* refused with 27/00 when write protected */
    OP_LBA_CHECK = 64, /* lba + nblk must be within the unit (21/00) */
    OP_PROTECT = 128,  /* byte 1 bits 7..5 RDPROTECT/WRPROTECT/VRPROTECT must be 0 (20/00->24/00) */
    OP_IMPLICIT_HEAD = 256, /* SAM-5 8.2: INQUIRY, REPORT LUNS, REQUEST SENSE run at once */
    OP_WLUN = 512,          /* answered by the REPORT LUNS well-known unit too */
    /* What data the CDB describes beside OP_BLOCKS; dispatch sets xfer_out by these: */
    OP_BYTCHK = 1024,    /* VERIFY: nothing, all blocks or one block by BYTCHK (SBC-3 5.29) */
    OP_ONE_BLOCK = 2048, /* WRITE SAME: one block, none with NDOB (SBC-3 5.44) */
    OP_THIN = 4096,      /* withdrawn (05/20/00, not in RSOC) unless lun_is_thin */
    OP_UNMAP_BIT = 8192, /* WRITE SAME: the UNMAP bit is withdrawn unless lun_is_thin */
    OP_RANGE =
        16384, /* touches data blocks lba..lba+nblk (nblk 0: to the end): waits for orphans */
};

struct op_field { /* where a number lies in the CDB: len 0: nowhere */
    uint8_t off, len;
};

#define TYPE_DISK 1u /* bit mask of device types a row is for */
#define SA_NONE   (-1)

struct scsi_op {
    uint8_t opcode;
    int16_t sa; /* service action, or SA_NONE; where it lies: CDB byte 1 bits 4..0 (bytes 8,9 for
                   7Fh) */
    uint8_t types;
    uint8_t cdb_len;
    uint8_t usage[16]; /* CDB usage data: 1 bits may be set (SPC-4 6.31.3); byte 0 = opcode */
    uint8_t dir;       /* enum op_dir */
    uint8_t resv;      /* enum op_resv */
    uint16_t flags;
    struct op_field lba, nblk, alloc;
    uint16_t timeout_s; /* recommended, for REPORT SUPPORTED OPERATION CODES; 0: none */
    void (*handler)(struct scsi_cmd *cmd);
    const char *name;
    const char *ref; /* "SBC-3 5.8" */
};

extern const struct scsi_op scsi_ops[];
extern const unsigned scsi_ops_count;
/* Usage data of a row as it holds on this unit (OP_UNMAP_BIT), without the service action. */
void scsi_op_usage(const struct scsi_op *op, struct lun *lun, uint8_t out[16]);
/* False: withdrawn on this unit.  lun NULL: the REPORT LUNS well-known unit. */
bool scsi_op_is_offered(const struct scsi_op *op, struct lun *lun);
/* Exact row; or NULL with *known_opcode = another row of the same opcode (service action bad). */
const struct scsi_op *scsi_op_find(uint8_t opcode, int sa, const struct scsi_op **known_opcode);

/* --- sense (scsi/sense.c) -------------------------------------------------------------------- */

enum { /* sense keys, SPC-4 table 48 */
       SK_NO_SENSE = 0,
       SK_RECOVERED = 1,
       SK_NOT_READY = 2,
       SK_MEDIUM_ERROR = 3,
       SK_HARDWARE_ERROR = 4,
       SK_ILLEGAL_REQUEST = 5,
       SK_UNIT_ATTENTION = 6,
       SK_DATA_PROTECT = 7,
       SK_ABORTED = 0xb,
       SK_MISCOMPARE = 0xe,
};

/* One row each in the sense table: key, asc/ascq, name. */
enum scsi_sense {
    SENSE_NOT_READY_CAUSE_NOT_REPORTABLE, /* 02/04/00 */
    SENSE_NOT_READY_BECOMING,             /* 02/04/01 */
    SENSE_NOT_READY_INIT_REQUIRED,        /* 02/04/02 stopped by START STOP UNIT */
    SENSE_NOT_READY_OFFLINE,              /* 02/04/12 */
    SENSE_MEDIUM_NOT_PRESENT,             /* 02/3a/00 */
    SENSE_UNRECOVERED_READ_ERROR,         /* 03/11/00, information = LBA */
    SENSE_WRITE_ERROR,                    /* 03/0c/00, information = LBA */
    SENSE_HARDWARE_ERROR,                 /* 04/44/00 internal target failure */
    SENSE_PARAMETER_LIST_LENGTH,          /* 05/1a/00 */
    SENSE_INVALID_OPCODE,                 /* 05/20/00 */
    SENSE_LBA_OUT_OF_RANGE,               /* 05/21/00 */
    SENSE_INVALID_FIELD_IN_CDB,           /* 05/24/00, field pointer C/D=1 */
    SENSE_LUN_NOT_SUPPORTED,              /* 05/25/00 */
    SENSE_INVALID_FIELD_IN_PARAMETERS,    /* 05/26/00, field pointer C/D=0 */
    SENSE_PARAMETER_VALUE_INVALID,        /* 05/26/02 */
    SENSE_SAVING_NOT_SUPPORTED,           /* 05/39/00 */
    SENSE_INVALID_IU_FIELD,               /* 05/0e/03 */
    SENSE_REMOVAL_PREVENTED,              /* 05/53/02 eject while PREVENT is set */
    SENSE_WRITE_PROTECTED,                /* 07/27/00 */
    SENSE_SPACE_ALLOCATION_FAILED,        /* 07/27/07 */
    SENSE_MISCOMPARE,                     /* 0e/1d/00, information = byte offset */
    SENSE_ABORTED_DATA_PHASE,             /* 0b/4b/00 */
    SENSE_COUNT
};

#define NO_FIELD         0xffffffffu
/* Field pointers: byte (and bit 0..7, 8: none) of the CDB or of the parameter list. */
#define FIELD(byte, bit) ((uint32_t)(byte) << 8 | (uint32_t)(bit))
#define FIELD_BYTE(byte) FIELD(byte, 8)

/* CHECK CONDITION and done. field: FIELD(...) or NO_FIELD. Fixed or descriptor format by D_SENSE.
 */
void scsi_fail(struct scsi_cmd *cmd, enum scsi_sense s, uint32_t field);
void scsi_fail_info(struct scsi_cmd *cmd, enum scsi_sense s, uint64_t information);
/* Maps a backend errno: EIO->read/write error with LBA of io->fail_offset, ENOSPC/EDQUOT->27/07,
 * ENXIO/ESTALE->not ready, EROFS->27/00, ECANCELED->aborted; anything else 04/44/00. */
void scsi_fail_io(struct scsi_cmd *cmd, const struct io *io);
/* Builds sense bytes (also for REQUEST SENSE, deferred UA); returns length <= SCSI_SENSE_MAX. */
unsigned sense_build(uint8_t *out, bool descriptor, uint8_t key, uint16_t asc, bool has_info,
                     uint64_t info, uint32_t field, bool field_in_cdb);

/* GOOD.  When the command reads, the window (data, win_off, win_len) set by the handler is its last
 * data-in and goes out with the status; scsi_fail* and scsi_status clear win_len. */
void scsi_good(struct scsi_cmd *cmd);
/* CHECK CONDITION with an explicit key and additional sense code. */
void scsi_check(struct scsi_cmd *cmd, uint8_t key, uint16_t asc);
/* Fills status and sense without ending the command. */
void sense_set(struct scsi_cmd *cmd, uint8_t key, uint16_t asc, bool has_info, uint64_t info,
               uint32_t field);
/* What the unit would answer a medium access with: 0 when ready, else 02/xx/yy as key << 16 | asc.
 */
uint32_t lun_not_ready(struct lun *lun);
/* A medium access failed with "not ready": key and asc by lun_not_ready. */
void scsi_fail_not_ready(struct scsi_cmd *cmd);
/* Ends with `status` and no sense (CONDITION MET, RESERVATION CONFLICT, BUSY, TASK SET FULL). */
void scsi_status(struct scsi_cmd *cmd, enum scsi_status status);
/* A reply of len bytes built in cmd->data is complete (len as if nothing was cut: residual); what
 * goes out is min(len, alloc_len, exp_in).  GOOD. */
void scsi_data_in(struct scsi_cmd *cmd, uint32_t len);

/* A zeroed reply buffer for parameter data: writer limited to min(alloc_len, exp_in, 1 MiB).  The
 * budget is taken (replies are small) or the command ends BUSY and false comes back. */
bool scsi_reply(struct scsi_cmd *cmd, struct wcur *w);

/* Takes `len` bytes (<= BUF_MAX) of buffer for the data window; when the budget has none, parks and
 * calls next later.  Returns true when next may go on at once (buffer is in cmd->data). */
bool scsi_buffer(struct scsi_cmd *cmd, uint32_t len, void (*next)(struct scsi_cmd *cmd));
/* Data-out window [off, off+len) to cmd->data, then next (at once or later). */
void scsi_pull(struct scsi_cmd *cmd, uint32_t off, uint32_t len,
               void (*next)(struct scsi_cmd *cmd));
void scsi_push(struct scsi_cmd *cmd, uint32_t off, uint32_t len,
               void (*next)(struct scsi_cmd *cmd));
/* One backend request on cmd->io (fields op, flags, offset, len, iov set by the caller), then
 * next(cmd) with cmd->io.res; not called when the command was aborted meanwhile (done is). */
void scsi_io(struct scsi_cmd *cmd, void (*next)(struct scsi_cmd *cmd));

enum scsi_phase { PH_NEW, PH_PARKED, PH_RUNNING, PH_PULL, PH_PUSH, PH_IO, PH_ENDING, PH_DONE };

/* task.c, for dispatch: enters the command into its nexus' task set / runs it when order and
 * orphans allow / ends it (done comes later, from the ready list). */
void task_enter(struct scsi_cmd *cmd);
void task_enable(struct scsi_cmd *cmd);
/* It passed all checks and goes on: counted at its nexus by what it is to move. */
void task_count(struct scsi_cmd *cmd);
void task_end(struct scsi_cmd *cmd);
/* dispatch.c, for task.c: the state checks that may change while a command is parked (not ready,
 * reservation, write protection): false when they ended it; and the handler. */
bool dispatch_recheck(struct scsi_cmd *cmd);
void dispatch_run(struct scsi_cmd *cmd);

/* --- parking (scsi/task.c) ------------------------------------------------------------------- */

enum park_why { PARK_NONE, PARK_ORDER, PARK_MEMORY, PARK_RANGE, PARK_PERSIST };
/* queue: list head on the worker, or NULL when something else resumes it. */
void scsi_park(struct scsi_cmd *cmd, struct list *queue, enum park_why why,
               void (*resume)(struct scsi_cmd *cmd));
void scsi_unpark(struct scsi_cmd *cmd); /* resumes through the ready list, unless aborted */

/* --- unit attentions (scsi/ua.c): one bit each, set from any thread, highest priority first --- */

enum ua {
    UA_POWER_ON,         /* 29/00 */
    UA_LUN_RESET,        /* 29/03 */
    UA_NEXUS_LOSS,       /* 29/07 */
    UA_MEDIUM_CHANGED,   /* 28/00 not ready to ready */
    UA_LUNS_CHANGED,     /* 3f/0e */
    UA_CAPACITY_CHANGED, /* 2a/09 */
    UA_MODE_CHANGED,     /* 2a/01 */
    UA_INQUIRY_CHANGED,  /* 3f/03 */
    UA_CLEARED_BY_OTHER, /* 2f/00 commands cleared by another initiator */
    UA_THIN_THRESHOLD,   /* 38/07 */
    UA_COUNT
};
void ua_set_lun(struct lun *lun, enum ua ua, const struct nexus *except); /* any thread */
void ua_set(struct nexus *nx, enum ua ua);
/* Takes the most important pending one: true with key/asc for sense. Owner's thread. */
bool ua_take(struct nexus *nx, uint16_t *asc);

/* --- I_T_L nexus and unit -------------------------------------------------------------------- */

#define WLUN_REPORT_LUNS 0xc101u

static inline bool
lun_is_wlun(const uint8_t lun[8])
{
    return get_be64(lun) == (uint64_t)WLUN_REPORT_LUNS << 48;
}

struct itn {
    struct worker *w;
    unsigned refs; /* the session, and each command from submit to release; owner */
    char *initiator_name, *target_name;
    uint8_t isid[6];
    uint16_t tpgt;
    bool dead; /* itn_free was called */
    bool queries;
    struct budget *budget;
    struct lun_map *map;
    struct nexus **nx; /* sorted by number */
    unsigned nnx;
    struct list loose; /* commands without a nexus: absent LUNs, the well-known unit */
    unsigned active;   /* commands between submit and done */
};
struct nexus *itn_nexus(const struct itn *itn, uint16_t number); /* NULL: absent */
void itn_unref(struct itn *itn);
/* A command is released; the last one frees a dead nexus. */
void nexus_task_gone(struct nexus *nx);

struct nexus {
    struct itn *itn;
    struct lun *lun; /* reference */
    struct worker *w;
    uint16_t number;
    struct list on_lun;    /* lun->nexuses, under lun->lock */
    struct list tasks;     /* commands between submit and done, oldest first; owner */
    struct list ordered;   /* parked behind an ORDERED task, or ORDERED and not the oldest */
    unsigned ntasks;       /* commands between submit and release */
    unsigned nordered;     /* ORDERED commands between submit and done */
    bool dead;             /* no longer mapped or session gone; freed with the last command; set
                              under lun->lock */
    bool prevent;          /* PREVENT ALLOW MEDIUM REMOVAL is set; under lun->lock */
    struct scsi_stat stat; /* owner */
    atomic_uint ua;        /* bits of enum ua */
    /* cached verdict, valid while gen == lun->generation; owner */
    uint32_t gen;
    bool conflict; /* another nexus holds RESERVE */
    bool write_protected;
    bool ready;
};

/* --- the mode pages of a unit (mode_table.c) ------------------------------------------------- */

#define MODE_PAGE_MAX  64 /* bytes, with its header */
#define MODE_PAGES_MAX 16
#define MODE_BYTES_MAX 244 /* of all pages: MODE DATA LENGTH of MODE SENSE(6) has eight bits */

struct mode_page {
    uint8_t page, sub;
    uint8_t len;                 /* with its header */
    uint8_t base[MODE_PAGE_MAX]; /* as it is read, but for the bits of struct mode_values */
    uint8_t row;                 /* of the rows every unit has */
    bool is_added;               /* by a setting */
};

struct mode_table { /* in order of page and subpage */
    unsigned n;
    struct mode_page v[MODE_PAGES_MAX];
};
/* Every unit's pages, and `text` (blank-separated PAGE:SUBPAGE:LENGTH:BYTE:..., NULL: none) laid
 * over them. 0, or -EINVAL and why. */
int mode_table_make(struct mode_table *t, const char *text, char *err, size_t errsize);

struct mode_values { /* the changeable part of the mode pages */
    bool wce, swp, d_sense;
};

#define SHARED_PAIRS 16
struct lun_shared {              /* lun_share.c; under lock */
    uint32_t told[SHARED_PAIRS]; /* pairs of initiators that the log has, by hash */
    unsigned next;
    struct log_rate rate;
};

#define VOLATILE_TOLD 64
struct lun_told { /* lun_volatile.c: nexuses that know of these contents, by hash; under lock */
    uint64_t v[VOLATILE_TOLD];
    unsigned next;
};

struct lun {
    struct ref ref;
    uint64_t id;       /* unique in the daemon's life */
    uint64_t follows;  /* id of the unit whose place it takes, 0: none; fixed once it is mapped */
    unsigned first_ua; /* bits of enum ua, for nexuses that had that one */
    struct backend *be;
    struct lun_conf conf; /* under lock for change; data path uses the copies below */
    uint32_t block_size;
    uint8_t block_shift;
    atomic_uint generation; /* bumped on any control change */
    atomic_bool online, stopped, d_sense;
    atomic_bool misfit;  /* the backend's blocks do not fit block_size: stays not ready */
    atomic_bool ejected; /* removable only, START STOP UNIT with LOEJ: medium not present (3a/00) */
    atomic_bool must_ack;   /* volatile contents: not ready until acknowledged (be_acknowledge) */
    atomic_uint background; /* flushes and pre-fetches that outlive their IMMED command */
    pthread_mutex_t lock;   /* memory operations only */
    struct list nexuses;
    struct nexus *reserved_by; /* RESERVE(6/10) */
    struct mode_values cur, saved, def;
    struct mode_table pages;       /* under lock */
    struct mode_change *mode_busy; /* a MODE SELECT that is being made durable; under lock */
    struct cstore *cstore;         /* fixed; or NULL */
    char *mode_record;             /* name in the control store */
    struct lun_shared shared;
    struct lun_told told;
    struct scsi_stat past; /* of nexuses that ended; under lock */
    unsigned prevent;      /* nexuses with PREVENT ALLOW MEDIUM REMOVAL set */
    /* writes of dead sessions that the kernel still has (DESIGN 3.5): newer overlapping commands
     * wait; paid for only while orphans != 0 */
    atomic_uint orphans;
    struct list orphan_cmds;   /* under lock */
    struct list range_waiters; /* under lock; resumed on their own workers */
};

static inline uint64_t
lun_nblocks(const struct lun *lun)
{
    return be_size(lun->be) >> lun->block_shift;
}

/* LBPME (and LBPRZ: what was unmapped reads as zeros): thin provisioning is configured and the
 * backend can discard, or is never asked to because it is read-only (a write-protected thin unit
 * stays one).  READ CAPACITY(16), VPD B0 and B2, UNMAP and WRITE SAME ask here. */
static inline bool
lun_is_thin(struct lun *lun)
{
    struct be_info info;

    pthread_mutex_lock(&lun->lock);
    bool thin = lun->conf.thin;
    pthread_mutex_unlock(&lun->lock);
    if (!thin)
        return false;
    be_info(lun->be, &info);
    return (info.caps & BE_CAP_DISCARD) != 0 || info.read_only;
}

/* Copy of the configuration for handlers on workers. */
void lun_conf_copy(struct lun *lun, struct lun_conf *out);
/* mode pages: read at lun_new; back to saved values at a reset (lock held). */
void mode_load(struct lun *lun);
void mode_abandon(struct scsi_cmd *cmd); /* a MODE SELECT parked with PARK_PERSIST is aborted */
void mode_publish(struct lun *lun, const struct mode_values *v); /* lock held */
/* A nexus has come: told when it makes two initiators that may write without a reservation. */
void lun_share_note(struct lun *lun, const struct nexus *nx);
/* lun_volatile.c: the unit attention (a bit, or 0) that a new nexus is owed for contents it does
 * not know of; it was told; another setting of volatile_ack. */
unsigned lun_volatile_ua(struct lun *lun, const struct itn *itn);
void lun_volatile_told(struct lun *lun, const struct itn *itn);
void lun_volatile_set(struct lun *lun, bool ack);
/* What LUN RESET does to shared state. True: the write cache was on and is off
 * now, and what it holds must go to the medium before the function is answered. */
bool lun_reset_state(struct lun *lun);
/* PREVENT and RESERVE of a nexus end; lock held. */
void lun_forget_nexus(struct lun *lun, struct nexus *nx);

/* An aborted write that a backend still has: newer commands on its range wait.  task.c */
void orphan_add(struct scsi_cmd *cmd);
void orphan_del(struct scsi_cmd *cmd);

/* tmf.c: the command that ended was awaited by task management functions. */
void tmf_waiters_notify(struct list *waiters);

/* --- handlers, one file a family ------------------------------------------------------------- */

/* spc_inquiry.c, spc_vpd.c */
void spc_inquiry(struct scsi_cmd *cmd);
void spc_vpd(struct scsi_cmd *cmd, uint8_t peripheral); /* EVPD=1 */
/* spc_misc.c */
void spc_test_unit_ready(struct scsi_cmd *cmd);
void spc_request_sense(struct scsi_cmd *cmd);
void spc_report_luns(struct scsi_cmd *cmd);
void spc_reserve(struct scsi_cmd *cmd); /* 6 and 10 */
void spc_release(struct scsi_cmd *cmd);
void spc_prevent_allow(struct scsi_cmd *cmd);
/* spc_report_ops.c */
void spc_report_opcodes(struct scsi_cmd *cmd);
void spc_report_tmfs(struct scsi_cmd *cmd);
/* mode.c */
void mode_sense(struct scsi_cmd *cmd); /* 6 and 10 */
void mode_select(struct scsi_cmd *cmd);
/* sbc_rw.c */
void sbc_read(struct scsi_cmd *cmd);  /* 6 10 12 16 */
void sbc_write(struct scsi_cmd *cmd); /* 6 10 12 16 */
/* sbc_verify.c */
void sbc_verify(struct scsi_cmd *cmd);           /* 10 12 16, BYTCHK 00 01 11 */
void sbc_write_and_verify(struct scsi_cmd *cmd); /* 10 12 16 */
/* sbc_unmap.c */
void sbc_unmap(struct scsi_cmd *cmd);
void sbc_write_same(struct scsi_cmd *cmd); /* 10 16 */
void sbc_get_lba_status(struct scsi_cmd *cmd);
/* sbc_misc.c */
void sbc_read_capacity_10(struct scsi_cmd *cmd);
void sbc_read_capacity_16(struct scsi_cmd *cmd);
void sbc_sync_cache(struct scsi_cmd *cmd); /* 10 16 */
void sbc_prefetch(struct scsi_cmd *cmd);   /* 10 16 */
void sbc_start_stop(struct scsi_cmd *cmd);

/* Limits announced in VPD B0 and enforced by the handlers: each truth once. */
#define SBC_MAX_XFER_BLOCKS      65536u       /* MAXIMUM TRANSFER LENGTH */
#define SBC_MAX_UNMAP_LBAS_BYTES (1ull << 29) /* in one UNMAP, all descriptors; in bytes */
#define SBC_MAX_UNMAP_DESC       256u
#define SBC_MAX_WRITE_SAME_BYTES (1ull << 32)

#endif
