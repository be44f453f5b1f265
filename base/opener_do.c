/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the opener does: open a path, make a listening socket.  In a child of the opener, or in
 * the calling process where there is no opener.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/opener.h"
#include "base/opener_priv.h"

#define LINKS_MAX 40u /* as the kernel's */

/* --- a path, step by step -------------------------------------------------------------------- */

static int
open_at(int dir, const char *name, int flags, mode_t mode)
{
    int fd;
    do {
        fd = openat(dir, name, flags | O_CLOEXEC | O_NOCTTY, mode);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

/* A walk: `dir` is open, `rest` is what is to be walked from there. */
struct walk {
    int dir;
    unsigned links;
    char rest[PATH_MAX];
};

static void
walk_to(struct walk *w, int dir)
{
    close(w->dir);
    w->dir = dir;
}

/* Puts what the link says before what follows it. 0 or -errno. */
static int
walk_link(struct walk *w, int link, const struct stat *st, const char *after)
{
    char to[PATH_MAX];
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return -EPERM; /* whose owner would choose what is opened */
    if (++w->links > LINKS_MAX)
        return -ELOOP;
    ssize_t n = readlinkat(link, "", to, sizeof to);
    if (n <= 0)
        return n < 0 ? -errno : -ENOENT;
    size_t tail = strlen(after);
    if ((size_t)n + tail >= sizeof w->rest)
        return -ENAMETOOLONG;
    memmove(w->rest + n, after, tail + 1); /* after is within rest */
    memcpy(w->rest, to, (size_t)n);
    if (to[0] != '/')
        return 0;
    int root = open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
    if (root < 0)
        return root;
    walk_to(w, root);
    return 0;
}

/* One component; *fd is the result when it was the last one. 0 or -errno. */
static int
walk_step(struct walk *w, int flags, mode_t mode, int *fd)
{
    struct stat st = {.st_mode = 0};
    char name[NAME_MAX + 1];
    const char *at = w->rest + strspn(w->rest, "/");
    size_t len = strcspn(at, "/");
    const char *after = at + len;
    bool is_last = *after == '\0';
    if (len == 0) /* "/", or a directory's name and a slash */
        return -EISDIR;
    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, at, len);
    name[len] = '\0';
    int look = open_at(w->dir, name, O_PATH | O_NOFOLLOW, 0);
    if (look >= 0 && fstat(look, &st) == 0 && S_ISLNK(st.st_mode)) {
        int err = is_last && (flags & O_NOFOLLOW) ? -ELOOP : walk_link(w, look, &st, after);
        close(look);
        return err;
    }
    if (look >= 0)
        close(look);
    if (look < 0 && (look != -ENOENT || !is_last))
        return look;
    /* By its name again: O_DIRECTORY lets an automounter do its work. A link that is there now is
     * not followed. */
    int next = is_last ? open_at(w->dir, name, flags | O_NOFOLLOW, mode)
                       : open_at(w->dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    if (next < 0)
        return next;
    if (is_last) {
        *fd = next;
        return 0;
    }
    walk_to(w, next);
    memmove(w->rest, after, strlen(after) + 1);
    return 0;
}

/* As open(2), following only links of root and of this process's user: what the daemon's user
 * could put in the place of a file must not lead to another one. */
static int
open_walking(const char *path, int flags, mode_t mode)
{
    struct walk w = {.links = 0};
    int fd = -1, err = 0;
    if (path[0] != '/' || strlen(path) >= sizeof w.rest)
        return path[0] != '/' ? -EINVAL : -ENAMETOOLONG;
    memcpy(w.rest, path, strlen(path) + 1);
    w.dir = open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
    if (w.dir < 0)
        return w.dir;
    while (err == 0 && fd < 0)
        err = walk_step(&w, flags, mode, &fd);
    close(w.dir);
    return err < 0 ? err : fd;
}

int
opener_do_open(const char *path, int flags, mode_t mode, bool guarded)
{
    struct stat st;
    if (!guarded)
        return open_at(AT_FDCWD, path, flags, mode);
    int fd = open_walking(path, flags, mode & 0666);
    /* a way to all that is below it, past the directories above it */
    if (fd >= 0 && (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))) {
        close(fd);
        return -EISDIR;
    }
    return fd;
}

/* --- listening ------------------------------------------------------------------------------- */

/* Of Linux 4.15, not yet in every C library's headers. */
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

int
opener_do_listen(const struct sockaddr *addr, socklen_t addrlen, int backlog, unsigned flags)
{
    int one = 1;
    if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
        return -EAFNOSUPPORT;
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        (addr->sa_family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) < 0) ||
        ((flags & OPENER_FREEBIND) &&
         (addr->sa_family == AF_INET6
              ? setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof one)
              : setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof one)) < 0) ||
        bind(fd, addr, addrlen) < 0 || listen(fd, backlog) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}
