/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data-out: immediate data, unsolicited bursts, R2Ts and what answers them (RFC 7143 4.2.5.2, 11.7,
 * 11.8).  The command's handler pulls a window; data for it go straight there.  What comes before
 * it was pulled is kept, bounded by FirstBurstLength a command and by the worker's limit.  A
 * command whose data phase failed ends only when nothing more is on its way (11.4.2).
 * Owner: the session's worker.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/counter.h"
#include "base/pool.h"
#include "target/target.h"

enum { /* additional sense codes, RFC 7143 11.4.7.2 and SPC-4 annex F */
       ASC_UNEXPECTED_DATA = 0x0c0c,
       ASC_NOT_ENOUGH_DATA = 0x0c0d,
       ASC_CRC_ERROR = 0x4705,
       ASC_DATA_PHASE = 0x4b00,
       ASC_TOO_MUCH_DATA = 0x4b02,
       ASC_OFFSET = 0x4b05,
};

#define KEPT_MAX (64ull * 1024 * 1024) /* a worker */

static uint32_t
min32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint16_t
dataout_init(struct task *t, bool final)
{
    const struct sess_params *p = &t->sess->p;
    uint32_t first = min32(p->first_burst, t->edtl);
    if (!t->is_write)
        return t->imm_len > 0 ? ASC_UNEXPECTED_DATA : 0;
    t->asked = t->unsol_next = t->unsol_end = t->imm_len;
    if (!final) { /* more is to come unasked, up to the end of the first burst */
        t->unsol_open = t->imm_len < first || p->initial_r2t;
        if (t->imm_len < first)
            t->asked = t->unsol_end = first;
        if (p->initial_r2t) {
            t->fail_asc = ASC_UNEXPECTED_DATA;
            return ASC_UNEXPECTED_DATA;
        }
    }
    if (t->imm_len > 0 && (!p->immediate_data || t->imm_len > first))
        return ASC_UNEXPECTED_DATA;
    return 0;
}

bool
dataout_is_open(const struct task *t)
{
    return t->unsol_open || t->nr2t > 0;
}

static void
kept_free(struct task *t)
{
    tgt_here()->retained -= t->kept_cap;
    free(t->kept);
    t->kept = NULL;
    t->kept_len = t->kept_cap = 0;
}

void
dataout_fini(struct task *t)
{
    if (t->kept)
        kept_free(t);
}

/* Room for len bytes at `off`, which follows what is kept or comes after it was used up. */
static bool
kept_room(struct task *t, uint32_t off, uint32_t len)
{
    if (t->kept_len == 0 || t->kept_off + t->kept_len != off) {
        t->kept_off = off;
        t->kept_len = 0;
    }
    uint32_t need = off - t->kept_off + len;
    if (need <= t->kept_cap)
        return true;
    uint32_t cap = t->kept_cap < 4096 ? 4096 : t->kept_cap;
    while (cap < need)
        cap *= 2;
    if (tgt_here()->retained + (cap - t->kept_cap) > KEPT_MAX)
        return false;
    tgt_here()->retained += cap - t->kept_cap;
    t->kept = xrealloc(t->kept, cap);
    t->kept_cap = cap;
    return true;
}

/* No memory for data of a command that waits: it ends TASK SET FULL once they are through. */
static void
give_up(struct task *t)
{
    t->no_room = true;
    if (!t->done)
        scsi_abort(&t->cmd);
}

/* Copies what [off, off + len) at src has for the window. */
static void
to_window(struct task *t, const uint8_t *src, uint32_t off, uint32_t len)
{
    struct scsi_cmd *cmd = &t->cmd;
    uint32_t from = off > cmd->win_off ? off : cmd->win_off;
    uint32_t to = min32(off + len, cmd->win_off + cmd->win_len);
    if (from >= to)
        return;
    memcpy(cmd->data + (from - cmd->win_off), src + (from - off), to - from);
    t->have += to - from;
}

/* --- R2T ----------------------------------------------------------------------------------------
 */

static void
send_r2t(struct task *t, struct r2t *r)
{
    struct conn *c = t->conn;
    uint8_t bhs[BHS_LEN] = {OPC_R2T, 0x80};
    memcpy(bhs + 8, t->cmd.lun, 8);
    put_be32(bhs + 16, t->itt);
    put_be32(bhs + 20, r->ttt);
    conn_stamp(c, bhs, false);
    put_be32(bhs + 36, t->r2t_sn++);
    put_be32(bhs + 40, r->offset);
    put_be32(bhs + 44, r->len);
    tx_pdu(c, bhs, NULL, 0, NULL, NULL);
}

