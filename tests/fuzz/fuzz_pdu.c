/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: PDUs through login and full feature phase to a real session on a null backend.
 *
 * Input: a byte of settings, then records: two bytes of length and that many bytes.  Raw: a record
 * is sent as it is.  Else it is a PDU: 48 bytes of header (short: zeros) and data; the length field
 * is set right, CmdSN is taken as an offset from what is expected, tags come from a small range or
 * are the last R2T's, so that deep states are reached.  Whatever comes: numbers of the answers are
 * in step, lengths within what was agreed, and when the connection is gone nothing of it is left.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cur.h"
#include "base/helper.h"
#include "base/pool.h"
#include "base/serial.h"
#include "target/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

enum setting {
    SET_RAW = 1,
    SET_LOGIN = 2, /* the stream begins with a login; else in full feature phase */
    SET_R2T = 4,   /* InitialR2T=Yes */
    SET_DISCOVERY = 8,
    SET_SMALL = 16, /* small bursts, many R2Ts */
    SET_DIGEST = 32,
};

static struct worker *w;
static struct tgt_node *node;
static struct {
    int fd;
    uint8_t in[1 << 20];
    size_t len;
    uint32_t stat_sn, exp_cmd_sn, ttt;
    bool counting, closed;
    uint32_t max_xmit;
} peer;

static void
check(bool ok)
{
    if (!ok)
        abort();
}

static void
turns(int n)
{
    for (int k = 0; k < n; k++)
        worker_turn(w, false);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    char err[128];
    log_open("fuzz_pdu", true); /* stderr is libFuzzer's */
    check(helper_pool_start(1, 2) == 0);
    w = worker_new_local(&(struct worker_opts){.engine = ENGINE_POOL});
    check(w != NULL);
    tgt_worker_init(w);
    struct be_opts bo = {
        .type = "null", .block_size = 512, .write_cache = true, .null_size = 8 << 20};
    struct backend *be = be_new(&bo, err, sizeof err);
    check(be && be_open(be) == 0);
    struct lun_conf lc = {.vendor_id = "EVTGT",
                          .product_id = "VIRTUAL-DISK",
                          .product_rev = "0001",
                          .block_size = 512,
                          .write_cache = true,
                          .online = true};
    lun_ident_default(&lc.ident, (const uint8_t[32]){1}, be_identity(be));
    struct lun *lun = lun_new(&lc, be, err, sizeof err);
    check(lun != NULL);
    node = xcalloc(1, sizeof *node);
    ref_init(&node->ref);
    snprintf(node->name, sizeof node->name, "iqn.2001-04.com.example:a");
    node->tid = 1;
    node->nop_interval_s = node->nop_count = 0xffffffff;
    node->max_cmds = 16;
    node->map = lun_map_new(&(struct lun_map_entry){0, lun}, 1);
    node->acl = acl_new((const char *const[]){"ALL", NULL}, NULL, err, sizeof err, NULL, 0);
    check(node->acl != NULL);
    keys_defaults(&node->keys);
    struct node_set *set = xcalloc(1, sizeof *set);
    ref_init(&set->ref);
    set->n = 1;
    set->nodes = xcalloc(1, sizeof *set->nodes);
    set->nodes[0] = node;
    tgt_here()->nodes = set;
    return 0;
}

/* --- what the target says
 * ---------------------------------------------------------------------------- */

static void
check_pdu(const uint8_t *bhs, uint32_t len)
{
    uint8_t opcode = bhs[0];
    bool takes = opcode != OPC_R2T && !(opcode == OPC_DATA_IN && !(bhs[1] & 1)) &&
                 !(opcode == OPC_NOP_IN && get_be32(bhs + 16) == TAG_RESERVED);
    uint32_t exp = get_be32(bhs + 28), max = get_be32(bhs + 32);
    check(opcode >= 0x20 && opcode <= 0x3f);
    check(len <= (peer.max_xmit > 8192 ? peer.max_xmit : 8192));
    if (opcode == OPC_DATA_IN && !takes)
        check(get_be32(bhs + 24) == 0);
    else if (peer.counting)
        check(get_be32(bhs + 24) == peer.stat_sn);
    if (takes) {
        peer.counting = true;
        peer.stat_sn = get_be32(bhs + 24) + 1;
    }
    if (opcode == OPC_LOGIN_RSP)
        return;
    check(sn_le(exp - 1, max) && max - (exp - 1) <= 256);
    check(!sn_lt(exp, peer.exp_cmd_sn) || peer.exp_cmd_sn == 0);
    peer.exp_cmd_sn = exp;
    if (opcode == OPC_R2T)
        peer.ttt = get_be32(bhs + 20);
}

static void
listen_to_it(void)
{
    for (;;) {
        ssize_t n = recv(peer.fd, peer.in + peer.len, sizeof peer.in - peer.len, 0);
        if (n <= 0) {
            peer.closed = n == 0 || (errno != EAGAIN && errno != EINTR);
            return;
        }
        peer.len += (size_t)n;
        size_t pos = 0;
        while (peer.len - pos >= BHS_LEN) {
            uint32_t len = get_be24(peer.in + pos + 5);
            size_t whole = BHS_LEN + ((len + 3) & ~3u);
            check(whole <= sizeof peer.in);
            if (peer.len - pos < whole)
                break;
            check_pdu(peer.in + pos, len);
            pos += whole;
        }
        memmove(peer.in, peer.in + pos, peer.len - pos);
        peer.len -= pos;
    }
}

