/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logical units as the admin socket sees, makes and changes them.  Main only.
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

void
apply_lun_view(const struct store *s, struct apply_lun_view *v)
{
    const struct conf_lun *l = s->conf;
    *v = (struct apply_lun_view){.path = l->path,
                                 .bsopts = l->bsopts,
                                 .layers = l->layers,
                                 .type = s->type,
                                 .direct = l->direct,
                                 .sync = l->sync,
                                 .allow_in_use = l->allow_in_use,
                                 .in_flight = s->be ? be_in_flight(s->be) : 0};
}

static void
unknown_name(const char *name, bool live, char *err, size_t errsize)
{
    char hint[160];
    conf_lun_hint(name, live, hint, sizeof hint);
    snprintf(err, errsize, "unknown parameter: %.100s%s", name, hint);
}

static int
may_resize(const struct conf_lun *had, const struct conf_lun *next, char *err, size_t errsize)
{
    if (next->bs == CONF_BS_ZRAM && next->size > had->size)
        return 0;
    if (next->bs == CONF_BS_ZRAM)
        snprintf(err, errsize, "a zram unit only grows; it has %llu bytes",
                 (unsigned long long)had->size);
    else
        snprintf(err, errsize, "the size of a null device is set when the unit is made");
    return -EINVAL;
}

int
apply_lun_next(const struct store *s, const struct apply_kv *kv, unsigned n, struct conf_lun *next,
               char *err, size_t errsize)
{
    char warn[512] = "";
    int rc = 0;

    conf_lun_copy(next, s->conf);
    for (unsigned i = 0; i < n && rc == 0; i++) {
        rc = conf_lun_set(next, true, kv[i].name, kv[i].value, err, errsize, warn, sizeof warn);
        if (rc == -ENOENT)
            unknown_name(kv[i].name, true, err, errsize);
    }
    if (rc == 0)
        rc = conf_lun_check(next, err, errsize);
    if (rc == 0 && next->size != s->conf->size)
        rc = may_resize(s->conf, next, err, errsize);
    if (rc == 0 && next->bs == CONF_BS_ZRAM)
        rc = apply_store_check(next, err, errsize);
    if (rc == 0 && apply_lun_ident_taken(next, s, err, errsize))
        rc = -EINVAL;
    if (rc == 0)
        return 0;
    conf_lun_fini(next);
    return -EINVAL;
}

int
apply_lun_update(struct store *s, const struct apply_kv *kv, unsigned n, char *err, size_t errsize)
{
    struct conf_lun next, *old = s->conf;
    struct lun_conf c;

    worker_assert_owner(model.main);
    if (!s->lun) {
        snprintf(err, errsize, "the logical unit is being opened");
        return -EINVAL;
    }
    if (apply_lun_next(s, kv, n, &next, err, errsize) < 0)
        return -EINVAL;
    if (strcmp(next.path, old->path) != 0 || strcmp(next.bsopts, old->bsopts) != 0 ||
        next.direct != old->direct) {
        snprintf(err, errsize, "that wants the backing store opened anew");
        conf_lun_fini(&next);
        return -EINVAL;
    }
    s->conf = &next;
    apply_store_lun_conf(s, &c);
    s->conf = old;
    /* a read-only open cannot become writable by a word */
    if ((old->read_only && !next.read_only && apply_store_check_writable(s, err, errsize) < 0) ||
        lun_check(s->lun, &c, err, errsize) < 0 || apply_store_tune(s, &next, err, errsize) < 0 ||
        lun_update(s->lun, &c, err, errsize) < 0) {
        conf_lun_fini(&next);
        return -EINVAL;
    }
    conf_lun_fini(old);
    *old = next;
    return 0;
}

struct lun_making {
    void (*done)(struct store *s, const char *err, void *arg);
    void *arg;
};

