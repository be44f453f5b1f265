/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iSCSI names (RFC 7143 4.2.7): UTF-8, compared after the string preparation of RFC 3722, whose
 * result is what is kept, shown and sent.  Pure functions, any thread.
 *
 * Names beyond ASCII are names.  Here the preparation folds the case of the scripts that have one
 * and are in use (Latin, Greek, Cyrillic, Armenian); what it forbids, and what its normalisation
 * (NFKC) would turn into something else, is refused: the sender has to send the prepared form
 * (4.2.7.2), and no two spellings of a name must pass for two names in an access list.  ASCII
 * punctuation, which RFC 3722 forbids as well, is let through: old names have underscores.
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "target/target.h"

/* Length of the UTF-8 sequence at p (RFC 3629), 0: ill-formed; *code: the character. */
static size_t
utf8_next(const uint8_t *p, size_t left, uint32_t *code)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    size_t n = p[0] < 0x80             ? 1
               : (p[0] & 0xe0) == 0xc0 ? 2
               : (p[0] & 0xf0) == 0xe0 ? 3
               : (p[0] & 0xf8) == 0xf0 ? 4
                                       : 0;
    if (n == 0 || n > left)
        return 0;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *code = c;
    return n;
}

struct range {
    uint32_t from, to;
};

/* Controls, blanks of every kind, marks that cannot be seen or turn the text around, private use,
 * characters that are none (RFC 3722 4: B.1, C.1 to C.9). */
static const struct range hidden[] = {
    {0x00, 0x20},        {0x7f, 0xa0},       {0xad, 0xad},       {0x34f, 0x34f},
    {0x61c, 0x61c},      {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x115f, 0x1160},
    {0x1680, 0x1680},    {0x1806, 0x1806},   {0x180b, 0x180e},   {0x2000, 0x206f},
    {0x2ff0, 0x2fff},    {0x3000, 0x3000},   {0x3002, 0x3002},   {0x3164, 0x3164},
    {0xe000, 0xf8ff},    {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
    {0xfff0, 0xffff},    {0x1d173, 0x1d17a}, {0x1fffe, 0x1ffff}, {0x2fffe, 0x2ffff},
    {0xe0000, 0x10ffff},
};

/* What the preparation would replace: letters with marks of their own, ligatures, wide and other
 * forms of letters and digits. */
static const struct range unprepared[] = {
    {0xa8, 0xa8},       {0xaa, 0xaa},       {0xaf, 0xaf},     {0xb2, 0xb5},     {0xb8, 0xba},
    {0xbc, 0xbe},       {0xdf, 0xdf},       {0x130, 0x130},   {0x132, 0x133},   {0x13f, 0x140},
    {0x149, 0x149},     {0x17f, 0x17f},     {0x1c4, 0x1cc},   {0x1f0, 0x1f3},   {0x2b0, 0x2b8},
    {0x2d8, 0x2dd},     {0x2e0, 0x2e4},     {0x300, 0x362},   {0x37a, 0x37a},   {0x37e, 0x37e},
    {0x384, 0x385},     {0x387, 0x387},     {0x390, 0x390},   {0x3b0, 0x3b0},   {0x3d0, 0x3d6},
    {0x3f0, 0x3f5},     {0x587, 0x587},     {0x1e96, 0x1e9f}, {0x1f00, 0x1fff}, {0x2070, 0x209f},
    {0x20d0, 0x20ff},   {0x2100, 0x214f},   {0x2150, 0x218f}, {0x2460, 0x24ff}, {0x2e80, 0x2fdf},
    {0x3036, 0x303a},   {0x3099, 0x309f},   {0x30ff, 0x30ff}, {0x3130, 0x318f}, {0x3192, 0x319f},
    {0x3200, 0x33ff},   {0xf900, 0xfdcf},   {0xfdf0, 0xfdff}, {0xfe10, 0xfefe}, {0xff00, 0xffef},
    {0x1d400, 0x1d7ff}, {0x2f800, 0x2fa1f},
};

/* Capital letters; folding keeps the number of bytes. EVEN, ODD: capitals have such a number, the
 * small letter is the next. */
enum { ADD, EVEN, ODD };
static const struct fold {
    uint16_t from, to;
    uint8_t rule;
    int16_t delta;
} folds[] = {
    {0xc0, 0xd6, ADD, 0x20},    {0xd8, 0xde, ADD, 0x20},   {0x100, 0x12f, EVEN, 1},
    {0x134, 0x137, EVEN, 1},    {0x139, 0x148, ODD, 1},    {0x14a, 0x177, EVEN, 1},
    {0x178, 0x178, ADD, -0x79}, {0x179, 0x17e, ODD, 1},    {0x1a0, 0x1a1, EVEN, 1},
    {0x1af, 0x1b0, ODD, 1},     {0x1cd, 0x1dc, ODD, 1},    {0x1de, 0x1ef, EVEN, 1},
    {0x1f4, 0x1f5, EVEN, 1},    {0x1f8, 0x21f, EVEN, 1},   {0x222, 0x233, EVEN, 1},
    {0x386, 0x386, ADD, 0x26},  {0x388, 0x38a, ADD, 0x25}, {0x38c, 0x38c, ADD, 0x40},
    {0x38e, 0x38f, ADD, 0x3f},  {0x391, 0x3a1, ADD, 0x20}, {0x3a3, 0x3ab, ADD, 0x20},
    {0x3c2, 0x3c2, ADD, 1},     {0x400, 0x40f, ADD, 0x50}, {0x410, 0x42f, ADD, 0x20},
    {0x460, 0x481, EVEN, 1},    {0x48a, 0x4bf, EVEN, 1},   {0x4c1, 0x4ce, ODD, 1},
    {0x4d0, 0x4ff, EVEN, 1},    {0x531, 0x556, ADD, 0x30}, {0x1e00, 0x1e95, EVEN, 1},
    {0x1ea0, 0x1ef9, EVEN, 1},
};

static bool
in_ranges(const struct range *r, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++) {
        if (c >= r[i].from && c <= r[i].to)
            return true;
    }
    return false;
}

