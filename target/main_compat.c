/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon under the names of others: the command lines of tgtd and ietd, so that the scripts and
 * programs that start those start evtgtd. Exit status 1 for wrong arguments, as they have it.
 * Called once by main(), before anything else.
 */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/hostport.h"
#include "base/log.h"
#include "base/longopt.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "target/main_args.h"

#define IETD_CONF     "/etc/iet/ietd.conf"
#define IETD_CONF_OLD "/etc/ietd.conf"
#define IETD_PID      RUNDIR "/../iscsi_trgt.pid" /* where init scripts for ietd look */

static const char *program; /* tgtd or ietd */

static const struct option own_longs[] = {MAIN_COMMON_LONGS, {NULL, 0, NULL, 0}};

static void refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void
refuse(const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "%s: ", program);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nTry `%s --help' for more information.\n", program);
    exit(1);
}

static unsigned
number(const char *name, const char *text, unsigned min, unsigned max)
{
    uint64_t v;
    if (conf_parse_uint(text, min, max, &v) < 0)
        refuse("%s wants a number from %u to %u, not \"%s\"", name, min, max, text);
    return (unsigned)v;
}

static void
set_debug(const char *level)
{
    if (number("--debug", level, 0, 0xffff) && log_set_debug("all") < 0)
        log_abort("all areas of the log are not known");
}

static void
add_portal(struct main_options *o, const char *text)
{
    struct hostport hp;
    char err[256] = "";
    if (hostport_parse(text, &hp, err, sizeof err) < 0)
        refuse("portal %s: %s", text, err);
    char *all = xasprintf("%sportal %s\n", o->listen ? o->listen : "", hp.name);
    free(o->listen);
    o->listen = all;
}

/* ":PORT" is that port of every address. */
static void
add_listen(struct main_options *o, const char *host, const char *port)
{
    static const char *const every[] = {"0.0.0.0", "::"};
    for (size_t i = 0; i < (*host ? 1 : sizeof every / sizeof *every); i++) {
        const char *h = *host ? host : every[i];
        bool v6 = strchr(h, ':') && h[0] != '[';
        char *text = xasprintf("%s%s%s:%s", v6 ? "[" : "", h, v6 ? "]" : "", port);
        add_portal(o, text);
        free(text);
    }
}

/* --- tgtd ------------------------------------------------------------------------------------ */

static const char tgtd_usage[] =
    "usage: tgtd [options]\n"
    "  -f, --foreground         stay in the foreground, log to stderr\n"
    "  -D, --nodaemonize        the same\n"
    "  -C, --control-port N     the number that tgtadm -C names it by\n"
    "  -t, --nr_iothreads N     accepted: threads are made as they are needed\n"
    "  -p, --pid-file FILE      write the process id there\n"
    "  -d, --debug LEVEL        1: debug lines of all areas\n"
    "      --iscsi OPTIONS      portal=ADDR:PORT (several), nop_interval=S, nop_count=N\n"
    "      --state-dir DIR      what outlives the daemon (default " STATEDIR ")\n"
    "      --socket PATH        admin socket, instead of -C\n"
    "      --user, --workers, --placement, --engine: as evtgtd has them\n"
    "  -V, --version            print the version and end\n"
    "  -h, --help               print this and end\n"
    "This is evtgtd with the command line of tgtd: it starts without targets; tgt-admin -e or\n"
    "tgtadm make them.\n";

static void
iscsi_options(struct main_options *o, const char *text)
{
    char *copy = xstrdup(text), *rest = copy, *word;

    while ((word = strsep(&rest, ","))) {
        char *value = strchr(word, '=');
        if (!*word)
            continue;
        if (value)
            *value++ = '\0';
        if (!value)
            refuse("--iscsi: %s wants a value: %s=VALUE", word, word);
        else if (strcmp(word, "portal") == 0 && value[0] == ':')
            add_listen(o, "", value + 1);
        else if (strcmp(word, "portal") == 0)
            add_portal(o, value);
        else if (strcmp(word, "nop_interval") == 0)
            o->nop_interval_s = number("nop_interval", value, 0, 3600);
        else if (strcmp(word, "nop_count") == 0)
            o->nop_count = number("nop_count", value, 1, 1000);
        else
            refuse("--iscsi: %s is not known; portal, nop_interval and nop_count are", word);
    }
    free(copy);
}

/* clang-format off */
void
main_args_tgtd(struct main_options *o, int argc, char **argv)
{
    enum { O_ISCSI = O_OTHERS, O_ISER };
    static const struct option tgtd_longs[] = {
        {"foreground", no_argument, NULL, 'f'},       {"nodaemonize", no_argument, NULL, 'D'},
        {"control-port", required_argument, NULL, 'C'},
        {"nr_iothreads", required_argument, NULL, 't'},
        {"pid-file", required_argument, NULL, 'p'},   {"debug", required_argument, NULL, 'd'},
        {"iscsi", required_argument, NULL, O_ISCSI},  {"iser", required_argument, NULL, O_ISER},
        {"version", no_argument, NULL, 'V'},          {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    unsigned control = 0;
    int c;

    program = "tgtd";
    o->empty = true;
    while ((c = longopt_next(argc, argv, "fDC:t:p:d:Vh", tgtd_longs, own_longs)) != -1) {
        if (main_args_common(o, c, optarg))
            continue;
        switch (c) {
        case 'f':
        case 'D': o->foreground = true; break;
        case 'C': control = number("--control-port", optarg, 0, 65535); break;
        case 't': (void)number("--nr_iothreads", optarg, 1, 65535); break;
        case 'p': main_args_path(&o->pid_path, optarg); break;
        case 'd': set_debug(optarg); break;
        case O_ISCSI: iscsi_options(o, optarg); break;
        case O_ISER: refuse("--iser: there is no iSER here, only iSCSI over TCP; leave it out");
        case 'V': puts(PACKAGE_VERSION); exit(0);
        case 'h': fputs(tgtd_usage, stdout); exit(0);
        default: fputs("Try `tgtd --help' for more information.\n", stderr); exit(1);
        }
    }
    if (optind < argc)
        refuse("\"%s\" is not expected", argv[optind]);
    if (!o->socket_path) {
        char *path = dirs_admin_socket(control);
        o->socket_path = main_absolute(path);
        free(path);
    }
    if (!o->state_dir && control) /* two daemons cannot have one */
        o->state_dir = xasprintf(STATEDIR "/control-port-%u", control);
}
/* clang-format on */

