/* SPDX-License-Identifier: BSD-2-Clause */
/* READ and WRITE: data, windows, limits, residuals, FUA, errors. Expected values from SBC-3. */
#include "tests/unit/sbc_cdb.h"
#include "tests/unit/sbc_file.h"
#include "tests/unit/sbc_spy.h"
#include "tests/unit/scsi_fake.h"
#include "tests/unit/unit.h"

#define MIB   (1024u * 1024u)
#define STORE (512ull * MIB)

static uint8_t wbuf[33 * MIB], rbuf[33 * MIB];
static const uint32_t sizes[] = {512, 4096};

static void
open_file(struct fake *f, uint32_t block_size, bool no_cache)
{
    spy_reset();
    fake_open(f, &(struct fake_opts){.type = "fileio",
                                     .path = sbc_file(STORE),
                                     .block_size = block_size,
                                     .no_cache = no_cache});
    spy_reset();
}

static void
shut(struct fake *f)
{
    spy_reset();
    fake_close(f);
    unlink(sbc_path);
}

static void
do_write(struct fake *f, struct fcmd *c, uint8_t opcode, uint8_t byte1, uint64_t lba, uint32_t nblk,
         uint32_t exp_out)
{
    struct cdb d = cdb_block(opcode, byte1, lba, nblk);
    fake_run(f, c, d.b, d.len, NULL, 0, wbuf, exp_out);
    fake_release(c);
}

static void
do_read(struct fake *f, struct fcmd *c, uint8_t opcode, uint8_t byte1, uint64_t lba, uint32_t nblk,
        uint32_t exp_in)
{
    struct cdb d = cdb_block(opcode, byte1, lba, nblk);
    memset(rbuf, 0x5a, (size_t)exp_in + 16);
    fake_run(f, c, d.b, d.len, rbuf, exp_in, NULL, 0);
    fake_release(c);
}

/* Each form writes where it shall and reads it back. */
static void
test_forms(void)
{
    static const uint8_t writes[] = {0x0a, 0x2a, 0xaa, 0x8a};
    static const uint8_t reads[] = {0x08, 0x28, 0xa8, 0x88};

    for (unsigned s = 0; s < 2; s++) {
        struct fake f;
        struct fcmd c;
        uint32_t bs = sizes[s];
        open_file(&f, bs, false);
        for (unsigned i = 0; i < 4; i++) {
            uint64_t lba = 100 + 50 * i;
            sbc_fill(wbuf, 7 * bs, 10 * s + i);
            do_write(&f, &c, writes[i], 0, lba, 7, 7 * bs);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT_EQUAL(c.c.xfer_out, 7 * bs);
            CU_ASSERT_EQUAL(c.pulls, 1);
            sbc_file_read(lba * bs, rbuf, 7 * bs);
            CU_ASSERT(memcmp(rbuf, wbuf, 7 * bs) == 0);
            do_read(&f, &c, reads[i], 0, lba, 7, 7 * bs);
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
            CU_ASSERT_EQUAL(c.in_len, 7 * bs);
            CU_ASSERT_EQUAL(c.c.xfer_in, 7 * bs);
            CU_ASSERT(memcmp(rbuf, wbuf, 7 * bs) == 0);
        }
        shut(&f);
    }
}

