/* SPDX-License-Identifier: BSD-2-Clause */
/* The command window (RFC 7143 4.2.2.1): order, holes, duplicates, wrap, immediate, rejects. */
#include "config.h"

#include "base/serial.h"
#include "tgt_fake.h"

static struct tf f;
static struct tf_conn i;

static void
begin(uint32_t cmd_sn, unsigned max_cmds)
{
    tf_open(&f, &(struct tf_opts){.max_cmds = max_cmds});
    f.res.cmd_sn = cmd_sn;
    tf_connect(&f, &i);
    tf_ready(&f, &i);
}

static void
end(void)
{
    tf_close(&f);
    close(i.fd);
}

/* TEST UNIT READY with this number. */
static uint32_t
tur(uint32_t cmd_sn)
{
    uint8_t bhs[BHS_LEN];
    uint32_t itt = tf_cmd_bhs(&i, bhs, TF_NODATA, 0, CDB(0));
    put_be32(bhs + 24, cmd_sn);
    tf_send(&f, &i, bhs, NULL, 0);
    return itt;
}

static void
good(uint32_t itt, uint32_t exp_cmd_sn)
{
    struct tf_pdu *p = tf_expect(&f, &i, OPC_SCSI_RSP);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 16), itt);
    CU_ASSERT_EQUAL(p->bhs[3], SAM_GOOD);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 28), exp_cmd_sn);
    uint32_t exp = get_be32(p->bhs + 28), max = get_be32(p->bhs + 32);
    CU_ASSERT_TRUE(sn_le(exp - 1, max));
    CU_ASSERT_TRUE(max - (exp - 1) <= i.s->max_cmds);
    free(p);
}

static void
test_order(void)
{
    begin(100, 32);
    uint32_t n = i.cmd_sn;
    uint32_t third = tur(n + 2), second = tur(n + 1);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    uint32_t first = tur(n);
    good(first, n + 3); /* all three were started before the loop's turn ended */
    good(second, n + 3);
    good(third, n + 3);
    end();
}

static void
test_outside(void)
{
    begin(100, 32);
    uint32_t n = i.cmd_sn;
    tur(n + 32);        /* beyond MaxCmdSN */
    tur(n + 0x1000000); /* far */
    tur(n - 1);         /* below */
    tur(n - 0x1000000);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    CU_ASSERT_EQUAL(i.s->nheld, 0);
    good(tur(n), n + 1);
    end();
}

static void
test_duplicates(void)
{
    uint8_t bhs[BHS_LEN], cdb[16], data[1024];
    begin(100, 32);
    tf_pattern(data, sizeof data, 1);
    tf_rw_cdb(cdb, true, 0, 2);
    uint32_t itt = tf_cmd_bhs(&i, bhs, TF_WRITE, 1024, cdb);
    tf_send(&f, &i, bhs, NULL, 0);
    struct tf_pdu *r2t = tf_expect(&f, &i, OPC_R2T);
    tf_send(&f, &i, bhs, NULL, 0); /* the identical PDU: dropped silently */
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    tf_data_out(&f, &i, itt, get_be32(r2t->bhs + 20), 0, 0, false, data, 512);
    tf_send(&f, &i, bhs, NULL, 0);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    /* its tag with a new number: Reject 07, and the number counts as not received */
    put_be32(bhs + 24, i.cmd_sn);
    tf_send(&f, &i, bhs, NULL, 0);
    CU_ASSERT_EQUAL(tf_rejected(&f, &i), REJ_TASK_IN_PROGRESS);
    CU_ASSERT_EQUAL(i.s->exp_cmd_sn, i.cmd_sn);
    tf_data_out(&f, &i, itt, get_be32(r2t->bhs + 20), 1, 512, true, data + 512, 512);
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, NULL), SAM_GOOD);
    free(r2t);
    /* a held one twice */
    uint32_t n = i.cmd_sn;
    uint32_t held = tur(n + 1);
    i.itt--;
    tur(n + 1);
    CU_ASSERT_EQUAL(i.s->nheld, 1);
    good(tur(n), n + 2);
    good(held, n + 2);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    end();
}

static void
test_wrap(void)
{
    begin(0xfffffffa, 32);
    for (int k = 0; k < 12; k++) {
        uint32_t n = i.cmd_sn++;
        good(tur(n), n + 1);
        i.cmd_sn = n + 1;
    }
    uint32_t n = i.cmd_sn;
    CU_ASSERT_TRUE(n < 100);
    end();
    begin(0xffffffff, 32); /* holes over the wrap: tf_ready has used 0xffffffff and 0 at least */
    end();
    begin(0xfffffffc, 32);
    n = 0xfffffffe;
    while (i.cmd_sn != n)
        good(tur(i.cmd_sn), i.cmd_sn), i.cmd_sn = i.s->exp_cmd_sn;
    uint32_t b = tur(1), a = tur(0), z = tur(0xffffffff);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    good(tur(0xfffffffe), 2);
    good(z, 2);
    good(a, 2);
    good(b, 2);
    end();
}

