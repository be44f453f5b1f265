/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of targets but create; the overview. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "tools/adm.h"
#include "tools/verb.h"
#include "tools/verb_parts.h"

/* What a LUN is like now, in a word; and its colour. */
static const char *
lun_state_word(const json_t *l, enum colour *colour)
{
    *colour = BAD;
    if (!j_is(l, "ready"))
        return "not ready";
    if (j_is(l, "flush_failed"))
        return "flush failed";
    *colour = ODD;
    if (!j_is(l, "online"))
        return "offline";
    *colour = GOOD;
    return "ready";
}

static const char *
target_state_word(const json_t *t, enum colour *colour)
{
    json_t *l;
    size_t i;

    *colour = ODD;
    if (j_is(t, "draining"))
        return "drained";
    if (strcmp(j_str(t, "state"), "ready") != 0)
        return j_str(t, "state");
    *colour = BAD;
    json_array_foreach(json_object_get(t, "luns"), i, l)
    {
        if (!j_is(l, "ready"))
            return "LUN not ready";
    }
    *colour = ODD;
    if (!json_array_size(json_object_get(t, "addresses")) &&
        !json_array_size(json_object_get(t, "initiators")) &&
        !json_array_size(json_object_get(t, "access_files")))
        return "admits nobody";
    *colour = GOOD;
    return "ready";
}

static unsigned
count(const json_t *o, const char *name)
{
    return (unsigned)json_array_size(json_object_get(o, name));
}

static void
print_targets_table(const json_t *all)
{
    static const char *const heads[] = {"TID", "TARGET", "STATE", "LUNS", "SESSIONS"};
    struct table tab;
    json_t *t;
    size_t i;

    table_init(&tab, 5, heads);
    json_array_foreach(all, i, t)
    {
        enum colour colour;
        const char *state = target_state_word(t, &colour);
        table_cell(&tab, PLAIN, "%lld", j_num(t, "tid"));
        table_cell(&tab, PLAIN, "%s", j_str(t, "name"));
        table_cell(&tab, colour, "%s", state);
        table_cell(&tab, PLAIN, "%u", count(t, "luns"));
        table_cell(&tab, PLAIN, "%u", count(t, "sessions"));
    }
    table_print(&tab);
}

int
verb_target_list(struct call *c)
{
    if (call_opt(c, "names")) {
        find_names_print(c->socket);
        return 0;
    }
    json_t *all = find_all(c);
    if (verb_json(c, json_pack("{sO}", "targets", all)))
        return 0;
    if (!json_array_size(all))
        verb_say(c, "There are no targets. `evtgtadm help target create` tells how to make one.");
    else
        print_targets_table(all);
    return 0;
}

/* Two that write one disk side by side destroy what is on it, and neither says a word. */
static void
print_sharers(const json_t *l)
{
    const json_t *shared = json_object_get(l, "shared");
    size_t n = json_array_size(shared), i;
    json_t *name;

    if (n < 2)
        return;
    char *word = out_paint(ODD, "warning");
    printf("%s: LUN %lld is written by ", word, j_num(l, "lun"));
    json_array_foreach(shared, i, name)
    {
        char *text = out_plain(json_string_value(name));
        printf("%s%s", !i ? "" : i + 1 < n ? ", " : " and ", text);
        free(text);
    }
    printf(" side by side, without reservations: only a cluster file system survives that\n");
    free(word);
}

void
lun_table(const json_t *luns)
{
    static const char *const heads[] = {"LUN", "SIZE", "BLOCK", "STATE", "HOW", "STORE"};
    struct table tab;
    json_t *l;
    size_t i;

    table_init(&tab, 6, heads);
    json_array_foreach(luns, i, l)
    {
        enum colour colour;
        const char *state = lun_state_word(l, &colour);
        char *size =
            verb_size_text((uint64_t)j_num(l, "blocks") * (uint64_t)j_num(l, "block_size"));
        table_cell(&tab, PLAIN, "%lld", j_num(l, "lun"));
        table_cell(&tab, PLAIN, "%s", size);
        table_cell(&tab, PLAIN, "%lld", j_num(l, "block_size"));
        table_cell(&tab, colour, "%s", state);
        table_cell(&tab, PLAIN, "%s%s%s%s", j_is(l, "readonly") ? "read-only" : "read-write",
                   j_is(l, "thin") ? ",thin" : "", j_is(l, "volatile") ? ",volatile" : "",
                   j_is(l, "reserved") ? ",reserved" : "");
        if (j_str(l, "path")[0] == '/')
            table_cell(&tab, PLAIN, "%s", j_str(l, "path"));
        else /* no path: a name, or nothing */
            table_cell(&tab, PLAIN, "%s%s%s", j_str(l, "bs_type"), *j_str(l, "path") ? ":" : "",
                       j_str(l, "path"));
        free(size);
    }
    table_print(&tab);
    json_array_foreach(luns, i, l)
    {
        if (!j_is(l, "ready")) {
            char *why = out_plain(j_str(l, "reason"));
            printf("LUN %lld is not ready: %s\n", j_num(l, "lun"), why);
            free(why);
        }
        print_sharers(l);
    }
}

