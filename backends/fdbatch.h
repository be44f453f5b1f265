/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small buffered writes to a file on a disk.  The kernel hands each such write of a ring to a
 * thread of its own, because it may block, and file systems with large folios (ext4) spend up to
 * 30 us in a pwrite of 4 KiB to a folio of some MiB.  So the writes of a loop turn go to one
 * helper thread together, which copies them to the mapped page cache: where it holds the pages;
 * what it does not hold, and what fails, is written by the engine, whose errors are exact.
 *
 * A write is over when its bytes are in the page cache, as with pwrite; fdatasync takes them from
 * there.  One batch a worker and store is under way; what comes meanwhile is the next one.  A
 * batch that hangs in the disk holds up what its worker writes to this store, nothing else.
 * On the request's worker, but for the copies.
 */
#ifndef BACKENDS_FDBATCH_H
#define BACKENDS_FDBATCH_H

#include <stdbool.h>

#include "backends/backend.h"
#include "backends/fdmap.h"
#include "base/helper.h"

#define FDBATCH_MAX 8192u /* bytes of a write; larger ones are better off with pwrite */

#define FDBATCH_PRIV 3

struct fdbatch; /* of one worker and store */

struct fdbatch *fdbatch_new(struct worker *w, struct helper_lane *lane,
                            void (*over)(struct io *io, bool written));
void fdbatch_free(struct fdbatch *b); /* NULL: nothing; no request is in it */
/* map: of io's store, in place until `over`, which comes on the worker, never in this call.
 * Uses io->link, io->res and io->priv[FDBATCH_PRIV]. */
void fdbatch_add(struct fdbatch *b, struct io *io, struct fdmap *map);
/* True when it was still waiting: it is the caller's again. */
bool fdbatch_cancel(struct fdbatch *b, struct io *io);

#endif
