/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prove URL: a real initiator (libiscsi) logs in, asks who is there, writes a pattern, flushes,
 * reads it back in a second session and compares.  Exit 0 only when every byte is right.
 * Used by ./quickstart and the initiator tests.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#define PROVE_BYTES (1024u * 1024)
#define CHUNK_BYTES (64u * 1024)
#define OUR_NAME "iqn.2026-11.org.evtgt:prove"

static struct iscsi_context *
session(const char *url_text, int *lun)
{
    struct iscsi_context *is = iscsi_create_context(OUR_NAME);
    struct iscsi_url *url = is ? iscsi_parse_full_url(is, url_text) : NULL;
    if (!url) {
        fprintf(stderr, "prove: bad URL %s: %s\n", url_text, is ? iscsi_get_error(is) : "");
        return NULL;
    }
    iscsi_set_targetname(is, url->target);
    iscsi_set_session_type(is, ISCSI_SESSION_NORMAL);
    iscsi_set_timeout(is, 20);
    *lun = url->lun;
    int rc = iscsi_full_connect_sync(is, url->portal, url->lun);
    iscsi_destroy_url(url);
    if (rc != 0) {
        fprintf(stderr, "prove: login failed: %s\n", iscsi_get_error(is));
        iscsi_destroy_context(is);
        return NULL;
    }
    return is;
}

static int
ended_good(struct iscsi_context *is, struct scsi_task *t, const char *what)
{
    if (t && t->status == SCSI_STATUS_GOOD)
        return 1;
    fprintf(stderr, "prove: %s failed: %s\n", what, iscsi_get_error(is));
    return 0;
}

static int
inquire(struct iscsi_context *is, int lun, uint32_t *block_size, uint64_t *nblocks)
{
    struct scsi_task *t = iscsi_inquiry_sync(is, lun, 0, 0, 255);
    if (!ended_good(is, t, "INQUIRY"))
        return -1;
    struct scsi_inquiry_standard *inq = scsi_datain_unmarshall(t);
    if (!inq)
        return -1;
    printf("  inquiry: vendor \"%.8s\" product \"%.16s\"\n", inq->vendor_identification,
           inq->product_identification);
    scsi_free_scsi_task(t);
    t = iscsi_readcapacity16_sync(is, lun);
    if (!ended_good(is, t, "READ CAPACITY(16)"))
        return -1;
    struct scsi_readcapacity16 *rc = scsi_datain_unmarshall(t);
    if (!rc)
        return -1;
    *block_size = rc->block_length;
    *nblocks = rc->returned_lba + 1;
    printf("  capacity: %" PRIu64 " blocks of %u bytes\n", *nblocks, *block_size);
    scsi_free_scsi_task(t);
    return 0;
}

static int
write_pattern(struct iscsi_context *is, int lun, uint32_t bs, uint64_t lba, unsigned char *p)
{
    for (uint32_t off = 0; off < PROVE_BYTES; off += CHUNK_BYTES) {
        struct scsi_task *t = iscsi_write16_sync(is, lun, lba + off / bs, p + off, CHUNK_BYTES,
                                                 (int)bs, 0, 0, 0, 0, 0);
        if (!ended_good(is, t, "WRITE(16)"))
            return -1;
        scsi_free_scsi_task(t);
    }
    struct scsi_task *t = iscsi_synchronizecache16_sync(is, lun, 0, 0, 0, 0);
    if (!ended_good(is, t, "SYNCHRONIZE CACHE(16)"))
        return -1;
    scsi_free_scsi_task(t);
    return 0;
}

static int
read_and_compare(struct iscsi_context *is, int lun, uint32_t bs, uint64_t lba,
                 const unsigned char *p)
{
    for (uint32_t off = 0; off < PROVE_BYTES; off += CHUNK_BYTES) {
        struct scsi_task *t =
            iscsi_read16_sync(is, lun, lba + off / bs, CHUNK_BYTES, (int)bs, 0, 0, 0, 0, 0);
        if (!ended_good(is, t, "READ(16)"))
            return -1;
        if (t->datain.size != (int)CHUNK_BYTES || memcmp(t->datain.data, p + off, CHUNK_BYTES)) {
            fprintf(stderr, "prove: what was read at LBA %" PRIu64 " is not what was written\n",
                    lba + off / bs);
            return -1;
        }
        scsi_free_scsi_task(t);
    }
    return 0;
}

static int
prove(const char *url)
{
    static unsigned char pattern[PROVE_BYTES];
    for (uint32_t off = 0; off < PROVE_BYTES; off += 256)
        if (getrandom(pattern + off, 256, 0) != 256)
            return -1;
    int lun;
    uint32_t bs = 0;
    uint64_t nblocks = 0;
    struct iscsi_context *is = session(url, &lun);
    if (!is || inquire(is, lun, &bs, &nblocks) != 0)
        return -1;
    if (bs == 0 || bs > CHUNK_BYTES || nblocks < PROVE_BYTES / bs) {
        fprintf(stderr, "prove: the LUN is too small\n");
        return -1;
    }
    uint64_t lba = (nblocks - PROVE_BYTES / bs) / 2;
    if (write_pattern(is, lun, bs, lba, pattern) != 0)
        return -1;
    printf("  wrote and flushed %u KiB at LBA %" PRIu64 "\n", PROVE_BYTES / 1024, lba);
    iscsi_logout_sync(is);
    iscsi_destroy_context(is);
    is = session(url, &lun);
    if (!is || read_and_compare(is, lun, bs, lba, pattern) != 0)
        return -1;
    printf("  read back in a second session: equal\n");
    iscsi_logout_sync(is);
    iscsi_destroy_context(is);
    return 0;
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: prove iscsi://HOST:PORT/TARGET/LUN  (overwrites 1 MiB of it)\n");
        return 2;
    }
    return prove(argv[1]) == 0 ? 0 : 1;
}
