/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of another program with options of ours beside its own. Scripts cut its long
 * options short, and what named one of them there must name it here: ours never make an
 * abbreviation ambiguous.
 */
#ifndef BASE_LONGOPT_H
#define BASE_LONGOPT_H

#include <getopt.h>

/* getopt_long, with two tables: a word that an option of `theirs` begins with is looked up there,
 * every other one in `own`. argv is not changed otherwise than by getopt_long. One thread. */
int longopt_next(int argc, char **argv, const char *shorts, const struct option *theirs,
                 const struct option *own);

#endif
