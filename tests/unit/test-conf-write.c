/* SPDX-License-Identifier: BSD-2-Clause */
/* conf/write.c and diff.c: what is written reads the same, whatever the values; what differs is
 * named. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/priv.h"
#include "target/model.h"
#include "tests/unit/conf_given.h"
#include "tests/unit/unit.h"

static struct conf *
parse_with(const char *text, const struct conf_checks *checks)
{
    struct conf_report r;

    conf_report_init(&r);
    struct conf *c = conf_parse("f", text, strlen(text), checks, &r);
    if (!c) {
        printf("%s\n", text);
        for (unsigned i = 0; i < r.n; i++)
            printf("%u:%u: %s\n", r.v[i].line, r.v[i].col, r.v[i].text);
        CU_FAIL_FATAL("refused");
    }
    conf_report_fini(&r);
    return c;
}

static bool
    unjudged; /* without the daemon's checks: it has none of the options that there may be */

static struct conf *
parse(const char *text)
{
    return parse_with(text, unjudged ? NULL : apply_checks());
}

static void
on_diff(void *arg, const struct conf_difference *d)
{
    static const char *const how[] = {"", "+", "-"};
    char *out = arg;
    size_t n = strlen(out);
    if (d->lun >= 0)
        snprintf(out + n, 1024 - n, "%s%s/%d ", how[d->how], d->directive, d->lun);
    else
        snprintf(out + n, 1024 - n, "%s%s ", how[d->how], d->directive);
}

/* Written and read again it is the same, and written again the same text. */
static void
round_trip(const char *text)
{
    struct conf *c = parse(text);
    char *w = conf_write(c, CONF_WRITE_SECRETS);
    struct conf *back = parse(w);
    char *again = conf_write(back, CONF_WRITE_SECRETS);
    CU_ASSERT_STRING_EQUAL(w, again);
    if (!conf_same(c, back)) {
        char diff[1024] = "";
        conf_globals_diff(c, back, on_diff, diff);
        for (unsigned i = 0; i < c->ntargets && i < back->ntargets; i++)
            conf_target_diff(&c->targets[i], &back->targets[i], on_diff, diff);
        printf("differs in %s\n%s--- written:\n%s", diff, text, w);
        CU_FAIL("not the same");
    }
    secret_free_text(w);
    secret_free_text(again);
    conf_free(c);
    conf_free(back);
}

/* Which directives made a difference, and where: a row of each scope that it may stand in. */
static struct {
    const char *name;
    enum conf_scope scope;
} seen[400];
static unsigned nseen;

static void
on_seen(void *arg, const struct conf_difference *d)
{
    (void)arg;
    if (nseen < sizeof seen / sizeof *seen) {
        seen[nseen].name = d->directive;
        seen[nseen++].scope = d->lun >= 0                      ? SC_LUN
                              : !d->of                         ? SC_GLOBAL
                              : strncmp(d->of, "iqn.", 4) == 0 ? SC_TARGET
                                                               : SC_PORTAL;
    }
}

/* With and without the line: they differ, and what is written keeps the difference. */
static void
test_each_directive(void)
{
    for (size_t i = 0; i < GIVEN; i++) {
        char with[2048], without[2048];
        snprintf(with, sizeof with, "%s%s\n%s", given[i].before, given[i].line, given[i].after);
        snprintf(without, sizeof without, "%s%s\n%s", given[i].before,
                 given[i].instead ? given[i].instead : "", given[i].after);
        unjudged = given[i].unjudged;
        round_trip(with);
        struct conf *a = parse(with), *b = parse(without);
        CU_ASSERT_FALSE(conf_same(a, b));
        (void)conf_globals_diff(a, b, on_seen, NULL);
        for (unsigned t = 0; t < a->ntargets && t < b->ntargets; t++)
            (void)conf_target_diff(&a->targets[t], &b->targets[t], on_seen, NULL);
        if (conf_same(a, b))
            printf("%s: no difference\n", given[i].name);
        conf_free(a);
        conf_free(b);
    }
}

