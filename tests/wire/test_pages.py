# SPDX-License-Identifier: BSD-2-Clause
"""Vital product data, mode pages and text keys: what each announces is used, and exceeded.

Numbers come from the target's own pages; what they mean comes from SPC-4 7.5, 7.8 and SBC-3 6."""

from harness import (BLK, DISK, IQN, MIB, Lun, Skip, Target, fill, offer, read_back, row, scsi)
from lib.iscsi import parse_text, text

BIG, THICK, TUNED = IQN + "big", IQN + "thick", IQN + "tuned"
PLAIN = dict(HeaderDigest="None", DataDigest="None")  # much data and a slow CRC of the test's own


def targets():
    return [Target("disk", [Lun("disk0.img", 16 * MIB, 0, opts=["thin-provisioning on"]),
                            Lun("disk1.img", 4 * MIB, 1)],
                   ["initiator-address ALL", "InitialR2T No"]),
            Target("big", [Lun("big.img", 3 << 40, 0, kind="file",
                               opts=["thin-provisioning on"])]),
            Target("thick", [Lun("thick.img", 4 * MIB, 0, opts=["thin-provisioning off"], thick=True)]),
            Target("tuned", [Lun("t0.img", 4 * MIB, 0, opts=[
                "rotation_rate 7200", "optimal_xfer_gran 8", "optimal_xfer_len 2048",
                "lbppbe 3", "la_lba 1"]), Lun("t1.img", 4 * MIB, 1, opts=[
                    "sense_format 1", "write-cache off", "rotation_rate 1"])])]


def vpd(s, page, lun=0):
    d = bytes(s.run(scsi.inquiry(1024, page), read=1024, lun=lun).good().data)
    assert d[1] == page and int.from_bytes(d[2:4], "big") + 4 == len(d), d[:8].hex()
    return d


def num(d, at, n):
    return int.from_bytes(d[at:at + n], "big")


def ready(env, name, lun=0, **kw):
    s = env.session(name, settle=False, **kw)
    s.run_ua(scsi.TEST_UNIT_READY, lun=lun).good()
    return s


def c16(op, lba, n, b1=0):
    return bytes((op, b1)) + lba.to_bytes(8, "big") + n.to_bytes(4, "big") + bytes(2)


def c12(op, lba, n, b1=0):
    return bytes((op, b1)) + lba.to_bytes(4, "big") + n.to_bytes(4, "big") + bytes(2)


# ---- B0h, B1h, B2h ---------------------------------------------------------------------------

@row("Q-01", "SBC-3 6.5.3", "MAXIMUM TRANSFER LENGTH: exactly so many blocks move in one command, "
     "one more is 24/00 with a pointer to the length, for each command it holds for", limit=60)
def maximum_transfer(env):
    env.need_data()
    s = ready(env, BIG, **PLAIN)
    most = num(vpd(s, 0xB0), 8, 4)
    if not most:
        raise Skip("no MAXIMUM TRANSFER LENGTH is announced")
    assert most * BLK <= 256 * MIB, "%d blocks: too many for this test" % most
    data = scsi.pattern(BLK, 1) * most
    s.run(c16(0x8A, 0, most), write=data, timeout=40).good()
    assert bytes(s.run(c16(0x88, 0, most), read=len(data), timeout=40).good().data) == data
    s.run(c16(0x8F, 0, most), timeout=40).good()
    for op, at in ((0x88, 10), (0x8A, 10), (0x8E, 10), (0x8F, 10), (0xA8, 6), (0xAA, 6),
                   (0xAE, 6), (0xAF, 6)):
        cdb = (c16 if op & 0xF0 == 0x80 else c12)(op, 0, most + 1)
        if op in (0x8A, 0x8E, 0xAA, 0xAE):
            t = s.run(cdb, write=data + data[:BLK], timeout=40)
        else:
            t = s.run(cdb, read=BLK if op in (0x88, 0xA8) else 0)
        x = t.check(5, 0x24, 0)
        assert x.field is not None and at <= x.field < at + 4, "%02x: field %r" % (op, x.field)
    s.run(scsi.unmap(24), write=scsi.unmap_list((0, most))).good()


