# SPDX-License-Identifier: BSD-2-Clause
"""Data transfer: RFC 7143 4.2.5, 11.3, 11.4, 11.7, 11.8.  Data-In and R2T numbers, offsets and
burst limits are checked in lib/iscsi.py for every command of every test."""

import time

from harness import (BLK, MIB, P, SOLICITED, Skip, fails_or_closes, fill, read_back, row, scsi,
                     write_waiting)


@row("F-01 F-02", "4.2.2.4, 11.7.5, 11.7.6", "DataSN 0,1,2,... and contiguous Buffer Offsets")
def data_in_numbers(env, case):
    env.need_data()
    data = fill(env, 0, 16, 1)
    s = env.session(MaxRecvDataSegmentLength=512)
    t = s.run(scsi.read10(0, 16), read=16 * BLK, lun=env.lun0).good()
    assert len(t.datains) >= 16
    if case == "F-01":
        assert [p.data_sn for p in t.datains] == list(range(len(t.datains)))
    else:
        at = 0
        for p in t.datains:
            assert p.offset == at
            at += p.dsl
        assert at == 16 * BLK
    assert bytes(t.data) == data
    t = s.run(scsi.read10(0, 2), read=2 * BLK, lun=env.lun0).good()
    assert t.datains[0].data_sn == 0, "DataSN starts at 0 in each command"


@row("F-05", "11.7.1, 13.13", "F=1 at least every MaxBurstLength bytes and at the end")
def read_bursts(env):
    s = env.session(MaxBurstLength=1024, FirstBurstLength=512, MaxRecvDataSegmentLength=512)
    t = s.run(scsi.read10(0, 16), read=16 * BLK, lun=env.lun0).good()
    burst = 0
    for p in t.datains:
        burst += p.dsl
        assert burst <= 1024
        if p.final:
            burst = 0
    assert t.datains[-1].final and sum(p.final for p in t.datains) >= 8


@row("F-06", "11.7.3", "S only with F and GOOD; after it no SCSI Response")
def status_in_data_in(env):
    s = env.session()
    t = s.run(scsi.read10(0, 8), read=8 * BLK, lun=env.lun0).good()
    s.quiet(0.15)
    for p in t.datains[:-1]:
        assert not p.flags & 1
    t = s.run(scsi.read10(0x7FFFFFFF, 1), read=BLK, lun=env.lun0)
    assert not t.collapsed and t.status == 2


@row("F-08", "11.7.7", "Data-Ins before F carry multiples of 4 bytes")
def odd_segment_length(env):
    s = env.session(MaxRecvDataSegmentLength=1022)
    t = s.run(scsi.read10(0, 16), read=16 * BLK, lun=env.lun0).good()
    assert all(p.dsl % 4 == 0 for p in t.datains), [p.dsl for p in t.datains]
    assert len(t.data) == 16 * BLK


@row("F-09", "4.2.5.2", "256 KiB written are read back the same")
def write_and_read(env):
    env.need_data()
    s = env.session()
    data = scsi.pattern(512 * BLK, 9)
    s.run(scsi.write10(1024, 512), write=data, lun=env.lun0).good()
    t = s.run(scsi.read10(1024, 512), read=512 * BLK, lun=env.lun0).good()
    assert bytes(t.data) == data
    assert read_back(env, 1024, 512) == data


@row("F-10", "11.8", "R2Ts: flags, tags, numbers, contiguous offsets, at most MaxBurstLength")
def r2t_fields(env):
    s = env.session(MaxBurstLength=1024, FirstBurstLength=512, **SOLICITED)
    lun = env.lun0 + 1  # a LUN field that is not all zero
    s.run_ua(scsi.TEST_UNIT_READY, lun=lun).good()
    data = scsi.pattern(11 * BLK, 10)
    t = s.run(scsi.write10(64, 11), write=data, lun=lun).good()
    assert len(t.r2ts) == 6, "%d R2Ts for 5632 bytes at 1024 each" % len(t.r2ts)
    assert [p.r2t_sn for p in t.r2ts] == list(range(6))
    assert sum(p.desired for p in t.r2ts) == 11 * BLK and t.r2ts[0].offset == 0
    t = s.run(scsi.read10(64, 11), read=11 * BLK, lun=lun).good()
    assert not env.stores_data or bytes(t.data) == data


