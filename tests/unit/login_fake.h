/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What login.c, text.c and discovery.c need of the rest of the room, for tests and fuzzers: a
 * connection without a socket, a set of targets, a sess_establish that does nothing by itself.
 * Include it in one file of a program; it defines the functions of conn.c, rx.c, tx.c, sess.c,
 * node.c that are called.
 */
#ifndef TESTS_UNIT_LOGIN_FAKE_H
#define TESTS_UNIT_LOGIN_FAKE_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/pool.h"
#include "target/keys.h"
#include "target/redirect.h"
#include "target/target.h"

#define FAKE_TSIH 0x1234

struct tgt_opts tgt_opts = {.login_bytes_max = 65536, .max_half_open = 512};

static struct {
    struct worker *w;
    struct conn c;
    struct sess sess;
    struct tgt_node nodes[4];
    struct tgt_node *sorted[4];
    struct node_portal portals[4];
    struct node_set set;
    /* what happened */
    unsigned sent;        /* PDUs */
    uint8_t bhs[BHS_LEN]; /* of the last */
    uint8_t *text;
    uint32_t len;
    bool closed, flushed, established;
    struct login_result res;
    int event;                    /* enum conn_ev, -1: none */
    struct redirect_answer where; /* what redirect_decide says; status 0: here */
    void (*asked)(struct conn *c, const struct redirect_answer *a);
    bool text_due, text_came, paused;
} fake;

void
conn_stamp(struct conn *c, uint8_t bhs[BHS_LEN], bool takes)
{
    put_be32(bhs + 24, takes ? c->stat_sn++ : c->stat_sn);
    if (c->sess != NULL) {
        put_be32(bhs + 28, c->sess->exp_cmd_sn);
        put_be32(bhs + 32, c->sess->max_cmd_sn);
    }
}

void
tx_pdu(struct conn *c, uint8_t bhs[48], const void *data, uint32_t len, void (*release)(void *arg),
       void *arg)
{
    (void)c;
    (void)release;
    (void)arg;
    put_be24(bhs + 5, len);
    memcpy(fake.bhs, bhs, BHS_LEN);
    free(fake.text);
    fake.text = xmalloc(len + 1);
    if (len != 0)
        memcpy(fake.text, data, len);
    fake.len = len;
    fake.sent++;
}

void
conn_close(struct conn *c, const char *why, bool flush)
{
    (void)why;
    c->closing = true;
    fake.closed = true;
    fake.flushed = flush;
}

void
conn_event(struct conn *c, enum conn_ev ev)
{
    (void)c;
    fake.event = (int)ev;
}

void
sess_establish(struct conn *c, const struct login_result *res)
{
    (void)c;
    fake.established = true;
    fake.res = *res;
}

void
redirect_decide(const struct conn *c, const struct tgt_node *n, const char *initiator,
                struct redirect_answer *a)
{
    (void)c;
    (void)n;
    (void)initiator;
    *a = fake.where;
}

bool
redirect_ask(struct conn *c, const struct tgt_node *n, const char *initiator,
             void (*done)(struct conn *c, const struct redirect_answer *a))
{
    (void)c;
    (void)n;
    (void)initiator;
    fake.asked = done;
    return true;
}

void
redirect_forget(struct conn *c)
{
    (void)c;
    fake.asked = NULL;
}

bool
async_text_is_due(const struct conn *c)
{
    (void)c;
    return fake.text_due;
}

void
async_text_came(struct conn *c)
{
    (void)c;
    fake.text_came = true;
}

void
rx_pause(struct conn *c, enum rx_pause why)
{
    (void)c;
    (void)why;
    fake.paused = true;
}

void
rx_resume(struct conn *c, enum rx_pause why)
{
    (void)c;
    (void)why;
    fake.paused = false;
}

/* portal.c and accept.c come along with announce.c. */
void
conn_accept(struct worker *w, int fd, const struct conn_from *from)
{
    (void)w;
    (void)fd;
    (void)from;
}

struct tgt_node *
node_get(struct tgt_node *node)
{
    ref_get(&node->ref);
    return node;
}

void
node_put(struct tgt_node *node)
{
    (void)ref_put(&node->ref);
}

