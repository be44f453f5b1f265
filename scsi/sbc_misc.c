/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ CAPACITY (SBC-3 5.15, 5.16), SYNCHRONIZE CACHE (5.26, 5.27), PRE-FETCH (5.8, 5.9) and
 * START STOP UNIT (5.25).  Called by dispatch on the command's worker.
 */
#include "config.h"

#include "base/worker.h"
#include "scsi/sbc.h"

#define PREFETCH_MAX    (8u * 1024 * 1024) /* bytes; more is not worth a cache's while */
#define PREFETCH_WINDOW (256u * 1024)

static bool
is_immed(const struct scsi_cmd *cmd) /* SYNCHRONIZE CACHE and PRE-FETCH */
{
    return (cmd->cdb[1] & 0x02) != 0;
}

/* Blocks the command names: NUMBER OF LOGICAL BLOCKS 0 is all to the end of the unit. */
static uint64_t
range_blocks(const struct scsi_cmd *cmd)
{
    uint64_t nblocks = lun_nblocks(cmd->lu);

    if (cmd->nblk != 0)
        return cmd->nblk;
    return cmd->lba < nblocks ? nblocks - cmd->lba : 0;
}

/* --- READ CAPACITY
 * ---------------------------------------------------------------------------------- */

/* 0 blocks: there is no last one to tell; the unit is not ready for that. */
static bool
capacity(struct scsi_cmd *cmd, uint64_t *last)
{
    uint64_t nblocks = lun_nblocks(cmd->lu);

    if (nblocks == 0) {
        scsi_fail(cmd, SENSE_NOT_READY_CAUSE_NOT_REPORTABLE, NO_FIELD);
        return false;
    }
    *last = nblocks - 1;
    return true;
}

void
sbc_read_capacity_10(struct scsi_cmd *cmd)
{
    struct wcur w;
    uint64_t last;

    worker_assert_owner(cmd->w);
    /* PMI (obsolete): every block is as near as any other, so the answer is the same; without it
     * an LBA means nothing (SBC-2 5.10) */
    if ((cmd->cdb[8] & 1) == 0 && get_be32(cmd->cdb + 2) != 0) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD_BYTE(2));
        return;
    }
    cmd->alloc_len = 8; /* the CDB has none */
    if (!capacity(cmd, &last) || !scsi_reply(cmd, &w))
        return;
    wcur_be32(&w, last < UINT32_MAX ? (uint32_t)last : UINT32_MAX);
    wcur_be32(&w, cmd->lu->block_size);
    scsi_data_in(cmd, (uint32_t)w.len);
}

void
sbc_read_capacity_16(struct scsi_cmd *cmd)
{
    struct wcur w;
    uint64_t last;

    worker_assert_owner(cmd->w);
    if ((cmd->cdb[14] & 1) == 0 && get_be64(cmd->cdb + 2) != 0) { /* PMI, as above */
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD_BYTE(2));
        return;
    }
    if (!capacity(cmd, &last) || !scsi_reply(cmd, &w))
        return;
    pthread_mutex_lock(&cmd->lu->lock);
    unsigned lbppbe = cmd->lu->conf.lbppbe;
    unsigned lalba = cmd->lu->conf.la_lba;
    pthread_mutex_unlock(&cmd->lu->lock);
    unsigned thin = lun_is_thin(cmd->lu) ? 0xc000 : 0; /* LBPME, LBPRZ */
    wcur_be64(&w, last);
    wcur_be32(&w, cmd->lu->block_size);
    wcur_u8(&w, 0); /* no protection information */
    wcur_u8(&w, (uint8_t)(lbppbe & 0x0f));
    wcur_be16(&w, (uint16_t)(thin | (lalba & 0x3fff)));
    wcur_zero(&w, 16);
    scsi_data_in(cmd, (uint32_t)w.len);
}

/* --- SYNCHRONIZE CACHE
 * ------------------------------------------------------------------------------ */

static void
on_flushed(struct scsi_cmd *cmd)
{
    if (!sbc_io_failed(cmd))
        scsi_good(cmd);
}

void
sbc_sync_cache(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    uint64_t offset = sbc_bytes(cmd, cmd->lba);
    uint64_t len = sbc_bytes(cmd, range_blocks(cmd));

    if (is_immed(cmd) && sbc_bg_flush(cmd, offset, len))
        scsi_good(cmd);
    else
        sbc_io_run(cmd, IO_FLUSH, 0, offset, len, NULL, on_flushed);
}

/* --- PRE-FETCH
 * --------------------------------------------------------------------------------------- */

/*
 * The blocks are read once, so that what lies below the unit (the page cache, the array) has
 * them at hand.  How long it keeps them is not ours to say: the status is GOOD, "not known to fit
 * the cache", never CONDITION MET, which would promise it.
 */

static void pf_window(struct scsi_cmd *cmd);

static void
on_fetched(struct scsi_cmd *cmd)
{
    if (sbc_io_failed(cmd))
        return;
    cmd->pos += cmd->scratch[0];
    if (cmd->pos == cmd->end)
        scsi_good(cmd);
    else
        pf_window(cmd);
}

