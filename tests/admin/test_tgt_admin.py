# SPDX-License-Identifier: BSD-2-Clause
"""tgt-admin's command line: what needs no configuration, its words and exit statuses."""

import os
import re
import subprocess

from common import MIB, NAME, call, daemon, program
from lib.evtgt import IQN, Lun, Target
from lib.iscsi import LoginFailed, Session

TWO = [Target("disk", [Lun("a.img", MIB, 1, kind="file")]),
       Target("other", [Lun("b.img", MIB, 1, kind="file")])]


def admin(d, text, status=0, **kw):
    return program(d, "tgt-admin", *text.split(), check=status, **kw)


def names(d):
    return re.findall(r"^Target \d+: (\S+)$", call(d, "--op show --mode target"), re.M)


def refused(d, name):
    try:
        Session(d.addr, name).login()
    except LoginFailed:
        return True
    return False


def test_command_line(settings):
    with daemon(settings) as d:
        for text in ("", "-h", "--help", "--he"):
            out = admin(d, text)
            for option in ("execute", "delete", "offline", "ready", "update", "show", "control-port",
                           "conf", "ignore-errors", "force", "pretend", "dump", "verbose", "help"):
                assert "--" + option in out.stdout, (text, option)
        for action in ("delete", "offline", "ready", "update"):
            assert "--%s tid=4" % action in admin(d, "--%s help" % action).stdout
        assert admin(d, "-f", 1).stdout == "No action specified.\n"
        assert "Unknown option: foo" in admin(d, "--foo", 1).stderr
        assert "Option delete requires an argument" in admin(d, "--delete", 1).stderr
        assert "Unknown argument: x" in admin(d, "-s x", 1).stderr
        assert admin(d, "-e -c /nowhere/x", 2).stderr == \
            "Config file /nowhere/x not found. Exiting...\n"
        admin(d, "-C x -s", 22)
        for text in ("-s", "--show", "--sh", "-show", "-C 0 -s"):
            assert admin(d, text).stdout == call(d, "--op show --mode target"), text
        assert admin(d, "-p -s").stdout == "tgtadm -C 0 --op show --mode target\n"


def test_no_daemon(settings):
    with daemon(settings) as d:
        out = admin(d, "-C 9 -s", 107)
        assert out.stdout == "Command:\n\ttgtadm -C 9 --op show --mode target\n" \
            "exited with code: 107.\n"
        assert "failed to send request hdr to tgt daemon, Transport endpoint is not connected" \
            in out.stderr and d.sock + ".9" in out.stderr, out
        for text in ("--delete ALL", "--offline ALL", "--dump", "--update ALL -c /dev/null",
                     "-e -c /dev/null"):
            admin(d, "-C 9 " + text, 107)
        os.symlink(d.sock, d.sock + ".9")
        assert admin(d, "-C 9 -s").stdout == call(d, "--op show --mode target")
        os.symlink(d.sock, d.path("base.0"))
        env = {"TGT_IPC_SOCKET": d.path("base"), "EVTGT_SOCKET": ""}
        out = subprocess.run([d.path("bin/tgt-admin"), "-s"], capture_output=True, text=True,
                             timeout=10, env=env)
        assert out.returncode == 0 and NAME in out.stdout, out


def test_delete(settings):
    with daemon(settings, TWO) as d:
        out = admin(d, "--delete iqn.x", 22)
        assert "can't find the target" in out.stderr and not out.stdout, out
        assert admin(d, "-v --delete tid=9", 22).stdout == "# Target with tid 9 does not exist!\n"
        assert admin(d, "-p --delete iqn.x", 22).stdout == \
            "# Target with name iqn.x does not exist!\n"
        wanted = "# Removing target: %s\ntgtadm -C 0 --mode target --op delete --tid=1\n\n" % NAME
        assert admin(d, "-p --delete tid=1").stdout == wanted
        assert len(names(d)) == 2, "--pretend did it"
        assert admin(d, "-v --delete tid=1").stdout == wanted
        assert names(d) == [IQN + "other"]
        assert admin(d, "--delete ALL").stdout == ""
        assert names(d) == []


def test_delete_in_use(settings):
    with daemon(settings, TWO) as d:
        s = Session(d.addr, NAME, initiator="iqn.2001-04.x:user")
        s.login()
        words = "# Target with tid 1 (%s) is in use, it won't be deleted.\n" % NAME
        for which in (NAME, "tid=1"):
            out = admin(d, "--delete " + which, 22)
            assert out.stdout == "" and "iqn.2001-04.x:user" in out.stderr, out
            assert admin(d, "-v --delete " + which, 22).stdout == words
            assert admin(d, "-p --delete " + which, 22).stdout == words
        s.nop()
        out = admin(d, "-v --delete ALL", 22)
        assert words in out.stdout and "Removing target: %sother" % IQN in out.stdout, out
        assert names(d) == [NAME]
        out = admin(d, "-f -v --delete " + NAME)
        assert "--op delete --force --tid=1" in out.stdout, out
        s.conn.expect_close(5)
        assert names(d) == []
        s.conn.close()


def test_offline_and_ready(settings):
    with daemon(settings, TWO) as d:
        line = "tgtadm -C 0 --op update --mode target --tid=%d -n state -v %s\n"
        assert admin(d, "-v --offline ALL").stdout == line % (1, "offline") + line % (2, "offline")
        assert refused(d, NAME) and refused(d, IQN + "other")
        assert admin(d, "--ready " + NAME.upper()).stdout == ""
        assert not refused(d, NAME) and refused(d, IQN + "other")
        assert admin(d, "-p --ready tid=2").stdout == line % (2, "ready")
        assert refused(d, IQN + "other")
        admin(d, "--ready tid=2")
        assert not refused(d, IQN + "other")
        out = admin(d, "--offline tid=7", 22)
        assert out.stdout == "Command:\n\t%sexited with code: 22.\n" % (line % (7, "offline"))
        assert "can't find the target" in out.stderr
        admin(d, "--offline tid=x", 22)
        for action in ("offline", "ready"):
            out = admin(d, "--%s nobody" % action, 1)
            assert out.stdout == "There is no target with name \"nobody\", can't %s it!\n" % action
