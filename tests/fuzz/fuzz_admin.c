/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of the admin protocol, one after the other, against a model with a target.  The worker is
 * local; whatever a verb starts is driven to its end before the next input.  What is dumped after
 * the last is applied, and must change nothing.
 */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cstore.h"
#include "base/helper.h"
#include "target/admin_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct worker *w;
static unsigned answers;

static void
on_answer(struct admin_req *r, json_t *reply, void *arg)
{
    (void)r;
    (void)arg;
    if (!json_is_object(reply) || !json_is_boolean(json_object_get(reply, "ok")))
        abort();
    char *text = json_dumps(reply, JSON_COMPACT);
    if (!text)
        abort(); /* an answer can always be sent */
    free(text);
    json_decref(reply);
    answers++;
}

static void
nothing(void)
{
}

/* What the store wrote goes with the process, also when libFuzzer ends it. */
static char dir[] = "fuzz-admin-XXXXXX"; /* where it is run */

static void
remove_dir(void)
{
    DIR *d = opendir(dir);
    const struct dirent *e;

    while (d && (e = readdir(d)))
        (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    (void)rmdir(dir);
}

static void
set_up(void)
{
    struct worker_opts wo = {.engine = ENGINE_POOL};
    if (helper_pool_start(1, 2) < 0 || !(w = worker_new_local(&wo)))
        abort();
    worker_set_publish(&w, 1);
    tgt_worker_init(w);
    struct cstore *cs = mkdtemp(dir) ? cstore_open_dir(dir) : NULL;
    if (!cs || atexit(remove_dir) != 0)
        abort();
    model_init(w, cs);
    if (apply_seed() < 0)
        abort();
    model.usual_portals = true; /* a configuration without portals changes none of them */
    admin_stop_daemon = nothing;
}

static void
on_dump(struct admin_req *r, json_t *reply, void *arg)
{
    (void)r;
    *(json_t **)arg = reply;
}

static json_t *
ask(json_t *request)
{
    struct admin_req *slot;
    json_t *reply = NULL;
    char *line = json_dumps(request, JSON_COMPACT);

    json_decref(request);
    admin_req_run(line, strlen(line), &slot, on_dump, &reply);
    while (!reply)
        worker_turn(w, true);
    free(line);
    return reply;
}

/* A dump can be read and says what there is: no text breaks out of its directive. */
static void
dump_and_apply(void)
{
    json_t *dump = ask(json_pack("{si ss ss s{sb}}", "v", 1, "mode", "config", "op", "dump", "args",
                                 "secrets", 1));
    json_t *text = json_object_get(json_object_get(dump, "data"), "text");
    json_t *bundle =
        json_pack("{si ss ss sb si s[] s[{ss sO sb si si si}]}", "version", 1, "name", "/f",
                  "syntax", "evtgt", "memory", 0, "uid", 0, "lists", "files", "path", "/f", "text",
                  text, "regular", 1, "mode", 0600, "uid", 0, "gid", 0);
    if (!bundle)
        abort();
    json_t *got = ask(json_pack("{si ss ss s{so sb}}", "v", 1, "mode", "config", "op", "apply",
                                "args", "bundle", bundle, "pretend", 1));
    if (!json_is_true(json_object_get(got, "ok")) ||
        json_array_size(json_object_get(json_object_get(got, "data"), "changes"))) {
        fprintf(stderr, "%s\n%s\n", json_string_value(text), json_dumps(got, JSON_INDENT(1)));
        abort();
    }
    json_decref(dump);
    json_decref(got);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct admin_req *slot;
    unsigned asked = 0;
    const char *p = (const char *)data, *end = p + size;

    if (!w)
        set_up();
    if (!model_target_find(1))
        model_target_new(1, "iqn.2001-04.org.example:fuzz");
    answers = 0;
    while (p < end && asked < 16) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);
        /* real portals and files are no business of a fuzzer */
        if (n && !memmem(p, n, "portal", 6) && !memchr(p, '/', n) && !memmem(p, n, "\\u", 2)) {
            admin_req_run(p, n, &slot, on_answer, NULL);
            asked++;
            while (answers < asked)
                worker_turn(w, true);
        }
        p += n + 1;
    }
    dump_and_apply();
    return 0;
}
