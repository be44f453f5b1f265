/* SPDX-License-Identifier: BSD-2-Clause */
/* The service manager is told when the daemon is ready and when it ends. Main. */
#include "config.h"

#include "target/notify.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int kept = -1; /* connected while this process was root */

/* A socket connected to the service manager's, -ENOENT where there is none, or -errno. */
static int
notify_connect(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n;

    if (!path || (path[0] != '/' && path[0] != '@') || !path[1])
        return -ENOENT;
    n = strlen(path);
    if (n >= sizeof sa.sun_path)
        return -E2BIG;
    memcpy(sa.sun_path, path, n);
    if (path[0] == '@')
        sa.sun_path[0] = 0;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
    if (connect(fd, (const struct sockaddr *)&sa, len) < 0) {
        int err = -errno;
        close(fd);
        return err;
    }
    return fd;
}

void
notify_open(void)
{
    kept = notify_connect();
}

static bool
send_to(int fd, const char *state)
{
    return send(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

int
notify_send(const char *state)
{
    if (kept >= 0 && send_to(kept, state))
        return 0;
    int fd = notify_connect(); /* the manager's socket may be a new one */
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    int err = send_to(fd, state) ? 0 : -errno;
    close(fd);
    return err;
}
