/* SPDX-License-Identifier: BSD-2-Clause */
/* Words to the service manager (sd_notify's datagram protocol). Main's thread. */
#ifndef TARGET_NOTIFY_H
#define TARGET_NOTIFY_H

/* "READY=1", "STOPPING=1", ... to $NOTIFY_SOCKET (a path, or @ and an abstract name); without the
 * variable: nothing. 0, or -errno, which nobody needs to act on. */
int notify_send(const char *state);
/* While the process is still root, whose socket that is: it is kept. */
void notify_open(void);

#endif
