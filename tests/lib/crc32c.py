# SPDX-License-Identifier: BSD-2-Clause
"""CRC32C as RFC 7143 13.1 wants it: polynomial 11EDC6F41h, reflected, initial value and final
XOR ffffffffh, sent least significant byte first.  Plain table, no dependency, for tests only."""

import struct


def _table():
    out = []
    for i in range(256):
        c = i
        for _ in range(8):
            c = (c >> 1) ^ 0x82F63B78 if c & 1 else c >> 1
        out.append(c)
    return out


_TAB = _table()
# The same for two bytes at once: half the time for long segments.
_TAB2 = [_TAB[(_TAB[i & 0xFF] ^ i >> 8) & 0xFF] ^ (_TAB[i & 0xFF] >> 8) for i in range(65536)]


def crc32c(data, crc=0):
    c = crc ^ 0xFFFFFFFF
    data = bytes(data)
    even = len(data) & ~1
    tab = _TAB2
    for w in struct.unpack("<%dH" % (even // 2), data[:even]):
        c = tab[(c ^ w) & 0xFFFF] ^ (c >> 16)
    if even < len(data):
        c = _TAB[(c ^ data[even]) & 0xFF] ^ (c >> 8)
    return c ^ 0xFFFFFFFF


def digest(data):
    """The four bytes that follow `data` on the wire."""
    return crc32c(data).to_bytes(4, "little")


# RFC 3720 B.4 examples: wrong tables must not go unnoticed.
assert digest(bytes(32)) == bytes.fromhex("aa36918a")
assert digest(b"\xff" * 32) == bytes.fromhex("43aba862")
assert digest(bytes(range(32))) == bytes.fromhex("4e79dd46")
assert crc32c(b"123456789") == 0xE3069283
