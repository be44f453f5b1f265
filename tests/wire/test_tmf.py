# SPDX-License-Identifier: BSD-2-Clause
"""Task management: RFC 7143 4.2.3, 11.5, 11.6."""

import time

from harness import (BLK, Closed, P, SOLICITED, Silent, Skip, fill, read_back, row, scsi,
                     write_waiting)
from lib.iscsi import sn_add

ABORT, ABORT_SET, CLEAR_ACA, CLEAR_SET, LU_RESET, WARM, COLD, REASSIGN = range(1, 9)
QUERY, QUERY_SET, NEXUS_RESET, QUERY_EVENT = range(9, 13)  # RFC 7144
COMPLETE, NO_TASK, NO_LUN, ALLEGIANT, NO_REASSIGN, UNSUPPORTED, NO_AUTH, SUCCEEDED, REJECTED = (
    0, 1, 2, 3, 4, 5, 6, 7, 255)


def silent_and_alive(s, env):
    """Nothing more for the aborted task; the next command works."""
    s.quiet(0.2)
    s.run_ua(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()


@row("T-01", "11.5.1, 11.6.1", "ABORT TASK of a running task: 0, nothing more for it, the next "
     "command works")
def abort_task(env):
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0)
    assert s.tmf(ABORT, lun=env.lun0, rtt=t.itt, ref_cmd_sn=t.pdu.cmd_sn) == COMPLETE
    silent_and_alive(s, env)


@row("T-02", "11.6.1", "ABORT TASK of an unknown tag with RefCmdSN below the window: 1")
def abort_unknown(env):
    s = env.session()
    r = s.tmf(ABORT, lun=env.lun0, rtt=0x7A7A7A7A, ref_cmd_sn=sn_add(s.win.exp, -1))
    assert r == NO_TASK, "response %d" % r


@row("T-03", "11.5.5, 11.6.1", "ABORT TASK of a command that never came, RefCmdSN in the window: 0 "
     "and the number counts as received")
def abort_lost_command(env):
    s = env.session()
    n = s.win.cmd_sn
    s.win.note(n)
    p = s.tmf_pdu(ABORT, lun=env.lun0, rtt=0x66660001, ref_cmd_sn=n, immediate=True,
                  cmd_sn=sn_add(n))
    s.send(p)
    r = s.expect(P.TMF_RSP, p.itt)
    assert r.response == COMPLETE, "response %d" % r.response
    t = s.start(scsi.TEST_UNIT_READY, lun=env.lun0, cmd_sn=sn_add(n))
    s.wait(t).good()
    assert t.rsp.exp_cmd_sn == sn_add(n, 2), "ExpCmdSN %08x" % t.rsp.exp_cmd_sn
    s.win.cmd_sn = sn_add(n, 2)
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()


@row("T-04 T-05", "4.2.3, 11.6.1", "ABORT TASK SET and CLEAR TASK SET: 0, nothing more for the "
     "task")
def task_set(env, case):
    s = env.session(**SOLICITED)
    write_waiting(s, env.lun0)
    r = s.tmf(ABORT_SET if case == "T-04" else CLEAR_SET, lun=env.lun0)
    if case == "T-05" and r == UNSUPPORTED:
        return
    assert r == COMPLETE, "response %d" % r
    silent_and_alive(s, env)


@row("T-06", "11.5.1", "LOGICAL UNIT RESET: 0, the task is gone, the unit serves again")
def lun_reset(env):
    s = env.session(**SOLICITED)
    write_waiting(s, env.lun0)
    assert s.tmf(LU_RESET, lun=env.lun0) == COMPLETE
    silent_and_alive(s, env)


@row("T-07", "SAM-5 5.14, 6.3.3", "the reset of a unit is a unit attention 6/29/xx for the others")
def reset_tells_others(env):
    a, b = env.session(), env.session()
    b.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    assert a.tmf(LU_RESET, lun=env.lun0) == COMPLETE
    t = b.run(scsi.TEST_UNIT_READY, lun=env.lun0)
    t.check(6, 0x29)
    b.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()


