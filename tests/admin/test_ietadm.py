# SPDX-License-Identifier: BSD-2-Clause
"""ietadm's command line, its messages and exit statuses, and the lines of /proc/net/iet.

What IET prints and ends with: iscsitarget 1.4.20, usr/ietadm.c, kernel/volume.c, kernel/conn.c."""

import os
import re
import time

from compat import Old
from lib import scsi
from lib.chap import Chap
from lib.iscsi import LoginFailed, Session

ONE, TWO = "iqn.2001-04.com.example:one", "iqn.2001-04.com.example:two"


def iet(o, text, **kw):
    return o.ok("ietadm", *text.split(), **kw)


def fails(o, text, err, words=""):
    """IET's line first, then ours; status 256 - errno."""
    out = o.run("ietadm", *text.split())
    first = os.strerror(err) + ".\n"
    assert out.returncode == 256 - err and out.stderr.startswith(first) and not out.stdout, (text, out)
    assert words in out.stderr[len(first):] and out.stderr.startswith("ietadm: ", len(first)), (text, out)


def volume(o):
    return o.ok("evtgtadm", "iet-proc", "volume")


def session(o):
    return o.ok("evtgtadm", "iet-proc", "session")


def admit(o, tid):
    o.ok("tgtadm", "--op", "bind", "--mode", "target", "--tid", str(tid), "-I", "ALL")


def test_targets(settings):
    with Old(settings) as o:
        o.tgtd()
        assert volume(o) == "" and session(o) == ""
        iet(o, "--op new --tid=1 --params Name=" + ONE)
        iet(o, "--op new --tid 0 --params Name=" + TWO)
        assert volume(o) == session(o) == "tid:2 name:%s\ntid:1 name:%s\n" % (TWO, ONE)
        fails(o, "--op new --tid=1 --params Name=iqn.2001-04.com.example:x", 17, "already exists")
        fails(o, "--op new --tid=9 --params Name=" + ONE, 17, "already exists")
        fails(o, "--op new --tid=9 --params Name=no_name_at_all", 22)
        fails(o, "--op new --tid=9 --params Alias=x", 22, "Name=IQN")
        fails(o, "--op new --tid=9", 22, "Name=IQN")
        fails(o, "--op new --tid=9x --params Name=" + ONE, 22, "--tid")
        fails(o, "--op delete --tid=7", 2, "can't find the target")
        fails(o, "--op update --tid=7 --params Alias=x", 2)
        fails(o, "--op show --tid=7", 2)
        try:
            Session(o.addr, ONE).login()
            raise AssertionError("a target without access files admits somebody")
        except LoginFailed:
            pass
        admit(o, 1)
        s = Session(o.addr, ONE)
        s.login()
        fails(o, "--op delete --tid=1", 16, "still active")
        s.logout()
        deadline = time.monotonic() + 10
        while o.run("ietadm", "--op", "delete", "--tid=1").returncode:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert volume(o) == "tid:2 name:%s\n" % TWO


