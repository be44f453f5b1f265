/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pools of equal objects (tasks, out-queue items): a free list over slabs, one owner's thread.
 * The steady data path allocates nothing.  Under ASan the free objects are poisoned.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

struct pool;

struct pool *pool_new(size_t obj_size, unsigned objs_per_slab);
/* All objects must have been returned. */
void pool_free(struct pool *p);
/* Zeroed object; never NULL (memory exhaustion of small objects aborts, as in worker_post). */
void *pool_get(struct pool *p);
void pool_put(struct pool *p, void *obj);
/* Gives the memory of all but one slab back when no object is in use, else nothing. */
void pool_trim(struct pool *p);
unsigned pool_in_use(const struct pool *p);

/* Small allocations outside the data path: never NULL, abort with a log line when out of memory. */
void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2), returns_nonnull));

#endif
