/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * VERIFY and WRITE AND VERIFY (10, 12, 16): SBC-3 5.29 to 5.31 and 5.37 to 5.39.  Called by
 * dispatch on the command's worker, once xfer_out is set and data-out that cannot be used is
 * refused.
 *
 * One buffer in two parts: data-out in front (none, one block, or as much as the window), what
 * the medium holds behind it.  Sense of a miscompare: INFORMATION is the byte offset, from the
 * first byte of the command's LBA range, of the first byte that differs.
 */
#include "config.h"

#include <string.h>

#include "base/worker.h"
#include "scsi/sbc.h"

enum {         /* cmd->scratch */
       WINDOW, /* bytes of a full window */
       CUR,    /* bytes of the current one */
       AREA,   /* bytes of the data-out part */
       BYTCHK,
};

enum { COMPARE_NONE = 0, COMPARE_ALL = 1, COMPARE_RESERVED = 2, COMPARE_ONE = 3 };

static uint8_t
bytchk(const struct scsi_cmd *cmd)
{
    return (uint8_t)((cmd->cdb[1] >> 1) & 3);
}

static void
next_window(struct scsi_cmd *cmd)
{
    uint64_t left = cmd->end - cmd->pos;

    cmd->scratch[CUR] = left < cmd->scratch[WINDOW] ? (uint32_t)left : cmd->scratch[WINDOW];
}

static void
read_medium(struct scsi_cmd *cmd, void (*next)(struct scsi_cmd *cmd))
{
    sbc_io_run(cmd, IO_READ, 0, sbc_bytes(cmd, cmd->lba) + cmd->pos, cmd->scratch[CUR],
               cmd->data + cmd->scratch[AREA], next);
}

/* Offset of the first byte of the window that differs from data-out; its length when none does. */
static uint32_t
first_difference(const struct scsi_cmd *cmd)
{
    const uint8_t *want = cmd->data;
    const uint8_t *have = cmd->data + cmd->scratch[AREA];
    uint32_t step = cmd->scratch[BYTCHK] == COMPARE_ONE ? cmd->lu->block_size : cmd->scratch[CUR];

    for (uint32_t off = 0; off < cmd->scratch[CUR]; off += step) {
        if (memcmp(want, have + off, step) == 0)
            continue;
        uint32_t i = 0;
        while (want[i] == have[off + i])
            i++;
        return off + i;
    }
    return cmd->scratch[CUR];
}

/* True when the window at pos is as it shall be, else the command failed. */
static bool
compared(struct scsi_cmd *cmd)
{
    if (cmd->scratch[BYTCHK] == COMPARE_NONE)
        return true;
    uint32_t off = first_difference(cmd);
    if (off == cmd->scratch[CUR])
        return true;
    scsi_fail_info(cmd, SENSE_MISCOMPARE, cmd->pos + off);
    return false;
}

/* Buffer for `area` bytes of data-out and as much of the medium as fits with it, then next. */
static void
take_buffer(struct scsi_cmd *cmd, uint32_t window, void (*next)(struct scsi_cmd *cmd))
{
    cmd->scratch[WINDOW] = window;
    if (scsi_buffer(cmd, cmd->scratch[AREA] + window, next))
        next(cmd);
}

/* --- VERIFY ----------------------------------------------------------------------------------- */

static void vf_window(struct scsi_cmd *cmd);

static void
on_verified(struct scsi_cmd *cmd)
{
    if (sbc_io_failed(cmd) || !compared(cmd))
        return;
    cmd->pos += cmd->scratch[CUR];
    if (cmd->pos == cmd->end)
        scsi_good(cmd);
    else
        vf_window(cmd);
}

static void
vf_read(struct scsi_cmd *cmd)
{
    read_medium(cmd, on_verified);
}

static void
vf_window(struct scsi_cmd *cmd)
{
    next_window(cmd);
    if (cmd->scratch[BYTCHK] == COMPARE_ALL)
        scsi_pull(cmd, (uint32_t)cmd->pos, cmd->scratch[CUR], vf_read);
    else
        vf_read(cmd);
}

