/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to conf/: files of other targets.  IET's and LIO's are read line by line, value by value,
 * into raw nodes of our directives, with the positions of the originals, so that all that follows
 * is the same; tgt's are read as our own, and then changed where tgt-admin takes them otherwise.
 * What has no equivalent here is told as a loss (conf_report_loss), once for each line that says
 * it.
 */
#ifndef CONF_SYNTAX_H
#define CONF_SYNTAX_H

#include "conf/priv.h"

struct syntax_in {
    struct conf_raw *raw; /* files that are read beside it are added there */
    struct conf_file *file;
    const struct conf_source *src; /* NULL: nothing else is read */
    struct conf_report *r;
    enum conf_syntax syntax;
    const char *text;
    size_t len;
};

/* Nodes of a file, in order. */
struct syntax_list {
    struct raw_node *first, **tail;
};

/* By its path, then by how it begins; AUTO: as our own. */
enum conf_syntax syntax_guess(const char *path, const char *text, size_t len);

/* NULL: nothing in it, or complained. */
struct raw_node *syntax_iet(const struct syntax_in *in);
struct raw_node *syntax_lio(const struct syntax_in *in);
/* All files that are tgt's, when everything is read. */
void syntax_tgt(struct conf_raw *raw, struct conf_report *r);

/* A node at the end of the list. The value is copied. */
struct raw_node *syntax_add(struct syntax_list *list, struct conf_file *file, struct conf_pos pos,
                            struct conf_pos vpos, const char *name, const char *value);
struct raw_node *syntax_addf(struct syntax_list *list, struct conf_file *file, struct conf_pos pos,
                             const char *name, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void syntax_list_init(struct syntax_list *list);
/* In a value that our own syntax would take apart (blanks, quotes in a name or a secret). */
char *syntax_quoted(const char *word);

/* IET's access files (syntax_iet_acl.c). */
struct iet_access;
struct iet_access *iet_access_read(const struct syntax_in *in);
void iet_access_free(struct iet_access *a);
/* What stays in use, as directives outside of targets. */
void iet_access_global(const struct iet_access *a, struct syntax_list *list);
/* Else the rules of one target, as nodes of its block. */
void iet_access_nodes(struct iet_access *a, const struct raw_node *target,
                      struct syntax_list *list);

#endif
