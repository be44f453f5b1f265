/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything of a change that may fail is done first: portals are bound, backing stores opened,
 * live settings judged.  On failure all of it is undone and nobody has noticed.  Only a store whose
 * path a leaving unit still has open comes later, in apply_commit.c.  Main only.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/apply.h"
#include "target/apply_store.h"
#include "target/isns.h"

#define OPEN_MS 10000 /* stores that take longer come up later, or fail the request */

/* One opening; outlives its job when it hangs. */
struct apply_opening {
    struct apply_job *job; /* NULL: over, nobody waits */
    struct apply_slot *slot;
    bool wanted; /* by a LUN, though the job is over */
    void (*then)(struct apply_job *job);
};

/* --- portals --------------------------------------------------------------------------------- */

static void
remember(char ***v, unsigned *n, const char *name)
{
    *v = xrealloc(*v, (*n + 1) * sizeof **v);
    (*v)[(*n)++] = xstrdup(name);
}

static void
forget(char ***v, unsigned *n)
{
    for (unsigned i = 0; i < *n; i++)
        free((*v)[i]);
    free(*v);
    *v = NULL;
    *n = 0;
}

static void
reopen(struct apply_job *job)
{
    char err[512];

    for (unsigned i = 0; i < job->nclosed; i++) {
        for (unsigned k = 0; k < job->have->nportals; k++) {
            const struct portal_spec spec = apply_portal_spec(&job->have->portals[k]);
            if (strcmp(spec.at.name, job->closed[i]) == 0 &&
                portal_open(&spec, true, err, sizeof err) < 0)
                log_event(LL_ERROR, LA_NET, "portal-lost why=\"%s\"", err);
        }
    }
    forget(&job->closed, &job->nclosed);
}

/* Portals that go make room for those that come: only when these cannot be bound otherwise. */
static bool
close_leaving(struct apply_job *job)
{
    bool any = false;

    for (unsigned i = 0; i < job->plan.n; i++) {
        const struct apply_change *ch = &job->plan.v[i];
        if (ch->op == OP_PORTAL_DEL && portal_close_asked(ch->portal->at.name) == 0) {
            remember(&job->closed, &job->nclosed, ch->portal->at.name);
            any = true;
        }
    }
    return any;
}

/* A host without IPv6 is no error when nobody asked for it. */
static bool
is_optional(const struct apply_job *job, const struct conf_portal *p, int rc)
{
    return p->pos.file == apply_running && job->result->nportals == 2 &&
           p->at.addr.ss_family == AF_INET6 && rc != -EADDRINUSE && rc != -EACCES;
}

static int
open_portals(struct apply_job *job)
{
    char err[512] = "";

    for (unsigned i = 0; i < job->plan.n; i++) {
        const struct apply_change *ch = &job->plan.v[i];
        if (ch->op != OP_PORTAL_ADD)
            continue;
        const struct portal_spec spec = apply_portal_spec(ch->portal);
        int rc = portal_open(&spec, !job->ask.add, err, sizeof err);
        if (rc == -EADDRINUSE && close_leaving(job))
            rc = portal_open(&spec, !job->ask.add, err, sizeof err);
        if (rc < 0 && !is_optional(job, ch->portal, rc)) {
            conf_report_add(&job->report, true, &ch->portal->pos, "%s", err);
            return rc;
        }
        if (rc == 0)
            remember(&job->opened, &job->nopened, spec.at.name);
        if (rc == 0 && portal_is_absent(spec.at.name))
            conf_report_add(&job->report, false, &ch->portal->pos,
                            "portal %s: no interface of this host has the address; it is served as "
                            "soon as one has",
                            spec.at.name);
    }
    return 0;
}

/* --- stores ---------------------------------------------------------------------------------- */

/* How many units map each store, and how many of them go. */
static void
count_users(const struct apply_plan *p)
{
    list_each(it, &model.stores) {
        struct store *s = container_of(it, struct store, link);
        s->mapped = s->leaving = 0;
        s->permit_stays = false;
    }
    list_each(it, &model.targets) {
        list_each(l, &container_of(it, struct model_target, link)->luns)
            container_of(l, struct model_lun, link)->store->mapped++;
    }
    for (unsigned i = 0; i < p->n; i++) {
        const struct apply_change *ch = &p->v[i];
        struct model_target *t = ch->have ? model_target_by_name(ch->have->name) : NULL;
        if (t && ch->op == OP_TARGET_DEL) {
            list_each(l, &t->luns)
                container_of(l, struct model_lun, link)->store->leaving++;
        } else if (t && (ch->op == OP_LUN_DEL || ch->op == OP_LUN_REPLACE)) {
            model_lun_find(t, (unsigned)ch->lun_have->number)->store->leaving++;
        }
    }
}

