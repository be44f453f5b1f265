/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Redirection of logins (RFC 7143 6.3.1, 11.13.5): where a login that was admitted is sent.
 *
 *   redirect.c      a target's settings: immutable, counted; and the decision
 *   redirect_ask.c  the program that is asked (RedirectCallback): run by helper threads
 *   admin_drain.c   the admin verbs that empty a target or the daemon
 *
 * Only logins of normal sessions are redirected: a discovery session names no target.
 */
#ifndef TARGET_REDIRECT_H
#define TARGET_REDIRECT_H

#include "target/target.h"

#define REDIRECT_TEXT 272 /* "host:65535" with a host of 255 bytes */

struct redirect_to { /* an address as TargetAddress shows it */
    char text[REDIRECT_TEXT];
    struct sockaddr_storage addr; /* ss_family 0: a host name */
    bool permanent;
};

struct drain {
    unsigned id;           /* each drain has another; never 0 */
    unsigned deadline_s;   /* for sessions to log out */
    struct redirect_to to; /* text "": logins are refused with 03/01 */
};

/* "ADDRESS", "ADDRESS:PORT", "[v6]:PORT", bare IPv6, host names; no port: `port`.  0, or -EINVAL
 * and why. Wildcards and what is not to be had in a TargetAddress are refused. */
int redirect_parse_to(const char *text, unsigned port, struct redirect_to *to, char *err,
                      size_t errsize);

/* --- settings; any thread but redirect_with: main ----------------------------------------------
 */

struct redirect;
/* `old` (NULL: nothing is set) with one setting changed, as a new reference; NULL and *rc: -ENOENT:
 * no such name; -EINVAL and err. Names: RedirectAddress, RedirectPort, RedirectReason,
 * RedirectCallback (as tgt has them; the value "" or "none" takes the setting away) and
 * redirect-initiator "WHO ADDRESS[:PORT] [Temporary|Permanent]", "WHO here", "WHO none". */
struct redirect *redirect_with(const struct redirect *old, const char *name, const char *value,
                               int *rc, char *err, size_t errsize);
/* Text of what is set and has no effect as the rest is; NULL: nothing is so. NULL r is well. */
const char *redirect_odd(const struct redirect *r);
struct redirect *redirect_get(struct redirect *r);
void redirect_put(struct redirect *r); /* NULL is well */
/* The i-th setting for show; false after the last. value of 1400 bytes always suffices. */
bool redirect_show(const struct redirect *r, unsigned i, const char **name, char *value,
                   size_t size);

/* --- the decision; on the connection's worker --------------------------------------------------
 */

struct redirect_answer {
    enum login_status status; /* LS_OK: the login goes on; LS_MOVED_TEMP, LS_MOVED_PERM;
                                 LS_UNAVAILABLE; LS_ASKING: the program must be asked */
    char to[REDIRECT_TEXT];   /* TargetAddress of a moved one */
    const char *why;          /* static text */
};
/* For a login that the target's access rules admit. In this order: drain, redirect-initiator (the
 * first that fits), RedirectCallback, RedirectAddress. An address at which the login came in is
 * none: it goes on here. */
void redirect_decide(const struct conn *c, const struct tgt_node *n, const char *initiator,
                     struct redirect_answer *a);
/* Asks the program: done(c, a) comes later on the connection's worker, also when the connection is
 * closing by then (its memory stays until done). False: too many are being asked, in all or for
 * logins of that address. */
bool redirect_ask(struct conn *c, const struct tgt_node *n, const char *initiator,
                  void (*done)(struct conn *c, const struct redirect_answer *a));
/* The login is over: if its turn has not come, the program is not run, and done is not called. The
 * caller holds a reference of c. */
void redirect_forget(struct conn *c);

/* Main, before logins; and at the end: programs that still run are killed. */
void redirect_init(void);
void redirect_stop(void);

/* --- private to redirect*.c --------------------------------------------------------------------
 */

const char *redirect_callback(const struct redirect *r); /* NULL: none */
/* RedirectAddress, for who was not sent elsewhere: fills `a`. */
void redirect_static(const struct conn *c, const struct redirect *r, struct redirect_answer *a);
/* Moved there, unless it is where c came in. */
void redirect_moved(const struct conn *c, const struct redirect_to *to, struct redirect_answer *a);
/* What the program printed. False: it makes no sense. to->text "": nowhere. */
bool redirect_read_answer(const char *line, struct redirect_to *to, char *err, size_t errsize);

#endif
