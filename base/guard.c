/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See guard.h.  The signal of a fault comes on the thread that faults, inside memcpy, where nothing
 * is held: so the handler may jump.
 */
#include "config.h"

#include "base/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>

static _Thread_local sigjmp_buf way_out;
static _Thread_local volatile sig_atomic_t is_guarded;

static void
on_sigbus(int sig)
{
    if (is_guarded) {
        /* the jump does not restore the mask (that would be a system call a copy), and not every
         * layer under us heeds SA_NODEFER: a fault while it is blocked would end the process */
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, sig);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        siglongjmp(way_out, 1);
    }
    signal(sig, SIG_DFL); /* the instruction is tried again, and that is the end */
}

static void
install(void)
{
    struct sigaction sa = {.sa_handler = on_sigbus, .sa_flags = SA_NODEFER};
    sigemptyset(&sa.sa_mask);
    sigaction(SIGBUS, &sa, NULL);
}

void
guard_thread_signals(sigset_t *set)
{
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigfillset(set);
    for (unsigned i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(set, faults[i]);
}

void
guard_init(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
}

static void
copy(void *dst, const void *src, size_t len)
{
#if defined(__SANITIZE_THREAD__) && defined(__x86_64__)
    /* Commands on the same blocks may run at once, as on any disk: no matter for ThreadSanitizer,
     * which does not look into this. */
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(len) : : "memory");
#else
    memcpy(dst, src, len);
#endif
}

bool
guard_copy(void *dst, const void *src, size_t len)
{
    if (sigsetjmp(way_out, 0) != 0) {
        is_guarded = 0;
        return false;
    }
    is_guarded = 1;
    copy(dst, src, len);
    is_guarded = 0;
    return true;
}
