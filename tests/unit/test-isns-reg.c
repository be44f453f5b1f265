/* SPDX-License-Identifier: BSD-2-Clause */
/* What the iSNS client registers: what is wanted, known, on its way; portal groups; addresses. */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "target/isns_reg.h"
#include "unit.h"

static const uint8_t seed[32] = {1, 2, 3};
static struct isns_reg r;
static struct isns_out o;

static struct node_portal
portal(const char *ip, uint16_t port, uint16_t tpgt)
{
    struct node_portal p = {.id.tpgt = tpgt};
    struct sockaddr_in *in = (void *)&p.addr;
    struct sockaddr_in6 *in6 = (void *)&p.addr;
    if (inet_pton(AF_INET, ip, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
    } else {
        CU_ASSERT_FATAL(inet_pton(AF_INET6, ip, &in6->sin6_addr) == 1);
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
    }
    (void)snprintf(p.id.name, sizeof p.id.name, "%s:%u", ip, port);
    return p;
}

/* Tags of the message, "32 1 0 1 2 ..."; texts of names after their tag. */
static const char *
tags(void)
{
    static char out[4096];
    struct cur c = cur_init(o.p + ISNS_HDR_LEN, o.len - ISNS_HDR_LEN);
    struct isns_attr a;
    size_t n = 0;
    out[0] = '\0';
    while (isns_attr_next(&c, &a)) {
        char text[256] = "";
        uint32_t v;
        if (a.tag == ISNS_NAME)
            (void)isns_attr_text(&a, text, sizeof text);
        else if (a.tag == ISNS_PG_TAG)
            snprintf(text, sizeof text, "%d", isns_attr_u32(&a, &v) ? (int)v : -1);
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%u%s%s", n ? " " : "", a.tag,
                              text[0] ? "=" : "", text);
    }
    CU_ASSERT(cur_ok(&c));
    return out;
}

static const char *
do_register(void)
{
    isns_out_begin(&o, ISNS_DEV_ATTR_REG, 1, 0);
    isns_reg_put_register(&r, &o);
    CU_ASSERT(isns_out_end(&o));
    return tags();
}

static const char *
do_deregister(void)
{
    isns_out_begin(&o, ISNS_DEV_DEREG, 1, 0);
    isns_reg_put_deregister(&r, &o);
    CU_ASSERT(isns_out_end(&o));
    return tags();
}

static const struct portal_id group2 = {.tpgt = 2}, one = {.tpgt = 1, .name = "192.0.2.1:3260"};
static const struct isns_want a = {"iqn.a", "", NULL, 0}, b = {"iqn.b", "", NULL, 0},
                              b2 = {"iqn.b", "x", NULL, 0}, c2 = {"iqn.c", "", &group2, 1},
                              d1 = {"iqn.d", "", &one, 1};

static void
begin(void)
{
    isns_reg_fini(&r);
    isns_reg_init(&r, seed);
}

static void
test_entity(void)
{
    static const uint8_t other[32] = {1, 2, 4};
    char eid[sizeof r.eid];
    begin();
    (void)snprintf(eid, sizeof eid, "%s", r.eid);
    CU_ASSERT(strlen(eid) == 22 && strncmp(eid, "evtgt-", 6) == 0);
    isns_reg_init(&r, seed);
    CU_ASSERT_STRING_EQUAL(eid, r.eid);
    isns_reg_init(&r, other);
    CU_ASSERT(strcmp(eid, r.eid) != 0);
    CU_ASSERT(!isns_reg_need_register(&r) && !isns_reg_need_deregister(&r));
    CU_ASSERT(isns_reg_source(&r) == NULL);
}

/* 5.6.5.1: source, EID as key, the entity, its portals, its nodes with their portal groups. */
static void
test_register(void)
{
    const struct isns_want want[] = {b, a};
    const struct node_portal p[] = {portal("192.0.2.1", 3260, 1)};
    begin();
    isns_reg_want(&r, want, 2, p, 1);
    CU_ASSERT(isns_reg_need_register(&r) && !isns_reg_is_known(&r));
    CU_ASSERT_STRING_EQUAL(do_register(), "32=iqn.a 1 0 1 2 16 17 32=iqn.a 33 51=1 49 50 "
                                          "32=iqn.b 33 51=1 49 50");
    CU_ASSERT(isns_reg_need_register(&r)); /* not answered */
    isns_reg_registered(&r);
    CU_ASSERT(!isns_reg_need_register(&r) && isns_reg_known_nodes(&r) == 2);
    CU_ASSERT(isns_reg_known_portals(&r) == 1);
    isns_reg_want(&r, want, 2, p, 1);
    CU_ASSERT(!isns_reg_need_register(&r) && !isns_reg_need_deregister(&r));
    r.notice_port4 = 4000;
    isns_reg_refresh(&r);
    CU_ASSERT_STRING_EQUAL(do_register(), "32=iqn.a 1 0 1 2 16 17 19 20 23 32=iqn.a 33 51=1 49 50 "
                                          "32=iqn.b 33 51=1 49 50");
    r.no_esi = r.no_pg = true;
    CU_ASSERT_STRING_EQUAL(do_register(), "32=iqn.a 1 0 1 2 16 17 23 32=iqn.a 33 32=iqn.b 33");
}

