/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to syntax_lio*.c. */
#ifndef CONF_SYNTAX_LIO_H
#define CONF_SYNTAX_LIO_H

#include "conf/syntax.h"
#include "conf/syntax_json.h"

struct lio {
    const struct syntax_in *in;
    struct json_places *places;
    struct syntax_list globals, portals, targets;
    json_t *objects; /* storage_objects */
    json_t **used;   /* those that became a disk */
    size_t nused;
};

/* An attribute, its value when nobody chose, and why another has no equivalent. */
struct lio_attr {
    const char *name;
    long long standard;
    const char *why;
};

/* A string of one line that says something, or NULL. */
const char *lio_text(json_t *o, const char *key);
long long lio_number(json_t *o, const char *key, long long none);
json_t *lio_list(json_t *o, const char *key); /* NULL: none */
/* key NULL: the object itself. */
void lio_loss(const struct lio *p, json_t *o, const char *key, const char *why);
struct raw_node *lio_add(const struct lio *p, struct syntax_list *list, json_t *o, const char *key,
                         const char *name, const char *value);
void lio_attributes(const struct lio *p, json_t *o, const struct lio_attr *table, size_t n);
/* An account directive out of <prefix>userid and <prefix>password, if both are there. */
void lio_account(const struct lio *p, struct syntax_list *list, json_t *o, const char *prefix,
                 const char *name, const char *initiator);

/* syntax_lio_so.c: the disk of a "/backstores/PLUGIN/NAME", under this number. */
void lio_disk(struct lio *p, json_t *lun, const char *object, long long number, bool read_only,
              struct syntax_list *list);
void lio_objects_left(struct lio *p);

/* syntax_lio_acl.c: who may log in to a portal group, with what, and which disks it sees. */
void lio_access(struct lio *p, json_t *tpg, struct syntax_list *list);

#endif
