# SPDX-License-Identifier: BSD-2-Clause
"""Every command that is announced: one row that uses it and one that exceeds it.

The matrix below is from SPC-4 and SBC-3, never from the target's table: what the standards define
for a command that a disk of this kind may have, a CDB that must be GOOD, and its data."""

from harness import (BLK, IQN, MIB, Lun, OTHER, Skip, Target, fill, read_back, row, scsi)

K4 = IQN + "k4"
CAP = 16 * MIB // BLK       # of LUN 0
AT = 64                     # where harmless commands point to


def targets():
    return [Target("disk", [Lun("disk0.img", 16 * MIB, 0, opts=["thin-provisioning on"]),
                            Lun("disk1.img", 4 * MIB, 1)],
                   ["initiator-address ALL", "InitialR2T No"]),
            Target("other", [Lun("other0.img", 4 * MIB, 0, opts=["thin-provisioning off"], thick=True)]),
            Target("k4", [Lun("k4.img", 16 * MIB, 0, opts=["block-size 4096",
                                                           "thin-provisioning on"])])]


def c6(op, b1=0, b2=0, b3=0, b4=0):
    return bytes((op, b1, b2, b3, b4, 0))


def c10(op, lba, n, b1=0):
    return bytes((op, b1)) + lba.to_bytes(4, "big") + b"\0" + n.to_bytes(2, "big") + b"\0"


def c12(op, lba, n, b1=0):
    return bytes((op, b1)) + lba.to_bytes(4, "big") + n.to_bytes(4, "big") + bytes(2)


def c16(op, lba, n, b1=0):
    return bytes((op, b1)) + lba.to_bytes(8, "big") + n.to_bytes(4, "big") + bytes(2)


def a12(op, sa, alloc, b2=0):
    return bytes((op, sa, b2, 0, 0, 0)) + alloc.to_bytes(4, "big") + bytes(2)


MODE6 = bytes(4) + bytes((0x0A, 0x0A)) + b"\x20\x10" + bytes(8)
ONE = bytes(BLK)


def matrix():
    """(operation code, service action or None): (a CDB that must be GOOD, bytes to read, data to
    write, only thin).  SELECT and RELEASE come with what is true at the start."""
    return {
        (0x00, None): (bytes(6), 0, None, False),
        (0x03, None): (c6(0x03, b4=252), 252, None, False),
        (0x08, None): (c6(0x08, 0, 0, AT, 1), BLK, None, False),
        (0x0A, None): (c6(0x0A, 0, 0, AT, 1), 0, ONE, False),
        (0x12, None): (c6(0x12, b4=36), 36, None, False),
        (0x15, None): (c6(0x15, 0x10, 0, 0, 0), 0, None, False),
        (0x16, None): (c6(0x16), 0, None, False),
        (0x17, None): (c6(0x17), 0, None, False),
        (0x1A, None): (c6(0x1A, 0, 0x3F, 0, 255), 255, None, False),
        (0x1B, None): (c6(0x1B, b4=1), 0, None, False),
        (0x1E, None): (c6(0x1E), 0, None, False),
        (0x25, None): (bytes((0x25,)) + bytes(9), 8, None, False),
        (0x28, None): (c10(0x28, AT, 1), BLK, None, False),
        (0x2A, None): (c10(0x2A, AT, 1), 0, ONE, False),
        (0x2E, None): (c10(0x2E, AT, 1), 0, ONE, False),
        (0x2F, None): (c10(0x2F, AT, 1), 0, None, False),
        (0x34, None): (c10(0x34, AT, 1), 0, None, False),
        (0x35, None): (c10(0x35, AT, 1), 0, None, False),
        (0x41, None): (c10(0x41, AT, 1), 0, ONE, False),
        (0x42, None): (scsi.unmap(24), 0, scsi.unmap_list((AT, 1)), True),
        (0x55, None): (c10(0x55, 0, 0, 0x10), 0, None, False),
        (0x56, None): (c10(0x56, 0, 0), 0, None, False),
        (0x57, None): (c10(0x57, 0, 0), 0, None, False),
        (0x5A, None): (b"\x5a\0\x3f\0\0\0\0\x04\0\0", 1024, None, False),
        (0x88, None): (c16(0x88, AT, 1), BLK, None, False),
        (0x8A, None): (c16(0x8A, AT, 1), 0, ONE, False),
        (0x8E, None): (c16(0x8E, AT, 1), 0, ONE, False),
        (0x8F, None): (c16(0x8F, AT, 1), 0, None, False),
        (0x90, None): (c16(0x90, AT, 1), 0, None, False),
        (0x91, None): (c16(0x91, AT, 1), 0, None, False),
        (0x93, None): (c16(0x93, AT, 1), 0, ONE, False),
        (0x9E, 0x10): (c16(0x9E, 0, 32, 0x10), 32, None, False),
        (0x9E, 0x12): (c16(0x9E, AT, 24, 0x12), 24, None, False),
        (0xA0, None): (a12(0xA0, 0, 1024), 1024, None, False),
        (0xA3, 0x0C): (a12(0xA3, 0x0C, 8192), 8192, None, False),
        (0xA3, 0x0D): (a12(0xA3, 0x0D, 16), 16, None, False),
        (0xA8, None): (c12(0xA8, AT, 1), BLK, None, False),
        (0xAA, None): (c12(0xAA, AT, 1), 0, ONE, False),
        (0xAE, None): (c12(0xAE, AT, 1), 0, ONE, False),
        (0xAF, None): (c12(0xAF, AT, 1), 0, None, False),
    }


