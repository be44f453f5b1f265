/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Task management (RFC 7143 4.2.3, 11.5, 11.6; at protocol level 2 RFC 7144).  A function that
 * concerns more than one task waits for the commands before it, even when it is immediate; a
 * target-wide one takes them as received, a query does not care.  What it does to tasks is scsi's;
 * here is the order of things and the answer.  Owner: the session's worker.
 *
 * "MUST wait for responses on currently valid Target Transfer Tags of the affected tasks from the
 * issuing initiator" (4.2.3.3 a): such a function ends its tasks at once, so that nothing that
 * comes after it is taken for older, but each R2T that is open then is remembered, and the answer
 * is held back until the final Data-Out of each has come; their data go nowhere.  The wait has an
 * end, because initiators that stop their data at a reset, though FastAbort (4.2.3.4) was not
 * agreed, are many.  The response fence of 4.2.3.3 needs no more than the order of StatSN as long
 * as a session has one connection (4.2.2.3.3).
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/counter.h"
#include "base/pool.h"
#include "base/serial.h"
#include "target/target.h"

#define TMF_MAX      32u   /* pending, a session */
#define DATA_WAIT_MS 2000u /* for Data-Outs of tasks that were ended; resets time out after 10 s   \
                            */

/* SCOPE_ALL: what this session has at all units; a target-wide function does the rest in scsi. */
enum scope { SCOPE_NONE, SCOPE_TASK, SCOPE_LUN, SCOPE_ALL };

static const struct tmf_row {
    uint8_t function;
    uint8_t scope;
    uint8_t level; /* iSCSIProtocolLevel from which on it is known */
    bool asks;     /* changes nothing, is answered at once from what has been received */
    bool waits;    /* for all commands with lower CmdSN (4.2.3.3) */
    bool plugs;    /* takes those that did not come as received (4.2.3.3) */
    bool drops;    /* every session of the target ends after the answer */
    uint8_t as;    /* what scsi is asked for; 0: answered here with `answer` */
    uint8_t answer;
} rows[] = {
    {TMF_ABORT_TASK, SCOPE_TASK, .as = TMF_ABORT_TASK},
    {TMF_ABORT_TASK_SET, SCOPE_LUN, .waits = true, .as = TMF_ABORT_TASK_SET},
    {TMF_CLEAR_ACA, SCOPE_NONE, .as = TMF_CLEAR_ACA},
    {TMF_CLEAR_TASK_SET, SCOPE_LUN, .waits = true, .as = TMF_CLEAR_TASK_SET},
    {TMF_LOGICAL_UNIT_RESET, SCOPE_LUN, .waits = true, .as = TMF_LOGICAL_UNIT_RESET},
    {TMF_TARGET_WARM_RESET, SCOPE_ALL, .plugs = true, .as = TMF_TARGET_WARM_RESET},
    {TMF_TARGET_COLD_RESET, SCOPE_ALL, .plugs = true, .drops = true, .as = TMF_TARGET_WARM_RESET},
    {TMF_TASK_REASSIGN, SCOPE_NONE, .answer = TMF_NO_REASSIGN},
    {TMF_QUERY_TASK, SCOPE_TASK, 2, .asks = true, .as = TMF_QUERY_TASK},
    {TMF_QUERY_TASK_SET, SCOPE_LUN, 2, .asks = true, .as = TMF_QUERY_TASK_SET},
    {TMF_I_T_NEXUS_RESET, SCOPE_ALL, 2, .waits = true, .as = TMF_I_T_NEXUS_RESET},
    {TMF_QUERY_ASYNC_EVENT, SCOPE_LUN, 2, .asks = true, .as = TMF_QUERY_ASYNC_EVENT},
};

struct tmf {
    struct scsi_tmf t; /* first */
    struct list on_sess;
    struct sess *s;
    struct conn *c; /* NULL once it is gone */
    const struct tmf_row *row;
    uint32_t itt, cmd_sn, rtt, ref_cmd_sn;
    bool immediate, started;
    bool done;         /* scsi is through with it; tails may be awaited */
    struct list tails; /* struct tail.on_tmf */
    struct worker_timer late;
};

/* An R2T of a task that was ended: its burst has not had its F bit. */
struct tail {
    struct list on_tmf;
    uint32_t itt, ttt;
};

