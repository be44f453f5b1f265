# SPDX-License-Identifier: BSD-2-Clause
"""Programs that drive tgt or IET, each played with the exact command lines that it calls, what it looks
for in the answers, and the order in which it does it. Sources, in their public repositories:

  Cinder      openstack/cinder, cinder/volume/targets/tgt.py
  Longhorn    longhorn/go-iscsi-helper, iscsi/target.go
  Pacemaker   ClusterLabs/resource-agents, heartbeat/iSCSITarget.in and iSCSILogicalUnit.in
  Proxmox     proxmox/pve-storage, PVE/Storage/LunCmd/Iet.pm
  avocado     avocado-framework/avocado-vt, virttest/iscsi.py (the tests of libvirt and QEMU)"""

import os
import re
import subprocess
import time

from common import Skip
from compat import Old
from lib import scsi
from lib.chap import Chap
from lib.iscsi import LoginFailed, Session

IQN = "iqn.2010-10.org.openstack:"


def disk(addr, name, lun, initiator="iqn.2001-04.x:a"):
    """A session that has the disk: it answers to TEST UNIT READY."""
    s = Session(addr, name, initiator=initiator)
    s.login()
    s.run_ua(scsi.TEST_UNIT_READY, lun=lun).good()
    return s


def until(what, why):
    deadline = time.monotonic() + 20
    while True:
        got = what()
        if got:
            return got
        assert time.monotonic() < deadline, why
        time.sleep(0.1)


def alone(*how):
    """The prefix that runs a command in namespaces of its own; Skip where that is not to be had."""
    if subprocess.run(["unshare"] + list(how) + ["true"], capture_output=True).returncode:
        raise Skip("unshare %s is not permitted" % " ".join(how))
    return ["unshare"] + list(how)


# --- Cinder ----------------------------------------------------------------------------------------

class Refused(Exception):
    def __init__(self, args, out):
        super().__init__("%s: %r" % (" ".join(args), out))
        self.stderr = out.stderr


class Cinder:
    """tgt-admin is called without -c: /etc/tgt is a directory of ours while it runs."""

    def __init__(self, o):
        self.o = o
        if not os.path.isdir("/etc/tgt"):
            raise Skip("no /etc/tgt to mount over")
        self.unshare = alone("-m")
        os.makedirs(o.path("etc"))
        self.volumes = o.path("volumes")
        os.makedirs(self.volumes)
        o.write("etc/targets.conf", "default-driver iscsi\ninclude %s/*\n" % self.volumes)

    def execute(self, *args):
        """As utils.execute: (stdout, stderr) or an error that has both."""
        script = 'mount --bind "$0" /etc/tgt && exec "$@"'
        out = subprocess.run(self.unshare + ["sh", "-c", script, self.o.path("etc")] + list(args),
                             capture_output=True, text=True, timeout=60, env=self.o.env)
        if out.returncode:
            raise Refused(args, out)
        return out.stdout, out.stderr

    def tid(self, iqn):
        for line in self.execute("tgt-admin", "--show")[0].split("\n"):
            if iqn in line:
                return line.split()[1][:-1]
        return None

    def has_lun(self, iqn, tid):
        mine, found = False, []
        for line in self.execute("tgt-admin", "--show")[0].split("\n"):
            if iqn in line and "Target %s" % tid in line:
                mine = True
            if mine:
                found.append(line)
            if iqn not in line and "Target " in line:
                mine = False
        return "        LUN: 1" in found

    def create(self, name, path, chap=None):
        self.execute("tgtadm", "--lld", "iscsi", "--op", "show", "--mode", "target")
        conf = ["", "<target %s>" % (IQN + name), "    backing-store " + path, "    driver iscsi"]
        if chap:
            conf.append("    incominguser %s %s" % chap)
        conf += ["    write-cache on", "</target>", "  "]
        self.o.write("volumes/" + name, "\n".join("                " + c for c in conf))
        self.execute("tgt-admin", "--update", IQN + name)
        return self.tid(IQN + name)

    def remove(self, name):
        self.execute("tgt-admin", "--force", "--delete", IQN + name)
        if self.tid(IQN + name):
            self.execute("tgt-admin", "--delete", IQN + name)
        os.unlink(os.path.join(self.volumes, name))