def run(s, cdb, read, write, lun):
    return s.run(cdb, read=read, lun=lun) if write is None else s.run(cdb, write=write, lun=lun)


def listed(s, lun):
    """{(opcode, sa): CDB length} of the list with all commands."""
    d = s.run(scsi.report_opcodes(16384), read=16384, lun=lun).good().data
    n = int.from_bytes(d[:4], "big")
    assert n % 8 == 0 and n + 4 == len(d), "COMMAND DATA LENGTH %d of %d bytes" % (n, len(d))
    out = {}
    for i in range(4, len(d), 8):
        sa = int.from_bytes(d[i + 2:i + 4], "big")
        flags = d[i + 5]
        assert flags & ~1 == 0 and d[i + 1] == d[i + 4] == 0, "descriptor " + d[i:i + 8].hex()
        assert flags & 1 or sa == 0, "SERVICE ACTION without SERVACTV"
        key = (d[i], sa if flags & 1 else None)
        assert key not in out, "%r twice" % (key,)
        out[key] = int.from_bytes(d[i + 6:i + 8], "big")
    return out


def field_at(t, byte, bits, top=None):
    """5/24/00 that points to one of these bits of this byte of the CDB."""
    x = t.check(5, 0x24, 0)
    assert x.field == byte, "field pointer %r instead of %d" % (x.field, byte)
    sks = x.raw[15] if x.code == 0x70 else None
    if sks is not None:
        assert sks & 0xC0 == 0xC0, "SKSV and C/D: %02x" % sks
        assert not sks & 0x08 or sks & 7 in bits, "bit pointer %d, wrong is %r" % (sks & 7, bits)


@row("C-01", "SPC-4 6.35", "the list of all commands is what a disk has, each with its length; on "
     "a unit that is not thin without UNMAP; with RCTD each has a timeouts descriptor")
def list_of_all(env):
    s = env.session()
    want = {k: len(v[0]) for k, v in matrix().items()}
    have = listed(s, env.lun0)
    assert have == want, "differs: %r" % (set(have.items()) ^ set(want.items()))
    d = s.run(scsi.report_opcodes(16384, 0x80), read=16384, lun=env.lun0).good().data
    assert int.from_bytes(d[:4], "big") == 20 * len(want)
    for i in range(4, len(d), 20):
        assert d[i + 5] & 2 and d[i + 8:i + 10] == b"\0\x0a", "no timeouts descriptor"
    o = env.session(OTHER, settle=False)
    o.run_ua(scsi.TEST_UNIT_READY).good()
    have = listed(o, 0)
    assert set(want) - set(have) == {k for k, v in matrix().items() if v[3]}, set(want) ^ set(have)
    # cut by the allocation length, the length field is not
    d = s.run(scsi.report_opcodes(4), read=4, lun=env.lun0).good().data
    assert int.from_bytes(d, "big") == 8 * len(want) and len(d) == 4