@row("Q-02", "SBC-3 6.5.3, 5.28", "UNMAP: MAXIMUM UNMAP LBA COUNT in one and in several "
     "descriptors, MAXIMUM UNMAP BLOCK DESCRIPTOR COUNT; one more of either is 05/26/00")
def unmap_limits(env):
    env.need_data()
    s = ready(env, BIG)
    b0 = vpd(s, 0xB0)
    blocks, descs = num(b0, 20, 4), num(b0, 24, 4)
    assert blocks and descs, "a thin unit announces no UNMAP"

    def unmap(*ranges):
        lst = scsi.unmap_list(*ranges)
        return s.run(scsi.unmap(len(lst)), write=lst)

    s.run(scsi.write16(5, 1), write=scsi.pattern(BLK, 2)).good()
    if blocks != 0xFFFFFFFF:
        unmap((0, blocks + 1)).check(5, 0x26, 0)
        unmap((0, blocks), (blocks, 1)).check(5, 0x26, 0)
        assert any(s.run(scsi.read16(5, 1), read=BLK).good().data), "refused, but done"
        unmap((0, blocks)).good()
        unmap((0, blocks // 2), (blocks // 2, blocks - blocks // 2)).good()
    else:
        unmap((0, 1 << 20)).good()
    assert not any(s.run(scsi.read16(5, 1), read=BLK).good().data), "GOOD, but not done"
    if descs <= 4000:
        s.run(scsi.write16(0, 1), write=scsi.pattern(BLK, 3)).good()
        unmap(*[(i * 8, 1) for i in range(descs + 1)]).check(5, 0x26, 0)
        assert any(s.run(scsi.read16(0, 1), read=BLK).good().data), "refused, but done"
        unmap(*[(i * 8, 1) for i in range(descs)]).good()
        assert not any(s.run(scsi.read16(0, 1), read=BLK).good().data), "GOOD, but not done"


@row("Q-03", "SBC-3 5.28", "UNMAP parameter lists: cut, of odd lengths, with ranges beyond the end, "
     "of no descriptors: an error, or GOOD with nothing to do; never a part")
def unmap_lists(env):
    env.need_data()
    s = env.session()
    data = fill(env, 64, 4, 30)
    lst = scsi.unmap_list((64, 1), (66, 1))
    s.run(scsi.unmap(0), lun=env.lun0).good()
    s.run(scsi.unmap(8), write=scsi.unmap_list(), lun=env.lun0).good()
    s.run(scsi.unmap(7), write=lst[:7], lun=env.lun0).check(5, 0x1A, 0)
    bad = scsi.unmap_list((64, 1), (16 * MIB // BLK, 1))
    s.run(scsi.unmap(len(bad)), write=bad, lun=env.lun0).check(5, 0x21, 0)
    assert read_back(env, 64, 4) == data, "refused, but the first range is gone"
    s.run(scsi.unmap(24), write=scsi.unmap_list((64, 0)), lun=env.lun0).good()
    assert read_back(env, 64, 4) == data
    s.run(scsi.unmap(len(lst)), write=lst, lun=env.lun0).good()
    zero = bytes(BLK)
    assert read_back(env, 64, 4) == zero + data[BLK:2 * BLK] + zero + data[3 * BLK:]


@row("Q-04", "SBC-3 6.5.3, 5.43", "MAXIMUM WRITE SAME LENGTH and WSNZ: exactly so many blocks, one "
     "more is 24/00; none is 24/00 when WSNZ is set")
def write_same_limits(env):
    env.need_data()
    s = ready(env, BIG)
    b0 = vpd(s, 0xB0)
    most, wsnz = num(b0, 36, 8), b0[4] & 1
    zero = bytes(BLK)
    if most and most < 1 << 32:
        s.run(scsi.write16(9, 1), write=scsi.pattern(BLK, 4)).good()
        x = s.run(scsi.write_same16(0, most + 1, 8), write=zero).check(5, 0x24, 0)
        assert x.field is not None and 10 <= x.field < 14, "field %r" % x.field
        assert any(s.run(scsi.read16(9, 1), read=BLK).good().data), "refused, but done"
        s.run(scsi.write_same16(0, most, 8), write=zero, timeout=20).good()
        assert not any(s.run(scsi.read16(9, 1), read=BLK).good().data), "GOOD, but not done"
        if most < 0xFFFF:
            s.run(scsi.write_same10(0, most + 1, 8), write=zero).check(5, 0x24, 0)
    if wsnz:
        for cdb, at in ((scsi.write_same16(0, 0), 10), (scsi.write_same10(0, 0), 7)):
            x = s.run(cdb, write=zero).check(5, 0x24, 0)
            assert x.field is not None and at <= x.field < at + 4, "field %r" % x.field


@row("Q-05", "SBC-3 6.5.3", "fields of B0h that say no: no COMPARE AND WRITE, no atomic writes, no "
     "prefetch limit; granularities are as configured")
def limits_that_say_no(env):
    s = ready(env, TUNED)
    b0 = vpd(s, 0xB0)
    assert len(b0) == 64, "page length %d" % len(b0)
    assert num(b0, 6, 2) == 8 and num(b0, 12, 4) == 2048, b0.hex()
    assert num(b0, 12, 4) <= (num(b0, 8, 4) or 1 << 32), "optimal above maximum"
    if b0[5] == 0:
        s.run(scsi.compare_and_write(0, 1), write=bytes(2 * BLK)).check(5, 0x20, 0)
    if not any(b0[44:64]):
        s.run(c16(0x9C, 0, 0), write=bytes(BLK)).check(5, 0x20, 0)
    d = s.run(scsi.read_capacity16(), read=32).good().data
    assert d[13] & 15 == 3 and num(d, 14, 2) & 0x3FFF == 1, d.hex()
    gran = num(b0, 28, 4)
    if gran and env.stores_data:
        s.run(scsi.unmap(24), write=scsi.unmap_list((0, gran))).good()


@row("Q-06", "SBC-3 6.5.2", "B1h tells the rotation rate that is configured; FORM FACTOR and the "
     "rest are 0")
def characteristics(env):
    s = ready(env, TUNED)
    s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
    b1 = vpd(s, 0xB1)
    assert len(b1) == 64 and num(b1, 4, 2) == 7200 and not any(b1[6:]), b1.hex()
    assert num(vpd(s, 0xB1, 1), 4, 2) == 1


@row("Q-07", "SBC-3 6.5.4, 4.7", "B2h: LBPU is UNMAP, LBPWS and LBPWS10 are WRITE SAME with UNMAP, "
     "LBPRZ is zeros after them, PROVISIONING TYPE goes with LBPME; a unit that is not thin has none")
def provisioning(env):
    env.need_data()
    s = env.session()
    b2 = vpd(s, 0xB2, env.lun0)
    rc = s.run(scsi.read_capacity16(), read=32, lun=env.lun0).good().data
    assert b2[5] & 0xE0 == 0xE0 and b2[6] & 7 == 2 and rc[14] & 0x80, (b2.hex(), rc.hex())
    lbprz = b2[5] >> 2 & 1
    assert lbprz == rc[14] >> 6 & 1, "LBPRZ of the page and of READ CAPACITY differ"
    for cdb, data in ((scsi.unmap(24), scsi.unmap_list((64, 2))),
                      (scsi.write_same16(64, 2, 8), bytes(BLK)),
                      (scsi.write_same10(64, 2, 8), bytes(BLK))):
        old = fill(env, 64, 4, 70)
        s.run(cdb, write=data, lun=env.lun0).good()
        got = read_back(env, 64, 4)
        assert got[2 * BLK:] == old[2 * BLK:], "more than was asked"
        if lbprz:
            assert not any(got[:2 * BLK]), "LBPRZ, but no zeros after %02x" % cdb[0]
    assert b2[5] & 0x02 == 0, "ANC_SUP"
    s.run(b"\x42\x01" + scsi.unmap(24)[2:], write=scsi.unmap_list((64, 2)),
          lun=env.lun0).check(5, 0x24, 0)
    t = ready(env, THICK)
    b2 = vpd(t, 0xB2)
    rc = t.run(scsi.read_capacity16(), read=32).good().data
    assert not b2[5] & 0xE0 and b2[6] & 7 == 0 and not rc[14] & 0x80, (b2.hex(), rc.hex())
    assert not any(vpd(t, 0xB0)[20:32]), "UNMAP limits of a unit that is not thin"


@row("Q-08", "SPC-4 7.8.7, SAM-5 8", "86h: the task attributes it announces are taken; no protection "
     "information: PROTECT of INQUIRY is 0 and RDPROTECT is refused")
def extended_inquiry(env):
    s = env.session()
    d = vpd(s, 0x86, env.lun0)
    assert len(d) == 64, "page length"
    for bit, attr in ((0, 1), (1, 2), (2, 3)):  # SIMPSUP, ORDSUP, HEADSUP
        t = s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0, attr=attr)
        assert (t.status == 0) == bool(d[5] >> bit & 1), "attribute %d: %02x" % (attr, t.status)
    inq = s.run(scsi.inquiry(96), read=96, lun=env.lun0).good().data
    assert not inq[5] & 1 and not d[4] & 0x3F
    s.run(scsi.read10(0, 1, 0x20), read=BLK, lun=env.lun0).check(5, 0x24, 0)


@row("Q-09", "SPC-4 6.6", "INQUIRY: allocation lengths cut, page code without EVPD and CMDDT are "
     "24/00, version descriptors name SAM, iSCSI, SPC and SBC")
def standard_inquiry(env):
    s = env.session()
    full = bytes(s.run(scsi.inquiry(255), read=255, lun=env.lun0).good().data)
    assert full[4] + 5 == len(full) and full[0] == 0 and full[3] & 15 == 2, full.hex()
    for n in (0, 1, 5, 36, 96):
        got = s.run(scsi.inquiry(n), read=n, lun=env.lun0).good().data
        assert bytes(got) == full[:n], "allocation %d" % n
    x = s.run(b"\x12\0\x80\0\xff\0", read=255, lun=env.lun0).check(5, 0x24, 0)
    assert x.field == 2, "field %r" % x.field
    s.run(b"\x12\x02\0\0\xff\0", read=255, lun=env.lun0).check(5, 0x24, 0)
    have = {num(full, i, 2) & 0xFFE0 for i in range(58, 74, 2)} - {0}
    for lo, name in ((0x00A0, "SAM-5"), (0x0960, "iSCSI"), (0x0460, "SPC-4"), (0x04C0, "SBC-3")):
        assert lo in have or name == "SAM-5" and have & {0x0040, 0x0060, 0x0080, 0x00A0}, \
            "no version descriptor of %s: %r" % (name, [hex(v) for v in have])


# ---- mode pages ------------------------------------------------------------------------------

# page, subpage: length with its header, {byte: bits that may be changed}  (SPC-4 7.5, SBC-3 6.4)
MODE_PAGES = {(0x01, 0): (12, {}), (0x02, 0): (16, {}), (0x08, 0): (20, {2: 0x04}),
              (0x0A, 0): (12, {2: 0x04, 4: 0x08}), (0x0A, 1): (32, {}), (0x1C, 0): (12, {})}
CURRENT, CHANGEABLE, DEFAULT, SAVED = range(4)


def mode_page(s, page, sub=0, pc=CURRENT, lun=0):
    d = bytes(s.run(scsi.mode_sense10(page, 1024, 1, pc, sub), read=1024, lun=lun).good().data)
    assert num(d, 0, 2) + 2 == len(d) and num(d, 6, 2) == 0, d.hex()
    return d[8:]


def select(s, page, lun=0, sp=0, ten=True):
    if ten:
        return s.run(scsi.mode_select10(8 + len(page), sp), write=bytes(8) + page, lun=lun)
    return s.run(scsi.mode_select6(4 + len(page), sp), write=bytes(4) + page, lun=lun)


def plain(p):
    """As MODE SELECT takes it: PS is reserved there."""
    return bytes((p[0] & 0x7F,)) + p[1:]


@row("Q-10", "SPC-4 6.13, 7.5", "MODE SENSE: each page by its code, in 3F and 3F/FF, with all page "
     "controls, in both lengths; codes that are not there are 24/00")
def mode_pages(env):
    s = env.session()
    for pc in (CURRENT, CHANGEABLE, DEFAULT):
        every = b""
        for (page, sub), (n, change) in MODE_PAGES.items():
            p = mode_page(s, page, sub, pc, env.lun0)
            assert len(p) == n and p[0] & 0x7F == page | (0x40 if sub else 0), p.hex()
            assert p[1] == (sub or n - 2) and (not sub or num(p, 2, 2) == n - 4), p.hex()
            if pc == CHANGEABLE:
                for i in range(4 if sub else 2, n):
                    assert p[i] == change.get(i, 0), "page %02x byte %d: %02x" % (page, i, p[i])
            every += p
            d = s.run(scsi.mode_sense6(page, 255, 0, pc, sub), read=255, lun=env.lun0).good().data
            assert d[3] == 8 and bytes(d[12:]) == p and d[0] + 1 == len(d), bytes(d).hex()
            assert num(d, 4, 4) == 16 * MIB // BLK and num(d, 9, 3) == BLK, "block descriptor"
        assert mode_page(s, 0x3F, 0xFF, pc, env.lun0) == every
        short = mode_page(s, 0x3F, 0, pc, env.lun0)
        assert short == every.replace(mode_page(s, 0x0A, 1, pc, env.lun0), b"")
        assert mode_page(s, 0x0A, 0xFF, pc, env.lun0) == mode_page(s, 0x0A, 0, pc, env.lun0) \
            + mode_page(s, 0x0A, 1, pc, env.lun0)
    t = s.run(scsi.mode_sense10(0x08, 1024, 1, SAVED), read=1024, lun=env.lun0)
    if t.status:
        t.check(5, 0x39, 0)
    codes = {p for p, _ in MODE_PAGES}
    for page in set(range(0x3F)) - codes:
        x = s.run(scsi.mode_sense6(page), read=255, lun=env.lun0).check(5, 0x24, 0)
        assert x.field == 2, "page %02x: field %r" % (page, x.field)
    for page, sub in ((0x08, 1), (0x0A, 2), (0x3F, 1)):
        x = s.run(scsi.mode_sense6(page, sub=sub), read=255, lun=env.lun0).check(5, 0x24, 0)
        assert x.field == 3, "page %02x/%02x: field %r" % (page, sub, x.field)
    d = s.run(scsi.mode_sense10(0x08, 1024, llbaa=1), read=1024, lun=env.lun0).good().data
    assert d[4] & 1 and num(d, 6, 2) == 16 and num(d, 8, 8) == 16 * MIB // BLK, bytes(d).hex()


@row("Q-11", "SPC-4 6.11, 7.5.5", "MODE SELECT: what is there may be written back; a bit that cannot "
     "be changed is 05/26/00 with a pointer into the list, and nothing of the list is taken")
def mode_select(env):
    s = env.session()
    wce = mode_page(s, 0x08, 0, CURRENT, env.lun0)
    for (page, sub), (n, change) in MODE_PAGES.items():
        p = plain(mode_page(s, page, sub, CURRENT, env.lun0))
        for ten in (False, True):
            select(s, p, env.lun0, ten=ten).good()
        for i in range(4 if sub else 2, n):
            for bit in range(8):
                if change.get(i, 0) >> bit & 1:
                    continue
                bad = bytearray(p)
                bad[i] ^= 1 << bit
                x = select(s, bytes(bad), env.lun0).check(5, 0x26, 0)
                assert x.field == 8 + i, "%02x/%02x byte %d: field %r" % (page, sub, i, x.field)
                if x.code == 0x70:
                    assert x.raw[15] & 0x40 == 0, "C/D set for a parameter list"
    # the first page is right and would change WCE, the second is wrong: neither is taken
    flip = bytearray(plain(wce))
    flip[2] ^= 4
    select(s, bytes(flip) + b"\x0a\x0a" + b"\xff" * 10, env.lun0).check(5, 0x26, 0)
    assert mode_page(s, 0x08, 0, CURRENT, env.lun0) == wce, "part of a refused list was taken"
    p = plain(wce)
    select(s, p[:1] + bytes((p[1] + 1,)) + p[2:] + b"\0", env.lun0).check(5, 0x26, 0)
    select(s, p[:-1], env.lun0).check(5, 0x1A, 0)
    select(s, b"\x3d\x02\0\0", env.lun0).check(5, 0x26, 0)
    s.run(scsi.mode_select6(3), write=bytes(3), lun=env.lun0).check(5, 0x1A, 0)
    s.run(scsi.mode_select6(4 + len(p), pf=0), write=bytes(4) + p, lun=env.lun0).check(5, 0x24, 0)
    for desc in (bytes((0, 0, 0, 1, 0, 0, 2, 0)), bytes((0, 0, 0, 0, 0, 0, 4, 0))):
        s.run(scsi.mode_select6(12 + len(p)), write=bytes((0, 0, 0, 8)) + desc + p,
              lun=env.lun0).check(5, 0x26, 0)


@row("Q-12", "SBC-3 6.4.5, SPC-4 7.5.6, SAM-5 5.14", "WCE, SWP and D_SENSE: each changes, holds for "
     "all nexuses, tells the others by 2A/01 and takes effect; a login does not undo it")
def mode_effects(env):
    s, other = env.session(), env.session()

    def flip(page, byte, mask, on):
        p = bytearray(plain(mode_page(s, page, 0, CURRENT, env.lun0)))
        before = p[byte] & mask
        p[byte] = p[byte] & ~mask | (mask if on else 0)
        select(s, bytes(p), env.lun0).good()
        assert mode_page(s, page, 0, CURRENT, env.lun0)[byte] & mask == (mask if on else 0)
        s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()  # none for who did it
        if bool(before) != on:
            x = other.run(scsi.TEST_UNIT_READY, lun=env.lun0).check(6, 0x2A, 1)
            assert x.code == (0x72 if (page, byte) == (0x0A, 2) and on else 0x70)
        other.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()

    try:
        flip(0x0A, 4, 0x08, True)
        for w in (s, other):
            w.run(scsi.write10(64, 1), write=bytes(BLK), lun=env.lun0).check(7, 0x27)
            w.run(scsi.read10(64, 1), read=BLK, lun=env.lun0).good()
        d = s.run(scsi.mode_sense6(0x0A), read=255, lun=env.lun0).good().data
        assert d[2] & 0x80, "WP is not shown"
        with env.session() as third:
            third.run(scsi.write10(64, 1), write=bytes(BLK), lun=env.lun0).check(7, 0x27)
    finally:
        flip(0x0A, 4, 0x08, False)
    other.run(scsi.write10(64, 1), write=bytes(BLK), lun=env.lun0).good()
    try:
        flip(0x0A, 2, 0x04, True)
        for w in (s, other):
            x = w.run(scsi.read10(1 << 24, 1), read=BLK, lun=env.lun0).check(5, 0x21, 0)
            assert x.code == 0x72, "D_SENSE=1, sense of form %02x" % x.code
            x = w.run(scsi.read10(0, 1, 0x80), read=BLK, lun=env.lun0).check(5, 0x24, 0)
            assert x.code == 0x72 and x.field == 1, "field pointer in descriptor sense"
        if env.stores_data:
            data = fill(env, 64, 2, 12)
            x = s.run(scsi.verify10(64, 2, 1), write=bytes(2 * BLK), lun=env.lun0)
            x = x.check(0x0E, 0x1D, 0)
            assert x.code == 0x72 and data
    finally:
        flip(0x0A, 2, 0x04, False)
    first = bool(mode_page(s, 0x08, 0, CURRENT, env.lun0)[2] & 4)
    for on in (not first, first):
        flip(0x08, 2, 0x04, on)
        s.run(scsi.write10(64, 1), write=bytes(BLK), lun=env.lun0).good()
        s.run(scsi.synchronize_cache10(), lun=env.lun0).good()


@row("Q-13", "SPC-4 6.11, 7.5.3", "saved values: SP=1 outlives a restart where PS is set, else it is "
     "24/00; defaults are the configuration's")
def mode_saved(env):
    env.need_evtgt()
    s = env.session()
    p = mode_page(s, 0x08, 0, CURRENT, env.lun0)
    new = bytearray(plain(p))
    new[2] ^= 4
    if not p[0] & 0x80:
        select(s, bytes(new), env.lun0, sp=1).check(5, 0x24, 0)
        return
    assert mode_page(s, 0x08, 0, SAVED, env.lun0)[2] & 4 == p[2] & 4
    select(s, bytes(new), env.lun0, sp=1).good()
    env.cleanup()
    env.d.stop()
    env.d.start()
    s = env.session()
    assert mode_page(s, 0x08, 0, CURRENT, env.lun0)[2] & 4 == new[2] & 4, "not saved"
    assert mode_page(s, 0x08, 0, DEFAULT, env.lun0)[2] & 4 == p[2] & 4, "default changed"
    select(s, plain(p), env.lun0, sp=1).good()


@row("Q-14", "SPC-4 7.5.6, SBC-3 6.4.5", "the configuration's write cache and sense format are what "
     "the pages show and the unit does")
def mode_configured(env):
    s = env.session(TUNED, settle=False)
    x = s.run(scsi.TEST_UNIT_READY, lun=1).check(6, 0x29)
    assert x.code == 0x72, "sense_format 1: descriptor"
    s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
    assert mode_page(s, 0x0A, lun=1)[2] & 4 and not mode_page(s, 0x08, lun=1)[2] & 4
    s.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
    assert not mode_page(s, 0x0A, lun=0)[2] & 4


# ---- text keys -------------------------------------------------------------------------------

# key: values that hold, values that must not (RFC7143 6.1, 6.2, 12, 13).  A login with a bad one
# gets key=Reject or class 02.
KEYS = {
    "AuthMethod": (("None", "CHAP,None", "KRB5,SRP,None"), ("Nonesuch",)),
    "HeaderDigest": (("None", "CRC32C", "None,CRC32C", "CRC32C,None"), ("crc32c", "X-none")),
    "DataDigest": (("None", "CRC32C", "CRC32C,None"), ("none", "MD5")),
    "MaxConnections": (("1", "65535", "0xffff"), ("0", "65536", "-1", "1,2", "one")),
    "InitialR2T": (("Yes", "No"), ("yes", "1", "")),
    "ImmediateData": (("Yes", "No"), ("NO", "0")),
    "MaxRecvDataSegmentLength": (("512", "16777215", "0x200"), ("511", "16777216", "1e4")),
    "MaxBurstLength": (("512", "16777215"), ("511", "16777216")),
    "FirstBurstLength": (("512",), ("511", "16777216")),
    "DefaultTime2Wait": (("0", "3600"), ("3601", "-1")),
    "DefaultTime2Retain": (("0", "3600"), ("3601",)),
    "MaxOutstandingR2T": (("1", "65535"), ("0", "65536")),
    "DataPDUInOrder": (("Yes", "No"), ("Maybe",)),
    "DataSequenceInOrder": (("Yes", "No"), ("Maybe",)),
    "ErrorRecoveryLevel": (("0", "1", "2"), ("3", "-1")),
    "IFMarker": (("No",), ("Nope",)),
    "OFMarker": (("No",), ("Nope",)),
    "TaskReporting": (("RFC3720", "ResponseFence,RFC3720"), ("Fence",)),
    "iSCSIProtocolLevel": (("1", "2", "31"), ("32", "x")),
    "InitiatorAlias": (("a", "x" * 255), ()),
}
DECLARED = ("MaxRecvDataSegmentLength", "InitiatorAlias")


@row("Y-01", "6.1, 6.2, 12, 13", "each text key with each kind of value that holds: answered within "
     "the offer, or declared and not answered", limit=40)
def each_key_holds(env):
    for key, (good, bad) in KEYS.items():
        for v in good:
            r, got = offer(env, (key, v))
            assert r is not None and got is not None, "%s=%s was refused" % (key, v)
            if key in DECLARED:
                assert got.get(key) != "Reject", "%s=%s was refused" % (key, v)
                continue
            if key == "AuthMethod":
                # a key of the security stage in the operational one: any clean answer
                continue
            a = got.get(key)
            assert a is not None, "%s=%s was not answered" % (key, v)
            assert a != "NotUnderstood", "%s is not known" % key
            env.cleanup()


@row("Y-02", "6.1, 6.2, 12, 13", "each text key with values beyond its range or type: Reject or "
     "class 02", limit=40)
def each_key_exceeded(env):
    for key, (good, bad) in KEYS.items():
        if key == "AuthMethod":
            continue
        for v in bad:
            r, got = offer(env, (key, v))
            if got is None:
                continue
            assert got.get(key) in ("Reject", "No") if key.endswith("Marker") \
                else got.get(key) == "Reject", "%s=%s was answered %r" % (key, v, got.get(key))
            env.cleanup()
    s = env.new()
    r = s.login_step(text(*(s.first_pairs() + [("AuthMethod", "Nonesuch")])), csg=0, nsg=1)
    assert r.status_class == 2 or dict(parse_text(r.data)).get("AuthMethod") == "Reject" \
        and not r.flags & 0x80, repr(r)


@row("Y-03", "13.6, 13.8, 13.9, C", "keys that only a target sends, or that have no place in a "
     "login, are Reject, class 02 or NotUnderstood, and change nothing")
def keys_out_of_place(env):
    for key, v in (("TargetAlias", "x"), ("TargetAddress", "127.0.0.1:1,1"),
                   ("TargetPortalGroupTag", "1"), ("SendTargets", "All")):
        s = env.new()
        r = s.login_step(text(*(s.first_pairs() + [(key, v)])), t=False)
        if r.status_class:
            assert r.status_class == 2, repr(r)
            continue
        got = parse_text(r.data)
        answers = [x for k, x in got if k == key]
        if key == "TargetPortalGroupTag":
            assert "1" in answers, "the target's own tag is missing"  # 13.9
            answers.remove("1")
        assert all(x in ("Reject", "NotUnderstood", "Irrelevant") for x in answers), \
            "%s=%s was answered %r" % (key, v, answers)
        assert "TargetName" not in dict(got), "targets shown in a login"
        r = s.login_step()
        assert r.status_class == 0, "login cannot go on"


@row("Y-04", "13, 6.4", "keys that may not change in full feature phase do not; the ones that may "
     "do: MaxRecvDataSegmentLength holds from then on")
def keys_in_full_feature(env):
    s = env.session()
    for key, v in (("MaxBurstLength", "1024"), ("InitialR2T", "Yes"), ("MaxOutstandingR2T", "1"),
                   ("TargetName", DISK), ("SessionType", "Discovery"), ("AuthMethod", "None")):
        p = s.text_pdu(text((key, v)))
        s.send(p)
        out = s.outcome()
        assert out[0] in ("reject", "pdu"), "reaction %r" % (out,)
        if out[0] == "pdu":
            a = dict(parse_text(out[1].data)).get(key)
            assert a in ("Reject", "Irrelevant", "NotUnderstood"), "%s was answered %r" % (key, a)
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    s.conn.max_recv = 1024
    s.text(text(("MaxRecvDataSegmentLength", "1024")))
    t = s.run(scsi.read10(0, 16), read=16 * BLK, lun=env.lun0).good()
    assert max(p.dsl for p in t.datains) <= 1024, "the old MaxRecvDataSegmentLength"