def test_cinder(settings):
    with Old(settings) as o:
        c = Cinder(o)
        o.tgtd()
        one, two = o.file("volume-1"), o.file("volume-2")
        tid = c.create("volume-1", one)
        assert tid == "1" and c.has_lun(IQN + "volume-1", tid)
        disk(o.addr, IQN + "volume-1", 1).conn.close()
        user = ("otzLy2UYbYfnP4zXLG5z", "234Zweo38VGBBvrpK9nt")
        tid2 = c.create("volume-2", two, user)
        assert tid2 == "2" and c.has_lun(IQN + "volume-2", tid2)
        s = Session(o.addr, IQN + "volume-2")
        Chap(s, *user).login()
        # once more, as a retry does: nothing is lost and nothing is there twice
        c.execute("tgt-admin", "--update", IQN + "volume-2")
        s.nop()
        assert c.execute("tgt-admin", "--show")[0].count("Target ") == 2
        # the unit is missing: it is made by tgtadm
        o.ok("tgtadm", "--lld", "iscsi", "--op", "delete", "--mode", "logicalunit", "--tid", tid, "--lun", "1")
        assert not c.has_lun(IQN + "volume-1", tid) and c.has_lun(IQN + "volume-2", tid2)
        c.execute("tgtadm", "--lld", "iscsi", "--op", "new", "--mode", "logicalunit", "--tid", tid, "--lun",
                  "1", "-b", one)
        assert c.has_lun(IQN + "volume-1", tid)
        # removal with a session: by force, and complete at once
        c.remove("volume-2")
        s.conn.expect_close(5)
        assert c.tid(IQN + "volume-2") is None and c.tid(IQN + "volume-1") == tid
        # what it looks for in stderr
        for args in (("--force", "--delete", IQN + "volume-2"), ("--delete", IQN + "volume-2")):
            try:
                c.execute("tgt-admin", *args)
            except Refused as e:
                assert "can't find the target" in e.stderr, e.stderr
        out = o.run("tgtadm", "--lld", "iscsi", "--op", "new", "--mode", "target", "--tid", "7", "-T",
                    IQN + "volume-1")
        assert out.returncode and "target already exists" in out.stderr, out
        out = o.run("tgtadm", "--lld", "iscsi", "--op", "unbind", "--mode", "target", "--tid", tid, "-I",
                    "10.1.2.3")
        assert out.returncode and "access control rule does not exist" in out.stderr, out
        c.remove("volume-1")
        assert c.execute("tgt-admin", "--show")[0] == ""


# --- Longhorn --------------------------------------------------------------------------------------

class Longhorn:
    def __init__(self, o):
        self.o = o

    def adm(self, *args):
        return self.o.ok("tgtadm", "--lld", "iscsi", *args)

    def has_store(self, name):
        """Is the daemon there, and does it know this kind of backing store?"""
        out = self.o.run("tgtadm", "--lld", "iscsi", "--op", "show", "--mode", "system")
        return out.returncode == 0 and " " + name in out.stdout

    def tids(self):
        return [int(line.split(":")[0].split()[1])
                for line in self.adm("--op", "show", "--mode", "target").splitlines()
                if line.startswith("Target ")]

    def next_tid(self):
        taken = self.tids()
        return next(i for i in range(1, 4095) if i not in taken)

    def tid(self, name):
        for line in self.adm("--op", "show", "--mode", "target").splitlines():
            if line.endswith(" " + name):
                return int(line.split(":")[0].split()[1])
        return -1

    def connections(self, tid):
        got, sid = {}, None
        for line in self.adm("--op", "show", "--mode", "conn", "--tid", str(tid)).splitlines():
            line = line.strip()
            if line.startswith("Session: "):
                sid = str(int(line.split(": ")[1]))
                got[sid] = []
            if line.startswith("Connection: "):
                got[sid].append(str(int(line.split(": ")[1])))
        return got


