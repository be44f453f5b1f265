/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What root has granted, over restarts.  What was saved at the admin socket lies in the state
 * directory, which is the daemon's user's: a daemon that was taken over could write there what
 * root's opener would open at the next start.  So the opener keeps the list of what it was
 * permitted in a file that only root can read or write, beside that directory, and of what is saved
 * only those paths are permitted at a start that stand in the list or in the configuration file.
 * No seal by a key is needed where nobody else can write.  In the opener's process.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/opener.h"
#include "base/opener_priv.h"
#include "base/pool.h"

#define HEAD      "evtgt-granted 1\n"
#define BYTES_MAX ((off_t)64 << 20)

static char *file;

void
opener_granted(const char *path)
{
    free(file);
    file = xstrdup(path);
}

/* Entries are a digit (the flags), the path, and a NUL: paths may hold anything else. */
static int
take_text(char *text, size_t len)
{
    size_t at = sizeof HEAD - 1;
    if (len < at || memcmp(text, HEAD, at) != 0 || (len > at && text[len - 1] != '\0'))
        return -EBADMSG;
    while (at < len) {
        const char *entry = text + at;
        if (entry[0] < '0' || entry[0] > '1' || entry[1] == '\0')
            return -EBADMSG;
        permit_grant(entry + 1, (unsigned)(entry[0] - '0'));
        at += strlen(entry) + 1;
    }
    return 0;
}

static int
read_text(int fd, size_t len)
{
    char *text = xmalloc(len + 1);
    size_t got = 0;
    ssize_t n = 0;
    while (got < len && (n = read(fd, text + got, len - got)) > 0)
        got += (size_t)n;
    text[got] = '\0';
    int err = n < 0 ? -errno : take_text(text, got);
    free(text);
    return err;
}

int
granted_load(void)
{
    struct stat st;
    if (!file)
        return 0;
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    int err = 0;
    if (fstat(fd, &st) < 0)
        err = -errno;
    else if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) ||
             st.st_nlink != 1) /* whose owner would choose what root opens */
        err = -EPERM;
    else if (st.st_size > BYTES_MAX)
        err = -EFBIG;
    else
        err = read_text(fd, (size_t)st.st_size);
    close(fd);
    return err;
}

static void
put_entry(const char *path, unsigned flags, void *arg)
{
    FILE *f = arg;
    (void)fprintf(f, "%u%s", flags, path);
    (void)fputc('\0', f);
}

static int
write_file(const char *tmp)
{
    (void)unlink(tmp);
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) {
        int err = -errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    (void)fputs(HEAD, f);
    permit_each(put_entry, f);
    int err = fflush(f) != 0 || ferror(f) || fsync(fd) < 0 ? -EIO : 0;
    if (fclose(f) != 0 && err == 0)
        err = -EIO;
    return err;
}

int
granted_write(void)
{
    char tmp[PATH_MAX];
    if (!file)
        return 0;
    if (snprintf(tmp, sizeof tmp, "%s.new", file) >= (int)sizeof tmp)
        return -ENAMETOOLONG;
    int err = write_file(tmp);
    if (err == 0 && rename(tmp, file) < 0)
        err = -errno;
    if (err < 0)
        (void)unlink(tmp);
    return err;
}
