/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iSCSI PDUs: a header decoded once into host order (RFC 7143 11), and headers built for sending.
 * No struct is laid over wire bytes.  target/pdutab.c has one row per opcode.
 */
#ifndef TARGET_PDU_H
#define TARGET_PDU_H

#include <stdbool.h>
#include <stdint.h>

#define BHS_LEN 48u
#define TAG_RESERVED 0xffffffffu

enum pdu_opcode {
    OPC_NOP_OUT = 0x00,
    OPC_SCSI_CMD = 0x01,
    OPC_TMF_REQ = 0x02,
    OPC_LOGIN_REQ = 0x03,
    OPC_TEXT_REQ = 0x04,
    OPC_DATA_OUT = 0x05,
    OPC_LOGOUT_REQ = 0x06,
    OPC_SNACK = 0x10,
    OPC_NOP_IN = 0x20,
    OPC_SCSI_RSP = 0x21,
    OPC_TMF_RSP = 0x22,
    OPC_LOGIN_RSP = 0x23,
    OPC_TEXT_RSP = 0x24,
    OPC_DATA_IN = 0x25,
    OPC_LOGOUT_RSP = 0x26,
    OPC_R2T = 0x31,
    OPC_ASYNC = 0x32,
    OPC_REJECT = 0x3f,
};

enum reject_reason { /* RFC 7143 11.17.1 */
    REJ_DATA_DIGEST = 0x02,
    REJ_SNACK = 0x03,
    REJ_PROTOCOL = 0x04,
    REJ_NOT_SUPPORTED = 0x05,
    REJ_IMMEDIATE_OVERFLOW = 0x06,
    REJ_TASK_IN_PROGRESS = 0x07,
    REJ_INVALID_DATA_ACK = 0x08,
    REJ_INVALID_FIELD = 0x09,
    REJ_LONG_OP = 0x0a,
    REJ_WAITING_LOGOUT = 0x0c,
};

/* A request as received: common fields always, the others where the opcode has them. */
struct pdu {
    uint8_t bhs[BHS_LEN]; /* as on the wire, for Reject */
    uint8_t opcode;       /* without the I bit */
    bool immediate;
    uint8_t flags;        /* byte 1 */
    uint8_t byte2, byte3;
    uint8_t lun[8];       /* bytes 8..15; ISID + TSIH in Login Requests */
    uint32_t ahs_len;     /* bytes */
    uint32_t data_len;    /* DataSegmentLength, bytes without padding */
    uint32_t itt;
    uint32_t ttt;         /* bytes 20..23: TTT, RTT; CID in byte 20,21 of login/logout */
    uint32_t edtl;        /* bytes 20..23 of a SCSI Command */
    uint32_t cmd_sn, exp_stat_sn;
    uint32_t ref_cmd_sn;  /* TMF, bytes 32..35 */
    uint32_t data_sn, offset; /* Data-Out: bytes 36..39, 40..43 */
    const uint8_t *ahs;   /* ahs_len bytes, or NULL */
    uint8_t *data;        /* data_len bytes, or NULL when rx put them elsewhere (Data-Out) */
    bool bad_data;        /* Data-Out only: the data digest was wrong */
};

/* Everything of the header but `ahs` and `data`, which become NULL. */
void pdu_decode(struct pdu *p, const uint8_t bhs[BHS_LEN]);

/* --- one row per opcode an initiator may send (pdutab.c) ---------------------------------------- */

enum pdu_phase { /* where it is allowed */
    PDU_LOGIN = 1,
    PDU_NORMAL = 2,
    PDU_DISCOVERY = 4,
};

enum pdu_flag {
    PDU_AHS = 1,     /* may have additional header segments */
    PDU_DATA = 2,    /* may have a data segment */
    PDU_CMD_SN = 4,  /* has a CmdSN: goes through sess_admit */
    PDU_DIRECT = 8,  /* data go to a task (dataout_begin), not into the receive buffer */
};

struct conn;
enum verdict { /* What a protocol check decides; never mixed with errno or sense. */
    KEEP,
    REJECT,    /* the handler did nothing; a Reject with conn.reject_reason is sent for it and its
                  CmdSN counts as not received (RFC 7143 7.3) */
    DROP_CONN,
    DROP_SESS
};

struct pdu_row {
    uint8_t opcode;
    uint8_t phases;   /* enum pdu_phase */
    uint8_t flags;    /* enum pdu_flag */
    uint8_t refuse;   /* enum reject_reason where the phase does not allow it; 0: drop */
    enum verdict (*handler)(struct conn *c, struct pdu *pdu);
    const char *name;
};

const struct pdu_row *pdutab_find(uint8_t opcode); /* NULL: unknown */

#endif
