/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accounts and sets of them: made by account_model.c on main, asked by chap.c and login.c on the
 * workers.
 */
#include "config.h"

#include "target/account.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/target.h"

static char **
copy_texts(const char *const *texts)
{
    size_t n = 0;
    while (texts[n] != NULL)
        n++;
    char **v = xcalloc(n + 1, sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = xstrdup(texts[i]);
    return v;
}

struct account *
account_new(const char *user, struct secret *secret, const char *const *names, char *err,
            size_t errsize)
{
    size_t len = strlen(user);
    if (len == 0 || len > ACCOUNT_NAME_MAX) {
        (void)snprintf(err, errsize, "an account's name has 1 to %u bytes", ACCOUNT_NAME_MAX);
        return NULL;
    }
    struct acl *acl = NULL;
    if (names != NULL && names[0] != NULL) {
        acl = acl_new(NULL, names, err, errsize, NULL, 0);
        if (acl == NULL)
            return NULL;
    }
    struct account *a = xcalloc(1, sizeof *a);
    ref_init(&a->ref);
    a->user = xstrdup(user);
    a->secret = secret_get(secret);
    a->names = acl;
    if (acl != NULL)
        a->name_texts = copy_texts(names);
    return a;
}

struct account *
account_get(struct account *a)
{
    ref_get(&a->ref);
    return a;
}

void
account_put(struct account *a)
{
    if (a == NULL || !ref_put(&a->ref))
        return;
    free(a->user);
    secret_put(a->secret);
    acl_put(a->names);
    for (char **p = a->name_texts; p != NULL && *p != NULL; p++)
        free(*p);
    free(a->name_texts);
    free(a);
}

struct account_set *
account_set_new(struct account *const *in, unsigned nin, struct account *out, uint32_t algs,
                bool sha1_7)
{
    struct account_set *s = xcalloc(1, sizeof *s + nin * sizeof(s->in[0]));
    ref_init(&s->ref);
    s->algs = algs;
    s->sha1_7 = sha1_7;
    s->out = out != NULL ? account_get(out) : NULL;
    for (unsigned i = 0; i < nin; i++)
        s->in[s->nin++] = account_get(in[i]);
    return s;
}

struct account_set *
account_set_get(struct account_set *s)
{
    if (s != NULL)
        ref_get(&s->ref);
    return s;
}

void
account_set_put(struct account_set *s)
{
    if (s == NULL || !ref_put(&s->ref))
        return;
    for (unsigned i = 0; i < s->nin; i++)
        account_put(s->in[i]);
    account_put(s->out);
    free(s);
}

bool
account_set_demands(const struct account_set *s)
{
    return s != NULL && s->nin != 0;
}

struct account *
account_find(const struct account_set *s, const char *user, const char *initiator)
{
    for (unsigned i = 0; i < s->nin; i++) {
        struct account *a = s->in[i];
        if (strcmp(a->user, user) == 0 &&
            (a->names == NULL || acl_admits_name(a->names, initiator)))
            return a;
    }
    return NULL;
}

bool
account_set_admits(const struct account_set *s, const struct account *a)
{
    if (!account_set_demands(s))
        return true;
    for (unsigned i = 0; i < s->nin; i++) {
        if (s->in[i] == a)
            return true;
    }
    return false;
}
