/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Block devices, by loop devices over files.  Skipped (77) where there are none: in containers,
 * or without root.
 */
#include "config.h"

#include "tests/unit/be_unit.h"

#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>

#define SIZE (16 * MIB)

/* Loop device over a file: its path and the descriptor that keeps it (autoclear). */
struct loop {
    char dev[32], backing[128];
    int fd;
    dev_t rdev;
};

/* 0 or -errno. */
static int
loop_try(struct loop *l, const char *backing, unsigned flags)
{
    int ctl = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (ctl < 0)
        return -errno;
    int file = open(backing, O_RDWR | O_CLOEXEC), err = -EBUSY;
    for (int attempt = 0; attempt < 10 && err == -EBUSY; attempt++) {
        int n = ioctl(ctl, LOOP_CTL_GET_FREE);
        (void)snprintf(l->dev, sizeof(l->dev), "/dev/loop%d", n);
        l->fd = n < 0 ? -1 : open(l->dev, O_RDWR | O_CLOEXEC);
        struct loop_config conf = {.fd = (uint32_t)file,
                                   .info = {.lo_flags = LO_FLAGS_AUTOCLEAR | flags}};
        err = l->fd < 0 || ioctl(l->fd, LOOP_CONFIGURE, &conf) != 0 ? -errno : 0;
        if (err != 0 && l->fd >= 0)
            close(l->fd);
    }
    close(file);
    close(ctl);
    struct stat st;
    if (err == 0 && fstat(l->fd, &st) == 0)
        l->rdev = st.st_rdev;
    (void)snprintf(l->backing, sizeof(l->backing), "%s", backing);
    return err;
}

static struct loop
loop_over(const char *name)
{
    struct loop l;
    CU_ASSERT_EQUAL_FATAL(loop_try(&l, bu_file(bu_dir, name, SIZE), 0), 0);
    return l;
}

static void
loop_end(struct loop *l)
{
    close(l->fd); /* the last one clears it */
    bu_turn_ms(10);
}

static int
try_open(struct be_opts o, char *error, size_t size)
{
    char err[128];
    struct backend *be = be_new(&o, err, sizeof(err));
    CU_ASSERT_PTR_NOT_NULL_FATAL(be);
    int r = be_open(be);
    (void)snprintf(error, size, "%s", be_error(be));
    be_close(be);
    be_put(be);
    bu_turn_ms(5);
    return r;
}

static void
file_bytes(const char *path, uint64_t off, void *buf, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL(pread(fd, buf, len, (off_t)off), (ssize_t)len);
    close(fd);
}

static void
check_data(struct backend *be, const struct loop *l)
{
    uint8_t *p = bu_mem(MIB, 1), *q = bu_mem(MIB, 2);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 4 * MIB, p, MIB, 0), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    file_bytes(l->backing, 4 * MIB, q, MIB);
    CU_ASSERT_EQUAL(memcmp(p, q, MIB), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 512, p, 512, IO_FUA), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, q, 4096, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q + 512, 512), 0);
    CU_ASSERT_TRUE(bu_is_zero(q, 512));
    /* odd memory, odd pieces */
    struct iovec iov[2] = {{p + 4, 1000}, {p + 1004, 24}};
    struct bu_io b = {.io = {.iov = iov, .niov = 2}};
    bu_start(be, &b, IO_WRITE, 8192, NULL, 1024, IO_FUA);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 8192, q, 1024, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p + 4, q, 1024), 0);

    CU_ASSERT_EQUAL(bu_do(be, IO_ZERO, 4 * MIB + 4096, NULL, 512 * KIB, IO_FUA), 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 4 * MIB, q, MIB, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, 4096), 0);
    CU_ASSERT_TRUE(bu_is_zero(q + 4096, 512 * KIB));
    CU_ASSERT_EQUAL(memcmp(p + 516 * KIB, q + 516 * KIB, MIB - 516 * KIB), 0);
    struct be_info in;
    be_info(be, &in);
    if ((in.caps & BE_CAP_DISCARD) != 0) {
        CU_ASSERT_EQUAL(bu_do(be, IO_DISCARD, 4 * MIB, NULL, MIB, IO_FUA), 0);
        CU_ASSERT_EQUAL(bu_do(be, IO_READ, 4 * MIB, q, MIB, 0), 0);
        CU_ASSERT_TRUE(bu_is_zero(q, MIB));
    } else {
        printf("(no discard here) ");
    }
    struct io_extent ext;
    b = (struct bu_io){.io = {.ext = &ext, .ext_max = 1}};
    bu_start(be, &b, IO_MAP, 0, NULL, MIB, 0);
    CU_ASSERT_EQUAL(bu_wait(&b), 0);
    CU_ASSERT_EQUAL(b.io.ext_n, 1);
    CU_ASSERT_EQUAL(ext.len, MIB);
    CU_ASSERT_TRUE(ext.mapped);
    free(p);
    free(q);
}

