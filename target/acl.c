/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may log in to a target, and at which of the host's addresses it is there at all.  Made on
 * main, then immutable; asked on any worker.
 *
 *   own rules     initiator-address and initiator-name: both must match where both are given, one
 *                 that is not given does not restrict, neither admits nobody.
 *   IET's files   beside them, where they are in force: with an initiators.deny, everybody comes in
 *                 but whom it names and initiators.allow does not; without one, whom
 *                 initiators.allow names; without either, all or nobody as acl_files_new was told.
 *   local         local-address and targets.allow restrict where they are given.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/pool.h"
#include "target/acl_priv.h"

struct acl {
    struct ref ref;
    bool own, iet;                  /* which rules there are */
    struct acl_list *addrs, *names; /* own; NULL: does not restrict */
    bool has_allow, has_deny, open;
    struct acl_list *allow, *deny; /* IET's for this target; NULL: no line for it */
    struct acl_list *local;        /* own; NULL: does not restrict */
    bool has_targets_allow;
    struct acl_list *targets_allow;
};

static bool
given(const char *const *list)
{
    return list != NULL && list[0] != NULL;
}

static int
make_list(struct acl_list **out, const char *const *texts,
          int (*add)(struct acl_list *l, const char *text, const struct acl_says *says),
          const struct acl_says *says)
{
    if (!given(texts))
        return 0;
    *out = acl_list_new();
    for (; *texts != NULL; texts++) {
        if (add(*out, *texts, says) < 0)
            return -EINVAL;
    }
    return 0;
}

static struct acl_list *
share(struct acl_list *l)
{
    return l ? acl_list_get(l) : NULL;
}

struct acl *
acl_make(const struct acl_rules *r, char *err, size_t errsize, char *warn, size_t warnsize)
{
    const struct acl_says says = {err, errsize, warn, warnsize};
    struct acl *a = xcalloc(1, sizeof *a);
    ref_init(&a->ref);
    if (warn != NULL && warnsize != 0)
        warn[0] = '\0';
    if (make_list(&a->addrs, r->addrs, acl_list_address, &says) < 0 ||
        make_list(&a->names, r->names, acl_list_name, &says) < 0 ||
        make_list(&a->local, r->local, acl_list_address, &says) < 0) {
        acl_put(a);
        return NULL;
    }
    a->own = a->addrs != NULL || a->names != NULL;
    if (r->files != NULL) {
        a->iet = true;
        a->open = acl_files_is_open(r->files);
        a->has_allow = acl_files_has(r->files, ACL_INITIATORS_ALLOW);
        a->has_deny = acl_files_has(r->files, ACL_INITIATORS_DENY);
        a->has_targets_allow = acl_files_has(r->files, ACL_TARGETS_ALLOW);
        a->allow = share(acl_files_pick(r->files, ACL_INITIATORS_ALLOW, r->target));
        a->deny = share(acl_files_pick(r->files, ACL_INITIATORS_DENY, r->target));
        a->targets_allow = share(acl_files_pick(r->files, ACL_TARGETS_ALLOW, r->target));
    }
    return a;
}

struct acl *
acl_new(const char *const *addrs, const char *const *names, char *err, size_t errsize, char *warn,
        size_t warnsize)
{
    const struct acl_rules r = {.addrs = addrs, .names = names};
    return acl_make(&r, err, errsize, warn, warnsize);
}

struct acl *
acl_get(struct acl *a)
{
    ref_get(&a->ref);
    return a;
}

void
acl_put(struct acl *a)
{
    if (a == NULL || !ref_put(&a->ref))
        return;
    acl_list_put(a->addrs);
    acl_list_put(a->names);
    acl_list_put(a->allow);
    acl_list_put(a->deny);
    acl_list_put(a->local);
    acl_list_put(a->targets_allow);
    free(a);
}

bool
acl_admits_name(const struct acl *a, const char *initiator_name)
{
    return a->names ? acl_list_has_name(a->names, initiator_name) : a->addrs != NULL;
}

static bool
own_admits(const struct acl *a, const struct sockaddr *peer, const char *name)
{
    if (!a->own)
        return a->iet; /* nothing said here: IET's rules decide, else nobody */
    return (a->addrs == NULL || acl_list_has_address(a->addrs, peer)) &&
           (a->names == NULL || acl_list_has_name(a->names, name));
}

static bool
iet_names(const struct acl_list *l, const struct sockaddr *peer, const char *name)
{
    return acl_list_has_address(l, peer) || acl_list_has_name(l, name);
}

static bool
iet_admits(const struct acl *a, const struct sockaddr *peer, const char *name)
{
    if (!a->iet)
        return true;
    bool allowed = iet_names(a->allow, peer, name);
    if (a->has_deny)
        return allowed || !iet_names(a->deny, peer, name);
    return a->has_allow ? allowed : a->open;
}

bool
acl_admits(const struct acl *a, const struct sockaddr *peer, const char *initiator_name)
{
    return a != NULL && own_admits(a, peer, initiator_name) && iet_admits(a, peer, initiator_name);
}

bool
acl_is_at(const struct acl *a, const struct sockaddr *local)
{
    return a != NULL && (a->local == NULL || acl_list_has_address(a->local, local)) &&
           (!a->has_targets_allow || acl_list_has_address(a->targets_allow, local));
}
