/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text Requests in full feature phase (RFC 7143 6.4, 11.10, 11.11): SendTargets, a new
 * MaxRecvDataSegmentLength, and answers to everything else.  Handler of pdutab.c, on the
 * connection's worker, in CmdSN order.
 *
 * At most one exchange is open on a connection. Pieces with the C bit are joined; a long answer is
 * sent in pieces that the initiator asks for with empty requests.  What was negotiated takes
 * effect when the exchange ends.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/pool.h"
#include "target/nego.h"
#include "target/target.h"

#define TEXT_F     0x80u
#define TEXT_C     0x40u
/* An answer that peers cannot make longer than this by asking for nonsense; the list of all
 * targets, whose length is the configuration's, is outside of it. */
#define ANSWER_MAX 65536u
/* Bytes of one response at most: what an initiator takes may be 16 MiB. */
#define PIECE_MAX  262144u

static void
forget(struct conn *c)
{
    free(c->text.in);
    free(c->text.out);
    discovery_forget(c);
    c->text.in = c->text.out = NULL;
    c->text.in_len = c->text.out_len = c->text.out_pos = 0;
    c->text.new_max_xmit = 0;
    c->text.declared = false;
    c->text.open = false;
}

void
text_free(struct conn *c)
{
    forget(c);
}

/* The negotiation has failed: everything of it is forgotten (7.12). */
static enum verdict
fail(struct conn *c, enum reject_reason reason)
{
    forget(c);
    return conn_reject(c, reason);
}

static void
begin(struct conn *c, const struct pdu *pdu)
{
    forget(c);
    c->text.open = true;
    c->text.itt = pdu->itt;
    c->text.ttt = c->text.ttt >= 0x7ffffffe ? 1 : c->text.ttt + 1; /* never the reserved tag */
}

/* --- responses ------------------------------------------------------------------------------- */

/* Bytes of the answer that fit, ending after a whole pair where one ends: initiators that do not
 * know the C bit then still understand the pieces. */
static uint32_t
piece(const uint8_t *text, uint32_t left, uint32_t max)
{
    if (left <= max)
        return left;
    for (uint32_t n = max; n > 0; n--) {
        if (text[n - 1] == 0)
            return n;
    }
    return max;
}

/* Makes more of a long answer, so that a response can be filled. */
static void
refill(struct conn *c, uint32_t max)
{
    uint32_t left = c->text.out_len - c->text.out_pos;
    if (c->text.walk == NULL || left > max)
        return;
    struct text_out out = {.limit = UINT32_MAX};
    if (left != 0)
        text_put_raw(&out, c->text.out + c->text.out_pos, left);
    discovery_more(c, &out, max);
    free(c->text.out);
    c->text.out = out.p;
    c->text.out_len = (uint32_t)out.len;
    c->text.out_pos = 0;
}

static enum verdict
respond(struct conn *c, uint8_t req_flags)
{
    uint32_t max = c->p.max_xmit < PIECE_MAX ? c->p.max_xmit : PIECE_MAX;
    refill(c, max);
    uint32_t left = c->text.out_len - c->text.out_pos;
    const uint8_t *text = left ? c->text.out + c->text.out_pos : NULL;
    uint32_t len = left ? piece(text, left, max) : 0;
    bool more = len < left;
    bool final = !more && (req_flags & TEXT_F);
    uint8_t bhs[BHS_LEN] = {OPC_TEXT_RSP, (uint8_t)(final ? TEXT_F : more ? TEXT_C : 0)};
    put_be32(bhs + 16, c->text.itt);
    put_be32(bhs + 20, final ? TAG_RESERVED : c->text.ttt);
    conn_stamp(c, bhs, true);
    tx_pdu(c, bhs, text, len, NULL, NULL);
    c->text.out_pos += len;
    if (final) {
        if (c->text.new_max_xmit != 0)
            c->p.max_xmit = c->text.new_max_xmit;
        async_text_came(c);
        forget(c);
    }
    return KEEP;
}

