/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "base/longopt.h"

/* getopt_long goes on at optind, past what is no option. Within a word of short ones it does not
 * matter: that one begins with a single sign. */
static const char *
next_word(int argc, char **argv)
{
    for (int i = optind; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1])
            return argv[i];
    }
    return "";
}

int
longopt_next(int argc, char **argv, const char *shorts, const struct option *theirs,
             const struct option *own)
{
    const char *word = next_word(argc, argv);
    bool is_theirs = strncmp(word, "--", 2) != 0 || !word[2];

    if (!is_theirs) {
        size_t n = strcspn(word + 2, "=");
        for (const struct option *o = theirs; o->name && !is_theirs; o++)
            is_theirs = strncmp(o->name, word + 2, n) == 0;
    }
    return getopt_long(argc, argv, shorts, is_theirs ? theirs : own, NULL);
}
