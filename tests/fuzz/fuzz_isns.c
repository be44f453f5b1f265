/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: what an iSNS server may do to the client, many messages deep: the real state
 * machine, targets and publication, a connection without a socket, a clock that the input moves.
 *
 * Input: a byte of settings, then records: a kind, two bytes of length, that many bytes (fewer when
 * the input ends).  An answer to the request under way comes with the right function and
 * transaction id, so that deep states are reached.  Whatever comes: requests are whole, one at a
 * time, in one PDU; nobody is admitted whose name no answer had; memory is bounded; and when the
 * client is told to leave, it is off within its deadline.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cur.h"
#include "base/helper.h"
#include "base/pool.h"
#include "target/isns_client.h"
#include "target/isns_inbound.h"
#include "target/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define STRANGER "iqn.2001-04.com.example:a name that no input will have"

enum setting { SET_ACCESS = 1, SET_SERVERS = 6, SET_TARGETS = 0x38, SET_NO_PORT = 0x40 };

enum kind {
    K_ANSWER,  /* status 0, then the record */
    K_ANSWER4, /* the record, with its own status */
    K_GOOD,    /* a right answer */
    K_PIECES,  /* K_ANSWER in PDUs of four bytes */
    K_RAW,     /* the record, as it is */
    K_SCN,
    K_ESI,
    K_INBOUND_SCN,
    K_INBOUND_ESI,
    K_CLOSE,
    K_TIME,   /* milliseconds, from the record */
    K_MODEL,  /* a target goes offline or comes back */
    K_ACCESS, /* access control changes */
    K_LEAVE,
    K_COUNT
};

static struct worker *w;
static struct isns_link *server, inbound; /* server: connected, or on the way */
static void (*on_notice)(struct isns_link *l);
static bool no_port, off, refuse;
static struct {
    bool open; /* a request is unanswered */
    uint16_t func, xid;
    uint8_t body[ISNS_PDU_MAX];
    size_t len;
} req;

static void
check(bool ok)
{
    if (!ok)
        abort();
}

/* --- in place of isns_link.c and isns_inbound.c ----------------------------------------------- */

void
isns_link_init(struct isns_link *l, struct worker *owner, const struct isns_link_ops *ops,
               size_t msg_max)
{
    *l = (struct isns_link){.ops = ops, .w = owner, .fd = -1};
    isns_rx_init(&l->rx, msg_max);
}

int
isns_link_connect(struct isns_link *l, const struct sockaddr *addr, socklen_t len)
{
    (void)addr;
    (void)len;
    check(l->fd < 0);
    if (refuse)
        return -ECONNREFUSED;
    l->fd = 1000; /* never used */
    l->connecting = true;
    server = l;
    return 0;
}

void
isns_link_adopt(struct isns_link *l, int fd)
{
    l->fd = fd;
}

void
isns_link_close(struct isns_link *l)
{
    if (l == server) {
        server = NULL;
        req.open = false;
    }
    l->fd = -1;
    l->connecting = false;
    if (!l->in_message)
        isns_rx_fini(&l->rx);
}

bool
isns_link_local(const struct isns_link *l, struct sockaddr_storage *sa)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    (void)l;
    memcpy(sa, &in, sizeof in);
    return true;
}

/* Everything the client sends is one whole PDU (RFC 4171 5.1) of whole attributes. */
void
isns_link_send(struct isns_link *l, const void *p, size_t len)
{
    struct cur c = cur_init(p, len);
    struct isns_attr a;
    check(l->fd >= 0 && len >= ISNS_HDR_LEN && len <= ISNS_HDR_LEN + ISNS_PDU_MAX);
    check(cur_be16(&c) == 1);
    uint16_t func = cur_be16(&c), n = cur_be16(&c), flags = cur_be16(&c), xid = cur_be16(&c);
    check(n == len - ISNS_HDR_LEN && n % 4 == 0 && cur_be16(&c) == 0);
    check((flags & 0xec00) == (ISNS_F_CLIENT | ISNS_F_FIRST | ISNS_F_LAST));
    if (func & ISNS_RSP) {
        (void)cur_be32(&c);
    } else {
        check(l == server && !l->connecting && !req.open);
        req.open = true;
        req.func = func;
        req.xid = xid;
        req.len = n;
        memcpy(req.body, (const uint8_t *)p + ISNS_HDR_LEN, n);
    }
    while (isns_attr_next(&c, &a))
        ;
    check(cur_ok(&c));
}

void
isns_inbound_start(struct worker *owner, bool (*allowed)(const struct sockaddr_storage *peer),
                   void (*message)(struct isns_link *l))
{
    (void)allowed;
    static struct isns_link_ops ops;
    ops.message = on_notice = message;
    isns_link_init(&inbound, owner, &ops, 65536);
    isns_link_adopt(&inbound, 1001);
}

