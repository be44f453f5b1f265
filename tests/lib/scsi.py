# SPDX-License-Identifier: BSD-2-Clause
"""CDBs and sense data for tests, from SPC-4 and SBC-3."""

TEST_UNIT_READY = bytes(6)


def inquiry(alloc=255, page=None):
    return bytes((0x12, 0 if page is None else 1, page or 0)) + alloc.to_bytes(2, "big") + b"\0"


def request_sense(alloc=252, desc=0):
    return bytes((0x03, desc, 0, 0, alloc, 0))


def report_luns(alloc=1024, select=0):
    return bytes((0xA0, 0, select, 0, 0, 0)) + alloc.to_bytes(4, "big") + bytes(2)


def read_capacity10():
    return b"\x25" + bytes(9)


def read_capacity16(alloc=32):
    return b"\x9e\x10" + bytes(8) + alloc.to_bytes(4, "big") + bytes(2)


def get_lba_status(lba, alloc=24):
    return b"\x9e\x12" + lba.to_bytes(8, "big") + alloc.to_bytes(4, "big") + bytes(2)


def read10(lba, n, flags=0):
    return bytes((0x28, flags)) + lba.to_bytes(4, "big") + b"\0" + n.to_bytes(2, "big") + b"\0"


def write10(lba, n, flags=0):
    return bytes((0x2A, flags)) + lba.to_bytes(4, "big") + b"\0" + n.to_bytes(2, "big") + b"\0"


def verify10(lba, n, bytchk=0):
    return bytes((0x2F, bytchk << 1)) + lba.to_bytes(4, "big") + b"\0" + n.to_bytes(2, "big") \
        + b"\0"


def read16(lba, n, flags=0):
    return bytes((0x88, flags)) + lba.to_bytes(8, "big") + n.to_bytes(4, "big") + bytes(2)


def write16(lba, n, flags=0):
    return bytes((0x8A, flags)) + lba.to_bytes(8, "big") + n.to_bytes(4, "big") + bytes(2)


def write_same10(lba, n, flags=0):
    return bytes((0x41, flags)) + lba.to_bytes(4, "big") + b"\0" + n.to_bytes(2, "big") + b"\0"


def write_same16(lba, n, flags=0):
    return bytes((0x93, flags)) + lba.to_bytes(8, "big") + n.to_bytes(4, "big") + bytes(2)


def compare_and_write(lba, n):
    return b"\x89\0" + lba.to_bytes(8, "big") + bytes(3) + bytes((n, 0, 0))


def synchronize_cache10(lba=0, n=0, flags=0):
    return bytes((0x35, flags)) + lba.to_bytes(4, "big") + b"\0" + n.to_bytes(2, "big") + b"\0"


def unmap(param_len):
    return b"\x42" + bytes(6) + param_len.to_bytes(2, "big") + b"\0"


def unmap_list(*ranges):
    d = b"".join(lba.to_bytes(8, "big") + n.to_bytes(4, "big") + bytes(4) for lba, n in ranges)
    return (len(d) + 6).to_bytes(2, "big") + len(d).to_bytes(2, "big") + bytes(4) + d


def mode_sense6(page, alloc=255, dbd=0, pc=0, sub=0):
    return bytes((0x1A, dbd << 3, pc << 6 | page, sub, alloc, 0))


def mode_sense10(page, alloc=1024, dbd=0, pc=0, sub=0, llbaa=0):
    return bytes((0x5A, dbd << 3 | llbaa << 4, pc << 6 | page, sub, 0, 0, 0)) \
        + alloc.to_bytes(2, "big") + b"\0"


def mode_select6(n, sp=0, pf=1):
    return bytes((0x15, pf << 4 | sp, 0, 0, n, 0))


def mode_select10(n, sp=0, pf=1):
    return bytes((0x55, pf << 4 | sp, 0, 0, 0, 0, 0)) + n.to_bytes(2, "big") + b"\0"


RESERVE6 = bytes((0x16, 0, 0, 0, 0, 0))
RELEASE6 = bytes((0x17, 0, 0, 0, 0, 0))


def report_opcodes(alloc=8192, options=0, opcode=0, sa=0):
    return bytes((0xA3, 0x0C, options, opcode)) + sa.to_bytes(2, "big") \
        + alloc.to_bytes(4, "big") + bytes(2)


def pr_in(sa, alloc=1024):
    return bytes((0x5E, sa, 0, 0, 0, 0, 0)) + alloc.to_bytes(2, "big") + b"\0"


def pr_out(sa, ptype=0):
    return bytes((0x5F, sa, ptype, 0, 0)) + (24).to_bytes(4, "big") + b"\0"


def pr_param(key=0, sa_key=0, aptpl=0):
    return key.to_bytes(8, "big") + sa_key.to_bytes(8, "big") + bytes(4) + bytes((aptpl, 0, 0, 0))


class Sense:
    """Fixed (70h, 71h) and descriptor (72h, 73h) format, SPC-4 4.5."""

    def __init__(self, data):
        assert len(data) >= 8, "sense data of %d bytes: %s" % (len(data), data.hex())
        self.raw = data
        self.code = data[0] & 0x7F
        self.info = self.field = None
        if self.code in (0x70, 0x71):
            assert len(data) >= 14, "fixed sense without ASC: " + data.hex()
            assert data[7] + 8 == len(data) or data[7] + 8 >= 18, "additional sense length"
            self.key, self.asc, self.ascq = data[2] & 0x0F, data[12], data[13]
            if data[0] & 0x80:
                self.info = int.from_bytes(data[3:7], "big")
            if len(data) >= 18 and data[15] & 0x80:
                self.field = int.from_bytes(data[16:18], "big")
        elif self.code in (0x72, 0x73):
            self.key, self.asc, self.ascq = data[1] & 0x0F, data[2], data[3]
            at = 8
            while at + 2 <= len(data):
                kind, n = data[at], data[at + 1]
                if kind == 0 and data[at + 2] & 0x80:
                    self.info = int.from_bytes(data[at + 4:at + 12], "big")
                if kind == 2 and data[at + 4] & 0x80:
                    self.field = int.from_bytes(data[at + 5:at + 7], "big")
                at += 2 + n
        else:
            raise AssertionError("sense response code %02x" % self.code)


def pattern(n, seed=0):
    """n bytes that differ in each block and for each seed."""
    out = bytearray()
    x = (seed * 2654435761 + 12345) & 0xFFFFFFFF
    while len(out) < n:
        x = (x * 1103515245 + 12345) & 0xFFFFFFFF
        out += x.to_bytes(4, "big") * 2 + (len(out) ^ seed & 0xFFFF).to_bytes(8, "big")
    return bytes(out[:n])
