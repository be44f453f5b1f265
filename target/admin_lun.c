/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs of logical units: new, delete, update; their part of `show`.  Main only.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "target/admin_priv.h"

#define KV_MAX 64

/* r->target and r->lun; false: answered. */
static bool
lun_arg(struct admin_req *r)
{
    bool bad;
    if (!admin_target(r))
        return false;
    if (!admin_uint(r, "lun", LUN_MAX_NUMBER, &r->lun, &bad)) {
        if (!bad)
            admin_fail(r, AE_INVALID, "\"lun\" is necessary");
        return false;
    }
    return true;
}

/* "params" as pairs; values borrowed from r->args. -1: answered. */
static int
params_arg(struct admin_req *r, struct apply_kv kv[KV_MAX])
{
    json_t *params = json_object_get(r->args, "params"), *v;
    const char *name;
    unsigned n = 0;

    if (params && !json_is_object(params)) {
        admin_fail(r, AE_INVALID, "\"params\" wants an object");
        return -1;
    }
    json_object_foreach(params, name, v)
    {
        if (!json_is_string(v) || json_string_length(v) > 4000 || n == KV_MAX ||
            strlen(json_string_value(v)) != json_string_length(v)) {
            admin_fail(r, AE_INVALID, "params: %.100s wants a string", name);
            return -1;
        }
        kv[n++] = (struct apply_kv){name, json_string_value(v)};
    }
    return (int)n;
}

/* --- new ------------------------------------------------------------------------------------- */

static void
on_made(struct store *s, const char *err, void *arg)
{
    struct admin_req *r = arg;

    if (!s) {
        admin_fail(r, AE_INVALID, "%s", err);
        return;
    }
    /* answered as failed already, or the target went meanwhile: nothing is left behind */
    if (admin_is_late(r) || model_target_find(r->tid) != r->target) {
        apply_store_drop(s);
        admin_fail(r, AE_NO_TARGET, NULL);
        return;
    }
    list_each(it, &r->target->luns) {
        if (container_of(it, struct model_lun, link)->store == s) {
            apply_store_drop(s);
            admin_fail(r, AE_INVALID, "it is a logical unit of this target already");
            return;
        }
    }
    model_lun_add(r->target, r->lun, s);
    apply_store_drop(s);
    log_event(LL_NOTICE, LA_ADMIN, "lun-new tid=%u lun=%u", r->tid, r->lun);
    admin_publish(r);
}

void
admin_lun_new(struct admin_req *r)
{
    struct apply_kv kv[KV_MAX];
    char alone[ISCSI_NAME_MAX + 32], err[512] = "";
    int n;

    if (!lun_arg(r))
        return;
    if (model_lun_find(r->target, r->lun)) {
        admin_fail(r, AE_LUN_EXISTS, NULL);
        return;
    }
    n = params_arg(r, kv);
    if (n < 0)
        return;
    snprintf(alone, sizeof alone, "%s %u", r->target->name, r->lun);
    if (apply_lun_new(r->target, r->lun, kv, (unsigned)n, alone, on_made, r, err, sizeof err) < 0)
        admin_fail(r, AE_INVALID, "%s", err);
}

/* --- delete ---------------------------------------------------------------------------------- */

static void
on_gone(void *arg)
{
    admin_ok(arg, NULL);
}

static void
on_unmapped(void *arg)
{
    struct admin_req *r = arg;
    apply_store_drop_then(r->data, on_gone, r);
}

