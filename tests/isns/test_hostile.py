# SPDX-License-Identifier: BSD-2-Clause
"""A server that is broken or means harm: the daemon lives, serves, lets no stranger in, and finds
its way back to a server that behaves.  BR-63 and BR-64 are faults that other targets had."""

import functools
import random
import struct
import time

import proto as I
from common import DISK, HOST, HOST_A, HOST_B, Script, daemon, login_status, state, until

OK = struct.pack(">I", 0)


def is_domain_query(m):
    return m.func == I.QRY and m.split()[1][0][0] == I.NAME


def serves(d):
    """At once, whatever the iSNS server is doing."""
    t0 = time.monotonic()
    assert login_status(d, DISK, HOST_A) == 0
    assert time.monotonic() - t0 < 3, time.monotonic() - t0
    assert d.alive() and not d.report()


def torture(settings, bad, rounds=1, again=2, seconds=40):
    """The first `again` connections get `bad(server, stream)`; later ones a server that behaves.
    It must register there, and serve all the time (no access control)."""
    def serve(s, c):
        if s.connections <= again:
            bad(s, c)
        else:
            s.behave(c)
    with Script(serve) as s, daemon(settings, [s.port]) as d:
        until(lambda: s.connections)
        serves(d)
        until(lambda: s.connections > again and state(d)["state"] == "registered",
              seconds * settings.weight, 0.2)
        serves(d)
        return s


def answered(payload, func=I.REG | I.RSP, **kw):
    """bad(): every request is answered with this."""
    def bad(s, c):
        while True:
            m = c.recv()
            c.send(I.pdu(func, m.xid, payload, **kw))
    return bad


def test_attribute_longer_than_message(settings):
    """BR-64: a length beyond the PDU, beyond 2^31, all ones, not of four"""
    lengths = [0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff, 1000, 3]
    for n in lengths[:2]:
        torture(settings, answered(OK + struct.pack(">II", I.PERIOD, n) + b"\0\0\0\1"), again=1)

    def bad(s, c):
        m = c.recv()
        n = lengths[s.connections % len(lengths)]
        c.send(I.pdu(m.func | I.RSP, m.xid, OK + struct.pack(">II", I.EID, n) + b"abcd"))
        c.recv()
    torture(settings, bad, again=4)


def domains_of(settings, body, then=lambda d: None):
    """A DevAttrQry answer with this body; HOST_A, which comes after it, must get in all the same
    or the whole answer is given up: never anybody else."""
    def answer(m):
        if not is_domain_query(m):
            return None
        return I.pdu(m.func | I.RSP, m.xid, OK + I.tlv(I.NAME) + I.tlv(I.DELIMITER) + body +
                     I.tlv(I.NAME, HOST_A) + I.tlv(I.NODE_TYPE, I.INITIATOR))
    with Script(lambda s, c: s.behave(c, answer)) as s, \
            daemon(settings, [s.port], access=True) as d:
        until(lambda: login_status(d) == 0)
        assert login_status(d, DISK, HOST_B) == 0x0202
        then(d)
        assert d.alive() and not d.report()


def test_long_names(settings):
    """BR-64: names of 224, 256 and 4000 bytes in an answer are no names"""
    body = b""
    for n in (224, 252, 256, 4000, 60000):
        body += I.tlv(I.NAME, b"iqn.2001-04.com.example:" + b"a" * (n - 25) + b"\0") + \
            I.tlv(I.NODE_TYPE, I.INITIATOR)
    domains_of(settings, body)
    # without a NUL, with one inside, empty, control characters, bad UTF-8, without a type
    body = b"".join(I.tlv(I.NAME, v) + I.tlv(I.NODE_TYPE, I.INITIATOR) for v in (
        HOST_B.encode() + b"x" * (-len(HOST_B) % 4 or 4), HOST_B.encode()[:8] + b"\0\0\0\0abcd",
        b"", b"\0\0\0\0", b"iqn\n\r\t\0\0", b"\xff\xfe\xfd\0"))
    domains_of(settings, body + I.tlv(I.NAME, HOST_B))


