/* SPDX-License-Identifier: BSD-2-Clause */
/* Portals on loopback: who gets the sockets, what happens when there are no descriptors. */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/unit.h"
/* An own version of this one. */
#define conn_accept fake_conn_accept
#include "tests/unit/login_fake.h"
#undef conn_accept

void conn_accept(struct worker *w, int fd, const struct conn_from *from);

static unsigned accepted;
static struct half *held[16]; /* places of connections that do not log in */
static unsigned nheld;
static bool hold;
static char last_peer[64], last_local[64];
static struct portal_id last_via;

void
conn_accept(struct worker *w, int fd, const struct conn_from *from)
{
    CU_ASSERT_PTR_EQUAL(w, fake.w);
    (void)portal_text(&from->peer, last_peer, sizeof last_peer);
    (void)portal_text(&from->local, last_local, sizeof last_local);
    last_via = from->via;
    accepted++;
    if (hold && nheld < 16)
        held[nheld++] = from->half;
    else
        half_leave(from->half);
    (void)close(fd);
}

static char err[200];

static int
open_text(const char *text, uint16_t tpgt, bool may_come)
{
    struct portal_spec spec = {.tpgt = tpgt};
    CU_ASSERT_EQUAL_FATAL(hostport_parse(text, &spec.at, err, sizeof err), 0);
    return portal_open(&spec, may_come, err, sizeof err);
}

static int
open_portal(const char *host, uint16_t port)
{
    char text[80];
    (void)snprintf(text, sizeof text, "%s:%u", host, (unsigned)port);
    return open_text(text, 7, false);
}

static struct node_portal
only_portal(void)
{
    struct node_portal p = {0};
    CU_ASSERT_EQUAL_FATAL(portal_list(&p, 1), 1);
    return p;
}

static int
dial(void)
{
    struct node_portal p = only_portal();
    int fd = socket(p.addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&p.addr,
                            p.addr.ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                        : sizeof(struct sockaddr_in6)),
                    0);
    return fd;
}

static void
turns(unsigned n)
{
    while (n--)
        worker_turn(fake.w, false);
}

static void
test_accept(void)
{
    accepted = 0;
    CU_ASSERT_EQUAL_FATAL(open_portal("127.0.0.1", 0), 0);
    struct node_portal p = only_portal();
    char text[64];
    CU_ASSERT_PTR_NULL(strstr(portal_text(&p.addr, text, sizeof text), ":0")); /* resolved */
    int a = dial(), b = dial();
    turns(5);
    CU_ASSERT_EQUAL(accepted, 2);
    CU_ASSERT_STRING_EQUAL(last_local, text);
    CU_ASSERT_EQUAL(strncmp(last_peer, "127.0.0.1:", 10), 0);
    CU_ASSERT_EQUAL(last_via.tpgt, 7);
    CU_ASSERT_STRING_EQUAL(last_via.name, text);
    (void)close(a);
    (void)close(b);
    portal_close_all();
    CU_ASSERT_EQUAL(portal_list(NULL, 0), 0);
}

