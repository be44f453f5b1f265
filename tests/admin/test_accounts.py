# SPDX-License-Identifier: BSD-2-Clause
"""CHAP accounts: directives, verbs of tgtadm, what they do to logins, and where secrets do not show
(RFC 7143 12.1.3; RFC 1994 for the response)."""

import hashlib
import os
import subprocess
import tempfile
import time

from common import MIB, NAME, call, daemon
from conf_tool import ask, dump
from lib.evtgt import Lun, Target
from lib.iscsi import LoginFailed, Session, parse_text, text

ACC = "--lld iscsi --mode account "
SECRET, OTHER = "sixteen-bytes-xx", "another-16-bytes"


def chap(d, user, secret, target=NAME, initiator="iqn.2026-11.com.example:wire", mutual=None,
         isid=None):
    """A login by MD5; mutual: (name, secret) that the target must prove. The session."""
    s = Session(d.addr, target, initiator=initiator, isid=isid, discovery=target is None)

    def step(*pairs, **kw):
        r = s.login_step(text(*pairs), csg=0, **kw)
        s.must(r)
        return dict(parse_text(r.data))

    got = step(*(s.first_pairs() + [("AuthMethod", "CHAP,None")]), t=False)
    assert got["AuthMethod"] == "CHAP", got
    got = step(("CHAP_A", "5"), t=False)
    challenge = bytes.fromhex(got["CHAP_C"][2:])
    answer = hashlib.md5(bytes([int(got["CHAP_I"])]) + secret.encode() + challenge).hexdigest()
    mine = [("CHAP_N", user), ("CHAP_R", "0x" + answer)]
    theirs = os.urandom(16)
    if mutual:
        mine += [("CHAP_I", "7"), ("CHAP_C", "0x" + theirs.hex())]
    got = step(*mine, nsg=1)
    if mutual:
        want = hashlib.md5(b"\7" + mutual[1].encode() + theirs).hexdigest()
        assert got["CHAP_N"] == mutual[0] and got["CHAP_R"] == "0x" + want, got
    r = s.login_step(text(*s.op_pairs()), csg=1, nsg=3)
    s.must(r)
    s.take_text(r.data)
    assert r.flags & 0x83 == 0x83, "the login does not end: %r" % r
    return s.finish(r)


def status(fn, *args, **kw):
    """Of a login: 0 or what it was refused with."""
    try:
        fn(*args, **kw).conn.close()
    except LoginFailed as e:
        return e.status
    return 0


def plain(d, target=NAME):
    s = Session(d.addr, target, discovery=target is None)
    try:
        s.login()
    except LoginFailed as e:
        return e.status
    s.conn.close()
    return 0


def new(d, user, secret):
    call(d, ACC + "--op new --user %s --password %s" % (user, secret))


def secret_file(secret):
    fd, path = tempfile.mkstemp()  # mode 0600
    os.write(fd, secret.encode() + b"\n")
    os.close(fd)
    return path


def test_verbs(settings):
    """tgtadm's forms, messages and printed lines."""
    with daemon(settings) as d:
        assert call(d, ACC + "--op show") == ""
        new(d, "u1", SECRET)
        call(d, ACC + "--op new --user u1 --password x", 22, "this account already exists")
        new(d, "u2", OTHER)
        assert call(d, ACC + "--op show") == "Account list:\n    u2\n    u1\n"
        call(d, ACC + "--op new --user u3", 22, "'user' and 'password' options are required")
        call(d, ACC + "--op new --tid 1 --user u3 --password x", 22,
             "account mode: option '-t' is not allowed/supported")
        call(d, ACC + "--op delete", 22, "'user' option is necessary")
        call(d, ACC + "--op update", 22, "operation update not supported in account mode")
        call(d, ACC + "--op bind --user u9 --tid 1", 22, "can't find the account")
        call(d, ACC + "--op bind --user u1 --tid 7", 22, "can't find the target")
        call(d, ACC + "--op bind --user u1 --tid 0", 22, "can't find the target")
        call(d, ACC + "--op bind --user u1 --tid 1")
        call(d, ACC + "--op bind --user u1 --tid 1", 22, "this account already exists")
        call(d, ACC + "--op bind --user u2 --tid 1 --outgoing")
        call(d, ACC + "--op bind --user u1 --tid 1 --outgoing", 22,
             "this target already has an outgoing account")
        shown = call(d, "--op show --mode target")
        assert "    Account information:\n        u1\n        u2 (outgoing)\n" \
               "    ACL information:\n        ALL\n" in shown, shown
        call(d, ACC + "--op unbind --user u2 --tid 1", 22, "can't find the account")
        call(d, ACC + "--op unbind --user u2 --tid 1 --outgoing")
        call(d, ACC + "--op delete --user u1")
        assert "chap-off target=" + NAME in open(d.log).read(), "an open target goes unsaid"
        call(d, ACC + "--op delete --user u1", 22, "can't find the account")
        assert call(d, ACC + "--op show") == "Account list:\n    u2\n"
        assert "Account information:\n    ACL information:\n" in call(d, "--op show --mode target")