@row("C-02", "SPC-4 6.35.3", "the form for one command agrees with the list; a form that does not "
     "fit the command is 24/00; what is not there says so")
def one_of_them(env):
    s = env.session()
    have = listed(s, env.lun0)
    for (op, sa), n in have.items():
        d = s.run(scsi.report_opcodes(255, 1 if sa is None else 2, op, sa or 0), read=255,
                  lun=env.lun0).good().data
        assert d[1] & 7 == 3 and int.from_bytes(d[2:4], "big") == n and len(d) == 4 + n, d.hex()
        assert d[4] == op and (sa is None or d[5] & 0x1F == sa), "usage data " + d[4:].hex()
        t = s.run(scsi.report_opcodes(255, 3, op, sa or 0), read=255, lun=env.lun0).good()
        assert bytes(t.data) == bytes(d), "form 3 differs for %02x" % op
        wrong = scsi.report_opcodes(255, 2 if sa is None else 1, op, sa or 0)
        field_at(s.run(wrong, read=255, lun=env.lun0), 2, (2,))
        d = s.run(scsi.report_opcodes(255, 0x80 | (1 if sa is None else 2), op, sa or 0), read=255,
                  lun=env.lun0).good().data
        assert d[1] & 0x80 and len(d) == 4 + n + 12, "CTDP " + d.hex()
    for op in set(range(256)) - {k[0] for k in have}:
        d = s.run(scsi.report_opcodes(255, 1, op), read=255, lun=env.lun0).good().data
        assert d[1] & 7 == 1 and len(d) == 4, "%02x: %s" % (op, d.hex())
    for form in (4, 5, 6, 7):
        field_at(s.run(scsi.report_opcodes(255, form, 0x28), read=255, lun=env.lun0), 2, (2,))


@row("C-03", "SPC-4, SBC-3", "each command of the list works")
def each_is_used(env):
    for name, lun in ((None, env.lun0), (OTHER, 0)):
        s = env.session() if name is None else env.session(name, settle=False)
        s.run_ua(scsi.TEST_UNIT_READY, lun=lun).good()
        have = listed(s, lun)
        for key, (cdb, read, write, thin) in matrix().items():
            if key not in have:
                continue
            t = run(s, cdb, read, write, lun)
            assert t.status == 0, "%02x/%r: status %02x %s" % (key + (t.status, t.where()))
            if key[0] in (0x15, 0x55):  # the same with a list
                run(s, scsi.mode_select6(len(MODE6)) if key[0] == 0x15 else
                    scsi.mode_select10(len(MODE6) + 4), 0,
                    MODE6 if key[0] == 0x15 else bytes(4) + MODE6, lun).good()
        s.run(scsi.RELEASE6, lun=lun).good()
        s.logout()


@row("C-04", "SPC-4 4.5.2.4.2, 6.35.3", "a bit that a command does not use by its own CDB USAGE "
     "DATA is refused with 24/00 and a pointer to it", limit=60)
def each_reserved_bit(env):
    s = env.session()
    for (op, sa), (cdb, read, write, thin) in matrix().items():
        d = s.run(scsi.report_opcodes(255, 1 if sa is None else 2, op, sa or 0), read=255,
                  lun=env.lun0).good().data
        usage = d[4:]
        for i in range(1, len(cdb)):
            for bit in range(8):
                if usage[i] >> bit & 1 or (i == 1 and sa is not None and bit < 5):
                    continue
                bad = bytearray(cdb)
                bad[i] |= 1 << bit
                t = run(s, bytes(bad), read, write, env.lun0)
                # a field of several bits may be pointed to by its leftmost
                try:
                    field_at(t, i, range(bit, 8))
                except AssertionError as e:
                    raise AssertionError("%02x byte %d bit %d: %s" % (op, i, bit, e)) from None
    s.run(scsi.RELEASE6, lun=env.lun0).good()


