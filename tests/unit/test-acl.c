/* SPDX-License-Identifier: BSD-2-Clause */
/* Access lists: edges of prefixes, both lists, wildcards. */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "target/target.h"
#include "tests/unit/unit.h"

static char err[200], warn[200];

static struct sockaddr_storage
peer(const char *text)
{
    struct sockaddr_storage sa = {0};
    struct sockaddr_in *in = (void *)&sa;
    struct sockaddr_in6 *in6 = (void *)&sa;
    if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
        sa.ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
        sa.ss_family = AF_INET6;
    return sa;
}

static struct acl *
make(const char *addr, const char *name)
{
    const char *const addrs[] = {addr, NULL}, *const names[] = {name, NULL};
    return acl_new(addr ? addrs : NULL, name ? names : NULL, err, sizeof err, warn, sizeof warn);
}

static bool
admits(const char *addr, const char *name, const char *from, const char *who)
{
    struct acl *a = make(addr, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    struct sockaddr_storage sa = peer(from);
    bool yes = acl_admits(a, (struct sockaddr *)&sa, who);
    acl_put(a);
    return yes;
}

static bool
addr_admits(const char *addr, const char *from)
{
    return admits(addr, NULL, from, "iqn.2001-04.com.example:i");
}

static void
test_prefixes(void)
{
    CU_ASSERT(addr_admits("192.168.1.7", "192.168.1.7"));
    CU_ASSERT(!addr_admits("192.168.1.7", "192.168.1.8"));
    CU_ASSERT(addr_admits("192.168.1.1/32", "192.168.1.1"));
    CU_ASSERT(!addr_admits("192.168.1.1/32", "192.168.1.0"));
    CU_ASSERT(addr_admits("0.0.0.0/0", "203.0.113.9"));
    CU_ASSERT(addr_admits("10.0.0.0/8", "10.255.255.255"));
    CU_ASSERT(!addr_admits("10.0.0.0/8", "11.0.0.0"));
    CU_ASSERT(addr_admits("10.0.0.128/25", "10.0.0.255"));
    CU_ASSERT(!addr_admits("10.0.0.128/25", "10.0.0.127"));
    CU_ASSERT(addr_admits("10.0.0.0/31", "10.0.0.1"));
    CU_ASSERT(!addr_admits("10.0.0.0/31", "10.0.0.2"));
    CU_ASSERT(addr_admits("128.0.0.0/1", "200.1.1.1"));
    CU_ASSERT(!addr_admits("128.0.0.0/1", "100.1.1.1"));
}

static void
test_v6(void)
{
    CU_ASSERT(addr_admits("2001:db8::1", "2001:db8::1"));
    CU_ASSERT(addr_admits("2001:db8::1/128", "2001:db8::1"));
    CU_ASSERT(!addr_admits("2001:db8::1/128", "2001:db8::2"));
    CU_ASSERT(addr_admits("[2001:db8::1]/128", "2001:db8::1"));
    CU_ASSERT(addr_admits("[2001:db8::1]", "2001:db8::1"));
    CU_ASSERT(addr_admits("2001:db8::/33", "2001:db8:7fff::1"));
    CU_ASSERT(!addr_admits("2001:db8::/33", "2001:db8:8000::1"));
    CU_ASSERT(addr_admits("::/0", "2001:db8::1"));
    CU_ASSERT(!addr_admits("2001:db8::/32", "10.0.0.1"));
    CU_ASSERT(!addr_admits("0.0.0.0/0", "2001:db8::1"));
    CU_ASSERT(!addr_admits("::/0", "10.0.0.1"));
}

static void
test_v4_mapped(void)
{
    CU_ASSERT(addr_admits("10.0.0.0/8", "::ffff:10.1.2.3"));
    CU_ASSERT(!addr_admits("10.0.0.0/8", "::ffff:11.1.2.3"));
    CU_ASSERT(addr_admits("::ffff:10.0.0.0/104", "10.1.2.3"));
    CU_ASSERT(addr_admits("0.0.0.0/0", "::ffff:10.1.2.3"));
}

static void
test_all(void)
{
    CU_ASSERT(addr_admits("ALL", "10.0.0.1"));
    CU_ASSERT(addr_admits("all", "2001:db8::1"));
    CU_ASSERT(admits(NULL, "ALL", "10.0.0.1", "iqn.2001-04.com.example:i"));
}

static void
test_refused_text(void)
{
    static const char *const bad[] = {
        "",
        "10.0.0",
        "10.0.0.1/33",
        "10.0.0.1/",
        "10.0.0.1/a",
        "10.0.0.1/-1",
        "10.0.0.256",
        "2001:db8::/129",
        "2001:db8::g",
        "host.example.com",
        "10.0.0.1 ",
        "/24",
        "10.0.0.0/8/8",
        "[10.0.0.1",
        "10.0.0.1/0032",
        "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd:eeee:ffff",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct acl *a = make(bad[i], NULL);
        if (a != NULL)
            fprintf(stderr, "accepted: %s\n", bad[i]);
        CU_ASSERT_PTR_NULL(a);
        CU_ASSERT(err[0] != '\0');
        acl_put(a);
    }
    CU_ASSERT_PTR_NULL(make("10.0.0.1 10.0.0.2", NULL));
    CU_ASSERT_PTR_NOT_NULL(strstr(err, "one at a time"));
    CU_ASSERT_PTR_NULL(make(NULL, "a b"));
}

static void
test_host_bits_warn(void)
{
    CU_ASSERT(addr_admits("10.0.0.5/24", "10.0.0.77"));
    CU_ASSERT(warn[0] != '\0');
    CU_ASSERT(addr_admits("10.0.0.0/24", "10.0.0.77"));
    CU_ASSERT(warn[0] == '\0');
}

static void
test_names(void)
{
    static const char x[] = "iqn.2001-04.com.example:host1";
    CU_ASSERT(admits(NULL, x, "10.0.0.1", x));
    CU_ASSERT(!admits(NULL, x, "10.0.0.1", "iqn.2001-04.com.example:host12"));
    CU_ASSERT(admits(NULL, "IQN.2001-04.com.EXAMPLE:host1", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "iqn.2001-04.com.example:*", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "*host?", "10.0.0.1", x));
    CU_ASSERT(!admits(NULL, "*host??", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "iqn.*.example:*1", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "**", "10.0.0.1", x));
    CU_ASSERT(!admits(NULL, "iqn.*.example:*2", "10.0.0.1", x));
}

/* A set, a range, a negation, ] and - as members; ? is one character, not one byte. */
static void
test_sets(void)
{
    static const char x[] = "iqn.2001-04.com.example:host1";
    static const char u[] = "iqn.2001-04.com.example:h\xc3\xa9";
    CU_ASSERT(admits(NULL, "*:host[0-9]", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "*:host[21]", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "*:HOST[A-Z1]", "10.0.0.1", x));
    CU_ASSERT(!admits(NULL, "*:host[2-9]", "10.0.0.1", x));
    CU_ASSERT(!admits(NULL, "*:host[!1]", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "*:host[!2-9]", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "*:host[^02-9]", "10.0.0.1", x));
    CU_ASSERT(!admits(NULL, "*:host[0-9][0-9]", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "iqn.[12]*[e]:h*[t]?", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "iqn.2001[]-]04.*", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "iqn.2001[x-]04.*", "10.0.0.1", x));
    CU_ASSERT(admits(NULL, "*:h?", "10.0.0.1", u));
    CU_ASSERT(!admits(NULL, "*:h??", "10.0.0.1", u));
    CU_ASSERT(admits(NULL, "*:h\xc3\xa9", "10.0.0.1", u));
    CU_ASSERT(!admits(NULL, "*:h\xc3\xaa", "10.0.0.1", u));
    CU_ASSERT_PTR_NULL(make(NULL, "*:host[12"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err, "]"));
    CU_ASSERT_PTR_NULL(make(NULL, "*:host[]"));
}

/* The loopback interface is everywhere and has 127.0.0.1/8. */
static void
test_interface(void)
{
    CU_ASSERT(addr_admits("iface:lo", "127.0.0.1"));
    CU_ASSERT(addr_admits("IFACE:lo", "127.255.3.4"));
    CU_ASSERT(addr_admits("iface:lo", "::ffff:127.0.0.1"));
    CU_ASSERT(!addr_admits("iface:lo", "126.0.0.1"));
    CU_ASSERT_STRING_EQUAL(warn, "");
    CU_ASSERT(!addr_admits("iface:no-such-iface", "127.0.0.1"));
    CU_ASSERT_PTR_NOT_NULL(strstr(warn, "iface:no-such-iface"));
    CU_ASSERT_PTR_NULL(make("iface:", NULL));
    CU_ASSERT_PTR_NULL(make("iface:a/b", NULL));
    CU_ASSERT_PTR_NULL(make("iface:sixteen-letters!", NULL));
    CU_ASSERT(acl_is_iface("iface:eth0"));
    CU_ASSERT_FALSE(acl_is_iface("10.0.0.1"));
}

static bool
is_at(const char *rule, const char *local)
{
    const char *const all[] = {"ALL", NULL}, *const locals[] = {rule, NULL};
    const struct acl_rules r = {.addrs = all, .local = rule ? locals : NULL};
    struct acl *a = acl_make(&r, err, sizeof err, warn, sizeof warn);
    CU_ASSERT_PTR_NOT_NULL_FATAL(a);
    struct sockaddr_storage sa = peer(local);
    bool yes = acl_is_at(a, (struct sockaddr *)&sa);
    acl_put(a);
    return yes;
}

static void
test_local(void)
{
    CU_ASSERT(is_at(NULL, "192.0.2.1"));
    CU_ASSERT(is_at("ALL", "192.0.2.1"));
    CU_ASSERT(is_at("192.0.2.1", "192.0.2.1"));
    CU_ASSERT(is_at("192.0.2.1", "::ffff:192.0.2.1"));
    CU_ASSERT(!is_at("192.0.2.1", "192.0.2.2"));
    CU_ASSERT(is_at("2001:db8::/64", "2001:db8::7"));
    CU_ASSERT(!is_at("2001:db8::/64", "192.0.2.1"));
    CU_ASSERT(is_at("iface:lo", "127.0.0.1"));
    struct sockaddr_storage sa = peer("192.0.2.1");
    CU_ASSERT_FALSE(acl_is_at(NULL, (struct sockaddr *)&sa));
}

static void
test_both_must_match(void)
{
    static const char x[] = "iqn.2001-04.com.example:host1", y[] = "iqn.2001-04.com.example:y";
    CU_ASSERT(admits("10.0.0.0/8", x, "10.0.0.1", x));
    CU_ASSERT(!admits("10.0.0.0/8", x, "10.0.0.1", y));
    CU_ASSERT(!admits("10.0.0.0/8", x, "11.0.0.1", x));
    CU_ASSERT(!admits("10.0.0.0/8", x, "11.0.0.1", y));
}

static void
test_nobody(void)
{
    CU_ASSERT(!admits(NULL, NULL, "10.0.0.1", "iqn.2001-04.com.example:i"));
    struct sockaddr_storage sa = peer("10.0.0.1");
    CU_ASSERT(!acl_admits(NULL, (struct sockaddr *)&sa, "iqn.2001-04.com.example:i"));
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"prefixes", test_prefixes},
        {"IPv6", test_v6},
        {"v4-mapped", test_v4_mapped},
        {"ALL", test_all},
        {"refused text", test_refused_text},
        {"host bits", test_host_bits_warn},
        {"names", test_names},
        {"sets", test_sets},
        {"interface", test_interface},
        {"local addresses", test_local},
        {"both", test_both_must_match},
        {"nobody", test_nobody},
    };
    return UNIT_RUN("acl", tests);
}
