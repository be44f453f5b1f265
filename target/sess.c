/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sessions: birth, the command window, death.  A session lives on one worker with all its
 * connections and tasks; its memory stays until its last task is gone, because their buffers are
 * counted in its budget.  The way from login to here is in sess_establish.c.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/pool.h"
#include "base/serial.h"
#include "target/redirect.h"
#include "target/target.h"

#define HELD_BYTES_MAX (4u * 1024 * 1024)

static unsigned
pow2_above(unsigned n)
{
    unsigned p = 16;
    while (p < n && p < 65536)
        p *= 2;
    return p;
}

/* The window is what the session's memory can take when every command in it brings its whole
 * first burst before it can be pulled. */
static unsigned
window_for(const struct tgt_node *node, const struct sess_params *p)
{
    unsigned n = node && node->max_cmds > 0 ? node->max_cmds : 128;
    uint64_t fit = tgt_opts.sess_mem_bytes / (p->first_burst > 0 ? p->first_burst : 1);
    if (n > fit)
        n = fit > 8 ? (unsigned)fit : 8;
    return n < 0x10000 ? n : 0x10000;
}

static void on_free_later(struct deferred *d);
static void on_run_later(struct deferred *d);

static void
open_log(const struct sess *s, const struct conn *c, const char *what)
{
    log_event(LL_NOTICE, LA_SESSION, "session-%s sid=%llu tsih=%u initiator=%s target=%s peer=%s",
              what, (unsigned long long)s->sid, s->tsih, LOG_ESC(s->initiator),
              s->node ? s->node->name : "(discovery)", c ? c->peer_text : "-");
}

struct sess *
sess_new(struct worker *w, const struct login_result *res, const struct registry_claim *claim)
{
    worker_assert_owner(w);
    struct tgt_worker *tw = tgt_here();
    struct sess *s = xcalloc(1, sizeof *s);
    s->w = w;
    s->refs = 1;
    list_init(&s->conns);
    list_init(&s->held);
    list_init(&s->tasks);
    list_init(&s->tmfs);
    deferred_init(&s->free_later, on_free_later);
    deferred_init(&s->run_later, on_run_later);
    memcpy(s->initiator, res->initiator, sizeof s->initiator);
    memcpy(s->alias, res->initiator_alias, sizeof s->alias);
    memcpy(s->isid, res->isid, sizeof s->isid);
    s->entry = claim->entry;
    s->tsih = claim->tsih;
    s->sid = claim->sid;
    s->discovery = res->discovery;
    s->authenticated = res->account != NULL;
    s->p = res->sp;
    s->max_cmds = window_for(res->node, &s->p);
    s->exp_cmd_sn = res->cmd_sn;
    s->max_cmd_sn = res->cmd_sn + s->max_cmds - 1;
    s->by_itt_size = pow2_above(s->max_cmds);
    s->by_itt = xcalloc(s->by_itt_size, sizeof(struct task *));
    s->created_ms = clock_ms();
    budget_init(&s->budget, worker_budget(w), w, tgt_opts.sess_mem_bytes);
    if (res->node) {
        s->node = node_get(res->node);
        struct itn_params ip = {.initiator_name = s->initiator,
                                .queries = s->p.protocol_level >= 2,
                                .target_name = s->node->name,
                                .tpgt = res->tpgt,
                                .budget = &s->budget,
                                .map = s->node->map};
        memcpy(ip.isid, s->isid, sizeof ip.isid);
        s->itn = itn_new(w, &ip);
    }
    list_add_tail(&tw->sessions, &s->on_worker);
    tw->nsessions++;
    return s;
}

void
sess_attach(struct sess *s, struct conn *c, const struct login_result *res)
{
    worker_assert_owner(s->w);
    bool first = list_is_empty(&s->conns);
    list_add_tail(&s->conns, &c->on_sess);
    c->sess = s;
    c->cid = res->cid;
    c->discovery = s->discovery;
    c->p = res->cp;
    open_log(s, c, first ? "opened" : "joined");
}

struct sess *
sess_find_here(uint64_t sid)
{
    list_each(it, &tgt_here()->sessions) {
        struct sess *s = container_of(it, struct sess, on_worker);
        if (s->sid == sid)
            return s;
    }
    return NULL;
}

