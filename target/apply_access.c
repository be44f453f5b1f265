/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IET's access files: from the configuration to acl_files.c, which knows what they mean; and from
 * the files, when somebody changes them: IET reads them at each login, so whoever edits them
 * expects that it counts.  A file that is gone or does not hold leaves the rules as they were.
 * Main only, but for the look at the files, which is a helper's.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/helper.h"
#include "base/log.h"
#include "base/opener.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "target/apply_access.h"
#include "target/model.h"

/* Both count them alike. */
_Static_assert((int)CONF_INITIATORS_ALLOW == (int)ACL_INITIATORS_ALLOW &&
                   (int)CONF_INITIATORS_DENY == (int)ACL_INITIATORS_DENY &&
                   (int)CONF_TARGETS_ALLOW == (int)ACL_TARGETS_ALLOW,
               "access files");

int
apply_access_check(enum conf_access_file which, const char *target, const char *entries, char *err,
                   size_t errsize, char *warn, size_t warnsize, void *arg)
{
    struct acl_files *f = acl_files_new(false);
    (void)arg;
    int rc = acl_files_add(f, (enum acl_file)which, target, entries, err, errsize, warn, warnsize);
    acl_files_free(f);
    return rc;
}

#define SETTLE_MS 100u

/* By what a changed file is known without reading it. */
struct stamp {
    dev_t dev;
    ino_t ino;
    off_t size;
    struct timespec mtim, ctim;
};

static struct {
    char *path; /* NULL: not given */
    struct conf_access have;
    struct stamp stamp; /* zero: not looked at yet */
    int error;          /* of the last look; it was told */
} files[CONF_ACCESS_FILES];

static struct look {
    struct helper_job job;
    bool busy, stale; /* stale: another configuration came meanwhile */
    struct one {
        char *path, *text; /* text NULL: as it was, or error */
        size_t len;
        struct stamp stamp;
        int error;
    } v[CONF_ACCESS_FILES];
} look;

static void
copy_lines(struct conf_access *to, const struct conf_access *from)
{
    to->lines = xcalloc(from->n ? from->n : 1, sizeof *to->lines);
    for (to->n = 0; to->n < from->n; to->n++) {
        const struct conf_access_line *l = &from->lines[to->n];
        to->lines[to->n] = (struct conf_access_line){
            {to->path, l->pos.line, l->pos.col}, xstrdup(l->target), xstrdup(l->entries)};
    }
}

static void
put_in_force(void)
{
    struct acl_files *f = NULL;
    char err[256];

    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        if (!files[i].path)
            continue;
        if (!f)
            f = acl_files_new(false);
        acl_files_exists(f, (enum acl_file)i);
        for (unsigned k = 0; k < files[i].have.n; k++) {
            const struct conf_access_line *l = &files[i].have.lines[k];
            if (acl_files_add(f, (enum acl_file)i, l->target, l->entries, err, sizeof err, NULL,
                              0) < 0)
                log_abort("checked configuration does not hold: %s", err);
        }
    }
    acl_files_free(model.files);
    model.files = f;
    list_each(it, &model.targets)
        model_touch(container_of(it, struct model_target, link));
}

const char *
apply_access_path(enum conf_access_file which)
{
    return files[which].path;
}

void
apply_access(const struct conf *c)
{
    worker_assert_owner(model.main);
    look.stale = true;
    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        const struct conf_access *a = &c->access[i];
        char *was = files[i].path;
        conf_access_fini(&files[i].have);
        memset(&files[i], 0, sizeof files[i]);
        if (a->path) {
            files[i].path = xstrdup(a->path);
            files[i].have.path = files[i].path;
            copy_lines(&files[i].have, a);
            (void)opener_permit(a->path); /* else the look fails, and is told */
        }
        free(was);
    }
    put_in_force();
}

/* --- looking --------------------------------------------------------------------------------- */

static bool
same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool
same_stamp(const struct stamp *a, const struct stamp *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
           same_time(&a->mtim, &b->mtim) && same_time(&a->ctim, &b->ctim);
}

static int
read_all(int fd, struct one *o)
{
    char *text = xmalloc(CONF_ACCESS_MAX + 1);
    size_t n = 0;
    ssize_t got;

    while ((got = read(fd, text + n, CONF_ACCESS_MAX + 1 - n)) > 0)
        n += (size_t)got;
    int rc = got < 0 ? -errno : n > CONF_ACCESS_MAX ? -EFBIG : 0;
    if (rc < 0) {
        free(text);
        return rc;
    }
    o->text = text;
    o->len = n;
    return 0;
}

