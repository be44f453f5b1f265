/* SPDX-License-Identifier: BSD-2-Clause */
/* Files and devices behind logical units: made, grown, erased by the one who calls. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/pool.h"
#include "tools/verb.h"

char *
file_absolute(struct call *c, const char *path)
{
    char cwd[PATH_MAX];
    if (path[0] == '/')
        return xstrdup(path);
    if (!getcwd(cwd, sizeof cwd)) /* the daemon has another directory than we */
        verb_fail(c, VERB_NOT_DONE, "path", NULL, "the current directory has no name");
    return xasprintf("%s/%s", cwd, path);
}

static void
remove_made(struct call *c, void *arg)
{
    (void)c;
    if (unlink(arg) == 0)
        fprintf(stderr, "%s was removed again\n", (const char *)arg);
}

static uint64_t
file_free_bytes(int fd)
{
    struct statvfs v;
    return fstatvfs(fd, &v) < 0 ? UINT64_MAX : (uint64_t)v.f_bavail * v.f_frsize;
}

static void
file_room(struct call *c, int fd, const char *path, uint64_t want)
{
    uint64_t free_bytes = file_free_bytes(fd);
    if (want > free_bytes)
        verb_fail(c, VERB_NOT_DONE, "no-space",
                  "--thin reserves nothing: the file grows as it is written, until its file system "
                  "is full.",
                  "%s: %s are wanted, its file system has %s free", path, verb_size_text(want),
                  verb_size_text(free_bytes));
}

static void
file_reserve(struct call *c, int fd, const char *path, uint64_t from, uint64_t to)
{
    file_room(c, fd, path, to - from);
    if (fallocate(fd, 0, (off_t)from, (off_t)(to - from)) < 0)
        verb_fail(c, VERB_NOT_DONE, "no-space",
                  errno == EOPNOTSUPP ? "Its file system reserves nothing in advance: --thin."
                                      : NULL,
                  "%s: cannot be given %s: %s", path, verb_size_text(to), strerror(errno));
}

void
file_create(struct call *c, const char *path, uint64_t bytes, bool full)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 && errno == EEXIST)
        verb_fail(c, VERB_NOT_DONE, "file-exists", "Without --create it is served as it is.",
                  "%s is there already", path);
    if (fd < 0)
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s cannot be made: %s", path, strerror(errno));
    verb_undo(c, remove_made, xstrdup(path));
    if (full)
        file_reserve(c, fd, path, 0, bytes);
    else if (ftruncate(fd, (off_t)bytes) < 0)
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s cannot have %s: %s", path,
                  verb_size_text(bytes), strerror(errno));
    if (fsync(fd) < 0 || close(fd) < 0)
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s: %s", path, strerror(errno));
}

/* --- erasing --------------------------------------------------------------------------------- */

/* "TARGET LUN" of another LUN on the same thing, or NULL. */
static char *
other_user(const char *path, const struct stat *st, const json_t *all, long long tid, long long lun)
{
    json_t *t, *l;
    size_t i, k;

    json_array_foreach(all, i, t)
    {
        json_array_foreach(json_object_get(t, "luns"), k, l)
        {
            struct stat other;
            const char *p = j_str(l, "path");
            if (j_num(t, "tid") == tid && j_num(l, "lun") == lun)
                continue;
            if (strcmp(p, path) == 0 ||
                (*p && stat(p, &other) == 0 && other.st_dev == st->st_dev &&
                 other.st_ino == st->st_ino) ||
                (*p && S_ISBLK(st->st_mode) && stat(p, &other) == 0 && S_ISBLK(other.st_mode) &&
                 other.st_rdev == st->st_rdev))
                return xasprintf("LUN %lld of %s", j_num(l, "lun"), j_str(t, "name"));
        }
    }
    return NULL;
}

/* A link's end would be left over, and its data with it. */
static void
refuse_link(struct call *c, const char *path, const struct stat *st)
{
    struct stat link;
    char *end = lstat(path, &link) == 0 && S_ISLNK(link.st_mode) && S_ISREG(st->st_mode)
                    ? realpath(path, NULL)
                    : NULL;
    if (end)
        verb_fail(c, VERB_NOT_DONE, "file", "--keep removes the LUN only.",
                  "%s is a symbolic link: its file, %s, would stay", path, end);
}

void
file_erase_check(struct call *c, const char *path, const json_t *all, long long tid, long long lun,
                 struct stat *which)
{
    struct stat st;
    const char *yes = call_opt(c, "yes");

