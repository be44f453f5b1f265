/* SPDX-License-Identifier: BSD-2-Clause */
/* iSCSI names (RFC 7143 4.2.7). */
#include "config.h"

#include <string.h>

#include "target/target.h"
#include "tests/unit/unit.h"

static bool
is_good(const char *in, const char *want)
{
    char out[ISCSI_NAME_MAX + 1];
    const char *why;
    return name_normalise(in, strlen(in), out, &why) == 0 && strcmp(out, want) == 0;
}

static bool
is_bad(const char *in, size_t len)
{
    char out[ISCSI_NAME_MAX + 1];
    const char *why = NULL;
    return name_normalise(in, len, out, &why) != 0 && why != NULL;
}

static void
test_forms(void)
{
    CU_ASSERT(is_good("iqn.2001-04.com.example:disk1", "iqn.2001-04.com.example:disk1"));
    CU_ASSERT(is_good("IQN.2001-04.COM.Example:Disk1", "iqn.2001-04.com.example:disk1"));
    CU_ASSERT(is_good("iqn.2001-04.com.example", "iqn.2001-04.com.example"));
    CU_ASSERT(is_good("iqn.1993-08.org.debian:01:a_b", "iqn.1993-08.org.debian:01:a_b"));
    CU_ASSERT(is_good("eui.02004567A425678D", "eui.02004567a425678d"));
    CU_ASSERT(is_good("naa.52004567BA64678D", "naa.52004567ba64678d"));
    CU_ASSERT(
        is_good("naa.62004567BA64678D0123456789ABCDEF", "naa.62004567ba64678d0123456789abcdef"));
}

static void
test_bad_forms(void)
{
    static const char *const bad[] = {
        "",
        "disk",
        "iqn.",
        "iqn.2001",
        "iqn.2001-04",
        "iqn.2001-04.",
        "iqn.2001-04.:x",
        "iqn.2001-13.com.example",
        "iqn.2001-00.com.example",
        "iqn.01-04.com.example",
        "iqn.2001_04.com.example",
        "eui.02004567A425678",
        "eui.02004567A425678D0",
        "eui.02004567A425678G",
        "naa.52004567BA64678D0",
        "iqn.2001-04.com.example:a b",
        "iqn.2001-04.com.example:a\nb",
        "iqn.2001-04.com.example:a\tb",
        "iqn.2001-04.com.example:a\x7f",
        "iqn.2001-04.com.example:\xff",
        "iqn.2001-04.com.example:\xc0\xaf",     /* overlong */
        "iqn.2001-04.com.example:\xed\xa0\x80", /* surrogate */
        "iqn.2001-04.com.example:\xe2\x80\x8b", /* zero width space */
        "iqn.2001-04.com.example:\xc2\x85",     /* control */
        "iqn.2001-04.com.example:\xc3",         /* cut */
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (!is_bad(bad[i], strlen(bad[i])))
            fprintf(stderr, "accepted: %s\n", bad[i]);
        CU_ASSERT(is_bad(bad[i], strlen(bad[i])));
    }
    CU_ASSERT(is_bad("iqn.2001-04.com.example:a\0b", 27));
}

static void
test_utf8(void)
{
    CU_ASSERT(is_good("iqn.2001-04.com.example:\xc3\xa9", "iqn.2001-04.com.example:\xc3\xa9"));
}

#define N "iqn.2001-04.com.example:"

/* Case folds in every script that is in use; what is folded already stays (RFC 3722 4, B.2). */
static void
test_folds(void)
{
    static const struct {
        const char *in, *want;
    } v[] = {
        {N "\xc3\x89\xc3\x96", N "\xc3\xa9\xc3\xb6"},                 /* E acute, O diaeresis */
        {N "\xc5\xbd\xc5\xb8", N "\xc5\xbe\xc3\xbf"},                 /* Z caron, Y diaeresis */
        {N "\xc4\x80\xc4\x81", N "\xc4\x81\xc4\x81"},                 /* A macron */
        {N "\xce\x91\xce\xa9\xce\x86", N "\xce\xb1\xcf\x89\xce\xac"}, /* Greek */
        {N "\xcf\x82", N "\xcf\x83"},                                 /* final sigma */
        {N "\xd0\x96\xd0\x81\xd0\xaf", N "\xd0\xb6\xd1\x91\xd1\x8f"}, /* Cyrillic */
        {N "\xd4\xb1", N "\xd5\xa1"},                                 /* Armenian */
        {N "\xe1\xba\xa4", N "\xe1\xba\xa5"},                         /* Vietnamese */
        {N "\xe6\x97\xa5\xe6\x9c\xac", N "\xe6\x97\xa5\xe6\x9c\xac"}, /* no case */
        {N "\xc3\x97\xc3\xb7", N "\xc3\x97\xc3\xb7"},                 /* signs between letters */
        {N "\xc6\x84\xcf\x98", N "\xc6\x85\xcf\x99"},                 /* Latin B, Greek */
        {N "\xd4\x80", N "\xd4\x81"},                                 /* Cyrillic supplement */
        {N "\xe0\xa6\x95\xe0\xa6\xbe", N "\xe0\xa6\x95\xe0\xa6\xbe"}, /* Bengali ka, aa */
        {N "\xe0\xb8\x81\xe0\xb8\xb8\xe0\xb9\x88",
         N "\xe0\xb8\x81\xe0\xb8\xb8\xe0\xb9\x88"}, /* Thai: vowel before tone */
        {N "\xf0\x9f\x92\xbe", N "\xf0\x9f\x92\xbe"},
    };
    for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
        if (!is_good(v[i].in, v[i].want))
            fprintf(stderr, "not folded: %s\n", v[i].in);
        CU_ASSERT(is_good(v[i].in, v[i].want));
        CU_ASSERT(is_good(v[i].want, v[i].want));
    }
}

