# SPDX-License-Identifier: BSD-2-Clause
"""The verbs of the admin protocol by hand, and configurations as bundles: what the tools send."""

import json
import socket


class Refused(AssertionError):
    def __init__(self, error, data):
        super().__init__("%s: %s" % (error["code"], error["message"]))
        self.code, self.text, self.data = error["code"], error["message"], data


def ask(d, mode, op, timeout=40, **args):
    """The answer's data; Refused with the error."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(timeout)
        s.connect(d.sock)
        s.sendall(json.dumps({"v": 1, "mode": mode, "op": op, "args": args}).encode() + b"\n")
        got = b""
        while not got.endswith(b"\n"):
            part = s.recv(1 << 20)
            assert part, "closed without an answer"
            got += part
    r = json.loads(got)
    if not r["ok"]:
        raise Refused(r["error"], r.get("data"))
    return r.get("data") or {}


def bundle(text, name="/etc/evtgt/evtgt.conf", files=()):
    """files: others that it includes or that hold secrets, path and text."""
    return {"version": 1, "name": name, "syntax": "evtgt", "memory": False, "uid": 0, "lists": [],
            "files": [{"path": p, "text": t, "regular": True, "mode": 0o600, "uid": 0, "gid": 0}
                      for p, t in [(name, text), *files]]}


def apply(d, text, **args):
    return ask(d, "config", "apply", bundle=bundle(text), **args)


def reload(d, text=None, **args):
    if text is not None:
        with open(d.conf, "w") as f:
            f.write(text)
    return ask(d, "config", "reload", **args)


def dump(d, **args):
    return ask(d, "config", "dump", **args)["text"]


def refusal(fn, *args, **kw):
    try:
        fn(*args, **kw)
    except Refused as e:
        return e
    raise AssertionError("not refused")


def whats(data, target=None):
    return [c["what"] for c in data["changes"] if target in (None, c.get("target"))]
