# SPDX-License-Identifier: BSD-2-Clause
"""save-all, restore-all, and the admin verbs they use: one file carries the whole set-up, and disks
stay the disks that initiators know."""

import copy
import json
import os
import socket
import stat
import time

from common import MIB, NAME, daemon
from lib import scsi
from lib.evtgt import IQN, Lun, Target, free_port
from lib.iscsi import Session
from verbs import ask, verb


def one(d, op, **args):
    """One request of mode config; the answer."""
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(35)
    s.connect(d.sock)
    s.sendall(json.dumps({"v": 1, "mode": "config", "op": op, "args": args}).encode() + b"\n")
    buf = b""
    while b"\n" not in buf:
        more = s.recv(65536)
        assert more, "closed without an answer"
        buf += more
    s.close()
    return json.loads(buf)


def vpd83(d, target=NAME, lun=1, **kw):
    s = Session(d.addr, target, **kw)
    s.login()
    data = s.run_ua(scsi.inquiry(255, 0x83), lun=lun, read=255).good().data
    s.logout()
    s.conn.close()
    end = time.monotonic() + 20  # who asks next must not find the session in use
    while json.loads(d.iscsi("--json", "--op", "show", "--mode", "session"))["data"]["sessions"]:
        assert time.monotonic() < end, "a session stays after its logout"
        time.sleep(0.02)
    return bytes(data)


def test_export_and_import(settings):
    with daemon(settings) as d, daemon(settings) as e:
        state = one(d, "export")["data"]
        assert state["format"] == "evtgt-state" and state["version"] == 1
        assert [r["name"] for r in state["records"]] == ["host-seed"]
        other = one(e, "export")["data"]
        assert other["records"] != state["records"]
        s = Session(e.addr, NAME)
        s.login()
        a = one(e, "import", state=state)
        assert not a["ok"] and a["error"]["code"] == "target-active", a
        assert s.initiator in a["error"]["message"], a
        assert one(e, "export")["data"] == other
        s.nop()
        assert one(e, "import", state=state, pretend=True, force=True)["ok"]
        assert one(e, "export")["data"] == other, "pretended, and done"
        a = one(e, "import", state=state, force=True)
        assert a == {"v": 1, "ok": True, "data": {"records": 1}}, a
        assert one(e, "export")["data"] == state
        s.conn.close()


def test_import_refuses(settings):
    with daemon(settings) as d:
        good = one(d, "export")["data"]

        def bad(why, change):
            state = copy.deepcopy(good)
            change(state)
            a = one(d, "import", state=state, force=True)
            assert not a["ok"] and a["error"]["code"] == "invalid", (why, a)
            assert why in a["error"]["message"], (why, a)

        def rec(name, hexa):
            return lambda s: s["records"].append({"name": name, "hex": hexa})

        bad("format", lambda s: s.update(format="other"))
        bad("version 2", lambda s: s.update(version=2))
        bad("records", lambda s: s.update(records=7))
        bad("host-seed is missing", lambda s: s["records"].clear())
        bad("crc32c", lambda s: s.update(crc32c="00000000"))
        bad("crc32c", lambda s: s.pop("crc32c"))
        bad("no \"name\"", lambda s: s["records"].append({"name": "mode-00"}))
        bad("mode-00", rec("mode-00", "0"))
        bad("mode-00", rec("mode-00", "xx"))
        bad("../etc", rec("../etc", "00"))
        bad("import", rec("import", "00"))
        bad("host-seed is there twice", lambda s: s["records"].append(s["records"][0]))
        bad("host-seed", lambda s: s["records"][0].update(hex="00"))
        bad("format", lambda s: s.clear())
        a = one(d, "import")
        assert not a["ok"] and "format" in a["error"]["message"]
        assert one(d, "export")["data"] == good


def test_identity_follows_at_once_and_over_a_restart(settings):
    with daemon(settings) as d:
        was, state = vpd83(d), one(d, "export")["data"]
        fresh = copy.deepcopy(state)
        with daemon(settings) as e:
            fresh = one(e, "export")["data"]
        assert one(d, "import", state=fresh)["ok"]
        changed = vpd83(d)
        assert changed != was
        d.stop()
        d.start()
        assert vpd83(d) == changed
        assert one(d, "import", state=state)["ok"]
        assert vpd83(d) == was


def test_import_that_was_cut_short_is_finished(settings):
    """The journal is a record as others are; a start that finds it puts its records in their places."""
    with daemon(settings) as d, daemon(settings) as e:
        state = one(d, "export")["data"]
        e.stop()
        text = json.dumps(state).encode()
        write_record(e.path("state/r.import"), text)
        e.start()
        assert one(e, "export")["data"] == state
        assert not os.path.exists(e.path("state/r.import"))
        # one that is no import is left, told, and nothing else is lost
        e.stop()
        write_record(e.path("state/r.import"), b"nonsense")
        e.start()
        assert one(e, "export")["data"] == state
        assert os.path.exists(e.path("state/r.import")) and "import-left" in e.tail(8000)


