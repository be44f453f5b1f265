# SPDX-License-Identifier: BSD-2-Clause
"""What happens beside the load: one function an action, `@action(weight)` puts it into the table.

An action gets the phase (see run) and a random source of its own; it returns None, or a string to
be printed.  Any exception but Skip fails the phase.  Those that concern a client's session hand a
function to the client's thread (Client.ask) and do not wait."""

import json
import os
import signal
import socket
import struct
import time

from client import DEADLINE, MIB, Op, Step, open_session
from conf_tool import Refused, apply, dump, reload
from lib import iscsi, scsi
from lib import pdu as P
from lib.iscsi import Closed, LoginFailed, Silent, text

ABORT, ABORT_SET, CLEAR_SET, LU_RESET, WARM = 1, 2, 4, 5, 6
ACTIONS = []
ADM_S = 100  # for one call of evtgtadm


class Skip(Exception):
    pass


def action(weight):
    def add(fn):
        ACTIONS.append((fn.__name__, weight, fn))
        return fn
    return add


def adm(phase, *args, check=True):
    return phase.d.iscsi(*map(str, args), check=check, timeout=ADM_S)


def answer(phase, *args):
    return json.loads(adm(phase, "--json", *args))["data"]


def closing(fn):
    """For clients: the target may close the connection from now on."""
    def run(c):
        c.may_close = time.monotonic() + DEADLINE
        try:
            fn(c)
        except Closed:
            c.count["closed"] += 1
            c.connect()
    return run


# ---- task management ---------------------------------------------------------------------------

def _abort_task(c):
    steps = [st for op in c.ops for st in op.steps if st.outcome is None and st.task]
    if not steps:
        return
    st = c.rng.choice(steps)
    sn = st.task.pdu.cmd_sn
    r = c.tmf(ABORT, rtt=st.task.itt, ref_cmd_sn=sn)
    assert r in (0, 1) or time.monotonic() < c.may_vanish, \
        "ABORT TASK: response %d for %r" % (r, st)
    if r == 1 and st.outcome is None and time.monotonic() > c.may_vanish:
        # Neither there nor answered: a reset by another session, and the next command must tell.
        c.send(Op([Step("tur-reset", cdb=scsi.TEST_UNIT_READY)]))
    c.lose("abort", lambda o: o is st)
    c.reap()


def _all_of(function):
    def run(c):
        last = c.s.win.cmd_sn
        r = c.tmf(function)
        gone = r == 2 and time.monotonic() < c.may_vanish
        assert r == 0 or gone, "task management function %d: response %d" % (function, r)
        c.lose("abort", lambda o: iscsi.sn_lt(o.task.pdu.cmd_sn, last))
        c.reap()
    return run


@action(6)
def abort_task(phase, rng):
    phase.client(rng).ask(_abort_task)


@action(3)
def abort_task_set(phase, rng):
    phase.client(rng).ask(_all_of(ABORT_SET))


@action(2)
def clear_task_set(phase, rng):
    phase.client(rng).ask(_all_of(CLEAR_SET))


@action(3)
def logical_unit_reset(phase, rng):
    phase.client(rng).ask(_all_of(LU_RESET))


# ---- the ends of connections and sessions ------------------------------------------------------

@action(3)
def tcp_reset(phase, rng):
    def run(c):
        c.s.conn.reset()
        c.connect(drop=False)
    phase.client(rng).ask(run)


@action(2)
def tcp_close(phase, rng):
    def run(c):
        c.s.conn.close()
        c.connect(drop=False)
    phase.client(rng).ask(run)


@action(2)
def close_inside_a_pdu(phase, rng):
    def run(c):
        p = P.Pdu(P.SCSI_CMD, flags=0xA1, lun=P.lun_bytes(c.lun), itt=c.s.itt(), edtl=65536,
                  cdb=scsi.write10(c.region.first, 128), data=bytes(4096),
                  cmd_sn=c.s.win.cmd_sn)
        try:
            c.s.conn.send_bytes(p.encode(c.s.conn.hdigest, False)[:c.rng.randrange(1, 4000)])
        except Closed:
            pass
        c.s.conn.reset() if c.rng.random() < 0.5 else c.s.conn.close()
        c.connect(drop=False)
    phase.client(rng).ask(run)


