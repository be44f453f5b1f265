/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs of sessions and connections.  The workers have them: they are asked by broadcast,
 * each adds what it has under a lock, main goes on when all have.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "target/admin_priv.h"

/* --- gathering ------------------------------------------------------------------------------- */

struct gather {
    struct admin_req *r;
    void (*then)(struct admin_req *r, json_t *sessions);
    char *target; /* NULL: all */
    bool with_units;
    pthread_mutex_t lock;
    json_t *sessions;
};

/* The address alone, as `show` prints it. */
static json_t *
address_json(const char *peer_text)
{
    const char *end = strrchr(peer_text, ':');
    size_t n = end ? (size_t)(end - peer_text) : strlen(peer_text);
    if (peer_text[0] == '[' && n > 2)
        return json_stringn(peer_text + 1, n - 2);
    return json_stringn(peer_text, n);
}

static json_t *
text_json(const char *s)
{
    json_t *j = json_string(s);
    return j ? j : json_string("?");
}

static json_t *
conn_json(const struct conn *c)
{
    json_t *o = json_object();
    json_object_set_new(o, "cid", json_integer(c->cid));
    json_object_set_new(o, "address", address_json(c->peer_text));
    json_object_set_new(o, "peer", text_json(c->peer_text));
    json_object_set_new(o, "header_digest", json_boolean(c->p.header_digest));
    json_object_set_new(o, "data_digest", json_boolean(c->p.data_digest));
    json_object_set_new(o, "max_recv", json_integer(c->p.max_recv));
    json_object_set_new(o, "max_xmit", json_integer(c->p.max_xmit));
    json_object_set_new(o, "bytes_in", json_integer((json_int_t)c->count.bytes_in));
    json_object_set_new(o, "bytes_out", json_integer((json_int_t)c->count.bytes_out));
    json_object_set_new(o, "cmds", json_integer((json_int_t)c->count.cmds));
    json_object_set_new(o, "responses", json_integer((json_int_t)c->count.responses));
    json_object_set_new(o, "data_out", json_integer((json_int_t)c->count.data_out));
    json_object_set_new(o, "data_in", json_integer((json_int_t)c->count.data_in));
    return o;
}

json_t *
admin_stat_json(const struct scsi_stat *s)
{
    return json_pack("{sI sI sI sI sI sI sI sI sI}", "rd_subm_bytes", (json_int_t)s->rd_subm_bytes,
                     "rd_subm", (json_int_t)s->rd_subm, "rd_done_bytes",
                     (json_int_t)s->rd_done_bytes, "rd_done", (json_int_t)s->rd_done,
                     "wr_subm_bytes", (json_int_t)s->wr_subm_bytes, "wr_subm",
                     (json_int_t)s->wr_subm, "wr_done_bytes", (json_int_t)s->wr_done_bytes,
                     "wr_done", (json_int_t)s->wr_done, "errs", (json_int_t)s->errs);
}

/* What went over each of its logical units. */
static json_t *
units_json(const struct sess *s)
{
    json_t *a = json_array();
    struct scsi_stat st;
    uint16_t number;

    for (unsigned i = 0; s->itn && itn_stat(s->itn, i, &number, &st); i++) {
        json_t *o = admin_stat_json(&st);
        json_object_set_new(o, "lun", json_integer(number));
        json_array_append_new(a, o);
    }
    return a;
}

static json_t *
sess_json(const struct sess *s, bool with_units)
{
    json_t *o = json_object(), *conns = json_array();
    char isid[13];

    snprintf(isid, sizeof isid, "%02x%02x%02x%02x%02x%02x", s->isid[0], s->isid[1], s->isid[2],
             s->isid[3], s->isid[4], s->isid[5]);
    json_object_set_new(o, "sid", json_integer((json_int_t)s->sid));
    json_object_set_new(o, "target", json_string(s->node->name));
    json_object_set_new(o, "tid", json_integer(s->node->tid));
    json_object_set_new(o, "initiator", text_json(s->initiator));
    json_object_set_new(o, "alias", text_json(s->alias));
    json_object_set_new(o, "isid", json_string(isid));
    json_object_set_new(o, "tsih", json_integer(s->tsih));
    json_object_set_new(o, "worker", json_integer(worker_id(s->w)));
    json_object_set_new(o, "age_ms", json_integer((json_int_t)(clock_ms() - s->created_ms)));
    json_object_set_new(o, "tasks", json_integer(s->ntasks));
    json_object_set_new(o, "cmds", json_integer((json_int_t)s->cmds));
    json_object_set_new(o, "bytes_in", json_integer((json_int_t)s->bytes_in));
    json_object_set_new(o, "bytes_out", json_integer((json_int_t)s->bytes_out));
    json_object_set_new(o, "erl", json_integer(s->p.erl));
    json_object_set_new(o, "max_connections", json_integer(s->p.max_connections));
    json_object_set_new(o, "time2wait", json_integer(s->p.time2wait));
    json_object_set_new(o, "time2retain", json_integer(s->p.time2retain));
    json_object_set_new(o, "max_r2t", json_integer(s->p.max_r2t));
    json_object_set_new(o, "data_pdu_in_order", json_boolean(s->p.data_pdu_in_order));
    json_object_set_new(o, "data_seq_in_order", json_boolean(s->p.data_seq_in_order));
    json_object_set_new(o, "max_burst", json_integer(s->p.max_burst));
    json_object_set_new(o, "first_burst", json_integer(s->p.first_burst));
    json_object_set_new(o, "initial_r2t", json_boolean(s->p.initial_r2t));
    json_object_set_new(o, "immediate_data", json_boolean(s->p.immediate_data));
    list_each(it, &s->conns)
        json_array_append_new(conns, conn_json(container_of(it, struct conn, on_sess)));
    json_object_set_new(o, "connections", conns);
    if (with_units)
        json_object_set_new(o, "units", units_json(s));
    return o;
}

