# SPDX-License-Identifier: BSD-2-Clause
"""A daemon that root starts has no rights afterwards, and works all the same: stores that only root
may open, loop devices, a port below 1024, growth, new units, the end.  Without root the daemon stays
who it is."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time

import conf_tool
from common import Skip, call, daemon
from lib import scsi
from lib.evtgt import IQN, Daemon, Lun, Target, free_port
from lib.iscsi import Session

MIB = 1 << 20
NO_CAPS = "0" * 16


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root, to have something to give up")


def default_user():
    for name in ("evtgt", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise Skip("neither evtgt nor nobody is a user here")


def status(pid):
    with open("/proc/%d/status" % pid) as f:
        return {k: v.split() for k, v in (line.split(":", 1) for line in f)}


def threads(pid):
    return [int(t) for t in os.listdir("/proc/%d/task" % pid)]


def openers(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


def check_gone(pid, uid, gid):
    for tid in threads(pid):
        s = status(tid)
        assert s["Uid"] == [str(uid)] * 4 and s["Gid"] == [str(gid)] * 4, s
        assert s["Groups"] == [] and s["NoNewPrivs"] == ["1"], s
        for caps in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert s[caps] == [NO_CAPS], (caps, s[caps])


@contextlib.contextmanager
def closed(settings, targets=None, **kw):
    """A daemon whose directory only root may enter; not started."""
    d = Daemon(targets or [Target("disk", [Lun("a.img", 4 * MIB, 1, kind="file")])], settings, **kw)
    try:
        for t in d.targets:
            for lun in t.luns:
                if lun.create and os.path.isfile(lun.where):
                    os.chmod(lun.where, 0o600)
        os.chmod(d.dir, 0o700)
        yield d
        d.stop()
    finally:
        d.cleanup()


def show(d):
    return d.iscsi("--op", "show", "--mode", "target")


def wait_for(d, what, seconds=15):
    end = time.monotonic() + seconds
    while what not in d.tail(100000):
        assert time.monotonic() < end, "no %s in the log:\n%s" % (what, d.tail())
        time.sleep(0.1)


def test_root_is_gone(settings):
    need_root()
    user = default_user()
    with closed(settings) as d:
        d.start()
        pid = d.proc.pid
        check_gone(pid, user.pw_uid, user.pw_gid)
        assert len(openers(pid)) == 1
        s = status(openers(pid)[0])
        assert s["Uid"] == ["0"] * 4 and s["CapEff"] == ["000000000008040f"], s
        assert s["NoNewPrivs"] == ["1"], s
        assert "runs-as user=" + user.pw_name in d.tail(), d.tail()
        st = os.stat(d.path("state"))
        assert (st.st_uid, stat.S_IMODE(st.st_mode)) == (user.pw_uid, 0o755), oct(st.st_mode)
        assert os.stat(d.sock).st_uid == user.pw_uid
        assert stat.S_IMODE(os.stat(d.sock).st_mode) == 0o600


def test_who(settings):
    need_root()
    for said, uid, gid in (("daemon", None, None), ("4711:4712", 4711, 4712)):
        if uid is None:
            uid, gid = pwd.getpwnam(said).pw_uid, pwd.getpwnam(said).pw_gid
        with closed(settings, head=["user root"], args=["--user", said]) as d:
            d.start()  # the option wins
            check_gone(d.proc.pid, uid, gid)
            assert os.stat(d.path("state/lock")).st_uid == uid
    with closed(settings, head=["user daemon"]) as d:
        d.start()
        check_gone(d.proc.pid, pwd.getpwnam("daemon").pw_uid, pwd.getpwnam("daemon").pw_gid)
        assert os.stat(d.path("state/lock")).st_uid == pwd.getpwnam("daemon").pw_uid
        # the state of another user's daemon is given on
        d.stop()
        d.args = ["--user", "4711:4712"]
        d.start()
        assert os.stat(d.path("state/lock")).st_uid == 4711


def test_root_is_kept(settings):
    need_root()
    with closed(settings, head=["user root"]) as d:
        d.start()
        assert status(d.proc.pid)["Uid"] == ["0"] * 4
        assert "warn daemon: keeps-root" in d.tail()
        call(d, "--op show --mode system")


def test_no_such_user(settings):
    need_root()
    with closed(settings, args=["--user", "no-such-user"]) as d:
        with open(d.conf, "w") as f:
            f.write(d.config())
        out = subprocess.run(d.command(), capture_output=True, text=True, timeout=20)
        assert out.returncode == 1, out
        assert 'there is no user "no-such-user"' in out.stderr and "--user" in out.stderr, out


def test_state_of_others(settings):
    """What is not the daemon's is not given away."""
    need_root()
    with closed(settings) as d:
        with open(d.conf, "w") as f:
            f.write(d.config())
        os.mkdir(d.path("state"))
        with open(d.path("state/passwd"), "w"):
            pass
        out = subprocess.run(d.command(), capture_output=True, text=True, timeout=20)
        assert out.returncode == 1 and "passwd" in out.stderr and d.path("state") in out.stderr, out
        assert os.stat(d.path("state")).st_uid == 0
        os.rename(d.path("state"), d.path("elsewhere"))
        os.unlink(d.path("elsewhere/passwd"))
        os.symlink("elsewhere", d.path("state"))
        out = subprocess.run(d.command(), capture_output=True, text=True, timeout=20)
        assert out.returncode == 1 and "symbolic link" in out.stderr, out
        assert os.stat(d.path("elsewhere")).st_uid == 0
        os.unlink(d.path("state"))


