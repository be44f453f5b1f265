/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the daemon serves now, as a configuration: for dump, for the difference to another one, for
 * what is saved.  Main only.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/apply.h"
#include "target/chap.h"
#include "target/isns.h"
#include "target/keys.h"
#include "target/redirect.h"

const char apply_running[] = "the running daemon";

static const struct conf_pos here = {apply_running, 0, 0};

static void
add_kv(struct conf *c, struct conf_kv **v, unsigned *n, const char *name, const char *value)
{
    *v = xrealloc(*v, (*n + 1) * sizeof **v);
    (*v)[(*n)++] = (struct conf_kv){conf_keep(c, name), conf_keep(c, value), here};
}

/* --- accounts -------------------------------------------------------------------------------- */

static void
view_account(struct conf_accounts *list, const struct account *a, bool outgoing)
{
    struct conf_account ca = {.pos = here,
                              .outgoing = outgoing,
                              .user = xstrdup(a->user),
                              .secret = secret_get(a->secret)};
    /* only who comes in can be limited to initiators */
    for (char **p = outgoing ? NULL : a->name_texts; p && *p; p++) {
        ca.names = xrealloc(ca.names, (ca.nnames + 1) * sizeof *ca.names);
        ca.names[ca.nnames++] = xstrdup(*p);
    }
    list->v = xrealloc(list->v, (list->n + 1) * sizeof *list->v);
    list->v[list->n++] = ca;
}

void
apply_view_accounts(struct conf_accounts *list, const struct model_auth *where)
{
    list_each(it, &where->binds) {
        const struct model_bind *b = container_of(it, struct model_bind, link);
        view_account(list, b->ma->account, b->outgoing);
    }
}

void
apply_view_unbound(struct conf_accounts *list)
{
    list_each(it, &model.accounts) {
        const struct model_account *ma = container_of(it, struct model_account, link);
        /* of several of one name nobody can ever bind but the first */
        if (!model_account_is_bound(ma) && model_account_find(ma->account->user) == ma)
            view_account(list, ma->account, false);
    }
}

/* --- targets --------------------------------------------------------------------------------- */

static void
view_keys(struct conf *c, struct conf_target *t, const struct model_target *mt)
{
    struct key_values ours;
    const char *name;
    char value[256], usual[256];

    keys_defaults(&ours);
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (keys_show(&ours, i, &name, usual, sizeof usual) &&
            keys_show(&mt->keys, i, &name, value, sizeof value) && strcmp(value, usual) != 0)
            add_kv(c, &t->keys, &t->nkeys, name, value);
    }
}

static void
view_redirect(struct conf *c, struct conf_target *t, const struct model_target *mt)
{
    int rc;
    struct redirect *none = redirect_with(NULL, "RedirectAddress", "none", &rc, NULL, 0);
    const char *name, *uname;
    char value[1400], usual[1400];

    for (unsigned i = 0; redirect_show(mt->redirect, i, &name, value, sizeof value); i++) {
        if (!redirect_show(none, i, &uname, usual, sizeof usual) || strcmp(value, usual) != 0)
            add_kv(c, &t->redirects, &t->nredirects, name, value);
    }
    redirect_put(none);
}

static void
view_luns(struct conf_target *t, const struct model_target *mt)
{
    unsigned n = 0;

    list_each(it, &mt->luns)
        n++;
    t->luns = xcalloc(n + 1, sizeof *t->luns);
    list_each(it, &mt->luns) {
        const struct model_lun *ml = container_of(it, struct model_lun, link);
        struct conf_lun *l = &t->luns[t->nluns++];
        conf_lun_copy(l, ml->store->conf);
        l->number = (int)ml->number;
        l->pos = here;
        memset(l->at, 0, sizeof l->at);
    }
}

static void
view_target(struct conf *c, const struct model_target *mt)
{
    struct conf_target t = {.pos = here,
                            .tid = mt->tid,
                            .offline = mt->offline,
                            .hidden = mt->hidden,
                            .nop_interval_s = mt->nop_interval_s,
                            .nop_count = mt->nop_count,
                            .max_cmds = mt->max_cmds != MODEL_MAX_CMDS ? mt->max_cmds : CONF_UNSET,
                            .ids = mt->ids,
                            .chap_algs = mt->auth.algs,
                            .chap_sha1_7 = mt->auth.sha1_7};

    memcpy(t.name, mt->name, sizeof t.name);
    t.given = conf_keep(c, mt->given);
    t.alias = mt->alias[0] ? conf_keep(c, mt->alias) : NULL;
    view_keys(c, &t, mt);
    view_redirect(c, &t, mt);
    apply_view_accounts(&t.accounts, &mt->auth);
    list_each(it, &mt->rules) {
        const struct model_rule *r = container_of(it, struct model_rule, link);
        if (r->kind == RULE_ADDRESS)
            add_kv(c, &t.addrs, &t.naddrs, "initiator-address", r->text);
        else if (r->kind == RULE_NAME)
            add_kv(c, &t.names, &t.nnames, "initiator-name", r->text);
        else
            add_kv(c, &t.locals, &t.nlocals, "local-address", r->text);
    }
    for (unsigned i = 0; i < mt->nbinds; i++) {
        struct conf_bind b = {.group = mt->binds[i].tpgt, .pos = here};
        memcpy(b.name, mt->binds[i].name, sizeof b.name);
        t.binds = xrealloc(t.binds, (t.nbinds + 1) * sizeof *t.binds);
        t.binds[t.nbinds++] = b;
    }
    view_luns(&t, mt);
    c->targets = xrealloc(c->targets, (c->ntargets + 1) * sizeof *c->targets);
    c->targets[c->ntargets++] = t;
}

