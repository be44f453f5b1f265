/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fixture of the backends' unit tests: a local worker on either engine, a scratch directory on a
 * disk and one on tmpfs, requests that are waited for.
 */
#ifndef TESTS_UNIT_BE_UNIT_H
#define TESTS_UNIT_BE_UNIT_H

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/helper.h"
#include "base/worker.h"

#define KIB 1024u
#define MIB (1024u * 1024u)

extern struct worker *bu_w;
extern char bu_dir[64];     /* on a disk: under TMPDIR or /var/tmp */
extern char bu_mem_dir[64]; /* on tmpfs; "" when there is none */

struct bu_case {
    const char *name;
    void (*fn)(void);
};

/* Runs the cases once with each engine; the number of failures. Arguments: none. */
int bu_main(const char *suite, const struct bu_case *cases, unsigned n);

/* A request with its own end. */
struct bu_io {
    struct io io;
    struct iovec iov;
    unsigned ends; /* how often done was called */
    int res;
    bool in_submit; /* done may not be called now */
};

/* Fills and submits; the caller waits with bu_wait. buf: NULL for no data. */
void bu_start(struct backend *be, struct bu_io *b, enum io_op op, uint64_t off, void *buf,
              uint64_t len, unsigned flags);
/* Turns the worker until it has ended, at most 10 s: its result. */
int bu_wait(struct bu_io *b);
int bu_do(struct backend *be, enum io_op op, uint64_t off, void *buf, uint64_t len, unsigned flags);
/* Turns the worker for ms. */
void bu_turn_ms(unsigned ms);

/* be_new with type, path, 512-byte blocks, write cache on, given layers; opened. NULL and a
 * failed assertion otherwise. */
struct backend *bu_open(const char *type, const char *path, bool direct, const char *layers);
/* The same, from options. */
struct backend *bu_open_opts(const struct be_opts *o);
void bu_close(struct backend *be);

/* Path of a new sparse file of that size in dir (one of the two above). */
const char *bu_file(const char *dir, const char *name, uint64_t size);
/* Page-aligned memory, filled from a seed. */
uint8_t *bu_mem(size_t len, unsigned seed);
bool bu_is_zero(const void *p, size_t len);
/* A whole text file; freed by the caller. */
char *bu_slurp(const char *path);
void bu_touch(const char *path);

#endif
