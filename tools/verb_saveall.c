/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * save-all, restore-all: the whole set-up in one file, for another machine: the configuration as
 * text, and what the control store knows of disks (identities, saved mode pages).
 *
 * {"format":"evtgt-save-all", "version":1, "made":..., "host":..., "secrets":..., "config":TEXT,
 *  "accounts":[names of targets whose passwords were left out], "state":{...}, "crc32c":...};
 * crc32c is that of the object without it, keys sorted, without blanks.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crc32c.h"
#include "base/pool.h"
#include "base/secret.h"
#include "conf/conf.h"
#include "conf/source.h"
#include "tools/verb.h"
#include "tools/verb_parts.h"

#define FORMAT       "evtgt-save-all"
#define SAVE_VERSION 1
#define LEFT_OUT     " @/secret-left-out" /* what a dump without secrets has in their place */
#define FILE_MAX     (64u << 20)

static void
checksum(struct call *c, const json_t *o, char out[9])
{
    json_t *copy = json_copy((json_t *)o);
    uint8_t b[4];

    json_object_del(copy, "crc32c");
    char *text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text)
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "the set-up cannot be written as JSON");
    crc32c_final(crc32c_add(CRC32C_INIT, text, strlen(text)), b);
    snprintf(out, 9, "%02x%02x%02x%02x", b[0], b[1], b[2], b[3]);
    secret_free_text(text);
    json_decref(copy);
}

/* --- save-all -------------------------------------------------------------------------------- */

/* Targets that demand CHAP in this configuration: without passwords they would be open. */
static json_t *
guarded(struct call *c, const char *text)
{
    struct conf_report r;
    json_t *a = json_array();

    conf_report_init(&r);
    struct conf *conf = conf_parse("dump", text, strlen(text), NULL, &r);
    if (!conf)
        verb_fail(c, VERB_NOT_DONE, "invalid", NULL, "the daemon's own dump cannot be read: %s",
                  r.n ? r.v[0].text : "");
    for (unsigned i = 0; i < conf->ntargets; i++) {
        const struct conf_target *t = &conf->targets[i];
        if (t->accounts.n || conf->accounts.n)
            json_array_append_new(a, json_string(t->name));
    }
    conf_free(conf);
    conf_report_fini(&r);
    return a;
}

static json_t *
dump(struct call *c, bool secrets)
{
    json_t *data = verb_ask(c, "config", "dump", json_pack("{sb}", "secrets", secrets));
    return json_incref(json_object_get(data, "text"));
}

static void
remove_temp(struct call *c, void *arg)
{
    (void)c;
    (void)unlink(arg);
}

