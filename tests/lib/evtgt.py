# SPDX-License-Identifier: BSD-2-Clause
"""Starts and stops evtgtd for tests: own temporary directory, own loopback port, own sockets.

    d = Daemon([Target("disk", [Lun("a.img", 16 << 20)])])
    d.start(); ...; d.stop()

The daemon tells by sd_notify that it is ready.  It is stopped by its process id, must exit with
status 0 and must not have printed a sanitizer report.  `Tgtd` does the same with the tgt daemon,
so that the library can be tried against a target that is not ours."""

import glob
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

IQN = "iqn.2026-11.com.example:"
SANITIZER = re.compile(rb"ERROR: \w+Sanitizer|runtime error:|WARNING: ThreadSanitizer|"
                       rb"SUMMARY: \w+Sanitizer|worker_assert_owner|[Aa]ssertion .*failed")
START_S, STOP_S = 20, 15


class Failed(Exception):
    """The daemon did not start, died, or did not end well."""


def free_port(host="127.0.0.1"):
    """Below the range that the kernel takes for outgoing connections, so that no client of a
    test running at the same time gets it meanwhile."""
    for _ in range(200):
        port = random.randrange(15000, 32000)
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind((host, port))
                return port
            except OSError:
                continue
    raise Failed("no free port on " + host)


class Lun:
    """kind: None (the run's backend), "file", "null", "zram" (path is its name); size in bytes; opts: `option value` lines.
    path: relative to the daemon's directory; create=False leaves it missing. thick: not on a
    backend that is always thin (then a file)."""

    def __init__(self, path, size=16 << 20, lun=0, kind=None, create=True, opts=(), thick=False):
        self.path, self.size, self.lun, self.kind, self.thick = path, size, lun, kind, thick
        self.create, self.opts = create, list(opts)


class Target:
    def __init__(self, name, luns, opts=("initiator-address ALL",)):
        self.name = name if "." in name else IQN + name
        self.luns, self.opts = luns, list(opts)


class Settings:
    """What the runner was told; the same for all daemons of a run."""

    def __init__(self, daemon="evtgtd", adm=None, workers=1, placement="spread", engine="ring",
                 backend="file", keep=False):
        self.daemon, self.workers, self.placement = daemon, workers, placement
        self.engine, self.backend, self.keep = engine, backend, keep
        self.adm = adm or os.path.join(os.path.dirname(daemon), "evtgtadm")
        if not os.path.exists(self.adm):
            near = os.path.join(os.path.dirname(daemon), "..", "tools", "evtgtadm")
            self.adm = near if os.path.exists(near) else self.adm
        self.weight = self.sanitizer_weight()

    def sanitizer_weight(self):
        """How many times the memory and time of a plain build this one takes: ThreadSanitizer has
        several shadow bytes for each byte that was touched."""
        try:
            with open(self.daemon, "rb") as f:
                code = f.read()
        except OSError:
            return 1  # found by PATH
        return 4 if b"__tsan_init" in code else 2 if b"__asan_init" in code else 1