def test_live(settings):
    """What an account does at once, and that sessions stay."""
    with daemon(settings) as d:
        before = Session(d.addr, NAME)
        before.login()
        new(d, "u1", SECRET)
        new(d, "u2", OTHER)
        assert plain(d) == 0, "an account that is bound nowhere"
        call(d, ACC + "--op bind --user u1 --tid 1")
        before.nop()
        assert plain(d) == 0x0201
        assert status(chap, d, "u1", OTHER) == 0x0201
        assert status(chap, d, "u2", OTHER) == 0x0201, "an account that is not bound here"
        s = chap(d, "u1", SECRET)
        assert status(chap, d, "u1", SECRET, mutual=("u2", OTHER)) == 0x0201
        call(d, ACC + "--op bind --user u2 --tid 1 --outgoing")
        assert status(chap, d, "u1", SECRET, mutual=("u2", OTHER)) == 0
        s.nop()
        call(d, ACC + "--op unbind --user u1 --tid 1")
        s.nop()
        before.nop()
        assert plain(d) == 0
        before.conn.close()
        s.conn.close()


def test_same_secret(settings):
    """RFC 7143 9.2.1: not one secret for both directions."""
    with daemon(settings) as d:
        new(d, "u1", SECRET)
        new(d, "u2", SECRET)
        call(d, ACC + "--op bind --user u1 --tid 1")
        call(d, ACC + "--op bind --user u2 --tid 1 --outgoing", 22,
             "invalid request: the same secret for both directions (RFC 7143 9.2.1)")


def test_discovery(settings):
    """Discovery has accounts of its own; targets keep theirs."""
    with daemon(settings) as d:
        new(d, "u1", SECRET)
        assert plain(d, None) == 0
        call(d, ACC + "--op bind --user u1")
        assert plain(d, None) == 0x0201 and plain(d) == 0
        assert status(chap, d, "u1", SECRET, target=None) == 0
        call(d, ACC + "--op unbind --user u1")
        assert plain(d, None) == 0


def test_limited_to_initiators(settings):
    with daemon(settings) as d:
        call(d, ACC + "--op new --user u1 --password %s "
                      "--initiator-name iqn.a:i1,iqn.a:j*" % SECRET)
        call(d, ACC + "--op bind --user u1 --tid 1")
        assert status(chap, d, "u1", SECRET, initiator="iqn.a:i1") == 0
        assert status(chap, d, "u1", SECRET, initiator="IQN.A:J2") == 0
        assert status(chap, d, "u1", SECRET, initiator="iqn.a:i2") == 0x0201
        for nobody in ("", ",", "iqn.a:i1,,iqn.a:i2"):
            out = d.adm(*(ACC + "--op new --user u2 --password " + SECRET).split(),
                        "--initiator-name", nobody, check=False)
            assert out.returncode == 22 and SECRET not in out.stderr, (nobody, out)
        assert "u2" not in call(d, ACC + "--op show")


def test_password_file(settings):
    with daemon(settings) as d:
        with open(d.path("secret"), "w") as f:
            f.write(SECRET + "\nsecond line\n")
        os.chmod(d.path("secret"), 0o600)

        def made(user, how):
            out = d.adm(*(ACC + "--op new --user %s " % user + how).split(), check=False)
            assert out.returncode == 0 and SECRET not in out.stderr, out
            return out.stderr

        from_file = "--password-file " + d.path("secret")
        assert made("u1", from_file) == ""
        os.chmod(d.path("secret"), 0o644)
        assert "chmod 600" in made("u3", from_file)
        said = made("u4", "--password elevenbytes")
        assert "has 11 bytes" in said and "elevenbytes" not in said, said
        call(d, ACC + "--op new --user u2 --password x --password-file y", 22,
             "'password' and 'password-file' exclude each other")
        call(d, ACC + "--op new --user u2 --password-file " + d.path("none"), 22)
        call(d, ACC + "--op bind --user u1 --tid 1")
        assert status(chap, d, "u1", SECRET) == 0


