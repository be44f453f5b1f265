/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * saveconfig.json of LIO (targetcli, targetctl) -> raw nodes of our directives: the file, targets
 * and portal groups.  Storage objects and access lists are in syntax_lio_so.c and syntax_lio_acl.c.
 * Attributes that stand at LIO's default are those of nobody's choice and say nothing.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/syntax_lio.h"

/* --- values ---------------------------------------------------------------------------------- */

const char *
lio_text(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);
    const char *s = json_string_value(v);
    return s && *s && json_string_length(v) == strlen(s) && !strpbrk(s, "\r\n") ? s : NULL;
}

long long
lio_number(json_t *o, const char *key, long long none)
{
    json_t *v = json_object_get(o, key);
    uint64_t n;

    if (json_is_integer(v))
        return json_integer_value(v);
    if (json_is_boolean(v))
        return json_is_true(v);
    if (json_is_string(v) && conf_parse_uint(json_string_value(v), 0, INT64_MAX, &n) == 0)
        return (long long)n;
    return none;
}

void
lio_loss(const struct lio *p, json_t *o, const char *key, const char *why)
{
    struct conf_pos pos = key ? json_places_key(p->places, o, key) : json_places_of(p->places, o);
    conf_report_loss(p->in->r, &pos, "%s has no equivalent: %s", key ? key : "this", why);
}

struct raw_node *
lio_add(const struct lio *p, struct syntax_list *list, json_t *o, const char *key, const char *name,
        const char *value)
{
    struct conf_pos pos = key ? json_places_key(p->places, o, key) : json_places_of(p->places, o);
    if (!pos.line)
        pos = json_places_of(p->places, o);
    return syntax_add(list, p->in->file, pos, pos, name, value);
}

void
lio_attributes(const struct lio *p, json_t *o, const struct lio_attr *table, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (json_object_get(o, table[i].name) &&
            lio_number(o, table[i].name, table[i].standard) != table[i].standard)
            lio_loss(p, o, table[i].name, table[i].why);
    }
}

json_t *
lio_list(json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);
    return json_is_array(v) ? v : NULL;
}

/* --- portals --------------------------------------------------------------------------------- */

static void
portal(struct lio *p, json_t *o, long long tag, struct syntax_list *list)
{
    const char *ip = lio_text(o, "ip_address");
    long long port = lio_number(o, "port", 3260);
    char *at;

    if (!ip) {
        struct conf_pos pos = json_places_of(p->places, o);
        conf_report_add(p->in->r, true, &pos, "a portal wants an ip_address");
        return;
    }
    if (lio_number(o, "iser", 0))
        lio_loss(p, o, "iser", "iSER is not served; the portal is one of iSCSI over TCP");
    if (lio_number(o, "offload", 0))
        lio_loss(p, o, "offload", "the kernel's TCP is used");
    at = strchr(ip, ':') && ip[0] != '[' ? xasprintf("[%s]:%lld", ip, port)
                                         : xasprintf("%s:%lld", ip, port);
    bool known = false;
    for (const struct raw_node *n = p->portals.first; n; n = n->next) {
        if (strcmp(n->value, at) != 0)
            continue;
        known = true;
        if (strtoll(n->children->value, NULL, 10) != tag)
            lio_loss(p, o, "ip_address",
                     "the address is in a group of another tag already; a portal has one tag here");
    }
    if (!known) {
        struct syntax_list group;
        struct raw_node *n = lio_add(p, &p->portals, o, "ip_address", "portal", at);
        syntax_list_init(&group);
        syntax_addf(&group, p->in->file, n->pos, "group", "%lld", tag);
        n->is_block = true;
        n->children = group.first;
    }
    lio_add(p, list, o, "ip_address", "portal", at);
    free(at);
}

/* --- targets --------------------------------------------------------------------------------- */

