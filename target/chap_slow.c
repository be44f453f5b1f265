/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The brake on guessing secrets: remembers who failed lately and says how long the next answer is
 * held back.  It only ever delays, at most tgt_opts.login_delay_ms, and nobody is locked out; the
 * table is of fixed size, so what was least bad is forgotten when many are.  One lock, held
 * for memory operations; used once in a login that proves something.
 */
#include "config.h"

#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "target/chap.h"
#include "target/target.h"

#define SETS      256u
#define WAYS      4u
#define FREE      3u     /* failures that cost nothing: somebody types a secret */
#define FIRST_MS  250u   /* then this, doubled with each one */
#define FORGET_MS 10000u /* one failure is forgotten in that time */
#define FAILS_MAX 20u

struct entry {
    uint64_t key; /* 0: unused */
    uint64_t last_ms;
    uint32_t fails;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry table[SETS][WAYS];
static uint64_t seed;

/* FNV-1a from a random start: a collision makes a stranger wait a moment, no more. */
static uint64_t
hash(uint64_t h, const void *p, size_t n)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3u;
    return h;
}

static uint64_t
start(uint8_t kind)
{
    if (seed == 0 && getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = 0;
    return hash(seed ^ 0xcbf29ce484222325u, &kind, 1);
}

/* IPv6 by its /64: who has one has all of its addresses. */
static uint64_t
peer_key(const struct sockaddr *peer)
{
    uint64_t h = start('p');
    if (peer->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)peer;
        h = hash(h, &in->sin_addr, sizeof in->sin_addr);
    } else if (peer->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)peer;
        bool v4 = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
        h = v4 ? hash(h, in6->sin6_addr.s6_addr + 12, 4) : hash(h, in6->sin6_addr.s6_addr, 8);
    }
    return h | 1;
}

static uint64_t
user_key(const char *target, const char *user)
{
    uint64_t h = hash(start('u'), target, strlen(target) + 1);
    return hash(h, user, strlen(user)) | 1;
}

static uint32_t
fails_now(const struct entry *e, uint64_t now)
{
    uint64_t gone = now > e->last_ms ? (now - e->last_ms) / FORGET_MS : 0;
    return e->fails > gone ? e->fails - (uint32_t)gone : 0;
}

static struct entry *
look(uint64_t key)
{
    struct entry *set = table[(key >> 8) % SETS];
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].key == key)
            return &set[i];
    }
    return NULL;
}

static uint32_t
add_failure(uint64_t key, uint64_t now)
{
    struct entry *set = table[(key >> 8) % SETS], *e = look(key);
    for (unsigned i = 0; e == NULL && i < WAYS; i++)
        e = set[i].key == 0 || fails_now(&set[i], now) == 0 ? &set[i] : NULL;
    if (e == NULL) { /* the least bad makes room: inventing names does not wash an address clean */
        e = &set[0];
        for (unsigned i = 1; i < WAYS; i++) {
            uint32_t a = fails_now(&set[i], now), b = fails_now(e, now);
            e = a < b || (a == b && set[i].last_ms < e->last_ms) ? &set[i] : e;
        }
    }
    uint32_t fails = e->key == key ? fails_now(e, now) + 1 : 1;
    *e = (struct entry){key, now, fails < FAILS_MAX ? fails : FAILS_MAX};
    return e->fails;
}

static unsigned
delay_of(uint32_t fails)
{
    if (fails <= FREE)
        return 0;
    unsigned ms = FIRST_MS, most = tgt_opts.login_delay_ms;
    for (uint32_t i = FREE + 1; i < fails && ms < most; i++)
        ms *= 2;
    return ms < most ? ms : most;
}

unsigned
chap_slow_failed(const struct sockaddr *peer, const char *target, const char *user)
{
    uint64_t now = clock_ms();
    pthread_mutex_lock(&lock);
    uint32_t fails = add_failure(peer_key(peer), now);
    uint32_t named = add_failure(user_key(target, user), now);
    pthread_mutex_unlock(&lock);
    return delay_of(fails > named ? fails : named);
}

unsigned
chap_slow_passed(const struct sockaddr *peer)
{
    uint64_t now = clock_ms();
    pthread_mutex_lock(&lock);
    const struct entry *e = look(peer_key(peer));
    uint32_t fails = e != NULL ? fails_now(e, now) : 0;
    pthread_mutex_unlock(&lock);
    return delay_of(fails);
}

void
chap_slow_reset(void)
{
    pthread_mutex_lock(&lock);
    memset(table, 0, sizeof table);
    pthread_mutex_unlock(&lock);
}
