# SPDX-License-Identifier: BSD-2-Clause
"""Hostile input: whatever comes, the daemon stays up, its memory stays bounded and a fresh login
and a READ work afterwards (`env.serves()` at the end of each row)."""

import contextlib
import random
import socket
import time

from harness import (BLK, Closed, IQN, LoginFailed, MIB, P, SOLICITED, Silent, fill,
                     offer, read_back, row, scsi, text, write_waiting)
from lib.iscsi import parse_text

GROWTH = 64 * MIB  # of the daemon's memory in one row, times the weight of a sanitizer


@contextlib.contextmanager
def bounded(env, limit=GROWTH):
    before = env.d.rss()
    yield
    grown = env.d.rss() - before
    assert grown < limit * env.set.weight, "RSS grew by %d MiB" % (grown // MIB)


def raw(env):
    """A bare socket."""
    s = socket.create_connection(env.addr, 5)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def swallow(fn):
    """The peer may close at any time."""
    try:
        return fn()
    except (Closed, Silent, OSError):
        return None


@row("H-01", "6.1, 7.12", "1 MiB of keys in C=1 requests: a limit, or all swallowed; memory "
     "bounded")
def endless_login_text(env):
    s = env.new()
    with bounded(env):
        s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
        for i in range(130):
            data = b"".join(b"X-com.example.%d.%d=%s\0" % (i, j, b"v" * 100) for j in range(64))
            s.send(s.login_pdu(data[:8192], csg=1, t=False, c=True))
            try:
                r = s.conn.recv()
            except Closed:
                break
            assert r.opcode == P.LOGIN_RSP and r.status_class in (0, 2, 3), repr(r)
            if r.status_class:
                break
    env.serves()


@row("H-04 H-05", "4.2.7", "names that are not UTF-8 or very long: no login to what does not exist")
def strange_names(env, case):
    iqn = IQN.encode()
    names = [b"\xff\xfe\xfd", iqn + b"\xc3\x28", iqn + b"\x01\n"] if case == "H-04" else \
        [iqn + b"a" * n for n in (200, 232, 4000, 7900)]
    for name in names:
        for which in ("TargetName", "InitiatorName"):
            s = env.new()
            pairs = {"InitiatorName": s.initiator.encode(), "SessionType": b"Normal",
                     "TargetName": s.target.encode()}
            pairs[which] = name
            s.send(s.login_pdu(b"".join(k.encode() + b"=" + v + b"\0"
                                        for k, v in pairs.items()), csg=1, nsg=3))
            r = swallow(lambda: s.conn.recv(3))
            if r is not None:
                assert r.opcode == P.LOGIN_RSP
                assert which == "InitiatorName" or r.status_class == 2, repr(r)
                assert len(name) <= 255 or r.status_class == 2, "a name of %d bytes" % len(name)
    env.serves()


@row("H-06 H-07", "13.12", "DataSegmentLength 2^24-1 in login, with data and with silence")
def huge_login_segment(env, case):
    with bounded(env):
        conns = []
        for _ in range(8):
            s = env.new()
            p = s.login_pdu(b"", csg=1, nsg=3)
            p.raw_lengths, p.dsl = True, 2**24 - 1
            s.send(p)
            if case == "H-06":
                swallow(lambda: [s.conn.send_bytes(b"A=b\0" * 16384) for _ in range(16)])
            conns.append(s)
        env.serves()
        if case == "H-06":
            for s in conns:
                r = swallow(lambda: s.conn.recv(3))
                assert r is None or r.status_class == 2, repr(r)


@row("H-08 H-09", "11.2.2", "TotalAHSLength 255 with garbage, in login and in full feature phase")
def long_ahs(env, case):
    junk = bytes(random.Random(8).randrange(256) for _ in range(1020))
    if case == "H-08":
        s = env.new()
        p = s.login_pdu(text(*s.first_pairs()), csg=1, nsg=3)
    else:
        s = env.session()
        p = P.Pdu(P.SCSI_CMD, cdb=scsi.TEST_UNIT_READY, flags=0x81, itt=s.itt(), edtl=0,
                  lun=P.lun_bytes(env.lun0), cmd_sn=s.number())
    p.ahs = junk
    s.send(p)
    swallow(lambda: s.conn.recv(1))
    env.serves()


@row("H-10 H-11", "11.2.1.2", "every opcode, in full feature phase and before login", 60)
def every_opcode(env, case):
    s = None
    for op in range(64):
        if case == "H-11":
            s = env.new()
        elif s is None:
            s = env.session()
            s.conn.check = False
        p = P.Pdu(op, immediate=True, flags=0x80, itt=0x40000000 + op, cmd_sn=s.win.cmd_sn)
        try:
            s.conn.send(p)
            r = s.conn.recv(0.02)
            if case == "H-11":
                assert r.opcode in (P.REJECT, P.LOGIN_RSP), "opcode %02x: %r" % (op, r)
        except Silent:
            pass
        except Closed:
            s = None
        if case == "H-11" and s is not None:
            s.conn.close()
    env.serves()


@row("H-12", "11.17.1", "Data-Outs for tasks that do not exist")
def stray_data_outs(env):
    s = env.session()
    try:
        for i in range(200):
            s.send(P.Pdu(P.DATA_OUT, flags=0x80, itt=0x60000000 + i, ttt=i, data=bytes(512)))
            while True:
                r = s.recv(0.001)
                assert r.opcode == P.REJECT, repr(r)
    except (Silent, Closed):
        pass
    for _ in range(300):
        r = swallow(lambda: s.recv(0.05))
        if r is None:
            break
        assert r.opcode == P.REJECT, repr(r)
    env.serves()


@row("H-13 H-14", "11.7.6", "Data-Out far beyond the transfer, or longer than all of it: never "
     "GOOD")
def data_out_far_beyond(env, case):
    env.need_data()
    old = fill(env, 64, 8, 130)
    cases = [dict(offset=o) for o in (0x1000, 0x7FFFFE00, 0xFFFFFE00, 0xFFFFFFFF)] \
        if case == "H-13" else [dict(data=bytes(n)) for n in (8 * BLK + 4, 16 * BLK, 128 * BLK)]
    for change in cases:
        s = env.session(**SOLICITED)
        t, r2t, data = write_waiting(s, env.lun0, 8, 64, scsi.pattern(8 * BLK, 131))
        p = s.data_out_pdu(t, 0, data, r2t.ttt, 0)
        for k, v in change.items():
            setattr(p, k, v)
        s.send(p)
        out = s.outcome(t, 1)
        assert out[0] != "status" or out[1] != 0, "GOOD for %r" % change
        s.conn.close()
    assert read_back(env, 64, 8) == old
    env.serves()


@row("H-15 H-16", "7.14", "a part of a header or of a data segment, then FIN or RST: nothing leaks")
def partial_pdus(env, case):
    env.serves()
    before = env.d.fds()
    for phase in ("login", "full"):
        for i in range(12):
            if phase == "login":
                s = env.new()
                whole = s.login_pdu(text(*s.first_pairs()), csg=1).encode()
            else:
                s = env.session(settle=False)
                p = s.nop_pdu(bytes(1000))
                whole = p.encode(s.conn.hdigest, s.conn.ddigest)
            cut = (1, 4, 7, 20, 47, 48)[i % 6] if case == "H-15" else 49 + i * 4
            s.conn.send_bytes(whole[:cut])
            s.conn.reset() if i % 2 else s.conn.close()
    env.serves()
    deadline = time.monotonic() + 5
    while env.d.fds() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert env.d.fds() <= before, "%d descriptors, %d before" % (env.d.fds(), before)


@row("H-17 H-39", "7.5", "25 clients with half a header, 50 in the middle of login: others served")
def many_half_open(env, case):
    held = []
    for i in range(25 if case == "H-17" else 50):
        if case == "H-17":
            s = raw(env)
            s.sendall(bytes(24))
            held.append(s)
        else:
            s = env.new()
            s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
    env.serves()
    for s in held:
        s.close()


@row("H-18", "7.5", "500 connections that send nothing: others served", 40)
def silent_crowd(env):
    held = []
    try:
        for _ in range(500):
            held.append(raw(env))
        t0 = time.monotonic()
        env.serves()
        assert time.monotonic() - t0 < 5
    finally:
        for s in held:
            s.close()
    env.serves()


@row("H-46", "7.5", "more silent or half-logged-in connections than max-half-open, and more all the "
     "time: others log in, the oldest make room", 60)
def crowd_before_login(env):
    held = []
    fds = env.d.fds()
    try:
        for i in range(700):
            s = raw(env)
            s.sendall(bytes((0x43, 0x87)) + bytes(i % 46))
            held.append(s)
            if i > 500 and i % 50 == 0:
                t0 = time.monotonic()
                env.serves()
                assert time.monotonic() - t0 < 5
        assert env.d.fds() - fds < 600, "%d descriptors" % (env.d.fds() - fds)
    finally:
        for s in held:
            s.close()
    env.serves()


@row("H-19", "7.7", "random bytes on fresh connections")
def random_bytes(env):
    rnd = random.Random(19)
    for i in range(60):
        s = raw(env)
        s.settimeout(0.05)
        try:
            n = rnd.choice((1, 47, 48, 49, 96, 700))
            s.sendall(bytes(rnd.randrange(256) for _ in range(n)))
            s.recv(1000)
        except OSError:
            pass
        s.close()
    env.serves()


@row("H-20", "7.7", "random headers in full feature phase", 60)
def random_headers(env):
    rnd = random.Random(20)
    s = None
    for i in range(400):
        if s is None:
            s = env.session(settle=False, initiator=IQN + "fuzz")
            s.conn.check = False
        p = P.Pdu()
        for j in range(48):
            p.bhs[j] = rnd.choice((0, 0xFF, 0x80, rnd.randrange(256)))
        p.bhs[0] = rnd.choice((0, 1, 2, 4, 5, 6, 0x10, 0x40, 0x41, 0x42, 0x44, 0x46)) \
            if i % 4 else rnd.randrange(256)
        if i % 8:
            p.bhs[32] = rnd.choice((0x28, 0x12, 0x00, 0x25, 0xA0, 0x9E, 0x5A, 0x5E))
        p.cmd_sn = s.win.cmd_sn
        p.raw_lengths, p.ahs_len, p.dsl = True, 0, 0
        try:
            s.conn.send(p)
            r = s.conn.recv(0.002)
            if r.opcode in (P.SCSI_RSP, P.TMF_RSP, P.REJECT, P.NOP_IN):
                s.win.cmd_sn = r.exp_cmd_sn
        except (Silent, AssertionError):
            pass
        except Closed:
            s.conn.close()
            s = None
    env.cleanup()
    env.serves()


@row("H-21", "6.1", "endless C=1 Text Requests: a limit, Reject or close; memory bounded")
def endless_text(env):
    s = env.session()
    with bounded(env):
        p = s.text_pdu(b"X-com.example.long=" + b"v" * 4000, final=False, c=True)
        s.send(p)
        for i in range(300):
            try:
                r = s.recv()
            except Closed:
                break
            if r.opcode == P.REJECT or (r.opcode == P.TEXT_RSP and r.final):
                break
            assert r.opcode == P.TEXT_RSP and r.dsl == 0, repr(r)
            s.send(s.text_pdu(b"v" * 4000, final=False, c=True, itt=p.itt, ttt=r.ttt))
        else:
            raise AssertionError("1.2 MiB of one text were taken")
    env.serves()


@row("H-22", "11.3.4", "EDTL ffffffff for one block: residuals or CHECK CONDITION, no allocation")
def edtl_max(env):
    s = env.session(**SOLICITED)
    with bounded(env):
        t = s.run(scsi.read10(0, 1), read=1, edtl=0xFFFFFFFF, lun=env.lun0)
        assert t.status == 2 or (t.under and t.residual == 0xFFFFFFFF - BLK), t.residual
        t = s.start(scsi.write10(64, 1), write=scsi.pattern(BLK, 22), edtl=0xFFFFFFFF,
                    lun=env.lun0)
        s.wait(t)
        assert t.status == 2 or (t.under and t.residual == 0xFFFFFFFF - BLK), t.residual
        assert sum(r.desired for r in t.r2ts) <= BLK, "asks for data that the CDB does not want"
    env.serves()


@row("H-23", "SBC-3", "READ(16) of 2^32-1 blocks, LBA 2^64-1: 5/21/00 or 5/24/00")
def absurd_reads(env):
    s = env.session()
    for lba, n in ((0, 0xFFFFFFFF), (2**64 - 1, 1), (2**64 - 1, 0xFFFFFFFF), (2**63, 8),
                   (1, 0xFFFFFFFE)):
        with bounded(env):
            t = s.run(scsi.read16(lba, n), read=1, edtl=0x10000, lun=env.lun0)
        x = t.check(5)
        assert (x.asc, x.ascq) in ((0x21, 0), (0x24, 0)), "%02x/%02x" % (x.asc, x.ascq)
        assert not t.datains
    t = s.run(scsi.write16(2**64 - 1, 2), write=bytes(2 * BLK), lun=env.lun0)
    t.check(5, 0x21)


@row("H-24", "7.14", "50 abandoned writes: nothing leaks", 40)
def abandoned_writes(env):
    env.serves()
    before = env.d.fds()
    with bounded(env):
        for i in range(50):
            s = env.session(settle=False, **SOLICITED)
            s.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0)
            t, r2t, data = write_waiting(s, env.lun0, 128, 64)
            s.send(s.data_out_pdu(t, 0, data[:4096], r2t.ttt, 0, final=False))
            s.conn.reset() if i % 2 else s.conn.close()
    env.serves()
    time.sleep(0.2)
    assert env.d.fds() <= before + 1, "%d descriptors, %d before" % (env.d.fds(), before)


