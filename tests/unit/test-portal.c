/* SPDX-License-Identifier: BSD-2-Clause */
/* Portals on loopback: who gets the sockets, what happens when there are no descriptors. */
#include "config.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/unit.h"
/* Own versions of these two. */
#define conn_accept    fake_conn_accept
#define conn_half_open fake_conn_half_open
#include "tests/unit/login_fake.h"
#undef conn_accept
#undef conn_half_open

void conn_accept(struct worker *w, int fd, const struct sockaddr_storage *peer,
                 const struct sockaddr_storage *local);
unsigned conn_half_open(void);

static unsigned accepted, half_open;
static char last_peer[64], last_local[64];

void
conn_accept(struct worker *w, int fd, const struct sockaddr_storage *peer,
            const struct sockaddr_storage *local)
{
    CU_ASSERT_PTR_EQUAL(w, fake.w);
    (void)portal_text(peer, last_peer, sizeof last_peer);
    (void)portal_text(local, last_local, sizeof last_local);
    accepted++;
    (void)close(fd);
}

unsigned
conn_half_open(void)
{
    return half_open;
}

static char err[200];

static int
open_portal(const char *host, uint16_t port)
{
    struct sockaddr_storage sa = fake_addr(host, port);
    return portal_open((struct sockaddr *)&sa,
                       sa.ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                               : sizeof(struct sockaddr_in6),
                       1, err, sizeof err);
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
    accepted = half_open = 0;
    CU_ASSERT_EQUAL_FATAL(open_portal("127.0.0.1", 0), 0);
    struct node_portal p = only_portal();
    char text[64];
    CU_ASSERT_PTR_NULL(strstr(portal_text(&p.addr, text, sizeof text), ":0")); /* resolved */
    int a = dial(), b = dial();
    turns(5);
    CU_ASSERT_EQUAL(accepted, 2);
    CU_ASSERT_STRING_EQUAL(last_local, text);
    CU_ASSERT_EQUAL(strncmp(last_peer, "127.0.0.1:", 10), 0);
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
    CU_ASSERT_EQUAL(portal_close((struct sockaddr *)&p.addr, sizeof(struct sockaddr_in)), 0);
    CU_ASSERT_EQUAL(portal_close((struct sockaddr *)&p.addr, sizeof(struct sockaddr_in)), -ENOENT);
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

static void
test_half_open(void)
{
    char c;
    accepted = 0;
    half_open = 2 * tgt_opts.max_half_open;
    CU_ASSERT_EQUAL_FATAL(open_portal("127.0.0.1", 0), 0);
    int fd = dial();
    turns(5);
    CU_ASSERT_EQUAL(accepted, 0);
    CU_ASSERT(read(fd, &c, 1) <= 0); /* closed, not left hanging */
    (void)close(fd);
    half_open = 0;
    portal_close_all();
}

/* Without descriptors: the peer is turned away, the listener rests, then all goes on. */
static void
test_no_descriptors(void)
{
    struct rlimit was, none;
    char c;
    accepted = half_open = 0;
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
    };
    fake_begin();
    worker_set_publish(&fake.w, 1);
    int rc = UNIT_RUN("portal", tests);
    worker_set_publish(NULL, 0);
    fake_end();
    return rc;
}
