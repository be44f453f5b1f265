# SPDX-License-Identifier: BSD-2-Clause
"""Configurations applied to a daemon that runs: reload and apply as a difference, under sessions
that must not notice; what is in use; failures that change nothing."""

import os
import shutil
import signal
import time

from common import MIB, NAME, Skip, call, daemon, file
from conf_tool import apply, ask, dump, reload, refusal, whats
from lib import scsi
from lib.evtgt import IQN, Failed, Lun, Target
from lib.iscsi import LoginFailed, Session, Silent

OTHER = IQN + "other"
SECRET = "abcdefghijkl"


def watched(d, name=NAME, lun=1):
    """A session that has read its unit attention: from now on it must hear nothing."""
    s = Session(d.addr, name)
    s.login()
    s.run_ua(scsi.TEST_UNIT_READY, lun=lun).good()
    return s


def unaware(s, lun=1):
    """I/O goes on; no unit attention, no message, the connection is open."""
    data = os.urandom(512)
    s.run(scsi.write10(7, 1), write=data, lun=lun).good()
    assert bytes(s.run(scsi.read10(7, 1), read=512, lun=lun).good().data) == data
    s.run(scsi.TEST_UNIT_READY, lun=lun).good()
    s.nop()


def may_log_in(d, name=NAME, **kw):
    try:
        s = Session(d.addr, name, **kw)
        s.login()
    except LoginFailed:
        return False
    s.logout()
    return True


def inside(text, *lines, target=NAME):
    """The configuration with more lines in a target's block."""
    head = "<target %s>\n" % target
    assert head in text
    return text.replace(head, head + "".join("    %s\n" % li for li in lines))


def block(name, *lines):
    return "<target %s>\n%s</target>\n" % (name, "".join("    %s\n" % li for li in lines))


def shown(d, tid=1):
    return ask(d, "target", "show", tid=tid)["targets"][0]


def test_nothing_changed(settings):
    with daemon(settings) as d:
        s = watched(d)
        got = reload(d)
        assert got["changes"] == [], got
        unaware(s)


def test_settings_change_live(settings):
    with daemon(settings) as d:
        s = watched(d)
        text = d.config()
        got = reload(d, inside(
            text, "alias a name", "nop_interval 7", "nop_count 5", "MaxQueueCmd 32",
            "MaxBurstLength 65536", "HeaderDigest CRC32C,None", "discoverable no",
            "initiator-name iqn.*", "RedirectAddress 192.0.2.9:3261",
            "redirect-initiator iqn.2026-11.com.example:host here",
            "incominguser bob " + SECRET, "chap-algorithms sha256"))
        assert all(c["how"] == "live" for c in got["changes"]), got
        t = shown(d)
        assert (t["alias"], t["nop_interval"], t["nop_count"], t["MaxQueueCmd"],
                t["discoverable"]) == ("a name", 7, 5, 32, False), t
        assert ["MaxBurstLength", "65536"] in t["keys"]
        assert ["RedirectAddress", "192.0.2.9"] in t["redirect"], t["redirect"]
        assert t["initiators"] == ["iqn.*"] and t["accounts"], t
        unaware(s)
        assert not may_log_in(d), "the account is not asked for"
        assert reload(d)["changes"] == []
        got = reload(d, text)
        assert "incominguser bob deleted" in whats(got, NAME), got
        t = shown(d)
        assert t["alias"] == "" and t["discoverable"] and t["initiators"] == [] and not t["nop_set"]
        assert t["accounts"] == [] and ask(d, "account", "show")["accounts"] == []
        unaware(s)
        assert may_log_in(d)


def test_daemon_settings_change_live(settings):
    with daemon(settings) as d:
        s = watched(d)
        text = d.config()
        got = reload(d, "login-timeout 3\nmax-sessions 77\ndiscovery-filter all\n"
                     "incomingdiscoveryuser di %s\nworkers 1\n%s" % (SECRET, text))
        hows = {c["what"]: c["how"] for c in got["changes"]}
        assert hows["login-timeout 3"] == "live" and hows["workers"] == "restart", hows
        assert "incomingdiscoveryuser di added" in hows, hows
        unaware(s)
        assert not may_log_in(d, None, discovery=True)
        assert [c["what"] for c in reload(d)["changes"]] == ["workers"]
        reload(d, text)
        assert may_log_in(d, None, discovery=True)
        unaware(s)


