# SPDX-License-Identifier: BSD-2-Clause
"""What can be changed of a unit while it is served: each setting is seen by an initiator that is
there, after the unit attention that SPC-4 and SBC-3 want; another backing store in its place."""

import os

from harness import BLK, Lun, MIB, Skip, Target, row, scsi
from lib.evtgt import IQN

OWN_DAEMON = True

MODE, CAPACITY, INQUIRY, MEDIUM = (0x2A, 1), (0x2A, 9), (0x3F, 3), (0x28, 0)


def update(env, check=True, lun=0, **params):
    args = ["--op", "update", "--mode", "logicalunit", "--tid", "1", "--lun", str(lun), "--params",
            ",".join("%s=%s" % p for p in params.items())]
    return env.d.iscsi(*args, check=check)


def refused(env, words, **params):
    out = update(env, check=False, **params)
    assert out.returncode == 22 and words in out.stderr, (out.returncode, out.stderr)


def attentions(s, lun=0):
    """The unit attentions that are pending, in the order in which they come; last: what a TEST
    UNIT READY answers then."""
    seen = []
    for _ in range(10):
        t = s.run(scsi.TEST_UNIT_READY, lun=lun)
        if t.status != 2:
            return seen, None
        x = scsi.Sense(t.sense)
        if x.key != 6:
            return seen, (x.key, x.asc, x.ascq)
        seen.append((x.asc, x.ascq))
    raise AssertionError("unit attentions without end: %r" % seen)


def expect(s, *want, then=None, lun=0):
    seen, last = attentions(s, lun)
    assert sorted(seen) == sorted(want) and last == then, (seen, last)


def vpd(s, page, lun=0):
    return bytes(s.run(scsi.inquiry(1024, page), read=1024, lun=lun).good().data)


def std(s, lun=0):
    return bytes(s.run(scsi.inquiry(96), read=96, lun=lun).good().data)


def rc16(s, lun=0):
    return bytes(s.run(scsi.read_capacity16(), read=32, lun=lun).good().data)


def page(s, code, pc=0, lun=0, sub=0):
    d = bytes(s.run(scsi.mode_sense10(code, dbd=1, pc=pc, sub=sub), read=1024, lun=lun).good().data)
    return d[8:]


def ids(s, lun=0):
    """(T10, NAA) designators of the unit."""
    d, at, out = vpd(s, 0x83, lun), 4, {}
    while at < len(d):
        if d[at + 1] & 0x30 == 0:
            out[d[at + 1] & 15] = d[at + 4:at + 4 + d[at + 3]]
        at += 4 + d[at + 3]
    return out.get(1), out.get(3)


def one(**kw):
    return [Target("disk", [Lun("disk0.img", 8 * MIB, 0, kind="file", **kw)])]


@row("LP-01", "SPC-4 6.6.2, 5.14; SBC-3 6.5, 6.6", "each setting of identity, geometry and format is "
     "seen at once, behind its unit attention", 60)
