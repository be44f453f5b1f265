/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the block commands (sbc_*.c) only: lengths, windows and medium access of a command,
 * and the work that outlives a command sent with IMMED.
 *
 * Worker's thread throughout.
 */
#ifndef SCSI_SBC_H
#define SCSI_SBC_H

#include "scsi/priv.h"

/* Handlers keep small state in cmd->scratch; the meaning of an index is the handler's own. */

static inline uint64_t
sbc_bytes(const struct scsi_cmd *cmd, uint64_t nblk)
{
    return nblk << cmd->lu->block_shift;
}

static inline uint32_t
sbc_round_up(uint64_t n, uint32_t unit) /* unit: a power of two; the result fits */
{
    return (uint32_t)((n + unit - 1) & ~(uint64_t)(unit - 1));
}

/* --- sbc_io.c ------------------------------------------------------------------------------- */

/* Bytes of one window for a transfer of `total` bytes: at most `max`, at most what the backend
 * takes in one request; whole blocks unless it is the whole transfer. */
uint32_t sbc_io_window(const struct be_info *info, uint64_t total, uint32_t max);

/* Writes must be durable when done: the command's FUA bit (CDB byte 1 bit 3 of 10, 12 and 16 byte
 * commands) when `has_fua`, or no write cache. IO_FUA or 0. */
uint8_t sbc_io_fua(const struct scsi_cmd *cmd, bool has_fua);
bool sbc_io_cache_on(const struct scsi_cmd *cmd);

/* One backend request at byte `offset`, then next(cmd) with cmd->io.res. mem: NULL for requests
 * without data. */
void sbc_io_run(struct scsi_cmd *cmd, enum io_op op, uint8_t flags, uint64_t offset, uint64_t len,
                void *mem, void (*next)(struct scsi_cmd *cmd));

/* What is in the write cache goes to the medium (SBC-3 4.15), then next(cmd) with cmd->io.res,
 * which it checks by sbc_io_failed; at once, with 0, when there is no write cache. */
void sbc_io_settle(struct scsi_cmd *cmd, void (*next)(struct scsi_cmd *cmd));

/* True, and the command failed, when the request on cmd->io did. */
bool sbc_io_failed(struct scsi_cmd *cmd);

/* --- sbc_bg.c ------------------------------------------------------------------------------- */

/* Work that goes on after the status of a command with IMMED.  Bounded per unit: false when there
 * is no room (the caller then does it before the status, or not at all where that is allowed). */
bool sbc_bg_flush(struct scsi_cmd *cmd, uint64_t offset, uint64_t len);
bool sbc_bg_prefetch(struct scsi_cmd *cmd, uint64_t offset, uint64_t len);

#endif
