/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Background work of the compressed RAM store: compaction and recompression; see zram_store.h.
 * One step a store at a time.  Neither holds an entry longer than one object is copied or
 * decompressed; recompression compresses with nothing held, and looks afterwards whether the
 * chunk was written meanwhile.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "backends/zram_priv.h"
#include "base/clock.h"

/* --- compaction ------------------------------------------------------------------------------ */

static bool
move_object(void *arg, uint32_t owner, uint64_t from, uint64_t to, uint32_t room)
{
    struct zram_store *st = arg;
    struct zram_entry *e = &st->table[owner];
    uint64_t g = owner / GROUP_CHUNKS, w;
    bool moved = false;
    (void)zram_group_enter(st, g, false);
    if (zram_group_used(st, g) != 0 && zram_entry_try_write(e, &w)) {
        moved = word_kind(w) == ZRAM_OBJECT && word_handle(w) == from && word_size(w) <= room;
        if (moved) {
            memcpy(zram_alloc_ptr(&st->alloc, to), zram_alloc_ptr(&st->alloc, from), word_size(w));
            w = word_object(word_alg(w), word_size(w), to);
        }
        zram_entry_write_unlock(e, w);
    }
    zram_group_leave(st, g);
    return moved;
}

static void
compact(struct zram_store *st, const struct zram_thread *t, struct zram_step *step,
        uint64_t until_us)
{
    struct zram_compact job = {.move = move_object, .arg = st, .until_us = until_us};
    step->again = zram_alloc_compact(&st->alloc, &job);
    step->seen = job.seen;
    step->done = job.moved;
    step->gained = job.gained;
    zram_count(st, t, ZC_MOVED, job.moved);
    zram_count(st, t, ZC_PAGES_COMPACTED, (uint64_t)(job.gained / ZRAM_PAGE));
}

bool
zram_store_wants_compact(struct zram_store *st)
{
    uint64_t waste = zram_alloc_waste(&st->alloc);
    uint64_t taken = atomic_load_explicit(&st->alloc.taken, memory_order_relaxed);
    /* Segments that are being filled are no holes; and what compaction left is left alone. */
    return waste > taken / 32 + 2u * ZRAM_SEGMENT;
}

/* --- recompression --------------------------------------------------------------------------- */

static bool
is_wanted(const struct zram_step *step, uint64_t w, uint32_t hi, uint32_t now_s)
{
    unsigned tried = hi >> HI_TRIED_AT & 7, to = step->codec.alg;
    if (word_kind(w) != ZRAM_OBJECT || word_alg(w) == to || tried >= to ||
        word_size(w) < step->min_size)
        return false;
    if (step->huge && word_alg(w) == ZRAM_ALG_RAW)
        return true;
    return step->idle && now_s - (hi & HI_AGE) >= step->idle_s;
}

/* The chunk into t->chunk, marked. False: not wanted any more, or *err. */
static bool
take_chunk(struct zram_store *st, struct zram_thread *t, uint64_t no, const struct zram_step *step,
           uint32_t now_s, int *err)
{
    struct zram_entry *e = &st->table[no];
    uint64_t w = zram_entry_read_lock(e);
    uint32_t hi = atomic_load_explicit(&e->hi, memory_order_relaxed);
    bool wanted = is_wanted(step, w, hi, now_s);
    if (wanted) {
        *err = zram_chunk_load(st, t, no, w, t->chunk);
        wanted = *err == 0;
    }
    if (wanted)
        atomic_fetch_or_explicit(&e->hi, HI_RECOMPRESSING, memory_order_relaxed);
    zram_entry_read_unlock(e);
    return wanted;
}

