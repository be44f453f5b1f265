# SPDX-License-Identifier: BSD-2-Clause
"""Stand-ins for initiators that cannot run here: the logins and first commands of each, played by
script.  Every row says where its knowledge comes from; what no public source shows is not played.
RFC 7143 6, 11.12, 12, 13."""

import time

from harness import BLK, DISK, IQN, Lun, MIB, Target, row, scsi, text
from lib.chap import Chap, MD5, b64
from lib.iscsi import parse_text
from test_chap import ALICE, LOCKED, TARGET

MANY = IQN + "many"
HEAD = ["login-failure-delay 0"]


def targets():
    chap = ["incominguser %s %s" % ALICE, "outgoinguser %s %s" % TARGET]
    return [Target("disk", [Lun("disk0.img", 16 * MIB, 0, opts=["thin-provisioning on"])]),
            Target("many", [Lun("many%d.img" % n, MIB, n) for n in (0, 1, 7, 255)]),
            Target("locked", [Lun("locked0.img", 4 * MIB, 0)], ["initiator-address ALL"] + chap)]


def stage(s, pairs, csg=0, nsg=1, t=True, **kw):
    """One request as this initiator writes it; class 0 wanted; the answered pairs."""
    r = s.login_step(text(*pairs), csg=csg, nsg=nsg, t=t, **kw)
    s.must(r)
    return r, s.take_text(r.data)


def in_full_feature(s, r, offers):
    """Finishes a session of which `r` granted full feature phase."""
    assert r.flags & 0x83 == 0x83, "no full feature phase: %r" % r
    s.offers = {k: str(v) for k, v in dict(offers).items()}
    return s.finish(r)


def first_look(s, lun=0, vpd=(0x00, 0x80, 0x83)):
    """What every operating system asks of a new disk; its capacity in blocks."""
    s.run_ua(scsi.TEST_UNIT_READY, lun=lun).good()
    t = s.run(scsi.inquiry(36), read=36, lun=lun).good()
    assert t.data[0] == 0 and len(t.data) == 36
    for page in vpd:
        t = s.run(scsi.inquiry(255, page), read=255, lun=lun).good()
        assert t.data[1] == page
    t = s.run(scsi.read_capacity10(), read=8, lun=lun).good()
    return int.from_bytes(t.data[:4], "big") + 1


# ---- macOS -------------------------------------------------------------------------------------

@row("SI-01", "13.21, 6.3", "globalSAN on macOS: no SessionType unless an option is set; after "
     "sleep the old connection is dead and the ISID the same")
def globalsan(env):
    """iscsi-osx/iSCSIInitiator#84 and #89 (the option "Always send SessionType when connecting"
    that some targets need), #47 and #94 (logins after sleep)."""
    env.need_evtgt()
    isid = b"\x80\0\0\0\0\x01"
    old = None
    for _ in range(3):
        s = env.new(isid=isid, initiator="iqn.2008-12.com.example.gs:Mac-Pro")
        names = [("InitiatorName", s.initiator), ("TargetName", DISK)]
        r, got = stage(s, names + [("AuthMethod", "None")])
        assert ("AuthMethod", "None") in got and r.flags & 0x83 == 0x81, repr(r)
        r, _ = stage(s, s.op_pairs(), csg=1, nsg=3)
        in_full_feature(s, r, s.op_pairs())
        assert first_look(s) == 16 * MIB // BLK
        s.run(scsi.write10(8, 8), write=bytes(8 * BLK), lun=0).good()
        s.run(scsi.synchronize_cache10(), lun=0, timeout=5).good()
        old = s if old is None else old  # left open, unanswered
    s.logout()


@row("SI-02", "6.3, 11.12.5", "the open initiator of macOS: SessionType and alias first, ISID "
     "800000000001, ITT 0, AuthMethod=None in stage 0, then its keys")