@row("T-08", "11.5.1", "TARGET WARM RESET: 0, 5, 6 or 255; the connection stays")
def warm_reset(env):
    s = env.session()
    r = s.tmf(WARM)
    assert r in (COMPLETE, UNSUPPORTED, NO_AUTH, REJECTED), "response %d" % r
    s.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()


@row("T-09", "11.5.1", "TARGET COLD RESET: 0 and all connections closed, or 5, 6, 255")
def cold_reset(env):
    s = env.session()
    p = s.tmf_pdu(COLD)
    s.send(p)
    try:
        r = s.expect(P.TMF_RSP, p.itt)
        if r.response != COMPLETE:
            assert r.response in (UNSUPPORTED, NO_AUTH, REJECTED), "response %d" % r.response
            s.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()
            return
        s.conn.expect_close()
    except Closed:
        pass
    env.serves()


@row("T-10", "11.6.1", "function 55h: 5 or 255, or Reject")
def unknown_function(env):
    s = env.session()
    p = s.tmf_pdu(0x55)
    s.send(p)
    r = s.recv()
    assert r.opcode == P.REJECT or (r.opcode == P.TMF_RSP and r.itt == p.itt and
                                    r.response in (UNSUPPORTED, REJECTED)), repr(r)
    s.nop()


@row("T-11", "11.6.1", "task management for a missing LUN: 2")
def missing_lun(env):
    s = env.session()
    for f in (ABORT_SET, LU_RESET, CLEAR_SET):
        r = s.tmf(f, lun=99)
        assert r == NO_LUN, "function %d: response %d" % (f, r)


@row("T-12", "11.6.1", "TASK REASSIGN at level 0: 4 (5 tolerated) or Reject")
def reassign(env):
    s = env.session()
    p = s.tmf_pdu(REASSIGN, lun=env.lun0, rtt=0x123, ref_cmd_sn=sn_add(s.win.cmd_sn, -1))
    s.send(p)
    r = s.recv()
    assert r.opcode == P.REJECT or (r.opcode == P.TMF_RSP and r.response in
                                    (NO_REASSIGN, UNSUPPORTED)), repr(r)
    s.nop()


@row("T-13", "4.2.2.1", "only the non-immediate request takes a CmdSN; each response a StatSN")
def tmf_numbers(env):
    s = env.session()
    exp, stat = s.win.exp, s.exp_stat_sn
    assert s.tmf(ABORT_SET, lun=env.lun0, immediate=True) == COMPLETE
    assert s.win.exp == exp
    assert s.tmf(ABORT_SET, lun=env.lun0, immediate=False) == COMPLETE
    assert s.win.exp == sn_add(exp)
    assert s.exp_stat_sn == sn_add(stat, 2)


@row("T-14", "4.2.2.1", "an immediate abort with another write open: 0, that write GOOD, the first "
     "silent")
def abort_beside_immediate_write(env):
    s = env.session(**SOLICITED)
    t1, r1, d1 = write_waiting(s, env.lun0, 16, 64)
    t2 = s.start(scsi.write10(96, 4), write=scsi.pattern(4 * BLK, 14), lun=env.lun0,
                 immediate=True)
    r2 = s.next_r2t(t2)
    p = s.tmf_pdu(ABORT, lun=env.lun0, rtt=t1.itt, ref_cmd_sn=t1.pdu.cmd_sn)
    s.send(p)
    s.data_out(t2, 0, r2.desired, r2.ttt)
    answered = None
    while answered is None or not t2.done:
        q = s.pump()
        if q is not None:
            assert q.opcode == P.TMF_RSP and q.itt == p.itt, repr(q)
            answered = q.response
    assert answered == COMPLETE
    t2.good()
    s.quiet(0.2)


