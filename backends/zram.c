/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compressed memory as a store: the backend contract on zram_store.h.  A request that takes no
 * longer than some ten microseconds is done on the worker, as with files in memory; a larger one
 * goes to the helper pool, so that no loop waits for a compressor.  What is how long is learnt from
 * what requests take: it differs fiftyfold between algorithms, data and machines.
 *
 * Contents live from open to close.  Who works on the store is counted; what close finds at work
 * ends in peace, and the last one has the memory given back by a helper.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend.h"
#include "backends/zram_store.h"
#include "base/clock.h"
#include "base/helper.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/worker.h"

#define INLINE_US    100u             /* what a request may take on the loop */
#define INLINE_BYTES (256u << 10)     /* and never more than this: data may be worse than so far */
#define INLINE_FREE  (4u << 20)       /* of DISCARD and ZERO: 1024 chunks */
#define INLINE_MAP   (64u << 20)      /* of MAP */
#define COMPACT_US   UINT64_C(100000) /* at each probe */
#define ROOM_TIMES   16u
#define ROOM_MIN     (UINT64_C(1) << 40)
#define CLOSED       0x80000000u /* in users: no more come in */

enum { READING, WRITING, WAYS };

struct zram {
    _Atomic(struct zram_store *) st;
    atomic_uint users;         /* requests and others in the store, + CLOSED */
    atomic_uint ps_byte[WAYS]; /* picoseconds a byte takes, as learnt */
    struct helper_lane lane;
    struct backend *be;
    struct zram_codec codec; /* this and the next two: as wanted, under be->lock */
    uint64_t mem_limit, size;
    uint64_t room; /* what size can grow to; from open on */
};

/* --- options --------------------------------------------------------------------------------- */

static int
codec_of(const struct be_opts *o, struct zram_codec *c, char *err, size_t errsize)
{
    const char *name = o->algorithm != NULL ? o->algorithm : zram_codec_name(ZRAM_ALG_LZ4);
    char text[64];
    int min, max, standard;

    if (zram_codec_parse(name, c, err, errsize) < 0)
        return -EINVAL;
    if (o->level == 0)
        return 0;
    zram_codec_levels(c->alg, &min, &max, &standard);
    (void)snprintf(text, sizeof(text), "%s:%u", name, o->level);
    if (o->level <= INT8_MAX && zram_codec_parse(text, c, err, errsize) == 0)
        return 0;
    if (max <= 1)
        (void)snprintf(err, errsize, "%s has no levels", name);
    else
        (void)snprintf(err, errsize, "%s has levels from %d to %d, not %u", name, min > 1 ? min : 1,
                       max, o->level);
    return -EINVAL;
}

static uint32_t
chunk_of(const struct backend *be)
{
    return be->opts.chunk_size != 0 ? be->opts.chunk_size : ZRAM_CHUNK_DEFAULT;
}

static int
judge(struct backend *be, const struct be_opts *o, struct zram_codec *c)
{
    char err[160];
    uint32_t chunk = chunk_of(be);

    if (codec_of(o, c, err, sizeof(err)) < 0) {
        be_set_error(be, "zram: %s", err);
        return -EINVAL;
    }
    if (chunk < ZRAM_CHUNK_MIN || chunk > ZRAM_CHUNK_MAX || (chunk & (chunk - 1)) != 0) {
        be_set_error(be, "zram: chunks have a power of two from %u to %u bytes", ZRAM_CHUNK_MIN,
                     ZRAM_CHUNK_MAX);
        return -EINVAL;
    }
    if (o->null_size / chunk > ZRAM_CHUNKS_MAX) {
        be_set_error(be, "zram: chunks of %" PRIu32 " bytes hold at most %" PRIu64 " TiB", chunk,
                     (ZRAM_CHUNKS_MAX * chunk) >> 40);
        return -EINVAL;
    }
    return 0;
}

