/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block devices as stores: type blockio (always O_DIRECT), and what fileio finds to be a device.
 * Opened O_EXCL, so that the kernel refuses what is mounted or held; sizes and limits from ioctls
 * and sysfs; known again by WWID, or by number and size where there is none.  Helper threads.
 *
 * A device that is GONE is closed, so that the kernel can let go of it, and opened anew when it
 * is back.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "backends/backend.h"
#include "backends/store.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/opener.h"

struct found {
    int fd, buffered;
    bool read_only;
    bool direct;
    dev_t rdev;
    uint64_t size; /* bytes */
    int lbs;       /* logical sector, bytes */
    unsigned pbs;  /* physical sector, bytes */
    bool has_wwid;
    char identity[PATH_MAX + 16];
};

/* --- sysfs ----------------------------------------------------------------------------------- */

/* /sys/dev/block/M:m/NAME, or for a partition what its disk has. Text length or -errno. */
static int
sys_line(dev_t dev, const char *name, char *buf, size_t size)
{
    static const char *const up[] = {"", "../"};
    char path[160];
    int n = -ENOENT;
    for (int i = 0; i < 2 && n <= 0; i++) {
        (void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s%s", major(dev), minor(dev),
                       up[i], name);
        n = store_read_line(path, buf, size);
    }
    return n;
}

static uint64_t
sys_u64(dev_t dev, const char *name)
{
    char text[32];
    if (sys_line(dev, name, text, sizeof(text)) <= 0)
        return 0;
    return strtoull(text, NULL, 10);
}

bool
block_is_rotational(dev_t dev)
{
    return sys_u64(dev, "queue/rotational") == 1;
}

/* WWID of the device, or of its disk and the partition's number; dm devices have an uuid. */
static bool
find_wwid(dev_t dev, char *buf, size_t size)
{
    static const char *const names[] = {"dm/uuid", "wwid", "device/wwid"};
    char text[256];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (sys_line(dev, names[i], text, sizeof(text)) <= 0)
            continue;
        char path[64];
        (void)snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/partition", major(dev),
                       minor(dev));
        uint64_t part = store_read_u64(path, 0);
        if (part != 0)
            (void)snprintf(buf, size, "wwid:%s-part%" PRIu64, text, part);
        else
            (void)snprintf(buf, size, "wwid:%s", text);
        return true;
    }
    return false;
}

/* A partition is what its disk is, but not its serial number: there may be others of the disk. */
static void
name_device(dev_t dev, struct be_ident *out)
{
    char dir[64], part[80];
    (void)snprintf(dir, sizeof(dir), "/sys/dev/block/%u:%u", major(dev), minor(dev));
    (void)snprintf(part, sizeof(part), "%s/partition", dir);
    bool is_part = store_read_u64(part, 0) != 0;
    (void)snprintf(part, sizeof(part), "%s/..", dir);
    store_ident(is_part ? part : dir, out);
    if (is_part)
        out->serial[0] = '\0';
}

/* --- open ------------------------------------------------------------------------------------ */

static int
open_fd(struct backend *be, struct found *fo)
{
    char who[PATH_MAX + 64];
    struct stat st;
    bool excl = !be->opts.allow_in_use;
    int err = store_stat_path(be, &st);
    if (err != 0)
        return err;
    if (excl && store_busy_device(st.st_rdev, who, sizeof(who))) {
        be_set_error(be, "%s: in use: %s; free it first, or see allow-in-use in evtgt.conf(5)",
                     be_path(be), who);
        return -EBUSY;
    }
    int flags = (excl ? O_EXCL : 0) | (fo->direct ? O_DIRECT : 0);
    fo->fd = store_open_path(be, flags, &fo->read_only);
    for (unsigned ms = 0; fo->fd == -EBUSY && ms < LOCK_PATIENCE_MS; ms += LOCK_LOOK_MS) {
        clock_pause_ms(LOCK_LOOK_MS);
        fo->fd = store_open_path(be, flags, &fo->read_only);
    }
    if (fo->fd == -EBUSY)
        be_set_error(be, "%s: in use: %s has it open exclusively", be_path(be),
                     store_user(&st, who, sizeof(who)) ? who : "another program or another LUN");
    if (fo->fd < 0)
        return fo->fd;
    if (fstat(fo->fd, &st) != 0)
        return -errno;
    fo->rdev = st.st_rdev;
    return S_ISBLK(st.st_mode) ? 0 : -ENOTBLK;
}

