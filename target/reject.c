/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reject (RFC 7143 11.17).  Called by conn.c and the handlers on the connection's worker.
 */
#include "config.h"

#include "base/bytes.h"
#include "base/counter.h"
#include "target/target.h"

void
reject_send(struct conn *c, const struct pdu *pdu, enum reject_reason reason)
{
    worker_assert_owner(c->w);
    if (c->closing)
        return;
    counter_add(CT_PDU_REJECTED, 1);
    /* one for the worker: who comes again for each mistake is the same peer */
    static _Thread_local struct log_rate rate;
    uint32_t suppressed;
    if (log_rate_ok(&rate, &suppressed))
        log_event(LL_NOTICE, LA_NET,
                  "pdu-rejected peer=%s opcode=%#x itt=%#x reason=%#x suppressed=%u", c->peer_text,
                  pdu->opcode, pdu->itt, (unsigned)reason, suppressed);
    uint8_t bhs[BHS_LEN] = {OPC_REJECT, 0x80, (uint8_t)reason};
    put_be32(bhs + 16, TAG_RESERVED);
    conn_stamp(c, bhs, true);
    tx_pdu(c, bhs, pdu->bhs, BHS_LEN, NULL, NULL);
}