void
isns_inbound_stop(void)
{
    isns_link_close(&inbound);
}

uint16_t
isns_inbound_port(int family)
{
    return no_port || family == AF_INET6 ? 0 : 4000;
}

/* --- the server's side ------------------------------------------------------------------------ */

static void
turns(int n)
{
    for (int k = 0; k < n; k++)
        worker_turn(w, false);
}

/* Bytes arrive, as isns_link.c takes them. */
static void
arrive(struct isns_link *l, const uint8_t *p, size_t n)
{
    while (n != 0 && l != NULL && l->fd >= 0) {
        size_t used;
        int rc = isns_rx_feed(&l->rx, p, n, &used);
        check(l->rx.room <= 2 * l->rx.cap);
        if (rc < 0) {
            isns_link_close(l);
            if (l != &inbound)
                l->ops->down(l, l->rx.why);
            else
                isns_link_adopt(l, 1001);
            return;
        }
        p += used;
        n -= used;
        if (rc > 0) {
            l->in_message = true;
            l->ops->message(l);
            l->in_message = false;
            if (l->fd < 0)
                isns_rx_fini(&l->rx);
        }
    }
}

static void
message(struct isns_link *l, uint16_t func, uint16_t xid, const uint8_t *p, size_t n, size_t piece)
{
    static uint8_t out[ISNS_HDR_LEN + ISNS_PDU_MAX];
    uint16_t seq = 0;
    if (l == NULL || l->connecting)
        return;
    n &= ~(size_t)3;
    do {
        struct wcur wc = wcur_init(out, sizeof out);
        size_t k = n < piece ? n : piece;
        wcur_be16(&wc, 1);
        wcur_be16(&wc, func);
        wcur_be16(&wc, (uint16_t)k);
        wcur_be16(&wc, (uint16_t)(ISNS_F_SERVER | (seq == 0 ? ISNS_F_FIRST : 0) |
                                  (k == n ? ISNS_F_LAST : 0)));
        wcur_be16(&wc, xid);
        wcur_be16(&wc, seq++);
        if (k != 0)
            wcur_bytes(&wc, p, k);
        p += k;
        n -= k;
        arrive(l, out, wc.len);
    } while (n != 0 && l->fd >= 0);
}

static void
answer(const uint8_t *p, size_t n, bool with_status, size_t piece)
{
    static uint8_t body[ISNS_PDU_MAX];
    size_t at = with_status ? 4 : 0;
    if (!req.open)
        return;
    memset(body, 0, 4);
    if (n > sizeof body - at)
        n = sizeof body - at;
    if (n != 0)
        memcpy(body + at, p, n);
    req.open = false;
    message(server, req.func | ISNS_RSP, req.xid, body, at + n, piece);
}

/* As a server would: the attributes of the request that have a value, and an initiator. */
static void
good_answer(void)
{
    struct isns_out o = {0};
    struct cur c = cur_init(req.body, req.len);
    struct isns_attr a;
    if (!req.open)
        return;
    isns_out_status(&o, 0);
    isns_out_empty(&o, ISNS_DELIMITER);
    isns_out_u32(&o, ISNS_REGISTRATION_PERIOD, 60);
    while (isns_attr_next(&c, &a)) {
        if (a.len != 0 && a.tag != ISNS_NAME && a.tag != ISNS_DELIMITER && o.len < 32768)
            isns_out_attr(&o, a.tag, a.value, a.len);
    }
    isns_out_text(&o, ISNS_NAME, "iqn.2001-04.com.example:i");
    isns_out_u32(&o, ISNS_NODE_TYPE, ISNS_TYPE_INITIATOR);
    answer(o.p, o.len, false, ISNS_PDU_MAX);
    isns_out_fini(&o);
}

static void
on_left(void *arg)
{
    (void)arg;
    off = true;
}

static void
pass(uint64_t ms)
{
    for (uint64_t step = 0; ms != 0; ms -= step) {
        step = ms < 100 ? ms : 100;
        clock_fake_advance(step * 1000);
        turns(2);
    }
}

static void
toggle_target(uint8_t which)
{
    struct model_target *t = model_target_find(which % 8u + 1);
    char err[128];
    if (t == NULL)
        return;
    t->offline = !t->offline;
    snprintf(t->alias, sizeof t->alias, "%u", which);
    model_touch(t);
    check(model_publish(NULL, NULL, err, sizeof err) == 0);
}