def test_stores_of_root(settings):
    """A unit on a file and one on a device that root only may open: there, vanishes, comes back,
    grows."""
    need_root()
    luns = [Lun("a.img", 4 * MIB, 1), Lun("b.img", 4 * MIB, 2, kind="block"),
            Lun("late.img", 4 * MIB, 3, create=False)]
    with closed(settings, [Target("disk", luns)]) as d:
        for dev in d.loops:
            os.chmod(dev, 0o600)
        d.start()
        out = show(d)
        assert "a.img" in out and d.loops[0] in out, out
        assert "came-back" not in d.tail(100000)
        os.truncate(d.path("a.img"), 8 * MIB)
        wait_for(d, "grew path=%s" % d.path("a.img"))
        os.truncate(d.path("b.img"), 8 * MIB)
        subprocess.run(["losetup", "-c", d.loops[0]], check=True, timeout=10)
        wait_for(d, "grew path=%s" % d.loops[0])
        os.rename(d.path("a.img"), d.path("away"))
        wait_for(d, "gone path=%s" % d.path("a.img"))
        os.rename(d.path("away"), d.path("a.img"))
        wait_for(d, "came-back path=%s" % d.path("a.img"))
        fd = os.open(d.path("late.img"), os.O_CREAT | os.O_WRONLY, 0o600)
        os.truncate(fd, 4 * MIB)
        os.close(fd)
        end = time.monotonic() + 15
        while show(d).count("Online: Yes") < 4:  # and the controller
            assert time.monotonic() < end, show(d) + d.tail()
            time.sleep(0.2)


def test_new_unit_by_root(settings):
    """What the configuration does not name, root's command does; also a layer's file."""
    need_root()
    with closed(settings) as d:
        with open(d.path("more.img"), "wb") as f:
            f.truncate(4 * MIB)
        os.chmod(d.path("more.img"), 0o600)
        d.start()
        d.iscsi("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "7", "-b",
                d.path("more.img"))
        assert "more.img" in show(d)
        d.iscsi("--op", "delete", "--mode", "logicalunit", "--tid", "1", "--lun", "7")
        d.iscsi("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "7", "-b",
                d.path("more.img"))
        assert "more.img" in show(d)
        assert "permit" not in d.tail(100000), d.tail()


def as_user(uid, gid, *cmd):
    return subprocess.run(cmd, capture_output=True, text=True, timeout=20, user=uid, group=gid,
                          extra_groups=[])


