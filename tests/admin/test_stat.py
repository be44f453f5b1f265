# SPDX-License-Identifier: BSD-2-Clause
"""`--op stat` in tgtadm's layout, settings of the daemon as a whole, and the driver's verbs."""

import json

from common import MIB, NAME, call, daemon
from lib import scsi
from lib.evtgt import IQN, Lun, Target
from lib.iscsi import LoginFailed, Session
from verbs import ask as json_verb, verb

HEAD = ("tgt lun sid rd_subm(bytes,cmds) rd_done(bytes,cmds) wr_subm(bytes,cmds) "
        "wr_done(bytes,cmds) errs\n")
CONN = "sid cid rxdata_octets txdata_octets dataout_pdus datain_pdus cmd_pdus rsp_pdus\n"


def row(*v):
    return "%3d %3d %3d %12d %6d %12d %6d %12d %6d %12d %6d %4d\n" % v


def sid_of(d):
    return json.loads(call(d, "--op show --mode session --json"))["data"]["sessions"][0]["sid"]


def test_stat(settings):
    luns = [Lun("a.img", 4 * MIB, 1, kind="file"), Lun("b.img", 4 * MIB, 2, kind="file")]
    with daemon(settings, [Target("disk", luns), Target("other", [])]) as d:
        assert call(d, "--op stat --mode target --tid 1") == HEAD
        s = Session(d.addr, NAME).login()
        sid = sid_of(d)
        zero = [0] * 9
        assert call(d, "--op stat --mode target --tid 1") == HEAD + row(1, 1, sid, *zero) + row(
            1, 2, sid, *zero)
        s.run(scsi.TEST_UNIT_READY, lun=1).check(6)
        s.run(scsi.TEST_UNIT_READY, lun=1).good()
        s.run(scsi.read10(0, 8), read=4096, lun=1).good()
        s.run(scsi.read10(8, 4), read=2048, lun=1).good()
        s.run(scsi.write10(0, 2), write=bytes(1024), lun=1).good()
        s.run(scsi.read10(1 << 20, 1), read=512, lun=1).check(5)
        one = row(1, 1, sid, 6144, 2, 6144, 2, 1024, 1, 1024, 1, 2)
        two = row(1, 2, sid, *zero)
        assert call(d, "--op stat --mode target --tid 1") == HEAD + one + two
        assert call(d, "--op stat --mode lu --tid 1 --lun 1") == HEAD + one
        assert call(d, "--op stat --mode logicalunit --tid 1 --lun 2") == HEAD + two
        assert call(d, "--op stat --mode target --tid 2") == HEAD
        text = call(d, "--op stat --mode system")
        assert text.startswith(HEAD + one + two + "\n") and "\nlogin_ok 1\n" in text, text
        text = call(d, "--op stat --mode session --tid 1 --sid %d" % sid)
        assert text.startswith(HEAD + one + two + "\n" + CONN), text
        conn = call(d, "--op stat --mode conn --tid 1 --sid %d --cid 0" % sid)
        assert conn.startswith(CONN) and conn == text[text.index(CONN):], conn
        v = [int(x) for x in conn[len(CONN):].split()]
        assert v[:2] == [sid, 0] and v[2] > 1024 and v[3] > 6144 and v[5] == 2 and v[6] == 6, v
        for wrong, why in (("session --tid 1 --sid 999", "can't find the session"),
                           ("conn --tid 1 --sid %d --cid 7" % sid, "can't find the connection"),
                           ("target --tid 9", "can't find the target"),
                           ("lu --tid 1 --lun 7", "can't find the logical unit"),
                           ("lu --tid 1", "'lun' option is necessary"),
                           ("lu --lun 1", "'tid' option is necessary"),
                           ("target", "'tid' option is necessary"),
                           ("portal", "operation stat not supported in portal mode"),
                           ("lld", "operation stat not supported in lld mode"),
                           ("account", "operation stat not supported in account mode")):
            call(d, "--op stat --mode " + wrong, 22, why)
        s.logout()
        s.conn.close()
        for _ in range(100):
            r = json.loads(call(d, "--op stat --mode lu --tid 1 --lun 1 --json"))["data"]
            if not r["sessions"]:
                break
        assert r["ended"]["rd_done_bytes"] == 6144 and r["ended"]["errs"] == 2, r