def test_portals(settings):
    from lib.evtgt import free_port
    with daemon(settings) as d:
        s = watched(d)
        text, port = d.config(), free_port()
        reload(d, text + "portal 127.0.0.1:%d\n" % port)
        Session(("127.0.0.1", port), NAME).login()
        got = reload(d, text + "<portal 127.0.0.1:%d>\ngroup 4\n</portal>\n" % port)
        assert whats(got) == ["portal 127.0.0.1:%d changed" % port], got
        assert [4] == [p["tpgt"] for p in ask(d, "portal", "show")["portals"]
                       if p["portal"].endswith(":%d" % port)]
        reload(d, text)
        try:
            Session(("127.0.0.1", port), NAME).login()
            raise AssertionError("a deleted portal listens")
        except OSError:
            pass
        # what cannot be bound: the rest of the change is not made either
        e = refusal(reload, d, inside(text, "alias never") + "portal 127.0.0.1:%d\nportal "
                    "192.0.2.1:1\nportal 127.0.0.1:99999\n" % port)
        assert e.code == "config", e
        e = refusal(reload, d, inside(text, "alias never") +
                    "portal 127.0.0.1:%d\nportal 127.0.0.1:%d\n" % (port, taken(d)))
        assert e.code == "config" and d.conf in e.text, e
        assert shown(d)["alias"] == "" and len(ask(d, "portal", "show")["portals"]) == 1
        unaware(s)


def taken(d):
    import socket
    d.keep = socket.socket()
    d.keep.bind(("127.0.0.1", 0))
    d.keep.listen(1)
    return d.keep.getsockname()[1]


def test_targets_come_and_go(settings):
    with daemon(settings) as d:
        s = watched(d)
        text, path = d.config(), file(d, "b.img")
        more = block(OTHER, "initiator-address ALL", "backing-store " + path)
        got = reload(d, text + more)
        assert whats(got, OTHER) == ["target added, tid 2", "lun 1 added: " + path], got
        o = watched(d, OTHER)
        unaware(o)
        unaware(s)
        e = refusal(reload, d, text)
        assert e.code == "target-active", e
        assert o.initiator in e.text and "127.0.0.1:" in e.text and NAME not in e.text, e
        unaware(o)
        got = reload(d, text, force=True)
        assert whats(got, OTHER) == ["target deleted"], got
        o.conn.expect_close(5)
        assert not may_log_in(d, OTHER)
        unaware(s)
        # its file is free again
        assert may_log_in(d) and reload(d, text + more)["changes"]


def test_numbers_stay(settings):
    """A target that goes does not give another one its number."""
    with daemon(settings) as d:
        text = d.config()
        a, b = block(IQN + "a", "initiator-address ALL"), block(IQN + "b", "initiator-address ALL")
        reload(d, text + a + b)
        reload(d, text + b)
        assert shown(d, 3)["name"] == IQN + "b"
        reload(d, text + a + b)
        assert (shown(d, 2)["name"], shown(d, 3)["name"]) == (IQN + "a", IQN + "b")
        got = reload(d, text + inside(a, "controller_tid 3", target=IQN + "a") +
                     inside(b, "controller_tid 2", target=IQN + "b"))
        assert len(got["changes"]) == 2, got
        assert (shown(d, 3)["name"], shown(d, 2)["name"]) == (IQN + "a", IQN + "b")


def lun_block(number, path, *opts):
    return ["<backing-store %s>" % path, "    lun %d" % number, *("    " + o for o in opts),
            "</backing-store>"]