def test_longhorn(settings):
    with Old(settings) as o:
        h = Longhorn(o)
        assert not h.has_store("rdwr")
        o.tgtd()
        assert h.has_store("rdwr") and h.has_store("aio") and not h.has_store("longhorn")
        names = ["iqn.2019-10.io.longhorn:vol-%d" % i for i in range(2)]
        for name in names:
            tid = h.next_tid()
            h.adm("--op", "new", "--mode", "target", "--tid", str(tid), "-T", name)
            assert h.tid(name) == tid
            h.adm("--op", "new", "--mode", "logicalunit", "--tid", str(tid), "--lun", "1", "-b",
                  o.file("vol-%d" % tid), *(["--bstype", "aio"] if tid == 2 else []))
            h.adm("--op", "bind", "--mode", "target", "--tid", str(tid), "-I", "ALL")
        assert h.tids() == [1, 2] and h.tid("iqn.2019-10.io.longhorn:vol") == -1
        h.adm("--op", "new", "--mode", "target", "--tid", "4095", "-T", names[0] + "-last")
        assert h.next_tid() == 3
        assert h.connections(1) == {}
        a = disk(o.addr, names[0], 1)
        b = disk(o.addr, names[0], 1, initiator="iqn.2001-04.x:b")
        conns = h.connections(1)
        assert sorted(conns.values()) == [[str(a.cid)], [str(b.cid)]] and h.connections(2) == {}, conns
        for sid, cids in conns.items():
            for cid in cids:
                h.adm("--op", "delete", "--mode", "conn", "--tid", "1", "--sid", sid, "--cid", cid)
        a.conn.expect_close(5)
        b.conn.expect_close(5)
        until(lambda: h.connections(1) == {}, "connections stay")
        h.adm("--op", "unbind", "--mode", "target", "--tid", "1", "-I", "ALL")
        try:
            Session(o.addr, names[0]).login()
            raise AssertionError("unbound, and somebody is admitted")
        except LoginFailed:
            pass
        for tid in (1, 2):
            h.adm("--op", "delete", "--mode", "logicalunit", "--tid", str(tid), "--lun", "1")
            h.adm("--op", "delete", "--mode", "target", "--tid", str(tid))
        assert h.tids() == [4095]
        o.ok("tgtadm", "--op", "delete", "--mode", "system")
        assert o.procs[0][0].wait(15) == 0
        until(lambda: not h.has_store("rdwr"), "the daemon stays")


def test_longhorn_starts_tgtd(settings):
    """`tgtd -f` and `tgtd -f -d 1`: every address and port 3260, so in a network of its own."""
    for args in (["-f"], ["-f", "-d", "1"]):
        with Old(settings) as o:
            prefix = alone("-n") + ["sh", "-c", 'ip link set lo up; exec "$@"', "sh"]
            p = o.start(*prefix, o.path("bin", "tgtd"), *args, "--state-dir", o.path("state"))
            until(lambda: Longhorn(o).has_store("rdwr"), "tgtd does not start")
            assert o.ok("tgtadm", "--op", "show", "--mode", "portal").count(":3260,1\n") >= 1
            o.ok("tgtadm", "--op", "delete", "--mode", "system")
            assert p.wait(15) == 0


# --- Pacemaker -------------------------------------------------------------------------------------