@row("H-25", "7.14", "resets in the middle of large reads: nothing leaks", 40)
def reset_in_reads(env):
    env.serves()
    before = env.d.fds()
    with bounded(env):
        for i in range(25):
            s = env.session(rcvbuf=4096)
            for k in range(6):
                s.start(scsi.read10(0, 2048), read=MIB, lun=env.lun0)
            swallow(lambda: s.conn._read(5000, time.monotonic() + 1))
            s.conn.reset()
    env.serves()
    time.sleep(0.2)
    assert env.d.fds() <= before + 1, "%d descriptors, %d before" % (env.d.fds(), before)


@row("H-26 H-27", "6.1", "empty keys, runs of NUL, repeats, absurd numbers: Reject or class 02, or "
     "an answer in range")
def strange_text(env, case):
    if case == "H-26":
        for junk in (b"=x\0", b"\0\0\0\0", b"=\0=\0=\0", b"A=\0", b"A\0", b"A=b",
                     b"MaxBurstLength=8192\0" * 5, b"HeaderDigest=\0", b"TargetName=\0",
                     b"A=" + b"=" * 300 + b"\0"):
            s = env.new()
            s.send(s.login_pdu(text(*s.first_pairs()) + junk, csg=1, t=False))
            r = swallow(lambda: s.conn.recv())
            if r is not None:
                assert r.opcode == P.LOGIN_RSP and r.status_class in (0, 2), repr(r)
                if r.status_class == 0:
                    parse_text(r.data)
    else:
        for v in ("99999999999999999999999", "-1", "+512", "512~1024", "0x", "0xfffffffffffffffff",
                  "", " 512", "512 ", "5 12", "1e3", "0b01"):
            r, got = offer(env, ("MaxBurstLength", v))
            if got is not None:
                a = got.get("MaxBurstLength")
                assert a == "Reject" or (a and a.isdigit() and 512 <= int(a) < 2**24), (v, a)
    env.serves()


