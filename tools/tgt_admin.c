/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgt-admin's command line.  Where tgt-admin writes lines for a shell, this sends requests: a
 * secret is never an argument of a program, and a target changes in one step or not at all.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/adm.h"
#include "tools/tgt_admin.h"

enum { O_DELETE = 256, O_OFFLINE, O_READY, O_UPDATE, O_IGNORE, O_DUMP };

static const struct option longs[] = {
    {"execute", no_argument, NULL, 'e'},
    {"delete", required_argument, NULL, O_DELETE},
    {"offline", required_argument, NULL, O_OFFLINE},
    {"ready", required_argument, NULL, O_READY},
    {"update", required_argument, NULL, O_UPDATE},
    {"show", no_argument, NULL, 's'},
    {"control-port", required_argument, NULL, 'C'},
    {"conf", required_argument, NULL, 'c'},
    {"ignore-errors", no_argument, NULL, O_IGNORE},
    {"force", no_argument, NULL, 'f'},
    {"pretend", no_argument, NULL, 'p'},
    {"dump", no_argument, NULL, O_DUMP},
    {"verbose", no_argument, NULL, 'v'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

const struct option *
tgt_admin_longs(unsigned i)
{
    return i == 0 ? longs : NULL;
}

static const char usage_text[] =
    "Usage:\n"
    "%s [OPTION]...\n"
    "\n"
    "  -e, --execute              make what the configuration names and is not there; delete\n"
    "                             what is there and it does not name\n"
    "      --update WHICH         make targets as the configuration has them\n"
    "      --delete WHICH         delete targets\n"
    "      --offline WHICH        no new logins\n"
    "      --ready WHICH          logins again\n"
    "                             WHICH: ALL, tid=N, a target's name, or help\n"
    "  -s, --show                 show all targets\n"
    "      --dump                 print the running configuration, complete but for secrets\n"
    "  -c, --conf FILE            instead of /etc/tgt/targets.conf\n"
    "  -f, --force                also what is in use\n"
    "  -p, --pretend              only print what would be done\n"
    "  -v, --verbose              print what is done\n"
    "      --ignore-errors        go on after an error; it still shows in the exit status\n"
    "  -C, --control-port N       the daemon with this number; see evtgtadm(8)\n"
    "  -h, --help                 this help\n";

/* --- what is said ---------------------------------------------------------------------------- */

void
ta_say(const struct tgt_admin *t, const char *fmt, ...)
{
    va_list ap;
    if (!t->pretend && !t->verbose)
        return;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void
ta_fault(struct tgt_admin *t, int status, const char *fmt, ...)
{
    va_list ap;
    (void)fflush(stdout);
    fprintf(stderr, "%s: ", adm_name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    if (t->status == 0)
        t->status = status;
    t->broken = true;
}

bool
ta_go_on(const struct tgt_admin *t)
{
    return !t->broken || t->ignore_errors;
}

/* Of --delete help and its like. */
static bool
help_of(const char *option, const char *value, bool in_use)
{
    if (!value || strcmp(value, "help") != 0)
        return false;
    printf("      --%s <value>\t\t%s all or selected targets\n", option, option);
    if (in_use)
        printf("\t\t\t\tWhat has sessions that would notice is left as it is,\n"
               "\t\t\t\tunless --force is given; then the exit status is not 0.\n");
    printf("\n"
           "Example usage:\n"
           "      --%s help\t      - this help\n"
           "      --%s ALL\t      - every target\n"
           "      --%s tid=4\t      - the target with tid 4\n"
           "      --%s iqn.2008-08.com.example:some.target - the target with this name\n\n",
           option, option, option, option);
    return true;
}

/* --- the command line ------------------------------------------------------------------------ */

static void
control_port(const char *text)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || n > 65535)
        adm_die(EINVAL, "--control-port wants a number from 0 to 65535, not '%s'", text);
    adm_control_port = (unsigned)n;
}

/* clang-format off */
static void
take_option(struct tgt_admin *t, int c, bool *help)
{
    switch (c) {
    case 'e': t->execute = true; break;
    case O_DELETE: t->del = optarg; break;
    case O_OFFLINE: t->offline = optarg; break;
    case O_READY: t->ready = optarg; break;
    case O_UPDATE: t->update = optarg; break;
    case 's': t->show = true; break;
    case 'C': control_port(optarg); break;
    case 'c': t->conf = optarg; break;
    case O_IGNORE: t->ignore_errors = true; break;
    case 'f': t->force = true; break;
    case 'p': t->pretend = true; break;
    case O_DUMP: t->dump = true; break;
    case 'v': t->verbose = true; break;
    case 'h': *help = true; break;
    default: break;
    }
}
/* clang-format on */

/* Long options also with one `-`, as Perl's Getopt::Long has it. */
static void
parse(struct tgt_admin *t, int argc, char **argv)
{
    bool help = argc < 2;
    int c;

    *t = (struct tgt_admin){.status = 0};
    opterr = 0;
    while ((c = getopt_long_only(argc, argv, ":esC:c:fpvh", longs, NULL)) != -1) {
        const char *last = argv[optind - 1];
        last += strspn(last, "-");
        if (c == ':')
            adm_die(1, "Option %s requires an argument", last);
        if (c == '?')
            adm_die(1, "Unknown option: %s; see %s --help", last, adm_name);
        take_option(t, c, &help);
    }
    if (optind < argc)
        adm_die(1, "Unknown argument: %s; see %s --help", argv[optind], adm_name);
    if (help) {
        printf(usage_text, adm_name);
        exit(0);
    }
}

int
tgt_admin_main(int argc, char **argv)
{
    struct tgt_admin t;

    parse(&t, argc, argv);
    if (help_of("delete", t.del, true) || help_of("update", t.update, true) ||
        help_of("offline", t.offline, false) || help_of("ready", t.ready, false))
        return 0;
    if (t.show) {
        ta_show(&t);
    } else if (t.execute) {
        ta_execute(&t);
    } else if (t.del) {
        ta_delete_all(&t);
    } else if (t.update) {
        ta_update(&t);
    } else if (t.dump) {
        ta_dump(&t);
    } else if (t.offline) {
        ta_state(&t, "offline", t.offline);
    } else if (t.ready) {
        ta_state(&t, "ready", t.ready);
    } else {
        puts("No action specified.");
        t.status = 1;
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        adm_die(EIO, "cannot write the answer");
    return t.status;
}
