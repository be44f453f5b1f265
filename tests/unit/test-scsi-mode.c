/* SPDX-License-Identifier: BSD-2-Clause */
/* MODE SENSE and MODE SELECT: every page and control, validation with field pointers, effect,
 * saved values over a restart.  Bytes by hand from SPC-4 and SBC-3. */
#include "base/cstore.h"
#include "tests/unit/scsi_fake.h"
#include "tests/unit/unit.h"

static struct fake f;
static struct fcmd c;
static uint8_t in[4096], out[4096];

static void
run(const uint8_t *cdb, size_t len, uint32_t exp_in, uint32_t exp_out)
{
    memset(in, 0xaa, sizeof in);
    fake_run(&f, &c, cdb, len, in, exp_in, out, exp_out);
    fake_release(&c);
}

static void
open_null(void)
{
    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = 1 << 20});
}

/* Header and descriptors off, one page. */
static void
sense_page(uint8_t pc, uint8_t page, uint8_t sub)
{
    run(CDB(0x1a, 8, (uint8_t)(pc << 6 | page), sub, 0xff, 0), 255, 0);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(in[0] + 1u, c.in_len);
    CU_ASSERT_EQUAL(in[3], 0);
}

static const uint8_t p01[12] = {0x01, 0x0a};
static const uint8_t p02[16] = {0x02, 0x0e};
static const uint8_t p08[20] = {0x08, 0x12, 0x04};
static const uint8_t p0a[12] = {0x0a, 0x0a, 0x20, 0x10};
static const uint8_t p0a01[32] = {0x4a, 0x01, 0x00, 0x1c};
static const uint8_t p1c[12] = {0x1c, 0x0a, 0x08};

static void
test_pages(void)
{
    static const struct {
        const uint8_t *p;
        size_t len;
        uint8_t page, sub;
    } pages[] = {{p01, 12, 0x01, 0}, {p02, 16, 0x02, 0},   {p08, 20, 0x08, 0},
                 {p0a, 12, 0x0a, 0}, {p0a01, 32, 0x0a, 1}, {p1c, 12, 0x1c, 0}};
    open_null();
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        for (uint8_t pc = 0; pc <= 2; pc += 2) { /* current and default */
            sense_page(pc, pages[i].page, pages[i].sub);
            CU_ASSERT_EQUAL(c.in_len, 4 + pages[i].len);
            CU_ASSERT_EQUAL(memcmp(in + 4, pages[i].p, pages[i].len), 0);
        }
    }
    sense_page(0, 0x3f, 0);
    CU_ASSERT_EQUAL(c.in_len, 4 + 12 + 16 + 20 + 12 + 12);
    CU_ASSERT(in[4] == 1 && in[16] == 2 && in[32] == 8 && in[52] == 0x0a && in[64] == 0x1c);
    sense_page(0, 0x3f, 0xff);
    CU_ASSERT_EQUAL(c.in_len, 4 + 12 + 16 + 20 + 12 + 32 + 12);
    CU_ASSERT_EQUAL(memcmp(in + 64, p0a01, 32), 0);
    sense_page(0, 0x0a, 0xff);
    CU_ASSERT_EQUAL(c.in_len, 4 + 12 + 32);
    sense_page(0, 0x08, 0xff);
    CU_ASSERT_EQUAL(c.in_len, 4 + 20);
    fake_close(&f);
}

static void
test_changeable(void)
{
    static const uint8_t m08[20] = {0x08, 0x12, 0x04};
    static const uint8_t m0a[12] = {0x0a, 0x0a, 0x04, 0, 0x08};
    static const uint8_t m1c[12] = {0x1c, 0x0a};
    open_null();
    sense_page(1, 0x08, 0);
    CU_ASSERT_EQUAL(memcmp(in + 4, m08, 20), 0);
    sense_page(1, 0x0a, 0);
    CU_ASSERT_EQUAL(memcmp(in + 4, m0a, 12), 0);
    sense_page(1, 0x1c, 0);
    CU_ASSERT_EQUAL(memcmp(in + 4, m1c, 12), 0);
    sense_page(1, 0x0a, 1);
    CU_ASSERT_EQUAL(memcmp(in + 4, p0a01, 32), 0);
    fake_close(&f);
}

