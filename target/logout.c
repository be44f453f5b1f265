/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logout (RFC 7143 11.14, 11.15).  A table of reasons; a session has one connection, so closing
 * it ends the session.  Owner: the connection's worker.
 */
#include "config.h"

#include "base/bytes.h"
#include "target/target.h"

enum logout_reason { LOGOUT_SESSION = 0, LOGOUT_CONN = 1, LOGOUT_RECOVERY = 2 };
enum logout_response { LOGOUT_OK = 0, LOGOUT_NO_CID = 1, LOGOUT_NO_RECOVERY = 2 };

static void
respond(struct conn *c, const struct pdu *pdu, enum logout_response response)
{
    uint8_t bhs[BHS_LEN] = {OPC_LOGOUT_RSP, 0x80, (uint8_t)response};
    put_be32(bhs + 16, pdu->itt);
    conn_stamp(c, bhs, true);
    /* Time2Wait and Time2Retain (40..43) stay 0: nothing is kept for a reconnect. */
    tx_pdu(c, bhs, NULL, 0, NULL, NULL);
}

static struct conn *
find_cid(struct sess *s, uint16_t cid)
{
    list_each(it, &s->conns)
    {
        struct conn *c = container_of(it, struct conn, on_sess);
        if (c->cid == cid)
            return c;
    }
    return NULL;
}

/* Unfinished tasks end without a word (RFC 7143 11.14); the session is off the registry before
 * the response leaves, so that its TSIH is unknown to whoever read it. */
static enum verdict
close_session(struct conn *c, const struct pdu *pdu)
{
    struct sess *s = c->sess;
    conn_event(c, CE_LOGOUT_PDU);
    respond(c, pdu, LOGOUT_OK);
    conn_close(c, "logout", true);
    sess_kill(s, "logout");
    return KEEP;
}

static enum verdict
close_conn(struct conn *c, const struct pdu *pdu)
{
    struct sess *s = c->sess;
    struct conn *gone = find_cid(s, get_be16(pdu->bhs + 20));
    if (!gone) {
        respond(c, pdu, LOGOUT_NO_CID);
        return KEEP;
    }
    if (gone == c && s->conns.next == s->conns.prev)
        return close_session(c, pdu);
    if (gone != c) {
        conn_close(gone, "logout on another connection", false);
        respond(c, pdu, LOGOUT_OK);
        return KEEP;
    }
    conn_event(c, CE_LOGOUT_PDU);
    respond(c, pdu, LOGOUT_OK);
    conn_close(c, "logout", true);
    return KEEP;
}

enum verdict
logout_pdu(struct conn *c, struct pdu *pdu)
{
    switch (pdu->flags & 0x7f) {
    case LOGOUT_SESSION:
        return close_session(c, pdu);
    case LOGOUT_CONN:
        return close_conn(c, pdu);
    case LOGOUT_RECOVERY:
        respond(c, pdu, LOGOUT_NO_RECOVERY);
        return KEEP;
    default:
        return conn_reject(c, REJ_INVALID_FIELD);
    }
}