@row("F-13", "4.2.5.2", "after 512 immediate bytes the R2T begins at 512")
def r2t_after_immediate(env):
    s = env.session(ImmediateData="Yes", InitialR2T="Yes", FirstBurstLength=512)
    if s.params["ImmediateData"] != "Yes":
        raise Skip("ImmediateData is refused")
    data = scsi.pattern(8 * BLK, 13)
    t = s.start(scsi.write10(64, 8), write=data, lun=env.lun0, auto=False)
    assert len(t.pdu.data) == 512
    r = s.next_r2t(t)
    assert r.offset == 512, "R2T at %d" % r.offset
    t.auto = True
    s.data_out(t, r.offset, r.desired, r.ttt)
    s.wait(t).good()
    if env.stores_data:
        assert read_back(env, 64, 8) == data


@row("F-14", "11.3.1", "a write with all its data immediate needs no R2T")
def all_immediate(env):
    s = env.session(ImmediateData="Yes")
    data = scsi.pattern(8 * BLK, 14)
    t = s.run(scsi.write10(64, 8), write=data, lun=env.lun0).good()
    assert not t.r2ts, "R2T for data that came"
    if env.stores_data:
        assert read_back(env, 64, 8) == data


@row("F-15", "11.4.7.2", "more immediate data than FirstBurstLength: not GOOD")
def too_much_immediate(env):
    s = env.session(ImmediateData="Yes", FirstBurstLength=512)
    t = s.start(scsi.write10(64, 2), write=scsi.pattern(1024, 15), imm_data=scsi.pattern(1024, 15),
                lun=env.lun0)
    out = fails_or_closes(s.outcome(t))
    if out[0] == "status":
        t.check(0x0B, 0x0C, 0x0C)
    env.serves()


@row("F-16", "11.4.7.2", "immediate data although ImmediateData=No: not GOOD")
def unwanted_immediate(env):
    s = env.session(ImmediateData="No")
    t = s.start(scsi.write10(64, 1), write=scsi.pattern(512, 16), imm_data=scsi.pattern(512, 16),
                lun=env.lun0)
    out = fails_or_closes(s.outcome(t))
    if out[0] == "status":
        t.check(0x0B, 0x0C, 0x0C)
    env.serves()


@row("F-17", "4.2.5.2", "unsolicited Data-Out within FirstBurstLength: GOOD without R2T")
def unsolicited(env):
    s = env.session(InitialR2T="No", ImmediateData="No", MaxBurstLength=65536,
                    FirstBurstLength=65536)
    if s.params["InitialR2T"] != "No":
        raise Skip("InitialR2T=No is refused")
    data = scsi.pattern(32 * BLK, 17)
    t = s.run(scsi.write10(64, 32), write=data, lun=env.lun0).good()
    assert not t.r2ts
    if env.stores_data:
        assert read_back(env, 64, 32) == data


@row("F-18", "4.2.5.2", "the first R2T begins where the unsolicited data ended")
def r2t_after_unsolicited(env):
    s = env.session(InitialR2T="No", ImmediateData="No", FirstBurstLength=4096)
    if s.params["InitialR2T"] != "No":
        raise Skip("InitialR2T=No is refused")
    data = scsi.pattern(64 * BLK, 18)
    t = s.run(scsi.write10(64, 64), write=data, lun=env.lun0).good()
    assert t.r2ts and t.r2ts[0].offset == s.params["FirstBurstLength"], t.r2ts
    if env.stores_data:
        assert read_back(env, 64, 64) == data


