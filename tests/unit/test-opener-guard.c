/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opener against a daemon that was taken over: everything that may be asked for and is not
 * permitted, messages of any bytes, and who may permit after the seal.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/opener.h"
#include "base/opener_priv.h"
#include "tests/unit/unit.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static char dir[] = "/tmp/evtgt-guard-XXXXXX";

static const char *
at(const char *name)
{
    static char buf[8][256];
    static unsigned next;
    char *p = buf[next++ % N(buf)];
    snprintf(p, sizeof buf[0], "%s/%s", dir, name);
    return p;
}

static void
make_file(const char *name)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, name, strlen(name)), (ssize_t)strlen(name));
    close(fd);
}

/* A link as another user would have made it. */
static void
make_link(const char *to, const char *name, bool foreign)
{
    CU_ASSERT_EQUAL_FATAL(symlink(to, at(name)), 0);
    if (foreign && geteuid() == 0)
        CU_ASSERT_EQUAL_FATAL(lchown(at(name), 4711, 4711), 0);
}

/* --- services, as the daemon has them -------------------------------------------------------- */

static int other_end = -1; /* in the opener */

/* A connection of somebody who may permit; asked a second time, its other end goes. */
static int
serve_trusted(const void *arg, size_t len)
{
    int sv[2];
    (void)arg;
    (void)len;
    if (other_end >= 0) {
        close(other_end);
        other_end = -1;
        return 0;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
        return -errno;
    opener_trust(sv[0]);
    other_end = sv[1];
    return sv[0];
}

static int
serve_text(const void *arg, size_t len)
{
    int rc = opener_permit(at("by-service"));
    int fd = memfd_create("text", MFD_CLOEXEC);
    if (rc < 0 || fd < 0 || pwrite(fd, arg, len, 0) != (ssize_t)len)
        return -EIO;
    return fd;
}

static void
on_end(void)
{
    int fd = open(at("ended"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

static void
test_start(void)
{
    static const char *const files[] = {"file",       "secret",   "sub/child", "sub/deep/x",
                                        "by-service", "by-voice", "too-late"};
    CU_ASSERT_EQUAL(mkdir(at("sub"), 0700), 0);
    CU_ASSERT_EQUAL(mkdir(at("sub/deep"), 0700), 0);
    for (size_t i = 0; i < N(files); i++)
        make_file(files[i]);
    make_link("secret", "sub/link", false);
    make_link("file", "ours", false);
    make_link("secret", "theirs", true);
    make_link(at("sub"), "their-dir", true);
    make_link("loop", "loop", false);
    make_link("nowhere", "dangling", false);
    make_link("sub/../ours", "chain", false);
    opener_guard();
    opener_serve(OPENER_ADMIN_ACCEPT, serve_trusted, true);
    opener_serve(OPENER_PORT_OWNER, serve_text, false);
    opener_at_end(on_end);
    CU_ASSERT_EQUAL_FATAL(opener_start(), 0);
    static const char *const permitted[] = {
        "file", "sub/", "ours",     "theirs",   "their-dir/child",
        "loop", "sub",  "dangling", "none/x/y", "chain"};
    for (size_t i = 0; i < N(permitted); i++)
        CU_ASSERT_EQUAL(opener_permit(at(permitted[i])), 0);
    CU_ASSERT_EQUAL(opener_permit_new(at("new")), 0);
    CU_ASSERT_EQUAL(opener_permit_new("/"), 0);
    CU_ASSERT_EQUAL(opener_permit_port(860), 0);
    CU_ASSERT_EQUAL(opener_seal(), 0);
}

/* --- opening --------------------------------------------------------------------------------- */

static const struct {
    const char *path; /* below dir; '=': as it stands */
    int flags, want;  /* want: 0, or -errno */
    bool root;        /* only root can have links of others */
} opens[] = {
    {"file", O_RDONLY, 0, false},
    {"file", O_RDWR | O_DIRECT | O_DSYNC | O_EXCL, 0, false},
    {"file", O_PATH, 0, false},
    {"file", O_RDWR | O_TRUNC, -EINVAL, false},
    {"file", O_ACCMODE, -EINVAL, false},
    {"file", O_RDONLY | O_DIRECTORY, -EINVAL, false},
    {"file", O_RDONLY | O_NOATIME, -EINVAL, false},
    {"file", O_RDWR | O_CREAT, -EPERM, false},
    {"file", O_RDWR | O_CREAT | O_TRUNC, -EPERM, false},
    {"new", O_RDWR, -ENOENT, false},
    {"new", O_RDWR | O_CREAT | O_TRUNC, -EINVAL, false},
    {"new", O_RDWR | O_CREAT, 0, false},
    {"new", O_RDWR | O_CREAT | O_EXCL, -EEXIST, false},
    {"new", O_RDWR | O_TMPFILE, -EINVAL, false},
    {"secret", O_RDONLY, -EPERM, false},
    {"secret", O_PATH, -EPERM, false},
    {"fil", O_RDONLY, -EPERM, false},
    {"file2", O_RDWR | O_CREAT, -EPERM, false},
    {"file/", O_RDONLY, -EPERM, false},
    {"./file", O_RDONLY, -EPERM, false},
    {"/file", O_RDONLY, -EPERM, false},
    {"sub/../file", O_RDONLY, -EPERM, false},
    {"sub/../secret", O_RDONLY, -EPERM, false},
    {"sub/child", O_RDONLY, 0, false},
    {"sub/child", O_RDWR | O_CREAT, -EPERM, false},
    {"sub//child", O_RDONLY, -EPERM, false},
    {"sub/deep/x", O_RDONLY, -EPERM, false},
    {"sub/deep", O_RDONLY, -EISDIR, false},
    {"sub/link", O_RDONLY, -ELOOP, false},
    {"sub/link", O_PATH, -ELOOP, false},
    {"sub/.", O_RDONLY, -EPERM, false},
    {"sub/..", O_RDONLY, -EPERM, false},
    {"sub/", O_RDONLY, -EISDIR, false},
    {"sub/", O_PATH, -EISDIR, false},
    {"sub", O_RDONLY, -EISDIR, false},
    {"sub", O_PATH, -EISDIR, false},
    {"ours", O_RDONLY, 0, false},
    {"ours", O_RDONLY | O_NOFOLLOW, -ELOOP, false},
    {"chain", O_RDONLY, 0, false},
    {"theirs", O_RDONLY, -EPERM, true},
    {"theirs", O_PATH, -EPERM, true},
    {"their-dir/child", O_RDONLY, -EPERM, true},
    {"loop", O_RDONLY, -ELOOP, false},
    {"dangling", O_RDONLY, -ENOENT, false},
    {"dangling", O_RDWR | O_CREAT, -EPERM, false},
    {"none/x/y", O_RDONLY, -ENOENT, false},
    {"=", O_RDONLY, -EPERM, false},
    {"=/", O_RDONLY, -EISDIR, false},
    {"=/.", O_RDONLY, -EPERM, false},
    {"=file", O_RDONLY, -EPERM, false},
    {"=port:860", O_RDWR | O_CREAT, -EPERM, false},
    {"=/etc/shadow", O_RDONLY, -EPERM, false},
    {"=/proc/self/environ", O_RDONLY, -EPERM, false},
};

static void
test_opens(void)
{
    for (size_t i = 0; i < N(opens); i++) {
        const char *path = opens[i].path[0] == '=' ? opens[i].path + 1 : at(opens[i].path);
        if (opens[i].root && geteuid() != 0)
            continue;
        int fd = opener_open(path, opens[i].flags, 07777);
        /* O_DIRECT is the file system's to refuse */
        bool ok = (fd >= 0 ? 0 : fd) == opens[i].want ||
                  ((opens[i].flags & O_DIRECT) && fd == -EINVAL && opens[i].want == 0);
        if (!ok)
            printf("row %zu: %s flags %#x: %d, not %d\n", i, path, (unsigned)opens[i].flags, fd,
                   opens[i].want);
        CU_ASSERT(ok);
        if (fd >= 0)
            close(fd);
    }
    struct stat st;
    CU_ASSERT_EQUAL(stat(at("new"), &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 07777, 0600); /* whatever was asked for */
    CU_ASSERT_NOT_EQUAL(stat(at("nowhere"), &st), 0);
    CU_ASSERT_NOT_EQUAL(stat(at("file2"), &st), 0);
}

static void
test_ports(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    a.sin_port = htons(861);
    a6.sin6_port = htons(22);
    CU_ASSERT_EQUAL(opener_listen((struct sockaddr *)&a, sizeof a, 1, 0), -EPERM);
    CU_ASSERT_EQUAL(opener_listen((struct sockaddr *)&a6, sizeof a6, 1, 0), -EPERM);
    CU_ASSERT_EQUAL(opener_permit_port(861), -EPERM);
    CU_ASSERT_EQUAL(opener_permit_port(860), 0);
    CU_ASSERT_EQUAL(opener_permit_port(3260), 0);
    a.sin_port = htons(860);
    int fd = opener_listen((struct sockaddr *)&a, sizeof a, 1, 0);
    CU_ASSERT(fd >= 0 || fd == -EACCES || fd == -EADDRINUSE); /* who we are decides */
    if (fd >= 0)
        close(fd);
}

/* --- who may permit -------------------------------------------------------------------------- */

static void
test_seal(void)
{
    int sv[2];
    CU_ASSERT_EQUAL(opener_permit(at("file")), 0); /* it is */
    CU_ASSERT_EQUAL(opener_permit_new(at("file")), -EPERM);
    CU_ASSERT_EQUAL(opener_permit(at("secret")), -EPERM);
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
    opener_vouch(sv[0]); /* a connection of our own making */
    CU_ASSERT_EQUAL(opener_permit(at("secret")), -EPERM);
    int fd = opener_call(OPENER_ADMIN_ACCEPT, "", 0);
    CU_ASSERT_FATAL(fd > 0);
    opener_vouch(fd);
    CU_ASSERT_EQUAL(opener_permit(at("by-voice")), 0);
    CU_ASSERT_EQUAL(opener_call(OPENER_ADMIN_ACCEPT, "", 0), 0); /* it hangs up */
    CU_ASSERT_EQUAL(opener_permit(at("too-late")), -EPERM);
    opener_vouch(-1);
    CU_ASSERT_EQUAL(opener_permit(at("too-late")), -EPERM);
    close(fd);
    close(sv[0]);
    close(sv[1]);
    fd = opener_open(at("by-voice"), O_RDONLY, 0);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    CU_ASSERT_EQUAL(opener_revoke(at("by-voice")), 0);
    CU_ASSERT_EQUAL(opener_permit(at("by-voice")), -EPERM); /* it is new again */
}

static void
test_service(void)
{
    char text[16] = "";
    CU_ASSERT_EQUAL(opener_open(at("by-service"), O_RDONLY, 0), -EPERM);
    int fd = opener_call(OPENER_PORT_OWNER, "a\0b", 3);
    CU_ASSERT_FATAL(fd > 0);
    CU_ASSERT_EQUAL(pread(fd, text, sizeof text, 0), 3);
    CU_ASSERT_EQUAL(memcmp(text, "a\0b", 3), 0);
    close(fd);
    fd = opener_open(at("by-service"), O_RDONLY, 0);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    CU_ASSERT_EQUAL(opener_call(OPENER_PID_FILE, "", 0), -EINVAL); /* nobody serves it */
    static char huge[PATH_MAX];
    CU_ASSERT_EQUAL(opener_call(OPENER_PORT_OWNER, huge, sizeof huge), -EMSGSIZE);
}

/* --- any bytes ------------------------------------------------------------------------------- */

/* The daemon's end: the only socket of its kind here. */
static int
daemon_end(void)
{
    for (int fd = 3; fd < 256; fd++) {
        int type = 0;
        socklen_t len = sizeof type;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET)
            return fd;
    }
    return -1;
}

/* Sends bytes with n descriptors and gives back what is answered within a moment; 1: nothing. */
static int
ask_raw(int to, const void *bytes, size_t size, unsigned n_fds)
{
    union {
        char buf[CMSG_SPACE(4 * sizeof(int))];
        struct cmsghdr align;
    } u;
    int sv[2], err = 1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
        return 1;
    struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    memset(&u, 0, sizeof u);
    if (n_fds > 0) {
        m.msg_control = u.buf;
        m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        for (unsigned i = 0; i < n_fds; i++)
            memcpy(CMSG_DATA(c) + i * sizeof(int), &sv[1], sizeof(int));
    }
    ssize_t sent = sendmsg(to, &m, MSG_NOSIGNAL);
    close(sv[1]);
    if (sent < 0 || recv(sv[0], &err, sizeof err, 0) != (ssize_t)sizeof err)
        err = 1;
    close(sv[0]);
    return err;
}

static void
test_messages(void)
{
    static struct opener_request rq, fresh;
    int to = daemon_end();
    CU_ASSERT_FATAL(to >= 0);
    static const struct {
        int op, flags;
        size_t len;
        socklen_t addrlen;
    } odd[] = {
        {-1, 0, 0, 0},
        {99, 0, 0, 0},
        {OPENER_CALL, -1, 0, 0},
        {OPENER_CALL, OPENER_SERVICES, 0, 0},
        {OPENER_CALL, INT_MAX, 0, 0},
        {OPENER_CALL, OPENER_PORT_OWNER, PATH_MAX, 0},
        {OPENER_CALL, OPENER_PORT_OWNER, SIZE_MAX, 0},
        {OPENER_LISTEN, 0, 0, sizeof rq.addr + 1},
        {OPENER_LISTEN, 0, 0, (socklen_t)-1},
    };
    for (size_t i = 0; i < N(odd); i++) {
        rq = fresh;
        rq.op = (enum opener_op)odd[i].op;
        rq.flags = odd[i].flags;
        rq.len = odd[i].len;
        rq.addrlen = odd[i].addrlen;
        int err = ask_raw(to, &rq, sizeof rq, 1);
        if (err != -EINVAL)
            printf("odd %zu: %d\n", i, err);
        CU_ASSERT_EQUAL(err, -EINVAL);
    }
    rq = fresh;
    rq.op = OPENER_OPEN;
    memset(rq.path, 'x', sizeof rq.path); /* does not end */
    rq.path[0] = '/';
    CU_ASSERT_EQUAL(ask_raw(to, &rq, sizeof rq, 1), -EINVAL);
    CU_ASSERT_EQUAL(ask_raw(to, &rq, sizeof rq - 1, 1), -EINVAL);
    CU_ASSERT_EQUAL(ask_raw(to, &rq, 1, 2), -EINVAL);
    CU_ASSERT_EQUAL(ask_raw(to, &rq, sizeof rq, 0), 1); /* there is nowhere to answer */
    CU_ASSERT_EQUAL(ask_raw(to, &rq, sizeof rq, 4),
                    -EINVAL); /* the kernel drops what is too many */
}

static void
test_random(void)
{
    static struct opener_request rq;
    static const char *const names[] = {"secret", "sub/deep/x", "sub/link", "too-late", "file/"};
    int to = daemon_end();
    unsigned opened = 0;
    srandom(20261130);
    for (unsigned i = 0; i < 3000; i++) {
        uint8_t *p = (uint8_t *)&rq;
        for (size_t k = 0; k < offsetof(struct opener_request, path); k++)
            p[k] = (uint8_t)(random() & (random() & 1 ? 0xff : 0x03));
        snprintf(rq.path, sizeof rq.path, "%s", at(names[random() % (long)N(names)]));
        if (random() % 4) { /* well formed but for what is asked */
            rq.op = random() & 1 ? OPENER_OPEN : OPENER_PERMIT;
            rq.len = strlen(rq.path);
            rq.addrlen = 0;
        } else if (rq.op == OPENER_LISTEN || rq.op == OPENER_CALL || rq.op == OPENER_REVOKE) {
            continue; /* would listen somewhere, hang up, or take what later tests want */
        }
        opened += ask_raw(to, &rq, sizeof rq, 1) == 0 && rq.op != OPENER_SEAL;
    }
    CU_ASSERT_EQUAL(opened, 0);
    int fd = opener_open(at("file"), O_RDONLY, 0); /* it still works */
    CU_ASSERT(fd >= 0);
    close(fd);
}

static void
test_end(void)
{
    struct stat st;
    CU_ASSERT_NOT_EQUAL(stat(at("ended"), &st), 0);
    opener_stop();
    CU_ASSERT_EQUAL(stat(at("ended"), &st), 0);
    CU_ASSERT_EQUAL(opener_open(at("file"), O_RDONLY, 0), -EIO);
    CU_ASSERT_EQUAL(opener_call(OPENER_PORT_OWNER, "", 0), -EIO);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"start", test_start},
        {"what may be opened", test_opens},
        {"ports below 1024", test_ports},
        {"the seal, and who may permit", test_seal},
        {"services", test_service},
        {"messages that are none", test_messages},
        {"any bytes", test_random},
        {"the end", test_end},
    };
    if (!mkdtemp(dir))
        return 1;
    int rc = UNIT_RUN("opener-guard", tests);
    char cmd[96];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd) != 0 || rc;
}
