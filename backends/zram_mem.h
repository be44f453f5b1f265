/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accounts of memory that compressed RAM stores have taken from the system: one a store, one for
 * the process.  Any thread, nothing blocks.
 */
#ifndef BACKENDS_ZRAM_MEM_H
#define BACKENDS_ZRAM_MEM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZRAM_PAGE 4096u

struct zram_mem {
    atomic_uint_fast64_t used, max; /* bytes */
    atomic_uint_fast64_t limit;     /* 0: none */
};

void zram_mem_init(struct zram_mem *m, uint64_t limit);
/* Takes bytes from m and the process, or nothing and false. */
bool zram_mem_take(struct zram_mem *m, uint64_t bytes);
void zram_mem_give(struct zram_mem *m, uint64_t bytes);
void zram_mem_reset_max(struct zram_mem *m);

/* Address space without memory, inaccessible (readable and writable when rw); not in core dumps,
 * no huge pages. NULL: none to be had. */
void *zram_mem_reserve(size_t bytes, bool rw);
void zram_mem_release(void *p, size_t bytes);
/* The memory of whole pages goes back; they read as zeros then. */
void zram_mem_drop(void *p, size_t bytes);

static inline size_t
zram_page_up(size_t n)
{
    return (n + ZRAM_PAGE - 1) & ~(size_t)(ZRAM_PAGE - 1);
}

#endif
