/* SPDX-License-Identifier: BSD-2-Clause */
/* The key table against what RFC 7143 12.1 and 13 say, written down here a second time. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "conf/conf.h"
#include "target/keys.h"
#include "tests/unit/unit.h"

static void
test_numbers(void)
{
    static const struct {
        const char *s;
        bool ok;
        uint64_t v;
    } t[] = {
        /* decimal: 0, or digits that do not begin with 0; hexadecimal: 0x or 0X, any case (6.1) */
        {"0", true, 0},
        {"1", true, 1},
        {"8192", true, 8192},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"99999999999999999999999", false, 0},
        {"00", false, 0},
        {"010", false, 0},
        {"", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1a", false, 0},
        {"512~1024", false, 0},
        {"0x0", true, 0},
        {"0x4000", true, 16384},
        {"0X4000", true, 16384},
        {"0xaBcD", true, 0xabcd},
        {"0x0000000000000000001", true, 1},
        {"0xffffffffffffffff", true, UINT64_MAX},
        {"0x10000000000000000", false, 0},
        {"0x", false, 0},
        {"0xg", false, 0},
        {"0b1", false, 0},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        uint64_t v = 0;
        bool ok = keys_number(t[i].s, &v);
        if (ok != t[i].ok || (ok && v != t[i].v))
            fprintf(stderr, "number \"%s\"\n", t[i].s);
        CU_ASSERT(ok == t[i].ok && (!ok || v == t[i].v));
    }
}

/* 13.x: range, default, result function, LO (leading only), irrelevant in discovery. */
static void
test_rfc_values(void)
{
    static const struct {
        const char *name;
        uint32_t min, max, def;
        char rule; /* < minimum, > maximum, & AND, | OR, = declarative */
        bool lo, normal;
    } t[] = {
        {"MaxConnections", 1, 65535, 1, '<', true, true},
        {"InitialR2T", 0, 1, 1, '|', true, true},
        {"ImmediateData", 0, 1, 1, '&', true, true},
        {"MaxRecvDataSegmentLength", 512, 16777215, 8192, '=', false, false},
        {"MaxBurstLength", 512, 16777215, 262144, '<', true, true},
        {"FirstBurstLength", 512, 16777215, 65536, '<', true, true},
        {"DefaultTime2Wait", 0, 3600, 2, '>', true, false},
        {"DefaultTime2Retain", 0, 3600, 20, '<', true, false},
        {"MaxOutstandingR2T", 1, 65535, 1, '<', true, true},
        {"DataPDUInOrder", 0, 1, 1, '|', true, true},
        {"DataSequenceInOrder", 0, 1, 1, '|', true, true},
        {"ErrorRecoveryLevel", 0, 2, 0, '<', true, false},
        {"iSCSIProtocolLevel", 0, 31, 1, '<', true, true},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        enum key_id id = keys_find(t[i].name, strlen(t[i].name));
        CU_ASSERT_FATAL(id != KEY_COUNT);
        const struct key_def *d = keys_def(id);
        char rule = d->rule == KR_MIN   ? '<'
                    : d->rule == KR_MAX ? '>'
                    : d->rule == KR_AND ? '&'
                    : d->rule == KR_OR  ? '|'
                                        : '=';
        CU_ASSERT_EQUAL(d->max, t[i].max);
        CU_ASSERT_EQUAL(d->min, t[i].min);
        CU_ASSERT_EQUAL(d->def, t[i].def);
        CU_ASSERT_EQUAL(rule, t[i].rule);
        CU_ASSERT_EQUAL(d->leading_only, t[i].lo);
        CU_ASSERT_EQUAL(d->normal_only, t[i].normal);
        CU_ASSERT(d->ours >= d->lo && d->ours <= d->hi && d->lo >= d->min && d->hi <= d->max);
    }
}

static void
test_find(void)
{
    CU_ASSERT_EQUAL(keys_find("HeaderDigest", 12), KEY_HEADER_DIGEST);
    CU_ASSERT_EQUAL(keys_find("headerdigest", 12), KEY_COUNT); /* keys are case-sensitive */
    CU_ASSERT_EQUAL(keys_find("HeaderDiges", 11), KEY_COUNT);
    CU_ASSERT_EQUAL(keys_find("HeaderDigestX", 13), KEY_COUNT);
    CU_ASSERT_EQUAL(keys_find("", 0), KEY_COUNT);
    for (unsigned i = 0; i < KEY_COUNT; i++) { /* every id has a row, every name is its own */
        const char *name = keys_def((enum key_id)i)->name;
        CU_ASSERT_PTR_NOT_NULL_FATAL(name);
        CU_ASSERT_EQUAL(keys_find(name, strlen(name)), i);
        CU_ASSERT(strlen(name) <= 63);
    }
}

/* nego.c decides rows in the order of their ids. */
static void
test_dependencies_come_first(void)
{
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        const struct key_def *d = keys_def((enum key_id)i);
        for (const struct key_cond *c = d->irrelevant_if; c && c->key != KEY_COUNT; c++)
            CU_ASSERT((unsigned)c->key < i);
        CU_ASSERT(d->bound == NULL || (unsigned)d->bound->key < i);
    }
}

