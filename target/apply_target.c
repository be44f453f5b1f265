/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of a configuration -> model: a target's (but for its LUNs), the daemon's, and those of a
 * logical unit that can change while it lives.  At the start and at every change; what is set here
 * was judged before.  Main only.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/backend.h"
#include "base/pool.h"
#include "target/apply.h"
#include "target/apply_access.h"
#include "target/apply_store.h"
#include "target/chap.h"
#include "target/isns.h"
#include "target/keys.h"
#include "target/redirect.h"

/* --- accounts -------------------------------------------------------------------------------- */

static struct model_account *
get_account(const struct conf_account *ca)
{
    char err[256];
    const char **names = xcalloc(ca->nnames + 1, sizeof *names);

    for (unsigned k = 0; k < ca->nnames; k++)
        names[k] = ca->names[k];
    struct model_account *ma = model_account_get(ca->user, ca->secret, names, err, sizeof err);
    free(names);
    if (!ma)
        log_abort("checked configuration does not hold: %s", err);
    return ma;
}

static void
bind_all(struct model_auth *where, const struct conf_accounts *list)
{
    for (unsigned i = 0; i < list->n; i++)
        model_bind_add(where, get_account(&list->v[i]), list->v[i].outgoing);
}

/* What is the same stays the same account: a login that is under way goes on. */
static void
set_auth(struct model_auth *where, const struct conf_accounts *list, unsigned algs, unsigned sha1_7)
{
    struct conf_accounts now = {.n = 0};

    bool same = where->algs == algs && where->sha1_7 == sha1_7;
    where->algs = algs; /* conf/ numbers them as CHAP_ALG_* does */
    where->sha1_7 = sha1_7;
    apply_view_accounts(&now, where);
    if (!apply_same_accounts(&now, list)) {
        same = false;
        struct list old;
        list_init(&old);
        while (!list_is_empty(&where->binds))
            list_add_tail(&old, list_pop(&where->binds));
        bind_all(where, list);
        while (!list_is_empty(&old)) {
            struct model_bind *b = container_of(list_pop(&old), struct model_bind, link);
            bool again = false; /* one account in both directions */
            list_each(it, &old)
                again |= container_of(it, struct model_bind, link)->ma == b->ma;
            if (!again)
                model_account_unused(b->ma);
            free(b);
        }
    }
    conf_accounts_clear(&now);
    if (!same)
        model_auth_touch(where);
}

void
apply_auth_clear(struct model_auth *where)
{
    const struct conf_accounts none = {.n = 0};
    set_auth(where, &none, where->algs, where->sha1_7);
}

void
apply_unbound_set(const struct conf_accounts *list)
{
    struct conf_accounts now = {.n = 0};

    apply_view_unbound(&now);
    if (!apply_same_accounts(&now, list)) {
        list_each_safe(it, &model.accounts)
            model_account_unused(container_of(it, struct model_account, link));
        for (unsigned i = list->n; i-- > 0;) {
            struct model_account *ma = get_account(&list->v[i]);
            list_del(&ma->link); /* before others of its name: bind looks for the first */
            list_add_head(&model.accounts, &ma->link);
        }
    }
    conf_accounts_clear(&now);
}

/* --- targets --------------------------------------------------------------------------------- */

static void
set_keys(struct model_target *t, const struct conf_target *ct)
{
    char err[512];

    keys_defaults(&t->keys);
    for (unsigned i = 0; i < ct->nkeys; i++) {
        if (keys_set(&t->keys, ct->keys[i].name, ct->keys[i].value, err, sizeof err) > 0)
            log_event(LL_WARN, LA_CONF, "key-limited target=%s asked=%s why=\"%s\"",
                      LOG_ESC(t->name), LOG_ESC(ct->keys[i].value), err);
    }
}

static void
set_rules(struct model_target *t, const struct conf_target *ct)
{
    while (!list_is_empty(&t->rules))
        model_rule_del(t, list_first(&t->rules, struct model_rule, link));
    for (unsigned i = 0; i < ct->naddrs; i++)
        model_rule_add(t, ct->addrs[i].value, RULE_ADDRESS);
    for (unsigned i = 0; i < ct->nnames; i++)
        model_rule_add(t, ct->names[i].value, RULE_NAME);
    for (unsigned i = 0; i < ct->nlocals; i++)
        model_rule_add(t, ct->locals[i].value, RULE_LOCAL);
    if (!ct->naddrs && !ct->nnames && !model.files)
        log_event(LL_ERROR, LA_CONF, "no-initiators target=%s why=\"nobody can log in\"",
                  LOG_ESC(t->name));
}