/* --- ietd ------------------------------------------------------------------------------------ */

static const char ietd_usage[] =
    "usage: ietd [options]\n"
    "  -c, --config FILE        the configuration (default " IETD_CONF ", else\n"
    "                           " IETD_CONF_OLD ")\n"
    "  -f, --foreground         stay in the foreground, log to stderr\n"
    "  -d, --debug LEVEL        1 and more: debug lines of all areas\n"
    "  -u, --uid UID            run as this user; 0: as evtgtd chooses one\n"
    "  -g, --gid GID            and as this group\n"
    "  -a, --address ADDRESS    listen there only (default: everywhere)\n"
    "  -p, --port PORT          listen on this port (default 3260)\n"
    "      --state-dir DIR      what outlives the daemon (default " STATEDIR ")\n"
    "      --socket PATH        admin socket (default " RUNDIR "/evtgtd.sock)\n"
    "      --user, --workers, --placement, --engine: as evtgtd has them\n"
    "  -v, --version            print the version and end\n"
    "  -h, --help               print this and end\n"
    "This is evtgtd with the command line of ietd.\n";

/* clang-format off */
void
main_args_ietd(struct main_options *o, int argc, char **argv)
{
    static const struct option ietd_longs[] = {
        {"config", required_argument, NULL, 'c'},   {"foreground", no_argument, NULL, 'f'},
        {"debug", required_argument, NULL, 'd'},    {"uid", required_argument, NULL, 'u'},
        {"gid", required_argument, NULL, 'g'},      {"address", required_argument, NULL, 'a'},
        {"port", required_argument, NULL, 'p'},     {"version", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
    };
    const char *address = NULL, *port = NULL;
    unsigned uid = 0, gid = 0; /* 0 is "not said", as ietd has it */
    int c;

    program = "ietd";
    o->syntax = CONF_SYNTAX_IET;
    while ((c = longopt_next(argc, argv, "c:fd:s:u:g:a:p:vh", ietd_longs, own_longs)) != -1) {
        if (main_args_common(o, c, optarg))
            continue;
        switch (c) {
        case 'c': main_args_path(&o->conf_path, optarg); break;
        case 'f': o->foreground = true; break;
        case 'd': set_debug(optarg); break;
        case 'u': uid = number("--uid", optarg, 0, 0xfffffffe); break;
        case 'g': gid = number("--gid", optarg, 0, 0xfffffffe); break;
        case 'a': address = optarg; break;
        case 'p': port = optarg; (void)number("--port", optarg, 1, 65535); break;
        case 'v': puts("ietd version " PACKAGE_VERSION " (evtgtd)"); exit(0);
        case 'h': fputs(ietd_usage, stdout); exit(0);
        default: fputs("Try `ietd --help' for more information.\n", stderr); exit(1);
        }
    }
    if (optind < argc)
        refuse("\"%s\" is not expected", argv[optind]);
    if (uid)
        o->user = gid ? xasprintf("%u:%u", uid, gid) : xasprintf("%u", uid);
    else if (gid)
        refuse("--gid %u wants --uid as well", gid);
    if (address || port)
        add_listen(o, address ? address : "", port ? port : "3260");
    if (!o->conf_path) {
        bool old = access(IETD_CONF, F_OK) < 0 && access(IETD_CONF_OLD, F_OK) == 0;
        o->conf_path = xstrdup(old ? IETD_CONF_OLD : IETD_CONF);
    }
    if (!o->socket_path) {
        char *path = dirs_admin_socket(0);
        o->socket_path = main_absolute(path);
        free(path);
    }
    if (!o->foreground)
        o->pid_path = xstrdup(IETD_PID);
}
/* clang-format on */

/* --- the configuration ----------------------------------------------------------------------- */

struct conf *
main_compat_read(const struct main_options *o, const struct conf_checks *checks,
                 struct conf_report *r, struct conf **listen)
{
    const char *text = o->listen ? o->listen : "";
    struct conf *c, *l = conf_parse("command line", text, strlen(text), NULL, r);

    if (!l || o->empty)
        return l;
    if (o->syntax == CONF_SYNTAX_AUTO) {
        c = conf_read(o->conf_path, checks, r);
    } else {
        struct conf_bundle *b = conf_bundle_read(o->conf_path, o->syntax, r);
        c = b ? conf_read_bundle(b, checks, r) : NULL;
        conf_bundle_free(b);
    }
    *listen = l;
    if (c && o->listen) { /* exchanged: each frees what it has */
        struct conf_portal *v = c->portals;
        unsigned n = c->nportals;
        c->portals = l->portals;
        c->nportals = l->nportals;
        c->no_portals = false;
        l->portals = v;
        l->nportals = n;
    }
    return c;
}
