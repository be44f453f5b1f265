/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening, closing, settings and numbers of the compressed RAM store; see zram_store.h. */
#include "config.h"

#include "backends/zram_store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/zram_priv.h"
#include "base/clock.h"

/* --- a thread's working memory --------------------------------------------------------------- */

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static bool thread_ok;
static _Thread_local struct zram_thread *mine;

static void
thread_free(void *p)
{
    struct zram_thread *t = p;
    if (t == NULL)
        return;
    zram_codec_ctx_free(t->codec);
    free(t->chunk);
    free(t->out);
    free(t);
    mine = NULL;
}

/* The destructor of a key does not run for the thread that ends the process. */
static void
thread_exit(void)
{
    thread_free(mine);
}

static void
thread_setup(void)
{
    thread_ok = pthread_key_create(&thread_key, thread_free) == 0 && atexit(thread_exit) == 0;
}

static struct zram_thread *
thread_new(void)
{
    static atomic_uint stripes;
    struct zram_thread *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return NULL;
    t->codec = zram_codec_ctx_new();
    t->chunk = malloc(ZRAM_CHUNK_MAX);
    t->out = malloc(zram_codec_bound(ZRAM_CHUNK_MAX));
    t->stripe = atomic_fetch_add(&stripes, 1) % STRIPES;
    if (t->codec != NULL && t->chunk != NULL && t->out != NULL &&
        pthread_setspecific(thread_key, t) == 0)
        return t;
    thread_free(t);
    return NULL;
}

struct zram_thread *
zram_thread_get(void)
{
    if (mine != NULL)
        return mine;
    (void)pthread_once(&thread_once, thread_setup);
    if (thread_ok)
        mine = thread_new();
    return mine;
}

/* --- open, close ----------------------------------------------------------------------------- */

static int
check_opts(const struct zram_store_opts *o, char *err, size_t errsize)
{
    uint32_t chunk = o->chunk_size;
    if (chunk < ZRAM_CHUNK_MIN || chunk > ZRAM_CHUNK_MAX || (chunk & (chunk - 1)) != 0) {
        (void)snprintf(err, errsize, "chunks of %u bytes: they are a power of two from %u to %u",
                       chunk, ZRAM_CHUNK_MIN, ZRAM_CHUNK_MAX);
        return -EINVAL;
    }
    if (o->size == 0 || (o->size - 1) / chunk >= ZRAM_CHUNKS_MAX) {
        (void)snprintf(err, errsize,
                       "a size of %" PRIu64 " bytes: with chunks of %u it is 1 to %" PRIu64,
                       o->size, chunk, ZRAM_CHUNKS_MAX * chunk);
        return -EINVAL;
    }
    if (!zram_codec_is_valid(o->codec)) {
        (void)snprintf(err, errsize, "algorithm %u has no level %d", o->codec.alg, o->codec.level);
        return -EINVAL;
    }
    return 0;
}

static uint64_t
most_memory(uint64_t size)
{
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return size < all ? size : all;
}

static size_t
table_bytes(const struct zram_store *st)
{
    return st->ngroups * GROUP_CHUNKS * sizeof(struct zram_entry);
}

static int
get_memory(struct zram_store *st)
{
    int err = zram_alloc_open(&st->alloc, &st->mem, most_memory(st->size));
    if (err != 0)
        return err;
    st->table = zram_mem_reserve(table_bytes(st), true);
    st->groups = zram_mem_reserve(st->ngroups * sizeof(*st->groups), true);
    return st->table == NULL || st->groups == NULL ? -ENOMEM : 0;
}

int
zram_store_open(const struct zram_store_opts *opts, struct zram_store **out, char *err,
                size_t errsize)
{
    struct zram_store_opts o = *opts;
    if (o.chunk_size == 0)
        o.chunk_size = ZRAM_CHUNK_DEFAULT;
    if (o.codec.alg == ZRAM_ALG_RAW)
        o.codec = ZRAM_CODEC_DEFAULT;
    if (check_opts(&o, err, errsize) != 0)
        return -EINVAL;
    struct zram_store *st = aligned_alloc(_Alignof(struct zram_store), sizeof(*st));
    if (st == NULL) {
        (void)snprintf(err, errsize, "no memory for a store");
        return -ENOMEM;
    }
    memset(st, 0, sizeof(*st));
    st->size = o.size;
    st->chunk = o.chunk_size;
    st->shift = (unsigned)__builtin_ctz(o.chunk_size);
    st->nchunks = (o.size + o.chunk_size - 1) >> st->shift;
    st->ngroups = (st->nchunks + GROUP_CHUNKS - 1) / GROUP_CHUNKS;
    st->opened_ms = clock_ms();
    pthread_mutex_init(&st->step_lock, NULL);
    zram_mem_init(&st->mem, o.mem_limit);
    (void)zram_store_set_codec(st, o.codec);
    if (get_memory(st) != 0) {
        (void)snprintf(err, errsize,
                       "no address space for a store of %" PRIu64
                       " bytes (RLIMIT_AS, or vm.overcommit_memory is 2)",
                       o.size);
        zram_store_close(st);
        return -ENOMEM;
    }
    *out = st;
    return 0;
}

