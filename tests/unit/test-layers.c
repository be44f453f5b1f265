/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layers error, delay and trace, alone and on top of each other.
 */
#include "config.h"

#include "tests/unit/be_unit.h"

static char when[128];

static const char *
with_when(const char *options)
{
    static char text[256];
    (void)snprintf(when, sizeof(when), "%s/when", bu_dir);
    (void)snprintf(text, sizeof(text), "%s,when=%s", options, when);
    (void)unlink(when);
    return text;
}

/* --- error ----------------------------------------------------------------------------------- */

static void
test_error_pattern(void)
{
    uint8_t buf[512];
    struct backend *be =
        bu_open("null", NULL, false, "error:op=read,errno=ENXIO,after=2,every=3,count=2");
    static const int expect[] = {0, 0, 0, 0, -ENXIO, 0, 0, -ENXIO, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof(expect) / sizeof(expect[0]); i++) {
        CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, buf, 512, 0), expect[i]);
        CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, buf, 512, 0), 0);
    }
    bu_close(be);
}

static void
test_error_range(void)
{
    struct backend *be = bu_open("null", NULL, false, "error:op=read,write,at=8k,len=4k");
    uint8_t *p = bu_mem(64 * KIB, 1);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 8 * KIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 12 * KIB, p, 8 * KIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 11 * KIB, p, 4 * KIB, 0), -EIO);
    struct bu_io b = {0};
    bu_start(be, &b, IO_READ, 4 * KIB, p, 32 * KIB, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), -EIO);
    CU_ASSERT_EQUAL(b.io.fail_offset, 8 * KIB);
    free(p);
    bu_close(be);
}

static void
test_error_when(void)
{
    uint8_t buf[512];
    struct backend *be = bu_open("null", NULL, false, with_when("error:op=all"));
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, buf, 512, 0), 0);
    bu_touch(when);
    bu_turn_ms(3);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, buf, 512, 0), -EIO);
    (void)unlink(when);
    bu_turn_ms(3);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, buf, 512, 0), 0);
    bu_close(be);
}

static void
test_error_late(void)
{
    struct backend *be =
        bu_open("fileio", bu_file(bu_dir, "late", MIB), false, "error:op=write,late=1,count=1");
    uint8_t *p = bu_mem(512, 7), *q = bu_mem(512, 8);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 512, p, 512, 0), -EIO);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 512, q, 512, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, 512), 0); /* done all the same */
    free(p);
    free(q);
    bu_close(be);
}

/* --- delay ----------------------------------------------------------------------------------- */

#define DEPTH 64

static void
test_delay_depth(void)
{
    struct backend *be = bu_open("null", NULL, false, "delay:ms=30,op=read");
    struct bu_io *b = calloc(DEPTH, sizeof(*b));
    uint8_t buf[512];
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, buf, 512, 0), 0);
    uint64_t start = clock_us();
    for (unsigned i = 0; i < DEPTH; i++)
        bu_start(be, &b[i], IO_READ, 0, buf, 512, 0);
    CU_ASSERT_EQUAL(be_in_flight(be), DEPTH);
    for (unsigned i = 0; i < DEPTH; i++)
        CU_ASSERT_EQUAL(bu_wait(&b[i]), 0);
    uint64_t took = clock_us() - start;
    CU_ASSERT_TRUE(took >= 29000);
    CU_ASSERT_TRUE(took < 30000 * DEPTH / 4); /* together, not one after another */
    free(b);
    bu_close(be);
}

static void
test_delay_cancel(void)
{
    uint8_t buf[512];
    struct backend *be = bu_open("null", NULL, false, "delay:ms=60000");
    struct bu_io b = {0};
    bu_start(be, &b, IO_READ, 0, buf, 512, 0);
    bu_turn_ms(3);
    CU_ASSERT_EQUAL(b.ends, 0);
    b.in_submit = true;
    be_cancel(&b.io);
    be_cancel(&b.io); /* twice is once */
    b.in_submit = false;
    CU_ASSERT_EQUAL(bu_wait(&b), -ECANCELED);
    bu_turn_ms(3);
    CU_ASSERT_EQUAL(b.ends, 1);
    bu_close(be);
}

static void
test_hang(void)
{
    uint8_t buf[512];
    struct backend *be = bu_open("null", NULL, false, "delay:hang=1,op=write,flush");
    struct bu_io b = {0}, f = {0};
    bu_start(be, &b, IO_WRITE, 0, buf, 512, IO_FUA);
    bu_start(be, &f, IO_FLUSH, 0, NULL, 0, 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, buf, 512, 0), 0);
    bu_turn_ms(50);
    CU_ASSERT_EQUAL(b.ends + f.ends, 0);
    be_close(be); /* does not wait */
    CU_ASSERT_EQUAL(be_in_flight(be), 2);
    be_cancel(&b.io);
    be_cancel(&f.io);
    CU_ASSERT_EQUAL(bu_wait(&b), -ECANCELED);
    CU_ASSERT_EQUAL(bu_wait(&f), -ECANCELED);
    CU_ASSERT_FALSE(be_flush_failed(be));
    bu_close(be);
}

