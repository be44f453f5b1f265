# SPDX-License-Identifier: BSD-2-Clause
"""No way round CHAP: RFC 7143 9.2, 12.1.3, 6.3; several accounts; keys in wrong places."""

import time

from harness import BLK, Closed, DISK, IQN, LoginFailed, Lun, MIB, P, Target, row, scsi, text
from lib.chap import Chap, MD5, SHA256, hexa, response
from lib.iscsi import parse_text
from test_chap import ALICE, CLASS_02, LOCKED, ONEWAY, TARGET, at_challenge, chap, fails, works

BOB = ("bob", "correct-horse-44")
CAROL = ("carol", "only-of-the-other-45")
LISTED, OTHERS = IQN + "listed", IQN + "others"
LONG = ("long", "s" * 100)
HEAD = ["login-failure-delay 0"]  # what that does: test_chap_setups.py


def targets():
    return [Target("disk", [Lun("disk0.img", 16 * MIB, 0)]),
            Target("locked", [Lun("locked0.img", 4 * MIB, 0)],
                   ["initiator-address ALL", "incominguser %s %s" % ALICE,
                    "incominguser %s %s" % BOB, "incominguser %s %s" % LONG,
                    "outgoinguser %s %s" % TARGET]),
            Target("oneway", [Lun("oneway0.img", 4 * MIB, 0)],
                   ["initiator-address ALL", "incominguser %s %s" % ALICE]),
            Target("others", [Lun("others0.img", 4 * MIB, 0)],
                   ["initiator-address ALL", "incominguser %s %s" % CAROL]),
            Target("listed", [Lun("listed0.img", 4 * MIB, 0)],
                   ["initiator-name " + IQN + "friend", "incominguser %s %s" % ALICE])]


def session(env, target=LOCKED, user=ALICE, **kw):
    """An authenticated session in full feature phase, past its unit attentions."""
    s = Chap(env.new(target, **kw), *user).login()
    s.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    return s


def reads(s, env, timeout=None):
    s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0, timeout=timeout).good()


# ---- sessions that stand -----------------------------------------------------------------------

@row("CH-01", "6.3.5, 12.1.3", "reinstatement of an authenticated session without its proof: "
     "refused, the old session keeps working")
def reinstatement_without_proof(env):
    env.need_evtgt()
    a = session(env)
    keys = dict(isid=a.isid)
    intruder = Chap(env.new(LOCKED, **keys), *ALICE)
    fails(intruder, *(intruder.s.first_pairs() + intruder.s.op_pairs()), csg=1, nsg=3, t=True)
    reads(a, env)
    intruder = Chap(env.new(LOCKED, **keys), *ALICE)
    fails(intruder, *(intruder.s.first_pairs() + [("AuthMethod", "None")]), t=True,
          status=CLASS_02)
    reads(a, env)
    intruder = Chap(env.new(LOCKED, **keys), *ALICE)
    intruder.method()
    intruder.ask()
    reads(a, env)
    fails(intruder, *intruder.proof(secret="a-wrong-secret-0"), t=True)
    reads(a, env)
    half = Chap(env.new(LOCKED, **keys), *ALICE).security()  # proved, but never finished
    reads(a, env)
    half.s.conn.close()
    reads(a, env)
    b = session(env, isid=a.isid)  # with the proof it is reinstated
    a.conn.expect_close(5)
    reads(b, env)


@row("CH-02", "6.3.1, 11.12.6", "a connection to the TSIH of an authenticated session without its "
     "proof: refused, the session keeps working")
def connection_without_proof(env):
    env.need_evtgt()
    a = session(env)
    for cid in (a.cid, a.cid + 1):
        kw = dict(isid=a.isid, tsih=a.tsih, cid=cid)
        n = Chap(env.new(LOCKED, **kw), *ALICE)
        fails(n, *(n.s.first_pairs() + n.s.op_pairs()), csg=1, nsg=3, t=True, status=CLASS_02)
        reads(a, env)
        n = Chap(env.new(LOCKED, **kw), *ALICE)
        fails(n, *(n.s.first_pairs() + [("AuthMethod", "None")]), t=True, status=CLASS_02)
        n = Chap(env.new(LOCKED, **kw), *ALICE)
        try:
            n.method()
            n.ask()
            fails(n, *n.proof(secret="a-wrong-secret-0"), t=True)
        except LoginFailed as e:  # refused before: it allows no second connection
            assert e.status >> 8 == 2, str(e)
        reads(a, env)