/* --- the window (RFC 7143 4.2.2.1)
 * ---------------------------------------------------------------- */

struct held {
    struct list link;
    struct conn *c; /* NULL: a number that counts as received without a PDU */
    uint32_t cmd_sn;
    const struct pdu_row *row;
    struct pdu pdu; /* ahs and data are copies behind it */
    uint8_t bytes[];
};

static void
held_free(struct sess *s, struct held *h)
{
    list_del(&h->link);
    s->nheld--;
    s->held_bytes -= h->pdu.data_len;
    free(h);
}

static unsigned
room(const struct sess *s)
{
    /* Much unsolicited data waits on this worker for memory: no more of it is invited. */
    if (tgt_here()->retained > 32u * 1024 * 1024 && s->nqueued > 0)
        return 0;
    return s->max_cmds > s->nqueued ? s->max_cmds - s->nqueued : 0;
}

void
sess_stamp(struct sess *s, uint8_t *bhs)
{
    uint32_t max = s->exp_cmd_sn - 1 + room(s);
    if (sn_lt(s->max_cmd_sn, max)) /* it never goes back */
        s->max_cmd_sn = max;
    put_be32(bhs + 28, s->exp_cmd_sn);
    put_be32(bhs + 32, s->max_cmd_sn);
}

/* The place in `held` for cmd_sn: the entry it goes before; NULL: it is there already. */
static struct list *
held_place(struct sess *s, uint32_t cmd_sn)
{
    struct list *it = s->held.prev; /* mostly they come in order */
    while (it != &s->held) {
        struct held *h = container_of(it, struct held, link);
        if (h->cmd_sn == cmd_sn)
            return NULL;
        if (sn_lt(h->cmd_sn, cmd_sn))
            break;
        it = it->prev;
    }
    return it->next;
}

static struct held *
held_new(struct sess *s, uint32_t cmd_sn, uint32_t extra)
{
    struct list *before = held_place(s, cmd_sn);
    if (!before)
        return NULL;
    struct held *h = xcalloc(1, sizeof *h + extra);
    h->cmd_sn = cmd_sn;
    list_insert_between(&h->link, before->prev, before);
    s->nheld++;
    return h;
}

/* It came before its turn: a copy is kept. The window bounds how many there are. */
static enum verdict
hold(struct sess *s, struct conn *c, const struct pdu *pdu)
{
    if (s->held_bytes + pdu->data_len > HELD_BYTES_MAX)
        return DROP_SESS;
    struct held *h = held_new(s, pdu->cmd_sn, pdu->ahs_len + pdu->data_len);
    if (!h)
        return KEEP; /* a duplicate */
    h->c = c;
    h->row = c->rx.row;
    h->pdu = *pdu;
    s->held_bytes += pdu->data_len;
    if (pdu->ahs_len > 0) {
        memcpy(h->bytes, pdu->ahs, pdu->ahs_len);
        h->pdu.ahs = h->bytes;
    }
    if (pdu->data_len > 0) {
        memcpy(h->bytes + pdu->ahs_len, pdu->data, pdu->data_len);
        h->pdu.data = h->bytes + pdu->ahs_len;
    }
    return KEEP;
}

/* One whose turn it is. A rejected one counts as not received (RFC 7143 7.3). */
static enum verdict
run_in_turn(struct sess *s, struct conn *c, const struct pdu_row *row, struct pdu *pdu)
{
    s->exp_cmd_sn++;
    enum verdict v = row->handler(c, pdu);
    if (v == REJECT)
        s->exp_cmd_sn--;
    return v;
}

/* What was held and has its turn now. */
static void
run_held(struct sess *s)
{
    while (!list_is_empty(&s->held) && !s->dying) {
        struct held *h = list_first(&s->held, struct held, link);
        if (sn_lt(s->exp_cmd_sn, h->cmd_sn))
            break;
        list_del(&h->link); /* the handler may end the session, which empties the list */
        list_init(&h->link);
        s->nheld--;
        s->held_bytes -= h->pdu.data_len;
        bool in_turn = h->cmd_sn == s->exp_cmd_sn;
        if (in_turn && !h->c)
            s->exp_cmd_sn++;
        else if (in_turn && !h->c->closing)
            conn_verdict(h->c, &h->pdu, run_in_turn(s, h->c, h->row, &h->pdu));
        free(h);
    }
}

