# SPDX-License-Identifier: BSD-2-Clause
"""Every call of tgtadm's command line: what it does, its messages, its exit status."""

import json
import os
import re
import time

from common import MIB, NAME, call, daemon, file
from lib import pdu as P
from lib import scsi
from lib.evtgt import IQN, Lun, Target
from lib.iscsi import LoginFailed, Session

TGT = "--lld iscsi --mode target --tid 1 "
LU = "--lld iscsi --mode logicalunit --tid 1 "


def shown(d, tid=None):
    return call(d, "--op show --mode target" + (" --tid %d" % tid if tid else ""))


def refused(d, target=NAME, **kw):
    try:
        Session(d.addr, target, **kw).login()
    except LoginFailed:
        return True
    return False


def test_target_new_and_delete(settings):
    with daemon(settings) as d:
        call(d, "--lld iscsi --op new --mode target --tid 1 -T iqn.2001-04.a:b", 22,
             "this target already exists")
        call(d, "--lld iscsi --op new --mode target --tid 2 -T " + NAME, 22,
             "this target already exists")
        call(d, "--lld iscsi --op new --mode target --tid 0 -T iqn.2001-04.a:b", 22,
             "'tid' cannot be 0")
        call(d, "--lld iscsi --op new --mode target -T iqn.2001-04.a:b", 22,
             "'tid' option is necessary")
        call(d, "--lld iscsi --op new --mode target --tid 2", 22,
             "creating new target requires a name, use --targetname")
        call(d, "--op new --mode tgt -t 2 --target iqn.2001-04.a:b")
        assert "Target 2: iqn.2001-04.a:b\n" in shown(d)
        assert refused(d, "iqn.2001-04.a:b"), "a new target admits somebody"
        call(d, "--op delete --mode target --tid 2")
        assert "Target 2:" not in shown(d)
        call(d, "--op delete --mode target --tid 2", 22, "can't find the target")
        call(d, "--op show --mode target --tid 2", 22, "can't find the target")


def test_target_in_use(settings):
    with daemon(settings) as d:
        s = Session(d.addr, NAME)
        s.login()
        call(d, TGT + "--op delete", 22, "this target is still active")
        s.nop()
        call(d, TGT + "--op delete --force")
        s.conn.expect_close(5)
        assert shown(d) == ""
        s.conn.close()


def test_lun_in_use(settings):
    """A unit with a command in flight stays, unless it is forced out: the command is answered then."""
    with daemon(settings, [Target("disk", [Lun("a.img", MIB, 1, kind="file", opts=["layer delay:hang=1,op=read"])])],
                head=["shutdown-timeout 2"]) as d:
        s = Session(d.addr, NAME)
        s.login()
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        t = s.start(scsi.read10(0, 1), read=512, lun=1)
        s.quiet(0.3)
        call(d, LU + "--op delete --lun 1", 22, "this logical unit is still active")
        assert "LUN: 1\n" in shown(d)
        s.run(scsi.TEST_UNIT_READY, lun=1).good()
        call(d, LU + "--op delete --lun 1 --force")
        assert "LUN: 1\n" not in shown(d)
        s.wait(t, timeout=5)
        t.check(5, 0x25, 0)
        s.conn.close()


def test_bind_unbind(settings):
    with daemon(settings, [Target("disk", [Lun("a.img", MIB, 1, kind="file")], [])]) as d:
        assert refused(d)
        call(d, TGT + "--op bind", 22)
        call(d, TGT + "--op bind -I nonsense/77", 22)
        call(d, TGT + "--op bind -I 127.0.0.0/8")
        call(d, TGT + "--op bind -I 127.0.0.0/8", 22, "this access control rule already exists")
        assert "    ACL information:\n        127.0.0.0/8\n" in shown(d)
        assert not refused(d)
        call(d, TGT + "--op bind --initiator-name iqn.2001-04.friend:x")
        assert refused(d), "an address is enough although a name is wanted"
        assert not refused(d, initiator="iqn.2001-04.friend:x")
        call(d, TGT + "--op unbind -Q iqn.2001-04.friend:y", 22,
             "this access control rule does not exist")
        call(d, TGT + "--op unbind -Q iqn.2001-04.friend:x")
        call(d, TGT + "--op unbind -I 10.0.0.1", 22, "this access control rule does not exist")
        call(d, TGT + "--op unbind -I 127.0.0.0/8")
        assert refused(d)
        call(d, "--op bind --mode target --tid 9 -I ALL", 22, "can't find the target")
        call(d, TGT + "--op bind -I ALL")
        assert not refused(d)