static const struct tmf_row *
find_row(uint8_t function, uint32_t level)
{
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].function == function && rows[i].level <= level)
            return &rows[i];
    return NULL;
}

static void
respond(struct conn *c, uint32_t itt, uint8_t response)
{
    if (!c || c->closing)
        return;
    uint8_t bhs[BHS_LEN] = {OPC_TMF_RSP, 0x80, response};
    put_be32(bhs + 16, itt);
    conn_stamp(c, bhs, true);
    tx_pdu(c, bhs, NULL, 0, NULL, NULL);
}

static void
tails_free(struct tmf *f)
{
    while (!list_is_empty(&f->tails)) {
        struct tail *tail = list_first(&f->tails, struct tail, on_tmf);
        list_del(&tail->on_tmf);
        free(tail);
    }
}

static void
tmf_end(struct tmf *f)
{
    worker_timer_stop(&f->late);
    tails_free(f);
    list_del(&f->on_sess);
    f->s->ntmfs--;
    free(f);
}

static void
answer(struct tmf *f, uint8_t response)
{
    struct conn *c = f->c;
    struct sess *s = f->s;
    bool drops = f->row->drops && response == TMF_COMPLETE;
    respond(c, f->itt, response);
    tmf_end(f);
    if (!drops)
        return;
    if (c)
        conn_close(c, "target cold reset", true); /* after its answer is sent */
    sess_kill_target(s->node->name, "target cold reset");
}

static void
answer_when_due(struct tmf *f)
{
    if (f->done && list_is_empty(&f->tails))
        answer(f, f->t.response);
}

static void
on_scsi_done(struct scsi_tmf *t)
{
    struct tmf *f = container_of(t, struct tmf, t);
    worker_assert_owner(f->s->w);
    f->done = true;
    answer_when_due(f);
}

/* --- data that are on their way to tasks that were ended ----------------------------------------
 */

static void
on_late(struct worker_timer *timer)
{
    struct tmf *f = container_of(timer, struct tmf, late);
    log_debug(LA_SESSION, "data-not-sent sid=%llu itt=%#x function=%u",
              (unsigned long long)f->s->sid, f->itt, (unsigned)f->row->function);
    tails_free(f);
    answer_when_due(f);
}

static bool
concerns(const struct tmf *f, const struct task *t)
{
    return f->row->scope == SCOPE_ALL ||
           (f->row->scope == SCOPE_LUN && memcmp(t->cmd.lun, f->t.lun, 8) == 0);
}

/* Remembers the open R2Ts of what is about to be ended. */
static void
note_tails(struct tmf *f)
{
    list_each(it, &f->s->tasks) {
        const struct task *t = container_of(it, struct task, on_sess);
        if (!t->is_write || t->nr2t == 0 || !concerns(f, t))
            continue;
        for (unsigned i = 0; i < R2T_MAX; i++) {
            if (!t->r2t[i].open)
                continue;
            struct tail *tail = xcalloc(1, sizeof *tail);
            tail->itt = t->itt;
            tail->ttt = t->r2t[i].ttt;
            list_add_tail(&f->tails, &tail->on_tmf);
        }
    }
    if (!list_is_empty(&f->tails))
        worker_timer_start_ms(&f->late, DATA_WAIT_MS);
}

void
tmf_data_final(struct sess *s, const struct pdu *pdu)
{
    list_each(it, &s->tmfs) {
        struct tmf *f = container_of(it, struct tmf, on_sess);
        list_each(jt, &f->tails) {
            struct tail *tail = container_of(jt, struct tail, on_tmf);
            if (tail->ttt != pdu->ttt || tail->itt != pdu->itt)
                continue;
            list_del(&tail->on_tmf);
            free(tail);
            answer_when_due(f);
            return;
        }
    }
}

/* Tasks that scsi is through with, or soon will be, but that are not answered yet (their data are
 * still on their way) are ours to end. */
static void
drop_waiting(struct tmf *f)
{
    list_each_safe(it, &f->s->tasks) {
        struct task *t = container_of(it, struct task, on_sess);
        if ((t->done || t->no_room || t->lost) && concerns(f, t))
            task_drop(t);
    }
}

static struct task *
find_rtt(struct tmf *f)
{
    struct task *t = task_find(f->s, f->rtt);
    return t && memcmp(t->cmd.lun, f->t.lun, 8) == 0 ? t : NULL;
}

