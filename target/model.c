/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Targets, access rules and LUN lists as main keeps them, and their publication.  Main only.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/netif.h"
#include "base/pool.h"
#include "target/model.h"
#include "target/redirect.h"

struct model model;
void (*model_published)(void);

void
model_init(struct worker *main_worker, struct cstore *cs)
{
    list_init(&model.targets);
    list_init(&model.accounts);
    model_auth_init(&model.auth, true);
    model_auth_init(&model.discovery, false);
    list_init(&model.stores);
    for (unsigned i = 0; i < MODEL_BUCKETS; i++) {
        list_init(&model.by_path[i]);
        list_init(&model.by_ident[i]);
    }
    model.nop_interval_s = model.nop_count = MODEL_UNSET;
    model.main = main_worker;
    model.cstore = cs;
}

static unsigned
bucket(const char *text)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (const char *p = text; *p != '\0'; p++)
        h = (h ^ (uint8_t)*p) * 16777619u;
    return h % MODEL_BUCKETS;
}

struct list *
model_stores_at(const char *path)
{
    return &model.by_path[bucket(path)];
}

struct list *
model_stores_like(const char *identity)
{
    return &model.by_ident[bucket(identity)];
}

struct model_target *
model_target_find(unsigned tid)
{
    list_each(it, &model.targets) {
        struct model_target *t = container_of(it, struct model_target, link);
        if (t->tid == tid)
            return t;
    }
    return NULL;
}

struct model_target *
model_target_by_name(const char *name)
{
    list_each(it, &model.targets) {
        struct model_target *t = container_of(it, struct model_target, link);
        if (strcmp(t->name, name) == 0)
            return t;
    }
    return NULL;
}

unsigned
model_tid_free(void)
{
    unsigned tid = 1;
    list_each(it, &model.targets) /* sorted */
    {
        const struct model_target *t = container_of(it, struct model_target, link);
        if (t->tid == tid)
            tid++;
    }
    return tid;
}

static void
link_target(struct model_target *t)
{
    struct list *before = &model.targets;
    list_each(it, &model.targets) {
        if (container_of(it, struct model_target, link)->tid > t->tid) {
            before = it;
            break;
        }
    }
    list_add_tail(before, &t->link); /* in front of `before` */
}

struct model_target *
model_target_new(unsigned tid, const char *name)
{
    struct model_target *t = xcalloc(1, sizeof *t);

    worker_assert_owner(model.main);
    t->tid = tid;
    snprintf(t->name, sizeof t->name, "%s", name);
    memcpy(t->given, t->name, sizeof t->given);
    t->nop_interval_s = t->nop_count = 0xffffffffu;
    t->max_cmds = MODEL_MAX_CMDS;
    t->ids = MODEL_UNSET;
    keys_defaults(&t->keys);
    model_auth_init(&t->auth, false);
    list_init(&t->rules);
    list_init(&t->luns);
    link_target(t);
    return t;
}

void
model_target_renumber(struct model_target *t, unsigned tid)
{
    list_del(&t->link);
    t->tid = tid;
    link_target(t);
    model_touch(t);
}

void
model_target_free(struct model_target *t)
{
    worker_assert_owner(model.main);
    list_del(&t->link);
    while (!list_is_empty(&t->rules))
        model_rule_del(t, list_first(&t->rules, struct model_rule, link));
    while (!list_is_empty(&t->luns)) {
        struct model_lun *l = list_first(&t->luns, struct model_lun, link);
        struct store *s = l->store;
        list_del(&l->link);
        free(l);
        apply_store_drop(s);
    }
    model_auth_fini(&t->auth);
    model_touch_luns(t);
    isns_dd_put(t->dd);
    free(t->binds);
    redirect_put(t->redirect);
    free(t->drain);
    free(t);
}

unsigned
model_nop_interval_s(void)
{
    return model.nop_interval_s != MODEL_UNSET ? model.nop_interval_s : tgt_opts.nop_interval_s;
}

unsigned
model_nop_count(void)
{
    return model.nop_count != MODEL_UNSET ? model.nop_count : tgt_opts.nop_count;
}

void
model_touch(struct model_target *t)
{
    node_put(t->node);
    t->node = NULL;
}

