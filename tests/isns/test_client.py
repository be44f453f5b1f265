# SPDX-License-Identifier: BSD-2-Clause
"""Against a scripted server that keeps to RFC 4171: what goes over the wire, and when."""

import ipaddress
import socket
import struct
import time

import proto as I
from common import (DISK, HOST, HOST_A, HOST_B, OTHER, Script, daemon, login_status, seen, state,
                    targets, until)
from lib.evtgt import IQN, Lun, Target


def is_registered(d):
    return lambda: state(d)["state"] == "registered"


def test_registration_message(settings):
    """5.6.5.1, 5.6.4: source, key, delimiter, then each object's key and attributes in order"""
    with Script() as s, daemon(settings, [s.port]) as d:
        until(is_registered(d))
        m = s.messages(I.REG)[0]
        assert m.flags & I.CLIENT and m.flags & I.REPLACE and not m.flags & I.SERVER, hex(m.flags)
        source, key, op = m.split()
        assert source[0] == I.NAME and I.text(source[1]) in (DISK, OTHER)
        assert [t for t, _ in key] == [I.EID] and op[0] == key[0]
        assert not I.text(key[0][1]).startswith("isns:")  # 6.2.1
        assert I.number(op[1][1]) == 2 and op[1][0] == I.ENTITY_PROTOCOL
        tags = [t for t, _ in op[2:]]
        node = [I.NAME, I.NODE_TYPE, I.PG_TAG, I.PG_IP, I.PG_PORT]
        assert tags == [I.PORTAL_IP, I.PORTAL_PORT, I.ESI_INTERVAL, I.ESI_PORT, I.SCN_PORT] + \
            node[:2] + [I.ALIAS] + node[2:] + node, tags
        values = dict(op[2:7])
        assert I.address(values[I.PORTAL_IP]) == ipaddress.ip_address(HOST)
        assert I.number(values[I.PORTAL_PORT]) == d.port  # TCP: bit 15 is clear (6.3.2)
        assert 0 < I.number(values[I.SCN_PORT]) < I.UDP
        names = [I.text(v) for t, v in op if t == I.NAME]
        assert names == [DISK, OTHER], names
        assert all(I.number(v) == I.TARGET for t, v in op if t == I.NODE_TYPE)
        assert all(I.number(v) == 1 for t, v in op if t == I.PG_TAG)


def test_many_targets(settings):
    """hundreds of targets: several requests, each one PDU, only the first replaces"""
    n = 400
    want = [Target("t%03d" % i, [Lun("t", 1 << 20, 0, kind="null")],
                   ["initiator-address ALL", "alias " + "a" * 200]) for i in range(n)]
    with Script() as s, daemon(settings, [s.port], want=want) as d:
        until(is_registered(d), 30)
        regs = s.messages(I.REG)
        assert len(regs) > 2, len(regs)
        assert [bool(m.flags & I.REPLACE) for m in regs] == [True] + [False] * (len(regs) - 1)
        names = [name for m in regs for name in
                 [I.text(v) for t, v in m.split()[2] if t == I.NAME]]
        assert sorted(names) == [t.name for t in want]
        known = set()
        for m in regs:  # 5.6.1: the source is a node of the entity, or comes with this message
            mine = {I.text(v) for t, v in m.split()[2] if t == I.NAME}
            assert I.text(m.split()[0][1]) in known | mine
            known |= mine
        assert len({m.xid for m in regs}) == len(regs)  # 5.1.5


def test_deregistration_message(settings):
    """5.6.5.4: the entity at the end, one target when it goes"""
    with Script() as s:
        with daemon(settings, [s.port]) as d:
            until(is_registered(d))
            d.iscsi("--op", "delete", "--mode", "target", "--tid", "2")
            m = until(lambda: s.messages(I.DEREG))[0]
            source, key, op = m.split()
            assert I.text(source[1]) == DISK and not key
            assert [(t, I.text(v)) for t, v in op] == [(I.NAME, OTHER)]
            eid = s.messages(I.REG)[0].split()[1]
        m = s.messages(I.DEREG)[-1]
        source, key, op = m.split()
        assert op == eid and not key and I.text(source[1]) == DISK