def test_bind_leaves_units_alone(settings):
    """A change of the access list is no change of the LUN inventory."""
    with daemon(settings) as d:
        s = Session(d.addr, NAME)
        s.login()
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        call(d, TGT + "--op bind -I 127.0.0.1")
        call(d, TGT + "--op update -n nop_interval -v 7")
        time.sleep(0.1)
        s.run(scsi.TEST_UNIT_READY, lun=1).good()
        s.conn.close()


def test_target_update(settings):
    with daemon(settings) as d:
        for name, value in (("MaxBurstLength", "65536"), ("InitialR2T", "Yes"), ("nop_interval", "5"),
                            ("nop_count", "4"), ("MaxQueueCmd", "16"), ("HeaderDigest", "CRC32C")):
            call(d, TGT + "--op update --name %s --value %s" % (name, value))
            assert "\n%s=%s\n" % (name, value) in "\n" + shown(d, 1), name
        call(d, TGT + "--op update --params FirstBurstLength=4096,MaxOutstandingR2T=2")
        assert "\nFirstBurstLength=4096\n" in shown(d, 1)
        call(d, TGT + "--op update --params MaxBurstLength=1024,FirstBurstLength=7", 22)
        assert "\nMaxBurstLength=65536\n" in shown(d, 1), "half of a wrong update was taken"
        call(d, TGT + "--op update -n MaxBurstLength -v 1", 22)
        call(d, TGT + "--op update -n Nonsense -v 1", 22, "unknown parameter: Nonsense")
        call(d, TGT + "--op update -n MaxQueueCmd -v 0", 22)
        call(d, TGT + "--op update -n MaxQueueCmd", 22)
        call(d, TGT + "--op update -n state -v sideways", 22)
        call(d, TGT + "--op update -n state -v offline")
        assert "        State: offline\n" in shown(d)
        assert refused(d)
        call(d, TGT + "--op update -n state -v ready")
        assert "        State: ready\n" in shown(d)


def test_lun_new_and_delete(settings):
    with daemon(settings) as d:
        path = file(d, "b.img", 2 * MIB)
        call(d, LU + "--op new --lun 1 -b " + path, 22, "this logical unit number already exists")
        call(d, LU + "--op new --lun 2", 22, "'backing-store' option is necessary")
        call(d, LU + "--op new -b " + path, 22, "'lun' option is necessary")
        call(d, "--op new --mode lu --lun 2 -b " + path, 22, "'tid' option is necessary")
        call(d, "--op new --mode lu --tid 7 --lun 2 -b " + path, 22, "can't find the target")
        call(d, LU + "--op new --lun 16384 -b " + path, 22)
        call(d, LU + "--op new --lun 2x -b " + path, 22)
        out = d.adm(*(LU + "--op new --lun 2 -b " + path + ".no").split(), check=False)
        assert out.returncode == 22 and path + ".no" in out.stderr, out
        call(d, LU + "--op new --lun 2 --bstype rbd -b " + path, 22)
        call(d, LU + "--op new --lun 2 --blocksize 1000 -b " + path, 22)
        call(d, LU + "--op new --lun 2 --device-type tape -b " + path, 22)
        call(d, LU + "--op new --lun 2 --bsoflags fast -b " + path, 22)
        call(d, LU + "--op new --lun 2 --bsopts a=b -b " + path, 22)
        assert "LUN: 2" not in shown(d), "something was left behind"
        call(d, LU + "--op new --lun 2 -b %s --bstype aio --bsoflags sync:direct --blocksize 4096"
             % path)
        text = shown(d)
        assert "            Size: 2 MB, Block size: 4096\n" in text
        assert "            Backing store type: rdwr\n            Backing store path: " + path in text
        assert "            Backing store flags: sync:direct\n" in text
        assert text.count("    LUN: 0\n            Type: controller\n") == 1
        call(d, LU + "--op delete --lun 2")
        assert "LUN: 2" not in shown(d)
        call(d, LU + "--op new --lun 3 -b " + path)  # the file is free again
        call(d, LU + "--op delete --lun 9", 22, "can't find the logical unit")
        call(d, LU + "--op delete --lun 0", 22)
        call(d, LU + "--op new --lun 0 --bstype null --params size=1M")
        text = shown(d)
        assert "controller" not in text and "        LUN: 0\n            Type: disk\n" in text
        call(d, LU + "--op delete --lun 0")
        assert "Type: controller" in shown(d)


