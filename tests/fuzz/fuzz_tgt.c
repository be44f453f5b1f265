/* SPDX-License-Identifier: BSD-2-Clause */
/* targets.conf as tgt-admin takes it: what is taken is written as ours and read again as the same.
 */
#include "config.h"

#include "tests/fuzz/foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    foreign_one(CONF_SYNTAX_TGT, data, size);
    return 0;
}
