/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directories that the daemon makes for itself, and where it is found.  main at the start, and
 * tools; blocks.
 */
#ifndef BASE_DIRS_H
#define BASE_DIRS_H

/* Makes every directory above `path` that is missing, mode 0755 less the umask; `path` itself is
 * not made. 0 (also when nothing was missing) or -errno (-ENAMETOOLONG, -ENOTDIR, ...). */
int dirs_make_above(const char *path);

/* Where the daemon with this control port (tgtd -C, tgtadm -C) has its admin socket; malloc'ed. The
 * place is $EVTGT_SOCKET, else RUNDIR/evtgtd.sock, with ".N" after it unless the number is 0; with
 * $TGT_IPC_SOCKET alone that and ".N", as tgt has it. */
char *dirs_admin_socket(unsigned control_port);

#endif
