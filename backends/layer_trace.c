/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layer `trace`: one line per request, when it is done, into a file.  Option file=/path
 * (appended to).  The line:
 *   N TIME_US wWORKER OP OFFSET LEN FLAGS RESULT TOOK_US
 * N counts submits, TIME_US is base/clock's at the submit, FLAGS is `f` (FUA), `c` (cancel was
 * asked for) or `-`.  The line is written from the worker: the file belongs on a local disk, and
 * the layer into an investigation, not into service.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/layer.h"
#include "base/clock.h"
#include "base/opener.h"
#include "base/pool.h"
#include "base/worker.h"

struct trace_layer {
    char *path;
    bool is_open;
    int fd; /* opened once, closed with the layer; O_APPEND keeps lines whole */
    atomic_uint_fast64_t n;
};

static int
trace_configure(struct backend *be, const char *key, const char *value)
{
    struct trace_layer *l = be->priv;
    if (key == NULL) {
        if (l->path != NULL)
            return 0;
        be_set_error(be, "trace: needs file=/path");
        return -EINVAL;
    }
    if (strcmp(key, "file") != 0 || value[0] != '/')
        return -EINVAL;
    free(l->path);
    l->path = xstrdup(value);
    return 0;
}

static int
trace_open(struct backend *be)
{
    struct trace_layer *l = be->priv;
    if (!l->is_open) {
        l->fd = opener_open(l->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (l->fd < 0) {
            be_set_error(be, "trace: %s: %s", l->path, strerror(-l->fd));
            return l->fd;
        }
        l->is_open = true;
    }
    return layer_open(be);
}

/* The submit's number and time share the frame's one word; the time wraps after 71 minutes, and
 * so does a difference of two. */
static void
on_trace_done(struct io *io)
{
    struct io_frame *f = io_frame(io);
    struct backend *be = f->arg;
    struct trace_layer *l = be->priv;
    uint64_t now = clock_us();
    uint32_t took = (uint32_t)now - (uint32_t)f->u;
    char line[192];
    int n =
        snprintf(line, sizeof(line),
                 "%" PRIu64 " %" PRIu64 " w%u %s %" PRIu64 " %" PRIu64 " %s%s%s %d %" PRIu32 "\n",
                 f->u >> 32, now - took, worker_id(io->w), layer_op_name(io->op), io->offset,
                 io->len, (io->flags & IO_FUA) != 0 ? "f" : "", io->canceled ? "c" : "",
                 (io->flags & IO_FUA) != 0 || io->canceled ? "" : "-", io->res, took);
    struct iovec iov = {.iov_base = line, .iov_len = (size_t)n};
    (void)layer_write_all(l->fd, &iov, 1); /* a full disk must not fail the LUN */
    io_complete(io, io->res);
}

static void
trace_submit(struct backend *be, struct io *io)
{
    struct trace_layer *l = be->priv;
    uint64_t n = atomic_fetch_add_explicit(&l->n, 1, memory_order_relaxed);
    io_push(io, on_trace_done, be);
    io->frames[io->nframes - 1].u = n << 32 | (uint32_t)clock_us();
    be_submit_below(be, io);
}

static void
trace_cancel(struct backend *be, struct io *io)
{
    (void)be;
    (void)io; /* holds nothing */
}

static void
trace_destroy(struct backend *be)
{
    struct trace_layer *l = be->priv;
    if (l->is_open)
        close(l->fd);
    free(l->path);
}

static const char *
trace_path(const struct backend *be)
{
    const struct trace_layer *l = be->priv;
    return l->path;
}

const struct be_ops layer_trace_ops = {
    .type = "trace",
    .open = trace_open,
    .close = layer_close,
    .probe = layer_probe,
    .submit = trace_submit,
    .cancel = trace_cancel,
    .release_ref = layer_release_ref,
    .configure = trace_configure,
    .destroy = trace_destroy,
    .extra_path = trace_path,
    .priv_size = sizeof(struct trace_layer),
};
