/* SPDX-License-Identifier: BSD-2-Clause */
/* Block CDBs laid out by hand from SBC-3, independent of scsi/ops.c. */
#ifndef TESTS_UNIT_SBC_CDB_H
#define TESTS_UNIT_SBC_CDB_H

#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

struct cdb {
    uint8_t b[16];
    size_t len;
};

/* READ, WRITE, VERIFY, WRITE AND VERIFY, WRITE SAME, PRE-FETCH, SYNCHRONIZE CACHE: opcodes 00-1F
 * have 21 bits of LBA and 8 of length, 20-5F 32 and 16, A0-BF 32 and 32, 80-9F 64 and 32. */
static inline struct cdb
cdb_block(uint8_t opcode, uint8_t byte1, uint64_t lba, uint32_t nblk)
{
    struct cdb c = {.b = {opcode, byte1}};

    switch (opcode >> 5) {
    case 0:
        c.len = 6;
        put_be24(c.b + 1, (uint32_t)lba & 0x1fffff);
        c.b[4] = (uint8_t)nblk;
        break;
    case 1:
    case 2:
        c.len = 10;
        put_be32(c.b + 2, (uint32_t)lba);
        put_be16(c.b + 7, (uint16_t)nblk);
        break;
    case 5:
        c.len = 12;
        put_be32(c.b + 2, (uint32_t)lba);
        put_be32(c.b + 6, nblk);
        break;
    default:
        c.len = 16;
        put_be64(c.b + 2, lba);
        put_be32(c.b + 10, nblk);
        break;
    }
    return c;
}

#endif
