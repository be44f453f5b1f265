# SPDX-License-Identifier: BSD-2-Clause
"""evtgtadm's plain verbs as the tests call them."""

import json
import os
import subprocess

from common import call  # noqa: F401: tests take both from here


def run(d, *args, stdin=None, env=None):
    """One call; its outcome whatever it is."""
    env = {**os.environ, "EVTGT_SOCKET": d.sock, "TERM": "dumb", **(env or {})}
    return subprocess.run([d.set.adm] + list(args), capture_output=True, text=True, timeout=40,
                          env=env, input=stdin if stdin is not None else "", cwd=d.dir)


def verb(d, text, status=0, says=(), stdin=None, more=()):
    """`text`: words, blank separated; `more`: further words as they are. Returns stdout; says:
    strings that must stand in what is printed."""
    out = run(d, *text.split(), *more, stdin=stdin)
    where = "%s: status %d, out %r, err %r" % (text, out.returncode, out.stdout, out.stderr)
    assert out.returncode == status, where
    both = out.stdout + out.stderr
    for s in [says] if isinstance(says, str) else says:
        assert s in both, "%s says nothing of %r: %s" % (text, s, where)
    if status:
        assert out.stderr, where
    assert "Sanitizer" not in both, where
    return out.stdout


def ask(d, text, status=0, stdin=None, more=()):
    """With --json: the data, or the error of a refusal."""
    out = run(d, *text.split(), *more, "--json", stdin=stdin)
    where = "%s: status %d, out %r, err %r" % (text, out.returncode, out.stdout, out.stderr)
    assert out.returncode == status, where
    answer = json.loads(out.stdout)
    assert answer["v"] == 1 and answer["ok"] is (status == 0), where
    if status:
        assert set(answer) == {"v", "ok", "error"}, where
        assert answer["error"]["code"] and answer["error"]["message"], where
        assert answer["error"]["message"] in out.stderr, where
        return answer["error"]
    assert set(answer) == {"v", "ok", "data"}, where
    return answer["data"]
