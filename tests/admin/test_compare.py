# SPDX-License-Identifier: BSD-2-Clause
"""The printed forms, byte for byte beside those of tgt's own tgtadm on the same set-up."""

import os
import re
import shutil
import socket

from common import MIB, NAME, Skip, daemon, file
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
    os.environ["TGT_IPC_SOCKET"] = "/tmp/evtgt-test-tgt-%d" % os.getpid()
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
