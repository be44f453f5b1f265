/* SPDX-License-Identifier: BSD-2-Clause */
/* Sense data formats, the order and field pointers of dispatch errors, unit attentions, absent
 * units, residual rules.  Expected bytes are written from SPC-4, SBC-3 and RFC 7143. */
#include "tests/unit/scsi_fake.h"
#include "tests/unit/unit.h"

static struct fake f;
static struct fcmd c;
static uint8_t in[65536], out[65536];

static void
open_null(void)
{
    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = 1 << 20});
}

static void
run(const uint8_t *cdb, size_t len, uint32_t exp_in, uint32_t exp_out)
{
    memset(in, 0xaa, sizeof in);
    fake_run(&f, &c, cdb, len, in, exp_in, out, exp_out);
    fake_release(&c);
}

/* 05/24/00 with the pointer on byte and bit (-1: none) of the CDB. */
static void
bad_field(const uint8_t *cdb, size_t len, unsigned byte, int bit)
{
    run(cdb, len, 512, 512);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    struct fake_sense s = fake_sense(&c);
    CU_ASSERT(s.has_field && s.in_cdb);
    CU_ASSERT_EQUAL(s.byte, byte);
    CU_ASSERT_EQUAL(s.bit, bit);
    if (s.byte != byte || s.bit != bit)
        fprintf(stderr, "cdb %02x: byte %u bit %d, wanted %u %d\n", cdb[0], s.byte, s.bit, byte,
                bit);
}

static void
test_sense_bytes(void)
{
    uint8_t b[SCSI_SENSE_MAX];
    static const uint8_t fixed_field[18] = {0x70, 0, 0x05, 0,    0,    0, 0,    10,   0,
                                            0,    0, 0,    0x24, 0x00, 0, 0xcd, 0x00, 0x07};
    static const uint8_t fixed_info[18] = {0xf0, 0, 0x03, 0x12, 0x34, 0x56, 0x78, 10, 0,
                                           0,    0, 0,    0x11, 0x00, 0,    0,    0,  0};
    static const uint8_t fixed_plain[18] = {0x70, 0, 0x06, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0x00};
    static const uint8_t desc_field[16] = {0x72, 0x05, 0x26, 0x00, 0,    0,    0,    8,
                                           0x02, 0x06, 0,    0,    0x80, 0x01, 0x02, 0};
    static const uint8_t desc_info[20] = {0x72, 0x0e, 0x1d, 0x00, 0, 0, 0, 12, 0x00, 0x0a,
                                          0x80, 0,    1,    2,    3, 4, 5, 6,  7,    8};

    CU_ASSERT_EQUAL(sense_build(b, false, 5, 0x2400, false, 0, FIELD(7, 5), true), 18);
    CU_ASSERT_EQUAL(memcmp(b, fixed_field, 18), 0);
    CU_ASSERT_EQUAL(sense_build(b, false, 3, 0x1100, true, 0x12345678, NO_FIELD, true), 18);
    CU_ASSERT_EQUAL(memcmp(b, fixed_info, 18), 0);
    CU_ASSERT_EQUAL(sense_build(b, false, 6, 0x2900, false, 0, NO_FIELD, true), 18);
    CU_ASSERT_EQUAL(memcmp(b, fixed_plain, 18), 0);
    /* 33 bits do not fit: not valid */
    sense_build(b, false, 3, 0x1100, true, 0x100000000ull, NO_FIELD, true);
    CU_ASSERT_EQUAL(b[0], 0x70);
    CU_ASSERT_EQUAL(get_be32(b + 3), 0);
    CU_ASSERT_EQUAL(sense_build(b, true, 5, 0x2600, false, 0, FIELD_BYTE(0x102), false), 16);
    CU_ASSERT_EQUAL(memcmp(b, desc_field, 16), 0);
    CU_ASSERT_EQUAL(sense_build(b, true, 0xe, 0x1d00, true, 0x0102030405060708ull, NO_FIELD, true),
                    20);
    CU_ASSERT_EQUAL(memcmp(b, desc_info, 20), 0);
}

