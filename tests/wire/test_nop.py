# SPDX-License-Identifier: BSD-2-Clause
"""NOP-Out and NOP-In: RFC 7143 11.18, 11.19."""

from harness import (P, SOLICITED, Lun, MIB, Target, default_targets, row, scsi, write_waiting)
from lib.iscsi import sn_add


def targets():
    return default_targets() + [Target("pinger", [Lun("ping.img", MIB)],
                                       ["initiator-address ALL", "nop_interval 1",
                                        "nop_count 2"])]


@row("P-01 P-02", "11.18, 11.19", "an answer echoes ITT, has TTT ffffffff, takes a StatSN; "
     "CmdSN only without I")
def ping(env, case):
    s = env.session()
    exp, stat = s.win.exp, s.exp_stat_sn
    r = s.nop(immediate=case == "P-01")
    assert r.flags == 0x80 and r.ttt == P.NONE and r.dsl == 0, repr(r)
    assert s.exp_stat_sn == sn_add(stat)
    assert r.exp_cmd_sn == (exp if case == "P-01" else sn_add(exp)), repr(r)


@row("P-03 P-04", "11.19", "ping data come back, the same bytes and length")
def ping_data(env, case):
    s = env.session()
    for n in (4, 200, 4096) if case == "P-03" else (1, 2, 3, 13):
        data = scsi.pattern(n, n)
        assert s.nop(data).data == data


@row("P-05", "11.18, 13.12", "more ping data than the initiator's MaxRecvDataSegmentLength are cut")
def ping_data_cut(env):
    s = env.session(MaxRecvDataSegmentLength=512)
    r = s.nop(scsi.pattern(2000, 5))  # nop() compares the first 512 bytes
    assert r.dsl <= 512


@row("P-06", "11.18", "ITT ffffffff with I=1: no answer")
def no_answer_wanted(env):
    s = env.session()
    s.send(s.nop_pdu(b"quiet", immediate=True, itt=P.NONE))
    s.quiet(0.3)
    s.nop()


@row("P-07", "11.18", "a ping is answered while a write waits for data")
def ping_beside_write(env):
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0)
    s.nop(b"between", timeout=1)
    s.data_out(t, 0, r2t.desired, r2t.ttt)
    s.wait(t).good()


@row("P-08", "11.18", "a pong to no ping: ignored, Reject or close; no NOP-In")
def pong_without_ping(env):
    s = env.session()
    s.send(s.nop_pdu(immediate=True, itt=P.NONE, ttt=0x0BADF00D))
    out = s.outcome(timeout=0.4)
    assert out[0] in ("silence", "reject", "close"), repr(out)
    if out[0] != "close":
        s.nop()
    env.serves()


@row("P-09", "11.18.1", "ITT ffffffff with I=0 is a protocol error: ignored, Reject or close")
def no_answer_but_not_immediate(env):
    s = env.session()
    s.send(s.nop_pdu(immediate=False, itt=P.NONE))
    out = s.outcome(timeout=0.4)
    assert out[0] in ("silence", "reject", "close"), repr(out)
    env.serves()


@row("P-10", "11.19", "the target's ping: ITT ffffffff, TTT valid, StatSN shown but not taken; the "
     "session lives on when it is answered")
def ping_of_the_target(env):
    env.need_evtgt()
    s = env.session(env.d.targets[2].name, settle=False)
    s.auto_pong = False
    stat = s.exp_stat_sn
    for _ in range(2):
        p = s.recv(4)
        assert p.opcode == P.NOP_IN and p.itt == P.NONE and p.ttt != P.NONE and p.dsl == 0, repr(p)
        assert s.exp_stat_sn == stat
        s.pong(p)
    s.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    s.nop()


@row("P-11", "11.19, BR-50", "who does not answer the target's pings is dropped")
def unanswered_pings(env):
    env.need_evtgt()
    s = env.session(env.d.targets[2].name, settle=False)
    s.auto_pong = False
    seen = s.conn.expect_close(9)
    assert 1 <= len(seen) <= 5 and all(p.opcode in (P.NOP_IN, P.ASYNC) for p in seen), seen
