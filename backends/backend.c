/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wrapper round every backend: makes the stack of layers and store, guards each call once
 * (state, range, rights, the sticky flush error) so that stores stay simple, and ends requests.
 * Called by LUNs: be_submit and what follows on the workers, open/close/probe on helper threads.
 */
#include "config.h"

#include "backends/backend.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/pool.h"
#include "base/worker.h"

static const struct {
    const char *name;
    const struct be_ops *ops;
} types[] = {
    {"fileio", &file_ops}, {"rdwr", &file_ops},   {"aio", &file_ops},  {"blockio", &block_ops},
    {"null", &null_ops},   {"nullio", &null_ops}, {"zram", &zram_ops},
};

static const struct be_ops *const layers[] = {
    &layer_error_ops,
    &layer_delay_ops,
    &layer_trace_ops,
    &layer_record_ops,
};

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* --- making and dropping the stack ----------------------------------------------------------- */

static char *
dup_or_null(const char *s)
{
    return s != NULL ? xstrdup(s) : NULL;
}

static struct backend *
level_new(const struct be_ops *ops, const struct be_opts *opts, struct backend *below)
{
    struct backend *be = xcalloc(1, sizeof(*be));
    be->ops = ops;
    ref_init(&be->ref);
    be->below = below;
    be->opts = *opts;
    be->opts.type = dup_or_null(opts->type);
    be->opts.path = dup_or_null(opts->path);
    be->opts.bsopts = dup_or_null(opts->bsopts);
    be->opts.layers = dup_or_null(opts->layers);
    be->opts.algorithm = dup_or_null(opts->algorithm);
    atomic_init(&be->state, BE_CLOSED);
    atomic_init(&be->write_cache, opts->write_cache);
    pthread_mutex_init(&be->op_lock, NULL);
    pthread_mutex_init(&be->lock, NULL);
    be->priv = xcalloc(1, ops->priv_size);
    if (ops->init != NULL)
        ops->init(be);
    return be;
}

static void
level_free(struct backend *be)
{
    be->ops->destroy(be);
    free((char *)be->opts.type);
    free((char *)be->opts.path);
    free((char *)be->opts.bsopts);
    free((char *)be->opts.layers);
    free((char *)be->opts.algorithm);
    free(be->identity);
    free(be->priv);
    pthread_mutex_destroy(&be->op_lock);
    pthread_mutex_destroy(&be->lock);
    free(be);
}

static void
stack_free(struct backend *be)
{
    while (be != NULL) {
        struct backend *below = be->below;
        level_free(be);
        be = below;
    }
}

static int
configure_one(struct backend *be, const char *key, const char *value)
{
    int err = be->ops->configure(be, key, value);
    if (err != 0 && be->error[0] == '\0')
        be_set_error(be, "%s: option '%s' is not understood", be->ops->type, key ? key : "");
    return err;
}

/* `text` is cut up: "k=v<sep>k=v"; a word without '=' after the first belongs to the value before
 * it when sep is a comma, so that op=read,write is one option. */
static int
configure_all(struct backend *be, char *text, char sep)
{
    char *p = text;
    while (p != NULL && *p != '\0') {
        char *end = strchr(p, sep);
        while (end != NULL && sep == ',') {
            char *next_sep = strchr(end + 1, sep);
            char *eq = strchr(end + 1, '=');
            if (eq != NULL && (next_sep == NULL || eq < next_sep))
                break;
            end = next_sep;
        }
        if (end != NULL)
            *end = '\0';
        char *eq = strchr(p, '=');
        if (eq == NULL) {
            be_set_error(be, "%s: '%s' is not of the form key=value", be->ops->type, p);
            return -EINVAL;
        }
        *eq = '\0';
        int err = configure_one(be, p, eq + 1);
        if (err != 0)
            return err;
        p = end != NULL ? end + 1 : NULL;
    }
    return configure_one(be, NULL, NULL);
}

