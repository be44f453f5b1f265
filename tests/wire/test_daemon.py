# SPDX-License-Identifier: BSD-2-Clause
"""The daemon as a whole: shutdown, access lists, live changes by evtgtadm, missing and hanging
stores.  Each row starts its own daemon, which must end with status 0 and without a sanitizer
report."""

import contextlib
import os
import re
import socket
import tempfile
import time

from harness import (BLK, Closed, DISK, IQN, Lun, MIB, OTHER, P, SOLICITED, Silent, Skip, Target,
                     default_targets, row, scsi, status_of, text, write_waiting)
from lib.evtgt import Daemon, Failed, free_port
from lib.iscsi import fresh_isid

OWN_DAEMON = True


def login_status(env, target=DISK, **kw):
    """0 when the login works, else its status."""
    s = env.new(target, **kw)
    return status_of(s, text(*s.first_pairs()), csg=1, nsg=3)


def ua(s, lun, key, asc, ascq, seconds=10):
    """The next unit attention within `seconds` must be this one; it comes once."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        t = s.run(scsi.TEST_UNIT_READY, lun=lun)
        if t.status == 0:
            time.sleep(0.05)
            continue
        t.check(key, asc, ascq)
        return
    raise AssertionError("no unit attention %x/%02x/%02x" % (key, asc, ascq))


def capacity(s, lun=0):
    d = s.run(scsi.read_capacity16(), read=32, lun=lun).good().data
    return int.from_bytes(d[:8], "big") + 1


def luns(s):
    d = s.run(scsi.report_luns(), read=1024, lun=0).good().data
    return [int.from_bytes(d[i:i + 2], "big") & 0x3FFF for i in range(8, len(d), 8)]


def disk(path="a.img", size=4 * MIB, lun=0, **kw):
    return Lun(path, size, lun, kind="file", **kw)


def tid(env, name):
    m = re.search(r"^Target (\d+): %s$" % re.escape(name),
                  env.d.iscsi("--op", "show", "--mode", "target"), re.M)
    assert m, "%s is not shown" % name
    return m.group(1)


@row("A-03", "11.9.1", "SIGTERM: an Async Message with event 1 and Parameter3, then the target "
     "waits for Logout")
def shutdown_asks_for_logout(env):
    with env.with_daemon(default_targets(), head=["shutdown-timeout 60"]) as d:
        a, b = env.session(), env.session()
        d.terminate()
        for s in (a, b):
            p = s.expect(P.ASYNC)
            assert p.event == 1, "event %d" % p.event
            assert p.param3 > 0, "Parameter3 %d seconds" % p.param3
        time.sleep(0.2)
        assert d.alive(), "does not wait for Logout"
        a.logout()
        b.run(scsi.TEST_UNIT_READY, lun=0).good()
        b.logout()
        assert d.wait(15) == 0, "does not end with the last logout"


@row("A-07", "11.9.1", "SIGTERM and a client that does nothing: connections are closed and the "
     "daemon ends in time", 30)
def shutdown_without_logout(env):
    with env.with_daemon(default_targets(), head=["shutdown-timeout 1"]) as d:
        s = env.session(**SOLICITED)
        write_waiting(s, 0)
        d.terminate()
        assert s.expect(P.ASYNC).event == 1
        for p in s.conn.expect_close(6):
            assert p.opcode == P.ASYNC, repr(p)
        assert d.wait(8) == 0


@row("A-05", "11.9.1", "a connection closed by administration is told: event 2 or 3 with its CID")
def connection_deleted(env):
    with env.with_daemon(default_targets()) as d:
        s = env.session(cid=9)
        t = tid(env, DISK)
        out = d.iscsi("--op", "show", "--mode", "conn", "--tid", t)
        sid = re.search(r"Session: (\d+)", out).group(1)
        cid = re.search(r"Connection: (\d+)", out).group(1)
        assert cid == "9", out
        d.iscsi("--op", "delete", "--mode", "conn", "--tid", t, "--sid", sid, "--cid", cid)
        seen = s.conn.expect_close(5)
        assert len(seen) == 1 and seen[0].opcode == P.ASYNC and seen[0].event in (1, 2, 3), seen
        if seen[0].event == 2:
            assert seen[0].param1 == 9, "CID %d" % seen[0].param1


@row("L-58", "7.5", "a login that is not finished within login-timeout is closed")
def login_timeout(env):
    with env.with_daemon(default_targets(), head=["login-timeout 1"]):
        quiet = socket.create_connection(env.addr)
        s = env.new()
        s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
        began = time.monotonic()
        s.conn.expect_close(4)
        assert time.monotonic() - began > 0.5
        quiet.settimeout(3)
        assert quiet.recv(1) == b""
        quiet.close()
        full = env.session()
        time.sleep(1.3)
        full.nop()


@row("BR-12", "4.2.7", "names with control characters, blanks or more than 223 bytes cannot be "
     "created; upper case is folded or refused")
def bad_target_names(env):
    with env.with_daemon(default_targets()) as d:
        for name in ("iqn.2001-04.a:b\nx", "iqn.2001-04.a:b c", "iqn.2001-04.a:" + "n" * 210,
                     "iqn.2001-04.a:\x01", "nonsense"):
            out = d.iscsi("--op", "new", "--mode", "target", "--tid", "77", "-T", name, check=False)
            assert out.returncode != 0, "%r was created" % name
        d.iscsi("--op", "new", "--mode", "target", "--tid", "78", "-T", "iqn.2001-04.com.Ex:Up",
                check=False)
        shown = d.iscsi("--op", "show", "--mode", "target")
        assert "iqn.2001-04.com.Ex:Up" not in shown
        assert "Target 77" not in shown


@row("BR-18", "9.3", "/32 is the host, 0.0.0.0/0 is ALL, another net keeps out, /33 is refused")
def address_lists(env):
    mk = [Target(n, [disk(n + ".img")], ["initiator-address " + a]) for n, a in (
        ("host", "127.0.0.1/32"), ("plain", "127.0.0.1"), ("net", "127.0.0.0/8"),
        ("bits", "127.0.0.1/24"), ("all", "0.0.0.0/0"), ("far", "10.0.0.0/8"),
        ("near", "127.0.0.2/32"))]
    with env.with_daemon(mk):
        for n in ("host", "plain", "net", "bits", "all"):
            assert login_status(env, IQN + n) == 0, n
        for n in ("far", "near"):
            st = login_status(env, IQN + n)
            assert st in (0x0202, 0x0203), "%s: status %04x" % (n, st)
        d = env.discovery()
        names = [v for k, v in d.text(text(SendTargets="All")) if k == "TargetName"]
        assert sorted(names) == sorted(IQN + n for n in ("host", "plain", "net", "bits", "all")), \
            names
    env.d = Daemon([Target("x", [disk()], ["initiator-address 127.0.0.1/33"])], env.set)
    try:
        env.d.start()
    except Failed:
        return
    finally:
        env.d.cleanup()
    raise AssertionError("/33 was accepted")


@row("BR-19", "9.3", "initiator-name alone admits only these names; with an address both must fit; "
     "no list admits nobody")
def name_lists(env):
    mk = [Target("named", [disk("a.img")], ["initiator-name " + IQN + "friend"]),
          Target("both", [disk("b.img")], ["initiator-name " + IQN + "friend",
                                           "initiator-address 127.0.0.1"]),
          Target("wrongaddr", [disk("c.img")], ["initiator-name " + IQN + "friend",
                                                "initiator-address 10.1.2.3"])]
    with env.with_daemon(mk):
        for n in ("named", "both"):
            assert login_status(env, IQN + n, initiator=IQN + "friend") == 0, n
            st = login_status(env, IQN + n, initiator=IQN + "stranger")
            assert st in (0x0202, 0x0203), "%s admits a stranger: %04x" % (n, st)
        st = login_status(env, IQN + "wrongaddr", initiator=IQN + "friend")
        assert st in (0x0202, 0x0203), "name or address is enough: %04x" % st


@row("BR-21", "13.8", "an IPv6 portal works with and without brackets and is shown in brackets")
def ipv6_portal(env):
    try:
        socket.socket(socket.AF_INET6).bind(("::1", 0))
    except OSError:
        raise Skip("no IPv6 on loopback")
    with env.with_daemon(default_targets(), host="::1"):
        d = env.discovery()
        got = [v for k, v in d.text(text(SendTargets="All")) if k == "TargetAddress"]
        assert got and all(v.startswith("[::1]:%d," % env.addr[1]) for v in got), got
        env.serves()


@row("BR-16b", "13.8", "a wildcard portal is shown as addresses that can be reached, never as "
     "itself, link-local or with a zone")
def wildcard_portal(env):
    port = free_port("0.0.0.0")
    with env.with_daemon(default_targets(), head=["portal 0.0.0.0:%d" % port]):
        d = env.new(None, discovery=True, addr=("127.0.0.1", port)).login()
        got = [v for k, v in d.text(text(SendTargets=DISK)) if k == "TargetAddress"]
        assert any(v.startswith("127.0.0.1:%d," % port) for v in got), got
        for v in got:
            assert "0.0.0.0" not in v and "fe80" not in v.lower() and "%" not in v, got
            assert not v.startswith("[::]"), got


def blk_targets():
    return [Target("disk", [disk("a.img", 4 * MIB, 0), disk("b.img", 4 * MIB, 1)]),
            Target("other", [disk("c.img", 4 * MIB, 0)])]


@row("BR-40", "SBC-3 5.16, SPC-4 5.14", "a store that grows: 06/2A/09 once to each nexus, new "
     "capacity, I/O to the new blocks without a logout", 40)
def capacity_grows(env):
    with env.with_daemon(blk_targets()) as d:
        a, b = env.session(), env.session()
        assert capacity(a) == 4 * MIB // BLK
        os.truncate(d.path("a.img"), 8 * MIB)
        for s in (a, b):
            ua(s, 0, 6, 0x2A, 9, 12)
            s.run(scsi.TEST_UNIT_READY, lun=0).good()
            assert capacity(s) == 8 * MIB // BLK
            s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        data = scsi.pattern(BLK, 40)
        a.run(scsi.write10(8 * MIB // BLK - 1, 1), write=data, lun=0).good()
        t = b.run(scsi.read10(8 * MIB // BLK - 1, 1), read=BLK, lun=0).good()
        assert bytes(t.data) == data


@row("BR-41 BR-59", "SPC-4 6.33, SAM-5 5.14", "LUN added and removed by evtgtadm: 06/3F/0E to the "
     "nexuses of this target only; connections stay; a LUN in use goes with force and its command is "
     "answered", 40)
def luns_come_and_go(env, case):
    with env.with_daemon(blk_targets()) as d:
        a, b = env.session(), env.session(OTHER)
        t = tid(env, DISK)
        with open(d.path("new.img"), "wb") as f:
            f.truncate(2 * MIB)
        if case == "BR-41":
            d.iscsi("--op", "new", "--mode", "logicalunit", "--tid", t, "--lun", "5", "-b",
                    d.path("new.img"))
            ua(a, 0, 6, 0x3F, 0x0E, 3)
            assert 5 in luns(a), luns(a)
            a.run_ua(scsi.read10(0, 1), read=BLK, lun=5).good()
            b.run(scsi.TEST_UNIT_READY, lun=0).good()
            d.iscsi("--op", "delete", "--mode", "logicalunit", "--tid", t, "--lun", "5")
            ua(a, 0, 6, 0x3F, 0x0E, 3)
            assert 5 not in luns(a)
            a.run(scsi.read10(0, 1), read=BLK, lun=5).check(5, 0x25, 0)
            b.run(scsi.TEST_UNIT_READY, lun=0).good()
            a.nop()
            return
        s = env.session(**SOLICITED)
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        w, r2t, data = write_waiting(s, 1)
        d.iscsi("--op", "delete", "--mode", "logicalunit", "--tid", t, "--lun", "1", "--force")
        assert 1 not in luns(a)
        s.quiet(0.2)  # 11.4.2: its data are still to come
        s.data_out(w, 0, r2t.desired, r2t.ttt)
        s.wait(w).check(5, 0x25, 0)
        ua(s, 0, 6, 0x3F, 0x0E, 3)
        s.run(scsi.read10(0, 1), read=BLK, lun=1).check(5, 0x25, 0)
        s.run(scsi.read10(0, 1), read=BLK, lun=0).good()


@row("BR-49 BR-69", "11.18", "a ping is answered at once while the store is busy; a slow flush can "
     "be aborted and the unit serves on", 40)
def slow_store(env, case):
    op = "flush" if case == "BR-49" else "read"
    tgts = [Target("disk", [disk("a.img", opts=["layer delay:ms=1500,op=" + op]),
                            disk("b.img", lun=1)])]
    with env.with_daemon(tgts):
        s = env.session()
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        s.run(scsi.write10(0, 8), write=scsi.pattern(8 * BLK, 1), lun=0).good()
        began = time.monotonic()
        if case == "BR-49":
            t = s.start(scsi.synchronize_cache10(), lun=0)
        else:
            t = s.start(scsi.read10(0, 8), read=8 * BLK, lun=0)
        for _ in range(5):
            s.nop(b"busy?", timeout=0.7)
        other = s.run(scsi.read10(0, 8), read=8 * BLK, lun=1, timeout=0.7).good()
        assert len(other.data) == 8 * BLK and not t.done
        s.wait(t, timeout=6).good()
        assert time.monotonic() - began > 1.2, "the layer did not delay"
        t = s.start(scsi.synchronize_cache10(), lun=0) if case == "BR-49" else \
            s.start(scsi.read10(0, 8), read=8 * BLK, lun=0)
        assert s.tmf(1, lun=0, rtt=t.itt, ref_cmd_sn=t.pdu.cmd_sn, timeout=6) == 0
        s.quiet(0.2)
        s.run(scsi.TEST_UNIT_READY, lun=0).good()


@row("BR-55", "7", "a store that hangs: other targets log in at once, its sessions reinstate, "
     "delete --force returns and its commands are answered, SIGTERM ends the daemon", 60)
def hanging_store(env):
    tgts = [Target("disk", [disk("a.img", opts=["layer delay:hang=1,op=read,write,flush"]),
                            disk("b.img", lun=1)]),
            Target("other", [disk("c.img")])]
    with env.with_daemon(tgts, head=["shutdown-timeout 2"]) as d:
        s = env.session()
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        for i in range(8):
            s.start(scsi.read10(i, 1), read=BLK, lun=0)
        w = s.start(scsi.write10(0, 1), write=bytes(BLK), lun=0)
        s.quiet(0.3)
        began = time.monotonic()
        o = env.session(OTHER)
        o.run_ua(scsi.read10(0, 1), read=BLK, lun=0).good()
        assert time.monotonic() - began < 1, "login to another target is slow"
        s.run(scsi.read10(0, 1), read=BLK, lun=1, timeout=2).good()
        s.nop(timeout=1)
        assert s.tmf(1, lun=0, rtt=w.itt, ref_cmd_sn=w.pdu.cmd_sn, timeout=5) == 0
        began = time.monotonic()
        n = env.session(isid=s.isid, settle=False)
        s.conn.expect_close(3)
        n.run_ua(scsi.read10(0, 1), read=BLK, lun=1).good()
        assert time.monotonic() - began < 3, "reinstatement is slow"
        n.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        lost = [n.start(scsi.read10(0, 1), read=BLK, lun=0),
                n.start(scsi.write10(0, 1), write=bytes(BLK), lun=0)]
        n.quiet(0.2)
        began = time.monotonic()
        d.iscsi("--op", "delete", "--mode", "logicalunit", "--tid", tid(env, DISK), "--lun", "0",
                "--force")
        assert time.monotonic() - began < 5
        n.wait(*lost, timeout=2)
        for t in lost:
            t.check(5, 0x25, 0)
        n.run_ua(scsi.read10(0, 1), read=BLK, lun=1).good()
        m = env.session(OTHER)
        m.run_ua(scsi.read10(0, 1), read=BLK, lun=0).good()


@row("BR-55b", "7", "with a store hung beyond cancelling SIGTERM still ends the daemon", 40)
def stuck_store(env):
    tgts = [Target("disk", [disk("a.img", opts=["layer delay:stuck=1,op=read"]),
                            disk("b.img", lun=1)])]
    with env.with_daemon(tgts, head=["shutdown-timeout 1"]) as d:
        s = env.session()
        s.start(scsi.read10(0, 1), read=BLK, lun=0)
        s.quiet(0.2)
        d.terminate()
        d.wait(10)


@row("BR-56", "SPC-4 4.5.7", "a path missing at start: other LUNs serve, the missing one is not "
     "ready and comes when the path appears; the file of the configuration is not touched", 60)
def missing_at_start(env):
    tgts = [Target("disk", [disk("a.img"), disk("gone.img", lun=1, create=False)]),
            Target("other", [disk("c.img")])]
    with env.with_daemon(tgts) as d:
        with open(d.conf) as f:
            before = f.read()
        s = env.session()
        s.run(scsi.read10(0, 1), read=BLK, lun=0).good()
        assert 1 in luns(s), "the missing LUN is not listed"
        t = s.run_ua(scsi.TEST_UNIT_READY, lun=1)
        x = t.check(2)
        assert x.asc in (0x3A, 0x04), "%02x/%02x" % (x.asc, x.ascq)
        assert s.run(scsi.inquiry(36), read=36, lun=1).good().data[0] == 0
        with open(d.path("tmp.img"), "wb") as f:
            f.truncate(2 * MIB)
        os.rename(d.path("tmp.img"), d.path("gone.img"))
        deadline = time.monotonic() + 20
        while True:
            t = s.run_ua(scsi.TEST_UNIT_READY, lun=1)
            if t.status == 0:
                break
            t.check(2)
            assert time.monotonic() < deadline, "the path appeared, the LUN stays not ready"
            time.sleep(0.1)
        assert capacity(s, 1) == 2 * MIB // BLK
        s.run(scsi.read10(0, 1), read=BLK, lun=1).good()
        with open(d.conf) as f:
            assert f.read() == before, "configuration rewritten"


@row("BR-58", "evtgtadm(8)", "exit status is not 0 whenever the named thing still is there; "
     "failures leave nothing half made")
def exit_status(env):
    with env.with_daemon(default_targets()) as d:
        s = env.session()
        t = tid(env, DISK)
        out = d.iscsi("--op", "delete", "--mode", "target", "--tid", t, check=False)
        still = "Target %s: " % t in d.iscsi("--op", "show", "--mode", "target")
        assert (out.returncode == 0) != still, "status %d, there: %s" % (out.returncode, still)
        assert still, "a target in use was deleted without force"
        s.nop()
        out = d.iscsi("--op", "delete", "--mode", "target", "--tid", "4711", check=False)
        assert out.returncode != 0
        out = d.iscsi("--op", "new", "--mode", "target", "--tid", "9", "-T", DISK, check=False)
        assert out.returncode != 0 and "Target 9:" not in d.iscsi("--op", "show", "--mode",
                                                                  "target")
        out = d.iscsi("--op", "new", "--mode", "logicalunit", "--tid", t, "--lun", "9", "-b",
                      d.path("nowhere.img"), check=False)
        assert (out.returncode == 0) == (9 in luns(s)), "status %d, LUNs %r" % (out.returncode,
                                                                               luns(s))
        d.iscsi("--op", "delete", "--mode", "target", "--tid", t, "--force")
        assert "Target %s: " % t not in d.iscsi("--op", "show", "--mode", "target")
        s.conn.expect_close(5)
        assert login_status(env) == 0x0203


@row("BR-60", "11.13.5", "state offline: new logins get 03/01 or commands 02/04; state ready: all "
     "as before, with the same ids")
def offline_and_ready(env):
    with env.with_daemon(default_targets()) as d:
        s = env.session()
        ids = bytes(s.run(scsi.inquiry(255, 0x83), read=255, lun=0).good().data)
        t = tid(env, DISK)
        d.iscsi("--op", "update", "--mode", "target", "--tid", t, "--name", "state", "--value",
                "offline")
        st = login_status(env, initiator=IQN + "late")
        assert st == 0x0301, "status %04x" % st
        assert login_status(env, OTHER) == 0
        d.iscsi("--op", "update", "--mode", "target", "--tid", t, "--name", "state", "--value",
                "ready")
        assert login_status(env, initiator=IQN + "late") == 0
        try:
            s.run_ua(scsi.read10(0, 1), read=BLK, lun=0).good()
        except (Closed, AssertionError):
            assert s.asyncs and s.asyncs[0].event in (1, 2, 3), "closed without an Async Message"
            s.conn.expect_close(5)
            s = env.session()
        assert bytes(s.run(scsi.inquiry(255, 0x83), read=255, lun=0).good().data) == ids


@row("BR-70", "SPC-4 6.33", "LUNs come and go a hundred times under a live session", 60)
def lun_churn(env):
    with env.with_daemon(blk_targets()) as d:
        s = env.session()
        t = tid(env, DISK)
        for i in range(3):
            with open(d.path("n%d.img" % i), "wb") as f:
                f.truncate(MIB)
        for i in range(100):
            lun = 2 + i % 3
            d.iscsi("--op", "new", "--mode", "logicalunit", "--tid", t, "--lun", str(lun), "-b",
                    d.path("n%d.img" % (i % 3)))
            s.run_ua(scsi.read10(0, 1), read=BLK, lun=0).good()
            r = s.start(scsi.read10(0, 64), read=64 * BLK, lun=lun)
            d.iscsi("--op", "delete", "--mode", "logicalunit", "--tid", t, "--lun", str(lun),
                    "--force")
            deadline = time.monotonic() + 0.05
            while not r.done and time.monotonic() < deadline:
                try:
                    s.pump(0.02)
                except Silent:
                    pass
            s.tasks.pop(r.itt, None)
            assert lun not in luns_ua(s)


def luns_ua(s):
    d = s.run_ua(scsi.report_luns(), read=1024, lun=0).good().data
    return [int.from_bytes(d[i:i + 2], "big") & 0x3FFF for i in range(8, len(d), 8)]


@row("BR-52b", "SPC-4 4.5", "a read-only unit: 07/27/00 for writes, WP in mode sense, reads work")
def read_only(env):
    with env.with_daemon([Target("disk", [disk(opts=["readonly on"])])]):
        s = env.session()
        s.run(scsi.read10(0, 1), read=BLK, lun=0).good()
        s.run(scsi.write10(0, 1), write=bytes(BLK), lun=0).check(7, 0x27)
        d = s.run(scsi.mode_sense6(0x3F), read=255, lun=0).good().data
        assert d[2] & 0x80, "WP is not set"


@row("BR-62", "SAM-5 5.3", "a store that fails: CHECK CONDITION with a medium or hardware error on "
     "its LUN, the other serves")
def failing_store(env):
    tgts = [Target("disk", [disk("a.img", opts=["layer error:errno=EIO,op=read"]),
                            disk("b.img", lun=1)])]
    with env.with_daemon(tgts):
        s = env.session()
        t = s.run(scsi.read10(0, 1), read=BLK, lun=0)
        assert t.status == 2 and scsi.Sense(t.sense).key in (3, 4, 0x0B), t.where()
        assert not t.collapsed
        s.run_ua(scsi.read10(0, 1), read=BLK, lun=1).good()
        s.run(scsi.write10(0, 1), write=bytes(BLK), lun=0).good()


@row("F-48", "11.4.8", "a read that fails after part of its data: CHECK CONDITION, ExpDataSN "
     "counts the Data-Ins that came", 30)
def fails_half_way(env):
    layer = "layer error:errno=EIO,op=read,at=%d,len=512" % (5 * MIB)
    tgts = [Target("disk", [disk("a.img", 8 * MIB, opts=[layer])])]
    with env.with_daemon(tgts):
        s = env.session(MaxRecvDataSegmentLength=8192)
        t = s.run(scsi.read10(0, 12288), read=6 * MIB, lun=0)  # Task checks ExpDataSN
        assert t.status == 2 and scsi.Sense(t.sense).key in (3, 4, 0x0B), t.where()
        assert len(t.data) <= 5 * MIB
        if not t.datains:
            raise Skip("reads of this size are checked before any data is sent")
        s.run(scsi.read10(0, 128), read=128 * BLK, lun=0).good()


def set_cache(s, on, lun=0):
    """MODE SELECT(6) of the caching page, not saved."""
    page = bytes((0x08, 0x12, 0x04 if on else 0)) + bytes(17)
    return s.run_ua(scsi.mode_select6(24), write=bytes(4) + page, lun=lun)


def cache_is_on(s, lun=0):
    d = s.run_ua(scsi.mode_sense6(0x08, dbd=1), read=255, lun=lun).good().data
    return bool(d[4 + 2] & 0x04)


@row("CA-01", "SBC-3 4.15, SAM-5 6.3.3", "a LUN RESET that takes the write cache off writes it to "
     "the medium first: who reads WCE=0 afterwards flushes no more")
def reset_flushes_cache(env):
    layer = "layer error:errno=EIO,op=flush"
    with env.with_daemon([Target("disk", [disk(opts=["write-cache off", layer])])]):
        s = env.session()
        set_cache(s, True).good()
        assert cache_is_on(s)
        s.run(scsi.write10(0, 1), write=bytes(BLK), lun=0).good()
        assert s.tmf(5, lun=0) == 0
        assert not cache_is_on(s)
        # the flush that is owed has failed, which is remembered
        t = s.run_ua(scsi.write10(8, 1), write=bytes(BLK), lun=0)
        assert t.status == 2 and scsi.Sense(t.sense).key in (3, 4), \
            "GOOD: nothing was flushed (%02x %s)" % (t.status, t.where())


@row("CA-02", "SBC-3 6.4.5", "MODE SELECT with WCE=0 is not GOOD when the cache cannot be written "
     "to the medium, and the cache stays on")
def cache_off_fails(env):
    layer = "layer error:errno=EIO,op=flush"
    with env.with_daemon([Target("disk", [disk(opts=[layer])])]):
        s = env.session()
        assert cache_is_on(s)
        s.run(scsi.write10(0, 1), write=bytes(BLK), lun=0).good()
        t = set_cache(s, False)
        assert t.status == 2, "MODE SELECT: status %02x" % t.status
        assert cache_is_on(s)


@row("CA-03", "SBC-3 5.25", "a STOP UNIT whose flush fails is not GOOD, with NO_FLUSH it is; a "
     "failed flush is remembered for all sessions")
def failed_flush_is_sticky(env):
    layer = "layer error:errno=EIO,op=flush,count=1"
    with env.with_daemon([Target("disk", [disk(opts=[layer])])]):
        a, b = env.session(), env.session()
        a.run_ua(scsi.write10(0, 1), write=bytes(BLK), lun=0).good()
        t = a.run(bytes((0x1b, 0, 0, 0, 0, 0)), lun=0)
        assert t.status == 2, "STOP without its flush: status %02x" % t.status
        b.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        for s in (a, b):  # the store would do it now, but what was lost is lost
            for cdb, out in ((scsi.synchronize_cache10(), None),
                             (scsi.write10(0, 1, 8), bytes(BLK))):
                t = s.run_ua(cdb, write=out, lun=0)
                assert t.status == 2 and scsi.Sense(t.sense).key in (3, 4), \
                    "%02x: status %02x %s" % (cdb[0], t.status, t.where())
        b.run(scsi.write10(0, 1), write=bytes(BLK), lun=0).good()  # promises nothing
        a.run(bytes((0x1b, 0, 0, 0, 4, 0)), lun=0).good()


@contextlib.contextmanager
def gated(env, *opts):
    """A daemon whose unit holds writes, beyond cancelling, while the file `gate` exists."""
    with tempfile.TemporaryDirectory(prefix="evtgt-gate-") as where:
        os.chmod(where, 0o755)  # the layer looks as the daemon's user
        gate = os.path.join(where, "gate")
        layer = "layer delay:stuck=1,op=write,when=" + gate
        with env.with_daemon([Target("disk", [disk(opts=[layer] + list(opts))])]):
            try:
                yield gate
            finally:
                if os.path.exists(gate):
                    os.unlink(gate)


def shut(gate):
    with open(gate, "w"):
        time.sleep(0.2)  # the layer looks now and then


@row("CA-04", "SBC-3 6.4.5", "a write that is under way while MODE SELECT turns the cache off is "
     "durable before it is GOOD")
def cache_off_under_write(env):
    # the flush of MODE SELECT passes, the one that the write owes fails
    with gated(env, "layer error:errno=EIO,op=flush,after=1") as gate:
        s = env.session()
        s.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        shut(gate)
        t = s.start(scsi.write10(0, 8), write=bytes(8 * BLK), lun=0)
        s.quiet(0.2)
        set_cache(s, False).good()
        assert not cache_is_on(s) and not t.done
        os.unlink(gate)
        s.wait(t)
        assert t.status == 2, "GOOD for a write that is in the cache only"


@row("OR-01", "RFC7143 4.2.3", "a write of a dead session that the store still has: newer "
     "commands on its blocks wait for it, others do not")
def orphan_holds_its_blocks(env):
    with gated(env) as gate:
        isid = fresh_isid()
        old = env.session(isid=isid)
        old.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        shut(gate)
        old.start(scsi.write10(8, 8), write=b"\x11" * 8 * BLK, lun=0)
        old.quiet(0.3)
        new = env.session(isid=isid)  # reinstates: the old session is dead
        new.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        t = new.start(scsi.read10(15, 2), read=2 * BLK, lun=0)
        new.quiet(0.5)  # reads are not held by the layer, but by the orphan
        new.run(scsi.read10(16, 8), read=8 * BLK, lun=0).good()
        new.run(scsi.read10(0, 8), read=8 * BLK, lun=0).good()
        assert not t.done
        os.unlink(gate)
        new.wait(t).good()
        assert bytes(t.data) == b"\x11" * BLK + bytes(BLK), "the orphan has not landed before"


@row("OR-02", "SAM-5 7.2, RFC7143 11.6.1", "ABORT TASK, ABORT TASK SET and LOGICAL UNIT RESET of a "
     "write that the store still has are answered when it can land no more")
def function_waits_for_store(env):
    with gated(env) as gate:
        s = env.session()
        s.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        for function in (1, 2, 5):
            shut(gate)
            t = s.start(scsi.write10(0, 8), write=b"\x22" * 8 * BLK, lun=0)
            s.quiet(0.2)
            p = s.tmf_pdu(function, lun=0, rtt=t.itt if function == 1 else P.NONE,
                          ref_cmd_sn=t.pdu.cmd_sn)
            s.send(p)
            s.quiet(0.4)
            os.unlink(gate)
            assert s.expect(P.TMF_RSP, p.itt).response == 0
            s.tasks.clear()
            s.run_ua(scsi.write10(0, 8), write=b"\x33" * 8 * BLK, lun=0).good()
            t = s.run(scsi.read10(0, 8), read=8 * BLK, lun=0).good()
            assert bytes(t.data) == b"\x33" * 8 * BLK, "function %d: the old one landed" % function


@row("OR-03", "SAM-5 6.3.3", "a LOGICAL UNIT RESET waits for the writes of other sessions, on "
     "whatever worker, and says so to each of them")
def reset_waits_for_others(env):
    with gated(env) as gate:
        ss = [env.session() for _ in range(4)]
        for s in ss:
            s.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        shut(gate)
        for i, s in enumerate(ss[1:]):
            s.start(scsi.write10(8 * i, 8), write=b"\x44" * 8 * BLK, lun=0)
        ss[1].quiet(0.3)
        p = ss[0].tmf_pdu(5, lun=0)
        ss[0].send(p)
        ss[0].quiet(0.4)
        os.unlink(gate)
        assert ss[0].expect(P.TMF_RSP, p.itt).response == 0
        for s in ss[1:]:
            s.tasks.clear()
            s.quiet(0.1)  # no status for what was aborted
            s.run(scsi.TEST_UNIT_READY, lun=0).check(6, 0x29)


@row("RS-01", "SPC-2 7.21, 7.5", "RESERVE(6) of a session that ends, or is reinstated, or of a LUN "
     "that is reset, holds nobody off any more")
def reservation_ends_with_session(env):
    with env.with_daemon([Target("disk", [disk()])]):
        isid = fresh_isid()
        b = env.session()
        b.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        for how in ("close", "reset", "logout", "reinstate", "lun reset"):
            a = env.session(isid=isid)
            a.run_ua(scsi.RESERVE6, lun=0).good()
            b.run_ua(scsi.write10(0, 1), write=bytes(BLK), lun=0)
            t = b.run(scsi.TEST_UNIT_READY, lun=0)
            assert t.status == 0x18, "%s: status %02x, not RESERVATION CONFLICT" % (how, t.status)
            if how == "close":
                a.conn.close()
            elif how == "reset":
                a.conn.reset()
            elif how == "logout":
                a.logout()
            elif how == "reinstate":
                env.session(isid=isid)
            else:
                assert b.tmf(5, lun=0) == 0
            deadline = time.monotonic() + 5
            while b.run_ua(scsi.TEST_UNIT_READY, lun=0).status and time.monotonic() < deadline:
                time.sleep(0.02)
            b.run_ua(scsi.write10(0, 1), write=bytes(BLK), lun=0).good()


@row("RS-02", "SPC-4 6.16", "PREVENT ALLOW MEDIUM REMOVAL of a session that ends prevents nothing "
     "any more; of two, the other still does")
def prevent_ends_with_session(env):
    prevent, eject = bytes((0x1E, 0, 0, 0, 1, 0)), bytes((0x1B, 0, 0, 0, 2, 0))
    with env.with_daemon([Target("disk", [disk(opts=["removable on"])])]):
        a, b, c = env.session(), env.session(), env.session()
        for s in (a, b, a):
            s.run_ua(prevent, lun=0).good()
        c.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        c.run(eject, lun=0).check(5, 0x53, 2)
        a.logout()
        c.run(eject, lun=0).check(5, 0x53, 2)
        b.logout()
        c.run(eject, lun=0).good()


@row("H-45", "7.5", "peers that never take the data they asked for, more of them than memory: "
     "others are served", 60)
def crowd_that_never_reads(env):
    with env.with_daemon([Target("disk", [disk(size=32 * MIB)])]):
        crowd = []
        for _ in range(60):  # 60 sessions of 16 MiB; a worker has 256 MiB
            s = env.session(settle=False, rcvbuf=4096, MaxRecvDataSegmentLength=1 << 20)
            s.run_ua(scsi.TEST_UNIT_READY, lun=0)
            for i in range(24):
                s.start(scsi.read10(0, 2048), read=MIB, lun=0)
            crowd.append(s)
        time.sleep(0.5)
        for _ in range(3):
            s = env.session(settle=False)
            s.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
            for i in range(4):
                data = bytes((i + 1,)) * 64 * BLK
                s.run(scsi.write10(64 * i, 64), write=data, lun=0).good()
                t = s.run(scsi.read10(64 * i, 64), read=64 * BLK, lun=0).good()
                assert bytes(t.data) == data
        for s in crowd:
            s.conn.reset()


@row("K-08", "SPC-4 6.33, SAM-5 4.7.7", "a target of 16384 logical units: the daemon starts in time, "
     "REPORT LUNS lists them all, the first and the last of each address form serve", 60)
def all_luns(env):
    units = [Lun("n%d" % i, MIB, i, kind="null") for i in range(16384)]
    with env.with_daemon([Target("many", units)]):
        s = env.session(IQN + "many", settle=False)
        t = s.run_ua(scsi.report_luns(1 << 18), read=1 << 18).good()
        assert int.from_bytes(t.data[:4], "big") == 8 * 16384
        assert len({bytes(t.data[i:i + 8]) for i in range(8, len(t.data), 8)}) == 16384
        for lun in (0, 1, 255, 256, 16383):
            assert P.lun_bytes(lun).to_bytes(8, "big") == bytes(t.data[8 + 8 * lun:16 + 8 * lun])
            s.run_ua(scsi.TEST_UNIT_READY, lun=lun).good()
            s.run(scsi.read10(0, 1), read=BLK, lun=lun).good()
        s.logout()


@row("CF-01", "SAM-5 5.3", "a file in memory that is cut under its unit: what is gone is an error or "
     "a dropped connection, what is there is served, and the daemon lives")
def file_in_memory_is_cut(env):
    path = "/dev/shm/evtgt-cut-%d" % os.getpid()
    try:
        with open(path, "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 4 * MIB)
        with env.with_daemon([Target("disk", [disk(path, create=False)])]) as d:
            s = env.session()
            s.run_ua(scsi.write10(0, 16), write=b"\x5a" * (16 * BLK), lun=0).good()
            os.truncate(path, MIB)
            # with a data digest the bytes are copied, without they may be lent
            for digest in ("None", "CRC32C"):
                for length in (8, 256):
                    s = env.session(DataDigest=digest)
                    try:
                        t = s.run_ua(scsi.read10(6144 - length, length), read=length * BLK, lun=0)
                        assert t.status == 2, "a read of what is gone: status %02x" % t.status
                    except (Closed, Silent):
                        pass
                    assert d.alive(), "the daemon died"
            for length in (8, 128):
                s = env.session()
                try:
                    s.run_ua(scsi.write10(7000, length), write=bytes(length * BLK), lun=0)
                except (Closed, Silent):
                    pass
                assert d.alive(), "the daemon died of a write"
            s = env.session()
            t = s.run_ua(scsi.read10(0, 16), read=16 * BLK, lun=0).good()
            assert t.data == b"\x5a" * (16 * BLK)
    finally:
        os.unlink(path)