static void
test_headers(void)
{
    static const uint8_t six[24] = {23, 0, 0x10, 8, 0, 0, 0x08, 0, 0, 0, 0x02, 0, 0x01, 0x0a};
    static const uint8_t ten[28] = {0, 26,   0, 0x10, 0, 0,    0, 8,    0,
                                    0, 0x08, 0, 0,    0, 0x02, 0, 0x01, 0x0a};
    static const uint8_t llb[36] = {0, 34,   0, 0x10, 1, 0, 0, 16, 0, 0,    0, 0,    0,
                                    0, 0x08, 0, 0,    0, 0, 0, 0,  0, 0x02, 0, 0x01, 0x0a};
    open_null();
    run(CDB(0x1a, 0, 1, 0, 0xff, 0), 255, 0);
    CU_ASSERT(c.in_len == 24 && memcmp(in, six, 24) == 0);
    run(CDB(0x5a, 0, 1, 0, 0, 0, 0, 0, 0xff, 0), 255, 0);
    CU_ASSERT(c.in_len == 28 && memcmp(in, ten, 28) == 0);
    run(CDB(0x5a, 0x10, 1, 0, 0, 0, 0, 0, 0xff, 0), 255, 0);
    CU_ASSERT(c.in_len == 36 && memcmp(in, llb, 36) == 0);
    run(CDB(0x5a, 0x18, 1, 0, 0, 0, 0, 0, 0xff, 0), 255, 0); /* DBD: no LONGLBA either */
    CU_ASSERT(c.in_len == 20 && in[4] == 0 && get_be16(in + 6) == 0);
    run(CDB(0x1a, 0, 1, 0, 3, 0), 255, 0); /* cut: the length tells all */
    CU_ASSERT(c.in_len == 3 && in[0] == 23);
    fake_close(&f);

    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = 1ull << 42}); /* > 2 TiB */
    run(CDB(0x1a, 0, 1, 0, 0xff, 0), 255, 0);
    CU_ASSERT_EQUAL(get_be32(in + 4), 0xffffffff);
    run(CDB(0x5a, 0x10, 1, 0, 0, 0, 0, 0, 0xff, 0), 255, 0);
    CU_ASSERT_EQUAL(get_be64(in + 8), 1ull << 33);
    fake_close(&f);
}

static void
test_sense_errors(void)
{
    open_null();
    run(CDB(0x1a, 8, 0x03, 0, 0xff, 0), 255, 0);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    CU_ASSERT(fake_sense(&c).byte == 2 && fake_sense(&c).bit == 5);
    run(CDB(0x1a, 8, 0x08, 1, 0xff, 0), 255, 0);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    CU_ASSERT(fake_sense(&c).byte == 3 && fake_sense(&c).bit == -1);
    run(CDB(0x1a, 8, 0x3f, 1, 0xff, 0), 255, 0);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    run(CDB(0x1a, 8, 0xc8, 0, 0xff, 0), 255, 0); /* saved values without a store */
    CU_ASSERT(fake_failed(&c, 5, 0x3900));
    fake_close(&f);
}

/* --- MODE SELECT ----------------------------------------------------------------------------- */

static void
select6(uint8_t byte1, const uint8_t *page, size_t len)
{
    memset(out, 0, sizeof out);
    memcpy(out + 4, page, len);
    run(CDB(0x15, byte1, 0, 0, (uint8_t)(4 + len), 0), 0, (uint32_t)(4 + len));
}

static void
bad_parameter(size_t total, unsigned byte, int bit)
{
    run(CDB(0x15, 0x10, 0, 0, (uint8_t)total, 0), 0, (uint32_t)total);
    CU_ASSERT(fake_failed(&c, 5, 0x2600));
    struct fake_sense s = fake_sense(&c);
    CU_ASSERT(s.has_field && !s.in_cdb);
    CU_ASSERT_EQUAL(s.byte, byte);
    CU_ASSERT_EQUAL(s.bit, bit);
}

