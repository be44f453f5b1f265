/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous Messages (RFC 7143 11.9), and that what they ask for is done in time.  One thing is
 * asked of a connection at once, with one timer.  Owner: the connection's worker.
 *
 * Event 0 (a SCSI asynchronous event) is never sent: what a unit has to report it reports as unit
 * attention conditions, which no initiator misses.  Nor is 5, which FastAbort needs, nor 255.
 */
#include "config.h"

#include "base/bytes.h"
#include "target/target.h"

void
async_send(struct conn *c, enum async_event event, uint16_t p1, uint16_t p2, uint16_t p3)
{
    worker_assert_owner(c->w);
    if (c->closing)
        return;
    /* LUN (8..15) is reserved but in event 0; AsyncVCode (37) but in 255. */
    uint8_t bhs[BHS_LEN] = {OPC_ASYNC, 0x80};
    put_be32(bhs + 16, TAG_RESERVED);
    conn_stamp(c, bhs, true);
    bhs[36] = (uint8_t)event;
    put_be16(bhs + 38, p1);
    put_be16(bhs + 40, p2);
    put_be16(bhs + 42, p3);
    tx_pdu(c, bhs, NULL, 0, NULL, NULL);
}

static void
on_due(struct worker_timer *t)
{
    struct conn *c = container_of(t, struct conn, asked.timer);
    uint8_t event = c->asked.event;
    c->asked.event = 0;
    if (c->closing || event == 0)
        return;
    if (event == ASYNC_LOGOUT && c->sess) {
        sess_drop(c->sess, c->asked.why);
        return;
    }
    /* Time2Wait and Time2Retain are 0: it may come back at once, and nothing is kept for it. */
    async_send(c, ASYNC_DROP_CONN, c->cid, 0, 0);
    conn_close(c, "no Text Request in time", true);
}

void
async_init(struct conn *c)
{
    worker_timer_init(&c->asked.timer, c->w, on_due);
    c->asked.event = 0;
}

static void
ask(struct conn *c, enum async_event event, unsigned s, const char *why)
{
    uint16_t p3 = (uint16_t)(s < 0xffff ? s : 0xffff);
    async_send(c, event, 0, 0, p3);
    c->asked.event = (uint8_t)event;
    c->asked.why = why;
    worker_timer_start_ms(&c->asked.timer, p3 * 1000ull);
}

void
async_ask_logout(struct conn *c, unsigned s, const char *why)
{
    worker_assert_owner(c->w);
    if (c->closing || !conn_is_full_feature(c) || c->discovery)
        return;
    ask(c, ASYNC_LOGOUT, s, why);
    conn_event(c, CE_LOGOUT_ASKED);
}

void
async_ask_text(struct conn *c, unsigned s)
{
    worker_assert_owner(c->w);
    if (c->closing || !conn_is_full_feature(c) || c->discovery || c->asked.event == ASYNC_LOGOUT)
        return;
    ask(c, ASYNC_TEXT, s, NULL);
}

bool
async_text_is_due(const struct conn *c)
{
    return c->asked.event == ASYNC_TEXT;
}

void
async_text_came(struct conn *c)
{
    if (async_text_is_due(c))
        async_withdraw(c);
}

void
async_withdraw(struct conn *c)
{
    worker_assert_owner(c->w);
    c->asked.event = 0;
    worker_timer_stop(&c->asked.timer);
}
