/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * I_T nexuses: what a session is to the room, with one I_T_L nexus a mapped unit.  Owner: the
 * session's worker.  An itn outlives its session while commands of it are with a backend.
 */
#include "scsi/priv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/worker.h"

/* --- I_T_L nexuses --------------------------------------------------------------------------- */

static struct nexus *
nexus_new(struct itn *itn, const struct lun_map_entry *e, unsigned ua)
{
    struct nexus *nx = xcalloc(1, sizeof *nx);

    nx->itn = itn;
    nx->w = itn->w;
    nx->number = e->number;
    nx->lun = lun_get(e->lun);
    list_init(&nx->tasks);
    list_init(&nx->ordered);
    atomic_init(&nx->ua, ua | lun_volatile_ua(e->lun, itn));
    pthread_mutex_lock(&nx->lun->lock);
    nx->gen = atomic_load(&nx->lun->generation) - 1; /* no verdict yet */
    list_add_tail(&nx->lun->nexuses, &nx->on_lun);
    pthread_mutex_unlock(&nx->lun->lock);
    lun_share_note(nx->lun, nx);
    return nx;
}

/* The unit was exchanged: what the old nexus had on it goes on.  Both locks in turn, never both. */
static struct nexus *
nexus_follow(struct itn *itn, const struct lun_map_entry *e, struct nexus *had)
{
    struct nexus *nx = nexus_new(itn, e, e->lun->first_ua | atomic_load(&had->ua));

    pthread_mutex_lock(&had->lun->lock);
    bool reserved = had->lun->reserved_by == had, prevent = had->prevent;
    pthread_mutex_unlock(&had->lun->lock);
    nx->stat = had->stat;
    memset(&had->stat, 0, sizeof had->stat);
    pthread_mutex_lock(&nx->lun->lock);
    if (reserved && nx->lun->reserved_by == NULL) {
        nx->lun->reserved_by = nx;
        atomic_fetch_add_explicit(&nx->lun->generation, 1, memory_order_release);
    }
    nx->prevent = prevent;
    nx->lun->prevent += prevent;
    pthread_mutex_unlock(&nx->lun->lock);
    return nx;
}

/* Stays on lun->nexuses until its last command is over: a reset must find those too. */
static void
nexus_free(struct nexus *nx)
{
    struct lun *lun = nx->lun;

    pthread_mutex_lock(&lun->lock);
    list_del(&nx->on_lun);
    scsi_stat_add(&lun->past, &nx->stat);
    pthread_mutex_unlock(&lun->lock);
    lun_put(lun);
    free(nx);
}

void
nexus_task_gone(struct nexus *nx)
{
    nx->ntasks--;
    if (nx->dead && nx->ntasks == 0)
        nexus_free(nx);
}

/* The buffers of a command whose session is going away: no longer the session's bytes, but the
 * worker's, as far as it has room. */
static void
budget_move(struct scsi_cmd *cmd)
{
    struct budget *to = worker_budget(cmd->w);

    if (cmd->budgeted == 0 || cmd->held_from == NULL || cmd->held_from == to)
        return;
    budget_give(cmd->held_from, cmd->budgeted);
    cmd->held_from = budget_take(to, cmd->budgeted) ? to : NULL;
}

/* The session stays: nobody may wait in vain for what this command had to answer. */
static void
lose(struct scsi_cmd *cmd)
{
    if (cmd->phase == PH_ENDING || cmd->phase == PH_DONE || cmd->aborted)
        return; /* its answer is on its way, or it has none */
    if (cmd->xport->lost != NULL)
        cmd->xport->lost(cmd);
    scsi_abort(cmd);
}

static void
abort_all(struct list *tasks, bool session_dies)
{
    list_each(it, tasks) { /* they end later: the list does not change under us */
        struct scsi_cmd *cmd = container_of(it, struct scsi_cmd, link);
        if (!session_dies) {
            lose(cmd);
            continue;
        }
        scsi_abort(cmd);
        budget_move(cmd);
        if (cmd->phase == PH_IO && !cmd->is_orphan) {
            cmd->is_orphan = true;
            worker_orphan_add(cmd->w, &cmd->parkq);
        }
    }
}

static void
nexus_kill(struct nexus *nx, bool session_dies)
{
    pthread_mutex_lock(&nx->lun->lock);
    nx->dead = true;
    lun_forget_nexus(nx->lun, nx);
    pthread_mutex_unlock(&nx->lun->lock);
    abort_all(&nx->tasks, session_dies);
    if (nx->ntasks == 0)
        nexus_free(nx);
}

