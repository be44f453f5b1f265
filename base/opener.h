/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opener: a child process forked by main before any thread or ring exists, which keeps the
 * start privileges.  Every later open or bind goes through it; descriptors come back by
 * SCM_RIGHTS.  It opens only what was permitted (opener_permit, by main, from the configuration
 * or an admin request that was accepted).  It ends when the daemon ends.
 *
 * Calls block for as long as the kernel's open does: from helper threads, or from main before
 * its loop runs.  Calls are serialised by a lock, but a hung open must not stop the others: the
 * opener forks one short-lived child a request.
 */
#ifndef BASE_OPENER_H
#define BASE_OPENER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

/* 0 or -errno. Before threads. */
int opener_start(void);
void opener_stop(void);

/* From now on `path` (exact) may be opened. Directories: `path` ending in '/' permits direct
 * children (which must not be symbolic links). Permitting twice is the same as once; revoking
 * what is not permitted is -ENOENT. -ENAMETOOLONG. Main only. */
int opener_permit(const char *path);
int opener_revoke(const char *path);

/* open(2); descriptor (O_CLOEXEC) or -errno (-EPERM: not permitted). */
int opener_open(const char *path, int flags, mode_t mode);
/* Listening TCP socket bound to addr (AF_INET, AF_INET6), or -errno. v6 sockets are IPV6_V6ONLY;
 * SO_REUSEADDR, O_NONBLOCK and O_CLOEXEC are set. OPENER_FREEBIND: no interface needs to have the
 * address yet. */
enum opener_listen_flags { OPENER_FREEBIND = 1 };
int opener_listen(const struct sockaddr *addr, socklen_t addrlen, int backlog, unsigned flags);

/* Without opener_start (unit tests, tools) the calls are made in this process, unrestricted. Calls
 * that wait when opener_stop comes, and all after it, fail with -EIO. */

#endif