/* RFC 7143 11.6.1: a task that is not there counts as aborted when its number could still come,
 * and will then be taken as received. */
static uint8_t
abort_unknown(struct tmf *f)
{
    bool before = sn_lt(f->ref_cmd_sn, f->cmd_sn);
    return before && sess_plug(f->s, f->ref_cmd_sn) ? TMF_COMPLETE : TMF_NO_TASK;
}

/* Is there the task, or one in the task set, that has not been answered?  One that another function
 * has ended will not be. */
static bool
is_there(struct tmf *f)
{
    if (f->row->scope == SCOPE_TASK) {
        const struct task *t = find_rtt(f);
        return t && !t->quiet;
    }
    list_each(it, &f->s->tasks) {
        const struct task *t = container_of(it, struct task, on_sess);
        if (!t->quiet && concerns(f, t))
            return true;
    }
    return false;
}

static void
start(struct tmf *f)
{
    struct sess *s = f->s;
    f->started = true;
    if (f->row->plugs)
        sess_plug_below(s, f->cmd_sn);
    if (f->row->as == 0) {
        answer(f, f->row->answer);
        return;
    }
    if (f->row->asks) {
        answer(f, scsi_tmf_query(s->itn, f->row->as, f->t.lun, is_there(f)));
        return;
    }
    if (f->row->scope == SCOPE_TASK) {
        struct task *t = find_rtt(f);
        if (!t) {
            answer(f, abort_unknown(f));
            return;
        }
        if (t->done) {
            task_drop(t);
            answer(f, TMF_COMPLETE);
            return;
        }
        f->t.ref = &t->cmd;
    }
    note_tails(f);
    drop_waiting(f);
    scsi_tmf_submit(&f->t);
}

static bool
may_start(const struct tmf *f)
{
    return !f->row->waits || !f->immediate || !sn_lt(f->s->exp_cmd_sn, f->cmd_sn);
}

void
tmf_kick(struct sess *s)
{
    list_each_safe(it, &s->tmfs) {
        struct tmf *f = container_of(it, struct tmf, on_sess);
        if (!f->started && may_start(f))
            start(f);
    }
}

enum verdict
tmf_pdu(struct conn *c, struct pdu *pdu)
{
    struct sess *s = c->sess;
    if (pdu->itt == TAG_RESERVED)
        return conn_reject(c, REJ_INVALID_FIELD);
    counter_add(CT_TMF, 1);
    if (s->ntmfs >= TMF_MAX && pdu->immediate)
        return conn_reject(c, REJ_IMMEDIATE_OVERFLOW);
    const struct tmf_row *row = find_row(pdu->flags & 0x7f, s->p.protocol_level);
    if (!row || s->ntmfs >= TMF_MAX) {
        respond(c, pdu->itt, row ? TMF_REJECTED : TMF_NOT_SUPPORTED);
        return KEEP;
    }
    struct tmf *f = xcalloc(1, sizeof *f);
    f->s = s;
    f->c = c;
    f->row = row;
    f->itt = pdu->itt;
    f->cmd_sn = pdu->cmd_sn;
    f->rtt = pdu->ttt;
    f->ref_cmd_sn = pdu->ref_cmd_sn;
    f->immediate = pdu->immediate;
    f->t.function = row->as;
    f->t.itn = s->itn;
    f->t.done = on_scsi_done;
    memcpy(f->t.lun, pdu->lun, sizeof f->t.lun);
    list_init(&f->tails);
    worker_timer_init(&f->late, s->w, on_late);
    list_add_tail(&s->tmfs, &f->on_sess);
    s->ntmfs++;
    if (may_start(f))
        start(f);
    return KEEP;
}

void
tmf_forget_all(struct sess *s)
{
    while (!list_is_empty(&s->tmfs)) {
        struct tmf *f = list_first(&s->tmfs, struct tmf, on_sess);
        if (f->started)
            scsi_tmf_forget(&f->t);
        tmf_end(f);
    }
}

void
tmf_forget_conn(struct sess *s, struct conn *c)
{
    list_each(it, &s->tmfs) {
        struct tmf *f = container_of(it, struct tmf, on_sess);
        if (f->c == c)
            f->c = NULL;
    }
}
