# SPDX-License-Identifier: BSD-2-Clause
"""Plain verbs: each verb and option, refusals and what they advise, --json, names, sizes."""

import json
import os
import re
import socket
import stat
import subprocess
import tempfile

from common import MIB, NAME, call, daemon, file
from lib import scsi
from lib.evtgt import IQN, Lun, Target
from lib.iscsi import LoginFailed, Session
from verbs import ask, run, verb

TWO = [Target("disk", [Lun("a.img", 4 * MIB, 1, kind="file")]),
       Target("bigdisk", [Lun("b.img", 2 * MIB, 3, kind="file")], [])]


def logs_in(d, target=NAME, **kw):
    s = Session(d.addr, target, **kw)
    try:
        s.login()
    except LoginFailed:
        return None
    return s


def luns(d, target="disk"):
    return {l["lun"]: l for l in ask(d, "lun list " + target)["targets"][0]["luns"]}


def size(l):
    return l["blocks"] * l["block_size"]


# --- names, usage, output ------------------------------------------------------------------------

def test_names_of_targets(settings):
    with daemon(settings, TWO) as d:
        for name in (NAME, NAME.upper(), "disk", "1", "example:disk"):
            assert ask(d, "target show " + name)["target"]["name"] == NAME, name
        assert ask(d, "target show bigdisk")["target"]["tid"] == 2
        assert ask(d, "target show gdisk")["target"]["tid"] == 2
        e = ask(d, "target show isk", 1)
        assert e["code"] == "ambiguous" and NAME in e["message"] and "bigdisk" in e["message"]
        assert ask(d, "target show 7", 1)["code"] == "no-target"
        assert ask(d, "target show nonsense", 1)["code"] == "no-target"


def test_usage_errors(settings):
    with daemon(settings, TWO) as d:
        for text, says in (("target", "target create"), ("nonsense", "there is no verb nonsense"),
                           ("target nonsense", "there is no verb target nonsense"),
                           ("target delete", "target delete wants TARGET"),
                           ("target delete disk extra", '"extra" is too much'),
                           ("target list --nonsense", "no option --nonsense"),
                           ("target list -x", "options have two dashes"),
                           ("target list --names=1", "takes no value"),
                           ("lun add disk x --lun", "--lun wants N"),
                           ("lun add disk x --lun 1 --lun 2", "is given twice"),
                           ("lun add disk x --lun 16384", "from 0 to 16383"),
                           ("lun add disk x --full", "--full goes with --create"),
                           ("lun add disk x --create 5 --thin --full", "exclude each other"),
                           ("lun add disk x --create 5X", "is no size"),
                           ("lun add disk x --set size", "--set wants NAME=VALUE"),
                           ("lun set disk 1 readonly", "is not NAME=VALUE"),
                           ("lun remove disk 1 --keep --erase", "exclude each other"),
                           ("acl allow disk", "a rule is wanted"),
                           ("account bind u", "either a target or --discovery"),
                           ("account add u", "password"),
                           ("account add u --outgoing", "--outgoing goes with"),
                           ("completion tcsh", "bash, zsh or fish"),
                           ("help nonsense", "there is no verb nonsense")):
            out = run(d, *text.split())
            assert out.returncode == 2, (text, out)
            assert says in out.stdout + out.stderr, (text, out)
        e = ask(d, "target delete", 2)
        assert e["code"] == "usage" and "usage: evtgtadm target delete TARGET" in e["hint"]
        # a beginning of an option is enough when it fits one only
        verb(d, "target list --nam")
        verb(d, "lun add disk x --s 1", 2, "--s can be --set or --socket")


def test_no_daemon(settings):
    with daemon(settings, TWO) as d:
        out = run(d, "target", "list", "--socket", d.path("none"))
        assert out.returncode == 107, out
        assert "no evtgtd answers at" in out.stderr and "systemctl start evtgtd" in out.stderr
        out = run(d, "status", "--json", "--socket", d.path("none"))
        assert out.returncode == 107 and json.loads(out.stdout)["error"]["code"] == "no-daemon"
        assert d.path("none") in out.stderr


