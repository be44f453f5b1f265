/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opener.  One process, forked before threads, that holds the list of what may be opened and
 * reads requests from a SOCK_SEQPACKET socket; each request brings the socket its answer goes to,
 * so callers on several threads need no lock and a slow one holds up nobody.  An open is done by
 * a child of the opener, because open(2) may hang for ever.  The opener ends when the daemon's
 * end of the socket is closed, and its children with it.
 *
 * What the daemon sends is not believed: opener_permit.c has what may be done.
 */
#include "config.h"

#include "base/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/opener_priv.h"
#include "base/pool.h"
#include "base/privs.h"
#include "base/secret.h"

#define MAX_CHILDREN 256
#define END_MS       3000
#define END_LOOK_MS  5

struct service {
    opener_fn fn;
    bool at_once;
};

static int daemon_sock = -1; /* the daemon's end; -1: no opener */
static pid_t opener_pid;
/* Held to send a request and to stop, never while waiting for an answer: a request must not go to
 * whatever gets the number of a socket that was closed meanwhile.  Who holds it may wait for the
 * opener to read, so who may not wait only tries it. */
static pthread_mutex_t sock_lock = PTHREAD_MUTEX_INITIALIZER;
/* Requests that nobody waits for and that could not leave yet; they go before all later ones. */
static struct list posted = {&posted, &posted};
static pthread_mutex_t posted_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int patience_ms = -1; /* for ever */
static atomic_bool in_process = true;      /* until opener_start; not again after opener_stop */
static struct service services[OPENER_SERVICES]; /* these: fixed before the fork */
static void (*at_end)(void);
static bool guarded;
static int voucher = -1;    /* main's, for what it asks next */
static int child_sock = -1; /* of a child of the opener: where it asks for permits */

/* --- descriptors over sockets ---------------------------------------------------------------- */

#define FDS_MAX 2u /* where the answer goes, and who vouches for the request */

/* Sends the bytes and n descriptors. 0 or -errno. */
static int
send_fds(int sock, const void *p, size_t len, const int *fds, unsigned n_fds, int flags)
{
    union {
        char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } u;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = len};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds > 0) {
        memset(&u, 0, sizeof u);
        m.msg_control = u.buf;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    ssize_t n;
    do {
        n = sendmsg(sock, &m, MSG_NOSIGNAL | flags);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -EIO;
}

/* Bytes received (0: the other end is closed) or -errno; fds are descriptors or -1. */
static ssize_t
recv_fds(int sock, void *p, size_t len, int fds[FDS_MAX])
{
    union {
        char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } u;
    struct iovec iov = {.iov_base = p, .iov_len = len};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = u.buf, .msg_controllen = sizeof u.buf};
    ssize_t n;
    for (unsigned i = 0; i < FDS_MAX; i++)
        fds[i] = -1;
    do {
        n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len <= CMSG_LEN(FDS_MAX * sizeof(int)))
        memcpy(fds, CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));
    return n;
}

/* --- the opener's process -------------------------------------------------------------------- */

/* res: a descriptor, which stays open here, 0, or -errno. */
static void
answer(int sock, int res)
{
    int err = res < 0 ? res : 0;
    if (sock >= 0) /* else nobody waits */
        send_fds(sock, &err, sizeof err, &res, res > 0 ? 1 : 0, 0);
}

static int
do_request(const struct opener_request *rq, int extra)
{
    switch (rq->op) {
    case OPENER_OPEN:
        return opener_do_open(rq->path, rq->flags | extra, rq->mode, guarded);
    case OPENER_LISTEN:
        return opener_do_listen((const struct sockaddr *)&rq->addr, rq->addrlen, rq->backlog,
                                (unsigned)rq->flags);
    case OPENER_CALL:
        return services[rq->flags].fn(rq->path, rq->len);
    default:
        return -EINVAL;
    }
}

static _Noreturn void
child_main(pid_t opener, int sock, const struct opener_request *rq, int extra)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != opener)
        _exit(1);
    answer(sock, do_request(rq, extra));
    _exit(0);
}

static unsigned
reap_children(unsigned n)
{
    while (n > 0 && waitpid(-1, NULL, WNOHANG) > 0)
        n--;
    return n;
}

/* The descriptors of the opener's process. main: requests of the daemon; own: requests of
 * children, which may permit; ask: the other end of that, for them. */
enum { FD_MAIN = 3, FD_OWN, FD_ASK, FD_REST };

