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
        {"forms", test_forms},   {"bad forms", test_bad_forms},       {"utf-8", test_utf8},
        {"length", test_length}, {"fold", test_fold_takes_old_names},
    };
    return UNIT_RUN("name", tests);
}
