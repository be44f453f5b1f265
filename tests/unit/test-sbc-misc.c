/* SPDX-License-Identifier: BSD-2-Clause */
/* READ CAPACITY, SYNCHRONIZE CACHE, PRE-FETCH, START STOP UNIT. Expected values from SBC-3. */
#include "tests/unit/sbc_cdb.h"
#include "tests/unit/sbc_file.h"
#include "tests/unit/sbc_spy.h"
#include "tests/unit/scsi_fake.h"
#include "tests/unit/unit.h"

#define MIB   (1024u * 1024u)
#define STORE (32ull * MIB)

static uint8_t in[64];

static void
open_opts(struct fake *f, struct fake_opts o)
{
    spy_reset();
    o.type = "fileio";
    o.path = sbc_file(STORE);
    fake_open(f, &o);
    spy_reset();
}

static void
shut(struct fake *f)
{
    spy_reset();
    CU_ASSERT_EQUAL(atomic_load(&f->budget.used), 0);
    fake_close(f);
    unlink(sbc_path);
}

static void
cmd6(struct fake *f, struct fcmd *c, uint8_t opcode, uint8_t byte1, uint8_t byte4)
{
    fake_run(f, c, CDB(opcode, byte1, 0, 0, byte4, 0), NULL, 0, NULL, 0);
    fake_release(c);
}

/* --- READ CAPACITY
 * -------------------------------------------------------------------------------- */

static void
capacity(struct fake *f, struct fcmd *c, bool long_form, uint32_t alloc)
{
    memset(in, 0xcc, sizeof in);
    if (long_form) {
        fake_run(f, c, CDB(0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (uint8_t)alloc, 0, 0), in,
                 alloc, NULL, 0);
    } else {
        fake_run(f, c, CDB(0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0), in, alloc, NULL, 0);
    }
    fake_release(c);
}

static void
test_capacity(void)
{
    static const struct {
        uint64_t blocks;
        uint32_t bs, in10;
    } units[] = {
        {1, 512, 0},
        {0x10000, 4096, 0xffff},
        {0xffffffff, 512, 0xfffffffe},
        {0x100000000, 512, 0xffffffff}, /* "use the long form" */
        {0x100000001, 4096, 0xffffffff},
    };

    for (unsigned i = 0; i < 5; i++) {
        struct fake f;
        struct fcmd c;
        spy_reset();
        fake_open(&f, &(struct fake_opts){.type = "null",
                                          .null_size = units[i].blocks * units[i].bs,
                                          .block_size = units[i].bs});
        capacity(&f, &c, false, 8);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT_EQUAL(c.in_len, 8);
        CU_ASSERT_EQUAL(c.c.xfer_in, 8);
        CU_ASSERT_EQUAL(get_be32(in), units[i].in10);
        CU_ASSERT_EQUAL(get_be32(in + 4), units[i].bs);
        capacity(&f, &c, true, 32);
        CU_ASSERT_EQUAL(c.in_len, 32);
        CU_ASSERT_EQUAL(get_be64(in), units[i].blocks - 1);
        CU_ASSERT_EQUAL(get_be32(in + 8), units[i].bs);
        for (unsigned k = 12; k < 32; k++)
            CU_ASSERT_EQUAL(in[k], 0);
        for (uint32_t alloc = 0; alloc < 32; alloc++) {
            capacity(&f, &c, true, alloc);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT_EQUAL(c.in_len, alloc);
            CU_ASSERT_EQUAL(in[alloc], 0xcc);
        }
        capacity(&f, &c, false, 3); /* the initiator expects less */
        CU_ASSERT_EQUAL(c.in_len, 3);
        CU_ASSERT_EQUAL(c.c.xfer_in, 8);
        fake_close(&f);
    }
}

