/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text negotiation (RFC 7143 6.1, 6.2): splits a text into pairs, decides every key by its row in
 * keys.c, writes the answers in the table's order, then NotUnderstood for what has no row.
 * Called by login.c and text.c on the connection's worker; pure functions of their arguments.
 *
 * Rows are decided in the order of enum key_id: a row's conditions and its bound name smaller ids,
 * so the order of the keys on the wire does not matter.
 */
#include "config.h"

#include "target/nego.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cur.h"
#include "base/pool.h"

#define ANSWER_REJECT     "Reject"
#define ANSWER_IRRELEVANT "Irrelevant"
#define ANSWER_UNKNOWN    "NotUnderstood"

/* --- text being built ------------------------------------------------------------------------ */

void
text_put_raw(struct text_out *o, const void *p, size_t len)
{
    if (len > o->limit - o->len) {
        o->over = true;
        return;
    }
    if (o->len + len > o->cap) {
        size_t cap = o->cap ? o->cap : 512;
        while (cap < o->len + len)
            cap *= 2;
        o->p = xrealloc(o->p, cap);
        o->cap = cap;
    }
    if (len != 0)
        memcpy(o->p + o->len, p, len);
    o->len += len;
}

static void
put_pair(struct text_out *o, const char *key, size_t key_len, const char *value)
{
    size_t value_len = strlen(value);
    if (key_len + value_len + 2 > o->limit - o->len) {
        o->over = true; /* whole pairs or nothing */
        return;
    }
    text_put_raw(o, key, key_len);
    text_put_raw(o, "=", 1);
    text_put_raw(o, value, value_len + 1);
}

void
text_put(struct text_out *o, const char *key, const char *value)
{
    put_pair(o, key, strlen(key), value);
}

void
text_put_num(struct text_out *o, const char *key, uint32_t value)
{
    char num[16];
    (void)snprintf(num, sizeof num, "%" PRIu32, value);
    text_put(o, key, num);
}

void
text_out_free(struct text_out *o)
{
    free(o->p);
    *o = (struct text_out){.limit = o->limit};
}

/* --- reading --------------------------------------------------------------------------------- */

void
nego_init(struct nego *n, const struct key_values *ours, enum key_phase phase)
{
    *n = (struct nego){.ours = *ours, .phase = (uint8_t)phase, .bad = KEY_COUNT};
    for (unsigned i = 0; i < KEY_COUNT; i++)
        n->v[i] = keys_def((enum key_id)i)->def;
}

static bool
fail(struct nego *n, enum login_status status, enum key_id id, const char *why)
{
    n->status = status;
    n->bad = id;
    n->why = why;
    if (id != KEY_COUNT && n->offer[id] != NULL && keys_def(id)->rule != KR_AUTH)
        (void)snprintf(n->bad_value, sizeof n->bad_value, "%s", n->offer[id]);
    return false;
}

/* FNV-1a: tells a key said again from a key changed; nothing depends on its strength. */
static uint64_t
hash_text(const char *s)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (; *s != '\0'; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3u;
    return h;
}

struct pair {
    const char *key;
    size_t key_len;
    const char *value; /* NUL-terminated */
};

/* The pair at the cursor. False: malformed, *why says how. */
static bool
next_pair(struct cur *c, struct pair *p, const char **why)
{
    const uint8_t *end = memchr(c->p, 0, c->left);
    *why = "text does not end in NUL";
    if (end == NULL)
        return false;
    size_t len = (size_t)(end - c->p);
    const uint8_t *start = cur_take(c, len + 1);
    const uint8_t *eq = memchr(start, '=', len);
    *why = "no key=value";
    if (eq == NULL || eq == start)
        return false;
    p->key = (const char *)start;
    p->key_len = (size_t)(eq - start);
    p->value = (const char *)eq + 1;
    *why = "key longer than 63 bytes";
    if (p->key_len > KEY_NAME_MAX)
        return false;
    *why = "key contains what no key may contain";
    for (size_t i = 0; i < p->key_len; i++) {
        if (start[i] <= ' ' || start[i] >= 0x7f)
            return false;
    }
    return true;
}

