/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sender.  The out-queue is a list of pieces: bytes copied to a staging buffer (headers,
 * small data, padding and digests; neighbours melt into one piece) and data sent in place.  One
 * gathering send per loop turn takes them all.  Owner: the connection's worker.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/crc32c.h"
#include "base/pool.h"
#include "target/target.h"

#define STAGE_BYTES 65536u
#define IOV_BATCH   256
/* Bytes a turn hands to one socket before the others get theirs. */
#define TURN_BYTES  (8u * 1024 * 1024)

static void on_writable(struct ev_loop *loop, struct ev_io *ev, int revents);
static void on_flush(struct deferred *d);

void
tx_init(struct conn *c)
{
    struct tx *tx = &c->tx;
    *tx = (struct tx){0};
    list_init(&tx->queue);
    deferred_init(&tx->flush, on_flush);
    ev_io_init(&tx->ev, on_writable, c->xp.fd, EV_WRITE);
    tx->ev.data = c;
}

static void
item_end(struct tx_item *it)
{
    void (*release)(void *arg) = it->release;
    void *arg = it->arg;
    if (it->stage)
        buf_put(it->stage);
    pool_put(tgt_here()->txitems, it);
    if (release)
        release(arg);
}

static void
stage_drop(struct tx *tx)
{
    if (tx->stage)
        buf_put(tx->stage);
    tx->stage = NULL;
    tx->stage_used = 0;
}

void
tx_fini(struct conn *c)
{
    struct tx *tx = &c->tx;
    worker_assert_owner(c->w);
    ev_io_stop(worker_loop(c->w), &tx->ev);
    deferred_cancel(&tx->flush);
    tx->blocked = false;
    tx->drained = NULL;
    tx->lost = true;
    struct list gone, *n;
    list_init(&gone);
    list_splice_tail(&gone, &tx->queue);
    stage_drop(tx);
    tx->queued_bytes = tx->sent_of_first = 0;
    while ((n = list_pop(&gone)) != NULL)
        item_end(container_of(n, struct tx_item, link));
}

bool
tx_is_empty(const struct conn *c)
{
    return list_is_empty(&c->tx.queue);
}

void
tx_when_drained(struct conn *c, void (*fn)(struct conn *c))
{
    worker_assert_owner(c->w);
    if (c->tx.lost)
        return;
    if (tx_is_empty(c))
        fn(c);
    else
        c->tx.drained = fn;
}

/* Room for len (<= STAGE_BYTES) contiguous bytes at the end of the queue, or NULL. */
static uint8_t *
stage_room(struct conn *c, uint32_t len)
{
    struct tx *tx = &c->tx;
    if (!tx->stage || STAGE_BYTES - tx->stage_used < len) {
        stage_drop(tx);
        tx->stage = buf_get(worker_bufs(c->w), STAGE_BYTES);
        if (!tx->stage)
            return NULL;
    }
    uint8_t *p = tx->stage->p + tx->stage_used;
    struct tx_item *last = NULL;
    if (!list_is_empty(&tx->queue))
        last = container_of(tx->queue.prev, struct tx_item, link);
    if (last && last->stage == tx->stage && last->p + last->len == p) {
        last->len += len;
    } else {
        struct tx_item *it = pool_get(tgt_here()->txitems);
        it->p = p;
        it->len = len;
        it->stage = tx->stage;
        buf_ref(tx->stage);
        list_add_tail(&tx->queue, &it->link);
    }
    tx->stage_used += len;
    tx->queued_bytes += len;
    return p;
}

static bool
stage_copy(struct conn *c, const uint8_t *data, uint32_t len)
{
    while (len > 0) {
        uint32_t left = c->tx.stage ? STAGE_BYTES - c->tx.stage_used : 0;
        uint32_t n = left == 0 ? STAGE_BYTES : left;
        n = n < len ? n : len;
        uint8_t *p = stage_room(c, n);
        if (!p)
            return false;
        memcpy(p, data, n);
        data += n;
        len -= n;
    }
    return true;
}

static bool
queue_header(struct conn *c, const uint8_t bhs[BHS_LEN], bool digest)
{
    uint8_t *p = stage_room(c, digest ? BHS_LEN + 4 : BHS_LEN);
    if (!p)
        return false;
    memcpy(p, bhs, BHS_LEN);
    if (digest)
        crc32c_final(crc32c_add(CRC32C_INIT, bhs, BHS_LEN), p + BHS_LEN);
    return true;
}

static bool
queue_trailer(struct conn *c, const void *data, uint32_t len, bool digest)
{
    static const uint8_t zero[4];
    uint32_t pad = -len & 3;
    uint32_t n = pad + (digest ? 4 : 0);
    if (n == 0)
        return true;
    uint8_t *p = stage_room(c, n);
    if (!p)
        return false;
    memcpy(p, zero, pad);
    if (digest) {
        uint32_t crc = crc32c_add(CRC32C_INIT, data, len);
        crc32c_final(crc32c_add(crc, zero, pad), p + pad);
    }
    return true;
}

static void
queue_in_place(struct conn *c, const void *data, uint32_t len, void (*release)(void *arg),
               void *arg)
{
    struct tx_item *it = pool_get(tgt_here()->txitems);
    it->p = data;
    it->len = len;
    it->release = release;
    it->arg = arg;
    list_add_tail(&c->tx.queue, &it->link);
}

