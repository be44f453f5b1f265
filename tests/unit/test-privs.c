/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a name is, and that root is gone for good: in a child, and only when root runs this. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cstore.h"
#include "base/privs.h"
#include "tests/unit/unit.h"

static void
test_find(void)
{
    static const struct {
        const char *spec;
        int rc;
        uid_t uid;
        gid_t gid;
        const char *words;
    } rows[] = {
        {"root", 0, 0, 0, ""},
        {"0", 0, 0, 0, ""},
        {"root:0", 0, 0, 0, ""},
        {"root:4711", 0, 0, 4711, ""},
        {"4711:4712", 0, 4711, 4712, ""},
        {"4711", -ENOENT, 0, 0, "no group"},
        {"no-such-user", -ENOENT, 0, 0, "no user \"no-such-user\""},
        {"root:no-such-group", -ENOENT, 0, 0, "no group \"no-such-group\""},
        {"4294967295:1", -ENOENT, 0, 0, "no user"}, /* -1: nobody at all */
        {"1:4294967295", -ENOENT, 0, 0, "no group"},
        {"", -EINVAL, 0, 0, "NAME"},
        {":", -EINVAL, 0, 0, "NAME"},
        {"root:", -EINVAL, 0, 0, "NAME"},
        {"-1:1", -ENOENT, 0, 0, "no user"},
        {"0x10:1", -ENOENT, 0, 0, "no user"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct privs p = {.uid = 99};
        char err[256] = "";
        int rc = privs_find(rows[i].spec, &p, err, sizeof err);
        bool ok = rc == rows[i].rc && strstr(err, rows[i].words) &&
                  (rc < 0 || (p.uid == rows[i].uid && p.gid == rows[i].gid));
        if (!ok)
            printf("row %zu \"%s\": %d %u:%u %s\n", i, rows[i].spec, rc, (unsigned)p.uid,
                   (unsigned)p.gid, err);
        CU_ASSERT(ok);
    }
}

/* The value of a line of /proc/self/status. */
static bool
status_is(const char *key, const char *want)
{
    char line[256];
    bool found = false;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        size_t n = strlen(line);
        while (n > 0 && (line[n - 1] == ' ' || line[n - 1] == '\t'))
            line[--n] = '\0';
        size_t k = strlen(key);
        if (strncmp(line, key, k) == 0 && line[k] == ':') {
            const char *v = line + k + 1;
            found = strcmp(v + strspn(v, " \t"), want) == 0;
            if (!found)
                printf("%s, wanted %s\n", line, want);
        }
    }
    if (f)
        fclose(f);
    return found;
}

static int
child_drop(void)
{
    static const char *const caps[] = {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"};
    static const gid_t groups[] = {0, 1, 2};
    struct privs p = {.uid = 65534, .gid = 65533, .user = "nobody"};
    char err[256];
    int bad = 0;
    if (setgroups(3, groups) < 0 || privs_drop(&p, err, sizeof err) < 0)
        return 1;
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++)
        bad += !status_is(caps[i], "0000000000000000");
    bad += !status_is("Uid", "65534\t65534\t65534\t65534");
    bad += !status_is("Gid", "65533\t65533\t65533\t65533");
    bad += !status_is("Groups", "");
    bad += !status_is("NoNewPrivs", "1");
    bad += setuid(0) == 0 || setgid(0) == 0 || setgroups(0, NULL) == 0 ||
           open("/etc/shadow", O_RDONLY | O_CLOEXEC) >= 0;
    bad += privs_drop(&p, err, sizeof err) == 0 && getuid() == 0;
    return bad ? 2 : 0;
}

static int
child_opener(void)
{
    privs_keep_opener();
    return status_is("CapEff", "000000000008040f") && status_is("CapPrm", "000000000008040f") &&
                   status_is("NoNewPrivs", "1")
               ? 0
               : 2;
}

/* What a process in which capabilities are taken away from root already can do about it. */
static int
child_cannot(void)
{
    struct privs p = {.uid = 65534, .gid = 65534, .user = "nobody"};
    char err[256] = "";
    if (setresuid(1, 1, 1) < 0)
        return 1;
    return privs_drop(&p, err, sizeof err) < 0 && strstr(err, "setgroups") ? 0 : 2;
}

static void
in_child(int (*fn)(void))
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(fn());
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_EQUAL(status, 0);
}

static void
test_drop(void)
{
    if (geteuid() != 0) {
        printf("SKIP: needs root\n");
        return;
    }
    in_child(child_drop);
    in_child(child_opener);
    in_child(child_cannot);
}

/* --- the state directory --------------------------------------------------------------------- */

static char dir[] = "/tmp/evtgt-privs-XXXXXX";

static bool
owned_by(const char *name, uid_t uid)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return lstat(path, &st) == 0 && st.st_uid == uid;
}

static void
put(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
}

static int
give(uid_t uid, char *err)
{
    struct cstore *cs = cstore_open_dir(dir);
    CU_ASSERT_PTR_NOT_NULL_FATAL(cs);
    int rc = cstore_give(cs, uid, uid, err, 256);
    cstore_close(cs);
    return rc;
}

static void
test_give(void)
{
    char err[256], path[128], other[128];
    if (geteuid() != 0) {
        printf("SKIP: needs root\n");
        return;
    }
    CU_ASSERT_EQUAL(give(4711, err), 0); /* empty */
    CU_ASSERT(owned_by(".", 4711) && owned_by("lock", 4711));
    put("r.of-root"); /* as after a run with --user root */
    put("r.twice");
    put("mine");
    snprintf(path, sizeof path, "%s/r.twice", dir);
    snprintf(other, sizeof other, "%s/away", dir);
    CU_ASSERT_EQUAL(link(path, other), 0);
    snprintf(path, sizeof path, "%s/r.link", dir);
    CU_ASSERT_EQUAL(symlink("mine", path), 0);
    CU_ASSERT_EQUAL(give(4711, err), 0); /* the user's directory may hold what it wants ... */
    CU_ASSERT(owned_by("r.of-root", 4711));
    CU_ASSERT(owned_by("mine", 0) && owned_by("r.twice", 0) && owned_by("r.link", 0)); /* ... */
    CU_ASSERT_EQUAL(give(4712, err), -EPERM); /* but is not given on with that in it */
    CU_ASSERT_PTR_NOT_NULL(strstr(err, "it holds other things ("));
    CU_ASSERT(owned_by(".", 4711) && owned_by("r.of-root", 4711));
    CU_ASSERT_EQUAL(unlink(path), 0);
    CU_ASSERT_EQUAL(unlink(other), 0);
    snprintf(path, sizeof path, "%s/mine", dir);
    CU_ASSERT_EQUAL(unlink(path), 0);
    CU_ASSERT_EQUAL(give(4712, err), 0); /* nobody first, evtgt since it exists */
    CU_ASSERT(owned_by(".", 4712) && owned_by("lock", 4712) && owned_by("r.of-root", 4712));
    CU_ASSERT_EQUAL(chown(dir, 0, 0), 0);
    put("passwd");
    CU_ASSERT_EQUAL(give(4712, err), -EPERM); /* root's directory with other things */
    CU_ASSERT_PTR_NOT_NULL(strstr(err, "passwd"));
    CU_ASSERT(owned_by(".", 0));
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"names and numbers", test_find},
        {"root is gone", test_drop},
        {"the state directory is given", test_give},
    };
    if (!mkdtemp(dir))
        return 1;
    int rc = UNIT_RUN("privs", tests);
    char cmd[96];
    snprintf(cmd, sizeof cmd, "rm -rf %s", dir);
    return system(cmd) != 0 || rc;
}
