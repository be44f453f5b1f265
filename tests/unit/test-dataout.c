/* SPDX-License-Identifier: BSD-2-Clause */
/* Data-out: immediate, unsolicited, solicited, and everything an initiator can do wrong with them
 * (RFC 7143 4.2.5.2, 11.4.2, 11.7, 11.8). */
#include "config.h"

#include "tgt_fake.h"

#define IMAGE "test-dataout.img"

static struct tf f;
static struct tf_conn i;
static uint8_t data[1 << 20], zero[1 << 20];

static void
begin(bool initial_r2t, bool immediate, uint32_t first, uint32_t burst, uint32_t max_r2t)
{
    tf_open(&f, &(struct tf_opts){.path = IMAGE});
    f.res.sp.initial_r2t = initial_r2t;
    f.res.sp.immediate_data = immediate;
    f.res.sp.first_burst = first;
    f.res.sp.max_burst = burst;
    f.res.sp.max_r2t = max_r2t;
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    tf_pattern(data, sizeof data, 11);
}

static void
end(void)
{
    tf_close(&f);
    close(i.fd);
    unlink(IMAGE);
}

static uint32_t
write_cmd(uint32_t lba, uint32_t len, bool final, uint32_t imm)
{
    uint8_t cdb[16];
    tf_rw_cdb(cdb, true, lba, (uint16_t)(len / 512));
    return tf_cmd(&f, &i, final ? TF_WRITE : TF_WRITE & ~TF_FINAL, len, cdb, data, imm);
}

struct asked {
    uint32_t ttt, off, len;
};

static struct asked
expect_r2t(uint32_t itt, uint32_t sn)
{
    struct tf_pdu *p = tf_expect(&f, &i, OPC_R2T);
    struct asked a = {get_be32(p->bhs + 20), get_be32(p->bhs + 40), get_be32(p->bhs + 44)};
    CU_ASSERT_EQUAL(p->bhs[1], 0x80);
    CU_ASSERT_EQUAL(p->len, 0);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 16), itt);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 36), sn);
    /* the next StatSN, not taken; others may have taken some since it was queued */
    CU_ASSERT_TRUE(i.c->stat_sn - get_be32(p->bhs + 24) < 2);
    CU_ASSERT_NOT_EQUAL(a.ttt, TAG_RESERVED);
    free(p);
    return a;
}

/* Answers an R2T by PDUs of at most `pdu` bytes. */
static void
answer(uint32_t itt, struct asked a, uint32_t pdu)
{
    uint32_t sn = 0;
    for (uint32_t off = 0; off < a.len;) {
        uint32_t n = a.len - off < pdu ? a.len - off : pdu;
        tf_data_out(&f, &i, itt, a.ttt, sn++, a.off + off, off + n == a.len, data + a.off + off, n);
        off += n;
    }
}

static void
good(uint32_t itt)
{
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, NULL), SAM_GOOD);
}

static void
failed(uint32_t itt, uint16_t want)
{
    uint16_t asc = 0;
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, &asc), SAM_CHECK);
    if (asc != want)
        fprintf(stderr, "asc %04x, wanted %04x\n", asc, want);
    CU_ASSERT_EQUAL(asc, want);
}

static void
test_immediate(void)
{
    begin(true, true, 65536, 262144, 1);
    good(write_cmd(0, 512, true, 512));
    good(write_cmd(1, 65536, true, 65536));
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, data, 512));
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 1, data, 65536));
    /* a part immediate: the R2T begins where it ended */
    uint32_t itt = write_cmd(200, 8192, true, 512);
    struct asked a = expect_r2t(itt, 0);
    CU_ASSERT_EQUAL(a.off, 512);
    CU_ASSERT_EQUAL(a.len, 7680);
    answer(itt, a, 512);
    good(itt);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 200, data, 8192));
    end();
}

