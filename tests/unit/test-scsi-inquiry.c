/* SPDX-License-Identifier: BSD-2-Clause */
/* INQUIRY, vital product data, REPORT SUPPORTED OPERATION CODES, identities: bytes by hand from
 * SPC-4 and SBC-3. */
#include <openssl/evp.h>

#include "tests/unit/scsi_fake.h"
#include "tests/unit/unit.h"

static struct fake f;
static struct fcmd c;
static uint8_t in[65536];

static void
run(const uint8_t *cdb, size_t len, uint32_t exp_in)
{
    memset(in, 0xaa, sizeof in);
    fake_run(&f, &c, cdb, len, in, exp_in, NULL, 0);
    fake_release(&c);
}

static void
vpd(uint8_t page)
{
    run(CDB(0x12, 1, page, 0x0f, 0xff, 0), 4095);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT_EQUAL(in[1], page);
    CU_ASSERT_EQUAL(c.in_len, get_be16(in + 2) + 4u);
}

static void
open_null(bool thin)
{
    fake_open(&f, &(struct fake_opts){.type = "null", .null_size = 1 << 20, .thin = thin});
}

static void
update(void (*change)(struct lun_conf *conf))
{
    struct lun_conf conf = *lun_conf(f.lun);
    char err[128];

    change(&conf);
    CU_ASSERT_EQUAL(lun_update(f.lun, &conf, err, sizeof err), 0);
    do
        run(CDB(0, 0, 0, 0, 0, 0), 0);
    while (c.c.status != SAM_GOOD);
}

static void
test_standard(void)
{
    static const uint8_t want[96] = {
        0x00, 0x00, 0x06, 0x12, 91,   0,    0,    0x02, 'E',  'V',  'T', 'G', 'T', ' ',
        ' ',  ' ',  'V',  'I',  'R',  'T',  'U',  'A',  'L',  '-',  'D', 'I', 'S', 'K',
        ' ',  ' ',  ' ',  ' ',  '0',  '0',  '0',  '1',  0,    0,    0,   0,   0,   0,
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,   0,   0,   0,
        0,    0,    0x00, 0xa0, 0x04, 0x60, 0x04, 0xc0, 0x09, 0x60,
    };
    open_null(false);
    run(CDB(0x12, 0, 0, 0, 0xff, 0), 255);
    CU_ASSERT_EQUAL(c.in_len, 96);
    CU_ASSERT_EQUAL(memcmp(in, want, 96), 0);
    for (uint8_t n = 0; n <= 96; n++) {
        run(CDB(0x12, 0, 0, 0, n, 0), 255);
        CU_ASSERT(c.in_len == n && memcmp(in, want, n) == 0 && in[n] == 0xaa);
    }
    fake_close(&f);
}

static void
percent_names(struct lun_conf *conf)
{
    snprintf(conf->vendor_id, sizeof conf->vendor_id, "%s", "%s%n%d%x");
    snprintf(conf->product_id, sizeof conf->product_id, "%s", "%s%s%s%s%s%s%n%n");
    snprintf(conf->product_rev, sizeof conf->product_rev, "%s", "%n");
    conf->removable = true;
}

static void
test_names(void)
{
    char err[128] = "";
    open_null(false);
    update(percent_names);
    run(CDB(0x12, 0, 0, 0, 0xff, 0), 255);
    CU_ASSERT_EQUAL(in[1], 0x80);
    CU_ASSERT_EQUAL(memcmp(in + 8, "%s%n%d%x%s%s%s%s%s%s%n%n%n  ", 28), 0);
    struct lun_conf conf = *lun_conf(f.lun);
    snprintf(conf.vendor_id, sizeof conf.vendor_id, "%s", "A\nB");
    CU_ASSERT(lun_update(f.lun, &conf, err, sizeof err) < 0 && err[0] != '\0');
    CU_ASSERT_STRING_EQUAL(lun_conf(f.lun)->vendor_id, "%s%n%d%x");
    fake_close(&f);
}

static void
fixed_ids(struct lun_conf *conf)
{
    static const uint8_t naa[8] = {0x50, 1, 2, 3, 4, 5, 6, 0xaf};
    static const uint8_t eui[8] = {0xe0, 1, 2, 3, 4, 5, 6, 7};

    memset(&conf->ident, 0, sizeof conf->ident);
    memcpy(conf->ident.naa, naa, 8);
    conf->ident.naa_len = 8;
    memcpy(conf->ident.eui, eui, 8);
    conf->ident.eui_len = 8;
    snprintf(conf->ident.t10_id, sizeof conf->ident.t10_id, "%s", "IET 00010001");
    snprintf(conf->ident.serial, sizeof conf->ident.serial, "%s", "beaf11");
}

