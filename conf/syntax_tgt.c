/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgt's targets.conf: the lines and blocks are ours (raw.c); what tgt-admin makes of them is not. A
 * target given twice is one (Config::General merges the blocks); targets are numbered in the order
 * of their names; a target's stores are taken in the order of their paths, first all of
 * backing-store, then all of direct-store, and get the lowest numbers that no block claims. Numbers
 * are what tgt's identities are made of, so they are written into the tree here.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "conf/syntax.h"

struct nodes {
    struct raw_node **v;
    size_t n;
};

static bool
is(const struct raw_node *n, const char *name)
{
    return strcmp(n->name, name) == 0;
}

static bool
is_tgt(const struct conf_file *f)
{
    return file_syntax(f) == CONF_SYNTAX_TGT;
}

static bool
is_store(const struct raw_node *n)
{
    return is(n, "backing-store") || is(n, "direct-store");
}

static struct raw_node *
child(const struct raw_node *n, const char *name)
{
    struct raw_node *k = n->children;
    while (k && !is(k, name))
        k = k->next;
    return k;
}

static void
push(struct nodes *l, struct raw_node *n)
{
    if ((l->n & (l->n - 1)) == 0)
        l->v = xrealloc(l->v, (l->n ? 2 * l->n : 1) * sizeof *l->v);
    l->v[l->n++] = n;
}

static void
add_child(struct raw_node *n, const char *name, const char *value)
{
    struct syntax_list list = {n->children, &n->children};
    while (*list.tail)
        list.tail = &(*list.tail)->next;
    syntax_add(&list, n->file, n->pos, n->pos, name, value);
}

static void
add_number(struct raw_node *n, const char *name, unsigned value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    add_child(n, name, text);
}

/* --- what has no equivalent ------------------------------------------------------------------ */

enum loss {
    NO_LOSS,
    L_LINE,   /* the line is left out */
    L_ADMIN,  /* it stays, for tgt-admin */
    L_TARGET, /* and the target is not what was asked for */
    L_UNIT,   /* likewise, and the unit, or all of the target, is left out */
};

static const struct {
    const char *name, *value; /* value NULL: whatever it is */
    const char *why;          /* of L_TARGET and L_UNIT, behind the last `;`: what becomes of it */
    enum loss how;
} foreign[] = {
    {"ignore-errors", NULL, "an error ends the reading, and nothing is changed", L_ADMIN},
    {"control-port", NULL, "the admin socket is named by evtgtd --socket", L_ADMIN},
    {"default-driver", "iser", "iSER is not served; the targets are served over TCP", L_TARGET},
    {"driver", "iser", "iSER is not served; the target is served over TCP", L_TARGET},
    {"device-type", "tape", "tapes are not served; the unit is left out", L_UNIT},
    {"device-type", "ssc", "tapes are not served; the unit is left out", L_UNIT},
    {"device-type", "cd", "CDs are not served; the unit is left out", L_UNIT},
    {"device-type", "changer", "changers are not served; the unit is left out", L_UNIT},
    {"device-type", "osd", "object storage devices are not served; the unit is left out", L_UNIT},
    {"device-type", "pt",
     "commands are not passed through, serve the device by direct-store; left out", L_UNIT},
    {"bs-type", "sg", "commands are not passed through, serve the device by direct-store; left out",
     L_UNIT},
    {"bs-type", "bsg",
     "commands are not passed through, serve the device by direct-store; left out", L_UNIT},
    {"bs-type", "ssc", "tapes are not served; the unit is left out", L_UNIT},
    {"bs-type", "rbd", "map the image (rbd map) and serve /dev/rbd/POOL/IMAGE; left out", L_UNIT},
    {"bs-type", "glfs", "mount the volume and serve the file in it; left out", L_UNIT},
    {"bs-type", "sheepdog", "serve the volume as a block device; left out", L_UNIT},
    {"MaxXmitDataSegmentLength", NULL,
     "the initiator's MaxRecvDataSegmentLength alone limits what is sent", L_LINE},
    {"IFMarkInt", NULL, "markers are not sent (RFC 7143 dropped them)", L_LINE},
    {"OFMarkInt", NULL, "markers are not sent (RFC 7143 dropped them)", L_LINE},
    {"RDMAExtensions", NULL, "iSER is not served", L_LINE},
    {"TargetRecvDataSegmentLength", NULL, "iSER is not served", L_LINE},
    {"InitiatorRecvDataSegmentLength", NULL, "iSER is not served", L_LINE},
    {"MaxOutstandingUnexpectedPDUs", NULL, "iSER is not served", L_LINE},
};

