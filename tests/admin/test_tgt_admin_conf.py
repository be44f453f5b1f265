# SPDX-License-Identifier: BSD-2-Clause
"""tgt-admin --execute and --update: configurations of tgt, beside Debian's tgt-admin and alone."""

import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import subprocess
import time

import common
from common import MIB, Skip, call, file, program, tgt_sockets
from lib import scsi
from lib.evtgt import Tgtd
from lib.iscsi import Session

ONE, TWO = "iqn.2001-04.a:one", "iqn.2001-04.a:two"
SECRETS = ("incoming-secret", "outgoing-secret", "discovery-secret")

FULL = """\
default-driver iscsi
incomingdiscoveryuser disc discovery-secret
<target iqn.2001-04.a:one>
    backing-store {a}
    MaxBurstLength 65536
    incominguser bob incoming-secret
    outgoinguser out outgoing-secret
    initiator-address 127.0.0.1
    initiator-address 10.0.0.0/8
    initiator-name iqn.2001-04.x:y
    write-cache off
</target>
<target iqn.2001-04.a:two>
    <backing-store {b}>
        lun 5
        scsi_sn SN5
        block-size 4096
        bsoflags direct
        bs-type rdwr
    </backing-store>
</target>
"""
PLAIN = """\
default-driver iscsi
<target iqn.2001-04.a:one>
    backing-store {a}
    scsi_id ID1
    scsi_sn SN1
</target>
<target iqn.2001-04.a:two>
    backing-store {b}
    scsi_id ID2
    scsi_sn SN2
    readonly 1
</target>
"""
# as PLAIN, with another disk behind one
OTHER = PLAIN.replace("{a}", "{c}")


@contextlib.contextmanager
def daemon(settings, targets):
    with common.daemon(settings, targets) as d:
        if "unknown mode" in program(d, "tgt-admin", "--dump").stderr:
            raise Skip("the daemon has no mode config")
        yield d


def write(d, name, text, **paths):
    path = d.path(name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.format(**paths))
    os.chmod(path, 0o600)
    return path


def admin(d, text, status=0):
    return program(d, "tgt-admin", *text.split(), check=status)


def names(d):
    return re.findall(r"^Target \d+: (\S+)$", call(d, "--op show --mode target"), re.M)


def stores(d):
    return dict(re.findall(r"^Target \d+: (\S+)$.*?Backing store path: (/\S+)$",
                           call(d, "--op show --mode target"), re.M | re.S))


def files(d):
    return {k: file(d, k + ".img", MIB) for k in "abc"}


# --- beside Debian's -------------------------------------------------------------------------------

STATUS = "the wish is not met: the exit status says so"
# In this order: the call, and None or why it differs. What differs has status and output of its own
# in the tests below.
SESSION_FREE = [
    ("-p -e -c FULL", None),
    ("-p --update ALL -c FULL", "tgt-admin says of each that it does not exist, and then makes it"),
    ("-v -e -c PLAIN", None),
    ("-s", None),
    ("-v -e -c PLAIN", None),
    ("--update ONE -c PLAIN", None),
    ("--update iqn.2001-04.a:none -c PLAIN", None),
    ("--update tid=9 -c PLAIN", None),
    ("-v --update ALL -c PLAIN", "not deleted and made again: only what differs is touched"),
    ("-v --offline tid=1", None),
    ("-v --offline ALL", None),
    ("-v --ready ONE", "the line has no name beside the tid"),
    ("--ready ALL", None),
    ("--offline nobody", None),
    ("--ready nobody", None),
    ("--offline tid=9", None),
    ("-v --delete iqn.2001-04.a:none", STATUS),
    ("-v --delete tid=9", STATUS),
    ("-p --delete tid=2", None),
    ("-v --delete TWO", None),
    ("-v -e -c ONLY", None),
    ("-v --update ALL -c /dev/null", None),
    ("-e -c /nowhere/x", None),
    ("-f", STATUS),
]
IN_USE = [
    ("-v -e -c PLAIN", None),
    "login",
    ("--update ONE -c OTHER", STATUS),
    ("-v --update ONE -c OTHER", STATUS),
    ("-v --update tid=1 -c OTHER", STATUS),
    ("-v -e -c PLAIN", None),
    ("-v --delete ONE", STATUS),
    ("-p --delete tid=1", STATUS),
    ("--delete ALL", STATUS),
    ("-s", None),
    ("-v --update ALL -c /dev/null", STATUS),
    ("-v -f --delete ONE", "one request, not several"),
    ("-s", None),
]