def test_target_parameters(settings):
    with Old(settings) as o:
        o.tgtd()
        iet(o, "--op new --tid=1 --params Name=" + ONE)
        text = iet(o, "--op show --tid=1")
        assert re.fullmatch(r"Wthreads=\d+\nType=0\nQueuedCommands=\d+\nNOPInterval=\d+\nNOPTimeout=\d+\n",
                            text), text
        iet(o, "--op update --tid=1 --params QueuedCommands=17,NOPInterval=9,MaxBurstLength=65536")
        text = iet(o, "--op show --tid=1")
        assert "QueuedCommands=17\nNOPInterval=9\nNOPTimeout=9\n" in text, text
        iet(o, "--op update --tid=1 --params=InitialR2T=No,ImmediateData=No,HeaderDigest=CRC32C,None,"
            "MaxOutstandingR2T=8,FirstBurstLength=4096,MaxRecvDataSegmentLength=16384")
        keys = ["InitialR2T=No", "ImmediateData=No", "MaxConnections=1", "MaxRecvDataSegmentLength=16384",
                "MaxXmitDataSegmentLength=16384", "MaxBurstLength=65536", "FirstBurstLength=4096",
                "DefaultTime2Wait=2", "DefaultTime2Retain=", "MaxOutstandingR2T=8", "DataPDUInOrder=Yes",
                "DataSequenceInOrder=Yes", "ErrorRecoveryLevel=0", "HeaderDigest=CRC32C,None",
                "DataDigest=None", "OFMarker=No", "IFMarker=No", "OFMarkInt=Reject", "IFMarkInt=Reject"]
        lines = iet(o, "--op show --tid=1 --sid=0").splitlines()
        assert len(lines) == len(keys), lines
        for line, want in zip(lines, keys):
            assert line.startswith(want), (line, want)
        for name in ("Wthreads=8", "MaxXmitDataSegmentLength=8192", "NOPTimeout=3", "MaxSessions=4"):
            out = o.run("ietadm", "--op", "update", "--tid=1", "--params", name)
            assert out.returncode == 0 and name.split("=")[0] + " has no effect" in out.stderr, out
        iet(o, "--op update --tid=1 --params Alias=words")
        for text in ("Nonsense=1", "MaxBurstLength=1", "HeaderDigest=MD5", "InitialR2T", "InitialR2T=Maybe",
                     "Alias=a,Alias=b"):
            fails(o, "--op update --tid=1 --params " + text, 22)
        fails(o, "--op update --tid=1", 22, "KEY=VALUE")
        fails(o, "--op update --tid=5 --params Wthreads=8", 2)
        admit(o, 1)
        s = Session(o.addr, ONE)
        s.login()
        sid = re.search(r"\tsid:(\d+) ", session(o)).group(1)
        lines = iet(o, "--op show --tid=1 --sid=" + sid).splitlines()
        assert [x.split("=")[0] for x in lines] == [x.split("=")[0] for x in keys], lines
        assert "ImmediateData=No" in lines and "HeaderDigest=None" in lines, lines
        fails(o, "--op show --tid=1 --sid=77777", 2, "no session")
        s.conn.close()


def test_units(settings):
    with Old(settings) as o:
        o.tgtd()
        path = o.file("a.img", 2 << 20)
        iet(o, "--op new --tid=1 --params Name=" + ONE)
        new = "--op new --tid=1 --lun="
        iet(o, new + "0 --params Path=%s,Type=fileio,ScsiId=MyId,ScsiSN=MySn" % path)
        iet(o, new + "1 --params Path=%s,Type=fileio,IOMode=wb,BlockSize=4096" % o.file("b.img"))
        iet(o, new + "2 --params=Path=c.img,IOMode=ro", env=dict(o.env, X=o.file("c.img")))
        iet(o, new + "3 --params Type=nullio,Sectors=2048")
        iet(o, new + "4 --params Type=nullio")
        want = ("tid:1 name:%s\n"
                "\tlun:0 state:0 iotype:fileio iomode:wt blocks:4096 blocksize:512 path:%s\n"
                "\tlun:1 state:0 iotype:fileio iomode:wb blocks:256 blocksize:4096 path:%s\n"
                "\tlun:2 state:0 iotype:fileio iomode:ro blocks:2048 blocksize:512 path:%s\n"
                "\tlun:3 state:0 iotype:nullio iomode:wb blocks:2048 blocksize:512\n"
                "\tlun:4 state:0 iotype:nullio iomode:wb blocks:134217728 blocksize:512\n"
                % (ONE, path, o.path("b.img"), o.path("c.img")))
        assert volume(o) == want, volume(o)
        assert iet(o, "--op show --tid=1 --lun=3") == want.splitlines(True)[4]
        with open(o.path("proc", "volume")) as f:
            assert f.read() == want, "ietadm keeps the file that stands for /proc current"
        fails(o, new + "0 --params Path=" + path, 17, "already exists")
        fails(o, new + "9 --params Path=/none/such", 22, "/none/such")
        fails(o, new + "9 --params Path=%s,Type=blockio" % path, 22)
        for bad in ("Type=fileio", "Type=tape,Path=/x", "Path=%s,IOMode=rw" % path, "Sectors=9,Path=" + path,
                    "Sectors=no,Type=nullio", "Speed=9,Path=" + path, "Path"):
            fails(o, new + "9 --params " + bad, 22)
        fails(o, "--op new --tid=8 --lun=1 --params Path=" + path, 2)
        fails(o, "--op new --lun=1 --params Path=" + path, 22, "--tid")
        fails(o, "--op delete --tid=1 --lun=9", 2)
        fails(o, "--op show --tid=1 --lun=9", 2)
        admit(o, 1)
        s = Session(o.addr, ONE)
        s.login()
        inq = bytes(s.run_ua(scsi.inquiry(255, page=0x80), read=255).good().data)
        assert b"MySn" in inq, inq
        iet(o, "--op delete --tid=1 --lun=0")  # although a session has it
        assert "lun:0" not in volume(o)
        s.conn.close()
        out = o.run("ietadm", "--op", "update", "--tid=1", "--lun=1", "--params", "IOMode=ro")
        assert out.returncode == 234 and out.stderr.startswith("Unsupported.\n"), out


