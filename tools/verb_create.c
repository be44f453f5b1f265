/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * target create: the target as text of evtgt.conf(5), read once here to be sure that it says what
 * was meant, then applied by the daemon as a whole: all of it or nothing.
 */
#include "config.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/conf.h"
#include "conf/source.h"
#include "tools/verb.h"
#include "tools/verb_parts.h"

#define SOURCE_NAME "target create"

struct text {
    char *s;
    size_t n;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* It may hold secrets: what it outgrows is wiped. */
static void
add(struct text *t, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *s = xmalloc(t->n + (size_t)n + 1);
    if (t->n)
        memcpy(s, t->s, t->n);
    vsnprintf(s + t->n, (size_t)n + 1, fmt, again);
    va_end(again);
    secret_free_text(t->s);
    t->s = s;
    t->n += (size_t)n;
}

/* A value that the reader takes apart no more. */
static void
add_value(struct text *t, const char *name, const char *value)
{
    bool quote = !*value || strpbrk(value, " \t#\"'\\") != NULL;
    if (!quote) {
        add(t, "    %s %s\n", name, value);
        return;
    }
    add(t, "    %s \"", name);
    for (const char *p = value; *p; p++)
        add(t, "%s%c", *p == '"' ? "\\" : "", *p);
    add(t, "\"\n");
}

/* --- accounts -------------------------------------------------------------------------------- */

/* Does a line that gives this account as `word` say this secret? */
static bool
reads_as(const char *user, const char *word, const char *secret)
{
    struct text t = {NULL, 0};
    struct conf_report r;

    add(&t, "incominguser %s %s\n", user, word);
    conf_report_init(&r);
    struct conf *c = conf_parse(SOURCE_NAME, t.s, t.n, NULL, &r);
    bool same = c && c->accounts.n == 1 && strcmp(c->accounts.v[0].user, user) == 0 &&
                secret_len(c->accounts.v[0].secret) == strlen(secret) &&
                memcmp(secret_bytes(c->accounts.v[0].secret), secret, strlen(secret)) == 0;
    if (c)
        conf_free(c);
    conf_report_fini(&r);
    secret_free_text(t.s);
    return same;
}

static void
add_account(struct call *c, struct text *t, const char *directive, const char *user,
            const char *password)
{
    char *forms[] = {xstrdup(password), xasprintf("\"%s\"", password)};
    bool done = false;

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (!done && reads_as(user, forms[i], password)) {
            add(t, "    %s %s %s\n", directive, user, forms[i]);
            done = true;
        }
        secret_free_text(forms[i]);
    }
    if (!done)
        verb_fail(c, VERB_NOT_DONE, "password",
                  "Make the target without it, then `account add USER --target TARGET`.",
                  "an account of this name and password cannot be written in a configuration: "
                  "quotes, backslashes and blanks do not go together there");
}

struct created {
    char *name, *password; /* generated: to be shown once; or NULL */
    const char *user;
    json_t *luns;
};

static void
add_accounts(struct call *c, struct text *t, struct created *made)
{
    const char *user = call_opt(c, "account"), *own = call_opt(c, "outgoing-account");
    bool generated = false, other;

    if (!user && (call_opt(c, "password-file") || call_opt(c, "generate-password")))
        verb_usage(c, "--password-file and --generate-password go with --account");
    if (!own != !call_opt(c, "outgoing-password-file"))
        verb_usage(c, "--outgoing-account and --outgoing-password-file go together");
    if (user) {
        char *password = verb_password(c, "password-file", user, &generated);
        add_account(c, t, "incominguser", user, password);
        made->user = user;
        if (generated)
            made->password = password;
        else
            verb_password_done(password);
    }
    if (own) {
        char *password = verb_password(c, "outgoing-password-file", own, &other);
        add_account(c, t, "outgoinguser", own, password);
        verb_password_done(password);
    }
}

/* --- LUNs ------------------------------------------------------------------------------------ */

static void
add_lun(struct call *c, struct text *t, const char *spec, struct created *made)
{
    const char *name;
    json_t *v;
    long number;
    json_t *params = lun_spec(c, spec, &number);
    const char *path = j_str(params, "backing-store");

    if (number < 0)
        number = lun_free(made->luns);
    json_array_append_new(made->luns,
                          json_pack("{sI ss}", "lun", (json_int_t)number, "path", path));
    struct text head = {NULL, 0};
    add_value(&head, "backing-store", *path ? path : "/null");
    head.s[head.n - 1] = 0; /* without the line's end */
    add(t, "    <%s>\n        lun %ld\n", head.s + 4, number);
    free(head.s);
    json_object_foreach(params, name, v)
    {
        if (strcmp(name, "backing-store") != 0)
            add_value(t, name, json_string_value(v));
    }
    if (call_opt(c, "force") && !json_object_get(params, "allow-in-use"))
        add_value(t, "allow-in-use", "yes");
    add(t, "    </backing-store>\n");
    json_decref(params);
}

/* --- the whole ------------------------------------------------------------------------------- */

