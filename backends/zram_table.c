/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups and entries of the table; see zram_priv.h. Any thread. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/zram_priv.h"

/* A group's word: chunks mapped (16 bits), threads inside, two flags. */
#define GROUP_USED     UINT64_C(0xffff)
#define GROUP_ONE      (UINT64_C(1) << 16)
#define GROUP_TOUCHED  (UINT64_C(1) << 62)
#define GROUP_DROPPING (UINT64_C(1) << 63)

#define SPINS 200 /* a holder is done in some microseconds, or in a context switch */

/* --- groups ---------------------------------------------------------------------------------- */

unsigned
zram_group_used(const struct zram_store *st, uint64_t g)
{
    return (unsigned)(atomic_load_explicit(&st->groups[g], memory_order_acquire) & GROUP_USED);
}

int
zram_group_enter(struct zram_store *st, uint64_t g, bool touch)
{
    uint64_t was = atomic_fetch_add_explicit(&st->groups[g], GROUP_ONE, memory_order_acquire);
    while ((was & GROUP_DROPPING) != 0) { /* one page: a microsecond */
        atomic_fetch_sub_explicit(&st->groups[g], GROUP_ONE, memory_order_relaxed);
        (void)sched_yield();
        was = atomic_fetch_add_explicit(&st->groups[g], GROUP_ONE, memory_order_acquire);
    }
    if (!touch || (was & GROUP_TOUCHED) != 0)
        return 0;
    if (!zram_mem_take(&st->mem, ZRAM_PAGE)) {
        zram_group_leave(st, g);
        return -ENOSPC;
    }
    was = atomic_fetch_or_explicit(&st->groups[g], GROUP_TOUCHED, memory_order_relaxed);
    if ((was & GROUP_TOUCHED) != 0)
        zram_mem_give(&st->mem, ZRAM_PAGE); /* another was as quick */
    else
        atomic_fetch_add_explicit(&st->touched, 1, memory_order_relaxed);
    return 0;
}

void
zram_group_leave(struct zram_store *st, uint64_t g)
{
    atomic_fetch_sub_explicit(&st->groups[g], GROUP_ONE, memory_order_release);
}

void
zram_group_add(struct zram_store *st, uint64_t g, int n)
{
    atomic_fetch_add_explicit(&st->groups[g], (uint64_t)(int64_t)n, memory_order_release);
}

void
zram_group_trim(struct zram_store *st, uint64_t g)
{
    uint64_t idle = GROUP_TOUCHED;
    /* A look first: an exchange gives a page of words memory even where it fails. */
    if (atomic_load_explicit(&st->groups[g], memory_order_relaxed) != idle ||
        !atomic_compare_exchange_strong_explicit(&st->groups[g], &idle,
                                                 GROUP_TOUCHED | GROUP_DROPPING,
                                                 memory_order_acquire, memory_order_relaxed))
        return;
    zram_mem_drop(&st->table[g * GROUP_CHUNKS], ZRAM_PAGE);
    atomic_fetch_sub_explicit(&st->touched, 1, memory_order_relaxed);
    zram_mem_give(&st->mem, ZRAM_PAGE);
    atomic_fetch_and_explicit(&st->groups[g], ~(GROUP_TOUCHED | GROUP_DROPPING),
                              memory_order_release);
}

/* --- entries --------------------------------------------------------------------------------- */

static uint32_t *
low_half(struct zram_entry *e)
{
    return (uint32_t *)(void *)&e->word + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 1 : 0);
}

static void
wake(struct zram_entry *e)
{
    (void)syscall(SYS_futex, low_half(e), FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void
relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Until the lock may have changed; w is what it was. */
static uint64_t
look_again(struct zram_entry *e, uint64_t w, unsigned *tries)
{
    if (++*tries < SPINS) {
        relax();
        return atomic_load_explicit(&e->word, memory_order_relaxed);
    }
    if ((w & ENTRY_SLEEPERS) == 0 &&
        !atomic_compare_exchange_weak_explicit(&e->word, &w, w | ENTRY_SLEEPERS,
                                               memory_order_relaxed, memory_order_relaxed))
        return w;
    (void)syscall(SYS_futex, low_half(e), FUTEX_WAIT_PRIVATE, (uint32_t)(w | ENTRY_SLEEPERS), NULL,
                  NULL, 0);
    return atomic_load_explicit(&e->word, memory_order_relaxed);
}

uint64_t
zram_entry_read_lock(struct zram_entry *e)
{
    uint64_t w = atomic_load_explicit(&e->word, memory_order_relaxed);
    unsigned tries = 0;
    for (;;) {
        /* One short of the writer's mark; and not past a writer that sleeps. */
        if ((w & ENTRY_LOCK) < ENTRY_WRITER - 1 && (w & ENTRY_SLEEPERS) == 0) {
            if (atomic_compare_exchange_weak_explicit(&e->word, &w, w + 1, memory_order_acquire,
                                                      memory_order_relaxed))
                return w & ~(uint64_t)ENTRY_LOCK_BITS;
            continue;
        }
        w = look_again(e, w, &tries);
    }
}

bool
zram_entry_try_write(struct zram_entry *e, uint64_t *word)
{
    uint64_t w = atomic_load_explicit(&e->word, memory_order_relaxed);
    *word = w;
    return (w & ENTRY_LOCK_BITS) == 0 &&
           atomic_compare_exchange_strong_explicit(&e->word, &w, w | ENTRY_WRITER,
                                                   memory_order_acquire, memory_order_relaxed);
}

uint64_t
zram_entry_write_lock(struct zram_entry *e)
{
    uint64_t w = atomic_load_explicit(&e->word, memory_order_relaxed);
    unsigned tries = 0;
    for (;;) {
        if ((w & ENTRY_LOCK) == 0) {
            if (atomic_compare_exchange_weak_explicit(&e->word, &w, w | ENTRY_WRITER,
                                                      memory_order_acquire, memory_order_relaxed))
                return w & ~(uint64_t)ENTRY_LOCK_BITS;
            continue;
        }
        w = look_again(e, w, &tries);
    }
}

void
zram_entry_read_unlock(struct zram_entry *e)
{
    uint64_t w = atomic_load_explicit(&e->word, memory_order_relaxed), next;
    do {
        next = w - 1;
        if ((next & ENTRY_LOCK) == 0)
            next &= ~(uint64_t)ENTRY_SLEEPERS;
    } while (!atomic_compare_exchange_weak_explicit(&e->word, &w, next, memory_order_release,
                                                    memory_order_relaxed));
    if ((w & ENTRY_SLEEPERS) != 0 && (next & ENTRY_SLEEPERS) == 0)
        wake(e);
}

void
zram_entry_write_unlock(struct zram_entry *e, uint64_t word)
{
    uint64_t was = atomic_exchange_explicit(&e->word, word, memory_order_acq_rel);
    if ((was & ENTRY_SLEEPERS) != 0)
        wake(e);
}
