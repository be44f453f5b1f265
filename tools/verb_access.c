/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of access rules, accounts and portals: who may log in, and where. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "tools/verb.h"
#include "tools/verb_parts.h"

/* --- access rules ---------------------------------------------------------------------------- */

const char *
acl_kind(const char *rule)
{
    static const char *const names[] = {"iqn.", "eui.", "naa."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strncasecmp(rule, names[i], 4) == 0)
            return "initiator";
    }
    /* an address has no wildcards but in brackets: [2001:db8::1] */
    return strpbrk(rule, "*?") ? "initiator" : "address";
}

struct rule {
    const char *kind, *text;
};

/* All that is given: arguments from 1 on by their look, and the options that say what they are. */
static struct rule *
rules_given(struct call *c, unsigned *n)
{
    static const char *const kinds[] = {"address", "initiator", "local"};
    struct rule *v = xcalloc(c->nargs + c->ngiven + 1, sizeof *v);
    const char *text;

    *n = 0;
    for (unsigned i = 1; (text = call_arg(c, i)); i++)
        v[(*n)++] = (struct rule){acl_kind(text), text};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (unsigned i = 0; (text = call_each(c, kinds[k], &i));)
            v[(*n)++] = (struct rule){kinds[k], text};
    }
    if (!*n)
        verb_usage(c, "a rule is wanted: an address, a net, ALL, or an initiator's name");
    return v;
}

static json_t *
rule_args(long long tid, const struct rule *r)
{
    return json_pack("{sI ss}", "tid", (json_int_t)tid, r->kind, r->text);
}

struct done_rules {
    const struct rule *v;
    unsigned n;
    long long tid;
    const char *back; /* the operation that takes one back */
};

static void
take_back(struct call *c, void *arg)
{
    struct done_rules *d = arg;
    while (d->n)
        json_decref(verb_try(c, "target", d->back, rule_args(d->tid, &d->v[--d->n])));
}

/* All of them or none. */
static void
rules_do(struct call *c, const struct target_id *id, const struct rule *v, unsigned n, bool allow)
{
    struct done_rules *d = xcalloc(1, sizeof *d);

    *d = (struct done_rules){v, 0, id->tid, allow ? "unbind" : "bind"};
    verb_undo(c, take_back, d);
    for (unsigned i = 0; i < n; i++) {
        json_t *reply = verb_try(c, "target", allow ? "bind" : "unbind", rule_args(id->tid, &v[i]));
        if (!j_is(reply, "ok")) {
            const json_t *e = json_object_get(reply, "error");
            verb_fail(c, VERB_NOT_DONE, j_str(e, "code"),
                      c->in_doubt ? "`acl list TARGET` shows which rules there are now."
                                  : "`acl list TARGET` shows the rules as they were given; nothing "
                                    "was changed.",
                      "%s: %s", v[i].text, j_str(e, "message"));
        }
        json_decref(reply);
        d->n++;
    }
    verb_undo_none(c);
}

static json_t *
rules_json(const struct rule *v, unsigned n)
{
    json_t *a = json_array();
    for (unsigned i = 0; i < n; i++)
        json_array_append_new(a, json_pack("{ss ss}", "kind", v[i].kind, "rule", v[i].text));
    return a;
}

/* What open-iscsi has to be told of CHAP before it logs in; the secrets are not known here. */
static void
say_chap(struct call *c, const char *name, const char *where)
{
    struct target_id id = find_target(c, name);
    json_t *t = find_target_shown(c, &id), *a;
    char *node =
        xasprintf("  iscsiadm -m node -T %s -p %s -o update -n node.session.auth", name, where);
    size_t i;

    if (json_array_size(json_object_get(t, "accounts")))
        verb_say(c, "%s.authmethod -v CHAP", node);
    json_array_foreach(json_object_get(t, "accounts"), i, a)
    {
        const char *in = j_is(a, "outgoing") ? "_in" : "";
        char *user = out_plain(j_str(a, "user"));
        verb_say(c, "%s.username%s -v '%s'\n%s.password%s -v PASSWORD", node, in, user, node, in);
        free(user);
    }
    free(node);
    free(id.name);
    json_decref(t);
}

