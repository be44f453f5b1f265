/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SendTargets (RFC 7143 Appendix C): which targets an initiator is told of; their addresses come
 * from announce.c.  On the connection's worker.
 *
 * An initiator hears only of what it could log in to from where it is, by the portal it came by.
 * A record without an address means the address of the connection (Appendix C).
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

static void
put_record(struct text_out *out, struct conn *c, const struct node_set *set,
           const struct tgt_node *node)
{
    text_put(out, keys_def(KEY_TARGET_NAME)->name, node->name);
    announce(c, set, node, put_address, out);
}

static bool
may_see(const struct conn *c, const struct tgt_node *node)
{
    return !node->offline && node_serves(node, &c->via) &&
           node_admits(node, (const struct sockaddr *)&c->peer, c->sess->initiator);
}

static void
put_refusal(struct text_out *out)
{
    text_put(out, keys_def(KEY_SEND_TARGETS)->name, "Reject");
}

static void
answer_discovery(struct text_out *out, struct conn *c, const char *value)
{
    const struct node_set *set = node_set_here();
    if (value[0] == '\0') { /* means "the target of this session", and there is none */
        put_refusal(out);
        return;
    }
    if (strcmp(value, "All") == 0) {
        for (unsigned i = 0; i < set->n; i++) {
            if (may_see(c, set->nodes[i]))
                put_record(out, c, set, set->nodes[i]);
        }
        return;
    }
    char name[ISCSI_NAME_MAX + 1];
    const char *why;
    if (name_fold(value, strlen(value), name, &why) != 0)
        return; /* no target has such a name */
    const struct tgt_node *node = node_find(set, name);
    if (node != NULL && may_see(c, node))
        put_record(out, c, set, node);
}

/* In a normal session nothing but its own target is spoken of. */
static void
answer_normal(struct text_out *out, struct conn *c, const char *value)
{
    char name[ISCSI_NAME_MAX + 1];
    const char *why;
    if (strcmp(value, "All") == 0) {
        put_refusal(out);
        return;
    }
    if (value[0] == '\0' || (name_fold(value, strlen(value), name, &why) == 0 &&
                             strcmp(name, c->sess->node->name) == 0))
        put_record(out, c, node_set_here(), c->sess->node);
}

uint8_t *
discovery_answer(struct conn *c, const char *value, uint32_t *len)
{
    worker_assert_owner(c->w);
    struct text_out out = {.limit = UINT32_MAX};
    if (c->sess->discovery)
        answer_discovery(&out, c, value);
    else
        answer_normal(&out, c, value);
    *len = (uint32_t)out.len;
    return out.p;
}
