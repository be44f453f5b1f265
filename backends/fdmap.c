/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See fdmap.h.  A bit a chunk says that its pages were mapped; two workers may both do it, and one
 * may map while a probe lets go: that costs faults, nothing else.
 */
#include "config.h"

#include "backends/fdmap.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/guard.h"

#define CHUNK_SHIFT 19 /* 512 KiB: some 20 us to map */
#define IDLE_LOOKS  20u /* probes that found it unused: a minute. Mapping anew is dear in some VMs */

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

struct fdmap {
    uint8_t *p;
    uint64_t len;
    bool writable;
    unsigned looks;   /* until the pages go; probes only */
    atomic_bool used; /* since the last look */
    uint64_t nwords;
    atomic_uint_least64_t mapped[];
};

struct fdmap *
fdmap_new(int fd, uint64_t len, bool writable)
{
    uint64_t nwords = (((len - 1) >> CHUNK_SHIFT) >> 6) + 1;
    if (len == 0 || len > SIZE_MAX)
        return NULL;
    struct fdmap *m = calloc(1, sizeof(*m) + (size_t)nwords * sizeof(m->mapped[0]));
    if (m == NULL)
        return NULL;
    int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *p = mmap(NULL, (size_t)len, prot, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        free(m);
        return NULL;
    }
    guard_init();
    (void)madvise(p, (size_t)len, MADV_DONTDUMP);
    m->p = p;
    m->len = len;
    m->writable = writable;
    m->nwords = nwords;
    return m;
}

void
fdmap_free(struct fdmap *m)
{
    if (m == NULL)
        return;
    munmap(m->p, (size_t)m->len);
    free(m);
}

bool
fdmap_can_write(const struct fdmap *m)
{
    return m->writable;
}

static void
map_chunk(struct fdmap *m, uint64_t chunk)
{
    uint64_t bit = 1ull << (chunk & 63);
    uint64_t from = chunk << CHUNK_SHIFT;
    uint64_t n = m->len - from < 1ull << CHUNK_SHIFT ? m->len - from : 1ull << CHUNK_SHIFT;
    atomic_fetch_or_explicit(&m->mapped[chunk >> 6], bit, memory_order_relaxed);
    /* an error (old kernel, cut file) only means faults one by one, or what they bring */
    (void)madvise(m->p + from, (size_t)n, m->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

uint8_t *
fdmap_use(struct fdmap *m, uint64_t off, uint64_t len)
{
    if (off > m->len || len > m->len - off || len == 0)
        return NULL;
    if (!atomic_load_explicit(&m->used, memory_order_relaxed))
        atomic_store_explicit(&m->used, true, memory_order_relaxed);
    for (uint64_t c = off >> CHUNK_SHIFT; c <= (off + len - 1) >> CHUNK_SHIFT; c++) {
        uint64_t word = atomic_load_explicit(&m->mapped[c >> 6], memory_order_relaxed);
        if ((word >> (c & 63) & 1) == 0)
            map_chunk(m, c);
    }
    return m->p + off;
}

void
fdmap_idle(struct fdmap *m)
{
    if (atomic_exchange(&m->used, false)) {
        m->looks = IDLE_LOOKS;
    } else if (m->looks > 0 && --m->looks == 0) {
        for (uint64_t i = 0; i < m->nwords; i++)
            atomic_store_explicit(&m->mapped[i], 0, memory_order_relaxed);
        (void)madvise(m->p, (size_t)m->len, MADV_DONTNEED);
    }
}