static struct r2t *
free_r2t(struct task *t)
{
    for (unsigned i = 0; i < R2T_MAX; i++)
        if (!t->r2t[i].open)
            return &t->r2t[i];
    return NULL;
}

/* Asks for what of the window nobody has promised yet. */
static void
ask(struct task *t)
{
    struct sess *s = t->sess;
    uint32_t end = t->cmd.win_off + t->cmd.win_len;
    if (!t->pulling || t->fail_asc || t->unsol_open || !t->conn || t->cmd.aborted)
        return;
    if (t->asked < t->cmd.win_off)
        t->asked = t->cmd.win_off;
    while (t->asked < end && t->nr2t < s->p.max_r2t) {
        struct r2t *r = free_r2t(t);
        if (!r)
            return;
        uint32_t ttt = s->next_ttt++;
        if (ttt == TAG_RESERVED)
            ttt = s->next_ttt++;
        *r = (struct r2t){.ttt = ttt,
                          .offset = t->asked,
                          .len = min32(s->p.max_burst, end - t->asked),
                          .open = true};
        t->asked += r->len;
        t->nr2t++;
        send_r2t(t, r);
    }
}

/* Takes the task on after something arrived or a burst ended. The task may be gone afterwards. */
static void
advance(struct task *t)
{
    if (t->done) {
        if (t->answer_waits && !dataout_is_open(t))
            task_answer(t);
        return;
    }
    if (!t->pulling)
        return;
    if (t->fail_asc) {
        if (dataout_is_open(t))
            return;
        t->pulling = false;
        scsi_pulled(&t->cmd, -EIO, t->fail_asc);
        return;
    }
    if (t->have == t->cmd.win_len) {
        t->pulling = false;
        scsi_pulled(&t->cmd, 0, 0);
        return;
    }
    ask(t);
}

static void
on_advance_later(struct deferred *d)
{
    advance(container_of(d, struct task, later));
}

/* Immediate data that came in a buffer of their own stay there: it becomes the window's. */
static bool
swap_window(struct task *t)
{
    struct conn *c = t->conn;
    if (!c || !c->rx.own || c->rx.own->p != t->imm || t->cmd.win_off != 0 ||
        t->imm_len > t->cmd.win_len || !scsi_swap_buf(&t->cmd, &c->rx.own))
        return false;
    t->have = t->imm_len;
    return true;
}

const uint8_t *
dataout_peek(struct scsi_cmd *cmd, uint32_t len)
{
    struct task *t = container_of(cmd, struct task, cmd);
    if (!t->imm || t->imm_len < len || t->fail_asc || t->unsol_open)
        return NULL;
    t->pulled_to = len;
    return t->imm;
}

bool
dataout_pull(struct scsi_cmd *cmd)
{
    struct task *t = container_of(cmd, struct task, cmd);
    worker_assert_owner(t->sess->w);
    t->have = 0;
    t->pulling = true;
    t->pulled_to = cmd->win_off + cmd->win_len;
    if (t->imm && swap_window(t))
        ; /* nothing to copy */
    else if (t->imm)
        to_window(t, t->imm, 0, t->imm_len);
    else if (t->kept_len > 0)
        to_window(t, t->kept, t->kept_off, t->kept_len);
    if (t->fail_asc) {
        t->later.fn = on_advance_later;
        worker_defer(t->sess->w, &t->later);
        return false;
    }
    if (t->have == cmd->win_len) {
        t->pulling = false;
        return true;
    }
    ask(t);
    return false;
}

void
dataout_keep_immediate(struct task *t)
{
    const uint8_t *imm = t->imm;
    t->imm = NULL;
    if (t->done || t->imm_len <= t->pulled_to)
        return;
    uint32_t off = t->pulled_to;
    uint32_t len = t->imm_len - off;
    if (!kept_room(t, off, len)) {
        give_up(t);
        return;
    }
    memcpy(t->kept, imm + off, len);
    t->kept_len = len;
}

/* --- Data-Out PDUs -------------------------------------------------------------------------------
 */

static struct r2t *
find_r2t(struct task *t, uint32_t ttt)
{
    for (unsigned i = 0; i < R2T_MAX; i++)
        if (t->r2t[i].open && t->r2t[i].ttt == ttt)
            return &t->r2t[i];
    return NULL;
}

static void
fail(struct task *t, uint16_t asc)
{
    if (!t->fail_asc)
        t->fail_asc = asc;
}

/* The additional sense code of what is wrong with a Data-Out at this place of its burst; 0: right.
 */