@row("T-15", "4.2.3.3", "data for an aborted task: ignored or Reject, the medium unchanged")
def data_after_abort(env):
    env.need_data()
    old = fill(env, 64, 16, 150)
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0, 16, 64, scsi.pattern(16 * BLK, 15))
    assert s.tmf(ABORT, lun=env.lun0, rtt=t.itt, ref_cmd_sn=t.pdu.cmd_sn) == COMPLETE
    s.data_out(t, 0, r2t.desired, r2t.ttt)
    try:
        r = s.recv(0.3)
        assert r.opcode == P.REJECT, repr(r)
    except Silent:
        pass
    s.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    assert read_back(env, 64, 16) == old, "the aborted write reached the medium"


@row("T-16", "SAM-5 7.2", "ABORT TASK SET of one session leaves the tasks of others alone")
def other_sessions_tasks(env):
    a, b = env.session(**SOLICITED), env.session(**SOLICITED)
    t, r2t, data = write_waiting(b, env.lun0)
    assert a.tmf(ABORT_SET, lun=env.lun0) == COMPLETE
    b.data_out(t, 0, r2t.desired, r2t.ttt)
    b.wait(t).good()


@row("T-17", "11.6.1", "ABORT TASK of a task that was answered: 1")
def abort_answered(env):
    s = env.session()
    t = s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    r = s.tmf(ABORT, lun=env.lun0, rtt=t.itt, ref_cmd_sn=t.pdu.cmd_sn)
    assert r == NO_TASK, "response %d" % r


@row("T-18", "11.5.1", "CLEAR ACA: 0 or 5")
def clear_aca(env):
    s = env.session()
    r = s.tmf(CLEAR_ACA, lun=env.lun0)
    assert r in (COMPLETE, UNSUPPORTED), "response %d" % r


@row("T-19", "11.5.1", "LOGICAL UNIT RESET ends the tasks of all sessions; those get no answer but "
     "a unit attention later")
def reset_ends_others_tasks(env):
    a, b = env.session(**SOLICITED), env.session(**SOLICITED)
    t, r2t, data = write_waiting(b, env.lun0)
    assert a.tmf(LU_RESET, lun=env.lun0) == COMPLETE
    b.quiet(0.2)
    x = b.run(scsi.TEST_UNIT_READY, lun=env.lun0)
    x.check(6)
    b.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()


# "The target iSCSI layer ... MUST wait for responses on currently valid Target Transfer Tags of the
# affected tasks from the issuing initiator" (4.2.3.3, for functions that concern several tasks).

@row("T-20 T-21 T-22 T-23", "4.2.3.3", "ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET and "
     "TARGET WARM RESET are answered after the last Data-Out of the R2Ts that were open, not before")
def waits_for_data(env, case):
    env.need_data()
    function = {"T-20": ABORT_SET, "T-21": CLEAR_SET, "T-22": LU_RESET, "T-23": WARM}[case]
    old = fill(env, 64, 32, 150)
    s = env.session(**SOLICITED)
    t1, r1, d1 = write_waiting(s, env.lun0, 16, 64, scsi.pattern(16 * BLK, 15))
    t2, r2, d2 = write_waiting(s, env.lun0, 16, 80, scsi.pattern(16 * BLK, 16))
    p = s.tmf_pdu(function, lun=env.lun0)
    s.send(p)
    s.quiet(0.3)
    s.data_out(t1, 0, r1.desired, r1.ttt)
    s.quiet(0.3)  # one is still open
    s.send(s.data_out_pdu(t2, 0, d2[:8 * BLK], r2.ttt, 0, final=False))
    s.quiet(0.3)  # not its last
    s.send(s.data_out_pdu(t2, 8 * BLK, d2[8 * BLK:], r2.ttt, 1, final=True))
    r = s.expect(P.TMF_RSP, p.itt)
    if function == WARM and r.response in (UNSUPPORTED, NO_AUTH, REJECTED):
        return
    assert r.response == COMPLETE, "response %d" % r.response
    silent_and_alive(s, env)
    assert read_back(env, 64, 32) == old, "an aborted write reached the medium"


@row("T-24", "4.2.3.3", "commands that come while a function waits for data are not of those it "
     "ends")