@row("CH-03", "6.3.5, 4.4", "another initiator with the ISID of a session gets a session "
     "of its own")
def other_initiator_same_isid(env):
    env.need_evtgt()
    a = session(env)
    n = session(env, isid=a.isid, initiator=IQN + "stranger")
    reads(n, env)
    reads(a, env)


# ---- the login itself --------------------------------------------------------------------------

@row("CH-04", "6.3, 12.1.3", "everything at once in one segment without a proof: nothing of it is "
     "served")
def all_at_once(env):
    env.need_evtgt()
    probe = P.Pdu(P.SCSI_CMD, cdb=scsi.read10(0, 1), flags=0xC1, itt=7, edtl=BLK, cmd_sn=1)
    for wrong in (True, False):
        c = at_challenge(env)
        s = c.s
        pdus = [s.login_pdu(text(*c.proof(secret="a-wrong-secret-0")), csg=0, nsg=1)] if wrong \
            else []
        pdus += [s.login_pdu(csg=0, nsg=3), s.login_pdu(text(*s.op_pairs()), csg=1, nsg=3), probe]
        try:
            s.conn.send_bytes(b"".join(p.encode() for p in pdus))
        except Closed:
            pass
        try:
            got = s.conn.expect_close(5)
        except Closed:
            got = []
        for r in got:
            assert r.opcode in (P.LOGIN_RSP, P.REJECT), repr(r)
            assert r.opcode == P.REJECT or r.status_class == 2 or not r.flags & 0x80, repr(r)
    env.serves()


@row("CH-05", "6.3.1", "names sent again in a later request do not change who logs in to what")
def names_changed_midway(env):
    env.need_evtgt()
    # into the open target, then on to the locked one
    s = env.new(DISK)
    s.must(s.login_step(text(*(s.first_pairs() + [("AuthMethod", "None")])), csg=0, nsg=1))
    p = s.login_pdu(text(("TargetName", LOCKED)), csg=1, nsg=3)
    s.send(p)
    try:
        r = s.conn.recv()
        assert r.opcode == P.LOGIN_RSP, repr(r)
    except Closed:
        r = None
    if r is not None and r.status_class == 0:
        for part in env.d.adm("--op", "show", "--mode", "target").split("Target ")[1:]:
            assert LOCKED not in part or s.initiator not in part, "a session at " + LOCKED
    # as discovery, then normal
    s = env.new(None, discovery=True)
    s.must(s.login_step(text(*(s.first_pairs() + [("AuthMethod", "None")])), csg=0, nsg=1))
    p = s.login_pdu(text(("SessionType", "Normal"), ("TargetName", LOCKED)), csg=1, nsg=3)
    s.send(p)
    try:
        r = s.conn.recv()
    except Closed:
        return
    assert r.opcode == P.LOGIN_RSP, repr(r)
    if r.status_class == 0 and r.flags & 0x80:
        s.send(P.Pdu(P.SCSI_CMD, cdb=scsi.read10(0, 1), flags=0xC1, itt=7, edtl=BLK,
                     cmd_sn=s.win.cmd_sn))
        try:
            assert s.conn.recv().opcode == P.REJECT, "a discovery session became a normal one"
        except Closed:
            pass


@row("CH-06", "6.3", "the initiator's name changed during CHAP: refused, or the first one counts")
def initiator_changed_midway(env):
    env.need_evtgt()
    c = Chap(env.new(LISTED, initiator=IQN + "foe"), *ALICE)
    fails(c, *(c.s.first_pairs() + [("AuthMethod", "CHAP")]), status=(0x0202,))
    c = Chap(env.new(LISTED, initiator=IQN + "friend"), *ALICE)
    works(c.login(), env)
    c = Chap(env.new(LISTED, initiator=IQN + "friend"), *ALICE)  # on the list, no secret
    c.method()
    c.ask()
    fails(c, *c.proof(secret="a-wrong-secret-0"), t=True)
    c = at_challenge(env)
    p = c.s.login_pdu(text(*([("InitiatorName", IQN + "renamed")] + c.proof())), csg=0, nsg=1)
    c.s.send(p)
    try:
        r = c.s.conn.recv()
    except Closed:
        return
    if r.status_class == 0:
        c.s.take_text(r.data)
        c.operational()
        assert IQN + "renamed" not in env.d.adm("--op", "show", "--mode", "target")