static void
on_worker_gather(struct worker *w, void *arg)
{
    struct gather *g = arg;
    worker_assert_owner(w);
    list_each(it, &tgt_here()->sessions) {
        const struct sess *s = container_of(it, struct sess, on_worker);
        if (!s->node || s->dying || (g->target && strcmp(s->node->name, g->target) != 0))
            continue;
        pthread_mutex_lock(&g->lock);
        json_array_append_new(g->sessions, sess_json(s, g->with_units));
        pthread_mutex_unlock(&g->lock);
    }
}

static int
by_sid(const void *a, const void *b)
{
    json_t *const *x = a, *const *y = b;
    json_int_t p = json_integer_value(json_object_get(*x, "sid"));
    json_int_t q = json_integer_value(json_object_get(*y, "sid"));
    return p < q ? -1 : p > q;
}

/* A sorted copy of an array of sessions. */
static json_t *
sorted(json_t *in)
{
    size_t n = json_array_size(in);
    json_t **v = xcalloc(n + 1, sizeof *v), *out = json_array();
    for (size_t i = 0; i < n; i++)
        v[i] = json_array_get(in, i);
    if (n)
        qsort(v, n, sizeof *v, by_sid);
    for (size_t i = 0; i < n; i++)
        json_array_append(out, v[i]);
    free(v);
    return out;
}

static void
on_gathered(struct worker *back, void *arg)
{
    struct gather *g = arg;
    json_t *s = sorted(g->sessions);
    worker_assert_owner(back);
    g->then(g->r, s);
    json_decref(s);
    json_decref(g->sessions);
    pthread_mutex_destroy(&g->lock);
    free(g->target);
    free(g);
}

static void
gather(struct admin_req *r, const char *target, bool with_units,
       void (*then)(struct admin_req *r, json_t *sessions))
{
    struct gather *g = xcalloc(1, sizeof *g);
    g->with_units = with_units;
    g->r = r;
    g->then = then;
    g->target = target ? xstrdup(target) : NULL;
    g->sessions = json_array();
    pthread_mutex_init(&g->lock, NULL);
    worker_broadcast(on_worker_gather, g, model.main, on_gathered);
}

void
admin_sess_gather(struct admin_req *r, const char *target,
                  void (*then)(struct admin_req *r, json_t *sessions))
{
    gather(r, target, false, then);
}

/* --- show, stat ------------------------------------------------------------------------------ */

static void
on_shown(struct admin_req *r, json_t *sessions)
{
    admin_ok(r, json_pack("{sO}", "sessions", sessions));
}

void
admin_sess_show(struct admin_req *r)
{
    if (json_object_get(r->args, "tid") && !admin_target(r))
        return;
    admin_sess_gather(r, r->target ? r->target->name : NULL, on_shown);
}

/* A number of the request, or -1. */
static json_int_t
asked(const struct admin_req *r, const char *name)
{
    const json_t *v = json_object_get(r->args, name);
    return v ? json_integer_value(v) : -1;
}

/* What the request names: a session, a connection of it, a logical unit. */
static json_t *
narrow(const struct admin_req *r, json_t *sessions)
{
    json_int_t sid = asked(r, "sid"), cid = asked(r, "cid"), lun = asked(r, "lun");
    json_t *out = json_array(), *s, *v;
    size_t i, k;

    json_array_foreach(sessions, i, s)
    {
        json_t *conns = json_object_get(s, "connections"), *units = json_object_get(s, "units");
        if (sid >= 0 && json_integer_value(json_object_get(s, "sid")) != sid)
            continue;
        for (k = json_array_size(conns); cid >= 0 && k-- > 0;) {
            v = json_array_get(conns, k);
            if (json_integer_value(json_object_get(v, "cid")) != cid)
                json_array_remove(conns, k);
        }
        for (k = json_array_size(units); lun >= 0 && k-- > 0;) {
            v = json_array_get(units, k);
            if (json_integer_value(json_object_get(v, "lun")) != lun)
                json_array_remove(units, k);
        }
        if (cid < 0 || json_array_size(conns))
            json_array_append(out, s);
    }
    return out;
}

