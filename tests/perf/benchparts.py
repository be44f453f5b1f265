# SPDX-License-Identifier: BSD-2-Clause
"""The parts of bench beside the rates: digests, block devices, slow disks, memory, system calls,
an idle daemon.  Each is a function (arguments, Load, Stores) -> (figures, list of verdicts)."""
import json
import os
import re
import resource
import shutil
import subprocess
import time

from benchlib import IQN, MIB, Null, Ours, fill, median, rss_kib, run_ns
from lib.iscsi import Session

BURST, IDLE = 256, 100  # sessions


def pairs(a, load, servers, runs):
    """servers: {name: (server, store, extra)}; runs: {name: (bs, qd, sessions, read, pattern)}.
    Interleaved; {run: {name: median rate}}."""
    got = {w: {n: [] for n in servers} for w in runs}
    for _ in range(a.reps):
        for w, args in runs.items():
            for n, (server, store, extra) in servers.items():
                got[w][n].append(load(server, store, *args, extra=extra)["iops"])
    return {w: {n: median(v) for n, v in d.items()} for w, d in got.items()}


def digests(a, load, stores):
    """Header and data digests by the raw engine (libiscsi has no data digests): the rate beside
    that of the same daemon without."""
    ours = Ours(a.build, stores.for_server("digest", False), workers=a.workers,
                target_opts=["HeaderDigest CRC32C,None", "DataDigest CRC32C,None"])
    runs = {"4k read q32": ("4k", 32, 1, 100, "rand"), "4k write q32": ("4k", 32, 1, 0, "rand"),
            "1m read q4": ("1m", 4, 1, 100, "seq"), "1m write q4": ("1m", 4, 1, 0, "seq")}
    kinds = {"none": (), "header": ("-d",), "header and data": ("-d", "-D")}
    try:
        ours.start()
        got = pairs(a, load, {k: (ours, "ram", ("-e", "raw") + x) for k, x in kinds.items()}, runs)
    finally:
        ours.cleanup()
    v = []
    for w, d in got.items():
        want = 0.85 if w[0] == "4" else 0.7
        x = d["header and data"] / d["none"]
        v.append(("%s: header and data digests, rate of without" % w, x, ">= %.2f" % want,
                  x >= want))
    return got, v


def loop_device(path):
    p = subprocess.run(["losetup", "--direct-io=on", "-f", "--show", path], capture_output=True,
                       text=True)
    return p.stdout.strip() if p.returncode == 0 else None


def fio(device, bs, qd, rw, secs):
    p = subprocess.run(
        ["fio", "--name=x", "--filename=" + device, "--ioengine=io_uring", "--direct=1",
         "--bs=" + bs, "--iodepth=%d" % qd, "--rw=" + rw, "--time_based", "--runtime=%g" % secs,
         "--output-format=json"], capture_output=True, text=True, timeout=60)
    job = json.loads(p.stdout[p.stdout.index("{"):])["jobs"][0]
    return job["read" if "read" in rw else "write"]["iops"]


def block(a, load, stores):
    """blockio on a loop device beside the series of the protocol alone (null) and of the device
    alone (fio)."""
    if os.geteuid() or not shutil.which("fio") or not shutil.which("losetup"):
        return {"skipped": "needs root, fio and losetup"}, []
    dev = loop_device(fill(os.path.join(stores.disk, "loop"), stores.size))
    if not dev:
        return {"skipped": "no loop device"}, []
    ours = Ours(a.build, [("block", dev, "block", [])], workers=a.workers)
    null = Null(a.build, stores.size)
    out, v = {}, []
    try:
        null.start()
        for bs, read in (("4k", 100), ("4k", 0), ("128k", 100), ("128k", 0)):
            got = {"ours": [], "null": [], "fio": []}
            for _ in range(a.reps):
                got["null"].append(load(null, "ram", bs, 32, 1, read)["iops"])
                ours.start()  # it holds the device, which fio wants for itself
                got["ours"].append(load(ours, "block", bs, 32, 1, read)["iops"])
                ours.stop()
                got["fio"].append(fio(dev, bs, 32, "randread" if read else "randwrite", a.secs))
            m = {k: median(x) for k, x in got.items()}
            name = "blockio %s %s q32" % (bs, "read" if read else "write")
            x = m["ours"] * (1 / m["null"] + 1 / m["fio"])
            out[name] = m
            v.append((name + ": rate of 1/(1/null + 1/fio)", x, ">= 0.85", x >= 0.85))
    finally:
        ours.cleanup()
        null.cleanup()
        subprocess.run(["losetup", "-d", dev])
    return out, v


def slow(a, load, stores):
    """A cold loop device behind the delay layer, no other traffic: does anything wait longer than
    the disk makes it wait?"""
    if os.geteuid() or not shutil.which("losetup"):
        return {"skipped": "needs root and losetup"}, []
    dev = loop_device(fill(os.path.join(stores.disk, "slow"), 256 * MIB))
    if not dev:
        return {"skipped": "no loop device"}, []
    out, v = {}, []
    try:
        for us in (100, 1000, 10000):
            ours = Ours(a.build, [("block", dev, "block", ["layer delay:us=%d" % us])])
            try:
                ours.start()
                for qd in (1, 8, 32):
                    with open("/proc/sys/vm/drop_caches", "w") as f:
                        f.write("1")
                    rate = load(ours, "block", "4k", qd)["iops"]
                    x = rate / (qd * 1e6 / us)
                    name = "delay %g ms, depth %d" % (us / 1000, qd)
                    out[name] = rate
                    v.append((name + ": rate of depth/delay", x, ">= 0.95", x >= 0.95))
            finally:
                ours.cleanup()
    finally:
        subprocess.run(["losetup", "-d", dev])
    return out, v


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


def syscalls(a, load, stores):
    if os.geteuid() or not shutil.which("strace"):
        return {"skipped": "needs root and strace"}, []
    ours = Ours(a.build, stores.for_server("calls"), workers=1)
    out, v = {}, []
    try:
        ours.start()
        for store in ("ram", "disk"):
            for read in (100, 0):
                for qd in (1, 32):
                    name = "4k %s q%d, %s" % ("read" if read else "write", qd, store)
                    out[name] = count_calls(ours.pid, load, ours, store, ("4k", qd, 1, read))
                    n = sum(out[name].values())
                    ring = store == "disk" and read
                    want = 4 if qd == 1 else 0.5 if ring else 1.3
                    v.append(("system calls a command, " + name, n, "<= %g" % want, n <= want))
    finally:
        ours.cleanup()
    return out, v


PARTS = {"digests": digests, "block": block, "slow": slow, "memory": memory,
         "syscalls": syscalls}
