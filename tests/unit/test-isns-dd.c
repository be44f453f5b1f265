/* SPDX-License-Identifier: BSD-2-Clause */
/* Access by discovery domain: sets of names, and what they do to a target beside its access list.
 */
#include "config.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "target/target.h"
#include "unit.h"

static const char a[] = "iqn.2001-04.com.example:a", b[] = "iqn.2001-04.com.example:b",
                  c[] = "iqn.2001-04.com.example:c";

static void
test_nobody(void)
{
    struct isns_dd *dd = isns_dd_new(NULL, 0);
    CU_ASSERT(isns_dd_count(dd) == 0);
    CU_ASSERT(!isns_dd_admits(dd, a));
    CU_ASSERT(!isns_dd_admits(dd, ""));
    isns_dd_put(dd);
    isns_dd_put(NULL);
}

static void
test_names(void)
{
    const char *names[] = {c, a, c, "eui.0011223344556677", a};
    struct isns_dd *dd = isns_dd_new(names, 5);
    CU_ASSERT(isns_dd_count(dd) == 3);
    CU_ASSERT(isns_dd_admits(dd, a));
    CU_ASSERT(isns_dd_admits(dd, c));
    CU_ASSERT(isns_dd_admits(dd, "eui.0011223344556677"));
    CU_ASSERT(!isns_dd_admits(dd, b));
    CU_ASSERT(!isns_dd_admits(dd, "iqn.2001-04.com.example:"));   /* a part of a name */
    CU_ASSERT(!isns_dd_admits(dd, "iqn.2001-04.com.example:aa")); /* more than a name */
    CU_ASSERT(!isns_dd_admits(dd, "*"));                          /* no patterns here */
    isns_dd_put(dd);
}

static void
test_many(void)
{
    enum { N = 5000 };
    static char text[N][64];
    const char *names[N];
    for (unsigned i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "iqn.2001-04.com.example:%u", (i * 7919u) % N);
        names[i] = text[i];
    }
    struct isns_dd *dd = isns_dd_new(names, N);
    CU_ASSERT(isns_dd_count(dd) == N);
    for (unsigned i = 0; i < N; i++)
        CU_ASSERT(isns_dd_admits(dd, text[i]));
    CU_ASSERT(!isns_dd_admits(dd, "iqn.2001-04.com.example:5000"));
    isns_dd_put(dd);
}

static void
test_same(void)
{
    const char *ab[] = {a, b}, *ba[] = {b, a, b}, *ac[] = {a, c};
    struct isns_dd *x = isns_dd_new(ab, 2), *y = isns_dd_new(ba, 3), *z = isns_dd_new(ac, 2),
                   *none = isns_dd_new(NULL, 0);
    CU_ASSERT(isns_dd_same(x, y));
    CU_ASSERT(!isns_dd_same(x, z));
    CU_ASSERT(!isns_dd_same(x, none));
    CU_ASSERT(isns_dd_bytes(x) == isns_dd_bytes(y) && isns_dd_bytes(none) < isns_dd_bytes(x));
    isns_dd_put(x);
    isns_dd_put(y);
    isns_dd_put(z);
    isns_dd_put(none);
}

/* Both must admit: the list of the target, and the domains where they are asked for. */
static void
test_beside_acl(void)
{
    const char *all[] = {"ALL", NULL}, *only_b[] = {b, NULL}, *ab[] = {a, b};
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_addr = {htonl(0x0a000001)}};
    const struct sockaddr *sa = (const void *)&peer;
    char err[128];
    struct tgt_node n = {.acl = acl_new(all, NULL, err, sizeof err, NULL, 0)};
    CU_ASSERT_FATAL(n.acl != NULL);
    CU_ASSERT(node_admits(&n, sa, a) && node_admits(&n, sa, c)); /* not asked for */
    n.dd = isns_dd_new(ab, 2);
    CU_ASSERT(node_admits(&n, sa, a) && node_admits(&n, sa, b) && !node_admits(&n, sa, c));
    acl_put(n.acl);
    n.acl = acl_new(NULL, only_b, err, sizeof err, NULL, 0);
    CU_ASSERT(!node_admits(&n, sa, a) && node_admits(&n, sa, b));
    isns_dd_put(n.dd);
    n.dd = isns_dd_new(NULL, 0); /* no server has spoken: nobody */
    CU_ASSERT(!node_admits(&n, sa, a) && !node_admits(&n, sa, b));
    isns_dd_put(n.dd);
    acl_put(n.acl);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"nobody", test_nobody},
        {"names", test_names},
        {"many", test_many},
        {"sets that are equal", test_same},
        {"beside the access list", test_beside_acl},
    };
    return UNIT_RUN("isns-dd", tests);
}
