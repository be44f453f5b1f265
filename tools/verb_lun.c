/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of logical units. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/pool.h"
#include "tools/verb.h"
#include "tools/verb_parts.h"

#define LUN_MAX   16383u
#define NOTICE_MS 10000u /* the daemon looks at every store each few seconds */
#define LOOK_MS   100u

long
lun_free(const json_t *luns)
{
    for (long n = 1; n <= (long)LUN_MAX; n++) {
        bool used = false;
        json_t *l;
        size_t i;
        json_array_foreach(luns, i, l) used |= j_num(l, "lun") == n;
        if (!used)
            return n;
    }
    return -1;
}

static void
put_param(struct call *c, json_t *params, const char *name, const char *value)
{
    if (json_object_get(params, name))
        verb_usage(c, "%s is given twice", name);
    if (json_object_set_new(params, name, json_string(value)) < 0)
        verb_usage(c, "the value of %s is no UTF-8", name);
}

/* zram:NAME:SIZE */
static void
put_zram(struct call *c, json_t *params, const char *text)
{
    const char *colon = strrchr(text, ':');

    if (!colon || colon == text)
        verb_usage(c, "compressed memory is zram:NAME:SIZE, such as zram:fast:8G");
    char *name = xasprintf("%.*s", (int)(colon - text), text);
    char *bytes = xasprintf("%llu", (unsigned long long)verb_size(c, colon + 1));
    put_param(c, params, "bs-type", "zram");
    put_param(c, params, "backing-store", name);
    put_param(c, params, "size", bytes);
    free(bytes);
    free(name);
}

/* A file or device, null:SIZE, or zram:NAME:SIZE. */
static void
put_store(struct call *c, json_t *params, const char *path)
{
    if (strncmp(path, "null:", 5) == 0) {
        char *bytes = xasprintf("%llu", (unsigned long long)verb_size(c, path + 5));
        put_param(c, params, "bs-type", "null");
        put_param(c, params, "size", bytes);
        free(bytes);
        return;
    }
    if (strncmp(path, "zram:", 5) == 0) {
        put_zram(c, params, path + 5);
        return;
    }
    if (!*path)
        verb_usage(c, "a file or a device is wanted, null:SIZE or zram:NAME:SIZE");
    char *abs = file_absolute(c, path);
    put_param(c, params, "backing-store", abs);
    free(abs);
}

static void
create_store(struct call *c, json_t *params, const char *size, bool full)
{
    const char *path = j_str(params, "backing-store");
    if (json_object_get(params, "bs-type") && path[0] != '/')
        verb_usage(c, "null:SIZE and zram:NAME:SIZE have their size; only files are created");
    file_create(c, path, verb_size(c, size), full);
    if (!full && !json_object_get(params, "thin-provisioning"))
        put_param(c, params, "thin-provisioning", "on");
}

json_t *
lun_spec(struct call *c, const char *text, long *number)
{
    json_t *params = json_object();
    char *copy = xstrdup(text), *save = NULL, *create = NULL;
    bool full = false;

    *number = -1;
    char *word = strtok_r(copy, ",", &save);
    put_store(c, params, word ? word : "");
    while ((word = strtok_r(NULL, ",", &save))) {
        char *eq = strchr(word, '=');
        if (eq)
            *eq = 0;
        if (strcmp(word, "lun") == 0)
            *number = (long)verb_number(c, "lun", eq ? eq + 1 : "", 0, LUN_MAX);
        else if (strcmp(word, "create") == 0 && eq)
            create = eq + 1;
        else if (strcmp(word, "full") == 0 && !eq)
            full = true;
        else if (strcmp(word, "thin") == 0 && !eq)
            put_param(c, params, "thin-provisioning", "on");
        else
            put_param(c, params, word, eq ? eq + 1 : "on");
    }
    if (create)
        create_store(c, params, create, full);
    else if (full)
        verb_usage(c, "full goes with create=SIZE");
    free(copy);
    return params;
}

