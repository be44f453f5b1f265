/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the parts of the opener: opener.c (process and messages), opener_do.c (what is done),
 * opener_permit.c (what is permitted). */
#ifndef BASE_OPENER_PRIV_H
#define BASE_OPENER_PRIV_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* One message; with it come the socket for the answer (posted: nobody waits for one) and, for a
 * permit, who vouches for it. */
enum opener_op {
    OPENER_PERMIT,
    OPENER_REVOKE,
    OPENER_SEAL,
    OPENER_SETTLE,
    OPENER_OPEN,
    OPENER_LISTEN,
    OPENER_CALL
};

struct opener_request {
    enum opener_op op;
    unsigned posted; /* or 0 */
    int flags;       /* of open, of listen, of the permit; or the service */
    size_t len;      /* bytes of path that are a service's argument */
    mode_t mode;
    int backlog;
    socklen_t addrlen;
    struct sockaddr_storage addr;
    char path[PATH_MAX];
};

#define PERMIT_NEW 1u /* the file may be made, too */

/* open(2) and a listening socket: descriptor or -errno. guarded: links of other users than root
 * and this process's are not followed, directories are not handed out. */
int opener_do_open(const char *path, int flags, mode_t mode, bool guarded);
int opener_do_listen(const struct sockaddr *addr, socklen_t addrlen, int backlog, unsigned flags);

/* The list. vouched: somebody with the right to say so asks; else a sealed list takes nothing new
 * (-EPERM). */
int permit_add(const char *path, unsigned flags, bool vouched);
int permit_del(const char *path);
/* It was permitted before, with these flags: whoever asks for it may have it again. */
void permit_grant(const char *path, unsigned flags);
/* What was granted and nobody asked for is forgotten, unless all is kept; from now on a change is
 * worth writing (permit_is_dirty, until it is asked). */
void permit_settle(bool keep);
bool permit_is_dirty(void);
void permit_each(void (*fn)(const char *path, unsigned flags, void *arg), void *arg);

/* opener_granted.c: 0 or -errno; nothing to do is 0. */
int granted_load(void);
int granted_write(void);
/* Open flags to add (0, or O_NOFOLLOW for a child of a permitted directory), -EPERM, or -EINVAL
 * for flags that no backing store needs. */
int permit_check_open(const char *path, int flags);
int permit_check_listen(const struct sockaddr *addr, socklen_t addrlen);
/* Is it a port that only who has rights listens on? */
bool permit_is_needed(const struct sockaddr *addr, socklen_t addrlen);
void permit_seal(void);
/* Was this connection announced by opener_trust, and is its other end still there? */
bool permit_is_trusted(int fd);

#endif