static void
test_unknown_opcodes(void)
{
    static const uint8_t refused[] = {0x5e, 0x5f, 0x89, 0x8b, 0x83, 0x84, 0x48, 0x9c, 0x37,
                                      0xb7, 0xff, 0x04, 0x7f, 0x4d, 0x3b, 0x3c, 0x1d};
    open_null();
    for (size_t i = 0; i < sizeof refused; i++) {
        uint8_t cdb[16] = {refused[i]};
        run(cdb, 16, 512, 0);
        CU_ASSERT(fake_failed(&c, 5, 0x2000));
        CU_ASSERT_FALSE(fake_sense(&c).has_field);
    }
    run(CDB(0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0), 256, 0); /* REPORT TARGET PORT GROUPS */
    CU_ASSERT(fake_failed(&c, 5, 0x2000));
    run(CDB(0x9e, 0x13), 256, 0);
    CU_ASSERT(fake_failed(&c, 5, 0x2000));
    fake_close(&f);
}

static void
test_reserved_bits(void)
{
    open_null();
    bad_field(CDB(0x00, 0x01, 0, 0, 0, 0), 1, 0);
    bad_field(CDB(0x00, 0, 0, 0, 0, 0x04), 5, 2);      /* NACA */
    bad_field(CDB(0x12, 0x02, 0, 0, 36, 0), 1, 1);     /* CMDDT */
    bad_field(CDB(0x12, 0x00, 0x80, 0, 36, 0), 2, -1); /* page without EVPD */
    bad_field(CDB(0x12, 0x01, 0x84, 0, 36, 0), 2, -1); /* no such page */
    bad_field(CDB(0x08, 0x20, 0, 0, 1, 0), 1, 5);
    bad_field(CDB(0x28, 0x02, 0, 0, 0, 0, 0, 0, 1, 0), 1, 1);    /* FUA_NV, obsolete */
    bad_field(CDB(0x28, 0x00, 0, 0, 0, 0, 0x1f, 0, 1, 0), 6, 4); /* GROUP NUMBER */
    bad_field(CDB(0x28, 0x20, 0, 0, 0, 0, 0, 0, 1, 0), 1, 7);    /* RDPROTECT=1 */
    bad_field(CDB(0x28, 0xe0, 0, 0, 0, 0, 0, 0, 1, 0), 1, 7);
    bad_field(CDB(0x2a, 0x60, 0, 0, 0, 0, 0, 0, 1, 0), 1, 7);
    bad_field(CDB(0x2f, 0x20, 0, 0, 0, 0, 0, 0, 1, 0), 1, 7);
    bad_field(CDB(0x2f, 0x04, 0, 0, 0, 0, 0, 0, 1, 0), 1, 2); /* BYTCHK=2 */
    bad_field(CDB(0x2e, 0x04, 0, 0, 0, 0, 0, 0, 1, 0), 1, 2);
    bad_field(CDB(0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x01, 0), 14, 0);
    bad_field(CDB(0x41, 0x10, 0, 0, 0, 0, 0, 0, 1, 0), 1, 4); /* ANCHOR */
    bad_field(CDB(0x41, 0x08, 0, 0, 0, 0, 0, 0, 1, 0), 1, 3); /* UNMAP, not thin */
    bad_field(CDB(0x41, 0x02, 0, 0, 0, 0, 0, 0, 1, 0), 1, 1); /* LBDATA, obsolete */
    bad_field(CDB(0x16, 0x10, 0, 0, 0, 0), 1, 4);             /* third party */
    bad_field(CDB(0x16, 0x01, 0, 0, 0, 0), 1, 0);             /* extent */
    bad_field(CDB(0x57, 0x12, 0, 0, 0, 0, 0, 0, 0, 0), 1, 4);
    bad_field(CDB(0xa0, 0, 0x10, 0, 0, 0, 0, 0, 0, 64, 0, 0), 2, -1);
    bad_field(CDB(0xa3, 0x0c, 0x04, 0, 0, 0, 0, 0, 0, 64, 0, 0), 2, 2);
    bad_field(CDB(0x1e, 0, 0, 0, 0x02, 0), 4, 1);
    fake_close(&f);
}

static void
test_withdrawn_unmap(void)
{
    open_null(); /* not thin */
    run(CDB(0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0), 0, 24);
    CU_ASSERT(fake_failed(&c, 5, 0x2000));
    fake_close(&f);
}

