/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An initiator's end for the tests of target/: one worker in the calling thread, one target with
 * one unit (LUN 0), connections over a socket pair that begin in full feature phase.
 *
 *     struct tf f;
 *     tf_open(&f, &(struct tf_opts){0});
 *     struct tf_conn i;
 *     tf_connect(&f, &i);
 *     tf_cmd(&i, 1, TF_READ, 512, CDB(...));
 *     struct tf_pdu *p = tf_recv(&f, &i);
 *     ...
 *     tf_close(&f);
 */
#ifndef TESTS_UNIT_TGT_FAKE_H
#define TESTS_UNIT_TGT_FAKE_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/helper.h"
#include "base/pool.h"
#include "target/target.h"
#include "unit.h"

#define CDB(...) ((const uint8_t[16]){__VA_ARGS__})
enum { TF_FINAL = 0x80, TF_READ = 0xc0, TF_WRITE = 0xa0, TF_NODATA = 0x80, TF_IMMEDIATE = 0x100 };

struct tf_opts {
    const char *path;   /* a file that is the unit; NULL: null backend */
    const char *layers; /* "delay:ms=..." */
    uint64_t bytes;     /* 0: 16 MiB */
    unsigned max_cmds;  /* 0: 32 */
};

struct tf {
    struct worker *w;
    struct backend *be;
    struct lun *lun;
    struct tgt_node *node;
    struct login_result res; /* template for connections; tests change it */
};

struct tf_conn {
    struct conn *c; /* dangling once the target closed it */
    struct sess *s;
    int fd;
    bool hd, dd;
    uint32_t cmd_sn, itt;
    uint8_t in[1 << 21];
    size_t in_len;
    bool eof;
};

struct tf_pdu {
    uint8_t bhs[BHS_LEN];
    uint8_t *data;
    uint32_t len;
};

