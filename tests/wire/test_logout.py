# SPDX-License-Identifier: BSD-2-Clause
"""Logout: RFC 7143 11.14, 11.15."""

from harness import (BLK, P, SOLICITED, fill, read_back, row, scsi, status_of, text, write_waiting)
from lib.iscsi import sn_add


@row("O-01", "11.14, 11.15", "reason 0: response 0, StatSN in step, then FIN")
def close_session(env):
    s = env.session()
    r = s.logout(0)
    assert r.response == 0 and r.dsl == 0 and r.flags == 0x80


@row("O-02", "11.14, 11.15", "reason 1 for the own connection: response 0, then FIN")
def close_connection(env):
    s = env.session(cid=5)
    s.logout(1)


@row("O-03", "11.15.1", "reason 1 for an unknown CID: response 1; the connection stays")
def unknown_cid(env):
    s = env.session()
    p = s.logout_pdu(1, cid=0x4321)
    s.send(p)
    r = s.expect(P.LOGOUT_RSP, p.itt)
    assert r.response == 1, repr(r)
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()


@row("O-04", "11.15.1", "reason 2 at level 0: response 2 or Reject; the connection stays")
def recovery_not_supported(env):
    s = env.session()
    p = s.logout_pdu(2)
    s.send(p)
    out = s.outcome()
    assert out[0] == "reject" or (out[0] == "pdu" and out[1].opcode == P.LOGOUT_RSP and
                                  out[1].response == 2), repr(out)
    s.nop()


@row("O-05", "11.14.1", "a reserved reason: Reject or close")
def reserved_reason(env):
    s = env.session()
    s.send(s.logout_pdu(0x2A))
    out = s.outcome()
    assert out[0] in ("reject", "close") or (
        out[0] == "pdu" and out[1].opcode == P.LOGOUT_RSP and out[1].response == 3), repr(out)


@row("O-06", "11.14", "logout with a write waiting: response 0 and FIN, the write never answered")
def logout_beside_write(env):
    s = env.session(**SOLICITED)
    write_waiting(s, env.lun0)
    s.logout(0)  # any other PDU before the close fails in expect_close's check
    env.serves()


@row("O-07 O-08", "4.2.2.1", "a non-immediate logout takes a CmdSN and waits for its turn")
def logout_in_order(env, case):
    s = env.session()
    if case == "O-07":
        n = s.win.exp
        p = s.logout_pdu(0, immediate=False)
        s.send(p)
        r = s.expect(P.LOGOUT_RSP, p.itt)
        assert r.exp_cmd_sn == sn_add(n), repr(r)
        s.conn.expect_close()
        return
    n = s.win.cmd_sn
    p = s.logout_pdu(0, immediate=False, cmd_sn=sn_add(n))
    s.send(p)
    s.quiet(0.3)
    t = s.start(scsi.TEST_UNIT_READY, lun=env.lun0, cmd_sn=n)
    r = s.pump()
    if r is None:  # the logout ends the command, or comes after its status
        t.good()
        r = s.recv()
    assert r.opcode == P.LOGOUT_RSP and r.itt == p.itt and r.exp_cmd_sn == sn_add(n, 2), repr(r)
    s.conn.expect_close()


@row("O-09", "11.13.5", "a login with the TSIH of a closed session: 020a")
def old_tsih(env):
    s = env.session()
    s.logout()
    n = env.new(isid=s.isid, tsih=s.tsih)
    st = status_of(n, text(*n.first_pairs()), csg=1, nsg=3)
    assert st == 0x020A, "status %04x" % st


@row("O-10", "7.6", "after FIN or RST with a write waiting the unit serves a new session at once")
def lost_connection(env):
    env.need_data()
    for how in ("fin", "rst"):
        old = fill(env, 64, 16, 100)
        s = env.session(**SOLICITED)
        t, r2t, data = write_waiting(s, env.lun0, 16, 64, scsi.pattern(16 * BLK, 101))
        s.send(s.data_out_pdu(t, 0, data[:8 * BLK], r2t.ttt, 0, final=False))
        s.conn.reset() if how == "rst" else s.conn.close()
        assert read_back(env, 64, 16) == old, "half a write reached the medium"
        fill(env, 64, 16, 102)