static json_t *
add_params(struct call *c)
{
    json_t *params = json_object();
    const char *v, *create = call_opt(c, "create");
    bool thin = call_opt(c, "thin") != NULL, full = call_opt(c, "full") != NULL;

    put_store(c, params, call_arg(c, 1));
    if (call_opt(c, "readonly"))
        put_param(c, params, "readonly", "on");
    if (call_opt(c, "force"))
        put_param(c, params, "allow-in-use", "yes");
    for (unsigned i = 0; (v = call_each(c, "set", &i));) {
        const char *eq = strchr(v, '=');
        if (!eq || eq == v)
            verb_usage(c, "--set wants NAME=VALUE, not \"%s\"", v);
        char *name = xasprintf("%.*s", (int)(eq - v), v);
        put_param(c, params, name, eq + 1);
        free(name);
    }
    if (thin && full)
        verb_usage(c, "--thin and --full exclude each other");
    if (full && !create)
        verb_usage(c, "--full goes with --create SIZE");
    if (thin && !json_object_get(params, "thin-provisioning"))
        put_param(c, params, "thin-provisioning", "on");
    if (create) {
        verb_size(c, create);
        if (!full && !thin)
            verb_say(c, "The file is thin (it takes space as it is written); --full reserves all.");
    }
    return params;
}

/* The daemon's "another LUN" by name, so that nobody has to look for it. */
static void
refused_store(struct call *c, const json_t *reply, const char *path)
{
    json_t *all, *t, *l;
    size_t i, k;
    struct stat a, b;
    const char *text = j_str(json_object_get(reply, "error"), "message");

    if (!strstr(text, "another LUN") && !strstr(text, "logical unit already"))
        verb_refused(c, reply);
    all = find_all(c);
    json_array_foreach(all, i, t)
    {
        json_array_foreach(json_object_get(t, "luns"), k, l)
        {
            const char *p = j_str(l, "path");
            if (*p && stat(p, &a) == 0 && stat(path, &b) == 0 &&
                (S_ISBLK(a.st_mode) ? S_ISBLK(b.st_mode) && a.st_rdev == b.st_rdev
                                    : a.st_dev == b.st_dev && a.st_ino == b.st_ino))
                verb_fail(c, VERB_NOT_DONE, "invalid",
                          "One store for several LUNs must have the same path and the same "
                          "settings everywhere.",
                          "%s is in use: it is LUN %lld of %s, by the path %s", path,
                          j_num(l, "lun"), j_str(t, "name"), p);
        }
    }
    verb_refused(c, reply);
}

int
verb_lun_add(struct call *c)
{
    json_t *params = add_params(c);
    struct target_id id = find_target(c, call_arg(c, 0));
    json_t *t = find_target_shown(c, &id);
    const char *path = j_str(params, "backing-store"), *create = call_opt(c, "create");
    long n = call_opt(c, "lun") ? (long)verb_number(c, "--lun", call_opt(c, "lun"), 0, LUN_MAX)
                                : lun_free(json_object_get(t, "luns"));

    if (create)
        create_store(c, params, create, call_opt(c, "full") != NULL);
    json_t *reply = verb_try(
        c, "logicalunit", "new",
        json_pack("{sI sI sO}", "tid", (json_int_t)id.tid, "lun", (json_int_t)n, "params", params));
    if (!j_is(reply, "ok"))
        refused_store(c, reply, path);
    verb_undo_none(c);
    json_decref(t);
    t = find_target_shown(c, &id);
    char *number = xasprintf("%ld", n);
    json_t *l = find_lun(c, t, number);
    if (verb_json(c, json_pack("{ss sO}", "target", id.name, "lun", l)))
        return 0;
    char *size = verb_size_text((uint64_t)j_num(l, "blocks") * (uint64_t)j_num(l, "block_size"));
    verb_say(c, "%s is LUN %ld of %s, %s%s.", *path ? path : "The null device", n, id.name, size,
             j_is(l, "readonly") ? ", read-only" : "");
    if (j_is(l, "volatile"))
        verb_say(c, "It is memory: what is written is lost when the daemon ends.");
    if (!j_is(l, "readonly") && !call_opt(c, "readonly"))
        verb_say(c, "Initiators that are logged in see it by themselves or after a rescan.");
    return 0;
}

