# SPDX-License-Identifier: BSD-2-Clause
"""What the admin tests share: a daemon for the length of a `with`, calls and their outcome."""

import atexit
import contextlib
import os
import shutil
import subprocess
import tempfile

from lib.evtgt import Daemon, IQN, Lun, Target

MIB = 1 << 20
NAME = IQN + "disk"


class Skip(Exception):
    pass


@contextlib.contextmanager
def daemon(settings, targets=None, start=True, **kw):
    """Runs a daemon (start: at once, else the caller does); at the end it must leave with status 0
    and without a sanitizer report."""
    if targets is None:
        targets = [Target("disk", [Lun("a.img", 4 * MIB, 1, kind="file")])]
    d = Daemon(targets, settings, **kw)
    try:
        if start:
            d.start()
        yield d
        d.stop()
    finally:
        d.cleanup()


def call(d, text, status=0, err=None):
    """`text`: options, blank separated. Returns stdout; err: the exact message on stderr."""
    out = d.adm(*text.split(), check=False)
    where = "%s: status %d, out %r, err %r" % (text, out.returncode, out.stdout, out.stderr)
    assert out.returncode == status, where
    if err is not None:
        assert out.stderr == "evtgtadm: %s\n" % err, where
    if status:
        assert out.stdout == "", where
        assert out.stderr, where
    return out.stdout


def file(d, name, size=MIB):
    path = os.path.join(d.dir, name)
    with open(path, "wb") as f:
        f.truncate(size)
    return path


def tgt_sockets():
    """tgtd's management sockets, for it and its tools, in a directory of this run's own."""
    if not os.environ.get("TGT_IPC_SOCKET"):
        top = tempfile.mkdtemp(prefix="evtgt-tgt-")
        atexit.register(shutil.rmtree, top, ignore_errors=True)
        os.environ["TGT_IPC_SOCKET"] = os.path.join(top, "socket")


def link(adm, directory, name):
    """evtgtadm by another name."""
    os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, name)
    if not os.path.islink(path):
        with contextlib.suppress(FileExistsError):  # by a call at the same time
            os.symlink(os.path.abspath(adm), path)
    return path


def program(d, name, *args, check=None, timeout=30, cwd=None, text=""):
    """Runs evtgtadm by another name, for the daemon `d`. check: the status wanted. text: what it
    reads. Returns what subprocess.run does."""
    env = dict(os.environ, EVTGT_SOCKET=d.sock)
    out = subprocess.run([link(d.set.adm, d.path("bin"), name)] + list(args), capture_output=True,
                         text=True, timeout=timeout, cwd=cwd, env=env, input=text)
    if check is not None:
        assert out.returncode == check, "%s %s: status %d, out %r, err %r" % (
            name, " ".join(args), out.returncode, out.stdout, out.stderr)
    return out