def newer_commands_run(env):
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0)
    p = s.tmf_pdu(ABORT_SET, lun=env.lun0)
    s.send(p)
    s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0, immediate=True).good()
    s.data_out(t, 0, r2t.desired, r2t.ttt)
    assert s.expect(P.TMF_RSP, p.itt).response == COMPLETE
    silent_and_alive(s, env)


@row("T-25", "4.2.3.3", "data that never come hold a reset back for a few seconds only, and data "
     "after that harm nobody")
def data_never_come(env):
    env.need_data()
    old = fill(env, 64, 16, 150)
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0, 16, 64, scsi.pattern(16 * BLK, 15))
    began = time.monotonic()
    assert s.tmf(LU_RESET, lun=env.lun0, timeout=8) == COMPLETE
    assert 1 < time.monotonic() - began < 6
    s.data_out(t, 0, r2t.desired, r2t.ttt)
    s.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    assert read_back(env, 64, 16) == old, "the aborted write reached the medium"


@row("T-26", "4.2.3.3", "ABORT TASK concerns one task: it does not wait for its data")
def abort_one_does_not_wait(env):
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0)
    began = time.monotonic()
    assert s.tmf(ABORT, lun=env.lun0, rtt=t.itt, ref_cmd_sn=t.pdu.cmd_sn) == COMPLETE
    assert time.monotonic() - began < 1
    silent_and_alive(s, env)


@row("T-27", "4.2.3.3", "a connection that ends while a function waits for data: nothing is left")
def lost_while_waiting(env):
    s = env.session(**SOLICITED)
    write_waiting(s, env.lun0)
    s.send(s.tmf_pdu(LU_RESET, lun=env.lun0))
    s.quiet(0.2)
    s.conn.reset()
    env.serves()


# Protocol level 2: the functions of RFC 7144.  Response 7, function succeeded, says that there is
# what was asked for, and 0, function complete, that there is not (SAM-5 7).

def level_two(env, **kw):
    s = env.session(iSCSIProtocolLevel="2", **kw)
    if env.peer and s.answers["iSCSIProtocolLevel"] != "2":
        raise Skip("the peer has no protocol level 2")
    assert s.answers["iSCSIProtocolLevel"] == "2"
    return s


def tmf_response(s, function, want, **kw):
    """The answer, whose other fields are reserved here."""
    p = s.tmf_pdu(function, **kw)
    s.send(p)
    r = s.expect(P.TMF_RSP, p.itt)
    assert r.response == want, "function %d: response %d, not %d" % (function, r.response, want)
    assert not any(r.bhs[3:16]), r.bhs[:16].hex()


@row("V-02", "RFC 7144; SAM-5 7", "QUERY TASK: 7 for a task that has not ended, 0 for one that has, "
     "was never there, is of another unit or another session; 2 for a missing LUN; the task goes on")
def query_task(env):
    s = level_two(env, **SOLICITED)
    other = level_two(env, **SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0)
    me = dict(rtt=t.itt, ref_cmd_sn=t.pdu.cmd_sn)
    for immediate in (True, False):
        tmf_response(s, QUERY, SUCCEEDED, lun=env.lun0, immediate=immediate, **me)
    tmf_response(s, QUERY, COMPLETE, lun=env.lun0, rtt=0x7A7A7A7A, ref_cmd_sn=t.pdu.cmd_sn)
    tmf_response(s, QUERY, COMPLETE, lun=env.lun0 + 1, **me)
    tmf_response(s, QUERY, NO_LUN, lun=99, **me)
    tmf_response(other, QUERY, COMPLETE, lun=env.lun0, **me)
    s.data_out(t, 0, r2t.desired, r2t.ttt)
    s.wait(t).good()
    tmf_response(s, QUERY, COMPLETE, lun=env.lun0, **me)


@row("V-06", "RFC 7144; SAM-5 7", "QUERY TASK SET: 7 while this session has a task at the unit, else "
     "0; QUERY ASYNCHRONOUS EVENT: 7 while a unit attention is pending, which stays so, else 0; 2 "
     "for a missing LUN")