def test_command_of_the_user(settings):
    """The daemon's user may give orders, but none that widen what is opened; nobody may give none."""
    need_root()
    adm = shutil.copy(settings.adm, "/tmp/evtgtadm-%d" % os.getpid())
    try:
        os.chmod(adm, 0o755)
        with closed(settings, args=["--user", "4711:4712"]) as d:
            with open(d.path("secret.img"), "wb") as f:
                f.truncate(4 * MIB)
            os.chmod(d.path("secret.img"), 0o600)
            d.start()
            os.chmod(d.dir, 0o711)
            base = [adm, "--socket", d.sock, "--lld", "iscsi"]
            out = as_user(4711, 4712, *base, "--op", "show", "--mode", "target")
            assert out.returncode == 0 and IQN in out.stdout, out
            out = as_user(4711, 4712, *base, "--op", "new", "--mode", "logicalunit", "--tid", "1",
                          "--lun", "7", "-b", d.path("secret.img"))
            assert out.returncode != 0, out
            assert "secret.img" not in show(d)
            os.chmod(d.sock, 0o666)
            out = as_user(4713, 4713, *base, "--op", "show", "--mode", "target")
            assert out.returncode != 0 and "refused uid=4713" in d.tail(), out
        with closed(settings, args=["--user", "nobody"]) as d:
            d.start()
            os.chmod(d.dir, 0o711)
            n = pwd.getpwnam("nobody")
            out = as_user(n.pw_uid, n.pw_gid, adm, "--socket", d.sock, "--lld", "iscsi", "--op",
                          "show", "--mode", "target")
            assert out.returncode != 0 and "refused uid=%d" % n.pw_uid in d.tail(), out
    finally:
        os.unlink(adm)


NET = "ip link set lo up && exec \"$@\""


def test_port_below_1024(settings):
    """Port 860, the one that IANA gave; in a network of its own, where nobody has it."""
    need_root()
    if not shutil.which("unshare") or not shutil.which("ip"):
        raise Skip("needs unshare and ip")
    probe = subprocess.run(["unshare", "-n", "sh", "-c", NET, "sh", "true"], capture_output=True,
                           text=True, timeout=20)
    if probe.returncode:
        raise Skip("no network namespace: " + probe.stderr.strip())
    with closed(settings) as d:
        d.port = 860
        plain = d.command
        d.command = lambda: ["unshare", "-n", "sh", "-c", NET, "sh"] + plain()
        d.start()
        assert "portal-open addr=127.0.0.1:860" in d.tail(), d.tail()
        check_gone(d.proc.pid, default_user().pw_uid, default_user().pw_gid)
        out = d.iscsi("--op", "new", "--mode", "portal", "--param", "portal=127.0.0.1:861",
                      check=False)
        assert out.returncode == 0, out
        assert "portal-open addr=127.0.0.1:861" in d.tail(), d.tail()


def test_reload_without_root(settings):
    """Whatever only root may read or open is read and opened all the same when the configuration
    is read again: the file itself, secrets, new stores, ports below 1024."""
    need_root()
    if not shutil.which("unshare") or not shutil.which("ip"):
        raise Skip("needs unshare and ip")
    with closed(settings, head=["autosave off"]) as d:
        d.port = 860
        plain = d.command
        d.command = lambda: ["unshare", "-n", "sh", "-c", NET, "sh"] + plain()
        try:
            d.start()
        except Exception as e:
            raise Skip("no network namespace: %s" % e)
        check_gone(d.proc.pid, default_user().pw_uid, default_user().pw_gid)
        private = d.path("private")
        os.mkdir(private, 0o700)
        for name, text in (("new.img", None), ("other.img", None), ("more.conf", "incominguser bob @secret\n"),
                           ("secret", "abcdefghijkl\n"), ("deny", "")):
            with open(os.path.join(private, name), "w") as f:
                if text is None:
                    f.truncate(4 * MIB)
                else:
                    f.write(text)
            os.chmod(os.path.join(private, name), 0o600)
        with open(d.conf, "a") as f:
            f.write("portal 127.0.0.1:861\ninitiators-deny %s/deny\n"
                    "<target %snew>\ninitiator-address ALL\nbacking-store %s/new.img\n"
                    "include %s/more.conf\n</target>\n" % (private, IQN, private, private))
        os.kill(d.proc.pid, signal.SIGHUP)
        wait_for(d, "portal-open addr=127.0.0.1:861")
        end = time.monotonic() + 15
        while IQN + "new" not in show(d):
            assert time.monotonic() < end, d.tail()
            time.sleep(0.1)
        assert show(d).count("Online: Yes") == 4 and "bob" in show(d), show(d) + d.tail()
        assert conf_tool.reload(d)["changes"] == []
        # and what comes by a bundle of root's
        conf_tool.apply(d, "<target %sother>\ninitiator-address ALL\nbacking-store %s/other.img\n"
                        "</target>\n" % (IQN, private), add=True, targets=[IQN + "other"])
        # broken, then gone: nothing changes
        with open(d.conf, "a") as f:
            f.write("nonsense yes\n")
        before = conf_tool.dump(d, secrets=True)
        e = conf_tool.refusal(conf_tool.reload, d)
        assert e.code == "config" and d.conf in e.text and "nonsense" in e.text, e
        os.rename(d.conf, d.conf + ".away")
        e = conf_tool.refusal(conf_tool.reload, d)
        assert e.code == "config" and d.conf in e.text, e
        assert conf_tool.dump(d, secrets=True) == before
        os.rename(d.conf + ".away", d.conf)


