/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of the iSNS client, see isns_link.h.  A peer that sends slowly, endlessly or
 * nonsense costs a bounded share of a loop turn and of memory.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/pool.h"
#include "target/isns_link.h"

#define TURN_BYTES 65536u       /* read in one loop turn */
#define TX_MAX     (256u << 10) /* unsent; a peer that does not read is dropped */

static void
link_down(struct isns_link *l, const char *why)
{
    isns_link_close(l);
    l->ops->down(l, why);
}

static void
on_partial(struct worker_timer *t)
{
    link_down(container_of(t, struct isns_link, partial), "message was not completed in time");
}

/* --- sending --------------------------------------------------------------------------------- */

/* False: the connection is broken. */
static bool
push(struct isns_link *l)
{
    while (l->tx_pos < l->tx_len) {
        ssize_t n = send(l->fd, l->tx + l->tx_pos, l->tx_len - l->tx_pos, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        l->tx_pos += (size_t)n;
    }
    l->tx_pos = l->tx_len = 0;
    ev_io_stop(worker_loop(l->w), &l->out);
    return true;
}

static void
on_writable(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    struct isns_link *l = container_of(ev, struct isns_link, out);
    int error = 0;
    socklen_t len = sizeof error;
    (void)revents;

    worker_assert_owner(l->w);
    if (!l->connecting) {
        if (l->tx_len - l->tx_pos > TX_MAX)
            link_down(l, "peer does not read");
        else if (!push(l))
            link_down(l, "connection lost");
        return;
    }
    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0) {
        link_down(l, error == ECONNREFUSED ? "connection refused" : "cannot connect");
        return;
    }
    l->connecting = false;
    ev_io_stop(loop, &l->out);
    ev_io_start(loop, &l->in);
    l->ops->up(l);
}

void
isns_link_send(struct isns_link *l, const void *p, size_t len)
{
    if (l->fd < 0 || l->tx_len - l->tx_pos > TX_MAX)
        return; /* on_writable drops it */
    if (l->tx_len + len > l->tx_room) {
        l->tx_room = 2 * (l->tx_len + len);
        l->tx = xrealloc(l->tx, l->tx_room);
    }
    memcpy(l->tx + l->tx_len, p, len);
    l->tx_len += len;
    ev_io_start(worker_loop(l->w), &l->out);
}

/* --- receiving ------------------------------------------------------------------------------- */

/* False: it was closed. */
static bool
take(struct isns_link *l, const uint8_t *p, size_t n)
{
    while (n != 0) {
        size_t used;
        int rc = isns_rx_feed(&l->rx, p, n, &used);
        if (rc < 0) {
            link_down(l, l->rx.why);
            return false;
        }
        p += used;
        n -= used;
        if (rc > 0) {
            worker_timer_stop(&l->partial); /* the next message has its own clock */
            l->in_message = true;
            l->ops->message(l);
            l->in_message = false;
            if (l->fd < 0) {
                isns_rx_fini(&l->rx);
                return false;
            }
        }
    }
    return true;
}

static void
watch_partial(struct isns_link *l)
{
    if (!isns_rx_is_partial(&l->rx))
        worker_timer_stop(&l->partial);
    else if (!worker_timer_is_active(&l->partial))
        worker_timer_start_ms(&l->partial, ISNS_PARTIAL_MS);
}

static void
on_readable(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    struct isns_link *l = container_of(ev, struct isns_link, in);
    static uint8_t buf[TURN_BYTES]; /* main's only */
    (void)loop;
    (void)revents;

    worker_assert_owner(l->w);
    ssize_t n = recv(l->fd, buf, sizeof buf, 0);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return;
    if (n <= 0) {
        link_down(l, n == 0 ? "closed by the peer" : "connection lost");
        return;
    }
    if (take(l, buf, (size_t)n))
        watch_partial(l);
}

/* --- begin and end --------------------------------------------------------------------------- */

void
isns_link_init(struct isns_link *l, struct worker *w, const struct isns_link_ops *ops,
               size_t msg_max)
{
    *l = (struct isns_link){.ops = ops, .w = w, .fd = -1};
    isns_rx_init(&l->rx, msg_max);
    ev_init(&l->in, on_readable);
    ev_init(&l->out, on_writable);
    worker_timer_init(&l->partial, w, on_partial);
}

static void
use_fd(struct isns_link *l, int fd)
{
    l->fd = fd;
    ev_io_set(&l->in, fd, EV_READ);
    ev_io_set(&l->out, fd, EV_WRITE);
}

int
isns_link_connect(struct isns_link *l, const struct sockaddr *addr, socklen_t len)
{
    int one = 1;
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    if (connect(fd, addr, len) != 0 && errno != EINPROGRESS) {
        int error = errno;
        (void)close(fd);
        return -error;
    }
    use_fd(l, fd);
    l->connecting = true;
    ev_io_start(worker_loop(l->w), &l->out);
    return 0;
}

void
isns_link_adopt(struct isns_link *l, int fd)
{
    use_fd(l, fd);
    ev_io_start(worker_loop(l->w), &l->in);
}

void
isns_link_close(struct isns_link *l)
{
    if (l->fd < 0)
        return;
    worker_assert_owner(l->w);
    ev_io_stop(worker_loop(l->w), &l->in);
    ev_io_stop(worker_loop(l->w), &l->out);
    worker_timer_stop(&l->partial);
    (void)close(l->fd);
    l->fd = -1;
    l->connecting = false;
    if (!l->in_message)
        isns_rx_fini(&l->rx);
    free(l->tx);
    l->tx = NULL;
    l->tx_len = l->tx_pos = l->tx_room = 0;
}

bool
isns_link_local(const struct isns_link *l, struct sockaddr_storage *sa)
{
    socklen_t len = sizeof *sa;
    return l->fd >= 0 && getsockname(l->fd, (struct sockaddr *)sa, &len) == 0;
}
