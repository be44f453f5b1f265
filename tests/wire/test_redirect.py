# SPDX-License-Identifier: BSD-2-Clause
"""Redirection of logins (RFC 7143 6.3.1, 11.13.5, 13.8), draining, and the Asynchronous Messages
that ask an initiator for something (11.9).  Each row starts its own daemon."""

import os
import re
import select
import time

from harness import (BLK, Closed, DISK, IQN, OTHER, P, SOLICITED, Target, default_targets, fill,
                     read_back, row, scsi, text, write_waiting)
from lib.evtgt import free_port
from lib.iscsi import parse_text
from test_daemon import disk, login_status, tid

OWN_DAEMON = True
OK, TEMPORARY, PERMANENT, REFUSED, UNAVAILABLE = 0, 0x0101, 0x0102, 0x0202, 0x0301
MDSL = "MaxRecvDataSegmentLength"


def login(env, target=DISK, csg=1, nsg=3, extra=(), **kw):
    """(status, TargetAddress or None) of a login's first answer; a close must follow what is not
    success, and a redirection must have T=0 and at least one TargetAddress (11.13.5)."""
    s = env.new(target, **kw)
    r = s.login_step(text(*(s.first_pairs() + list(extra))), csg=csg, nsg=nsg)
    st = r.status_class << 8 | r.status_detail
    pairs = parse_text(r.data)
    to = [v for k, v in pairs if k == "TargetAddress"]
    if st:
        s.conn.expect_close(5)
    if r.status_class == 1:
        assert not r.flags & 0x80, "T in a redirection"
        assert to, "no TargetAddress in a redirection"
        assert len(pairs) == 1, "more than the address is told: %r" % pairs
        # 13.8: in a redirection "the comma and portal group tag MUST be omitted"
        assert "," not in to[0], to[0]
    else:
        assert not to, "TargetAddress in status %04x" % st
    return st, to[0] if to else None


def targets(*opts):
    return [Target("disk", [disk()], ["initiator-address ALL"] + list(opts)),
            Target("other", [disk("o.img")])]


def update(env, target=DISK, check=True, **kw):
    """`--op update` of these names and values, all at once."""
    return env.d.iscsi("--op", "update", "--mode", "target", "--tid", tid(env, target), "--params",
                       ",".join("%s=%s" % i for i in kw.items()), check=check)


# A program that says it runs, then waits for a file; ends with the test in any case.
WAIT = "%s; while [ -d %s ] && [ ! -e %s ]; do sleep 0.05; done\n"


def program(env, name, body):
    path = env.d.path(name)
    with open(path, "w") as f:
        f.write("#!/bin/sh\n" + body)
    os.chmod(path, 0o755)
    os.chmod(env.d.dir, 0o777)  # it runs as the daemon's user, and writes there
    return path


def runs(pid):
    """Within a second it must have ended, reaped or not."""
    for _ in range(20):
        try:
            with open("/proc/%d/stat" % pid) as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return False
        except OSError:
            return False
        time.sleep(0.05)
    return True


@row("A-01 A-02", "11.13.5", "a redirecting target: 0101 or 0102 with TargetAddress, then close; "
     "other targets and discovery are as ever")
def static_redirection(env, case):
    reason, want = (("Temporary", TEMPORARY) if case == "A-01" else ("Permanent", PERMANENT))
    with env.with_daemon(targets("RedirectAddress 192.0.2.7", "RedirectPort 3261",
                                 "RedirectReason " + reason)):
        assert login(env) == (want, "192.0.2.7:3261")
        assert login(env, csg=0, nsg=1) == (want, "192.0.2.7:3261")
        env.session(OTHER).nop()
        s = env.discovery()
        names = [v for k, v in s.text(text(("SendTargets", "All"))) if k == "TargetName"]
        assert DISK in names and OTHER in names, names
        assert login(env, tsih=0x1234) == (want, "192.0.2.7:3261")


@row("A-08", "13.8", "addresses: IPv6 in brackets, host names, the default port; nonsense is "
     "refused and changes nothing")
