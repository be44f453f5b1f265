/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The default identity of a unit.  Two hosts that export a store of the same path, and two
 * stores of one host, must never share a designator: initiators with multipath would merge them
 * and destroy the data.  So it is a hash of the host's random seed and of what names the store,
 * and of nothing that can be renumbered.  Main.
 */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "scsi/scsi.h"

static void
hex(char *out, const uint8_t *p, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[p[i] >> 4];
        out[2 * i + 1] = digits[p[i] & 15];
    }
    out[2 * n] = '\0';
}

void
lun_ident_default(struct lun_ident *id, const uint8_t seed[32], const char *store_identity)
{
    uint8_t h[EVP_MAX_MD_SIZE];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    /* There is no identity to fall back to: a constant one would be shared. */
    if (ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1 ||
        EVP_DigestUpdate(ctx, seed, 32) != 1 ||
        EVP_DigestUpdate(ctx, store_identity, strlen(store_identity)) != 1 ||
        EVP_DigestFinal_ex(ctx, h, NULL) != 1)
        abort();
    EVP_MD_CTX_free(ctx);

    memset(id, 0, sizeof *id);
    memcpy(id->naa, h, 8);
    id->naa[0] = (uint8_t)(0x30u | (id->naa[0] & 0x0fu)); /* NAA 3h, locally assigned */
    id->naa_len = 8;
    hex(id->serial, h + 8, 16);
    hex(id->t10_id, h + 8, 16);
}
