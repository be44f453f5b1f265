/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layer `record`: the power-loss layer.  Logs every write with its data, every flush, and their
 * ends, in one order, so that tests/lib/replay.c can make any image that a loss of power could
 * have left behind; record.h has the format and the rules.  Option file=/path; an existing log
 * is continued.
 *
 * The log is written from the workers under one lock: a layer for tests.  A log with a gap would
 * prove nothing, so a request that cannot be logged fails, and so does all that follows.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/layer.h"
#include "backends/record.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opener.h"
#include "base/pool.h"

struct record_layer {
    char *path;
    bool is_open;
    int fd;
    pthread_mutex_t lock; /* seq, broken and the order of the file */
    uint64_t seq;
    bool is_broken;
};

static void
record_init(struct backend *be)
{
    struct record_layer *l = be->priv;
    pthread_mutex_init(&l->lock, NULL);
}

static int
record_configure(struct backend *be, const char *key, const char *value)
{
    struct record_layer *l = be->priv;
    if (key == NULL) {
        if (l->path != NULL)
            return 0;
        be_set_error(be, "record: needs file=/path");
        return -EINVAL;
    }
    if (strcmp(key, "file") != 0 || value[0] != '/')
        return -EINVAL;
    free(l->path);
    l->path = xstrdup(value);
    return 0;
}

/* Appends one record; its number in *seq. 0 or -errno. */
static int
append(struct record_layer *l, struct record *r, const struct iovec *data, unsigned n,
       uint64_t *seq)
{
    struct iovec head = {.iov_base = r, .iov_len = sizeof(*r)};
    pthread_mutex_lock(&l->lock);
    r->magic = RECORD_MAGIC;
    r->seq = *seq = l->seq++;
    r->ns = clock_us() * 1000;
    int err = l->is_broken ? -EIO : layer_write_all(l->fd, &head, 1);
    if (err == 0 && n > 0)
        err = layer_write_all(l->fd, data, n);
    if (err != 0 && !l->is_broken) {
        l->is_broken = true;
        log_event(LL_ERROR, LA_BACKEND, "record-failed file=%s error=%d", LOG_ESC(l->path), -err);
    }
    pthread_mutex_unlock(&l->lock);
    return err;
}

/* To the end of an existing log; a torn record there (the daemon was killed) is cut off. */
static int
find_end(struct record_layer *l)
{
    struct stat st;
    off_t end = 0;
    struct record r;
    if (fstat(l->fd, &st) != 0)
        return -errno;
    while (pread(l->fd, &r, sizeof(r), end) == (ssize_t)sizeof(r)) {
        if (r.magic != RECORD_MAGIC || r.seq != l->seq)
            return -EBADMSG;
        if (r.data_len > (uint64_t)(st.st_size - end) - sizeof(r))
            break;
        end += (off_t)(sizeof(r) + r.data_len);
        l->seq++;
    }
    return end == st.st_size || ftruncate(l->fd, end) == 0 ? 0 : -errno;
}

static int
open_log(struct record_layer *l)
{
    l->fd = opener_open(l->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (l->fd < 0)
        return l->fd;
    l->seq = 0;
    int err = find_end(l);
    if (err != 0)
        close(l->fd);
    else
        l->is_open = true;
    return err;
}

static int
record_open(struct backend *be)
{
    struct record_layer *l = be->priv;
    bool is_first = !l->is_open;
    int err = is_first ? open_log(l) : 0;
    if (err != 0) {
        be_set_error(be, "record: %s: %s", l->path, strerror(-err));
        return err;
    }
    err = layer_open(be);
    /* A later open of the same run leaves requests in flight: they still get their DONE. */
    if (err != 0 || !is_first)
        return err;
    struct record r = {.kind = RECORD_OPEN, .offset = be_size(be)};
    uint64_t seq;
    err = append(l, &r, NULL, 0, &seq);
    if (err != 0)
        layer_close(be);
    return err;
}

static void
on_record_done(struct io *io)
{
    struct io_frame *f = io_frame(io);
    struct backend *be = f->arg;
    struct record r = {.kind = RECORD_DONE, .ref = f->u, .res = io->res};
    uint64_t seq;
    int err = append(be->priv, &r, NULL, 0, &seq);
    io_complete(io, io->res == 0 ? err : io->res);
}

static void
record_submit(struct backend *be, struct io *io)
{
    static const uint8_t ops[IO_OP_COUNT] = {[IO_WRITE] = RECORD_WRITE,
                                             [IO_ZERO] = RECORD_ZERO,
                                             [IO_DISCARD] = RECORD_DISCARD,
                                             [IO_FLUSH] = RECORD_FLUSH};
    if (ops[io->op] == 0) {
        be_submit_below(be, io);
        return;
    }
    struct record r = {.kind = RECORD_SUBMIT,
                       .op = ops[io->op],
                       .flags = (io->flags & IO_FUA) != 0 ? RECORD_FUA : 0,
                       .offset = io->op == IO_FLUSH ? 0 : io->offset,
                       .len = io->op == IO_FLUSH ? 0 : io->len,
                       .data_len = io->op == IO_WRITE ? io->len : 0};
    uint64_t seq;
    int err = append(be->priv, &r, io->iov, io->op == IO_WRITE ? io->niov : 0, &seq);
    if (err != 0) {
        io_complete_later(io, -EIO);
        return;
    }
    io_push(io, on_record_done, be);
    io->frames[io->nframes - 1].u = seq;
    be_submit_below(be, io);
}

static void
record_cancel(struct backend *be, struct io *io)
{
    (void)be;
    (void)io; /* holds nothing */
}

static void
record_destroy(struct backend *be)
{
    struct record_layer *l = be->priv;
    if (l->is_open)
        close(l->fd);
    pthread_mutex_destroy(&l->lock);
    free(l->path);
}

static const char *
record_path(const struct backend *be)
{
    const struct record_layer *l = be->priv;
    return l->path;
}

const struct be_ops layer_record_ops = {
    .type = "record",
    .init = record_init,
    .open = record_open,
    .close = layer_close,
    .probe = layer_probe,
    .submit = record_submit,
    .cancel = record_cancel,
    .release_ref = layer_release_ref,
    .configure = record_configure,
    .destroy = record_destroy,
    .extra_path = record_path,
    .priv_size = sizeof(struct record_layer),
};
