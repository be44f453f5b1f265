/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs of the daemon as a whole, of portals and drivers.  Main only.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/counter.h"
#include "base/pool.h"
#include "target/admin_priv.h"

/* --- system ---------------------------------------------------------------------------------- */

static bool
is_debugging(void)
{
    for (int i = 0; i < LA_COUNT; i++) {
        if (log_debug_on((enum log_area)i))
            return true;
    }
    return false;
}

void
admin_system_show(struct admin_req *r)
{
    json_t *o = json_object();
    json_object_set_new(o, "version", json_string(PACKAGE_VERSION));
    json_object_set_new(o, "state", json_string(model.offline ? "offline" : "ready"));
    json_object_set_new(o, "debug", json_boolean(is_debugging()));
    json_object_set_new(o, "drivers", json_pack("[s]", "iscsi"));
    json_object_set_new(o, "workers", json_integer(worker_count()));
    json_object_set_new(o, "engine",
                        json_string(worker_engine(worker_at(0)) == ENGINE_RING ? "ring" : "pool"));
    json_object_set_new(o, "placement", json_string(tgt_opts.affine ? "affine" : "spread"));
    json_object_set_new(o, "backing_stores", json_pack("[sss]", "fileio", "blockio", "null"));
    json_object_set_new(o, "device_types", json_pack("[ss]", "disk", "controller"));
    admin_ok(r, o);
}

static void
set_offline(struct admin_req *r, bool offline)
{
    model.offline = offline;
    list_each(it, &model.targets)
        model_touch(container_of(it, struct model_target, link));
    admin_publish(r);
}

void
admin_system_update(struct admin_req *r)
{
    bool bad;
    const char *name = admin_str(r, "name", &bad), *value;
    if (bad)
        return;
    value = admin_str(r, "value", &bad);
    if (bad)
        return;
    if (!name || !value) {
        admin_fail(r, AE_INVALID, "\"name\" and \"value\" are necessary");
    } else if (strcasecmp(name, "state") == 0 &&
               (strcasecmp(value, "offline") == 0 || strcasecmp(value, "ready") == 0)) {
        set_offline(r, strcasecmp(value, "offline") == 0);
    } else if (strcasecmp(name, "debug") == 0 &&
               (strcasecmp(value, "on") == 0 || strcasecmp(value, "off") == 0)) {
        if (log_set_debug(strcasecmp(value, "on") == 0 ? "all" : "") < 0)
            admin_fail(r, AE_INVALID, NULL);
        else
            admin_ok(r, NULL);
    } else if (strncmp(name, "iSNS", 4) == 0) {
        admin_fail(r, AE_UNSUPPORTED, "iSNS");
    } else if (strcasecmp(name, "state") == 0 || strcasecmp(name, "debug") == 0) {
        admin_fail(r, AE_INVALID, "%s wants %s, not \"%.40s\"", name,
                   strcasecmp(name, "state") == 0 ? "ready or offline" : "on or off", value);
    } else {
        admin_fail(r, AE_UNKNOWN_PARAMETER, "%.100s", name);
    }
}

void
admin_system_delete(struct admin_req *r)
{
    log_event(LL_NOTICE, LA_ADMIN, "system-delete");
    admin_ok(r, NULL);
    admin_stop_daemon();
}

void
admin_system_stat(struct admin_req *r)
{
    json_t *o = json_object();
    for (int i = 0; i < CT_COUNT; i++)
        json_object_set_new(o, counter_name((enum counter)i),
                            json_integer((json_int_t)counter_sum((enum counter)i)));
    admin_ok(r, json_pack("{so}", "counters", o));
}

/* --- portals --------------------------------------------------------------------------------- */

void
admin_portal_show(struct admin_req *r)
{
    json_t *a = json_array();
    unsigned n = portal_list(NULL, 0);
    struct node_portal *v = xcalloc(n + 1, sizeof *v);
    char text[64];

    unsigned got = portal_list(v, n);
    for (unsigned i = 0; i < got && i < n; i++)
        json_array_append_new(a, json_pack("{sssi}", "portal",
                                           portal_text(&v[i].addr, text, sizeof text), "tpgt",
                                           (int)v[i].tpgt));
    free(v);
    admin_ok(r, json_pack("{so}", "portals", a));
}

/* "192.0.2.1:3260", "[2001:db8::1]:3260"; without a port: 3260. Numbers only: nothing is looked
 * up, so nothing can block. */
static bool
parse_portal(const char *text, struct sockaddr_storage *sa, socklen_t *len)
{
    char host[64], port[8] = "3260";
    struct addrinfo hint = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                            .ai_socktype = SOCK_STREAM},
                    *ai;
    const char *end, *p = NULL;

    if (text[0] == '[') {
        text++;
        end = strchr(text, ']');
        if (!end || (end[1] && end[1] != ':'))
            return false;
        p = end[1] ? end + 2 : NULL;
    } else {
        const char *colon = strchr(text, ':');
        bool bare6 = colon && strchr(colon + 1, ':');
        end = colon && !bare6 ? colon : text + strlen(text);
        p = *end ? end + 1 : NULL;
    }
    size_t n = (size_t)(end - text);
    if (n == 0 || n >= sizeof host || (p && (!*p || strlen(p) >= sizeof port)))
        return false;
    memcpy(host, text, n);
    host[n] = 0;
    if (p)
        snprintf(port, sizeof port, "%s", p);
    if (getaddrinfo(host, port, &hint, &ai) != 0)
        return false;
    memcpy(sa, ai->ai_addr, ai->ai_addrlen);
    *len = ai->ai_addrlen;
    freeaddrinfo(ai);
    return true;
}

static bool
portal_arg(struct admin_req *r, struct sockaddr_storage *sa, socklen_t *len)
{
    bool bad;
    const char *text = admin_str(r, "portal", &bad);
    memset(sa, 0, sizeof *sa);
    if (bad)
        return false;
    if (!text || !parse_portal(text, sa, len)) {
        admin_fail(r, AE_INVALID, "\"portal\" wants ADDRESS:PORT, such as 192.0.2.1:3260");
        return false;
    }
    return true;
}

void
admin_portal_new(struct admin_req *r)
{
    struct sockaddr_storage sa;
    socklen_t len = 0;
    char err[512] = "";

    if (!portal_arg(r, &sa, &len))
        return;
    if (portal_open((const struct sockaddr *)&sa, len, 1, err, sizeof err) < 0)
        admin_fail(r, AE_INVALID, "%s", err);
    else
        admin_publish(r);
}

void
admin_portal_delete(struct admin_req *r)
{
    struct sockaddr_storage sa;
    socklen_t len = 0;

    if (!portal_arg(r, &sa, &len))
        return;
    if (portal_close((const struct sockaddr *)&sa, len) < 0)
        admin_fail(r, AE_INVALID, "there is no such portal");
    else
        admin_publish(r);
}

/* --- drivers --------------------------------------------------------------------------------- */

void
admin_lld_show(struct admin_req *r)
{
    json_t *a = json_array();
    list_each(it, &model.targets) {
        const struct model_target *t = container_of(it, struct model_target, link);
        json_array_append_new(a, json_pack("{siss}", "tid", (int)t->tid, "name", t->name));
    }
    admin_ok(
        r, json_pack("{s[{ssssso}]}", "drivers", "name", "iscsi", "state", "ready", "targets", a));
}