static void
test_set(void)
{
    struct key_values kv;
    char err[128] = "";
    keys_defaults(&kv);
    CU_ASSERT_EQUAL(keys_set(&kv, "maxburstlength", "0x10000", err, sizeof err), 0);
    CU_ASSERT_EQUAL(kv.v[KEY_MAX_BURST], 65536);
    CU_ASSERT(keys_set(&kv, "MaxBurstLength", "511", err, sizeof err) < 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(err, "512..16777215"));
    CU_ASSERT(keys_set(&kv, "MaxBurstLength", "16777216", err, sizeof err) < 0);
    CU_ASSERT(keys_set(&kv, "MaxBurstLength", "4294967808", err, sizeof err) < 0);
    CU_ASSERT(keys_set(&kv, "MaxBurstLength", "", err, sizeof err) < 0);
    CU_ASSERT_EQUAL(kv.v[KEY_MAX_BURST], 65536); /* untouched by failures */
    CU_ASSERT_EQUAL(keys_set(&kv, "InitialR2T", "yes", err, sizeof err), 0);
    CU_ASSERT_EQUAL(kv.v[KEY_INITIAL_R2T], 1);
    CU_ASSERT(keys_set(&kv, "InitialR2T", "maybe", err, sizeof err) < 0);
    CU_ASSERT_EQUAL(keys_set(&kv, "DataPDUInOrder", "No", err, sizeof err), 1);
    CU_ASSERT_EQUAL(kv.v[KEY_DATA_PDU_IN_ORDER], 1);
    CU_ASSERT_EQUAL(keys_set(&kv, "ErrorRecoveryLevel", "2", err, sizeof err), 1);
    CU_ASSERT_EQUAL(kv.v[KEY_ERL], 0);
    CU_ASSERT_STRING_EQUAL(err, "ErrorRecoveryLevel can be at most 0 here");
    CU_ASSERT(keys_set(&kv, "ErrorRecoveryLevel", "3", err, sizeof err) < 0);
    CU_ASSERT_EQUAL(keys_set(&kv, "MaxOutstandingR2T", "65535", err, sizeof err), 1);
    CU_ASSERT_EQUAL(kv.v[KEY_MAX_R2T], 16);
    CU_ASSERT(keys_set(&kv, "NoSuchKey", "1", err, sizeof err) < 0);
    CU_ASSERT(keys_set(&kv, "SendTargets", "All", err, sizeof err) < 0);
}

/* What tools say without the table is what the daemon says with it. */
static void
test_limits_of_tools(void)
{
    static const char *const values[] = {"Yes", "no",      "0",       "1",        "2",    "16",
                                         "17",  "3600",    "3601",    "65535",    "512",  "65536",
                                         "x",   "1048576", "1048577", "16777215", "0x11", "None"};
    unsigned cut = 0;
    for (unsigned k = 0; k < KEY_COUNT; k++) {
        const struct key_def *d = keys_def((enum key_id)k);
        for (size_t i = 0; d->settable && i < sizeof values / sizeof values[0]; i++) {
            struct key_values kv;
            char ours[128] = "", theirs[128] = "";
            keys_defaults(&kv);
            int rc = keys_set(&kv, d->name, values[i], ours, sizeof ours);
            int tool = conf_key_any(d->name, values[i], theirs, sizeof theirs, NULL);
            CU_ASSERT_EQUAL(tool, rc > 0 ? 1 : 0);
            if (rc > 0)
                CU_ASSERT_STRING_EQUAL(theirs, ours);
            cut += rc > 0;
        }
    }
    CU_ASSERT(cut > 10);
    CU_ASSERT(conf_key_any("small", "1", NULL, 0, NULL) < 0);
}

static void
check_digest(const char *in, bool ok, const char *out)
{
    struct key_values kv;
    char err[128], text[64];
    const char *name;
    keys_defaults(&kv);
    CU_ASSERT_EQUAL(keys_set(&kv, "HeaderDigest", in, err, sizeof err) == 0, ok);
    if (!ok)
        return;
    CU_ASSERT(keys_show(&kv, KEY_HEADER_DIGEST, &name, text, sizeof text));
    CU_ASSERT_STRING_EQUAL(name, "HeaderDigest");
    CU_ASSERT_STRING_EQUAL(text, out);
}

static void
test_set_digest(void)
{
    check_digest("None", true, "None");
    check_digest("crc32c", true, "CRC32C");
    check_digest("None,CRC32C", true, "None,CRC32C");
    check_digest("CRC32C, None", true, "CRC32C,None");
    check_digest("", false, NULL);
    check_digest("MD5", false, NULL);
    check_digest("None,", false, NULL);
    check_digest("None,None", false, NULL);
    check_digest("None CRC32C", false, NULL);
}

static void
count_line(const char *s, void *arg)
{
    unsigned *n = arg, bars = 0;
    for (; *s; s++)
        bars += *s == '|';
    CU_ASSERT_EQUAL(bars, 10);
    (*n)++;
}

static void
test_dump(void)
{
    unsigned n = 0;
    keys_dump(count_line, &n);
    CU_ASSERT_EQUAL(n, KEY_COUNT + 2);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"numbers", test_numbers},
        {"values of RFC 7143", test_rfc_values},
        {"find", test_find},
        {"dependencies", test_dependencies_come_first},
        {"set", test_set},
        {"set digests", test_set_digest},
        {"limits that tools know", test_limits_of_tools},
        {"dump", test_dump},
    };
    return UNIT_RUN("keys", tests);
}