def test_notices(settings):
    """5.6.5.5, 5.6.5.8: a notification on the registered port is answered and makes it ask"""
    domains = {DISK: [HOST_A]}
    with Script(domains=domains) as s, daemon(settings, [s.port], access=True) as d:
        until(lambda: s.count(I.SCNREG) == 2)
        for m in s.messages(I.SCNREG):
            source, key, op = m.split()
            assert source == key[0] and [t for t, _ in op] == [I.SCN_BITMAP]
            bits = I.number(op[0][1])
            assert bits & 0x1c and not bits & 0x23, hex(bits)  # 6.4.4: no management bits
        until(lambda: login_status(d) == 0)
        assert login_status(d, DISK, HOST_B) == 0x0202 and seen(d, HOST_B) == []
        port = I.number(dict(s.messages(I.REG)[0].split()[2])[I.SCN_PORT])
        before = s.count(I.QRY)
        domains[DISK] = [HOST_B]
        c = I.connect((HOST, port))
        body = I.tlv(I.NAME, DISK) + I.tlv(I.TIMESTAMP, struct.pack(">Q", int(time.time()))) + \
            I.tlv(I.SCN_BITMAP, 0x88) + I.tlv(I.NAME, HOST_B)
        for xid in range(20):  # a burst is one question
            c.send(I.pdu(I.SCN, xid, body))
            m = c.recv()
            assert m.func == I.SCN | I.RSP and m.xid == xid and m.status == 0
            assert m.flags & I.CLIENT and m.attrs == [(I.NAME, I.attrs(I.tlv(I.NAME, DISK))[0][1])]
        until(lambda: login_status(d, DISK, HOST_B) == 0)
        assert login_status(d, DISK, HOST_A) == 0x0202
        assert s.count(I.QRY) - before <= 3, s.count(I.QRY) - before
        # the same on the connection that the client made (5.6.5.8)
        domains[DISK] = [HOST_A]
        s.streams[-1].send(I.pdu(I.SCN, 7, body))
        until(lambda: login_status(d) == 0)
        assert [m.xid for m in s.messages(I.SCN | I.RSP)] == [7]
        c.close()


def test_inquiry(settings):
    """5.6.5.13: answered with its own attributes; one for another entity or portal is not"""
    with Script() as s, daemon(settings, [s.port]) as d:
        until(is_registered(d))
        op = s.messages(I.REG)[0].split()[2]
        port = I.number(dict(op)[I.ESI_PORT])

        def inquiry(eid, ip=HOST, p=None):
            return I.tlv(I.TIMESTAMP, struct.pack(">Q", 1)) + I.tlv(I.EID, eid) + \
                I.tlv(I.PORTAL_IP, ipaddress.ip_address(ip)) + I.tlv(I.PORTAL_PORT, p or d.port)
        eid = I.text(op[0][1])
        c = I.connect((HOST, port))
        for body in (inquiry("evtgt-0"), inquiry(eid, "192.0.2.77"), inquiry(eid, p=1)):
            c.send(I.pdu(I.ESI, 1, body))
        c.send(I.pdu(I.ESI, 9, inquiry(eid)))
        m = c.recv()
        assert m.xid == 9 and m.func == I.ESI | I.RSP and m.status == 0, (m.xid, m.func)
        assert m.payload[4:] == inquiry(eid)
        c.close()


def test_refreshes(settings):
    """6.2.6: a message before the registration period ends"""
    with Script(period=10) as s, daemon(settings, [s.port]) as d:
        until(is_registered(d))
        t0 = time.monotonic()
        until(lambda: s.count(I.QRY) >= 1, 9)
        assert time.monotonic() - t0 > 3
        assert s.count(I.REG) == 1


def test_lost_registration(settings):
    """the server no longer shows the entity: it is registered again, without replacing"""
    forgot = []

    def answer(m):
        if m.func == I.QRY and not forgot:
            forgot.append(1)
            return I.pdu(I.QRY | I.RSP, m.xid, struct.pack(">I", 0) + I.tlv(*m.split()[1][0]) +
                         I.tlv(I.DELIMITER))
        return None
    with Script(lambda s, c: s.behave(c, answer), period=10) as s, daemon(settings, [s.port]) as d:
        until(lambda: s.count(I.REG) == 2, 15)
        assert not s.messages(I.REG)[1].flags & I.REPLACE
        until(is_registered(d))


