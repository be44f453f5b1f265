/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * scsi_submit: from a CDB to its handler.  The order of the checks is the order in which an
 * initiator must see errors: unit, operation code, reserved bits, unit attention, readiness,
 * reservation, write protection, medium range, data direction; then the task set's order and the
 * writes of dead sessions.  Everything here is driven by the row of scsi/ops.c.
 *
 * Called by the transport, on the session's worker.
 */
#include "scsi/priv.h"

#include <string.h>

#include "base/bytes.h"
#include "base/worker.h"

/* --- the unit -------------------------------------------------------------------------------- */

enum unit { UNIT_MAPPED, UNIT_WLUN, UNIT_ABSENT };

static enum unit
find_unit(struct scsi_cmd *cmd)
{
    int number = lun_decode(cmd->lun);

    if (number >= 0) {
        cmd->nx = itn_nexus(cmd->itn, (uint16_t)number);
        if (cmd->nx != NULL) {
            cmd->lu = cmd->nx->lun; /* lives as long as the nexus, and that until release */
            return UNIT_MAPPED;
        }
        return UNIT_ABSENT;
    }
    return lun_is_wlun(cmd->lun) ? UNIT_WLUN : UNIT_ABSENT;
}

/* --- the row --------------------------------------------------------------------------------- */

static bool
has_service_action(const struct scsi_op *op)
{
    return op->sa != SA_NONE;
}

static bool
check_row(struct scsi_cmd *cmd, enum unit unit, const struct scsi_op *op)
{
    if (unit == UNIT_ABSENT) {
        if (op != NULL && (op->flags & OP_NO_LUN))
            return true;
        scsi_fail(cmd, SENSE_LUN_NOT_SUPPORTED, NO_FIELD);
        return false;
    }
    if (op != NULL && scsi_op_is_offered(op, cmd->lu))
        return true;
    scsi_fail(cmd, SENSE_INVALID_OPCODE, NO_FIELD);
    return false;
}

/* No bit that the row does not know: 16 bytes at a time, as nearly all commands pass. */
static bool
is_usage_clean(const uint8_t *cdb, const uint8_t usage[16], unsigned len)
{
    uint64_t first = len < 8 ? ~0ull << (64 - 8 * len) : ~0ull;
    uint64_t second = len <= 8 ? 0 : len < 16 ? ~0ull << (128 - 8 * len) : ~0ull;
    uint64_t bad = get_be64(cdb) & ~get_be64(usage) & first & ~(0xffull << 56);

    return (bad | (get_be64(cdb + 8) & ~get_be64(usage + 8) & second)) == 0;
}

/* Reserved bits; the pointer names the leftmost bit in error (SPC-4 4.5.2.4.2). */
static bool
check_usage(struct scsi_cmd *cmd, const struct scsi_op *op)
{
    uint8_t usage[16];

    if (cmd->cdb_len < op->cdb_len) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, NO_FIELD);
        return false;
    }
    if ((op->flags & OP_PROTECT) && (cmd->cdb[1] & 0xe0)) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD(1, 7));
        return false;
    }
    if ((op->flags & OP_UNMAP_BIT) && cmd->lu != NULL)
        scsi_op_usage(op, cmd->lu, usage);
    else
        memcpy(usage, op->usage, sizeof usage);
    if (has_service_action(op))
        usage[1] |= 0x1f;
    if (op->cdb_len <= 16 && is_usage_clean(cmd->cdb, usage, op->cdb_len))
        return true;
    for (unsigned i = 1; i < op->cdb_len; i++) {
        unsigned bad = cmd->cdb[i] & (unsigned)(uint8_t)~usage[i];
        if (bad == 0)
            continue;
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD(i, 31 - __builtin_clz(bad)));
        return false;
    }
    return true;
}

static uint64_t
field_get(const uint8_t *cdb, struct op_field f)
{
    uint64_t v = 0;

    for (unsigned i = 0; i < f.len; i++)
        v = v << 8 | cdb[f.off + i];
    return v;
}

static void
decode(struct scsi_cmd *cmd, const struct scsi_op *op)
{
    cmd->lba = field_get(cmd->cdb, op->lba);
    cmd->nblk = field_get(cmd->cdb, op->nblk);
    cmd->alloc_len = op->alloc.len != 0 ? (uint32_t)field_get(cmd->cdb, op->alloc) : UINT32_MAX;
    if (op->cdb_len == 6 && op->lba.len == 3) { /* READ(6), WRITE(6): SBC-2 5.5 */
        cmd->lba &= 0x1fffff;
        if (cmd->nblk == 0)
            cmd->nblk = 256;
    }
}

