# SPDX-License-Identifier: BSD-2-Clause
"""What the iSNS tests share: a daemon with iSNS on, Debian's iSNS server, a scripted one."""

import contextlib
import ipaddress
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import proto as I
from lib.evtgt import Daemon, Failed, IQN, Lun, Target, free_port
from lib.iscsi import LoginFailed, Session, text

HOST = "127.0.0.1"
MIB = 1 << 20
DISK, OTHER, HOST_A, HOST_B = IQN + "disk", IQN + "other", IQN + "host-a", IQN + "host-b"


class Skip(Exception):
    pass


def targets():
    return [Target("disk", [Lun("a.img", MIB, 0, kind="file")], ["initiator-address ALL",
                                                                "alias the disk"]),
            Target("other", [Lun("b.img", MIB, 0, kind="file")])]


@contextlib.contextmanager
def daemon(settings, servers, access=False, want=None, **kw):
    """servers: ports on loopback, tried in that order."""
    head = ["iSNS On"] + ["iSNSServerIP %s:%d" % (HOST, p) for p in servers]
    if access:
        head.append("iSNSAccessControl On")
    d = Daemon(targets() if want is None else want, settings, head=head, **kw)
    try:
        d.start()
        yield d
        d.stop()
    except Exception as e:
        bad = d.report() if d.proc else None
        raise Failed("%s; daemon: %s" % (e, bad or d.tail(3000))) from e
    finally:
        d.cleanup()


def until(what, seconds=15, every=0.05):
    """Calls what() until it gives something true."""
    end = time.monotonic() + seconds
    while True:
        got = what()
        if got:
            return got
        if time.monotonic() > end:
            raise AssertionError("%s: not within %s s" % (getattr(what, "__name__", what), seconds))
        time.sleep(every)


def login_status(d, target=DISK, initiator=HOST_A):
    """0, or class << 8 | detail of the refusal."""
    s = Session(d.addr, target, initiator=initiator)
    try:
        s.login()
        s.logout()
        return 0
    except LoginFailed as e:
        return e.pdu.status_class << 8 | e.pdu.status_detail
    finally:
        s.conn.close()


def seen(d, initiator=HOST_A):
    """Target names in a discovery session."""
    s = Session(d.addr, None, discovery=True, initiator=initiator)
    try:
        s.login()
        return sorted(v for k, v in s.text(text(SendTargets="All")) if k == "TargetName")
    finally:
        s.conn.close()


def state(d):
    import json
    return json.loads(d.adm("--json", "--op", "show", "--mode", "system"))["data"]["isns"]


# ---- open-isns -----------------------------------------------------------------------------------

CONF = """HostName = localhost
SourceName = iqn.2001-04.com.example:isnsd
Control.SourceName = iqn.2001-04.com.example:control
Database = %(dir)s/db
PIDFile = %(dir)s/pid
BindAddress = 127.0.0.1:%(port)d
ServerAddress = 127.0.0.1:%(port)d
ControlSocket = %(dir)s/control
RegistrationPeriod = %(period)d
DefaultDiscoveryDomain = 0
SLPRegister = 0
Security = 0
ESIMinInterval = 1s
ESIMaxInterval = %(esi)d
ESIRetries = 3
SCNTimeout = 2
SCNRetries = 3
"""