@row("C-05", "SPC-4 4.3.2", "an operation code that is not in the list: 05/20/00; a service action "
     "that is not: 05/20/00 or 05/24/00", limit=30)
def absent_commands(env):
    s = env.session()
    have = listed(s, env.lun0)
    codes = {k[0] for k in have}
    for op in range(256):
        if op not in codes:
            t = s.run(bytes((op,)) + bytes(15), lun=env.lun0)
            assert t.status == 2, "%02x: status %02x" % (op, t.status)
            t.check(5, 0x20, 0)
    for op in (0x9E, 0xA3):
        for sa in range(32):
            if (op, sa) not in have:
                x = s.run(bytes((op, sa)) + bytes(14), lun=env.lun0).check(5)
                assert (x.asc, x.ascq) in ((0x20, 0), (0x24, 0)), "%02x/%02x" % (op, sa)
    o = env.session(OTHER, settle=False)
    o.run_ua(scsi.TEST_UNIT_READY).good()
    lst = scsi.unmap_list((0, 1))
    o.run(scsi.unmap(len(lst)), write=lst).check(5, 0x20, 0)


RANGED = {0x08: c6, 0x0A: c6, 0x28: c10, 0x2A: c10, 0x2E: c10, 0x2F: c10, 0x34: c10, 0x35: c10,
          0x41: c10, 0x88: c16, 0x8A: c16, 0x8E: c16, 0x8F: c16, 0x90: c16, 0x91: c16, 0x93: c16,
          0xA8: c12, 0xAA: c12, 0xAE: c12, 0xAF: c12}
READS = (0x08, 0x28, 0x88, 0xA8)
WRITES = (0x0A, 0x2A, 0x8A, 0xAA, 0x2E, 0x8E, 0xAE)
WRITE_SAMES = (0x41, 0x93)


def ranged(op, lba, n):
    if RANGED[op] is c6:
        return bytes((op,)) + lba.to_bytes(3, "big") + bytes((n, 0))
    return RANGED[op](op, lba, n)


@row("C-06", "SBC-3 4.5, 5", "each command with a range: the last block is in it, straddling the "
     "end and beyond are 05/21/00 with nothing done")
def each_range(env):
    s = env.session()
    o = fill(env, CAP - 1, 1, 66) if env.stores_data else None
    for op in RANGED:
        for lba, n, ok in ((CAP - 1, 1, True), (CAP - 1, 2, False), (CAP, 1, False),
                           (0x1FFFFF if op in (0x08, 0x0A) else 0xFFFFFFFF, 1, False)):
            write = None
            if op in WRITES:
                write = (o or ONE) * n
            elif op in WRITE_SAMES:
                write = o or ONE
            t = run(s, ranged(op, lba, n), n * BLK if op in READS else 0, write, env.lun0)
            if ok:
                assert t.status == 0, "%02x at %d: %02x %s" % (op, lba, t.status, t.where())
            else:
                assert t.status == 2, "%02x at %d+%d: %02x" % (op, lba, n, t.status)
                t.check(5, 0x21, 0)
                assert not t.data, "%02x: data of a refused command" % op
    for op in (0x88, 0x8A, 0x8F, 0x91):  # an end that wraps around 64 bits
        t = run(s, c16(op, 2**64 - 1, 2), 2 * BLK if op == 0x88 else 0,
                bytes(2 * BLK) if op == 0x8A else None, env.lun0)
        t.check(5, 0x21, 0)
    if o:
        assert read_back(env, CAP - 1, 1) == o