def settings_live(env):
    with env.with_daemon(one()):
        s = env.session()
        cases = (
            ("vendor_id", "ACME", [INQUIRY], lambda: std(s)[8:16], b"ACME    "),
            ("product_id", "ANVIL", [INQUIRY], lambda: std(s)[16:32], b"ANVIL".ljust(16)),
            ("product_rev", "7", [INQUIRY], lambda: std(s)[32:36], b"7   "),
            ("removable", "1", [INQUIRY], lambda: std(s)[1] & 0x80, 0x80),
            ("removable", "0", [INQUIRY], lambda: std(s)[1] & 0x80, 0),
            ("scsi_sn", "sn-17", [INQUIRY], lambda: vpd(s, 0x80)[4:], b"sn-17"),
            ("scsi_id", "id-17", [INQUIRY], lambda: ids(s)[0][8:], b"id-17"),
            ("naa", "3123456789abcdef", [INQUIRY], lambda: ids(s)[1].hex(), "3123456789abcdef"),
            ("lbppbe", "2", [CAPACITY], lambda: rc16(s)[13] & 15, 2),
            ("la_lba", "5", [CAPACITY], lambda: int.from_bytes(rc16(s)[14:16], "big") & 0x3FFF, 5),
            ("optimal_xfer_gran", "16", [INQUIRY],
             lambda: int.from_bytes(vpd(s, 0xB0)[6:8], "big"), 16),
            ("optimal_xfer_len", "256", [INQUIRY],
             lambda: int.from_bytes(vpd(s, 0xB0)[12:16], "big"), 256),
            ("rotation_rate", "7200", [INQUIRY],
             lambda: int.from_bytes(vpd(s, 0xB1)[4:6], "big"), 7200),
            ("thin_provisioning", "1", [INQUIRY, CAPACITY],
             lambda: (vpd(s, 0xB2)[5] & 0xE0, rc16(s)[14] & 0x80), (0xE0, 0x80)),
            ("sense_format", "1", [MODE], lambda: page(s, 0x0A)[2] & 4, 4),
            ("readonly", "1", [MODE],
             lambda: bytes(s.run(scsi.mode_sense10(8, dbd=1), read=64).good().data)[3] & 0x80, 0x80),
        )
        for name, value, ua, ask, want in cases:
            update(env, **{name: value})
            seen, last = attentions(s)
            assert sorted(seen) == sorted(ua) and last is None, (name, seen, last)
            assert ask() == want, (name, ask())
        t = s.run(scsi.read10(1 << 30, 1), read=BLK)
        assert t.sense[0] == 0x72, "descriptor format was asked for"
        s.run(scsi.write10(0, 1), write=bytes(BLK)).check(7, 0x27, 0)
        update(env, readonly="0")
        expect(s, MODE)
        s.run(scsi.write10(0, 1), write=bytes(BLK)).good()
        for wrong in (dict(lbppbe="16"), dict(la_lba="16384"), dict(rotation_rate="7"),
                      dict(sense_format="2"), dict(removable="x"), dict(scsi_id="x" * 64),
                      dict(nonsense="1"), {"block-size": "4096"}):
            assert update(env, check=False, **wrong).returncode == 22, wrong
        expect(s)


@row("LP-02", "SBC-3 4.4; SPC-4 5.14", "online=0 takes the unit away (NOT READY), online=1 brings it "
     "back with NOT READY TO READY CHANGE; a removable unit has no medium meanwhile")
def online(env):
    with env.with_daemon(one()):
        s = env.session()
        update(env, online=0)
        expect(s, then=(2, 4, 0x12))
        s.run(scsi.read10(0, 1), read=BLK).check(2, 4, 0x12)
        std(s)
        assert "            Online: No\n" in env.d.iscsi("--op", "show", "--mode", "target")
        update(env, online=1)
        expect(s, MEDIUM)
        update(env, removable=1)
        expect(s, INQUIRY)
        update(env, online=0)
        expect(s, then=(2, 0x3A, 0))
        update(env, online=1)
        expect(s, MEDIUM)


@row("LP-03", "SBC-3 5.16, 6.4; SPC-4 5.14", "offline, another path, online: the other store's data and "
     "size; reads and writes go there and nowhere else", 40)
def exchange(env):
    with env.with_daemon(one(opts=["scsi_id keep"])) as d:
        s = env.session()
        s.run(scsi.write10(0, 1), write=b"a" * BLK).good()
        first, other = d.path("disk0.img"), d.path("other.img")
        with open(other, "wb") as f:
            f.write(b"b" * BLK)
            f.truncate(16 * MIB)
        before = ids(s)
        refused(env, "offline first", path=other)
        expect(s)
        update(env, online=0)
        refused(env, other + ".no", path=other + ".no")
        refused(env, "absolute", path="")
        update(env, path=other)
        expect(s, CAPACITY, then=(2, 4, 0x12))
        update(env, online=1)
        expect(s, MEDIUM)
        assert int.from_bytes(rc16(s)[:8], "big") == 16 * MIB // BLK - 1
        assert bytes(s.run(scsi.read10(0, 1), read=BLK).good().data) == b"b" * BLK
        s.run(scsi.write10(0, 1), write=b"c" * BLK).good()
        s.run(scsi.synchronize_cache10()).good()
        assert open(first, "rb").read(1) == b"a" and open(other, "rb").read(1) == b"c"
        assert ids(s) == before, "scsi_id names the unit, whatever is in it"
        assert "path: %s\n" % other in d.iscsi("--op", "show", "--mode", "target")
        os.rename(first, first + "2")  # nobody has it any more
        for _ in range(3):
            update(env, online=0)
            update(env, path=first + "2", online=1)
            expect(s, MEDIUM, CAPACITY)
            assert bytes(s.run(scsi.read10(0, 1), read=BLK).good().data) == b"a" * BLK
            update(env, online=0)
            update(env, path=other, online=1)
            expect(s, MEDIUM, CAPACITY)