static int
zram_configure(struct backend *be, const char *key, const char *value)
{
    struct zram *z = be->priv;
    (void)value;
    if (key != NULL) {
        be_set_error(be, "zram: there is no bsopts '%s'", key);
        return -EINVAL;
    }
    z->mem_limit = be->opts.mem_limit;
    z->size = be->opts.null_size;
    return judge(be, &be->opts, &z->codec);
}

void
be_zram_limit(uint64_t bytes)
{
    static atomic_uint_fast64_t standard;
    uint64_t none = 0;

    (void)atomic_compare_exchange_strong(&standard, &none, zram_process_limit());
    zram_process_set_limit(bytes != 0 ? bytes : atomic_load(&standard));
}

/* --- who is in the store --------------------------------------------------------------------- */

static struct zram_store *
enter(struct zram *z)
{
    unsigned had = atomic_fetch_add_explicit(&z->users, 1, memory_order_acquire);
    return (had & CLOSED) == 0 ? atomic_load_explicit(&z->st, memory_order_acquire) : NULL;
}

/* Gives a store back. It holds nothing of the backend, which may go before. */
struct closer {
    struct helper_job job;
    struct zram_store *st;
};

static void
run_closer(struct helper_job *job)
{
    zram_store_close(container_of(job, struct closer, job)->st);
}

static void
on_closed(struct helper_job *job)
{
    free(container_of(job, struct closer, job));
}

/* After enter, whatever it gave. w: the thread's worker; NULL: it may block. */
static void
leave(struct zram *z, struct worker *w)
{
    if (atomic_fetch_sub_explicit(&z->users, 1, memory_order_acq_rel) - 1 != CLOSED)
        return;
    struct zram_store *st = atomic_exchange(&z->st, NULL);
    if (st == NULL)
        return;
    if (w == NULL) {
        zram_store_close(st);
        return;
    }
    struct closer *c = xcalloc(1, sizeof(*c));
    c->st = st;
    c->job = (struct helper_job){.run = run_closer, .done = on_closed, .w = w};
    helper_submit(&c->job);
}

/* --- open, close, probe: helper threads ------------------------------------------------------ */

static void
zram_init(struct backend *be)
{
    struct zram *z = be->priv;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);

    z->be = be;
    atomic_init(&z->users, CLOSED);
    atomic_init(&z->ps_byte[READING], 500); /* lz4's, until better is known */
    atomic_init(&z->ps_byte[WRITING], 2500);
    helper_lane_init(&z->lane, cpus > 2 ? (unsigned)cpus : 2);
}

static void
fill_info(const struct backend *be, uint64_t size, struct be_info *in)
{
    uint32_t block = be->opts.block_size != 0 ? be->opts.block_size : 512;
    *in = (struct be_info){.size = size - size % block,
                           .block_size = block,
                           .phys_block_size = block > 4096 ? block : 4096,
                           .mem_align = 1,
                           .discard_gran = chunk_of(be),
                           .is_volatile = true,
                           .caps = BE_CAP_MAP | BE_CAP_DISCARD | BE_CAP_ZERO,
                           .kind = "zram"};
}

/* Space for a size that grows: of what is not written only addresses are taken, 4 KiB a MiB. */
static uint64_t
room_for(const struct backend *be, uint64_t size)
{
    uint64_t room = size < ROOM_MIN / ROOM_TIMES ? ROOM_MIN : size * ROOM_TIMES;
    uint64_t most = ZRAM_CHUNKS_MAX * chunk_of(be);
    return room < most ? room : most;
}

