/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of compressed memory: the daemon's own LUNs, and the kernel's zram devices beside them. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "tools/verb.h"
#include "tools/verb_parts.h"
#include "tools/zram_kernel.h"

#define SYS "/sys"

int
verb_lun_acknowledge(struct call *c)
{
    unsigned n = verb_number(c, "LUN", call_arg(c, 1), 0, 16383);
    struct target_id id = find_target(c, call_arg(c, 0));

    verb_ask(c, "logicalunit", "acknowledge",
             json_pack("{sI si}", "tid", (json_int_t)id.tid, "lun", (int)n));
    if (verb_json(c, json_pack("{ss si}", "target", id.name, "lun", (int)n)))
        return 0;
    verb_say(c, "LUN %u of %s is ready, and empty.", n, id.name);
    return 0;
}

/* --- the daemon's ---------------------------------------------------------------------------- */

static void
size_cell(struct table *t, const json_t *o, const char *name)
{
    char *s = verb_size_text((uint64_t)j_num(o, name));

    table_cell(t, PLAIN, "%s", s);
    free(s);
}

static void
ratio_cell(struct table *t, double data, double compressed)
{
    if (compressed > 0)
        table_cell(t, PLAIN, "%.2f", data / compressed);
    else
        table_cell(t, PLAIN, "-");
}

static void
unit_row(struct table *t, const json_t *u)
{
    const json_t *mm = json_object_get(u, "mm_stat");

    table_cell(t, PLAIN, "%s", j_str(u, "target"));
    table_cell(t, PLAIN, "%lld", j_num(u, "lun"));
    table_cell(t, PLAIN, "%s", j_str(u, "name"));
    if (j_num(u, "level"))
        table_cell(t, PLAIN, "%s %lld", j_str(u, "algorithm"), j_num(u, "level"));
    else
        table_cell(t, PLAIN, "%s", j_str(u, "algorithm"));
    size_cell(t, u, "disksize");
    size_cell(t, mm, "orig_data_size");
    size_cell(t, mm, "mem_used_total");
    ratio_cell(t, (double)j_num(mm, "orig_data_size"), (double)j_num(mm, "mem_used_total"));
    if (j_num(u, "mem_limit"))
        size_cell(t, u, "mem_limit");
    else
        table_cell(t, PLAIN, "none");
    table_cell(t, j_is(u, "awaits_ack") ? BAD : PLAIN, "%s",
               j_is(u, "awaits_ack") ? "volatile, not acknowledged" : "volatile");
}

int
verb_zram_show(struct call *c)
{
    static const char *const heads[] = {"TARGET", "LUN",    "NAME",  "ALGORITHM", "SIZE",
                                        "DATA",   "MEMORY", "RATIO", "LIMIT",     "STATE"};
    json_t *data = verb_ask(c, "zram", "show", NULL), *u;
    struct table t;
    size_t i;

    if (verb_json(c, json_incref(data)))
        return 0;
    if (json_array_size(json_object_get(data, "units")) == 0) {
        printf("No LUNs in compressed memory.\n");
        return 0;
    }
    table_init(&t, sizeof heads / sizeof *heads, heads);
    json_array_foreach(json_object_get(data, "units"), i, u) unit_row(&t, u);
    table_print(&t);
    return 0;
}

/* The daemon does it piece by piece, so that it can be stopped at any time. */
static int
work(struct call *c, const char *op, json_t *more)
{
    struct target_id id = find_target(c, call_arg(c, 0));
    unsigned n = verb_number(c, "LUN", call_arg(c, 1), 0, 16383);
    long long seen = 0, done = 0, gained = 0;
    bool again = true;

    while (again) {
        json_t *args = json_pack("{sI si}", "tid", (json_int_t)id.tid, "lun", (int)n);
        json_object_update(args, more);
        json_t *d = verb_ask(c, "zram", op, args);
        again = j_is(d, "again");
        seen += j_num(d, "seen");
        done += j_num(d, "done");
        gained += j_num(d, "gained");
        json_decref(d);
    }
    json_decref(more);
    if (verb_json(c, json_pack("{ss si sI sI sI}", "target", id.name, "lun", (int)n, "seen",
                               (json_int_t)seen, "done", (json_int_t)done, "gained",
                               (json_int_t)gained)))
        return 0;
    char *size = verb_size_text(gained > 0 ? (uint64_t)gained : 0);
    verb_say(c, "%lld objects of %lld were %s, which gains %s.", done, seen,
             strcmp(op, "compact") == 0 ? "moved" : "made smaller", size);
    free(size);
    return 0;
}

int
verb_zram_compact(struct call *c)
{
    return work(c, "compact", json_object());
}

int
verb_zram_recompress(struct call *c)
{
    const char *algorithm = call_opt(c, "algorithm"), *idle = call_opt(c, "idle");

    if (!algorithm)
        verb_usage(c, "--algorithm NAME[:LEVEL] is wanted");
    json_t *more =
        json_pack("{ss sb}", "algorithm", algorithm, "huge", call_opt(c, "huge") != NULL);
    if (idle)
        json_object_set_new(more, "idle",
                            json_integer(verb_number(c, "--idle", idle, 0, 1u << 30)));
    return work(c, "recompress", more);
}

/* --- the kernel's ---------------------------------------------------------------------------- */

static json_t *
named(const char *const *names, const uint64_t *v, unsigned n)
{
    json_t *o = json_object();

    for (unsigned i = 0; i < n; i++)
        json_object_set_new(o, names[i], json_integer((json_int_t)v[i]));
    return o;
}

