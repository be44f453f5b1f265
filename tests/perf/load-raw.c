/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iscsi-load by an initiator of its own, as cheap as can be: forms of the commands are made once,
 * all that a turn queues goes by one gathering send, all that has come is taken by one receive, and
 * data are looked at in the receive buffer (copied to the command's only when somebody will check
 * them).  It knows header and data digests; error recovery level 0, one connection a session.
 * Whatever the target gets wrong in the way of numbers, tags, offsets or digests ends the session.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "tests/perf/load-raw.h"

#define RBUF         (512u << 10)
#define NVEC         768
/* Looks at the socket before it sleeps there: some microseconds. A server that answers at once
 * does not pay for waking the client, and the scheduler does not put both on one CPU. */
#define LOOKS 10
#define LOST(r, ...) (snprintf((r)->why, sizeof(r)->why, __VA_ARGS__), -1)

/* --- sending --------------------------------------------------------------- */

/* A PDU at the end of the queue, with data of its own that must stay; NULL without memory. */
static struct out *
out_new(struct raw *r, const uint8_t *data, uint32_t len)
{
    if (r->nq == r->cap) {
        size_t cap = r->cap ? r->cap * 2 : 64;
        struct out *q = realloc(r->q, cap * sizeof *q);
        if (!q)
            return NULL;
        r->q = q;
        r->cap = cap;
    }
    struct out *out = &r->q[r->nq++];
    memset(out->h, 0, BHS);
    out->data = data;
    out->len = len;
    return out;
}

/* The digest of a part of a command's buffer; remembered where the content stays. */
static uint32_t
sum_of(struct io *io, uint32_t at, uint32_t len)
{
    for (unsigned i = 0; i < io->nsums; i++)
        if (io->sums[i].at == at && io->sums[i].len == len)
            return io->sums[i].crc;
    uint32_t crc = crc32c_add(CRC32C_INIT, io->buf + at, len);
    if (!o.verify && io->nsums < sizeof io->sums / sizeof io->sums[0]) {
        io->sums[io->nsums].at = at;
        io->sums[io->nsums].len = len;
        io->sums[io->nsums++].crc = crc;
    }
    return crc;
}

/* Length and digests, once all else is in the header. io: whose buffer the data are of. */
static void
seal(struct raw *r, struct out *out, struct io *io)
{
    put_be24(out->h + 5, out->len);
    put_be32(out->h + 28, r->exp_statsn);
    if (r->hd)
        crc32c_final(crc32c_add(CRC32C_INIT, out->h, BHS), out->h + BHS);
    if (r->dd && out->len)
        crc32c_final(sum_of(io, (uint32_t)(out->data - io->buf), out->len), out->digest);
}

static size_t
out_size(const struct raw *r, const struct out *out)
{
    return (r->hd ? BHS + DIGEST : BHS) + out->len + (r->dd && out->len ? DIGEST : 0u);
}

static unsigned
add_vec(struct iovec *v, unsigned n, const void *p, size_t len, size_t *skip)
{
    if (*skip >= len) {
        *skip -= len;
        return n;
    }
    v[n] = (struct iovec){(char *)(uintptr_t)p + *skip, len - *skip};
    *skip = 0;
    return n + 1;
}