struct nexus *
itn_nexus(const struct itn *itn, uint16_t number)
{
    unsigned lo = 0, hi = itn->nnx;

    while (lo < hi) {
        unsigned mid = lo + (hi - lo) / 2;
        if (itn->nx[mid]->number < number)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < itn->nnx && itn->nx[lo]->number == number ? itn->nx[lo] : NULL;
}

/* --- I_T nexuses ----------------------------------------------------------------------------- */

/* Takes over from the nexuses there are what the new map keeps.  True: it has other units than
 * before, so that the inventory has changed; exchanged ones are no others. */
static bool
apply_map(struct itn *itn, struct lun_map *map, unsigned new_ua)
{
    unsigned n = lun_map_count(map), oldn = itn->nnx;
    struct nexus **old = itn->nx;
    struct nexus **nx = xcalloc(n + 1, sizeof *nx);
    bool changed = n != oldn;

    for (unsigned i = 0; i < n; i++) {
        const struct lun_map_entry *e = lun_map_at(map, i);
        struct nexus *have = itn_nexus(itn, e->number);
        if (have != NULL && have->lun == e->lun) {
            nx[i] = have;
        } else if (have != NULL && have->lun->id == e->lun->follows) {
            nx[i] = nexus_follow(itn, e, have);
        } else {
            nx[i] = nexus_new(itn, e, new_ua);
            changed = true;
        }
    }
    itn->nx = nx;
    itn->nnx = n;
    for (unsigned i = 0; i < oldn; i++)
        if (itn_nexus(itn, old[i]->number) != old[i])
            nexus_kill(old[i], false);
    free(old);
    return changed;
}

struct itn *
itn_new(struct worker *w, const struct itn_params *p)
{
    worker_assert_owner(w);
    struct itn *itn = xcalloc(1, sizeof *itn);

    itn->w = w;
    itn->refs = 1;
    itn->initiator_name = xstrdup(p->initiator_name != NULL ? p->initiator_name : "");
    itn->target_name = xstrdup(p->target_name != NULL ? p->target_name : "");
    memcpy(itn->isid, p->isid, sizeof itn->isid);
    itn->tpgt = p->tpgt;
    itn->queries = p->queries;
    itn->budget = p->budget != NULL ? p->budget : worker_budget(w);
    itn->map = lun_map_get(p->map);
    list_init(&itn->loose);
    (void)apply_map(itn, itn->map, 1u << UA_POWER_ON);
    return itn;
}

void
itn_set_map(struct itn *itn, struct lun_map *map)
{
    worker_assert_owner(itn->w);
    struct lun_map *old = itn->map;

    itn->map = lun_map_get(map);
    bool changed = apply_map(itn, map, 1u << UA_POWER_ON);
    for (unsigned i = 0; changed && i < itn->nnx; i++)
        ua_set(itn->nx[i], UA_LUNS_CHANGED);
    lun_map_put(old);
}

void
itn_unref(struct itn *itn)
{
    assert(itn->refs > 0);
    if (--itn->refs != 0)
        return;
    lun_map_put(itn->map);
    free(itn->nx);
    free(itn->initiator_name);
    free(itn->target_name);
    free(itn);
}

void
itn_free(struct itn *itn)
{
    worker_assert_owner(itn->w);
    unsigned n = itn->nnx;

    itn->dead = true;
    itn->nnx = 0;
    for (unsigned i = 0; i < n; i++)
        nexus_kill(itn->nx[i], true);
    abort_all(&itn->loose, true);
    itn->budget = worker_budget(itn->w);
    itn_unref(itn);
}

void
scsi_stat_add(struct scsi_stat *to, const struct scsi_stat *s)
{
    to->rd_subm_bytes += s->rd_subm_bytes;
    to->rd_subm += s->rd_subm;
    to->rd_done_bytes += s->rd_done_bytes;
    to->rd_done += s->rd_done;
    to->wr_subm_bytes += s->wr_subm_bytes;
    to->wr_subm += s->wr_subm;
    to->wr_done_bytes += s->wr_done_bytes;
    to->wr_done += s->wr_done;
    to->errs += s->errs;
}

bool
itn_stat(const struct itn *itn, unsigned i, uint16_t *number, struct scsi_stat *out)
{
    worker_assert_owner(itn->w);
    if (i >= itn->nnx)
        return false;
    *number = itn->nx[i]->number;
    *out = itn->nx[i]->stat;
    return true;
}

unsigned
itn_active(const struct itn *itn)
{
    return itn->active;
}