/* One layer from its word, "name" or "name:options"; *be becomes the new top. */
static int
layer_add(struct backend **be, char *word, char *err, size_t errsize)
{
    char *options = strchr(word, ':');
    if (options != NULL)
        *options++ = '\0';
    for (size_t i = 0; i < N(layers); i++) {
        if (strcmp(layers[i]->type, word) != 0)
            continue;
        *be = level_new(layers[i], &(*be)->opts, *be);
        int r = configure_all(*be, options, ',');
        if (r != 0)
            (void)snprintf(err, errsize, "layer %s", be_error(*be));
        return r;
    }
    (void)snprintf(err, errsize, "there is no layer '%s'", word);
    return -EINVAL;
}

/* Words are outermost first, so they are put on from the last to the first. */
static int
layers_add(struct backend **be, const char *text, char *err, size_t errsize)
{
    char *copy = xstrdup(text);
    char *words[BE_LAYERS_MAX];
    unsigned n = 0;
    int r = 0;
    char *save = NULL;
    for (char *w = strtok_r(copy, " \t", &save); w != NULL; w = strtok_r(NULL, " \t", &save)) {
        if (n == BE_LAYERS_MAX) {
            (void)snprintf(err, errsize, "more than %d layers", BE_LAYERS_MAX);
            r = -EINVAL;
            break;
        }
        words[n++] = w;
    }
    while (r == 0 && n > 0)
        r = layer_add(be, words[--n], err, errsize);
    free(copy);
    return r;
}

static const struct be_ops *
type_find(const char *name)
{
    for (size_t i = 0; i < N(types); i++) {
        if (strcmp(types[i].name, name) == 0)
            return types[i].ops;
    }
    return NULL;
}

struct backend *
be_new(const struct be_opts *opts, char *err, size_t errsize)
{
    const char *type = opts->type != NULL ? opts->type : "fileio";
    const struct be_ops *ops = type_find(type);
    if (ops == NULL) {
        (void)snprintf(err, errsize, "there is no backend type '%s'", type);
        return NULL;
    }
    uint32_t bs = opts->block_size;
    if (bs != 0 && (bs < 512 || bs > 65536 || (bs & (bs - 1)) != 0)) {
        (void)snprintf(err, errsize, "block size %" PRIu32 " is not a power of two from 512", bs);
        return NULL;
    }
    struct backend *be = level_new(ops, opts, NULL);
    char *copy = xstrdup(opts->bsopts != NULL ? opts->bsopts : "");
    int r = configure_all(be, copy, ';');
    free(copy);
    if (r != 0)
        (void)snprintf(err, errsize, "%s", be_error(be));
    else if (opts->layers != NULL)
        r = layers_add(&be, opts->layers, err, errsize);
    if (r == 0)
        return be;
    stack_free(be);
    return NULL;
}

struct backend *
be_get(struct backend *be)
{
    ref_get(&be->ref);
    return be;
}

void
be_put(struct backend *be)
{
    if (!ref_put(&be->ref))
        return;
    if (atomic_load(&be->in_flight) != 0) {
        log_event(LL_WARN, LA_BACKEND, "left-behind path=%s requests=%u", LOG_ESC(be_path(be)),
                  be_in_flight(be));
        return;
    }
    stack_free(be);
}

void
be_each_path(const struct backend *be, void (*fn)(const char *path, bool made, void *arg),
             void *arg)
{
    for (; be != NULL; be = be->below) {
        const char *extra = be->ops->extra_path != NULL ? be->ops->extra_path(be) : NULL;
        if (extra != NULL)
            fn(extra, true, arg);
        if (be->below == NULL && be->opts.path != NULL)
            fn(be->opts.path, false, arg);
    }
}

/* --- open, close, probe: helper threads ------------------------------------------------------ */

static int
open_locked(struct backend *be)
{
    if (be_state(be) == BE_READY)
        return 0;
    be->want_open = true;
    int err = be->ops->open(be);
    if (err != 0) {
        if (be_error(be)[0] == '\0')
            be_set_error(be, "%s: %s", be_path(be), strerror(-err));
        return err;
    }
    be_set_error(be, "%s", "");
    if (be->below == NULL && be->info.read_only && !be->opts.read_only)
        log_event(LL_WARN, LA_BACKEND, "read-only path=%s why=\"it cannot be opened for writing\"",
                  LOG_ESC(be_path(be)));
    if (be->info.is_volatile)
        atomic_store(&be->acknowledged, false); /* other contents than before */
    atomic_store_explicit(&be->state, BE_READY, memory_order_release);
    return 0;
}

