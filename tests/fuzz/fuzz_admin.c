/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of the admin protocol, one after the other, against a model with a target.  The worker is
 * local; whatever a verb starts is driven to its end before the next input.
 */
#include "config.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

static void
set_up(void)
{
    struct worker_opts wo = {.engine = ENGINE_POOL};
    if (helper_pool_start(1, 2) < 0 || !(w = worker_new_local(&wo)))
        abort();
    worker_set_publish(&w, 1);
    tgt_worker_init(w);
    model_init(w, NULL);
    admin_stop_daemon = nothing;
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
    return 0;
}