def test_pacemaker_tgt(settings):
    iqn, user = "iqn.2001-04.com.example:cluster", ("--user=joe", "--password=secretsecret1")
    with Old(settings) as o:
        o.tgtd()

        def adm(*args):
            return o.ok("tgtadm", "--lld", "iscsi", *args)

        def running():
            return re.search(r"Target [0-9]+: " + iqn, adm("--op", "show", "--mode", "target")) is not None

        def unit_running(path):
            text = adm("--op", "show", "--mode", "target")
            return re.search(r"^Target ([0-9]+): %s$" % iqn, text, re.M) and \
                re.search(r"\s+Backing store.*: %s$" % re.escape(path), text, re.M)

        # iSCSITarget start
        assert not running()
        adm("--op", "new", "--mode", "target", "--tid=3", "--targetname", iqn)
        for name, value in (("MaxBurstLength", "65536"), ("HeaderDigest", "None")):
            adm("--op", "update", "--mode", "target", "--tid=3", "--name=" + name, "--value=" + value)
        for a in ("127.0.0.1", "10.0.0.0/8"):
            adm("--op", "bind", "--mode", "target", "--tid=3", "--initiator-address=" + a)
        adm("--mode", "account", "--op", "new", *user)
        adm("--mode", "account", "--op", "bind", "--tid=3", user[0])
        assert running()
        # iSCSILogicalUnit start; a name, a list of options, then its parameters
        path = o.file("unit")
        assert not unit_running(path)
        adm("--op", "new", "--mode", "logicalunit", "--tid=3", "--lun=1", "--bstype=aio", "--backing-store", path)
        adm("--op", "update", "--mode", "logicalunit", "--tid=3", "--lun=1", "--params",
            "scsi_id=iscsi-lun,scsi_sn=89abcdef,vendor_id=CLUSTER,product_id=DISK")
        assert unit_running(path)
        second = o.file("second")
        adm("--op", "new", "--mode", "logicalunit", "--tid=3", "--lun=2", "--bstype=rdwr", "--bsoflags=direct",
            "--device-type=disk", "--backing-store", second)
        s = Session(o.addr, iqn)
        Chap(s, "joe", "secretsecret1").login()
        inq = bytes(s.run_ua(scsi.inquiry(36), read=36, lun=1).good().data)
        assert inq[8:20] == b"CLUSTER DISK", inq
        # iSCSILogicalUnit stop: again and again until it is free
        for lun in ("2", "1"):
            until(lambda: o.run("tgtadm", "--lld", "iscsi", "--op", "delete", "--mode", "logicalunit", "--tid",
                                "3", "--lun=" + lun).returncode == 0, "the unit stays in use")
        assert not unit_running(path)
        # iSCSITarget stop: connections are found in the lines of `show`
        sid, pairs = None, []
        text = adm("--op", "show", "--mode", "target").split("Target 3:")[1].split("LUN information:")[0]
        for line in text.splitlines():
            m = re.match(r"\s*(I_T nexus|Connection): ([0-9]+)", line)
            if m and m.group(1) == "I_T nexus":
                sid = m.group(2)
            elif m:
                pairs.append((sid, m.group(2)))
        assert len(pairs) == 1, text
        for sid, cid in pairs:
            adm("--op", "delete", "--mode", "connection", "--tid=3", "--sid=" + sid, "--cid=" + cid)
        s.conn.expect_close(5)
        adm("--mode", "account", "--op", "unbind", "--tid=3", user[0])
        adm("--mode", "account", "--op", "delete", user[0])
        until(lambda: o.run("tgtadm", "--lld", "iscsi", "--op", "delete", "--mode", "target",
                            "--tid=3").returncode == 0, "the target stays in use")
        assert not running()


