# SPDX-License-Identifier: BSD-2-Clause
"""The printed forms, byte for byte beside those of tgt's own tgtadm on the same set-up."""

import re
import shutil
import socket

from common import MIB, NAME, Skip, daemon, file, program, tgt_sockets
from lib.evtgt import Lun, Target, Tgtd
from lib.iscsi import Session

CALLS = [
    "--op new --mode target --tid 4 -T iqn.2001-04.a:four",
    "--op bind --mode target --tid 4 -I ALL",
    "--op bind --mode target --tid 4 -Q iqn.2001-04.x:y",
    "--op bind --mode target --tid 4 -I 192.168.0.0/24",
    "--op new --mode lu --tid 4 --lun 1 -b {a}",
    "--op new --mode lu --tid 4 --lun 5 -b {b} --bsoflags direct --blocksize 4096",
    "--op update --mode lu --tid 4 --lun 5 --params readonly=1,removable=1,scsi_sn=SN,scsi_id=ID",
    "--op update --mode lu --tid 4 --lun 1 --params scsi_sn=SN1,scsi_id=ID1",
    "--op update --mode target --tid 4 --name nop_interval --value 5",
    "--op update --mode target --tid 4 --name nop_count --value 2",
]
# Answers that must be the same on both, in words and status.
ERRORS = [
    "--op new --mode target --tid 4 -T iqn.2001-04.a:five",
    "--op new --mode target --tid 5 -T iqn.2001-04.a:four",
    "--op new --mode target --tid 0 -T iqn.2001-04.a:five",
    "--op new --mode target -T iqn.2001-04.a:five",
    "--op new --mode target --tid 5",
    "--op delete --mode target --tid 9",
    "--op show --mode target --tid 9",
    "--op new --mode lu --tid 4 --lun 1 -b {a}",
    "--op new --mode lu --tid 9 --lun 1 -b {a}",
    "--op delete --mode lu --tid 4 --lun 77",
    "--op delete --mode lu --tid 4",
    "--op update --mode lu --tid 4 --lun 77 --params online=0",
    "--op update --mode target --tid 9 --name nop_count --value 2",
    "--op unbind --mode target --tid 4 -I 9.9.9.9",
    "--op bind --mode target --tid 4 -I ALL",
    "--op bind --mode target --tid 9 -I ALL",
    "--op show --mode conn --tid 9",
    "--op delete --mode conn --tid 4 --sid 99 --cid 0",
    "--op show --mode logicalunit --tid 4 --lun 1",
    "--op foo --mode target",
    "--op show --mode foo",
    "--op show",
    "--mode target",
    "--op show --mode portal extra",
    "--foo",
    "--lld foo --op show --mode target",
    "--op update --mode system --name debug",
    "--op new --mode portal",
    "--op new --mode target --tid x -T a",
    "--op new --mode target --tid -1 -T a",
    "--op show --mode target --tid",
    "--op delete --mode target --tid 4 --lun 3",
    "--op update --mode target --tid 4 --name MaxBurstLength",
    "--op new --mode logicalunit --tid 0 --lun 1 -b {a}",
]


def same(text):
    """Without what differs by design: who we are, the default identity of LUN 0's target row."""
    return re.sub(r"^(tgtadm|evtgtadm)", "ADM", text, flags=re.M).replace("`evtgtadm", "`ADM") \
        .replace("`tgtadm", "`ADM")


