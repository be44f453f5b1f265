/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper pool: a few threads for what can block and has no ring operation (open, fstat,
 * SEEK_DATA, getaddrinfo, state files), and for all disk I/O where io_uring is not to be had.
 * A lane bounds how many threads one slow thing (a backend) may occupy, so that a hung file
 * system cannot stop the others.
 */
#ifndef BASE_HELPER_H
#define BASE_HELPER_H

#include <stdbool.h>

#include "base/list.h"

struct worker;

struct helper_lane {
    struct list waiting; /* private; under the pool's lock */
    struct list link;
    unsigned running, limit;
};

struct helper_job {
    void (*run)(struct helper_job *job);  /* on a pool thread; must not touch owned state */
    void (*done)(struct helper_job *job); /* on `w`, after run; never before submit returns */
    struct worker *w;
    struct helper_lane *lane; /* or NULL */
    /* private */
    struct list link;
    unsigned char state;
};

/* Before any worker that submits; min threads are started at once, up to max on demand. Main. */
int helper_pool_start(unsigned min_threads, unsigned max_threads);
/* Stops idle threads; a thread that hangs in the kernel is left behind. Main, at exit. */
void helper_pool_stop(void);

void helper_lane_init(struct helper_lane *lane, unsigned limit);
/* No job of the lane may be queued or running. */
void helper_lane_fini(struct helper_lane *lane);

/* Any thread. job->w must be set. */
void helper_submit(struct helper_job *job);
/* True when the job had not started and never will; its done is NOT called then. Any thread. */
bool helper_cancel(struct helper_job *job);

#endif
