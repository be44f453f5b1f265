/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File stores: buffered and O_DIRECT on a disk, in place on tmpfs.
 */
#include "config.h"

#include "tests/unit/be_unit.h"

#include "base/counter.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>

/* --- data on each kind of file --------------------------------------------------------------- */

struct kind {
    const char *dir;
    bool direct;
};

/* Calls fn for a buffered and a direct file on disk and for one on tmpfs. */
static void
each_kind(void (*fn)(const struct kind *k))
{
    const struct kind kinds[] = {{bu_dir, false}, {bu_dir, true}, {bu_mem_dir, false}};
    for (size_t i = 0; i < 3; i++) {
        if (kinds[i].dir[0] != '\0')
            fn(&kinds[i]);
    }
}

#define SIZE (8 * MIB)

static void
file_bytes(const char *path, uint64_t off, void *buf, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(pread(fd, buf, len, (off_t)off), (ssize_t)len);
    close(fd);
}

static void
rw_random(const struct kind *k)
{
    const char *path = bu_file(k->dir, "rw", SIZE);
    struct backend *be = bu_open("fileio", path, k->direct, NULL);
    uint8_t *model = calloc(1, SIZE), *data = bu_mem(MIB, 5), *got = bu_mem(MIB, 6);
    uint32_t x = 12345;
    for (int i = 0; i < 120; i++) {
        x = x * 1664525u + 1013904223u;
        uint64_t len = 512 + (x >> 8) % (i % 3 == 0 ? 64 * KIB : 4 * KIB) / 512 * 512;
        uint64_t off = (x >> 5) % (SIZE - len) / 512 * 512;
        uint8_t *from = data + (x >> 3) % 1000 / 512 * 512 + (i % 7 == 0 ? 4 : 0); /* odd memory */
        CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, off, from, len, i % 5 == 0 ? IO_FUA : 0), 0);
        memcpy(model + off, from, len);
        off = off > 4096 ? off - 4096 : off;
        CU_ASSERT_EQUAL(bu_do(be, IO_READ, off, got, len, 0), 0);
        CU_ASSERT_EQUAL(memcmp(got, model + off, len), 0);
    }
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    for (uint64_t off = 0; off < SIZE; off += MIB) {
        file_bytes(path, off, got, MIB);
        CU_ASSERT_EQUAL(memcmp(got, model + off, MIB), 0);
    }
    free(model);
    free(data);
    free(got);
    bu_close(be);
}

static void
test_rw(void)
{
    each_kind(rw_random);
}

/* More entries than one call takes: IOV_MAX is 1024. */
static void
many_vectors(const struct kind *k)
{
    enum { N = 2500 };
    struct backend *be = bu_open("fileio", bu_file(k->dir, "iov", SIZE), k->direct, NULL);
    uint8_t *data = bu_mem(N * 512u, 9), *got = bu_mem(N * 512u, 10);
    struct iovec *iov = calloc(N, sizeof(*iov));
    for (int round = 0; round < 2; round++) {
        struct bu_io b = {0};
        for (unsigned i = 0; i < N; i++)
            iov[i] = (struct iovec){(round == 0 ? data : got) + (size_t)i * 512, 512};
        b.io.iov = iov;
        b.io.niov = N;
        bu_start(be, &b, round == 0 ? IO_WRITE : IO_READ, 512, NULL, N * 512u, 0);
        CU_ASSERT_EQUAL(bu_wait(&b), 0);
    }
    CU_ASSERT_EQUAL(memcmp(data, got, N * 512u), 0);
    free(iov);
    free(data);
    free(got);
    bu_close(be);
}

static void
test_vectors(void)
{
    each_kind(many_vectors);
}

