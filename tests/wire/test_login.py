# SPDX-License-Identifier: BSD-2-Clause
"""Login and negotiation: RFC 7143 section 6, 11.12, 11.13, 13."""

from harness import (Closed, DISK, IQN, P, offer, refused, row, scsi, status_of, text)
from lib.iscsi import number, parse_text


@row("L-01", "6.3, 11.12, 11.13", "a login by way of the security stage transits to 1, then to 3")
def security_stage_first(env):
    s = env.new()
    r = s.login_step(text(*(s.first_pairs() + [("AuthMethod", "None")])), csg=0, nsg=1,
                     itt=0xCAFE0001)
    assert r.status_class == 0 and r.flags == 0x81, repr(r)
    assert ("AuthMethod", "None") in s.take_text(r.data), "AuthMethod is not answered"
    r = s.login_step(text(*s.op_pairs()), csg=1, nsg=3)
    s.must(r)
    s.take_text(r.data)
    if r.flags & 0x83 != 0x83:
        r = s.login_step(csg=1, nsg=3)
        assert r.flags & 0x83 == 0x83, repr(r)
    s.finish(r)
    s.nop(b"x")


@row("L-02", "11.13.3", "ISID is echoed; TSIH stays 0 until the final response and is not 0 there")
def tsih_only_at_the_end(env):
    s = env.new()
    r = s.login_step(text(*s.first_pairs()), csg=1, t=False)
    assert r.isid == s.isid and r.tsih == 0 and r.status_class == 0
    s.take_text(r.data)
    r = s.login_step(csg=1, nsg=3)
    assert r.isid == s.isid and r.flags & 0x83 == 0x83 and r.tsih != 0, repr(r)


@row("L-03", "6.3, 11.12.3", "the first request may be in stage 1 with all keys; at most one more "
     "empty round")
def straight_to_operational(env):
    s = env.new()
    s.offers = dict(s.op_pairs())
    r = s.login_step(text(*(s.first_pairs() + s.op_pairs())), csg=1, nsg=3)
    s.must(r)
    s.take_text(r.data)
    if r.flags & 0x83 != 0x83:
        r = s.login_step(csg=1, nsg=3)
    assert r.flags & 0x83 == 0x83 and r.status_class == 0, repr(r)
    s.finish(r).nop()


@row("L-04", "11.12.3", "CSG=0 NSG=3 must lead on, to 3 or by way of 1")
def security_straight_to_full_feature(env):
    s = env.new()
    r = s.login_step(text(*(s.first_pairs() + [("AuthMethod", "None")])), csg=0, nsg=3)
    s.must(r)
    assert ("AuthMethod", "None") in s.take_text(r.data)
    assert r.flags & 0x80, "no transit: dead end"
    if r.flags & 3 == 1:
        r = s.login_step(csg=1, nsg=3)
        s.must(r)
    assert r.flags & 0x83 == 0x83
    s.full_feature = True
    s.nop()


@row("L-05", "11.13.6", "T=0 is answered by T=0; a later T=1 may proceed")
def no_transit_unasked(env):
    s = env.new()
    r = s.login_step(text(*s.first_pairs()), csg=1, t=False)
    assert r.status_class == 0 and r.flags & 0x80 == 0
    s.take_text(r.data)
    r = s.login_step(csg=1, nsg=3)
    assert r.flags & 0x83 == 0x83, repr(r)


@row("L-06", "6.1, 11.12.2", "C=1 is answered by an empty response with T=0, C=0; text is judged "
     "only when whole")
def continued_text_anywhere(env):
    whole = text(*(env.new().first_pairs() + [("HeaderDigest", "None")]))
    for cut in (1, 7, 14, 20, len(whole) - 30, len(whole) - 1):
        s = env.new()
        r = s.login_step(whole[:cut], csg=1, t=False, c=True)
        assert r.status_class == 0 and r.flags & 0xC0 == 0 and r.dsl == 0, \
            "cut at %d: %r" % (cut, r)
        r = s.login_step(whole[cut:], csg=1, nsg=3)
        s.must(r)
        assert ("HeaderDigest", "None") in s.take_text(r.data), "cut at %d" % cut
        s.conn.close()


