/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wrapper round every backend (backends/backend.c), over null and file stores.
 */
#include "config.h"

#include "tests/unit/be_unit.h"

#include <pthread.h>

static void
expect_no_backend(const struct be_opts *o, const char *word)
{
    char err[256] = "";
    CU_ASSERT_PTR_NULL(be_new(o, err, sizeof(err)));
    if (strstr(err, word) == NULL)
        printf("message: %s\n", err);
    CU_ASSERT_PTR_NOT_NULL(strstr(err, word));
}

static void
test_new_refuses(void)
{
    expect_no_backend(&(struct be_opts){.type = "floppy"}, "floppy");
    expect_no_backend(&(struct be_opts){.type = "null", .block_size = 513}, "513");
    expect_no_backend(&(struct be_opts){.type = "null", .block_size = 256}, "256");
    expect_no_backend(&(struct be_opts){.type = "null", .bsopts = "a=b"}, "'a'");
    expect_no_backend(&(struct be_opts){.type = "null", .bsopts = "a"}, "'a'");
    expect_no_backend(&(struct be_opts){.type = "null", .layers = "sieve"}, "sieve");
    expect_no_backend(&(struct be_opts){.type = "null", .layers = "delay"}, "delay");
    expect_no_backend(&(struct be_opts){.type = "null", .layers = "delay:ms=fast"}, "ms");
    expect_no_backend(&(struct be_opts){.type = "null", .layers = "delay:ms=1 error:op=eat"}, "op");
    expect_no_backend(&(struct be_opts){.type = "null", .layers = "error:errno=EWHAT"}, "errno");
    expect_no_backend(&(struct be_opts){.type = "null", .layers = "trace:file=relative"}, "file");
    expect_no_backend(&(struct be_opts){.type = "null", .layers = "record"}, "file");
    expect_no_backend(&(struct be_opts){.type = "null", .layers = "error error error error error"},
                      "layers");
}

static void
count_path(const char *path, bool made, void *arg)
{
    char *all = arg;
    size_t n = strlen(all);
    (void)snprintf(all + n, 256 - n, "%s%s;", path, made ? "*" : "");
}

static void
test_paths(void)
{
    char all[256] = "", err[128];
    struct backend *be =
        be_new(&(struct be_opts){.type = "fileio",
                                 .path = "/a/store",
                                 .layers = "trace:file=/t delay:ms=1 record:file=/r"},
               err, sizeof(err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(be);
    be_each_path(be, count_path, all);
    CU_ASSERT_STRING_EQUAL(all, "/t*;/r*;/a/store;");
    CU_ASSERT_STRING_EQUAL(be_path(be), "/a/store");
    CU_ASSERT_STRING_EQUAL(be_identity(be), "");
    CU_ASSERT_EQUAL(be_state(be), BE_CLOSED);
    be_put(be);
}

static void
test_not_open(void)
{
    char err[128];
    uint8_t buf[512];
    struct backend *be = be_new(&(struct be_opts){.type = "null", .null_size = MIB}, err, 128);
    struct be_info in;
    be_info(be, &in);
    CU_ASSERT_EQUAL(in.size, 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, buf, 512, 0), -ENXIO);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), -ENXIO);
    CU_ASSERT_FALSE(be_flush_failed(be)); /* the store was not asked */
    CU_ASSERT_EQUAL(be_probe(be), 0);     /* nobody wanted it open */
    CU_ASSERT_EQUAL(be_state(be), BE_CLOSED);
    be_put(be);
}

static void
test_null(void)
{
    struct backend *be = bu_open("nullio", NULL, false, NULL);
    struct be_info in;
    be_info(be, &in);
    CU_ASSERT_EQUAL(in.size, 64 * MIB);
    CU_ASSERT_EQUAL(in.block_size, 512);
    CU_ASSERT_STRING_EQUAL(in.kind, "null");
    uint8_t *p = bu_mem(64 * KIB, 1);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 64 * KIB, IO_FUA), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 64 * KIB, 0), 0);
    CU_ASSERT_TRUE(bu_is_zero(p, 64 * KIB));
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 0, NULL, 64 * KIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_DISCARD, 0, NULL, 64 * KIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    struct io_extent ext[2];
    struct bu_io b = {.io = {.ext = ext, .ext_max = 2}};
    bu_start(be, &b, IO_MAP, 0, NULL, MIB, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    CU_ASSERT_EQUAL(b.io.ext_n, 1);
    CU_ASSERT_EQUAL(ext[0].len, MIB);
    CU_ASSERT_FALSE(ext[0].mapped);
    free(p);
    bu_close(be);
}

static void
lend(struct backend *be, uint64_t len)
{
    struct bu_io b = {0};
    uint64_t sum = 0;
    bu_start(be, &b, IO_READ_REF, 0, NULL, len, 0);
    CU_ASSERT_EQUAL_FATAL(bu_wait(&b), 0);
    for (unsigned i = 0; i < b.io.niov; i++) {
        sum += b.io.iov[i].iov_len;
        CU_ASSERT_TRUE(bu_is_zero(b.io.iov[i].iov_base, b.io.iov[i].iov_len));
    }
    CU_ASSERT_EQUAL(sum, len);
    io_release_ref(&b.io);
}