static void
test_data(void)
{
    struct loop l = loop_over("data");
    for (int i = 0; i < 3; i++) {
        struct backend *be = bu_open(i == 0 ? "blockio" : "fileio", l.dev, i == 2, NULL);
        struct be_info in;
        be_info(be, &in);
        CU_ASSERT_STRING_EQUAL(in.kind, "block");
        CU_ASSERT_EQUAL(in.size, SIZE);
        CU_ASSERT_EQUAL(in.block_size, 512);
        CU_ASSERT_FALSE(in.read_only);
        CU_ASSERT_PTR_NOT_NULL(strstr(be_identity(be), "loop"));
        check_data(be, &l);
        bu_close(be);
        uint8_t *z = bu_mem(MIB, 0);
        memset(z, 0, MIB);
        CU_ASSERT_EQUAL(pwrite(l.fd, z, MIB, 0), MIB);
        CU_ASSERT_EQUAL(fsync(l.fd), 0);
        free(z);
    }
    loop_end(&l);
}

static void
test_block_sizes(void)
{
    char e[256];
    struct loop l = loop_over("sizes");
    struct backend *be = bu_open_opts(&(struct be_opts){.type = "blockio", .path = l.dev});
    struct be_info in;
    be_info(be, &in);
    CU_ASSERT_EQUAL(in.block_size, 512); /* the device's own */
    bu_close(be);
    be = bu_open_opts(&(struct be_opts){.type = "blockio", .path = l.dev, .block_size = 4096});
    be_info(be, &in);
    CU_ASSERT_EQUAL(in.block_size, 4096);
    CU_ASSERT_TRUE(in.phys_block_size >= 4096);
    bu_close(be);
    if (ioctl(l.fd, LOOP_SET_BLOCK_SIZE, 4096ul) == 0) {
        CU_ASSERT_EQUAL(
            try_open((struct be_opts){.type = "blockio", .path = l.dev, .block_size = 512}, e,
                     sizeof(e)),
            -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(e, "4096"));
        be = bu_open_opts(&(struct be_opts){.type = "blockio", .path = l.dev});
        be_info(be, &in);
        CU_ASSERT_EQUAL(in.block_size, 4096);
        bu_close(be);
    }
    loop_end(&l);
}

static void
test_in_use(void)
{
    char e[256], dir[128], cmd[256];
    struct loop l = loop_over("use");
    struct be_opts o = {.type = "blockio", .path = l.dev};
    /* the backing file, seen from the file store */
    CU_ASSERT_EQUAL(try_open((struct be_opts){.path = l.backing}, e, sizeof(e)), -EBUSY);
    CU_ASSERT_PTR_NOT_NULL(strstr(e, l.dev));
    /* twice */
    struct backend *be = bu_open_opts(&o);
    CU_ASSERT_EQUAL(try_open(o, e, sizeof(e)), -EBUSY);
    CU_ASSERT_PTR_NOT_NULL(strstr(e, "exclusively"));
    o.type = "fileio";
    CU_ASSERT_EQUAL(try_open(o, e, sizeof(e)), -EBUSY);
    o.allow_in_use = true;
    CU_ASSERT_EQUAL(try_open(o, e, sizeof(e)), 0);
    o.allow_in_use = false;
    bu_close(be);
    /* mounted */
    (void)snprintf(dir, sizeof(dir), "%s/m n t", bu_dir);
    (void)snprintf(cmd, sizeof(cmd), "mkfs.ext4 -q -F %s >/dev/null 2>&1", l.dev);
    (void)mkdir(dir, 0700);
    if (system(cmd) == 0 && mount(l.dev, dir, "ext4", 0, "") == 0) {
        CU_ASSERT_EQUAL(try_open(o, e, sizeof(e)), -EBUSY);
        CU_ASSERT_PTR_NOT_NULL(strstr(e, "mounted on"));
        CU_ASSERT_PTR_NOT_NULL(strstr(e, dir)); /* mountinfo has its blanks as digits */
        CU_ASSERT_PTR_NOT_NULL(strstr(e, dir));
        CU_ASSERT_EQUAL(umount(dir), 0);
    } else {
        printf("(no mount) ");
    }
    loop_end(&l);
}

