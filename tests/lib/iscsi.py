# SPDX-License-Identifier: BSD-2-Clause
"""An iSCSI initiator for tests, written from RFC 7143 alone.

It is strict where an initiator may be lenient: every PDU of the target is checked for reserved
fields, padding, digests, StatSN continuity and the command window before a test sees it, and a
breach is an AssertionError.  Nothing is retried or repaired.

    Conn      one TCP connection: PDUs out and in
    Window    the numbers that all connections of a session share
    Session   login, commands with their data phases, and single steps for scripted tests
    Task      one SCSI command and what came for it
"""

import os
import socket
import struct
import time

from lib import pdu as P
from lib.crc32c import digest
from lib.pdu import NONE, Pdu

TIMEOUT = float(os.environ.get("WIRE_TIMEOUT", "8"))  # seconds for anything that must come


class Closed(Exception):
    """The target closed or reset the TCP connection."""


class Silent(Exception):
    """Nothing came in time."""


class LoginFailed(Exception):
    def __init__(self, pdu):
        self.status = (pdu.status_class << 8) | pdu.status_detail
        self.pdu = pdu
        super().__init__("login refused with status %04x" % self.status)


def sn_lt(a, b):
    """a < b in the arithmetic of RFC 1982 with 32 bits."""
    return a != b and ((b - a) & 0xFFFFFFFF) < 0x80000000


def sn_add(a, n=1):
    return (a + n) & 0xFFFFFFFF


