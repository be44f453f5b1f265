/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a connection was made to the admin socket, and by whom: asked by the opener about a
 * descriptor that the daemon shows, which is not believed.  Who is at its other end is the kernel's
 * word (SO_PEERCRED), but a daemon that was taken over could show a connection of its own to any
 * socket of root's, whose other end is root as well.  So the kernel is asked (sock_diag(7)) for the
 * file that the socket's name is: an accepted connection has that of the socket that listens, one
 * that was made by connecting has none or one of its own.
 */
#include "config.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "target/places_proof.h"

struct question {
    struct nlmsghdr nh;
    struct unix_diag_req rq;
};

/* The file of the answer; false: there is none in it. */
static bool
take_answer(const void *buf, size_t len, uint32_t inode, struct unix_diag_vfs *out)
{
    const struct nlmsghdr *nh = buf;
    if (len < sizeof *nh || !NLMSG_OK(nh, len) || nh->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        nh->nlmsg_len < NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
        return false;
    const struct unix_diag_msg *m = NLMSG_DATA(nh);
    const uint8_t *p = (const uint8_t *)(m + 1), *end = (const uint8_t *)buf + nh->nlmsg_len;
    if (m->udiag_ino != inode)
        return false;
    while ((size_t)(end - p) >= sizeof(struct nlattr)) {
        struct nlattr at;
        memcpy(&at, p, sizeof at);
        size_t whole = NLA_ALIGN(at.nla_len);
        if (at.nla_len < sizeof at || at.nla_len > (size_t)(end - p))
            return false;
        if (at.nla_type == UNIX_DIAG_VFS && at.nla_len >= sizeof at + sizeof *out) {
            memcpy(out, p + sizeof at, sizeof *out);
            return true;
        }
        if (whole >= (size_t)(end - p))
            return false;
        p += whole;
    }
    return false;
}

/* The file that is the name of this socket. */
static bool
file_of(int fd, struct unix_diag_vfs *out)
{
    _Alignas(struct nlmsghdr) uint8_t buf[4096];
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
        return false;
    struct question q = {.nh = {.nlmsg_len = sizeof q,
                                .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                                .nlmsg_flags = NLM_F_REQUEST},
                         .rq = {.sdiag_family = AF_UNIX,
                                .udiag_states = ~0u,
                                .udiag_ino = (uint32_t)st.st_ino,
                                .udiag_show = UDIAG_SHOW_VFS,
                                .udiag_cookie = {~0u, ~0u}}};
    int nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (nl < 0)
        return false;
    /* the kernel answers before send comes back */
    ssize_t n = send(nl, &q, sizeof q, 0) == (ssize_t)sizeof q
                    ? recv(nl, buf, sizeof buf, MSG_DONTWAIT)
                    : -1;
    close(nl);
    return n > 0 && take_answer(buf, (size_t)n, (uint32_t)st.st_ino, out);
}

bool
places_is_provable(int listener)
{
    struct unix_diag_vfs f;
    return file_of(listener, &f);
}

bool
places_is_accepted(int listener, int fd)
{
    struct sockaddr_un ours, its;
    socklen_t a = sizeof ours, b = sizeof its, len = sizeof(int);
    struct unix_diag_vfs f, g;
    int listens = 1;
    memset(&ours, 0, sizeof ours);
    memset(&its, 0, sizeof its);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) < 0 || listens ||
        getsockname(listener, (struct sockaddr *)&ours, &a) < 0 ||
        getsockname(fd, (struct sockaddr *)&its, &b) < 0 || a != b || a > sizeof ours ||
        memcmp(&ours, &its, a) != 0)
        return false;
    return file_of(listener, &f) && file_of(fd, &g) && f.udiag_vfs_ino == g.udiag_vfs_ino &&
           f.udiag_vfs_dev == g.udiag_vfs_dev;
}