/* The store that has these settings now, or will have them. */
static struct store *
find_kept(const struct apply_job *job, const struct conf_lun *l)
{
    if (l->bs == CONF_BS_NULL)
        return NULL;
    list_each(it, model_stores_at(l->path)) {
        struct store *s = container_of(it, struct store, path_link);
        if (!s->is_gone && s->mapped && conf_lun_same(s->conf, l))
            return s;
    }
    for (unsigned i = 0; i < job->plan.n; i++) {
        const struct apply_change *ch = &job->plan.v[i];
        if (ch->op != OP_LUN_SET || !conf_lun_same(ch->lun_want, l))
            continue;
        const struct model_target *t = model_target_by_name(ch->have->name);
        return model_lun_find(t, (unsigned)ch->lun_have->number)->store;
    }
    return NULL;
}

/* The unit that goes and has the path still open, or NULL. */
static struct store *
find_leaving(const char *path)
{
    list_each(it, model_stores_at(path)) {
        struct store *s = container_of(it, struct store, path_link);
        if (path[0] && s->mapped && s->leaving == s->mapped && strcmp(s->conf->path, path) == 0)
            return s;
    }
    return NULL;
}

struct apply_slot *
apply_slot_find(struct apply_job *job, const struct conf_lun *l)
{
    for (unsigned i = 0; i < job->nslots; i++) {
        struct apply_slot *slot = &job->slots[i];
        if (slot->lun == l || (l->bs != CONF_BS_NULL && conf_lun_same(slot->lun, l)))
            return slot;
    }
    return NULL;
}

static void
make_slots(struct apply_job *job)
{
    job->slots = xcalloc(job->plan.n + 1, sizeof *job->slots);
    count_users(&job->plan);
    for (unsigned i = 0; i < job->plan.n; i++) {
        const struct apply_change *ch = &job->plan.v[i];
        const struct conf_lun *l = ch->lun_want;
        struct store *old;
        char alone[ISCSI_NAME_MAX + 32];
        if ((ch->op != OP_LUN_ADD && ch->op != OP_LUN_REPLACE) || apply_slot_find(job, l))
            continue;
        struct apply_slot *slot = &job->slots[job->nslots++];
        slot->lun = l;
        slot->store = find_kept(job, l);
        if (slot->store) {
            slot->store->users++;
        } else if ((old = find_leaving(l->path))) {
            slot->late = old->permit_stays = true;
        } else {
            snprintf(alone, sizeof alone, "%s %d", ch->want->name, l->number);
            slot->store = apply_store_new(l, alone);
            slot->op = xcalloc(1, sizeof *slot->op); /* opened below */
        }
    }
}

/* Makes the unit of a new store; a failure is told. */
static void
settle(struct apply_job *job, struct apply_slot *slot, bool opened)
{
    struct store *s = slot->store;
    char why[512];

    if (opened && s->result == 0 && apply_store_make_lun(s) == 0)
        return;
    if (!opened)
        snprintf(why, sizeof why, "%s: not open after %u s", slot->lun->path, OPEN_MS / 1000);
    else if (s->result < 0)
        apply_store_why(s, why, sizeof why);
    else
        snprintf(why, sizeof why, "%s: block size and backing store do not fit", slot->lun->path);
    conf_report_add(&job->report, job->ask.add, &slot->lun->pos, "%s%s", why,
                    job->ask.add ? "" : "; the logical unit is not ready, and tried again");
    if (!job->ask.add && !s->lun)
        (void)apply_store_make_lun(s);
}

static void
opened_all(struct apply_job *job, void (*then)(struct apply_job *job))
{
    worker_timer_stop(&job->deadline);
    if (job->report.nerrors) {
        job->end = APPLY_WRONG;
        apply_undo(job);
    }
    then(job);
}