void
next_connect(struct call *c, const char *name)
{
    json_t *data = verb_ask(c, "portal", "show", NULL), *p;
    const char *where = "ADDRESS:3260";
    size_t i;

    json_array_foreach(json_object_get(data, "portals"), i, p)
    {
        const char *text = *j_str(p, "advertise") ? j_str(p, "advertise") : j_str(p, "portal");
        bool any = strncmp(text, "0.0.0.0:", 8) == 0 || strncmp(text, "[::]:", 5) == 0;
        if (!j_is(p, "absent") && !any) {
            where = text;
            break;
        }
    }
    verb_say(c, "An initiator finds it at %s; on Linux:\n  iscsiadm -m discovery -t st -p %s",
             where, where);
    say_chap(c, name, where);
    verb_say(c, "  iscsiadm -m node -T %s -p %s --login", name, where);
    json_decref(data);
}

int
verb_acl_allow(struct call *c)
{
    unsigned n;
    struct rule *v = rules_given(c, &n);
    struct target_id id = find_target(c, call_arg(c, 0));

    rules_do(c, &id, v, n, true);
    if (verb_json(c, json_pack("{ss so}", "target", id.name, "added", rules_json(v, n))))
        return 0;
    json_t *t = find_target_shown(c, &id);
    verb_say(c, "%s admits now:", id.name);
    print_rules(t);
    if (json_array_size(json_object_get(t, "addresses")) &&
        json_array_size(json_object_get(t, "initiators")))
        verb_say(c, "Both an address and a name must fit.");
    next_connect(c, id.name);
    return 0;
}

int
verb_acl_deny(struct call *c)
{
    unsigned n;
    struct rule *v = rules_given(c, &n);
    struct target_id id = find_target(c, call_arg(c, 0));

    rules_do(c, &id, v, n, false);
    if (verb_json(c, json_pack("{ss so}", "target", id.name, "removed", rules_json(v, n))))
        return 0;
    json_t *t = find_target_shown(c, &id);
    verb_say(c, "%s admits now:", id.name);
    print_rules(t);
    if (json_array_size(json_object_get(t, "sessions")))
        verb_say(c, "Sessions that are there stay: evtgtadm session kill INITIATOR --target %s",
                 id.name);
    return 0;
}

int
verb_acl_list(struct call *c)
{
    struct target_id id = find_target(c, call_arg(c, 0));
    json_t *t = find_target_shown(c, &id);

    if (verb_json(c, json_pack("{ss sO sO sO sO sO sO}", "target", id.name, "access_files",
                               json_object_get(t, "access_files"), "addresses",
                               json_object_get(t, "addresses"), "initiators",
                               json_object_get(t, "initiators"), "local_addresses",
                               json_object_get(t, "local_addresses"), "accounts",
                               json_object_get(t, "accounts"), "portals",
                               json_object_get(t, "portals"))))
        return 0;
    printf("%s admits:\n", id.name);
    print_rules(t);
    return 0;
}

/* --- accounts -------------------------------------------------------------------------------- */

static void
drop_account(struct call *c, void *arg)
{
    json_decref(verb_try(c, "account", "delete", json_pack("{ss}", "user", (const char *)arg)));
}

/* Where an account is bound: a target, or discovery. */
static json_t *
bind_args(struct call *c, const char *user, const struct target_id *id)
{
    json_t *o = json_pack("{ss sb}", "user", user, "outgoing", call_opt(c, "outgoing") != NULL);
    if (id)
        json_object_set_new(o, "tid", json_integer(id->tid));
    return o;
}

int
verb_account_add(struct call *c)
{
    const char *user = call_arg(c, 0), *target = call_opt(c, "target"), *name;
    struct target_id id = {0, NULL};
    bool generated, discovery = call_opt(c, "discovery") != NULL;

    if (target && discovery)
        verb_usage(c, "--target and --discovery exclude each other; `account bind` adds another");
    if (call_opt(c, "outgoing") && !target && !discovery)
        verb_usage(c, "--outgoing goes with --target or --discovery");
    if (target)
        id = find_target(c, target);
    char *password = verb_password(c, "password-file", user, &generated);
    json_t *args = json_pack("{ss ss}", "user", user, "password", password), *names = json_array();
    if (!args)
        verb_usage(c, "user and password must be UTF-8");
    for (unsigned i = 0; (name = call_each(c, "initiator", &i));)
        json_array_append_new(names, json_string(name));
    if (json_array_size(names))
        json_object_set(args, "initiators", names);
    verb_ask(c, "account", "new", args);
    verb_undo(c, drop_account, xstrdup(user));
    if (target || discovery)
        verb_ask(c, "account", "bind", bind_args(c, user, target ? &id : NULL));
    verb_undo_none(c);
    json_t *data = json_pack("{ss}", "user", user);
    if (id.name)
        json_object_set_new(data, "target", json_string(id.name));
    if (generated)
        json_object_set_new(data, "password", json_string(password));
    bool json = verb_json(c, data);
    if (!json) {
        if (generated)
            verb_say(c, "The password of %s, shown this once: %s", user, password);
        if (target)
            verb_say(c, "%s demands CHAP of every initiator now; %s is an account of it.", id.name,
                     user);
        else if (!discovery)
            verb_say(c, "It counts where it is bound: evtgtadm account bind %s TARGET", user);
    }
    verb_password_done(password);
    return 0;
}