void
model_touch_luns(struct model_target *t)
{
    lun_map_put(t->map);
    t->map = NULL;
    model_touch(t);
}

struct model_rule *
model_rule_find(const struct model_target *t, const char *text, enum model_rule_kind kind)
{
    list_each(it, &t->rules) {
        struct model_rule *r = container_of(it, struct model_rule, link);
        if (r->kind == kind && strcasecmp(r->text, text) == 0)
            return r;
    }
    return NULL;
}

void
model_rule_add(struct model_target *t, const char *text, enum model_rule_kind kind)
{
    struct model_rule *r = xcalloc(1, sizeof *r);
    r->text = xstrdup(text);
    r->kind = kind;
    list_add_tail(&t->rules, &r->link);
    model_touch(t);
}

void
model_rule_del(struct model_target *t, struct model_rule *r)
{
    list_del(&r->link);
    free(r->text);
    free(r);
    model_touch(t);
}

/* --- portals it is bound to ------------------------------------------------------------------ */

struct portal_id *
model_via_find(const struct model_target *t, const struct portal_id *id)
{
    for (unsigned i = 0; i < t->nbinds; i++) {
        struct portal_id *b = &t->binds[i];
        if (strcmp(b->name, id->name) == 0 && (*id->name || b->tpgt == id->tpgt))
            return b;
    }
    return NULL;
}

void
model_via_add(struct model_target *t, const struct portal_id *id)
{
    if (model_via_find(t, id))
        return;
    t->binds = xrealloc(t->binds, (t->nbinds + 1) * sizeof *t->binds);
    t->binds[t->nbinds++] = *id;
    model_touch(t);
}

void
model_via_del(struct model_target *t, struct portal_id *b)
{
    *b = t->binds[--t->nbinds];
    model_touch(t);
}

struct model_lun *
model_lun_find(const struct model_target *t, unsigned number)
{
    list_each(it, &t->luns) {
        struct model_lun *l = container_of(it, struct model_lun, link);
        if (l->number == number)
            return l;
    }
    return NULL;
}

struct model_lun *
model_lun_add(struct model_target *t, unsigned number, struct store *s)
{
    struct model_lun *l = xcalloc(1, sizeof *l);
    struct list *after = t->luns.prev; /* mostly they come in order */

    l->number = number;
    l->store = s;
    s->users++;
    while (after != &t->luns && container_of(after, struct model_lun, link)->number > number)
        after = after->prev;
    list_add_head(after, &l->link);
    model_touch_luns(t);
    return l;
}

void
model_lun_del(struct model_target *t, struct model_lun *l)
{
    list_del(&l->link);
    free(l);
    model_touch_luns(t);
}

/* --- publication ----------------------------------------------------------------------------- */

static struct acl *
make_acl(const struct model_target *t, char *err, size_t errsize)
{
    const char **texts[RULE_KINDS];
    unsigned n = 0, have[RULE_KINDS] = {0};
    list_each(it, &t->rules)
        n++;
    for (unsigned k = 0; k < RULE_KINDS; k++)
        texts[k] = xcalloc(n + 1, sizeof *texts[k]);
    list_each(it, &t->rules) {
        const struct model_rule *r = container_of(it, struct model_rule, link);
        texts[r->kind][have[r->kind]++] = r->text;
    }
    const struct acl_rules rules = {.addrs = texts[RULE_ADDRESS],
                                    .names = texts[RULE_NAME],
                                    .local = texts[RULE_LOCAL],
                                    .files = model.files,
                                    .target = t->name};
    struct acl *a = acl_make(&rules, err, errsize, NULL, 0);
    for (unsigned k = 0; k < RULE_KINDS; k++)
        free(texts[k]);
    return a;
}

static struct lun_map *
make_map(const struct model_target *t)
{
    unsigned n = 0;
    list_each(it, &t->luns)
        n++;
    struct lun_map_entry *e = xcalloc(n + 1, sizeof *e);
    n = 0;
    list_each(it, &t->luns) {
        const struct model_lun *l = container_of(it, struct model_lun, link);
        if (l->store->lun)
            e[n++] = (struct lun_map_entry){(uint16_t)l->number, l->store->lun};
    }
    struct lun_map *m = lun_map_new(e, n);
    free(e);
    return m;
}