static unsigned
serve_by_child(int sock, const struct opener_request *rq, int extra, unsigned children)
{
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
        close(FD_MAIN);
        close(FD_OWN);
        child_sock = FD_ASK;
        atomic_store(&in_process, false); /* the list is its parent's */
        child_main(self, sock, rq, extra);
    }
    return children + 1;
}

static void
serve_at_once(int sock, const struct opener_request *rq)
{
    int res = services[rq->flags].fn(rq->path, rq->len);
    answer(sock, res);
    if (res > 0)
        close(res);
}

/* Writes what is granted when it has changed. 0 or -errno. */
static int
keep_granted(void)
{
    return permit_is_dirty() && guarded ? granted_write() : 0;
}

/* Does one request; the number of children afterwards. */
static unsigned
serve_one(int sock, const struct opener_request *rq, bool vouched, unsigned children)
{
    int extra = 0;
    switch (rq->op) {
    case OPENER_PERMIT:
        answer(sock, permit_add(rq->path, (unsigned)rq->flags, vouched || !guarded));
        return children;
    case OPENER_REVOKE:
        answer(sock, permit_del(rq->path));
        return children;
    case OPENER_SEAL: {
        int err = guarded ? granted_load() : 0;
        permit_seal();
        answer(sock, err);
        return children;
    }
    case OPENER_SETTLE:
        permit_settle(rq->flags != 0);
        answer(sock, keep_granted());
        return children;
    case OPENER_OPEN: /* what is answered after it has lasted is granted for good */
        (void)keep_granted();
        extra = permit_check_open(rq->path, rq->flags);
        break;
    case OPENER_LISTEN:
        if (guarded)
            extra = permit_check_listen((const struct sockaddr *)&rq->addr, rq->addrlen);
        break;
    case OPENER_CALL:
        if (rq->flags < 0 || rq->flags >= OPENER_SERVICES || !services[rq->flags].fn) {
            extra = -EINVAL;
        } else if (services[rq->flags].at_once) {
            serve_at_once(sock, rq);
            return children;
        }
        break;
    default:
        extra = -EINVAL;
    }
    if (extra < 0) {
        answer(sock, extra);
        return children;
    }
    return serve_by_child(sock, rq, extra, children);
}

/* Reads and does a request of the daemon, or of a child. False: there will be no more. */
static bool
serve(int sock, bool is_own, unsigned *children)
{
    static struct opener_request rq;
    int fds[FDS_MAX];
    ssize_t n = recv_fds(sock, &rq, sizeof rq, fds);
    if (n <= 0)
        return false;
    bool is_post = (size_t)n == sizeof rq && rq.posted != 0;
    int to = is_post ? -1 : fds[0], by = is_post ? fds[0] : fds[1];
    if (is_post || to >= 0) {
        if ((size_t)n == sizeof rq && memchr(rq.path, '\0', sizeof rq.path) &&
            rq.len < sizeof rq.path && rq.addrlen <= sizeof rq.addr &&
            (!is_own || rq.op == OPENER_PERMIT) &&
            (!is_post || rq.op == OPENER_PERMIT || rq.op == OPENER_REVOKE))
            *children = serve_one(to, &rq, is_own || permit_is_trusted(by), *children);
        else
            answer(to, -EINVAL);
    }
    for (unsigned i = 0; i < FDS_MAX; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    return true;
}

/* Its descriptors at the places where children look for them. */
static void
arrange_fds(int sock)
{
    int own[2];
    int keep = fcntl(sock, F_DUPFD_CLOEXEC, FD_REST);
    if (keep < 0 || dup3(keep, FD_MAIN, O_CLOEXEC) < 0)
        _exit(1);
    close_range(FD_OWN, ~0u, 0);
    /* the lowest numbers that are free, one after the other */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, own) < 0 || own[0] != FD_OWN ||
        own[1] != FD_ASK)
        _exit(1);
}

static _Noreturn void
opener_main(int sock)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2};
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
    umask(077);
    arrange_fds(sock);
    if (guarded)
        privs_keep_opener();
    for (;;) {
        struct pollfd pfd[] = {{.fd = FD_MAIN, .events = POLLIN}, {.fd = FD_OWN, .events = POLLIN}};
        /* children are reaped once a second while there are any */
        int ready = poll(pfd, 2, 0);
        if (ready == 0) {
            (void)keep_granted();
            ready = poll(pfd, 2, children > 0 ? 1000 : -1);
        }
        children = reap_children(children);
        if (ready <= 0)
            continue;
        if (pfd[1].revents)
            (void)serve(FD_OWN, true, &children);
        if (pfd[0].revents && !serve(FD_MAIN, false, &children))
            break;
    }
    (void)keep_granted();
    if (at_end)
        at_end();
    _exit(0);
}

