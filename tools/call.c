/* SPDX-License-Identifier: BSD-2-Clause */
/* One request over the admin socket. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/dirs.h"
#include "base/pool.h"
#include "base/secret.h"
#include "tools/adm.h"

#define ANSWER_S   60 /* the daemon answers within 30 s, or says that it cannot */
#define ANSWER_MAX (64u << 20)

unsigned adm_control_port;
bool adm_unanswered;
void (*adm_no_daemon)(const char *path);

static void
socket_path(const char *given, struct sockaddr_un *sa)
{
    char *place = given && *given ? xstrdup(given) : dirs_admin_socket(adm_control_port);

    if (strlen(place) >= sizeof sa->sun_path)
        adm_die(EINVAL, "management path too long: %s", place);
    memcpy(sa->sun_path, place, strlen(place) + 1);
    free(place);
}

bool
adm_there(const char *given)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};

    socket_path(given, &sa);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool there = fd >= 0 && connect(fd, (const struct sockaddr *)&sa, sizeof sa) == 0;
    if (fd >= 0)
        close(fd);
    return there;
}

static int
dial(const char *given)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct timeval tv = {.tv_sec = ANSWER_S};
    const char *path = sa.sun_path;

    socket_path(given, &sa);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        adm_die(errno, "can't create a socket, %s", strerror(errno));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
    if (connect(fd, (const struct sockaddr *)&sa, sizeof sa) < 0) {
        if (errno == EACCES || errno == EPERM)
            adm_die(errno, "can't connect to the daemon at %s, %s; only root and its own user may",
                    path, strerror(errno));
        if (adm_no_daemon)
            adm_no_daemon(path);
        /* tgtadm's words first: scripts look for them */
        adm_die(ENOTCONN, "failed to send request hdr to tgt daemon, %s (no evtgtd answers at %s)",
                strerror(ENOTCONN), path);
    }
    return fd;
}

json_t *
adm_call(const char *socket, json_t *req)
{
    int fd = dial(socket);
    char *text = json_dumps(req, JSON_COMPACT), *buf = xmalloc(4096);
    size_t cap = 4096, n = 0, len;
    json_error_t je;

    if (!text)
        adm_die(ENOMEM, "out of memory");
    len = strlen(text);
    text[len++] = '\n';
    for (size_t off = 0; off < len;) {
        ssize_t k = send(fd, text + off, len - off, MSG_NOSIGNAL);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            adm_die(ENOTCONN, "failed to send request buf to tgt daemon, %s", strerror(errno));
        off += (size_t)k;
    }
    secret_wipe(text, len); /* accounts stand in requests; it has no end any more */
    free(text);
    adm_unanswered = true;
    while (!memchr(buf, '\n', n)) {
        if (n == cap) {
            if (cap >= ANSWER_MAX)
                adm_die(EINVAL, "the answer is too long");
            buf = xrealloc(buf, cap *= 2);
        }
        ssize_t k = recv(fd, buf + n, cap - n, 0);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            adm_die(errno == EAGAIN ? ETIMEDOUT : errno, "can't get the response, %s",
                    strerror(errno == EAGAIN ? ETIMEDOUT : errno));
        if (k == 0)
            adm_die(ENOTCONN, "the daemon closed the socket without an answer");
        n += (size_t)k;
    }
    close(fd);
    json_t *reply = json_loadb(buf, n, JSON_DISABLE_EOF_CHECK, &je);
    free(buf);
    if (!reply || !json_is_object(reply))
        adm_die(EINVAL, "the daemon's answer makes no sense");
    adm_unanswered = false;
    return reply;
}
