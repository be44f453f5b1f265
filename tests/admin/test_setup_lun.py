# SPDX-License-Identifier: BSD-2-Clause
"""tgt-setup-lun's command line, beside Debian's: what it makes, prints and undoes."""

import concurrent.futures
import os
import re
import shutil
import subprocess

from common import MIB, Skip, call, daemon, file, program, tgt_sockets
from lib.evtgt import Lun, Target, Tgtd

# Calls in this order, and None or why they differ.
CALLS = [
    ("", "our own words, with the options that matter"),
    ("-n one", None),
    ("-n one -d {a}", None),
    ("-n one -d {a}", None),
    ("-n two -d {a} 127.0.0.1 10.0.0.1", None),
    ("-n iqn.2001-04.b:x -d {b} -b rdwr -B 512", None),
    ("-n three -d {b} -b nobs", "says what types there are"),
    ("-n four -d {b} -t iser", "asked once, before anything is made; says what there is"),
    ("-n five -d /nowhere", "looked at before anything is made"),
    ("-n six -d {dir}", "looked at before anything is made"),
    ("-n seven -d {b} 999.1.2.x", "no such address: refused and undone"),
    ("-d {b}", "a target wants a name"),
]


def shown(text):
    """{target name: (tid, LUNs, ACL)}"""
    out = {}
    for part in re.split(r"^(?=Target )", text, flags=re.M)[1:]:
        tid, name = re.match(r"Target (\d+): (\S+)\n", part).groups()
        acl = part.split("ACL information:\n")[1].split()
        out[name] = (int(tid), re.findall(r"LUN: (\d+)", part),
                     re.findall(r"store path: (\S+)", part), acl)
    return out


def test_like_tgt_setup_lun(settings):
    if not shutil.which("tgtd") or not shutil.which("tgt-setup-lun"):
        raise Skip("tgt is not installed")
    tgt_sockets()
    with daemon(settings, []) as d:
        tgt = Tgtd([], settings)
        names = {k: file(d, k + ".img", MIB) for k in "ab"}
        names["dir"] = d.dir
        try:
            try:
                tgt.start()
            except Exception as e:
                raise Skip("tgtd does not start: %s" % e)
            for text, why in CALLS:
                args = text.format(**names).split()
                ours = program(d, "tgt-setup-lun", *args)
                if why:  # and Debian's takes seconds for each
                    assert ours.returncode == 1 and ours.stdout, (text, ours)
                    continue
                theirs = subprocess.run(["tgt-setup-lun", "-C", tgt.control] + args,
                                        capture_output=True, text=True, timeout=50,
                                        stdin=subprocess.DEVNULL)
                us = (ours.returncode, ours.stdout)
                them = (theirs.returncode, re.sub("Control port: .*\n", "", theirs.stdout))
                assert us == them, "%s:\n%r\n-- tgt:\n%r %r" % (text, us, them, theirs.stderr)
            a, b = [shown(x.iscsi("--op", "show", "--mode", "target")) for x in (d, tgt)]
            assert len(a) == 3 and a == b, (a, b)
        finally:
            tgt.cleanup()


def test_undo(settings):
    with daemon(settings, []) as d:
        path = file(d, "b.img")
        for args in ("-b nobs", "no.address", "127.0.0.1 no.address"):
            out = program(d, "tgt-setup-lun", "-n", "x", "-d", path, *args.split(), check=1)
            assert "Deleting new target, tid=1\n" in out.stdout and out.stderr, out
            assert call(d, "--op show --mode target") == ""
        program(d, "tgt-setup-lun", "-n", "x", "-d", path, "10.0.0.1", "10.0.0.1", check=0)
        assert shown(call(d, "--op show --mode target")).popitem()[1][3] == ["10.0.0.1"]
        out = program(d, "tgt-setup-lun", "-n", "y", "-d", path, check=0)
        assert out.stdout.endswith("Accepting connections from all initiators\n"), out


def test_no_daemon(settings):
    with daemon(settings, []) as d:
        path = file(d, "b.img")
        out = program(d, "tgt-setup-lun", "-C", "4", "-n", "x", "-d", path, check=1)
        assert "tgtd is not running\nExiting...\n" in out.stdout, out
        program(d, "tgt-setup-lun", "-C", "x", "-n", "x", "-d", path, check=1)
        os.symlink(d.sock, d.sock + ".4")
        out = program(d, "tgt-setup-lun", "-C", "4", "-n", "x", "-d", path, check=0)
        assert out.stdout.startswith("Control port: 4\n"), out


def test_add_to_a_target(settings):
    """`yes` on standard input; the LUN alone is taken back when the rest fails."""
    with daemon(settings, [Target("disk", [Lun("a.img", MIB, 1, kind="file")])]) as d:
        paths = [file(d, n) for n in ("b.img", "c.img")]
        name = list(shown(call(d, "--op show --mode target")))[0]
        args = ["-n", name, "-d", paths[0]]
        program(d, "tgt-setup-lun", *args, text="no\n", check=1)
        out = program(d, "tgt-setup-lun", *args, text="yes\n", check=0)
        assert "target named %s already exists" % name in out.stdout
        now = shown(call(d, "--op show --mode target"))[name]
        assert now[1] == ["0", "1", "2"] and now[3] == ["ALL"], now
        out = program(d, "tgt-setup-lun", "-n", name, "-d", paths[1], "no.address", text="yes\n",
                      check=1)
        assert "Deleting new logical unit, tid=1 lun=3\n" in out.stdout, out
        assert shown(call(d, "--op show --mode target"))[name] == now


def test_at_the_same_time(settings):
    """Target ids that others take meanwhile."""
    with daemon(settings, []) as d:
        paths = [file(d, "%d.img" % i) for i in range(8)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: program(d, "tgt-setup-lun", "-n", "n%d" % i, "-d", paths[i],
                                            check=0), range(8)))
        got = shown(call(d, "--op show --mode target"))
        assert sorted(t[0] for t in got.values()) == list(range(1, 9)), got
        assert sorted(p for t in got.values() for p in t[2] if p != "None") == paths
