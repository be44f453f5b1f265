# SPDX-License-Identifier: BSD-2-Clause
"""IET's access files in use: what they say counts for the next login, also after they were edited,
also for targets that are made later; what does not hold leaves the rules as they were."""

import os
import stat
import time

from compat import Old
from lib.iscsi import LoginFailed, Session

ONE = "iqn.2001-04.com.example:one"
TWO = "iqn.2001-04.com.example:two"
ME, OTHER = "iqn.2001-04.com.example:me", "iqn.2001-04.com.example:other"


def admitted(o, name, initiator=ME):
    s = Session(o.addr, name, initiator=initiator)
    try:
        s.login()
        s.logout()
        return True
    except LoginFailed:
        return False
    finally:
        s.conn.close()


def until(what, why):
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline, why
        time.sleep(0.5)


def serve(o, files, *targets):
    """ietd with these access files beside its configuration, closed to everybody but who starts it."""
    os.chmod(o.dir, stat.S_IRWXU)
    for name, text in files.items():
        o.write(name, text)
    conf = o.write("ietd.conf", "".join("Target %s\n\tLun 0 Path=%s,Type=fileio\n"
                                        % (t, o.file("disk%d" % i)) for i, t in enumerate(targets)))
    o.daemon("ietd", "-f", "-c", conf, "-a", "127.0.0.1", "-p", str(o.port), "-d", "1",
             ready=("ietadm", "--op", "show", "--tid=1"))


def log(o):
    with open(o.procs[0][1]) as f:
        return f.read()


def logged(o, what, times=1):
    until(lambda: log(o).count(what) == times, "not %d times %s" % (times, what))


def test_edited(settings):
    with Old(settings) as o:
        serve(o, {"initiators.allow": "%s %s\nALL ALL\n" % (ONE, ME)}, ONE)
        assert admitted(o, ONE) and not admitted(o, ONE, OTHER)
        for text in ("acl list", "target show"):
            out = o.ok("evtgtadm", *text.split(), "one")
            assert "access files admit" in out and o.path("initiators.allow") in out, out
            assert "nobody" not in out, out
        assert "admits nobody" not in o.ok("evtgtadm", "status")
        o.ok("evtgtadm", "acl", "allow", "one", "127.0.0.0/8")
        assert "fits both" in o.ok("evtgtadm", "acl", "list", "one")
        o.ok("evtgtadm", "acl", "deny", "one", "127.0.0.0/8")
        # a target that nobody configured is judged by them, too
        o.ok("ietadm", "--op", "new", "--tid=2", "--params", "Name=" + TWO)
        assert admitted(o, TWO, OTHER)
        # written in place, and put in its place
        o.write("initiators.allow", "%s %s\n" % (ONE, OTHER))
        until(lambda: admitted(o, ONE, OTHER), "what was edited does not count")
        assert not admitted(o, ONE) and not admitted(o, TWO, OTHER)
        logged(o, "access-file-read path=%s lines=1" % o.path("initiators.allow"))
        o.write("new", "# nothing but a\n%s 127.0.0.0/8\n" % ONE)
        os.rename(o.path("new"), o.path("initiators.allow"))
        until(lambda: admitted(o, ONE), "what was put in its place does not count")
        # what does not hold: told once with its place, and nothing is changed
        o.write("initiators.allow", "# none\n\nALL iqn.[\n")
        logged(o, "access-file-refused")
        assert "access-file at=%s:3:1" % o.path("initiators.allow") in log(o)
        assert admitted(o, ONE) and not admitted(o, TWO)
        o.write("initiators.allow", "ALL ALL\n")
        until(lambda: admitted(o, TWO), "mended, and it does not count")
        # gone: nothing is opened or closed by that
        os.unlink(o.path("initiators.allow"))
        logged(o, "access-file-unreadable")
        assert admitted(o, ONE) and admitted(o, TWO)
        o.write("initiators.allow", "%s ALL\n" % ONE)
        until(lambda: not admitted(o, TWO), "it came back and does not count")
        assert admitted(o, ONE)
        logged(o, "access-file-readable")
        logged(o, "access-file-refused")
        # a comment more is nothing new
        before = log(o).count("access-file-read ")
        o.write("initiators.allow", "# a comment\n%s ALL\n" % ONE)
        time.sleep(5)
        assert log(o).count("access-file-read ") == before


def test_deny_and_place(settings):
    with Old(settings) as o:
        serve(o, {"initiators.allow": "%s 10.1.1.1\n" % ONE, "targets.allow": "ALL ALL\n",
                  "initiators.deny": "%s ^iqn\\..*other$\n" % ONE}, ONE, TWO)
        assert admitted(o, ONE) and not admitted(o, ONE, OTHER) and admitted(o, TWO, OTHER)
        o.write("initiators.deny", "ALL ALL\n")
        until(lambda: not admitted(o, ONE), "initiators.deny does not count")
        assert not admitted(o, TWO)
        o.write("initiators.allow", "%s 10.1.1.1, 127.0.0.1\n" % ONE)
        until(lambda: admitted(o, ONE, OTHER), "initiators.allow does not count")
        assert not admitted(o, TWO)
        o.write("targets.allow", "%s 192.0.2.1\nALL ALL\n" % ONE)
        until(lambda: not admitted(o, ONE), "targets.allow does not count")
