/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iSCSI names (RFC 7143 4.2.7).  Compared after folding to lower case, which is what the string
 * preparation of RFC 3722 does as far as ASCII goes; other characters must be well-formed UTF-8
 * and are kept.  Control characters and blanks are refused, so that a name can be shown and
 * stored anywhere.  Pure functions, any thread.
 */
#include "config.h"

#include <errno.h>
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

/* Controls and every kind of blank or invisible mark. */
static bool
is_hidden(uint32_t c)
{
    return c <= 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || (c >= 0x2000 && c <= 0x206f) ||
           c == 0x3000 || c == 0xfeff || (c >= 0xfff0 && c <= 0xffff);
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
        *why = "name contains a blank or a control character";
        if (is_hidden(code))
            return -EINVAL;
        memcpy(out + i, in + i, n);
        if (n == 1 && in[i] >= 'A' && in[i] <= 'Z')
            out[i] = (char)(in[i] - 'A' + 'a');
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
