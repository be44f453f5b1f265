/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte budgets: session -> worker -> daemon.  Memory is promised by these, never by what a peer
 * claims.  A taker that does not get its bytes waits (budget_wait) in order of arrival and is
 * called on its worker when they are there.  Session and worker budgets: owner's thread; the
 * daemon's (no parent, worker NULL): atomic, any thread.
 */
#ifndef BASE_BUDGET_H
#define BASE_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct worker;

struct budget {
    struct budget *parent; /* or NULL */
    struct worker *w;      /* owner; NULL: shared (atomic) */
    uint64_t limit;        /* bytes */
    atomic_uint_fast64_t used;
    struct list waiters; /* struct budget_wait, owner's thread */
};

struct budget_wait {
    struct list link;
    uint64_t bytes;
    void (*fn)(struct budget_wait *bw); /* the bytes are taken already when it is called */
};

void budget_init(struct budget *b, struct budget *parent, struct worker *w, uint64_t limit);
void budget_fini(struct budget *b);

/* All of `bytes` from b and every parent, or nothing and false. A single request larger than a
 * limit is granted when that level is otherwise unused (it could never be served else). Does not
 * overtake waiters. */
bool budget_take(struct budget *b, uint64_t bytes);
void budget_give(struct budget *b, uint64_t bytes);

/* Queue for bytes; bw->fn runs (deferred, never inside this call) when they were taken.
 * Where the parent is what is full, retried by the worker's 10 ms housekeeping. */
void budget_wait(struct budget *b, struct budget_wait *bw, uint64_t bytes,
                 void (*fn)(struct budget_wait *bw));
void budget_wait_cancel(struct budget *b, struct budget_wait *bw);

#endif
