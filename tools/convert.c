/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * evtgtadm convert: files of tgt, IET and LIO as a configuration of ours.  No daemon is asked, and
 * nothing but the files is read; what only the daemon can judge is judged when it reads the result
 * (evtgtd -t).  Identities are written out: they no longer follow from numbers and names.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/conf.h"
#include "conf/source.h"
#include "tools/adm.h"

enum { CONVERT_WHOLE = 0, CONVERT_ERROR = 1, CONVERT_USAGE = 2, CONVERT_LOSSES = 3 };

static const char usage_text[] =
    "usage: evtgtadm convert [--from SYNTAX] [--to FILE] FILE...\n"
    "  -f, --from SYNTAX  what the files are: tgt, iet (1.4.19), iet-0.4, lio, evtgt; default "
    "auto;\n"
    "                     iet-rules: as iet, and its access files are written out as rules\n"
    "  -t, --to FILE      write there (mode 0600, a file that exists is not replaced); default: "
    "to\n"
    "                     standard output\n"
    "      --no-secrets   leave secrets out; the text says where one is missing\n"
    "  -h, --help         print this and end\n"
    "Messages name the lines of FILE. Exit status: 0 nothing was lost, 3 written, with losses,\n"
    "1 nothing was written, 2 wrong call.\n"
    "\n"
    "  evtgtadm convert --to /etc/evtgt/evtgt.conf /etc/iet/ietd.conf\n"
    "  evtgtadm convert /etc/tgt/targets.conf | less\n";

struct convert {
    enum conf_syntax from;
    const char *to;
    unsigned flags;
    unsigned losses, errors;
};

static void
tell(const struct conf_report *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct conf_msg *m = &r->v[i];
        const char *kind = m->is_error ? "error" : m->is_loss ? "lost" : "warning";
        if (m->line)
            fprintf(stderr, "%s:%u:%u: %s: %s\n", m->file, m->line, m->col, kind, m->text);
        else
            fprintf(stderr, "%s: %s: %s\n", m->file, kind, m->text);
    }
}

/* Identities stand in the disks now: no rule is left to be applied to them. */
static void
settle(struct conf *c)
{
    c->ids = CONF_UNSET;
    for (unsigned i = 0; i < c->ntargets; i++)
        c->targets[i].ids = CONF_UNSET;
}

/* Files that the result names and does not hold. */
static void
tell_used(const struct conf *c)
{
    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        const struct conf_access *a = &c->access[i];
        if (a->path)
            fprintf(stderr,
                    "%s: note: the file stays in use, as IET has it; --from iet-rules writes it "
                    "out as rules of each target\n",
                    a->path);
    }
}

/* A file of tgt looks much as one of ours, and its disks would get other identities. */
static void
tell_taken(const struct convert *v, const struct conf *c, const char *path)
{
    if (v->from == CONF_SYNTAX_AUTO && conf_syntax_of(c) == CONF_SYNTAX_EVTGT)
        fprintf(stderr, "%s: note: taken as evtgt's own; --from tgt reads it as tgt's\n", path);
}

/* From the root, as the files beside it are named in the result. */
static char *
absolute(const char *path)
{
    char *cwd = *path == '/' ? NULL : getcwd(NULL, 0);
    char *abs = cwd ? xasprintf("%s/%s", cwd, path) : xstrdup(path);
    free(cwd);
    return abs;
}

/* The text of one file, or NULL: told why. secret_free_text. */
static char *
one_file(struct convert *v, const char *path)
{
    static const struct conf_checks checks = {.key = conf_key_any};
    struct conf_report r;
    char *text = NULL;

    conf_report_init(&r);
    char *abs = absolute(path);
    struct conf_bundle *b = conf_bundle_read(abs, v->from, &r);
    struct conf *c = b ? conf_read_bundle(b, &checks, &r) : NULL;
    tell(&r);
    v->losses += r.nlosses;
    v->errors += r.nerrors + (c == NULL && r.nerrors == 0);
    if (c) {
        settle(c);
        tell_taken(v, c, abs);
        if (r.nerrors == 0)
            tell_used(c);
        text = conf_write(c, v->flags);
    }
    conf_free(c);
    conf_bundle_free(b);
    conf_report_fini(&r);
    free(abs);
    return text;
}

static bool
put(FILE *f, const char *path, const char *text)
{
    return fprintf(f, "# written by evtgtadm convert, from %s\n%s", path, text) > 0;
}

static int
write_all(const struct convert *v, char **texts, char **paths, int n)
{
    FILE *f = stdout;
    bool ok = true;

    if (v->to) {
        int fd = open(v->to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        f = fd < 0 ? NULL : fdopen(fd, "w");
        if (!f) {
            fprintf(stderr, "%s: %s: %s\n", adm_name, v->to,
                    errno == EEXIST ? "the file exists; it is not replaced" : strerror(errno));
            return CONVERT_ERROR;
        }
    }
    for (int i = 0; i < n && ok; i++)
        ok = put(f, paths[i], texts[i]);
    ok = fflush(f) == 0 && ok;
    if (v->to && fclose(f) != 0)
        ok = false;
    if (!ok) {
        fprintf(stderr, "%s: %s: %s\n", adm_name, v->to ? v->to : "standard output",
                strerror(errno));
        return CONVERT_ERROR;
    }
    if (v->losses)
        fprintf(stderr, "%s: %u thing%s of the original ha%s no equivalent, see above\n", adm_name,
                v->losses, v->losses == 1 ? "" : "s", v->losses == 1 ? "s" : "ve");
    return v->losses ? CONVERT_LOSSES : CONVERT_WHOLE;
}

static void
parse_args(struct convert *v, int argc, char **argv)
{
    enum { O_NO_SECRETS = 256 };
    static const struct option longs[] = {{"from", required_argument, NULL, 'f'},
                                          {"to", required_argument, NULL, 't'},
                                          {"no-secrets", no_argument, NULL, O_NO_SECRETS},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "f:t:h", longs, NULL)) != -1) {
        if (c == 'f' && !conf_syntax_find(optarg, &v->from))
            adm_die(CONVERT_USAGE,
                    "--from \"%s\" is not known; there are auto, tgt, iet, iet-0.4, "
                    "iet-rules, lio, evtgt",
                    optarg);
        else if (c == 't')
            v->to = optarg;
        else if (c == O_NO_SECRETS)
            v->flags = 0;
        else if (c == 'h') {
            fputs(usage_text, stdout);
            exit(CONVERT_WHOLE);
        } else if (c != 'f') {
            fputs(usage_text, stderr);
            exit(CONVERT_USAGE);
        }
    }
    if (optind == argc)
        adm_die(CONVERT_USAGE, "which file? evtgtadm convert --help shows how");
}

int
convert_main(int argc, char **argv)
{
    struct convert v = {.from = CONF_SYNTAX_AUTO, .flags = CONF_WRITE_SECRETS};
    int status = CONVERT_ERROR;

    argv[0] = "convert"; /* getopt_long's messages start with it */
    parse_args(&v, argc, argv);
    int n = argc - optind;
    char **texts = xcalloc((size_t)n, sizeof *texts);
    for (int i = 0; i < n; i++)
        texts[i] = one_file(&v, argv[optind + i]);
    if (v.errors)
        fprintf(stderr, "%s: %u error%s: nothing was written\n", adm_name, v.errors,
                v.errors == 1 ? "" : "s");
    else
        status = write_all(&v, texts, argv + optind, n);
    for (int i = 0; i < n; i++) {
        if (texts[i])
            secret_free_text(texts[i]);
    }
    free(texts);
    return status;
}