static void
test_solicited(void)
{
    static const uint32_t pdus[] = {512, 1000, 8192, 16384, 65536, 262144};
    for (unsigned k = 0; k < sizeof pdus / sizeof pdus[0]; k++) {
        begin(true, false, 65536, 65536, 1);
        uint32_t itt = write_cmd(8, 300 * 512, true, 0);
        for (uint32_t off = 0, sn = 0; off < 300 * 512; sn++) {
            struct asked a = expect_r2t(itt, sn);
            CU_ASSERT_EQUAL(a.off, off);
            CU_ASSERT_TRUE(a.len > 0 && a.len <= 65536);
            off += a.len;
            answer(itt, a, pdus[k]);
        }
        good(itt);
        CU_ASSERT_TRUE(tf_medium_is(&f, &i, 8, data, 300 * 512));
        end();
    }
}

/* Several R2Ts open, answered in order and interleaved. */
static void
test_many_r2ts(void)
{
    begin(true, false, 65536, 4096, 16);
    uint32_t itt = write_cmd(0, 65536, true, 0);
    struct asked a[16];
    for (uint32_t k = 0; k < 16; k++)
        a[k] = expect_r2t(itt, k);
    for (uint32_t half = 0; half < 2; half++)
        for (uint32_t k = 16; k-- > 0;)
            tf_data_out(&f, &i, itt, a[k].ttt, half, a[k].off + half * 2048, half == 1,
                        data + a[k].off + half * 2048, 2048);
    good(itt);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, data, 65536));
    end();
}

/* Two writes at once, their data interleaved; and pings answered meanwhile. */
static void
test_two_writes(void)
{
    begin(true, false, 65536, 262144, 1);
    uint32_t one = write_cmd(0, 4096, true, 0), two = write_cmd(8, 4096, true, 0);
    struct asked a = expect_r2t(one, 0), b = expect_r2t(two, 0);
    for (uint32_t k = 0; k < 8; k++) {
        tf_data_out(&f, &i, two, b.ttt, k, k * 512, k == 7, data + k * 512, 512);
        tf_ping(&f, &i, true, NULL, 0);
        tf_data_out(&f, &i, one, a.ttt, k, k * 512, k == 7, data + k * 512, 512);
        if (k < 7)
            free(tf_expect(&f, &i, OPC_NOP_IN));
    }
    unsigned pings = 0, writes = 0;
    for (int k = 0; k < 3; k++) {
        struct tf_pdu *p = tf_recv(&f, &i);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        pings += p->bhs[0] == OPC_NOP_IN;
        writes += p->bhs[0] == OPC_SCSI_RSP && p->bhs[3] == SAM_GOOD;
        free(p);
    }
    CU_ASSERT_EQUAL(pings, 1);
    CU_ASSERT_EQUAL(writes, 2);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, data, 4096));
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 8, data, 4096));
    end();
}

static void
test_unsolicited(void)
{
    begin(false, true, 8192, 65536, 1);
    /* all of it unasked */
    uint32_t itt = write_cmd(0, 4096, false, 0);
    tf_data_out(&f, &i, itt, TAG_RESERVED, 0, 0, false, data, 1024);
    tf_data_out(&f, &i, itt, TAG_RESERVED, 1, 1024, true, data + 1024, 3072);
    good(itt);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, data, 4096));
    /* immediate, unsolicited, solicited */
    itt = write_cmd(100, 32768, false, 512);
    tf_data_out(&f, &i, itt, TAG_RESERVED, 0, 512, true, data + 512, 8192 - 512);
    struct asked a = expect_r2t(itt, 0);
    CU_ASSERT_EQUAL(a.off, 8192);
    CU_ASSERT_EQUAL(a.len, 32768 - 8192);
    answer(itt, a, 4096);
    good(itt);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 100, data, 32768));
    end();
}

/* Data that come while their command cannot take them yet are kept: the command waits behind an
 * ORDERED one that waits for its own data. */
