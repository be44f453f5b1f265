/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pools of equal objects, and the allocations that cannot fail.  A pool belongs to one thread.
 * A free object holds the free list's link in its first bytes.
 */
#include "config.h"

#include "base/pool.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/poison.h"

struct free_obj {
    struct free_obj *next;
};

struct slab {
    struct slab *next;
    _Alignas(max_align_t) unsigned char mem[];
};

struct pool {
    size_t obj_size; /* as asked for */
    size_t stride;   /* rounded so that every object is aligned */
    unsigned per_slab;
    unsigned in_use;
    struct free_obj *free;
    struct slab *slabs;
};

struct pool *
pool_new(size_t obj_size, unsigned objs_per_slab)
{
    size_t align = _Alignof(max_align_t);
    struct pool *p = xcalloc(1, sizeof *p);
    p->obj_size = obj_size < sizeof(struct free_obj) ? sizeof(struct free_obj) : obj_size;
    p->stride = (p->obj_size + align - 1) / align * align;
    p->per_slab = objs_per_slab > 0 ? objs_per_slab : 1;
    return p;
}

static void
slabs_free(struct pool *p)
{
    while (p->slabs) {
        struct slab *s = p->slabs;
        p->slabs = s->next;
        unpoison(s->mem, p->stride * p->per_slab);
        free(s);
    }
}

void
pool_free(struct pool *p)
{
    if (!p)
        return;
    if (p->in_use != 0)
        log_abort("pool freed with %u objects of %zu bytes in use", p->in_use, p->obj_size);
    slabs_free(p);
    free(p);
}

static void
slab_add(struct pool *p, struct slab *s)
{
    s->next = p->slabs;
    p->slabs = s;
    for (unsigned i = p->per_slab; i-- > 0;) { /* so that objects come out in address order */
        struct free_obj *o = (void *)(s->mem + i * p->stride);
        unpoison(o, p->obj_size);
        o->next = p->free;
        p->free = o;
        poison(o, p->stride);
    }
}

void
pool_trim(struct pool *p)
{
    if (p->in_use > 0 || !p->slabs || !p->slabs->next)
        return;
    struct slab *keep = p->slabs;
    p->slabs = keep->next;
    slabs_free(p);
    p->free = NULL;
    slab_add(p, keep);
}

void *
pool_get(struct pool *p)
{
    if (!p->free)
        slab_add(p, xmalloc(sizeof(struct slab) + p->stride * p->per_slab));
    struct free_obj *o = p->free;
    unpoison(o, p->obj_size);
    p->free = o->next;
    p->in_use++;
    memset(o, 0, p->obj_size);
    return o;
}

void
pool_put(struct pool *p, void *obj)
{
    struct free_obj *o = obj;
    if (p->in_use == 0 || is_poisoned(o))
        log_abort("object of %zu bytes returned twice to its pool", p->obj_size);
    o->next = p->free;
    p->free = o;
    p->in_use--;
    poison(o, p->stride);
}

unsigned
pool_in_use(const struct pool *p)
{
    return p->in_use;
}

void *
xmalloc(size_t n)
{
    void *p = malloc(n > 0 ? n : 1);
    if (!p)
        log_abort("out of memory bytes=%zu", n);
    return p;
}

void *
xcalloc(size_t n, size_t size)
{
    void *p = n > 0 && size > 0 ? calloc(n, size) : calloc(1, 1);
    if (!p)
        log_abort("out of memory bytes=%zux%zu", n, size);
    return p;
}

void *
xrealloc(void *p, size_t n)
{
    void *q = realloc(p, n > 0 ? n : 1);
    if (!q)
        log_abort("out of memory bytes=%zu", n);
    return q;
}

char *
xstrdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = xmalloc(n);
    memcpy(p, s, n);
    return p;
}

char *
xasprintf(const char *fmt, ...)
{
    va_list ap;
    char *s = NULL;
    va_start(ap, fmt);
    int n = vasprintf(&s, fmt, ap);
    va_end(ap);
    if (n < 0 || !s)
        log_abort("out of memory formatting a text");
    return s;
}