/* One line more. */
static void
add_unserved(char **all, const struct raw_node *n, const char *why)
{
    char *more =
        xasprintf("%s%s%s:%u:%u: %s %s: %.*s", *all ? *all : "", *all ? "\n" : "", n->pos.file,
                  n->pos.line, n->pos.col, n->name, n->value, (int)(strrchr(why, ';') - why), why);
    free(*all);
    *all = more;
}

/* What the line is; told. */
static enum loss
lost(struct raw_node *n, struct conf_report *r, char **unserved)
{
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        const char *why = foreign[i].why;
        if (!is(n, foreign[i].name) || (foreign[i].value && strcmp(n->value, foreign[i].value)))
            continue;
        if (foreign[i].how == L_LINE)
            conf_report_loss(r, &n->pos, "%s %s has no equivalent: %s", n->name, n->value, why);
        else
            conf_report_admin(r, &n->pos, "%s %s has no equivalent: %s", n->name, n->value, why);
        n->told = true;
        if (foreign[i].how >= L_TARGET)
            add_unserved(unserved, n, why);
        return foreign[i].how;
    }
    return NO_LOSS;
}

static void
drop(struct raw_node **at)
{
    struct raw_node *n = *at;
    *at = n->next;
    n->next = NULL;
    raw_nodes_free(n);
}

/* Takes out of a block what is lost. Whether its unit is. */
static bool
drop_lost(struct raw_node **list, struct conf_report *r, char **unserved)
{
    bool unit = false;
    while (*list) {
        enum loss how = lost(*list, r, unserved);
        unit = unit || how == L_UNIT;
        if (how != NO_LOSS && how != L_ADMIN)
            drop(list);
        else
            list = &(*list)->next;
    }
    return unit;
}

/* What stands in the target holds for those of its stores that do not say their own. */
static void
leave_out(struct raw_node *target, const char *unless)
{
    for (struct raw_node *n = target->children; n; n = n->next)
        n->gone = n->gone || (is_store(n) && !child(n, unless));
}

static void
target_lost(struct raw_node *t, struct conf_report *r)
{
    struct raw_node **at = &t->children;

    while (*at) {
        struct raw_node *n = *at;
        enum loss how = lost(n, r, &t->unserved);
        if (how == NO_LOSS && n->children && drop_lost(&n->children, r, &t->unserved))
            n->gone = true;
        if (how == L_UNIT)
            leave_out(t, n->name);
        if (how == NO_LOSS)
            at = &n->next;
        else
            drop(at);
    }
}

/* Who has no driver of his own is not served as the default says. */
static void
default_lost(struct raw_node *t, const char *unserved)
{
    if (unserved && !t->unserved && !child(t, "driver"))
        t->unserved = xstrdup(unserved);
}

/* --- merging --------------------------------------------------------------------------------- */

static struct raw_node *
twin(struct raw_node *first, const struct raw_node *n)
{
    for (struct raw_node *k = first; k != n; k = k->next) {
        if (is(k, n->name) && strcmp(k->value, n->value) == 0)
            return k;
    }
    return NULL;
}

static void
merge_targets(struct raw_node **top, struct conf_report *r)
{
    for (struct raw_node **at = top; *at;) {
        struct raw_node *n = *at;
        struct raw_node *t =
            is(n, "target") && n->is_block && is_tgt(n->file) ? twin(*top, n) : NULL;
        if (!t || !is_tgt(t->file)) {
            at = &n->next;
            continue;
        }
        conf_report_add(r, false, &n->pos,
                        "target %s is given twice: tgt takes both blocks for one; the first is at "
                        "%s",
                        n->value, WHERE(&t->pos));
        struct raw_node **end = &t->children;
        while (*end)
            end = &(*end)->next;
        *end = n->children;
        n->children = NULL;
        if (!t->unserved) {
            t->unserved = n->unserved;
            n->unserved = NULL;
        }
        drop(at);
    }
}