@row("L-07", "6.1", "a key name and a value cut over three PDUs are joined, in the operational "
     "stage too")
def continued_over_three(env):
    s = env.new()
    r = s.login_step(text(*(s.first_pairs() + [("AuthMethod", "None")])), csg=0, nsg=1)
    s.must(r)
    s.take_text(r.data)
    whole = text(("HeaderDigest", "None"), ("MaxBurstLength", "65536"))
    name, val = whole.index(b"MaxBu") + 4, whole.index(b"65536") + 2
    for part in (whole[:name], whole[name:val]):
        r = s.login_step(part, csg=1, t=False, c=True)
        assert r.status_class == 0 and r.dsl == 0 and r.flags & 0xC0 == 0, repr(r)
    s.offers = {"MaxBurstLength": "65536", "HeaderDigest": "None"}
    r = s.login_step(whole[val:], csg=1, nsg=3)
    s.must(r)
    got = dict(s.take_text(r.data))
    assert got.get("HeaderDigest") == "None" and 512 <= number(got["MaxBurstLength"]) <= 65536


@row("L-08", "11.12.2", "C=1 with T=1 is refused or closed, no transit")
def continue_and_transit(env):
    s = env.new()
    refused(s, text(*s.first_pairs()), csg=1, nsg=3, t=True, c=True)


@row("L-09", "4.2.2.2", "StatSN of login responses rises by exactly 1 from any start")
def stat_sn_in_login(env):
    s = env.new()
    seen = []
    data = text(*s.first_pairs())
    for _ in range(4):
        r = s.login_step(data, csg=1, t=False)
        assert r.status_class == 0
        seen.append(r.stat_sn)
        data = b""
    assert [(x - seen[0]) & 0xFFFFFFFF for x in seen] == [0, 1, 2, 3], seen


@row("L-10", "11.12.8, 4.2.2.1", "login takes no CmdSN; the first command uses the login's number")
def login_takes_no_number(env):
    s = env.session(cmd_sn=0x12345678, settle=False)
    assert s.win.exp == 0x12345678, "ExpCmdSN %08x" % s.win.exp
    s.run(scsi.inquiry(), read=255, lun=env.lun0).good()
    assert s.win.exp == 0x12345679, "ExpCmdSN %08x" % s.win.exp


@row("L-11 L-13", "11.12.4, 11.13.1, 11.13.2", "Version-active and Version-max are 0, also for an "
     "offer up to 5")
def version(env, case):
    s = env.new()
    r = s.login_step(text(*s.first_pairs()), csg=1, nsg=3, version_min=0,
                     version_max=0 if case == "L-11" else 5)
    assert r.status_class == 0 and r.version_active == 0 and r.version_max == 0, repr(r)


@row("L-14 L-15", "6.3.1, 13.4, 13.5", "without InitiatorName, or TargetName in a normal session: "
     "status 0207")
def missing_name(env, case):
    s = env.new()
    pairs = [p for p in s.first_pairs()
             if p[0] != ("InitiatorName" if case == "L-14" else "TargetName")]
    st = status_of(s, text(*pairs), csg=1, nsg=3)
    assert st == 0x0207, "status %04x" % st


@row("L-16", "13.21", "no SessionType means Normal: needs TargetName, and accepts with it")
def session_type_defaults_to_normal(env):
    s = env.new()
    st = status_of(s, text(("InitiatorName", s.initiator)), csg=1, nsg=3)
    assert st == 0x0207, "without TargetName: status %04x" % st
    s = env.new()
    r = s.login_step(text(("InitiatorName", s.initiator), ("TargetName", s.target)), csg=1, nsg=3)
    s.must(r)
    assert r.flags & 0x83 == 0x83
    s.finish(r).run_ua(scsi.inquiry(), read=255, lun=env.lun0).good()


