/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accounts as main keeps them: one list that the daemon knows (tgt's view), and bindings of them to
 * targets, to discovery, and to all targets that have none of their own.  Main only.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/chap.h"
#include "target/keys.h"
#include "target/model.h"

void
model_auth_init(struct model_auth *auth, bool is_common)
{
    list_init(&auth->binds);
    auth->algs = is_common ? CHAP_ALG_ALL : MODEL_UNSET;
    auth->sha1_7 = is_common ? 0 : MODEL_UNSET;
}

void
model_auth_fini(struct model_auth *auth)
{
    while (!list_is_empty(&auth->binds))
        free(container_of(list_pop(&auth->binds), struct model_bind, link));
}

void
model_auth_touch(struct model_auth *where)
{
    worker_assert_owner(model.main);
    list_each(it, &model.targets) {
        struct model_target *t = container_of(it, struct model_target, link);
        if (where == &t->auth || where == &model.auth)
            model_touch(t);
    }
}

/* --- accounts -------------------------------------------------------------------------------- */

struct model_account *
model_account_find(const char *user)
{
    list_each(it, &model.accounts) {
        struct model_account *ma = container_of(it, struct model_account, link);
        if (strcmp(ma->account->user, user) == 0)
            return ma;
    }
    return NULL;
}

struct model_account *
model_account_get(const char *user, struct secret *secret, const char *const *names, char *err,
                  size_t errsize)
{
    bool limited = names && names[0];
    worker_assert_owner(model.main);
    list_each(it, &model.accounts) {
        struct model_account *ma = container_of(it, struct model_account, link);
        const struct account *a = ma->account;
        if (!limited && !a->names && strcmp(a->user, user) == 0 && secret_same(a->secret, secret))
            return ma;
    }
    struct account *a = account_new(user, secret, names, err, errsize);
    if (!a)
        return NULL;
    struct model_account *ma = xcalloc(1, sizeof *ma);
    ma->account = a;
    list_add_tail(&model.accounts, &ma->link);
    return ma;
}

static bool
is_bound(const struct model_auth *where, const struct model_account *ma)
{
    list_each(it, &where->binds) {
        if (container_of(it, struct model_bind, link)->ma == ma)
            return true;
    }
    return false;
}

bool
model_account_is_bound(const struct model_account *ma)
{
    if (is_bound(&model.auth, ma) || is_bound(&model.discovery, ma))
        return true;
    list_each(it, &model.targets) {
        if (is_bound(&container_of(it, struct model_target, link)->auth, ma))
            return true;
    }
    return false;
}

void
model_account_unused(struct model_account *ma)
{
    if (model_account_is_bound(ma))
        return;
    list_del(&ma->link);
    account_put(ma->account);
    free(ma);
}

static void
unbind_all(struct model_auth *where, const struct model_account *ma)
{
    list_each_safe(it, &where->binds) {
        struct model_bind *b = container_of(it, struct model_bind, link);
        if (b->ma == ma)
            model_bind_del(where, b);
    }
}

bool
model_account_delete(const char *user)
{
    struct model_account *ma;
    bool any = false;

    while ((ma = model_account_find(user))) {
        any = true;
        unbind_all(&model.auth, ma);
        unbind_all(&model.discovery, ma);
        list_each(it, &model.targets)
            unbind_all(&container_of(it, struct model_target, link)->auth, ma);
        list_del(&ma->link);
        account_put(ma->account);
        free(ma);
    }
    return any;
}

void
model_account_prune(const char *user)
{
    list_each_safe(it, &model.accounts) {
        struct model_account *ma = container_of(it, struct model_account, link);
        if (strcmp(ma->account->user, user) == 0)
            model_account_unused(ma);
    }
}

/* --- bindings -------------------------------------------------------------------------------- */

struct model_bind *
model_bind_find(const struct model_auth *where, const char *user, bool outgoing)
{
    list_each(it, &where->binds) {
        struct model_bind *b = container_of(it, struct model_bind, link);
        if (b->outgoing == outgoing && strcmp(b->ma->account->user, user) == 0)
            return b;
    }
    return NULL;
}

struct model_bind *
model_bind_outgoing(const struct model_auth *where)
{
    list_each(it, &where->binds) {
        struct model_bind *b = container_of(it, struct model_bind, link);
        if (b->outgoing)
            return b;
    }
    return NULL;
}

void
model_bind_add(struct model_auth *where, struct model_account *ma, bool outgoing)
{
    list_each(it, &where->binds) { /* who has one of them has both */
        const struct model_bind *o = container_of(it, struct model_bind, link);
        if (!outgoing && !o->outgoing && o->ma != ma &&
            secret_same(o->ma->account->secret, ma->account->secret))
            log_event(
                LL_WARN, LA_CONF,
                "account-same-secret user=%s other=%s why=\"two accounts with one secret do not "
                "tell who it is\"",
                LOG_ESC(ma->account->user), LOG_ESC(o->ma->account->user));
    }
    struct model_bind *b = xcalloc(1, sizeof *b);
    b->ma = ma;
    b->outgoing = outgoing;
    list_add_tail(&where->binds, &b->link);
    model_auth_touch(where);
}

void
model_bind_del(struct model_auth *where, struct model_bind *b)
{
    list_del(&b->link);
    free(b);
    model_auth_touch(where);
}

/* Who stands in for a direction that `where` does not name. */
static const struct model_auth *
source(const struct model_auth *where, bool outgoing)
{
    list_each(it, &where->binds) {
        if (container_of(it, struct model_bind, link)->outgoing == outgoing)
            return where;
    }
    return where == &model.discovery ? where : &model.auth;
}

const char *
model_bind_clash(const struct model_auth *where, const struct account *a, bool outgoing)
{
    const struct model_auth *other = source(where, !outgoing);
    list_each(it, &other->binds) {
        const struct model_bind *b = container_of(it, struct model_bind, link);
        if (b->outgoing != outgoing && secret_same(b->ma->account->secret, a->secret))
            return "the same secret for both directions (RFC 7143 9.2.1)";
    }
    return NULL;
}

bool
model_auth_demands(const struct model_auth *where)
{
    list_each(it, &source(where, false)->binds) {
        if (!container_of(it, struct model_bind, link)->outgoing)
            return true;
    }
    return false;
}

struct account_set *
model_auth_set(const struct model_auth *where)
{
    const struct model_auth *from = source(where, false);
    const struct model_bind *out = model_bind_outgoing(source(where, true));
    unsigned n = 0;

    list_each(it, &from->binds)
        n += !container_of(it, struct model_bind, link)->outgoing;
    if (n == 0)
        return NULL;
    struct account **in = xcalloc(n, sizeof *in);
    n = 0;
    list_each(it, &from->binds) {
        const struct model_bind *b = container_of(it, struct model_bind, link);
        if (!b->outgoing)
            in[n++] = b->ma->account;
    }
    struct account_set *s =
        account_set_new(in, n, out ? out->ma->account : NULL,
                        where->algs != MODEL_UNSET ? where->algs : model.auth.algs,
                        (where->sha1_7 != MODEL_UNSET ? where->sha1_7 : model.auth.sha1_7) != 0);
    free(in);
    if (!(s->algs & chap_algs_here()))
        log_event(LL_ERROR, LA_LOGIN,
                  "chap-impossible why=\"none of chap-algorithms is to be had on this machine\"");
    return s;
}