def test_help(settings):
    with daemon(settings, TWO) as d:
        whole = verb(d, "help")
        for line in re.findall(r"^  (\w[\w-]*(?: \w+)?)", whole, re.M):
            name = line.strip()
            words = name.split()
            one = run(d, "help", *words)
            if one.returncode:  # a verb of one word, with its argument
                words = words[:1]
                one = run(d, "help", *words)
            assert one.returncode == 0 and one.stdout.startswith("usage: evtgtadm " + words[0]), name
            assert "Options:" in one.stdout and "--help" in one.stdout, name
            again = run(d, *words, "--help")
            assert (again.returncode, again.stdout) == (0, one.stdout), name
            assert run(d, *words, "-h").stdout == one.stdout, name
        for group in ("target", "lun", "acl", "account", "portal", "session"):
            assert group + " list" in verb(d, "help " + group)
            assert run(d, group, "--help").returncode == 0


def test_colours_only_on_a_terminal(settings):
    with daemon(settings, TWO) as d:
        assert "\033" not in run(d, "target", "list", env={"TERM": "xterm"}).stdout
        def on_terminal(**env):
            out = subprocess.run(["script", "-qec", d.set.adm + " target list", "/dev/null"],
                                 capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL,
                                 env=dict({k: v for k, v in os.environ.items() if k != "NO_COLOR"},
                                          EVTGT_SOCKET=d.sock, **env))
            assert NAME in out.stdout, out
            return out.stdout
        assert "\033[32m" in on_terminal(TERM="xterm")
        assert "\033" not in on_terminal(TERM="xterm", NO_COLOR="1")
        assert "\033" not in on_terminal(TERM="dumb")


def test_tables_are_aligned(settings):
    with daemon(settings, TWO) as d:
        lines = verb(d, "target list").splitlines()
        assert len({l.index(w) for l, w in zip(lines, ("STATE", "ready", "admits"))}) == 1, lines


# --- targets -------------------------------------------------------------------------------------

def test_target_list_and_show(settings):
    with daemon(settings, TWO) as d:
        data = ask(d, "target list")
        assert [t["name"] for t in data["targets"]] == [NAME, IQN + "bigdisk"]
        assert verb(d, "target list --names") == "%s\n%sbigdisk\n" % (NAME, IQN)
        verb(d, "target list", says=("TID", "admits nobody", NAME))
        s = logs_in(d)
        verb(d, "target show disk", says=("tid 1, ready", "a.img", s.initiator, "4 MiB", "ALL"))
        verb(d, "target show disk --keys", says="MaxBurstLength=")
        verb(d, "target show bigdisk", says=("nobody", "evtgtadm acl allow", "No sessions."))
        s.conn.close()


def test_target_delete(settings):
    with daemon(settings, TWO) as d:
        s = logs_in(d)
        verb(d, "target delete disk", 1, ("in use by " + s.initiator, "--force"))
        assert ask(d, "target delete disk", 1)["code"] == "target-active"
        s.nop()
        verb(d, "target delete disk --force", says=("is deleted", "a.img stays"))
        s.conn.expect_close(5)
        s.conn.close()
        assert ask(d, "target delete bigdisk") == {"tid": 2, "name": IQN + "bigdisk"}
        assert ask(d, "target list") == {"targets": []}
        verb(d, "target list", says="help target create")
        assert os.path.exists(d.path("a.img"))


def test_target_set(settings):
    with daemon(settings, TWO) as d:
        data = ask(d, "target set disk MaxBurstLength=65536 alias=Backup")
        assert data == {"name": NAME, "set": {"MaxBurstLength": "65536", "alias": "Backup"}}
        t = ask(d, "target show disk")["target"]
        assert t["alias"] == "Backup" and ["MaxBurstLength", "65536"] in t["keys"]
        verb(d, "target set disk MaxBurstLength=1024 FirstBurstLength=7", 1)
        assert ["MaxBurstLength", "65536"] in ask(d, "target show disk")["target"]["keys"]
        assert ask(d, "target set disk Nonsense=1", 1)["code"] == "unknown-parameter"
        for out in (run(d, "target", "set", "disk", "IFMarkInt=2048"),
                    d.adm(*"--op update --mode target --tid 1 -n IFMarkInt -v 2048".split(),
                          check=False)):
            assert out.returncode == 0 and out.stderr == \
                "evtgtadm: warning: IFMarkInt has no effect here\n", out
        verb(d, "target set disk state=offline", says="is changed")
        assert not logs_in(d)


# --- logical units -------------------------------------------------------------------------------