@row("H-28", "App. C", "SendTargets with a 7000-byte name")
def long_send_targets(env):
    s = env.discovery()
    s.send(s.text_pdu(b"SendTargets=" + b"n" * 7000 + b"\0"))
    try:
        r = s.recv(3)
        assert r.opcode in (P.TEXT_RSP, P.REJECT) and b"TargetName" not in r.data, repr(r)
    except Closed:
        pass
    env.serves()


@row("H-29", "SAM-5 4.7", "LUN fields of other methods and depths are not taken for the unit")
def strange_luns(env):
    s = env.session()
    for field in (0xFFFFFFFFFFFFFFFF, 0xC101000000000000, 0x40FF000000000000, 0x0000000000000001,
                  0x0000000100000000, 0x0100000000000000, 0x8000000000000000, 0x3F00000000000000,
                  0xD200000000000000, 0xE300000000000000):
        t = s.run(scsi.read10(0, 1), read=BLK, lun_field=field)
        assert t.status == 2, "LUN %016x serves a READ" % field
        x = t.check(5)
        assert x.asc in (0x25, 0x20), "LUN %016x: %02x/%02x" % (field, x.asc, x.ascq)
        t = s.run(scsi.inquiry(36), read=36, lun_field=field)
        assert t.status == 2 or t.data[0] >> 5 != 0 or (field >> 56 == 0xC1 and
                                                       t.data[0] & 0x1F == 0x1E), \
            "LUN %016x: peripheral byte %02x" % (field, t.data[0])


