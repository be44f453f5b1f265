# SPDX-License-Identifier: BSD-2-Clause
"""Against Debian's open-isns server: what it shows is what was meant."""

import time

import proto as I  # noqa: F401
from common import (DISK, HOST, HOST_A, HOST_B, OTHER, Isnsd, daemon, login_status, seen, state,
                    until)
from lib.evtgt import IQN, free_port


def both(s):
    return lambda: s.names() == [DISK, OTHER]


def test_registers(settings):
    """5.6.5.1: entity, portal with ESI and SCN ports, targets, portal groups"""
    with Isnsd() as s:
        with daemon(settings, [s.port]) as d:
            until(both(s))
            until(lambda: state(d)["state"] == "registered")
            mine = [o for o in s.list("entities") if o["Entity identifier"].startswith("evtgt-")]
            assert len(mine) == 1 and mine[0]["Entity protocol"] == "iSCSI (2)", mine
            portals = [o for o in s.list("portals")
                       if o["Portal TCP/UDP port"] == "%d/tcp" % d.port]
            assert len(portals) == 1 and portals[0]["Portal IP address"] == HOST, portals
            assert portals[0]["SCN port"].endswith("/tcp"), portals
            assert portals[0]["ESI port"] == portals[0]["SCN port"], portals
            nodes = {o["iSCSI name"]: o for o in s.list("nodes")}
            assert nodes[DISK]["iSCSI node type"] == "Target", nodes
            assert nodes[DISK]["iSCSI alias"] == "the disk", nodes
            groups = {o["Portal group name"]: o for o in s.list("portal-groups")}
            for name in (DISK, OTHER):
                assert groups[name]["Portal group tag"] == "1", groups
                assert groups[name]["Portal group port"] == "%d/tcp" % d.port, groups
            text = d.adm("--lld", "iscsi", "--op", "show", "--mode", "system")
            assert "    iSNS=On\n    iSNSServerIP=%s:%d\n" % (HOST, s.port) in text, text
        # 5.6.5.4: nothing is left behind
        until(lambda: not s.names() and not [o for o in s.list("entities")
                                             if o["Entity identifier"].startswith("evtgt-")])


def test_live_changes(settings):
    """targets and portals that come and go, one that goes offline and comes back"""
    with Isnsd() as s, daemon(settings, [s.port]) as d:
        until(both(s))
        index = {o["iSCSI name"]: o["iSCSI node index"] for o in s.list("nodes")}
        d.iscsi("--op", "new", "--mode", "target", "--tid", "7", "-T", IQN + "new")
        until(lambda: s.names() == [DISK, IQN + "new", OTHER])
        d.iscsi("--op", "update", "--mode", "target", "--tid", "1", "--name", "state", "--value",
                "offline")
        until(lambda: s.names() == [IQN + "new", OTHER])
        d.iscsi("--op", "update", "--mode", "target", "--tid", "1", "--name", "state", "--value",
                "ready")
        until(lambda: DISK in s.names())
        d.iscsi("--op", "delete", "--mode", "target", "--tid", "7")
        until(both(s))
        port = free_port()
        d.iscsi("--op", "new", "--mode", "portal", "--param", "portal=%s:%d" % (HOST, port))
        text = "%d/tcp" % port
        until(lambda: text in [o["Portal TCP/UDP port"] for o in s.list("portals")])
        groups = [o["Portal group name"] for o in s.list("portal-groups")
                  if o["Portal group port"] == text]
        assert sorted(groups) == [DISK, OTHER], groups
        d.iscsi("--op", "delete", "--mode", "portal", "--param", "portal=%s:%d" % (HOST, port))
        until(lambda: text not in [o["Portal TCP/UDP port"] for o in s.list("portals")])
        # an update, not a replacement: what did not change is the same object
        now = {o["iSCSI name"]: o["iSCSI node index"] for o in s.list("nodes")}
        assert now[OTHER] == index[OTHER], (index, now)


def test_all_targets_go(settings):
    """the last target takes the entity with it; the next one brings it back"""
    with Isnsd() as s, daemon(settings, [s.port]) as d:
        until(both(s))
        for tid in ("1", "2"):
            d.iscsi("--op", "delete", "--mode", "target", "--tid", tid)
        until(lambda: not [o for o in s.list("entities")
                           if o["Entity identifier"].startswith("evtgt-")])
        d.iscsi("--op", "new", "--mode", "target", "--tid", "3", "-T", IQN + "new")
        until(lambda: s.names() == [IQN + "new"])


