/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One application of a configuration: it is read and judged by a helper, compared with what there
 * is, prepared (apply_prepare.c), made so (apply_commit.c).  One at a time: admin.c's queue sees to
 * it.  Main, but for job_read.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/apply.h"
#include "target/apply_store.h"

static const struct conf_pos asked_pos = {"the request", 0, 0};

void
apply_job_free(struct apply_job *job)
{
    for (unsigned i = 0; i < job->nslots; i++) {
        if (job->slots[i].store)
            apply_store_drop(job->slots[i].store);
    }
    free(job->slots);
    for (unsigned i = 0; i < job->ask.ntargets; i++)
        free(job->ask.targets[i]);
    free(job->ask.targets);
    for (unsigned i = 0; i < job->nopened; i++)
        free(job->opened[i]);
    free(job->opened);
    for (unsigned i = 0; i < job->nclosed; i++)
        free(job->closed[i]);
    free(job->closed);
    free(job->dropped);
    apply_plan_fini(&job->plan);
    conf_report_fini(&job->report);
    conf_free(job->have);
    conf_free(job->result);
    apply_saved_fini(&job->saved);
    free(job);
}

static void
end(struct apply_job *job)
{
    job->ask.done(job, job->ask.arg);
}

static void
fail(struct apply_job *job, enum apply_end how, const char *why)
{
    job->end = how;
    snprintf(job->why, sizeof job->why, "%s", why);
    end(job);
}

/* --- reading --------------------------------------------------------------------------------- */

/* Nobody named a portal: the usual ones stand there, so that they can be compared. */
static void
usual_portals(struct conf *c)
{
    static const char *const names[] = {"0.0.0.0", "::"};
    char err[256];

    c->portals = xrealloc(c->portals, 2 * sizeof *c->portals);
    for (c->nportals = 0; c->nportals < 2; c->nportals++) {
        struct conf_portal *p = &c->portals[c->nportals];
        *p = (struct conf_portal){.pos = {apply_running, 0, 0}, .group = 1};
        if (hostport_parse(names[c->nportals], &p->at, err, sizeof err) < 0)
            log_abort("usual portal: %s", err);
    }
}

/* What does not concern what is asked for is not told: it is so already. */
static void
take_messages(struct conf_report *to, const struct conf_report *from)
{
    for (unsigned i = 0; i < from->n; i++) {
        const struct conf_msg *m = &from->v[i];
        const struct conf_pos pos = {m->file, m->line, m->col};
        if (strcmp(m->file, apply_running) != 0)
            conf_report_add(to, m->is_error, &pos, "%s", m->text);
    }
}

static void
keep_name(struct apply_ask *ask, const char *name)
{
    ask->targets = xrealloc(ask->targets, (ask->ntargets + 1) * sizeof *ask->targets);
    ask->targets[ask->ntargets++] = xstrdup(name);
}

static void
job_read(struct helper_job *h)
{
    struct apply_job *job = container_of(h, struct apply_job, helper);
    const struct apply_ask *ask = &job->ask;
    struct conf_report across;
    struct conf *want = apply_source(job);
    bool all_of_it = ask->ntargets == 0;

    if (!want)
        return;
    for (unsigned i = 0; i < want->ntargets && !ask->whole && all_of_it; i++)
        keep_name(&job->ask, want->targets[i].name);
    const struct conf_parts parts = {.all = ask->whole,
                                     .globals = ask->whole,
                                     .names = (const char *const *)ask->targets,
                                     .n = ask->ntargets};
    job->result = conf_merge(job->have, want, &parts);
    conf_report_init(&across);
    conf_check_across(job->result, &across);
    take_messages(&job->report, &across);
    conf_report_fini(&across);
    for (unsigned i = 0; i < ask->ntargets && ask->add; i++) {
        if (!conf_find_target(want, ask->targets[i]))
            conf_report_add(&job->report, true, &asked_pos, "target %s is not in it",
                            ask->targets[i]);
    }
    conf_free(want);
}

/* --- looking --------------------------------------------------------------------------------- */

static void
on_committed(struct apply_job *job)
{
    job->end = APPLY_DONE;
    if (job->ask.reload)
        apply_saved_take(&job->saved);
    end(job);
}

static void
on_prepared(struct apply_job *job)
{
    if (job->end == APPLY_WRONG) {
        end(job);
    } else if (job->ask.pretend || job->ask.is_late(job->ask.arg)) {
        apply_undo(job);
        end(job);
    } else {
        apply_commit(job, on_committed);
    }
}

static void
go_on(struct apply_job *job)
{
    job->end = APPLY_DONE;
    apply_prepare(job, on_prepared);
}

/* Something is taken away from whoever is logged in there. */
static bool
takes_away(const struct apply_change *ch)
{
    return ch->op == OP_TARGET_DEL || ch->op == OP_LUN_DEL || ch->op == OP_LUN_REPLACE;
}

