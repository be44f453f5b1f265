/* SPDX-License-Identifier: BSD-2-Clause */
/* One chunk: what it becomes, putting it, loading it; see zram_priv.h. Any thread. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "backends/zram_priv.h"

static bool
is_filled(const uint8_t *p, uint32_t n, uint64_t *value)
{
    uint64_t first, last;
    memcpy(&first, p, sizeof(first));
    memcpy(&last, p + n - sizeof(last), sizeof(last));
    *value = first;
    /* Equal to itself one word on: all words are the same. */
    return first == last && memcmp(p, p + sizeof(first), n - sizeof(first)) == 0;
}

void
zram_piece_make(const struct zram_store *st, struct zram_thread *t, const uint8_t *data,
                struct zram_piece *p)
{
    if (is_filled(data, st->chunk, &p->fill)) {
        p->kind = p->fill == 0 ? ZRAM_ZERO : ZRAM_FILL;
        return;
    }
    struct zram_codec c = zram_codec_now(st);
    size_t len = zram_codec_compress(t->codec, c, data, st->chunk, t->out);
    p->kind = ZRAM_OBJECT;
    p->alg = len > 0 ? c.alg : (unsigned)ZRAM_ALG_RAW;
    p->size = len > 0 ? (uint32_t)len : st->chunk;
    p->data = len > 0 ? t->out : data;
}

/* A slot for the object: the one it has if that fits, else another, at worst a loose fit. */
static int
find_slot(struct zram_store *st, uint64_t no, uint64_t w, uint32_t size, uint64_t *handle)
{
    bool has = word_kind(w) == ZRAM_OBJECT;
    if (has && zram_alloc_suits(&st->alloc, word_handle(w), size)) {
        *handle = word_handle(w);
        return 0;
    }
    int err = zram_alloc_get(&st->alloc, size, (uint32_t)no, handle);
    if (err != 0 && has && size <= zram_alloc_room(&st->alloc, word_handle(w))) {
        *handle = word_handle(w);
        return 0;
    }
    return err;
}

static void
count_change(struct zram_store *st, const struct zram_thread *t, uint64_t was, uint64_t now)
{
    if (word_kind(was) == ZRAM_OBJECT) {
        zram_count(st, t, ZC_OBJECTS + word_alg(was), UINT64_MAX);
        zram_count(st, t, ZC_BYTES + word_alg(was), -(uint64_t)word_size(was));
    } else if (word_kind(was) != ZRAM_EMPTY) {
        zram_count(st, t, ZC_SAME, UINT64_MAX);
    }
    if (word_kind(now) == ZRAM_OBJECT) {
        zram_count(st, t, ZC_OBJECTS + word_alg(now), 1);
        zram_count(st, t, ZC_BYTES + word_alg(now), word_size(now));
        if (word_alg(now) == ZRAM_ALG_RAW)
            zram_count(st, t, ZC_HUGE_SINCE, 1);
    } else if (word_kind(now) != ZRAM_EMPTY) {
        zram_count(st, t, ZC_SAME, 1);
    }
}

/* The new word without lock, everything it speaks of in place. */
static int
build(struct zram_store *st, uint64_t no, uint64_t w, const struct zram_piece *p, uint32_t age,
      uint64_t *now)
{
    struct zram_entry *e = &st->table[no];
    uint32_t lo = 0, hi = 0;
    *now = (uint64_t)p->kind << ENTRY_KIND_AT;
    if (p->kind == ZRAM_OBJECT) {
        uint64_t handle;
        int err = find_slot(st, no, w, p->size, &handle);
        if (err != 0)
            return err;
        memcpy(zram_alloc_ptr(&st->alloc, handle), p->data, p->size);
        *now = word_object(p->alg, p->size, handle);
        hi = age;
    } else if (p->kind == ZRAM_FILL) {
        lo = (uint32_t)p->fill;
        hi = (uint32_t)(p->fill >> 32);
    }
    atomic_store_explicit(&e->lo, lo, memory_order_relaxed);
    atomic_store_explicit(&e->hi, hi, memory_order_relaxed);
    return 0;
}

int
zram_chunk_put(struct zram_store *st, struct zram_thread *t, uint64_t no, uint64_t w,
               const struct zram_piece *p, uint32_t age)
{
    struct zram_entry *e = &st->table[no];
    uint64_t now;
    int err = build(st, no, w, p, age, &now);
    if (err != 0) {
        zram_entry_write_unlock(e, w);
        return err;
    }
    /* A group counts its chunks before they are seen, and until they no longer are. */
    bool had = word_kind(w) != ZRAM_EMPTY, has = p->kind != ZRAM_EMPTY;
    if (has && !had)
        zram_group_add(st, no / GROUP_CHUNKS, 1);
    zram_entry_write_unlock(e, now);
    if (had && !has)
        zram_group_add(st, no / GROUP_CHUNKS, -1);
    if (word_kind(w) == ZRAM_OBJECT &&
        (p->kind != ZRAM_OBJECT || word_handle(w) != word_handle(now)))
        zram_alloc_put(&st->alloc, word_handle(w));
    count_change(st, t, w, now);
    return 0;
}

static void
fill_words(uint8_t *dst, uint32_t n, uint64_t value)
{
    for (uint32_t i = 0; i < n; i += (uint32_t)sizeof(value))
        memcpy(dst + i, &value, sizeof(value));
}

int
zram_chunk_load(const struct zram_store *st, struct zram_thread *t, uint64_t no, uint64_t w,
                uint8_t *dst)
{
    const struct zram_entry *e = &st->table[no];
    if (word_kind(w) == ZRAM_OBJECT) {
        int err =
            zram_codec_decompress(t->codec, word_alg(w), zram_alloc_ptr(&st->alloc, word_handle(w)),
                                  word_size(w), dst, st->chunk);
        return err == -EILSEQ ? -EIO : err;
    }
    if (word_kind(w) == ZRAM_FILL)
        fill_words(dst, st->chunk,
                   (uint64_t)atomic_load_explicit(&e->hi, memory_order_relaxed) << 32 |
                       atomic_load_explicit(&e->lo, memory_order_relaxed));
    else
        memset(dst, 0, st->chunk);
    return 0;
}
