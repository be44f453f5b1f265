/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TARGET_PLACES_PROOF_H
#define TARGET_PLACES_PROOF_H

#include <stdbool.h>

/* Can the kernel tell which connections were made to this AF_UNIX socket? (CONFIG_UNIX_DIAG) */
bool places_is_provable(int listener);
/* Was fd accepted from the listening socket? Whatever fd is. */
bool places_is_accepted(int listener, int fd);

#endif
