/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is logged in to some targets: for the message that a change would take something away from
 * them.  The workers are asked by broadcast.
 */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/apply.h"

#define TOLD_MAX 8u /* sessions; of the others the number */

struct users {
    char **targets;
    unsigned n;
    pthread_mutex_t lock;
    char text[1600];
    size_t len;
    unsigned found;
    void (*then)(void *arg, const char *who);
    void *arg;
};

static void
note(struct users *u, const struct sess *s)
{
    const struct conn *c =
        list_is_empty(&s->conns) ? NULL : list_first(&s->conns, struct conn, on_sess);

    if (u->found++ >= TOLD_MAX)
        return;
    int n = snprintf(u->text + u->len, sizeof u->text - u->len, "%s%.150s",
                     u->found > 1 ? ", " : "", LOG_ESC(s->initiator));
    u->len += n > 0 && u->len + (size_t)n < sizeof u->text ? (size_t)n : 0;
    n = snprintf(u->text + u->len, sizeof u->text - u->len, " (%s)", c ? c->peer_text : "");
    u->len += n > 0 && u->len + (size_t)n < sizeof u->text ? (size_t)n : 0;
}

static void
on_worker(struct worker *w, void *arg)
{
    struct users *u = arg;
    worker_assert_owner(w);
    list_each(it, &tgt_here()->sessions) {
        const struct sess *s = container_of(it, struct sess, on_worker);
        for (unsigned i = 0; s->node && !s->dying && i < u->n; i++) {
            if (strcmp(u->targets[i], s->node->name) != 0)
                continue;
            pthread_mutex_lock(&u->lock);
            note(u, s);
            pthread_mutex_unlock(&u->lock);
            break;
        }
    }
}

static void
on_all(struct worker *back, void *arg)
{
    struct users *u = arg;
    worker_assert_owner(back);
    if (u->found > TOLD_MAX)
        snprintf(u->text + u->len, sizeof u->text - u->len, " and %u more", u->found - TOLD_MAX);
    u->then(u->arg, u->text);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

void
apply_users(char **targets, unsigned n, void (*then)(void *arg, const char *who), void *arg)
{
    struct users *u = xcalloc(1, sizeof *u);

    *u = (struct users){.targets = targets, .n = n, .then = then, .arg = arg};
    pthread_mutex_init(&u->lock, NULL);
    worker_broadcast(on_worker, u, model.main, on_all);
}
