/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A logical unit's backing store is exchanged while the daemon runs: another `path` (another
 * medium, or none), or the same store opened with other options.  The new store is opened first
 * and gets a unit of its own, which then takes the place of the old one in all LUN maps at once
 * (lun_follow): whatever was under way ends with the store it began with.  Only the same path has
 * to be closed first, since a store is opened exclusively; when it cannot be opened anew, the old
 * one is opened again.  Called for the admin socket, one at a time.  Main only.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "target/apply_store.h"

#define RETRY_MS 50 /* a look at the old store is under way */

struct exchange {
    struct store *old; /* a user */
    struct store *new; /* a user; NULL: not made yet */
    struct conf_lun next;
    bool same_path;
    void (*done)(const char *err, void *arg);
    void *arg;
    char why[512]; /* "": it went well */
    struct worker_timer retry;
    void (*again)(struct exchange *x);
};

static void
end(struct exchange *x)
{
    worker_timer_stop(&x->retry);
    if (x->new)
        apply_store_drop(x->new);
    x->old->is_leaving = false; /* of no effect when it has left */
    apply_store_drop(x->old);
    conf_lun_fini(&x->next);
    x->done(x->why, x->arg);
    free(x);
}

static void
on_retry(struct worker_timer *t)
{
    struct exchange *x = container_of(t, struct exchange, retry);
    x->again(x);
}

static void
later(struct exchange *x, void (*again)(struct exchange *x))
{
    x->again = again;
    worker_timer_start_ms(&x->retry, RETRY_MS);
}

/* --- back to the old store ------------------------------------------------------------------- */

static void
on_old_back(struct store *s)
{
    struct exchange *x = s->arg;

    s->arg = NULL;
    if (s->result == 0)
        apply_store_probed(s, BE_EV_CAME);
    end(x);
}

static void
back(struct exchange *x)
{
    x->old->arg = x;
    if (!apply_store_reopen(x->old, on_old_back))
        later(x, back);
}

static void
fail(struct exchange *x)
{
    if (x->same_path)
        back(x);
    else
        end(x);
}

/* --- to the new one -------------------------------------------------------------------------- */

static void
on_published(void *arg)
{
    end(arg);
}

/* Every map that has the old unit. False: none has it any more. */
static bool
put_in_place(struct exchange *x)
{
    bool any = false;

    list_each(it, &model.targets) {
        struct model_target *t = container_of(it, struct model_target, link);
        list_each(jt, &t->luns) {
            struct model_lun *l = container_of(jt, struct model_lun, link);
            if (l->store != x->old)
                continue;
            l->store = x->new;
            x->new->users++;
            x->old->users--; /* never the last: the exchange has one */
            model_touch_luns(t);
            any = true;
        }
    }
    return any;
}

static void
on_new_open(struct store *s)
{
    struct exchange *x = s->arg;
    char err[512] = "";

    s->arg = NULL;
    if (s->result < 0)
        apply_store_why(s, x->why, sizeof x->why);
    else if (apply_store_make_lun(s) < 0)
        snprintf(x->why, sizeof x->why, "%s: block size and backing store do not fit",
                 s->conf->path);
    if (*x->why) {
        fail(x);
        return;
    }
    lun_follow(s->lun, x->old->lun);
    if (!put_in_place(x)) {
        end(x);
        return;
    }
    log_event(LL_NOTICE, LA_BACKEND, "exchanged from=%s to=%s", LOG_ESC(x->old->conf->path),
              LOG_ESC(s->conf->path));
    if (model_publish(on_published, x, err, sizeof err) < 0)
        log_abort("what was published before does not hold: %s", err);
}

static void
open_new(struct exchange *x)
{
    x->new = apply_store_new(&x->next, x->old->alone_id);
    x->new->arg = x;
    apply_store_open(x->new, on_new_open);
}

static void
on_old_closed(struct store *s)
{
    struct exchange *x = s->arg;

    s->arg = NULL;
    open_new(x);
}

static void
close_old(struct exchange *x)
{
    x->old->arg = x;
    if (!apply_store_close(x->old, on_old_closed))
        later(x, close_old);
}

/* --- what is allowed ------------------------------------------------------------------------- */

static bool
wants_exchange(const struct store *s, const struct conf_lun *next)
{
    struct be_info info = {.read_only = false};

    if (s->be)
        be_info(s->be, &info);
    return strcmp(next->path, s->conf->path) != 0 || strcmp(next->bsopts, s->conf->bsopts) != 0 ||
           next->direct != s->conf->direct ||
           (s->conf->read_only && !next->read_only && info.read_only);
}

static int
may_exchange(const struct store *s, const struct conf_lun *next, char *err, size_t errsize)
{
    struct lun_state st;

    lun_state(s->lun, &st);
    if (st.online && !st.removable) {
        snprintf(
            err, errsize,
            "the unit is online: another path, bsopts, bsoflags=direct or write access want it "
            "offline first (--params online=0)");
        return -EINVAL;
    }
    if (conf_bs_made(s->conf->bs)) {
        snprintf(err, errsize, "a unit of bs-type %s has no path and no options",
                 conf_bs_name(s->conf->bs));
        return -EINVAL;
    }
    list_each(it, model_stores_at(next->path)) {
        const struct store *o = container_of(it, struct store, path_link);
        if (o == s || o->is_gone || !next->path[0] || strcmp(o->conf->path, next->path) != 0)
            continue;
        if (next->allow_in_use && o->conf->allow_in_use)
            continue;
        snprintf(err, errsize, "%s is another logical unit already", next->path);
        return -EINVAL;
    }
    return apply_store_check(next, err, errsize);
}

void
apply_lun_change(struct store *s, const struct apply_kv *kv, unsigned n,
                 void (*done)(const char *err, void *arg), void *arg)
{
    struct conf_lun next;
    char err[512] = "";

    worker_assert_owner(model.main);
    if (!s->lun) {
        done("the logical unit is being opened", arg);
        return;
    }
    if (apply_lun_next(s, kv, n, &next, err, sizeof err) < 0) {
        done(err, arg);
        return;
    }
    bool anew = wants_exchange(s, &next);
    if (!anew || may_exchange(s, &next, err, sizeof err) < 0) {
        conf_lun_fini(&next);
        if (!anew)
            (void)apply_lun_update(s, kv, n, err, sizeof err);
        done(err, arg);
        return;
    }
    struct exchange *x = xcalloc(1, sizeof *x);
    x->old = s;
    s->users++;
    s->is_leaving = true;
    x->next = next;
    x->same_path = next.path[0] && strcmp(next.path, s->conf->path) == 0;
    x->done = done;
    x->arg = arg;
    worker_timer_init(&x->retry, model.main, on_retry);
    if (x->same_path)
        close_old(x);
    else
        open_new(x);
}
