# SPDX-License-Identifier: BSD-2-Clause
"""Files of tgt, IET and LIO: what `evtgtadm convert` makes of them and says of what it cannot, that
the daemon takes the result, and that it serves the originals themselves."""

import os
import re
import subprocess
import tempfile

from lib.evtgt import IQN
from lib.iscsi import LoginFailed, Session
from test_ids import FromFile

HERE = os.path.dirname(os.path.abspath(__file__))


def convert(settings, files, *args, status=0):
    """files: {name: text}; the first is converted. Returns (stdout, stderr) without directories."""
    with tempfile.TemporaryDirectory(prefix="evtgt-convert-") as tmp:
        for name, text in files.items():
            with open(os.path.join(tmp, name), "w") as f:
                f.write(text)
            os.chmod(os.path.join(tmp, name), 0o600)
        path = os.path.join(tmp, next(iter(files)))
        out = subprocess.run([settings.adm, "convert", *args, path], capture_output=True, text=True,
                             timeout=30)
        assert out.returncode == status, "status %d: %s" % (out.returncode, out.stderr)
        if out.stdout:
            check = os.path.join(tmp, "ours.conf")
            with open(check, "w") as f:
                f.write(out.stdout)
            os.chmod(check, 0o600)
            t = subprocess.run([settings.daemon, "-t", "-c", check], capture_output=True, text=True,
                               timeout=30)
            assert t.returncode == 0, "evtgtd refuses it: %s\n%s" % (t.stderr, out.stdout)
        return out.stdout.replace(tmp + "/", ""), out.stderr.replace(tmp + "/", "")


def has(text, *lines):
    got = [re.sub(r"\s+", " ", line.strip()) for line in text.splitlines()]
    for line in lines:
        assert line in got, "%r is not in\n%s" % (line, text)


def hasnt(text, *lines):
    got = [line.strip() for line in text.splitlines()]
    for line in lines:
        assert line not in got, "%r is in\n%s" % (line, text)


# ---- IET ---------------------------------------------------------------------------------------

IET = """# as the how-tos have it
Target iqn.2001-04.com.example:storage.disk1
    IncomingUser jim othersecret12
    Lun 0 Path=/dev/disk/by-id/scsi-3600508b1001c,Type=blockio
"""


def test_iet_how_to(settings):
    out, err = convert(settings, {"ietd.conf": IET, "initiators.allow":
                                  "iqn.2001-04.com.example:storage.disk1 192.168.0.0/24\n"})
    has(out, "<target iqn.2001-04.com.example:storage.disk1>", "incominguser jim othersecret12",
        "initiators-allow initiators.allow",
        "<backing-store /dev/disk/by-id/scsi-3600508b1001c>", "lun 0", "bs-type blockio",
        "write-cache off", "scsi_sn_width 32", "vendor_id IET", "product_rev 0")
    assert "lost" not in err and "initiators.allow: note: the file stays in use" in err, err


def test_iet_proxmox(settings):
    """The form that Proxmox's plug-in writes: no Type in a global place, several Lun lines."""
    text = ("Target iqn.2001-04.com.example:tank\n\tLun 0 Path=/dev/tank/vm-1,Type=blockio\n"
            "\tLun 1 Path=/dev/tank/vm-2,Type=blockio,ScsiSN=abc\n\tInitialR2T No\n")
    out, _ = convert(settings, {"ietd.conf": text, "initiators.allow": "ALL ALL\n"})
    has(out, "<backing-store /dev/tank/vm-1>", "<backing-store /dev/tank/vm-2>", "scsi_sn abc",
        "scsi_sn_width 16", "InitialR2T No")


LOST_IET = [
    ("Wthreads 8", 3, 5, "Wthreads has no equivalent"),
    ("MaxSessions 2", 3, 5, "MaxSessions has no equivalent"),
    ("MaxXmitDataSegmentLength 8192", 3, 5, "MaxXmitDataSegmentLength has no equivalent"),
    ("Type 0", 3, 5, "Type has no equivalent"),
    ("OFMarkInt 2048", 3, 5, "OFMarkInt has no equivalent"),
    ("Bogus 1", 3, 5, "\"Bogus\" has no equivalent: IET knows no such word"),
    ("Lun 0 Path=/a,Colour=red", 3, 19, "Colour=red has no equivalent"),
    ("NOPInterval 10\n    NOPTimeout 5", 4, 5, "NOPTimeout 5 has no equivalent"),
    ("OutgoingUser a 0123456789ab\n    OutgoingUser b 0123456789abc", 3, 5,
     "OutgoingUser has no equivalent: IET took the last"),
]


