# SPDX-License-Identifier: BSD-2-Clause
"""CHAP under other configurations, each with a daemon of its own: discovery sessions, choice of
algorithms, the older numbering, equal secrets, restarts.  RFC 7143 9.2.1, 12.1.3, 4.3."""

import time

from harness import BLK, Closed, DISK, Failed, IQN, Lun, MIB, P, Target, row, scsi, text
from lib.chap import Chap, MD5, SHA1, SHA256, SHA3_256, hexa
from test_chap import ALICE, CLASS_02, LOCKED, TARGET, fails, works

OWN_DAEMON = True

SCOUT = ("scout", "discovery-secret-46")
LIGHT = ("lighthouse", "discovery-proof-47")


def locked(*opts):
    return [Target("disk", [Lun("disk0.img", 4 * MIB, 0)]),
            Target("locked", [Lun("locked0.img", 4 * MIB, 0)],
                   ["initiator-address ALL", "incominguser %s %s" % ALICE,
                    "outgoinguser %s %s" % TARGET] + list(opts))]


def names(s):
    return sorted(v for k, v in s.text(text(SendTargets="All")) if k == "TargetName")


def scout(env, user=SCOUT, **kw):
    return Chap(env.new(None, discovery=True), *user, **kw)


@row("CH-40", "4.3, 9.2", "without accounts for discovery it is open, and lists targets that "
     "demand CHAP")
def discovery_open(env):
    with env.with_daemon(locked()):
        s = env.discovery()
        assert names(s) == [DISK, LOCKED]
        s.logout()
        c = Chap(env.new(LOCKED), *ALICE)
        fails(c, *(c.s.first_pairs() + c.s.op_pairs()), csg=1, nsg=3, t=True)


@row("CH-41", "4.3, 9.2", "with accounts for discovery it demands CHAP, of these accounts; targets "
     "without accounts stay open")
def discovery_locked(env):
    head = ["incomingdiscoveryuser %s %s" % SCOUT, "outgoingdiscoveryuser %s %s" % LIGHT]
    with env.with_daemon(locked(), head=head):
        for alg in (MD5, SHA1, SHA256, SHA3_256):
            for mutual in (None, LIGHT):
                s = scout(env, algs=(alg,), mutual=mutual).login()
                assert names(s) == [DISK, LOCKED]
                s.logout()
        c = scout(env)  # straight to stage 1
        fails(c, *(c.s.first_pairs() + c.s.op_pairs()), csg=1, nsg=3, t=True)
        c = scout(env)
        fails(c, *(c.s.first_pairs() + [("AuthMethod", "None")]), t=True, status=(0x0201,))
        for user in (ALICE, (SCOUT[0], ALICE[1]), (ALICE[0], SCOUT[1]), LIGHT, TARGET):
            c = scout(env, user=user)
            c.method("CHAP,None")
            c.ask()
            fails(c, *c.proof(), t=True)
        c = scout(env, mutual=LIGHT)  # reflection
        c.method()
        c.ask()
        c.my_challenge, c.my_ident = c.challenge, c.ident
        fails(c, *c.proof(), t=True, status=CLASS_02)
        c = Chap(env.new(LOCKED), *SCOUT)  # no key to a target
        c.method()
        c.ask()
        fails(c, *c.proof(), t=True)
        with env.session(DISK) as s:
            s.logout()
        works(Chap(env.new(LOCKED), *ALICE, mutual=TARGET).login(), env)


@row("CH-42", "4.3", "a discovery account opens discovery only, one way without an outgoing one")
def discovery_one_way(env):
    with env.with_daemon(locked(), head=["incomingdiscoveryuser %s %s" % SCOUT]):
        s = scout(env).login()
        assert names(s) == [DISK, LOCKED]
        s.send(P.Pdu(P.SCSI_CMD, cdb=scsi.read10(0, 1), flags=0xC1, itt=7, edtl=BLK,
                     cmd_sn=s.win.cmd_sn))
        try:
            assert s.conn.recv().opcode == P.REJECT
        except Closed:
            pass
        c = scout(env, mutual=LIGHT)
        c.method()
        c.ask()
        fails(c, *c.proof(), t=True)