/* A full file system with a log: FUA writes find no space in the one half or the other. */
static void
test_full_ext4(void)
{
    char dir[128], path[160], cmd[256];
    struct loop l = loop_over("ext4");
    (void)snprintf(dir, sizeof(dir), "%s/mnt4", bu_dir);
    (void)snprintf(path, sizeof(path), "%s/store", dir);
    (void)snprintf(cmd, sizeof(cmd), "mkfs.ext4 -q -F %s >/dev/null 2>&1", l.dev);
    (void)mkdir(dir, 0700);
    if (system(cmd) != 0 || mount(l.dev, dir, "ext4", 0, "") != 0) {
        printf("(no mount) ");
        loop_end(&l);
        return;
    }
    uint8_t *p = bu_mem(MIB, 1);
    for (int direct = 0; direct < 2; direct++) {
        bu_touch(path);
        CU_ASSERT_EQUAL(truncate(path, 64 * MIB), 0);
        struct backend *be = bu_open("fileio", path, direct != 0, NULL);
        int r = 0;
        uint64_t off = 0;
        for (; r == 0 && off < 64 * MIB; off += MIB)
            r = bu_do(be, IO_WRITE, off, p, MIB, IO_FUA);
        CU_ASSERT_EQUAL(r, -ENOSPC);
        CU_ASSERT_TRUE(off > 4 * MIB);
        CU_ASSERT_FALSE(be_flush_failed(be));
        CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
        CU_ASSERT_EQUAL(bu_do(be, IO_DISCARD, 0, NULL, 2 * MIB, 0), 0);
        CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
        CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, MIB, IO_FUA), 0);
        bu_close(be);
        (void)unlink(path);
    }
    for (int i = 0; i < 100 && umount(dir) != 0; i++)
        bu_turn_ms(5);
    free(p);
    loop_end(&l);
}

/* A file system on sectors of 4096 bytes, O_DIRECT, and a LUN with blocks of 512: what is not
 * aligned goes through the page cache, beside what is. */
static void
test_direct_4k(void)
{
    char dir[128], path[160], cmd[256];
    struct loop l = loop_over("dio4k");
    (void)snprintf(dir, sizeof(dir), "%s/mntd", bu_dir);
    (void)snprintf(path, sizeof(path), "%s/store", dir);
    (void)snprintf(cmd, sizeof(cmd), "mkfs.ext4 -q -F %s >/dev/null 2>&1", l.dev);
    (void)mkdir(dir, 0700);
    if (ioctl(l.fd, LOOP_SET_BLOCK_SIZE, 4096ul) != 0 || system(cmd) != 0 ||
        mount(l.dev, dir, "ext4", 0, "") != 0) {
        printf("(no mount) ");
        loop_end(&l);
        return;
    }
    bu_touch(path);
    CU_ASSERT_EQUAL(truncate(path, 4 * MIB), 0);
    struct backend *be = bu_open("fileio", path, true, NULL);
    struct be_info in;
    be_info(be, &in);
    CU_ASSERT_EQUAL(in.block_size, 512);
    uint8_t *model = calloc(1, 4 * MIB), *p = bu_mem(MIB, 3), *q = bu_mem(MIB, 4);
    uint32_t x = 99;
    for (int i = 0; i < 300; i++) {
        x = x * 1664525u + 1013904223u;
        uint64_t unit = i % 2 == 0 ? 512 : 4096;
        uint64_t len = unit * (1 + (x >> 8) % 16), off = (x >> 12) % (4 * MIB - len) / unit * unit;
        CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, off, p + (x >> 5) % 8 * 4096, len, 0), 0);
        memcpy(model + off, p + (x >> 5) % 8 * 4096, len);
        uint64_t from = off / 4096 * 4096, n = (off + len + 4095) / 4096 * 4096 - from;
        CU_ASSERT_EQUAL(bu_do(be, IO_READ, from, q, n, 0), 0); /* direct */
        CU_ASSERT_EQUAL(memcmp(q, model + from, n), 0);
        CU_ASSERT_EQUAL(bu_do(be, IO_READ, off, q, len, 0), 0);
        CU_ASSERT_EQUAL(memcmp(q, model + off, len), 0);
    }
    CU_ASSERT_EQUAL(bu_do(be, IO_FLUSH, 0, NULL, 0, 0), 0);
    bu_close(be);
    for (int i = 0; i < 100 && umount(dir) != 0; i++)
        bu_turn_ms(5);
    free(model);
    free(p);
    free(q);
    loop_end(&l);
}