static void
test_capacity_flags(void)
{
    struct fake f;
    struct fcmd c;

    open_opts(&f, (struct fake_opts){.thin = true, .lbppbe = 3});
    capacity(&f, &c, true, 32);
    CU_ASSERT_EQUAL(in[12], 0);
    CU_ASSERT_EQUAL(in[13], 3);                 /* 8 logical blocks a physical one */
    CU_ASSERT_EQUAL(get_be16(in + 14), 0xc000); /* LBPME, LBPRZ, lowest aligned LBA 0 */
    /* PMI (SBC-2): an LBA needs it */
    fake_run(&f, &c, CDB(0x25, 0, 0, 0, 0, 9, 0, 0, 1, 0), in, 8, NULL, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(get_be32(in), STORE / 512 - 1);
    fake_release(&c);
    fake_run(&f, &c, CDB(0x25, 0, 0, 0, 0, 9, 0, 0, 0, 0), in, 8, NULL, 0);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    fake_release(&c);
    fake_run(&f, &c, CDB(0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 32, 1, 0), in, 32, NULL, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(get_be64(in), STORE / 512 - 1);
    fake_release(&c);
    fake_run(&f, &c, CDB(0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 32, 0, 0), in, 32, NULL, 0);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    fake_release(&c);
    shut(&f);
}

/* --- SYNCHRONIZE CACHE
 * ------------------------------------------------------------------------------- */

static void
flush(struct fake *f, struct fcmd *c, uint8_t opcode, uint8_t byte1, uint64_t lba, uint32_t nblk)
{
    struct cdb d = cdb_block(opcode, byte1, lba, nblk);
    fake_run(f, c, d.b, d.len, NULL, 0, NULL, 0);
    fake_release(c);
}

static void
test_sync(void)
{
    static const uint8_t ops[] = {0x35, 0x91};
    struct fake f;
    struct fcmd c;
    uint64_t n = STORE / 512;

    open_opts(&f, (struct fake_opts){.thin = false});
    for (unsigned i = 0; i < 2; i++) {
        spy_reset();
        flush(&f, &c, ops[i], 0, 0, 0);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT_EQUAL(spy_n, 1);
        CU_ASSERT_EQUAL(spy_log[0].op, IO_FLUSH);
        flush(&f, &c, ops[i], 4, 100, 20); /* SYNC_NV */
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        flush(&f, &c, ops[i], 0, n, 0);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        flush(&f, &c, ops[i], 0, n, 1);
        CU_ASSERT(fake_failed(&c, 5, 0x2100));
        flush(&f, &c, ops[i], 0, n + 1, 0);
        CU_ASSERT(fake_failed(&c, 5, 0x2100));
        CU_ASSERT_EQUAL(spy_n, 3);
        spy_spoil(IO_FLUSH, 0, -EIO);
        flush(&f, &c, ops[i], 0, 0, 0);
        CU_ASSERT(fake_failed(&c, 3, 0x0c00));
    }
    shut(&f);
}

/* IMMED: GOOD while the flush still runs; a flush that fails is told by the next one. */
static void
test_sync_immed(void)
{
    struct fake f;
    struct fcmd c;

    open_opts(&f, (struct fake_opts){.layers = "error:op=flush,count=1"});
    spy_hold.op = IO_FLUSH;
    flush(&f, &c, 0x91, 0x02, 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_PTR_NOT_NULL_FATAL(spy_hold.io);
    spy_let_go();
    while (atomic_load(&f.lun->background) != 0)
        worker_turn(f.w, true);
    CU_ASSERT(be_flush_failed(f.be));
    flush(&f, &c, 0x91, 0, 0, 0);
    CU_ASSERT(fake_failed(&c, 3, 0x0c00));
    flush(&f, &c, 0x35, 0, 0, 0); /* and by every later one */
    CU_ASSERT(fake_failed(&c, 3, 0x0c00));
    uint8_t block[512] = {0};
    struct cdb d = cdb_block(0x2a, 0x08, 0, 1);
    fake_run(&f, &c, d.b, d.len, NULL, 0, block, 512);
    CU_ASSERT_EQUAL(c.c.status, SAM_CHECK);
    fake_release(&c);
    be_clear_flush_error(f.be);
    flush(&f, &c, 0x35, 0, 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    shut(&f);
}

/* Many IMMED flushes at once: what does not fit the bound is done before its status. */
static void
test_sync_flood(void)
{
    enum { N = 40 };
    static struct fcmd c[N];
    struct fake f;
    struct cdb d = cdb_block(0x91, 0x02, 0, 0);

    open_opts(&f, (struct fake_opts){.thin = false});
    for (unsigned i = 0; i < N; i++) {
        fake_init(&f, &c[i], d.b, d.len, NULL, 0, NULL, 0);
        fake_submit(&c[i]);
        CU_ASSERT(atomic_load(&f.lun->background) <= 4);
    }
    for (unsigned i = 0; i < N; i++) {
        fake_wait(&f, &c[i]);
        CU_ASSERT_EQUAL(c[i].c.status, SAM_GOOD);
        fake_release(&c[i]);
    }
    CU_ASSERT_EQUAL(spy_count(IO_FLUSH), N);
    while (atomic_load(&f.lun->background) != 0)
        worker_turn(f.w, true);
    shut(&f);
}

/* --- PRE-FETCH
 * --------------------------------------------------------------------------------------- */

static void
test_prefetch(void)
{
    static const uint8_t ops[] = {0x34, 0x90};
    struct fake f;
    struct fcmd c;
    uint64_t n = STORE / 512;

    open_opts(&f, (struct fake_opts){.thin = false});
    uint64_t mem = atomic_load(&worker_budget(f.w)->used);
    for (unsigned i = 0; i < 2; i++) {
        for (uint8_t immed = 0; immed < 4; immed += 2) {
            spy_reset();
            flush(&f, &c, ops[i], immed, 10, 1000);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            while (atomic_load(&f.lun->background) != 0)
                worker_turn(f.w, true);
            uint64_t next = 10 * 512;
            for (unsigned k = 0; k < spy_n; k++) {
                CU_ASSERT_EQUAL(spy_log[k].op, IO_READ);
                CU_ASSERT_EQUAL(spy_log[k].offset, next);
                next += spy_log[k].len;
            }
            CU_ASSERT_EQUAL(next, 1010 * 512);
            flush(&f, &c, ops[i], immed, n - 1, 1);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            flush(&f, &c, ops[i], immed, n - 3, 0); /* 0: to the end */
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            flush(&f, &c, ops[i], immed, n, 0); /* nothing left */
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            flush(&f, &c, ops[i], immed, 0, 0); /* all: no more than is worth it */
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            while (atomic_load(&f.lun->background) != 0)
                worker_turn(f.w, true);
            flush(&f, &c, ops[i], immed, n, 1);
            CU_ASSERT(fake_failed(&c, 5, 0x2100));
            flush(&f, &c, ops[i], immed, n + 1, 0);
            CU_ASSERT(fake_failed(&c, 5, 0x2100));
        }
        struct cdb d = cdb_block(ops[i], 0, 0, 1); /* a group number is no error */
        d.b[i == 0 ? 6 : 14] = 3;
        fake_run(&f, &c, d.b, d.len, NULL, 0, NULL, 0);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        fake_release(&c);
        spy_spoil(IO_READ, 20 * 512, -EIO);
        flush(&f, &c, ops[i], 0, 10, 1000);
        CU_ASSERT(fake_failed(&c, 3, 0x1100));
        CU_ASSERT_EQUAL(fake_sense(&c).info, 20);
        flush(&f, &c, ops[i], 2, 10, 1000);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        while (atomic_load(&f.lun->background) != 0)
            worker_turn(f.w, true);
    }
    CU_ASSERT_EQUAL(atomic_load(&worker_budget(f.w)->used), mem);
    shut(&f);
}

/* --- START STOP UNIT
 * ----------------------------------------------------------------------------------- */

static bool
is_ready(struct fake *f)
{
    struct fcmd c;

    cmd6(f, &c, 0x00, 0, 0);
    if (c.c.status == SAM_CHECK && fake_sense(&c).key == 6) /* a unit attention comes first */
        cmd6(f, &c, 0x00, 0, 0);
    return c.c.status == SAM_GOOD;
}

static void
test_stop(void)
{
    struct fake f;
    struct fcmd c;
    static uint8_t block[512];
    struct cdb w = cdb_block(0x2a, 0, 0, 1);

    open_opts(&f, (struct fake_opts){.thin = false});
    for (uint8_t immed = 0; immed < 2; immed++) {
        for (uint8_t no_flush = 0; no_flush < 8; no_flush += 4) {
            spy_reset();
            cmd6(&f, &c, 0x1b, immed, no_flush);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT_EQUAL(spy_count(IO_FLUSH), no_flush ? 0 : 1);
            cmd6(&f, &c, 0x00, 0, 0);
            CU_ASSERT(fake_failed(&c, 2, 0x0402)); /* initializing command required */
            fake_run(&f, &c, w.b, w.len, NULL, 0, block, 512);
            CU_ASSERT(fake_failed(&c, 2, 0x0402));
            fake_release(&c);
            cmd6(&f, &c, 0x1b, immed, 1);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT(is_ready(&f));
        }
    }
    /* the cache cannot be written: it does not stop */
    spy_spoil(IO_FLUSH, 0, -EIO);
    cmd6(&f, &c, 0x1b, 0, 0);
    CU_ASSERT(fake_failed(&c, 3, 0x0c00));
    CU_ASSERT(is_ready(&f));
    /* nothing to eject */
    cmd6(&f, &c, 0x1b, 0, 2);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    CU_ASSERT_EQUAL(fake_sense(&c).byte, 4);
    CU_ASSERT_EQUAL(fake_sense(&c).bit, 1);
    cmd6(&f, &c, 0x1b, 0, 3);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    CU_ASSERT(is_ready(&f));
    shut(&f);
}

static void
test_eject(void)
{
    struct fake f;
    struct fcmd c;

    open_opts(&f, (struct fake_opts){.removable = true});
    for (uint8_t immed = 0; immed < 2; immed++) {
        cmd6(&f, &c, 0x1b, immed, 0); /* without LOEJ the medium stays in */
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT(is_ready(&f));
        cmd6(&f, &c, 0x1b, immed, 1);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        cmd6(&f, &c, 0x1e, 0, 1); /* PREVENT */
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        cmd6(&f, &c, 0x1b, immed, 2);
        CU_ASSERT(fake_failed(&c, 5, 0x5302));
        CU_ASSERT(is_ready(&f));
        cmd6(&f, &c, 0x1e, 0, 0); /* ALLOW */
        cmd6(&f, &c, 0x1b, immed, 2);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        cmd6(&f, &c, 0x00, 0, 0);
        CU_ASSERT_EQUAL(c.c.status, SAM_CHECK);
        CU_ASSERT_EQUAL(fake_sense(&c).key, 2);
        CU_ASSERT_EQUAL(fake_sense(&c).asc >> 8, 0x3a);
        cmd6(&f, &c, 0x1b, immed, 1); /* START without LOEJ loads nothing */
        CU_ASSERT_EQUAL(c.c.status, SAM_CHECK);
        CU_ASSERT_EQUAL(fake_sense(&c).asc >> 8, 0x3a);
        cmd6(&f, &c, 0x1e, 0, 1); /* nor may it be loaded while that is prevented */
        cmd6(&f, &c, 0x1b, immed, 3);
        CU_ASSERT(fake_failed(&c, 5, 0x5302));
        cmd6(&f, &c, 0x1e, 0, 0);
        cmd6(&f, &c, 0x1b, immed, 3);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT(is_ready(&f));
    }
    /* power conditions eject nothing, whatever LOEJ and START say */
    for (unsigned pc = 1; pc < 16; pc++) {
        cmd6(&f, &c, 0x1b, 1, (uint8_t)(pc << 4 | 2));
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT(is_ready(&f));
    }
    while (atomic_load(&f.lun->background) != 0)
        worker_turn(f.w, true);
    shut(&f);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"READ CAPACITY", test_capacity},
        {"READ CAPACITY(16) flags", test_capacity_flags},
        {"SYNCHRONIZE CACHE", test_sync},
        {"SYNCHRONIZE CACHE, IMMED", test_sync_immed},
        {"SYNCHRONIZE CACHE, many IMMED", test_sync_flood},
        {"PRE-FETCH", test_prefetch},
        {"START STOP UNIT", test_stop},
        {"START STOP UNIT, removable", test_eject},
    };

    alarm(120);
    return UNIT_RUN("sbc-misc", tests);
}