@row("F-19", "4.2.5.2", "immediate, unsolicited and solicited data in one command")
def all_three(env):
    s = env.session(InitialR2T="No", ImmediateData="Yes", FirstBurstLength=16384,
                    MaxBurstLength=16384)
    if s.params["InitialR2T"] != "No":
        raise Skip("InitialR2T=No is refused")
    data = scsi.pattern(128 * BLK, 19)
    imm = data[:4096]
    t = s.start(scsi.write10(64, 128), write=data, imm_data=imm, final=False, lun=env.lun0,
                auto=True)
    t.r2t_off = 16384
    s.data_out(t, 4096, 16384 - 4096, P.NONE)
    s.wait(t).good()
    assert t.r2ts[0].offset == 16384 and len(t.r2ts) >= 3
    if env.stores_data:
        assert read_back(env, 64, 128) == data


@row("F-21", "11.4.7.2", "an unsolicited burst that ends early: 0c/0d, or an R2T for the rest; "
     "never GOOD")
def short_unsolicited(env):
    s = env.session(InitialR2T="No", ImmediateData="No", FirstBurstLength=8192,
                    MaxBurstLength=65536)
    if s.params["InitialR2T"] != "No":
        raise Skip("InitialR2T=No is refused")
    data = scsi.pattern(16 * BLK, 21)
    t = s.start(scsi.write10(64, 16), write=data, final=False, lun=env.lun0, auto=False)
    t.r2t_off = None
    s.send(s.data_out_pdu(t, 0, data[:2048], P.NONE, 0, final=True))
    out = s.outcome(t)
    if out[0] == "r2t":
        assert (out[1].offset, out[1].desired) == (2048, 6144), repr(out)
        s.data_out(t, 2048, 6144, out[1].ttt)
        s.wait(t).good()
    else:
        fails_or_closes(out)
        if out[0] == "status":
            t.check(0x0B, 0x0C, 0x0D)
    env.serves()


@row("F-22", "11.4.7.2", "half of the data that an R2T asked, with F=1: 0c/0d or a new R2T")
def short_solicited(env):
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0, 16)
    t.r2t_off = None
    s.send(s.data_out_pdu(t, 0, data[:8 * BLK], r2t.ttt, 0, final=True))
    out = s.outcome(t)
    if out[0] == "r2t":
        assert (out[1].offset, out[1].desired) == (8 * BLK, 8 * BLK), repr(out)
        s.data_out(t, 8 * BLK, 8 * BLK, out[1].ttt)
        s.wait(t).good()
    else:
        fails_or_closes(out)
        if out[0] == "status":
            t.check(0x0B, 0x0C, 0x0D)
    env.serves()


@row("F-23", "11.8.4", "512 bytes more than the R2T asked: not as if nothing happened")
def long_solicited(env):
    env.need_data()
    old = fill(env, 64, 16, 230)
    s = env.session(MaxBurstLength=2048, FirstBurstLength=512, **SOLICITED)
    data = scsi.pattern(16 * BLK, 23)
    t = s.start(scsi.write10(64, 16), write=data, lun=env.lun0, auto=False)
    r2t = s.next_r2t(t)
    t.r2t_off = None
    s.send(s.data_out_pdu(t, 0, data[:r2t.desired + 512], r2t.ttt, 0, final=True))
    fails_or_closes(s.outcome(t))
    s.conn.close()
    now = read_back(env, 64, 16)
    assert now[r2t.desired:] == old[r2t.desired:], "data beyond the R2T reached the medium"


@row("F-26", "11.17.1", "Data-Out with an unknown tag does not disturb the right data")
def data_out_unknown_tag(env):
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0, 16)
    stray = s.data_out_pdu(t, 0, data, r2t.ttt, 0)
    stray.itt = 0x5555AAAA
    s.send(stray)
    s.data_out(t, 0, r2t.desired, r2t.ttt)
    out = s.outcome(t)
    if out[0] == "reject":
        assert out[2].data[:16] == bytes(stray.bhs[:16]) and out[2].data[16:20] == \
            bytes(stray.bhs[16:20]), "copy of the header differs"
        out = s.outcome(t)
    assert out[0] in ("status", "close"), repr(out)
    if out[0] == "status" and out[1] == 0 and env.stores_data:
        assert read_back(env, 64, 16) == data