@row("C-07", "SPC-4 6.36, RFC7143 11.5.1", "what REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS tells "
     "is what the functions answer")
def tmf_report(env):
    for level in ("1", "2"):
        s = env.session(iSCSIProtocolLevel=level)
        d = s.run(a12(0xA3, 0x0D, 4), read=4, lun=env.lun0).good().data
        assert len(d) == 4 and not any(d[2:4]), d.hex()
        # byte, bit: (function, response of one that has nothing to do)
        for byte, bit, fn, nothing in ((0, 7, 1, 1), (0, 6, 2, 0), (0, 5, 3, 0), (0, 4, 4, 0),
                                       (0, 3, 5, 0), (0, 2, 9, 0), (1, 2, 12, 0), (1, 1, 10, 0),
                                       (1, 0, 11, 0)):
            r = s.tmf(fn, lun=env.lun0, rtt=0x70707070, ref_cmd_sn=s.win.cmd_sn - 1 & 0xFFFFFFFF)
            if d[byte] >> bit & 1:
                assert r == nothing, "function %d: response %d" % (fn, r)
            else:
                assert r in (5, 255), "function %d is not announced and answers %d" % (fn, r)
            s.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()
        long = s.run(a12(0xA3, 0x0D, 16, 0x80), read=16, lun=env.lun0).good().data
        assert len(long) == 16 and long[:3] == d[:3] and long[3] == 0x0C, long.hex()


@row("C-08", "SBC-3 5", "each write form writes what it is given at its range and nothing beside; "
     "each read form reads it")
def each_form_moves_data(env):
    env.need_data()
    s = env.session()
    for i, op in enumerate(WRITES):
        old = fill(env, AT, 4, 800 + i)
        new = scsi.pattern(2 * BLK, 900 + i)
        s.run(ranged(op, AT + 1, 2), write=new, lun=env.lun0).good()
        want = old[:BLK] + new + old[3 * BLK:]
        for rd in READS:
            got = bytes(s.run(ranged(rd, AT, 4), read=4 * BLK, lun=env.lun0).good().data)
            assert got == want, "written by %02x, read by %02x" % (op, rd)
    # READ(6) and WRITE(6): 0 blocks means 256
    data = scsi.pattern(256 * BLK, 6)
    s.run(ranged(0x0A, 512, 0), write=data, lun=env.lun0).good()
    assert bytes(s.run(ranged(0x08, 512, 0), read=256 * BLK, lun=env.lun0).good().data) == data
    # FUA and DPO are taken, FUA_NV and protection are not there
    for op in (0x28, 0x88, 0xA8):
        cdb = RANGED[op](op, AT, 1, 0x18)
        s.run(cdb, read=BLK, lun=env.lun0).good()
        for prot in (0x20, 0xE0):
            field_at(s.run(RANGED[op](op, AT, 1, prot), read=BLK, lun=env.lun0), 1, (7, 6, 5))


@row("C-09", "SBC-3 5.29", "VERIFY 10, 12, 16: BYTCHK 0 looks at the medium, 1 compares all, 3 one "
     "block with each; 0E/1D/00 with the place; 2 is reserved")
def verify_forms(env):
    env.need_data()
    s = env.session()
    data = fill(env, AT, 4, 91)
    one = scsi.pattern(BLK, 92)
    s.run(scsi.write_same16(AT + 8, 4), write=one, lun=env.lun0).good()
    for op in (0x2F, 0x8F, 0xAF):
        v = RANGED[op]
        s.run(v(op, AT, 4, 0), lun=env.lun0).good()
        s.run(v(op, AT, 4, 0x02), write=data, lun=env.lun0).good()
        bad = bytearray(data)
        bad[2 * BLK + 7] ^= 0x40
        x = s.run(v(op, AT, 4, 0x02), write=bytes(bad), lun=env.lun0).check(0x0E, 0x1D, 0)
        assert x.info in (None, AT + 2, 2 * BLK + 7), "information %r" % x.info
        s.run(v(op, AT + 8, 4, 0x06), write=one, lun=env.lun0).good()
        s.run(v(op, AT, 4, 0x06), write=one, lun=env.lun0).check(0x0E, 0x1D, 0)
        field_at(s.run(v(op, AT, 4, 0x04), write=data, lun=env.lun0), 1, (2, 1))
        s.run(v(op, AT, 0, 0x02), lun=env.lun0).good()
    for op in (0x2E, 0x8E, 0xAE):  # WRITE AND VERIFY: 00b and 01b
        w = RANGED[op]
        s.run(w(op, AT, 1, 0x02), write=data[:BLK], lun=env.lun0).good()
        assert read_back(env, AT, 4) == data
        s.run(w(op, AT, 1, 0x04), write=data[:BLK], lun=env.lun0).check(5, 0x24, 0)