def refused(d, **kw):
    try:
        Session(d.addr, NAME, **kw).login().conn.close()
    except LoginFailed:
        return True
    return False


def test_system_settings(settings):
    with daemon(settings) as d:
        def shown():
            return json.loads(call(d, "--op show --mode system --json"))["data"]
        up = "--op update --mode system --name %s --value %s"
        call(d, up % ("nop_interval", "7"))
        call(d, up % ("nop_count", "4"))
        text = call(d, "--op show --mode target --tid 1")
        assert "nop_interval=7\nnop_count=4\n" in text
        call(d, "--op update --mode target --tid 1 -n nop_interval -v 9")
        assert "nop_interval=9\n" in call(d, "--op show --mode target --tid 1")
        assert (shown()["nop_interval"], shown()["nop_count"]) == (7, 4)
        call(d, up % ("chap-algorithms", "sha256,5"))
        assert shown()["chap"]["algorithms"] == ["md5", "sha256"]
        call(d, up % ("chap-legacy-sha1-7", "on"))
        assert shown()["chap"]["legacy_sha1_7"] is True
        call(d, up % ("chap-legacy-sha1-7", "off"))
        for word in ("portal", "all", "authenticated", "name"):
            call(d, up % ("discovery-filter", word))
            assert shown()["discovery_filter"] == word
        for name, value, why in (("State", "bogus", "ready or offline"), ("debug", "2", "on or off"),
                                 ("nop_interval", "3601", "0 to 3600"), ("nop_count", "0", "1 to"),
                                 ("chap-algorithms", "rot13", "md5, sha1"),
                                 ("chap-legacy-sha1-7", "x", "on or off"),
                                 ("discovery-filter", "x", "portal"),
                                 ("iSNSServerPort", "0", "1 to 65535")):
            out = d.adm(*(up % (name, value)).split(), check=False)
            assert out.returncode == 22 and why in out.stderr, (name, out.stderr)
        call(d, up % ("iSNSX", "on"), 22, "unknown parameter: iSNSX")


def test_discovery_filter_live(settings):
    with daemon(settings) as d:
        def found():
            s = Session(d.addr, None, discovery=True, initiator=IQN + "nobody").login()
            pairs = s.text(b"SendTargets=All\0")
            s.conn.close()
            return ("TargetName", NAME) in pairs
        call(d, "--op unbind --mode target --tid 1 -I ALL")
        assert not found()
        call(d, "--op update --mode system -n discovery-filter -v all")
        assert found()
        call(d, "--op update --mode system -n discovery-filter -v name")
        assert not found()


def test_lld(settings):
    with daemon(settings) as d:
        assert call(d, "--op show --mode lld").startswith("LLDs:\n    iscsi: ready\n")
        call(d, "--lld iscsi --op start --mode lld")
        call(d, "--lld iscsi --op stop --mode lld", 22, "this driver is busy")
        call(d, "--lld iser --op start --mode lld", 22, "can't find the driver")
        assert not refused(d)


def test_target_keys(settings):
    """Keys that only tgt has a use for are judged as tgt does, and said to do nothing."""
    with daemon(settings) as d:
        up = "--op update --mode target --tid 1 --name %s --value %s"
        for name, right, wrong in (("RDMAExtensions", "Yes", "1"),
                                   ("TargetRecvDataSegmentLength", "4096", "1"),
                                   ("InitiatorRecvDataSegmentLength", "4096", "Yes"),
                                   ("MaxOutstandingUnexpectedPDUs", "4096", "x"),
                                   ("MaxXmitDataSegmentLength", "4096", "1"),
                                   ("IFMarkInt", "2048", "0"), ("OFMarkInt", "2048", "99999"),
                                   ("MaxQueueCmd", "64", "513"), ("state", "ready", "1"),
                                   ("RedirectReason", "Temporary", "Yes")):
            call(d, up % (name, right))
            call(d, up % (name, wrong), 22)
        r = json.loads(call(d, up % ("RDMAExtensions", "No") + " --json"))
        assert r["data"]["warnings"] == ["RDMAExtensions has no effect here"], r
        r = json.loads(call(d, up % ("RedirectPort", "3333") + " --json"))
        assert r["data"]["warnings"] == ["RedirectPort has no effect without RedirectAddress"], r
        r = json.loads(call(d, up % ("RedirectAddress", "192.0.2.1") + " --json"))
        assert r["data"]["warnings"] == []


