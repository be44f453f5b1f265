# SPDX-License-Identifier: BSD-2-Clause
"""The initiator's side of CHAP in the security stage, from RFC 7143 12.1.3 and RFC 1994.

    c = Chap(session, "alice", "secret")
    c.login()                                 the whole login, or its rounds one by one:
    c.method(); c.ask(); r = c.prove(); c.operational()

Each round can be given other pairs, another T bit or another NSG than the right ones.  What the
target sends is checked here: one algorithm of those offered, an identifier of one octet, a fresh
challenge of 16 to 1024 bytes, no transit before CHAP has ended, and its own proof where one was
asked for."""

import base64
import hashlib
import os
import re

from lib.iscsi import LoginFailed, number, text

MD5, SHA1, SHA256, SHA3_256 = 5, 6, 7, 8  # IANA's registry of PPP authentication algorithms
NAMES = {MD5: "md5", SHA1: "sha1", SHA256: "sha256", SHA3_256: "sha3_256"}
HEX = re.compile(r"0[xX][0-9a-fA-F]+$")
B64 = re.compile(r"0[bB][A-Za-z0-9+/]+={0,2}$")


def response(alg, ident, secret, challenge):
    """RFC 1994 4.1: the hash over identifier, secret and challenge.  `alg`: number or name."""
    h = hashlib.new(NAMES.get(alg, alg))
    h.update(bytes((ident,)) + (secret if isinstance(secret, bytes) else secret.encode()) +
             challenge)
    return h.digest()


def hexa(data):
    return "0x" + data.hex()


def hexa_upper(data):
    return "0X" + data.hex().upper()


def b64(data):
    return "0b" + base64.b64encode(data).decode()


def b64_upper(data):
    return "0B" + base64.b64encode(data).decode()


def binary(value):
    """A binary value of RFC 7143 6.1 as bytes; anything else is an error of the target."""
    if HEX.match(value):
        digits = value[2:]
        return bytes.fromhex("0" * (len(digits) % 2) + digits)
    assert B64.match(value), "neither hexadecimal nor base64: %r" % value[:80]
    return base64.b64decode(value[2:], validate=True)


class Chap:
    """algs: offered, in order; mutual: (name, secret) that the target must prove, or None;
    encode: how our binary values are written; t: T bit of the rounds before the last."""

    def __init__(self, s, name, secret, algs=(MD5,), mutual=None, encode=hexa, t=False):
        self.s, self.name, self.secret, self.algs = s, name, secret, tuple(algs)
        self.mutual, self.encode, self.t = mutual, encode, t
        self.alg = self.ident = self.challenge = None
        self.my_ident, self.my_challenge = os.urandom(1)[0], os.urandom(16)

    # -- rounds; each gives the target's response, which is refused by LoginFailed
    def step(self, *pairs, **kw):
        kw.setdefault("csg", 0)
        kw.setdefault("nsg", 1)
        kw.setdefault("t", self.t)
        r = self.s.login_step(text(*pairs), **kw)
        if r.status_class:
            self.s.conn.expect_close(5)
            raise LoginFailed(r)
        return r

    def method(self, offer="CHAP", **kw):
        r = self.step(*(self.s.first_pairs() + [("AuthMethod", offer)]), **kw)
        got = self.s.take_text(r.data)
        assert ("AuthMethod", "CHAP") in got, "CHAP was offered (%s), answer %r" % (offer, got)
        assert not r.flags & 0x80, "transit before authentication: %r" % r
        assert not [k for k, _ in got if k.startswith("CHAP_")], "CHAP key unasked: %r" % got
        return r

    def ask(self, value=None, **kw):
        """CHAP_A; takes the challenge."""
        r = self.step(("CHAP_A", value or ",".join(map(str, self.algs))), **kw)
        self.take_challenge(r)
        return r

    def take_challenge(self, r):
        got = dict(self.s.take_text(r.data))
        assert {"CHAP_A", "CHAP_I", "CHAP_C"} <= set(got), "answer to CHAP_A: %r" % got
        assert not r.flags & 0x80, "transit with the challenge (12.1.3): %r" % r
        self.alg, self.ident = number(got["CHAP_A"]), number(got["CHAP_I"])
        assert self.alg in self.algs, "CHAP_A=%d was not offered (%r)" % (self.alg, self.algs)
        assert 0 <= self.ident <= 255, "CHAP_I=%s (RFC 1994 4.1)" % got["CHAP_I"]
        self.challenge = binary(got["CHAP_C"])
        assert 16 <= len(self.challenge) <= 1024, "CHAP_C of %d bytes" % len(self.challenge)

    def answer(self, secret=None, alg=None):
        return response(alg or self.alg, self.ident, secret or self.secret, self.challenge)

    def proof(self, **kw):
        """The pairs of the third round."""
        out = [("CHAP_N", self.name), ("CHAP_R", self.encode(self.answer(**kw)))]
        if self.mutual:
            out += [("CHAP_I", self.my_ident), ("CHAP_C", self.encode(self.my_challenge))]
        return out

    def prove(self, pairs=None, t=True, **kw):
        r = self.step(*(self.proof() if pairs is None else pairs), t=t, **kw)
        got = dict(self.s.take_text(r.data))
        if self.mutual:
            self.check_target(got)
        else:
            assert not {"CHAP_N", "CHAP_R"} & set(got), "a proof nobody asked for: %r" % got
        return r

    def check_target(self, got):
        assert {"CHAP_N", "CHAP_R"} <= set(got), "the target does not prove itself: %r" % got
        name, secret = self.mutual
        assert got["CHAP_N"] == name, "CHAP_N=%s instead of %s" % (got["CHAP_N"], name)
        want = response(self.alg, self.my_ident, secret, self.my_challenge)
        assert binary(got["CHAP_R"]) == want, "the target's CHAP_R is wrong"
        assert want != self.answer()

    def security(self, offer="CHAP"):
        """The whole security stage; the last response grants the transit to stage 1."""
        self.method(offer)
        self.ask()
        r = self.prove()
        if not r.flags & 0x80:
            r = self.step(t=True)
        assert r.flags & 0x8F == 0x81, "no transit to stage 1 after CHAP: %r" % r
        return self

    def operational(self):
        """Stage 1 to the end."""
        s = self.s
        data = text(*s.op_pairs())
        for _ in range(6):
            r = s.login_step(data, csg=1, nsg=3)
            s.must(r)
            s.take_text(r.data)
            data = b""
            if r.flags & 0x83 == 0x83:
                return s.finish(r)
        raise AssertionError("login does not end")

    def login(self, offer="CHAP"):
        return self.security(offer).operational()