@row("LP-04", "SPC-4 6.6.2", "another path without a scsi_id is another disk, and says so")
def exchange_identity(env):
    with env.with_daemon(one()) as d:
        s = env.session()
        with open(d.path("other.img"), "wb") as f:
            f.truncate(8 * MIB)
        before = ids(s)
        update(env, online=0)
        update(env, path=d.path("other.img"), online=1)
        expect(s, MEDIUM, INQUIRY)
        assert ids(s) != before
        update(env, online=0)
        update(env, path=d.path("disk0.img"), online=1)
        expect(s, MEDIUM, INQUIRY)
        assert ids(s) == before


@row("LP-05", "SPC-4 6.15; SBC-3 5.25", "a removable unit: media change while it is online, none at "
     "all, PREVENT ALLOW MEDIUM REMOVAL, START STOP UNIT with LOEJ", 40)
def removable(env):
    with env.with_daemon(one(opts=["removable 1", "scsi_id drive"])) as d:
        s, prevent = env.session(), bytes((0x1E, 0, 0, 0, 1, 0))
        one_, two = d.path("disk0.img"), d.path("two.img")
        with open(two, "wb") as f:
            f.truncate(4 * MIB)
        update(env, path=two)
        expect(s, MEDIUM, CAPACITY)
        update(env, path="")
        expect(s, CAPACITY, then=(2, 0x3A, 0))
        assert "            Backing store path: None\n" in d.iscsi("--op", "show", "--mode", "target")
        update(env, path=one_)
        expect(s, MEDIUM, CAPACITY)
        s.run(prevent).good()
        for wrong in (dict(path=two), dict(online=0), dict(path="")):
            refused(env, "this device has Prevent Removal set", **wrong)
        s.run(bytes((0x1B, 0, 0, 0, 2, 0))).check(5, 0x53, 2)
        s.run(bytes((0x1E, 0, 0, 0, 0, 0))).good()
        s.run(bytes((0x1B, 0, 0, 0, 2, 0))).good()
        expect(s, then=(2, 0x3A, 0))
        s.run(bytes((0x1B, 0, 0, 0, 3, 0))).good()
        expect(s)
        update(env, online=0)
        s.run(bytes((0x1B, 0, 0, 0, 3, 0))).check(2)
        update(env, path=two, online=1)
        expect(s, MEDIUM, CAPACITY)
        s.run(scsi.read10(0, 8), read=8 * BLK).good()


@row("LP-06", "SPC-2 7.21", "a reservation and what others know of it survive the exchange")
def exchange_reserved(env):
    with env.with_daemon(one(opts=["removable 1", "scsi_id drive"])) as d:
        a, b = env.session(), env.session(initiator=IQN + "b")
        with open(d.path("two.img"), "wb") as f:
            f.truncate(8 * MIB)
        a.run(scsi.RESERVE6).good()
        update(env, path=d.path("two.img"))
        expect(a, MEDIUM)
        for _ in range(3):
            t = b.run(scsi.read10(0, 1), read=BLK)
            if t.status != 2:
                break
        assert t.status == 0x18, "status %02x, RESERVATION CONFLICT was due" % t.status
        a.run(scsi.RELEASE6).good()
        b.run(scsi.read10(0, 1), read=BLK).good()


@row("LP-07", "SBC-3 4.2.3", "bsoflags and bsopts while offline: the same file is opened anew; a wrong "
     "one leaves all as it was", 40)
def reopen(env):
    with env.with_daemon(one()) as d:
        s = env.session()
        s.run(scsi.write10(0, 1), write=b"a" * BLK).good()
        refused(env, "offline first", bsoflags="direct")
        update(env, online=0)
        refused(env, "bsopts", bsopts="a=b")
        refused(env, "bsoflags", bsoflags="fast")
        update(env, bsoflags="direct")
        update(env, online=1)
        expect(s, MEDIUM)
        assert "flags: direct\n" in d.iscsi("--op", "show", "--mode", "target")
        assert bytes(s.run(scsi.read10(0, 1), read=BLK).good().data) == b"a" * BLK
        update(env, online=0, bsoflags="sync:direct")
        update(env, online=1)
        expect(s, MEDIUM, MODE)
        assert not page(s, 8)[2] & 4, "written through: no write cache"