def test_format_strings(settings):
    """BR-63: names and aliases of %n and %s in an answer and in a notification"""
    evil = "iqn.2001-04.com.example:%n%n%s%s%p%255c%hhn"
    body = I.tlv(I.NAME, evil) + I.tlv(I.NODE_TYPE, I.INITIATOR) + \
        I.tlv(I.NAME, "%s%n%s%n" * 20) + I.tlv(I.NODE_TYPE, I.INITIATOR)

    def then(d):
        assert login_status(d, DISK, evil) == 0  # it is a name like any other
        port = notice_port(d)
        c = I.connect((HOST, port))
        for name in (evil, DISK, "%n" * 100):
            c.send(I.pdu(I.SCN, 1, I.tlv(I.NAME, name) + I.tlv(I.TIMESTAMP, b"\0" * 8) +
                         I.tlv(I.SCN_BITMAP, 0x88) + I.tlv(I.NAME, evil) + I.tlv(I.ALIAS, evil)))
            assert c.recv().func == I.SCN | I.RSP
        c.close()
    domains_of(settings, body, then)


def notice_port(d):
    """The port for notices of a daemon: the listener that is not its portal."""
    import subprocess
    out = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, timeout=10).stdout
    mine = [line.split()[3] for line in out.splitlines() if "pid=%d," % d.proc.pid in line]
    ports = [int(a.rsplit(":", 1)[1]) for a in mine if a.startswith("0.0.0.0:")]
    assert len(ports) == 1, out
    return ports[0]


def test_long_names_in_notices(settings):
    """BR-64: SCN and ESI with names of 256 and 4000 bytes, cut attributes, lying lengths"""
    with Script() as s, daemon(settings, [s.port], access=True) as d:
        until(lambda: state(d)["state"] == "registered")
        port = notice_port(d)
        for n in (224, 256, 4000, 65000):
            name = I.tlv(I.NAME, b"a" * (n - 1) + b"\0")
            for body in (name, I.tlv(I.NAME, DISK) + I.tlv(I.SCN_BITMAP, 0x10) + name,
                         I.tlv(I.EID, b"e" * (n - 1) + b"\0") + I.tlv(I.PORTAL_IP, b"\0" * 16) +
                         I.tlv(I.PORTAL_PORT, 1)):
                for func in (I.SCN, I.ESI):
                    c = I.connect((HOST, port))
                    c.send(I.pdu(func, 1, body[:65532]))
                    c.close()
        rng = random.Random(4171)
        body = I.tlv(I.NAME, DISK) + I.tlv(I.TIMESTAMP, b"\0" * 8) + I.tlv(I.SCN_BITMAP, 0x88) + \
            I.tlv(I.NAME, HOST_A)
        for _ in range(200):
            cut = rng.randrange(len(body) // 4) * 4
            data = bytearray(I.pdu(rng.choice([I.SCN, I.ESI, 0x0e, 0x7fff, 0x8001]), 1, body[:cut]))
            for _ in range(rng.randrange(4)):
                data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7f, 0x80, 0xff])
            c = I.connect((HOST, port))
            try:
                c.send(bytes(data))
            except I.Gone:
                pass
            c.close()
        assert d.alive() and not d.report()
        c = I.connect((HOST, port))  # it still listens
        c.send(I.pdu(I.SCN, 5, body))
        assert c.recv().status == 0
        c.close()


def test_lying_pdu_length(settings):
    """BR-64: a PDU that promises more than comes, less than comes, or no multiple of four"""
    def bad(s, c):
        m = c.recv()
        n = [65532, 6, 4][s.connections % 3]
        c.send(I.pdu(m.func | I.RSP, m.xid, OK + b"\0" * 60, length=n))
        c.send(b"\xff" * 12)
        c.read(1)
    torture(settings, bad, again=3)


def test_wrong_ids(settings):
    """5.1.5: answers with another transaction id or function are not answers"""
    def bad(s, c):
        while True:
            m = c.recv()
            s.note(m)
            for xid, func in ((m.xid + 1, m.func), (m.xid - 1, m.func), (m.xid, m.func + 1),
                              (0xffff, 9), (m.xid, 0x7fff)):
                c.send(I.pdu(func | I.RSP, xid & 0xffff, struct.pack(">I", 3)))
            c.send(I.pdu(m.func | I.RSP, m.xid, s.reply(m)))
    with Script(bad) as s, daemon(settings, [s.port]) as d:
        until(lambda: state(d)["state"] == "registered")
        assert s.connections == 1 and s.count(I.REG) == 1


