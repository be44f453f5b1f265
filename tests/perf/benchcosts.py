# SPDX-License-Identifier: BSD-2-Clause
"""Parts of bench: what a session costs in memory, a command in system calls and in instructions."""
import os
import re
import resource
import shutil
import subprocess
import time

from benchlib import IQN, MIB, Ours, fill, loop_device, rss_kib, run_ns
from lib.iscsi import Session

BURST, IDLE = 256, 100  # sessions
DOC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/performance.md")
MORE_INSTRUCTIONS = 1.05  # of the figure in DOC


def sessions(server, n):
    return [Session(("127.0.0.1", server.port), IQN, timeout=20,
                    initiator="iqn.2026-11.com.example:idle%d" % i).login() for i in range(n)]


def memory(a, load, stores):
    """Resident memory at rest, of an idle session, and after a burst of sessions with load."""
    ours = Ours(a.build, stores.for_server("memory"), workers=2)
    out = {}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    try:
        ours.start()
        time.sleep(1)
        out["rest_kib"] = rss_kib(ours.pid)
        ss = sessions(ours, IDLE)
        time.sleep(2)
        out["session_kib"] = (rss_kib(ours.pid) - out["rest_kib"]) / IDLE
        t0, n0 = time.monotonic(), run_ns(ours.pid)
        time.sleep(10)
        out["idle_cpu"] = (run_ns(ours.pid) - n0) / 1e9 / (time.monotonic() - t0)
        for s in ss:
            s.__exit__(None, None, None)
        time.sleep(2)
        before = rss_kib(ours.pid)
        for store in ("ram", "disk"):
            for read in (100, 0):
                load.once(ours, store, "64k", 4, BURST, read, secs=1)
        out["burst_kib"] = rss_kib(ours.pid, "VmHWM")
        time.sleep(15)
        out["before_burst_kib"], out["after_burst_kib"] = before, rss_kib(ours.pid)
    finally:
        ours.cleanup()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    growth = out["after_burst_kib"] / out["before_burst_kib"]
    return out, [
        ("resident at rest, two workers, MiB", out["rest_kib"] / 1024, "<= 12",
         out["rest_kib"] <= 12 * 1024),
        ("resident of an idle session, KiB", out["session_kib"], "<= 300",
         out["session_kib"] <= 300),
        ("resident after a burst of %d sessions, of before" % BURST, growth, "<= 1.2",
         growth <= 1.2),
        ("CPU of an idle daemon with %d sessions, %%" % IDLE, out["idle_cpu"] * 100, "< 0.1",
         out["idle_cpu"] < 0.001)]


def count_calls(pid, load, server, store, args):
    """System calls a command while strace watches."""
    out = os.path.join("/tmp", "evtgt-strace-%d" % os.getpid())
    p = subprocess.Popen(["strace", "-c", "-f", "-U", "name,calls", "-o", out, "-p", str(pid)],
                         stderr=subprocess.DEVNULL)
    time.sleep(0.7)
    try:
        r = load.once(server, store, *args, secs=1)
    finally:
        p.terminate()
        p.wait()
    with open(out) as f:
        calls = {m[1]: int(m[2]) for m in re.finditer(r"^(\w+)\s+(\d+)$", f.read(), re.M)}
    os.unlink(out)
    calls.pop("total", None)
    return {n: c / r["total_ops"] for n, c in calls.items() if c / r["total_ops"] > 0.001}


def calls_wanted(calls, qd):
    """One read or write of a file is a call a command, and cheaper than the ring where it need not
    wait; else the ring carries many by one call."""
    if qd == 1:
        return 4
    direct = sum(n for c, n in calls.items() if re.match(r"p?(read|write)(v2?|64)?$", c))
    return 1.3 if direct >= 0.5 else 0.5