@row("F-27", "11.7.4", "Data-Out with a wrong TTT is not taken for the data")
def data_out_wrong_ttt(env):
    env.need_data()
    old = fill(env, 64, 16, 270)
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0, 16, 64, scsi.pattern(16 * BLK, 27))
    s.send(s.data_out_pdu(t, 0, data, r2t.ttt ^ 0x00010001, 0))
    out = s.outcome(t, 0.5)
    assert not (out[0] == "status" and out[1] == 0), "taken for the data"
    s.conn.close()
    assert read_back(env, 64, 16) == old, "medium changed"


@row("F-28", "11.4.5.1", "INQUIRY with EDTL 4096: U, residual = 4096 - bytes sent")
def underflow(env):
    s = env.session()
    t = s.run(scsi.inquiry(4096), read=4096, lun=env.lun0).good()
    assert t.under and not t.over and t.residual == 4096 - len(t.data), \
        "flags %02x residual %d for %d bytes" % (t.flags, t.residual, len(t.data))
    assert len(t.data) >= 36


@row("F-29", "11.4.5.1", "READ of 4 blocks with EDTL of 2: 2 blocks, O, residual 2 blocks")
def overflow(env):
    s = env.session()
    t = s.run(scsi.read10(0, 4), read=1, edtl=2 * BLK, lun=env.lun0)
    assert len(t.data) <= 2 * BLK
    assert t.over and not t.under and t.residual == 2 * BLK, \
        "status %d flags %02x residual %d" % (t.status, t.flags, t.residual)


@row("F-30", "11.3.4", "READ CAPACITY with EDTL 0: no Data-In, O with 8, or CHECK CONDITION")
def overflow_without_room(env):
    s = env.session()
    t = s.run(scsi.read_capacity10(), read=1, edtl=0, lun=env.lun0)
    assert not t.datains
    assert t.status == 2 or (t.over and t.residual == 8), \
        "flags %02x residual %d" % (t.flags, t.residual)


@row("F-31 F-32", "11.4.5.1", "WRITE with EDTL above the CDB: U and residual; below: O, no R2T "
     "beyond EDTL, or CHECK CONDITION")
def write_residuals(env, case):
    env.need_data()
    old = fill(env, 64, 8, 310)
    s = env.session(**SOLICITED)
    new = scsi.pattern(5 * BLK, 31)
    if case == "F-31":
        t = s.run(scsi.write10(64, 4), write=new, lun=env.lun0)
        if t.status == 0:
            assert t.under and t.residual == BLK, (t.flags, t.residual)
        changed = 4
    else:
        t = s.run(scsi.write10(64, 4), write=new[:3 * BLK], lun=env.lun0)
        if t.status == 0:
            assert t.over and t.residual == BLK, (t.flags, t.residual)
        changed = 3
    assert t.status in (0, 2)
    now = read_back(env, 64, 8)
    if t.status == 0:
        assert now == new[:changed * BLK] + old[changed * BLK:], "wrong blocks changed"
    else:
        assert now == old, "CHECK CONDITION, but the medium changed"


@row("F-33", "11.4.7", "an unknown opcode: 5/20/00; the data segment is SenseLength and sense")
def unknown_opcode(env):
    s = env.session()
    t = s.run(b"\xff" + bytes(15), lun=env.lun0)
    t.check(5, 0x20, 0)
    assert len(t.rsp.data) >= 2 + len(t.sense) and len(t.sense) >= 18, t.rsp.data.hex()


