/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's own zram devices, by sysfs (Documentation/admin-guide/blockdev/zram.rst of Linux).
 * `sys` is where that is mounted, "/sys" but for tests.  Blocking.
 */
#ifndef TOOLS_ZRAM_KERNEL_H
#define TOOLS_ZRAM_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZRAM_MM 9 /* numbers in mm_stat; likewise */
#define ZRAM_IO 4
#define ZRAM_BD 3
extern const char *const zram_mm_names[ZRAM_MM], *const zram_io_names[ZRAM_IO],
                                                     *const zram_bd_names[ZRAM_BD];

struct zram_device {
    unsigned number;
    uint64_t size; /* bytes; 0: not set up */
    char algorithm[32];
    char backing[256]; /* "": none, or the kernel has no write-back */
    uint64_t mm[ZRAM_MM], io[ZRAM_IO], bd[ZRAM_BD];
    bool has_bd; /* the kernel was built with write-back */
};
/* In the order of their numbers. False: this kernel has no zram at the moment. */
bool zram_kernel_each(const char *sys, void (*fn)(void *arg, const struct zram_device *d),
                      void *arg);

struct zram_wish {
    uint64_t size, mem_limit; /* bytes; mem_limit 0: none */
    const char *algorithm;    /* NULL: the kernel's default */
    unsigned level;           /* 0: the algorithm's own */
    const char *backing;      /* a block device, or NULL */
    bool compressed_writeback;
};
/* A new device, set up in the order the kernel wants; its number.  Or -1 and, in err, what failed
 * or what this kernel lacks: then there is no new device. */
int zram_kernel_make(const char *sys, const struct zram_wish *w, char *err, size_t errsize);
/* 0, or -1 and why. What was in it is gone. */
int zram_kernel_remove(const char *sys, unsigned number, char *err, size_t errsize);

#endif