class Isnsd:
    """Debian's open-isns server with its own files, on a free port of loopback."""

    def __init__(self, period=60, esi=20):
        for program in ("isnsd", "isnsadm"):
            if not shutil.which(program):
                raise Skip("%s is not installed (packages open-isns-server, open-isns-utils)"
                           % program)
        self.dir = tempfile.mkdtemp(prefix="evtgt-isnsd-")
        self.port = free_port(HOST)
        self.conf = os.path.join(self.dir, "conf")
        self.log = os.path.join(self.dir, "log")
        with open(self.conf, "w") as f:
            f.write(CONF % {"dir": self.dir, "port": self.port, "period": period, "esi": esi})
        self.proc = None

    def start(self):
        """With an empty database."""
        shutil.rmtree(os.path.join(self.dir, "db"), ignore_errors=True)
        with open(self.log, "ab") as log:
            self.proc = subprocess.Popen(["isnsd", "-f", "-d", "all", "-c", self.conf],
                                         stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def answers():
            if self.proc.poll() is not None:
                raise Failed("isnsd ends: " + open(self.log, errors="replace").read()[-500:])
            try:
                socket.create_connection((HOST, self.port), 1).close()
                return True
            except OSError:
                return False
        until(answers)
        # the first control node may do everything
        self.adm("--register", "control")
        return self

    def stop(self):
        if self.proc and self.proc.poll() is None:
            self.proc.terminate()
            try:
                self.proc.wait(5)
            except subprocess.TimeoutExpired:
                self.proc.kill()
                self.proc.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def adm(self, *args):
        out = subprocess.run(["isnsadm", "--local", "-c", self.conf] + list(args),
                             capture_output=True, text=True, timeout=20)
        if out.returncode:
            raise AssertionError("isnsadm %s: %s%s" % (" ".join(args), out.stdout, out.stderr))
        return out.stdout

    def list(self, kind):
        """Objects as dictionaries by attribute name."""
        out = []
        for line in self.adm("--list", kind).splitlines():
            if line.startswith("Object"):
                out.append({})
            elif " : " in line.replace(": ", " : ", 1) and " = " in line and out:
                name, value = line.split(":", 1)[1].split(" = ", 1)
                out[-1][name.strip()] = value.strip().strip('"')
        return out

    def names(self, kind="Target"):
        return sorted(o["iSCSI name"] for o in self.list("nodes")
                      if kind in o.get("iSCSI node type", ""))

    def register_initiator(self, name, port=5000):
        c = I.connect((HOST, self.port))
        eid = "host-" + name.rsplit(":", 1)[1]
        m = c.ask(I.REG, I.tlv(I.NAME, name) + I.tlv(I.EID, eid) + I.tlv(I.DELIMITER) +
                  I.tlv(I.EID, eid) + I.tlv(I.ENTITY_PROTOCOL, 2) +
                  I.tlv(I.PORTAL_IP, ipaddress.ip_address(HOST)) + I.tlv(I.PORTAL_PORT, port) +
                  I.tlv(I.NAME, name) + I.tlv(I.NODE_TYPE, I.INITIATOR))
        assert m.status == 0, m.status
        c.close()


# ---- a scripted server ---------------------------------------------------------------------------

class Script:
    """Listens on loopback; each connection that comes is served by `serve(self, stream)` in a
    thread of its own.  Without: a well-behaved server with `domains` {target: initiators}."""

    def __init__(self, serve=None, domains=None, port=None, period=3600):
        self.serve = serve or Script.behave
        self.domains, self.period = domains or {}, period
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.port = port or free_port(HOST)
        self.sock.bind((HOST, self.port))
        self.sock.listen(16)
        self.lock = threading.Lock()
        self.got, self.errors, self.streams = [], [], []
        self.connections = 0
        self.over = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.over:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            stream = I.Stream(sock, 60)
            with self.lock:
                self.connections += 1
                self.streams.append(stream)
            threading.Thread(target=self.one, args=(stream,), daemon=True).start()

    def one(self, stream):
        try:
            self.serve(self, stream)
        except (I.Gone, OSError):
            pass
        except Exception as e:  # noqa: BLE001: shown by check()
            with self.lock:
                self.errors.append(repr(e))
        finally:
            stream.close()

    def note(self, m):
        with self.lock:
            self.got.append(m)

    def count(self, func):
        with self.lock:
            return sum(m.func == func for m in self.got)

    def messages(self, func):
        with self.lock:
            return [m for m in self.got if m.func == func]

    def reply(self, m):
        """The right answer to a request."""
        source, key, op = m.split()
        body = I.struct.pack(">I", 0)
        if m.func == I.REG:
            body += I.tlv(*key[0]) + I.tlv(I.DELIMITER) + I.tlv(*op[0]) + I.tlv(I.PERIOD,
                                                                             self.period)
        elif m.func == I.QRY and key and key[0][0] == I.EID:
            body += I.tlv(*key[0]) + I.tlv(I.DELIMITER) + I.tlv(*key[0]) + I.tlv(I.PERIOD,
                                                                              self.period)
            last = self.messages(I.REG)[-1].attrs
            body += b"".join(I.tlv(t, v) for t, v in last if t in (I.PORTAL_IP, I.PORTAL_PORT))
        elif m.func == I.QRY:
            body += I.tlv(I.NAME) + I.tlv(I.DELIMITER) + I.tlv(*source) + I.tlv(I.NODE_TYPE,
                                                                             I.TARGET)
            for name in self.domains.get(I.text(source[1]), ()):
                body += I.tlv(I.NAME, name) + I.tlv(I.NODE_TYPE, I.INITIATOR)
        return body

    def behave(self, stream, answer=None):
        """answer(m): bytes to send instead of the right answer, or None."""
        while True:
            m = stream.recv()
            self.note(m)
            if m.func & I.RSP:
                continue
            out = answer(m) if answer else None
            stream.send(I.pdu(m.func | I.RSP, m.xid, self.reply(m)) if out is None else out)

    def check(self):
        assert not self.errors, self.errors

    def stop(self):
        self.over = True
        try:  # close() alone leaves accept() of the other thread waiting
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()
        for s in self.streams:
            try:
                s.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.thread.join(5)

    def __enter__(self):
        return self

    def __exit__(self, kind, *exc):
        self.stop()
        if kind is None:
            self.check()
