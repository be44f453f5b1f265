/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `evtgtd -t`: looks at the backing stores of a configuration without opening them, and warns of
 * logical units that would not be ready.  A missing store is no error: it may come later.  Called
 * by main.c before there is a daemon; may block.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/conf.h"
#include "target/model.h"

static void
look(const struct conf_lun *l, struct conf_report *r)
{
    struct stat st;

    if (conf_bs_made(l->bs))
        return;
    if (stat(l->path, &st) < 0)
        conf_report_add(r, false, &l->pos,
                        "%s: %s; the logical unit is not ready until it is there", l->path,
                        strerror(errno));
    else if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
        conf_report_add(r, false, &l->pos, "%s: neither a file nor a block device", l->path);
    else if (l->bs == CONF_BS_BLOCK && !S_ISBLK(st.st_mode))
        conf_report_add(r, false, &l->pos, "%s: no block device; bs-type fileio serves files",
                        l->path);
    else if (access(l->path, R_OK) < 0)
        conf_report_add(r, false, &l->pos, "%s: this user cannot read it", l->path);
    else if (!l->read_only && access(l->path, W_OK) < 0)
        conf_report_add(r, false, &l->pos,
                        "%s: this user cannot write it; the logical unit is read-only", l->path);
}

void
apply_look(const struct conf *c, struct conf_report *r)
{
    for (unsigned i = 0; i < c->ntargets; i++) {
        if (!c->targets[i].nluns && !c->targets[i].nredirects)
            conf_report_add(r, false, &c->targets[i].pos, "target %s has no backing-store",
                            c->targets[i].name);
        for (unsigned n = 0; n < c->targets[i].nluns; n++)
            look(&c->targets[i].luns[n], r);
    }
}