@row("CH-07", "12.1.3", "another offer of methods after CHAP was agreed does not undo it")
def method_changed_midway(env):
    for again in ("None", "None,CHAP"):
        for rounds in (1, 2):
            c = chap(env)
            c.method()
            if rounds == 2:
                c.ask()
            p = c.s.login_pdu(text(("AuthMethod", again)), csg=0, nsg=1)
            c.s.send(p)
            try:
                r = c.s.conn.recv()
            except Closed:
                continue
            if r.status_class == 0:
                assert not r.flags & 0x80, repr(r)
                fails(c, *c.s.op_pairs(), csg=1, nsg=3, t=True, status=CLASS_02)
            else:
                assert r.status_class == 2, repr(r)


@row("CH-08", "12.1.3", "a second response on one challenge is not judged: one guess a connection")
def one_guess(env):
    c = at_challenge(env)
    s = c.s
    bad, good = c.proof(secret="a-wrong-secret-0"), c.proof()
    try:
        s.conn.send_bytes(s.login_pdu(text(*bad), csg=0, t=False).encode() +
                          s.login_pdu(text(*good), csg=0, nsg=1).encode())
    except Closed:
        pass
    try:
        got = s.conn.expect_close(8)
    except Closed:
        got = []
    assert len(got) <= 1 and all(r.status_class == 2 for r in got), got


# ---- keys in wrong places ----------------------------------------------------------------------

@row("CH-10", "6.1, 6.3", "a CHAP key twice in one text, or again later: class 02 or close")
def keys_twice(env):
    def one(*pairs, at=0, t=False):
        c = chap(env, mutual=TARGET) if at == 0 else at_challenge(env, mutual=TARGET)
        if at == 0:
            c.method()
            fails(c, *pairs, t=t, status=CLASS_02)
        else:
            proof = c.proof()
            fails(c, *(proof + [(k, dict(proof)[k] if v is None else v) for k, v in pairs]), t=t,
                  status=CLASS_02)

    one(("CHAP_A", "5"), ("CHAP_A", "5"))
    one(("CHAP_A", "5"), ("CHAP_A", "7"))
    for k, other in (("CHAP_N", "bob"), ("CHAP_R", "0x" + "00" * 16), ("CHAP_I", "9"),
                     ("CHAP_C", "0x" + "22" * 16)):
        one((k, None), at=1, t=True)
        one((k, other), at=1, t=True)
    one(("CHAP_A", "5"), at=1, t=True)
    env.serves()


@row("CH-11", "12.1.3", "keys of the proof missing or out of turn: class 02 or close")
def keys_missing(env):
    base = dict(at_challenge(env, mutual=TARGET).proof())
    for keys in (("CHAP_N",), ("CHAP_R",), ("CHAP_N", "CHAP_I", "CHAP_C"),
                 ("CHAP_R", "CHAP_I", "CHAP_C"), ("CHAP_N", "CHAP_R", "CHAP_I"),
                 ("CHAP_N", "CHAP_R", "CHAP_C"), ("CHAP_I", "CHAP_C"), ("CHAP_I",), ("CHAP_C",)):
        c = at_challenge(env, mutual=TARGET)
        proof = dict(c.proof())
        assert set(keys) <= set(base)
        fails(c, *[(k, proof[k]) for k in keys], t=True, status=CLASS_02)
    c = chap(env)
    c.method()
    fails(c, ("CHAP_A", "5"), ("CHAP_I", "1"), ("CHAP_C", "0x" + "11" * 16), status=CLASS_02)


@row("CH-12", "12.1.3", "CHAP_I that is no octet: class 02 or close; 0 and 255 are octets")
def identifier_range(env):
    for v in ("256", "0x100", "-1", "", "abc", "0x", "1000000000000000000000", "1 ", "1.0"):
        c = at_challenge(env, mutual=TARGET)
        pairs = dict(c.proof(), CHAP_I=v)
        fails(c, *pairs.items(), t=True, status=CLASS_02)
    for n in (0, 255):
        c = at_challenge(env, mutual=TARGET)
        c.my_ident = n
        c.prove()


