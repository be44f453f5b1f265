# SPDX-License-Identifier: BSD-2-Clause
"""A client: one thread, one session at a time, many commands at once on its own region of a LUN.

Everything that comes back is checked (see stamp.py).  Others disturb it by `ask(fn)`: the function
is called in the client's thread between two PDUs with commands under way.

An operation is one command, or several overlapping ones with the ORDERED attribute, whose order is
therefore defined.  Each command ends good, not executed (unit attention, BUSY), or lost (aborted,
reset, its connection gone)."""

import collections
import random
import select
import socket
import threading
import time
import traceback

from lib import iscsi, scsi
from lib import pdu as P
from lib.iscsi import Closed, LoginFailed, Session, Silent

KIB, MIB = 1 << 10, 1 << 20
DEADLINE = 150        # seconds for any answer: the machine may be slow, the daemon may not forget
SIMPLE, ORDERED, HEAD = 1, 2, 3
RETRY = (0x08, 0x28)  # BUSY, TASK SET FULL


class PumpConn(iscsi.Conn):
    """While it waits to send it takes in what comes, so that two full pipes do not block each
    other; and a close inside a PDU is a close."""

    def send_bytes(self, data):
        view = memoryview(data)
        end = time.monotonic() + self.timeout
        self.sock.settimeout(0)
        while view:
            r, w, _ = select.select([self.sock], [self.sock], [], max(0, end - time.monotonic()))
            if not r and not w:
                raise Silent("%d bytes cannot be sent" % len(view))
            try:
                if r:
                    more = self.sock.recv(262144)
                    if not more:
                        raise Closed("end of stream while sending")
                    self.buf += more
                if w:
                    view = view[self.sock.send(view[:262144]):]
            except (BlockingIOError, InterruptedError):
                continue
            except OSError as e:
                raise Closed(str(e))

    def _fill(self, n, deadline):
        while len(self.buf) < n:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Silent("%d of %d bytes came" % (len(self.buf), n))
            self.sock.settimeout(left)
            try:
                more = self.sock.recv(262144)
            except (socket.timeout, BlockingIOError):
                continue
            except OSError as e:
                raise Closed(str(e))
            if not more:
                raise Closed("end of stream")
            self.buf += more

    def _peek(self, n, deadline):
        self._fill(n, deadline)
        return bytes(self.buf[:n])

    def _read(self, n, deadline):
        # The head was here at once; its data may take as long as anything.
        self._fill(n, max(deadline, time.monotonic() + DEADLINE))
        out = bytes(self.buf[:n])
        del self.buf[:n]
        return out


class CalmSession(Session):
    """Async messages are no surprise, for administrators are about; and what another session's
    reset ended in silence shows as its unit attention."""

    def run(self, cdb, timeout=None, **kw):
        t, probe = self.start(cdb, **kw), None
        end = time.monotonic() + DEADLINE
        while not t.done:
            assert time.monotonic() < end, "no answer to %s" % cdb.hex()
            try:
                p = self.pump(3)
                assert p is None, "unexpected %r while commands run" % p
            except Silent:
                probe = probe or self.start(scsi.TEST_UNIT_READY, lun=kw.get("lun", 0))
            if probe and probe.done and not t.done:
                if probe.status == 2 and sense_of(probe)[:2] == (6, 0x29):
                    self.tasks.pop(t.itt)
                    return probe
                probe = None
        return t

    def recv(self, timeout=None):
        while True:
            p = super().recv(timeout)
            if p.opcode != P.ASYNC:
                return p
            assert p.event in (1, 2, 3), repr(p)


def open_session(addr, target, login=True, **kw):
    s = CalmSession(addr, target, timeout=DEADLINE, **kw)
    s.conn.__class__ = PumpConn
    s.conn.buf = bytearray()
    return s.login() if login else s


def sense_of(task):
    s = scsi.Sense(task.sense)
    return s.key, s.asc, s.ascq


