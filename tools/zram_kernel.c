/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's zram devices; see zram_kernel.h. */
#include "config.h"

#include "tools/zram_kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const zram_mm_names[ZRAM_MM] = {
    "orig_data_size", "compr_data_size", "mem_used_total", "mem_limit",       "mem_used_max",
    "same_pages",     "pages_compacted", "huge_pages",     "huge_pages_since"};
const char *const zram_io_names[ZRAM_IO] = {"failed_reads", "failed_writes", "invalid_io",
                                            "notify_free"};
const char *const zram_bd_names[ZRAM_BD] = {"bd_count", "bd_reads", "bd_writes"};

/* --- single attributes ----------------------------------------------------------------------- */

static void
attr_path(const char *sys, int number, const char *name, char *out, size_t size)
{
    if (number < 0)
        snprintf(out, size, "%s/class/zram-control/%s", sys, name);
    else
        snprintf(out, size, "%s/block/zram%d/%s", sys, number, name);
}

/* One line without its end; -errno. */
static int
get(const char *sys, int number, const char *name, char *out, size_t size)
{
    char path[512];

    attr_path(sys, number, name, path, sizeof path);
    out[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, out, size - 1);
    int err = n < 0 ? -errno : 0;
    close(fd);
    out[n > 0 ? n : 0] = 0;
    out[strcspn(out, "\n")] = 0;
    return err;
}

static int
put(const char *sys, int number, const char *name, const char *value)
{
    char path[512];
    size_t len = strlen(value);

    attr_path(sys, number, name, path, sizeof path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, value, len);
    int err = n < 0 ? -errno : (size_t)n < len ? -EIO : 0;
    close(fd);
    return err;
}

static bool
has(const char *sys, int number, const char *name)
{
    char path[512];

    attr_path(sys, number, name, path, sizeof path);
    return access(path, F_OK) == 0;
}

/* --- looking --------------------------------------------------------------------------------- */

static bool
numbers(const char *sys, int number, const char *name, uint64_t *v, unsigned n)
{
    char line[256], *p = line, *end;

    memset(v, 0, n * sizeof *v);
    if (get(sys, number, name, line, sizeof line) < 0)
        return false;
    for (unsigned i = 0; i < n; i++, p = end) {
        v[i] = strtoull(p, &end, 10);
        if (end == p)
            break;
    }
    return true;
}

/* "lzo [lz4] zstd": the one in brackets. */
static void
chosen(const char *line, char *out, size_t size)
{
    const char *p = strchr(line, '[');
    size_t n = p ? strcspn(p + 1, "]") : 0;

    snprintf(out, size, "%.*s", (int)n, p ? p + 1 : "");
}

static void
look(const char *sys, unsigned number, struct zram_device *d)
{
    char line[512];
    int n = (int)number;

    *d = (struct zram_device){.number = number};
    (void)numbers(sys, n, "disksize", &d->size, 1);
    if (get(sys, n, "comp_algorithm", line, sizeof line) == 0)
        chosen(line, d->algorithm, sizeof d->algorithm);
    if (get(sys, n, "backing_dev", line, sizeof line) == 0 && strcmp(line, "none") != 0)
        snprintf(d->backing, sizeof d->backing, "%.255s", line);
    (void)numbers(sys, n, "mm_stat", d->mm, ZRAM_MM);
    (void)numbers(sys, n, "io_stat", d->io, ZRAM_IO);
    d->has_bd = numbers(sys, n, "bd_stat", d->bd, ZRAM_BD);
}

static int
by_number(const void *a, const void *b)
{
    const unsigned *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

bool
zram_kernel_each(const char *sys, void (*fn)(void *arg, const struct zram_device *d), void *arg)
{
    char path[512];
    unsigned v[1024], n = 0;
    struct zram_device d;

    snprintf(path, sizeof path, "%s/block", sys);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *end;
        if (strncmp(e->d_name, "zram", 4) != 0 || n == sizeof v / sizeof *v)
            continue;
        unsigned long k = strtoul(e->d_name + 4, &end, 10);
        if (end != e->d_name + 4 && !*end)
            v[n++] = (unsigned)k;
    }
    if (dir)
        closedir(dir);
    qsort(v, n, sizeof *v, by_number);
    for (unsigned i = 0; i < n; i++) {
        look(sys, v[i], &d);
        fn(arg, &d);
    }
    return n > 0 || has(sys, -1, "hot_add");
}

/* --- making ---------------------------------------------------------------------------------- */

static int
step(const char *sys, int number, const char *name, const char *value, char *err, size_t errsize)
{
    int rc = put(sys, number, name, value);

    if (rc < 0)
        snprintf(err, errsize, "%s of zram%d cannot be \"%s\": %s", name, number, value,
                 strerror(-rc));
    return rc < 0 ? -1 : 0;
}

