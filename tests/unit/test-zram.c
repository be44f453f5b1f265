/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compressed memory as a backend (backends/zram.c): options, every operation inline and by the
 * helper pool, a full store, live settings, close under requests.  The store itself has tests of
 * its own.
 */
#include "config.h"

#include "tests/unit/be_unit.h"

static struct be_opts
usual(void)
{
    return (struct be_opts){
        .type = "zram", .path = "z", .write_cache = true, .null_size = 64 * MIB};
}

static void
refused(struct be_opts o, const char *word)
{
    char err[256] = "";
    CU_ASSERT_PTR_NULL(be_new(&o, err, sizeof(err)));
    if (strstr(err, word) == NULL)
        printf("message: %s\n", err);
    CU_ASSERT_PTR_NOT_NULL(strstr(err, word));
}

#define WITH(field, value)                                                                         \
    ({                                                                                             \
        struct be_opts o_ = usual();                                                               \
        o_.field = value;                                                                          \
        o_;                                                                                        \
    })

static void
test_options(void)
{
    refused(WITH(bsopts, "a=b"), "'a'");
    refused(WITH(algorithm, "arj"), "arj");
    refused(WITH(level, 3), "lz4 has no levels");
    refused(WITH(chunk_size, 2048), "4096 to 65536");
    refused(WITH(chunk_size, 12288), "power of two");
    refused(WITH(null_size, UINT64_C(1) << 50), "16 TiB");
    struct be_opts o = WITH(algorithm, "zstd");
    o.level = 100;
    refused(o, "zstd has levels from 1 to");
    char err[256];
    struct be_opts none = WITH(null_size, 0);
    struct backend *be = be_new(&none, err, sizeof(err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(be);
    CU_ASSERT_EQUAL(be_open(be), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(be_error(be), "a size"));
    be_put(be);
}

static struct backend *
opened(const struct be_opts *o)
{
    struct backend *be = bu_open_opts(o);
    CU_ASSERT_PTR_NOT_NULL_FATAL(be);
    return be;
}

static void
test_info(void)
{
    struct be_opts o = WITH(chunk_size, 64 * KIB);
    struct backend *be = opened(&o);
    struct be_info in;
    be_info(be, &in);
    CU_ASSERT_EQUAL(in.size, 64 * MIB);
    CU_ASSERT_EQUAL(in.block_size, 512);
    CU_ASSERT_EQUAL(in.discard_gran, 64 * KIB);
    CU_ASSERT_TRUE(in.is_volatile);
    CU_ASSERT_FALSE(in.rotational);
    CU_ASSERT_EQUAL(in.caps, BE_CAP_MAP | BE_CAP_DISCARD | BE_CAP_ZERO);
    CU_ASSERT_STRING_EQUAL(in.kind, "zram");
    CU_ASSERT_STRING_EQUAL(be_identity(be), "zram:z");
    uint8_t b[512];
    CU_ASSERT_EQUAL(bu_do(be, IO_READ_REF, 0, NULL, 512, 0), -EOPNOTSUPP);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, b, 512, 0), 0);
    CU_ASSERT_TRUE(bu_is_zero(b, 512));
    bu_close(be);
}

/* Half of each page is text, so that it compresses. */
static uint8_t *
mixed(size_t len, unsigned seed)
{
    uint8_t *p = bu_mem(len, seed);
    for (size_t i = 0; i < len; i++) {
        if (i % 4096 < 2048)
            p[i] = (uint8_t)('a' + i % 7);
    }
    return p;
}

static unsigned
runs(struct backend *be, uint64_t off, uint64_t len, struct io_extent *ext, unsigned max)
{
    struct bu_io b = {.io = {.ext = ext, .ext_max = max}};
    bu_start(be, &b, IO_MAP, off, NULL, len, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    return b.io.ext_n;
}

static void
operations(const char *algorithm, uint32_t chunk)
{
    struct be_opts o = WITH(algorithm, algorithm);
    struct io_extent ext[8];
    o.chunk_size = chunk;
    struct backend *be = opened(&o);
    uint8_t *p = mixed(4 * MIB, 1), *q = bu_mem(4 * MIB, 2);
    /* by the pool, then inline, also what is no whole chunk */
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, MIB, p, 4 * MIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, MIB + 512, p, 1536, IO_FUA), 0);
    memmove(p + 512, p, 1536);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, MIB, q, 4 * MIB, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, 4 * MIB), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, MIB + 1024, q, 512, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p + 1024, q, 512), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    CU_ASSERT_EQUAL(runs(be, 0, 64 * MIB, ext, 8), 3);
    CU_ASSERT_FALSE(ext[0].mapped);
    CU_ASSERT_EQUAL(ext[0].len, MIB);
    CU_ASSERT_TRUE(ext[1].mapped);
    CU_ASSERT_EQUAL(ext[1].len, 4 * MIB);
    CU_ASSERT_EQUAL(ext[2].len, 59 * MIB);
    CU_ASSERT_EQUAL(runs(be, 0, 64 * MIB, ext, 2), 2);
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, MIB, NULL, 128 * KIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_DISCARD, 2 * MIB, NULL, MIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, MIB, q, 4 * MIB, 0), 0);
    CU_ASSERT_TRUE(bu_is_zero(q, 128 * KIB));
    CU_ASSERT_TRUE(bu_is_zero(q + MIB, MIB));
    CU_ASSERT_EQUAL(memcmp(p + 2 * MIB, q + 2 * MIB, 2 * MIB), 0);
    CU_ASSERT_EQUAL(runs(be, MIB, 4 * MIB, ext, 8), 3);
    CU_ASSERT_FALSE(ext[1].mapped);
    CU_ASSERT_EQUAL(ext[1].len, MIB);
    CU_ASSERT_EQUAL(bu_do(be, IO_DISCARD, 0, NULL, 64 * MIB, 0), 0); /* the pool's */
    CU_ASSERT_EQUAL(runs(be, 0, 64 * MIB, ext, 8), 1);
    free(p);
    free(q);
    bu_close(be);
}