def test_show_and_errors_like_tgtadm(settings):
    if not shutil.which("tgtd") or not shutil.which("tgtadm"):
        raise Skip("tgt is not installed")
    tgt_sockets()
    with daemon(settings, [Target("disk", [Lun("a.img", MIB, 1, kind="file")])]) as d:
        tgt = Tgtd([], settings)
        names = {k: file(tgt, k + ".img", n * MIB) for k, n in (("a", 5), ("b", 300))}
        try:
            try:
                tgt.start()
            except Exception as e:
                raise Skip("tgtd does not start: %s" % e)
            d.iscsi("--op", "delete", "--mode", "target", "--tid", "1", "--force")
            for text in CALLS:
                args = text.format(**names).split()
                d.iscsi(*args)
                tgt.iscsi(*args)
            show = ("--op", "show", "--mode", "target")
            assert d.iscsi(*show) == tgt.iscsi(*show)
            with Session(d.addr, "iqn.2001-04.a:four", initiator="iqn.2001-04.x:y") as ours, \
                    Session(tgt.addr, "iqn.2001-04.a:four", initiator="iqn.2001-04.x:y") as theirs:
                d.iscsi("--op", "bind", "--mode", "target", "--tid", "4", "-I", "127.0.0.1")
                tgt.iscsi("--op", "bind", "--mode", "target", "--tid", "4", "-I", "127.0.0.1")
                ours.login()
                theirs.login()
                for args in (show, ("--op", "show", "--mode", "conn", "--tid", "4")):
                    a, b = d.iscsi(*args), tgt.iscsi(*args)
                    fix = [re.sub(r"(I_T nexus|Session): \d+", r"\1: N", x) for x in (a, b)]
                    assert fix[0] == fix[1], "\n%s\n-- tgt:\n%s" % tuple(fix)
                    assert "iqn.2001-04.x:y" in a
            for text in ERRORS:
                args = text.format(**names).split()
                if "--lld" not in args:
                    args = ["--lld", "iscsi"] + args
                a, b = d.adm(*args, check=False), tgt.adm(*args, check=False)
                assert (a.returncode, same(a.stderr)) == (b.returncode, same(b.stderr)), \
                    "%s:\n%d %s-- tgt:\n%d %s" % (text, a.returncode, a.stderr, b.returncode, b.stderr)
        finally:
            tgt.cleanup()