/* The same store twice is one; of several outgoing accounts the first counts. */
static void
merge_lines(struct raw_node *target, struct conf_report *r)
{
    for (struct raw_node **at = &target->children; *at;) {
        struct raw_node *n = *at, *t = NULL;
        if (is_store(n) && !n->children && (t = twin(target->children, n)))
            conf_report_add(r, false, &n->pos, "%s %s is given twice; the first is at %s", n->name,
                            n->value, WHERE(&t->pos));
        else if (is(n, "outgoinguser") && (t = child(target, "outgoinguser")) != n)
            conf_report_loss(r, &n->pos,
                             "outgoinguser has no equivalent: tgt takes the first one of several; "
                             "this one can go");
        else
            t = NULL;
        if (t)
            drop(at);
        else
            at = &n->next;
    }
}

/* --- numbers --------------------------------------------------------------------------------- */

static int
by_name(const void *a, const void *b)
{
    const struct raw_node *x = *(struct raw_node *const *)a, *y = *(struct raw_node *const *)b;
    int d = strcmp(x->name, y->name); /* backing-store before direct-store */
    return d ? d : strcmp(x->value, y->value);
}

static bool
is_taken(const struct nodes *stores, unsigned number)
{
    for (size_t i = 0; i < stores->n; i++) {
        const struct raw_node *lun = child(stores->v[i], "lun");
        uint64_t n;
        if (lun && conf_parse_uint(lun->value, 0, UINT32_MAX, &n) == 0 && n == number)
            return true;
    }
    return false;
}

static void
number_stores(struct raw_node *target)
{
    struct nodes stores = {NULL, 0};
    unsigned next = 1;

    for (struct raw_node *n = target->children; n; n = n->next) {
        if (is_store(n))
            push(&stores, n);
    }
    if (stores.n)
        qsort(stores.v, stores.n, sizeof *stores.v, by_name);
    /* one `lun` for the target is that of its only store */
    for (size_t i = 0; i < stores.n && !child(target, "lun"); i++) {
        struct raw_node *n = stores.v[i];
        if (child(n, "lun"))
            continue;
        while (is_taken(&stores, next))
            next++;
        n->is_block = true;
        add_number(n, "lun", next);
    }
    free(stores.v);
}

static void
drop_gone(struct raw_node **at)
{
    while (*at) {
        if ((*at)->gone)
            drop(at);
        else
            at = &(*at)->next;
    }
}

static void
one_target(struct raw_node *t, unsigned *tid, bool ids, struct conf_report *r)
{
    const struct raw_node *own = child(t, "controller_tid");
    const struct raw_node *name = child(t, "initiator-name");
    uint64_t n;

    ++*tid;
    if (!own) {
        add_number(t, "controller_tid", *tid);
        child(t, "controller_tid")->by_rule = true;
    } else if (conf_parse_uint(own->value, 1, 65535, &n) == 0)
        *tid = (unsigned)n;
    merge_lines(t, r);
    number_stores(t);
    drop_gone(&t->children);
    if (ids && !child(t, "ids"))
        add_child(t, "ids", "tgt");
    if (name && !child(t, "initiator-address"))
        conf_report_add(r, false, &name->pos,
                        "tgt admits everybody to a target without initiator-address, whatever "
                        "initiator-name says; only these names are admitted here");
    else if (name)
        conf_report_add(r, false, &name->pos,
                        "tgt admits who has the address or the name; here both are wanted");
}

void
syntax_tgt(struct conf_raw *raw, struct conf_report *r)
{
    struct nodes targets = {NULL, 0};
    char *unserved = NULL;
    bool ids = true;
    unsigned tid = 0;

    for (struct raw_node **at = &raw->top; *at;) {
        ids = ids && !is(*at, "ids");
        struct raw_node *n = *at;
        enum loss how = is_tgt(n->file) ? lost(n, r, &unserved) : NO_LOSS;
        if (is_tgt(n->file) && is(n, "target"))
            target_lost(n, r);
        if (how == NO_LOSS || how == L_ADMIN)
            at = &n->next;
        else
            drop(at);
    }
    merge_targets(&raw->top, r);
    for (struct raw_node *n = raw->top; n; n = n->next) {
        if (is(n, "target") && n->is_block && is_tgt(n->file))
            push(&targets, n);
    }
    if (targets.n)
        qsort(targets.v, targets.n, sizeof *targets.v, by_name);
    for (size_t i = 0; i < targets.n; i++) {
        default_lost(targets.v[i], unserved);
        one_target(targets.v[i], &tid, ids, r);
    }
    free(targets.v);
    free(unserved);
}
