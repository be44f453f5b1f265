/* SPDX-License-Identifier: BSD-2-Clause */
/* Data-In: lengths, bursts, offsets, numbers, residuals, status (RFC 7143 11.4, 11.7). */
#include "config.h"

#include "tgt_fake.h"

#define IMAGE "test-datain.img"

static struct tf f;
static struct tf_conn i;

static void
begin(uint32_t max_xmit, uint32_t max_burst)
{
    tf_open(&f, &(struct tf_opts){.path = IMAGE});
    f.res.cp.max_xmit = max_xmit;
    f.res.sp.max_burst = max_burst;
    uint8_t *p = xmalloc(4 << 20);
    tf_pattern(p, 4 << 20, 5);
    int fd = open(IMAGE, O_WRONLY);
    CU_ASSERT_EQUAL_FATAL(write(fd, p, 4 << 20), 4 << 20);
    close(fd);
    free(p);
    tf_connect(&f, &i);
    tf_ready(&f, &i);
}

static void
end(void)
{
    tf_close(&f);
    close(i.fd);
    unlink(IMAGE);
}

/* A read of nblk blocks: every rule of its Data-Ins. */
static void
check_read(uint32_t nblk, uint32_t max_xmit, uint32_t max_burst)
{
    uint32_t len = nblk * 512, off = 0, burst = 0, sn = 0;
    uint8_t cdb[16];
    uint8_t *want = xmalloc(4 << 20);
    tf_pattern(want, 4 << 20, 5);
    uint32_t stat_sn = i.c->stat_sn;
    tf_rw_cdb(cdb, false, 0, (uint16_t)nblk);
    uint32_t itt = tf_cmd(&f, &i, TF_READ, len, cdb, NULL, 0);
    while (off < len) {
        struct tf_pdu *p = tf_expect(&f, &i, OPC_DATA_IN);
        bool last = off + p->len == len, final = p->bhs[1] & 0x80;
        CU_ASSERT_EQUAL(get_be32(p->bhs + 16), itt);
        CU_ASSERT_EQUAL(get_be32(p->bhs + 20), TAG_RESERVED);
        CU_ASSERT_EQUAL(get_be32(p->bhs + 36), sn++);
        CU_ASSERT_EQUAL(get_be32(p->bhs + 40), off);
        CU_ASSERT_FATAL(p->len > 0 && p->len <= max_xmit && off + p->len <= len);
        burst += p->len;
        CU_ASSERT_TRUE(burst <= max_burst);
        CU_ASSERT_EQUAL(final, last || burst == max_burst);
        CU_ASSERT_TRUE(final || p->len % 4 == 0);
        CU_ASSERT_EQUAL(p->bhs[1] & 1, last);
        CU_ASSERT_EQUAL(get_be32(p->bhs + 24), last ? stat_sn : 0);
        CU_ASSERT_EQUAL(get_be32(p->bhs + 44), 0);
        CU_ASSERT_EQUAL(memcmp(p->data, want + off, p->len), 0);
        if (final)
            burst = 0;
        off += p->len;
        free(p);
    }
    CU_ASSERT_TRUE(tf_is_silent(&f, &i)); /* no SCSI Response after the S bit */
    CU_ASSERT_EQUAL(i.c->stat_sn, stat_sn + 1);
    free(want);
}

static void
test_lengths(void)
{
    static const struct {
        uint32_t xmit, burst;
    } sizes[] = {{512, 512},       {512, 1024},    {1022, 8192},
                 {1022, 1025},     {8192, 262144}, {65536, 65536},
                 {262144, 262144}, {1048576, 777}, {0xffffff, 0xffffff}};
    static const uint32_t blocks[] = {1, 2, 17, 64, 127, 256};
    for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        begin(sizes[s].xmit, sizes[s].burst);
        for (unsigned b = 0; b < sizeof blocks / sizeof blocks[0]; b++)
            check_read(blocks[b], sizes[s].xmit, sizes[s].burst);
        end();
    }
}

/* Longer than one window. */
static void
test_windows(void)
{
    begin(262144, 1 << 20);
    check_read(8192, 262144, 1 << 20);
    end();
    begin(8192, 262144);
    check_read(6000, 8192, 262144);
    end();
}

static void
test_digests(void)
{
    tf_open(&f, &(struct tf_opts){.path = IMAGE});
    f.res.cp.header_digest = f.res.cp.data_digest = true;
    f.res.cp.max_xmit = 8192;
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    uint8_t zero[65536] = {0};
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, zero, sizeof zero));
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, zero, 512));
    /* odd lengths are padded, the digest covers the padding */
    for (uint8_t n = 1; n < 9; n++) {
        tf_cmd(&f, &i, TF_READ, 255, CDB(0x12, 0, 0, 0, n), NULL, 0);
        struct tf_pdu *p = tf_expect(&f, &i, OPC_DATA_IN);
        CU_ASSERT_EQUAL(p->len, n);
        CU_ASSERT_EQUAL(p->bhs[1], 0x83);
        CU_ASSERT_EQUAL(get_be32(p->bhs + 44), 255u - n);
        free(p);
    }
    end();
}

