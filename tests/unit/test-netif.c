/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces' addresses and the bell, in a network namespace of this program's own. */
#include "config.h"

#include <arpa/inet.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/netif.h"
#include "base/worker.h"
#include "tests/unit/unit.h"

static struct worker *w;
static bool alone; /* in a namespace of our own */
static char seen[1024];
static unsigned bells;

static bool
run(const char *cmd)
{
    return system(cmd) == 0;
}

static void
note(const struct netif_addr *a, void *arg)
{
    char text[INET6_ADDRSTRLEN] = "?", one[128];
    const void *p =
        a->addr.ss_family == AF_INET
            ? (const void *)&((const struct sockaddr_in *)(const void *)&a->addr)->sin_addr
            : &((const struct sockaddr_in6 *)(const void *)&a->addr)->sin6_addr;
    (void)arg;
    (void)inet_ntop(a->addr.ss_family, p, text, sizeof text);
    (void)snprintf(one, sizeof one, "%s=%s/%u ", a->name, text, a->bits);
    (void)strncat(seen, one, sizeof seen - strlen(seen) - 1);
}

static unsigned
look(const char *name)
{
    seen[0] = '\0';
    return netif_addrs(name, note, NULL);
}

static void
on_changed(struct netif_watch *watch)
{
    (void)watch;
    bells++;
}

/* Until it rang, or seconds are over. */
static void
wait_bell(void)
{
    uint64_t until = clock_ms() + 5000;
    while (bells == 0 && clock_ms() < until) {
        worker_turn(w, false);
        (void)usleep(1000);
    }
}

static bool
skipped(void)
{
    if (!alone)
        printf("SKIP: a network namespace cannot be made here ");
    return !alone;
}

static void
test_names(void)
{
    CU_ASSERT(netif_name_ok("eth0"));
    CU_ASSERT(netif_name_ok("enp0s31f6.100"));
    CU_ASSERT(netif_name_ok("fifteen-letters"));
    CU_ASSERT_FALSE(netif_name_ok("sixteen-letters!"));
    CU_ASSERT_FALSE(netif_name_ok(""));
    CU_ASSERT_FALSE(netif_name_ok("a b"));
    CU_ASSERT_FALSE(netif_name_ok("a/b"));
    CU_ASSERT_FALSE(netif_name_ok("eth0:1"));
    CU_ASSERT_FALSE(netif_name_ok(".."));
}

static void
test_addresses(void)
{
    if (skipped())
        return;
    CU_ASSERT_EQUAL(look("evt0"), 0);
    CU_ASSERT_FATAL(run("ip link add evt0 type bridge && ip addr add 192.0.2.1/24 dev evt0"));
    CU_ASSERT_EQUAL(look("evt0"), 0); /* it is down */
    CU_ASSERT_FATAL(run("ip link set evt0 up"));
    CU_ASSERT(look("evt0") >= 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(seen, "evt0=192.0.2.1/24 "));
    CU_ASSERT_FATAL(run("ip addr add 198.51.100.1/24 dev evt0 label evt0:x"));
    (void)look("evt0"); /* a label does not make another interface */
    CU_ASSERT_PTR_NOT_NULL(strstr(seen, "evt0=198.51.100.1/24 "));
    CU_ASSERT_FATAL(run("ip addr add 127.0.0.1/8 dev lo && ip link set lo up"));
    (void)look(NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(seen, "lo=127.0.0.1/8 "));
    CU_ASSERT_PTR_NOT_NULL(strstr(seen, "evt0=192.0.2.1/24 "));
    (void)look("lo");
    CU_ASSERT_PTR_NULL(strstr(seen, "evt0"));
}

static void
test_bell(void)
{
    struct netif_watch watch, other;
    if (skipped())
        return;
    netif_watch_start(&watch, on_changed);
    netif_watch_start(&other, on_changed);
    netif_watch_stop(&other);
    netif_watch_stop(&other);
    for (unsigned i = 0; i < 100; i++)
        worker_turn(w, false);
    bells = 0;
    CU_ASSERT_FATAL(run("ip addr add 192.0.2.2/24 dev evt0"));
    wait_bell();
    CU_ASSERT_EQUAL(bells, 1); /* a burst rings once; the stopped one not at all */
    (void)look("evt0");
    CU_ASSERT_PTR_NOT_NULL(strstr(seen, "evt0=192.0.2.2/24 "));
    bells = 0;
    CU_ASSERT_FATAL(run("ip link del evt0"));
    wait_bell();
    CU_ASSERT(bells >= 1);
    CU_ASSERT_EQUAL(look("evt0"), 0);
    netif_watch_stop(&watch);
    netif_watch_start(&watch, on_changed); /* after the last had ended */
    bells = 0;
    CU_ASSERT_FATAL(run("ip link add evt0 type bridge"));
    wait_bell();
    CU_ASSERT(bells >= 1);
    netif_watch_stop(&watch);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"names", test_names},
        {"addresses", test_addresses},
        {"bell", test_bell},
    };
    static const struct worker_opts opts = {.engine = ENGINE_POOL};
    alone = unshare(CLONE_NEWNET) == 0 && run("ip link show >/dev/null 2>&1") &&
            run("ip link add evt1 type bridge 2>/dev/null");
    w = worker_new_local(&opts);
    int rc = UNIT_RUN("netif", tests);
    worker_free_local(w);
    return rc;
}