def test_refusals(settings):
    """5.4: without ESI, without portal groups, or from another server, as the status says"""
    def refuse(m):
        if m.func != I.REG:
            return None
        tags = [t for t, _ in m.attrs]
        status = 21 if I.ESI_PORT in tags else 23 if I.PG_TAG in tags else 0
        return I.pdu(m.func | I.RSP, m.xid, struct.pack(">I", status)) if status else None
    with Script(lambda s, c: s.behave(c, refuse)) as s, daemon(settings, [s.port]) as d:
        until(is_registered(d))
        assert s.count(I.REG) == 3
        assert [t for t, _ in s.messages(I.REG)[2].attrs].count(I.NAME) == 3

    def busy(m):
        return I.pdu(m.func | I.RSP, m.xid, struct.pack(">I", 12))
    with Script(lambda s, c: s.behave(c, busy)) as s, Script() as good, \
            daemon(settings, [s.port, good.port]) as d:
        until(is_registered(d))
        assert state(d)["server"] == "%s:%d" % (HOST, good.port)


def test_idle_close(settings):
    """a server that closes idle connections is not bothered, and found again when there is work"""
    def serve(s, c):
        m = c.recv()
        s.note(m)
        c.send(I.pdu(m.func | I.RSP, m.xid, s.reply(m)))
    with Script(serve) as s, daemon(settings, [s.port]) as d:
        until(is_registered(d))
        time.sleep(4)
        assert s.count(I.REG) == 1 and s.connections <= 3, (s.count(I.REG), s.connections)
        d.iscsi("--op", "new", "--mode", "target", "--tid", "7", "-T", IQN + "new")
        until(lambda: s.count(I.REG) == 2)
    assert s.count(I.DEREG) == 1


def test_fragments_joined(settings):
    """5.2: an answer in many PDUs, cut inside attributes"""
    names = [IQN + "host-%d" % i for i in range(300)] + [HOST_A]

    def serve(s, c):
        while True:
            m = c.recv()
            s.note(m)
            for p in I.fragments(m.func | I.RSP, m.xid, s.reply(m), 20):
                c.send(p)
    with Script(serve, domains={DISK: names}) as s, daemon(settings, [s.port], access=True) as d:
        until(lambda: login_status(d) == 0)
        assert login_status(d, DISK, HOST_B) == 0x0202


def test_names_are_folded(settings):
    """names of other spelling are the same initiator; targets among the answers are not"""
    def answer(m):
        _, key, _ = m.split()
        if m.func != I.QRY or key[0][0] != I.NAME:
            return None
        return I.pdu(m.func | I.RSP, m.xid, struct.pack(">I", 0) + I.tlv(I.NAME) +
                     I.tlv(I.DELIMITER) + I.tlv(I.NAME, HOST_A.upper().replace("IQN", "iqn")) +
                     I.tlv(I.NODE_TYPE, I.INITIATOR) + I.tlv(I.NAME, HOST_B) +
                     I.tlv(I.NODE_TYPE, I.TARGET))
    with Script(lambda s, c: s.behave(c, answer)) as s, \
            daemon(settings, [s.port], access=True) as d:
        until(lambda: login_status(d) == 0)
        assert login_status(d, DISK, HOST_B) == 0x0202


def test_strangers(settings):
    """the port for notices takes connections of the servers only"""
    with Script() as s, daemon(settings, [s.port]) as d:
        until(is_registered(d))
        port = I.number(dict(s.messages(I.REG)[0].split()[2])[I.SCN_PORT])
        c = socket.create_connection((HOST, port), 5, source_address=("127.0.0.2", 0))
        c.settimeout(5)
        assert c.recv(1) == b""
        c.close()


def test_quick_end(settings):
    """a dead or silent server does not hold up the end"""
    def silent(s, c):
        while True:
            c.recv()
    with Script(silent) as s:
        t0 = time.monotonic()
        with daemon(settings, [s.port], want=targets()[:1]):
            until(lambda: s.connections)
            t0 = time.monotonic()
        assert time.monotonic() - t0 < 6, time.monotonic() - t0