/* The buffer is there; the one block of BYTCHK=11b is pulled before the first window. */
static void
vf_first(struct scsi_cmd *cmd)
{
    if (cmd->scratch[BYTCHK] == COMPARE_ONE)
        scsi_pull(cmd, 0, cmd->lu->block_size, vf_window);
    else
        vf_window(cmd);
}

static void
on_settled(struct scsi_cmd *cmd)
{
    struct be_info info;

    if (sbc_io_failed(cmd))
        return;
    be_info(cmd->lu->be, &info);
    uint32_t window = BUF_MAX;
    cmd->scratch[AREA] = 0;
    if (cmd->scratch[BYTCHK] == COMPARE_ALL) {
        window = sbc_io_window(&info, cmd->end, BUF_MAX / 2);
        cmd->scratch[AREA] = sbc_round_up(window, BUF_MIN);
    } else if (cmd->scratch[BYTCHK] == COMPARE_ONE) {
        window = sbc_io_window(&info, cmd->end, BUF_MAX - BUF_MIN);
        cmd->scratch[AREA] = BUF_MIN;
    } else {
        window = sbc_io_window(&info, cmd->end, BUF_MAX);
    }
    take_buffer(cmd, window, vf_first);
}

void
sbc_verify(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    uint8_t chk = bytchk(cmd);

    if (chk == COMPARE_RESERVED) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD(1, 2));
        return;
    }
    if (cmd->nblk > SBC_MAX_XFER_BLOCKS) { /* whether data move or not (SBC-3 6.5.3) */
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD_BYTE(cmd->op->nblk.off));
        return;
    }
    if (cmd->nblk == 0) {
        scsi_good(cmd);
        return;
    }
    cmd->pos = 0;
    cmd->end = sbc_bytes(cmd, cmd->nblk);
    cmd->scratch[BYTCHK] = chk;
    sbc_io_settle(cmd, on_settled);
}

/* --- WRITE AND VERIFY ---------------------------------------------------------------------------
 */

static void wv_window(struct scsi_cmd *cmd);

static void
on_read_back(struct scsi_cmd *cmd)
{
    if (sbc_io_failed(cmd) || !compared(cmd))
        return;
    cmd->pos += cmd->scratch[CUR];
    if (cmd->pos == cmd->end)
        scsi_good(cmd);
    else
        wv_window(cmd);
}

static void
on_written(struct scsi_cmd *cmd)
{
    if (!sbc_io_failed(cmd))
        read_medium(cmd, on_read_back);
}

/* Durable whatever the cache mode: what is verified is the medium. */
static void
wv_store(struct scsi_cmd *cmd)
{
    sbc_io_run(cmd, IO_WRITE, IO_FUA, sbc_bytes(cmd, cmd->lba) + cmd->pos, cmd->scratch[CUR],
               cmd->data, on_written);
}

static void
wv_window(struct scsi_cmd *cmd)
{
    next_window(cmd);
    scsi_pull(cmd, (uint32_t)cmd->pos, cmd->scratch[CUR], wv_store);
}

void
sbc_write_and_verify(struct scsi_cmd *cmd)
{
    struct be_info info;

    worker_assert_owner(cmd->w);
    if (bytchk(cmd) > COMPARE_ALL) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD(1, 2));
        return;
    }
    /* whole blocks, as many as the initiator sends of those the CDB names */
    cmd->pos = 0;
    cmd->end = cmd->xfer_out < cmd->exp_out ? cmd->xfer_out : cmd->exp_out;
    if (cmd->end == 0) {
        scsi_good(cmd);
        return;
    }
    be_info(cmd->lu->be, &info);
    cmd->scratch[BYTCHK] = bytchk(cmd);
    uint32_t window = sbc_io_window(&info, cmd->end, BUF_MAX / 2);
    cmd->scratch[AREA] = sbc_round_up(window, BUF_MIN);
    take_buffer(cmd, window, wv_window);
}
