/* SPDX-License-Identifier: BSD-2-Clause */
/* conf/source.h: a bundle reads as the files do, through JSON and back, and believes nothing. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/source.h"
#include "tests/unit/unit.h"

static char dir[] = "/tmp/conf-bundle-XXXXXX";
static char path[512];

static const char *
put(const char *name, const char *text, mode_t mode)
{
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    fputs(text, f);
    fclose(f);
    CU_ASSERT_EQUAL(chmod(path, mode), 0);
    return path;
}

static void
drop(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CU_ASSERT(unlink(path) == 0 || rmdir(path) == 0);
}

static struct conf_bundle *
through_json(const struct conf_bundle *b)
{
    char err[256] = "";
    json_t *j = conf_bundle_pack(b);
    CU_ASSERT_PTR_NOT_NULL_FATAL(j);
    char *text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(j);
    j = json_loads(text, 0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(j);
    struct conf_bundle *back = conf_bundle_unpack(j, err, sizeof err);
    CU_ASSERT_STRING_EQUAL(err, "");
    CU_ASSERT_PTR_NOT_NULL_FATAL(back);
    json_t *again = conf_bundle_pack(back);
    CU_ASSERT(json_equal(j, again));
    json_decref(again);
    json_decref(j);
    free(text);
    return back;
}

static void
test_files(void)
{
    struct conf_report r;
    char text[1024];

    snprintf(text, sizeof text,
             "include c.d/*.conf\ninclude sub\nincominguser bob @%s/secret\n"
             "<target iqn.2001-04.a:b>\nalias \xc3\xa4\xff\ninitiator-address ALL\n</target>\n",
             dir);
    snprintf(path, sizeof path, "%s/c.d", dir);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/sub", dir);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    put("secret", "0123456789abcdef\n", 0600);
    put("c.d/1.conf", "workers 3\n", 0644);
    put("c.d/1.txt", "nonsense\n", 0644);
    put("sub/x", "max-sessions 77\n", 0644);
    const char *root = put("root", text, 0644);

    conf_report_init(&r);
    struct conf_bundle *b = conf_bundle_read(root, CONF_SYNTAX_AUTO, &r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_STRING_EQUAL(conf_bundle_name(b), root);
    CU_ASSERT_EQUAL(r.n, 0);
    const char *const all[] = {"secret", "c.d/1.conf", "c.d/1.txt", "sub/x", "root", "c.d", "sub"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        drop(all[i]);

    struct conf_bundle *back = through_json(b);
    conf_bundle_free(b);
    for (int i = 0; i < 2; i++) { /* it can be read more than once */
        struct conf *c = conf_read_bundle(back, NULL, &r);
        CU_ASSERT_PTR_NOT_NULL_FATAL(c);
        CU_ASSERT_EQUAL(c->workers, 3);
        CU_ASSERT_EQUAL(c->max_sessions, 77);
        CU_ASSERT_EQUAL_FATAL(c->accounts.n, 1);
        CU_ASSERT_EQUAL(secret_len(c->accounts.v[0].secret), 16);
        CU_ASSERT_EQUAL_FATAL(c->ntargets, 1);
        CU_ASSERT_STRING_EQUAL(c->targets[0].alias, "\xc3\xa4\xff");
        conf_free(c);
    }
    conf_bundle_free(back);
    conf_report_fini(&r);
}

/* What could not be read is told where it stands, by who reads the bundle. */
static void
test_errors(void)
{
    struct conf_report r;
    char want[600];

    conf_report_init(&r);
    CU_ASSERT_PTR_NULL(conf_bundle_read("/nonexistent/conf", CONF_SYNTAX_AUTO, &r));
    CU_ASSERT_EQUAL_FATAL(r.n, 1);
    CU_ASSERT_STRING_EQUAL(r.v[0].text, "cannot read the file: No such file or directory");
    conf_report_fini(&r);

    put("secret", "0123456789abcdef\n", 0644);
    snprintf(want, sizeof want, "workers 2\ninclude gone\nincominguser a @%s/secret\n", dir);
    const char *root = put("root", want, 0600);
    struct conf_bundle *b = conf_bundle_read(root, CONF_SYNTAX_AUTO, &r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    struct conf_bundle *back = through_json(b);
    CU_ASSERT_PTR_NULL(conf_read_bundle(back, NULL, &r));
    CU_ASSERT_EQUAL_FATAL(r.n, 2);
    snprintf(want, sizeof want, "cannot read %s/gone: No such file or directory", dir);
    CU_ASSERT_STRING_EQUAL(r.v[0].text, want);
    CU_ASSERT_EQUAL(r.v[0].line, 2);
    CU_ASSERT_EQUAL(r.v[0].col, 9);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.v[1].text, "others may read or write it"));
    CU_ASSERT_EQUAL(r.v[1].line, 3);
    conf_report_fini(&r);
    conf_bundle_free(b);
    conf_bundle_free(back);
    drop("secret");
    drop("root");
}

