/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous disk requests on descriptors, by the worker's ring or, where there is none, by
 * the helper pool: the same contract for both.  One request is one system call: short transfers
 * are reported, not continued (backends/fdio.c does that).  Owner's thread; completion on the
 * same thread, exactly once, never before disk_submit returns.
 */
#ifndef BASE_DISK_H
#define BASE_DISK_H

#include <stdint.h>
#include <sys/uio.h>

#include "base/helper.h"
#include "base/list.h"
#include "base/worker.h"

enum disk_op {
    DISK_READV,     /* preadv2(fd, iov, niov, off, rwf) */
    DISK_WRITEV,    /* pwritev2(fd, iov, niov, off, rwf) */
    DISK_FDATASYNC, /* fdatasync(fd) */
    DISK_FALLOCATE, /* fallocate(fd, mode, off, len); works on block devices too */
    DISK_NOP,       /* wakes nothing, does nothing: tests of the engine */
};

struct disk_req {
    enum disk_op op;
    int fd;
    int rwf;  /* RWF_DSYNC, RWF_NOWAIT, ... */
    int mode; /* FALLOC_FL_* */
    const struct iovec *iov;
    unsigned niov;
    uint64_t off; /* bytes */
    uint64_t len; /* bytes, DISK_FALLOCATE */
    struct helper_lane *lane; /* pool engine: who must not occupy all threads; may be NULL */
    void (*done)(struct disk_req *req, int res); /* res: bytes >= 0, or -errno */
    /* private */
    struct worker *w;
    struct list link;
    struct helper_job job;
    int res;
    uint8_t state;
};

/* All fields above "private" set by the caller and left alone until done. iov must live as long. */
void disk_submit(struct worker *w, struct disk_req *req);

/* Tries to take the request back (ring: async cancel; pool: if not yet started). The completion
 * still comes, with -ECANCELED when it worked. */
void disk_cancel(struct disk_req *req);

/* Requests handed to the kernel or the pool and not yet completed. */
unsigned disk_in_flight(const struct worker *w);

#endif