void
apply_store_show(struct store *s)
{
    char err[512] = "";
    bool any = false;

    list_each(it, &model.targets) {
        struct model_target *t = container_of(it, struct model_target, link);
        list_each(l, &t->luns) {
            if (container_of(l, struct model_lun, link)->store != s)
                continue;
            model_touch_luns(t);
            any = true;
        }
    }
    if (any && model_publish(NULL, NULL, err, sizeof err) < 0)
        log_abort("what was published before does not hold: %s", err);
}

static void
on_opened(struct store *s)
{
    struct apply_opening *op = s->arg;
    struct apply_job *job = op->job;

    s->arg = NULL;
    if (job) {
        void (*then)(struct apply_job *) = op->then;
        settle(job, op->slot, true);
        op->slot->op = NULL;
        free(op);
        if (--job->pending == 0)
            opened_all(job, then);
        return;
    }
    if (op->wanted && s->users > 1) { /* beside the job's that ends now */
        bool shown = s->lun != NULL;
        apply_store_settle(s, s->result);
        if (!shown)
            apply_store_show(s);
    }
    free(op);
}

/* The rest is not waited for. */
static void
give_up(struct apply_job *job, bool wanted)
{
    for (unsigned i = 0; i < job->nslots; i++) {
        struct apply_slot *slot = &job->slots[i];
        if (!slot->op)
            continue;
        slot->op->job = NULL;
        slot->op->wanted = wanted;
        slot->op = NULL;
        if (wanted)
            settle(job, slot, false);
    }
    job->pending = 0;
}

static void
on_deadline(struct worker_timer *t)
{
    struct apply_job *job = container_of(t, struct apply_job, deadline);
    void (*then)(struct apply_job *) = NULL;

    for (unsigned i = 0; i < job->nslots; i++)
        then = job->slots[i].op ? job->slots[i].op->then : then;
    give_up(job, true);
    opened_all(job, then);
}

static void
open_stores(struct apply_job *job, void (*then)(struct apply_job *job))
{
    job->pending = 1;
    worker_timer_init(&job->deadline, model.main, on_deadline);
    worker_timer_start_ms(&job->deadline, OPEN_MS);
    for (unsigned i = 0; i < job->nslots; i++) {
        struct apply_slot *slot = &job->slots[i];
        if (!slot->op)
            continue;
        *slot->op = (struct apply_opening){.job = job, .slot = slot, .then = then};
        slot->store->arg = slot->op;
        job->pending++;
        apply_store_open(slot->store, on_opened);
    }
    if (--job->pending == 0)
        opened_all(job, then);
}

/* --- all of it ------------------------------------------------------------------------------- */

static void
check_live(struct apply_job *job)
{
    char err[512];

    for (unsigned i = 0; i < job->plan.n; i++) {
        const struct apply_change *ch = &job->plan.v[i];
        if (ch->op != OP_LUN_SET)
            continue;
        const struct model_target *t = model_target_by_name(ch->have->name);
        struct store *s = model_lun_find(t, (unsigned)ch->lun_have->number)->store;
        if (apply_lun_set(s, ch->lun_want, true, err, sizeof err) < 0)
            conf_report_add(&job->report, true, &ch->lun_want->pos, "%s", err);
    }
}

void
apply_undo(struct apply_job *job)
{
    give_up(job, false);
    for (unsigned i = 0; i < job->nslots; i++) {
        if (job->slots[i].store)
            apply_store_drop(job->slots[i].store);
    }
    free(job->slots);
    job->slots = NULL;
    job->nslots = 0;
    for (unsigned i = 0; i < job->nopened; i++)
        (void)portal_close_asked(job->opened[i]);
    forget(&job->opened, &job->nopened);
    reopen(job);
}

void
apply_prepare(struct apply_job *job, void (*then)(struct apply_job *job))
{
    static const struct conf_pos daemon_pos = {apply_running, 0, 0};
    struct isns_settings s;
    char err[512] = "";

    if (apply_isns(job->result, &s, err, sizeof err) < 0)
        conf_report_add(&job->report, true, &daemon_pos, "iSNS: %s", err);
    check_live(job);
    if (job->report.nerrors || open_portals(job) < 0) {
        job->end = APPLY_WRONG;
        apply_undo(job);
        then(job);
        return;
    }
    make_slots(job);
    open_stores(job, then);
}