@row("L-17", "11.13.5", "an unknown TargetName is answered by 0203")
def unknown_target(env):
    s = env.new(IQN + "nowhere")
    st = status_of(s, text(*s.first_pairs()), csg=1, nsg=3)
    assert st == 0x0203, "status %04x" % st


@row("L-18", "13.21, 11.13.5", "SessionType=nonsense makes no progress")
def nonsense_session_type(env):
    s = env.new()
    p = s.login_pdu(text(("InitiatorName", s.initiator), ("SessionType", "Nonsense"),
                         ("TargetName", s.target)), csg=1, nsg=3)
    s.send(p)
    try:
        r = s.conn.recv()
    except Closed:
        return
    if r.status_class:
        assert r.status_class == 2, repr(r)
        return
    assert ("SessionType", "Reject") in parse_text(r.data) and not r.flags & 0x80, repr(r)


@row("L-19", "11.13.5", "after a failed login the target closes the connection itself")
def closes_after_failure(env):
    for target, want in ((IQN + "nowhere", 0x0203), (None, 0x0207)):
        s = env.new(target)
        pairs = [p for p in s.first_pairs() if p[1] is not None]
        r = s.login_step(text(*pairs), csg=1, nsg=3)
        assert r.status_class << 8 | r.status_detail == want, repr(r)
        assert s.conn.expect_close(4) == []


@row("L-20 L-21", "11.12.3", "stage 2 as CSG or as NSG is refused")
def reserved_stage(env, case):
    s = env.new()
    csg, nsg = (2, 3) if case == "L-20" else (1, 2)
    refused(s, text(*s.first_pairs()), csg=csg, nsg=nsg)


@row("L-22", "6.3", "stages never go back")
def back_to_security(env):
    s = env.new()
    s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
    refused(s, text(("AuthMethod", "None")), csg=0, nsg=1)


@row("L-23", "11.12.3", "CSG=3 in the first request is refused")
def starts_in_full_feature(env):
    s = env.new()
    refused(s, text(*s.first_pairs()), csg=3, nsg=3)


@row("L-24", "11.12.3", "T=1 with NSG not above CSG is refused")
def transit_to_same_stage(env):
    s = env.new()
    refused(s, text(*s.first_pairs()), csg=1, nsg=1)


@row("L-25", "11.12.6, 11.13.5", "a TSIH that no session has: 020a")
def unknown_tsih(env):
    s = env.new(tsih=0x7ABC)
    st = status_of(s, text(*s.first_pairs()), csg=1, nsg=3)
    assert st == 0x020A, "status %04x" % st


@row("L-26", "6.3.1", "anything but a Login Request first: the connection is dropped, no answer")
def no_service_before_login(env):
    s = env.new()
    cases = [s.nop_pdu(b"ping"), s.text_pdu(text(SendTargets="All")),
             P.Pdu(P.SCSI_CMD, cdb=scsi.inquiry(), flags=0xC1, itt=7, edtl=255, cmd_sn=1),
             s.logout_pdu(), s.tmf_pdu(5)]
    for p in cases:
        c = env.conn()
        c.send(p)
        for r in c.expect_close(5):
            assert r.opcode in (P.REJECT, P.LOGIN_RSP) and r.opcode != P.TEXT_RSP, repr(r)
            assert r.opcode != P.LOGIN_RSP or r.status_class == 2, repr(r)


@row("L-28", "6.2.1", "of a list the first value that the target supports is taken")
def first_of_the_list(env):
    for key in ("HeaderDigest", "DataDigest"):
        for lst in ("None,CRC32C", "CRC32C,None"):
            r, got = offer(env, (key, lst))
            assert got is not None and got.get(key) == lst.split(",")[0], \
                "%s=%s answered %r" % (key, lst, got)


