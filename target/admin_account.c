/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs of CHAP accounts, as tgtadm has them: accounts are made and deleted by name, then
 * bound to a target, or, without one, to discovery.  No answer holds a secret.  Main only.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/admin_priv.h"
#include "target/apply_saved.h"

/* Of one account; escaped for a configuration it is still one line there. */
#define LINE_BYTES 15000u

/* "user"; NULL: answered. */
static const char *
user_arg(struct admin_req *r)
{
    bool bad;
    const char *user = admin_str(r, "user", &bad);
    if (!user && !bad)
        admin_fail(r, AE_INVALID, "\"user\" is necessary");
    return user;
}

/* Where to bind: the target's, or with neither "tid" nor a target discovery's. NULL: answered. */
static struct model_auth *
place_arg(struct admin_req *r)
{
    if (!json_object_get(r->args, "tid"))
        return &model.discovery;
    return admin_target(r) ? &r->target->auth : NULL;
}

static bool
outgoing_arg(const struct admin_req *r)
{
    return json_is_true(json_object_get(r->args, "outgoing"));
}

/* "bind": where the account is bound as it is made, as IET has it; several places may then have one
 * of the same name and different secrets. False: answered. */
static bool
bind_arg(struct admin_req *r, const char *user, struct model_auth **where)
{
    bool out = outgoing_arg(r);

    *where = NULL;
    if (!json_is_true(json_object_get(r->args, "bind"))) {
        if (model_account_find(user))
            admin_fail(r, AE_ACCOUNT_EXISTS, NULL);
        return model_account_find(user) == NULL;
    }
    *where = place_arg(r);
    if (!*where)
        return false;
    if (out && model_bind_outgoing(*where))
        admin_fail(r, AE_OUTGOING_EXISTS, NULL);
    else if (model_bind_find(*where, user, out))
        admin_fail(r, AE_ACCOUNT_EXISTS, NULL);
    else {
        if (*where == &model.discovery)
            admin_touch_globals(r);
        else
            admin_touch(r, r->target->name);
        return true;
    }
    return false;
}

/* The account is there; with a place it is bound there. had: there was one of that name before. */
static void
made(struct admin_req *r, struct model_account *ma, struct model_auth *where, bool had)
{
    const struct account *a = ma->account;
    const char *user = json_string_value(json_object_get(r->args, "user"));
    bool out = outgoing_arg(r);
    const char *why = where ? model_bind_clash(where, a, out) : NULL;

    if (why) {
        admin_fail(r, AE_INVALID, "%s", why);
        if (!had) /* else it may be one that was there, and bound nowhere yet */
            model_account_prune(user);
        return;
    }
    if (secret_len(a->secret) < ACCOUNT_SECRET_MIN)
        log_event(LL_WARN, LA_ADMIN,
                  "account-weak user=%s why=\"less than %u bytes (RFC 7143 9.2.1)\"",
                  LOG_ESC(a->user), ACCOUNT_SECRET_MIN);
    log_event(LL_NOTICE, LA_ADMIN, "account-new user=%s", LOG_ESC(a->user));
    if (!where) {
        admin_touch_globals(r); /* it is of nobody yet */
        admin_ok(r, NULL);
        return;
    }
    model_bind_add(where, ma, out);
    log_event(LL_NOTICE, LA_ADMIN, "account-bind user=%s target=%s outgoing=%s", LOG_ESC(a->user),
              r->target ? r->target->name : "(discovery)", out ? "yes" : "no");
    admin_publish(r);
}

void
admin_account_new(struct admin_req *r)
{
    char err[256] = "";
    bool bad;
    const char *user = user_arg(r), *password;
    const json_t *names;
    struct model_account *ma;
    struct model_auth *where;
    bool had = user && model_account_find(user);

    if (!user)
        return;
    password = admin_str(r, "password", &bad);
    if (bad)
        return;
    if (!password) {
        admin_fail(r, AE_INVALID, "\"password\" is necessary");
        return;
    }
    if (!*password || strlen(password) > SECRET_MAX) {
        admin_fail(r, AE_INVALID, "a password has 1 to %u bytes", SECRET_MAX);
        return;
    }
    if (!bind_arg(r, user, &where))
        return;
    names = json_object_get(r->args, "initiators");
    size_t n = json_array_size(names);
    const char **list = xcalloc(n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = json_string_value(json_array_get(names, i));
        bad |= list[i] == NULL;
    }
    struct secret *s = secret_new(password, strlen(password));
    size_t bytes = strlen(user) + strlen(password);
    for (size_t i = 0; i < n && !bad; i++)
        bytes += strlen(list[i]) + 1;
    if (bad || (names && !json_is_array(names)))
        admin_fail(r, AE_INVALID, "\"initiators\" wants an array of names");
    else if (names && n == 0) /* a limit that was forgotten must not mean everybody */
        admin_fail(r, AE_INVALID, "\"initiators\" is empty: names of initiators, or ALL");
    else if (bytes > LINE_BYTES)
        admin_fail(r, AE_INVALID,
                   "user, password and initiators have more than %u bytes together: a pattern may "
                   "stand for many names",
                   LINE_BYTES);
    else if (!(ma = model_account_get(user, s, list, err, sizeof err)))
        admin_fail(r, AE_INVALID, "%s", err);
    else
        made(r, ma, where, had);
    secret_put(s);
    free(list);
}

