/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data buffers.  Every buffer lies in a slab that was mapped as a whole: 1 MiB cut into equal
 * buffers for the classes below 64 KiB, one buffer a slab from there on.  A class keeps the slabs
 * that have a free buffer in a list, partly used ones in front, so that whole slabs fall idle and
 * can be unmapped.  Owner's thread.
 */
#include "config.h"

#include "base/buf.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/list.h"
#include "base/log.h"
#include "base/poison.h"
#include "base/pool.h"
#include "base/worker_priv.h"

#define MIN_SHIFT   12
#define NCLASSES    9 /* 4 KiB .. 1 MiB */
#define SLAB_BYTES  (1024u * 1024u)
#define WHOLE_BYTES 65536u /* from here on a buffer is a slab of its own */

struct bufslab {
    struct list link; /* in its class while it has a free buffer */
    struct bufpool *pool;
    uint8_t *mem;
    size_t bytes;
    unsigned class;
    unsigned nbufs, nfree;
    struct buf *free;
    struct buf bufs[];
};

struct bufclass {
    struct list slabs; /* with nfree > 0; wholly free ones at the tail */
    unsigned nfree;    /* buffers */
    unsigned low;      /* least nfree since the last shrink */
};

struct bufpool {
    struct worker *w; /* or NULL */
    size_t bytes;
    size_t idle;
    unsigned out;         /* buffers in somebody's hands */
    struct bufpool *left; /* pools that were freed with buffers out */
    struct bufclass classes[NCLASSES];
};

/* Keeps what was left behind reachable, so that a leak checker does not report it. */
static _Atomic(struct bufpool *) left_behind;

struct bufpool *
bufpool_new(struct worker *w)
{
    struct bufpool *bp = xcalloc(1, sizeof *bp);
    bp->w = w;
    for (unsigned i = 0; i < NCLASSES; i++)
        list_init(&bp->classes[i].slabs);
    return bp;
}

static size_t
class_bytes(unsigned class)
{
    return (size_t)1 << (class + MIN_SHIFT);
}

static void
slab_free(struct bufslab *s)
{
    struct bufpool *bp = s->pool;
    struct bufclass *c = &bp->classes[s->class];
    assert(s->nfree == s->nbufs);
    list_del(&s->link);
    c->nfree -= s->nbufs;
    bp->bytes -= s->bytes;
    bp->idle -= s->bytes;
    unpoison(s->mem, s->bytes);
    munmap(s->mem, s->bytes);
    free(s);
}

static void
free_idle_slabs(struct bufclass *c)
{
    while (!list_is_empty(&c->slabs)) {
        struct bufslab *s = container_of(c->slabs.prev, struct bufslab, link);
        if (s->nfree < s->nbufs)
            return;
        slab_free(s);
    }
}

void
bufpool_free(struct bufpool *bp)
{
    if (!bp)
        return;
    for (unsigned i = 0; i < NCLASSES; i++)
        free_idle_slabs(&bp->classes[i]);
    if (bp->out == 0) {
        free(bp);
        return;
    }
    bp->w = NULL;
    bp->left = atomic_load(&left_behind);
    while (!atomic_compare_exchange_weak(&left_behind, &bp->left, bp))
        ;
}

static struct bufslab *
slab_new(struct bufpool *bp, unsigned class)
{
    size_t each = class_bytes(class);
    size_t bytes = each >= WHOLE_BYTES ? each : SLAB_BYTES;
    unsigned n = (unsigned)(bytes / each);
    struct bufslab *s = calloc(1, sizeof *s + n * sizeof s->bufs[0]);
    if (!s)
        return NULL;
    s->mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->mem == MAP_FAILED) {
        free(s);
        return NULL;
    }
    s->pool = bp;
    s->bytes = bytes;
    s->class = class;
    s->nbufs = s->nfree = n;
    for (unsigned i = n; i-- > 0;) {
        struct buf *b = &s->bufs[i];
        b->p = s->mem + i * each;
        b->cap = (uint32_t)each;
        b->slab = s;
        b->next = s->free;
        s->free = b;
    }
    poison(s->mem, bytes);
    bp->bytes += bytes;
    bp->idle += bytes;
    bp->classes[class].nfree += n;
    list_add_head(&bp->classes[class].slabs, &s->link);
    return s;
}

struct buf *
buf_get(struct bufpool *bp, size_t len)
{
    if (bp->w)
        worker_assert_owner(bp->w);
    assert(len <= BUF_MAX);
    unsigned class = len <= BUF_MIN ? 0 : 64 - (unsigned)__builtin_clzll(len - 1) - MIN_SHIFT;
    struct bufclass *c = &bp->classes[class];
    struct bufslab *s = list_is_empty(&c->slabs) ? slab_new(bp, class)
                                                 : list_first(&c->slabs, struct bufslab, link);
    if (!s)
        return NULL;

    struct buf *b = s->free;
    s->free = b->next;
    b->next = NULL;
    b->refs = 1;
    if (--s->nfree == 0)
        list_del(&s->link);
    if (--c->nfree < c->low)
        c->low = c->nfree;
    bp->idle -= b->cap;
    bp->out++;
    unpoison(b->p, b->cap);
#ifdef EVTGT_DEBUG
    memset(b->p, 0xdb, b->cap);
#endif
    return b;
}

void
buf_ref(struct buf *b)
{
    assert(b->refs > 0);
    b->refs++;
}

void
buf_put(struct buf *b)
{
    struct bufslab *s = b->slab;
    struct bufpool *bp = s->pool;
    if (bp->w)
        worker_assert_owner(bp->w);
    assert(b->refs > 0);
    if (--b->refs > 0)
        return;
#ifdef EVTGT_DEBUG
    if (bp->w && disk_uses_memory(bp->w, b->p, b->cap))
        log_abort("buffer freed while a disk request still has it");
#endif
    poison(b->p, b->cap);
    struct bufclass *c = &bp->classes[s->class];
    b->next = s->free;
    s->free = b;
    s->nfree++;
    c->nfree++;
    bp->idle += b->cap;
    bp->out--;
    list_del(&s->link);
    if (s->nfree == s->nbufs)
        list_add_tail(&c->slabs, &s->link);
    else
        list_add_head(&c->slabs, &s->link);
    if (bp->w)
        worker_housekeep(bp->w);
}

void
bufpool_shrink(struct bufpool *bp)
{
    for (unsigned i = 0; i < NCLASSES; i++) {
        struct bufclass *c = &bp->classes[i];
        unsigned drop = (c->low + 1) / 2; /* half at a time: load that comes back finds some */
        while (!list_is_empty(&c->slabs)) {
            struct bufslab *s = container_of(c->slabs.prev, struct bufslab, link);
            /* a cut slab goes whole when none of its buffers was needed */
            if (s->nfree < s->nbufs || c->low < s->nbufs || drop == 0)
                break;
            c->low -= s->nbufs;
            drop -= drop < s->nbufs ? drop : s->nbufs;
            slab_free(s);
        }
        c->low = c->nfree;
    }
}

size_t
bufpool_bytes(const struct bufpool *bp)
{
    return bp->bytes;
}

size_t
bufpool_idle_bytes(const struct bufpool *bp)
{
    return bp->idle;
}

bool
bufpool_can_shrink(const struct bufpool *bp)
{
    for (unsigned i = 0; i < NCLASSES; i++) {
        const struct bufclass *c = &bp->classes[i];
        if (list_is_empty(&c->slabs))
            continue;
        const struct bufslab *s = container_of(c->slabs.prev, struct bufslab, link);
        if (s->nfree == s->nbufs)
            return true;
    }
    return false;
}