@row("L-29", "6.2.1", "unknown values in a list are passed over")
def unknown_digest_in_list(env):
    r, got = offer(env, ("HeaderDigest", "Y-com.example.sum,CRC32C,None"),
                   ("DataDigest", "SHA1,None"))
    assert got and got["HeaderDigest"] in ("CRC32C", "None") and got["DataDigest"] == "None", got


@row("L-31", "6.2.2, 13.11", "ImmediateData is AND: No stays No")
def immediate_data_and(env):
    r, got = offer(env, ("ImmediateData", "No"))
    assert got["ImmediateData"] == "No", got
    r, got = offer(env, ("ImmediateData", "Yes"))
    assert got["ImmediateData"] in ("Yes", "No"), got


@row("L-32 L-33", "6.2.2, 13.10, 13.18, 13.19", "OR functions: Yes stays Yes, No may be either")
def or_keys(env, case):
    for key in ("InitialR2T", "DataPDUInOrder", "DataSequenceInOrder"):
        v = "Yes" if case == "L-32" else "No"
        r, got = offer(env, (key, v))
        assert got and got[key] in (("Yes",) if v == "Yes" else ("Yes", "No")), (key, got)


def rejected(env, key, value):
    """Reject as the answer, or the login refused with class 02."""
    r, got = offer(env, (key, value))
    if got is None:
        assert r is not None, "%s=%s: closed without an answer" % (key, value)
        return
    assert got.get(key) == "Reject", "%s=%s answered %r" % (key, value, got.get(key))


@row("L-34", "6.2", "a boolean that is neither Yes nor No is rejected")
def bad_boolean(env):
    for v in ("Maybe", "1"):
        rejected(env, "InitialR2T", v)
        rejected(env, "ImmediateData", v)


@row("L-57", "6.1", "values are case-sensitive: yes is not Yes")
def lower_case_boolean(env):
    rejected(env, "InitialR2T", "yes")


@row("L-35", "6.2.2, 13.x", "numeric answers stay in range and are not above the offer")
def minimum_keys(env):
    for key, values in (("MaxBurstLength", (512, 16776192, 16777215)),
                        ("FirstBurstLength", (512, 65536)), ("MaxOutstandingR2T", (1, 65535)),
                        ("MaxConnections", (1, 65535)), ("ErrorRecoveryLevel", (0, 1, 2)),
                        ("DefaultTime2Retain", (0, 20, 3600))):
        for v in values:
            s = env.new()
            s.offers = {key: str(v)}
            r = s.login_step(text(*(s.first_pairs() + [(key, v)])), t=False)
            s.must(r)
            got = dict(s.take_text(r.data))  # take_text checks range and rule
            assert key in got and got[key].isdigit(), (key, v, got)


@row("L-36", "13.15", "DefaultTime2Wait is the maximum of both")
def time2wait_maximum(env):
    r, got = offer(env, ("DefaultTime2Wait", 100))
    assert 100 <= number(got["DefaultTime2Wait"]) <= 3600, got


@row("L-37", "6.2.2, 13.x", "numbers out of range are rejected")
def out_of_range(env):
    for key, v in (("MaxConnections", 0), ("MaxConnections", 65536), ("MaxBurstLength", 511),
                   ("MaxBurstLength", 2**24), ("ErrorRecoveryLevel", 3), ("MaxOutstandingR2T", 0),
                   ("DefaultTime2Wait", 3601), ("FirstBurstLength", 0)):
        rejected(env, key, v)


@row("L-39", "6.1", "hexadecimal numbers are understood with 0x and 0X")
def hexadecimal(env):
    for v in ("0x4000", "0X4000", "0x04000"):
        r, got = offer(env, ("MaxBurstLength", v))
        assert got and 512 <= number(got["MaxBurstLength"]) <= 16384, (v, got)


@row("L-40", "13.12", "MaxRecvDataSegmentLength is declared, not negotiated")
def declarative_mrdsl(env):
    s = env.session(MaxRecvDataSegmentLength=512, settle=False)
    mine = s.answers.get("MaxRecvDataSegmentLength")
    assert mine is None or 512 <= number(mine) <= 2**24 - 1, mine
    assert s.seen_keys.count("MaxRecvDataSegmentLength") <= 1
    t = s.run_ua(scsi.read10(0, 4), read=2048, lun=env.lun0).good()
    assert max(p.dsl for p in t.datains) <= 512


