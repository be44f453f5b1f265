/* SPDX-License-Identifier: BSD-2-Clause */
/* The opener: permitted and refused paths, listening sockets, an open that hangs. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/opener.h"
#include "tests/unit/unit.h"

static char dir[] = "/tmp/evtgt-opener-XXXXXX";
static char path[4][128];

static const char *
in_dir(int slot, const char *name)
{
    snprintf(path[slot], sizeof path[slot], "%s/%s", dir, name);
    return path[slot];
}

static void
make_file(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void
check_content(int fd, const char *text)
{
    char b[64] = "";
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(read(fd, b, sizeof b - 1), (ssize_t)strlen(text));
    CU_ASSERT_STRING_EQUAL(b, text);
    CU_ASSERT_TRUE((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    close(fd);
}

static void
test_in_process(void)
{
    make_file(in_dir(0, "plain"), "plain");
    CU_ASSERT_EQUAL(opener_permit(path[0]), 0);
    check_content(opener_open(path[0], O_RDONLY, 0), "plain");
    CU_ASSERT_EQUAL(opener_open(in_dir(1, "none"), O_RDONLY, 0), -ENOENT);
    CU_ASSERT_EQUAL(opener_revoke(path[0]), 0);
    opener_stop(); /* nothing runs: harmless */
}

