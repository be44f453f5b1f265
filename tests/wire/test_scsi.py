# SPDX-License-Identifier: BSD-2-Clause
"""SCSI answers over the wire: the K rows, and the reports about SCSI semantics (SPC-4, SBC-3)."""

from harness import (BLK, DISK, IQN, Lun, MIB, OTHER, P, Skip, Target, fill, read_back, row, scsi)

BIG = IQN + "big"
IDS = IQN + "ids"
K4 = IQN + "k4"


def targets():
    tib3 = 3 << 40
    return [Target("disk", [Lun("disk0.img", 16 * MIB, 0, opts=["thin-provisioning on"]),
                            Lun("disk1.img", 4 * MIB, 1),
                            Lun("disk300.img", 4 * MIB, 300)],
                   ["initiator-address ALL", "InitialR2T No"]),
            Target("other", [Lun("other0.img", 4 * MIB, 0)]),
            Target("big", [Lun("big.img", tib3, 0, kind="file", opts=["thin-provisioning on"])]),
            Target("nolun0", [Lun("n1.img", MIB, 1)]),
            Target("ids", [Lun("i0.img", MIB, 0, opts=["vendor_id 12345678",
                                                       "product_id 1234567890123456",
                                                       "product_rev 1%s"]),
                           Lun("i1.img", MIB, 1, opts=["vendor_id A", "product_id P%n%s",
                                                       "scsi_sn SN%d%s"])]),
            Target("k4", [Lun("k4.img", 4 * MIB, 0, opts=["block-size 4096",
                                                          "thin-provisioning on"])])]


def pages(s, lun):
    t = s.run(scsi.inquiry(255, 0), read=255, lun=lun).good()
    assert t.data[1] == 0 and t.data[3] + 4 == len(t.data), t.data.hex()
    return list(t.data[4:])


def vpd(s, page, lun):
    t = s.run(scsi.inquiry(1024, page), read=1024, lun=lun).good()
    assert t.data[1] == page
    assert int.from_bytes(t.data[2:4], "big") + 4 == len(t.data), "page length of %02x" % page
    return bytes(t.data)


def designators(d):
    at, out = 4, []
    while at < len(d):
        n = d[at + 3]
        out.append((d[at + 1] >> 4 & 3, d[at + 1] & 15, bytes(d[at + 4:at + 4 + n])))
        at += 4 + n
    assert at == len(d), "designators do not fill the page"
    return out


def lun_list(s, lun=0, alloc=1024):
    t = s.run(scsi.report_luns(alloc), read=alloc, lun=lun).good()
    n = int.from_bytes(t.data[:4], "big")
    assert n % 8 == 0
    return n, [bytes(t.data[i:i + 8]) for i in range(8, len(t.data) - 7, 8)], t


@row("K-04", "SPC-4 6.33", "REPORT LUNS lists the LUN in the form that addresses it")
def report_luns(env):
    s = env.session()
    n, luns, _ = lun_list(s, env.lun0)
    for x in luns:
        t = s.run_ua(scsi.inquiry(36), read=36, lun_field=int.from_bytes(x, "big"))
        assert t.good().data[0] in (0x00, 0x0C), "LUN %s does not answer" % x.hex()
    assert P.lun_bytes(env.lun0).to_bytes(8, "big") in luns, [x.hex() for x in luns]


@row("K-05", "SPC-4 7.8.5", "page 83h has a T10, EUI-64 or NAA designator of the logical unit")
def designator(env):
    s = env.session()
    ds = designators(vpd(s, 0x83, env.lun0))
    good = [d for d in ds if d[0] == 0 and d[1] in (1, 2, 3)]
    assert good, ds
    for assoc, kind, val in good:
        if kind == 3:
            assert len(val) == (16 if val[0] >> 4 == 6 else 8), "NAA of %d bytes" % len(val)
        if kind == 2:
            assert len(val) in (8, 12, 16)


