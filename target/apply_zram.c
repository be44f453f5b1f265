/* SPDX-License-Identifier: BSD-2-Clause */
/* Units in compressed memory, see apply_zram.h.  Main, but for job_work. */
#include "config.h"

#include "target/apply_zram.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "target/apply_store.h"

bool
apply_is_zram(const struct store *s)
{
    return s->conf->bs == CONF_BS_ZRAM;
}

void
apply_zram_view(const struct store *s, struct apply_zram_view *v)
{
    const struct conf_lun *l = s->conf;
    unsigned a = l->algorithm != CONF_UNSET ? l->algorithm : 0;

    *v = (struct apply_zram_view){.name = l->path,
                                  .algorithm = conf_zram_algorithms[a],
                                  .level = l->level,
                                  .chunk_size = l->chunk_size,
                                  .mem_limit = l->mem_limit};
}

void
apply_zram_counters(const struct store *s,
                    void (*fn)(void *arg, const char *group, const char *name, uint64_t value),
                    void *arg)
{
    if (s->be)
        be_each_counter(s->be, fn, arg);
}

uint64_t
apply_zram_limit(void)
{
    return model.conf ? model.conf->zram_mem_limit : 0;
}

/* --- work ------------------------------------------------------------------------------------ */

struct working {
    struct helper_job job;
    struct store *s; /* a user */
    struct apply_zram_work work;
    char codec[64], err[256];
    void (*done)(void *arg, const char *err, const struct apply_zram_work *work);
    void *arg;
};

static void
job_work(struct helper_job *job)
{
    struct working *w = container_of(job, struct working, job);
    struct be_zram_work bw = {.recompress = w->work.recompress != NULL,
                              .codec = w->codec,
                              .huge = w->work.huge,
                              .idle = w->work.idle,
                              .idle_s = w->work.idle_s,
                              .max_ms = w->work.max_ms};

    (void)be_zram_work(w->s->be, &bw, w->err, sizeof w->err);
    w->work.again = bw.again;
    w->work.seen = bw.seen;
    w->work.done = bw.done;
    w->work.gained = bw.gained;
}

static void
on_worked(struct helper_job *job)
{
    struct working *w = container_of(job, struct working, job);

    w->done(w->arg, w->err, &w->work);
    apply_store_drop(w->s);
    free(w);
}

void
apply_zram_work(struct store *s, const struct apply_zram_work *work,
                void (*done)(void *arg, const char *err, const struct apply_zram_work *work),
                void *arg)
{
    struct working *w = xcalloc(1, sizeof *w);

    worker_assert_owner(model.main);
    w->s = s;
    s->users++;
    w->work = *work;
    snprintf(w->codec, sizeof w->codec, "%.60s", work->recompress ? work->recompress : "");
    w->done = done;
    w->arg = arg;
    w->job = (struct helper_job){.run = job_work, .done = on_worked, .w = model.main};
    helper_submit(&w->job);
}