static void
on_stat(struct admin_req *r, json_t *sessions)
{
    json_t *some = narrow(r, sessions);
    struct scsi_stat *past = r->data; /* the answer is the request's end */

    if (json_array_size(some) == 0 && asked(r, "sid") >= 0)
        admin_fail(r, asked(r, "cid") >= 0 ? AE_NO_CONNECTION : AE_NO_SESSION, NULL);
    else
        admin_ok(r, json_pack("{sO so so*}", "sessions", some, "counters", admin_counters_json(),
                              "ended", past ? admin_stat_json(past) : NULL));
    json_decref(some);
    free(past);
}

static bool
numbers_fit(struct admin_req *r)
{
    static const struct {
        const char *name;
        unsigned max;
    } args[] = {{"sid", 0x7fffffff}, {"cid", 0xffff}, {"lun", LUN_MAX_NUMBER}};
    unsigned v;
    bool bad;

    for (size_t i = 0; i < sizeof args / sizeof *args; i++) {
        (void)admin_uint(r, args[i].name, args[i].max, &v, &bad);
        if (bad)
            return false;
    }
    return true;
}

/* A target's, a session's, a connection's; with "lun" of one unit. */
void
admin_sess_stat(struct admin_req *r)
{
    if ((json_object_get(r->args, "tid") && !admin_target(r)) || !numbers_fit(r))
        return;
    gather(r, r->target ? r->target->name : NULL, true, on_stat);
}

void
admin_lun_stat(struct admin_req *r)
{
    struct scsi_stat past;
    bool bad;

    if (!admin_target(r))
        return;
    if (!admin_uint(r, "lun", LUN_MAX_NUMBER, &r->lun, &bad)) {
        if (!bad)
            admin_fail(r, AE_INVALID, "\"lun\" is necessary");
        return;
    }
    const struct model_lun *l = model_lun_find(r->target, r->lun);
    if (!l) {
        admin_fail(r, AE_NO_LUN, NULL);
        return;
    }
    if (l->store->lun) { /* of sessions that are over, by whatever target */
        lun_stat_past(l->store->lun, &past);
        r->data = xmalloc(sizeof past);
        memcpy(r->data, &past, sizeof past);
    }
    gather(r, r->target->name, true, on_stat);
}

/* --- delete ---------------------------------------------------------------------------------- */

struct ending {
    struct admin_req *r;
    unsigned tid, sid, cid;
    bool whole; /* the session, not one connection */
    _Atomic bool saw_sess, saw_conn;
};

static void
end_here(struct ending *e, struct sess *s)
{
    e->saw_sess = true;
    if (e->whole) {
        sess_drop(s, "ended by the administrator");
        return;
    }
    list_each(it, &s->conns) {
        struct conn *c = container_of(it, struct conn, on_sess);
        if (c->cid == e->cid) {
            e->saw_conn = true;
            async_send(c, ASYNC_DROP_CONN, c->cid, 0, 0);
            conn_close(c, "closed by the administrator", true);
            return;
        }
    }
}

static void
on_worker_end(struct worker *w, void *arg)
{
    struct ending *e = arg;
    worker_assert_owner(w);
    list_each(it, &tgt_here()->sessions) {
        struct sess *s = container_of(it, struct sess, on_worker);
        if (s->node && !s->dying && s->node->tid == e->tid && s->sid == e->sid) {
            end_here(e, s);
            return;
        }
    }
}

static void
on_ended(struct worker *back, void *arg)
{
    struct ending *e = arg;
    worker_assert_owner(back);
    if (!e->saw_sess)
        admin_fail(e->r, AE_NO_SESSION, NULL);
    else if (!e->whole && !e->saw_conn)
        admin_fail(e->r, AE_NO_CONNECTION, NULL);
    else
        admin_ok(e->r, NULL);
    free(e);
}

static void
end(struct admin_req *r, bool whole)
{
    unsigned sid = 0, cid = 0;
    bool bad;

    if (!admin_target(r))
        return;
    if (!admin_uint(r, "sid", 0x7fffffff, &sid, &bad)) {
        if (!bad)
            admin_fail(r, AE_NO_SESSION, NULL);
        return;
    }
    if (!whole && !admin_uint(r, "cid", 0xffff, &cid, &bad)) {
        if (!bad)
            admin_fail(r, AE_INVALID, "\"cid\" is necessary");
        return;
    }
    struct ending *e = xcalloc(1, sizeof *e);
    e->r = r;
    e->tid = r->tid;
    e->sid = sid;
    e->cid = cid;
    e->whole = whole;
    log_event(LL_NOTICE, LA_ADMIN, "end tid=%u sid=%u", r->tid, sid);
    worker_broadcast(on_worker_end, e, model.main, on_ended);
}

void
admin_sess_delete(struct admin_req *r)
{
    end(r, true);
}

void
admin_conn_delete(struct admin_req *r)
{
    end(r, false);
}
