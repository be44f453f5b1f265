/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IET's access files: from the configuration to acl_files.c, which knows what they mean.  Main
 * only.
 */
#include "config.h"

#include "base/log.h"
#include "conf/conf.h"
#include "target/apply_access.h"
#include "target/model.h"

/* Both count them alike. */
_Static_assert((int)CONF_INITIATORS_ALLOW == (int)ACL_INITIATORS_ALLOW &&
                   (int)CONF_INITIATORS_DENY == (int)ACL_INITIATORS_DENY &&
                   (int)CONF_TARGETS_ALLOW == (int)ACL_TARGETS_ALLOW,
               "access files");

int
apply_access_check(enum conf_access_file which, const char *target, const char *entries, char *err,
                   size_t errsize, char *warn, size_t warnsize, void *arg)
{
    struct acl_files *f = acl_files_new(false);
    (void)arg;
    int rc = acl_files_add(f, (enum acl_file)which, target, entries, err, errsize, warn, warnsize);
    acl_files_free(f);
    return rc;
}

void
apply_access(const struct conf *c)
{
    struct acl_files *f = NULL;
    char err[256];

    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        const struct conf_access *a = &c->access[i];
        if (!a->path)
            continue;
        if (!f)
            f = acl_files_new(false);
        acl_files_exists(f, (enum acl_file)i);
        for (unsigned k = 0; k < a->n; k++) {
            const struct conf_access_line *l = &a->lines[k];
            if (acl_files_add(f, (enum acl_file)i, l->target, l->entries, err, sizeof err, NULL,
                              0) < 0)
                log_abort("checked configuration does not hold: %s", err);
        }
    }
    acl_files_free(model.files);
    model.files = f;
    list_each(it, &model.targets)
        model_touch(container_of(it, struct model_target, link));
}
