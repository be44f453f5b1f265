/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The initiators that share a discovery domain with one target, as an iSNS server told them (RFC
 * 4171 2.2.1): a filter beside the target's access list, published with its node.  Built on main,
 * then immutable and counted; isns_dd_admits is asked on any worker.
 */
#ifndef TARGET_ISNS_DD_H
#define TARGET_ISNS_DD_H

#include <stdbool.h>
#include <stddef.h>

struct isns_dd;

/* The n names (folded, as name_fold gives them) are copied; twins count once.  n 0: nobody. */
struct isns_dd *isns_dd_new(const char *const *names, unsigned n);
struct isns_dd *isns_dd_get(struct isns_dd *dd);
void isns_dd_put(struct isns_dd *dd); /* NULL: nothing to do */
/* initiator: folded. */
bool isns_dd_admits(const struct isns_dd *dd, const char *initiator);
unsigned isns_dd_count(const struct isns_dd *dd);
size_t isns_dd_bytes(const struct isns_dd *dd);
bool isns_dd_same(const struct isns_dd *a, const struct isns_dd *b);

#endif
