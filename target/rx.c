/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver: five waiting points, one step each.  Whatever a peer claims, memory is a receive
 * buffer, or a buffer as large as our own MaxRecvDataSegmentLength; data of a Data-Out that nobody
 * waits for are discarded as they come.  Owner: the connection's worker.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/crc32c.h"
#include "base/pool.h"
#include "target/target.h"

#define IN_BYTES       (128u * 1024)
#define IN_BYTES_LOGIN 16384u
#define LOGIN_DATA_MAX 8192u  /* MaxRecvDataSegmentLength before it is declared, RFC 7143 13.12 */
#define DIRECT_MIN     16384u /* so much still to come is received where it belongs */
#define BULK_MIN       65536u /* after one as large as this the next is not read ahead ... */
#define BULK_AHEAD     4096u  /* ... but for so much: what is read ahead has to be copied */
#define TURN_READS     16u    /* then the other connections get their turn */

static void on_readable(struct ev_loop *loop, struct ev_io *ev, int revents);
static void on_again(struct deferred *d);

void
rx_init(struct conn *c)
{
    struct rx *rx = &c->rx;
    memset(rx, 0, sizeof *rx);
    deferred_init(&rx->again, on_again);
    ev_io_init(&rx->ev, on_readable, c->xp.fd, EV_READ);
    rx->ev.data = c;
}

void
rx_start(struct conn *c)
{
    worker_assert_owner(c->w);
    if (c->rx.paused)
        return;
    ev_io_start(worker_loop(c->w), &c->rx.ev);
    if (c->rx.head < c->rx.tail)
        worker_defer(c->w, &c->rx.again);
}

static void
in_drop(struct rx *rx)
{
    if (rx->in)
        buf_put(rx->in);
    rx->in = NULL;
    rx->head = rx->tail = 0;
}

static void
own_drop(struct rx *rx)
{
    if (rx->own)
        buf_put(rx->own);
    rx->own = NULL;
}

void
rx_fini(struct conn *c)
{
    struct rx *rx = &c->rx;
    worker_assert_owner(c->w);
    ev_io_stop(worker_loop(c->w), &rx->ev);
    deferred_cancel(&rx->again);
    in_drop(rx);
    own_drop(rx);
    rx->task = NULL;
    rx->to = NULL;
}

void
rx_pause(struct conn *c, enum rx_pause why)
{
    if (c->rx.paused & why)
        return;
    worker_assert_owner(c->w);
    c->rx.paused |= (uint8_t)why;
    ev_io_stop(worker_loop(c->w), &c->rx.ev);
    deferred_cancel(&c->rx.again);
}

void
rx_resume(struct conn *c, enum rx_pause why)
{
    if (!(c->rx.paused & why))
        return;
    c->rx.paused &= (uint8_t)~why;
    rx_start(c);
}

void
rx_forget_task(struct conn *c, struct task *t)
{
    if (c->rx.task != t)
        return;
    c->rx.task = NULL;
    c->rx.to = NULL;
}

uint8_t *
rx_detach(struct conn *c, uint32_t *len)
{
    struct rx *rx = &c->rx;
    uint8_t *bytes = NULL;
    worker_assert_owner(c->w);
    *len = rx->tail - rx->head;
    if (*len > 0) {
        bytes = xmalloc(*len);
        memcpy(bytes, rx->in->p + rx->head, *len);
    }
    in_drop(rx);
    return bytes;
}

void
rx_attach(struct conn *c, uint8_t *bytes, uint32_t len)
{
    struct rx *rx = &c->rx;
    worker_assert_owner(c->w);
    if (len == 0)
        return;
    rx->in = buf_get(worker_bufs(c->w), len > IN_BYTES_LOGIN ? len : IN_BYTES_LOGIN);
    if (rx->in) {
        memcpy(rx->in->p, bytes, len);
        rx->tail = len;
    } else {
        conn_close(c, "no memory to receive", false);
    }
    free(bytes);
}

/* --- one PDU, step by step ------------------------------------------------------------------- */

