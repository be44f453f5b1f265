/* SPDX-License-Identifier: BSD-2-Clause */
/* Reference counts that cross threads. */
#ifndef BASE_REF_H
#define BASE_REF_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>

struct ref {
    atomic_int n;
};

static inline void
ref_init(struct ref *r)
{
    atomic_init(&r->n, 1);
}

static inline void
ref_get(struct ref *r)
{
    int old = atomic_fetch_add_explicit(&r->n, 1, memory_order_relaxed);
    assert(old > 0); /* a reference is only taken from a reference */
    (void)old;
}

/* True for the caller that must free. */
static inline bool
ref_put(struct ref *r)
{
    int old = atomic_fetch_sub_explicit(&r->n, 1, memory_order_acq_rel);
    assert(old > 0);
    return old == 1;
}

#endif