/* --- the daemon ------------------------------------------------------------------------------ */

static bool
has_server(const struct conf *c, const char *text)
{
    for (unsigned i = 0; i < c->nisns_servers; i++) {
        if (strcmp(c->isns_servers[i].value, text) == 0)
            return true;
    }
    return false;
}

static void
view_isns(struct conf *c)
{
    const struct isns_settings *s = isns_settings();
    struct isns_settings usual;
    char text[sizeof s->servers], *save = NULL;

    isns_settings_init(&usual);
    free(c->isns_servers);
    c->isns_servers = NULL;
    c->nisns_servers = 0;
    c->isns_on = s->on;
    c->isns_access = s->access && s->on;
    c->isns_port = s->port != usual.port && s->port ? s->port : CONF_UNSET;
    memcpy(text, s->servers, sizeof text);
    for (char *p = strtok_r(text, ", \t", &save); p; p = strtok_r(NULL, ", \t", &save)) {
        if (!has_server(c, p))
            add_kv(c, &c->isns_servers, &c->nisns_servers, "iSNSServerIP", p);
    }
}

static void
view_portals(struct conf *c)
{
    unsigned n = model.usual_portals ? 0 : portal_specs(NULL, 0);
    struct portal_spec *v = xcalloc(n + 1, sizeof *v);

    portal_specs(v, n);
    free(c->portals);
    c->portals = xcalloc(n + 1, sizeof *c->portals);
    c->nportals = n;
    c->no_portals = n == 0 && !model.usual_portals;
    for (unsigned i = 0; i < n; i++) {
        struct conf_portal *p = &c->portals[i];
        p->pos = here;
        p->at = v[i].at;
        p->group = v[i].tpgt;
        memcpy(p->advertise, v[i].advertise, sizeof p->advertise);
    }
    free(v);
}

/* What a configuration says where it holds; one that says the default is not different from what
 * comes of it. */
static unsigned
as_said(unsigned said, unsigned usual, unsigned now)
{
    if (now == (said != CONF_UNSET ? said : usual))
        return said;
    return now != usual ? now : CONF_UNSET;
}

static void
view_globals(struct conf *c)
{
    static const unsigned filters[] = {
        [DF_NAME] = 0, [DF_PORTAL] = 1, [DF_ALL] = 2, [DF_AUTHENTICATED] = 3};

    if (model.conf)
        conf_copy_globals(c, model.conf);
    conf_accounts_clear(&c->accounts);
    conf_accounts_clear(&c->discovery);
    conf_accounts_clear(&c->unbound);
    apply_view_accounts(&c->accounts, &model.auth);
    apply_view_accounts(&c->discovery, &model.discovery);
    apply_view_unbound(&c->unbound);
    c->chap_algs = as_said(c->chap_algs, CHAP_ALG_ALL, model.auth.algs);
    c->chap_sha1_7 = as_said(c->chap_sha1_7, 0, model.auth.sha1_7);
    c->nop_interval_s = model.nop_interval_s;
    c->nop_count = model.nop_count;
    c->discovery_filter = filters[model.filter];
    view_isns(c);
    view_portals(c);
}

struct conf *
apply_view(void)
{
    struct conf *c = conf_new();

    worker_assert_owner(model.main);
    view_globals(c);
    list_each(it, &model.targets)
        view_target(c, container_of(it, struct model_target, link));
    return c;
}

struct conf *
apply_view_target(const char *name)
{
    const struct model_target *t = model_target_by_name(name);
    struct conf *c = t ? conf_new() : NULL;

    worker_assert_owner(model.main);
    if (t)
        view_target(c, t);
    return c;
}

char *
apply_dump(const char *target, bool secrets)
{
    unsigned flags = secrets ? CONF_WRITE_SECRETS : 0;
    struct conf *c = target ? apply_view_target(target) : apply_view();
    char *text = !c       ? NULL
                 : target ? conf_write_target(&c->targets[0], flags)
                          : conf_write(c, flags);

    conf_free(c);
    return text;
}
