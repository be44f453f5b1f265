/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One row an algorithm; see zram_codec.h.  Chunks are small, so what a library does once a call
 * counts: contexts are kept, frames carry neither magic, checksum nor size.
 */
#include "config.h"

#include "backends/zram_codec.h"

#include <errno.h>
#include <isa-l/igzip_lib.h>
#include <lz4.h>
#include <lz4hc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define N_MAX 65536u /* a chunk */

/* What every zstd frame begins with; not stored. */
static const uint8_t zstd_magic[4] = {0x28, 0xb5, 0x2f, 0xfd};

struct deflate_state {
    struct isal_zstream stream;
    uint8_t level_buf[ISAL_DEF_LVL3_DEFAULT];
};

struct zram_codec_ctx {
    void *lz4, *lz4hc;
    ZSTD_CCtx *zstd_c;
    int zstd_level; /* set in zstd_c */
    ZSTD_DCtx *zstd_d;
    uint8_t *zstd_in; /* a frame with its magic again */
    struct deflate_state *deflate;
    struct inflate_state *inflate;
};

struct algorithm {
    const char *name;
    int8_t min, max, standard;
    size_t (*bound)(size_t n);
    size_t (*compress)(struct zram_codec_ctx *x, int level, const void *src, size_t n, void *dst);
    int (*decompress)(struct zram_codec_ctx *x, const void *src, size_t len, void *dst, size_t n);
};

static bool
have(void **p, size_t size)
{
    if (*p == NULL)
        *p = malloc(size);
    return *p != NULL;
}

/* --- raw ------------------------------------------------------------------------------------- */

static int
raw_decompress(struct zram_codec_ctx *x, const void *src, size_t len, void *dst, size_t n)
{
    (void)x;
    if (len != n)
        return -EILSEQ;
    memcpy(dst, src, n);
    return 0;
}

/* --- LZ4 ------------------------------------------------------------------------------------- */

static size_t
lz4_bound(size_t n)
{
    return (size_t)LZ4_compressBound((int)n);
}

static size_t
lz4_compress(struct zram_codec_ctx *x, int level, const void *src, size_t n, void *dst)
{
    if (!have(&x->lz4, sizeof(LZ4_stream_t)))
        return 0;
    /* With room for the worst case it need not look where it writes. */
    int len = LZ4_compress_fast_extState(x->lz4, src, dst, (int)n, (int)lz4_bound(n), level);
    return len > 0 ? (size_t)len : 0;
}

static size_t
lz4hc_compress(struct zram_codec_ctx *x, int level, const void *src, size_t n, void *dst)
{
    if (!have(&x->lz4hc, sizeof(LZ4_streamHC_t)))
        return 0;
    int len = LZ4_compress_HC_extStateHC(x->lz4hc, src, dst, (int)n, (int)lz4_bound(n), level);
    return len > 0 ? (size_t)len : 0;
}

static int
lz4_decompress(struct zram_codec_ctx *x, const void *src, size_t len, void *dst, size_t n)
{
    (void)x;
    return LZ4_decompress_safe(src, dst, (int)len, (int)n) == (int)n ? 0 : -EILSEQ;
}

/* --- zstd ------------------------------------------------------------------------------------ */

static bool
zstd_prepare(struct zram_codec_ctx *x, int level)
{
    if (x->zstd_c == NULL) {
        x->zstd_c = ZSTD_createCCtx();
        if (x->zstd_c == NULL)
            return false;
        (void)ZSTD_CCtx_setParameter(x->zstd_c, ZSTD_c_contentSizeFlag, 0);
        (void)ZSTD_CCtx_setParameter(x->zstd_c, ZSTD_c_checksumFlag, 0);
        x->zstd_level = 0;
    }
    if (x->zstd_level != level)
        (void)ZSTD_CCtx_setParameter(x->zstd_c, ZSTD_c_compressionLevel, level);
    x->zstd_level = level;
    return true;
}

