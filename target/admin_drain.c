/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs that send initiators away or ask them for something: drain and undrain of a target
 * or of the daemon, renegotiate of a session.  A drain is part of what is published: each worker
 * asks its sessions when it switches (sess_node_changed), and logins meet it (redirect.c).  It
 * lasts until undrain or the daemon's end.  Main only.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/admin_priv.h"
#include "target/redirect.h"

#define DEADLINE_MAX   65535u /* Parameter3 */
#define DRAIN_DEADLINE 30u
#define TEXT_DEADLINE  15u
#define PORT_DEFAULT   3260u

/* "params" has these names only; values are strings. False: answered. */
static bool
read_params(struct admin_req *r, const char **to, unsigned *deadline_s)
{
    json_t *params = json_object_get(r->args, "params"), *v;
    const char *name;

    json_object_foreach(params, name, v)
    {
        const char *text = json_string_value(v);
        char *end;
        if (!text) {
            admin_fail(r, AE_INVALID, "values are strings");
            return false;
        }
        if (strcmp(name, "deadline") == 0) {
            unsigned long s = strtoul(text, &end, 10);
            if (text[0] < '0' || text[0] > '9' || *end || s > DEADLINE_MAX) {
                admin_fail(r, AE_INVALID, "deadline wants seconds from 0 to %u", DEADLINE_MAX);
                return false;
            }
            *deadline_s = (unsigned)s;
        } else if (to && strcmp(name, "to") == 0) {
            *to = text;
        } else {
            admin_fail(r, AE_UNKNOWN_PARAMETER, "%.100s", name);
            return false;
        }
    }
    return true;
}

/* --- drain ----------------------------------------------------------------------------------- */

/* NULL: answered. */
static struct drain *
read_drain(struct admin_req *r)
{
    static unsigned last_id;
    struct drain d = {.deadline_s = DRAIN_DEADLINE};
    const char *to = NULL;
    char err[512] = "";

    if (!read_params(r, &to, &d.deadline_s))
        return NULL;
    if (to && redirect_parse_to(to, PORT_DEFAULT, &d.to, err, sizeof err) < 0) {
        admin_fail(r, AE_INVALID, "to: %s", err);
        return NULL;
    }
    if (++last_id == 0)
        last_id = 1;
    d.id = last_id;
    struct drain *n = xmalloc(sizeof *n);
    *n = d;
    log_event(LL_NOTICE, LA_ADMIN, "drain target=%s to=%s deadline_s=%u",
              r->target ? r->target->name : "all", d.to.text[0] ? d.to.text : "-", d.deadline_s);
    return n;
}

static void
touch_all(void)
{
    list_each(it, &model.targets)
        model_touch(container_of(it, struct model_target, link));
}

void
admin_target_drain(struct admin_req *r)
{
    struct drain *d;
    if (!admin_target(r) || !(d = read_drain(r)))
        return;
    free(r->target->drain);
    r->target->drain = d;
    model_touch(r->target);
    admin_publish(r);
}

void
admin_system_drain(struct admin_req *r)
{
    struct drain *d = read_drain(r);
    if (!d)
        return;
    free(model.drain);
    model.drain = d;
    touch_all();
    admin_publish(r);
}

static void
undrain(struct admin_req *r, struct drain **d)
{
    if (!*d) {
        admin_fail(r, AE_INVALID, "nothing is drained here");
        return;
    }
    log_event(LL_NOTICE, LA_ADMIN, "undrain target=%s", r->target ? r->target->name : "all");
    free(*d);
    *d = NULL;
    if (r->target)
        model_touch(r->target);
    else
        touch_all();
    admin_publish(r);
}

void
admin_target_undrain(struct admin_req *r)
{
    if (admin_target(r))
        undrain(r, &r->target->drain);
}

void
admin_system_undrain(struct admin_req *r)
{
    undrain(r, &model.drain);
}

/* --- renegotiate ----------------------------------------------------------------------------- */

struct asking {
    struct admin_req *r;
    unsigned tid, sid, deadline_s;
    _Atomic bool saw;
};

static void
on_worker_ask(struct worker *w, void *arg)
{
    struct asking *a = arg;
    worker_assert_owner(w);
    list_each(it, &tgt_here()->sessions) {
        struct sess *s = container_of(it, struct sess, on_worker);
        if (!s->node || s->dying || s->node->tid != a->tid || s->sid != a->sid)
            continue;
        a->saw = true;
        list_each(jt, &s->conns)
            async_ask_text(container_of(jt, struct conn, on_sess), a->deadline_s);
    }
}

static void
on_asked(struct worker *back, void *arg)
{
    struct asking *a = arg;
    worker_assert_owner(back);
    if (a->saw)
        admin_ok(a->r, NULL);
    else
        admin_fail(a->r, AE_NO_SESSION, NULL);
    free(a);
}

void
admin_sess_renegotiate(struct admin_req *r)
{
    unsigned sid = 0, deadline_s = TEXT_DEADLINE;
    bool bad;

    if (!admin_target(r))
        return;
    if (!admin_uint(r, "sid", 0x7fffffff, &sid, &bad)) {
        if (!bad)
            admin_fail(r, AE_NO_SESSION, NULL);
        return;
    }
    if (!read_params(r, NULL, &deadline_s))
        return;
    struct asking *a = xcalloc(1, sizeof *a);
    a->r = r;
    a->tid = r->tid;
    a->sid = sid;
    a->deadline_s = deadline_s;
    log_event(LL_NOTICE, LA_ADMIN, "renegotiate tid=%u sid=%u", r->tid, sid);
    worker_broadcast(on_worker_ask, a, model.main, on_asked);
}