def test_pacemaker_iet(settings):
    """The agents read /proc/net/iet/volume and session: files in its place, which follow."""
    iqn = "iqn.2001-04.com.example:cluster"
    with Old(settings) as o:
        o.ietd()
        o.start("evtgtadm", "iet-proc", "--follow", o.path("proc"))
        until(lambda: os.path.exists(o.path("proc", "volume")), "no file")

        def iet(*args):
            return o.ok("ietadm", *args)

        def proc(name):
            with open(o.path("proc", name)) as f:
                return f.read()

        def tid():
            m = re.search("^tid:([0-9]+) name:%s$" % iqn, proc("volume"), re.M)
            return m and m.group(1)

        def unit_running(lun, path):
            return tid() and re.search(r"\s+lun:%s.*path:%s$" % (lun, re.escape(path)), proc("volume"), re.M)

        def sed(name, text):
            with open(o.path("proc", name)) as f:
                return re.findall(text, f.read(), re.M)

        # iSCSITarget start: the number after the highest
        iet("--op", "new", "--tid=7", "--params", "Name=iqn.2001-04.com.example:other")
        new = str(max(map(int, sed("volume", r"^tid:([0-9]+) name:.*"))) + 1)
        assert new == "8" and not tid()
        iet("--op", "new", "--tid=" + new, "--params", "Name=" + iqn)
        for param in ("MaxBurstLength=65536", "InitialR2T=No"):
            iet("--op", "update", "--tid=" + new, "--params", param)
        iet("--op", "new", "--user", "--tid=" + new, "--params=IncomingUser=joe,Password=secretsecret1")
        assert tid() == new
        # iSCSILogicalUnit start
        path = o.file("unit")
        assert not unit_running("0", path)
        iet("--op", "new", "--tid=" + new, "--lun=0", "--params",
            "Path=%s,Type=fileio,ScsiId=iscsi-lun,ScsiSN=89abcdef" % path)
        assert unit_running("0", path)
        s = Session(o.addr, iqn)
        Chap(s, "joe", "secretsecret1").login()
        s.run_ua(scsi.TEST_UNIT_READY).good()
        # iSCSILogicalUnit stop, although the session is there
        iet("--op", "delete", "--tid=" + new, "--lun=0")
        assert not unit_running("0", path)
        # iSCSITarget stop: the connections of the target's part of the session file
        until(lambda: "cid:" in proc("session"), "no session in the file")
        part = re.search("^tid:%s .*\n((?:\t.*\n)*)" % new, proc("session"), re.M).group(1)
        pairs, sid = [], None
        for line in part.splitlines():
            m = re.match(r"\s*(sid|cid):([0-9]+)", line)
            if m.group(1) == "sid":
                sid = m.group(2)
            else:
                pairs.append(("--sid=" + sid, "--cid=" + m.group(2)))
        assert len(pairs) == 1, part
        iet("--op", "delete", "--tid=" + new, *pairs[0])
        s.conn.expect_close(5)
        iet("--op", "delete", "--user", "--tid=" + new, "--params=IncomingUser=joe")
        until(lambda: o.run("ietadm", "--op", "delete", "--tid=" + new).returncode == 0, "it stays in use")
        assert not tid() and "tid:7 " in proc("volume")


# --- Proxmox ---------------------------------------------------------------------------------------