enum verdict
sess_admit(struct sess *s, struct conn *c, struct pdu *pdu)
{
    worker_assert_owner(s->w);
    worker_command(s->w);
    if (pdu->immediate)
        return c->rx.row->handler(c, pdu);
    if (sn_lt(pdu->cmd_sn, s->exp_cmd_sn) || sn_lt(s->max_cmd_sn, pdu->cmd_sn))
        return KEEP; /* silently: a duplicate, or beyond what was allowed */
    if (pdu->cmd_sn != s->exp_cmd_sn)
        return hold(s, c, pdu);
    if (list_is_empty(&s->held) && list_is_empty(&s->tmfs))
        return run_in_turn(s, c, c->rx.row, pdu);
    sess_get(s);
    enum verdict v = run_in_turn(s, c, c->rx.row, pdu);
    if (v == REJECT) { /* said before what follows is answered */
        conn_verdict(c, pdu, v);
        v = KEEP;
    }
    run_held(s);
    if (!s->dying)
        tmf_kick(s);
    sess_put(s);
    return v;
}

static void
on_run_later(struct deferred *d)
{
    struct sess *s = container_of(d, struct sess, run_later);
    sess_get(s);
    run_held(s);
    if (!s->dying)
        tmf_kick(s);
    sess_put(s);
}

/* The numbers that count as received are passed at once; PDUs that follow them run later, because
 * a handler may end what the caller works on. */
static void
pass_plugs(struct sess *s)
{
    while (!list_is_empty(&s->held)) {
        struct held *h = list_first(&s->held, struct held, link);
        if (h->c || h->cmd_sn != s->exp_cmd_sn)
            break;
        s->exp_cmd_sn++;
        held_free(s, h);
    }
    worker_defer(s->w, &s->run_later);
}

void
sess_plug_below(struct sess *s, uint32_t below)
{
    worker_assert_owner(s->w);
    if (!sn_lt(s->exp_cmd_sn, below) || sn_lt(s->max_cmd_sn + 1, below))
        return; /* nothing is missing, or it names what was never allowed */
    while (!list_is_empty(&s->held)) {
        struct held *h = list_first(&s->held, struct held, link);
        if (!sn_lt(h->cmd_sn, below))
            break;
        held_free(s, h);
    }
    s->exp_cmd_sn = below;
    pass_plugs(s);
}

bool
sess_plug(struct sess *s, uint32_t cmd_sn)
{
    worker_assert_owner(s->w);
    if (sn_lt(cmd_sn, s->exp_cmd_sn) || sn_lt(s->max_cmd_sn, cmd_sn))
        return false;
    list_each_safe(it, &s->held) {
        struct held *h = container_of(it, struct held, link);
        if (h->cmd_sn == cmd_sn)
            held_free(s, h);
    }
    held_new(s, cmd_sn, 0);
    pass_plugs(s);
    return true;
}

/* --- death
 * ---------------------------------------------------------------------------------------- */

static void
on_free_later(struct deferred *d)
{
    struct sess *s = container_of(d, struct sess, free_later);
    budget_fini(&s->budget);
    if (s->node)
        node_put(s->node);
    free(s->by_itt);
    free(s);
}

void
sess_get(struct sess *s)
{
    s->refs++;
}

void
sess_put(struct sess *s)
{
    worker_assert_owner(s->w);
    if (--s->refs == 0)
        worker_defer(s->w, &s->free_later); /* a caller up the stack may look at it once more */
}

static void
drop_tasks(struct sess *s, const struct conn *c)
{
    list_each_safe(it, &s->tasks) {
        struct task *t = container_of(it, struct task, on_sess);
        if (!c || t->conn == c) {
            t->conn = NULL;
            task_drop(t);
        }
    }
}