static void
test_hang_when(void)
{
    uint8_t buf[512];
    struct backend *be = bu_open("null", NULL, false, with_when("delay:hang=1"));
    struct bu_io b = {0};
    bu_touch(when);
    bu_turn_ms(3);
    bu_start(be, &b, IO_READ, 0, buf, 512, 0);
    bu_turn_ms(60);
    CU_ASSERT_EQUAL(b.ends, 0);
    (void)unlink(when);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    bu_close(be);
}

/* --- trace and stacks ------------------------------------------------------------------------ */

static void
test_stack(void)
{
    char layers[256], log[128];
    const char *path = bu_file(bu_dir, "stack", MIB);
    (void)snprintf(log, sizeof(log), "%s/trace", bu_dir);
    (void)unlink(log);
    (void)snprintf(layers, sizeof(layers),
                   "error:op=read,after=1 delay:us=500 trace:file=%s delay:us=100,op=read", log);
    struct backend *be = bu_open("fileio", path, false, layers);
    struct be_info in;
    be_info(be, &in);
    CU_ASSERT_EQUAL(in.size, MIB);
    CU_ASSERT_STRING_EQUAL(in.kind, "file");
    CU_ASSERT_PTR_NOT_NULL(strstr(be_identity(be), "stack"));
    uint8_t *p = bu_mem(8 * KIB, 3), *q = bu_mem(8 * KIB, 4);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 4096, p, 8 * KIB, IO_FUA), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 4096, q, 8 * KIB, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, 8 * KIB), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 4096, q, 8 * KIB, 0), -EIO); /* never reaches the trace */
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    bu_close(be);
    char *text = bu_slurp(log);
    unsigned long n, worker, off, len;
    char op[16], flags[8];
    int res;
    char *line = text;
    CU_ASSERT_EQUAL(
        sscanf(line, "%lu %*u w%lu %15s %lu %lu %7s %d", &n, &worker, op, &off, &len, flags, &res),
        7);
    CU_ASSERT_EQUAL(n, 0);
    CU_ASSERT_STRING_EQUAL(op, "write");
    CU_ASSERT_EQUAL(off, 4096);
    CU_ASSERT_EQUAL(len, 8 * KIB);
    CU_ASSERT_STRING_EQUAL(flags, "f");
    CU_ASSERT_EQUAL(res, 0);
    line = strchr(line, '\n') + 1;
    CU_ASSERT_PTR_NOT_NULL(strstr(line, " read 4096 8192 - 0 "));
    line = strchr(line, '\n') + 1;
    CU_ASSERT_PTR_NOT_NULL(strstr(line, " flush "));
    line = strchr(line, '\n') + 1;
    CU_ASSERT_STRING_EQUAL(line, "");
    free(text);
    free(p);
    free(q);
}

/* A write that was under way when the cache was turned off is flushed before it completes. */
static void
test_cache_off_meanwhile(void)
{
    char layers[256], log[128];
    (void)snprintf(log, sizeof(log), "%s/late-trace", bu_dir);
    (void)unlink(log);
    (void)snprintf(layers, sizeof(layers), "trace:file=%s delay:ms=20,op=write", log);
    struct backend *be = bu_open("fileio", bu_file(bu_dir, "off", MIB), false, layers);
    uint8_t *p = bu_mem(512, 1);
    struct bu_io b = {0};
    bu_start(be, &b, IO_WRITE, 0, p, 512, 0);
    be_set_write_cache(be, false);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    CU_ASSERT_EQUAL(b.io.op, IO_WRITE);
    CU_ASSERT_EQUAL(b.io.flags, 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 512, p, 512, 0), 0);
    be_set_write_cache(be, true);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 1024, p, 512, 0), 0);
    bu_close(be);
    char *text = bu_slurp(log);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " write 0 512 - 0 "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " flush 0 512 - 0 "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " write 512 512 f 0 "));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, " write 1024 512 - 0 "));
    free(text);
    free(p);
}

int
main(void)
{
    static const struct bu_case cases[] = {
        {"error: after, every, count", test_error_pattern},
        {"error: at, len, fail_offset", test_error_range},
        {"error: when a file exists", test_error_when},
        {"error: late", test_error_late},
        {"delay: full depth at once", test_delay_depth},
        {"delay: cancel", test_delay_cancel},
        {"delay: a hang ends by cancel; close does not wait", test_hang},
        {"delay: a hang ends with its file", test_hang_when},
        {"four layers", test_stack},
        {"write cache off while a write is under way", test_cache_off_meanwhile},
    };
    return bu_main("layers", cases, sizeof(cases) / sizeof(cases[0]));
}