def addresses(env):
    with env.with_daemon(targets()):
        for given, want in (("192.0.2.7", "192.0.2.7:3260"), ("2001:db8::7", "[2001:db8::7]:3260"),
                            ("[2001:db8:0:0::7]", "[2001:db8::7]:3260"),
                            ("[2001:db8::7]:99", "[2001:db8::7]:99"),
                            ("store.example.com", "store.example.com:99")):
            update(env, RedirectAddress=given)
            assert login(env) == (TEMPORARY, want), given
        update(env, RedirectPort="3260")
        for bad in ("0.0.0.0", "::", "1.2.3", "[2001:db8::7", "a b", "192.0.2.7:0", "-x", "a_b:1",
                    "192.0.2.7:99999", "fe80::1%lo"):
            out = update(env, check=False, RedirectAddress=bad)
            assert out.returncode != 0, bad
            assert "RedirectAddress" in out.stderr, out.stderr
        for kw in (dict(RedirectPort="0"), dict(RedirectPort="x"), dict(RedirectReason="soon"),
                   dict(RedirectCallback="relative"),
                   {"redirect-initiator": "10.0.0.0/99 192.0.2.1"},
                   {"redirect-initiator": "10.0.0.1"}):
            assert update(env, check=False, **kw).returncode != 0, kw
        assert login(env) == (TEMPORARY, "store.example.com:3260")
        update(env, RedirectAddress="none")
        assert login(env)[0] == OK


@row("A-09", "11.13.5, 9.3", "whom the access list does not admit is refused and hears no address")
def not_for_strangers(env):
    tgt = [Target("disk", [disk()], ["initiator-name " + IQN + "friend",
                                     "RedirectAddress 192.0.2.7"])]
    with env.with_daemon(tgt):
        assert login(env, initiator=IQN + "stranger") == (REFUSED, None)
        assert login(env, initiator=IQN + "friend") == (TEMPORARY, "192.0.2.7:3260")


@row("A-10", "6.3.5, 11.13.5", "a redirected login does not touch the session that is there")
def session_stays(env):
    with env.with_daemon(targets()):
        s = env.session(**SOLICITED)
        t, r2t, data = write_waiting(s, 0)
        update(env, RedirectAddress="192.0.2.7")
        assert login(env, isid=s.isid, initiator=s.initiator) == (TEMPORARY, "192.0.2.7:3260")
        s.data_out(t, 0, r2t.desired, r2t.ttt)
        s.wait(t).good()
        s.nop()


@row("A-11", "11.13.5", "initiators by name, pattern or address, each to its own place; one stays")
def per_initiator(env):
    with env.with_daemon(targets("RedirectAddress 192.0.2.1",
                                 "redirect-initiator %shere here" % IQN,
                                 "redirect-initiator %sa* 192.0.2.2:77 Permanent" % IQN,
                                 "redirect-initiator 10.0.0.0/8 192.0.2.3",
                                 "redirect-initiator 127.0.0.0/8 [2001:db8::3]")):
        assert login(env, initiator=IQN + "here")[0] == OK
        assert login(env, initiator=IQN + "abc") == (PERMANENT, "192.0.2.2:77")
        assert login(env, initiator=IQN + "zzz") == (TEMPORARY, "[2001:db8::3]:3260")
        update(env, **{"redirect-initiator": "127.0.0.0/8 none"})
        assert login(env, initiator=IQN + "zzz") == (TEMPORARY, "192.0.2.1:3260")


@row("A-12", "11.13.5", "an address at which the login came in is none: two portals, one target "
     "at one of them")
def no_circles(env):
    port = free_port()
    with env.with_daemon(targets("RedirectAddress 127.0.0.1", "RedirectPort %d" % port),
                         head=["portal 127.0.0.1:%d" % port]):
        st, to = login(env)
        assert (st, to) == (TEMPORARY, "127.0.0.1:%d" % port)
        s = env.session(addr=("127.0.0.1", port))
        s.run(scsi.read10(0, 1), read=BLK, lun=0).good()


