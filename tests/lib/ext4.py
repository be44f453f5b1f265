# SPDX-License-Identifier: BSD-2-Clause
"""An ext4 file system of a test's own, in an image on a loop device.

    why = ext4.missing()          # None, or why there can be none here
    with ext4.Ext4(64 << 20) as fs: ... fs.path("a.img") ... fs.freeze() ... fs.thaw()"""

import os
import shutil
import subprocess
import tempfile


def missing():
    if os.geteuid() != 0:
        return "to mount an ext4 image needs root"
    for tool in ("mkfs.ext4", "fsfreeze", "mount"):
        if not shutil.which(tool, path=os.environ.get("PATH", "") + ":/sbin:/usr/sbin"):
            return "there is no " + tool
    try:
        Ext4(8 << 20).close()
    except OSError as e:
        return "cannot mount an ext4 image: %s" % e
    return None


def run(*args):
    p = subprocess.run(args, capture_output=True, text=True, timeout=60)
    if p.returncode:
        raise OSError("%s: %s" % (" ".join(args), p.stderr.strip()))


class Ext4:
    """Without reserved blocks: full is full for everybody."""

    def __init__(self, size):
        self.base = tempfile.mkdtemp(prefix="evtgt-ext4-")
        self.dir = os.path.join(self.base, "mnt")
        self.frozen = False
        try:
            os.chmod(self.base, 0o755)
            os.mkdir(self.dir)
            image = os.path.join(self.base, "image")
            with open(image, "wb") as f:
                f.truncate(size)
            run("mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", image)
            run("mount", "-o", "loop", image, self.dir)
        except OSError:
            shutil.rmtree(self.base, ignore_errors=True)
            raise

    def path(self, name):
        return os.path.join(self.dir, name)

    def freeze(self):
        run("fsfreeze", "-f", self.dir)
        self.frozen = True

    def thaw(self):
        if self.frozen:
            run("fsfreeze", "-u", self.dir)
        self.frozen = False

    def close(self):
        self.thaw()
        run("umount", self.dir)
        shutil.rmtree(self.base, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