/* Operational keys, with what LIO has when nobody chose. */
static const struct {
    const char *name, *standard, *why; /* why: it has none here */
} parameters[] = {
    {"DataDigest", "CRC32C,None", NULL},
    {"HeaderDigest", "CRC32C,None", NULL},
    {"DataPDUInOrder", "Yes", NULL},
    {"DataSequenceInOrder", "Yes", NULL},
    {"DefaultTime2Retain", "20", NULL},
    {"DefaultTime2Wait", "2", NULL},
    {"ErrorRecoveryLevel", "0", NULL},
    {"FirstBurstLength", "65536", NULL},
    {"ImmediateData", "Yes", NULL},
    {"InitialR2T", "Yes", NULL},
    {"MaxBurstLength", "262144", NULL},
    {"MaxConnections", "1", NULL},
    {"MaxOutstandingR2T", "1", NULL},
    {"MaxRecvDataSegmentLength", "8192", NULL},
    {"IFMarker", "No", NULL},
    {"OFMarker", "No", NULL},
    {"MaxXmitDataSegmentLength", "262144",
     "the initiator's MaxRecvDataSegmentLength alone limits what is sent"},
    {"IFMarkInt", "Reject", "markers are not sent (RFC 7143 dropped them)"},
    {"OFMarkInt", "Reject", "markers are not sent (RFC 7143 dropped them)"},
};

static void
tpg_parameters(const struct lio *p, json_t *o, struct syntax_list *list)
{
    for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++) {
        const char *v = lio_text(o, parameters[i].name);
        if (!v || strcmp(v, parameters[i].standard) == 0)
            continue;
        if (parameters[i].why)
            lio_loss(p, o, parameters[i].name, parameters[i].why);
        else
            lio_add(p, list, o, parameters[i].name, parameters[i].name, v);
    }
    const char *alias = lio_text(o, "TargetAlias");
    if (alias && strcmp(alias, "LIO Target") != 0)
        lio_add(p, list, o, "TargetAlias", "alias", alias);
}

static const struct lio_attr tpg_attrs[] = {
    {"cache_dynamic_acls", 0, "initiators need not be remembered"},
    {"default_erl", 0, "write ErrorRecoveryLevel"},
    {"login_timeout", 15, "login-timeout is one for the daemon"},
    {"netif_timeout", 2, "there is no such wait"},
    {"t10_pi", 0, "protection information is not served"},
    {"fabric_prot_type", 0, "protection information is not served"},
};

static void
tpg_attributes(const struct lio *p, json_t *o, struct syntax_list *list)
{
    long long depth = lio_number(o, "default_cmdsn_depth", 64);

    lio_attributes(p, o, tpg_attrs, sizeof tpg_attrs / sizeof *tpg_attrs);
    if (depth != 64) {
        char text[24];
        snprintf(text, sizeof text, "%lld", depth);
        lio_add(p, list, o, "default_cmdsn_depth", "MaxQueueCmd", text);
    }
    if (!lio_number(o, "tpg_enabled_sendtargets", 1))
        lio_add(p, list, o, "tpg_enabled_sendtargets", "discoverable", "no");
}

static void
one_tpg(struct lio *p, json_t *tpg, struct syntax_list *list)
{
    json_t *o;
    size_t i;

    if (!lio_number(tpg, "enable", 1))
        lio_add(p, list, tpg, "enable", "state", "offline");
    json_array_foreach(lio_list(tpg, "portals"), i, o)
        portal(p, o, lio_number(tpg, "tag", 1), list);
    tpg_attributes(p, json_object_get(tpg, "attributes"), list);
    tpg_parameters(p, json_object_get(tpg, "parameters"), list);
    lio_access(p, tpg, list);
}

