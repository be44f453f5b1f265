/* SPDX-License-Identifier: BSD-2-Clause */
/* UNMAP, WRITE SAME and GET LBA STATUS. Expected values from SBC-3. */
#include "tests/unit/sbc_cdb.h"
#include "tests/unit/sbc_file.h"
#include "tests/unit/sbc_spy.h"
#include "tests/unit/scsi_fake.h"
#include "tests/unit/unit.h"

#define MIB   (1024u * 1024u)
#define STORE (48ull * MIB)

static uint8_t data[8 * MIB], back[8 * MIB];
static uint8_t list[8 + 300 * 16];
static const uint32_t sizes[] = {512, 4096};

static void
open_file(struct fake *f, uint32_t block_size, bool thin, bool no_cache)
{
    spy_reset();
    fake_open(f, &(struct fake_opts){.type = "fileio",
                                     .path = sbc_file(STORE),
                                     .block_size = block_size,
                                     .no_cache = no_cache,
                                     .thin = thin});
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

/* --- UNMAP --------------------------------------------------------------------------------------
 */

static void
desc(unsigned i, uint64_t lba, uint32_t nblk)
{
    put_be64(list + 8 + 16 * i, lba);
    put_be32(list + 16 + 16 * i, nblk);
    put_be32(list + 20 + 16 * i, 0);
}

/* `bytes` of list, which says it holds `described` bytes of descriptors. */
static void
unmap_raw(struct fake *f, struct fcmd *c, uint8_t byte1, uint16_t described, uint16_t bytes)
{
    uint8_t cdb[10] = {0x42, byte1};

    put_be16(cdb + 7, bytes);
    put_be16(list, (uint16_t)(described + 6));
    put_be16(list + 2, described);
    put_be32(list + 4, 0);
    fake_run(f, c, cdb, 10, NULL, 0, list, bytes);
    fake_release(c);
}

static void
unmap(struct fake *f, struct fcmd *c, unsigned n)
{
    unmap_raw(f, c, 0, (uint16_t)(16 * n), (uint16_t)(8 + 16 * n));
}

static bool
is_zero(const uint8_t *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

/* Down to one block, aligned or not: zeros there, and nothing else touched. */
static void
test_unmap_zeroes(void)
{
    for (unsigned s = 0; s < 2; s++) {
        struct fake f;
        struct fcmd c;
        uint32_t bs = sizes[s];
        open_file(&f, bs, true, false);
        sbc_fill(data, MIB, 1);
        sbc_file_write(0, data, MIB);
        const struct {
            uint64_t lba;
            uint32_t nblk;
        } r[] = {{0, 1}, {3, 1}, {7, 10}, {31, 17}, {60, 64}, {130, 3}};
        for (unsigned i = 0; i < 6; i++)
            desc(i, r[i].lba, r[i].nblk);
        unmap(&f, &c, 6);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        for (unsigned i = 0; i < 6; i++)
            memset(data + r[i].lba * bs, 0, r[i].nblk * bs);
        sbc_file_read(0, back, MIB);
        CU_ASSERT(memcmp(back, data, MIB) == 0);
        shut(&f);
    }
}

/* Space goes back to the file system; a range of many steps. */
static void
test_unmap_frees(void)
{
    struct fake f;
    struct fcmd c;
    struct stat before, after;

    open_file(&f, 512, true, false);
    sbc_fill(data, sizeof data, 2);
    sbc_file_write(8 * MIB, data, sizeof data);
    stat(sbc_path, &before);
    desc(0, 0, (uint32_t)(STORE / 512));
    unmap(&f, &c, 1);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    stat(sbc_path, &after);
    CU_ASSERT(before.st_blocks >= 8 * 2048);
    CU_ASSERT(after.st_blocks < 64);
    CU_ASSERT_EQUAL((uint64_t)after.st_size, STORE);
    sbc_file_read(8 * MIB, back, sizeof back);
    CU_ASSERT(is_zero(back, sizeof back));
    shut(&f);
}

static void
test_unmap_durable(void)
{
    for (unsigned no_cache = 0; no_cache < 2; no_cache++) {
        struct fake f;
        struct fcmd c;
        open_file(&f, 512, true, no_cache != 0);
        desc(0, 8, 8);
        desc(1, 100, 1);
        unmap(&f, &c, 2);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT_EQUAL(spy_n, 2);
        for (unsigned i = 0; i < spy_n; i++) {
            CU_ASSERT_EQUAL(spy_log[i].op, IO_DISCARD);
            CU_ASSERT_EQUAL(spy_log[i].flags, no_cache ? IO_FUA : 0);
        }
        shut(&f);
    }
}

/* Everything is checked before anything is done. */
static void
test_unmap_checks(void)
{
    struct fake f;
    struct fcmd c;
    uint64_t n = STORE / 512;

    open_file(&f, 512, true, false);
    desc(0, 0, 8);
    desc(1, n - 4, 5);
    unmap(&f, &c, 2);
    CU_ASSERT(fake_failed(&c, 5, 0x2100));
    CU_ASSERT(fake_sense(&c).has_info);
    CU_ASSERT_EQUAL(fake_sense(&c).info, n);
    desc(1, UINT64_MAX, 1);
    unmap(&f, &c, 2);
    CU_ASSERT(fake_failed(&c, 5, 0x2100));
    desc(1, UINT64_MAX / 512 + 1, 1);
    unmap(&f, &c, 2);
    CU_ASSERT(fake_failed(&c, 5, 0x2100));
    desc(1, n + 1, 0);
    unmap(&f, &c, 2);
    CU_ASSERT(fake_failed(&c, 5, 0x2100));
    /* limits of VPD B0: 256 descriptors, 2^20 blocks of 512 bytes */
    for (unsigned i = 0; i < 257; i++)
        desc(i, i, 0);
    unmap(&f, &c, 257);
    CU_ASSERT(fake_failed(&c, 5, 0x2600));
    CU_ASSERT(fake_sense(&c).has_field && !fake_sense(&c).in_cdb);
    CU_ASSERT_EQUAL(fake_sense(&c).byte, 2);
    unmap_raw(&f, &c, 1, 16, 24); /* ANCHOR */
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    CU_ASSERT_EQUAL(fake_sense(&c).byte, 1);
    CU_ASSERT_EQUAL(fake_sense(&c).bit, 0);
    for (uint16_t bytes = 1; bytes < 8; bytes++) {
        unmap_raw(&f, &c, 0, 0, bytes);
        CU_ASSERT(fake_failed(&c, 5, 0x1a00));
    }
    CU_ASSERT_EQUAL(spy_n, 0);
    shut(&f);
}

static void
test_unmap_too_many_blocks(void)
{
    struct fake f;
    struct fcmd c;

    spy_reset();
    fake_open(&f,
              &(struct fake_opts){.type = "fileio", .path = sbc_file(2ull << 30), .thin = true});
    for (unsigned i = 0; i < 21; i++)
        desc(i, i * 100000, 50000);
    spy_reset();
    unmap(&f, &c, 21); /* 1,050,000 blocks; the limit is 1,048,576 */
    CU_ASSERT(fake_failed(&c, 5, 0x2600));
    CU_ASSERT_EQUAL(fake_sense(&c).byte, 8 + 20 * 16 + 8);
    CU_ASSERT_EQUAL(spy_n, 0);
    desc(20, 2000000, 48576);
    unmap(&f, &c, 21);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    shut(&f);
}

/* Nothing to do, and lists that are cut short. */
static void
test_unmap_lists(void)
{
    struct fake f;
    struct fcmd c;

    open_file(&f, 512, true, false);
    unmap_raw(&f, &c, 0, 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    unmap(&f, &c, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    desc(0, STORE / 512, 0);
    unmap(&f, &c, 1);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    for (unsigned i = 0; i < 256; i++)
        desc(i, i, 0);
    unmap(&f, &c, 256);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(spy_n, 0);
    /* the second descriptor is incomplete, then absent: it is ignored */
    desc(0, 8, 1);
    desc(1, 20, 1);
    unmap_raw(&f, &c, 0, 32, 8 + 31);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    unmap_raw(&f, &c, 0, 31, 8 + 32);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(spy_n, 2);
    CU_ASSERT_EQUAL(spy_log[0].offset, 8 * 512);
    CU_ASSERT_EQUAL(spy_log[1].offset, 8 * 512);
    shut(&f);
}

/* The file system stops punching holes: zeros are written instead, as was promised. */
static void
test_unmap_fallback(void)
{
    struct fake f;
    struct fcmd c;

    open_file(&f, 512, true, false);
    sbc_fill(data, MIB, 3);
    sbc_file_write(0, data, MIB);
    desc(0, 5, 1000);
    desc(1, 1500, 3);
    spy_spoil(IO_DISCARD, 5 * 512, -EOPNOTSUPP);
    unmap(&f, &c, 2);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(spy_bad.hits, 1);
    memset(data + 5 * 512, 0, 1000 * 512);
    memset(data + 1500 * 512, 0, 3 * 512);
    sbc_file_read(0, back, MIB);
    CU_ASSERT(memcmp(back, data, MIB) == 0);
    spy_spoil(IO_DISCARD, 5 * 512, -EIO);
    unmap(&f, &c, 2);
    CU_ASSERT(fake_failed(&c, 3, 0x0c00));
    shut(&f);
}

/* Without thin provisioning none of it is offered. */
static void
test_not_thin(void)
{
    struct fake f;
    struct fcmd c;
    struct cdb d = cdb_block(0x93, 0x08, 0, 8);

    open_file(&f, 512, false, false);
    desc(0, 0, 8);
    unmap(&f, &c, 1);
    CU_ASSERT(fake_failed(&c, 5, 0x2000));
    memset(data, 0, 512);
    fake_run(&f, &c, d.b, d.len, NULL, 0, data, 512);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    CU_ASSERT_EQUAL(fake_sense(&c).byte, 1);
    CU_ASSERT_EQUAL(fake_sense(&c).bit, 3);
    fake_release(&c);
    CU_ASSERT_EQUAL(spy_n, 0);
    shut(&f);
}

/* --- WRITE SAME ----------------------------------------------------------------------------------
 */

static void
same(struct fake *f, struct fcmd *c, uint8_t opcode, uint8_t byte1, uint64_t lba, uint32_t nblk,
     uint32_t exp_out)
{
    struct cdb d = cdb_block(opcode, byte1, lba, nblk);
    fake_run(f, c, d.b, d.len, NULL, 0, data, exp_out);
    fake_release(c);
}

/* The blocks [lba, +nblk) of `back` are all `block`, the bytes around as before. */
static void
check_same(uint64_t lba, uint32_t nblk, uint32_t bs, const uint8_t *block)
{
    uint64_t from = lba * bs, len = (uint64_t)nblk * bs;

    sbc_file_read(from - bs, back, len + 2 * bs);
    CU_ASSERT_EQUAL(back[0], 0x77);
    CU_ASSERT_EQUAL(back[bs - 1], 0x77);
    CU_ASSERT_EQUAL(back[len + bs], 0x77);
    bool all = true;
    for (uint64_t i = 0; i < len; i += bs)
        all = all && memcmp(back + bs + i, block, bs) == 0;
    CU_ASSERT(all);
}

static void
test_same(void)
{
    for (unsigned s = 0; s < 2; s++) {
        struct fake f;
        struct fcmd c;
        uint32_t bs = sizes[s];
        open_file(&f, bs, true, false);
        memset(data, 0x77, sizeof data);
        sbc_file_write(0, data, sizeof data);
        const uint32_t counts[] = {1, 2, 63, MIB / bs, 3 * MIB / bs + 5};
        const uint8_t flags[] = {0, 0x08};
        for (unsigned op = 0; op < 2; op++) {
            for (unsigned z = 0; z < 2; z++) {
                for (unsigned k = 0; k < 5; k++) {
                    for (unsigned u = 0; u < 2; u++) {
                        if (z == 1)
                            memset(data, 0, bs);
                        else
                            sbc_fill(data, bs, op + 2 * k);
                        memset(back, 0x77, (counts[k] + 2) * bs);
                        sbc_file_write(10 * bs, back, (counts[k] + 2) * bs);
                        spy_reset();
                        same(&f, &c, op == 0 ? 0x41 : 0x93, flags[u], 11, counts[k], bs);
                        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
                        CU_ASSERT_EQUAL(c.c.xfer_out, bs);
                        CU_ASSERT_EQUAL(c.pulls, 1);
                        check_same(11, counts[k], bs, data);
                        /* only zeros are unmapped, and only when asked */
                        CU_ASSERT_EQUAL(spy_count(IO_DISCARD) != 0, z == 1 && u == 1);
                        CU_ASSERT_EQUAL(spy_count(IO_ZERO) != 0, z == 1 && u == 0);
                    }
                }
            }
        }
        /* NDOB: zeros without data */
        memset(data, 0x77, sizeof data);
        sbc_file_write(0, data, sizeof data);
        memset(data, 0, bs);
        same(&f, &c, 0x93, 0x01, 20, 100, 0);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT_EQUAL(c.c.xfer_out, 0);
        CU_ASSERT_EQUAL(c.pulls, 0);
        check_same(20, 100, bs, data);
        spy_reset();
        same(&f, &c, 0x93, 0x09, 300, 100, 0);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT_EQUAL(spy_count(IO_DISCARD), spy_n);
        check_same(300, 100, bs, data);
        shut(&f);
    }
}

static void
test_same_checks(void)
{
    struct fake f;
    struct fcmd c;
    static const struct {
        uint8_t opcode, byte1;
        int bit;
    } bad[] = {{0x41, 0x10, 4}, {0x93, 0x10, 4}, {0x41, 0x18, 4}, {0x93, 0x18, 4}, {0x41, 0x04, 2},
               {0x93, 0x04, 2}, {0x41, 0x02, 1}, {0x93, 0x02, 1}, {0x41, 0x01, 0}};

    open_file(&f, 512, true, false);
    memset(data, 0, 512);
    for (unsigned i = 0; i < 9; i++) {
        same(&f, &c, bad[i].opcode, bad[i].byte1, 0, 1, 512);
        CU_ASSERT(fake_failed(&c, 5, 0x2400));
        CU_ASSERT_EQUAL(fake_sense(&c).byte, 1);
        CU_ASSERT_EQUAL(fake_sense(&c).bit, bad[i].bit);
    }
    for (unsigned i = 0; i < 2; i++) {
        uint8_t op = i == 0 ? 0x41 : 0x93;
        same(&f, &c, op, 0, 0, 0, 512); /* WSNZ=1 */
        CU_ASSERT(fake_failed(&c, 5, 0x2400));
        CU_ASSERT_EQUAL(fake_sense(&c).byte, i == 0 ? 7 : 10);
        same(&f, &c, op, 0, STORE / 512, 1, 512);
        CU_ASSERT(fake_failed(&c, 5, 0x2100));
        same(&f, &c, op, 0, STORE / 512 - 7, 8, 512);
        CU_ASSERT(fake_failed(&c, 5, 0x2100));
        /* one block exactly */
        static const uint32_t exp[] = {0, 256, 511, 513, 1024};
        for (unsigned k = 0; k < 5; k++) {
            same(&f, &c, op, 0, 0, 1, exp[k]);
            CU_ASSERT(fake_failed(&c, 5, 0x0e03));
            same(&f, &c, op, 8, 0, 1, exp[k]);
            CU_ASSERT(fake_failed(&c, 5, 0x0e03));
        }
    }
    CU_ASSERT_EQUAL(spy_n, 0);
    shut(&f);
}

/* MAXIMUM WRITE SAME LENGTH, on a unit that is larger; long ranges go step by step. */
static void
test_same_long(void)
{
    struct fake f;
    struct fcmd c;
    uint32_t max = (uint32_t)((4ull << 30) / 512);

    spy_reset();
    fake_open(&f,
              &(struct fake_opts){.type = "fileio", .path = sbc_file(5ull << 30), .thin = true});
    memset(data, 0, 512);
    spy_reset();
    same(&f, &c, 0x93, 0x08, 1, max + 1, 512);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    CU_ASSERT_EQUAL(fake_sense(&c).byte, 10);
    CU_ASSERT_EQUAL(spy_n, 0);
    same(&f, &c, 0x93, 0x08, 1, max, 512);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    uint64_t next = 512;
    for (unsigned i = 0; i < spy_n; i++) {
        CU_ASSERT_EQUAL(spy_log[i].op, IO_DISCARD);
        CU_ASSERT_EQUAL(spy_log[i].offset, next);
        CU_ASSERT(spy_log[i].len <= 1024ull * MIB);
        next += spy_log[i].len;
    }
    CU_ASSERT_EQUAL(next, 512 + (4ull << 30));
    CU_ASSERT(spy_n >= 4);
    shut(&f);
}

/* An abort ends a long one between two steps, or in one that can be taken back. */
static void
test_same_abort(void)
{
    struct fake f;
    struct fcmd c;
    struct cdb d = cdb_block(0x93, 0x08, 0, (uint32_t)((4ull << 30) / 512));

    spy_reset();
    fake_open(&f, &(struct fake_opts){.type = "fileio",
                                      .path = sbc_file(5ull << 30),
                                      .layers = "delay:op=discard,ms=30",
                                      .thin = true});
    memset(data, 0, 512);
    spy_reset();
    fake_init(&f, &c, d.b, d.len, NULL, 0, data, 512);
    fake_submit(&c);
    while (spy_n < 2)
        worker_turn(f.w, true);
    scsi_abort(&c.c);
    fake_wait(&f, &c);
    CU_ASSERT(c.c.aborted);
    CU_ASSERT(spy_n < 4);
    fake_release(&c);
    shut(&f);
}

static void
test_same_errors(void)
{
    struct fake f;
    struct fcmd c;

    open_file(&f, 512, true, true);
    sbc_fill(data, 512, 1);
    spy_spoil(IO_WRITE, 3000 * 512, -ENOSPC);
    same(&f, &c, 0x93, 0, 100, 4000, 512);
    CU_ASSERT(fake_failed(&c, 7, 0x2707));
    for (unsigned i = 0; i < spy_n; i++) /* no write cache */
        CU_ASSERT_EQUAL(spy_log[i].flags, IO_FUA);
    spy_spoil(IO_WRITE, 3000 * 512, -EIO);
    same(&f, &c, 0x93, 0, 100, 4000, 512);
    CU_ASSERT(fake_failed(&c, 3, 0x0c00));
    CU_ASSERT_EQUAL(fake_sense(&c).info, 3000);
    memset(data, 0, 512);
    spy_spoil(IO_ZERO, 3000 * 512, -EIO);
    same(&f, &c, 0x93, 0, 100, 4000, 512);
    CU_ASSERT(fake_failed(&c, 3, 0x0c00));
    CU_ASSERT_EQUAL(spy_log[0].flags, IO_FUA);
    spy_spoil(IO_DISCARD, 3000 * 512, -EOPNOTSUPP);
    same(&f, &c, 0x93, 8, 100, 4000, 512);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(spy_count(IO_ZERO), 1);
    shut(&f);
}

/* --- GET LBA STATUS
 * -------------------------------------------------------------------------------- */

static uint8_t status[8192];

static void
lba_status(struct fake *f, struct fcmd *c, uint64_t lba, uint32_t alloc)
{
    uint8_t cdb[16] = {0x9e, 0x12};

    put_be64(cdb + 2, lba);
    put_be32(cdb + 10, alloc);
    memset(status, 0xcc, sizeof status);
    fake_run(f, c, cdb, 16, status, alloc < sizeof status ? alloc : (uint32_t)sizeof status, NULL,
             0);
    fake_release(c);
}

static bool
is_desc(unsigned i, uint64_t lba, uint32_t nblk, uint8_t provisioning)
{
    const uint8_t *d = status + 8 + 16 * i;
    return get_be64(d) == lba && get_be32(d + 8) == nblk && d[12] == provisioning && d[13] == 0 &&
           d[14] == 0 && d[15] == 0;
}

static void
test_status(void)
{
    for (unsigned s = 0; s < 2; s++) {
        struct fake f;
        struct fcmd c;
        uint32_t bs = sizes[s], n = (uint32_t)(STORE / bs), m = MIB / bs;
        open_file(&f, bs, true, false);
        sbc_fill(data, 4 * MIB, 1);
        sbc_file_write(1 * MIB, data, MIB);
        sbc_file_write(4 * MIB, data, 2 * MIB);
        /* hole 1, data 1, hole 2, data 2, hole to the end */
        lba_status(&f, &c, 0, 4096);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT_EQUAL(get_be32(status), 4 + 5 * 16);
        CU_ASSERT_EQUAL(c.in_len, 8 + 5 * 16);
        CU_ASSERT(is_desc(0, 0, m, 1));
        CU_ASSERT(is_desc(1, m, m, 0));
        CU_ASSERT(is_desc(2, 2 * m, 2 * m, 1));
        CU_ASSERT(is_desc(3, 4 * m, 2 * m, 0));
        CU_ASSERT(is_desc(4, 6 * m, n - 6 * m, 1));
        /* the first descriptor begins where was asked; room for one */
        lba_status(&f, &c, m + 3, 24);
        CU_ASSERT_EQUAL(get_be32(status), 4 + 16);
        CU_ASSERT_EQUAL(c.in_len, 24);
        CU_ASSERT(is_desc(0, m + 3, m - 3, 0));
        lba_status(&f, &c, 4 * m - 1, 40);
        CU_ASSERT_EQUAL(c.in_len, 40);
        CU_ASSERT(is_desc(0, 4 * m - 1, 1, 1));
        CU_ASSERT(is_desc(1, 4 * m, 2 * m, 0));
        lba_status(&f, &c, n - 1, 4096);
        CU_ASSERT_EQUAL(get_be32(status), 4 + 16);
        CU_ASSERT(is_desc(0, n - 1, 1, 1));
        lba_status(&f, &c, 0, 8); /* cut: the length is not */
        CU_ASSERT_EQUAL(c.in_len, 8);
        CU_ASSERT_EQUAL(get_be32(status), 4 + 16);
        lba_status(&f, &c, 0, 0);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT_EQUAL(c.in_len, 0);
        lba_status(&f, &c, n, 24);
        CU_ASSERT(fake_failed(&c, 5, 0x2100));
        lba_status(&f, &c, UINT64_MAX, 24);
        CU_ASSERT(fake_failed(&c, 5, 0x2100));
        /* after an UNMAP the hole has grown */
        desc(0, m, m / 2);
        unmap(&f, &c, 1);
        lba_status(&f, &c, 0, 56);
        CU_ASSERT(is_desc(0, 0, m + m / 2, 1));
        CU_ASSERT(is_desc(1, m + m / 2, m / 2, 0));
        shut(&f);
    }
}

/* More runs than one answer takes: as many as there are descriptors, then no further. */
static void
test_status_many(void)
{
    struct fake f;
    struct fcmd c;

    open_file(&f, 4096, true, false);
    sbc_fill(data, 4096, 1);
    for (unsigned i = 0; i < 400; i++)
        sbc_file_write(i * 65536ull, data, 4096);
    lba_status(&f, &c, 0, 8192);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    uint32_t n = (get_be32(status) - 4) / 16;
    CU_ASSERT(n >= 64 && n <= 128);
    uint64_t next = 0;
    for (unsigned i = 0; i < n; i++) {
        CU_ASSERT_EQUAL(get_be64(status + 8 + 16 * i), next);
        CU_ASSERT_EQUAL(status[8 + 16 * i + 12], i % 2);
        next += get_be32(status + 8 + 16 * i + 8);
    }
    CU_ASSERT_EQUAL(c.in_len, 8 + 16 * n);
    shut(&f);
}

/* Runs of the file system that do not end on blocks: deallocated is only what wholly is. */
static void
test_status_odd(void)
{
    struct fake f;
    struct fcmd c;
    uint32_t n = (uint32_t)(STORE / 4096);

    open_file(&f, 4096, true, false);
    /* hole to 3.5 blocks, data to 4.25, hole to 8, data to 8.5, hole to 8.75, data, hole */
    spy_map.ext[0] = (struct io_extent){7 * 2048, false};
    spy_map.ext[1] = (struct io_extent){3 * 1024, true};
    spy_map.ext[2] = (struct io_extent){15 * 1024, false};
    spy_map.ext[3] = (struct io_extent){2048, true};
    spy_map.ext[4] = (struct io_extent){1024, false};
    spy_map.ext[5] = (struct io_extent){5 * 1024, true};
    spy_map.ext[6] = (struct io_extent){STORE - 10 * 4096, false};
    spy_map.n = 7;
    lba_status(&f, &c, 0, 4096);
    CU_ASSERT_EQUAL(get_be32(status), 4 + 5 * 16);
    CU_ASSERT(is_desc(0, 0, 3, 1));
    CU_ASSERT(is_desc(1, 3, 2, 0));
    CU_ASSERT(is_desc(2, 5, 3, 1));
    CU_ASSERT(is_desc(3, 8, 2, 0));
    CU_ASSERT(is_desc(4, 10, n - 10, 1));
    /* neighbours of one kind are one run; what was not learned is not said */
    spy_map.ext[0] = (struct io_extent){4096, true};
    spy_map.ext[1] = (struct io_extent){8192, true};
    spy_map.ext[2] = (struct io_extent){4096, false};
    spy_map.ext[3] = (struct io_extent){8192, false};
    spy_map.ext[4] = (struct io_extent){1024, true};
    spy_map.n = 5;
    lba_status(&f, &c, 7, 4096);
    CU_ASSERT_EQUAL(get_be32(status), 4 + 2 * 16);
    CU_ASSERT(is_desc(0, 7, 3, 0));
    CU_ASSERT(is_desc(1, 10, 3, 1));
    /* less than a block was learned */
    spy_map.ext[0] = (struct io_extent){1024, false};
    spy_map.n = 1;
    lba_status(&f, &c, 7, 4096);
    CU_ASSERT_EQUAL(get_be32(status), 4 + 16);
    CU_ASSERT(is_desc(0, 7, 1, 0));
    spy_spoil(IO_MAP, 7 * 4096, -EIO);
    lba_status(&f, &c, 7, 4096);
    CU_ASSERT_EQUAL(c.c.status, SAM_CHECK);
    CU_ASSERT_EQUAL(c.in_len, 0);
    shut(&f);
}

/* Runs beyond 32 bits of blocks; a fully provisioned unit has all blocks mapped. */
static void
test_status_large(void)
{
    struct fake f;
    struct fcmd c;
    uint64_t blocks = (3ull << 40) / 512;

    spy_reset();
    fake_open(&f,
              &(struct fake_opts){.type = "fileio", .path = sbc_file(blocks * 512), .thin = true});
    lba_status(&f, &c, 1, 4096);
    CU_ASSERT_EQUAL(get_be32(status), 4 + 2 * 16);
    CU_ASSERT(is_desc(0, 1, 0xffffffff, 1));
    CU_ASSERT(is_desc(1, 0x100000000, (uint32_t)(blocks - 0x100000000), 1));
    shut(&f);
    open_file(&f, 512, false, false);
    lba_status(&f, &c, 5, 24);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT(is_desc(0, 5, (uint32_t)(STORE / 512 - 5), 0));
    shut(&f);
}

/* Write protected: 27/00 for all of it, and the unit still says where data lie. */
static void
test_read_only(void)
{
    struct fake f;
    struct fcmd c;
    struct cdb d = cdb_block(0x93, 0x08, 0, 8);

    spy_reset();
    fake_open(&f, &(struct fake_opts){
                      .type = "fileio", .path = sbc_file(STORE), .thin = true, .read_only = true});
    spy_reset();
    desc(0, 0, 8);
    unmap(&f, &c, 1);
    CU_ASSERT(fake_failed(&c, 7, 0x2700));
    memset(data, 0, 512);
    fake_run(&f, &c, d.b, d.len, NULL, 0, data, 512);
    CU_ASSERT(fake_failed(&c, 7, 0x2700));
    fake_release(&c);
    CU_ASSERT_EQUAL(spy_n, 0);
    lba_status(&f, &c, 0, 24);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT(is_desc(0, 0, (uint32_t)(STORE / 512), 1));
    shut(&f);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"UNMAP leaves zeros", test_unmap_zeroes},
        {"UNMAP frees space", test_unmap_frees},
        {"UNMAP without a write cache", test_unmap_durable},
        {"UNMAP checks first", test_unmap_checks},
        {"UNMAP of too many blocks", test_unmap_too_many_blocks},
        {"UNMAP lists", test_unmap_lists},
        {"UNMAP where holes fail", test_unmap_fallback},
        {"not thin", test_not_thin},
        {"write protected", test_read_only},
        {"WRITE SAME", test_same},
        {"WRITE SAME checks", test_same_checks},
        {"WRITE SAME of long ranges", test_same_long},
        {"WRITE SAME aborted", test_same_abort},
        {"WRITE SAME errors", test_same_errors},
        {"GET LBA STATUS", test_status},
        {"GET LBA STATUS of many runs", test_status_many},
        {"GET LBA STATUS of odd runs", test_status_odd},
        {"GET LBA STATUS of large runs", test_status_large},
    };

    alarm(120);
    return UNIT_RUN("sbc-unmap", tests);
}