@row("BR-33", "SPC-4 7.8.5", "ids of pages 80h and 83h differ between all units and targets, and "
     "are the same again after a restart")
def unique_ids(env):
    env.need_evtgt()

    def read():
        out = {}
        for name, luns in ((DISK, (0, 1, 300)), (OTHER, (0,)), (BIG, (0,))):
            s = env.session(name, settle=False)
            for lun in luns:
                s.run_ua(scsi.TEST_UNIT_READY, lun=lun).good()
                sn = vpd(s, 0x80, lun)[4:]
                naa = tuple(d for d in designators(vpd(s, 0x83, lun)) if d[0] == 0)
                out[name, lun] = (sn, naa)
            s.logout()
        return out

    a = read()
    assert len({x[0] for x in a.values()}) == len(a), "serial numbers collide: %r" % a
    every = [d for x in a.values() for d in x[1] if d[1] in (1, 2, 3)]
    assert len(set(every)) == len(every), "designators collide"
    env.cleanup()
    env.d.stop()
    env.d.start()
    assert read() == a, "ids changed with a restart"


@row("BR-34", "SPC-4 6.6.2", "INQUIRY strings are exact, padded by blanks, % is a character")
def inquiry_strings(env):
    env.need_evtgt()
    s = env.session(IDS, settle=False)
    s.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
    s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
    d = s.run(scsi.inquiry(96), read=96, lun=0).good().data
    assert (d[8:16], d[16:32], d[32:36]) == (b"12345678", b"1234567890123456", b"1%s "), d[8:36]
    d = s.run(scsi.inquiry(96), read=96, lun=1).good().data
    assert (d[8:16], d[16:32]) == (b"A       ", b"P%n%s           "), d[8:36]
    assert b"SN%d%s" in vpd(s, 0x80, 1)[4:]


@row("BR-36", "SPC-4 6.35, SBC-3", "REPORT SUPPORTED OPERATION CODES, page B0h and behaviour agree "
     "for 89h, 93h, 42h, 83h")
def announced_is_done(env):
    s = env.session()
    b0 = vpd(s, 0xB0, env.lun0)
    caw_max = b0[5]
    unmap_lba, unmap_desc = (int.from_bytes(b0[i:i + 4], "big") for i in (20, 24))
    ws_max = int.from_bytes(b0[36:44], "big")
    b2 = vpd(s, 0xB2, env.lun0) if 0xB2 in pages(s, env.lun0) else bytes(8)
    lbpu, lbpws = b2[5] >> 7 & 1, b2[5] >> 6 & 1

    def listed(op):
        t = s.run(scsi.report_opcodes(1024, 1, op), read=1024, lun=env.lun0)
        if t.status == 2:
            t.check(5)
            return None
        return t.data[1] & 7 in (3, 5)

    zero = bytes(BLK)
    for op, cdb, data in ((0x89, scsi.compare_and_write(8, 1), None),
                          (0x93, scsi.write_same16(8, 1), zero),
                          (0x42, scsi.unmap(24), scsi.unmap_list((8, 1))),
                          (0x83, b"\x83" + bytes(15), None)):
        if op == 0x89:
            now = s.run(scsi.read10(8, 1), read=BLK, lun=env.lun0).good().data
            data = bytes(now) + bytes(now)
        t = s.run(cdb, write=data, lun=env.lun0) if data else s.run(cdb, lun=env.lun0)
        works = not (t.status == 2 and scsi.Sense(t.sense).asc == 0x20)
        said = listed(op)
        assert said is None or said == works, "opcode %02x: listed %s, works %s" % (op, said, works)
        if works and op != 0x83:
            t.good()
        if op == 0x89:
            assert bool(caw_max) == works, "B0h: CAW length %d, works %s" % (caw_max, works)
        if op == 0x42:
            assert bool(unmap_lba and unmap_desc) == works == bool(lbpu), \
                (unmap_lba, unmap_desc, lbpu, works)
        if op == 0x93 and lbpws:
            assert works
            s.run(scsi.write_same16(8, 1, 8), write=zero, lun=env.lun0).good()
    if ws_max and ws_max < 16 * MIB // BLK:
        t = s.run(scsi.write_same16(0, ws_max + 1), write=zero, lun=env.lun0)
        t.check(5, 0x24)


