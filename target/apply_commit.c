/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The change itself.  Nothing of it can fail: the model becomes what is wanted in one go on main,
 * is published, and what nobody maps any more is closed.  Units that are made anew on a path that
 * the old ones had open follow when these are closed.  Main only.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/apply.h"
#include "target/apply_store.h"
#include "target/isns.h"

/* A store is let go; `job` waits for it. */
static void
drop_later(struct apply_job *job, struct store *s)
{
    job->dropped = xrealloc(job->dropped, (job->ndropped + 1) * sizeof *job->dropped);
    job->dropped[job->ndropped++] = s;
}

/* --- the model ------------------------------------------------------------------------------- */

static void
take_lun(struct apply_job *job, const struct apply_change *ch)
{
    struct model_target *t = model_target_by_name(ch->have->name);
    struct model_lun *l = model_lun_find(t, (unsigned)ch->lun_have->number);

    drop_later(job, l->store);
    model_lun_del(t, l);
}

static void
give_lun(struct apply_job *job, const struct apply_change *ch)
{
    struct apply_slot *slot = apply_slot_find(job, ch->lun_want);
    struct model_target *t = model_target_by_name(ch->want->name);
    unsigned number = (unsigned)ch->lun_want->number;

    /* when a late store comes, another request may have been there */
    if (slot->store && t && !model_lun_find(t, number))
        model_lun_add(t, number, slot->store);
}

static void
set_lun(const struct apply_change *ch)
{
    const struct model_target *t = model_target_by_name(ch->have->name);
    struct store *s = model_lun_find(t, (unsigned)ch->lun_have->number)->store;
    char err[512];

    /* another target that maps it may have brought the change already */
    if (!conf_lun_same(s->conf, ch->lun_want) &&
        apply_lun_set(s, ch->lun_want, false, err, sizeof err) < 0)
        log_abort("what was judged before does not hold: %s", err);
}

static void
one_change(struct apply_job *job, const struct apply_change *ch)
{
    struct model_target *t = ch->have ? model_target_by_name(ch->have->name) : NULL;

    switch (ch->op) {
    case OP_NOTE:
    case OP_PORTAL_ADD:
    case OP_TARGET_ADD: /* before all others: see change_all */
    case OP_GLOBAL:
        break;
    case OP_PORTAL_CHANGE: {
        const struct portal_spec spec = apply_portal_spec(ch->portal);
        (void)portal_change(&spec);
        break;
    }
    case OP_PORTAL_DEL:
        (void)portal_close_asked(ch->portal->at.name); /* perhaps closed to make room */
        break;
    case OP_TARGET_DEL:
        list_del(&t->link); /* workers end its sessions when they get the set without it */
        list_add_tail(&job->dead, &t->link);
        apply_auth_clear(&t->auth);
        break;
    case OP_TARGET_SET:
        apply_target_set(t, ch->want);
        break;
    case OP_LUN_DEL:
        take_lun(job, ch);
        break;
    case OP_LUN_REPLACE:
        take_lun(job, ch);
        give_lun(job, ch);
        break;
    case OP_LUN_ADD:
        give_lun(job, ch);
        break;
    case OP_LUN_SET:
        set_lun(ch);
        break;
    }
}

static void
set_globals(const struct apply_job *job)
{
    struct isns_settings s;
    char err[256];

    apply_globals_set(job->result);
    model.usual_portals = job->usual_portals;
    if (apply_isns(job->result, &s, err, sizeof err) == 0)
        (void)isns_change(&s, err, sizeof err);
}

static bool
changes_globals(const struct apply_plan *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        if (!p->v[i].target)
            return true;
    }
    return false;
}

/* Targets that go make room for numbers, those that come are there before their units. */
static void
change_all(struct apply_job *job)
{
    const struct apply_plan *p = &job->plan;

    if (changes_globals(p))
        set_globals(job);
    for (unsigned i = 0; i < p->n; i++) {
        if (p->v[i].op == OP_TARGET_DEL)
            one_change(job, &p->v[i]);
    }
    for (unsigned i = 0; i < p->n; i++) {
        const struct conf_target *ct = p->v[i].want;
        if (p->v[i].op == OP_TARGET_ADD)
            apply_target_set(model_target_new(ct->tid, ct->name), ct);
    }
    for (unsigned i = 0; i < p->n; i++) {
        if (p->v[i].op != OP_TARGET_DEL)
            one_change(job, &p->v[i]);
        if (p->v[i].what[0])
            log_event(p->v[i].how == HOW_RESTART ? LL_WARN : LL_NOTICE, LA_CONF,
                      "change target=%s how=%s what=\"%s\"",
                      p->v[i].target ? LOG_ESC(p->v[i].target) : "-", apply_how_name(p->v[i].how),
                      LOG_TEXT(p->v[i].what));
    }
    if (job->ask.whole)
        apply_unbound_set(&job->result->unbound);
}