static void
test_ids(void)
{
    static const char port[] = "iqn.2026-01.example:target,t,0x0001";
    static const char target[] = "iqn.2026-01.example:target";
    static const uint8_t serial[] = {0, 0x80, 0, 6, 'b', 'e', 'a', 'f', '1', '1'};
    uint8_t want[512];
    struct wcur w = wcur_init(want, sizeof want);

    open_null(false);
    update(fixed_ids);
    vpd(0x80);
    CU_ASSERT(c.in_len == 10 && memcmp(in, serial, 10) == 0);

    wcur_bytes(&w, (const uint8_t[]){1, 3, 0, 8, 0x50, 1, 2, 3, 4, 5, 6, 0xaf}, 12);
    wcur_bytes(&w, (const uint8_t[]){1, 2, 0, 8, 0xe0, 1, 2, 3, 4, 5, 6, 7}, 12);
    wcur_bytes(&w, (const uint8_t[]){2, 1, 0, 20}, 4);
    wcur_bytes(&w, "EVTGT   IET 00010001", 20);
    wcur_bytes(&w, (const uint8_t[]){3, 8, 0, 24}, 4);
    wcur_bytes(&w, "naa.50010203040506AF\0\0\0", 24);
    wcur_bytes(&w, (const uint8_t[]){0x51, 0x94, 0, 4, 0, 0, 0, 1}, 8);
    wcur_bytes(&w, (const uint8_t[]){0x53, 0x98, 0, 36}, 4); /* 35 characters and NUL */
    wcur_bytes(&w, port, 36);
    wcur_bytes(&w, (const uint8_t[]){0x53, 0xa8, 0, 28}, 4); /* 26, NUL, padding */
    wcur_bytes(&w, target, 27);
    wcur_u8(&w, 0);
    vpd(0x83);
    CU_ASSERT_EQUAL(c.in_len, w.len + 4);
    CU_ASSERT_EQUAL(memcmp(in + 4, want, w.len), 0);
    fake_close(&f);
}

static void
test_page_list(void)
{
    static const uint8_t want[11] = {0, 0, 0, 7, 0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2};
    open_null(false);
    vpd(0);
    CU_ASSERT(c.in_len == 11 && memcmp(in, want, 11) == 0);
    for (unsigned page = 1; page < 256; page++) {
        run(CDB(0x12, 1, (uint8_t)page, 0, 0xff, 0), 255);
        bool listed = memchr(want + 4, (int)page, 7) != NULL;
        CU_ASSERT_EQUAL(c.c.status, listed ? SAM_GOOD : SAM_CHECK);
    }
    fake_close(&f);
}

static void
test_extended(void)
{
    uint8_t want[64] = {0, 0x86, 0, 60, 0, 0x07, 0x01, 0x01};
    open_null(false);
    vpd(0x86);
    CU_ASSERT(c.in_len == 64 && memcmp(in, want, 64) == 0);
    fake_close(&f);
}

static void
limits(struct lun_conf *conf)
{
    conf->opt_xfer_gran = 8;
    conf->opt_xfer_len = 2048;
    conf->rotation_rate = 7200;
}

static void
test_block_pages(void)
{
    open_null(false);
    update(limits);
    vpd(0xb0);
    CU_ASSERT_EQUAL(c.in_len, 64);
    CU_ASSERT_EQUAL(in[4], 1); /* WSNZ */
    CU_ASSERT_EQUAL(in[5], 0); /* COMPARE AND WRITE */
    CU_ASSERT_EQUAL(get_be16(in + 6), 8);
    CU_ASSERT_EQUAL(get_be32(in + 8), 65536);
    CU_ASSERT_EQUAL(get_be32(in + 12), 2048);
    CU_ASSERT_EQUAL(get_be32(in + 20), 0); /* no UNMAP */
    CU_ASSERT_EQUAL(get_be32(in + 24), 0);
    CU_ASSERT_EQUAL(get_be32(in + 28), 0);
    CU_ASSERT_EQUAL(get_be32(in + 32), 0);
    CU_ASSERT_EQUAL(get_be64(in + 36), 8388608); /* 4 GiB */
    vpd(0xb1);
    CU_ASSERT_EQUAL(c.in_len, 64);
    CU_ASSERT_EQUAL(get_be16(in + 4), 7200);
    static const uint8_t thick[8] = {0, 0xb2, 0, 4, 0, 0, 0, 0};
    vpd(0xb2);
    CU_ASSERT(c.in_len == 8 && memcmp(in, thick, 8) == 0);
    run(CDB(0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0), 32);
    CU_ASSERT_EQUAL(in[14], 0);
    fake_close(&f);
}