static void
test_memory(void)
{
    static const char nul[] = "workers\0 2\n";
    struct conf_report r;

    conf_report_init(&r);
    struct conf_bundle *b =
        conf_bundle_text("stdin", CONF_SYNTAX_EVTGT, "workers 5\ninclude /etc/passwd\n", 30);
    struct conf_bundle *back = through_json(b);
    CU_ASSERT_PTR_NULL(conf_read_bundle(back, NULL, &r));
    CU_ASSERT_EQUAL_FATAL(r.n, 1);
    CU_ASSERT_STRING_EQUAL(r.v[0].text, "include is not allowed here");
    CU_ASSERT_STRING_EQUAL(r.v[0].file, "stdin");
    conf_report_fini(&r);
    conf_bundle_free(b);
    conf_bundle_free(back);

    b = conf_bundle_text("stdin", CONF_SYNTAX_EVTGT, nul, sizeof nul - 1);
    back = through_json(b);
    CU_ASSERT_PTR_NULL(conf_read_bundle(back, NULL, &r));
    CU_ASSERT_EQUAL_FATAL(r.n, 1);
    CU_ASSERT_STRING_EQUAL(r.v[0].text, "a NUL byte: this is not a text file");
    conf_report_fini(&r);
    conf_bundle_free(b);
    conf_bundle_free(back);
}

