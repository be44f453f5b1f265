/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log of the `record` layer, read by tests/lib/replay.c.
 *
 * A file is records, one after another, each a header of 72 bytes (the machine's byte order:
 * a log is read where it was written), then `data_len` bytes.  Records are numbered from 0 by
 * `seq` in the order they were appended; that order decides.  `ns` is clock_us() * 1000 at the
 * append (CLOCK_MONOTONIC), so that a client's journal can be laid beside the log:
 *
 *   OPEN    the store was opened; `offset` is its size.  Requests of an earlier run that have no
 *           DONE will never get one; what they did is as if they had ended here, failed.
 *   SUBMIT  a WRITE, ZERO, DISCARD or FLUSH is about to be handed to the store; `offset`, `len`,
 *           `flags`; a WRITE's data follows.  Appended before the store sees the request.
 *   DONE    the request whose SUBMIT has number `ref` ended with `res`.  Appended before whoever
 *           asked is told.
 *
 * What a store may hold after power is lost behind record C (those with seq < C happened):
 *
 *   - A write is `durable` when it ended with 0 before C and either had RECORD_FUA, or a FLUSH
 *     was submitted after that end and ended with 0 before C.
 *   - Each sector of 512 bytes is on its own.  It holds the data of one of the writes (a ZERO or
 *     DISCARD is a write of zeros) submitted before C that touch it, or what it held at first:
 *       - never of a write that ended before a durable one was submitted;
 *       - not what it held at first when any durable write touches it.
 *     All else is legal: in part, in any order, or not at all.
 */
#ifndef BACKENDS_RECORD_H
#define BACKENDS_RECORD_H

#include <stdint.h>

#define RECORD_MAGIC  0x64726f6365527645u /* "EvRecord" */
#define RECORD_SECTOR 512u

enum record_kind { RECORD_OPEN = 1, RECORD_SUBMIT, RECORD_DONE };

enum record_op { RECORD_WRITE = 1, RECORD_ZERO, RECORD_DISCARD, RECORD_FLUSH };

enum record_flag { RECORD_FUA = 1 };

struct record {
    uint64_t magic;
    uint64_t seq;
    uint8_t kind;
    uint8_t op;
    uint8_t flags;
    uint8_t pad[5];
    uint64_t offset; /* bytes */
    uint64_t len;    /* bytes */
    uint64_t ref;    /* DONE */
    int64_t res;     /* DONE: 0 or -errno */
    uint64_t data_len;
    uint64_t ns;
};

_Static_assert(sizeof(struct record) == 72, "the head of record.h says so");

#endif