static void
test_thin_pages(void)
{
    char path[] = "/tmp/evtgt-scsi-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, 1 << 20) == 0);
    close(fd);
    fake_open(&f, &(struct fake_opts){.type = "fileio", .path = path, .thin = true});
    if (lun_is_thin(f.lun)) { /* the file system of /tmp can punch holes */
        vpd(0xb2);
        CU_ASSERT(in[5] == 0xe4 && in[6] == 2);
        vpd(0xb0);
        CU_ASSERT_EQUAL(get_be32(in + 20), (1u << 29) / 512);
        CU_ASSERT_EQUAL(get_be32(in + 24), 256);
        CU_ASSERT(get_be32(in + 28) >= 1);
        run(CDB(0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0), 32);
        CU_ASSERT_EQUAL(in[14] & 0xc0, 0xc0);
        run(CDB(0xa3, 0x0c, 1, 0x42, 0, 0, 0, 0, 0, 64, 0, 0), 64);
        CU_ASSERT_EQUAL(in[1], 3);
    }
    fake_close(&f);
    unlink(path);
}

/* --- REPORT SUPPORTED OPERATION CODES -------------------------------------------------------- */

/* Operation code, service action + 1 (0: none), CDB length: a thin unit has all. */
static const uint8_t all_ops[][3] = {
    {0x00, 0, 6},     {0x03, 0, 6},     {0x08, 0, 6},  {0x0a, 0, 6},     {0x12, 0, 6},
    {0x15, 0, 6},     {0x16, 0, 6},     {0x17, 0, 6},  {0x1a, 0, 6},     {0x1b, 0, 6},
    {0x1e, 0, 6},     {0x25, 0, 10},    {0x28, 0, 10}, {0x2a, 0, 10},    {0x2e, 0, 10},
    {0x2f, 0, 10},    {0x34, 0, 10},    {0x35, 0, 10}, {0x41, 0, 10},    {0x55, 0, 10},
    {0x56, 0, 10},    {0x57, 0, 10},    {0x5a, 0, 10}, {0x88, 0, 16},    {0x8a, 0, 16},
    {0x8e, 0, 16},    {0x8f, 0, 16},    {0x90, 0, 16}, {0x91, 0, 16},    {0x93, 0, 16},
    {0x9e, 0x11, 16}, {0x9e, 0x13, 16}, {0xa0, 0, 12}, {0xa3, 0x0d, 12}, {0xa3, 0x0e, 12},
    {0xa8, 0, 12},    {0xaa, 0, 12},    {0xae, 0, 12}, {0xaf, 0, 12},
};
#define N_OPS (sizeof all_ops / sizeof all_ops[0])

static void
test_rsoc_all(void)
{
    open_null(false); /* UNMAP is withdrawn */
    run(CDB(0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0), 65535);
    CU_ASSERT_EQUAL(get_be32(in), N_OPS * 8);
    CU_ASSERT_EQUAL(c.in_len, 4 + N_OPS * 8);
    for (unsigned i = 0; i < N_OPS; i++) {
        const uint8_t *d = in + 4 + i * 8, *o = all_ops[i];
        CU_ASSERT_EQUAL(d[0], o[0]);
        CU_ASSERT_EQUAL(get_be16(d + 2), o[1] != 0 ? o[1] - 1 : 0);
        CU_ASSERT_EQUAL(d[5], o[1] != 0 ? 1 : 0);
        CU_ASSERT_EQUAL(get_be16(d + 6), o[2]);
    }
    run(CDB(0xa3, 0x0c, 0x80, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0), 65535);
    CU_ASSERT_EQUAL(get_be32(in), N_OPS * 20);
    CU_ASSERT(in[4 + 5] == 2 && get_be16(in + 12) == 0x0a);
    CU_ASSERT(in[4 + 20 * 2] == 0x08 && get_be32(in + 4 + 20 * 2 + 16) == 30);
    run(CDB(0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0), 65535);
    CU_ASSERT(c.in_len == 10 && get_be32(in) == N_OPS * 8);
    fake_close(&f);
}

