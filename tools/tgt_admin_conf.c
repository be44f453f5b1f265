/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgt-admin --execute and --update.  The files are read here, with the caller's rights, and sent to
 * the daemon as a bundle; it compares them with what it runs and changes what differs, all of a
 * target or nothing.  Calls at the same time are done one after the other.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/conf.h"
#include "conf/source.h"
#include "tools/adm.h"
#include "tools/tgt_admin.h"

#define DEFAULT_CONF "/etc/tgt/targets.conf"

struct run {
    struct tgt_admin *t;
    struct conf *conf;
    struct conf_report report; /* of reading it */
    json_t *bundle;
    json_t *targets;    /* as they were before the files were read */
    json_t *accounts;   /* names of accounts that are there */
    long long last_tid; /* that the lines gave to a new target */
};

/* --- reading --------------------------------------------------------------------------------- */

static void
tell(const struct tgt_admin *t, const struct conf_report *rep, bool warnings)
{
    (void)fflush(stdout);
    for (unsigned i = 0; i < rep->n; i++) {
        const struct conf_msg *m = &rep->v[i];
        if (m->is_admin || (!m->is_error && !warnings && !t->verbose && !t->pretend))
            continue;
        fprintf(stderr, "%s: ", adm_name);
        if (m->line)
            fprintf(stderr, "%s:%u:%u: ", m->file, m->line, m->col);
        else
            fprintf(stderr, "%s: ", m->file);
        fprintf(stderr, "%s%s\n", m->is_error ? "" : "warning: ", m->text);
    }
}

/* tgt's, unless it is what --dump wrote. */
static enum conf_syntax
syntax_of(const char *path)
{
    char line[sizeof TA_DUMP_MARK] = "";
    FILE *f = fopen(path, "re");
    bool ours = f && fgets(line, sizeof line, f) && strcmp(line, TA_DUMP_MARK) == 0;

    if (f)
        (void)fclose(f);
    return ours ? CONF_SYNTAX_EVTGT : CONF_SYNTAX_TGT;
}

static void
read_files(struct run *r, const char *path)
{
    static const struct conf_checks checks = {.key = conf_key_any};
    struct conf_report *rep = &r->report;

    conf_report_init(rep);
    struct conf_bundle *b = conf_bundle_read(path, syntax_of(path), rep);
    r->conf = b ? conf_read_bundle(b, &checks, rep) : NULL;
    r->bundle = r->conf ? conf_bundle_pack(b) : NULL;
    conf_bundle_free(b);
}

static void
forget_files(struct run *r)
{
    conf_free(r->conf);
    json_decref(r->bundle);
    conf_report_fini(&r->report);
}

/* What the files say to tgt-admin itself: which daemon it is about, unless -C says it, and whether
 * an error is the end.  Files that do not hold are told of when they are read to be used. */
static void
directives(struct run *r, const char *path)
{
    read_files(r, path);
    const struct conf *c = r->conf;
    if (c && c->control_port != CONF_UNSET && adm_control_port != 0) {
        puts("Multiple control-port definitions are not allowed!\n"
             "Check your config file for errors.");
        adm_die(1, "control-port %u stands in %s, and -C %u beside it: take one of them out",
                c->control_port, path, adm_control_port);
    }
    if (c && c->control_port != CONF_UNSET)
        adm_control_port = c->control_port;
    if (c && c->ignore_errors)
        r->t->ignore_errors = true;
    forget_files(r);
}

/* The daemon is asked first, then the files are read to be used: a target that another call makes
 * meanwhile is then in neither, or in both.  warnings: those of the whole configuration are told.
 */
static void
begin(struct run *r, struct tgt_admin *t, bool warnings)
{
    const char *path = t->conf ? t->conf : DEFAULT_CONF;

    *r = (struct run){.t = t};
    if (access(path, F_OK) < 0) {
        fprintf(stderr, "Config file %s not found. Exiting...\n", path);
        (void)fflush(NULL);
        _exit(ENOENT);
    }
    if (t->conf)
        ta_say(t, "# Using %s as configuration file\n", path);
    directives(r, path);
    r->targets = ta_targets();
    json_t *reply = ta_ask("account", "show", json_object());
    r->accounts = json_incref(json_object_get(json_object_get(reply, "data"), "accounts"));
    read_files(r, path);
    tell(t, &r->report, warnings);
    if (!r->conf)
        adm_die(EINVAL, "%s: nothing was changed", path);
    json_decref(reply);
}

static void
end(struct run *r)
{
    forget_files(r);
    json_decref(r->targets);
    json_decref(r->accounts);
}