static void
test_operations(void)
{
    operations(NULL, 4096);
    operations("lz4", 64 * KIB);
    operations("lz4hc", 16 * KIB);
    operations("zstd", 4096);
    operations("deflate", 64 * KIB);
}

/* What takes long does not hold up the loop. */
static void
test_loop_goes_on(void)
{
    struct be_opts o = WITH(algorithm, "zstd");
    o.level = 19;
    o.chunk_size = 64 * KIB;
    struct backend *be = opened(&o), *other = bu_open("null", NULL, false, NULL);
    uint8_t *p = mixed(2 * MIB, 3), b[512];
    struct bu_io big = {0};
    bu_start(be, &big, IO_WRITE, 0, p, 2 * MIB, 0);
    for (unsigned i = 0; i < 10; i++)
        CU_ASSERT_EQUAL(bu_do(other, IO_READ, 0, b, 512, 0), 0);
    CU_ASSERT_EQUAL(big.ends, 0);
    CU_ASSERT_EQUAL(bu_wait(&big), 0);
    free(p);
    bu_close(other);
    bu_close(be);
}

static void
test_cancel(void)
{
    struct be_opts o = WITH(algorithm, "zstd");
    o.level = 19;
    struct backend *be = opened(&o);
    uint8_t *p = mixed(4 * MIB, 4);
    struct bu_io many[80];
    memset(many, 0, sizeof(many));
    unsigned canceled = 0;
    for (unsigned i = 0; i < 80; i++)
        bu_start(be, &many[i], IO_WRITE, 0, p, i < 79 ? 4 * MIB / 16 : 4 * MIB, 0);
    for (unsigned i = 0; i < 80; i++)
        be_cancel(&many[i].io);
    for (unsigned i = 0; i < 80; i++) {
        int res = bu_wait(&many[i]);
        CU_ASSERT_TRUE(res == 0 || res == -ECANCELED);
        canceled += res == -ECANCELED;
        CU_ASSERT_EQUAL(many[i].ends, 1);
    }
    CU_ASSERT_TRUE(canceled > 0);
    free(p);
    bu_close(be);
}

static void
test_full(void)
{
    struct be_opts o = WITH(mem_limit, 2 * MIB);
    struct backend *be = opened(&o);
    uint8_t *p = bu_mem(MIB, 5), *q = bu_mem(MIB, 6);
    unsigned n = 0;
    int res = 0;
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, MIB, 0), 0);
    for (n = 1; n < 16 && res == 0; n++) {
        struct bu_io b = {0};
        bu_start(be, &b, IO_WRITE, n * MIB, p, MIB, IO_FUA);
        res = bu_wait(&b);
        if (res < 0) {
            CU_ASSERT_TRUE(b.io.fail_offset >= n * MIB);
            CU_ASSERT_TRUE(b.io.fail_offset < (n + 1) * MIB);
        }
    }
    CU_ASSERT_EQUAL(res, -ENOSPC);
    CU_ASSERT_FALSE(be_flush_failed(be));
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, q, MIB, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, MIB), 0);
    /* what is given back can be used again */
    CU_ASSERT_EQUAL(bu_do(be, IO_DISCARD, 0, NULL, 16 * MIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 20 * MIB, p, MIB, 0), 0);
    free(p);
    free(q);
    bu_close(be);
}

static void
on_counter(void *arg, const char *group, const char *name, uint64_t value)
{
    uint64_t *v = arg;
    if (strcmp(group, "mm_stat") == 0 && strcmp(name, "orig_data_size") == 0)
        v[0] = value;
    if (strcmp(group, "mm_stat") == 0 && strcmp(name, "mem_limit") == 0)
        v[1] = value;
    v[2]++;
}

