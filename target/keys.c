/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text keys of RFC 7143 12 and 13, one row each, and what the configuration and the
 * documentation read from them.  A new key is a new row (and an enum key_id in target.h, whose
 * order counts: a key's conditions and bounds must have smaller numbers, see nego.c).
 * Immutable; any thread.
 */
#include "config.h"

#include "target/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"

#define LEN24_MAX 16777215u /* 2^24 - 1 */

static const struct key_word digest_words[] = {
    {"None", DIGEST_NONE},
    {"CRC32C", DIGEST_CRC32C},
    {NULL, 0},
};
static const struct key_word auth_words[] = {{"None", AUTH_NONE}, {"CHAP", AUTH_CHAP}, {NULL, 0}};
/* IANA, "iSCSI CHAP algorithms". */
static const struct key_word chap_words[] = {
    {"5", CHAP_ALG_MD5}, {"6", CHAP_ALG_SHA1}, {"7", CHAP_ALG_SHA256}, {"8", CHAP_ALG_SHA3_256},
    {NULL, 0},
};
static const struct key_word session_words[] = {
    {"Normal", SESSION_NORMAL},
    {"Discovery", SESSION_DISCOVERY},
    {NULL, 0},
};
static const struct key_word reporting_words[] = {{"RFC3720", 1}, {NULL, 0}};

/* FirstBurstLength says nothing when no unsolicited data can be sent (13.14). */
static const struct key_cond no_unsolicited[] = {
    {KEY_INITIAL_R2T, 1},
    {KEY_IMMEDIATE_DATA, 0},
    {KEY_COUNT, 0},
};
static const struct key_cond below_max_burst = {KEY_MAX_BURST, 0};

/* clang-format off */
static const struct key_def defs[KEY_COUNT] = {
    [KEY_AUTH_METHOD] = {
        .name = "AuthMethod", .section = "12.1", .type = KT_LIST, .rule = KR_FIRST,
        .from = KF_BOTH, .phases = KP_SECURITY, .scope = KS_CONNECTION,
        .must_agree = true, .failure = LS_AUTH_FAILURE,
        .def = AUTH_NONE, .ours = AUTH_NONE, .words = auth_words },
    [KEY_CHAP_A] = {
        .name = "CHAP_A", .section = "12.1.3", .type = KT_LIST, .rule = KR_AUTH,
        .from = KF_BOTH, .phases = KP_SECURITY, .scope = KS_CONNECTION,
        .ours = CHAP_ALG_ALL, .words = chap_words },
    [KEY_CHAP_I] = {
        .name = "CHAP_I", .section = "12.1.3", .type = KT_NUM, .rule = KR_AUTH,
        .from = KF_BOTH, .phases = KP_SECURITY, .scope = KS_CONNECTION, .max = 255 },
    [KEY_CHAP_C] = {
        .name = "CHAP_C", .section = "12.1.3", .type = KT_BIN, .rule = KR_AUTH,
        .from = KF_BOTH, .phases = KP_SECURITY, .scope = KS_CONNECTION, .max = 1024 },
    [KEY_CHAP_N] = {
        .name = "CHAP_N", .section = "12.1.3", .type = KT_TEXT, .rule = KR_AUTH,
        .from = KF_BOTH, .phases = KP_SECURITY, .scope = KS_CONNECTION, .max = 255 },
    [KEY_CHAP_R] = {
        .name = "CHAP_R", .section = "12.1.3", .type = KT_BIN, .rule = KR_AUTH,
        .from = KF_BOTH, .phases = KP_SECURITY, .scope = KS_CONNECTION, .max = 32 },
    [KEY_HEADER_DIGEST] = {
        .name = "HeaderDigest", .section = "13.1", .type = KT_LIST, .rule = KR_FIRST,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_CONNECTION,
        .settable = true, .propose = true, .failure = LS_INITIATOR_ERROR,
        .def = DIGEST_NONE, .ours = DIGEST_NONE | DIGEST_CRC32C, .words = digest_words },
    [KEY_DATA_DIGEST] = {
        .name = "DataDigest", .section = "13.1", .type = KT_LIST, .rule = KR_FIRST,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_CONNECTION,
        .settable = true, .propose = true, .failure = LS_INITIATOR_ERROR,
        .def = DIGEST_NONE, .ours = DIGEST_NONE | DIGEST_CRC32C, .words = digest_words },
    [KEY_MAX_CONNECTIONS] = {
        .name = "MaxConnections", .section = "13.2", .type = KT_NUM, .rule = KR_MIN,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .normal_only = true, .settable = true,
        .min = 1, .max = 65535, .def = 1, .ours = 1, .lo = 1, .hi = 1 },
    [KEY_SEND_TARGETS] = {
        .name = "SendTargets", .section = "C", .type = KT_TEXT, .rule = KR_ASK,
        .from = KF_INITIATOR, .phases = KP_FFP, .scope = KS_SESSION, .max = ISCSI_NAME_MAX },
    [KEY_TARGET_NAME] = {
        .name = "TargetName", .section = "13.4", .type = KT_NAME, .rule = KR_DECLARE,
        .from = KF_BOTH, .phases = KP_LOGIN, .scope = KS_SESSION, .max = ISCSI_NAME_MAX },
    [KEY_INITIATOR_NAME] = {
        .name = "InitiatorName", .section = "13.5", .type = KT_NAME, .rule = KR_DECLARE,
        .from = KF_INITIATOR, .phases = KP_LOGIN, .scope = KS_SESSION, .max = ISCSI_NAME_MAX },
    [KEY_TARGET_ALIAS] = {
        .name = "TargetAlias", .section = "13.6", .type = KT_TEXT, .rule = KR_DECLARE,
        .from = KF_TARGET, .phases = KP_ALL, .scope = KS_SESSION, .max = 255 },
    [KEY_INITIATOR_ALIAS] = {
        .name = "InitiatorAlias", .section = "13.7", .type = KT_TEXT, .rule = KR_DECLARE,
        .from = KF_INITIATOR, .phases = KP_ALL, .scope = KS_SESSION, .max = 255 },
    [KEY_TARGET_ADDRESS] = {
        .name = "TargetAddress", .section = "13.8", .type = KT_TEXT, .rule = KR_DECLARE,
        .from = KF_TARGET, .phases = KP_ALL, .scope = KS_SESSION, .max = 255 },
    [KEY_TARGET_PORTAL_GROUP_TAG] = {
        .name = "TargetPortalGroupTag", .section = "13.9", .type = KT_NUM, .rule = KR_DECLARE,
        .from = KF_TARGET, .phases = KP_LOGIN, .scope = KS_SESSION, .max = 65535 },
    [KEY_INITIAL_R2T] = {
        .name = "InitialR2T", .section = "13.10", .type = KT_BOOL, .rule = KR_OR,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .normal_only = true, .settable = true,
        .max = 1, .def = 1, .ours = 0, .lo = 0, .hi = 1 },
    [KEY_IMMEDIATE_DATA] = {
        .name = "ImmediateData", .section = "13.11", .type = KT_BOOL, .rule = KR_AND,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .normal_only = true, .settable = true, .propose = true,
        .max = 1, .def = 1, .ours = 1, .lo = 0, .hi = 1 },
    [KEY_MAX_RECV_DSL] = {
        .name = "MaxRecvDataSegmentLength", .section = "13.12", .type = KT_NUM,
        .rule = KR_DECLARE, .from = KF_BOTH, .phases = KP_OPERATIONAL | KP_FFP,
        .scope = KS_CONNECTION, .settable = true,
        .min = 512, .max = LEN24_MAX, .def = 8192, .ours = 262144, .lo = 512, .hi = BUF_MAX },
    [KEY_MAX_BURST] = {
        .name = "MaxBurstLength", .section = "13.13", .type = KT_NUM, .rule = KR_MIN,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .normal_only = true, .settable = true, .propose = true,
        .min = 512, .max = LEN24_MAX, .def = 262144, .ours = 16776192,
        .lo = 512, .hi = LEN24_MAX },
    [KEY_FIRST_BURST] = {
        .name = "FirstBurstLength", .section = "13.14", .type = KT_NUM, .rule = KR_MIN,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .normal_only = true, .settable = true, .propose = true,
        .min = 512, .max = LEN24_MAX, .def = 65536, .ours = 262144, .lo = 512, .hi = LEN24_MAX,
        .irrelevant_if = no_unsolicited, .bound = &below_max_burst },
    [KEY_TIME2WAIT] = {
        .name = "DefaultTime2Wait", .section = "13.15", .type = KT_NUM, .rule = KR_MAX,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .settable = true,
        .min = 0, .max = 3600, .def = 2, .ours = 2, .lo = 0, .hi = 3600 },
    [KEY_TIME2RETAIN] = {
        .name = "DefaultTime2Retain", .section = "13.16", .type = KT_NUM, .rule = KR_MIN,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .settable = true,
        .min = 0, .max = 3600, .def = 20, .ours = 0, .lo = 0, .hi = 0 },
    [KEY_MAX_R2T] = {
        .name = "MaxOutstandingR2T", .section = "13.17", .type = KT_NUM, .rule = KR_MIN,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .normal_only = true, .settable = true,
        .min = 1, .max = 65535, .def = 1, .ours = R2T_MAX, .lo = 1, .hi = R2T_MAX },
    [KEY_DATA_PDU_IN_ORDER] = {
        .name = "DataPDUInOrder", .section = "13.18", .type = KT_BOOL, .rule = KR_OR,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .normal_only = true, .settable = true,
        .max = 1, .def = 1, .ours = 1, .lo = 1, .hi = 1 },
    [KEY_DATA_SEQ_IN_ORDER] = {
        .name = "DataSequenceInOrder", .section = "13.19", .type = KT_BOOL, .rule = KR_OR,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .normal_only = true, .settable = true,
        .max = 1, .def = 1, .ours = 1, .lo = 1, .hi = 1 },
    [KEY_ERL] = {
        .name = "ErrorRecoveryLevel", .section = "13.20", .type = KT_NUM, .rule = KR_MIN,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .settable = true,
        .min = 0, .max = 2, .def = 0, .ours = 0, .lo = 0, .hi = 0 },
    [KEY_SESSION_TYPE] = {
        .name = "SessionType", .section = "13.21", .type = KT_LIST, .rule = KR_DECLARE,
        .from = KF_INITIATOR, .phases = KP_LOGIN, .scope = KS_SESSION, .leading_only = true,
        .def = SESSION_NORMAL, .ours = SESSION_NORMAL | SESSION_DISCOVERY,
        .words = session_words },
    [KEY_IF_MARKER] = {
        .name = "IFMarker", .section = "13.25", .type = KT_BOOL, .rule = KR_AND,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_CONNECTION, .settable = true,
        .max = 1, .def = 0, .ours = 0, .lo = 0, .hi = 0 },
    [KEY_OF_MARKER] = {
        .name = "OFMarker", .section = "13.25", .type = KT_BOOL, .rule = KR_AND,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_CONNECTION, .settable = true,
        .max = 1, .def = 0, .ours = 0, .lo = 0, .hi = 0 },
    [KEY_IF_MARK_INT] = {
        .name = "IFMarkInt", .section = "13.25", .type = KT_NUM, .rule = KR_REJECT,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_CONNECTION, .max = 65535 },
    [KEY_OF_MARK_INT] = {
        .name = "OFMarkInt", .section = "13.25", .type = KT_NUM, .rule = KR_REJECT,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_CONNECTION, .max = 65535 },
    [KEY_TASK_REPORTING] = {
        .name = "TaskReporting", .section = "13.23", .type = KT_LIST, .rule = KR_FIRST,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .normal_only = true, .failure = LS_INITIATOR_ERROR,
        .def = 1, .ours = 1, .words = reporting_words },
    [KEY_PROTOCOL_LEVEL] = {
        .name = "iSCSIProtocolLevel", .section = "13.24", .type = KT_NUM, .rule = KR_MIN,
        .from = KF_BOTH, .phases = KP_OPERATIONAL, .scope = KS_SESSION,
        .leading_only = true, .normal_only = true,
        .max = 31, .def = 1, .ours = 2, .lo = 2, .hi = 2 },
};
/* clang-format on */

const struct key_def *
keys_def(enum key_id id)
{
    return &defs[id];
}

enum key_id
keys_find(const char *name, size_t len)
{
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (strlen(defs[i].name) == len && memcmp(defs[i].name, name, len) == 0)
            return (enum key_id)i;
    }
    return KEY_COUNT;
}

