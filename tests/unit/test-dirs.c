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

int
main(void)
{
    static const struct unit_test tests[] = {
        {"makes what is missing", test_makes_what_is_missing},
        {"says why not", test_says_why_not},
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
