/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgt-setup-lun's command line: a target, its logical unit and who may use it in one call.  What
 * was made is taken back when a later step fails.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "tools/adm.h"

#define TRIES 100 /* other callers take target ids at the same time */

struct setup {
    const char *device, *bs_type, *block_size, *transport, *port;
    char *name, *path; /* of the target; of the device, absolute or NULL */
    char **initiators;
    int ninitiators;
    long long tid, lun;
    bool new_target, new_lun;
};

const char tgt_setup_lun_letters[] = "d:n:b:B:t:C:h";

static const char usage_text[] =
    "usage:\n"
    "\t%s -n NAME -d DEVICE [-b BACKING-STORE-TYPE] [-B BLOCK-SIZE] [-t TRANSPORT]\n"
    "\t\t[-C CONTROL-PORT] [INITIATOR-ADDRESS ...]\n"
    "defaults:\n"
    "\tbacking store type: rdwr\n"
    "\ttransport: iscsi\n"
    "\tinitiators: ALL\n"
    "\tblock size: that of the device, 512 for a file; once written to, a disk keeps one\n"
    "examples:\n"
    "\t%s -n disk1 -d /dev/sdb1 192.0.2.7\n"
    "\t%s -n iqn.2026-11.com.example:disk2 -d /srv/disk2.img\n";

