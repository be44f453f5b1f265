/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The iSNS client's state machine, see isns_client.h.
 *
 * There is one connection and at most one request on it.  Whenever nothing is under way, run_next
 * takes the first row of steps[] that is needed; its answer changes what is needed next.  Without
 * work there need not be a connection: a server may close it and is sought again when there is
 * work.  A server that fails in any way (refuses, is silent, speaks nonsense) is left for the next
 * one, after a pause that doubles with each round through all of them; on the next one everything
 * is registered anew.  The discovery domains that were learnt stay in force meanwhile.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/isns_client.h"
#include "target/isns_inbound.h"
#include "target/model.h"

#define MSG_MAX        (1u << 20) /* an answer */
#define CONNECT_MS     5000u
#define ANSWER_MS      10000u
#define LEAVE_MS       2000u
#define SETTLE_MS      100u /* after a change of targets or portals */
#define SCN_MS         500u /* notices are gathered this long */
#define BACKOFF_MS     1000u
#define BACKOFF_MAX_MS 60000u
#define REFRESH_MIN_S  5u
#define REFRESH_MAX_S  900u
#define REFRESH_DD_S   300u /* with access control: notices may be lost */
#define NONSENSE_MAX   256u /* messages that belong to nothing, between two answers */
#define SCN_BITMAP                                                                                 \
    (ISNS_SCN_INITIATOR_AND_SELF | ISNS_SCN_REMOVED | ISNS_SCN_ADDED | ISNS_SCN_UPDATED)

enum state {
    IS_OFF,
    IS_ASLEEP,     /* no connection, none needed */
    IS_WAITING,    /* no connection; `timer` runs until the next attempt */
    IS_CONNECTING, /* `timer` is its deadline */
    IS_ASKING,     /* `step` was sent; `timer` is the deadline of its answer */
    IS_IDLE,       /* connected, nothing to do */
};

struct step {
    const char *name;
    uint16_t func;
    bool (*is_needed)(void);
    void (*put)(struct isns_out *o);
    void (*answer)(uint32_t status, struct cur body);
};

static struct {
    struct worker *w;
    enum state state;
    struct isns_server server[ISNS_SERVERS_MAX];
    unsigned nservers, cur;
    unsigned failures; /* in a row */
    unsigned quiet_closes, lost_entities, nonsense;
    struct isns_link link;
    struct isns_reg reg;
    const struct step *step;
    uint16_t xid;
    char asked[ISCSI_NAME_MAX + 1]; /* the node a step is about */
    bool access, changed, leaving, verify, replace, announced, scn_refused;
    uint32_t period_s;
    struct worker_timer timer, refresh, settle, scn, leave;
    struct deferred next;
    struct log_rate rate, query_rate;
    void (*left)(void *arg);
    void *left_arg;
} is;

/* --- small things ---------------------------------------------------------------------------- */

static const char *
server_text(char buf[64])
{
    return portal_text(&is.server[is.cur].addr, buf, 64);
}

static void
wake(void)
{
    worker_defer(is.w, &is.next);
}

static void
stale_all(void)
{
    for (unsigned i = 0; i < is.reg.nnodes; i++)
        is.reg.nodes[i].stale = true;
}

static void
start_refresh(void)
{
    uint32_t s = is.period_s != 0 ? is.period_s / 2 : REFRESH_MAX_S;
    if (s > REFRESH_MAX_S)
        s = REFRESH_MAX_S;
    if (is.access && s > REFRESH_DD_S)
        s = REFRESH_DD_S;
    worker_timer_start_ms(&is.refresh, 1000ull * (s < REFRESH_MIN_S ? REFRESH_MIN_S : s));
}

static bool
is_served(const struct model_target *t)
{
    return !t->offline && !model.offline;
}

/* Without portals nothing is to be had, whatever there is. */
static bool
any_served(void)
{
    if (portal_list(NULL, 0) == 0)
        return false;
    list_each(it, &model.targets) {
        if (is_served(container_of(it, struct model_target, link)))
            return true;
    }
    return false;
}

