/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Applying configurations, as admin_config.c asks for it: without conf/.  Main only.
 */
#ifndef TARGET_APPLY_ASK_H
#define TARGET_APPLY_ASK_H

#include <jansson.h>
#include <stdbool.h>

struct apply_job;

struct apply_ask {
    bool whole;     /* all targets, and what stands outside of them */
    char **targets; /* else these, by folded name; none: those that it has */
    unsigned ntargets;
    bool add; /* none of them may be there, and every backing store must open */
    bool force, pretend;
    bool reload;                /* of the daemon's own configuration */
    json_t *bundle;             /* else of this; borrowed until done */
    bool (*is_late)(void *arg); /* asked before the change begins: true leaves all as it is */
    void (*done)(struct apply_job *job, void *arg); /* once, on main, never inside apply_begin */
    void *arg;
};

enum apply_end {
    APPLY_DONE,
    APPLY_WRONG,  /* the messages say what */
    APPLY_EXISTS, /* why: the target that is there already */
    APPLY_IN_USE, /* why: who is logged in */
};

/* One at a time: who asks sees to it. */
void apply_begin(const struct apply_ask *ask);
/* For done. */
enum apply_end apply_job_end(const struct apply_job *job, const char **why);
/* target NULL: the daemon. Planned, when nothing was done. */
void apply_each_change(const struct apply_job *job,
                       void (*put)(void *arg, const char *target, const char *what,
                                   const char *how),
                       void *arg);
void apply_each_message(const struct apply_job *job,
                        void (*put)(void *arg, const char *file, unsigned line, unsigned col,
                                    bool error, const char *text),
                        void *arg);
void apply_job_free(struct apply_job *job);

/* The configuration as it is now, or one target (folded name); secrets: with them. NULL: there is
 * no such target. secret_free_text. */
char *apply_dump(const char *target, bool secrets);

#endif
