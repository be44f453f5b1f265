# SPDX-License-Identifier: BSD-2-Clause
"""What is changed is kept if asked, never by accident: persist, autosave, save, forget, saved."""

import os
import signal
import stat
import subprocess
import threading

from common import MIB, NAME, Skip, call, daemon, file, program
from conf_tool import ask, apply, dump, refusal, reload
from lib.evtgt import IQN, Target, free_port
from lib.iscsi import LoginFailed, Session
from test_privileges import closed, need_root, wait_for
from verbs import ask as json_verb, verb

OTHER = IQN + "other"
SECRET = "abcdefghijklm"


def restart(d, kill=False):
    if kill:
        d.kill()
    else:
        d.stop()
    d.start()


def targets(d):
    return {t["name"]: t for t in ask(d, "target", "show")["targets"]}


def saved(d):
    return {s.get("target", ""): s for s in ask(d, "config", "saved")["saved"]}


def record(d):
    return d.path("state/r.saved-config")


def may_log_in(d, name=NAME):
    try:
        s = Session(d.addr, name)
        s.login()
    except LoginFailed:
        return False
    s.logout()
    return True


def test_nothing_is_kept_unasked(settings):
    with daemon(settings) as d:
        ask(d, "target", "new", tid=7, name=OTHER)
        ask(d, "target", "update", tid=1, params={"MaxBurstLength": "65536"})
        assert saved(d) == {} and not os.path.exists(record(d))
        assert ask(d, "config", "saved")["autosave"] is False
        restart(d)
        assert list(targets(d)) == [NAME]
        assert ["MaxBurstLength", "65536"] not in targets(d)[NAME]["keys"]


def changes(d):
    """Each kind of change of a target: how it is made, and what shows it."""
    path = file(d, "more.img", 2 * MIB)
    yield "new", ("target", "new", {"tid": 7, "name": OTHER}), lambda t: t["tid"] == 7
    yield "lun", ("logicalunit", "new", {"tid": 7, "lun": 3, "params": {"backing-store": path}}), \
        lambda t: [li["lun"] for li in t["luns"] if li["lun"]] == [3]
    yield "key", ("target", "update", {"tid": 7, "params": {"MaxBurstLength": "65536"}}), \
        lambda t: ["MaxBurstLength", "65536"] in t["keys"]
    yield "rule", ("target", "bind", {"tid": 7, "address": "127.0.0.1"}), \
        lambda t: t["addresses"] == ["127.0.0.1"]


def test_each_change_of_a_target(settings):
    with daemon(settings) as d:
        seen = []
        for what, (mode, op, args), shows in changes(d):
            ask(d, mode, op, persist=True, **args)
            seen.append((what, shows))
            restart(d)
            t = targets(d)[OTHER]
            for name, good in seen:
                assert good(t), (what, name, t)
        assert list(saved(d)) == [OTHER] and "saved-used" in d.tail(100000)
        ask(d, "logicalunit", "delete", tid=7, lun=3, persist=True)
        restart(d)
        assert [li for li in targets(d)[OTHER]["luns"] if li["lun"]] == []
        ask(d, "target", "delete", tid=7, persist=True)
        assert saved(d) == {}, "nothing is left of a target that the file never had"
        restart(d)
        assert list(targets(d)) == [NAME]


def test_accounts_and_secrets(settings):
    with daemon(settings) as d:
        ask(d, "account", "new", user="bob", password=SECRET)
        ask(d, "account", "bind", user="bob", tid=1, persist=True)
        st = os.stat(record(d))
        assert stat.S_IMODE(st.st_mode) == 0o600, oct(st.st_mode)
        assert not may_log_in(d)
        restart(d)
        assert not may_log_in(d)
        assert SECRET in dump(d, target=NAME, secrets=True)
        assert SECRET not in d.tail(1000000)
        ask(d, "account", "delete", user="bob", persist=True)
        restart(d)
        assert may_log_in(d)
        ask(d, "account", "new", user="di", password=SECRET, bind=True, persist=True)
        assert "" in saved(d)
        restart(d)
        assert ask(d, "system", "show")["discovery"], "discovery's account is gone"


def test_the_daemon_itself(settings):
    with daemon(settings) as d:
        port = free_port()
        ask(d, "portal", "new", portal="127.0.0.1:%d" % port, persist=True)
        ask(d, "system", "update", name="nop_interval", value="9", persist=True)
        assert list(saved(d)) == [""], saved(d)
        restart(d)
        ports = [p["portal"] for p in ask(d, "portal", "show")["portals"]]
        assert len(ports) == 2 and ports[1].endswith(":%d" % port), ports
        assert ask(d, "system", "show")["nop_interval"] == 9
        assert reload(d)["changes"] == []
        ask(d, "config", "forget", globals=True)
        restart(d)
        assert len(ask(d, "portal", "show")["portals"]) == 1