/* The model -> what is wanted. Connected: which addresses are shown depends on our own. */
static void
sync_model(void)
{
    struct node_portal out[ISNS_PORTALS_MAX], *bound;
    struct sockaddr_storage here = {0};
    unsigned n = 0, np = portal_list(NULL, 0);

    is.changed = false;
    list_each(it, &model.targets)
        n++;
    struct isns_want *want = xcalloc((size_t)n + 1, sizeof *want);
    n = 0;
    list_each(it, &model.targets) {
        const struct model_target *t = container_of(it, struct model_target, link);
        if (np != 0 && is_served(t))
            want[n++] = (struct isns_want){
                .name = t->name, .alias = t->alias, .binds = t->binds, .nbinds = t->nbinds};
    }
    (void)isns_link_local(&is.link, &here);
    bound = xcalloc((size_t)np + 1, sizeof *bound);
    unsigned got = portal_list(bound, np);
    unsigned found = isns_reg_addresses(bound, got < np ? got : np, &here, out, ISNS_PORTALS_MAX);
    if (found > ISNS_PORTALS_MAX) {
        log_event(LL_WARN, LA_NET, "isns-portals registered=%u left_out=%u", ISNS_PORTALS_MAX,
                  found - ISNS_PORTALS_MAX);
        found = ISNS_PORTALS_MAX;
    }
    isns_reg_want(&is.reg, want, n, out, found);
    free(bound);
    free(want);
}

/* --- failing, leaving ------------------------------------------------------------------------ */

static void
leave_over(void)
{
    void (*left)(void *) = is.left;

    isns_link_close(&is.link);
    isns_inbound_stop();
    worker_timer_stop(&is.timer);
    worker_timer_stop(&is.refresh);
    worker_timer_stop(&is.settle);
    worker_timer_stop(&is.scn);
    worker_timer_stop(&is.leave);
    deferred_cancel(&is.next);
    isns_reg_fini(&is.reg);
    is.state = IS_OFF;
    is.leaving = false;
    is.left = NULL;
    if (left)
        left(is.left_arg);
}

static void
wait_ms(uint64_t ms)
{
    is.state = IS_WAITING;
    worker_timer_start_ms(&is.timer, ms);
}

/* This server will not do: the next one, after a while. */
static void
fail(const char *why)
{
    char text[64], more[32] = "";
    uint32_t suppressed = 0;

    isns_link_close(&is.link);
    worker_timer_stop(&is.refresh);
    if (is.leaving) {
        leave_over();
        return;
    }
    unsigned round = is.failures / is.nservers;
    uint64_t ms = round < 6 ? (uint64_t)BACKOFF_MS << round : BACKOFF_MAX_MS;
    if ((is.failures + 1) % is.nservers != 0)
        ms = BACKOFF_MS / 10; /* another server may be well */
    if (log_rate_ok(&is.rate, &suppressed)) {
        if (suppressed != 0)
            snprintf(more, sizeof more, " suppressed=%u", suppressed);
        log_event(LL_WARN, LA_NET, "isns-failed server=%s while=%s why=\"%s\" retry_ms=%u%s",
                  server_text(text), is.state == IS_ASKING ? is.step->name : "connecting", why,
                  (unsigned)(ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS), more);
    }
    is.failures++;
    is.cur = (is.cur + 1) % is.nservers;
    isns_reg_refused(&is.reg);
    isns_reg_forget(&is.reg);
    is.replace = true;
    is.announced = is.verify = is.scn_refused = false;
    wait_ms(ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS);
}

/* --- steps: is it needed, what is asked, what the answer means ---------------------------------
 */

static bool
need_leave(void)
{
    if (!isns_reg_is_known(&is.reg))
        return false;
    if (is.leaving)
        return true;
    for (unsigned i = 0; i < is.reg.nnodes; i++) {
        if (is.reg.nodes[i].o.wanted)
            return false;
    }
    return true; /* an entity without nodes */
}

static void
put_leave(struct isns_out *o)
{
    isns_reg_put_leave(&is.reg, o);
}

static void
on_left(uint32_t status, struct cur body)
{
    char text[64];
    (void)body;
    isns_reg_deregistered(&is.reg); /* refused: it expires */
    is.announced = false;
    is.replace = true;
    worker_timer_stop(&is.refresh);
    log_event(status == ISNS_OK ? LL_INFO : LL_WARN, LA_NET,
              "isns-deregistered server=%s status=%u meaning=\"%s\"", server_text(text), status,
              isns_status_text(status));
}

static bool
need_verify(void)
{
    return is.verify && isns_reg_is_known(&is.reg);
}

