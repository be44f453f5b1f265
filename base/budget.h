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
    uint64_t reserve;      /* bytes beyond the limit, for children that hold nothing; 0 at first */
    atomic_uint_fast64_t used;
    struct list waiters; /* struct budget_wait, owner's thread */
    /* private; owned levels */
    struct list blocked;       /* budgets below whose first waiter lacks bytes of this level */
    struct list link;          /* in blocked_on->blocked, or in the worker's retry list */
    struct budget *blocked_on; /* a level above, or NULL */
};

struct budget_wait {
    struct list link;
    uint64_t bytes;
    void (*fn)(struct budget_wait *bw); /* the bytes are taken already when it is called */
    bool granted;                       /* private */
};

void budget_init(struct budget *b, struct budget *parent, struct worker *w, uint64_t limit);
void budget_fini(struct budget *b);

/* All of `bytes` from b and every parent, or nothing and false. A single request larger than a
 * limit is granted when that level is otherwise unused (it could never be served else). Does not
 * overtake waiters; but who holds nothing and waits for nothing is served from the parents'
 * reserves when their limits are reached, before those who hold something: peers that take what
 * they asked for never can stop nobody else. */
bool budget_take(struct budget *b, uint64_t bytes);
void budget_give(struct budget *b, uint64_t bytes);

/* Queue for bytes; bw->fn runs (deferred, never inside this call) when they were taken.  Waiters
 * of one budget are served in order of arrival; where an owned parent is what is full, the
 * children that wait for it take turns; where the shared parent is, it is tried again when this
 * worker gives bytes back and by the worker's 10 ms housekeeping (no order between workers).
 * b must be owned. Owner's thread. */
void budget_wait(struct budget *b, struct budget_wait *bw, uint64_t bytes,
                 void (*fn)(struct budget_wait *bw));
/* Idempotent: nothing happens after fn ran or on a zeroed bw. Bytes granted to a bw whose fn has
 * not run yet are given back. */
void budget_wait_cancel(struct budget *b, struct budget_wait *bw);

#endif