static const struct conf_target *
configured(const struct run *r, const char *name)
{
    for (unsigned i = 0; i < r->conf->ntargets; i++) {
        if (strcasecmp(r->conf->targets[i].name, name) == 0)
            return &r->conf->targets[i];
    }
    return NULL;
}

/* --- what is not of one target --------------------------------------------------------------- */

static void
isns_set(struct run *r, const char *name, const char *value)
{
    char *line = xasprintf("tgtadm -C %u --op update --mode sys --name %s -v %s", adm_control_port,
                           name, value);
    ta_do(r->t, line, "system", "update", json_pack("{ss ss}", "name", name, "value", value));
    free(line);
}

/* As tgt-admin: what is on is left as it is. */
static void
isns(struct run *r)
{
    const struct conf *c = r->conf;
    char *servers = NULL, port[16];

    if (!c->isns_on && !c->isns_access && c->isns_port == CONF_UNSET && c->nisns_servers == 0)
        return;
    json_t *reply = ta_ask("system", "show", json_object());
    const json_t *now = json_object_get(json_object_get(reply, "data"), "isns");
    if (json_is_true(json_object_get(now, "on"))) {
        if (c->isns_on)
            ta_say(r->t, "# iSNS already enabled");
        json_decref(reply);
        return;
    }
    json_decref(reply);
    if (c->isns_access)
        isns_set(r, "iSNSAccessControl", "On");
    for (unsigned i = 0; i < c->nisns_servers; i++) {
        char *more = xasprintf("%s%s%s", servers ? servers : "", servers ? "," : "",
                               c->isns_servers[i].value);
        free(servers);
        servers = more;
    }
    if (servers)
        isns_set(r, "iSNSServerIP", servers);
    free(servers);
    snprintf(port, sizeof port, "%u", c->isns_port);
    if (c->isns_port != CONF_UNSET)
        isns_set(r, "iSNSServerPort", port);
    if (c->isns_on)
        isns_set(r, "iSNS", "On");
}

static bool
bound(const json_t *discovery, const struct conf_account *a)
{
    const json_t *v;
    size_t i;
    json_array_foreach(discovery, i, v)
    {
        const char *user = json_string_value(json_object_get(v, "user"));
        if (user && strcmp(user, a->user) == 0 &&
            json_is_true(json_object_get(v, "outgoing")) == a->outgoing)
            return true;
    }
    return false;
}

/* Another call may have made it meanwhile: that is as good. */
static void
do_or_there(struct tgt_admin *t, const char *line, const char *op, json_t *args)
{
    ta_say(t, "%s", line);
    json_t *reply = t->pretend ? NULL : ta_ask("account", op, json_incref(args));
    if (reply && !ta_ok(reply) && strcmp(ta_code(reply), "account-exists") != 0)
        ta_fault(t, EINVAL, "%s", ta_words(reply));
    json_decref(reply);
    json_decref(args);
}

static json_t *
new_account(const struct conf_account *a)
{
    char secret[SECRET_MAX + 1];
    size_t n = secret_len(a->secret);

    memcpy(secret, secret_bytes(a->secret), n);
    json_t *args = json_pack("{ss ss#}", "user", a->user, "password", secret, (int)n);
    secret_wipe(secret, sizeof secret);
    if (!args)
        adm_die(EINVAL, "%s:%u: the secret of %s is no UTF-8", a->pos.file, a->pos.line, a->user);
    for (unsigned i = 0; i < a->nnames; i++) {
        if (i == 0)
            json_object_set_new(args, "initiators", json_array());
        json_array_append_new(json_object_get(args, "initiators"), json_string(a->names[i]));
    }
    return args;
}

static void
discovery(struct run *r)
{
    const struct conf_accounts *all = &r->conf->discovery;

    if (all->n == 0)
        return;
    json_t *reply = ta_ask("account", "show", json_object());
    const json_t *data = json_object_get(reply, "data"), *v;
    for (unsigned i = 0; i < all->n && ta_go_on(r->t); i++) {
        const struct conf_account *a = &all->v[i];
        bool known = false;
        size_t k;
        json_array_foreach(r->accounts, k, v) known |= strcmp(json_string_value(v), a->user) == 0;
        if (!known) {
            char *line =
                xasprintf("tgtadm -C %u --mode account --op new --user=%s --password-file=-",
                          adm_control_port, a->user);
            do_or_there(r->t, line, "new", new_account(a));
            json_array_append_new(r->accounts, json_string(a->user));
            free(line);
        }
        if (!bound(json_object_get(data, "discovery"), a)) {
            char *line = xasprintf("tgtadm -C %u --mode account --op bind --user=%s%s",
                                   adm_control_port, a->user, a->outgoing ? " --outgoing" : "");
            json_t *args = json_pack("{ss sb}", "user", a->user, "outgoing", a->outgoing);
            do_or_there(r->t, line, "bind", args);
            free(line);
        }
    }
    json_decref(reply);
}