def test_relative_path(settings):
    with daemon(settings) as d:
        file(d, "b.img")
        old = os.getcwd()
        os.chdir(d.dir)
        try:
            call(d, LU + "--op new --lun 2 -b b.img")
        finally:
            os.chdir(old)
        assert "Backing store path: %s\n" % d.path("b.img") in shown(d)


def test_store_twice(settings):
    """Two targets with the same store and settings have the same unit; others are refused."""
    with daemon(settings) as d:
        call(d, "--op new --mode target --tid 2 -T iqn.2001-04.a:b")
        path = d.path("a.img")
        call(d, LU + "--op new --lun 2 -b " + path, 22)
        call(d, "--op new --mode lu --tid 2 --lun 5 -b %s --params readonly=1" % path, 22)
        assert shown(d).count("Type: disk") == 1
        call(d, "--op new --mode lu --tid 2 --lun 5 -b " + path)
        ids = re.findall(r"SCSI ID: (\w+)\n", shown(d))
        assert len(ids) == 2 and len(set(ids)) == 1, ids
        call(d, "--op delete --mode target --tid 2")
        s = Session(d.addr, NAME)
        s.login()
        s.run_ua(scsi.read10(0, 1), read=512, lun=1).good()
        s.conn.close()


def test_lun_update(settings):
    with daemon(settings) as d:
        call(d, LU + "--op update --lun 1 --params vendor_id=ACME,product_id=DISK,product_rev=0103,"
             "scsi_sn=SN1,scsi_id=ID1,removable=1,readonly=1")
        text = shown(d)
        for line in ("SCSI ID: ID1", "SCSI SN: SN1", "Removable media: Yes", "Readonly: Yes"):
            assert "            %s\n" % line in text, line
        s = Session(d.addr, NAME)
        s.login()
        inq = bytes(s.run_ua(scsi.inquiry(36), read=36, lun=1).good().data)
        assert inq[8:36] == b"ACME    DISK            0103", inq
        call(d, LU + "--op update --lun 1 --params vendor_id=TWICE --params product_rev=7")
        inq = bytes(s.run_ua(scsi.inquiry(36), read=36, lun=1).good().data)
        assert inq[8:36] == b"TWICE   DISK            7   ", inq
        call(d, LU + "--op update --lun 1 --params vendor_id=A --params vendor_id=B", 22,
             "--params: 'vendor_id' is given twice")
        call(d, LU + "--op update --lun 1 --params vendor_id=ACME")
        call(d, LU + "--op update --lun 1 --params online=0")
        assert "            Online: No\n" in shown(d)
        assert s.run_ua(scsi.TEST_UNIT_READY, lun=1).status == 2
        call(d, LU + "--op update --lun 1 --params online=1")
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        call(d, LU + "--op update --lun 1 --params vendor_id=X,nonsense=1", 22)
        assert bytes(s.run_ua(scsi.inquiry(36), read=36, lun=1).data)[8:12] == b"ACME"
        call(d, LU + "--op update --lun 1 --params mode_page=2:0:1:0", 22)
        call(d, LU + "--op update --lun 8 --params online=0", 22, "can't find the logical unit")
        call(d, LU + "--op update --lun 1 --params nothing", 22)
        s.conn.close()


