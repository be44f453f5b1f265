# SPDX-License-Identifier: BSD-2-Clause
"""Discovery sessions and text exchanges: RFC 7143 11.10, 11.11, appendix C."""

from harness import (DISK, IQN, OTHER, P, row, scsi, text)
from lib.iscsi import parse_text


def records(pairs):
    """{name: [addresses]} of a SendTargets answer; only the two keys, names first (App. C)."""
    out = {}
    name = None
    for k, v in pairs:
        assert k in ("TargetName", "TargetAddress"), "key %s in SendTargets" % k
        if k == "TargetName":
            assert v not in out, "%s listed twice" % v
            name = v
            out[name] = []
        else:
            assert name is not None, "TargetAddress before a TargetName"
            out[name].append(v)
    return out


def check_address(env, a):
    addr, tag = a.rsplit(",", 1)
    assert 0 <= int(tag) <= 65535, a
    host, port = addr.rsplit(":", 1) if not addr.endswith("]") else (addr, "3260")
    assert (host, int(port)) == ("127.0.0.1", env.addr[1]), "address %s" % a


@row("D-01", "App. C, 11.11", "SendTargets=All lists every target with its address")
def send_targets_all(env):
    s = env.discovery()
    p = s.text_pdu(text(SendTargets="All"))
    s.send(p)
    r = s.expect(P.TEXT_RSP, p.itt)
    assert r.final and r.ttt == P.NONE and not r.flags & 0x40, repr(r)
    rec = records(parse_text(r.data))
    assert set(rec) == {DISK, OTHER}, rec
    for addrs in rec.values():
        for a in addrs:
            check_address(env, a)
    if not env.peer:
        assert all(rec.values()), "no TargetAddress: %r" % rec


@row("D-03 D-04", "App. C", "SendTargets=name gives that record only; an unknown name nothing")
def send_targets_name(env, case):
    s = env.discovery()
    name = DISK if case == "D-03" else IQN + "nowhere"
    rec = records(s.text(text(SendTargets=name)))
    assert list(rec) == ([DISK] if case == "D-03" else []), rec
    assert set(records(s.text(text(SendTargets="All")))) == {DISK, OTHER}


@row("D-05 BR-20", "App. C", "SendTargets= in a normal session: the record of the own target; I/O "
     "goes on")
def send_targets_empty(env):
    s = env.session()
    rec = records(s.text(text(SendTargets="")))
    assert list(rec) == [DISK], rec
    s.run(scsi.read10(0, 1), read=512, lun=env.lun0).good()


@row("D-06", "App. C", "SendTargets=All in a normal session is rejected; nothing is listed")
def send_targets_all_in_normal(env):
    s = env.session()
    p = s.text_pdu(text(SendTargets="All"))
    s.send(p)
    r = s.recv()
    if r.opcode == P.REJECT:
        return
    assert r.opcode == P.TEXT_RSP, repr(r)
    assert parse_text(r.data) == [("SendTargets", "Reject")], r.data
    s.nop()


@row("D-07", "11.11.1, 11.11.4", "F=0 is answered F=0 with a TTT; the last answer has F=1 and none")
def text_in_two_rounds(env):
    s = env.discovery()
    p = s.text_pdu(text(SendTargets="All"), final=False)
    s.send(p)
    r = s.expect(P.TEXT_RSP, p.itt)
    assert not r.final and r.ttt != P.NONE, repr(r)
    data = r.data
    for _ in range(8):
        s.send(s.text_pdu(itt=p.itt, ttt=r.ttt, final=True))
        r = s.expect(P.TEXT_RSP, p.itt)
        data += r.data
        if r.final:
            break
    assert r.final and r.ttt == P.NONE, repr(r)
    assert set(records(parse_text(data))) == {DISK, OTHER}


@row("D-10", "13, 6.4", "login-only keys in full feature phase are rejected and change nothing")
def login_only_keys(env):
    s = env.session()
    for k, v in (("MaxConnections", "4"), ("HeaderDigest", "CRC32C"), ("ErrorRecoveryLevel", "2")):
        p = s.text_pdu(text((k, v)))
        s.send(p)
        r = s.recv()
        if r.opcode == P.REJECT:
            continue
        assert r.opcode == P.TEXT_RSP and r.itt == p.itt, repr(r)
        assert dict(parse_text(r.data)).get(k) in ("Reject", "Irrelevant"), r.data
        assert r.final, repr(r)
    s.run(scsi.read10(0, 1), read=512, lun=env.lun0).good()


@row("D-11", "6.2", "an unknown key is NotUnderstood")
def unknown_key(env):
    s = env.session()
    assert s.text(text(("X-com.example.k", "v"))) == [("X-com.example.k", "NotUnderstood")]


@row("D-12", "6.1", "C=1 F=0 gets an empty answer with a TTT; then the joined text is answered")
def continued_text(env):
    s = env.session()
    p = s.text_pdu(b"X-com.exa", final=False, c=True)
    s.send(p)
    r = s.expect(P.TEXT_RSP, p.itt)
    assert r.dsl == 0 and not r.final and r.ttt != P.NONE, repr(r)
    s.send(s.text_pdu(b"mple.joined=1\0", itt=p.itt, ttt=r.ttt))
    r = s.expect(P.TEXT_RSP, p.itt)
    assert parse_text(r.data) == [("X-com.example.joined", "NotUnderstood")], r.data
    assert r.final