/* Portals of another group do not lead to the node: an empty tag says so. */
static void
test_groups(void)
{
    const struct isns_want want[] = {a, c2, d1};
    const struct node_portal p[] = {portal("192.0.2.1", 3260, 1), portal("192.0.2.2", 3260, 2),
                                    portal("2001:db8::2", 3260, 2)};
    begin();
    isns_reg_want(&r, want, 3, p, 3);
    CU_ASSERT_STRING_EQUAL(do_register(), "32=iqn.a 1 0 1 2 16 17 16 17 16 17 "
                                          "32=iqn.a 33 51=1 49 50 51=2 49 50 49 50 "
                                          "32=iqn.c 33 51=2 49 50 49 50 51=-1 49 50 "
                                          "32=iqn.d 33 51=1 49 50 51=-1 49 50 49 50");
    isns_reg_registered(&r);
    const struct isns_want other[] = {a, c2, {"iqn.d", "", &group2, 1}}; /* bound elsewhere */
    isns_reg_want(&r, other, 3, p, 3);
    CU_ASSERT_STRING_EQUAL(do_register(),
                           "32=iqn.a 1 0 1 2 32=iqn.d 33 51=2 49 50 49 50 51=-1 49 50");
}

static void
test_changes(void)
{
    const struct isns_want ab[] = {a, b}, only_a[] = {a}, ab2[] = {a, b2};
    const struct node_portal p[] = {portal("192.0.2.1", 3260, 1), portal("192.0.2.2", 3260, 1)};
    begin();
    isns_reg_want(&r, ab, 2, p, 1);
    (void)do_register();
    isns_reg_registered(&r);
    isns_reg_want(&r, ab2, 2, p, 1); /* an alias: that node only */
    CU_ASSERT_STRING_EQUAL(do_register(), "32=iqn.a 1 0 1 2 32=iqn.b 33 34 51=1 49 50");
    isns_reg_registered(&r);
    isns_reg_want(&r, only_a, 1, p, 1); /* a node goes */
    CU_ASSERT(!isns_reg_need_register(&r) && isns_reg_need_deregister(&r));
    CU_ASSERT_STRING_EQUAL(do_deregister(), "32=iqn.a 0 32=iqn.b");
    isns_reg_deregistered(&r);
    CU_ASSERT(!isns_reg_need_deregister(&r) && isns_reg_find(&r, "iqn.b") == NULL);
    isns_reg_want(&r, only_a, 1, p, 2); /* a portal comes: the nodes' groups change */
    CU_ASSERT_STRING_EQUAL(do_register(), "32=iqn.a 1 0 1 2 16 17 32=iqn.a 33 51=1 49 50 49 50");
    isns_reg_registered(&r);
    isns_reg_want(&r, only_a, 1, p + 1, 1); /* and the first goes */
    CU_ASSERT(isns_reg_need_register(&r) && isns_reg_need_deregister(&r));
    CU_ASSERT_STRING_EQUAL(do_deregister(), "32=iqn.a 0 16 17");
}

/* Changed while the request is under way: the answer is about what was sent. */
static void
test_changed_meanwhile(void)
{
    const struct isns_want ab[] = {a, b}, ab2[] = {a, b2}, only_a[] = {a};
    const struct node_portal p[] = {portal("192.0.2.1", 3260, 1)};
    begin();
    isns_reg_want(&r, ab, 2, p, 1);
    (void)do_register();
    isns_reg_want(&r, ab2, 2, p, 1);
    isns_reg_registered(&r);
    CU_ASSERT(isns_reg_known_nodes(&r) == 2 && isns_reg_need_register(&r));
    CU_ASSERT_STRING_EQUAL(do_register(), "32=iqn.a 1 0 1 2 32=iqn.b 33 34 51=1 49 50");
    isns_reg_want(&r, only_a, 1, p, 1);
    isns_reg_registered(&r);
    CU_ASSERT_STRING_EQUAL(do_deregister(), "32=iqn.a 0 32=iqn.b");
    isns_reg_want(&r, ab, 2, p, 1); /* wanted again before it is gone */
    isns_reg_deregistered(&r);
    CU_ASSERT_STRING_EQUAL(do_register(), "32=iqn.a 1 0 1 2 32=iqn.b 33 51=1 49 50");
    isns_reg_refused(&r);
    CU_ASSERT(isns_reg_need_register(&r));
    isns_reg_forget(&r);
    CU_ASSERT(!isns_reg_is_known(&r) && isns_reg_need_register(&r));
}