def iscsi_osx(env):
    """iscsi-osx/iSCSIInitiator#81 (a target's list of received keys: SessionType, InitiatorAlias,
    InitiatorName, AuthMethod) and #85 (a capture: ISID 800000000001, ITT 0, stages 0 to 1, then
    1 to 3)."""
    env.need_evtgt()

    def login(target, discovery):
        s = env.new(target, isid=b"\x80\0\0\0\0\x01", discovery=discovery,
                    initiator="iqn.2015-01.com.localhost", cmd_sn=0)
        s.login_itt = 0
        names = [("SessionType", "Discovery" if discovery else "Normal"),
                 ("InitiatorAlias", "default"), ("InitiatorName", s.initiator)]
        if target:
            names.append(("TargetName", target))
        r, got = stage(s, names + [("AuthMethod", "None")])
        assert ("AuthMethod", "None") in got and r.flags & 0x83 == 0x81, repr(r)
        r, _ = stage(s, s.op_pairs(), csg=1, nsg=3)
        return in_full_feature(s, r, s.op_pairs())

    s = login(None, True)
    found = s.text(text(SendTargets="All"))
    assert ("TargetName", DISK) in found
    s.logout()
    s = login(DISK, False)
    t = s.run_ua(scsi.report_luns(), read=1024, lun=0).good()
    assert int.from_bytes(t.data[:4], "big") == 8
    first_look(s)
    s.logout()


@row("SI-03", "6.3, 12.1", "ATTO's initiator on macOS: no CHAP at all; refused cleanly where CHAP "
     "is demanded, served elsewhere, also with digests")
def atto(env):
    """HP StorageWorks MPX200 manual, "CHAP restrictions": the ATTO Macintosh initiator does not
    support CHAP.  No public capture of its logins was found, so the keys are the RFC's."""
    env.need_evtgt()
    s = env.new(LOCKED, initiator="iqn.1995-12.com.attotech:xtendsan:mac")
    r = s.login_step(text(*(s.first_pairs() + [("AuthMethod", "None")])), csg=0, nsg=1)
    assert (r.status_class, r.status_detail) in ((2, 1), (0, 0)), repr(r)
    assert not r.flags & 0x80 or r.status_class, repr(r)
    for digests in ("None", "CRC32C"):
        s = env.session(initiator="iqn.1995-12.com.attotech:xtendsan:mac", HeaderDigest=digests,
                        DataDigest=digests)
        first_look(s)
        s.logout()


# ---- Windows -----------------------------------------------------------------------------------

WINDOWS_DISCOVERY = [("HeaderDigest", "None,CRC32C"), ("DataDigest", "None,CRC32C"),
                     ("ErrorRecoveryLevel", 2), ("DefaultTime2Wait", 0),
                     ("DefaultTime2Retain", 60), ("MaxRecvDataSegmentLength", 65536)]
WINDOWS_KEYS = [("HeaderDigest", "None,CRC32C"), ("DataDigest", "None,CRC32C"),
                ("ErrorRecoveryLevel", 2), ("InitialR2T", "No"), ("ImmediateData", "Yes"),
                ("MaxRecvDataSegmentLength", 65536), ("MaxBurstLength", 262144),
                ("FirstBurstLength", 65536), ("MaxConnections", 8), ("DataPDUInOrder", "Yes"),
                ("DataSequenceInOrder", "Yes"), ("DefaultTime2Wait", 0),
                ("DefaultTime2Retain", 60), ("MaxOutstandingR2T", 16)]
WINDOWS_NAME = "iqn.1991-05.com.microsoft:host.example"


def windows_operational(s, keys):
    s.offers = {k: str(v) for k, v in keys}
    r, _ = stage(s, keys, csg=1, nsg=3)
    for _ in range(3):
        if r.flags & 0x83 == 0x83:
            break
        r, _ = stage(s, [], csg=1, nsg=3)
    return in_full_feature(s, r, s.offers)


@row("SI-04", "6.3, App. C", "Microsoft's initiator adds a portal a thousand times: stage 0 with "
     "AuthMethod=None, its keys, SendTargets, and a reset instead of a logout", 120)
def windows_thousand_times(env):
    """openwrt/packages#8389 (a target that fell over it); Microsoft's iSCSI Initiator user's
    guide for the settings behind the keys."""
    env.need_evtgt()
    time.sleep(0.1)
    before, rss = env.d.fds(), None
    for i in range(1000):
        s = env.new(None, discovery=True, initiator=WINDOWS_NAME)
        s.check = i % 50 == 0
        r, got = stage(s, [("InitiatorName", WINDOWS_NAME), ("SessionType", "Discovery"),
                           ("AuthMethod", "None")])
        assert ("AuthMethod", "None") in got and r.flags & 0x83 == 0x81, repr(r)
        windows_operational(s, WINDOWS_DISCOVERY)
        got = s.text(text(SendTargets="All"))
        assert [v for k, v in got if k == "TargetName"].count(DISK) == 1
        s.conn.reset()
        env.open.clear()
        if i == 200:
            rss = env.d.rss()
    deadline = time.monotonic() + 10
    while env.d.fds() > before + 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert env.d.fds() <= before + 1, "%d descriptors, before %d" % (env.d.fds(), before)
    grown = env.d.rss() - rss
    assert grown < (8 << 20) * env.set.weight ** 2, "800 discoveries cost %d bytes" % grown
    env.serves()


