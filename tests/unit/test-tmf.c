/* SPDX-License-Identifier: BSD-2-Clause */
/* Task management (RFC 7143 4.2.3, 11.5, 11.6). */
#include "config.h"

#include "tgt_fake.h"

static struct tf f;
static struct tf_conn i, other;

static void
begin(void)
{
    tf_open(&f, &(struct tf_opts){0});
    tf_connect(&f, &i);
    tf_ready(&f, &i);
}

static void
end(void)
{
    tf_close(&f);
    close(i.fd);
}

/* A write that waits for its data; *ttt: what it was asked with. */
static uint32_t
waiting_write(unsigned flags, uint32_t *ttt)
{
    uint8_t cdb[16];
    tf_rw_cdb(cdb, true, 0, 8);
    uint32_t itt = tf_cmd(&f, &i, TF_WRITE | flags, 4096, cdb, NULL, 0);
    struct tf_pdu *p = tf_expect(&f, &i, OPC_R2T);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 16), itt);
    *ttt = get_be32(p->bhs + 20);
    free(p);
    return itt;
}

static uint32_t
tur(uint32_t cmd_sn)
{
    uint8_t bhs[BHS_LEN];
    uint32_t itt = tf_cmd_bhs(&i, bhs, TF_NODATA, 0, CDB(0));
    put_be32(bhs + 24, cmd_sn);
    tf_send(&f, &i, bhs, NULL, 0);
    return itt;
}

static uint8_t
run_tmf(uint8_t function, bool immediate, uint32_t rtt, uint32_t ref)
{
    return tf_tmf_answer(&f, &i, tf_tmf(&f, &i, function, immediate, rtt, ref));
}

static void
test_abort_task(void)
{
    uint8_t block[4096] = {1};
    uint32_t ttt;
    begin();
    uint32_t sn = i.cmd_sn, itt = waiting_write(0, &ttt);
    CU_ASSERT_EQUAL(run_tmf(TMF_ABORT_TASK, true, itt, sn), TMF_COMPLETE);
    /* its late data are ignored, the connection works on */
    tf_data_out(&f, &i, itt, ttt, 0, 0, true, block, 4096);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    CU_ASSERT_EQUAL(tf_status(&f, &i, tur(i.cmd_sn), NULL), SAM_GOOD);
    /* answered already; never there */
    CU_ASSERT_EQUAL(run_tmf(TMF_ABORT_TASK, true, i.itt - 1, i.cmd_sn - 1), TMF_NO_TASK);
    CU_ASSERT_EQUAL(run_tmf(TMF_ABORT_TASK, true, 0xabcdef, i.cmd_sn - 40), TMF_NO_TASK);
    CU_ASSERT_EQUAL(run_tmf(TMF_ABORT_TASK, true, 0xabcdef, i.cmd_sn + 5), TMF_NO_TASK);
    /* another unit's LUN does not name it */
    itt = waiting_write(0, &ttt);
    uint8_t bhs[BHS_LEN];
    uint32_t t = tf_request(&i, bhs, OPC_TMF_REQ, true, 0x81);
    bhs[9] = 5;
    put_be32(bhs + 20, itt);
    put_be32(bhs + 32, i.cmd_sn - 1);
    tf_send(&f, &i, bhs, NULL, 0);
    CU_ASSERT_EQUAL(tf_tmf_answer(&f, &i, t), TMF_NO_TASK);
    end();
}

/* RFC 7143 11.6.1: a number that has not come counts as received, and what follows it runs. */
static void
test_abort_unseen(void)
{
    begin();
    uint32_t n = i.cmd_sn;
    uint32_t held = tur(n + 1);
    i.cmd_sn = n + 1;
    CU_ASSERT_EQUAL(run_tmf(TMF_ABORT_TASK, true, 0x777, n), TMF_COMPLETE);
    CU_ASSERT_EQUAL(tf_status(&f, &i, held, NULL), SAM_GOOD);
    CU_ASSERT_EQUAL(i.s->exp_cmd_sn, n + 2);
    tur(n); /* comes after all: dropped */
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    /* one that is held is dropped */
    n = n + 2;
    held = tur(n + 1);
    i.cmd_sn = n + 2;
    CU_ASSERT_EQUAL(run_tmf(TMF_ABORT_TASK, true, held, n + 1), TMF_COMPLETE);
    CU_ASSERT_EQUAL(tf_status(&f, &i, tur(n), NULL), SAM_GOOD);
    CU_ASSERT_EQUAL(i.s->exp_cmd_sn, n + 2);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    end();
}