def test_sessions(settings):
    with daemon(settings) as d:
        assert call(d, "--op show --mode conn --tid 1") == ""
        a = Session(d.addr, NAME, initiator="iqn.2001-04.x:a", cid=3)
        a.login()
        text = shown(d)
        m = re.search(r"    I_T nexus information:\n        I_T nexus: (\d+)\n"
                      r"            Initiator: iqn.2001-04.x:a alias: \S+\n"
                      r"            Connection: 3\n                IP Address: 127.0.0.1\n"
                      r"    LUN information:\n", text)
        assert m, text
        sid = m.group(1)
        assert call(d, "--op show --mode conn --tid 1") == (
            "Session: %s\n    Connection: 3\n        Initiator: iqn.2001-04.x:a\n"
            "        IP Address: 127.0.0.1\n" % sid)
        assert call(d, "--op show --mode session --tid 1")
        call(d, "--op show --mode conn --tid 8", 22, "can't find the target")
        call(d, "--op delete --mode conn --tid 1 --sid 999 --cid 3", 22, "can't find the session")
        call(d, "--op delete --mode conn --tid 1 --sid %s --cid 9" % sid, 22,
             "can't find the connection")
        a.nop()
        assert call(d, "--op stat --mode target --tid 1").count("\n") == 2
        call(d, "--op delete --mode conn --tid 1 --sid %s --cid 3" % sid)
        seen = a.conn.expect_close(5)
        assert [p.opcode for p in seen] == [P.ASYNC], seen
        b = Session(d.addr, NAME)
        b.login()
        sid = re.search(r"Session: (\d+)", call(d, "--op show --mode sess --tid 1")).group(1)
        call(d, "--op delete --mode session --tid 1 --sid " + sid)
        b.conn.expect_close(5)
        assert call(d, "--op show --mode conn --tid 1") == ""
        a.conn.close()
        b.conn.close()


def test_portals(settings):
    with daemon(settings) as d:
        here = "127.0.0.1:%d" % d.port
        assert call(d, "--op show --mode portal") == "Portal: %s,1\n" % here
        extra = "127.0.0.2:%d" % d.port
        call(d, "--op new --mode portal --param portal=" + extra)
        assert call(d, "--op show --mode pt") == "Portal: %s,1\nPortal: %s,1\n" % (here, extra)
        s = Session(("127.0.0.2", d.port), NAME)
        s.login()
        call(d, "--op new --mode portal --param portal=" + extra, 22)
        call(d, "--op delete --mode portal --param portal=" + extra)
        assert call(d, "--op show --mode portal") == "Portal: %s,1\n" % here
        s.nop()
        call(d, "--op delete --mode portal --param portal=" + extra, 22)
        call(d, "--op new --mode portal --param portal=nonsense", 22)
        call(d, "--op new --mode portal", 22, "you must specify --param portal=<portal>")
        s.conn.close()


def test_system(settings):
    with daemon(settings) as d:
        text = call(d, "--lld iscsi --op show --mode system")
        assert text.startswith("System:\n    State: ready\n    debug: off\nLLDs:\n    iscsi: ready\n")
        assert " rdwr" in text
        call(d, "--op update --mode sys -n State -v offline")
        assert "    State: offline\n" in call(d, "--op show --mode sys")
        assert refused(d)
        call(d, "--op update --mode sys --name State --value ready")
        assert not refused(d)
        call(d, "--op update --mode sys -n debug -v on")
        assert "    debug: on\n" in call(d, "--op show --mode sys")
        call(d, "--op update --mode sys -n debug -v off")
        call(d, "--op update --mode sys -n foo -v on", 22)
        call(d, "--op update --mode sys -n debug", 22,
             "update operation requires 'name' and 'value' options")
        assert "login_ok " in call(d, "--op stat --mode sys")
        assert "        Target 1: %s\n" % NAME in call(d, "--op show --mode lld")
        assert call(d, "--op show --mode account") == ""