def test_luns(settings):
    with daemon(settings) as d:
        s = watched(d)
        text, b, c = d.config(), file(d, "b.img"), file(d, "c.img", 2 * MIB)
        more = block(OTHER, "initiator-address ALL", *lun_block(1, b), *lun_block(2, c))
        reload(d, text + more)
        o = watched(d, OTHER)
        # live settings; the session of the other target hears nothing
        got = reload(d, text + more.replace("lun 2", "lun 2\n vendor_id ACME\n online no"))
        assert whats(got, OTHER) == ["lun 2 changed"], got
        assert [u["vendor_id"] for u in shown(d, 2)["luns"]] == ["EVTGT", "ACME"]
        unaware(s)
        # another store in its place
        less = block(OTHER, "initiator-address ALL", *lun_block(1, b))
        e = refusal(reload, d, text + less)
        assert e.code == "target-active" and o.initiator in e.text, e
        assert len(shown(d, 2)["luns"]) == 2
        got = reload(d, text + less, force=True)
        assert [(x["what"], x["how"]) for x in got["changes"]] == [("lun 2 deleted", "lun")], got
        o.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        t = o.run(scsi.TEST_UNIT_READY, lun=2)
        assert t.status == 2, t
        unaware(s)
        # the same path with other settings: made anew when the old one is closed
        got = reload(d, text + block(OTHER, "initiator-address ALL", *lun_block(
            1, b, "block-size 4096")), force=True)
        assert whats(got, OTHER) == ["lun 1 replaced: %s with other settings" % b], got
        u = shown(d, 2)["luns"][0]
        assert u["ready"] and u["block_size"] == 4096, u
        # moved to another number, and to another target, without being closed
        got = reload(d, text + block(OTHER, "initiator-address ALL", *lun_block(
            9, b, "block-size 4096")), force=True)
        assert [u["lun"] for u in shown(d, 2)["luns"]] == [9] and shown(d, 2)["luns"][0]["ready"]
        unaware(s)


def test_store_missing(settings):
    """A reload goes on without it, an apply with add does not."""
    with daemon(settings) as d:
        s = watched(d)
        text, path = d.config(), d.path("late.img")
        more = block(OTHER, "initiator-address ALL", *lun_block(1, path))
        e = refusal(apply, d, more, add=True)
        assert e.code == "config" and "late.img" in e.text and "evtgt.conf:3:" in e.text, e
        assert not may_log_in(d, OTHER)
        got = reload(d, text + more)
        assert [m["error"] for m in got["messages"]] == [False], got
        assert "late.img" in got["messages"][0]["text"] and got["messages"][0]["line"], got
        u = shown(d, 2)["luns"][0]
        assert not u["ready"], u
        file(d, "late.img")
        end = time.monotonic() + 20
        while not shown(d, 2)["luns"][0]["ready"]:
            assert time.monotonic() < end, "it is not tried again"
            time.sleep(0.3)
        unaware(s)


def test_apply_part(settings):
    """Targets by name: the others, and what stands outside of targets, stay as they are."""
    with daemon(settings) as d:
        s = watched(d)
        path = file(d, "b.img")
        one = block(OTHER, "initiator-address ALL", "incominguser bob " + SECRET,
                    "backing-store " + path)
        got = apply(d, one, add=True)
        assert whats(got, OTHER) and not whats(got, NAME), got
        assert not may_log_in(d, OTHER) and shown(d, 2)["accounts"]
        e = refusal(apply, d, one, add=True)
        assert e.code == "target-exists" and OTHER in e.text, e
        got = apply(d, block(OTHER, "initiator-address ALL", "backing-store " + path) +
                    block(NAME, "alias no"), targets=[OTHER.upper().replace("IQN", "iqn")])
        assert whats(got) == ["incominguser bob deleted"], got
        assert may_log_in(d, OTHER) and shown(d)["alias"] == ""
        got = apply(d, "", targets=[OTHER])
        assert whats(got) == ["target deleted"], got
        # what is there already cannot be had twice
        e = refusal(apply, d, block(OTHER, "initiator-address ALL", *lun_block(
            1, d.path("a.img"), "vendor_id X")), add=True)
        assert e.code == "config" and "other settings" in e.text and "running" in e.text, e
        e = refusal(apply, d, block(OTHER, "controller_tid 1", "initiator-address ALL"), add=True)
        assert e.code == "config" and "controller_tid 1" in e.text, e
        unaware(s)