/* Many requests at once, each with its own sector. */
static void
deep(const struct kind *k)
{
    enum { N = 300 };
    struct backend *be = bu_open("fileio", bu_file(k->dir, "deep", SIZE), k->direct, NULL);
    struct bu_io *b = calloc(N, sizeof(*b));
    uint8_t *data = bu_mem(N * 512u, 11), *got = bu_mem(N * 512u, 12);
    for (unsigned i = 0; i < N; i++)
        bu_start(be, &b[i], IO_WRITE, (uint64_t)i * 4096, data + (size_t)i * 512, 512, 0);
    for (unsigned i = 0; i < N; i++)
        CU_ASSERT_EQUAL(bu_wait(&b[i]), 0);
    memset(b, 0, N * sizeof(*b));
    for (unsigned i = 0; i < N; i++)
        bu_start(be, &b[i], IO_READ, (uint64_t)i * 4096, got + (size_t)i * 512, 512, 0);
    for (unsigned i = 0; i < N; i++)
        CU_ASSERT_EQUAL(bu_wait(&b[i]), 0);
    CU_ASSERT_EQUAL(memcmp(data, got, N * 512u), 0);
    free(b);
    free(data);
    free(got);
    bu_close(be);
}

static void
test_deep(void)
{
    each_kind(deep);
}

/* Where a request goes: in place on tmpfs, RWF_NOWAIT for what the page cache holds, else the
 * engine. */
static void
test_where(void)
{
    uint8_t *p = bu_mem(64 * KIB, 1);
    struct backend *be = bu_open("fileio", bu_file(bu_dir, "where", MIB), false, NULL);
    uint64_t n = counter_sum(CT_DISK_SUBMITTED);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 64 * KIB, 0), 0);
    CU_ASSERT_EQUAL(counter_sum(CT_DISK_SUBMITTED), n + 1);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 64 * KIB, 0), 0); /* alone, and cached */
    CU_ASSERT_EQUAL(counter_sum(CT_DISK_SUBMITTED), n + 1);
    struct bu_io w = {0}, r = {0};
    bu_start(be, &w, IO_WRITE, 0, p, 16 * KIB, 0); /* too large for a batch of small writes */
    bu_start(be, &r, IO_READ, 32 * KIB, p + 32 * KIB, 512, 0); /* not alone */
    CU_ASSERT_EQUAL(bu_wait(&w), 0);
    CU_ASSERT_EQUAL(bu_wait(&r), 0);
    CU_ASSERT_EQUAL(counter_sum(CT_DISK_SUBMITTED), n + 3);
    bu_close(be);
    be = bu_open("fileio", bu_file(bu_dir, "where", MIB), true, NULL);
    n = counter_sum(CT_DISK_SUBMITTED);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 64 * KIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 64 * KIB, 0), 0);
    CU_ASSERT_EQUAL(counter_sum(CT_DISK_SUBMITTED), n + 2);
    bu_close(be);
    if (bu_mem_dir[0] != '\0') {
        be = bu_open("fileio", bu_file(bu_mem_dir, "where", MIB), false, NULL);
        n = counter_sum(CT_DISK_SUBMITTED);
        CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 64 * KIB, IO_FUA), 0);
        CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 64 * KIB, 0), 0);
        CU_ASSERT_EQUAL(counter_sum(CT_DISK_SUBMITTED), n);
        bu_close(be);
    }
    free(p);
}

/* --- zero, discard, map ---------------------------------------------------------------------- */