def same(text):
    """Without what differs by design: the control port, secrets, our name and numbers of sessions."""
    text = re.sub(r"-C \d+", "-C N", text)
    text = re.sub(r"--password(-file)?=\S+", "--password", text)
    text = re.sub(r"I_T nexus: \d+", "I_T nexus: N", text)
    text = re.sub(r"[ ]+$", "", text, flags=re.M)
    # identities that tgt gives by itself are said here
    text = re.sub(r'^tgtadm .* --params (vendor_id="IET"|product_id="VIRTUAL-DISK"|'
                  r'product_rev="0001"|scsi_id="IET     \w+"|scsi_sn="beaf\w+")\n', "", text,
                  flags=re.M)
    # where lsof is not installed tgt-admin says so
    text = re.sub(r"^# (Command 'lsof' is not|Can't reliably check if device is not).*\n", "", text,
                  flags=re.M)
    # tgt-admin has the parameters of a LUN, and targets by name, in the order of a hash
    return re.sub(r"(?:^tgtadm .*(?: --params | -n state ).*\n)+",
                  lambda m: "".join(sorted(m.group().splitlines(True))), text, flags=re.M)


def beside(settings, steps):
    if not shutil.which("tgtd") or not shutil.which("tgt-admin"):
        raise Skip("tgt is not installed")
    tgt_sockets()
    with daemon(settings, []) as d:
        tgt = Tgtd([], settings)
        sessions = []
        try:
            try:
                tgt.start()
            except Exception as e:
                raise Skip("tgtd does not start: %s" % e)
            only = PLAIN.split("<target iqn.2001-04.a:two")[0]
            # each in a directory of its own: a store in use by one would be left out by the other
            for x in (d, tgt):
                paths = files(x)
                for name, text in (("FULL", FULL), ("PLAIN", PLAIN), ("OTHER", OTHER), ("ONLY", only)):
                    write(x, name, text, **paths)
            for step in steps:
                if step == "login":
                    for x in (d, tgt):
                        s = Session(x.addr, ONE)
                        s.login()
                        sessions.append(s)
                    continue
                text, why = step
                args = [{"ONE": ONE, "TWO": TWO}.get(w, w) for w in text.split()]
                ours = program(d, "tgt-admin", *args, cwd=d.dir)
                theirs = subprocess.run(["tgt-admin", "-C", tgt.control] + args, timeout=50,
                                        stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                        cwd=tgt.dir)
                a, b = [(x.returncode, same(x.stdout.replace(y.dir, "DIR")))
                        for x, y in ((ours, d), (theirs, tgt))]
                told = "%s:\n%d %s%s\n-- tgt:\n%d %s%s" % (text, *a, ours.stderr, *b, theirs.stderr)
                if why == STATUS:
                    assert a[1] == b[1] and a[0] != 0 and b[0] == 0, told
                elif why:
                    assert a != b, "no longer differs: " + told
                else:
                    assert a == b, told
        finally:
            for s in sessions:
                s.conn.close()
            tgt.cleanup()


def test_like_tgt_admin(settings):
    beside(settings, SESSION_FREE)


def test_like_tgt_admin_in_use(settings):
    beside(settings, IN_USE)


# --- alone -----------------------------------------------------------------------------------------

def test_execute(settings):
    with daemon(settings, []) as d:
        paths = files(d)
        full = write(d, "full", FULL, **paths)
        admin(d, "-e -c " + full)
        text = call(d, "--op show --mode target")
        one, two = re.split(r"^(?=Target 2)", text, flags=re.M)
        # numbers by the order of the names, as tgt-admin gives them
        assert one.startswith("Target 1: %s\n" % ONE) and two.startswith("Target 2: %s\n" % TWO), text
        assert "bob\n        out (outgoing)\n" in one and "127.0.0.1\n" in one and "ALL" not in one
        assert "LUN: 5\n" in two and "SCSI SN: SN5\n" in two and "Block size: 4096" in two
        assert two.endswith("    ACL information:\n        ALL\n"), two
        assert "\nMaxBurstLength=65536\n" in call(d, "--op show --mode target --tid 1")
        acc = json.loads(call(d, "--op show --mode account --json"))["data"]
        assert [a["user"] for a in acc["discovery"]] == ["disc"], acc
        admin(d, "-e -c " + full)
        admin(d, "--update ALL -c " + full)
        assert call(d, "--op show --mode target") == text, "something changed"
        # what it does not name goes
        call(d, "--op new --mode target --tid 9 -T iqn.2001-04.a:nine")
        admin(d, "-e -c " + full)
        assert names(d) == [ONE, TWO]