/* A query for our own entity also refreshes it (RFC 4171 6.2.6). */
static void
put_verify(struct isns_out *o)
{
    const struct isns_node *source = isns_reg_source(&is.reg);
    isns_out_text(o, ISNS_NAME, source ? source->name : "");
    isns_out_text(o, ISNS_EID, is.reg.eid);
    isns_out_empty(o, ISNS_DELIMITER);
    isns_out_empty(o, ISNS_EID);
    isns_out_empty(o, ISNS_REGISTRATION_PERIOD);
    isns_out_empty(o, ISNS_PORTAL_IP);
    isns_out_empty(o, ISNS_PORTAL_PORT);
}

static bool
uses_esi(void)
{
    return !is.reg.no_esi && (is.reg.notice_port4 != 0 || is.reg.notice_port6 != 0);
}

static void
register_without_esi(void)
{
    char text[64];
    log_event(LL_WARN, LA_NET,
              "isns-esi-off server=%s why=\"the server dropped what it should watch: its inquiries "
              "do not reach us\"",
              server_text(text));
    isns_reg_forget(&is.reg);
    is.reg.no_esi = true;
    is.replace = true;
}

static void
on_verified(uint32_t status, struct cur body)
{
    struct isns_attr a;
    bool behind = false, here = false;
    unsigned portals = 0;

    is.verify = false;
    while (isns_attr_next(&body, &a)) {
        behind = behind || a.tag == ISNS_DELIMITER;
        here = here || (behind && a.tag == ISNS_EID && a.len != 0);
        portals += behind && a.tag == ISNS_PORTAL_IP && a.len == 16;
    }
    if (!cur_ok(&body)) {
        fail("malformed answer");
        return;
    }
    start_refresh();
    if (status == ISNS_OK && here) {
        is.lost_entities = 0;
        if (portals < isns_reg_known_portals(&is.reg) && uses_esi())
            register_without_esi();
        return;
    }
    if (status != ISNS_OK && status != ISNS_NO_SUCH_ENTRY && status != ISNS_SOURCE_UNKNOWN)
        return; /* it did receive a message of ours: that counts */
    /* Gone, or not shown to us: an update makes it anew and harms nothing. */
    log_event(LL_NOTICE, LA_NET, "isns-renewed why=\"the server does not show our entity\"");
    if (++is.lost_entities >= 2 && uses_esi())
        register_without_esi();
    else
        isns_reg_refresh(&is.reg);
}

static bool
need_register(void)
{
    return !is.leaving && isns_reg_need_register(&is.reg);
}

static void
put_register(struct isns_out *o)
{
    isns_reg_put_register(&is.reg, o);
}

static void
read_period(struct cur *body)
{
    struct isns_attr a;
    while (isns_attr_next(body, &a)) {
        if (a.tag == ISNS_REGISTRATION_PERIOD)
            (void)isns_attr_u32(&a, &is.period_s);
    }
}

static void
on_registered(uint32_t status, struct cur body)
{
    char text[64];

    if (status != ISNS_OK) {
        isns_reg_refused(&is.reg);
        if (status == ISNS_ESI_NOT_AVAILABLE && !is.reg.no_esi) {
            is.reg.no_esi = true;
        } else if (status == ISNS_FEATURE_NOT_SUPPORTED && !is.reg.no_pg) {
            is.reg.no_pg = true;
        } else {
            log_event(LL_WARN, LA_NET,
                      "isns-refused server=%s step=register status=%u "
                      "meaning=\"%s\"",
                      server_text(text), status, isns_status_text(status));
            fail("registration refused");
        }
        return;
    }
    read_period(&body);
    if (!cur_ok(&body)) {
        fail("malformed answer");
        return;
    }
    isns_reg_registered(&is.reg);
    is.replace = false;
    is.failures = 0;
    if (isns_reg_need_register(&is.reg))
        return;
    start_refresh();
    log_event(is.announced ? LL_INFO : LL_NOTICE, LA_NET,
              "isns-registered server=%s entity=%s targets=%u portals=%u period_s=%u",
              server_text(text), is.reg.eid, isns_reg_known_nodes(&is.reg),
              isns_reg_known_portals(&is.reg), is.period_s);
    is.announced = true;
}

static bool
need_deregister(void)
{
    return !is.leaving && isns_reg_need_deregister(&is.reg);
}