@row("BR-15", "11.13.5", "a redirection comes in the first response, before authentication, "
     "whatever methods are offered")
def before_authentication(env):
    with env.with_daemon(targets("incominguser joe secret-of-joe-1")):
        keys = [("AuthMethod", "CHAP,None")]
        update(env, RedirectCallback=program(env, "stay", "echo\n"))
        s = env.new()
        r = s.login_step(text(*(s.first_pairs() + keys)), csg=0, t=False)
        s.must(r)
        assert dict(parse_text(r.data)).get("AuthMethod") == "CHAP", "the secret is not asked for"
        assert login(env, csg=1)[0] >> 8 == 2, "in without the secret"
        update(env, RedirectCallback="none", RedirectAddress="192.0.2.7")
        for methods in ("CHAP", "CHAP,None", "None"):
            assert login(env, csg=0, nsg=1, extra=[("AuthMethod", methods)]) == (
                TEMPORARY, "192.0.2.7:3260"), methods


@row("A-13", "11.13.5", "a program says where: its arguments, its answers; an empty one leaves it "
     "to RedirectAddress", 40)
def callback(env):
    with env.with_daemon(targets("RedirectReason Permanent")) as d:
        seen = d.path("seen")
        prog = program(env, "where", 'echo "$# $1 $2 $3 $EVTGT_INITIATOR" >> %s; cat %s\n' % (
            seen, d.path("answer")))
        update(env, RedirectCallback=prog + " fixed")
        for said, want in (("192.0.2.9:77:Temporary\n", (TEMPORARY, "192.0.2.9:77")),
                           ("[2001:db8::9]:77:Permanent\n", (PERMANENT, "[2001:db8::9]:77")),
                           ("192.0.2.9:77:5:Permanent\n", (PERMANENT, "192.0.2.9:77")),
                           ("192.0.2.9:3260:temporary \r\nmore\n", (TEMPORARY, "192.0.2.9:3260")),
                           ("\n", (OK, None)), ("", (OK, None)),
                           ("nonsense: \n", (UNAVAILABLE, None)),
                           ("error\n", (UNAVAILABLE, None)),
                           ("192.0.2.9\n", (UNAVAILABLE, None)),
                           ("192.0.2.9:77\n", (UNAVAILABLE, None)),
                           ("192.0.2.9:Temporary\n", (UNAVAILABLE, None)),
                           ("192.0.2.9:77:Never\n", (UNAVAILABLE, None)),
                           ("192.0.2.9:77:1:2:3:Temporary\n", (UNAVAILABLE, None)),
                           ("x" * 5000 + "\n", (UNAVAILABLE, None))):
            with open(d.path("answer"), "w") as f:
                f.write(said)
            got = login(env, initiator=IQN + "asker")
            assert got == want, "%r: %r" % (said[:40], got)
        with open(seen) as f:
            lines = set(f.read().splitlines())
        assert lines == {"3 fixed %s 127.0.0.1 %sasker" % (DISK, IQN)}, lines
        update(env, RedirectAddress="192.0.2.1")
        with open(d.path("answer"), "w") as f:
            f.write("")
        assert login(env) == (PERMANENT, "192.0.2.1:3260")
        full = env.session(OTHER)
        full.nop()


@row("A-14", "11.13.5", "a program that fails, is missing, hangs or leaves something behind: 0301, "
     "in time, and the worker serves on meanwhile", 60)