@row("CH-13", "12.1.3, 6.1", "CHAP_C that is empty or no binary value: class 02 or close")
def bad_challenges(env):
    for v in ("", "0x", "0b", "0b====", "plain", "0xzz", "0b!!!!", "0x" + "g" * 32,
              "0x" + "1" * 4000, "0b" + "A" * 4000):
        c = at_challenge(env, mutual=TARGET)
        pairs = dict(c.proof(), CHAP_C=v)
        fails(c, *pairs.items(), t=True, status=CLASS_02)
    env.serves()


@row("CH-14", "6.1", "each round's text cut over several requests by the C bit, anywhere")
def cut_by_c_bit(env):
    for size in (1, 3, 9, 40):
        c = chap(env, mutual=TARGET, algs=(SHA256,))

        def cut(pairs, t=False):
            data = text(*pairs)
            while len(data) > size:
                r = c.s.login_step(data[:size], csg=0, t=False, c=True)
                assert r.status_class == 0 and r.dsl == 0 and not r.flags & 0xC0, repr(r)
                data = data[size:]
            r = c.s.login_step(data, csg=0, nsg=1, t=t)
            c.s.must(r)
            return r

        if size == 1:  # the number of rounds in a login may be bounded: only the last one
            c.method()
            c.ask()
        else:
            if size < 9:
                c.method()
            else:
                assert ("AuthMethod", "CHAP") in c.s.take_text(cut(
                    c.s.first_pairs() + [("AuthMethod", "CHAP")]).data)
            c.take_challenge(cut([("CHAP_A", "7")]))
        r = cut(c.proof(), t=True)
        c.check_target(dict(c.s.take_text(r.data)))
        if not r.flags & 0x80:
            r = c.step(t=True)
        assert r.flags & 0x8F == 0x81, repr(r)
        works(c.operational(), env)


@row("CH-15", "6.1", "a wrong proof stays wrong when it is cut by the C bit, and is judged only "
     "when whole")
def wrong_and_cut(env):
    c = at_challenge(env)
    data = text(*c.proof(secret="a-wrong-secret-0"))
    r = c.s.login_step(data[:30], csg=0, t=False, c=True)
    assert r.status_class == 0 and r.dsl == 0, repr(r)
    fails(c, data=data[30:], t=True)
    c = at_challenge(env)
    r = c.s.login_step(text(*c.proof())[:30], csg=0, t=False, c=True)
    fails(c, data=b"", csg=1, nsg=3, t=True, status=CLASS_02)


@row("CH-16", "6.1", "names as long as text can be, or with odd characters, are refused cleanly")
def strange_names(env):
    for name in ("a" * 256, "a" * 4000, "a" * 7000, "", "=", "a=b", "\x01\x7f", "%s%n%x",
                 "ä" * 50, "../../etc/passwd", "alice\talice", '"alice"', "alice\\"):
        c = at_challenge(env, user=(name, ALICE[1]))
        data = ("CHAP_N=%s" % name).encode() + b"\0" + text(c.proof()[1])
        fails(c, data=data, t=True, status=CLASS_02)
    for data in (b"CHAP_N=alice\0\0CHAP_R=0x00\0", b"CHAP_N\0", b"CHAP_N=alice", b"=\0",
                 b"CHAP_R=\xff\xfe\0CHAP_N=alice\0"):
        fails(at_challenge(env), data=data, t=True, status=CLASS_02)
    env.serves()


# ---- accounts ----------------------------------------------------------------------------------

@row("CH-20", "9.2.1", "several accounts of one target: each with its own secret only")
def several_accounts(env):
    for user in (ALICE, BOB, LONG):
        works(chap(env, user=user, mutual=TARGET).login(), env)
    for name, secret in ((ALICE[0], BOB[1]), (BOB[0], ALICE[1]), (ALICE[0], TARGET[1]),
                         (ALICE[0], CAROL[1]), CAROL, (LONG[0], LONG[1][:-1]),
                         (LONG[0], LONG[1] + "s"), (ALICE[0], ALICE[1] + "\0"), (ALICE[0], " ")):
        c = at_challenge(env, user=(name, secret))
        fails(c, *c.proof(), t=True)


@row("CH-21", "9.2.1", "an account of one target opens no other")
def accounts_of_targets(env):
    works(chap(env, target=OTHERS, user=CAROL).login(), env)
    for target, user in ((OTHERS, ALICE), (LOCKED, CAROL), (ONEWAY, BOB)):
        c = at_challenge(env, target=target, user=user)
        fails(c, *c.proof(), t=True)


