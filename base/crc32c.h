/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC32C (Castagnoli) as iSCSI digests use it (RFC 7143 13.1), by ISA-L. Any thread. */
#ifndef BASE_CRC32C_H
#define BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Start value for crc32c_add. */
#define CRC32C_INIT 0xffffffffu

/* Running CRC (not yet inverted) extended by len bytes. */
uint32_t crc32c_add(uint32_t crc, const void *p, size_t len);

/* The finished digest as the four bytes go on the wire, in wire order. */
void crc32c_final(uint32_t crc, uint8_t out[4]);

/* True when the digest bytes match the running CRC. */
int crc32c_check(uint32_t crc, const uint8_t in[4]);

#endif