@row("L-41", "13.12", "MaxRecvDataSegmentLength below 512 or above 2^24-1 is rejected")
def mrdsl_range(env):
    rejected(env, "MaxRecvDataSegmentLength", 511)
    rejected(env, "MaxRecvDataSegmentLength", 2**24)


@row("L-42", "13.14", "the agreed FirstBurstLength is not above the agreed MaxBurstLength")
def first_burst_above_max_burst(env):
    r, got = offer(env, ("MaxBurstLength", 8192), ("FirstBurstLength", 65536))
    if got is None:
        assert r is not None
        return
    assert got["FirstBurstLength"] == "Reject" or \
        number(got["FirstBurstLength"]) <= number(got["MaxBurstLength"]), got


@row("L-43", "6.1, 6.2", "unknown keys are answered NotUnderstood and the login goes on")
def not_understood(env):
    keys = ("X-com.example.novelty", "Blub", "X#frob")
    s = env.new()
    r = s.login_step(text(*(s.first_pairs() + [(k, "1") for k in keys])), csg=1, nsg=3)
    s.must(r)
    got = dict(s.take_text(r.data))
    assert all(got.get(k) == "NotUnderstood" for k in keys), got
    if r.flags & 0x83 != 0x83:
        r = s.login_step(csg=1, nsg=3)
    assert r.flags & 0x83 == 0x83, repr(r)


@row("L-44", "13.25", "markers: Reject or No; their intervals: Reject; never NotUnderstood")
def markers(env):
    r, got = offer(env, ("IFMarker", "Yes"), ("OFMarker", "Yes"), ("IFMarkInt", "2048~8192"),
                   ("OFMarkInt", "2048~8192"))
    assert got is not None, "refused"
    assert got["IFMarker"] in ("No", "Reject") and got["OFMarker"] in ("No", "Reject"), got
    assert got["IFMarkInt"] in ("Reject", "Irrelevant") and \
        got["OFMarkInt"] in ("Reject", "Irrelevant"), got


@row("L-45", "6.3", "a key negotiated twice: class 02 if noticed; an answer to it stays the same")
def key_twice(env):
    s = env.new()
    r = s.login_step(text(*(s.first_pairs() + [("MaxBurstLength", 8192)])), t=False)
    s.must(r)
    assert number(dict(s.take_text(r.data))["MaxBurstLength"]) <= 8192
    p = s.login_pdu(text(("MaxBurstLength", 65536)), csg=1, nsg=3)
    s.send(p)
    r = s.conn.recv()
    if r.status_class:
        assert r.status_class == 2, repr(r)
        s.conn.expect_close(5)
    else:
        got = dict(parse_text(r.data))
        v = got.get("MaxBurstLength", "8192")
        assert v == "Reject" or number(v) <= 8192, "renegotiated to " + v


@row("L-46", "13.9", "the first response to a TargetName carries TargetPortalGroupTag")
def portal_group_tag(env):
    for csg, nsg in ((0, 1), (1, 3)):
        s = env.new()
        r = s.login_step(text(*s.first_pairs()), csg=csg, nsg=nsg)
        s.must(r)
        got = dict(s.take_text(r.data))
        assert 0 <= number(got["TargetPortalGroupTag"]) <= 65535, got


@row("L-47", "6.1", "every pair is key=value NUL with a name of at most 63 bytes, nothing twice")
def text_format(env):
    s = env.session(settle=False)
    assert len(s.seen_keys) == len(set(s.seen_keys)) >= 10, s.seen_keys
    d = env.discovery()
    assert len(d.seen_keys) == len(set(d.seen_keys)), d.seen_keys