def test_sessions(settings):
    with Old(settings) as o:
        o.tgtd()
        for tid, name in ((1, ONE), (2, TWO)):
            iet(o, "--op new --tid=%d --params Name=%s" % (tid, name))
            admit(o, tid)
        a = Session(o.addr, ONE, initiator="iqn.2001-04.x:a", cid=3)
        a.login()
        b = Session(o.addr, ONE, initiator="iqn.2001-04.x:b")
        b.login()
        text = session(o)
        m = re.fullmatch("tid:2 name:%s\ntid:1 name:%s\n"
                         "\tsid:(\\d+) initiator:iqn.2001-04.x:b\n"
                         "\t\tcid:\\d+ ip:127.0.0.1 state:active hd:none dd:none\n"
                         "\tsid:(\\d+) initiator:iqn.2001-04.x:a\n"
                         "\t\tcid:3 ip:127.0.0.1 state:active hd:none dd:none\n"
                         % (re.escape(TWO), re.escape(ONE)), text)
        assert m, text
        sid_b, sid_a = m.groups()
        assert iet(o, "--op show --tid=1 --sid=%s --cid=3" % sid_a) == (
            "\t\tcid:3 ip:127.0.0.1 state:active hd:none dd:none\n")
        fails(o, "--op show --tid=1 --sid=%s --cid=9" % sid_a, 2)
        fails(o, "--op delete --tid=1 --sid=99999 --cid=0", 2)
        fails(o, "--op delete --tid=1 --sid=%s --cid=9" % sid_a, 2)
        fails(o, "--op delete --tid=1 --cid=3", 22)
        fails(o, "--op delete --sid=1", 22)
        iet(o, "--op delete --tid=1 --sid=%s --cid=3" % sid_a)
        a.conn.expect_close(5)
        iet(o, "--op delete --tid=1 --sid=" + sid_b)
        b.conn.expect_close(5)
        assert session(o).count("\n") == 2
        out = o.run("ietadm", "--op", "new", "--tid=1", "--sid=1", "--cid=1")
        assert out.returncode == 234 and out.stderr.startswith("Unsupported.\n"), out


def test_ipv6_address(settings):
    with Old(settings) as o:
        o.daemon("tgtd", "-f", "--iscsi", "portal=[::1]:%d" % o.port)
        iet(o, "--op new --tid=1 --params Name=" + ONE)
        admit(o, 1)
        s = Session(("::1", o.port), ONE)
        s.login()
        assert " ip:[0000:0000:0000:0000:0000:0000:0000:0001] state:active " in session(o), session(o)
        s.conn.close()


def may(o, user, secret, target=ONE):
    s = Session(o.addr, target)
    try:
        Chap(s, user, secret).login()
    except LoginFailed:
        return False
    s.conn.close()
    return True


