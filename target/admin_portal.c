/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs of portals: new, delete, show; targets bound to portals and portal groups.  Main
 * only.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/admin_priv.h"

void
admin_portal_show(struct admin_req *r)
{
    json_t *a = json_array();
    unsigned n = portal_list(NULL, 0);
    struct node_portal *v = xcalloc(n + 1, sizeof *v);
    char text[64];

    unsigned got = portal_list(v, n);
    for (unsigned i = 0; i < got && i < n; i++) {
        const struct node_portal *p = &v[i];
        bool none = p->addr.ss_family == AF_UNSPEC;
        json_array_append_new(
            a, json_pack("{sssisssssb}", "portal",
                         none ? p->id.name : portal_text(&p->addr, text, sizeof text), "tpgt",
                         (int)p->id.tpgt, "name", p->id.name, "advertise", p->advertise, "absent",
                         none || p->absent));
    }
    free(v);
    admin_ok(r, json_pack("{so}", "portals", a));
}

/* The argument "portal"; false: answered. */
static bool
portal_arg(struct admin_req *r, struct hostport *at)
{
    bool bad;
    char err[256] = "";
    const char *text = admin_str(r, "portal", &bad);
    if (bad)
        return false;
    if (!text) {
        admin_fail(r, AE_INVALID, "\"portal\" wants ADDRESS:PORT, such as 192.0.2.1:3260");
        return false;
    }
    if (hostport_parse(text, at, err, sizeof err) < 0) {
        admin_fail(r, AE_INVALID, "portal: %s", err);
        return false;
    }
    return true;
}

/* From now on the portals are those that somebody chose. */
static void
changed(struct admin_req *r)
{
    model.usual_portals = false;
    admin_publish(r);
}

void
admin_portal_new(struct admin_req *r)
{
    struct portal_spec spec = {.tpgt = 1};
    char err[512] = "";
    const char *advertise;
    unsigned group = 1;
    bool bad;

    if (!portal_arg(r, &spec.at) || (!admin_uint(r, "group", UINT16_MAX, &group, &bad) && bad))
        return;
    advertise = admin_str(r, "advertise", &bad);
    if (bad)
        return;
    spec.tpgt = (uint16_t)group;
    if (advertise &&
        hostport_announce(advertise, spec.at.port, spec.advertise, err, sizeof err) < 0)
        admin_fail(r, AE_INVALID, "advertise: %s", err);
    else if (portal_open(&spec, false, err, sizeof err) < 0)
        admin_fail(r, AE_INVALID, "%s", err);
    else
        changed(r);
}

/* A target that names a portal, or a group with no other one; a configuration that says this cannot
 * be read. NULL: none. */
static const struct model_target *
bound_to_nothing_without(const char *name)
{
    unsigned n = portal_specs(NULL, 0);
    struct portal_spec *v = xcalloc(n + 1, sizeof *v);
    const struct model_target *found = NULL;
    int group = -1;

    (void)portal_specs(v, n);
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(v[i].at.name, name) == 0)
            group = v[i].tpgt;
    }
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(v[i].at.name, name) != 0 && v[i].tpgt == group)
            group = -1;
    }
    list_each(it, &model.targets) {
        const struct model_target *t = container_of(it, struct model_target, link);
        for (unsigned i = 0; i < t->nbinds && !found; i++) {
            const struct portal_id *b = &t->binds[i];
            if (*b->name ? strcmp(b->name, name) == 0 : b->tpgt == group)
                found = t;
        }
    }
    free(v);
    return found;
}

void
admin_portal_delete(struct admin_req *r)
{
    struct hostport at;

    if (!portal_arg(r, &at))
        return;
    const struct model_target *t = bound_to_nothing_without(at.name);
    if (t)
        admin_fail(r, AE_INVALID, "target %s is bound to %s alone or to its group: unbind it first",
                   t->name, at.name);
    else if (portal_close(at.name) < 0)
        admin_fail(r, AE_INVALID, "there is no such portal");
    else
        changed(r);
}

/* --- targets bound to portals ---------------------------------------------------------------- */

/* "portal" or "portal_group" of a bind; 1: id is set, 0: neither is given, -1: answered. */
static int
bind_arg(struct admin_req *r, struct portal_id *id)
{
    struct hostport at;
    unsigned group;
    bool bad = false;

    *id = (struct portal_id){.tpgt = 0};
    if (json_object_get(r->args, "portal")) {
        if (!portal_arg(r, &at))
            return -1;
        memcpy(id->name, at.name, sizeof id->name);
        return 1;
    }
    if (!admin_uint(r, "portal_group", UINT16_MAX, &group, &bad))
        return bad ? -1 : 0;
    id->tpgt = (uint16_t)group;
    return 1;
}

/* Is there a portal of this name, or one in this group? */
static bool
is_there(const struct portal_id *id)
{
    unsigned n = portal_list(NULL, 0);
    struct node_portal *v = xcalloc(n + 1, sizeof *v);
    bool found = false;

    unsigned got = portal_list(v, n);
    for (unsigned i = 0; i < got && i < n && !found; i++)
        found = *id->name ? strcmp(id->name, v[i].id.name) == 0 : id->tpgt == v[i].id.tpgt;
    free(v);
    return found;
}

bool
admin_portal_bind(struct admin_req *r, bool on)
{
    struct portal_id id, *bound;
    int rc = bind_arg(r, &id);

    if (rc <= 0)
        return rc < 0;
    bound = model_via_find(r->target, &id);
    if (on && bound)
        admin_fail(r, AE_RULE_EXISTS, NULL);
    else if (!on && !bound)
        admin_fail(r, AE_NO_RULE, NULL);
    else if (on && !is_there(&id))
        admin_fail(r, AE_INVALID, "there is no such portal");
    else {
        if (on)
            model_via_add(r->target, &id);
        else
            model_via_del(r->target, bound);
        log_event(LL_NOTICE, LA_ADMIN, "target-portal tid=%u portal=%s group=%u bound=%d", r->tid,
                  LOG_ESC(id.name), (unsigned)id.tpgt, on);
        admin_publish(r);
    }
    return true;
}

json_t *
admin_portal_binds(const struct model_target *t)
{
    json_t *a = json_array();
    for (unsigned i = 0; i < t->nbinds; i++) {
        const struct portal_id *b = &t->binds[i];
        json_array_append_new(a, *b->name ? json_pack("{ss}", "portal", b->name)
                                          : json_pack("{si}", "group", (int)b->tpgt));
    }
    return a;
}
