/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plain TCP transport: a non-blocking socket.  Called by conn.c, rx.c and tx.c on the
 * connection's worker.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/uio.h>
#include <unistd.h>

#include "target/target.h"

#ifdef __SANITIZE_THREAD__
/* A socket that moved to another worker stays in the old loop's epoll set until that loop sees an
 * event for it and takes it out (libev does it that way, and copes when the number was closed or
 * reused meanwhile): to ThreadSanitizer that is a race with close. */
const char *__tsan_default_suppressions(void);
const char *
__tsan_default_suppressions(void)
{
    return "race:on_close_socket\n";
}
#endif

static int
on_handshake(struct xp *xp)
{
    (void)xp;
    return 0;
}

static ssize_t
on_read(struct xp *xp, struct iovec *iov, int niov)
{
    ssize_t n;
    do
        n = niov == 1 ? recv(xp->fd, iov->iov_base, iov->iov_len, 0) : readv(xp->fd, iov, niov);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static ssize_t
on_writev(struct xp *xp, const struct iovec *iov, int niov, bool more)
{
    struct msghdr mh = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)niov};
    ssize_t n;
    do
        n = sendmsg(xp->fd, &mh, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static bool
on_pending(const struct xp *xp)
{
    (void)xp;
    return false;
}

static int
on_wants(const struct xp *xp)
{
    (void)xp;
    return 0;
}

static unsigned
on_caps(const struct xp *xp)
{
    (void)xp;
    return 0;
}

static size_t
on_record_size(const struct xp *xp)
{
    (void)xp;
    return 0;
}

static void
on_shutdown(struct xp *xp)
{
    shutdown(xp->fd, SHUT_WR);
}

static void
on_close_socket(struct xp *xp)
{
    if (xp->fd >= 0)
        close(xp->fd);
    xp->fd = -1;
}

static const char *
on_peer_id(const struct xp *xp)
{
    (void)xp;
    return NULL;
}

static const struct xp_ops plain_ops = {
    .name = "tcp",
    .handshake = on_handshake,
    .read = on_read,
    .writev = on_writev,
    .pending = on_pending,
    .wants = on_wants,
    .caps = on_caps,
    .record_size = on_record_size,
    .shutdown = on_shutdown,
    .close = on_close_socket,
    .peer_id = on_peer_id,
};

void
xp_set_dscp(int fd)
{
    static atomic_bool was_set; /* what listens may still have it, and gives it to what comes */
    int dscp = tgt_opts.dscp;
    if (dscp < 0 && !atomic_load(&was_set))
        return;
    atomic_store(&was_set, true);
    int tos = dscp < 0 ? 0 : dscp << 2; /* the two bits below are ECN's (RFC 3168) */
    int family = 0;
    socklen_t len = sizeof family;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) == 0 && family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof tos);
    else
        (void)setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
}

/* A peer that is gone without a word is noticed: also before login and in discovery, and where
 * NOP-In is off. On sockets that are not TCP these fail, where there is nothing to set. */
static void
set_tcp(int fd)
{
    static const int one = 1;
    int idle = (int)tgt_opts.keepalive_idle_s, interval = (int)tgt_opts.keepalive_interval_s;
    int count = (int)tgt_opts.keepalive_count;
    unsigned user_ms = tgt_opts.user_timeout_s * 1000;
    if (idle > 0) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    }
    if (user_ms > 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_ms, sizeof user_ms);
    xp_set_dscp(fd);
}

int
xp_plain_init(struct xp *xp, int fd)
{
    int fl = fcntl(fd, F_GETFL);
    if (fl < 0 || fcntl(fd, F_SETFL, fl | O_NONBLOCK) < 0)
        return -errno;
    /* Responses leave in one send a loop turn; waiting for more would only add latency. Fails on
     * sockets that are not TCP, where there is nothing to turn off. */
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    set_tcp(fd);
    *xp = (struct xp){.ops = &plain_ops, .fd = fd};
    return 0;
}
