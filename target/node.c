/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Targets as the workers see them: immutable sets, published by main, switched by each worker in
 * its own loop turn.  The sets are counted: a worker holds one reference on its set, a session one
 * on its node.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/account.h"
#include "target/redirect.h"
#include "target/target.h"

struct tgt_node *
node_get(struct tgt_node *n)
{
    ref_get(&n->ref);
    return n;
}

void
node_put(struct tgt_node *n)
{
    if (!n || !ref_put(&n->ref))
        return;
    acl_put(n->acl);
    redirect_put(n->redirect);
    free(n->drain);
    isns_dd_put(n->dd);
    account_set_put(n->accounts);
    lun_map_put(n->map);
    free(n->binds);
    free(n);
}

static void
set_put(struct node_set *set)
{
    if (!set || !ref_put(&set->ref))
        return;
    for (unsigned i = 0; i < set->n; i++)
        node_put(set->nodes[i]);
    account_set_put(set->discovery);
    free(set->nodes);
    free(set->portals);
    free(set);
}

void
node_forget_here(void)
{
    struct tgt_worker *t = tgt_here();
    set_put(t->nodes);
    t->nodes = NULL;
}

const struct node_set *
node_set_here(void)
{
    static const struct node_set none = {.n = 0};
    const struct tgt_worker *t = tgt_here();
    return t->nodes ? t->nodes : &none;
}

static int
by_name(const void *key, const void *elem)
{
    const struct tgt_node *const *n = elem;
    return strcmp(key, (*n)->name);
}

struct tgt_node *
node_find(const struct node_set *set, const char *name)
{
    struct tgt_node **hit;
    if (set->n == 0)
        return NULL;
    hit = bsearch(name, set->nodes, set->n, sizeof *set->nodes, by_name);
    return hit ? *hit : NULL;
}

struct publish {
    struct node_set *set;
    void (*done)(void *arg);
    void *arg;
};

/* On each worker. The old set is let go after the sessions were told: they compare nodes. */
static void
on_switch(struct worker *w, void *arg)
{
    struct publish *p = arg;
    struct tgt_worker *t = tgt_here();
    struct node_set *old = t->nodes;

    worker_assert_owner(w);
    ref_get(&p->set->ref);
    t->nodes = p->set;
    list_each_safe(it, &t->sessions) {
        struct sess *s = container_of(it, struct sess, on_worker);
        if (!s->node || s->dying)
            continue;
        struct tgt_node *n = node_find(p->set, s->node->name);
        if (n != s->node)
            sess_node_changed(s, n);
    }
    set_put(old);
}

static void
on_published(struct worker *back, void *arg)
{
    struct publish *p = arg;
    void (*done)(void *) = p->done;
    void *done_arg = p->arg;

    worker_assert_owner(back);
    set_put(p->set);
    free(p);
    if (done)
        done(done_arg);
}

void
node_publish(struct node_set *set, void (*done)(void *arg), void *arg)
{
    struct publish *p = xmalloc(sizeof *p);
    *p = (struct publish){set, done, arg};
    worker_broadcast(on_switch, p, worker_self(), on_published);
}