def test_a_stopped_opener(settings):
    """The loop does not wait for the process that has the rights: whatever does not need it is done,
    and what does goes on when it does."""
    need_root()
    with closed(settings) as d:
        d.start()
        check_gone(d.proc.pid, default_user().pw_uid, default_user().pw_gid)
        child, = openers(d.proc.pid)
        private = d.path("private")
        os.mkdir(private, 0o700)
        path = os.path.join(private, "new.img")
        with open(path, "w") as f:
            f.truncate(MIB)
        os.chmod(path, 0o600)
        got = []

        def in_time(fn, *args, **kw):
            t0 = time.monotonic()
            r = fn(*args, **kw)
            took = time.monotonic() - t0
            assert took < 1 * settings.weight, "%s took %.1f s" % (args, took)
            return r

        def lives():
            s = Session(d.addr, d.targets[0].name)
            in_time(s.login)
            s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
            s.conn.close()

        def ask_it():
            try:
                conf_tool.ask(d, "logicalunit", "new", tid=1, lun=5, params={"backing-store": path})
            except AssertionError as e:
                got.append(e)

        os.kill(child, signal.SIGSTOP)
        try:
            for _ in range(3):
                assert in_time(conf_tool.ask, d, "system", "show")
                lives()
            in_time(conf_tool.ask, d, "portal", "new", portal="127.0.0.1:%d" % free_port())
            in_time(d.iscsi, "--op", "show", "--mode", "target")
            asker = threading.Thread(target=ask_it)
            asker.start()
            for _ in range(4):
                time.sleep(0.2)
                lives()
            assert asker.is_alive(), got
        finally:
            os.kill(child, signal.SIGCONT)
        asker.join(30)
        assert not asker.is_alive() and not got, got
        assert show(d).count("Online: Yes") == 2 + 1, show(d)
        check_gone(d.proc.pid, default_user().pw_uid, default_user().pw_gid)
        # and it ends all the same
        os.kill(child, signal.SIGSTOP)
        try:
            os.kill(d.proc.pid, signal.SIGTERM)
            assert d.proc.wait(10) == 0
        finally:
            os.kill(child, signal.SIGCONT)
        d.proc = None


def cpu_s(pid):
    with open("/proc/%d/stat" % pid) as f:
        times = f.read().rpartition(")")[2].split()[11:13]
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


def test_an_opener_that_was_killed(settings):
    """What needs it fails at once; all else goes on, and the daemon does not spin."""
    need_root()
    with closed(settings) as d:
        d.start()
        private = d.path("private")
        os.mkdir(private, 0o700)
        path = os.path.join(private, "late.img")
        with open(path, "w") as f:
            f.truncate(MIB)
        child, = openers(d.proc.pid)
        os.kill(child, signal.SIGKILL)
        for lun in (5, 6):
            t0 = time.monotonic()
            why = conf_tool.refusal(conf_tool.ask, d, "logicalunit", "new", tid=1, lun=lun,
                                    params={"backing-store": path})
            assert "rror" in str(why) or path in str(why), str(why)
            assert conf_tool.ask(d, "system", "show")
            assert time.monotonic() - t0 < 5 * settings.weight
        assert "Online: Yes" in show(d)
        s = Session(d.addr, d.targets[0].name).login()
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        s.logout()
        before = cpu_s(d.proc.pid)
        time.sleep(2)
        assert cpu_s(d.proc.pid) - before < 1


