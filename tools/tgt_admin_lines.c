/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tgt-admin: a target of a configuration as the lines of tgtadm that make it, for --pretend and
 * --verbose.  They are for people and for scripts that read them; what is done is one request.  A
 * secret never stands in one: --password-file=- would ask for it.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "conf/conf.h"
#include "tools/adm.h"
#include "tools/tgt_admin.h"

/* Caching mode page with WCE off, as tgt-admin sets it. */
#define WRITE_CACHE_OFF                                                                            \
    "mode_page=8:0:18:0x10:0:0xff:0xff:0:0:0xff:0xff:0xff:0xff:0x80:0x14:0:0:0:0:0:0"

struct line {
    const char *key; /* the directive it comes from: lines are sorted by it, as tgt-admin's */
    unsigned seq;
    char *text;
};

struct lines {
    struct line *v;
    unsigned n;
};

static void add(struct lines *l, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void
add(struct lines *l, const char *key, const char *fmt, ...)
{
    char *rest = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&rest, fmt, ap) < 0)
        adm_die(1, "out of memory");
    va_end(ap);
    l->v = xrealloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n] = (struct line){.key = key, .seq = l->n, .text = rest};
    l->n++;
}

static int
by_key(const void *pa, const void *pb)
{
    const struct line *a = pa, *b = pb;
    int rc = strcmp(a->key, b->key);
    return rc ? rc : a->seq < b->seq ? -1 : 1;
}

/* --- logical units --------------------------------------------------------------------------- */

static void param(struct lines *l, long long tid, int lun, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void
param(struct lines *l, long long tid, int lun, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        adm_die(1, "out of memory");
    va_end(ap);
    add(l, "backing-store",
        "--lld iscsi --op update --mode logicalunit --tid %lld --lun=%d --params %s", tid, lun,
        text);
    free(text);
}

static void
text_param(struct lines *l, long long tid, int lun, const char *name, const char *value)
{
    if (*value)
        param(l, tid, lun, "%s=\"%s\"", name, value);
}

static void
hex_param(struct lines *l, long long tid, int lun, const char *name, const uint8_t *id,
          unsigned len)
{
    char hex[33] = "";
    for (unsigned i = 0; i < len; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    text_param(l, tid, lun, name, hex);
}

static void
lun_params(struct lines *l, long long tid, const struct conf_lun *u)
{
    const struct {
        const char *name;
        unsigned value, unset;
    } numbers[] = {
        {"lbppbe", u->lbppbe, CONF_UNSET},
        {"la_lba", u->la_lba, 0},
        {"optimal_xfer_gran", u->opt_xfer_gran, 0},
        {"optimal_xfer_len", u->opt_xfer_len, 0},
        {"rotation_rate", u->rotation_rate, CONF_UNSET},
        {"removable", u->removable, 0},
        {"readonly", u->read_only, 0},
        {"sense_format", u->descriptor_sense, 0},
        {"thin_provisioning", u->thin, 0},
        {"online", u->online, 1},
    };
    const int n = u->number;

    text_param(l, tid, n, "scsi_id", u->scsi_id);
    text_param(l, tid, n, "scsi_sn", u->scsi_sn);
    text_param(l, tid, n, "vendor_id", u->vendor_id);
    text_param(l, tid, n, "product_id", u->product_id);
    text_param(l, tid, n, "product_rev", u->product_rev);
    hex_param(l, tid, n, "naa", u->naa, u->naa_len);
    hex_param(l, tid, n, "eui", u->eui, u->eui_len);
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value != numbers[i].unset)
            param(l, tid, n, "%s=\"%u\"", numbers[i].name, numbers[i].value);
    }
    if (!u->write_cache)
        param(l, tid, n, "%s", WRITE_CACHE_OFF);
    else
        add(l, "backing-store", "# Write cache is enabled (default) for lun %d.", n);
}

/* tgt's names where it has them. */
static const char *
bs_name(enum conf_bs bs)
{
    return bs == CONF_BS_AUTO ? "" : bs == CONF_BS_FILE ? "rdwr" : conf_bs_name(bs);
}

