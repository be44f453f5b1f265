# SPDX-License-Identifier: BSD-2-Clause
"""Portals: groups and their tags, targets bound to them, what is announced, changes while the
daemon runs, addresses that cannot be had at the start.  Each row starts its own daemon."""

import os
import re
import socket

from harness import DISK, IQN, Lun, MIB, Target, row, scsi, text
from lib.evtgt import Daemon, Failed, free_port

OWN_DAEMON = True


def disk(path="a.img"):
    return Lun(path, 4 * MIB, 0, kind="file")


def bound(name, *opts):
    return Target(name, [disk(name + ".img")], ["initiator-address ALL"] + list(opts))


def first_answer(env, addr, target, **kw):
    """Status and the target's keys of a first login request."""
    s = env.new(target, addr=addr, **kw)
    r = s.login_step(text(*s.first_pairs()), csg=1, nsg=3)
    keys = dict(s.take_text(r.data)) if r.status_class == 0 else {}
    return r.status_class << 8 | r.status_detail, keys


def told(env, addr, what="All"):
    """{target: [addresses]} as SendTargets tells it there."""
    out, name = {}, None
    d = env.new(None, discovery=True, addr=addr).login()
    for k, v in d.text(text(SendTargets=what)):
        if k == "TargetName":
            name = v
            out[name] = []
        elif k == "TargetAddress":
            out[name].append(v)
    d.logout()
    return out


def spare_port():
    """Of a second portal: not the one that the daemon under test chooses."""
    return free_port()


@row("PG-01", "13.8, 13.9, C", "a target is discovered and reached through the portals of its "
     "groups only; TargetPortalGroupTag and the tags of SendTargets are those of the portals")
def groups(env):
    p2, p3 = spare_port(), spare_port()
    head = ["<portal 127.0.0.1:%d>" % p2, "    group 2", "</portal>",
            "<portal 127.0.0.1:%d>" % p3, "    group 65535", "</portal>"]
    mk = [bound("any"), bound("one", "portal-group 1"), bound("two", "portal-group 2"),
          bound("both", "portal-group 1", "portal-group 2"),
          bound("named", "portal 127.0.0.1:%d" % p3)]
    with env.with_daemon(mk, head=head):
        ways = {1: env.addr, 2: ("127.0.0.1", p2), 65535: ("127.0.0.1", p3)}
        serves = {"any": (1, 2, 65535), "one": (1,), "two": (2,), "both": (1, 2),
                  "named": (65535,)}
        for tag, addr in ways.items():
            got = told(env, addr)
            want = sorted(IQN + n for n, tags in serves.items() if tag in tags)
            assert sorted(got) == want, "through group %d: %s" % (tag, sorted(got))
            for n, tags in serves.items():
                status, keys = first_answer(env, addr, IQN + n)
                if tag not in tags:
                    assert status == 0x0203, "%s through group %d: %04x" % (n, tag, status)
                    assert told(env, addr, IQN + n) == {}, "%s through group %d" % (n, tag)
                    continue
                assert status == 0, "%s through group %d: %04x" % (n, tag, status)
                assert keys["TargetPortalGroupTag"] == str(tag), keys
                all_of = ["%s:%d,%d" % (ways[t] + (t,)) for t in tags]
                assert sorted(got[IQN + n]) == sorted(all_of), (n, got[IQN + n])
                assert got[IQN + n][0] == "%s:%d,%d" % (addr + (tag,)), \
                    "not the known way first: %s" % got[IQN + n]


@row("PG-02", "4.4.3.1, 6.3.5", "the same name and ISID through another portal group is another "
     "session, through the same group a reinstatement")
def session_per_group(env):
    p2 = spare_port()
    head = ["<portal 127.0.0.1:%d>" % p2, "    group 2", "</portal>"]
    with env.with_daemon([bound("disk")], head=head):
        isid = b"\x80\x00\x00\x00\x12\x34"
        one = env.session(isid=isid)
        two = env.session(isid=isid, addr=("127.0.0.1", p2))
        one.run(scsi.TEST_UNIT_READY, lun=0).good()
        two.run(scsi.TEST_UNIT_READY, lun=0).good()
        again = env.session(isid=isid, addr=("127.0.0.1", p2))
        one.run(scsi.TEST_UNIT_READY, lun=0).good()
        again.run(scsi.TEST_UNIT_READY, lun=0).good()
        two.conn.expect_close(5)


@row("PG-03", "13.8", "a portal's advertised address is told instead of its own, with its tag")
def advertised(env):
    p2 = spare_port()
    head = ["<portal 127.0.0.1:%d>" % p2, "    advertise san.example.com:13260", "    group 3",
            "</portal>"]
    with env.with_daemon([bound("disk")], head=head):
        got = told(env, ("127.0.0.1", p2))[DISK]
        assert got == ["san.example.com:13260,3", "%s:%d,1" % env.addr], got
        got = told(env, env.addr)[DISK]
        assert got == ["%s:%d,1" % env.addr, "san.example.com:13260,3"], got