@row("BR-36b", "SPC-4 7.5", "what VMFS reads at creation: pages 00 80 83 B0 B2, mode pages 08 0A "
     "1C 3F, RESERVE(6)")
def vmfs_sequence(env):
    s = env.session()
    have = pages(s, env.lun0)
    for p in (0x00, 0x80, 0x83, 0xB0, 0xB2):
        assert p in have, "page %02x is not listed" % p
        vpd(s, p, env.lun0)
    for p in (0x08, 0x0A, 0x1C, 0x3F):
        t = s.run(scsi.mode_sense6(p), read=255, lun=env.lun0).good()
        assert t.data[0] + 1 == len(t.data), "mode data length of page %02x" % p
        at = 4 + t.data[3]
        assert at < len(t.data) and (p == 0x3F or t.data[at] & 0x3F == p), t.data.hex()
    t = s.run(scsi.RESERVE6, lun=env.lun0)
    if t.status == 0:
        s.run(scsi.RELEASE6, lun=env.lun0).good()
    else:
        t.check(5, 0x20, 0)
        raise Skip("RESERVE(6) is not built yet; the rest passed")


@row("BR-37", "SBC-3 5.2", "COMPARE AND WRITE: 0E/1D/00 with the offset of the first difference")
def compare_and_write(env):
    env.need_data()
    s = env.session()
    if not vpd(s, 0xB0, env.lun0)[5]:
        t = s.run(scsi.compare_and_write(64, 1), write=bytes(2 * BLK), lun=env.lun0)
        t.check(5, 0x20, 0)
        raise Skip("COMPARE AND WRITE is not built yet")
    old = fill(env, 64, 1, 371)
    new = scsi.pattern(BLK, 372)
    wrong = bytearray(old)
    wrong[100] ^= 1
    t = s.run(scsi.compare_and_write(64, 1), write=bytes(wrong) + new, lun=env.lun0)
    x = t.check(0x0E, 0x1D, 0)
    assert x.info == 100, "information %r" % x.info
    assert read_back(env, 64, 1) == old
    s.run(scsi.compare_and_write(64, 1), write=old + new, lun=env.lun0).good()
    assert read_back(env, 64, 1) == new


def lba_status(s, lba, lun, alloc=4096):
    t = s.run(scsi.get_lba_status(lba, alloc), read=alloc, lun=lun).good()
    d = t.data
    n = int.from_bytes(d[:4], "big")
    out = []
    for i in range(8, len(d) - 15, 16):
        out.append((int.from_bytes(d[i:i + 8], "big"), int.from_bytes(d[i + 8:i + 12], "big"),
                    d[i + 12] & 15))
    assert (n + 4 - 8) % 16 == 0, "parameter data length %d" % n
    return out


@row("BR-38 BR-39", "SBC-3 5.4", "GET LBA STATUS works for every LBA of a thin unit, starts at the "
     "asked LBA, covers at least one block and stops at the capacity")