/* Rows that are understood and change nothing that is kept. */
static const char *const not_kept[] = {
    "default-driver",
    "ignore-errors",
    "control-port",
    "syntax",
    "target",
    "include",
    "driver",
    "MaxXmitDataSegmentLength",
    "IFMarkInt",
    "OFMarkInt",
    "RDMAExtensions",
    "TargetRecvDataSegmentLength",
    "InitiatorRecvDataSegmentLength",
    "MaxOutstandingUnexpectedPDUs",
    "device-type",
};

static void
test_all_directives(void)
{
    const char *name;
    bool understood, found;

    for (unsigned i = 0; (name = conf_directive(i, &understood)); i++) {
        found = !understood;
        for (size_t k = 0; k < GIVEN; k++)
            found |= strcmp(given[k].name, name) == 0;
        for (size_t k = 0; k < sizeof not_kept / sizeof *not_kept; k++)
            found |= strcmp(not_kept[k], name) == 0;
        CU_ASSERT(found);
        if (!found)
            printf("%s has no row in conf_given.h\n", name);
    }
}

static void
test_all_scopes(void)
{
    static const enum conf_scope scopes[] = {SC_GLOBAL, SC_PORTAL, SC_TARGET, SC_LUN};
    const struct directive *d;

    for (unsigned r = 0; (d = table_row(r)); r++) {
        for (unsigned s = 0; s < sizeof scopes / sizeof *scopes; s++) {
            bool found = !table_shown(d, scopes[s]) || d->type == &type_lun; /* who it is */
            for (unsigned i = 0; i < nseen && !found; i++)
                found = seen[i].scope == scopes[s] && strcmp(seen[i].name, d->name) == 0;
            CU_ASSERT(found);
            if (!found)
                printf("%s of scope %d: no row in conf_given.h\n", d->name, (int)scopes[s]);
        }
    }
}

/* Values of the characters that mean something somewhere, all texts of up to `len` of them. */
static const char meaning[] = {'a', ' ', '\t', '"', '\'', '\\',   '#', '=',
                               '<', '>', '/',  '*', '\r', '\xe4', '@', ','};

static void
check_value(const char *v)
{
    struct conf_target t;

    conf_target_init(&t);
    snprintf(t.name, sizeof t.name, "%s", v);
    t.tid = 1;
    t.alias = v;
    char *w = conf_write_target(&t, 0);
    struct conf *c = parse_with(w, NULL);
    CU_ASSERT_EQUAL_FATAL(c->ntargets, 1);
    if (strcmp(c->targets[0].alias, v) != 0 || strcmp(c->targets[0].name, v) != 0) {
        printf("\"%s\" became \"%s\" and \"%s\":\n%s", v, c->targets[0].alias, c->targets[0].name,
               w);
        CU_FAIL_FATAL("another value");
    }
    conf_free(c);
    secret_free_text(w);
    conf_target_fini(&t);
}

static void
check_account(const char *user, const char *secret)
{
    struct conf_target t;

    conf_target_init(&t);
    snprintf(t.name, sizeof t.name, "t");
    t.accounts.v = xcalloc(1, sizeof *t.accounts.v);
    t.accounts.n = 1;
    t.accounts.v[0].user = xstrdup(user);
    t.accounts.v[0].secret = secret_new(secret, strlen(secret));
    char *w = conf_write_target(&t, CONF_WRITE_SECRETS);
    struct conf *c = parse_with(w, NULL);
    bool same = c->targets[0].accounts.n == 1 &&
                strcmp(c->targets[0].accounts.v[0].user, user) == 0 &&
                secret_same(c->targets[0].accounts.v[0].secret, t.accounts.v[0].secret);
    if (!same) {
        printf("user \"%s\", secret \"%s\":\n%s", user, secret, w);
        CU_FAIL_FATAL("another account");
    }
    conf_free(c);
    secret_free_text(w);
    conf_target_fini(&t);
}