static void
one(uint8_t form, uint8_t opcode, uint16_t sa, const uint8_t *want, uint32_t len)
{
    run(CDB(0xa3, 0x0c, form, opcode, (uint8_t)(sa >> 8), (uint8_t)sa, 0, 0, 0, 255, 0, 0), 255);
    CU_ASSERT_EQUAL(c.c.status, SAM_GOOD);
    CU_ASSERT(c.in_len == len && memcmp(in, want, len) == 0);
}

static void
refused(uint8_t form, uint8_t opcode, uint16_t sa)
{
    run(CDB(0xa3, 0x0c, form, opcode, (uint8_t)(sa >> 8), (uint8_t)sa, 0, 0, 0, 255, 0, 0), 255);
    CU_ASSERT(fake_failed(&c, 5, 0x2400));
}

static void
test_rsoc_one(void)
{
    static const uint8_t none[4] = {0, 1, 0, 0};
    static const uint8_t read10[14] = {0,    3,    0,    10, 0x28, 0x18, 0xff,
                                       0xff, 0xff, 0xff, 0,  0xff, 0xff, 0};
    static const uint8_t read10_t[26] = {0,    0x83, 0,    10,   0x28, 0x18, 0xff, 0xff, 0xff,
                                         0xff, 0,    0xff, 0xff, 0,    0,    10,   0,    0,
                                         0,    0,    0,    0,    0,    0,    0,    30};
    static const uint8_t same16[20] = {0,    3,    0,    16,   0x93, 0x01, 0xff, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0,    0};
    static const uint8_t rsoc[16] = {0,    3,    0,    12,   0xa3, 0x0c, 0x87, 0xff,
                                     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0,    0};
    open_null(false);
    one(1, 0x28, 0, read10, 14);
    one(0x81, 0x28, 0, read10_t, 26);
    one(3, 0x28, 0, read10, 14);
    one(3, 0x28, 1, none, 4);
    one(1, 0x93, 0, same16, 20); /* without the UNMAP bit */
    one(1, 0x42, 0, none, 4);    /* not thin */
    one(2, 0xa3, 0x0c, rsoc, 16);
    one(3, 0xa3, 0x0c, rsoc, 16);
    one(2, 0xa3, 0x0a, none, 4);
    one(2, 0xa3, 0x10c, none, 4);
    one(1, 0x89, 0, none, 4);
    one(2, 0x5e, 0, none, 4);
    refused(1, 0xa3, 0);
    refused(2, 0x28, 0);
    refused(4, 0x28, 0);
    fake_close(&f);
}

static void
test_tmfs(void)
{
    static const uint8_t want[16] = {0xd8, 0, 0, 0x0c};
    open_null(false);
    run(CDB(0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0), 4);
    CU_ASSERT(c.in_len == 4 && get_be32(in) == 0xd8000000);
    run(CDB(0xa3, 0x0d, 0x80, 0, 0, 0, 0, 0, 0, 32, 0, 0), 32);
    CU_ASSERT(c.in_len == 16 && memcmp(in, want, 16) == 0);
    f.itn->queries = true;
    run(CDB(0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0), 4);
    CU_ASSERT(c.in_len == 4 && get_be32(in) == 0xdc070000);
    fake_close(&f);
}

/* --- default identities ---------------------------------------------------------------------- */

static void
test_identity(void)
{
    static const uint8_t host_a[32] = {1}, host_b[32] = {2};
    struct lun_ident a, b, again;

    lun_ident_default(&a, host_a, "/srv/disk1");
    lun_ident_default(&again, host_a, "/srv/disk1");
    CU_ASSERT_EQUAL(memcmp(&a, &again, sizeof a), 0);
    CU_ASSERT(a.naa_len == 8 && a.naa[0] >> 4 == 3 && a.eui_len == 0);
    CU_ASSERT_EQUAL(strlen(a.serial), 32);
    CU_ASSERT_EQUAL(strlen(a.t10_id), 32);
    lun_ident_default(&b, host_b, "/srv/disk1"); /* another host */
    CU_ASSERT_NOT_EQUAL(memcmp(a.naa, b.naa, 8), 0);
    CU_ASSERT_STRING_NOT_EQUAL(a.serial, b.serial);
    /* target 1 unit 11 and target 11 unit 1 are two stores: the numbers do not matter */
    lun_ident_default(&b, host_a, "/srv/disk11");
    CU_ASSERT_NOT_EQUAL(memcmp(a.naa, b.naa, 8), 0);
    CU_ASSERT_STRING_NOT_EQUAL(a.serial, b.serial);
    /* seed and store cannot run into each other: the seed has a fixed length */
    lun_ident_default(&b, host_a, "");
    CU_ASSERT_STRING_NOT_EQUAL(a.serial, b.serial);
    /* the bytes themselves: SHA-256 of 01 00*31 "/srv/disk1" */
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    uint8_t h[32];
    CU_ASSERT_FATAL(
        EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1 && EVP_DigestUpdate(ctx, host_a, 32) == 1 &&
        EVP_DigestUpdate(ctx, "/srv/disk1", 10) == 1 && EVP_DigestFinal_ex(ctx, h, NULL) == 1);
    EVP_MD_CTX_free(ctx);
    CU_ASSERT_EQUAL(memcmp(a.naa + 1, h + 1, 7), 0);
}

