/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the opener may do: a list of paths and privileged ports.  It is filled freely until it is
 * sealed; after that only on the word of somebody who had the right to begin with, so that a
 * daemon that was taken over cannot widen it.  In the opener's process (before the fork: main).
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opener.h"
#include "base/opener_priv.h"
#include "base/pool.h"

/* All that backends and layers use. Not O_TRUNC: what is there is only to be lost by writing. */
#define OPEN_FLAGS                                                                                 \
    (O_ACCMODE | O_APPEND | O_CLOEXEC | O_CREAT | O_DIRECT | O_DSYNC | O_EXCL | O_NOFOLLOW |       \
     O_NONBLOCK | O_PATH | O_SYNC)

#define TRUSTED_MAX 64u /* newest connections; more than the daemon keeps open */

#define BUCKETS 4096u /* thousands of stores are looked up at every look */

struct permit {
    struct permit *next;
    bool asked;     /* it is permitted; else it only was, to a daemon before */
    unsigned flags; /* that it has or had */
    size_t len;
    char *path;
};

static struct permit *permits[BUCKETS];
static bool is_sealed, is_settled, is_dirty;
static uint64_t trusted[TRUSTED_MAX]; /* socket cookies: unique for as long as the kernel runs */
static unsigned trusted_next;
static bool (*trusted_by)(int fd);

/* FNV-1a. */
static struct permit **
bucket_of(const char *path, size_t len)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)path[i]) * 16777619u;
    return &permits[(h ^ h >> 16) % BUCKETS];
}

/* The place of the pointer to it, so that it can be taken out; *NULL: not there. */
static struct permit **
permit_place(const char *path, size_t len)
{
    struct permit **pp = bucket_of(path, len);
    while (*pp && ((*pp)->len != len || memcmp((*pp)->path, path, len) != 0))
        pp = &(*pp)->next;
    return pp;
}

/* What is permitted. */
static struct permit *
permit_find(const char *path, size_t len)
{
    struct permit *p = *permit_place(path, len);
    return p && p->asked ? p : NULL;
}

static struct permit *
permit_new(const char *path)
{
    struct permit **at = bucket_of(path, strlen(path)), *p = xcalloc(1, sizeof *p);
    p->path = xstrdup(path);
    p->len = strlen(path);
    p->next = *at;
    *at = p;
    return p;
}

int
permit_add(const char *path, unsigned flags, bool vouched)
{
    if (path[0] == '\0')
        return -EINVAL;
    struct permit *p = *permit_place(path, strlen(path));
    bool had = p && (p->flags | flags) == p->flags;
    if (had && p->asked)
        return 0;
    if (is_sealed && !vouched && !had)
        return -EPERM;
    if (!p)
        p = permit_new(path);
    p->flags = p->asked ? p->flags | flags : flags;
    p->asked = is_dirty = true;
    return 0;
}

/* --- what was granted ------------------------------------------------------------------------ */

void
permit_grant(const char *path, unsigned flags)
{
    if (!*permit_place(path, strlen(path)))
        permit_new(path)->flags = flags;
}

static void
forget_granted(struct permit **at)
{
    while (*at) {
        struct permit *p = *at;
        if (p->asked) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        free(p->path);
        free(p);
    }
}

void
permit_settle(bool keep)
{
    for (unsigned i = 0; i < BUCKETS && !keep; i++)
        forget_granted(&permits[i]);
    is_settled = is_dirty = true;
}

bool
permit_is_dirty(void)
{
    bool dirty = is_dirty && is_settled;
    if (dirty)
        is_dirty = false;
    return dirty;
}

void
permit_each(void (*fn)(const char *path, unsigned flags, void *arg), void *arg)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (const struct permit *p = permits[i]; p; p = p->next)
            fn(p->path, p->flags, arg);
    }
}

/* --- the list -------------------------------------------------------------------------------- */

int
permit_del(const char *path)
{
    struct permit **at = permit_place(path, strlen(path)), *p = *at;
    if (!p)
        return -ENOENT;
    *at = p->next;
    free(p->path);
    free(p);
    is_dirty = true;
    return 0;
}

int
permit_check_open(const char *path, int flags)
{
    size_t len = strlen(path);
    if (path[0] != '/')
        return -EPERM;
    const struct permit *p = permit_find(path, len);
    int extra = 0;
    if (!p) {
        const char *name = strrchr(path, '/') + 1;
        if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            return -EPERM;
        p = permit_find(path, (size_t)(name - path));
        extra = O_NOFOLLOW; /* who may write there must not choose what root opens */
    }
    if (!p || ((flags & O_CREAT) && !(p->flags & PERMIT_NEW)))
        return -EPERM;
    if ((flags & ~OPEN_FLAGS) || (!(flags & O_PATH) && (flags & O_ACCMODE) == O_ACCMODE))
        return -EINVAL;
    return extra;
}

/* --- ports ----------------------------------------------------------------------------------- */

static void
port_name(uint16_t port, char *buf, size_t size)
{
    (void)snprintf(buf, size, "port:%u", (unsigned)port);
}

int
opener_permit_port(uint16_t port)
{
    char name[16];
    if (port == 0 || port >= IPPORT_RESERVED)
        return 0;
    port_name(port, name, sizeof name);
    return opener_permit(name);
}

bool
permit_is_needed(const struct sockaddr *addr, socklen_t addrlen)
{
    const struct sockaddr_in *in = (const void *)addr; /* sin6_port lies there as well */
    if (addrlen < sizeof *in || (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
        return false; /* refused by who does it */
    uint16_t port = ntohs(in->sin_port);
    return port != 0 && port < IPPORT_RESERVED;
}

int
permit_check_listen(const struct sockaddr *addr, socklen_t addrlen)
{
    const struct sockaddr_in *in = (const void *)addr;
    char name[16];
    if (!permit_is_needed(addr, addrlen))
        return 0;
    port_name(ntohs(in->sin_port), name, sizeof name);
    return permit_find(name, strlen(name)) ? 0 : -EPERM;
}

/* --- whose word counts ----------------------------------------------------------------------- */

void
permit_seal(void)
{
    is_sealed = true;
}

static bool
cookie_of(int fd, uint64_t *cookie)
{
    socklen_t len = sizeof *cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &len) == 0 && *cookie != 0;
}

void
opener_trust(int fd)
{
    uint64_t cookie;
    if (cookie_of(fd, &cookie))
        trusted[trusted_next++ % TRUSTED_MAX] = cookie;
}

void
opener_trust_by(bool (*fn)(int fd))
{
    trusted_by = fn;
}

bool
permit_is_trusted(int fd)
{
    struct pollfd pfd = {.fd = fd};
    uint64_t cookie;
    if (fd < 0 || !cookie_of(fd, &cookie) || poll(&pfd, 1, 0) < 0 ||
        (pfd.revents & (POLLHUP | POLLERR | POLLNVAL)))
        return false;
    if (trusted_by && trusted_by(fd))
        return true;
    for (unsigned i = 0; i < TRUSTED_MAX; i++) {
        if (trusted[i] == cookie)
            return true;
    }
    return false;
}