@row("C-10", "SPC-2 5.5.1, SPC-2 7.21", "RESERVE and RELEASE 6 and 10: the other nexus gets "
     "RESERVATION CONFLICT where it must, and none where it must not; reset and logout end it")
def reservation(env):
    a, b = env.session(), env.session()
    kept = ((scsi.write10(AT, 1), 0, ONE), (scsi.read10(AT, 1), BLK, None),
            (scsi.TEST_UNIT_READY, 0, None), (scsi.synchronize_cache10(), 0, None),
            (scsi.mode_sense6(0x08), 255, None), (scsi.verify10(AT, 1), 0, None),
            (c6(0x1B, b4=1), 0, None), (scsi.write_same10(AT, 1), 0, ONE),
            (scsi.RESERVE6, 0, None), (c10(0x56, 0, 0), 0, None),
            (scsi.mode_select6(len(MODE6)), 0, MODE6), (c10(0x34, AT, 1), 0, None))
    free = ((scsi.inquiry(36), 36, None), (scsi.request_sense(), 252, None),
            (scsi.report_luns(), 1024, None), (scsi.RELEASE6, 0, None),
            (c10(0x57, 0, 0), 0, None), (scsi.read_capacity10(), 8, None), (c6(0x1E), 0, None))
    for reserve, release in ((scsi.RESERVE6, scsi.RELEASE6), (c10(0x56, 0, 0), c10(0x57, 0, 0))):
        a.run(reserve, lun=env.lun0).good()
        a.run(reserve, lun=env.lun0).good()  # again by the holder
        for cdb, read, write in kept:
            t = run(b, cdb, read, write, env.lun0)
            assert t.status == 0x18, "%02x: status %02x instead of conflict" % (cdb[0], t.status)
        for cdb, read, write in free:
            run(b, cdb, read, write, env.lun0).good()
        run(a, *kept[0], env.lun0).good()
        a.run(release, lun=env.lun0).good()
        run(b, *kept[0], env.lun0).good()
    a.run(scsi.RESERVE6, lun=env.lun0).good()
    assert b.tmf(5, lun=env.lun0) == 0, "LOGICAL UNIT RESET"
    b.run_ua(scsi.write10(AT, 1), write=ONE, lun=env.lun0).good()
    a.run_ua(scsi.RESERVE6, lun=env.lun0).good()
    a.logout()
    b.run_ua(scsi.write10(AT, 1), write=ONE, lun=env.lun0).good()


@row("C-11", "SPC-4 6.33, SAM-5 4.6.12", "REPORT LUNS: selects 0, 1, 2, others refused; the well-"
     "known unit C101h answers INQUIRY, REPORT LUNS, REQUEST SENSE, TEST UNIT READY, nothing else")