void
apply_target_set(struct model_target *t, const struct conf_target *ct)
{
    snprintf(t->alias, sizeof t->alias, "%s", ct->alias ? ct->alias : "");
    t->offline = ct->offline;
    t->hidden = ct->hidden;
    if (ct->given)
        snprintf(t->given, sizeof t->given, "%s", ct->given);
    t->ids = ct->ids; /* CONF_UNSET is MODEL_UNSET */
    t->nop_interval_s = ct->nop_interval_s;
    t->nop_count = ct->nop_count;
    t->max_cmds = ct->max_cmds != CONF_UNSET ? ct->max_cmds : MODEL_MAX_CMDS;
    set_keys(t, ct);
    set_auth(&t->auth, &ct->accounts, ct->chap_algs, ct->chap_sha1_7);
    redirect_put(t->redirect);
    t->redirect = apply_redirect(ct);
    set_rules(t, ct);
    t->nbinds = 0;
    for (unsigned i = 0; i < ct->nbinds; i++) {
        struct portal_id id = {.tpgt = (uint16_t)ct->binds[i].group};
        memcpy(id.name, ct->binds[i].name, sizeof id.name);
        model_via_add(t, &id);
    }
    if (t->tid != ct->tid)
        model_target_renumber(t, ct->tid);
    model_touch(t);
}

/* --- the daemon ------------------------------------------------------------------------------ */

int
apply_isns(const struct conf *c, struct isns_settings *s, char *err, size_t errsize)
{
    size_t n = 0;

    isns_settings_init(s);
    s->on = c->isns_on;
    s->access = c->isns_access;
    if (c->isns_port != CONF_UNSET)
        s->port = (uint16_t)c->isns_port;
    for (unsigned i = 0; i < c->nisns_servers && n < sizeof s->servers; i++)
        n += (size_t)snprintf(s->servers + n, sizeof s->servers - n, "%s%s", n ? "," : "",
                              c->isns_servers[i].value);
    if (n >= sizeof s->servers) {
        snprintf(err, errsize, "too many iSNS servers");
        return -EINVAL;
    }
    return isns_settings_check(s, err, errsize);
}

struct portal_spec
apply_portal_spec(const struct conf_portal *p)
{
    struct portal_spec spec = {.at = p->at, .tpgt = (uint16_t)p->group};
    memcpy(spec.advertise, p->advertise, sizeof spec.advertise);
    return spec;
}

static void
on_difference(void *arg, const struct conf_difference *d)
{
    bool *access = arg;
    *access |= strstr(d->directive, "-allow") || strstr(d->directive, "-deny");
}

/* What the files say counts, too. */
static bool
has_new_access(const struct conf *a, const struct conf *b)
{
    bool access = false;
    (void)conf_globals_diff(a, b, on_difference, &access);
    return access;
}

void
apply_globals_set(const struct conf *c)
{
    static const enum discovery_filter filters[] = {DF_NAME, DF_PORTAL, DF_ALL, DF_AUTHENTICATED};

    apply_options(c);
    be_zram_limit(c->zram_mem_limit);
    if (model.nop_interval_s != c->nop_interval_s || model.nop_count != c->nop_count) {
        model.nop_interval_s = c->nop_interval_s; /* CONF_UNSET is MODEL_UNSET */
        model.nop_count = c->nop_count;
        list_each(it, &model.targets)
            model_touch(container_of(it, struct model_target, link));
    }
    if (!model.conf || has_new_access(model.conf, c))
        apply_access(c);
    set_auth(&model.auth, &c->accounts, c->chap_algs != CONF_UNSET ? c->chap_algs : CHAP_ALG_ALL,
             c->chap_sha1_7 != CONF_UNSET ? c->chap_sha1_7 : 0);
    set_auth(&model.discovery, &c->discovery, MODEL_UNSET, MODEL_UNSET);
    model.filter = filters[c->discovery_filter];
    if (!model.conf)
        model.conf = conf_new();
    conf_copy_globals(model.conf, c);
}

/* --- logical units --------------------------------------------------------------------------- */

int
apply_lun_set(struct store *s, const struct conf_lun *l, bool check, char *err, size_t errsize)
{
    struct conf_lun next, *old = s->conf;
    struct lun_conf c;
    int rc = 0;

    conf_lun_copy(&next, l);
    next.number = old->number;
    next.pos = (struct conf_pos){.line = 0}; /* its file's name does not live as long */
    memset(next.at, 0, sizeof next.at);
    s->conf = &next;
    apply_store_lun_conf(s, &c);
    s->conf = old;
    if (old->read_only && !next.read_only)
        rc = apply_store_check_writable(s, err, errsize);
    if (rc == 0 && l->bs != CONF_BS_AUTO && *s->type && strcmp(conf_bs_name(l->bs), s->type) != 0) {
        snprintf(err, errsize, "bs-type is %s and cannot change while the unit lives", s->type);
        rc = -EINVAL;
    }
    if (rc == 0 && s->lun && check)
        rc = lun_check(s->lun, &c, err, errsize);
    else if (rc == 0 && s->lun)
        rc = lun_update(s->lun, &c, err, errsize);
    /* judged already; what can still fail is room for a larger store: that stays as it was, and
     * so does what is said of it */
    if (rc == 0 && !check && apply_store_tune(s, &next, err, errsize) < 0) {
        log_event(LL_ERROR, LA_BACKEND, "not-tuned path=%s why=\"%s\"", LOG_ESC(next.path), err);
        next.size = old->size;
        (void)apply_store_tune(s, &next, err, errsize);
    }
    if (rc < 0 || check) {
        conf_lun_fini(&next);
        return rc < 0 ? -EINVAL : 0;
    }
    conf_lun_fini(old);
    *old = next;
    return 0;
}