def test_what_is_saved_is_not_believed(settings):
    """A daemon that was taken over can write into its state directory what it likes: root's opener
    opens at the next start only what root granted."""
    need_root()
    with closed(settings) as d:
        d.start()
        private = d.path("private")
        os.mkdir(private, 0o700)
        for name in ("good", "secret"):
            with open("%s/%s.img" % (private, name), "w") as f:
                f.truncate(MIB)
        conf_tool.ask(d, "logicalunit", "new", tid=1, lun=5, persist=True,
                      params={"backing-store": private + "/good.img"})
        granted = d.path("state.granted")
        st = os.stat(granted)
        assert (st.st_uid, stat.S_IMODE(st.st_mode)) == (0, 0o600), oct(st.st_mode)

        def luns():
            return {u["lun"]: u for t in conf_tool.ask(d, "target", "show")["targets"]
                    for u in t["luns"]}

        d.kill()
        d.start()
        assert all(u["ready"] for n, u in luns().items() if n), "what root granted outlives a crash"
        d.stop()
        # the record is the user's, with a checksum that anybody can make
        os.rename(granted, d.path("kept"))
        d.start()
        u = luns()
        assert not u[5]["ready"] and u[1]["ready"], u
        assert "not permitted" in u[5]["reason"], u[5]
        assert "not-granted path=%s/good.img" % private in d.tail(100000), d.tail()
        d.stop()
        for how in ("owner", "mode", "link", "text"):
            shutil.copy(d.path("kept"), granted)
            os.chmod(granted, 0o600)
            if how == "owner":
                os.chown(granted, default_user().pw_uid, 0)
            elif how == "mode":
                os.chmod(granted, 0o660)
            elif how == "link":
                os.link(granted, d.path("another"))
            else:
                with open(granted, "a") as f:
                    f.write("9%s/secret.img\0" % private)
            d.start()
            assert not luns()[5]["ready"] or how == "text", how
            assert "grants-unreadable" in d.tail(100000), how
            d.stop()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(d.path("another"))
            os.unlink(granted)
        os.rename(d.path("kept"), granted)
        d.start()
        assert luns()[5]["ready"], luns()[5]
        conf_tool.ask(d, "logicalunit", "delete", tid=1, lun=5, persist=True)
        d.stop()
        d.start()
        assert b"good.img" not in open(granted, "rb").read(), "what nobody asks for any more goes"


def test_many_permits_while_stopped(settings):
    """The socket is full of what is permitted: the loop goes on, and all of it arrives."""
    need_root()
    with closed(settings) as d:
        d.start()
        child, = openers(d.proc.pid)
        private = d.path("private")
        os.mkdir(private, 0o700)
        for i in range(150):
            with open("%s/%d.img" % (private, i), "w") as f:
                f.truncate(MIB)
        text = "<target %smany>\ninitiator-address ALL\n%s</target>\n" % (
            IQN, "".join("backing-store %s/%d.img\n" % (private, i) for i in range(150)))
        got = []

        def ask_all():
            try:
                conf_tool.apply(d, text, targets=[IQN + "many"])
            except AssertionError as e:
                got.append(e)

        asker = threading.Thread(target=ask_all)
        os.kill(child, signal.SIGSTOP)
        try:
            asker.start()
            for _ in range(5):
                time.sleep(0.2)
                t0 = time.monotonic()
                s = Session(d.addr, d.targets[0].name).login()
                s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
                s.conn.close()
                assert time.monotonic() - t0 < 1 * settings.weight
        finally:
            os.kill(child, signal.SIGCONT)
        asker.join(30)
        assert not asker.is_alive() and not got, got
        end = time.monotonic() + 15
        while show(d).count("Online: Yes") != 2 + 1 + 150:
            assert time.monotonic() < end, show(d)[-3000:] + d.tail(3000)
            time.sleep(0.2)


def unit_text():
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(top, "dist", "evtgtd.service.in")) as f:
        return f.read()