def write_record(path, data):
    """A record file as base/cstore.c has it."""
    from lib.crc32c import crc32c
    head = b"evtgtr01" + len(data).to_bytes(4, "big")
    crc = crc32c(head[8:] + data)
    with open(path, "wb") as f:
        f.write(head + (crc if isinstance(crc, bytes) else crc.to_bytes(4, "little")) + data)


def move(settings, secrets, check, after=""):
    """Saves one daemon's set-up and restores it to another one that has nothing."""
    targets = [Target("disk", [Lun("a.img", 4 * MIB, 1, kind="file",
                                   opts=["product_id Carried"])], ["initiator-address ALL"]),
               Target("locked", [Lun("b.img", MIB, 1, kind="file")],
                      ["initiator-address ALL", 'incominguser mac "sixteen-bytes-00"'])]
    head = ['incomingdiscoveryuser finder "sixteen-bytes-01"']
    with daemon(settings, targets, head=head) as d, daemon(settings, []) as e:
        was = vpd83(d)
        verb(d, "save-all all.json" + (" --secrets" if secrets else ""),
             says="holds the configuration")
        path = d.path("all.json")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with open(path) as f:
            saved = f.read()
        assert ("sixteen-bytes-0" in saved) is secrets
        verb(d, "save-all all.json", 1, ("is there already", "--force"))
        d.stop()  # its files are served by the other one from here on
        e.port = d.port  # its portal comes along
        check(e, path, was)


def test_restore_with_secrets(settings):
    def check(e, path, was):
        data = ask(e, "restore-all --pretend", more=[path])
        assert data["pretend"] and data["changes"]
        assert ask(e, "target list") == {"targets": []}
        verb(e, "restore-all", 1, "nobody said yes", more=[path])
        verb(e, "restore-all --yes --persist", says="This is now the set-up of", more=[path])
        assert [t["name"] for t in ask(e, "target list")["targets"]] == [NAME, IQN + "locked"]
        assert vpd83(e) == was, "the disk has become another one"
        verb(e, "target list", says="ready")
    move(settings, True, check)


def test_restore_without_secrets_leaves_nothing_open(settings):
    def check(e, path, was):
        data = ask(e, "restore-all --yes", more=[path])
        assert data["offline"] == [IQN + "locked"]
        states = {t["name"]: t["state"] for t in ask(e, "target list")["targets"]}
        assert states == {NAME: "ready", IQN + "locked": "offline"}
        assert vpd83(e) == was
        verb(e, "restore-all --yes --force", more=[path],
             says="discovery, which demanded CHAP, is open to everybody")
    move(settings, False, check)


def test_a_portal_that_this_host_lacks(settings):
    absent = "192.0.2.7:%d" % free_port()
    with daemon(settings, head=["portal " + absent]) as d, daemon(settings, []) as e:
        verb(d, "save-all all.json")
        path = d.path("all.json")
        d.stop()
        e.port = d.port
        verb(e, "restore-all --yes", more=[path], says=(
            "warning: portal " + absent, "no interface of this host", "This is now the set-up of"))
        portals = {p["portal"]: p for p in ask(e, "portal list")["portals"]}
        assert portals[absent]["absent"] and len(portals) == 2, portals
        assert [t["name"] for t in ask(e, "target list")["targets"]] == [NAME]


def test_restore_refuses(settings):
    with daemon(settings) as d:
        verb(d, "save-all all.json")
        with open(d.path("all.json")) as f:
            good = json.load(f)

        def bad(change, why):
            o = copy.deepcopy(good)
            change(o)
            with open(d.path("bad.json"), "w") as f:
                json.dump(o, f)
            os.chmod(d.path("bad.json"), 0o600)
            verb(d, "restore-all bad.json --yes", 1, why)

        bad(lambda o: o.update(format="x"), "is no file of save-all")
        bad(lambda o: o.update(version=2), "is of version 2")
        bad(lambda o: o.update(config=o["config"] + " "), "was damaged or changed")
        bad(lambda o: o["state"].update(version=2), "was damaged or changed")
        with open(d.path("bad.json"), "w") as f:
            f.write("nonsense")
        verb(d, "restore-all bad.json --yes", 1, "is no file of save-all")
        verb(d, "restore-all none.json --yes", 1, "cannot read none.json")
        os.chmod(d.path("all.json"), 0o644)
        s = Session(d.addr, NAME)
        s.login()
        verb(d, "restore-all all.json --yes", 1, ("others may read", s.initiator))
        s.nop()
        s.conn.close()


def test_saved_mode_pages_are_carried(settings):
    with daemon(settings) as d, daemon(settings, []) as e:
        s = Session(d.addr, NAME)
        s.login()
        page = s.run_ua(scsi.mode_sense6(0x08, 255), lun=1, read=255).good().data
        new = bytearray(page)
        new[0] = 0
        at = 4 + new[3]
        new[at] &= 0x7f
        new[at + 2] ^= 4  # WCE
        s.run(scsi.mode_select6(len(new), sp=1), lun=1, write=bytes(new)).good()
        s.conn.close()
        records = [r["name"] for r in one(d, "export")["data"]["records"]]
        assert len([r for r in records if r.startswith("mode-")]) == 1, records
        assert one(e, "import", state=one(d, "export")["data"])["ok"]
        assert [r["name"] for r in one(e, "export")["data"]["records"]] == records