/* A second descriptor for memory or pieces that O_DIRECT would not take. Doing without is right
 * too: then such a request fails with -EINVAL. */
static void
open_buffered(struct backend *be, struct found *fo)
{
    struct stat st;
    bool ro;
    if (!fo->direct)
        return;
    fo->buffered = store_open_path(be, 0, &ro);
    if (fo->buffered >= 0 && (fstat(fo->buffered, &st) != 0 || st.st_rdev != fo->rdev)) {
        close(fo->buffered);
        fo->buffered = -1;
    }
}

static int
ask_device(struct backend *be, struct found *fo)
{
    int ro = 0;
    char real_path[PATH_MAX];
    if (ioctl(fo->fd, BLKGETSIZE64, &fo->size) != 0 || ioctl(fo->fd, BLKSSZGET, &fo->lbs) != 0 ||
        ioctl(fo->fd, BLKPBSZGET, &fo->pbs) != 0)
        return -errno;
    if (ioctl(fo->fd, BLKROGET, &ro) == 0 && ro != 0)
        fo->read_only = true;
    fo->has_wwid = find_wwid(fo->rdev, fo->identity, sizeof(fo->identity));
    if (fo->has_wwid)
        return 0;
    store_real_path(be, fo->fd, real_path, sizeof(real_path));
    (void)snprintf(fo->identity, sizeof(fo->identity), "block:%s", real_path);
    return 0;
}

static int
check_device(struct backend *be, const struct found *fo)
{
    const struct store *s = be->priv;
    uint32_t bs = be->opts.block_size;
    if (fo->lbs <= 0 || (bs != 0 && bs < (unsigned)fo->lbs)) {
        be_set_error(be, "%s: sectors of %d bytes cannot serve blocks of %" PRIu32, be_path(be),
                     fo->lbs, bs);
        return -EINVAL;
    }
    if (fo->size < (bs != 0 ? bs : (unsigned)fo->lbs)) {
        be_set_error(be, "%s: no medium, or no size", be_path(be));
        return -ENXIO;
    }
    if (!s->is_known)
        return 0;
    /* be_publish compares WWIDs; without one, number and size have to do. */
    if (!s->is_block || s->has_wwid != fo->has_wwid ||
        (!fo->has_wwid && (s->dev != fo->rdev || fo->size < be_size(be)))) {
        be_set_error(be, "%s: another device is there", be_path(be));
        return -ESTALE;
    }
    return 0;
}

static void
fill_info(const struct backend *be, const struct found *fo, struct be_info *in)
{
    memset(in, 0, sizeof(*in));
    in->block_size = be->opts.block_size != 0 ? be->opts.block_size : (uint32_t)fo->lbs;
    in->size = fo->size - fo->size % in->block_size;
    in->phys_block_size = fo->pbs > in->block_size ? fo->pbs : in->block_size;
    in->mem_align = fo->direct ? (uint32_t)fo->lbs : 1;
    in->rotational = block_is_rotational(fo->rdev);
    in->read_only = fo->read_only;
    in->caps = BE_CAP_ZERO; /* the kernel writes zeros where the device cannot */
    /* PUNCH_HOLE on a device promises zeros and so needs both commands. */
    if (!fo->read_only && sys_u64(fo->rdev, "queue/discard_max_bytes") > 0 &&
        sys_u64(fo->rdev, "queue/write_zeroes_max_bytes") > 0) {
        uint64_t gran = sys_u64(fo->rdev, "queue/discard_granularity");
        in->caps |= BE_CAP_DISCARD;
        in->discard_gran =
            gran > in->block_size && gran <= UINT32_MAX ? (uint32_t)gran : in->block_size;
    }
    (void)snprintf(in->kind, sizeof(in->kind), "block");
    name_device(fo->rdev, &in->device);
}

