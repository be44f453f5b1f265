/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sense data: one row a condition, fixed (70h) and descriptor (72h) format (SPC-4 4.5), and the
 * ways a command fails.  Called by dispatch and the handlers, on the command's worker.
 */
#include "scsi/priv.h"

#include <errno.h>
#include <string.h>

struct sense_row {
    uint8_t key;
    uint16_t asc; /* ASC << 8 | ASCQ */
};

static const struct sense_row sense_rows[SENSE_COUNT] = {
    [SENSE_NOT_READY_CAUSE_NOT_REPORTABLE] = {SK_NOT_READY, 0x0400},
    [SENSE_NOT_READY_BECOMING] = {SK_NOT_READY, 0x0401},
    [SENSE_NOT_READY_INIT_REQUIRED] = {SK_NOT_READY, 0x0402},
    [SENSE_NOT_READY_OFFLINE] = {SK_NOT_READY, 0x0412},
    [SENSE_MEDIUM_NOT_PRESENT] = {SK_NOT_READY, 0x3a00},
    [SENSE_UNRECOVERED_READ_ERROR] = {SK_MEDIUM_ERROR, 0x1100},
    [SENSE_WRITE_ERROR] = {SK_MEDIUM_ERROR, 0x0c00},
    [SENSE_HARDWARE_ERROR] = {SK_HARDWARE_ERROR, 0x4400},
    [SENSE_PARAMETER_LIST_LENGTH] = {SK_ILLEGAL_REQUEST, 0x1a00},
    [SENSE_INVALID_OPCODE] = {SK_ILLEGAL_REQUEST, 0x2000},
    [SENSE_LBA_OUT_OF_RANGE] = {SK_ILLEGAL_REQUEST, 0x2100},
    [SENSE_INVALID_FIELD_IN_CDB] = {SK_ILLEGAL_REQUEST, 0x2400},
    [SENSE_LUN_NOT_SUPPORTED] = {SK_ILLEGAL_REQUEST, 0x2500},
    [SENSE_INVALID_FIELD_IN_PARAMETERS] = {SK_ILLEGAL_REQUEST, 0x2600},
    [SENSE_PARAMETER_VALUE_INVALID] = {SK_ILLEGAL_REQUEST, 0x2602},
    [SENSE_SAVING_NOT_SUPPORTED] = {SK_ILLEGAL_REQUEST, 0x3900},
    [SENSE_INVALID_IU_FIELD] = {SK_ILLEGAL_REQUEST, 0x0e03},
    [SENSE_REMOVAL_PREVENTED] = {SK_ILLEGAL_REQUEST, 0x5302},
    [SENSE_WRITE_PROTECTED] = {SK_DATA_PROTECT, 0x2700},
    [SENSE_SPACE_ALLOCATION_FAILED] = {SK_DATA_PROTECT, 0x2707},
    [SENSE_MISCOMPARE] = {SK_MISCOMPARE, 0x1d00},
    [SENSE_ABORTED_DATA_PHASE] = {SK_ABORTED, 0x4b00},
};

/* The three sense key specific bytes of a field pointer (SPC-4 4.5.2.4.2). */
static void
put_field_pointer(uint8_t *p, uint32_t field, bool in_cdb)
{
    unsigned bit = field & 0xff;

    p[0] = (uint8_t)(0x80u | (in_cdb ? 0x40u : 0u) | (bit < 8 ? 0x08u | bit : 0u));
    put_be16(p + 1, (uint16_t)(field >> 8));
}

static unsigned
build_fixed(uint8_t *out, uint8_t key, uint16_t asc, bool has_info, uint64_t info, uint32_t field,
            bool in_cdb)
{
    memset(out, 0, 18);
    out[0] = 0x70;
    out[2] = key;
    if (has_info && info <= UINT32_MAX) { /* VALID means: the field holds all of it */
        out[0] |= 0x80;
        put_be32(out + 3, (uint32_t)info);
    }
    out[7] = 10;
    put_be16(out + 12, asc);
    if (field != NO_FIELD)
        put_field_pointer(out + 15, field, in_cdb);
    return 18;
}

static unsigned
build_descriptor(uint8_t *out, uint8_t key, uint16_t asc, bool has_info, uint64_t info,
                 uint32_t field, bool in_cdb)
{
    unsigned len = 8;

    memset(out, 0, 28);
    out[0] = 0x72;
    out[1] = key;
    put_be16(out + 2, asc);
    if (has_info) {
        out[len] = 0x00; /* information */
        out[len + 1] = 0x0a;
        out[len + 2] = 0x80;
        put_be64(out + len + 4, info);
        len += 12;
    }
    if (field != NO_FIELD) {
        out[len] = 0x02; /* sense key specific */
        out[len + 1] = 0x06;
        put_field_pointer(out + len + 4, field, in_cdb);
        len += 8;
    }
    out[7] = (uint8_t)(len - 8);
    return len;
}

