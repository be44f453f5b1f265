# SPDX-License-Identifier: BSD-2-Clause
"""Reject and protocol errors: RFC 7143 11.17."""

from harness import (BLK, Closed, P, SOLICITED, row, scsi, text, write_waiting)


def rejected_or_closed(s, p, reasons):
    """Reject with these reasons and the copy of the header, or a close."""
    s.send(p)
    out = s.outcome()
    if out[0] == "close":
        return None
    assert out[0] == "reject", repr(out)
    assert out[1] in reasons, "reason %02x" % out[1]
    assert out[2].data[:48] == bytes(p.bhs), "copy of the header differs: %s / %s" % (
        out[2].data[:48].hex(), p.bhs.hex())
    return out[2]


@row("R-01 R-02", "11.2.1.2, 11.17.1", "an opcode that no initiator has: Reject 05 or 04 with the "
     "header, or close")
def unknown_opcode(env, case):
    s = env.session()
    p = P.Pdu(0x0F if case == "R-01" else 0x1D, immediate=True, flags=0x80, itt=s.itt(),
              cmd_sn=s.win.cmd_sn)
    if rejected_or_closed(s, p, (4, 5)):
        s.nop()


@row("R-03", "11.17", "a Reject has byte 1 = 80h, tag ffffffff and takes a StatSN; commands go on")
def after_a_reject(env):
    s = env.session()
    stat = s.exp_stat_sn
    r = rejected_or_closed(s, P.Pdu(0x1D, immediate=True, flags=0x80, itt=s.itt(),
                                    cmd_sn=s.win.cmd_sn), (4, 5))
    if r is None:
        env.serves()
        return
    assert r.stat_sn == stat and r.flags == 0x80 and r.itt == P.NONE, repr(r)
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()


@row("R-05", "11.16", "SNACK at level 0: discarded, Reject or close")
def snack(env):
    s = env.session()
    t = s.run(scsi.read10(0, 8), read=8 * BLK, lun=env.lun0).good()
    for kind in (0, 1, 2, 3):
        p = P.Pdu(P.SNACK, flags=0x80 | kind, lun=P.lun_bytes(env.lun0), itt=t.itt,
                  ttt=P.NONE, beg_run=0, run_len=1)
        s.send(p)
        out = s.outcome(timeout=0.3)
        assert out[0] in ("silence", "reject", "close"), repr(out)
        if out[0] == "close":
            break
    env.serves()


@row("R-06", "7.13", "a Login Request in full feature phase: Reject 04 or close, never 0000")
def login_again(env):
    s = env.session()
    p = s.login_pdu(text(*s.first_pairs()), csg=1, nsg=3)
    s.send(p)
    try:
        r = s.recv()
    except Closed:
        return
    assert r.opcode == P.REJECT and r.reason == P.REJ_PROTOCOL, repr(r)


@row("R-07", "11.17.1", "a second command with a tag in use: not both GOOD")
def tag_in_use(env):
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0)
    p = P.Pdu(P.SCSI_CMD, cdb=scsi.TEST_UNIT_READY, flags=0x81, itt=t.itt,
              lun=P.lun_bytes(env.lun0), cmd_sn=s.number())
    s.send(p)
    out = s.outcome(t, 2)
    good = out[0] == "status" and out[1] == 0
    if out[0] == "reject":
        assert out[1] in (P.REJ_TASK_IN_PROGRESS, P.REJ_PROTOCOL, P.REJ_INVALID_FIELD), repr(out)
    if out[0] in ("silence", "reject"):
        s.data_out(t, 0, r2t.desired, r2t.ttt)
        s.wait(t)
    elif good:
        s.data_out(t, 0, r2t.desired, r2t.ttt)
        again = s.outcome(timeout=1)
        assert not (again[0] == "status" and again[1] == 0), "both are GOOD"
    env.serves()


@row("R-09", "11.2.2", "an AHS of unknown type: a clean reaction")
def unknown_ahs(env):
    s = env.session()
    t = s.start(scsi.TEST_UNIT_READY, lun=env.lun0, ahs=b"\x00\x05\x3f" + bytes(5))
    out = s.outcome(t, 2)
    assert out[0] in ("status", "reject", "close"), repr(out)
    env.serves()


@row("R-10 R-12", "11.2.1.8", "tag ffffffff in requests: a clean reaction")
def reserved_tag(env, case):
    s = env.session()
    if case == "R-10":
        t = s.start(scsi.TEST_UNIT_READY, lun=env.lun0, itt=P.NONE)
        s.tasks[P.NONE] = t
        out = s.outcome(t, 0.5)
        assert out[0] in ("status", "reject", "close", "silence"), repr(out)
    else:
        for p in (s.text_pdu(text(("X-com.example.a", "1")), itt=P.NONE), s.tmf_pdu(2)):
            p.itt = P.NONE
            s.send(p)
            out = s.outcome(timeout=0.5)
            if out[0] == "close":
                break
    env.serves()


@row("R-11", "11.3.6", "a data segment on a read command: a clean reaction")
def data_on_a_read(env):
    s = env.session()
    p = P.Pdu(P.SCSI_CMD, cdb=scsi.read10(0, 1), flags=0xC1, itt=s.itt(), edtl=BLK,
              lun=P.lun_bytes(env.lun0), cmd_sn=s.number(), data=bytes(16))
    s.send(p)
    try:
        r = s.recv(2)
        assert r.opcode in (P.REJECT, P.SCSI_RSP, P.DATA_IN), repr(r)
    except Closed:
        pass
    env.serves()


@row("R-13", "11.2.1.5, 13.12", "a data segment above the declared MaxRecvDataSegmentLength: "
     "Reject or close, not taken")
def segment_too_long(env):
    s = env.session(**SOLICITED)
    if s.target_mrdsl > 1 << 21:
        n = s.target_mrdsl + 4
        p = s.nop_pdu(b"")
        p.raw_lengths, p.dsl = True, min(n, 2**24 - 1)
        s.send(p)
        out = s.outcome(timeout=2)
        assert out[0] in ("close", "reject"), repr(out)
    else:
        s.send(s.nop_pdu(bytes(s.target_mrdsl + 4)))
        out = s.outcome(timeout=4)
        assert out[0] in ("close", "reject"), repr(out)
    env.serves()


@row("R-14", "11.3.1, 11.4.7.2", "a write without W and a read without R: an error, no data")
def direction_flags(env):
    s = env.session()
    t = s.start(scsi.read10(0, 1), edtl=BLK, lun=env.lun0, flags=0x81)
    out = s.outcome(t, 3)
    assert not t.datains
    assert out[0] in ("status", "reject", "close"), repr(out)
    if out[0] == "status" and out[1] == 0:
        assert t.over or t.under, "GOOD without data and without a residual"
    env.serves()


@row("R-15", "11.17.1", "a Reject for a bad Data-Out does not end the session's other tasks")
def stray_data_out(env):
    s = env.session(**SOLICITED)
    p = P.Pdu(P.DATA_OUT, flags=0x80, itt=0x77778888, ttt=0x1111, data=bytes(512))
    s.send(p)
    out = s.outcome(timeout=0.4)
    if out[0] == "reject":
        assert out[2].data[:48] == bytes(p.bhs)
    if out[0] != "close":
        s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    env.serves()