static void
put_deregister(struct isns_out *o)
{
    isns_reg_put_deregister(&is.reg, o);
}

static void
on_deregistered(uint32_t status, struct cur body)
{
    char text[64];
    (void)body;
    if (status != ISNS_OK)
        log_event(LL_WARN, LA_NET,
                  "isns-refused server=%s step=deregister status=%u meaning=\"%s\"",
                  server_text(text), status, isns_status_text(status));
    isns_reg_deregistered(&is.reg);
    is.changed = true; /* there may be room for portals that were left out */
}

static struct isns_node *
node_without_scn(void)
{
    for (unsigned i = 0; i < is.reg.nnodes; i++) {
        struct isns_node *n = &is.reg.nodes[i];
        if (n->o.wanted && n->o.fresh && !n->scn)
            return n;
    }
    return NULL;
}

static bool
need_scn(void)
{
    return !is.leaving && is.access && !is.scn_refused &&
           (is.reg.notice_port4 != 0 || is.reg.notice_port6 != 0) &&
           isns_reg_known_portals(&is.reg) != 0 && node_without_scn() != NULL;
}

static void
put_scn(struct isns_out *o)
{
    struct isns_node *n = node_without_scn();
    snprintf(is.asked, sizeof is.asked, "%s", n->name);
    isns_out_text(o, ISNS_NAME, n->name);
    isns_out_text(o, ISNS_NAME, n->name);
    isns_out_empty(o, ISNS_DELIMITER);
    isns_out_u32(o, ISNS_SCN_BITMAP, SCN_BITMAP);
}

static void
on_scn_registered(uint32_t status, struct cur body)
{
    struct isns_node *n = isns_reg_find(&is.reg, is.asked);
    char text[64];
    (void)body;
    if (n != NULL)
        n->scn = true;
    if (status == ISNS_OK)
        return;
    is.scn_refused = true;
    log_event(LL_WARN, LA_NET,
              "isns-no-notices server=%s status=%u meaning=\"%s\" why=\"it is asked every few "
              "minutes instead\"",
              server_text(text), status, isns_status_text(status));
}

static struct isns_node *
stale_node(void)
{
    for (unsigned i = 0; i < is.reg.nnodes; i++) {
        struct isns_node *n = &is.reg.nodes[i];
        if (n->o.wanted && n->o.known && n->stale)
            return n;
    }
    return NULL;
}

static bool
need_query(void)
{
    return !is.leaving && is.access && stale_node() != NULL;
}

/* Every node that shares a discovery domain with the source, and its type. */
static void
put_query(struct isns_out *o)
{
    struct isns_node *n = stale_node();
    snprintf(is.asked, sizeof is.asked, "%s", n->name);
    n->stale = false; /* a notice from now on makes it so again */
    isns_out_text(o, ISNS_NAME, n->name);
    isns_out_empty(o, ISNS_NAME);
    isns_out_empty(o, ISNS_DELIMITER);
    isns_out_empty(o, ISNS_NAME);
    isns_out_empty(o, ISNS_NODE_TYPE);
}

static void
on_queried(uint32_t status, struct cur body)
{
    uint32_t suppressed;

    if (status == ISNS_OK) {
        if (!isns_client_domains(is.asked, body))
            fail("malformed answer");
        return;
    }
    if (log_rate_ok(&is.query_rate, &suppressed))
        log_event(LL_WARN, LA_NET,
                  "isns-domain target=%s status=%u meaning=\"%s\" why=\"what was "
                  "known of it stays\"",
                  LOG_ESC(is.asked), status, isns_status_text(status));
    if (status == ISNS_SOURCE_UNKNOWN)
        is.verify = true;
}

/* In the order in which they are taken. */
static const struct step steps[] = {
    {"deregister-all", ISNS_DEV_DEREG, need_leave, put_leave, on_left},
    {"verify", ISNS_DEV_ATTR_QRY, need_verify, put_verify, on_verified},
    {"register", ISNS_DEV_ATTR_REG, need_register, put_register, on_registered},
    {"deregister", ISNS_DEV_DEREG, need_deregister, put_deregister, on_deregistered},
    {"scn-register", ISNS_SCN_REG, need_scn, put_scn, on_scn_registered},
    {"query", ISNS_DEV_ATTR_QRY, need_query, put_query, on_queried},
};

/* --- the machine ----------------------------------------------------------------------------- */