static uint16_t
check(const struct pdu *pdu, uint32_t data_sn, uint32_t next, uint32_t end)
{
    if (pdu->data_sn != data_sn)
        return ASC_DATA_PHASE;
    if (pdu->offset != next)
        return ASC_OFFSET;
    if (pdu->data_len > end - next)
        return ASC_TOO_MUCH_DATA;
    if ((pdu->flags & 0x80) && pdu->data_len < end - next)
        return ASC_NOT_ENOUGH_DATA;
    return 0;
}

static bool
in_window(const struct task *t, uint32_t off, uint32_t len)
{
    const struct scsi_cmd *cmd = &t->cmd;
    return t->pulling && off >= cmd->win_off && off - cmd->win_off <= cmd->win_len &&
           len <= cmd->win_len - (off - cmd->win_off);
}

static void
place(struct conn *c, struct task *t, const struct pdu *pdu)
{
    t->place = DP_NOWHERE;
    c->rx.task = t;
    if (t->fail_asc || t->done || t->no_room || t->lost || pdu->data_len == 0)
        return;
    if (in_window(t, pdu->offset, pdu->data_len)) {
        t->place = DP_WINDOW;
        c->rx.to = t->cmd.data + (pdu->offset - t->cmd.win_off);
    } else if (kept_room(t, pdu->offset, pdu->data_len)) {
        t->place = DP_KEPT;
        c->rx.to = t->kept + (pdu->offset - t->kept_off);
    } else {
        give_up(t);
    }
}

/* Nothing is sent for it any more; those we end ourselves are answered after their data. */
static bool
is_aborted(const struct task *t)
{
    return t->quiet || (t->cmd.aborted && !t->no_room && !t->lost);
}

void
dataout_begin(struct conn *c, struct pdu *pdu)
{
    struct task *t = task_find(c->sess, pdu->itt);
    if (!t || t->conn != c || is_aborted(t))
        return; /* aborted meanwhile, or never there: its data harm nobody (RFC 7143 4.2.3.3) */
    if (!t->is_write) {
        c->rx.refuse = REJ_PROTOCOL;
        return;
    }
    uint16_t asc;
    if (pdu->ttt == TAG_RESERVED) {
        if (!t->unsol_open) {
            if (pdu->data_len > 0)
                c->rx.refuse = REJ_PROTOCOL;
            return;
        }
        asc = t->fail_asc ? 0 : check(pdu, t->unsol_data_sn, t->unsol_next, t->unsol_end);
    } else {
        const struct r2t *r = find_r2t(t, pdu->ttt);
        if (!r) {
            if (pdu->data_len > 0)
                c->rx.refuse = REJ_INVALID_FIELD;
            return;
        }
        asc = t->fail_asc ? 0 : check(pdu, r->data_sn, r->offset + r->got, r->offset + r->len);
    }
    if (asc)
        fail(t, asc);
    place(c, t, pdu);
}

/* The bytes are in place: counts them and, where they were kept, gives the window its part. */
static void
arrived(struct task *t, const struct pdu *pdu)
{
    if (t->place == DP_WINDOW) {
        t->have += pdu->data_len;
    } else if (t->place == DP_KEPT) {
        t->kept_len += pdu->data_len;
        if (t->pulling)
            to_window(t, t->kept + (pdu->offset - t->kept_off), pdu->offset, pdu->data_len);
    }
}

static void
burst_step(struct task *t, const struct pdu *pdu)
{
    bool final = (pdu->flags & 0x80) != 0;
    if (pdu->ttt == TAG_RESERVED) {
        t->unsol_data_sn++;
        t->unsol_next += pdu->data_len;
        if (final || (!t->fail_asc && t->unsol_next == t->unsol_end))
            t->unsol_open = false;
        return;
    }
    struct r2t *r = find_r2t(t, pdu->ttt);
    if (!r)
        return;
    r->data_sn++;
    r->got += pdu->data_len;
    if (final || (!t->fail_asc && r->got == r->len)) {
        r->open = false;
        t->nr2t--;
    }
}

enum verdict
dataout_pdu(struct conn *c, struct pdu *pdu)
{
    struct task *t = c->rx.task;
    uint8_t refuse = c->rx.refuse;
    c->rx.task = NULL;
    c->rx.to = NULL;
    if (pdu->bad_data)
        reject_send(c, pdu, REJ_DATA_DIGEST);
    if (!t) {
        if ((pdu->flags & 0x80) && !list_is_empty(&c->sess->tmfs))
            tmf_data_final(c->sess, pdu);
        return refuse && !pdu->bad_data ? conn_reject(c, refuse) : KEEP;
    }
    if (pdu->bad_data)
        fail(t, ASC_CRC_ERROR);
    else
        arrived(t, pdu);
    burst_step(t, pdu);
    advance(t);
    return KEEP;
}