@action(3)
def session_reinstatement(phase, rng):
    def run(c):
        old = c.connect(drop=False)
        try:
            while True:  # answers that were on their way
                old.conn.recv(DEADLINE)
        except Closed:
            pass
        old.conn.close()
    phase.client(rng).ask(run)


@action(2)
def connection_reinstatement(phase, rng):
    """Same TSIH and CID: the session goes on, the commands of the old connection are gone."""
    def run(c):
        c.nop()  # all that was sent has come: no number is missing afterwards
        old = c.s
        try:
            new = open_session(c.addr, c.target, login=False, initiator=c.initiator, isid=c.isid,
                               tsih=old.tsih, cid=old.cid, cmd_sn=old.win.cmd_sn,
                               window=old.win, **dict(old.keys))
            new.login()
        except LoginFailed as e:
            new.conn.close()
            assert e.status in (0x0202, 0x0203, 0x0301) and phase.may_refuse(), \
                "connection reinstatement refused: %04x" % e.status
            return
        c.s = new
        new.next_itt = old.next_itt + 1
        for k in ("InitialR2T", "ImmediateData", "MaxBurstLength", "FirstBurstLength",
                  "MaxOutstandingR2T"):  # those of the session stay
            new.params[k] = old.params[k]
        c.lose("connection")
        c.others.clear()
        old.tasks.clear()
        old.conn.close()
        c.reap()
        c.is_ready(new)
        c.count["reinstated"] += 1
    phase.client(rng).ask(closing(run))


@action(3)
def logout(phase, rng):
    """With commands under way, or after the last."""
    def run(c):
        while c.rng.random() < 0.5 and c.ops:
            c.pump(0.5)
            c.reap()
        p = c.s.logout_pdu(c.rng.choice((0, 1)))
        r = c.answer(p)
        assert r.opcode == P.LOGOUT_RSP and r.response == 0, repr(r)
        c.connect()
    phase.client(rng).ask(closing(run))


@action(2)
def session_deleted_by_admin(phase, rng):
    c = phase.client(rng)
    c.may_close = time.monotonic() + DEADLINE
    for s in answer(phase, "--op", "show", "--mode", "session", "--tid", 1)["sessions"]:
        if s.get("initiator") == c.initiator:
            adm(phase, "--op", "delete", "--mode", "session", "--tid", 1, "--sid", s["sid"],
                check=False)


# ---- other requests ----------------------------------------------------------------------------

@action(3)
def ping(phase, rng):
    phase.client(rng).ask(lambda c: c.nop())


@action(3)
def discovery(phase, rng):
    with open_session(phase.d.addr, None, discovery=True) as s:
        got = s.text(text(SendTargets="All"))
        names = [v for k, v in got if k == "TargetName"]
        assert phase.may_refuse() or phase.target in names, got
        s.logout()


@action(3)
def text_exchange(phase, rng):
    s = side_session(phase)
    if s is None:
        return
    with s:
        for _ in range(rng.randrange(1, 4)):
            name = rng.choice(("", phase.target, phase.side))
            got = s.text(text(SendTargets=name))
            assert got or name == phase.target or phase.may_refuse(), \
                "no answer to SendTargets=" + name
            assert s.text(text(**{"X-com.example.no": "1"})) == [
                ("X-com.example.no", "NotUnderstood")]
        s.logout()


def side_session(phase, target=None, name="side", lun=None, **kw):
    """A session of an action's own; None while the target refuses."""
    try:
        s = open_session(phase.d.addr, target or phase.side,
                         initiator="iqn.2026-11.com.example:" + name, **kw)
    except LoginFailed as e:
        assert phase.may_refuse() and e.status >> 8 in (2, 3), "login refused: %04x" % e.status
        return None
    if lun is not None:
        t = s.run_ua(scsi.TEST_UNIT_READY, lun=lun)
        if t.status == 2 and t.where() == "(5/25/00)" and phase.may_vanish():
            s.conn.close()
            return None
        t.good()
    return s


def ask(s, p):
    """A request that is answered while commands are: gives the answer."""
    s.send(p)
    while True:
        r = s.pump()
        if r is not None:
            assert r.itt == p.itt, "unexpected %r" % r
            return r


# ---- hostile peers -----------------------------------------------------------------------------

def _raw(phase, data, wait=0.05):
    with socket.create_connection(phase.d.addr, 30) as k:
        k.settimeout(wait)
        try:
            k.sendall(data)
            k.recv(65536)
        except OSError:
            pass
        k.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@action(3)