@row("SI-05", "12.1.3", "Microsoft's initiator with CHAP and mutual CHAP: names are iSCSI names, "
     "secrets of 12 to 16 bytes; INQUIRY, REPORT LUNS, capacity, mode pages")
def windows_chap(env):
    """Microsoft's iSCSI Initiator user's guide and HP's MPX200 manual (secrets of 12 to 16
    characters; the CHAP name is the initiator's name unless another is typed)."""
    env.need_evtgt()
    for mutual in (None, TARGET):
        s = env.new(LOCKED, initiator=WINDOWS_NAME)
        c = Chap(s, *ALICE, mutual=mutual).security("CHAP")
        windows_operational(s, WINDOWS_KEYS)
        assert s.params["MaxOutstandingR2T"] <= 16 and c.alg == MD5
        t = s.run_ua(scsi.report_luns(2048), read=2048, lun=0).good()
        assert int.from_bytes(t.data[:4], "big") == 8
        first_look(s)
        s.run(scsi.mode_sense6(0x3F, 192), read=192, lun=0).good()
        s.run(scsi.mode_sense6(0x08, 192), read=192, lun=0).good()
        data = scsi.pattern(128 * BLK, 5)
        s.run(scsi.write10(0, 128), write=data, lun=0).good()
        assert s.run(scsi.read10(0, 128), read=len(data), lun=0).good().data == data
        s.logout()


# ---- ESXi --------------------------------------------------------------------------------------

@row("SI-06", "4.6, 11", "ESXi's software iSCSI: ISID 00023d00000n, REPORT LUNS, then INQUIRY of "
     "every number up to 255, again and again; the log does not fill", 40)