def test_lun_add(settings):
    with daemon(settings, TWO) as d:
        path = file(d, "c.img", MIB)
        data = ask(d, "lun add disk c.img")  # relative to where the caller is
        assert data["target"] == NAME and data["lun"]["lun"] == 2 and data["lun"]["path"] == path
        assert size(data["lun"]) == MIB
        verb(d, "lun add disk c.img --lun 9 --readonly", 1, ("LUN 2 of " + NAME, "settings"))
        file(d, "e.img", MIB)
        verb(d, "lun add disk e.img --lun 9 --readonly --set vendor_id=ACME",
             says=("LUN 9", "1 MiB", "read-only"))
        l = luns(d)[9]
        assert l["readonly"] and l["vendor_id"] == "ACME"
        verb(d, "lun add disk none.img", 1, "No such file")
        verb(d, "lun add disk e.img --lun 9", 1, ("already exists", "first free number"))
        verb(d, "lun add disk e.img --set nonsense=1", 1, "nonsense")
        verb(d, "lun add disk null:1G --lun 10", says="1 GiB")
        assert luns(d)[10]["bs_type"] == "null" and size(luns(d)[10]) == 1 << 30
        s = logs_in(d)
        s.run_ua(scsi.TEST_UNIT_READY, lun=2).good()
        s.conn.close()


def test_lun_add_makes_a_file(settings):
    with daemon(settings, TWO) as d:
        data = ask(d, "lun add disk thin.img --create 64M")
        st = os.stat(d.path("thin.img"))
        assert st.st_size == 64 * MIB and st.st_blocks == 0 and stat.S_IMODE(st.st_mode) == 0o600
        assert data["lun"]["thin"]
        data = ask(d, "lun add disk full.img --create 1.5M --full")
        st = os.stat(d.path("full.img"))
        assert st.st_size == st.st_blocks * 512 == 3 * MIB // 2 and not data["lun"]["thin"]
        verb(d, "lun add disk full.img --create 1M", 1, ("is there already", "Without --create"))
        assert os.path.exists(d.path("full.img"))
        verb(d, "lun add disk huge.img --create 8000000000G --full", 2, "is no size")
        verb(d, "lun add disk huge.img --create 1000P --full", 1, ("free", "--thin"))
        assert not os.path.exists(d.path("huge.img"))
        # made, refused, removed again
        verb(d, "lun add disk odd.img --create 1M --set block-size=7", 1, "removed again")
        assert not os.path.exists(d.path("odd.img"))
        verb(d, "lun add disk odd.img --create 1M --lun 1", 1, "removed again")
        assert not os.path.exists(d.path("odd.img"))


def test_lun_add_keeps_a_file_that_may_be_used(settings):
    """What the daemon did, or may have done, is not undone by taking the file away."""
    refusals = {"timeout": True, "not-saved": True, "invalid": False, "": True}
    for code, stays in refusals.items():
        with tempfile.TemporaryDirectory(prefix="evtgt-verbs-") as tmp:
            out = against(settings, tmp, [code], "lun", "add", "disk", "new.img", "--create", "1M")
            assert out.returncode, out
            assert os.path.exists(os.path.join(tmp, "new.img")) is stays, (code, out)
            assert ("stays" in out.stderr) is stays, out


def test_acl_of_a_daemon_in_doubt(settings):
    """Rules that hold already are not said to be gone."""
    for code, undone in (("invalid", True), ("timeout", False), ("not-saved", False)):
        with tempfile.TemporaryDirectory(prefix="evtgt-verbs-") as tmp:
            out = against(settings, tmp, ["ok", code, "ok"], "acl", "allow", "disk", "192.0.2.1",
                          "192.0.2.2")
            assert out.returncode and ("nothing was changed" in out.stderr) is undone, (code, out)
            assert out.asked == ["bind", "bind"] + (["unbind"] if undone else []), (code, out.asked)


