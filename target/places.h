/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the daemon makes in directories of root: the admin socket and the pid file.  The opener does
 * it, and removes them when the daemon is gone, however it went.
 */
#ifndef TARGET_PLACES_H
#define TARGET_PLACES_H

#include <stdbool.h>
#include <stddef.h>

struct privs;

/* Before opener_start, in the process that will be the daemon. pid_path: or NULL. as: whom the
 * socket is given to; NULL: nobody. */
void places_init(const char *socket_path, const char *pid_path, const struct privs *as);

/* Main. The listening admin socket, mode 0600, or -errno (-EADDRINUSE: somebody answers there,
 * -EEXIST: it is no socket). */
int places_listen(void);
/* A connection to it (non-blocking), or -errno; by the opener, so that it knows whose word counts,
 * and in a helper: it may wait. */
int places_accept(void);
/* Should it? A daemon that keeps its rights needs nobody's word. */
bool places_ask_opener(void);
/* The same in this process, at once. The opener believes in it nevertheless where the kernel can
 * prove it (places_proof.h), which it cannot of a client in another network namespace. */
int places_accept_here(void);
/* May the other end give orders? Root, and the daemon's own user unless many programs share it. */
bool places_peer_may(int fd);
/* 0 or -errno. */
int places_write_pid(void);

#endif
