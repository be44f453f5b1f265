/* SPDX-License-Identifier: BSD-2-Clause */
/* VERIFY and WRITE AND VERIFY. Expected values from SBC-3. */
#include "tests/unit/sbc_cdb.h"
#include "tests/unit/sbc_file.h"
#include "tests/unit/sbc_spy.h"
#include "tests/unit/scsi_fake.h"
#include "tests/unit/unit.h"

#define MIB   (1024u * 1024u)
#define STORE (512ull * MIB)

static uint8_t data[17 * MIB], back[17 * MIB];
static const uint32_t sizes[] = {512, 4096};
static const uint8_t verifies[] = {0x2f, 0xaf, 0x8f};
static const uint8_t writes[] = {0x2e, 0xae, 0x8e};

static void
open_file(struct fake *f, uint32_t block_size)
{
    spy_reset();
    fake_open(f, &(struct fake_opts){
                     .type = "fileio", .path = sbc_file(STORE), .block_size = block_size});
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
run(struct fake *f, struct fcmd *c, uint8_t opcode, uint8_t byte1, uint64_t lba, uint32_t nblk,
    uint32_t exp_out)
{
    struct cdb d = cdb_block(opcode, byte1, lba, nblk);
    fake_run(f, c, d.b, d.len, NULL, 0, data, exp_out);
    fake_release(c);
}

/* BYTCHK 00b: no data moves; the medium is read, and its errors show. */
static void
test_medium(void)
{
    for (unsigned s = 0; s < 2; s++) {
        struct fake f;
        struct fcmd c;
        uint32_t bs = sizes[s];
        open_file(&f, bs);
        for (unsigned i = 0; i < 3; i++) {
            spy_reset();
            run(&f, &c, verifies[i], 0, 10, 5 * MIB / 2 / bs, 0);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT_EQUAL(c.c.xfer_out, 0);
            CU_ASSERT_EQUAL(c.pulls, 0);
            CU_ASSERT_EQUAL(spy_count(IO_FLUSH), 1); /* what the cache has goes first */
            uint64_t next = 10 * bs;
            for (unsigned k = 1; k < spy_n; k++) {
                CU_ASSERT_EQUAL(spy_log[k].op, IO_READ);
                CU_ASSERT_EQUAL(spy_log[k].offset, next);
                next += spy_log[k].len;
            }
            CU_ASSERT_EQUAL(next, 10 * bs + 5 * MIB / 2);
            spy_spoil(IO_READ, (10ull + 300) * bs, -EIO);
            run(&f, &c, verifies[i], 0x10, 10, 400, 0);
            CU_ASSERT(fake_failed(&c, 3, 0x1100));
            CU_ASSERT_EQUAL(fake_sense(&c).info, 310);
            spy_reset();
            run(&f, &c, verifies[i], 0, 10, 0, 0);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT_EQUAL(spy_n, 0);
            run(&f, &c, verifies[i], 0, STORE / bs, 1, 0);
            CU_ASSERT(fake_failed(&c, 5, 0x2100));
            run(&f, &c, verifies[i], 0, STORE / bs - 1, 2, 0);
            CU_ASSERT(fake_failed(&c, 5, 0x2100));
            run(&f, &c, verifies[i], 0, STORE / bs + 1, 0, 0);
            CU_ASSERT(fake_failed(&c, 5, 0x2100));
            run(&f, &c, verifies[i], 0, 0, i == 0 ? 0 : 65537, 0); /* 16 bits of length in (10) */
            CU_ASSERT(i == 0 || fake_failed(&c, 5, 0x2400));
            CU_ASSERT_EQUAL(spy_n, 0);
        }
        shut(&f);
    }
}

/* BYTCHK 01b: each byte; the first that differs is named. */
static void
test_compare_all(void)
{
    for (unsigned s = 0; s < 2; s++) {
        struct fake f;
        struct fcmd c;
        uint32_t bs = sizes[s], bytes = 3 * MIB + 2 * bs;
        static const uint32_t at[] = {0, 1, 511, 4095, MIB / 2 - 1, MIB / 2, 2 * MIB + 77};
        open_file(&f, bs);
        sbc_fill(data, bytes, 1 + s);
        sbc_file_write(7 * bs, data, bytes);
        for (unsigned i = 1; i < 3; i++) {
            run(&f, &c, verifies[i], 2, 7, bytes / bs, bytes);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT_EQUAL(c.c.xfer_out, bytes);
            CU_ASSERT(c.max_window <= MIB / 2);
            for (unsigned k = 0; k < 7; k++) {
                data[at[k]] ^= 1;
                run(&f, &c, verifies[i], 2, 7, bytes / bs, bytes);
                CU_ASSERT(fake_failed(&c, 0x0e, 0x1d00));
                CU_ASSERT(fake_sense(&c).has_info);
                CU_ASSERT_EQUAL(fake_sense(&c).info, at[k]);
                data[at[k]] ^= 1;
            }
            data[bytes - 1] ^= 0x80;
            run(&f, &c, verifies[i], 2, 7, bytes / bs, bytes);
            CU_ASSERT_EQUAL(fake_sense(&c).info, bytes - 1);
            data[bytes - 1] ^= 0x80;
            /* less data than blocks: nothing is vouched for */
            run(&f, &c, verifies[i], 2, 7, 4, 3 * bs);
            CU_ASSERT(fake_failed(&c, 5, 0x0e03));
            run(&f, &c, verifies[i], 2, 7, 4, 5 * bs);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        }
        run(&f, &c, 0x2f, 2, 7, 3, 3 * bs);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        shut(&f);
    }
}

/* BYTCHK 11b: one block against all; 10b is reserved. */
static void
test_compare_one(void)
{
    for (unsigned s = 0; s < 2; s++) {
        struct fake f;
        struct fcmd c;
        uint32_t bs = sizes[s], n = 5 * MIB / 2 / bs;
        open_file(&f, bs);
        sbc_fill(data, bs, 3);
        for (uint32_t i = 0; i < n; i++)
            memcpy(back + (size_t)i * bs, data, bs);
        sbc_file_write(0, back, (size_t)n * bs);
        for (unsigned i = 0; i < 3; i++) {
            run(&f, &c, verifies[i], 6, 0, n, bs);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT_EQUAL(c.c.xfer_out, bs);
            CU_ASSERT_EQUAL(c.pulls, 1);
            uint64_t bad = (uint64_t)(n - 3) * bs + 5;
            uint8_t wrong = data[5] ^ 4;
            sbc_file_write(bad, &wrong, 1);
            run(&f, &c, verifies[i], 6, 0, n, bs);
            CU_ASSERT(fake_failed(&c, 0x0e, 0x1d00));
            CU_ASSERT_EQUAL(fake_sense(&c).info, bad);
            sbc_file_write(bad, data + 5, 1);
            run(&f, &c, verifies[i], 6, 0, 0, 0);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            run(&f, &c, verifies[i], 6, 0, 2, 0);
            CU_ASSERT(fake_failed(&c, 5, 0x0e03));
            run(&f, &c, verifies[i], 4, 0, 2, bs);
            CU_ASSERT(fake_failed(&c, 5, 0x2400));
            CU_ASSERT_EQUAL(fake_sense(&c).byte, 1);
            CU_ASSERT_EQUAL(fake_sense(&c).bit, 2);
        }
        shut(&f);
    }
}

static void
test_write_and_verify(void)
{
    for (unsigned s = 0; s < 2; s++) {
        struct fake f;
        struct fcmd c;
        uint32_t bs = sizes[s], bytes = 2 * MIB + 3 * bs;
        open_file(&f, bs);
        for (unsigned i = 0; i < 3; i++) {
            for (uint8_t chk = 0; chk < 2; chk++) {
                sbc_fill(data, bytes, 10 * s + 2 * i + chk);
                spy_reset();
                run(&f, &c, writes[i], (uint8_t)(chk << 1), 9, bytes / bs, bytes);
                CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
                for (unsigned k = 0; k < spy_n; k++) { /* durable, then read */
                    CU_ASSERT_EQUAL(spy_log[k].op, k % 2 == 0 ? IO_WRITE : IO_READ);
                    CU_ASSERT_EQUAL(spy_log[k].flags, k % 2 == 0 ? IO_FUA : 0);
                    CU_ASSERT_EQUAL(spy_log[k].offset, spy_log[k & ~1u].offset);
                }
                sbc_file_read(9 * bs, back, bytes);
                CU_ASSERT(memcmp(back, data, bytes) == 0);
            }
            /* the initiator sends fewer blocks: those are written, no other; a cut one is refused
             */
            sbc_fill(data, 6 * bs, i);
            run(&f, &c, writes[i], 2, 1000, 6, 6 * bs);
            sbc_fill(data + 8 * bs, 6 * bs, i + 7);
            memcpy(back, data, 6 * bs);
            memcpy(data, data + 8 * bs, 4 * bs);
            run(&f, &c, writes[i], 2, 1000, 6, 4 * bs);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT_EQUAL(c.c.xfer_out, 6 * bs);
            memcpy(data + 4 * bs, back + 4 * bs, 2 * bs);
            sbc_file_read(1000 * bs, back, 6 * bs);
            CU_ASSERT(memcmp(back, data, 6 * bs) == 0);
            run(&f, &c, writes[i], 2, 1000, 6, 4 * bs - 1);
            CU_ASSERT(fake_failed(&c, 5, 0x0e03));
            run(&f, &c, writes[i], 2, 1000, 6, 0);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT_EQUAL(c.c.xfer_out, 6 * bs);
            run(&f, &c, writes[i], 4, 9, 1, bs);
            CU_ASSERT(fake_failed(&c, 5, 0x2400));
            run(&f, &c, writes[i], 6, 9, 1, bs);
            CU_ASSERT(fake_failed(&c, 5, 0x2400));
            run(&f, &c, writes[i], 0, STORE / bs, 1, bs);
            CU_ASSERT(fake_failed(&c, 5, 0x2100));
            run(&f, &c, writes[i], 0, 0, i == 0 ? 0 : 65537, UINT32_MAX);
            CU_ASSERT(i == 0 || fake_failed(&c, 5, 0x2400));
            run(&f, &c, writes[i], 0, 9, 0, 0);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            spy_spoil(IO_READ, 12 * bs, -EIO); /* written, but it does not come back */
            run(&f, &c, writes[i], 0, 9, 8, 8 * bs);
            CU_ASSERT(fake_failed(&c, 3, 0x1100));
            CU_ASSERT_EQUAL(fake_sense(&c).info, 12);
            spy_spoil(IO_WRITE, 12 * bs, -EIO);
            run(&f, &c, writes[i], 2, 9, 8, 8 * bs);
            CU_ASSERT(fake_failed(&c, 3, 0x0c00));
            spy_reset();
        }
        shut(&f);
    }
}

/* What comes back is not what was written: a null store keeps nothing. */
static void
test_lost_write(void)
{
    struct fake f;
    struct fcmd c;

    spy_reset();
    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = STORE});
    memset(data, 0, 4096);
    data[1030] = 1;
    run(&f, &c, 0x8e, 2, 0, 8, 4096);
    CU_ASSERT(fake_failed(&c, 0x0e, 0x1d00));
    CU_ASSERT_EQUAL(fake_sense(&c).info, 1030);
    run(&f, &c, 0x8e, 0, 0, 8, 4096);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    data[1030] = 0;
    run(&f, &c, 0x8f, 2, 0, 8, 4096);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    fake_close(&f);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"VERIFY reads the medium", test_medium},
        {"VERIFY compares all", test_compare_all},
        {"VERIFY compares one block", test_compare_one},
        {"WRITE AND VERIFY", test_write_and_verify},
        {"a lost write is a miscompare", test_lost_write},
    };

    alarm(120);
    return UNIT_RUN("sbc-verify", tests);
}