def callback_fails(env):
    with env.with_daemon(targets(), head=["redirect-timeout 2"]) as d:
        s = env.session()
        for body in ("echo 192.0.2.9:77:Temporary; exit 3\n", "kill -9 $$\n", "exec >&-; exit 1\n"):
            update(env, RedirectCallback=program(env, "bad", body))
            assert login(env) == (UNAVAILABLE, None), body
        update(env, RedirectCallback=d.path("missing"))
        assert login(env) == (UNAVAILABLE, None)
        update(env, RedirectCallback=program(
            env, "leaves", "sleep 30 & echo $! > %s; echo 192.0.2.9:77:Temporary\n" %
            d.path("left")))
        assert login(env) == (TEMPORARY, "192.0.2.9:77")
        with open(d.path("left")) as f:
            os.kill(int(f.read()), 9)
        update(env, RedirectCallback=program(env, "hang", "echo $$ > %s; sleep 30; echo\n" %
                                             d.path("pid")))
        began = time.monotonic()
        waiting = [env.new() for _ in range(3)]
        for w in waiting:
            w.send(w.login_pdu(text(*w.first_pairs())))
        for _ in range(5):
            s.nop(timeout=0.7)
        for w in waiting:
            r = w.recv(5)
            assert (r.status_class, r.status_detail) == (3, 1), repr(r)
            w.conn.expect_close(3)
        assert 1.5 < time.monotonic() - began < 6
        with open(d.path("pid")) as f:
            pid = int(f.read())
        assert not runs(pid), "the program still runs"


@row("A-15", "11.13.5", "a connection that ends, sends more or comes again while a program is "
     "asked; SIGTERM kills the program", 60)
def callback_races(env):
    with env.with_daemon(targets(), head=["redirect-timeout 20", "shutdown-timeout 1"]) as d:
        go = d.path("go")
        prog = program(env, "wait", WAIT % (
            "echo $$ > " + d.path("pid"), d.dir, go))
        update(env, RedirectCallback=prog)
        gone, more, ok = env.new(), env.new(), env.new()
        for s in (gone, more, ok):
            s.send(s.login_pdu(text(*s.first_pairs())))
        gone.conn.reset()
        more.send(more.login_pdu(text(*more.first_pairs())))
        time.sleep(0.3)
        open(go, "w").close()
        assert ok.recv(5).flags & 0x80, "the login does not go on"
        ok.nop()
        try:
            more.recv(5)  # the login; then the request in full feature phase
            more.recv(5)
        except Closed:
            pass
        os.unlink(go)
        late = env.new()
        late.send(late.login_pdu(text(*late.first_pairs())))
        time.sleep(0.5)
        with open(d.path("pid")) as f:
            pid = int(f.read())
        d.terminate()
        assert d.wait(10) == 0
        assert not runs(pid), "the program outlives the daemon"


@row("A-23", "11.13.5", "a program that never stops printing: 0301 in time, and it is ended; the next "
     "one is asked", 40)
def callback_floods(env):
    with env.with_daemon(targets(), head=["redirect-timeout 1"]) as d:
        update(env, RedirectCallback=program(env, "flood", "echo $$ >> %s; for i in 1 2 3; do yes 192.0.2.9 & done; exec yes 192.0.2.9\n" %
                                             d.path("pids")))
        for _ in range(2):
            waiting = [env.new() for _ in range(4)]  # as many as run at once
            for w in waiting:
                w.send(w.login_pdu(text(*w.first_pairs())))
            for w in waiting:
                r = w.recv(6)
                assert (r.status_class, r.status_detail) == (3, 1), repr(r)
                w.conn.expect_close(3)
        with open(d.path("pids")) as f:
            pids = [int(p) for p in f]
        assert pids and not any(runs(p) for p in pids), "a program still runs"
        update(env, RedirectCallback=program(env, "quick", "echo\n"))
        assert login(env)[0] == OK


@row("A-24", "11.13.5", "logins of one address that wait for the program leave room for others; for "
     "one that is over it is not run", 60)
