# SPDX-License-Identifier: BSD-2-Clause
"""CmdSN, StatSN and the command window: RFC 7143 4.2.2."""

from harness import (BLK, SOLICITED, row, scsi, text, write_waiting)
from lib.iscsi import sn_add


@row("N-01", "4.2.2.1", "MaxCmdSN is never below ExpCmdSN-1 and the window is below 2^31")
def window_sane(env):
    s = env.session()
    data = scsi.pattern(4 * BLK, 1)
    for i in range(10):  # Window.see checks each response
        if i % 3 == 0:
            s.run(scsi.write10(32, 4), write=data, lun=env.lun0).good()
        elif i % 3 == 1:
            s.run(scsi.read10(32, 4), read=4 * BLK, lun=env.lun0).good()
        else:
            s.run(scsi.inquiry(), read=255, lun=env.lun0).good()
        assert s.win.exp == s.win.cmd_sn, "ExpCmdSN %08x after an idle moment" % s.win.exp
        assert s.win.room() >= 1, "window shut with nothing to do"


@row("N-02", "4.2.2.1", "a CmdSN far above MaxCmdSN is silently ignored")
def far_above_the_window(env):
    s = env.session()
    sn, sent = s.win.cmd_sn, s.win.sent
    t = s.start(scsi.TEST_UNIT_READY, lun=env.lun0, cmd_sn=sn_add(s.win.max, 10000))
    s.win.sent = sent  # ExpCmdSN must not follow it
    s.quiet(0.3)
    s.tasks.pop(t.itt)
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    assert s.win.exp == sn_add(sn)


@row("N-03", "4.2.2.1", "MaxCmdSN+1 is outside the window, MaxCmdSN inside")
def just_above_the_window(env):
    s = env.session()
    sent, mx = s.win.sent, s.win.max
    t = s.start(scsi.TEST_UNIT_READY, lun=env.lun0, cmd_sn=sn_add(mx))
    s.win.sent = sent
    s.quiet(0.2)
    s.tasks.pop(t.itt)
    n = s.win.room()
    if n > 4096:
        return
    ts = [s.start(scsi.TEST_UNIT_READY, lun=env.lun0) for _ in range(n)]
    for t in s.wait(*ts) if n > 1 else [s.wait(*ts)]:
        t.good()


@row("N-05", "4.2.2.2", "StatSN rises by one with each status, from login into full feature phase")
def stat_sn_throughout(env):
    s = env.session(settle=False)  # every response is checked against the one before
    start = s.exp_stat_sn
    n = 0
    for i in range(4):
        s.run_ua(scsi.inquiry(), read=255, lun=env.lun0).good()
        s.run_ua(scsi.read10(0, 16), read=16 * BLK, lun=env.lun0).good()
        s.nop(b"abcd")
        s.run(scsi.write10(0, 2), write=scsi.pattern(2 * BLK, i), lun=env.lun0).good()
        s.run(b"\xff" + bytes(5), lun=env.lun0).check(5, 0x20, 0)
        s.text(text(("X-com.example.a", "1")))
        assert s.tmf(1, lun=env.lun0, rtt=0x7777, ref_cmd_sn=sn_add(s.win.cmd_sn, -1)) in (0, 1)
        n += 7
    got = (s.exp_stat_sn - start) & 0xFFFFFFFF
    assert n <= got <= n + 4, "StatSN moved by %d for %d statuses" % (got, n)


@row("N-06", "11.8", "R2T shows the next StatSN, the status that follows has it")
def r2t_shows_stat_sn(env):
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0)
    assert r2t.stat_sn == s.exp_stat_sn
    s.data_out(t, r2t.offset, r2t.desired, r2t.ttt)
    s.wait(t).good()
    assert t.rsp.stat_sn == r2t.stat_sn, "R2T %08x, status %08x" % (r2t.stat_sn, t.rsp.stat_sn)


@row("N-07", "4.2.2.1", "an immediate command runs and takes no CmdSN")
def immediate_command(env):
    s = env.session()
    before = s.win.exp
    t = s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0, immediate=True).good()
    assert t.rsp.exp_cmd_sn == before, "ExpCmdSN moved to %08x" % t.rsp.exp_cmd_sn


