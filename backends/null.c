/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The null store: reads are zeros, writes are dropped and answered as done.  It keeps no data,
 * on purpose and by name: for measuring everything above a disk, and for IET's nullio.  The size
 * comes from opts.null_size.  Any worker.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"

static int
null_open(struct backend *be)
{
    struct be_info in = {.block_size = be->opts.block_size != 0 ? be->opts.block_size : 512,
                         .mem_align = 1,
                         .caps = BE_CAP_READ_REF | BE_CAP_MAP | BE_CAP_DISCARD | BE_CAP_ZERO,
                         .kind = "null"};
    in.phys_block_size = in.discard_gran = in.block_size;
    in.size = be->opts.null_size - be->opts.null_size % in.block_size;
    if (in.size == 0) {
        be_set_error(be, "null: a size of at least one block is needed");
        return -EINVAL;
    }
    return be_publish(be, &in, "");
}

static void
null_close(struct backend *be)
{
    (void)be;
}

static unsigned
null_probe(struct backend *be)
{
    (void)be;
    return 0;
}

/* As many entries over the one MiB of zeros as it takes; one needs no memory. */
static int
lend_zeros(struct backend *be, struct io *io)
{
    uint64_t n = (io->len + BE_ZEROS_LEN - 1) / BE_ZEROS_LEN;
    struct iovec *iov = &io->one;
    if (n > 1)
        iov = calloc(n, sizeof(*iov));
    if (iov == NULL)
        return -ENOMEM;
    uint64_t left = io->len;
    for (uint64_t i = 0; i < n; i++) {
        iov[i] = be_zero_iov(left < BE_ZEROS_LEN ? left : BE_ZEROS_LEN);
        left -= iov[i].iov_len;
    }
    io->iov = iov;
    io->niov = (unsigned)n;
    io->lender = be;
    return 0;
}

static void
null_release_ref(struct backend *be, struct io *io)
{
    (void)be;
    if (io->iov != &io->one)
        free(io->iov);
    io->iov = NULL;
    io->niov = 0;
}

static void
null_submit(struct backend *be, struct io *io)
{
    int res = 0;
    switch (io->op) {
    case IO_READ:
        for (unsigned i = 0; i < io->niov; i++)
            memset(io->iov[i].iov_base, 0, io->iov[i].iov_len);
        break;
    case IO_READ_REF:
        res = lend_zeros(be, io);
        break;
    case IO_MAP:
        io->ext[0] = (struct io_extent){.len = io->len, .mapped = false};
        io->ext_n = 1;
        break;
    default: /* dropped, as promised above */
        break;
    }
    io_complete_later(io, res);
}

static void
null_cancel(struct backend *be, struct io *io)
{
    (void)be;
    (void)io; /* never waits */
}

static int
null_configure(struct backend *be, const char *key, const char *value)
{
    (void)value;
    if (key == NULL)
        return 0;
    be_set_error(be, "null: there is no bsopts '%s'", key);
    return -EINVAL;
}

static void
null_destroy(struct backend *be)
{
    (void)be;
}

const struct be_ops null_ops = {
    .type = "null",
    .open = null_open,
    .close = null_close,
    .probe = null_probe,
    .submit = null_submit,
    .cancel = null_cancel,
    .release_ref = null_release_ref,
    .configure = null_configure,
    .destroy = null_destroy,
    .priv_size = 1,
};