static unsigned
probe_locked(struct backend *be)
{
    unsigned ev = be->ops->probe(be);
    if ((ev & BE_EV_CAME) != 0)
        atomic_store_explicit(&be->state, BE_READY, memory_order_release);
    if ((ev & BE_EV_GONE) != 0)
        atomic_store_explicit(&be->state, BE_GONE, memory_order_release);
    return ev;
}

/* Opening what is GONE is asking whether it is back: its store keeps what it needs to know it. */
static int
open_gone(struct backend *be)
{
    (void)probe_locked(be);
    if (be_state(be) == BE_READY)
        return 0;
    const struct backend *store = be;
    while (store->below != NULL)
        store = store->below;
    int err = atomic_load(&store->gone_err);
    return err != 0 ? err : -ENXIO;
}

int
be_open(struct backend *be)
{
    pthread_mutex_lock(&be->op_lock);
    int err = be_state(be) == BE_GONE ? open_gone(be) : open_locked(be);
    pthread_mutex_unlock(&be->op_lock);
    return err;
}

void
be_close(struct backend *be)
{
    pthread_mutex_lock(&be->op_lock);
    be->want_open = false;
    if (atomic_exchange(&be->state, BE_CLOSED) != BE_CLOSED)
        be->ops->close(be);
    pthread_mutex_unlock(&be->op_lock);
}

unsigned
be_probe(struct backend *be)
{
    unsigned ev = 0;
    pthread_mutex_lock(&be->op_lock);
    if (be_state(be) == BE_CLOSED) {
        if (be->want_open && open_locked(be) == 0)
            ev = BE_EV_CAME;
    } else {
        ev = probe_locked(be);
    }
    pthread_mutex_unlock(&be->op_lock);
    return ev;
}

int
be_publish(struct backend *be, const struct be_info *info, const char *identity)
{
    if (!atomic_load_explicit(&be->known, memory_order_acquire)) {
        be->info = *info;
        be->identity = xstrdup(identity);
        atomic_store(&be->size, info->size);
        atomic_store_explicit(&be->known, true, memory_order_release);
        return 0;
    }
    if (strcmp(be->identity, identity) != 0 || be->info.block_size != info->block_size ||
        be->info.read_only != info->read_only) {
        be_set_error(
            be, "%s: is not what it was: '%s' with blocks of %" PRIu32 ", was '%s' (%" PRIu32 "%s)",
            be_path(be), identity, info->block_size, be->identity, be->info.block_size,
            be->info.read_only ? ", read-only" : "");
        return -ESTALE;
    }
    if (info->size > be_size(be))
        atomic_store(&be->size, info->size);
    return 0;
}

void
be_set_error(struct backend *be, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    pthread_mutex_lock(&be->lock);
    (void)vsnprintf(be->error, sizeof(be->error), fmt, ap);
    pthread_mutex_unlock(&be->lock);
    va_end(ap);
}

const char *
be_error(const struct backend *be)
{
    static _Thread_local char copy[sizeof(be->error)];
    struct backend *b = (struct backend *)be; /* the lock is not part of what const promises */
    for (;; b = b->below) {
        pthread_mutex_lock(&b->lock);
        memcpy(copy, b->error, sizeof(copy));
        pthread_mutex_unlock(&b->lock);
        if (copy[0] != '\0' || b->below == NULL)
            return copy;
    }
}

const char *
be_path(const struct backend *be)
{
    return be->opts.path != NULL ? be->opts.path : "";
}

const char *
be_identity(const struct backend *be)
{
    return atomic_load_explicit(&be->known, memory_order_acquire) ? be->identity : "";
}

enum be_state
be_state(const struct backend *be)
{
    return (enum be_state)atomic_load_explicit(&be->state, memory_order_acquire);
}

void
be_info(const struct backend *be, struct be_info *out)
{
    if (!atomic_load_explicit(&be->known, memory_order_acquire)) {
        memset(out, 0, sizeof(*out));
        return;
    }
    *out = be->info;
    out->size = be_size(be);
}

uint64_t
be_size(const struct backend *be)
{
    return atomic_load_explicit(&be->size, memory_order_relaxed);
}