static struct itn *
second_session(void)
{
    struct itn_params p = {.initiator_name = "iqn.2026-01.example:other",
                           .isid = {0x40, 0, 0, 0, 0, 2},
                           .target_name = "iqn.2026-01.example:target",
                           .tpgt = 1,
                           .budget = &f.budget,
                           .map = f.map};
    struct itn *itn = itn_new(f.w, &p);
    uint16_t asc;
    while (ua_take(itn_nexus(itn, 0), &asc))
        ;
    return itn;
}

static void
test_wce(void)
{
    uint8_t page[20];
    uint16_t asc = 0;
    open_null();
    struct itn *other = second_session();

    memcpy(page, p08, 20);
    page[2] = 0;
    CU_ASSERT(atomic_load(&f.be->write_cache));
    select6(0x10, page, 20);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_FALSE(atomic_load(&f.be->write_cache));
    sense_page(0, 0x08, 0);
    CU_ASSERT_EQUAL(in[6], 0);
    sense_page(2, 0x08, 0);
    CU_ASSERT_EQUAL(in[6], 4);
    CU_ASSERT(ua_take(itn_nexus(other, 0), &asc) && asc == 0x2a01);
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0); /* who did it is not told */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    select6(0x10, page, 20); /* no change: nobody is told */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_FALSE(ua_take(itn_nexus(other, 0), &asc));
    page[0] |= 0x80; /* PS comes back from MODE SENSE: ignored */
    page[2] = 4;
    select6(0x10, page, 20);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT(atomic_load(&f.be->write_cache));
    itn_free(other);
    fake_close(&f);
}

static void
test_swp_d_sense(void)
{
    uint8_t page[12];
    open_null();
    memcpy(page, p0a, 12);
    page[2] |= 4;
    page[4] |= 8;
    select6(0x10, page, 12);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), 0, 512);
    static const uint8_t wp[8] = {0x72, 7, 0x27, 0};
    CU_ASSERT(c.c.status == SAM_CHECK && c.c.sense_len == 8 && memcmp(c.c.sense, wp, 8) == 0);
    sense_page(0, 0x0a, 0);
    CU_ASSERT(in[2] == 0x90 && in[6] == 0x24 && in[8] == 0x08);
    select6(0x10, p0a, 12);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    run(CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0), 0, 512);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    fake_close(&f);
}

static void
test_select10(void)
{
    open_null();
    memset(out, 0, sizeof out);
    out[4] = 1; /* LONGLBA */
    out[7] = 16;
    put_be64(out + 8, 2048);
    put_be32(out + 20, 512);
    memcpy(out + 24, p08, 20);
    out[26] = 0;
    memcpy(out + 44, p0a, 12);
    run(CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, 56, 0), 0, 56);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_FALSE(atomic_load(&f.be->write_cache));
    put_be64(out + 8, 2047); /* another size */
    out[26] = 4;
    run(CDB(0x55, 0x10, 0, 0, 0, 0, 0, 0, 56, 0), 0, 56);
    CU_ASSERT(fake_failed(&c, 5, 0x2600));
    CU_ASSERT_EQUAL(fake_sense(&c).byte, 8);
    CU_ASSERT_FALSE(atomic_load(&f.be->write_cache));
    fake_close(&f);
}

static void
test_all_or_nothing(void)
{
    open_null();
    memset(out, 0, sizeof out);
    memcpy(out + 4, p08, 20);
    out[6] = 0; /* good: cache off */
    memcpy(out + 24, p0a, 12);
    out[24 + 3] = 0; /* QUEUE ALGORITHM MODIFIER cannot change */
    bad_parameter(36, 27, 4);
    CU_ASSERT(atomic_load(&f.be->write_cache));
    sense_page(0, 0x08, 0);
    CU_ASSERT_EQUAL(in[6], 4);
    fake_close(&f);
}