static void
pf_window(struct scsi_cmd *cmd)
{
    uint64_t left = cmd->end - cmd->pos;

    cmd->scratch[0] = left < cmd->scratch[1] ? (uint32_t)left : cmd->scratch[1];
    sbc_io_run(cmd, IO_READ, 0, cmd->pos, cmd->scratch[0], cmd->data, on_fetched);
}

void
sbc_prefetch(struct scsi_cmd *cmd)
{
    struct be_info info;

    worker_assert_owner(cmd->w);
    uint64_t nblk = range_blocks(cmd);
    if (nblk > PREFETCH_MAX >> cmd->lu->block_shift)
        nblk = PREFETCH_MAX >> cmd->lu->block_shift;
    cmd->pos = sbc_bytes(cmd, cmd->lba);
    cmd->end = cmd->pos + sbc_bytes(cmd, nblk);
    if (nblk == 0) {
        scsi_good(cmd);
        return;
    }
    if (is_immed(cmd)) {
        /* no room for it: nothing is pre-fetched, which GOOD allows */
        sbc_bg_prefetch(cmd, cmd->pos, cmd->end - cmd->pos);
        scsi_good(cmd);
        return;
    }
    be_info(cmd->lu->be, &info);
    cmd->scratch[1] = sbc_io_window(&info, cmd->end - cmd->pos, PREFETCH_WINDOW);
    if (scsi_buffer(cmd, cmd->scratch[1], pf_window))
        pf_window(cmd);
}

/* --- START STOP UNIT ------------------------------------------------------------------------- */

enum { SSU_IMMED = 0x01, SSU_START = 0x01, SSU_LOEJ = 0x02, SSU_NO_FLUSH = 0x04 };

static bool
is_removable(struct lun *lun)
{
    pthread_mutex_lock(&lun->lock);
    bool removable = lun->conf.removable;
    pthread_mutex_unlock(&lun->lock);
    return removable;
}

/* States are published before the generation, so that whoever sees it sees them. */
static void
set_state(struct lun *lun, bool stopped, bool ejected)
{
    atomic_store(&lun->stopped, stopped);
    atomic_store(&lun->ejected, ejected);
    atomic_fetch_add(&lun->generation, 1);
}

/* What was asked, once the cache is on the medium (or nobody asked for that). */
static void
ssu_apply(struct scsi_cmd *cmd)
{
    struct lun *lun = cmd->lu;
    uint8_t bits = cmd->cdb[4];

    if ((bits & 0xf0) == 0) {
        if ((bits & SSU_LOEJ) != 0)
            set_state(lun, false, true);
        else if (!is_removable(lun))
            set_state(lun, true, false);
        /* else: without LOEJ a removable medium stays in and accessible */
    }
    scsi_good(cmd);
}

static void
on_stop_flushed(struct scsi_cmd *cmd)
{
    if (!sbc_io_failed(cmd))
        ssu_apply(cmd);
}

static void
ssu_start(struct scsi_cmd *cmd)
{
    struct lun *lun = cmd->lu;
    bool load = (cmd->cdb[4] & SSU_LOEJ) != 0;

    if (!atomic_load(&lun->online)) { /* the administrator's word stands */
        scsi_fail_not_ready(cmd);
        return;
    }
    if (be_state(lun->be) != BE_READY) {
        scsi_fail(cmd, SENSE_NOT_READY_CAUSE_NOT_REPORTABLE, NO_FIELD);
        return;
    }
    bool was_out = atomic_load(&lun->ejected);
    if (was_out && !load) {
        scsi_fail(cmd, SENSE_MEDIUM_NOT_PRESENT, NO_FIELD);
        return;
    }
    bool changed = was_out || atomic_load(&lun->stopped);
    set_state(lun, false, false);
    if (changed)
        ua_set_lun(lun, UA_MEDIUM_CHANGED, cmd->nx);
    scsi_good(cmd);
}

static bool
removal_prevented(struct lun *lun)
{
    pthread_mutex_lock(&lun->lock);
    bool prevented = lun->prevent != 0;
    pthread_mutex_unlock(&lun->lock);
    return prevented;
}

/*
 * Power conditions are accepted and change nothing that can be seen: idle and standby answer
 * every command (SBC-3 4.20), and no timers are offered.  Stopping and ejecting, and leaving the
 * active condition, write the cache to the medium first unless NO_FLUSH says otherwise.
 */
void
sbc_start_stop(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    uint8_t bits = cmd->cdb[4];
    bool power = (bits & 0xf0) != 0;

    if (!power && (bits & SSU_LOEJ) != 0 && !is_removable(cmd->lu)) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD(4, 1));
        return;
    }
    if (!power && (bits & SSU_LOEJ) != 0 && removal_prevented(cmd->lu)) { /* in and out alike */
        scsi_fail(cmd, SENSE_REMOVAL_PREVENTED, NO_FIELD);
        return;
    }
    if (!power && (bits & SSU_START) != 0) {
        ssu_start(cmd);
        return;
    }
    if ((bits & SSU_NO_FLUSH) != 0 || be_state(cmd->lu->be) != BE_READY)
        ssu_apply(cmd);
    else if ((cmd->cdb[1] & SSU_IMMED) != 0 && sbc_bg_flush(cmd, 0, be_size(cmd->lu->be)))
        ssu_apply(cmd);
    else
        sbc_io_run(cmd, IO_FLUSH, 0, 0, be_size(cmd->lu->be), NULL, on_stop_flushed);
}
