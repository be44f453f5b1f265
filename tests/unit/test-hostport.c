/* SPDX-License-Identifier: BSD-2-Clause */
/* Portals and announced addresses as text (RFC 7143 13.8 for the latter). */
#include "config.h"

#include <string.h>

#include "base/hostport.h"
#include "tests/unit/unit.h"

static void
test_names(void)
{
    static const struct {
        const char *text, *name;
    } rows[] = {
        {"192.0.2.1", "192.0.2.1:3260"},
        {"192.0.2.1:1", "192.0.2.1:1"},
        {"0.0.0.0:65535", "0.0.0.0:65535"},
        {"::", "[::]:3260"},
        {"2001:db8::1", "[2001:db8::1]:3260"},
        {"[2001:db8::1]", "[2001:db8::1]:3260"},
        {"[2001:DB8:0:0::1]:3261", "[2001:db8::1]:3261"},
        {"[fe80::1%eth0]:3260", "[fe80::1%eth0]:3260"},
        {"fe80::1%eth0", "[fe80::1%eth0]:3260"},
        {"iface:eth0", "iface:eth0:3260"},
        {"iface:br-lan.7:3261", "iface:br-lan.7:3261"},
    };
    struct hostport hp;
    char err[200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CU_ASSERT_EQUAL_FATAL(hostport_parse(rows[i].text, &hp, err, sizeof err), 0);
        CU_ASSERT_STRING_EQUAL(hp.name, rows[i].name);
    }
    CU_ASSERT_STRING_EQUAL(hp.iface, "br-lan.7");
    CU_ASSERT_EQUAL(hp.addr.ss_family, AF_UNSPEC);
    CU_ASSERT_EQUAL(hp.port, 3261);
}

static void
test_bad(void)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "no numeric address"},
        {"host.example", "no numeric address"},
        {"1.2.3", "no numeric address"},
        {"1.2.3.4:", "no port"},
        {"1.2.3.4:x", "no port"},
        {"1.2.3.4:65536", "no port"},
        {"1.2.3.4:-1", "no port"},
        {"1.2.3.4:000001", "no port"},
        {"[::1", "want [IPV6"},
        {"[::1]x", "want [IPV6"},
        {"[1.2.3.4]:1", "no numeric address"},
        {"1:2:3", "no numeric address"},
        {"224.0.0.1", "no address of a host"},
        {"255.255.255.255", "no address of a host"},
        {"ff02::1", "no address of a host"},
        {"::ffff:192.0.2.1", "is an IPv4 address"},
        {"fe80::1", "needs its interface"},
        {"[fe80::1%a/b]:1", "is no interface"},
        {"2001:db8::1%eth0", "takes no interface"},
        {"iface:", "is no interface"},
        {"iface:sixteen-letters-x", "is no interface"},
        {"iface:eth0:", "no port"},
        {"iface:eth0:1:2", "no port"},
        {"iface:eth 0", "is no interface"},
    };
    struct hostport hp;
    char err[200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        err[0] = '\0';
        CU_ASSERT(hostport_parse(rows[i].text, &hp, err, sizeof err) < 0);
        if (strstr(err, rows[i].why) == NULL)
            printf("%s: %s\n", rows[i].text, err);
        CU_ASSERT_PTR_NOT_NULL(strstr(err, rows[i].why));
    }
    char longest[400];
    memset(longest, '1', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    CU_ASSERT(hostport_parse(longest, &hp, err, sizeof err) < 0);
    memcpy(longest, "iface:", 6);
    CU_ASSERT(hostport_parse(longest, &hp, err, sizeof err) < 0);
}

/* A DNS name, a dotted IPv4 address, or IPv6 in brackets. */
static void
test_announce(void)
{
    static const struct {
        const char *text, *want; /* NULL: refused */
    } rows[] = {
        {"203.0.113.5", "203.0.113.5:3261"},
        {"203.0.113.5:13260", "203.0.113.5:13260"},
        {"2001:db8::5", "[2001:db8::5]:3261"},
        {"[2001:db8::5]:1", "[2001:db8::5]:1"},
        {"san.example.com", "san.example.com:3261"},
        {"san-1.example.com:5", "san-1.example.com:5"},
        {"3com.example:5", "3com.example:5"},
        {"", NULL},
        {"a..b", NULL},
        {"-a.b", NULL},
        {"a_b", NULL},
        {"a,b", NULL},
        {"1.2.3", NULL},
        {"0.0.0.0", NULL},
        {"::", NULL},
        {"fe80::1%eth0", NULL},
        {"fe80::1", NULL},
        {"a:0", NULL},
        {"iface:eth0", NULL},
    };
    char out[HOSTPORT_HOST_MAX], err[200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int rc = hostport_announce(rows[i].text, 3261, out, err, sizeof err);
        CU_ASSERT_EQUAL(rc == 0, rows[i].want != NULL);
        if (rc == 0 && rows[i].want != NULL)
            CU_ASSERT_STRING_EQUAL(out, rows[i].want);
    }
    CU_ASSERT(hostport_announce("a_b", 3261, out, err, sizeof err) < 0);
    CU_ASSERT_STRING_EQUAL(err, "\"a_b\" is neither a host name nor an address");
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"names", test_names},
        {"bad", test_bad},
        {"announce", test_announce},
    };
    return UNIT_RUN("hostport", tests);
}
