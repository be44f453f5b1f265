/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a finished negotiation to a session: the claim in the registry, the end of the session it
 * reinstates (RFC 7143 6.3.5), the move to the session's worker, and the session itself or the
 * connection added to one (6.3.4).  Each step is a message or a deferred call; between two of them
 * the connection may have closed.  Nothing here waits for I/O: the old session's commands become
 * orphans.
 */
#include "config.h"

#include <stdlib.h>

#include "base/counter.h"
#include "base/pool.h"
#include "target/account.h"
#include "target/target.h"

struct establish {
    struct conn *c; /* a reference, on the connection's worker */
    struct login_result res;
    struct registry_claim claim;
    struct worker *from; /* where an answer of another worker is awaited */
    enum login_status status;
    bool moving; /* waits for the out-queue before the move */
    struct deferred later;
};

static void
end(struct establish *e)
{
    struct conn *c = e->c;
    deferred_cancel(&e->later);
    c->est = NULL;
    registry_remove(e->claim.entry);
    if (e->res.node)
        node_put(e->res.node);
    free(e);
    conn_put(c);
}

static void
answer(struct establish *e, enum login_status status)
{
    struct conn *c = e->c;
    conn_get(c);
    end(e);
    if (!c->closing)
        login_established(c, status); /* reading goes on with CE_LOGGED_IN */
    conn_put(c);
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

static unsigned
count_conns(const struct sess *s)
{
    unsigned n = 0;
    list_each(it, &s->conns) n++;
    return n;
}

/* The node as it is published now may be a newer one than the login saw, or gone; and it may want
 * another proof than the one that the login gave, or one where the login gave none. */
static enum login_status
refresh_node(struct establish *e)
{
    const struct node_set *set = node_set_here();
    if (!e->res.node)
        return account_set_admits(set->discovery, e->res.account) ? LS_OK : LS_AUTH_FAILURE;
    struct tgt_node *n = node_find(set, e->res.node->name);
    if (!n)
        return LS_REMOVED;
    if (!account_set_admits(n->accounts, e->res.account))
        return LS_AUTH_FAILURE;
    const struct conn *c = e->c;
    if (!node_serves(n, &c->via) || !acl_is_at(n->acl, (const struct sockaddr *)&c->local))
        return LS_NOT_FOUND;
    if (!node_admits(n, (const struct sockaddr *)&c->peer, e->res.initiator))
        return LS_AUTHORIZATION;
    if (n->offline || n->drain) /* since it was let in: it may try again, and hear where to go */
        return LS_UNAVAILABLE;
    if (n != e->res.node) {
        node_put(e->res.node);
        e->res.node = node_get(n);
    }
    return LS_OK;
}

/* A connection for a session that exists: one more, or in the place of one with the same CID,
 * whose tasks end (ErrorRecoveryLevel 0). */
static enum login_status
join(struct establish *e)
{
    struct sess *s = sess_find_here(e->claim.sid);
    if (!s || s->dying)
        return LS_NO_SESSION;
    enum login_status st = refresh_node(e);
    if (st != LS_OK)
        return st;
    struct conn *old = find_cid(s, e->res.cid);
    if (!old && count_conns(s) >= s->p.max_connections)
        return LS_TOO_MANY_CONNS;
    sess_attach(s, e->c, &e->res);
    if (old) {
        conn_close(old, "reinstated by a new connection", false);
        sess_conn_gone(s, old);
    }
    return LS_OK;
}

static enum login_status
create(struct establish *e)
{
    enum login_status st = refresh_node(e);
    if (st != LS_OK)
        return st;
    if (!registry_commit(e->claim.entry))
        return LS_INITIATOR_ERROR; /* another login of the same initiator port came after */
    struct sess *s = sess_new(e->c->w, &e->res, &e->claim);
    e->claim.entry = NULL; /* the session's now */
    sess_attach(s, e->c, &e->res);
    return LS_OK;
}

/* On the session's worker. */
static void
settle(struct conn *c)
{
    struct establish *e = c->est;
    e->moving = false;
    if (c->closing)
        end(e);
    else
        answer(e, e->res.tsih ? join(e) : create(e));
}

static void
go(struct establish *e)
{
    struct conn *c = e->c;
    if (c->closing) {
        end(e);
    } else if (e->claim.w == c->w) {
        settle(c);
    } else {
        e->moving = true;
        conn_move(c, e->claim.w, settle);
    }
}

static void
on_old_ended(struct worker *w, void *arg)
{
    (void)w;
    go(arg);
}

static void
on_end_old(struct worker *w, void *arg)
{
    struct establish *e = arg;
    (void)w;
    struct sess *s = sess_find_here(e->claim.old_sid);
    if (s)
        sess_kill(s, "reinstated by a new login");
    worker_post(e->from, on_old_ended, e);
}

static void
on_later(struct deferred *d)
{
    struct establish *e = container_of(d, struct establish, later);
    if (e->status != LS_OK)
        answer(e, e->status);
    else
        go(e);
}

void
sess_establish(struct conn *c, const struct login_result *res)
{
    worker_assert_owner(c->w);
    struct establish *e = xcalloc(1, sizeof *e);
    e->c = c;
    e->res = *res;
    if (res->node)
        e->res.node = node_get(res->node);
    e->from = c->w;
    deferred_init(&e->later, on_later);
    conn_get(c);
    c->est = e;
    rx_pause(c, RX_PAUSE_LOGIN);
    /* Asked before the claim too: it ends the session that it takes the place of, which only a
     * login that is wanted may do. */
    e->status = refresh_node(e);
    if (e->status == LS_OK && res->discovery && res->tsih)
        e->status = LS_NO_SESSION;
    else if (e->status == LS_OK)
        e->status = registry_claim(&e->res, c->w, &e->claim);
    if (e->status == LS_OK && e->claim.old_w)
        worker_post(e->claim.old_w, on_end_old, e);
    else
        worker_defer(c->w, &e->later);
}

void
sess_establish_gone(struct conn *c)
{
    if (c->est && c->est->moving)
        end(c->est); /* every other step finds out by itself */
}
