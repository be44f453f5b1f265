/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SCSI commands: from the PDU to scsi_submit, and from its done to the SCSI Response (RFC 7143
 * 11.3, 11.4).  Data in between are in datain.c and dataout.c.  Owner: the session's worker; in
 * steady state nothing here allocates from the system, locks or walks a list.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/cur.h"
#include "base/pool.h"
#include "target/target.h"

#define IMMEDIATE_MAX 64u /* unanswered commands outside the window, a session */

enum { CMD_FINAL = 0x80, CMD_READ = 0x40, CMD_WRITE = 0x20, CMD_ATTR = 0x07 };
enum { AHS_EXT_CDB = 1, AHS_BIDI_READ = 2 };

/* --- finding -----------------------------------------------------------------------------------
 */

static struct task **
bucket(struct sess *s, uint32_t itt)
{
    /* Initiators count upwards, or put their own bits in either half. */
    return &s->by_itt[(itt ^ itt >> 16) & (s->by_itt_size - 1)];
}

struct task *
task_find(struct sess *s, uint32_t itt)
{
    struct task *t = *bucket(s, itt);
    while (t && t->itt != itt)
        t = t->hash_next;
    return t;
}

static void
link_task(struct task *t)
{
    struct sess *s = t->sess;
    struct task **b = bucket(s, t->itt);
    t->hash_next = *b;
    *b = t;
    list_add_tail(&s->tasks, &t->on_sess);
    s->ntasks++;
    if (t->immediate)
        s->nimmediate++;
    else
        s->nqueued++;
    t->linked = true;
}

void
task_unlink(struct task *t)
{
    struct sess *s = t->sess;
    if (!t->linked)
        return;
    struct task **pp = bucket(s, t->itt);
    while (*pp != t)
        pp = &(*pp)->hash_next;
    *pp = t->hash_next;
    list_del(&t->on_sess);
    s->ntasks--;
    if (t->immediate)
        s->nimmediate--;
    else
        s->nqueued--;
    t->linked = false;
}

/* --- life ---------------------------------------------------------------------------------------
 */

void
task_get(struct task *t)
{
    t->refs++;
}

void
task_put(struct task *t)
{
    if (--t->refs > 0)
        return;
    struct sess *s = t->sess;
    deferred_cancel(&t->later);
    dataout_fini(t);
    free(t->long_cdb);
    if (t->submitted)
        scsi_release(&t->cmd);
    pool_put(tgt_here()->tasks, t);
    sess_put(s);
}

/* It is over: nobody may find it any more, and what is being received for it has no place. */
static void
end_task(struct task *t)
{
    task_unlink(t);
    if (t->conn)
        rx_forget_task(t->conn, t);
    task_put(t);
}

void
task_drop(struct task *t)
{
    if (t->quiet)
        return;
    t->quiet = true;
    if (t->done)
        end_task(t); /* it was only waiting for data on their way */
    else
        scsi_abort(&t->cmd);
}

static void
respond(struct task *t)
{
    struct conn *c = t->conn;
    const struct scsi_cmd *cmd = &t->cmd;
    uint8_t bhs[BHS_LEN] = {OPC_SCSI_RSP, 0x80, 0, cmd->status};
    uint8_t data[2 + SCSI_SENSE_MAX];
    uint32_t residual, len = 0;
    bhs[1] |= datain_residual(t, &residual);
    put_be32(bhs + 16, t->itt);
    conn_stamp(c, bhs, true);
    put_be32(bhs + 36, t->data_sn + t->r2t_sn); /* ExpDataSN: Data-Ins, or R2Ts */
    put_be32(bhs + 44, residual);
    if (cmd->sense_len > 0) {
        put_be16(data, cmd->sense_len);
        memcpy(data + 2, cmd->sense, cmd->sense_len);
        len = 2u + cmd->sense_len;
    }
    tx_pdu(c, bhs, data, len, NULL, NULL);
}

void
task_answer(struct task *t)
{
    if (t->is_write && dataout_is_open(t)) {
        t->answer_waits = true; /* RFC 7143 11.4.2 */
        return;
    }
    if (t->cmd.status == SAM_CHECK)
        counter_add(CT_SCSI_CHECK, 1);
    task_unlink(t); /* first: the window that its status shows is the one without it */
    bool said = t->is_read && t->cmd.win_len > 0 && datain_send(t, true);
    if (!said)
        respond(t);
    end_task(t);
}

static void
fail_lost(struct task *t)
{
    scsi_fail_early(&t->cmd, 0x05, 0x2500); /* LOGICAL UNIT NOT SUPPORTED */
}

/* Answered before scsi is through with it: its backend may hang. Data that are on their way come
 * first (RFC 7143 11.4.2): then it is answered when it is done. */
static void
on_lost(struct scsi_cmd *cmd)
{
    struct task *t = container_of(cmd, struct task, cmd);
    worker_assert_owner(t->sess->w);
    t->lost = true;
    if (t->quiet || !t->conn || (t->is_write && dataout_is_open(t)))
        return;
    fail_lost(t);
    counter_add(CT_SCSI_CHECK, 1);
    task_unlink(t);
    respond(t);
    t->quiet = true;
    rx_forget_task(t->conn, t);
    t->conn = NULL; /* it may be gone before scsi is through */
}