/* r->target has the LUN and nothing speaks against it; else answered. */
static void
delete_now(struct admin_req *r)
{
    struct apply_lun_view v;
    struct lun_state st = {.prevent_removal = false};
    char err[512] = "";

    struct model_lun *l = model_lun_find(r->target, r->lun);
    if (!l) {
        if (r->lun == 0)
            admin_fail(r, AE_INVALID, "LUN 0 is the controller here");
        else
            admin_fail(r, AE_NO_LUN, NULL);
        return;
    }
    apply_lun_view(l->store, &v);
    if (l->store->lun)
        lun_state(l->store->lun, &st);
    bool force = json_is_true(json_object_get(r->args, "force"));
    if (!force && st.prevent_removal) {
        admin_fail(r, AE_REMOVAL_PREVENTED, NULL);
        return;
    }
    if (!force && v.in_flight) {
        admin_fail(r, AE_LUN_ACTIVE, NULL);
        return;
    }
    log_event(LL_NOTICE, LA_ADMIN, "lun-delete tid=%u lun=%u force=%d", r->tid, r->lun, force);
    r->data = l->store;
    model_lun_del(r->target, l);
    if (model_publish(on_unmapped, r, err, sizeof err) < 0)
        log_abort("what was published before does not hold: %s", err);
}

/* Who is logged in to the target, each with its address. */
static void
on_users(struct admin_req *r, json_t *sessions)
{
    char who[1024] = "";
    json_t *s;
    size_t i, n = 0;

    if (admin_is_late(r) || model_target_find(r->tid) != r->target) {
        admin_fail(r, AE_NO_TARGET, NULL); /* it went meanwhile */
        return;
    }
    json_array_foreach(sessions, i, s)
    {
        const json_t *c = json_array_get(json_object_get(s, "connections"), 0);
        const char *from = json_string_value(json_object_get(c, "address"));
        n += (size_t)snprintf(who + n, sizeof who - n, "%s%s%s%s", i ? ", " : "",
                              json_string_value(json_object_get(s, "initiator")),
                              from ? " at " : "", from ? from : "");
        if (n >= sizeof who)
            break;
    }
    if (*who && model_lun_find(r->target, r->lun))
        admin_fail(r, AE_LUN_ACTIVE, "in use by %s", who);
    else
        delete_now(r);
}

void
admin_lun_delete(struct admin_req *r)
{
    if (!lun_arg(r))
        return;
    if (json_is_true(json_object_get(r->args, "unused")) &&
        !json_is_true(json_object_get(r->args, "force")))
        admin_sess_gather(r, r->target->name, on_users);
    else
        delete_now(r);
}

/* --- update ---------------------------------------------------------------------------------- */

static void
on_updated(const char *err, void *arg)
{
    struct admin_req *r = arg;

    if (*err) {
        admin_fail(r, AE_INVALID, "%s", err);
        return;
    }
    json_t *params = json_object_get(r->args, "params"), *v;
    const char *name;
    json_object_foreach(params, name, v)
        log_event(LL_NOTICE, LA_ADMIN, "lun-update tid=%u lun=%u name=%s value=%s", r->tid, r->lun,
                  LOG_ESC(name), LOG_ESC(json_string_value(v)));
    admin_ok(r, NULL);
}

/* The medium goes out, by whatever way: PREVENT ALLOW MEDIUM REMOVAL speaks against it. */
static bool
takes_medium(const struct apply_kv *kv, int n)
{
    for (int i = 0; i < n; i++) {
        const char *name = kv[i].name, *value = kv[i].value;
        if (strcmp(name, "path") == 0 ||
            (strcmp(name, "online") == 0 &&
             (strcmp(value, "0") == 0 || strcasecmp(value, "no") == 0 ||
              strcasecmp(value, "off") == 0 || strcasecmp(value, "false") == 0)))
            return true;
    }
    return false;
}

/* A store is one logical unit, whatever targets have it. */
static void
touch_sharers(struct admin_req *r, const struct store *s)
{
    list_each(it, &model.targets) {
        const struct model_target *t = container_of(it, struct model_target, link);
        list_each(l, &t->luns) {
            if (container_of(l, struct model_lun, link)->store == s)
                admin_touch(r, t->name);
        }
    }
}

void
admin_lun_update(struct admin_req *r)
{
    struct apply_kv kv[KV_MAX];
    struct lun_state st = {.prevent_removal = false};
    int n;

    if (!lun_arg(r))
        return;
    struct model_lun *l = model_lun_find(r->target, r->lun);
    if (!l) {
        admin_fail(r, AE_NO_LUN, NULL);
        return;
    }
    n = params_arg(r, kv);
    if (n < 0)
        return;
    if (l->store->lun)
        lun_state(l->store->lun, &st);
    if (st.removable && st.prevent_removal && takes_medium(kv, n)) {
        admin_fail(r, AE_REMOVAL_PREVENTED, NULL);
        return;
    }
    touch_sharers(r, l->store);
    apply_lun_change(l->store, kv, (unsigned)n, on_updated, r);
}

