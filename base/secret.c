/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Secrets in chunks of slots of one size.  Chunks are never given back: there are few secrets, and
 * a slot that was used once is used again.
 */
#include "config.h"

#include "base/secret.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/pool.h"
#include "base/ref.h"

#define CHUNK_BYTES (64u * 1024)

struct secret {
    struct ref ref;
    struct secret *next_free;
    uint8_t len;
    uint8_t bytes[SECRET_MAX];
};

struct chunk {
    struct chunk *next;
    struct secret slots[];
};

#define PER_CHUNK ((CHUNK_BYTES - sizeof(struct chunk)) / sizeof(struct secret))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct chunk *chunks;
static struct secret *free_slots;
static unsigned in_use;

/* Under the lock. Neither advice is vital: a kernel that does not take it serves as well. */
static void
add_chunk(void)
{
    static bool said;
    struct chunk *c =
        mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED)
        log_abort("no memory for secrets");
    if (madvise(c, CHUNK_BYTES, MADV_DONTDUMP) < 0 && !said)
        log_event(LL_NOTICE, LA_DAEMON, "secrets-dumpable why=\"MADV_DONTDUMP is refused\"");
    if (mlock(c, CHUNK_BYTES) < 0 && !said) {
        log_event(LL_NOTICE, LA_DAEMON,
                  "secrets-not-locked why=\"no right to lock memory (RLIMIT_MEMLOCK)\"");
        said = true;
    }
    c->next = chunks;
    chunks = c;
    for (size_t i = 0; i < PER_CHUNK; i++) {
        c->slots[i].next_free = free_slots;
        free_slots = &c->slots[i];
    }
}

struct secret *
secret_new(const void *p, size_t len)
{
    if (len == 0 || len > SECRET_MAX)
        log_abort("a secret of %zu bytes", len);
    pthread_mutex_lock(&lock);
    if (free_slots == NULL)
        add_chunk();
    struct secret *s = free_slots;
    free_slots = s->next_free;
    in_use++;
    pthread_mutex_unlock(&lock);
    ref_init(&s->ref);
    s->len = (uint8_t)len;
    memcpy(s->bytes, p, len);
    return s;
}

struct secret *
secret_get(struct secret *s)
{
    ref_get(&s->ref);
    return s;
}

void
secret_put(struct secret *s)
{
    if (s == NULL || !ref_put(&s->ref))
        return;
    secret_wipe(s->bytes, sizeof s->bytes);
    s->len = 0;
    pthread_mutex_lock(&lock);
    s->next_free = free_slots;
    free_slots = s;
    in_use--;
    pthread_mutex_unlock(&lock);
}

const uint8_t *
secret_bytes(const struct secret *s)
{
    return s->bytes;
}

size_t
secret_len(const struct secret *s)
{
    return s->len;
}

bool
secret_same(const struct secret *a, const struct secret *b)
{
    unsigned diff = a->len ^ b->len; /* the rest of a slot is zero */
    for (size_t i = 0; i < SECRET_MAX; i++)
        diff |= (unsigned)(a->bytes[i] ^ b->bytes[i]);
    return diff == 0;
}

void
secret_forget_all(void)
{
    for (struct chunk *c = chunks; c != NULL; c = c->next) {
        for (size_t i = 0; i < PER_CHUNK; i++)
            secret_wipe(c->slots[i].bytes, sizeof c->slots[i].bytes);
    }
}

unsigned
secret_count(void)
{
    pthread_mutex_lock(&lock);
    unsigned n = in_use;
    pthread_mutex_unlock(&lock);
    return n;
}

void
secret_wipe(void *p, size_t len)
{
    if (len != 0)
        explicit_bzero(p, len);
}

void
secret_free_text(char *s)
{
    if (s == NULL)
        return;
    secret_wipe(s, strlen(s));
    free(s);
}

const char *
secret_free_words(char *text)
{
    char *at = strstr(text, " near ");
    if (at)
        *at = 0;
    return text;
}
