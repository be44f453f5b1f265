/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's zram devices by sysfs (tools/zram_kernel.c), over a directory that looks like it:
 * what is written, in what order, and what is said of a kernel that lacks something.
 */
#include "config.h"

#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"
#include "tools/zram_kernel.h"

static char root[64];

static void
put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
}

static const char *
get(const char *name)
{
    static char text[128];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    text[0] = 0;
    CU_ASSERT_PTR_NOT_NULL(fgets(text, sizeof text, f));
    fclose(f);
    return text;
}

static const char *const dirs[] = {"class", "class/zram-control", "block", "block/zram0",
                                   "block/zram7"};
static const char *const files[] = {
    "class/zram-control/hot_add", "class/zram-control/hot_remove",
    "block/zram7/comp_algorithm", "block/zram7/algorithm_params",
    "block/zram7/backing_dev",    "block/zram7/mem_limit",
    "block/zram7/disksize",       "block/zram7/compressed_writeback",
    "block/zram7/mm_stat",        "block/zram7/io_stat",
    "block/zram7/bd_stat",        "block/zram0/disksize",
    "block/zram0/comp_algorithm"};

static void
clear(void)
{
    char path[256];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", root, files[i]);
        (void)unlink(path);
    }
    for (size_t i = sizeof dirs / sizeof *dirs; i-- > 0;) {
        snprintf(path, sizeof path, "%s/%s", root, dirs[i]);
        (void)rmdir(path);
    }
    (void)rmdir(root);
}

static void
drop(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    CU_ASSERT_EQUAL(unlink(path), 0);
}

/* A kernel that has all of it; its device 7 is the next one. */
static void
make(void)
{
    char path[256];
    snprintf(root, sizeof root, "/tmp/zram-kernel-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        snprintf(path, sizeof path, "%s/%s", root, dirs[i]);
        CU_ASSERT_EQUAL_FATAL(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        put(files[i], "0\n");
    put("class/zram-control/hot_add", "7\n");
    put("class/zram-control/hot_remove", "-\n");
    put("block/zram7/comp_algorithm", "lzo [lz4] zstd \n");
    put("block/zram0/comp_algorithm", "[lzo-rle] lzo \n");
    put("block/zram7/backing_dev", "none\n");
    put("block/zram7/mm_stat", "  100  50  60  0  70  1  2  3  4\n");
    put("block/zram7/io_stat", " 5 6 7 8\n");
    put("block/zram7/bd_stat", " 9 10 11\n");
}

static void
test_make(void)
{
    char err[512] = "";
    struct zram_wish w = {.size = 8ull << 30,
                          .mem_limit = 1ull << 30,
                          .algorithm = "zstd",
                          .level = 9,
                          .backing = "/dev/sdz",
                          .compressed_writeback = true};
    make();
    CU_ASSERT_EQUAL(zram_kernel_make(root, &w, err, sizeof err), 7);
    CU_ASSERT_STRING_EQUAL(err, "");
    CU_ASSERT_EQUAL(strncmp(get("block/zram7/comp_algorithm"), "zstd", 4), 0);
    CU_ASSERT_EQUAL(strncmp(get("block/zram7/algorithm_params"), "level=9", 7), 0);
    CU_ASSERT_EQUAL(strncmp(get("block/zram7/backing_dev"), "/dev/sdz", 8), 0);
    CU_ASSERT_EQUAL(get("block/zram7/compressed_writeback")[0], '1');
    CU_ASSERT_EQUAL(strncmp(get("block/zram7/mem_limit"), "1073741824", 10), 0);
    CU_ASSERT_EQUAL(strncmp(get("block/zram7/disksize"), "8589934592", 10), 0);
    CU_ASSERT_EQUAL(get("class/zram-control/hot_remove")[0], '-');
    clear();
}

static void
lacks(const struct zram_wish *w, const char *what, const char *says)
{
    char err[512] = "";
    make();
    if (what != NULL)
        drop(what);
    CU_ASSERT_EQUAL(zram_kernel_make(root, w, err, sizeof err), -1);
    if (strstr(err, says) == NULL)
        printf("said: %s\n", err);
    CU_ASSERT_PTR_NOT_NULL(strstr(err, says));
    if (what == NULL || strstr(what, "hot_add") == NULL)
        CU_ASSERT_EQUAL(get("class/zram-control/hot_remove")[0], '7'); /* nothing is left */
    /* the size comes last, the algorithm before the backing device */
    if (what == NULL || strstr(what, "disksize") == NULL)
        CU_ASSERT_EQUAL(get("block/zram7/disksize")[0], '0');
    if (what != NULL && strstr(what, "algorithm_params") != NULL)
        CU_ASSERT_EQUAL(get("block/zram7/backing_dev")[0], 'n');
    clear();
}

static void
test_lacks(void)
{
    lacks(&(struct zram_wish){.size = 4096, .algorithm = "deflate"}, NULL,
          "no algorithm deflate; it has lzo lz4 zstd");
    lacks(&(struct zram_wish){.size = 4096, .level = 3, .backing = "/dev/x"},
          "block/zram7/algorithm_params", "knows no levels");
    lacks(&(struct zram_wish){.size = 4096, .backing = "/dev/x"}, "block/zram7/backing_dev",
          "no write-back");
    lacks(&(struct zram_wish){.size = 4096, .backing = "/dev/x", .compressed_writeback = true},
          "block/zram7/compressed_writeback", "uncompressed only");
    lacks(&(struct zram_wish){.size = 4096}, "block/zram7/disksize", "disksize of zram7");
    lacks(&(struct zram_wish){.size = 4096}, "class/zram-control/hot_add", "no zram");
}

static void
on_device(void *arg, const struct zram_device *d)
{
    unsigned *n = arg;
    if ((*n)++ == 0) {
        CU_ASSERT_EQUAL(d->number, 0);
        CU_ASSERT_STRING_EQUAL(d->algorithm, "lzo-rle");
        CU_ASSERT_FALSE(d->has_bd);
        return;
    }
    CU_ASSERT_EQUAL(d->number, 7);
    CU_ASSERT_STRING_EQUAL(d->algorithm, "lz4");
    CU_ASSERT_STRING_EQUAL(d->backing, "");
    CU_ASSERT_TRUE(d->has_bd);
    CU_ASSERT_EQUAL(d->mm[1], 50);
    CU_ASSERT_EQUAL(d->mm[8], 4);
    CU_ASSERT_EQUAL(d->io[3], 8);
    CU_ASSERT_EQUAL(d->bd[2], 11);
}

static void
test_each(void)
{
    unsigned n = 0;
    make();
    CU_ASSERT_TRUE(zram_kernel_each(root, on_device, &n));
    CU_ASSERT_EQUAL(n, 2);
    clear();
    n = 0;
    CU_ASSERT_FALSE(zram_kernel_each(root, on_device, &n));
    CU_ASSERT_EQUAL(n, 0);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"make", test_make}, {"lacks", test_lacks}, {"each", test_each}};
    return UNIT_RUN("zram-kernel", tests);
}