def unbound(text):
    return len([x for x in text.split("\n") if x.startswith("account ")])


def test_bound_nowhere_is_dumped(settings):
    """Lossless: dump, a start with it, and the same dump again."""
    with daemon(settings) as d:
        new(d, "spare", SECRET)
        ask(d, "account", "new", user="few", password=OTHER, initiators=["iqn.2026-11.com.example:*"])
        ask(d, "account", "new", user="at first", password='a "quoted" one')
        text = dump(d, secrets=True)
        assert unbound(text) == 3 and SECRET in text, text
        assert SECRET not in dump(d), "without secrets"
        with open(d.conf, "w") as f:
            f.write(text)
        got = ask(d, "config", "reload")
        assert got["changes"] == [] and got["messages"] == [], got
        d.config, old = (lambda: text), d.config
        d.stop()
        d.start()
        assert dump(d, secrets=True) == text
        ask(d, "account", "bind", user="spare", tid=1)
        assert unbound(dump(d, secrets=True)) == 2
        chap(d, "spare", SECRET).conn.close()
        ask(d, "account", "unbind", user="spare", tid=1)
        assert sorted(dump(d, secrets=True).split("\n")) == sorted(text.split("\n"))
        ask(d, "account", "bind", user="spare", tid=1)
        what = [c["what"] for c in ask(d, "config", "reload")["changes"]]
        assert "account spare added" in what and "incominguser spare deleted" in what, what
        assert dump(d, secrets=True) == text, "what is bound is taken back, the account stays"
        with open(d.conf, "w") as f:
            f.write(old())
        assert "account few deleted" in [c["what"] for c in ask(d, "config", "reload")["changes"]]
        assert ask(d, "account", "show")["accounts"] == []


def test_bound_nowhere_is_saved(settings):
    with daemon(settings) as d:
        ask(d, "account", "new", user="spare", password=SECRET, persist=True)
        d.stop()
        d.start()
        ask(d, "account", "bind", user="spare", tid=1, persist=True)
        d.stop()
        d.start()
        chap(d, "spare", SECRET).conn.close()
        assert unbound(dump(d, secrets=True)) == 0
        ask(d, "account", "unbind", user="spare", tid=1, persist=True)
        d.stop()
        d.start()
        assert ask(d, "account", "show")["accounts"] == ["spare"] and plain(d) == 0
        ask(d, "account", "delete", user="spare", persist=True)
        d.stop()
        d.start()
        assert ask(d, "account", "show")["accounts"] == []


def test_directives(settings):
    """The file's accounts: of a target, of all targets, of discovery; secrets in files."""
    path = secret_file(SECRET)
    targets = [
        Target("disk", [Lun("a.img", MIB, 1, kind="file")],
               ["initiator-address ALL", "incominguser own " + OTHER,
                "incominguser quoted \"blanks and a # in it\"",
                "outgoinguser self third-secret-16b"]),
        Target("second", [Lun("b.img", MIB, 1, kind="file")]),
    ]
    try:
        with daemon(settings, targets,
                    head=["incominguser common @" + path,
                          "incomingdiscoveryuser finder fourth-secret-16"]) as d:
            second = targets[1].name
            assert status(chap, d, "own", OTHER, mutual=("self", "third-secret-16b")) == 0
            assert status(chap, d, "quoted", "blanks and a # in it") == 0
            assert status(chap, d, "common", SECRET) == 0x0201, "the daemon's, beside its own"
            assert status(chap, d, "common", SECRET, target=second) == 0
            assert status(chap, d, "own", OTHER, target=second) == 0x0201
            assert status(chap, d, "finder", "fourth-secret-16", target=None) == 0
            assert status(chap, d, "own", OTHER, target=None) == 0x0201
    finally:
        os.unlink(path)