@row("CH-22", "12.1.3", "a target with nothing to prove itself with refuses to be asked: 0201")
def mutual_without_outgoing(env):
    c = at_challenge(env, target=ONEWAY, mutual=TARGET)
    fails(c, *c.proof(), t=True)


@row("CH-23", "12.1.3", "no proof of the target before the initiator's own is right")
def target_proves_last(env):
    for change in (dict(secret="a-wrong-secret-0"), dict(alg="sha1")):
        c = at_challenge(env, mutual=TARGET)
        r = fails(c, *c.proof(**change), t=True)
        assert r.dsl == 0, "text in a refusal: %r" % r.data
    c = chap(env, mutual=TARGET)
    c.method()
    fails(c, ("CHAP_I", "1"), ("CHAP_C", "0x" + "11" * 16), status=CLASS_02)
    c = at_challenge(env, mutual=TARGET)
    fails(c, *c.proof()[2:], status=CLASS_02)


@row("CH-24", "9.2.1", "the challenge of another connection sent as CHAP_C: who has no secret gets "
     "no answer, who has one gets none that opens the first")
def reflection_over_connections(env):
    for alg in (MD5, SHA256):
        a = at_challenge(env, algs=(alg,), mutual=TARGET)      # to be broken into
        b = at_challenge(env, algs=(alg,), mutual=TARGET)      # the oracle
        b.my_challenge, b.my_ident = a.challenge, a.ident
        r = fails(b, *b.proof(secret="a-wrong-secret-0"), t=True, status=CLASS_02)
        assert r is None or r.dsl == 0
        b = at_challenge(env, algs=(alg,), mutual=TARGET)      # of somebody with an account
        b.my_challenge, b.my_ident = a.challenge, a.ident
        p = b.s.login_pdu(text(*b.proof()), csg=0, nsg=1)
        b.s.send(p)
        try:
            r = b.s.conn.recv()
            got = dict(parse_text(r.data)) if r.status_class == 0 else {}
        except Closed:
            got = {}
        stolen = got.get("CHAP_R", hexa(response(alg, a.ident, TARGET[1], a.challenge)))
        for name in (ALICE[0], BOB[0], TARGET[0]):
            a = a if a.s.conn.sock.fileno() >= 0 else at_challenge(env, algs=(alg,))
            fails(a, ("CHAP_N", name), ("CHAP_R", stolen), t=True)
            a.s.conn.close()


@row("CH-25", "9.2.1", "a response that is the target's own for the same challenge is refused")
def own_response(env):
    for name in (ALICE[0], TARGET[0]):
        c = at_challenge(env, mutual=TARGET, user=(name, TARGET[1]))
        fails(c, *c.proof(), t=True)


# ---- what others notice ------------------------------------------------------------------------

@row("CH-33", "6.3", "connections that stop in the middle of CHAP cost nothing for good")
def abandoned(env):
    env.need_evtgt()
    env.serves()
    time.sleep(0.2)
    before = env.d.fds()
    for i in range(60):
        c = chap(env, mutual=TARGET)
        c.method()
        if i % 3:
            c.ask()
        if i % 3 == 2:
            c.s.send(c.s.login_pdu(text(*c.proof(secret="a-wrong-secret-0")), csg=0, nsg=1))
        (c.s.conn.reset if i % 2 else c.s.conn.close)()
    deadline = time.monotonic() + 10
    while env.d.fds() > before + 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert env.d.fds() <= before + 2, "%d descriptors, before %d" % (env.d.fds(), before)
    env.serves()


@row("CH-34", "9.2", "no secret and no response in the log or in what the tools show")
def nothing_shown(env):
    works(chap(env, mutual=TARGET).login(), env)
    c = at_challenge(env)
    proof = c.proof(secret="a-wrong-secret-0")
    fails(c, *proof, t=True)
    with open(env.d.log, "rb") as f:
        said = f.read().decode(errors="replace")
    shown = said + env.d.adm("--op", "show", "--mode", "target") + \
        env.d.adm("--op", "show", "--mode", "system")
    for secret in (ALICE[1], BOB[1], CAROL[1], TARGET[1], proof[1][1], proof[1][1][2:]):
        assert secret not in shown, "shown: " + secret
    assert "login-refused" in said and ALICE[0] in said, "a refused login is not in the log"