@row("LP-08", "SPC-4 7.5; SBC-3 6.4.5", "mode_page: hints are shown, WCE is the write cache's switch, "
     "pages are added; what the unit does not do is refused", 40)
def mode_pages(env):
    with env.with_daemon(one()):
        s = env.session()
        # as tgt-admin turns a write cache off and on
        tail = ":0:0xff:0xff:0:0:0xff:0xff:0xff:0xff:0x80:0x14:0:0:0:0:0:0"
        update(env, mode_page="8:0:18:0x10" + tail)
        expect(s, MODE)
        p = page(s, 8)
        assert p[0] & 0x3F == 8 and p[1] == 18 and p[2] == 0x10 and p[4:6] == b"\xff\xff", p.hex()
        assert page(s, 8, pc=1)[2] == 4, "WCE is still an initiator's to change"
        update(env, mode_page="8:0:18:0x14" + tail)
        expect(s, MODE)
        assert page(s, 8)[2] == 0x14
        update(env, mode_page="0x30:0:3:1:2:3")
        expect(s, MODE)
        assert page(s, 0x30) == bytes((0x30, 3, 1, 2, 3))
        update(env, mode_page="0x30:1:2:9:8")
        expect(s, MODE)
        assert page(s, 0x30, sub=1) == bytes((0x70, 1, 0, 2, 9, 8))
        d = page(s, 0x3F, sub=0xFF)
        assert bytes((0x30, 3, 1, 2, 3, 0x70, 1, 0, 2, 9, 8)) == d[-11:], d.hex()
        s.run(scsi.mode_select10(13), write=bytes(8) + bytes((0x30, 3, 1, 2, 3))).good()
        s.run(scsi.mode_select10(13), write=bytes(8) + bytes((0x30, 3, 1, 2, 4))).check(5, 0x26, 0)
        six = bytes(s.run(scsi.mode_sense6(0x3F, sub=0xFF), read=255).good().data)
        assert six[0] + 1 == len(six), six.hex()
        for wrong, why in (("8:0:18", "BYTE"), ("8:0:2:1:2", "has 18 bytes"), ("x", "PAGE"),
                           ("8:0:18:0x15" + tail, "0x01"), ("10:0:10:2:0:0:0:0:0:0:0:2:0", "byte 2"),
                           ("0x1a:0:2:1:2", "functions"), ("64:0:1:1", "PAGE"),
                           ("10:0:10:0x20:0x10:8:0:0:0:0:0:0:0", "SWP"), ("8:0:1:256", "PAGE"),
                           ("0x31:0:60" + ":1" * 60, None), ("0x32:0:60" + ":1" * 60, None),
                           ("0x33:0:60" + ":1" * 60, "MODE SENSE(6)")):
            if why is None:
                update(env, mode_page=wrong)
            else:
                refused(env, why, mode_page=wrong)
        update(env, mode_page="none")
        expect(s, MODE)
        assert page(s, 8)[2] == 4 and page(s, 8)[4:6] == bytes(2)
        s.run(scsi.mode_sense10(0x30), read=64).check(5, 0x24, 0)


@row("LP-09", "SBC-3 5.16", "a device in place of a file, and back")
def exchange_device(env):
    if os.getuid() != 0:
        raise Skip("loop devices want root")
    luns = [Lun("disk0.img", 8 * MIB, 0, kind="file", opts=["scsi_id keep"]),
            Lun("dev.img", 16 * MIB, 1, kind="block")]
    with env.with_daemon([Target("disk", luns)]) as d:
        s = env.session()
        dev = d.targets[0].luns[1].where
        update(env, online=0)
        refused(env, "another logical unit", path=dev)
        d.iscsi("--op", "delete", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "--force")
        s.run_ua(scsi.TEST_UNIT_READY, lun=0)
        update(env, path=dev, online=1)
        expect(s, MEDIUM, CAPACITY)
        s.run(scsi.write10(0, 8), write=b"d" * BLK * 8).good()
        assert "type: blockio\n" in d.iscsi("--op", "show", "--mode", "target")
        update(env, online=0)
        update(env, path=d.path("disk0.img"), online=1)
        expect(s, MEDIUM, CAPACITY)