void
session_table(const json_t *sessions, bool with_target)
{
    static const char *const heads[] = {"SID", "INITIATOR", "ADDRESS", "COMMANDS", "TARGET"};
    struct table tab;
    json_t *s;
    size_t i;

    table_init(&tab, with_target ? 5 : 4, heads);
    json_array_foreach(sessions, i, s)
    {
        const json_t *conn = json_array_get(json_object_get(s, "connections"), 0);
        table_cell(&tab, PLAIN, "%lld", j_num(s, "sid"));
        table_cell(&tab, PLAIN, "%s", j_str(s, "initiator"));
        table_cell(&tab, PLAIN, "%s", j_str(conn, "peer"));
        table_cell(&tab, PLAIN, "%lld", j_num(s, "cmds"));
        if (with_target)
            table_cell(&tab, PLAIN, "%s", j_str(s, "target"));
    }
    table_print(&tab);
}

static void
print_texts(const char *head, const json_t *list)
{
    json_t *v;
    size_t i;
    json_array_foreach(list, i, v) printf("  %-10s %s\n", i ? "" : head, json_string_value(v));
}

void
print_rules(const json_t *t)
{
    json_t *v;
    size_t i;

    bool files = count(t, "access_files") > 0,
         own = count(t, "addresses") || count(t, "initiators");
    if (files)
        printf("  %s\n", own ? "who fits both what follows and the access files:"
                             : "who the access files admit:");
    json_array_foreach(json_object_get(t, "access_files"), i, v)
        printf("  %-10s %s\n", i ? "" : "file", json_string_value(v));
    if (!own && !files)
        printf("  nobody: `evtgtadm acl allow %s ADDRESS|NET|ALL` or an initiator's name\n",
               j_str(t, "name"));
    print_texts("address", json_object_get(t, "addresses"));
    print_texts("initiator", json_object_get(t, "initiators"));
    print_texts("local", json_object_get(t, "local_addresses"));
    json_array_foreach(json_object_get(t, "accounts"), i, v)
        printf("  %-10s %s%s\n", i ? "" : "account", j_str(v, "user"),
               j_is(v, "outgoing") ? " (the target's own)" : "");
}

int
verb_target_show(struct call *c)
{
    struct target_id id = find_target(c, call_arg(c, 0));
    json_t *t = find_target_shown(c, &id), *v;
    enum colour colour;
    size_t i;

    if (verb_json(c, json_pack("{sO}", "target", t)))
        return 0;
    const char *word = target_state_word(t, &colour);
    char *state = out_paint(colour, word), *name = out_paint(HEAD, id.name);
    printf("%s\n  tid %lld, %s%s%s\n", name, id.tid, state, *j_str(t, "alias") ? ", " : "",
           j_str(t, "alias"));
    printf("\nAdmitted:\n");
    print_rules(t);
    json_array_foreach(json_object_get(t, "portals"), i, v)
    {
        if (json_object_get(v, "portal"))
            printf("  %-10s %s\n", i ? "" : "portal", j_str(v, "portal"));
        else
            printf("  %-10s group %lld\n", i ? "" : "portal", j_num(v, "group"));
    }
    printf("\n");
    if (count(t, "luns"))
        lun_table(json_object_get(t, "luns"));
    else
        printf("No LUNs: evtgtadm lun add %s PATH\n", id.name);
    printf("\n");
    if (count(t, "sessions"))
        session_table(json_object_get(t, "sessions"), false);
    else
        printf("No sessions.\n");
    if (call_opt(c, "keys")) {
        printf("\n");
        json_array_foreach(json_object_get(t, "keys"), i, v)
            printf("  %s=%s\n", json_string_value(json_array_get(v, 0)),
                   json_string_value(json_array_get(v, 1)));
    }
    return 0;
}

