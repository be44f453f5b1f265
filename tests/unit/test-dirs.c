/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories made above a path. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "tests/unit/unit.h"

static char top[] = "/tmp/evtgt-dirs-XXXXXX";

static bool
is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void
test_makes_what_is_missing(void)
{
    CU_ASSERT_EQUAL(dirs_make_above("a/b/c/file"), 0);
    CU_ASSERT(is_dir("a/b/c"));
    CU_ASSERT(!is_dir("a/b/c/file"));
    CU_ASSERT_EQUAL(dirs_make_above("a/b/c/file"), 0);
    CU_ASSERT_EQUAL(dirs_make_above("d//e/"), 0);
    CU_ASSERT(is_dir("d"));
    CU_ASSERT(!is_dir("d/e"));
    char path[128];
    snprintf(path, sizeof path, "%s/x/y/z", top);
    CU_ASSERT_EQUAL(dirs_make_above(path), 0);
    CU_ASSERT(is_dir("x/y"));
    CU_ASSERT_EQUAL(dirs_make_above("here"), 0);
    CU_ASSERT_EQUAL(dirs_make_above("/"), 0);
}

static void
test_says_why_not(void)
{
    char longer[5000];
    int fd = open("plain", O_CREAT | O_WRONLY, 0600);
    CU_ASSERT(fd >= 0);
    close(fd);
    CU_ASSERT_EQUAL(dirs_make_above("plain/a"), -ENOTDIR);
    CU_ASSERT_EQUAL(dirs_make_above("plain/a/b"), -ENOTDIR);
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CU_ASSERT_EQUAL(dirs_make_above(longer), -ENAMETOOLONG);
}

static bool
socket_is(unsigned control_port, const char *want)
{
    char *path = dirs_admin_socket(control_port);
    bool same = strcmp(path, want) == 0;
    free(path);
    return same;
}

static void
test_admin_socket(void)
{
    unsetenv("EVTGT_SOCKET");
    setenv("TGT_IPC_SOCKET", "", 1);
    CU_ASSERT(socket_is(0, RUNDIR "/evtgtd.sock"));
    CU_ASSERT(socket_is(7, RUNDIR "/evtgtd.sock.7"));
    setenv("TGT_IPC_SOCKET", "/x/socket", 1);
    CU_ASSERT(socket_is(0, "/x/socket.0"));
    CU_ASSERT(socket_is(12, "/x/socket.12"));
    setenv("EVTGT_SOCKET", "/y/s", 1);
    CU_ASSERT(socket_is(0, "/y/s"));
    CU_ASSERT(socket_is(3, "/y/s.3"));
    unsetenv("TGT_IPC_SOCKET");
    unsetenv("EVTGT_SOCKET");
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"makes what is missing", test_makes_what_is_missing},
        {"says why not", test_says_why_not},
        {"the place of the admin socket", test_admin_socket},
    };
    if (!mkdtemp(top) || chdir(top) < 0)
        return 1;
    int rc = UNIT_RUN("dirs", tests);
    const char *gone[] = {"a/b/c", "a/b", "a", "d", "x/y", "x"};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
        (void)rmdir(gone[i]);
    (void)unlink("plain");
    if (chdir("/") < 0)
        return 1;
    (void)rmdir(top);
    return rc;
}
