# SPDX-License-Identifier: BSD-2-Clause
"""Who sees and reaches what: access lists, what discovery tells, names (RFC 7143 4.2.7, 6.3.5, 9,
11.11, 13.23, 13.24, appendix C).  Each row starts its own daemon."""

import contextlib
import ctypes
import os
import re
import subprocess
import tempfile
import time

from harness import (DISK, Closed, IQN, MIB, P, Skip, Target, default_targets, offer, row, scsi,
                     status_of, text)
from lib.evtgt import free_port
from lib.iscsi import Silent, fresh_isid, parse_text

OWN_DAEMON = True
CLONE_NEWNET = 0x40000000


def login_status(env, name, **kw):
    s = env.new(name, **kw)
    return status_of(s, text(*s.first_pairs()), csg=1, nsg=3)


def shown(env, value="All", **kw):
    """{name: [addresses]} of SendTargets in a discovery session."""
    d = env.discovery(**kw)
    out = {}
    for k, v in d.text(text(SendTargets=value)):
        if k == "TargetName":
            name = v
            out[name] = []
        else:
            assert k == "TargetAddress", k
            out[name].append(v)
    d.logout()
    return out


def tid(d, name):
    return re.search(r"^Target (\d+): %s$" % re.escape(name),
                     d.iscsi("--op", "show", "--mode", "target"), re.M).group(1)