/* Whole or not at all, for its owner only. */
static void
write_file(struct call *c, const char *path, const json_t *o)
{
    char *temp = xasprintf("%s.XXXXXX", path), *text = json_dumps(o, JSON_INDENT(1));
    struct stat st;

    if (lstat(path, &st) == 0 && !call_opt(c, "force"))
        verb_fail(c, VERB_NOT_DONE, "file-exists", "--force replaces it.", "%s is there already",
                  path);
    int fd = mkostemp(temp, O_CLOEXEC); /* 0600 */
    if (fd < 0 || !text)
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s cannot be made: %s", temp, strerror(errno));
    verb_undo(c, remove_temp, temp);
    size_t len = strlen(text);
    for (size_t at = 0; at < len;) {
        ssize_t n = write(fd, text + at, len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s: %s", temp, strerror(errno));
        at += (size_t)n;
    }
    if (fsync(fd) < 0 || close(fd) < 0 || rename(temp, path) < 0)
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s: %s", path, strerror(errno));
    verb_undo_none(c);
    secret_free_text(text);
}

int
verb_save_all(struct call *c)
{
    const char *path = call_arg(c, 0);
    bool secrets = call_opt(c, "secrets") != NULL;
    char stamp[32], host[256] = "", sum[9];
    json_t *full = dump(c, true), *config = secrets ? json_incref(full) : dump(c, false);
    json_t *accounts = guarded(c, json_string_value(full));

    json_decref(full);
    clock_stamp(stamp, sizeof stamp);
    (void)gethostname(host, sizeof host - 1);
    json_t *o = json_pack("{ss si ss ss sb so so so}", "format", FORMAT, "version", SAVE_VERSION,
                          "made", stamp, "host", host, "secrets", secrets, "accounts",
                          secrets ? json_array() : accounts, "config", config, "state",
                          verb_ask(c, "config", "export", NULL));
    if (!o)
        verb_fail(c, VERB_NOT_DONE, "invalid", NULL, "the daemon's answer makes no sense");
    checksum(c, o, sum);
    json_object_set_new(o, "crc32c", json_string(sum));
    write_file(c, path, o);
    json_t *records = json_object_get(json_object_get(o, "state"), "records");
    if (verb_json(c, json_pack("{ss sb sO sI}", "file", path, "secrets", secrets, "accounts",
                               json_object_get(o, "accounts"), "records",
                               (json_int_t)json_array_size(records))))
        return 0;
    verb_say(c, "%s holds the configuration and %zu records of disks%s.", path,
             json_array_size(records), secrets ? ", with passwords" : "");
    if (!secrets && json_array_size(accounts))
        verb_say(
            c,
            "%zu targets demand CHAP; without --secrets they come back offline, until they have "
            "accounts again.",
            json_array_size(accounts));
    verb_say(c, "On the other machine, with the same files or devices at the same paths:\n"
                "  evtgtadm restore-all FILE --persist\n"
                "Never let both serve the same names and disks at once.");
    return 0;
}

/* --- restore-all ----------------------------------------------------------------------------- */

static char *
read_text(struct call *c, const char *path)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    size_t n = 0, cap = 65536;
    struct stat st;
    char *text = xmalloc(cap);

    if (!f)
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "cannot read %s: %s", path, strerror(errno));
    if (f != stdin && fstat(fileno(f), &st) == 0 && (st.st_mode & 077))
        verb_warn(c, "others may read or write %s: chmod 600", path);
    for (size_t k; (k = fread(text + n, 1, cap - n - 1, f)) > 0;) {
        n += k;
        if (n + 1 == cap && cap >= FILE_MAX)
            verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s is too long", path);
        if (n + 1 == cap) {
            char *more = xmalloc(cap * 2);
            memcpy(more, text, n);
            secret_wipe(text, n);
            free(text);
            text = more;
            cap *= 2;
        }
    }
    text[n] = 0;
    if (f != stdin)
        (void)fclose(f);
    return text;
}

static json_t *
read_file(struct call *c, const char *path)
{
    json_error_t je;
    char sum[9], *text = read_text(c, path);
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &je);

    secret_free_text(text);
    if (!o || strcmp(j_str(o, "format"), FORMAT) != 0)
        verb_fail(c, VERB_NOT_DONE, "file", "`save-all FILE` writes such files.",
                  "%s is no file of save-all%s%s", path, o ? "" : ": ",
                  o ? "" : secret_free_words(je.text));
    if (j_num(o, "version") != SAVE_VERSION)
        verb_fail(c, VERB_NOT_DONE, "file", NULL,
                  "%s is of version %lld; this program reads version %d", path, j_num(o, "version"),
                  SAVE_VERSION);
    checksum(c, o, sum);
    if (strcmp(sum, j_str(o, "crc32c")) != 0)
        verb_fail(c, VERB_NOT_DONE, "file", NULL,
                  "%s was damaged or changed: its checksum is not that of what it holds", path);
    if (!json_is_string(json_object_get(o, "config")) ||
        !json_is_object(json_object_get(o, "state")))
        verb_fail(c, VERB_NOT_DONE, "file", NULL, "%s lacks its configuration or its records",
                  path);
    return o;
}

/* A target whose passwords are not there is not left open: it comes offline. New text. */
static char *
put_offline(const char *config, const char *target)
{
    char *head = xasprintf("<target %s>\n", target);
    const char *at = strstr(config, head), *end = at ? strstr(at, "</target>") : NULL;
    const char *state = at ? strstr(at, "\n    state offline\n") : NULL;
    char *out;

    if (!at || (state && end && state < end))
        out = xstrdup(config);
    else
        out = xasprintf("%.*s%s    state offline\n%s", (int)(at - config), config, head,
                        at + strlen(head));
    free(head);
    return out;
}

/* Accounts whose secret the dump left out are not there to be read. New text. */
static char *
without_left_out(const char *config)
{
    char *out = xmalloc(strlen(config) + 1), *to = out;

    while (*config) {
        size_t n = strcspn(config, "\n");
        n += config[n] == '\n';
        if (!memmem(config, n, LEFT_OUT, strlen(LEFT_OUT))) {
            memcpy(to, config, n);
            to += n;
        }
        config += n;
    }
    *to = 0;
    return out;
}