def test_pretend(settings):
    with daemon(settings) as d:
        text, path = d.config(), file(d, "b.img")
        more = block(OTHER, "initiator-address ALL", "backing-store " + path)
        got = reload(d, inside(text, "alias x") + more, pretend=True)
        assert 'alias "x"' in whats(got, NAME) and whats(got, OTHER), got
        assert shown(d)["alias"] == "" and not may_log_in(d, OTHER)
        call(d, "--lld iscsi --op new --mode logicalunit --tid 1 --lun 2 -b " + path)  # not held
        e = refusal(apply, d, more.replace("backing", "vendor_id X\nbacking"), add=True, pretend=True)
        assert "running" in e.text and path in e.text, e


def test_errors_have_places(settings):
    with daemon(settings) as d:
        s = watched(d)
        e = refusal(reload, d, d.config() + "<target iqn.2001-04.a:x>\n    nonsense 1\n</target>\n"
                    "workers 0\n")
        assert e.code == "config" and d.conf + ":" in e.text and "(and 1 more)" in e.text, e
        assert [(m["error"], m["col"]) for m in e.data["messages"] if m["error"]] == [
            (True, 5), (True, 9)], e.data
        e = refusal(ask, d, "config", "apply", bundle={"version": 1})
        assert e.code == "config" and "bundle" in e.text, e
        e = refusal(ask, d, "config", "apply")
        assert e.code == "invalid", e
        e = refusal(apply, d, "", targets=["a b"])
        assert e.code == "invalid", e
        os.unlink(d.conf)
        e = refusal(reload, d)
        assert d.conf in e.text and "No such file" in e.text, e
        unaware(s)


def wait_log(d, word, times=1):
    end = time.monotonic() + 20
    while d.tail(1 << 20).count(word) < times:
        assert time.monotonic() < end, "the log does not say " + word
        time.sleep(0.1)


def test_sighup(settings):
    with daemon(settings) as d:
        s = watched(d)
        text = d.config()
        with open(d.conf, "w") as f:
            f.write(inside(text, "alias by signal"))
        os.kill(d.proc.pid, signal.SIGHUP)
        wait_log(d, "reloaded changes=1")
        assert shown(d)["alias"] == "by signal"
        with open(d.conf, "w") as f:
            f.write(text + "nonsense\n")
        os.kill(d.proc.pid, signal.SIGHUP)
        wait_log(d, "reload-failed")
        assert shown(d)["alias"] == "by signal"
        assert "%s:%d:1" % (d.conf, text.count("\n") + 1) in d.tail(1 << 20)
        unaware(s)


def test_isns(settings):
    with daemon(settings) as d:
        s = watched(d)
        text = d.config()
        got = reload(d, "iSNS On\niSNSServerIP 127.0.0.1:9\n" + text)
        assert whats(got) == ["iSNS"], got
        assert ask(d, "system", "show")["isns"]["on"]
        reload(d, text)
        assert not ask(d, "system", "show")["isns"]["on"]
        unaware(s)


def test_large_request(settings):
    """A line of some MiB is taken; more is not, nor is one that would blow up."""
    with daemon(settings) as d:
        got = apply(d, "# %s\n" % ("x" * 1000) * 3000 + block(OTHER, "initiator-address ALL"),
                    add=True)
        assert whats(got, OTHER), got
        e = refusal(ask, d, "config", "apply", bundle=[[]] * 400000)
        assert e.code == "invalid" and "values" in e.text, e
        try:
            apply(d, "#" * (17 << 20), add=True)
            raise AssertionError("a line of 17 MiB is taken")
        except (AssertionError, OSError) as x:
            assert "is taken" not in str(x), x
        assert may_log_in(d)


def again(d, text):
    """A daemon that starts with what was dumped gives the same text."""
    d.stop()
    old, d.config = d.config, lambda: text
    try:
        d.start()
    finally:
        d.config = old
    return dump(d, secrets=True)