@contextlib.contextmanager
def own_network():
    """This process, and the daemon it starts, in a network namespace with a loopback interface."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    if libc.unshare(CLONE_NEWNET) != 0:
        os.close(home)
        raise Skip("no network namespace: " + os.strerror(ctypes.get_errno()))
    try:
        ip("link", "set", "lo", "up")
        yield
    finally:
        libc.setns(home, CLONE_NEWNET)
        os.close(home)


def ip(*args):
    subprocess.run(("ip",) + args, check=True, capture_output=True, timeout=10)


def until(what, seconds=5):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "not within %d s" % seconds
        time.sleep(0.05)


@row("AC-01", "App. C", "a target that is not discoverable is in no discovery session, not by name "
     "either; logins and its own sessions know it; a live change counts at once")
def hidden(env):
    tgts = [Target("a", []), Target("b", [], ["initiator-address ALL", "discoverable no"])]
    with env.with_daemon(tgts) as d:
        assert list(shown(env)) == [IQN + "a"]
        assert shown(env, IQN + "b") == {}
        s = env.session(IQN + "b", settle=False)
        assert ("TargetName", IQN + "b") in s.text(text(SendTargets=""))
        d.iscsi("--op", "update", "--mode", "target", "--tid", tid(d, IQN + "b"), "--name",
                "discoverable", "--value", "yes")
        assert list(shown(env)) == [IQN + "a", IQN + "b"]
        s.nop()


@row("AC-02", "App. C", "discovery-filter: by name and address, by portal, all")
def filters(env):
    me = IQN + "me"
    tgts = [Target("any", []), Target("far", [], ["initiator-address 10.0.0.0/8"]),
            Target("friend", [], ["initiator-name " + IQN + "friend*"]),
            Target("elsewhere", [], ["initiator-address ALL", "local-address 127.0.0.9"]),
            Target("off", [], ["initiator-address ALL", "state offline"])]
    for word, want, friends in (("", "any", "any friend"), ("name", "any", "any friend"),
                                ("portal", "any far friend", None), ("all", "any far friend", None)):
        with env.with_daemon(tgts, head=["discovery-filter " + word] if word else []):
            assert list(shown(env, initiator=me)) == [IQN + n for n in want.split()], word
            if friends:
                assert list(shown(env, initiator=IQN + "friend7")) == \
                    [IQN + n for n in friends.split()], word
            assert login_status(env, IQN + "far", initiator=me) == 0x0202


@row("AC-03", "11.13.5", "a target with local-address is shown and found there only")
def local_address(env):
    port = free_port("0.0.0.0")
    tgts = [Target("every", []),
            Target("two", [], ["initiator-address ALL", "local-address 127.0.0.2"])]
    with env.with_daemon(tgts, head=["portal 0.0.0.0:%d" % port]) as d:
        one, two = ("127.0.0.1", port), ("127.0.0.2", port)
        assert list(shown(env, addr=one)) == [IQN + "every"]
        got = shown(env, addr=two)
        assert got[IQN + "two"] == ["127.0.0.2:%d,1" % port], got
        assert login_status(env, IQN + "two", addr=one) == 0x0203
        assert login_status(env, IQN + "two", addr=two) == 0
        assert login_status(env, IQN + "every", addr=one) == 0
        t = ("--mode", "target", "--tid", tid(d, IQN + "two"), "--local-address", "127.0.0.1/32")
        d.iscsi("--op", "bind", *t)
        assert login_status(env, IQN + "two", addr=one) == 0
        d.iscsi("--op", "unbind", *t)
        assert login_status(env, IQN + "two", addr=one) == 0x0203


@row("AC-04", "9.3", "a rule that names an interface stands for its subnets and follows them", 40)
def interface(env):
    with own_network():
        ip("link", "add", "evt0", "type", "bridge")
        ip("addr", "add", "10.9.8.1/24", "dev", "evt0")
        ip("link", "set", "evt0", "up")
        port = free_port("0.0.0.0")
        tgts = [Target("lo", [], ["initiator-address iface:lo"]),
                Target("evt", [], ["initiator-address iface:evt0"])]

        def status(name, addr):
            return login_status(env, IQN + name, addr=(addr, port))

        with env.with_daemon(tgts, head=["portal 0.0.0.0:%d" % port]):
            assert (status("lo", "127.0.0.1"), status("evt", "127.0.0.1")) == (0, 0x0202)
            assert (status("lo", "10.9.8.1"), status("evt", "10.9.8.1")) == (0x0202, 0)
            s = env.session(IQN + "evt", addr=("10.9.8.1", port), settle=False)
            ip("addr", "add", "10.7.0.1/16", "dev", "evt0")
            until(lambda: status("evt", "10.7.0.1") == 0)
            ip("addr", "del", "10.7.0.1/16", "dev", "evt0")
            ip("addr", "add", "10.7.0.1/32", "dev", "lo")
            until(lambda: status("evt", "10.7.0.1") == 0x0202)
            until(lambda: status("lo", "10.7.0.1") == 0)
            s.nop()


@row("AC-05", "9.3", "a pattern with a set admits its members; a rule taken back or added with other "
     "letters is the same rule")
def patterns(env):
    tgts = [Target("a", [], ["initiator-name " + IQN + "Host[1-3]"])]
    with env.with_daemon(tgts) as d:
        assert login_status(env, IQN + "a", initiator=IQN + "host2") == 0
        assert login_status(env, IQN + "a", initiator=IQN + "HOST3") == 0
        assert login_status(env, IQN + "a", initiator=IQN + "host4") == 0x0202
        t = ("--mode", "target", "--tid", "1", "--initiator-name", IQN + "host[1-3]")
        assert d.iscsi("--op", "bind", *t, check=False).returncode != 0, "bound twice"
        d.iscsi("--op", "unbind", *t)
        assert login_status(env, IQN + "a", initiator=IQN + "host2") == 0x0202


@row("AC-07", "9.3", "IET's access files: initiators.deny and initiators.allow beside a target's own "
     "rules, targets.allow by local address", 40)
def access_files(env):
    port = free_port("0.0.0.0")
    me, other = IQN + "me", IQN + "other"
    tgts = [Target("a", [], ["alias x"]), Target("b", [], ["alias x"]),
            Target("own", [], ["initiator-name " + other])]

    def status(name, who=me, addr="127.0.0.1"):
        return login_status(env, IQN + name, initiator=who, addr=(addr, port))

    with tempfile.TemporaryDirectory() as d:
        def daemon(**files):
            head = ["portal 0.0.0.0:%d" % port]
            for name, lines in files.items():
                path = os.path.join(d, name)
                with open(path, "w") as f:
                    f.write("# a comment\n\n" + lines)
                head.append("%s %s" % (name.replace("_", "-"), path))
            return env.with_daemon(tgts, head=head)

        with daemon(initiators_allow="%sa ^iqn\\..*:me$, 10.0.0.0/8\nALL 127.0.0.2\n" % IQN):
            assert status("a") == 0 and status("a", other) == 0x0202
            assert status("b") == 0x0202
            assert status("own", other) == 0x0202, "both must admit"
        with daemon(initiators_deny="%sb ALL\n" % IQN, initiators_allow=""):
            assert status("a") == 0 and status("b") == 0x0202
            assert status("own", other) == 0 and status("own") == 0x0202
        with daemon(initiators_deny="", targets_allow="%sa 127.0.0.2\nALL ALL\n" % IQN):
            assert status("a") == 0x0203 and status("a", addr="127.0.0.2") == 0
            assert status("b") == 0


@row("AC-06", "4.2.7", "names: case does not matter, controls and blanks and ill-formed UTF-8 and "
     "224 bytes are refused, characters beyond ASCII are names")
def names(env):
    friend = IQN + "h\u00e9"
    tgts = [Target("a", [], ["initiator-address ALL"]),
            Target("b", [], ["initiator-name " + friend])]
    with env.with_daemon(tgts):
        assert login_status(env, (IQN + "a").upper()) == 0
        assert list(shown(env, (IQN + "a").upper())) == [IQN + "a"]

        def by(raw, target=IQN + "a"):
            s = env.new(target)
            return status_of(s, b"InitiatorName=" + raw + b"\0SessionType=Normal\0TargetName=" +
                             target.encode() + b"\0", csg=1, nsg=3)

        base = IQN.encode()
        for raw in (base + b"a b", base + b"a\n", base + b"\x7f", base + b"\xff", base + b"\xc3",
                    base + b"\xc0\xaf", base + b"\xe2\x80\x8b", base + b"\xc2\xa0", b"",
                    base + b"x" * (224 - len(base))):
            assert by(raw) >> 8 == 2, raw
        assert by(base + b"x" * (223 - len(base))) == 0
        assert by(friend.encode(), IQN + "b") == 0
        assert by(friend.upper().encode(), IQN + "b") == 0
        assert by((IQN + "he").encode(), IQN + "b") == 0x0202
        assert by((IQN + "he\u0301").encode(), IQN + "b") >> 8 == 2


@row("D-28", "11.10.4, 11.11", "2000 targets at MaxRecvDataSegmentLength 512: every one once, in "
     "pieces within the limit; clients that stop in the middle cost nothing to speak of", 90)
def many_targets(env):
    n = 2000
    names = [IQN + "many:%04d" % i for i in range(n)]
    with env.with_daemon([Target(x, []) for x in names]) as d:
        s = env.discovery(MaxRecvDataSegmentLength=512)
        began = time.monotonic()
        p = s.text_pdu(text(SendTargets="All"))
        s.send(p)
        data, pieces = b"", 0
        while True:
            r = s.expect(P.TEXT_RSP, p.itt)
            assert r.dsl <= 512, r.dsl
            data += r.data
            pieces += 1
            if r.final:
                assert r.ttt == P.NONE and not r.flags & 0x40, repr(r)
                break
            assert r.ttt != P.NONE and r.flags & 0x40 and r.dsl > 256, repr(r)
            s.send(s.text_pdu(itt=p.itt, ttt=r.ttt))
        assert [v for k, v in parse_text(data) if k == "TargetName"] == names
        assert pieces > n // 10
        took = time.monotonic() - began
        assert took < 15 * env.set.weight, "%.1f s" % took
        halves = [env.discovery(MaxRecvDataSegmentLength=512) for _ in range(100)]
        before = rss(d)
        for h in halves:
            p = h.text_pdu(text(SendTargets="All"))
            h.send(p)
            assert not h.expect(P.TEXT_RSP, p.itt).final
        grown = rss(d) - before
        assert grown < 4 * MIB * env.set.weight, "%d bytes" % grown  # 16 MiB of answers
        assert len(shown(env)) == n


def rss(d):
    with open("/proc/%d/status" % d.proc.pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) * 1024


@row("D-29", "6.3.1", "SendTargets before the login and in the middle of it is not answered")
def before_login(env):
    with env.with_daemon(default_targets()):
        for begun in (False, True):
            s = env.new(None, discovery=True)
            if begun:
                s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
            s.send(s.text_pdu(text(SendTargets="All")))
            try:
                while True:
                    r = s.recv(3)
                    assert r.opcode == P.LOGIN_RSP and r.status_class and b"Target" not in r.data, \
                        repr(r)
            except Closed:
                pass


@row("I-09", "6.3.5", "a login refused by the access list leaves the session of its name and ISID "
     "alone, as does one held at its last step")
def refused_beside(env):
    with env.with_daemon(default_targets()) as d:
        a = env.session()
        held = env.new(isid=a.isid)
        held.must(held.login_step(text(*held.first_pairs()), csg=0, nsg=1))
        held.must(held.login_step(text(*held.op_pairs()), csg=1, t=False))
        a.run(scsi.TEST_UNIT_READY, lun=0).good()
        t = ("--mode", "target", "--tid", tid(d, DISK), "--initiator-address")
        d.iscsi("--op", "unbind", *t, "ALL")
        assert login_status(env, DISK, isid=a.isid) == 0x0202
        a.run(scsi.TEST_UNIT_READY, lun=0).good()
        assert status_of(held, b"", csg=1, nsg=3) == 0x0202, "the rule went during the login"
        a.run(scsi.TEST_UNIT_READY, lun=0).good()
        d.iscsi("--op", "bind", *t, "ALL")
        b = env.session(isid=a.isid, settle=False)
        a.conn.expect_close(5)
        b.nop()


@row("I-10", "6.3.5, 11.12.5", "a login that changes its ISID, TSIH or CID on the way is refused; the "
     "sessions of both ISIDs are unharmed")
def isid_changed(env):
    with env.with_daemon(default_targets()):
        a, b = env.session(cid=1), env.session(cid=1)
        for change in ({"isid": b.isid}, {"tsih": b.tsih}, {"cid": 9}):
            s = env.new(isid=fresh_isid())
            s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
            p = s.login_pdu(csg=1, nsg=3, **change)
            s.send(p)
            r = s.recv()
            assert r.opcode == P.LOGIN_RSP and r.status_class == 2, repr(r)
            s.conn.expect_close(5)
        wrong = env.new(isid=b.isid, tsih=a.tsih, cid=1)
        assert status_of(wrong, text(*wrong.first_pairs()), csg=1, nsg=3) >> 8 == 2
        for s in (a, b):
            s.run(scsi.TEST_UNIT_READY, lun=0).good()
            s.nop()


@row("V-09", "13.23", "TaskReporting: only semantics that are held are agreed to; RFC3720 otherwise; "
     "irrelevant in discovery")
def task_reporting(env):
    with env.with_daemon(default_targets()):
        for value, want in (("RFC3720", "RFC3720"), ("FastAbort,ResponseFence,RFC3720", "RFC3720"),
                            ("FastAbort,ResponseFence", "Reject"), ("X-com.example.y", "Reject")):
            r, got = offer(env, ("TaskReporting", value))
            assert got and got["TaskReporting"] == want, (value, got)
        r, got = offer(env, ("TaskReporting", "RFC3720"), target=None, discovery=True)
        assert got and got["TaskReporting"] == "Irrelevant", got


@row("V-10", "13.24; RFC 7144 7.1.1", "iSCSIProtocolLevel: the lesser of both, what is out of range "
     "refused, irrelevant in discovery, settled once the session stands")
def protocol_level(env):
    with env.with_daemon(default_targets()):
        for value, want in (("0", "0"), ("1", "1"), ("2", "2"), ("31", "2"), ("0x1f", "2")):
            r, got = offer(env, ("iSCSIProtocolLevel", value))
            assert got and got["iSCSIProtocolLevel"] == want, (value, got)
        for value in ("32", "-1", "01", "two"):
            r, got = offer(env, ("iSCSIProtocolLevel", value))
            assert got is None or got["iSCSIProtocolLevel"] == "Reject", (value, got)
        r, got = offer(env, ("iSCSIProtocolLevel", "2"), target=None, discovery=True)
        assert got and got["iSCSIProtocolLevel"] == "Irrelevant", got
        s = env.session()
        for k, v in (("iSCSIProtocolLevel", "2"), ("TaskReporting", "FastAbort")):
            assert s.text(text((k, v))) == [(k, "Reject")]
        try:
            assert s.tmf(9, lun=0) in (5, 255)
        except (Closed, Silent, AssertionError) as e:
            raise AssertionError("QUERY TASK at level 1: %s" % e) from e