MORE = "after tgt's words it says what would be right"
WORDS = "the same refusal in other words"
DONE = "tgt does not do it"
REFUSED = "tgt takes it, and nothing comes of it"
# A session of tgtadm from beginning to end: each call, and None when nothing may differ, else why.
SESSION = [
    ("--op show --mode system", None),
    ("--lld iscsi --op new --mode target --tid 1 -T iqn.2001-04.a:one", None),
    ("-L iscsi -o new -m tgt -t 2 -T iqn.2001-04.a:two", None),
    ("--lld iscsi --op new --mode target --tid=3 --targetname iqn.2001-04.a:three", None),
    ("--lld iscsi --op new --mode logicalunit --tid 1 --lun 1 --backing-store {a}", None),
    ("--op update --mode logicalunit --tid=1 --lun=1 --params scsi_id=ID,scsi_sn=SN,vendor_id=VEN,"
     "product_id=PROD,product_rev=1", None),
    ("--op new --mode lu --tid 2 --lun 2 -b {b} -Y disk -E rdwr -f direct -y 512", None),
    ("--op update --mode lu --tid 2 --lun 2 --param scsi_id=ID2,scsi_sn=SN2", None),
    ("--op bind --mode target --tid 1 --initiator-address=ALL", None),
    ("--op bind --mode target --tid 2 --initiator-name iqn.x", None),
    ("--op bind --mode target --tid 2 --initiator-name iqn.x", None),
    ("--op unbind --mode target --tid 2 --initiator-name iqn.x", None),
    ("--op unbind --mode target --tid 2 --initiator-name iqn.x", None),
    ("--op unbind --mode target --tid 2 -I ALL", None),
    ("--op unbind --mode target --tid 2", WORDS),
    ("--op bind --mode target --tid 1", WORDS),
    ("--op bind --mode target --tid 1 -B bus", REFUSED),
    ("--op bind --mode target --tid 1 -H 3", REFUSED),
    # accounts
    ("--op show --mode account", None),
    ("--op new --mode account", None),
    ("--op new --mode account --user bob", None),
    ("--op new --mode account --password x", None),
    ("--op new --mode account --user bob --password secret1234567", None),
    ("--op new --mode account --user=amy --password=secret7654321", None),
    ("--op new --mode account --user bob --password secret1234567", None),
    ("--op bind --mode account --user bob", None),
    ("--op bind --mode account --user bob", None),
    ("--op bind --mode account --user amy --outgoing", None),
    ("--op bind --mode account --user amy --outgoing", None),
    ("--op show --mode account", None),
    ("--op show --mode system", None),
    ("--op bind --mode account --user bob --tid 1", None),
    ("--op bind --mode account --user bob --tid 1", None),
    ("--op bind --mode account --user amy --tid 1 --outgoing", None),
    ("--op bind --mode account --user bob --tid 1 --outgoing", None),
    ("--op bind --mode account --user nobody --tid 1", None),
    ("--op bind --mode account --user bob --tid 77", None),
    ("--op bind --mode account --tid 1", None),
    ("--op unbind --mode account --user nobody --tid 1", None),
    ("--op unbind --mode account --user bob --tid 77", None),
    ("--op unbind --mode account --user bob --tid 2", None),
    ("--op unbind --mode account --user amy --tid 1", None),
    ("--op show --mode target", None),
    ("--op unbind --mode account --user amy --tid 1 --outgoing", None),
    ("--op delete --mode account --user nobody", None),
    ("--op update --mode account --user bob", None),
    ("--op show --mode account --tid 1", None),
    ("--op unbind --mode account --user bob", None),
    ("--op unbind --mode account --user bob", None),
    ("--op unbind --mode account --user amy --outgoing", None),
    ("--op delete --mode account --user bob", None),
    ("--op show --mode account", None),
    # the system
    ("--op update --mode system --name State --value offline", None),
    ("--op update --mode sys -n State -v foo", MORE),
    ("--op update --mode system --name State --value ready", None),
    ("--op update --mode system --name debug --value on", None),
    ("--op update --mode system --name debug --value foo", MORE),
    ("--op update --mode system --name debug --value off", None),
    ("--op update --mode system --name foo --value Off", WORDS),
    ("--op update --mode system --name iSNS --value Off", None),
    ("--op update --mode system --name iSNSServerIP --value 127.0.0.1", None),
    ("--op update --mode system --name iSNSServerPort --value 3206", None),
    ("--op update --mode system --name iSNSAccessControl --value Off", None),
    ("--op show --mode system", None),
    ("--op show --mode lld", None),
    ("--op start --mode lld", None),
    ("--op start --mode lld --lld iscsi", None),
    ("--op start --mode lld --lld foo", None),
    ("--op start --mode lld --lld iser", WORDS),
    ("--op stop --mode lld", None),
    ("--op stop --mode lld --lld foo", None),
    ("--op delete --mode lld", WORDS),
    ("--op stat --mode system", None),
    ("--op stat --mode target --tid 1", None),
    ("--op stat --mode target", None),
    ("--op stat --mode lu --tid 1 --lun 1", None),
    ("--op stat --mode session --tid 1 --sid 99", None),
    ("--op new --mode system", None),
    ("--op bind --mode system", None),
    ("--op delete --mode system --tid 1", WORDS),
    # targets
    ("--op update --mode target --tid 2 -n state -v foo", MORE),
    ("--op update --mode target --tid 2 -n state -v offline", None),
    ("--op show --mode target", None),
    ("--op update --mode target --tid 2 -n state -v ready", None),
    ("--op update --mode target --tid 2 -n RedirectAddress -v 192.0.2.1", None),
    ("--op update --mode target --tid 2 -n RedirectPort -v 3260", None),
    ("--op update --mode target --tid 2 -n RedirectReason -v Temporary", None),
    ("--op update --mode target --tid 2 -n RedirectReason -v foo", MORE),
    ("--op update --mode target --tid 1 -n MaxQueueCmd -v 12", None),
    ("--op update --mode target --tid 1 -n MaxQueueCmd -v 0", MORE),
    ("--op update --mode target --tid 1 -n nop_interval -v x", REFUSED),
    ("--op update --mode target --tid 1 -n MaxRecvDataSegmentLength -v 4096", None),
    ("--op update --mode target --tid 1 -n foo -v No", WORDS),
    ("--op update --mode target --tid 1 -n InitialR2T -v maybe", MORE),
    ("--op update --mode target --tid 1 -n state", None),
    ("--op update --mode target --tid 2 --params MaxBurstLength=65536", DONE),
    # logical units
    ("--op new --mode lu --tid 1 --lun 1 -b {b}", None),
    ("--op new --mode lu --tid 1 --lun 2 -b /nowhere", MORE),
    ("--op new --mode lu --tid 1 --lun 2 -b {b} --bstype foo", MORE),
    ("--op new --mode lu --tid 1 --lun 2 -b {b} --device-type foo", None),
    ("--op new --mode lu --tid 1 --lun 3 -b {b} --bsoflags foo", MORE),
    ("--op new --mode lu --tid 1 -b {b}", None),
    ("--op new --mode lu --lun 3 -b {b}", None),
    ("--op new --mode lu --tid 1 --lun 3 -b {b} -T x", None),
    ("--op update --mode lu --tid 1 --lun 1 --params foo=1", MORE),
    ("--op update --mode lu --tid 1 --lun 1 --params readonly=1", None),
    ("--op update --mode lu --tid 1 --lun 1 --params online=0", None),
    ("--op show --mode target", None),
    ("--op update --mode lu --tid 1 --lun 1 --params online=1", None),
    ("--op update --mode lu --tid 1 --lun 1", None),
    ("--op update --mode lu --tid 1 --lun 9 --params online=1", None),
    ("--op delete --mode lu --tid 1 --lun 9", None),
    ("--op delete --mode lu --tid 9 --lun 1", "it is the target that is not there"),
    ("--op bind --mode lu --tid 1 --lun 1", None),
    # portals
    ("--op new --mode portal --param foo=1", WORDS),
    ("--op update --mode portal", None),
    ("--op show --mode portal --tid 1", WORDS),
    ("--op delete --mode portal --param portal=127.0.0.9:1", MORE),
    # sessions
    ("--op show --mode conn --tid 3", None),
    ("--op show --mode conn --tid 3 --sid 99", None),
    ("--op show --mode conn --tid 77", None),
    ("--op delete --mode conn --tid 3", None),
    ("--op delete --mode conn --tid 3 --sid 99", None),
    ("--op delete --mode conn --tid 77 --sid 1 --cid 0", None),
    ("--op delete --mode conn", WORDS),
    ("--op update --mode conn --tid 1", WORDS),
    ("--op show --mode session --tid 3", DONE),
    ("--op delete --mode session --tid 3 --sid 99", WORDS),
    ("--op bind --mode target --tid 3 -I ALL", None),
    "login",
    ("--op show --mode conn --tid 3", None),
    ("--op show --mode conn", DONE),
    ("--op stat --mode system", "no line for the controller, which does no I/O"),
    ("--op stat --mode target --tid 3", "no line for the controller, which does no I/O"),
    ("--op stat --mode target --tid 1", None),
    ("--op show --mode target", None),
    ("--op delete --mode target --tid 3", None),
    ("--op delete --mode target --tid 3 --force", None),
    ("--op bind --mode target --tid 2 -I 10.0.0.0/33", REFUSED),
    ("--op delete --mode lu --tid 2 --lun 2", None),
    ("--op delete --mode target --tid 2", None),
    ("--op show --mode target", None),
    ("--op delete --mode system", "tgt wants all targets gone before, without a word of it"),
]