    if (!*path)
        verb_usage(c, "this LUN has no file: nothing is there to --erase");
    if (stat(path, &st) < 0)
        verb_fail(c, VERB_NOT_DONE, "file", "--keep removes the LUN only.", "%s: %s", path,
                  strerror(errno));
    *which = st;
    refuse_link(c, path, &st);
    char *user = other_user(path, &st, all, tid, lun);
    if (user)
        verb_fail(c, VERB_NOT_DONE, "file-in-use", "--keep removes this LUN only.", "%s is also %s",
                  path, user);
    if (S_ISBLK(st.st_mode)) {
        if (!yes || strcmp(yes, path) != 0)
            verb_fail(c, VERB_NOT_DONE, "not-sure", NULL,
                      "%s is a device: everything on it is overwritten with zeroes only with "
                      "--yes=%s",
                      path, path);
        return;
    }
    if (!S_ISREG(st.st_mode))
        verb_fail(c, VERB_NOT_DONE, "file", "--keep removes the LUN only.",
                  "%s is neither a file nor a disk", path);
    if (st.st_nlink > 1)
        verb_fail(c, VERB_NOT_DONE, "file-in-use", "--keep removes the LUN only.",
                  "%s has another name (a hard link)", path);
    if (yes && *yes && strcmp(yes, path) != 0)
        verb_fail(c, VERB_NOT_DONE, "not-sure", NULL, "the LUN is %s, not %s", path, yes);
    char *size = verb_size_text((uint64_t)st.st_size);
    if (!verb_sure(c, "%s (%s) will be deleted; nothing brings it back.", path, size))
        verb_fail(c, VERB_NOT_DONE, "not-sure", "--yes says so beforehand.",
                  "%s is not erased and the LUN stays: nobody said yes", path);
    free(size);
}

static void
erase_device(struct call *c, const char *path, const struct stat *which)
{
    uint64_t size = 0, step = 1ull << 30;
    struct stat st;
    int fd = open(path, O_WRONLY | O_EXCL | O_CLOEXEC);

    if (fd >= 0 && (fstat(fd, &st) < 0 || st.st_rdev != which->st_rdev))
        verb_fail(c, VERB_NOT_DONE, "file", "The LUN is gone already.",
                  "%s is not erased: it is another device by now", path);
    if (fd < 0 || ioctl(fd, BLKGETSIZE64, &size) < 0)
        verb_fail(c, VERB_NOT_DONE, "file", "The LUN is gone already.", "%s is not erased: %s",
                  path, strerror(errno));
    for (uint64_t at = 0; at < size; at += step) {
        uint64_t n = size - at < step ? size - at : step;
        if (fallocate(fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)n) < 0)
            verb_fail(c, VERB_NOT_DONE, "file", "The LUN is gone already.",
                      "%s is erased up to byte %llu only: %s", path, (unsigned long long)at,
                      strerror(errno));
    }
    if (fsync(fd) < 0 || close(fd) < 0)
        verb_fail(c, VERB_NOT_DONE, "file", "The LUN is gone already.", "%s is not erased: %s",
                  path, strerror(errno));
}

void
file_erase(struct call *c, const char *path, const struct stat *which)
{
    struct stat st;

    if (S_ISBLK(which->st_mode))
        erase_device(c, path, which);
    else if (lstat(path, &st) == 0 && (st.st_dev != which->st_dev || st.st_ino != which->st_ino))
        verb_fail(c, VERB_NOT_DONE, "file", "The LUN is gone already.",
                  "%s is not deleted: it is another file by now", path);
    else if (unlink(path) < 0)
        verb_fail(c, VERB_NOT_DONE, "file", "The LUN is gone already.", "%s is not deleted: %s",
                  path, strerror(errno));
}

/* --- size ------------------------------------------------------------------------------------ */

bool
file_resize(struct call *c, const char *path, uint64_t bytes, bool full, uint64_t *had)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st) < 0)
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        verb_fail(c, VERB_NOT_DONE, "device",
                  "Make it larger where it comes from (lvextend and the like), then `lun resize` "
                  "without a size has it read again.",
                  "%s is a device: it has the size it has", path);
    *had = (uint64_t)st.st_size;
    if (bytes < *had && !call_opt(c, "shrink"))
        verb_fail(c, VERB_NOT_DONE, "shrink",
                  "What is beyond would be lost. Shrink the file system and its partition first, "
                  "then --shrink.",
                  "%s has %s, more than %s", path, verb_size_text(*had), verb_size_text(bytes));
    if (bytes > *had && full)
        file_reserve(c, fd, path, *had, bytes);
    if (bytes != *had && ftruncate(fd, (off_t)bytes) < 0)
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s cannot have %s: %s", path,
                  verb_size_text(bytes), strerror(errno));
    if (fsync(fd) < 0 || close(fd) < 0)
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s: %s", path, strerror(errno));
    return bytes != *had;
}
