/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of accepted sockets, read back from the kernel. */
#include "config.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "tests/unit/login_fake.h"
#include "tests/unit/unit.h"

static int
option(int fd, int level, int name)
{
    int v = -1;
    socklen_t len = sizeof v;
    CU_ASSERT_EQUAL(getsockopt(fd, level, name, &v, &len), 0);
    return v;
}

/* An accepted socket on loopback after xp_plain_init, or -1: no such family here. */
static int
accepted(const char *host)
{
    struct sockaddr_storage sa = fake_addr(host, 0);
    socklen_t len =
        sa.ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    int l = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l < 0 || bind(l, (struct sockaddr *)&sa, len) != 0) {
        printf("SKIP: no %s here ", host);
        (void)close(l);
        return -1;
    }
    CU_ASSERT_EQUAL_FATAL(listen(l, 1), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(l, (struct sockaddr *)&sa, &len), 0);
    int c = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(connect(c, (struct sockaddr *)&sa, len), 0);
    int fd = accept(l, NULL, NULL);
    CU_ASSERT_FATAL(fd >= 0);
    struct xp xp;
    CU_ASSERT_EQUAL(xp_plain_init(&xp, fd), 0);
    (void)close(c);
    (void)close(l);
    return fd;
}

static void
test_defaults(void)
{
    tgt_opts.keepalive_idle_s = 0;
    tgt_opts.user_timeout_s = 0;
    tgt_opts.dscp = -1;
    int fd = accepted("127.0.0.1");
    CU_ASSERT_EQUAL(option(fd, SOL_SOCKET, SO_KEEPALIVE), 0); /* when it is off */
    CU_ASSERT_EQUAL(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    CU_ASSERT_EQUAL(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    (void)close(fd);
}

static void
test_set(void)
{
    tgt_opts.keepalive_idle_s = 41;
    tgt_opts.keepalive_interval_s = 7;
    tgt_opts.keepalive_count = 5;
    tgt_opts.user_timeout_s = 33;
    tgt_opts.dscp = 46;
    for (unsigned v6 = 0; v6 < 2; v6++) {
        int fd = accepted(v6 ? "::1" : "127.0.0.1");
        if (fd < 0)
            continue;
        CU_ASSERT_EQUAL(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
        CU_ASSERT_EQUAL(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 41);
        CU_ASSERT_EQUAL(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), 7);
        CU_ASSERT_EQUAL(option(fd, IPPROTO_TCP, TCP_KEEPCNT), 5);
        CU_ASSERT_EQUAL(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 33000);
        /* RFC 2474 3: the upper six bits */
        CU_ASSERT_EQUAL(v6 ? option(fd, IPPROTO_IPV6, IPV6_TCLASS) : option(fd, IPPROTO_IP, IP_TOS),
                        46 << 2);
        (void)close(fd);
    }
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"defaults", test_defaults},
        {"set", test_set},
    };
    fake_begin();
    int rc = UNIT_RUN("xp", tests);
    fake_end();
    return rc;
}