static void
on_new_opened(struct store *s)
{
    struct lun_making *m = s->arg;
    char why[512] = "";

    s->arg = NULL;
    if (s->result < 0)
        apply_store_why(s, why, sizeof why);
    else if (apply_store_make_lun(s) < 0)
        snprintf(why, sizeof why, "%s: block size and backing store do not fit", s->conf->path);
    if (*why) {
        apply_store_drop(s);
        m->done(NULL, why, m->arg);
    } else {
        m->done(s, "", m->arg);
    }
    free(m);
}

/* The same store once more: one logical unit when the settings are the same. */
static struct store *
find_same(const struct conf_lun *l, char *err, size_t errsize)
{
    list_each(it, model_stores_at(l->path)) {
        struct store *s = container_of(it, struct store, path_link);
        if (s->is_gone || l->bs == CONF_BS_NULL || !l->path[0] ||
            strcmp(s->conf->path, l->path) != 0)
            continue;
        if (conf_lun_same(s->conf, l) && s->lun)
            return s;
        if (!(l->allow_in_use && s->conf->allow_in_use))
            snprintf(err, errsize, "%s is a logical unit already, with other settings", l->path);
    }
    return NULL;
}

bool
apply_lun_ident_taken(const struct conf_lun *l, const struct store *s, char *err, size_t errsize)
{
    list_each(it, &model.stores) {
        const struct store *other = container_of(it, struct store, link);
        const struct conf_lun *o = other->conf;
        const char *what = other == s || other->is_gone ? NULL : conf_lun_twin(l, o);
        if (what && strcmp(l->path, o->path) != 0) {
            snprintf(err, errsize, "another logical unit (%s) has the same %s", o->path, what);
            return true;
        }
    }
    return false;
}

/* As it would be if the configuration had it in this target. */
static int
fill_ids(struct conf_lun *l, const struct model_target *t, unsigned number, char *err,
         size_t errsize)
{
    unsigned ids = t->ids;
    int rc = 0;

    if (ids == MODEL_UNSET && model.conf)
        ids = model.conf->ids;
    l->number = (int)number;
    if (ids != CONF_UNSET)
        rc = conf_lun_ids(l, (enum conf_ids)ids, t->tid, t->given, err, errsize);
    l->number = -1;
    return rc;
}

int
apply_lun_new(const struct model_target *t, unsigned number, const struct apply_kv *kv, unsigned n,
              const char *alone_id, void (*done)(struct store *s, const char *err, void *arg),
              void *arg, char *err, size_t errsize)
{
    struct conf_lun l;
    char warn[512] = "";
    int rc = 0;

    worker_assert_owner(model.main);
    conf_lun_init(&l);
    for (unsigned i = 0; i < n && rc == 0; i++) {
        if (strcmp(kv[i].name, "backing-store") == 0) {
            free(l.path);
            l.path = xstrdup(kv[i].value);
            continue;
        }
        rc = conf_lun_set(&l, false, kv[i].name, kv[i].value, err, errsize, warn, sizeof warn);
        if (rc == -ENOENT)
            unknown_name(kv[i].name, false, err, errsize);
    }
    if (rc == 0)
        rc = conf_lun_check(&l, err, errsize);
    if (rc == 0)
        rc = fill_ids(&l, t, number, err, errsize);
    if (rc == 0)
        rc = apply_store_check(&l, err, errsize);
    struct store *same = NULL;
    if (rc == 0 && !apply_lun_ident_taken(&l, NULL, err, errsize))
        same = find_same(&l, err, errsize);
    if (rc < 0 || *err) {
        conf_lun_fini(&l);
        return -EINVAL;
    }
    if (same) {
        same->users++;
        conf_lun_fini(&l);
        done(same, "", arg);
        return 0;
    }
    struct store *s = apply_store_new(&l, alone_id);
    struct lun_making *m = xmalloc(sizeof *m);
    *m = (struct lun_making){done, arg};
    s->arg = m;
    conf_lun_fini(&l);
    apply_store_open(s, on_new_opened);
    return 0;
}
