/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of bytes: read, write, zero, discard, and what is mapped.  Any thread.
 * A range is walked chunk by chunk, group by group; whole chunks are compressed before their
 * entry is locked, and decompressed to where they are wanted.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "backends/zram_priv.h"

/* How much of the next object is asked for while this one is decompressed. */
#define PREFETCH_BYTES 1024u
#define LINE           64u

/* --- the caller's memory --------------------------------------------------------------------- */

struct cursor {
    const struct iovec *iov;
    size_t at; /* in *iov */
};

/* The next n bytes, where they are in one piece; else NULL. Does not move. */
static uint8_t *
cursor_piece(struct cursor *c, size_t n)
{
    while (c->at == c->iov->iov_len) {
        c->iov++;
        c->at = 0;
    }
    return c->iov->iov_len - c->at >= n ? (uint8_t *)c->iov->iov_base + c->at : NULL;
}

enum direction { OUT, IN, SKIP };

static void
cursor_move(struct cursor *c, uint8_t *p, size_t n, enum direction dir)
{
    while (n > 0) {
        size_t k = c->iov->iov_len - c->at;
        k = k < n ? k : n;
        if (k > 0 && dir == OUT)
            memcpy((uint8_t *)c->iov->iov_base + c->at, p, k);
        else if (k > 0 && dir == IN)
            memcpy(p, (uint8_t *)c->iov->iov_base + c->at, k);
        c->at += k;
        n -= k;
        p += dir == SKIP ? 0 : k;
        if (n > 0) {
            c->iov++;
            c->at = 0;
        }
    }
}

static uint64_t
iov_sum(const struct iovec *iov, unsigned niov)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < niov; i++)
        sum += iov[i].iov_len;
    return sum;
}

/* --- a walk ---------------------------------------------------------------------------------- */

/* What happens to n bytes at `from` of chunk `no`; its group is entered when touch says so. */
struct walk {
    struct zram_store *st;
    struct zram_thread *t;
    struct cursor cur;
    uint32_t age;
    bool discard;
    int (*step)(struct walk *k, uint64_t no, uint32_t from, uint32_t n);
    bool touch; /* untouched groups get memory */
    /* Instead, for n bytes of a group in which nothing is mapped; NULL: they are walked, too. */
    void (*pass)(struct walk *k, uint64_t n);
    uint64_t end; /* of the range */
    uint64_t done;
};

static bool
in_store(const struct zram_store *st, uint64_t offset, uint64_t len)
{
    return offset <= st->size && len <= st->size - offset;
}

static int
walk_group(struct walk *k, uint64_t g, uint64_t *at, uint64_t stop)
{
    struct zram_store *st = k->st;
    int err = zram_group_enter(st, g, k->touch);
    if (err != 0)
        return err;
    while (*at < stop && err == 0) {
        uint32_t from = (uint32_t)(*at & (st->chunk - 1));
        uint32_t n = st->chunk - from;
        if (n > k->end - *at)
            n = (uint32_t)(k->end - *at);
        err = k->step(k, *at >> st->shift, from, n);
        if (err == 0)
            *at += n;
    }
    zram_group_leave(st, g);
    return err;
}

static int
walk(struct walk *k, uint64_t offset, uint64_t len)
{
    struct zram_store *st = k->st;
    uint64_t at = offset;
    int err = 0;
    k->end = offset + len;
    k->age = zram_now_s(st);
    while (at < k->end && err == 0) {
        uint64_t g = (at >> st->shift) / GROUP_CHUNKS;
        uint64_t stop = (g + 1) * GROUP_CHUNKS << st->shift;
        stop = stop < k->end ? stop : k->end;
        if (k->pass != NULL && zram_group_used(st, g) == 0) {
            k->pass(k, stop - at);
            at = stop;
        } else {
            err = walk_group(k, g, &at, stop);
        }
        if (k->discard)
            zram_group_trim(st, g);
    }
    k->done = at - offset;
    return err;
}

/* --- read ------------------------------------------------------------------------------------ */

/* Consecutive chunks are neighbours for the reader only. */
static void
prefetch(const struct zram_store *st, uint64_t no)
{
    if (no >= st->nchunks)
        return;
    uint64_t w = zram_entry_peek(&st->table[no]);
    if (word_kind(w) != ZRAM_OBJECT)
        return;
    const uint8_t *p = zram_alloc_ptr(&st->alloc, word_handle(w));
    uint32_t n = word_size(w) < PREFETCH_BYTES ? word_size(w) : PREFETCH_BYTES;
    for (uint32_t i = 0; i < n; i += LINE)
        __builtin_prefetch(p + i);
}

