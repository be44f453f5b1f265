/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was asked to outlive the daemon: one record of the control store, "saved-config", with the
 * text of each saved target and that of the settings outside of targets.  Laid over the
 * configuration file at the start and at each reload (apply_saved_lay.c); changed by admin requests
 * (apply_saved.c), one after the other, each durable before it is answered.
 *
 * A text that cannot be used is told and kept as it is until it is forgotten.
 */
#ifndef TARGET_APPLY_SAVED_H
#define TARGET_APPLY_SAVED_H

#include <jansson.h>
#include <stdbool.h>

struct cstore;
struct conf;
struct conf_report;

/* --- the start, and reloads ------------------------------------------------------------------ */

/* Reads the record and lays it over what the file says; frees `file`, gives the sum. Blocking: main
 * before its loop, with the rights of the start. */
struct conf *apply_saved_start(struct cstore *cs, struct conf *file, bool own_portals);

/* What a helper lays over a file, and what comes of it. */
struct apply_saved_job {
    json_t *record; /* a copy; NULL: nothing is saved */
    json_t *bad;    /* name ("" the daemon): why it is not used */
    json_t *file;   /* names of the file's targets */
};
void apply_saved_begin(struct apply_saved_job *j); /* main */
/* own_portals: those of `file` stand whatever is saved. Frees `file`. In a helper. */
struct conf *apply_saved_lay(struct apply_saved_job *j, struct conf *file, bool own_portals,
                             struct conf_report *r);
void apply_saved_take(struct apply_saved_job *j); /* main: it is in force */
void apply_saved_fini(struct apply_saved_job *j);

/* A saved target has a store there: the opener's permission outlives the store. */
bool apply_saved_has_path(const char *path);
/* Something that is saved is not used, and kept. */
bool apply_saved_any_bad(void);

/* --- admin requests -------------------------------------------------------------------------- */

struct apply_saving {
    json_t *targets; /* array of folded names; borrowed until it returns; NULL: none */
    bool globals;    /* and what stands outside of targets */
    bool all;        /* everything, instead */
    bool forget;     /* else as it is now, deleted where it is not there */
    /* Once, on main, perhaps before it returns. why NULL: done, and `what` was saved or forgotten
     * (borrowed), in the form of apply_saved_list. */
    void (*done)(void *arg, const char *why, json_t *what);
    void *arg;
};
void apply_save(const struct apply_saving *s);
/* [{target?, when, deleted, error?}]; without target: the daemon. */
json_t *apply_saved_list(void);
/* Why the record as a whole cannot be read; NULL: it can, or there is none. */
const char *apply_saved_broken(void);
bool apply_saved_has(const char *target);
/* The configuration file has it, as it was last read. */
bool apply_saved_in_file(const char *target);
bool apply_autosave(void);

/* --- apply_saved_lay.c, the form of the record ----------------------------------------------- */

json_t *apply_saved_encode(const char *text); /* bytes from 80h stand as U+0080 to U+00FF */
char *apply_saved_decode(const json_t *j);    /* secret_free_text; NULL: it is none */

#endif
