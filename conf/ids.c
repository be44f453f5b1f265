/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The identities that other targets give to their logical units, so that a disk that moves here
 * stays the same disk for multipath, ESXi, a Mac.  Facts, not code, of:
 *
 *   tgt   VPD 80h is the serial number, right-aligned in 36 bytes; by default "beaf", tid and LUN
 * in decimal.  VPD 83h has the SCSI id, padded with NUL to 36 bytes, as a T10 designator (by
 *         default "IET", five blanks, tid and LUN in four hexadecimal digits each); NAA 3h of tid
 *         and LUN in 32 bits each; NAA 6h of the SCSI id, every character one hexadecimal digit, 0
 *         if it is none, right-aligned.
 *   IET   (1.4.17 to 1.4.20) The id has 16 bytes: what ScsiId says in small letters, else the MD5
 *         of the target's name and the LUN (32 bits, as an x86 stores it).  VPD 83h has "IET"
 * padded with NUL to 8 bytes, and the id, as a binary T10 designator.  VPD 80h is ScsiSN, else the
 *         id in hexadecimal, right-aligned in 16 bytes if it fits, else in 32.
 *
 * Called when a configuration is built, and for logical units that are made at run time.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "conf/priv.h"

enum { CODE_BINARY = 1, CODE_ASCII = 2 };
enum { TYPE_T10 = 1, TYPE_NAA = 3 };

#define TGT_WIDTH   36u /* of the SCSI id and of the serial number */
#define IET_ID      16u
#define IET_SN_WIDE 32u

static void
add(struct conf_lun *l, unsigned code_set, unsigned type, const void *p, size_t n)
{
    uint8_t *d = l->designators + l->designators_len;

    d[0] = (uint8_t)code_set;
    d[1] = (uint8_t)type;
    d[2] = 0;
    d[3] = (uint8_t)n;
    memcpy(d + 4, p, n);
    l->designators_len = (uint8_t)(l->designators_len + 4 + n);
}

static void
inquiry_default(char *field, size_t size, const char *value)
{
    if (!*field)
        snprintf(field, size, "%s", value);
}

static void
tgt_naa6(const char *id, uint8_t naa[16])
{
    static const char hex[] = "0123456789abcdef";

    memset(naa, 0, 16);
    for (; *id; id++) {
        const char *digit = strchr(hex, tolower((unsigned char)*id));
        uint8_t v = digit ? (uint8_t)(digit - hex) : 0;
        for (unsigned i = 0; i < 15; i++)
            naa[i] = (uint8_t)(naa[i] << 4 | naa[i + 1] >> 4);
        naa[15] = (uint8_t)(naa[15] << 4);
        naa[15] |= v;
    }
    naa[0] = (uint8_t)(0x60 | (naa[0] & 0x0f));
}

static int
tgt_ids(struct conf_lun *l, unsigned tid, bool own, char *err, size_t errsize)
{
    unsigned lun = (unsigned)l->number;
    uint8_t t10[TGT_WIDTH] = {0}, naa3[8], naa6[16];

    if (strlen(l->scsi_id) > TGT_WIDTH || strlen(l->scsi_sn) > TGT_WIDTH) {
        snprintf(err, errsize, "ids tgt: scsi_id and scsi_sn hold at most %u characters",
                 TGT_WIDTH);
        return -EINVAL;
    }
    if (!*l->scsi_id)
        snprintf(l->scsi_id, sizeof l->scsi_id, "IET     %04x%04x", tid, lun);
    if (!*l->scsi_sn)
        snprintf(l->scsi_sn, sizeof l->scsi_sn, "beaf%u%u", tid, lun);
    if (!l->scsi_sn_width)
        l->scsi_sn_width = TGT_WIDTH;
    inquiry_default(l->vendor_id, sizeof l->vendor_id, "IET");
    inquiry_default(l->product_id, sizeof l->product_id, "VIRTUAL-DISK");
    inquiry_default(l->product_rev, sizeof l->product_rev, "0001");
    if (own)
        return 0;
    memcpy(t10, l->scsi_id, strlen(l->scsi_id));
    put_be32(naa3, 0x30000000u | tid);
    put_be32(naa3 + 4, lun);
    tgt_naa6(l->scsi_id, naa6);
    add(l, CODE_ASCII, TYPE_T10, t10, sizeof t10);
    add(l, CODE_BINARY, TYPE_NAA, naa3, sizeof naa3);
    add(l, CODE_BINARY, TYPE_NAA, naa6, sizeof naa6);
    return 0;
}

static bool
md5(uint8_t out[16], const char *name, unsigned lun)
{
    const uint8_t le[4] = {(uint8_t)lun, (uint8_t)(lun >> 8), (uint8_t)(lun >> 16),
                           (uint8_t)(lun >> 24)};
    uint8_t h[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_md5(), NULL) == 1 &&
              EVP_DigestUpdate(ctx, name, strlen(name)) == 1 &&
              EVP_DigestUpdate(ctx, le, sizeof le) == 1 && EVP_DigestFinal_ex(ctx, h, NULL) == 1;
    EVP_MD_CTX_free(ctx);
    if (ok)
        memcpy(out, h, 16);
    return ok;
}

static int
iet_ids(struct conf_lun *l, const char *name, bool own, char *err, size_t errsize)
{
    uint8_t t10[8 + IET_ID] = "IET", *id = t10 + 8;
    char hex[2 * IET_ID + 1];

    if (strlen(l->scsi_id) > IET_ID || strlen(l->scsi_sn) > IET_SN_WIDE) {
        snprintf(err, errsize, "ids iet: scsi_id holds at most %u characters, scsi_sn %u", IET_ID,
                 IET_SN_WIDE);
        return -EINVAL;
    }
    for (size_t i = 0; l->scsi_id[i]; i++)
        id[i] = (uint8_t)(l->scsi_id[i] = (char)tolower((unsigned char)l->scsi_id[i]));
    if (!*l->scsi_id && !md5(id, name, (unsigned)l->number)) {
        snprintf(
            err, errsize,
            "ids iet: MD5 is not to be had on this host (FIPS?); write the id as `designator`");
        return -EINVAL;
    }
    for (unsigned i = 0; i < IET_ID; i++)
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    if (!*l->scsi_id)
        snprintf(l->scsi_id, sizeof l->scsi_id, "%s", hex);
    if (!*l->scsi_sn)
        snprintf(l->scsi_sn, sizeof l->scsi_sn, "%s", hex);
    if (!l->scsi_sn_width)
        l->scsi_sn_width = strlen(l->scsi_sn) <= IET_ID ? IET_ID : IET_SN_WIDE;
    inquiry_default(l->vendor_id, sizeof l->vendor_id, "IET");
    inquiry_default(l->product_id, sizeof l->product_id, "VIRTUAL-DISK");
    inquiry_default(l->product_rev, sizeof l->product_rev, "0");
    if (!own)
        add(l, CODE_BINARY, TYPE_T10, t10, sizeof t10);
    return 0;
}

int
conf_lun_ids(struct conf_lun *l, enum conf_ids ids, unsigned tid, const char *target_name,
             char *err, size_t errsize)
{
    bool own = l->naa_len || l->eui_len || l->designators_len;

    /* all is said already, as where the settings were written down after this */
    if (l->designators_len && *l->scsi_id && *l->scsi_sn && l->scsi_sn_width && *l->vendor_id &&
        *l->product_id && *l->product_rev)
        return 0;
    if (ids == IDS_TGT)
        return tgt_ids(l, tid, own, err, errsize);
    if (ids == IDS_IET)
        return iet_ids(l, target_name, own, err, errsize);
    return 0;
}
