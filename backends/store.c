/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helpers of file.c and block.c; see store.h.
 */
#include "config.h"

#include "backends/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/opener.h"

int
store_stat_path(const struct backend *be, struct stat *st)
{
    int fd = opener_open(be_path(be), O_PATH | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int err = fstat(fd, st) == 0 ? 0 : -errno;
    close(fd);
    return err;
}

bool
store_is_absent(int err)
{
    return err == -ENOENT || err == -ENOTDIR || err == -ENXIO || err == -ENODEV || err == -ESTALE ||
           err == -ELOOP;
}

int
store_open_path(const struct backend *be, int open_flags, bool *read_only)
{
    *read_only = be->opts.read_only;
    if (!*read_only) {
        int fd = opener_open(be_path(be), O_RDWR | O_CLOEXEC | open_flags, 0);
        if (fd != -EROFS && fd != -EACCES)
            return fd;
        *read_only = true;
    }
    return opener_open(be_path(be), O_RDONLY | O_CLOEXEC | open_flags, 0);
}

unsigned
store_resize(struct backend *be, uint64_t now)
{
    struct store *s = be->priv;
    now -= now % be->info.block_size;
    uint64_t had = be_size(be);
    if (now > had) {
        /* First the store, then the announcement: what is announced can be read. */
        atomic_store(&s->io.usable, now);
        atomic_store(&be->size, now);
        s->is_shrunk = false;
        log_event(LL_NOTICE, LA_BACKEND, "grew path=%s from=%" PRIu64 " to=%" PRIu64,
                  LOG_ESC(be_path(be)), had, now);
        return BE_EV_GREW;
    }
    atomic_store(&s->io.usable, now);
    if (now == had || s->is_shrunk) {
        s->is_shrunk = now < had;
        return 0;
    }
    s->is_shrunk = true;
    be_set_error(be, "%s: shrank from %" PRIu64 " to %" PRIu64 " bytes; what is beyond fails",
                 be_path(be), had, now);
    log_event(LL_ERROR, LA_BACKEND, "shrank path=%s from=%" PRIu64 " to=%" PRIu64,
              LOG_ESC(be_path(be)), had, now);
    return BE_EV_SHRANK;
}

void
store_real_path(const struct backend *be, int fd, char *buf, size_t size)
{
    char link[32];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, buf, size - 1);
    if (n <= 0 || buf[0] != '/')
        (void)snprintf(buf, size, "%s", be_path(be));
    else
        buf[n] = '\0';
}

int
store_read_line(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, buf, size - 1);
    int err = errno;
    close(fd);
    if (n < 0)
        return -err;
    buf[n] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
    return (int)strlen(buf);
}

uint64_t
store_read_u64(const char *path, uint64_t fallback)
{
    char text[32], *end;
    if (store_read_line(path, text, sizeof(text)) <= 0 || text[0] < '0' || text[0] > '9')
        return fallback;
    errno = 0;
    uint64_t v = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' ? v : fallback;
}

void
store_init(struct backend *be)
{
    struct store *s = be->priv;
    fdio_init(&s->io);
}

void
store_close(struct backend *be)
{
    struct store *s = be->priv;
    fdio_detach(&s->io);
}

int
store_configure(struct backend *be, const char *key, const char *value)
{
    (void)value;
    if (key == NULL)
        return 0;
    be_set_error(be, "%s: there is no bsopts '%s'", be->ops->type, key);
    return -EINVAL;
}

void
store_destroy(struct backend *be)
{
    struct store *s = be->priv;
    fdio_fini(&s->io);
}
