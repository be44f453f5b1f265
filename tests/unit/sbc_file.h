/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that the tests of the block commands use as stores. */
#ifndef TESTS_UNIT_SBC_FILE_H
#define TESTS_UNIT_SBC_FILE_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CUnit/CUnit.h>

static char sbc_path[256];

/* A sparse file of `size` bytes; the same name each time. */
static inline const char *
sbc_file(uint64_t size)
{
    const char *dir = getenv("TMPDIR");

    snprintf(sbc_path, sizeof sbc_path, "%s/evtgt-sbc-%d", dir != NULL ? dir : "/tmp",
             (int)getpid());
    unlink(sbc_path);
    int fd = open(sbc_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)size), 0);
    close(fd);
    return sbc_path;
}

/* What the file holds, behind everybody's back. */
static inline void
sbc_file_read(uint64_t off, void *p, size_t n)
{
    int fd = open(sbc_path, O_RDONLY | O_CLOEXEC);

    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(pread(fd, p, n, (off_t)off), (ssize_t)n);
    close(fd);
}

static inline void
sbc_file_write(uint64_t off, const void *p, size_t n)
{
    int fd = open(sbc_path, O_RDWR | O_CLOEXEC);

    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(pwrite(fd, p, n, (off_t)off), (ssize_t)n);
    close(fd);
}

/* Bytes that tell their place: a different pattern for each seed. */
static inline void
sbc_fill(uint8_t *p, size_t n, uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;

    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        p[i] = (uint8_t)(x >> 24);
    }
}

#endif