static char *
compose(struct call *c, struct created *made)
{
    static const char *const each[][2] = {{"allow", "initiator-address"},
                                          {"allow-initiator", "initiator-name"},
                                          {"alias", "alias"},
                                          {"portal", "portal"}};
    struct text t = {NULL, 0};
    const char *v;

    for (unsigned i = 0; (v = call_each(c, "portal", &i));)
        add(&t, "portal %s\n",
            v); /* the reader wants it declared; of the daemon nothing is applied */
    add(&t, "<target %s>\n", made->name);
    for (size_t k = 0; k < sizeof each / sizeof *each; k++) {
        for (unsigned i = 0; (v = call_each(c, each[k][0], &i));)
            add_value(&t, each[k][1], v);
    }
    for (unsigned i = 0; (v = call_each(c, "set", &i));) {
        const char *eq = strchr(v, '=');
        if (!eq || eq == v)
            verb_usage(c, "--set wants NAME=VALUE, not \"%s\"", v);
        char *name = xasprintf("%.*s", (int)(eq - v), v);
        add_value(&t, name, eq + 1);
        free(name);
    }
    add_accounts(c, &t, made);
    for (unsigned i = 0; (v = call_each(c, "lun", &i));)
        add_lun(c, &t, v, made);
    add(&t, "</target>\n");
    return t.s;
}

/* A value with a line's end in it would be more lines. */
static void
refuse_controls(struct call *c)
{
    for (unsigned i = 0; i < c->ngiven; i++) {
        if (strpbrk(c->given[i].value, "\n\r"))
            verb_usage(c, "--%s holds the end of a line", c->given[i].opt->name);
    }
    if (strpbrk(c->args[0], " \t\n\r<>\"#"))
        verb_usage(c, "\"%s\" is no name of a target", c->args[0]);
}

static void
explain(struct call *c, const struct created *made)
{
    bool open = call_opt(c, "allow") || call_opt(c, "allow-initiator");
    json_t *l;
    size_t i;

    verb_say(c, "%s is there.", made->name);
    json_array_foreach(made->luns, i, l) verb_say(
        c, "  LUN %lld  %s", j_num(l, "lun"), *j_str(l, "path") ? j_str(l, "path") : "null device");
    if (!i)
        verb_say(c, "It has no LUN yet: evtgtadm lun add %s PATH", made->name);
    if (made->password)
        verb_say(c, "The password of %s, shown this once: %s", made->user, made->password);
    if (!open)
        verb_say(c, "Nobody may log in yet: evtgtadm acl allow %s ADDRESS|NET|ALL, or a name",
                 made->name);
    else
        next_connect(c, made->name);
}

/* --- refusals, for who has seen only the command line ---------------------------------------- */

/* Directives of the text that was composed, and the options that they were written for. */
static const char *const wished[][2] = {
    {"initiator-address:", "--allow:"}, {"initiator-name:", "--allow-initiator:"},
    {"incominguser:", "--account:"},    {"outgoinguser:", "--outgoing-account:"},
    {"portal:", "--portal:"},           {"alias:", "--alias:"}};
static const char advice[] = "`initiator-address ALL`"; /* what a file would want */

/* A message with the option in place of the directive that it begins with, and without its place in
 * a text that nobody has seen. */
static json_t *
reworded(const char *text)
{
    const char *p = strstr(text, SOURCE_NAME ":"), *start = "";
    int before = p ? (int)(p - text) : 0;

    if (p) {
        p += strlen(SOURCE_NAME ":");
        p += strspn(p, "0123456789:");
        p += strspn(p, " ");
    } else {
        p = text;
    }
    for (size_t i = 0; i < sizeof wished / sizeof *wished; i++) {
        if (strncmp(p, wished[i][0], strlen(wished[i][0])) == 0) {
            start = wished[i][1];
            p += strlen(wished[i][0]);
            break;
        }
    }
    const char *end = strstr(p, advice);
    char *out = xasprintf("%.*s%s%.*s%s", before, text, start, end ? (int)(end - p) : INT_MAX, p,
                          end ? "--allow ALL, --allow ADDRESS or --allow-initiator NAME" : "");
    json_t *v = json_string(out);
    free(out);
    return v;
}

static void
reword(json_t *reply)
{
    json_t *error = json_object_get(reply, "error"), *m;
    size_t i;

    json_array_foreach(json_object_get(json_object_get(reply, "data"), "messages"), i, m)
    {
        json_object_set_new(m, "text", reworded(j_str(m, "text")));
        json_object_set_new(m, "line", json_integer(0));
    }
    json_object_set_new(error, "message", reworded(j_str(error, "message")));
}

int
verb_target_create(struct call *c)
{
    struct created made = {.luns = json_array()};

    refuse_controls(c);
    made.name = find_new_name(c, call_arg(c, 0));
    char *text = compose(c, &made);
    struct conf_bundle *b = conf_bundle_text(SOURCE_NAME, CONF_SYNTAX_EVTGT, text, strlen(text));
    secret_free_text(text);
    json_t *reply = verb_try(c, "config", "apply",
                             json_pack("{so s[s] sb sb}", "bundle", conf_bundle_pack(b), "targets",
                                       made.name, "add", 1, "force", call_opt(c, "force") != NULL));
    conf_bundle_free(b);
    if (!j_is(reply, "ok")) {
        reword(reply);
        conf_print_messages(json_object_get(reply, "data"));
        verb_refused(c, reply);
    }
    verb_undo_none(c);
    struct target_id id = find_target(c, made.name);
    json_t *data =
        json_pack("{ss sI sO}", "name", id.name, "tid", (json_int_t)id.tid, "luns", made.luns);
    if (made.password)
        json_object_set_new(data, "password", json_string(made.password));
    made.name = id.name;
    if (!verb_json(c, data))
        explain(c, &made);
    verb_password_done(made.password);
    return 0;
}