uint32_t
keys_word(const struct key_def *d, const char *s, size_t len)
{
    for (const struct key_word *w = d->words; w->name != NULL; w++) {
        if (strlen(w->name) == len && memcmp(w->name, s, len) == 0)
            return w->bit;
    }
    return 0;
}

static int
digit(char c, unsigned base)
{
    int d = -1;
    if (c >= '0' && c <= '9')
        d = c - '0';
    else if (c >= 'a' && c <= 'f')
        d = c - 'a' + 10;
    else if (c >= 'A' && c <= 'F')
        d = c - 'A' + 10;
    return d < (int)base ? d : -1;
}

bool
keys_number(const char *s, uint64_t *out)
{
    unsigned base = 10;
    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
        base = 16;
        s += 2;
    } else if (s[0] == '0' && s[1] != '\0') {
        return false; /* a leading zero: some would read it as octal */
    }
    if (*s == '\0')
        return false;
    uint64_t v = 0;
    for (; *s != '\0'; s++) {
        int d = digit(*s, base);
        if (d < 0 || v > (UINT64_MAX - (unsigned)d) / base)
            return false;
        v = v * base + (unsigned)d;
    }
    *out = v;
    return true;
}

/* --- configuration --------------------------------------------------------------------------- */

void
keys_defaults(struct key_values *kv)
{
    for (unsigned i = 0; i < KEY_COUNT; i++)
        kv->v[i] = defs[i].ours;
}