def test_dump(settings):
    with daemon(settings) as d:
        text = d.config()
        first = dump(d, secrets=True)
        assert reload(d, first)["changes"] == [], first
        assert again(d, first) == first
        one = dump(d, target=NAME)
        assert one.startswith("<target " + NAME) and one in first, one
        e = refusal(dump, d, target=OTHER)
        assert e.code == "no-target", e
        reload(d, inside(text, "incominguser bob " + SECRET))
        assert SECRET not in dump(d) and SECRET in dump(d, secrets=True)
        e = refusal(reload, d, dump(d))
        assert "secret-left-out" in e.text and shown(d)["accounts"], e


CHANGES = [
    "--op new --mode target --tid 4 -T " + OTHER,
    "--op update --mode target --tid 1 --name alias --value x",
    "--op update --mode target --tid 1 --name MaxBurstLength --value 65536",
    "--op update --mode target --tid 4 --name state --value offline",
    "--op update --mode target --tid 4 --name discoverable --value no",
    "--op update --mode target --tid 1 --name nop_interval --value 0",
    "--op update --mode target --tid 1 --name nop_count --value 9",
    "--op update --mode target --tid 1 --name MaxQueueCmd --value 16",
    "--op update --mode target --tid 4 --name RedirectAddress --value 192.0.2.1:3261",
    "--op update --mode target --tid 4 --name RedirectReason --value Permanent",
    "--op bind --mode target --tid 4 -I 10.0.0.0/8",
    "--op bind --mode target --tid 4 -Q iqn.2001-04.a:*",
    "--op unbind --mode target --tid 1 -I ALL",
    "--op bind --mode target --tid 1 -I 127.0.0.1",
    "--op new --mode account --user bob --password abcdefghijkl",
    "--op new --mode account --user out --password abcdefghijkm",
    "--op new --mode account --user di --password abcdefghijkn",
    "--op bind --mode account --tid 4 --user bob",
    "--op bind --mode account --tid 4 --user out --outgoing",
    "--op bind --mode account --user di",
    "--op new --mode logicalunit --tid 4 --lun 7 --bstype null --params size=1M",
    "--op new --mode logicalunit --tid 4 --lun 3 -b FILE",
    "--op update --mode logicalunit --tid 1 --lun 1 --params vendor_id=ME,online=0,scsi_sn=77",
    "--op update --mode logicalunit --tid 4 --lun 3 --params removable=1,sense_format=1",
    "--op update --mode sys --name iSNSServerIP --value 127.0.0.1:9",
    "--op update --mode sys --name iSNS --value On",
    "--op delete --mode account --user out",
    "--op delete --mode logicalunit --tid 4 --lun 7",
    "--op update --mode target --tid 4 --name RedirectAddress --value none",
    "--op delete --mode target --tid 1 --force",
]


def test_dump_after_changes(settings):
    """After every verb: what is dumped is what is there; a daemon that starts with it says the
    same."""
    with daemon(settings) as d:
        path = file(d, "b.img")
        for i, c in enumerate(CHANGES):
            call(d, "--lld iscsi " + c.replace("FILE", path))
            text = dump(d, secrets=True)
            got = reload(d, text, pretend=True)
            assert got["changes"] == [], (c, got, text)
            if i in (12, len(CHANGES) - 1):
                assert again(d, text) == text, c


def test_dump_portals(settings):
    from lib.evtgt import free_port
    with daemon(settings) as d:
        a, b = free_port(), free_port()
        ask(d, "portal", "new", portal="127.0.0.1:%d" % a, group=7, advertise="disks.example:3260")
        ask(d, "portal", "new", portal="127.0.0.1:%d" % b)
        ask(d, "target", "bind", tid=1, portal="127.0.0.1:%d" % a)
        ask(d, "target", "bind", tid=1, portal_group=1)
        ask(d, "portal", "delete", portal="127.0.0.1:%d" % b)
        text = dump(d, secrets=True)
        assert reload(d, text, pretend=True)["changes"] == [], text
        assert again(d, text) == text