/* Some count the padding into DataSegmentLength: up to three NULs that fill a word. */
static size_t
without_padding(const uint8_t *text, size_t len)
{
    if (len % 4 != 0)
        return len;
    for (unsigned i = 0; i < 3 && len >= 2 && text[len - 1] == 0 && text[len - 2] == 0; i++)
        len--;
    return len;
}

/* A key that an earlier text had: allowed when it is the answer to a proposal or says the same
 * again (some repeat names, some repeat what was agreed); a change is a renegotiation, which
 * login does not have (RFC 7143 6.3). */
static bool
check_repeat(struct nego *n, enum key_id id)
{
    uint8_t st = n->state[id];
    bool answers = (st & NS_PROPOSED) && !(st & (NS_AGREED | NS_REFUSED));
    uint64_t h = hash_text(n->offer[id]);
    if ((st & NS_OFFERED) && !answers) {
        if (h == n->offer_hash[id])
            return true;
        if (n->answer_hash[id] != h)
            return fail(n, LS_INITIATOR_ERROR, id, "key sent again with another value");
        n->offer[id] = NULL; /* our answer confirmed: nothing more to say */
        return true;
    }
    n->offer_hash[id] = h;
    return true;
}

bool
nego_read(struct nego *n, const uint8_t *text, size_t len)
{
    memset(n->offer, 0, sizeof n->offer);
    n->text = text;
    n->text_len = without_padding(text, len);
    struct cur c = cur_init(text, n->text_len);
    while (c.left != 0) {
        struct pair p;
        const char *why;
        if (!next_pair(&c, &p, &why))
            return fail(n, LS_INITIATOR_ERROR, KEY_COUNT, why);
        enum key_id id = keys_find(p.key, p.key_len);
        if (id == KEY_COUNT)
            continue; /* answered by nego_answer */
        if (n->offer[id] != NULL)
            return fail(n, LS_INITIATOR_ERROR, id, "key twice in one text");
        n->offer[id] = p.value;
    }
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (n->offer[i] != NULL && !check_repeat(n, (enum key_id)i))
            return false;
    }
    return true;
}

const char *
nego_offered(const struct nego *n, enum key_id id)
{
    return n->offer[id];
}

/* --- deciding -------------------------------------------------------------------------------- */

enum decision { SILENT, ANSWER, FAILED };

static bool
is_refusal(const char *value)
{
    return strcmp(value, ANSWER_REJECT) == 0 || strcmp(value, ANSWER_IRRELEVANT) == 0 ||
           strcmp(value, ANSWER_UNKNOWN) == 0;
}

static bool
all_true(const struct nego *n, const struct key_cond *cond)
{
    if (cond == NULL)
        return false;
    for (; cond->key != KEY_COUNT; cond++) {
        if (n->v[cond->key] != cond->value)
            return false;
    }
    return true;
}

/* First word of the offer that we have; where nothing but data flows by text (discovery), the
 * default is preferred wherever it was offered: some initiators offer digests there that they
 * cannot compute. */
static uint32_t
pick_word(const struct nego *n, const struct key_def *d, uint32_t allowed, const char *value)
{
    uint32_t first = 0;
    for (const char *p = value;; p++) {
        size_t len = strcspn(p, ",");
        uint32_t bit = keys_word(d, p, len) & allowed;
        if (first == 0 || (n->discovery && bit == d->def && bit != 0))
            first = bit;
        p += len;
        if (*p == '\0')
            return first;
    }
}

static const char *
word_name(const struct key_def *d, uint32_t bit)
{
    for (const struct key_word *w = d->words; w->name != NULL; w++) {
        if (w->bit == bit)
            return w->name;
    }
    return ANSWER_REJECT;
}

static enum decision
decide_list(struct nego *n, enum key_id id, const char *value, const char **answer)
{
    const struct key_def *d = keys_def(id);
    uint32_t allowed = n->ours.v[id];
    uint32_t bit = pick_word(n, d, allowed, value);
    if (bit == 0 && (d->must_agree || !(allowed & d->def))) {
        (void)fail(n, d->failure, id, "nothing offered that this target accepts");
        return FAILED;
    }
    if (bit == 0) {
        *answer = ANSWER_REJECT;
        return ANSWER;
    }
    n->v[id] = bit;
    n->state[id] |= NS_AGREED;
    *answer = word_name(d, bit);
    return ANSWER;
}

