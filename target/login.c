/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The login phase (RFC 7143 6.3, 11.12, 11.13): from the first Login Request to the final response
 * or the refusal.  Called by conn.c for each Login Request, by sess.c when a session stands; on
 * the connection's worker.
 *
 * The stages are a table (rows[]); what is not in it is an initiator error.  Text is judged only
 * when it is complete (C bit); answers longer than one PDU go out in pieces.  After a refusal the
 * target closes the connection itself.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/pool.h"
#include "target/account.h"
#include "target/auth.h"
#include "target/chap.h"
#include "target/redirect.h"
#include "target/target.h"

#define LOGIN_T    0x80u
#define LOGIN_C    0x40u
#define LOGIN_DSL  8192u /* bytes of text in one login PDU, both ways (RFC 7143 13.12) */
#define ROUNDS_MAX 256u  /* requests in one login */

#define CSG(flags) ((unsigned)(flags) >> 2 & 3u)
#define NSG(flags) ((unsigned)(flags)&3u)
#define NSG_FFP    3u

/* Bits, so that a row can name a set. */
enum login_stage {
    LG_START = 1,
    LG_SECURITY = 2,
    LG_OPERATIONAL = 4,
    LG_ESTABLISHING = 8, /* sess.c has it; nothing is read */
    LG_OVER = 16,        /* refused; the connection is closing */
    LG_ASKING = 32,      /* a program is asked about redirection; nothing is read */
};

struct stage_row {
    uint8_t from; /* set of enum login_stage */
    uint8_t csg;
    bool transit; /* T bit */
    uint8_t nsg;  /* with T */
    uint8_t to;   /* stage in which the request's text is negotiated */
};

/* RFC 7143 11.12.3: 0 -> 1, 0 -> 3, 1 -> 3, or staying; a login may begin in 0 or 1. */
static const struct stage_row rows[] = {
    {LG_START | LG_SECURITY, 0, false, 0, LG_SECURITY},
    {LG_START | LG_SECURITY, 0, true, 1, LG_SECURITY},
    {LG_START | LG_SECURITY, 0, true, NSG_FFP, LG_SECURITY},
    {LG_START | LG_OPERATIONAL, 1, false, 0, LG_OPERATIONAL},
    {LG_START | LG_OPERATIONAL, 1, true, NSG_FFP, LG_OPERATIONAL},
};

struct login {
    struct conn *conn;
    uint8_t stage; /* enum login_stage */
    bool named;    /* the first text was read: who, what, which target */
    bool joining;  /* a text with the C bit is incomplete */
    unsigned rounds;
    uint32_t in_total; /* bytes of text received in this login */
    uint8_t *in;       /* pieces of an incomplete text */
    uint32_t in_len;
    struct text_out out; /* answers; [out_pos, len) not yet sent */
    size_t out_pos;
    uint8_t flags; /* of the request being answered */
    uint32_t itt;
    struct nego nego;
    struct auth auth;
    bool answered; /* the program about redirection has: `redirect` is its word */
    struct redirect_answer redirect;
    uint8_t *kept; /* the first text, while it is asked */
    size_t kept_len;
    struct worker_timer held;      /* the judgement of a proof is held back */
    enum login_status held_status; /* then this is answered */
    char asked[64];                /* TargetName as sent, cut: for the log */
    struct login_result res;       /* names, tags and, at the end, what was agreed */
};

static enum auth_step
auth_none_step(struct auth *a, struct text_out *out)
{
    (void)a;
    (void)out;
    return AUTH_DONE;
}

static const struct auth_method none_method = {AUTH_NONE, auth_none_step, NULL};
static const struct auth_method *const auth_methods[] = {&none_method, &chap_method};

static void on_held(struct worker_timer *t);

/* --- begin and end --------------------------------------------------------------------------- */

static struct login *
login_new(struct conn *c, const struct pdu *pdu)
{
    struct login *l = xcalloc(1, sizeof *l);
    struct key_values ours;
    keys_defaults(&ours);
    nego_init(&l->nego, &ours, KP_SECURITY);
    l->stage = LG_START;
    l->out.limit = tgt_opts.login_bytes_max;
    l->auth.nego = &l->nego;
    l->auth.initiator = l->res.initiator;
    l->conn = c;
    worker_timer_init(&l->held, c->w, on_held);
    memcpy(l->res.isid, pdu->lun, sizeof l->res.isid);
    l->res.tsih = get_be16(pdu->lun + 6);
    l->res.tpgt = c->via.tpgt;
    l->res.cid = (uint16_t)(pdu->ttt >> 16);
    l->res.cmd_sn = pdu->cmd_sn;
    c->login = l;
    c->cid = l->res.cid;
    return l;
}