static void
one_record(struct cur *in, uint8_t set)
{
    uint8_t kind = cur_u8(in) % K_COUNT;
    size_t n = cur_be16(in);
    if (!cur_ok(in))
        return;
    if (n > in->left)
        n = in->left;
    uint8_t *rec = malloc(n ? n : 1); /* exact size: an over-read is seen */
    check(rec != NULL);
    if (n != 0)
        memcpy(rec, cur_take(in, n), n);
    if (server != NULL && server->connecting) {
        server->connecting = false;
        server->ops->up(server);
        turns(2);
    }
    switch (kind) {
    case K_ANSWER:
        answer(rec, n, true, ISNS_PDU_MAX);
        break;
    case K_ANSWER4:
        answer(rec, n, false, ISNS_PDU_MAX);
        break;
    case K_GOOD:
        good_answer();
        break;
    case K_PIECES:
        answer(rec, n < 4096 ? n : 4096, true, 4);
        break;
    case K_RAW:
        arrive(server, rec, n);
        break;
    case K_SCN:
        message(server, ISNS_SCN, 1, rec, n, ISNS_PDU_MAX);
        break;
    case K_ESI:
        message(server, ISNS_ESI, 1, rec, n, ISNS_PDU_MAX);
        break;
    case K_INBOUND_SCN:
        message(&inbound, ISNS_SCN, 1, rec, n, ISNS_PDU_MAX);
        break;
    case K_INBOUND_ESI:
        message(&inbound, ISNS_ESI, 1, rec, n, ISNS_PDU_MAX);
        break;
    case K_CLOSE:
        refuse = n != 0 && (rec[0] & 1);
        if (server != NULL) {
            struct isns_link *l = server;
            isns_link_close(l);
            l->ops->down(l, "closed");
        }
        break;
    case K_TIME:
        pass(n >= 2 ? get_be16(rec) : 150);
        break;
    case K_MODEL:
        toggle_target(n ? rec[0] : 0);
        break;
    case K_ACCESS:
        model.dd_only = n && (rec[0] & 1);
        isns_client_access(model.dd_only);
        break;
    case K_LEAVE:
        if (!off && (set & SET_ACCESS) && n > 8)
            isns_client_leave(on_left, NULL);
        break;
    default:
        break;
    }
    free(rec);
    turns(3);
}

/* --- set up ----------------------------------------------------------------------------------- */

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const uint8_t seed[32] = {1};
    struct portal_spec spec = {.tpgt = 1};
    char err[256];
    (void)argc;
    (void)argv;
    log_open("fuzz_isns", true); /* stderr is libFuzzer's */
    check(helper_pool_start(1, 2) == 0);
    clock_fake_set(1000000);
    w = worker_new_local(&(struct worker_opts){.engine = ENGINE_POOL});
    check(w != NULL);
    model_init(w, NULL);
    check(hostport_parse("127.0.0.1:0", &spec.at, err, sizeof err) == 0);
    check(portal_open(&spec, false, err, sizeof err) == 0);
    isns_client_init(w, seed);
    model_published = isns_client_changed;
    return 0;
}

static void
nobody_else(void)
{
    list_each(it, &model.targets) {
        const struct model_target *t = container_of(it, struct model_target, link);
        check(t->dd == NULL || !isns_dd_admits(t->dd, STRANGER));
        check(t->dd == NULL || isns_dd_bytes(t->dd) < 4096 * 300);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cur in = cur_init(data, size);
    uint8_t set = cur_u8(&in);
    struct isns_server servers[4];
    unsigned ns = (set & SET_SERVERS) / 2 + 1, nt = (set & SET_TARGETS) / 8 + 1;
    char name[64], err[128];

    for (unsigned i = 0; i < ns; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000001 + i)}};
        servers[i] = (struct isns_server){.len = sizeof a};
        memcpy(&servers[i].addr, &a, sizeof a);
    }
    off = refuse = req.open = false;
    no_port = set & SET_NO_PORT;
    model.dd_only = set & SET_ACCESS;
    for (unsigned i = 1; i <= nt; i++) {
        snprintf(name, sizeof name, "iqn.2001-04.com.example:t%u", i);
        (void)model_target_new(i, name);
    }
    isns_client_access(model.dd_only);
    isns_client_run(servers, ns);
    check(model_publish(NULL, NULL, err, sizeof err) == 0);
    pass(200);
    while (in.left >= 3)
        one_record(&in, set);
    nobody_else();
    if (!off)
        isns_client_leave(on_left, NULL);
    pass(2500);
    check(off && isns_client_is_off() && server == NULL);
    while (!list_is_empty(&model.targets))
        model_target_free(list_first(&model.targets, struct model_target, link));
    check(model_publish(NULL, NULL, err, sizeof err) == 0);
    turns(4);
    return 0;
}
