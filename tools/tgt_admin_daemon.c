/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgt-admin: requests to the daemon, and what needs no configuration: --show, --delete, --offline,
 * --ready, --dump.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "tools/adm.h"
#include "tools/tgt_admin.h"

#define NAMES_MAX 512 /* bytes of a message about who uses a target */

json_t *
ta_ask(const char *mode, const char *op, json_t *args)
{
    json_t *req = json_pack("{si ss ss so}", "v", 1, "mode", mode, "op", op, "args", args);
    json_t *reply = adm_call(NULL, req);
    json_decref(req);
    return reply;
}

bool
ta_ok(const json_t *reply)
{
    return json_is_true(json_object_get(reply, "ok"));
}

const char *
ta_code(const json_t *reply)
{
    const char *s = json_string_value(json_object_get(json_object_get(reply, "error"), "code"));
    return s ? s : "";
}

const char *
ta_words(const json_t *reply)
{
    const char *s = json_string_value(json_object_get(json_object_get(reply, "error"), "message"));
    return s ? s : "the daemon's answer makes no sense";
}

/* tgt-admin's lines on stdout when a tgtadm of its ends badly. */
static void
ended(const char *line, int status)
{
    printf("Command:\n\t%s\nexited with code: %d.\n", line, status);
}

static void
failed(struct tgt_admin *t, const char *line, const json_t *reply)
{
    ta_fault(t, EINVAL, "%s", ta_words(reply));
    if (!t->ignore_errors)
        ended(line, EINVAL);
}

bool
ta_do(struct tgt_admin *t, const char *line, const char *mode, const char *op, json_t *args)
{
    ta_say(t, "%s", line);
    if (t->pretend) {
        json_decref(args);
        return true;
    }
    json_t *reply = ta_ask(mode, op, args);
    bool ok = ta_ok(reply);
    if (!ok)
        failed(t, line, reply);
    json_decref(reply);
    return ok;
}

/* --- targets --------------------------------------------------------------------------------- */

json_t *
ta_targets(void)
{
    json_t *reply = ta_ask("target", "show", json_object());
    json_t *list = json_incref(json_object_get(json_object_get(reply, "data"), "targets"));
    if (!ta_ok(reply) || !json_is_array(list))
        adm_die(EINVAL, "%s", ta_words(reply));
    json_decref(reply);
    return list;
}

const json_t *
ta_by_name(const json_t *targets, const char *name)
{
    const json_t *v;
    size_t i;
    json_array_foreach(targets, i, v)
    {
        const char *n = json_string_value(json_object_get(v, "name"));
        if (n && strcasecmp(n, name) == 0)
            return v;
    }
    return NULL;
}

const json_t *
ta_by_tid(const json_t *targets, const char *tid)
{
    const json_t *v;
    size_t i;
    char *end;
    unsigned long n = strtoul(tid, &end, 10);
    if (*tid < '0' || *tid > '9' || *end)
        return NULL;
    json_array_foreach(targets, i, v)
    {
        if (json_integer_value(json_object_get(v, "tid")) == (json_int_t)n)
            return v;
    }
    return NULL;
}

bool
ta_in_use(const json_t *target)
{
    return json_array_size(json_object_get(target, "sessions")) > 0;
}

static const char *
name_of(const json_t *target)
{
    const char *s = json_string_value(json_object_get(target, "name"));
    return s ? s : "";
}

static long long
tid_of(const json_t *target)
{
    return (long long)json_integer_value(json_object_get(target, "tid"));
}

void
ta_used(struct tgt_admin *t, const json_t *target, const char *doing)
{
    char who[NAMES_MAX] = "";
    const bool broken = t->broken;
    const json_t *s;
    size_t i, n = 0;

    json_array_foreach(json_object_get(target, "sessions"), i, s)
    {
        const char *name = json_string_value(json_object_get(s, "initiator"));
        int k = snprintf(who + n, sizeof who - n, "%s%s", n ? ", " : "", name ? name : "?");
        if (k < 0 || (size_t)k >= sizeof who - n) {
            memcpy(who + sizeof who - 4, "...", 4);
            break;
        }
        n += (size_t)k;
    }
    ta_say(t, "# Target with tid %lld (%s) is in use, it won't be %s.", tid_of(target),
           name_of(target), doing);
    ta_fault(t, EINVAL,
             "this target is still active: %s is in use by %s, it was not %s; --force does it, and "
             "ends what is in the way",
             name_of(target), *who ? who : "commands at work", doing);
    t->broken = broken; /* the others are done all the same */
}

