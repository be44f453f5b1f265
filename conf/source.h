/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where configuration files come from.  All file access of conf/ goes through a source: the file
 * system, or a bundle, which holds everything that reading one configuration needs.  A tool makes a
 * bundle with its caller's rights and sends it; the daemon reads it with its own checks and never
 * opens a file that somebody else named.  Secrets stand in bundles as they stand in the files: what
 * is freed here is wiped.  Plain functions without state; blocking.
 */
#ifndef CONF_SOURCE_H
#define CONF_SOURCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "conf/conf.h"

#define CONF_FILES_MAX   4096u      /* that a configuration includes */
#define CONF_BYTES_MAX   (8u << 20) /* all files together */
#define CONF_LISTED_MAX  65536u     /* names in all directories and patterns together */
#define CONF_SECRETS_MAX 65536u     /* files with a secret each */

struct conf_stat {
    bool is_file;  /* a regular one */
    unsigned mode; /* st_mode & 07777 */
    uid_t uid;
    gid_t gid;
};

struct conf_source {
    /* The whole file, of at most max bytes; *text is malloc'ed, the caller wipes and frees it. 0 or
     * -errno (-EFBIG: longer); with -errno nothing was given. */
    int (*read)(void *arg, const char *path, size_t max, char **text, size_t *len,
                struct conf_stat *st);
    /* Paths of the files that stand in a directory or fit a pattern of glob(7), sorted; perhaps
     * none. -ENOTDIR: it is neither, so it names one file; else 0 or -errno. conf_names_free. */
    int (*list)(void *arg, const char *pattern, char ***names, size_t *n);
    void *arg;
    uid_t uid; /* who reads: its files and those of root may hold secrets */
};

/* The file system, as this process. */
struct conf_source conf_source_files(void);
void conf_names_free(char **names, size_t n);

enum conf_syntax {
    CONF_SYNTAX_AUTO, /* guessed by path and text */
    CONF_SYNTAX_EVTGT,
    CONF_SYNTAX_TGT,
    CONF_SYNTAX_IET,
    CONF_SYNTAX_LIO,
    CONF_SYNTAX_IET04,     /* ietd.conf, with access files as IET 0.4 took them */
    CONF_SYNTAX_IET_RULES, /* ietd.conf, with access files as rules of each target */
};
/* "auto", "evtgt", "tgt", "iet", "lio", "iet-0.4", "iet-rules"; by name: false when there is no
 * such one. */
const char *conf_syntax_name(enum conf_syntax syntax);
bool conf_syntax_find(const char *name, enum conf_syntax *out);

/* What the first file was taken as; never AUTO. */
enum conf_syntax conf_syntax_of(const struct conf *c);

/* --- bundles --------------------------------------------------------------------------------- */

struct conf_bundle;

/* Everything that reading `path` needs: what it includes, the lists of directories and patterns,
 * files with secrets; also which of them could not be read, and why, so that who reads the bundle
 * tells it in its place. NULL, and why in the report, when the root itself cannot be read or it is
 * more than a bundle holds. */
struct conf_bundle *conf_bundle_read(const char *path, enum conf_syntax syntax,
                                     struct conf_report *r);
/* Of a text in memory; include is refused in it, files with secrets are read. name: for messages.
 */
struct conf_bundle *conf_bundle_text(const char *name, enum conf_syntax syntax, const char *text,
                                     size_t len);
void conf_bundle_free(struct conf_bundle *b); /* NULL: nothing */
/* The root's path or the text's name; the bundle's. */
const char *conf_bundle_name(const struct conf_bundle *b);

/* As a JSON object, and back. Bytes from 80h stand as U+0080 to U+00FF, NUL as U+0100. unpack
 * believes nothing: NULL and why, when it is not what pack makes or too much. */
json_t *conf_bundle_pack(const struct conf_bundle *b);
struct conf_bundle *conf_bundle_unpack(const json_t *json, char *err, size_t errsize);

/* As conf_read; nothing but the bundle is read. */
struct conf *conf_read_bundle(struct conf_bundle *b, const struct conf_checks *checks,
                              struct conf_report *r);

#endif