def test_iet_losses(settings):
    for line, row, col, want in LOST_IET:
        text = "Target iqn.2001-04.com.example:a\n    IncomingUser u 0123456789xy\n    %s\n" % line
        _, err = convert(settings, {"ietd.conf": text, "initiators.allow": "ALL ALL\n"}, status=3)
        assert "ietd.conf:%d:%d: lost: %s" % (row, col, want) in err, (line, err)
    _, err = convert(settings, {"ietd.conf": "Lun 0 Path=/a\n"}, status=3)
    assert "ietd.conf:1:1: lost: Lun has no equivalent: before the first Target" in err, err


WRONG_IET = [
    ("Lun 0 Type=fileio", 2, 1, "Lun wants Path=FILE"),
    ("Lun 0 Path=/a,Type=tape", 2, 20, "Type wants fileio, blockio or nullio"),
    ("Lun 0 Path=/a,IOMode=rw", 2, 22, "IOMode wants ro, wb or wt"),
    ("Lun 0 Path=/a,ro", 2, 15, "Lun wants NAME=VALUE"),
    ("Lun 0 Type=nullio", 2, 1, "wants Sectors=NUMBER"),
    ("Lun 0 Type=nullio,Sectors=x", 2, 27, "Sectors wants a number"),
    ("Lun", 2, 1, "Lun wants a value"),
    ("IncomingUser joe", 2, 1, "IncomingUser wants a name and a secret"),
    ("NOPInterval x", 2, 13, "NOPInterval wants a number of seconds"),
    ("Target", 2, 1, "Target wants a value"),
]


def test_iet_errors(settings):
    for line, row, col, want in WRONG_IET:
        text = "Target iqn.2001-04.com.example:a\n%s\n" % line
        out, err = convert(settings, {"ietd.conf": text, "initiators.allow": "ALL ALL\n"}, status=1)
        assert "ietd.conf:%d:%d: error: " % (row, col) in err and want in err, (line, err)
        assert out == "" and "nothing was written" in err, err


def test_iet_access(settings):
    """(allow, deny, targets, --from) -> lines of the text; None: the file is not there."""
    t = "iqn.2001-04.com.example:a"
    conf = "Target %s\n    Lun 0 Path=/a\n" % t
    cases = [
        (None, None, None, "iet", [], ["initiator-address ALL"]),
        (None, None, None, "iet-rules", [], ["initiator-address ALL"]),
        (None, None, "ALL ALL\n", "iet", [], ["initiator-address ALL", "targets-allow targets.allow"]),
        ("ALL 10.0.0.1\n", None, None, "iet", ["initiators-allow initiators.allow"], ["initiator-address 10.0.0.1"]),
        ("ALL 10.0.0.1\n", None, None, "iet-0.4", ["initiator-address ALL"], ["initiators-allow initiators.allow"]),
        ("ALL iqn.a:b,10.0.0.1\n", "not-a-name ALL\n", "ALL ALL", "iet-0.4",
         ["initiators-allow initiators.allow", "initiators-deny initiators.deny", "targets-allow targets.allow"],
         ["initiator-address 10.0.0.1", "initiator-name iqn.a:b"]),
        (None, None, None, "iet-0.4", ["initiator-address ALL"], []),
        ("", None, None, "iet-rules", [], ["initiator-address ALL"]),
        ("%s 10.0.0.1, [2001:db8::]/32\nALL ALL\n" % t, None, None, "iet-rules",
         ["initiator-address 10.0.0.1", "initiator-address 2001:db8::/32"],
         ["initiator-address ALL"]),
        ("# %s ALL\nother ALL\nALL iqn.1993-08.org.debian:01:abc, iqn\\.2000.*\n" % t, None, None,
         "iet-rules", ["initiator-name iqn.1993-08.org.debian:01:abc", "initiator-name iqn.2000*"],
         ["initiator-address ALL"]),
        ("%s 10.0.0.1\n" % t, "ALL ALL\n", None, "iet-rules", ["initiator-address 10.0.0.1"],
         ["initiator-address ALL"]),
        ("%s 10.0.0.1\n" % t, "other ALL\n", None, "iet-rules", ["initiator-address ALL"], []),
        ("ALL ALL\n", None, "%s 192.0.2.1\n" % t, "iet-rules", ["local-address 192.0.2.1"],
         ["state offline"]),
        ("ALL ALL\n", None, "other 192.0.2.1\n", "iet-rules", ["state offline"], []),
    ]
    for allow, deny, at, syntax, lines, nots in cases:
        files = {"ietd.conf": conf}
        for name, text in (("initiators.allow", allow), ("initiators.deny", deny),
                           ("targets.allow", at)):
            if text is not None:
                files[name] = text
        out, _ = convert(settings, files, "--from", syntax)
        has(out, *lines)
        hasnt(out, *nots)
    # what cannot be said admits nobody more
    for allow, deny, want in [("ALL 10.0.0.1,iqn.a:b\n", None, "iqn.a:b"),
                              ("ALL ^iqn[0-9]$\n", None, "a regular expression"),
                              ("ALL 10.0.0.1\n", "ALL 10.0.0.9\n", "initiators.deny")]:
        files = {"ietd.conf": conf, "initiators.allow": allow}
        if deny:
            files["initiators.deny"] = deny
        out, err = convert(settings, files, "--from", "iet-rules", status=3)
        assert want in err and "lost" in err, err
        hasnt(out, "initiator-address ALL", "initiator-name iqn.a:b")