def query_set_and_event(env):
    s, other = level_two(env, **SOLICITED), level_two(env)
    tmf_response(s, QUERY_SET, COMPLETE, lun=env.lun0)
    t, r2t, data = write_waiting(s, env.lun0)
    for immediate in (True, False):
        tmf_response(s, QUERY_SET, SUCCEEDED, lun=env.lun0, immediate=immediate)
    tmf_response(s, QUERY_SET, COMPLETE, lun=env.lun0 + 1)
    tmf_response(s, QUERY_SET, NO_LUN, lun=99)
    tmf_response(other, QUERY_SET, COMPLETE, lun=env.lun0)
    s.data_out(t, 0, r2t.desired, r2t.ttt)
    s.wait(t).good()
    tmf_response(s, QUERY_SET, COMPLETE, lun=env.lun0)

    tmf_response(s, QUERY_EVENT, COMPLETE, lun=env.lun0)
    tmf_response(s, QUERY_EVENT, NO_LUN, lun=99)
    assert other.tmf(LU_RESET, lun=env.lun0) == COMPLETE
    for _ in range(2):
        tmf_response(s, QUERY_EVENT, SUCCEEDED, lun=env.lun0)
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).check(6, 0x29)
    s.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    tmf_response(s, QUERY_EVENT, COMPLETE, lun=env.lun0)
    other.run_ua(scsi.TEST_UNIT_READY, lun=env.lun0).good()


# An I_T nexus loss (SAM-5 6.3.4) without the end of the session.
@row("V-03", "RFC 7144; SAM-5 6.3.4", "I_T NEXUS RESET: 0; the tasks of this session end at every "
     "unit, its reservation goes, each unit has unit attention 6/29/07 for it; the tasks and the unit "
     "attentions of another session are as they were")
def nexus_reset(env):
    env.need_data()
    old = fill(env, 64, 32, 160)
    s, other = level_two(env, **SOLICITED), level_two(env, **SOLICITED)
    luns = (env.lun0, env.lun0 + 1)
    for x in (s, other):
        for lun in luns:
            x.run_ua(scsi.TEST_UNIT_READY, lun=lun).good()
    theirs, r2t, data = write_waiting(other, env.lun0, 16, 128)
    s.run(bytes((0x16, 0, 0, 0, 0, 0)), lun=luns[1]).good()  # RESERVE
    assert other.run(scsi.TEST_UNIT_READY, lun=luns[1]).status == 0x18
    mine = [write_waiting(s, lun, 16, 64, scsi.pattern(16 * BLK, 161)) for lun in luns]
    p = s.tmf_pdu(NEXUS_RESET)
    s.send(p)
    for t, r, d in mine:  # 4.2.3.3: not answered before the data that were asked for have come
        s.quiet(0.2)
        s.data_out(t, 0, r.desired, r.ttt)
    r = s.expect(P.TMF_RSP, p.itt)
    assert r.response == COMPLETE, "response %d" % r.response
    for lun in luns:
        s.run(scsi.TEST_UNIT_READY, lun=lun).check(6, 0x29, 7)
        s.run(scsi.TEST_UNIT_READY, lun=lun).good()
    s.quiet(0.2)
    assert read_back(env, 64, 16) == old[:16 * BLK], "an aborted write reached the medium"
    other.run(scsi.TEST_UNIT_READY, lun=luns[1]).good()
    other.data_out(theirs, 0, r2t.desired, r2t.ttt)
    other.wait(theirs).good()
    tmf_response(s, NEXUS_RESET, COMPLETE, lun=99)  # the field is not its own: it is of no unit
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).check(6, 0x29, 7)
    tmf_response(other, QUERY_EVENT, COMPLETE, lun=env.lun0)


@row("V-04", "RFC 7144, 11.6.1", "at protocol level 1, agreed or by default, functions 9..12 are 5 "
     "or 255, or Reject, and so is 13 at level 2")
