/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LUN settings on their own: defaults, copies, single directives (from files and from the admin
 * socket), and what must fit together.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/pool.h"
#include "conf/priv.h"

#define ZRAM_NAME_MAX 64u
#define ZRAM_CHUNK    4096u /* bytes; as the kernel's */

void
conf_lun_init(struct conf_lun *l)
{
    memset(l, 0, sizeof *l);
    l->path = xstrdup("");
    l->bsopts = xstrdup("");
    l->layers = xstrdup("");
    l->mode_pages = xstrdup("");
    l->number = -1;
    l->lbppbe = l->rotation_rate = l->algorithm = CONF_UNSET;
    l->chunk_size = ZRAM_CHUNK;
    l->write_cache = l->online = true;
}

void
conf_lun_fini(struct conf_lun *l)
{
    free(l->path);
    free(l->bsopts);
    free(l->layers);
    free(l->mode_pages);
    memset(l, 0, sizeof *l);
}

void
conf_lun_copy(struct conf_lun *dst, const struct conf_lun *src)
{
    *dst = *src;
    dst->path = xstrdup(src->path);
    dst->bsopts = xstrdup(src->bsopts);
    dst->layers = xstrdup(src->layers);
    dst->mode_pages = xstrdup(src->mode_pages);
}

/* "k=v,k=v" of `params`, each as a directive of its own. */
static int
set_params(struct conf_lun *l, bool live, const char *value, struct setter_out *out)
{
    const char *p = value;
    while (*p) {
        size_t n = strcspn(p, ",");
        char *pair = xasprintf("%.*s", (int)n, p);
        char *eq = strchr(pair, '=');
        int rc = -EINVAL;
        if (eq && strncmp(pair, "params=", 7) != 0) {
            *eq = 0;
            rc = conf_lun_set(l, live, pair, eq + 1, out->err, out->errsize, out->warn,
                              out->warnsize);
            if (rc == -ENOENT)
                snprintf(out->err, out->errsize, "params: \"%s\" is not known", pair);
        } else {
            snprintf(out->err, out->errsize, "params wants NAME=VALUE, not \"%s\"", pair);
        }
        free(pair);
        if (rc < 0)
            return -EINVAL;
        p += n;
        p += *p != 0;
    }
    return 0;
}

void
conf_lun_hint(const char *name, bool live, char *out, size_t size)
{
    if (live && table_find(name, SC_LUN)) {
        snprintf(out, size,
                 "; it is set when the logical unit is made: remove it and add it again");
        return;
    }
    table_suggest(name, live ? SC_LIVE : SC_LUN, out, size);
    if (!strstr(out, "did you mean"))
        out[0] = 0; /* the whole list helps nobody here */
}

int
conf_lun_set(struct conf_lun *l, bool live, const char *name, const char *value, char *err,
             size_t errsize, char *warn, size_t warnsize)
{
    struct setter_out out = {err, errsize, warn, warnsize};
    const struct directive *d = table_find(name, live ? SC_LIVE : SC_LUN);

    if (!d)
        return -ENOENT;
    if (d->refuse) {
        snprintf(err, errsize, "%s: %s", name, d->refuse);
        return -EINVAL;
    }
    /* another id while it lives: what another target reported is no longer said beside it */
    if (live && (strcmp(name, "scsi_id") == 0 || strcmp(name, "naa") == 0 || !strcmp(name, "eui")))
        l->designators_len = 0;
    if (d->type && d->type->set)
        return d->type->set(l, d, value, &out);
    if (strcmp(name, "params") == 0)
        return set_params(l, true, value, &out);
    return -ENOENT;
}

/* A name in place of a path: it stands in logs, in dumps, and names the unit to initiators. */
static bool
is_zram_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n > 0 && n <= ZRAM_NAME_MAX && s[n] == 0;
}

static const char *
zram_fault(const struct conf_lun *l)
{
    if (l->bs != CONF_BS_ZRAM) {
        if (l->algorithm != CONF_UNSET || l->level || l->chunk_size != ZRAM_CHUNK || l->mem_limit ||
            l->volatile_ack)
            return "algorithm, level, chunk-size, mem-limit and volatile-ack are for bs-type zram "
                   "only";
        return NULL;
    }
    if (!is_zram_name(l->path))
        return "bs-type zram wants a name of letters, digits, dots, dashes and underscores in "
               "place of a path, such as `<backing-store scratch>`";
    if (!l->size)
        return "bs-type zram wants a size, such as `size 8G`";
    if (l->size % l->chunk_size)
        return "size is not a whole number of chunks (chunk-size, 4K unless said)";
    if (l->direct)
        return "bsoflags direct is for files and devices; zram is memory";
    return NULL;
}