void
login_free(struct conn *c)
{
    struct login *l = c->login;
    if (l == NULL)
        return;
    worker_assert_owner(c->w);
    c->login = NULL;
    if (l->auth.method != NULL && l->auth.method->free != NULL)
        l->auth.method->free(&l->auth);
    worker_timer_stop(&l->held);
    if (l->stage & LG_ASKING)
        redirect_forget(c);
    account_put(l->auth.account);
    account_set_put(l->auth.accounts);
    if (l->res.node != NULL)
        node_put(l->res.node);
    text_out_free(&l->out);
    free(l->in);
    free(l->kept);
    free(l);
}

/* --- responses ------------------------------------------------------------------------------- */

static void
send_response(struct conn *c, uint8_t flags, enum login_status status, uint16_t tsih,
              const uint8_t *text, uint32_t len)
{
    const struct login *l = c->login;
    uint8_t bhs[BHS_LEN] = {OPC_LOGIN_RSP, flags}; /* Version-max and -active are 0 */
    memcpy(bhs + 8, l->res.isid, sizeof l->res.isid);
    put_be16(bhs + 14, tsih);
    put_be32(bhs + 16, l->itt);
    put_be32(bhs + 28, l->res.cmd_sn); /* a login takes no number (11.13.4) */
    put_be32(bhs + 32, l->res.cmd_sn);
    put_be16(bhs + 36, (uint16_t)status);
    conn_stamp(c, bhs, true);
    tx_pdu(c, bhs, text, len, NULL, NULL);
}

static const char *
status_text(enum login_status status)
{
    static const struct {
        enum login_status status;
        const char *text;
    } texts[] = {
        {LS_MOVED_TEMP, "moved temporarily"},
        {LS_MOVED_PERM, "moved permanently"},
        {LS_INITIATOR_ERROR, "initiator error"},
        {LS_AUTH_FAILURE, "authentication failure"},
        {LS_AUTHORIZATION, "not allowed"},
        {LS_NOT_FOUND, "not found"},
        {LS_VERSION, "unsupported version"},
        {LS_TOO_MANY_CONNS, "too many connections"},
        {LS_MISSING_PARAMETER, "missing parameter"},
        {LS_CANT_INCLUDE, "cannot join that session"},
        {LS_SESSION_TYPE, "unsupported session type"},
        {LS_NO_SESSION, "no such session"},
        {LS_INVALID_REQUEST, "invalid during login"},
        {LS_TARGET_ERROR, "target error"},
        {LS_UNAVAILABLE, "service unavailable"},
        {LS_NO_RESOURCES, "out of resources"},
    };
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (texts[i].status == status)
            return texts[i].text;
    }
    return "refused";
}

/* Says why, so that an administrator sees key, offer and policy without a trace (one rate for
 * all connections of the worker: a peer can make as many as it likes). */
static void
log_refusal(const struct conn *c, enum login_status status, const char *why)
{
    static _Thread_local struct log_rate rate;
    const struct login *l = c->login;
    uint32_t suppressed = 0;
    if (!log_rate_ok(&rate, &suppressed))
        return;
    char key[192] = "", user[160] = "", more[32] = "";
    const char *no_name = l->res.discovery ? "(discovery)" : "-";
    if (suppressed != 0)
        (void)snprintf(more, sizeof more, " suppressed=%" PRIu32, suppressed);
    if (l->auth.user[0] != '\0')
        (void)snprintf(user, sizeof user, " user=%.140s", LOG_ESC(l->auth.user));
    if (l->nego.why == why && l->nego.bad != KEY_COUNT) {
        char ours[64];
        keys_value_text(l->nego.bad, l->nego.ours.v[l->nego.bad], ours, sizeof ours);
        (void)snprintf(key, sizeof key, " key=%s offered=%.80s here=%s",
                       keys_def(l->nego.bad)->name, LOG_ESC(l->nego.bad_value), ours);
    }
    log_event(
        LL_WARN, LA_LOGIN,
        "login-refused peer=%s initiator=%s target=%s%s status=%04x meaning=\"%s\" why=\"%s\"%s%s",
        c->peer_text, l->res.initiator[0] ? LOG_ESC(l->res.initiator) : "-",
        l->asked[0] ? LOG_ESC(l->asked) : no_name, user, (unsigned)status, status_text(status), why,
        key, more);
}

