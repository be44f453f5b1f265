# SPDX-License-Identifier: BSD-2-Clause
"""The admin socket itself: several requests a connection, hostile clients, order."""

import json
import os
import random
import socket
import subprocess
import threading

from common import NAME, Skip, call, daemon, file


class Client:
    def __init__(self, d):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(20)
        self.s.connect(d.sock)
        self.buf = b""

    def send(self, data):
        self.s.sendall(data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n")

    def recv(self):
        while b"\n" not in self.buf:
            got = self.s.recv(65536)
            if not got:
                return None
            self.buf += got
        line, self.buf = self.buf.split(b"\n", 1)
        return json.loads(line)

    def ask(self, mode, op, **args):
        self.send({"v": 1, "mode": mode, "op": op, "args": args})
        return self.recv()


def test_several_requests(settings):
    with daemon(settings) as d:
        c = Client(d)
        assert c.ask("system", "show")["data"]["state"] == "ready"
        assert c.ask("target", "show")["data"]["targets"][0]["name"] == NAME
        one = b'{"v":1,"mode":"system","op":"show"}\n'
        c.send(one * 20)
        for _ in range(20):
            assert c.recv()["ok"] is True
        c.s.sendall(one)
        c.s.shutdown(socket.SHUT_WR)
        assert c.recv()["ok"] is True
        assert c.recv() is None


def test_wrong_requests(settings):
    with daemon(settings) as d:
        c = Client(d)
        for line in (b"", b"x", b"[]", b"1", b"{}", b"{", b'{"v":1}', b'{"v":2,"mode":"a","op":"b"}',
                     b'{"v":1,"mode":1,"op":"b"}', b'{"v":1,"mode":"a","op":"b"}',
                     b'{"v":1,"mode":"target","op":"b"}', b'{"v":1,"mode":"target","op":"show","args":3}',
                     b'{"v":1,"v":1,"mode":"target","op":"show"}', b'"\xff\xfe"', b"\0\0\0",
                     b"[" * 5000, b'{"a":' * 3000):
            c.send(line + b"\n")
            r = c.recv()
            assert r["ok"] is False and r["error"]["message"], line[:80]
        for args in ({"tid": "1"}, {"tid": -1}, {"tid": 1 << 40}, {"tid": 1.5}, {"tid": None}, {}):
            for mode, op in (("target", "delete"), ("target", "update"), ("logicalunit", "new"),
                             ("connection", "delete")):
                assert c.ask(mode, op, **args)["ok"] is False
        for args in ({"tid": 1, "params": []}, {"tid": 1, "params": {"state": 1}},
                     {"tid": 1, "params": {}}):
            assert c.ask("target", "update", **args)["ok"] is False
        for params in ({"backing-store": 1}, {"backing-store": "/a\0b"}, [], "x", {"layer": "x" * 5000},
                       {"backing-store": ""}, {}):
            assert c.ask("logicalunit", "new", tid=1, lun=9, params=params)["ok"] is False, params
        assert c.ask("target", "new", tid=9, name="iqn.2001-04.a:b\0c")["ok"] is False
        assert c.ask("target", "bind", tid=1, address="ALL", initiator="x")["ok"] is False
        assert c.ask("system", "show")["ok"] is True


def test_long_line(settings):
    with daemon(settings) as d:
        c = Client(d)
        try:
            c.send(b"x" * (17 << 20))
            assert c.recv() is None
        except (BrokenPipeError, ConnectionResetError):
            pass
        assert Client(d).ask("system", "show")["ok"] is True


def test_many_clients(settings):
    with daemon(settings) as d:
        fds = d.fds()
        silent = []
        for _ in range(100):  # more than are served at once
            try:
                silent.append(Client(d))
            except OSError:
                break
        for c in silent:
            c.s.close()
        call(d, "--op show --mode system")
        assert d.fds() < fds + 10


def test_gone_before_the_answer(settings):
    with daemon(settings) as d:
        for i in range(50):
            c = Client(d)
            c.send({"v": 1, "mode": "target", "op": "show"})
            c.s.close()
        call(d, "--op show --mode target")


def test_not_reading(settings):
    """A client that asks and never reads does not stop the others."""
    with daemon(settings) as d:
        c = Client(d)
        c.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        c.s.settimeout(0.5)
        try:
            for _ in range(2000):
                c.send({"v": 1, "mode": "target", "op": "show"})
        except (socket.timeout, BrokenPipeError, ConnectionResetError):
            pass
        call(d, "--op show --mode target")
        c.s.close()


def test_at_the_same_time(settings):
    """Requests of many clients are done one after the other; the end is what was asked."""
    with daemon(settings) as d:
        errors = []

        def work(k):
            try:
                c = Client(d)
                path = file(d, "w%d.img" % k)
                for i in range(8):
                    r = c.ask("target", "new", tid=10 + k, name="iqn.2001-04.t:%d" % k)
                    assert r["ok"], r
                    r = c.ask("logicalunit", "new", tid=10 + k, lun=i + 1,
                              params={"backing-store": path})
                    assert r["ok"], r
                    assert c.ask("target", "bind", tid=10 + k, address="ALL")["ok"]
                    r = c.ask("target", "delete", tid=10 + k)
                    assert r["ok"], r
            except Exception as e:  # noqa: BLE001
                errors.append(repr(e))
        threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not errors, errors
        assert call(d, "--op show --mode target").count("Target ") == 1


def test_other_users_are_not_heard(settings):
    """Even where the socket's mode would let them in."""
    if os.geteuid() != 0:
        raise Skip("needs root to be somebody else")
    with daemon(settings) as d:
        os.chmod(d.sock, 0o666)
        out = subprocess.run(["python3", "-c", "import socket,sys; s=socket.socket(socket.AF_UNIX); "
                              "s.settimeout(5); s.connect(sys.argv[1]); "
                              "s.send(b'{\"v\":1,\"mode\":\"system\",\"op\":\"show\"}\\n'); "
                              "print(s.recv(100))", d.sock], user=65534, group=65534,
                             extra_groups=[], capture_output=True, text=True, cwd="/", timeout=20)
        assert "ok" not in out.stdout, out
        assert "refused uid=65534" in d.tail(), d.tail()
        call(d, "--op show --mode system")


def test_noise(settings):
    """Changed copies of right requests: an answer or the end of the connection, nothing else."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(1 << 30)))
    rnd = random.Random(seed)
    good = [{"v": 1, "mode": m, "op": o, "args": a} for m, o, a in (
        ("target", "show", {"tid": 1}), ("target", "update", {"tid": 1, "params": {"alias": "x"}}),
        ("logicalunit", "update", {"tid": 1, "lun": 1, "params": {"online": "1"}}),
        ("target", "bind", {"tid": 1, "address": "10.0.0.1"}), ("portal", "new", {"portal": "x"}),
        ("session", "show", {}), ("connection", "delete", {"tid": 1, "sid": 1, "cid": 0}))]
    print("seed", seed)
    with daemon(settings) as d:
        c = Client(d)
        for _ in range(1500):
            line = bytearray(json.dumps(rnd.choice(good)).encode())
            for _ in range(rnd.randrange(1, 4)):
                k = rnd.randrange(len(line))
                line[k:k + rnd.randrange(3)] = bytes([rnd.randrange(256)]).replace(b"\n", b" ")
            c.send(bytes(line) + b"\n")
            r = c.recv()
            assert r and "ok" in r, (seed, line)