/* --- negotiation ----------------------------------------------------------------------------- */

static void
on_ask(void *arg, enum key_id id, const char *value, struct text_out *out)
{
    (void)id; /* SendTargets is the only question there is */
    discovery_ask(arg, value, out);
}

/* The initiator came because it was asked to (11.9.1 event 4): it hears what this target takes now.
 * A larger segment may come from now on; one of the old size on its way is no fault either. */
static void
declare(struct conn *c, struct nego *n, struct text_out *out)
{
    if (!async_text_is_due(c) || c->text.declared)
        return;
    c->text.declared = true;
    nego_declare(n, KEY_MAX_RECV_DSL, out);
    if (c->p.max_recv < n->ours.v[KEY_MAX_RECV_DSL])
        c->p.max_recv = n->ours.v[KEY_MAX_RECV_DSL];
}

/* Answers a complete text. False: it is malformed. */
static bool
negotiate(struct conn *c, const uint8_t *text, size_t len)
{
    struct key_values ours;
    struct nego n;
    struct text_out out = {.limit = ANSWER_MAX};
    if (c->sess->node != NULL)
        ours = c->sess->node->keys;
    else
        keys_defaults(&ours);
    nego_init(&n, &ours, KP_FFP);
    n.discovery = c->sess->discovery;
    n.ask = on_ask;
    n.ask_arg = c;
    bool ok = nego_read(&n, text, len) && nego_answer(&n, &out);
    if (ok)
        declare(c, &n, &out);
    if (ok) {
        if (n.state[KEY_MAX_RECV_DSL] & NS_AGREED)
            c->text.new_max_xmit = n.v[KEY_MAX_RECV_DSL];
        free(c->text.out);
        c->text.out = out.p;
        c->text.out_len = (uint32_t)out.len;
        c->text.out_pos = 0;
        out.p = NULL;
    }
    text_out_free(&out);
    return ok;
}

static void
join(struct conn *c, const struct pdu *pdu)
{
    if (pdu->data_len == 0)
        return;
    c->text.in = xrealloc(c->text.in, c->text.in_len + pdu->data_len);
    memcpy(c->text.in + c->text.in_len, pdu->data, pdu->data_len);
    c->text.in_len += pdu->data_len;
}

/* Text of a request, joined with the pieces before it. */
static bool
take_text(struct conn *c, const struct pdu *pdu)
{
    bool ok;
    if (c->text.in_len != 0) {
        join(c, pdu);
        ok = negotiate(c, c->text.in, c->text.in_len);
    } else {
        ok = negotiate(c, pdu->data, pdu->data_len);
    }
    free(c->text.in);
    c->text.in = NULL;
    c->text.in_len = 0;
    return ok;
}

enum verdict
text_pdu(struct conn *c, struct pdu *pdu)
{
    worker_assert_owner(c->w);
    if ((pdu->flags & TEXT_F) && (pdu->flags & TEXT_C))
        return fail(c, REJ_PROTOCOL);
    if (pdu->itt == TAG_RESERVED)
        return conn_reject(c, REJ_INVALID_FIELD);
    if (pdu->ttt == TAG_RESERVED)
        begin(c, pdu); /* an exchange under way is forgotten (6.4) */
    else if (!c->text.open || pdu->ttt != c->text.ttt || pdu->itt != c->text.itt)
        return conn_reject(c, REJ_INVALID_FIELD);
    bool unsent = c->text.out_pos < c->text.out_len || c->text.walk != NULL;
    if (unsent && pdu->data_len != 0)
        return fail(c, REJ_PROTOCOL);
    if (c->text.in_len + (uint64_t)pdu->data_len > tgt_opts.login_bytes_max)
        return fail(c, REJ_PROTOCOL);
    if (unsent)
        return respond(c, pdu->flags);
    if (pdu->flags & TEXT_C) {
        join(c, pdu);
        return respond(c, 0);
    }
    if (!take_text(c, pdu))
        return fail(c, REJ_PROTOCOL);
    return respond(c, pdu->flags);
}
