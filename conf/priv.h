/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to conf/: where texts come from (source.c, bundle.c), the raw tree (raw.c: lines and
 * blocks, no meaning), the table of directives (table.c: names and simple values), the build
 * (build.c: raw tree -> struct conf) and what must be unique over all targets (compare.c).
 */
#ifndef CONF_PRIV_H
#define CONF_PRIV_H

#include "conf/conf.h"
#include "conf/source.h"

struct conf_file {
    struct conf_file *next;   /* all files read, for freeing */
    struct conf_file *parent; /* who included it */
    char *name;
    struct conf_stat st;     /* of a text in memory: no file */
    enum conf_syntax syntax; /* AUTO: that of who included it, of the first one: evtgt */
    bool told;               /* that others may read its secrets */
};

/* A directive line, or a block with its children. */
struct raw_node {
    struct raw_node *next;     /* sibling */
    struct raw_node *children; /* of a block */
    struct conf_file *file;
    char *name, *value; /* value "" when there was none */
    struct conf_pos pos, vpos;
    bool is_block;
};

struct conf_raw {
    struct conf_file *files;
    struct raw_node *top;
};

/* source.c */
char *source_grow(char *p, size_t used, size_t size);
void source_wipe_free(char *p, size_t n); /* NULL: nothing */

/* raw.c */
struct conf_raw *raw_read(const struct conf_source *src, const char *path, enum conf_syntax syntax,
                          struct conf_report *r);
/* From memory; `include` is refused. */
struct conf_raw *raw_parse(const char *name, enum conf_syntax syntax, const char *text, size_t len,
                           struct conf_report *r);
void raw_free(struct conf_raw *raw);

/* bundle.c */
/* Reads what stands in b, which remembers where it was. */
struct conf_source bundle_source(struct conf_bundle *b);
struct conf_raw *bundle_raw(const struct conf_bundle *b, const struct conf_source *src,
                            struct conf_report *r);

/* table.c */
enum conf_scope { SC_GLOBAL = 1, SC_TARGET = 2, SC_LUN = 4, SC_LIVE = 8, SC_PORTAL = 16 };

struct setter_out {
    char *err;
    size_t errsize;
    char *warn;
    size_t warnsize;
};

struct directive {
    const char *name;
    unsigned scopes;
    /* Simple values: 0 or -EINVAL with out->err filled. NULL: build.c handles it by name, or
     * `refuse` says why it is not accepted. */
    int (*set)(void *obj, const struct directive *d, const char *value, struct setter_out *out);
    size_t off;        /* of the field in struct conf, conf_target, conf_lun or conf_portal */
    uint64_t min, max; /* numbers; string setters: max bytes */
    bool many;         /* may be given more than once */
    const char *refuse;
};
const struct directive *table_find(const char *name, unsigned scopes);
const struct directive *table_find_any(const char *name);
/* Text that tells what may stand here: a near name, or the list. */
void table_suggest(const char *name, unsigned scopes, char *out, size_t size);

/* build.c: takes over raw. src: for files that directives name (secrets). */
struct conf *build(struct conf_raw *raw, const struct conf_source *src,
                   const struct conf_checks *checks, struct conf_report *r);

/* account.c */
/* An initiator's name or pattern that no iSCSI name (RFC 7143 4.2.7.1) can fit is warned of. */
void conf_name_look(struct conf_report *r, const struct conf_pos *pos, const char *directive,
                    const char *name);
struct account_ctx {
    const struct conf_source *src;
    const struct conf_checks *ck;
    struct conf_report *r;
};
void conf_account_add(const struct account_ctx *ctx, struct conf_accounts *list, bool outgoing,
                      const struct raw_node *n);
/* As conf_secret_file, of a source. */
int account_secret_file(const struct conf_source *src, const char *path, struct secret **out,
                        char *err, size_t errsize);
/* What only shows when all is read: a target's accounts together with those of the daemon, which
 * stand in for a direction that the target does not name. */
void conf_accounts_check(struct conf_report *r, const struct conf_accounts *own,
                         const struct conf_accounts *common);
void conf_account_fini(struct conf_account *a);
void conf_accounts_fini(struct conf_accounts *list);

/* compare.c */
/* What must not be twice over all targets: stores with unlike settings, identities. */
void compare_luns(const struct conf *c, struct conf_report *r);
/* "file:line:column"; returns buf. */
const char *compare_where(const struct conf_pos *pos, char *buf, size_t size);
#define WHERE(pos) compare_where(pos, (char[256]){0}, 256)

#endif
