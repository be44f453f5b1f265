/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sees and spoils what scsi/ asks of its backend: link with -Wl,--wrap=be_submit.  Requests are
 * logged; one that meets `spy_bad` is failed instead of being submitted.
 */
#ifndef TESTS_UNIT_SBC_SPY_H
#define TESTS_UNIT_SBC_SPY_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "backends/backend.h"

#define SPY_MAX 4096u

struct spy_req {
    uint8_t op, flags;
    uint64_t offset, len;
};

static struct spy_req spy_log[SPY_MAX];
static unsigned spy_n;

/* Fails requests of `op` (-1: none) that cover byte `at` with `res`. */
static struct {
    int op;
    uint64_t at;
    int res;
    unsigned hits;
} spy_bad = {.op = -1};

/* Requests of `op` (-1: none) are kept back until spy_let_go. */
static struct {
    int op;
    struct backend *be;
    struct io *io;
} spy_hold = {.op = -1};

/* Answers IO_MAP with these instead of asking, when n is not 0. */
static struct {
    struct io_extent ext[8];
    unsigned n;
} spy_map;

void __real_be_submit(struct backend *be, struct io *io);
void __wrap_be_submit(struct backend *be, struct io *io);

void
__wrap_be_submit(struct backend *be, struct io *io)
{
    if (spy_n < SPY_MAX)
        spy_log[spy_n] = (struct spy_req){io->op, io->flags, io->offset, io->len};
    spy_n++;
    if (spy_bad.op == (int)io->op &&
        (io->op == IO_FLUSH || (io->offset <= spy_bad.at && spy_bad.at < io->offset + io->len))) {
        spy_bad.hits++;
        io->fail_offset = spy_bad.at;
        io_complete_later(io, spy_bad.res);
        return;
    }
    if (io->op == IO_MAP && spy_map.n != 0) {
        memcpy(io->ext, spy_map.ext, spy_map.n * sizeof spy_map.ext[0]);
        io->ext_n = spy_map.n;
        io_complete_later(io, 0);
        return;
    }
    if (spy_hold.op == (int)io->op && spy_hold.io == NULL) {
        spy_hold.be = be;
        spy_hold.io = io;
        return;
    }
    __real_be_submit(be, io);
}

static inline void
spy_reset(void)
{
    spy_n = 0;
    spy_bad.op = -1;
    spy_bad.hits = 0;
    spy_hold.op = -1;
    spy_hold.io = NULL;
    spy_map.n = 0;
}

static inline void
spy_spoil(enum io_op op, uint64_t at, int res)
{
    spy_reset();
    spy_bad.op = (int)op;
    spy_bad.at = at;
    spy_bad.res = res;
}

static inline void
spy_let_go(void)
{
    struct io *io = spy_hold.io;

    spy_hold.op = -1;
    spy_hold.io = NULL;
    __real_be_submit(spy_hold.be, io);
}

static inline unsigned
spy_count(enum io_op op)
{
    unsigned n = 0;

    for (unsigned i = 0; i < spy_n && i < SPY_MAX; i++)
        n += spy_log[i].op == op;
    return n;
}

#endif