const struct node_set *
node_set_here(void)
{
    return &fake.set;
}

struct tgt_node *
node_find(const struct node_set *set, const char *name)
{
    for (unsigned i = 0; i < set->n; i++) {
        if (strcmp(set->nodes[i]->name, name) == 0)
            return set->nodes[i];
    }
    return NULL;
}

static inline struct sockaddr_storage
fake_addr(const char *host, uint16_t port)
{
    struct sockaddr_storage sa = {0};
    struct sockaddr_in *in = (void *)&sa;
    struct sockaddr_in6 *in6 = (void *)&sa;
    if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
    } else if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
    }
    return sa;
}

static inline struct tgt_node *
fake_node(const char *name, const char *allowed_addr)
{
    const char *const addrs[] = {allowed_addr, NULL};
    char err[128];
    struct tgt_node *node = &fake.nodes[fake.set.n];
    *node = (struct tgt_node){.tid = fake.set.n + 1};
    ref_init(&node->ref);
    (void)snprintf(node->name, sizeof node->name, "%s", name);
    keys_defaults(&node->keys);
    node->acl = acl_new(addrs, NULL, err, sizeof err, NULL, 0);
    fake.sorted[fake.set.n++] = node;
    fake.set.nodes = fake.sorted;
    return node;
}

static inline void
fake_portal(const char *host, uint16_t port)
{
    fake.portals[fake.set.nportals++] =
        (struct node_portal){.addr = fake_addr(host, port), .id.tpgt = 1};
    fake.set.portals = fake.portals;
}

/* A new connection from peer to local; targets stay. */
static inline struct conn *
fake_connect(const char *peer, const char *local)
{
    login_free(&fake.c);
    text_free(&fake.c);
    memset(&fake.c, 0, sizeof fake.c);
    fake.c.w = fake.w;
    fake.c.state = CS_IN_LOGIN;
    fake.c.p.max_xmit = 8192;
    fake.c.stat_sn = 7;
    fake.c.via.tpgt = 1;
    fake.c.peer = fake_addr(peer, 40000);
    fake.c.local = fake_addr(local, 3260);
    (void)portal_text(&fake.c.peer, fake.c.peer_text, sizeof fake.c.peer_text);
    fake.sent = 0;
    fake.closed = fake.flushed = fake.established = false;
    fake.event = -1;
    fake.where = (struct redirect_answer){.why = ""};
    fake.asked = NULL;
    fake.text_due = fake.text_came = fake.paused = false;
    return &fake.c;
}

/* Full feature phase by decree. node NULL: discovery. */
static inline void
fake_session(const char *initiator, struct tgt_node *node)
{
    memset(&fake.sess, 0, sizeof fake.sess);
    fake.sess.w = fake.w;
    fake.sess.node = node;
    fake.sess.discovery = node == NULL;
    fake.sess.tsih = FAKE_TSIH;
    fake.sess.exp_cmd_sn = 100;
    fake.sess.max_cmd_sn = 227;
    (void)snprintf(fake.sess.initiator, sizeof fake.sess.initiator, "%s", initiator);
    fake.c.sess = &fake.sess;
    fake.c.state = CS_LOGGED_IN;
}

static inline void
fake_begin(void)
{
    static const struct worker_opts opts = {.engine = ENGINE_POOL};
    fake.w = worker_new_local(&opts);
}

static inline void
fake_end(void)
{
    login_free(&fake.c);
    text_free(&fake.c);
    for (unsigned i = 0; i < fake.set.n; i++)
        acl_put(fake.nodes[i].acl);
    free(fake.text);
    worker_free_local(fake.w);
}

/* Value of a key in the last PDU's text, or NULL. */
static inline const char *
fake_value(const char *key)
{
    size_t klen = strlen(key);
    for (uint32_t i = 0; i < fake.len;) {
        const char *pair = (const char *)fake.text + i;
        size_t left = fake.len - i, plen = strnlen(pair, left);
        if (plen == left)
            return NULL;
        if (plen > klen && strncmp(pair, key, klen) == 0 && pair[klen] == '=')
            return pair + klen + 1;
        i += (uint32_t)plen + 1;
    }
    return NULL;
}

#endif