static json_t *
bundle_of(const json_t *o)
{
    char *config =
        j_is(o, "secrets") ? xstrdup(j_str(o, "config")) : without_left_out(j_str(o, "config"));
    json_t *name;
    size_t i;

    json_array_foreach(json_object_get(o, "accounts"), i, name)
    {
        char *next = put_offline(config, json_string_value(name));
        secret_free_text(config);
        config = next;
    }
    struct conf_bundle *b =
        conf_bundle_text("restore-all", CONF_SYNTAX_EVTGT, config, strlen(config));
    secret_free_text(config);
    json_t *packed = conf_bundle_pack(b);
    conf_bundle_free(b);
    return packed;
}

static json_t *
apply(struct call *c, json_t *bundle, bool pretend)
{
    json_t *reply = verb_try(c, "config", "apply",
                             json_pack("{sO sb sb}", "bundle", bundle, "force",
                                       pretend || call_opt(c, "force"), "pretend", pretend));
    if (!j_is(reply, "ok")) {
        conf_print_messages(json_object_get(reply, "data"));
        verb_refused(c, reply);
    }
    return json_incref(json_object_get(reply, "data"));
}

static json_t *
import(struct call *c, json_t *state, bool pretend, bool force)
{
    return verb_ask(c, "config", "import",
                    json_pack("{sO sb sb}", "state", state, "pretend", pretend, "force", force));
}

/* The records as they were. */
static void
import_back(struct call *c, void *arg)
{
    json_decref(verb_try(c, "config", "import", json_pack("{sO sb}", "state", arg, "force", 1)));
}

/* Targets that lack their accounts come offline; discovery has no such state. */
static bool
opens_discovery(const json_t *o)
{
    static const char name[] = "incomingdiscoveryuser ";
    const char *config = j_str(o, "config");

    if (j_is(o, "secrets"))
        return false;
    return strncmp(config, name, strlen(name)) == 0 || strstr(config, "\nincomingdiscoveryuser ");
}

static void
explain(struct call *c, const json_t *o, const json_t *data, bool pretend)
{
    size_t n = json_array_size(json_object_get(o, "accounts")), i;
    json_t *name;

    conf_print_messages(data);
    if (json_array_size(json_object_get(data, "changes")))
        conf_print_changes(data);
    if (pretend) {
        verb_say(c, "Nothing was changed; without --pretend it is done.");
    } else {
        verb_say(c, "This is now the set-up of %s of %s.", j_str(o, "host"), j_str(o, "made"));
        if (!c->persist)
            verb_say(c, "`evtgtadm save` keeps it over a restart.");
    }
    if (n)
        verb_say(c, "The file holds no passwords: these targets come offline until they have "
                    "accounts\n(account add, account bind, target set TARGET state=ready):");
    json_array_foreach(json_object_get(o, "accounts"), i, name)
        verb_say(c, "  %s", json_string_value(name));
}

int
verb_restore_all(struct call *c)
{
    const char *path = call_arg(c, 0);
    bool pretend = call_opt(c, "pretend") != NULL, force = call_opt(c, "force") != NULL;
    json_t *o = read_file(c, path), *bundle = bundle_of(o), *state = json_object_get(o, "state");

    import(c, state, true, force || pretend);
    json_t *data = apply(c, bundle, true);
    if (!pretend) {
        if (!verb_sure(c, "The set-up of %s of %s replaces everything here.", j_str(o, "host"),
                       j_str(o, "made")))
            verb_fail(c, VERB_NOT_DONE, "not-sure", "--yes says so beforehand.",
                      "nothing was changed: nobody said yes");
        json_t *before = verb_ask(c, "config", "export", NULL);
        import(c, state, false, force);
        verb_undo(c, import_back, before);
        data = apply(c, bundle, false);
        verb_undo_none(c);
    }
    json_object_set_new(data, "host", json_incref(json_object_get(o, "host")));
    json_object_set_new(data, "made", json_incref(json_object_get(o, "made")));
    json_object_set_new(data, "offline", json_incref(json_object_get(o, "accounts")));
    json_object_set_new(data, "pretend", json_boolean(pretend));
    if (opens_discovery(o))
        verb_warn(
            c, "the file holds no passwords: discovery, which demanded CHAP, is open to everybody "
               "until `account add USER --discovery`");
    if (verb_json(c, json_incref(data)))
        return 0;
    explain(c, o, data, pretend);
    return 0;
}
