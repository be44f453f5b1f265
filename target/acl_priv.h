/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private to acl*.c: lists of entries, each an address with a prefix or a pattern of names.
 */
#ifndef TARGET_ACL_PRIV_H
#define TARGET_ACL_PRIV_H

#include <regex.h>

#include "base/ref.h"
#include "target/target.h"

struct acl_net {
    uint8_t addr[16]; /* IPv4 as ::ffff:a.b.c.d */
    uint8_t bits;     /* 0..128 */
    uint32_t scope;   /* of a link-local subnet of an interface; 0: any */
};

struct acl_pattern {
    char *glob; /* folded; or NULL: */
    regex_t re;
};

struct acl_list { /* counted: targets of one rule share it */
    struct ref ref;
    bool all;
    unsigned nnets, npatterns;
    struct acl_net *nets;
    struct acl_pattern *patterns;
};

/* Where complaints go; warn may be NULL, the first warning is kept. */
struct acl_says {
    char *err;
    size_t errsize;
    char *warn;
    size_t warnsize;
};

struct acl_list *acl_list_new(void);
struct acl_list *acl_list_get(struct acl_list *l);
void acl_list_put(struct acl_list *l); /* NULL: nothing */
/* One entry more: ALL, an address, a prefix, iface:NAME; a name or a pattern with *, ? and [..];
 * what IET's files hold (either, names as regular expressions). 0, or -EINVAL and the message. */
int acl_list_address(struct acl_list *l, const char *text, const struct acl_says *says);
int acl_list_name(struct acl_list *l, const char *text, const struct acl_says *says);
int acl_list_iet(struct acl_list *l, const char *text, bool names, const struct acl_says *says);
/* Any thread. NULL lists match nothing; so does an address of another family. */
bool acl_list_has_address(const struct acl_list *l, const struct sockaddr *sa);
bool acl_list_has_name(const struct acl_list *l, const char *folded);

/* acl_files.c: the list that a file has for this target, borrowed; NULL: none. */
struct acl_list *acl_files_pick(const struct acl_files *f, enum acl_file which, const char *target);
bool acl_files_has(const struct acl_files *f, enum acl_file which); /* the file exists */
bool acl_files_is_open(const struct acl_files *f);

#endif
