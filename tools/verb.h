/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain verbs of evtgtadm ("target create ..."). One table (verbs.c) has a row a verb: its
 * arguments, options, help and function. verb.c parses by it and reports errors, verb_help.c makes
 * the help and the completion of it, verb_out.c prints, verb_find.c asks the daemon for targets.
 *
 * A verb either returns (0: done) or ends the process by verb_fail; what it holds then goes with
 * the process, secrets are wiped by whoever made them.
 */
#ifndef TOOLS_VERB_H
#define TOOLS_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERB_NOT_DONE 1
#define VERB_USAGE    2

enum verb_flag {
    VF_CHANGES = 1, /* has --persist */
    VF_LOCAL = 2,   /* speaks to no daemon: has no --socket */
    VF_HIDDEN = 4,  /* not in the lists */
    VF_OWN = 16,    /* takes its words as they are, but for --help */
    VF_RAW = 8,     /* prints text as it is: has no --json */
};

struct call;

struct verb_opt {
    const char *name; /* without the dashes */
    const char *arg;  /* NULL: a flag; "[PATH]": may follow after =; "a|b": one of these */
    const char *help;
    bool many;
};

struct verb {
    const char *name; /* "target create" */
    /* "TARGET [LUN] RULE...": words in brackets may be left out, the last may come more than once;
     * the words say what completion offers. */
    const char *args;
    const char *summary;         /* one line */
    const char *text;            /* more, or NULL */
    const char *examples;        /* lines without the program's name */
    unsigned flags;              /* VF_* */
    const struct verb_opt *opts; /* ends with a NULL name; or NULL */
    int (*run)(struct call *c);
};

struct given {
    const struct verb_opt *opt;
    const char *value; /* "" for a flag */
};

struct undo {
    void (*fn)(struct call *c, void *arg);
    void *arg;
};

struct call {
    const struct verb *v;
    const char **args;
    unsigned nargs;
    struct given *given;
    unsigned ngiven;
    const char *socket; /* NULL: the default */
    bool json, persist, yes;
    struct undo undo[8]; /* run backwards when the verb fails */
    unsigned nundo;
    bool in_doubt; /* the last request may have been done, whatever its answer */
};

/* verbs.c: NULL after the last. */
const struct verb *verb_at(unsigned i);
/* Options that every verb with these flags has, after its own; NULL after the last. */
const struct verb_opt *verb_common(const struct verb *v, unsigned i);

/* verb.c */
int verbs_main(int argc, char **argv);
/* The value of the option given last, "" for a flag; NULL: not given. */
const char *call_opt(const struct call *c, const char *name);
/* One value after the other: *i starts with 0. NULL: no more. */
const char *call_each(const struct call *c, const char *name, unsigned *i);
/* Argument n, or NULL. */
const char *call_arg(const struct call *c, unsigned n);
/* Says why (and, with hint, what would be right), undoes, ends. code: for --json. */
void verb_fail(struct call *c, int status, const char *code, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 5, 6), noreturn));
/* Wrong options or arguments: with the verb's usage line. */
void verb_usage(struct call *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), noreturn));
void verb_undo(struct call *c, void (*fn)(struct call *c, void *arg), void *arg);
void verb_undo_none(struct call *c); /* what was done stays */
/* The daemon's whole answer; args: stolen reference, NULL: none. With --persist the daemon is also
 * told to keep what the request changes. */
json_t *verb_try(struct call *c, const char *mode, const char *op, json_t *args);
/* Its data (or NULL); a refusal ends. */
json_t *verb_ask(struct call *c, const char *mode, const char *op, json_t *args);
/* Ends because of an answer that is a refusal. */
void verb_refused(struct call *c, const json_t *reply) __attribute__((noreturn));
/* "500G", "1.5T", "4096": bytes; ends with a usage error. */
uint64_t verb_size(struct call *c, const char *text);
bool verb_parse_size(const char *text, uint64_t *out);
char *verb_size_text(uint64_t bytes); /* "500 GiB"; heap */
/* A whole number, else a usage error that says `what`. */
unsigned verb_number(struct call *c, const char *what, const char *text, unsigned min,
                     unsigned max);
