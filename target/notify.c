/* SPDX-License-Identifier: BSD-2-Clause */
/* The service manager is told when the daemon is ready and when it ends. Main. */
#include "config.h"

#include "target/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int
notify_send(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    size_t n;

    if (!path || (path[0] != '/' && path[0] != '@') || !path[1])
        return 0;
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
    ssize_t rc = sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                        (const struct sockaddr *)&sa, len);
    int err = rc < 0 ? -errno : 0;
    close(fd);
    return err;
}
