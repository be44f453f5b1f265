/* SPDX-License-Identifier: BSD-2-Clause */
/* evtgtd's command line. Called once by main(), before anything else. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "target/main_args.h"

static const char usage_text[] =
    "usage: evtgtd [options]\n"
    "  -f, --foreground        stay in the foreground, log to stderr\n"
    "  -c, --config FILE       configuration (default " SYSCONFDIR "/evtgt.conf)\n"
    "      --syntax NAME       of the configuration: auto, evtgt, tgt, iet, iet-0.4, iet-rules,\n"
    "                          lio\n"
    "      --state-dir DIR     what outlives the daemon (default " STATEDIR ")\n"
    "      --socket PATH       admin socket (default " RUNDIR "/evtgtd.sock)\n"
    "      --user NAME[:GROUP] whom it becomes when root starts it (default evtgt or nobody)\n"
    "      --workers N         worker threads (default: one a CPU, at most 8)\n"
    "      --placement HOW     spread or affine: where new sessions go\n"
    "      --engine HOW        auto, ring or pool: how disks are driven\n"
    "  -p, --pid-file FILE     write the process id there\n"
    "  -d, --debug AREAS       debug lines of these areas (comma list, or all)\n"
    "  -t, --test              check the configuration and end\n"
    "  -V, --version           print the version and end\n"
    "  -h, --help              print this and end\n";

char *
main_absolute(const char *path)
{
    char cwd[PATH_MAX];
    if (path[0] == '/')
        return xstrdup(path);
    if (!getcwd(cwd, sizeof cwd))
        main_fail("the current directory has no name: %s", strerror(errno));
    return xasprintf("%s/%s", cwd, path);
}

void
main_args_path(char **field, const char *path)
{
    free(*field);
    *field = main_absolute(path);
}

unsigned
main_args_number(const char *name, const char *text, unsigned min, unsigned max)
{
    uint64_t v;
    if (conf_parse_uint(text, min, max, &v) < 0) {
        fprintf(stderr, "evtgtd: %s wants a number from %u to %u, not \"%s\"\n", name, min, max,
                text);
        exit(2);
    }
    return (unsigned)v;
}

static int
choice_arg(const char *name, const char *text, const char *const *words)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0)
            return i;
    }
    fprintf(stderr, "evtgtd: %s \"%s\" is not known; see --help\n", name, text);
    exit(2);
}

bool
main_args_common(struct main_options *o, int c, const char *arg)
{
    static const char *const placements[] = {"spread", "affine", NULL};
    static const char *const engines[] = {"auto", "ring", "pool", NULL};

    if (c == O_STATE)
        main_args_path(&o->state_dir, arg);
    else if (c == O_SOCKET)
        main_args_path(&o->socket_path, arg);
    else if (c == O_USER)
        o->user = arg;
    else if (c == O_WORKERS)
        o->workers = main_args_number("--workers", arg, 1, WORKERS_MAX);
    else if (c == O_PLACEMENT)
        o->affine = choice_arg("--placement", arg, placements);
    else if (c == O_ENGINE)
        o->engine = (enum disk_engine)choice_arg("--engine", arg, engines);
    else
        return false;
    return true;
}

/* clang-format off */
static void
args_evtgtd(struct main_options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        MAIN_COMMON_LONGS,
        {"syntax", required_argument, NULL, O_OTHERS},
        {"foreground", no_argument, NULL, 'f'},     {"config", required_argument, NULL, 'c'},
        {"pid-file", required_argument, NULL, 'p'}, {"debug", required_argument, NULL, 'd'},
        {"test", no_argument, NULL, 't'},           {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
    };
    int c;

    o->conf_path = main_absolute(SYSCONFDIR "/evtgt.conf");
    o->socket_path = main_absolute(RUNDIR "/evtgtd.sock");
    while ((c = getopt_long(argc, argv, "fc:p:d:tVh", longs, NULL)) != -1) {
        if (main_args_common(o, c, optarg))
            continue;
        switch (c) {
        case 'f': o->foreground = true; break;
        case 't': o->test_only = true; break;
        case O_OTHERS:
            if (!conf_syntax_find(optarg, &o->syntax)) {
                fprintf(stderr, "evtgtd: --syntax \"%s\" is not known; see --help\n", optarg);
                exit(2);
            }
            break;
        case 'c': main_args_path(&o->conf_path, optarg); break;
        case 'p': main_args_path(&o->pid_path, optarg); break;
        case 'd':
            if (log_set_debug(optarg) < 0) {
                fprintf(stderr, "evtgtd: -d: unknown area in \"%s\"\n", optarg);
                exit(2);
            }
            break;
        case 'V': puts("evtgtd " PACKAGE_VERSION); exit(0);
        case 'h': fputs(usage_text, stdout); exit(0);
        default: fputs(usage_text, stderr); exit(2);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "evtgtd: \"%s\" is not expected; see --help\n", argv[optind]);
        exit(2);
    }
}
/* clang-format on */

void
main_args(struct main_options *o, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*take)(struct main_options *o, int argc, char **argv);
    } programs[] = {{"tgtd", main_args_tgtd}, {"ietd", main_args_ietd}};
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";

    o->affine = -1;
    o->nop_interval_s = o->nop_count = CONF_UNSET;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(name, programs[i].name) == 0) {
            programs[i].take(o, argc, argv);
            return;
        }
    }
    args_evtgtd(o, argc, argv);
}
