/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copying from and to a mapped file.  A file may be cut by somebody else at any time, and touching
 * the pages that went is SIGBUS: here that is an answer, not the end of the daemon.  Any thread.
 */
#ifndef BASE_GUARD_H
#define BASE_GUARD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Once before the first guard_copy; more often does no harm. Takes SIGBUS over: what comes from
 * anywhere else ends the process as before. */
void guard_init(void);

/* The signals that threads other than main block: all but those that a thread's own fault raises.
 * A fault whose signal is blocked ends the process, whatever the handler. */
void guard_thread_signals(sigset_t *set);

/* memcpy. False: some of it was not there; how much was copied is unknown. */
bool guard_copy(void *dst, const void *src, size_t len);

#endif