def esxi(env):
    """spdk/spdk#405 (name, ISID 00023d000001, the order TEST UNIT READY, INQUIRY, pages 00,
    80, 83, then MODE SENSE), TalAloni/iSCSIConsole#6 (REPORT LUNS is followed by INQUIRY of
    what it lists), openzfs/zfs#3793 (numbers that do not exist are probed, and a log line
    for each made the host slow)."""
    keys = [("HeaderDigest", "None"), ("DataDigest", "None"), ("DefaultTime2Wait", 0),
            ("DefaultTime2Retain", 0), ("IFMarker", "No"), ("OFMarker", "No"),
            ("ErrorRecoveryLevel", 0), ("InitialR2T", "No"), ("ImmediateData", "Yes"),
            ("MaxBurstLength", 262144), ("FirstBurstLength", 262144), ("MaxOutstandingR2T", 1),
            ("MaxConnections", 1), ("DataPDUInOrder", "Yes"), ("DataSequenceInOrder", "Yes"),
            ("MaxRecvDataSegmentLength", 131072)]
    env.need_evtgt()
    for n in (1, 2):  # two paths
        s = env.new(MANY, isid=b"\x00\x02\x3d\0\0" + bytes((n,)),
                    initiator="iqn.1998-01.com.vmware:host-%d" % n)
        names = [("InitiatorName", s.initiator), ("InitiatorAlias", "host"),
                 ("TargetName", MANY), ("SessionType", "Normal")]
        r, _ = stage(s, names + [("AuthMethod", "None")])
        assert r.flags & 0x83 == 0x81
        r, got = stage(s, keys, csg=1, nsg=3)
        got = dict(got)
        assert got["IFMarker"] in ("No", "Reject") and got["OFMarker"] in ("No", "Reject"), got
        if r.flags & 0x83 != 0x83:
            r = s.login_step(csg=1, nsg=3)
        in_full_feature(s, r, [k for k in keys if "Marker" not in k[0]])
        t = s.run_ua(scsi.report_luns(4096), read=4096, lun=0).good()
        listed = [t.data[8 + 8 * i + 1] for i in range(int.from_bytes(t.data[:4], "big") // 8)]
        assert listed == [0, 1, 7, 255], listed
        with open(env.d.log, "rb") as f:
            lines = f.read().count(b"\n")
        for _ in range(4):
            for lun in range(256):
                t = s.run_ua(scsi.inquiry(36), read=36, lun=lun).good()
                assert t.data[0] == (0 if lun in listed else 0x7F), "LUN %d: %02x" % (lun,
                                                                                     t.data[0])
                if lun not in listed:
                    s.run(scsi.TEST_UNIT_READY, lun=lun).check(5, 0x25, 0)
        with open(env.d.log, "rb") as f:
            more = f.read().count(b"\n") - lines
        assert more < 60, "%d lines for absent LUNs" % more
        for lun in listed:
            first_look(s, lun)
            for page in (0xB0, 0xB2):
                s.run(scsi.inquiry(255, page), read=255, lun=lun).good()
            s.run(scsi.mode_sense6(0x08, 255), read=255, lun=lun).good()
        s.logout()


# ---- boot firmware -----------------------------------------------------------------------------

IPXE_KEYS = [("HeaderDigest", "None"), ("DataDigest", "None"), ("MaxConnections", 1),
             ("InitialR2T", "Yes"), ("ImmediateData", "No"), ("MaxRecvDataSegmentLength", 8192),
             ("MaxBurstLength", 262144), ("DefaultTime2Wait", 0), ("DefaultTime2Retain", 0),
             ("MaxOutstandingR2T", 1), ("DataPDUInOrder", "Yes"), ("DataSequenceInOrder", "Yes"),
             ("ErrorRecoveryLevel", 0)]


def ipxe_login(env, user=None, mutual=None, again=(), encode=None):
    """T=1 in every request; what the target offers is never answered; `again`: keys that it sends
    once more with the same value in the operational stage."""
    env.need_evtgt()
    s = env.new(LOCKED if user else DISK, initiator="iqn.2010-04.org.ipxe:boot")
    names = [("InitiatorName", s.initiator), ("TargetName", s.target),
             ("SessionType", "Normal")]
    if user:
        c = Chap(s, *user, mutual=mutual, t=True)
        c.encode = encode or c.encode
        r, got = stage(s, names + [("AuthMethod", "CHAP,None")])
        assert ("AuthMethod", "CHAP") in got and not r.flags & 0x80, repr(r)
        c.ask()
        r = c.prove()
        if not r.flags & 0x80:  # it asks again, with nothing
            r, _ = stage(s, [])
    else:
        r, got = stage(s, names + [("AuthMethod", "None")])
        assert ("AuthMethod", "None") in got
    assert r.flags & 0x83 == 0x81, "stage 0 is not left: %r" % r
    s.offers = {k: str(v) for k, v in IPXE_KEYS}
    data = list(again) + IPXE_KEYS
    for _ in range(4):
        r = s.login_step(text(*data), csg=1, nsg=3)
        s.must(r)
        s.take_text(r.data)
        data = []
        if r.flags & 0x83 == 0x83:
            return in_full_feature(s, r, s.offers)
    raise AssertionError("login never ends: %r" % r)


def boots(s):
    """Capacity and the first blocks, as boot firmware reads them: 8 KiB segments."""
    blocks = first_look(s, vpd=())
    s.run(scsi.read_capacity16(), read=32, lun=0).good()
    for lba in (0, 1, blocks - 1):
        s.run(scsi.read10(lba, 1), read=BLK, lun=0).good()
    t = s.run(scsi.read10(0, 128), read=128 * BLK, lun=0).good()
    assert max(p.dsl for p in t.datains) <= 8192
    s.logout()


@row("SI-07", "11.12.3, 12.1.3", "iPXE: T=1 in every round of CHAP and mutual CHAP, the target's "
     "offers ignored, 8 KiB segments, ImmediateData=No")
def ipxe(env):
    """ipxe/ipxe#1444 (T=1 in all CHAP rounds; a target that leaves stage 0 before its
    proof is taken for an impostor) and #898 (MaxBurstLength)."""
    boots(ipxe_login(env))
    boots(ipxe_login(env, ALICE))
    boots(ipxe_login(env, ALICE, TARGET))
    s = env.new(LOCKED)
    c = Chap(s, ALICE[0], "a-wrong-secret-0", mutual=TARGET, t=True)
    c.method("CHAP,None")
    c.ask()
    r = s.login_step(text(*c.proof()), csg=0, nsg=1)
    assert (r.status_class, r.status_detail) == (2, 1) and r.dsl == 0, repr(r)


@row("SI-08", "6.3.3, 6.2", "FlexBoot and its like: offers ignored, agreed keys sent once more "
     "with the same value; the login ends all the same")
def flexboot(env):
    """targetcli's documentation of login_keys_workaround (initiators that ignore what the target
    offers) and u-root/iscsinl#12 (keys sent again).  FlexBoot is made from iPXE."""
    boots(ipxe_login(env, again=[("InitiatorName", "iqn.2010-04.org.ipxe:boot"),
                                 ("SessionType", "Normal")]))
    boots(ipxe_login(env, ALICE, encode=b64))
    s = env.new(DISK)
    r, _ = stage(s, s.first_pairs() + [("AuthMethod", "None")])
    r = s.login_step(text(*IPXE_KEYS), csg=1, t=False)
    s.must(r)
    first = dict(parse_text(r.data))
    for _ in range(3):
        r = s.login_step(text(*IPXE_KEYS), csg=1, nsg=3)  # the same once more
        s.must(r)
        for k, v in parse_text(r.data):
            assert first.setdefault(k, v) == v, "%s=%s became %s" % (k, first[k], v)
        if r.flags & 0x83 == 0x83:
            break
    assert r.flags & 0x83 == 0x83, repr(r)
    s.conn.close()


@row("SI-09", "6.2, 13", "OVMF's own initiator: every key it offers is answered in decimal or by "
     "Yes and No, in one response and with nothing it does not know")
def ovmf(env):
    """The public behaviour of edk2's IScsiDxe: it ends the login when one of its keys stays without
    an answer, when a value is no decimal number in range, or when a key is left over that it does
    not know; declarations it knows are SessionType, TargetAlias, TargetPortalGroupTag and
    MaxRecvDataSegmentLength.  CHAP with MD5 or SHA-256 after MD5."""
    env.need_evtgt()
    keys = [("HeaderDigest", "None"), ("DataDigest", "None"), ("ErrorRecoveryLevel", 2),
            ("InitialR2T", "No"), ("ImmediateData", "Yes"), ("MaxRecvDataSegmentLength", 65536),
            ("MaxBurstLength", 262144), ("FirstBurstLength", 65536), ("MaxConnections", 1),
            ("DataPDUInOrder", "Yes"), ("DataSequenceInOrder", "Yes"), ("DefaultTime2Wait", 0),
            ("DefaultTime2Retain", 20), ("MaxOutstandingR2T", 16)]
    knows = ("SessionType", "TargetAlias", "TargetPortalGroupTag", "MaxRecvDataSegmentLength")
    for algs, mutual in ((None, None), ((5,), None), ((5,), TARGET), ((7, 5), TARGET)):
        s = env.new(LOCKED if algs else DISK, initiator="iqn.2000-01.com.example:uefi")
        first = [("InitiatorName", s.initiator), ("TargetName", s.target),
                 ("SessionType", "Normal")]
        if algs:
            c = Chap(s, *ALICE, algs=algs, mutual=mutual)
            c.step(*(first + [("AuthMethod", "CHAP")]))
            c.ask()
            assert c.alg == algs[0]
            r = c.prove(t=not mutual)
            if not r.flags & 0x80:
                r = c.step(t=True)
        else:
            r, _ = stage(s, first + [("AuthMethod", "None")])
        assert r.flags & 0x83 == 0x81, repr(r)
        s.offers = {k: str(v) for k, v in keys}
        r, got = stage(s, keys, csg=1, nsg=3)
        got = dict(got)
        for k, v in keys:
            if k == "MaxRecvDataSegmentLength":
                continue
            assert k in got, "%s is not answered: %r" % (k, got)
            assert got[k] in ("Yes", "No", "None") or got[k].isdigit(), (k, got[k])
        left = set(got) - set(s.offers) - set(knows)
        assert not left, "keys that it does not know: %r" % left
        in_full_feature(s, r, s.offers)
        boots_all(s)


def boots_all(s):
    first_look(s)
    s.run(scsi.read_capacity16(), read=32, lun=0).good()
    t = s.run(scsi.read10(0, 255), read=255 * BLK, lun=0).good()
    assert max(p.dsl for p in t.datains) <= 65536
    s.logout()
