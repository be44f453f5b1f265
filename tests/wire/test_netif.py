# SPDX-License-Identifier: BSD-2-Clause
"""Addresses that come and go, and what others are told of them: in a network namespace that the
rows of this file share, with a pair of interfaces of its own.  Each row starts its own daemon."""

import ctypes
import os
import re
import socket
import subprocess
import time

from harness import DISK, Lun, MIB, Skip, Target, row, scsi, text
from lib.evtgt import free_port

OWN_DAEMON = True
CLONE_NEWNET = 0x40000000
OURS = {"made": False, "why": None}


def ip(*args, check=True):
    out = subprocess.run(["ip"] + list(args), capture_output=True, text=True, timeout=20)
    if check and out.returncode:
        raise AssertionError("ip %s: %s" % (" ".join(args), out.stderr))
    return out.stdout


def iface():
    """evt0, up, fresh and without an address but its link-local one."""
    if not OURS["made"]:
        OURS["made"] = True
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNET):
            OURS["why"] = os.strerror(ctypes.get_errno())
        else:
            try:
                ip("link", "set", "lo", "up")
                ip("link", "add", "evt9", "type", "veth", "peer", "name", "evt8")
            except (AssertionError, OSError) as e:
                OURS["why"] = str(e)
    if OURS["why"]:
        raise Skip("no network namespace with interfaces can be made: " + OURS["why"])
    ip("link", "del", "evt0", check=False)
    ip("link", "add", "evt0", "type", "veth", "peer", "name", "evt1")
    ip("link", "set", "evt1", "up")
    ip("link", "set", "evt0", "up")


def addr(op, *addrs):
    for a in addrs:
        ip("addr", op, a, "dev", "evt0", *(("nodad",) if ":" in a and op == "add" else ()))


def disk():
    return [Target("disk", [Lun("a.img", 4 * MIB, 0, kind="file")])]


def told(env, to):
    """Addresses of the disk as SendTargets tells them who came to this address."""
    d = env.new(None, discovery=True, addr=to).login()
    got = [v for k, v in d.text(text(SendTargets=DISK)) if k == "TargetAddress"]
    d.logout()
    return got


def soon(check, what):
    end = time.monotonic() + 15
    while time.monotonic() < end:
        try:
            if check():
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError("not within 15 s: " + what)


def reach(env, to):
    """A login and a command."""
    with env.session(addr=to) as s:
        s.run(scsi.TEST_UNIT_READY, lun=0).good()
        s.logout()
    return True


def listens(to):
    try:
        socket.create_connection(to, 2).close()
        return True
    except OSError:
        return False


@row("BR-16c BR-17b", "13.8, C", "a wildcard portal is told as the addresses of the interfaces, the "
     "one of the connection first, IPv6 in brackets; no link-local address, no zone; loopback only "
     "to who came by loopback")
def wildcard(env, case):
    iface()
    addr("add", "192.0.2.1/24", "192.0.2.2/24", "2001:db8::1/64", "fe80::7/64")
    p = free_port()
    head = ["portal 0.0.0.0:%d" % p, "portal [::]:%d" % p]
    with env.with_daemon(disk(), head=head):
        four = ["192.0.2.1:%d,1" % p, "192.0.2.2:%d,1" % p]
        six = "[2001:db8::1]:%d,1" % p
        if case == "BR-16c":
            for to in ("192.0.2.1", "192.0.2.2", "2001:db8::1"):
                got = told(env, (to, p))
                assert sorted(got) == sorted(four + [six]), "to %s: %s" % (to, got)
                assert got[0] == ("[%s]:%d,1" if ":" in to else "%s:%d,1") % (to, p), got
            scope = socket.if_nametoindex("evt0")
            s = env.new(None, discovery=True, addr=("fe80::7", p, 0, scope)).login()
            got = [v for k, v in s.text(text(SendTargets=DISK)) if k == "TargetAddress"]
            assert sorted(got) == sorted(four + [six]), got
            return
        for to in ("127.0.0.1", "::1"):
            got = told(env, (to, p))
            own = ("[%s]:%d,1" if ":" in to else "%s:%d,1") % (to, p)
            assert got[0] == own, got
            # and the portal that the test's daemon has on loopback
            assert set(got) == set(four + [six, own, "127.0.0.1:%d,1" % env.addr[1]]), got
        for to in ("192.0.2.1", "2001:db8::1"):
            assert not any(v.startswith(("127.", "[::1]")) for v in told(env, (to, p)))


@row("PN-01", "13.8, C", "addresses that come and go while the daemon runs are told and forgotten "
     "by a wildcard portal")
