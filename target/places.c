/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The admin socket and the pid file; see places.h.  The functions that the opener runs take
 * nothing from the daemon: their paths were fixed before it was forked.
 */
#include "config.h"

#include "target/places.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/log.h"
#include "base/opener.h"
#include "base/pool.h"
#include "base/privs.h"
#include "target/places_proof.h"

#define NOBODY_UID 65534 /* of the kernel for whoever has no number here: shared by its nature */

static struct {
    char *socket_path, *pid_path;
    struct privs as;
    bool give;
    pid_t daemon;
    int fd;     /* in the opener: the listening socket */
    int own_fd; /* in the daemon: the same */
    dev_t dev;
    ino_t ino; /* of its name */
    bool has_pid_file;
} pl = {.fd = -1, .own_fd = -1};

/* --- the admin socket, in the opener --------------------------------------------------------- */

/* A socket that nobody answers on is a leftover. */
static bool
is_leftover(const struct sockaddr_un *sa, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    int rc = connect(fd, (const struct sockaddr *)sa, len);
    bool dead = rc < 0 && errno == ECONNREFUSED;
    close(fd);
    return dead;
}

/* By a descriptor: the name may lie where others can put something else in its place. */
static int
own_socket(const char *path)
{
    struct stat st;
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = 0;
    if (fstat(fd, &st) < 0)
        err = -errno;
    else if (!S_ISSOCK(st.st_mode))
        err = -EEXIST;
    else if (pl.give && fchownat(fd, "", pl.as.uid, pl.as.gid, AT_EMPTY_PATH) < 0)
        err = -errno;
    pl.dev = st.st_dev;
    pl.ino = st.st_ino;
    close(fd);
    return err;
}

static int
bind_there(const struct sockaddr_un *sa, socklen_t len)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    mode_t old = umask(0177); /* 0600 from the first moment */
    int err = bind(fd, (const struct sockaddr *)sa, len) < 0 ? -errno : 0;
    umask(old);
    if (err == 0)
        err = own_socket(sa->sun_path);
    if (err == 0 && listen(fd, 64) < 0)
        err = -errno;
    if (err == 0)
        return fd;
    close(fd);
    return err;
}

/* The opener of a daemon that was killed a moment ago still has the socket: it is about to end. */
static bool
becomes_free(const struct sockaddr_un *sa, socklen_t len)
{
    struct stat st;
    for (unsigned ms = 0; ms < LOCK_PATIENCE_MS; ms += LOCK_LOOK_MS) {
        if (is_leftover(sa, len) || lstat(sa->sun_path, &st) < 0)
            return true;
        clock_pause_ms(LOCK_LOOK_MS);
    }
    return false;
}

static int
serve_socket(const void *arg, size_t arglen)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    const char *path = pl.socket_path;
    struct stat st;

    (void)arg;
    (void)arglen;
    if (pl.fd >= 0)
        return -EALREADY;
    if (strlen(path) >= sizeof sa.sun_path)
        return -ENAMETOOLONG;
    memcpy(sa.sun_path, path, strlen(path) + 1);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1);
    mode_t old = umask(022);
    int rc = dirs_make_above(path);
    umask(old);
    if (rc < 0)
        return rc;
    if (lstat(path, &st) == 0) {
        if (!S_ISSOCK(st.st_mode))
            return -EEXIST;
        if (!becomes_free(&sa, len))
            return -EADDRINUSE;
        unlink(path);
    }
    int fd = bind_there(&sa, len);
    if (fd < 0)
        return fd;
    pl.fd = fd;
    return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static bool
is_peer_trusted(int fd)
{
    struct ucred cr;
    socklen_t len = sizeof cr;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cr, &len) == 0 &&
           (cr.uid == 0 || cr.uid == geteuid());
}

/* Of a connection that the daemon took. */
static bool
may_permit(int fd)
{
    return pl.fd >= 0 && is_peer_trusted(fd) && places_is_accepted(pl.fd, fd);
}

static int
serve_accept(const void *arg, size_t arglen)
{
    (void)arg;
    (void)arglen;
    int fd = accept4(pl.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return -errno;
    if (is_peer_trusted(fd))
        opener_trust(fd);
    return fd;
}

/* --- the pid file, in the opener ------------------------------------------------------------- */

static int
serve_pid(const void *arg, size_t arglen)
{
    char tmp[PATH_MAX], text[32];

    (void)arg;
    (void)arglen;
    if (!pl.pid_path || snprintf(tmp, sizeof tmp, "%s.new", pl.pid_path) >= (int)sizeof tmp)
        return pl.pid_path ? -ENAMETOOLONG : 0;
    (void)unlink(tmp);
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    int n = snprintf(text, sizeof text, "%ld\n", (long)pl.daemon);
    int err = fchmod(fd, 0644) < 0 ? -errno : 0;
    if (err == 0 && write(fd, text, (size_t)n) != n)
        err = -EIO;
    if (close(fd) < 0 && err == 0)
        err = -errno;
    if (err == 0 && rename(tmp, pl.pid_path) < 0)
        err = -errno;
    if (err < 0)
        (void)unlink(tmp);
    pl.has_pid_file = err == 0;
    return err;
}

/* Not one that another daemon has put there since. */
static void
remove_pid(void)
{
    char text[32] = "";
    int fd = open(pl.pid_path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n > 0 && strtol(text, NULL, 10) == (long)pl.daemon)
        (void)unlink(pl.pid_path);
}

static void
on_daemon_gone(void)
{
    struct stat st;
    if (pl.fd >= 0 && lstat(pl.socket_path, &st) == 0 && st.st_dev == pl.dev && st.st_ino == pl.ino)
        (void)unlink(pl.socket_path);
    if (pl.has_pid_file)
        remove_pid();
}

/* --- the daemon ------------------------------------------------------------------------------ */

void
places_init(const char *socket_path, const char *pid_path, const struct privs *as)
{
    pl.socket_path = xstrdup(socket_path);
    pl.pid_path = pid_path ? xstrdup(pid_path) : NULL;
    pl.daemon = getpid();
    pl.give = as != NULL;
    if (as)
        pl.as = *as;
    opener_serve(OPENER_ADMIN_SOCKET, serve_socket, true);
    opener_serve(OPENER_ADMIN_ACCEPT, serve_accept, true);
    opener_trust_by(may_permit);
    opener_serve(OPENER_PID_FILE, serve_pid, true);
    opener_at_end(on_daemon_gone);
}

int
places_listen(void)
{
    pl.own_fd = opener_call(OPENER_ADMIN_SOCKET, "", 0);
    return pl.own_fd;
}

int
places_accept(void)
{
    return opener_call(OPENER_ADMIN_ACCEPT, "", 0);
}

bool
places_ask_opener(void)
{
    return pl.give;
}

int
places_accept_here(void)
{
    int fd = accept4(pl.own_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

bool
places_peer_may(int fd)
{
    struct ucred cr;
    socklen_t len = sizeof cr;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cr, &len) < 0)
        return false;
    if (cr.uid == 0 || (cr.uid == geteuid() && cr.uid != NOBODY_UID))
        return true;
    log_event(LL_WARN, LA_ADMIN, "refused uid=%u pid=%d", (unsigned)cr.uid, (int)cr.pid);
    return false;
}

int
places_write_pid(void)
{
    return opener_call(OPENER_PID_FILE, "", 0);
}