@row("PG-04", "13.9, C", "portals added and removed live: found and reached at once, gone from "
     "SendTargets afterwards; connections that were made stay")
def live(env):
    with env.with_daemon([bound("disk"), bound("two")]) as d:
        p2 = spare_port()
        extra = ("127.0.0.1", p2)
        old = env.session()
        d.iscsi("--op", "new", "--mode", "portal", "--param",
                "portal=127.0.0.1:%d,group=2,advertise=192.0.2.9" % p2)
        show = d.iscsi("--op", "show", "--mode", "portal")
        assert "Portal: 127.0.0.1:%d,2\n    Advertised as: 192.0.2.9:%d\n" % (p2, p2) in show, show
        assert "192.0.2.9:%d,2" % p2 in told(env, env.addr)[DISK]
        new = env.session(addr=extra)
        tid = re.search(r"^Target (\d+): %stwo$" % re.escape(IQN),
                        d.iscsi("--op", "show", "--mode", "target"), re.M).group(1)
        bind = ("--mode", "target", "--tid", tid, "--params", "portal-group=2")
        d.iscsi("--op", "bind", *bind)
        assert "    Portals:\n        group 2\n" in d.iscsi("--op", "show", "--mode", "target")
        assert sorted(told(env, env.addr)) == [DISK]
        assert sorted(told(env, extra)) == [DISK, IQN + "two"]
        assert first_answer(env, env.addr, IQN + "two")[0] == 0x0203
        for wrong in ("portal-group=9", "portal=127.0.0.1:1", "portal=nonsense", "portal-group=x"):
            out = d.iscsi("--op", "bind", "--mode", "target", "--tid", tid, "--params", wrong,
                          check=False)
            assert out.returncode, wrong
        assert d.iscsi("--op", "bind", *bind, check=False).returncode
        d.iscsi("--op", "unbind", *bind)
        assert d.iscsi("--op", "unbind", *bind, check=False).returncode
        assert sorted(told(env, env.addr)) == [DISK, IQN + "two"]
        d.iscsi("--op", "delete", "--mode", "portal", "--param", "portal=127.0.0.1:%d" % p2)
        assert told(env, env.addr)[DISK] == ["%s:%d,1" % env.addr]
        try:
            socket.create_connection(extra, 1).close()
        except OSError:
            pass
        else:
            raise AssertionError("a portal that was removed accepts")
        for s in (old, new):
            s.run(scsi.TEST_UNIT_READY, lun=0).good()
        out = d.iscsi("--op", "new", "--mode", "portal", "--param", "portal=192.0.2.77:3999",
                      check=False)
        assert out.returncode and "192.0.2.77:3999" in out.stderr and \
            os.strerror(99) in out.stderr, out.stderr


def fails_to_start(env, head, *words):
    """The daemon must end with a message that has these words; gives the message."""
    env.d = Daemon([bound("disk")], env.set, head=head)
    try:
        env.d.start()
    except Failed as e:
        why = str(e)
        for w in words:
            assert w in why, "no \"%s\" in: %s" % (w, why)
        return why
    finally:
        env.d.cleanup()
    raise AssertionError("starts with " + " ".join(head))


@row("PG-05", "-", "an address that is in use ends the start: which portal, where it is written, "
     "why, and who has it; nothing is served elsewhere instead")
def in_use(env):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(1)
        name = "127.0.0.1:%d" % s.getsockname()[1]
        fails_to_start(env, ["portal " + name], "evtgt.conf:1:1: ", "portal " + name,
                       os.strerror(98), "(process %d)" % os.getpid())
        fails_to_start(env, ["# a comment", "<portal %s>" % name, "group 2", "</portal>"],
                       "evtgt.conf:2:1: ", "portal " + name, os.strerror(98))
    with socket.socket(socket.AF_INET6) as s:
        try:
            s.bind(("::1", 0))
        except OSError:
            return  # no IPv6
        s.listen(1)
        fails_to_start(env, ["portal [::1]:%d" % s.getsockname()[1]], os.strerror(98),
                       "(process %d)" % os.getpid())


@row("PG-06", "-", "an address that no interface has yet does not keep the daemon from starting: it "
     "is named in the log and shown as absent, and not told to initiators")
def not_there_yet(env):
    head = ["portal 192.0.2.77:3999", "portal [2001:db8::77]:3999", "portal iface:nosuch0:3999"]
    with env.with_daemon([bound("disk")], head=head) as d:
        assert told(env, env.addr)[DISK] == ["%s:%d,1" % env.addr]
        show = d.iscsi("--op", "show", "--mode", "portal")
        log = d.tail(5000)
        for name in ("192.0.2.77:3999", "[2001:db8::77]:3999", "iface:nosuch0:3999"):
            assert "Portal: %s,1\n    State: no interface" % name in show, show
            assert re.search("portal-absent .*=.?%s" % re.escape(name), log), log
        env.serves()
