/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pings both ways (RFC 7143 11.18, 11.19) and the dead-peer timer: one timer a connection, which
 * looks only once an interval whether anything came.  Owner: the connection's worker.
 */
#include "config.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counter.h"
#include "target/target.h"

#define DISCOVERY_IDLE_MS 60000u /* no pings there (RFC 7143 4.3): a silent one is closed */

static unsigned
option(unsigned of_node, unsigned of_daemon)
{
    return of_node == 0xffffffffu ? of_daemon : of_node;
}

/* Full feature phase begins. */
void
nop_start(struct conn *c)
{
    const struct tgt_node *n = c->sess ? c->sess->node : NULL;
    unsigned s = option(n ? n->nop_interval_s : 0xffffffffu, tgt_opts.nop_interval_s);
    c->nop.count = option(n ? n->nop_count : 0xffffffffu, tgt_opts.nop_count);
    c->nop.interval_ms = s < 86400 ? s * 1000 : 86400000;
    if (c->nop.count == 0)
        c->nop.interval_ms = 0;
    if (c->discovery) {
        c->nop.interval_ms = DISCOVERY_IDLE_MS;
        c->nop.count = 0;
    }
    c->nop.missed = 0;
    c->nop.ttt = TAG_RESERVED;
    c->nop.last_rx_ms = clock_ms();
    if (c->nop.interval_ms > 0)
        worker_timer_start_ms(&c->timer, c->nop.interval_ms);
    else
        worker_timer_stop(&c->timer);
}

static void
ping(struct conn *c)
{
    c->nop.missed++;
    c->nop.ttt = c->sess->next_ttt++;
    if (c->nop.ttt == TAG_RESERVED)
        c->nop.ttt = c->sess->next_ttt++;
    uint8_t bhs[BHS_LEN] = {OPC_NOP_IN, 0x80};
    put_be32(bhs + 16, TAG_RESERVED);
    put_be32(bhs + 20, c->nop.ttt);
    conn_stamp(c, bhs, false);
    tx_pdu(c, bhs, NULL, 0, NULL, NULL);
}

void
nop_timer(struct conn *c)
{
    worker_assert_owner(c->w);
    uint64_t idle = clock_ms() - c->nop.last_rx_ms;
    if (idle < c->nop.interval_ms) {
        c->nop.missed = 0;
        worker_timer_start_ms(&c->timer, c->nop.interval_ms - idle);
        return;
    }
    if (c->nop.missed >= c->nop.count || !c->sess) {
        if (!c->discovery) {
            counter_add(CT_NOP_TIMEOUT, 1);
            log_event(LL_WARN, LA_SESSION, "initiator-silent peer=%s silent_ms=%llu",
                      c->peer_text, (unsigned long long)idle);
        }
        conn_close(c, "no answer to pings", false);
        return;
    }
    ping(c);
    worker_timer_start_ms(&c->timer, c->nop.interval_ms);
}

enum verdict
nop_out_pdu(struct conn *c, struct pdu *pdu)
{
    if (pdu->itt == TAG_RESERVED) {
        if (pdu->ttt == c->nop.ttt && pdu->ttt != TAG_RESERVED) {
            c->nop.ttt = TAG_RESERVED;
            c->nop.missed = 0;
        }
        /* No answer is wanted; it must be immediate (RFC 7143 11.18.1). */
        return pdu->immediate ? KEEP : conn_reject(c, REJ_PROTOCOL);
    }
    uint32_t len = pdu->data_len < c->p.max_xmit ? pdu->data_len : c->p.max_xmit;
    uint8_t bhs[BHS_LEN] = {OPC_NOP_IN, 0x80};
    put_be32(bhs + 16, pdu->itt);
    put_be32(bhs + 20, TAG_RESERVED);
    conn_stamp(c, bhs, true);
    tx_pdu(c, bhs, pdu->data, len, NULL, NULL);
    return KEEP;
}