static int
set_list(const struct key_def *d, const char *value, uint32_t *out)
{
    uint32_t set = 0;
    bool last_first = false;
    for (const char *p = value;;) {
        while (*p == ' ')
            p++;
        size_t len = strcspn(p, ", ");
        const struct key_word *w = d->words;
        while (w->name != NULL && (strlen(w->name) != len || strncasecmp(w->name, p, len) != 0))
            w++;
        if (w->name == NULL || (set & w->bit))
            return -EINVAL;
        last_first = last_first || (set == 0 && w->bit != d->words[0].bit);
        set |= w->bit;
        p += len;
        while (*p == ' ')
            p++;
        if (*p == '\0')
            break;
        if (*p++ != ',')
            return -EINVAL;
    }
    *out = set | (last_first && (set & (set - 1)) ? LIST_LAST_FIRST : 0);
    return 0;
}

static int
list_error(const struct key_def *d, char *err, size_t errsize)
{
    char words[64];
    size_t n = 0;
    for (const struct key_word *w = d->words; w->name != NULL && n < sizeof words; w++)
        n += (size_t)snprintf(words + n, sizeof words - n, "%s%s", n ? ", " : "", w->name);
    (void)snprintf(err, errsize, "%s must be a comma list of: %s", d->name, words);
    return -EINVAL;
}