static void
test_bad_conf(void)
{
    struct lun_conf conf = {.block_size = 512, .online = true};
    char err[128];
    struct be_opts bo = {.type = "null", .null_size = 1 << 20, .block_size = 4096};
    struct backend *be = be_new(&bo, err, sizeof err);
    CU_ASSERT_EQUAL_FATAL(be_open(be), 0);

    CU_ASSERT_PTR_NULL(lun_new(&conf, be, err, sizeof err)); /* no identifier */
    static const uint8_t seed[32] = {0};
    lun_ident_default(&conf.ident, seed, "x");
    static const uint32_t bad[] = {0, 1, 511, 513, 1024, 2048, 8192};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        conf.block_size = bad[i];
        CU_ASSERT_PTR_NULL(lun_new(&conf, be, err, sizeof err));
    }
    struct be_info info;
    be_info(be, &info);
    if (info.block_size == 4096) {
        conf.block_size = 512;
        CU_ASSERT_PTR_NULL(lun_new(&conf, be, err, sizeof err));
    }
    conf.block_size = 4096;
    struct lun *lun = lun_new(&conf, be_get(be), err, sizeof err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(lun);
    CU_ASSERT_STRING_EQUAL(lun_conf(lun)->vendor_id, "EVTGT");
    CU_ASSERT_STRING_EQUAL(lun_conf(lun)->product_id, "VIRTUAL-DISK");
    conf.block_size = 512;
    CU_ASSERT(lun_update(lun, &conf, err, sizeof err) < 0);
    lun_put(lun);
    be_close(be);
    be_put(be);
}

static void
test_lun_field(void)
{
    uint8_t b[8];
    static const unsigned numbers[] = {0, 1, 255, 256, 1000, 16383};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        lun_encode((uint16_t)numbers[i], b);
        CU_ASSERT_EQUAL(lun_decode(b), (int)numbers[i]);
    }
    lun_encode(256, b);
    CU_ASSERT(b[0] == 0x41 && b[1] == 0x00);
    CU_ASSERT_EQUAL(lun_decode((const uint8_t[8]){0x40, 0x05}), 5);
    CU_ASSERT_EQUAL(lun_decode((const uint8_t[8]){0x80, 0x05}), -1);
    CU_ASSERT_EQUAL(lun_decode((const uint8_t[8]){0xc1, 0x01}), -1);
}

static void
count_line(const char *s, void *arg)
{
    CU_ASSERT_EQUAL(s[0], '|');
    ++*(unsigned *)arg;
}

static void
test_dump(void)
{
    unsigned lines = 0;
    scsi_ops_dump(count_line, &lines);
    CU_ASSERT_EQUAL(lines, 2 + N_OPS + 1); /* UNMAP */
    CU_ASSERT_STRING_EQUAL(scsi_op_name(0x9e, 0x12), "GET LBA STATUS");
    CU_ASSERT_STRING_EQUAL(scsi_op_name(0x9e, 0x13), "?");
    CU_ASSERT_STRING_EQUAL(scsi_op_name(0x28, SA_NONE), "READ(10)");
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"standard data", test_standard},        {"names", test_names},
        {"identification pages", test_ids},      {"page list", test_page_list},
        {"extended inquiry", test_extended},     {"block pages", test_block_pages},
        {"thin pages", test_thin_pages},         {"operation codes, all", test_rsoc_all},
        {"operation codes, one", test_rsoc_one}, {"task management functions", test_tmfs},
        {"default identity", test_identity},     {"bad configuration", test_bad_conf},
        {"LUN field", test_lun_field},           {"table dump", test_dump},
    };
    return UNIT_RUN("scsi-inquiry", tests);
}