void
opener_guard(void)
{
    guarded = true;
}

void
opener_serve(enum opener_service service, opener_fn fn, bool at_once)
{
    services[service] = (struct service){fn, at_once};
}

void
opener_at_end(void (*fn)(void))
{
    at_end = fn;
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
    if (daemon_sock >= 0)
        (void)shutdown(daemon_sock, SHUT_RDWR); /* who waits to send waits no longer */
    pthread_mutex_lock(&sock_lock);
    bool running = daemon_sock >= 0;
    if (running)
        close(daemon_sock);
    daemon_sock = -1;
    pthread_mutex_unlock(&sock_lock);
    if (!running)
        return;
    /* it waits for nothing that can hang, so it ends at once, unless somebody stopped it: then
     * when it goes on; a SIGCHLD handler of the loop may have taken it already */
    for (unsigned ms = 0; ms < END_MS; ms += END_LOOK_MS) {
        pid_t pid = waitpid(opener_pid, NULL, WNOHANG);
        if (pid != 0 && !(pid < 0 && errno == EINTR))
            return;
        clock_pause_ms(END_LOOK_MS);
    }
}

/* --- the daemon's side ----------------------------------------------------------------------- */

/* A request that nobody waits for. */
struct post {
    struct list link;
    struct opener_request *rq;
    int by; /* who vouches for it, or -1 */
};

static void
post_free(struct post *p)
{
    if (p->by >= 0)
        close(p->by);
    free(p->rq);
    free(p);
}

/* sock_lock held: what was posted leaves, as far as it can. 0, -EAGAIN, or what sending failed
 * with. */
static int
send_posted(int to, int flags)
{
    for (;;) {
        pthread_mutex_lock(&posted_lock);
        struct post *p = list_is_empty(&posted) ? NULL : list_first(&posted, struct post, link);
        pthread_mutex_unlock(&posted_lock);
        if (!p)
            return 0;
        int rc = send_fds(to, p->rq, sizeof *p->rq, &p->by, p->by >= 0 ? 1 : 0, flags);
        if (rc == -EAGAIN)
            return rc;
        pthread_mutex_lock(&posted_lock);
        list_del(&p->link);
        pthread_mutex_unlock(&posted_lock);
        post_free(p);
        if (rc < 0)
            return rc;
    }
}

/* Takes rq over. It keeps its place before all that is asked afterwards. */
static void
post(struct opener_request *rq, int by)
{
    struct post *p = xcalloc(1, sizeof *p);

    rq->posted = 1;
    p->rq = rq;
    p->by = by >= 0 ? fcntl(by, F_DUPFD_CLOEXEC, 0) : -1; /* it may be closed until then */
    pthread_mutex_lock(&posted_lock);
    list_add_tail(&posted, &p->link);
    pthread_mutex_unlock(&posted_lock);
    if (pthread_mutex_trylock(&sock_lock) != 0)
        return; /* with whoever asks next */
    if (daemon_sock >= 0)
        (void)send_posted(daemon_sock, MSG_DONTWAIT);
    pthread_mutex_unlock(&sock_lock);
}

/* 0, or -ETIMEDOUT: this thread may not wait any longer. */
static int
lock_sock(void)
{
    for (int ms = 0; patience_ms >= 0; ms++) {
        if (pthread_mutex_trylock(&sock_lock) == 0)
            return 0;
        if (ms >= patience_ms)
            return -ETIMEDOUT;
        clock_pause_ms(1);
    }
    pthread_mutex_lock(&sock_lock);
    return 0;
}