static uint32_t
combine(uint8_t rule, uint32_t theirs, uint32_t ours)
{
    switch (rule) {
    case KR_AND:
        return theirs && ours;
    case KR_OR:
        return theirs || ours;
    case KR_MIN:
        return theirs < ours ? theirs : ours;
    case KR_MAX:
        return theirs > ours ? theirs : ours;
    default:
        return theirs;
    }
}

/* Another key, agreed before, must not lie above this one's new value. */
static bool
undercuts(const struct nego *n, enum key_id id, uint32_t v)
{
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        const struct key_cond *bound = keys_def((enum key_id)i)->bound;
        if (bound != NULL && bound->key == id && (n->state[i] & NS_AGREED) && n->v[i] > v)
            return true;
    }
    return false;
}

static bool
parse_value(const struct key_def *d, const char *value, uint32_t *out)
{
    if (d->type == KT_BOOL) {
        *out = strcmp(value, "Yes") == 0;
        return *out || strcmp(value, "No") == 0;
    }
    uint64_t num;
    if (!keys_number(value, &num) || num < d->min || num > d->max)
        return false;
    *out = (uint32_t)num;
    return true;
}

static enum decision
decide_value(struct nego *n, enum key_id id, const char *value, const char **answer, char *num,
             size_t num_size)
{
    const struct key_def *d = keys_def(id);
    uint32_t theirs, ours = n->ours.v[id];
    *answer = ANSWER_REJECT;
    if (!parse_value(d, value, &theirs))
        return ANSWER;
    if (d->bound != NULL && ours > n->v[d->bound->key])
        ours = n->v[d->bound->key];
    uint32_t v = combine(d->rule, theirs, ours);
    if (undercuts(n, id, v))
        return ANSWER;
    n->v[id] = v;
    n->state[id] |= NS_AGREED;
    if (d->type == KT_BOOL)
        *answer = v ? "Yes" : "No";
    else
        (void)snprintf(num, num_size, "%" PRIu32, v);
    if (d->type == KT_NUM)
        *answer = num;
    return d->rule == KR_DECLARE ? SILENT : ANSWER;
}

static enum decision
decide_declared_text(struct nego *n, enum key_id id, const char *value, const char **answer)
{
    const struct key_def *d = keys_def(id);
    *answer = ANSWER_REJECT;
    if (d->type == KT_TEXT && strlen(value) > d->max)
        return ANSWER;
    if (d->type == KT_LIST) {
        uint32_t bit = keys_word(d, value, strlen(value)) & n->ours.v[id];
        if (bit == 0)
            return ANSWER;
        n->v[id] = bit;
    }
    n->state[id] |= NS_AGREED;
    return SILENT;
}

/* The initiator's answer to what the target proposed. */
static enum decision
take_answer(struct nego *n, enum key_id id, const char *value)
{
    const struct key_def *d = keys_def(id);
    if (is_refusal(value)) {
        n->state[id] |= NS_REFUSED; /* the default stays; nego_finish judges it */
        return SILENT;
    }
    char num[16];
    const char *answer = NULL;
    enum decision what = d->type == KT_LIST ? decide_list(n, id, value, &answer)
                                            : decide_value(n, id, value, &answer, num, sizeof num);
    if (what == FAILED)
        return FAILED;
    if (answer == NULL || strcmp(answer, ANSWER_REJECT) == 0) {
        (void)fail(n, LS_INITIATOR_ERROR, id, "answer does not fit what was proposed");
        return FAILED;
    }
    return SILENT;
}

static enum decision
decide(struct nego *n, enum key_id id, const char *value, const char **answer, char *num,
       size_t num_size)
{
    const struct key_def *d = keys_def(id);
    uint8_t st = n->state[id];
    *answer = ANSWER_REJECT;
    if (!(d->from & KF_INITIATOR))
        return is_refusal(value) ? SILENT : ANSWER; /* of a declaration of ours */
    if (d->rule == KR_REJECT)
        return ANSWER;
    if ((st & NS_PROPOSED) && !(st & (NS_AGREED | NS_REFUSED)))
        return take_answer(n, id, value);
    if ((st & NS_DECLARED) && is_refusal(value))
        return SILENT;
    if (!(d->phases & n->phase))
        return ANSWER;
    if (d->rule == KR_AUTH)
        return SILENT; /* the method judges it */
    if (d->rule == KR_DECLARE && d->type != KT_NUM)
        return decide_declared_text(n, id, value, answer);
    if (d->leading_only && !n->leading)
        return ANSWER;
    *answer = ANSWER_IRRELEVANT;
    if ((d->normal_only && n->discovery) || all_true(n, d->irrelevant_if))
        return ANSWER;
    if (d->type == KT_LIST)
        return decide_list(n, id, value, answer);
    return decide_value(n, id, value, answer, num, num_size);
}

