/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evtgt.conf(5) and the table of directives (and of settable keys) name the same things, both
 * ways; every one that is understood has an example, and the examples are right.
 */
#include "config.h"

#include <string.h>

#include "base/pool.h"
#include "conf/conf.h"
#include "target/model.h"
#include "tests/unit/unit.h"

#define NAMES_MAX 256

struct doc {
    char *text;
    char *names[NAMES_MAX];
    bool refused[NAMES_MAX];
    char *example[NAMES_MAX]; /* of the .Dl line that follows */
    unsigned n;
};
static struct doc doc;

/* "\&" separates, "\e" is a backslash: undone for examples. */
static char *
plain(const char *s)
{
    char *out = xmalloc(strlen(s) + 1);
    size_t k = 0;
    for (; *s; s++) {
        if (s[0] == '\\' && s[1] == '&')
            s++;
        else
            out[k++] = *s;
    }
    out[k] = 0;
    return out;
}

static void
load(void)
{
    const char *src = getenv("srcdir");
    char *path = xasprintf("%s/docs/evtgt.conf.5", src ? src : ".");
    FILE *f = fopen(path, "r");
    char line[1024], name[128];

    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        bool ic = sscanf(line, ".It Ic %127s", name) == 1;
        if (ic || sscanf(line, ".It Li %127s", name) == 1) {
            CU_ASSERT_FATAL(doc.n < NAMES_MAX);
            doc.refused[doc.n] = !ic;
            doc.names[doc.n++] = xstrdup(name);
        } else if (strncmp(line, ".Dl ", 4) == 0 && doc.n && !doc.example[doc.n - 1]) {
            doc.example[doc.n - 1] = plain(line + 4);
        }
    }
    fclose(f);
    free(path);
    CU_ASSERT(doc.n > 50);
}

static int
find(const char *name)
{
    for (unsigned i = 0; i < doc.n; i++) {
        if (strcmp(doc.names[i], name) == 0)
            return (int)i;
    }
    return -1;
}

/* 0: neither a directive nor a key; 1: understood; 2: refused. */
static int
known(const char *name)
{
    struct key_values kv;
    const char *n;
    char value[256];
    bool understood;

    for (unsigned i = 0; (n = conf_directive(i, &understood)); i++) {
        if (strcmp(n, name) == 0)
            return understood ? 1 : 2;
    }
    keys_defaults(&kv);
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (keys_show(&kv, i, &n, value, sizeof value) && strcmp(n, name) == 0)
            return 1;
    }
    return 0;
}

static void
must_be_documented(const char *name, bool understood)
{
    int i = find(name);
    if (i < 0 || doc.refused[i] == understood) {
        printf("%s: not in the manual as %s\n", name, understood ? "understood" : "refused");
        CU_FAIL("manual and table differ");
    }
}

static void
test_table_in_manual(void)
{
    struct key_values kv;
    const char *n;
    char value[256];
    bool understood;

    load();
    for (unsigned i = 0; (n = conf_directive(i, &understood)); i++)
        must_be_documented(n, understood);
    keys_defaults(&kv);
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (keys_show(&kv, i, &n, value, sizeof value))
            must_be_documented(n, true);
    }
}

static void
test_manual_in_table(void)
{
    for (unsigned i = 0; i < doc.n; i++) {
        int k = known(doc.names[i]);
        if (k != (doc.refused[i] ? 2 : 1)) {
            printf("%s: the manual has it, the table not so\n", doc.names[i]);
            CU_FAIL("manual and table differ");
        }
        for (unsigned j = 0; j < i; j++) {
            if (strcmp(doc.names[i], doc.names[j]) == 0) {
                printf("%s: twice in the manual\n", doc.names[i]);
                CU_FAIL("manual names it twice");
            }
        }
    }
}

static bool
parses(const char *text)
{
    struct conf_report r;
    bool ok;

    conf_report_init(&r);
    struct conf *c = conf_parse("example", text, strlen(text), apply_checks(), &r);
    /* the files that examples name are not here */
    ok = c != NULL || (r.n && r.nerrors == 1 && strstr(r.v[0].text, ": No such file"));
    conf_free(c);
    conf_report_fini(&r);
    return ok;
}

static void
test_examples(void)
{
    for (unsigned i = 0; i < doc.n; i++) {
        const char *e = doc.example[i];
        if (doc.refused[i])
            continue;
        if (!e || !strstr(e, doc.names[i])) {
            printf("%s: no example\n", doc.names[i]);
            CU_FAIL("a directive without an example");
            continue;
        }
        if (strcmp(doc.names[i], "include") == 0 || strcmp(doc.names[i], "target") == 0 ||
            strcmp(doc.names[i], "bsopts") == 0)
            continue;
        char *in_target =
            xasprintf("<target iqn.2001-04.a:b>\n%s\n%s\n</target>\n",
                      strncmp(e, "backing-store", 13) == 0 ? "" : "backing-store /x", e);
        char *in_null = xasprintf("<target iqn.2001-04.a:b>\n<backing-store x>\nbs-type null\n%s\n"
                                  "</backing-store>\n</target>\n",
                                  e);
        char *in_zram = xasprintf("<target iqn.2001-04.a:b>\n<backing-store x>\nbs-type zram\n"
                                  "size 1G\n%s%s\n</backing-store>\n</target>\n",
                                  strncmp(e, "level", 5) == 0 ? "algorithm zstd\n" : "", e);
        char *in_portal = xasprintf("<portal 192.0.2.1>\n%s\n</portal>\n", e);
        if (!parses(e) && !parses(in_target) && !parses(in_null) && !parses(in_zram) &&
            !parses(in_portal)) {
            printf("wrong example: %s\n", e);
            CU_FAIL("an example of the manual is refused");
        }
        free(in_target);
        free(in_null);
        free(in_zram);
        free(in_portal);
    }
    for (unsigned i = 0; i < doc.n; i++) {
        free(doc.names[i]);
        free(doc.example[i]);
    }
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"every directive and key is in the manual", test_table_in_manual},
        {"the manual names nothing else", test_manual_in_table},
        {"the manual's examples are right", test_examples},
    };
    return UNIT_RUN("conf-doc", tests);
}
