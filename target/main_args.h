/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to main*.c: what the command line says. */
#ifndef TARGET_MAIN_ARGS_H
#define TARGET_MAIN_ARGS_H

#include <stdbool.h>

#include "base/disk.h"
#include "conf/conf.h"
#include "conf/source.h"

struct cstore;
struct privs;

#define WORKERS_MAX 64

struct main_options {
    char *conf_path, *state_dir, *socket_path, *pid_path;
    const char *user;        /* NAME or NAME:GROUP, or NULL */
    char *listen;            /* portals of the command line, "ADDR:PORT" a line; or NULL */
    bool empty;              /* tgtd: no configuration is read */
    enum conf_syntax syntax; /* of the configuration */
    bool foreground, test_only;
    unsigned nop_interval_s, nop_count; /* CONF_UNSET: not said */
    unsigned workers;                   /* 0: as configured */
    int affine;                         /* -1: as configured */
    enum disk_engine engine;
};

/* main_args.c: by the name of the program: evtgtd's options, tgtd's or ietd's. What is wrong is
 * said on stderr, and the process ends. */
void main_args(struct main_options *o, int argc, char **argv);

/* Options that the daemon takes under every name. */
enum { O_STATE = 256, O_SOCKET, O_USER, O_WORKERS, O_PLACEMENT, O_ENGINE, O_OTHERS };
#define MAIN_COMMON_LONGS                                                                          \
    {"state-dir", required_argument, NULL, O_STATE},                                               \
        {"socket", required_argument, NULL, O_SOCKET}, {"user", required_argument, NULL, O_USER},  \
        {"workers", required_argument, NULL, O_WORKERS},                                           \
        {"placement", required_argument, NULL, O_PLACEMENT},                                       \
    {                                                                                              \
        "engine", required_argument, NULL, O_ENGINE                                                \
    }
/* main_args.c. False: c is none of them. */
bool main_args_common(struct main_options *o, int c, const char *arg);
void main_args_path(char **field, const char *path);
unsigned main_args_number(const char *name, const char *text, unsigned min, unsigned max);

/* main_compat.c: the command lines of other daemons. */
void main_args_tgtd(struct main_options *o, int argc, char **argv);
void main_args_ietd(struct main_options *o, int argc, char **argv);
/* The configuration that the options ask for, with the portals of the command line. *listen is
 * freed with it: it has their texts. NULL: r says why. */
struct conf *main_compat_read(const struct main_options *o, const struct conf_checks *checks,
                              struct conf_report *r, struct conf **listen);

/* main.c: before "ready": says why on stderr (and in the log) and ends with status 1. */
void main_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* main_args.c: the daemon leaves its directory: every path is made absolute first. malloc'ed. */
char *main_absolute(const char *path);

/* main_user.c, in this order. Who the daemon will be: the option, the directive (either may be
 * NULL), or the default; fails when there is no such user. */
void main_user_choose(const char *option, const char *directive);
/* NULL: it stays who it is. */
const struct privs *main_user(void);
/* 0, or -ELOOP: a symbolic link, where a directory is to be given away. */
int main_user_check_dir(const char *path);
void main_user_give(struct cstore *cs, const char *dir);
void main_user_become(void);

#endif
