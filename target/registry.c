/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which sessions there are: (initiator name, ISID, target name, TPGT) -> session, and TSIH ->
 * session; and how many each worker has, for placement.  Used at login and at the end of a
 * session only; any thread, under one lock that is held for memory operations.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/target.h"

#define BUCKETS     1024u
#define MAX_WORKERS 256u

struct registry_entry {
    struct registry_entry *next; /* in its bucket */
    uint64_t hash;
    char initiator[ISCSI_NAME_MAX + 1];
    char target[ISCSI_NAME_MAX + 1];
    uint8_t isid[6];
    uint16_t tpgt;
    uint16_t tsih;
    uint64_t sid;
    struct worker *w;
    bool keyed;  /* in a bucket: the current holder of its key (discovery sessions have none) */
    bool live;   /* the session stands */
    bool doomed; /* somebody took the key before the session stood */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct registry_entry *buckets[BUCKETS];
static struct registry_entry *by_tsih[65536];
static unsigned count, per_worker[MAX_WORKERS];
static uint16_t last_tsih;
static uint64_t last_sid;

static uint64_t
hash_bytes(uint64_t h, const void *p, size_t n) /* FNV-1a */
{
    const uint8_t *b = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ b[i]) * 0x100000001b3ull;
    return h;
}

static uint64_t
hash_key(const struct login_result *res)
{
    uint64_t h = hash_bytes(0xcbf29ce484222325ull, res->initiator, strlen(res->initiator));
    h = hash_bytes(h, res->isid, sizeof res->isid);
    return hash_bytes(h, res->node->name, strlen(res->node->name));
}

static bool
same_key(const struct registry_entry *e, const struct login_result *res)
{
    return memcmp(e->isid, res->isid, sizeof e->isid) == 0 &&
           strcmp(e->initiator, res->initiator) == 0 && res->node &&
           strcmp(e->target, res->node->name) == 0 && e->tpgt == res->tpgt;
}

static struct registry_entry *
find_key(const struct login_result *res, uint64_t h)
{
    struct registry_entry *e = buckets[h % BUCKETS];
    while (e && !(e->hash == h && same_key(e, res)))
        e = e->next;
    return e;
}

static void
unlink_key(struct registry_entry *e)
{
    if (!e->keyed)
        return;
    struct registry_entry **pp = &buckets[e->hash % BUCKETS];
    while (*pp != e)
        pp = &(*pp)->next;
    *pp = e->next;
    e->keyed = false;
}

static unsigned *
load_of(struct worker *w)
{
    return &per_worker[worker_id(w) % MAX_WORKERS];
}

static struct worker *
place(const struct login_result *res, struct worker *here)
{
    unsigned n = worker_count();
    if (!res->node || n == 0)
        return here;
    if (tgt_opts.affine) {
        uint64_t h = hash_bytes(0xcbf29ce484222325ull, res->node->name, strlen(res->node->name));
        return worker_at((unsigned)(h % n));
    }
    struct worker *best = here; /* where there is a choice, no move */
    for (unsigned i = 0; i < n; i++)
        if (*load_of(worker_at(i)) < *load_of(best))
            best = worker_at(i);
    return best;
}

static uint16_t
new_tsih(void)
{
    do
        last_tsih = (uint16_t)(last_tsih + 1);
    while (last_tsih == 0 || by_tsih[last_tsih]);
    return last_tsih;
}

static enum login_status
claim_existing(const struct login_result *res, struct registry_claim *claim)
{
    struct registry_entry *e = by_tsih[res->tsih];
    if (!e || !e->live || !e->keyed || !same_key(e, res))
        return LS_NO_SESSION;
    claim->w = e->w;
    claim->sid = e->sid;
    claim->tsih = e->tsih;
    return LS_OK;
}

static void
fill_entry(struct registry_entry *e, const struct login_result *res, uint64_t h)
{
    memcpy(e->initiator, res->initiator, sizeof e->initiator);
    memcpy(e->isid, res->isid, sizeof e->isid);
    e->hash = h;
    e->tsih = new_tsih();
    e->sid = ++last_sid;
    by_tsih[e->tsih] = e;
    if (!res->node)
        return;
    memcpy(e->target, res->node->name, sizeof e->target);
    e->tpgt = res->tpgt;
    e->next = buckets[h % BUCKETS];
    buckets[h % BUCKETS] = e;
    e->keyed = true;
}

static enum login_status
claim_new(const struct login_result *res, struct worker *here, struct registry_claim *claim)
{
    uint64_t h = res->node ? hash_key(res) : 0;
    struct registry_entry *old = res->node ? find_key(res, h) : NULL;
    unsigned most = tgt_opts.max_sessions;
    if (!old && count >= (most < 65535 ? most : 65535))
        return LS_NO_RESOURCES;
    if (old && count >= 65535)
        return LS_NO_RESOURCES;
    if (old) {
        unlink_key(old);
        old->doomed = !old->live;
        claim->old_w = old->w;
        claim->old_sid = old->sid;
    }
    struct registry_entry *e = xcalloc(1, sizeof *e);
    e->w = place(res, here);
    fill_entry(e, res, h);
    count++;
    ++*load_of(e->w);
    claim->entry = e;
    claim->w = e->w;
    claim->sid = e->sid;
    claim->tsih = e->tsih;
    return LS_OK;
}

enum login_status
registry_claim(const struct login_result *res, struct worker *here, struct registry_claim *claim)
{
    memset(claim, 0, sizeof *claim);
    pthread_mutex_lock(&lock);
    enum login_status st = res->tsih ? claim_existing(res, claim) : claim_new(res, here, claim);
    pthread_mutex_unlock(&lock);
    return st;
}

bool
registry_commit(struct registry_entry *e)
{
    pthread_mutex_lock(&lock);
    bool ok = !e->doomed;
    e->live = ok;
    pthread_mutex_unlock(&lock);
    return ok;
}

void
registry_remove(struct registry_entry *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&lock);
    unlink_key(e);
    by_tsih[e->tsih] = NULL;
    count--;
    --*load_of(e->w);
    pthread_mutex_unlock(&lock);
    free(e);
}

unsigned
registry_count(void)
{
    pthread_mutex_lock(&lock);
    unsigned n = count;
    pthread_mutex_unlock(&lock);
    return n;
}
