/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CRC32C by ISA-L.  On the wire the digest's bytes are in the order of RFC 7143 13.1's bit
 * mapping, which is the complement of the register, least significant byte first.  Any thread.
 */
#include "config.h"

#include "base/crc32c.h"

#include <isa-l/crc.h>
#include <string.h>

uint32_t
crc32c_add(uint32_t crc, const void *p, size_t len)
{
    /* ISA-L takes the length as an int, and the pointer without const (it only reads) */
    union {
        const void *c;
        unsigned char *p;
    } u = {.c = p};
    while (len > 0) {
        size_t n = len < (1u << 30) ? len : (1u << 30);
        crc = crc32_iscsi(u.p, (int)n, crc);
        u.p += n;
        len -= n;
    }
    return crc;
}

void
crc32c_final(uint32_t crc, uint8_t out[4])
{
    crc = ~crc;
    for (unsigned i = 0; i < 4; i++)
        out[i] = (uint8_t)(crc >> (8 * i));
}

int
crc32c_check(uint32_t crc, const uint8_t in[4])
{
    uint8_t want[4];
    crc32c_final(crc, want);
    return memcmp(want, in, sizeof want) == 0;
}