def callback_shares(env):
    with env.with_daemon(targets(), head=["redirect-timeout 20", "login-timeout 4",
                                          "shutdown-timeout 1"]) as d:
        update(env, RedirectCallback=program(
            env, "wait", WAIT % (
                "echo >> " + d.path("ran"), d.dir, d.path("go"))))
        began = time.monotonic()
        many = [env.new() for _ in range(200)]
        for w in many:
            w.send(w.login_pdu(text(*w.first_pairs())))
        time.sleep(max(0, began + 2.5 - time.monotonic()))
        ready = select.select([w.conn.sock for w in many], [], [], 0)[0]
        refused = [w for w in many if w.conn.sock in ready]
        assert len(refused) == 200 - 128, "half of all that may wait: %d refused" % len(refused)
        for w in refused:
            r = w.recv(5)
            assert (r.status_class, r.status_detail) == (3, 2), repr(r)
        other = env.new(source="127.0.0.9")
        other.send(other.login_pdu(text(*other.first_pairs())))
        for w in many:
            w.conn.expect_close(6)  # the login's time is over
        open(d.path("go"), "w").close()
        assert other.recv(5).flags & 0x80, "no room for a login of another address"
        with open(d.path("ran")) as f:
            assert len(f.readlines()) <= 8, "programs ran for logins that are over"


# ---- draining --------------------------------------------------------------------------------

def drain(env, target=DISK, op="drain", check=True, **params):
    where = ["--mode", "system"] if target is None else [
        "--mode", "target", "--tid", tid(env, target)]
    if params:
        where += ["--params", ",".join("%s=%s" % i for i in params.items())]
    return env.d.iscsi("--op", op, *where, check=check)


@row("A-16 A-17", "11.9.1, 11.13.5", "drain of a target or of all: sessions are asked to log out "
     "within Parameter3 seconds and serve until then; new logins go elsewhere", 40)
def draining(env, case):
    with env.with_daemon(targets()):
        everything = case == "A-17"
        a, b = env.session(), env.session(OTHER)
        drain(env, None if everything else DISK, to="192.0.2.7:99", deadline="60")
        for s in (a, b) if everything else (a,):
            p = s.expect(P.ASYNC)
            assert p.event == 1 and p.param3 == 60 and p.flags == 0x80, repr(p)
            assert p.itt == 0xFFFFFFFF and not any(p.bhs[8:16]) and p.vcode == 0, repr(p)
            assert not p.param1 and not p.param2 and p.dsl == 0, repr(p)
        assert login(env) == (TEMPORARY, "192.0.2.7:99")
        assert login(env, OTHER) == ((TEMPORARY, "192.0.2.7:99") if everything else (OK, None))
        for s in (a, b):
            s.run(scsi.read10(0, 1), read=BLK, lun=0).good()
        said = "Drained: new logins are sent to 192.0.2.7:99\n"
        assert env.d.iscsi("--op", "show", "--mode", "target").count(said) == (2 if everything else 1)
        assert (said in env.d.iscsi("--op", "show", "--mode", "system")) == everything
        a.logout()
        assert drain(env, None if everything else DISK, "undrain") == ""
        env.session().nop()
        assert drain(env, None if everything else DISK, "undrain", check=False).returncode != 0


@row("A-18", "11.9.1", "who does not log out in time is dropped with event 3; without an address "
     "logins are answered 0301", 40)
def drain_deadline(env):
    with env.with_daemon(targets()):
        s, o = env.session(**SOLICITED), env.session(OTHER)
        write_waiting(s, 0)
        drain(env, deadline="1")
        began = time.monotonic()
        assert s.expect(P.ASYNC).event == 1
        assert login(env) == (UNAVAILABLE, None)
        seen = s.conn.expect_close(5)
        assert [p.event for p in seen] == [3], seen
        assert (seen[0].param2, seen[0].param3) == (0, 0)
        assert 0.5 < time.monotonic() - began < 4
        o.nop()
        drain(env, op="undrain")
        env.session().nop()


@row("A-19", "11.9.1", "undrain calls the deadline off; a second drain sets another", 40)
def undrain(env):
    with env.with_daemon(targets()):
        s = env.session()
        drain(env, deadline="1")
        assert s.expect(P.ASYNC).event == 1
        drain(env, op="undrain")
        s.quiet(1.8)
        s.nop()
        drain(env, deadline="50")
        assert s.expect(P.ASYNC).param3 == 50
        drain(env, deadline="40")
        assert s.expect(P.ASYNC).param3 == 40
        for bad in (dict(deadline="x"), dict(deadline="99999999"), dict(to="::"), dict(foo="1")):
            assert drain(env, check=False, **bad).returncode != 0, bad
        s.quiet(0.2)
        s.logout()


