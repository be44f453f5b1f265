/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The algorithms of the compressed RAM store: one row each in zram_codec.c.  A context belongs to
 * one thread and holds the working memory of every algorithm it has been used for, made at the
 * first use.  Blocking only as malloc is; nothing here locks.
 */
#ifndef BACKENDS_ZRAM_CODEC_H
#define BACKENDS_ZRAM_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Stored in three bits of every object: never renumber, at most 7. */
enum zram_alg {
    ZRAM_ALG_RAW, /* kept as it is; not to be chosen */
    ZRAM_ALG_LZ4,
    ZRAM_ALG_LZ4HC,
    ZRAM_ALG_ZSTD,
    ZRAM_ALG_DEFLATE, /* raw deflate, RFC 1951 */
    ZRAM_ALG_COUNT
};

/* What is compressed with. Reading needs alg only. */
struct zram_codec {
    uint8_t alg; /* enum zram_alg */
    int8_t level;
};

#define ZRAM_CODEC_DEFAULT ((struct zram_codec){ZRAM_ALG_LZ4, 1})

/* "lz4", "zstd:9": name, and behind a colon the level (default: the row's). 0, or -EINVAL with
 * what would be right in err. */
int zram_codec_parse(const char *text, struct zram_codec *out, char *err, size_t errsize);
/* "zstd:9"; only the name for one that has no levels. Returns buf. */
const char *zram_codec_show(struct zram_codec c, char *buf, size_t size);
const char *zram_codec_name(unsigned alg); /* "raw", "lz4", ...; "?" beyond */
bool zram_codec_is_valid(struct zram_codec c);
/* The levels of an algorithm; both 1 for one without. */
void zram_codec_levels(unsigned alg, int *min, int *max, int *standard);

struct zram_codec_ctx;

struct zram_codec_ctx *zram_codec_ctx_new(void); /* NULL: no memory */
void zram_codec_ctx_free(struct zram_codec_ctx *x);

/* The most that n bytes can become: what the destination of zram_codec_compress must hold. */
size_t zram_codec_bound(size_t n);
/* Compresses src[0, n), n at most 64 KiB, into dst, which holds zram_codec_bound(n) bytes. The
 * length; 0 when it is not smaller than n, or memory lacks: keep it as it is then. */
size_t zram_codec_compress(struct zram_codec_ctx *x, struct zram_codec c, const void *src, size_t n,
                           void *dst);
/* Exactly n bytes into dst from src[0, len). Never reads or writes beyond these, whatever src
 * holds. 0, -EILSEQ (does not decode to exactly n bytes), -ENOMEM. */
int zram_codec_decompress(struct zram_codec_ctx *x, unsigned alg, const void *src, size_t len,
                          void *dst, size_t n);

#endif
