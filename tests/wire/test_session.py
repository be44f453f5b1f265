# SPDX-License-Identifier: BSD-2-Clause
"""Sessions: second logins, reinstatement, connections with one CID (RFC 7143 4.4, 6.3.1, 6.3.4,
6.3.5, 7.4.2)."""

import time

from harness import (BLK, Closed, IQN, OTHER, P, SOLICITED, fill, read_back, row, scsi, status_of,
                     text, write_waiting)


@row("M-05", "11.13.5", "MaxConnections=1: a second connection gets 0206; the first is unharmed")
def second_connection(env):
    s = env.session(cid=1)
    n = env.new(isid=s.isid, tsih=s.tsih, cid=2, cmd_sn=s.win.cmd_sn)
    st = status_of(n, text(*n.first_pairs()), csg=1, nsg=3)
    assert st in (0x0206, 0x0208), "status %04x" % st
    s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()


@row("M-08", "11.12.6", "the TSIH of a session with another ISID: 020a; the session is unharmed")
def tsih_of_another(env):
    s = env.session()
    n = env.new(tsih=s.tsih, cid=7)
    assert n.isid != s.isid
    st = status_of(n, text(*n.first_pairs()), csg=1, nsg=3)
    assert st in (0x020A, 0x0208, 0x0200), "status %04x" % st
    s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()


@row("M-13", "11.12.6", "the TSIH of a session under another InitiatorName is no key to it")
def tsih_other_initiator(env):
    s = env.session()
    n = env.new(isid=s.isid, tsih=s.tsih, initiator=IQN + "thief")
    st = status_of(n, text(*n.first_pairs()), csg=1, nsg=3)
    assert st >> 8 == 2, "status %04x" % st
    s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()


@row("I-01", "6.3.5", "same name and ISID with TSIH=0: a new session, the old connection is closed")
def reinstatement(env):
    a = env.session()
    b = env.session(isid=a.isid)
    assert b.tsih != 0
    a.conn.expect_close(5)
    b.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()


@row("I-02 I-03", "4.4, 6.3.5", "another InitiatorName or another ISID: an independent session")
def independent_sessions(env, case):
    a = env.session()
    b = env.session(isid=a.isid, initiator=IQN + "second") if case == "I-02" else env.session()
    assert a.tsih != b.tsih
    a.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    b.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()


@row("I-04", "6.3.4", "same TSIH and CID: the new connection takes the place of the old one")
def connection_reinstatement(env):
    a = env.session(cid=3)
    b = env.new(isid=a.isid, tsih=a.tsih, cid=3, cmd_sn=a.win.cmd_sn, window=a.win).login()
    assert b.tsih == a.tsih
    a.conn.expect_close(5)
    b.run_ua(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    b.logout()


@row("I-05", "6.3.5", "session reinstatement ends a waiting write: no answer, the medium unchanged")
def reinstatement_ends_tasks(env):
    env.need_data()
    old = fill(env, 64, 16, 50)
    a = env.session(**SOLICITED)
    t, r2t, data = write_waiting(a, env.lun0, 16, 64, scsi.pattern(16 * BLK, 51))
    a.send(a.data_out_pdu(t, 0, data[:4 * BLK], r2t.ttt, 0, final=False))
    b = env.session(isid=a.isid)
    for p in a.conn.expect_close(5):
        assert p.opcode == P.ASYNC, repr(p)
    b.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    assert read_back(env, 64, 16) == old


@row("I-06", "6.3.5", "failed and unfinished logins with its ISID leave the session alone")
def failed_reinstatement(env):
    a = env.session()
    n = env.new(isid=a.isid)
    n.must(n.login_step(text(*n.first_pairs()), csg=1, t=False))
    bad = env.new(IQN + "nowhere", isid=a.isid)
    assert status_of(bad, text(*bad.first_pairs()), csg=1, nsg=3) == 0x0203
    a.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    n.conn.close()
    a.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()


@row("I-07", "7.4.2", "a discovery session with the same ISID leaves the normal session alone")
def discovery_beside(env):
    a = env.session()
    d = env.discovery(isid=a.isid)
    d.text(text(SendTargets="All"))
    a.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
    d.logout()
    a.run(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()


@row("I-08", "4.4", "the same name and ISID at another target is another session")
def same_isid_other_target(env):
    a = env.session()
    b = env.session(OTHER, isid=a.isid)
    a.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    b.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()


@row("BR-50", "6.3.5", "a login with the same ISID reinstates at once although the old "
     "connection is half open")
def reinstates_half_open(env):
    isid = None
    for _ in range(20):
        s = env.session(**({"isid": isid} if isid else {}), settle=False)
        isid = s.isid
        began = time.monotonic()
        s.run_ua(scsi.read10(0, 1), read=BLK, lun=env.lun0).good()
        assert time.monotonic() - began < 3  # the connection before is left open, unanswered
    env.serves()


@row("V-08", "6.3.5", "two logins at once with one name and ISID: in the end exactly one session "
     "serves")
def racing_reinstatement(env):
    a = env.new()
    b = env.new(isid=a.isid)
    for s in (a, b):
        s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
    for s in (a, b):
        s.send(s.login_pdu(csg=1, nsg=3))
    alive = 0
    for s in (a, b):
        try:
            r = s.recv(3)
            assert r.opcode == P.LOGIN_RSP, repr(r)
            if r.status_class:
                continue
            s.full_feature = True
        except Closed:
            pass
    time.sleep(0.1)
    for s in (a, b):
        try:
            if s.full_feature:
                s.nop(b"alive", timeout=3)
                alive += 1
        except Closed:
            pass
    assert alive == 1, "%d sessions serve" % alive