void
be_set_write_cache(struct backend *be, bool on)
{
    atomic_store(&be->write_cache, on);
}

void
be_acknowledge(struct backend *be)
{
    atomic_store(&be->acknowledged, true);
}

bool
be_acknowledged(const struct backend *be)
{
    return atomic_load_explicit(&be->acknowledged, memory_order_relaxed);
}

int
be_tune(struct backend *be, const struct be_opts *opts)
{
    int err = be->below != NULL       ? be_tune(be->below, opts)
              : be->ops->tune != NULL ? be->ops->tune(be, opts)
                                      : -EOPNOTSUPP;
    if (err == 0 && be->below != NULL)
        atomic_store(&be->size, be_size(be->below));
    return err;
}

void
be_each_counter(const struct backend *be, be_counter_fn *fn, void *arg)
{
    while (be->below != NULL)
        be = be->below;
    if (be->ops->counters != NULL)
        be->ops->counters(be, fn, arg);
}

bool
be_flush_failed(const struct backend *be)
{
    return atomic_load(&be->flush_failed);
}

void
be_clear_flush_error(struct backend *be)
{
    atomic_store(&be->flush_failed, false);
}

unsigned
be_in_flight(const struct backend *be)
{
    return atomic_load(&be->in_flight);
}

/* --- ending requests ------------------------------------------------------------------------- */

void
io_complete(struct io *io, int res)
{
    worker_assert_owner(io->w);
    assert(io->nframes > 0); /* completed twice otherwise */
    assert(res <= 0);
    io->at = NULL;
    io->res = res;
    io->nframes--;
    io_frame(io)->done(io);
}

static void
on_ready(struct deferred *d)
{
    struct io *io = container_of(d, struct io, ready);
    io_complete(io, io->res);
}

void
io_complete_later(struct io *io, int res)
{
    worker_assert_owner(io->w);
    io->at = NULL; /* it is done: nothing is left to cancel */
    io->res = res;
    deferred_init(&io->ready, on_ready);
    worker_defer(io->w, &io->ready);
}

/* Completions of foreign threads on their way to one worker: a stack that the worker takes as a
 * whole, so that only the first of a batch wakes it. `head` is reused as the link's pointer. */
struct remote {
    _Atomic(struct list *) head;
};

#define REMOTE_WORKERS 64
static struct remote remotes[REMOTE_WORKERS];

static void
on_remote_one(struct worker *w, void *arg)
{
    struct io *io = arg;
    (void)w;
    io_complete(io, io->res);
}

static void
on_remote_batch(struct worker *w, void *arg)
{
    struct remote *r = arg;
    (void)w;
    struct list *n = atomic_exchange_explicit(&r->head, NULL, memory_order_acquire);
    struct list *oldest = NULL;
    while (n != NULL) { /* the stack has the youngest on top */
        struct list *next = n->next;
        n->next = oldest;
        oldest = n;
        n = next;
    }
    while (oldest != NULL) {
        struct io *io = container_of(oldest, struct io, link);
        oldest = oldest->next;
        list_init(&io->link);
        io_complete(io, io->res);
    }
}

void
io_complete_remote(struct io *io, int res)
{
    io->res = res;
    unsigned id = worker_id(io->w);
    if (id >= REMOTE_WORKERS || id >= worker_count() || worker_at(id) != io->w) {
        worker_post(io->w, on_remote_one, io);
        return;
    }
    struct remote *r = &remotes[id];
    struct list *head = atomic_load_explicit(&r->head, memory_order_relaxed);
    do {
        io->link.next = head;
    } while (!atomic_compare_exchange_weak_explicit(&r->head, &head, &io->link,
                                                    memory_order_release, memory_order_relaxed));
    if (head == NULL)
        worker_post(io->w, on_remote_batch, r);
}

/* --- submit: any worker ---------------------------------------------------------------------- */

static bool
is_modifying(uint8_t op)
{
    return op == IO_WRITE || op == IO_ZERO || op == IO_DISCARD;
}

/* The flags the caller had, and the op under a late flush, live in the wrapper's frame. */
#define FRAME_FLAGS    0xffu
#define FRAME_OP_SHIFT 8