/* What RFC 3722 forbids or turns into something else would be a second spelling of a name. */
static void
test_unprepared(void)
{
    static const char *const bad[] = {
        N "e\xcc\x81",                            /* e, combining acute */
        N "\xef\xbd\x81",                         /* full width a */
        N "\xef\xac\x81",                         /* ligature fi */
        N "\xc2\xb2",                             /* superscript two */
        N "\xc3\x9f",                             /* sharp s: ss */
        N "\xe2\x84\xaa",                         /* Kelvin sign: k */
        N "\xe3\x80\x82",                         /* ideographic full stop */
        N "\xe3\x80\x80",                         /* ideographic space */
        N "\xc2\xad",                             /* soft hyphen */
        N "\xc6\x81",                             /* B with hook: its small letter is elsewhere */
        N "\xe1\x84\x80\xe1\x85\xa1",             /* Hangul in pieces */
        N "\xd8\xa7\xd9\x93",                     /* alef, madda above */
        N "\xe0\xb8\xb3",                         /* Thai sara am */
        N "\xe0\xa4\xa8\xe0\xa4\xbc",             /* na, nukta: one letter */
        N "\xe0\xa7\x87\xe0\xa6\xbe",             /* Bengali e, aa: o */
        N "\xe0\xb8\x81\xe0\xb9\x88\xe0\xb8\xb8", /* Thai: tone before vowel */
        N "\xf0\xaf\xbf\xbe.\xf3\xaf\xbf\xbf",    /* no characters */
        N "\xe2\x80\xae",                         /* right-to-left override */
        N "\xef\xbb\xbf",                         /* byte order mark */
        N "\xee\x80\x80",                         /* private use */
        N "\xef\xb7\x90",                         /* no character */
        N "\xf3\xa0\x81\x81",                     /* tag */
        N "\xf4\x90\x80\x80",                     /* beyond Unicode */
        N "\xf8\x88\x80\x80\x80",
        N "\x80",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char out[ISCSI_NAME_MAX + 1];
        const char *why = NULL;
        if (!is_bad(bad[i], strlen(bad[i])))
            fprintf(stderr, "accepted: %s\n", bad[i]);
        CU_ASSERT(is_bad(bad[i], strlen(bad[i])));
        CU_ASSERT(name_fold(bad[i], strlen(bad[i]), out, &why) != 0 && why != NULL);
    }
}

static void
test_length(void)
{
    char name[300], out[ISCSI_NAME_MAX + 1];
    const char *why;
    memset(name, 'a', sizeof name);
    memcpy(name, "iqn.2001-04.com.example:", 24);
    CU_ASSERT_EQUAL(name_normalise(name, 223, out, &why), 0);
    CU_ASSERT_EQUAL(strlen(out), 223);
    CU_ASSERT(is_bad(name, 224));
}

static void
test_fold_takes_old_names(void)
{
    char out[ISCSI_NAME_MAX + 1];
    const char *why;
    CU_ASSERT_EQUAL(name_fold("My-Host", 7, out, &why), 0);
    CU_ASSERT_STRING_EQUAL(out, "my-host");
    CU_ASSERT(name_fold("a b", 3, out, &why) != 0);
    CU_ASSERT(name_fold("", 0, out, &why) != 0);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"forms", test_forms},
        {"bad forms", test_bad_forms},
        {"utf-8", test_utf8},
        {"length", test_length},
        {"folds", test_folds},
        {"unprepared", test_unprepared},
        {"fold", test_fold_takes_old_names},
    };
    return UNIT_RUN("name", tests);
}
