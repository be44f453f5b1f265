/* SPDX-License-Identifier: BSD-2-Clause */
/* Framing: what comes does not depend on how the stream is cut; digests; lengths that lie. */
#include "config.h"

#include "tgt_fake.h"

static struct tf f;
static struct tf_conn i;

/* Five requests of every shape: ping with odd data, INQUIRY, write with immediate data, write with
 * a burst asked for by nobody, ping. */
static size_t
make_stream(uint8_t *out)
{
    uint8_t bhs[BHS_LEN], cdb[16], block[1024];
    size_t n = 0;
    tf_pattern(block, sizeof block, 7);
    tf_request(&i, bhs, OPC_NOP_OUT, true, 0x80);
    n += tf_encode(&i, out + n, bhs, block, 13);
    tf_cmd_bhs(&i, bhs, TF_READ, 36, CDB(0x12, 0, 0, 0, 36));
    n += tf_encode(&i, out + n, bhs, NULL, 0);
    tf_rw_cdb(cdb, true, 3, 1);
    tf_cmd_bhs(&i, bhs, TF_WRITE, 512, cdb);
    n += tf_encode(&i, out + n, bhs, block, 512);
    tf_rw_cdb(cdb, true, 5, 2);
    uint32_t itt = tf_cmd_bhs(&i, bhs, TF_WRITE & ~TF_FINAL, 1024, cdb);
    n += tf_encode(&i, out + n, bhs, NULL, 0);
    memset(bhs, 0, sizeof bhs);
    bhs[0] = OPC_DATA_OUT;
    bhs[1] = 0x80;
    put_be32(bhs + 16, itt);
    put_be32(bhs + 20, TAG_RESERVED);
    n += tf_encode(&i, out + n, bhs, block, 1024);
    tf_request(&i, bhs, OPC_NOP_OUT, false, 0x80);
    n += tf_encode(&i, out + n, bhs, block, 4);
    return n;
}

static void
expect_stream(void)
{
    uint8_t block[1024];
    tf_pattern(block, sizeof block, 7);
    bool pong13 = false, pong4 = false, inquiry = false;
    unsigned writes = 0;
    for (int k = 0; k < 5; k++) {
        struct tf_pdu *p = tf_recv(&f, &i);
        CU_ASSERT_PTR_NOT_NULL_FATAL(p);
        if (p->bhs[0] == OPC_NOP_IN && p->len == 13)
            pong13 = memcmp(p->data, block, 13) == 0;
        else if (p->bhs[0] == OPC_NOP_IN && p->len == 4)
            pong4 = memcmp(p->data, block, 4) == 0;
        else if (p->bhs[0] == OPC_DATA_IN)
            inquiry = p->len == 36 && (p->bhs[1] & 0x81) == 0x81;
        else if (p->bhs[0] == OPC_SCSI_RSP && p->bhs[3] == SAM_GOOD)
            writes++;
        free(p);
    }
    CU_ASSERT_TRUE(pong13 && pong4 && inquiry);
    CU_ASSERT_EQUAL(writes, 2);
}

static void
cut_everywhere(bool hd, bool dd)
{
    static uint8_t stream[8192];
    tf_open(&f, &(struct tf_opts){0});
    f.res.cp.header_digest = hd;
    f.res.cp.data_digest = dd;
    f.res.sp.initial_r2t = false;
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    size_t len = make_stream(stream);
    tf_raw(&f, &i, stream, len);
    expect_stream();
    for (size_t cut = 1; cut < len; cut += cut < 700 ? 1 : 13) {
        len = make_stream(stream);
        tf_raw(&f, &i, stream, cut);
        tf_turns(&f, 2);
        tf_raw(&f, &i, stream + cut, len - cut);
        expect_stream();
    }
    tf_hangup(&f, &i);
    tf_close(&f);
}

static void
test_cut_plain(void)
{
    cut_everywhere(false, false);
}

static void
test_cut_digests(void)
{
    cut_everywhere(true, true);
    cut_everywhere(false, true);
    cut_everywhere(true, false);
}

static void
test_single_bytes(void)
{
    static uint8_t stream[8192];
    tf_open(&f, &(struct tf_opts){0});
    f.res.cp.header_digest = f.res.cp.data_digest = true;
    f.res.sp.initial_r2t = false;
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    size_t len = make_stream(stream);
    for (size_t k = 0; k < len; k++) {
        tf_raw(&f, &i, stream + k, 1);
        tf_turns(&f, 1);
    }
    expect_stream();
    tf_close(&f);
    close(i.fd);
}

