/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to ietadm*.c and iet_proc.c: what is printed in IET's forms. */
#ifndef TOOLS_IET_H
#define TOOLS_IET_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* ietadm.c: one request; a refusal ends the process with IET's words and status. Its data (a new
 * reference, perhaps NULL). */
json_t *iet_ask(const char *mode, const char *op, json_t *args);
/* IET's word for an errno and its exit status (256 - err), and more on a second line. */
void iet_die(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));

/* ietadm_show.c: "KEY=VALUE" lines. sid 0: the values that sessions negotiate from. */
void iet_show_target(unsigned tid);
void iet_show_session(unsigned tid, unsigned long long sid);
void iet_show_users(const unsigned *tid, const char *user, bool outgoing);

/* iet_proc.c: the lines of /proc/net/iet/volume and session. `data`: of target show. */
void iet_proc_volume(FILE *f, const json_t *data);
void iet_proc_session(FILE *f, const json_t *data);
void iet_proc_lun(FILE *f, const json_t *lun);
void iet_proc_conn(FILE *f, const json_t *conn);
/* After a change: both files below $EVTGT_IET_PROC or RUNDIR/iet, when that directory is there. */
void iet_proc_refresh(const char *socket);
/* evtgtadm iet-proc ... */
int iet_proc_main(int argc, char **argv);

#endif