# ---- what the target asks for ----------------------------------------------------------------

def sid_of(env, target=DISK):
    out = env.d.iscsi("--op", "show", "--mode", "conn", "--tid", tid(env, target))
    return re.search(r"Session: (\d+)", out).group(1)


def renegotiate(env, seconds):
    env.d.iscsi("--op", "renegotiate", "--mode", "session", "--tid", tid(env, DISK), "--sid",
                sid_of(env), "--params", "deadline=%d" % seconds)


@row("A-06", "11.9.1", "event 4 with Parameter3: the target waits for a Text Request, declares its "
     "new MaxRecvDataSegmentLength and takes segments of that size", 30)
def new_parameters(env):
    tgt = [Target("disk", [disk()], ["initiator-address ALL", MDSL + " 8192", "InitialR2T No",
                                     "ImmediateData Yes", "FirstBurstLength 65536"])]
    with env.with_daemon(tgt):
        s = env.session(InitialR2T="No", ImmediateData="Yes")
        update(env, **{MDSL: "32768"})
        s.quiet(0.2)  # nothing is said unless somebody asks for it
        renegotiate(env, 30)
        p = s.expect(P.ASYNC)
        assert p.event == 4 and p.param3 == 30, repr(p)
        s.run(scsi.read10(0, 1), read=BLK, lun=0).good()
        s.seen_keys = []
        got = s.text(text((MDSL, "16384")))
        assert dict(got).get(MDSL) == "32768", got
        s.target_mrdsl = 32768
        data = scsi.pattern(64 * BLK, 6)
        s.run(scsi.write10(0, 64), write=data, lun=0).good()
        assert read_back(env, 0, 64) == data
        assert dict(s.text(text((MDSL, "16384")))).get(MDSL) is None, "declared again unasked"
        s.quiet(0.2)
        s.nop()


@row("A-20", "11.9.1", "no Text Request within Parameter3 seconds: event 2 with the CID, then the "
     "connection is dropped", 30)
def no_text_request(env):
    with env.with_daemon(targets()):
        s = env.session(cid=11)
        renegotiate(env, 1)
        assert s.expect(P.ASYNC).event == 4
        seen = s.conn.expect_close(5)
        assert [p.event for p in seen] == [2] and seen[0].param1 == 11, seen
        assert (seen[0].param2, seen[0].param3) == (0, 0)
        env.serves()
        out = env.d.iscsi("--op", "renegotiate", "--mode", "session", "--tid", tid(env, DISK),
                          "--sid", "9999", check=False)
        assert out.returncode != 0


@row("A-21", "11.9", "a session ended by administration and a removed target: event 3, then close",
     30)
def session_deleted(env):
    with env.with_daemon(targets()) as d:
        s, o = env.session(), env.session(OTHER)
        d.iscsi("--op", "delete", "--mode", "session", "--tid", tid(env, DISK), "--sid",
                sid_of(env))
        assert [p.event for p in s.conn.expect_close(5)] == [3]
        d.iscsi("--op", "delete", "--mode", "target", "--force", "--tid", tid(env, OTHER))
        assert [p.event for p in o.conn.expect_close(5)] == [3]


@row("A-22", "11.9", "an Asynchronous Message takes a StatSN of its own", 30)
def numbering(env):
    with env.with_daemon(targets()):
        s = env.session()
        before = s.exp_stat_sn
        drain(env, deadline="60")
        p = s.expect(P.ASYNC)
        assert p.stat_sn == before, "StatSN %08x, expected %08x" % (p.stat_sn, before)
        r = s.run(scsi.TEST_UNIT_READY, lun=0).good()
        assert r.rsp.stat_sn == (before + 1) & 0xFFFFFFFF