/* TRANSFER LENGTH 0 is 256 blocks in the 6-byte forms, nothing in the others (SBC-2 5.5, SBC-3 5.11). */
static void
test_zero_length(void)
{
    struct fake f;
    struct fcmd c;

    open_file(&f, 512, false);
    sbc_fill(wbuf, 256 * 512, 1);
    do_write(&f, &c, 0x0a, 0, 5, 0, 256 * 512);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    do_read(&f, &c, 0x08, 0, 5, 0, 256 * 512);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT(memcmp(rbuf, wbuf, 256 * 512) == 0);
    spy_reset();
    do_write(&f, &c, 0x2a, 0, 5, 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    do_read(&f, &c, 0x88, 0, 5, 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    do_read(&f, &c, 0xa8, 0, STORE / 512, 0, 0); /* the end is a place, nothing lies there */
    CU_ASSERT_EQUAL(spy_n, 0);
    shut(&f);
}

static void
one_windowed(struct fake *f, uint32_t bs, uint32_t bytes, bool now)
{
    struct fcmd c;
    struct cdb d = cdb_block(0x8a, 0, 3, bytes / bs);

    sbc_fill(wbuf, bytes, bytes / bs + now);
    fake_init(f, &c, d.b, d.len, NULL, 0, wbuf, bytes);
    c.now = now;
    fake_submit(&c);
    fake_wait(f, &c);
    fake_release(&c);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.pulls, (bytes + MIB - 1) / MIB);
    CU_ASSERT(c.max_window <= MIB);
    sbc_file_read(3 * bs, rbuf, bytes);
    CU_ASSERT(memcmp(rbuf, wbuf, bytes) == 0);
    do_read(f, &c, 0x88, 0, 3, bytes / bs, bytes);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.in_len, bytes);
    CU_ASSERT(memcmp(rbuf, wbuf, bytes) == 0);
    CU_ASSERT(c.max_window <= MIB);
}

static void
test_windows(void)
{
    for (unsigned s = 0; s < 2; s++) {
        struct fake f;
        uint32_t bs = sizes[s];
        open_file(&f, bs, false);
        const uint32_t bytes[] = {MIB - bs,         MIB,      MIB + bs,      2 * MIB,
                                  3 * MIB + 5 * bs, 20 * MIB, 32 * MIB - bs, 32 * MIB};
        for (unsigned i = 0; i < sizeof bytes / sizeof bytes[0]; i++)
            one_windowed(&f, bs, bytes[i], i % 2 == 0);
        /* all memory went back */
        CU_ASSERT_EQUAL(atomic_load(&f.budget.used), 0);
        shut(&f);
    }
}

/* MAXIMUM TRANSFER LENGTH is 65536 blocks, more than the 10-byte forms can say: beyond it 05/24/00
 * with the length field pointed to. */
static void
test_too_long(void)
{
    static const struct {
        uint8_t opcode;
        uint16_t byte;
    } forms[] = {{0xa8, 6}, {0xaa, 6}, {0x88, 10}, {0x8a, 10}};
    struct fake f;
    struct fcmd c;

    open_file(&f, 512, false);
    for (unsigned i = 0; i < 4; i++) {
        bool write = (forms[i].opcode & 0x0f) == 0x0a;
        if (write)
            do_write(&f, &c, forms[i].opcode, 0, 0, 65537, 65537 * 512);
        else
            do_read(&f, &c, forms[i].opcode, 0, 0, 65537, 65537 * 512);
        CU_ASSERT(fake_failed(&c, 5, 0x2400));
        struct fake_sense s = fake_sense(&c);
        CU_ASSERT(s.has_field && s.in_cdb);
        CU_ASSERT_EQUAL(s.byte, forms[i].byte);
        CU_ASSERT_EQUAL(c.pulls, 0);
    }
    CU_ASSERT_EQUAL(spy_n, 0);
    shut(&f);
}

static void
test_range(void)
{
    static const uint8_t forms[] = {0x28, 0x2a, 0xa8, 0xaa, 0x88, 0x8a};
    struct fake f;
    struct fcmd c;
    uint64_t n = STORE / 512;

    open_file(&f, 512, false);
    for (unsigned i = 0; i < 6; i++) {
        const struct {
            uint64_t lba;
            uint32_t nblk;
        } bad[] = {{n, 1}, {n - 1, 2}, {n + 1, 0}, {0xffffffff, 1}, {n - 5, 100}};
        for (unsigned k = 0; k < 5; k++) {
            if (i % 2 == 1)
                do_write(&f, &c, forms[i], 0, bad[k].lba, bad[k].nblk, bad[k].nblk * 512);
            else
                do_read(&f, &c, forms[i], 0, bad[k].lba, bad[k].nblk, bad[k].nblk * 512);
            CU_ASSERT(fake_failed(&c, 5, 0x2100));
        }
    }
    do_read(&f, &c, 0x88, 0, UINT64_MAX, 1, 512);
    CU_ASSERT(fake_failed(&c, 5, 0x2100));
    do_read(&f, &c, 0x88, 0, UINT64_MAX / 512 + 1, 2, 1024); /* lba * 512 wraps to 0 */
    CU_ASSERT(fake_failed(&c, 5, 0x2100));
    CU_ASSERT_EQUAL(spy_n, 0);
    do_read(&f, &c, 0x88, 0, n - 1, 1, 512);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    shut(&f);
}

