/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * REPORT SUPPORTED OPERATION CODES (SPC-4 6.35) from the opcode table, as it holds on this unit,
 * and REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-4 6.36).  Called by dispatch on the
 * command's worker.
 */
#include "scsi/priv.h"

#include "base/worker.h"

enum { REPORT_ALL = 0, REPORT_OPCODE = 1, REPORT_OPCODE_SA = 2, REPORT_EITHER = 3 };
enum { SUPPORT_NONE = 1, SUPPORT_STANDARD = 3 };

static void
put_timeouts(struct wcur *w, const struct scsi_op *op)
{
    wcur_be16(w, 0x000a);
    wcur_zero(w, 2);
    wcur_be32(w, 0); /* nominal: none told */
    wcur_be32(w, op->timeout_s);
}

static void
put_all(struct wcur *w, struct lun *lun, bool rctd)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < scsi_ops_count; i++)
        n += scsi_op_is_offered(&scsi_ops[i], lun);
    wcur_be32(w, n * (rctd ? 20 : 8));
    for (unsigned i = 0; i < scsi_ops_count; i++) {
        const struct scsi_op *op = &scsi_ops[i];
        if (!scsi_op_is_offered(op, lun))
            continue;
        bool has_sa = op->sa != SA_NONE;
        wcur_u8(w, op->opcode);
        wcur_u8(w, 0);
        wcur_be16(w, has_sa ? (uint16_t)op->sa : 0);
        wcur_u8(w, 0);
        wcur_u8(w, (uint8_t)((rctd ? 0x02 : 0) | (has_sa ? 0x01 : 0))); /* CTDP, SERVACTV */
        wcur_be16(w, op->cdb_len);
        if (rctd)
            put_timeouts(w, op);
    }
}

static void
put_one(struct wcur *w, struct lun *lun, const struct scsi_op *op, bool rctd)
{
    uint8_t usage[16];

    wcur_u8(w, 0);
    if (op == NULL) {
        wcur_u8(w, SUPPORT_NONE);
        wcur_be16(w, 0);
        return;
    }
    wcur_u8(w, (uint8_t)((rctd ? 0x80 : 0) | SUPPORT_STANDARD));
    wcur_be16(w, op->cdb_len);
    scsi_op_usage(op, lun, usage);
    if (op->sa != SA_NONE)
        usage[1] |= (uint8_t)op->sa;
    wcur_bytes(w, usage, op->cdb_len);
    if (rctd)
        put_timeouts(w, op);
}

/* The row asked for; NULL: none. False: the form does not fit the operation code. */
static bool
find_asked(const struct scsi_cmd *cmd, unsigned form, const struct scsi_op **found)
{
    uint16_t sa = get_be16(cmd->cdb + 4);
    const struct scsi_op *known;
    const struct scsi_op *op = scsi_op_find(cmd->cdb[3], sa <= 0x1f ? sa : 0x20, &known);
    const struct scsi_op *any = op != NULL ? op : known;

    *found = NULL;
    if (any == NULL)
        return true;
    bool has_sa = any->sa != SA_NONE;
    if ((form == REPORT_OPCODE && has_sa) || (form == REPORT_OPCODE_SA && !has_sa))
        return false;
    if (form == REPORT_EITHER && !has_sa && sa != 0)
        return true;
    if (op != NULL && scsi_op_is_offered(op, cmd->lu))
        *found = op;
    return true;
}

void
spc_report_opcodes(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    bool rctd = (cmd->cdb[2] & 0x80) != 0;
    unsigned form = cmd->cdb[2] & 0x07;
    const struct scsi_op *op = NULL;
    struct wcur w;

    if (form > REPORT_EITHER || (form != REPORT_ALL && !find_asked(cmd, form, &op))) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD(2, 2));
        return;
    }
    if (!scsi_reply(cmd, &w))
        return;
    if (form == REPORT_ALL)
        put_all(&w, cmd->lu, rctd);
    else
        put_one(&w, cmd->lu, op, rctd);
    scsi_data_in(cmd, (uint32_t)w.len);
}

void
spc_report_tmfs(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    bool repd = (cmd->cdb[2] & 0x80) != 0;
    struct wcur w;

    if (!scsi_reply(cmd, &w))
        return;
    /* ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET; QUERY TASK where the
     * transport carries it, and then QUERY ASYNCHRONOUS EVENT, QUERY TASK SET, I_T NEXUS RESET */
    wcur_u8(&w, cmd->itn->queries ? 0xdc : 0xd8);
    wcur_u8(&w, cmd->itn->queries ? 0x07 : 0);
    wcur_zero(&w, 1);
    if (repd) {
        wcur_u8(&w, 0x0c); /* bytes that follow; no timeouts told */
        wcur_zero(&w, 12);
    } else {
        wcur_u8(&w, 0);
    }
    scsi_data_in(cmd, (uint32_t)w.len);
}
