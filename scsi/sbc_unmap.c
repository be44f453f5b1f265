/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UNMAP (SBC-3 5.28), WRITE SAME (5.43, 5.44) and GET LBA STATUS (5.4).  Called by dispatch on
 * the command's worker, which has refused what thin provisioning would be needed for and is not
 * there (OP_THIN, OP_UNMAP_BIT), and anchoring.
 *
 * Ranges may be large: they are worked off in steps, each one backend request, so that a command
 * can be aborted between them and holds no more memory than one step needs.  Discarding backends
 * leave zeros (IO_DISCARD), therefore LBPRZ=1 wherever LBPME=1, down to a single block.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/worker.h"
#include "scsi/sbc.h"

#define DISCARD_STEP  (1024u * 1024 * 1024)
#define ZERO_STEP     (64u * 1024 * 1024)
#define PATTERN_BYTES (256u * 1024)
#define UNMAP_HEADER  8u
#define UNMAP_DESC    16u
#define EXTENTS_MAX   128u
#define STATUS_HEADER 8u
#define STATUS_DESC   16u

enum {       /* cmd->scratch of UNMAP and WRITE SAME */
       OP,   /* IO_DISCARD, IO_ZERO or IO_WRITE */
       STEP, /* bytes of the current step */
       STEP_MAX,
       DESC,   /* next UNMAP descriptor */
       DESC_N, /* descriptors */
};

/* --- ranges: [pos, end) bytes, step by step, then what comes next
 * --------------------------------- */

static void run(struct scsi_cmd *cmd);

/* With a next descriptor: [pos, end) is its range. */
static bool
next_descriptor(struct scsi_cmd *cmd)
{
    if (cmd->scratch[DESC] == cmd->scratch[DESC_N])
        return false;
    const uint8_t *d = cmd->data + UNMAP_HEADER + cmd->scratch[DESC]++ * UNMAP_DESC;
    cmd->pos = sbc_bytes(cmd, get_be64(d));
    cmd->end = cmd->pos + sbc_bytes(cmd, get_be32(d + 8));
    return true;
}

static void
on_step(struct scsi_cmd *cmd)
{
    if (cmd->io.res == -EOPNOTSUPP && cmd->scratch[OP] == IO_DISCARD) {
        /* the store cannot any more; zeros were promised */
        cmd->scratch[OP] = IO_ZERO;
        cmd->scratch[STEP_MAX] = ZERO_STEP;
        run(cmd);
        return;
    }
    if (sbc_io_failed(cmd))
        return;
    cmd->pos += cmd->scratch[STEP];
    run(cmd);
}

/* Steps end at multiples of the step size, so that cutting a range leaves no odd pieces that
 * could have been deallocated. */
static void
run(struct scsi_cmd *cmd)
{
    while (cmd->pos == cmd->end) {
        if (!next_descriptor(cmd)) {
            scsi_good(cmd);
            return;
        }
    }
    uint64_t left = cmd->end - cmd->pos;
    uint64_t len = cmd->scratch[STEP_MAX] - cmd->pos % cmd->scratch[STEP_MAX];
    if (len > left)
        len = left;
    cmd->scratch[STEP] = (uint32_t)len;
    sbc_io_run(cmd, (enum io_op)cmd->scratch[OP], sbc_io_fua(cmd, false), cmd->pos, len,
               cmd->scratch[OP] == IO_WRITE ? cmd->data : NULL, on_step);
}

static uint32_t
discard_step(const struct scsi_cmd *cmd)
{
    struct be_info info;
    uint64_t step = DISCARD_STEP;

    be_info(cmd->lu->be, &info);
    if (info.max_discard != 0 && info.max_discard < step) {
        uint32_t unit = cmd->lu->block_size;
        if (info.discard_gran > unit && info.discard_gran <= info.max_discard)
            unit = info.discard_gran;
        step = info.max_discard - info.max_discard % unit;
    }
    return step >= cmd->lu->block_size ? (uint32_t)step : cmd->lu->block_size;
}

/* --- UNMAP
 * ---------------------------------------------------------------------------------------- */