static size_t
zstd_compress(struct zram_codec_ctx *x, int level, const void *src, size_t n, void *dst)
{
    if (!zstd_prepare(x, level))
        return 0;
    size_t len = ZSTD_compress2(x->zstd_c, dst, ZSTD_compressBound(n), src, n);
    if (ZSTD_isError(len) || len <= sizeof(zstd_magic))
        return 0;
    len -= sizeof(zstd_magic);
    memmove(dst, (uint8_t *)dst + sizeof(zstd_magic), len);
    return len;
}

static int
zstd_decompress(struct zram_codec_ctx *x, const void *src, size_t len, void *dst, size_t n)
{
    if (x->zstd_d == NULL)
        x->zstd_d = ZSTD_createDCtx();
    if (x->zstd_in == NULL) {
        x->zstd_in = malloc(sizeof(zstd_magic) + N_MAX);
        if (x->zstd_in != NULL)
            memcpy(x->zstd_in, zstd_magic, sizeof(zstd_magic));
    }
    if (x->zstd_d == NULL || x->zstd_in == NULL)
        return -ENOMEM;
    memcpy(x->zstd_in + sizeof(zstd_magic), src, len);
    size_t got = ZSTD_decompressDCtx(x->zstd_d, dst, n, x->zstd_in, len + sizeof(zstd_magic));
    return got == n ? 0 : -EILSEQ; /* an error is a number near SIZE_MAX */
}

/* --- deflate --------------------------------------------------------------------------------- */

static size_t
deflate_bound(size_t n)
{
    return n + n / 8 + 256; /* stored blocks; ISA-L wants some room to try in */
}

static size_t
deflate_compress(struct zram_codec_ctx *x, int level, const void *src, size_t n, void *dst)
{
    if (!have((void **)&x->deflate, sizeof(*x->deflate)))
        return 0;
    struct isal_zstream *z = &x->deflate->stream;
    isal_deflate_stateless_init(z);
    z->next_in = (uint8_t *)(uintptr_t)src;
    z->avail_in = (uint32_t)n;
    z->next_out = dst;
    z->avail_out = (uint32_t)deflate_bound(n);
    z->end_of_stream = 1;
    z->level = (uint32_t)level;
    z->level_buf = x->deflate->level_buf;
    z->level_buf_size = sizeof(x->deflate->level_buf);
    if (isal_deflate_stateless(z) != COMP_OK || z->avail_in != 0)
        return 0;
    return z->total_out;
}

