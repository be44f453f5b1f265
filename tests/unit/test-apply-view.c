/* SPDX-License-Identifier: BSD-2-Clause */
/* target/apply_view.c: whatever a configuration may set is found again in that of the daemon. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cstore.h"
#include "base/helper.h"
#include "base/pool.h"
#include "base/secret.h"
#include "target/apply.h"
#include "target/apply_store.h"
#include "target/isns.h"
#include "tests/unit/conf_given.h"
#include "tests/unit/unit.h"

static struct worker *w;

static struct conf *
parse(const char *text, bool judged)
{
    struct conf_report r;

    conf_report_init(&r);
    struct conf *c = conf_parse("f", text, strlen(text), judged ? apply_checks() : NULL, &r);
    for (unsigned i = 0; i < r.n && !c; i++)
        printf("%u: %s\n", r.v[i].line, r.v[i].text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    conf_report_fini(&r);
    return c;
}

static void
on_flag(void *arg)
{
    *(bool *)arg = true;
}

/* As apply_start and apply_commit do, but nothing is opened. */
static void
become(const struct conf *c)
{
    struct isns_settings s;
    char err[512] = "", alone[64];

    apply_globals_set(c);
    CU_ASSERT_EQUAL(apply_isns(c, &s, err, sizeof err), 0);
    CU_ASSERT_EQUAL(isns_change(&s, err, sizeof err), 0);
    for (unsigned i = 0; i < c->ntargets; i++) {
        const struct conf_target *ct = &c->targets[i];
        struct model_target *t = model_target_new(ct->tid, ct->name);
        apply_target_set(t, ct);
        for (unsigned k = 0; k < ct->nluns; k++) {
            snprintf(alone, sizeof alone, "%u %d", i, ct->luns[k].number);
            struct store *st = apply_store_new(&ct->luns[k], alone);
            model_lun_add(t, (unsigned)ct->luns[k].number, st);
            apply_store_drop(st);
        }
    }
    apply_unbound_set(&c->unbound);
}

static void
forget(void)
{
    while (!list_is_empty(&model.targets)) {
        struct model_target *t = list_first(&model.targets, struct model_target, link);
        while (!list_is_empty(&t->luns)) {
            struct model_lun *l = list_first(&t->luns, struct model_lun, link);
            struct store *s = l->store;
            bool gone = false;
            model_lun_del(t, l);
            apply_store_drop_then(s, on_flag, &gone);
            while (!gone)
                worker_turn(w, true);
        }
        model_target_free(t);
    }
}

/* Where no socket is opened there is no portal; identities stand at the logical units. */
static bool
is_elsewhere(const char *directive)
{
    static const char *const names[] = {"portal", "group", "advertise", "ids"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], directive) == 0)
            return true;
    }
    return false;
}

static void
on_diff(void *arg, const struct conf_difference *d)
{
    if (is_elsewhere(d->directive))
        return;
    printf("%s is lost or came (target %s, lun %d)\n", d->directive, d->of ? d->of : "-", d->lun);
    *(bool *)arg = true;
}

static bool
differs(const struct conf *a, const struct conf *b)
{
    bool any = false;

    (void)conf_globals_diff(a, b, on_diff, &any);
    CU_ASSERT_EQUAL_FATAL(a->ntargets, b->ntargets);
    for (unsigned i = 0; i < a->ntargets; i++) {
        const struct conf_target *t = conf_find_target(b, a->targets[i].name);
        CU_ASSERT_PTR_NOT_NULL_FATAL(t);
        CU_ASSERT_EQUAL(t->tid, a->targets[i].tid);
        (void)conf_target_diff(&a->targets[i], t, on_diff, &any);
    }
    return any;
}

/* The daemon becomes what the text says: it looks like that, its dump says the same, and applying
 * the text once more would change nothing. */
static void
check(const char *text, bool judged)
{
    struct conf *c = parse(text, judged);
    struct apply_plan p = {.n = 0};

    become(c);
    struct conf *v = apply_view();
    char *dump = apply_dump(NULL, true);
    /* a target that names a portal cannot be read without it */
    struct conf *back = c->nportals ? NULL : parse(dump, judged);
    if (differs(c, v) || (back && differs(c, back))) {
        printf("%s--- dumped:\n%s", text, dump);
        CU_FAIL("lost");
    }
    if (c->nportals == 0 && judged) {
        apply_diff(&p, v, c, NULL);
        for (unsigned i = 0; i < p.n; i++)
            printf("%s: would change again\n", p.v[i].what);
        CU_ASSERT_EQUAL(p.n, 0);
        apply_plan_fini(&p);
    }
    secret_free_text(dump);
    conf_free(back);
    conf_free(v);
    conf_free(c);
    forget();
}

static void
applied_again(const char *text)
{
    struct conf *c = parse(text, true);
    struct apply_plan p = {.n = 0};

    become(c);
    struct conf *v = apply_view();
    apply_diff(&p, v, c, NULL);
    for (unsigned i = 0; i < p.n; i++)
        printf("%s: would change again\n%s", p.v[i].what, text);
    CU_ASSERT_EQUAL(p.n, 0);
    apply_plan_fini(&p);
    conf_free(v);
    conf_free(c);
    forget();
}

static void
test_each_directive(void)
{
    for (size_t i = 0; i < GIVEN; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s%s\n%s", given[i].before, given[i].line, given[i].after);
        check(text, !given[i].unjudged);
        /* and the daemon forgets it */
        snprintf(text, sizeof text, "%s%s\n%s", given[i].before,
                 given[i].instead ? given[i].instead : "", given[i].after);
        check(text, !given[i].unjudged);
    }
}

/* What says the default is no change, neither at first nor when it is applied again. */
static void
test_defaults_said(void)
{
    static const char *const texts[] = {
        "chap-legacy-sha1-7 off\n",
        "chap-algorithms md5,sha1,sha256,sha3-256\n",
        "discovery-filter name\n",
        "login-timeout 15\n",
        "iSNSServerPort 3205\niSNS Off\n",
        T "MaxQueueCmd 128\nstate ready\ndiscoverable yes\nMaxBurstLength 262144\n" E,
        T "InitialR2T No\nHeaderDigest None\n" E,
        T "RedirectAddress none\n" E,
        T B "online on\nreadonly no\nremovable off\nsense_format 0\n" F E,
        T B "lun 1\nla_lba 0\n" F E,
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        applied_again(texts[i]);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"each directive is found in the daemon's", test_each_directive},
        {"defaults that are said", test_defaults_said},
    };
    static const uint8_t seed[32];
    struct worker_opts wo = {.engine = ENGINE_POOL};
    struct isns_settings off;

    if (helper_pool_start(1, 2) < 0 || !(w = worker_new_local(&wo)))
        return 1;
    worker_set_publish(&w, 1);
    tgt_worker_init(w);
    model_init(w, NULL);
    isns_settings_init(&off);
    isns_start(w, &off, seed);
    _exit(UNIT_RUN("apply-view", tests)); /* the worker has no end in a daemon either */
}