static inline void
tf_backend(struct tf *f, const struct tf_opts *o)
{
    char err[256] = "";
    uint64_t bytes = o->bytes ? o->bytes : 16 << 20;
    if (o->path) {
        int fd = open(o->path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
        close(fd);
    }
    struct be_opts bo = {.type = o->path ? "fileio" : "null",
                         .path = o->path,
                         .block_size = 512,
                         .write_cache = true,
                         .null_size = bytes,
                         .layers = o->layers};
    f->be = be_new(&bo, err, sizeof err);
    if (!f->be)
        fprintf(stderr, "be_new: %s\n", err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->be);
    CU_ASSERT_EQUAL_FATAL(be_open(f->be), 0);
    struct lun_conf conf = {.vendor_id = "EVTGT",
                            .product_id = "VIRTUAL-DISK",
                            .product_rev = "0001",
                            .block_size = 512,
                            .rotation_rate = 1,
                            .write_cache = true,
                            .online = true};
    static const uint8_t seed[32] = {1};
    lun_ident_default(&conf.ident, seed, be_identity(f->be));
    f->lun = lun_new(&conf, be_get(f->be), err, sizeof err);
    if (!f->lun)
        fprintf(stderr, "lun_new: %s\n", err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->lun);
}

static inline struct tgt_node *
tf_node(struct tf *f, const struct tf_opts *o)
{
    struct tgt_node *n = xcalloc(1, sizeof *n);
    ref_init(&n->ref);
    n->tid = 1;
    snprintf(n->name, sizeof n->name, "iqn.2026-01.example:target");
    n->nop_interval_s = n->nop_count = 0xffffffff;
    n->max_cmds = o->max_cmds ? o->max_cmds : 32;
    n->map = lun_map_new(&(struct lun_map_entry){0, f->lun}, 1);
    return n;
}

static inline void
tf_open(struct tf *f, const struct tf_opts *o)
{
    static bool pool;
    memset(f, 0, sizeof *f);
    if (!pool)
        CU_ASSERT_EQUAL_FATAL(helper_pool_start(1, 4), 0);
    pool = true;
    f->w = worker_new_local(&(struct worker_opts){0});
    CU_ASSERT_PTR_NOT_NULL_FATAL(f->w);
    tgt_worker_init(f->w);
    tf_backend(f, o);
    f->node = tf_node(f, o);
    struct login_result *r = &f->res;
    snprintf(r->initiator, sizeof r->initiator, "iqn.2026-01.example:initiator");
    memcpy(r->isid, "\x80\0\0\0\0\1", 6);
    r->node = f->node;
    r->sp = (struct sess_params){.max_burst = 262144,
                                 .first_burst = 65536,
                                 .max_r2t = 1,
                                 .max_connections = 1,
                                 .initial_r2t = true,
                                 .immediate_data = true,
                                 .data_pdu_in_order = true,
                                 .data_seq_in_order = true};
    r->cp = (struct conn_params){.max_recv = 262144, .max_xmit = 262144};
    r->cmd_sn = 1;
}

static inline void
tf_turns(struct tf *f, int n)
{
    for (int i = 0; i < n; i++)
        worker_turn(f->w, false);
}

static inline void
tf_close(struct tf *f)
{
    tgt_worker_fini(f->w);
    for (int i = 0; i < 100 || be_in_flight(f->be) != 0; i++)
        worker_turn(f->w, be_in_flight(f->be) != 0);
    CU_ASSERT_PTR_NULL(tgt_here());
    node_put(f->node);
    lun_put(f->lun);
    be_close(f->be);
    be_put(f->be);
    worker_free_local(f->w);
}

/* A connection that has not logged in yet. */
static inline void
tf_accept(struct tf *f, struct tf_conn *i)
{
    int sv[2];
    memset(i, 0, sizeof *i);
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
    CU_ASSERT_EQUAL_FATAL(fcntl(sv[0], F_SETFL, O_NONBLOCK), 0);
    struct conn_from from = {.peer.ss_family = AF_UNIX, .local.ss_family = AF_UNIX};
    conn_accept(f->w, sv[1], &from);
    i->c = container_of(tgt_here()->conns.prev, struct conn, on_worker);
    i->fd = sv[0];
    i->itt = 1;
}

/* As if it had logged in with f->res. */
static inline void
tf_connect(struct tf *f, struct tf_conn *i)
{
    struct registry_claim claim;
    tf_accept(f, i);
    CU_ASSERT_EQUAL_FATAL(registry_claim(&f->res, f->w, &claim), LS_OK);
    struct sess *old = claim.old_w ? sess_find_here(claim.old_sid) : NULL;
    if (old)
        sess_kill(old, "reinstated");
    if (f->res.tsih) {
        i->s = sess_find_here(claim.sid);
    } else {
        CU_ASSERT_TRUE_FATAL(registry_commit(claim.entry));
        i->s = sess_new(f->w, &f->res, &claim);
    }
    sess_attach(i->s, i->c, &f->res);
    conn_event(i->c, CE_LOGIN_PDU);
    conn_event(i->c, CE_LOGGED_IN);
    i->hd = f->res.cp.header_digest;
    i->dd = f->res.cp.data_digest;
    i->cmd_sn = f->res.cmd_sn;
}

static inline void
tf_hangup(struct tf *f, struct tf_conn *i)
{
    close(i->fd);
    tf_turns(f, 20);
}

/* --- sending ------------------------------------------------------------------------------------
 */

static inline void
tf_raw(struct tf *f, struct tf_conn *i, const void *p, size_t len)
{
    const uint8_t *b = p;
    while (len > 0) {
        ssize_t n = send(i->fd, b, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return; /* closed: the test sees it by eof */
        if (n > 0) {
            b += n;
            len -= (size_t)n;
        }
        if (len > 0)
            tf_turns(f, 2);
    }
}

/* The PDU on the wire: at most len + 64 bytes at out. */
static inline size_t
tf_encode(const struct tf_conn *i, uint8_t *out, uint8_t *bhs, const void *data, uint32_t len)
{
    uint8_t *p = out;
    put_be24(bhs + 5, len);
    memcpy(p, bhs, BHS_LEN);
    p += BHS_LEN;
    if (i->hd) {
        crc32c_final(crc32c_add(CRC32C_INIT, bhs, BHS_LEN), p);
        p += 4;
    }
    if (len == 0)
        return (size_t)(p - out);
    uint32_t padded = (len + 3) & ~3u;
    memset(p, 0, padded);
    memcpy(p, data, len);
    if (i->dd) {
        crc32c_final(crc32c_add(CRC32C_INIT, p, padded), p + padded);
        p += 4;
    }
    return (size_t)(p - out) + padded;
}

static inline void
tf_send(struct tf *f, struct tf_conn *i, uint8_t *bhs, const void *data, uint32_t len)
{
    uint8_t *out = xmalloc(len + 128);
    tf_raw(f, i, out, tf_encode(i, out, bhs, data, len));
    free(out);
    tf_turns(f, 3);
}

/* A request header with the connection's next ITT, and CmdSN. */
static inline uint32_t
tf_request(struct tf_conn *i, uint8_t *bhs, uint8_t opcode, bool immediate, uint8_t flags)
{
    memset(bhs, 0, BHS_LEN);
    bhs[0] = (uint8_t)(opcode | (immediate ? 0x40 : 0));
    bhs[1] = flags;
    put_be32(bhs + 16, i->itt++);
    put_be32(bhs + 20, TAG_RESERVED);
    put_be32(bhs + 24, immediate ? i->cmd_sn : i->cmd_sn++);
    return i->itt - 1;
}

static inline uint32_t
tf_cmd_bhs(struct tf_conn *i, uint8_t *bhs, unsigned flags, uint32_t edtl, const uint8_t cdb[16])
{
    uint32_t itt = tf_request(i, bhs, OPC_SCSI_CMD, (flags & TF_IMMEDIATE) != 0,
                              (uint8_t)(flags | ATTR_SIMPLE));
    put_be32(bhs + 20, edtl);
    memcpy(bhs + 32, cdb, 16);
    return itt;
}

static inline uint32_t
tf_cmd(struct tf *f, struct tf_conn *i, unsigned flags, uint32_t edtl, const uint8_t cdb[16],
       const void *data, uint32_t len)
{
    uint8_t bhs[BHS_LEN];
    uint32_t itt = tf_cmd_bhs(i, bhs, flags, edtl, cdb);
    tf_send(f, i, bhs, data, len);
    return itt;
}

static inline void
tf_data_out(struct tf *f, struct tf_conn *i, uint32_t itt, uint32_t ttt, uint32_t sn, uint32_t off,
            bool final, const void *data, uint32_t len)
{
    uint8_t bhs[BHS_LEN] = {OPC_DATA_OUT, final ? 0x80 : 0};
    put_be32(bhs + 16, itt);
    put_be32(bhs + 20, ttt);
    put_be32(bhs + 36, sn);
    put_be32(bhs + 40, off);
    tf_send(f, i, bhs, data, len);
}

static inline uint32_t
tf_tmf(struct tf *f, struct tf_conn *i, uint8_t function, bool immediate, uint32_t rtt,
       uint32_t ref_cmd_sn)
{
    uint8_t bhs[BHS_LEN];
    uint32_t itt = tf_request(i, bhs, OPC_TMF_REQ, immediate, (uint8_t)(0x80 | function));
    put_be32(bhs + 20, rtt);
    put_be32(bhs + 32, ref_cmd_sn);
    tf_send(f, i, bhs, NULL, 0);
    return itt;
}

static inline uint32_t
tf_ping(struct tf *f, struct tf_conn *i, bool immediate, const void *data, uint32_t len)
{
    uint8_t bhs[BHS_LEN];
    uint32_t itt = tf_request(i, bhs, OPC_NOP_OUT, immediate, 0x80);
    tf_send(f, i, bhs, data, len);
    return itt;
}

/* --- receiving ----------------------------------------------------------------------------------
 */

static inline void
tf_fill(struct tf_conn *i)
{
    while (i->in_len < sizeof i->in) {
        ssize_t n = recv(i->fd, i->in + i->in_len, sizeof i->in - i->in_len, 0);
        if (n > 0) {
            i->in_len += (size_t)n;
            continue;
        }
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            i->eof = true;
        return;
    }
}

/* Takes one whole PDU off the front of i->in; digests are asserted. */
static inline struct tf_pdu *
tf_take(struct tf_conn *i)
{
    uint32_t head = BHS_LEN + (i->hd ? 4 : 0);
    if (i->in_len < head)
        return NULL;
    uint32_t len = get_be24(i->in + 5), padded = (len + 3) & ~3u;
    uint32_t tail = padded + (i->dd && len ? 4 : 0);
    if (i->in_len < head + tail)
        return NULL;
    if (i->hd)
        CU_ASSERT_TRUE(crc32c_check(crc32c_add(CRC32C_INIT, i->in, BHS_LEN), i->in + BHS_LEN));
    if (i->dd && len)
        CU_ASSERT_TRUE(
            crc32c_check(crc32c_add(CRC32C_INIT, i->in + head, padded), i->in + head + padded));
    struct tf_pdu *p = xcalloc(1, sizeof *p + len);
    memcpy(p->bhs, i->in, BHS_LEN);
    p->data = (uint8_t *)(p + 1);
    memcpy(p->data, i->in + head, len);
    p->len = len;
    i->in_len -= head + tail;
    memmove(i->in, i->in + head + tail, i->in_len);
    return p;
}

/* The next PDU of the target (free it), or NULL when none comes within two seconds or the target
 * closed. */
static inline struct tf_pdu *
tf_recv(struct tf *f, struct tf_conn *i)
{
    for (int n = 0; n < 2000; n++) {
        struct tf_pdu *p = tf_take(i);
        if (p || i->eof)
            return p;
        tf_turns(f, 2);
        tf_fill(i);
        if (n > 50)
            usleep(1000);
    }
    return NULL;
}

/* True when nothing is said within some turns. */
static inline bool
tf_is_silent(struct tf *f, struct tf_conn *i)
{
    for (int n = 0; n < 20; n++) {
        tf_turns(f, 2);
        usleep(500);
    }
    tf_fill(i);
    return i->in_len == 0 && !i->eof;
}

static inline bool
tf_is_closed(struct tf *f, struct tf_conn *i)
{
    for (int n = 0; n < 200 && !i->eof; n++) {
        tf_turns(f, 2);
        tf_fill(i);
        usleep(500);
    }
    return i->eof;
}

/* Receives one PDU, asserts its opcode; free it. */
static inline struct tf_pdu *
tf_expect(struct tf *f, struct tf_conn *i, uint8_t opcode)
{
    struct tf_pdu *p = tf_recv(f, i);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    if (p->bhs[0] != opcode)
        fprintf(stderr, "opcode %02x, wanted %02x\n", p->bhs[0], opcode);
    CU_ASSERT_EQUAL_FATAL(p->bhs[0], opcode);
    return p;
}

/* Expects a SCSI Response for itt; its status, and the ASC with ASCQ of its sense. */
static inline uint8_t
tf_status(struct tf *f, struct tf_conn *i, uint32_t itt, uint16_t *asc)
{
    struct tf_pdu *p = tf_expect(f, i, OPC_SCSI_RSP);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 16), itt);
    uint8_t status = p->bhs[3];
    if (asc)
        *asc = p->len >= 16 ? get_be16(p->data + 14) : 0;
    free(p);
    return status;
}

