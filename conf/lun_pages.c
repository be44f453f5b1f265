/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mode pages among a unit's settings: PAGE:SUBPAGE:LENGTH:BYTE:..., as tgt has them.  They are kept
 * as text, each page once; what they mean is judged by the caller's check of the whole unit.  Two
 * bits are settings of their own here, so that neither form can contradict the other: WCE is
 * write-cache, D_SENSE is sense_format.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "conf/priv.h"

#define BYTES_MAX 64

struct page {
    unsigned page, sub, n; /* n: bytes after the header */
    uint8_t byte[BYTES_MAX];
};

/* The bool that a bit of a page is, or NULL; *at: its byte after the header. */
static bool *
bit_setting(struct conf_lun *l, unsigned page, unsigned sub, unsigned *at, uint8_t *mask)
{
    *at = 0;
    *mask = 0x04;
    if (sub != 0)
        return NULL;
    return page == 0x08 ? &l->write_cache : page == 0x0a ? &l->descriptor_sense : NULL;
}

static bool
take(const char **p, uint64_t max, unsigned *out)
{
    char number[16];
    size_t n = strcspn(*p, ": ");
    uint64_t v;

    if (n == 0 || n >= sizeof number)
        return false;
    memcpy(number, *p, n);
    number[n] = 0;
    if (conf_parse_uint(number, 0, max, &v) < 0)
        return false;
    *out = (unsigned)v;
    *p += n;
    *p += **p == ':';
    return true;
}

/* Up to the end or a blank. */
static bool
read_page(const char **p, struct page *pg)
{
    unsigned v;

    if (!take(p, 0x3e, &pg->page) || !take(p, 0xfe, &pg->sub) || !take(p, BYTES_MAX, &pg->n))
        return false;
    for (unsigned i = 0; i < pg->n; i++) {
        if (!take(p, 0xff, &v))
            return false;
        pg->byte[i] = (uint8_t)v;
    }
    return pg->n != 0 && (**p == 0 || **p == ' ');
}

static char *
page_text(const struct page *pg)
{
    char text[3 * 16 + BYTES_MAX * 5];
    size_t at = (size_t)snprintf(text, sizeof text, "%u:%u:%u", pg->page, pg->sub, pg->n);

    for (unsigned i = 0; i < pg->n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, ":0x%02x", pg->byte[i]);
    return xstrdup(text);
}

/* Puts it in place of an earlier one of the same page. */
static void
put_page(struct conf_lun *l, const struct page *new)
{
    char *all = xstrdup(""), *t = page_text(new), *next;
    struct page pg;

    for (const char *p = l->mode_pages; *p; p += *p == ' ') {
        if (!read_page(&p, &pg))
            break; /* cannot be: put here by this function */
        if (pg.page == new->page && pg.sub == new->sub)
            continue;
        char *one = page_text(&pg);
        next = xasprintf("%s%s%s", all, *all ? " " : "", one);
        free(one);
        free(all);
        all = next;
    }
    next = xasprintf("%s%s%s", all, *all ? " " : "", t);
    free(all);
    free(t);
    free(l->mode_pages);
    l->mode_pages = next;
}

static int
set_mode_page(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_lun *l = obj;
    struct page pg = {0};
    const char *p = value;
    unsigned at;
    uint8_t mask;

    if (strcmp(value, "none") == 0) { /* those that every unit has, as they are */
        free(l->mode_pages);
        l->mode_pages = xstrdup("");
        return 0;
    }
    if (!read_page(&p, &pg) || *p) {
        snprintf(
            out->err, out->errsize,
            "%s wants PAGE:SUBPAGE:LENGTH:BYTE:... with as many bytes (0 to 255) as LENGTH says, "
            "at most %d, or none; not \"%.100s\"",
            d->name, BYTES_MAX, value);
        return -EINVAL;
    }
    bool *setting = bit_setting(l, pg.page, pg.sub, &at, &mask);
    if (setting) {
        *setting = (pg.byte[at] & mask) != 0;
        pg.byte[at] &= (uint8_t)~mask;
    }
    put_page(l, &pg);
    return 0;
}

/* As it would be given: with the bits that are settings of their own. */
static bool
show_mode_page(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    struct conf_lun l = *(const struct conf_lun *)obj; /* bit_setting points into it */
    struct page pg;
    unsigned at;
    uint8_t mask;

    (void)d;
    for (const char *p = l.mode_pages; *p && read_page(&p, &pg); p += *p == ' ', i--) {
        if (i != 0)
            continue;
        const bool *setting = bit_setting(&l, pg.page, pg.sub, &at, &mask);
        if (setting && *setting)
            pg.byte[at] |= mask;
        char *t = page_text(&pg);
        text_add(out, "%s", t);
        free(t);
        return true;
    }
    return false;
}

const struct conf_type type_mode_page = {set_mode_page, show_mode_page, NULL};