int
conf_lun_check(const struct conf_lun *l, char *err, size_t errsize)
{
    const char *why = zram_fault(l);
    bool made = conf_bs_made(l->bs), empty = !made && !l->path[0];
    if (why)
        ;
    else if (empty && !l->removable)
        why =
            "only a removable unit can be without a medium; a backing store wants an absolute path";
    else if (!empty && !made && l->path[0] != '/')
        why = "a backing store wants an absolute path";
    else if (!made && l->size)
        why = "size is for bs-type null and zram only; a file or device has its own";
    else if (l->bs == CONF_BS_NULL && !l->size)
        why = "bs-type null wants a size, such as `size 1G`";
    else if (l->bs == CONF_BS_NULL && l->size % (l->block_size ? l->block_size : 512))
        why = "size is not a whole number of blocks";
    if (!why)
        return 0;
    snprintf(err, errsize, "%s", why);
    return -EINVAL;
}

bool
conf_lun_same(const struct conf_lun *a, const struct conf_lun *b)
{
    return strcmp(a->path, b->path) == 0 && strcmp(a->bsopts, b->bsopts) == 0 &&
           strcmp(a->layers, b->layers) == 0 && strcmp(a->mode_pages, b->mode_pages) == 0 &&
           a->bs == b->bs && strcmp(a->scsi_id, b->scsi_id) == 0 &&
           strcmp(a->scsi_sn, b->scsi_sn) == 0 && a->naa_len == b->naa_len &&
           memcmp(a->naa, b->naa, a->naa_len) == 0 && a->eui_len == b->eui_len &&
           memcmp(a->eui, b->eui, a->eui_len) == 0 && a->designators_len == b->designators_len &&
           memcmp(a->designators, b->designators, a->designators_len) == 0 &&
           a->scsi_sn_width == b->scsi_sn_width && strcmp(a->vendor_id, b->vendor_id) == 0 &&
           strcmp(a->product_id, b->product_id) == 0 &&
           strcmp(a->product_rev, b->product_rev) == 0 && a->block_size == b->block_size &&
           a->lbppbe == b->lbppbe && a->la_lba == b->la_lba &&
           a->opt_xfer_gran == b->opt_xfer_gran && a->opt_xfer_len == b->opt_xfer_len &&
           a->rotation_rate == b->rotation_rate && a->size == b->size && a->direct == b->direct &&
           a->sync == b->sync && a->write_cache == b->write_cache && a->removable == b->removable &&
           a->online == b->online && a->read_only == b->read_only && a->thin == b->thin &&
           a->algorithm == b->algorithm && a->level == b->level && a->chunk_size == b->chunk_size &&
           a->mem_limit == b->mem_limit && a->volatile_ack == b->volatile_ack &&
           a->direct_store == b->direct_store && a->allow_in_use == b->allow_in_use &&
           a->descriptor_sense == b->descriptor_sense;
}

const char *
conf_lun_twin(const struct conf_lun *a, const struct conf_lun *b)
{
    if (*a->scsi_id && strcmp(a->scsi_id, b->scsi_id) == 0)
        return "scsi_id";
    if (*a->scsi_sn && strcmp(a->scsi_sn, b->scsi_sn) == 0)
        return "scsi_sn";
    if (a->naa_len && a->naa_len == b->naa_len && memcmp(a->naa, b->naa, a->naa_len) == 0)
        return "naa";
    if (a->eui_len && a->eui_len == b->eui_len && memcmp(a->eui, b->eui, a->eui_len) == 0)
        return "eui";
    if (a->designators_len && a->designators_len == b->designators_len &&
        memcmp(a->designators, b->designators, a->designators_len) == 0)
        return "designator";
    return NULL;
}

enum conf_bs
conf_lun_kind(const struct conf_lun *l, const struct stat *st)
{
    if (l->bs != CONF_BS_AUTO)
        return l->bs;
    if (st != NULL)
        return S_ISBLK(st->st_mode) ? CONF_BS_BLOCK : CONF_BS_FILE;
    /* Not there yet: by where it will be. What comes under /dev/shm/ are files. */
    bool is_dev = strncmp(l->path, "/dev/", 5) == 0 && strncmp(l->path, "/dev/shm/", 9) != 0;
    return is_dev ? CONF_BS_BLOCK : CONF_BS_FILE;
}

const char *
conf_bs_name(enum conf_bs bs)
{
    static const char *const names[] = {[CONF_BS_AUTO] = "fileio",
                                        [CONF_BS_FILE] = "fileio",
                                        [CONF_BS_BLOCK] = "blockio",
                                        [CONF_BS_NULL] = "null",
                                        [CONF_BS_ZRAM] = "zram"};
    return names[bs];
}

bool
conf_bs_made(enum conf_bs bs)
{
    return bs == CONF_BS_NULL || bs == CONF_BS_ZRAM;
}