static void
test_read_ref(void)
{
    struct backend *be = bu_open("null", NULL, false, "delay:us=100,op=read");
    lend(be, 512);
    lend(be, MIB);
    lend(be, 3 * MIB + 512);
    bu_close(be);
    be = bu_open("fileio", bu_file(bu_dir, "f", MIB), false, NULL);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ_REF, 0, NULL, 512, 0), -EOPNOTSUPP);
    bu_close(be);
}

static void
test_read_only(void)
{
    const char *path = bu_file(bu_dir, "ro", MIB);
    uint8_t *p = bu_mem(512, 1);
    struct backend *be =
        bu_open_opts(&(struct be_opts){.path = path, .read_only = true, .write_cache = true});
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, 0), -EROFS);
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 0, NULL, 512, IO_FUA), -EROFS);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 512, 0), 0);
    CU_ASSERT_TRUE(bu_is_zero(p, 512));
    bu_close(be);
    free(p);
}

static void
test_sticky_flush(void)
{
    uint8_t *p = bu_mem(512, 1);
    struct backend *be =
        bu_open("fileio", bu_file(bu_dir, "s", MIB), false, "error:op=flush,count=1");
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), -EIO);
    CU_ASSERT_TRUE(be_flush_failed(be));
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), -EIO); /* the layer would let it pass */
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, IO_FUA), -EIO);
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 0, NULL, 512, IO_FUA), -EIO);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 512, IO_FUA), 0);
    be_set_write_cache(be, false);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, 0), -EIO);
    be_clear_flush_error(be);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    bu_close(be);
    free(p);
}

/* Which failures of a FUA write are proof of lost data. */
static void
test_sticky_fua(void)
{
    static const struct {
        const char *layer;
        bool sticky;
    } rows[] = {
        {"error:op=write,errno=EIO", true},
        {"error:op=write,errno=ENOSPC", false},
        {"error:op=write,errno=EDQUOT", false},
        {"error:op=write,errno=ETIMEDOUT", true},
    };
    uint8_t *p = bu_mem(512, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct backend *be = bu_open("null", NULL, false, rows[i].layer);
        CU_ASSERT_NOT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, 0), 0);
        CU_ASSERT_FALSE(be_flush_failed(be));
        CU_ASSERT_NOT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, IO_FUA), 0);
        CU_ASSERT_EQUAL(be_flush_failed(be), rows[i].sticky);
        be_clear_flush_error(be);
        be_set_write_cache(be, false); /* then every write has FUA */
        CU_ASSERT_NOT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, 0), 0);
        CU_ASSERT_EQUAL(be_flush_failed(be), rows[i].sticky);
        bu_close(be);
    }
    free(p);
}

static void
test_zero_length(void)
{
    struct backend *be = bu_open("fileio", bu_file(bu_dir, "z", MIB), false, NULL);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, MIB, NULL, 0, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 0, NULL, 0, IO_FUA), 0);
    bu_close(be);
}

/* --- completions from foreign threads -------------------------------------------------------- */

#define REMOTES 100

struct remotes {
    struct io io[REMOTES];
    unsigned order[REMOTES];
    unsigned n;
};

static void
on_remote(struct io *io)
{
    struct remotes *r = io_frame(io)->arg;
    CU_ASSERT_EQUAL(worker_self(), bu_w);
    CU_ASSERT_EQUAL(io->res, -EILSEQ);
    r->order[r->n++] = (unsigned)(io - r->io);
}

static void *
remote_thread(void *arg)
{
    struct remotes *r = arg;
    for (unsigned i = 0; i < REMOTES; i++)
        io_complete_remote(&r->io[i], -EILSEQ);
    return NULL;
}

static void
remote_run(void)
{
    struct remotes *r = calloc(1, sizeof(*r));
    pthread_t t;
    CU_ASSERT_PTR_NOT_NULL_FATAL(r);
    for (unsigned i = 0; i < REMOTES; i++) {
        r->io[i].w = bu_w;
        list_init(&r->io[i].link);
        io_push(&r->io[i], on_remote, r);
    }
    CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, remote_thread, r), 0);
    for (unsigned i = 0; i < 500 && r->n < REMOTES; i++)
        bu_turn_ms(2);
    pthread_join(t, NULL);
    CU_ASSERT_EQUAL(r->n, REMOTES);
    for (unsigned i = 0; i < r->n; i++)
        CU_ASSERT_EQUAL(r->order[i], i);
    free(r);
}

static void
test_remote(void)
{
    remote_run(); /* a worker outside the published set: one message each */
    worker_set_publish(&bu_w, 1);
    remote_run(); /* in it: batches */
    worker_set_publish(NULL, 0);
}

int
main(void)
{
    static const struct bu_case cases[] = {
        {"be_new refuses what it does not know", test_new_refuses},
        {"all paths are named for the opener", test_paths},
        {"nothing is answered before open", test_not_open},
        {"null: zeros, drops", test_null},
        {"READ_REF lends and takes back", test_read_ref},
        {"read-only store", test_read_only},
        {"a failed flush is sticky", test_sticky_flush},
        {"which failed FUA writes are sticky", test_sticky_fua},
        {"length 0", test_zero_length},
        {"completion from a foreign thread", test_remote},
    };
    return bu_main("backend", cases, sizeof(cases) / sizeof(cases[0]));
}