static void
test_in_use(void)
{
    CU_ASSERT_EQUAL_FATAL(open_portal("127.0.0.1", 0), 0);
    struct node_portal p = only_portal();
    uint16_t port = ntohs(((struct sockaddr_in *)(void *)&p.addr)->sin_port);
    CU_ASSERT_EQUAL(open_portal("127.0.0.1", port), -EEXIST);
    CU_ASSERT_EQUAL(portal_close(p.id.name), 0);
    CU_ASSERT_EQUAL(portal_close(p.id.name), -ENOENT);
    /* somebody else has it */
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof in;
    CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    CU_ASSERT_EQUAL_FATAL(listen(fd, 1), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    CU_ASSERT_EQUAL(open_portal("127.0.0.1", ntohs(in.sin_port)), -EADDRINUSE);
    char want[32];
    (void)snprintf(want, sizeof want, "127.0.0.1:%u", (unsigned)ntohs(in.sin_port));
    CU_ASSERT_PTR_NOT_NULL(strstr(err, want)); /* named */
    CU_ASSERT_EQUAL(portal_list(NULL, 0), 0);
    (void)close(fd);
    portal_close_all();
}

/* Twice as many as are allowed before login, should the workers not keep up with closing those that
 * lost their place: the next is closed at once. */
static void
test_half_open(void)
{
    char c;
    int fds[9];
    unsigned was = tgt_opts.max_half_open;
    accepted = 0;
    hold = true;
    tgt_opts.max_half_open = 4;
    CU_ASSERT_EQUAL_FATAL(open_portal("127.0.0.1", 0), 0);
    for (unsigned i = 0; i < 9; i++)
        fds[i] = dial();
    turns(20);
    CU_ASSERT_EQUAL(accepted, 8);
    CU_ASSERT_EQUAL(half_count(), 2);    /* half of 4 for one address */
    CU_ASSERT(read(fds[8], &c, 1) <= 0); /* closed, not left hanging */
    while (nheld > 0)
        half_leave(held[--nheld]);
    CU_ASSERT_EQUAL(half_count(), 0);
    int fd = dial();
    turns(5);
    CU_ASSERT_EQUAL(accepted, 9);
    while (nheld > 0)
        half_leave(held[--nheld]);
    (void)close(fd);
    for (unsigned i = 0; i < 9; i++)
        (void)close(fds[i]);
    hold = false;
    tgt_opts.max_half_open = was;
    portal_close_all();
}

/* Without descriptors: the peer is turned away, the listener rests, then all goes on. */
static void
test_no_descriptors(void)
{
    struct rlimit was, none;
    char c;
    accepted = 0;
    CU_ASSERT_EQUAL_FATAL(open_portal("127.0.0.1", 0), 0);
    int a = dial(), b = dial();
    int highest = dup(a);
    (void)close(highest);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = (rlim_t)highest; /* nothing above what is open */
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    turns(5);
    CU_ASSERT_EQUAL(accepted, 0);
    CU_ASSERT(read(a, &c, 1) <= 0);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &was), 0);
    turns(5);
    CU_ASSERT_EQUAL(accepted, 0); /* still resting */
    uint64_t until = clock_ms() + 2000;
    while (accepted == 0 && clock_ms() < until)
        worker_turn(fake.w, true);
    CU_ASSERT_EQUAL(accepted, 1); /* the second, which had waited */
    (void)close(a);
    (void)close(b);
    portal_close_all();
}

/* An address that no interface has: an error for an operator, but not at the start of a host
 * that gets its addresses later. */
static void
test_absent(void)
{
    struct node_portal p;
    CU_ASSERT_EQUAL(open_text("192.0.2.77:3999", 1, false), -EADDRNOTAVAIL);
    CU_ASSERT_PTR_NOT_NULL(strstr(err, "192.0.2.77:3999"));
    CU_ASSERT_PTR_NOT_NULL(strstr(err, strerror(EADDRNOTAVAIL)));
    CU_ASSERT_EQUAL(portal_list(NULL, 0), 0);
    CU_ASSERT_EQUAL(open_text("192.0.2.77:3999", 1, true), 0);
    CU_ASSERT_EQUAL_FATAL(portal_list(&p, 1), 1);
    CU_ASSERT(p.absent);
    CU_ASSERT_EQUAL(portal_close("192.0.2.77:3999"), 0);
    CU_ASSERT_EQUAL(open_text("iface:nosuch0:3999", 1, false), -ENODEV);
    CU_ASSERT_PTR_NOT_NULL(strstr(err, "iface:nosuch0:3999"));
    CU_ASSERT_EQUAL(open_text("iface:nosuch0:3999", 1, true), 0);
    CU_ASSERT_EQUAL(open_text("iface:nosuch0:3999", 1, true), -EEXIST);
    CU_ASSERT_EQUAL(open_text("[fe80::1%nosuch0]:3999", 1, false), -ENODEV);
    CU_ASSERT_EQUAL(open_text("[fe80::1%nosuch0]:3999", 1, true), 0);
    CU_ASSERT_EQUAL_FATAL(portal_list(&p, 1), 2);
    CU_ASSERT_EQUAL(p.addr.ss_family, AF_UNSPEC);
    CU_ASSERT_STRING_EQUAL(p.id.name, "iface:nosuch0:3999");
    portal_close_all();
}

/* --- interfaces, in a network namespace of this program's own -------------------------------- */

