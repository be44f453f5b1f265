# SPDX-License-Identifier: BSD-2-Clause
"""Identities of other targets (`ids`, `designator`): what an initiator sees of a disk that moved
here.  Those of tgt are held against Debian's tgtd with the same file; those of IET against values
that were worked out apart from the code, by IET's rules."""

import hashlib
import os
import shutil
import subprocess

from common import MIB, Skip
from lib import scsi
from lib.evtgt import IQN, Daemon, Lun, Target, Tgtd
from lib.iscsi import Session

PAGES = {"standard": None, "serial": 0x80, "identification": 0x83}


class FromFile(Daemon):
    """Serves `text`, in which DIR stands for the daemon's directory."""

    def __init__(self, text, settings, files=(), **kw):
        super().__init__([], settings, **kw)
        self.text = text
        for name in files:
            with open(self.path(name), "wb") as f:
                f.truncate(4 * MIB)

    def config(self):
        return "portal %s:%d\n%s" % (self.host, self.port, self.text.replace("DIR", self.dir))


def designators(page):
    """[(code set, type, bytes)] of the logical unit."""
    out, at = [], 4
    while at < 4 + int.from_bytes(page[2:4], "big"):
        n = page[at + 3]
        if page[at + 1] & 0x30 == 0:
            out.append((page[at] & 15, page[at + 1] & 15, bytes(page[at + 4:at + 4 + n])))
        at += 4 + n
    return out


def seen(addr, target, lun):
    with Session(addr, target) as s:
        s.login()
        got = {k: bytes(s.run_ua(scsi.inquiry(255, p), lun=lun, read=255).data)
               for k, p in PAGES.items()}
    return {"vendor": got["standard"][8:16], "product": got["standard"][16:32],
            "revision": got["standard"][32:36], "serial": got["serial"][4:],
            "ids": designators(got["identification"])}


TGT_FILE = """
ids tgt
<target %(iqn)sone>
    initiator-address ALL
    controller_tid 3
    <backing-store DIR/a.img>
        lun 1
    </backing-store>
    <backing-store DIR/b.img>
        lun 300
        scsi_id my-id.01f
        scsi_sn MYSN
    </backing-store>
    <backing-store DIR/c.img>
        lun 7
        vendor_id ACME
        product_id Fine Disk
        product_rev 12
    </backing-store>
</target>
<target %(iqn)stwo>
    initiator-address ALL
    controller_tid 40
    backing-store DIR/d.img
</target>
""" % {"iqn": IQN}
TGT_LUNS = [("one", 1), ("one", 300), ("one", 7), ("two", 1)]


def test_ids_tgt_as_tgtd(settings):
    """The file is read by tgt-admin for tgtd and by evtgtd; initiators see the same."""
    if not shutil.which("tgtd") or not shutil.which("tgt-admin"):
        raise Skip("no tgt on this machine")
    files = ["a.img", "b.img", "c.img", "d.img"]
    ours, theirs = FromFile(TGT_FILE, settings, files), Tgtd([], settings)
    try:
        ours.start()
        theirs.start()
        conf = theirs.path("its.conf")
        with open(conf, "w") as f:
            f.write(TGT_FILE.replace("ids tgt", "").replace("DIR", theirs.dir))
        for name in files:
            with open(theirs.path(name), "wb") as f:
                f.truncate(4 * MIB)
        out = subprocess.run(["tgt-admin", "-e", "-C", theirs.control, "-c", conf],
                             capture_output=True, text=True, timeout=30)
        assert out.returncode == 0, out.stderr
        for target, lun in TGT_LUNS:
            want, got = seen(theirs.addr, IQN + target, lun), seen(ours.addr, IQN + target, lun)
            assert got == want, "%s LUN %d: %r, tgtd: %r" % (target, lun, got, want)
        ours.stop()
    finally:
        ours.cleanup()
        theirs.cleanup()


IET_FILE = """
ids iet
<target %(iqn)sDisk>
    initiator-address ALL
    <backing-store DIR/a.img>
        lun 0
    </backing-store>
    <backing-store DIR/b.img>
        lun 258
        scsi_id Cluster7
    </backing-store>
    <backing-store DIR/c.img>
        lun 2
        scsi_sn 0123456789abcdefX
    </backing-store>
</target>
""" % {"iqn": IQN}


