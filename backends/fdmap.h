/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file mapped as a whole.
 *
 * In memory (tmpfs) its pages are lent to the socket as they are, and copies from and to them cost
 * half of what the system calls do, which look up page by page.  Faults one by one would take
 * that gain away, so pages are mapped in chunks when one is first used.  Only for files without
 * holes, which a fault would allocate.
 *
 * On a disk only small writes go this way, on a helper thread (fdbatch.h).
 *
 * Nobody touches the memory but by base/guard.h or by handing it to the kernel: the file may be cut
 * by somebody else.  Pages are let go when the file was idle for a while, because they count as
 * resident, and on a disk when too many are mapped, because of what their tables take.
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
/* The memory behind [off, off + len) of a file on a disk, or NULL where the page cache does not hold
 * all of it or it lies beyond the end. Nothing is mapped ahead: a page that is mapped for writing is
 * dirty. Pages may go again before they are used, so that a use may wait for the disk. Helpers. */
uint8_t *fdmap_cached(struct fdmap *m, uint64_t off, uint64_t len);
/* The memory behind [off, off + len) of a file in memory, ready for use, or NULL: beyond the end.
 * Any worker. */
uint8_t *fdmap_use(struct fdmap *m, uint64_t off, uint64_t len);
/* From probes, now and then: lets the pages go when there was no use for a while. */
void fdmap_idle(struct fdmap *m);

#endif