static void
test_range(void)
{
    open_null(); /* 2048 blocks */
    run(CDB(0x28, 0, 0, 0, 0x08, 0x00, 0, 0, 1, 0), 512, 0);
    CU_ASSERT(fake_failed(&c, 5, 0x2100));
    run(CDB(0x2f, 0, 0, 0, 0x08, 0x00, 0, 0, 1, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 5, 0x2100));
    run(CDB(0x88, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0),
        512, 0);
    CU_ASSERT(fake_failed(&c, 5, 0x2100));
    run(CDB(0x28, 0, 0, 0, 0x07, 0xff, 0, 0, 1, 0), 512, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    fake_close(&f);
}

static void
test_residuals(void)
{
    open_null();
    run(CDB(0x12, 0, 0, 0, 0xff, 0), 36, 0); /* allocation length beyond what is expected */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.in_len, 36);
    CU_ASSERT_EQUAL(c.c.xfer_in, 96);
    run(CDB(0x12, 0, 0, 0, 5, 0), 4096, 0);
    CU_ASSERT_EQUAL(c.in_len, 5);
    CU_ASSERT_EQUAL(c.c.xfer_in, 5);
    CU_ASSERT_EQUAL(in[5], 0xaa);
    run(CDB(0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0, 0); /* READ CAPACITY, nothing expected */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.in_len, 0);
    CU_ASSERT_EQUAL(c.c.xfer_in, 8);
    run(CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 2, 0), 0, 512); /* one of two blocks */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.c.xfer_out, 1024);
    run(CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 2, 0), 0, 700);
    CU_ASSERT(fake_failed(&c, 5, 0x0e03));
    CU_ASSERT_EQUAL(c.c.xfer_out, 1024);
    CU_ASSERT_EQUAL(c.pulls, 0);
    run(CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), 0, 0); /* none of one block: all is residual */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.c.xfer_out, 512);
    run(CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), 512, 0); /* R instead of W */
    CU_ASSERT(fake_failed(&c, 5, 0x0e03));
    run(CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0), 0, 512); /* W instead of R */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.c.xfer_in, 512);
    CU_ASSERT_EQUAL(c.pulls, 0);
    run(CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), 0, 1024);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(c.c.xfer_out, 512);
    fake_close(&f);
}

static void
test_attr(void)
{
    open_null();
    for (unsigned attr = 0; attr < 8; attr++) {
        fake_init(&f, &c, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0), in, 512, NULL, 0);
        c.c.attr = (uint8_t)attr;
        fake_submit(&c);
        fake_wait(&f, &c);
        if (attr <= ATTR_HEAD)
            CU_ASSERT_EQUAL(c.c.status, SAM_GOOD)
        else
            CU_ASSERT(fake_failed(&c, 5, 0x0e03));
        fake_release(&c);
    }
    fake_close(&f);
}

/* --- units ----------------------------------------------------------------------------------- */

static void
run_at(const uint8_t lun[8], const uint8_t *cdb, size_t len)
{
    memset(in, 0xaa, sizeof in);
    fake_init(&f, &c, cdb, len, in, 255, NULL, 0);
    memcpy(c.c.lun, lun, 8);
    fake_submit(&c);
    fake_wait(&f, &c);
    fake_release(&c);
}

static void
test_absent(void)
{
    static const uint8_t absent[][8] = {
        {0, 5},
        {0x40, 0xff},
        {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
        {0, 0, 0, 1}, /* second level */
        {0x01, 0x00}, /* another bus */
        {0xc1, 0x02}, /* ACCESS CONTROLS, not there */
        {0xc1, 0x01, 0, 0, 0, 0, 0, 1},
    };
    open_null();
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++) {
        run_at(absent[i], CDB(0x12, 0, 0, 0, 0xff, 0));
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT_EQUAL(in[0], 0x7f);
        run_at(absent[i], CDB(0, 0, 0, 0, 0, 0));
        CU_ASSERT(fake_failed(&c, 5, 0x2500));
        run_at(absent[i], CDB(0xff));
        CU_ASSERT(fake_failed(&c, 5, 0x2500));
        run_at(absent[i], CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0));
        CU_ASSERT(fake_failed(&c, 5, 0x2500));
        run_at(absent[i], CDB(0x12, 1, 0, 0, 0xff, 0));
        CU_ASSERT(fake_failed(&c, 5, 0x2500));
        run_at(absent[i], CDB(0x03, 0, 0, 0, 0xff, 0));
        CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
        CU_ASSERT(c.in_len == 18 && in[2] == 5 && in[12] == 0x25 && in[13] == 0);
    }
    fake_close(&f);
}

