/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TEST UNIT READY, REQUEST SENSE, REPORT LUNS (SPC-4 6.47, 6.39, 6.33), RESERVE and RELEASE
 * (SPC-2 7.21, 7.17), PREVENT ALLOW MEDIUM REMOVAL (SBC-3 5.10).  Called by dispatch on the
 * command's worker.
 */
#include "scsi/priv.h"

#include "base/worker.h"

/* Everything that could be wrong was checked by dispatch. */
void
spc_test_unit_ready(struct scsi_cmd *cmd)
{
    scsi_good(cmd);
}

/* --- REQUEST SENSE --------------------------------------------------------------------------- */

/* Sense is delivered with the status, so what is left to report is a pending unit attention, or
 * why the unit is not ready (pollable sense data, SPC-4 6.39). */
void
spc_request_sense(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    uint8_t key = SK_NO_SENSE, sense[SCSI_SENSE_MAX];
    uint16_t asc = 0;
    uint32_t why;
    struct wcur w;

    if (cmd->lu == NULL && !lun_is_wlun(cmd->lun)) {
        key = SK_ILLEGAL_REQUEST;
        asc = 0x2500;
    } else if (cmd->nx != NULL && ua_take(cmd->nx, &asc)) {
        key = SK_UNIT_ATTENTION;
    } else if (cmd->lu != NULL && (why = lun_not_ready(cmd->lu)) != 0) {
        key = (uint8_t)(why >> 16);
        asc = (uint16_t)why;
    }
    if (!scsi_reply(cmd, &w))
        return;
    bool desc = (cmd->cdb[1] & 0x01) != 0;
    wcur_bytes(&w, sense, sense_build(sense, desc, key, asc, false, 0, NO_FIELD, true));
    scsi_data_in(cmd, (uint32_t)w.len);
}

/* --- REPORT LUNS ----------------------------------------------------------------------------- */

enum { SELECT_ADDRESSED = 0, SELECT_WELL_KNOWN = 1, SELECT_ALL = 2 };

void
spc_report_luns(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    static const uint8_t wlun[8] = {WLUN_REPORT_LUNS >> 8, WLUN_REPORT_LUNS & 0xff};
    struct itn *itn = cmd->itn;
    uint8_t select = cmd->cdb[2];
    struct wcur w;

    if (select > SELECT_ALL) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD_BYTE(2));
        return;
    }
    if (!scsi_reply(cmd, &w))
        return;
    unsigned nlun = select == SELECT_WELL_KNOWN ? 0 : itn->nnx;
    unsigned nwell = select == SELECT_ADDRESSED ? 0 : 1;
    wcur_be32(&w, (nlun + nwell) * 8);
    wcur_zero(&w, 4);
    for (unsigned i = 0; i < nlun; i++) {
        uint8_t e[8];
        lun_encode(itn->nx[i]->number, e);
        wcur_bytes(&w, e, sizeof e);
    }
    if (nwell != 0)
        wcur_bytes(&w, wlun, sizeof wlun);
    for (unsigned i = 0; i < itn->nnx; i++) /* now they know */
        atomic_fetch_and_explicit(&itn->nx[i]->ua, ~(1u << UA_LUNS_CHANGED), memory_order_relaxed);
    scsi_data_in(cmd, (uint32_t)w.len);
}

/* --- RESERVE, RELEASE ------------------------------------------------------------------------ */

void
spc_reserve(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    struct lun *lun = cmd->lu;

    pthread_mutex_lock(&lun->lock);
    bool mine = lun->reserved_by == NULL || lun->reserved_by == cmd->nx;
    if (mine && lun->reserved_by == NULL) {
        lun->reserved_by = cmd->nx;
        atomic_fetch_add_explicit(&lun->generation, 1, memory_order_release);
    }
    pthread_mutex_unlock(&lun->lock);
    if (mine)
        scsi_good(cmd);
    else
        scsi_status(cmd, SAM_RESERVATION_CONFLICT);
}

/* From anybody but the holder: GOOD, and nothing happens. */
void
spc_release(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    struct lun *lun = cmd->lu;

    pthread_mutex_lock(&lun->lock);
    if (lun->reserved_by == cmd->nx) {
        lun->reserved_by = NULL;
        atomic_fetch_add_explicit(&lun->generation, 1, memory_order_release);
    }
    pthread_mutex_unlock(&lun->lock);
    scsi_good(cmd);
}

/* --- PREVENT ALLOW MEDIUM REMOVAL ------------------------------------------------------------ */

void
spc_prevent_allow(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    struct lun *lun = cmd->lu;
    bool prevent = (cmd->cdb[4] & 0x01) != 0;

    pthread_mutex_lock(&lun->lock);
    if (prevent && !cmd->nx->prevent)
        lun->prevent++;
    if (!prevent && cmd->nx->prevent)
        lun->prevent--;
    cmd->nx->prevent = prevent;
    pthread_mutex_unlock(&lun->lock);
    scsi_good(cmd);
}