static int
zram_open(struct backend *be)
{
    struct zram *z = be->priv;
    struct zram_store *st;
    struct be_info in;
    char err[160] = "", identity[128], codec[32];

    be_set_error(be, "%s", "");
    if (atomic_load(&z->st) != NULL) {
        be_set_error(be, "zram %s: requests of its former life are still under way", be_path(be));
        return -EBUSY;
    }
    pthread_mutex_lock(&be->lock);
    z->room = room_for(be, z->size);
    struct zram_store_opts o = {
        .size = z->room, .chunk_size = chunk_of(be), .codec = z->codec, .mem_limit = z->mem_limit};
    uint64_t size = z->size;
    pthread_mutex_unlock(&be->lock);
    fill_info(be, size, &in);
    if (in.size == 0) {
        be_set_error(be, "zram %s: a size of at least one block is needed", be_path(be));
        return -EINVAL;
    }
    int rc = zram_store_open(&o, &st, err, sizeof(err));
    if (rc < 0) {
        be_set_error(be, "zram %s: %s", be_path(be), err);
        return rc;
    }
    (void)snprintf(identity, sizeof(identity), "zram:%s", be_path(be));
    rc = be_publish(be, &in, identity);
    if (rc < 0) {
        zram_store_close(st);
        return rc;
    }
    /* Counted as somebody inside meanwhile: a look that began before must not be the last one out.
     */
    (void)atomic_fetch_add(&z->users, 1);
    atomic_store_explicit(&z->st, st, memory_order_release);
    atomic_fetch_and_explicit(&z->users, ~CLOSED, memory_order_release);
    leave(z, NULL);
    log_event(LL_NOTICE, LA_BACKEND,
              "volatile name=%s size=%" PRIu64 " algorithm=%s chunk=%" PRIu32
              " why=\"it is empty now, and what is written ends with the daemon\"",
              LOG_ESC(be_path(be)), in.size, zram_codec_show(o.codec, codec, sizeof(codec)),
              o.chunk_size);
    return 0;
}

static void
zram_close(struct backend *be)
{
    struct zram *z = be->priv;
    (void)atomic_fetch_add(&z->users, 1);
    (void)atomic_fetch_or(&z->users, CLOSED);
    leave(z, NULL);
}

static unsigned
zram_probe(struct backend *be)
{
    struct zram *z = be->priv;
    struct zram_store *st = enter(z);
    struct zram_step step = {.work = ZRAM_COMPACT, .max_us = COMPACT_US};

    if (st != NULL && zram_store_wants_compact(st))
        (void)zram_store_step(st, &step);
    leave(z, NULL);
    return 0;
}

static void
zram_destroy(struct backend *be)
{
    struct zram *z = be->priv;
    zram_store_close(atomic_load(&z->st)); /* never closed: it was never shared either */
    helper_lane_fini(&z->lane);
}

/* --- requests -------------------------------------------------------------------------------- */

static unsigned
way_of(const struct io *io)
{
    return io->op == IO_READ ? READING : WRITING;
}

/* Bytes of the chunks that are compressed or decompressed: of those touched in part the whole. */
static uint64_t
work_of(const struct zram *z, const struct io *io)
{
    uint64_t chunk = chunk_of(z->be), end = io->offset + io->len;
    uint64_t from = io->offset & ~(chunk - 1), to = (end + chunk - 1) & ~(chunk - 1);

    if (io->op == IO_READ || io->op == IO_WRITE)
        return to - from;
    unsigned edges = (io->offset != from ? 1u : 0u) + (end != to ? 1u : 0u);
    return edges * chunk; /* the whole ones are only let go */
}

/* Every request moves the estimate by an eighth. Races lose a sample, no more. */
static void
learn(struct zram *z, const struct io *io, uint64_t us)
{
    atomic_uint *est = &z->ps_byte[way_of(io)];
    uint64_t now = us * 1000000 / work_of(z, io);
    uint64_t had = atomic_load_explicit(est, memory_order_relaxed);

    now = now < 10000000 ? now : 10000000; /* somebody else had the processor */
    atomic_store_explicit(est, (unsigned)(had - had / 8 + now / 8), memory_order_relaxed);
}

static bool
is_quick(struct zram *z, const struct io *io)
{
    uint64_t ps = atomic_load_explicit(&z->ps_byte[way_of(io)], memory_order_relaxed);
    return work_of(z, io) <= INLINE_BYTES && work_of(z, io) * ps <= INLINE_US * UINT64_C(1000000);
}

static bool
is_short(struct zram *z, const struct io *io)
{
    switch (io->op) {
    case IO_READ:
    case IO_WRITE:
        return is_quick(z, io);
    case IO_DISCARD:
    case IO_ZERO:
        return io->len <= INLINE_FREE && is_quick(z, io);
    case IO_MAP:
        return io->len <= INLINE_MAP;
    default:
        return true;
    }
}