static void
lun_lines(struct lines *l, long long tid, const struct conf_lun *u)
{
    char size[40] = "";

    if (u->block_size)
        snprintf(size, sizeof size, "--blocksize %u", u->block_size);
    /* an option that is not there leaves its blank, as in tgt-admin's line */
    add(l, "backing-store",
        "--lld iscsi --op new --mode logicalunit --tid %lld --lun %d -b \"%s\"  %s%s %s%s %s%s %s",
        tid, u->number, u->path ? u->path : "", u->bs == CONF_BS_AUTO ? "" : "--bstype ",
        bs_name(u->bs), u->bsopts && *u->bsopts ? "--bsopts " : "", u->bsopts ? u->bsopts : "",
        u->direct || u->sync ? "--bsoflags " : "",
        u->direct && u->sync ? "sync:direct"
        : u->sync            ? "sync"
        : u->direct          ? "direct"
                             : "",
        size);
    lun_params(l, tid, u);
}

/* --- the rest of a target -------------------------------------------------------------------- */

static bool
known_account(const json_t *known, const char *user)
{
    const json_t *v;
    size_t i;
    json_array_foreach(known, i, v)
    {
        if (strcmp(json_string_value(v), user) == 0)
            return true;
    }
    return false;
}

static void
account_lines(struct lines *l, long long tid, const struct conf_account *a, const json_t *known)
{
    const char *key = a->outgoing ? "outgoinguser" : "incominguser";

    if (!known_account(known, a->user))
        add(l, key, "--lld iscsi --mode account --op new --user=%s --password-file=-", a->user);
    add(l, key, "--lld iscsi --mode account --op bind --tid=%lld --user=%s%s", tid, a->user,
        a->outgoing ? " --outgoing" : "");
}

static void
update_line(struct lines *l, long long tid, const char *name, const char *value)
{
    add(l, name, "--lld iscsi --mode target --op update --tid %lld --name %s --value %s", tid, name,
        value);
}

static void
number_line(struct lines *l, long long tid, const char *name, unsigned value)
{
    char text[16];
    snprintf(text, sizeof text, "%u", value);
    if (value != CONF_UNSET)
        update_line(l, tid, name, text);
}

static void
access_lines(struct lines *l, long long tid, const struct conf_target *c)
{
    static const char bind[] = "--lld iscsi --op bind --mode target --tid";

    for (unsigned i = 0; i < c->naddrs; i++)
        add(l,
            strcasecmp(c->addrs[i].value, "ALL") == 0 ? "~" : "initiator-address", /* ALL: last */
            "%s %lld -I %s", bind, tid, c->addrs[i].value);
    for (unsigned i = 0; i < c->nnames; i++)
        add(l, "initiator-name", "%s %lld -Q %s", bind, tid, c->names[i].value);
    for (unsigned i = 0; i < c->nlocals; i++)
        add(l, "local-address", "%s %lld --local-address %s", bind, tid, c->locals[i].value);
    for (unsigned i = 0; i < c->nbinds; i++) {
        if (c->binds[i].name[0])
            add(l, "portal", "%s %lld --params portal=%s", bind, tid, c->binds[i].name);
        else
            add(l, "portal", "%s %lld --params portal-group=%u", bind, tid, c->binds[i].group);
    }
}

void
ta_lines(const struct tgt_admin *t, const struct conf_target *c, long long tid, const json_t *known)
{
    struct lines l = {.n = 0};

    for (unsigned i = 0; i < c->nkeys; i++)
        update_line(&l, tid, c->keys[i].name, c->keys[i].value);
    for (unsigned i = 0; i < c->nredirects; i++)
        update_line(&l, tid, c->redirects[i].name, c->redirects[i].value);
    number_line(&l, tid, "MaxQueueCmd", c->max_cmds);
    number_line(&l, tid, "nop_count", c->nop_count);
    number_line(&l, tid, "nop_interval", c->nop_interval_s);
    if (c->alias)
        update_line(&l, tid, "alias", c->alias);
    if (c->hidden)
        update_line(&l, tid, "discoverable", "no");
    if (c->offline)
        update_line(&l, tid, "state", "offline");
    for (unsigned i = 0; i < c->nluns; i++)
        lun_lines(&l, tid, &c->luns[i]);
    for (unsigned i = 0; i < c->accounts.n; i++)
        account_lines(&l, tid, &c->accounts.v[i], known);
    access_lines(&l, tid, c);
    if (l.n)
        qsort(l.v, l.n, sizeof *l.v, by_key);
    for (unsigned i = 0; i < l.n; i++) {
        if (l.v[i].text[0] == '#')
            ta_say(t, "%s", l.v[i].text);
        else
            ta_say(t, "tgtadm -C %u %s", adm_control_port, l.v[i].text);
        free(l.v[i].text);
    }
    free(l.v);
}
