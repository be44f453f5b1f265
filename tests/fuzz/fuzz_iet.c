/* SPDX-License-Identifier: BSD-2-Clause */
/* ietd.conf as it comes: what is taken is written as ours and read again as the same. */
#include "config.h"

#include "tests/fuzz/foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    foreign_one(CONF_SYNTAX_IET, data, size);
    return 0;
}