static int
map(struct zram_store *st, struct io *io)
{
    uint64_t at = io->offset, end = io->offset + io->len;

    for (io->ext_n = 0; at < end && io->ext_n < io->ext_max; io->ext_n++) {
        struct io_extent *e = &io->ext[io->ext_n];
        e->len = zram_store_map(st, at, end - at, &e->mapped);
        at += e->len;
    }
    return 0;
}

static int
move(struct zram *z, struct zram_store *st, struct io *io)
{
    uint64_t done = 0, from = clock_us();
    int res = io->op == IO_READ ? zram_store_read(st, io->offset, io->iov, io->niov, &done)
                                : zram_store_write(st, io->offset, io->iov, io->niov, &done);

    if (res < 0)
        io->fail_offset = io->offset + done;
    else
        learn(z, io, clock_us() - from);
    return res;
}

static int
run(struct zram *z, struct zram_store *st, struct io *io)
{
    switch (io->op) {
    case IO_READ:
    case IO_WRITE:
        return io->len != 0 ? move(z, st, io) : 0;
    case IO_DISCARD:
        return io->len != 0 ? zram_store_discard(st, io->offset, io->len) : 0;
    case IO_ZERO:
        return io->len != 0 ? zram_store_zero(st, io->offset, io->len) : 0;
    case IO_MAP:
        return map(st, io);
    case IO_FLUSH: /* memory is all there is */
        return 0;
    default:
        return -EOPNOTSUPP;
    }
}

static void
run_job(struct helper_job *job)
{
    struct io *io = container_of(job, struct io, job);
    struct zram *z = ((struct backend *)io->lender)->priv;
    io->res = run(z, atomic_load_explicit(&z->st, memory_order_acquire), io);
}

static void
on_job_done(struct helper_job *job)
{
    struct io *io = container_of(job, struct io, job);
    struct zram *z = ((struct backend *)io->lender)->priv;
    io->lender = NULL;
    leave(z, io->w);
    io_complete(io, io->res);
}

static void
zram_submit(struct backend *be, struct io *io)
{
    struct zram *z = be->priv;
    struct zram_store *st = enter(z);

    if (st == NULL || is_short(z, io)) {
        int res = st != NULL ? run(z, st, io) : -ESHUTDOWN;
        leave(z, io->w);
        io_complete_later(io, res);
        return;
    }
    io->lender = be;
    io->job =
        (struct helper_job){.run = run_job, .done = on_job_done, .w = io->w, .lane = &z->lane};
    helper_submit(&io->job);
}

/* What has begun takes milliseconds and is not worth stopping. */
static void
zram_cancel(struct backend *be, struct io *io)
{
    struct zram *z = be->priv;
    if (!helper_cancel(&io->job))
        return;
    io->lender = NULL;
    leave(z, io->w);
    io_complete_later(io, -ECANCELED);
}

/* --- live settings, counters, work ----------------------------------------------------------- */

static int
zram_tune(struct backend *be, const struct be_opts *o)
{
    struct zram *z = be->priv;
    struct zram_codec c;

    if (o->null_size < be_size(be)) {
        be_set_error(be, "zram %s: it only grows", be_path(be));
        return -EINVAL;
    }
    if (judge(be, o, &c) < 0)
        return -EINVAL;
    pthread_mutex_lock(&be->lock);
    uint64_t room = z->room;
    pthread_mutex_unlock(&be->lock);
    if (room != 0 && o->null_size > room) {
        be_set_error(be, "zram %s: it can grow to %" PRIu64 " bytes while it serves", be_path(be),
                     room);
        return -EINVAL;
    }
    struct zram_store *st = enter(z);
    int rc = st != NULL ? zram_store_set_codec(st, c) : 0;
    if (st != NULL && rc == 0)
        zram_store_set_limit(st, o->mem_limit);
    leave(z, NULL);
    if (rc < 0) {
        be_set_error(be, "zram %s: %s", be_path(be), strerror(-rc));
        return rc;
    }
    pthread_mutex_lock(&be->lock);
    z->codec = c;
    z->mem_limit = o->mem_limit;
    z->size = o->null_size;
    pthread_mutex_unlock(&be->lock);
    if (atomic_load(&be->known))
        atomic_store(&be->size, o->null_size - o->null_size % be->info.block_size);
    return 0;
}