@row("L-48", "6.3", "empty requests with T=0 in stage 1 are answered 0000, T=0; login can finish")
def empty_rounds(env):
    s = env.new()
    s.must(s.login_step(text(*s.first_pairs()), t=False))
    for _ in range(5):
        r = s.login_step(t=False)
        assert r.status_class == 0 and r.flags & 0x80 == 0
    r = s.login_step(csg=1, nsg=3)
    assert r.flags & 0x83 == 0x83, repr(r)


@row("L-49", "6.2.1, 12.1", "an open target takes None out of a list of methods it has not")
def auth_list_with_none(env):
    s = env.new()
    r = s.login_step(text(*(s.first_pairs() + [("AuthMethod", "KRB5,SRP,None")])), csg=0, nsg=1)
    s.must(r)
    assert ("AuthMethod", "None") in s.take_text(r.data)


@row("L-50", "13.7", "InitiatorAlias is declarative: no answer")
def alias_unanswered(env):
    r, got = offer(env, ("InitiatorAlias", "wire tests"))
    assert got is not None and "InitiatorAlias" not in got, got


@row("L-51", "13.23", "TaskReporting is answered by one of the offered values")
def task_reporting(env):
    r, got = offer(env, ("TaskReporting", "ResponseFence,RFC3720"))
    assert got and got.get("TaskReporting") in ("ResponseFence", "RFC3720"), got


@row("L-52", "11", "reserved fields of a request are ignored")
def reserved_bits_set(env):
    s = env.new()
    p = s.login_pdu(text(*s.first_pairs()), csg=1, nsg=3)
    p.bhs[1] |= 0x30
    p.bhs[22:24] = b"\xff\xff"
    p.bhs[32:48] = b"\xff" * 16
    s.send(p)
    r = s.login_recv(p)
    s.must(r)
    assert r.flags & 0x83 == 0x83, repr(r)


@row("L-53", "11.13.3", "a discovery login needs no TargetName and gets a TSIH")
def discovery_login(env):
    s = env.discovery()
    assert s.tsih != 0


@row("L-54", "6.3.3", "if T=1 is granted at once the response offers nothing that needs an answer")
def no_offers_in_the_last_response(env):
    s = env.new()
    s.must(s.login_step(text(*s.first_pairs()), t=False))
    r = s.login_step(csg=1, nsg=3)
    if r.flags & 0x80:
        for k, v in parse_text(r.data):
            assert k in ("TargetAlias", "MaxRecvDataSegmentLength", "TargetPortalGroupTag",
                         "TargetAddress"), "%s=%s needs an answer" % (k, v)


@row("L-55", "6.2", "each offer is answered in the very next response")
def one_key_a_request(env):
    s = env.new()
    s.must(s.login_step(text(*s.first_pairs()), t=False))
    for k, v in s.op_pairs():
        r = s.login_step(text((k, v)), t=False)
        s.must(r)
        got = dict(s.take_text(r.data))
        assert k in got or k == "MaxRecvDataSegmentLength", "%s=%s not answered" % (k, v)
    r = s.login_step(csg=1, nsg=3)
    assert r.flags & 0x83 == 0x83
    s.finish(r)
    s.nop()


@row("L-56", "11.12.5", "ISIDs of type OUI, EN and random are accepted")
def isid_types(env):
    for first in (0x00, 0x40, 0x80):
        s = env.session(isid=bytes((first, 0x02, 0x3D, 0, 0, 0x77)), settle=False)
        assert s.tsih
        s.logout()


@row("L-58a", "11.12.4", "a Version-min above 0 cannot be met: 0205")
def version_too_new(env):
    s = env.new()
    st = status_of(s, text(*s.first_pairs()), csg=1, nsg=3, version_min=1, version_max=2)
    assert st == 0x0205, "status %04x" % st


@row("L-59", "11.12.5, 11.12.6, 11.12.7", "ISID, TSIH and CID do not change within a login")
def header_changes(env):
    for change in (dict(isid=bytes((0x80, 9, 9, 9, 9, 9))), dict(tsih=77), dict(cid=5)):
        s = env.new()
        s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
        refused(s, csg=1, nsg=3, **change)