def test_switched_live(settings):
    """tgtadm --mode sys: iSNS, iSNSServerIP, iSNSServerPort, iSNSAccessControl"""
    with Isnsd() as s, Isnsd() as other, daemon(settings, [s.port]) as d:
        def update(name, value, check=True):
            return d.iscsi("--op", "update", "--mode", "sys", "--name", name, "-v", value,
                           check=check)
        until(both(s))
        update("iSNS", "Off")
        until(lambda: not s.names())
        assert state(d)["state"] == "off"
        update("iSNSServerIP", HOST)
        update("iSNSServerPort", str(other.port))
        update("iSNS", "On")
        until(both(other))
        assert not s.names()
        update("iSNSServerIP", "%s:%d" % (HOST, s.port))  # moves over
        until(both(s))
        until(lambda: not other.names())
        for name, value in (("iSNS", "perhaps"), ("iSNSServerIP", "localhost"),
                            ("iSNSServerIP", "[::1"), ("iSNSServerPort", "0"),
                            ("iSNSServerPort", "65536"), ("iSNSAccessControl", ""),
                            ("iSNSSomething", "1")):
            out = update(name, value, check=False)
            assert out.returncode == 22 and out.stderr, (name, value, out)
        assert s.names() == [DISK, OTHER]


def test_domains(settings):
    """2.2.1: only initiators in a common discovery domain see the target and log in"""
    with Isnsd(period=20) as s, daemon(settings, [s.port], access=True) as d:
        until(both(s))
        assert login_status(d) == 0x0202 and seen(d) == []
        s.register_initiator(HOST_A)
        s.register_initiator(HOST_B, 5001)
        assert login_status(d) == 0x0202  # registered is not enough
        s.adm("--dd-register", "dd-name=one", "member-name=" + DISK, "member-name=" + HOST_A)
        until(lambda: login_status(d) == 0, 20)
        assert seen(d) == [DISK] and login_status(d, OTHER) == 0x0202
        assert login_status(d, DISK, HOST_B) == 0x0202 and seen(d, HOST_B) == []
        # (this server ignores a node that is in another domain already)
        s.adm("--dd-register", "dd-name=two", "member-name=" + OTHER, "member-name=" + HOST_B)
        until(lambda: seen(d, HOST_B) == [OTHER], 20)
        assert seen(d) == [DISK]
        # the access list of the target still counts
        d.iscsi("--op", "unbind", "--mode", "target", "--tid", "2", "-I", "ALL")
        assert login_status(d, OTHER, HOST_B) == 0x0202 and seen(d, HOST_B) == []
        # out of the domain: this server sends no notice of that, it is asked now and then
        s.adm("--dd-deregister", "2", "member-name=" + HOST_B)
        d.iscsi("--op", "bind", "--mode", "target", "--tid", "2", "-I", "ALL")
        until(lambda: login_status(d, OTHER, HOST_B) == 0x0202, 20)
        # the server goes: what is known stays in force
        s.stop()
        time.sleep(1.5)
        assert login_status(d) == 0 and login_status(d, DISK, HOST_B) == 0x0202
        d.iscsi("--op", "update", "--mode", "sys", "--name", "iSNSAccessControl", "-v", "Off")
        assert login_status(d, DISK, HOST_B) == 0


def test_unknown_denies(settings):
    """no server has spoken yet: nobody is let in; a new target has no set either"""
    with daemon(settings, [free_port()], access=True) as d:
        assert login_status(d) == 0x0202 and seen(d) == []
        d.iscsi("--op", "new", "--mode", "target", "--tid", "9", "-T", IQN + "new")
        d.iscsi("--op", "bind", "--mode", "target", "--tid", "9", "-I", "ALL")
        assert login_status(d, IQN + "new") == 0x0202


def test_esi_keeps_alive(settings):
    """5.6.5.13: inquiries are answered; the registration outlives its period"""
    with Isnsd(period=8, esi=2) as s, daemon(settings, [s.port]) as d:
        until(both(s))
        end = time.monotonic() + 13
        while time.monotonic() < end:
            time.sleep(0.5)
            assert s.names() == [DISK, OTHER], state(d)
            assert [o for o in s.list("portals") if "ESI port" in o], s.list("portals")


def test_server_comes_back_empty(settings):
    """a server that was restarted without a memory gets everything again"""
    with Isnsd() as s, daemon(settings, [s.port]):
        until(both(s))
        s.stop()
        s.start()
        until(both(s), 20)


def test_next_server(settings):
    """several servers: the next one when the first fails"""
    with Isnsd() as a, Isnsd() as b, daemon(settings, [free_port(), a.port, b.port]) as d:
        until(both(a))
        assert not b.names()
        a.stop()
        until(both(b), 20)
        assert state(d)["server"] == "%s:%d" % (HOST, b.port)
