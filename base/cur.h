/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounded cursors.  Everything a peer sends is parsed through `struct cur`, everything of
 * variable length we build is written through `struct wcur`.  A cursor that was asked for more
 * than it holds becomes `bad` and stays so: reads give 0, writes do nothing; the caller checks
 * once at the end (`cur_ok`, `wcur_ok`).  No allocation, no ownership: the bytes belong to the
 * caller and must outlive the cursor.
 */
#ifndef BASE_CUR_H
#define BASE_CUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

struct cur {
    const uint8_t *p;
    size_t left;
    bool bad;
};

struct wcur {
    uint8_t *base;
    size_t cap;  /* bytes at base */
    size_t len;  /* bytes that would have been written; may exceed cap: allocation lengths cut */
};

static inline struct cur
cur_init(const void *p, size_t len)
{
    return (struct cur){.p = p, .left = len};
}

static inline bool
cur_ok(const struct cur *c)
{
    return !c->bad;
}

/* The next n bytes, or NULL (and bad) when there are fewer. */
static inline const uint8_t *
cur_take(struct cur *c, size_t n)
{
    if (c->bad || c->left < n) {
        c->bad = true;
        return NULL;
    }
    const uint8_t *p = c->p;
    c->p += n;
    c->left -= n;
    return p;
}

static inline uint8_t
cur_u8(struct cur *c)
{
    const uint8_t *p = cur_take(c, 1);
    return p ? p[0] : 0;
}

static inline uint16_t
cur_be16(struct cur *c)
{
    const uint8_t *p = cur_take(c, 2);
    return p ? get_be16(p) : 0;
}

static inline uint32_t
cur_be24(struct cur *c)
{
    const uint8_t *p = cur_take(c, 3);
    return p ? get_be24(p) : 0;
}

static inline uint32_t
cur_be32(struct cur *c)
{
    const uint8_t *p = cur_take(c, 4);
    return p ? get_be32(p) : 0;
}

static inline uint64_t
cur_be64(struct cur *c)
{
    const uint8_t *p = cur_take(c, 8);
    return p ? get_be64(p) : 0;
}

/*
 * Writer.  Writing past `cap` is not an error: the bytes are counted but not stored, which is
 * exactly what an ALLOCATION LENGTH does (SPC-4 4.2.5.6).  `wcur_fits` tells whether all fitted.
 */
static inline struct wcur
wcur_init(void *p, size_t cap)
{
    return (struct wcur){.base = p, .cap = cap};
}

static inline bool
wcur_fits(const struct wcur *w)
{
    return w->len <= w->cap;
}

/* Bytes really stored. */
static inline size_t
wcur_stored(const struct wcur *w)
{
    return w->len < w->cap ? w->len : w->cap;
}

static inline void
wcur_bytes(struct wcur *w, const void *src, size_t n)
{
    if (w->len < w->cap && n != 0) {
        size_t room = w->cap - w->len;
        memcpy(w->base + w->len, src, n < room ? n : room);
    }
    w->len += n;
}

static inline void
wcur_zero(struct wcur *w, size_t n)
{
    if (w->len < w->cap) {
        size_t room = w->cap - w->len;
        memset(w->base + w->len, 0, n < room ? n : room);
    }
    w->len += n;
}

static inline void
wcur_u8(struct wcur *w, uint8_t v)
{
    wcur_bytes(w, &v, 1);
}

static inline void
wcur_be16(struct wcur *w, uint16_t v)
{
    uint8_t b[2];
    put_be16(b, v);
    wcur_bytes(w, b, sizeof b);
}

static inline void
wcur_be24(struct wcur *w, uint32_t v)
{
    uint8_t b[3];
    put_be24(b, v);
    wcur_bytes(w, b, sizeof b);
}

static inline void
wcur_be32(struct wcur *w, uint32_t v)
{
    uint8_t b[4];
    put_be32(b, v);
    wcur_bytes(w, b, sizeof b);
}

static inline void
wcur_be64(struct wcur *w, uint64_t v)
{
    uint8_t b[8];
    put_be64(b, v);
    wcur_bytes(w, b, sizeof b);
}

/* ASCII field of exactly n bytes, cut or padded with spaces on the right (SPC-4 4.3.1). */
static inline void
wcur_ascii(struct wcur *w, const char *s, size_t n)
{
    size_t len = strlen(s);
    for (size_t i = 0; i < n; i++)
        wcur_u8(w, i < len ? (uint8_t)s[i] : ' ');
}

#endif