static void
test_kept(void)
{
    uint8_t bhs[BHS_LEN], cdb[16];
    begin(false, true, 65536, 262144, 1);
    tf_rw_cdb(cdb, true, 900, 1);
    uint32_t blocker = tf_cmd_bhs(&i, bhs, TF_WRITE, 512, cdb);
    bhs[1] = TF_WRITE | ATTR_ORDERED;
    tf_send(&f, &i, bhs, NULL, 0);
    struct asked a = expect_r2t(blocker, 0);
    uint32_t itt = write_cmd(0, 131072, false, 8192);
    uint32_t small = write_cmd(400, 4096, true, 4096);
    for (uint32_t off = 8192, sn = 0; off < 65536; off += 8192, sn++)
        tf_data_out(&f, &i, itt, TAG_RESERVED, sn, off, off + 8192 == 65536, data + off, 8192);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    CU_ASSERT_TRUE(tgt_here()->retained >= 65536 + 4096);
    tf_data_out(&f, &i, blocker, a.ttt, 0, 0, true, data, 512);
    good(blocker);
    a = expect_r2t(itt, 0);
    CU_ASSERT_EQUAL(a.off, 65536);
    good(small);
    answer(itt, a, 16384);
    good(itt);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, data, 131072));
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 400, data, 4096));
    CU_ASSERT_EQUAL(tgt_here()->retained, 0);
    end();
}

/* No memory for data that come too early: the command ends TASK SET FULL when they are through. */
static void
test_no_room(void)
{
    uint8_t bhs[BHS_LEN], cdb[16];
    begin(false, true, 65536, 262144, 1);
    tf_rw_cdb(cdb, true, 900, 1);
    uint32_t blocker = tf_cmd_bhs(&i, bhs, TF_WRITE, 512, cdb);
    bhs[1] = TF_WRITE | ATTR_ORDERED;
    tf_send(&f, &i, bhs, NULL, 0);
    struct asked a = expect_r2t(blocker, 0);
    tgt_here()->retained += 64 << 20; /* as if others had it all */
    uint32_t itt = write_cmd(0, 131072, false, 0);
    tf_data_out(&f, &i, itt, TAG_RESERVED, 0, 0, false, data, 8192);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    tf_data_out(&f, &i, itt, TAG_RESERVED, 1, 8192, true, data, 65536 - 8192);
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, NULL), SAM_TASK_SET_FULL);
    CU_ASSERT_EQUAL(tf_status(&f, &i, write_cmd(0, 512, true, 512), NULL), SAM_TASK_SET_FULL);
    tgt_here()->retained -= 64 << 20;
    tf_data_out(&f, &i, blocker, a.ttt, 0, 0, true, data, 512);
    good(blocker);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, zero, 4096));
    end();
}

/* What the command does not want is not asked for; what comes anyway harms nothing. */
static void
test_residuals(void)
{
    uint8_t cdb[16];
    begin(true, true, 65536, 262144, 1);
    /* two blocks promised, the CDB takes one */
    tf_rw_cdb(cdb, true, 0, 1);
    uint32_t itt = tf_cmd(&f, &i, TF_WRITE, 1024, cdb, NULL, 0);
    struct asked a = expect_r2t(itt, 0);
    CU_ASSERT_EQUAL(a.len, 512);
    answer(itt, a, 512);
    struct tf_pdu *p = tf_expect(&f, &i, OPC_SCSI_RSP);
    CU_ASSERT_EQUAL(p->bhs[1], 0x82);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 44), 512);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 36), 1);
    free(p);
    /* one promised, the CDB takes two: one is written, or none */
    tf_rw_cdb(cdb, true, 10, 2);
    itt = tf_cmd(&f, &i, TF_WRITE, 512, cdb, data, 512);
    p = tf_expect(&f, &i, OPC_SCSI_RSP);
    CU_ASSERT_EQUAL(p->bhs[1], 0x84);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 44), 512);
    free(p);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 11, zero, 512));
    /* EDTL of all ones */
    tf_rw_cdb(cdb, true, 20, 1);
    itt = tf_cmd(&f, &i, TF_WRITE, 0xffffffff, cdb, data, 512);
    p = tf_expect(&f, &i, OPC_SCSI_RSP);
    CU_ASSERT_EQUAL(p->bhs[3], SAM_GOOD);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 44), 0xffffffff - 512);
    free(p);
    end();
}

