/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opener.  One process, forked before threads, that holds the list of what may be opened and
 * reads requests from a SOCK_SEQPACKET socket; each request brings the socket its answer goes to,
 * so callers on several threads need no lock and a slow one holds up nobody.  An open is done by
 * a child of the opener, because open(2) may hang for ever.  The opener ends when the daemon's
 * end of the socket is closed, and its children with it.
 */
#include "config.h"

#include "base/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/secret.h"

#define MAX_CHILDREN 256

enum req_op { REQ_PERMIT, REQ_REVOKE, REQ_OPEN, REQ_LISTEN };

struct request {
    enum req_op op;
    int flags;
    mode_t mode;
    int backlog;
    socklen_t addrlen;
    struct sockaddr_storage addr;
    char path[PATH_MAX];
};

struct permit {
    struct list link;
    char *path;
};

static int daemon_sock = -1; /* the daemon's end; -1: no opener */
static pid_t opener_pid;
/* Held to send a request and to stop, never while waiting for an answer: a request must not go to
 * whatever gets the number of a socket that was closed meanwhile. */
static pthread_mutex_t sock_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool in_process = true; /* until opener_start; not again after opener_stop */
static struct list permits = {&permits, &permits}; /* in the opener after the fork */

/* --- descriptors over sockets ---------------------------------------------------------------- */

/* Sends the bytes, and fd unless it is negative. 0 or -errno. */
static int
send_fd(int sock, const void *p, size_t len, int fd)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } u;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = len};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fd >= 0) {
        memset(&u, 0, sizeof u);
        m.msg_control = u.buf;
        m.msg_controllen = sizeof u.buf;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t n;
    do {
        n = sendmsg(sock, &m, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -EIO;
}

/* Bytes received (0: the other end is closed) or -errno; *fd is a descriptor or -1. */
static ssize_t
recv_fd(int sock, void *p, size_t len, int *fd)
{
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } u;
    struct iovec iov = {.iov_base = p, .iov_len = len};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.buf, .msg_controllen = sizeof u.buf};
    ssize_t n;
    *fd = -1;
    do {
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd, CMSG_DATA(c), sizeof *fd);
    return n;
}

/* --- what is done, in the child or (without an opener) here ---------------------------------- */

static int
do_open(const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC | O_NOCTTY, mode);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

/* Of Linux 4.15, not yet in every C library's headers. */
#ifndef IPV6_FREEBIND
#define IPV6_FREEBIND 78
#endif

static int
do_listen(const struct sockaddr *addr, socklen_t addrlen, int backlog, unsigned flags)
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

/* --- the list of what is permitted ----------------------------------------------------------- */

static struct permit *
permit_find(const char *path)
{
    list_each(it, &permits) {
        struct permit *p = container_of(it, struct permit, link);
        if (strcmp(p->path, path) == 0)
            return p;
    }
    return NULL;
}

static int
permit_add(const char *path)
{
    if (path[0] == '\0')
        return -EINVAL;
    if (permit_find(path))
        return 0;
    struct permit *p = xcalloc(1, sizeof *p);
    p->path = xstrdup(path);
    list_add_tail(&permits, &p->link);
    return 0;
}

static int
permit_del(const char *path)
{
    struct permit *p = permit_find(path);
    if (!p)
        return -ENOENT;
    list_del(&p->link);
    free(p->path);
    free(p);
    return 0;
}

/* Open flags to add (0, or O_NOFOLLOW for a child of a permitted directory), or -EPERM. */
static int
permit_check(const char *path)
{
    if (permit_find(path))
        return 0;
    const char *name = strrchr(path, '/');
    if (!name || name[1] == '\0' || strcmp(name, "/.") == 0 || strcmp(name, "/..") == 0)
        return -EPERM;
    size_t dirlen = (size_t)(name - path) + 1;
    list_each(it, &permits) {
        const struct permit *p = container_of(it, struct permit, link);
        if (strlen(p->path) == dirlen && memcmp(p->path, path, dirlen) == 0)
            return O_NOFOLLOW; /* who may write there must not choose what root opens */
    }
    return -EPERM;
}

/* --- the opener's process -------------------------------------------------------------------- */

static void
answer(int sock, int err)
{
    send_fd(sock, &err, sizeof err, -1);
}

static _Noreturn void
child_main(pid_t opener, int sock, const struct request *rq, int extra)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != opener)
        _exit(1);
    int res = rq->op == REQ_OPEN
                  ? do_open(rq->path, rq->flags | extra, rq->mode)
                  : do_listen((const struct sockaddr *)&rq->addr, rq->addrlen, rq->backlog,
                              (unsigned)rq->flags);
    if (res >= 0) {
        int none = 0;
        send_fd(sock, &none, sizeof none, res);
    } else {
        answer(sock, res);
    }
    _exit(0);
}

static unsigned
reap_children(unsigned n)
{
    while (n > 0 && waitpid(-1, NULL, WNOHANG) > 0)
        n--;
    return n;
}