static void
test_sets_and_resets(void)
{
    static const uint8_t functions[] = {TMF_ABORT_TASK_SET, TMF_CLEAR_TASK_SET,
                                        TMF_LOGICAL_UNIT_RESET, TMF_TARGET_WARM_RESET};
    for (unsigned k = 0; k < sizeof functions; k++)
        for (int immediate = 0; immediate < 2; immediate++) {
            uint32_t a, b;
            begin();
            waiting_write(0, &a);
            waiting_write(TF_IMMEDIATE, &b);
            CU_ASSERT_EQUAL(run_tmf(functions[k], immediate, TAG_RESERVED, 0), TMF_COMPLETE);
            CU_ASSERT_EQUAL(i.s->ntasks, 0);
            CU_ASSERT_TRUE(tf_is_silent(&f, &i));
            i.cmd_sn = i.s->exp_cmd_sn;
            tf_ready(&f, &i);
            end();
        }
}

/* Immediate, it waits for the commands before it and then takes them along (4.2.3.3). */
static void
test_waits_for_order(void)
{
    uint8_t bhs[BHS_LEN], cdb[16];
    begin();
    uint32_t n = i.cmd_sn;
    i.cmd_sn = n + 2;
    uint32_t t = tf_tmf(&f, &i, TMF_ABORT_TASK_SET, true, TAG_RESERVED, 0);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    tf_rw_cdb(cdb, true, 0, 1);
    for (uint32_t k = 2; k-- > 0;) { /* n + 1, then n */
        tf_cmd_bhs(&i, bhs, TF_WRITE, 512, cdb);
        put_be32(bhs + 24, n + k);
        tf_send(&f, &i, bhs, NULL, 0);
    }
    free(tf_expect(&f, &i, OPC_R2T));
    free(tf_expect(&f, &i, OPC_R2T));
    CU_ASSERT_EQUAL(tf_tmf_answer(&f, &i, t), TMF_COMPLETE);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    CU_ASSERT_EQUAL(i.s->ntasks, 0);
    /* a target-wide one does not wait: what is missing counts as received */
    n += 2;
    i.cmd_sn = n + 3;
    CU_ASSERT_EQUAL(run_tmf(TMF_TARGET_WARM_RESET, true, TAG_RESERVED, 0), TMF_COMPLETE);
    CU_ASSERT_EQUAL(i.s->exp_cmd_sn, n + 3);
    /* but not beyond what was allowed */
    i.cmd_sn = n + 1000;
    run_tmf(TMF_TARGET_WARM_RESET, true, TAG_RESERVED, 0);
    CU_ASSERT_EQUAL(i.s->exp_cmd_sn, n + 3);
    end();
}

/* A command that failed and waits for the end of its burst is ours to end. */
static void
test_answer_waits(void)
{
    uint8_t cdb[16];
    static const uint8_t functions[] = {TMF_ABORT_TASK, TMF_ABORT_TASK_SET, TMF_LOGICAL_UNIT_RESET,
                                        TMF_TARGET_WARM_RESET};
    for (unsigned k = 0; k < sizeof functions; k++) {
        tf_open(&f, &(struct tf_opts){0});
        f.res.sp.initial_r2t = false;
        tf_connect(&f, &i);
        tf_ready(&f, &i);
        tf_rw_cdb(cdb, true, 0x7fffffff, 8);
        uint32_t itt = tf_cmd(&f, &i, TF_WRITE & ~TF_FINAL, 4096, cdb, NULL, 0);
        CU_ASSERT_TRUE(tf_is_silent(&f, &i));
        CU_ASSERT_EQUAL(run_tmf(functions[k], true, itt, i.cmd_sn - 1), TMF_COMPLETE);
        CU_ASSERT_EQUAL(i.s->ntasks, 0);
        CU_ASSERT_TRUE(tf_is_silent(&f, &i));
        end();
    }
}