class Step:
    """One command of an operation."""

    def __init__(self, kind, lba=0, n=0, code=0, data=None, cdb=None, read=0):
        self.kind, self.lba, self.n, self.code = kind, lba, n, code
        self.data, self.cdb, self.read = data, cdb, read
        self.task = self.outcome = None

    def __repr__(self):
        return "%s %d+%d code %d: %s" % (self.kind, self.lba, self.n, self.code, self.outcome)


class Op:
    def __init__(self, steps, attr=SIMPLE):
        self.steps, self.attr = steps, attr
        spans = [(s.lba, s.lba + s.n) for s in steps if s.n]
        self.span = (min(a for a, _ in spans), max(b for _, b in spans)) if spans else None
        self.since = time.monotonic()


class Client:
    def __init__(self, name, addr, target, lun, region, seed, keys=None, max_bytes=2 * MIB,
                 checks=True, thin=True):
        self.name, self.addr, self.target, self.lun, self.region = name, addr, target, lun, region
        self.rng = random.Random(seed)
        self.keys, self.max_bytes, self.checks, self.thin = keys, max_bytes, checks, thin
        self.initiator = "iqn.2026-11.com.example:soak-" + name
        self.isid = iscsi.fresh_isid()
        self.s = None
        self.ops, self.inbox = [], collections.deque()
        self.others = {}          # ITT of a NOP-Out or task management request: its answer
        self.stopping = threading.Event()
        self.may_close = 0        # monotonic time until which the target may close without a word
        self.may_vanish = 0       # the same for the LUN
        self.late = []            # lost tasks that the target may still answer
        self.failed = None
        self.trace = collections.deque(maxlen=60)
        self.depth = 1
        self.progress = time.monotonic()
        self.count = collections.Counter()
        self.thread = threading.Thread(target=self._main, name=name, daemon=True)

    # -- for other threads
    def start(self):
        self.thread.start()

    def ask(self, fn):
        if len(self.inbox) < 8:
            self.inbox.append(fn)

    def finish(self):
        self.stopping.set()
        self.thread.join(DEADLINE * 2)
        if self.thread.is_alive() and not self.failed:
            self.failed = "%s does not end; %r" % (self.name, self.ops[:3])

    # -- its own thread
    def _main(self):
        try:
            self.connect()
            while not self.stopping.is_set():
                self.turn()
            while self.ops:
                self.turn(more=False)
            self.s.logout()
        except Exception as e:
            if self.stopping.is_set() and isinstance(e, Closed):
                return
            self.failed = "%s: %s: %s\n%sbefore: %s" % (
                self.name, type(e).__name__, e, traceback.format_exc(limit=-4, chain=False),
                "; ".join(self.trace))
        finally:
            if self.s:
                self.s.conn.close()

    def turn(self, more=True):
        """Sends what there is room for, takes one PDU."""
        try:
            if more and self.inbox:
                self.inbox.popleft()(self)
            while more and len(self.ops) < self.depth and self.s.win.room() > 8:
                op = self.choose()
                if op is None:
                    break
                self.send(op)
            if self.ops or not more:
                self.pump(0.5)
            else:
                time.sleep(0.001)
            self.reap()
            self.probe()
        except Closed as e:
            if time.monotonic() > self.may_close:
                raise AssertionError("connection closed without a cause: %s" % e)
            self.count["closed"] += 1
            self.connect()

    def pump(self, timeout):
        try:
            p = self.s.pump(timeout)
        except Silent:
            return
        self.progress = time.monotonic()
        if p is None:
            return
        if p.itt in self.others:
            self.others[p.itt] = p
        else:
            raise AssertionError("unexpected %r" % p)

    def reap(self):
        self.reap_late()
        for op in list(self.ops):
            for st in op.steps:
                if st.outcome is None and st.task is not None and st.task.done:
                    self.judge(st)
            if all(st.outcome for st in op.steps):
                self.ops.remove(op)
                self.settle(op)
            elif time.monotonic() - op.since > DEADLINE:
                raise AssertionError("no answer in %d s: %r" % (DEADLINE, op.steps))

    def judge(self, st):
        """The outcome of an answered command."""
        t = st.task
        assert t.response in (None, 0), "response %02x for %r" % (t.response, st)
        if t.status == 0:
            assert st.kind not in ("verify-wrong", "caw-wrong", "tur-reset"), "GOOD for %r" % st
            want = st.read or (len(st.data) if st.data is not None else 0)
            assert not t.flags & 6, "residual %d for %r" % (t.residual, st)
            assert not st.read or len(t.data) == want, "%d of %d bytes" % (len(t.data), want)
            st.outcome = "good"
        elif t.status in RETRY:
            st.outcome = "not"
            self.count["busy"] += 1
        elif t.status == 2:
            key, asc, ascq = sense_of(t)
            gone = key == 5 and asc == 0x25 and time.monotonic() < self.may_vanish
            if key == 0xE and st.kind in ("verify-wrong", "caw-wrong"):
                st.outcome = "good"
            else:
                assert gone or key == 6 and asc in (0x28, 0x29, 0x2A, 0x3F), \
                    "sense %x/%02x/%02x for %r" % (key, asc, ascq, st)
                # Of a unit that is taken away commands under way are answered, too, and what a
                # write did until then nobody says: the first read of the new unit decides.
                st.outcome = "lost" if gone and st.n else "not"
                self.count["ua"] += 1
                if gone:
                    time.sleep(0.01)
                if asc == 0x29:  # what was sent before is gone and has no answer
                    self.lose("reset", lambda o: iscsi.sn_lt(o.task.pdu.cmd_sn, t.pdu.cmd_sn))
        else:
            raise AssertionError("status %02x for %r" % (t.status, st))
        self.trace.append("%08x %s status %d %s" % (t.itt, st.outcome, t.status, t.where()))
        self.count[st.kind] += 1

    def lose(self, why, which=lambda st: True):
        for op in self.ops:
            for st in op.steps:
                if st.outcome is None and st.task is not None and st.task.done:
                    continue
                if st.outcome is None and (st.task is None or which(st)):
                    st.outcome = "lost"
                    self.count["lost by " + why] += 1
                    self.trace.append("%08x lost by %s" % (st.task.itt if st.task else 0, why))
                    if st.task is not None and self.may_answer(why):
                        self.late.append(st.task)
                    elif st.task is not None:
                        self.s.tasks.pop(st.task.itt, None)

    def may_answer(self, why):
        """The 29h of a unit that came in the place of another says nothing of the other's commands:
        they are answered when the backend lets go of them."""
        return why == "reset" and time.monotonic() < self.may_vanish

    def reap_late(self):
        for t in [t for t in self.late if t.done]:
            self.late.remove(t)
            ok = t.status == 0 or t.status == 2 and (sense_of(t)[:2] == (5, 0x25)
                                                     or sense_of(t)[0] == 6)
            assert ok, "status %02x, late: %r" % (t.status, t.pdu)

    def settle(self, op):
        if not self.checks:
            return
        g = self.region
        for st in op.steps:
            if st.kind in ("write", "same", "caw"):
                if st.outcome == "good":
                    g.wrote(st.lba, st.n, st.code)
                elif st.outcome == "lost":
                    g.may_have_written(st.lba, st.n, st.code)
            elif st.kind == "unmap" and st.outcome in ("good", "lost"):
                g.may_have_written(st.lba, st.n, 0)
            elif st.kind == "read" and st.outcome == "good":
                g.check(st.lba, st.task.data, "%s (%r after %s)" % (
                    self.name, st, [repr(o) for o in op.steps if o is not st]))
        self.count["bytes"] += sum(st.n for st in op.steps) * g.bs

    def probe(self):
        """Nothing came for a while: after a reset by another session nothing would ever come."""
        if time.monotonic() - self.progress < 2 or not self.ops:
            return
        self.progress = time.monotonic()
        self.count["probe"] += 1
        self.nop()
        self.send(Op([Step("tur", cdb=scsi.TEST_UNIT_READY)]))

    # -- requests that are waited for while the commands go on
    def answer(self, p):
        self.others[p.itt] = None
        self.trace.append("%s %02x" % (p.name, p.flags))
        self.s.send(p)
        end = time.monotonic() + DEADLINE
        while self.others[p.itt] is None:
            assert time.monotonic() < end, "no answer to %r" % p
            self.pump(1)
            self.reap()
        self.trace.append("%s is answered" % p.name)
        return self.others.pop(p.itt)

    def nop(self):
        data = self.rng.randbytes(self.rng.choice((0, 1, 5, 400)))
        r = self.answer(self.s.nop_pdu(data))
        assert r.opcode == P.NOP_IN and r.data == data, "ping data changed: %r" % r

    def tmf(self, function, **kw):
        r = self.answer(self.s.tmf_pdu(function, lun=self.lun, **kw))
        assert r.opcode == P.TMF_RSP, repr(r)
        self.reap()
        return r.response

    # -- sessions
    def connect(self, drop=True):
        """Logs in with the same name and ISID, so that an older session ends first."""
        if self.s is not None and drop:
            self.s.conn.close()
        if self.s is not None:
            self.lose("session")
            self.s.tasks.clear()
        self.others.clear()
        old, self.s = self.s, self.log_in()
        self.depth = self.rng.choice((1, 4, 8, 16))
        self.progress = time.monotonic()
        self.reap()
        self.count["login"] += 1
        return old

    def log_in(self):
        """Past the unit attentions of the new nexus; again while the target refuses."""
        end = time.monotonic() + DEADLINE
        while True:
            try:
                new = open_session(self.addr, self.target, initiator=self.initiator,
                                   isid=self.isid, cid=self.rng.randrange(4),
                                   **(self.keys(self.rng) if self.keys else {}))
                if not self.is_ready(new):
                    new.conn.close()
                    continue
                t = new.run_ua(scsi.compare_and_write(0, 0), lun=self.lun)
                self.has_caw = t.status == 0
                return new
            except LoginFailed as e:
                if time.monotonic() > end or e.status >> 8 not in (2, 3):
                    raise
                self.count["login refused"] += 1
            except (Closed, OSError):
                if time.monotonic() > min(end, self.may_close):
                    raise
                self.count["closed"] += 1
            time.sleep(0.05)

    def is_ready(self, s):
        t = s.run_ua(scsi.TEST_UNIT_READY, lun=self.lun)
        if t.status == 2 and time.monotonic() < self.may_vanish and sense_of(t)[:2] == (5, 0x25):
            time.sleep(0.05)
            return False
        t.good()
        return True

    # -- what to do next
    def size(self):
        bs = self.region.bs
        most = max(1, self.max_bytes // bs)
        n = self.rng.choices((1, 4 * KIB // bs, self.rng.randrange(1, 65), 64 * KIB // bs,
                              256 * KIB // bs, MIB // bs, 2 * MIB // bs),
                             (25, 30, 15, 15, 8, 4, 3))[0]
        return max(1, min(n, most, self.region.count))

    def free_range(self, n):
        g = self.region
        at = g.unsettled_at() if self.rng.random() < 0.5 else None
        for _ in range(8):
            lba = at if at is not None else g.first + self.rng.randrange(g.count - n + 1)
            lba = min(lba, g.first + g.count - n)
            if not any(o.span and lba < o.span[1] and o.span[0] < lba + n for o in self.ops):
                return lba, at is not None
            at = None
        return None

    def choose(self):
        n = self.size()
        where = self.free_range(n)
        if where is None:
            return None
        lba, must_read = where
        if must_read:
            return Op([self.read(lba, n)])
        r = self.rng.random()
        if r < 0.34:
            return Op([self.read(lba, n)], self.attr())
        if r < 0.68:
            return Op([self.write(lba, n)], self.attr())
        if r < 0.76 and n > 1:
            return self.chain(lba, n)
        settled = self.region.settled(lba, n)
        if r < 0.80:
            return Op([Step("flush", cdb=scsi.synchronize_cache10(
                *self.rng.choice(((0, 0), (lba, n))), flags=self.rng.choice((0, 0, 2))))])
        if r < 0.86 and settled:
            return Op([self.verify(lba, min(n, 128))])
        if r < 0.91:
            return Op([self.same(lba, min(n, 1024))])
        if r < 0.95 and self.thin:
            data = scsi.unmap_list((lba, n))
            return Op([Step("unmap", lba, n, data=data, cdb=scsi.unmap(len(data)))])
        if settled and self.has_caw:
            return Op([self.caw(lba, min(n, 16))])
        return None

    def attr(self):
        return self.rng.choices((SIMPLE, ORDERED, HEAD), (90, 6, 4))[0]

    def read(self, lba, n):
        fua = self.rng.choice((0, 0, 0, 8))
        cdb = self.rng.choice((scsi.read10, scsi.read16))(lba, n, fua)
        return Step("read", lba, n, cdb=cdb, read=n * self.region.bs)

    def write(self, lba, n):
        code = self.region.next_code()
        cdb = self.rng.choice((scsi.write10, scsi.write16))(lba, n, self.rng.choice((0, 0, 0, 8)))
        return Step("write", lba, n, code, self.region.data(lba, n, code), cdb)

    def chain(self, lba, n):
        """Overlapping writes and reads in a defined order."""
        steps = []
        for _ in range(self.rng.randrange(2, 5)):
            a = self.rng.randrange(n)
            b = self.rng.randrange(a, n) + 1
            make = self.rng.choice((self.write, self.write, self.read))
            steps.append(make(lba + a, b - a))
        steps.append(self.read(lba, n))
        return Op(steps, ORDERED)

    def verify(self, lba, n):
        data = self.region.expected(lba, n) if self.checks else bytes(n * self.region.bs)
        kind = "verify"
        if self.checks and self.rng.random() < 0.3:
            at = self.rng.randrange(len(data))
            data = data[:at] + bytes((data[at] ^ 1,)) + data[at + 1:]
            kind = "verify-wrong"
        if not self.checks or self.rng.random() < 0.3 and kind == "verify":
            return Step("verify", lba, n, cdb=scsi.verify10(lba, n))
        return Step(kind, lba, n, data=data, cdb=scsi.verify10(lba, n, bytchk=1))

    def same(self, lba, n):
        g = self.region
        if self.thin and self.rng.random() < 0.4:
            return Step("same", lba, n, 0, bytes(g.bs), scsi.write_same16(lba, n, 8))
        code = g.next_code(same=True)
        return Step("same", lba, n, code, g.data(lba, 1, code), scsi.write_same16(lba, n))

    def caw(self, lba, n):
        g = self.region
        if not self.checks:
            return self.read(lba, n)
        code = g.next_code()
        old, kind = g.expected(lba, n), "caw"
        if self.rng.random() < 0.3:
            old, kind = bytes((old[0] ^ 0x80,)) + old[1:], "caw-wrong"
        return Step(kind, lba, n, code, old + g.data(lba, n, code),
                    scsi.compare_and_write(lba, n))

    def send(self, op):
        self.ops.append(op)
        for st in op.steps:
            st.task = None
        for st in op.steps:
            # A Closed in the middle leaves the rest unsent: lost is then right for all.
            st.task = self.s.start(st.cdb, read=st.read, write=st.data, lun=self.lun,
                                   attr=op.attr)
            self.trace.append("%08x sent, CmdSN %x, %r" % (st.task.itt, st.task.pdu.cmd_sn, st))