def wildcard_follows(env):
    iface()
    addr("add", "192.0.2.1/24")
    p = free_port()
    with env.with_daemon(disk(), head=["portal 0.0.0.0:%d" % p, "portal [::]:%d" % p]):
        to = ("192.0.2.1", p)
        assert told(env, to) == ["192.0.2.1:%d,1" % p]
        addr("add", "2001:db8:5::1/64", "192.0.2.9/24")
        soon(lambda: sorted(told(env, to)) == sorted(
            ["192.0.2.1:%d,1" % p, "192.0.2.9:%d,1" % p, "[2001:db8:5::1]:%d,1" % p]), "new ones")
        addr("del", "2001:db8:5::1/64", "192.0.2.9/24")
        soon(lambda: told(env, to) == ["192.0.2.1:%d,1" % p], "old ones forgotten")


@row("PN-02", "13.8", "a portal that names an interface serves its addresses, follows them, and a "
     "session on an address that stays is not disturbed", 40)
def interface(env):
    iface()
    addr("add", "192.0.2.1/24", "2001:db8:1::1/64")
    p = free_port()
    head = ["shutdown-timeout 1", "<portal iface:evt0:%d>" % p, "    group 4", "</portal>"]
    mk = disk()
    mk[0].opts += ["portal iface:evt0:%d" % p]
    with env.with_daemon(mk, head=head) as d:
        to = ("192.0.2.1", p)
        s = env.session(addr=to)
        assert sorted(told(env, to)) == sorted(
            ["192.0.2.1:%d,4" % p, "[2001:db8:1::1]:%d,4" % p])
        assert not listens(("127.0.0.1", p)), "listens on another interface"
        addr("add", "2001:db8:2::1/64")  # another prefix
        addr("del", "2001:db8:1::1/64")
        soon(lambda: reach(env, ("2001:db8:2::1", p)), "reached at the new prefix")
        soon(lambda: sorted(told(env, to)) == sorted(
            ["192.0.2.1:%d,4" % p, "[2001:db8:2::1]:%d,4" % p]), "told as it is now")
        s.run(scsi.TEST_UNIT_READY, lun=0).good()
        show = d.iscsi("--op", "show", "--mode", "portal")
        assert "Portal: 192.0.2.1:%d,4\n    Of: iface:evt0:%d\n" % (p, p) in show, show
        ip("link", "del", "evt0")
        soon(lambda: "Portal: iface:evt0:%d,4\n    State: no" % p in
             d.iscsi("--op", "show", "--mode", "portal"), "without addresses")
        iface()
        addr("add", "198.51.100.1/24")
        soon(lambda: reach(env, ("198.51.100.1", p)), "reached when the interface is back")


@row("PN-03", "-", "the address comes after the start (DHCP), of IPv4, IPv6 and an interface: it is "
     "served then", 40)
def late(env):
    iface()
    p = free_port()
    head = ["portal 192.0.2.5:%d" % p, "portal [2001:db8::5]:%d" % p, "portal iface:evt5:%d" % p,
            "portal [fe80::5%%evt5]:%d" % (p + 1)]
    with env.with_daemon(disk(), head=head) as d:
        assert told(env, env.addr) == ["127.0.0.1:%d,1" % env.addr[1]]
        addr("add", "192.0.2.5/24", "2001:db8::5/64")
        for to in ("192.0.2.5", "2001:db8::5"):
            soon(lambda: reach(env, (to, p)), to)
        soon(lambda: len(told(env, ("192.0.2.5", p))) == 2, "both told")
        for _ in range(2):  # it comes, goes and comes again under another number
            ip("link", "add", "evt5", "type", "veth", "peer", "name", "evt6")
            for end in ("evt6", "evt5"):
                ip("link", "set", end, "up")
            ip("addr", "add", "203.0.113.5/24", "dev", "evt5")
            ip("addr", "add", "fe80::5/64", "dev", "evt5", "nodad")
            soon(lambda: reach(env, ("203.0.113.5", p)), "203.0.113.5")
            scope = socket.if_nametoindex("evt5")
            soon(lambda: reach(env, ("fe80::5", p + 1, 0, scope)), "fe80::5")
            soon(lambda: "State:" not in d.iscsi("--op", "show", "--mode", "portal"), "present")
            ip("link", "del", "evt5")


@row("PN-04", "RFC 2474, RFC 9293 3.8.4", "tcp-keepalive-*, tcp-user-timeout and dscp are those of "
     "the connections; keepalive is on by default")
def tcp_options(env):
    iface()

    def shows(pattern, *more):
        """Its line of ss, once nothing is under way."""
        def now():
            out = subprocess.run(["ss", "-tnoH", *more, "state", "established", "sport", "=",
                                  ":%d" % env.addr[1]], capture_output=True, text=True, timeout=10)
            return re.search(pattern, out.stdout)
        soon(now, pattern)

    with env.with_daemon(disk()):
        s = env.session()
        shows(r"timer:\(keepalive,(1min|5\dsec)")
        s.logout()
    with env.with_daemon(disk(), head=["tcp-keepalive-idle 3000", "dscp af31"]):
        s = env.session()
        shows(r"timer:\(keepalive,(50|49)min.*tos:0x68\b", "--tos")  # 011010 and two bits of ECN
        s.logout()