static int
deflate_decompress(struct zram_codec_ctx *x, const void *src, size_t len, void *dst, size_t n)
{
    if (!have((void **)&x->inflate, sizeof(*x->inflate)))
        return -ENOMEM;
    struct inflate_state *s = x->inflate;
    isal_inflate_init(s);
    s->next_in = (uint8_t *)(uintptr_t)src;
    s->avail_in = (uint32_t)len;
    s->next_out = dst;
    s->avail_out = (uint32_t)n;
    if (isal_inflate_stateless(s) != ISAL_DECOMP_OK || s->total_out != n)
        return -EILSEQ;
    return 0;
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct algorithm algorithms[ZRAM_ALG_COUNT] = {
    [ZRAM_ALG_RAW] = {"raw", 1, 1, 1, NULL, NULL, raw_decompress},
    [ZRAM_ALG_LZ4] = {"lz4", 1, 1, 1, lz4_bound, lz4_compress, lz4_decompress},
    [ZRAM_ALG_LZ4HC] = {"lz4hc", 1, LZ4HC_CLEVEL_MAX, LZ4HC_CLEVEL_DEFAULT, lz4_bound,
                        lz4hc_compress, lz4_decompress},
    [ZRAM_ALG_ZSTD] = {"zstd", 1, 22, 3, ZSTD_compressBound, zstd_compress, zstd_decompress},
    [ZRAM_ALG_DEFLATE] = {"deflate", 1, 3, 2, deflate_bound, deflate_compress, deflate_decompress},
};

bool
zram_codec_is_valid(struct zram_codec c)
{
    return c.alg < ZRAM_ALG_COUNT && algorithms[c.alg].compress != NULL &&
           c.level >= algorithms[c.alg].min && c.level <= algorithms[c.alg].max;
}

const char *
zram_codec_name(unsigned alg)
{
    return alg < ZRAM_ALG_COUNT ? algorithms[alg].name : "?";
}

void
zram_codec_levels(unsigned alg, int *min, int *max, int *standard)
{
    const struct algorithm *a = &algorithms[alg < ZRAM_ALG_COUNT ? alg : ZRAM_ALG_RAW];
    *min = a->min;
    *max = a->max;
    *standard = a->standard;
}

const char *
zram_codec_show(struct zram_codec c, char *buf, size_t size)
{
    bool leveled = c.alg < ZRAM_ALG_COUNT && algorithms[c.alg].min != algorithms[c.alg].max;
    if (leveled)
        (void)snprintf(buf, size, "%s:%d", zram_codec_name(c.alg), c.level);
    else
        (void)snprintf(buf, size, "%s", zram_codec_name(c.alg));
    return buf;
}

static int
parse_level(const struct algorithm *a, const char *text, struct zram_codec *out, char *err,
            size_t errsize)
{
    char *end;
    errno = 0;
    long level = strtol(text, &end, 10);
    if (errno == 0 && end != text && *end == '\0' && level >= a->min && level <= a->max) {
        out->level = (int8_t)level;
        return 0;
    }
    if (a->min == a->max)
        (void)snprintf(err, errsize, "%s has no levels", a->name);
    else
        (void)snprintf(err, errsize, "%s: '%.16s' is no level, they are %d to %d", a->name, text,
                       a->min, a->max);
    return -EINVAL;
}

int
zram_codec_parse(const char *text, struct zram_codec *out, char *err, size_t errsize)
{
    size_t n = strcspn(text, ":");
    for (unsigned i = 0; i < ZRAM_ALG_COUNT; i++) {
        const struct algorithm *a = &algorithms[i];
        if (a->compress == NULL || strlen(a->name) != n || strncmp(text, a->name, n) != 0)
            continue;
        *out = (struct zram_codec){.alg = (uint8_t)i, .level = a->standard};
        return text[n] == ':' ? parse_level(a, text + n + 1, out, err, errsize) : 0;
    }
    (void)snprintf(err, errsize, "'%.32s' is no algorithm, there are lz4, lz4hc, zstd, deflate",
                   text);
    return -EINVAL;
}

struct zram_codec_ctx *
zram_codec_ctx_new(void)
{
    return calloc(1, sizeof(struct zram_codec_ctx));
}

void
zram_codec_ctx_free(struct zram_codec_ctx *x)
{
    if (x == NULL)
        return;
    free(x->lz4);
    free(x->lz4hc);
    (void)ZSTD_freeCCtx(x->zstd_c);
    (void)ZSTD_freeDCtx(x->zstd_d);
    free(x->zstd_in);
    free(x->deflate);
    free(x->inflate);
    free(x);
}

size_t
zram_codec_bound(size_t n)
{
    size_t most = n;
    for (unsigned i = 0; i < ZRAM_ALG_COUNT; i++) {
        size_t b = algorithms[i].bound != NULL ? algorithms[i].bound(n) : 0;
        most = b > most ? b : most;
    }
    return most;
}

size_t
zram_codec_compress(struct zram_codec_ctx *x, struct zram_codec c, const void *src, size_t n,
                    void *dst)
{
    if (n > N_MAX || !zram_codec_is_valid(c))
        return 0;
    size_t len = algorithms[c.alg].compress(x, c.level, src, n, dst);
    return len < n ? len : 0;
}

int
zram_codec_decompress(struct zram_codec_ctx *x, unsigned alg, const void *src, size_t len,
                      void *dst, size_t n)
{
    if (alg >= ZRAM_ALG_COUNT || len > N_MAX || n > N_MAX)
        return -EILSEQ;
    return algorithms[alg].decompress(x, src, len, dst, n);
}
