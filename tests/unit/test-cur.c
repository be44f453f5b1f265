/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounded cursors, byte order, lists, serial numbers, reference counts. */
#include "config.h"

#include <string.h>

#include "base/cur.h"
#include "base/list.h"
#include "base/ref.h"
#include "base/serial.h"
#include "tests/unit/unit.h"

static void
test_cur_reads(void)
{
    static const uint8_t b[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
    struct cur c = cur_init(b, sizeof b);
    CU_ASSERT_EQUAL(cur_u8(&c), 1);
    CU_ASSERT_EQUAL(cur_be16(&c), 0x0203);
    CU_ASSERT_EQUAL(cur_be24(&c), 0x040506);
    CU_ASSERT_EQUAL(cur_be32(&c), 0x0708090a);
    CU_ASSERT_EQUAL(cur_be64(&c), 0x0b0c0d0e0f101112ull);
    CU_ASSERT_TRUE(cur_ok(&c));
    CU_ASSERT_EQUAL(c.left, 0);
    CU_ASSERT_PTR_NOT_NULL(cur_take(&c, 0));
    CU_ASSERT_TRUE(cur_ok(&c));
}

static void
test_cur_past_end(void)
{
    static const uint8_t b[] = {0xff, 0xff, 0xff};
    struct cur c = cur_init(b, sizeof b);
    CU_ASSERT_EQUAL(cur_be32(&c), 0);
    CU_ASSERT_FALSE(cur_ok(&c));
    /* bad stays bad, though one byte would be there */
    CU_ASSERT_EQUAL(cur_u8(&c), 0);
    CU_ASSERT_PTR_NULL(cur_take(&c, 0));
    CU_ASSERT_FALSE(cur_ok(&c));

    c = cur_init(b, sizeof b);
    CU_ASSERT_PTR_NULL(cur_take(&c, SIZE_MAX));
    CU_ASSERT_FALSE(cur_ok(&c));
    c = cur_init(NULL, 0);
    CU_ASSERT_EQUAL(cur_u8(&c), 0);
    CU_ASSERT_FALSE(cur_ok(&c));
}

static void
test_wcur_counts_beyond(void)
{
    uint8_t b[8];
    memset(b, 0xee, sizeof b);
    struct wcur w = wcur_init(b, 5);
    wcur_be32(&w, 0x01020304);
    CU_ASSERT_TRUE(wcur_fits(&w));
    wcur_be16(&w, 0x0506); /* one byte fits */
    CU_ASSERT_FALSE(wcur_fits(&w));
    wcur_zero(&w, 10);
    wcur_u8(&w, 1);
    CU_ASSERT_EQUAL(w.len, 17);
    CU_ASSERT_EQUAL(wcur_stored(&w), 5);
    static const uint8_t want[8] = {1, 2, 3, 4, 5, 0xee, 0xee, 0xee};
    CU_ASSERT_EQUAL(memcmp(b, want, 8), 0);
}

static void
test_wcur_values(void)
{
    uint8_t b[32];
    struct wcur w = wcur_init(b, sizeof b);
    wcur_be24(&w, 0xabcdef);
    wcur_be64(&w, 0x1122334455667788ull);
    wcur_ascii(&w, "ab", 4);
    wcur_ascii(&w, "toolong", 4);
    wcur_bytes(&w, NULL, 0);
    CU_ASSERT_EQUAL(w.len, 19);
    CU_ASSERT_EQUAL(memcmp(b,
                           "\xab\xcd\xef\x11\x22\x33\x44\x55\x66\x77\x88"
                           "ab  tool",
                           19),
                    0);
}

struct item {
    int v;
    struct list link;
};

static int
list_digits(const struct list *l)
{
    int n = 0;
    list_each(it, l)
        n = n * 10 + container_of(it, struct item, link)->v;
    return n;
}

static void
test_list(void)
{
    struct list a, b;
    struct item i[5] = {{1}, {2}, {3}, {4}, {5}};
    list_init(&a);
    list_init(&b);
    for (int k = 0; k < 5; k++)
        list_init(&i[k].link);
    CU_ASSERT_TRUE(list_is_empty(&a));
    CU_ASSERT_PTR_NULL(list_pop(&a));
    list_add_tail(&a, &i[1].link);
    list_add_tail(&a, &i[2].link);
    list_add_head(&a, &i[0].link);
    CU_ASSERT_EQUAL(list_digits(&a), 123);
    CU_ASSERT_TRUE(list_is_linked(&i[1].link));
    list_add_tail(&b, &i[3].link);
    list_splice_tail(&b, &a);
    CU_ASSERT_TRUE(list_is_empty(&a));
    CU_ASSERT_EQUAL(list_digits(&b), 4123);
    list_splice_tail(&b, &a); /* nothing */
    CU_ASSERT_EQUAL(list_digits(&b), 4123);
    list_del(&i[1].link);
    list_del(&i[1].link); /* harmless */
    CU_ASSERT_FALSE(list_is_linked(&i[1].link));
    CU_ASSERT_EQUAL(list_digits(&b), 413);
    list_each_safe(it, &b)
        if (container_of(it, struct item, link)->v != 1)
            list_del(it);
    CU_ASSERT_EQUAL(list_digits(&b), 1);
    CU_ASSERT_PTR_EQUAL(list_first(&b, struct item, link), &i[0]);
    CU_ASSERT_PTR_EQUAL(list_pop(&b), &i[0].link);
    CU_ASSERT_TRUE(list_is_empty(&b));
}

static void
test_serial(void)
{
    CU_ASSERT_TRUE(sn_lt(1, 2));
    CU_ASSERT_FALSE(sn_lt(2, 1));
    CU_ASSERT_FALSE(sn_lt(7, 7));
    CU_ASSERT_TRUE(sn_le(7, 7));
    CU_ASSERT_TRUE(sn_lt(0xffffffffu, 0)); /* over the wrap */
    CU_ASSERT_TRUE(sn_lt(0xfffffff0u, 0x10));
    CU_ASSERT_FALSE(sn_lt(0x10, 0xfffffff0u));
    CU_ASSERT_TRUE(sn_le(0xffffffffu, 0));
    CU_ASSERT_TRUE(sn_lt(0, 0x7fffffffu)); /* as far as it goes */
    /* RFC 1982 3.2 leaves the distance 2^31 undefined: neither is before the other */
    CU_ASSERT_FALSE(sn_lt(0, 0x80000000u));
    CU_ASSERT_FALSE(sn_lt(0x80000000u, 0));
}

static void
test_ref(void)
{
    struct ref r;
    ref_init(&r);
    ref_get(&r);
    CU_ASSERT_FALSE(ref_put(&r));
    CU_ASSERT_TRUE(ref_put(&r));
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"cur reads", test_cur_reads},
        {"cur past the end", test_cur_past_end},
        {"wcur counts beyond the end", test_wcur_counts_beyond},
        {"wcur values", test_wcur_values},
        {"list", test_list},
        {"serial numbers", test_serial},
        {"ref", test_ref},
    };
    return UNIT_RUN("cur", tests);
}
