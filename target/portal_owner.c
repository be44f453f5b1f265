/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which program listens on an address: for the message of a portal that cannot be bound.  Reads
 * /proc in a child of the opener, because other users' programs are to be named as well.  What
 * cannot be read is left unsaid.
 */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/opener.h"
#include "target/target.h"

static pid_t daemon_pid;

/* The inode of the socket that listens on this port, at this address or at all; 0: none seen.
 * Lines of /proc/net/tcp and tcp6: sl, local address:port in hexadecimal (words in the host's byte
 * order), remote, state (0A: listening), ..., uid, timeout, inode (proc(5)). */
static unsigned long
listening_inode(const struct sockaddr_storage *sa)
{
    const struct sockaddr_in *in = (const void *)sa;
    const struct sockaddr_in6 *in6 = (const void *)sa;
    bool v6 = sa->ss_family == AF_INET6, any = sockaddr_is_wildcard(sa);
    char line[512], want[40], none[40] = "00000000000000000000000000000000", host[40];
    unsigned long inode = 0;

    for (unsigned i = 0; i < (v6 ? 4u : 1u); i++) {
        uint32_t word;
        memcpy(&word, v6 ? (const void *)(in6->sin6_addr.s6_addr + 4 * i) : &in->sin_addr, 4);
        (void)snprintf(want + 8 * i, 9, "%08X", word);
    }
    none[strlen(want)] = '\0';
    FILE *f = fopen(v6 ? "/proc/net/tcp6" : "/proc/net/tcp", "re");
    if (f == NULL)
        return 0;
    while (inode == 0 && fgets(line, sizeof line, f) != NULL) {
        unsigned port, state;
        unsigned long found;
        if (sscanf(line, " %*[0-9]: %39[0-9A-F]:%X %*s %X %*s %*s %*s %*s %*s %lu", host, &port,
                   &state, &found) != 4)
            continue;
        if (state == 0x0a && port == ntohs(in->sin_port) && /* sin6_port lies there as well */
            (any || strcmp(host, want) == 0 || strcmp(host, none) == 0))
            inode = found;
    }
    (void)fclose(f);
    return inode;
}

static bool
has_socket(const char *pid, const char *link)
{
    char path[64], to[64];
    bool found = false;
    (void)snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    DIR *d = opendir(path);
    if (d == NULL)
        return false;
    for (struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        ssize_t n = readlinkat(dirfd(d), e->d_name, to, sizeof to - 1);
        if (n <= 0)
            continue;
        to[n] = '\0';
        found = strcmp(to, link) == 0;
    }
    (void)closedir(d);
    return found;
}

static bool
find_owner(const struct sockaddr_storage *sa, char *buf, size_t size)
{
    char link[64], path[64], comm[32] = "?", self[24];
    bool found = false;
    unsigned long inode = listening_inode(sa);
    DIR *d = inode != 0 ? opendir("/proc") : NULL;

    if (d == NULL)
        return false;
    (void)snprintf(link, sizeof link, "socket:[%lu]", inode);
    (void)snprintf(self, sizeof self, "%d", (int)daemon_pid);
    for (struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        if (!isdigit((unsigned char)e->d_name[0]) || !has_socket(e->d_name, link))
            continue;
        found = true;
        (void)snprintf(path, sizeof path, "/proc/%.20s/comm", e->d_name);
        FILE *f = fopen(path, "re");
        if (f != NULL) {
            if (fgets(comm, sizeof comm, f) != NULL)
                comm[strcspn(comm, "\n")] = '\0';
            (void)fclose(f);
        }
        if (strcmp(e->d_name, self) == 0)
            (void)snprintf(buf, size, "another portal of this configuration");
        else
            (void)snprintf(buf, size, "%s (process %.20s)", comm, e->d_name);
    }
    (void)closedir(d);
    return found;
}

/* In the opener's child: the text as a file in memory. */
static int
serve_owner(const void *arg, size_t len)
{
    struct sockaddr_storage sa;
    char text[80];
    if (len != sizeof sa)
        return -EINVAL;
    memcpy(&sa, arg, sizeof sa);
    if ((sa.ss_family != AF_INET && sa.ss_family != AF_INET6) ||
        !find_owner(&sa, text, sizeof text))
        return -ENOENT;
    int fd = memfd_create("owner", MFD_CLOEXEC);
    ssize_t n = fd >= 0 ? pwrite(fd, text, strlen(text), 0) : -1;
    if (fd >= 0 && n < 0) {
        close(fd);
        fd = -1;
    }
    return fd >= 0 ? fd : -EIO;
}

void
portal_owner_init(void)
{
    daemon_pid = getpid();
    opener_serve(OPENER_PORT_OWNER, serve_owner, false);
}

bool
portal_owner(const struct sockaddr_storage *sa, char *buf, size_t size)
{
    int fd = opener_call(OPENER_PORT_OWNER, sa, sizeof *sa);
    if (fd < 0)
        return false;
    ssize_t n = pread(fd, buf, size - 1, 0);
    close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0;
}
