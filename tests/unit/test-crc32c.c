/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC32C against the published vectors (RFC 3720 B.4, RFC 7143 appendix A.4). */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "tests/unit/unit.h"

static void
check(const uint8_t *p, size_t len, const char want[4])
{
    uint8_t out[4];
    uint32_t crc = crc32c_add(CRC32C_INIT, p, len);
    crc32c_final(crc, out);
    CU_ASSERT_EQUAL(memcmp(out, want, 4), 0);
    CU_ASSERT_TRUE(crc32c_check(crc, out));
    out[3] ^= 1;
    CU_ASSERT_FALSE(crc32c_check(crc, out));
    /* in two parts, cut anywhere */
    for (size_t cut = 0; cut <= len; cut++) {
        crc = crc32c_add(crc32c_add(CRC32C_INIT, p, cut), p + cut, len - cut);
        CU_ASSERT_TRUE(crc32c_check(crc, (const uint8_t *)want));
    }
}

static void
test_vectors(void)
{
    uint8_t b[32];
    memset(b, 0, sizeof b);
    check(b, sizeof b, "\xaa\x36\x91\x8a");
    memset(b, 0xff, sizeof b);
    check(b, sizeof b, "\x43\xab\xa8\x62");
    for (unsigned i = 0; i < 32; i++)
        b[i] = (uint8_t)i;
    check(b, sizeof b, "\x4e\x79\xdd\x46");
    for (unsigned i = 0; i < 32; i++)
        b[i] = (uint8_t)(31 - i);
    check(b, sizeof b, "\x5c\xdb\x3f\x11");
}

static void
test_scsi_read_pdu(void)
{
    static const uint8_t pdu[48] = {
        0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
        0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    };
    check(pdu, sizeof pdu, "\x56\x3a\x96\xd9");
}

/* Against the definition, bit by bit, at lengths and alignments where fast code changes its way. */
static void
test_definition(void)
{
    uint8_t *b = malloc(5000);
    uint32_t x = 12345;
    for (unsigned i = 0; i < 5000; i++) {
        x = x * 1664525 + 1013904223;
        b[i] = (uint8_t)(x >> 24);
    }
    static const size_t lens[] = {0, 1, 7, 8, 9, 63, 64, 65, 1023, 1024, 1025, 4096, 4990};
    for (unsigned k = 0; k < sizeof lens / sizeof lens[0]; k++) {
        for (unsigned off = 0; off < 9; off++) {
            uint32_t crc = CRC32C_INIT;
            for (size_t i = 0; i < lens[k]; i++) {
                crc ^= b[off + i];
                for (int bit = 0; bit < 8; bit++)
                    crc = (crc & 1) ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
            }
            CU_ASSERT_EQUAL(crc32c_add(CRC32C_INIT, b + off, lens[k]), crc);
        }
    }
    free(b);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"published vectors", test_vectors},
        {"a SCSI READ PDU", test_scsi_read_pdu},
        {"the definition", test_definition},
    };
    return UNIT_RUN("crc32c", tests);
}
