/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data buffers of a worker: contiguous, aligned to 4096 bytes (fit for O_DIRECT), in power-of-two
 * classes of 4 KiB .. 1 MiB, counted.  A command's data window is one buffer; out-queue items hold
 * references on it while their bytes are unsent.  Owner's thread only (references included).
 * Idle buffers are given back to the system after a while.  Contents are NOT zeroed: whoever
 * sends bytes must have written them; debug builds fill fresh buffers with 0xdb and abort when the
 * last reference on a buffer goes while a disk request of the worker still has it (ASan cannot
 * see the kernel write).  Under ASan free buffers are poisoned.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUF_MIN 4096u
#define BUF_MAX (1024u * 1024u)

struct bufpool;
struct bufslab;
struct worker;

struct buf {
    uint8_t *p;
    uint32_t cap; /* bytes */
    /* private */
    int refs;
    struct bufslab *slab;
    struct buf *next;
};

/* w NULL (unit tests): no owner, no housekeeping. */
struct bufpool *bufpool_new(struct worker *w);
/* Buffers that are still referenced (orphans at exit) stay valid and are left behind. */
void bufpool_free(struct bufpool *bp);

/* A buffer of at least len bytes (len <= BUF_MAX), one reference; NULL when the system has no
 * memory. Byte budgets are a separate matter: see base/budget.h. */
struct buf *buf_get(struct bufpool *bp, size_t len);
void buf_ref(struct buf *b);
void buf_put(struct buf *b);
/* Gives back about half of what stayed idle since the last call; the worker's housekeeping calls
 * it once a second while anything is idle. */
void bufpool_shrink(struct bufpool *bp);
size_t bufpool_bytes(const struct bufpool *bp); /* held from the system */
size_t bufpool_idle_bytes(const struct bufpool *bp); /* of these: in no one's hands */
bool bufpool_can_shrink(const struct bufpool *bp);   /* some could be given back */

#endif