static int
set_bool(const struct key_def *d, const char *value, uint32_t *out, char *err, size_t errsize)
{
    uint32_t v = strcasecmp(value, "yes") == 0;
    if (!v && strcasecmp(value, "no") != 0) {
        (void)snprintf(err, errsize, "%s must be %s", d->name,
                       d->lo == d->hi ? (d->lo ? "Yes" : "No") : "Yes or No");
        return -EINVAL;
    }
    *out = v < d->lo || v > d->hi ? d->lo : v;
    if (*out == v)
        return 0;
    (void)snprintf(err, errsize, "%s can only be %s here", d->name, d->lo ? "Yes" : "No");
    return 1;
}

static int
set_number(const struct key_def *d, const char *value, uint32_t *out, char *err, size_t errsize)
{
    uint64_t n;
    uint32_t min = d->min < d->lo ? d->min : d->lo;
    uint32_t max = d->max > d->hi ? d->max : d->hi;
    if (!keys_number(value, &n) || n < min || n > max) {
        (void)snprintf(err, errsize, "%s must be %" PRIu32 "..%" PRIu32, d->name, min, max);
        return -EINVAL;
    }
    *out = n < d->lo ? d->lo : n > d->hi ? d->hi : (uint32_t)n;
    if (*out == n)
        return 0;
    (void)snprintf(err, errsize, "%s can be at %s %" PRIu32 " here", d->name,
                   n > d->hi ? "most" : "least", *out);
    return 1;
}

int
keys_set(struct key_values *kv, const char *name, const char *value, char *err, size_t errsize)
{
    unsigned i = 0;
    while (i < KEY_COUNT && strcasecmp(defs[i].name, name) != 0)
        i++;
    if (i == KEY_COUNT || !defs[i].settable) {
        (void)snprintf(err, errsize, "%.64s is not a key that can be set", name);
        return -EINVAL;
    }
    const struct key_def *d = &defs[i];
    if (d->type == KT_LIST)
        return set_list(d, value, &kv->v[i]) == 0 ? 0 : list_error(d, err, errsize);
    if (d->type == KT_BOOL)
        return set_bool(d, value, &kv->v[i], err, errsize);
    return set_number(d, value, &kv->v[i], err, errsize);
}