static int
raw_flush(struct session *s)
{
    struct raw *r = s->priv;
    struct iovec v[NVEC];

    while (r->first < r->nq) {
        struct msghdr m = {.msg_iov = v};
        unsigned n = 0;
        size_t skip = r->skip;
        for (size_t i = r->first; i < r->nq && n + 3 <= NVEC; i++) {
            struct out *out = &r->q[i];
            n = add_vec(v, n, out->h, r->hd ? BHS + DIGEST : BHS, &skip);
            n = add_vec(v, n, out->data, out->len, &skip);
            n = add_vec(v, n, out->digest, r->dd && out->len ? DIGEST : 0, &skip);
        }
        m.msg_iovlen = n;
        ssize_t k = sendmsg(r->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno == EAGAIN ? 0 : LOST(r, "send: %s", strerror(errno));
        r->skip += (size_t)k;
        while (r->first < r->nq && r->skip >= out_size(r, &r->q[r->first]))
            r->skip -= out_size(r, &r->q[r->first++]);
    }
    r->first = r->nq = 0;
    return 0;
}

/* Data-Out PDUs for a part of a command's data: one burst (RFC 7143 11.7). */
static bool
data_out(struct raw *r, struct io *io, uint32_t ttt, const uint8_t *lun, uint32_t at, uint32_t end)
{
    for (uint32_t sn = 0; at < end; sn++) {
        uint32_t k = end - at < r->seg_theirs ? end - at : r->seg_theirs;
        struct out *out = out_new(r, io->buf + at, k);
        if (!out)
            return false;
        out->h[0] = OP_DATA_OUT;
        out->h[1] = at + k == end ? FINAL : 0;
        memcpy(out->h + 8, lun, 8);
        put_be32(out->h + 16, io->itt);
        put_be32(out->h + 20, ttt);
        put_be32(out->h + 36, sn);
        put_be32(out->h + 40, at);
        seal(r, out, io);
        at += k;
    }
    return true;
}

/* Queues a command with as much data as may go unasked. */
static bool
command(struct raw *r, struct io *io)
{
    const uint8_t *form = r->form[io->is_write];
    uint32_t now = 0, unasked = 0;

    if (io->is_write) {
        unasked = io->len < r->first_burst ? io->len : r->first_burst;
        now = !r->immediate_data ? 0 : unasked < r->seg_theirs ? unasked : r->seg_theirs;
        if (r->initial_r2t)
            unasked = now;
    }
    struct out *out = out_new(r, io->buf, now);
    if (!out)
        return false;
    memcpy(out->h, form, BHS);
    if (unasked > now)
        out->h[1] &= 0x7f;
    put_be32(out->h + 16, io->itt);
    put_be32(out->h + 24, r->cmdsn++);
    put_be64(out->h + 34, io->slot * slot_blocks);
    put_be32(out->h + 42, (uint32_t)slot_blocks);
    seal(r, out, io);
    io->live = true;
    if (unasked > now && !data_out(r, io, NO_TAG, form + 8, now, unasked))
        return false;
    return true;
}

static bool
window_open(const struct raw *r)
{
    return (int32_t)(r->max_cmdsn - r->cmdsn) >= 0;
}

static bool
raw_issue(struct io *io)
{
    struct raw *r = io->s->priv;

    io->got = io->data_sn = 0;
    if (!r->wait && window_open(r))
        return command(r, io);
    io->next_wait = NULL;
    io->live = true;
    *r->wait_end = io;
    r->wait_end = &io->next_wait;
    return true;
}

/* --- receiving ------------------------------------------------------------- */

static int
window(struct raw *r)
{
    uint32_t max = get_be32(r->h + 32);

    if ((int32_t)(max - r->max_cmdsn) > 0)
        r->max_cmdsn = max;
    while (r->wait && window_open(r)) {
        struct io *io = r->wait;
        r->wait = io->next_wait;
        if (!r->wait)
            r->wait_end = &r->wait;
        if (!command(r, io))
            return LOST(r, "no memory");
    }
    return 0;
}

static struct io *
io_of(struct session *s, uint32_t itt)
{
    struct raw *r = s->priv;
    struct io *io = itt == SYNC_ITT ? &r->sync : itt < o.qd && s->ios ? &s->ios[itt] : NULL;
    return io && io->live ? io : NULL;
}

/* A header is whole: is it one that may come now? */
static int
header(struct session *s)
{
    struct raw *r = s->priv;
    const uint8_t *h = r->h;
    uint8_t op = h[0] & 0x3f;

    if (r->hd && !crc32c_check(crc32c_add(CRC32C_INIT, h, BHS), h + BHS))
        return LOST(r, "header digest error");
    r->len = get_be24(h + 5);
    if (h[4] || r->len > SEG_OURS)
        return LOST(r, "opcode 0x%02x: %u bytes of AHS, data segment of %u bytes", op, h[4] * 4u,
                    r->len);
    r->left = (r->len + 3) & ~3u;
    r->at = r->dlen = 0;
    r->crc = CRC32C_INIT;
    r->in_data = r->left > 0;
    r->io = NULL;
    if (op == OP_DATA_IN) {
        struct io *io = io_of(s, get_be32(h + 16));
        if (!io || io->is_write || get_be32(h + 40) != io->got || get_be32(h + 36) != io->data_sn ||
            r->len > io->len - io->got)
            return LOST(r, "Data-In for ITT 0x%x: DataSN %u, offset %u, %u bytes not expected",
                        get_be32(h + 16), get_be32(h + 36), get_be32(h + 40), r->len);
        r->io = io;
    }
    return 0;
}

/* k bytes of a data segment or its padding. */
static void
take(struct raw *r, const uint8_t *p, uint32_t k)
{
    uint32_t room = r->len - r->at;
    uint32_t d = r->at >= r->len ? 0 : k < room ? k : room;

    if (r->dd)
        r->crc = crc32c_add(r->crc, p, k);
    if (r->io && r->io->keep)
        memcpy(r->io->buf + r->io->got + r->at, p, d);
    else if (!r->io && r->at < sizeof r->text)
        memcpy(r->text + r->at, p, d < sizeof r->text - r->at ? d : sizeof r->text - r->at);
    r->at += k;
    r->left -= k;
}

static void
sense(const struct raw *r, struct outcome *out)
{
    const uint8_t *b = r->text + 2;

    if (r->len < 2 + 4)
        return;
    if ((b[0] & 0x7f) >= 0x72) {
        out->key = b[1] & 15;
        out->ascq = get_be16(b + 2);
    } else if (r->len >= 2 + 14) {
        out->key = b[2] & 15;
        out->ascq = get_be16(b + 12);
    }
}

/* The status of a command, from a SCSI Response or the last Data-In. */
static void
end(struct raw *r, struct io *io, bool with_data)
{
    struct outcome out = {.status = r->h[3]};

    io->live = false;
    if (io == &r->sync) {
        r->sync_status = r->h[3];
        return;
    }
    if (!with_data && r->h[2])
        out.status = 0x100 | r->h[2]; /* not completed at the target */
    if (!with_data && out.status == 2)
        sense(r, &out);
    if (r->h[1] & 0x06) {
        out.off_by = get_be32(r->h + 44);
        out.off_by += !out.off_by;
    } else if (out.status == 0 && !io->is_write) {
        out.off_by = io->len - io->got;
    }
    load_done(io, &out);
}

static int
status_sn(struct raw *r)
{
    uint32_t sn = get_be32(r->h + 24);

    if (sn != r->exp_statsn)
        return LOST(r, "StatSN %u, expected %u", sn, r->exp_statsn);
    r->exp_statsn++;
    return 0;
}

static int
on_response(struct session *s)
{
    struct raw *r = s->priv;
    struct io *io = io_of(s, get_be32(r->h + 16));

    if (!io)
        return LOST(r, "SCSI Response for ITT 0x%x, which is not in use", get_be32(r->h + 16));
    if (status_sn(r) || window(r))
        return -1;
    end(r, io, false);
    return 0;
}

static int
on_data_in(struct session *s)
{
    struct raw *r = s->priv;
    struct io *io = r->io;

    io->got += r->len;
    io->data_sn++;
    if (r->h[1] & 0x01) { /* the status is in it */
        if (status_sn(r) || window(r))
            return -1;
        end(r, io, true);
        return 0;
    }
    return window(r);
}

static int
on_r2t(struct session *s)
{
    struct raw *r = s->priv;
    struct io *io = io_of(s, get_be32(r->h + 16));
    uint32_t at = get_be32(r->h + 40), len = get_be32(r->h + 44);

    if (!io || !io->is_write || !len || at > io->len || len > io->len - at)
        return LOST(r, "R2T for ITT 0x%x: offset %u, %u bytes", get_be32(r->h + 16), at, len);
    if (!data_out(r, io, get_be32(r->h + 20), r->h + 8, at, at + len))
        return LOST(r, "no memory");
    return window(r);
}

static int
on_nop_in(struct session *s)
{
    struct raw *r = s->priv;

    if (get_be32(r->h + 20) != NO_TAG) {
        struct out *out = out_new(r, NULL, 0);
        if (!out)
            return LOST(r, "no memory");
        out->h[0] = OP_NOP_OUT | IMMEDIATE;
        out->h[1] = FINAL;
        memcpy(out->h + 8, r->h + 8, 8);
        put_be32(out->h + 16, NO_TAG);
        memcpy(out->h + 20, r->h + 20, 4);
        put_be32(out->h + 24, r->cmdsn);
        seal(r, out, NULL);
    }
    return window(r);
}

/* A PDU is whole. */
static int
pdu(struct session *s)
{
    struct raw *r = s->priv;

    r->hlen = 0;
    r->in_data = false;
    switch (r->h[0] & 0x3f) {
    case OP_SCSI_RSP:
        return on_response(s);
    case OP_DATA_IN:
        return on_data_in(s);
    case OP_R2T:
        return on_r2t(s);
    case OP_NOP_IN:
        return on_nop_in(s);
    case OP_LOGOUT_RSP:
        r->logged_out = true;
        return 0;
    case OP_REJECT:
        return LOST(r, "Reject, reason 0x%02x", r->h[2]);
    case OP_ASYNC:
        return LOST(r, "Asynchronous Message, event %u", r->h[36]);
    default:
        return LOST(r, "PDU of opcode 0x%02x", r->h[0] & 0x3f);
    }
}

static int
feed(struct session *s, const uint8_t *p, size_t n)
{
    struct raw *r = s->priv;
    const unsigned whole = r->hd ? BHS + DIGEST : BHS;

    while (n) {
        size_t k;
        if (!r->in_data) {
            k = whole - r->hlen < n ? whole - r->hlen : n;
            memcpy(r->h + r->hlen, p, k);
            r->hlen += (unsigned)k;
            if (r->hlen == whole && (header(s) || (!r->in_data && pdu(s))))
                return -1;
        } else if (r->left) {
            k = r->left < n ? r->left : n;
            take(r, p, (uint32_t)k);
            if (!r->left && !r->dd && pdu(s))
                return -1;
        } else {
            k = DIGEST - r->dlen < n ? DIGEST - r->dlen : n;
            memcpy(r->digest + r->dlen, p, k);
            r->dlen += (unsigned)k;
            if (r->dlen == DIGEST) {
                if (!crc32c_check(r->crc, r->digest))
                    return LOST(r, "data digest error, opcode 0x%02x", r->h[0] & 0x3f);
                if (pdu(s))
                    return -1;
            }
        }
        p += k;
        n -= k;
    }
    return 0;
}

/* Nothing will be answered any more: every command ends as lost. */
static int
lost(struct session *s)
{
    struct raw *r = s->priv;
    const struct outcome out = {.status = LOAD_LOST, .why = r->why};

    load_dead(s, r->why);
    r->wait = NULL;
    for (unsigned i = 0; s->ios && i < o.qd; i++)
        if (s->ios[i].live) {
            s->ios[i].live = false;
            load_done(&s->ios[i], &out);
        }
    return -1;
}

static int
raw_service(struct session *s, short revents, bool wait)
{
    struct raw *r = s->priv;

    if (revents & POLLOUT && raw_flush(s))
        return lost(s);
    if (!(revents & ~POLLOUT))
        return 0;
    ssize_t n;
    for (unsigned looks = 1;; looks++) {
        bool sleep = wait && looks > LOOKS;
        n = recv(r->fd, r->rbuf, RBUF, sleep ? 0 : MSG_DONTWAIT);
        if (n >= 0 || errno != EAGAIN || sleep || !wait)
            break;
    }
    s->w->now = now_ns();
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        snprintf(r->why, sizeof r->why, "receive: %s", strerror(errno));
    else if (n == 0)
        snprintf(r->why, sizeof r->why, "the target closes the connection");
    if (n <= 0 || feed(s, r->rbuf, (size_t)n))
        return lost(s);
    return 0;
}

static int
flush_or_lose(struct session *s)
{
    return raw_flush(s) ? lost(s) : 0;
}

static short
raw_events(struct session *s)
{
    const struct raw *r = s->priv;
    return r->first < r->nq ? POLLIN | POLLOUT : POLLIN;
}

static int
raw_fd(struct session *s)
{
    return ((struct raw *)s->priv)->fd;
}

/* --- sessions -------------------------------------------------------------- */

/* A command without its own numbers; cdb: operation code. */
static void
form(const struct session *s, uint8_t h[BHS], uint8_t flags, uint8_t cdb, uint32_t len)
{
    h[0] = OP_SCSI;
    h[1] = (uint8_t)(FINAL | flags | 1); /* SIMPLE */
    if (s->lun < 256) {
        h[9] = (uint8_t)s->lun;
    } else { /* flat space addressing, SAM-5 4.7.7 */
        h[8] = (uint8_t)(0x40 | s->lun >> 8);
        h[9] = (uint8_t)s->lun;
    }
    put_be32(h + 20, len);
    h[32] = cdb;
}

/* One command by itself; its SCSI status, or -1. */
static int
alone(struct session *s, uint8_t cdb, uint8_t action, uint32_t len)
{
    struct raw *r = s->priv;
    struct out *out = out_new(r, NULL, 0);

    if (!out)
        return -1;
    r->sync = (struct io){
        .s = s, .buf = r->sync_buf, .itt = SYNC_ITT, .len = len, .keep = true, .live = true};
    form(s, out->h, len ? 0x40 : 0, cdb, len);
    put_be32(out->h + 16, SYNC_ITT);
    put_be32(out->h + 24, r->cmdsn++);
    out->h[33] = action;
    if (len)
        put_be32(out->h + 32 + 10, len);
    seal(r, out, NULL);
    for (unsigned waits = 0; r->sync.live && waits < 40; waits++)
        if (flush_or_lose(s) || raw_service(s, raw_events(s), true))
            return -1;
    return r->sync.live ? -1 : r->sync_status;
}

static int
raw_capacity(struct session *s, uint32_t *block_bytes, uint64_t *nblk)
{
    struct raw *r = s->priv;
    int status = -1;

    for (unsigned i = 0; i < 10 && status; i++) /* unit attentions */
        status = alone(s, 0x00, 0, 0);
    status = alone(s, 0x9e, 0x10, 32); /* READ CAPACITY(16) */
    if (status || r->sync.got < 12) {
        fprintf(stderr, "iscsi-load: READ CAPACITY(16): status %d, %u bytes %s\n", status,
                r->sync.got, r->why);
        return -1;
    }
    *nblk = get_be64(r->sync_buf) + 1;
    *block_bytes = get_be32(r->sync_buf + 8);
    return 0;
}

static int
raw_open(struct session *s, unsigned idx)
{
    struct raw *r = calloc(1, sizeof *r);

    if (!r || !(r->rbuf = aligned_alloc(4096, RBUF)))
        return -1;
    s->priv = r;
    r->fd = -1;
    r->cmdsn = 1;
    r->wait_end = &r->wait;
    if (raw_login(s, r, idx))
        return -1;
    if (r->seg_theirs >= 512)
        r->seg_theirs &= ~511u; /* no padding between parts */
    else
        return fprintf(stderr, "iscsi-load: MaxRecvDataSegmentLength below 512\n"), -1;
    form(s, r->form[0], 0x40, 0x88, (uint32_t)o.bs); /* READ(16) */
    form(s, r->form[1], 0x20, 0x8a, (uint32_t)o.bs); /* WRITE(16) */
    if (o.fua)
        r->form[1][33] |= 0x08;
    return 0;
}

static void
raw_close(struct session *s)
{
    struct raw *r = s->priv;
    struct out *out = out_new(r, NULL, 0);

    if (!out)
        return;
    out->h[0] = OP_LOGOUT | IMMEDIATE;
    out->h[1] = FINAL; /* reason 0: the session */
    put_be32(out->h + 16, SYNC_ITT);
    put_be32(out->h + 24, r->cmdsn);
    seal(r, out, NULL);
    for (unsigned waits = 0; !r->logged_out && !s->dead && waits < 3; waits++)
        if (flush_or_lose(s) || raw_service(s, raw_events(s), true))
            return;
}

const struct engine engine_raw = {
    .name = "raw",
    .open = raw_open,
    .capacity = raw_capacity,
    .issue = raw_issue,
    .flush = flush_or_lose,
    .events = raw_events,
    .fd = raw_fd,
    .service = raw_service,
    .can_wait = true,
    .close = raw_close,
};
