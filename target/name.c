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
    {0x00, 0x20},       {0x7f, 0xa0},       {0xad, 0xad},       {0x34f, 0x34f},
    {0x61c, 0x61c},     {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x115f, 0x1160},
    {0x1680, 0x1680},   {0x1806, 0x1806},   {0x180b, 0x180e},   {0x2000, 0x206f},
    {0x2ff0, 0x2fff},   {0x3000, 0x3000},   {0x3002, 0x3002},   {0x3164, 0x3164},
    {0xe000, 0xf8ff},   {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
    {0xfff0, 0xffff},   {0x1d173, 0x1d17a}, {0x1fffe, 0x1ffff}, {0x2fffe, 0x2ffff},
    {0x3fffe, 0x3ffff}, {0x4fffe, 0x4ffff}, {0x5fffe, 0x5ffff}, {0x6fffe, 0x6ffff},
    {0x7fffe, 0x7ffff}, {0x8fffe, 0x8ffff}, {0x9fffe, 0x9ffff}, {0xafffe, 0xaffff},
    {0xbfffe, 0xbffff}, {0xcfffe, 0xcffff}, {0xdfffe, 0xdffff}, {0xe0000, 0x10ffff},
};

/* What the preparation would replace: letters with marks of their own, ligatures, wide and other
 * forms of letters and digits. */
static const struct range unprepared[] = {
    {0xa8, 0xa8},       {0xaa, 0xaa},       {0xaf, 0xaf},       {0xb2, 0xb5},
    {0xb8, 0xba},       {0xbc, 0xbe},       {0xdf, 0xdf},       {0x130, 0x130},
    {0x132, 0x133},     {0x13f, 0x140},     {0x149, 0x149},     {0x17f, 0x17f},
    {0x181, 0x181},     {0x186, 0x186},     {0x189, 0x18a},     {0x18e, 0x190},
    {0x193, 0x194},     {0x196, 0x197},     {0x19c, 0x19d},     {0x19f, 0x19f},
    {0x1a6, 0x1a6},     {0x1a9, 0x1a9},     {0x1ae, 0x1ae},     {0x1b1, 0x1b2},
    {0x1b7, 0x1b7},     {0x1c4, 0x1cc},     {0x1f0, 0x1f3},     {0x1f6, 0x1f7},
    {0x220, 0x220},     {0x2b0, 0x2b8},     {0x2d8, 0x2dd},     {0x2e0, 0x2e4},
    {0x300, 0x362},     {0x374, 0x374},     {0x37a, 0x37a},     {0x37e, 0x37e},
    {0x384, 0x385},     {0x387, 0x387},     {0x390, 0x390},     {0x3b0, 0x3b0},
    {0x3d0, 0x3d6},     {0x3f0, 0x3f5},     {0x587, 0x587},     {0x653, 0x655},
    {0x675, 0x678},     {0x958, 0x95f},     {0x9dc, 0x9dd},     {0x9df, 0x9df},
    {0xa33, 0xa33},     {0xa36, 0xa36},     {0xa59, 0xa5b},     {0xa5e, 0xa5e},
    {0xb5c, 0xb5d},     {0xe33, 0xe33},     {0xeb3, 0xeb3},     {0xedc, 0xedd},
    {0xf0c, 0xf0c},     {0xf43, 0xf43},     {0xf4d, 0xf4d},     {0xf52, 0xf52},
    {0xf57, 0xf57},     {0xf5c, 0xf5c},     {0xf69, 0xf69},     {0xf73, 0xf73},
    {0xf75, 0xf79},     {0xf81, 0xf81},     {0xf93, 0xf93},     {0xf9d, 0xf9d},
    {0xfa2, 0xfa2},     {0xfa7, 0xfa7},     {0xfac, 0xfac},     {0xfb9, 0xfb9},
    {0x1161, 0x11f9},   {0x1e96, 0x1e9f},   {0x1f00, 0x1fff},   {0x2070, 0x209f},
    {0x20a8, 0x20a8},   {0x20d0, 0x218f},   {0x222c, 0x222d},   {0x222f, 0x2230},
    {0x2329, 0x232a},   {0x2460, 0x24ff},   {0x2a0c, 0x2a0c},   {0x2a74, 0x2a76},
    {0x2adc, 0x2adc},   {0x2e80, 0x2fdf},   {0x3036, 0x303a},   {0x3099, 0x309f},
    {0x30ff, 0x30ff},   {0x3130, 0x318f},   {0x3192, 0x319f},   {0x3200, 0x33ff},
    {0xf900, 0xfdcf},   {0xfdf0, 0xfdff},   {0xfe10, 0xfefe},   {0xff00, 0xffef},
    {0x10400, 0x10425}, {0x1d15e, 0x1d164}, {0x1d16e, 0x1d172}, {0x1d1bb, 0x1d1c0},
    {0x1d400, 0x1d7ff}, {0x2f800, 0x2fa1f},
};

