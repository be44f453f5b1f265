# SPDX-License-Identifier: BSD-2-Clause
"""tgtimg's command line, beside Debian's tgtimg: the same words and exit statuses, the same files."""

import os
import shutil
import stat
import subprocess
import tempfile

from common import MIB, Skip, daemon, link
from lib.evtgt import Lun, Target

NEW = "--op new --device-type disk --type disk "
# Each call, and None or why it differs; `differs` calls have their status tested below.
CALLS = [
    (NEW + "--size 2 --file a.raw", None),
    (NEW + "--size 1 --file a.raw", None),
    (NEW + "--size 3 --file b.raw --thin-provisioning", None),
    (NEW + "--size 1 --file c.raw --barcode X", None),
    ("--dev disk --op new --ty disk --si 1 --fi d.raw --thin", None),
    ("-o new -Y disk -t DISK -s 1 -f e.raw -b X", None),
    (NEW + "--size 0 --file f.raw", None),
    ("--op new --device-type disk --size 2 --file f.raw", None),
    ("--op new --device-type disk --type data --size 2 --file f.raw", None),
    ("--op new --device-type disk --type dvd+r --size 2 --file f.raw", None),
    (NEW + "--file f.raw", None),
    (NEW + "--size 2", None),
    ("--op show --device-type disk --file a.raw", None),
    ("--op show --device-type disk", None),
    ("--op new --device-type foo", None),
    ("--op show --device-type changer --file a.raw", None),
    ("--op foo --device-type disk", None),
    ("--op delete --device-type disk --file a.raw", None),
    ("--device-type disk --file a.raw", None),
    ("", None),
    (NEW + "--size 1 --file f.raw extra", None),
    (NEW + "--size 1 --file /nodir/f.raw", "the message names the file"),
    ("--foo", "no second line about an option (null)"),
    ("--op", "no second line about an option (null)"),
    ("--op new --device-type tape --type data --size 1 --barcode X --file t.img", "no tapes"),
    ("--op show --device-type tape --file t.img", "no tapes"),
    ("--op new --device-type cd --type dvd+r --file t.iso", "no CDs"),
    (NEW + "--size 1 --file g.raw -T", "-T is in the manual, and taken here"),
]
STATUS = {"no tapes": 22, "no CDs": 22, "the message names the file": 2,
          "no second line about an option (null)": 22, "-T is in the manual, and taken here": 0}


def files(d):
    """name: (size, mode, whether it has all its blocks)"""
    out = {}
    for n in os.listdir(d):
        st = os.lstat(os.path.join(d, n))
        if n.endswith(".raw"):
            out[n] = (st.st_size, stat.S_IMODE(st.st_mode), st.st_blocks * 512 >= st.st_size)
    return out


def test_like_tgtimg(settings):
    theirs = shutil.which("tgtimg")
    if not theirs:
        raise Skip("tgt is not installed")
    with tempfile.TemporaryDirectory() as base:
        dirs = [os.path.join(base, n) for n in ("ours", "theirs")]
        ours = link(settings.adm, os.path.join(base, "bin"), "tgtimg")
        for d in dirs:
            os.mkdir(d)
        for text, why in CALLS:
            got = [subprocess.run([p] + text.split(), cwd=d, capture_output=True, text=True,
                                  timeout=20, stdin=subprocess.DEVNULL)
                   for p, d in zip((ours, theirs), dirs)]
            a, b = [(x.returncode, x.stdout, x.stderr) for x in got]
            if why:
                assert a != b, "%s: no longer differs: %s" % (text, why)
                assert a[0] == STATUS[why], (text, a)
                assert a[0] == 0 or a[2], "%s: refused without a word" % text
            else:
                assert a == b, "%s:\n%r\n-- tgtimg:\n%r" % (text, a, b)
        a, b = [files(d) for d in dirs]
        assert a.pop("g.raw") == (MIB, 0o640, False)
        assert a == b and len(a) == 5, (a, b)


def test_help(settings):
    with tempfile.TemporaryDirectory() as base:
        out = subprocess.run([link(settings.adm, base, "tgtimg"), "--help"], capture_output=True,
                             text=True, timeout=10)
        assert out.returncode == 0 and "--thin-provisioning" in out.stdout, out


def test_wrong_sizes(settings):
    """tgtimg itself takes -1 for 16 EiB and 1G for 1 MiB."""
    with tempfile.TemporaryDirectory() as base:
        p = link(settings.adm, base, "tgtimg")
        for size in ("-1", "1G", "x", "", "8796093022208", "99999999999999999999"):
            out = subprocess.run([p] + NEW.split() + ["--size", size, "--file", "f"], cwd=base,
                                 capture_output=True, text=True, timeout=10)
            assert out.returncode == 22 and "--size wants" in out.stderr, (size, out)
        assert "f" not in os.listdir(base)


def test_store_of_a_daemon(settings):
    """A disk that is served is not emptied; neither is what is no regular file."""
    with daemon(settings, [Target("disk", [Lun("a.img", 4 * MIB, 1, kind="file")])]) as d:
        p = link(settings.adm, d.path("bin"), "tgtimg")
        os.mkfifo(d.path("fifo"))
        for name, words in (("a.img", "in use"), ("fifo", "regular file")):
            out = subprocess.run([p] + NEW.split() + ["--size", "1", "--file", d.path(name)],
                                 capture_output=True, text=True, timeout=10)
            assert out.returncode == 2 and words in out.stderr, out
        assert os.path.getsize(d.path("a.img")) == 4 * MIB


def test_no_room_loses_nothing(settings):
    """What there is no room for does not cost what was in the file."""
    with tempfile.TemporaryDirectory(prefix="evtgt-img-") as tmp:
        path = os.path.join(tmp, "a.raw")
        with open(path, "wb") as f:
            f.write(b"kept" * 1000)
        huge = NEW + "--size %d --file " % (1 << 42)
        for thin in ([], ["--thin-provisioning"]):
            out = subprocess.run([link(settings.adm, os.path.join(tmp, "bin"), "tgtimg"),
                                  *huge.split(), path, *thin], capture_output=True, text=True,
                                 timeout=20)
            if thin and out.returncode == 0:
                continue  # a file system that has files of this size
            assert out.returncode == 2 and "Failed creating file" in out.stderr, out
            with open(path, "rb") as f:
                assert f.read() == b"kept" * 1000
