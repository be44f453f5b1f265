/* SPDX-License-Identifier: BSD-2-Clause */
/* See privs.h.  Capabilities by the system call itself: all there is to do is to have none. */
#include "config.h"

#include "base/privs.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- who ------------------------------------------------------------------------------------- */

static bool
number_of(const char *text, unsigned *v)
{
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    *v = (unsigned)n;
    return errno == 0 && *end == '\0' && n < UINT_MAX; /* (uid_t)-1 is nobody at all */
}

int
privs_find(const char *spec, struct privs *p, char *err, size_t errsize)
{
    char name[sizeof p->user];
    const char *colon = strchr(spec, ':');
    size_t n = colon ? (size_t)(colon - spec) : strlen(spec);
    unsigned id = 0;

    if (n == 0 || n >= sizeof name || (colon && colon[1] == '\0')) {
        (void)snprintf(err, errsize, "\"%s\" is not NAME or NAME:GROUP", spec);
        return -EINVAL;
    }
    memcpy(name, spec, n);
    name[n] = '\0';
    const struct passwd *pw = getpwnam(name);
    if (!pw && number_of(name, &id))
        pw = getpwuid(id);
    if (!pw && !number_of(name, &id)) {
        (void)snprintf(err, errsize, "there is no user \"%s\"", name);
        return -ENOENT;
    }
    if (!pw && !colon) {
        (void)snprintf(err, errsize, "user %u has no account and so no group: say %u:GROUP", id,
                       id);
        return -ENOENT;
    }
    p->uid = pw ? pw->pw_uid : id;
    p->gid = pw ? pw->pw_gid : 0;
    (void)snprintf(p->user, sizeof p->user, "%s", pw ? pw->pw_name : name);
    if (!colon)
        return 0;
    const struct group *gr = getgrnam(colon + 1);
    if (!gr && !number_of(colon + 1, &id)) {
        (void)snprintf(err, errsize, "there is no group \"%s\"", colon + 1);
        return -ENOENT;
    }
    p->gid = gr ? gr->gr_gid : id;
    return 0;
}

/* --- capabilities ---------------------------------------------------------------------------- */

static int
set_caps(uint64_t caps)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    for (int i = 0; i < 2; i++)
        data[i].effective = data[i].permitted = (uint32_t)(caps >> (32 * i));
    return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

/* Effective or permitted or inheritable ones. */
static uint64_t
get_caps(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    uint64_t caps = 0;
    if (syscall(SYS_capget, &head, data) < 0)
        return UINT64_MAX;
    for (int i = 0; i < 2; i++)
        caps |= (uint64_t)(data[i].effective | data[i].permitted | data[i].inheritable) << (32 * i);
    return caps;
}

/* What no program that is executed can get back: the bounding set. Wants CAP_SETPCAP; where a
 * container took that away, no_new_privs does as much. */
static void
bound_caps(uint64_t caps)
{
    for (int c = 0; c < 64 && prctl(PR_CAPBSET_READ, c) >= 0; c++) {
        if (!(caps >> c & 1))
            (void)prctl(PR_CAPBSET_DROP, c);
    }
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

void
privs_keep_opener(void)
{
    static const int wanted[] = {
        CAP_CHOWN,            /* the admin socket is the daemon's user's */
        CAP_FOWNER,           /* removing it from a directory with the sticky bit */
        CAP_DAC_OVERRIDE,     /* stores that only root may open */
        CAP_DAC_READ_SEARCH,  /* directories that only root may enter */
        CAP_NET_BIND_SERVICE, /* ports below 1024 */
        CAP_SYS_PTRACE,       /* whose a port is */
    };
    uint64_t caps = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        caps |= (uint64_t)1 << wanted[i];
    bound_caps(caps);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)set_caps(caps & get_caps());
}

/* --- for good -------------------------------------------------------------------------------- */

/* A core dump or a debugger of the same user would show secrets, so the kernel's choice for a
 * process that changed its user stands: root's debuggers only. A sanitizer's leak check looks at
 * its own process with ptrace and could not. */
static void
let_sanitizers_work(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#ifdef HAS_SANITIZER
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
#else
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

static int
verify(const struct privs *p, char *err, size_t errsize)
{
    uid_t r, e, s;
    gid_t gr, ge, gs;
    const char *what = NULL;
    if (getresuid(&r, &e, &s) < 0 || r != p->uid || e != p->uid || s != p->uid)
        what = "the user is not all the new one";
    else if (getresgid(&gr, &ge, &gs) < 0 || gr != p->gid || ge != p->gid || gs != p->gid)
        what = "the group is not all the new one";
    else if (getgroups(0, NULL) != 0)
        what = "supplementary groups are left";
    else if (get_caps() != 0)
        what = "capabilities are left";
    else if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        what = "programs could still gain rights";
    else if (setuid(0) == 0 || seteuid(0) == 0 || (p->gid != 0 && setegid(0) == 0))
        what = "root can be had back";
    if (!what)
        return 0;
    (void)snprintf(err, errsize, "%s", what);
    return -EPERM;
}

int
privs_drop(const struct privs *p, char *err, size_t errsize)
{
    const char *step = NULL;
    bound_caps(0); /* while there is a capability for it */
    if (setgroups(0, NULL) < 0)
        step = "setgroups";
    else if (setresgid(p->gid, p->gid, p->gid) < 0)
        step = "setresgid";
    else if (setresuid(p->uid, p->uid, p->uid) < 0)
        step = "setresuid";
    else if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        step = "no_new_privs";
    else if (set_caps(0) < 0)
        step = "capset";
    if (step) {
        int e = errno;
        (void)snprintf(err, errsize, "%s: %s", step, strerror(e));
        return -e;
    }
    let_sanitizers_work();
    return verify(p, err, errsize);
}