static void
test_answers(void)
{
    begin();
    CU_ASSERT_EQUAL(run_tmf(TMF_TASK_REASSIGN, true, 1, 0), TMF_NO_REASSIGN);
    CU_ASSERT_EQUAL(run_tmf(TMF_CLEAR_ACA, true, TAG_RESERVED, 0), TMF_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(run_tmf(0x55, true, TAG_RESERVED, 0), TMF_NOT_SUPPORTED);
    CU_ASSERT_EQUAL(run_tmf(0, false, TAG_RESERVED, 0), TMF_NOT_SUPPORTED);
    uint8_t bhs[BHS_LEN];
    static const uint8_t functions[] = {TMF_ABORT_TASK_SET, TMF_LOGICAL_UNIT_RESET};
    for (unsigned k = 0; k < 2; k++) {
        uint32_t t = tf_request(&i, bhs, OPC_TMF_REQ, true, (uint8_t)(0x80 | functions[k]));
        bhs[9] = 7;
        tf_send(&f, &i, bhs, NULL, 0);
        CU_ASSERT_EQUAL(tf_tmf_answer(&f, &i, t), TMF_NO_LUN);
    }
    end();
}

static void
test_two_sessions(void)
{
    uint32_t ttt;
    uint8_t block[4096] = {0};
    begin();
    f.res.isid[5] = 2;
    tf_connect(&f, &other);
    tf_ready(&f, &other);
    uint32_t itt = waiting_write(0, &ttt);
    /* ABORT TASK SET of one leaves the other alone */
    CU_ASSERT_EQUAL(
        tf_tmf_answer(&f, &other, tf_tmf(&f, &other, TMF_ABORT_TASK_SET, true, TAG_RESERVED, 0)),
        TMF_COMPLETE);
    tf_data_out(&f, &i, itt, ttt, 0, 0, true, block, 4096);
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, NULL), SAM_GOOD);
    /* LOGICAL UNIT RESET ends its commands and leaves a unit attention */
    waiting_write(0, &ttt);
    CU_ASSERT_EQUAL(
        tf_tmf_answer(&f, &other,
                      tf_tmf(&f, &other, TMF_LOGICAL_UNIT_RESET, true, TAG_RESERVED, 0)),
        TMF_COMPLETE);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    uint16_t asc = 0;
    CU_ASSERT_EQUAL(tf_status(&f, &i, tur(i.cmd_sn), &asc), SAM_CHECK);
    CU_ASSERT_EQUAL(asc >> 8, 0x29);
    end();
    close(other.fd);
}

/* RFC 7144: known from protocol level 2 on. */
static void
test_level_two(void)
{
    static const uint8_t functions[] = {TMF_QUERY_TASK, TMF_QUERY_TASK_SET, TMF_QUERY_ASYNC_EVENT,
                                        TMF_I_T_NEXUS_RESET};
    uint32_t ttt;
    uint8_t bhs[BHS_LEN], block[4096] = {0};
    begin();
    for (unsigned level = 0; level < 2; level++) {
        i.s->p.protocol_level = level;
        for (unsigned k = 0; k < sizeof functions; k++)
            CU_ASSERT_EQUAL(run_tmf(functions[k], true, TAG_RESERVED, 0), TMF_NOT_SUPPORTED);
    }
    CU_ASSERT_EQUAL(tf_status(&f, &i, tur(i.cmd_sn), NULL), SAM_GOOD);
    i.s->p.protocol_level = 2;
    CU_ASSERT_EQUAL(run_tmf(TMF_QUERY_TASK_SET, true, TAG_RESERVED, 0), TMF_COMPLETE);
    uint32_t sn = i.cmd_sn, itt = waiting_write(0, &ttt);
    CU_ASSERT_EQUAL(run_tmf(TMF_QUERY_TASK, true, itt, sn), TMF_SUCCEEDED);
    CU_ASSERT_EQUAL(run_tmf(TMF_QUERY_TASK, true, itt + 77, sn), TMF_COMPLETE);
    CU_ASSERT_EQUAL(run_tmf(TMF_QUERY_TASK_SET, false, TAG_RESERVED, 0), TMF_SUCCEEDED);
    for (unsigned k = 0; k < 3; k++) { /* a reset of the nexus has no LUN */
        uint32_t t = tf_request(&i, bhs, OPC_TMF_REQ, true, (uint8_t)(0x80 | functions[k]));
        bhs[9] = 7;
        tf_send(&f, &i, bhs, NULL, 0);
        CU_ASSERT_EQUAL(tf_tmf_answer(&f, &i, t), TMF_NO_LUN);
    }
    /* questions changed nothing */
    tf_data_out(&f, &i, itt, ttt, 0, 0, true, block, 4096);
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, NULL), SAM_GOOD);
    CU_ASSERT_EQUAL(run_tmf(TMF_QUERY_TASK, true, itt, sn), TMF_COMPLETE);
    CU_ASSERT_EQUAL(run_tmf(TMF_QUERY_ASYNC_EVENT, true, TAG_RESERVED, 0), TMF_COMPLETE);
    /* a task that another function has ended is not there any more */
    itt = waiting_write(0, &ttt);
    tf_tmf(&f, &i, TMF_ABORT_TASK_SET, true, TAG_RESERVED, 0);
    CU_ASSERT_EQUAL(run_tmf(TMF_QUERY_TASK, true, itt, i.cmd_sn - 1), TMF_COMPLETE);
    end();
}