/* Everything is checked before anything is done. */
static bool
unmap_list_ok(struct scsi_cmd *cmd)
{
    struct cur c = cur_init(cmd->data + UNMAP_HEADER, (size_t)cmd->scratch[DESC_N] * UNMAP_DESC);
    uint64_t nblocks = lun_nblocks(cmd->lu);
    uint64_t total = 0;

    if (cmd->scratch[DESC_N] > SBC_MAX_UNMAP_DESC) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_PARAMETERS, FIELD_BYTE(2));
        return false;
    }
    for (uint32_t i = 0; i < cmd->scratch[DESC_N]; i++) {
        uint64_t lba = cur_be64(&c);
        uint32_t nblk = cur_be32(&c);
        cur_take(&c, 4);
        if (lba > nblocks || nblk > nblocks - lba) {
            scsi_fail_info(cmd, SENSE_LBA_OUT_OF_RANGE, lba > nblocks ? lba : nblocks);
            return false;
        }
        total += nblk;
        if (total > SBC_MAX_UNMAP_LBAS_BYTES >> cmd->lu->block_shift) {
            scsi_fail(cmd, SENSE_INVALID_FIELD_IN_PARAMETERS,
                      FIELD_BYTE(UNMAP_HEADER + i * UNMAP_DESC + 8));
            return false;
        }
    }
    return true;
}

void
sbc_unmap(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    if (cmd->alloc_len == 0) {
        scsi_good(cmd);
        return;
    }
    if (cmd->alloc_len < UNMAP_HEADER) {
        scsi_fail(cmd, SENSE_PARAMETER_LIST_LENGTH, NO_FIELD);
        return;
    }
    /* descriptors that the list cuts short are ignored (SBC-3 5.28.2) */
    uint32_t bytes = get_be16(cmd->data + 2);
    if (bytes > cmd->alloc_len - UNMAP_HEADER)
        bytes = cmd->alloc_len - UNMAP_HEADER;
    cmd->scratch[DESC] = 0;
    cmd->scratch[DESC_N] = bytes / UNMAP_DESC;
    if (!unmap_list_ok(cmd))
        return;
    cmd->scratch[OP] = IO_DISCARD;
    cmd->scratch[STEP_MAX] = discard_step(cmd);
    cmd->pos = cmd->end = 0;
    run(cmd);
}

/* --- WRITE SAME
 * ----------------------------------------------------------------------------------- */

enum { WS_NDOB = 0x01, WS_UNMAP = 0x08 };

static bool
all_zero(const uint8_t *p, uint32_t n)
{
    return p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static void
ws_zero(struct scsi_cmd *cmd)
{
    bool unmap = (cmd->cdb[1] & WS_UNMAP) != 0;

    cmd->scratch[OP] = unmap ? IO_DISCARD : IO_ZERO;
    cmd->scratch[STEP_MAX] = unmap ? discard_step(cmd) : ZERO_STEP;
    run(cmd);
}

/* The block is in cmd->data.  UNMAP=1 deallocates only what reads back as the block would
 * (SBC-3 4.7.3.4): zeros; another pattern is written. */
static void
ws_block(struct scsi_cmd *cmd)
{
    uint32_t size = cmd->lu->block_size;

    if (all_zero(cmd->data, size)) {
        ws_zero(cmd);
        return;
    }
    uint64_t len = cmd->end - cmd->pos;
    uint32_t fill = len < cmd->scratch[STEP_MAX] ? (uint32_t)len : cmd->scratch[STEP_MAX];
    for (uint32_t off = size; off < fill; off += size)
        memcpy(cmd->data + off, cmd->data, size);
    run(cmd);
}

static void
ws_pull(struct scsi_cmd *cmd)
{
    scsi_pull(cmd, 0, cmd->lu->block_size, ws_block);
}

void
sbc_write_same(struct scsi_cmd *cmd)
{
    struct be_info info;

    worker_assert_owner(cmd->w);
    bool no_data = cmd->op->cdb_len == 16 && (cmd->cdb[1] & WS_NDOB) != 0;

    if (cmd->nblk == 0 /* WSNZ=1 */ ||
        cmd->nblk > SBC_MAX_WRITE_SAME_BYTES >> cmd->lu->block_shift) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD_BYTE(cmd->op->nblk.off));
        return;
    }
    cmd->scratch[DESC] = cmd->scratch[DESC_N] = 0;
    cmd->pos = sbc_bytes(cmd, cmd->lba);
    cmd->end = cmd->pos + sbc_bytes(cmd, cmd->nblk);
    if (no_data) {
        ws_zero(cmd);
        return;
    }
    /* exactly one block: whoever sends another amount has another block size in mind */
    if (cmd->exp_out != cmd->lu->block_size) {
        scsi_fail(cmd, SENSE_INVALID_IU_FIELD, NO_FIELD);
        return;
    }
    be_info(cmd->lu->be, &info);
    uint64_t bytes = cmd->end - cmd->pos;
    cmd->scratch[OP] = IO_WRITE;
    cmd->scratch[STEP_MAX] = sbc_io_window(&info, UINT64_MAX, PATTERN_BYTES);
    uint32_t len = bytes < cmd->scratch[STEP_MAX] ? (uint32_t)bytes : cmd->scratch[STEP_MAX];
    if (scsi_buffer(cmd, len, ws_pull))
        ws_pull(cmd);
}