static uint64_t
allocated(const char *path)
{
    struct stat st;
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

static void
zero_and_discard(const struct kind *k)
{
    const char *path = bu_file(k->dir, "zero", SIZE);
    struct backend *be = bu_open("fileio", path, k->direct, NULL);
    uint8_t *p = bu_mem(MIB, 1), *q = bu_mem(MIB, 2);
    struct be_info in;
    be_info(be, &in);
    CU_ASSERT_TRUE((in.caps & BE_CAP_DISCARD) != 0);
    CU_ASSERT_EQUAL(in.discard_gran, 4096);
    for (uint64_t off = 0; off < 4 * MIB; off += MIB)
        CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, off, p, MIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    uint64_t before = allocated(path);
    /* from the middle of one megabyte, over more than two, in the middle of a page */
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 512 * KIB + 512, NULL, 2 * MIB + 512, IO_FUA), 0);
    CU_ASSERT_TRUE(allocated(path) + 64 * KIB >= before);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, q, MIB, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, 512 * KIB + 512), 0);
    CU_ASSERT_TRUE(bu_is_zero(q + 512 * KIB + 512, 512 * KIB - 512));
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, MIB, q, MIB, 0), 0);
    CU_ASSERT_TRUE(bu_is_zero(q, MIB));
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 2 * MIB, q, MIB, 0), 0);
    CU_ASSERT_TRUE(bu_is_zero(q, 513 * KIB));
    CU_ASSERT_EQUAL(memcmp(p + 513 * KIB, q + 513 * KIB, 511 * KIB), 0);

    CU_ASSERT_EQUAL(bu_do(be, IO_DISCARD, 3 * MIB, NULL, MIB, IO_FUA), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 3 * MIB, q, MIB, 0), 0);
    CU_ASSERT_TRUE(bu_is_zero(q, MIB));
    CU_ASSERT_EQUAL(bu_do(be, IO_DISCARD, 0, NULL, SIZE, 0), 0);
    CU_ASSERT_TRUE(allocated(path) < 64 * KIB);
    CU_ASSERT_EQUAL(be_size(be), SIZE);
    free(p);
    free(q);
    bu_close(be);
}

static void
test_zero(void)
{
    each_kind(zero_and_discard);
}

static void
map(const struct kind *k)
{
    const char *path = bu_file(k->dir, "map", SIZE);
    struct backend *be = bu_open("fileio", path, k->direct, NULL);
    uint8_t *p = bu_mem(64 * KIB, 1);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, MIB, p, 64 * KIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 4 * MIB, p, 64 * KIB, 0), 0);
    struct io_extent ext[8];
    struct bu_io b = {.io = {.ext = ext, .ext_max = 8}};
    bu_start(be, &b, IO_MAP, 0, NULL, SIZE, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    static const struct io_extent expect[] = {{MIB, false},
                                              {64 * KIB, true},
                                              {3 * MIB - 64 * KIB, false},
                                              {64 * KIB, true},
                                              {4 * MIB - 64 * KIB, false}};
    CU_ASSERT_EQUAL(b.io.ext_n, 5);
    for (unsigned i = 0; i < 5 && i < b.io.ext_n; i++) {
        CU_ASSERT_EQUAL(ext[i].len, expect[i].len);
        CU_ASSERT_EQUAL(ext[i].mapped, expect[i].mapped);
    }
    /* from inside a run, and cut at ext_max */
    b = (struct bu_io){.io = {.ext = ext, .ext_max = 2}};
    bu_start(be, &b, IO_MAP, MIB + 512, NULL, 6 * MIB, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    CU_ASSERT_EQUAL(b.io.ext_n, 2);
    CU_ASSERT_EQUAL(ext[0].len, 64 * KIB - 512);
    CU_ASSERT_TRUE(ext[0].mapped);
    CU_ASSERT_EQUAL(ext[1].len, 3 * MIB - 64 * KIB);
    CU_ASSERT_FALSE(ext[1].mapped);
    /* all hole, behind the last data */
    b = (struct bu_io){.io = {.ext = ext, .ext_max = 2}};
    bu_start(be, &b, IO_MAP, 6 * MIB, NULL, MIB, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    CU_ASSERT_EQUAL(b.io.ext_n, 1);
    CU_ASSERT_EQUAL(ext[0].len, MIB);
    CU_ASSERT_FALSE(ext[0].mapped);
    free(p);
    bu_close(be);
}

static void
test_map(void)
{
    each_kind(map);
}

/* --- coming and going ------------------------------------------------------------------------ */

static void
vanish(const struct kind *k)
{
    char away[160];
    uint8_t *p = bu_mem(512, 1), *q = bu_mem(512, 2);
    const char *path = bu_file(k->dir, "vanish", MIB);
    (void)snprintf(away, sizeof(away), "%s-away", path);
    struct backend *be = bu_open("fileio", path, k->direct, "delay:us=10");
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, 0), 0);
    CU_ASSERT_EQUAL(be_probe(be), 0);
    CU_ASSERT_EQUAL(rename(path, away), 0);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_GONE);
    CU_ASSERT_EQUAL(be_probe(be), 0); /* told once */
    CU_ASSERT_EQUAL(be_state(be), BE_GONE);
    CU_ASSERT_PTR_NOT_NULL(strstr(be_error(be), "no longer there"));
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, q, 512, 0), -ENXIO);
    bu_touch(path); /* another inode under the name */
    CU_ASSERT_EQUAL(be_probe(be), 0);
    CU_ASSERT_EQUAL(be_state(be), BE_GONE);
    CU_ASSERT_PTR_NOT_NULL(strstr(be_error(be), "another file"));
    CU_ASSERT_EQUAL(be_open(be), -ESTALE);
    CU_ASSERT_PTR_NOT_NULL(strstr(be_error(be), "another file"));
    CU_ASSERT_EQUAL(rename(away, path), 0);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_CAME);
    CU_ASSERT_EQUAL(be_state(be), BE_READY);
    CU_ASSERT_STRING_EQUAL(be_error(be), "");
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, q, 512, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, 512), 0);
    /* replaced in one step */
    CU_ASSERT_EQUAL(rename(path, away), 0);
    bu_touch(path);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_GONE);
    CU_ASSERT_PTR_NOT_NULL(strstr(be_error(be), "another file"));
    bu_close(be);
    (void)unlink(path);
    (void)unlink(away);
    free(p);
    free(q);
}