@row("H-32 H-33", "7.5", "a client that never reads: 3000 pings of 4 KiB, large reads: memory "
     "bounded, others served", 60)
def never_reads(env, case):
    s = env.session(rcvbuf=2048)
    s.conn.timeout = 2
    with bounded(env):
        try:
            if case == "H-32":
                ping = s.nop_pdu(bytes(4096)).encode(s.conn.hdigest, s.conn.ddigest)
                s.conn.sock.settimeout(1)
                for _ in range(3000):
                    s.conn.sock.sendall(ping)
            else:
                for i in range(min(100, s.win.room())):
                    s.start(scsi.read10(0, 2048), read=MIB, lun=env.lun0)
        except (OSError, Closed):
            pass
        t0 = time.monotonic()
        env.serves()
        assert time.monotonic() - t0 < 5, "others wait"
        time.sleep(0.3)
    s.conn.reset()
    env.serves()


@row("H-34", "11.2.2.3", "an extended-CDB AHS with lying lengths")
def lying_ahs(env):
    for length, total in ((0, 2), (1, 2), (0xFFFF, 2), (100, 2), (5, 0), (3, 1), (250, 64)):
        s = env.session()
        body = length.to_bytes(2, "big") + b"\x01\x00"
        body += bytes(max(0, total * 4 - len(body)))
        p = P.Pdu(P.SCSI_CMD, cdb=b"\x7f" + bytes(6) + b"\xf0" + bytes(8), flags=0x81, itt=s.itt(),
                  lun=P.lun_bytes(env.lun0), cmd_sn=s.number(), ahs=body[:total * 4])
        s.send(p)
        try:
            r = s.recv(1)
            assert r.opcode == P.REJECT or (r.opcode == P.SCSI_RSP and r.status != 0), repr(r)
        except Closed:
            pass
        except Silent:
            raise AssertionError("no reaction to length %d" % length)
    env.serves()


