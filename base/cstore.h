/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control store: what must outlive the daemon (host seed, saved mode pages, later
 * reservations).  Named records of bytes, each replaced as a whole and durably or not at all:
 * written to a temporary file, fdatasync, rename, fsync of the directory.  Files in the state
 * directory are the first implementation; a store shared by two nodes may be another, so no
 * caller sees a path.  The directory is locked (OFD lock): a second daemon is refused.
 *
 * A change that must last goes propose -> persist (here) -> publish -> GOOD.
 */
#ifndef BASE_CSTORE_H
#define BASE_CSTORE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct cstore;
struct worker;

#define CSTORE_MAX (16u * 1024u * 1024u) /* bytes of one record; more is -EFBIG */

/* NULL with errno (EBUSY: another daemon has it). The directory is made when only its last
 * component is missing. Blocking: main before its loop, or tools. */
struct cstore *cstore_open_dir(const char *dir);
/* Root's start gives the directory and its records to the user that the daemon becomes: when it is
 * empty or holds nothing but records, and belongs to root, or to whom it was given before. Symbolic
 * links are not followed, other kinds of files and what has other names elsewhere stay untouched.
 * 0, or -errno and why not. */
int cstore_give(struct cstore *cs, uid_t uid, gid_t gid, char *err, size_t errsize);
/* What was queued and not yet written is written first. After helper_pool_stop. */
void cstore_close(struct cstore *cs);

/* Record names: [a-z0-9._-]{1,200}, else -EINVAL. *out is malloc'ed (caller frees); bytes or
 * -errno (-ENOENT; -EBADMSG: the record's checksum is wrong). Blocking. */
int64_t cstore_read(struct cstore *cs, const char *name, void **out);

/* Calls fn with the name of each record, in no order; names live during the call only. 0 or -errno.
 * Blocking. */
int cstore_each(struct cstore *cs, void (*fn)(const char *name, void *arg), void *arg);

/* Durable replace. Blocking form for main before its loop and for helpers; records of one name
 * are written in the order of the calls. len 0 with data NULL removes the record (0 as well when
 * there was none). 0 or -errno. After an error at the last step (sync of the directory) the new
 * record may or may not be what a later start finds; it is whole either way. */
int cstore_write_sync(struct cstore *cs, const char *name, const void *data, size_t len);

/* Asynchronous: bytes are copied; done(arg, err) on `w` when durable (0) or failed (-errno). */
void cstore_write(struct cstore *cs, const char *name, const void *data, size_t len,
                  struct worker *w, void (*done)(void *arg, int err), void *arg);

/* Tests: after this many file system steps (write, sync, rename, dir sync) every further step
 * is not done and -EIO comes back, as if power had gone; -1: never. */
void cstore_fail_after(struct cstore *cs, int steps);

#endif
