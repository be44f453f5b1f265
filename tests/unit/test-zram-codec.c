/* SPDX-License-Identifier: BSD-2-Clause */
/* backends/zram_codec.c: every algorithm and level there and back, bounds, damaged input. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/zram_codec.h"
#include "tests/unit/unit.h"

static uint32_t rng = 1;

static uint32_t
next(void)
{
    rng = rng * 1664525u + 1013904223u;
    return rng >> 8;
}

/* Words from a small set: compresses, but not to nothing. */
static void
fill_text(uint8_t *p, size_t n)
{
    static const char *const words[] = {"struct ", "return ", "static ", "if (", "0x", "\n    "};
    size_t at = 0;
    while (at < n) {
        const char *w = words[next() % 6];
        for (; *w != '\0' && at < n; w++)
            p[at++] = (uint8_t)*w;
        if (at < n)
            p[at++] = (uint8_t)next();
    }
}

static void
fill_random(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)next();
}

/* Exact allocations, so that AddressSanitizer sees a byte too many. */
static size_t
there_and_back(struct zram_codec_ctx *x, struct zram_codec c, const uint8_t *src, size_t n)
{
    uint8_t *z = malloc(zram_codec_bound(n));
    size_t len = zram_codec_compress(x, c, src, n, z);
    CU_ASSERT(len < n);
    if (len > 0) {
        uint8_t *exact = malloc(len), *back = malloc(n);
        memcpy(exact, z, len);
        CU_ASSERT_EQUAL(zram_codec_decompress(x, c.alg, exact, len, back, n), 0);
        CU_ASSERT(memcmp(back, src, n) == 0);
        free(exact);
        free(back);
    }
    free(z);
    return len;
}

static void
test_levels(void)
{
    static const size_t sizes[] = {64, 512, 4096, 8192, 65536};
    struct zram_codec_ctx *x = zram_codec_ctx_new();
    for (unsigned alg = ZRAM_ALG_LZ4; alg < ZRAM_ALG_COUNT; alg++) {
        int min, max, standard;
        zram_codec_levels(alg, &min, &max, &standard);
        CU_ASSERT(min <= standard && standard <= max);
        for (int level = min; level <= max; level++) {
            struct zram_codec c = {.alg = (uint8_t)alg, .level = (int8_t)level};
            for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
                uint8_t *src = malloc(sizes[i]);
                fill_text(src, sizes[i]);
                size_t len = there_and_back(x, c, src, sizes[i]);
                CU_ASSERT(sizes[i] < 4096 || (len > 0 && len < sizes[i] * 3 / 4));
                memset(src, 'x', sizes[i]);
                len = there_and_back(x, c, src, sizes[i]);
                CU_ASSERT(len > 0);
                fill_random(src, sizes[i]);
                len = there_and_back(x, c, src, sizes[i]);
                CU_ASSERT(sizes[i] < 4096 || len == 0);
                free(src);
            }
        }
    }
    zram_codec_ctx_free(x);
}

static void
test_raw(void)
{
    struct zram_codec_ctx *x = zram_codec_ctx_new();
    uint8_t src[64] = {1, 2, 3}, dst[64];
    CU_ASSERT_EQUAL(zram_codec_decompress(x, ZRAM_ALG_RAW, src, 64, dst, 64), 0);
    CU_ASSERT(memcmp(src, dst, 64) == 0);
    CU_ASSERT_EQUAL(zram_codec_decompress(x, ZRAM_ALG_RAW, src, 63, dst, 64), -EILSEQ);
    CU_ASSERT_EQUAL(zram_codec_decompress(x, ZRAM_ALG_COUNT, src, 64, dst, 64), -EILSEQ);
    CU_ASSERT_EQUAL(zram_codec_compress(x, (struct zram_codec){ZRAM_ALG_RAW, 1}, src, 64, dst), 0);
    zram_codec_ctx_free(x);
}