@row("H-35", "11.7", "Data-Out for a read command")
def data_out_for_read(env):
    s = env.session(rcvbuf=4096)
    t = s.start(scsi.read10(0, 2048), read=MIB, lun=env.lun0)
    s.send(P.Pdu(P.DATA_OUT, flags=0x80, itt=t.itt, ttt=P.NONE, data=bytes(512)))
    s.send(P.Pdu(P.DATA_OUT, flags=0x80, itt=t.itt, ttt=0x1234, data=bytes(512)))
    for _ in range(3):
        out = s.outcome(t, 3)
        assert out[0] in ("status", "reject", "close"), repr(out)
        if out[0] != "reject":
            break
    env.serves()


@row("H-36", "11.13.5", "100 quick logins and logouts", 60)
def quick_logins(env):
    env.serves()
    before = env.d.fds()
    with bounded(env):
        for _ in range(100):
            env.session(settle=False).logout()
    time.sleep(0.1)
    assert env.d.fds() <= before + 1


@row("H-37", "11.13.5", "64 sessions at once: served, or class 03 when full", 60)
def many_sessions(env):
    ss = []
    for _ in range(64):
        try:
            ss.append(env.session(settle=False))
        except LoginFailed as e:
            assert e.status >> 8 == 3, "%04x" % e.status
            break
    assert len(ss) >= 16, "only %d sessions" % len(ss)
    for s in ss:
        s.run_ua(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    assert len({s.tsih for s in ss}) == len(ss), "a TSIH twice at a time"


@row("H-38", "6.3", "1000 empty Login Requests: answered, or refused after a limit")
def thousand_empty_logins(env):
    s = env.new()
    s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
    for _ in range(1000):
        try:
            s.send(s.login_pdu(csg=1, t=False))
            r = s.conn.recv()
        except Closed:
            break
        assert r.opcode == P.LOGIN_RSP and r.status_class in (0, 2, 3), repr(r)
        if r.status_class:
            break
    env.serves()


@row("H-42 H-43", "11.1", "a PDU in one-byte segments; twenty PDUs in one segment")
def segments(env, case):
    s = env.session()
    if case == "H-42":
        for p in (s.nop_pdu(b"one byte at a time"), s.text_pdu(text(("X-com.example.a", "1")))):
            for b in p.encode(s.conn.hdigest, s.conn.ddigest):
                s.conn.send_bytes(bytes((b,)))
            if not p.immediate:
                s.win.note(p.cmd_sn)
            r = s.recv()
            assert r.itt == p.itt and r.opcode in (P.NOP_IN, P.TEXT_RSP), repr(r)
        return
    ps = [s.nop_pdu(scsi.pattern(i * 13, i), immediate=i % 2 == 0) for i in range(20)]
    for p in ps:
        if not p.immediate:
            s.win.note(p.cmd_sn)
    s.conn.send_bytes(b"".join(p.encode(s.conn.hdigest, s.conn.ddigest) for p in ps))
    for p in ps:
        r = s.expect(P.NOP_IN, p.itt)
        assert r.data == p.data


@row("H-44", "4.2.2.2", "ExpStatSN far ahead of anything sent: no harm")
def exp_stat_sn_ahead(env):
    s = env.session()
    s.ack_stat_sn = (s.exp_stat_sn + 0x10000) & 0xFFFFFFFF
    try:
        s.nop(b"ahead")
        s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0)
    except Closed:
        pass
    env.serves()


