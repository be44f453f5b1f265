/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What file.c and block.c share beside requests: looking at paths and sysfs, identity, size.
 * All of it may block: helper threads only (or main before its loop), under the op_lock.
 */
#ifndef BACKENDS_STORE_H
#define BACKENDS_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "backends/backend.h"
#include "backends/fdio.h"

/* be->priv of file and block backends. */
struct store {
    struct fdio io; /* first: fdio.c looks for it there */
    bool is_block;
    /* the thing of the first successful open */
    bool is_known;
    dev_t dev; /* st_dev, or st_rdev of a device */
    ino_t ino;
    bool has_wwid;
    bool is_shrunk; /* BE_EV_SHRANK was told */
};

/* An O_PATH look, with the opener's rights, at what is under the path now: 0 or -errno. */
int store_stat_path(const struct backend *be, struct stat *st);
/* Is err, of store_stat_path, the answer that nothing is there? (Else it is no answer.) */
bool store_is_absent(int err);

/* open_flags | O_RDWR, or O_RDONLY where it must be or nothing else is allowed: descriptor and
 * *read_only, or -errno. */
int store_open_path(const struct backend *be, int open_flags, bool *read_only);

/* Size `now` (bytes) against info.size: sets it and `usable`; BE_EV_GREW, BE_EV_SHRANK or 0. */
unsigned store_resize(struct backend *be, uint64_t now);

/* Canonical path of an open descriptor; the configured path when /proc is not there. */
void store_real_path(const struct backend *be, int fd, char *buf, size_t size);

/* First line of a file in sysfs or proc, without the newline: its length or -errno. */
int store_read_line(const char *path, char *buf, size_t size);
/* The number in there; `fallback` when there is none. */
uint64_t store_read_u64(const char *path, uint64_t fallback);

/* What the device of a directory like /sys/dev/block/8:0 calls itself. store_ident.c */
void store_ident(const char *dir, struct be_ident *out);

/* Who uses a block device (mounts, swap, dm, md) or a file (loop devices, swap): true and a text
 * for people. store_busy.c */
bool store_busy_device(dev_t rdev, char *who, size_t size);
bool store_busy_file(const char *real_path, char *who, size_t size);

/* Is `dev` the device `disk` or one of its partitions? */
bool store_is_part(dev_t dev, dev_t disk);
/* Which process has it open, for people ("qemu (process 17)"): a device, its disk or a partition of
 * it, or a file. False: none is found. store_user.c */
bool store_user(const struct stat *st, char *who, size_t size);

/* block.c: for a store of either type whose path is a block device. */
int block_open_device(struct backend *be, bool direct);
unsigned block_probe_device(struct backend *be);
/* As sysfs says of the device (or of the disk of a partition). */
bool block_is_rotational(dev_t dev);

/* Both types: the other calls of be_ops. */
void store_init(struct backend *be);
void store_close(struct backend *be);
int store_configure(struct backend *be, const char *key, const char *value);
void store_destroy(struct backend *be);

#endif