@row("CH-48", "4.3, App. C", "discovery-filter authenticated: who proved nothing hears of open targets "
     "only, whether it asks for all or by name; who did of all that it may reach", 40)
def discovery_filtered(env):
    far = Target("far", [], ["initiator-address 10.0.0.0/8", "incominguser %s %s" % ALICE])
    accounts = ["incomingdiscoveryuser %s %s" % SCOUT]
    for head in ([], accounts):
        with env.with_daemon(locked() + [far], head=["discovery-filter authenticated"] + head):
            s = scout(env).login() if head else env.discovery()
            want = [DISK, LOCKED] if head else [DISK]
            assert names(s) == want
            for one in (DISK, LOCKED, IQN + "far"):
                got = [v for k, v in s.text(text(SendTargets=one)) if k == "TargetName"]
                assert got == [one] * (one in want), got
            s.logout()
            works(Chap(env.new(LOCKED), *ALICE).login(), env)


@row("BR-08", "9.2.1", "the first challenges of many daemon starts all differ and are of 16 bytes "
     "or more", 90)
def challenges_over_restarts(env):
    seen = set()
    for _ in range(100 // env.set.weight ** 2):
        with env.with_daemon(locked()):
            c = Chap(env.new(LOCKED), *ALICE)
            c.method()
            c.ask()
            assert c.challenge not in seen, "the challenge of an earlier start"
            seen.add(c.challenge)
            c.s.conn.close()


def at_challenge(env, user=ALICE, **kw):
    c = Chap(env.new(LOCKED, **kw.pop("session", {})), *user, **kw)
    c.method()
    c.ask()
    return c


@row("CH-43", "12.1.3", "chap-algorithms: what is not on the list is not taken; the initiator's "
     "order decides; the list can differ from target to target")
def algorithms_chosen(env):
    few = Target("few", [Lun("few0.img", MIB, 0)], [
        "initiator-address ALL", "incominguser %s %s" % ALICE, "chap-algorithms sha256,sha1"])
    head = ["chap-algorithms md5,sha3-256"]
    with env.with_daemon(locked() + [few], head=head):
        for target, ours in ((LOCKED, (MD5, SHA3_256)), (few.name, (SHA1, SHA256))):
            for algs in ((5, 6, 7, 8), (8, 7, 6, 5), (7, 6, 5), (6, 8), (5, 7)):
                c = Chap(env.new(target), *ALICE, algs=algs)
                c.method()
                c.ask()
                assert c.alg == [a for a in algs if a in ours][0], (target, algs, c.alg)
                c.prove()
            for alg in {5, 6, 7, 8} - set(ours):
                c = Chap(env.new(target), *ALICE, algs=(alg,))
                c.method()
                fails(c, ("CHAP_A", str(alg)), status=(0x0201, None))


@row("CH-44", "12.1.3; IANA", "chap-legacy-sha1-7: number 7 is SHA-1 for initiators that know it "
     "so; without it SHA-256 only")
def legacy_numbering(env):
    head = ["chap-legacy-sha1-7 on"]
    with env.with_daemon(locked(), head=head):
        for algs in ((7,), (7, 5), (8, 7)):
            c = Chap(env.new(LOCKED), *ALICE, algs=algs)
            c.method()
            c.ask()
            if c.alg == 7:
                assert c.prove([("CHAP_N", ALICE[0]),
                                ("CHAP_R", hexa(c.answer(alg="sha1")))]).flags & 0x80
        for alg in (MD5, SHA1, SHA3_256):  # the others stay what they are
            works(Chap(env.new(LOCKED), *ALICE, algs=(alg,), mutual=TARGET).login(), env)
        c = at_challenge(env, algs=(7,))
        fails(c, ("CHAP_N", ALICE[0]), ("CHAP_R", hexa(c.answer(alg="md5"))), t=True)
    with env.with_daemon(locked()):
        works(Chap(env.new(LOCKED), *ALICE, algs=(7,), mutual=TARGET).login(), env)
        c = at_challenge(env, algs=(7,))
        fails(c, ("CHAP_N", ALICE[0]), ("CHAP_R", hexa(c.answer(alg="sha1"))), t=True)


@row("CH-45", "9.2.1", "the same secret for both directions is refused by the configuration: the "
     "target is not served")
def equal_secrets(env):
    same = Target("locked", [Lun("locked0.img", 4 * MIB, 0)],
                  ["initiator-address ALL", "incominguser %s %s" % ALICE,
                   "outgoinguser %s %s" % (TARGET[0], ALICE[1])])
    with env.with_daemon([same], start=False, ends=False) as d:
        try:
            d.start()
        except Failed as e:
            assert "9.2.1" in str(e) and ALICE[1] not in str(e), e
            return
        s = env.new(LOCKED)
        r = s.login_step(text(*(s.first_pairs() + [("AuthMethod", "CHAP")])), csg=0, nsg=1)
        assert r.status_class in (2, 3), "a target with equal secrets is served: %r" % r


@row("CH-46", "9.2.1", "an account limited to initiators serves nobody else")
def account_of_one_initiator(env):
    only = Target("locked", [Lun("locked0.img", 4 * MIB, 0)],
                  ["initiator-address ALL", "incominguser %s %s %s" % (ALICE + (IQN + "hers",)),
                   "incominguser bob another-secret-48"])
    with env.with_daemon([only]):
        works(Chap(env.new(LOCKED, initiator=IQN + "hers"), *ALICE).login(), env)
        works(Chap(env.new(LOCKED, initiator=IQN + "HERS"), *ALICE).login(), env)
        works(Chap(env.new(LOCKED, initiator=IQN + "his"), "bob", "another-secret-48").login(),
              env)
        for name in ("his", "hers2", "her"):
            c = at_challenge(env, session=dict(initiator=IQN + name))
            fails(c, *c.proof(), t=True)


@row("CH-47", "6.3.5, 9.2.1", "with accounts limited to initiators nobody takes over the "
     "session of another account under her name")
def no_take_over(env):
    hers, his = IQN + "hers", IQN + "his"
    only = Target("locked", [Lun("locked0.img", 4 * MIB, 0)],
                  ["initiator-address ALL", "incominguser %s %s %s" % (ALICE + (hers,)),
                   "incominguser bob another-secret-48 " + his])
    with env.with_daemon([only]):
        a = Chap(env.new(LOCKED, initiator=hers), *ALICE).login()
        a.run_ua(scsi.TEST_UNIT_READY, lun=0).good()
        c = at_challenge(env, user=("bob", "another-secret-48"),
                         session=dict(initiator=hers, isid=a.isid))
        fails(c, *c.proof(), t=True)
        b = Chap(env.new(LOCKED, initiator=his, isid=a.isid), "bob", "another-secret-48").login()
        b.run_ua(scsi.read10(0, 1), read=BLK, lun=0).good()
        a.run(scsi.read10(0, 1), read=BLK, lun=0).good()


# ---- the brake on guessing ---------------------------------------------------------------------

MALLORY = ("mallory", "a-wrong-secret-0")


def guess(env, n, user=(ALICE[0], "a-wrong-secret-0"), source="127.0.0.9"):
    """n wrong proofs one after the other; how long each answer took."""
    times = []
    for _ in range(n):
        c = at_challenge(env, user=user, session=dict(source=source))
        began = time.monotonic()
        fails(c, *c.proof(), t=True)
        times.append(time.monotonic() - began)
    return times


@row("CH-30", "9.2.1", "an unknown name and a wrong secret take the same time, at first and when "
     "answers are held back", 60)
def same_time(env):
    for last in (False, False, True):  # a busy machine is late now and then
        with env.with_daemon(locked(), head=["login-failure-delay 500"]):
            wrong = guess(env, 7, source="127.0.0.9")
            unknown = guess(env, 7, user=MALLORY, source="127.0.0.10")
        for times in (wrong, unknown):  # held back from the fourth on: never earlier
            assert all(t > held for t, held in zip(times, (0, 0, 0, .24, .48, .48, .48))), times
        same = all(abs(a - b) < 0.1 * env.set.weight for a, b in zip(wrong, unknown))
        if same and max(wrong + unknown) < 0.5 + 0.3 * env.set.weight:
            return
        assert not last, (wrong, unknown)


@row("CH-36", "9.2.1", "a right secret in a login that fails all the same is answered no faster than "
     "a wrong one", 30)
def right_and_failing(env):
    oneway = Target("oneway", [Lun("oneway0.img", MIB, 0)],
                    ["initiator-address ALL", "incominguser %s %s" % ALICE])
    with env.with_daemon([oneway], head=["login-failure-delay 500"]):
        took = []
        for i in range(8):
            c = Chap(env.new(IQN + "oneway", source="127.0.0.9"), *(
                ALICE if i == 7 else (ALICE[0], "a-wrong-secret-0")), mutual=TARGET)
            c.method()
            c.ask()
            began = time.monotonic()
            fails(c, *c.proof(), t=True)
            took.append(time.monotonic() - began)
        assert took[6] > 0.2 and took[7] > 0.2, took


@row("CH-31", "9.2.1", "failing logins do not slow down others: logins and I/O go on", 40)
def failures_do_not_slow(env):
    weight = env.set.weight
    with env.with_daemon(locked(), head=["login-failure-delay 2000"]):
        running = Chap(env.new(LOCKED), *ALICE).login()
        running.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()
        guess(env, 4, user=MALLORY)
        attackers = [at_challenge(env, user=MALLORY, session=dict(source="127.0.0.9"))
                     for _ in range(24)]
        for c in attackers:
            c.s.send(c.s.login_pdu(text(*c.proof()), csg=0, nsg=1))
        began = time.monotonic()
        for _ in range(50):
            running.run(scsi.read10(0, 1), read=BLK, lun=env.lun0, timeout=weight).good()
        works(Chap(env.new(LOCKED, initiator=IQN + "second"), *ALICE).login(), env)
        with env.session(DISK) as s:
            s.logout()
        took = time.monotonic() - began
        assert took < 0.7 * weight, "%.1f s" % took
        for c in attackers:
            r = c.s.conn.recv(2 + 3 * weight)
            assert (r.status_class, r.status_detail) == (2, 1), repr(r)
            c.s.conn.expect_close(5)


@row("CH-32", "9.2.1", "failures lock nobody out: the right secret works after any number of wrong "
     "ones, from there and from elsewhere")
def no_lock_out(env):
    with env.with_daemon(locked(), head=["login-failure-delay 400"]):
        guess(env, 12)
        for source, limit in (("127.0.0.10", 0.4), ("127.0.0.9", 0.4)):
            began = time.monotonic()
            works(Chap(env.new(LOCKED, source=source), *ALICE).login(), env)
            took = time.monotonic() - began
            assert took < limit + 0.4 * env.set.weight, "from %s: %.1f s" % (source, took)


@row("CH-35", "9.2.1", "who hangs up while the answer is held back costs nothing, and the daemon "
     "ends at once all the same")
def gone_while_held_back(env):
    with env.with_daemon(locked(), head=["login-failure-delay 5000"]) as d:
        guess(env, 4, user=MALLORY)
        held = []
        for i in range(12):
            c = at_challenge(env, user=MALLORY, session=dict(source="127.0.0.9"))
            c.s.send(c.s.login_pdu(text(*c.proof()), csg=0, nsg=1))
            if i % 3 == 0:
                c.s.conn.reset()
            elif i % 3 == 1:
                c.s.conn.close()
            else:
                held.append(c)
        env.serves()
        began = time.monotonic()
        d.terminate()
        d.wait()
        assert time.monotonic() - began < 4 * env.set.weight
        assert d.proc.returncode == 0