/* "All of the redirection Status-Class responses MUST return one or more text key parameters of
 * the type TargetAddress" (11.13.5); the session that may be there is not touched. */
static enum verdict
redirect(struct conn *c)
{
    struct login *l = c->login;
    struct text_out out = {.limit = LOGIN_DSL};
    counter_add(CT_LOGIN_MOVED, 1);
    log_event(LL_INFO, LA_LOGIN, "login-redirected peer=%s initiator=%s target=%s to=%s why=\"%s\"",
              c->peer_text, LOG_ESC(l->res.initiator), LOG_ESC(l->asked), l->redirect.to,
              l->redirect.why);
    text_put(&out, keys_def(KEY_TARGET_ADDRESS)->name, l->redirect.to);
    send_response(c, 0, l->redirect.status, l->res.tsih, out.p, (uint32_t)out.len);
    text_out_free(&out);
    l->stage = LG_OVER;
    conn_close(c, "login redirected", true);
    return KEEP;
}

static enum verdict
refuse(struct conn *c, enum login_status status, const char *why)
{
    struct login *l = c->login;
    if (status == LS_MOVED_TEMP || status == LS_MOVED_PERM)
        return redirect(c);
    counter_add(CT_LOGIN_FAILED, 1);
    log_refusal(c, status, why);
    /* T, C and the stages are reserved when a login fails (11.13.5). */
    send_response(c, 0, status, l->res.tsih, NULL, 0);
    l->stage = LG_OVER;
    conn_close(c, "login refused", true);
    return KEEP;
}

/* --- names ----------------------------------------------------------------------------------- */

/* LS_OK: here. */
static enum login_status
where_to(struct conn *c, const struct tgt_node *node)
{
    struct login *l = c->login;
    struct redirect_answer a;
    redirect_decide(c, node, l->res.initiator, &a);
    if (a.status != LS_ASKING)
        l->redirect = a; /* also when the program was asked: things have changed meanwhile */
    else if (!l->answered)
        return LS_ASKING;
    return l->redirect.status;
}

/* Which target, and may this initiator have it (RFC 7143 13.4, 11.13.5). */
static enum login_status
find_target(struct conn *c, const char **why)
{
    struct login *l = c->login;
    const char *asked = nego_offered(&l->nego, KEY_TARGET_NAME);
    char name[ISCSI_NAME_MAX + 1];
    *why = "no TargetName in a normal session";
    if (asked == NULL)
        return LS_MISSING_PARAMETER;
    (void)snprintf(l->asked, sizeof l->asked, "%s", asked);
    if (name_fold(asked, strlen(asked), name, why) != 0)
        return LS_NOT_FOUND;
    struct tgt_node *node = node_find(node_set_here(), name);
    *why = "no target of that name";
    if (node == NULL)
        return LS_NOT_FOUND;
    *why = "the target is not bound to this portal";
    if (!node_serves(node, &c->via))
        return LS_NOT_FOUND;
    if (l->res.node != NULL)
        node_put(l->res.node); /* it was looked for before, and a program was asked */
    l->res.node = node_get(node);
    l->auth.node = node;
    l->nego.ours = node->keys;
    *why = "the target is not at this address of ours";
    if (!acl_is_at(node->acl, (const struct sockaddr *)&c->local))
        return LS_NOT_FOUND;
    *why = "not admitted by the target's access list or discovery domains";
    if (!node_admits(node, (const struct sockaddr *)&c->peer, l->res.initiator))
        return LS_AUTHORIZATION;
    /* Before authentication, as 11.13.5 allows; and only who would be admitted hears an address. */
    enum login_status moved = where_to(c, node);
    *why = l->redirect.why;
    if (moved != LS_OK)
        return moved;
    *why = "target is offline";
    return node->offline ? LS_UNAVAILABLE : LS_OK;
}