/* A file that is named and was not sent is not looked for. */
static void
test_not_sent(void)
{
    char err[256] = "";
    struct conf_report r;
    json_t *j = json_loads(
        "{\"version\":1,\"name\":\"/x/conf\",\"syntax\":\"evtgt\",\"memory\":false,\"uid\":0,"
        "\"files\":[{\"path\":\"/x/conf\",\"text\":\"include /etc/passwd\\n\",\"regular\":true,"
        "\"mode\":384,\"uid\":0,\"gid\":0}],\"lists\":[]}",
        0, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(j);
    struct conf_bundle *b = conf_bundle_unpack(j, err, sizeof err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    conf_report_init(&r);
    CU_ASSERT_PTR_NULL(conf_read_bundle(b, NULL, &r));
    CU_ASSERT_EQUAL_FATAL(r.n, 1);
    CU_ASSERT_STRING_EQUAL(r.v[0].text, "cannot read /etc/passwd: No data available");
    conf_report_fini(&r);
    conf_bundle_free(b);
    json_decref(j);
}

#define HEAD "\"version\":1,\"name\":\"n\",\"syntax\":\"auto\",\"memory\":false,\"uid\":0"
#define STAT "\"regular\":true,\"mode\":0,\"uid\":0,\"gid\":0"

static void
test_unpack_bad(void)
{
    static const struct {
        const char *json, *words;
    } bad[] = {
        {"[]", "name"},
        {"{}", "name"},
        {"{\"name\":\"\"}", "name"},
        {"{\"name\":\"a\\u0100\"}", "name"},
        {"{\"name\":\"n\"}", "version"},
        {"{\"name\":\"n\",\"version\":2}", "version"},
        {"{\"name\":\"n\",\"version\":1,\"syntax\":\"x\"}", "syntax"},
        {"{\"name\":\"n\",\"version\":1,\"syntax\":\"iet\"}", "memory"},
        {"{\"name\":\"n\",\"version\":1,\"syntax\":\"iet\",\"memory\":true,\"uid\":-1}", "uid"},
        {"{" HEAD "}", "files: want an array"},
        {"{" HEAD ",\"files\":[]}", "lists: want an array"},
        {"{" HEAD ",\"files\":[1],\"lists\":[]}", "files[0]: path"},
        {"{" HEAD ",\"files\":[{\"path\":\"p\",\"error\":0}],\"lists\":[]}", "files[0]: error"},
        {"{" HEAD ",\"files\":[{\"path\":\"p\",\"error\":9999}],\"lists\":[]}", "files[0]: error"},
        {"{" HEAD ",\"files\":[{\"path\":\"p\",\"text\":\"\"}],\"lists\":[]}", "files[0]: mode"},
        {"{" HEAD ",\"files\":[{\"path\":\"p\"," STAT "}],\"lists\":[]}", "files[0]: text"},
        {"{" HEAD ",\"files\":[{\"path\":\"p\",\"text\":\"\\u0101\"," STAT "}],\"lists\":[]}",
         "files[0]: text"},
        {"{" HEAD ",\"files\":[{\"path\":\"p\",\"text\":\"\\u20ac\"," STAT "}],\"lists\":[]}",
         "files[0]: text"},
        {"{" HEAD ",\"files\":[],\"lists\":[{}]}", "lists[0]: pattern"},
        {"{" HEAD ",\"files\":[],\"lists\":[{\"pattern\":\"p\",\"names\":[]}]}", "lists[0]: error"},
        {"{" HEAD ",\"files\":[],\"lists\":[{\"pattern\":\"p\",\"error\":0}]}", "lists[0]: names"},
        {"{" HEAD ",\"files\":[],\"lists\":[{\"pattern\":\"p\",\"error\":0,\"names\":[1]}]}",
         "lists[0]: names"},
        {"{\"version\":1,\"name\":\"n\",\"syntax\":\"auto\",\"memory\":true,\"uid\":0,\"files\":[],"
         "\"lists\":[]}",
         "files: a text in memory"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char err[256] = "";
        json_t *j = json_loads(bad[i].json, 0, NULL);
        CU_ASSERT_PTR_NOT_NULL_FATAL(j);
        CU_ASSERT_PTR_NULL(conf_bundle_unpack(j, err, sizeof err));
        CU_ASSERT_PTR_NOT_NULL(strstr(err, bad[i].words));
        if (!strstr(err, bad[i].words))
            printf("%s: %s\n", bad[i].json, err);
        json_decref(j);
    }
}

/* More files than a configuration may have, more bytes, more names: told, not cut. */
static void
test_limits(void)
{
    char err[256] = "";
    struct conf_report r;
    size_t n = CONF_BYTES_MAX + 1;
    char *big = xmalloc(n + 1);

    memset(big, '\n', n);
    big[n] = 0;
    const char *root = put("root", big, 0600);
    conf_report_init(&r);
    CU_ASSERT_PTR_NULL(conf_bundle_read(root, CONF_SYNTAX_AUTO, &r));
    CU_ASSERT_EQUAL_FATAL(r.n, 1);
    CU_ASSERT_STRING_EQUAL(r.v[0].text, "cannot read the file: File too large");
    conf_report_fini(&r);
    put("half", big + n / 2 - 20, 0600);
    put("root", "include half\ninclude half2\n", 0600);
    put("half2", big + n / 2 - 20, 0600);
    snprintf(path, sizeof path, "%s/root", dir);
    struct conf_bundle *b = conf_bundle_read(path, CONF_SYNTAX_AUTO, &r);
    CU_ASSERT_PTR_NOT_NULL_FATAL(b);
    CU_ASSERT_PTR_NULL(conf_read_bundle(b, NULL, &r));
    CU_ASSERT_EQUAL_FATAL(r.n, 1);
    CU_ASSERT_EQUAL(r.v[0].line, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(r.v[0].text, "half2: File too large"));
    conf_report_fini(&r);
    conf_bundle_free(b);
    drop("root");
    drop("half");
    drop("half2");

    b = conf_bundle_text("t", CONF_SYNTAX_AUTO, big, n);
    json_t *j = conf_bundle_pack(b);
    CU_ASSERT_PTR_NULL(conf_bundle_unpack(j, err, sizeof err));
    CU_ASSERT_PTR_NOT_NULL(strstr(err, "files[0]: text"));
    json_decref(j);
    conf_bundle_free(b);
    free(big);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"files, directories, patterns and secrets", test_files},
        {"what cannot be read", test_errors},
        {"a text in memory", test_memory},
        {"nothing but the bundle is read", test_not_sent},
        {"what is no bundle", test_unpack_bad},
        {"limits", test_limits},
    };
    if (!mkdtemp(dir))
        return 1;
    int rc = UNIT_RUN("conf-bundle", tests);
    return rmdir(dir) < 0 ? 1 : rc;
}
