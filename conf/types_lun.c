/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of values of logical units, as types.c has those of the others.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "conf/priv.h"

static int
set_device_type(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    (void)obj;
    (void)d;
    if (strcmp(value, "disk") != 0) {
        snprintf(out->err, out->errsize, "device-type: only disk is served, not \"%s\"", value);
        return -EINVAL;
    }
    return 0;
}

const struct conf_type type_device_type = {set_device_type, NULL};

static int
set_bs_type(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    static const struct {
        const char *name;
        enum conf_bs bs;
    } names[] = {
        {"rdwr", CONF_BS_FILE},     {"fileio", CONF_BS_FILE}, {"aio", CONF_BS_FILE},
        {"blockio", CONF_BS_BLOCK}, {"null", CONF_BS_NULL},   {"nullio", CONF_BS_NULL},
        {"zram", CONF_BS_ZRAM},
    };
    (void)d;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(value, names[i].name) == 0) {
            ((struct conf_lun *)obj)->bs = names[i].bs;
            return 0;
        }
    }
    snprintf(out->err, out->errsize,
             "bs-type \"%s\" is not known; there are rdwr, fileio, aio, blockio, null, zram",
             value);
    return -EINVAL;
}

static bool
show_bs_type(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    (void)d;
    (void)i;
    if (l->bs == CONF_BS_AUTO)
        return false;
    text_add(out, "%s", conf_bs_name(l->bs));
    return true;
}

const struct conf_type type_bs_type = {set_bs_type, show_bs_type};

static int
set_bsoflags(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_lun *l = obj;
    bool direct = false, sync = false;
    (void)d;
    for (const char *p = value; *p;) {
        size_t n = strcspn(p, ":,");
        if (n == 6 && memcmp(p, "direct", n) == 0) {
            direct = true;
        } else if (n == 4 && memcmp(p, "sync", n) == 0) {
            sync = true;
        } else {
            snprintf(out->err, out->errsize,
                     "bsoflags wants direct, sync or sync:direct, not \"%s\"", value);
            return -EINVAL;
        }
        p += n;
        p += *p != 0;
    }
    l->direct = direct;
    l->sync = sync;
    return 0;
}

static bool
show_bsoflags(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    (void)d;
    (void)i;
    text_add(out, "%s%s%s", l->sync ? "sync" : "", l->sync && l->direct ? ":" : "",
             l->direct ? "direct" : "");
    return l->sync || l->direct;
}

const struct conf_type type_bsoflags = {set_bsoflags, show_bsoflags};

/* Each `layer NAME:opts` adds one below those before it. */
static int
set_layer(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_lun *l = obj;
    if (!*value || strpbrk(value, " \t") || strlen(value) + strlen(l->layers) > d->max) {
        snprintf(out->err, out->errsize, "layer wants NAME or NAME:options without blanks");
        return -EINVAL;
    }
    char *all = xasprintf("%s%s%s", l->layers, *l->layers ? " " : "", value);
    free(l->layers);
    l->layers = all;
    return 0;
}

static bool
show_layer(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const char *p = ((const struct conf_lun *)obj)->layers;
    (void)d;
    for (; *p && i > 0; i--) {
        p += strcspn(p, " ");
        p += *p == ' ';
    }
    text_add(out, "%.*s", (int)strcspn(p, " "), p);
    return *p != 0;
}

const struct conf_type type_layer = {set_layer, show_layer};

static int
set_block_size(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    uint64_t v;
    if (conf_parse_uint(value, 512, 4096, &v) < 0 || (v != 512 && v != 4096)) {
        snprintf(out->err, out->errsize, "%s wants 512 or 4096, not \"%s\"", d->name, value);
        return -EINVAL;
    }
    ((struct conf_lun *)obj)->block_size = (unsigned)v;
    return 0;
}

static bool
show_block_size(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    (void)d;
    (void)i;
    text_add(out, "%u", l->block_size);
    return l->block_size != 0;
}

const struct conf_type type_block_size = {set_block_size, show_block_size};