/* Where there are accounts, CHAP is the only method; no other way leads into the target. */
static void
choose_auth(struct login *l)
{
    const struct tgt_node *node = l->res.node;
    l->auth.accounts = account_set_get(node ? node->accounts : node_set_here()->discovery);
    l->nego.ours.v[KEY_AUTH_METHOD] = account_set_demands(l->auth.accounts) ? AUTH_CHAP : AUTH_NONE;
}

/* The first complete text says who logs in to what (RFC 7143 6.3.1). */
static enum login_status
read_names(struct conn *c, const char **why)
{
    struct login *l = c->login;
    const char *initiator = nego_offered(&l->nego, KEY_INITIATOR_NAME);
    const char *type = nego_offered(&l->nego, KEY_SESSION_TYPE);
    *why = "no InitiatorName";
    if (initiator == NULL)
        return LS_MISSING_PARAMETER;
    if (name_fold(initiator, strlen(initiator), l->res.initiator, why) != 0)
        return LS_INITIATOR_ERROR;
    if (type != NULL) {
        uint32_t word = keys_word(keys_def(KEY_SESSION_TYPE), type, strlen(type));
        *why = "session type is neither Normal nor Discovery";
        if (word == 0)
            return LS_SESSION_TYPE;
        l->res.discovery = word == SESSION_DISCOVERY;
    }
    l->nego.discovery = l->res.discovery;
    l->nego.leading = l->res.tsih == 0;
    enum login_status status = l->res.discovery ? LS_OK : find_target(c, why);
    if (status != LS_ASKING)
        choose_auth(l);
    return status;
}

/* What the target says of itself in the first response (RFC 7143 13.6, 13.9). */
static void
introduce(struct login *l)
{
    if (l->res.node == NULL)
        return;
    text_put_num(&l->out, keys_def(KEY_TARGET_PORTAL_GROUP_TAG)->name, l->res.tpgt);
    if (l->res.node->alias[0] != '\0')
        text_put(&l->out, keys_def(KEY_TARGET_ALIAS)->name, l->res.node->alias);
}

static void
note_alias(struct login *l)
{
    const char *alias = nego_offered(&l->nego, KEY_INITIATOR_ALIAS);
    if (alias != NULL && strlen(alias) < sizeof l->res.initiator_alias)
        (void)snprintf(l->res.initiator_alias, sizeof l->res.initiator_alias, "%s", alias);
}

/* --- authentication -------------------------------------------------------------------------- */

/* Runs the agreed method's next step. Without an AuthMethod key the method is None, which must
 * be one that this target accepts (RFC 7143 6.3.2). `leaving`: the initiator wants out of the stage
 * or began beyond it. */
static enum login_status
authenticate(struct login *l, bool leaving, const char **why)
{
    struct auth *a = &l->auth;
    bool keys = false;
    for (unsigned i = 0; i < KEY_COUNT; i++)
        keys = keys || (keys_def((enum key_id)i)->rule == KR_AUTH && l->nego.offer[i] != NULL);
    *why = "a key of an authentication that is over or was not agreed";
    if (keys && (a->done || l->nego.v[KEY_AUTH_METHOD] == AUTH_NONE))
        return LS_INITIATOR_ERROR;
    if (a->done || (a->method == NULL && !leaving && !(l->nego.state[KEY_AUTH_METHOD] & NS_AGREED)))
        return LS_OK;
    uint32_t bit = l->nego.v[KEY_AUTH_METHOD];
    *why = "authentication is demanded and was not offered";
    if (!(bit & l->nego.ours.v[KEY_AUTH_METHOD]))
        return LS_AUTH_FAILURE;
    for (unsigned i = 0; i < sizeof auth_methods / sizeof auth_methods[0]; i++) {
        if (auth_methods[i]->bit == bit)
            a->method = auth_methods[i];
    }
    if (a->method == NULL)
        return LS_AUTH_FAILURE;
    enum auth_step step = a->method->step(a, &l->out);
    if (step == AUTH_FAILED) {
        *why = a->why;
        return LS_AUTH_FAILURE;
    }
    a->done = step == AUTH_DONE;
    l->res.account = a->account;
    return LS_OK;
}

/* --- one request ----------------------------------------------------------------------------- */

/* The stage that a request is for, or 0. */
static uint8_t
stage_of(uint8_t stage, uint8_t flags)
{
    bool transit = flags & LOGIN_T;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct stage_row *r = &rows[i];
        if ((r->from & stage) && r->csg == CSG(flags) && r->transit == transit &&
            (!transit || r->nsg == NSG(flags)))
            return r->to;
    }
    return 0;
}

