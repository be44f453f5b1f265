/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file in memory (tmpfs) mapped as a whole: its pages are lent to the socket as they are, and
 * copies from and to them cost half of what the system calls do, which look up page by page.
 * Faults one by one would take that gain away, so pages are mapped in chunks when one is first
 * used, and let go when the file was idle for a while, because they count as resident.
 *
 * Nobody touches the memory but by base/guard.h or by handing it to the kernel: the file may be cut
 * by somebody else.  Only for files without holes, which a fault would allocate.
 */
#ifndef BACKENDS_FDMAP_H
#define BACKENDS_FDMAP_H

#include <stdbool.h>
#include <stdint.h>

struct fdmap;

/* May block. NULL where it is not to be had: then everything goes without. */
struct fdmap *fdmap_new(int fd, uint64_t len, bool writable);
void fdmap_free(struct fdmap *m); /* NULL: nothing */
bool fdmap_can_write(const struct fdmap *m);
/* The memory behind [off, off + len), ready for use, or NULL: beyond the end. Any worker. */
uint8_t *fdmap_use(struct fdmap *m, uint64_t off, uint64_t len);
/* From probes, now and then: lets the pages go when there was no use for a while. */
void fdmap_idle(struct fdmap *m);

#endif
