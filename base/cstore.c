/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control store on files of one directory: "r.NAME" holds a record, TEMP and NAME is one
 * being written, "lock" carries the OFD lock.  Writes go through one queue in the order of the
 * calls; whichever thread has a write to wait for does the first of the queue, so the order holds
 * between synchronous and asynchronous writers and nobody waits for a thread that is not there.
 *
 * A record file: 8 bytes of magic, length (be32), CRC32C over length and data, data.
 */
#include "config.h"

#include "base/cstore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/helper.h"
#include "base/list.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/secret.h"

#define HEAD_BYTES 16u
#define NAME_BYTES 200u
#define TEMP       "evtgt-new." /* removed at the start: no name that a disk may have */

static const uint8_t magic[8] = {'e', 'v', 't', 'g', 't', 'r', '0', '1'};

struct entry {
    struct list link;
    char name[NAME_BYTES + 1];
    bool remove;
    const void *data;
    size_t len;
    bool done; /* under cs->lock */
    int err;
    /* asynchronous ones */
    struct cstore *cs;
    struct helper_job job;
    void (*fn)(void *arg, int err);
    void *arg;
    uint8_t copy[];
};

struct cstore {
    int dirfd, lockfd;
    pthread_mutex_t lock;
    pthread_cond_t cond; /* an entry was done */
    struct list queue;
    bool busy;        /* a thread is writing the entry that was first */
    unsigned pending; /* asynchronous entries whose done has not run */
    int fail_after;
    struct helper_lane lane;
    struct cstore *left;
};

/* --- the directory --------------------------------------------------------------------------- */

static bool
name_ok(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= NAME_BYTES && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

/* A record that was being written when the daemon died never counted. */
static void
remove_leftovers(int dirfd)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    struct dirent *e;
    while ((e = readdir(d)) != NULL)
        if (strncmp(e->d_name, TEMP, strlen(TEMP)) == 0)
            unlinkat(dirfd, e->d_name, 0);
    closedir(d);
}

static int
open_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT || mkdir(dir, 0700) < 0)
        return fd;
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int parent = fd >= 0 ? openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (parent >= 0) {
        fsync(parent); /* records in a directory that is lost are lost */
        close(parent);
    }
    return fd;
}