def test_pretend(settings):
    with daemon(settings, []) as d:
        full = write(d, "full", FULL, **files(d))
        for text in ("-p -e -c", "-p --update ALL -c", "-p --update %s -c" % ONE):
            out = admin(d, "%s %s" % (text, full))
            assert "--op new --mode target" in out.stdout
            for secret in SECRETS:
                assert secret not in out.stdout + out.stderr
            assert names(d) == [] and "disc" not in call(d, "--op show --mode account")
        out = admin(d, "-v -e -c " + full)
        for secret in SECRETS:
            assert secret not in out.stdout + out.stderr


def test_errors_change_nothing(settings):
    with daemon(settings, []) as d:
        paths = files(d)
        admin(d, "-e -c " + write(d, "plain", PLAIN, **paths))
        before = call(d, "--op show --mode target")
        for name, wrong, where in (("block", "</target>\n", None),
                                   ("word", "    no-such-word 1\n", "unknown directive"),
                                   ("value", "    MaxBurstLength x\n", "MaxBurstLength"),
                                   ("lun", "    readonly perhaps\n", "readonly")):
            text = OTHER.replace("    scsi_sn SN1\n", "    scsi_sn SN1\n" + wrong)
            path = write(d, name, text, **paths)
            for how in ("-f -e", "-f --update ALL", "-f --update " + ONE):
                out = program(d, "tgt-admin", *how.split(), "-c", path)
                if how == "-f -e" and name == "value":
                    continue  # judged by the daemon, and the target is there: nothing to do
                assert out.returncode == 22, (name, how, out)
                assert re.search(r"%s:\d+:\d+: " % re.escape(path), out.stderr), out
                assert not where or where in out.stderr, out
            now = call(d, "--op show --mode target")
            assert stores(d)[ONE] == paths["a"] and now.count("\nTarget") == before.count("\nTarget")
        out = admin(d, "--update %s -c %s" % (ONE, d.path("nothing")), 2)
        assert out.stderr == "Config file %s not found. Exiting...\n" % d.path("nothing")


def test_update_in_use(settings):
    """What initiators do not notice is done; what they would is left, unless it is forced."""
    with daemon(settings, []) as d:
        paths = files(d)
        plain, other = write(d, "plain", PLAIN, **paths), write(d, "other", OTHER, **paths)
        more = write(d, "more", PLAIN.replace("</target>", "    initiator-address 127.0.0.0/8\n"
                                              "</target>"), **paths)
        admin(d, "-e -c " + plain)
        s = Session(d.addr, ONE, initiator="iqn.2001-04.x:user")
        s.login()
        s.run_ua(scsi.TEST_UNIT_READY, lun=1).good()
        out = admin(d, "-v --update %s -c %s" % (ONE, more))
        assert "# Updating target: %s\n" % ONE in out.stdout
        s.run(scsi.TEST_UNIT_READY, lun=1).good()
        out = admin(d, "--update %s -c %s" % (ONE, other), 22)
        assert "this target is still active" in out.stderr and "iqn.2001-04.x:user" in out.stderr
        assert stores(d)[ONE] == paths["a"]
        out = admin(d, "-v --update ALL -c " + other, 22)
        assert "(%s) is in use, it won't be updated." % ONE in out.stdout
        assert "# Updating target: " + TWO in out.stdout, "the other one was left out"
        s.run(scsi.TEST_UNIT_READY, lun=1).good()
        admin(d, "-f --update %s -c %s" % (ONE, other))
        assert stores(d)[ONE] == paths["c"]
        s.conn.close()


def test_missing_store(settings):
    """The target is there, its unit not ready, until the file comes."""
    with daemon(settings, []) as d:
        paths = dict(files(d), c=d.path("later.img"))
        out = admin(d, "-e -c " + write(d, "other", OTHER, **paths))
        assert re.search(r":\d+:\d+: warning: %s: No such file.*not ready" % paths["c"], out.stderr), out
        assert names(d) == [ONE, TWO]
        with open(d.path("tmp"), "wb") as f:
            f.truncate(MIB)
        os.rename(d.path("tmp"), paths["c"])
        deadline = time.monotonic() + 20
        while "Online: No" in call(d, "--op show --mode target"):
            assert time.monotonic() < deadline, "the unit does not come up"
            time.sleep(0.2)