/* --- what follows ---------------------------------------------------------------------------- */

struct closing {
    struct apply_job *job;
    void (*then)(struct apply_job *job);
};

static void late_open(struct apply_job *job, void (*then)(struct apply_job *job));

static void
one_closed(void *arg)
{
    struct closing *c = arg;
    struct apply_job *job = c->job;
    void (*then)(struct apply_job *) = c->then;

    free(c);
    if (--job->closing == 0)
        late_open(job, then);
}

static void
late_ended(struct apply_job *job, void (*then)(struct apply_job *job))
{
    if (--job->closing == 0)
        then(job);
}

struct late {
    struct apply_job *job;
    struct apply_slot *slot;
    void (*then)(struct apply_job *job);
    struct worker_timer deadline;
    bool over;
};

#define LATE_MS 5000

static void
on_late_deadline(struct worker_timer *t)
{
    struct late *l = container_of(t, struct late, deadline);
    l->over = true; /* on_late_opened shows it one day */
    conf_report_add(&l->job->report, false, &l->slot->lun->pos,
                    "%s: not open yet; the logical unit comes when it is", l->slot->lun->path);
    late_ended(l->job, l->then);
}

static void
on_late_opened(struct store *s)
{
    struct late *l = s->arg;
    char why[512];

    s->arg = NULL;
    worker_timer_stop(&l->deadline);
    if (s->result < 0 && !l->over)
        conf_report_add(&l->job->report, false, &l->slot->lun->pos,
                        "%s; the logical unit is not ready, and tried again",
                        apply_store_why(s, why, sizeof why));
    if (s->users > 1) { /* still mapped */
        apply_store_settle(s, s->result);
        apply_store_show(s);
    }
    if (!l->over)
        late_ended(l->job, l->then);
    free(l);
}

/* The units that wait for a path. */
static void
late_open(struct apply_job *job, void (*then)(struct apply_job *job))
{
    job->closing = 1;
    for (unsigned i = 0; i < job->nslots; i++) {
        struct apply_slot *slot = &job->slots[i];
        char alone[ISCSI_NAME_MAX + 32] = "";
        if (!slot->late)
            continue;
        for (unsigned k = 0; k < job->plan.n; k++) {
            const struct apply_change *ch = &job->plan.v[k];
            if (!ch->lun_want || apply_slot_find(job, ch->lun_want) != slot ||
                (ch->op != OP_LUN_ADD && ch->op != OP_LUN_REPLACE))
                continue;
            if (!slot->store) {
                snprintf(alone, sizeof alone, "%s %d", ch->want->name, ch->lun_want->number);
                slot->store = apply_store_new(slot->lun, alone);
            }
            give_lun(job, ch);
        }
        struct late *l = xcalloc(1, sizeof *l);
        *l = (struct late){.job = job, .slot = slot, .then = then};
        worker_timer_init(&l->deadline, model.main, on_late_deadline);
        worker_timer_start_ms(&l->deadline, LATE_MS);
        slot->store->arg = l;
        job->closing++;
        apply_store_open(slot->store, on_late_opened);
    }
    late_ended(job, then);
}

static void
close_one(struct apply_job *job, struct store *s, void (*then)(struct apply_job *job))
{
    struct closing *c = xmalloc(sizeof *c);
    *c = (struct closing){job, then};
    job->closing++;
    apply_store_drop_then(s, one_closed, c);
}

/* Every worker has it: what went is let go. */
static void
on_published(void *arg)
{
    struct closing *c = arg;
    struct apply_job *job = c->job;
    void (*then)(struct apply_job *) = c->then;

    free(c);
    job->closing = 1;
    list_each_safe(it, &job->dead) {
        struct model_target *t = container_of(it, struct model_target, link);
        while (!list_is_empty(&t->luns)) {
            struct model_lun *l = list_first(&t->luns, struct model_lun, link);
            struct store *s = l->store;
            model_lun_del(t, l);
            close_one(job, s, then);
        }
        model_target_free(t);
    }
    for (unsigned i = 0; i < job->ndropped; i++)
        close_one(job, job->dropped[i], then);
    if (--job->closing == 0)
        late_open(job, then);
}

void
apply_commit(struct apply_job *job, void (*then)(struct apply_job *job))
{
    struct closing *c = xmalloc(sizeof *c);
    char err[512] = "";

    *c = (struct closing){job, then};
    list_init(&job->dead);
    change_all(job);
    if (model_publish(on_published, c, err, sizeof err) < 0)
        log_abort("checked configuration does not hold: %s", err);
}