static void
test_select_errors(void)
{
    open_null();
    run(CDB(0x15, 0x10, 0, 0, 0, 0), 0, 0); /* an empty list is none */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    select6(0x00, p08, 20); /* PF=0 */
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    CU_ASSERT(fake_sense(&c).byte == 1 && fake_sense(&c).bit == 4);
    select6(0x11, p08, 20); /* nowhere to save */
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
    CU_ASSERT(fake_sense(&c).byte == 1 && fake_sense(&c).bit == 0);
    memset(out, 0, sizeof out);
    for (uint8_t len = 1; len < 4; len++) {
        run(CDB(0x15, 0x10, 0, 0, len, 0), 0, len);
        CU_ASSERT(fake_failed(&c, 5, 0x1a00));
    }
    for (uint8_t len = 1; len < 20; len++) {
        select6(0x10, p08, len);
        CU_ASSERT(fake_failed(&c, 5, 0x1a00));
    }
    run(CDB(0x15, 0x10, 0, 0, 24, 0), 0, 20); /* less data than the list has */
    CU_ASSERT(fake_failed(&c, 5, 0x0e03));
    memset(out, 0, sizeof out);
    memcpy(out + 4, p08, 20);
    out[1] = 1; /* medium type */
    bad_parameter(24, 1, -1);
    out[1] = 0;
    out[3] = 7; /* block descriptor length */
    bad_parameter(24, 3, -1);
    out[3] = 0;
    out[4] = 0x03; /* no such page */
    bad_parameter(24, 4, 5);
    out[4] = 0x48; /* no such subpage */
    out[5] = 0x01;
    bad_parameter(24, 5, -1);
    out[4] = 0x08;
    out[5] = 0x11; /* length */
    bad_parameter(24, 5, -1);
    out[5] = 0x12;
    out[6] = 0x05; /* RCD */
    bad_parameter(24, 6, 0);
    memset(out, 0, sizeof out);
    out[3] = 8;
    put_be24(out + 9, 4096); /* another block size */
    memcpy(out + 12, p08, 20);
    bad_parameter(32, 9, -1);
    CU_ASSERT(atomic_load(&f.be->write_cache));
    fake_close(&f);
}

static void
test_flush_fails(void)
{
    uint8_t page[20];
    fake_open(&f, &(struct fake_opts){
                      .type = "null", .null_size = 1 << 20, .layers = "error:op=flush,errno=EIO"});
    memcpy(page, p08, 20);
    page[2] = 0;
    select6(0x10, page, 20);
    CU_ASSERT_EQUAL(c.c.status, SAM_CHECK);
    CU_ASSERT(atomic_load(&f.be->write_cache)); /* nothing changed */
    sense_page(0, 0x08, 0);
    CU_ASSERT_EQUAL(in[6], 4);
    fake_close(&f);
}

/* A reset puts the cache on again while MODE SELECT waits for its flush: writes from then on are
 * not covered by it, so WCE=0 must not come of it. */
static void
test_reset_meanwhile(void)
{
    fake_open(&f, &(struct fake_opts){
                      .type = "null", .null_size = 1 << 20, .layers = "delay:op=flush,ms=50"});
    memset(out, 0, sizeof out);
    memcpy(out + 4, p08, 20);
    out[6] = 0;
    fake_init(&f, &c, CDB(0x15, 0x10, 0, 0, 24, 0), in, 0, out, 24);
    fake_submit(&c);
    for (int n = 0; n < 1000 && atomic_load(&f.be->write_cache); n++)
        worker_turn(f.w, false);
    CU_ASSERT_FALSE(atomic_load(&f.be->write_cache)); /* written through while it is flushed */
    CU_ASSERT_FALSE(lun_reset_state(f.lun)); /* it was never off: nothing is owed */
    CU_ASSERT(atomic_load(&f.be->write_cache));
    fake_wait(&f, &c);
    fake_release(&c);
    CU_ASSERT_EQUAL(c.c.status, SAM_CHECK);
    CU_ASSERT(atomic_load(&f.be->write_cache));
    run(CDB(0, 0, 0, 0, 0, 0), 0, 0); /* the reset's unit attention */
    sense_page(0, 0x08, 0);
    CU_ASSERT_EQUAL(in[6], 4);
    fake_close(&f);
}

/* --- saved values ---------------------------------------------------------------------------- */