static void
test_vanish(void)
{
    each_kind(vanish);
}

static void
test_missing_then_there(void)
{
    char path[128], err[128];
    (void)snprintf(path, sizeof(path), "%s/later", bu_dir);
    (void)unlink(path);
    struct backend *be = be_new(&(struct be_opts){.path = path}, err, sizeof(err));
    CU_ASSERT_EQUAL(be_open(be), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(be_error(be), "later"));
    CU_ASSERT_EQUAL(be_probe(be), 0);
    bu_file(bu_dir, "later", 512);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_CAME);
    CU_ASSERT_EQUAL(be_state(be), BE_READY);
    CU_ASSERT_EQUAL(be_size(be), 512);
    be_close(be);
    CU_ASSERT_EQUAL(be_probe(be), 0); /* closed on purpose */
    CU_ASSERT_EQUAL(be_open(be), 0);
    bu_close(be);
}

static void
resize(const struct kind *k)
{
    uint8_t *p = bu_mem(8 * KIB, 1);
    const char *path = bu_file(k->dir, "resize", 64 * KIB + 100);
    struct backend *be = bu_open("fileio", path, k->direct, NULL);
    CU_ASSERT_EQUAL(be_size(be), 64 * KIB); /* whole blocks */
    CU_ASSERT_EQUAL(truncate(path, 128 * KIB), 0);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_GREW);
    CU_ASSERT_EQUAL(be_size(be), 128 * KIB);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 120 * KIB, p, 8 * KIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 120 * KIB, p, 8 * KIB, 0), 0);

    CU_ASSERT_EQUAL(truncate(path, 100 * KIB), 0);
    struct bu_io b = {0}; /* before anybody has looked */
    bu_start(be, &b, IO_READ, 96 * KIB, p, 8 * KIB, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), -EIO);
    CU_ASSERT_EQUAL(b.io.fail_offset, 100 * KIB);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_SHRANK);
    CU_ASSERT_EQUAL(be_probe(be), 0);
    CU_ASSERT_EQUAL(be_size(be), 128 * KIB);
    CU_ASSERT_PTR_NOT_NULL(strstr(be_error(be), "shrank"));
    b = (struct bu_io){0};
    bu_start(be, &b, IO_READ, 96 * KIB, p, 8 * KIB, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), -EIO);
    CU_ASSERT_EQUAL(b.io.fail_offset, 100 * KIB);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 104 * KIB, p, 8 * KIB, 0), -EIO);
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 104 * KIB, NULL, 8 * KIB, 0), -EIO);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 8 * KIB, 0), 0);
    CU_ASSERT_EQUAL(truncate(path, 128 * KIB), 0);
    CU_ASSERT_EQUAL(be_probe(be), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 104 * KIB, p, 8 * KIB, 0), 0);
    bu_close(be);
    free(p);
}