static void
test_residuals(void)
{
    uint8_t cdb[16];
    begin(262144, 262144);
    /* underflow: INQUIRY gives less than was expected */
    uint32_t itt = tf_cmd(&f, &i, TF_READ, 4096, CDB(0x12, 0, 0, 0, 36), NULL, 0);
    struct tf_pdu *p = tf_expect(&f, &i, OPC_DATA_IN);
    CU_ASSERT_EQUAL(p->bhs[1], 0x83);
    CU_ASSERT_EQUAL(p->len, 36);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 44), 4060);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 16), itt);
    free(p);
    /* overflow: a read of four blocks with room for two */
    tf_rw_cdb(cdb, false, 0, 4);
    tf_cmd(&f, &i, TF_READ, 1024, cdb, NULL, 0);
    p = tf_expect(&f, &i, OPC_DATA_IN);
    CU_ASSERT_EQUAL(p->bhs[1], 0x85);
    CU_ASSERT_EQUAL(p->len, 1024);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 44), 1024);
    free(p);
    /* no room at all: READ CAPACITY(10) with nothing expected */
    itt = tf_cmd(&f, &i, TF_NODATA, 0, CDB(0x25), NULL, 0);
    p = tf_expect(&f, &i, OPC_SCSI_RSP);
    CU_ASSERT_EQUAL(p->bhs[1], 0x84);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 44), 8);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 36), 0);
    free(p);
    /* a huge promise costs nothing */
    tf_rw_cdb(cdb, false, 0, 1);
    tf_cmd(&f, &i, TF_READ, 0xffffffff, cdb, NULL, 0);
    p = tf_expect(&f, &i, OPC_DATA_IN);
    CU_ASSERT_EQUAL(p->bhs[1], 0x83);
    CU_ASSERT_EQUAL(p->len, 512);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 44), 0xffffffff - 512);
    free(p);
    end();
}

static void
test_check_condition(void)
{
    uint8_t cdb[16];
    uint16_t asc;
    begin(262144, 262144);
    tf_rw_cdb(cdb, false, 0x7fffffff, 1);
    uint32_t itt = tf_cmd(&f, &i, TF_READ, 512, cdb, NULL, 0);
    struct tf_pdu *p = tf_expect(&f, &i, OPC_SCSI_RSP);
    CU_ASSERT_EQUAL(p->bhs[1], 0x82);
    CU_ASSERT_EQUAL(p->bhs[2], 0);
    CU_ASSERT_EQUAL(p->bhs[3], SAM_CHECK);
    CU_ASSERT_EQUAL(get_be16(p->data), p->len - 2);
    CU_ASSERT_EQUAL(get_be16(p->data + 14), 0x2100);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 44), 512);
    free(p);
    itt = tf_cmd(&f, &i, TF_NODATA, 0, CDB(0xff), NULL, 0);
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, &asc), SAM_CHECK);
    CU_ASSERT_EQUAL(asc, 0x2000);
    /* both directions: not offered */
    itt = tf_cmd(&f, &i, TF_READ | TF_WRITE, 512, cdb, NULL, 0);
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, &asc), SAM_CHECK);
    CU_ASSERT_EQUAL(asc, 0x0e03);
    end();
}

/* Eight reads at once come whole and each with its own tag; a connection lost in the middle of
 * large ones leaves nothing behind. */
static void
test_depth_and_loss(void)
{
    uint8_t cdb[16];
    uint32_t got[16] = {0};
    begin(65536, 262144);
    tf_rw_cdb(cdb, false, 0, 512);
    uint32_t first = i.itt;
    for (int k = 0; k < 8; k++)
        tf_cmd(&f, &i, TF_READ, 262144, cdb, NULL, 0);
    for (int done = 0; done < 8;) {
        struct tf_pdu *p = tf_expect(&f, &i, OPC_DATA_IN);
        uint32_t k = get_be32(p->bhs + 16) - first;
        CU_ASSERT_FATAL(k < 8);
        CU_ASSERT_EQUAL(get_be32(p->bhs + 40), got[k]);
        got[k] += p->len;
        done += p->bhs[1] & 1;
        free(p);
    }
    tf_rw_cdb(cdb, false, 0, 8192);
    for (int k = 0; k < 8; k++)
        tf_cmd(&f, &i, TF_READ, 4 << 20, cdb, NULL, 0);
    tf_hangup(&f, &i);
    CU_ASSERT_TRUE(list_is_empty(&tgt_here()->sessions));
    CU_ASSERT_TRUE(list_is_empty(&tgt_here()->conns));
    tf_close(&f); /* pools are empty, or it aborts */
    unlink(IMAGE);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"lengths and bursts", test_lengths},
        {"windows", test_windows},
        {"digests", test_digests},
        {"residuals", test_residuals},
        {"CHECK CONDITION", test_check_condition},
        {"depth, and a lost connection", test_depth_and_loss},
    };
    return UNIT_RUN("datain", tests);
}