/* Asks on the terminal, unless --yes. false: no. */
bool verb_sure(struct call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* verb_out.c */
/* With --json prints {"v":1,"ok":true,"data":...} (data: stolen, NULL: {}) and is true. */
bool verb_json(struct call *c, json_t *data);
/* Without --json: a line for people; what was done, what to do next. */
void verb_say(const struct call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A warning on standard error. */
void verb_warn(const struct call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

enum colour { PLAIN, GOOD, BAD, ODD, HEAD };
#define CELLS_MAX 10
struct table {
    unsigned ncols, nrows;
    struct row {
        char *cell[CELLS_MAX];
        enum colour colour[CELLS_MAX];
    } * rows; /* the first is the heading */
};
void table_init(struct table *t, unsigned ncols, const char *const heads[]);
/* A new row's next cell. */
void table_cell(struct table *t, enum colour colour, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void table_print(struct table *t);
bool out_is_coloured(void);
/* Text in a colour where that is wanted; a new string. */
char *out_paint(enum colour colour, const char *text);
/* What stands in text that others chose cannot steer the terminal; a new string. */
char *out_plain(const char *text);

/* Members of JSON objects: "" and 0 when they are not there. */
const char *j_str(const json_t *o, const char *name);
long long j_num(const json_t *o, const char *name);
bool j_is(const json_t *o, const char *name);

/* verb_find.c */
struct target_id {
    long long tid;
    char *name;
};
/* By name, by the end of a name that no other has, or by tid; ends when there is none. */
struct target_id find_target(struct call *c, const char *text);
/* The name of one that is served or saved; the caller's. A whole name is taken as it is. */
char *find_saved_name(struct call *c, const char *text);
/* As show has it; new reference. */
json_t *find_target_shown(struct call *c, const struct target_id *t);
/* The whole list of `target show`. */
json_t *find_all(struct call *c);
/* A LUN of a shown target; ends when it is not there. */
json_t *find_lun(struct call *c, const json_t *target, const char *number);
/* The name for a new target: as it is, or "iqn.YYYY-MM.DOMAIN:" before a short one; heap. */
char *find_new_name(struct call *c, const char *text);
/* For completion: names of targets, one a line; nothing when no daemon is there. */
void find_names_print(const char *socket);

/* verb_secret.c */
/* From --OPTION-file FILE or -, --generate-password or the terminal; in a buffer that is wiped by
 * secret_put_text. *generated: it is to be shown once. */
char *verb_password(struct call *c, const char *file_opt, const char *user, bool *generated);
void verb_password_done(char *password);

/* verb_file.c: files and devices behind LUNs */
/* Makes it (O_EXCL); removed again when the verb fails. */
void file_create(struct call *c, const char *path, uint64_t bytes, bool full);
char *file_absolute(struct call *c, const char *path);
struct stat;
/* May it be erased? Ends with the reason when not. all: the targets as shown. *which: what it is;
 * file_erase erases nothing else. */
void file_erase_check(struct call *c, const char *path, const json_t *all, long long tid,
                      long long lun, struct stat *which);
void file_erase(struct call *c, const char *path, const struct stat *which);
/* A file's new size; full: what is new is reserved. *had: the size before. False: it had it
 * already. A smaller one only with --shrink. */
bool file_resize(struct call *c, const char *path, uint64_t bytes, bool full, uint64_t *had);

/* verb_help.c */
void help_verb(const struct verb *v);
void help_group(const char *group);
void help_all(void);
char *help_usage(const struct verb *v); /* "target delete TARGET [--force]"; heap */
bool help_is_group(const char *word);

/* The verbs: verb_target.c, verb_lun.c, verb_access.c, verb_sess.c, verb_conf.c, verb_saveall.c,
 * verb_zram.c, verb_help.c, verb_complete.c */
int verb_target_create(struct call *c);
int verb_target_delete(struct call *c);
int verb_target_list(struct call *c);
int verb_target_show(struct call *c);
int verb_target_set(struct call *c);
int verb_lun_add(struct call *c);
int verb_lun_remove(struct call *c);
int verb_lun_resize(struct call *c);
int verb_lun_list(struct call *c);
int verb_lun_set(struct call *c);
int verb_lun_acknowledge(struct call *c);
int verb_acl_allow(struct call *c);
int verb_acl_deny(struct call *c);
int verb_acl_list(struct call *c);
int verb_account_add(struct call *c);
int verb_account_remove(struct call *c);
int verb_account_list(struct call *c);
int verb_account_bind(struct call *c);
int verb_account_unbind(struct call *c);
int verb_portal_add(struct call *c);
int verb_portal_remove(struct call *c);
int verb_portal_list(struct call *c);
int verb_session_list(struct call *c);
int verb_session_kill(struct call *c);
int verb_status(struct call *c);
int verb_drain(struct call *c);
int verb_undrain(struct call *c);
int verb_reload(struct call *c);
int verb_dump(struct call *c);
int verb_check(struct call *c);
int verb_convert(struct call *c);
int verb_save(struct call *c);
int verb_forget(struct call *c);
int verb_saved(struct call *c);
int verb_save_all(struct call *c);
int verb_restore_all(struct call *c);
int verb_zram_show(struct call *c);
int verb_zram_compact(struct call *c);
int verb_zram_recompress(struct call *c);
int verb_zram_list(struct call *c);
int verb_zram_create(struct call *c);
int verb_zram_remove(struct call *c);
int verb_help(struct call *c);
int verb_completion(struct call *c);
int verb_complete(struct call *c);
int verb_complete_of(struct call *c);

#endif
