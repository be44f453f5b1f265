/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What files and block devices have in common: requests on a descriptor through base/disk.h.
 *
 *  - Short transfers are continued; the end of the file inside a request is -EIO.
 *  - FUA is RWF_DSYNC on each piece, or fdatasync behind fallocate; FLUSH is fdatasync.  O_DIRECT
 *    is never taken for durability.
 *  - With O_DIRECT there is a second, buffered descriptor: a request (or what is left of it after
 *    a short transfer) that does not meet the store's alignment goes there.  The kernel keeps the
 *    two coherent; a bounce buffer of our own would have to lock ranges to do the same.
 *  - Files in memory lend their pages (READ_REF) while they have no holes. What is lent is only to
 *    be handed to the kernel: where a file is cut meanwhile, that fails with EFAULT, but touching
 *    it would be SIGBUS.
 *  - A write with FUA that fails for want of space is tried once without FUA, to know which half
 *    failed: the write itself (then nothing is lost, the error is passed on) or its sync (-EIO).
 *
 * Descriptors and threads: open, close and probe replace the descriptor under the requests of
 * the workers.  A request holds it by a count in struct fdio_fd, and the last one closes it; the
 * structs themselves live as long as the store, so that a count may be touched at any time.
 */
#ifndef BACKENDS_FDIO_H
#define BACKENDS_FDIO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"
#include "backends/fdmap.h"
#include "base/helper.h"

#define FDIO_WORKERS 64

struct fdio_fd {
    struct fdio_fd *next; /* all of one store */
    atomic_uint users;    /* requests, + enum fd_flag of fdio.c */
    int fd;
    int buffered;      /* second descriptor without O_DIRECT, or -1 */
    uint32_t dio_off;  /* fd is O_DIRECT: alignment of offsets and lengths; else 0 */
    uint32_t dio_mem;  /* and of memory */
    bool is_inline;    /* tmpfs: system calls in place, they never wait for a disk */
    bool is_nowait;    /* buffered: RWF_NOWAIT is worth trying */
    struct fdmap *map; /* of a file in memory, or NULL; owned */
};

struct fdio_slot {
    atomic_uint n; /* requests of one worker in the engine; only that worker writes it */
} __attribute__((aligned(64)));

struct fdio {
    _Atomic(struct fdio_fd *) cur;
    struct fdio_fd *all; /* under the backend's op_lock */
    struct helper_lane lane;
    /* The store's size as the last open or probe saw it; below info.size when it shrank. What
     * lies beyond fails with -EIO, so that no write brings a truncated store back as zeros. */
    atomic_uint_fast64_t usable;
    atomic_bool no_nowait, no_zero_range, no_punch; /* learnt from the kernel's answers */
    struct fdio_slot slot[FDIO_WORKERS];
};

void fdio_init(struct fdio *f);
void fdio_fini(struct fdio *f); /* detached, nothing in flight */

/* From now on requests go to these descriptors (ownership taken). Under op_lock. */
void fdio_attach(struct fdio *f, const struct fdio_fd *fds);
/* New requests find nothing (-ENXIO); those under way end on the old one. Under op_lock. */
void fdio_detach(struct fdio *f);
/* The descriptors in use, or NULL; under op_lock only. */
const struct fdio_fd *fdio_current(struct fdio *f);

/* be->priv begins with a struct fdio. */
void fdio_submit(struct backend *be, struct io *io);
void fdio_cancel(struct backend *be, struct io *io);
void fdio_release_ref(struct backend *be, struct io *io);

#endif
