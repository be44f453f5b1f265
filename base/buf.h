/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data buffers of a worker: contiguous, aligned to 4096 bytes (fit for O_DIRECT), in power-of-two
 * classes of 4 KiB .. 1 MiB, counted.  A command's data window is one buffer; out-queue items hold
 * references on it while their bytes are unsent.  Owner's thread only (references included).
 * Idle buffers are given back to the system after a while.  Contents are NOT zeroed: whoever
 * sends bytes must have written them; debug builds fill fresh buffers with 0xdb and protect
 * (mprotect) freed ones that a backend still has (see buf_poison).
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#define BUF_MIN 4096u
#define BUF_MAX (1024u * 1024u)

struct bufpool;
struct worker;

struct buf {
    uint8_t *p;
    uint32_t cap; /* bytes */
    /* private */
    int refs;
    struct bufpool *pool;
    struct buf *next;
};

struct bufpool *bufpool_new(struct worker *w);
void bufpool_free(struct bufpool *bp);

/* A buffer of at least len bytes (len <= BUF_MAX), one reference; NULL when the system has no
 * memory. Byte budgets are a separate matter: see base/budget.h. */
struct buf *buf_get(struct bufpool *bp, size_t len);
void buf_ref(struct buf *b);
void buf_put(struct buf *b);
/* Frees idle buffers beyond what the last seconds used; called by the worker's housekeeping. */
void bufpool_shrink(struct bufpool *bp);
size_t bufpool_bytes(const struct bufpool *bp); /* held from the system */

#endif
