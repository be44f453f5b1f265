/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transport without a network for the tests of scsi/: one worker in the calling thread, one
 * session, one unit as LUN 0 on a backend of the test's choice.
 *
 *     struct fake f;
 *     fake_open(&f, &(struct fake_opts){.type = "null", .null_size = 1 << 20});
 *     struct fcmd c;
 *     fake_run(&f, &c, CDB(0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0), in, 8, NULL, 0);
 *     CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
 *     fake_release(&c);
 *     fake_close(&f);
 *
 * What the room must never do is asserted here: windows beyond what was expected, data-in out of
 * order, done twice or inside scsi_submit.
 */
#ifndef TESTS_UNIT_SCSI_FAKE_H
#define TESTS_UNIT_SCSI_FAKE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <CUnit/CUnit.h>

#include "base/helper.h"
#include "base/worker.h"
#include "scsi/priv.h"

struct fake_opts {
    const char *type, *path, *layers, *bsopts;
    uint32_t block_size; /* 0: 512 */
    uint64_t null_size;
    bool thin, removable, no_cache, read_only, direct, keep_ua;
    uint8_t lbppbe;
    uint64_t budget;         /* bytes; 0: 64 MiB */
    enum disk_engine engine; /* ENGINE_AUTO */
    struct backend *backend; /* taken over instead of type, path, ...; opened already */
};

struct fake {
    struct worker *w;
    struct budget budget;
    struct backend *be;
    struct lun *lun;
    struct lun_map *map;
    struct itn *itn;
};

struct fcmd {
    struct scsi_cmd c; /* first */
    const uint8_t *out;
    uint8_t *in;
    uint32_t in_len; /* bytes that came */
    bool now;        /* pull answers at once */
    bool hold;       /* answers to pull and push wait for fake_continue */
    int pull_err;    /* the data phase fails with this ... */
    uint16_t pull_asc;
    bool submitting, done;
    bool owes_pull, owes_push;
    unsigned pulls, pushes;
    uint32_t max_window;
    struct deferred later;
};

/* CDB bytes and their number. */
#define CDB(...) ((const uint8_t[]){__VA_ARGS__}), sizeof((const uint8_t[]){__VA_ARGS__})

static inline void
fake_continue(struct fcmd *f)
{
    if (f->owes_pull) {
        f->owes_pull = false;
        if (f->pull_err == 0)
            memcpy(f->c.data, f->out + f->c.win_off, f->c.win_len);
        scsi_pulled(&f->c, f->pull_err, f->pull_asc);
    } else if (f->owes_push) {
        f->owes_push = false;
        memcpy(f->in + f->c.win_off, f->c.data, f->c.win_len);
        if (!f->c.lent)
            memset(f->c.data, 0xee, f->c.win_len); /* the window is the room's again */
        scsi_pushed(&f->c);
    }
}

static inline void
fake_on_later(struct deferred *d)
{
    struct fcmd *f = container_of(d, struct fcmd, later);
    if (!f->done && !f->hold)
        fake_continue(f);
}

static inline bool
fake_pull(struct scsi_cmd *cmd)
{
    struct fcmd *f = (struct fcmd *)(void *)cmd;

    f->pulls++;
    if (cmd->win_len > f->max_window)
        f->max_window = cmd->win_len;
    CU_ASSERT_FATAL(!f->done && cmd->win_len != 0);
    CU_ASSERT_FATAL((uint64_t)cmd->win_off + cmd->win_len <= cmd->exp_out);
    if (f->now && f->pull_err == 0) {
        memcpy(cmd->data, f->out + cmd->win_off, cmd->win_len);
        return true;
    }
    f->owes_pull = true;
    worker_defer(cmd->w, &f->later);
    return false;
}