/* Does one request; the number of children afterwards. */
static unsigned
serve_one(int main_sock, int sock, const struct request *rq, unsigned children)
{
    int extra = 0;
    switch (rq->op) {
    case REQ_PERMIT:
        answer(sock, permit_add(rq->path));
        return children;
    case REQ_REVOKE:
        answer(sock, permit_del(rq->path));
        return children;
    case REQ_OPEN:
        extra = permit_check(rq->path);
        break;
    case REQ_LISTEN:
        break;
    }
    if (extra < 0) {
        answer(sock, extra);
        return children;
    }
    if (children >= MAX_CHILDREN) {
        answer(sock, -EAGAIN);
        return children;
    }
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid < 0) {
        answer(sock, -errno);
        return children;
    }
    if (pid == 0) {
        close(main_sock);
        child_main(self, sock, rq, extra);
    }
    return children + 1;
}

static _Noreturn void
opener_main(int sock)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2};
    static struct request rq;
    unsigned children = 0;
    secret_forget_all(); /* the configuration's: not needed here */
    prctl(PR_SET_NAME, "evtgt-opener");
    /* a stop signal to the group is the daemon's to handle; this process ends after it */
    for (unsigned i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        signal(ignored[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (sock != 3)
        dup3(sock, 3, O_CLOEXEC);
    close_range(4, ~0u, 0);
    sock = 3;
    for (;;) {
        int reply;
        struct pollfd pfd = {.fd = sock, .events = POLLIN};
        /* children are reaped once a second while there are any */
        int ready = poll(&pfd, 1, children > 0 ? 1000 : -1);
        children = reap_children(children);
        if (ready <= 0)
            continue;
        ssize_t n = recv_fd(sock, &rq, sizeof rq, &reply);
        if (n <= 0)
            _exit(0);
        if (reply < 0)
            continue;
        if ((size_t)n == sizeof rq && memchr(rq.path, '\0', sizeof rq.path) &&
            rq.addrlen <= sizeof rq.addr)
            children = serve_one(sock, reply, &rq, children);
        else
            answer(reply, -EINVAL);
        close(reply);
    }
}

int
opener_start(void)
{
    int sv[2];
    if (daemon_sock >= 0)
        return -EALREADY;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid < 0) {
        int err = -errno;
        close(sv[0]);
        close(sv[1]);
        return err;
    }
    if (pid == 0) {
        close(sv[0]);
        opener_main(sv[1]);
    }
    close(sv[1]);
    daemon_sock = sv[0];
    opener_pid = pid;
    atomic_store(&in_process, false);
    return 0;
}

void
opener_stop(void)
{
    pthread_mutex_lock(&sock_lock);
    bool running = daemon_sock >= 0;
    if (running)
        close(daemon_sock);
    daemon_sock = -1;
    pthread_mutex_unlock(&sock_lock);
    if (!running)
        return;
    /* it waits for nothing that can hang, so it ends at once; a SIGCHLD handler of the loop may
     * have taken it already */
    while (waitpid(opener_pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* --- the daemon's side ----------------------------------------------------------------------- */

/* Sends a request and waits for the answer: a descriptor, 0, or -errno. */
static int
ask(const struct request *rq)
{
    int sv[2], err = -EIO, fd;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return -errno;
    pthread_mutex_lock(&sock_lock);
    int sent = daemon_sock >= 0 ? send_fd(daemon_sock, rq, sizeof *rq, sv[1]) : -EPIPE;
    pthread_mutex_unlock(&sock_lock);
    close(sv[1]);
    if (sent < 0) {
        close(sv[0]);
        return sent == -EPIPE || sent == -ECONNRESET ? -EIO : sent;
    }
    ssize_t n = recv_fd(sv[0], &err, sizeof err, &fd);
    close(sv[0]);
    if (n != (ssize_t)sizeof err)
        err = n < 0 ? (int)n : -EIO; /* the opener or its child is gone */
    if (err < 0) {
        if (fd >= 0)
            close(fd);
        return err;
    }
    return fd >= 0 ? fd : 0;
}

static struct request *
request_new(enum req_op op, const char *path)
{
    struct request *rq = xcalloc(1, sizeof *rq); /* zeroed: all of it is sent */
    rq->op = op;
    memcpy(rq->path, path, strlen(path) + 1);
    return rq;
}

static int
ask_path(enum req_op op, const char *path)
{
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (atomic_load(&in_process)) /* kept for an opener that is started later */
        return op == REQ_PERMIT ? permit_add(path) : permit_del(path);
    struct request *rq = request_new(op, path);
    int res = ask(rq);
    free(rq);
    return res;
}

int
opener_permit(const char *path)
{
    return ask_path(REQ_PERMIT, path);
}

int
opener_revoke(const char *path)
{
    return ask_path(REQ_REVOKE, path);
}

int
opener_open(const char *path, int flags, mode_t mode)
{
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (atomic_load(&in_process))
        return do_open(path, flags, mode);
    struct request *rq = request_new(REQ_OPEN, path);
    rq->flags = flags;
    rq->mode = mode;
    int res = ask(rq);
    free(rq);
    return res;
}

int
opener_listen(const struct sockaddr *addr, socklen_t addrlen, int backlog, unsigned flags)
{
    if (addrlen > sizeof(struct sockaddr_storage) || addrlen < sizeof addr->sa_family)
        return -EINVAL;
    if (atomic_load(&in_process))
        return do_listen(addr, addrlen, backlog, flags);
    struct request *rq = request_new(REQ_LISTEN, "");
    memcpy(&rq->addr, addr, addrlen);
    rq->addrlen = addrlen;
    rq->flags = (int)flags;
    rq->backlog = backlog;
    int res = ask(rq);
    free(rq);
    return res;
}
