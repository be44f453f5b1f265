/* SPDX-License-Identifier: BSD-2-Clause */
/* Lives of sessions and connections: login, logout, reinstatement, pings, the end of the daemon.
 * Two real workers; this thread is the initiator and the daemon's main. */
#include "config.h"

#include <poll.h>

#include "target/account.h"
#include "target/keys.h"
#include "tgt_fake.h"

static struct tf f; /* f.w: main's worker, without sessions */
static struct worker *ws[2];
static struct acl *everybody;

struct peer {
    int fd;
    uint8_t isid;
    uint16_t tsih, cid;
    uint32_t itt, cmd_sn, stat_sn;
    const char *initiator, *target; /* target NULL: discovery */
};

static void
on_init(struct worker *w, void *arg)
{
    (void)arg;
    tgt_worker_init(w);
}

static void
on_fini(struct worker *w, void *arg)
{
    (void)arg;
    tgt_worker_fini(w);
}

static void
on_flag(struct worker *w, void *arg)
{
    (void)w;
    *(bool *)arg = true;
}

static void
on_flag_main(void *arg)
{
    *(bool *)arg = true;
}

static void
wait_flag(bool *flag)
{
    while (!*flag) {
        worker_turn(f.w, false);
        usleep(200);
    }
    *flag = false;
}

static void
everywhere(void (*fn)(struct worker *w, void *arg), void *arg)
{
    bool flag = false;
    (void)arg;
    static bool *volatile where;
    where = &flag;
    worker_broadcast(fn, where, f.w, on_flag);
    wait_flag(&flag);
}

static void
publish(struct tgt_node *n)
{
    bool flag = false;
    struct node_set *set = xcalloc(1, sizeof *set);
    ref_init(&set->ref);
    if (n) {
        set->n = 1;
        set->nodes = xcalloc(1, sizeof *set->nodes);
        set->nodes[0] = node_get(n);
    }
    node_publish(set, on_flag_main, &flag);
    wait_flag(&flag);
}

static struct tgt_node *
new_node(unsigned max_cmds)
{
    struct tgt_node *n = tf_node(&f, &(struct tf_opts){.max_cmds = max_cmds});
    n->acl = acl_get(everybody);
    keys_defaults(&n->keys);
    return n;
}