/* SBC-3 6.6.2: 0 not reported, 1 non-rotating, 0401h..FFFEh revolutions per minute. */
static int
set_rotation(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    uint64_t v;
    if (conf_parse_uint(value, 0, 0xfffe, &v) < 0 || (v > 1 && v < 0x401)) {
        snprintf(out->err, out->errsize, "%s wants 0, 1 or 1025 to 65534, not \"%s\"", d->name,
                 value);
        return -EINVAL;
    }
    ((struct conf_lun *)obj)->rotation_rate = (unsigned)v;
    return 0;
}

static bool
show_rotation(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    (void)d;
    (void)i;
    text_add(out, "%u", l->rotation_rate);
    return l->rotation_rate != CONF_UNSET;
}

const struct conf_type type_rotation = {set_rotation, show_rotation};

static int
set_size(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    uint64_t v = type_parse_bytes(value, d->max);

    if (v == 0) {
        snprintf(out->err, out->errsize,
                 "size wants bytes, or a number with K, M, G or T, not \"%s\"", value);
        return -EINVAL;
    }
    ((struct conf_lun *)obj)->size = v;
    return 0;
}

static bool
show_size(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    (void)d;
    (void)i;
    text_add(out, "%llu", (unsigned long long)l->size);
    return l->size != 0;
}

const struct conf_type type_size = {set_size, show_size};

static int
set_chunk_size(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    uint64_t v = type_parse_bytes(value, d->max);

    if (v < d->min || (v & (v - 1)) != 0) {
        snprintf(out->err, out->errsize, "%s wants 4K, 8K, 16K, 32K or 64K, not \"%s\"", d->name,
                 value);
        return -EINVAL;
    }
    ((struct conf_lun *)obj)->chunk_size = (unsigned)v;
    return 0;
}

static bool
show_chunk_size(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    (void)d;
    (void)i;
    text_add(out, "%u", l->chunk_size);
    return true;
}

const struct conf_type type_chunk_size = {set_chunk_size, show_chunk_size};

static int
hex_id(const char *value, uint8_t out[16], uint8_t *len, size_t d1, size_t d2, size_t d3)
{
    size_t n, k = 0;

    if (strncasecmp(value, "0x", 2) == 0)
        value += 2;
    n = strlen(value);
    if (n != d1 && n != d2 && n != d3)
        return -EINVAL;
    for (; k < n; k++) {
        if (!isxdigit((unsigned char)value[k]))
            return -EINVAL;
        unsigned c = (unsigned)tolower((unsigned char)value[k]);
        unsigned v = c <= '9' ? c - '0' : c - 'a' + 10;
        out[k / 2] = (uint8_t)(k & 1 ? out[k / 2] | v : v << 4);
    }
    *len = (uint8_t)(n / 2);
    return 0;
}

static bool
show_hex(const uint8_t *id, unsigned len, struct text *out)
{
    for (unsigned i = 0; i < len; i++)
        text_add(out, "%02x", id[i]);
    return len != 0;
}

/* SPC-4 7.8.6.6: NAA 2h, 3h, 5h have 8 bytes, 6h has 16. */
static int
set_naa(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_lun *l = obj;
    uint8_t id[16], len;
    const char *v = strncasecmp(value, "naa.", 4) == 0 ? value + 4 : value;
    (void)d;
    if (hex_id(v, id, &len, 16, 32, 32) == 0) {
        unsigned type = id[0] >> 4;
        if ((len == 8 && (type == 2 || type == 3 || type == 5)) || (len == 16 && type == 6)) {
            memcpy(l->naa, id, sizeof id);
            l->naa_len = len;
            return 0;
        }
    }
    snprintf(out->err, out->errsize,
             "naa wants 16 hexadecimal digits that start with 2, 3 or 5, or 32 that start with 6");
    return -EINVAL;
}

static bool
show_naa(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    (void)d;
    (void)i;
    return show_hex(l->naa, l->naa_len, out);
}

const struct conf_type type_naa = {set_naa, show_naa};