static void
test_permit(void)
{
    make_file(in_dir(0, "a"), "aa");
    make_file(in_dir(1, "b"), "bb");
    CU_ASSERT_EQUAL(opener_open(path[0], O_RDONLY, 0), -EPERM);
    CU_ASSERT_EQUAL(opener_permit(path[0]), 0);
    CU_ASSERT_EQUAL(opener_permit(path[0]), 0);
    check_content(opener_open(path[0], O_RDWR, 0), "aa");
    CU_ASSERT_EQUAL(opener_open(path[1], O_RDONLY, 0), -EPERM);
    CU_ASSERT_EQUAL(opener_revoke(path[0]), 0);
    CU_ASSERT_EQUAL(opener_open(path[0], O_RDONLY, 0), -EPERM);
    CU_ASSERT_EQUAL(opener_revoke(path[0]), -ENOENT);
    CU_ASSERT_EQUAL(opener_permit(""), -EINVAL);
    /* permitted but not there: the kernel's own word */
    CU_ASSERT_EQUAL(opener_permit_new(in_dir(2, "gone")), 0);
    CU_ASSERT_EQUAL(opener_open(path[2], O_RDONLY, 0), -ENOENT);
    int fd = opener_open(path[2], O_RDWR | O_CREAT, 0640);
    CU_ASSERT_FATAL(fd >= 0);
    struct stat st;
    CU_ASSERT_EQUAL(fstat(fd, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 0137, 0);
    close(fd);
    static char huge[5000];
    memset(huge, 'x', sizeof huge - 1);
    CU_ASSERT_EQUAL(opener_permit(huge), -ENAMETOOLONG);
    CU_ASSERT_EQUAL(opener_open(huge, O_RDONLY, 0), -ENAMETOOLONG);
}

/* The opener's process: the only child. */
static pid_t
opener_pid(void)
{
    char name[64];
    int pid = 0;
    snprintf(name, sizeof name, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(name, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    CU_ASSERT_EQUAL_FATAL(fscanf(f, "%d", &pid), 1);
    fclose(f);
    return pid;
}

/* Waits on a thread of its own: its patience is endless. */
static void *
open_patiently(void *arg)
{
    *(int *)arg = opener_open(path[0], O_RDONLY, 0);
    return NULL;
}

static void
test_impatient(void)
{
    pthread_t t;
    int fd = -1;

    make_file(in_dir(0, "later"), "ll");
    opener_impatient(100);
    CU_ASSERT_EQUAL(opener_open(path[0], O_RDONLY, 0), -EPERM); /* it answers in time */
    CU_ASSERT_EQUAL(kill(opener_pid(), SIGSTOP), 0);
    CU_ASSERT_EQUAL(opener_open(path[0], O_RDONLY, 0), -ETIMEDOUT);
    for (unsigned i = 0; i < 1000; i++) { /* more than the socket takes */
        char other[512];
        snprintf(other, sizeof other, "%s.%u", path[0], i);
        CU_ASSERT_EQUAL(opener_permit(other), 0);
    }
    CU_ASSERT_EQUAL(opener_permit(path[0]), 0);
    CU_ASSERT_EQUAL(pthread_create(&t, NULL, open_patiently, &fd), 0);
    CU_ASSERT_EQUAL(opener_open(path[0], O_RDONLY, 0), -ETIMEDOUT);
    CU_ASSERT_EQUAL(kill(opener_pid(), SIGCONT), 0);
    CU_ASSERT_EQUAL(pthread_join(t, NULL), 0);
    check_content(fd, "ll"); /* what was posted came before it */
    CU_ASSERT_EQUAL(opener_revoke(path[0]), 0);
    CU_ASSERT_EQUAL(opener_revoke(path[0]), 0); /* nobody waits to hear that it is gone */
    opener_impatient(-1);
    CU_ASSERT_EQUAL(opener_open(path[0], O_RDONLY, 0), -EPERM);
}

static void
test_directory(void)
{
    char sub[160], deep[200], up[200], link[200];
    snprintf(sub, sizeof sub, "%s/sub", dir);
    CU_ASSERT_EQUAL(mkdir(sub, 0700), 0);
    snprintf(deep, sizeof deep, "%s/deep", sub);
    CU_ASSERT_EQUAL(mkdir(deep, 0700), 0);
    snprintf(up, sizeof up, "%s/child", sub);
    make_file(up, "child");
    strncat(deep, "/x", sizeof deep - strlen(deep) - 1);
    make_file(deep, "x");
    snprintf(link, sizeof link, "%s/link", sub);
    CU_ASSERT_EQUAL(symlink("/etc/passwd", link), 0);
    strncat(sub, "/", sizeof sub - strlen(sub) - 1);
    CU_ASSERT_EQUAL(opener_permit(sub), 0);
    check_content(opener_open(up, O_RDONLY, 0), "child");
    CU_ASSERT_EQUAL(opener_open(deep, O_RDONLY, 0), -EPERM); /* not a direct child */
    snprintf(up, sizeof up, "%s..", sub);
    CU_ASSERT_EQUAL(opener_open(up, O_RDONLY, 0), -EPERM);
    snprintf(up, sizeof up, "%s.", sub);
    CU_ASSERT_EQUAL(opener_open(up, O_RDONLY, 0), -EPERM);
    snprintf(up, sizeof up, "%s../a", sub);
    CU_ASSERT_EQUAL(opener_open(up, O_RDONLY, 0), -EPERM);
    CU_ASSERT_EQUAL(opener_open(link, O_RDONLY, 0), -ELOOP); /* leads out */
    CU_ASSERT_EQUAL(opener_revoke(sub), 0);
}

static void
test_listen(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t len = sizeof a;
    int v = 0;
    int fd = opener_listen((struct sockaddr *)&a, sizeof a, 16, 0);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    CU_ASSERT_TRUE((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    len = sizeof v;
    CU_ASSERT_EQUAL(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &v, &len), 0);
    CU_ASSERT_EQUAL(v, 1);
    /* the port is taken now */
    CU_ASSERT_EQUAL(opener_listen((struct sockaddr *)&a, sizeof a, 16, 0), -EADDRINUSE);
    int fd6 = opener_listen((struct sockaddr *)&a6, sizeof a6, 16, 0);
    if (fd6 >= 0) {
        len = sizeof v;
        v = 0;
        CU_ASSERT_EQUAL(getsockopt(fd6, IPPROTO_IPV6, IPV6_V6ONLY, &v, &len), 0);
        CU_ASSERT_EQUAL(v, 1);
        close(fd6);
    } else {
        CU_ASSERT(fd6 == -EAFNOSUPPORT || fd6 == -EADDRNOTAVAIL); /* a machine without IPv6 */
    }
    struct sockaddr un = {.sa_family = AF_UNIX};
    CU_ASSERT_EQUAL(opener_listen(&un, sizeof un, 1, 0), -EAFNOSUPPORT);
    CU_ASSERT_EQUAL(opener_listen(&un, 1, 1, 0), -EINVAL);
    close(fd);
}

static void *
open_fifo(void *arg)
{
    int fd = opener_open(arg, O_RDONLY, 0); /* hangs until somebody writes */
    return (void *)(intptr_t)fd;
}

static void
test_hung_open(void)
{
    pthread_t t[3];
    char fifo[128];
    snprintf(fifo, sizeof fifo, "%s", in_dir(3, "fifo"));
    make_file(in_dir(0, "quick"), "quick");
    CU_ASSERT_EQUAL_FATAL(mkfifo(fifo, 0600), 0);
    CU_ASSERT_EQUAL(opener_permit(fifo), 0);
    CU_ASSERT_EQUAL(opener_permit(path[0]), 0);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, open_fifo, fifo), 0);
    usleep(50000);
    uint64_t start = clock_ms();
    for (int i = 0; i < 20; i++)
        check_content(opener_open(path[0], O_RDONLY, 0), "quick");
    CU_ASSERT(clock_ms() - start < 5000);
    int wr = open(fifo, O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 3; i++) {
        void *res;
        pthread_join(t[i], &res);
        CU_ASSERT((intptr_t)res >= 0);
        close((int)(intptr_t)res);
    }
    close(wr);
}

/* The opener and an open that hangs in it end with the daemon's end of the socket. */
static void
test_stop_with_hung(void)
{
    pthread_t t;
    void *res;
    char fifo[128];
    snprintf(fifo, sizeof fifo, "%s", in_dir(3, "fifo"));
    CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, open_fifo, fifo), 0);
    usleep(50000);
    uint64_t start = clock_ms();
    opener_stop();
    CU_ASSERT(clock_ms() - start < 2000);
    pthread_join(t, &res);
    CU_ASSERT_EQUAL((intptr_t)res, -EIO);
    CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
}

static void
test_start(void)
{
    CU_ASSERT_EQUAL_FATAL(opener_start(), 0);
    CU_ASSERT_EQUAL(opener_start(), -EALREADY);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"without an opener", test_in_process},
        {"start", test_start},
        {"permit, refuse, revoke", test_permit},
        {"a permitted directory", test_directory},
        {"who may not wait", test_impatient},
        {"listen", test_listen},
        {"a hung open blocks nobody", test_hung_open},
        {"stop with a hung open", test_stop_with_hung},
    };
    if (!mkdtemp(dir))
        return 1;
    int rc = UNIT_RUN("opener", tests);
    char cmd[96];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd) != 0 || rc;
}