def test_deleted_stays_deleted(settings):
    with daemon(settings) as d:
        ask(d, "target", "delete", tid=1, persist=True)
        assert saved(d)[NAME]["deleted"] is True
        restart(d)
        assert targets(d) == {} and reload(d)["changes"] == [] and targets(d) == {}
        verb(d, "saved", says=[NAME, "(deleted)"])
        verb(d, "forget " + NAME)
        assert saved(d) == {} and targets(d) == {}, "forgetting changes nothing that runs"
        restart(d)
        assert list(targets(d)) == [NAME] and not os.path.exists(record(d))


def test_save_and_forget(settings):
    with daemon(settings) as d:
        ask(d, "target", "new", tid=7, name=OTHER)
        ask(d, "target", "update", tid=1, params={"MaxBurstLength": "65536"})
        e = refusal(ask, d, "config", "save", targets=[IQN + "nobody"])
        assert e.code == "no-target", e
        e = refusal(ask, d, "config", "forget", targets=[NAME])
        assert e.code == "no-target" and "nothing of it is saved" in e.text, e
        e = refusal(ask, d, "target", "update", tid=1, persist="yes")
        assert e.code == "invalid" and "persist" in e.text, e
        verb(d, "save other")
        assert list(saved(d)) == [OTHER]
        restart(d)
        assert set(targets(d)) == {NAME, OTHER}
        assert ["MaxBurstLength", "65536"] not in targets(d)[NAME]["keys"]
        ask(d, "target", "update", tid=1, params={"MaxBurstLength": "65536"})
        verb(d, "save")
        assert set(saved(d)) == {"", NAME, OTHER}
        reload(d)
        assert ["MaxBurstLength", "65536"] in targets(d)[NAME]["keys"]
        assert {s.get("target", "") for s in json_verb(d, "saved")["saved"]} == {"", NAME, OTHER}
        verb(d, "forget")
        assert saved(d) == {}
        reload(d, force=True)
        assert list(targets(d)) == [NAME]


def test_short_names_of_what_is_gone(settings):
    with daemon(settings) as d:
        ask(d, "target", "new", tid=7, name=OTHER)
        verb(d, "save other --globals")
        ask(d, "target", "delete", tid=1)
        verb(d, "save disk", status=1, says="there is no target")  # a name only the file has now
        verb(d, "save " + NAME)
        assert saved(d)[NAME]["deleted"] is True
        ask(d, "target", "delete", tid=7)
        verb(d, "forget disk other", says=["next reload or start", "takes the configuration file"])
        assert list(saved(d)) == [""]
        verb(d, "forget other", status=1, says=["there is no target other", "`saved`"])
        assert reload(d)["changes"] and list(targets(d)) == [NAME]
        verb(d, "forget disk", status=1, says="nothing of it is saved")


def test_the_globals_alone(settings):
    with daemon(settings) as d:
        ask(d, "target", "new", tid=7, name=OTHER)
        ask(d, "system", "update", name="nop_interval", value="9")
        verb(d, "save --globals")
        assert list(saved(d)) == [""]
        verb(d, "save --globals other")
        assert set(saved(d)) == {"", OTHER}
        restart(d)
        assert ask(d, "system", "show")["nop_interval"] == 9
        verb(d, "forget --globals")
        assert list(saved(d)) == [OTHER]


def test_a_reload_names_what_is_hidden(settings):
    with daemon(settings) as d:
        text = d.config()
        verb(d, "save")
        assert reload(d)["messages"] == [], "the file says the same"
        reload(d, text.replace("<target %s>" % NAME, "<target %s>\n    alias two" % NAME))
        m, = reload(d)["messages"]
        line = 1 + text.split("\n").index("<target %s>" % NAME)
        assert (m["file"], m["line"], m["error"]) == (d.conf, line, False), m
        assert "alias" in m["text"] and "forget " + NAME in m["text"], m
        assert targets(d)[NAME]["alias"] == "" and "saved-hides target=" + NAME in d.tail(100000)
        verb(d, "reload --pretend", says=["%s:%d:" % (d.conf, line), "warning: target " + NAME])
        reload(d, "nop_interval 11\n" + text)
        m, = reload(d)["messages"]
        assert m["line"] == 0 and "nop_interval" in m["text"] and "--globals" in m["text"], m
        reload(d, text)
        ask(d, "target", "delete", tid=1, persist=True)
        m, = reload(d)["messages"]
        assert "deleted" in m["text"] and m["line"] == line, m
        verb(d, "forget")
        assert reload(d)["messages"] == [] and list(targets(d)) == [NAME]