class Proxmox:
    """Iet.pm: its parser is strict; what it does not understand ends it."""

    def __init__(self, o, target, pool):
        self.o, self.target, self.pool = o, target, pool
        self.options, self.luns, self.others = [], [], ""

    def parse(self):
        mine = False
        for line in self.o.sh('cat "$1"', self.o.path("ietd.conf")).split("\n"):
            m = re.match(r"\s*Target\s*([\w\-:.]+)\s*$", line)
            if m:
                mine = m.group(1) == self.target
                if mine:
                    continue
            if not mine:
                self.others += line + "\n"
                continue
            if not line or re.match(r"\s*#", line):
                continue
            m = re.match(r"\s*(\w+)\s+(\w+)\s*$", line)
            if m and m.group(1) != "Lun":
                self.options.append(m.groups())
                continue
            m = re.match(r"\s*(\w+)\s+(\d+)\s+([\w\-/=,]+)\s*$", line)
            assert m and m.group(1) == "Lun", "Parse error [%s]" % line
            pairs = dict(p.split("=") for p in m.group(3).split(","))
            assert len(pairs) > 1, "Parse error [%s]" % line
            self.luns.append((int(m.group(2)), pairs))

    def update(self):
        text = self.others.strip() + "\n\n\nTarget %s\n" % self.target
        text += "".join("\t%s\t\t\t%s\n" % kv for kv in self.options)
        for n, kv in self.luns:
            rest = ",".join("%s=%s" % i for i in kv.items() if i[0] != "Path")
            text += "\tLun %d Path=%s,%s\n" % (n, kv["Path"], rest)
        self.o.write("ietd.conf", text)

    def tid(self):
        for line in self.o.sh('cat "$1"', self.o.path("proc", "volume")).split("\n"):
            m = re.match(r"\s*tid:(\d+)\s+name:([\w\-:.]+)\s*$", line)
            if m and m.group(2) == self.target:
                return m.group(1)
        return None

    def create(self, path):
        taken = [n for n, kv in self.luns]
        n = next(i for i in range(16864) if i not in taken)
        self.luns.append((n, {"Path": path, "Type": "blockio"}))
        tid = self.tid()
        self.update()
        self.o.ok("ietadm", "--op", "new", "--tid=" + tid, "--lun=%d" % n, "--params",
                  "Path=%s,Type=blockio" % path)
        return n

    def number(self, path):
        return next(n for n, kv in self.luns if kv["Path"] == path)

    def delete(self, path):
        n = self.number(path)
        self.o.ok("ietadm", "--op", "delete", "--tid=" + self.tid(), "--lun=%d" % n)
        self.luns = [x for x in self.luns if x[0] != n]
        self.update()

    def modify(self, path):
        n = self.number(path)
        self.o.ok("ietadm", "--op", "delete", "--tid=" + self.tid(), "--lun=%d" % n)
        self.o.ok("ietadm", "--op", "new", "--tid=" + self.tid(), "--lun=%d" % n, "--params",
                  "Path=%s,Type=blockio" % path)


def loop(o, name, loops):
    """A volume of the pool: a block device."""
    out = subprocess.run(["losetup", "-f", "--show", o.file(name + ".img", 2 << 20)], capture_output=True,
                         text=True)
    if out.returncode:
        raise Skip("no loop device: " + out.stderr.strip())
    loops.append(out.stdout.strip())
    os.makedirs(o.path("tank"), exist_ok=True)
    os.symlink(loops[-1], o.path("tank", name))
    return o.path("tank", name)


def test_proxmox(settings):
    iqn, loops = "iqn.2001-04.com.example:tank", []
    with Old(settings) as o:
        try:
            o.tgtd()
            o.write("ietd.conf", "# a comment\nTarget iqn.2001-04.com.example:other\n\tAlias other\n\n"
                                 "Target %s\n\tAlias\t\t\ttank\n\t# none yet\n" % iqn)
            o.ok("ietadm", "--op", "new", "--tid=1", "--params", "Name=iqn.2001-04.com.example:other")
            o.ok("ietadm", "--op", "new", "--tid=2", "--params", "Name=" + iqn)
            o.ok("tgtadm", "--op", "bind", "--mode", "target", "--tid", "2", "-I", "ALL")
            p = Proxmox(o, iqn, "tank")
            p.parse()
            assert p.options == [("Alias", "tank")] and p.luns == [] and p.tid() == "2"
            paths = [loop(o, "vm-100-disk-%d" % i, loops) for i in range(2)]
            assert [p.create(x) for x in paths] == [0, 1]
            disk(o.addr, iqn, 1).conn.close()
            # a unit that grew is taken away and made anew
            s = disk(o.addr, iqn, 0)
            os.truncate(o.path("vm-100-disk-0.img"), 4 << 20)
            subprocess.run(["losetup", "-c", loops[0]], check=True)
            p.modify(paths[0])
            cap = s.run_ua(scsi.read_capacity10(), read=8, lun=0).good().data
            assert int.from_bytes(bytes(cap[:4]), "big") == (4 << 20) // 512 - 1, bytes(cap)
            s.conn.close()
            # what the plug-in wrote is a configuration for ietd
            out = subprocess.run([settings.daemon, "-t", "-c", o.path("ietd.conf")], capture_output=True,
                                 text=True, env=o.env)
            assert out.returncode == 0 and "2 targets, no errors" in out.stdout, out
            # another node reads the file that this one wrote
            again = Proxmox(o, iqn, "tank")
            again.parse()
            assert [n for n, kv in again.luns] == [0, 1] and again.options == p.options
            assert "Target iqn.2001-04.com.example:other\n\tAlias other" in again.others
            again.delete(paths[0])
            assert again.create(paths[0]) == 0
            again.delete(paths[0])
            again.delete(paths[1])
            assert again.luns == [] and "lun:" not in o.sh('cat "$1"', o.path("proc", "volume"))
            for x in loops:  # free again
                subprocess.run(["dd", "if=/dev/null", "of=" + x], check=True, capture_output=True)
        finally:
            for x in loops:
                subprocess.run(["losetup", "-d", x], capture_output=True)


