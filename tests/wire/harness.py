# SPDX-License-Identifier: BSD-2-Clause
"""What a test file of tests/wire needs: the register of rows, the environment of a group, and the
reactions that several rows allow.

A row is a function with @row(ids, section, rule).  It takes the environment, and the id as well
when it has two parameters (one function for the cases of one rule).  It passes by returning, is
skipped by `raise Skip(reason)` and fails by any other exception."""

import contextlib
import inspect

from lib import pdu as P
from lib import scsi
from lib.evtgt import Daemon, Failed, IQN, Lun, Target, Tgtd
from lib.iscsi import Closed, Conn, LoginFailed, Session, Silent, text  # noqa: F401

ROWS = []
DISK, OTHER = IQN + "disk", IQN + "other"
MIB = 1 << 20
BLK = 512


class Skip(Exception):
    pass


class Row:
    def __init__(self, ident, fn, section, rule, limit):
        self.id, self.fn, self.section, self.rule, self.limit = ident, fn, section, rule, limit
        self.name = fn.__name__
        self.group = fn.__module__.rsplit(".", 1)[-1].replace("test_", "")

    def call(self, env):
        if len(inspect.signature(self.fn).parameters) == 2:
            return self.fn(env, self.id)
        return self.fn(env)


def row(ids, section, rule, limit=20):
    """ids: "L-01" or "L-20 L-21"; limit: seconds."""
    def add(fn):
        for ident in ids.split():
            ROWS.append(Row(ident, fn, section, rule, limit))
        return fn
    return add


def default_targets():
    return [Target("disk", [Lun("disk0.img", 16 * MIB, 0, opts=["thin-provisioning on"]),
                            Lun("disk1.img", 4 * MIB, 1)],
                   ["initiator-address ALL", "InitialR2T No", "MaxOutstandingR2T 8"]),
            Target("other", [Lun("other0.img", 4 * MIB, 0, thick=True)])]


class Env:
    """A daemon and how to reach it."""

    def __init__(self, settings, targets=None, digests=(False, False), peer=None, head=()):
        self.set, self.digests, self.peer = settings, digests, peer
        make = Tgtd if peer == "tgt" else Daemon
        self.lun0 = 1 if peer == "tgt" else 0
        self.d = make(targets() if targets else default_targets(), settings, head=head)
        self.stores_data = settings.backend != "null"
        self.open = []

    @classmethod
    def bare(cls, settings, digests, peer):
        """Without a daemon, for rows that start their own (see `with_daemon`)."""
        e = cls.__new__(cls)
        e.set, e.digests, e.peer, e.open = settings, digests, peer, []
        e.lun0, e.stores_data, e.d = 0, settings.backend != "null", None
        return e

    @contextlib.contextmanager
    def with_daemon(self, targets, start=True, ends=True, **kw):
        """An own daemon for one row; it must end well afterwards."""
        self.need_evtgt()
        self.d = Daemon(targets, self.set, **kw)
        try:
            if start:
                self.d.start()
            yield self.d
            self.cleanup()
            if ends:
                self.d.stop()
        except Exception as e:
            bad = self.d.report() if self.d.proc else None
            if bad:
                raise Failed("daemon reports: %s; then: %s" % (bad, e)) from e
            raise
        finally:
            self.d.cleanup()

    @property
    def addr(self):
        return self.d.addr

    def conn(self, **kw):
        c = Conn(self.addr, **kw)
        self.open.append(c)
        return c

    def new(self, target=DISK, **kw):
        """A session that has not logged in."""
        addr = kw.pop("addr", self.addr)
        s = Session(addr, target, **kw)
        self.open.append(s.conn)
        return s

    def session(self, target=DISK, **kw):
        """In full feature phase, past the unit attentions of a new nexus, with the digests that
        the run asks for unless the test names its own."""
        settle = kw.pop("settle", True)
        if self.digests[0]:
            kw.setdefault("HeaderDigest", "CRC32C")
        if self.digests[1]:
            kw.setdefault("DataDigest", "CRC32C")
        s = self.new(target, **kw).login()
        if settle:
            s.run_ua(scsi.TEST_UNIT_READY, lun=self.lun0).good()
        return s

    def medium_told(self, s):
        """What is volatile is announced once to each nexus, after the power-on."""
        if self.set.backend == "zram":
            s.run(scsi.TEST_UNIT_READY, lun=self.lun0).check(6, 0x28, 0)

    def discovery(self, **kw):
        return self.new(None, discovery=True, **kw).login()

    def need_data(self):
        if not self.stores_data:
            raise Skip("the null backend keeps no data")

    def need_evtgt(self):
        if self.peer:
            raise Skip("needs evtgtadm or our configuration")

    def serves(self):
        """A fresh login and a READ work."""
        with self.session(initiator=IQN + "after") as s:
            s.run(scsi.read10(0, 1), read=BLK, lun=self.lun0).good()
            s.logout()

    def cleanup(self):
        for c in self.open:
            c.close()
        self.open = []