static void
touch_age(struct zram_entry *e, uint32_t age)
{
    uint32_t hi = atomic_load_explicit(&e->hi, memory_order_relaxed);
    if ((hi & HI_AGE) != age)
        atomic_store_explicit(&e->hi, (hi & ~HI_AGE) | age, memory_order_relaxed);
}

static int
read_locked(struct walk *k, uint64_t no, uint64_t w, uint32_t from, uint32_t n)
{
    struct zram_store *st = k->st;
    uint8_t *dst = n == st->chunk ? cursor_piece(&k->cur, n) : NULL;
    uint8_t *to = dst != NULL ? dst : k->t->chunk;
    int err = zram_chunk_load(st, k->t, no, w, to);
    if (err != 0)
        return err;
    if (word_kind(w) == ZRAM_OBJECT)
        touch_age(&st->table[no], k->age);
    cursor_move(&k->cur, to + from, n, dst != NULL ? SKIP : OUT);
    return 0;
}

static void
read_zeros(struct walk *k, uint32_t n)
{
    uint8_t *dst = cursor_piece(&k->cur, n);
    if (dst == NULL)
        memset(k->t->chunk, 0, n);
    else
        memset(dst, 0, n);
    cursor_move(&k->cur, k->t->chunk, n, dst != NULL ? SKIP : OUT);
}

static void
read_nothing(struct walk *k, uint64_t n)
{
    while (n > 0) {
        uint32_t part = n < k->st->chunk ? (uint32_t)n : k->st->chunk;
        read_zeros(k, part);
        n -= part;
    }
}

static int
read_step(struct walk *k, uint64_t no, uint32_t from, uint32_t n)
{
    struct zram_store *st = k->st;
    struct zram_entry *e = &st->table[no];
    enum zram_kind kind = word_kind(zram_entry_peek(e));
    if (kind == ZRAM_EMPTY || kind == ZRAM_ZERO) { /* the word says it all, locked or not */
        read_zeros(k, n);
        return 0;
    }
    uint64_t w = zram_entry_read_lock(e);
    if (((no + 1) << st->shift) < k->end)
        prefetch(st, no + 1);
    int err = read_locked(k, no, w, from, n);
    zram_entry_read_unlock(e);
    return err;
}

int
zram_store_read(struct zram_store *st, uint64_t offset, const struct iovec *iov, unsigned niov,
                uint64_t *done)
{
    struct walk k = {.st = st,
                     .t = zram_thread_get(),
                     .cur = {.iov = iov},
                     .step = read_step,
                     .pass = read_nothing};
    uint64_t len = iov_sum(iov, niov);
    int err = k.t == NULL ? -ENOMEM : 0;
    if (err == 0 && !in_store(st, offset, len)) {
        zram_count(st, k.t, ZC_INVALID, 1);
        err = -EINVAL;
    } else if (err == 0) {
        err = walk(&k, offset, len);
        if (err != 0)
            zram_count(st, k.t, ZC_FAILED_READS, 1);
    }
    if (done != NULL)
        *done = k.done;
    return err;
}

/* --- write ----------------------------------------------------------------------------------- */

static int
write_whole(struct walk *k, uint64_t no)
{
    struct zram_store *st = k->st;
    uint8_t *src = cursor_piece(&k->cur, st->chunk);
    uint8_t *data = src != NULL ? src : k->t->chunk;
    cursor_move(&k->cur, data, st->chunk, src != NULL ? SKIP : IN);
    struct zram_piece p;
    zram_piece_make(st, k->t, data, &p);
    uint64_t w = zram_entry_write_lock(&st->table[no]);
    return zram_chunk_put(st, k->t, no, w, &p, k->age);
}

/* Bytes come from the cursor; zeros without one. */
static int
change_part(struct walk *k, uint64_t no, uint32_t from, uint32_t n)
{
    struct zram_store *st = k->st;
    struct zram_entry *e = &st->table[no];
    uint64_t w = zram_entry_write_lock(e);
    int err = zram_chunk_load(st, k->t, no, w, k->t->chunk);
    if (err != 0) {
        zram_entry_write_unlock(e, w);
        return err;
    }
    if (k->cur.iov != NULL)
        cursor_move(&k->cur, k->t->chunk + from, n, IN);
    else
        memset(k->t->chunk + from, 0, n);
    struct zram_piece p;
    zram_piece_make(st, k->t, k->t->chunk, &p);
    if (k->discard && p.kind == ZRAM_ZERO)
        p.kind = ZRAM_EMPTY;
    return zram_chunk_put(st, k->t, no, w, &p, k->age);
}

static int
write_step(struct walk *k, uint64_t no, uint32_t from, uint32_t n)
{
    return n == k->st->chunk ? write_whole(k, no) : change_part(k, no, from, n);
}