static int
set_eui(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_lun *l = obj;
    const char *v = strncasecmp(value, "eui.", 4) == 0 ? value + 4 : value;
    uint8_t id[16], len;
    (void)d;
    if (hex_id(v, id, &len, 16, 24, 32) < 0) {
        snprintf(out->err, out->errsize, "eui wants 16, 24 or 32 hexadecimal digits");
        return -EINVAL;
    }
    memcpy(l->eui, id, sizeof id);
    l->eui_len = len;
    return 0;
}

static bool
show_eui(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    (void)d;
    (void)i;
    return show_hex(l->eui, l->eui_len, out);
}

const struct conf_type type_eui = {set_eui, show_eui};

static const struct {
    const char *name;
    uint8_t code_set, type;
} designator_types[] = {
    {"t10", 2, 1}, {"t10-binary", 1, 1}, {"eui", 1, 2}, {"naa", 1, 3}, {"name", 3, 8}};
#define DESIGNATOR_TYPES (sizeof designator_types / sizeof *designator_types)

/* `TYPE HEX`: adds one descriptor of VPD 83h (SPC-4 7.8.6.1), as another target reported it. */
static int
set_designator(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_lun *l = obj;
    size_t n = strcspn(value, " \t"), at = l->designators_len, k = 0;
    const char *hex = value + n + strspn(value + n, " \t");
    size_t len = strlen(hex) / 2;

    for (size_t i = 0; i < DESIGNATOR_TYPES; i++) {
        if (strlen(designator_types[i].name) != n ||
            memcmp(designator_types[i].name, value, n) != 0)
            continue;
        if (len == 0 || strlen(hex) % 2 || strspn(hex, "0123456789abcdefABCDEF") != 2 * len)
            break;
        if (at + 4 + len > sizeof l->designators) {
            snprintf(out->err, out->errsize, "%s: all together hold at most %zu bytes", d->name,
                     sizeof l->designators);
            return -EINVAL;
        }
        l->designators[at++] = designator_types[i].code_set;
        l->designators[at++] = designator_types[i].type;
        l->designators[at++] = 0;
        l->designators[at++] = (uint8_t)len;
        for (; k < len; k++) {
            const char pair[] = {hex[2 * k], hex[2 * k + 1], 0};
            l->designators[at++] = (uint8_t)strtoul(pair, NULL, 16);
        }
        l->designators_len = (uint8_t)at;
        return 0;
    }
    snprintf(out->err, out->errsize,
             "%s wants t10, t10-binary, eui, naa or name, and hexadecimal digits", d->name);
    return -EINVAL;
}

static bool
show_designator(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    size_t at = 0;

    (void)d;
    while (at < l->designators_len && i-- > 0)
        at += 4u + l->designators[at + 3];
    if (at >= l->designators_len)
        return false;
    for (size_t k = 0; k < DESIGNATOR_TYPES; k++) {
        if (designator_types[k].code_set == l->designators[at] &&
            designator_types[k].type == l->designators[at + 1])
            text_add(out, "%s ", designator_types[k].name);
    }
    return show_hex(l->designators + at + 4, l->designators[at + 3], out);
}

const struct conf_type type_designator = {set_designator, show_designator};

static int
set_sense_format(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    (void)d;
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
        snprintf(out->err, out->errsize,
                 "sense_format wants 0 (fixed) or 1 (descriptor), not \"%s\"", value);
        return -EINVAL;
    }
    ((struct conf_lun *)obj)->descriptor_sense = *value == '1';
    return 0;
}

static bool
show_sense_format(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    (void)d;
    (void)i;
    text_add(out, "%d", l->descriptor_sense);
    return true;
}

const struct conf_type type_sense_format = {set_sense_format, show_sense_format};

/* Its number; -1 is none. */
static int
set_lun(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    unsigned v;
    struct directive at = *d;
    at.off = 0;
    if (type_uint.set(&v, &at, value, out) < 0)
        return -EINVAL;
    ((struct conf_lun *)obj)->number = (int)v;
    return 0;
}

static bool
show_lun(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_lun *l = obj;
    (void)d;
    (void)i;
    text_add(out, "%d", l->number);
    return l->number >= 0;
}

const struct conf_type type_lun = {set_lun, show_lun};