static void
test_immediate(void)
{
    begin(100, 32);
    uint32_t n = i.cmd_sn;
    uint32_t itt = tf_cmd(&f, &i, TF_NODATA | TF_IMMEDIATE, 0, CDB(0), NULL, 0);
    good(itt, n);
    tf_ping(&f, &i, true, NULL, 0);
    struct tf_pdu *p = tf_expect(&f, &i, OPC_NOP_IN);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 28), n);
    free(p);
    tf_ping(&f, &i, false, "abc", 3);
    p = tf_expect(&f, &i, OPC_NOP_IN);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 28), n + 1);
    CU_ASSERT_EQUAL(p->len, 3);
    free(p);
    /* there is a limit: Reject 06 */
    uint8_t cdb[16];
    unsigned asked = 0, refused = 0;
    tf_rw_cdb(cdb, true, 0, 1);
    for (int k = 0; k < 80; k++)
        tf_cmd(&f, &i, TF_WRITE | TF_IMMEDIATE, 512, cdb, NULL, 0);
    for (int k = 0; k < 80; k++) {
        p = tf_recv(&f, &i);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        asked += p->bhs[0] == OPC_R2T;
        refused += p->bhs[0] == OPC_REJECT && p->bhs[2] == REJ_IMMEDIATE_OVERFLOW;
        free(p);
    }
    CU_ASSERT_EQUAL(asked, 64);
    CU_ASSERT_EQUAL(refused, 16);
    end();
}

/* The window closes with as many commands as it allows and opens as they end. */
static void
test_full(void)
{
    uint8_t cdb[16], block[512] = {0};
    uint32_t ttt[8];
    begin(1, 8);
    uint32_t n = i.cmd_sn, first = i.itt;
    tf_rw_cdb(cdb, true, 0, 1);
    for (int k = 0; k < 8; k++)
        tf_cmd(&f, &i, TF_WRITE, 512, cdb, NULL, 0);
    for (int k = 0; k < 8; k++) {
        struct tf_pdu *p = tf_expect(&f, &i, OPC_R2T);
        ttt[k] = get_be32(p->bhs + 20);
        CU_ASSERT_EQUAL(get_be32(p->bhs + 32), n + 7);
        free(p);
    }
    tur(n + 8); /* no room for it */
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    for (uint32_t k = 0; k < 8; k++) {
        tf_data_out(&f, &i, first + k, ttt[k], 0, 0, true, block, 512);
        struct tf_pdu *p = tf_expect(&f, &i, OPC_SCSI_RSP);
        CU_ASSERT_EQUAL(p->bhs[3], SAM_GOOD);
        CU_ASSERT_EQUAL(get_be32(p->bhs + 28), n + 8);
        CU_ASSERT_EQUAL(get_be32(p->bhs + 32), n + 8 + k);
        free(p);
    }
    good(tur(n + 8), n + 9);
    end();
}

/* What was held is bounded by bytes as well: the session ends. */
static void
test_held_bytes(void)
{
    uint8_t bhs[BHS_LEN], cdb[16];
    uint8_t *data = xcalloc(1, 262144);
    begin(1, 64);
    uint32_t n = i.cmd_sn;
    tf_rw_cdb(cdb, true, 0, 1);
    for (uint32_t k = 1; k < 20; k++) {
        tf_cmd_bhs(&i, bhs, TF_WRITE, 262144, cdb);
        put_be32(bhs + 24, n + k);
        tf_send(&f, &i, bhs, data, 262144);
    }
    free(data);
    CU_ASSERT_TRUE(tf_is_closed(&f, &i));
    end();
}

static void
test_stat_sn(void)
{
    begin(1, 32);
    uint32_t sn = i.c->stat_sn;
    for (int k = 0; k < 4; k++) {
        tf_ping(&f, &i, true, NULL, 0);
        tf_cmd(&f, &i, TF_NODATA, 0, CDB(0), NULL, 0);
        for (int m = 0; m < 2; m++) {
            struct tf_pdu *p = tf_recv(&f, &i);
            CU_ASSERT_PTR_NOT_NULL_FATAL(p);
            CU_ASSERT_EQUAL(get_be32(p->bhs + 24), sn++);
            free(p);
        }
    }
    end();
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"order", test_order},           {"outside the window", test_outside},
        {"duplicates", test_duplicates}, {"wrap", test_wrap},
        {"immediate", test_immediate},   {"a full window", test_full},
        {"bytes held", test_held_bytes}, {"StatSN", test_stat_sn},
    };
    return UNIT_RUN("sess-window", tests);
}