static inline void
fake_push(struct scsi_cmd *cmd)
{
    struct fcmd *f = (struct fcmd *)(void *)cmd;

    f->pushes++;
    if (cmd->win_len > f->max_window)
        f->max_window = cmd->win_len;
    CU_ASSERT_FATAL(!f->done && cmd->win_len != 0);
    CU_ASSERT_FATAL((uint64_t)cmd->win_off + cmd->win_len <= cmd->exp_in);
    CU_ASSERT_EQUAL_FATAL(cmd->win_off, f->in_len);
    f->in_len += cmd->win_len;
    f->owes_push = true;
    worker_defer(cmd->w, &f->later);
}

static inline void
fake_done(struct scsi_cmd *cmd)
{
    struct fcmd *f = (struct fcmd *)(void *)cmd;

    CU_ASSERT_FATAL(!f->done && !f->submitting);
    f->done = true;
    deferred_cancel(&f->later);
    if (cmd->aborted || cmd->win_len == 0 || cmd->op == NULL || cmd->op->dir != DIR_IN)
        return;
    CU_ASSERT_FATAL((uint64_t)cmd->win_off + cmd->win_len <= cmd->exp_in);
    CU_ASSERT_EQUAL_FATAL(cmd->win_off, f->in_len);
    memcpy(f->in + cmd->win_off, cmd->data, cmd->win_len);
    f->in_len += cmd->win_len;
}

static const struct scsi_xport fake_xport = {fake_pull, fake_push, fake_done, NULL, NULL};

/* Prepares a command for LUN 0; the caller may change c.attr, c.lun, now, hold, ... */
static inline void
fake_init(struct fake *f, struct fcmd *c, const uint8_t *cdb, size_t cdb_len, void *in,
          uint32_t exp_in, const void *out, uint32_t exp_out)
{
    memset(c, 0, sizeof *c);
    c->c.itn = f->itn;
    c->c.w = f->w;
    c->c.xport = &fake_xport;
    memcpy(c->c.cdb_inline, cdb, cdb_len < SCSI_CDB_INLINE ? cdb_len : SCSI_CDB_INLINE);
    c->c.cdb = c->c.cdb_inline;
    c->c.cdb_len = SCSI_CDB_INLINE;
    c->c.attr = ATTR_SIMPLE;
    c->c.exp_in = exp_in;
    c->c.exp_out = exp_out;
    c->in = in;
    c->out = out;
    deferred_init(&c->later, fake_on_later);
}

static inline void
fake_submit(struct fcmd *c)
{
    c->submitting = true;
    scsi_submit(&c->c);
    c->submitting = false;
}

static inline void
fake_wait(struct fake *f, struct fcmd *c)
{
    while (!c->done)
        worker_turn(f->w, true);
}

static inline void
fake_release(struct fcmd *c)
{
    scsi_release(&c->c);
}

static inline void
fake_run(struct fake *f, struct fcmd *c, const uint8_t *cdb, size_t cdb_len, void *in,
         uint32_t exp_in, const void *out, uint32_t exp_out)
{
    fake_init(f, c, cdb, cdb_len, in, exp_in, out, exp_out);
    fake_submit(c);
    fake_wait(f, c);
}

/* --- sense ------------------------------------------------------------------------------------ */

struct fake_sense {
    uint8_t key;
    uint16_t asc; /* additional sense code << 8 | qualifier */
    bool has_info, has_field, in_cdb;
    uint64_t info;
    uint16_t byte;
    int bit; /* -1: none */
};

/* Fixed format, SPC-4 4.5.3. */
static inline struct fake_sense
fake_sense(const struct fcmd *c)
{
    const uint8_t *s = c->c.sense;
    struct fake_sense r = {.bit = -1};

    CU_ASSERT_EQUAL_FATAL(c->c.status, SAM_CHECK);
    CU_ASSERT_FATAL(c->c.sense_len >= 18 && (s[0] & 0x7f) == 0x70);
    r.key = s[2] & 0x0f;
    r.asc = get_be16(s + 12);
    r.has_info = (s[0] & 0x80) != 0;
    r.info = get_be32(s + 3);
    r.has_field = (s[15] & 0x80) != 0;
    r.in_cdb = (s[15] & 0x40) != 0;
    r.byte = get_be16(s + 16);
    if ((s[15] & 0x08) != 0)
        r.bit = s[15] & 7;
    return r;
}