static void
test_grow(void)
{
    uint8_t *p = bu_mem(4096, 1);
    struct loop l = loop_over("grow");
    struct backend *be = bu_open("blockio", l.dev, true, NULL);
    CU_ASSERT_EQUAL(be_probe(be), 0);
    CU_ASSERT_EQUAL(truncate(l.backing, 2 * SIZE), 0);
    CU_ASSERT_EQUAL(ioctl(l.fd, LOOP_SET_CAPACITY, 0), 0);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_GREW);
    CU_ASSERT_EQUAL(be_size(be), 2 * SIZE);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 2 * SIZE - 4096, p, 4096, IO_FUA), 0);
    CU_ASSERT_EQUAL(truncate(l.backing, SIZE), 0);
    CU_ASSERT_EQUAL(ioctl(l.fd, LOOP_SET_CAPACITY, 0), 0);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_SHRANK);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 2 * SIZE - 4096, p, 4096, 0), -EIO);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, SIZE - 4096, p, 4096, 0), 0);
    bu_close(be);
    free(p);
    loop_end(&l);
}

/* Device nodes of our own, so that they can go and come. */
static void
test_vanish(void)
{
    char node[128];
    uint8_t *p = bu_mem(4096, 1), *q = bu_mem(4096, 2);
    struct loop a = loop_over("van-a"), b = loop_over("van-b");
    (void)snprintf(node, sizeof(node), "%s/node", bu_dir);
    (void)unlink(node);
    CU_ASSERT_EQUAL(mknod(node, S_IFBLK | 0600, a.rdev), 0);
    int can = open(node, O_RDONLY | O_CLOEXEC);
    if (can < 0) {
        printf("(nodev) ");
        goto out;
    }
    close(can);
    struct backend *be = bu_open("blockio", node, true, NULL);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 4096, IO_FUA), 0);
    CU_ASSERT_EQUAL(unlink(node), 0);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_GONE);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, q, 4096, 0), -ENXIO);
    CU_ASSERT_EQUAL(be_probe(be), 0);
    CU_ASSERT_EQUAL(mknod(node, S_IFBLK | 0600, b.rdev), 0); /* another device */
    CU_ASSERT_EQUAL(be_probe(be), 0);
    CU_ASSERT_EQUAL(be_state(be), BE_GONE);
    CU_ASSERT_PTR_NOT_NULL(strstr(be_error(be), "another device"));
    CU_ASSERT_EQUAL(be_open(be), -ESTALE);
    CU_ASSERT_EQUAL(unlink(node), 0);
    bu_turn_ms(5); /* the helper that closes */
    CU_ASSERT_EQUAL(mknod(node, S_IFBLK | 0600, a.rdev), 0);
    CU_ASSERT_EQUAL(be_probe(be), BE_EV_CAME);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, q, 4096, 0), 0);
    CU_ASSERT_EQUAL(memcmp(p, q, 4096), 0);
    bu_close(be);
out:
    (void)unlink(node);
    loop_end(&a);
    loop_end(&b);
    free(p);
    free(q);
}

static void
test_read_only(void)
{
    uint8_t *p = bu_mem(512, 1);
    struct loop l;
    CU_ASSERT_EQUAL_FATAL(loop_try(&l, bu_file(bu_dir, "ro", SIZE), LO_FLAGS_READ_ONLY), 0);
    struct backend *be = bu_open("blockio", l.dev, true, NULL);
    struct be_info in;
    be_info(be, &in);
    CU_ASSERT_TRUE(in.read_only);
    CU_ASSERT_EQUAL(in.caps & BE_CAP_DISCARD, 0);
    CU_ASSERT_EQUAL(bu_do(be, IO_WRITE, 0, p, 512, 0), -EROFS);
    CU_ASSERT_EQUAL(bu_do(be, IO_READ, 0, p, 512, 0), 0);
    bu_close(be);
    free(p);
    loop_end(&l);
}

int
main(void)
{
    static const struct bu_case cases[] = {
        {"data, zero, discard, map", test_data},
        {"block sizes", test_block_sizes},
        {"in use: loop, twice, mounted", test_in_use},
        {"FUA on a full ext4", test_full_ext4},
        {"O_DIRECT on sectors of 4096, blocks of 512", test_direct_4k},
        {"grow and shrink", test_grow},
        {"vanish, another, back", test_vanish},
        {"read-only device", test_read_only},
    };
    struct loop l;
    char path[] = "/var/tmp/evtgt-loop-XXXXXX";
    int fd = mkstemp(path);
    int err = fd < 0 || ftruncate(fd, MIB) != 0 ? -errno : loop_try(&l, path, 0);
    if (fd >= 0) {
        close(fd);
        (void)unlink(path);
    }
    if (err != 0) {
        printf("skipped: no loop device to be had: %s\n", strerror(-err));
        return 77;
    }
    close(l.fd);
    return bu_main("block", cases, sizeof(cases) / sizeof(cases[0]));
}
