/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layer `error`: makes chosen requests fail.  Options:
 *   op=read,write,flush,discard,zero,map,all   which (all)
 *   errno=EIO      with what (EIO)
 *   at=N,len=N     only those that touch these bytes (everything); flushes always match
 *   after=N        the first N that match pass (0)
 *   every=N        of the rest, each N-th fails (1: all)
 *   count=N        at most N fail (no limit)
 *   late=1         the request is done first, and its success turned into the error
 *   when=/path     only while this file exists
 * Where the failing range begins inside a READ or WRITE, the request is done and the error is
 * reported with fail_offset = at.  Any worker; the counts are shared by all.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/layer.h"
#include "base/pool.h"

struct error_layer {
    unsigned ops;
    int err;
    uint64_t at, len; /* len 0: to the end */
    uint64_t after, every, count;
    bool is_late;
    struct layer_when when;
    atomic_uint_fast64_t matched, failed;
};

static int
error_configure(struct backend *be, const char *key, const char *value)
{
    struct error_layer *l = be->priv;
    uint64_t flag = 0;
    bool ok = false;
    if (key == NULL) { /* defaults */
        l->ops = l->ops != 0 ? l->ops : layer_parse_ops("all");
        l->err = l->err != 0 ? l->err : EIO;
        l->every = l->every != 0 ? l->every : 1;
        l->count = l->count != 0 ? l->count : UINT64_MAX;
        return 0;
    }
    if (strcmp(key, "op") == 0)
        ok = (l->ops = layer_parse_ops(value)) != 0;
    else if (strcmp(key, "errno") == 0)
        ok = (l->err = layer_parse_errno(value)) != 0;
    else if (strcmp(key, "at") == 0)
        ok = layer_parse_u64(value, &l->at);
    else if (strcmp(key, "len") == 0)
        ok = layer_parse_u64(value, &l->len) && l->len > 0;
    else if (strcmp(key, "after") == 0)
        ok = layer_parse_u64(value, &l->after);
    else if (strcmp(key, "every") == 0)
        ok = layer_parse_u64(value, &l->every) && l->every > 0;
    else if (strcmp(key, "count") == 0)
        ok = layer_parse_u64(value, &l->count) && l->count > 0;
    else if (strcmp(key, "late") == 0)
        ok = layer_parse_u64(value, &flag);
    else if (strcmp(key, "when") == 0) {
        free(l->when.path);
        l->when.path = xstrdup(value);
        ok = true;
    }
    l->is_late |= flag != 0;
    return ok ? 0 : -EINVAL;
}

static bool
is_hit(struct error_layer *l, const struct io *io)
{
    if ((l->ops & 1u << io->op) == 0)
        return false;
    if (io->op != IO_FLUSH) {
        if (io->offset + io->len <= l->at)
            return false;
        if (l->len != 0 && io->offset >= l->at && io->offset - l->at >= l->len)
            return false;
    }
    if (!layer_when(&l->when))
        return false;
    uint64_t n = atomic_fetch_add(&l->matched, 1);
    if (n < l->after || (n - l->after + 1) % l->every != 0)
        return false;
    return atomic_fetch_add(&l->failed, 1) < l->count;
}

static void
on_late_done(struct io *io)
{
    struct backend *be = io_frame(io)->arg;
    struct error_layer *l = be->priv;
    if (io->res == 0) {
        io->fail_offset = l->at > io->offset ? l->at : io->offset;
        io_complete(io, -l->err);
    } else {
        io_complete(io, io->res);
    }
}

static void
error_submit(struct backend *be, struct io *io)
{
    struct error_layer *l = be->priv;
    if (!is_hit(l, io)) {
        be_submit_below(be, io);
        return;
    }
    bool is_inside = (io->op == IO_READ || io->op == IO_WRITE) && l->at > io->offset;
    /* Lent memory of a READ_REF that fails late would never be released. */
    if ((l->is_late || is_inside) && io->op != IO_READ_REF) {
        io_push(io, on_late_done, be);
        be_submit_below(be, io);
        return;
    }
    io_complete_later(io, -l->err);
}

static void
error_cancel(struct backend *be, struct io *io)
{
    (void)be;
    (void)io; /* holds nothing */
}

static void
error_destroy(struct backend *be)
{
    struct error_layer *l = be->priv;
    free(l->when.path);
}

const struct be_ops layer_error_ops = {
    .type = "error",
    .open = layer_open,
    .close = layer_close,
    .probe = layer_probe,
    .submit = error_submit,
    .cancel = error_cancel,
    .release_ref = layer_release_ref,
    .configure = error_configure,
    .destroy = error_destroy,
    .priv_size = sizeof(struct error_layer),
};