/* RDPROTECT, WRPROTECT other than 0 on a unit without protection: 24/00 (SBC-3 5.11 table 65). */
static void
test_protect(void)
{
    struct fake f;
    struct fcmd c;

    open_file(&f, 512, false);
    for (unsigned p = 1; p < 8; p++) {
        do_read(&f, &c, 0x28, (uint8_t)(p << 5), 0, 1, 512);
        CU_ASSERT(fake_failed(&c, 5, 0x2400));
        do_write(&f, &c, 0x8a, (uint8_t)(p << 5), 0, 1, 512);
        CU_ASSERT(fake_failed(&c, 5, 0x2400));
    }
    CU_ASSERT_EQUAL(spy_n, 0);
    shut(&f);
}

/* The initiator expects less or more than the CDB says (RFC 7143 11.4.5.1). */
static void
test_read_residuals(void)
{
    struct fake f;
    struct fcmd c;

    open_file(&f, 512, false);
    sbc_fill(wbuf, 4 * MIB, 3);
    sbc_file_write(0, wbuf, 4 * MIB);
    static const uint32_t exp[] = {0, 1, 200, 511, 512, 700, 1024, 10000};
    for (unsigned i = 0; i < 8; i++) {
        do_read(&f, &c, 0x28, 0, 0, 2, exp[i]);
        uint32_t got = exp[i] < 1024 ? exp[i] : 1024;
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT_EQUAL(c.in_len, got);
        CU_ASSERT_EQUAL(c.c.xfer_in, 1024);
        CU_ASSERT(memcmp(rbuf, wbuf, got) == 0);
        CU_ASSERT_EQUAL(rbuf[got], 0x5a);
    }
    /* cut inside the third window */
    do_read(&f, &c, 0x88, 0, 0, 8192, 2 * MIB + 77);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.in_len, 2 * MIB + 77);
    CU_ASSERT_EQUAL(c.c.xfer_in, 4 * MIB);
    CU_ASSERT(memcmp(rbuf, wbuf, 2 * MIB + 77) == 0);
    shut(&f);
}

static void
test_write_residuals(void)
{
    struct fake f;
    struct fcmd c;
    static uint8_t old[8192];

    open_file(&f, 512, false);
    sbc_fill(old, sizeof old, 9);
    sbc_file_write(0, old, sizeof old);
    sbc_fill(wbuf, 3 * MIB, 4);
    /* whole blocks short: those are written, no other */
    do_write(&f, &c, 0x2a, 0, 0, 3, 1024);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.c.xfer_out, 1536);
    sbc_file_read(0, rbuf, sizeof old);
    CU_ASSERT(memcmp(rbuf, wbuf, 1024) == 0);
    CU_ASSERT(memcmp(rbuf + 1024, old + 1024, sizeof old - 1024) == 0);
    /* more than described: only what the CDB says */
    do_write(&f, &c, 0x2a, 0, 4, 1, 10000);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.c.xfer_out, 512);
    sbc_file_read(2048, rbuf, 1024);
    CU_ASSERT(memcmp(rbuf, wbuf, 512) == 0);
    CU_ASSERT(memcmp(rbuf + 512, old + 2560, 512) == 0);
    /* none: nothing is written, and all of it is residual */
    spy_reset();
    do_write(&f, &c, 0x2a, 0, 8, 3, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.c.xfer_out, 1536);
    CU_ASSERT_EQUAL(spy_n, 0);
    /* a cut block: 05/0e/03 and nothing written */
    static const uint32_t exp[] = {1, 200, 513, 1535};
    spy_reset();
    for (unsigned i = 0; i < 4; i++) {
        do_write(&f, &c, 0x2a, 0, 8, 3, exp[i]);
        CU_ASSERT(fake_failed(&c, 5, 0x0e03));
        CU_ASSERT_EQUAL(c.c.xfer_out, 1536);
        CU_ASSERT_EQUAL(c.pulls, 0);
    }
    CU_ASSERT_EQUAL(spy_n, 0);
    /* short over several windows */
    do_write(&f, &c, 0x8a, 0, 16, 8192, 2 * MIB + 512);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.c.xfer_out, 4 * MIB);
    sbc_file_read(16 * 512, rbuf, 3 * MIB);
    CU_ASSERT(memcmp(rbuf, wbuf, 2 * MIB + 512) == 0);
    CU_ASSERT_EQUAL(rbuf[2 * MIB + 512], 0);
    shut(&f);
}