/* While somebody thought about the answer, others may have changed the LUN. */
static void
same_still(struct call *c, const struct target_id *id, const char *path)
{
    json_t *t = find_target_shown(c, id), *l = find_lun(c, t, call_arg(c, 1));

    if (strcmp(j_str(l, "path"), path) != 0)
        verb_fail(c, VERB_NOT_DONE, "not-sure", NULL,
                  "the LUN is %s by now, not %s: nothing was done", j_str(l, "path"), path);
    json_decref(l);
    json_decref(t);
}

int
verb_lun_remove(struct call *c)
{
    bool erase = call_opt(c, "erase") != NULL;

    if (erase && call_opt(c, "keep"))
        verb_usage(c, "--keep and --erase exclude each other");
    struct target_id id = find_target(c, call_arg(c, 0));
    json_t *all = find_all(c), *t = find_target_shown(c, &id);
    json_t *l = find_lun(c, t, call_arg(c, 1));
    const char *path = j_str(l, "path");
    struct stat which;

    bool memory = strcmp(j_str(l, "bs_type"), "zram") == 0;
    if (erase && memory)
        verb_usage(c, "what is in memory is gone with the LUN: leave --erase out");
    if (erase) {
        file_erase_check(c, path, all, id.tid, j_num(l, "lun"), &which);
        same_still(c, &id, path);
    }
    verb_ask(c, "logicalunit", "delete",
             json_pack("{sI sI sb sb}", "tid", (json_int_t)id.tid, "lun",
                       (json_int_t)j_num(l, "lun"), "force", call_opt(c, "force") != NULL, "unused",
                       true));
    if (erase)
        file_erase(c, path, &which);
    if (verb_json(c, json_pack("{ss sI ss sb}", "target", id.name, "lun",
                               (json_int_t)j_num(l, "lun"), "path", path, "erased", erase)))
        return 0;
    verb_say(c, "LUN %lld of %s is gone%s%s%s.", j_num(l, "lun"), id.name, *path ? "; " : "", path,
             !*path   ? ""
             : memory ? " and what was in it, too, unless another target has it"
             : erase  ? " is erased"
                      : " stays as it is");
    return 0;
}

/* Until the daemon shows this many bytes, or another number than `had` when want is 0. */
static uint64_t
wait_size(struct call *c, const struct target_id *id, const char *lun, uint64_t had, uint64_t want)
{
    uint64_t now = had;
    for (unsigned ms = 0; ms <= NOTICE_MS; ms += LOOK_MS) {
        json_t *t = find_target_shown(c, id), *l = find_lun(c, t, lun);
        uint64_t block = (uint64_t)j_num(l, "block_size");
        now = (uint64_t)j_num(l, "blocks") * block;
        json_decref(l);
        json_decref(t);
        if (want ? now == want - want % (block ? block : 1) : now != had)
            break;
        clock_pause_ms(LOOK_MS);
    }
    return now;
}

static int
resized(struct call *c, const struct target_id *id, const char *lun, uint64_t had, uint64_t now)
{
    if (verb_json(c,
                  json_pack("{ss si sI sI}", "target", id->name, "lun", (int)strtol(lun, NULL, 10),
                            "had", (json_int_t)had, "bytes", (json_int_t)now)))
        return 0;
    char *a = verb_size_text(had), *b = verb_size_text(now);
    if (now == had)
        verb_say(c, "LUN %s of %s has %s, as before.", lun, id->name, b);
    else
        verb_say(c, "LUN %s of %s has %s now (it had %s).", lun, id->name, b, a);
    if (now > had)
        verb_say(c, "Initiators are told; some look only at a rescan (Linux: iscsiadm -m session "
                    "-R). Then the partition and the file system can grow.");
    return 0;
}

/* "+10G": more than there is. */
static uint64_t
wanted_size(struct call *c, const char *text, uint64_t had)
{
    return text[0] == '+' ? had + verb_size(c, text + 1) : verb_size(c, text);
}