void
zram_store_close(struct zram_store *st)
{
    if (st == NULL)
        return;
    if (st->alloc.mem != NULL)
        zram_alloc_close(&st->alloc);
    zram_mem_give(&st->mem, atomic_load(&st->touched) * ZRAM_PAGE);
    zram_mem_release(st->table, table_bytes(st));
    zram_mem_release(st->groups, st->ngroups * sizeof(*st->groups));
    pthread_mutex_destroy(&st->step_lock);
    free(st);
}

/* --- settings -------------------------------------------------------------------------------- */

uint64_t
zram_store_size(const struct zram_store *st)
{
    return st->size;
}

uint32_t
zram_store_chunk_size(const struct zram_store *st)
{
    return st->chunk;
}

int
zram_store_set_codec(struct zram_store *st, struct zram_codec c)
{
    if (!zram_codec_is_valid(c))
        return -EINVAL;
    atomic_store(&st->codec, c.alg | (unsigned)(uint8_t)c.level << 8);
    return 0;
}

struct zram_codec
zram_store_codec(const struct zram_store *st)
{
    return zram_codec_now(st);
}

void
zram_store_set_limit(struct zram_store *st, uint64_t bytes)
{
    atomic_store(&st->mem.limit, bytes);
}

uint32_t
zram_now_s(const struct zram_store *st)
{
    uint64_t s = (clock_ms() - st->opened_ms) / 1000;
    return s < HI_AGE ? (uint32_t)s : HI_AGE; /* after half a year nothing ages any more */
}

/* --- numbers --------------------------------------------------------------------------------- */

static uint64_t
sum(const struct zram_store *st, unsigned what)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < STRIPES; i++)
        n += atomic_load_explicit(&st->stripes[i].n[what], memory_order_relaxed);
    /* While others write, what came may be missed and what went be seen. */
    return n > UINT64_MAX / 2 ? 0 : n;
}

void
zram_store_stats(struct zram_store *st, struct zram_stats *out)
{
    memset(out, 0, sizeof(*out));
    for (unsigned i = 0; i < ZRAM_ALG_COUNT; i++) {
        out->by_alg[i] = sum(st, ZC_OBJECTS + i);
        out->bytes_alg[i] = sum(st, ZC_BYTES + i);
        out->objects += out->by_alg[i];
        out->compr_data_size += out->bytes_alg[i];
    }
    out->same_pages = sum(st, ZC_SAME);
    out->orig_data_size = (out->objects + out->same_pages) * st->chunk;
    out->huge_pages = out->by_alg[ZRAM_ALG_RAW];
    out->huge_pages_since = sum(st, ZC_HUGE_SINCE);
    out->mem_used_total = atomic_load(&st->mem.used);
    out->mem_used_max = atomic_load(&st->mem.max);
    out->mem_limit = atomic_load(&st->mem.limit);
    out->pages_compacted = sum(st, ZC_PAGES_COMPACTED);
    out->failed_reads = sum(st, ZC_FAILED_READS);
    out->failed_writes = sum(st, ZC_FAILED_WRITES);
    out->invalid_io = sum(st, ZC_INVALID);
    out->notify_free = sum(st, ZC_NOTIFY_FREE);
    out->no_space = sum(st, ZC_NO_SPACE);
    out->table_bytes = atomic_load(&st->touched) * ZRAM_PAGE;
    out->moved = sum(st, ZC_MOVED);
    out->recompressed = sum(st, ZC_RECOMPRESSED);
}

void
zram_store_reset_max(struct zram_store *st)
{
    zram_mem_reset_max(&st->mem);
}

static void
usage_add(const struct zram_store *st, uint64_t no, struct zram_usage *u)
{
    uint64_t w = zram_entry_peek(&st->table[no]);
    switch (word_kind(w)) {
    case ZRAM_EMPTY:
        u->unmapped++;
        return;
    case ZRAM_ZERO:
    case ZRAM_FILL:
        u->same++;
        return;
    case ZRAM_OBJECT:
        break;
    }
    if (word_alg(w) == ZRAM_ALG_RAW)
        u->huge++;
    else
        u->compressed++;
    u->bytes += word_size(w);
}

void
zram_store_usage(struct zram_store *st, uint64_t offset, uint64_t len, struct zram_usage *out)
{
    memset(out, 0, sizeof(*out));
    uint64_t no = offset >> st->shift, end = (offset + len + st->chunk - 1) >> st->shift;
    end = end < st->nchunks ? end : st->nchunks;
    while (no < end) {
        uint64_t stop = (no / GROUP_CHUNKS + 1) * GROUP_CHUNKS;
        stop = stop < end ? stop : end;
        if (zram_group_used(st, no / GROUP_CHUNKS) == 0)
            out->unmapped += stop - no;
        else
            for (uint64_t i = no; i < stop; i++)
                usage_add(st, i, out);
        no = stop;
    }
}