def test_ids_iet(settings):
    d = FromFile(IET_FILE, settings, ["a.img", "b.img", "c.img"])
    name = IQN + "Disk"
    try:
        d.start()

        def md5(lun):
            return hashlib.md5(name.encode() + lun.to_bytes(4, "little")).digest()

        want = {0: (md5(0), md5(0).hex()),
                258: (b"cluster7".ljust(16, b"\0"), b"cluster7".ljust(16, b"\0").hex()),
                2: (md5(2), "0123456789abcdefX".rjust(32))}
        for lun, (ident, serial) in want.items():
            got = seen(d.addr, name, lun)
            assert got["vendor"] == b"IET     " and got["product"] == b"VIRTUAL-DISK    ", got
            assert got["revision"] == b"0   ", got
            assert got["ids"] == [(1, 1, b"IET\0\0\0\0\0" + ident)], got
            assert got["serial"].decode() == serial, got
        d.stop()
    finally:
        d.cleanup()


def test_ids_later(settings):
    """Units that the admin socket makes are those that the configuration would have made."""
    text = "ids iet\n" + "".join(
        "<target %s%s>\n initiator-address ALL\n controller_tid %d\n%s <backing-store DIR/%s>\n  lun %d\n"
        " </backing-store>\n</target>\n" % (IQN, n, tid, ids, path, lun)
        for n, tid, ids, path, lun in (("Given", 3, "", "a.img", 1), ("tgts", 4, " ids tgt\n", "b.img", 2),
                                       ("ours", 5, " ids evtgt\n", "c.img", 1)))
    d = FromFile(text, settings, ["a.img", "b.img", "c.img", "d.img"])
    try:
        d.start()

        def make(tid, lun, path, *params):
            d.iscsi("--op", "new", "--mode", "logicalunit", "--tid", str(tid), "--lun", str(lun), "-b",
                    d.path(path), *params)

        for name, tid, lun, path in (("Given", 3, 1, "a.img"), ("tgts", 4, 2, "b.img"), ("ours", 5, 1, "c.img")):
            before = seen(d.addr, IQN + name, lun)
            d.iscsi("--op", "delete", "--mode", "logicalunit", "--tid", str(tid), "--lun", str(lun))
            make(tid, lun, path)
            assert seen(d.addr, IQN + name, lun) == before, name
        # of a target that the configuration does not know
        d.iscsi("--op", "new", "--mode", "target", "--tid", "9", "-T", IQN + "Later")
        d.iscsi("--op", "bind", "--mode", "target", "--tid", "9", "-I", "ALL")
        make(9, 258, "d.img")
        got = seen(d.addr, IQN + "Later", 258)
        want = hashlib.md5((IQN + "Later").encode() + (258).to_bytes(4, "little")).digest()
        assert got["ids"] == [(1, 1, b"IET\0\0\0\0\0" + want)], got
        assert got["serial"].decode() == want.hex() and got["vendor"] == b"IET     ", got
        d.stop()
    finally:
        d.cleanup()


def test_designators_given(settings):
    """As `evtgtadm convert` writes them: in this order, and nothing else of the unit."""
    opts = ["designator naa 3000000100000001", "designator t10 494554202020202030303031",
            "scsi_sn beaf11", "scsi_sn_width 10"]
    d = Daemon([Target("disk", [Lun("a.img", 4 * MIB, 1, kind="file", opts=opts)])], settings)
    try:
        d.start()
        got = seen(d.addr, IQN + "disk", 1)
        assert got["ids"] == [(1, 3, bytes.fromhex("3000000100000001")), (2, 1, b"IET     0001")]
        assert got["serial"] == b"    beaf11", got
        # a new id while it lives takes their place
        d.iscsi(*"--op update --mode logicalunit --tid 1 --lun 1 --params scsi_id=new".split())
        got = seen(d.addr, IQN + "disk", 1)
        assert (2, 1, b"EVTGT   new") in got["ids"] and len(got["ids"]) > 2, got
        d.stop()
    finally:
        d.cleanup()


def test_ids_twice(settings):
    """tid 1, LUN 11 and tid 11, LUN 1 have the same serial number in tgt: refused, with advice."""
    text = "".join("<target %s%s>\n initiator-address ALL\n controller_tid %d\n"
                   " <backing-store DIR/%s>\n  lun %d\n </backing-store>\n</target>\n"
                   % (IQN, n, tid, n, lun) for n, tid, lun in (("a", 1, 11), ("b", 11, 1)))
    d = FromFile("ids tgt\n" + text, settings, ["a", "b"])
    try:
        with open(d.conf, "w") as f:
            f.write(d.config())
        out = subprocess.run([settings.daemon, "-t", "-c", d.conf], capture_output=True, text=True,
                             timeout=20)
        assert out.returncode == 1, out
        assert "the same scsi_sn" in out.stderr, out.stderr
        assert os.path.basename(d.conf) + ":13:2: " in out.stderr, out.stderr
    finally:
        d.cleanup()
