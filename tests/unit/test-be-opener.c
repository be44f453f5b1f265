/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store in a directory that only root may enter, opened by a process that is root no more: by
 * the opener.  Open, probe, vanish, return and identity have to work the same.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/helper.h"
#include "base/opener.h"

static int failed;

static void
expect(bool ok, const char *what)
{
    printf("%s: %s\n", ok ? "ok" : "FAILED", what);
    failed += !ok;
}

static struct backend *
make(const char *path, bool direct)
{
    char err[128];
    struct backend *be =
        be_new(&(struct be_opts){.path = path, .block_size = 512, .direct = direct}, err, 128);
    if (be == NULL)
        abort();
    return be;
}

/* Renames in the directory, as root: orders come by a pipe, each is answered. */
static void
mover(int in, int out, const char *path, const char *away)
{
    for (char c; read(in, &c, 1) == 1;) {
        c = c == 'a' ? rename(path, away) == 0 : rename(away, path) == 0;
        if (write(out, &c, 1) != 1)
            break;
    }
    _exit(0);
}

static bool
order(int fd, int back, char c)
{
    return write(fd, &c, 1) == 1 && read(back, &c, 1) == 1 && c == 1;
}

static void
check(const char *path, int to, int from)
{
    char identity[256];
    for (int direct = 0; direct < 2; direct++) {
        struct backend *be = make(path, direct != 0);
        expect(be_open(be) == 0, "open behind a closed directory");
        if (be_error(be)[0] != '\0')
            printf("%s\n", be_error(be));
        (void)snprintf(identity, sizeof(identity), "file:%s", path);
        expect(strcmp(be_identity(be), identity) == 0, "identity is the path");
        expect(be_probe(be) == 0 && be_state(be) == BE_READY, "probe finds it");
        expect(order(to, from, 'a') && be_probe(be) == BE_EV_GONE, "vanished");
        expect(order(to, from, 'b') && be_probe(be) == BE_EV_CAME, "back");
        be_close(be);
        expect(be_open(be) == 0, "opened again");
        be_close(be);
        be_put(be);
    }
    struct backend *be = make("/etc/passwd", false);
    expect(be_open(be) == -EPERM, "what was not permitted stays closed");
    be_put(be);
}

int
main(void)
{
    char dir[128], path[160], away[160];
    const char *tmp = getenv("TMPDIR");
    int to[2], from[2];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (geteuid() != 0) {
        printf("skipped: needs root to drop it\n");
        return 77;
    }
    (void)snprintf(dir, sizeof(dir), "%s/evtgt-unit-XXXXXX", tmp != NULL ? tmp : "/var/tmp");
    if (mkdtemp(dir) == NULL || pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        return 1;
    (void)snprintf(path, sizeof(path), "%s/store", dir);
    (void)snprintf(away, sizeof(away), "%s/away", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, 1 << 20) != 0)
        return 1;
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        close(to[1]);
        close(from[0]);
        mover(to[0], from[1], path, away);
    }
    pid_t tester = fork();
    if (tester == 0) {
        close(to[0]);
        if (opener_start() != 0 || opener_permit(path) != 0 ||
            setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0 ||
            helper_pool_start(1, 2) != 0)
            _exit(1);
        expect(access(path, F_OK) != 0, "the path is out of reach");
        check(path, to[1], from[0]);
        helper_pool_stop();
        opener_stop();
        exit(failed != 0);
    }
    int status = 1;
    close(to[0]);
    close(to[1]);
    (void)waitpid(tester, &status, 0);
    (void)waitpid(pid, NULL, 0);
    (void)unlink(path);
    (void)rmdir(dir);
    return status != 0;
}
