/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to evtgtadm: the programs it is (evtgtadm.c chooses), the call to the daemon (call.c) and
 * the printed forms (print.c).
 */
#ifndef TOOLS_ADM_H
#define TOOLS_ADM_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>

extern const char *adm_name; /* how we were called: stands before messages */

/* Says why on stderr and ends with this status (1 to 255). */
void adm_die(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));

/* Called by adm_die before it ends, and may end itself (verb.c: undoes, answers in JSON). */
extern void (*adm_dying)(int status, const char *text);

/* The programs; argv[0] is adm_name. Exit status. */
/* Their tables of long options, one after the other; NULL: no more. tgt-setup-lun has letters. */
const struct option *tgtadm_longs(unsigned i);
const struct option *tgt_admin_longs(unsigned i);
const struct option *tgtimg_longs(unsigned i);
const struct option *ietadm_longs(unsigned i);
extern const char tgt_setup_lun_letters[];

int convert_main(int argc, char **argv); /* convert.c: evtgtadm convert */
int tgtadm_main(int argc, char **argv); /* tgtadm.c; also evtgtadm --mode ... */
int tgt_admin_main(int argc, char **argv);
int tgt_setup_lun_main(int argc, char **argv);
int tgtimg_main(int argc, char **argv);
int ietadm_main(int argc, char **argv);
int verbs_main(int argc, char **argv);  /* verb.c: evtgtadm [--socket PATH] [--json] VERB ... */
/* Whether the first word that is no option which every verb has is one: a verb, or a wrong one. */
bool verbs_are_meant(int argc, char **argv);

/* -C, --control-port: which daemon, when the path is not given (call.c). 0: the usual one. */
extern unsigned adm_control_port;
/* Whether a daemon takes connections there. */
bool adm_there(const char *socket);
/* A whole request has left and its answer is not there: it may have been done. */
extern bool adm_unanswered;
/* Called when no daemon is at `path`; ends the process. NULL: tgtadm's words and status. */
extern void (*adm_no_daemon)(const char *path);

/* Sends req as a line to the daemon and returns its answer (new reference). socket NULL: the
 * default. Does not return on failure: status 107 (ENOTCONN) when no daemon is there. */
json_t *adm_call(const char *socket, json_t *req);

/* An answer as tgtadm prints it. one: of a single target ("show --tid"). */
void adm_print(const char *mode, const char *op, bool one, json_t *data);
/* Names that were taken and do nothing: on standard error. */
void adm_print_warnings(const json_t *data);

#endif
