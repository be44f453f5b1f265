# SPDX-License-Identifier: BSD-2-Clause
"""CRC32C as RFC 7143 13.1 wants it: polynomial 11EDC6F41h, reflected, initial value and final
XOR ffffffffh, sent least significant byte first.  Plain table, no dependency, for tests only."""


def _table():
    out = []
    for i in range(256):
        c = i
        for _ in range(8):
            c = (c >> 1) ^ 0x82F63B78 if c & 1 else c >> 1
        out.append(c)
    return out


_TAB = _table()


def crc32c(data, crc=0):
    c = crc ^ 0xFFFFFFFF
    tab = _TAB
    for b in bytes(data):
        c = tab[(c ^ b) & 0xFF] ^ (c >> 8)
    return c ^ 0xFFFFFFFF


def digest(data):
    """The four bytes that follow `data` on the wire."""
    return crc32c(data).to_bytes(4, "little")


# RFC 3720 B.4 examples: wrong tables must not go unnoticed.
assert digest(bytes(32)) == bytes.fromhex("aa36918a")
assert digest(b"\xff" * 32) == bytes.fromhex("43aba862")
assert digest(bytes(range(32))) == bytes.fromhex("4e79dd46")
