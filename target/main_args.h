/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to main*.c: what the command line says. */
#ifndef TARGET_MAIN_ARGS_H
#define TARGET_MAIN_ARGS_H

#include <stdbool.h>

#include "base/disk.h"

#define WORKERS_MAX 64

struct main_options {
    char *conf_path, *state_dir, *socket_path, *pid_path;
    bool foreground, test_only;
    unsigned workers; /* 0: as configured */
    int affine;       /* -1: as configured */
    enum disk_engine engine;
};

/* main_args.c: evtgtd's own options. What is wrong is said on stderr, and the process ends. */
void main_args(struct main_options *o, int argc, char **argv);

/* main.c: before "ready": says why on stderr (and in the log) and ends with status 1. */
void main_fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* main_args.c: the daemon leaves its directory: every path is made absolute first. malloc'ed. */
char *main_absolute(const char *path);

#endif