static struct drain *
drain_copy(const struct drain *d)
{
    struct drain *n;
    if (!d)
        return NULL;
    n = xmalloc(sizeof *n);
    *n = *d;
    return n;
}

static struct tgt_node *
make_node(struct model_target *t, char *err, size_t errsize)
{
    struct acl *acl = make_acl(t, err, errsize);
    if (!acl)
        return NULL;
    struct tgt_node *n = xcalloc(1, sizeof *n);
    ref_init(&n->ref);
    n->tid = t->tid;
    memcpy(n->name, t->name, sizeof n->name);
    memcpy(n->alias, t->alias, sizeof n->alias);
    n->binds = xcalloc(t->nbinds + 1, sizeof *n->binds);
    n->nbinds = t->nbinds;
    if (t->nbinds != 0)
        memcpy(n->binds, t->binds, t->nbinds * sizeof *n->binds);
    n->offline = t->offline || model.offline;
    n->hidden = t->hidden;
    n->nop_interval_s = t->nop_interval_s != MODEL_UNSET ? t->nop_interval_s : model.nop_interval_s;
    n->nop_count = t->nop_count != MODEL_UNSET ? t->nop_count : model.nop_count;
    n->max_cmds = t->max_cmds;
    n->keys = t->keys;
    n->acl = acl;
    n->redirect = t->redirect ? redirect_get(t->redirect) : NULL;
    n->drain = drain_copy(t->drain ? t->drain : model.drain);
    if (model.dd_only)
        n->dd = t->dd ? isns_dd_get(t->dd) : isns_dd_new(NULL, 0);
    n->accounts = model_auth_set(&t->auth);
    if (!t->map)
        t->map = make_map(t);
    n->map = lun_map_get(t->map);
    return n;
}

static int
node_order(const void *a, const void *b)
{
    struct tgt_node *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

int
model_publish(void (*done)(void *arg), void *arg, char *err, size_t errsize)
{
    struct node_set *set;
    unsigned n = 0;

    worker_assert_owner(model.main);
    list_each(it, &model.targets) {
        struct model_target *t = container_of(it, struct model_target, link);
        n++;
        if (!t->node && !(t->node = make_node(t, err, errsize)))
            return -EINVAL;
    }
    set = xcalloc(1, sizeof *set);
    ref_init(&set->ref);
    set->nodes = xcalloc(n + 1, sizeof *set->nodes);
    list_each(it, &model.targets)
        set->nodes[set->n++] = node_get(container_of(it, struct model_target, link)->node);
    if (set->n)
        qsort(set->nodes, set->n, sizeof *set->nodes, node_order);
    unsigned np = portal_list(NULL, 0);
    set->portals = xcalloc(np + 1, sizeof *set->portals);
    unsigned got = portal_list(set->portals, np);
    set->nportals = got < np ? got : np;
    set->discovery = model_auth_set(&model.discovery);
    set->filter = model.filter;
    node_publish(set, done, arg);
    if (model_published)
        model_published();
    return 0;
}

/* --- interfaces ------------------------------------------------------------------------------ */

static struct netif_watch ifaces;

static void
on_ifaces_changed(struct netif_watch *watch)
{
    char err[512] = "";
    unsigned n = 0;

    (void)watch;
    list_each(it, &model.targets) {
        struct model_target *t = container_of(it, struct model_target, link);
        bool names_one = false;
        list_each(k, &t->rules) {
            const struct model_rule *r = container_of(k, struct model_rule, link);
            names_one = names_one || (r->kind != RULE_NAME && acl_is_iface(r->text));
        }
        if (names_one) {
            model_touch(t);
            n++;
        }
    }
    if (n == 0)
        return;
    log_event(LL_INFO, LA_NET, "interfaces-changed targets=%u", n);
    if (model_publish(NULL, NULL, err, sizeof err) < 0)
        log_abort("what was published before does not hold: %s", err);
}

void
model_ifaces_start(void)
{
    netif_watch_start(&ifaces, on_ifaces_changed);
    on_ifaces_changed(&ifaces); /* since the configuration was read */
}

void
model_ifaces_stop(void)
{
    netif_watch_stop(&ifaces);
}
