# SPDX-License-Identifier: BSD-2-Clause
"""Data and order, seen from outside, where the daemon works in steps: windows, ranges worked off in
pieces, reads that the page cache has half of, files that shrink, commands that wait for others.
Each row starts its own daemon."""

import contextlib
import os
import tempfile
import time

from harness import BLK, Lun, MIB, P, Skip, Target, row, scsi
from lib import ext4
from test_daemon import disk, gated, shut

OWN_DAEMON = True


def pattern(n, seed=0):
    """No two blocks alike."""
    return b"".join((seed + i).to_bytes(8, "big") * (BLK // 8) for i in range(n))


@row("ST-01", "SBC-3 5.43", "WRITE SAME of many blocks reaches each of them, with a pattern and "
     "with zeros, where the store zeroes and where zeros are written", 40)
def write_same_whole_range(env):
    with tempfile.NamedTemporaryFile(prefix="evtgt-wire-", dir="/dev/shm") as shm:
        os.truncate(shm.name, 16 * MIB)
        luns = [disk(size=16 * MIB), disk(shm.name, lun=1)]
        with env.with_daemon([Target("disk", luns)]):
            s = env.session()
            n = 3 * 2048 + 3
            for lun in (0, 1):
                s.run_ua(scsi.TEST_UNIT_READY, lun=lun)
                before = pattern(n + 2)
                s.run(scsi.write10(4, n + 2), write=before, lun=lun).good()
                for block in (b"\xa5" * BLK, bytes(BLK)):
                    s.run(scsi.write_same16(5, n), write=block, lun=lun).good()
                    t = s.run(scsi.read10(4, n + 2), read=(n + 2) * BLK, lun=lun).good()
                    got = bytes(t.data)
                    assert got[:BLK] == before[:BLK] and got[-BLK:] == before[-BLK:], "neighbours"
                    assert got[BLK:-BLK] == block * n, "LUN %d: not all blocks were written" % lun


@row("ST-02", "RFC7143 11.7", "a large READ whose initiator is slow to take it: every window "
     "carries its own data", 40)
def slow_reader_of_windows(env):
    with env.with_daemon([Target("disk", [disk(size=16 * MIB)])]):
        s = env.session(rcvbuf=4096)
        s.run_ua(scsi.TEST_UNIT_READY, lun=0)
        want = pattern(8 * 2048)
        for i in range(8):
            s.run(scsi.write10(i * 2048, 2048), write=want[i * MIB:(i + 1) * MIB], lun=0).good()
        for _ in range(2):
            t = s.start(scsi.read10(0, 8 * 2048), read=8 * MIB, lun=0)
            time.sleep(0.7)
            s.wait(t).good()
            assert bytes(t.data) == want, "a window was overwritten before it had left"


@row("ST-03", "SBC-3 5.11", "a READ of which the page cache holds the first part only is whole")
def half_cached_read(env):
    with env.with_daemon([Target("disk", [disk(size=4 * MIB)])]) as d:
        name, want = d.targets[0].luns[0].where, pattern(8192)
        with open(name, "r+b") as f:
            f.write(want)
            f.flush()
            os.fsync(f.fileno())
            s = env.session()
            s.run_ua(scsi.TEST_UNIT_READY, lun=0)
            for blocks in (8, 24, 256):
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
                os.pread(f.fileno(), blocks * BLK, MIB)
                t = s.run(scsi.read10(2048, 2048), read=MIB, lun=0).good()
                assert bytes(t.data) == want[MIB:2 * MIB]


@row("ST-04", "SBC-3 4.18", "a file that was cut under the unit: reads beyond its end fail, never "
     "GOOD with something else's bytes")
def shrunk_file(env):
    with env.with_daemon([Target("disk", [disk(size=8 * MIB)])]) as d:
        s = env.session()
        s.run_ua(scsi.TEST_UNIT_READY, lun=0)
        s.run(scsi.write10(8192, 64), write=b"\xee" * 64 * BLK, lun=0).good()
        os.truncate(d.targets[0].luns[0].where, 4 * MIB)
        for lba in (12288, 8192, 8188):  # beyond the end, at it, across it
            t = s.run_ua(scsi.read10(lba, 8), read=8 * BLK, lun=0)
            assert t.status == 2 and scsi.Sense(t.sense).key in (2, 3, 4), \
                "LBA %d: status %02x %s" % (lba, t.status, t.where())
        s.run_ua(scsi.read10(0, 8), read=8 * BLK, lun=0).good()


@row("ST-05", "SAM-5 8.6", "ORDERED waits for all older commands, SIMPLE for older ORDERED ones, "
     "HEAD OF QUEUE for none")
def task_attributes(env):
    simple, ordered, head = 1, 2, 3
    with gated(env) as gate:
        s = env.session()
        s.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        shut(gate)
        w = s.start(scsi.write10(64, 8), write=bytes(8 * BLK), lun=0)  # held by the layer
        o = s.start(scsi.read10(0, 1), read=BLK, lun=0, attr=ordered)
        q = s.start(scsi.read10(1, 1), read=BLK, lun=0, attr=simple)
        h = s.start(scsi.read10(2, 1), read=BLK, lun=0, attr=head)
        s.wait(h).good()
        s.quiet(0.4)
        assert not o.done and not q.done and not w.done
        os.unlink(gate)
        s.wait(o).good()
        assert w.done, "the ORDERED command overtook an older one"
        s.wait(q).good()


@row("ST-06", "RFC7143 4.2.3.3, 11.5.4", "an immediate ABORT TASK SET waits for the commands "
     "numbered before it that are still on their way, and takes them too")
def task_set_with_gap(env):
    with env.with_daemon([Target("disk", [disk()])]):
        s = env.session(InitialR2T="Yes", ImmediateData="No")
        s.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        for function in (2, 4, 5):
            late = s.win.take()
            p = s.tmf_pdu(function, lun=0)  # shows the number after it
            s.send(p)
            s.quiet(0.3)
            t = s.start(scsi.write10(0, 8), write=bytes(8 * BLK), lun=0, cmd_sn=late, auto=False)
            while True:
                r = s.pump()
                if r is not None:
                    break
            assert r.opcode == P.TMF_RSP and r.itt == p.itt and r.response == 0, repr(r)
            assert not t.done, "the late command was answered"
            s.tasks.clear()
            s.quiet(0.1)
            s.run_ua(scsi.TEST_UNIT_READY, lun=0).good()


def fill_up(name):
    """A file that takes all the room of its file system."""
    with open(name, "wb") as f:
        for size in (MIB, 4096):
            with contextlib.suppress(OSError):
                while True:
                    os.pwrite(f.fileno(), bytes(size), f.seek(0, os.SEEK_END))
        os.fsync(f.fileno())


@row("ST-07", "SBC-3 4.7.3.6", "a small WRITE to a hole of a file whose file system is full fails "
     "with SPACE ALLOCATION FAILED WRITE PROTECT; what is allocated can be written", 60)
def full_ext4(env):
    why = ext4.missing()
    if why:
        raise Skip(why)
    with ext4.Ext4(16 * MIB) as fs:
        lun = Lun(fs.path("thin.img"), 64 * MIB, 0, kind="file", opts=["thin-provisioning on"])
        with env.with_daemon([Target("disk", [lun])]) as d:
            s = env.session()
            s.run_ua(scsi.TEST_UNIT_READY, lun=0)
            s.run(scsi.write10(0, 8), write=pattern(8), lun=0).good()
            s.run(scsi.read10(4096, 256), read=256 * BLK, lun=0).good()  # a hole in the page cache
            fill_up(fs.path("filler"))
            for lba in (4096, 4104, 65536, 131064):  # read before and not
                tasks = [s.start(scsi.write10(lba, 8), write=pattern(8, lba), lun=0)
                         for _ in range(4)]
                for t in tasks:
                    s.wait(t)
                    got = scsi.Sense(t.sense)
                    assert t.status == 2 and (got.key, got.asc, got.ascq) == (7, 0x27, 7), \
                        "LBA %d: status %02x %s" % (lba, t.status, t.where())
                t = s.run(scsi.read10(lba, 8), read=8 * BLK, lun=0).good()
                assert not any(bytes(t.data)), "a refused write has left something"
            s.run(scsi.write10(0, 8), write=pattern(8, 77), lun=0).good()
            assert d.alive()
            os.unlink(fs.path("filler"))
            s.run(scsi.write10(4096, 8), write=pattern(8, 9), lun=0).good()
            s.run(bytes([0x35]) + bytes(9), lun=0).good()
            t = s.run(scsi.read10(4096, 8), read=8 * BLK, lun=0).good()
            assert bytes(t.data) == pattern(8, 9)
