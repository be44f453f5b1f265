/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all block commands do alike: transfer limits, windows, medium access, durability.
 * Called by the sbc_*.c handlers on the command's worker.
 */
#include "config.h"

#include "base/worker.h"
#include "scsi/sbc.h"

uint32_t
sbc_io_window(const struct be_info *info, uint64_t total, uint32_t max)
{
    uint64_t win = max;

    if (info->max_io != 0 && info->max_io < win)
        win = info->max_io;
    /* 4096: every block size divides it, and windows stay aligned for direct I/O */
    if (win > BUF_MIN)
        win -= win % BUF_MIN;
    return (uint32_t)(total < win ? total : win);
}

bool
sbc_io_cache_on(const struct scsi_cmd *cmd)
{
    return atomic_load_explicit(&cmd->lu->be->write_cache, memory_order_relaxed);
}

uint8_t
sbc_io_fua(const struct scsi_cmd *cmd, bool has_fua)
{
    if (has_fua && (cmd->cdb[1] & 0x08) != 0)
        return IO_FUA;
    return sbc_io_cache_on(cmd) ? 0 : IO_FUA;
}

void
sbc_io_run(struct scsi_cmd *cmd, enum io_op op, uint8_t flags, uint64_t offset, uint64_t len,
           void *mem, void (*next)(struct scsi_cmd *cmd))
{
    struct io *io = &cmd->io;

    io->op = (uint8_t)op;
    io->flags = flags;
    io->offset = offset;
    io->len = len;
    io->iov = NULL;
    io->niov = 0;
    io->md = NULL;
    io->nmd = 0;
    io->fail_offset = offset;
    if (mem != NULL) {
        cmd->iov[0] = (struct iovec){.iov_base = mem, .iov_len = (size_t)len};
        io->iov = cmd->iov;
        io->niov = 1;
    }
    scsi_io(cmd, next);
}

bool
sbc_io_failed(struct scsi_cmd *cmd)
{
    if (cmd->io.res == 0)
        return false;
    scsi_fail_io(cmd, &cmd->io);
    return true;
}

void
sbc_io_settle(struct scsi_cmd *cmd, void (*next)(struct scsi_cmd *cmd))
{
    if (!sbc_io_cache_on(cmd)) {
        cmd->io.res = 0;
        next(cmd);
        return;
    }
    sbc_io_run(cmd, IO_FLUSH, 0, sbc_bytes(cmd, cmd->lba), sbc_bytes(cmd, cmd->nblk), NULL, next);
}
