/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Giving up root: whose identity the daemon takes, and taking it for good.  Main, before threads.
 */
#ifndef BASE_PRIVS_H
#define BASE_PRIVS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct privs {
    uid_t uid;
    gid_t gid;
    char user[64];
};

/* "NAME", "NAME:GROUP"; numbers as well. 0, or -ENOENT and a text. */
int privs_find(const char *spec, struct privs *p, char *err, size_t errsize);

/* Becomes p for good: no supplementary group, no capability, no way back by a program with the
 * set-user-ID bit; all of it is looked at afterwards. 0, or -errno and what failed. */
int privs_drop(const struct privs *p, char *err, size_t errsize);

/* The opener: only the capabilities that opening, listening and its services take. */
void privs_keep_opener(void);

#endif
