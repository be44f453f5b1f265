/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One row per opcode an initiator may send: where it is allowed, what it may carry, who handles
 * it.  Read by rx.c and conn.c for every PDU; constant.
 */
#include "config.h"

#include <string.h>

#include "base/bytes.h"
#include "target/target.h"

static const struct pdu_row rows[] = {
    {OPC_NOP_OUT, PDU_NORMAL, PDU_DATA | PDU_CMD_SN, REJ_PROTOCOL, nop_out_pdu, "NOP-Out"},
    {OPC_SCSI_CMD, PDU_NORMAL, PDU_AHS | PDU_DATA | PDU_CMD_SN, REJ_PROTOCOL, task_start,
     "SCSI Command"},
    {OPC_TMF_REQ, PDU_NORMAL, PDU_CMD_SN, REJ_PROTOCOL, tmf_pdu, "Task Management Request"},
    {OPC_LOGIN_REQ, PDU_LOGIN, PDU_DATA, REJ_PROTOCOL, login_pdu, "Login Request"},
    {OPC_TEXT_REQ, PDU_NORMAL | PDU_DISCOVERY, PDU_DATA | PDU_CMD_SN, REJ_PROTOCOL, text_pdu,
     "Text Request"},
    {OPC_DATA_OUT, PDU_NORMAL, PDU_DATA | PDU_DIRECT, REJ_PROTOCOL, dataout_pdu, "Data-Out"},
    {OPC_LOGOUT_REQ, PDU_NORMAL | PDU_DISCOVERY, PDU_CMD_SN, REJ_PROTOCOL, logout_pdu,
     "Logout Request"},
    /* Within-connection recovery is not there at ErrorRecoveryLevel 0 (RFC 7143 11.16). */
    {OPC_SNACK, 0, 0, REJ_SNACK, NULL, "SNACK Request"},
};

const struct pdu_row *
pdutab_find(uint8_t opcode)
{
    /* Opcodes 00h..06h are the first seven rows in order; a test holds this. */
    if (opcode <= OPC_LOGOUT_REQ)
        return &rows[opcode];
    return opcode == OPC_SNACK ? &rows[OPC_LOGOUT_REQ + 1] : NULL;
}

void
pdu_decode(struct pdu *p, const uint8_t bhs[BHS_LEN])
{
    memcpy(p->bhs, bhs, BHS_LEN);
    p->opcode = bhs[0] & 0x3f;
    p->immediate = (bhs[0] & 0x40) != 0;
    p->flags = bhs[1];
    p->byte2 = bhs[2];
    p->byte3 = bhs[3];
    p->ahs_len = (uint32_t)bhs[4] * 4;
    p->data_len = get_be24(bhs + 5);
    memcpy(p->lun, bhs + 8, sizeof p->lun);
    p->itt = get_be32(bhs + 16);
    p->ttt = p->edtl = get_be32(bhs + 20);
    p->cmd_sn = get_be32(bhs + 24);
    p->exp_stat_sn = get_be32(bhs + 28);
    p->ref_cmd_sn = get_be32(bhs + 32);
    p->data_sn = get_be32(bhs + 36);
    p->offset = get_be32(bhs + 40);
    p->ahs = NULL;
    p->data = NULL;
    p->bad_data = false;
}