/* --- show ------------------------------------------------------------------------------------ */

static json_t *
hex_json(const uint8_t *p, size_t n)
{
    char text[2 * 16 + 1] = "";
    for (size_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", p[i]);
    return json_string(text);
}

static json_t *
text_json(const char *s)
{
    json_t *j = json_string(s);
    return j ? j : json_string("?"); /* a path that is no UTF-8 */
}

#define SHARERS_MAX 16u

/* Initiators that may write it side by side: see scsi/lun_share.c. */
static json_t *
sharers_json(struct lun *lun)
{
    char names[SHARERS_MAX][224];
    json_t *a = json_array();

    for (unsigned i = 0, n = lun_sharers(lun, names, SHARERS_MAX); i < n; i++)
        json_array_append_new(a, text_json(names[i]));
    return a;
}

json_t *
admin_lun_json(const struct model_lun *l)
{
    json_t *o = json_object();
    struct apply_lun_view v;
    struct lun_state st = {.block_size = 512, .online = false};

    apply_lun_view(l->store, &v);
    snprintf(st.reason, sizeof st.reason, "being opened");
    json_object_set_new(o, "lun", json_integer(l->number));
    json_object_set_new(o, "type", json_string("disk"));
    if (l->store->lun) {
        const struct lun_conf *c = lun_conf(l->store->lun); /* only main changes it */
        lun_state(l->store->lun, &st);
        json_object_set_new(o, "shared", sharers_json(l->store->lun));
        json_object_set_new(o, "scsi_id", text_json(c->ident.t10_id));
        json_object_set_new(o, "scsi_sn", text_json(c->ident.serial));
        json_object_set_new(o, "naa", hex_json(c->ident.naa, c->ident.naa_len));
        json_object_set_new(o, "eui", hex_json(c->ident.eui, c->ident.eui_len));
        json_object_set_new(o, "vendor_id", text_json(c->vendor_id));
        json_object_set_new(o, "product_id", text_json(c->product_id));
        json_object_set_new(o, "product_rev", text_json(c->product_rev));
    }
    json_object_set_new(o, "blocks", json_integer((json_int_t)st.nblocks));
    json_object_set_new(o, "block_size", json_integer(st.block_size));
    json_object_set_new(o, "ready", json_boolean(st.ready));
    json_object_set_new(o, "reason", text_json(st.reason));
    json_object_set_new(o, "online", json_boolean(st.online));
    json_object_set_new(o, "removable", json_boolean(st.removable));
    json_object_set_new(o, "prevent_removal", json_boolean(st.prevent_removal));
    json_object_set_new(o, "readonly", json_boolean(st.read_only));
    json_object_set_new(o, "swp", json_boolean(st.swp));
    json_object_set_new(o, "thin", json_boolean(st.thin));
    json_object_set_new(o, "write_cache", json_boolean(st.wce));
    json_object_set_new(o, "reserved", json_boolean(st.reserved));
    json_object_set_new(o, "volatile", json_boolean(st.is_volatile));
    json_object_set_new(o, "awaits_ack", json_boolean(st.awaits_ack));
    json_object_set_new(o, "flush_failed", json_boolean(st.flush_failed));
    json_object_set_new(o, "nexuses", json_integer(st.itns));
    json_object_set_new(o, "in_flight", json_integer(v.in_flight));
    json_object_set_new(o, "bs_type", json_string(v.type));
    json_object_set_new(o, "path", text_json(v.path));
    json_object_set_new(o, "bsopts", text_json(v.bsopts));
    json_object_set_new(o, "layers", text_json(v.layers));
    json_object_set_new(o, "sync", json_boolean(v.sync));
    json_object_set_new(o, "direct", json_boolean(v.direct));
    return o;
}
