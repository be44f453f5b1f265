/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LIO's storage objects -> disks.  What an initiator knows of one is kept: LIO makes its NAA 6h
 * designator of the first 25 hexadecimal digits of the unit serial number (`wwn`) behind 6001405h,
 * and a T10 designator of "LIO-ORG", the model and the serial number; the model is the object's
 * name, or that of its kind.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "conf/syntax_lio.h"

static const struct lio_attr so_attrs[] = {
    {"emulate_rest_reord", 0, "commands are ordered as the standard says"},
    {"emulate_ua_intlck_ctrl", 0, "unit attentions are not interlocked"},
    {"emulate_tas", 1, "aborted commands end with TASK ABORTED, as by default"},
    {"enforce_pr_isids", 1, "there is no such switch"},
    {"force_pr_aptpl", 0, "there is no such switch"},
    {"pi_prot_type", 0, "protection information is not served"},
    {"pi_prot_format", 0, "protection information is not served"},
    {"pi_prot_verify", 0, "protection information is not served"},
    {"alua_support", 1, "all paths are alike"},
    {"pgr_support", 1, "there is no such switch"},
    {"emulate_pr", 1, "there is no such switch"},
};

/* Kinds of objects: what they are here, or why they are not. */
static const struct so_kind {
    const char *plugin, *model, *why;
} kinds[] = {
    {"fileio", "FILEIO", NULL},
    {"block", "IBLOCK", NULL},
    {"ramdisk", "RAMDISK-MCP",
     "a disk in memory; put a file into /dev/shm and serve that; the disk is left out"},
    {"pscsi", NULL,
     "commands are not passed through to a device; serve it as a block device, or with "
     "direct-store; the disk is left out"},
    {"user", NULL,
     "programs behind tcmu-runner are not used; serve the volume as a block device (rbd map, "
     "qemu-nbd); the disk is left out"},
};

static json_t *
find_object(const struct lio *p, const char *path, const struct so_kind **kind)
{
    json_t *o;
    size_t i;

    json_array_foreach(p->objects, i, o)
    {
        const char *plugin = lio_text(o, "plugin"), *name = lio_text(o, "name");
        char *full = xasprintf("/backstores/%s/%s", plugin ? plugin : "", name ? name : "");
        bool same = strcmp(full, path) == 0;
        free(full);
        if (!same)
            continue;
        *kind = NULL;
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            if (plugin && strcmp(kinds[k].plugin, plugin) == 0)
                *kind = &kinds[k];
        }
        return o;
    }
    return NULL;
}

static void
identity(const struct lio *p, json_t *o, const struct so_kind *kind, struct syntax_list *list)
{
    const char *serial = lio_text(o, "wwn"), *name = lio_text(o, "name");
    bool alias = lio_number(json_object_get(o, "attributes"), "emulate_model_alias", 0) != 0;
    char model[17], naa[33] = "6001405";
    struct conf_pos pos = json_places_key(p->places, o, "wwn");
    size_t n = strlen(naa);

    snprintf(model, sizeof model, "%s", alias && name ? name : kind->model);
    lio_add(p, list, o, "name", "vendor_id", "LIO-ORG");
    lio_add(p, list, o, "name", "product_id", model);
    lio_add(p, list, o, "name", "product_rev", "4.0");
    if (!serial) {
        pos = json_places_of(p->places, o);
        conf_report_loss(p->in->r, &pos,
                         "the object has no wwn: LIO gives it one at each start; the disk has an "
                         "identity of its own here");
        return;
    }
    lio_add(p, list, o, "wwn", "scsi_sn", serial);
    syntax_addf(list, p->in->file, pos, "scsi_id", "%s:%s", model, serial);
    for (const char *s = serial; *s && n < 32; s++) {
        if (isxdigit((unsigned char)*s))
            naa[n++] = (char)tolower((unsigned char)*s);
    }
    memset(naa + n, '0', 32 - n);
    naa[32] = 0;
    lio_add(p, list, o, "wwn", "naa", naa);
}