/* More in one go than the receive buffer holds. */
static void
test_many_at_once(void)
{
    tf_open(&f, &(struct tf_opts){.max_cmds = 32});
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    uint8_t *out = xmalloc(32 * 9000);
    uint8_t data[8192], cdb[16], bhs[BHS_LEN];
    size_t n = 0;
    tf_rw_cdb(cdb, true, 0, 16);
    tf_pattern(data, sizeof data, 1);
    for (int k = 0; k < 32; k++) {
        tf_cmd_bhs(&i, bhs, TF_WRITE, 8192, cdb);
        n += tf_encode(&i, out + n, bhs, data, 8192);
    }
    tf_raw(&f, &i, out, n);
    for (int k = 0; k < 32; k++)
        CU_ASSERT_EQUAL(tf_status(&f, &i, i.itt - 32 + (uint32_t)k, NULL), SAM_GOOD);
    free(out);
    tf_close(&f);
    close(i.fd);
}

static void
test_header_digest_error(void)
{
    uint8_t bhs[BHS_LEN], out[256];
    tf_open(&f, &(struct tf_opts){0});
    f.res.cp.header_digest = true;
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    tf_request(&i, bhs, OPC_NOP_OUT, true, 0x80);
    size_t n = tf_encode(&i, out, bhs, NULL, 0);
    out[50] ^= 1;
    tf_raw(&f, &i, out, n);
    CU_ASSERT_TRUE(tf_is_closed(&f, &i));
    CU_ASSERT_EQUAL(i.in_len, 0);
    tf_close(&f);
    close(i.fd);
}

/* Reject 02, the CmdSN counts as not received, the command sent again runs (RFC 7143 7.3, 7.8). */
static void
test_data_digest_error(void)
{
    uint8_t bhs[BHS_LEN], out[1024], cdb[16], data[512];
    tf_open(&f, &(struct tf_opts){.path = "test-rx.img"});
    f.res.cp.data_digest = true;
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    tf_pattern(data, sizeof data, 3);
    tf_rw_cdb(cdb, true, 9, 1);
    uint32_t itt = tf_cmd_bhs(&i, bhs, TF_WRITE, 512, cdb);
    size_t n = tf_encode(&i, out, bhs, data, 512);
    out[n - 1] ^= 1;
    tf_raw(&f, &i, out, n);
    CU_ASSERT_EQUAL(tf_rejected(&f, &i), REJ_DATA_DIGEST);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    out[n - 1] ^= 1;
    tf_raw(&f, &i, out, n);
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, NULL), SAM_GOOD);
    CU_ASSERT_TRUE(tf_medium_is(&f, &i, 9, data, 512));
    /* a ping */
    tf_request(&i, bhs, OPC_NOP_OUT, true, 0x80);
    n = tf_encode(&i, out, bhs, data, 64);
    out[60] ^= 1;
    tf_raw(&f, &i, out, n);
    CU_ASSERT_EQUAL(tf_rejected(&f, &i), REJ_DATA_DIGEST);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    tf_close(&f);
    close(i.fd);
    unlink("test-rx.img");
}

/* A segment longer than our MaxRecvDataSegmentLength: Reject and the end, nothing allocated. */
static void
test_too_long(void)
{
    uint8_t bhs[BHS_LEN];
    tf_open(&f, &(struct tf_opts){0});
    tf_connect(&f, &i);
    tf_request(&i, bhs, OPC_NOP_OUT, true, 0x80);
    put_be24(bhs + 5, 0xffffff);
    tf_raw(&f, &i, bhs, sizeof bhs);
    CU_ASSERT_EQUAL(tf_rejected(&f, &i), REJ_PROTOCOL);
    CU_ASSERT_TRUE(tf_is_closed(&f, &i));
    tf_close(&f);
    close(i.fd);
}

static void
test_headers_that_lie(void)
{
    uint8_t bhs[BHS_LEN], ahs[1020];
    memset(ahs, 0xa5, sizeof ahs);
    tf_open(&f, &(struct tf_opts){0});
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    /* AHS of garbage on a command, then on a ping */
    tf_cmd_bhs(&i, bhs, TF_NODATA, 0, CDB(0));
    i.cmd_sn--; /* it will be rejected */
    bhs[4] = 255;
    tf_raw(&f, &i, bhs, sizeof bhs);
    tf_raw(&f, &i, ahs, sizeof ahs);
    CU_ASSERT_EQUAL(tf_rejected(&f, &i), REJ_INVALID_FIELD);
    tf_request(&i, bhs, OPC_NOP_OUT, true, 0x80);
    bhs[4] = 255;
    tf_raw(&f, &i, bhs, sizeof bhs);
    tf_raw(&f, &i, ahs, sizeof ahs);
    CU_ASSERT_EQUAL(tf_rejected(&f, &i), REJ_INVALID_FIELD);
    /* opcodes that are none, a SNACK, a Login Request */
    static const struct {
        uint8_t opcode, reason;
    } bad[] = {{0x0f, REJ_NOT_SUPPORTED},
               {0x1d, REJ_NOT_SUPPORTED},
               {0x10, REJ_SNACK},
               {0x03, REJ_PROTOCOL},
               {0x3f, REJ_NOT_SUPPORTED}};
    for (unsigned k = 0; k < sizeof bad / sizeof bad[0]; k++) {
        tf_request(&i, bhs, bad[k].opcode, true, 0x80);
        tf_send(&f, &i, bhs, ahs, 33);
        CU_ASSERT_EQUAL(tf_rejected(&f, &i), bad[k].reason);
    }
    /* and the session still works */
    uint32_t itt = tf_cmd(&f, &i, TF_NODATA, 0, CDB(0), NULL, 0);
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, NULL), SAM_GOOD);
    tf_close(&f);
    close(i.fd);
}