def test_dump_without_portals(settings):
    """All portals deleted: neither a dump nor a change of something else brings the usual ones."""
    with daemon(settings) as d:
        text = d.config()
        here = "127.0.0.1:%d" % d.port
        ask(d, "target", "bind", tid=1, portal=here)
        e = refusal(ask, d, "portal", "delete", portal=here)
        assert NAME in e.text and "unbind" in e.text, e
        ask(d, "target", "unbind", tid=1, portal=here)
        ask(d, "target", "bind", tid=1, portal_group=1)
        e = refusal(ask, d, "portal", "delete", portal=here)
        ask(d, "target", "unbind", tid=1, portal_group=1)
        ask(d, "portal", "delete", portal=here)
        got = dump(d, secrets=True)
        assert got.startswith("portal none\n"), got
        assert reload(d, got)["changes"] == []
        apply(d, block(OTHER, "initiator-address ALL"), targets=[OTHER])
        assert ask(d, "portal", "show")["portals"] == []
        got = reload(d, text)
        assert "portal %s added" % here in whats(got), got
        assert may_log_in(d)
        got = reload(d, "portal none\n" + text.replace("portal " + here, ""))
        assert whats(got) == ["portal %s deleted" % here], got


def test_texts_that_no_file_can_hold(settings):
    with daemon(settings) as d:
        first = dump(d, secrets=True)
        for mode, op, args in (
                ("target", "update", {"tid": 1, "params": {"alias": "a\nb"}}),
                ("target", "update", {"tid": 1, "params": {"RedirectCallback": "/bin/x a\nb"}}),
                ("target", "bind", {"tid": 1, "initiator": "iqn.a\n*"}),
                ("logicalunit", "update", {"tid": 1, "lun": 1, "params": {"vendor_id": "a\nb"}}),
                ("logicalunit", "new", {"tid": 1, "lun": 7, "params": {
                    "bs-type": "null", "size": "1M", "scsi_sn": "a\nb"}}),
                ("account", "new", {"user": "a\nb", "password": SECRET}),
                ("account", "new", {"user": "a", "password": SECRET + "\n"}),
                ("account", "new", {"user": "a", "password": SECRET,
                                    "initiators": ["iqn.a", "iqn.b\nincominguser x y"]}),
                ("account", "new", {"user": "a", "password": SECRET,
                                    "initiators": ["iqn.%040d" % i for i in range(1000)]})):
            e = refusal(ask, d, mode, op, **args)
            assert e.code == "invalid" and SECRET not in e.text, (args, e)
        assert dump(d, secrets=True) == first
        ask(d, "target", "update", tid=1, params={"alias": " \r\x01\x7f\t\"#\\ \u00e4"})
        ask(d, "account", "new", user=" \\\"", password="#\r '\"\\" + SECRET,
            initiators=["iqn.%040d" % i for i in range(300)])
        ask(d, "account", "bind", user=" \\\"", tid=1)
        text = dump(d, secrets=True)
        assert reload(d, text)["changes"] == [] and again(d, text) == text, text


def test_usual_portals(settings):
    """Nobody named a portal: they are in no dump until one is made or deleted by hand.  In a network
    of its own, where the port is free."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"):
        raise Skip("needs root, unshare and ip")
    with daemon(settings) as d:
        d.stop()
        usual = "".join(li + "\n" for li in d.config().splitlines() if "portal" not in li)
        plain, d.config, d.port = d.command, lambda: usual, 3260
        d.command = lambda: ["unshare", "-n", "sh", "-c", "ip link set lo up && exec \"$@\"",
                             "sh"] + plain()
        try:
            d.start()
        except Failed as e:
            raise Skip("no network namespace: %s" % e)
        assert "portal" not in dump(d, secrets=True)
        assert reload(d)["changes"] == []
        ask(d, "portal", "new", portal="127.0.0.1:3261")
        text = dump(d, secrets=True)
        assert "portal 127.0.0.1:3261\n" in text and "portal 0.0.0.0:3260\n" in text, text
        assert reload(d, text, pretend=True)["changes"] == []
        got = reload(d, usual)
        assert whats(got) == ["portal 127.0.0.1:3261 deleted"], got
        ask(d, "portal", "delete", portal="0.0.0.0:3260")
        text = dump(d, secrets=True)
        assert "portal 0.0.0.0" not in text, text
        assert reload(d, text)["changes"] == []
        got = reload(d, usual)
        assert "portal 0.0.0.0:3260 added" in whats(got), got
        assert "portal" not in dump(d, secrets=True)