/* Nothing but the daemon knows of it. */
static int
resize_memory(struct call *c, const struct target_id *id, const char *lun, uint64_t had)
{
    const char *text = call_arg(c, 2);

    if (!text)
        return resized(c, id, lun, had, had);
    char *size = xasprintf("%llu", (unsigned long long)wanted_size(c, text, had));
    verb_ask(c, "logicalunit", "update",
             json_pack("{sI sI s{ss}}", "tid", (json_int_t)id->tid, "lun",
                       (json_int_t)strtol(lun, NULL, 10), "params", "size", size));
    free(size);
    return resized(c, id, lun, had, wait_size(c, id, lun, had, 0));
}

int
verb_lun_resize(struct call *c)
{
    const char *lun = call_arg(c, 1), *text = call_arg(c, 2);
    struct stat st;
    uint64_t file_had = 0;

    struct target_id id = find_target(c, call_arg(c, 0));
    json_t *t = find_target_shown(c, &id), *l = find_lun(c, t, lun);
    const char *path = j_str(l, "path");
    uint64_t had = (uint64_t)j_num(l, "blocks") * (uint64_t)j_num(l, "block_size");

    if (!*path)
        verb_fail(c, VERB_NOT_DONE, "invalid", NULL, "the null device cannot be resized");
    if (strcmp(j_str(l, "bs_type"), "zram") == 0)
        return resize_memory(c, &id, lun, had);
    if (!text) /* a device, or a file that somebody else made larger */
        return resized(c, &id, lun, had, wait_size(c, &id, lun, had, 0));
    uint64_t block = (uint64_t)j_num(l, "block_size");
    uint64_t want = wanted_size(c, text, stat(path, &st) == 0 ? (uint64_t)st.st_size : had);
    if (block && want % block)
        verb_usage(c, "%s is not a whole number of blocks of %llu bytes", text,
                   (unsigned long long)block);
    bool full = call_opt(c, "full") || (!call_opt(c, "thin") && !j_is(l, "thin"));
    if (call_opt(c, "full") && call_opt(c, "thin"))
        verb_usage(c, "--thin and --full exclude each other");
    file_resize(c, path, want, full, &file_had);
    if (want < file_had) {
        verb_warn(c,
                  "%s is shorter: what was beyond is lost. Initiators keep the old size until the "
                  "LUN is removed and added again, and get errors beyond the new end",
                  path);
        return resized(c, &id, lun, file_had, want);
    }
    uint64_t now = wait_size(c, &id, lun, had, want);
    if (now != want)
        verb_fail(c, VERB_NOT_DONE, "not-noticed", "`lun list TARGET` shows its state.",
                  "%s has its new size, but the daemon has not noticed within %u s", path,
                  NOTICE_MS / 1000);
    return resized(c, &id, lun, had, now);
}

int
verb_lun_list(struct call *c)
{
    json_t *all, *t, *out = json_array();
    size_t i;

    if (call_arg(c, 0)) {
        struct target_id id = find_target(c, call_arg(c, 0));
        all = json_pack("[o]", find_target_shown(c, &id));
    } else {
        all = find_all(c);
    }
    json_array_foreach(all, i, t) json_array_append_new(
        out, json_pack("{sI ss sO}", "tid", (json_int_t)j_num(t, "tid"), "name", j_str(t, "name"),
                       "luns", json_object_get(t, "luns")));
    if (verb_json(c, json_pack("{sO}", "targets", out)))
        return 0;
    json_array_foreach(all, i, t)
    {
        char *name = out_paint(HEAD, j_str(t, "name"));
        printf("%s%s\n", i ? "\n" : "", name);
        if (json_array_size(json_object_get(t, "luns")))
            lun_table(json_object_get(t, "luns"));
        else
            printf("No LUNs.\n");
        free(name);
    }
    return 0;
}

int
verb_lun_set(struct call *c)
{
    json_t *params = settings_args(c, 2);
    unsigned n = verb_number(c, "LUN", call_arg(c, 1), 0, LUN_MAX);
    struct target_id id = find_target(c, call_arg(c, 0));

    verb_ask(c, "logicalunit", "update",
             json_pack("{sI si sO}", "tid", (json_int_t)id.tid, "lun", (int)n, "params", params));
    if (verb_json(c, json_pack("{ss si sO}", "target", id.name, "lun", (int)n, "set", params)))
        return 0;
    verb_say(c, "LUN %u of %s is changed.", n, id.name);
    return 0;
}