static void
test_any_value(void)
{
    const size_t m = sizeof meaning;
    char v[5], u[5];

    for (size_t i = 0; i < m * m * m; i++) {
        snprintf(v, sizeof v, "%c%c%c", meaning[i % m], meaning[i / m % m], meaning[i / m / m]);
        check_value(v);
        snprintf(u, sizeof u, "%c%c", meaning[i / m % m], meaning[i / m / m]);
        check_account(u, v);
    }
    for (unsigned b = 1; b < 256; b++) {
        snprintf(v, sizeof v, "a%cb", (int)b);
        snprintf(u, sizeof u, "%c", (int)b);
        CU_ASSERT_EQUAL(conf_can_write(v), b != '\n');
        if (b != '\n') {
            check_value(v);
            check_value(u);
            check_account(u, v);
        }
    }
    srandom(1);
    for (unsigned i = 0; i < 3000; i++) {
        char a[40], b[40];
        size_t n = 1 + (size_t)random() % 30, k = 1 + (size_t)random() % 30;
        for (size_t j = 0; j < n; j++)
            a[j] = meaning[(size_t)random() % m];
        for (size_t j = 0; j < k; j++)
            b[j] = meaning[(size_t)random() % m];
        a[n] = b[k] = 0;
        check_value(a);
        check_account(a, b);
    }
}

/* tgt numbers targets by their place among all: what is served already, and what somebody chose,
 * comes first; the identities follow. */
static void
test_numbers_give_way(void)
{
    struct conf *served = parse("<target iqn.2001-04.a:z>\ncontroller_tid 1\n</target>\n"
                                "<target iqn.2001-04.a:c>\ncontroller_tid 7\n</target>\n");
    struct conf_checks checks = *apply_checks();
    const char *text = "syntax tgt\n"
                       "<target iqn.2001-04.a:a>\nbacking-store /a\n</target>\n"
                       "<target iqn.2001-04.a:b>\ncontroller_tid 3\n</target>\n"
                       "<target iqn.2001-04.a:c>\nbacking-store /c\n</target>\n"
                       "<target iqn.2001-04.a:d>\n</target>\n";
    const struct {
        const struct conf *running;
        bool stays;
        unsigned a, b, c, d;
    } rows[] = {{NULL, true, 1, 3, 4, 5}, {served, true, 2, 3, 7, 5}, {served, false, 1, 3, 7, 5}};

    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char id[64];
        checks.running = rows[i].running;
        checks.running_stays = rows[i].stays;
        struct conf *c = parse_with(text, &checks);
        CU_ASSERT_EQUAL(conf_find_target(c, "iqn.2001-04.a:a")->tid, rows[i].a);
        CU_ASSERT_EQUAL(conf_find_target(c, "iqn.2001-04.a:b")->tid, rows[i].b);
        CU_ASSERT_EQUAL(conf_find_target(c, "iqn.2001-04.a:c")->tid, rows[i].c);
        CU_ASSERT_EQUAL(conf_find_target(c, "iqn.2001-04.a:d")->tid, rows[i].d);
        snprintf(id, sizeof id, "IET     %04x%04x", rows[i].a, 1u);
        CU_ASSERT_STRING_EQUAL(conf_find_target(c, "iqn.2001-04.a:a")->luns[0].scsi_id, id);
        snprintf(id, sizeof id, "IET     %04x%04x", rows[i].c, 1u);
        CU_ASSERT_STRING_EQUAL(conf_find_target(c, "iqn.2001-04.a:c")->luns[0].scsi_id, id);
        conf_free(c);
    }
    conf_free(served);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"each directive is written and read", test_each_directive},
        {"no directive is missing here", test_all_directives},
        {"nor one that may stand in two places", test_all_scopes},
        {"any value", test_any_value},
        {"numbers of tgt's rule give way", test_numbers_give_way},
    };
    return UNIT_RUN("conf-write", tests);
}