def syscalls(a, load, stores):
    """System calls a command: files in memory and on a disk, a block device."""
    if os.geteuid() or not shutil.which("strace"):
        return {"skipped": "needs root and strace"}, []
    dev = loop_device(fill(os.path.join(stores.disk, "calls-loop"), 256 * MIB))
    ours = Ours(a.build, stores.for_server("calls") +
                ([("blockio", dev, "block", [])] if dev else []), workers=1)
    out, v = {}, []
    try:
        ours.start()
        for store in ours.lun_of:
            for read in (100, 0):
                for qd in (1, 32):
                    name = "4k %s q%d, %s" % ("read" if read else "write", qd, store)
                    out[name] = calls = count_calls(ours.pid, load, ours, store,
                                                    ("4k", qd, 1, read))
                    n, want = sum(calls.values()), calls_wanted(calls, qd)
                    v.append(("system calls a command, " + name, n, "<= %g" % want, n <= want))
    finally:
        ours.cleanup()
        if dev:
            subprocess.run(["losetup", "-d", dev])
    return out, v


class Counted(Ours):
    """evtgtd under callgrind; counts() are the instructions of user space since the last call:
    (of evtgtd itself, with all libraries)."""

    def command(self):
        self.out = os.path.join(self.dir, "callgrind.out")
        return ["valgrind", "-q", "--tool=callgrind", "--callgrind-out-file=" + self.out,
                "--separate-threads=no"] + super().command() + (
                    ["--user", "root"] if os.geteuid() == 0 else [])  # it writes in this directory

    def counts(self):
        before = set(os.listdir(self.dir))
        subprocess.run(["callgrind_control", "-d", str(self.pid)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            new = [n for n in set(os.listdir(self.dir)) - before if n.startswith("callgrind.out")]
            if new:
                return self.parse(os.path.join(self.dir, new[0]))
            time.sleep(0.1)
        raise RuntimeError("callgrind writes no figures")

    @staticmethod
    def parse(path):
        """Costs that are not of a call (those lines follow `calls=`), by object file."""
        own = total = 0
        names, ob, skip = {}, "", False
        with open(path) as f:
            for line in f:
                m = re.match(r"ob=\((\d+)\)(?: (.*))?$", line)
                if m:
                    ob = names.setdefault(m[1], m[2])
                elif line.startswith("calls="):
                    skip = True
                elif re.match(r"[+*\d-]", line):
                    if not skip:
                        n = int(line.split()[1])
                        total += n
                        own += n if os.path.basename(ob or "") == "evtgtd" else 0
                    skip = False
                else:
                    m = re.match(r"cob=\((\d+)\)(?: (.*))?$", line)
                    if m and m[2]:
                        names.setdefault(m[1], m[2])
        return own, total


def stated_instructions():
    with open(DOC) as f:
        return {m[1]: int(m[2]) for m in
                re.finditer(r"^instructions, (4k \w+ q32): (\d+)$", f.read(), re.M)}


def instructions(a, load, stores):
    """Instructions a command in user space, one worker, a file in memory: of two runs of different
    length the difference, so that login and the rest falls out."""
    if not shutil.which("valgrind"):
        return {"skipped": "needs valgrind"}, []
    ours = Counted(a.build, stores.for_server("count", False), workers=1)
    stated, out, v = stated_instructions(), {}, []
    try:
        ours.start()
        for read, name in ((100, "4k read q32"), (0, "4k write q32")):
            load.once(ours, "ram", "4k", 32, 1, read, secs=0.5)  # touches every page and path
            ours.counts()
            runs = []
            for secs in (0.5, 2):
                r = load.once(ours, "ram", "4k", 32, 1, read, secs=secs, extra=("-e", "raw"))
                runs.append((r["total_ops"],) + ours.counts())
            n = runs[1][0] - runs[0][0]
            own, total = ((runs[1][i] - runs[0][i]) / n for i in (1, 2))
            out[name] = {"own": own, "with libraries": total, "commands": n}
            want = stated[name] * MORE_INSTRUCTIONS
            print("instructions, %s: %.0f (with libraries %.0f)" % (name, own, total))
            v.append(("instructions, " + name, own, "<= %.0f" % want, own <= want))
    finally:
        ours.cleanup()
    return out, v