def test_wrong_words(settings):
    with daemon(settings) as d:
        call(d, "--op foo --mode target", 1, "unknown operation: foo")
        call(d, "--op show --mode foo", 1, "unknown mode: foo")
        call(d, "--op show", 22, "specify the mode")
        call(d, "--mode target", 22, "specify the operation type")
        call(d, "--lld iser --op show --mode target", 22, "can't find the driver")
        call(d, "--op show --mode logicalunit --tid 1 --lun 1", 22,
             "operation show not supported in logicalunit mode")
        call(d, "--op delete --mode target --tid 1 --lun 1", 22,
             "target mode: option '-l' is not allowed/supported")
        for text in ("--op show --mode target extra", "--foo", "--op show --mode target --tid"):
            out = d.adm(*text.split(), check=False)
            assert out.returncode == 22 and "--help" in out.stderr, out
        out = d.adm("--help")
        assert "--targetname" in out


def test_json(settings):
    with daemon(settings) as d:
        j = json.loads(call(d, "--op show --mode target --json"))
        t = j["data"]["targets"][0]
        assert j["ok"] is True and t["tid"] == 1 and t["name"] == NAME, j
        lun = t["luns"][0]
        assert lun["lun"] == 1 and lun["blocks"] * lun["block_size"] == 4 * MIB and lun["ready"]
        assert re.fullmatch("3[0-9a-f]{15}", lun["naa"]), lun["naa"]
        out = d.adm("--op", "delete", "--mode", "target", "--tid", "8", "--json", check=False)
        j = json.loads(out.stdout)
        assert out.returncode == 22 and j["ok"] is False and j["error"]["code"] == "no-target", out
        for mode in ("system", "portal", "session", "lld", "account"):
            assert json.loads(call(d, "--op show --json --mode " + mode))["ok"] is True


def test_system_delete(settings):
    with daemon(settings) as d:
        call(d, "--op delete --mode system")
        assert d.wait(10) == 0
        call(d, "--op show --mode system", 107,
             "failed to send request hdr to tgt daemon, Transport endpoint is not connected "
             "(no evtgtd answers at %s)" % d.sock)


def test_missing_store_at_start(settings):
    """Its LUN is there and not ready; the identity is the same once the file came, and later."""
    tgts = [Target("disk", [Lun("a.img", MIB, 1, kind="file"),
                            Lun("b.img", MIB, 2, kind="file", create=False)])]
    with daemon(settings, tgts) as d:
        j = json.loads(call(d, "--op show --mode target --json"))["data"]["targets"][0]["luns"]
        assert j[0]["ready"] and not j[1]["ready"] and j[1]["reason"], j
        with open(d.path("tmp"), "wb") as f:
            f.truncate(MIB)
        os.rename(d.path("tmp"), d.path("b.img"))
        deadline = time.monotonic() + 15
        while not j[1]["ready"]:
            assert time.monotonic() < deadline, j
            time.sleep(0.2)
            j = json.loads(call(d, "--op show --mode target --json"))["data"]["targets"][0]["luns"]
        came = j[1]["scsi_id"]
        d.stop()
        d.start()
        j = json.loads(call(d, "--op show --mode target --json"))["data"]["targets"][0]["luns"]
        assert j[1]["scsi_id"] == came, "another identity after a restart"


def test_identities_by_order(settings):
    """Default identities follow the store, not tid, number or order; another host has others."""
    def ids(d):
        j = json.loads(call(d, "--op show --mode target --json"))["data"]["targets"]
        return {lun["path"]: lun["scsi_id"] for t in j for lun in t["luns"]}
    tgts = [Target("one", [Lun("a.img", MIB, 1, kind="file"), Lun("b.img", MIB, 2, kind="file")])]
    with daemon(settings, tgts) as d:
        first = ids(d)
        assert len(set(first.values())) == 2
        d.stop()
        a, b = tgts[0].luns
        a.lun, b.lun = 7, 3
        d.targets = [Target("zero", [b]), Target("two", [a])]
        d.start()
        assert ids(d) == first
        d.stop()
        seed = [n for n in os.listdir(d.path("state")) if "host-seed" in n]
        assert len(seed) == 1, os.listdir(d.path("state"))
        os.unlink(os.path.join(d.path("state"), seed[0]))
        d.start()
        assert not set(ids(d).values()) & set(first.values())
