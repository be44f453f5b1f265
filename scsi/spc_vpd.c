/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vital product data pages (SPC-4 7.8, SBC-3 6.5).  One row a page, in ascending order: page 00h
 * and the dispatch come from the table.  Called by spc_inquiry.c on the command's worker.
 */
#include "scsi/priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/worker.h"

struct vpd {
    struct scsi_cmd *cmd;
    struct lun *lun; /* NULL: the REPORT LUNS well-known unit */
    struct lun_conf conf;
    struct be_info info;
    struct wcur w; /* body, after the four bytes of header */
};

struct vpd_page {
    uint8_t code;
    bool wlun;
    void (*put)(struct vpd *v);
};

static void put_supported(struct vpd *v);

/* --- 80h, 83h: identity ---------------------------------------------------------------------- */

static void
put_serial(struct vpd *v)
{
    size_t n = strlen(v->conf.ident.serial);

    for (size_t i = n; i < v->conf.ident.serial_width; i++)
        wcur_u8(&v->w, ' ');
    wcur_bytes(&v->w, v->conf.ident.serial, n);
}

enum { ASSOC_LUN = 0x00, ASSOC_PORT = 0x10, ASSOC_TARGET = 0x20 };
enum { CODE_BINARY = 1, CODE_ASCII = 2, CODE_UTF8 = 3 };
enum { ID_T10 = 1, ID_EUI = 2, ID_NAA = 3, ID_REL_PORT = 4, ID_SCSI_NAME = 8 };

static void
put_designator(struct vpd *v, uint8_t code_set, uint8_t assoc, uint8_t type, const void *p,
               size_t len, size_t padded)
{
    bool iscsi = assoc != ASSOC_LUN; /* protocol identifier 5h, PIV */

    wcur_u8(&v->w, (uint8_t)((iscsi ? 0x50u : 0u) | code_set));
    wcur_u8(&v->w, (uint8_t)((iscsi ? 0x80u : 0u) | assoc | type));
    wcur_u8(&v->w, 0);
    wcur_u8(&v->w, (uint8_t)padded);
    wcur_bytes(&v->w, p, len);
    wcur_zero(&v->w, padded - len);
}

/* NUL-terminated, NUL-padded to a multiple of four (SPC-4 7.8.6.11). */
static void
put_name(struct vpd *v, uint8_t assoc, const char *s)
{
    size_t len = strlen(s);

    if (len > 251) /* the length byte; no iSCSI name is that long */
        len = 251;
    put_designator(v, CODE_UTF8, assoc, ID_SCSI_NAME, s, len, (len + 4) & ~(size_t)3);
}

static void
put_hex_name(struct vpd *v, const char *prefix, const uint8_t *p, unsigned n)
{
    char s[4 + 2 * 16 + 1];
    int at = snprintf(s, sizeof s, "%s", prefix);

    for (unsigned i = 0; i < n; i++)
        at += snprintf(s + at, sizeof s - (size_t)at, "%02X", p[i]);
    put_name(v, ASSOC_LUN, s);
}

static void
put_unit_ids(struct vpd *v)
{
    const struct lun_ident *id = &v->conf.ident;

    if (id->raw_len != 0) {
        wcur_bytes(&v->w, id->raw, id->raw_len);
        return;
    }
    if (id->naa_len != 0)
        put_designator(v, CODE_BINARY, ASSOC_LUN, ID_NAA, id->naa, id->naa_len, id->naa_len);
    if (id->eui_len != 0)
        put_designator(v, CODE_BINARY, ASSOC_LUN, ID_EUI, id->eui, id->eui_len, id->eui_len);
    if (id->t10_id[0] != '\0') {
        uint8_t t10[8 + sizeof id->t10_id];
        struct wcur t = wcur_init(t10, sizeof t10);
        wcur_ascii(&t, v->conf.vendor_id, 8);
        wcur_bytes(&t, id->t10_id, strlen(id->t10_id));
        put_designator(v, CODE_ASCII, ASSOC_LUN, ID_T10, t10, t.len, t.len);
    }
    /* names of 24 hex digits do not exist: an EUI-64 of 12 bytes has no SCSI name string */
    if (id->naa_len != 0)
        put_hex_name(v, "naa.", id->naa, id->naa_len);
    else if (id->eui_len == 8 || id->eui_len == 16)
        put_hex_name(v, "eui.", id->eui, id->eui_len);
}

static void
put_ids(struct vpd *v)
{
    const struct itn *itn = v->cmd->itn;
    uint8_t port[4] = {0};
    char *port_name = xasprintf("%s,t,0x%04x", itn->target_name, itn->tpgt);

    if (v->lun != NULL)
        put_unit_ids(v);
    put_be16(port + 2, itn->tpgt);
    put_designator(v, CODE_BINARY, ASSOC_PORT, ID_REL_PORT, port, sizeof port, sizeof port);
    put_name(v, ASSOC_PORT, port_name);
    put_name(v, ASSOC_TARGET, itn->target_name);
    free(port_name);
}