/* FUA: writes carry it, reads flush first; without a write cache every write is durable. */
static void
test_fua(void)
{
    static const uint8_t reads[] = {0x28, 0xa8, 0x88}, writes[] = {0x2a, 0xaa, 0x8a};

    for (unsigned no_cache = 0; no_cache < 2; no_cache++) {
        struct fake f;
        struct fcmd c;
        open_file(&f, 512, no_cache != 0);
        for (unsigned i = 0; i < 3; i++) {
            for (unsigned flags = 0; flags < 4; flags++) {
                uint8_t byte1 = (uint8_t)(flags << 3); /* DPO 10h, FUA 08h */
                bool fua = (flags & 1) != 0;
                spy_reset();
                do_write(&f, &c, writes[i], byte1, 8, 4, 2048);
                CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
                CU_ASSERT_EQUAL_FATAL(spy_n, 1);
                CU_ASSERT_EQUAL(spy_log[0].op, IO_WRITE);
                CU_ASSERT_EQUAL(spy_log[0].flags & IO_FUA, fua || no_cache ? IO_FUA : 0);
                spy_reset();
                do_read(&f, &c, reads[i], byte1, 8, 4, 2048);
                CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
                CU_ASSERT_EQUAL(spy_count(IO_FLUSH), fua && !no_cache ? 1 : 0);
                CU_ASSERT_EQUAL_FATAL(spy_n, fua && !no_cache ? 2 : 1);
                CU_ASSERT_EQUAL(spy_log[spy_n - 1].op, IO_READ);
            }
        }
        shut(&f);
    }
}

/* The LBA of the first bad block is in the sense, in whichever window it lies. */
static void
test_medium_errors(void)
{
    static const uint64_t at[] = {0, 700, 4096};

    for (unsigned s = 0; s < 2; s++) {
        struct fake f;
        struct fcmd c;
        uint32_t bs = sizes[s];
        open_file(&f, bs, false);
        for (unsigned i = 0; i < 3; i++) {
            uint64_t lba = 20 + at[i];
            uint32_t nblk = 3 * MIB / bs + 3500 / (bs / 512);
            if (at[i] >= nblk)
                continue;
            spy_spoil(IO_READ, lba * bs, -EIO);
            do_read(&f, &c, 0x88, 0, 20, nblk, nblk * bs);
            CU_ASSERT(fake_failed(&c, 3, 0x1100));
            CU_ASSERT(fake_sense(&c).has_info);
            CU_ASSERT_EQUAL(fake_sense(&c).info, lba);
            CU_ASSERT_EQUAL(spy_bad.hits, 1);
            spy_spoil(IO_WRITE, lba * bs, -EIO);
            do_write(&f, &c, 0x8a, 0, 20, nblk, nblk * bs);
            CU_ASSERT(fake_failed(&c, 3, 0x0c00));
            CU_ASSERT_EQUAL(fake_sense(&c).info, lba);
            spy_spoil(IO_WRITE, lba * bs, -ENOSPC);
            do_write(&f, &c, 0x8a, 0, 20, nblk, nblk * bs);
            CU_ASSERT(fake_failed(&c, 7, 0x2707));
        }
        /* a flush that fails spoils the FUA read it was for */
        spy_spoil(IO_FLUSH, 0, -EIO);
        do_read(&f, &c, 0x28, 0x08, 0, 1, 512);
        CU_ASSERT_EQUAL(c.c.status, SAM_CHECK);
        CU_ASSERT_EQUAL(spy_count(IO_READ), 0);
        spy_reset();
        CU_ASSERT_EQUAL(atomic_load(&f.budget.used), 0);
        shut(&f);
    }
}