static void
test_immediate_violations(void)
{
    uint8_t cdb[16];
    begin(true, true, 512, 262144, 1);
    failed(write_cmd(0, 1024, true, 1024), 0x0c0c); /* beyond FirstBurstLength */
    tf_rw_cdb(cdb, true, 0, 1);
    failed(tf_cmd(&f, &i, TF_WRITE, 512, cdb, data, 1024), 0x0c0c); /* beyond what was promised */
    failed(tf_cmd(&f, &i, TF_READ, 512, cdb, data, 512), 0x0c0c);   /* on a read */
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, zero, 1024));
    end();
    begin(true, false, 65536, 262144, 1);
    failed(write_cmd(0, 512, true, 512), 0x0c0c); /* ImmediateData=No */
    /* InitialR2T=Yes: no unsolicited data; the response waits for their end */
    uint32_t itt = write_cmd(0, 512, false, 0);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    tf_data_out(&f, &i, itt, TAG_RESERVED, 0, 0, true, data, 512);
    failed(itt, 0x0c0c);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, zero, 512));
    end();
}

static void
test_bursts_too_short(void)
{
    begin(false, false, 8192, 65536, 1);
    uint32_t itt = write_cmd(0, 8192, false, 0);
    tf_data_out(&f, &i, itt, TAG_RESERVED, 0, 0, true, data, 4096);
    failed(itt, 0x0c0d);
    itt = write_cmd(0, 8192, true, 0);
    struct asked a = expect_r2t(itt, 0);
    tf_data_out(&f, &i, itt, a.ttt, 0, 0, true, data, 4096);
    failed(itt, 0x0c0d);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, zero, 8192));
    end();
}

static void
test_wrong_data_outs(void)
{
    static const struct {
        uint32_t sn, off, len;
        uint16_t asc;
    } wrong[] = {{0, 0, 4608, 0x4b02}, {0, 512, 512, 0x4b05},      {0, 0xfffffe00, 512, 0x4b05},
                 {1, 0, 512, 0x4b00},  {0, 1 << 30, 4096, 0x4b05}, {0, 0, 262144, 0x4b02}};
    begin(true, false, 65536, 262144, 1);
    for (unsigned k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
        uint32_t itt = write_cmd(0, 4096, true, 0);
        struct asked a = expect_r2t(itt, 0);
        tf_data_out(&f, &i, itt, a.ttt, wrong[k].sn, wrong[k].off, false, data, wrong[k].len);
        CU_ASSERT_TRUE(tf_is_silent(&f, &i)); /* until the burst has had its F bit */
        tf_data_out(&f, &i, itt, a.ttt, 1, 512, true, data, 512);
        failed(itt, wrong[k].asc);
    }
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, zero, 4096));
    /* a tag that was never given: not taken as the data */
    uint32_t itt = write_cmd(0, 512, true, 0);
    struct asked a = expect_r2t(itt, 0);
    tf_data_out(&f, &i, itt, a.ttt + 7, 0, 0, true, data, 512);
    CU_ASSERT_EQUAL(tf_rejected(&f, &i), REJ_INVALID_FIELD);
    tf_data_out(&f, &i, itt, TAG_RESERVED, 0, 0, true, data, 512);
    CU_ASSERT_EQUAL(tf_rejected(&f, &i), REJ_PROTOCOL);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    /* an unknown task: ignored, and the write goes on */
    tf_data_out(&f, &i, 0x12345678, a.ttt, 0, 0, true, zero, 262144);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    answer(itt, a, 512);
    good(itt);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, data, 512));
    end();
}

/* RFC 7143 11.4.2: no response before the unsolicited burst has ended. */
static void
test_error_waits(void)
{
    begin(false, false, 8192, 65536, 1);
    uint8_t cdb[16];
    tf_rw_cdb(cdb, true, 0x7fffffff, 16);
    uint32_t itt = tf_cmd(&f, &i, TF_WRITE & ~TF_FINAL, 8192, cdb, NULL, 0);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    tf_data_out(&f, &i, itt, TAG_RESERVED, 0, 0, false, data, 4096);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    tf_data_out(&f, &i, itt, TAG_RESERVED, 1, 4096, true, data, 4096);
    failed(itt, 0x2100);
    end();
}