static void
complete(struct conn *c, uint8_t *data, bool digest_ok)
{
    struct rx *rx = &c->rx;
    rx->state = RX_HEADER;
    rx->pdu.data = rx->pdu.data_len > 0 ? data : NULL;
    if (digest_ok) {
        conn_on_pdu(c, &rx->pdu);
    } else {
        counter_add(CT_DIGEST_ERR_DATA, 1);
        rx->pdu.bad_data = true;
        if (rx->row && (rx->row->flags & PDU_DIRECT))
            conn_on_pdu(c, &rx->pdu);
        else /* the PDU is discarded, its CmdSN was not received (RFC 7143 7.3, 7.8) */
            reject_send(c, &rx->pdu, REJ_DATA_DIGEST);
    }
    own_drop(rx);
}

/* Before full feature phase only Login Requests of at most 8192 bytes come in. True: goes on. */
static bool
login_header(struct conn *c)
{
    struct rx *rx = &c->rx;
    bool is_login = rx->row && rx->row->opcode == OPC_LOGIN_REQ;
    if (is_login && rx->pdu.data_len <= LOGIN_DATA_MAX)
        return true;
    rx->state = RX_HEADER;
    if (!is_login)
        conn_on_pdu(c, &rx->pdu);
    else if (c->state == CS_IN_LOGIN)
        conn_verdict(c, &rx->pdu, login_foreign_pdu(c, &rx->pdu));
    if (!c->closing)
        conn_close(c, "Login Request is too long", false);
    return false;
}

static bool
length_ok(struct conn *c)
{
    struct rx *rx = &c->rx;
    bool direct = rx->row && (rx->row->flags & PDU_DIRECT);
    uint32_t max = c->p.max_recv;
    if (!direct && max > BUF_MAX)
        max = BUF_MAX;
    if (rx->pdu.data_len <= max)
        return true;
    rx->state = RX_HEADER;
    reject_send(c, &rx->pdu, REJ_PROTOCOL);
    conn_close(c, "data segment is longer than MaxRecvDataSegmentLength", true);
    return false;
}

/* Where the data segment goes: into the receive buffer, a task's memory, one of its own, or
 * nowhere. False: the connection ends. */
static bool
place_data(struct conn *c)
{
    struct rx *rx = &c->rx;
    rx->whole = false;
    if (!rx->row || !(rx->row->flags & PDU_DATA) || (rx->row->flags & PDU_DIRECT))
        return true;
    uint32_t need = rx->want + (rx->dd ? 4 : 0);
    if (rx->tail - rx->head >= need || need <= rx->in->cap / 4 || !conn_is_full_feature(c)) {
        rx->whole = true;
        return true;
    }
    /* of a write's full size where it fits: then the command takes it over as it is */
    uint32_t size = rx->want;
    if (rx->row->opcode == OPC_SCSI_CMD && rx->pdu.edtl > size && rx->pdu.edtl <= BUF_MAX)
        size = rx->pdu.edtl;
    else if (rx->row->opcode == OPC_SCSI_CMD && rx->pdu.edtl > BUF_MAX)
        size = BUF_MAX;
    rx->own = buf_get(worker_bufs(c->w), size);
    if (!rx->own) {
        conn_close(c, "no memory to receive", false);
        return false;
    }
    rx->to = rx->own->p;
    return true;
}

/* The header is complete and its digest was right. */
static bool
header_done(struct conn *c)
{
    struct rx *rx = &c->rx;
    struct pdu *pdu = &rx->pdu;
    bool full = conn_is_full_feature(c);
    pdu->ahs = pdu->ahs_len > 0 ? rx->ahs : NULL;
    rx->to = NULL;
    rx->task = NULL;
    rx->refuse = 0;
    if (full ? !length_ok(c) : !login_header(c))
        return false;
    if (rx->row && (rx->row->flags & PDU_DIRECT) && !c->discovery)
        dataout_begin(c, pdu);
    rx->fill = 0;
    rx->want = (pdu->data_len + 3) & ~3u;
    if (rx->want > 0)
        rx->bulk = rx->want >= BULK_MIN;
    rx->crc = CRC32C_INIT;
    if (rx->want == 0) {
        complete(c, NULL, true);
        return true;
    }
    rx->state = RX_DATA;
    return place_data(c);
}