def test_accounts(settings):
    """An account belongs to its target: the same name elsewhere may have another secret."""
    with Old(settings) as o:
        o.tgtd()
        for tid, name in ((1, ONE), (2, TWO)):
            iet(o, "--op new --tid=%d --params Name=%s" % (tid, name))
            admit(o, tid)
        user = "--op new --user --tid=%d --params=IncomingUser=%s,Password=%s"
        iet(o, user % (1, "joe", "secretsecret1"))
        iet(o, user % (2, "joe", "secretsecret2"))
        assert may(o, "joe", "secretsecret1") and not may(o, "joe", "secretsecret2")
        assert may(o, "joe", "secretsecret2", TWO) and not may(o, "joe", "secretsecret1", TWO)
        fails(o, user % (1, "joe", "secretsecret3"), 17)
        fails(o, user % (9, "joe", "secretsecret3"), 2)
        secret = o.write("secret", "secretsecret4\nmore\n")
        iet(o, "--op new --user --tid 1 --params OutgoingUser=us --password-file " + secret)
        fails(o, "--op new --user --tid 1 --params OutgoingUser=two,Password=secretsecret5", 17)
        assert iet(o, "--op show --user --tid=1") == "IncomingUser joe\nOutgoingUser us\n"
        assert iet(o, "--op show --user --tid=1 --params OutgoingUser=us") == "OutgoingUser us\n"
        fails(o, "--op show --user --tid=1 --params IncomingUser=us", 2)
        out = o.run("ietadm", "--op", "new", "--user", "--params", "IncomingUser=disco", "--password-file",
                    "-", input="secretsecret6\n")
        assert out.returncode == 0, out
        assert iet(o, "--op show --user") == iet(o, "--op show --user --tid=0") == "IncomingUser disco\n"
        iet(o, "--op delete --user --params=IncomingUser=disco")
        assert iet(o, "--op show --user") == ""
        iet(o, "--op delete --user --tid=1 --params=IncomingUser=joe")
        assert may(o, "joe", "secretsecret2", TWO)
        fails(o, "--op delete --user --tid=1 --params=IncomingUser=joe", 2)
        iet(o, "--op delete --user --tid=2 --params=IncomingUser=joe")
        iet(o, "--op delete --user --tid=1 --params=OutgoingUser=us")
        assert o.ok("tgtadm", "--op", "show", "--mode", "account") == "", "an account was left behind"
        for bad in ("IncomingUser=x", "Password=secretsecret1", "Name=x,Password=secretsecret1",
                    "IncomingUser=x,OutgoingUser=x,Password=secretsecret1"):
            out = o.run("ietadm", "--op", "new", "--user", "--tid=1", "--params", bad)
            assert out.returncode == 234 and "secretsecret" not in out.stderr, out
        out = o.run("ietadm", "--op", "update", "--user", "--tid=1", "--params", "IncomingUser=x")
        assert out.returncode == 234 and out.stderr.startswith("Unsupported.\n"), out


def test_command_line(settings):
    with Old(settings) as o:
        fails(o, "--op show --tid=1", 111, "no evtgtd answers")
        o.tgtd()
        for args, status, words in (([], 234, "You must specify the operation type\n"),
                                    (["--op", "burn"], 234, "You must specify the operation type\n"),
                                    (["--op", "show", "more"], 255, "unrecognized: more\n"),
                                    (["--foo"], 255, "Try `ietadm --help'"),
                                    (["--op", "show"], 234, "Invalid argument.\n"),
                                    (["--op", "new"], 234, "Invalid argument.\n")):
            out = o.run("ietadm", *args)
            assert out.returncode == status and words in out.stderr, (args, out)
        text = o.ok("ietadm", "--help")
        for word in ("--op", "--tid", "--sid", "--cid", "--lun", "--params", "--user", "--version",
                     "--help", "Path=", "ScsiId", "ScsiSN", "IOMode", "BlockSize", "Sectors"):
            assert word in text, word
        assert o.ok("ietadm", "-v").startswith("ietadm version ")
        iet(o, "-o new -t 4 -p Name=" + ONE)
        assert iet(o, "-o show -t 4 -s 0").startswith("InitialR2T=")
        iet(o, "--op delete")
        assert o.procs[0][0].wait(15) == 0


def test_proc_files(settings):
    """--write once; --follow for as long as it runs, without files when there is no daemon."""
    with Old(settings) as o:
        p = o.tgtd()
        where = o.path("made", "iet")
        o.ok("evtgtadm", "iet-proc", "--write", where)
        assert sorted(os.listdir(where)) == ["session", "volume"]
        follower = o.start("evtgtadm", "iet-proc", "--follow", where)
        o.ok("tgtadm", "--op", "new", "--mode", "target", "--tid", "3", "-T", ONE)

        def becomes(test):
            deadline = time.monotonic() + 20
            while not test():
                assert time.monotonic() < deadline, os.listdir(where)
                time.sleep(0.1)

        def text(name):
            try:
                with open(os.path.join(where, name)) as f:
                    return f.read()
            except FileNotFoundError:
                return None
        becomes(lambda: text("volume") == "tid:3 name:%s\n" % ONE)
        admit(o, 3)
        s = Session(o.addr, ONE)
        s.login()
        becomes(lambda: "\tsid:" in text("session"))
        s.conn.close()
        becomes(lambda: "\tsid:" not in text("session"))
        iet(o, "--op delete")
        assert p.wait(15) == 0
        becomes(lambda: os.listdir(where) == [])
        assert follower.poll() is None
        for args in ((), ("nonsense",), ("--write", "a", "b"), ("--foo",)):
            assert o.run("evtgtadm", "iet-proc", *args).returncode == 22, args
        assert "--follow" in o.ok("evtgtadm", "iet-proc", "--help")
