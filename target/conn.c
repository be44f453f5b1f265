/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection's life: accepted, logged in, moved, closed.  The states are those of RFC 7143
 * 8.1.3 as far as a target without connection recovery uses them; `rows` says what is allowed and
 * conn_event is the one place that assigns the state.  Owner: the connection's worker.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/pool.h"
#include "base/serial.h"
#include "target/target.h"

#define FLUSH_MS   3000u /* for what is queued when a connection closes in order */
#define LINGER_MS  1000u /* then for the peer's end */
#define LINGER_MAX (1024u * 1024)

struct tgt_opts tgt_opts = {
    .login_timeout_s = 15,
    .max_half_open = 512,
    .max_sessions = 4096,
    .login_bytes_max = 64 * 1024,
    .nop_interval_s = 10,
    .nop_count = 3,
    .shutdown_s = 5,
    .keepalive_idle_s = 60,
    .keepalive_interval_s = 10,
    .keepalive_count = 6,
    .dscp = -1,
    .login_delay_ms = 2000,
    .redirect_timeout_s = 5,
    .sess_mem_bytes = 32 * 1024 * 1024,
};

static _Thread_local struct tgt_worker *here;

/* --- the worker ------------------------------------------------------------------------------ */

/* Commands that a backend still has stay where they are, and what they need with them. */
static void
on_reap(struct deferred *d)
{
    struct tgt_worker *tw = container_of(d, struct tgt_worker, reap);
    if (pool_in_use(tw->tasks) > 0 || pool_in_use(tw->txitems) > 0)
        return;
    pool_free(tw->tasks);
    pool_free(tw->txitems);
    free(tw);
    here = NULL;
}

void
tgt_worker_init(struct worker *w)
{
    worker_assert_owner(w);
    if (here)
        return;
    here = xcalloc(1, sizeof *here);
    here->w = w;
    list_init(&here->conns);
    list_init(&here->sessions);
    here->tasks = pool_new(sizeof(struct task), 64);
    here->txitems = pool_new(sizeof(struct tx_item), 128);
    deferred_init(&here->reap, on_reap);
}

void
tgt_worker_fini(struct worker *w)
{
    worker_assert_owner(w);
    if (!here)
        return;
    while (!list_is_empty(&here->sessions))
        sess_kill(list_first(&here->sessions, struct sess, on_worker), "the daemon ends");
    list_each(it, &here->conns)
        conn_close(container_of(it, struct conn, on_worker), "the daemon ends", false);
    list_each_safe(it, &here->conns) {
        struct conn *c = container_of(it, struct conn, on_worker);
        c->flushing = false;
        deferred_cancel(&c->close_later);
        c->close_later.fn(&c->close_later);
    }
    node_forget_here();
    worker_defer_flush(w, &here->reap); /* after what this has deferred */
}

struct tgt_worker *
tgt_here(void)
{
    return here;
}

/* --- the state machine (RFC 7143 8.1.4) ------------------------------------------------------- */

#define IN(s) (1u << (s))

static void
leave_half_open(struct conn *c)
{
    half_leave(c->half);
    c->half = NULL;
}

static void
act_logged_in(struct conn *c)
{
    leave_half_open(c);
    nop_start(c);
    rx_resume(c, RX_PAUSE_LOGIN);
}

