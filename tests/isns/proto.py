# SPDX-License-Identifier: BSD-2-Clause
"""iSNSP messages (RFC 4171) for the tests, written from the RFC: PDUs and attributes as they go
over the wire, and PDUs that should not."""

import ipaddress
import socket
import struct

# 4.2.3, 5: function ids
REG, QRY, GETNEXT, DEREG, SCNREG, SCNDEREG, SCNEVENT, SCN = range(1, 9)
ESI = 0x000d
RSP = 0x8000

# 5.1.4: bit 16 is 8000h
CLIENT, SERVER, AUTH, REPLACE, LAST, FIRST = 0x8000, 0x4000, 0x2000, 0x1000, 0x0800, 0x0400

# 6.1: tags
DELIMITER, EID, ENTITY_PROTOCOL, TIMESTAMP, PERIOD = 0, 1, 2, 4, 6
PORTAL_IP, PORTAL_PORT, ESI_INTERVAL, ESI_PORT, SCN_PORT = 16, 17, 19, 20, 23
NAME, NODE_TYPE, ALIAS, SCN_BITMAP = 32, 33, 34, 35
PG_NAME, PG_IP, PG_PORT, PG_TAG = 48, 49, 50, 51
TARGET, INITIATOR, CONTROL = 1, 2, 4  # 6.4.2

UDP = 0x10000  # 6.3.2: bit 15 of a port


class Gone(Exception):
    """The peer closed or reset the connection."""


def tlv(tag, value=b""):
    """One attribute; value: bytes as they are, text (NUL and padding are added, 5.3.1), number,
    address."""
    if isinstance(value, str):
        value = value.encode() + b"\0"
        value += b"\0" * (-len(value) % 4)
    elif isinstance(value, int):
        value = struct.pack(">I", value)
    elif isinstance(value, ipaddress.IPv4Address):
        value = b"\0" * 10 + b"\xff\xff" + value.packed
    elif isinstance(value, ipaddress.IPv6Address):
        value = value.packed
    return struct.pack(">II", tag, len(value)) + value


def pdu(func, xid, payload=b"", flags=SERVER | FIRST | LAST, seq=0, version=1, length=None):
    return struct.pack(">HHHHHH", version, func, len(payload) if length is None else length, flags,
                       xid, seq) + payload


def fragments(func, xid, payload, size, flags=SERVER):
    """The message in PDUs of `size` bytes of payload (5.2)."""
    parts = [payload[i:i + size] for i in range(0, len(payload), size)] or [b""]
    return [pdu(func, xid, p, flags | (FIRST if i == 0 else 0) |
                (LAST if i == len(parts) - 1 else 0), i) for i, p in enumerate(parts)]


def attrs(payload):
    """[(tag, value)] of a payload without status."""
    out = []
    while payload:
        assert len(payload) >= 8, "attribute cut: %r" % payload
        tag, n = struct.unpack(">II", payload[:8])
        assert len(payload) >= 8 + n and n % 4 == 0, "attribute %d of %d bytes" % (tag, n)
        out.append((tag, payload[8:8 + n]))
        payload = payload[8 + n:]
    return out


def text(value):
    """Of a text attribute: terminated, padded with zeros only, to four bytes (5.3.1, 6.1)."""
    assert value.endswith(b"\0") and len(value) % 4 == 0, value
    body = value.rstrip(b"\0")
    assert len(value) - len(body) <= 4 and b"\0" not in body, value
    return body.decode()


def number(value):
    assert len(value) == 4, value
    return struct.unpack(">I", value)[0]


def address(value):
    a = ipaddress.IPv6Address(value)
    return a.ipv4_mapped or a


class Message:
    def __init__(self, func, flags, xid, payload):
        self.func, self.flags, self.xid, self.payload = func, flags, xid, payload

    @property
    def attrs(self):
        return attrs(self.payload[4:] if self.func & RSP else self.payload)

    @property
    def status(self):
        return struct.unpack(">I", self.payload[:4])[0]

    def split(self):
        """(source, key, operating attributes) of a request (5.6)."""
        a = self.attrs
        at = [i for i, (tag, _) in enumerate(a) if tag == DELIMITER]
        assert a and at, "no delimiter in %r" % (a,)
        return a[0], a[1:at[0]], a[at[0] + 1:]

    def texts(self, tag):
        return [text(v) for t, v in self.attrs if t == tag and v]


class Stream:
    """Messages over a TCP connection."""

    def __init__(self, sock, timeout=10):
        self.sock = sock
        self.xid = 0x100
        sock.settimeout(timeout)

    def read(self, n):
        out = b""
        while len(out) < n:
            try:
                piece = self.sock.recv(n - len(out))
            except (ConnectionError, BrokenPipeError):
                piece = b""
            if not piece:
                raise Gone()
            out += piece
        return out

    def recv(self):
        payload, seq = b"", 0
        while True:
            version, func, n, flags, xid, s = struct.unpack(">HHHHHH", self.read(12))
            assert version == 1 and n % 4 == 0, (version, n)
            assert s == seq and bool(flags & FIRST) == (seq == 0), (flags, s)
            payload += self.read(n)
            seq += 1
            if flags & LAST:
                return Message(func, flags, xid, payload)

    def send(self, data):
        try:
            self.sock.sendall(data)
        except (ConnectionError, BrokenPipeError):
            raise Gone()

    def ask(self, func, payload, flags=CLIENT | FIRST | LAST):
        self.xid += 1
        self.send(pdu(func, self.xid, payload, flags))
        m = self.recv()
        assert m.func == func | RSP and m.xid == self.xid, (hex(m.func), m.xid)
        return m

    def close(self):
        self.sock.close()


def connect(addr, timeout=10):
    return Stream(socket.create_connection(addr, timeout), timeout)