# Drivers, backing stores and device types that only one of the two has.
ONLY_ONE = re.compile(r"^    (iser: .*|sheepdog|bsg|sg|ssc|smc .*|mmc .*|cd/dvd|osd|changer|tape|"
                      r"passthrough|rbd.*|glfs.*|fileio .*|blockio .*|zram)\n", re.M)


def judge(text, why, us, them):
    """Each (status, stdout, stderr)."""
    told = "%s:\n%r\n-- tgt:\n%r" % (text, us, them)
    if why is None:
        assert us == them, told
        return
    assert us != them, "no longer differs: " + told
    if why in (MORE, WORDS):
        assert us[0] == them[0] != 0 and us[2], told
        assert why == WORDS or us[2].startswith(them[2].rstrip("\n")), told
    elif why == REFUSED:
        assert us[0] == 22 and us[2] and them[0] == 0, told
    elif why == DONE:
        assert us[0] == 0 and them[0] == 22, told


def test_session_of_tgtadm(settings):
    if not shutil.which("tgtd") or not shutil.which("tgtadm"):
        raise Skip("tgt is not installed")
    tgt_sockets()
    sessions = []
    with daemon(settings, []) as d:
        tgt = Tgtd([], settings)
        try:
            try:
                tgt.start()
            except Exception as e:
                raise Skip("tgtd does not start: %s" % e)
            paths = {x: {k: file(x, k + ".img", MIB) for k in "ab"} for x in (d, tgt)}
            for step in SESSION:
                if step == "login":
                    sessions = [Session(x.addr, "iqn.2001-04.a:three") for x in (d, tgt)]
                    for s in sessions:
                        s.login()
                    continue
                got = []
                for x in (d, tgt):
                    args = step[0].format(**paths[x]).split()
                    out = program(d, "tgtadm", *args) if x is d else x.adm(*args, check=False)
                    text = out.stdout.replace(x.dir, "DIR")
                    text = ONLY_ONE.sub("", re.sub(r"(I_T nexus|Session): \d+", r"\1: N", text))
                    text = re.sub(r"^( +\d+ +\d+) +\d+(?= )", r"\1 N", text, flags=re.M)  # stat: sid
                    got.append((out.returncode, text, out.stderr))
                judge(*step, *got)
            assert d.wait(10) == 0
        finally:
            for s in sessions:
                s.conn.close()
            tgt.cleanup()
