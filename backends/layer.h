/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What layers share: passing open, close and probe down, and reading their options.  A layer's
 * configuration is fixed before the first open and read by all workers without a lock.
 */
#ifndef BACKENDS_LAYER_H
#define BACKENDS_LAYER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/backend.h"

/* be_ops of a layer that adds nothing there. */
int layer_open(struct backend *be);
void layer_close(struct backend *be);
unsigned layer_probe(struct backend *be);
void layer_release_ref(struct backend *be, struct io *io);
void layer_destroy(struct backend *be);

/* A bit for each enum io_op named in "read,write,flush,discard,zero,map,read_ref" or "all"; READ
 * includes READ_REF. 0: not understood. */
unsigned layer_parse_ops(const char *text);
/* Decimal, optionally with k, M, G or T (powers of 1024). False: not understood. */
bool layer_parse_u64(const char *text, uint64_t *out);
/* "EIO", "ENOSPC", ... or a number: the positive errno, or 0. */
int layer_parse_errno(const char *text);
const char *layer_op_name(uint8_t op);

/* Option when=/path: the layer acts only while that file exists (path NULL: always). Looked up
 * at most once in a millisecond. Any worker. */
struct layer_when {
    char *path;
    atomic_uint_fast64_t looked_ms;
    atomic_bool is_on;
};

bool layer_when(struct layer_when *when);

/* Appends to a log file of a layer: all of it, or -errno. */
int layer_write_all(int fd, const struct iovec *iov, unsigned niov);

#endif
