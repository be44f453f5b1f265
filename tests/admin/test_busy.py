# SPDX-License-Identifier: BSD-2-Clause
"""A backing store that is in use is refused with who uses it; one that is missing or cannot be opened
takes nothing else with it, is shown with its reason, and comes by itself when it is mended."""

import fcntl
import json
import os
import struct
import subprocess
import time

from common import MIB, NAME, Skip, call, daemon, file
from lib import scsi
from lib.evtgt import Lun, Target
from lib.iscsi import Session

LU = "--lld iscsi --op new --mode logicalunit --tid 1 --lun 5 -b "


def loop(path):
    if os.getuid() != 0:
        raise Skip("loop devices want root")
    out = subprocess.run(["losetup", "-f", "--show", path], capture_output=True, text=True)
    if out.returncode:
        raise Skip("losetup: " + out.stderr)
    return out.stdout.strip()


def why(d, path):
    out = d.adm(*(LU + path).split(), check=False)
    assert out.returncode == 22 and path in out.stderr, out
    return out.stderr


def test_users_are_named(settings):
    with daemon(settings) as d:
        me = "process %d" % os.getpid()
        path = file(d, "locked.img")
        with open(path, "rb+") as f:
            fcntl.lockf(f, fcntl.LOCK_EX)
            assert me in why(d, path)
        with open(path, "rb+") as f:  # a lock of the open file, as another target has it
            fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
            assert me in why(d, path), why(d, path)
        dev = loop(path)
        try:
            assert "behind " + dev in why(d, path)
            fd = os.open(dev, os.O_RDWR | os.O_EXCL)
            assert me in why(d, dev)
            os.close(fd)
            call(d, LU + dev)
            other = d.path("again")
            os.symlink(dev, other)
            end = time.monotonic() + 10
            while True:  # the opener's child that opened it may not have ended yet: it is named then
                said = d.adm(*(LU.replace("--lun 5", "--lun 6") + other).split(), check=False).stderr
                if "another logical unit of this daemon" in said:
                    break
                assert "process " in said and time.monotonic() < end, said
                time.sleep(0.1)
            call(d, "--op delete --mode lu --tid 1 --lun 5")
        finally:
            subprocess.run(["losetup", "-d", dev])


def lun_of(d, number):
    t = json.loads(call(d, "--op show --mode target --json"))["data"]["targets"][0]
    return [u for u in t["luns"] if u["lun"] == number][0]


def until(d, number, ready, seconds=20):
    end = time.monotonic() + seconds
    while lun_of(d, number)["ready"] != ready:
        assert time.monotonic() < end, lun_of(d, number)
        time.sleep(0.2)
    return lun_of(d, number)


def test_failing_stores_at_start(settings):
    """Missing, a directory, in use, empty: each is there, not ready, with its reason; the others
    serve; mended, each comes by itself."""
    luns = [Lun("a.img", MIB, 1, kind="file")] + [
        Lun("bad%d.img" % i, MIB, i, kind="file", create=False) for i in range(2, 6)]
    with daemon(settings, [Target("disk", luns)], start=False) as d:
        os.mkdir(d.path("bad3.img"))
        held = open(file(d, "bad4.img"), "rb+")
        fcntl.fcntl(held, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        file(d, "bad5.img", 0)
        d.start()
        for number, text in ((2, "No such file"), (3, "directory"), (4, "in use"), (5, "")):
            u = lun_of(d, number)
            assert not u["ready"] and u["reason"] and text in u["reason"], u
        assert call(d, "--op show --mode target").count("            Online: No\n") == 4
        s = Session(d.addr, NAME).login()
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        for number in (2, 3, 4, 5):
            s.run_ua(scsi.TEST_UNIT_READY, lun=number).check(2)
        s.run(scsi.read10(0, 1), read=512, lun=1).good()
        file(d, "bad2.img")
        os.rmdir(d.path("bad3.img"))
        file(d, "bad3.img")
        held.close()
        os.truncate(d.path("bad5.img"), MIB)
        for number in (2, 3, 4, 5):
            assert until(d, number, True)["reason"] == ""
            s.run_ua(scsi.read10(0, 1), read=512, lun=number).good()
        s.conn.close()


def test_failing_device_at_start(settings):
    """A device that is missing, then one with sectors too large for the unit, then the right one."""
    bad = Lun("dev", MIB, 2, kind="file", create=False, opts=["bs-type blockio", "block-size 512"])
    with daemon(settings, [Target("disk", [Lun("a.img", MIB, 1, kind="file"), bad])],
                start=False) as d:
        d.start()
        assert "No such file" in lun_of(d, 2)["reason"], lun_of(d, 2)
        dev = loop(file(d, "dev.img"))
        try:
            if subprocess.run(["losetup", "-b", "4096", dev], capture_output=True).returncode == 0:
                os.symlink(dev, d.path("dev"))
                end = time.monotonic() + 15
                while "4096" not in lun_of(d, 2)["reason"]:
                    assert time.monotonic() < end, lun_of(d, 2)
                    time.sleep(0.2)
                subprocess.run(["losetup", "-b", "512", dev], check=True)
            else:
                os.symlink(dev, d.path("dev"))
            assert until(d, 2, True)["bs_type"] == "blockio"
            call(d, "--op delete --mode lu --tid 1 --lun 2")
        finally:
            subprocess.run(["losetup", "-d", dev])