static int
publish(struct backend *be, const struct found *fo)
{
    struct store *s = be->priv;
    struct be_info in;
    fill_info(be, fo, &in);
    int err = be_publish(be, &in, fo->identity);
    if (err != 0)
        return err;
    s->is_known = true;
    s->is_block = true;
    s->dev = fo->rdev;
    s->has_wwid = fo->has_wwid;
    s->is_shrunk = in.size < be_size(be);
    atomic_store(&s->io.usable, in.size);
    fdio_attach(&s->io, &(struct fdio_fd){
                            .fd = fo->fd,
                            .buffered = fo->buffered,
                            .dio_off = fo->direct ? (uint32_t)fo->lbs : 0,
                            .dio_mem = fo->direct ? (uint32_t)fo->lbs : 0,
                            .is_nowait = !fo->direct,
                        });
    return 0;
}

int
block_open_device(struct backend *be, bool direct)
{
    struct found fo = {.fd = -1, .buffered = -1, .direct = direct};
    int err = open_fd(be, &fo);
    if (err == 0)
        err = ask_device(be, &fo);
    if (err == 0)
        err = check_device(be, &fo);
    if (err == 0)
        open_buffered(be, &fo);
    if (err == 0)
        err = publish(be, &fo);
    if (err == 0)
        return 0;
    if (fo.buffered >= 0)
        close(fo.buffered);
    if (fo.fd >= 0)
        close(fo.fd);
    if (be->error[0] == '\0')
        be_set_error(be, "%s: %s", be_path(be), strerror(-err));
    return err;
}

static int
block_open(struct backend *be)
{
    struct stat st;
    be_set_error(be, "%s", "");
    if (be->opts.path == NULL) {
        be_set_error(be, "a block store needs a path");
        return -EINVAL;
    }
    int err = store_stat_path(be, &st);
    if (err == 0 && !S_ISBLK(st.st_mode))
        err = -ENOTBLK;
    if (err == 0)
        return block_open_device(be, true);
    be_set_error(be, "%s: %s", be_path(be),
                 err == -ENOTBLK ? "no block device; bs-type fileio serves files" : strerror(-err));
    return err;
}

/* --- probe ----------------------------------------------------------------------------------- */

static unsigned
device_gone(struct backend *be, int err)
{
    atomic_store(&be->gone_err, err);
    be_set_error(be, "%s: no longer there", be_path(be));
    log_event(LL_ERROR, LA_BACKEND, "gone path=%s", LOG_ESC(be_path(be)));
    /* First the state: whoever still gets past it finds no descriptor. */
    atomic_store_explicit(&be->state, BE_GONE, memory_order_release);
    store_close(be);
    return BE_EV_GONE;
}

static unsigned
device_back(struct backend *be)
{
    const struct store *s = be->priv;
    uint64_t had = be_size(be);
    be_set_error(be, "%s", "");
    int err = block_open_device(be, strcmp(be->ops->type, "blockio") == 0 || be->opts.direct);
    if (err != 0) {
        atomic_store(&be->gone_err, err);
        return 0;
    }
    log_event(LL_NOTICE, LA_BACKEND, "came-back path=%s", LOG_ESC(be_path(be)));
    return BE_EV_CAME | (be_size(be) > had ? BE_EV_GREW : 0) | (s->is_shrunk ? BE_EV_SHRANK : 0);
}

unsigned
block_probe_device(struct backend *be)
{
    struct store *s = be->priv;
    struct stat st;
    uint64_t size = 0;
    int err = store_stat_path(be, &st);
    if (err != 0 && !store_is_absent(err))
        return 0;
    if (be_state(be) == BE_GONE)
        return err == 0 ? device_back(be) : 0;
    if (err != 0 || !S_ISBLK(st.st_mode) || st.st_rdev != s->dev)
        return device_gone(be, err != 0 ? err : -ESTALE);
    if (ioctl(fdio_current(&s->io)->fd, BLKGETSIZE64, &size) != 0 || size == 0)
        return device_gone(be, -ENXIO);
    return store_resize(be, size);
}

const struct be_ops block_ops = {
    .type = "blockio",
    .init = store_init,
    .open = block_open,
    .close = store_close,
    .probe = block_probe_device,
    .submit = fdio_submit,
    .cancel = fdio_cancel,
    .configure = store_configure,
    .destroy = store_destroy,
    .priv_size = sizeof(struct store),
};
