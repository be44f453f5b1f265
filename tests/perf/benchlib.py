# SPDX-License-Identifier: BSD-2-Clause
"""What bench and its parts share: the servers under test on equal stores, one measured run of
iscsi-load, CPU time and memory of a process, tables."""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lib.evtgt import Daemon, Lun, Settings, Target, Tgtd, free_port  # noqa: E402

HZ = os.sysconf("SC_CLK_TCK")
IQN = "iqn.2026-11.com.example:bench"
MIB = 1 << 20


def fill(path, size):
    """A file without holes: reads of holes would flatter.  Written in pieces of 64 KiB: of larger
    ones some kernels make larger folios, of which ext4 walks all blocks at each small write."""
    block = memoryview(os.urandom(4 * MIB))
    with open(path, "wb", buffering=0) as f:
        for i in range(0, size, 65536):
            f.write(block[i % len(block):][:65536])
    return path


def threads(pid):
    try:
        return os.listdir("/proc/%d/task" % pid)
    except OSError:
        return []


def cpu_s(pid):
    """User and system time of a process so far, of threads that ended too."""
    with open("/proc/%d/stat" % pid) as f:
        v = f.read().rsplit(")", 1)[1].split()
    return (int(v[11]) + int(v[12])) / HZ


def run_ns(pid):
    """Nanoseconds on a CPU of the threads that live: finer than cpu_s."""
    sum_ns = 0
    for t in threads(pid):
        try:
            with open("/proc/%d/task/%s/schedstat" % (pid, t)) as f:
                sum_ns += int(f.read().split()[0])
        except OSError:
            pass
    return sum_ns


def rss_kib(pid, field="VmRSS"):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(field + r":\s+(\d+)", f.read()).group(1))


def busy_s():
    with open("/proc/stat") as f:
        v = [int(x) for x in f.readline().split()[1:]]
    return (sum(v[:3]) + sum(v[5:8])) / HZ


def renice(pid, value):
    """Every thread, and the autogroup: where there is one, nice does not count beyond it."""
    for t in threads(pid):
        try:
            os.setpriority(os.PRIO_PROCESS, int(t), value)
        except OSError:
            pass
    try:
        with open("/proc/%d/autogroup" % pid, "w") as f:
            f.write(str(value))
    except OSError:
        pass


class Ours(Daemon):
    """evtgtd with one LUN a store; stores: list of (name, path, kind, LUN options)."""

    name = "evtgtd"

    def __init__(self, build, stores, workers=2, target_opts=(), binary=None):
        luns = [Lun(path, 0, n, kind=kind, create=False, opts=list(opts))
                for n, (_, path, kind, opts) in enumerate(stores)]
        settings = Settings(binary or os.path.join(build, "evtgtd"), workers=workers)
        super().__init__([Target(IQN, luns, ["initiator-address ALL"] + list(target_opts))],
                         settings)
        self.lun_of = {s[0]: n for n, s in enumerate(stores)}

    @property
    def pid(self):
        return self.proc.pid

    def url(self, store):
        return "iscsi://127.0.0.1:%d/%s/%d" % (self.port, IQN, self.lun_of[store])


class Tgt(Tgtd):
    """tgtd, tuned for large writes: as installed it takes 8 KiB a PDU."""

    name = "tgt"

    def __init__(self, stores):
        luns = [Lun(path, 0, n, kind="file", create=False)
                for n, (_, path, _, _) in enumerate(stores)]
        super().__init__([Target(IQN, luns)], Settings())
        self.lun_of = {s[0]: n + 1 for n, s in enumerate(stores)}

    def start(self):
        super().start()
        for key in ("MaxRecvDataSegmentLength", "FirstBurstLength"):
            self.adm("--lld", "iscsi", "--op", "update", "--mode", "target", "--tid", "1",
                     "--name", key, "--value", "262144")
        return self

    pid = Ours.pid
    url = Ours.url


def wait_listen(server):
    for _ in range(200):
        if server.proc.poll() is not None:
            raise RuntimeError("%s ends" % server.name)
        with open("/proc/net/tcp") as f:
            if re.search(r":%04X 00000000:0000 0A " % server.port, f.read()):
                return
        time.sleep(0.05)
    raise RuntimeError("%s does not listen" % server.name)