# --- avocado ---------------------------------------------------------------------------------------

def test_avocado(settings):
    iqn = "iqn.2001-04.com.example:emulated"
    with Old(settings) as o:
        o.tgtd()
        image = o.file("image", 4 << 20)

        def adm(text):
            return o.ok("tgtadm", *text.split())

        def show():
            return adm("--lld iscsi --mode target --op show")

        # export
        adm("--mode target --op new --tid 1 --lld iscsi --targetname iqn.2001-04.com.example:first")
        assert not re.findall("%s$" % iqn, show(), re.M)
        used, tid = re.findall(r"Target\s+(\d+)", show()), 1
        while str(tid) in used:
            tid += 1
        assert tid == 2
        adm("--mode target --op new --tid %d --lld iscsi --targetname %s" % (tid, iqn))
        adm("--lld iscsi --op bind --mode target --tid %d -I ALL" % tid)
        assert re.findall(r"Target\s+(\d+):\s+%s$" % iqn, show(), re.M) == ["2"]
        part = re.search(r".*(Target\s+\d+:\s+%s\s*.*)$" % iqn, show(), re.S).group(1)
        lun = len(re.findall(r"\s+LUN:\s(\d+)", part, re.M))
        assert lun == 1, "the controller's row is counted"
        adm("--mode logicalunit --op new --tid %d --lld iscsi --lun %d --backing-store %s" % (tid, lun, image))
        # the target by its image
        found = None
        for line in show().split("\n"):
            m = re.findall(r"Target\s+(\d+)", line)
            found = m[0] if m else found
            if re.findall(r"Backing store path:\s+(/+.+)", line) and image in line:
                break
        else:
            found = None
        assert found == "2"
        # CHAP
        assert adm("--lld iscsi --op show --mode account") == ""
        adm("--lld iscsi --op new --mode account --user redhat --password redhat-redhat")
        accounts = [x.strip() for x in adm("--lld iscsi --op show --mode account").splitlines()[1:]]
        assert accounts == ["redhat"], accounts
        adm("--lld iscsi --op bind --mode account --tid 2 --user redhat")
        got = re.findall(r"Target\s+\d:\s+%s.*Account information:\s(.*)ACL information" % iqn, show(), re.S)
        assert [x.strip() for x in got[0].strip().splitlines()] == ["redhat"], got
        s = Session(o.addr, iqn)
        Chap(s, "redhat", "redhat-redhat").login()
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        s.logout()
        until(lambda: o.run("tgtadm", "--lld", "iscsi", "--mode", "target", "--op", "delete", "--tid",
                            "2").returncode == 0, "the target stays in use")
        assert not re.findall("%s$" % iqn, show(), re.M)