static struct lun *
unit_with_store(struct cstore *cs, bool write_cache)
{
    struct lun_conf conf = {
        .block_size = 512, .online = true, .write_cache = write_cache, .cstore = cs};
    struct be_opts bo = {.type = "null", .null_size = 1 << 20, .block_size = 512};
    static const uint8_t seed[32] = {7};
    char err[128];
    struct backend *be = be_new(&bo, err, sizeof err);

    CU_ASSERT_EQUAL_FATAL(be_open(be), 0);
    lun_ident_default(&conf.ident, seed, "saved");
    struct lun *lun = lun_new(&conf, be, err, sizeof err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(lun);
    return lun;
}

static void
drop(struct lun *lun)
{
    be_close(lun_backend(lun));
    lun_put(lun);
}

static void
test_saved(void)
{
    char dir[] = "/tmp/evtgt-mode-XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    struct cstore *cs = cstore_open_dir(dir);
    CU_ASSERT_PTR_NOT_NULL_FATAL(cs);
    open_null();
    struct lun *lun = unit_with_store(cs, true);
    struct lun_map *map = lun_map_new(&(struct lun_map_entry){0, lun}, 1);
    uint8_t page[20];

    itn_set_map(f.itn, map);
    lun_map_put(map);
    for (int i = 0; i < 2; i++)
        run(CDB(0, 0, 0, 0, 0, 0), 0, 0);
    sense_page(0, 0x08, 0);
    CU_ASSERT(in[4] == 0x88 && in[6] == 4); /* PS */
    sense_page(0, 0x1c, 0);
    CU_ASSERT_EQUAL(in[4], 0x1c);
    memcpy(page, p08, 20);
    page[2] = 0;
    select6(0x11, page, 20);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    sense_page(3, 0x08, 0);
    CU_ASSERT_EQUAL(in[6], 0);
    page[2] = 4;
    select6(0x10, page, 20); /* current only */
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    sense_page(3, 0x08, 0);
    CU_ASSERT_EQUAL(in[6], 0);
    sense_page(0, 0x08, 0);
    CU_ASSERT_EQUAL(in[6], 4);

    struct lun *again = unit_with_store(cs, true); /* a restart */
    CU_ASSERT_FALSE(again->cur.wce);
    CU_ASSERT_FALSE(atomic_load(&lun_backend(again)->write_cache));
    drop(again);

    page[2] = 4;
    cstore_fail_after(cs, 0);
    select6(0x11, page, 20); /* cannot be saved: not done */
    CU_ASSERT(fake_failed(&c, 4, 0x4400));
    sense_page(3, 0x08, 0);
    CU_ASSERT_EQUAL(in[6], 0);
    cstore_fail_after(cs, -1);
    again = unit_with_store(cs, false); /* the configuration changed, too: same here */
    CU_ASSERT_FALSE(again->cur.wce);
    drop(again);

    /* saved as "on" while the configuration says "on", then configured "off": off */
    select6(0x11, page, 20);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    again = unit_with_store(cs, false);
    CU_ASSERT_FALSE(again->cur.wce);
    drop(again);

    /* aborted while it is being made durable: silent, and the store and the unit agree */
    page[2] = 0;
    memset(out, 0, sizeof out);
    memcpy(out + 4, page, 20);
    fake_init(&f, &c, CDB(0x15, 0x11, 0, 0, 24, 0), NULL, 0, out, 24);
    c.now = true;
    fake_submit(&c);
    while (c.c.phase != PH_PARKED)
        worker_turn(f.w, true);
    scsi_abort(&c.c);
    fake_wait(&f, &c);
    CU_ASSERT(c.c.aborted);
    fake_release(&c);
    while (lun->mode_busy != NULL)
        worker_turn(f.w, true);
    again = unit_with_store(cs, true);
    CU_ASSERT_EQUAL(again->saved.wce, lun->saved.wce);
    drop(again);

    itn_set_map(f.itn, f.map);
    drop(lun);
    fake_close(&f);
    cstore_close(cs);
    char cmd[64];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    CU_ASSERT_EQUAL(system(cmd), 0);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"pages", test_pages},
        {"changeable values", test_changeable},
        {"headers and descriptors", test_headers},
        {"MODE SENSE errors", test_sense_errors},
        {"write cache", test_wce},
        {"write protection, sense format", test_swp_d_sense},
        {"MODE SELECT(10)", test_select10},
        {"all or nothing", test_all_or_nothing},
        {"MODE SELECT errors", test_select_errors},
        {"the flush fails", test_flush_fails},
        {"a reset while it flushes", test_reset_meanwhile},
        {"saved values", test_saved},
    };
    return UNIT_RUN("scsi-mode", tests);
}