class Conn:
    """One TCP connection.  `hdigest`/`ddigest` say whether digests are on the wire now; `source`:
    the address to come from."""

    def __init__(self, addr, timeout=None, rcvbuf=None, source=None):
        self.timeout = timeout or TIMEOUT
        fam = socket.AF_INET6 if ":" in addr[0] else socket.AF_INET
        self.sock = socket.socket(fam, socket.SOCK_STREAM)
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(self.timeout)
        if source:
            self.sock.bind((source, 0))
        self.sock.connect(addr)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = b""
        self.hdigest = self.ddigest = False
        self.max_recv = 8192  # what we declared; data segments must not be longer
        self.check = True

    def send_bytes(self, data):
        self.sock.settimeout(self.timeout)
        try:
            self.sock.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as e:
            raise Closed(str(e))

    def send(self, p, **kw):
        self.send_bytes(p.encode(self.hdigest, self.ddigest, **kw))

    def _read(self, n, deadline):
        while len(self.buf) < n:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Silent("%d of %d bytes came" % (len(self.buf), n))
            self.sock.settimeout(left)
            try:
                more = self.sock.recv(262144)
            except (socket.timeout, BlockingIOError):
                raise Silent("%d of %d bytes came" % (len(self.buf), n))
            except ConnectionResetError as e:
                raise Closed(str(e))
            if not more:
                assert not self.buf, "connection closed inside a PDU: %s" % self.buf[:64].hex()
                raise Closed("end of stream")
            self.buf += more
        out, self.buf = self.buf[:n], self.buf[n:]
        return out

    def _peek(self, n, deadline):
        out = self._read(n, deadline)
        self.buf = out + self.buf
        return out

    def recv(self, timeout=None):
        """One PDU, with lengths, padding, digests and reserved fields checked."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        head = self._peek(48, deadline)
        nahs, ndata = head[4] * 4, int.from_bytes(head[5:8], "big")
        hd = 4 if self.hdigest else 0
        pad = -ndata % 4
        dd = 4 if self.ddigest and ndata else 0
        assert ndata <= max(self.max_recv, 8192 if head[0] & 0x3F == P.LOGIN_RSP else 0), \
            "DataSegmentLength %d above MaxRecvDataSegmentLength %d (13.12)" % (ndata,
                                                                                self.max_recv)
        raw = self._read(48 + nahs + hd + ndata + pad + dd, deadline + 2)
        at = 48 + nahs
        if hd:
            assert raw[at:at + 4] == digest(raw[:at]), "wrong header digest: " + head.hex(" ", 4)
            at += 4
        body = raw[at:at + ndata]
        assert not any(raw[at + ndata:at + ndata + pad]), "padding is not zero (11.1)"
        if dd:
            assert raw[-4:] == digest(raw[at:at + ndata + pad]), "wrong data digest"
        p = Pdu(data=body, ahs=raw[48:48 + nahs], raw_lengths=True)
        p.bhs = bytearray(head)
        if self.check:
            P.check_target(p)
        return p

    def expect_close(self, timeout=None):
        """The target must close; PDUs that still come are returned."""
        got = []
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            try:
                got.append(self.recv(max(0.01, deadline - time.monotonic())))
            except Closed:
                return got
            except Silent:
                raise AssertionError("connection is still open; got %r" % got)

    def is_open(self, wait=0.15):
        """True when nothing comes and the target keeps the connection for `wait` seconds."""
        try:
            p = self.recv(wait)
        except Silent:
            return True
        except Closed:
            return False
        raise AssertionError("unexpected %r" % p)

    def close(self):
        try:
            self.sock.close()
        except OSError:
            pass

    def reset(self):
        """RST instead of FIN."""
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        self.close()


class Window:
    """CmdSN of a session (RFC7143 4.2.2.1)."""

    def __init__(self, cmd_sn):
        self.cmd_sn = cmd_sn & 0xFFFFFFFF  # next to use
        self.sent = self.cmd_sn            # highest sent, plus one
        self.exp = self.max = None

    def take(self):
        n = self.cmd_sn
        self.cmd_sn = sn_add(n)
        return n

    def note(self, cmd_sn):
        """A non-immediate request with this number went out."""
        if sn_lt(self.sent, sn_add(cmd_sn)):
            self.sent = sn_add(cmd_sn)

    def see(self, p):
        exp, mx = p.exp_cmd_sn, p.max_cmd_sn
        low = sn_add(exp, -1)
        assert mx == low or sn_lt(low, mx), \
            "MaxCmdSN %08x below ExpCmdSN %08x - 1 (4.2.2.1): %r" % (mx, exp, p)
        assert (mx - exp) & 0xFFFFFFFF < 0x7FFFFFFF or mx == low, "window of 2^31 or more: %r" % p
        if self.exp is not None:
            assert exp == self.exp or sn_lt(self.exp, exp), \
                "ExpCmdSN went back from %08x to %08x: %r" % (self.exp, exp, p)
            assert mx == self.max or sn_lt(self.max, mx), \
                "MaxCmdSN went back from %08x to %08x: %r" % (self.max, mx, p)
        assert exp == self.sent or sn_lt(exp, self.sent), \
            "ExpCmdSN %08x is beyond what was sent (%08x): %r" % (exp, self.sent, p)
        self.exp, self.max = exp, mx

    def room(self):
        return (self.max - self.cmd_sn + 1) & 0xFFFFFFFF


# ---- text ------------------------------------------------------------------------------------

def text(*pairs, **kw):
    """("Key", "value") pairs, "Key=value" strings or keywords as one text segment."""
    out = b""
    for x in list(pairs) + list(kw.items()):
        if isinstance(x, bytes):
            out += x
        elif isinstance(x, str):
            out += x.encode() + b"\0"
        else:
            out += ("%s=%s" % x).encode() + b"\0"
    return out


def parse_text(data):
    """Pairs in order, under the rules of RFC7143 6.1."""
    if not data:
        return []
    assert data.endswith(b"\0"), "text does not end with NUL: %r" % data
    out = []
    for item in data[:-1].split(b"\0"):
        assert b"=" in item, "no '=' in %r" % item
        k, v = item.split(b"=", 1)
        assert 1 <= len(k) <= 63, "key name of %d bytes" % len(k)
        assert all(c in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-+@_#"
                   for c in k), "key name %r" % k
        out.append((k.decode(), v.decode()))
    return out


RFC_DEFAULTS = {
    "HeaderDigest": "None", "DataDigest": "None", "MaxConnections": "1", "InitialR2T": "Yes",
    "ImmediateData": "Yes", "MaxBurstLength": "262144", "FirstBurstLength": "65536",
    "DefaultTime2Wait": "2", "DefaultTime2Retain": "20", "MaxOutstandingR2T": "1",
    "DataPDUInOrder": "Yes", "DataSequenceInOrder": "Yes", "ErrorRecoveryLevel": "0",
}
RANGES = {  # 13.x
    "MaxConnections": (1, 65535), "MaxBurstLength": (512, 2**24 - 1),
    "FirstBurstLength": (512, 2**24 - 1), "DefaultTime2Wait": (0, 3600),
    "DefaultTime2Retain": (0, 3600), "MaxOutstandingR2T": (1, 65535),
    "ErrorRecoveryLevel": (0, 2), "MaxRecvDataSegmentLength": (512, 2**24 - 1),
}
MINIMUM = ("MaxConnections", "MaxBurstLength", "FirstBurstLength", "DefaultTime2Retain",
           "MaxOutstandingR2T", "ErrorRecoveryLevel")
OR = ("InitialR2T", "DataPDUInOrder", "DataSequenceInOrder")
DECLARED = ("MaxRecvDataSegmentLength", "TargetPortalGroupTag", "TargetAlias", "TargetAddress",
            "TargetName", "InitiatorName", "InitiatorAlias", "SessionType")


def number(v):
    return int(v, 16) if v[:2] in ("0x", "0X") else int(v, 10)


def check_answer(key, offer, answer):
    """The answer to our offer must be one that the key's rule can give (RFC7143 6.2, 13)."""
    if key in ("HeaderDigest", "DataDigest", "AuthMethod", "TaskReporting"):
        assert answer in offer.split(","), "%s=%s was not offered (%s)" % (key, answer, offer)
    elif key in MINIMUM or key == "DefaultTime2Wait":
        lo, hi = RANGES[key]
        assert lo <= number(answer) <= hi, "%s=%s out of range" % (key, answer)
        if key in MINIMUM:
            assert number(answer) <= number(offer), "%s=%s above %s" % (key, answer, offer)
        else:
            assert number(answer) >= number(offer), "%s=%s below %s" % (key, answer, offer)
    elif key in OR:
        assert answer in ("Yes", "No"), "%s=%s" % (key, answer)
        assert offer != "Yes" or answer == "Yes", "%s: Yes answered %s" % (key, answer)
    elif key == "ImmediateData":
        assert answer in ("Yes", "No"), "%s=%s" % (key, answer)
        assert offer != "No" or answer == "No", "%s: No answered %s" % (key, answer)