static enum login_status
check_header(struct login *l, const struct pdu *pdu, const char **why)
{
    *why = "iSCSI version 0 is not in the offered range";
    if (pdu->byte3 > 0) /* Version-min */
        return LS_VERSION;
    *why = "login header changed its ISID, TSIH or CID";
    if (memcmp(l->res.isid, pdu->lun, sizeof l->res.isid) != 0 ||
        l->res.tsih != get_be16(pdu->lun + 6) || l->res.cid != (uint16_t)(pdu->ttt >> 16))
        return LS_INITIATOR_ERROR;
    *why = "additional header or more than 8192 bytes in a login request";
    if (pdu->ahs_len != 0 || pdu->data_len > LOGIN_DSL)
        return LS_INITIATOR_ERROR;
    *why = "too many login requests";
    if (++l->rounds > ROUNDS_MAX)
        return LS_INITIATOR_ERROR;
    *why = "T and C bit in one request";
    if ((pdu->flags & LOGIN_T) && (pdu->flags & LOGIN_C))
        return LS_INITIATOR_ERROR;
    *why = "stages do not allow this request";
    uint8_t stage = stage_of(l->stage, pdu->flags);
    if (stage == 0)
        return LS_INITIATOR_ERROR;
    l->stage = stage;
    l->nego.phase = stage == LG_SECURITY ? KP_SECURITY : KP_OPERATIONAL;
    *why = "more text than a login may have";
    l->in_total += pdu->data_len;
    if (l->in_total > tgt_opts.login_bytes_max)
        return LS_INITIATOR_ERROR;
    *why = "text before the answer was complete";
    if (l->out_pos < l->out.len && pdu->data_len != 0)
        return LS_INITIATOR_ERROR;
    return LS_OK;
}

static void
join(struct login *l, const struct pdu *pdu)
{
    if (pdu->data_len == 0)
        return;
    l->in = xrealloc(l->in, l->in_len + pdu->data_len);
    memcpy(l->in + l->in_len, pdu->data, pdu->data_len);
    l->in_len += pdu->data_len;
}

static enum login_status negotiate(struct conn *c, const uint8_t *text, size_t len,
                                   const char **why);
static enum verdict judge(struct conn *c, enum login_status status, const char *why);

/* Goes on with the text when the program has said where the login goes. */
static void
on_redirect(struct conn *c, const struct redirect_answer *a)
{
    struct login *l = c->login;
    const char *why = NULL;
    if (c->closing || l == NULL || !(l->stage & LG_ASKING))
        return;
    l->stage &= (uint8_t)~LG_ASKING;
    l->redirect = *a;
    l->answered = true;
    rx_resume(c, RX_PAUSE_LOGIN);
    enum login_status status = negotiate(c, l->kept, l->kept_len, &why);
    if (status != LS_ASKING)
        (void)judge(c, status, why);
}

/* LS_ASKING: nothing is read until the answer is there. */
static enum login_status
ask_where(struct conn *c, const uint8_t *text, size_t len, const char **why)
{
    struct login *l = c->login;
    *why = "too many logins wait for the program that is asked about redirection";
    if (!redirect_ask(c, l->res.node, l->res.initiator, on_redirect))
        return LS_NO_RESOURCES;
    l->named = false;
    l->kept = xmalloc(len + 1);
    memcpy(l->kept, text, len);
    l->kept_len = len;
    l->stage |= LG_ASKING;
    rx_pause(c, RX_PAUSE_LOGIN);
    return LS_ASKING;
}

/* A complete text (it may be empty): read, decide, answer. */
static enum login_status
negotiate(struct conn *c, const uint8_t *text, size_t len, const char **why)
{
    struct login *l = c->login;
    enum login_status status = LS_OK;
    if (!nego_read(&l->nego, text, len)) {
        *why = l->nego.why;
        return l->nego.status;
    }
    bool first = !l->named;
    l->named = true;
    if (first)
        status = read_names(c, why);
    if (status == LS_ASKING)
        return ask_where(c, text, len, why);
    if (status != LS_OK)
        return status;
    note_alias(l);
    /* Nobody gets to know what a target offers before it has proved who it is. */
    if (l->stage == LG_OPERATIONAL) {
        status = authenticate(l, true, why);
        if (status != LS_OK)
            return status;
    }
    if (!nego_answer(&l->nego, &l->out)) {
        *why = l->nego.why;
        return l->nego.status;
    }
    if (first)
        introduce(l);
    if (l->stage == LG_SECURITY)
        return authenticate(l, l->flags & LOGIN_T, why);
    nego_declare(&l->nego, KEY_MAX_RECV_DSL, &l->out);
    return LS_OK;
}

