/* SPDX-License-Identifier: BSD-2-Clause */
/* The access files of the configuration put in force (apply_access.c). Main only. */
#ifndef TARGET_APPLY_ACCESS_H
#define TARGET_APPLY_ACCESS_H

#include "conf/conf.h"

/* As conf_checks has it. */
int apply_access_check(enum conf_access_file which, const char *target, const char *entries,
                       char *err, size_t errsize, char *warn, size_t warnsize, void *arg);
/* In place of those that there were; from the next publication on. */
void apply_access(const struct conf *c);
/* The path of one that is in force, or NULL. */
const char *apply_access_path(enum conf_access_file which);
/* Looks whether somebody changed the files, and heeds it; when the last look is over. */
void apply_access_look(void);

#endif
