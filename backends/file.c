/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files as stores (type fileio): buffered, or O_DIRECT with opts.direct; sparse or not.  A block
 * device under the path is served too, by block.c's code.  Requests go through fdio.c; here are
 * open, probe and what they find out.  Helper threads.
 *
 * The descriptor stays open while the store is GONE: it keeps the inode from being used again,
 * so that "the same inode is back" cannot be said of another file.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "backends/backend.h"
#include "backends/store.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opener.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* What open has found so far. */
struct found {
    int fd, buffered;
    bool read_only;
    bool direct; /* O_DIRECT was to be had */
    struct stat st;
    struct statfs fs;
    uint32_t dio_off, dio_mem;
    char real_path[PATH_MAX];
};

/* --- in use by others ------------------------------------------------------------------------ */

static int
lock_refused(struct backend *be, int fd, struct flock *fl)
{
    char who[96], by[128] = "";
    struct stat st;
    if (fcntl(fd, F_OFD_GETLK, fl) == 0 && fl->l_type != F_UNLCK && fl->l_pid > 0)
        (void)snprintf(by, sizeof(by), " (process %ld)", (long)fl->l_pid);
    else if (fstat(fd, &st) == 0 && store_user(&st, who, sizeof(who)))
        (void)snprintf(by, sizeof(by), "; open in %s", who);
    be_set_error(be, "%s: in use: another program or another LUN holds its lock%s", be_path(be),
                 by);
    return -EBUSY;
}

/* The lock belongs to the open file description: it ends with the descriptor, and another LUN of
 * this daemon conflicts as another program does. Readers share. */
static int
lock_file(struct backend *be, const struct found *fo)
{
    struct flock fl = {.l_type = fo->read_only ? F_RDLCK : F_WRLCK, .l_whence = SEEK_SET};
    for (unsigned ms = 0; ms < LOCK_PATIENCE_MS; ms += LOCK_LOOK_MS) {
        if (fcntl(fo->fd, F_OFD_SETLK, &fl) == 0)
            return 0;
        if (errno != EAGAIN && errno != EACCES)
            break;
        clock_pause_ms(LOCK_LOOK_MS);
    }
    if (errno == EAGAIN || errno == EACCES)
        return lock_refused(be, fo->fd, &fl);
    log_event(LL_WARN, LA_BACKEND, "no-lock path=%s error=%d", LOG_ESC(be_path(be)), errno);
    return 0; /* a file system without locks */
}

static int
claim(struct backend *be, const struct found *fo)
{
    char who[PATH_MAX + 64];
    if (be->opts.allow_in_use)
        return 0;
    if (store_busy_file(fo->real_path, who, sizeof(who))) {
        be_set_error(be, "%s: in use: %s; free it first, or see allow-in-use in evtgt.conf(5)",
                     be_path(be), who);
        return -EBUSY;
    }
    return lock_file(be, fo);
}

/* --- O_DIRECT -------------------------------------------------------------------------------- */

/* Alignment by trial, where statx does not tell: a read at 512 works or it does not. */
static void
dio_try(struct found *fo)
{
    static const uint32_t sizes[] = {512, 1024, 2048, 4096};
    void *p;
    fo->dio_off = fo->dio_mem = 4096;
    if (posix_memalign(&p, 8192, 8192) != 0)
        return;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *at = (char *)p + sizes[i]; /* aligned to this size and no better */
        if (pread(fo->fd, at, sizes[i], sizes[i]) >= 0) {
            fo->dio_off = fo->dio_mem = sizes[i];
            break;
        }
    }
    free(p);
}