def against(settings, tmp, codes, *args):
    """A verb beside something that answers like a daemon: what is more than a look with "ok", with
    these errors one after the other, or with the end of the connection (""). asked: what it was."""
    path = os.path.join(tmp, "sock")
    target = {"tid": 1, "name": NAME, "luns": []}
    look = {"targets": [target], "drivers": [{"targets": [target]}]}
    codes, asked = list(codes), []
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(path)
        s.listen()
        s.settimeout(0.2)
        p = subprocess.Popen([settings.adm, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, cwd=tmp, env=dict(os.environ, EVTGT_SOCKET=path))
        while p.poll() is None:
            try:
                c, _ = s.accept()
            except socket.timeout:
                continue
            with c, c.makefile("rw") as f:
                req = json.loads(f.readline())
                code = "ok"
                if req["op"] != "show":
                    asked.append(req["op"])
                    code = codes.pop(0)
                answer = {"ok": True, "data": look} if code == "ok" else {
                    "ok": False, "error": {"code": code, "message": "no"}}
                if code:
                    f.write(json.dumps({"v": 1, **answer}) + "\n")
        out, err = p.communicate(timeout=20)
    done = subprocess.CompletedProcess(args, p.returncode, out, err)
    done.asked = asked
    return done


def test_lun_remove(settings):
    targets = [Target("disk", [Lun("a.img", 4 * MIB, 1, kind="file"),
                               Lun("b.img", MIB, 3, kind="file"), Lun("c.img", MIB, 4, kind="file")]),
               Target("other", [Lun("a.img", 4 * MIB, 2, kind="file")])]
    with daemon(settings, targets) as d:
        verb(d, "lun remove disk 1 --erase --yes", 1, ("is also LUN 2 of " + IQN + "other", "--keep"))
        assert ask(d, "lun remove disk 1") == {"target": NAME, "lun": 1, "path": d.path("a.img"),
                                               "erased": False}
        assert os.path.exists(d.path("a.img"))
        verb(d, "lun remove disk 3 --erase", 1, ("nobody said yes", "--yes"))
        assert 3 in luns(d) and os.path.exists(d.path("b.img"))
        verb(d, "lun remove disk 3 --erase --yes=/other", 1, "not /other")
        verb(d, "lun remove disk 3 --erase --yes", says="is erased")
        assert 3 not in luns(d) and not os.path.exists(d.path("b.img"))
        os.link(d.path("c.img"), d.path("hard"))
        verb(d, "lun remove disk 4 --erase --yes", 1, "hard link")
        verb(d, "lun remove disk 4 --keep", says="stays as it is")
        verb(d, "lun remove disk 4", 1, ("no LUN 4", "lun list"))
        assert ask(d, "lun remove disk 77", 1)["code"] == "no-lun"


def test_lun_remove_in_use(settings):
    """Nobody loses a disk that he is logged in to, unless forced; tgtadm's form takes it as ever."""
    targets = [Target("disk", [Lun("a.img", MIB, 1, kind="file"), Lun("b.img", MIB, 2, kind="file"),
                               Lun("c.img", MIB, 3, kind="file")])]
    with daemon(settings, targets) as d:
        s = Session(d.addr, NAME).login()
        for text in ("lun remove disk 1", "lun remove disk 1 --erase --yes"):
            verb(d, text, 1, ("in use by %s at 127.0.0.1" % s.initiator, "--force"))
        assert ask(d, "lun remove disk 1", 1)["code"] == "lun-active"
        assert ask(d, "lun remove disk 9", 1)["code"] == "no-lun"
        assert 1 in luns(d) and os.path.exists(d.path("a.img"))
        verb(d, "lun remove disk 1 --force", says="is gone")
        call(d, "--op delete --mode logicalunit --tid 1 --lun 2")
        s.logout()
        s.conn.close()
        verb(d, "lun remove disk 3", says="is gone")
        assert not {1, 2, 3} & set(luns(d))


def test_lun_remove_erases_what_was_meant(settings):
    """No link in place of its file, and nothing that was put there while somebody thought."""
    with daemon(settings, TWO) as d:
        real = file(d, "real.img", MIB)
        os.symlink(real, d.path("link.img"))
        verb(d, "lun add disk link.img --lun 5")
        verb(d, "lun remove disk 5 --erase --yes", 1, ("symbolic link", real, "--keep"))
        assert 5 in luns(d) and os.path.islink(d.path("link.img"))
        out = terminal(d, "lun remove disk 1 --erase",
                       lambda: (verb(d, "lun remove disk 1"),
                                verb(d, "lun add disk other.img --create 1M --lun 1")))
        assert "by now" in out and os.path.exists(d.path("a.img")), out
        assert 1 in luns(d) and os.path.exists(d.path("other.img"))


def terminal(d, text, meanwhile):
    """A verb that asks on a terminal; `meanwhile` is called before somebody says yes."""
    p = subprocess.Popen(["script", "-qec", d.set.adm + " " + text, "/dev/null"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                         env=dict(os.environ, EVTGT_SOCKET=d.sock))
    got = ""
    while "Type yes" not in got:
        part = os.read(p.stdout.fileno(), 4096).decode()
        assert part, got
        got += part
    meanwhile()
    return got + p.communicate("yes\n", timeout=20)[0]


def test_lun_remove_asks_on_a_terminal(settings):
    with daemon(settings, TWO) as d:
        for answer, gone in (("no", False), ("yes", True)):
            out = subprocess.run(["script", "-qec", d.set.adm + " lun remove disk 1 --erase",
                                  "/dev/null"], capture_output=True, text=True, timeout=20,
                                 input=answer + "\n", env=dict(os.environ, EVTGT_SOCKET=d.sock))
            assert "nothing brings it back" in out.stdout, out
            assert (out.returncode == 0) is gone, out
            assert os.path.exists(d.path("a.img")) is not gone


def test_lun_remove_force(settings):
    with daemon(settings, TWO) as d:
        s = logs_in(d)
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        s.run(bytes([0x1e, 0, 0, 0, 1, 0]), lun=1)  # PREVENT ALLOW MEDIUM REMOVAL
        out = run(d, "lun", "remove", "disk", "1")
        if out.returncode:  # only removable units heed it
            assert "--force" in out.stderr
        verb(d, "lun list disk")
        run(d, "lun", "remove", "disk", "1", "--force")
        assert 1 not in luns(d)
        s.conn.close()


def test_lun_resize(settings):
    with daemon(settings, TWO) as d:
        data = ask(d, "lun resize disk 1 8M")
        assert data == {"target": NAME, "lun": 1, "had": 4 * MIB, "bytes": 8 * MIB}
        assert size(luns(d)[1]) == 8 * MIB == os.path.getsize(d.path("a.img"))
        verb(d, "lun resize disk 1 +1M --thin", says=("9 MiB now (it had 8 MiB)", "rescan"))
        verb(d, "lun resize disk 1 9M", says="as before")
        verb(d, "lun resize disk 1 2M", 1, ("more than 2 MiB", "--shrink"))
        assert os.path.getsize(d.path("a.img")) == 9 * MIB
        verb(d, "lun resize disk 1 2000001", 2, "whole number of blocks")
        verb(d, "lun resize disk 1 1000P --full", 1, "free")
        verb(d, "lun resize disk 1 1M --full --thin", 2, "exclude")
        # somebody else made it larger
        os.truncate(d.path("a.img"), 12 * MIB)
        assert ask(d, "lun resize disk 1")["bytes"] == 12 * MIB
        verb(d, "lun resize disk 1 4M --shrink", says=("what was beyond is lost", "4 MiB"))
        assert os.path.getsize(d.path("a.img")) == 4 * MIB
        verb(d, "lun add disk null:1M --lun 5")
        verb(d, "lun resize disk 5 2M", 1, "null device")


def test_lun_list_and_set(settings):
    with daemon(settings, TWO) as d:
        data = ask(d, "lun list")
        assert [(t["tid"], [l["lun"] for l in t["luns"]]) for t in data["targets"]] == [(1, [1]),
                                                                                      (2, [3])]
        verb(d, "lun list", says=("LUN", "SIZE", "a.img", "b.img", "2 MiB", "ready"))
        assert ask(d, "lun set disk 1 readonly=on")["set"] == {"readonly": "on"}
        assert luns(d)[1]["readonly"]
        verb(d, "lun set disk 1 online=off", says="is changed")
        verb(d, "lun list disk", says=("offline", "read-only"))
        assert ask(d, "lun set disk 9 readonly=on", 1)["code"] == "no-lun"
        verb(d, "lun set disk 1 nonsense=on", 1, "nonsense")


def test_lun_set_hints(settings):
    with daemon(settings, TWO) as d:
        for text, says in (("block-size=4096", ("remove it and add it again", "lun remove TARGET")),
                           ("readonl=on", ("unknown parameter: readonl; did you mean readonly?",)),
                           ("blocksizes=1", ("unknown parameter: blocksizes",))):
            verb(d, "lun set disk 1 " + text, 1, says)
            assert "Free it" not in run(d, "lun", "set", "disk", "1", text).stderr


def test_reload_that_takes_away(settings):
    """The refusal says what of which target, from whom, and what does it nevertheless."""
    with daemon(settings, TWO) as d:
        with open(d.conf) as f:
            text = f.read()
        s = logs_in(d)
        with open(d.conf, "w") as f:
            f.write(text.replace("a.img", "none.img"))
        err = run(d, "reload").stderr
        assert NAME + ": " in err and "logical unit 1" in err.lower().replace("lun", "logical unit"), err
        assert s.initiator in err and "--force" in err and '"force"' not in err, err
        s.logout()
        s.conn.close()


def test_lun_that_is_not_ready(settings):
    t = [Target("disk", [Lun("none.img", MIB, 1, kind="file", create=False)])]
    with daemon(settings, t) as d:
        verb(d, "lun list", says=("not ready", "No such file"))
        verb(d, "status", says=("not ready 1 LUN", "LUN not ready"))


# --- access --------------------------------------------------------------------------------------

def test_acl(settings):
    with daemon(settings, TWO) as d:
        big = IQN + "bigdisk"
        assert not logs_in(d, big)
        data = ask(d, "acl allow bigdisk 127.0.0.0/8 iqn.2001-04.friend:*")
        assert data == {"target": big, "added": [{"kind": "address", "rule": "127.0.0.0/8"},
                                                 {"kind": "initiator", "rule": "iqn.2001-04.friend:*"}]}
        assert not logs_in(d, big)
        logs_in(d, big, initiator="iqn.2001-04.friend:x").conn.close()
        # all or none
        verb(d, "acl allow bigdisk 10.0.0.1 127.0.0.0/8", 1, ("127.0.0.0/8", "nothing was changed"))
        shown = ask(d, "acl list bigdisk")
        assert shown["addresses"] == ["127.0.0.0/8"] and shown["target"] == big, shown
        verb(d, "acl deny bigdisk 127.0.0.0/8 10.0.0.1", 1, "10.0.0.1")
        assert ask(d, "acl list bigdisk")["addresses"] == ["127.0.0.0/8"]
        verb(d, "acl allow bigdisk nonsense/99", 1)
        verb(d, "acl allow bigdisk --initiator iqn.2001-04.other:x --local 127.0.0.1",
             says=("Both an address and a name", "iscsiadm -m node -T " + big))
        verb(d, "account add mac --password-file - --target bigdisk", stdin="fourteen-bytes\n")
        said = verb(d, "acl allow bigdisk iface:lo")
        node = "iscsiadm -m node -T %s -p 127.0.0.1:%d " % (big, d.port)
        lines = [x.strip() for x in said.split("\n") if "-m node" in x]
        assert lines == [node + "-o update -n node.session.auth.authmethod -v CHAP",
                         node + "-o update -n node.session.auth.username -v 'mac'",
                         node + "-o update -n node.session.auth.password -v PASSWORD",
                         node + "--login"], said
        assert "fourteen" not in said
        verb(d, "account remove mac")
        verb(d, "acl deny bigdisk iface:lo")
        shown = ask(d, "acl list bigdisk")
        assert shown["local_addresses"] == ["127.0.0.1"]
        assert shown["initiators"] == ["iqn.2001-04.friend:*", "iqn.2001-04.other:x"]
        verb(d, "acl list bigdisk", says=("127.0.0.0/8", "iqn.2001-04.other:x"))
        s = logs_in(d, big, initiator="iqn.2001-04.other:x")
        verb(d, "acl deny bigdisk 127.0.0.0/8 --initiator iqn.2001-04.other:x "
                "--initiator iqn.2001-04.friend:*", says=("nobody", "session kill"))
        s.nop()
        s.conn.close()
        verb(d, "acl allow bigdisk --address 127.0.0.1", says="127.0.0.1")
        logs_in(d, big).conn.close()


SECRET = "sixteen-bytes-00"


def test_accounts(settings):
    with daemon(settings, TWO) as d:
        verb(d, "account add mac --password-file -", says="account bind mac TARGET",
             stdin=SECRET + "\n")
        verb(d, "account add mac --password-file -", 1, "already exists", stdin=SECRET)
        logs_in(d).conn.close()
        verb(d, "account bind mac disk", says="prove itself")
        assert not logs_in(d)
        data = ask(d, "account list")
        assert data == {"accounts": [{"user": "mac", "bound": [{"target": NAME, "outgoing": False}]}]}
        verb(d, "account list", says=("mac", NAME))
        assert ask(d, "account unbind mac disk")["open"] == [NAME]
        verb(d, "account add two --password-file - --target disk", stdin=SECRET + "2\n")
        verb(d, "account bind mac disk")
        assert "without CHAP" not in run(d, "account", "unbind", "mac", "disk").stderr
        verb(d, "account remove two", says=NAME + " is open without CHAP now")
        verb(d, "account bind mac disk")
        verb(d, "account unbind mac disk", says=("not count at", NAME + " is open without CHAP now"))
        logs_in(d).conn.close()
        verb(d, "account unbind mac disk", 1, "can't find the account")
        verb(d, "account bind mac --discovery", says="discovery")
        assert ask(d, "account list")["accounts"][0]["bound"] == [{"target": None,
                                                                   "outgoing": False}]
        verb(d, "account bind nobody disk", 1, "account add USER")
        verb(d, "account remove mac", says=("is gone", "discovery is open without CHAP now"))
        assert ask(d, "account list") == {"accounts": []}


def test_account_passwords(settings):
    with daemon(settings, TWO) as d:
        data = ask(d, "account add one --generate-password --target disk --initiator iqn.2001-04.a:*")
        assert re.fullmatch(r"[\w-]{16}", data["password"]) and data["target"] == NAME
        out = verb(d, "account add two --generate-password --discovery")
        assert re.search(r"shown this once: [\w-]{16}$", out, re.M), out
        path = file(d, "secret", 0)
        with open(path, "w") as f:
            f.write("another-secret-00\nsecond line\n")
        verb(d, "account add three --password-file secret --target disk --outgoing",
             says="others may read or write")
        os.chmod(path, 0o600)
        out = run(d, "account", "add", "four", "--password-file", "secret")
        assert out.returncode == 0 and not out.stderr, out
        verb(d, "account add five --password-file -", says="can be found by trying", stdin="short")
        verb(d, "account add six --password-file none", 1, "cannot read none")
        verb(d, "account add six --password-file -", 1, "no password", stdin="\n")
        verb(d, "account add six --password-file -", 1, "no password", stdin="x" * 300)
        verb(d, "account add six --password-file - --generate-password", 2, "exclude", stdin="x")
        # bound nowhere: not made either
        verb(d, "account add seven --password-file - --target disk --outgoing", 1,
             stdin="seventh-secret-0")
        names = [a["user"] for a in ask(d, "account list")["accounts"]]
        assert sorted(names) == ["five", "four", "one", "three", "two"], names
        with open(d.log) as f:
            assert "another-secret" not in f.read()


def test_account_asks_without_echo(settings):
    with daemon(settings, TWO) as d:
        out = pty_call(d, ["account", "add", "typed"], [SECRET, SECRET])
        assert out[0] == 0 and SECRET not in out[1] and "Password for typed" in out[1], out
        out = pty_call(d, ["account", "add", "wrong"], [SECRET, "something else"])
        assert out[0] == 1 and "they differ" in out[1], out
        assert [a["user"] for a in ask(d, "account list")["accounts"]] == ["typed"]


def pty_call(d, args, answers):
    """On a terminal; each question that ends with `: ` gets the next answer. (status, screen)"""
    import pty
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["EVTGT_SOCKET"] = d.sock
        os.execv(d.set.adm, [d.set.adm] + args)
    screen = b""
    while True:
        try:
            data = os.read(fd, 4096)
        except OSError:
            break
        if not data:
            break
        screen += data
        if data.endswith(b": ") and answers:
            os.write(fd, answers.pop(0).encode() + b"\n")
    status = os.waitpid(pid, 0)[1]
    os.close(fd)
    return os.waitstatus_to_exitcode(status), screen.decode()


def test_portals(settings):
    from lib.evtgt import free_port
    with daemon(settings, TWO) as d:
        port = free_port()
        name = "127.0.0.1:%d" % port
        assert ask(d, "portal add %s --group 7 --advertise 192.0.2.1:3260" % name) == {"portal": name}
        p = [p for p in ask(d, "portal list")["portals"] if p["portal"] == name]
        assert p and p[0]["tpgt"] == 7 and p[0]["advertise"] == "192.0.2.1:3260"
        verb(d, "portal list", says=(name, "192.0.2.1:3260", "open", "GROUP"))
        verb(d, "portal add %s" % name, 1)
        verb(d, "portal add nonsense:99999", 1)
        verb(d, "portal add 127.0.0.1:1 --group x", 2)
        verb(d, "portal remove %s" % name, says="is closed")
        assert name not in verb(d, "portal list")
        verb(d, "portal remove %s" % name, 1, "no such portal")


# --- sessions ------------------------------------------------------------------------------------

def test_sessions(settings):
    with daemon(settings, TWO) as d:
        verb(d, "session list", says="No initiator")
        a = logs_in(d, initiator="iqn.2001-04.friend:a")
        b = logs_in(d, initiator="iqn.2001-04.friend:b")
        data = ask(d, "session list")["sessions"]
        assert [s["initiator"][-1] for s in data] == ["a", "b"]
        verb(d, "session list disk", says=("SID", "friend:a", "127.0.0.1"))
        assert ask(d, "session list bigdisk") == {"sessions": []}
        verb(d, "session kill iqn.2001-04.friend:b --target bigdisk", 1, "no session")
        verb(d, "session kill iqn.2001-04.friend:a --target disk",
             says=("is ended", "evtgtadm acl deny", "It may log in again"))
        a.conn.expect_close(5)
        ended = ask(d, "session kill %d" % data[1]["sid"])["ended"]
        assert [s["initiator"] for s in ended] == ["iqn.2001-04.friend:b"]
        b.conn.expect_close(5)
        assert ask(d, "session kill 99", 1)["code"] == "no-session"
        # admitted by its name: the very rule is told
        verb(d, "acl allow disk iqn.2001-04.friend:c")
        c = logs_in(d, initiator="iqn.2001-04.friend:c")
        verb(d, "session kill IQN.2001-04.friend:c",
             says="acl deny %s iqn.2001-04.friend:c" % NAME)
        for s in (a, b, c):
            s.conn.close()


def test_drain(settings):
    with daemon(settings, TWO) as d:
        assert ask(d, "drain disk --deadline 1") == {"drained": True, "target": NAME}
        verb(d, "target list", says="drained")
        assert not logs_in(d)
        verb(d, "undrain disk", says="accepted again")
        logs_in(d).conn.close()
        verb(d, "drain --to 192.0.2.1:3260 --deadline 1", says=("192.0.2.1", "undrain"))
        verb(d, "status", says="drained")
        assert ask(d, "undrain") == {"drained": False, "target": None}
        verb(d, "undrain", 1, "nothing is drained")
        verb(d, "drain --to nonsense:::", 1)


def test_status(settings):
    with daemon(settings, TWO) as d:
        s = logs_in(d)
        data = ask(d, "status")
        assert (data["target_count"], data["lun_count"], data["luns_not_ready"],
                data["session_count"]) == (2, 2, 0, 1)
        assert data["daemon"]["state"] == "ready" and data["portals"][0]["portal"]
        verb(d, "status", says=("evtgtd    ready", "2 with 2 LUNs, 1 sessions", NAME, str(d.port)))
        s.conn.close()


def test_check(settings):
    with daemon(settings, TWO) as d:
        assert not [m for m in ask(d, "check " + d.conf)["messages"] if m["error"]]
        verb(d, "check " + d.conf)
        with open(d.path("bad.conf"), "w") as f:
            f.write("<target iqn.2001-04.a:b>\n    nonsense 1\n</target>\n")
        verb(d, "check bad.conf", 1, "bad.conf:2:5: error:")
        out = run(d, "check", "bad.conf", "--json")
        answer = json.loads(out.stdout)
        m = [m for m in answer["data"]["messages"] if m["error"]][0]
        assert out.returncode == 1 and not answer["ok"]
        assert (m["file"], m["line"], m["col"]) == (d.path("bad.conf"), 2, 5), m
        assert "nonsense" in m["text"], m
        assert run(d, "check", d.conf, "--socket", "x").returncode == 2


def test_options_before_the_verb(settings):
    """Those that every verb has may stand on both sides of it."""
    with daemon(settings) as d:
        bare = {"EVTGT_SOCKET": "/nonexistent/socket"}
        want = verb(d, "target list")
        for before, behind in (("--socket %s", ""), ("--socket=%s", ""), ("", "--socket %s")):
            words = [w % d.sock if "%" in w else w for w in (before + " target list " + behind).split()]
            out = run(d, *words, env=bare)
            assert out.returncode == 0 and out.stdout == want, (words, out)
        out = run(d, "--json", "--socket", d.sock, "target", "create", "x", "--", env=bare)
        assert out.returncode == 0 and json.loads(out.stdout)["ok"], out
        out = run(d, "--persist", "target", "delete", "x")
        assert out.returncode == 0, out
        for words, says in ((("--socket",), "usage"), (("--json", "nonsense"), "there is no verb nonsense"),
                            (("--force", "target", "delete", "x"), "unrecognized option"),
                            (("--persist", "status"), "--persist")):
            out = run(d, *words)
            assert out.returncode != 0 and says in out.stdout + out.stderr or words == ("--socket",), (words, out)
        # tgtadm's form is not a verb's
        assert run(d, "--json", "--mode", "target", "--op", "show").returncode == 0


def test_an_account_twice(settings):
    with daemon(settings) as d:
        verb(d, "account add mac --password-file -", stdin="secret-of-mac-1\n")
        verb(d, "account add mac --password-file -", 1, ("this account already exists", "account remove"),
             stdin="secret-of-mac-2\n")