@row("F-34", "SAM-5 4.6.4, 11.4", "a missing LUN: INQUIRY 7fh or 5/25/00, TEST UNIT READY 5/25/00")
def missing_lun(env):
    s = env.session()
    s.run(scsi.TEST_UNIT_READY, lun=77).check(5, 0x25, 0)
    t = s.run(scsi.inquiry(), read=255, lun=77)
    if t.status == 2:
        t.check(5, 0x25, 0)
    else:
        assert t.good().data[0] == 0x7F, "peripheral byte %02x" % t.data[0]


@row("F-35", "11.4.8", "SCSI Responses: byte 1 = 80h, residuals 0, ExpDataSN counts the Data-Ins")
def response_fields(env):
    s = env.session(MaxRecvDataSegmentLength=512)
    t = s.run(scsi.TEST_UNIT_READY, lun=env.lun0).good()
    assert t.rsp.opcode == P.SCSI_RSP and t.rsp.flags == 0x80 and t.rsp.exp_data_sn == 0
    assert not any(t.rsp.bhs[40:48])
    t = s.run(scsi.read10(0, 8), read=8 * BLK, lun=env.lun0).good()
    assert not any(t.rsp.bhs[44:48])
    t = s.run(scsi.write10(0, 8), write=scsi.pattern(8 * BLK), lun=env.lun0).good()
    assert t.rsp.opcode == P.SCSI_RSP and t.rsp.flags == 0x80 and not any(t.rsp.bhs[40:48])


@row("F-36", "4.2.5.2", "two writes with interleaved Data-Outs are both right")
def interleaved_writes(env):
    env.need_data()
    s = env.session(**SOLICITED)
    a, ra, da = write_waiting(s, env.lun0, 16, 64, scsi.pattern(16 * BLK, 361))
    b, rb, db = write_waiting(s, env.lun0, 16, 96, scsi.pattern(16 * BLK, 362))
    for i in range(16):
        for t, r, d in ((a, ra, da), (b, rb, db)):
            s.send(s.data_out_pdu(t, i * BLK, d[i * BLK:(i + 1) * BLK], r.ttt, i, final=i == 15))
    s.wait(a, b)
    a.good(), b.good()
    assert read_back(env, 64, 16) == da and read_back(env, 96, 16) == db


@row("F-37", "4.2.5", "eight reads at once: each tag gets its own data")
def parallel_reads(env):
    env.need_data()
    data = fill(env, 256, 64, 37)
    s = env.session()
    ts = [s.start(scsi.read10(256 + 8 * i, 8), read=8 * BLK, lun=env.lun0) for i in range(8)]
    for i, t in enumerate(s.wait(*ts)):
        assert bytes(t.good().data) == data[8 * i * BLK:8 * (i + 1) * BLK], "read %d" % i


@row("F-38", "11.3.1", "task attributes 0..3 are accepted")
def task_attributes(env):
    s = env.session()
    for attr in range(4):
        s.run(scsi.read10(0, 1), read=BLK, lun=env.lun0, attr=attr).good()


@row("F-39", "SBC-3 5.11, 5.33", "READ and WRITE of no blocks: GOOD, no data")
def no_blocks(env):
    s = env.session()
    for cdb in (scsi.read10(0, 0), scsi.write10(0, 0), scsi.read16(0, 0), scsi.write16(0, 0)):
        t = s.run(cdb, lun=env.lun0).good()
        assert not t.datains and not t.r2ts


@row("F-40", "11.3.5", "16-byte CDBs")
def sixteen_byte_cdbs(env):
    s = env.session()
    data = scsi.pattern(8 * BLK, 40)
    s.run(scsi.write16(72, 8), write=data, lun=env.lun0).good()
    t = s.run(scsi.read16(72, 8), read=8 * BLK, lun=env.lun0).good()
    assert len(t.data) == 8 * BLK and (not env.stores_data or bytes(t.data) == data)