/* The same through the error layer: one bad sector, whatever asks for it. */
static void
test_error_layer(void)
{
    struct fake f;
    struct fcmd c;

    spy_reset();
    fake_open(&f, &(struct fake_opts){.type = "fileio",
                                      .path = sbc_file(STORE),
                                      .layers = "error:op=read,write,at=1536000,len=512"});
    for (uint32_t nblk = 1; nblk <= 8192; nblk *= 4) { /* LBA 3000 is bad */
        do_read(&f, &c, 0x88, 0, 3000, nblk, nblk * 512);
        CU_ASSERT(fake_failed(&c, 3, 0x1100));
        CU_ASSERT_EQUAL(fake_sense(&c).info, 3000);
        do_write(&f, &c, 0x8a, 0, 3000, nblk, nblk * 512);
        CU_ASSERT(fake_failed(&c, 3, 0x0c00));
        CU_ASSERT_EQUAL(fake_sense(&c).info, 3000);
        do_read(&f, &c, 0x88, 0, 3001 - nblk / 2 - 1, nblk / 2 + 1, (nblk / 2 + 1) * 512);
        CU_ASSERT(fake_failed(&c, 3, 0x1100));
        CU_ASSERT_EQUAL(fake_sense(&c).info, 3000);
        do_read(&f, &c, 0x88, 0, 3001, nblk, nblk * 512);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        do_read(&f, &c, 0x88, 0, 100, 2900, 2900 * 512);
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    }
    shut(&f);
}

/* The transport's data phase fails: nothing of that window is written. */
static void
test_data_phase(void)
{
    struct fake f;
    struct fcmd c;
    struct cdb d = cdb_block(0x8a, 0, 0, 4096);

    open_file(&f, 512, false);
    fake_init(&f, &c, d.b, d.len, NULL, 0, wbuf, 2 * MIB);
    c.pull_err = -EIO;
    c.pull_asc = 0x0c0d;
    fake_submit(&c);
    fake_wait(&f, &c);
    CU_ASSERT(fake_failed(&c, 0x0b, 0x0c0d));
    fake_release(&c);
    fake_init(&f, &c, d.b, d.len, NULL, 0, wbuf, 2 * MIB);
    c.pull_err = -ECANCELED;
    fake_submit(&c);
    fake_wait(&f, &c);
    CU_ASSERT(c.c.aborted);
    fake_release(&c);
    CU_ASSERT_EQUAL(spy_n, 0);
    shut(&f);
}

/* Aborted while pulling, pushing and in the backend: ends, silent, memory back. */
static void
test_abort(void)
{
    struct fake f;
    struct fcmd c;
    struct cdb w = cdb_block(0x8a, 0, 0, 4096), r = cdb_block(0x88, 0, 0, 4096);

    open_file(&f, 512, false);
    for (unsigned i = 0; i < 4; i++) {
        bool write = i < 2, in_io = i % 2 == 1;
        spy_reset();
        if (in_io)
            spy_hold.op = write ? IO_WRITE : IO_READ;
        if (write)
            fake_init(&f, &c, w.b, w.len, NULL, 0, wbuf, 2 * MIB);
        else
            fake_init(&f, &c, r.b, r.len, rbuf, 2 * MIB, NULL, 0);
        c.hold = !in_io;
        fake_submit(&c);
        for (int t = 0; t < 1000 && !(in_io ? spy_hold.io != NULL : c.owes_pull || c.owes_push);
             t++)
            worker_turn(f.w, false), usleep(100);
        CU_ASSERT_FATAL(in_io ? spy_hold.io != NULL : c.owes_pull || c.owes_push);
        if (in_io) { /* the kernel has it: done waits */
            struct io *io = spy_hold.io;
            c.c.aborted = true;
            worker_turn(f.w, false);
            CU_ASSERT_FALSE(c.done);
            spy_hold.op = -1;
            spy_hold.io = NULL;
            io_complete_later(io, -ECANCELED);
        } else {
            scsi_abort(&c.c);
        }
        fake_wait(&f, &c);
        CU_ASSERT(c.c.aborted);
        fake_release(&c);
        CU_ASSERT_EQUAL(atomic_load(&f.budget.used), 0);
    }
    shut(&f);
}