/* Is res, of a FLUSH or of something with FUA, proof that what was promised may not last? */
static bool
is_durability_lost(uint8_t op, int res)
{
    switch (res) {
    case 0:
    case -ECANCELED:
    case -EOPNOTSUPP:
    case -EROFS:
    case -ESHUTDOWN: /* nothing was asked of the store */
        return false;
    case -ENOSPC:
    case -EDQUOT:
    case -EFBIG:
        /* A store says so only when the write was refused as such (fdio.h), nothing is lost. */
        return op == IO_FLUSH;
    default:
        return true;
    }
}

static void
outer_finish(struct backend *be, struct io *io, uint8_t flags, bool durable)
{
    if (durable && is_durability_lost(io->op, io->res) && !atomic_exchange(&be->flush_failed, true))
        log_event(LL_ERROR, LA_BACKEND, "flush-failed path=%s error=%d", LOG_ESC(be_path(be)),
                  -io->res);
    io->flags = flags;
    atomic_fetch_sub_explicit(&be->in_flight, 1, memory_order_release);
    io_complete(io, io->res == -ESHUTDOWN ? -ENXIO : io->res);
}

static void
on_late_flush_done(struct io *io)
{
    struct io_frame *f = io_frame(io);
    io->op = (uint8_t)(f->u >> FRAME_OP_SHIFT);
    struct backend *be = f->arg;
    /* Closed meanwhile (-ESHUTDOWN): not durable, so not GOOD, but no proof of loss either. */
    if (is_durability_lost(IO_FLUSH, io->res) && !atomic_exchange(&be->flush_failed, true))
        log_event(LL_ERROR, LA_BACKEND, "flush-failed path=%s error=%d", LOG_ESC(be_path(be)),
                  -io->res);
    outer_finish(be, io, (uint8_t)(f->u & FRAME_FLAGS), false);
}

static void
on_outer_done(struct io *io)
{
    struct io_frame *f = io_frame(io);
    struct backend *be = f->arg;
    uint8_t flags = (uint8_t)(f->u & FRAME_FLAGS);
    bool durable = io->op == IO_FLUSH || (is_modifying(io->op) && (io->flags & IO_FUA) != 0);
    if (io->res == 0 && is_modifying(io->op) && !durable && !atomic_load(&be->write_cache)) {
        /* The cache was turned off while this write was under way. */
        io_push(io, on_late_flush_done, be);
        io->frames[io->nframes - 1].u = flags | (uint64_t)io->op << FRAME_OP_SHIFT;
        io->op = IO_FLUSH;
        io->at = be;
        be->ops->submit(be, io);
        return;
    }
    outer_finish(be, io, flags, durable);
}

/* True when io keeps the rules of the contract. */
static bool
is_well_formed(const struct backend *be, const struct io *io)
{
    uint64_t size = be_size(be);
    uint32_t mask = be->info.block_size - 1;
    if (io->op >= IO_OP_COUNT)
        return false;
    if (io->op == IO_FLUSH)
        return true;
    return io->offset <= size && io->len <= size - io->offset && (io->offset & mask) == 0 &&
           (io->len & mask) == 0 && (io->op != IO_MAP || io->ext_max > 0) &&
           (be->info.max_io == 0 || io->len <= be->info.max_io ||
            (io->op != IO_READ && io->op != IO_WRITE));
}

/* 0, or why io is refused before any layer sees it. */
static int
outer_check(const struct backend *be, const struct io *io)
{
    if (be_state(be) != BE_READY)
        return -ENXIO;
    if (!is_well_formed(be, io)) {
        log_event(LL_ERROR, LA_BACKEND, "bad-request path=%s op=%u offset=%" PRIu64 " len=%" PRIu64,
                  LOG_ESC(be_path(be)), (unsigned)io->op, io->offset, io->len);
#ifdef EVTGT_DEBUG
        abort();
#endif
        return -EINVAL;
    }
    bool modifying = is_modifying(io->op);
    if (modifying && (be->opts.read_only || be->info.read_only))
        return -EROFS;
    if ((io->op == IO_DISCARD && (be->info.caps & BE_CAP_DISCARD) == 0) ||
        (io->op == IO_READ_REF && (be->info.caps & BE_CAP_READ_REF) == 0) ||
        (io->md != NULL && (be->info.caps & BE_CAP_METADATA) == 0))
        return -EOPNOTSUPP;
    bool durable = io->op == IO_FLUSH ||
                   (modifying && ((io->flags & IO_FUA) != 0 || !atomic_load(&be->write_cache)));
    if (durable && be_flush_failed(be))
        return -EIO;
    return 0;
}

