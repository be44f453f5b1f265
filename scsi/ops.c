/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The opcode table: one row per (operation code, service action).  Lookup, reserved-bit checks,
 * lengths, range, reservations, REPORT SUPPORTED OPERATION CODES and the manual all come from
 * here.  Rows are sorted by operation code and service action.  Any thread.
 *
 * Usage data: a 1 bit is a bit that is looked at.  Never set: protection fields (no protection
 * information), GROUP NUMBER (no grouping; PRE-FETCH lets it pass, a hint beside a hint), ANCHOR,
 * the CONTROL byte (no NACA), obsolete fields (but SYNC_NV: a flush to the medium includes it).
 */
#include "scsi/priv.h"

#include <stdio.h>
#include <string.h>

#define F4(x) x, x, x, x
#define F8(x) F4(x), F4(x)
#define NOWHERE {0, 0}

#define READ_FLAGS (OP_BLOCKS | OP_LBA_CHECK | OP_RANGE)
#define WRITE_FLAGS (OP_BLOCKS | OP_LBA_CHECK | OP_RANGE | OP_WRITES)
#define ANYTIME (OP_NO_LUN | OP_NO_UA | OP_NOT_READY | OP_IMPLICIT_HEAD | OP_WLUN)

const struct scsi_op scsi_ops[] = {
    {0x00, SA_NONE, TYPE_DISK, 6, {0x00}, DIR_NONE, RESV_READ, OP_WLUN,
     NOWHERE, NOWHERE, NOWHERE, 10, spc_test_unit_ready, "TEST UNIT READY", "SPC-4 6.47"},
    {0x03, SA_NONE, TYPE_DISK, 6, {0x03, 0x01, 0, 0, 0xff}, DIR_IN, RESV_ALWAYS, ANYTIME,
     NOWHERE, NOWHERE, {4, 1}, 10, spc_request_sense, "REQUEST SENSE", "SPC-4 6.39"},
    {0x08, SA_NONE, TYPE_DISK, 6, {0x08, 0x1f, 0xff, 0xff, 0xff}, DIR_IN, RESV_READ, READ_FLAGS,
     {1, 3}, {4, 1}, NOWHERE, 30, sbc_read, "READ(6)", "SBC-2 5.5"},
    {0x0a, SA_NONE, TYPE_DISK, 6, {0x0a, 0x1f, 0xff, 0xff, 0xff}, DIR_OUT, RESV_WRITE, WRITE_FLAGS,
     {1, 3}, {4, 1}, NOWHERE, 60, sbc_write, "WRITE(6)", "SBC-2 5.24"},
    {0x12, SA_NONE, TYPE_DISK, 6, {0x12, 0x01, 0xff, 0xff, 0xff}, DIR_IN, RESV_ALWAYS, ANYTIME,
     NOWHERE, NOWHERE, {3, 2}, 10, spc_inquiry, "INQUIRY", "SPC-4 6.6"},
    {0x15, SA_NONE, TYPE_DISK, 6, {0x15, 0x11, 0, 0, 0xff}, DIR_OUT, RESV_CONFLICT,
     OP_PARAM | OP_NOT_READY,
     NOWHERE, NOWHERE, {4, 1}, 30, mode_select, "MODE SELECT(6)", "SPC-4 6.11"},
    {0x16, SA_NONE, TYPE_DISK, 6, {0x16, 0x00, 0xff}, DIR_NONE, RESV_CONFLICT, OP_NOT_READY,
     NOWHERE, NOWHERE, NOWHERE, 10, spc_reserve, "RESERVE(6)", "SPC-2 7.21"},
    {0x17, SA_NONE, TYPE_DISK, 6, {0x17, 0x00, 0xff}, DIR_NONE, RESV_RELEASE, OP_NOT_READY,
     NOWHERE, NOWHERE, NOWHERE, 10, spc_release, "RELEASE(6)", "SPC-2 7.17"},
    {0x1a, SA_NONE, TYPE_DISK, 6, {0x1a, 0x08, 0xff, 0xff, 0xff}, DIR_IN, RESV_CONFLICT,
     OP_NOT_READY,
     NOWHERE, NOWHERE, {4, 1}, 10, mode_sense, "MODE SENSE(6)", "SPC-4 6.13"},
    {0x1b, SA_NONE, TYPE_DISK, 6, {0x1b, 0x01, 0, 0, 0xf7}, DIR_NONE, RESV_CONFLICT, OP_NOT_READY,
     NOWHERE, NOWHERE, NOWHERE, 60, sbc_start_stop, "START STOP UNIT", "SBC-3 5.25"},
    {0x1e, SA_NONE, TYPE_DISK, 6, {0x1e, 0, 0, 0, 0x01}, DIR_NONE, RESV_PREVENT, OP_NOT_READY,
     NOWHERE, NOWHERE, NOWHERE, 10, spc_prevent_allow, "PREVENT ALLOW MEDIUM REMOVAL",
     "SBC-3 5.10"},
    {0x25, SA_NONE, TYPE_DISK, 10, {0x25, 0, F4(0xff), 0, 0, 0x01}, DIR_IN, RESV_ALWAYS, 0,
     NOWHERE, NOWHERE, NOWHERE, 10, sbc_read_capacity_10, "READ CAPACITY(10)", "SBC-3 5.15"},
    {0x28, SA_NONE, TYPE_DISK, 10, {0x28, 0x18, F4(0xff), 0, 0xff, 0xff}, DIR_IN, RESV_READ,
     READ_FLAGS | OP_PROTECT,
     {2, 4}, {7, 2}, NOWHERE, 30, sbc_read, "READ(10)", "SBC-3 5.11"},
    {0x2a, SA_NONE, TYPE_DISK, 10, {0x2a, 0x18, F4(0xff), 0, 0xff, 0xff}, DIR_OUT, RESV_WRITE,
     WRITE_FLAGS | OP_PROTECT,
     {2, 4}, {7, 2}, NOWHERE, 60, sbc_write, "WRITE(10)", "SBC-3 5.33"},
    {0x2e, SA_NONE, TYPE_DISK, 10, {0x2e, 0x12, F4(0xff), 0, 0xff, 0xff}, DIR_OUT, RESV_WRITE,
     WRITE_FLAGS | OP_PROTECT,
     {2, 4}, {7, 2}, NOWHERE, 60, sbc_write_and_verify, "WRITE AND VERIFY(10)", "SBC-3 5.37"},
    {0x2f, SA_NONE, TYPE_DISK, 10, {0x2f, 0x16, F4(0xff), 0, 0xff, 0xff}, DIR_OUT, RESV_READ,
     OP_LBA_CHECK | OP_PROTECT | OP_BYTCHK | OP_RANGE,
     {2, 4}, {7, 2}, NOWHERE, 60, sbc_verify, "VERIFY(10)", "SBC-3 5.29"},
    {0x34, SA_NONE, TYPE_DISK, 10, {0x34, 0x02, F4(0xff), 0x1f, 0xff, 0xff}, DIR_NONE, RESV_READ,
     OP_LBA_CHECK | OP_RANGE,
     {2, 4}, {7, 2}, NOWHERE, 30, sbc_prefetch, "PRE-FETCH(10)", "SBC-3 5.8"},
    {0x35, SA_NONE, TYPE_DISK, 10, {0x35, 0x06, F4(0xff), 0, 0xff, 0xff}, DIR_NONE, RESV_WRITE,
     OP_LBA_CHECK,
     {2, 4}, {7, 2}, NOWHERE, 120, sbc_sync_cache, "SYNCHRONIZE CACHE(10)", "SBC-3 5.26"},
    {0x41, SA_NONE, TYPE_DISK, 10, {0x41, 0x08, F4(0xff), 0, 0xff, 0xff}, DIR_OUT, RESV_WRITE,
     OP_LBA_CHECK | OP_PROTECT | OP_WRITES | OP_ONE_BLOCK | OP_UNMAP_BIT | OP_RANGE,
     {2, 4}, {7, 2}, NOWHERE, 120, sbc_write_same, "WRITE SAME(10)", "SBC-3 5.43"},
    {0x42, SA_NONE, TYPE_DISK, 10, {0x42, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, DIR_OUT, RESV_WRITE,
     OP_PARAM | OP_WRITES | OP_THIN | OP_RANGE,
     NOWHERE, NOWHERE, {7, 2}, 120, sbc_unmap, "UNMAP", "SBC-3 5.28"},
    {0x55, SA_NONE, TYPE_DISK, 10, {0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff}, DIR_OUT,
     RESV_CONFLICT, OP_PARAM | OP_NOT_READY,
     NOWHERE, NOWHERE, {7, 2}, 30, mode_select, "MODE SELECT(10)", "SPC-4 6.12"},
    {0x56, SA_NONE, TYPE_DISK, 10, {0x56, 0x00, 0xff}, DIR_NONE, RESV_CONFLICT, OP_NOT_READY,
     NOWHERE, NOWHERE, NOWHERE, 10, spc_reserve, "RESERVE(10)", "SPC-2 7.22"},
    {0x57, SA_NONE, TYPE_DISK, 10, {0x57, 0x00, 0xff}, DIR_NONE, RESV_RELEASE, OP_NOT_READY,
     NOWHERE, NOWHERE, NOWHERE, 10, spc_release, "RELEASE(10)", "SPC-2 7.18"},
    {0x5a, SA_NONE, TYPE_DISK, 10, {0x5a, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff}, DIR_IN,
     RESV_CONFLICT, OP_NOT_READY,
     NOWHERE, NOWHERE, {7, 2}, 10, mode_sense, "MODE SENSE(10)", "SPC-4 6.14"},
    {0x88, SA_NONE, TYPE_DISK, 16, {0x88, 0x18, F8(0xff), F4(0xff)}, DIR_IN, RESV_READ,
     READ_FLAGS | OP_PROTECT,
     {2, 8}, {10, 4}, NOWHERE, 30, sbc_read, "READ(16)", "SBC-3 5.13"},
    {0x8a, SA_NONE, TYPE_DISK, 16, {0x8a, 0x18, F8(0xff), F4(0xff)}, DIR_OUT, RESV_WRITE,
     WRITE_FLAGS | OP_PROTECT,
     {2, 8}, {10, 4}, NOWHERE, 60, sbc_write, "WRITE(16)", "SBC-3 5.35"},
    {0x8e, SA_NONE, TYPE_DISK, 16, {0x8e, 0x12, F8(0xff), F4(0xff)}, DIR_OUT, RESV_WRITE,
     WRITE_FLAGS | OP_PROTECT,
     {2, 8}, {10, 4}, NOWHERE, 60, sbc_write_and_verify, "WRITE AND VERIFY(16)", "SBC-3 5.39"},
    {0x8f, SA_NONE, TYPE_DISK, 16, {0x8f, 0x16, F8(0xff), F4(0xff)}, DIR_OUT, RESV_READ,
     OP_LBA_CHECK | OP_PROTECT | OP_BYTCHK | OP_RANGE,
     {2, 8}, {10, 4}, NOWHERE, 60, sbc_verify, "VERIFY(16)", "SBC-3 5.31"},
    {0x90, SA_NONE, TYPE_DISK, 16, {0x90, 0x02, F8(0xff), F4(0xff), 0x1f}, DIR_NONE, RESV_READ,
     OP_LBA_CHECK | OP_RANGE,
     {2, 8}, {10, 4}, NOWHERE, 30, sbc_prefetch, "PRE-FETCH(16)", "SBC-3 5.9"},
    {0x91, SA_NONE, TYPE_DISK, 16, {0x91, 0x06, F8(0xff), F4(0xff)}, DIR_NONE, RESV_WRITE,
     OP_LBA_CHECK,
     {2, 8}, {10, 4}, NOWHERE, 120, sbc_sync_cache, "SYNCHRONIZE CACHE(16)", "SBC-3 5.27"},
    {0x93, SA_NONE, TYPE_DISK, 16, {0x93, 0x09, F8(0xff), F4(0xff)}, DIR_OUT, RESV_WRITE,
     OP_LBA_CHECK | OP_PROTECT | OP_WRITES | OP_ONE_BLOCK | OP_UNMAP_BIT | OP_RANGE,
     {2, 8}, {10, 4}, NOWHERE, 120, sbc_write_same, "WRITE SAME(16)", "SBC-3 5.44"},
    {0x9e, 0x10, TYPE_DISK, 16, {0x9e, 0x00, F8(0xff), F4(0xff), 0x01}, DIR_IN, RESV_ALWAYS, 0,
     NOWHERE, NOWHERE, {10, 4}, 10, sbc_read_capacity_16, "READ CAPACITY(16)", "SBC-3 5.16"},
    {0x9e, 0x12, TYPE_DISK, 16, {0x9e, 0x00, F8(0xff), F4(0xff)}, DIR_IN, RESV_READ,
     OP_LBA_CHECK,
     {2, 8}, NOWHERE, {10, 4}, 60, sbc_get_lba_status, "GET LBA STATUS", "SBC-3 5.4"},
    {0xa0, SA_NONE, TYPE_DISK, 12, {0xa0, 0, 0xff, 0, 0, 0, F4(0xff)}, DIR_IN, RESV_ALWAYS,
     ANYTIME,
     NOWHERE, NOWHERE, {6, 4}, 10, spc_report_luns, "REPORT LUNS", "SPC-4 6.33"},
    {0xa3, 0x0c, TYPE_DISK, 12, {0xa3, 0x00, 0x87, 0xff, 0xff, 0xff, F4(0xff)}, DIR_IN,
     RESV_ALWAYS, OP_NOT_READY,
     NOWHERE, NOWHERE, {6, 4}, 10, spc_report_opcodes, "REPORT SUPPORTED OPERATION CODES",
     "SPC-4 6.35"},
    {0xa3, 0x0d, TYPE_DISK, 12, {0xa3, 0x00, 0x80, 0, 0, 0, F4(0xff)}, DIR_IN, RESV_ALWAYS,
     OP_NOT_READY,
     NOWHERE, NOWHERE, {6, 4}, 10, spc_report_tmfs, "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS",
     "SPC-4 6.36"},
    {0xa8, SA_NONE, TYPE_DISK, 12, {0xa8, 0x18, F4(0xff), F4(0xff)}, DIR_IN, RESV_READ,
     READ_FLAGS | OP_PROTECT,
     {2, 4}, {6, 4}, NOWHERE, 30, sbc_read, "READ(12)", "SBC-3 5.12"},
    {0xaa, SA_NONE, TYPE_DISK, 12, {0xaa, 0x18, F4(0xff), F4(0xff)}, DIR_OUT, RESV_WRITE,
     WRITE_FLAGS | OP_PROTECT,
     {2, 4}, {6, 4}, NOWHERE, 60, sbc_write, "WRITE(12)", "SBC-3 5.34"},
    {0xae, SA_NONE, TYPE_DISK, 12, {0xae, 0x12, F4(0xff), F4(0xff)}, DIR_OUT, RESV_WRITE,
     WRITE_FLAGS | OP_PROTECT,
     {2, 4}, {6, 4}, NOWHERE, 60, sbc_write_and_verify, "WRITE AND VERIFY(12)", "SBC-3 5.38"},
    {0xaf, SA_NONE, TYPE_DISK, 12, {0xaf, 0x16, F4(0xff), F4(0xff)}, DIR_OUT, RESV_READ,
     OP_LBA_CHECK | OP_PROTECT | OP_BYTCHK | OP_RANGE,
     {2, 4}, {6, 4}, NOWHERE, 60, sbc_verify, "VERIFY(12)", "SBC-3 5.30"},
};

const unsigned scsi_ops_count = sizeof scsi_ops / sizeof scsi_ops[0];

/* First row of each operation code, plus one; filled before main, read-only afterwards. */
static uint8_t first_row[256];

__attribute__((constructor)) static void
index_rows(void)
{
    for (unsigned i = scsi_ops_count; i-- > 0;)
        first_row[scsi_ops[i].opcode] = (uint8_t)(i + 1);
}

const struct scsi_op *
scsi_op_find(uint8_t opcode, int sa, const struct scsi_op **known_opcode)
{
    unsigned i = first_row[opcode];

    *known_opcode = NULL;
    if (i == 0)
        return NULL;
    for (i--; i < scsi_ops_count && scsi_ops[i].opcode == opcode; i++) {
        if (scsi_ops[i].sa == SA_NONE || scsi_ops[i].sa == sa)
            return &scsi_ops[i];
        *known_opcode = &scsi_ops[i];
    }
    return NULL;
}

void
scsi_op_usage(const struct scsi_op *op, struct lun *lun, uint8_t out[16])
{
    memcpy(out, op->usage, sizeof op->usage);
    if ((op->flags & OP_UNMAP_BIT) && (out[1] & 0x08) && !lun_is_thin(lun))
        out[1] &= (uint8_t)~0x08u;
}

bool
scsi_op_is_offered(const struct scsi_op *op, struct lun *lun)
{
    if (lun == NULL)
        return (op->flags & OP_WLUN) != 0;
    return !(op->flags & OP_THIN) || lun_is_thin(lun);
}

/* --- documentation --------------------------------------------------------------------------- */

void
scsi_ops_dump(void (*line)(const char *s, void *arg), void *arg)
{
    char buf[512];

    line("| opcode | service action | command | CDB bytes | data | only when | reference |", arg);
    line("| --- | --- | --- | --- | --- | --- | --- |", arg);
    for (unsigned i = 0; i < scsi_ops_count; i++) {
        static const char *const dirs[] = {"none", "in", "out"};
        const struct scsi_op *op = &scsi_ops[i];
        char sa[16] = "";
        if (op->sa != SA_NONE)
            snprintf(sa, sizeof sa, "%02xh", (unsigned)op->sa);
        snprintf(buf, sizeof buf, "| %02xh | %s | %s | %u | %s | %s | %s |", op->opcode, sa,
                 op->name, op->cdb_len, dirs[op->dir], op->flags & OP_THIN ? "thin" : "", op->ref);
        line(buf, arg);
    }
}

const char *
scsi_op_name(uint8_t opcode, int service_action)
{
    const struct scsi_op *known;
    const struct scsi_op *op = scsi_op_find(opcode, service_action, &known);

    return op != NULL ? op->name : "?";
}