class Daemon:
    def __init__(self, targets, settings, head=(), args=(), host="127.0.0.1"):
        self.targets, self.set, self.head, self.args = targets, settings, list(head), list(args)
        base = "/dev/shm" if settings.backend == "file-tmpfs" else None
        self.dir = tempfile.mkdtemp(prefix="evtgt-wire-", dir=base)
        os.chmod(self.dir, 0o755)
        self.host, self.port = host, free_port(host)
        self.proc = None
        self.loops = []
        self.sock = os.path.join(self.dir, "adm.sock")
        self.log = os.path.join(self.dir, "stderr")
        self.conf = os.path.join(self.dir, "evtgt.conf")
        for t in targets:
            for lun in t.luns:
                self.make(lun)

    @property
    def addr(self):
        return (self.host, self.port)

    def kind(self, lun):
        kind = lun.kind or self.set.backend
        return "file" if kind == "zram" and lun.thick else kind

    def path(self, name):
        return os.path.join(self.dir, name)

    def make(self, lun):
        kind = self.kind(lun)
        if kind == "zram":
            lun.where = lun.path  # its name
            return
        lun.where = self.path(lun.path)
        if not lun.create or kind == "null":
            return
        if not os.path.exists(lun.where):
            with open(lun.where, "wb") as f:
                f.truncate(lun.size)
        if kind == "block":
            out = subprocess.run(["losetup", "-f", "--show", lun.where], capture_output=True,
                                 text=True, timeout=10)
            if out.returncode:
                raise Failed("losetup: " + out.stderr)
            lun.where = out.stdout.strip()
            self.loops.append(lun.where)

    def config(self):
        out = list(self.head)
        out.append("portal %s:%d" % ("[%s]" % self.host if ":" in self.host else self.host,
                                      self.port))
        for t in self.targets:
            out.append("<target %s>" % t.name)
            out += ["    " + o for o in t.opts]
            for lun in t.luns:
                kind = self.kind(lun)
                out.append("    <backing-store %s>" % lun.where)
                out.append("        lun %d" % lun.lun)
                if kind == "null":
                    out += ["        bs-type null", "        size %d" % lun.size]
                elif kind == "zram":
                    out += ["        bs-type zram", "        size %d" % lun.size]
                elif kind == "block":
                    out.append("        bs-type blockio")
                out += ["        " + o for o in lun.opts]
                out.append("    </backing-store>")
            out.append("</target>")
        return "\n".join(out) + "\n"

    def command(self):
        s = self.set
        return [s.daemon, "-f", "-c", self.conf, "--state-dir", self.path("state"), "--socket",
                self.sock, "--workers", str(s.workers), "--placement", s.placement, "--engine",
                s.engine] + self.args

    def start(self):
        with open(self.conf, "w") as f:
            os.chmod(self.conf, 0o600)  # it may hold secrets
            f.write(self.config())
        os.makedirs(self.path("state"), exist_ok=True)
        name = self.path("notify")
        if os.path.exists(name):
            os.unlink(name)
        note = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        note.bind(name)
        note.settimeout(0.2)
        env = dict(os.environ, NOTIFY_SOCKET=name)
        env.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        with open(self.log, "ab") as err:
            self.proc = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=err,
                                         stderr=err, env=env, cwd=self.dir)
        deadline = time.monotonic() + START_S * self.set.weight
        try:
            while True:
                if self.proc.poll() is not None:
                    raise Failed("exits with %d at start: %s" % (self.proc.returncode,
                                                                 self.tail()))
                if time.monotonic() > deadline + self.kept_waiting():
                    raise Failed("not ready after %d s: %s" % (START_S * self.set.weight,
                                                                 self.tail()))
                try:
                    if b"READY=1" in note.recv(4096).split(b"\n"):
                        break
                except socket.timeout:
                    pass
        except Failed:
            self.kill()
            raise
        finally:
            note.close()
        return self

    def tail(self, n=1500):
        try:
            with open(self.log, "rb") as f:
                return f.read()[-n:].decode(errors="replace").strip()
        except OSError:
            return ""

    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    def report(self):
        """A sanitizer report that was printed so far, or None."""
        with open(self.log, "rb") as f:
            m = SANITIZER.search(data := f.read())
        return data[m.start():m.start() + 3000].decode(errors="replace") if m else None

    def rss(self):
        """Resident bytes."""
        with open("/proc/%d/statm" % self.proc.pid) as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def kept_waiting(self):
        """Seconds that its thread that fared worst could have run in, had a processor been free: on a
        busy machine that is no time of the daemon's.  0 where the kernel does not tell."""
        most = 0
        for path in glob.glob("/proc/%d/task/*/schedstat" % self.proc.pid):
            try:
                with open(path) as f:
                    most = max(most, int(f.read().split()[1]))
            except (OSError, IndexError):
                pass  # the thread has ended
        return most / 1e9

    def fds(self):
        return len(os.listdir("/proc/%d/fd" % self.proc.pid))

    def kill(self):
        if self.alive():
            self.proc.kill()
            self.proc.wait()

    def terminate(self):
        os.kill(self.proc.pid, signal.SIGTERM)

    def wait(self, seconds=STOP_S):
        try:
            return self.proc.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed("does not end within %d s of SIGTERM" % seconds)

    def stop(self):
        """SIGTERM; raises Failed for a bad exit status or a sanitizer report."""
        status = None
        if self.proc is not None:
            if self.alive():
                self.terminate()
            status = self.wait()
        bad = self.report() if self.proc is not None else None
        if bad:
            raise Failed("sanitizer report: " + bad)
        if status:
            raise Failed("exit status %d: %s" % (status, self.tail()))

    def cleanup(self):
        self.kill()
        for dev in self.loops:
            subprocess.run(["losetup", "-d", dev], capture_output=True, timeout=10)
        self.loops = []
        if not self.set.keep:
            shutil.rmtree(self.dir, ignore_errors=True)

    def adm(self, *args, check=True, timeout=15):
        """evtgtadm; `check`: status 0 wanted.  Returns its output."""
        out = subprocess.run([self.set.adm, "--socket", self.sock] + list(args),
                             capture_output=True, text=True, timeout=timeout)
        if check and out.returncode:
            raise AssertionError("evtgtadm %s: status %d: %s%s" % (
                " ".join(args), out.returncode, out.stdout, out.stderr))
        return out.stdout if check else out

    def iscsi(self, *args, **kw):
        return self.adm("--lld", "iscsi", *args, **kw)


class Tgtd(Daemon):
    """The tgt daemon under the same tests: shows what the library itself gets wrong."""

    def start(self):
        self.control = str(random.SystemRandom().randrange(300, 32000))
        with open(self.log, "ab") as err:
            self.proc = subprocess.Popen(
                ["tgtd", "-f", "-C", self.control, "--iscsi",
                 "portal=%s:%d" % (self.host, self.port)], stdin=subprocess.DEVNULL, stdout=err,
                stderr=err)
        deadline = time.monotonic() + START_S * self.set.weight
        while True:
            try:
                socket.create_connection(self.addr, 1).close()
                break
            except OSError:
                if time.monotonic() > deadline or not self.alive():
                    raise Failed("tgtd does not start: " + self.tail())
                time.sleep(0.05)
        for tid, t in enumerate(self.targets, 1):
            self.iscsi("--op", "new", "--mode", "target", "--tid", str(tid), "-T", t.name)
            self.iscsi("--op", "delete", "--mode", "logicalunit", "--tid", str(tid), "--lun", "0",
                       check=False)
            for lun in t.luns:
                self.iscsi("--op", "new", "--mode", "logicalunit", "--tid", str(tid), "--lun",
                           str(lun.lun + 1), "-b", lun.where)
            self.iscsi("--op", "bind", "--mode", "target", "--tid", str(tid), "-I", "ALL")
        return self

    def adm(self, *args, check=True, timeout=15):
        out = subprocess.run(["tgtadm", "-C", self.control] + list(args), capture_output=True,
                             text=True, timeout=timeout)
        if check and out.returncode:
            raise AssertionError("tgtadm %s: %s" % (args, out.stderr))
        return out.stdout if check else out

    def stop(self):
        self.kill()
