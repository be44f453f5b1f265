/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of sessions; drain and undrain. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "tools/verb.h"
#include "tools/verb_parts.h"

/* Of a target, or all; new reference. */
static json_t *
sessions_of(struct call *c, const struct target_id *id)
{
    json_t *args = json_object();
    if (id)
        json_object_set_new(args, "tid", json_integer(id->tid));
    return json_incref(json_object_get(verb_ask(c, "session", "show", args), "sessions"));
}

int
verb_session_list(struct call *c)
{
    const char *target = call_arg(c, 0);
    struct target_id id;

    if (target)
        id = find_target(c, target);
    json_t *all = sessions_of(c, target ? &id : NULL);
    if (verb_json(c, json_pack("{sO}", "sessions", all)))
        return 0;
    if (!json_array_size(all))
        verb_say(c, "No initiator is logged in.");
    else
        session_table(all, !target);
    return 0;
}

static bool
is_meant(const json_t *s, const char *who)
{
    if (*who && strspn(who, "0123456789") == strlen(who))
        return j_num(s, "sid") == strtoll(who, NULL, 10);
    return strcasecmp(j_str(s, "initiator"), who) == 0;
}

/* What keeps it from coming back. */
static void
next_kill(struct call *c, const json_t *ended)
{
    const json_t *s = json_array_get(ended, 0);
    struct target_id id = {j_num(s, "tid"), xstrdup(j_str(s, "target"))};
    json_t *t = find_target_shown(c, &id), *rules = json_object_get(t, "initiators"), *r;
    const char *who = j_str(s, "initiator");
    size_t i;

    verb_say(c, "It may log in again at once. To keep it out:");
    json_array_foreach(rules, i, r)
    {
        if (strcasecmp(json_string_value(r), who) == 0) {
            verb_say(c, "  evtgtadm acl deny %s %s", id.name, who);
            return;
        }
    }
    verb_say(c,
             "  evtgtadm acl list %s     shows by which rule it comes in;\n"
             "  evtgtadm acl deny %s RULE     takes that away, and\n"
             "  evtgtadm acl allow %s NAME...  names those who still may",
             id.name, id.name, id.name);
}

int
verb_session_kill(struct call *c)
{
    const char *who = call_arg(c, 0), *target = call_opt(c, "target");
    struct target_id id;
    json_t *all, *s, *ended = json_array();
    size_t i;

    if (target)
        id = find_target(c, target);
    all = sessions_of(c, target ? &id : NULL);
    json_array_foreach(all, i, s)
    {
        if (is_meant(s, who))
            json_array_append(ended, s);
    }
    if (!json_array_size(ended))
        verb_fail(c, VERB_NOT_DONE, "no-session", "`session list` shows all.",
                  "there is no session of %s%s%s", who, target ? " at " : "",
                  target ? id.name : "");
    json_array_foreach(ended, i, s)
    {
        json_t *reply = verb_try(c, "session", "delete",
                                 json_pack("{sI sI}", "tid", (json_int_t)j_num(s, "tid"), "sid",
                                           (json_int_t)j_num(s, "sid")));
        const json_t *e = json_object_get(reply, "error");
        if (!j_is(reply, "ok") && strcmp(j_str(e, "code"), "no-session") != 0)
            verb_refused(c, reply);
        json_decref(reply); /* one that ended by itself is gone as well */
    }
    if (verb_json(c, json_pack("{sO}", "ended", ended)))
        return 0;
    json_array_foreach(ended, i, s)
        verb_say(c, "Session %lld of %s at %s is ended.", j_num(s, "sid"), j_str(s, "initiator"),
                 j_str(s, "target"));
    next_kill(c, ended);
    return 0;
}

/* --- drain ----------------------------------------------------------------------------------- */

static int
drain(struct call *c, bool on)
{
    const char *target = call_arg(c, 0);
    struct target_id id = {0, NULL};
    json_t *args = json_object(), *params = json_object();

    if (target) {
        id = find_target(c, target);
        json_object_set_new(args, "tid", json_integer(id.tid));
    }
    if (on && call_opt(c, "to"))
        json_object_set_new(params, "to", json_string(call_opt(c, "to")));
    if (on && call_opt(c, "deadline"))
        json_object_set_new(params, "deadline", json_string(call_opt(c, "deadline")));
    if (json_object_size(params))
        json_object_set(args, "params", params);
    verb_ask(c, target ? "target" : "system", on ? "drain" : "undrain", args);
    json_t *data = json_pack("{sb}", "drained", on);
    json_object_set_new(data, "target", target ? json_string(id.name) : json_null());
    if (verb_json(c, data))
        return 0;
    const char *what = target ? id.name : "the whole daemon";
    if (on && call_opt(c, "to"))
        verb_say(c, "New logins at %s are sent to %s; sessions are asked to leave.", what,
                 call_opt(c, "to"));
    else if (on)
        verb_say(c, "New logins at %s are refused; sessions are asked to leave.", what);
    else
        verb_say(c, "New logins at %s are accepted again.", what);
    if (on)
        verb_say(
            c, "`evtgtadm session list%s%s` shows who is left; `evtgtadm undrain%s%s` ends it.",
            target ? " " : "", target ? id.name : "", target ? " " : "", target ? id.name : "");
    return 0;
}

int
verb_drain(struct call *c)
{
    return drain(c, true);
}

int
verb_undrain(struct call *c)
{
    return drain(c, false);
}