@row("F-41", "SBC-3", "READ past the end or straddling it: 5/21/00, no Data-In")
def past_the_end(env):
    s = env.session()
    cap = s.run(scsi.read_capacity10(), read=8, lun=env.lun0).good()
    last = int.from_bytes(cap.data[:4], "big")
    for lba, n in ((last + 1, 1), (last, 2), (last + 100, 8)):
        t = s.run(scsi.read10(lba, n), read=n * BLK, lun=env.lun0)
        t.check(5, 0x21, 0)
        assert not t.datains
    s.run(scsi.read10(last, 1), read=BLK, lun=env.lun0).good()


@row("F-42", "11.8", "1 MiB by bursts of 64 KiB: R2TSN consecutive, data intact")
def one_mib(env):
    s = env.session(MaxBurstLength=65536, FirstBurstLength=65536, MaxRecvDataSegmentLength=65536,
                    **SOLICITED)
    data = scsi.pattern(MIB, 42)
    t = s.run(scsi.write10(2048, 2048), write=data, lun=env.lun0).good()
    assert len(t.r2ts) >= 16
    t = s.run(scsi.read10(2048, 2048), read=MIB, lun=env.lun0).good()
    assert not env.stores_data or bytes(t.data) == data


@row("F-43", "11.4.2", "no response before the unsolicited data with F=1 has come")
def response_waits_for_data(env):
    s = env.session(InitialR2T="No", ImmediateData="No", FirstBurstLength=8192)
    if s.params["InitialR2T"] != "No":
        raise Skip("InitialR2T=No is refused")
    data = scsi.pattern(8 * BLK, 43)
    t = s.start(scsi.write10(0x7FFFFFF0, 8), write=data, final=False, lun=env.lun0, auto=False)
    s.quiet(0.6)
    s.data_out(t, 0, 8 * BLK, P.NONE)
    s.wait(t)
    t.check(5, 0x21, 0)


@row("F-44", "4.2.5.1", "all PDUs of a task come on the connection of its command")
def two_sessions(env):
    a, b = env.session(), env.session()
    ta = a.start(scsi.read10(0, 64), read=64 * BLK, lun=env.lun0, itt=0x01010101)
    tb = b.start(scsi.read10(64, 64), read=64 * BLK, lun=env.lun0, itt=0x01010101)
    a.wait(ta).good(), b.wait(tb).good()
    a.quiet(0.1)
    b.quiet(0.1)


@row("F-45", "11.8, 13.17", "MaxOutstandingR2T=4: at most four R2Ts open, data intact")
def several_r2ts(env):
    s = env.session(MaxBurstLength=4096, FirstBurstLength=4096, MaxOutstandingR2T=4, **SOLICITED)
    n = s.params["MaxOutstandingR2T"]
    data = scsi.pattern(64 * BLK, 45)
    t = s.start(scsi.write10(64, 64), write=data, lun=env.lun0, auto=False)
    opened = []
    while not t.done:
        try:
            assert s.pump(0.15) is None
        except Exception as e:
            if type(e).__name__ != "Silent":
                raise
            assert t.r2ts[len(opened):], "neither R2T nor status"
            assert len(t.r2ts) - len(opened) <= n, "%d R2Ts open" % (len(t.r2ts) - len(opened))
            r = t.r2ts[len(opened)]
            opened.append(r)
            s.data_out(t, r.offset, r.desired, r.ttt)
    t.good()
    if env.stores_data:
        assert read_back(env, 64, 64) == data


@row("F-46", "11.7.5", "Data-Out with a gap in DataSN is not taken silently")
def data_out_gap(env):
    s = env.session(**SOLICITED)
    t, r2t, data = write_waiting(s, env.lun0, 16)
    s.send(s.data_out_pdu(t, 0, data[:BLK], r2t.ttt, 0, final=False))
    s.send(s.data_out_pdu(t, BLK, data[BLK:], r2t.ttt, 5, final=True))
    fails_or_closes(s.outcome(t))
    env.serves()


