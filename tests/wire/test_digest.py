# SPDX-License-Identifier: BSD-2-Clause
"""Header and data digests: RFC 7143 7.8, 11.2.3, 13.1.  The receiver in lib/iscsi.py checks the
digests, the padding under them and that nothing without data carries a data digest."""

from harness import (BLK, P, SOLICITED, fill, read_back, row, scsi, text, write_waiting)

BOTH = dict(HeaderDigest="CRC32C", DataDigest="CRC32C")


def mixed(env, s):
    data = scsi.pattern(16 * BLK, 3)
    s.run(scsi.write10(64, 16), write=data, lun=env.lun0).good()
    t = s.run(scsi.read10(64, 16), read=16 * BLK, lun=env.lun0).good()
    assert not env.stores_data or bytes(t.data) == data
    s.run(b"\xff" + bytes(5), lun=env.lun0).check(5, 0x20)
    for n in (0, 1, 2, 3, 4, 5, 1000):
        s.nop(scsi.pattern(n, n))
    assert s.tmf(2, lun=env.lun0) == 0


@row("G-01 G-02", "13.1, 11.2.3", "CRC32C alone is agreed for one digest and used from then on")
def one_digest(env, case):
    h, d = ("CRC32C", "None") if case == "G-01" else ("None", "CRC32C")
    s = env.session(HeaderDigest=h, DataDigest=d)
    assert (s.params["HeaderDigest"], s.params["DataDigest"]) == (h, d), s.params
    mixed(env, s)


@row("G-03", "11.2.3", "both digests over all kinds of data and a CHECK CONDITION")
def both_digests(env):
    s = env.session(MaxRecvDataSegmentLength=2048, **BOTH)
    assert s.conn.hdigest and s.conn.ddigest
    mixed(env, s)
    s2 = env.session(InitialR2T="No", FirstBurstLength=4096, **BOTH)
    data = scsi.pattern(64 * BLK, 33)
    s2.run(scsi.write10(64, 64), write=data, lun=env.lun0).good()
    if env.stores_data:
        assert read_back(env, 64, 64) == data


@row("G-05", "11.2.3", "no data digest without data")
def no_digest_without_data(env):
    s = env.session(HeaderDigest="None", DataDigest="CRC32C")
    assert s.conn.ddigest
    for _ in range(3):  # a stray digest would be taken for the next header
        s.nop()
        s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    s.quiet(0.1)


@row("G-06", "7.8", "a command with a wrong header digest is never executed nor answered")
def wrong_header_digest(env):
    env.need_data()
    old = fill(env, 64, 4, 60)
    s = env.session(**BOTH)
    t = s.start(scsi.write10(64, 4), write=scsi.pattern(4 * BLK, 61), lun=env.lun0,
                bad_hdigest=True)
    out = s.outcome(t, 0.5)
    assert out[0] in ("close", "silence"), repr(out)
    s.conn.close()
    assert read_back(env, 64, 4) == old, "the write was executed"


@row("G-07", "7.8", "immediate data with a wrong digest: Reject 02 or close; the medium unchanged")
def wrong_immediate_digest(env):
    env.need_data()
    old = fill(env, 64, 4, 70)
    s = env.session(HeaderDigest="None", DataDigest="CRC32C", ImmediateData="Yes")
    t = s.start(scsi.write10(64, 4), write=scsi.pattern(4 * BLK, 71), lun=env.lun0,
                bad_ddigest=True)
    out = s.outcome(t, 3)
    if out[0] == "reject":
        assert out[1] == P.REJ_DATA_DIGEST and out[2].data[:48] == bytes(t.pdu.bhs), repr(out)
    else:
        assert out[0] == "close", repr(out)
    s.conn.close()
    assert read_back(env, 64, 4) == old


@row("G-08", "7.8", "a Data-Out with a wrong digest: Reject 02 and then an R2T or CHECK CONDITION, "
     "or close; the medium unchanged")
def wrong_data_out_digest(env):
    env.need_data()
    old = fill(env, 64, 16, 80)
    s = env.session(HeaderDigest="None", DataDigest="CRC32C", **SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0, 16, 64, scsi.pattern(16 * BLK, 81))
    t.r2t_off = None
    p = s.data_out_pdu(t, 0, data, r2t.ttt, 0)
    s.send(p, bad_ddigest=True)
    out = s.outcome(t, 3)
    if out[0] == "reject":
        assert out[1] == P.REJ_DATA_DIGEST and out[2].data[:48] == bytes(p.bhs), repr(out)
        out = s.outcome(t, 3)
        assert out[0] in ("r2t", "status", "close"), repr(out)
    else:
        assert out[0] in ("close", "status"), repr(out)
    assert out[0] != "status" or out[1] != 0, "GOOD"
    s.conn.close()
    assert read_back(env, 64, 16) == old


@row("G-09", "7.8", "a ping with a wrong data digest: Reject 02 or close")
def wrong_ping_digest(env):
    s = env.session(HeaderDigest="None", DataDigest="CRC32C")
    p = s.nop_pdu(b"wrong")
    s.send(p, bad_ddigest=True)
    out = s.outcome(timeout=3)
    if out[0] == "reject":
        assert out[1] == P.REJ_DATA_DIGEST and out[2].data[:48] == bytes(p.bhs), repr(out)
        s.nop(b"right")
    else:
        assert out[0] == "close", repr(out)


@row("G-10", "13.1", "login PDUs carry no digest, the first PDU after them does")
def digests_begin_after_login(env):
    s = env.session(settle=False, **BOTH)  # the final response was read without, this one with
    assert s.conn.hdigest
    s.nop(b"first")


@row("G-11", "11.2.3", "text exchange and logout under digests")
def text_and_logout(env):
    s = env.session(**BOTH)
    assert s.text(text(("X-com.example.k", "v"))) == [("X-com.example.k", "NotUnderstood")]
    s.logout()


@row("H-41", "7.8", "255 words of AHS under a wrong header digest: dropped or closed")
def long_ahs_wrong_digest(env):
    s = env.session(**BOTH)
    p = P.Pdu(P.SCSI_CMD, cdb=scsi.TEST_UNIT_READY, flags=0x81, itt=s.itt(),
              lun=P.lun_bytes(env.lun0), cmd_sn=s.number(), ahs=b"\x5a" * 1020)
    s.send(p, bad_hdigest=True)
    out = s.outcome(timeout=0.5)
    assert out[0] in ("silence", "close", "reject"), repr(out)
    env.serves()