static void
ask(const struct step *s)
{
    struct isns_out o = {0};
    bool replace = s->func == ISNS_DEV_ATTR_REG && is.replace;

    isns_out_begin(&o, s->func, ++is.xid, replace ? ISNS_F_REPLACE : 0);
    s->put(&o);
    if (!isns_out_end(&o))
        log_abort("an iSNS request has %zu bytes", o.len);
    is.step = s;
    is.state = IS_ASKING;
    worker_timer_start_ms(&is.timer, ANSWER_MS);
    isns_link_send(&is.link, o.p, o.len);
    isns_out_fini(&o);
}

static void
connect_now(void)
{
    const struct isns_server *s = &is.server[is.cur];
    int rc = isns_link_connect(&is.link, (const struct sockaddr *)&s->addr, s->len);

    is.state = IS_CONNECTING;
    if (rc < 0) {
        fail(rc == -ENETUNREACH || rc == -EHOSTUNREACH ? "no way to it" : "cannot connect");
        return;
    }
    worker_timer_start_ms(&is.timer, CONNECT_MS);
}

static void
run_next(struct deferred *d)
{
    const struct step *s = NULL;
    bool open = isns_link_is_open(&is.link);
    (void)d;

    if (is.state != IS_ASLEEP && is.state != IS_IDLE)
        return;
    if (is.changed && open)
        sync_model();
    for (unsigned i = 0; i < sizeof steps / sizeof *steps && s == NULL; i++) {
        if (steps[i].is_needed())
            s = &steps[i];
    }
    if (s != NULL && open) {
        ask(s);
    } else if (s != NULL ||
               (is.changed && !is.leaving && (any_served() || isns_reg_is_known(&is.reg)))) {
        connect_now();
    } else if (is.leaving) {
        leave_over();
    } else {
        is.state = open ? IS_IDLE : IS_ASLEEP;
    }
}

static void
on_timer(struct worker_timer *t)
{
    (void)t;
    if (is.state == IS_CONNECTING) {
        fail("no connection in time");
    } else if (is.state == IS_ASKING) {
        fail("no answer in time");
    } else if (is.state == IS_WAITING) {
        is.state = IS_ASLEEP;
        is.changed = true;
        wake();
    }
}

static void
on_up(struct isns_link *l)
{
    (void)l;
    worker_timer_stop(&is.timer);
    is.state = IS_IDLE;
    is.changed = true; /* our own address may be another */
    is.nonsense = 0;
    wake();
}

static void
on_down(struct isns_link *l, const char *why)
{
    (void)l;
    if (is.state != IS_IDLE || is.leaving) {
        fail(why);
        return;
    }
    /* Nothing was under way: not a failure by itself. It is looked at once; a server that closes
     * what is idle is not sought again before there is work. */
    log_debug(LA_NET, "isns-idle-closed why=\"%s\"", why);
    if (is.quiet_closes++ == 0 && isns_reg_is_known(&is.reg)) {
        is.verify = true;
        wait_ms(BACKOFF_MS);
    } else {
        is.state = IS_ASLEEP;
    }
}

static void
on_answer(struct isns_link *l)
{
    const struct step *s = is.step;
    struct cur body = cur_init(l->rx.msg, l->rx.len);
    uint32_t status = cur_be32(&body);

    if (!cur_ok(&body)) {
        fail("answer without a status");
        return;
    }
    worker_timer_stop(&is.timer);
    is.nonsense = 0;
    s->answer(status, body);
    if (is.state != IS_ASKING)
        return; /* it failed */
    is.state = IS_IDLE;
    wake();
}

static void
notice(struct isns_link *l)
{
    struct isns_notice n;

    isns_client_notice(&is.reg, l, &n);
    if (!n.is_scn || is.leaving || is.state == IS_OFF)
        return;
    if (n.self_removed)
        is.verify = true;
    if (n.node != NULL && is.access)
        n.node->stale = true;
    /* Not at once: a storm of notices is one question. */
    if ((n.self_removed || n.node != NULL) && !worker_timer_is_active(&is.scn))
        worker_timer_start_ms(&is.scn, SCN_MS);
}