/* Somebody who relied on CHAP should read it. */
static void
say_open(const struct model_auth *where, const char *name)
{
    struct account_set *s = model_auth_set(where);
    if (!s)
        log_event(LL_WARN, LA_ADMIN, "chap-off target=%s why=\"no incoming account is left\"",
                  name);
    account_set_put(s);
}

void
admin_account_delete(struct admin_req *r)
{
    const char *user = user_arg(r);
    unsigned n = 0;
    if (!user)
        return;
    list_each(it, &model.targets)
        n++;
    struct model_target **had = xcalloc(n + 1, sizeof *had);
    n = 0;
    list_each(it, &model.targets) {
        struct model_target *t = container_of(it, struct model_target, link);
        if (model_bind_find(&t->auth, user, false))
            had[n++] = t;
        if (model_bind_find(&t->auth, user, false) || model_bind_find(&t->auth, user, true))
            admin_touch(r, t->name);
    }
    bool in_discovery = model_bind_find(&model.discovery, user, false) != NULL;
    if (model_account_find(user) && !model_account_is_bound(model_account_find(user)))
        admin_touch_globals(r);
    const struct model_auth *daemon[] = {&model.discovery, &model.auth};
    for (unsigned i = 0; i < 2; i++) {
        if (model_bind_find(daemon[i], user, false) || model_bind_find(daemon[i], user, true))
            admin_touch_globals(r);
    }
    if (model_account_delete(user)) {
        log_event(LL_NOTICE, LA_ADMIN, "account-delete user=%s", LOG_ESC(user));
        for (unsigned i = 0; i < n; i++)
            say_open(&had[i]->auth, had[i]->name);
        if (in_discovery)
            say_open(&model.discovery, "(discovery)");
        admin_publish(r);
    } else {
        admin_fail(r, AE_NO_ACCOUNT, NULL);
    }
    free(had);
}

void
admin_account_bind(struct admin_req *r)
{
    const char *user = user_arg(r), *why;
    struct model_auth *where = user ? place_arg(r) : NULL;
    bool out = outgoing_arg(r);
    struct model_account *ma;

    if (!where)
        return;
    ma = model_account_find(user);
    if (!ma) {
        admin_fail(r, AE_NO_ACCOUNT, NULL);
    } else if (out && model_bind_outgoing(where)) {
        admin_fail(r, AE_OUTGOING_EXISTS, NULL);
    } else if (model_bind_find(where, user, out)) {
        admin_fail(r, AE_ACCOUNT_EXISTS, NULL);
    } else if ((why = model_bind_clash(where, ma->account, out))) {
        admin_fail(r, AE_INVALID, "%s", why);
    } else {
        if (!model_account_is_bound(ma) && apply_saved_has(""))
            admin_touch_globals(r); /* where it stands as one of nobody */
        model_bind_add(where, ma, out);
        log_event(LL_NOTICE, LA_ADMIN, "account-bind user=%s target=%s outgoing=%s", LOG_ESC(user),
                  r->target ? r->target->name : "(discovery)", out ? "yes" : "no");
        admin_publish(r);
    }
}

void
admin_account_unbind(struct admin_req *r)
{
    const char *user = user_arg(r);
    struct model_auth *where = user ? place_arg(r) : NULL;
    bool out = outgoing_arg(r), any = false;
    struct model_bind *b;

    if (!where)
        return;
    while ((b = model_bind_find(where, user, out))) {
        model_bind_del(where, b);
        any = true;
    }
    if (any && json_is_true(json_object_get(r->args, "delete")))
        model_account_prune(user);
    const struct model_account *left = any ? model_account_find(user) : NULL;
    if (left && !model_account_is_bound(left))
        admin_touch_globals(r);
    if (!any) {
        admin_fail(r, AE_NO_ACCOUNT, NULL);
        return;
    }
    log_event(LL_NOTICE, LA_ADMIN, "account-unbind user=%s target=%s outgoing=%s", LOG_ESC(user),
              r->target ? r->target->name : "(discovery)", out ? "yes" : "no");
    if (!out)
        say_open(where, r->target ? r->target->name : "(discovery)");
    admin_publish(r);
}

json_t *
admin_account_list(const struct model_auth *where)
{
    json_t *a = json_array();
    list_each(it, &where->binds) {
        const struct model_bind *b = container_of(it, struct model_bind, link);
        json_t *o = json_object(), *user = json_string(b->ma->account->user);
        json_object_set_new(o, "user", user ? user : json_string("?"));
        json_object_set_new(o, "outgoing", json_boolean(b->outgoing));
        json_array_append_new(a, o);
    }
    return a;
}

void
admin_account_show(struct admin_req *r)
{
    json_t *a = json_array();
    list_each(it, &model.accounts) {
        const struct model_account *ma = container_of(it, struct model_account, link);
        json_t *user = json_string(ma->account->user);
        if (model_account_find(ma->account->user) == ma)
            json_array_append_new(a, user ? user : json_string("?"));
        else
            json_decref(user);
    }
    admin_ok(
        r, json_pack("{so so}", "accounts", a, "discovery", admin_account_list(&model.discovery)));
}