#define IN(ranges, c) in_ranges(ranges, sizeof(ranges) / sizeof(ranges)[0], c)

static uint32_t
folded(uint32_t c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + 0x20 : c;
    for (size_t i = 0; i < sizeof folds / sizeof folds[0]; i++) {
        const struct fold *f = &folds[i];
        if (c < f->from || c > f->to)
            continue;
        bool capital = f->rule == ADD || (c % 2 == 0) == (f->rule == EVEN);
        return capital ? (uint32_t)((int32_t)c + f->delta) : c;
    }
    return c;
}

/* n bytes, as many as c takes. */
static void
utf8_put(char *out, uint32_t c, size_t n)
{
    static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(n == 1 ? c : lead[n] | c);
}

int
name_fold(const char *in, size_t len, char *out, const char **why)
{
    *why = "name is empty";
    if (len == 0)
        return -EINVAL;
    *why = "name is longer than 223 bytes";
    if (len > ISCSI_NAME_MAX)
        return -EINVAL;
    for (size_t i = 0; i < len;) {
        uint32_t code;
        size_t n = utf8_next((const uint8_t *)in + i, len - i, &code);
        *why = "name is not UTF-8";
        if (n == 0)
            return -EINVAL;
        *why = "name contains a blank, a control character or one that cannot be seen";
        if (IN(hidden, code))
            return -EINVAL;
        *why = "name contains a character that RFC 3722 replaces; write it in its plain form";
        if (code >= 0x80 && IN(unprepared, code))
            return -EINVAL;
        utf8_put(out + i, folded(code), n);
        i += n;
    }
    out[len] = '\0';
    return 0;
}

static bool
all_in(const char *s, size_t n, const char *set)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\0' || strchr(set, s[i]) == NULL)
            return false;
    }
    return true;
}

/* iqn.YYYY-MM.reversed.domain[:anything] (4.2.7.4); a date, or the name of a month 13, is what
 * people get wrong. */
static const char *
check_iqn(const char *name)
{
    static const char digits[] = "0123456789";
    const char *date = name + 4;
    if (!all_in(date, 4, digits) || date[4] != '-' || !all_in(date + 5, 2, digits))
        return "iqn. must be followed by a date, YYYY-MM";
    int month = (date[5] - '0') * 10 + date[6] - '0';
    if (month < 1 || month > 12)
        return "the date after iqn. has no such month";
    if (date[7] != '.' || date[8] == '\0' || date[8] == ':' || date[8] == '.')
        return "the date after iqn. must be followed by a reversed domain name";
    return NULL;
}

static const char *
check_hex(const char *digits, size_t len, size_t alt, const char *why)
{
    size_t n = strlen(digits);
    return (n == len || n == alt) && all_in(digits, n, "0123456789abcdef") ? NULL : why;
}

int
name_normalise(const char *in, size_t len, char *out, const char **why)
{
    if (name_fold(in, len, out, why) != 0)
        return -EINVAL;
    if (strncmp(out, "iqn.", 4) == 0)
        *why = check_iqn(out);
    else if (strncmp(out, "eui.", 4) == 0)
        *why = check_hex(out + 4, 16, 16, "eui. must be followed by 16 hexadecimal digits");
    else if (strncmp(out, "naa.", 4) == 0)
        *why = check_hex(out + 4, 16, 32, "naa. must be followed by 16 or 32 hexadecimal digits");
    else
        *why = "name must begin with iqn., eui. or naa.";
    return *why == NULL ? 0 : -EINVAL;
}