# ---- tasks -----------------------------------------------------------------------------------

class Task:
    """One SCSI command.  Data-In and R2T are checked here against RFC7143 4.2.5, 11.7 and 11.8."""

    def __init__(self, sess, itt, lun, edtl, data, read):
        self.sess, self.itt, self.lun = sess, itt, lun
        self.edtl, self.out, self.is_read = edtl, data, read
        self.data = bytearray()
        self.next_data_sn = self.next_r2t_sn = 0
        self.next_off = 0        # of Data-In
        self.burst = 0           # bytes since the last F
        self.r2t_off = None      # where the next R2T must begin; None: anywhere
        self.last_final = True
        self.done = False
        self.status = self.response = None
        self.flags = self.residual = 0
        self.sense = b""
        self.r2ts, self.datains = [], []
        self.collapsed = False
        self.auto = True         # answer R2Ts

    def feed(self, p):
        assert not self.done, "PDU for a task that ended: %r" % p
        getattr(self, "_on_%02x" % p.opcode)(p)

    def _on_25(self, p):
        prm = self.sess.params
        assert self.is_read, "Data-In for a command without read data: %r" % p
        assert p.data_sn == self.next_data_sn, \
            "DataSN %d, expected %d (4.2.2.4): %r" % (p.data_sn, self.next_data_sn, p)
        self.next_data_sn += 1
        assert p.offset == self.next_off, \
            "Buffer Offset %d, expected %d (11.7.6): %r" % (p.offset, self.next_off, p)
        self.next_off += p.dsl
        self.burst += p.dsl
        assert self.burst <= prm["MaxBurstLength"], "sequence above MaxBurstLength: %r" % p
        assert self.next_off <= self.edtl, "more data than the Expected Data Transfer Length"
        if p.final:
            self.burst = 0
        else:
            assert p.dsl > 0, "empty Data-In without F: %r" % p
            assert p.dsl % 4 == 0, "Data-In before F of %d bytes (11.7.7)" % p.dsl
        self.last_final = p.final
        assert not p.flags & 0x40, "A bit at ErrorRecoveryLevel 0 (11.7.2)"
        self.data += p.data
        self.datains.append(p)
        if p.flags & 0x01:
            assert p.status == 0, "Data-In carries status %02x (11.7.3)" % p.status
            self.collapsed = True
            self._end(0, p)

    def _on_31(self, p):
        prm = self.sess.params
        assert self.out is not None, "R2T for a command without write data: %r" % p
        assert p.lun == P.lun_bytes(self.lun), "R2T with LUN %016x (11.8)" % p.lun
        assert p.r2t_sn == self.next_r2t_sn, \
            "R2TSN %d, expected %d: %r" % (p.r2t_sn, self.next_r2t_sn, p)
        self.next_r2t_sn += 1
        assert p.desired <= prm["MaxBurstLength"], "R2T above MaxBurstLength: %r" % p
        assert p.offset + p.desired <= self.edtl, "R2T beyond EDTL: %r" % p
        if self.r2t_off is not None:
            assert p.offset == self.r2t_off, \
                "R2T at %d, expected %d (DataSequenceInOrder): %r" % (p.offset, self.r2t_off, p)
        self.r2t_off = p.offset + p.desired
        self.r2ts.append(p)
        if self.auto:
            self.sess.data_out(self, p.offset, p.desired, p.ttt)

    def _on_21(self, p):
        assert self.last_final, "status while a Data-In sequence is open (11.7.1)"
        want = len(self.datains)
        if p.response == 0:
            ok = (want,) if not self.r2ts else (want, want + len(self.r2ts), 0)
            assert p.exp_data_sn in ok, "ExpDataSN %d with %d Data-Ins, %d R2Ts (11.4.8)" % (
                p.exp_data_sn, len(self.datains), len(self.r2ts))
        self.response = p.response
        if p.data:
            n = int.from_bytes(p.data[:2], "big")
            self.sense = p.data[2:2 + n]
        self._end(p.status, p)

    def _end(self, status, p):
        self.status, self.flags, self.residual = status, p.flags & 0x06, p.residual
        self.rsp = p
        self.done = True
        self.sess.tasks.pop(self.itt, None)

    # what tests ask
    @property
    def over(self):
        return bool(self.flags & 0x04)

    @property
    def under(self):
        return bool(self.flags & 0x02)

    def good(self):
        assert self.done and self.response in (None, 0), "no status: %r" % self
        assert self.status == 0, "status %02x %s instead of GOOD" % (self.status, self.where())
        return self

    def check(self, key, asc=None, ascq=None):
        from lib.scsi import Sense
        assert self.status == 2, "status %02x instead of CHECK CONDITION" % self.status
        s = Sense(self.sense)
        want = (key,) + ((asc,) if asc is not None else ()) + ((ascq,) if ascq is not None else ())
        have = (s.key, s.asc, s.ascq)[:len(want)]
        assert have == want, "sense %s instead of %s" % (
            "/".join("%02x" % x for x in (s.key, s.asc, s.ascq)),
            "/".join("%02x" % x for x in want))
        return s

    def where(self):
        from lib.scsi import Sense
        if self.status == 2:
            s = Sense(self.sense)
            return "(%x/%02x/%02x)" % (s.key, s.asc, s.ascq)
        return ""


