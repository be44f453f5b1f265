/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who the daemon is after a start as root: an account without rights.  What needs root later is
 * done by the opener, which was forked before.  Main, before threads.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cstore.h"
#include "base/log.h"
#include "base/privs.h"
#include "target/main_args.h"

static struct {
    struct privs p; /* whom it becomes, when it does */
    bool drops, by_default;
} u;

const struct privs *
main_user(void)
{
    return u.drops ? &u.p : NULL;
}

/* Whom the daemon becomes: the option, the configuration, the account made for it, or nobody. */
void
main_user_choose(const char *option, const char *directive)
{
    static const char *const defaults[] = {"evtgt", "nobody"};
    const char *spec = option ? option : directive;
    char err[256] = "";
    int rc = -ENOENT;

    u.by_default = !spec;
    if (geteuid() != 0)
        return;
    if (spec)
        rc = privs_find(spec, &u.p, err, sizeof err);
    for (size_t i = 0; !spec && rc < 0 && i < sizeof defaults / sizeof defaults[0]; i++)
        rc = privs_find(defaults[i], &u.p, err, sizeof err);
    if (rc < 0)
        main_fail("%s: %s; --user and the directive user say who the daemon is after its start",
                  option      ? "--user"
                  : directive ? "user"
                              : "neither user evtgt nor nobody",
                  err);
    u.drops = u.p.uid != 0;
}

void
main_user_become(void)
{
    char err[256];

    if (geteuid() != 0) {
        if (!u.by_default)
            log_event(LL_WARN, LA_DAEMON,
                      "user-ignored uid=%u why=\"only a start as root can "
                      "choose the user\"",
                      (unsigned)geteuid());
        return;
    }
    if (!u.drops) {
        log_event(LL_WARN, LA_DAEMON,
                  "keeps-root why=\"it was told to; whoever takes the daemon over has the host\"");
        return;
    }
    if (privs_drop(&u.p, err, sizeof err) < 0)
        main_fail("cannot become user %s: %s", u.p.user, err);
    if (u.by_default && strcmp(u.p.user, "nobody") == 0)
        log_event(LL_NOTICE, LA_DAEMON,
                  "runs-as user=nobody why=\"there is no user evtgt; systemd-sysusers makes it, "
                  "or useradd --system evtgt\"");
    else
        log_event(LL_INFO, LA_DAEMON, "runs-as user=%s uid=%u gid=%u", LOG_ESC(u.p.user),
                  (unsigned)u.p.uid, (unsigned)u.p.gid);
}

/* Who may change the link would choose what root gives away. */
int
main_user_check_dir(const char *path)
{
    struct stat st;
    char bare[PATH_MAX];
    size_t n = strlen(path);
    if (!u.drops)
        return 0;
    if (n >= sizeof bare)
        return -ENAMETOOLONG;
    memcpy(bare, path, n + 1);
    while (n > 1 && bare[n - 1] == '/')
        bare[--n] = '\0';
    return lstat(bare, &st) == 0 && S_ISLNK(st.st_mode) ? -ELOOP : 0;
}

void
main_user_give(struct cstore *cs, const char *dir)
{
    char err[256];
    if (u.drops && cstore_give(cs, u.p.uid, u.p.gid, err, sizeof err) < 0)
        main_fail("state directory %s: cannot be given to user %s: %s", dir, u.p.user, err);
}