def test_iet_served(settings):
    """evtgtd reads ietd.conf itself, included in a file of ours; its access file holds as rules."""
    name = IQN + "iet"
    for allow, admitted in (("127.0.0.0/8", True), ("10.1.2.3", False)):
        d = FromFile("include iet/ietd.conf\n", settings, ["a.img"])
        try:
            os.makedirs(d.path("iet"))
            with open(d.path("iet/ietd.conf"), "w") as f:
                f.write("Target %s\n Lun 0 Path=%s,Type=fileio\n" % (name, d.path("a.img")))
            with open(d.path("iet/initiators.allow"), "w") as f:
                f.write("%s %s\n" % (name, allow))
            d.start()
            try:
                with Session(d.addr, name) as s:
                    s.login()
                got = True
            except LoginFailed:
                got = False
            assert got == admitted, (allow, got)
            d.stop()
            # as the only configuration, by its name and by --syntax
            for args in ([], ["--syntax", "iet"]):
                t = subprocess.run([settings.daemon, "-t", "-c", d.path("iet/ietd.conf")] + args,
                                   capture_output=True, text=True, timeout=30)
                assert t.returncode == 0 and "1 target" in t.stdout, t
            t = subprocess.run([settings.daemon, "-t", "--syntax", "scst"], capture_output=True,
                               text=True, timeout=30)
            assert t.returncode == 2 and "is not known" in t.stderr, t
        finally:
            d.cleanup()


# ---- LIO ---------------------------------------------------------------------------------------

def test_lio(settings):
    with open(os.path.join(HERE, "convert", "saveconfig.json")) as f:
        text = f.read()
    out, err = convert(settings, {"saveconfig.json": text}, status=3)
    has(out, "incomingdiscoveryuser disc discovery12345", "portal 127.0.0.1:3260",
        "<target iqn.2003-01.org.linux-iscsi.san:sn.1>",
        "incominguser jim secret1234567 iqn.1993-08.org.debian:01:abc",
        "outgoinguser san secretmutual1", "initiator-name iqn.1993-08.org.debian:01:abc",
        "MaxBurstLength 524288", "<backing-store /srv/iscsi/one.img>",
        "naa 60014051c59c32ed5c44bc8ad12aa6c0", "scsi_sn 1c59c32e-d5c4-4bc8-ad12-aa6c03526f63",
        "vendor_id LIO-ORG", "product_id one", "product_rev 4.0", "thin-provisioning on",
        "<backing-store /dev/vg0/two>", "lun 5", "readonly on", "block-size 4096",
        "product_id IBLOCK", "rotation_rate 1")
    hasnt(out, "initiator-name iqn.1993-08.org.debian:01:other", "initiator-address ALL")
    for want in ("48:103: lost: iser has no equivalent",
                 "27:72: lost: login_timeout has no equivalent",
                 "45:33: lost: node_wwn has no equivalent: it sees other disks",
                 "20:21: lost: plugin has no equivalent: a disk in memory"):
        assert "saveconfig.json:" + want in err, (want, err)


