/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layer `delay`: holds requests for a time before they go on, as a slow disk would; any number
 * at once.  Options:
 *   ms=N or us=N   how long
 *   op=read,...    which (all)
 *   hang=1         for ever: until canceled (-ECANCELED), or until the file of when= is gone
 *   stuck=1        as hang, and cancelling does not help either: a device hung in the kernel
 *   when=/path     only while this file exists
 * Any worker; each request waits on its own timer.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "backends/layer.h"
#include "base/pool.h"
#include "base/worker.h"

/* How often a hanging request looks whether it may go on. */
#define HANG_LOOK_US 20000u

struct delay_layer {
    unsigned ops;
    uint64_t us;
    bool is_hang, is_stuck;
    struct layer_when when;
};

static int
delay_configure(struct backend *be, const char *key, const char *value)
{
    struct delay_layer *l = be->priv;
    uint64_t n = 0;
    bool ok = false;
    if (key == NULL) {
        l->ops = l->ops != 0 ? l->ops : layer_parse_ops("all");
        if (l->us != 0 || l->is_hang)
            return 0;
        be_set_error(be, "delay: needs ms=, us=, hang=1 or stuck=1");
        return -EINVAL;
    }
    if (strcmp(key, "ms") == 0) {
        ok = layer_parse_u64(value, &n) && n < UINT64_MAX / 1000;
        l->us = n * 1000;
    } else if (strcmp(key, "us") == 0) {
        ok = layer_parse_u64(value, &l->us);
    } else if (strcmp(key, "op") == 0) {
        ok = (l->ops = layer_parse_ops(value)) != 0;
    } else if (strcmp(key, "hang") == 0) {
        ok = layer_parse_u64(value, &n);
        l->is_hang = n != 0;
    } else if (strcmp(key, "stuck") == 0) {
        ok = layer_parse_u64(value, &n);
        l->is_stuck = l->is_hang = n != 0;
    } else if (strcmp(key, "when") == 0) {
        free(l->when.path);
        l->when.path = xstrdup(value);
        ok = true;
    }
    return ok ? 0 : -EINVAL;
}

static void
on_timer(struct worker_timer *t)
{
    struct io *io = container_of(t, struct io, timer);
    struct backend *be = io->at;
    struct delay_layer *l = be->priv;
    if (l->is_hang && layer_when(&l->when))
        worker_timer_start_us(&io->timer, HANG_LOOK_US);
    else
        be_submit_below(be, io);
}

static void
delay_submit(struct backend *be, struct io *io)
{
    struct delay_layer *l = be->priv;
    if ((l->ops & 1u << io->op) == 0 || !layer_when(&l->when)) {
        be_submit_below(be, io);
        return;
    }
    io->at = be; /* while it waits, this layer cancels it */
    worker_timer_init(&io->timer, io->w, on_timer);
    if (!l->is_hang)
        worker_timer_start_us(&io->timer, l->us);
    else if (l->when.path != NULL)
        worker_timer_start_us(&io->timer, HANG_LOOK_US);
}

/* Called only while io->at is this layer: the request waits here. */
static void
delay_cancel(struct backend *be, struct io *io)
{
    struct delay_layer *l = be->priv;
    if (l->is_stuck)
        return;
    worker_timer_stop(&io->timer);
    io_complete_later(io, -ECANCELED);
}

static void
delay_destroy(struct backend *be)
{
    struct delay_layer *l = be->priv;
    free(l->when.path);
}

const struct be_ops layer_delay_ops = {
    .type = "delay",
    .open = layer_open,
    .close = layer_close,
    .probe = layer_probe,
    .submit = delay_submit,
    .cancel = delay_cancel,
    .release_ref = layer_release_ref,
    .configure = delay_configure,
    .destroy = delay_destroy,
    .priv_size = sizeof(struct delay_layer),
};