@row("D-14", "6.4", "a new request with TTT=ffffffff starts a new exchange")
def exchange_restarted(env):
    s = env.session()
    p = s.text_pdu(text(("X-com.example.a", "1")), final=False)
    s.send(p)
    r = s.expect(P.TEXT_RSP, p.itt)
    assert not r.final
    s.send(s.text_pdu(text(("X-com.example.b", "1")), itt=p.itt))
    r = s.expect(P.TEXT_RSP, p.itt)
    assert r.final and parse_text(r.data) == [("X-com.example.b", "NotUnderstood")], r.data
    p = s.text_pdu(b"X-com.exa", final=False, c=True)  # half a key is forgotten as well
    s.send(p)
    assert not s.expect(P.TEXT_RSP, p.itt).final
    p = s.text_pdu(text(("Y-com.example.c", "1")))
    s.send(p)
    r = s.expect(P.TEXT_RSP, p.itt)
    assert r.final and parse_text(r.data) == [("Y-com.example.c", "NotUnderstood")], r.data


@row("D-15", "11.17.1", "an invented TTT is rejected with a copy of the header, or closed")
def invented_ttt(env):
    s = env.session()
    p = s.text_pdu(text(("X-com.example.a", "1")), ttt=0x13579BDF)
    s.send(p)
    out = s.outcome()
    if out[0] == "close":
        return
    assert out[0] == "reject", repr(out)
    assert out[2].data[:48] == bytes(p.bhs), "copy of the header differs"
    s.nop()


@row("D-17", "6.2, 7.12", "MaxRecvDataSegmentLength=511 is rejected; the old value stays")
def mrdsl_too_small(env):
    s = env.session(MaxRecvDataSegmentLength=1024)
    p = s.text_pdu(text(MaxRecvDataSegmentLength=511))
    s.send(p)
    r = s.recv()
    if r.opcode != P.REJECT:
        assert r.opcode == P.TEXT_RSP and dict(parse_text(r.data)).get(
            "MaxRecvDataSegmentLength") == "Reject", repr(r)
    t = s.run(scsi.read10(0, 8), read=4096, lun=env.lun0).good()
    assert {p.dsl for p in t.datains} == {1024}, [p.dsl for p in t.datains]


@row("D-18", "4.3", "a SCSI Command in a discovery session: Reject or close")
def scsi_in_discovery(env):
    s = env.discovery()
    t = s.start(scsi.inquiry(), read=255)
    out = s.outcome(t, 5)
    assert out[0] in ("reject", "close"), repr(out)


@row("D-19 D-20", "4.3", "discovery logout: reason 0 ends it; reason 2 is refused")
def discovery_logout(env, case):
    s = env.discovery()
    if case == "D-19":
        s.logout(0)
        return
    p = s.logout_pdu(2)
    s.send(p)
    out = s.outcome()
    assert out[0] == "reject" or (out[0] == "pdu" and out[1].opcode == P.LOGOUT_RSP and
                                  out[1].response == 2), repr(out)


@row("D-21", "4.2.2.2", "each Text Response takes one StatSN")
def stat_sn_of_text(env):
    s = env.session()
    before = s.exp_stat_sn
    s.text(text(("X-com.example.a", "1")))
    s.text(text(("X-com.example.b", "1")))
    assert (s.exp_stat_sn - before) & 0xFFFFFFFF == 2


@row("D-23", "11.11", "an empty Text Request gets an empty Text Response")
def empty_text(env):
    s = env.session()
    p = s.text_pdu()
    s.send(p)
    r = s.expect(P.TEXT_RSP, p.itt)
    assert r.final and r.dsl == 0, repr(r)


@row("D-24", "11.1", "padding is handled both ways; DataSegmentLength counts no padding")
def padding(env):
    s = env.session()
    for n in range(1, 9):
        k = "X-com.example." + "k" * n
        p = s.text_pdu(text((k, "v" * (9 - n))))
        s.send(p)
        r = s.expect(P.TEXT_RSP, p.itt)
        assert r.data == (k + "=NotUnderstood\0").encode(), r.data


@row("BR-16 BR-17", "13.8", "SendTargets shows loopback to who came over loopback, never "
     "link-local or a zone")
def addresses_shown(env):
    s = env.discovery()
    for addrs in records(s.text(text(SendTargets="All"))).values():
        for a in addrs:
            assert "%" not in a and "fe80" not in a.lower() and "0.0.0.0" not in a, a
            assert a.startswith("127.0.0.1:"), a


@row("D-26", "4.3", "a discovery session takes SendTargets and Logout only; the rest is rejected "
     "and it goes on")
def discovery_only(env):
    s = env.discovery()
    for p in (s.nop_pdu(b"ping"), s.tmf_pdu(5)):
        s.send(p)
        out = s.outcome()
        assert out[0] in ("reject", "close"), repr(out)
        if out[0] == "close":
            return
        assert set(records(s.text(text(SendTargets="All")))) == {DISK, OTHER}
    s.logout()


@row("D-27", "11.10.4", "a TTT with another ITT does not go on with the exchange; F with C is an "
     "error")
def exchange_mixed_up(env):
    s = env.session()
    p = s.text_pdu(text(("X-com.example.a", "1")), final=False)
    s.send(p)
    r = s.expect(P.TEXT_RSP, p.itt)
    s.send(s.text_pdu(itt=p.itt + 1, ttt=r.ttt))
    out = s.outcome()
    assert out[0] in ("reject", "close"), repr(out)
    s = env.session()
    s.send(s.text_pdu(text(("X-com.example.a", "1")), final=True, c=True))
    out = s.outcome()
    assert out[0] in ("reject", "close"), repr(out)


@row("D-25", "6.1, 11.11.2", "an answer longer than the initiator takes comes in pieces: C=1, F=0")
def long_answer(env):
    s = env.session(MaxRecvDataSegmentLength=512)
    keys = ["X-com.example.%02d.%s" % (i, "n" * 40) for i in range(24)]
    got = s.text(text(*[(k, "1") for k in keys]))
    assert got == [(k, "NotUnderstood") for k in keys], got