def lio(attributes="{}", acls="[]", tpg=""):
    return ('{"storage_objects":[{"plugin":"fileio","name":"a","dev":"/a","write_back":true,'
            '"wwn":"1c59c32e-d5c4-4bc8-ad12-aa6c03526f63"}],"targets":[{"fabric":"iscsi",'
            '"wwn":"iqn.2003-01.org.example:a","tpgs":[{"attributes":%s,"node_acls":%s%s,"luns":'
            '[{"index":0,"storage_object":"/backstores/fileio/a"}]}]}]}' % (attributes, acls, tpg))


def test_lio_access(settings):
    out, _ = convert(settings, {"s.json": lio('{"generate_node_acls":1}')})
    has(out, "initiator-address ALL", "readonly on")
    out, _ = convert(settings, {"s.json": lio('{"generate_node_acls":1,'
                                              '"demo_mode_write_protect":0}')})
    has(out, "initiator-address ALL")
    hasnt(out, "readonly on")
    out, _ = convert(settings, {"s.json": lio()})
    hasnt(out, "initiator-address ALL")
    # authentication without an account: LIO lets nobody in
    out, err = convert(settings, {"s.json": lio('{"generate_node_acls":1,"authentication":1}')},
                       status=3)
    has(out, "state offline")
    acl = '[{"node_wwn":"iqn.2000-01.org.example:i","mapped_luns":[{"index":0,"tpg_lun":0}]}]'
    out, err = convert(settings, {"s.json": lio('{"authentication":1}', acl)}, status=3)
    hasnt(out, "initiator-name iqn.2000-01.org.example:i")
    out, err = convert(settings, {"s.json": lio('{"generate_node_acls":1}', acl)}, status=3)
    has(out, "initiator-name iqn.2000-01.org.example:i")
    hasnt(out, "initiator-address ALL")
    assert "generate_node_acls has no equivalent" in err, err


def test_lio_errors(settings):
    for text, where, want in [("{", "1:", "no"), ("[]", "1:1", "it is no object"),
                              ('{"targets":[{"fabric":"iscsi"}]}', "1:13", "wants a wwn"),
                              (lio().replace("fileio/a", "fileio/b"), "1:", "no storage object")]:
        out, err = convert(settings, {"s.json": text}, status=1)
        assert "s.json:" + where in err and want in err and out == "", (text, err)
    _, err = convert(settings, {"s.json": lio().replace('"iscsi"', '"qla2xxx"')}, status=3)
    assert "fabric has no equivalent: only iSCSI is served" in err, err


# ---- tgt ---------------------------------------------------------------------------------------

TGT = """default-driver iscsi
ignore-errors yes
<target iqn.2026-11.com.example:z>
    backing-store /srv/b.img
    backing-store = /srv/a.img
    <backing-store /srv/c.img>
        lun 2
        vendor_id <<EOF
        ACME
EOF
    </backing-store>
    incominguser "jim" "top secret 12"
</target>
<target iqn.2026-11.com.example:a>
    driver iser
    /* a comment */
    backing-store /srv/d.img
    <backing-store /dev/st0>
        device-type tape
    </backing-store>
    initiator-name iqn.1993-08.org.debian:01:abc
</target>
<target iqn.2026-11.com.example:z>
    initiator-address 192.0.2.1
</target>
"""


def test_tgt(settings):
    """Numbers are those that tgt-admin gives: by name and by path, around what is claimed."""
    out, err = convert(settings, {"targets.conf": TGT}, "--from", "tgt", status=3)
    has(out, "incominguser jim \"top secret 12\"", "initiator-address 192.0.2.1", "vendor_id ACME",
        "initiator-name iqn.1993-08.org.debian:01:abc")
    luns = re.findall(r"<backing-store (\S+)>.*?scsi_sn (\S+).*?lun (\d+)", out, re.S)
    assert sorted(luns) == [("/srv/a.img", "beaf21", "1"), ("/srv/b.img", "beaf23", "3"),
                            ("/srv/c.img", "beaf22", "2"), ("/srv/d.img", "beaf12", "2")], luns
    for want in ("2:1: lost: ignore-errors yes has no equivalent",
                 "15:5: lost: driver iser has no equivalent",
                 "19:9: lost: device-type tape has no equivalent",
                 "21:5: warning: tgt admits everybody", "23:1: warning: target "):
        assert "targets.conf:" + want in err, (want, err)


