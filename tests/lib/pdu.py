# SPDX-License-Identifier: BSD-2-Clause
"""iSCSI PDUs as bytes, from the figures of RFC 7143 section 11.

A Pdu is a 48-byte header with named fields, AHS bytes and data.  The same field names serve all
opcodes; who uses a field that the opcode has not gets what stands in those bytes.  `check_target`
holds the rules about reserved fields of everything a target may send."""

from lib.crc32c import digest

NONE = 0xFFFFFFFF  # reserved value of ITT and TTT

# Initiator opcodes
NOP_OUT, SCSI_CMD, TMF_REQ, LOGIN_REQ, TEXT_REQ, DATA_OUT, LOGOUT_REQ, SNACK = (
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x10)
# Target opcodes
NOP_IN, SCSI_RSP, TMF_RSP, LOGIN_RSP, TEXT_RSP, DATA_IN, LOGOUT_RSP, R2T, ASYNC, REJECT = (
    0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x31, 0x32, 0x3F)

NAMES = {0x00: "NOP-Out", 0x01: "SCSI Command", 0x02: "TMF Request", 0x03: "Login Request",
         0x04: "Text Request", 0x05: "Data-Out", 0x06: "Logout Request", 0x10: "SNACK",
         0x20: "NOP-In", 0x21: "SCSI Response", 0x22: "TMF Response", 0x23: "Login Response",
         0x24: "Text Response", 0x25: "Data-In", 0x26: "Logout Response", 0x31: "R2T",
         0x32: "Async Message", 0x3F: "Reject"}

# Reject reasons, 11.17.1
REJ_DATA_DIGEST, REJ_SNACK, REJ_PROTOCOL, REJ_UNSUPPORTED, REJ_IMMEDIATE, REJ_TASK_IN_PROGRESS, \
    REJ_INVALID_DACK, REJ_INVALID_FIELD = 2, 3, 4, 5, 6, 7, 8, 9

# name: (offset, bytes)
FIELDS = {
    "flags": (1, 1), "version_max": (2, 1), "version_min": (3, 1), "version_active": (3, 1),
    "response": (2, 1), "reason": (2, 1), "status": (3, 1), "ahs_len": (4, 1), "dsl": (5, 3),
    "lun": (8, 8), "tsih": (14, 2), "itt": (16, 4), "ttt": (20, 4), "snack_tag": (20, 4),
    "rtt": (20, 4), "edtl": (20, 4), "cid": (20, 2), "cmd_sn": (24, 4), "stat_sn": (24, 4),
    "exp_stat_sn": (28, 4), "exp_cmd_sn": (28, 4), "max_cmd_sn": (32, 4), "ref_cmd_sn": (32, 4),
    "data_sn": (36, 4), "r2t_sn": (36, 4), "exp_data_sn": (36, 4), "status_class": (36, 1),
    "status_detail": (37, 1), "event": (36, 1), "vcode": (37, 1), "param1": (38, 2),
    "param2": (40, 2), "param3": (42, 2), "offset": (40, 4), "bidi_residual": (40, 4),
    "residual": (44, 4), "desired": (44, 4), "time2wait": (40, 2), "time2retain": (42, 2),
    "beg_run": (40, 4), "run_len": (44, 4),
}


class Pdu:
    """`raw_lengths=True` sends ahs_len and dsl as set by hand instead of the true ones."""

    def __init__(self, opcode=0, immediate=False, data=b"", ahs=b"", cdb=None, isid=None,
                 raw_lengths=False, **fields):
        self.bhs = bytearray(48)
        self.bhs[0] = opcode | (0x40 if immediate else 0)
        self.data = bytes(data)
        self.ahs = bytes(ahs)
        self.raw_lengths = raw_lengths
        if cdb is not None:
            self.bhs[32:32 + min(16, len(cdb))] = cdb[:16]
        if isid is not None:
            self.bhs[8:14] = isid
        for k, v in fields.items():
            setattr(self, k, v)

    @property
    def opcode(self):
        return self.bhs[0] & 0x3F

    @property
    def immediate(self):
        return bool(self.bhs[0] & 0x40)

    @property
    def isid(self):
        return bytes(self.bhs[8:14])

    @property
    def final(self):
        return bool(self.bhs[1] & 0x80)

    @property
    def name(self):
        return NAMES.get(self.opcode, "opcode %02x" % self.opcode)

    def encode(self, hdigest=False, ddigest=False, pad=b"\0", bad_hdigest=False,
               bad_ddigest=False):
        if not self.raw_lengths:
            self.ahs_len = len(self.ahs) // 4
            self.dsl = len(self.data)
        head = bytes(self.bhs) + self.ahs
        out = head
        if hdigest:
            d = digest(head)
            out += bytes((d[0] ^ 0xFF,)) + d[1:] if bad_hdigest else d
        if self.data:
            body = self.data + pad * (-len(self.data) % 4)
            out += body
            if ddigest:
                d = digest(body)
                out += bytes((d[0] ^ 0xFF,)) + d[1:] if bad_ddigest else d
        return out

    def __repr__(self):
        return "<%s flags=%02x %s data=%d>" % (self.name, self.bhs[1], self.bhs.hex(" ", 4),
                                                len(self.data))


def _field(off, size):
    def get(self):
        return int.from_bytes(self.bhs[off:off + size], "big")

    def put(self, v):
        self.bhs[off:off + size] = int(v).to_bytes(size, "big")
    return property(get, put)


for _name, (_off, _size) in FIELDS.items():
    setattr(Pdu, _name, _field(_off, _size))