static int
set_algorithm(const char *sys, int number, const struct zram_wish *w, char *err, size_t errsize)
{
    char line[512], plain[512], text[64];
    size_t k = 0;
    bool there = false;

    if (w->algorithm) {
        (void)get(sys, number, "comp_algorithm", line, sizeof line);
        for (const char *p = line; *p; p++) {
            if (*p != '[' && *p != ']')
                plain[k++] = *p;
        }
        plain[k] = 0;
        char *save = NULL, *copy = strdup(plain);
        for (char *s = copy ? strtok_r(copy, " ", &save) : NULL; s; s = strtok_r(NULL, " ", &save))
            there |= strcmp(s, w->algorithm) == 0;
        free(copy);
        if (!there) {
            snprintf(err, errsize, "this kernel's zram has no algorithm %s; it has %s",
                     w->algorithm, plain);
            return -1;
        }
        if (step(sys, number, "comp_algorithm", w->algorithm, err, errsize) < 0)
            return -1;
    }
    if (!w->level)
        return 0;
    if (!has(sys, number, "algorithm_params")) {
        snprintf(err, errsize, "this kernel's zram knows no levels (algorithm_params)");
        return -1;
    }
    snprintf(text, sizeof text, "level=%u", w->level);
    return step(sys, number, "algorithm_params", text, err, errsize);
}

static int
set_backing(const char *sys, int number, const struct zram_wish *w, char *err, size_t errsize)
{
    /* named so since Linux 7.0; the other is what it was called while it was made */
    static const char *const names[] = {"compressed_writeback", "writeback_compressed"};

    if (!w->backing)
        return 0;
    if (!has(sys, number, "backing_dev")) {
        snprintf(err, errsize,
                 "this kernel's zram has no write-back (CONFIG_ZRAM_WRITEBACK), so no backing "
                 "device");
        return -1;
    }
    if (step(sys, number, "backing_dev", w->backing, err, errsize) < 0)
        return -1;
    for (unsigned i = 0; w->compressed_writeback && i < 2; i++) {
        if (has(sys, number, names[i]))
            return step(sys, number, names[i], "1", err, errsize);
    }
    if (!w->compressed_writeback)
        return 0;
    snprintf(err, errsize,
             "this kernel's zram writes back uncompressed only (compressed_writeback came with "
             "Linux 7.0)");
    return -1;
}

static int
set_up(const char *sys, int number, const struct zram_wish *w, char *err, size_t errsize)
{
    char text[32];

    if (set_algorithm(sys, number, w, err, errsize) < 0 ||
        set_backing(sys, number, w, err, errsize) < 0)
        return -1;
    snprintf(text, sizeof text, "%" PRIu64, w->mem_limit);
    if (w->mem_limit && step(sys, number, "mem_limit", text, err, errsize) < 0)
        return -1;
    snprintf(text, sizeof text, "%" PRIu64, w->size);
    return step(sys, number, "disksize", text, err, errsize);
}

int
zram_kernel_make(const char *sys, const struct zram_wish *w, char *err, size_t errsize)
{
    char line[64], *end, why[256];

    int rc = get(sys, -1, "hot_add", line, sizeof line); /* the read makes it */
    if (rc < 0) {
        snprintf(err, errsize, "%s",
                 rc == -ENOENT   ? "this kernel has no zram, or its module is not loaded"
                 : rc == -EACCES ? "only root can make zram devices"
                                 : strerror(-rc));
        return -1;
    }
    long n = strtol(line, &end, 10);
    if (end == line || n < 0 || n > 65535) {
        snprintf(err, errsize, "the kernel made no zram device: \"%s\"", line);
        return -1;
    }
    if (set_up(sys, (int)n, w, err, errsize) == 0)
        return (int)n;
    if (zram_kernel_remove(sys, (unsigned)n, why, sizeof why) < 0) {
        size_t k = strlen(err);
        snprintf(err + k, errsize - k, "; and %s", why);
    }
    return -1;
}

int
zram_kernel_remove(const char *sys, unsigned number, char *err, size_t errsize)
{
    char text[32];

    snprintf(text, sizeof text, "%u", number);
    int rc = put(sys, -1, "hot_remove", text); /* resets it, too */
    if (rc == 0)
        return 0;
    snprintf(err, errsize, "zram%u cannot be removed: %s", number,
             rc == -EBUSY    ? "it is in use"
             : rc == -EACCES ? "only root can remove zram devices"
             : rc == -ENODEV ? "there is none"
             : rc == -ENOENT ? "this kernel has no zram, or its module is not loaded"
                             : strerror(-rc));
    return -1;
}