void
tx_pdu(struct conn *c, uint8_t bhs[48], const void *data, uint32_t len, void (*release)(void *arg),
       void *arg)
{
    struct tx *tx = &c->tx;
    worker_assert_owner(c->w);
    bool full = conn_is_full_feature(c);
    bool dd = full && c->p.data_digest && len > 0;
    put_be24(bhs + 5, len);
    counter_add(CT_PDU_OUT, 1);
    if (c->closing) { /* nothing new is said; an empty piece calls release in its time */
        if (release)
            queue_in_place(c, data, 0, release, arg);
        worker_defer_flush(c->w, &tx->flush);
        return;
    }
    c->count.responses += bhs[0] == OPC_SCSI_RSP;
    c->count.data_in += bhs[0] == OPC_DATA_IN;
    bool ok = queue_header(c, bhs, full && c->p.header_digest);
    if (release)
        queue_in_place(c, data, len, release, arg);
    else if (ok)
        ok = stage_copy(c, data, len);
    if (ok)
        ok = queue_trailer(c, data, len, dd);
    if (!ok) {
        tx->lost = true; /* what was queued of it must not leave */
        conn_close(c, "no memory to send", false);
        return;
    }
    worker_defer_flush(c->w, &tx->flush);
    if (tx->queued_bytes > TX_HIGH_WATER)
        rx_pause(c, RX_PAUSE_OUT);
}

/* n bytes have left: full pieces go to `done`. */
static void
consume(struct tx *tx, size_t n, struct list *done)
{
    while (!list_is_empty(&tx->queue)) {
        struct tx_item *it = list_first(&tx->queue, struct tx_item, link);
        uint32_t left = it->len - tx->sent_of_first;
        uint32_t step = n < left ? (uint32_t)n : left;
        if (it->stage)
            tx->queued_bytes -= step;
        tx->sent_of_first += step;
        n -= step;
        if (tx->sent_of_first < it->len)
            return;
        tx->sent_of_first = 0;
        list_del(&it->link);
        list_add_tail(done, &it->link);
    }
}

static int
gather(const struct tx *tx, struct iovec *iov, size_t *total)
{
    int n = 0;
    uint32_t skip = tx->sent_of_first;
    *total = 0;
    list_each(l, &tx->queue)
    {
        const struct tx_item *it = container_of(l, struct tx_item, link);
        if (n == IOV_BATCH)
            break;
        iov[n].iov_base = (void *)(uintptr_t)(it->p + skip);
        iov[n].iov_len = it->len - skip;
        *total += iov[n].iov_len;
        skip = 0;
        n++;
    }
    return n;
}

/* Sends until nothing is left, the socket is full or the turn's share is used. */
static void
send_queue(struct conn *c, struct list *done)
{
    struct tx *tx = &c->tx;
    struct iovec iov[IOV_BATCH];
    size_t turn = 0;
    while (!list_is_empty(&tx->queue) && turn < TURN_BYTES) {
        size_t total;
        int niov = gather(tx, iov, &total);
        ssize_t n = c->xp.ops->writev(&c->xp, iov, niov, niov == IOV_BATCH);
        counter_add(CT_TX_SENDS, 1);
        if (n == -EAGAIN) {
            tx->blocked = true;
            break;
        }
        if (n < 0) {
            tx->lost = true;
            return;
        }
        counter_add(CT_BYTES_OUT, (uint64_t)n);
        c->count.bytes_out += (uint64_t)n;
        if (c->sess)
            c->sess->bytes_out += (uint64_t)n;
        turn += (size_t)n;
        consume(tx, (size_t)n, done);
        if ((size_t)n < total) {
            tx->blocked = true;
            break;
        }
    }
}

static void
flush(struct conn *c)
{
    struct tx *tx = &c->tx;
    struct list done, *n;
    if (tx->lost)
        return;
    bool was_blocked = tx->blocked;
    tx->blocked = false;
    list_init(&done);
    send_queue(c, &done);
    if (tx->lost) {
        conn_close(c, "sending failed", false);
    } else if (!list_is_empty(&tx->queue)) {
        if (tx->blocked)
            ev_io_start(worker_loop(c->w), &tx->ev);
        else
            worker_defer_flush(c->w, &tx->flush);
    } else {
        stage_drop(tx);
    }
    if (!tx->blocked)
        ev_io_stop(worker_loop(c->w), &tx->ev);
    if (was_blocked && !list_is_empty(&done))
        c->nop.last_rx_ms = clock_ms(); /* it takes what we send: alive */
    /* Releases may queue more, so the queue is in order before they run. The connection stays:
     * closing is always deferred. */
    while ((n = list_pop(&done)) != NULL)
        item_end(container_of(n, struct tx_item, link));
    if (tx->queued_bytes <= TX_HIGH_WATER / 2)
        rx_resume(c, RX_PAUSE_OUT);
    if (list_is_empty(&tx->queue) && tx->drained && !tx->lost) {
        void (*fn)(struct conn * c) = tx->drained;
        tx->drained = NULL;
        fn(c);
    }
}

static void
on_writable(struct ev_loop *loop, struct ev_io *ev, int revents)
{
    (void)loop;
    (void)revents;
    flush(ev->data);
}

static void
on_flush(struct deferred *d)
{
    struct conn *c = container_of(d, struct conn, tx.flush);
    if (!c->tx.blocked) /* else the socket tells when it takes more */
        flush(c);
}