/* Words of the set in the order in which they are preferred. */
static void
show_list(const struct key_def *d, uint32_t set, char *value, size_t size)
{
    unsigned nwords = 0;
    while (d->words[nwords].name != NULL)
        nwords++;
    size_t n = 0;
    if (size != 0)
        value[0] = '\0';
    for (unsigned k = 0; k < nwords && n < size; k++) {
        const struct key_word *w = &d->words[(set & LIST_LAST_FIRST) ? nwords - 1 - k : k];
        if (set & w->bit)
            n += (size_t)snprintf(value + n, size - n, "%s%s", n ? "," : "", w->name);
    }
}

void
keys_value_text(enum key_id id, uint32_t v, char *value, size_t size)
{
    const struct key_def *d = &defs[id];
    switch (d->type) {
    case KT_LIST:
        show_list(d, v, value, size);
        break;
    case KT_BOOL:
        (void)snprintf(value, size, "%s", v ? "Yes" : "No");
        break;
    case KT_NUM:
        (void)snprintf(value, size, "%" PRIu32, v);
        break;
    default:
        (void)snprintf(value, size, "-");
        break;
    }
}

bool
keys_show(const struct key_values *kv, unsigned i, const char **name, char *value, size_t size)
{
    if (i >= KEY_COUNT || !defs[i].settable)
        return false;
    *name = defs[i].name;
    keys_value_text((enum key_id)i, kv->v[i], value, size);
    return true;
}

/* --- documentation --------------------------------------------------------------------------- */

static const char *const rule_names[] = {
    [KR_DECLARE] = "declarative",
    [KR_FIRST] = "first supported",
    [KR_AND] = "AND",
    [KR_OR] = "OR",
    [KR_MIN] = "minimum",
    [KR_MAX] = "maximum",
    [KR_REJECT] = "rejected",
    [KR_ASK] = "question",
    [KR_AUTH] = "of CHAP",
};
static const char *const from_names[] = {
    [KF_INITIATOR] = "initiator", [KF_TARGET] = "target", [KF_BOTH] = "both"};

static void
show_range(const struct key_def *d, char *out, size_t size)
{
    if (d->type == KT_LIST)
        show_list(d, UINT32_MAX & ~LIST_LAST_FIRST, out, size);
    else if (d->type == KT_BOOL)
        (void)snprintf(out, size, "Yes, No");
    else if (d->type == KT_NUM)
        (void)snprintf(out, size, "%" PRIu32 "..%" PRIu32, d->min, d->max);
    else
        (void)snprintf(out, size, "%sup to %" PRIu32 " bytes", d->type == KT_BIN ? "binary, " : "",
                       d->max);
}

void
keys_dump(void (*line)(const char *s, void *arg), void *arg)
{
    line("| Key | RFC 7143 | Rule | Values | Default | Here | Sent by | When | Of the |", arg);
    line("| --- | --- | --- | --- | --- | --- | --- | --- | --- |", arg);
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        const struct key_def *d = &defs[i];
        char range[48], def[32], ours[32], when[64], row[400];
        bool has_value = d->rule != KR_REJECT && d->rule != KR_AUTH && d->from != KF_TARGET;
        show_range(d, range, sizeof range);
        keys_value_text((enum key_id)i, d->def, def, sizeof def);
        keys_value_text((enum key_id)i, d->ours, ours, sizeof ours);
        (void)snprintf(when, sizeof when, "%s%s%s%s", (d->phases & KP_LOGIN) ? "login" : "",
                       (d->phases & KP_LOGIN) && (d->phases & KP_FFP) ? ", " : "",
                       (d->phases & KP_FFP) ? "full feature phase" : "",
                       d->leading_only ? " (first connection)" : "");
        (void)snprintf(row, sizeof row, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |", d->name,
                       d->section, rule_names[d->rule], range, has_value ? def : "-",
                       has_value ? ours : "-", from_names[d->from], when,
                       d->scope == KS_SESSION ? "session" : "connection");
        line(row, arg);
    }
}