def well_known_unit(env):
    env.need_evtgt()
    s = env.session()
    wlun = 0xC101 << 48

    def luns(select, **kw):
        d = s.run_ua(scsi.report_luns(1024, select), read=1024, **kw).good().data
        n = int.from_bytes(d[:4], "big")
        assert n + 8 == len(d) and not any(d[4:8])
        return {bytes(d[i:i + 8]) for i in range(8, len(d), 8)}

    units = {bytes(8), b"\0\1" + bytes(6)}
    known = {wlun.to_bytes(8, "big")}
    for where in (dict(lun=0), dict(lun=1), dict(lun_field=wlun)):
        assert luns(0, **where) == units
        assert luns(1, **where) <= known
        assert luns(2, **where) == units | luns(1, **where)
        for bad in (3, 0x0F, 0x80):
            field_at(s.run(scsi.report_luns(1024, bad), read=1024, **where), 2, range(8))
    d = s.run(scsi.inquiry(96), read=96, lun_field=wlun).good().data
    assert d[0] == 0x1E, "peripheral device type of C101h: %02x" % d[0]
    s.run_ua(scsi.TEST_UNIT_READY, lun_field=wlun).good()
    s.run(scsi.request_sense(), read=252, lun_field=wlun).good()
    for cdb, n in ((scsi.read10(0, 1), BLK), (scsi.read_capacity10(), 8),
                   (scsi.mode_sense6(0x08), 255), (scsi.synchronize_cache10(), 0)):
        s.run(cdb, read=n, lun_field=wlun).check(5, 0x20, 0)
    s.run(scsi.write10(0, 1), write=ONE, lun_field=wlun).check(5, 0x20, 0)
    t = s.run(scsi.TEST_UNIT_READY, lun_field=0xC102 << 48)
    t.check(5, 0x25, 0)


@row("C-12", "SBC-3 5.43, 5.44", "WRITE SAME: NDOB writes zeros without data, UNMAP bit on a thin "
     "unit, ANCHOR and 10-byte NDOB do not exist; on a unit that is not thin UNMAP is 24/00")
def write_same_forms(env):
    env.need_data()
    s = env.session()
    fill(env, AT, 8, 12)
    s.run(scsi.write_same16(AT, 4, 0x01), lun=env.lun0).good()
    assert read_back(env, AT, 4) == bytes(4 * BLK)
    for cdb in (scsi.write_same10(AT + 4, 4, 0x08), scsi.write_same16(AT + 4, 4, 0x08)):
        fill(env, AT + 4, 4, 13)
        s.run(cdb, write=ONE, lun=env.lun0).good()
        assert read_back(env, AT + 4, 4) == bytes(4 * BLK)
        # UNMAP with a block that is not zero must not lose it
        data = scsi.pattern(BLK, 14)
        s.run(cdb, write=data, lun=env.lun0).good()
        assert read_back(env, AT + 4, 4) == data * 4
    field_at(s.run(scsi.write_same16(AT, 1, 0x10), write=ONE, lun=env.lun0), 1, (4,))
    field_at(s.run(scsi.write_same10(AT, 1, 0x01), write=ONE, lun=env.lun0), 1, (0,))
    o = env.session(OTHER, settle=False)
    o.run_ua(scsi.TEST_UNIT_READY).good()
    for cdb in (scsi.write_same10(AT, 1, 0x08), scsi.write_same16(AT, 1, 0x08)):
        field_at(o.run(cdb, write=ONE), 1, (3,))


@row("C-13", "SBC-3 5.25", "START STOP UNIT: stop makes the unit not ready (or is refused), start "
     "brings it back; power conditions keep it accessible; a fixed medium is not loaded")