def lun_bytes(lun):
    """A LUN number as the 64-bit field: peripheral addressing to 255, flat above (SAM-5 4.7)."""
    if lun < 256:
        return lun << 48
    return (0x4000 | lun) << 48


# opcode: (byte-1 bits that may be set, byte-1 bits that must be set, reserved byte ranges)
TARGET_RULES = {
    NOP_IN: (0x80, 0x80, [(2, 4), (36, 48)]),
    SCSI_RSP: (0x9E, 0x80, [(8, 16)]),
    TMF_RSP: (0x80, 0x80, [(3, 4), (8, 16), (20, 24), (36, 48)]),
    LOGIN_RSP: (0xCF, 0x00, [(20, 24), (38, 48)]),
    TEXT_RSP: (0xC0, 0x00, [(2, 4), (36, 48)]),
    DATA_IN: (0xC7, 0x00, [(2, 3)]),
    LOGOUT_RSP: (0x80, 0x80, [(3, 4), (8, 16), (20, 24), (36, 40), (44, 48)]),
    R2T: (0x80, 0x80, [(2, 4)]),
    ASYNC: (0x80, 0x80, [(2, 4), (20, 24), (44, 48)]),
    REJECT: (0x80, 0x80, [(3, 4), (8, 16), (20, 24), (40, 48)]),
}
NO_DATA = (TMF_RSP, LOGOUT_RSP, R2T)


def check_target(p):
    """Reserved fields, flags and lengths of a PDU from a target; AssertionError names the rule."""
    def need(cond, what):
        assert cond, "%s: %s: %r" % (p.name, what, p)

    need(p.opcode in TARGET_RULES, "not an opcode of a target (RFC7143 11.2.1.2)")
    may, must, zero = TARGET_RULES[p.opcode]
    need(p.bhs[0] & 0xC0 == 0, "bits 0-1 of byte 0 are reserved in responses")
    need(p.flags & ~may & 0xFF == 0, "reserved bits set in byte 1")
    need(p.flags & must == must, "byte 1 must have bit 80h set")
    for a, b in zero:
        need(not any(p.bhs[a:b]), "reserved bytes %d..%d are not zero" % (a, b - 1))
    need(p.ahs_len == 0, "AHS in a target PDU")
    if p.opcode in NO_DATA:
        need(p.dsl == 0, "must have no data segment")
    if p.opcode in (ASYNC, REJECT):
        need(p.itt == NONE, "bytes 16-19 must be ffffffff (11.9, 11.17)")
    if p.opcode == REJECT:
        need(len(p.data) >= 48, "must carry the header of the rejected PDU (11.17)")
    if p.opcode == DATA_IN:
        if not p.flags & 0x01:  # no status
            need(p.status == 0 and p.stat_sn == 0, "status or StatSN without S (11.7.3)")
            need(p.flags & 0x06 == 0 and p.residual == 0, "residual without S (11.7.3)")
        else:
            need(p.final, "S without F (11.7.3)")
            need(p.flags & 0x06 != 0x06, "O and U both set (11.4.5.1)")
            need(p.flags & 0x06 or p.residual == 0, "residual count without O or U")
        if not p.flags & 0x40:  # no acknowledgement asked
            need(p.ttt in (NONE, 0), "TTT without A (11.7.4)")
            need(p.ttt == 0 or p.lun == 0, "LUN without TTT (11.7.4)")
    if p.opcode == SCSI_RSP:
        need(p.flags & 0x06 != 0x06, "O and U both set (11.4.5.1)")
        need(p.flags & 0x18 != 0x18, "o and u both set (11.4.5.1)")
        need(p.flags & 0x06 or p.residual == 0, "residual count without O or U")
        need(p.flags & 0x18 or p.bidi_residual == 0, "bidirectional residual without o or u")
        if p.response != 0:
            need(p.status == 0, "status valid only with Response 00 (11.4.3)")
        if p.data:
            n = int.from_bytes(p.data[:2], "big")
            need(len(p.data) >= 2 + n, "SenseLength beyond the data segment (11.4.7.1)")
    if p.opcode == R2T:
        need(p.ttt != NONE, "TTT is ffffffff (11.8.3)")
        need(p.desired > 0, "Desired Data Transfer Length is 0 (11.8.4)")
    if p.opcode == LOGIN_RSP:
        need(not (p.flags & 0x80 and p.flags & 0x40), "T and C both set (11.13.7)")
        if p.status_class == 0 and p.flags & 0x80:
            need((p.flags >> 2) & 3 < p.flags & 3, "NSG not above CSG (11.13.8)")
        if p.status_class:
            need(not p.flags & 0x80, "T set in a failed login (11.13.5)")
        if not p.flags & 0x80:
            need(p.flags & 3 == 0, "NSG is reserved without T (11.13.8)")
        need(p.flags & 0x0C != 0x08, "stage 2")
    if p.opcode == TEXT_RSP:
        need(not (p.final and p.flags & 0x40), "F and C both set (11.11.2)")
        if p.final:
            need(p.ttt == NONE, "F=1 with a Target Transfer Tag (11.11.4)")
        else:
            need(p.ttt != NONE, "F=0 without a Target Transfer Tag (11.11.4)")
    if p.opcode == NOP_IN:
        need(p.itt != NONE or p.ttt != NONE, "neither answer nor ping (11.19)")
        if p.itt != NONE:
            need(p.ttt == NONE, "answer with a Target Transfer Tag (11.19.1)")
        else:
            need(p.dsl == 0, "ping of the target with data (11.19)")