#define TOLD_MAX 4u /* changes; of the others the number */

/* What would be taken from those who are logged in. */
static void
in_use(struct apply_job *job, const char *who)
{
    char why[sizeof job->why] = "";
    size_t len = 0;
    unsigned n = 0;

    for (unsigned i = 0; i < job->plan.n; i++) {
        const struct apply_change *ch = &job->plan.v[i];
        if (!takes_away(ch) || !ch->what[0] || n++ >= TOLD_MAX)
            continue;
        int k = snprintf(why + len, sizeof why - len, "%s%s: %.100s", n > 1 ? "; " : "", ch->target,
                         ch->what);
        len = k > 0 && len + (size_t)k < sizeof why ? len + (size_t)k : sizeof why - 1;
    }
    if (n > TOLD_MAX && len < sizeof why - 1)
        snprintf(why + len, sizeof why - len, "; and %u more", n - TOLD_MAX);
    len = strlen(why);
    snprintf(why + len, sizeof why - len, " - logged in there: %s", who);
    fail(job, APPLY_IN_USE, why);
}

struct users_ask {
    struct apply_job *job;
    char **targets;
};

static void
on_users(void *arg, const char *who)
{
    struct users_ask *u = arg;
    struct apply_job *job = u->job;

    free(u->targets);
    free(u);
    if (*who)
        in_use(job, who);
    else
        go_on(job);
}

static void
look_for_users(struct apply_job *job)
{
    struct users_ask *u = xcalloc(1, sizeof *u);
    unsigned n = 0;

    u->job = job;
    u->targets = xcalloc(job->plan.n + 1, sizeof *u->targets);
    for (unsigned i = 0; i < job->plan.n; i++) {
        const struct apply_change *ch = &job->plan.v[i];
        if (takes_away(ch) && (n == 0 || strcmp(u->targets[n - 1], ch->target) != 0))
            u->targets[n++] = ch->target;
    }
    apply_users(u->targets, n, on_users, u);
}

static bool
one_exists(const struct apply_job *job, char *why, size_t size)
{
    for (unsigned i = 0; i < job->ask.ntargets; i++) {
        if (model_target_by_name(job->ask.targets[i])) {
            snprintf(why, size, "%s", job->ask.targets[i]);
            return true;
        }
    }
    return false;
}

static void
on_read(struct helper_job *h)
{
    struct apply_job *job = container_of(h, struct apply_job, helper);
    char why[ISCSI_NAME_MAX + 1];

    worker_assert_owner(model.main);
    if (job->report.nerrors || !job->result) {
        fail(job, APPLY_WRONG, "");
        return;
    }
    if (job->ask.is_late(job->ask.arg)) { /* nobody waits for it any more: nothing is done */
        end(job);
        return;
    }
    if (job->ask.add && one_exists(job, why, sizeof why)) {
        fail(job, APPLY_EXISTS, why);
        return;
    }
    job->usual_portals = job->result->nportals == 0 && !job->result->no_portals;
    if (!model.usual_portals && job->usual_portals)
        usual_portals(job->result);
    else if (model.usual_portals && !job->usual_portals)
        usual_portals(job->have);
    apply_diff(&job->plan, job->have, job->result, job->ask.whole ? model.started : NULL);
    if (!job->ask.force)
        look_for_users(job);
    else
        go_on(job);
}

void
apply_begin(const struct apply_ask *ask)
{
    struct apply_job *job = xcalloc(1, sizeof *job);

    worker_assert_owner(model.main);
    job->ask = *ask;
    job->ask.targets = NULL;
    job->ask.ntargets = 0;
    for (unsigned i = 0; i < ask->ntargets; i++)
        keep_name(&job->ask, ask->targets[i]);
    list_init(&job->dead);
    conf_report_init(&job->report);
    job->have = apply_view();
    if (ask->reload)
        apply_saved_begin(&job->saved);
    job->helper = (struct helper_job){.run = job_read, .done = on_read, .w = model.main};
    helper_submit(&job->helper);
}

/* --- what became of it ----------------------------------------------------------------------- */

enum apply_end
apply_job_end(const struct apply_job *job, const char **why)
{
    *why = job->why;
    return job->end;
}

void
apply_each_change(const struct apply_job *job,
                  void (*put)(void *arg, const char *target, const char *what, const char *how),
                  void *arg)
{
    for (unsigned i = 0; i < job->plan.n; i++) {
        const struct apply_change *ch = &job->plan.v[i];
        if (ch->what[0])
            put(arg, ch->target, ch->what, apply_how_name(ch->how));
    }
}

void
apply_each_message(const struct apply_job *job,
                   void (*put)(void *arg, const char *file, unsigned line, unsigned col, bool error,
                               const char *text),
                   void *arg)
{
    for (unsigned i = 0; i < job->report.n; i++) {
        const struct conf_msg *m = &job->report.v[i];
        put(arg, m->file, m->line, m->col, m->is_error, m->text);
    }
}
