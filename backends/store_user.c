/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which process has a device or a file open that cannot be opened here: for the message.  Reads
 * /proc in a child of the opener, because other users' processes are to be named as well.  What
 * cannot be read is left unsaid.
 */
#include "config.h"

#include "backends/store.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/opener.h"

struct wanted {
    bool is_block;
    dev_t dev; /* of the device, or of the file system */
    ino_t ino;
};

static pid_t daemon_pid;

static bool
is_wanted(const struct stat *st, const struct wanted *w)
{
    if (w->is_block) /* a disk and its partitions keep each other from an exclusive open */
        return S_ISBLK(st->st_mode) &&
               (store_is_part(st->st_rdev, w->dev) || store_is_part(w->dev, st->st_rdev));
    return S_ISREG(st->st_mode) && st->st_dev == w->dev && st->st_ino == w->ino;
}

static bool
has_open(const char *pid, const struct wanted *w)
{
    char path[64];
    struct stat st;
    bool found = false;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
    DIR *d = opendir(path);
    if (d == NULL)
        return false;
    for (struct dirent *e; !found && (e = readdir(d)) != NULL;)
        found = fstatat(dirfd(d), e->d_name, &st, 0) == 0 && is_wanted(&st, w);
    (void)closedir(d);
    return found;
}

static bool
find_user(const struct wanted *w, char *buf, size_t size)
{
    char path[64], comm[32], self[24];
    bool found = false;
    DIR *d = opendir("/proc");

    if (d == NULL)
        return false;
    (void)snprintf(self, sizeof(self), "%d", (int)daemon_pid);
    for (struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        if (!isdigit((unsigned char)e->d_name[0]) || strcmp(e->d_name, self) == 0 ||
            !has_open(e->d_name, w))
            continue;
        found = true;
        (void)snprintf(path, sizeof(path), "/proc/%.20s/comm", e->d_name);
        (void)snprintf(buf, size, "%s (process %.20s)",
                       store_read_line(path, comm, sizeof(comm)) > 0 ? comm : "?", e->d_name);
    }
    (void)closedir(d);
    /* of a file the daemon has just opened it itself, which tells nothing */
    if (!found && w->is_block && has_open(self, w)) {
        (void)snprintf(buf, size, "another logical unit of this daemon");
        found = true;
    }
    return found;
}

/* In the opener's child: the text as a file in memory. */
static int
serve_user(const void *arg, size_t len)
{
    struct wanted w;
    char text[96];

    if (len != sizeof(w))
        return -EINVAL;
    memcpy(&w, arg, sizeof(w));
    if (!find_user(&w, text, sizeof(text)))
        return -ENOENT;
    int fd = memfd_create("user", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (pwrite(fd, text, strlen(text), 0) >= 0)
        return fd;
    close(fd);
    return -EIO;
}

void
store_user_init(void)
{
    daemon_pid = getpid();
    opener_serve(OPENER_STORE_USER, serve_user, false);
}

bool
store_user(const struct stat *st, char *who, size_t size)
{
    struct wanted w;

    memset(&w, 0, sizeof(w)); /* padding goes to another process */
    w.is_block = S_ISBLK(st->st_mode);
    w.dev = w.is_block ? st->st_rdev : st->st_dev;
    w.ino = w.is_block ? 0 : st->st_ino;
    if (daemon_pid == 0)
        return find_user(&w, who, size);
    int fd = opener_call(OPENER_STORE_USER, &w, sizeof(w));
    if (fd <= 0)
        return false;
    ssize_t n = pread(fd, who, size - 1, 0);
    close(fd);
    who[n > 0 ? n : 0] = '\0';
    return n > 0;
}