/* What has no row is NotUnderstood (RFC 7143 6.2). */
static void
answer_unknown(const struct nego *n, struct text_out *out)
{
    struct cur c = cur_init(n->text, n->text_len);
    while (c.left != 0) {
        struct pair p;
        const char *why;
        if (!next_pair(&c, &p, &why))
            return; /* nego_read has refused such a text */
        if (keys_find(p.key, p.key_len) == KEY_COUNT && !is_refusal(p.value))
            put_pair(out, p.key, p.key_len, ANSWER_UNKNOWN);
    }
}

bool
nego_answer(struct nego *n, struct text_out *out)
{
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        enum key_id id = (enum key_id)i;
        const char *value = n->offer[i];
        if (value == NULL)
            continue;
        n->state[i] |= NS_OFFERED;
        const struct key_def *d = keys_def(id);
        if (d->rule == KR_ASK && (d->phases & n->phase) && n->ask != NULL) {
            n->ask(n->ask_arg, id, value, out);
            continue;
        }
        char num[16];
        const char *answer;
        enum decision what = decide(n, id, value, &answer, num, sizeof num);
        if (what == FAILED)
            return false;
        if (what == SILENT)
            continue;
        n->answer_hash[i] = hash_text(answer);
        if (!(n->state[i] & NS_AGREED))
            n->state[i] |= NS_REFUSED;
        text_put(out, d->name, answer);
    }
    answer_unknown(n, out);
    if (out->over)
        return fail(n, LS_INITIATOR_ERROR, KEY_COUNT, "more text than a negotiation may have");
    return true;
}

/* --- the target's own words ------------------------------------------------------------------ */

/* Would the value in force break what this target was set to? */
static bool
breaks_setting(const struct nego *n, enum key_id id)
{
    const struct key_def *d = keys_def(id);
    if (d->rule == KR_FIRST)
        return !(n->v[id] & n->ours.v[id]);
    return combine(d->rule, n->v[id], n->ours.v[id]) != n->v[id];
}

unsigned
nego_propose(struct nego *n, struct text_out *out)
{
    unsigned made = 0;
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        enum key_id id = (enum key_id)i;
        const struct key_def *d = keys_def(id);
        if (!d->propose || (n->state[i] & (NS_OFFERED | NS_PROPOSED)) ||
            (d->leading_only && !n->leading) || (d->normal_only && n->discovery) ||
            !(d->phases & n->phase) || all_true(n, d->irrelevant_if) || !breaks_setting(n, id))
            continue;
        char value[64];
        keys_value_text(id, n->ours.v[i], value, sizeof value);
        text_put(out, d->name, value);
        n->state[i] |= NS_PROPOSED;
        made++;
    }
    return made;
}

void
nego_declare(struct nego *n, enum key_id id, struct text_out *out)
{
    /* Once; and not beside a Reject of the initiator's value, which would be the key twice. */
    if (n->state[id] & (NS_DECLARED | NS_REFUSED))
        return;
    n->state[id] |= NS_DECLARED;
    text_put_num(out, keys_def(id)->name, n->ours.v[id]);
}

bool
nego_finish(struct nego *n)
{
    memset(n->offer, 0, sizeof n->offer);
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        enum key_id id = (enum key_id)i;
        const struct key_def *d = keys_def(id);
        /* A default above its bound is the bound (FirstBurstLength, 13.14). */
        if (d->bound != NULL && n->v[i] > n->v[d->bound->key])
            n->v[i] = n->v[d->bound->key];
        /* Numbers and booleans of the default can be lived with: an initiator that does not hear
         * proposals must still come in.  A word that the setting excludes cannot. */
        if (d->rule == KR_FIRST && !(n->v[i] & n->ours.v[i]))
            return fail(n, d->failure, id, "not agreed, and the default is not accepted here");
    }
    return true;
}