/* Flipped bits, cut ends, other lengths: an error or other data, never an overrun. */
static void
test_damaged(void)
{
    struct zram_codec_ctx *x = zram_codec_ctx_new();
    const size_t n = 4096;
    uint8_t *src = malloc(n), *z = malloc(zram_codec_bound(n)), *back = malloc(n);
    fill_text(src, n);
    for (unsigned alg = ZRAM_ALG_LZ4; alg < ZRAM_ALG_COUNT; alg++) {
        int min, max, standard;
        zram_codec_levels(alg, &min, &max, &standard);
        size_t len =
            zram_codec_compress(x, (struct zram_codec){(uint8_t)alg, (int8_t)standard}, src, n, z);
        CU_ASSERT_FATAL(len > 0);
        for (unsigned i = 0; i < 2000; i++) {
            size_t cut = i % 2 != 0 ? len : next() % len;
            uint8_t *bad = malloc(cut + 1);
            memcpy(bad, z, cut);
            for (unsigned k = i % 2 != 0 ? 1 + next() % 8 : 0; k > 0; k--)
                bad[next() % cut] ^= (uint8_t)(1u << next() % 8);
            bad = realloc(bad, cut > 0 ? cut : 1);
            int err = zram_codec_decompress(x, alg, bad, cut, back, n);
            CU_ASSERT(err == 0 || err == -EILSEQ);
            CU_ASSERT(cut == len || err == -EILSEQ || memcmp(back, src, n) == 0);
            free(bad);
        }
        CU_ASSERT_EQUAL(zram_codec_decompress(x, alg, z, len, back, n - 1), -EILSEQ);
        CU_ASSERT_EQUAL(zram_codec_decompress(x, alg, z, 0, back, n), -EILSEQ);
        uint8_t *more = malloc(n + 1);
        CU_ASSERT_EQUAL(zram_codec_decompress(x, alg, z, len, more, n + 1), -EILSEQ);
        free(more);
        CU_ASSERT_EQUAL(zram_codec_decompress(x, alg, z, len, back, n), 0);
        CU_ASSERT(memcmp(back, src, n) == 0);
    }
    free(src);
    free(z);
    free(back);
    zram_codec_ctx_free(x);
}

static void
test_names(void)
{
    static const char *const good[] = {"lz4", "lz4hc:12", "zstd:1", "zstd:22", "deflate:3"};
    static const struct {
        const char *text, *err;
    } bad[] = {
        {"lzo", "'lzo' is no algorithm, there are lz4, lz4hc, zstd, deflate"},
        {"raw", "'raw' is no algorithm, there are lz4, lz4hc, zstd, deflate"},
        {"", "'' is no algorithm, there are lz4, lz4hc, zstd, deflate"},
        {"lz4:3", "lz4 has no levels"},
        {"zstd:", "zstd: '' is no level, they are 1 to 22"},
        {"zstd:23", "zstd: '23' is no level, they are 1 to 22"},
        {"lz4hc:0", "lz4hc: '0' is no level, they are 1 to 12"},
        {"deflate:1x", "deflate: '1x' is no level, they are 1 to 3"},
    };
    struct zram_codec c;
    char err[128], buf[32];
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CU_ASSERT_EQUAL(zram_codec_parse(good[i], &c, err, sizeof(err)), 0);
        CU_ASSERT_STRING_EQUAL(zram_codec_show(c, buf, sizeof(buf)), good[i]);
        CU_ASSERT(zram_codec_is_valid(c));
    }
    CU_ASSERT_EQUAL(zram_codec_parse("zstd", &c, err, sizeof(err)), 0);
    CU_ASSERT_STRING_EQUAL(zram_codec_show(c, buf, sizeof(buf)), "zstd:3");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CU_ASSERT_EQUAL(zram_codec_parse(bad[i].text, &c, err, sizeof(err)), -EINVAL);
        CU_ASSERT_STRING_EQUAL(err, bad[i].err);
    }
    CU_ASSERT(!zram_codec_is_valid((struct zram_codec){ZRAM_ALG_RAW, 1}));
    CU_ASSERT(!zram_codec_is_valid((struct zram_codec){ZRAM_ALG_COUNT, 1}));
    CU_ASSERT(!zram_codec_is_valid((struct zram_codec){ZRAM_ALG_LZ4, 2}));
    CU_ASSERT_STRING_EQUAL(zram_codec_name(99), "?");
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"every level there and back", test_levels},
        {"raw", test_raw},
        {"damaged objects", test_damaged},
        {"names and levels", test_names},
    };
    return UNIT_RUN("zram-codec", tests);
}
