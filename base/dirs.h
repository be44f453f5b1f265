/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directories that the daemon makes for itself.  main at the start; blocks.
 */
#ifndef BASE_DIRS_H
#define BASE_DIRS_H

/* Makes every directory above `path` that is missing, mode 0755 less the umask; `path` itself is
 * not made. 0 (also when nothing was missing) or -errno (-ENAMETOOLONG, -ENOTDIR, ...). */
int dirs_make_above(const char *path);

#endif
