/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ and WRITE (6, 10, 12, 16): SBC-3 5.11 to 5.13 and 5.33 to 5.35.  Called by dispatch on the
 * command's worker, which has set xfer_in or xfer_out and refused too long transfers and data-out
 * that cannot be used.
 *
 * A transfer of up to 1 MiB is one window: one buffer, one backend request.  A larger one moves
 * in windows through the same buffer, so that memory never follows what the CDB asks for.
 */
#include "config.h"

#include <errno.h>

#include "base/worker.h"
#include "scsi/sbc.h"

enum { WINDOW, LAST }; /* cmd->scratch: bytes of a full window; bytes of the current one */

static bool
has_fua(const struct scsi_cmd *cmd)
{
    return cmd->op->cdb_len > 6;
}

/* --- READ ------------------------------------------------------------------------------------- */

static void rd_window(struct scsi_cmd *cmd);
static void rd_lend(struct scsi_cmd *cmd);

static void
on_pushed(struct scsi_cmd *cmd)
{
    if (cmd->lent) {
        cmd->lent = false;
        io_release_ref(&cmd->io);
        rd_lend(cmd);
    } else {
        rd_window(cmd);
    }
}

/* The window at pos is in cmd->data. */
static void
rd_send(struct scsi_cmd *cmd)
{
    uint32_t off = (uint32_t)cmd->pos;
    uint32_t len = cmd->scratch[LAST];

    cmd->pos += len;
    if (cmd->pos < cmd->end) {
        scsi_push(cmd, off, len, on_pushed);
        return;
    }
    cmd->win_off = off;
    cmd->win_len = len;
    scsi_good(cmd);
}

static void
on_read(struct scsi_cmd *cmd)
{
    if (!sbc_io_failed(cmd))
        rd_send(cmd);
}

/* The next window: what goes out (scratch[LAST], may end inside a block when the initiator
 * expects less) and what is read for it, whole blocks. */
static uint32_t
rd_next_len(struct scsi_cmd *cmd)
{
    uint64_t left = cmd->end - cmd->pos;

    cmd->scratch[LAST] = left < cmd->scratch[WINDOW] ? (uint32_t)left : cmd->scratch[WINDOW];
    return sbc_round_up(cmd->scratch[LAST], cmd->lu->block_size);
}

static void
rd_window(struct scsi_cmd *cmd)
{
    uint32_t len = rd_next_len(cmd);

    cmd->data = cmd->buf->p;
    sbc_io_run(cmd, IO_READ, 0, sbc_bytes(cmd, cmd->lba) + cmd->pos, len, cmd->data, on_read);
}

static void
rd_buffered(struct scsi_cmd *cmd)
{
    uint64_t len = cmd->end < cmd->scratch[WINDOW] ? cmd->end : cmd->scratch[WINDOW];

    if (scsi_buffer(cmd, sbc_round_up(len, cmd->lu->block_size), rd_window))
        rd_window(cmd);
}

static void
on_lent(struct scsi_cmd *cmd)
{
    if (cmd->io.res == -EOPNOTSUPP) {
        rd_buffered(cmd);
        return;
    }
    if (sbc_io_failed(cmd))
        return;
    if (cmd->io.niov != 1) { /* in pieces: a window is one piece of memory */
        io_release_ref(&cmd->io);
        rd_buffered(cmd);
        return;
    }
    cmd->lent = true;
    cmd->data = cmd->io.iov[0].iov_base;
    rd_send(cmd);
}

static void
rd_lend(struct scsi_cmd *cmd)
{
    uint32_t len = rd_next_len(cmd);

    sbc_io_run(cmd, IO_READ_REF, 0, sbc_bytes(cmd, cmd->lba) + cmd->pos, len, NULL, on_lent);
}

static void
rd_start(struct scsi_cmd *cmd)
{
    struct be_info info;

    be_info(cmd->lu->be, &info);
    cmd->scratch[WINDOW] = sbc_io_window(&info, UINT64_MAX, BUF_MAX);
    if (be_lends(cmd->lu->be) && !cmd->no_lend)
        rd_lend(cmd);
    else
        rd_buffered(cmd);
}

static void
on_settled(struct scsi_cmd *cmd)
{
    if (!sbc_io_failed(cmd))
        rd_start(cmd);
}

void
sbc_read(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    cmd->pos = 0;
    cmd->end = cmd->xfer_in < cmd->exp_in ? cmd->xfer_in : cmd->exp_in;
    if (cmd->end == 0) {
        cmd->win_len = 0;
        scsi_good(cmd);
        return;
    }
    /* FUA: the data come from the medium (SBC-3 5.11): what only the cache has goes there first */
    if (has_fua(cmd) && (cmd->cdb[1] & 0x08) != 0)
        sbc_io_settle(cmd, on_settled);
    else
        rd_start(cmd);
}

/* --- WRITE ------------------------------------------------------------------------------------ */

static void wr_pull(struct scsi_cmd *cmd);

static void
on_written(struct scsi_cmd *cmd)
{
    if (sbc_io_failed(cmd))
        return;
    cmd->pos += cmd->scratch[LAST];
    if (cmd->pos == cmd->end)
        scsi_good(cmd);
    else
        wr_pull(cmd);
}

static void
wr_store(struct scsi_cmd *cmd)
{
    sbc_io_run(cmd, IO_WRITE, sbc_io_fua(cmd, has_fua(cmd)), sbc_bytes(cmd, cmd->lba) + cmd->pos,
               cmd->scratch[LAST], cmd->data, on_written);
}

static void
wr_pull(struct scsi_cmd *cmd)
{
    uint64_t left = cmd->end - cmd->pos;

    cmd->scratch[LAST] = left < cmd->scratch[WINDOW] ? (uint32_t)left : cmd->scratch[WINDOW];
    scsi_pull(cmd, (uint32_t)cmd->pos, cmd->scratch[LAST], wr_store);
}

/* A store that is done with the memory when be_submit returns takes it from the transport. */
static bool
wr_in_place(struct scsi_cmd *cmd)
{
    const uint8_t *mem = NULL;

    if (cmd->scratch[WINDOW] == cmd->end && cmd->xport->peek != NULL)
        mem = cmd->xport->peek(cmd, cmd->scratch[WINDOW]);
    if (mem == NULL)
        return false;
    cmd->scratch[LAST] = cmd->scratch[WINDOW];
    cmd->data = (uint8_t *)(uintptr_t)mem;
    wr_store(cmd);
    cmd->data = NULL;
    return true;
}

void
sbc_write(struct scsi_cmd *cmd)
{
    struct be_info info;

    worker_assert_owner(cmd->w);
    /* whole blocks, as many as the initiator sends of those the CDB names */
    cmd->end = cmd->xfer_out < cmd->exp_out ? cmd->xfer_out : cmd->exp_out;
    if (cmd->end == 0) {
        scsi_good(cmd);
        return;
    }
    be_info(cmd->lu->be, &info);
    cmd->pos = 0;
    cmd->scratch[WINDOW] = sbc_io_window(&info, cmd->end, BUF_MAX);
    if ((info.caps & BE_CAP_WRITE_AT_ONCE) != 0 && wr_in_place(cmd))
        return;
    if (scsi_buffer(cmd, cmd->scratch[WINDOW], wr_pull))
        wr_pull(cmd);
}
