# SPDX-License-Identifier: BSD-2-Clause
"""make install-compat: evtgtadm under the names of tgt's programs, without touching tgt's files."""

import os
import re
import subprocess
import tempfile

from common import Skip

PARTS = ("install-sbinPROGRAMS", "install-dist_pagesDATA", "install-dist_pages5DATA", "install-nodist_compDATA", "install-man8")
HERE = os.path.dirname(os.path.abspath(__file__))


def make(settings, dest, *args, status=0):
    build = os.path.dirname(os.path.abspath(settings.daemon))
    if not os.path.exists(os.path.join(build, "Makefile")):
        raise Skip("no makefile beside the programs")
    out = subprocess.run(["make", "-s", "-C", build, "DESTDIR=" + dest] + list(args),
                         capture_output=True, text=True, timeout=60)
    assert (out.returncode == 0) == (status == 0), out
    return out


def links(top):
    """path below top: what the link holds"""
    found = {}
    for d, dirs, names in os.walk(top):
        for n in names + dirs:
            p = os.path.join(d, n)
            if os.path.islink(p):
                found["/" + os.path.relpath(p, top)] = os.readlink(p)
    return found


def programs():
    """The names that evtgtadm and evtgtd answer to, from their tables."""
    names = []
    for path in ("tools/evtgtadm.c", "target/main_args.c"):
        with open(os.path.join(HERE, "../..", path), encoding="utf-8") as f:
            rows = re.search(r"programs\[\] = \{(.*?)\};", f.read(), re.S).group(1)
        names += re.findall(r'\{"([\w-]+)",', rows)
    return names


def test_install_and_uninstall(settings):
    with tempfile.TemporaryDirectory() as dest:
        out = make(settings, dest, "install-compat", status=2)
        assert "run make install first" in out.stderr and not links(dest), out
        make(settings, dest, *PARTS)
        before = links(dest)
        make(settings, dest, "install-compat")
        made = links(dest)
        comps = [p for p in made if p.split("/")[-2] in ("completions", "site-functions", "vendor_completions.d")]
        assert len(comps) == 3 * 5 and all(os.path.getsize(dest + made[p]) for p in comps), comps
        names = sorted(os.path.basename(p) for p in made if p not in comps)
        assert names == sorted(programs() + [p + ".8" for p in programs()]
                               + ["targets.conf.5", "ietd.conf.5"]), names
        for path, target in made.items():
            assert target.startswith("/") and dest not in target, (path, target)
            assert os.path.exists(dest + target), "%s leads nowhere" % path
            if path.endswith((".8", ".5")) or path in comps:
                continue
            # by the name it was called with: the link's own target is another root's
            with tempfile.TemporaryDirectory() as d:
                p = os.path.join(d, os.path.basename(path))
                os.symlink(dest + target, p)
                run = subprocess.run([p, "--help"], capture_output=True, text=True, timeout=10)
                assert os.path.basename(path) in run.stdout + run.stderr, run
        make(settings, dest, "install-compat")
        assert links(dest) == made
        make(settings, dest, "uninstall-compat")
        assert links(dest) == before


def test_what_is_there_stays(settings):
    for kind in ("file", "link", "dangling"):
        with tempfile.TemporaryDirectory() as dest:
            make(settings, dest, *PARTS)
            sbin = next(d for d, _, n in os.walk(dest) if "evtgtadm" in n)
            path = os.path.join(sbin, "tgtimg")
            if kind == "file":
                with open(path, "w", encoding="utf-8") as f:
                    f.write("tgt's own")
            else:
                os.symlink("/bin/true" if kind == "link" else "/nothing", path)
            before = links(dest)
            out = make(settings, dest, "install-compat", status=2)
            assert "tgtimg is there and not ours; nothing was done" in out.stderr, out
            assert links(dest) == before, "links were made beside it"
            make(settings, dest, "uninstall-compat")
            assert os.path.lexists(path) and links(dest) == before


def test_other_places(settings):
    with tempfile.TemporaryDirectory() as dest:
        make(settings, dest, *PARTS)
        make(settings, dest, "compatdir=/opt/tgt/bin", "compatmandir=/opt/tgt/man8", "install-compat")
        where = {os.path.dirname(p) for p in links(dest)}
        assert {p for p in where if "/share/" not in p} == {"/opt/tgt/bin", "/opt/tgt/man8", "/opt/tgt/man5"}


def test_pages_name_each_option(settings):
    """And no other: the tables of long options beside the manual pages."""
    for code, page in (("tools/tgt_admin.c", "docs/tgt-admin.8"), ("tools/tgtimg.c", "docs/tgtimg.8")):
        with open(os.path.join(HERE, "../..", code), encoding="utf-8") as f:
            known = set(re.findall(r'^    \{"([\w-]+)", (?:no|required)_argument', f.read(), re.M))
        with open(os.path.join(HERE, "../..", page), encoding="utf-8") as f:
            items = " ".join(re.findall(r"^\.It Fl (.*)$", f.read(), re.M))
        told = set(re.findall(r"(?:^|[ ,])-([\w-]{2,})", items))
        assert known and told == known, (page, told ^ known)