static void
bad_digest(uint32_t itt, uint32_t ttt, uint32_t off, uint32_t sn, bool final, uint32_t len)
{
    uint8_t bhs[BHS_LEN] = {OPC_DATA_OUT, final ? 0x80 : 0};
    uint8_t *out = xmalloc(len + 128);
    put_be32(bhs + 16, itt);
    put_be32(bhs + 20, ttt);
    put_be32(bhs + 36, sn);
    put_be32(bhs + 40, off);
    size_t n = tf_encode(&i, out, bhs, data + off, len);
    out[n - 1] ^= 1;
    tf_raw(&f, &i, out, n);
    free(out);
    CU_ASSERT_EQUAL(tf_rejected(&f, &i), REJ_DATA_DIGEST);
}

static void
test_digest_errors(void)
{
    tf_open(&f, &(struct tf_opts){.path = IMAGE});
    f.res.cp.data_digest = true;
    f.res.sp.initial_r2t = false;
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    tf_pattern(data, sizeof data, 11);
    uint32_t itt = write_cmd(0, 65536, true, 0);
    struct asked a = expect_r2t(itt, 0);
    bad_digest(itt, a.ttt, 0, 0, false, 32768);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    tf_data_out(&f, &i, itt, a.ttt, 1, 32768, true, data + 32768, 32768);
    failed(itt, 0x4705);
    itt = write_cmd(0, 1024, false, 0);
    bad_digest(itt, TAG_RESERVED, 0, 0, true, 1024);
    failed(itt, 0x4705);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, zero, 65536));
    itt = write_cmd(0, 65536, true, 0);
    answer(itt, expect_r2t(itt, 0), 20000);
    good(itt);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, data, 65536));
    end();
}

/* The connection goes in the middle of a Data-Out that is received straight into the buffer. */
static void
test_loss(void)
{
    uint8_t bhs[BHS_LEN] = {OPC_DATA_OUT, 0x80};
    for (int abort_first = 0; abort_first < 2; abort_first++) {
        begin(true, false, 65536, 262144, 1);
        uint32_t itt = write_cmd(0, 262144, true, 0);
        struct asked a = expect_r2t(itt, 0);
        put_be32(bhs + 16, itt);
        put_be32(bhs + 20, a.ttt);
        put_be24(bhs + 5, 262144);
        tf_raw(&f, &i, bhs, sizeof bhs);
        tf_raw(&f, &i, data, 100000);
        tf_turns(&f, 5);
        if (abort_first) { /* by another way than this connection */
            task_drop(task_find(i.s, itt));
            tf_turns(&f, 5);
            tf_raw(&f, &i, data + 100000, 262144 - 100000);
            tf_turns(&f, 5);
            CU_ASSERT_TRUE(tf_is_silent(&f, &i));
            CU_ASSERT_TRUE(tf_medium_is(&f, &i, 0, zero, 4096));
        }
        tf_hangup(&f, &i);
        CU_ASSERT_TRUE(list_is_empty(&tgt_here()->sessions));
        tf_close(&f);
        unlink(IMAGE);
    }
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"immediate data", test_immediate},
        {"solicited data", test_solicited},
        {"many R2Ts", test_many_r2ts},
        {"two writes", test_two_writes},
        {"unsolicited data", test_unsolicited},
        {"data kept for a waiting command", test_kept},
        {"no room for early data", test_no_room},
        {"residuals", test_residuals},
        {"immediate data that may not be", test_immediate_violations},
        {"bursts too short", test_bursts_too_short},
        {"wrong Data-Outs", test_wrong_data_outs},
        {"an error waits for the data", test_error_waits},
        {"digest errors", test_digest_errors},
        {"loss and abort in a Data-Out", test_loss},
    };
    return UNIT_RUN("dataout", tests);
}
