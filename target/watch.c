/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks at every backing store every few seconds (in helper jobs, one a store at most): one that
 * was missing is opened, one that vanished is marked, one that grew is announced.  A hung store
 * holds up its own look only.  So does it at IET's access files.  Main only.
 */
#include "config.h"

#include "backends/backend.h"
#include "target/apply_access.h"
#include "target/model.h"

#define WATCH_MS 3000

/* Hung stores must not take all helpers: other LUNs still have to be opened. */
#define PROBES_MAX 64

static struct worker_timer timer;
static struct helper_lane lane;

static void
job_probe(struct helper_job *job)
{
    struct store *s = container_of(job, struct store, job);
    s->events = be_probe(s->be);
}

static void
on_probed(struct store *s)
{
    if (s->events)
        apply_store_probed(s, s->events);
}

static void
on_tick(struct worker_timer *t)
{
    list_each(it, &model.stores) {
        struct store *s = container_of(it, struct store, link);
        if (s->lun && !s->is_gone && !s->busy)
            (void)apply_store_run(s, &lane, job_probe, on_probed);
    }
    apply_access_look();
    worker_timer_start_ms(t, WATCH_MS);
}

void
watch_start(struct worker *main_worker)
{
    helper_lane_init(&lane, PROBES_MAX);
    worker_timer_init(&timer, main_worker, on_tick);
    worker_timer_start_ms(&timer, WATCH_MS);
}

void
watch_stop(void)
{
    worker_timer_stop(&timer);
}
