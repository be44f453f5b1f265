/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libFuzzer target: a whole login over a connection, from bytes to the session: the real receiver,
 * negotiation, CHAP, establishment and registry.
 *
 * Input: a byte of settings, then records: flags of the Login Request, a kind, two bytes of length,
 * that many bytes of text.  The kinds put in front what deep states need: the names of one of the
 * targets (open, with an account, with accounts both ways) or of discovery, an AuthMethod, the
 * right proof for the challenge that came last, a wrong one.  Whatever comes: answers are whole and
 * bounded; a session where an account is demanded stands only after a right proof of this
 * connection; and when the connection is gone nothing of it is left.
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
#include "base/clock.h"
#include "base/cur.h"
#include "base/helper.h"
#include "base/pool.h"
#include "target/account.h"
#include "target/chap.h"
#include "target/keys.h"
#include "target/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define OPEN      "iqn.2001-04.com.example:open"
#define GUARDED   "iqn.2001-04.com.example:guarded"
#define MUTUAL    "iqn.2001-04.com.example:mutual"
#define INITIATOR "iqn.2001-04.com.example:i"
#define USER      "somebody"

enum setting { SET_DISCOVERY_ACCOUNT = 1, SET_RAW = 2, SET_SPLIT = 4 };

enum kind {
    K_TEXT,
    K_OPEN,
    K_GUARDED,
    K_MUTUAL,
    K_DISCOVERY,
    K_METHOD, /* AuthMethod=CHAP */
    K_ALGS,   /* CHAP_A=5,6,7,8 */
    K_PROOF,
    K_WRONG,
    K_WAIT, /* time passes: answers may be held back */
    K_COUNT
};

static struct worker *w;
static struct tgt_node nodes[3], *sorted[3];
static struct node_set *set;
static struct account_set *discovery;
static struct secret *secret;
static struct {
    int fd;
    uint8_t in[1 << 18];
    size_t len;
    char text[16384]; /* of the last response, NULs and all */
    size_t text_len;
    uint32_t cmd_sn, exp_stat_sn;
    bool closed, proved, in_session, refused;
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

/* --- set up ----------------------------------------------------------------------------------- */

static struct account_set *
accounts(bool both_ways)
{
    char err[128];
    struct account *in = account_new(USER, secret, NULL, err, sizeof err), *out = NULL;
    struct secret *own = secret_new("the target's own secret", 23);
    if (both_ways)
        out = account_new("target", own, NULL, err, sizeof err);
    check(in != NULL && (out != NULL) == both_ways);
    struct account_set *s = account_set_new(&in, 1, out, chap_algs_here(), false);
    account_put(in);
    account_put(out);
    secret_put(own);
    return s;
}

static void
add_node(unsigned i, const char *name, struct account_set *s)
{
    static const char *const all[] = {"ALL", NULL};
    char err[128];
    struct tgt_node *n = &nodes[i];
    ref_init(&n->ref);
    snprintf(n->name, sizeof n->name, "%s", name);
    n->tid = i + 1;
    n->nop_interval_s = n->nop_count = 0xffffffff;
    n->max_cmds = 16;
    n->map = lun_map_new(NULL, 0);
    n->acl = acl_new(all, NULL, err, sizeof err, NULL, 0);
    check(n->acl != NULL);
    keys_defaults(&n->keys);
    n->accounts = s;
    sorted[i] = n;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    log_open("fuzz_login", true); /* stderr is libFuzzer's */
    check(helper_pool_start(1, 2) == 0);
    clock_fake_set(1000000);
    w = worker_new_local(&(struct worker_opts){.engine = ENGINE_POOL});
    check(w != NULL);
    tgt_worker_init(w);
    secret = secret_new("a secret of 16 b", 16);
    check(secret != NULL);
    add_node(0, GUARDED, accounts(false)); /* sorted by name */
    add_node(1, MUTUAL, accounts(true));
    add_node(2, OPEN, NULL);
    discovery = accounts(false);
    set = xcalloc(1, sizeof *set);
    ref_init(&set->ref);
    set->n = 3;
    set->nodes = sorted;
    tgt_here()->nodes = set;
    return 0;
}

/* --- the initiator's side --------------------------------------------------------------------- */

static const char *
value(const char *key)
{
    size_t klen = strlen(key);
    for (size_t i = 0; i < peer.text_len;) {
        const char *pair = peer.text + i;
        size_t n = strnlen(pair, peer.text_len - i);
        if (n == peer.text_len - i)
            return NULL;
        if (n > klen && memcmp(pair, key, klen) == 0 && pair[klen] == '=')
            return pair + klen + 1;
        i += n + 1;
    }
    return NULL;
}

static void
see(const uint8_t *bhs, const uint8_t *text, uint32_t len)
{
    if (bhs[0] != OPC_LOGIN_RSP)
        return;
    check(len <= 8192);
    check(!(bhs[1] & 0x40) || !(bhs[1] & 0x80)); /* C excludes T */
    check(len == 0 || (bhs[1] & 0x40) || text[len - 1] == 0);
    peer.refused = bhs[36] != 0;
    check(!peer.refused || (bhs[36] >= 1 && bhs[36] <= 3));
    peer.cmd_sn = get_be32(bhs + 28);
    peer.exp_stat_sn = get_be32(bhs + 24) + 1;
    if (len != 0) {
        memcpy(peer.text, text, len);
        peer.text_len = len;
    }
    if (!peer.refused && (bhs[1] & 0x83) == 0x83)
        peer.in_session = true;
}

static void
hear(void)
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
            if (!peer.in_session) /* digests may come after it */
                see(peer.in + pos, peer.in + pos + BHS_LEN, len);
            pos += whole;
        }
        memmove(peer.in, peer.in + pos, peer.len - pos);
        peer.len -= pos;
    }
}