static bool
step_header(struct conn *c)
{
    struct rx *rx = &c->rx;
    bool full = conn_is_full_feature(c);
    rx->hd = full && c->p.header_digest;
    rx->dd = full && c->p.data_digest;
    pdu_decode(&rx->pdu, rx->in->p + rx->head);
    rx->row = pdutab_find(rx->pdu.opcode);
    rx->head += BHS_LEN;
    if (rx->pdu.ahs_len > 0)
        rx->state = RX_AHS;
    else if (rx->hd)
        rx->state = RX_HEADER_DIGEST;
    else
        return header_done(c);
    return true;
}

static bool
step_ahs(struct conn *c)
{
    struct rx *rx = &c->rx;
    memcpy(rx->ahs, rx->in->p + rx->head, rx->pdu.ahs_len);
    rx->head += rx->pdu.ahs_len;
    if (!rx->hd)
        return header_done(c);
    rx->state = RX_HEADER_DIGEST;
    return true;
}

static bool
step_header_digest(struct conn *c)
{
    struct rx *rx = &c->rx;
    uint32_t crc = crc32c_add(CRC32C_INIT, rx->pdu.bhs, BHS_LEN);
    crc = crc32c_add(crc, rx->ahs, rx->pdu.ahs_len);
    bool ok = crc32c_check(crc, rx->in->p + rx->head);
    rx->head += 4;
    if (ok)
        return header_done(c);
    /* Where the next header starts is not known any more: the connection cannot be used (RFC 7143
     * 7.8, ErrorRecoveryLevel 0). */
    counter_add(CT_DIGEST_ERR_HEADER, 1);
    conn_close(c, "header digest error", false);
    return false;
}

static bool
step_data_whole(struct conn *c)
{
    struct rx *rx = &c->rx;
    uint8_t *data = rx->in->p + rx->head;
    rx->head += rx->want;
    bool ok = true;
    if (rx->dd) {
        ok = crc32c_check(crc32c_add(CRC32C_INIT, data, rx->want), rx->in->p + rx->head);
        rx->head += 4;
    }
    complete(c, data, ok);
    return true;
}

static bool
data_end(struct conn *c)
{
    struct rx *rx = &c->rx;
    if (rx->fill < rx->want)
        return false;
    if (!rx->dd) {
        complete(c, rx->own ? rx->own->p : NULL, true);
        return true;
    }
    rx->state = RX_DATA_DIGEST;
    return true;
}

/* Takes what is there of a data segment that does not wait in `in`. */
static bool
step_data(struct conn *c)
{
    struct rx *rx = &c->rx;
    uint32_t n = rx->tail - rx->head;
    if (n > rx->want - rx->fill)
        n = rx->want - rx->fill;
    const uint8_t *p = rx->in->p + rx->head;
    uint32_t room = rx->fill < rx->pdu.data_len ? rx->pdu.data_len - rx->fill : 0;
    if (rx->to && room > 0)
        memcpy(rx->to + rx->fill, p, n < room ? n : room);
    if (rx->dd)
        rx->crc = crc32c_add(rx->crc, p, n);
    rx->fill += n;
    rx->head += n;
    return data_end(c);
}

static bool
step_data_digest(struct conn *c)
{
    struct rx *rx = &c->rx;
    bool ok = crc32c_check(rx->crc, rx->in->p + rx->head);
    rx->head += 4;
    complete(c, rx->own ? rx->own->p : NULL, ok);
    return true;
}

/* Bytes that the current step waits for. */
static uint32_t
step_needs(const struct rx *rx)
{
    switch ((enum rx_state)rx->state) {
    case RX_HEADER:
        return BHS_LEN;
    case RX_AHS:
        return rx->pdu.ahs_len;
    case RX_DATA:
        return rx->whole ? rx->want + (rx->dd ? 4 : 0) : 1;
    case RX_HEADER_DIGEST:
    case RX_DATA_DIGEST:
        break;
    }
    return 4;
}

static bool
step(struct conn *c)
{
    struct rx *rx = &c->rx;
    if (rx->tail - rx->head < step_needs(rx))
        return false;
    switch ((enum rx_state)rx->state) {
    case RX_HEADER:
        return step_header(c);
    case RX_AHS:
        return step_ahs(c);
    case RX_HEADER_DIGEST:
        return step_header_digest(c);
    case RX_DATA:
        return rx->whole ? step_data_whole(c) : step_data(c);
    case RX_DATA_DIGEST:
        break;
    }
    return step_data_digest(c);
}

