/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Standard INQUIRY data (SPC-4 6.6.2), for mapped units, the REPORT LUNS well-known unit and
 * absent units.  Called by dispatch on the command's worker.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/worker.h"
#include "scsi/priv.h"

#define INQUIRY_LEN 96

enum { /* peripheral qualifier << 5 | device type */
       PERIPHERAL_DISK = 0x00,
       PERIPHERAL_WLUN = 0x1e,
       PERIPHERAL_LUN0 = 0x3f,   /* could be there, is not: a place for REPORT LUNS */
       PERIPHERAL_ABSENT = 0x7f, /* cannot be there */
};

static const uint16_t version_descriptors[] = {
    0x00a0, /* SAM-5 */
    0x0460, /* SPC-4 */
    0x04c0, /* SBC-3 */
    0x0960, /* iSCSI */
};

static uint8_t
peripheral(const struct scsi_cmd *cmd)
{
    if (cmd->lu != NULL)
        return PERIPHERAL_DISK;
    if (lun_is_wlun(cmd->lun))
        return PERIPHERAL_WLUN;
    return lun_decode(cmd->lun) == 0 ? PERIPHERAL_LUN0 : PERIPHERAL_ABSENT;
}

static void
put_standard(struct wcur *w, uint8_t per, const struct lun_conf *c)
{
    wcur_u8(w, per);
    wcur_u8(w, c != NULL && c->removable ? 0x80 : 0); /* RMB */
    wcur_u8(w, 0x06);                                 /* SPC-4 */
    wcur_u8(w, 0x12);                                 /* HISUP, response data format 2 */
    wcur_u8(w, INQUIRY_LEN - 5);
    wcur_zero(w, 2);
    wcur_u8(w, 0x02); /* CMDQUE */
    wcur_ascii(w, c != NULL ? c->vendor_id : "EVTGT", 8);
    wcur_ascii(w,
               c != NULL                ? c->product_id
               : per == PERIPHERAL_WLUN ? "REPORT-LUNS"
                                        : "NO-UNIT",
               16);
    wcur_ascii(w, c != NULL ? c->product_rev : PACKAGE_VERSION, 4);
    wcur_zero(w, 22); /* vendor specific, reserved: 36..57 */
    unsigned n = sizeof version_descriptors / sizeof version_descriptors[0];
    for (unsigned i = 0; i < 8; i++)
        wcur_be16(w, i < n ? version_descriptors[i] : 0);
    wcur_zero(w, INQUIRY_LEN - w->len);
}

void
spc_inquiry(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    uint8_t per = peripheral(cmd);
    struct lun_conf conf;
    struct wcur w;

    if (cmd->cdb[1] & 0x01) {
        if (per == PERIPHERAL_LUN0 || per == PERIPHERAL_ABSENT)
            scsi_fail(cmd, SENSE_LUN_NOT_SUPPORTED, NO_FIELD);
        else
            spc_vpd(cmd, per);
        return;
    }
    if (cmd->cdb[2] != 0) { /* PAGE CODE without EVPD */
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD_BYTE(2));
        return;
    }
    if (!scsi_reply(cmd, &w))
        return;
    if (cmd->lu != NULL)
        lun_conf_copy(cmd->lu, &conf);
    put_standard(&w, per, cmd->lu != NULL ? &conf : NULL);
    scsi_data_in(cmd, (uint32_t)w.len);
}