void
sess_kill(struct sess *s, const char *why)
{
    worker_assert_owner(s->w);
    if (s->dying)
        return;
    s->dying = true;
    sess_get(s);
    log_event(LL_NOTICE, LA_SESSION,
              "session-closed sid=%llu tsih=%u initiator=%s target=%s "
              "why=\"%s\" commands=%llu",
              (unsigned long long)s->sid, s->tsih, LOG_ESC(s->initiator),
              s->node ? s->node->name : "(discovery)", why, (unsigned long long)s->cmds);
    registry_remove(s->entry);
    s->entry = NULL;
    list_del(&s->on_worker);
    tgt_here()->nsessions--;
    deferred_cancel(&s->run_later);
    tmf_forget_all(s);
    while (!list_is_empty(&s->held))
        held_free(s, list_first(&s->held, struct held, link));
    while (!list_is_empty(&s->conns)) {
        struct conn *c = list_first(&s->conns, struct conn, on_sess);
        list_del(&c->on_sess);
        drop_tasks(s, c);
        c->sess = NULL;
        if (!c->closing) /* else it may be sending its last word */
            conn_close(c, why, false);
    }
    drop_tasks(s, NULL);
    if (s->itn)
        itn_free(s->itn);
    s->itn = NULL;
    sess_put(s);
    sess_put(s);
}

void
sess_conn_gone(struct sess *s, struct conn *c)
{
    worker_assert_owner(s->w);
    list_del(&c->on_sess);
    c->sess = NULL;
    list_each_safe(it, &s->held) {
        struct held *h = container_of(it, struct held, link);
        if (h->c == c)
            held_free(s, h);
    }
    tmf_forget_conn(s, c);
    drop_tasks(s, c);
    /* Nothing is retained (Time2Retain 0): without a connection the session is over. */
    if (list_is_empty(&s->conns))
        sess_kill(s, "no connection is left");
}

void
sess_drop(struct sess *s, const char *why)
{
    worker_assert_owner(s->w);
    if (s->dying)
        return;
    list_each(it, &s->conns) {
        struct conn *c = container_of(it, struct conn, on_sess);
        if (conn_is_full_feature(c))
            async_send(c, ASYNC_DROP_SESS, 0, 0, 0); /* 0: nothing is retained */
        conn_close(c, why, true);
    }
    sess_kill(s, why);
}

/* A drain begins, is begun anew or is called off. */
static void
drain_sess(struct sess *s, const struct tgt_node *old, const struct tgt_node *n)
{
    unsigned before = old->drain ? old->drain->id : 0, now = n->drain ? n->drain->id : 0;
    if (before == now)
        return;
    list_each(it, &s->conns) {
        struct conn *c = container_of(it, struct conn, on_sess);
        if (n->drain)
            async_ask_logout(c, n->drain->deadline_s, "the target is drained");
        else
            async_withdraw(c);
    }
}

void
sess_node_changed(struct sess *s, struct tgt_node *n)
{
    worker_assert_owner(s->w);
    if (s->dying || !s->node || s->node == n)
        return;
    if (!n || n->offline) {
        sess_drop(s, n ? "the target goes offline" : "the target is removed");
        return;
    }
    struct tgt_node *old = s->node;
    s->node = node_get(n);
    s->max_cmds = window_for(n, &s->p);
    list_each(it, &s->conns) {
        struct conn *c = container_of(it, struct conn, on_sess);
        if (conn_is_full_feature(c))
            nop_start(c);
    }
    if (n->map != old->map)
        itn_set_map(s->itn, n->map);
    drain_sess(s, old, n);
    node_put(old);
}

/* --- for all workers
 * ------------------------------------------------------------------------------ */

struct kill_all {
    char target[ISCSI_NAME_MAX + 1];
    bool all;
    const char *why;
};

static void
on_kill(struct worker *w, void *arg)
{
    const struct kill_all *k = arg;
    (void)w;
    list_each_safe(it, &tgt_here()->sessions) {
        struct sess *s = container_of(it, struct sess, on_worker);
        if (k->all || (s->node && strcmp(s->node->name, k->target) == 0))
            sess_drop(s, k->why);
    }
}

static void
on_killed(struct worker *back, void *arg)
{
    (void)back;
    free(arg);
}

void
sess_kill_target(const char *target_name, const char *why)
{
    struct kill_all *k = xcalloc(1, sizeof *k);
    k->all = target_name == NULL;
    k->why = why;
    if (target_name)
        memcpy(k->target, target_name, strnlen(target_name, ISCSI_NAME_MAX));
    worker_broadcast(on_kill, k, worker_self(), on_killed);
}