def test_verbs_persist(settings):
    with daemon(settings) as d:
        path = file(d, "v.img", 2 * MIB)
        verb(d, "target create %s --lun %s --allow all --persist" % (OTHER, path))
        restart(d)
        assert len(targets(d)[OTHER]["luns"]) >= 1
        verb(d, "target delete %s --persist" % OTHER)
        restart(d)
        assert list(targets(d)) == [NAME]


def test_tgtadm_persist(settings):
    """The command lines of tgtadm, under both names; without the option nothing is kept."""
    with daemon(settings) as d:
        path = file(d, "w.img", MIB)
        t = "--lld iscsi --mode target --tid 7"
        call(d, t + " --op new --targetname %s --persist" % OTHER)
        for line in ("--mode logicalunit --op new --tid 7 --lun 2 --backing-store " + path,
                     t + " --op update --name MaxBurstLength --value 65536",
                     t + " --op bind --initiator-address ALL"):
            call(d, line + " --persist")
        call(d, t + " --op bind --initiator-name iqn.2001-04.x:not-kept")
        program(d, "tgtadm", *(t + " --op unbind -I ALL").split(), "--persist", check=0)
        call(d, "--mode system --op update --name nop_count --value 7 --persist")
        call(d, "--mode target --op new --tid 8 --targetname %sgone" % IQN)
        restart(d)
        now = targets(d)
        assert IQN + "gone" not in now and now[OTHER]["tid"] == 7
        assert [u["lun"] for u in now[OTHER]["luns"] if u.get("path")] == [2], now[OTHER]
        assert ["MaxBurstLength", "65536"] in now[OTHER]["keys"] and now[OTHER]["addresses"] == []
        # an option of ours makes no abbreviation of theirs ambiguous
        program(d, "tgtadm", *"--lld iscsi --mode account --op new --user bob --pas 123456789012".split(), check=0)
        for line in ("--mode target --op show", "--mode system --op show", "--mode target --op drain --tid 7",
                     "--mode session --op delete --tid 7 --sid 1", "--mode lld --op start"):
            call(d, line + " --persist", 22)
        call(d, t + " --op delete --persist")
        restart(d)
        assert list(targets(d)) == [NAME]


def test_autosave(settings):
    with daemon(settings, head=["autosave on"]) as d:
        assert ask(d, "system", "show")["autosave"] is True
        ask(d, "target", "new", tid=7, name=OTHER)
        ask(d, "target", "delete", tid=1)
        assert set(saved(d)) == {NAME, OTHER}
        restart(d, kill=True)
        assert list(targets(d)) == [OTHER]
        verb(d, "saved", says="autosave is on")


def test_a_reload_saves_nothing(settings):
    with daemon(settings, head=["autosave on"]) as d:
        text = d.config()
        got = reload(d, text.replace("<target %s>" % NAME, "<target %s>\n    alias x" % NAME))
        assert got["changes"] and saved(d) == {}, "what the file says stays the file's"
        assert ask(d, "config", "reload", persist=True)["changes"] == [] and saved(d) == {}
        reload(d, text, persist=True)
        assert saved(d) == {} and targets(d)[NAME]["alias"] == ""


def test_apply(settings):
    text = "<target %s>\n    alias %%s\n    initiator-address ALL\n</target>\n" % OTHER
    with daemon(settings) as d:
        apply(d, text % "one", add=True)
        assert saved(d) == {}
        apply(d, text % "two", targets=[OTHER], persist=True, pretend=True)
        assert saved(d) == {}
        got = apply(d, text % "two", targets=[OTHER], persist=True)
        assert got["changes"] and list(saved(d)) == [OTHER]
        restart(d)
        assert targets(d)[OTHER]["alias"] == "two"
        apply(d, text % "whole", persist=True, force=True)
        restart(d)
        assert list(targets(d)) == [OTHER] and targets(d)[OTHER]["alias"] == "whole"
        assert saved(d)[NAME]["deleted"]


def test_access_files_are_saved_with_their_lines(settings):
    with daemon(settings) as d:
        path = d.path("initiators.deny")
        with open(path, "w") as f:
            f.write("ALL ALL\n")
        text = d.config()
        with open(d.conf, "w") as f:
            f.write("initiators-deny %s\n%s" % (path, text))
        reload(d)
        assert not may_log_in(d)
        ask(d, "config", "save", globals=True)
        os.unlink(path)
        restart(d)  # which writes the file anew, without the directive
        assert not may_log_in(d), "who was kept out is let in"


def test_killed_after_the_answer(settings):
    with daemon(settings) as d:
        for i in range(5):
            ask(d, "target", "new", tid=20 + i, name=IQN + "k%d" % i, persist=True)
            restart(d, kill=True)
            assert IQN + "k%d" % i in targets(d)
        assert len(targets(d)) == 6


