/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data-In (RFC 7143 11.7): a window of data in PDUs no longer than the initiator takes, an F bit
 * at the end of each burst, GOOD status in the last PDU.  Owner: the session's worker.
 */
#include "config.h"

#include "base/bytes.h"
#include "target/target.h"

enum { DI_FINAL = 0x80, DI_OVERFLOW = 0x04, DI_UNDERFLOW = 0x02, DI_STATUS = 0x01 };

uint8_t
datain_residual(const struct task *t, uint32_t *count)
{
    const struct scsi_cmd *cmd = &t->cmd;
    bool in = cmd->xfer_in > 0 || t->is_read;
    uint64_t expected = in ? cmd->exp_in : cmd->exp_out;
    uint64_t moved = in ? cmd->xfer_in : cmd->xfer_out;
    if (expected == moved) {
        *count = 0;
        return 0;
    }
    uint64_t diff = moved > expected ? moved - expected : expected - moved;
    *count = diff < 0xffffffffu ? (uint32_t)diff : 0xffffffffu;
    return moved > expected ? DI_OVERFLOW : DI_UNDERFLOW;
}

static void
on_pushed_later(struct deferred *d)
{
    struct task *t = container_of(d, struct task, later);
    if (!t->done && t->pushing) {
        t->pushing = false;
        scsi_pushed(&t->cmd);
    }
}

/* A piece sent in place has left, or never will. */
static void
on_left(void *arg)
{
    struct task *t = arg;
    if (--t->unsent == 0 && t->pushing && !t->done) {
        t->pushing = false;
        task_get(t);
        scsi_pushed(&t->cmd);
        task_put(t);
    }
    task_put(t);
}

/* Bytes of the next PDU: within what the initiator takes and the burst. Only the last of a burst
 * may be no multiple of 4 (11.7.7). */
static uint32_t
next_len(const struct task *t, uint32_t left, bool *final)
{
    uint32_t pdu = t->conn->p.max_xmit & ~3u;
    uint32_t burst = t->sess->p.max_burst - t->burst;
    uint32_t n = left < burst ? left : burst;
    if (n > pdu)
        n = pdu;
    *final = n == burst;
    return n;
}

bool
datain_send(struct task *t, bool last)
{
    const struct scsi_cmd *cmd = &t->cmd;
    struct conn *c = t->conn;
    bool with_status = last && cmd->status == SAM_GOOD && cmd->sense_len == 0;
    bool in_place = cmd->lent || cmd->win_len >= TX_IN_PLACE;
    uint32_t end = cmd->win_off + cmd->win_len;
    for (uint32_t off = cmd->win_off; off < end;) {
        bool final;
        uint32_t n = next_len(t, end - off, &final);
        bool is_last = last && off + n == end;
        uint8_t bhs[BHS_LEN] = {OPC_DATA_IN, final || is_last ? DI_FINAL : 0};
        put_be32(bhs + 16, t->itt);
        put_be32(bhs + 20, TAG_RESERVED);
        bool status = is_last && with_status;
        conn_stamp(c, bhs, status);
        if (status) {
            uint32_t residual;
            bhs[1] |= (uint8_t)(DI_STATUS | datain_residual(t, &residual));
            bhs[3] = cmd->status;
            put_be32(bhs + 44, residual);
        } else {
            put_be32(bhs + 24, 0); /* StatSN is there with the S bit only */
        }
        put_be32(bhs + 36, t->data_sn++);
        put_be32(bhs + 40, off);
        t->burst = final ? 0 : t->burst + n;
        if (in_place) {
            task_get(t);
            t->unsent++;
        }
        tx_pdu(c, bhs, cmd->data + (off - cmd->win_off), n, in_place ? on_left : NULL, t);
        off += n;
    }
    return with_status;
}

void
datain_push(struct scsi_cmd *cmd)
{
    struct task *t = container_of(cmd, struct task, cmd);
    worker_assert_owner(t->sess->w);
    t->pushing = true;
    if (t->conn && !t->quiet)
        datain_send(t, false);
    if (t->unsent == 0) {
        t->later.fn = on_pushed_later;
        worker_defer(t->sess->w, &t->later);
    }
}