static void
on_device(void *arg, const struct zram_device *d)
{
    char *path = xasprintf("/dev/zram%u", d->number);
    json_t *o = json_pack("{ss sI ss ss so so}", "device", path, "disksize", (json_int_t)d->size,
                          "comp_algorithm", d->algorithm, "backing_dev", d->backing, "mm_stat",
                          named(zram_mm_names, d->mm, ZRAM_MM), "io_stat",
                          named(zram_io_names, d->io, ZRAM_IO));

    if (d->has_bd)
        json_object_set_new(o, "bd_stat", named(zram_bd_names, d->bd, ZRAM_BD));
    json_array_append_new(arg, o);
    free(path);
}

int
verb_zram_list(struct call *c)
{
    static const char *const heads[] = {"DEVICE", "ALGORITHM", "SIZE",   "DATA",
                                        "MEMORY", "RATIO",     "BACKING"};
    json_t *list = json_array(), *d;
    struct table t;
    size_t i;

    bool any = zram_kernel_each(SYS, on_device, list);
    if (verb_json(c, json_pack("{sO sb}", "devices", list, "available", any)))
        return 0;
    if (json_array_size(list) == 0) {
        printf(any ? "No zram devices of the kernel.\n"
                   : "This kernel has no zram, or its module is not loaded.\n");
        return 0;
    }
    table_init(&t, sizeof heads / sizeof *heads, heads);
    json_array_foreach(list, i, d)
    {
        const json_t *mm = json_object_get(d, "mm_stat");
        table_cell(&t, PLAIN, "%s", j_str(d, "device"));
        table_cell(&t, PLAIN, "%s", j_str(d, "comp_algorithm"));
        if (j_num(d, "disksize"))
            size_cell(&t, d, "disksize");
        else
            table_cell(&t, PLAIN, "not set up");
        size_cell(&t, mm, "orig_data_size");
        size_cell(&t, mm, "mem_used_total");
        ratio_cell(&t, (double)j_num(mm, "orig_data_size"), (double)j_num(mm, "mem_used_total"));
        table_cell(&t, PLAIN, "%s", *j_str(d, "backing_dev") ? j_str(d, "backing_dev") : "none");
    }
    table_print(&t);
    return 0;
}

static void
undo_make(struct call *c, void *arg)
{
    char err[256];
    (void)c;
    (void)zram_kernel_remove(SYS, *(const unsigned *)arg, err, sizeof err);
}

/* As `lun add TARGET /dev/zramN --set bs-type=blockio`. */
static long
serve(struct call *c, const struct target_id *id, const char *path)
{
    json_t *t = find_target_shown(c, id);
    long n = lun_free(json_object_get(t, "luns"));

    verb_ask(c, "logicalunit", "new",
             json_pack("{sI sI s{ss ss ss}}", "tid", (json_int_t)id->tid, "lun", (json_int_t)n,
                       "params", "backing-store", path, "bs-type", "blockio", "thin-provisioning",
                       "on"));
    json_decref(t);
    return n;
}

int
verb_zram_create(struct call *c)
{
    static unsigned number;
    const char *size = call_opt(c, "size"), *target = call_opt(c, "target"), *v;
    struct zram_wish w = {.algorithm = call_opt(c, "algorithm"), .backing = call_opt(c, "backing")};
    struct target_id id = {0, NULL};
    char err[512];
    long lun = -1;

    if (!size)
        verb_usage(c, "--size SIZE is wanted");
    w.size = verb_size(c, size);
    w.mem_limit = (v = call_opt(c, "mem-limit")) ? verb_size(c, v) : 0;
    w.level = (v = call_opt(c, "level")) ? verb_number(c, "--level", v, 1, 100) : 0;
    w.compressed_writeback = call_opt(c, "compressed-writeback") != NULL;
    if (w.compressed_writeback && !w.backing)
        verb_usage(c, "--compressed-writeback goes with --backing DEVICE");
    if (c->persist && !target)
        verb_usage(c, "--persist goes with --target: the kernel forgets its zram devices");
    if (target)
        id = find_target(c, target);
    int n = zram_kernel_make(SYS, &w, err, sizeof err);
    if (n < 0)
        verb_fail(c, VERB_NOT_DONE, "zram", NULL, "%s", err);
    number = (unsigned)n;
    verb_undo(c, undo_make, &number);
    char *path = xasprintf("/dev/zram%u", number);
    if (target)
        lun = serve(c, &id, path);
    verb_undo_none(c);
    json_t *data = json_pack("{ss sI}", "device", path, "disksize", (json_int_t)w.size);
    if (target) {
        json_object_set_new(data, "target", json_string(id.name));
        json_object_set_new(data, "lun", json_integer(lun));
    }
    if (verb_json(c, data))
        return 0;
    verb_say(c, "%s is there, and empty; it ends with the machine.", path);
    if (target)
        verb_say(c, "It is LUN %ld of %s.", lun, id.name);
    else
        verb_say(c, "To serve it: evtgtadm lun add TARGET %s --set bs-type=blockio", path);
    return 0;
}

int
verb_zram_remove(struct call *c)
{
    const char *given = call_arg(c, 0), *p = given;
    char err[512];

    p += strncmp(p, "/dev/", 5) == 0 ? 5 : 0;
    p += strncmp(p, "zram", 4) == 0 ? 4 : 0;
    unsigned n = verb_number(c, "DEVICE (such as /dev/zram1, or its number)", p, 0, 65535);
    if (zram_kernel_remove(SYS, n, err, sizeof err) < 0)
        verb_fail(c, VERB_NOT_DONE, "zram", "A LUN that has it goes first: evtgtadm lun remove.",
                  "%s", err);
    char *path = xasprintf("/dev/zram%u", n);
    if (verb_json(c, json_pack("{ss}", "device", path)))
        return 0;
    verb_say(c, "%s is gone, with what was in it.", path);
    return 0;
}