def level_two_functions(env):
    for keys, functions in (({}, (9, 10, 11, 12)), ({"iSCSIProtocolLevel": "1"}, (9, 10, 11, 12)),
                            ({"iSCSIProtocolLevel": "2"}, (13,))):
        s = env.session(**keys)
        for f in functions:
            p = s.tmf_pdu(f, lun=env.lun0, rtt=0x1234, ref_cmd_sn=sn_add(s.win.cmd_sn, -1))
            s.send(p)
            r = s.recv()
            assert r.opcode == P.REJECT or (r.opcode == P.TMF_RSP and r.response in
                                            (UNSUPPORTED, REJECTED)), "function %d: %r" % (f, r)
        s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()  # and no unit attention


@row("V-05", "RFC 7144", "priority bits in byte 2 of a SCSI Command are accepted")
def priority_bits(env):
    for level in ("1", "2"):
        s = env.session(iSCSIProtocolLevel=level)
        for bits in (0x0F, 0xF0, 0xFF, 0x10):
            p = P.Pdu(P.SCSI_CMD, cdb=scsi.TEST_UNIT_READY, flags=0x81, itt=s.itt(),
                      lun=P.lun_bytes(env.lun0), cmd_sn=s.number())
            p.bhs[2] = bits
            s.send(p)
            r = s.expect(P.SCSI_RSP, p.itt)
            assert r.status == 0, repr(r)


@row("V-07", "RFC 7144, 11.4", "no status qualifier at level 1: those bytes of a SCSI Response are "
     "reserved there; this target has none to report at level 2 either")
def no_status_qualifier(env):
    holder = env.session()
    for level in ("1", "2"):
        s = env.session(iSCSIProtocolLevel=level)
        ended = [(2, s.run(bytes((0xFF,)) + bytes(5), lun=env.lun0))]
        holder.run(bytes((0x16, 0, 0, 0, 0, 0)), lun=env.lun0).good()
        ended.append((0x18, s.run(scsi.TEST_UNIT_READY, lun=env.lun0)))
        holder.run(bytes((0x17, 0, 0, 0, 0, 0)), lun=env.lun0).good()
        ended.append((0, s.run(scsi.TEST_UNIT_READY, lun=env.lun0)))
        for status, t in ended:
            assert t.status == status, "status %02x, not %02x" % (t.status, status)
            assert not any(t.rsp.bhs[8:16]), t.rsp.bhs[:16].hex()


@row("BR-28", "11.6.1", "abort of a queued, a running, a finished and an unknown task; one "
     "response a tag; LUN RESET afterwards completes", 30)
def abort_races(env):
    s = env.session(**SOLICITED)
    for i in range(20):
        t1, r1, d1 = write_waiting(s, env.lun0, 2048, 2048)
        t2 = s.start(scsi.read10(0, 512), read=512 * BLK, lun=env.lun0)
        p2 = s.tmf_pdu(ABORT, lun=env.lun0, rtt=t2.itt, ref_cmd_sn=t2.pdu.cmd_sn)
        p1 = s.tmf_pdu(ABORT, lun=env.lun0, rtt=t1.itt, ref_cmd_sn=t1.pdu.cmd_sn)
        p0 = s.tmf_pdu(ABORT, lun=env.lun0, rtt=0x5AFE0000 + i, ref_cmd_sn=sn_add(s.win.exp, -1))
        for p in (p2, p1, p0):
            s.send(p)
        got = {}
        while len(got) < 3:
            q = s.pump()
            if q is not None:
                assert q.opcode == P.TMF_RSP and q.itt not in got, repr(q)
                got[q.itt] = q.response
                if q.itt == p2.itt and q.response == NO_TASK:
                    assert t2.done, "response 1 for a task that was not answered"
        assert got[p1.itt] == COMPLETE and got[p0.itt] == NO_TASK and got[p2.itt] in (0, 1), got
        assert not t1.done and t2.done == (got[p2.itt] == NO_TASK), (t2.done, got)
        s.tasks.clear()
    began = time.monotonic()
    assert s.tmf(LU_RESET, lun=env.lun0) == COMPLETE
    assert time.monotonic() - began < 2
    silent_and_alive(s, env)
