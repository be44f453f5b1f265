/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The admin socket: one JSON object a line in, one out (docs/admin-protocol.md).  Main only.
 */
#ifndef TARGET_ADMIN_H
#define TARGET_ADMIN_H

#include <stddef.h>

struct cstore;
struct worker;

/* Binds `path` (mode 0600) and serves it; stop(): the orderly end, as by SIGTERM. 0, or -errno
 * with a message. */
int admin_start(struct worker *main_worker, const char *path, void (*stop)(void), char *err,
                size_t errsize);
/* JSON may hold secrets: from now on what is given back is wiped. Before other threads. */
void admin_json_init(void);
/* SIGHUP: the configuration is read again, in its turn among the requests; the result is logged. */
void admin_reload(void);
/* Nothing more is taken; the socket's name goes. */
void admin_end(void);

/* Finishes an import of control store records (admin_export.c) that a crash cut short. 0 or -errno,
 * and a log line. Before anything reads the store; blocking. */
int admin_import_recover(struct cstore *cs);

#endif