static void
tell(const struct zram_stats *s, be_counter_fn *fn, void *arg)
{
    const struct {
        const char *group, *name;
        uint64_t value;
    } all[] = {
        {"mm_stat", "orig_data_size", s->orig_data_size},
        {"mm_stat", "compr_data_size", s->compr_data_size},
        {"mm_stat", "mem_used_total", s->mem_used_total},
        {"mm_stat", "mem_limit", s->mem_limit},
        {"mm_stat", "mem_used_max", s->mem_used_max},
        {"mm_stat", "same_pages", s->same_pages},
        {"mm_stat", "pages_compacted", s->pages_compacted},
        {"mm_stat", "huge_pages", s->huge_pages},
        {"mm_stat", "huge_pages_since", s->huge_pages_since},
        {"io_stat", "failed_reads", s->failed_reads},
        {"io_stat", "failed_writes", s->failed_writes},
        {"io_stat", "invalid_io", s->invalid_io},
        {"io_stat", "notify_free", s->notify_free},
        {"store", "no_space", s->no_space},
        {"store", "table_bytes", s->table_bytes},
        {"store", "objects", s->objects},
        {"store", "moved", s->moved},
        {"store", "recompressed", s->recompressed},
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        fn(arg, all[i].group, all[i].name, all[i].value);
    for (unsigned a = 0; a < ZRAM_ALG_COUNT; a++) {
        fn(arg, "objects_by_algorithm", zram_codec_name(a), s->by_alg[a]);
        fn(arg, "bytes_by_algorithm", zram_codec_name(a), s->bytes_alg[a]);
    }
}

static void
zram_counters(const struct backend *be, be_counter_fn *fn, void *arg)
{
    struct zram *z = be->priv;
    struct zram_stats s;
    struct zram_store *st = enter(z);

    if (st != NULL) {
        zram_store_stats(st, &s);
        tell(&s, fn, arg);
    }
    leave(z, NULL);
}

int
be_zram_work(struct backend *be, struct be_zram_work *work, char *err, size_t errsize)
{
    struct zram_step step = {.work = work->recompress ? ZRAM_RECOMPRESS : ZRAM_COMPACT,
                             .max_us = work->max_ms * UINT64_C(1000),
                             .huge = work->huge,
                             .idle = work->idle || !work->huge,
                             .idle_s = work->idle ? work->idle_s : 0};

    while (be->below != NULL)
        be = be->below;
    if (be->ops != &zram_ops) {
        (void)snprintf(err, errsize, "%s is not in compressed memory", be_path(be));
        return -EINVAL;
    }
    if (work->recompress && zram_codec_parse(work->codec, &step.codec, err, errsize) < 0)
        return -EINVAL;
    struct zram *z = be->priv;
    struct zram_store *st = enter(z);
    int rc = st != NULL ? zram_store_step(st, &step) : -ENXIO;
    leave(z, NULL);
    if (rc < 0)
        (void)snprintf(err, errsize, "%s: %s", be_path(be), strerror(-rc));
    work->again = step.again;
    work->seen = step.seen;
    work->done = step.done;
    work->gained = step.gained > 0 ? (uint64_t)step.gained : 0; /* a level may lose */
    return rc;
}

const struct be_ops zram_ops = {
    .type = "zram",
    .init = zram_init,
    .open = zram_open,
    .close = zram_close,
    .probe = zram_probe,
    .submit = zram_submit,
    .cancel = zram_cancel,
    .configure = zram_configure,
    .destroy = zram_destroy,
    .tune = zram_tune,
    .counters = zram_counters,
    .priv_size = sizeof(struct zram),
};