@row("N-08", "4.2.2.1", "a command that came too early waits for the number before it")
def command_out_of_order(env):
    s = env.session()
    n = s.win.cmd_sn
    early = s.start(scsi.inquiry(), read=255, lun=env.lun0, cmd_sn=sn_add(n))
    s.quiet(0.8)
    late = s.start(scsi.TEST_UNIT_READY, lun=env.lun0, cmd_sn=n)
    while not late.done:
        assert not early.done, "N+1 was answered before N"
        s.pump()
    s.wait(early).good()
    late.good()
    s.win.cmd_sn = sn_add(n, 2)
    assert s.nop().exp_cmd_sn == sn_add(n, 2)


@row("N-09", "4.2.2.1", "CmdSN wraps from ffffffff to 0")
def cmd_sn_wraps(env):
    s = env.session(cmd_sn=0xFFFFFFFD, settle=False)
    for i in range(8):
        s.run_ua(scsi.inquiry(), read=255, lun=env.lun0).good()
    assert s.win.exp == s.win.cmd_sn and s.win.exp < 0x100, "%08x" % s.win.exp


@row("N-10", "4.2.2.1", "the whole window in one burst is answered and the window reopens")
def whole_window(env):
    s = env.session()
    for _ in range(2):
        n = s.win.room()
        assert n >= 2, "window of %d" % n
        ts = [s.start(scsi.read10(i % 64, 1), read=BLK, lun=env.lun0) for i in range(min(n, 2048))]
        for t in s.wait(*ts):
            t.good()
        assert s.nop().exp_cmd_sn == s.win.cmd_sn
        assert s.win.room() >= 2, "window stays shut: %d" % s.win.room()


@row("N-11 N-12", "7.2.1", "a duplicate of a command in the window is dropped, the original ends "
     "once")
def duplicate_command(env, case):
    env.need_data()
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0, 16, 128, scsi.pattern(16 * BLK, 11))
    sent = 0
    if case == "N-12":
        s.send(s.data_out_pdu(t, 0, data[:4 * BLK], r2t.ttt, 0, final=False))
        sent = 4 * BLK
    s.send(t.pdu)
    s.quiet(0.2)
    s.send(s.data_out_pdu(t, sent, data[sent:r2t.desired], r2t.ttt, 1 if sent else 0))
    s.wait(t).good()
    s.quiet(0.1)
    got = s.run(scsi.read10(128, 16), read=16 * BLK, lun=env.lun0).good()
    assert bytes(got.data) == data


@row("BR-24", "4.2.2.1", "CmdSN above MaxCmdSN and below ExpCmdSN are both ignored")
def outside_the_window(env):
    s = env.session()
    for sn in (sn_add(s.win.exp, -1), sn_add(s.win.exp, -1000), sn_add(s.win.max, 1),
               sn_add(s.win.max, 0x7FFFFFF0)):
        sent = s.win.sent
        t = s.start(scsi.TEST_UNIT_READY, lun=env.lun0, cmd_sn=sn)
        s.win.sent = sent
        s.quiet(0.15)
        s.tasks.pop(t.itt)
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()


@row("N-13", "4.2.2.1", "a gap in CmdSN fills by any kind of request: NOP, text, TMF, logout wait "
     "their turn")
def non_immediate_requests_wait(env):
    s = env.session()
    n = s.win.cmd_sn
    ping = s.nop_pdu(b"late", immediate=False, cmd_sn=sn_add(n, 2))
    s.send(ping)
    tx = s.text_pdu(text(("X-com.example.a", "1")), cmd_sn=sn_add(n, 1))
    s.send(tx)
    s.quiet(0.2)
    t = s.start(scsi.TEST_UNIT_READY, lun=env.lun0, cmd_sn=n)
    others = []
    while not t.done or len(others) < 2:  # statuses may come in any order
        p = s.pump()
        if p is not None:
            others.append(p)
    t.good()
    assert [p.itt for p in others] == [tx.itt, ping.itt], others
    assert s.win.exp == sn_add(n, 3)
