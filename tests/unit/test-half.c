/* SPDX-License-Identifier: BSD-2-Clause */
/* Who makes room when there are too many connections before login. */
#include "config.h"

#include "tests/unit/login_fake.h"
#include "tests/unit/unit.h"

#define MANY 32

static struct conn conns[MANY];
static struct half *halves[MANY];
static unsigned n;

static void
turns(void)
{
    for (unsigned i = 0; i < 5; i++)
        worker_turn(fake.w, false);
}

/* A connection from there; its number. */
static unsigned
come(const char *host)
{
    struct sockaddr_storage sa = fake_addr(host, 40000);
    memset(&conns[n], 0, sizeof conns[n]);
    conns[n].w = fake.w;
    halves[n] = half_new(&sa, fake.w);
    CU_ASSERT_PTR_NOT_NULL_FATAL(halves[n]);
    CU_ASSERT(half_enter(halves[n], &conns[n]));
    turns();
    return n++;
}

/* They are closed as conn.c does it. Which ones, in binary. */
static unsigned
closed(void)
{
    unsigned set = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!conns[i].closing)
            continue;
        set |= 1u << i;
        half_leave(halves[i]);
        halves[i] = NULL;
        conns[i].closing = false;
    }
    return set;
}

static void
limits(unsigned all, unsigned one)
{
    tgt_opts.max_half_open = all;
    tgt_opts.max_half_open_per_addr = one;
    n = 0;
}

static void
all_gone(void)
{
    for (unsigned i = 0; i < n; i++)
        half_leave(halves[i]);
    CU_ASSERT_EQUAL(half_count(), 0);
}

static void
test_share(void)
{
    limits(8, 0); /* half of them for one address */
    come("192.0.2.1");
    come("192.0.2.2");
    for (unsigned i = 0; i < 3; i++)
        come("192.0.2.1");
    CU_ASSERT_EQUAL(closed(), 0);
    come("192.0.2.1");
    CU_ASSERT_EQUAL(closed(), 1u << 0); /* its own oldest */
    come("192.0.2.1");
    CU_ASSERT_EQUAL(closed(), 1u << 2);
    come("192.0.2.2");
    CU_ASSERT_EQUAL(closed(), 0);
    CU_ASSERT_EQUAL(half_count(), 6);
    all_gone();
}

/* Nobody's logins are pushed out by another that has more. */
static void
test_fair(void)
{
    limits(6, 6);
    come("192.0.2.9");
    for (unsigned i = 0; i < 5; i++)
        come("192.0.2.1");
    come("192.0.2.8");
    CU_ASSERT_EQUAL(closed(), 1u << 1);
    come("192.0.2.7");
    CU_ASSERT_EQUAL(closed(), 1u << 2);
    come("192.0.2.1"); /* it has the most: its own */
    CU_ASSERT_EQUAL(closed(), 1u << 3);
    CU_ASSERT_EQUAL(half_count(), 6);
    all_gone();
}

static void
test_many_addresses(void)
{
    limits(4, 0);
    char host[32];
    for (unsigned i = 0; i < 4; i++) {
        (void)snprintf(host, sizeof host, "127.0.0.%u", i + 1);
        come(host);
    }
    for (unsigned i = 4; i < 12; i++) {
        (void)snprintf(host, sizeof host, "127.0.0.%u", i + 1);
        come(host);
        CU_ASSERT_EQUAL(closed(), 1u << (i - 4)); /* the oldest of all */
        CU_ASSERT_EQUAL(half_count(), 4);
    }
    all_gone();
}

/* A host has a whole /64; ::ffff:a.b.c.d is a.b.c.d. */
static void
test_prefix(void)
{
    limits(8, 2);
    come("2001:db8::1");
    come("2001:db8::2");
    come("2001:db8:0:1::1");
    CU_ASSERT_EQUAL(closed(), 0);
    come("2001:db8::3");
    CU_ASSERT_EQUAL(closed(), 1u << 0);
    come("192.0.2.1");
    come("::ffff:192.0.2.1");
    come("192.0.2.1");
    CU_ASSERT_EQUAL(closed(), 1u << 4);
    all_gone();
}

/* Before its worker has made the connection, and after it has logged in. */
static void
test_early_and_late(void)
{
    struct sockaddr_storage sa = fake_addr("192.0.2.1", 1);
    limits(2, 1);
    struct half *early = half_new(&sa, fake.w);
    come("192.0.2.1");
    CU_ASSERT_FALSE(half_enter(early, &conns[20]));
    half_leave(early);
    conns[20].closing = false;
    CU_ASSERT_EQUAL(half_count(), 1);
    struct half *next = half_new(&sa, fake.w); /* the word to close it is on its way */
    half_leave(halves[0]);                     /* when it logs in */
    halves[0] = NULL;
    turns();
    CU_ASSERT_EQUAL(closed(), 0);
    CU_ASSERT_EQUAL(half_count(), 1);
    half_leave(next);
    half_leave(NULL);
    all_gone();
}

static void
test_bounded(void)
{
    struct sockaddr_storage sa = fake_addr("192.0.2.1", 1);
    struct half *h[8];
    limits(4, 4);
    for (unsigned i = 0; i < 8; i++) {
        h[i] = half_new(&sa, fake.w);
        CU_ASSERT_PTR_NOT_NULL(h[i]);
    }
    CU_ASSERT_EQUAL(half_count(), 4);
    CU_ASSERT_PTR_NULL(half_new(&sa, fake.w));
    for (unsigned i = 0; i < 8; i++)
        half_leave(h[i]);
    turns();
    CU_ASSERT_EQUAL(half_count(), 0);
    halves[0] = half_new(&sa, fake.w);
    CU_ASSERT_PTR_NOT_NULL(halves[0]);
    n = 1;
    all_gone();
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"share of an address", test_share},     {"fair", test_fair},
        {"many addresses", test_many_addresses}, {"IPv6 prefix", test_prefix},
        {"early and late", test_early_and_late}, {"bounded", test_bounded},
    };
    fake_begin();
    int rc = UNIT_RUN("half", tests);
    fake_end();
    return rc;
}