/* --- state of the unit and the nexus --------------------------------------------------------- */

static void
refresh_verdict(struct nexus *nx)
{
    struct lun *lun = nx->lun;
    struct be_info info;

    be_info(lun->be, &info);
    pthread_mutex_lock(&lun->lock);
    nx->gen = atomic_load_explicit(&lun->generation, memory_order_relaxed);
    nx->conflict = lun->reserved_by != NULL && lun->reserved_by != nx;
    nx->write_protected = lun->conf.read_only || lun->cur.swp || info.read_only;
    pthread_mutex_unlock(&lun->lock);
}

static bool
check_unit_attention(struct scsi_cmd *cmd, const struct scsi_op *op)
{
    uint16_t asc;

    if ((op->flags & OP_NO_UA) || !ua_take(cmd->nx, &asc))
        return true;
    scsi_check(cmd, SK_UNIT_ATTENTION, asc);
    return false;
}

static bool
is_conflict(const struct scsi_cmd *cmd, const struct scsi_op *op)
{
    if (!cmd->nx->conflict)
        return false;
    switch (op->resv) {
    case RESV_ALWAYS:
    case RESV_RELEASE:
        return false;
    case RESV_PREVENT:
        return (cmd->cdb[4] & 0x03) != 0;
    default:
        return true;
    }
}

static bool
check_state(struct scsi_cmd *cmd, const struct scsi_op *op)
{
    struct nexus *nx = cmd->nx;

    if (!(op->flags & OP_NOT_READY) && lun_not_ready(cmd->lu) != 0) {
        scsi_fail_not_ready(cmd);
        return false;
    }
    if (nx->gen != atomic_load_explicit(&cmd->lu->generation, memory_order_acquire))
        refresh_verdict(nx);
    if (is_conflict(cmd, op)) {
        scsi_status(cmd, SAM_RESERVATION_CONFLICT);
        return false;
    }
    if ((op->flags & OP_WRITES) && nx->write_protected) {
        scsi_fail(cmd, SENSE_WRITE_PROTECTED, NO_FIELD);
        return false;
    }
    return true;
}

bool
dispatch_recheck(struct scsi_cmd *cmd)
{
    return cmd->nx == NULL || check_state(cmd, cmd->op);
}

static bool
check_range(struct scsi_cmd *cmd, const struct scsi_op *op)
{
    if (!(op->flags & OP_LBA_CHECK))
        return true;

    uint64_t n = lun_nblocks(cmd->lu);
    bool out = op->nblk.len == 0 ? cmd->lba >= n : cmd->lba > n || cmd->nblk > n - cmd->lba;
    if (out) {
        scsi_fail(cmd, SENSE_LBA_OUT_OF_RANGE, NO_FIELD);
        return false;
    }
    /* before the data are looked at: what is too long is no matter of residuals */
    if ((op->flags & OP_BLOCKS) && cmd->nblk > SBC_MAX_XFER_BLOCKS) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD_BYTE(op->nblk.off));
        return false;
    }
    return true;
}

/* --- data: what the CDB describes, against what the initiator expects ------------------------ */

static uint64_t
described_blocks(const struct scsi_cmd *cmd, const struct scsi_op *op)
{
    if (op->flags & OP_BLOCKS)
        return cmd->nblk;
    if (op->flags & OP_ONE_BLOCK)
        return cmd->cdb[0] == 0x93 && (cmd->cdb[1] & 0x01) ? 0 : 1;
    if (op->flags & OP_BYTCHK) {
        switch (cmd->cdb[1] >> 1 & 3) {
        case 1:
            return cmd->nblk;
        case 3:
            return cmd->nblk != 0 ? 1 : 0;
        default: /* 0: none; 2 is refused by the handler */
            return 0;
        }
    }
    return 0;
}

/*
 * Sets xfer_in or xfer_out.  Less data-out than described (RFC 7143 11.4.5.1): whole blocks, even
 * none, are written and the residual tells; what is not a whole number of blocks, or cannot be
 * done in part (parameter lists, one-block forms), or came as a read, is refused with nothing done.
 */
