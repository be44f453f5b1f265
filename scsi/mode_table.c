/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mode pages of a unit: the rows every unit has, and what its settings (`mode_page`) make of
 * them.  A value that an initiator may read must be true, so a setting may change only what is a
 * hint (retry counts, pre-fetch lengths, segments) or the same as it is; what has a switch of its
 * own (write cache, sense format) is that switch's.  Pages that tell nothing about what the unit
 * does can be added.  Main, and mode.c reads.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "scsi/priv.h"

static const struct mode_page defaults[] = {
    {0x01, 0x00, 12, {0x01, 0x0a}}, /* read-write error recovery, SBC-3 6.4.8 */
    {0x02, 0x00, 16, {0x02, 0x0e}}, /* disconnect-reconnect, SPC-4 7.5.8 */
    {0x08, 0x00, 20, {0x08, 0x12}}, /* caching, SBC-3 6.4.5 */
    /* control, SPC-4 7.5.6: TST=001b, QUEUE ALGORITHM MODIFIER=1 (simple tasks are reordered) */
    {0x0a, 0x00, 12, {0x0a, 0x0a, 0x20, 0x10}},
    {0x0a, 0x01, 32, {0x4a, 0x01, 0x00, 0x1c}}, /* control extension, SPC-4 7.5.7 */
    {0x1c, 0x00, 12, {0x1c, 0x0a, 0x08}},       /* informational exceptions, SPC-4 7.5.9: DEXCPT */
};
#define N_DEFAULTS (sizeof defaults / sizeof defaults[0])

/* Bits that promise nothing: a setting may give them any value. */
static const struct hint {
    uint8_t page, from, to, mask;
} hints[] = {
    {0x01, 2, 2, 0xc0},   /* AWRE, ARRE: what is below the unit sees to it */
    {0x01, 3, 3, 0xff},   /* READ RETRY COUNT */
    {0x01, 8, 8, 0xff},   /* WRITE RETRY COUNT */
    {0x01, 10, 11, 0xff}, /* RECOVERY TIME LIMIT */
    {0x02, 2, 9, 0xff},   /* buffer ratios and bus limits, which iSCSI does not use */
    {0x08, 2, 2, 0x10},   /* DISC */
    {0x08, 4, 11, 0xff},  /* pre-fetch lengths */
    {0x08, 12, 12, 0x80}, /* FSW */
    {0x08, 13, 15, 0xff}, /* cache segments */
    {0x0a, 2, 2, 0x02},   /* GLTSD: there are no parameters of logs to save */
    {0x0a, 8, 11, 0xff},  /* BUSY TIMEOUT PERIOD, EXTENDED SELF-TEST COMPLETION TIME */
};

/* Bits that a setting of their own decides. */
static const struct owned {
    uint8_t page, byte, mask;
    const char *by; /* NULL: conf/ hands the value to that setting */
} owned[] = {
    {0x08, 2, 0x04, NULL}, /* WCE: write-cache */
    {0x0a, 2, 0x04, NULL}, /* D_SENSE: sense_format */
    {0x0a, 4, 0x08, "SWP is an initiator's to set; readonly protects a unit"},
};

static uint8_t
hint_mask(uint8_t page, uint8_t sub, unsigned byte)
{
    uint8_t m = 0;

    for (size_t i = 0; sub == 0 && i < sizeof hints / sizeof hints[0]; i++)
        if (hints[i].page == page && byte >= hints[i].from && byte <= hints[i].to)
            m |= hints[i].mask;
    return m;
}

/* Format device, rigid disk geometry, peripheral device (all obsolete), vendor specific. */
static bool
can_be_added(uint8_t page)
{
    return page == 0x03 || page == 0x04 || page == 0x09 || (page >= 0x20 && page <= 0x3e);
}

/* --- reading a setting ----------------------------------------------------------------------- */

/* One number up to `max` and the ':' or blank after it. */
static bool
take_number(const char **p, unsigned long max, unsigned *out)
{
    char *end;

    if (!isdigit((unsigned char)**p))
        return false;
    errno = 0;
    unsigned long v = strtoul(*p, &end, 0);
    if (errno != 0 || v > max || (*end != ':' && *end != ' ' && *end != '\0'))
        return false;
    *out = (unsigned)v;
    *p = *end == ':' ? end + 1 : end;
    return true;
}

/* "page:subpage:length:byte:byte:..." up to a blank; length counts what follows the header. */
static int
take_entry(const char **p, struct mode_page *pg, char *err, size_t errsize)
{
    unsigned page, sub, len, b;

    memset(pg, 0, sizeof *pg);
    if (!take_number(p, 0x3e, &page) || !take_number(p, 0xfe, &sub) ||
        !take_number(p, MODE_PAGE_MAX - 4, &len) || len == 0) {
        snprintf(
            err, errsize,
            "mode_page wants PAGE:SUBPAGE:LENGTH:BYTE:..., with a page from 0 to 62, a subpage "
            "from 0 to 254 and 1 to %d bytes",
            MODE_PAGE_MAX - 4);
        return -EINVAL;
    }
    unsigned hdr = sub != 0 ? 4 : 2;
    pg->page = (uint8_t)page;
    pg->sub = (uint8_t)sub;
    pg->len = (uint8_t)(hdr + len);
    pg->base[0] = (uint8_t)(page | (sub != 0 ? 0x40u : 0u));
    pg->base[1] = (uint8_t)(sub != 0 ? sub : len);
    if (sub != 0)
        pg->base[3] = (uint8_t)len;
    for (unsigned i = 0; i < len; i++) {
        if (!take_number(p, 0xff, &b)) {
            snprintf(err, errsize,
                     "mode_page %u:%u: %u bytes from 0 to 255 must follow, there are %u", page, sub,
                     len, i);
            return -EINVAL;
        }
        pg->base[hdr + i] = (uint8_t)b;
    }
    if (**p != '\0' && **p != ' ') {
        snprintf(err, errsize, "mode_page %u:%u: more than the %u bytes that it announces", page,
                 sub, len);
        return -EINVAL;
    }
    *p += **p == ' ';
    return 0;
}

