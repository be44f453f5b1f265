/* SPDX-License-Identifier: BSD-2-Clause */
/* Which connections were made to the admin socket, whatever a daemon that was taken over shows. */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "target/places_proof.h"
#include "tests/unit/unit.h"

static char dir[] = "/tmp/evtgt-proof-XXXXXX";

static struct sockaddr_un
at(const char *name)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof sa.sun_path, "%s/%s", dir, name);
    return sa;
}

static int
bound(const char *name)
{
    const struct sockaddr_un sa = at(name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (const struct sockaddr *)&sa, sizeof sa), 0);
    return fd;
}

static int
listener(const char *name)
{
    int fd = bound(name);
    CU_ASSERT_EQUAL_FATAL(listen(fd, 4), 0);
    return fd;
}

static int
connected(int fd, const char *name)
{
    const struct sockaddr_un sa = at(name);
    CU_ASSERT_EQUAL_FATAL(connect(fd, (const struct sockaddr *)&sa, sizeof sa), 0);
    return fd;
}

static int
fresh(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void
test_accepted(void)
{
    int l = listener("s");
    CU_ASSERT(places_is_provable(l));
    int c = connected(fresh(), "s"), a = accept(l, NULL, NULL);
    CU_ASSERT(places_is_accepted(l, a));
    CU_ASSERT(!places_is_accepted(l, c)); /* its other end is the one that listens */
    CU_ASSERT(!places_is_accepted(l, l));
    close(c);
    close(a);
    close(l);
    CU_ASSERT_EQUAL(unlink(at("s").sun_path), 0);
}

/* Their other end may be anybody, root as well. */
static void
test_others(void)
{
    int l = listener("s"), o = listener("other"), sv[2];
    int c = connected(fresh(), "other"), a = accept(o, NULL, NULL);
    CU_ASSERT(!places_is_accepted(l, c));
    CU_ASSERT(!places_is_accepted(l, a));
    CU_ASSERT_EQUAL(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    CU_ASSERT(!places_is_accepted(l, sv[0]));
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CU_ASSERT(!places_is_accepted(l, null));
    CU_ASSERT(!places_is_accepted(l, -1));
    int u = fresh();
    CU_ASSERT(!places_is_accepted(l, u));
    close(u);
    close(null);
    close(sv[0]);
    close(sv[1]);
    close(a);
    close(c);
    /* the same name, another file: who connects from there, and who is accepted there */
    CU_ASSERT_EQUAL(rename(at("s").sun_path, at("moved").sun_path), 0);
    int same = bound("s");
    connected(same, "other");
    a = accept(o, NULL, NULL);
    CU_ASSERT(!places_is_accepted(l, same));
    close(a);
    close(same);
    CU_ASSERT_EQUAL(unlink(at("s").sun_path), 0);
    int m = listener("s");
    c = connected(fresh(), "s");
    a = accept(m, NULL, NULL);
    CU_ASSERT(!places_is_accepted(l, a));
    CU_ASSERT(places_is_accepted(m, a));
    close(c);
    close(a);
    close(m);
    close(o);
    close(l);
    CU_ASSERT_EQUAL(unlink(at("s").sun_path), 0);
    CU_ASSERT_EQUAL(unlink(at("moved").sun_path), 0);
    CU_ASSERT_EQUAL(unlink(at("other").sun_path), 0);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"accepted", test_accepted},
        {"others", test_others},
    };
    if (!mkdtemp(dir))
        return 1;
    const struct sockaddr_un sa = at("probe");
    int l = fresh();
    bool can = bind(l, (const struct sockaddr *)&sa, sizeof sa) == 0 && places_is_provable(l);
    close(l);
    (void)unlink(sa.sun_path);
    if (!can) {
        printf("SKIP the kernel has no sock_diag of AF_UNIX sockets\n");
        return rmdir(dir) < 0 ? 1 : 77;
    }
    int rc = UNIT_RUN("places-proof", tests);
    return rmdir(dir) < 0 ? 1 : rc;
}