static void
say(const uint8_t *p, size_t len, bool split)
{
    while (len > 0 && !peer.closed) {
        size_t k = split && len > 7 ? 7 : len;
        ssize_t n = send(peer.fd, p, k, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            return;
        if (n > 0) {
            p += n;
            len -= (size_t)n;
        }
        turns(1);
    }
    turns(3);
    hear();
}

/* CHAP_N and CHAP_R for the challenge in the last response; its length. A right one counts. */
static size_t
proof(char *out, size_t size, bool right)
{
    static const uint32_t algs[] = {CHAP_ALG_MD5, CHAP_ALG_SHA1, CHAP_ALG_SHA256,
                                    CHAP_ALG_SHA3_256};
    const char *a = value("CHAP_A"), *i = value("CHAP_I"), *c = value("CHAP_C");
    uint8_t challenge[CHAP_CHALLENGE_MAX], digest[CHAP_DIGEST_MAX];
    char hex[2 * CHAP_DIGEST_MAX + 3];
    if (!a || !i || !c || a[0] < '5' || a[0] > '8')
        return 0;
    ssize_t n = chap_decode(c, challenge, sizeof challenge);
    check(n == (ssize_t)CHAP_CHALLENGE_LEN);
    uint32_t alg = algs[a[0] - '5'];
    check(chap_digest(alg, (uint8_t)strtoul(i, NULL, 10), secret, challenge, (size_t)n, digest));
    if (!right)
        digest[0] ^= 1;
    chap_encode(digest, chap_digest_len(alg), hex);
    peer.proved = peer.proved || right;
    return (size_t)snprintf(out, size, "CHAP_N=%s%cCHAP_R=%s", USER, 0, hex) + 1;
}

static size_t
prefix(uint8_t kind, char *out, size_t size)
{
    static const char *const target[K_COUNT] = {
        [K_OPEN] = OPEN, [K_GUARDED] = GUARDED, [K_MUTUAL] = MUTUAL};
    if (kind == K_DISCOVERY)
        return (size_t)snprintf(out, size, "InitiatorName=%s%cSessionType=Discovery", INITIATOR,
                                0) +
               1;
    if (kind < K_COUNT && target[kind] != NULL)
        return (size_t)snprintf(out, size, "InitiatorName=%s%cTargetName=%s", INITIATOR, 0,
                                target[kind]) +
               1;
    if (kind == K_METHOD)
        return (size_t)snprintf(out, size, "AuthMethod=CHAP") + 1;
    if (kind == K_ALGS)
        return (size_t)snprintf(out, size, "CHAP_A=5,6,7,8") + 1;
    if (kind == K_PROOF || kind == K_WRONG)
        return proof(out, size, kind == K_PROOF);
    return 0;
}

static void
login_request(uint8_t flags, uint8_t kind, const uint8_t *rec, size_t n, uint8_t how)
{
    static uint8_t out[BHS_LEN + 16384];
    size_t len = prefix(kind, (char *)out + BHS_LEN, 1024);
    if (n > 8192)
        n = 8192;
    if (n != 0)
        memcpy(out + BHS_LEN + len, rec, n);
    len += n;
    memset(out, 0, BHS_LEN);
    out[0] = 0x40 | OPC_LOGIN_REQ;
    out[1] = flags;
    put_be24(out + 5, (uint32_t)len);
    out[8] = 0x80;
    out[13] = 1;
    put_be32(out + 16, 1);
    put_be32(out + 24, peer.cmd_sn);
    put_be32(out + 28, peer.exp_stat_sn);
    memset(out + BHS_LEN + len, 0, (4 - len % 4) % 4);
    say(out, BHS_LEN + ((len + 3) & ~(size_t)3), how & SET_SPLIT);
}

static void
sessions_are_proved(uint8_t how)
{
    list_each(it, &tgt_here()->sessions) {
        const struct sess *s = container_of(it, struct sess, on_worker);
        bool demanded = s->node != NULL ? s->node->accounts != NULL : how & SET_DISCOVERY_ACCOUNT;
        check(!demanded || peer.proved);
        check(s->discovery == (s->node == NULL));
        check(strcmp(s->initiator, "") != 0);
    }
}

static void
pass(unsigned ms)
{
    clock_fake_advance((uint64_t)ms * 1000);
    turns(4);
    hear();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int sv[2];
    struct cur in = cur_init(data, size);
    uint8_t how = cur_u8(&in);
    struct sockaddr_storage addr = {.ss_family = AF_INET};

    peer.len = peer.text_len = 0;
    peer.cmd_sn = 1;
    peer.exp_stat_sn = 0;
    peer.closed = peer.proved = peer.in_session = peer.refused = false;
    set->discovery = how & SET_DISCOVERY_ACCOUNT ? discovery : NULL;
    chap_slow_reset();
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, sv) == 0);
    check(fcntl(sv[0], F_SETFL, O_NONBLOCK) == 0);
    peer.fd = sv[0];
    conn_accept(w, sv[1], &(struct conn_from){.peer = addr, .local = addr, .via.tpgt = 1});
    while (in.left >= 4 && !peer.closed) {
        uint8_t flags = cur_u8(&in), kind = cur_u8(&in) % K_COUNT;
        size_t n = cur_be16(&in);
        if (n > in.left)
            n = in.left;
        const uint8_t *rec = cur_take(&in, n);
        if (kind == K_WAIT)
            pass(flags * 20u);
        else if ((how & SET_RAW) && kind == K_TEXT)
            say(rec, n, how & SET_SPLIT);
        else
            login_request(flags, kind, rec, n, how);
        sessions_are_proved(how);
    }
    close(peer.fd);
    for (int k = 0; k < 10000 && tgt_here()->nconns > 0; k++) {
        if (k > 20)
            clock_fake_advance(100000);
        turns(1);
    }
    turns(20);
    check(tgt_here()->nconns == 0 && tgt_here()->nsessions == 0);
    check(registry_count() == 0 && half_count() == 0);
    for (unsigned i = 0; i < 3; i++)
        check(atomic_load(&nodes[i].ref.n) == 1);
    return 0;
}
