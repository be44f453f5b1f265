/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Serial number arithmetic, SERIAL_BITS = 32 (RFC 1982; RFC 7143 4.2.2.1): CmdSN, StatSN,
 * DataSN and R2TSN are compared with these, never with < and >.
 */
#ifndef BASE_SERIAL_H
#define BASE_SERIAL_H

#include <stdbool.h>
#include <stdint.h>

static inline bool
sn_lt(uint32_t a, uint32_t b)
{
    return a != b && (uint32_t)(b - a) < 0x80000000u;
}

static inline bool
sn_le(uint32_t a, uint32_t b)
{
    return a == b || sn_lt(a, b);
}

#endif