static void
say(const uint8_t *p, size_t len, bool digests)
{
    while (len > 0 && !peer.closed) {
        ssize_t n = send(peer.fd, p, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return;
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
        turns(2);
        if (!digests)
            listen_to_it();
    }
}

/* --- one input
 * ------------------------------------------------------------------------------------------ */

static void
full_feature(struct conn *c, uint8_t set)
{
    struct registry_claim claim;
    struct login_result res = {.cmd_sn = 1, .discovery = set & SET_DISCOVERY};
    snprintf(res.initiator, sizeof res.initiator, "iqn.2001-04.com.example:i");
    res.node = res.discovery ? NULL : node;
    res.sp = (struct sess_params){.max_burst = set & SET_SMALL ? 512 : 65536,
                                  .first_burst = set & SET_SMALL ? 512 : 8192,
                                  .max_r2t = set & SET_SMALL ? 16 : 1,
                                  .max_connections = 1,
                                  .initial_r2t = set & SET_R2T,
                                  .immediate_data = true,
                                  .data_pdu_in_order = true,
                                  .data_seq_in_order = true};
    res.cp = (struct conn_params){.max_recv = 65536,
                                  .max_xmit = set & SET_SMALL ? 512 : 65536,
                                  .header_digest = set & SET_DIGEST,
                                  .data_digest = set & SET_DIGEST};
    check(registry_claim(&res, w, &claim) == LS_OK);
    check(!claim.old_w && registry_commit(claim.entry));
    sess_attach(sess_new(w, &res, &claim), c, &res);
    conn_event(c, CE_LOGIN_PDU);
    conn_event(c, CE_LOGGED_IN);
    peer.max_xmit = res.cp.max_xmit;
    peer.exp_cmd_sn = 1;
}

static void
send_pdu(const uint8_t *rec, size_t len, uint8_t set)
{
    uint8_t out[BHS_LEN + 8192 + 4] = {0};
    size_t head = len < BHS_LEN ? len : BHS_LEN;
    memcpy(out, rec, head);
    size_t data = len - head < 8192 ? len - head : 8192;
    if (data > 0)
        memcpy(out + BHS_LEN, rec + head, data);
    size_t ahs = (size_t)(out[4] & 15) * 4; /* a part of the data is its AHS */
    if (ahs > data)
        ahs = data & ~3ul;
    out[4] = (uint8_t)(ahs / 4);
    put_be24(out + 5, (uint32_t)(data - ahs));
    if (!(set & SET_LOGIN) || (out[0] & 0x3f) != OPC_LOGIN_REQ) {
        put_be32(out + 16, out[16] == 0xff ? TAG_RESERVED : out[16] & 7u);
        put_be32(out + 24, peer.exp_cmd_sn + (uint32_t)(int8_t)out[24]);
        if ((out[0] & 0x3f) == OPC_DATA_OUT)
            put_be32(out + 20, out[20] & 1 ? peer.ttt : TAG_RESERVED);
        if ((out[0] & 0x3f) == OPC_TMF_REQ) {
            put_be32(out + 20, out[20] & 7u);
            put_be32(out + 32, peer.exp_cmd_sn + (uint32_t)(int8_t)out[32]);
        }
    }
    say(out, BHS_LEN + ((data + 3) & ~3ul), set & SET_DIGEST);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int sv[2];
    struct cur cu = cur_init(data, size);
    uint8_t set = cur_u8(&cu);
    peer.len = 0;
    peer.stat_sn = peer.exp_cmd_sn = peer.ttt = 0;
    peer.counting = peer.closed = false;
    peer.max_xmit = 0xffffff;
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
    check(fcntl(sv[0], F_SETFL, O_NONBLOCK) == 0);
    peer.fd = sv[0];
    struct conn_from from = {.peer.ss_family = AF_INET, .local.ss_family = AF_INET};
    conn_accept(w, sv[1], &from);
    if (!(set & SET_LOGIN))
        full_feature(list_first(&tgt_here()->conns, struct conn, on_worker), set);
    while (cu.left >= 2 && !peer.closed) {
        size_t len = cur_be16(&cu);
        if (len > cu.left)
            len = cu.left;
        const uint8_t *rec = cur_take(&cu, len);
        if (set & SET_RAW)
            say(rec, len, set & SET_DIGEST);
        else
            send_pdu(rec, len, set);
        turns(3);
        if (!(set & SET_DIGEST))
            listen_to_it();
    }
    close(peer.fd);
    for (int k = 0; k < 10000 && tgt_here()->nconns > 0; k++)
        turns(1);
    turns(20);
    check(tgt_here()->nconns == 0 && tgt_here()->nsessions == 0);
    check(list_is_empty(&tgt_here()->conns) && list_is_empty(&tgt_here()->sessions));
    check(pool_in_use(tgt_here()->tasks) == 0 && pool_in_use(tgt_here()->txitems) == 0);
    check(tgt_here()->retained == 0 && registry_count() == 0 && half_count() == 0);
    return 0;
}
