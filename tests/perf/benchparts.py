# SPDX-License-Identifier: BSD-2-Clause
"""The parts of bench beside the rates: queue depths, digests, block devices, slow disks; and the
table of all parts.  Each is a function (arguments, Load, Stores) -> (figures, list of verdicts)
and prints the table that its verdicts are drawn from, where there is more to it than those."""
import json
import os
import shutil
import subprocess

import benchcosts
from benchlib import MIB, Null, Ours, fill, loop_device, median, peers, table

DEPTHS = (1, 2, 4, 8, 16, 32, 64)
DELAYS_US, SLOW_DEPTHS = (100, 1000, 10000), (1, 8, 32)
GAP_MAX_S = 1  # nothing answered for this long beyond the delay is a stall


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


def fio(device, bs, qd, rw, secs):
    p = subprocess.run(
        ["fio", "--name=x", "--filename=" + device, "--ioengine=io_uring", "--direct=1",
         "--bs=" + bs, "--iodepth=%d" % qd, "--rw=" + rw, "--time_based", "--runtime=%g" % secs,
         "--output-format=json"], capture_output=True, text=True, timeout=60 + secs)
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


def slow_expected(qd, delay_s, device):
    """Commands a second that a device of so many allows behind a delay: each command waits for the
    delay and then for the device, as long as it does at that depth; no more than the device does."""
    return min(qd / (delay_s + qd / device), device)


def slow_device(a, load, dev, opts):
    """{depth: (rate, longest gap in seconds)} of a device as a LUN, its cache dropped before."""
    ours = Ours(a.build, [("block", dev, "block", opts)], workers=a.workers)
    secs = min(a.secs, 1.0)
    got = {}
    try:
        ours.start()
        for qd in SLOW_DEPTHS:
            runs = []
            for _ in range(a.reps):
                with open("/proc/sys/vm/drop_caches", "w") as f:
                    f.write("1")
                runs.append(load.once(ours, "block", "4k", qd, secs=secs))
            got[qd] = (median([r["iops"] for r in runs]),
                       median([r["gap_us"] for r in runs]) / 1e6)
    finally:
        ours.cleanup()
    return got


def slow(a, load, stores):
    """A cold O_DIRECT loop device behind the delay layer, no other traffic: is anything waited for
    longer than the disk makes it wait?  The same device without the layer is measured before and
    after, since it may be slower than the delay."""
    if os.geteuid() or not shutil.which("losetup"):
        return {"skipped": "needs root and losetup"}, []
    dev = loop_device(fill(os.path.join(stores.disk, "slow"), 256 * MIB))
    if not dev:
        return {"skipped": "no loop device"}, []
    out, rows, v = {}, [], []
    try:
        before = slow_device(a, load, dev, [])
        delayed = {us: slow_device(a, load, dev, ["layer delay:us=%d" % us]) for us in DELAYS_US}
        after = slow_device(a, load, dev, [])
    finally:
        subprocess.run(["losetup", "-d", dev])
    for us, got in delayed.items():
        for qd, (rate, gap) in got.items():
            device = (before[qd][0] + after[qd][0]) / 2
            want = slow_expected(qd, us / 1e6, device)
            name = "delay %g ms, depth %d" % (us / 1000, qd)
            out[name] = {"rate": rate, "device": device, "expected": want, "gap_s": gap,
                         "device_gap_s": max(before[qd][1], after[qd][1])}
            rows.append([name, "%.0f" % rate, "%.0f" % device, "%.0f" % (qd * 1e6 / us),
                         "%.0f" % want, rate / want, "%.1f" % (gap * 1e3),
                         "%.1f" % (out[name]["device_gap_s"] * 1e3)])
            v.append((name + ": rate of what device and delay allow", rate / want, ">= 0.95",
                      rate >= 0.95 * want))
            v.append((name + ": longest time without an answer, s", gap, "<= %g" % GAP_MAX_S,
                      gap <= GAP_MAX_S + us / 1e6))
    print("\n" + table(["slow device", "cmds/s", "without delay", "depth/delay", "expected",
                        "of expected", "gap ms", "gap without"], rows, a.md))
    return out, v


def depths(a, load, stores):
    """4k reads against queue depth, every server; --plot draws it."""
    ours = Ours(a.build, stores.for_server("depths", False), workers=a.workers)
    servers = [ours, Null(a.build, stores.size)] + peers(a, stores, "depths-", False)
    got = {s.name: {} for s in servers}
    try:
        for s in servers:
            s.start()
        for qd in DEPTHS:
            runs = {s.name: [] for s in servers}
            for rep in range(a.reps):
                for k in range(len(servers)):
                    s = servers[(k + rep) % len(servers)]
                    runs[s.name].append(load(s, "ram", "4k", qd))
            for n, rs in runs.items():
                got[n][qd] = {"iops": median([r["iops"] for r in rs]),
                              "p50": median([r["lat_us"]["p50"] for r in rs]),
                              "p99": median([r["lat_us"]["p99"] for r in rs])}
    finally:
        for s in servers:
            s.cleanup()
    print("\n" + table(["4k read, depth"] + [n + x for n in got for x in (" cmds/s", " p50", " p99")],
                       [[str(qd)] + ["%.0f" % got[n][qd][x] for n in got
                                     for x in ("iops", "p50", "p99")] for qd in DEPTHS], a.md))
    return got, []


PARTS = {"depths": depths, "digests": digests, "block": block, "slow": slow,
         "memory": benchcosts.memory, "syscalls": benchcosts.syscalls,
         "instructions": benchcosts.instructions}