static void
one_target(struct lio *p, json_t *t)
{
    const char *fabric = lio_text(t, "fabric"), *name = lio_text(t, "wwn");
    json_t *tpg, *chosen = NULL;
    struct syntax_list list;
    size_t i;

    if (fabric && strcmp(fabric, "iscsi") != 0) {
        lio_loss(p, t, "fabric", "only iSCSI is served; the target is left out");
        return;
    }
    if (!name) {
        struct conf_pos pos = json_places_of(p->places, t);
        conf_report_add(p->in->r, true, &pos, "a target wants a wwn, which is its name");
        return;
    }
    json_array_foreach(lio_list(t, "tpgs"), i, tpg)
    {
        if (!chosen || (!lio_number(chosen, "enable", 1) && lio_number(tpg, "enable", 1)))
            chosen = tpg;
    }
    json_array_foreach(lio_list(t, "tpgs"), i, tpg)
    {
        if (tpg != chosen)
            lio_loss(p, tpg, NULL,
                     "a target has one set of disks and of initiators; this portal group is left "
                     "out: give it a target of its own");
    }
    syntax_list_init(&list);
    if (chosen)
        one_tpg(p, chosen, &list);
    struct raw_node *n = lio_add(p, &p->targets, t, "wwn", "target", name);
    n->is_block = true;
    n->children = list.first;
}

/* --- the file -------------------------------------------------------------------------------- */

void
lio_account(const struct lio *p, struct syntax_list *list, json_t *o, const char *prefix,
            const char *name, const char *initiator)
{
    char user_key[64], secret_key[64];

    snprintf(user_key, sizeof user_key, "%suserid", prefix);
    snprintf(secret_key, sizeof secret_key, "%spassword", prefix);
    const char *user = lio_text(o, user_key), *secret = lio_text(o, secret_key);
    if (!user || !secret)
        return;
    char *u = syntax_quoted(user), *s = syntax_quoted(secret);
    char *all = xasprintf("%s %s%s%s", u, s, initiator ? " " : "", initiator ? initiator : "");
    lio_add(p, list, o, user_key, name, all);
    free(u);
    secret_free_text(s);
    secret_free_text(all);
}

static void
fabric_module(struct lio *p, json_t *o)
{
    const char *name = lio_text(o, "name");

    if (name && strcmp(name, "iscsi") != 0) {
        lio_loss(p, o, "name", "only iSCSI is served");
        return;
    }
    if (!lio_number(o, "discovery_enable_auth", lio_text(o, "discovery_userid") != NULL))
        return;
    lio_account(p, &p->globals, o, "discovery_", "incomingdiscoveryuser", NULL);
    lio_account(p, &p->globals, o, "discovery_mutual_", "outgoingdiscoveryuser", NULL);
}

/* Strings of the tree may be secrets: jansson only frees them. */
static void
wipe(json_t *v)
{
    const char *key;
    json_t *item;
    size_t i;

    if (json_is_object(v)) {
        json_object_foreach(v, key, item) wipe(item);
    } else if (json_is_array(v)) {
        json_array_foreach(v, i, item) wipe(item);
    } else if (json_is_string(v)) {
        secret_wipe((char *)(uintptr_t)json_string_value(v), json_string_length(v));
    }
}

static void
whole_file(struct lio *p, json_t *root)
{
    json_t *o;
    size_t i;

    json_array_foreach(lio_list(root, "fabric_modules"), i, o) fabric_module(p, o);
    p->objects = lio_list(root, "storage_objects");
    json_array_foreach(lio_list(root, "targets"), i, o) one_target(p, o);
    lio_objects_left(p);
}

struct raw_node *
syntax_lio(const struct syntax_in *in)
{
    struct lio p = {.in = in};
    json_error_t err;
    json_t *root =
        json_loadb(in->text, in->len, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &err);

    if (!json_is_object(root)) {
        struct conf_pos pos = {in->file->name, root ? 1 : (unsigned)err.line,
                               root ? 1 : (unsigned)err.column};
        conf_report_add(in->r, true, &pos, "this is not the JSON of a saveconfig.json: %s",
                        root ? "it is no object" : secret_free_words(err.text));
        json_decref(root);
        return NULL;
    }
    syntax_list_init(&p.globals);
    syntax_list_init(&p.portals);
    syntax_list_init(&p.targets);
    p.places = json_places_new(in->file->name, in->text, in->len, root);
    whole_file(&p, root);
    json_places_free(p.places);
    free(p.used);
    wipe(root);
    json_decref(root);
    *p.globals.tail = p.portals.first;
    if (p.portals.first)
        p.globals.tail = p.portals.tail;
    *p.globals.tail = p.targets.first;
    return p.globals.first;
}
