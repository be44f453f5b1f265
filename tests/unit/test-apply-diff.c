/* SPDX-License-Identifier: BSD-2-Clause */
/* conf/copy.c and target/apply_diff*.c: configurations laid over one another, and what differs. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "target/apply.h"
#include "tests/unit/unit.h"

#define A "iqn.2001-04.a:a"
#define B "iqn.2001-04.a:b"

static struct conf *
read_text(const char *text)
{
    struct conf_report r;
    conf_report_init(&r);
    struct conf *c = conf_parse("t", text, strlen(text), apply_checks(), &r);
    if (!c)
        printf("%u: %s\n", r.v[0].line, r.v[0].text);
    CU_ASSERT_PTR_NOT_NULL_FATAL(c);
    conf_report_fini(&r);
    return c;
}

/* "how:what;" of each change but those that only belong to others. */
static void
plan_text(const char *have, const char *want, char *out, size_t size)
{
    struct conf *h = read_text(have), *w = read_text(want);
    struct apply_plan p = {.n = 0};
    size_t n = 0;

    out[0] = 0;
    apply_diff(&p, h, w, NULL);
    for (unsigned i = 0; i < p.n; i++) {
        if (p.v[i].what[0])
            n += (size_t)snprintf(out + n, size - n, "%s:%s;", apply_how_name(p.v[i].how),
                                  p.v[i].what);
    }
    apply_plan_fini(&p);
    conf_free(h);
    conf_free(w);
}

static void
is_plan(const char *have, const char *want, const char *expected)
{
    char got[4096];
    plan_text(have, want, got, sizeof got);
    if (strcmp(got, expected) != 0)
        printf("got \"%s\", not \"%s\"\n", got, expected);
    CU_ASSERT_STRING_EQUAL(got, expected);
    plan_text(want, want, got, sizeof got);
    CU_ASSERT_STRING_EQUAL(got, "");
}

#define T(name, lines) "<target " name ">\ninitiator-address ALL\n" lines "</target>\n"
#define LUN(lines)     "<backing-store /a>\nlun 3\n" lines "</backing-store>\n"

static void
test_targets(void)
{
    is_plan(T(A, ""), T(A, "") T(B, "backing-store /b\n"),
            "live:target added, tid 2;live:lun 1 added: /b;");
    is_plan(T(A, "") T(B, ""), T(A, ""), "sessions:target deleted;");
    is_plan(T(A, ""), T(A, "state offline\n"), "sessions:state offline;");
    is_plan(T(A, ""), T(A, "alias x\nMaxBurstLength 4096\n"),
            "live:alias \"x\";live:MaxBurstLength 4096;");
    is_plan(T(A, "MaxQueueCmd 128\n"), T(A, ""), "");
    is_plan(T(A, ""), T(A, "initiator-name iqn.*\nlocal-address 10.0.0.1\n"),
            "live:initiator-name iqn.* added;live:local-address 10.0.0.1 added;");
    is_plan(T(A, "RedirectAddress 10.0.0.1:3261\n"),
            T(A, "RedirectAddress 10.0.0.1\nRedirectPort 3261\n"), "");
}

static void
test_accounts(void)
{
    is_plan(T(A, ""), T(A, "incominguser u abcdefghijkl\n"), "live:incominguser u added;");
    is_plan(T(A, "incominguser u abcdefghijkl\n"), T(A, "incominguser u abcdefghijkm\n"),
            "live:incominguser u changed;");
    is_plan(T(A, "incominguser u abcdefghijkl\n"), T(A, ""), "live:incominguser u deleted;");
    is_plan(T(A, "outgoinguser o abcdefghijkn\nincominguser u abcdefghijkl\n"),
            T(A, "incominguser u abcdefghijkl\noutgoinguser o abcdefghijkn\n"), "");
    is_plan(T(A, "incominguser u abcdefghijkl\nincominguser v abcdefghijkm\n"),
            T(A, "incominguser v abcdefghijkm\nincominguser u abcdefghijkl\n"),
            "live:user accounts in another order;");
}

static void
test_luns(void)
{
    is_plan(T(A, LUN("")), T(A, ""), "lun:lun 3 deleted;");
    is_plan(T(A, LUN("")), T(A, LUN("vendor_id ME\n")), "live:lun 3 changed;");
    is_plan(T(A, LUN("")), T(A, LUN("block-size 4096\n")),
            "lun:lun 3 replaced: /a with other settings;");
    is_plan(T(A, LUN("")), T(A, "<backing-store /b>\nlun 3\n</backing-store>\n"),
            "lun:lun 3 replaced: /b, not /a;");
    /* one store of two targets: one that alone changes gets a unit of its own */
    is_plan(T(A, LUN("allow-in-use yes\n")) T(B, LUN("allow-in-use yes\n")),
            T(A, LUN("allow-in-use yes\n")) T(B, LUN("allow-in-use yes\nvendor_id ME\n")),
            "lun:lun 3 changed;");
    is_plan(T(A, LUN("")) T(B, LUN("")), T(A, LUN("vendor_id ME\n")) T(B, LUN("vendor_id ME\n")),
            "live:lun 3 changed;live:lun 3 changed;");
}

static void
test_daemon(void)
{
    is_plan("", "workers 3\nlogin-timeout 9\n", "restart:workers;live:login-timeout 9;");
    is_plan("", "discovery-filter all\n", "live:discovery-filter;");
    is_plan("", "portal 127.0.0.1:9\n", "live:portal 127.0.0.1:9 added;");
}

static void
test_merge(void)
{
    struct conf *base = read_text("max-sessions 5\n" T(A, "controller_tid 7\n") T(B, ""));
    struct conf *over = read_text("max-sessions 6\n" T(A, "alias new\n"));
    const char *names[] = {A};
    const struct conf_parts part = {.names = names, .n = 1}, all = {.all = true, .globals = true};

    struct conf *c = conf_merge(base, over, &part);
    CU_ASSERT_EQUAL(c->max_sessions, 5);
    CU_ASSERT_EQUAL_FATAL(c->ntargets, 2);
    CU_ASSERT_EQUAL(conf_find_target(c, A)->tid, 7); /* nobody chose another */
    CU_ASSERT_STRING_EQUAL(conf_find_target(c, A)->alias, "new");
    conf_free(c);
    c = conf_merge(base, over, &all);
    CU_ASSERT_EQUAL(c->max_sessions, 6);
    CU_ASSERT_EQUAL_FATAL(c->ntargets, 1);
    conf_free(base);
    conf_free(over);
    CU_ASSERT_STRING_EQUAL(c->targets[0].alias, "new"); /* nothing is borrowed */
    conf_free(c);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"targets", test_targets},   {"accounts", test_accounts},      {"logical units", test_luns},
        {"the daemon", test_daemon}, {"one over another", test_merge},
    };
    return UNIT_RUN("apply-diff", tests);
}
