/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iscsi-load by libiscsi's asynchronous API: somebody else's initiator.  libiscsi has one
 * connection a session and writes every PDU by a call of its own; the socket is corked meanwhile,
 * so that what a turn queues leaves as one train of segments and wakes the target once.
 */
#include "config.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#include "tests/perf/load.h"

/* Larger ones fill segments by themselves; corked, they would wait for one another. */
#define CORK_MAX 16384u

static int
lib_open(struct session *s, unsigned idx)
{
    if (o.data_digest) {
        fputs("iscsi-load: libiscsi has no data digests (--engine raw)\n", stderr);
        return -1;
    }
    struct iscsi_context *ctx = iscsi_create_context(o.initiator);
    if (!ctx)
        return -1;
    s->priv = ctx;
    struct iscsi_url *u = iscsi_parse_full_url(ctx, o.url);
    if (!u) {
        fprintf(stderr, "iscsi-load: %s\n", iscsi_get_error(ctx));
        return -1;
    }
    iscsi_set_targetname(ctx, u->target);
    iscsi_set_session_type(ctx, ISCSI_SESSION_NORMAL);
    iscsi_set_header_digest(ctx, o.header_digest ? ISCSI_HEADER_DIGEST_CRC32C
                                                 : ISCSI_HEADER_DIGEST_NONE);
    iscsi_set_isid_random(ctx, (uint32_t)getpid() & 0xffffff, idx & 0xffff);
    iscsi_set_noautoreconnect(ctx, 1);
    if (u->user[0])
        iscsi_set_initiator_username_pwd(ctx, u->user, u->passwd);
    s->lun = (unsigned)u->lun;
    int r = iscsi_full_connect_sync(ctx, u->portal, u->lun);
    if (r != 0)
        fprintf(stderr, "iscsi-load: login: %s\n", iscsi_get_error(ctx));
    iscsi_destroy_url(u);
    return r;
}

static int
lib_capacity(struct session *s, uint32_t *block_bytes, uint64_t *nblk)
{
    for (int i = 0; i < 10; i++) {
        struct scsi_task *t = iscsi_testunitready_sync(s->priv, (int)s->lun);
        int st = t ? t->status : -1;
        if (t)
            scsi_free_scsi_task(t);
        if (st == SCSI_STATUS_GOOD)
            break;
    }
    struct scsi_task *t = iscsi_readcapacity16_sync(s->priv, (int)s->lun);
    struct scsi_readcapacity16 *rc;
    if (!t || t->status != SCSI_STATUS_GOOD || !(rc = scsi_datain_unmarshall(t))) {
        fprintf(stderr, "iscsi-load: READ CAPACITY(16): %s\n", iscsi_get_error(s->priv));
        return -1;
    }
    *block_bytes = rc->block_length;
    *nblk = rc->returned_lba + 1;
    scsi_free_scsi_task(t);
    return 0;
}

static void
on_done(struct iscsi_context *ctx, int status, void *data, void *priv)
{
    struct scsi_task *t = data;
    struct outcome r = {.status = status};
    bool lost = status == SCSI_STATUS_CANCELLED || status == SCSI_STATUS_ERROR;

    if (lost)
        r.status = LOAD_LOST;
    if (t) {
        r.key = t->sense.key;
        r.ascq = (unsigned)t->sense.ascq & 0xffff;
        if (t->residual_status != SCSI_RESIDUAL_NO_RESIDUAL)
            r.off_by = t->residual ? (uint32_t)t->residual : 1;
    }
    if (status != SCSI_STATUS_GOOD)
        r.why = iscsi_get_error(ctx);
    if (t)
        scsi_free_scsi_task(t);
    load_done(priv, &r);
}

static bool
lib_issue(struct io *io)
{
    struct session *s = io->s;
    uint64_t lba = io->slot * slot_blocks;

    if (io->is_write)
        return iscsi_write16_task(s->priv, (int)s->lun, lba, io->buf, (uint32_t)o.bs, (int)lbs, 0,
                                  0, o.fua, 0, 0, on_done, io) != NULL;
    io->vec = (struct iovec){.iov_base = io->buf, .iov_len = o.bs};
    return iscsi_read16_iov_task(s->priv, (int)s->lun, lba, (uint32_t)o.bs, (int)lbs, 0, 0, 0, 0, 0,
                                 on_done, io, (void *)&io->vec, 1) != NULL;
}

static void
cork(struct session *s, int on)
{
    if (o.qd > 1 && o.bs <= CORK_MAX)
        setsockopt(iscsi_get_fd(s->priv), IPPROTO_TCP, TCP_CORK, &on, sizeof on);
}

static int
lib_flush(struct session *s)
{
    int r = 0;
    if (iscsi_which_events(s->priv) & POLLOUT) {
        cork(s, 1);
        r = iscsi_service(s->priv, POLLOUT);
        cork(s, 0);
    }
    return r;
}

static short
lib_events(struct session *s)
{
    return (short)iscsi_which_events(s->priv);
}

static int
lib_fd(struct session *s)
{
    return iscsi_get_fd(s->priv);
}

static int
lib_service(struct session *s, short revents, bool wait)
{
    (void)wait;
    s->w->now = now_ns();
    return iscsi_service(s->priv, revents);
}

static void
lib_close(struct session *s)
{
    iscsi_logout_sync(s->priv);
}

const struct engine engine_libiscsi = {
    .name = "libiscsi",
    .open = lib_open,
    .capacity = lib_capacity,
    .issue = lib_issue,
    .flush = lib_flush,
    .events = lib_events,
    .fd = lib_fd,
    .service = lib_service,
    .close = lib_close,
};