static int
stamp_of(int fd, struct stamp *out)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) /* a pipe reads as empty, by chance */
        return -EINVAL;
    *out = (struct stamp){st.st_dev, st.st_ino, st.st_size, st.st_mtim, st.st_ctim};
    return 0;
}

static void
look_at(struct one *o)
{
    struct stamp now, later;
    int fd = opener_open(o->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);

    o->error = fd < 0 ? fd : stamp_of(fd, &now);
    if (o->error == 0 && !same_stamp(&now, &o->stamp)) {
        o->error = read_all(fd, o);
        /* an editor may have emptied it and not have written yet: the next look will see */
        clock_pause_ms(SETTLE_MS);
        if (o->error == 0 && (stamp_of(fd, &later) < 0 || !same_stamp(&now, &later))) {
            free(o->text);
            o->text = NULL;
        } else {
            o->stamp = now;
        }
    }
    if (fd >= 0)
        close(fd);
}

static void
job_look(struct helper_job *job)
{
    struct look *l = container_of(job, struct look, job);
    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        if (l->v[i].path)
            look_at(&l->v[i]);
    }
}

static void
tell(const struct conf_report *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        const struct conf_msg *m = &r->v[i];
        log_event(m->is_error ? LL_ERROR : LL_WARN, LA_CONF, "access-file at=%s:%u:%u why=\"%s\"",
                  LOG_ESC(m->file), m->line, m->col, m->text);
    }
}

/* True: other rules than before. */
static bool
take(unsigned i, const struct one *o)
{
    struct conf_access now = {.path = files[i].path};
    struct conf_report r;

    conf_report_init(&r);
    bool ok = conf_access_text(&now, (enum conf_access_file)i, o->text, o->len, apply_checks(), &r);
    bool other = ok && !conf_access_same(&now, &files[i].have);
    if (!ok || other)
        tell(&r);
    conf_report_fini(&r);
    if (other) {
        conf_access_fini(&files[i].have);
        files[i].have = now;
        log_event(LL_NOTICE, LA_CONF, "access-file-read path=%s lines=%u", LOG_ESC(files[i].path),
                  now.n);
        return true;
    }
    conf_access_fini(&now);
    if (!ok)
        log_event(LL_ERROR, LA_CONF,
                  "access-file-refused path=%s why=\"the rules stay as they were\"",
                  LOG_ESC(files[i].path));
    return false;
}

static bool
judge(unsigned i, const struct one *o)
{
    if (o->error != files[i].error) {
        if (o->error)
            log_event(LL_ERROR, LA_CONF,
                      "access-file-unreadable path=%s why=\"%s; the rules stay as they were\"",
                      LOG_ESC(files[i].path), strerror(-o->error));
        else
            log_event(LL_NOTICE, LA_CONF, "access-file-readable path=%s", LOG_ESC(files[i].path));
        files[i].error = o->error;
    }
    if (o->error)
        return false;
    files[i].stamp = o->stamp;
    return o->text && take(i, o);
}

static void
on_looked(struct helper_job *job)
{
    struct look *l = container_of(job, struct look, job);
    char err[512];
    bool other = false;

    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        struct one *o = &l->v[i];
        if (o->path && !l->stale)
            other |= judge(i, o);
        free(o->path);
        free(o->text);
        memset(o, 0, sizeof *o);
    }
    l->busy = false;
    if (!other)
        return;
    put_in_force();
    if (model_publish(NULL, NULL, err, sizeof err) < 0)
        log_event(LL_ERROR, LA_CONF, "access-files why=\"%s\"", err);
}

void
apply_access_look(void)
{
    worker_assert_owner(model.main);
    if (look.busy)
        return;
    look.stale = false;
    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++) {
        if (!files[i].path)
            continue;
        look.v[i].path = xstrdup(files[i].path);
        look.v[i].stamp = files[i].stamp;
        look.busy = true;
    }
    if (!look.busy)
        return;
    look.job = (struct helper_job){.run = job_look, .done = on_looked, .w = model.main};
    helper_submit(&look.job);
}
