/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to conf/: where texts come from (source.c, bundle.c), the raw tree (raw.c: lines and
 * blocks, no meaning), the table of directives (table.c; types.c, types_lun.c: values), the build
 * (build.c: raw tree -> struct conf) and what must be unique over all targets (compare.c).
 */
#ifndef CONF_PRIV_H
#define CONF_PRIV_H

#include "conf/conf.h"
#include "conf/source.h"

#define TID_MAX 65535u /* controller_tid */

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
    bool quoted;    /* the value stood in quotes */
    bool open;      /* it begins with a quote that nothing closes */
    bool by_rule;   /* a syntax's rule says it, nobody wrote it */
    bool told;      /* as a loss: that it has no effect is not said again */
    bool gone;      /* it has its number among its like, and then it is left out */
    char *unserved; /* of a target: what it asks for and is not served, a line each; or NULL */
};

struct conf_raw {
    struct conf_file *files;
    struct raw_node *top;
};

/* copy.c: numbers of targets that nobody chose: that of the target in `running` (NULL: none), else
 * the one it has by a rule of its syntax if that is free, else the lowest free one. stays: what is
 * in `running` and not in `c` keeps its number. */
void conf_number(struct conf *c, const struct conf *running, bool stays);

/* source.c */
char *source_grow(char *p, size_t used, size_t size);
void source_wipe_free(char *p, size_t n); /* NULL: nothing */

/* raw.c */
#define RAW_VALUE_MAX 32000u /* bytes; written with a backslash before each it fits a line */
struct conf_raw *raw_read(const struct conf_source *src, const char *path, enum conf_syntax syntax,
                          struct conf_report *r);
/* From memory; `include` is refused. */
struct conf_raw *raw_parse(const char *name, enum conf_syntax syntax, const char *text, size_t len,
                           struct conf_report *r);
void raw_free(struct conf_raw *raw);
/* What it is written in; never AUTO. */
enum conf_syntax file_syntax(const struct conf_file *f);
void raw_nodes_free(struct raw_node *n);

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

/* Text that grows; it may hold secrets, so what is given back is wiped. */
struct text {
    char *p; /* NUL-terminated; NULL: empty */
    size_t n, cap;
    bool secrets;  /* wanted; else a mark stands in place of each */
    bool left_out; /* there is such a mark */
};
void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_reset(struct text *t); /* to empty; the flag `secrets` stays */
void text_fini(struct text *t);
/* One word of several in a value, in quotes where it must be (account.c reads it). */
void text_add_word(struct text *t, const char *word, size_t len);

struct directive;

/* What a value is. Reading what show wrote gives the same field. */
struct conf_type {
    /* 0 or -EINVAL with out->err filled. NULL: build.c handles it by name. */
    int (*set)(void *obj, const struct directive *d, const char *value, struct setter_out *out);
    /* The i-th value (only 0 unless the directive may be given more than once) into `out`, which is
     * empty; false: there is none. NULL: never written. */
    bool (*show)(const void *obj, const struct directive *d, unsigned i, struct text *out);
    const char *const *words; /* those that may stand, NULL after the last */
    /* Whether two fields are the same. NULL: when they are shown the same. */
    bool (*same)(const void *a, const void *b, const struct directive *d);
};
extern const struct conf_type type_user, type_uint, type_bool, type_bool_alias, type_text,
    type_inquiry, type_ref, type_state_dir, type_placement, type_ids, type_discovery_filter,
    type_state, type_chap_algs, type_flag, type_discoverable, type_driver, type_ignored, type_owned,
    type_ignore_errors, type_control_port, type_dscp, type_advertise, type_initiator_address,
    type_initiator_name, type_local_address, type_isns_server, type_access, type_redirect,
    type_bind_portal, type_bind_group, type_incoming, type_outgoing, type_bytes,
    type_bytes_alias;
/* Bytes with an optional K, M, G or T (binary); 0: not one, or above max. */
uint64_t type_parse_bytes(const char *value, uint64_t max);
/* types_lun.c */
extern const struct conf_type type_device_type, type_bs_type, type_bsoflags, type_layer,
    type_block_size, type_rotation, type_size, type_naa, type_eui, type_designator,
    type_sense_format, type_lun, type_zram_algorithm, type_zram_algorithm_alias, type_chunk_size;

extern const struct conf_type type_mode_page; /* lun_pages.c */

struct directive {
    const char *name;
    unsigned scopes;
    const struct conf_type
        *type;         /* NULL: handled by name, or `refuse` says why it is not accepted */
    size_t off;        /* of the field in struct conf, conf_target, conf_lun or conf_portal */
    uint64_t min, max; /* numbers; string setters: max bytes */
    bool many;         /* may be given more than once */
    const char *refuse;
};
const struct directive *table_find(const char *name, unsigned scopes);
/* The i-th row of the whole table, or NULL. */
const struct directive *table_row(unsigned i);
/* Shown of an object of this scope; what a target may say for its LUNs is the LUNs'. */
bool table_shown(const struct directive *d, enum conf_scope scope);
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
/* Its value in a directive. */
void account_show(const struct conf_account *a, struct text *out);
/* As conf_secret_file, of a source. */
int account_secret_file(const struct conf_source *src, const char *path, struct secret **out,
                        char *err, size_t errsize);
/* What only shows when all is read: a target's accounts together with those of the daemon, which
 * stand in for a direction that the target does not name. */
void conf_accounts_check(struct conf_report *r, const struct conf_accounts *own,
                         const struct conf_accounts *common);
void conf_account_fini(struct conf_account *a);
void conf_accounts_fini(struct conf_accounts *list);

/* access.c */
/* Reads the file that the directive names, or complains. */
void access_read(const struct account_ctx *ctx, struct conf_access *a, enum conf_access_file which,
                 const struct raw_node *n);

/* copy.c */
void conf_kept_free(struct conf *c);

/* compare.c */
/* What must not be twice over all targets: stores with unlike settings, identities. */
void compare_luns(const struct conf *c, struct conf_report *r);
/* "file:line:column"; returns buf. */
const char *compare_where(const struct conf_pos *pos, char *buf, size_t size);
#define WHERE(pos) compare_where(pos, (char[256]){0}, 256)

#endif