static void
deliver(struct conn *c)
{
    while (!c->rx.paused && step(c))
        ;
}

/* --- reading --------------------------------------------------------------------------------- */

/* Free space at the end of `in`; what is unread moves to its front when little is left. */
static bool
make_room(struct conn *c)
{
    struct rx *rx = &c->rx;
    bool full = conn_is_full_feature(c);
    if (!rx->in) {
        rx->in = buf_get(worker_bufs(c->w), full ? IN_BYTES : IN_BYTES_LOGIN);
        rx->head = rx->tail = 0;
    } else if (rx->head == rx->tail) {
        rx->head = rx->tail = 0;
    } else if (rx->in->cap - rx->head < step_needs(rx) || rx->tail > rx->in->cap / 4 * 3) {
        memmove(rx->in->p, rx->in->p + rx->head, rx->tail - rx->head);
        rx->tail -= rx->head;
        rx->head = 0;
    }
    return rx->in != NULL;
}

/* How much may be read into `in`. */
static uint32_t
ahead(const struct rx *rx)
{
    uint32_t room = rx->in->cap - rx->tail;
    uint32_t has = rx->tail - rx->head;
    uint32_t want = step_needs(rx) > has + BULK_AHEAD ? step_needs(rx) - has : BULK_AHEAD;
    return rx->bulk && want < room ? want : room;
}

/* One read. Bytes, 0: nothing more for now or the connection ends; *drained: the socket has no
 * more. */
static size_t
fill(struct conn *c, bool *drained)
{
    struct rx *rx = &c->rx;
    struct iovec iov[2];
    int n = 0;
    size_t direct = 0, asked;
    if (!make_room(c)) {
        conn_close(c, "no memory to receive", false);
        return 0;
    }
    if (rx->state == RX_DATA && !rx->whole && rx->to && rx->head == rx->tail &&
        rx->fill < rx->pdu.data_len && rx->pdu.data_len - rx->fill >= DIRECT_MIN) {
        direct = rx->pdu.data_len - rx->fill;
        iov[n++] = (struct iovec){.iov_base = rx->to + rx->fill, .iov_len = direct};
    }
    uint32_t room = ahead(rx);
    asked = direct + room;
    iov[n++] = (struct iovec){.iov_base = rx->in->p + rx->tail, .iov_len = room};
    ssize_t got = c->xp.ops->read(&c->xp, iov, n);
    if (got == -EAGAIN) {
        *drained = true;
        return 0;
    }
    if (got <= 0) {
        rx->lost = true;
        conn_close(c, got == 0 ? "the initiator closed it" : "receiving failed", false);
        return 0;
    }
    counter_add(CT_BYTES_IN, (uint64_t)got);
    c->count.bytes_in += (uint64_t)got;
    if (c->sess)
        c->sess->bytes_in += (uint64_t)got;
    *drained = (size_t)got < asked;
    size_t head = (size_t)got < direct ? (size_t)got : direct;
    if (head > 0 && rx->dd)
        rx->crc = crc32c_add(rx->crc, rx->to + rx->fill, head);
    rx->fill += (uint32_t)head;
    rx->tail += (uint32_t)((size_t)got - head);
    if (head > 0 && rx->fill == rx->want)
        data_end(c);
    return (size_t)got;
}

static void
run(struct conn *c)
{
    struct rx *rx = &c->rx;
    bool drained = false;
    unsigned reads = 0;
    deliver(c);
    while (!rx->paused && !drained && reads++ < TURN_READS) {
        if (fill(c, &drained) == 0)
            break;
        if (reads == 1)
            c->nop.last_rx_ms = clock_ms();
        deliver(c);
    }
    if (rx->head == rx->tail)
        in_drop(rx);
    if (!rx->paused && c->xp.ops->pending(&c->xp))
        worker_defer(c->w, &rx->again); /* bytes the loop does not know of */
}

static void
on_readable(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    struct conn *c = ev->data;
    (void)loop;
    (void)revents;
    if (c->lingering)
        conn_linger(c);
    else
        run(c);
}

static void
on_again(struct deferred *d)
{
    struct conn *c = container_of(d, struct conn, rx.again);
    if (!c->rx.paused)
        run(c);
}