class Null:
    """tests/perf/null-iscsi: the ceiling."""

    name = "null"

    def __init__(self, build, size):
        self.binary = os.path.join(build, "tests/perf/null-iscsi")
        self.size, self.port, self.proc = size, free_port(), None

    def start(self):
        self.proc = subprocess.Popen([self.binary, str(self.port), str(self.size // MIB)])
        wait_listen(self)
        return self

    pid = Ours.pid

    def url(self, store):
        return "iscsi://127.0.0.1:%d/%s/0" % (self.port, IQN)

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.terminate()
            self.proc.wait()

    cleanup = stop


ISTGT_CONF = """[Global]
  NodeBase "%(base)s"
  PidFile %(dir)s/istgt.pid
  AuthFile %(dir)s/auth.conf
  MediaDirectory %(dir)s
  LogFacility "local7"
  Timeout 30
  NopInInterval 20
  DiscoveryAuthMethod None
  MaxSessions 16
  MaxConnections 4
  MaxR2T 32
  MaxOutstandingR2T 16
  DefaultTime2Wait 2
  DefaultTime2Retain 60
  FirstBurstLength 262144
  MaxBurstLength 1048576
  MaxRecvDataSegmentLength 262144
  InitialR2T Yes
  ImmediateData Yes
  DataPDUInOrder Yes
  DataSequenceInOrder Yes
  ErrorRecoveryLevel 0
[UnitControl]
  AuthMethod None
  Portal UC1 127.0.0.1:%(control)d
  Netmask 127.0.0.1
[PortalGroup1]
  Portal DA1 127.0.0.1:%(port)d
[InitiatorGroup1]
  InitiatorName "ALL"
  Netmask 127.0.0.0/8
[LogicalUnit1]
  TargetName "%(name)s"
  Mapping PortalGroup1 InitiatorGroup1
  AuthMethod None
  UseDigest Auto
  UnitType Disk
  QueueDepth 255
%(luns)s
"""


class Istgt:
    """istgt, with the lengths that tgt gets and its longest queue (InitialR2T=No it does not know)."""

    name = "istgt"

    def __init__(self, stores):
        self.stores, self.port, self.proc = stores, free_port(), None
        self.lun_of = {s[0]: n for n, s in enumerate(stores)}
        self.dir = tempfile.mkdtemp(prefix="evtgt-istgt-")

    def start(self):
        base, name = IQN.split(":")
        conf = os.path.join(self.dir, "istgt.conf")
        luns = "\n".join("  LUN%d Storage %s %dMB" % (n, path, os.path.getsize(path) // MIB)
                         for n, (_, path, _, _) in enumerate(self.stores))
        with open(conf, "w") as f:
            f.write(ISTGT_CONF % {"base": base, "name": name, "dir": self.dir, "port": self.port,
                                  "control": free_port(), "luns": luns})
        with open(os.path.join(self.dir, "auth.conf"), "w") as f:
            os.chmod(f.name, 0o600)
        log = os.path.join(self.dir, "log")
        with open(log, "w") as f:
            self.proc = subprocess.Popen(["istgt", "-D", "-c", conf], stdout=f, stderr=f)
        wait_listen(self)
        return self

    pid = Ours.pid
    url = Ours.url

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait()

    def cleanup(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)


PEERS = {"tgt": ("tgtd", Tgt), "istgt": ("istgt", Istgt)}


def peers(a, stores, prefix="", disk=True):
    """Those asked for by --peers that can run here, each with stores of its own."""
    out = []
    for name in filter(None, a.peers.split(",")):
        program, make = PEERS[name]
        if os.geteuid() == 0 and shutil.which(program):
            out.append(make(stores.for_server(prefix + name, disk)))
        else:
            print("%s is left out: needs root and %s" % (name, program))
    return out


def loop_device(path):
    """A loop device on a file, O_DIRECT below; None where there are none."""
    p = subprocess.run(["losetup", "--direct-io=on", "-f", "--show", path], capture_output=True,
                       text=True)
    return p.stdout.strip() if p.returncode == 0 else None


class Load:
    """Runs iscsi-load against a server and tells what it cost there."""

    def __init__(self, build, secs, nice=0, max_other=0.25, tries=2, client="raw", pin=True):
        self.binary = os.path.join(build, "tests/perf/iscsi-load")
        self.client = client
        cpus = sorted(os.sched_getaffinity(0))
        # A client that goes from CPU to CPU is often put on the server's, by chance.
        self.cpus = cpus[-1:] if pin and len(cpus) > 1 else cpus
        self.secs, self.nice, self.max_other, self.tries = secs, nice, max_other, tries

    def once(self, server, store, bs, qd, sessions=1, read=100, pattern="rand", extra=(),
             secs=None):
        secs = secs or self.secs
        cmd = [self.binary, "-e", self.client, "-b", bs, "-q", str(qd), "-s", str(sessions), "-r", str(read), "-p",
               pattern, "-t", str(secs), "-w", "0.2"] + list(extra) + [server.url(store)]
        if self.nice:
            renice(server.pid, self.nice)
        c0, b0, t0 = cpu_s(server.pid), busy_s(), time.time()
        p = subprocess.run(cmd, capture_output=True, text=True, timeout=secs + 60,
                           preexec_fn=lambda: os.sched_setaffinity(0, self.cpus))
        dt, b1, c1 = time.time() - t0, busy_s(), cpu_s(server.pid)
        if self.nice:
            renice(server.pid, 0)
        try:
            r = json.loads(p.stdout.splitlines()[-1])
        except (ValueError, IndexError):
            raise RuntimeError("%s: iscsi-load: %s" % (server.name, p.stderr.strip()[-300:]))
        if r["errors"]:
            raise RuntimeError("%s: %d errors: %s" % (server.name, r["errors"],
                                                      r["first_error"]))
        r["cpu_s"] = c1 - c0
        r["ops_per_cpu_s"] = r["total_ops"] / max(c1 - c0, 1 / HZ)
        r["rss_kib"] = rss_kib(server.pid)
        r["other"] = max(0.0, (b1 - b0 - (c1 - c0) - r["client_cpu_s"]) / dt)
        return r

    def __call__(self, *args, **kw):
        """The quietest of some tries: `other` is the CPUs that neither side used."""
        best = None
        for _ in range(self.tries):
            r = self.once(*args, **kw)
            if best is None or r["other"] < best["other"]:
                best = r
            if best["other"] <= self.max_other:
                break
        return best


def median(values):
    values = [v for v in values if v is not None]
    return statistics.median(values) if values else None


def table(head, rows, markdown=False):
    rows = [[("-" if c is None else c if isinstance(c, str) else "%.2f" % c) for c in r]
            for r in rows]
    if markdown:
        return "\n".join(["| " + " | ".join(r) + " |" for r in [head]] + ["|---" * len(head) + "|"]
                         + ["| " + " | ".join(r) + " |" for r in rows])
    wide = [max(len(r[i]) for r in [head] + rows) for i in range(len(head))]
    return "\n".join("  ".join(c.ljust(w) if i == 0 else c.rjust(w)
                               for i, (c, w) in enumerate(zip(r, wide))).rstrip()
                     for r in [head] + rows)


class Stores:
    """Equal stores for every server, in memory and on a disk, removed at the end."""

    def __init__(self, size, disk_dir=None):
        self.size = size
        self.ram = tempfile.mkdtemp(prefix="evtgt-bench-", dir="/dev/shm")
        self.disk = tempfile.mkdtemp(prefix="evtgt-bench-", dir=disk_dir or "/var/tmp")

    def for_server(self, name, disk=True):
        out = [("ram", fill(os.path.join(self.ram, name), self.size), "file", [])]
        if disk:
            out.append(("disk", fill(os.path.join(self.disk, name), self.size), "file", []))
        return out

    def cleanup(self):
        for d in (self.ram, self.disk):
            for f in os.listdir(d):
                os.unlink(os.path.join(d, f))
            os.rmdir(d)