def garbage_before_login(phase, rng):
    for _ in range(rng.randrange(1, 12)):
        _raw(phase, rng.randbytes(rng.choice((1, 47, 48, 49, 500, 9000))))


@action(3)
def wild_login(phase, rng):
    """Login requests with random fields and keys."""
    for _ in range(rng.randrange(1, 8)):
        pairs = [("InitiatorName", "iqn.2026-11.com.example:wild"), ("TargetName", phase.target),
                 (rng.choice(list(iscsi.RFC_DEFAULTS)), rng.choice(("", "-1", "Yes", "0x", "9" * 40,
                                                                    "None,CRC32C", "1~2")))]
        rng.shuffle(pairs)
        p = P.Pdu(P.LOGIN_REQ, immediate=rng.random() < 0.9, data=text(*pairs),
                  isid=rng.randbytes(6), tsih=rng.choice((0, 0, 0, 1, 77)),
                  flags=rng.choice((0x87, 0x04, 0x81, 0x00, 0x44, rng.randrange(256))),
                  itt=rng.randrange(2**32), cmd_sn=rng.randrange(2**32))
        if rng.random() < 0.2:
            p.raw_lengths, p.dsl = True, rng.choice((2**24 - 1, 5, 70000))
        _raw(phase, p.encode(), 0.2)


@action(4)
def wild_pdus(phase, rng):
    """Random PDUs in full feature phase, some nearly right.  They touch nobody's blocks: the LUN
    is that of the side target and commands only read."""
    s = side_session(phase, name="wild")
    if s is None:
        return
    s.conn.check = False
    s.conn.timeout = 30
    try:
        for _ in range(rng.randrange(1, 40)):
            op = rng.choice((0, 1, 1, 2, 4, 5, 5, 6, 0x10, rng.randrange(64)))
            p = P.Pdu(op, immediate=rng.random() < 0.5, data=rng.randbytes(
                rng.choice((0, 0, 3, 48, 1000, 8192))), flags=rng.choice((0x80, 0xC1, 0xA1,
                                                                         rng.randrange(256))),
                      lun=P.lun_bytes(rng.choice((1, 1, 0, 7, 300))),
                      itt=rng.choice((rng.randrange(2**32), 0x20000001)),
                      ttt=rng.choice((P.NONE, rng.randrange(2**32))), cmd_sn=s.win.cmd_sn)
            if op == P.SCSI_CMD:
                p.bhs[32:48] = rng.choice((scsi.read16(0, rng.choice((1, 8, 2**32 - 1))),
                                           scsi.inquiry().ljust(16, b"\0"),
                                           bytes((0x7F,)) + rng.randbytes(15)))
                p.edtl = rng.choice((0, 512, 4096, 2**32 - 1))
                s.win.cmd_sn = iscsi.sn_add(s.win.cmd_sn)
            if rng.random() < 0.05:
                p.raw_lengths, p.dsl = True, rng.choice((2**24 - 1, 8193))
            if rng.random() < 0.05:
                p.ahs = rng.randbytes(4 * rng.randrange(1, 255))
            s.conn.send(p)
            try:
                s.conn.recv(0.01)
            except (Silent, AssertionError):
                pass
    except (Closed, OSError, Silent):
        pass
    if rng.random() < 0.5:
        s.conn.reset()
    s.conn.close()


@action(2)
def reads_nobody_takes(phase, rng):
    """Asks for much and does not receive; then resets."""
    s = side_session(phase, phase.target, "deaf", lun=phase.load_luns[0])
    if s is None:
        return
    try:
        for _ in range(min(s.win.room(), 24)):
            s.start(scsi.read10(0, 4096), read=2 * MIB, lun=phase.load_luns[0])
        time.sleep(rng.random() * 0.3)
    except (Closed, Silent, OSError):
        pass
    s.conn.reset()


@action(2)
def half_open_logins(phase, rng):
    conns = []
    for _ in range(rng.randrange(2, 12)):
        conns.append(socket.create_connection(phase.d.addr, 30))
        if rng.random() < 0.5:
            conns[-1].sendall(bytes((0x43, 0x04)) + bytes(rng.randrange(46)))
    time.sleep(0.1)
    for k in conns:
        k.close()