static void
fill_result(struct login *l)
{
    const uint32_t *v = l->nego.v;
    l->res.sp = (struct sess_params){
        .max_burst = v[KEY_MAX_BURST],
        .first_burst = v[KEY_FIRST_BURST],
        .max_r2t = v[KEY_MAX_R2T],
        .time2wait = v[KEY_TIME2WAIT],
        .time2retain = v[KEY_TIME2RETAIN],
        .max_connections = v[KEY_MAX_CONNECTIONS],
        .erl = v[KEY_ERL],
        .protocol_level = v[KEY_PROTOCOL_LEVEL],
        .initial_r2t = v[KEY_INITIAL_R2T],
        .immediate_data = v[KEY_IMMEDIATE_DATA],
        .data_pdu_in_order = v[KEY_DATA_PDU_IN_ORDER],
        .data_seq_in_order = v[KEY_DATA_SEQ_IN_ORDER],
    };
    l->res.cp = (struct conn_params){
        .header_digest = v[KEY_HEADER_DIGEST] == DIGEST_CRC32C,
        .data_digest = v[KEY_DATA_DIGEST] == DIGEST_CRC32C,
        .max_recv = l->nego.ours.v[KEY_MAX_RECV_DSL],
        .max_xmit = v[KEY_MAX_RECV_DSL],
    };
}

/* May the stage be left, as the request asks? Proposals of the target hold it back once; an
 * initiator that does not answer them goes on with the defaults (never waits for ever). */
static bool
may_transit(struct login *l)
{
    if (!(l->flags & LOGIN_T) || !l->auth.done)
        return false;
    return l->stage != LG_OPERATIONAL || nego_propose(&l->nego, &l->out) == 0;
}

/* The rest of the answer that fits, and the transit when it is the last piece. */
static enum verdict
respond(struct conn *c)
{
    struct login *l = c->login;
    uint8_t csg = (uint8_t)(CSG(l->flags) << 2);
    bool transit = may_transit(l);
    size_t left = l->out.len - l->out_pos;
    const uint8_t *text = left ? l->out.p + l->out_pos : NULL;
    if (left > LOGIN_DSL) {
        send_response(c, (uint8_t)(LOGIN_C | csg), LS_OK, l->res.tsih, text, LOGIN_DSL);
        l->out_pos += LOGIN_DSL;
        return KEEP;
    }
    if (transit && NSG(l->flags) == NSG_FFP) {
        if (!nego_finish(&l->nego))
            return refuse(c, l->nego.status, l->nego.why);
        fill_result(l);
        l->stage = LG_ESTABLISHING;
        c->discovery = l->res.discovery;
        sess_establish(c, &l->res);
        return KEEP;
    }
    uint8_t flags = transit ? (uint8_t)(LOGIN_T | csg | NSG(l->flags)) : csg;
    send_response(c, flags, LS_OK, l->res.tsih, text, (uint32_t)left);
    l->out.len = l->out_pos = 0;
    if (transit)
        l->stage = LG_OPERATIONAL;
    return KEEP;
}

/* --- the brake on guessing ------------------------------------------------------------------- */

static void
on_held(struct worker_timer *t)
{
    struct login *l = container_of(t, struct login, held);
    struct conn *c = l->conn;
    if (c->closing)
        return;
    if (l->held_status != LS_OK) {
        (void)refuse(c, l->held_status, l->auth.why);
        return;
    }
    rx_resume(c, RX_PAUSE_LOGIN);
    (void)respond(c);
}

/* Answers a request; after a proof perhaps later, and meanwhile reads nothing. The connection's own
 * deadline goes on, and half of what is left of it must suffice. */