def get_lba_status(env, case):
    s = env.session()
    rc = s.run(scsi.read_capacity16(), read=32, lun=env.lun0).good().data
    cap = int.from_bytes(rc[:8], "big") + 1
    if not rc[14] & 0x80:
        raise Skip("the unit is not thin (LBPME=0)")
    for lba in (0, 1, 77, cap // 2, cap - 1):
        for alloc in (24, 4096):
            ds = lba_status(s, lba, env.lun0, alloc)
            assert ds and ds[0][0] == lba and ds[0][1] >= 1, (lba, ds)
            at = lba
            for d in ds:
                assert d[0] == at and d[1] >= 1 and d[2] in (0, 1, 2), ds
                at += d[1]
            assert at <= cap, "descriptors end at %d of %d" % (at, cap)
    s.run(scsi.get_lba_status(cap), read=24, lun=env.lun0).check(5, 0x21, 0)


@row("BR-42", "SPC-4 6.33, SAM-5 4.7", "REPORT LUNS: length 8n, flat addressing above 255, a short "
     "allocation is cut")
def report_luns_encoding(env):
    env.need_evtgt()
    s = env.session()
    n, luns, _ = lun_list(s)
    assert n == 24 and [x.hex() for x in luns] == \
        ["0000000000000000", "0001000000000000", "412c000000000000"], (n, [x.hex() for x in luns])
    n, luns, t = lun_list(s, alloc=16)
    assert n == 24 and len(t.data) == 16 and luns == [bytes(8)], (n, t.data.hex())
    s.run(scsi.report_luns(8), read=8, lun=0).check(5, 0x24, 0) \
        if s.run(scsi.report_luns(8), read=8, lun=0).status == 2 else None


@row("BR-44", "SPC-2 7.22", "RELEASE(6) by who holds nothing: GOOD, and does nothing")
def release_by_non_holder(env):
    a, b = env.session(), env.session()
    t = a.run(scsi.RESERVE6, lun=env.lun0)
    if t.status == 2:
        t.check(5, 0x20, 0)
        a.run(scsi.RELEASE6, lun=env.lun0).check(5, 0x20, 0)
        raise Skip("RESERVE(6) and RELEASE(6) are not built yet")
    t.good()
    b.run(scsi.RELEASE6, lun=env.lun0).good()
    x = b.run(scsi.write10(0, 1), write=bytes(BLK), lun=env.lun0)
    assert x.status == 0x18, "status %02x: the reservation is gone" % x.status
    a.run(scsi.RELEASE6, lun=env.lun0).good()
    b.run(scsi.write10(0, 1), write=bytes(BLK), lun=env.lun0).good()


@row("BR-46", "SPC-4 6.6.2, SAM-5 4.6.4", "an absent LUN: INQUIRY 7Fh, for LUN 0 3Fh; others "
     "05/25/00")
def absent_lun(env):
    env.need_evtgt()
    s = env.session()
    for lun in (2, 0x4C, 0x55, 255, 256, 1000):
        t = s.run(scsi.inquiry(36), read=36, lun=lun).good()
        assert t.data[0] == 0x7F, "LUN %d: %02x" % (lun, t.data[0])
        for cdb, n in ((scsi.TEST_UNIT_READY, 0), (scsi.read10(0, 1), BLK),
                       (scsi.read_capacity10(), 8)):
            s.run(cdb, read=n, lun=lun).check(5, 0x25, 0)
    s.run(scsi.write10(0, 1), write=bytes(BLK), lun=2).check(5, 0x25, 0)
    n = env.session(IQN + "nolun0", settle=False)
    t = n.run_ua(scsi.inquiry(36), read=36, lun=0).good()
    assert t.data[0] == 0x3F, "LUN 0: %02x" % t.data[0]
    n.run_ua(scsi.read10(0, 1), read=BLK, lun=0).check(5, 0x25, 0)
    cnt, luns, _ = lun_list(n)
    assert bytes((0, 1)) + bytes(6) in luns, "REPORT LUNS to an absent LUN 0 must list the others"
    t = n.run(scsi.request_sense(), read=252, lun=0).good()
    assert scsi.Sense(bytes(t.data)).asc == 0x25, t.data.hex()
    with open(env.d.log, "rb") as f:
        assert f.read().count(b"\n") < 300, "the log is flooded"


@row("BR-47", "SPC-4 7.8.11", "the list of VPD pages is ascending with 00h and 83h; each listed "
     "page reads, others are 24/00")
def vpd_list(env):
    s = env.session()
    have = pages(s, env.lun0)
    assert have == sorted(set(have)) and 0 in have and 0x83 in have, have
    for p in have:
        vpd(s, p, env.lun0)
    for p in range(256):
        if p not in have:
            s.run(scsi.inquiry(255, p), read=255, lun=env.lun0).check(5, 0x24, 0)


@row("BR-48", "SBC-3 5.29", "VERIFY past the end: 05/21/00, with BYTCHK=0 too")
def verify_range(env):
    s = env.session()
    cap = int.from_bytes(s.run(scsi.read_capacity10(), read=8, lun=env.lun0).good().data[:4],
                         "big") + 1
    s.run(scsi.verify10(cap, 1), lun=env.lun0).check(5, 0x21, 0)
    s.run(scsi.verify10(cap - 1, 2), lun=env.lun0).check(5, 0x21, 0)
    s.run(scsi.verify10(cap - 1, 1), lun=env.lun0).good()
    if env.stores_data:
        data = fill(env, 64, 1, 48)
        s.run(scsi.verify10(64, 1, 1), write=data, lun=env.lun0).good()
        s.run(scsi.verify10(64, 1, 1), write=scsi.pattern(BLK, 49), lun=env.lun0).check(0x0E, 0x1D)


@row("BR-52", "SBC-3 5.15, 6.4", "3 TiB: READ CAPACITY(10) is ffffffff, (16) right, block "
     "descriptor saturates, not removable")
def large_unit(env):
    env.need_evtgt()
    s = env.session(BIG, settle=False)
    s.run_ua(scsi.TEST_UNIT_READY).good()
    d = s.run(scsi.read_capacity10(), read=8).good().data
    assert d == b"\xff\xff\xff\xff\x00\x00\x02\x00", d.hex()
    d = s.run(scsi.read_capacity16(), read=32).good().data
    assert int.from_bytes(d[:8], "big") == (3 << 40) // BLK - 1 and d[8:12] == b"\0\0\2\0", d.hex()
    d = s.run(scsi.mode_sense6(0x3F), read=255).good().data
    if d[3] == 8:
        assert d[5:8] == b"\xff\xff\xff" or d[4:8] == b"\xff\xff\xff\xff", d[:12].hex()
    assert not s.run(scsi.inquiry(36), read=36).good().data[1] & 0x80, "removable"
    last = (3 << 40) // BLK - 1
    data = scsi.pattern(BLK, 52)
    s.run(scsi.write16(last, 1), write=data).good()
    assert bytes(s.run(scsi.read16(last, 1), read=BLK).good().data) == data
    s.run(scsi.read16(last, 2), read=2 * BLK).check(5, 0x21, 0)


@row("BR-54", "SBC-3 5.28", "UNMAP of the whole unit in 32 descriptors: GOOD, reads zeros, "
     "deallocated")
def unmap_all(env):
    env.need_data()
    s = env.session()
    b0 = vpd(s, 0xB0, env.lun0)
    most = int.from_bytes(b0[24:28], "big")
    if not most:
        raise Skip("UNMAP is not offered by this backend")
    fill(env, 64, 64, 54)
    n = min(32, most)
    step = 16 * MIB // BLK // n
    lst = scsi.unmap_list(*[(i * step, step) for i in range(n)])
    s.run(scsi.unmap(len(lst)), write=lst, lun=env.lun0).good()
    assert read_back(env, 64, 64) == bytes(64 * BLK)
    if most < 0xFFFF:
        lst = scsi.unmap_list(*[(i, 1) for i in range(most + 1)])
        if len(lst) < 65536:
            s.run(scsi.unmap(len(lst)), write=lst, lun=env.lun0).check(5)
    lst = scsi.unmap_list((16 * MIB // BLK - 1, 2))
    s.run(scsi.unmap(len(lst)), write=lst, lun=env.lun0).check(5, 0x21, 0)
    s.run(scsi.unmap(0), lun=env.lun0).good()


@row("BR-65", "SPC-4 6.27", "reply bytes that nobody set are zero; READ BUFFER beyond its buffer "
     "is refused")
def no_leaks(env):
    s = env.session()
    t = s.run(scsi.request_sense(252), read=252, lun=env.lun0).good()
    d = t.data
    assert len(d) >= 18 and d[0] & 0x7F in (0x70, 0x72) and d[7] + 8 >= len(d), d.hex()
    assert scsi.Sense(bytes(d)).key == 0 and not any(d[14:18]), d.hex()
    t = s.run(b"\x3c\x02" + bytes(5) + b"\x10\x00" + b"\0", read=4096, lun=env.lun0)
    if t.status == 0:
        assert not any(t.data), "READ BUFFER shows old bytes"
    else:
        t.check(5)
    t = s.run(b"\x3c\x02\x00\xff\xff\xff\x00\x10\x00\x00", read=4096, lun=env.lun0)
    t.check(5)


@row("BR-66", "SBC-3 4.7", "a fresh sparse unit reads zeros")
def fresh_zeros(env):
    s = env.session(OTHER, settle=False)
    t = s.run_ua(scsi.read10(16, 512), read=512 * BLK, lun=env.lun0).good()
    assert not any(t.data)


@row("BR-67", "SBC-3 5.43", "WRITE SAME at 4096-byte blocks writes exactly N blocks")
def write_same_4096(env):
    env.need_evtgt()
    env.need_data()
    s = env.session(K4, settle=False)
    s.run_ua(scsi.TEST_UNIT_READY).good()
    d = s.run(scsi.read_capacity16(), read=32).good().data
    assert int.from_bytes(d[8:12], "big") == 4096 and int.from_bytes(d[:8], "big") == 1023
    base = scsi.pattern(8 * 4096, 670)
    s.run(scsi.write10(16, 8), write=base).good()
    one = scsi.pattern(4096, 671)
    for cdb in (scsi.write_same10(18, 3), scsi.write_same16(18, 3)):
        s.run(scsi.write10(16, 8), write=base).good()
        s.run(cdb, write=one).good()
        got = s.run(scsi.read10(16, 8), read=8 * 4096).good().data
        assert bytes(got) == base[:8192] + one * 3 + base[5 * 4096:], "wrong blocks"
    s.run(scsi.write_same16(1020, 5), write=one).check(5, 0x21, 0)


@row("K-06", "SBC-3 6.5.3, 4.18", "with WCE=1 SYNCHRONIZE CACHE works, DPO and FUA are taken as "
     "announced")
def cache_bits(env):
    s = env.session()
    d = s.run(scsi.mode_sense6(0x08), read=255, lun=env.lun0).good().data
    dpofua = d[2] & 0x10
    at = 4 + d[3]
    assert d[at] & 0x3F == 8 and d[at + 1] >= 18, d.hex()
    s.run(scsi.synchronize_cache10(), lun=env.lun0).good()
    data = scsi.pattern(BLK, 6)
    t = s.run(scsi.write10(64, 1, 0x08), write=data, lun=env.lun0)
    if dpofua:
        t.good()
        s.run(scsi.read10(64, 1, 0x18), read=BLK, lun=env.lun0).good()


@row("K-07", "SAM-5 5.14", "a new nexus gets a power-on or reset unit attention 6/29 once, INQUIRY "
     "and REPORT LUNS pass it by")
def first_unit_attention(env):
    s = env.session(settle=False)
    s.run(scsi.inquiry(36), read=36, lun=env.lun0).good()
    s.run(scsi.report_luns(), read=1024, lun=env.lun0).good()
    t = s.run(scsi.TEST_UNIT_READY, lun=env.lun0)
    t.check(6, 0x29)
    env.medium_told(s)
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()
