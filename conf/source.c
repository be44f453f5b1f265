/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file system as a source, and the names of the syntaxes.  Blocking; main before its loop, a
 * tool, or the opener's child.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/priv.h"

/* What is read may hold secrets: memory that is given back is wiped. */
char *
source_grow(char *p, size_t used, size_t size)
{
    char *q = xmalloc(size);
    if (used)
        memcpy(q, p, used);
    source_wipe_free(p, used);
    return q;
}

void
source_wipe_free(char *p, size_t n)
{
    if (p)
        secret_wipe(p, n);
    free(p);
}

/* All of fd; a pipe or device is ended by the limit. */
static int
slurp(int fd, size_t max, char **text, size_t *len)
{
    size_t cap = 4096, n = 0;
    char *buf = xmalloc(cap);

    for (;;) {
        ssize_t got = read(fd, buf + n, cap - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || n + (size_t)got > max) {
            int rc = got < 0 ? -errno : -EFBIG;
            source_wipe_free(buf, got < 0 ? n : n + (size_t)got);
            return rc;
        }
        if (got == 0)
            break;
        n += (size_t)got;
        if (n == cap)
            buf = source_grow(buf, n, cap *= 2);
    }
    *text = buf;
    *len = n;
    return 0;
}

static int
files_read(void *arg, const char *path, size_t max, char **text, size_t *len, struct conf_stat *st)
{
    struct stat s;
    int rc, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    (void)arg;
    if (fd < 0)
        return -errno;
    rc = fstat(fd, &s) < 0 ? -errno : slurp(fd, max, text, len);
    close(fd);
    if (rc == 0)
        *st = (struct conf_stat){S_ISREG(s.st_mode), s.st_mode & 07777, s.st_uid, s.st_gid};
    return rc;
}

void
conf_names_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

static int
not_hidden(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

static int
list_dir(const char *path, char ***names, size_t *n)
{
    struct dirent **v;
    struct stat st;
    int got = scandir(path, &v, not_hidden, alphasort);

    if (got < 0)
        return -errno;
    *names = xcalloc((size_t)got + 1, sizeof **names);
    *n = 0;
    for (int i = 0; i < got; i++) {
        char *file = xasprintf("%s/%s", path, v[i]->d_name);
        if (stat(file, &st) == 0 && S_ISREG(st.st_mode))
            (*names)[(*n)++] = file;
        else
            free(file);
        free(v[i]);
    }
    free(v);
    return 0;
}

static int
list_pattern(const char *pattern, char ***names, size_t *n)
{
    glob_t g;
    int rc = glob(pattern, 0, NULL, &g);

    if (rc != 0 && rc != GLOB_NOMATCH)
        return rc == GLOB_NOSPACE ? -ENOMEM : -EIO;
    size_t got = rc == 0 ? g.gl_pathc : 0;
    *names = xcalloc(got + 1, sizeof **names);
    for (*n = 0; *n < got; ++*n)
        (*names)[*n] = xstrdup(g.gl_pathv[*n]);
    if (rc == 0)
        globfree(&g);
    return 0;
}

static int
files_list(void *arg, const char *pattern, char ***names, size_t *n)
{
    struct stat st;

    (void)arg;
    if (stat(pattern, &st) == 0 && S_ISDIR(st.st_mode))
        return list_dir(pattern, names, n);
    return strpbrk(pattern, "*?[") ? list_pattern(pattern, names, n) : -ENOTDIR;
}

struct conf_source
conf_source_files(void)
{
    return (struct conf_source){files_read, files_list, NULL, geteuid()};
}

static const char *const syntaxes[] = {
    [CONF_SYNTAX_AUTO] = "auto",
    [CONF_SYNTAX_EVTGT] = "evtgt",
    [CONF_SYNTAX_TGT] = "tgt",
    [CONF_SYNTAX_IET] = "iet",
    [CONF_SYNTAX_LIO] = "lio",
    [CONF_SYNTAX_IET04] = "iet-0.4",
    [CONF_SYNTAX_IET_RULES] = "iet-rules",
};

const char *
conf_syntax_name(enum conf_syntax syntax)
{
    return syntaxes[syntax];
}

bool
conf_syntax_find(const char *name, enum conf_syntax *out)
{
    for (unsigned i = 0; i < sizeof syntaxes / sizeof *syntaxes; i++) {
        if (strcmp(name, syntaxes[i]) == 0) {
            *out = (enum conf_syntax)i;
            return true;
        }
    }
    return false;
}
