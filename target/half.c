/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that have not logged in yet, counted by the address of the peer.  Made by accept.c on
 * main, left by conn.c on the connection's worker; one lock, held for a few memory operations at
 * the start and the end of a login.
 *
 * Peers that never log in must not keep out those that do, whoever they are.  So there is a limit
 * for all and one for each address; the newcomer at a limit takes the place of the oldest: of its
 * own address at the address's limit, of the address that has the most at the limit for all.  An
 * IPv6 address counts as its /64, of which one host may have all.
 */
#include "config.h"

#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/counter.h"
#include "base/pool.h"
#include "target/target.h"

#define BUCKETS    1024u
#define LEVELS_MAX 65537u /* connections of one address: max-half-open goes to 65536 */

struct key {
    uint8_t len; /* 4, 8; 0: neither IPv4 nor IPv6 */
    uint8_t b[8];
};

struct half_addr {
    struct list bucket;
    struct list level;  /* among those that have as many */
    struct list halves; /* oldest first */
    unsigned n;
    struct key key;
};

struct half {
    struct list link;
    struct half_addr *addr; /* NULL: it has lost its place */
    struct worker *w;
    struct conn *conn; /* set and cleared on w */
    unsigned refs;     /* its connection, a message on its way */
};

static struct {
    pthread_mutex_t lock;
    struct list buckets[BUCKETS];
    struct list levels[LEVELS_MAX + 1]; /* addresses by number of connections */
    unsigned nlevels;                   /* of them are set up */
    unsigned top;                       /* none above has an address */
    unsigned counted, alive;            /* in their places; all, until their connection is closed */
} hf = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct key
key_of(const struct sockaddr_storage *sa)
{
    struct key k = {.len = 0};
    if (sa->ss_family == AF_INET) {
        k.len = 4;
        memcpy(k.b, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
    } else if (sa->ss_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
        bool mapped = IN6_IS_ADDR_V4MAPPED(a);
        k.len = mapped ? 4 : 8;
        memcpy(k.b, a->s6_addr + (mapped ? 12 : 0), k.len);
    }
    return k;
}

bool
half_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    struct key k = key_of(a), l = key_of(b);
    return memcmp(&k, &l, sizeof k) == 0;
}

static struct list *
bucket_of(const struct key *k)
{
    uint32_t h = 2166136261u ^ k->len; /* FNV-1a */
    for (unsigned i = 0; i < k->len; i++)
        h = (h ^ k->b[i]) * 16777619u;
    struct list *l = &hf.buckets[(h ^ h >> 16) % BUCKETS];
    if (l->next == NULL)
        list_init(l);
    return l;
}

/* --- under the lock -------------------------------------------------------------------------- */

static void
set_level(struct half_addr *a, unsigned n)
{
    assert(n < LEVELS_MAX);
    while (hf.nlevels <= n)
        list_init(&hf.levels[hf.nlevels++]);
    list_del(&a->level);
    a->n = n;
    if (n > 0)
        list_add_tail(&hf.levels[n], &a->level);
    if (n > hf.top)
        hf.top = n;
    while (hf.top > 0 && list_is_empty(&hf.levels[hf.top]))
        hf.top--;
}

static struct half_addr *
find_addr(const struct key *k)
{
    struct list *bucket = bucket_of(k);
    list_each(it, bucket) {
        struct half_addr *a = container_of(it, struct half_addr, bucket);
        if (memcmp(&a->key, k, sizeof *k) == 0)
            return a;
    }
    struct half_addr *a = xcalloc(1, sizeof *a);
    a->key = *k;
    list_init(&a->level);
    list_init(&a->halves);
    list_add_tail(bucket, &a->bucket);
    return a;
}

static void
lose_place(struct half *h)
{
    struct half_addr *a = h->addr;
    list_del(&h->link);
    h->addr = NULL;
    hf.counted--;
    set_level(a, a->n - 1);
    if (a->n == 0) {
        list_del(&a->bucket);
        free(a);
    }
}

static void
put(struct half *h)
{
    if (--h->refs > 0)
        return;
    hf.alive--;
    free(h);
}

static struct half *
oldest_of(struct half_addr *a)
{
    return list_first(&a->halves, struct half, link);
}

/* Who makes room for one more of this address; NULL: there is room. */
static struct half *
find_victim(struct half_addr *a)
{
    unsigned share = tgt_opts.max_half_open_per_addr;
    if (share == 0)
        share = (tgt_opts.max_half_open + 1) / 2;
    if (a->n >= share)
        return oldest_of(a);
    if (hf.counted < tgt_opts.max_half_open || hf.top == 0)
        return NULL;
    return oldest_of(list_first(&hf.levels[hf.top], struct half_addr, level));
}

/* --- at its worker --------------------------------------------------------------------------- */

static void
on_evicted(struct worker *w, void *arg)
{
    static _Thread_local struct log_rate rate;
    struct half *h = arg;
    uint32_t suppressed = 0;

    (void)pthread_mutex_lock(&hf.lock);
    struct conn *c = h->conn; /* NULL: not made yet, logged in meanwhile, or closed */
    put(h);
    (void)pthread_mutex_unlock(&hf.lock);
    worker_assert_owner(w);
    if (c == NULL || c->closing)
        return;
    if (log_rate_ok(&rate, &suppressed))
        log_event(LL_WARN, LA_NET,
                  "conn-dropped peer=%s why=\"too many before login\" suppressed=%u", c->peer_text,
                  (unsigned)suppressed);
    counter_add(CT_CONN_REFUSED, 1);
    conn_close(c, "too many before login", false);
}

/* --- for accept.c and conn.c ----------------------------------------------------------------- */

struct half *
half_new(const struct sockaddr_storage *peer, struct worker *w)
{
    struct key k = key_of(peer);
    struct half *h = NULL, *victim = NULL;

    (void)pthread_mutex_lock(&hf.lock);
    /* what lost its place is closed by its worker; should that not keep up, here is the end */
    if (hf.alive < 2 * tgt_opts.max_half_open) {
        struct half_addr *a = find_addr(&k);
        h = xcalloc(1, sizeof *h);
        *h = (struct half){.addr = a, .w = w, .refs = 1};
        victim = find_victim(a);
        list_add_tail(&a->halves, &h->link);
        set_level(a, a->n + 1);
        hf.counted++;
        hf.alive++;
        if (victim != NULL) {
            victim->refs++;
            lose_place(victim);
        }
    }
    (void)pthread_mutex_unlock(&hf.lock);
    if (victim != NULL)
        worker_post(victim->w, on_evicted, victim);
    return h;
}

bool
half_enter(struct half *h, struct conn *c)
{
    worker_assert_owner(h->w);
    (void)pthread_mutex_lock(&hf.lock);
    bool has_place = h->addr != NULL;
    if (has_place)
        h->conn = c;
    (void)pthread_mutex_unlock(&hf.lock);
    return has_place;
}

void
half_leave(struct half *h)
{
    if (h == NULL)
        return;
    (void)pthread_mutex_lock(&hf.lock);
    h->conn = NULL;
    if (h->addr != NULL)
        lose_place(h);
    put(h);
    (void)pthread_mutex_unlock(&hf.lock);
}

unsigned
half_count(void)
{
    (void)pthread_mutex_lock(&hf.lock);
    unsigned n = hf.counted;
    (void)pthread_mutex_unlock(&hf.lock);
    return n;
}
