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


def slow_device(a, load, dev, delay_us, think_us):
    """{depth: (rate, longest gap in seconds)} of a device as a LUN, its cache dropped before:
    behind the delay layer, or with the client waiting itself."""
    ours = Ours(a.build, [("block", dev, "block",
                           ["layer delay:us=%d" % delay_us] if delay_us else [])],
                workers=a.workers)
    got = {}
    try:
        ours.start()
        for qd in SLOW_DEPTHS:
            runs = []
            for _ in range(a.reps):
                with open("/proc/sys/vm/drop_caches", "w") as f:
                    f.write("1")
                runs.append(load.once(ours, "block", "4k", qd, secs=min(a.secs, 0.7),
                                      extra=("--think", str(think_us))))
            got[qd] = (median([r["iops"] for r in runs]),
                       median([r["gap_us"] for r in runs]) / 1e6)
    finally:
        ours.cleanup()
    return got


def slow(a, load, stores):
    """A cold O_DIRECT loop device behind the delay layer, no other traffic: is anything waited for
    longer than the disk makes it wait?  Beside it the same device without the layer, where the
    client waits for that time before each command: as much of a timer, as long asleep."""
    if os.geteuid() or not shutil.which("losetup"):
        return {"skipped": "needs root and losetup"}, []
    dev = loop_device(fill(os.path.join(stores.disk, "slow"), 256 * MIB))
    if not dev:
        return {"skipped": "no loop device"}, []
    out, rows, v = {}, [], []
    try:
        device = slow_device(a, load, dev, 0, 0)
        for us in DELAYS_US:
            think = slow_device(a, load, dev, 0, us)
            for qd, (rate, gap) in slow_device(a, load, dev, us, 0).items():
                want, alone = think[qd][0], device[qd][0]
                name = "delay %g ms, depth %d" % (us / 1000, qd)
                sum_ = min(qd / (us / 1e6 + qd / alone), alone)
                out[name] = {"rate": rate, "device": alone, "sum": sum_, "expected": want,
                             "gap_s": gap, "device_gap_s": think[qd][1]}
                rows.append([name, "%.0f" % rate, "%.0f" % alone, "%.0f" % (qd * 1e6 / us),
                             "%.0f" % sum_, "%.0f" % want, rate / want, "%.1f" % (gap * 1e3),
                             "%.1f" % (think[qd][1] * 1e3)])
                v.append((name + ": rate of what device and delay allow", rate / want, ">= 0.95",
                          rate >= 0.95 * want))
                v.append((name + ": longest time without an answer, s", gap,
                          "<= %g" % (GAP_MAX_S + us / 1e6), gap <= GAP_MAX_S + us / 1e6))
    finally:
        subprocess.run(["losetup", "-d", dev])
    print("\n" + table(["slow device", "cmds/s", "device alone", "depth/delay", "of both",
                        "client waits", "of that", "gap ms", "gap, client waits"], rows, a.md))
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