static void
tune(const char *layers)
{
    struct be_opts o = WITH(layers, layers);
    struct backend *be = opened(&o);
    uint8_t *p = mixed(MIB, 7), *q = bu_mem(MIB, 8);
    uint64_t v[3] = {0};
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, MIB, 0), 0);
    o.algorithm = "zstd";
    o.level = 5;
    o.mem_limit = 32 * MIB;
    o.null_size = 128 * MIB;
    CU_ASSERT_EQUAL(be_tune(be, &o), 0);
    CU_ASSERT_EQUAL(be_size(be), 128 * MIB);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 127 * MIB, p, MIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, q, MIB, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, MIB), 0);
    be_each_counter(be, on_counter, v);
    CU_ASSERT_EQUAL(v[0], 2 * MIB);
    CU_ASSERT_EQUAL(v[1], 32 * MIB);
    CU_ASSERT_TRUE(v[2] > 20);
    o.null_size = 64 * MIB;
    CU_ASSERT_EQUAL(be_tune(be, &o), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(be_error(be), "only grows"));
    o.null_size = 128 * MIB;
    o.level = 77;
    CU_ASSERT_EQUAL(be_tune(be, &o), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(be_error(be), "77"));
    free(p);
    free(q);
    bu_close(be);
}

static void
test_tune(void)
{
    tune(NULL);
    tune("error:op=flush delay:us=1,op=flush");
    struct backend *be = bu_open("null", NULL, false, NULL);
    struct be_opts o = usual();
    CU_ASSERT_EQUAL(be_tune(be, &o), -EOPNOTSUPP);
    bu_close(be);
}

static void
test_layers(void)
{
    struct be_opts o = WITH(layers, "error:op=write,errno=ENOSPC");
    struct backend *be = opened(&o);
    uint8_t b[512] = {0};
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, b, 512, 0), -ENOSPC);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, b, 512, 0), 0);
    bu_close(be);
}

/* Requests that close finds under way end well, and the next life begins empty. */
static void
test_close(void)
{
    struct be_opts o = WITH(algorithm, "zstd");
    o.level = 15;
    struct backend *be = opened(&o);
    uint8_t *p = mixed(4 * MIB, 9);
    struct bu_io b = {0};
    be_acknowledge(be);
    bu_start(be, &b, IO_WRITE, 0, p, 4 * MIB, 0);
    be_close(be);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 512, 0), -ENXIO);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    for (unsigned i = 0; i < 1000 && be_open(be) == -EBUSY; i++)
        bu_turn_ms(5);
    CU_ASSERT_EQUAL(be_state(be), BE_READY);
    CU_ASSERT_FALSE(be_acknowledged(be));
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 4 * MIB, 0), 0);
    CU_ASSERT_TRUE(bu_is_zero(p, 4 * MIB));
    CU_ASSERT_EQUAL(be_probe(be), 0);
    free(p);
    bu_close(be);
}

static void
test_work(void)
{
    struct be_opts o = usual();
    struct backend *be = opened(&o), *null = bu_open("null", NULL, false, NULL);
    uint8_t *p = mixed(4 * MIB, 10), *q = bu_mem(4 * MIB, 11);
    char err[256] = "";
    struct be_zram_work w = {.max_ms = 10000};
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 4 * MIB, 0), 0);
    CU_ASSERT_EQUAL(be_zram_work(be, &w, err, sizeof(err)), 0);
    w = (struct be_zram_work){.recompress = true, .codec = "zstd:9", .max_ms = 10000};
    CU_ASSERT_EQUAL(be_zram_work(be, &w, err, sizeof(err)), 0);
    CU_ASSERT_FALSE(w.again);
    CU_ASSERT_EQUAL(w.done, 1024);
    CU_ASSERT_TRUE(w.gained > 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, q, 4 * MIB, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, 4 * MIB), 0);
    w = (struct be_zram_work){.recompress = true, .codec = "arj"};
    CU_ASSERT_EQUAL(be_zram_work(be, &w, err, sizeof(err)), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err, "arj"));
    CU_ASSERT_EQUAL(be_zram_work(null, &w, err, sizeof(err)), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err, "not in compressed memory"));
    free(p);
    free(q);
    bu_close(null);
    bu_close(be);
}

int
main(void)
{
    static const struct bu_case cases[] = {
        {"options", test_options},
        {"info", test_info},
        {"operations", test_operations},
        {"loop goes on", test_loop_goes_on},
        {"cancel", test_cancel},
        {"full", test_full},
        {"tune", test_tune},
        {"layers", test_layers},
        {"close", test_close},
        {"work", test_work},
    };
    return bu_main("zram", cases, sizeof(cases) / sizeof(cases[0]));
}