void
ta_delete(struct tgt_admin *t, const json_t *target, const char *how)
{
    bool force = t->force && ta_in_use(target);

    if (ta_in_use(target) && !t->force) {
        ta_used(t, target, how);
        return;
    }
    ta_say(t, "# Removing target: %s", name_of(target));
    char *line = xasprintf("tgtadm -C %u --mode target --op delete%s --tid=%lld", adm_control_port,
                           force ? " --force" : "", tid_of(target));
    json_t *args = json_pack("{sI sb}", "tid", (json_int_t)tid_of(target), "force", t->force);
    ta_say(t, "%s", line);
    json_t *reply = t->pretend ? NULL : ta_ask("target", "delete", json_incref(args));
    if (reply && strcmp(ta_code(reply), "target-active") == 0)
        ta_used(t, target, how); /* since a moment */
    else if (reply && !ta_ok(reply) && strcmp(ta_code(reply), "no-target") != 0)
        failed(t, line, reply);
    json_decref(reply);
    json_decref(args);
    ta_say(t, "%s", "");
    free(line);
}

/* --- the actions ----------------------------------------------------------------------------- */

void
ta_show(struct tgt_admin *t)
{
    char *line = xasprintf("tgtadm -C %u --op show --mode target", adm_control_port);

    if (t->pretend || t->verbose)
        puts(line);
    if (!t->pretend) {
        if (!adm_there(NULL))
            ended(line, ENOTCONN); /* and adm_call says why */
        (void)fflush(stdout);
        json_t *reply = ta_ask("target", "show", json_object());
        if (ta_ok(reply))
            adm_print("target", "show", false, json_object_get(reply, "data"));
        else
            failed(t, line, reply);
        json_decref(reply);
    }
    free(line);
}

static void
missing(struct tgt_admin *t, const char *what, const char *which)
{
    ta_say(t, "# Target with %s %s does not exist!", what, which);
    ta_fault(t, EINVAL, "can't find the target: none has the %s %s", what, which);
}

void
ta_delete_all(struct tgt_admin *t)
{
    json_t *all = ta_targets();
    const json_t *v;
    size_t i;

    if (strcmp(t->del, "ALL") == 0) {
        json_array_foreach(all, i, v)
        {
            if (ta_go_on(t))
                ta_delete(t, v, "deleted");
        }
    } else {
        bool tid = strncmp(t->del, "tid=", 4) == 0;
        const char *which = tid ? t->del + 4 : t->del;
        v = tid ? ta_by_tid(all, which) : ta_by_name(all, which);
        if (v)
            ta_delete(t, v, "deleted");
        else
            missing(t, tid ? "tid" : "name", which);
    }
    json_decref(all);
}

static bool
set_state(struct tgt_admin *t, const char *state, const char *tid)
{
    char *end, *line = xasprintf("tgtadm -C %u --op update --mode target --tid=%s -n state -v %s",
                                 adm_control_port, tid, state);
    unsigned long n = strtoul(tid, &end, 10);
    bool number = *tid >= '0' && *tid <= '9' && !*end && n <= 65535, ok = false;
    if (number)
        ok = ta_do(t, line, "target", "update",
                   json_pack("{sI s{ss}}", "tid", (json_int_t)n, "params", "state", state));
    else
        ta_fault(t, EINVAL, "tid= wants a number from 1 to 65535, not '%s'", tid);
    free(line);
    return ok;
}

void
ta_state(struct tgt_admin *t, const char *state, const char *which)
{
    char tid[24];
    const json_t *v;
    size_t i;

    if (strncmp(which, "tid=", 4) == 0) {
        set_state(t, state, which + 4);
        return;
    }
    json_t *all = ta_targets();
    bool found = strcmp(which, "ALL") == 0;
    json_array_foreach(all, i, v)
    {
        if (strcmp(which, "ALL") != 0 && strcasecmp(which, name_of(v)) != 0)
            continue;
        found = true;
        snprintf(tid, sizeof tid, "%lld", tid_of(v));
        if (!set_state(t, state, tid) && !ta_go_on(t))
            break;
    }
    if (!found) {
        printf("There is no target with name \"%s\", can't %s it!\n", which, state);
        t->status = 1;
    }
    json_decref(all);
}

/* Its first line tells tgt-admin, when it reads the text again, that it is in our own syntax, where
 * a target without initiators is closed. */
void
ta_dump(struct tgt_admin *t)
{
    json_t *reply = ta_ask("config", "dump", json_pack("{sb}", "secrets", 0));
    const char *text = json_string_value(json_object_get(json_object_get(reply, "data"), "text"));

    if (ta_ok(reply) && text)
        printf("%s\ndefault-driver iscsi\n\n%s", TA_DUMP_MARK, text);
    else
        ta_fault(t, EINVAL, "%s", ta_words(reply));
    json_decref(reply);
}