static bool
discovery_demands(struct call *c)
{
    json_t *sys = verb_ask(c, "system", "show", NULL), *b;
    bool any = false;
    size_t i;

    json_array_foreach(json_object_get(sys, "discovery"), i, b) any |= !j_is(b, "outgoing");
    json_decref(sys);
    return any;
}

/* Where CHAP is demanded, to be compared with what is after a change. */
struct demands {
    json_t *targets;
    bool discovery;
};

static struct demands
demands_now(struct call *c)
{
    return (struct demands){find_all(c), discovery_demands(c)};
}

/* Names of targets that demanded CHAP and do not any more. */
static json_t *
opened(struct call *c, const struct demands *before)
{
    json_t *now = find_all(c), *out = json_array(), *a, *b;
    size_t i, k;

    json_array_foreach(before->targets, i, a)
    {
        json_array_foreach(now, k, b)
        {
            if (j_num(a, "tid") == j_num(b, "tid") && j_is(a, "chap") && !j_is(b, "chap"))
                json_array_append_new(out, json_string(j_str(b, "name")));
        }
    }
    json_decref(now);
    return out;
}

static void
say_opened(struct call *c, const json_t *names, const struct demands *before)
{
    json_t *v;
    size_t i;

    json_array_foreach(names, i, v) verb_warn(
        c, "%s is open without CHAP now, to all that its rules admit", json_string_value(v));
    if (before->discovery && !discovery_demands(c))
        verb_warn(c, "discovery is open without CHAP now");
}

int
verb_account_remove(struct call *c)
{
    const char *user = call_arg(c, 0);
    struct demands before = demands_now(c);

    verb_ask(c, "account", "delete", json_pack("{ss}", "user", user));
    json_t *open = opened(c, &before);
    if (verb_json(c, json_pack("{ss sO}", "user", user, "open", open)))
        return 0;
    verb_say(c, "%s is gone, at every target.", user);
    say_opened(c, open, &before);
    return 0;
}

int
verb_account_list(struct call *c)
{
    static const char *const heads[] = {"USER", "BOUND TO"};
    json_t *data = verb_ask(c, "account", "show", NULL), *all = find_all(c), *u, *t, *b;
    json_t *out = json_array();
    size_t i, k, n;

    json_array_foreach(json_object_get(data, "accounts"), i, u)
    {
        json_t *at = json_array();
        const char *user = json_string_value(u);
        json_array_foreach(json_object_get(data, "discovery"), n, b)
        {
            if (strcmp(j_str(b, "user"), user) == 0)
                json_array_append_new(at, json_pack("{so sb}", "target", json_null(), "outgoing",
                                                    j_is(b, "outgoing")));
        }
        json_array_foreach(all, k, t)
        {
            json_array_foreach(json_object_get(t, "accounts"), n, b)
            {
                if (strcmp(j_str(b, "user"), user) == 0)
                    json_array_append_new(at, json_pack("{ss sb}", "target", j_str(t, "name"),
                                                        "outgoing", j_is(b, "outgoing")));
            }
        }
        json_array_append_new(out, json_pack("{ss so}", "user", user, "bound", at));
    }
    if (verb_json(c, json_pack("{sO}", "accounts", out)))
        return 0;
    struct table tab;
    table_init(&tab, 2, heads);
    json_array_foreach(out, i, u)
    {
        const json_t *at = json_object_get(u, "bound");
        if (!json_array_size(at)) {
            table_cell(&tab, PLAIN, "%s", j_str(u, "user"));
            table_cell(&tab, ODD, "nothing");
        }
        json_array_foreach(at, k, b)
        {
            const char *name = j_str(b, "target");
            table_cell(&tab, PLAIN, "%s", k ? "" : j_str(u, "user"));
            table_cell(&tab, PLAIN, "%s%s", *name ? name : "discovery",
                       j_is(b, "outgoing") ? " (outgoing)" : "");
        }
    }
    table_print(&tab);
    return 0;
}