def test_broken_fragments(settings):
    """5.2: no first PDU, gaps, another message in between, no end, more than is kept"""
    def bad(kind, s, c):
        m = c.recv()
        f, x = m.func | I.RSP, m.xid
        if kind == 0:
            c.send(I.pdu(f, x, OK, I.SERVER | I.LAST, 1))
        elif kind == 1:
            c.send(I.pdu(f, x, OK, I.SERVER | I.FIRST) + I.pdu(f, x, OK, I.SERVER | I.LAST, 2))
        elif kind == 2:
            c.send(I.pdu(f, x, OK, I.SERVER | I.FIRST) +
                   I.pdu(f, x + 1, OK, I.SERVER | I.LAST, 1))
        elif kind == 3:
            c.send(I.pdu(f, x, OK, I.SERVER | I.FIRST) * 2)
        elif kind == 4:  # endless, and empty
            c.send(I.pdu(f, x, OK, I.SERVER | I.FIRST))
            for seq in range(1, 70000):
                c.send(I.pdu(f, x, b"", I.SERVER, seq & 0xffff))
        else:  # endless, and full
            c.send(I.pdu(f, x, OK, I.SERVER | I.FIRST))
            for seq in range(1, 1000):
                c.send(I.pdu(f, x, b"\0" * 65532, I.SERVER, seq))
        c.read(1)
        raise AssertionError("kept for kind %d" % kind)
    for kind in range(6):
        torture(settings, functools.partial(bad, kind), again=1, seconds=20).check()


def test_memory(settings):
    """an endless answer does not become memory"""
    sent = []

    def bad(s, c):
        m = c.recv()
        seq = 0
        c.send(I.pdu(m.func | I.RSP, m.xid, OK, I.SERVER | I.FIRST))
        while True:
            seq += 1
            c.send(I.pdu(m.func | I.RSP, m.xid, b"\0" * 65532, I.SERVER, seq))
            sent.append(65532)
    with Script(bad) as s, daemon(settings, [s.port]) as d:
        before = d.rss()
        until(lambda: s.connections >= 3, 30)
        assert d.rss() - before < (16 << 20) * settings.weight, d.rss() - before
        serves(d)


def test_slow(settings):
    """one byte now and then, for ever: given up within the deadline, others served meanwhile"""
    def bad(s, c):
        m = c.recv()
        data = I.pdu(m.func | I.RSP, m.xid, OK + b"\0" * 4000)
        for i in range(len(data)):
            c.send(data[i:i + 1])
            time.sleep(0.2)
    torture(settings, bad, again=1, seconds=30)


def test_silent(settings):
    """no answer at all"""
    def bad(s, c):
        while True:
            c.recv()
    torture(settings, bad, again=1, seconds=30)


def test_resets(settings):
    """connections that are closed or reset at once, in the middle of a header, of a payload"""
    def bad(s, c):
        kind = s.connections % 4
        if kind:
            m = c.recv()
            data = I.pdu(m.func | I.RSP, m.xid, OK + b"\0" * 40)
            c.send(data[:{1: 0, 2: 5, 3: 20}[kind]])
        c.sock.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER 0: reset
    torture(settings, bad, again=4)


def test_flood(settings):
    """answers to nothing and notices without end do not keep the daemon from its work"""
    def bad(s, c):
        junk = I.pdu(0x8002, 0xeeee, OK) * 100
        scn = I.pdu(I.SCN, 1, I.tlv(I.NAME, DISK) + I.tlv(I.SCN_BITMAP, 0x10) +
                    I.tlv(I.NAME, DISK)) * 100
        c.recv()
        while True:
            c.send(junk if s.connections % 2 else scn)
    torture(settings, bad, again=2, seconds=50)


def test_wrong_version_and_signed(settings):
    """5.1.1, 5.5: another version, an authentication block"""
    def bad(s, c):
        m = c.recv()
        if s.connections % 2:
            c.send(I.pdu(m.func | I.RSP, m.xid, OK, version=2))
        else:
            c.send(I.pdu(m.func | I.RSP, m.xid, OK, I.SERVER | I.FIRST | I.LAST | I.AUTH) +
                   b"\0" * 64)
        c.read(1)
    torture(settings, bad, again=2)


def test_noise(settings):
    """random answers, seeded: alive, and no stranger gets in"""
    rng = random.Random(0x15a5)

    def bad(s, c):
        while True:
            m = c.recv()
            s.note(m)
            good = bytearray(I.pdu(m.func | I.RSP, m.xid, s.reply(m) if m.func != I.DEREG else OK))
            for _ in range(rng.randrange(1, 6)):
                good[rng.randrange(len(good))] = rng.randrange(256)
            c.send(bytes(good))
    for _ in range(6):
        with Script(bad, domains={DISK: [HOST_A]}) as s, \
                daemon(settings, [s.port], access=True) as d:
            until(lambda: s.connections)
            time.sleep(1)
            assert login_status(d, DISK, HOST_B) == 0x0202
            assert d.alive() and not d.report()