static void
test_lun0_unmapped(void)
{
    open_null();
    struct lun_map *map = lun_map_new(&(struct lun_map_entry){300, f.lun}, 1);
    static const uint8_t lun0[8], lun300[8] = {0x41, 0x2c};

    itn_set_map(f.itn, map);
    run_at(lun0, CDB(0x12, 0, 0, 0, 0xff, 0));
    CU_ASSERT_EQUAL(in[0], 0x3f);
    CU_ASSERT_EQUAL(memcmp(in + 8, "EVTGT   ", 8), 0);
    run_at(lun0, CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0));
    static const uint8_t want[16] = {0, 0, 0, 8, 0, 0, 0, 0, 0x41, 0x2c};
    CU_ASSERT_EQUAL(c.in_len, 16);
    CU_ASSERT_EQUAL(memcmp(in, want, 16), 0);
    run_at(lun0, CDB(0, 0, 0, 0, 0, 0));
    CU_ASSERT(fake_failed(&c, 5, 0x2500));
    run_at(lun300, CDB(0, 0, 0, 0, 0, 0)); /* new here: power on */
    CU_ASSERT(fake_failed(&c, 6, 0x2900));
    run_at(lun300, CDB(0, 0, 0, 0, 0, 0)); /* 3F/0E went with REPORT LUNS */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    lun_map_put(map);
    fake_close(&f);
}

static void
test_wlun(void)
{
    static const uint8_t wlun[8] = {0xc1, 0x01};
    open_null();
    run_at(wlun, CDB(0x12, 0, 0, 0, 0xff, 0));
    CU_ASSERT(c.c.status == SAM_GOOD && in[0] == 0x1e);
    run_at(wlun, CDB(0, 0, 0, 0, 0, 0));
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run_at(wlun, CDB(0x03, 0, 0, 0, 18, 0));
    CU_ASSERT(c.c.status == SAM_GOOD && in[2] == 0);
    run_at(wlun, CDB(0xa0, 0, 1, 0, 0, 0, 0, 0, 0, 64, 0, 0));
    static const uint8_t want[16] = {0, 0, 0, 8, 0, 0, 0, 0, 0xc1, 0x01};
    CU_ASSERT(c.in_len == 16 && memcmp(in, want, 16) == 0);
    run_at(wlun, CDB(0x12, 1, 0, 0, 0xff, 0));
    static const uint8_t pages[6] = {0x1e, 0, 0, 2, 0x00, 0x83};
    CU_ASSERT(c.in_len == 6 && memcmp(in, pages, 6) == 0);
    run_at(wlun, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0));
    CU_ASSERT(fake_failed(&c, 5, 0x2000));
    fake_close(&f);
}

static void
test_report_luns(void)
{
    open_null();
    struct lun_map_entry e[3] = {{256, f.lun}, {0, f.lun}, {16383, f.lun}};
    struct lun_map *map = lun_map_new(e, 3);
    static const uint8_t want[40] = {0,    0,    0, 32, 0,    0, 0, 0, 0,    0,   0, 0,
                                     0,    0,    0, 0,  0x41, 0, 0, 0, 0,    0,   0, 0,
                                     0x7f, 0xff, 0, 0,  0,    0, 0, 0, 0xc1, 0x01};
    itn_set_map(f.itn, map);
    run(CDB(0xa0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0), 256, 0);
    CU_ASSERT(c.in_len == 40 && memcmp(in, want, 40) == 0);
    run(CDB(0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0), 256, 0); /* cut, the length stays */
    CU_ASSERT(c.in_len == 16 && get_be32(in) == 24);
    CU_ASSERT_EQUAL(in[16], 0xaa);
    lun_map_put(map);
    e[2].number = 256;
    CU_ASSERT_PTR_NULL(lun_map_new(e, 3)); /* twice the same number */
    e[2].number = 16384;
    CU_ASSERT_PTR_NULL(lun_map_new(e, 3));
    fake_close(&f);
}

/* --- unit attentions and readiness ----------------------------------------------------------- */

static void
test_ua_order(void)
{
    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = 1 << 20, .keep_ua = true});
    struct nexus *nx = itn_nexus(f.itn, 0);

    run(CDB(0x12, 0, 0, 0, 36, 0), 36, 0); /* not reported by INQUIRY, and stays */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(CDB(0xff), 0, 0); /* the operation code comes first */
    CU_ASSERT(fake_failed(&c, 5, 0x2000));
    ua_set(nx, UA_MODE_CHANGED);
    ua_set(nx, UA_CAPACITY_CHANGED);
    ua_set(nx, UA_LUN_RESET);
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 6, 0x2900));
    run(CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0), 512, 0);
    CU_ASSERT(fake_failed(&c, 6, 0x2903));
    run(CDB(0x03, 0, 0, 0, 18, 0), 18, 0); /* as data, and gone */
    CU_ASSERT(c.c.status == SAM_GOOD && in[0] == 0x70 && in[2] == 6 && in[12] == 0x2a &&
              in[13] == 0x09);
    run(CDB(0x03, 1, 0, 0, 18, 0), 18, 0); /* descriptor format */
    CU_ASSERT(c.c.status == SAM_GOOD && c.in_len == 8 && in[0] == 0x72 && in[1] == 6 &&
              in[2] == 0x2a && in[3] == 0x01);
    run(CDB(0x03, 0, 0, 0, 18, 0), 18, 0);
    CU_ASSERT(c.c.status == SAM_GOOD && in[2] == 0 && in[12] == 0);
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    fake_close(&f);
}

