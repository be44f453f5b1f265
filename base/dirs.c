/* SPDX-License-Identifier: BSD-2-Clause */
/* The state directory and the place of the admin socket, on a machine that never had them. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dirs.h"
#include "base/pool.h"

int
dirs_make_above(const char *path)
{
    char dir[PATH_MAX];
    size_t n = strlen(path);
    struct stat st;

    if (n >= sizeof dir)
        return -ENAMETOOLONG;
    memcpy(dir, path, n + 1);
    while (n > 1 && dir[n - 1] == '/') /* "a/b/" names b */
        dir[--n] = '\0';
    for (char *p = dir + (dir[0] == '/'); (p = strchr(p, '/')) != NULL; p++) {
        *p = '\0';
        /* stat first: on a read-only file system mkdir fails even where the directory is */
        if (stat(dir, &st) < 0) {
            if (errno != ENOENT)
                return -errno;
            if (mkdir(dir, 0755) < 0 && errno != EEXIST)
                return -errno;
        } else if (!S_ISDIR(st.st_mode)) {
            return -ENOTDIR;
        }
        *p = '/';
    }
    return 0;
}

char *
dirs_admin_socket(unsigned control_port)
{
    const char *own = getenv("EVTGT_SOCKET"), *tgt = getenv("TGT_IPC_SOCKET");

    if (own && !*own)
        own = NULL;
    if (!own && tgt && *tgt)
        return xasprintf("%s.%u", tgt, control_port);
    if (!own)
        own = RUNDIR "/evtgtd.sock";
    return control_port ? xasprintf("%s.%u", own, control_port) : xstrdup(own);
}