/* Little memory: commands wait for it in turn and all get through. */
static void
test_budget(void)
{
    enum { N = 8 };
    static uint8_t in[N][2 * MIB];
    static struct fcmd c[N];
    struct fake f;

    spy_reset();
    fake_open(&f,
              &(struct fake_opts){.type = "fileio", .path = sbc_file(STORE), .budget = 2 * MIB});
    sbc_fill(wbuf, N * 2 * MIB, 5);
    sbc_file_write(0, wbuf, N * 2 * MIB);
    for (unsigned i = 0; i < N; i++) {
        struct cdb d = cdb_block(0x88, 0, i * 4096, 4096);
        fake_init(&f, &c[i], d.b, d.len, in[i], 2 * MIB, NULL, 0);
        fake_submit(&c[i]);
    }
    for (unsigned i = 0; i < N; i++) {
        while (!c[i].done) {
            CU_ASSERT_FATAL(atomic_load(&f.budget.used) <= 2 * MIB);
            worker_turn(f.w, true);
        }
        CU_ASSERT_EQUAL(c[i].c.status, SAM_GOOD);
        CU_ASSERT(memcmp(in[i], wbuf + (size_t)i * 2 * MIB, 2 * MIB) == 0);
        fake_release(&c[i]);
    }
    CU_ASSERT_EQUAL(atomic_load(&f.budget.used), 0);
    shut(&f);
}

static void
test_null(void)
{
    struct fake f;
    struct fcmd c;

    spy_reset();
    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = STORE});
    sbc_fill(wbuf, 3 * MIB, 6);
    do_write(&f, &c, 0x8a, 0, 7, 6144, 3 * MIB);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    do_read(&f, &c, 0x88, 0, 7, 6144, 3 * MIB);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.in_len, 3 * MIB);
    for (unsigned i = 0; i < 3 * MIB; i += 511)
        CU_ASSERT_EQUAL(rbuf[i], 0);
    CU_ASSERT_EQUAL(atomic_load(&f.budget.used), 0);
    spy_spoil(IO_READ_REF, 9 * 512, -EOPNOTSUPP); /* lent no more: read instead */
    do_read(&f, &c, 0x88, 0, 7, 6144, 3 * MIB);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.in_len, 3 * MIB);
    CU_ASSERT_EQUAL(spy_count(IO_READ), 3);
    spy_spoil(IO_READ_REF, 9 * 512, -EIO);
    do_read(&f, &c, 0x88, 0, 7, 6144, 3 * MIB);
    CU_ASSERT(fake_failed(&c, 3, 0x1100));
    CU_ASSERT_EQUAL(fake_sense(&c).info, 9);
    spy_reset();
    /* lent memory is given back when the command is aborted while it is being sent */
    struct cdb d = cdb_block(0x88, 0, 0, 6144);
    fake_init(&f, &c, d.b, d.len, rbuf, 3 * MIB, NULL, 0);
    c.hold = true;
    fake_submit(&c);
    while (!c.owes_push)
        worker_turn(f.w, true);
    CU_ASSERT(c.c.lent);
    scsi_abort(&c.c);
    fake_wait(&f, &c);
    CU_ASSERT(c.c.aborted);
    fake_release(&c);
    CU_ASSERT_FALSE(c.c.lent);
    fake_close(&f);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"each form of READ and WRITE", test_forms},
        {"transfer length 0", test_zero_length},
        {"windows", test_windows},
        {"maximum transfer length", test_too_long},
        {"LBA range", test_range},
        {"protection bits", test_protect},
        {"read residuals", test_read_residuals},
        {"write residuals", test_write_residuals},
        {"FUA and DPO", test_fua},
        {"medium errors", test_medium_errors},
        {"error layer", test_error_layer},
        {"data phase errors", test_data_phase},
        {"aborts", test_abort},
        {"memory budget", test_budget},
        {"null backend", test_null},
    };

    alarm(120);
    return UNIT_RUN("sbc-rw", tests);
}
