# SPDX-License-Identifier: BSD-2-Clause
"""Start and end of evtgtd: checking a configuration, exit statuses, pid file, signals, becoming a
daemon."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import time

from common import NAME, call, daemon
from lib.evtgt import Daemon, Lun, Target


def run(settings, *args, **kw):
    return subprocess.run([settings.daemon] + list(args), capture_output=True, text=True, timeout=20,
                          **kw)


def prepared(settings, targets=None):
    d = Daemon(targets or [Target("disk", [Lun("a.img", 1 << 20, 1, kind="file")])], settings)
    with open(d.conf, "w") as f:
        f.write(d.config())
    return d


def test_check_only(settings):
    d = prepared(settings)
    try:
        out = run(settings, "-t", "-c", d.conf)
        assert out.returncode == 0 and "1 target" in out.stdout, out
        assert not os.path.exists(d.path("state"))
        os.rename(d.path("a.img"), d.path("b.img"))
        out = run(settings, "-t", "-c", d.conf)
        assert out.returncode == 0 and "1 warning" in out.stdout, out
        assert ": warning: " in out.stderr and "a.img: No such file" in out.stderr, out
        os.rename(d.path("b.img"), d.path("a.img"))
        with open(d.path("bare"), "w") as f:
            f.write("<target iqn.2001-04.a:bare>\n  initiator-address ALL\n</target>\n")
        out = run(settings, "-t", "-c", d.path("bare"))
        assert out.returncode == 0 and "has no backing-store" in out.stderr, out
        with open(d.path("bare"), "w") as f:
            f.write("<target iqn.2001-04.a:bare>\n  initiator-address ALL\n"
                    "  RedirectAddress 192.0.2.7\n</target>\n")
        out = run(settings, "-t", "-c", d.path("bare"))
        assert out.returncode == 0 and not out.stderr, out
        with socket.socket() as s:  # a portal that this daemon has by another one
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        with open(d.path("bare"), "a") as f:
            f.write("portal 0.0.0.0:%d\nportal 127.0.0.1:%d\n" % (port, port))
        out = run(settings, "-f", "-c", d.path("bare"), "--state-dir", d.path("twice"),
                  "--socket", d.path("twice.sock"))
        assert out.returncode == 1, out
        assert "in use by another portal of this configuration" in out.stderr, out
        with open(d.conf, "a") as f:
            f.write("worker 2\n<target iqn.2001-04.a:b>\n  incominguser u\n"
                    "  MaxBurstLength 1\n  initiator-address 1.2.3\n"
                    "  backing-store relative\n</target>\n<target nonsense>\n</target>\n")
        lines = open(d.conf).read().split("\n")
        at = lines.index("worker 2") + 1
        out = run(settings, "-t", "-c", d.conf)
        assert out.returncode == 1, out
        for line, col, words in ((at, 1, "did you mean workers?"), (at + 2, 16, "incominguser"),
                                 (at + 3, 18, "MaxBurstLength"), (at + 4, 21, "initiator-address"),
                                 (at + 5, 17, "absolute"), (at + 7, 9, "nonsense")):
            want = "%s:%d:%d: error: " % (d.conf, line, col)
            assert any(e.startswith(want) and words in e for e in out.stderr.split("\n")), \
                "%s...%s not in:\n%s" % (want, words, out.stderr)
        out = run(settings, "-f", "-c", d.conf, "--state-dir", d.path("state"))
        assert out.returncode == 1 and not os.path.exists(d.path("state")), "a bad file was used"
        out = run(settings, "-t", "-c", d.path("none"))
        assert out.returncode == 1 and "cannot read" in out.stderr, out
        assert "-c names another" in out.stderr, out
    finally:
        d.cleanup()


def test_example(settings):
    """dist/evtgt.conf.example is right as it is, and with everything in it taken in."""
    here = os.path.dirname(os.path.abspath(__file__))
    text = open(os.path.join(here, "../../dist/evtgt.conf.example")).read()
    with tempfile.TemporaryDirectory() as d:
        conf = os.path.join(d, "evtgt.conf")
        for t in (text, re.sub(r"(?m)^#(?=\S|    )", "", text)):
            with open(conf, "w") as f:
                f.write(t)
            with open(os.path.join(d, "accounts.conf"), "w") as f:
                os.chmod(f.name, 0o600)
                f.write("incominguser a 0123456789abcdef\n")
            out = run(settings, "-t", "-c", conf)
            assert out.returncode == 0 and "error" not in out.stderr, (t, out)
        assert "1 target" in out.stdout, out


def test_layers_and_options_are_checked(settings):
    d = prepared(settings, [Target("disk", [Lun("a.img", 1 << 20, 1, kind="file",
                                                opts=["layer nonsense:a=1"])])])
    try:
        out = run(settings, "-t", "-c", d.conf)
        assert out.returncode == 1 and ":4:5: error:" in out.stderr and "nonsense" in out.stderr, out
    finally:
        d.cleanup()


def test_wrong_arguments(settings):
    for args in (["--workers", "0"], ["--workers", "x"], ["--placement", "x"], ["--engine", "x"],
                 ["-d", "nonsense"], ["extra"], ["--nonsense"]):
        out = run(settings, *args)
        assert out.returncode == 2 and out.stderr, (args, out)
    assert "evtgtd 0" in run(settings, "-V").stdout
    assert "--state-dir" in run(settings, "-h").stdout


def test_port_taken(settings):
    with daemon(settings) as d:
        other = prepared(settings)
        try:
            with open(other.conf, "w") as f:
                f.write(d.config())
            out = run(settings, "-f", "-c", other.conf, "--state-dir", other.path("state"),
                      "--socket", other.sock)
            assert out.returncode == 1 and str(d.port) in out.stderr, out
        finally:
            other.cleanup()


def test_state_directory_taken(settings):
    with daemon(settings) as d:
        other = prepared(settings)
        try:
            out = run(settings, "-f", "-c", other.conf, "--state-dir", d.path("state"), "--socket",
                      other.sock)
            assert out.returncode == 1 and "another daemon" in out.stderr, out
        finally:
            other.cleanup()


def test_directories_are_made(settings):
    d = prepared(settings)
    try:
        state, sock = d.path("a/b/state"), d.path("c/d/e/sock")
        p = subprocess.Popen([settings.daemon, "-f", "-c", d.conf, "--state-dir", state, "--socket",
                              sock], stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 20
            while not os.path.exists(sock):
                assert p.poll() is None and time.monotonic() < deadline
                time.sleep(0.05)
            assert os.stat(state).st_mode & 0o777 == 0o700
        finally:
            p.terminate()
            assert p.wait(20) == 0
        out = run(settings, "-f", "-c", d.conf, "--state-dir", d.conf + "/state", "--socket", sock)
        assert out.returncode == 1 and "--state-dir" in out.stderr, out
    finally:
        d.cleanup()


def test_socket_taken_and_leftover(settings):
    with daemon(settings) as d:
        other = prepared(settings)
        try:
            out = run(settings, "-f", "-c", other.conf, "--state-dir", other.path("state"),
                      "--socket", d.sock)
            assert out.returncode == 1 and d.sock in out.stderr, out
            assert "another daemon answers there" in out.stderr, out
            call(d, "--op show --mode system")
        finally:
            other.cleanup()
        d.kill()  # the opener removes its socket
        deadline = time.monotonic() + 10
        while os.path.exists(d.sock):
            assert time.monotonic() < deadline, "the socket stays"
            time.sleep(0.05)
        with socket.socket(socket.AF_UNIX) as s:  # what a power cut leaves
            s.bind(d.sock)
        assert os.path.exists(d.sock)
        d.start()
        call(d, "--op show --mode system")
        assert os.stat(d.sock).st_mode & 0o777 == 0o600


def test_daemon_and_pid_file(settings):
    d = prepared(settings)
    pidfile = d.path("pid")
    try:
        with open(d.path("stderr"), "wb") as err:
            out = subprocess.run([settings.daemon, "-c", "evtgt.conf", "--state-dir", "state",
                                  "--socket", "adm.sock", "-p", "pid"], cwd=d.dir, timeout=20,
                                 stderr=err)
        assert out.returncode == 0, d.tail()
        pid = int(open(pidfile).read())
        try:
            assert os.readlink("/proc/%d/cwd" % pid) == "/"
            assert os.getsid(pid) != os.getsid(0)
            call(d, "--op show --mode system")
            socket.create_connection(d.addr, 2).close()
            os.kill(pid, signal.SIGHUP)
            end = time.monotonic() + 10
            while "reloaded changes=0" not in d.tail():
                assert time.monotonic() < end, d.tail()
                time.sleep(0.1)
            call(d, "--op show --mode system")
        finally:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 15
        while os.path.exists("/proc/%d" % pid) and open("/proc/%d/stat" % pid).read().split()[2] != "Z":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert not os.path.exists(pidfile) and not os.path.exists(d.sock)
        assert d.report() is None, d.report()
        # the parent must not say "started" when the child could not
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(d.addr)
        s.listen(1)
        out = run(settings, "-c", d.conf, "--state-dir", d.path("state"), "--socket", d.sock, "-p",
                  pidfile)
        s.close()
        assert out.returncode == 1 and out.stderr, out
    finally:
        d.cleanup()


def test_notify_abstract_socket(settings):
    d = prepared(settings)
    name = "\0evtgt-test-%d" % os.getpid()
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    s.bind(name)
    s.settimeout(20)
    try:
        with open(d.log, "ab") as err:
            d.proc = subprocess.Popen(d.command(), stderr=err, cwd=d.dir,
                                      env=dict(os.environ, NOTIFY_SOCKET="@" + name[1:]))
        assert s.recv(100) == b"READY=1"
        d.terminate()
        assert s.recv(100) == b"STOPPING=1"
        d.wait()
        d.stop()
    finally:
        s.close()
        d.cleanup()


def test_everything_settable(settings):
    """Every directive and key in one file; the target serves as it says."""
    opts = ["initiator-address ALL", "alias a b", "state ready", "controller_tid 7", "driver iscsi",
            "MaxQueueCmd 8", "nop_interval 0", "nop_count 2", "MaxRecvDataSegmentLength 65536",
            "MaxBurstLength 131072", "FirstBurstLength 32768", "InitialR2T No", "ImmediateData Yes",
            "MaxOutstandingR2T 2", "MaxConnections 1", "ErrorRecoveryLevel 0", "DefaultTime2Wait 2",
            "DefaultTime2Retain 0", "HeaderDigest None,CRC32C", "DataDigest None,CRC32C",
            "DataPDUInOrder Yes", "DataSequenceInOrder Yes"]
    lun = ["write-cache off", "scsi_id MyId", "scsi_sn MySn", "naa 3000000000000abc",
           "vendor_id V", "product_id P", "product_rev 1.0", "sense_format 0", "removable no",
           "online 1", "readonly 0", "device-type disk", "bs-type rdwr", "block-size 4096",
           "lbppbe 0", "la_lba 0", "optimal_xfer_gran 8", "optimal_xfer_len 256",
           "thin-provisioning on", "rotation_rate 7200", "allow-in-use no"]
    tgts = [Target("disk", [Lun("a.img", 1 << 20, 3, kind="file", opts=lun)], opts)]
    head = ["workers 1", "placement spread", "login-timeout 9", "max-half-open 10", "max-sessions 5",
            "max-half-open-per-address 4", "tcp-keepalive-idle 30", "tcp-keepalive-interval 5",
            "tcp-keepalive-count 3", "tcp-user-timeout 60", "dscp ef", "shutdown-timeout 1",
            "default-driver iscsi", "ignore-errors no", "control-port 0"]
    with daemon(settings, tgts, head=head) as d:
        text = call(d, "--op show --mode target")
        assert text.startswith("Target 7: %s\n" % NAME)
        assert "SCSI ID: MyId\n            SCSI SN: MySn\n            Size: 1 MB, Block size: 4096\n" in \
            text, text
