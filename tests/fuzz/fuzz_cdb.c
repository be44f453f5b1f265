/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: CDBs with their parameter data against a logical unit on a small file.
 * Input: one byte of flags, then commands: lun byte, attribute byte, 16 bytes of CDB, two bytes
 * expected data-in / 256, two bytes length of data-out, the data-out (what is left when short).
 * Every command must end exactly once; nothing may be written beyond what was expected.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cur.h"
#include "base/helper.h"
#include "base/log.h"
#include "base/worker.h"
#include "scsi/scsi.h"

#define STORE_BYTES (1u << 20)
#define OUT_MAX 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct fuzz_cmd {
    struct scsi_cmd c; /* first */
    uint8_t out[OUT_MAX];
    uint32_t out_len;
    bool done, owes_pull, owes_push;
    struct deferred later;
};

static struct worker *w;
static struct budget budget;
static struct lun_map *map;
static struct lun *lun;

static void
on_later(struct deferred *d)
{
    struct fuzz_cmd *f = container_of(d, struct fuzz_cmd, later);
    if (f->owes_pull) {
        f->owes_pull = false;
        for (uint32_t i = 0; i < f->c.win_len; i++)
            f->c.data[i] = f->c.win_off + i < f->out_len ? f->out[f->c.win_off + i] : 0;
        scsi_pulled(&f->c, 0, 0);
    } else if (f->owes_push) {
        f->owes_push = false;
        scsi_pushed(&f->c);
    }
}

static bool
fuzz_pull(struct scsi_cmd *cmd)
{
    struct fuzz_cmd *f = (struct fuzz_cmd *)(void *)cmd;
    if (f->done || (uint64_t)cmd->win_off + cmd->win_len > cmd->exp_out)
        abort();
    f->owes_pull = true;
    worker_defer(w, &f->later);
    return false;
}

static void
fuzz_push(struct scsi_cmd *cmd)
{
    struct fuzz_cmd *f = (struct fuzz_cmd *)(void *)cmd;
    if (f->done || (uint64_t)cmd->win_off + cmd->win_len > cmd->exp_in)
        abort();
    f->owes_push = true;
    worker_defer(w, &f->later);
}

static void
fuzz_done(struct scsi_cmd *cmd)
{
    struct fuzz_cmd *f = (struct fuzz_cmd *)(void *)cmd;
    volatile uint8_t sum = 0;
    if (f->done || cmd->sense_len > SCSI_SENSE_MAX)
        abort();
    f->done = true;
    if (!cmd->aborted && cmd->exp_in > 0 && cmd->win_len > 0) {
        if ((uint64_t)cmd->win_off + cmd->win_len > cmd->exp_in)
            abort();
        for (uint32_t i = 0; i < cmd->win_len; i++) /* every byte that would be sent exists */
            sum = (uint8_t)(sum + cmd->data[i]);
    }
}

static const struct scsi_xport xport = {fuzz_pull, fuzz_push, fuzz_done};

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    static char path[64];
    char err[200] = "";
    int fd = memfd_create("fuzz", 0);
    if (fd < 0 || ftruncate(fd, STORE_BYTES) != 0)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    helper_pool_start(1, 2);
    w = worker_new_local(&(struct worker_opts){.engine = ENGINE_POOL});
    struct backend *be = be_new(&(struct be_opts){.type = "fileio", .path = path,
                                                  .block_size = 512, .write_cache = true},
                                err, sizeof err);
    if (!w || !be || be_open(be) != 0) {
        fprintf(stderr, "%s %s\n", err, be ? be_error(be) : "");
        abort();
    }
    struct lun_conf conf = {.block_size = 512, .thin = true, .write_cache = true, .online = true};
    static const uint8_t seed[32];
    lun_ident_default(&conf.ident, seed, "fuzz");
    lun = lun_new(&conf, be, err, sizeof err);
    map = lun ? lun_map_new(&(struct lun_map_entry){0, lun}, 1) : NULL;
    if (!map)
        abort();
    budget_init(&budget, NULL, w, 64u << 20);
    return 0;
}

static bool
run_one(struct itn *itn, struct cur *in)
{
    static struct fuzz_cmd f;
    memset(&f, 0, offsetof(struct fuzz_cmd, out));
    f.done = f.owes_pull = f.owes_push = false;
    uint8_t lun_byte = cur_u8(in), attr = cur_u8(in);
    const uint8_t *cdb = cur_take(in, SCSI_CDB_INLINE);
    f.c.exp_in = (uint32_t)cur_be16(in) * 256;
    f.out_len = cur_be16(in);
    if (!cur_ok(in))
        return false;
    memcpy(f.c.cdb_inline, cdb, SCSI_CDB_INLINE);
    uint32_t have = f.out_len < in->left ? f.out_len : (uint32_t)in->left;
    const uint8_t *p = cur_take(in, have);
    if (have > 0)
        memcpy(f.out, p, have);
    if (f.out_len > 0)
        f.c.exp_in = 0;
    f.c.exp_out = f.out_len;
    f.c.itn = itn;
    f.c.w = w;
    f.c.xport = &xport;
    f.c.cdb = f.c.cdb_inline;
    f.c.cdb_len = SCSI_CDB_INLINE;
    f.c.lun[1] = lun_byte & 1;
    if (lun_byte == 0xc1)
        f.c.lun[0] = f.c.lun[1] = 0xc1;
    f.c.attr = attr % 5;
    deferred_init(&f.later, on_later);
    scsi_submit(&f.c);
    if (attr & 0x80)
        scsi_abort(&f.c);
    for (unsigned i = 0; !f.done; i++) {
        worker_turn(w, true);
        if (i > 1000000)
            abort();
    }
    deferred_cancel(&f.later);
    scsi_release(&f.c);
    return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cur in = cur_init(data, size);
    uint8_t flags = cur_u8(&in);
    struct itn *itn = itn_new(w, &(struct itn_params){.initiator_name = "iqn.2026-11.a:fuzz",
                                                      .target_name = "iqn.2026-11.a:t",
                                                      .tpgt = 1, .budget = &budget, .map = map});
    lun_set_online(lun, true);
    unsigned n = 0;
    while (n++ < 16 && run_one(itn, &in))
        if (flags & 1)
            lun_set_online(lun, (n & 3) != 3);
    itn_free(itn);
    worker_turn(w, false);
    return 0;
}