static int
take_lock(int dirfd)
{
    struct flock fl = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = openat(dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -1;
    int rc = fcntl(fd, F_OFD_SETLK, &fl);
    for (unsigned ms = 0; rc < 0 && ms < LOCK_PATIENCE_MS; ms += LOCK_LOOK_MS) {
        if (errno != EACCES && errno != EAGAIN)
            break;
        clock_pause_ms(LOCK_LOOK_MS);
        rc = fcntl(fd, F_OFD_SETLK, &fl);
    }
    if (rc < 0) {
        int err = errno == EACCES || errno == EAGAIN ? EBUSY : errno;
        close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

struct cstore *
cstore_open_dir(const char *dir)
{
    int dirfd = open_dir(dir);
    if (dirfd < 0)
        return NULL;
    int lockfd = take_lock(dirfd);
    if (lockfd < 0) {
        int err = errno;
        close(dirfd);
        errno = err;
        return NULL;
    }
    remove_leftovers(dirfd);
    struct cstore *cs = xcalloc(1, sizeof *cs);
    cs->dirfd = dirfd;
    cs->lockfd = lockfd;
    pthread_mutex_init(&cs->lock, NULL);
    pthread_cond_init(&cs->cond, NULL);
    list_init(&cs->queue);
    cs->fail_after = -1;
    helper_lane_init(&cs->lane, 1);
    return cs;
}

/* --- giving it to another user --------------------------------------------------------------- */

static bool
is_ours(const char *name)
{
    return strcmp(name, "lock") == 0 || strncmp(name, "r.", 2) == 0 ||
           strncmp(name, TEMP, strlen(TEMP)) == 0;
}

/* Does fn with each name; its first result that is not 0. */
static int
each_name(const struct cstore *cs, int (*fn)(const struct cstore *cs, const char *name, void *arg),
          void *arg)
{
    int fd = openat(cs->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    int res = d ? 0 : -errno;
    if (!d && fd >= 0)
        close(fd);
    for (struct dirent *e; d && res == 0 && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            res = fn(cs, e->d_name, arg);
    }
    if (d)
        closedir(d);
    return res;
}

struct give {
    uid_t uid, was;
    gid_t gid;
    char *err;
    size_t errsize;
};

static int
check_name(const struct cstore *cs, const char *name, void *arg)
{
    const struct give *g = arg;
    (void)cs;
    if (is_ours(name))
        return 0;
    (void)snprintf(g->err, g->errsize,
                   "it holds other things (%.100s) and is not given to another user; choose an "
                   "empty directory, or chown it",
                   name);
    return -EPERM;
}

/* A name in a directory of another user may be a link to anything: only a plain file with this
 * one name, that belongs to root or to whose directory it was. */
static int
give_file(const struct cstore *cs, const char *name, void *arg)
{
    const struct give *g = arg;
    struct stat st;
    if (!is_ours(name))
        return 0;
    int fd = openat(cs->dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || errno == ELOOP ? 0 : -errno;
    int err = 0;
    if (fstat(fd, &st) < 0)
        err = -errno;
    else if (S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid != g->uid &&
             (st.st_uid == 0 || st.st_uid == g->was) && fchown(fd, g->uid, g->gid) < 0)
        err = -errno;
    close(fd);
    return err;
}

int
cstore_give(struct cstore *cs, uid_t uid, gid_t gid, char *err, size_t errsize)
{
    struct stat st;
    *err = '\0';
    if (fstat(cs->dirfd, &st) < 0)
        return -errno;
    struct give g = {.uid = uid, .gid = gid, .was = st.st_uid, .err = err, .errsize = errsize};
    /* a directory that is the user's may hold what it wants */
    int rc = st.st_uid == uid ? 0 : each_name(cs, check_name, &g);
    if (rc == 0 && st.st_uid != uid && fchown(cs->dirfd, uid, gid) < 0)
        rc = -errno;
    if (rc == 0)
        rc = each_name(cs, give_file, &g);
    if (rc < 0 && !*err)
        (void)snprintf(err, errsize, "%s", strerror(-rc));
    return rc;
}

/* --- one record ------------------------------------------------------------------------------ */

/* Reads up to len bytes; fewer only at the end of the file. Bytes or -errno. */
static ssize_t
read_full(int fd, void *p, size_t len)
{
    size_t got = 0;
    while (got < len) {
        ssize_t n = read(fd, (uint8_t *)p + got, len - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static int
write_full(int fd, const void *p, size_t len)
{
    size_t put = 0;
    while (put < len) {
        ssize_t n = write(fd, (const uint8_t *)p + put, len - put);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        put += (size_t)n;
    }
    return 0;
}

static void
head_make(uint8_t head[HEAD_BYTES], const void *data, size_t len)
{
    memcpy(head, magic, sizeof magic);
    put_be32(head + 8, (uint32_t)len);
    uint32_t crc = crc32c_add(CRC32C_INIT, head + 8, 4);
    crc32c_final(crc32c_add(crc, data, len), head + 12);
}

static int64_t
read_record(int fd, void **out)
{
    uint8_t head[HEAD_BYTES], want[HEAD_BYTES];
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    ssize_t n = read_full(fd, head, sizeof head);
    if (n < 0)
        return n;
    uint32_t len = get_be32(head + 8);
    if (n != (ssize_t)sizeof head || len > CSTORE_MAX || st.st_size != (off_t)(HEAD_BYTES + len))
        return -EBADMSG;
    void *data = xmalloc(len);
    n = read_full(fd, data, len);
    if (n != (ssize_t)len) {
        free(data);
        return n < 0 ? n : -EBADMSG;
    }
    head_make(want, data, len);
    if (memcmp(head, want, sizeof head) != 0) {
        free(data);
        return -EBADMSG;
    }
    *out = data;
    return len;
}

int64_t
cstore_read(struct cstore *cs, const char *name, void **out)
{
    char file[NAME_BYTES + 3];
    if (!name_ok(name))
        return -EINVAL;
    snprintf(file, sizeof file, "r.%s", name);
    int fd = openat(cs->dirfd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return -errno;
    int64_t n = read_record(fd, out);
    close(fd);
    return n;
}

int
cstore_each(struct cstore *cs, void (*fn)(const char *name, void *arg), void *arg)
{
    int fd = openat(cs->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        int err = errno;
        if (fd >= 0)
            close(fd);
        return -err;
    }
    struct dirent *e;
    while ((e = readdir(d)) != NULL)
        if (strncmp(e->d_name, "r.", 2) == 0 && name_ok(e->d_name + 2))
            fn(e->d_name + 2, arg);
    closedir(d);
    return 0;
}

/* False when the power has gone, in a test. */
static bool
step(struct cstore *cs)
{
    pthread_mutex_lock(&cs->lock);
    bool on = cs->fail_after != 0;
    if (cs->fail_after > 0)
        cs->fail_after--;
    pthread_mutex_unlock(&cs->lock);
    return on;
}

static int
write_temp(struct cstore *cs, int fd, const struct entry *e)
{
    uint8_t head[HEAD_BYTES];
    if (!step(cs))
        return -EIO;
    head_make(head, e->data, e->len);
    int err = write_full(fd, head, sizeof head);
    if (!err)
        err = write_full(fd, e->data, e->len);
    if (err)
        return err;
    if (!step(cs))
        return -EIO;
    return fdatasync(fd) < 0 ? -errno : 0;
}

static int
sync_dir(struct cstore *cs)
{
    if (!step(cs))
        return -EIO;
    return fsync(cs->dirfd) < 0 ? -errno : 0;
}

static int
remove_record(struct cstore *cs, const char *file)
{
    if (!step(cs))
        return -EIO;
    if (unlinkat(cs->dirfd, file, 0) < 0 && errno != ENOENT)
        return -errno;
    return sync_dir(cs);
}

/* Without cs->lock. */
static int
do_entry(struct cstore *cs, const struct entry *e)
{
    char file[NAME_BYTES + 3], temp[NAME_BYTES + sizeof TEMP];
    snprintf(file, sizeof file, "r.%s", e->name);
    snprintf(temp, sizeof temp, TEMP "%s", e->name);
    if (e->remove)
        return remove_record(cs, file);

    int fd = openat(cs->dirfd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    int err = write_temp(cs, fd, e);
    if (close(fd) < 0 && !err)
        err = -errno;
    if (!err && !step(cs))
        err = -EIO;
    if (!err && renameat(cs->dirfd, temp, cs->dirfd, file) < 0)
        err = -errno;
    if (err) {
        if (step(cs))
            unlinkat(cs->dirfd, temp, 0);
        return err;
    }
    return sync_dir(cs);
}

/* --- the queue ------------------------------------------------------------------------------- */

/* Under the lock, which is released meanwhile. The queue is not empty and nobody is busy. */
static void
do_first(struct cstore *cs)
{
    struct entry *e = container_of(list_pop(&cs->queue), struct entry, link);
    cs->busy = true;
    pthread_mutex_unlock(&cs->lock);
    int err = do_entry(cs, e);
    pthread_mutex_lock(&cs->lock);
    e->err = err;
    e->done = true;
    cs->busy = false;
    pthread_cond_broadcast(&cs->cond);
}

static void
wait_done(struct cstore *cs, const struct entry *e)
{
    pthread_mutex_lock(&cs->lock);
    while (!e->done) {
        if (cs->busy)
            pthread_cond_wait(&cs->cond, &cs->lock);
        else
            do_first(cs);
    }
    pthread_mutex_unlock(&cs->lock);
}

static int
check_args(const char *name, const void *data, size_t len)
{
    if (!name_ok(name) || (!data && len > 0))
        return -EINVAL;
    return len > CSTORE_MAX ? -EFBIG : 0;
}

static void
enqueue(struct cstore *cs, struct entry *e, const char *name, const void *data, size_t len)
{
    memcpy(e->name, name, strlen(name) + 1);
    e->remove = !data;
    e->data = data;
    e->len = len;
    pthread_mutex_lock(&cs->lock);
    list_add_tail(&cs->queue, &e->link);
    pthread_mutex_unlock(&cs->lock);
}

int
cstore_write_sync(struct cstore *cs, const char *name, const void *data, size_t len)
{
    int err = check_args(name, data, len);
    if (err)
        return err;
    struct entry *e = xcalloc(1, sizeof *e);
    enqueue(cs, e, name, data, len);
    wait_done(cs, e);
    err = e->err;
    free(e);
    return err;
}

static void
on_job_run(struct helper_job *job)
{
    struct entry *e = container_of(job, struct entry, job);
    wait_done(e->cs, e);
}

static void
on_job_done(struct helper_job *job)
{
    struct entry *e = container_of(job, struct entry, job);
    pthread_mutex_lock(&e->cs->lock);
    e->cs->pending--;
    pthread_mutex_unlock(&e->cs->lock);
    e->fn(e->arg, e->err);
    secret_wipe(e->copy, e->data ? e->len : 0); /* perhaps passwords */
    free(e);
}

void
cstore_write(struct cstore *cs, const char *name, const void *data, size_t len, struct worker *w,
             void (*done)(void *arg, int err), void *arg)
{
    int err = check_args(name, data, len);
    size_t keep = !err && data ? len : 0;
    struct entry *e = xcalloc(1, sizeof *e + keep);
    e->cs = cs;
    e->fn = done;
    e->arg = arg;
    e->err = err;
    e->done = err != 0; /* refused: nothing to wait for */
    e->job.run = on_job_run;
    e->job.done = on_job_done;
    e->job.w = w;
    e->job.lane = &cs->lane;
    if (keep > 0)
        memcpy(e->copy, data, keep);
    pthread_mutex_lock(&cs->lock);
    cs->pending++;
    pthread_mutex_unlock(&cs->lock);
    if (!err)
        enqueue(cs, e, name, data ? e->copy : NULL, keep);
    helper_submit(&e->job);
}

void
cstore_close(struct cstore *cs)
{
    static struct cstore *left_behind; /* main only */
    if (!cs)
        return;
    pthread_mutex_lock(&cs->lock);
    while (cs->busy || !list_is_empty(&cs->queue)) {
        if (cs->busy)
            pthread_cond_wait(&cs->cond, &cs->lock);
        else
            do_first(cs);
    }
    bool in_use = cs->pending > 0;
    pthread_mutex_unlock(&cs->lock);
    if (in_use) { /* the end of an asynchronous write comes back to it, or never */
        cs->left = left_behind;
        left_behind = cs;
        return;
    }
    close(cs->lockfd);
    close(cs->dirfd);
    pthread_cond_destroy(&cs->cond);
    pthread_mutex_destroy(&cs->lock);
    free(cs);
}

void
cstore_fail_after(struct cstore *cs, int steps)
{
    pthread_mutex_lock(&cs->lock);
    cs->fail_after = steps;
    pthread_mutex_unlock(&cs->lock);
}
