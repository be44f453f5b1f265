/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SendTargets (RFC 7143 Appendix C): which targets an initiator is told of; their addresses come
 * from announce.c.  On the connection's worker.
 *
 * An initiator hears only of what it could log in to from where it is, by the portal it came by,
 * unless discovery-filter says otherwise; never of what is hidden.  A record without an address
 * means the address of the connection (Appendix C).
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/account.h"
#include "target/nego.h"
#include "target/target.h"

/* --- records --------------------------------------------------------------------------------- */

static void
put_address(const char *addr, uint16_t tpgt, void *arg)
{
    char value[HOSTPORT_HOST_MAX + 8];
    (void)snprintf(value, sizeof value, "%s,%u", addr, (unsigned)tpgt);
    text_put(arg, keys_def(KEY_TARGET_ADDRESS)->name, value);
}

/* Is the target where the connection came to? */
static bool
is_here(const struct conn *c, const struct tgt_node *node)
{
    return node_serves(node, &c->via) && acl_is_at(node->acl, (const struct sockaddr *)&c->local);
}

/* Without an address the record would mean the one of the connection: it is left out where the
 * target is not there. */
static void
put_record(struct text_out *out, struct conn *c, const struct node_set *set,
           const struct tgt_node *node)
{
    size_t before = out->len;
    text_put(out, keys_def(KEY_TARGET_NAME)->name, node->name);
    size_t named = out->len;
    announce(c, set, node, put_address, out);
    if (out->len == named && !is_here(c, node))
        out->len = before;
}

static bool
may_see(const struct conn *c, const struct node_set *set, const struct tgt_node *node)
{
    if (node->offline || node->hidden)
        return false;
    if (set->filter == DF_ALL)
        return true;
    if (set->filter == DF_AUTHENTICATED && !c->sess->authenticated &&
        account_set_demands(node->accounts))
        return false;
    return is_here(c, node) &&
           (set->filter == DF_PORTAL ||
            node_admits(node, (const struct sockaddr *)&c->peer, c->sess->initiator));
}

/* --- answers --------------------------------------------------------------------------------- */

/* An answer that names all targets is made piece by piece, as the initiator fetches it: what is
 * kept is the name of the last one, not the set, which would keep removed disks open. */
struct discovery_walk {
    char last[ISCSI_NAME_MAX + 1]; /* "": none yet */
};

/* The first node behind the name. */
static unsigned
index_after(const struct node_set *set, const char *name)
{
    unsigned from = 0, to = set->n;
    while (from < to) {
        unsigned mid = from + (to - from) / 2;
        if (strcmp(set->nodes[mid]->name, name) <= 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

void
discovery_more(struct conn *c, struct text_out *out, size_t want)
{
    struct discovery_walk *walk = c->text.walk;
    worker_assert_owner(c->w);
    if (walk == NULL)
        return;
    const struct node_set *set = node_set_here();
    for (unsigned i = index_after(set, walk->last); i < set->n; i++) {
        const struct tgt_node *node = set->nodes[i];
        if (out->len > want) {
            /* i > 0: something was put */
            memcpy(walk->last, set->nodes[i - 1]->name, sizeof walk->last);
            return;
        }
        if (may_see(c, set, node))
            put_record(out, c, set, node);
    }
    discovery_forget(c);
}

void
discovery_forget(struct conn *c)
{
    free(c->text.walk);
    c->text.walk = NULL;
}

static void
put_refusal(struct text_out *out)
{
    text_put(out, keys_def(KEY_SEND_TARGETS)->name, "Reject");
}

static void
ask_discovery(struct conn *c, const char *value, struct text_out *out)
{
    if (value[0] == '\0') { /* means "the target of this session", and there is none */
        put_refusal(out);
        return;
    }
    if (strcmp(value, "All") == 0) {
        c->text.walk = xcalloc(1, sizeof *c->text.walk);
        return;
    }
    char name[ISCSI_NAME_MAX + 1];
    const char *why;
    if (name_fold(value, strlen(value), name, &why) != 0)
        return; /* no target has such a name */
    const struct node_set *set = node_set_here();
    const struct tgt_node *node = node_find(set, name);
    if (node != NULL && may_see(c, set, node))
        put_record(out, c, set, node);
}

/* In a normal session nothing but its own target is spoken of. */
static void
ask_normal(struct conn *c, const char *value, struct text_out *out)
{
    char name[ISCSI_NAME_MAX + 1];
    const char *why;
    const struct node_set *set = node_set_here();
    if (strcmp(value, "All") == 0) {
        put_refusal(out);
        return;
    }
    if (value[0] == '\0' || (name_fold(value, strlen(value), name, &why) == 0 &&
                             strcmp(name, c->sess->node->name) == 0))
        put_record(out, c, set, c->sess->node);
}

void
discovery_ask(struct conn *c, const char *value, struct text_out *out)
{
    worker_assert_owner(c->w);
    discovery_forget(c);
    if (c->sess->discovery)
        ask_discovery(c, value, out);
    else
        ask_normal(c, value, out);
}