/* --- 86h: extended inquiry (SPC-4 7.8.7) ----------------------------------------------------- */

static void
put_extended(struct vpd *v)
{
    wcur_u8(&v->w, 0);    /* no protection information */
    wcur_u8(&v->w, 0x07); /* HEADSUP, ORDSUP, SIMPSUP */
    wcur_u8(&v->w, 0x01); /* V_SUP: the cache is volatile */
    wcur_u8(&v->w, 0x01); /* LUICLR */
    wcur_zero(&v->w, 60 - v->w.len);
}

/* --- B0h, B1h, B2h: block device (SBC-3 6.5) ------------------------------------------------- */

static uint32_t
blocks32(const struct vpd *v, uint64_t bytes)
{
    uint64_t n = bytes >> v->lun->block_shift;

    return n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

static void
put_limits(struct vpd *v)
{
    struct wcur *w = &v->w;
    bool thin = lun_is_thin(v->lun);

    wcur_u8(w, 0x01); /* WSNZ: WRITE SAME of 0 blocks is refused */
    wcur_u8(w, 0);    /* no COMPARE AND WRITE */
    wcur_be16(w, v->conf.opt_xfer_gran);
    wcur_be32(w, SBC_MAX_XFER_BLOCKS);
    wcur_be32(w, v->conf.opt_xfer_len);
    wcur_be32(w, 0); /* MAXIMUM PREFETCH LENGTH: no limit */
    wcur_be32(w, thin ? blocks32(v, SBC_MAX_UNMAP_LBAS_BYTES) : 0);
    wcur_be32(w, thin ? SBC_MAX_UNMAP_DESC : 0);
    wcur_be32(w, thin ? blocks32(v, v->info.discard_gran) : 0);
    wcur_be32(w,
              thin && v->info.discard_gran > v->lun->block_size ? 0x80000000u : 0); /* UGAVALID */
    wcur_be64(w, SBC_MAX_WRITE_SAME_BYTES >> v->lun->block_shift);
    wcur_zero(w, 60 - w->len); /* no atomic writes */
}

static void
put_characteristics(struct vpd *v)
{
    uint16_t rate = v->conf.rotation_rate;

    if (rate == 0xffff)
        rate = v->info.rotational ? 0 : 1; /* not known how fast, or not rotating */
    wcur_be16(&v->w, rate);
    wcur_zero(&v->w, 58);
}

static void
put_provisioning(struct vpd *v)
{
    bool thin = lun_is_thin(v->lun);

    wcur_u8(&v->w, 0);
    wcur_u8(&v->w, thin ? 0xe4 : 0); /* LBPU, LBPWS, LBPWS10, LBPRZ */
    wcur_u8(&v->w, thin ? 0x02 : 0); /* thin, or fully provisioned */
    wcur_u8(&v->w, 0);
}

/* --- the table ------------------------------------------------------------------------------- */

static const struct vpd_page vpd_pages[] = {
    {0x00, true, put_supported},     {0x80, false, put_serial}, {0x83, true, put_ids},
    {0x86, false, put_extended},     {0xb0, false, put_limits}, {0xb1, false, put_characteristics},
    {0xb2, false, put_provisioning},
};
#define N_VPD (sizeof vpd_pages / sizeof vpd_pages[0])

static void
put_supported(struct vpd *v)
{
    for (size_t i = 0; i < N_VPD; i++)
        if (v->lun != NULL || vpd_pages[i].wlun)
            wcur_u8(&v->w, vpd_pages[i].code);
}

void
spc_vpd(struct scsi_cmd *cmd, uint8_t peripheral)
{
    worker_assert_owner(cmd->w);
    const struct vpd_page *page = NULL;
    uint8_t body[1024];
    struct wcur w;

    for (size_t i = 0; i < N_VPD; i++)
        if (vpd_pages[i].code == cmd->cdb[2] && (cmd->lu != NULL || vpd_pages[i].wlun))
            page = &vpd_pages[i];
    if (page == NULL) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD_BYTE(2));
        return;
    }
    struct vpd v = {.cmd = cmd, .lun = cmd->lu, .w = wcur_init(body, sizeof body)};
    if (v.lun != NULL) {
        lun_conf_copy(v.lun, &v.conf);
        be_info(v.lun->be, &v.info);
    }
    page->put(&v);
    if (!scsi_reply(cmd, &w))
        return;
    wcur_u8(&w, peripheral);
    wcur_u8(&w, page->code);
    wcur_be16(&w, (uint16_t)v.w.len);
    wcur_bytes(&w, body, wcur_stored(&v.w));
    scsi_data_in(cmd, (uint32_t)w.len);
}