/* The bytes saved; 0: it stays as it is. */
static uint32_t
replace(struct zram_store *st, struct zram_thread *t, uint64_t no, struct zram_codec c, size_t len)
{
    struct zram_entry *e = &st->table[no];
    uint64_t w = zram_entry_write_lock(e);
    uint32_t hi = atomic_load_explicit(&e->hi, memory_order_relaxed), had = word_size(w);
    if (word_kind(w) != ZRAM_OBJECT || (hi & HI_RECOMPRESSING) == 0) {
        zram_entry_write_unlock(e, w); /* written meanwhile */
        return 0;
    }
    hi &= ~HI_RECOMPRESSING;
    if (len == 0 || len >= had) {
        atomic_store_explicit(&e->hi, (hi & ~HI_TRIED) | (uint32_t)c.alg << HI_TRIED_AT,
                              memory_order_relaxed);
        zram_entry_write_unlock(e, w);
        return 0;
    }
    struct zram_piece p = {
        .kind = ZRAM_OBJECT, .alg = c.alg, .size = (uint32_t)len, .data = t->out};
    if (zram_chunk_put(st, t, no, w, &p, hi & HI_AGE) != 0)
        return 0;
    zram_count(st, t, ZC_RECOMPRESSED, 1);
    return had - (uint32_t)len;
}

static int
recompress_one(struct zram_store *st, struct zram_thread *t, uint64_t no, struct zram_step *step,
               uint32_t now_s)
{
    const struct zram_entry *e = &st->table[no];
    int err = 0;
    uint32_t hi = atomic_load_explicit(&e->hi, memory_order_relaxed);
    if (!is_wanted(step, zram_entry_peek(e), hi, now_s) ||
        !take_chunk(st, t, no, step, now_s, &err))
        return err == -EIO ? 0 : err; /* a read will tell of damage */
    step->seen++;
    size_t len = zram_codec_compress(t->codec, step->codec, t->chunk, st->chunk, t->out);
    uint32_t saved = replace(st, t, no, step->codec, len);
    step->gained += saved;
    step->done += saved > 0;
    return 0;
}

static int
recompress_group(struct zram_store *st, struct zram_thread *t, uint64_t g, struct zram_step *step,
                 uint64_t until_us)
{
    uint64_t stop = (g + 1) * GROUP_CHUNKS;
    uint32_t now_s = zram_now_s(st);
    int err = 0;
    stop = stop < st->nchunks ? stop : st->nchunks;
    (void)zram_group_enter(st, g, false);
    while (st->recompress_next < stop && err == 0) {
        uint64_t seen = step->seen;
        err = recompress_one(st, t, st->recompress_next++, step, now_s);
        if (step->seen != seen && until_us != 0 && clock_us() >= until_us)
            break;
    }
    zram_group_leave(st, g);
    return err;
}

static int
recompress(struct zram_store *st, struct zram_thread *t, struct zram_step *step, uint64_t until_us)
{
    int err = 0;
    while (st->recompress_next < st->nchunks && err == 0) {
        uint64_t g = st->recompress_next / GROUP_CHUNKS;
        if (zram_group_used(st, g) == 0)
            st->recompress_next = (g + 1) * GROUP_CHUNKS;
        else
            err = recompress_group(st, t, g, step, until_us);
        if (until_us != 0 && clock_us() >= until_us)
            break;
    }
    step->again = st->recompress_next < st->nchunks;
    if (!step->again)
        st->recompress_next = 0;
    return err;
}

int
zram_store_step(struct zram_store *st, struct zram_step *step)
{
    struct zram_thread *t = zram_thread_get();
    int err = 0;
    step->again = true;
    step->seen = step->done = 0;
    step->gained = 0;
    if (t == NULL)
        return -ENOMEM;
    if (step->work == ZRAM_RECOMPRESS && !zram_codec_is_valid(step->codec))
        return -EINVAL;
    if (pthread_mutex_trylock(&st->step_lock) != 0)
        return 0;
    uint64_t until_us = step->max_us != 0 ? clock_us() + step->max_us : 0;
    if (step->work == ZRAM_COMPACT)
        compact(st, t, step, until_us);
    else
        err = recompress(st, t, step, until_us);
    pthread_mutex_unlock(&st->step_lock);
    return err;
}
