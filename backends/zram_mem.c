/* SPDX-License-Identifier: BSD-2-Clause */
/* See zram_mem.h. */
#include "config.h"

#include "backends/zram_mem.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/zram_store.h"

static struct zram_mem process;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;

static void
process_init(void)
{
    uint64_t all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    atomic_store(&process.limit, all / 4 * 3);
}

static struct zram_mem *
whole_process(void)
{
    (void)pthread_once(&process_once, process_init);
    return &process;
}

void
zram_process_set_limit(uint64_t bytes)
{
    atomic_store(&whole_process()->limit, bytes);
}

uint64_t
zram_process_limit(void)
{
    return atomic_load(&whole_process()->limit);
}

uint64_t
zram_process_used(void)
{
    return atomic_load(&process.used);
}

void
zram_mem_init(struct zram_mem *m, uint64_t limit)
{
    (void)whole_process();
    atomic_init(&m->used, 0);
    atomic_init(&m->max, 0);
    atomic_init(&m->limit, limit);
}

static bool
take_one(struct zram_mem *m, uint64_t bytes)
{
    uint64_t limit = atomic_load_explicit(&m->limit, memory_order_relaxed);
    uint64_t used = atomic_fetch_add_explicit(&m->used, bytes, memory_order_relaxed) + bytes;
    if (limit != 0 && used > limit) {
        atomic_fetch_sub_explicit(&m->used, bytes, memory_order_relaxed);
        return false;
    }
    uint64_t max = atomic_load_explicit(&m->max, memory_order_relaxed);
    while (used > max && !atomic_compare_exchange_weak_explicit(
                             &m->max, &max, used, memory_order_relaxed, memory_order_relaxed))
        ;
    return true;
}

bool
zram_mem_take(struct zram_mem *m, uint64_t bytes)
{
    if (!take_one(m, bytes))
        return false;
    if (take_one(&process, bytes))
        return true;
    atomic_fetch_sub_explicit(&m->used, bytes, memory_order_relaxed);
    return false;
}

void
zram_mem_give(struct zram_mem *m, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&m->used, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&process.used, bytes, memory_order_relaxed);
}

void
zram_mem_reset_max(struct zram_mem *m)
{
    atomic_store(&m->max, atomic_load(&m->used));
}

void *
zram_mem_reserve(size_t bytes, bool rw)
{
    void *p = mmap(NULL, bytes, rw ? PROT_READ | PROT_WRITE : PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    (void)madvise(p, bytes, MADV_DONTDUMP);
    (void)madvise(p, bytes, MADV_NOHUGEPAGE); /* a kernel without has nothing to turn off */
    return p;
}

void
zram_mem_release(void *p, size_t bytes)
{
    if (p != NULL)
        (void)munmap(p, bytes);
}

void
zram_mem_drop(void *p, size_t bytes)
{
    (void)madvise(p, bytes, MADV_DONTNEED);
}
