/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small buffered writes to a file on a disk.  The kernel hands each such write of a ring to a
 * thread of its own, because it may block; waking those takes longer than the writes, which then
 * wait for each other at the inode's lock.  So the writes of a loop turn go to one helper thread
 * together, which does them one after another; what is left of one, and what an error means, is the
 * engine's.
 *
 * They are system calls, though copies into a mapping would be cheaper: a file system with large
 * folios makes the whole folio dirty, and allocates it where it is a hole, when one page of it is
 * first written by a fault.  4 KiB would become up to 2 MiB at the disk.
 *
 * Only whole pages: what needs the rest of a page may have to read it, and those reads are better
 * off side by side.
 *
 * One batch a worker and store is under way; what comes meanwhile is the next one.  A batch that
 * hangs in the disk holds up what its worker writes to this store, nothing else.  On the requests'
 * worker, but for the writes.
 */
#ifndef BACKENDS_FDBATCH_H
#define BACKENDS_FDBATCH_H

#include <stdbool.h>

#include "backends/backend.h"
#include "base/helper.h"

#define FDBATCH_MAX  8192u /* bytes of a write; larger ones are worth a thread each */
#define FDBATCH_UNIT 4096u /* offset and length are multiples */

#define FDBATCH_PRIV 3

struct fdbatch; /* of one worker and store */

/* over: on the worker, never inside fdbatch_add; res: bytes written or -errno, as of pwritev. */
struct fdbatch *fdbatch_new(struct worker *w, struct helper_lane *lane,
                            void (*over)(struct io *io, int res));
void fdbatch_free(struct fdbatch *b); /* NULL: nothing; no request is in it. Any thread */
/* Writes io->iov to fd at io->offset; fd stays open until `over`. Uses io->link, io->res and
 * io->priv[FDBATCH_PRIV]. */
void fdbatch_add(struct fdbatch *b, struct io *io, int fd);
/* True when it was still waiting: it is the caller's again, without `over`. */
bool fdbatch_cancel(struct fdbatch *b, struct io *io);

#endif