static int
bind_or_unbind(struct call *c, bool on)
{
    const char *user = call_arg(c, 0), *target = call_arg(c, 1);
    struct target_id id = {0, NULL};

    if (!target == !call_opt(c, "discovery"))
        verb_usage(c, "either a target or --discovery is wanted");
    if (target)
        id = find_target(c, target);
    struct demands before = demands_now(c);
    verb_ask(c, "account", on ? "bind" : "unbind", bind_args(c, user, target ? &id : NULL));
    json_t *data = json_pack("{ss sb}", "user", user, "outgoing", call_opt(c, "outgoing") != NULL);
    json_object_set_new(data, "target", target ? json_string(id.name) : json_null());
    json_t *open = opened(c, &before);
    if (!on)
        json_object_set(data, "open", open);
    if (verb_json(c, data))
        return 0;
    verb_say(c, on ? "%s counts at %s now." : "%s does not count at %s any more.", user,
             target ? id.name : "discovery");
    if (on && !call_opt(c, "outgoing"))
        verb_say(c, "Every initiator must prove itself there from its next login on.");
    say_opened(c, open, &before);
    return 0;
}

int
verb_account_bind(struct call *c)
{
    return bind_or_unbind(c, true);
}

int
verb_account_unbind(struct call *c)
{
    return bind_or_unbind(c, false);
}

/* --- portals --------------------------------------------------------------------------------- */

/* An address without a port has 3260. */
static char *
with_port(const char *text)
{
    const char *last = strrchr(text, ':');
    if (strncmp(text, "iface:", 6) == 0)
        return strchr(text + 6, ':') ? xstrdup(text) : xasprintf("%s:3260", text);
    if (text[0] == '[')
        return text[strlen(text) - 1] == ']' ? xasprintf("%s:3260", text) : xstrdup(text);
    if (!last)
        return xasprintf("%s:3260", text);
    if (strchr(text, ':') != last) /* a bare IPv6 address */
        return xasprintf("[%s]:3260", text);
    return xstrdup(text);
}

int
verb_portal_add(struct call *c)
{
    char *portal = with_port(call_arg(c, 0));
    const char *group = call_opt(c, "group"), *advertise = call_opt(c, "advertise");
    json_t *args = json_pack("{ss}", "portal", portal);

    if (group)
        json_object_set_new(args, "group",
                            json_integer(verb_number(c, "--group", group, 0, 65535)));
    if (advertise)
        json_object_set_new(args, "advertise", json_string(advertise));
    verb_ask(c, "portal", "new", args);
    if (verb_json(c, json_pack("{ss}", "portal", portal)))
        return 0;
    verb_say(c, "Initiators are heard at %s.", portal);
    return 0;
}

int
verb_portal_remove(struct call *c)
{
    char *portal = with_port(call_arg(c, 0));

    verb_ask(c, "portal", "delete", json_pack("{ss}", "portal", portal));
    if (verb_json(c, json_pack("{ss}", "portal", portal)))
        return 0;
    verb_say(c, "%s is closed; connections that were made there stay.", portal);
    return 0;
}

int
verb_portal_list(struct call *c)
{
    static const char *const heads[] = {"PORTAL", "GROUP", "GIVEN AS", "ADVERTISED", "STATE"};
    json_t *data = verb_ask(c, "portal", "show", NULL), *p;
    struct table tab;
    size_t i;

    if (verb_json(c, json_pack("{sO}", "portals", json_object_get(data, "portals"))))
        return 0;
    table_init(&tab, 5, heads);
    json_array_foreach(json_object_get(data, "portals"), i, p)
    {
        bool absent = j_is(p, "absent");
        table_cell(&tab, PLAIN, "%s", j_str(p, "portal"));
        table_cell(&tab, PLAIN, "%lld", j_num(p, "tpgt"));
        table_cell(&tab, PLAIN, "%s", j_str(p, "name"));
        table_cell(&tab, PLAIN, "%s", *j_str(p, "advertise") ? j_str(p, "advertise") : "-");
        table_cell(&tab, absent ? BAD : GOOD, "%s", absent ? "no such address" : "open");
    }
    table_print(&tab);
    return 0;
}