def test_same_secret_told(settings):
    with daemon(settings) as d:
        for user in "ab":
            call(d, "--op new --mode account --user %s --password correct-horse-9" % user)
            call(d, "--op bind --mode account --tid 1 --user " + user)
        text = open(d.log).read()
        assert "account-same-secret user=b other=a" in text and "correct-horse" not in text


def lun_of(d, number=1):
    t = json.loads(call(d, "--op show --mode target --json"))["data"]["targets"][0]
    return [u for u in t["luns"] if u["lun"] == number][0]


def told(d):
    return [x for x in open(d.log) if " shared path=" in x]


def test_two_writers_told(settings):
    luns = [Lun("a.img", MIB, 1, kind="file"), Lun("b.img", MIB, 2, kind="file", opts=["readonly 1"])]
    with daemon(settings, [Target("disk", luns)]) as d:
        a = Session(d.addr, NAME, initiator=IQN + "a").login()
        again = Session(d.addr, NAME, initiator=IQN + "a").login()
        assert lun_of(d)["shared"] == [] and not told(d), "one initiator by two paths"
        b = Session(d.addr, NAME, initiator=IQN + "b").login()
        assert sorted(lun_of(d)["shared"]) == [IQN + "a", IQN + "b"]
        assert lun_of(d, 2)["shared"] == [], "nobody can write it"
        for words in ("lun list", "target show disk"):
            line, = [x for x in verb(d, words).split("\n") if "side by side" in x]
            assert line.startswith("warning: LUN 1 is written by "), line
            assert IQN + "a" in line and IQN + "b" in line and " and " in line, line
            target, = json_verb(d, words).get("targets") or [json_verb(d, words).get("target")]
            assert [len(x.get("shared", [])) for x in target["luns"] if x["lun"]] == [2, 0]
        lines = told(d)
        assert len(lines) == 1 and IQN + "a" in lines[0] and IQN + "b" in lines[0], lines
        b.conn.close()
        b = Session(d.addr, NAME, initiator=IQN + "b").login()
        assert len(told(d)) == 1, "once for each two"
        b.run_ua(scsi.RESERVE6, lun=1).good()
        assert lun_of(d)["shared"] == [], "a reservation keeps them apart"
        assert "shared" not in call(d, "--op show --mode target")
        assert "side by side" not in verb(d, "lun list"), "nor with a reservation"
        for s in (a, again, b):
            s.conn.close()


def test_refused_plainly(settings):
    with daemon(settings) as d:
        lu = "--lld iscsi --op new --mode logicalunit --tid 1 --lun 5 -b /dev/null "
        for kind in ("tape", "ssc", "cd", "changer", "osd", "pt", "bogus"):
            out = d.adm(*(lu + "--device-type " + kind).split(), check=False)
            assert out.returncode == 22 and kind in out.stderr, (kind, out)
        for kind in ("sg", "bsg", "ssc", "smc", "mmc", "sheepdog", "rbd", "glfs"):
            out = d.adm(*(lu + "--bstype " + kind).split(), check=False)
            assert out.returncode == 22 and kind in out.stderr, (kind, out)
        call(d, "--lld iser --op new --mode target --tid 3 -T iqn.x:y", 22, "can't find the driver")
        for opt in ("--bus 3", "--host 3"):
            call(d, "--op bind --mode target --tid 1 " + opt, 22)
        assert "LUN: 5" not in call(d, "--op show --mode target")