static void
test_resize(void)
{
    each_kind(resize);
}

/* --- who may have it ------------------------------------------------------------------------- */

static int
try_open(struct be_opts o, char *error, size_t size)
{
    char err[128];
    struct backend *be = be_new(&o, err, sizeof(err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(be);
    int r = be_open(be);
    (void)snprintf(error, size, "%s", be_error(be));
    be_close(be);
    be_put(be);
    return r;
}

static void
test_exclusive(void)
{
    char e[256];
    const char *path = bu_file(bu_dir, "excl", MIB);
    struct backend *be = bu_open("fileio", path, false, NULL);
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = path}, e, sizeof(e)), -EBUSY);
    CU_ASSERT_PTR_NOT_NULL(strstr(e, "in use"));
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = path, .read_only = true}, e, sizeof(e)),
                    -EBUSY);
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = path, .allow_in_use = true}, e, sizeof(e)),
                    0);
    bu_close(be);
    struct be_opts ro = {.path = path, .read_only = true};
    be = bu_open_opts(&ro);
    CU_ASSERT_EQUAL(try_open(ro, e, sizeof(e)), 0); /* readers share */
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = path}, e, sizeof(e)), -EBUSY);
    bu_close(be);
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = path}, e, sizeof(e)), 0);
}

/* The lock lives as long as a request does, not only as long as the store is open. */
static void
test_closed_with_requests(void)
{
    char layers[256], when[128], e[256];
    uint8_t *p = bu_mem(512, 1);
    const char *path = bu_file(bu_dir, "held", MIB);
    (void)snprintf(when, sizeof(when), "%s/held-when", bu_dir);
    bu_touch(when);
    (void)snprintf(layers, sizeof(layers), "delay:hang=1,when=%s", when);
    struct backend *be = bu_open("fileio", path, false, layers);
    struct bu_io b = {0};
    bu_start(be, &b, IO_READ, 0, p, 512, 0);
    bu_turn_ms(3);
    be_close(be);
    (void)unlink(when);
    CU_ASSERT_EQUAL(bu_wait(&b), -ENXIO); /* comes to a store that was closed meanwhile */
    CU_ASSERT_EQUAL(be_open(be), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 512, 0), 0);
    bu_close(be);
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = path}, e, sizeof(e)), 0);
    free(p);
}

static void
test_bad_paths(void)
{
    char e[256], fifo[128];
    (void)snprintf(fifo, sizeof(fifo), "%s/fifo", bu_dir);
    (void)unlink(fifo);
    CU_ASSERT_EQUAL(mkfifo(fifo, 0600), 0);
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = fifo}, e, sizeof(e)), -EINVAL);
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = bu_dir}, e, sizeof(e)), -EINVAL);
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = "/dev/null"}, e, sizeof(e)), -EINVAL);
    CU_ASSERT_EQUAL(try_open((struct be_opts){.type = "fileio"}, e, sizeof(e)), -EINVAL);
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = bu_file(bu_dir, "tiny", 100)}, e, sizeof(e)),
                    -EINVAL);
    const char *file = bu_file(bu_dir, "noblk", MIB);
    CU_ASSERT_EQUAL(try_open((struct be_opts){.type = "blockio", .path = file}, e, sizeof(e)),
                    -ENOTBLK);
}