# ---- sessions --------------------------------------------------------------------------------

_isid = [int.from_bytes(os.urandom(2), "big")]


def fresh_isid():
    """Type 10b (random), 24 bits + qualifier (RFC7143 11.12.5): new for each session."""
    _isid[0] = (_isid[0] + 1) & 0xFFFF
    return bytes((0x80, os.getpid() >> 8 & 0xFF, os.getpid() & 0xFF, 0)) + \
        _isid[0].to_bytes(2, "big")


class Session:
    """A session with one connection.  Nothing is sent until login() or a step is called."""

    def __init__(self, addr, target=None, initiator="iqn.2026-11.com.example:wire", isid=None,
                 tsih=0, cid=0, cmd_sn=1, discovery=False, rcvbuf=None, window=None, timeout=None,
                 source=None, **keys):
        self.addr, self.target, self.initiator = addr, target, initiator
        self.isid = isid or fresh_isid()
        self.tsih, self.cid, self.discovery = tsih, cid, discovery
        self.conn = Conn(addr, rcvbuf=rcvbuf, timeout=timeout, source=source)
        self.win = window or Window(cmd_sn)
        self.exp_stat_sn = None     # next expected from the target
        self.ack_stat_sn = None     # override of ExpStatSN in requests
        self.offers = {}
        self.answers = {}
        self.seen_keys = []
        self.login_itt = 0x10000000
        self.next_itt = 0x20000001
        self.tasks = {}
        self.asyncs = []
        self.pings = []
        self.auto_pong = True
        self.params = {k: RFC_DEFAULTS[k] for k in RFC_DEFAULTS}
        self.target_mrdsl = 8192
        self.full_feature = False
        self.keys = keys

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.conn.close()

    # -- PDUs in and out
    def send(self, p, number=True, **kw):
        """Fills ExpStatSN, notes CmdSN.  CmdSN itself is the caller's."""
        if number:
            ack = self.ack_stat_sn if self.ack_stat_sn is not None else (self.exp_stat_sn or 0)
            p.exp_stat_sn = ack
        if not p.immediate and p.opcode in (P.NOP_OUT, P.SCSI_CMD, P.TMF_REQ, P.TEXT_REQ,
                                            P.LOGOUT_REQ):
            self.win.note(p.cmd_sn)
        self.conn.send(p, **kw)

    def number(self, immediate=False, cmd_sn=None):
        """CmdSN of the next request: immediate ones show the next number and do not take it."""
        if cmd_sn is not None:
            return cmd_sn
        return self.win.cmd_sn if immediate else self.win.take()

    def itt(self):
        self.next_itt += 1
        return self.next_itt

    def recv(self, timeout=None):
        """One PDU after all checks.  Pings of the target are answered and skipped."""
        deadline = time.monotonic() + (self.conn.timeout if timeout is None else timeout)
        while True:
            p = self.conn.recv(max(0.001, deadline - time.monotonic()))
            self.check_numbers(p)
            if p.opcode == P.NOP_IN and p.itt == NONE:
                self.pings.append(p)
                if self.auto_pong:
                    self.pong(p)
                    continue
            if p.opcode == P.ASYNC:
                self.asyncs.append(p)
            return p

    def check_numbers(self, p):
        if p.opcode == P.LOGIN_RSP and p.status_class:
            return  # numbers are valid only with status class 0 (11.13.4)
        shows_only = p.opcode == P.R2T or (p.opcode == P.NOP_IN and p.itt == NONE)
        if p.opcode == P.DATA_IN and not p.flags & 0x01:
            pass
        elif self.exp_stat_sn is None:
            self.exp_stat_sn = p.stat_sn if shows_only else sn_add(p.stat_sn)
        else:
            assert p.stat_sn == self.exp_stat_sn, \
                "StatSN %08x, expected %08x (4.2.2.2): %r" % (p.stat_sn, self.exp_stat_sn, p)
            if not shows_only:
                self.exp_stat_sn = sn_add(self.exp_stat_sn)
        self.win.see(p)

    def pong(self, ping):
        self.send(Pdu(P.NOP_OUT, immediate=True, flags=0x80, lun=ping.lun, itt=NONE, ttt=ping.ttt,
                      cmd_sn=self.win.cmd_sn))

    def expect(self, opcode, itt=None, timeout=None):
        p = self.recv(timeout)
        assert p.opcode == opcode, "%r instead of %s" % (p, P.NAMES[opcode])
        assert itt is None or p.itt == itt, "ITT %08x instead of %08x: %r" % (p.itt, itt, p)
        return p

    def quiet(self, seconds=0.25):
        """Nothing may come, and the connection must stay."""
        try:
            p = self.recv(seconds)
        except Silent:
            return
        except Closed:
            raise AssertionError("connection closed, should stay open and quiet")
        raise AssertionError("unexpected %r" % p)

    # -- login
    def login_pdu(self, data=b"", csg=1, nsg=3, t=True, c=False, **fields):
        kw = dict(immediate=True, data=data, isid=self.isid, tsih=self.tsih, itt=self.login_itt,
                  cid=self.cid, cmd_sn=self.win.cmd_sn,
                  flags=(0x80 if t else 0) | (0x40 if c else 0) | csg << 2 | (nsg if t else 0))
        kw.update(fields)
        return Pdu(P.LOGIN_REQ, **kw)

    def login_step(self, data=b"", **kw):
        """One request and its response; the response's constant fields are checked here."""
        p = self.login_pdu(data, **kw)
        self.send(p)
        return self.login_recv(p)

    def login_recv(self, req):
        r = self.recv()
        assert r.opcode == P.LOGIN_RSP, "%r instead of a Login Response" % r
        assert r.itt == req.itt, "ITT %08x not echoed (11.13): %r" % (req.itt, r)
        assert r.isid == req.isid, "ISID not echoed (11.13.3)"
        if r.status_class == 0:
            assert r.exp_cmd_sn == req.cmd_sn, \
                "ExpCmdSN %08x after an immediate login request with CmdSN %08x" % (
                    r.exp_cmd_sn, req.cmd_sn)
            assert not r.flags & 0x80 or req.flags & 0x80, "T without T asked (11.13.6): %r" % r
            assert (r.flags >> 2) & 3 == (req.flags >> 2) & 3, "CSG of the answer differs: %r" % r
            if not (r.flags & 0x83 == 0x83):
                assert r.tsih == req.tsih, "TSIH before the final response (11.13.3): %r" % r
            assert r.version_active == 0 and r.version_max == 0, "version: %r" % r
        return r

    def take_text(self, data):
        """Answers and declarations of the target: each key once in a login (6.3)."""
        pairs = parse_text(data)
        for k, v in pairs:
            assert k not in self.seen_keys, "%s was sent twice by the target (6.1)" % k
            self.seen_keys.append(k)
            self.answers[k] = v
            if k in self.offers and v not in ("Reject", "Irrelevant", "NotUnderstood"):
                check_answer(k, self.offers[k], v)
        return pairs

    def first_pairs(self):
        out = [("InitiatorName", self.initiator)]
        if self.discovery:
            out.append(("SessionType", "Discovery"))
        else:
            out += [("SessionType", "Normal"), ("TargetName", self.target)]
        return out

    DEFAULT_OFFERS = (
        ("HeaderDigest", "None"), ("DataDigest", "None"), ("MaxConnections", "1"),
        ("InitialR2T", "Yes"), ("ImmediateData", "Yes"), ("MaxRecvDataSegmentLength", "262144"),
        ("MaxBurstLength", "262144"), ("FirstBurstLength", "65536"), ("DefaultTime2Wait", "2"),
        ("DefaultTime2Retain", "0"), ("MaxOutstandingR2T", "1"), ("DataPDUInOrder", "Yes"),
        ("DataSequenceInOrder", "Yes"), ("ErrorRecoveryLevel", "0"))
    DISCOVERY_OFFERS = (
        ("HeaderDigest", "None"), ("DataDigest", "None"), ("MaxRecvDataSegmentLength", "65536"),
        ("DefaultTime2Wait", "2"), ("DefaultTime2Retain", "0"), ("ErrorRecoveryLevel", "0"))

    def op_pairs(self):
        base = self.DISCOVERY_OFFERS if self.discovery else self.DEFAULT_OFFERS
        offers = dict(base)
        for k, v in self.keys.items():
            if v is None:
                offers.pop(k, None)
            else:
                offers[k] = str(v)
        self.offers = offers
        return list(offers.items())

    def login(self, security=False):
        """Whole login, direct to the operational stage unless `security`."""
        if security:
            r = self.login_step(text(*(self.first_pairs() + [("AuthMethod", "None")])), csg=0,
                                nsg=1)
            self.must(r)
            assert r.flags & 0x83 == 0x81, "no transit to stage 1: %r" % r
            self.take_text(r.data)
            data = text(*self.op_pairs())
        else:
            data = text(*(self.first_pairs() + self.op_pairs()))
        for _ in range(6):
            r = self.login_step(data, csg=1, nsg=3)
            self.must(r)
            mine = []
            for k, v in self.take_text(r.data):
                if k not in self.offers and k not in DECLARED:
                    mine.append((k, v))  # an offer of the target: agreed as it stands
            data = text(*mine)
            if r.flags & 0x83 == 0x83:
                assert not mine, "keys that need an answer in the final response (11.13.6)"
                return self.finish(r)
        raise AssertionError("login does not end")

    def must(self, r):
        if r.status_class:
            raise LoginFailed(r)

    def finish(self, r):
        """Final response: TSIH, agreed values, digests."""
        assert r.tsih != 0, "TSIH 0 in the final response (11.13.3)"
        assert not self.tsih or r.tsih == self.tsih, "another TSIH"
        self.tsih = r.tsih
        for k, v in self.offers.items():
            if k in self.answers and k not in DECLARED:
                v = self.answers[k]
                if v in ("Reject", "Irrelevant", "NotUnderstood"):
                    continue
                self.params[k] = v
            elif k not in DECLARED and not self.discovery:
                raise AssertionError("%s=%s was never answered" % (k, v))
        for k in list(self.params):
            if k in RANGES and not isinstance(self.params[k], int):
                self.params[k] = number(self.params[k])
        self.conn.max_recv = number(self.offers.get("MaxRecvDataSegmentLength", "8192"))
        self.target_mrdsl = number(self.answers.get("MaxRecvDataSegmentLength", "8192"))
        assert 512 <= self.target_mrdsl < 2**24, "declared MaxRecvDataSegmentLength out of range"
        self.conn.hdigest = self.params["HeaderDigest"] == "CRC32C"
        self.conn.ddigest = self.params["DataDigest"] == "CRC32C"
        self.full_feature = True
        return self

    # -- SCSI commands
    def start(self, cdb, read=0, write=None, edtl=None, lun=0, attr=1, immediate=False,
              cmd_sn=None, itt=None, imm_data=None, final=None, auto=True, lun_field=None,
              bad_ddigest=False, bad_hdigest=False, flags=None, ahs=b"", unsolicited=True):
        """Sends a SCSI Command with the unsolicited data that the session's keys allow.

        read: bytes wanted; write: data to give; imm_data: immediate data instead of the usual;
        final: value of the F bit instead of the right one."""
        prm = self.params
        n = edtl if edtl is not None else (len(write) if write is not None else read)
        t = Task(self, itt or self.itt(), lun, n, write, read > 0)
        t.auto = auto
        imm = b""
        unsol_end = 0
        if write:
            first = min(prm["FirstBurstLength"], len(write), n)
            if imm_data is not None:
                imm = imm_data
            elif prm["ImmediateData"] == "Yes" and unsolicited:
                imm = write[:min(first, self.target_mrdsl)]
            unsol_end = len(imm)
            if prm["InitialR2T"] == "No" and unsolicited and imm_data is None:
                unsol_end = first
        more = unsol_end > len(imm)
        fbit = (not more) if final is None else final
        fl = (0x80 if fbit else 0) | (0x40 if read else 0) | (0x20 if write is not None else 0) \
            | attr
        p = Pdu(P.SCSI_CMD, immediate=immediate, data=imm, ahs=ahs, cdb=cdb,
                flags=fl if flags is None else flags,
                lun=P.lun_bytes(lun) if lun_field is None else lun_field, itt=t.itt, edtl=n,
                cmd_sn=self.number(immediate, cmd_sn))
        t.pdu = p
        t.r2t_off = unsol_end
        self.tasks[t.itt] = t
        self.send(p, bad_ddigest=bad_ddigest, bad_hdigest=bad_hdigest)
        if more and auto:
            self.data_out(t, len(imm), unsol_end - len(imm), NONE)
        return t

    def data_out_pdu(self, t, off, data, ttt, data_sn=0, final=True, lun=None):
        return Pdu(P.DATA_OUT, flags=0x80 if final else 0, data=data, itt=t.itt, ttt=ttt,
                   lun=(P.lun_bytes(t.lun) if ttt != NONE else 0) if lun is None else lun,
                   data_sn=data_sn, offset=off)

    def data_out(self, t, off, length, ttt, final=True, **kw):
        """One sequence of Data-Out PDUs, each within the target's MaxRecvDataSegmentLength."""
        sn = 0
        end = off + length
        while off < end:
            n = min(self.target_mrdsl, end - off)
            last = off + n == end
            self.send(self.data_out_pdu(t, off, t.out[off:off + n], ttt, sn, final and last), **kw)
            sn += 1
            off += n

    def pump(self, timeout=None):
        """Receives one PDU and gives it to its task; others are returned."""
        p = self.recv(timeout)
        if p.opcode in (P.DATA_IN, P.R2T, P.SCSI_RSP):
            t = self.tasks.get(p.itt)
            assert t is not None, "PDU for no task of ours: %r" % p
            t.feed(p)
            return None
        return p

    def wait(self, *tasks, timeout=None):
        deadline = time.monotonic() + (self.conn.timeout if timeout is None else timeout)
        while not all(t.done for t in tasks):
            p = self.pump(max(0.001, deadline - time.monotonic()))
            assert p is None, "unexpected %r while commands run" % p
        return tasks[0] if len(tasks) == 1 else tasks

    def run(self, cdb, timeout=None, **kw):
        return self.wait(self.start(cdb, **kw), timeout=timeout)

    def run_ua(self, cdb, **kw):
        """As run, past unit attentions."""
        for _ in range(8):
            t = self.run(cdb, **kw)
            if t.status == 2 and t.sense and (t.sense[2] if t.sense[0] & 0x7E == 0x70
                                              else t.sense[1]) & 0x0F == 6:
                continue
            return t
        raise AssertionError("unit attentions without end")

    def next_r2t(self, t, timeout=None):
        """The next PDU must be an R2T of this task; it is checked, not answered."""
        p = self.recv(timeout)
        assert p.opcode == P.R2T and p.itt == t.itt, "%r instead of R2T" % p
        auto, t.auto = t.auto, False
        t.feed(p)
        t.auto = auto
        return p

    def outcome(self, t=None, timeout=None):
        """What became of a request, for tests that allow several reactions:
        ("close",) ("silence",) ("reject", reason, pdu) ("status", status, task) ("pdu", pdu)."""
        deadline = time.monotonic() + (self.conn.timeout if timeout is None else timeout)
        while True:
            try:
                p = self.recv(max(0.001, deadline - time.monotonic()))
            except Silent:
                return ("silence",)
            except Closed:
                return ("close",)
            if p.opcode == P.REJECT:
                return ("reject", p.reason, p)
            if p.opcode in (P.DATA_IN, P.R2T, P.SCSI_RSP):
                owner = self.tasks.get(p.itt)
                assert owner is not None, "PDU for no task of ours: %r" % p
                owner.feed(p)
                if t is None or owner is not t:
                    if t is None and owner.done:
                        return ("status", owner.status, owner)
                    continue
                if t.done:
                    return ("status", t.status, t)
                if p.opcode == P.R2T and not t.auto:
                    return ("r2t", p)
                continue
            return ("pdu", p)

    # -- other requests
    def nop_pdu(self, data=b"", immediate=True, itt=None, ttt=NONE, cmd_sn=None, lun=0):
        return Pdu(P.NOP_OUT, immediate=immediate, flags=0x80, data=data, lun=lun,
                   itt=self.itt() if itt is None else itt, ttt=ttt,
                   cmd_sn=self.number(immediate, cmd_sn))

    def nop(self, data=b"", immediate=True, timeout=None):
        p = self.nop_pdu(data, immediate)
        self.send(p)
        r = self.expect(P.NOP_IN, p.itt, timeout)
        assert r.data == bytes(data[:self.conn.max_recv]), "ping data changed"
        return r

    def text_pdu(self, data=b"", final=True, c=False, ttt=NONE, itt=None, immediate=False,
                 cmd_sn=None):
        return Pdu(P.TEXT_REQ, immediate=immediate, data=data, ttt=ttt,
                   flags=(0x80 if final else 0) | (0x40 if c else 0),
                   itt=self.itt() if itt is None else itt, cmd_sn=self.number(immediate, cmd_sn))

    def text(self, data=b"", **kw):
        """One whole text exchange; all the answer's pairs, over as many PDUs as it takes."""
        p = self.text_pdu(data, **kw)
        self.send(p)
        out = b""
        while True:
            r = self.expect(P.TEXT_RSP, p.itt)
            out += r.data
            if r.final:
                return parse_text(out)
            self.send(self.text_pdu(itt=p.itt, ttt=r.ttt))

    def tmf_pdu(self, function, lun=0, rtt=NONE, ref_cmd_sn=0, immediate=True, cmd_sn=None,
                lun_field=None):
        return Pdu(P.TMF_REQ, immediate=immediate, flags=0x80 | function, rtt=rtt,
                   lun=P.lun_bytes(lun) if lun_field is None else lun_field, itt=self.itt(),
                   ref_cmd_sn=ref_cmd_sn, cmd_sn=self.number(immediate, cmd_sn))

    def tmf(self, function, timeout=None, **kw):
        p = self.tmf_pdu(function, **kw)
        self.send(p)
        return self.expect(P.TMF_RSP, p.itt, timeout).response

    def logout_pdu(self, reason=0, cid=None, immediate=True, cmd_sn=None):
        return Pdu(P.LOGOUT_REQ, immediate=immediate, flags=0x80 | reason, itt=self.itt(),
                   cid=self.cid if cid is None else cid, cmd_sn=self.number(immediate, cmd_sn))

    def logout(self, reason=0, **kw):
        p = self.logout_pdu(reason, **kw)
        self.send(p)
        r = self.expect(P.LOGOUT_RSP, p.itt)
        assert r.response == 0, "logout answered %d" % r.response
        self.conn.expect_close()
        self.conn.close()
        return r
