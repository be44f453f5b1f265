# SPDX-License-Identifier: BSD-2-Clause
"""evtgtd under the names tgtd and ietd: their options, what is refused, two daemons on one machine."""

import os

from compat import Old
from lib.evtgt import free_port
from lib.chap import Chap
from lib.iscsi import Session

SHOW = ("tgtadm", "--lld", "iscsi", "--op", "show", "--mode")


def test_tgtd_starts_empty(settings):
    with Old(settings) as o:
        pid = o.path("pid")
        p = o.daemon("tgtd", "-f", "-d", "1", "-t", "16", "-p", pid, "--iscsi",
                     "portal=127.0.0.1:%d,nop_interval=7,nop_count=4" % o.port)
        with open(pid) as f:
            assert int(f.read()) == p.pid
        assert o.ok(*SHOW, "target") == ""
        assert o.ok("tgtadm", "--op", "show", "--mode", "portal") == "Portal: 127.0.0.1:%d,1\n" % o.port
        assert os.path.exists(o.path("run", "socket.0"))
        o.ok("tgtadm", "--op", "new", "--mode", "target", "--tid", "1", "-T", "iqn.2001-04.a:b")
        text = o.ok(*SHOW, "target", "--tid", "1")
        assert text.startswith("nop_interval=7\nnop_count=4\n"), text
        o.ok("tgtadm", "--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
        s = Session(o.addr, "iqn.2001-04.a:b")
        s.login()
        s.conn.close()
        o.ok("tgtadm", "--op", "delete", "--mode", "system")
        assert p.wait(15) == 0
        out = o.run(*SHOW, "system")
        assert out.returncode == 107 and "failed to send request hdr to tgt daemon" in out.stderr, out


def test_two_tgtds(settings):
    """-C N: each has its socket; TGT_IPC_SOCKET moves them all."""
    with Old(settings) as o:
        other = free_port()
        o.tgtd()
        o.daemon("tgtd", "-D", "-C", "3", "--iscsi", "portal=127.0.0.1:%d,portal=[::1]:%d" % (other, other),
                 state="state3", ready=("tgtadm", "-C", "3", "--op", "show", "--mode", "system"))
        assert sorted(os.listdir(o.path("run"))) == ["socket.0", "socket.3"]
        o.ok("tgtadm", "--control-port", "3", "--op", "new", "--mode", "target", "--tid", "9", "-T",
             "iqn.2001-04.a:nine")
        assert o.ok(*SHOW, "target") == ""
        assert o.ok("tgtadm", "-C", "3", "--op", "show", "--mode", "target").startswith("Target 9: ")
        assert o.ok("tgtadm", "-C3", "--op", "show", "--mode", "portal").count("Portal: ") == 2
        assert o.run("tgtadm", "-C", "4", "--op", "show", "--mode", "system").returncode == 107


def test_control_port_of_the_file(settings):
    """tgt-admin is about the daemon that targets.conf names, with all that it does; -C beside it is
    refused, as by tgt's."""
    target = "<target iqn.2001-04.a:%s>\n    backing-store %s\n</target>\n"
    show3 = ("tgtadm", "-C", "3", "--op", "show", "--mode", "target")
    with Old(settings) as o:
        other = free_port()
        o.tgtd()
        o.daemon("tgtd", "-D", "-C", "3", "--iscsi", "portal=127.0.0.1:%d" % other, state="state3",
                 ready=("tgtadm", "-C", "3", "--op", "show", "--mode", "system"))
        disc = "incomingdiscoveryuser disc secret-of-disc\n"
        conf = o.write("targets.conf", "control-port 3\n" + disc + target % ("a", o.file("a.img")))
        for how in (("-e",), ("--update", "ALL"), ("--update", "iqn.2001-04.a:a")):
            out = o.run("tgt-admin", *how, "-v", "-c", conf)
            assert out.returncode == 0 and "control-port" not in out.stderr, out
            assert "tgtadm -C 0" not in out.stdout, out
            assert o.ok(*SHOW, "target") == "" and "disc" not in o.ok(*SHOW, "account"), how
            assert "Target 1: iqn.2001-04.a:a\n" in o.ok(*show3), how
            assert "disc" in o.ok("tgtadm", "-C", "3", "--op", "show", "--mode", "account")
        # what the other daemon has is not the file's business, what this one has is
        o.ok("tgtadm", "--op", "new", "--mode", "target", "--tid", "7", "-T", "iqn.2001-04.a:seven")
        o.ok("tgtadm", "-C3", "--op", "new", "--mode", "target", "--tid", "8", "-T", "iqn.2001-04.a:eight")
        o.run("tgt-admin", "-e", "-c", conf)
        assert "seven" in o.ok(*SHOW, "target") and "eight" not in o.ok(*show3)
        # options: the same one, and another; 0 is as if there were none
        before = o.ok(*show3)
        for number in ("3", "4"):
            out = o.run("tgt-admin", "-C", number, "-e", "-c", conf)
            assert out.returncode == 1 and "Multiple control-port definitions are not allowed!" in out.stdout, out
            assert conf in out.stderr, out
        assert o.run("tgt-admin", "-C", "0", "-e", "-c", conf).returncode == 0
        assert o.ok(*show3) == before
        # nobody there
        conf = o.write("none.conf", "control-port 4\n" + target % ("b", o.file("b.img")))
        out = o.run("tgt-admin", "-e", "-c", conf)
        assert out.returncode == 107 and "socket.4" in out.stderr, out
        for wrong in ("x", "65536", "3\ncontrol-port 3"):
            conf = o.write("wrong.conf", "control-port %s\n" % wrong + target % ("b", o.file("b.img")))
            out = o.run("tgt-admin", "-e", "-c", conf)
            assert out.returncode == 22 and "wrong.conf:" in out.stderr and "control-port" in out.stderr, out
        assert "a:b" not in o.ok(*SHOW, "target") + o.ok(*show3)


def test_tgtd_refuses(settings):
    with Old(settings) as o:
        for args, words in ((("--iser", "port=3261"), "iSER"), (("--iscsi", "portal=nonsense"), "nonsense"),
                            (("--iscsi", "speed=9"), "speed"), (("--iscsi", "portal"), "portal=VALUE"),
                            (("--iscsi", "nop_count=x"), "nop_count"), (("-t", "0"), "nr_iothreads"),
                            (("-C", "x"), "control-port"), (("-d", "loud"), "debug"),
                            (("extra",), "extra"), (("--foo",), "foo")):
            out = o.run("tgtd", "-f", *args)
            assert out.returncode == 1 and words in out.stderr and "--help" in out.stderr, (args, out)
        out = o.ok("tgtd", "-h")
        for word in ("--foreground", "--nodaemonize", "--control-port", "--nr_iothreads", "--pid-file",
                     "--debug", "--iscsi", "--version", "--help"):
            assert word in out, word
        assert o.ok("tgtd", "-V").strip() == o.ok("tgtadm", "-V").strip()


def test_ietd_arguments(settings):
    with Old(settings) as o:
        for args, words in ((("-p", "0"), "port"), (("-a", "nowhere.example"), "nowhere"),
                            (("-d", "x"), "debug"), (("more",), "more"), (("--foo",), "foo"),
                            (("-u", "me"), "uid"), (("-g", "us"), "gid")):
            out = o.run("ietd", "-f", *args)
            assert out.returncode == 1 and words in out.stderr and "--help" in out.stderr, (args, out)
        out = o.ok("ietd", "-h")
        for word in ("--config", "--foreground", "--debug", "--uid", "--gid", "--address", "--port",
                     "--version", "--help"):
            assert word in out, word
        assert o.ok("ietd", "-v").startswith("ietd version ")
        out = o.run("ietd", "-f", "-c", o.path("none.conf"))
        assert out.returncode == 1 and "none.conf" in out.stderr, out


def test_ietd_serves(settings):
    """IET's own files: the configuration, and initiators.allow beside it."""
    iqn = "iqn.2001-04.com.example:one"
    with Old(settings) as o:
        path = o.file("a.img")
        conf = o.write("ietd.conf", "Target %s\n\tIncomingUser joe secretsecret1\n"
                       "\tLun 0 Path=%s,Type=fileio,IOMode=wb\n\tAlias one\n\tQueuedCommands 16\n"
                       % (iqn, path))
        o.write("initiators.allow", "ALL ALL\n")
        p = o.daemon("ietd", "-f", "-c", conf, "-a", "127.0.0.1", "-p", str(o.port), "-d", "1", "-u", "65534",
                     "-g", "65534", ready=("ietadm", "--op", "show", "--tid=1"))
        assert "QueuedCommands=16\n" in o.ok("ietadm", "--op", "show", "--tid=1")
        assert o.ok("tgtadm", "--op", "show", "--mode", "portal") == "Portal: 127.0.0.1:%d,1\n" % o.port
        assert o.ok("evtgtadm", "iet-proc", "volume") == (
            "tid:1 name:%s\n\tlun:0 state:0 iotype:fileio iomode:wb blocks:2048 blocksize:512 path:%s\n"
            % (iqn, path))
        s = Session(o.addr, iqn)
        Chap(s, "joe", "secretsecret1").login()
        s.conn.close()
        if os.geteuid() == 0:
            with open("/proc/%d/status" % p.pid) as f:
                assert "\nUid:\t65534\t65534\t65534\t65534\n" in f.read(), "-u has no effect"
        o.ok("ietadm", "--op", "delete")
        assert p.wait(15) == 0


# The long options of the originals; the second list takes a value.
ORIGINAL = {
    "tgtadm": ("debug help version force outgoing",
               "lld op mode tid sid cid lun name value backing-store bstype bsopts bsoflags blocksize targetname "
               "initiator-address initiator-name user password host params bus device-type control-port"),
    "tgtd": ("foreground nodaemonize version help", "control-port nr_iothreads pid-file debug iscsi"),
    "ietadm": ("user version help", "op tid sid cid lun params"),
    "ietd": ("foreground version help", "config debug uid gid address port"),
}
VALUES = {"op": "show", "iscsi": "nop_count=3", "params": "a=1"}


def test_abbreviations(settings):
    """What was no ambiguous abbreviation with the originals is none here, whatever options we add."""
    with Old(settings) as o:
        for program, (plain, valued) in ORIGINAL.items():
            plain, valued = plain.split(), valued.split()
            names = plain + valued + ["iser"] * (program == "tgtd")  # refused, but tgtd's
            args = []
            for name in [n for n in plain if n not in ("help", "version")] + valued:
                for n in range(1, len(name) + 1):
                    if [x for x in names if x.startswith(name[:n])] == [name] or n == len(name):
                        value = VALUES.get(name, "1")
                        args += ["--" + name[:n]] + ([value] if name in valued else [])
                        args += ["--%s=%s" % (name[:n], value)] if name in valued else []
            out = o.run(program, *args, "--help")
            assert out.returncode == 0 and "usage: " in out.stdout and out.stderr == "", (program, args, out)
            for name in ("help", "version"):
                for n in range(1, len(name)):
                    if [x for x in names if x.startswith(name[:n])] == [name]:
                        assert o.run(program, "--" + name[:n]).returncode == 0, (program, name[:n])
            out = o.run(program, "--x")
            assert out.returncode != 0, out


def test_abbreviations_mean_theirs(settings):
    with Old(settings) as o:
        o.tgtd()
        o.ok("tgtadm", "--op", "new", "--mode", "account", "--us", "joe", "--pass", "0123456789abcdef")
        assert "joe" in o.ok("tgtadm", "--op", "show", "--mode", "account")
        out = o.run("tgtadm", "--op", "show", "--mode", "portal", "--param", "portal=127.0.0.1:%d" % o.port)
        assert out.returncode == 22 and "option '-P' is not allowed" in out.stderr, out
        out = o.run("tgtadm", "--p", "x")
        assert out.returncode == 22 and "ambiguous" in out.stderr and "file" not in out.stderr, out