static void
settings(const struct lio *p, json_t *o, bool block, struct syntax_list *list)
{
    json_t *a = json_object_get(o, "attributes");
    long long size = lio_number(a, "block_size", 512);

    if (block)
        lio_add(p, list, o, "plugin", "bs-type", "blockio");
    /* a file is written through unless write_back says otherwise; a block device by its attribute
     */
    if (!lio_number(o, "write_back", 0) && !lio_number(a, "emulate_write_cache", 0))
        lio_add(p, list, o, "write_back", "write-cache", "off");
    if (size != 512)
        syntax_addf(list, p->in->file, json_places_key(p->places, a, "block_size"), "block-size",
                    "%lld", size);
    if (lio_number(a, "emulate_tpu", 0) || lio_number(a, "emulate_tpws", 0))
        lio_add(p, list, a, lio_number(a, "emulate_tpu", 0) ? "emulate_tpu" : "emulate_tpws",
                "thin-provisioning", "on");
    if (lio_number(a, "is_nonrot", 0))
        lio_add(p, list, a, "is_nonrot", "rotation_rate", "1");
    lio_attributes(p, a, so_attrs, sizeof so_attrs / sizeof *so_attrs);
}

/* One group with the state of every path at 0 (active, optimized) is what everybody has. */
static void
alua(const struct lio *p, json_t *o)
{
    json_t *g;
    size_t i;

    json_array_foreach(lio_list(o, "alua_tpgs"), i, g)
    {
        if (i > 0 || lio_number(g, "alua_access_state", 0) != 0 || lio_number(g, "preferred", 0))
            lio_loss(p, g, NULL, "all paths are alike (no ALUA groups); take it out");
    }
}

static bool
was_used(const struct lio *p, const json_t *o)
{
    for (size_t i = 0; i < p->nused; i++) {
        if (p->used[i] == o)
            return true;
    }
    return false;
}

void
lio_disk(struct lio *p, json_t *lun, const char *object, long long number, bool read_only,
         struct syntax_list *list)
{
    const struct so_kind *kind = NULL;
    json_t *o = find_object(p, object, &kind);
    struct conf_pos pos = json_places_key(p->places, lun, "storage_object");
    const char *dev = o ? lio_text(o, "dev") : NULL, *plugin = o ? lio_text(o, "plugin") : NULL;
    struct syntax_list inner;
    bool first = o && !was_used(p, o);

    if (!o) {
        conf_report_add(p->in->r, true, &pos, "there is no storage object %s", object);
        return;
    }
    if (first) {
        p->used = xrealloc(p->used, (p->nused + 1) * sizeof *p->used);
        p->used[p->nused++] = o;
    }
    bool null = plugin && strcmp(plugin, "ramdisk") == 0 && lio_number(o, "nullio", 0);
    if (!null && (!kind || kind->why)) {
        if (first)
            lio_loss(p, o, "plugin",
                     kind ? kind->why : "this kind of storage object is not known; left out");
        return;
    }
    if (!null && !dev) {
        pos = json_places_of(p->places, o);
        conf_report_add(p->in->r, true, &pos, "a storage object of %s wants a dev", plugin);
        return;
    }
    syntax_list_init(&inner);
    syntax_addf(&inner, p->in->file, json_places_key(p->places, lun, "index"), "lun", "%lld",
                number);
    if (null) {
        lio_add(p, &inner, o, "nullio", "bs-type", "null");
        syntax_addf(&inner, p->in->file, json_places_key(p->places, o, "size"), "size", "%lld",
                    lio_number(o, "size", 0));
    } else {
        settings(p, o, strcmp(plugin, "block") == 0, &inner);
    }
    if (read_only || lio_number(o, "readonly", 0))
        lio_add(p, &inner, o, "readonly", "readonly", "on");
    identity(p, o, kind, &inner);
    if (first)
        alua(p, o);
    struct raw_node *n =
        lio_add(p, list, o, null ? "name" : "dev", "backing-store", null ? "null" : dev);
    n->is_block = true;
    n->children = inner.first;
}

void
lio_objects_left(struct lio *p)
{
    json_t *o;
    size_t i;

    json_array_foreach(p->objects, i, o)
    {
        if (!was_used(p, o))
            lio_loss(p, o, "name",
                     "no disk of an iSCSI target is made of this storage object; nothing is "
                     "served");
    }
}