def test_many_at_once(settings):
    with daemon(settings) as d:
        wrong = []

        def one(i):
            try:
                ask(d, "target", "new", tid=30 + i, name=IQN + "c%d" % i, persist=True)
            except Exception as e:  # noqa: BLE001: told below
                wrong.append(e)

        threads = [threading.Thread(target=one, args=(i,)) for i in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong, wrong
        restart(d, kill=True)
        assert set(targets(d)) == {NAME} | {IQN + "c%d" % i for i in range(16)}


def test_a_text_that_does_not_fit(settings):
    """Two of one number: the file's and another one are served, the saved one is kept and told."""
    with daemon(settings) as d:
        ask(d, "target", "new", tid=7, name=OTHER, persist=True)
        ask(d, "target", "new", tid=8, name=IQN + "third", persist=True)
        d.stop()
        d.targets.append(Target("late", [], ["controller_tid 7"]))
        d.start()
        assert set(targets(d)) == {NAME, IQN + "late", IQN + "third"}
        assert "7" in saved(d)[OTHER]["error"] and "error" not in saved(d)[IQN + "third"]
        assert "saved-unusable" in d.tail(100000)
        verb(d, "status", says="evtgtadm saved")
        verb(d, "saved", says="not used")
        got = reload(d)
        assert any(OTHER in m["file"] and not m["error"] for m in got["messages"]), got
        with open(record(d), "rb") as f:
            before = f.read()
        e = refusal(ask, d, "target", "new", tid=9, name=OTHER, persist=True)
        assert e.code == "not-saved" and OTHER in e.text and "in force" in e.text, e
        assert OTHER in targets(d), "the change is in force"
        with open(record(d), "rb") as f:
            assert f.read() == before
        ask(d, "config", "forget", targets=[OTHER])
        ask(d, "config", "save", targets=[OTHER])
        restart(d)
        assert targets(d)[OTHER]["tid"] == 9


def test_a_broken_record(settings):
    with daemon(settings) as d:
        ask(d, "target", "new", tid=7, name=OTHER, persist=True)
        d.stop()
        with open(record(d), "r+b") as f:
            f.seek(30)
            f.write(b"\xff\xff")
        with open(record(d), "rb") as f:
            before = f.read()
        d.start()
        assert list(targets(d)) == [NAME] and "saved-unreadable" in d.tail(100000)
        assert "checksum" in ask(d, "config", "saved")["error"]
        assert ask(d, "system", "show")["saved_unusable"]
        verb(d, "saved", says="cannot be read")
        e = refusal(ask, d, "target", "new", tid=8, name=IQN + "x", persist=True)
        assert e.code == "not-saved" and "checksum" in e.text, e
        reload(d, force=True)
        with open(record(d), "rb") as f:
            assert f.read() == before
        ask(d, "config", "forget")
        assert not os.path.exists(record(d)) and "error" not in ask(d, "config", "saved")
        ask(d, "target", "new", tid=9, name=IQN + "y", persist=True)
        restart(d)
        assert set(targets(d)) == {NAME, IQN + "y"}


def test_no_room(settings):
    need_root()
    with daemon(settings, start=False) as d:
        state = d.path("state")
        os.makedirs(state, exist_ok=True)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "none", state],
                          check=False, capture_output=True).returncode:
            raise Skip("a tmpfs cannot be mounted")
        try:
            d.start()
            ask(d, "target", "new", tid=7, name=OTHER, persist=True)
            with open(os.path.join(state, "ballast"), "wb", buffering=0) as f:
                try:
                    while f.write(b"x" * 4096):
                        pass
                except OSError:
                    pass
            e = refusal(ask, d, "target", "new", tid=8, name=IQN + "full", persist=True)
            assert e.code == "not-saved" and "in force" in e.text and "space" in e.text, e
            assert IQN + "full" in targets(d) and list(saved(d)) == [OTHER]
            os.unlink(os.path.join(state, "ballast"))
            ask(d, "config", "save", targets=[IQN + "full"])
            restart(d)
            assert set(targets(d)) == {NAME, OTHER, IQN + "full"}
            d.stop()
        finally:
            subprocess.run(["umount", "-l", state], check=False)


def test_stores_that_only_root_may_open(settings):
    need_root()
    with closed(settings) as d:
        d.start()
        path = file(d, "root.img", 2 * MIB)
        os.chmod(path, 0o600)
        ask(d, "target", "new", tid=7, name=OTHER)
        ask(d, "logicalunit", "new", tid=7, lun=3, params={"backing-store": path}, persist=True)
        restart(d)

        def ready():
            luns = targets(d)[OTHER]["luns"]
            return [li["ready"] for li in luns if li["lun"] == 3] == [True]

        assert ready(), targets(d)[OTHER]
        ask(d, "target", "delete", tid=7)
        assert OTHER not in targets(d)
        os.kill(d.proc.pid, signal.SIGHUP)
        wait_for(d, "reloaded changes")
        assert ready(), targets(d)[OTHER]