# What stands in a target or its unit, the place of it that is told, and the reason.
UNSERVED = [
    ("    <backing-store {b}>\n        device-type tape\n    </backing-store>\n", "5:9", "device-type tape: tapes"),
    ("    <backing-store {b}>\n        device-type cd\n    </backing-store>\n", "5:9", "device-type cd: CDs"),
    ("    <backing-store {b}>\n        device-type changer\n    </backing-store>\n", "5:9", "device-type changer: changers"),
    ("    <backing-store {b}>\n        device-type osd\n    </backing-store>\n", "5:9", "device-type osd: object storage"),
    ("    <backing-store {b}>\n        bs-type rbd\n    </backing-store>\n", "5:9", "bs-type rbd: map the image"),
    ("    driver iser\n    backing-store {b}\n", "4:5", "driver iser: iSER is not served"),
    ("    device-type tape\n    backing-store {b}\n", "4:5", "device-type tape: tapes"),
]


def test_what_is_not_served(settings):
    """A target that asks for it is refused, never made as something else; the others are made, also those
    behind it; an old one of that name is neither changed nor deleted."""
    with daemon(settings, []) as d:
        paths = files(d)
        for i, (what, at, why) in enumerate(UNSERVED):
            path = write(d, "t%d" % i, "default-driver iscsi\n\n<target iqn.2001-04.a:a>\n" + what + "</target>\n"
                         + PLAIN.split("\n", 1)[1].replace("{b}", "{c}"), **paths)
            for how in ("-e", "--ignore-errors -e", "--update ALL", "--update iqn.2001-04.a:a"):
                out = admin(d, "%s -c %s" % (how, path), 22)
                want = "tgt-admin: %s:%s: %s" % (path, at, why)
                assert want in out.stderr and "target iqn.2001-04.a:a was not made" in out.stderr, (what, out)
                assert "left out" not in out.stderr and "over TCP" not in out.stderr, out
                assert names(d) == ([] if how.endswith(":a") else [ONE, TWO]), (what, how)
                admin(d, "--delete ALL")
        # one that is there stays as it is
        call(d, "--op new --mode target --tid 5 -T iqn.2001-04.a:a")
        out = admin(d, "--update ALL -c " + path, 22)
        assert "iqn.2001-04.a:a was not updated" in out.stderr, out
        assert sorted(names(d)) == ["iqn.2001-04.a:a", ONE, TWO]
        assert "Backing store path: " + paths["b"] not in call(d, "--op show --mode target")
        admin(d, "-e -c " + path)  # it is there, so nothing is to be made
        assert sorted(names(d)) == ["iqn.2001-04.a:a", ONE, TWO]
        # of a whole file; who says a driver of his own is served
        admin(d, "--delete ALL")
        path = write(d, "iser", PLAIN.replace("default-driver iscsi", "default-driver iser").replace(
            "<target iqn.2001-04.a:two>", "<target iqn.2001-04.a:two>\n    driver iscsi"), **paths)
        out = admin(d, "-e -c " + path, 22)
        assert "%s:1:1: default-driver iser: iSER is not served; target %s was not made" % (path, ONE) in out.stderr
        assert names(d) == [TWO]


def test_pretend_what_is_not_served(settings):
    with daemon(settings, []) as d:
        text = PLAIN.replace("    backing-store {a}", "    driver iser\n    backing-store {a}")
        out = admin(d, "-p -e -c " + write(d, "iser", text, **files(d)), 22)
        assert "# Target %s asks for what is not served, it won't be made.\n" % ONE in out.stdout, out
        assert ONE not in "".join(x for x in out.stdout.splitlines() if x.startswith("tgtadm")), out
        assert "-T " + TWO in out.stdout and names(d) == []