static int
send_request(const struct opener_request *rq, const int *fds, unsigned n_fds)
{
    int flags = patience_ms >= 0 ? MSG_DONTWAIT : 0;
    int rc = lock_sock();
    if (rc < 0)
        return rc;
    int to = child_sock >= 0 ? child_sock : daemon_sock;
    rc = to >= 0 ? send_posted(to, flags) : -EPIPE;
    if (rc == 0)
        rc = send_fds(to, rq, sizeof *rq, fds, n_fds, flags);
    pthread_mutex_unlock(&sock_lock);
    return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

/* Sends a request and waits for the answer: a descriptor, 0, or -errno. */
static int
ask(const struct opener_request *rq)
{
    int sv[2], fds[FDS_MAX], err = -EIO;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return -errno;
    /* permits come from main, which alone may look at it; the rest also from helpers */
    int by = rq->op == OPENER_PERMIT ? voucher : -1;
    int give[FDS_MAX] = {sv[1], by};
    unsigned n_give = by >= 0 ? 2 : 1;
    int sent = send_request(rq, give, n_give);
    close(sv[1]);
    if (sent < 0) {
        close(sv[0]);
        return sent == -EPIPE || sent == -ECONNRESET ? -EIO : sent;
    }
    struct pollfd pfd = {.fd = sv[0], .events = POLLIN};
    if (patience_ms >= 0 && poll(&pfd, 1, patience_ms) == 0) {
        close(sv[0]);
        return -ETIMEDOUT;
    }
    ssize_t n = recv_fds(sv[0], &err, sizeof err, fds);
    close(sv[0]);
    if (n != (ssize_t)sizeof err)
        err = n < 0 ? (int)n : -EIO; /* the opener or its child is gone */
    if (err < 0) {
        if (fds[0] >= 0)
            close(fds[0]);
        return err;
    }
    return fds[0] >= 0 ? fds[0] : 0;
}

static struct opener_request *
request_new(enum opener_op op, const void *arg, size_t len)
{
    struct opener_request *rq = xcalloc(1, sizeof *rq); /* zeroed: all of it is sent */
    rq->op = op;
    rq->len = len;
    memcpy(rq->path, arg, len);
    return rq;
}

static int
ask_path(enum opener_op op, const char *path, unsigned flags)
{
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (atomic_load(&in_process)) /* kept for an opener that is started later */
        return op == OPENER_PERMIT ? permit_add(path, flags, true) : permit_del(path);
    struct opener_request *rq = request_new(op, path, strlen(path));
    rq->flags = (int)flags;
    if (patience_ms >= 0) {
        post(rq, op == OPENER_PERMIT ? voucher : -1);
        return 0;
    }
    int res = ask(rq);
    free(rq);
    return res;
}

int
opener_permit(const char *path)
{
    return ask_path(OPENER_PERMIT, path, 0);
}

int
opener_permit_new(const char *path)
{
    return ask_path(OPENER_PERMIT, path, PERMIT_NEW);
}

int
opener_revoke(const char *path)
{
    return ask_path(OPENER_REVOKE, path, 0);
}

static int
ask_op(enum opener_op op, int flags)
{
    if (atomic_load(&in_process))
        return 0;
    struct opener_request *rq = request_new(op, "", 0);
    rq->flags = flags;
    int res = ask(rq);
    free(rq);
    return res;
}

int
opener_seal(void)
{
    return ask_op(OPENER_SEAL, 0);
}

int
opener_settle(bool keep)
{
    return ask_op(OPENER_SETTLE, keep);
}

void
opener_impatient(int ms)
{
    patience_ms = ms;
}

void
opener_vouch(int fd)
{
    voucher = fd;
}

int
opener_open(const char *path, int flags, mode_t mode)
{
    if (strlen(path) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (atomic_load(&in_process))
        return opener_do_open(path, flags, mode, false);
    struct opener_request *rq = request_new(OPENER_OPEN, path, strlen(path));
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
        return opener_do_listen(addr, addrlen, backlog, flags);
    if (!permit_is_needed(addr, addrlen)) { /* no rights, so no need to wait for the opener */
        int fd = opener_do_listen(addr, addrlen, backlog, flags);
        if (fd != -EACCES)
            return fd;
    }
    struct opener_request *rq = request_new(OPENER_LISTEN, "", 0);
    memcpy(&rq->addr, addr, addrlen);
    rq->addrlen = addrlen;
    rq->flags = (int)flags;
    rq->backlog = backlog;
    int res = ask(rq);
    free(rq);
    return res;
}

int
opener_call(enum opener_service service, const void *arg, size_t len)
{
    if (len >= PATH_MAX)
        return -EMSGSIZE;
    if (atomic_load(&in_process))
        return services[service].fn ? services[service].fn(arg, len) : -EINVAL;
    struct opener_request *rq = request_new(OPENER_CALL, arg, len);
    rq->flags = (int)service;
    int res = ask(rq);
    free(rq);
    return res;
}