@row("L-60", "6.3, 7.13", "anything but a Login Request in the middle of a login ends it")
def foreign_pdu_in_login(env):
    s = env.new()
    cases = [s.nop_pdu(b"ping"), P.Pdu(P.SCSI_CMD, cdb=scsi.inquiry(), flags=0xC1, itt=7, edtl=255,
                                       cmd_sn=1), s.text_pdu(text(SendTargets="All"))]
    for p in cases:
        s = env.new()
        s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
        s.conn.send(p)
        for r in s.conn.expect_close(5):
            assert r.opcode == P.REJECT or (r.opcode == P.LOGIN_RSP and
                                            r.status_class == 2), repr(r)


# ---- bug reports -------------------------------------------------------------------------------

@row("BR-03", "6.3", "identical InitiatorName and SessionType in a later request are tolerated, or "
     "refused with a Login Response, never a bare close")
def names_repeated(env):
    s = env.new()
    r = s.login_step(text(*(s.first_pairs() + [("AuthMethod", "None")])), csg=0, nsg=1)
    s.must(r)
    p = s.login_pdu(text(("InitiatorName", s.initiator), ("SessionType", "Normal"),
                         ("HeaderDigest", "None")), csg=1, nsg=3)
    s.send(p)
    r = s.conn.recv()
    assert r.opcode == P.LOGIN_RSP and r.status_class in (0, 2), repr(r)
    if r.status_class == 0:
        assert r.flags & 0x80 or ("HeaderDigest", "None") in parse_text(r.data)


@row("BR-05", "6.3.3", "an initiator that ignores the target's proposals gets through in a few "
     "rounds, and a key repeated with the same value is not fatal")
def proposals_ignored(env):
    s = env.new()
    s.must(s.login_step(text(*s.first_pairs()), csg=1, t=False))
    for _ in range(4):
        r = s.login_step(csg=1, nsg=3)
        s.must(r)
        if r.flags & 0x83 == 0x83:
            break
    assert r.flags & 0x83 == 0x83, "login never ends"
    s = env.new()
    s.must(s.login_step(text(*(s.first_pairs() + [("HeaderDigest", "None")])), csg=1, t=False))
    p = s.login_pdu(text(("HeaderDigest", "None")), csg=1, nsg=3)
    s.send(p)
    r = s.conn.recv()
    assert r.opcode == P.LOGIN_RSP and r.status_class == 0, "repeat with the same value: %r" % r


@row("BR-09", "6.1", "a key name beyond 63 bytes is refused or answered bounded")
def long_key_name(env):
    for n in (64, 255, 8000):
        s = env.new()
        p = s.login_pdu(text(*(s.first_pairs() + [("K" * n, "v")]))[:8192], csg=1, t=False)
        s.send(p)
        try:
            r = s.conn.recv()
        except Closed:
            continue
        assert r.opcode == P.LOGIN_RSP and r.status_class in (0, 2), repr(r)
        if r.status_class == 0:
            for k, v in parse_text(r.data):  # checks the 63 bytes
                assert not k.startswith("KKK") or v == "NotUnderstood"
    env.serves()


@row("BR-10", "13.12", "login text of 8188..8192 bytes with and without '=' and NUL is read within "
     "its bounds; 8193 bytes are refused")
def full_login_segment(env):
    for n in (8188, 8189, 8190, 8191, 8192, 8193):
        for mk in (lambda n: b"A" * n, lambda n: b"A=" + b"B" * (n - 2),
                   lambda n: b"A=" + b"B" * (n - 3) + b"\0",
                   lambda n: b"\0" * n):
            s = env.new()
            s.send(s.login_pdu(mk(n), csg=1, t=False))
            try:
                r = s.conn.recv()
            except Closed:
                continue
            assert r.opcode == P.LOGIN_RSP and r.status_class in (0, 2, 3), repr(r)
            assert n <= 8192 or r.status_class, "8193 bytes accepted"
    env.serves()