def test_service_unit_leaves_enough(settings):
    """With the capabilities and the umask that the systemd unit gives."""
    need_root()
    unit = dict(line.split("=", 1) for line in unit_text().splitlines() if "=" in line)
    caps = [c[4:].lower() for c in unit["CapabilityBoundingSet"].split()]
    if not shutil.which("setpriv"):
        raise Skip("needs setpriv")
    with closed(settings) as d:
        plain = d.command
        d.command = lambda: ["setpriv", "--no-new-privs", "--bounding-set",
                             "-all," + ",".join("+" + c for c in caps)] + plain()
        old = os.umask(int(unit["UMask"], 8))
        try:
            d.start()
        finally:
            os.umask(old)
        check_gone(d.proc.pid, default_user().pw_uid, default_user().pw_gid)
        assert status(openers(d.proc.pid)[0])["CapEff"] == ["000000000008040f"]
        assert show(d).count("Online: Yes") == 2, show(d)


def test_service_unit_is_right(settings):
    if not shutil.which("systemd-analyze"):
        raise Skip("needs systemd-analyze")
    with closed(settings) as d:
        path = d.path("evtgtd.service")
        with open(path, "w") as f:
            f.write(unit_text().replace("@sbindir@/evtgtd", settings.daemon))
        out = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True,
                             text=True, timeout=30)
        assert out.returncode == 0 and not out.stderr.strip(), out


def test_owner_of_a_port_is_named(settings):
    need_root()
    with closed(settings) as d, socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen(1)
        d.port = s.getsockname()[1]
        with open(d.conf, "w") as f:
            f.write(d.config())
        out = subprocess.run(d.command(), capture_output=True, text=True, timeout=20)
        assert out.returncode == 1 and "(process %d)" % os.getpid() in out.stderr, out


def test_end(settings):
    """Socket and pid file go, in order or not."""
    for how in ("terminate", "kill"):
        with closed(settings, args=["-p", "pid"]) as d:
            d.start()
            child = openers(d.proc.pid)
            assert open(d.path("pid")).read() == "%d\n" % d.proc.pid
            getattr(d, how)()
            if how == "terminate":
                assert d.wait() == 0
                assert "ended" in d.tail()
            end = time.monotonic() + 10
            while os.path.exists(d.sock) or os.path.exists(d.path("pid")):
                assert time.monotonic() < end, os.listdir(d.dir)
                time.sleep(0.05)
            while any(os.path.exists("/proc/%d/exe" % p) and status(p)["State"][0] != "Z"
                      for p in child):
                assert time.monotonic() < end, "the opener stays"
                time.sleep(0.05)
            d.proc = None
    with daemon(settings) as d:  # what another one has put there since stays
        d.stop()
        d.args = ["-p", d.path("pid")]
        d.start()
        with open(d.path("pid"), "w") as f:
            f.write("1\n")
        os.unlink(d.sock)
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(d.sock)
            d.stop()
            assert os.path.exists(d.sock) and open(d.path("pid")).read() == "1\n"


def test_not_root(settings):
    """Another user's daemon: nothing to give up, nothing else either."""
    need_root()
    n = 4711
    where = "/tmp/evtgt-other-%d" % os.getpid()
    os.mkdir(where, 0o755)
    try:
        exe = shutil.copy(settings.daemon, where)
        with closed(settings, head=["user daemon"]) as d:
            os.chown(d.dir, n, n)
            for lun in d.targets[0].luns:
                os.chown(lun.where, n, n)
            plain = d.command

            def command():
                os.chown(d.conf, n, n)
                return ["setpriv", "--reuid", str(n), "--regid", str(n), "--clear-groups",
                        exe] + plain()[1:]

            d.command = command
            if not shutil.which("setpriv"):
                raise Skip("needs setpriv")
            os.mkdir(d.path("state"))
            os.chown(d.path("state"), n, n)
            old = os.umask(0)  # as a service manager has its socket: anybody may write there
            try:
                d.start()
            finally:
                os.umask(old)
            s = status(d.proc.pid)
            assert s["Uid"] == [str(n)] * 4, s
            assert "user-ignored uid=%d" % n in d.tail(), d.tail()
            assert show(d).count("Online: Yes") == 1 + len(d.targets[0].luns), show(d) + d.tail()
    finally:
        shutil.rmtree(where)