static void fault(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void
fault(const char *fmt, ...)
{
    va_list ap;
    fputs("Error: ", stdout);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    (void)fflush(NULL);
    _exit(1);
}

/* 0; or the daemon's error code, and its words on stderr. */
static const char *
ask(const char *mode, const char *op, json_t *args, json_t **data)
{
    static char code[40];
    json_t *req = json_pack("{si ss ss so}", "v", 1, "mode", mode, "op", op, "args", args);
    json_t *reply = adm_call(NULL, req);
    const json_t *e = json_object_get(reply, "error");

    json_decref(req);
    code[0] = 0;
    if (!json_is_true(json_object_get(reply, "ok"))) {
        const char *words = json_string_value(json_object_get(e, "message"));
        const char *c = json_string_value(json_object_get(e, "code"));
        snprintf(code, sizeof code, "%s", c ? c : "invalid");
        if (strcmp(code, "target-exists") != 0) /* that one is told by who asked */
            fprintf(stderr, "%s: %s\n", adm_name, words ? words : "the answer makes no sense");
    } else if (data) {
        *data = json_incref(json_object_get(reply, "data"));
    }
    json_decref(reply);
    return *code ? code : NULL;
}

static json_t *
targets(json_t **all)
{
    *all = NULL;
    if (ask("target", "show", json_object(), all))
        _exit(1);
    return json_object_get(*all, "targets");
}

/* --- taking back ----------------------------------------------------------------------------- */

static void give_up(struct setup *s) __attribute__((noreturn));
static void
give_up(struct setup *s)
{
    if (s->new_target) {
        printf("Deleting new target, tid=%lld\n", s->tid);
        if (ask("target", "delete", json_pack("{sI sb}", "tid", s->tid, "force", 1), NULL))
            printf("Error: failed to delete target, tid=%lld\n", s->tid);
    } else if (s->new_lun) {
        printf("Deleting new logical unit, tid=%lld lun=%lld\n", s->tid, s->lun);
        json_t *args = json_pack("{sI sI sb}", "tid", s->tid, "lun", s->lun, "force", 1);
        if (ask("logicalunit", "delete", args, NULL))
            printf("Error: failed to delete logical unit, tid=%lld lun=%lld\n", s->tid, s->lun);
    }
    (void)fflush(NULL);
    _exit(1);
}

/* --- the steps ------------------------------------------------------------------------------- */

static long long
free_number(const json_t *list, const char *member, long long from)
{
    const json_t *v;
    size_t i;
    for (bool taken = true; taken; from += taken) {
        taken = false;
        json_array_foreach(list, i, v) taken |=
            json_integer_value(json_object_get(v, member)) == from;
    }
    return from;
}

static const json_t *
find(const json_t *list, const char *name)
{
    const json_t *v;
    size_t i;
    json_array_foreach(list, i, v)
    {
        const char *n = json_string_value(json_object_get(v, "name"));
        if (n && strcasecmp(n, name) == 0)
            return v;
    }
    return NULL;
}

/* On a terminal, and from a pipe as well. */
static bool
add_to_existing(void)
{
    char line[16] = "";
    if (isatty(STDIN_FILENO))
        fputs("Add a new logical unit to it? (yes/NO): ", stderr);
    (void)fflush(NULL);
    return fgets(line, sizeof line, stdin) && strcmp(line, "yes\n") == 0;
}

static void
make_target(struct setup *s)
{
    json_t *all;
    const json_t *list = targets(&all), *old = find(list, s->name);
    const char *code = "";

    if (old) {
        printf("Error: target named %s already exists\n", s->name);
        if (!add_to_existing()) {
            (void)fflush(NULL);
            _exit(1);
        }
        s->tid = json_integer_value(json_object_get(old, "tid"));
        s->lun = free_number(json_object_get(old, "luns"), "lun", 1);
        json_decref(all);
        return;
    }
    s->tid = free_number(list, "tid", 1);
    json_decref(all);
    printf("Creating new target (name=%s, tid=%lld)\n", s->name, s->tid);
    for (int i = 0; i < TRIES; i++) {
        code = ask("target", "new", json_pack("{sI ss}", "tid", s->tid, "name", s->name), NULL);
        if (!code || strcmp(code, "target-exists") != 0)
            break;
        list = targets(&all);
        long long next = free_number(list, "tid", 1);
        bool lost = find(list, s->name) != NULL || next == s->tid;
        json_decref(all);
        if (lost)
            break;
        s->tid = next;
    }
    if (code && strcmp(code, "target-exists") == 0)
        fprintf(stderr, "%s: this target already exists\n", adm_name);
    if (code)
        fault("failed to create target (name=%s, tid=%lld)", s->name, s->tid);
    s->new_target = true;
    s->lun = 1;
}

static void
make_lun(struct setup *s)
{
    json_t *p = json_object();

    printf("Adding a logical unit (%s) to target, tid=%lld\n", s->device ? s->device : "", s->tid);
    if (s->path)
        json_object_set_new(p, "backing-store", json_string(s->path));
    if (s->bs_type) {
        printf("Setting backing store type: %s\n", s->bs_type);
        json_object_set_new(p, "bs-type", json_string(s->bs_type));
    }
    if (s->block_size)
        json_object_set_new(p, "block-size", json_string(s->block_size));
    json_t *args = json_pack("{sI sI so}", "tid", s->tid, "lun", s->lun, "params", p);
    if (ask("logicalunit", "new", args, NULL)) {
        printf("Error: failed to add a logical unit (%s) to target, tid=%lld\n",
               s->device ? s->device : "", s->tid);
        give_up(s);
    }
    s->new_lun = true;
}

/* "rule-exists" is no failure: an address given twice, or a target that was there before. */
static void
admit(struct setup *s, const char *initiator)
{
    json_t *all, *list = targets(&all);
    const json_t *t = find(list, s->name), *v;
    bool there = false;
    size_t i;

    json_array_foreach(json_object_get(t, "addresses"), i, v) there |=
        strcasecmp(json_string_value(v), initiator) == 0;
    json_decref(all);
    if (there)
        return;
    json_t *address = json_string(initiator);
    json_t *args = json_pack("{sI so}", "tid", s->tid, "address", address ? address : json_null());
    if (!ask("target", "bind", args, NULL))
        return;
    printf("Error: could not assign initiator %s to the target\n", initiator);
    give_up(s);
}

static void
admit_all(struct setup *s)
{
    static char everybody[] = "ALL";

    if (s->ninitiators == 0) {
        puts("Accepting connections from all initiators");
        admit(s, everybody);
        return;
    }
    fputs("Accepting connections from", stdout);
    for (int i = 0; i < s->ninitiators; i++)
        printf(" %s", s->initiators[i]);
    putchar('\n');
    for (int i = 0; i < s->ninitiators; i++)
        admit(s, s->initiators[i]);
}

/* --- the command line ------------------------------------------------------------------------ */

static void
parse(struct setup *s, int argc, char **argv)
{
    const char *name = NULL;
    int c;

    *s = (struct setup){.transport = "iscsi"};
    while ((c = getopt(argc, argv, tgt_setup_lun_letters)) != -1) {
        switch (c) {
        case 'd':
            s->device = optarg;
            break;
        case 'n':
            name = optarg;
            break;
        case 'b':
            s->bs_type = optarg;
            break;
        case 'B':
            s->block_size = optarg;
            break;
        case 't':
            s->transport = optarg;
            break;
        case 'C':
            s->port = optarg;
            break;
        default:
            printf(usage_text, adm_name, adm_name, adm_name);
            exit(c == 'h' ? 0 : 1);
        }
    }
    s->initiators = argv + optind;
    s->ninitiators = argc - optind;
    if (!s->device && (!s->bs_type || strcmp(s->bs_type, "null") != 0))
        fault("a device is mandatory");
    if (!name || !*name)
        fault("target name is mandatory");
    if (strncmp(name, "iqn", 3) == 0) {
        s->name = xstrdup(name);
    } else {
        char host[256] = "";
        gethostname(host, sizeof host - 1);
        host[strcspn(host, ".")] = 0;
        s->name = xasprintf("iqn.2001-04.com.%s-%s", host, name);
    }
}

static void
check(struct setup *s)
{
    struct stat st;
    char cwd[PATH_MAX], *end;

    if (s->device && (stat(s->device, &st) < 0 || !(S_ISBLK(st.st_mode) || S_ISREG(st.st_mode))))
        fault("%s is not a device", s->device);
    if (s->device && s->device[0] == '/')
        s->path = xstrdup(s->device);
    else if (s->device && getcwd(cwd, sizeof cwd))
        s->path = xasprintf("%s/%s", cwd, s->device);
    if (s->port) {
        unsigned long n = strtoul(s->port, &end, 10);
        if (s->port[0] < '0' || s->port[0] > '9' || *end || n > 65535)
            fault("%s is no control port: a number from 0 to 65535", s->port);
        adm_control_port = (unsigned)n;
    }
    if (!adm_there(NULL)) {
        puts("evtgtd is not running\nExiting...");
        (void)fflush(NULL);
        _exit(1);
    }
}

int
tgt_setup_lun_main(int argc, char **argv)
{
    struct setup s;

    if (argc < 2) {
        printf(usage_text, adm_name, adm_name, adm_name);
        return 1;
    }
    (void)setvbuf(stdout, NULL, _IOLBF, 0); /* in order with what the daemon says on stderr */
    parse(&s, argc, argv);
    check(&s);
    if (s.port)
        printf("Control port: %s\n", s.port);
    printf("Using transport: %s\n", s.transport);
    if (strcmp(s.transport, "iscsi") != 0) {
        fprintf(stderr, "%s: can't find the driver: %s; there is iscsi\n", adm_name, s.transport);
        fault("failed to create target (name=%s)", s.name);
    }
    make_target(&s);
    make_lun(&s);
    admit_all(&s);
    free(s.name);
    free(s.path);
    return fflush(stdout) == 0 ? 0 : 1;
}