@row("BR-11", "6.1", "the discovery SessionType is seen when it is cut over two requests")
def session_type_cut(env):
    s = env.new(None, discovery=True)
    r = s.login_step(text(("InitiatorName", s.initiator)) + b"Sess", csg=1, t=False, c=True)
    assert r.status_class == 0 and r.dsl == 0 and not r.flags & 0x80, repr(r)
    r = s.login_step(b"ionType=Discovery\0", csg=1, nsg=3)
    s.must(r)
    assert r.flags & 0x83 == 0x83 and r.tsih
    s.full_feature = True
    got = s.text(text(SendTargets="All"))
    assert ("TargetName", DISK) in got


@row("BR-13", "13.1", "HeaderDigest=None alone is accepted by default")
def digest_none_accepted(env):
    s = env.session(HeaderDigest="None", DataDigest="None", settle=False)
    assert s.params["HeaderDigest"] == s.params["DataDigest"] == "None"


@row("BR-14", "13.1", "discovery: None is preferred when offered first; an agreed CRC32C is used")
def discovery_digests(env):
    s = env.discovery(HeaderDigest="None,CRC32C", DataDigest="None,CRC32C")
    assert s.params["HeaderDigest"] in ("None",), s.params
    s = env.new(None, discovery=True, HeaderDigest="CRC32C", DataDigest="CRC32C").login()
    got = s.text(text(SendTargets="All"))
    assert ("TargetName", DISK) in got
    s.logout()


@row("BR-51", "4.2.7, 6.1", "the order of keys is free; TargetName is compared after folding case")
def key_order_and_case(env):
    s = env.new()
    pairs = list(reversed(s.first_pairs()))
    r = s.login_step(text(*(s.op_pairs()[:4] + pairs)), csg=1, nsg=3)
    s.must(r)
    s = env.new(DISK.upper().replace("IQN", "iqn"))
    r = s.login_step(text(*s.first_pairs()), csg=1, nsg=3)
    s.must(r)
    assert r.flags & 0x83 == 0x83


@row("BR-53", "6.3", "the login and discovery sequence of Windows, fifty times, with a reset at "
     "the end", 40)
def windows_discovery(env):
    keys = [("HeaderDigest", "None,CRC32C"), ("DataDigest", "None,CRC32C"),
            ("MaxConnections", 8), ("InitialR2T", "No"), ("ImmediateData", "Yes"),
            ("MaxRecvDataSegmentLength", 65536), ("MaxBurstLength", 262144),
            ("FirstBurstLength", 65536), ("DefaultTime2Wait", 0), ("DefaultTime2Retain", 60),
            ("MaxOutstandingR2T", 16), ("ErrorRecoveryLevel", 2)]
    for i in range(50):
        s = env.new(None, discovery=True)
        r = s.login_step(text(*(s.first_pairs() + [("AuthMethod", "None")])), csg=0, nsg=1)
        s.must(r)
        assert ("AuthMethod", "None") in s.take_text(r.data)
        r = s.login_step(text(*keys), csg=1, nsg=3)
        s.must(r)
        s.take_text(r.data)
        if r.flags & 0x83 != 0x83:
            r = s.login_step(csg=1, nsg=3)
        assert r.flags & 0x83 == 0x83, repr(r)
        s.full_feature = True
        got = s.text(text(SendTargets="All"))
        assert [v for k, v in got if k == "TargetName"].count(DISK) == 1
        if i % 2:
            s.conn.reset()
        else:
            s.logout()


@row("V-01", "13.24; RFC 7144", "iSCSIProtocolLevel is answered by a number not above the offer")
def protocol_level(env):
    for lvl in (2, 1):
        r, got = offer(env, ("iSCSIProtocolLevel", lvl))
        v = got["iSCSIProtocolLevel"]
        assert v not in ("NotUnderstood", "Reject") and 0 <= number(v) <= lvl, got