/* Two that it would put together into one, though each by itself is as it should be. */
static const struct pair {
    uint16_t first, second;
} pairs[] = {
    {0x928, 0x93c},   {0x930, 0x93c}, {0x933, 0x93c}, {0x9c7, 0x9be}, {0x9c7, 0x9d7},
    {0xb47, 0xb56},   {0xb47, 0xb3e}, {0xb47, 0xb57}, {0xb92, 0xbd7}, {0xbc6, 0xbbe},
    {0xbc7, 0xbbe},   {0xbc6, 0xbd7}, {0xc46, 0xc56}, {0xcbf, 0xcd5}, {0xcc6, 0xcd5},
    {0xcc6, 0xcd6},   {0xcc6, 0xcc2}, {0xcca, 0xcd5}, {0xd46, 0xd3e}, {0xd47, 0xd3e},
    {0xd46, 0xd57},   {0xdd9, 0xdca}, {0xdd9, 0xdcf}, {0xddc, 0xdca}, {0xdd9, 0xddf},
    {0x1025, 0x102e},
};

/* Marks by their canonical combining class: it would sort neighbours by it. */
static const struct marks {
    uint32_t from, to;
    uint8_t class;
} marks[] = {
    {0x363, 0x36f, 230},     {0x483, 0x486, 230},     {0x591, 0x591, 220},
    {0x592, 0x595, 230},     {0x596, 0x596, 220},     {0x597, 0x599, 230},
    {0x59a, 0x59a, 222},     {0x59b, 0x59b, 220},     {0x59c, 0x5a1, 230},
    {0x5a3, 0x5a7, 220},     {0x5a8, 0x5a9, 230},     {0x5aa, 0x5aa, 220},
    {0x5ab, 0x5ac, 230},     {0x5ad, 0x5ad, 222},     {0x5ae, 0x5ae, 228},
    {0x5af, 0x5af, 230},     {0x5b0, 0x5b0, 10},      {0x5b1, 0x5b1, 11},
    {0x5b2, 0x5b2, 12},      {0x5b3, 0x5b3, 13},      {0x5b4, 0x5b4, 14},
    {0x5b5, 0x5b5, 15},      {0x5b6, 0x5b6, 16},      {0x5b7, 0x5b7, 17},
    {0x5b8, 0x5b8, 18},      {0x5b9, 0x5b9, 19},      {0x5bb, 0x5bb, 20},
    {0x5bc, 0x5bc, 21},      {0x5bd, 0x5bd, 22},      {0x5bf, 0x5bf, 23},
    {0x5c1, 0x5c1, 24},      {0x5c2, 0x5c2, 25},      {0x5c4, 0x5c4, 230},
    {0x64b, 0x64b, 27},      {0x64c, 0x64c, 28},      {0x64d, 0x64d, 29},
    {0x64e, 0x64e, 30},      {0x64f, 0x64f, 31},      {0x650, 0x650, 32},
    {0x651, 0x651, 33},      {0x652, 0x652, 34},      {0x670, 0x670, 35},
    {0x6d6, 0x6dc, 230},     {0x6df, 0x6e2, 230},     {0x6e3, 0x6e3, 220},
    {0x6e4, 0x6e4, 230},     {0x6e7, 0x6e8, 230},     {0x6ea, 0x6ea, 220},
    {0x6eb, 0x6ec, 230},     {0x6ed, 0x6ed, 220},     {0x711, 0x711, 36},
    {0x730, 0x730, 230},     {0x731, 0x731, 220},     {0x732, 0x733, 230},
    {0x734, 0x734, 220},     {0x735, 0x736, 230},     {0x737, 0x739, 220},
    {0x73a, 0x73a, 230},     {0x73b, 0x73c, 220},     {0x73d, 0x73d, 230},
    {0x73e, 0x73e, 220},     {0x73f, 0x741, 230},     {0x742, 0x742, 220},
    {0x743, 0x743, 230},     {0x744, 0x744, 220},     {0x745, 0x745, 230},
    {0x746, 0x746, 220},     {0x747, 0x747, 230},     {0x748, 0x748, 220},
    {0x749, 0x74a, 230},     {0x93c, 0x93c, 7},       {0x94d, 0x94d, 9},
    {0x951, 0x951, 230},     {0x952, 0x952, 220},     {0x953, 0x954, 230},
    {0x9bc, 0x9bc, 7},       {0x9cd, 0x9cd, 9},       {0xa3c, 0xa3c, 7},
    {0xa4d, 0xa4d, 9},       {0xabc, 0xabc, 7},       {0xacd, 0xacd, 9},
    {0xb3c, 0xb3c, 7},       {0xb4d, 0xb4d, 9},       {0xbcd, 0xbcd, 9},
    {0xc4d, 0xc4d, 9},       {0xc55, 0xc55, 84},      {0xc56, 0xc56, 91},
    {0xccd, 0xccd, 9},       {0xd4d, 0xd4d, 9},       {0xdca, 0xdca, 9},
    {0xe38, 0xe39, 103},     {0xe3a, 0xe3a, 9},       {0xe48, 0xe4b, 107},
    {0xeb8, 0xeb9, 118},     {0xec8, 0xecb, 122},     {0xf18, 0xf19, 220},
    {0xf35, 0xf35, 220},     {0xf37, 0xf37, 220},     {0xf39, 0xf39, 216},
    {0xf71, 0xf71, 129},     {0xf72, 0xf72, 130},     {0xf74, 0xf74, 132},
    {0xf7a, 0xf7d, 130},     {0xf80, 0xf80, 130},     {0xf82, 0xf83, 230},
    {0xf84, 0xf84, 9},       {0xf86, 0xf87, 230},     {0xfc6, 0xfc6, 220},
    {0x1037, 0x1037, 7},     {0x1039, 0x1039, 9},     {0x1714, 0x1714, 9},
    {0x1734, 0x1734, 9},     {0x17d2, 0x17d2, 9},     {0x18a9, 0x18a9, 228},
    {0x302a, 0x302a, 218},   {0x302b, 0x302b, 228},   {0x302c, 0x302c, 232},
    {0x302d, 0x302d, 222},   {0x302e, 0x302f, 224},   {0x1d165, 0x1d166, 216},
    {0x1d167, 0x1d169, 1},   {0x1d16d, 0x1d16d, 226}, {0x1d16e, 0x1d172, 216},
    {0x1d17b, 0x1d182, 220}, {0x1d185, 0x1d189, 230}, {0x1d18a, 0x1d18b, 220},
    {0x1d1aa, 0x1d1ad, 230},
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
    {0x178, 0x178, ADD, -0x79}, {0x179, 0x17e, ODD, 1},    {0x182, 0x185, EVEN, 1},
    {0x187, 0x188, ODD, 1},     {0x18b, 0x18c, ODD, 1},    {0x191, 0x192, ODD, 1},
    {0x198, 0x199, EVEN, 1},    {0x1a0, 0x1a5, EVEN, 1},   {0x1a7, 0x1a8, ODD, 1},
    {0x1ac, 0x1ad, EVEN, 1},    {0x1b3, 0x1b6, ODD, 1},    {0x1b8, 0x1b9, EVEN, 1},
    {0x1bc, 0x1bd, EVEN, 1},    {0x1af, 0x1b0, ODD, 1},    {0x1cd, 0x1dc, ODD, 1},
    {0x1de, 0x1ef, EVEN, 1},    {0x1f4, 0x1f5, EVEN, 1},   {0x1f8, 0x21f, EVEN, 1},
    {0x222, 0x233, EVEN, 1},    {0x386, 0x386, ADD, 0x26}, {0x388, 0x38a, ADD, 0x25},
    {0x38c, 0x38c, ADD, 0x40},  {0x38e, 0x38f, ADD, 0x3f}, {0x391, 0x3a1, ADD, 0x20},
    {0x3a3, 0x3ab, ADD, 0x20},  {0x3c2, 0x3c2, ADD, 1},    {0x3d8, 0x3ef, EVEN, 1},
    {0x400, 0x40f, ADD, 0x50},  {0x410, 0x42f, ADD, 0x20}, {0x460, 0x481, EVEN, 1},
    {0x48a, 0x4bf, EVEN, 1},    {0x4c1, 0x4ce, ODD, 1},    {0x4d0, 0x50f, EVEN, 1},
    {0x531, 0x556, ADD, 0x30},  {0x1e00, 0x1e95, EVEN, 1}, {0x1ea0, 0x1ef9, EVEN, 1},
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

static uint8_t
class_of(uint32_t c)
{
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
        if (c >= marks[i].from && c <= marks[i].to)
            return marks[i].class;
    }
    return 0;
}

/* Would the preparation put c, which follows `before`, together with it or elsewhere? */
static bool
is_out_of_place(uint32_t before, uint32_t c)
{
    uint8_t class = class_of(c);
    if (class != 0 && class < class_of(before))
        return true;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].first == before && pairs[i].second == c)
            return true;
    }
    return false;
}

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
    uint32_t before = 0;
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
        if (code >= 0x80 && (IN(unprepared, code) || is_out_of_place(before, code)))
            return -EINVAL;
        before = code;
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