static void
open_all(const char *layers)
{
    memset(&f, 0, sizeof f);
    f.w = worker_new_local(&(struct worker_opts){.engine = ENGINE_POOL});
    for (unsigned k = 0; k < 2; k++)
        ws[k] = worker_start(&(struct worker_opts){.id = k});
    worker_set_publish(ws, 2);
    everywhere(on_init, NULL);
    tf_backend(&f, &(struct tf_opts){.layers = layers});
    char err[100];
    everybody = acl_new((const char *const[]){"ALL", NULL}, NULL, err, sizeof err, NULL, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(everybody);
    f.node = new_node(32);
    publish(f.node);
}

static void
close_all(void)
{
    publish(NULL);
    everywhere(on_fini, NULL);
    CU_ASSERT_EQUAL(registry_count(), 0);
    for (int k = 0; k < 3000 && be_in_flight(f.be) > 0; k++)
        usleep(1000);
    for (unsigned k = 0; k < 2; k++)
        worker_stop(ws[k]);
    for (unsigned k = 0; k < 2; k++)
        worker_join(ws[k]);
    worker_set_publish(NULL, 0);
    node_put(f.node);
    acl_put(everybody);
    lun_put(f.lun);
    be_close(f.be);
    be_put(f.be);
    worker_free_local(f.w);
}

/* --- a blocking initiator ------------------------------------------------------------------------
 */

struct accept_msg {
    int fd;
};

static void
on_accept(struct worker *w, void *arg)
{
    struct accept_msg *m = arg;
    struct conn_from from = {.peer.ss_family = AF_INET, .local.ss_family = AF_INET, .via.tpgt = 1};
    ((struct sockaddr_in *)(void *)&from.peer)->sin_addr.s_addr = htonl(0x7f000001);
    from.half = half_new(&from.peer, w);
    conn_accept(w, m->fd, &from);
    free(m);
}

static void
peer_connect(struct peer *p, unsigned worker)
{
    int sv[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    struct accept_msg *m = xcalloc(1, sizeof *m);
    m->fd = sv[1];
    p->fd = sv[0];
    worker_post(ws[worker], on_accept, m);
}

/* Bytes, or fewer when the target closed or was silent for ms. */
static size_t
read_n(int fd, void *buf, size_t n, int ms)
{
    size_t got = 0;
    while (got < n) {
        struct pollfd pf = {.fd = fd, .events = POLLIN};
        if (poll(&pf, 1, ms) <= 0)
            break;
        ssize_t r = recv(fd, (uint8_t *)buf + got, n - got, 0);
        if (r <= 0)
            break;
        got += (size_t)r;
    }
    return got;
}

static struct tf_pdu *
peer_recv_ms(struct peer *p, int ms)
{
    uint8_t bhs[BHS_LEN];
    if (read_n(p->fd, bhs, sizeof bhs, ms) != sizeof bhs)
        return NULL;
    uint32_t len = get_be24(bhs + 5), padded = (len + 3) & ~3u;
    struct tf_pdu *r = xcalloc(1, sizeof *r + padded);
    memcpy(r->bhs, bhs, sizeof bhs);
    r->data = (uint8_t *)(r + 1);
    r->len = len;
    if (read_n(p->fd, r->data, padded, ms) != padded) {
        free(r);
        return NULL;
    }
    return r;
}

static struct tf_pdu *
peer_expect(struct peer *p, uint8_t opcode)
{
    struct tf_pdu *r = peer_recv_ms(p, 3000);
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    CU_ASSERT_EQUAL_FATAL(r->bhs[0], opcode);
    return r;
}

static bool
is_closed(struct peer *p)
{
    struct tf_pdu *r;
    while ((r = peer_recv_ms(p, 3000)) != NULL)
        free(r);
    uint8_t b;
    return recv(p->fd, &b, 1, MSG_DONTWAIT) <= 0 && (errno != EAGAIN || recv(p->fd, &b, 1, 0) == 0);
}

static bool
is_quiet(struct peer *p)
{
    struct pollfd pf = {.fd = p->fd, .events = POLLIN};
    return poll(&pf, 1, 50) == 0;
}

static void
peer_send(struct peer *p, uint8_t *bhs, const void *data, uint32_t len)
{
    static const uint8_t zero[4];
    put_be24(bhs + 5, len);
    (void)send(p->fd, bhs, BHS_LEN, MSG_NOSIGNAL);
    if (len > 0)
        (void)send(p->fd, data, len, MSG_NOSIGNAL);
    if (len & 3)
        (void)send(p->fd, zero, -len & 3, MSG_NOSIGNAL);
}

static void
peer_bhs(struct peer *p, uint8_t *bhs, uint8_t opcode, bool immediate, uint8_t flags)
{
    memset(bhs, 0, BHS_LEN);
    bhs[0] = (uint8_t)(opcode | (immediate ? 0x40 : 0));
    bhs[1] = flags;
    put_be32(bhs + 16, p->itt++);
    put_be32(bhs + 20, TAG_RESERVED);
    put_be32(bhs + 24, immediate ? p->cmd_sn : p->cmd_sn++);
}

static size_t
login_text(const struct peer *p, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "InitiatorName=%s", p->initiator) + 1;
    if (p->target)
        n += (size_t)snprintf(text + n, size - n, "TargetName=%s", p->target) + 1;
    n +=
        (size_t)snprintf(text + n, size - n, "SessionType=%s", p->target ? "Normal" : "Discovery") +
        1;
    return n;
}

static void
login_step(struct peer *p, uint8_t flags, const char *text, size_t len)
{
    uint8_t bhs[BHS_LEN];
    p->cmd_sn = 10;
    peer_bhs(p, bhs, OPC_LOGIN_REQ, true, flags);
    bhs[8] = 0x80;
    bhs[13] = p->isid;
    put_be16(bhs + 14, p->tsih);
    put_be32(bhs + 20, (uint32_t)p->cid << 16);
    peer_send(p, bhs, text, (uint32_t)len);
}

/* Sends a login in one step; the answer's status comes by login_answer. */
static void
login_send(struct peer *p)
{
    char text[600];
    login_step(p, 0x87, text, login_text(p, text, sizeof text));
}

static uint16_t
login_answer(struct peer *p)
{
    struct tf_pdu *r = peer_expect(p, OPC_LOGIN_RSP);
    uint16_t status = get_be16(r->bhs + 36);
    if (status == LS_OK) {
        CU_ASSERT_EQUAL(r->bhs[1] & 0x83, 0x83);
        p->tsih = get_be16(r->bhs + 14);
        CU_ASSERT_NOT_EQUAL(p->tsih, 0);
        p->stat_sn = get_be32(r->bhs + 24);
        p->cmd_sn = get_be32(r->bhs + 28);
    }
    free(r);
    return status;
}

static uint16_t
peer_login(struct peer *p, unsigned worker)
{
    if (!p->initiator)
        p->initiator = "iqn.2026-01.example:initiator";
    p->itt = 1;
    peer_connect(p, worker);
    login_send(p);
    return login_answer(p);
}

static bool
ping(struct peer *p)
{
    uint8_t bhs[BHS_LEN];
    peer_bhs(p, bhs, OPC_NOP_OUT, true, 0x80);
    peer_send(p, bhs, NULL, 0);
    struct tf_pdu *r = peer_recv_ms(p, 3000);
    bool ok = r && r->bhs[0] == OPC_NOP_IN;
    free(r);
    return ok;
}

static void
ready(struct peer *p)
{
    for (int k = 0; k < 5; k++) {
        uint8_t bhs[BHS_LEN];
        peer_bhs(p, bhs, OPC_SCSI_CMD, false, 0x81);
        put_be32(bhs + 20, 0);
        peer_send(p, bhs, NULL, 0);
        struct tf_pdu *r = peer_expect(p, OPC_SCSI_RSP);
        bool good = r->bhs[3] == SAM_GOOD;
        free(r);
        if (good)
            return;
    }
    CU_FAIL("not ready");
}

static void
waiting_write(struct peer *p)
{
    uint8_t bhs[BHS_LEN];
    peer_bhs(p, bhs, OPC_SCSI_CMD, false, 0xa1);
    put_be32(bhs + 20, 4096);
    tf_rw_cdb(bhs + 32, true, 0, 8);
    peer_send(p, bhs, NULL, 0);
    free(peer_expect(p, OPC_R2T));
}

/* Response code, or -1 when there was another answer (a Reject). */
static int
logout(struct peer *p, uint8_t reason, uint16_t cid, bool immediate)
{
    uint8_t bhs[BHS_LEN];
    peer_bhs(p, bhs, OPC_LOGOUT_REQ, immediate, (uint8_t)(0x80 | reason));
    put_be32(bhs + 20, (uint32_t)cid << 16);
    peer_send(p, bhs, NULL, 0);
    struct tf_pdu *r = peer_recv_ms(p, 3000);
    int response = r && r->bhs[0] == OPC_LOGOUT_RSP ? r->bhs[2] : -1;
    free(r);
    return response;
}

#define TARGET "iqn.2026-01.example:target"

/* --- tests
 * ---------------------------------------------------------------------------------------- */

static void
test_login_and_placement(void)
{
    struct peer p[8] = {{0}};
    open_all(NULL);
    for (uint8_t k = 0; k < 8; k++) { /* all accepted by worker 0; half of them move */
        p[k].isid = k;
        p[k].target = TARGET;
        CU_ASSERT_EQUAL(peer_login(&p[k], 0), LS_OK);
        CU_ASSERT_EQUAL(p[k].cmd_sn, 10);
        ready(&p[k]);
        for (uint8_t m = 0; m < k; m++)
            CU_ASSERT_NOT_EQUAL(p[m].tsih, p[k].tsih);
    }
    CU_ASSERT_EQUAL(registry_count(), 8);
    CU_ASSERT_EQUAL(half_count(), 0);
    for (unsigned k = 0; k < 8; k++) {
        CU_ASSERT_TRUE(ping(&p[k]));
        close(p[k].fd);
    }
    close_all();
}

static void
test_affine(void)
{
    struct peer p[4] = {{0}};
    tgt_opts.affine = true;
    open_all(NULL);
    for (uint8_t k = 0; k < 4; k++) {
        p[k].isid = k;
        p[k].target = TARGET;
        CU_ASSERT_EQUAL(peer_login(&p[k], k & 1), LS_OK);
        ready(&p[k]);
    }
    for (unsigned k = 0; k < 4; k++)
        close(p[k].fd);
    close_all();
    tgt_opts.affine = false;
}

static void
test_logout(void)
{
    struct peer p = {.target = TARGET, .cid = 3};
    open_all(NULL);
    CU_ASSERT_EQUAL(peer_login(&p, 0), LS_OK);
    ready(&p);
    CU_ASSERT_EQUAL(logout(&p, 1, 77, true), 1); /* CID not found */
    CU_ASSERT_EQUAL(logout(&p, 2, 3, true), 2);  /* no recovery */
    CU_ASSERT_EQUAL(logout(&p, 9, 3, true), -1); /* no such reason */
    CU_ASSERT_TRUE(ping(&p));
    waiting_write(&p);
    CU_ASSERT_EQUAL(logout(&p, 0, 0, true), 0); /* the write is never answered */
    CU_ASSERT_TRUE(is_closed(&p));
    close(p.fd);
    CU_ASSERT_EQUAL(peer_login(&p, 0), LS_NO_SESSION); /* its TSIH is gone */
    CU_ASSERT_TRUE(is_closed(&p));
    close(p.fd);
    /* close the connection, in turn */
    p.tsih = 0;
    CU_ASSERT_EQUAL(peer_login(&p, 1), LS_OK);
    uint8_t bhs[BHS_LEN];
    peer_bhs(&p, bhs, OPC_LOGOUT_REQ, false, 0x81);
    put_be32(bhs + 20, 3u << 16);
    put_be32(bhs + 24, p.cmd_sn); /* one number too early */
    peer_send(&p, bhs, NULL, 0);
    CU_ASSERT_TRUE(is_quiet(&p));
    p.cmd_sn--;
    peer_bhs(&p, bhs, OPC_SCSI_CMD, false, 0x81);
    put_be32(bhs + 20, 0);
    peer_send(&p, bhs, NULL, 0);
    struct tf_pdu *r = peer_expect(&p, OPC_LOGOUT_RSP); /* the command ends without a word */
    CU_ASSERT_EQUAL(r->bhs[2], 0);
    free(r);
    CU_ASSERT_TRUE(is_closed(&p));
    close(p.fd);
    close_all();
}

static void
test_reinstatement(void)
{
    struct peer a = {.target = TARGET, .cid = 1}, b, other = {.target = TARGET, .isid = 9};
    open_all(NULL);
    CU_ASSERT_EQUAL(peer_login(&other, 1), LS_OK);
    CU_ASSERT_EQUAL(peer_login(&a, 0), LS_OK);
    ready(&a);
    waiting_write(&a);
    b = a;
    b.tsih = 0;
    CU_ASSERT_EQUAL(peer_login(&b, 1), LS_OK); /* same name and ISID, TSIH 0 */
    CU_ASSERT_NOT_EQUAL(b.tsih, a.tsih);
    CU_ASSERT_TRUE(is_closed(&a));
    ready(&b);
    CU_ASSERT_TRUE(ping(&other));
    /* another initiator name with that ISID is another session */
    struct peer c = {.target = TARGET, .initiator = "iqn.2026-01.example:other"};
    CU_ASSERT_EQUAL(peer_login(&c, 0), LS_OK);
    CU_ASSERT_TRUE(ping(&b));
    /* a failed login does no harm, nor does a discovery session */
    struct peer d = {.target = "iqn.2026-01.example:none"}, e = {.target = NULL};
    CU_ASSERT_EQUAL(peer_login(&d, 0), LS_NOT_FOUND);
    CU_ASSERT_EQUAL(peer_login(&e, 0), LS_OK);
    CU_ASSERT_TRUE(ping(&b));
    close(a.fd);
    close(b.fd);
    close(c.fd);
    close(d.fd);
    close(e.fd);
    close(other.fd);
    close_all();
}

static void
test_connection_reinstatement(void)
{
    struct peer a = {.target = TARGET, .cid = 3}, b;
    open_all(NULL);
    CU_ASSERT_EQUAL(peer_login(&a, 0), LS_OK);
    ready(&a);
    waiting_write(&a);
    b = a; /* same TSIH and CID */
    uint16_t tsih = a.tsih;
    CU_ASSERT_EQUAL(peer_login(&b, 1), LS_OK);
    CU_ASSERT_EQUAL(b.tsih, tsih);
    CU_ASSERT_TRUE(is_closed(&a));
    CU_ASSERT_TRUE(ping(&b));
    ready(&b);
    /* another CID: one connection is the most; the first is unharmed */
    struct peer c = b;
    c.cid = 4;
    CU_ASSERT_EQUAL(peer_login(&c, 0), LS_TOO_MANY_CONNS);
    CU_ASSERT_TRUE(ping(&b));
    /* the TSIH with another ISID, and one that is nobody's */
    struct peer d = b;
    d.isid = 99;
    CU_ASSERT_EQUAL(peer_login(&d, 0), LS_NO_SESSION);
    struct peer e = {.target = TARGET, .tsih = 0x7abc};
    CU_ASSERT_EQUAL(peer_login(&e, 0), LS_NO_SESSION);
    CU_ASSERT_TRUE(ping(&b));
    close(a.fd);
    close(b.fd);
    close(c.fd);
    close(d.fd);
    close(e.fd);
    close_all();
}

/* Logins of one initiator port at the same time: one session is left, and it works. */
static void
test_race(void)
{
    struct peer p[12];
    open_all(NULL);
    for (int round = 0; round < 5; round++) {
        unsigned alive = 0;
        for (unsigned k = 0; k < 12; k++) {
            p[k] = (struct peer){
                .target = TARGET, .initiator = "iqn.2026-01.example:initiator", .itt = 1};
            peer_connect(&p[k], k & 1);
            login_send(&p[k]);
        }
        usleep(100000);
        for (unsigned k = 0; k < 12; k++) {
            struct tf_pdu *r = peer_recv_ms(&p[k], 500);
            if (r && get_be16(r->bhs + 36) == LS_OK) {
                p[k].cmd_sn = get_be32(r->bhs + 28);
                alive += ping(&p[k]);
            }
            free(r);
        }
        CU_ASSERT_EQUAL(alive, 1);
        CU_ASSERT_EQUAL(registry_count(), 1);
        for (unsigned k = 0; k < 12; k++)
            close(p[k].fd);
        for (int k = 0; k < 1000 && registry_count() > 0; k++)
            usleep(1000);
        CU_ASSERT_EQUAL(registry_count(), 0);
    }
    close_all();
}

static void
test_session_limit(void)
{
    struct peer p[4] = {{0}};
    tgt_opts.max_sessions = 3;
    open_all(NULL);
    for (uint8_t k = 0; k < 4; k++) {
        p[k].isid = k;
        p[k].target = TARGET;
        CU_ASSERT_EQUAL(peer_login(&p[k], k & 1), k < 3 ? LS_OK : LS_NO_RESOURCES);
    }
    struct peer again = {.target = TARGET, .isid = 1}; /* reinstatement needs no more room */
    CU_ASSERT_EQUAL(peer_login(&again, 0), LS_OK);
    for (unsigned k = 0; k < 4; k++)
        close(p[k].fd);
    close(again.fd);
    close_all();
    tgt_opts.max_sessions = 4096;
}

static void
test_discovery(void)
{
    struct peer p = {.target = NULL};
    uint8_t bhs[BHS_LEN];
    open_all(NULL);
    CU_ASSERT_EQUAL(peer_login(&p, 0), LS_OK);
    static const uint8_t refused[] = {OPC_SCSI_CMD, OPC_NOP_OUT, OPC_TMF_REQ, OPC_DATA_OUT};
    for (unsigned k = 0; k < sizeof refused; k++) {
        peer_bhs(&p, bhs, refused[k], true, 0x81);
        peer_send(&p, bhs, NULL, 0);
        struct tf_pdu *r = peer_expect(&p, OPC_REJECT);
        CU_ASSERT_EQUAL(r->bhs[2], REJ_PROTOCOL);
        free(r);
    }
    peer_bhs(&p, bhs, OPC_TEXT_REQ, false, 0x80);
    peer_send(&p, bhs, "SendTargets=All", 16);
    struct tf_pdu *r = peer_expect(&p, OPC_TEXT_RSP);
    CU_ASSERT_TRUE(r->len > 11 && memcmp(r->data, "TargetName=", 11) == 0);
    free(r);
    CU_ASSERT_EQUAL(logout(&p, 2, 0, true), 2);
    CU_ASSERT_EQUAL(logout(&p, 0, 0, true), 0);
    CU_ASSERT_TRUE(is_closed(&p));
    close(p.fd);
    close_all();
}

/* Sessions die with commands at a slow backend; nobody waits for it. */
static void
test_orphans(void)
{
    struct peer p = {.target = TARGET};
    uint8_t bhs[BHS_LEN];
    open_all("delay:ms=300");
    for (int k = 0; k < 4; k++) {
        p.tsih = 0;
        CU_ASSERT_EQUAL(peer_login(&p, k & 1), LS_OK);
        ready(&p);
        for (int m = 0; m < 8; m++) {
            peer_bhs(&p, bhs, OPC_SCSI_CMD, false, 0xc1);
            put_be32(bhs + 20, 65536);
            tf_rw_cdb(bhs + 32, false, 0, 128);
            peer_send(&p, bhs, NULL, 0);
        }
        uint64_t t0 = clock_ms();
        CU_ASSERT_TRUE(ping(&p)); /* answered beside the slow reads */
        CU_ASSERT_TRUE(clock_ms() - t0 < 200);
        if (k & 1)
            close(p.fd); /* else reinstated */
    }
    close_all();
}

static void
test_node_changes(void)
{
    struct peer p = {.target = TARGET};
    open_all(NULL);
    CU_ASSERT_EQUAL(peer_login(&p, 0), LS_OK);
    ready(&p);
    /* a map of other units: the session lives, REPORTED LUNS DATA HAS CHANGED */
    struct tgt_node *n = new_node(32);
    lun_map_put(n->map);
    n->map = lun_map_new((struct lun_map_entry[]){{0, f.lun}, {1, f.lun}}, 2);
    publish(n);
    uint8_t bhs[BHS_LEN];
    peer_bhs(&p, bhs, OPC_SCSI_CMD, false, 0x81);
    put_be32(bhs + 20, 0);
    peer_send(&p, bhs, NULL, 0);
    struct tf_pdu *r = peer_expect(&p, OPC_SCSI_RSP);
    CU_ASSERT_TRUE(r->len > 15 && get_be16(r->data + 14) == 0x3f0e);
    free(r);
    ready(&p);
    node_put(n);
    /* removed: the initiator is told that the session is dropped, then it is */
    publish(NULL);
    r = peer_expect(&p, OPC_ASYNC);
    CU_ASSERT_EQUAL(r->bhs[36], 3);
    free(r);
    CU_ASSERT_TRUE(is_closed(&p));
    close(p.fd);
    close_all();
}

/* A login that began before CHAP was demanded does not end without it, and what it would have taken
 * the place of goes on; sessions that stand stay. */
static void
test_accounts_change(void)
{
    struct peer a = {.target = TARGET}, b = {.target = TARGET, .initiator = NULL};
    char text[600], err[100];
    open_all(NULL);
    CU_ASSERT_EQUAL(peer_login(&a, 0), LS_OK);
    b.initiator = a.initiator;
    peer_connect(&b, 1);
    login_step(&b, 0x04, text, login_text(&b, text, sizeof text)); /* no T: not yet */
    free(peer_expect(&b, OPC_LOGIN_RSP));
    struct secret *secret = secret_new("sixteen bytes...", 16);
    struct account *acc = account_new("user", secret, NULL, err, sizeof err);
    struct tgt_node *n = new_node(32);
    n->accounts = account_set_new(&acc, 1, NULL, CHAP_ALG_ALL, false);
    publish(n);
    login_step(&b, 0x87, NULL, 0);
    CU_ASSERT_EQUAL(login_answer(&b), LS_AUTH_FAILURE);
    CU_ASSERT_TRUE(is_closed(&b));
    CU_ASSERT_TRUE(ping(&a));
    node_put(n);
    account_put(acc);
    secret_put(secret);
    close(a.fd);
    close(b.fd);
    close_all();
}

static void
test_pings(void)
{
    struct peer p = {.target = TARGET};
    tgt_opts.nop_interval_s = 1;
    tgt_opts.nop_count = 2;
    open_all(NULL);
    CU_ASSERT_EQUAL(peer_login(&p, 0), LS_OK);
    ready(&p);
    struct tf_pdu *r = peer_expect(&p, OPC_NOP_IN);
    CU_ASSERT_EQUAL(get_be32(r->bhs + 16), TAG_RESERVED);
    CU_ASSERT_NOT_EQUAL(get_be32(r->bhs + 20), TAG_RESERVED);
    CU_ASSERT_EQUAL(r->len, 0);
    uint32_t stat_sn = get_be32(r->bhs + 24);
    uint8_t bhs[BHS_LEN];
    peer_bhs(&p, bhs, OPC_NOP_OUT, true, 0x80); /* the answer */
    put_be32(bhs + 16, TAG_RESERVED);
    memcpy(bhs + 20, r->bhs + 20, 4);
    peer_send(&p, bhs, NULL, 0);
    free(r);
    r = peer_expect(&p, OPC_NOP_IN);
    CU_ASSERT_EQUAL(get_be32(r->bhs + 24), stat_sn); /* shown, not taken */
    free(r);
    CU_ASSERT_TRUE(is_closed(&p)); /* one more ping, then the end */
    close(p.fd);
    close_all();
    tgt_opts.nop_interval_s = 10;
    tgt_opts.nop_count = 3;
}

static void
test_login_deadline(void)
{
    struct peer p = {.target = TARGET};
    tgt_opts.login_timeout_s = 1;
    open_all(NULL);
    peer_connect(&p, 0);
    for (int k = 0; k < 500 && half_count() == 0; k++)
        usleep(1000);
    CU_ASSERT_EQUAL(half_count(), 1);
    CU_ASSERT_TRUE(is_closed(&p));
    CU_ASSERT_EQUAL(half_count(), 0);
    close(p.fd);
    /* no answer to anything but a login */
    peer_connect(&p, 0);
    uint8_t bhs[BHS_LEN];
    peer_bhs(&p, bhs, OPC_TEXT_REQ, true, 0x80);
    peer_send(&p, bhs, "SendTargets=All", 16);
    CU_ASSERT_PTR_NULL(peer_recv_ms(&p, 1000));
    close(p.fd);
    close_all();
    tgt_opts.login_timeout_s = 15;
}

static void
test_shutdown(void)
{
    struct peer p[3] = {{.target = TARGET}, {.target = TARGET, .isid = 1}, {.target = NULL}};
    bool flag = false;
    tgt_opts.shutdown_s = 1;
    open_all(NULL);
    for (unsigned k = 0; k < 3; k++)
        CU_ASSERT_EQUAL(peer_login(&p[k], k & 1), LS_OK);
    sess_shutdown_all(on_flag_main, &flag);
    for (int k = 0; k < 20; k++) {
        worker_turn(f.w, false);
        usleep(1000);
    }
    struct tf_pdu *r = peer_expect(&p[0], OPC_ASYNC);
    CU_ASSERT_EQUAL(r->bhs[36], 1);
    CU_ASSERT_EQUAL(get_be16(r->bhs + 42), 1);
    free(r);
    CU_ASSERT_EQUAL(logout(&p[0], 0, 0, true), 0); /* one obeys, the other does not */
    wait_flag(&flag);
    for (unsigned k = 0; k < 3; k++) {
        CU_ASSERT_TRUE(is_closed(&p[k]));
        close(p[k].fd);
    }
    close_all();
    tgt_opts.shutdown_s = 5;
}

/* Many come and go in every state. */
static void
test_churn(void)
{
    open_all("delay:ms=1");
    for (int k = 0; k < 150; k++) {
        struct peer p = {.target = TARGET, .isid = (uint8_t)(k % 5)};
        uint8_t bhs[BHS_LEN];
        if (k % 7 == 0) { /* in the middle of login */
            p.itt = 1;
            p.initiator = "iqn.2026-01.example:initiator";
            peer_connect(&p, k & 1);
            login_send(&p);
            close(p.fd);
            continue;
        }
        CU_ASSERT_EQUAL(peer_login(&p, k & 1), LS_OK);
        if (k % 3)
            ready(&p);
        for (int m = 0; m < k % 6; m++) {
            peer_bhs(&p, bhs, OPC_SCSI_CMD, false, 0xc1);
            put_be32(bhs + 20, 1 << 20);
            tf_rw_cdb(bhs + 32, false, 0, 2048);
            peer_send(&p, bhs, NULL, 0);
        }
        if (k % 4 == 1)
            usleep(2000);
        close(p.fd);
    }
    for (int k = 0; k < 2000 && registry_count() > 0; k++)
        usleep(1000);
    CU_ASSERT_EQUAL(registry_count(), 0);
    close_all();
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"login and placement", test_login_and_placement},
        {"affine placement", test_affine},
        {"logout", test_logout},
        {"session reinstatement", test_reinstatement},
        {"connection reinstatement", test_connection_reinstatement},
        {"logins at the same time", test_race},
        {"session limit", test_session_limit},
        {"discovery session", test_discovery},
        {"orphans", test_orphans},
        {"node changes", test_node_changes},
        {"accounts change during a login", test_accounts_change},
        {"pings", test_pings},
        {"login deadline", test_login_deadline},
        {"shutdown", test_shutdown},
        {"churn", test_churn},
    };
    if (helper_pool_start(1, 4) != 0)
        return 1;
    return UNIT_RUN("sess", tests);
}