@row("F-47", "11.7.6, 4.2.5.2", "as many bytes as asked, but some twice and others never: not GOOD")
def data_out_overlap(env):
    env.need_data()
    old = fill(env, 64, 16, 470)
    for second in (0, 4 * BLK):
        s = env.session(**SOLICITED)
        t, r2t, data = write_waiting(s, env.lun0, 16, 64, scsi.pattern(16 * BLK, 471))
        s.send(s.data_out_pdu(t, 0, data[:8 * BLK], r2t.ttt, 0, final=False))
        s.send(s.data_out_pdu(t, second, data[:8 * BLK], r2t.ttt, 1, final=True))
        out = s.outcome(t, 2)
        assert out[0] != "status" or out[1] != 0, "GOOD, though half of the data never came"
        s.conn.close()
        assert read_back(env, 64, 16) == old, "medium changed"


# ---- bug reports -------------------------------------------------------------------------------

@row("BR-22", "11.7.6, 11.8", "Data-Out beyond the buffer, beyond the R2T, with wrong TTT or "
     "DataSN: an error, the medium unchanged")
def data_out_out_of_bounds(env):
    env.need_data()
    old = fill(env, 64, 4, 220)
    data = scsi.pattern(4 * BLK, 22)
    for what, change in (("offset", dict(offset=0xFFFFFE00)), ("edtl", dict(offset=BLK)),
                         ("datasn", dict(data_sn=7)), ("ttt", dict(ttt=0x31415926)),
                         ("near", dict(offset=2)), ("long", dict(data=data))):
        s = env.session(**SOLICITED)
        t, r2t, _ = write_waiting(s, env.lun0, 1, 64, data[:BLK])
        p = s.data_out_pdu(t, 0, data[:BLK], r2t.ttt, 0)
        for k, v in change.items():
            setattr(p, k, v)
        s.send(p)
        out = s.outcome(t, 1)
        assert out[0] != "status" or out[1] != 0, "%s: GOOD" % what
        s.conn.close()
        assert read_back(env, 64, 4) == old, "%s: medium changed" % what
    env.serves()


@row("BR-23", "11.3.4", "128 one-block READs with EDTL 7fffffff: no memory in proportion, U and "
     "residual")