def test_file_modes(settings):
    """A secret that others may read is refused, in the configuration, in what it includes and in a
    file of its own; in a file of tgt it is warned of."""
    with daemon(settings) as d:
        conf = d.path("c.conf")

        def check(line, mode):
            with open(conf, "w") as f:
                f.write("<target iqn.2001-04.a:b>\n initiator-address ALL\n %s\n</target>\n" % line)
            os.chmod(conf, mode)
            return subprocess.run([settings.daemon, "-t", "-c", conf], capture_output=True,
                                  text=True, timeout=20)

        out = check("incominguser a " + SECRET, 0o644)
        assert out.returncode == 1 and "others may read or write it (mode 644)" in out.stderr, out
        out = check("incominguser a %s\n</target>\nsyntax tgt\n<target iqn.2001-04.a:c>" % SECRET,
                    0o644)
        assert out.returncode == 0 and "others may read or write it (mode 644)" in out.stderr, out
        part = d.path("accounts.conf")
        for mode, status in ((0o640, 1), (0o600, 0)):
            with open(part, "w") as f:
                f.write("incominguser a %s\n" % SECRET)
            os.chmod(part, mode)
            out = check("include accounts.conf", 0o644)
            assert out.returncode == status, out
            assert status == 0 or part + ":1:16: error: " in out.stderr, out
        out = check("incominguser a " + SECRET, 0o600)
        assert out.returncode == 0 and "others may read" not in out.stderr, out
        out = check("incominguser a elevenbytes", 0o600)
        assert "has 11 bytes" in out.stderr and "elevenbytes" not in out.stderr, out
        for line in ("initiator-name laptop", "incominguser a %s iqn.a:b laptop" % SECRET):
            out = check(line, 0o600)
            assert out.returncode == 0 and '"laptop" fits no initiator' in out.stderr, out
        for name in ("*laptop", "IQN.a:*", "[ie]*", "iq?.a", "naa.5*", "eu*"):
            out = check("initiator-name " + name, 0o600)
            assert out.returncode == 0 and "fits no" not in out.stderr, out
        out = check("incominguser a @etc/evtgt/a.secret", 0o600)
        assert out.returncode == 0 and "taken for the secret itself" in out.stderr, out
        path = secret_file(SECRET)
        try:
            os.chmod(path, 0o640)
            out = check("incominguser a @" + path, 0o644)
            assert out.returncode == 1 and "chmod 600" in out.stderr, out
            os.chmod(path, 0o600)
            out = check("incominguser a @" + path, 0o644)
            assert out.returncode == 0 and "others may" not in out.stderr, out
        finally:
            os.unlink(path)


def test_secrets_do_not_show(settings):
    """Neither in the log nor in any answer, nor in the list of processes."""
    with daemon(settings) as d:
        new(d, "u1", SECRET)
        call(d, ACC + "--op bind --user u1 --tid 1")
        status(chap, d, "u1", OTHER)
        chap(d, "u1", SECRET).conn.close()
        for mode in ("account", "target", "system", "session"):
            assert SECRET not in call(d, "--op show --mode %s --json" % mode)
        log = open(d.log).read()
        assert "user=u1" in log and SECRET not in log and OTHER not in log


def test_refused_login_leaves_the_session(settings):
    """RFC 7143 6.3.5: only a login that is complete reinstates: a wrong secret, or a login that
    stops in the middle, does nothing to the session with the same name and ISID."""
    with daemon(settings) as d:
        new(d, "u1", SECRET)
        call(d, ACC + "--op bind --user u1 --tid 1")
        s = chap(d, "u1", SECRET)
        assert status(chap, d, "u1", OTHER, isid=s.isid) == 0x0201
        s.nop()
        half = Session(d.addr, NAME, isid=s.isid)
        half.must(half.login_step(text(*(half.first_pairs() + [("AuthMethod", "CHAP")])), csg=0,
                                  t=False))
        half.conn.close()
        s.nop()
        t = chap(d, "u1", SECRET, isid=s.isid)
        s.conn.expect_close(5)
        t.conn.close()


def test_brake(settings):
    """Wrong secrets wait longer and longer, the right one logs in all the same, and nobody else
    waits."""
    with daemon(settings, head=["login-failure-delay 800"]) as d:
        new(d, "u1", SECRET)
        call(d, ACC + "--op bind --user u1 --tid 1")
        took = []
        for user in ("u1", "u1", "u1", "u1", "u1", "u1", "nobody"):
            start = time.monotonic()
            assert status(chap, d, user, OTHER) == 0x0201
            took.append(time.monotonic() - start)
        assert max(took[:3]) < 0.2 and took[4] >= 0.45 and took[6] >= 0.75, took
        assert max(took) < 3, took
        other = Session(d.addr, discovery=True)
        start = time.monotonic()
        other.login()
        assert time.monotonic() - start < 0.3, "a login without a proof waited"
        other.conn.close()
        assert status(chap, d, "u1", SECRET) == 0
    with daemon(settings, head=["login-failure-delay 0"]) as d:
        new(d, "u1", SECRET)
        call(d, ACC + "--op bind --user u1 --tid 1")
        start = time.monotonic()
        for _ in range(12):
            assert status(chap, d, "u1", OTHER) == 0x0201
        assert time.monotonic() - start < 2