static void
test_many(void)
{
    enum { N = 1000 };
    static struct isns_want want[N];
    static char names[N][224], alias[256];
    static struct node_portal p[ISNS_PORTALS_MAX];
    unsigned messages = 0;
    begin();
    memset(alias, 'a', sizeof alias - 1);
    for (unsigned i = 0; i < N; i++) {
        memset(names[i], 'n', sizeof names[i] - 1);
        (void)snprintf(names[i], 8, "%05u", i);
        names[i][5] = '.';
        want[i] = (struct isns_want){names[i], alias, NULL, 0};
    }
    for (unsigned i = 0; i < ISNS_PORTALS_MAX; i++)
        p[i] = portal("192.0.2.1", (uint16_t)(1000 + i), 1);
    isns_reg_want(&r, want, N, p, ISNS_PORTALS_MAX);
    while (isns_reg_need_register(&r) && messages < 2 * N) {
        isns_out_begin(&o, ISNS_DEV_ATTR_REG, 1, 0);
        isns_reg_put_register(&r, &o);
        CU_ASSERT_FATAL(isns_out_end(&o)); /* in one PDU */
        isns_reg_registered(&r);
        messages++;
    }
    CU_ASSERT(isns_reg_known_nodes(&r) == N && messages > 10 && messages < N);
    isns_reg_want(&r, want, 1, p, ISNS_PORTALS_MAX);
    while (isns_reg_need_deregister(&r)) {
        isns_out_begin(&o, ISNS_DEV_DEREG, 1, 0);
        isns_reg_put_deregister(&r, &o);
        CU_ASSERT_FATAL(isns_out_end(&o));
        isns_reg_deregistered(&r);
    }
    CU_ASSERT(isns_reg_known_nodes(&r) == 1);
}

/* Loopback and link-local addresses are of use to a peer that is there itself. */
static void
test_addresses(void)
{
    const struct node_portal bound[] = {
        portal("127.0.0.1", 3260, 1), portal("192.0.2.1", 3260, 1), portal("169.254.1.1", 3260, 1),
        portal("fe80::1", 3260, 1),   portal("::1", 3260, 1),       portal("2001:db8::1", 3260, 2),
        portal("192.0.2.1", 3260, 1),
    };
    struct node_portal out[8], far = portal("192.0.2.1", 50000, 0), lo = portal("127.0.0.1", 5, 0);
    begin();
    CU_ASSERT(isns_reg_addresses(bound, 7, &far.addr, out, 8) == 2);
    CU_ASSERT(out[0].addr.ss_family == AF_INET && out[1].id.tpgt == 2);
    CU_ASSERT(isns_reg_addresses(bound, 7, &lo.addr, out, 8) == 4);
    CU_ASSERT(isns_reg_addresses(bound, 7, &lo.addr, out, 3) == 4); /* says how many */
    /* What is advertised stands for the portal; a name cannot be registered. */
    struct node_portal adv = portal("192.0.2.1", 3260, 3), name = adv, gone = adv, unset = adv;
    snprintf(adv.advertise, sizeof adv.advertise, "198.51.100.7:3261");
    snprintf(name.advertise, sizeof name.advertise, "host.example:3260");
    gone.absent = true;
    unset.addr.ss_family = AF_UNSPEC;
    const struct node_portal odd[] = {adv, name, gone, unset};
    CU_ASSERT(isns_reg_addresses(odd, 4, &far.addr, out, 8) == 1);
    const struct node_portal want = portal("198.51.100.7", 3261, 3);
    CU_ASSERT(memcmp(&out[0].addr, &want.addr, sizeof(struct sockaddr_in)) == 0);
    CU_ASSERT(out[0].id.tpgt == 3);
    const struct node_portal any = portal("0.0.0.0", 3260, 1);
    unsigned n = isns_reg_addresses(&any, 1, &lo.addr, out, 8);
    for (unsigned i = 0; i < n && i < 8; i++) { /* never itself, never loopback */
        const struct sockaddr_in *in = (const void *)&out[i].addr;
        CU_ASSERT(in->sin_addr.s_addr != 0 && ntohl(in->sin_addr.s_addr) >> 24 != 127);
        CU_ASSERT(in->sin_port == htons(3260));
    }
}

static void
test_inquiry(void)
{
    const struct isns_want want[] = {a};
    const struct node_portal p[] = {portal("192.0.2.1", 3260, 1)};
    uint8_t ip[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
    begin();
    isns_reg_want(&r, want, 1, p, 1);
    CU_ASSERT(isns_reg_has_portal(&r, ip, 3260));
    CU_ASSERT(!isns_reg_has_portal(&r, ip, 3261) && !isns_reg_has_portal(&r, ip, 0x13260));
    ip[15] = 2;
    CU_ASSERT(!isns_reg_has_portal(&r, ip, 3260));
    isns_reg_fini(&r);
    isns_out_fini(&o);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"entity", test_entity},
        {"register", test_register},
        {"portal groups", test_groups},
        {"changes", test_changes},
        {"changed meanwhile", test_changed_meanwhile},
        {"many", test_many},
        {"addresses", test_addresses},
        {"inquiry", test_inquiry},
    };
    return UNIT_RUN("isns-reg", tests);
}