static const struct conn_row {
    unsigned from; /* set of enum conn_state */
    uint8_t event, to;
    void (*action)(struct conn *c);
} rows[] = {
    {IN(CS_FREE), CE_ACCEPTED, CS_XPT_UP, NULL},                              /* T3 */
    {IN(CS_XPT_UP), CE_LOGIN_PDU, CS_IN_LOGIN, NULL},                         /* T4 */
    {IN(CS_IN_LOGIN), CE_LOGGED_IN, CS_LOGGED_IN, act_logged_in},             /* T5 */
    {IN(CS_LOGGED_IN), CE_LOGOUT_PDU, CS_IN_LOGOUT, NULL},                    /* T9, T10 */
    {IN(CS_LOGGED_IN), CE_LOGOUT_ASKED, CS_LOGOUT_REQUESTED, NULL},           /* T11, T12 */
    {IN(CS_LOGOUT_REQUESTED), CE_LOGOUT_ASKED, CS_LOGOUT_REQUESTED, NULL},    /* T14 */
    {IN(CS_LOGOUT_REQUESTED), CE_LOGOUT_PDU, CS_IN_LOGOUT, NULL},             /* T10 */
    {IN(CS_XPT_UP) | IN(CS_IN_LOGIN), CE_CLOSE, CS_CLEANUP, leave_half_open}, /* T6, T7 */
    {IN(CS_LOGGED_IN) | IN(CS_IN_LOGOUT), CE_CLOSE, CS_CLEANUP, NULL},        /* T8, T13, T15 */
    {IN(CS_LOGOUT_REQUESTED), CE_CLOSE, CS_CLEANUP, NULL},                    /* T16..T18 */
    {IN(CS_CLEANUP), CE_GONE, CS_FREE, NULL},                                 /* M1 */
};

void
conn_event(struct conn *c, enum conn_ev ev)
{
    worker_assert_owner(c->w);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct conn_row *r = &rows[i];
        if (r->event != ev || !(r->from & IN(c->state)))
            continue;
        c->state = r->to;
        if (r->action)
            r->action(c);
        return;
    }
    static _Thread_local struct log_rate rate;
    uint32_t suppressed;
    if (log_rate_ok(&rate, &suppressed))
        log_event(LL_ERROR, LA_NET, "event-out-of-place peer=%s state=%u event=%u suppressed=%u",
                  c->peer_text, c->state, ev, suppressed);
    conn_close(c, "event out of place", false);
}

bool
conn_is_full_feature(const struct conn *c)
{
    return (IN(c->state) & (IN(CS_LOGGED_IN) | IN(CS_IN_LOGOUT) | IN(CS_LOGOUT_REQUESTED))) != 0;
}

/* --- birth ------------------------------------------------------------------------------------ */

static void
set_peer_text(struct conn *c)
{
    char ip[INET6_ADDRSTRLEN] = "";
    const struct sockaddr_in *in4 = (const void *)&c->peer;
    const struct sockaddr_in6 *in6 = (const void *)&c->peer;
    if (c->peer.ss_family == AF_INET && inet_ntop(AF_INET, &in4->sin_addr, ip, sizeof ip))
        snprintf(c->peer_text, sizeof c->peer_text, "%s:%u", ip, ntohs(in4->sin_port));
    else if (c->peer.ss_family == AF_INET6 && inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof ip))
        snprintf(c->peer_text, sizeof c->peer_text, "[%s]:%u", ip, ntohs(in6->sin6_port));
    else
        snprintf(c->peer_text, sizeof c->peer_text, "local");
}

static void on_timer(struct worker_timer *t);
static void on_close_later(struct deferred *d);

/* Everything that is bound to the worker, here and again after a move. */
static void
settle(struct conn *c, struct worker *w)
{
    c->w = w;
    rx_init(c);
    tx_init(c);
    worker_timer_init(&c->timer, w, on_timer);
    deferred_init(&c->close_later, on_close_later);
    async_init(c);
    list_add_tail(&here->conns, &c->on_worker);
    here->nconns++;
}

static void
start_login_timer(struct conn *c)
{
    uint64_t now = clock_ms();
    worker_timer_start_ms(&c->timer, c->login_due_ms > now ? c->login_due_ms - now : 0);
}