static void
test_not_ready(void)
{
    open_null();
    lun_set_online(f.lun, false);
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 2, 0x0412));
    run(CDB(0x03, 0, 0, 0, 18, 0), 18, 0);
    CU_ASSERT(in[2] == 2 && in[12] == 0x04 && in[13] == 0x12);
    run(CDB(0x1a, 8, 0x3f, 0, 0xff, 0), 255, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    lun_set_online(f.lun, true);
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 6, 0x2800));
    run(CDB(0x1b, 0, 0, 0, 0, 0), 0, 0); /* stop */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0), 512, 0);
    CU_ASSERT(fake_failed(&c, 2, 0x0402));
    run(CDB(0x1b, 0, 0, 0, 1, 0), 0, 0);
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    be_close(f.be);
    lun_probed(f.lun, BE_EV_GONE);
    run(CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), 0, 512);
    CU_ASSERT(fake_failed(&c, 2, 0x0400));
    struct lun_state st;
    lun_state(f.lun, &st);
    CU_ASSERT(!st.ready && st.reason[0] != '\0' && st.itns == 1);
    be_open(f.be);
    lun_probed(f.lun, BE_EV_CAME | BE_EV_GREW);
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 6, 0x2800));
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT(fake_failed(&c, 6, 0x2a09));
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    fake_close(&f);
}

static void
test_write_protect(void)
{
    static const uint8_t writes[][10] = {
        {0x0a, 0, 0, 0, 1},
        {0x2a, 0, 0, 0, 0, 0, 0, 0, 1},
        {0x2e, 0, 0, 0, 0, 0, 0, 0, 1},
        {0x41, 0, 0, 0, 0, 0, 0, 0, 1},
    };
    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = 1 << 20, .read_only = true});
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        run(writes[i], 10, 0, 512);
        CU_ASSERT(fake_failed(&c, 7, 0x2700));
    }
    run(CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0), 512, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(CDB(0x1a, 8, 0x3f, 0, 0xff, 0), 255, 0);
    CU_ASSERT_EQUAL(in[2], 0x90); /* WP, DPOFUA */
    fake_close(&f);
}

static void
test_descriptor_sense(void)
{
    open_null();
    struct lun_conf conf = *lun_conf(f.lun);
    char err[128];

    conf.descriptor_sense = true;
    CU_ASSERT_EQUAL(lun_update(f.lun, &conf, err, sizeof err), 0);
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_CHECK);
    static const uint8_t ua[8] = {0x72, 0x06, 0x2a, 0x01};
    CU_ASSERT(c.c.sense_len == 8 && memcmp(c.c.sense, ua, 8) == 0);
    run(CDB(0x28, 0, 0, 0, 0, 0, 0x10, 0, 1, 0), 512, 0);
    static const uint8_t fld[16] = {0x72, 0x05, 0x24, 0, 0, 0, 0, 8, 2, 6, 0, 0, 0xcc, 0, 6, 0};
    CU_ASSERT(c.c.sense_len == 16 && memcmp(c.c.sense, fld, 16) == 0);
    fake_close(&f);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"sense bytes", test_sense_bytes},
        {"unknown operation codes", test_unknown_opcodes},
        {"reserved bits", test_reserved_bits},
        {"UNMAP withdrawn", test_withdrawn_unmap},
        {"LBA range", test_range},
        {"residuals", test_residuals},
        {"task attributes", test_attr},
        {"absent units", test_absent},
        {"LUN 0 unmapped", test_lun0_unmapped},
        {"REPORT LUNS well-known unit", test_wlun},
        {"REPORT LUNS", test_report_luns},
        {"unit attentions", test_ua_order},
        {"not ready", test_not_ready},
        {"write protection", test_write_protect},
        {"descriptor sense", test_descriptor_sense},
    };
    return UNIT_RUN("scsi-dispatch", tests);
}