/* --- targets --------------------------------------------------------------------------------- */

static bool
told_already(const struct run *r, const char *text, json_int_t line)
{
    for (unsigned i = 0; i < r->report.n; i++) {
        if (r->report.v[i].line == line && strcmp(r->report.v[i].text, text) == 0)
            return true;
    }
    return false;
}

/* The daemon's words about the files: what only it can judge, and stores that it cannot open, whose
 * units are there and not ready.  How many errors. */
static unsigned
messages(const struct run *r, const json_t *reply)
{
    const json_t *m;
    size_t i;
    unsigned errors = 0;

    json_array_foreach(json_object_get(json_object_get(reply, "data"), "messages"), i, m)
    {
        const char *file = json_string_value(json_object_get(m, "file"));
        const char *text = json_string_value(json_object_get(m, "text"));
        json_int_t line = json_integer_value(json_object_get(m, "line"));
        bool error = json_is_true(json_object_get(m, "error"));
        if (!text || (!error && told_already(r, text, line)))
            continue;
        (void)fflush(stdout);
        fprintf(stderr, "%s: %s:%lld:%lld: %s%s\n", adm_name, file ? file : "", (long long)line,
                (long long)json_integer_value(json_object_get(m, "col")),
                error ? "" : "warning: ", text);
        errors += error;
    }
    return errors;
}

/* Makes targets of the configuration as it has them, all or none. names is consumed. */
static json_t *
apply(const struct run *r, json_t *names)
{
    const struct tgt_admin *t = r->t;
    return ta_ask("config", "apply",
                  json_pack("{sO so sb sb}", "bundle", r->bundle, "targets", names, "force",
                            t->force, "pretend", t->pretend));
}

/* The tid that a new target is going to have, as far as it can be told. */
static long long
tid_for(const struct run *r, const struct conf_target *c)
{
    const json_t *v;
    long long max = r->last_tid;
    char tid[16];
    size_t i;

    snprintf(tid, sizeof tid, "%u", c->tid);
    if (c->tid > max && !ta_by_tid(r->targets, tid))
        return c->tid;
    json_array_foreach(r->targets, i, v)
    {
        long long n = (long long)json_integer_value(json_object_get(v, "tid"));
        max = n > max ? n : max;
    }
    return max + 1;
}

static void
say_new(struct run *r, const struct conf_target *c)
{
    long long tid = r->last_tid = tid_for(r, c);

    ta_say(r->t, "# Adding target: %s", c->name);
    ta_say(r->t, "tgtadm -C %u --lld iscsi --op new --mode target --tid %lld -T %s",
           adm_control_port, tid, c->name);
    ta_lines(r->t, c, tid, r->accounts);
}

/* A target that is there: only what differs is touched, so the lines are those of the daemon. */
static void
say_changes(struct run *r, const struct conf_target *c, const json_t *reply)
{
    const json_t *list = json_object_get(json_object_get(reply, "data"), "changes"), *v;
    size_t i;

    ta_say(r->t, "# Updating target: %s%s", c->name,
           json_array_size(list) ? "" : " (nothing differs)");
    json_array_foreach(list, i, v)
    {
        const char *what = json_string_value(json_object_get(v, "what"));
        const char *how = json_string_value(json_object_get(v, "how"));
        ta_say(r->t, "#   %s (%s)", what ? what : "", how ? how : "");
    }
}

static bool
is_active(const json_t *reply)
{
    return strcmp(ta_code(reply), "target-active") == 0 ||
           strcmp(ta_code(reply), "lun-active") == 0;
}

/* Why a target could not be made as it is configured. now: it is there, or NULL. */
static void
refused(struct run *r, const struct conf_target *c, const json_t *now, const json_t *reply,
        unsigned errors)
{
    if (now && is_active(reply)) {
        ta_used(r->t, now, "updated");
    } else if (errors) {
        ta_fault(r->t, EINVAL, "%s was not %s", c->name, now ? "updated" : "made");
    } else {
        ta_fault(r->t, EINVAL, "%s: %s", c->name, ta_words(reply));
    }
}

/* What has no counterpart here is not taken as something else: the target is not touched, and the
 * others are done all the same. */
static bool
is_served(struct run *r, const struct conf_target *c, const char *done)
{
    const bool broken = r->t->broken;
    const char *line = c->unserved;

    if (!line)
        return true;
    ta_say(r->t, "# Target %s asks for what is not served, it won't be %s.", c->name, done);
    for (size_t n; *line; line += n + (line[n] == '\n')) {
        n = strcspn(line, "\n");
        ta_fault(r->t, EINVAL, "%.*s; target %s was not %s", (int)n, line, c->name, done);
    }
    r->t->broken = broken;
    return false;
}