static bool
check_data(struct scsi_cmd *cmd, const struct scsi_op *op)
{
    if (op->dir == DIR_IN && (op->flags & OP_BLOCKS))
        cmd->xfer_in = cmd->nblk << cmd->lu->block_shift;
    if (op->dir != DIR_OUT)
        return true;
    if (op->flags & OP_PARAM)
        cmd->xfer_out = cmd->alloc_len;
    else if (cmd->lu != NULL)
        cmd->xfer_out = described_blocks(cmd, op) << cmd->lu->block_shift;
    if (cmd->exp_out >= cmd->xfer_out)
        return true;

    bool can_cut =
        (op->flags & OP_BLOCKS) && cmd->exp_in == 0 && cmd->exp_out % cmd->lu->block_size == 0;
    if (can_cut)
        return true;
    scsi_fail(cmd, SENSE_INVALID_IU_FIELD, NO_FIELD);
    return false;
}

/* --- submit ---------------------------------------------------------------------------------- */

static void
on_params_in(struct scsi_cmd *cmd)
{
    cmd->op->handler(cmd);
}

static void
on_params_buffer(struct scsi_cmd *cmd)
{
    scsi_pull(cmd, 0, cmd->alloc_len, on_params_in);
}

void
dispatch_run(struct scsi_cmd *cmd)
{
    if ((cmd->op->flags & OP_PARAM) && cmd->alloc_len != 0) {
        if (scsi_buffer(cmd, cmd->alloc_len, on_params_buffer))
            on_params_buffer(cmd);
        return;
    }
    cmd->op->handler(cmd);
}

static void
init_private(struct scsi_cmd *cmd)
{
    cmd->status = SAM_GOOD;
    cmd->sense_len = 0;
    cmd->aborted = false;
    cmd->xfer_in = cmd->xfer_out = 0;
    cmd->data = NULL;
    cmd->win_off = cmd->win_len = 0;
    cmd->op = NULL;
    cmd->nx = NULL;
    cmd->lu = NULL;
    cmd->buf = NULL;
    cmd->lba = cmd->nblk = 0;
    cmd->alloc_len = 0;
    cmd->budgeted = 0;
    cmd->held_from = NULL;
    cmd->change = NULL;
    cmd->pos = cmd->end = 0;
    cmd->phase = PH_RUNNING;
    cmd->park_why = PARK_NONE;
    cmd->is_orphan = cmd->is_counted = cmd->lent = cmd->holds_range = false;
    memset(cmd->scratch, 0, sizeof cmd->scratch);
    list_init(&cmd->link);
    list_init(&cmd->parkq);
    list_init(&cmd->bw.link);
    list_init(&cmd->waiters);
    list_init(&cmd->orphan);
    deferred_init(&cmd->later, NULL);
}

/* Reserved values of the ATTR field, and ACA without NormACA (SAM-5 8.4.5). */
static bool
check_attr(struct scsi_cmd *cmd)
{
    if (cmd->attr == ATTR_UNTAGGED)
        cmd->attr = ATTR_SIMPLE;
    if (cmd->attr <= ATTR_HEAD)
        return true;
    cmd->attr = ATTR_HEAD; /* nothing waits for it */
    return false;
}

void
scsi_submit(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    init_private(cmd);
    cmd->itn->refs++;

    enum unit unit = find_unit(cmd);
    bool attr_ok = check_attr(cmd);
    const struct scsi_op *known;
    const struct scsi_op *op = scsi_op_find(cmd->cdb[0], cmd->cdb[1] & 0x1f, &known);
    if (op != NULL && (op->flags & OP_IMPLICIT_HEAD))
        cmd->attr = ATTR_HEAD;
    task_enter(cmd);

    if (!check_row(cmd, unit, op))
        return;
    cmd->op = op;
    if (!attr_ok) {
        scsi_fail(cmd, SENSE_INVALID_IU_FIELD, NO_FIELD);
        return;
    }
    if (!check_usage(cmd, op))
        return;
    decode(cmd, op);
    if (cmd->nx != NULL && (!check_unit_attention(cmd, op) || !check_state(cmd, op)))
        return;
    if (cmd->lu != NULL && !check_range(cmd, op))
        return;
    if (!check_data(cmd, op))
        return;
    if (cmd->nx != NULL)
        task_count(cmd);
    task_enable(cmd);
}