/* The store was not asked, so this proves nothing about it. */
static void
on_refused_done(struct io *io)
{
    struct backend *be = io_frame(io)->arg;
    atomic_fetch_sub_explicit(&be->in_flight, 1, memory_order_release);
    io_complete(io, io->res);
}

void
be_submit(struct backend *be, struct io *io)
{
    worker_assert_owner(io->w);
    assert(io->nframes > 0 && io->nframes < IO_FRAMES - BE_LAYERS_MAX - 1);
    io->res = 0;
    io->fail_offset = io->offset;
    io->canceled = false;
    io->at = NULL;
    list_init(&io->link);
    int err = outer_check(be, io);
    atomic_fetch_add_explicit(&be->in_flight, 1, memory_order_relaxed);
    if (err != 0) {
        io_push(io, on_refused_done, be);
        io_complete_later(io, err);
        return;
    }
    io_push(io, on_outer_done, be);
    io->frames[io->nframes - 1].u = io->flags;
    if (is_modifying(io->op) && !atomic_load(&be->write_cache))
        io->flags |= IO_FUA;
    io->at = be;
    be->ops->submit(be, io);
}

void
be_submit_below(struct backend *layer, struct io *io)
{
    io->at = layer->below;
    layer->below->ops->submit(layer->below, io);
}

void
be_cancel(struct io *io)
{
    worker_assert_owner(io->w);
    io->canceled = true;
    if (io->at != NULL)
        io->at->ops->cancel(io->at, io);
}

void
io_release_ref(struct io *io)
{
    worker_assert_owner(io->w);
    assert(io->lender != NULL);
    struct backend *be = io->lender;
    io->lender = NULL;
    be->ops->release_ref(be, io);
}

/* --- zeros ----------------------------------------------------------------------------------- */

static void *zeros;

static void
zeros_make(void)
{
    /* Never written, so the kernel backs all of it with its one zero page. */
    zeros = mmap(NULL, BE_ZEROS_LEN, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (zeros == MAP_FAILED)
        abort();
}

const void *
be_zeros(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, zeros_make);
    return zeros;
}

struct iovec
be_zero_iov(uint64_t len)
{
    assert(len <= BE_ZEROS_LEN);
    return (struct iovec){.iov_base = (void *)be_zeros(), .iov_len = (size_t)len};
}

static void on_zero_chunk(struct io *io);

/* The next chunk: io->offset is where, saved.off + saved.len the end. */
static void
zero_next(struct backend *be, struct io *io)
{
    uint64_t left = io->saved.off + io->saved.len - io->offset;
    io->len = left < BE_ZEROS_LEN ? left : BE_ZEROS_LEN;
    io->one = be_zero_iov(io->len);
    io->iov = &io->one;
    io->niov = 1;
    io_push(io, on_zero_chunk, be);
    io->at = be;
    be->ops->submit(be, io);
}

static void
on_zero_chunk(struct io *io)
{
    struct backend *be = io_frame(io)->arg;
    uint64_t next = io->offset + io->len;
    int res = io->res;
    if (res == 0 && next < io->saved.off + io->saved.len) {
        if (!io->canceled) {
            io->offset = next;
            zero_next(be, io);
            return;
        }
        io->fail_offset = next;
        res = -ECANCELED;
    }
    io->op = io->saved.op;
    io->offset = io->saved.off;
    io->len = io->saved.len;
    io->iov = io->saved.iov;
    io->niov = io->saved.niov;
    io_complete(io, res);
}

void
be_zero_by_writes(struct backend *be, struct io *io)
{
    io->saved.op = io->op;
    io->saved.off = io->offset;
    io->saved.len = io->len;
    io->saved.iov = io->iov;
    io->saved.niov = io->niov;
    io->op = IO_WRITE;
    zero_next(be, io);
}