/* True when the command ended with this key and code (fixed format). */
static inline bool
fake_failed(const struct fcmd *c, uint8_t key, uint16_t asc)
{
    if (c->c.status != SAM_CHECK)
        return false;
    struct fake_sense s = fake_sense(c);
    if (s.key != key || s.asc != asc)
        fprintf(stderr, "sense %02x/%04x, wanted %02x/%04x\n", s.key, s.asc, key, asc);
    return s.key == key && s.asc == asc;
}

/* --- a session with one unit -------------------------------------------------------------------
 */

static inline void
fake_open(struct fake *f, const struct fake_opts *o)
{
    static bool pool;
    char err[256] = "";
    uint32_t block_size = o->block_size != 0 ? o->block_size : 512;

    memset(f, 0, sizeof *f);
    if (!pool) {
        CU_ASSERT_EQUAL_FATAL(helper_pool_start(1, 4), 0);
        pool = true;
    }
    f->w = worker_new_local(&(struct worker_opts){.engine = o->engine});
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->w);
    budget_init(&f->budget, worker_budget(f->w), f->w,
                o->budget != 0 ? o->budget : 64ull * 1024 * 1024);
    f->be = o->backend;
    if (f->be == NULL) {
        struct be_opts bo = {
            .type = o->type,
            .path = o->path,
            .block_size = block_size,
            .read_only = o->read_only,
            .direct = o->direct,
            .write_cache = !o->no_cache,
            .null_size = o->null_size,
            .bsopts = o->bsopts,
            .layers = o->layers,
        };
        f->be = be_new(&bo, err, sizeof err);
        if (f->be == NULL)
            fprintf(stderr, "be_new: %s\n", err);
        CU_ASSERT_PTR_NOT_NULL_FATAL(f->be);
        int rc = be_open(f->be);
        if (rc != 0)
            fprintf(stderr, "be_open: %d %s\n", rc, be_error(f->be));
        CU_ASSERT_EQUAL_FATAL(rc, 0);
    }
    struct lun_conf conf = {
        .vendor_id = "EVTGT",
        .product_id = "VIRTUAL-DISK",
        .product_rev = "0001",
        .block_size = block_size,
        .lbppbe = o->lbppbe,
        .rotation_rate = 1,
        .thin = o->thin,
        .read_only = o->read_only,
        .removable = o->removable,
        .write_cache = !o->no_cache,
        .online = true,
    };
    static const uint8_t seed[32] = {1};
    lun_ident_default(&conf.ident, seed, be_identity(f->be));
    f->lun = lun_new(&conf, be_get(f->be), err, sizeof err);
    if (f->lun == NULL)
        fprintf(stderr, "lun_new: %s\n", err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->lun);
    f->map = lun_map_new(&(struct lun_map_entry){0, f->lun}, 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->map);
    struct itn_params p = {
        .initiator_name = "iqn.2026-01.example:initiator",
        .isid = {0x40, 0, 0, 0, 0, 1},
        .target_name = "iqn.2026-01.example:target",
        .tpgt = 1,
        .budget = &f->budget,
        .map = f->map,
    };
    f->itn = itn_new(f->w, &p);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->itn);
    while (!o->keep_ua) { /* POWER ON and whatever else waits */
        struct fcmd c;
        fake_run(f, &c, CDB(0, 0, 0, 0, 0, 0), NULL, 0, NULL, 0);
        bool good = c.c.status == SAM_GOOD;
        fake_release(&c);
        if (good)
            break;
    }
}

static inline void
fake_close(struct fake *f)
{
    itn_free(f->itn);
    for (int i = 0; i < 8 || be_in_flight(f->be) != 0; i++)
        worker_turn(f->w, be_in_flight(f->be) != 0);
    lun_map_put(f->map);
    lun_put(f->lun);
    be_close(f->be);
    be_put(f->be);
    budget_fini(&f->budget);
    worker_free_local(f->w);
}

#endif