void
conn_accept(struct worker *w, int fd, const struct conn_from *from)
{
    worker_assert_owner(w);
    counter_add(CT_CONN_ACCEPTED, 1);
    struct conn *c = xcalloc(1, sizeof *c);
    if ((from->half && !half_enter(from->half, c)) || xp_plain_init(&c->xp, fd) < 0) {
        counter_add(CT_CONN_REFUSED, 1);
        half_leave(from->half);
        close(fd);
        free(c);
        return;
    }
    c->refs = 1;
    c->peer = from->peer;
    c->local = from->local;
    c->via = from->via;
    c->half = from->half;
    c->p = (struct conn_params){.max_recv = 8192, .max_xmit = 8192};
    c->stat_sn = 1;
    c->nop.ttt = TAG_RESERVED;
    list_init(&c->on_sess);
    list_init(&c->on_worker);
    set_peer_text(c);
    settle(c, w);
    conn_event(c, CE_ACCEPTED);
    c->login_due_ms = clock_ms() + tgt_opts.login_timeout_s * 1000ull;
    start_login_timer(c);
    rx_start(c);
    log_debug(LA_NET, "accepted peer=%s", c->peer_text);
}

/* --- a move between workers, in login -----------------------------------------------------------
 */

static void
on_arrive(struct worker *w, void *arg)
{
    struct conn *c = arg;
    void (*then)(struct conn * c) = c->move_then;
    c->move_then = NULL;
    settle(c, w);
    c->rx.paused = RX_PAUSE_LOGIN;
    rx_attach(c, c->move_bytes, c->move_len);
    c->move_bytes = NULL;
    start_login_timer(c);
    if (then)
        then(c);
}

static void
on_move_drained(struct conn *c)
{
    if (c->closing)
        return; /* the end is scheduled, and tells sess_establish */
    c->move_bytes = rx_detach(c, &c->move_len);
    rx_fini(c);
    tx_fini(c);
    worker_timer_stop(&c->timer);
    deferred_cancel(&c->close_later);
    list_del(&c->on_worker);
    here->nconns--;
    worker_post(c->move_to, on_arrive, c);
}

void
conn_move(struct conn *c, struct worker *to, void (*then)(struct conn *c))
{
    worker_assert_owner(c->w);
    rx_pause(c, RX_PAUSE_LOGIN);
    leave_half_open(c); /* its login is agreed: nobody takes its place any more */
    c->move_to = to;
    c->move_then = then;
    tx_when_drained(c, on_move_drained);
}

/* --- death ------------------------------------------------------------------------------------ */

void
conn_get(struct conn *c)
{
    worker_assert_owner(c->w);
    c->refs++;
}

void
conn_put(struct conn *c)
{
    worker_assert_owner(c->w);
    if (--c->refs > 0)
        return;
    free(c->text.in);
    free(c->text.out);
    free(c);
}

static void
detach(struct conn *c)
{
    if (c->detached)
        return;
    c->detached = true;
    sess_establish_gone(c);
    if (c->sess)
        sess_conn_gone(c->sess, c);
    login_free(c);
}

static void
finish(struct conn *c)
{
    detach(c); /* the session forgets it in any case, whoever comes first */
    deferred_cancel(&c->close_later);
    worker_timer_stop(&c->timer);
    rx_fini(c);
    tx_fini(c);
    c->xp.ops->close(&c->xp);
    list_del(&c->on_worker);
    here->nconns--;
    pool_trim(here->tasks); /* after a burst of sessions */
    pool_trim(here->txitems);
    conn_event(c, CE_GONE);
    conn_put(c);
}

static void
on_close_drained(struct conn *c)
{
    /* A close with unread bytes would answer them with RST, which can destroy what was sent last
     * on its way to the peer: so the sending side ends first, then the peer's end is awaited. */
    c->xp.ops->shutdown(&c->xp);
    c->lingering = true;
    worker_timer_start_ms(&c->timer, LINGER_MS);
    ev_io_start(worker_loop(c->w), &c->rx.ev);
}

void
conn_linger(struct conn *c)
{
    uint8_t waste[16384];
    struct iovec iov = {.iov_base = waste, .iov_len = sizeof waste};
    for (size_t sum = 0; sum < LINGER_MAX;) {
        ssize_t n = c->xp.ops->read(&c->xp, &iov, 1);
        if (n == -EAGAIN)
            return;
        if (n <= 0)
            break;
        sum += (size_t)n;
    }
    finish(c);
}

static void
on_close_later(struct deferred *d)
{
    struct conn *c = container_of(d, struct conn, close_later);
    detach(c);
    if (!c->flushing) {
        finish(c);
        return;
    }
    worker_timer_start_ms(&c->timer, FLUSH_MS);
    tx_when_drained(c, on_close_drained);
}