static void
on_done(struct scsi_cmd *cmd)
{
    struct task *t = container_of(cmd, struct task, cmd);
    worker_assert_owner(t->sess->w);
    t->done = true;
    t->pulling = false;
    if (cmd->aborted && t->no_room && !t->quiet) {
        cmd->status = SAM_TASK_SET_FULL;
        cmd->sense_len = 0;
        cmd->win_len = 0;
        cmd->aborted = false;
    } else if (cmd->aborted && t->lost && !t->quiet) {
        fail_lost(t);
        cmd->aborted = false;
    }
    if (cmd->aborted || t->quiet || !t->conn) {
        t->quiet = true;
        end_task(t);
        return;
    }
    task_answer(t);
}

/* --- start
 * ---------------------------------------------------------------------------------------- */

static const struct scsi_xport xport = {
    .pull = dataout_pull,
    .peek = dataout_peek,
    .push = datain_push,
    .done = on_done,
    .lost = on_lost,
};

/* Additional header segments (RFC 7143 11.2.2). False: malformed or unknown. */
static bool
parse_ahs(struct task *t, const struct pdu *pdu)
{
    struct cur cu = cur_init(pdu->ahs, pdu->ahs_len);
    while (cu.left > 0) {
        uint16_t len = cur_be16(&cu);
        uint8_t type = cur_u8(&cu);
        const uint8_t *p = cur_take(&cu, len);
        if (!p || cur_take(&cu, -(3u + len) & 3u) == NULL)
            return false;
        if (type == AHS_BIDI_READ)
            continue; /* the R and W bits tell, and are refused */
        /* len counts a reserved byte and what does not fit into the header's 16 */
        if (type != AHS_EXT_CDB || len < 2 || len - 1u > SCSI_CDB_MAX - SCSI_CDB_INLINE ||
            t->long_cdb)
            return false;
        t->long_cdb = xmalloc(SCSI_CDB_MAX);
        memcpy(t->long_cdb, t->cmd.cdb_inline, SCSI_CDB_INLINE);
        memcpy(t->long_cdb + SCSI_CDB_INLINE, p + 1, len - 1u);
        t->cmd.cdb = t->long_cdb;
        t->cmd.cdb_len = (uint16_t)(SCSI_CDB_INLINE + len - 1u);
    }
    return true;
}

static void
fill_task(struct task *t, struct conn *c, const struct pdu *pdu)
{
    struct sess *s = c->sess;
    struct scsi_cmd *cmd = &t->cmd;
    t->sess = s;
    t->conn = c;
    t->refs = 1;
    list_init(&t->on_sess);
    deferred_init(&t->later, NULL);
    t->itt = pdu->itt;
    t->cmd_sn = pdu->cmd_sn;
    t->edtl = pdu->edtl;
    t->immediate = pdu->immediate;
    t->is_read = (pdu->flags & CMD_READ) != 0;
    t->is_write = (pdu->flags & CMD_WRITE) != 0;
    t->imm = pdu->data;
    t->imm_len = pdu->data_len;
    cmd->itn = s->itn;
    cmd->w = s->w;
    cmd->xport = &xport;
    memcpy(cmd->cdb_inline, pdu->bhs + 32, SCSI_CDB_INLINE);
    cmd->cdb = cmd->cdb_inline;
    cmd->cdb_len = SCSI_CDB_INLINE;
    memcpy(cmd->lun, pdu->lun, sizeof cmd->lun);
    cmd->attr = pdu->flags & CMD_ATTR;
    cmd->priority = pdu->byte2 >> 4;
    cmd->no_lend = c->p.data_digest;
    cmd->exp_in = t->is_read ? pdu->edtl : 0;
    cmd->exp_out = t->is_write ? pdu->edtl : 0;
    cmd->tag = pdu->itt;
}

/* Ends a command that scsi never saw, with CHECK CONDITION. */
static void
refuse(struct task *t, uint8_t key, uint16_t asc)
{
    scsi_fail_early(&t->cmd, key, asc);
    t->done = true;
    t->imm = NULL;
    task_answer(t);
}

enum verdict
task_start(struct conn *c, struct pdu *pdu)
{
    struct sess *s = c->sess;
    if (pdu->itt == TAG_RESERVED)
        return conn_reject(c, REJ_INVALID_FIELD);
    if (task_find(s, pdu->itt))
        return conn_reject(c, REJ_TASK_IN_PROGRESS);
    if (pdu->immediate && s->nimmediate >= IMMEDIATE_MAX)
        return conn_reject(c, REJ_IMMEDIATE_OVERFLOW);
    struct task *t = pool_get(tgt_here()->tasks);
    fill_task(t, c, pdu);
    if (pdu->ahs_len > 0 && !parse_ahs(t, pdu)) {
        free(t->long_cdb);
        pool_put(tgt_here()->tasks, t);
        return conn_reject(c, REJ_INVALID_FIELD);
    }
    sess_get(s);
    s->cmds++;
    counter_add(CT_SCSI_CMDS, 1);
    link_task(t);
    uint16_t asc = dataout_init(t, (pdu->flags & CMD_FINAL) != 0);
    if (t->is_read && t->is_write) {
        refuse(t, 0x05, 0x0e03); /* no bidirectional commands: INVALID FIELD IN COMMAND
                                    INFORMATION UNIT */
        return KEEP;
    }
    if (asc) {
        refuse(t, 0x0b, asc);
        return KEEP;
    }
    t->submitted = true;
    scsi_submit(&t->cmd);
    if (t->imm)
        dataout_keep_immediate(t);
    return KEEP;
}