static void
on_message(struct isns_link *l)
{
    if (!(l->rx.h.func & ISNS_RSP)) {
        notice(l);
    } else if (is.state == IS_ASKING && l->rx.h.func == (is.step->func | ISNS_RSP) &&
               l->rx.h.xid == is.xid) {
        on_answer(l);
    } else if (++is.nonsense > NONSENSE_MAX) {
        fail("too many answers to nothing");
    }
}

static void
on_refresh(struct worker_timer *t)
{
    (void)t;
    is.verify = true;
    is.quiet_closes = 0;
    if (is.access)
        stale_all();
    wake();
}

static void
on_scn_timer(struct worker_timer *t)
{
    (void)t;
    wake();
}

static void
on_settled(struct worker_timer *t)
{
    (void)t;
    is.changed = true;
    wake();
}

static void
on_leave_late(struct worker_timer *t)
{
    (void)t;
    leave_over();
}

static bool
same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr,
                      &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr, 16) == 0;
    return ((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
}

static bool
is_a_server(const struct sockaddr_storage *peer)
{
    for (unsigned i = 0; i < is.nservers; i++) {
        if (same_host(peer, &is.server[i].addr))
            return true;
    }
    return false;
}

/* --- for isns.c ------------------------------------------------------------------------------ */

void
isns_client_init(struct worker *main_worker, const uint8_t *seed)
{
    static const struct isns_link_ops ops = {on_up, on_message, on_down};

    is.w = main_worker;
    is.state = IS_OFF;
    isns_reg_init(&is.reg, seed);
    isns_link_init(&is.link, is.w, &ops, MSG_MAX);
    worker_timer_init(&is.timer, is.w, on_timer);
    worker_timer_init(&is.refresh, is.w, on_refresh);
    worker_timer_init(&is.settle, is.w, on_settled);
    worker_timer_init(&is.scn, is.w, on_scn_timer);
    worker_timer_init(&is.leave, is.w, on_leave_late);
    deferred_init(&is.next, run_next);
    isns_client_domains_init(is.w);
}

void
isns_client_run(const struct isns_server *server, unsigned n)
{
    worker_assert_owner(is.w);
    memcpy(is.server, server, n * sizeof *server);
    is.nservers = n;
    is.cur = is.failures = is.quiet_closes = is.lost_entities = is.nonsense = 0;
    is.verify = is.announced = is.scn_refused = is.leaving = false;
    is.replace = true;
    is.period_s = 0;
    isns_inbound_start(is.w, is_a_server, notice);
    is.reg.notice_port4 = isns_inbound_port(AF_INET);
    is.reg.notice_port6 = isns_inbound_port(AF_INET6);
    isns_reg_forget(&is.reg);
    is.state = IS_ASLEEP;
    isns_client_changed();
}

void
isns_client_leave(void (*done)(void *arg), void *arg)
{
    is.left = done;
    is.left_arg = arg;
    is.leaving = true;
    bool under_way = is.state == IS_CONNECTING || is.state == IS_ASKING;
    if (is.state == IS_WAITING && is.failures == 0) /* it had only closed an idle connection */
        is.state = IS_ASLEEP;
    if (is.state == IS_OFF || is.state == IS_WAITING ||
        (!under_way && !isns_reg_is_known(&is.reg))) {
        leave_over();
        return;
    }
    worker_timer_start_ms(&is.leave, LEAVE_MS);
    wake();
}

bool
isns_client_is_off(void)
{
    return is.state == IS_OFF;
}

void
isns_client_access(bool on)
{
    is.access = on;
    if (!on)
        isns_client_domains_drop();
    if (is.state == IS_OFF)
        return;
    for (unsigned i = 0; on && i < is.reg.nnodes; i++)
        is.reg.nodes[i].scn = false;
    stale_all();
    wake();
}

void
isns_client_changed(void)
{
    if (is.state != IS_OFF && !is.leaving)
        worker_timer_start_ms(&is.settle, SETTLE_MS); /* anew: the last of a series counts */
}

const char *
isns_client_state(const struct isns_server **server)
{
    bool off = is.state == IS_OFF;

    *server = off ? NULL : &is.server[is.cur];
    if (off)
        return "off";
    if (isns_reg_is_known(&is.reg))
        return isns_reg_need_register(&is.reg) ? "registering" : "registered";
    return is.state == IS_WAITING      ? "waiting"
           : is.state == IS_ASLEEP     ? "nothing to register"
           : is.state == IS_CONNECTING ? "connecting"
                                       : "registering";
}