void
conn_close(struct conn *c, const char *why, bool flush)
{
    worker_assert_owner(c->w);
    if (c->closing) {
        if (flush || !c->flushing)
            return;
        c->flushing = false; /* what was to be sent cannot be */
        worker_defer(c->w, &c->close_later);
        return;
    }
    log_debug(LA_NET, "connection-closes peer=%s why=\"%s\"", c->peer_text, why);
    c->closing = true;
    worker_timer_stop(&c->timer); /* from now on it is close_later's */
    c->flushing = flush && !c->tx.lost;
    rx_pause(c, RX_PAUSE_CLOSE);
    async_withdraw(c);
    conn_event(c, CE_CLOSE);
    worker_defer(c->w, &c->close_later);
}

static void
on_timer(struct worker_timer *t)
{
    struct conn *c = container_of(t, struct conn, timer);
    if (c->closing) {
        finish(c);
    } else if (conn_is_full_feature(c)) {
        nop_timer(c);
    } else {
        counter_add(CT_LOGIN_FAILED, 1);
        conn_close(c, "login takes too long", false);
    }
}

/* --- PDUs ------------------------------------------------------------------------------------- */

void
conn_stamp(struct conn *c, uint8_t bhs[BHS_LEN], bool takes)
{
    put_be32(bhs + 24, c->stat_sn);
    if (takes)
        c->stat_sn++;
    if (c->sess)
        sess_stamp(c->sess, bhs);
}

void
conn_verdict(struct conn *c, const struct pdu *pdu, enum verdict v)
{
    if (v == KEEP || c->closing)
        return;
    if (v == REJECT)
        reject_send(c, pdu, c->reject_reason ? c->reject_reason : REJ_PROTOCOL);
    else if (v == DROP_SESS && c->sess)
        sess_kill(c->sess, "protocol error");
    else
        conn_close(c, "protocol error", false);
    c->reject_reason = 0;
}

static enum verdict
login_phase(struct conn *c, struct pdu *pdu)
{
    const struct pdu_row *row = c->rx.row;
    if (!row || !(row->phases & PDU_LOGIN)) {
        /* RFC 7143 6.3.1: nothing but Login Requests, and no answer before the first. */
        return c->state == CS_XPT_UP ? DROP_CONN : login_foreign_pdu(c, pdu);
    }
    if (c->state == CS_XPT_UP)
        conn_event(c, CE_LOGIN_PDU);
    return row->handler(c, pdu);
}

static enum verdict
full_feature(struct conn *c, struct pdu *pdu)
{
    const struct pdu_row *row = c->rx.row;
    if (sn_le(pdu->exp_stat_sn, c->stat_sn) && sn_lt(c->exp_stat_sn, pdu->exp_stat_sn))
        c->exp_stat_sn = pdu->exp_stat_sn;
    if (!row)
        return conn_reject(c, REJ_NOT_SUPPORTED);
    if (!(row->phases & (c->discovery ? PDU_DISCOVERY : PDU_NORMAL)))
        return conn_reject(c, row->refuse);
    if ((pdu->ahs_len > 0 && !(row->flags & PDU_AHS)) ||
        (pdu->data_len > 0 && !(row->flags & PDU_DATA)))
        return conn_reject(c, REJ_INVALID_FIELD);
    if (row->flags & PDU_CMD_SN)
        return sess_admit(c->sess, c, pdu);
    return row->handler(c, pdu);
}

void
conn_on_pdu(struct conn *c, struct pdu *pdu)
{
    counter_add(CT_PDU_IN, 1);
    if (c->closing)
        return;
    uint8_t op = pdu->bhs[0] & 0x3f;
    c->count.cmds += op == OPC_SCSI_CMD;
    c->count.data_out += op == OPC_DATA_OUT;
    conn_verdict(c, pdu, conn_is_full_feature(c) ? full_feature(c, pdu) : login_phase(c, pdu));
}