static int
take_owned(struct mode_page *in, char *err, size_t errsize)
{
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
        const struct owned *o = &owned[i];
        if (in->page != o->page || in->sub != 0 || (in->base[o->byte] & o->mask) == 0)
            continue;
        if (o->by != NULL) {
            snprintf(err, errsize, "mode_page %u:0: %s", in->page, o->by);
            return -EINVAL;
        }
        in->base[o->byte] &= (uint8_t)~o->mask;
    }
    return 0;
}

/* Of a page that every unit has: hints are taken over, the rest must be as it is. */
static int
overlay(struct mode_page *have, struct mode_page *in, char *err, size_t errsize)
{
    if (in->len != have->len) {
        snprintf(err, errsize, "mode_page %u:%u: this page has %u bytes after its header, not %u",
                 in->page, in->sub, have->len - (have->sub != 0 ? 4u : 2u),
                 in->len - (in->sub != 0 ? 4u : 2u));
        return -EINVAL;
    }
    if (take_owned(in, err, errsize) < 0)
        return -EINVAL;
    for (unsigned i = in->sub != 0 ? 4 : 2; i < in->len; i++) {
        uint8_t hint = hint_mask(in->page, in->sub, i);
        uint8_t wrong = (uint8_t)((in->base[i] ^ defaults[have->row].base[i]) & ~hint);
        if (wrong != 0) {
            snprintf(
                err, errsize,
                "mode_page %u:%u: byte %u (counted from the page's start) would say 0x%02x, but "
                "bits 0x%02x of it are not so in this unit",
                in->page, in->sub, i, in->base[i], wrong);
            return -EINVAL;
        }
    }
    memcpy(have->base, in->base, in->len);
    return 0;
}

static struct mode_page *
find(struct mode_table *t, const struct mode_page *pg)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->v[i].page == pg->page && t->v[i].sub == pg->sub)
            return &t->v[i];
    return NULL;
}

/* In order of page and subpage code. */
static int
add(struct mode_table *t, const struct mode_page *pg, char *err, size_t errsize)
{
    unsigned at = t->n, bytes = pg->len;

    if (!can_be_added(pg->page)) {
        snprintf(
            err, errsize,
            "mode_page %u:%u: that page describes functions which this unit does not have; 3, 4, "
            "9 and 32 to 62 can be added",
            pg->page, pg->sub);
        return -EINVAL;
    }
    for (unsigned i = 0; i < t->n; i++)
        bytes += t->v[i].len;
    if (t->n == MODE_PAGES_MAX || bytes > MODE_BYTES_MAX) {
        snprintf(err, errsize,
                 "mode_page %u:%u: all pages of a unit have to fit one MODE SENSE(6): %d pages, %d "
                 "bytes",
                 pg->page, pg->sub, MODE_PAGES_MAX, MODE_BYTES_MAX);
        return -EINVAL;
    }
    while (at > 0 && (t->v[at - 1].page > pg->page ||
                      (t->v[at - 1].page == pg->page && t->v[at - 1].sub > pg->sub)))
        at--;
    memmove(&t->v[at + 1], &t->v[at], (t->n - at) * sizeof t->v[0]);
    t->v[at] = *pg;
    t->v[at].is_added = true;
    t->n++;
    return 0;
}

int
mode_table_make(struct mode_table *t, const char *text, char *err, size_t errsize)
{
    const char *p = text != NULL ? text : "";

    memset(t, 0, sizeof *t);
    for (unsigned i = 0; i < N_DEFAULTS; i++) {
        t->v[i] = defaults[i];
        t->v[i].row = (uint8_t)i;
    }
    t->n = N_DEFAULTS;
    while (*p != '\0') {
        struct mode_page in;
        if (take_entry(&p, &in, err, errsize) < 0)
            return -EINVAL;
        struct mode_page *have = find(t, &in);
        if (have != NULL && have->is_added) {
            snprintf(err, errsize, "mode_page %u:%u is given twice", in.page, in.sub);
            return -EINVAL;
        }
        if (have != NULL ? overlay(have, &in, err, errsize) < 0 : add(t, &in, err, errsize) < 0) {
            return -EINVAL;
        }
    }
    return 0;
}

int
lun_mode_pages_check(const char *text, char *err, size_t errsize)
{
    struct mode_table t;

    return mode_table_make(&t, text, err, errsize);
}