static bool
is_pow2(uint32_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

static void
dio_find(struct found *fo)
{
#ifdef STATX_DIOALIGN
    struct statx sx = {0};
    if (statx(fo->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0 &&
        (sx.stx_mask & STATX_DIOALIGN) != 0 && is_pow2(sx.stx_dio_offset_align) &&
        is_pow2(sx.stx_dio_mem_align)) {
        fo->dio_off = sx.stx_dio_offset_align;
        fo->dio_mem = sx.stx_dio_mem_align;
        return;
    }
#endif
    dio_try(fo);
}

/* The second descriptor, for what O_DIRECT cannot do. */
static int
open_buffered(struct backend *be, struct found *fo)
{
    struct stat st;
    bool ro;
    fo->buffered = store_open_path(be, 0, &ro);
    if (fo->buffered < 0)
        return fo->buffered;
    if (fstat(fo->buffered, &st) != 0)
        return -errno;
    if (st.st_dev == fo->st.st_dev && st.st_ino == fo->st.st_ino && ro == fo->read_only)
        return 0;
    be_set_error(be, "%s: replaced while it was opened", be_path(be));
    return -ESTALE;
}

/* --- open ------------------------------------------------------------------------------------ */

static int
open_fds(struct backend *be, struct found *fo)
{
    fo->direct = be->opts.direct;
    fo->fd = store_open_path(be, fo->direct ? O_DIRECT : 0, &fo->read_only);
    if (fo->fd == -EINVAL && fo->direct) {
        log_event(LL_NOTICE, LA_BACKEND, "no-direct path=%s", LOG_ESC(be_path(be)));
        fo->direct = false;
        fo->fd = store_open_path(be, 0, &fo->read_only);
    }
    if (fo->fd < 0)
        return fo->fd;
    if (fstat(fo->fd, &fo->st) != 0 || fstatfs(fo->fd, &fo->fs) != 0)
        return -errno;
    store_real_path(be, fo->fd, fo->real_path, sizeof(fo->real_path));
    if (!fo->direct)
        return 0;
    dio_find(fo);
    return open_buffered(be, fo);
}

/* The same file as at the first open? */
static int
check_same(struct backend *be, const struct stat *st)
{
    const struct store *s = be->priv;
    if (!S_ISREG(st->st_mode)) {
        be_set_error(be, "%s: neither a file nor a block device", be_path(be));
        return -EINVAL;
    }
    if (!s->is_known || (!s->is_block && s->dev == st->st_dev && s->ino == st->st_ino))
        return 0;
    be_set_error(be, "%s: another file (inode %" PRIuMAX ") is there, it was inode %" PRIuMAX,
                 be_path(be), (uintmax_t)st->st_ino, (uintmax_t)s->ino);
    return -ESTALE;
}

/* Asked beyond the end, where nothing can be lost: can holes be made here? */
static bool
can_punch(const struct found *fo)
{
    off_t off = (fo->st.st_size + 4095) & ~(off_t)4095;
    return !fo->read_only &&
           fallocate(fo->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, 4096) == 0;
}

/* ZERO_RANGE cannot be tried without leaving a trace, so by name; where the name promises too
 * much (ext4 without extents) the first request finds out and writes zeros. */
static bool
can_zero_range(const struct found *fo)
{
    switch ((unsigned long)fo->fs.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
        return true;
    default:
        return false;
    }
}

static bool
is_memory_fs(const struct found *fo)
{
    return fo->fs.f_type == TMPFS_MAGIC || fo->fs.f_type == RAMFS_MAGIC;
}

static bool
is_inline(const struct found *fo)
{
    return is_memory_fs(fo) && !fo->direct;
}

/* May READ_REF lend its pages? A read fault in a hole of a file in memory would allocate it. */
static void
judge_holes(struct backend *be, const struct stat *st)
{
    bool holes = (uint64_t)st->st_blocks * 512 < (uint64_t)st->st_size;
    atomic_store_explicit(&be->no_lend, holes, memory_order_relaxed);
}

static void
fill_info(const struct backend *be, const struct found *fo, struct be_info *in)
{
    uint32_t fs_block = is_pow2((uint32_t)fo->st.st_blksize) ? (uint32_t)fo->st.st_blksize : 4096;
    memset(in, 0, sizeof(*in));
    in->block_size = be->opts.block_size != 0 ? be->opts.block_size : 512;
    in->size = (uint64_t)fo->st.st_size - (uint64_t)fo->st.st_size % in->block_size;
    /* Large st_blksize (ZFS, NFS) is a wish for transfers, not what a small write costs. */
    in->phys_block_size = fs_block > 4096 ? 4096 : fs_block;
    if (in->phys_block_size < in->block_size)
        in->phys_block_size = in->block_size;
    in->mem_align = fo->direct ? fo->dio_mem : 1;
    in->rotational = block_is_rotational(fo->st.st_dev);
    in->read_only = fo->read_only;
    in->caps = BE_CAP_MAP;
    if (can_punch(fo)) {
        in->caps |= BE_CAP_DISCARD;
        in->discard_gran = fs_block > in->block_size ? fs_block : in->block_size;
    }
    if (can_zero_range(fo))
        in->caps |= BE_CAP_ZERO;
    if (is_inline(fo))
        in->caps |= BE_CAP_READ_REF | BE_CAP_WRITE_AT_ONCE;
    (void)snprintf(in->kind, sizeof(in->kind), "file");
}

static int
publish(struct backend *be, const struct found *fo)
{
    struct store *s = be->priv;
    struct be_info in;
    fill_info(be, fo, &in);
    if (in.size == 0) {
        be_set_error(be, "%s: %" PRIuMAX " bytes are less than one block", be_path(be),
                     (uintmax_t)fo->st.st_size);
        return -EINVAL;
    }
    char *identity = NULL;
    if (asprintf(&identity, "file:%s", fo->real_path) < 0)
        return -ENOMEM;
    int err = be_publish(be, &in, identity);
    free(identity);
    if (err != 0)
        return err;
    s->is_known = true;
    s->is_block = false;
    s->dev = fo->st.st_dev;
    s->ino = fo->st.st_ino;
    atomic_store(&s->io.usable, in.size);
    s->is_shrunk = in.size < be_size(be);
    if ((in.caps & BE_CAP_ZERO) == 0)
        atomic_store(&s->io.no_zero_range, true);
    judge_holes(be, &fo->st);
    struct fdmap *map = is_inline(fo) ? fdmap_new(fo->fd, in.size, !fo->read_only) : NULL;
    fdio_attach(&s->io, &(struct fdio_fd){
                            .fd = fo->fd,
                            .buffered = fo->buffered,
                            .dio_off = fo->dio_off,
                            .dio_mem = fo->dio_mem,
                            .is_inline = is_inline(fo),
                            .is_nowait = !fo->direct,
                            .map = map,
                        });
    return 0;
}

static int
open_regular(struct backend *be)
{
    struct found fo = {.fd = -1, .buffered = -1};
    int err = open_fds(be, &fo);
    if (err == 0)
        err = check_same(be, &fo.st);
    if (err == 0)
        err = claim(be, &fo);
    if (err == 0)
        err = publish(be, &fo);
    if (err == 0)
        return 0;
    if (fo.buffered >= 0)
        close(fo.buffered);
    if (fo.fd >= 0)
        close(fo.fd);
    return err;
}

static int
file_open(struct backend *be)
{
    struct stat st;
    be_set_error(be, "%s", "");
    if (be->opts.path == NULL) {
        be_set_error(be, "a file store needs a path");
        return -EINVAL;
    }
    int err = store_stat_path(be, &st);
    if (err != 0) {
        be_set_error(be, "%s: %s", be_path(be), strerror(-err));
        return err;
    }
    if (S_ISBLK(st.st_mode))
        return block_open_device(be, be->opts.direct);
    err = check_same(be, &st); /* before an open that a FIFO would hang */
    if (err != 0)
        return err;
    err = open_regular(be);
    if (err != 0 && be->error[0] == '\0')
        be_set_error(be, "%s: %s", be_path(be), strerror(-err));
    return err;
}

/* --- probe ----------------------------------------------------------------------------------- */

static unsigned
file_gone(struct backend *be, int err, const char *why)
{
    atomic_store(&be->gone_err, err);
    if (be_state(be) == BE_GONE)
        return 0;
    be_set_error(be, "%s: %s", be_path(be), why);
    log_event(LL_ERROR, LA_BACKEND, "gone path=%s why=%s", LOG_ESC(be_path(be)), LOG_ESC(why));
    return BE_EV_GONE;
}

static unsigned
file_probe(struct backend *be)
{
    struct store *s = be->priv;
    const struct fdio_fd *ff = fdio_current(&s->io);
    struct stat there, held;
    if (s->is_block)
        return block_probe_device(be);
    int err = store_stat_path(be, &there);
    if (err != 0 && !store_is_absent(err))
        return 0; /* no answer is no verdict */
    if (err != 0)
        return file_gone(be, err, "no longer there");
    if (check_same(be, &there) != 0) {
        unsigned ev = file_gone(be, -ESTALE, "replaced by another file");
        (void)check_same(be, &there); /* its words are the better ones */
        return ev;
    }
    if (fstat(ff->fd, &held) != 0)
        return file_gone(be, -errno, strerror(errno));
    judge_holes(be, &held);
    if (ff->map != NULL)
        fdmap_idle(ff->map);
    unsigned ev = 0;
    if (be_state(be) == BE_GONE) {
        be_set_error(be, "%s", "");
        log_event(LL_NOTICE, LA_BACKEND, "came-back path=%s", LOG_ESC(be_path(be)));
        ev = BE_EV_CAME;
    }
    return ev | store_resize(be, (uint64_t)held.st_size);
}

const struct be_ops file_ops = {
    .type = "fileio",
    .init = store_init,
    .open = file_open,
    .close = store_close,
    .probe = file_probe,
    .submit = fdio_submit,
    .cancel = fdio_cancel,
    .release_ref = fdio_release_ref,
    .configure = store_configure,
    .destroy = store_destroy,
    .priv_size = sizeof(struct store),
};