static void
update_target(struct run *r, const char *name)
{
    const struct conf_target *c = configured(r, name);
    const json_t *now = ta_by_name(r->targets, name);

    if (!c && now) {
        ta_delete(r->t, now, "updated");
        return;
    }
    if (!c) {
        printf("Target %s is currently not configured\n"
               "and does not exist in the config file - can't continue!\n",
               name);
        if (r->t->status == 0)
            r->t->status = 1;
        return;
    }
    if (!is_served(r, c, now ? "updated" : "made"))
        return;
    if (!now)
        say_new(r, c);
    json_t *reply = apply(r, json_pack("[s]", c->name));
    unsigned errors = messages(r, reply);
    if (!ta_ok(reply))
        refused(r, c, now, reply, errors);
    else if (now)
        say_changes(r, c, reply);
    ta_say(r->t, "%s", "");
    json_decref(reply);
}

static int
by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Names of all targets of the configuration, sorted as tgt-admin takes them; free() them. */
static const char **
sorted(const struct run *r)
{
    const unsigned n = r->conf->ntargets;
    const char **names = xcalloc(n + 1, sizeof *names);

    for (unsigned i = 0; i < n; i++)
        names[i] = r->conf->targets[i].name;
    if (n)
        qsort(names, n, sizeof *names, by_name);
    return names;
}

static void
update_all(struct run *r)
{
    const char **names = sorted(r);
    const json_t *v;
    size_t i;

    json_array_foreach(r->targets, i, v)
    {
        const char *name = json_string_value(json_object_get(v, "name"));
        if (name && !configured(r, name) && ta_go_on(r->t))
            update_target(r, name);
    }
    /* what is in use is left as it is, and the others are done */
    for (unsigned k = 0; names[k] && ta_go_on(r->t); k++)
        update_target(r, names[k]);
    free(names);
}

void
ta_update(struct tgt_admin *t)
{
    struct run r;
    bool tid = strncmp(t->update, "tid=", 4) == 0, all = strcmp(t->update, "ALL") == 0;

    begin(&r, t, all);
    const json_t *now = tid ? ta_by_tid(r.targets, t->update + 4) : NULL;
    if (tid && !now) {
        printf("There is no target with tid %s, can't continue!\n", t->update + 4);
        t->status = 1;
        end(&r);
        return;
    }
    isns(&r);
    discovery(&r);
    if (ta_go_on(t)) {
        if (all)
            update_all(&r);
        else
            update_target(&r, tid ? json_string_value(json_object_get(now, "name")) : t->update);
    }
    end(&r);
}

/* --- --execute ------------------------------------------------------------------------------- */

static void
add_target(struct run *r, const char *name)
{
    json_t *reply = apply(r, json_pack("[s]", name));
    unsigned errors = messages(r, reply);

    if (!ta_ok(reply))
        refused(r, configured(r, name), NULL, reply, errors);
    json_decref(reply);
}

/* All in one step; what stands in the way of one target is looked for only when that fails. */
static void
add_targets(struct run *r)
{
    const char **names = sorted(r);
    json_t *wanted = json_array();

    for (unsigned i = 0; names[i]; i++) {
        if (ta_by_name(r->targets, names[i])) {
            ta_say(r->t, "# Target %s already exists!", names[i]);
            continue;
        }
        if (!is_served(r, configured(r, names[i]), "made"))
            continue;
        say_new(r, configured(r, names[i]));
        json_array_append_new(wanted, json_string(names[i]));
    }
    ta_say(r->t, "%s", "");
    if (json_array_size(wanted)) {
        json_t *reply = apply(r, json_incref(wanted));
        bool done = ta_ok(reply);
        if (done)
            messages(r, reply);
        json_decref(reply);
        for (size_t i = 0; !done && i < json_array_size(wanted) && ta_go_on(r->t); i++)
            add_target(r, json_string_value(json_array_get(wanted, i)));
    }
    json_decref(wanted);
    free(names);
}

void
ta_execute(struct tgt_admin *t)
{
    struct run r;
    const json_t *v;
    size_t i;

    begin(&r, t, true);
    isns(&r);
    discovery(&r);
    if (ta_go_on(t))
        add_targets(&r);
    json_array_foreach(r.targets, i, v)
    {
        const char *name = json_string_value(json_object_get(v, "name"));
        if (name && !configured(&r, name) && ta_go_on(t))
            ta_delete(t, v, "deleted");
    }
    end(&r);
}
