/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opener: a child process forked by main before any thread or ring exists, which keeps the
 * start privileges.  Every later open or bind goes through it; descriptors come back by
 * SCM_RIGHTS.  It opens only what was permitted (opener_permit, by main, from the configuration
 * or an admin request that was accepted).  It ends when the daemon ends.
 *
 * Calls block for as long as the kernel's open does: from helper threads, or from main before
 * its loop runs.  A hung open must not stop the others: the opener forks one short-lived child a
 * request.  A thread that may not wait says so (opener_impatient).
 */
#ifndef BASE_OPENER_H
#define BASE_OPENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* 0 or -errno. Before threads. */
int opener_start(void);
void opener_stop(void);

/* From now on `path` (exact) may be opened. Directories: `path` ending in '/' permits direct
 * children (which must not be symbolic links). Permitting twice is the same as once; revoking
 * what is not permitted is -ENOENT. -ENAMETOOLONG. Main only. */
int opener_permit(const char *path);
int opener_permit_new(const char *path); /* and it may be made, where it is missing */
int opener_revoke(const char *path);

/* The daemon will give up the rights that the opener keeps (before opener_start): from opener_seal
 * on a new permit (-EPERM) wants somebody who vouches for it, comes from a service (below), or was
 * granted to a daemon before (opener_granted).
 * Links that belong neither to root nor to the opener's user are not followed (-EPERM), ports
 * below 1024 are listened on only when permitted, directories are not opened (-EISDIR). */
void opener_guard(void);
int opener_seal(void);
/* Before opener_start: the file, of root alone, that keeps what is permitted over restarts. It is
 * read by opener_seal, whose error means that nothing was granted, and written from opener_settle
 * on. That forgets what was granted and not permitted again since; keep: it does not. */
void opener_granted(const char *path);
int opener_settle(bool keep);
/* opener_permit calls of main from now on are vouched for by the other end of this connection; -1:
 * by nobody. It counts when opener_trust was told of it, and while it is not closed. */
void opener_vouch(int fd);
/* In a service that runs at once: this connection's other end has the right to permit. */
void opener_trust(int fd);
/* Before opener_start: what the opener asks, beside that, whether a connection's other end has it.
 */
void opener_trust_by(bool (*fn)(int fd));
int opener_permit_port(uint16_t port); /* needed below 1024 only */

/* This thread does not wait any more: what it permits and revokes is on its way (0) and done before
 * whatever is asked afterwards, by whichever thread; what must give an answer has it within ms, or
 * fails with -ETIMEDOUT. */
void opener_impatient(int ms);

/* open(2); descriptor (O_CLOEXEC) or -errno (-EPERM: not permitted). */
int opener_open(const char *path, int flags, mode_t mode);
/* Listening TCP socket bound to addr (AF_INET, AF_INET6), or -errno. v6 sockets are IPV6_V6ONLY;
 * SO_REUSEADDR, O_NONBLOCK and O_CLOEXEC are set. OPENER_FREEBIND: no interface needs to have the
 * address yet. */
enum opener_listen_flags { OPENER_FREEBIND = 1 };
int opener_listen(const struct sockaddr *addr, socklen_t addrlen, int backlog, unsigned flags);

/* Work that needs the start's rights and is more than an open. Its function is set before
 * opener_start and runs in a child of the opener (it may hang; it may call opener_permit), or, with
 * at_once, in the opener itself (it may not hang; what it keeps in statics stays there). It gives
 * back a descriptor above 0, 0, or -errno; its argument comes from the daemon and is to be judged
 * like a stranger's. */
enum opener_service {
    OPENER_ADMIN_SOCKET, /* makes the admin socket: the listening descriptor */
    OPENER_ADMIN_ACCEPT, /* a connection to it */
    OPENER_PID_FILE,     /* writes it */
    OPENER_READ_CONF,    /* the daemon's configuration, as a file in memory */
    OPENER_PORT_OWNER,   /* which program listens there, as text in a file in memory */
    OPENER_STORE_USER,   /* which process has a device or a file open, likewise */
    OPENER_SERVICES
};
typedef int (*opener_fn)(const void *arg, size_t len);
void opener_serve(enum opener_service service, opener_fn fn, bool at_once);
/* From any thread; waits. What fn gave back (the descriptor is O_CLOEXEC). len < PATH_MAX. */
int opener_call(enum opener_service service, const void *arg, size_t len);
/* In the opener, when the daemon is gone, however it went. */
void opener_at_end(void (*fn)(void));

/* Without opener_start (unit tests, tools) the calls are made in this process, unrestricted. Calls
 * that wait when opener_stop comes, and all after it, fail with -EIO. */

#endif
