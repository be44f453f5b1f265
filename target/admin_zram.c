/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs of units in compressed memory: their counters, a piece of background work; and of
 * volatile units: that somebody knows them to be empty.  Main only.
 */
#include "config.h"

#include "target/admin_priv.h"
#include "target/apply_zram.h"

#define WORK_MS 1000u /* one request; who wants more asks again */

/* {"group": {"name": value}} */
static void
on_counter(void *arg, const char *group, const char *name, uint64_t value)
{
    json_t *o = arg, *g = json_object_get(o, group);

    if (!g) {
        g = json_object();
        json_object_set_new(o, group, g);
    }
    json_object_set_new(g, name, json_integer((json_int_t)value));
}

static json_t *
unit_json(const struct model_target *t, const struct model_lun *l)
{
    const struct store *s = l->store;
    struct apply_zram_view v;
    struct lun_state st = {.block_size = 0};
    json_t *o = json_object();

    if (s->lun)
        lun_state(s->lun, &st);
    apply_zram_view(s, &v);
    json_object_set_new(o, "target", json_string(t->name));
    json_object_set_new(o, "tid", json_integer(t->tid));
    json_object_set_new(o, "lun", json_integer(l->number));
    json_object_set_new(o, "name", json_string(v.name));
    json_object_set_new(o, "algorithm", json_string(v.algorithm));
    json_object_set_new(o, "level", json_integer(v.level));
    json_object_set_new(o, "chunk_size", json_integer(v.chunk_size));
    json_object_set_new(o, "disksize",
                        json_integer((json_int_t)(st.nblocks * (uint64_t)st.block_size)));
    json_object_set_new(o, "mem_limit", json_integer((json_int_t)v.mem_limit));
    json_object_set_new(o, "volatile", json_boolean(st.is_volatile));
    json_object_set_new(o, "awaits_ack", json_boolean(st.awaits_ack));
    apply_zram_counters(s, on_counter, o);
    return o;
}

void
admin_zram_show(struct admin_req *r)
{
    json_t *units = json_array();

    list_each(it, &model.targets) {
        const struct model_target *t = container_of(it, struct model_target, link);
        list_each(lt, &t->luns) {
            const struct model_lun *l = container_of(lt, struct model_lun, link);
            if (apply_is_zram(l->store))
                json_array_append_new(units, unit_json(t, l));
        }
    }
    admin_ok(r, json_pack("{so sI}", "units", units, "mem_limit", (json_int_t)apply_zram_limit()));
}

/* r->target, r->lun and the unit; NULL: answered. */
static const struct model_lun *
lun_arg(struct admin_req *r)
{
    bool bad;

    if (!admin_target(r))
        return NULL;
    if (!admin_uint(r, "lun", LUN_MAX_NUMBER, &r->lun, &bad)) {
        if (!bad)
            admin_fail(r, AE_INVALID, "\"lun\" is necessary");
        return NULL;
    }
    const struct model_lun *l = model_lun_find(r->target, r->lun);
    if (!l)
        admin_fail(r, AE_NO_LUN, NULL);
    return l;
}

void
admin_lun_acknowledge(struct admin_req *r)
{
    const struct model_lun *l = lun_arg(r);

    if (!l)
        return;
    if (!l->store->lun || !lun_acknowledge(l->store->lun)) {
        admin_fail(r, AE_INVALID, "the logical unit does not wait for that");
        return;
    }
    log_event(LL_NOTICE, LA_ADMIN, "lun-acknowledged tid=%u lun=%u", r->tid, r->lun);
    admin_ok(r, NULL);
}

/* --- work ------------------------------------------------------------------------------------ */

static void
on_worked(void *arg, const char *err, const struct apply_zram_work *w)
{
    struct admin_req *r = arg;

    if (*err)
        admin_fail(r, AE_INVALID, "%s", err);
    else
        admin_ok(r, json_pack("{sb sI sI sI}", "again", w->again, "seen", (json_int_t)w->seen,
                              "done", (json_int_t)w->done, "gained", (json_int_t)w->gained));
}

/* The unit, in compressed memory; NULL: answered. */
static const struct model_lun *
zram_arg(struct admin_req *r)
{
    const struct model_lun *l = lun_arg(r);

    if (l && (!l->store->be || !apply_is_zram(l->store))) {
        admin_fail(r, AE_INVALID, "the logical unit is not in compressed memory");
        return NULL;
    }
    return l;
}

void
admin_zram_compact(struct admin_req *r)
{
    const struct model_lun *l = zram_arg(r);

    if (l)
        apply_zram_work(l->store, &(struct apply_zram_work){.max_ms = WORK_MS}, on_worked, r);
}

void
admin_zram_recompress(struct admin_req *r)
{
    const struct model_lun *l = zram_arg(r);
    struct apply_zram_work work = {.max_ms = WORK_MS};
    bool bad;

    if (!l)
        return;
    work.recompress = admin_str(r, "algorithm", &bad);
    if (!work.recompress) {
        if (!bad)
            admin_fail(r, AE_INVALID, "\"algorithm\" is necessary");
        return;
    }
    work.huge = json_is_true(json_object_get(r->args, "huge"));
    work.idle = admin_uint(r, "idle", 1u << 30, &work.idle_s, &bad);
    if (!bad)
        apply_zram_work(l->store, &work, on_worked, r);
}