static enum verdict
judge(struct conn *c, enum login_status status, const char *why)
{
    struct login *l = c->login;
    const struct sockaddr *peer = (const struct sockaddr *)&c->peer;
    if (l->auth.judged) {
        l->auth.judged = false;
        bool failed = l->auth.account == NULL;
        uint64_t now = clock_ms();
        uint64_t left = c->login_due_ms > now ? (c->login_due_ms - now) / 2 : 0;
        uint64_t ms =
            failed ? chap_slow_failed(peer, l->res.node ? l->res.node->name : "", l->auth.user)
                   : chap_slow_passed(peer);
        if (ms != 0 && left != 0) {
            l->held_status = status;
            rx_pause(c, RX_PAUSE_LOGIN);
            worker_timer_start_ms(&l->held, ms < left ? ms : left);
            return KEEP;
        }
    }
    return status == LS_OK ? respond(c) : refuse(c, status, why);
}

enum verdict
login_pdu(struct conn *c, struct pdu *pdu)
{
    worker_assert_owner(c->w);
    struct login *l = c->login ? c->login : login_new(c, pdu);
    if ((l->stage & (LG_ESTABLISHING | LG_OVER | LG_ASKING)) || worker_timer_is_active(&l->held))
        return l->stage == LG_OVER ? KEEP : DROP_CONN;
    l->itt = pdu->itt;
    l->flags = pdu->flags;
    const char *why = NULL;
    enum login_status status = check_header(l, pdu, &why);
    if (status != LS_OK)
        return refuse(c, status, why);
    if (pdu->flags & LOGIN_C) {
        join(l, pdu);
        l->joining = true;
        send_response(c, (uint8_t)(CSG(l->flags) << 2), LS_OK, l->res.tsih, NULL, 0);
        return KEEP;
    }
    if (l->out_pos < l->out.len) /* asks for the rest of our answer */
        return respond(c);
    if (l->joining) {
        join(l, pdu);
        status = negotiate(c, l->in, l->in_len, &why);
        l->joining = false;
        l->in_len = 0;
    } else {
        status = negotiate(c, pdu->data, pdu->data_len, &why);
    }
    if (status == LS_ASKING)
        return KEEP; /* on_redirect goes on */
    return judge(c, status, why);
}

enum verdict
login_foreign_pdu(struct conn *c, const struct pdu *pdu)
{
    worker_assert_owner(c->w);
    struct login *l = c->login;
    if (l == NULL || (l->stage & (LG_ESTABLISHING | LG_OVER | LG_ASKING)) ||
        worker_timer_is_active(&l->held))
        return DROP_CONN;
    l->itt = pdu->itt;
    return refuse(c, LS_INVALID_REQUEST, "a PDU that is no Login Request");
}

/* --- the end --------------------------------------------------------------------------------- */

static void
log_success(const struct conn *c)
{
    const struct login *l = c->login;
    const uint8_t *i = l->res.isid;
    log_event(LL_INFO, LA_LOGIN,
              "login peer=%s initiator=%s target=%s user=%s isid=%02x%02x%02x%02x%02x%02x tsih=%u "
              "cid=%u digests=%s,%s",
              c->peer_text, LOG_ESC(l->res.initiator),
              l->res.node ? l->res.node->name : "(discovery)",
              l->res.account ? LOG_ESC(l->res.account->user) : "-", i[0], i[1], i[2], i[3], i[4],
              i[5], (unsigned)c->sess->tsih, (unsigned)l->res.cid,
              l->res.cp.header_digest ? "on" : "off", l->res.cp.data_digest ? "on" : "off");
}

void
login_established(struct conn *c, enum login_status status)
{
    worker_assert_owner(c->w);
    struct login *l = c->login;
    if (l == NULL || l->stage != LG_ESTABLISHING)
        return;
    if (status != LS_OK) {
        (void)refuse(c, status, "the session could not be made");
        return;
    }
    size_t left = l->out.len - l->out_pos;
    uint8_t flags = (uint8_t)(LOGIN_T | CSG(l->flags) << 2 | NSG_FFP);
    send_response(c, flags, LS_OK, c->sess->tsih, left ? l->out.p + l->out_pos : NULL,
                  (uint32_t)left);
    c->p = l->res.cp; /* digests begin after this PDU (13.1) */
    counter_add(CT_LOGIN_OK, 1);
    log_success(c);
    login_free(c);
    conn_event(c, CE_LOGGED_IN); /* reading goes on */
}