@row("BR-29 BR-30", "7.14", "connections killed with many operations outstanding, again and again: "
     "no crash, no leak", 60)
def kill_storm(env, case):
    env.serves()
    before = env.d.fds()
    with bounded(env, 2 * GROWTH):
        for turn in range(3):
            ss = []
            for _ in range(16):
                s = env.session(settle=False, rcvbuf=8192, HeaderDigest="None", DataDigest="None")
                s.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0)
                n = min(32, s.win.room())
                for i in range(n):
                    if (i + (case == "BR-30")) % 2:
                        s.start(scsi.read10(i * 128, 128), read=128 * BLK, lun=env.lun0)
                    else:
                        s.start(scsi.write10(8192 + i * 128, 128), write=bytes(128 * BLK),
                                lun=env.lun0, auto=False)
                ss.append(s)
            for i, s in enumerate(ss):
                s.conn.reset() if i % 2 else s.conn.close()
    env.serves()
    deadline = time.monotonic() + 5
    while env.d.fds() > before + 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert env.d.fds() <= before + 1


@row("BR-31 BR-32", "7.14", "1..47 bytes then FIN, AHS length without AHS, oversize data, "
     "connection loss in each state of receiving")
def receive_states(env, case):
    for n in range(1, 48, 1 if case == "BR-31" else 5):
        s = raw(env)
        s.sendall(b"\x43\x87" + bytes(46)[:max(0, n - 2)] if n > 1 else b"\x43")
        s.close()
    huge = 0xFFFFFF
    for ahs, dsl, extra in ((255, 0, 0), (0, huge, 0), (0, huge, 9000), (255, huge, 500),
                            (0, 8193, 8193), (0, 10, 3)):
        s = raw(env)
        h = bytearray(48)
        h[0], h[1], h[4] = 0x43, 0x87, ahs
        h[5:8] = dsl.to_bytes(3, "big")
        swallow(lambda: s.sendall(bytes(h) + b"A" * extra))
        s.close()
    if case == "BR-32":
        s0 = env.session(settle=False)
        s0.conn.close()
        whole = None
        for cut in (1, 47, 48, 50, 52, 51, 60, 563):
            s = env.session(settle=False, HeaderDigest="CRC32C", DataDigest="CRC32C")
            whole = s.nop_pdu(bytes(510)).encode(True, True)
            s.conn.send_bytes(whole[:cut])
            s.conn.reset()
    env.serves()