def test_tgt_names_nobody(settings):
    text = "<target iqn.2026-11.com.example:a>\n backing-store /a\n</target>\n"
    out, err = convert(settings, {"targets.conf": text}, "--from", "tgt")
    has(out, "initiator-address ALL")
    assert "everybody is admitted" in err, err
    out, _ = convert(settings, {"targets.conf": text}, "--from", "evtgt")
    hasnt(out, "initiator-address ALL")


def test_tgt_by_name(settings):
    """A targets.conf is tgt's wherever it is; what is taken as our own is told."""
    note = "taken as evtgt's own; --from tgt reads it as tgt's"
    text = "<target iqn.2026-11.com.example:a>\n backing-store /a\n</target>\n"
    out, err = convert(settings, {"targets.conf": text})
    has(out, "initiator-address ALL", "scsi_sn beaf11")
    assert note not in err, err
    with tempfile.TemporaryDirectory(prefix="evtgt-convert-") as tmp:
        path = os.path.join(tmp, "targets.conf")
        with open(path, "w") as f:
            f.write(text)
        t = subprocess.run([settings.daemon, "-t", "-c", path], capture_output=True, text=True,
                           timeout=30)
        assert "everybody is admitted" in t.stderr, t
    out, err = convert(settings, {"copy.conf": text})
    hasnt(out, "initiator-address ALL", "scsi_sn beaf11")
    assert "copy.conf: note: " + note in err, err
    for head, args in (("", ("--from", "evtgt")), ("syntax tgt\n", ())):
        _, err = convert(settings, {"copy.conf": head + text}, *args)
        assert note not in err, err


def test_limited_keys(settings):
    """What is cut down here is lost, and told where it stands; it is written as it was given."""
    text = "Target iqn.2026-11.com.example:a\n MaxConnections 4\n ErrorRecoveryLevel 0\n"
    out, err = convert(settings, {"ietd.conf": text}, status=3)
    has(out, "MaxConnections 4")
    assert "ietd.conf:2:17: lost: MaxConnections can be at most 1 here" in err, err
    assert "ErrorRecoveryLevel" not in err, err
    text = ("<target iqn.2026-11.com.example:a>\n initiator-address ALL\n DefaultTime2Retain 9\n"
            "</target>\n")
    _, err = convert(settings, {"targets.conf": text}, status=3)
    assert "targets.conf:3:21: lost: DefaultTime2Retain can be at most 0 here" in err, err
    _, err = convert(settings, {"own.conf": text})
    assert "own.conf:3:21: warning: DefaultTime2Retain can be at most 0 here" in err, err


# ---- the tool ----------------------------------------------------------------------------------

def test_to_file(settings):
    with tempfile.TemporaryDirectory(prefix="evtgt-convert-") as tmp:
        conf, to = os.path.join(tmp, "ietd.conf"), os.path.join(tmp, "ours")
        with open(conf, "w") as f:
            f.write(IET)
        cmd = [settings.adm, "convert", "--to", to, conf]
        out = subprocess.run(cmd, capture_output=True, text=True, timeout=30)
        assert out.returncode == 0 and out.stdout == "", out
        assert os.stat(to).st_mode & 0o777 == 0o600
        out = subprocess.run(cmd, capture_output=True, text=True, timeout=30)
        assert out.returncode == 1 and "it is not replaced" in out.stderr, out
        cmd = [settings.adm, "convert", "--no-secrets", conf]
        out = subprocess.run(cmd, capture_output=True, text=True, timeout=30)
        assert "othersecret12" not in out.stdout and out.returncode == 0, out
        for args, want in (([], "which file?"), (["--from", "scst", conf], "is not known"),
                           ([os.path.join(tmp, "none")], "cannot read")):
            out = subprocess.run([settings.adm, "convert", *args], capture_output=True, text=True,
                                 timeout=30)
            assert out.returncode in (1, 2) and want in out.stderr, out


def test_broken_json_shows_no_secret(settings):
    """What JSON's reader stumbles over may be a password."""
    for broken in ('{"chap_password" "opensesame99"}', '["x" "opensesame99"', '"opensesame99'):
        out, err = convert(settings, {"saveconfig.json": broken}, "--from", "lio", status=1)
        assert "not the JSON" in err and "opensesame" not in out + err, err