/* An extended CDB (RFC 7143 11.2.2.3): parsed, and refused by the opcode table. */
static void
test_extended_cdb(void)
{
    uint8_t pdu[BHS_LEN + 20] = {0};
    uint16_t asc;
    tf_open(&f, &(struct tf_opts){0});
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    uint32_t itt = tf_cmd_bhs(&i, pdu, TF_NODATA, 0, CDB(0x7f, 0, 0, 0, 0, 0, 0, 24));
    pdu[4] = 5;
    put_be16(pdu + BHS_LEN, 17);
    pdu[BHS_LEN + 2] = 1;
    tf_raw(&f, &i, pdu, sizeof pdu);
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, &asc), SAM_CHECK);
    CU_ASSERT_TRUE(asc == 0x2000 || asc == 0x2400);
    tf_close(&f);
    close(i.fd);
}

/* Who never reads costs a bounded queue, and is served when it reads. */
static void
test_back_pressure(void)
{
    uint8_t data[4096], bhs[BHS_LEN], out[4200];
    unsigned sent = 0, got = 0;
    tf_open(&f, &(struct tf_opts){0});
    tf_connect(&f, &i);
    memset(data, 1, sizeof data);
    for (;;) {
        tf_request(&i, bhs, OPC_NOP_OUT, true, 0x80);
        size_t n = tf_encode(&i, out, bhs, data, sizeof data);
        if (send(i.fd, out, n, MSG_NOSIGNAL) != (ssize_t)n)
            break; /* a part of a PDU: given up with the connection */
        sent++;
        tf_turns(&f, 2);
        CU_ASSERT_FATAL(i.c->tx.queued_bytes < 2u * TX_HIGH_WATER);
        CU_ASSERT_FATAL(sent < 3000);
    }
    CU_ASSERT_TRUE(i.c->rx.paused & RX_PAUSE_OUT);
    for (int idle = 0; idle < 50; idle++) {
        tf_turns(&f, 2);
        tf_fill(&i);
        for (struct tf_pdu *p; (p = tf_take(&i)) != NULL; free(p)) {
            got++;
            idle = 0;
        }
    }
    CU_ASSERT_EQUAL(got, sent);
    CU_ASSERT_EQUAL(i.c->rx.paused, 0);
    tf_close(&f);
    close(i.fd);
}

static void
test_random(void)
{
    srandom(1);
    tf_open(&f, &(struct tf_opts){0});
    for (int k = 0; k < 200; k++) {
        uint8_t noise[512];
        f.res.cp.header_digest = k & 1;
        f.res.cp.data_digest = k & 2;
        tf_connect(&f, &i);
        for (size_t n = 0; n < sizeof noise; n++)
            noise[n] = (uint8_t)random();
        noise[0] &= 0x47; /* opcodes that exist */
        noise[4] = 0;
        noise[5] = noise[6] = 0;
        tf_raw(&f, &i, noise, sizeof noise);
        tf_hangup(&f, &i);
    }
    CU_ASSERT_TRUE(list_is_empty(&tgt_here()->sessions));
    tf_close(&f);
}

static void
test_table(void)
{
    for (unsigned op = 0; op < 64; op++) {
        const struct pdu_row *r = pdutab_find((uint8_t)op);
        if (r)
            CU_ASSERT_EQUAL(r->opcode, op);
        CU_ASSERT_EQUAL(r != NULL, op <= 6 || op == 0x10);
    }
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"opcode table", test_table},
        {"stream cut at every byte", test_cut_plain},
        {"stream cut at every byte, digests", test_cut_digests},
        {"one byte at a time", test_single_bytes},
        {"more than a buffer at once", test_many_at_once},
        {"header digest error", test_header_digest_error},
        {"data digest error", test_data_digest_error},
        {"segment too long", test_too_long},
        {"headers that lie", test_headers_that_lie},
        {"extended CDB", test_extended_cdb},
        {"back-pressure", test_back_pressure},
        {"random bytes", test_random},
    };
    return UNIT_RUN("rx", tests);
}