def start_stop(env):
    s = env.session()
    t = s.run(c6(0x1B, b4=0), lun=env.lun0)
    if t.status == 2:
        t.check(5, 0x24, 0)
    else:
        t.good()
        x = s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0)
        assert x.status in (0, 2)
        if x.status == 2:
            x.check(2, 0x04)
    s.run(c6(0x1B, b4=1), lun=env.lun0).good()
    s.run_ua(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    s.run(c6(0x1B, 0x01, b4=1), lun=env.lun0).good()           # IMMED
    for pc in range(1, 16):  # power conditions: none makes the unit inaccessible
        t = s.run(c6(0x1B, b4=pc << 4), lun=env.lun0)
        if t.status:
            t.check(5, 0x24, 0)
        s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    s.run(c6(0x1B, b4=0x03), lun=env.lun0).check(5, 0x24, 0)   # load a medium that is fixed


@row("C-14", "SBC-3 5.26, 5.8", "SYNCHRONIZE CACHE and PRE-FETCH 10 and 16: whole, range, to the "
     "end, IMMED; PRE-FETCH of a range it can cache is CONDITION MET or GOOD")
def cache_commands(env):
    s = env.session()
    for op in (0x35, 0x91):
        c = RANGED[op]
        for args in ((0, 0), (AT, 8), (AT, 0), (CAP - 1, 1), (AT, 8, 0x02), (0, 0, 0x02)):
            s.run(c(op, *args), lun=env.lun0).good()
        s.run(c(op, CAP, 1), lun=env.lun0).check(5, 0x21, 0)
    for op in (0x34, 0x90):
        c = RANGED[op]
        for args in ((0, 0), (AT, 8), (AT, 0), (CAP - 1, 1), (AT, 8, 0x02)):
            t = s.run(c(op, *args), lun=env.lun0)
            assert t.status in (0, 4), "PRE-FETCH: status %02x" % t.status


@row("C-15", "SPC-4 6.39", "REQUEST SENSE: fixed, and descriptor with DESC=1; a pending unit "
     "attention is told once")
def request_sense_forms(env):
    s = env.session(settle=False)
    d = s.run(scsi.request_sense(252, 0), read=252, lun=env.lun0).good().data
    x = scsi.Sense(bytes(d))
    assert (d[0], x.key, x.asc) == (0x70, 6, 0x29), d.hex()
    env.medium_told(s)
    d = s.run(scsi.request_sense(252, 1), read=252, lun=env.lun0).good().data
    assert d[0] == 0x72 and d[7] + 8 == len(d) and scsi.Sense(bytes(d)).key == 0, d.hex()
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    d = s.run(scsi.request_sense(4, 0), read=4, lun=env.lun0).good().data
    assert len(d) == 4, "cut by the allocation length"
    d = s.run(scsi.request_sense(0, 0), lun=env.lun0).good().data
    assert not d


@row("C-16", "SBC-3 4.5, 6.4", "4096-byte blocks: capacity, ranges, data and lengths count in them")
def big_blocks(env):
    env.need_evtgt()
    s = env.session(K4, settle=False)
    s.run_ua(scsi.TEST_UNIT_READY).good()
    d = s.run(scsi.read_capacity10(), read=8).good().data
    assert (int.from_bytes(d[:4], "big"), int.from_bytes(d[4:], "big")) == (4095, 4096)
    if not env.stores_data:
        raise Skip("the null backend keeps no data")
    data = scsi.pattern(3 * 4096, 160)
    for op in (0x2A, 0x8A, 0xAA, 0x2E, 0x8E, 0xAE):
        s.run(ranged(op, 7, 3), write=data).good()
        assert bytes(s.run(ranged(0x28, 7, 3), read=3 * 4096).good().data) == data
        s.run(ranged(op, 4095, 2), write=data[:8192]).check(5, 0x21, 0)
    s.run(scsi.unmap(24), write=scsi.unmap_list((8, 1))).good()
    got = bytes(s.run(ranged(0x28, 7, 3), read=3 * 4096).good().data)
    assert got == data[:4096] + bytes(4096) + data[8192:]


@row("C-17", "SBC-3 5.10", "PREVENT ALLOW MEDIUM REMOVAL: taken with prevent 0; with 1 "
     "on a medium that cannot be removed GOOD or 24/00; reserved values refused")
def prevent_allow(env):
    s = env.session()
    s.run(c6(0x1E), lun=env.lun0).good()
    t = s.run(c6(0x1E, b4=1), lun=env.lun0)
    if t.status:
        t.check(5, 0x24, 0)
    s.run(c6(0x1E), lun=env.lun0).good()
    s.run(c6(0x1E, b4=2), lun=env.lun0).check(5, 0x24, 0)