def test_ignore_errors(settings):
    """The directive and the option: a target that cannot be made is not the end; it still shows in the
    status. Without it, as with tgt's: what comes behind the error is not done."""
    with daemon(settings, []) as d:
        clash = PLAIN.replace("    scsi_sn SN1", "    scsi_sn SN1\n    controller_tid 5")
        for i, (head, how, made) in enumerate((
                ("", "", ["iqn.2001-04.a:five"]), ("ignore-errors no\n", "", ["iqn.2001-04.a:five"]),
                ("ignore-errors yes\n", "", [TWO]), ("", "--ignore-errors", [TWO]),
                ("ignore-errors no\n", "--ignore-errors", [TWO]))):
            call(d, "--op new --mode target --tid 5 -T iqn.2001-04.a:five")
            path = write(d, "ignore%d" % i, head + clash, **files(d))
            out = admin(d, "%s -e -c %s" % (how, path), 22)
            assert ONE in out.stderr and "has no e" not in out.stderr, out
            assert names(d) == made, (head, how, out)
            admin(d, "--delete ALL")


def test_ten_at_the_same_time(settings):
    """As volume managers do it: each writes its own file, which the configuration includes, and
    updates its own target; then takes it away again."""
    with daemon(settings, []) as d:
        os.mkdir(d.path("volumes"))
        conf = write(d, "targets", "default-driver iscsi\ninclude %s/*\n" % d.path("volumes"))
        iqn = ["iqn.2010-10.org.openstack:volume-%d" % i for i in range(10)]
        paths = [file(d, "vol%d" % i) for i in range(10)]

        def make(i):
            with open(d.path("volumes/volume-%d" % i), "w", encoding="utf-8") as f:
                os.chmod(f.fileno(), 0o600)
                f.write("<target %s>\n    backing-store %s\n    driver iscsi\n"
                        "    incominguser user%d secret-of-volume-%d\n    write-cache on\n</target>\n"
                        % (iqn[i], paths[i], i, i))
            admin(d, "-c %s --update %s" % (conf, iqn[i]))
            shown = admin(d, "--show").stdout
            part = re.split(r"^(?=Target )", shown, flags=re.M)
            mine = [p for p in part if re.match(r"Target \d+: %s\n" % re.escape(iqn[i]), p)]
            assert len(mine) == 1 and "\n        LUN: 1\n" in mine[0], shown

        def take(i):
            os.unlink(d.path("volumes/volume-%d" % i))
            admin(d, "--force --delete " + iqn[i])

        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            list(pool.map(make, range(10)))
            assert sorted(names(d)) == sorted(iqn)
            assert stores(d) == dict(zip(iqn, paths))
            tids = re.findall(r"^Target (\d+):", call(d, "--op show --mode target"), re.M)
            assert len(set(tids)) == 10
            before = call(d, "--op show --mode target")
            admin(d, "-c %s --update ALL" % conf)
            assert call(d, "--op show --mode target") == before
            list(pool.map(lambda i: admin(d, "-c %s --update ALL" % conf) if i % 2 else take(i),
                          range(10)))
            # an update that read a file before it was taken away may have come after the deletion
            admin(d, "-c %s --force --update ALL" % conf)
        assert sorted(names(d)) == sorted(iqn[1::2])


def test_dump(settings):
    """Read again by tgt-admin it gives the same; secrets are left out and said to be."""
    with daemon(settings, []) as d:
        paths = files(d)
        call(d, "--op new --mode target --tid 7 -T iqn.2001-04.a:closed")
        call(d, "--op new --mode lu --tid 7 --lun 3 -b %s --params scsi_sn=SN7,readonly=1" % paths["c"])
        call(d, "--op update --mode target --tid 7 --name MaxBurstLength --value 65536")
        first = admin(d, "--dump").stdout
        assert "default-driver iscsi\n" in first and "<target iqn.2001-04.a:closed>\n" in first
        before = call(d, "--op show --mode target")
        path = write(d, "dump", "")
        with open(path, "w", encoding="utf-8") as f:
            f.write(first)
        admin(d, "--update ALL -c " + path)
        assert call(d, "--op show --mode target") == before
        admin(d, "--delete ALL")
        out = admin(d, "-e -c " + path)
        assert "everybody is admitted" not in out.stderr, "a closed target was opened"
        assert call(d, "--op show --mode target") == before
        assert admin(d, "--dump").stdout == first
        admin(d, "-f --update ALL -c " + write(d, "full", FULL, **paths))
        out = admin(d, "--dump")
        for secret in SECRETS:
            assert secret not in out.stdout + out.stderr
        assert "incominguser bob" in out.stdout, out.stdout