# ---- what the administrator does ---------------------------------------------------------------

def _side_io(phase, s, lun, blocks, rng, bs=512):
    """A written and read block at the end of a LUN."""
    lba, data = blocks - 1, rng.randbytes(bs)
    s.run_ua(scsi.write16(lba, 1), write=data, lun=lun).good()
    t = s.run_ua(scsi.read16(lba, 1), read=bs, lun=lun).good()
    assert bytes(t.data) == data, "LUN %d: block %d reads back differently" % (lun, lba)


def _blocks(s, lun):
    return int.from_bytes(s.run_ua(scsi.read_capacity16(), read=32, lun=lun).good().data[:8],
                          "big") + 1


@action(4)
def lun_added_grown_removed(phase, rng):
    """A LUN comes, serves, grows, serves, and goes, the last time with commands under way."""
    n = phase.spare_lun(rng)
    path = phase.file(MIB)
    adm(phase, "--op", "new", "--mode", "lu", "--tid", 2, "--lun", n, "-b", path, *rng.choice((
        (), ("--bsoflags", "direct"), ("--params", "thin_provisioning=1"))))
    s = side_session(phase, name="grow")
    try:
        if s is not None:
            s.run_ua(scsi.TEST_UNIT_READY, lun=n).good()
            _side_io(phase, s, n, _blocks(s, n), rng)
            if rng.random() < 0.7:
                os.truncate(path, 3 * MIB)
                end = time.monotonic() + DEADLINE
                while _blocks(s, n) != 3 * MIB // 512:
                    assert time.monotonic() < end, "LUN %d does not grow" % n
                    time.sleep(0.2)
                _side_io(phase, s, n, 3 * MIB // 512, rng)
            for i in range(rng.choice((0, 16))):
                s.start(scsi.write10(i * 64, 64), write=bytes(32768), lun=n)
    finally:
        adm(phase, "--op", "delete", "--mode", "lu", "--tid", 2, "--lun", n, "--force")
        os.unlink(path)
        if s is not None:
            s.conn.close()


@action(3)
def lun_under_load_grows(phase, rng):
    lun = phase.luns[rng.randrange(2)]
    if lun.kind == "block":
        raise Skip()
    with phase.lock:
        os.truncate(lun.where, os.path.getsize(lun.where) + MIB)


@action(2)
def lun_under_load_removed_and_back(phase, rng):
    """Its commands are answered as failed, and none may land after the new unit's."""
    lun = phase.luns[rng.randrange(2)]
    with phase.side_lock:
        for c in phase.clients:
            if c.lun == lun.lun:
                c.may_vanish = time.monotonic() + DEADLINE
        phase.vanishing = time.monotonic() + DEADLINE
        adm(phase, "--op", "delete", "--mode", "lu", "--tid", 1, "--lun", lun.lun, "--force")
        args = ["--op", "new", "--mode", "lu", "--tid", 1, "--lun", lun.lun, "-b", lun.where]
        args += ["--params", ",".join(opt.replace(" ", "=", 1) for opt in lun.opts)]
        if lun.kind == "block":
            args += ["--bstype", "blockio"]
        # Refused while the old unit's last writes are with the kernel.
        end = time.monotonic() + DEADLINE
        while (out := adm(phase, *args, check=False)).returncode:
            assert time.monotonic() < end, "LUN %d does not come back: %s" % (lun.lun, out.stderr)
            time.sleep(0.05)


@action(1)
def daemon_restarted(phase, rng):
    """It ends or is killed; what was answered is there afterwards."""
    if phase.picks["generator"] == "yes" or not phase.alone():
        raise Skip()
    try:
        with phase.restless():
            if rng.random() < 0.5:
                phase.d.terminate()
                status = phase.d.wait(DEADLINE)
                assert status == 0, "exit status %d: %s" % (status, phase.d.tail())
            else:
                phase.d.kill()
            phase.d.start()
            phase.stuck_left = phase.stuck_max
    finally:
        phase.together()


@action(2)
def lun_offline_and_back(phase, rng):
    with phase.side_lock:
        s = side_session(phase, name="online", lun=1)
        if s is None:
            return
        adm(phase, "--op", "update", "--mode", "lu", "--tid", 2, "--lun", 1, "--params",
            "online=0")
        try:
            assert s.run_ua(scsi.TEST_UNIT_READY, lun=1).status == 2
        finally:
            adm(phase, "--op", "update", "--mode", "lu", "--tid", 2, "--lun", 1, "--params",
                "online=1")
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        s.conn.close()


@action(2)
def target_made_and_deleted(phase, rng):
    tid = phase.spare_tid(rng)
    name = "iqn.2026-11.com.example:extra%d" % tid
    path = phase.file(MIB)
    adm(phase, "--op", "new", "--mode", "target", "--tid", tid, "-T", name)
    try:
        adm(phase, "--op", "new", "--mode", "lu", "--tid", tid, "--lun", 1, "-b", path)
        adm(phase, "--op", "bind", "--mode", "target", "--tid", tid, "-I", "ALL")
        s = side_session(phase, name, "extra", lun=1)
        if s is not None:
            _side_io(phase, s, 1, MIB // 512, rng)
            if rng.random() < 0.5:
                s.logout()
    finally:
        adm(phase, "--op", "delete", "--mode", "target", "--tid", tid, "--force")
        os.unlink(path)
    if s is not None:
        s.conn.close()


@action(2)
def target_offline_and_ready(phase, rng):
    with phase.restless():
        adm(phase, "--op", "update", "--mode", "target", "--tid", 1, "-n", "state", "-v",
            "offline")
        time.sleep(rng.random() * 0.2)
        adm(phase, "--op", "update", "--mode", "target", "--tid", 1, "-n", "state", "-v", "ready")


@action(1)
def system_offline_and_ready(phase, rng):
    if phase.picks["generator"] == "yes":
        raise Skip()  # it would lose its sessions
    with phase.restless():
        adm(phase, "--op", "update", "--mode", "sys", "-n", "State", "-v", "offline")
        time.sleep(rng.random() * 0.2)
        adm(phase, "--op", "update", "--mode", "sys", "-n", "State", "-v", "ready")


@action(2)
def unbind_and_bind(phase, rng):
    with phase.restless():
        adm(phase, "--op", "unbind", "--mode", "target", "--tid", 1, "-I", "ALL")
        time.sleep(rng.random() * 0.1)
        adm(phase, "--op", "bind", "--mode", "target", "--tid", 1, "-I", "ALL")


@action(2)
def target_options(phase, rng):
    name, values = rng.choice((("MaxBurstLength", (65536, 262144)), ("MaxOutstandingR2T", (1, 8)),
                               ("nop_interval", (0, 3)), ("InitialR2T", ("Yes", "No")),
                               ("MaxQueueCmd", (32, 128))))
    adm(phase, "--op", "update", "--mode", "target", "--tid", 2, "-n", name, "-v",
        rng.choice(values))


@action(2)
def portal_added_and_removed(phase, rng):
    addr = "127.0.0.%d" % rng.randrange(2, 200)
    portal = "portal=%s:%d" % (addr, phase.d.port)
    adm(phase, "--op", "new", "--mode", "portal", "--params", portal)
    try:
        with iscsi.Session((addr, phase.d.port), None, discovery=True, timeout=DEADLINE) as s:
            s.login()
            assert phase.may_refuse() or s.text(text(SendTargets="All"))
    finally:
        adm(phase, "--op", "delete", "--mode", "portal", "--params", portal)


@action(3)
def admin_looks(phase, rng):
    adm(phase, *rng.choice((("--op", "show", "--mode", "target"),
                            ("--op", "show", "--mode", "session", "--tid", 1),
                            ("--op", "stat", "--mode", "target", "--tid", 1),
                            ("--op", "stat", "--mode", "system"),
                            ("--op", "show", "--mode", "portal"))))


@action(2)
def configuration_reloaded(phase, rng):
    """By signal or by a verb; nobody under load notices.  What other actions made is not in the
    file and goes: so none of them runs meanwhile."""
    if not phase.alone():
        raise Skip()
    d, extra = phase.d, "iqn.2026-11.com.example:reloaded"
    with open(d.conf) as f:
        text = f.read()
    how = rng.choice(("same", "changed", "changed", "broken"))
    more = {"same": "", "changed": "<target %s>\ninitiator-address ALL\nalias %d\n</target>\n" % (
        extra, rng.randrange(100)), "broken": "<target %s>\nno-such-directive\n" % extra}[how]
    try:
        with open(d.conf, "w") as f:
            f.write(text + more)
        before = dump(d, secrets=True)
        try:
            if rng.random() < 0.5:
                os.kill(d.proc.pid, signal.SIGHUP)
                wait_reloaded(d, before, how)
            else:
                reload(d)
            assert how != "broken", "a broken configuration was taken"
        except Refused as e:
            # a unit that came back by hand may differ from the file's, and is in use
            assert e.code == "target-active" if how != "broken" else e.code == "config", e
            assert dump(d, secrets=True) == before, "refused and changed: %s" % e
    finally:
        with open(d.conf, "w") as f:
            f.write(text)
        phase.together()


def wait_reloaded(d, before, how):
    """The signal comes when it comes; what it does is as of the verb, which then finds it done."""
    time.sleep(0.5)
    if how == "broken":
        assert dump(d, secrets=True) == before, "changed by a broken configuration"
        raise Refused({"code": "config", "message": ""}, None)


@action(2)
def target_applied(phase, rng):
    """A target with all it has comes, is exchanged and goes by `config apply`."""
    tid = phase.spare_tid(rng)
    name = "iqn.2026-11.com.example:applied%d" % tid
    paths = [phase.file(MIB), phase.file(MIB)]
    text = "<target %s>\ncontroller_tid %d\ninitiator-address ALL\n%s</target>\n"
    unit = "<backing-store %s>\nlun 1\n</backing-store>\n"
    s = None
    try:
        apply(phase.d, text % (name, tid, unit % paths[0]), add=True, targets=[name])
        s = side_session(phase, name, "applied", lun=1)
        if s is not None:
            _side_io(phase, s, 1, MIB // 512, rng)
        other = text % (name, tid, unit % paths[1] + rng.choice(("", "alias x\n")))
        if s is not None:
            try:
                apply(phase.d, other, targets=[name])
                raise AssertionError("a unit was taken from under a session")
            except Refused as e:
                assert e.code == "target-active" or phase.may_refuse(), e
        apply(phase.d, other, targets=[name], force=True)
        if s is not None and not phase.may_refuse():
            s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
            _side_io(phase, s, 1, MIB // 512, rng)
    except Closed:
        assert phase.may_refuse(), "the session was closed"
    finally:
        apply(phase.d, "", targets=[name], force=True)
        for p in paths:
            os.unlink(p)
        if s is not None:
            s.conn.close()


# ---- a LUN that hangs --------------------------------------------------------------------------

@action(3)
def commands_that_hang(phase, rng):
    """Left behind, aborted, reset, logged out of: it ends at once and nobody else notices."""
    stuck = phase.stuck_left > 0 and rng.random() < 0.3
    lun = phase.stuck_lun if stuck else phase.hung_lun
    s = side_session(phase, phase.target, "hang%d" % rng.randrange(3), lun=lun)
    if s is None:
        return
    try:
        n = rng.randrange(1, 9)
        phase.stuck_left -= n if stuck else 0
        tasks = [s.start(scsi.write10(i * 8, 8), write=bytes(4096), lun=lun) if i & 1 else
                 s.start(scsi.read10(i * 8, 8), read=4096, lun=lun) for i in range(n)]
        how = rng.choice(("abort", "set", "reset", "logout", "rst", "close"))
        r = ask(s, s.nop_pdu(b"alive"))
        assert r.data == b"alive", repr(r)
        if how == "abort" and not stuck:
            r = ask(s, s.tmf_pdu(ABORT, lun=lun, rtt=tasks[0].itt,
                                 ref_cmd_sn=tasks[0].pdu.cmd_sn)).response
            # 1: reset by another, or answered with a unit attention
            assert r in (0, 1), "ABORT TASK: response %d" % r
        elif how in ("set", "reset") and not stuck:
            r = ask(s, s.tmf_pdu(ABORT_SET if how == "set" else LU_RESET, lun=lun)).response
            assert r == 0, "%s: response %d" % (how, r)
        if how == "rst":
            s.conn.reset()
        elif how != "close":
            assert ask(s, s.logout_pdu()).response == 0
    finally:
        s.conn.close()


@action(1)
def warm_reset(phase, rng):
    s = side_session(phase, name="warm")
    if s is None:
        return
    with s:
        r = s.tmf(WARM)
        assert r in (0, 5), "TARGET WARM RESET: response %d" % r
        s.logout()
