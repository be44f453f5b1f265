# SPDX-License-Identifier: BSD-2-Clause
"""CHAP: RFC 7143 12.1.3, 9.2.1, 6.1, RFC 1994 and IANA's algorithm numbers, round by round.

Ways round it, discovery and several accounts are in test_chap_paths.py."""

import time

from harness import BLK, Closed, IQN, Lun, MIB, P, Target, row, scsi, text
from lib.chap import (Chap, MD5, SHA1, SHA256, SHA3_256, b64, b64_upper, hexa, hexa_upper,
                      response)
from lib.iscsi import parse_text

LOCKED = IQN + "locked"          # CHAP, mutual where asked
ONEWAY = IQN + "oneway"          # CHAP, nothing to prove itself with
ALICE = ("alice", "correct-horse-42")
TARGET = ("the-target", "battery-staple-43")
ODD = (("0x1234", "hex-looking-name-1"), ("0bAAAA", "b64-looking-name-2"),
       ("0x41", "hex-looking-name-3"), ("A", "plain-letter-name-4"))
HEAD = ["login-failure-delay 0"]  # what that does: test_chap_setups.py


def targets():
    users = ["incominguser %s %s" % u for u in (ALICE,) + ODD]
    return [Target("disk", [Lun("disk0.img", 16 * MIB, 0)]),
            Target("locked", [Lun("locked0.img", 4 * MIB, 0)],
                   ["initiator-address ALL"] + users + ["outgoinguser %s %s" % TARGET]),
            Target("oneway", [Lun("oneway0.img", 4 * MIB, 0)],
                   ["initiator-address ALL"] + users)]


def chap(env, user=ALICE, target=LOCKED, session=None, **kw):
    env.need_evtgt()
    return Chap(session or env.new(target), *user, **kw)


def at_challenge(env, **kw):
    """After the second round."""
    c = chap(env, **kw)
    c.method()
    c.ask()
    return c