def huge_edtl(env):
    s = env.session()
    before = env.d.rss()
    for _ in range(4):
        ts = [s.start(scsi.read10(i, 1), read=1, edtl=0x7FFFFFFF, lun=env.lun0)
              for i in range(min(32, s.win.room()))]
        for t in s.wait(*ts):
            t.good()
            assert t.under and t.residual == 0x7FFFFFFF - BLK, (t.flags, t.residual)
    grown = env.d.rss() - before
    assert grown < 64 * MIB, "RSS grew by %d MiB" % (grown // MIB)


@row("BR-25", "11.1", "a 64 KiB write in TCP segments of 1, 47 and 1460 bytes, headers split "
     "anywhere: the same data", 60)
def cut_segments(env):
    env.need_data()
    for size in (47, 1460):
        s = env.session(**SOLICITED)
        t, r2t, data = write_waiting(s, env.lun0, 128, 64, scsi.pattern(128 * BLK, size))
        p = s.data_out_pdu(t, 0, data, r2t.ttt, 0) if s.target_mrdsl >= len(data) else None
        if p is not None:
            raw = p.encode(s.conn.hdigest, s.conn.ddigest)
        else:
            raw = b"".join(s.data_out_pdu(t, o, data[o:o + 8192], r2t.ttt, o // 8192,
                                          o + 8192 == len(data)).encode(
                                              s.conn.hdigest, s.conn.ddigest)
                           for o in range(0, len(data), 8192))
        for i in range(0, len(raw), size):
            s.conn.send_bytes(raw[i:i + size])
        s.wait(t).good()
        got = s.run(scsi.read10(64, 128), read=128 * BLK, lun=env.lun0).good()
        assert bytes(got.data) == data, "segments of %d" % size
    s = env.session(**SOLICITED)
    for cut in range(1, 48, 3):  # header cut at this byte; both parts as their own segment
        t, r2t, data = write_waiting(s, env.lun0, 1, 64, scsi.pattern(BLK, cut))
        raw = s.data_out_pdu(t, 0, data, r2t.ttt, 0).encode(s.conn.hdigest, s.conn.ddigest)
        s.conn.send_bytes(raw[:cut])
        time.sleep(0.002)
        s.conn.send_bytes(raw[cut:])
        s.wait(t).good()
    for i in range(2):  # one byte a segment
        t, r2t, data = write_waiting(s, env.lun0, 2, 64, scsi.pattern(2 * BLK, 77 + i))
        for b in s.data_out_pdu(t, 0, data, r2t.ttt, 0).encode(s.conn.hdigest, s.conn.ddigest):
            s.conn.send_bytes(bytes((b,)))
        s.wait(t).good()
    assert read_back(env, 64, 2) == data


@row("BR-26", "11.4.5.1", "WRITE(10) residuals: GOOD with O/U and only the right blocks, or CHECK "
     "CONDITION and none")
def write10_residuals(env):
    env.need_data()
    for given, asked in ((1, 2), (4, 2)):
        old = fill(env, 64, 8, 260 + given)
        s = env.session(ImmediateData="Yes")
        new = scsi.pattern(given * BLK, 26 + given)
        t = s.run(scsi.write10(64, asked), write=new, lun=env.lun0)
        diff = abs(given - asked) * BLK
        now = read_back(env, 64, 8)
        k = min(given, asked) * BLK
        if t.status == 0:
            assert t.residual == diff and (t.over if asked > given else t.under), \
                (given, asked, t.flags, t.residual)
            assert now == new[:k] + old[k:], "wrong blocks"
        else:
            assert t.status == 2 and now == old, "CHECK CONDITION, medium changed"


@row("BR-27", "11.2.3", "data digests over lengths that are no multiple of 4 cover the padding")
def digest_of_odd_lengths(env):
    s = env.session(DataDigest="CRC32C", HeaderDigest="None")
    assert s.conn.ddigest, "DataDigest=CRC32C alone was not agreed"
    for n in (5, 6, 7, 37, 255):  # the receiver checks digest and padding
        t = s.run(scsi.inquiry(n), read=n, lun=env.lun0).good()
        assert len(t.data) == min(n, t.data[4] + 5 if n > 4 else n), (n, len(t.data))
    t = s.run(scsi.mode_sense6(0x3F, 37), read=37, lun=env.lun0).good()
    assert 0 < len(t.data) <= 37
    t = s.run(b"\xff" + bytes(5), lun=env.lun0)
    t.check(5, 0x20)
    s.nop(b"abc")


@row("BR-35", "11.4.5.1", "allocation length above EDTL is no error: 36 bytes and the residual")
def allocation_above_edtl(env):
    s = env.session()
    t = s.run(scsi.inquiry(255), read=1, edtl=36, lun=env.lun0).good()
    assert len(t.data) == 36
    full = s.run(scsi.inquiry(255), read=255, lun=env.lun0).good()
    if len(full.data) > 36:
        assert t.over and t.residual == len(full.data) - 36, (t.flags, t.residual)
    for cdb, n in ((scsi.report_luns(1024), 16), (scsi.read_capacity16(32), 12)):
        t = s.run(cdb, read=1, edtl=n, lun=env.lun0).good()
        assert len(t.data) == n, len(t.data)


@row("BR-68", "11.8", "no R2T beyond EDTL and none above MaxBurstLength, also when the CDB wants "
     "more")
def no_r2t_beyond_edtl(env):
    s = env.session(MaxBurstLength=1024, FirstBurstLength=512, **SOLICITED)
    t = s.run(scsi.write10(64, 16), write=scsi.pattern(6 * BLK, 68), lun=env.lun0)
    assert all(r.desired <= 1024 and r.offset + r.desired <= 6 * BLK for r in t.r2ts)
    assert t.status == 2 or (t.over and t.residual == 10 * BLK), (t.status, t.flags, t.residual)