static unsigned changes;

static void
on_change(void)
{
    changes++;
}

static bool
run(const char *cmd)
{
    return system(cmd) == 0;
}

static bool
listens_on(const char *host)
{
    struct node_portal v[16];
    char text[64];
    unsigned n = portal_list(v, 16);
    for (unsigned i = 0; i < n && i < 16; i++) {
        if (v[i].addr.ss_family != AF_UNSPEC && !v[i].absent &&
            strncmp(portal_text(&v[i].addr, text, sizeof text), host, strlen(host)) == 0)
            return true;
    }
    return false;
}

static void
wait_listens(const char *host, bool want)
{
    uint64_t until = clock_ms() + 5000;
    while (listens_on(host) != want && clock_ms() < until) {
        worker_turn(fake.w, false);
        (void)usleep(1000);
    }
    CU_ASSERT_EQUAL(listens_on(host), want);
}

static void
test_interface(void)
{
    if (unshare(CLONE_NEWNET) != 0 || !run("ip link add evt0 type bridge 2>/dev/null")) {
        printf("SKIP: a network namespace cannot be made here ");
        return;
    }
    changes = 0;
    portal_on_change(on_change);
    CU_ASSERT_FATAL(run("ip addr add 192.0.2.1/24 dev evt0 && ip link set evt0 up"));
    CU_ASSERT_EQUAL_FATAL(open_text("iface:evt0:3999", 5, false), 0);
    CU_ASSERT_EQUAL_FATAL(open_text("198.51.100.9:3999", 1, true), 0);
    CU_ASSERT(listens_on("192.0.2.1:3999"));
    CU_ASSERT_FALSE(listens_on("198.51.100.9:3999"));
    CU_ASSERT_FATAL(run("ip addr add 192.0.2.2/24 dev evt0"));
    wait_listens("192.0.2.2:3999", true);
    CU_ASSERT(changes >= 1);
    CU_ASSERT_FATAL(run("ip addr add 198.51.100.9/24 dev evt0")); /* it stays that portal's */
    wait_listens("198.51.100.9:3999", true);
    CU_ASSERT_FATAL(run("ip addr del 192.0.2.1/24 dev evt0; ip addr add 192.0.2.2/24 dev evt0"
                        " 2>/dev/null; ip addr show evt0 >/dev/null"));
    wait_listens("192.0.2.1:3999", false);
    wait_listens("192.0.2.2:3999", true);
    CU_ASSERT_FATAL(run("ip link del evt0"));
    wait_listens("192.0.2.2:3999", false);
    CU_ASSERT_FATAL(run("ip link add evt0 type bridge && ip link set evt0 up && "
                        "ip addr add 203.0.113.1/24 dev evt0"));
    wait_listens("203.0.113.1:3999", true); /* another prefix */
    portal_on_change(NULL);
    portal_close_all();
}

static void
test_text(void)
{
    char text[64];
    struct sockaddr_storage sa = fake_addr("192.0.2.1", 3260);
    CU_ASSERT_STRING_EQUAL(portal_text(&sa, text, sizeof text), "192.0.2.1:3260");
    sa = fake_addr("2001:db8::1", 3261);
    CU_ASSERT_STRING_EQUAL(portal_text(&sa, text, sizeof text), "[2001:db8::1]:3261");
    sa = fake_addr("::ffff:192.0.2.1", 3260);
    CU_ASSERT_STRING_EQUAL(portal_text(&sa, text, sizeof text), "192.0.2.1:3260");
    sa = fake_addr("fe80::1", 3260);
    ((struct sockaddr_in6 *)(void *)&sa)->sin6_scope_id = 1;
    CU_ASSERT_STRING_EQUAL(portal_text(&sa, text, sizeof text), "[fe80::1]:3260");
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"accept", test_accept},
        {"in use", test_in_use},
        {"half-open limit", test_half_open},
        {"no descriptors", test_no_descriptors},
        {"text", test_text},
        {"absent", test_absent},
        {"interface", test_interface},
    };
    fake_begin();
    worker_set_publish(&fake.w, 1);
    int rc = UNIT_RUN("portal", tests);
    worker_set_publish(NULL, 0);
    fake_end();
    return rc;
}