# ---- helpers of many rows --------------------------------------------------------------------

def refused(s, *args, classes=(2,), **kw):
    """The login step must end in a refusal of these classes or in a close; gives the status."""
    p = s.login_pdu(*args, **kw)
    s.send(p)
    try:
        r = s.conn.recv()
    except Closed:
        return None
    assert r.opcode == P.LOGIN_RSP, "%r instead of a Login Response" % r
    assert r.itt == p.itt, "ITT not echoed: %r" % r
    assert r.status_class in classes, "status %02x%02x, a refusal was due" % (
        r.status_class, r.status_detail)
    s.conn.expect_close(5)
    return r.status_class << 8 | r.status_detail


def status_of(s, *args, **kw):
    """Login status of one step that must be answered; closes must follow a failure (11.13.5)."""
    r = s.login_step(*args, **kw)
    if r.status_class:
        s.conn.expect_close(5)
    return r.status_class << 8 | r.status_detail


def offer(env, *pairs, **kw):
    """One-request operational login with these keys besides the names: (response, answers), or
    (response, None) when it was refused with class 02, or (None, None) after a close."""
    s = env.new(**kw)
    data = text(*(s.first_pairs() + list(pairs)))
    p = s.login_pdu(data, t=False)
    s.send(p)
    try:
        r = s.conn.recv()
    except Closed:
        return None, None
    assert r.opcode == P.LOGIN_RSP and r.itt == p.itt, repr(r)
    if r.status_class:
        assert r.status_class == 2, "status %02x%02x" % (r.status_class, r.status_detail)
        return r, None
    return r, dict(s.take_text(r.data))


def write_waiting(s, lun, nblk=16, lba=64, data=None, **kw):
    """A WRITE that has got its first R2T and waits for data: (task, R2T, data)."""
    data = data if data is not None else scsi.pattern(nblk * BLK, lba)
    t = s.start(scsi.write10(lba, nblk), write=data, lun=lun, auto=False, **kw)
    r2t = s.next_r2t(t)
    return t, r2t, data


SOLICITED = dict(InitialR2T="Yes", ImmediateData="No")


def read_back(env, lba, nblk, **kw):
    """Blocks as another session sees them."""
    with env.session(initiator=IQN + "verifier", **kw) as s:
        t = s.run(scsi.read10(lba, nblk), read=nblk * BLK, lun=env.lun0).good()
        s.logout()
    return bytes(t.data)


def fill(env, lba, nblk, seed):
    data = scsi.pattern(nblk * BLK, seed)
    with env.session(initiator=IQN + "writer") as s:
        s.run(scsi.write10(lba, nblk), write=data, lun=env.lun0).good()
        s.logout()
    return data


def fails_or_closes(out, not_good=True):
    """Reactions that stand for "CHECK CONDITION, Reject or close; not GOOD"."""
    assert out[0] in ("close", "reject", "status"), "reaction %r" % (out,)
    if out[0] == "status" and not_good:
        assert out[1] != 0, "GOOD"
    return out