int
verb_target_delete(struct call *c)
{
    struct target_id id = find_target(c, call_arg(c, 0));
    json_t *t = find_target_shown(c, &id), *v;
    size_t i;

    json_t *args =
        json_pack("{sI sb}", "tid", (json_int_t)id.tid, "force", call_opt(c, "force") != NULL);
    json_t *reply = verb_try(c, "target", "delete", args);
    if (!j_is(reply, "ok") && count(t, "sessions")) {
        char who[512] = "";
        json_array_foreach(json_object_get(t, "sessions"), i, v)
        {
            size_t n = strlen(who);
            snprintf(who + n, sizeof who - n, "%s%s", n ? ", " : "", j_str(v, "initiator"));
        }
        verb_fail(c, VERB_NOT_DONE, "target-active",
                  "--force ends their sessions; `drain TARGET` asks them to leave first.",
                  "%s is in use by %s", id.name, who);
    }
    if (!j_is(reply, "ok"))
        verb_refused(c, reply);
    if (verb_json(c, json_pack("{sI ss}", "tid", (json_int_t)id.tid, "name", id.name)))
        return 0;
    verb_say(c, "%s is deleted.", id.name);
    json_array_foreach(json_object_get(t, "luns"), i, v)
    {
        if (*j_str(v, "path"))
            verb_say(c, "%s stays as it is.", j_str(v, "path"));
    }
    return 0;
}

/* NAME=VALUE arguments from the n-th on, as an object of strings. */
json_t *
settings_args(struct call *c, unsigned n)
{
    json_t *o = json_object();
    for (const char *a; (a = call_arg(c, n)); n++) {
        const char *eq = strchr(a, '=');
        if (!eq || eq == a)
            verb_usage(c, "\"%s\" is not NAME=VALUE", a);
        char *name = xasprintf("%.*s", (int)(eq - a), a);
        if (json_object_get(o, name))
            verb_usage(c, "%s is given twice", name);
        if (json_object_set_new(o, name, json_string(eq + 1)) < 0)
            verb_usage(c, "\"%s\" is no UTF-8", a);
        free(name);
    }
    return o;
}

int
verb_target_set(struct call *c)
{
    json_t *params = settings_args(c, 1);
    struct target_id id = find_target(c, call_arg(c, 0));

    json_t *data = verb_ask(c, "target", "update",
                            json_pack("{sI sO}", "tid", (json_int_t)id.tid, "params", params));
    adm_print_warnings(data);
    if (verb_json(c, json_pack("{ss sO}", "name", id.name, "set", params)))
        return 0;
    verb_say(c, "%s is changed; operational keys count from an initiator's next login on.",
             id.name);
    return 0;
}

/* --- status ---------------------------------------------------------------------------------- */

static void
print_portals_line(const json_t *portals)
{
    json_t *p;
    size_t i;
    printf("portals   ");
    json_array_foreach(portals, i, p) printf("%s%s", i ? ", " : "", j_str(p, "portal"));
    printf("%s\n", i ? "" : "none");
}

int
verb_status(struct call *c)
{
    json_t *sys = verb_ask(c, "system", "show", NULL), *all = find_all(c), *t, *l;
    json_t *portals = json_incref(json_object_get(verb_ask(c, "portal", "show", NULL), "portals"));
    unsigned sessions = 0, luns = 0, bad = 0;
    size_t i, k;

    json_array_foreach(all, i, t)
    {
        sessions += count(t, "sessions");
        luns += count(t, "luns");
        json_array_foreach(json_object_get(t, "luns"), k, l) bad += !j_is(l, "ready");
    }
    if (verb_json(c, json_pack("{sO sO sO sI sI sI sI}", "daemon", sys, "portals", portals,
                               "targets", all, "target_count", (json_int_t)json_array_size(all),
                               "lun_count", (json_int_t)luns, "luns_not_ready", (json_int_t)bad,
                               "session_count", (json_int_t)sessions)))
        return 0;
    bool drained = j_is(sys, "draining"), ready = strcmp(j_str(sys, "state"), "ready") == 0;
    char *state =
        out_paint(drained || !ready ? ODD : GOOD, drained ? "drained" : j_str(sys, "state"));
    printf("evtgtd    %s, version %s, %lld workers, disks by %s\n", state, j_str(sys, "version"),
           j_num(sys, "workers"),
           strcmp(j_str(sys, "engine"), "ring") == 0 ? "io_uring" : "threads");
    print_portals_line(portals);
    printf("targets   %zu with %u LUNs, %u sessions\n", json_array_size(all), luns, sessions);
    size_t unusable = json_array_size(json_object_get(sys, "saved_unusable"));
    if (unusable)
        printf("not used  %zu saved text%s: `evtgtadm saved` says why\n", unusable,
               unusable > 1 ? "s" : "");
    if (bad)
        printf("not ready %u LUN%s: `evtgtadm lun list` says why\n", bad, bad > 1 ? "s" : "");
    if (json_array_size(all)) {
        printf("\n");
        print_targets_table(all);
    }
    return 0;
}
