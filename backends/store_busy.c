/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who else uses a block device or a file: so that a refused open can say by whom.  The kernel's
 * O_EXCL is the judge of devices; this names the holder, and finds what O_EXCL does not know of
 * (files).  Only reads /proc and /sys.  Helper threads.
 */
#include "config.h"

#include "backends/store.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/log.h"

bool
store_is_part(dev_t dev, dev_t disk)
{
    char path[80], a[PATH_MAX], b[PATH_MAX];
    if (dev == disk)
        return true;
    (void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(dev), minor(dev));
    if (store_read_u64(path, 0) == 0)
        return false;
    (void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/..", major(dev), minor(dev));
    if (realpath(path, a) == NULL)
        return false;
    (void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u", major(disk), minor(disk));
    return realpath(path, b) != NULL && strcmp(a, b) == 0;
}

static bool
is_path_on(const char *path, dev_t disk)
{
    struct stat st;
    return path[0] == '/' && stat(path, &st) == 0 && S_ISBLK(st.st_mode) &&
           store_is_part(st.st_rdev, disk);
}

/* Calls fn with each line of a text file, without the newline, until it says true. */
static bool
each_line(const char *path, bool (*fn)(char *line, void *arg), void *arg)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;
    bool found = false;
    if (f == NULL)
        return false;
    while (!found && getline(&line, &cap, f) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        found = fn(line, arg);
    }
    free(line);
    (void)fclose(f);
    return found;
}

struct query {
    dev_t rdev;
    const char *path; /* of a file; else NULL */
    char *who;
    size_t size;
};

/* Blanks and their like stand as three octal digits after a backslash, see proc(5). In place. */
static const char *
unescape(char *text)
{
    char *to = text;
    for (const char *p = text; *p != '\0'; p++) {
        if (p[0] == '\\' && strspn(p + 1, "01234567") >= 3) {
            *to++ = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
            p += 3;
        } else {
            *to++ = *p;
        }
    }
    *to = '\0';
    return text;
}

/* "36 35 98:0 /root /mountpoint options [tags] - type source options", see proc(5). A file
 * system with several devices has a number of its own there, and the source tells. */
static bool
on_mount(char *line, void *arg)
{
    struct query *q = arg;
    char *save = NULL, *word[5] = {NULL};
    char *tail = strstr(line, " - ");
    if (tail == NULL)
        return false;
    *tail = '\0';
    for (int i = 0; i < 5; i++) {
        word[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
        if (word[i] == NULL)
            return false;
    }
    unsigned maj, min;
    bool hit =
        sscanf(word[2], "%u:%u", &maj, &min) == 2 && store_is_part(makedev(maj, min), q->rdev);
    if (!hit) {
        (void)strtok_r(tail + 3, " ", &save);
        const char *source = strtok_r(NULL, " ", &save);
        hit = source != NULL && is_path_on(source, q->rdev);
    }
    if (hit)
        (void)snprintf(q->who, q->size, "mounted on %s", unescape(word[4]));
    return hit;
}

static bool
on_swap(char *line, void *arg)
{
    struct query *q = arg;
    line[strcspn(line, " \t")] = '\0';
    bool hit = q->path != NULL ? strcmp(line, q->path) == 0 : is_path_on(line, q->rdev);
    if (hit)
        (void)snprintf(q->who, q->size, "in use as swap (%s)", line);
    return hit;
}

/* The first entry of a directory that does not begin with a dot. */
static bool
first_entry(const char *dir, char *name, size_t size)
{
    DIR *d = opendir(dir);
    bool found = false;
    if (d == NULL)
        return false;
    for (struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(name, size, "%s", e->d_name);
        found = true;
    }
    closedir(d);
    return found;
}

/* Device mapper's devices have a name that people know. */
static void
say_holder(const char *name, char *who, size_t size)
{
    char path[64 + NAME_MAX], text[128];

    (void)snprintf(path, sizeof(path), "/sys/block/%s/dm/name", name);
    if (store_read_line(path, text, sizeof(text)) > 0)
        (void)snprintf(who, size, "held by %s (%s)", name, text);
    else
        (void)snprintf(who, size, "held by %s", name);
}

/* Holders (dm, md, bcache) of the device and of its partitions. */
static bool
has_holder(dev_t rdev, char *who, size_t size)
{
    char dir[64], path[64 + 2 * NAME_MAX], name[NAME_MAX + 1];
    (void)snprintf(dir, sizeof(dir), "/sys/dev/block/%u:%u", major(rdev), minor(rdev));
    (void)snprintf(path, sizeof(path), "%s/holders", dir);
    bool found = first_entry(path, name, sizeof(name));
    DIR *d = found ? NULL : opendir(dir);
    for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;) {
        (void)snprintf(path, sizeof(path), "%s/%s/partition", dir, e->d_name);
        if (e->d_name[0] == '.' || store_read_u64(path, 0) == 0)
            continue;
        (void)snprintf(path, sizeof(path), "%s/%s/holders", dir, e->d_name);
        found = first_entry(path, name, sizeof(name));
    }
    if (d != NULL)
        closedir(d);
    (void)snprintf(path, sizeof(path), "%s/partition", dir);
    if (!found && store_read_u64(path, 0) != 0) { /* what holds a disk holds its partitions */
        (void)snprintf(path, sizeof(path), "%s/../holders", dir);
        found = first_entry(path, name, sizeof(name));
    }
    if (found)
        say_holder(name, who, size);
    return found;
}

bool
store_busy_device(dev_t rdev, char *who, size_t size)
{
    struct query q = {.rdev = rdev, .who = who, .size = size};
    return each_line("/proc/self/mountinfo", on_mount, &q) || has_holder(rdev, who, size) ||
           each_line("/proc/swaps", on_swap, &q);
}

static bool
is_behind_loop(const char *real_path, char *who, size_t size)
{
    char path[64 + NAME_MAX], backing[PATH_MAX];
    DIR *d = opendir("/sys/block");
    bool found = false;
    for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, "loop", 4) != 0)
            continue;
        (void)snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", e->d_name);
        found =
            store_read_line(path, backing, sizeof(backing)) > 0 && strcmp(backing, real_path) == 0;
        if (found)
            (void)snprintf(who, size, "behind /dev/%s", e->d_name);
    }
    if (d != NULL)
        closedir(d);
    return found;
}

bool
store_busy_file(const char *real_path, char *who, size_t size)
{
    struct query q = {.path = real_path, .who = who, .size = size};
    return is_behind_loop(real_path, who, size) || each_line("/proc/swaps", on_swap, &q);
}
