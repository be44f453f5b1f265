# SPDX-License-Identifier: BSD-2-Clause
"""evtgtd and evtgtadm under the names of the programs they stand for, in a directory of their own: what
`make install-compat` makes. Old(settings) has it, runs programs of it, and keeps a daemon's place."""

import os
import shutil
import signal
import subprocess
import tempfile
import time

from lib.evtgt import Failed, SANITIZER, START_S, STOP_S, free_port

TOOLS = ("tgtadm", "tgt-admin", "tgt-setup-lun", "tgtimg", "ietadm", "evtgtadm")


class Old:
    """A temporary directory with bin/ (links), state/ and run/; env for everything in it. Used by
    `with`: what was started is ended and must leave no sanitizer report."""

    def __init__(self, settings):
        self.set = settings
        self.dir = tempfile.mkdtemp(prefix="evtgt-old-")
        os.chmod(self.dir, 0o755)
        self.bin, self.procs = self.path("bin"), []
        for d in ("bin", "state", "run", "proc"):
            os.mkdir(self.path(d))
        for name in TOOLS:
            os.symlink(settings.adm, self.path("bin", name))
        for name in ("tgtd", "ietd"):
            os.symlink(settings.daemon, self.path("bin", name))
        self.port = free_port()
        self.addr = ("127.0.0.1", self.port)
        self.env = dict(os.environ, PATH=self.bin + ":" + os.environ["PATH"],
                        TGT_IPC_SOCKET=self.path("run", "socket"), LC_ALL="C",
                        EVTGT_IET_PROC=self.path("proc"))
        self.env.pop("EVTGT_SOCKET", None)
        self.env.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            for p, log in self.procs:
                if p.poll() is None:
                    p.send_signal(signal.SIGTERM)
            for p, log in self.procs:
                try:
                    status = p.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait()
                    status = "killed"
                with open(log, "rb") as f:
                    text = f.read()
                if kind is None and (status not in (0, -signal.SIGTERM) or SANITIZER.search(text)):
                    raise Failed("%s: status %s: %s" % (p.args[0], status, text[-3000:].decode()))
        finally:
            if not self.set.keep:
                shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def file(self, name, size=1 << 20):
        with open(self.path(name), "wb") as f:
            f.truncate(size)
        return self.path(name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), 0o600)
        return self.path(name)

    def run(self, *args, timeout=30, input=None, env=None):
        """Whatever it ends with; `args` as execvp takes them."""
        return subprocess.run([os.path.join(self.bin, args[0])] + list(args[1:]), input=input,
                              capture_output=True, text=True, timeout=timeout, env=env or self.env,
                              cwd=self.dir)

    def ok(self, *args, **kw):
        """Status 0 wanted, nothing on stderr; stdout."""
        out = self.run(*args, **kw)
        assert out.returncode == 0 and not out.stderr, (args, out)
        return out.stdout

    def sh(self, script, *args, timeout=60):
        """A shell with the links first in PATH; for the parse steps of scripts. stdout."""
        out = subprocess.run(["bash", "-c", script, "sh"] + list(args), capture_output=True, text=True,
                             timeout=timeout, env=self.env, cwd=self.dir)
        assert out.returncode == 0, (script, out)
        return out.stdout

    def start(self, *args):
        """A process that is ended by SIGTERM at the end."""
        log = self.path("log%d" % len(self.procs))
        with open(log, "ab") as f:
            p = subprocess.Popen([shutil.which(args[0], path=self.env["PATH"])] + list(args[1:]), stdout=f,
                                 stderr=f, stdin=subprocess.DEVNULL, env=self.env, cwd=self.dir)
        self.procs.append((p, log))
        return p

    def daemon(self, *args, ready=None, env=None, state="state"):
        """Starts a daemon by its old name; `ready`: a command that works once it is up."""
        log = self.path("log%d" % len(self.procs))
        command = [os.path.join(self.bin, args[0])] + list(args[1:]) + [
            "--state-dir", self.path(state), "--workers", "1", "--engine", self.set.engine]
        with open(log, "ab") as f:
            p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                                 env=env or self.env, cwd=self.dir)
        self.procs.append((p, log))
        ready = ready or ("tgtadm", "--lld", "iscsi", "--op", "show", "--mode", "system")
        deadline = time.monotonic() + START_S * self.set.weight
        while self.run(*ready, env=env).returncode:
            with open(log) as f:
                if p.poll() is not None or time.monotonic() > deadline:
                    raise Failed("%s: does not start: %s" % (args, f.read()[-1500:]))
            time.sleep(0.1)
        return p

    def ietd(self):
        """With IET's files: no target yet, everybody is admitted."""
        self.write("initiators.allow", "ALL ALL\n")
        return self.daemon("ietd", "-f", "-c", self.write("ietd.conf", "# none yet\n"), "-a", "127.0.0.1", "-p",
                           str(self.port), ready=("evtgtadm", "iet-proc", "volume"))

    def tgtd(self):
        return self.daemon("tgtd", "-f", "--iscsi", "portal=127.0.0.1:%d" % self.port)