static void
test_identity(void)
{
    char link[128];
    const char *path = bu_file(bu_dir, "target", MIB);
    (void)snprintf(link, sizeof(link), "%s/link", bu_dir);
    (void)unlink(link);
    CU_ASSERT_EQUAL(symlink("target", link), 0);
    char real[4096], expect[4200];
    CU_ASSERT_PTR_NOT_NULL(realpath(path, real));
    (void)snprintf(expect, sizeof(expect), "file:%s", real);
    struct backend *be = bu_open("fileio", link, false, NULL);
    CU_ASSERT_STRING_EQUAL(be_identity(be), expect);
    CU_ASSERT_STRING_EQUAL(be_path(be), link);
    bu_close(be);
}

/* --- want of space --------------------------------------------------------------------------- */

/* A limit on the size of files: the first part of a write goes, the rest is refused. */
static void
test_partial_write(void)
{
    struct rlimit old, low;
    uint8_t *p = bu_mem(64 * KIB, 1);
    const char *path = bu_file(bu_dir, "limit", MIB);
    struct backend *be = bu_open("fileio", path, false, NULL);
    (void)signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_FSIZE, &old), 0);
    low = old;
    low.rlim_cur = 512 * KIB;
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &low), 0);
    struct bu_io b = {0};
    bu_start(be, &b, IO_WRITE, 504 * KIB, p, 64 * KIB, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), -EFBIG);
    CU_ASSERT_EQUAL(b.io.fail_offset, 512 * KIB);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 504 * KIB, p, 64 * KIB, IO_FUA), -EFBIG);
    CU_ASSERT_FALSE(be_flush_failed(be)); /* refused, not lost */
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &old), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 504 * KIB, p, 64 * KIB, IO_FUA), 0);
    free(p);
    bu_close(be);
}

static void
test_full(void)
{
    char dir[128], path[160];
    uint8_t *p = bu_mem(MIB, 1), *q = bu_mem(MIB, 2);
    (void)snprintf(dir, sizeof(dir), "%s/full", bu_dir);
    (void)mkdir(dir, 0700);
    if (mount("none", dir, "tmpfs", 0, "size=3584k") != 0) {
        printf("(no mount: %s) ", strerror(errno));
        free(p);
        free(q);
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/f", dir);
    bu_touch(path);
    CU_ASSERT_EQUAL(truncate(path, 8 * MIB), 0);
    struct backend *be = bu_open("fileio", path, false, NULL);
    for (unsigned i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, i * MIB, p, MIB, 0), 0);
    struct bu_io b = {0};
    bu_start(be, &b, IO_WRITE, 3 * MIB, p, MIB, IO_FUA);
    CU_ASSERT_EQUAL(bu_wait(&b), -ENOSPC);
    CU_ASSERT_TRUE(b.io.fail_offset > 3 * MIB);
    CU_ASSERT_FALSE(be_flush_failed(be));
    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 4 * MIB, NULL, 4 * MIB, 0), -ENOSPC);
    CU_ASSERT_EQUAL(bu_do(be, IO_DISCARD, 0, NULL, MIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 7 * MIB, p, 512 * KIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, MIB, q, MIB, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, MIB), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    bu_close(be);
    CU_ASSERT_EQUAL(umount(dir), 0);
    free(p);
    free(q);
}

int
main(void)
{
    static const struct bu_case cases[] = {
        {"random writes and reads", test_rw},
        {"more vectors than one call takes", test_vectors},
        {"many requests at once", test_deep},
        {"in place, at once, or by the engine", test_where},
        {"zero and discard", test_zero},
        {"map", test_map},
        {"vanish, replaced, back", test_vanish},
        {"missing at first", test_missing_then_there},
        {"grow and shrink", test_resize},
        {"exclusive", test_exclusive},
        {"closed with requests under way", test_closed_with_requests},
        {"what is no store", test_bad_paths},
        {"identity is the canonical path", test_identity},
        {"a write that is refused in part", test_partial_write},
        {"a full file system", test_full},
    };
    return bu_main("file", cases, sizeof(cases) / sizeof(cases[0]));
}