static void
count_failed_write(struct zram_store *st, const struct zram_thread *t, int err)
{
    zram_count(st, t, err == -EINVAL ? ZC_INVALID : ZC_FAILED_WRITES, 1);
    if (err == -ENOSPC)
        zram_count(st, t, ZC_NO_SPACE, 1);
}

int
zram_store_write(struct zram_store *st, uint64_t offset, const struct iovec *iov, unsigned niov,
                 uint64_t *done)
{
    struct walk k = {
        .st = st, .t = zram_thread_get(), .cur = {.iov = iov}, .step = write_step, .touch = true};
    uint64_t len = iov_sum(iov, niov);
    int err = k.t == NULL ? -ENOMEM : !in_store(st, offset, len) ? -EINVAL : 0;
    if (err == 0)
        err = walk(&k, offset, len);
    if (err != 0 && k.t != NULL)
        count_failed_write(st, k.t, err);
    if (done != NULL)
        *done = k.done;
    return err;
}

/* --- zero, discard --------------------------------------------------------------------------- */

static int
clear_step(struct walk *k, uint64_t no, uint32_t from, uint32_t n)
{
    struct zram_store *st = k->st;
    struct zram_entry *e = &st->table[no];
    enum zram_kind kind = word_kind(zram_entry_peek(e));
    bool whole = n == st->chunk || (from == 0 && (no << st->shift) + n == st->size);
    if (kind == ZRAM_EMPTY && k->discard)
        return 0;
    if (!whole)
        return change_part(k, no, from, n);
    struct zram_piece p = {.kind = k->discard ? ZRAM_EMPTY : ZRAM_ZERO};
    uint64_t w = zram_entry_write_lock(e);
    if (k->discard && word_kind(w) != ZRAM_EMPTY)
        zram_count(st, k->t, ZC_NOTIFY_FREE, 1);
    return zram_chunk_put(st, k->t, no, w, &p, k->age);
}

static void
pass_over(struct walk *k, uint64_t n)
{
    (void)k;
    (void)n;
}

static int
clear(struct walk *k, uint64_t offset, uint64_t len)
{
    struct zram_store *st = k->st;
    int err = k->t == NULL ? -ENOMEM : !in_store(st, offset, len) ? -EINVAL : 0;
    k->step = clear_step;
    if (err == 0)
        err = walk(k, offset, len);
    if (err != 0 && k->t != NULL)
        count_failed_write(st, k->t, err);
    return err;
}

int
zram_store_zero(struct zram_store *st, uint64_t offset, uint64_t len)
{
    struct walk k = {.st = st, .t = zram_thread_get(), .touch = true};
    return clear(&k, offset, len);
}

int
zram_store_discard(struct zram_store *st, uint64_t offset, uint64_t len)
{
    struct walk k = {.st = st, .t = zram_thread_get(), .discard = true, .pass = pass_over};
    return clear(&k, offset, len);
}

/* --- what is mapped -------------------------------------------------------------------------- */

/* How many chunks from `no` on, within its group, are as `mapped` says. */
static uint64_t
group_run(const struct zram_store *st, uint64_t no, bool mapped)
{
    uint64_t stop = (no / GROUP_CHUNKS + 1) * GROUP_CHUNKS;
    unsigned used = zram_group_used(st, no / GROUP_CHUNKS);
    if (used == (mapped ? GROUP_CHUNKS : 0))
        return stop - no;
    if (used == (mapped ? 0 : GROUP_CHUNKS))
        return 0;
    uint64_t at = no;
    while (at < stop && at < st->nchunks &&
           (word_kind(zram_entry_peek(&st->table[at])) != ZRAM_EMPTY) == mapped)
        at++;
    return at - no;
}

uint64_t
zram_store_map(struct zram_store *st, uint64_t offset, uint64_t len, bool *mapped)
{
    uint64_t no = offset >> st->shift, end = offset + len;
    *mapped = zram_group_used(st, no / GROUP_CHUNKS) != 0 &&
              word_kind(zram_entry_peek(&st->table[no])) != ZRAM_EMPTY;
    for (;;) {
        uint64_t run = group_run(st, no, *mapped), stop = (no / GROUP_CHUNKS + 1) * GROUP_CHUNKS;
        no += run;
        if (no << st->shift >= end)
            return len;
        if (no < stop) /* it ends inside of a group */
            break;
    }
    /* Others may write: what the first look said holds for at least that chunk. */
    uint64_t least = ((offset >> st->shift) + 1) << st->shift;
    uint64_t to = no << st->shift;
    to = to < least ? least : to;
    return (to < end ? to : end) - offset;
}