def works(s, env):
    s.run_ua(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    s.logout()


def fails(c, *pairs, status=(0x0201,), data=None, **kw):
    """This round must end in a refusal by one of `status` (None: a close), then a close; gives
    the response."""
    kw = dict(dict(csg=0, nsg=1, t=False), **kw)
    p = c.s.login_pdu(text(*pairs) if data is None else data, **kw)
    c.s.send(p)
    try:
        r = c.s.conn.recv()
    except Closed:
        assert None in status, "closed without a Login Response"
        return None
    assert r.opcode == P.LOGIN_RSP and r.itt == p.itt, "%r instead of a Login Response" % r
    st = r.status_class << 8 | r.status_detail
    assert st in status, "status %04x, a refusal was due: %r" % (st, r.data[:200])
    assert r.dsl == 0 or st, repr(r)
    assert c.s.conn.expect_close(5) == []
    return r


CLASS_02 = tuple(range(0x0200, 0x020C)) + (None,)


@row("S-01", "12.1, 11.13.5", "a target that demands CHAP refuses AuthMethod=None: 0201, or Reject "
     "and no transit")
def none_only(env):
    for nsg in (1, 3):
        s = chap(env).s
        p = s.login_pdu(text(*(s.first_pairs() + [("AuthMethod", "None")])), csg=0, nsg=nsg)
        s.send(p)
        r = s.conn.recv()
        assert r.opcode == P.LOGIN_RSP, repr(r)
        if r.status_class == 0:
            assert ("AuthMethod", "Reject") in parse_text(r.data) and not r.flags & 0x80, repr(r)
            continue
        assert (r.status_class, r.status_detail) == (2, 1), repr(r)
        assert s.conn.expect_close(5) == []


@row("S-02", "6.3.2", "a target that demands CHAP refuses a login that begins in stage 1: 0201")
def straight_to_stage_1(env):
    for pairs in ([], Chap(env.new(LOCKED), *ALICE).s.op_pairs()):
        for t in (True, False):
            c = chap(env)
            fails(c, *(c.s.first_pairs() + pairs), csg=1, nsg=3, t=t)


@row("S-03", "12.1.3", "AuthMethod=CHAP,None with T=1: CHAP is taken, no transit until it has "
     "ended")
def chap_before_none(env):
    for offer in ("CHAP,None", "None,CHAP", "KRB5,SRP,None,CHAP"):
        c = chap(env, t=True)
        c.method(offer)
        c.ask()
        c.prove()
        works(c.operational(), env)


@row("S-04", "12.1.3", "CHAP_A=5 is answered by CHAP_A=5, CHAP_I of 0..255 and CHAP_C of 16..1024 "
     "bytes in one response, T=0")
def challenge_form(env):
    for _ in range(10):
        c = at_challenge(env)  # checks it all
        assert c.alg == MD5


@row("S-05 S-06", "12.1.3, 6.1", "the right response is accepted, in hexadecimal and in base64; "
     "transit to stage 1")
def right_response(env, case):
    for target in (LOCKED, ONEWAY):
        works(chap(env, target=target, encode=hexa if case == "S-05" else b64).login(), env)


@row("S-27", "6.1", "0X with upper-case digits, and 0B, are accepted")
def upper_case_prefix(env):
    for encode in (hexa_upper, b64_upper, lambda b: "0x" + b.hex().upper()):
        works(chap(env, encode=encode).login(), env)


@row("S-07 S-08", "12.1.3", "a wrong response: 0201, then close")
def wrong_response(env, case):
    for bad in ("guess", "correct-horse-4", "correct-horse-422", "Correct-horse-42"):
        c = at_challenge(env, encode=hexa if case == "S-07" else b64)
        fails(c, *c.proof(secret=bad), t=True)
    env.serves()


@row("S-09", "12.1.3", "an unknown CHAP_N is refused like a wrong secret: no byte differs")
def unknown_name(env):
    def refusal(user, target):
        c = at_challenge(env, user=user, target=target)
        r = fails(c, *c.proof(), t=True)
        r.bhs[8:14] = bytes(6)  # ISID
        r.bhs[24:28] = bytes(4)  # StatSN: any start
        return bytes(r.bhs) + r.data

    wrong = refusal((ALICE[0], "not-her-secret-0"), LOCKED)
    for name in ("mallory", "Alice", "alice ", "alic", "alicee", TARGET[0], "a" * 255):
        assert refusal((name, ALICE[1]), LOCKED) == wrong, name
    assert refusal((TARGET[0], TARGET[1]), LOCKED) == wrong


@row("S-10", "12.1.3", "no algorithm in common: 0201 or close")
def no_common_algorithm(env):
    for algs in ("99,98", "0", "4", "1", "99"):
        c = chap(env)
        c.method()
        fails(c, ("CHAP_A", algs), status=(0x0201, None))


@row("S-12 S-13 S-14", "12.1.3", "CHAP_A=6, 7, 8 are SHA-1, SHA-256, SHA3-256: the right response "
     "is accepted, another algorithm's refused")
def other_algorithms(env, case):
    alg = {"S-12": SHA1, "S-13": SHA256, "S-14": SHA3_256}[case]
    for encode in (hexa, b64):
        works(chap(env, algs=(alg,), encode=encode, mutual=TARGET).login(), env)
    for other in {MD5, SHA1, SHA256, SHA3_256} - {alg}:
        c = at_challenge(env, algs=(alg,))
        fails(c, *c.proof(alg=other), t=True)


@row("S-15", "12.1.3", "CHAP_N and CHAP_R before CHAP_A: class 02 or close")
def proof_before_challenge(env):
    for ident, challenge in ((0, b"\0" * 16), (1, b"")):
        c = chap(env)
        c.method()
        fails(c, ("CHAP_N", ALICE[0]), ("CHAP_R", hexa(response(MD5, ident, ALICE[1], challenge))),
              status=CLASS_02)
    c = chap(env)
    fails(c, *(c.s.first_pairs() + [("AuthMethod", "CHAP"), ("CHAP_N", ALICE[0]),
                                    ("CHAP_R", "0x" + "00" * 16)]), status=CLASS_02)


@row("S-16 S-17", "6.3.2", "an empty request with T=1 while CHAP is unfinished gives no transit; "
     "neither before nor after the challenge")
def transit_without_proof(env, case):
    nsg = 1 if case == "S-16" else 3
    for rounds in (0, 1, 2):
        c = chap(env)
        if rounds == 0:
            c.s.must(c.s.login_step(text(*c.s.first_pairs()), csg=0, t=False))
        if rounds >= 1:
            c.method()
        if rounds == 2:
            c.ask()
        c.s.send(c.s.login_pdu(csg=0, nsg=nsg))
        try:
            r = c.s.conn.recv()
        except Closed:
            continue
        assert r.opcode == P.LOGIN_RSP, repr(r)
        assert r.status_class == 2 or (r.status_class == 0 and not r.flags & 0x80), \
            "after %d rounds: %r" % (rounds, r)
        if r.status_class == 0:  # stage 1 is shut all the same
            fails(c, *c.s.op_pairs(), csg=1, nsg=3, t=True, status=CLASS_02)


@row("S-19", "9.2.1", "no two challenges are equal; their bytes look random")
def challenges_differ(env):
    seen = [at_challenge(env) for _ in range(30)]
    all_bytes = b"".join(c.challenge for c in seen)
    assert len({c.challenge for c in seen}) == 30
    assert len({c.challenge[:8] for c in seen}) == 30, "only the ends differ"
    ones = sum(bin(b).count("1") for b in all_bytes) / (8 * len(all_bytes))
    assert 0.42 < ones < 0.58, "%.2f of the bits are ones" % ones


@row("S-20", "12.1.3", "CHAP_I and CHAP_C beside CHAP_R are answered by the target's own name and "
     "right response, with every algorithm")
def mutual(env):
    for alg in (MD5, SHA1, SHA256, SHA3_256):
        for encode in (hexa, b64):
            works(chap(env, algs=(alg,), mutual=TARGET, encode=encode).login(), env)


@row("S-20b", "12.1.3", "mutual CHAP: the target may transit with its proof or one round later, "
     "with T=0 in ours it waits")
def mutual_last_round(env):
    for t in (True, False):
        c = at_challenge(env, mutual=TARGET)
        r = c.prove(t=t)
        assert t or not r.flags & 0x80, repr(r)
        if not r.flags & 0x80:
            r = c.step(t=True)
        assert r.flags & 0x8F == 0x81, repr(r)
        works(c.operational(), env)


@row("S-21", "9.2.1", "the target's own challenge sent back as CHAP_C: no answer, failure or close")
def reflection(env):
    for alg in (MD5, SHA256):
        for change in ((lambda c: None), lambda c: setattr(c, "my_ident", c.ident)):
            for encode in (hexa, b64, hexa_upper):
                c = at_challenge(env, algs=(alg,), mutual=TARGET)
                c.my_challenge, c.encode = c.challenge, encode
                change(c)
                fails(c, *c.proof(), t=True, status=CLASS_02)
    env.serves()


@row("S-22", "12.1.3", "CHAP_C of 1025 bytes or more: class 02 or close; the target keeps serving")
def challenge_too_long(env):
    for n in (1025, 1026, 2048, 3000):
        for encode in (hexa, b64):
            c = at_challenge(env, mutual=TARGET, encode=encode)
            c.my_challenge = bytes(n)
            fails(c, *c.proof(), t=True, status=CLASS_02)
    env.serves()


@row("S-28", "9.2.1", "a response recorded from an earlier login is refused")
def replay(env):
    c = at_challenge(env)
    pairs = c.proof()
    assert c.prove(pairs).flags & 0x80
    c.operational().logout()
    fails(at_challenge(env), *pairs, t=True)
    # the same identifier does not help
    for _ in range(5):
        d = at_challenge(env)
        d.ident, fresh = c.ident, d.challenge
        d.challenge = c.challenge
        assert fresh != c.challenge
        fails(d, *d.proof(), t=True)


@row("S-29", "12.1", "AuthMethod=SRP,KRB5: class 02, or Reject and no transit")
def methods_it_has_not(env):
    for offer in ("SRP,KRB5", "KRB5", "SPKM1,SPKM2", "chap", "CHAPS", "CHA", "X-com.example.none",
                  "None,KRB5"):
        c = chap(env)
        c.s.send(c.s.login_pdu(text(*(c.s.first_pairs() + [("AuthMethod", offer)])), csg=0, nsg=1))
        try:
            r = c.s.conn.recv()
        except Closed:
            continue
        if r.status_class:
            assert r.status_class == 2, repr(r)
            continue
        got = parse_text(r.data)
        assert ("AuthMethod", "Reject") in got and not r.flags & 0x80, (offer, got)


@row("S-31", "6.3.2", "CHAP_A once more after CHAP has ended: class 02 or close")
def once_more(env):
    for late in ([("CHAP_A", "5")], [("CHAP_N", "bob"), ("CHAP_R", "0x" + "00" * 16)],
                 [("CHAP_I", "1"), ("CHAP_C", "0x" + "11" * 16)]):
        c = at_challenge(env)
        assert not c.prove(t=False).flags & 0x80
        fails(c, *late, t=False, status=CLASS_02)
        c = chap(env).security()  # and in stage 1
        fails(c, *late, csg=1, t=False, status=CLASS_02)


@row("S-32", "12.1.3", "a list of 1200 algorithms that ends in 5: CHAP_A=5 or class 02")
def long_list(env):
    c = chap(env)
    c.method()
    value = ",".join(str(n) for n in range(1000, 2199)) + ",5"
    r = c.s.login_step(text(("CHAP_A", value)), csg=0, t=False)
    if r.status_class:
        assert r.status_class == 2, repr(r)
        c.s.conn.expect_close(5)
    else:
        c.take_challenge(r)
        c.prove()
        works(c.operational(), env)
    env.serves()


# ---- bug reports -------------------------------------------------------------------------------

@row("BR-01", "12.1.3", "CHAP_A=8,7,6,5: the first of the list by its IANA number; with 7 a "
     "response of 32 bytes is judged, SHA-1 under 7 refused")
def iana_numbers(env):
    for algs, want in (((8, 7, 6, 5), 8), ((7, 6, 5), 7), ((6, 5), 6), ((5, 7), 5), ((7, 5), 7),
                       ((9, 7, 5), 7)):
        c = chap(env, algs=algs)
        c.method()
        c.ask()
        assert c.alg == want, "%r answered %d" % (algs, c.alg)
        assert c.prove().flags & 0x80
        works(c.operational(), env)
    c = at_challenge(env, algs=(7,))
    assert len(c.answer()) == 32
    fails(c, ("CHAP_N", ALICE[0]), ("CHAP_R", hexa(c.answer(alg="sha1"))), t=True)


@row("BR-02", "12.1.3, 6.1", "CHAP_A is a list of numbers: 56, 15, 05x or nothing is not 5")
def algorithm_list(env):
    for v in ("56", "15", "", ",", "5x", "x5", " 5", "-5", "+5", "5;7", "5 6", "0x", "MD5"):
        c = chap(env)
        c.method()
        try:
            fails(c, ("CHAP_A", v), status=CLASS_02)
        except AssertionError as e:
            raise AssertionError("CHAP_A=%s: %s" % (v, e))
    for v in ("99,5", "0x05", "0x63,0x5", "1000000000000,5"):  # numbers all the same
        c = chap(env)
        c.method()
        c.ask(v)
        assert c.alg == MD5
        assert c.prove().flags & 0x80, v


@row("BR-03b", "12.1.3", "mutual CHAP takes challenges of 1 to 1024 bytes")
def challenge_lengths(env):
    for n in (1, 2, 16, 255, 256, 1023, 1024):
        for encode in (hexa, b64):
            c = at_challenge(env, mutual=TARGET, encode=encode)
            c.my_challenge = bytes((7 * i + n) & 0xFF for i in range(n))
            c.prove()  # checks the target's response
    works(c.operational(), env)


@row("BR-04", "11.12.3, 12.1.3", "T=1 in every round: the response keeps T=0 until CHAP is "
     "complete, and with mutual CHAP until the target's own proof")
def transit_bit_in_every_round(env):
    for nsg in (1, 3):
        for mutual_too in (None, TARGET):
            c = chap(env, mutual=mutual_too, t=True)
            c.method(nsg=nsg)
            c.ask(nsg=nsg)
            r = c.prove(nsg=nsg)  # checks the proof
            if not r.flags & 0x80:
                r = c.step(t=True, nsg=nsg)
            assert r.flags & 0x80 and r.flags & 3 in (1, nsg), repr(r)
            if r.flags & 3 == 1:
                c.operational()
            else:
                c.s.finish(r)  # no operational keys: the defaults
            works(c.s, env)


@row("BR-06", "12.1.3, 6.1", "CHAP_N is text even where it looks like a number, and case counts; "
     "CHAP_I may be hexadecimal")
def name_is_text(env):
    for user in ODD:
        works(chap(env, user=user).login(), env)
    for name, secret in (("0x1234", ODD[3][1]), ("\x124", ODD[0][1]), ("4660", ODD[0][1]),
                         ("0X1234", ODD[0][1]), ("A", ODD[2][1]), ("0x41", ODD[3][1]),
                         ("0baaaa", ODD[1][1])):
        c = at_challenge(env, user=(name, secret))
        fails(c, *c.proof(), t=True)
    for written in ("0x3f", "63", "0X3F", "0x03f"):
        c = at_challenge(env, mutual=TARGET)
        c.my_ident = 63
        pairs = dict(c.proof(), CHAP_I=written)
        c.prove(list(pairs.items()))


@row("BR-07", "12.1.3, 6.1", "responses of every wrong length, with wrong characters, empty or "
     "without a prefix: class 02, and the target keeps serving")
def malformed_responses(env):
    began = time.monotonic()
    for alg, n in ((MD5, 16), (SHA256, 32)):
        cases = []
        for digits in (2 * (n - 1), 2 * (n + 1), 2 * n + 1, 2 * n - 1, 2 * (n + 17), 4000, 1):
            cases.append(lambda r, d=digits: "0x" + (r.hex() * 300)[:d])
        cases += [lambda r: "0x" + r.hex()[:-1] + "g", lambda r: "0x" + r.hex()[:-1] + " ",
                  lambda r: "", lambda r: "0x", lambda r: "0", lambda r: "x" + r.hex(),
                  lambda r: r.hex(), lambda r: "0x0x" + r.hex(), lambda r: "0x00" + r.hex(),
                  lambda r: "-0x" + r.hex(), lambda r: r.decode("latin-1").replace("\0", "!"),
                  lambda r: "0x" + r.hex() + ",0x" + r.hex()]
        for i, make in enumerate(cases):
            c = at_challenge(env, algs=(alg,))
            value = make(c.answer())
            try:
                fails(c, ("CHAP_N", ALICE[0]), ("CHAP_R", value), t=True, status=CLASS_02[:-1])
            except AssertionError as e:
                raise AssertionError("algorithm %d, case %d (%s): %s" % (alg, i, value[:50], e))
    env.serves()
    assert time.monotonic() - began < 60


@row("BR-07b", "6.1", "base64 with wrong padding, characters or length: class 02, or read as the "
     "same bytes; never anything else accepted")
def malformed_base64(env):
    for alg in (MD5, SHA1, SHA256):
        for make in (lambda v: v[:-1], lambda v: v + "=", lambda v: v + "====",
                     lambda v: v.replace("=", ""), lambda v: v[:-3] + "!" + v[-2:],
                     lambda v: "0b", lambda v: "0b=", lambda v: "0b====", lambda v: "0b" + "A" * 5,
                     lambda v: v[:6] + "=" + v[6:], lambda v: v[:6] + "\n" + v[6:],
                     lambda v: v[2:], lambda v: "0b" + v[2:].replace("=", "") * 60,
                     lambda v: "0x" + v[2:], lambda v: v[:8] + " " + v[8:], lambda v: "0bé=="):
            c = at_challenge(env, algs=(alg,))
            value = make(b64(c.answer()))
            right = value.rstrip("=") == b64(c.answer()).rstrip("=")
            r = c.s.login_step(text(("CHAP_N", ALICE[0]), ("CHAP_R", value)), csg=0, nsg=1)
            assert r.status_class == 2 or right and r.status_class == 0, \
                "algorithm %d, %s: %r" % (alg, value[:60], r)
            if r.status_class:
                c.s.conn.expect_close(5)
    env.serves()