static void
test_nexus_reset(void)
{
    uint32_t mine, theirs;
    uint16_t asc = 0;
    uint8_t block[4096] = {0};
    tf_open(&f, &(struct tf_opts){0});
    f.res.sp.protocol_level = 2;
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    f.res.isid[5] = 2;
    tf_connect(&f, &other);
    tf_ready(&f, &other);
    uint32_t itt = waiting_write(0, &theirs);
    struct tf_conn first = i;
    i = other;
    waiting_write(0, &mine);
    CU_ASSERT_EQUAL(run_tmf(TMF_I_T_NEXUS_RESET, true, TAG_RESERVED, 0), TMF_COMPLETE);
    CU_ASSERT_EQUAL(i.s->ntasks, 0);
    CU_ASSERT_EQUAL(run_tmf(TMF_QUERY_ASYNC_EVENT, true, TAG_RESERVED, 0), TMF_SUCCEEDED);
    CU_ASSERT_EQUAL(tf_status(&f, &i, tur(i.cmd_sn), &asc), SAM_CHECK);
    CU_ASSERT_EQUAL(asc, 0x2907);
    CU_ASSERT_EQUAL(run_tmf(TMF_QUERY_ASYNC_EVENT, true, TAG_RESERVED, 0), TMF_COMPLETE);
    other = i;
    i = first;
    tf_data_out(&f, &i, itt, theirs, 0, 0, true, block, 4096);
    CU_ASSERT_EQUAL(tf_status(&f, &i, itt, NULL), SAM_GOOD);
    CU_ASSERT_EQUAL(tf_status(&f, &i, tur(i.cmd_sn), NULL), SAM_GOOD);
    end();
    close(other.fd);
}

static void
test_cold_reset(void)
{
    begin();
    struct worker *ws[] = {f.w};
    worker_set_publish(ws, 1);
    f.res.isid[5] = 2;
    tf_connect(&f, &other);
    CU_ASSERT_EQUAL(run_tmf(TMF_TARGET_COLD_RESET, true, TAG_RESERVED, 0), TMF_COMPLETE);
    CU_ASSERT_TRUE(tf_is_closed(&f, &i));
    CU_ASSERT_TRUE(tf_is_closed(&f, &other));
    CU_ASSERT_TRUE(list_is_empty(&tgt_here()->sessions));
    worker_set_publish(NULL, 0);
    end();
    close(other.fd);
}

/* The session dies while functions are pending, and while a command is with its backend. */
static void
test_session_dies(void)
{
    uint8_t cdb[16];
    tf_open(&f, &(struct tf_opts){.layers = "delay:ms=60"});
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    tf_rw_cdb(cdb, false, 0, 8);
    tf_cmd(&f, &i, TF_READ, 4096, cdb, NULL, 0);
    tf_tmf(&f, &i, TMF_ABORT_TASK_SET, true, TAG_RESERVED, 0);
    i.cmd_sn += 5;
    tf_tmf(&f, &i, TMF_ABORT_TASK_SET, true, TAG_RESERVED, 0); /* waits for its turn */
    tf_hangup(&f, &i);
    CU_ASSERT_TRUE(list_is_empty(&tgt_here()->sessions));
    tf_close(&f);
}

/* A command at its backend: the answer comes when it can write no more. */
static void
test_abort_in_backend(void)
{
    uint8_t cdb[16], block[512] = {7};
    tf_open(&f, &(struct tf_opts){.layers = "delay:ms=40"});
    tf_connect(&f, &i);
    tf_ready(&f, &i);
    tf_rw_cdb(cdb, true, 0, 1);
    uint32_t sn = i.cmd_sn;
    uint32_t itt = tf_cmd(&f, &i, TF_WRITE, 512, cdb, block, 512);
    CU_ASSERT_EQUAL(run_tmf(TMF_ABORT_TASK, true, itt, sn), TMF_COMPLETE);
    CU_ASSERT_EQUAL(be_in_flight(f.be), 0);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    end();
}

static void
test_too_many(void)
{
    begin();
    i.cmd_sn += 3;
    unsigned refused = 0;
    for (int k = 0; k < 40; k++)
        tf_tmf(&f, &i, TMF_ABORT_TASK_SET, true, TAG_RESERVED, 0);
    for (int k = 0; k < 8; k++)
        refused += tf_rejected(&f, &i) == REJ_IMMEDIATE_OVERFLOW;
    CU_ASSERT_EQUAL(refused, 8);
    CU_ASSERT_TRUE(tf_is_silent(&f, &i));
    end();
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"ABORT TASK", test_abort_task},
        {"ABORT TASK of what has not come", test_abort_unseen},
        {"task sets and resets", test_sets_and_resets},
        {"order", test_waits_for_order},
        {"a response that waits", test_answer_waits},
        {"other answers", test_answers},
        {"two sessions", test_two_sessions},
        {"protocol level 2", test_level_two},
        {"I_T NEXUS RESET", test_nexus_reset},
        {"cold reset", test_cold_reset},
        {"the session dies", test_session_dies},
        {"ABORT TASK in the backend", test_abort_in_backend},
        {"too many", test_too_many},
    };
    return UNIT_RUN("tmf", tests);
}
