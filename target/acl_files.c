/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of IET's initiators.allow, initiators.deny and targets.allow, without the files: who
 * reads them hands over line by line.  A line names a target, or ALL for any, and a list of
 * entries.  Of a file's lines the first that names the target or ALL is the one that counts.
 * Built on main; acl_make shares the lists with the targets' access lists.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/acl_priv.h"

struct line {
    char *target; /* folded; NULL: ALL */
    struct acl_list *list;
};

struct acl_files {
    bool open;
    struct {
        bool exists;
        unsigned n;
        struct line *lines;
    } file[ACL_FILES];
};

struct acl_files *
acl_files_new(bool open)
{
    struct acl_files *f = xcalloc(1, sizeof *f);
    f->open = open;
    return f;
}

void
acl_files_free(struct acl_files *f)
{
    if (f == NULL)
        return;
    for (unsigned i = 0; i < ACL_FILES; i++) {
        for (unsigned k = 0; k < f->file[i].n; k++) {
            free(f->file[i].lines[k].target);
            acl_list_put(f->file[i].lines[k].list);
        }
        free(f->file[i].lines);
    }
    free(f);
}

void
acl_files_exists(struct acl_files *f, enum acl_file which)
{
    f->file[which].exists = true;
}

/* Comma list -> entries; empty ones count for nothing. */
static int
add_entries(struct acl_list *l, const char *entries, bool names, const struct acl_says *says)
{
    while (*entries != '\0') {
        size_t len = strcspn(entries, ",");
        const char *from = entries, *to = entries + len;
        entries = *to == ',' ? to + 1 : to;
        while (from < to && (*from == ' ' || *from == '\t'))
            from++;
        while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
            to--;
        if (from == to)
            continue;
        char *one = xasprintf("%.*s", (int)(to - from), from);
        int rc = acl_list_iet(l, one, names, says);
        free(one);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int
acl_files_add(struct acl_files *f, enum acl_file which, const char *target, const char *entries,
              char *err, size_t errsize, char *warn, size_t warnsize)
{
    const struct acl_says says = {err, errsize, warn, warnsize};
    char folded[ISCSI_NAME_MAX + 1] = "";
    const char *why = "";
    bool all = strcmp(target, "ALL") == 0;
    if (warn != NULL && warnsize != 0)
        warn[0] = '\0';
    acl_files_exists(f, which);
    if (!all && name_fold(target, strlen(target), folded, &why) != 0) {
        /* IET compares names: one that no target can have never fits */
        if (warn != NULL)
            (void)snprintf(warn, warnsize,
                           "no target has the name \"%.64s\": %s; the line counts for nothing",
                           target, why);
        return 0;
    }
    struct acl_list *l = acl_list_new();
    if (add_entries(l, entries, which != ACL_TARGETS_ALLOW, &says) < 0) {
        acl_list_put(l);
        return -EINVAL;
    }
    unsigned n = f->file[which].n;
    f->file[which].lines = xrealloc(f->file[which].lines, (n + 1) * sizeof(struct line));
    f->file[which].lines[n] = (struct line){all ? NULL : xstrdup(folded), l};
    f->file[which].n++;
    return 0;
}

struct acl_list *
acl_files_pick(const struct acl_files *f, enum acl_file which, const char *target)
{
    for (unsigned i = 0; i < f->file[which].n; i++) {
        const struct line *l = &f->file[which].lines[i];
        if (l->target == NULL || strcmp(l->target, target) == 0)
            return l->list;
    }
    return NULL;
}

bool
acl_files_has(const struct acl_files *f, enum acl_file which)
{
    return f->file[which].exists;
}

bool
acl_files_is_open(const struct acl_files *f)
{
    return f->open;
}