unsigned
sense_build(uint8_t *out, bool descriptor, uint8_t key, uint16_t asc, bool has_info, uint64_t info,
            uint32_t field, bool field_in_cdb)
{
    if (descriptor)
        return build_descriptor(out, key, asc, has_info, info, field, field_in_cdb);
    return build_fixed(out, key, asc, has_info, info, field, field_in_cdb);
}

void
sense_set(struct scsi_cmd *cmd, uint8_t key, uint16_t asc, bool has_info, uint64_t info,
          uint32_t field)
{
    bool descriptor =
        cmd->lu != NULL && atomic_load_explicit(&cmd->lu->d_sense, memory_order_relaxed);
    bool in_cdb = (asc >> 8) != 0x26;

    cmd->status = SAM_CHECK;
    cmd->win_len = 0;
    cmd->sense_len =
        (uint8_t)sense_build(cmd->sense, descriptor, key, asc, has_info, info, field, in_cdb);
}

void
scsi_check(struct scsi_cmd *cmd, uint8_t key, uint16_t asc)
{
    sense_set(cmd, key, asc, false, 0, NO_FIELD);
    task_end(cmd);
}

void
scsi_fail(struct scsi_cmd *cmd, enum scsi_sense s, uint32_t field)
{
    sense_set(cmd, sense_rows[s].key, sense_rows[s].asc, false, 0, field);
    task_end(cmd);
}

void
scsi_fail_info(struct scsi_cmd *cmd, enum scsi_sense s, uint64_t information)
{
    sense_set(cmd, sense_rows[s].key, sense_rows[s].asc, true, information, NO_FIELD);
    task_end(cmd);
}

void
scsi_fail_not_ready(struct scsi_cmd *cmd)
{
    uint32_t why = lun_not_ready(cmd->lu);

    if (why == 0) /* it came back meanwhile */
        why = (uint32_t)SK_NOT_READY << 16 | 0x0400;
    scsi_check(cmd, (uint8_t)(why >> 16), (uint16_t)why);
}

void
scsi_fail_io(struct scsi_cmd *cmd, const struct io *io)
{
    uint64_t lba = io->fail_offset >> cmd->lu->block_shift;

    switch (-io->res) {
    case EIO:
        if (io->op == IO_READ || io->op == IO_READ_REF)
            scsi_fail_info(cmd, SENSE_UNRECOVERED_READ_ERROR, lba);
        else if (io->op == IO_WRITE)
            scsi_fail_info(cmd, SENSE_WRITE_ERROR, lba);
        else if (io->op == IO_MAP)
            scsi_fail(cmd, SENSE_HARDWARE_ERROR, NO_FIELD);
        else
            scsi_fail(cmd, SENSE_WRITE_ERROR, NO_FIELD);
        break;
    case ENOSPC:
    case EDQUOT:
        scsi_fail(cmd, SENSE_SPACE_ALLOCATION_FAILED, NO_FIELD);
        break;
    case ENXIO:
    case ENODEV:
    case ESTALE:
        scsi_fail_not_ready(cmd);
        break;
    case EROFS:
        scsi_fail(cmd, SENSE_WRITE_PROTECTED, NO_FIELD);
        break;
    case ECANCELED:
        scsi_check(cmd, SK_ABORTED, 0x0000);
        break;
    case ENOMEM:
        scsi_status(cmd, SAM_BUSY);
        break;
    default:
        scsi_fail(cmd, SENSE_HARDWARE_ERROR, NO_FIELD);
        break;
    }
}

void
scsi_good(struct scsi_cmd *cmd)
{
    cmd->status = SAM_GOOD;
    if (cmd->op == NULL || cmd->op->dir != DIR_IN)
        cmd->win_len = 0;
    task_end(cmd);
}

void
scsi_status(struct scsi_cmd *cmd, enum scsi_status status)
{
    cmd->status = (uint8_t)status;
    cmd->sense_len = 0;
    cmd->win_len = 0;
    task_end(cmd);
}

void
scsi_fail_early(struct scsi_cmd *cmd, uint8_t key, uint16_t asc)
{
    cmd->status = SAM_CHECK;
    cmd->win_len = 0;
    cmd->sense_len = (uint8_t)sense_build(cmd->sense, false, key, asc, false, 0, NO_FIELD, true);
}