/* --- GET LBA STATUS
 * ------------------------------------------------------------------------------- */

struct status_list {
    struct wcur w;
    uint32_t left; /* descriptors that may still be written */
    uint64_t lba;  /* a run not yet written */
    uint64_t nblk;
    bool mapped;
};

static void
status_flush(struct status_list *l)
{
    while (l->nblk != 0 && l->left != 0) {
        uint32_t n = l->nblk < UINT32_MAX ? (uint32_t)l->nblk : UINT32_MAX;
        wcur_be64(&l->w, l->lba);
        wcur_be32(&l->w, n);
        wcur_u8(&l->w, l->mapped ? 0 : 1); /* PROVISIONING STATUS: mapped, deallocated */
        wcur_zero(&l->w, 3);
        l->lba += n;
        l->nblk -= n;
        l->left--;
    }
}

static void
status_add(struct status_list *l, uint64_t lba, uint64_t nblk, bool mapped)
{
    if (nblk == 0)
        return;
    if (l->nblk != 0 && l->mapped == mapped) {
        l->nblk += nblk;
        return;
    }
    status_flush(l);
    l->lba = lba;
    l->nblk = nblk;
    l->mapped = mapped;
}

/* Bytes become blocks: a block counts as deallocated when all of it is. */
static void
status_extents(struct status_list *l, const struct io *io, uint64_t lba, uint32_t block_size)
{
    uint64_t off = 0, end = io->len / block_size, done = 0; /* blocks from lba, but off: bytes */

    for (unsigned i = 0; i < io->ext_n; i++) {
        uint64_t first = (off + block_size - 1) / block_size;
        off += io->ext[i].len;
        uint64_t past = off / block_size < end ? off / block_size : end;
        if (io->ext[i].mapped || past <= first)
            continue;
        status_add(l, lba + done, first - done, true);
        status_add(l, lba + first, past - first, false);
        done = past;
    }
    uint64_t past = off / block_size < end ? off / block_size : end;
    if (past > done)
        status_add(l, lba + done, past - done, true);
    else if (done == 0) /* nothing was learned: mapped is always true to say */
        status_add(l, lba, 1, true);
}

static uint32_t
status_descriptors(const struct scsi_cmd *cmd)
{
    uint32_t n = 1;

    if (cmd->alloc_len > STATUS_HEADER + STATUS_DESC)
        n = (cmd->alloc_len - STATUS_HEADER) / STATUS_DESC;
    return n < EXTENTS_MAX ? n : EXTENTS_MAX;
}

static struct status_list
status_begin(struct scsi_cmd *cmd)
{
    struct status_list l = {
        .w = wcur_init(cmd->data, BUF_MIN),
        .left = status_descriptors(cmd),
    };
    wcur_zero(&l.w, STATUS_HEADER);
    return l;
}

static void
status_end(struct scsi_cmd *cmd, struct status_list *l)
{
    status_flush(l);
    put_be32(cmd->data, (uint32_t)l->w.len - 4);
    scsi_data_in(cmd, (uint32_t)l->w.len);
}

static void
on_mapped(struct scsi_cmd *cmd)
{
    if (sbc_io_failed(cmd))
        return;
    struct status_list l = status_begin(cmd);
    status_extents(&l, &cmd->io, cmd->lba, cmd->lu->block_size);
    status_end(cmd, &l);
}

static void
gls_ask(struct scsi_cmd *cmd)
{
    struct be_info info;
    uint64_t nblk = lun_nblocks(cmd->lu) - cmd->lba;

    be_info(cmd->lu->be, &info);
    if (!lun_is_thin(cmd->lu) ||
        (info.caps & BE_CAP_MAP) == 0) { /* fully provisioned, or unknown */
        struct status_list l = status_begin(cmd);
        status_add(&l, cmd->lba, nblk, true);
        status_end(cmd, &l);
        return;
    }
    cmd->io.ext = (struct io_extent *)(void *)(cmd->data + BUF_MIN);
    cmd->io.ext_max = EXTENTS_MAX;
    cmd->io.ext_n = 0;
    sbc_io_run(cmd, IO_MAP, 0, sbc_bytes(cmd, cmd->lba), sbc_bytes(cmd, nblk), NULL, on_mapped);
}

void
sbc_get_lba_status(struct scsi_cmd *cmd)
{
    _Static_assert(STATUS_HEADER + EXTENTS_MAX * STATUS_DESC <= BUF_MIN, "reply fits its part");
    _Static_assert(EXTENTS_MAX * sizeof(struct io_extent) <= BUF_MIN, "extents fit their part");

    worker_assert_owner(cmd->w);
    if (scsi_buffer(cmd, 2 * BUF_MIN, gls_ask))
        gls_ask(cmd);
}