static inline uint8_t
tf_tmf_answer(struct tf *f, struct tf_conn *i, uint32_t itt)
{
    struct tf_pdu *p = tf_expect(f, i, OPC_TMF_RSP);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 16), itt);
    uint8_t r = p->bhs[2];
    free(p);
    return r;
}

static inline uint8_t
tf_rejected(struct tf *f, struct tf_conn *i)
{
    struct tf_pdu *p = tf_expect(f, i, OPC_REJECT);
    CU_ASSERT_EQUAL(p->len, BHS_LEN);
    CU_ASSERT_EQUAL(p->bhs[1], 0x80);
    CU_ASSERT_EQUAL(get_be32(p->bhs + 16), TAG_RESERVED);
    uint8_t r = p->bhs[2];
    free(p);
    return r;
}

/* TEST UNIT READY until unit attentions are gone. */
static inline void
tf_ready(struct tf *f, struct tf_conn *i)
{
    for (int n = 0; n < 10; n++) {
        uint32_t itt = tf_cmd(f, i, TF_NODATA, 0, CDB(0), NULL, 0);
        if (tf_status(f, i, itt, NULL) == SAM_GOOD)
            return;
    }
    CU_FAIL("the unit does not become ready");
}

static inline void
tf_rw_cdb(uint8_t cdb[16], bool write, uint32_t lba, uint16_t nblk)
{
    memset(cdb, 0, 16);
    cdb[0] = write ? 0x2a : 0x28;
    put_be32(cdb + 2, lba);
    put_be16(cdb + 7, nblk);
}

/* Bytes that differ everywhere. */
static inline void
tf_pattern(uint8_t *p, size_t len, uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;
    for (size_t k = 0; k < len; k++) {
        x = x * 1664525u + 1013904223u;
        p[k] = (uint8_t)(x >> 24);
    }
}

/* Reads len bytes at byte offset off through the session and compares. */
static inline bool
tf_medium_is(struct tf *f, struct tf_conn *i, uint32_t lba, const uint8_t *want, uint32_t len)
{
    uint8_t cdb[16];
    uint32_t got = 0;
    bool same = true;
    tf_rw_cdb(cdb, false, lba, (uint16_t)(len / 512));
    tf_cmd(f, i, TF_READ, len, cdb, NULL, 0);
    while (got < len) {
        struct tf_pdu *p = tf_expect(f, i, OPC_DATA_IN);
        CU_ASSERT_EQUAL_FATAL(get_be32(p->bhs + 40), got);
        CU_ASSERT_FATAL(got + p->len <= len);
        same = same && memcmp(p->data, want + got, p->len) == 0;
        got += p->len;
        free(p);
    }
    return same;
}

#endif
