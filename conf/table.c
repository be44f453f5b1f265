/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directives, one row each: where they may stand, what they set, what is right.  Rows without
 * a setter are handled by name in build.c, or refused with a reason.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "conf/priv.h"

static int
set_uint(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    uint64_t v;
    if (conf_parse_uint(value, d->min, d->max, &v) < 0) {
        snprintf(out->err, out->errsize, "%s wants a number from %llu to %llu, not \"%s\"", d->name,
                 (unsigned long long)d->min, (unsigned long long)d->max, value);
        return -EINVAL;
    }
    *(unsigned *)(void *)((char *)obj + d->off) = (unsigned)v;
    return 0;
}

static int
set_bool(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    if (conf_parse_bool(value, (bool *)((char *)obj + d->off)) < 0) {
        snprintf(out->err, out->errsize, "%s wants on or off, not \"%s\"", d->name, value);
        return -EINVAL;
    }
    return 0;
}

/* Printable ASCII of at most max bytes. cut: longer values are cut with a warning (INQUIRY
 * fields, as tgt does). */
static int
put_ascii(char *dst, const struct directive *d, const char *value, bool cut, struct setter_out *out)
{
    size_t n = strlen(value);
    for (size_t i = 0; i < n; i++) {
        if (value[i] < 0x20 || value[i] > 0x7e) {
            snprintf(out->err, out->errsize, "%s may hold printable ASCII only", d->name);
            return -EINVAL;
        }
    }
    if (n > d->max) {
        if (!cut) {
            snprintf(out->err, out->errsize, "%s holds at most %llu characters, this has %zu",
                     d->name, (unsigned long long)d->max, n);
            return -EINVAL;
        }
        n = (size_t)d->max;
        snprintf(out->warn, out->warnsize, "%s holds %zu characters: cut to \"%.*s\"", d->name, n,
                 (int)n, value);
    }
    if (n == 0) {
        snprintf(out->err, out->errsize, "%s wants a text", d->name);
        return -EINVAL;
    }
    memcpy(dst, value, n);
    dst[n] = 0;
    return 0;
}

static int
set_text(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    return put_ascii((char *)obj + d->off, d, value, false, out);
}

static int
set_inquiry(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    return put_ascii((char *)obj + d->off, d, value, true, out);
}

/* Borrowed string of the raw tree (struct conf, conf_target only). */
static int
set_ref(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    size_t n = strlen(value);
    if (n == 0 || n > d->max) {
        snprintf(out->err, out->errsize, "%s wants a text of 1 to %llu bytes", d->name,
                 (unsigned long long)d->max);
        return -EINVAL;
    }
    *(const char **)(void *)((char *)obj + d->off) = value;
    return 0;
}

static int
set_state_dir(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    if (value[0] != '/') {
        snprintf(out->err, out->errsize, "state-dir wants an absolute path, not \"%s\"", value);
        return -EINVAL;
    }
    return set_ref(obj, d, value, out);
}

static int
set_placement(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    unsigned *affine = (unsigned *)(void *)((char *)obj + d->off);
    if (strcasecmp(value, "affine") == 0) {
        *affine = 1;
    } else if (strcasecmp(value, "spread") == 0) {
        *affine = 0;
    } else {
        snprintf(out->err, out->errsize, "placement wants spread or affine, not \"%s\"", value);
        return -EINVAL;
    }
    return 0;
}

static int
set_state(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    bool *offline = (bool *)((char *)obj + d->off);
    if (strcasecmp(value, "offline") == 0) {
        *offline = true;
    } else if (strcasecmp(value, "ready") == 0) {
        *offline = false;
    } else {
        snprintf(out->err, out->errsize, "state wants ready or offline, not \"%s\"", value);
        return -EINVAL;
    }
    return 0;
}

int
conf_parse_chap_algs(const char *text, unsigned *out)
{
    static const char *const names[][2] = {
        {"md5", "5"}, {"sha1", "6"}, {"sha256", "7"}, {"sha3-256", "8"}};
    unsigned bits = 0;
    for (const char *p = text;; p++) {
        p += strspn(p, " \t");
        size_t n = strcspn(p, ", \t");
        unsigned bit = 0;
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
            for (unsigned k = 0; k < 2; k++) {
                if (strlen(names[i][k]) == n && strncasecmp(names[i][k], p, n) == 0)
                    bit = 1u << i;
            }
        }
        bits |= bit;
        p += n;
        p += strspn(p, " \t");
        if (!bit || (*p && *p != ','))
            return -EINVAL;
        if (!*p)
            break;
    }
    *out = bits;
    return 0;
}

static int
set_chap_algs(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    if (conf_parse_chap_algs(value, (unsigned *)(void *)((char *)obj + d->off)) == 0)
        return 0;
    snprintf(out->err, out->errsize,
             "%s wants a comma list of md5, sha1, sha256, sha3-256, not \"%s\"", d->name, value);
    return -EINVAL;
}

/* on/off into an unsigned that is CONF_UNSET before. */
static int
set_flag(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    bool on = false;
    if (conf_parse_bool(value, &on) < 0) {
        snprintf(out->err, out->errsize, "%s wants on or off, not \"%s\"", d->name, value);
        return -EINVAL;
    }
    *(unsigned *)(void *)((char *)obj + d->off) = on;
    return 0;
}

static int
set_discovery_filter(void *obj, const struct directive *d, const char *value,
                     struct setter_out *out)
{
    static const char *const words[] = {"name", "portal", "all", "authenticated"};
    unsigned *filter = (unsigned *)(void *)((char *)obj + d->off);
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(value, words[i]) == 0) {
            *filter = i;
            return 0;
        }
    }
    snprintf(out->err, out->errsize,
             "discovery-filter wants name, portal, all or authenticated, not \"%s\"", value);
    return -EINVAL;
}

static int
set_discoverable(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    bool *hidden = (bool *)((char *)obj + d->off), yes;
    if (conf_parse_bool(value, &yes) < 0) {
        snprintf(out->err, out->errsize, "discoverable wants yes or no, not \"%s\"", value);
        return -EINVAL;
    }
    *hidden = !yes;
    return 0;
}

static int
set_driver(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    (void)obj;
    if (strcmp(value, "iscsi") != 0) {
        snprintf(out->err, out->errsize, "%s: only iscsi is served, not \"%s\"", d->name, value);
        return -EINVAL;
    }
    return 0;
}

static int
set_ignored(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    (void)obj;
    (void)value;
    snprintf(out->warn, out->warnsize, "%s has no effect here", d->name);
    return 0;
}

static int
set_device_type(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    (void)obj;
    (void)d;
    if (strcmp(value, "disk") != 0) {
        snprintf(out->err, out->errsize, "device-type: only disk is served, not \"%s\"", value);
        return -EINVAL;
    }
    return 0;
}

static int
set_bs_type(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    static const struct {
        const char *name;
        enum conf_bs bs;
    } names[] = {
        {"rdwr", CONF_BS_FILE},     {"fileio", CONF_BS_FILE}, {"aio", CONF_BS_FILE},
        {"blockio", CONF_BS_BLOCK}, {"null", CONF_BS_NULL},   {"nullio", CONF_BS_NULL},
    };
    (void)d;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(value, names[i].name) == 0) {
            ((struct conf_lun *)obj)->bs = names[i].bs;
            return 0;
        }
    }
    snprintf(out->err, out->errsize,
             "bs-type \"%s\" is not known; there are rdwr, fileio, aio, blockio, null", value);
    return -EINVAL;
}

static int
set_owned(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    char **field = (char **)(void *)((char *)obj + d->off);
    if (strlen(value) > d->max) {
        snprintf(out->err, out->errsize, "%s is longer than %llu bytes", d->name,
                 (unsigned long long)d->max);
        return -EINVAL;
    }
    free(*field);
    *field = xstrdup(value);
    return 0;
}

static int
set_bsoflags(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_lun *l = obj;
    bool direct = false, sync = false;
    (void)d;
    for (const char *p = value; *p;) {
        size_t n = strcspn(p, ":,");
        if (n == 6 && memcmp(p, "direct", n) == 0) {
            direct = true;
        } else if (n == 4 && memcmp(p, "sync", n) == 0) {
            sync = true;
        } else {
            snprintf(out->err, out->errsize,
                     "bsoflags wants direct, sync or sync:direct, not \"%s\"", value);
            return -EINVAL;
        }
        p += n;
        p += *p != 0;
    }
    l->direct = direct;
    l->sync = sync;
    return 0;
}

/* Each `layer NAME:opts` adds one below those before it. */
static int
set_layer(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_lun *l = obj;
    if (!*value || strpbrk(value, " \t") || strlen(value) + strlen(l->layers) > d->max) {
        snprintf(out->err, out->errsize, "layer wants NAME or NAME:options without blanks");
        return -EINVAL;
    }
    char *all = xasprintf("%s%s%s", l->layers, *l->layers ? " " : "", value);
    free(l->layers);
    l->layers = all;
    return 0;
}

static int
set_block_size(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    uint64_t v;
    if (conf_parse_uint(value, 512, 4096, &v) < 0 || (v != 512 && v != 4096)) {
        snprintf(out->err, out->errsize, "%s wants 512 or 4096, not \"%s\"", d->name, value);
        return -EINVAL;
    }
    ((struct conf_lun *)obj)->block_size = (unsigned)v;
    return 0;
}

/* SBC-3 6.6.2: 0 not reported, 1 non-rotating, 0401h..FFFEh revolutions per minute. */
static int
set_rotation(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    uint64_t v;
    if (conf_parse_uint(value, 0, 0xfffe, &v) < 0 || (v > 1 && v < 0x401)) {
        snprintf(out->err, out->errsize, "%s wants 0, 1 or 1025 to 65534, not \"%s\"", d->name,
                 value);
        return -EINVAL;
    }
    ((struct conf_lun *)obj)->rotation_rate = (unsigned)v;
    return 0;
}

/* Bytes with an optional K, M, G or T (binary). */
static int
set_size(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    static const char units[] = "KMGT";
    char num[32];
    size_t n = strlen(value);
    unsigned shift = 0;
    uint64_t v;

    if (n && n < sizeof num) {
        memcpy(num, value, n + 1);
        const char *u = strchr(units, toupper((unsigned char)num[n - 1]));
        if (u && *u) {
            shift = 10 * (unsigned)(u - units + 1);
            num[n - 1] = 0;
        }
        if (conf_parse_uint(num, 1, d->max >> shift, &v) == 0) {
            ((struct conf_lun *)obj)->size = v << shift;
            return 0;
        }
    }
    snprintf(out->err, out->errsize, "size wants bytes, or a number with K, M, G or T, not \"%s\"",
             value);
    return -EINVAL;
}

static int
hex_id(const char *value, uint8_t out[16], uint8_t *len, size_t d1, size_t d2, size_t d3)
{
    size_t n, k = 0;

    if (strncasecmp(value, "0x", 2) == 0)
        value += 2;
    n = strlen(value);
    if (n != d1 && n != d2 && n != d3)
        return -EINVAL;
    for (; k < n; k++) {
        if (!isxdigit((unsigned char)value[k]))
            return -EINVAL;
        unsigned c = (unsigned)tolower((unsigned char)value[k]);
        unsigned v = c <= '9' ? c - '0' : c - 'a' + 10;
        out[k / 2] = (uint8_t)(k & 1 ? out[k / 2] | v : v << 4);
    }
    *len = (uint8_t)(n / 2);
    return 0;
}

/* SPC-4 7.8.6.6: NAA 2h, 3h, 5h have 8 bytes, 6h has 16. */
static int
set_naa(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_lun *l = obj;
    uint8_t id[16], len;
    const char *v = strncasecmp(value, "naa.", 4) == 0 ? value + 4 : value;
    (void)d;
    if (hex_id(v, id, &len, 16, 32, 32) == 0) {
        unsigned type = id[0] >> 4;
        if ((len == 8 && (type == 2 || type == 3 || type == 5)) || (len == 16 && type == 6)) {
            memcpy(l->naa, id, sizeof id);
            l->naa_len = len;
            return 0;
        }
    }
    snprintf(out->err, out->errsize,
             "naa wants 16 hexadecimal digits that start with 2, 3 or 5, or 32 that start with 6");
    return -EINVAL;
}

static int
set_eui(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_lun *l = obj;
    const char *v = strncasecmp(value, "eui.", 4) == 0 ? value + 4 : value;
    uint8_t id[16], len;
    (void)d;
    if (hex_id(v, id, &len, 16, 24, 32) < 0) {
        snprintf(out->err, out->errsize, "eui wants 16, 24 or 32 hexadecimal digits");
        return -EINVAL;
    }
    memcpy(l->eui, id, sizeof id);
    l->eui_len = len;
    return 0;
}

/* `TYPE HEX`: adds one descriptor of VPD 83h (SPC-4 7.8.6.1), as another target reported it. */
static int
set_designator(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    static const struct {
        const char *name;
        uint8_t code_set, type;
    } types[] = {{"t10", 2, 1}, {"t10-binary", 1, 1}, {"eui", 1, 2}, {"naa", 1, 3}, {"name", 3, 8}};
    struct conf_lun *l = obj;
    size_t n = strcspn(value, " \t"), at = l->designators_len, k = 0;
    const char *hex = value + n + strspn(value + n, " \t");
    size_t len = strlen(hex) / 2;

    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strlen(types[i].name) != n || memcmp(types[i].name, value, n) != 0)
            continue;
        if (len == 0 || strlen(hex) % 2 || strspn(hex, "0123456789abcdefABCDEF") != 2 * len)
            break;
        if (at + 4 + len > sizeof l->designators) {
            snprintf(out->err, out->errsize, "%s: all together hold at most %zu bytes", d->name,
                     sizeof l->designators);
            return -EINVAL;
        }
        l->designators[at++] = types[i].code_set;
        l->designators[at++] = types[i].type;
        l->designators[at++] = 0;
        l->designators[at++] = (uint8_t)len;
        for (; k < len; k++) {
            const char pair[] = {hex[2 * k], hex[2 * k + 1], 0};
            l->designators[at++] = (uint8_t)strtoul(pair, NULL, 16);
        }
        l->designators_len = (uint8_t)at;
        return 0;
    }
    snprintf(out->err, out->errsize,
             "%s wants t10, t10-binary, eui, naa or name, and hexadecimal digits", d->name);
    return -EINVAL;
}

static int
set_ids(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    static const char *const words[] = {"evtgt", "tgt", "iet"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(value, words[i]) == 0) {
            *(unsigned *)(void *)((char *)obj + d->off) = i;
            return 0;
        }
    }
    snprintf(out->err, out->errsize, "%s wants evtgt, tgt or iet, not \"%s\"", d->name, value);
    return -EINVAL;
}

static int
set_sense_format(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0) {
        snprintf(out->err, out->errsize,
                 "sense_format wants 0 (fixed) or 1 (descriptor), not \"%s\"", value);
        return -EINVAL;
    }
    return set_bool(obj, d, value, out);
}

/* RFC 2474 4.2.2 class selectors, RFC 2597 assured, RFC 3246 expedited forwarding; or a number. */
static int
set_dscp(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    unsigned *field = (unsigned *)(void *)((char *)obj + d->off);
    size_t n = strlen(value);
    unsigned a = n > 2 ? (unsigned char)value[2] - '0' : 99;
    unsigned b = n > 3 ? (unsigned char)value[3] - '0' : 99;
    uint64_t v;

    if (conf_parse_uint(value, d->min, d->max, &v) == 0) {
        *field = (unsigned)v;
    } else if (strcasecmp(value, "ef") == 0) {
        *field = 46;
    } else if (strncasecmp(value, "cs", 2) == 0 && n == 3 && a <= 7) {
        *field = a << 3;
    } else if (strncasecmp(value, "af", 2) == 0 && n == 4 && a - 1 < 4 && b - 1 < 3) {
        *field = a << 3 | b << 1;
    } else {
        snprintf(out->err, out->errsize,
                 "dscp wants a number from 0 to 63, cs0 to cs7, af11 to af43 or ef, not \"%s\"",
                 value);
        return -EINVAL;
    }
    return 0;
}

static int
set_advertise(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    struct conf_portal *p = obj;
    char why[256];
    if (hostport_announce(value, p->at.port, p->advertise, why, sizeof why) == 0)
        return 0;
    snprintf(out->err, out->errsize, "%s: %s", d->name, why);
    return -EINVAL;
}

#define G(f)  offsetof(struct conf, f)
#define T(f)  offsetof(struct conf_target, f)
#define L(f)  offsetof(struct conf_lun, f)
#define P(f)  offsetof(struct conf_portal, f)
#define SC_TL (SC_TARGET | SC_LUN)

/* clang-format off */
static const struct directive table[] = {
    /* the daemon */
    {"default-driver", SC_GLOBAL, set_driver, 0, 0, 0, false, NULL},
    {"ignore-errors", SC_GLOBAL, set_ignored, 0, 0, 0, false, NULL},
    {"control-port", SC_GLOBAL, set_ignored, 0, 0, 0, false, NULL},
    {"ids", SC_GLOBAL, set_ids, G(ids), 0, 0, false, NULL},
    {"syntax", SC_GLOBAL, NULL, 0, 0, 0, true, NULL},
    {"portal", SC_GLOBAL | SC_TARGET, NULL, 0, 0, 0, true, NULL},
    {"group", SC_PORTAL, set_uint, P(group), 0, 65535, false, NULL},
    {"advertise", SC_PORTAL, set_advertise, 0, 0, 0, false, NULL},
    {"target", SC_GLOBAL, NULL, 0, 0, 0, true, NULL},
    {"include", SC_GLOBAL | SC_TL, NULL, 0, 0, 0, true, NULL},
    {"workers", SC_GLOBAL, set_uint, G(workers), 1, 64, false, NULL},
    {"busy-poll", SC_GLOBAL, set_uint, G(busy_poll_us), 0, 1000, false, NULL},
    {"placement", SC_GLOBAL, set_placement, G(affine), 0, 0, false, NULL},
    {"state-dir", SC_GLOBAL, set_state_dir, G(state_dir), 0, 4000, false, NULL},
    {"discovery-filter", SC_GLOBAL, set_discovery_filter, G(discovery_filter), 0, 0, false, NULL},
    {"login-timeout", SC_GLOBAL, set_uint, G(login_timeout_s), 1, 3600, false, NULL},
    {"max-half-open", SC_GLOBAL, set_uint, G(max_half_open), 1, 65536, false, NULL},
    {"max-half-open-per-address", SC_GLOBAL, set_uint, G(max_half_open_per_addr), 1, 65536, false,
     NULL},
    {"tcp-keepalive-idle", SC_GLOBAL, set_uint, G(keepalive_idle_s), 0, 32767, false, NULL},
    {"tcp-keepalive-interval", SC_GLOBAL, set_uint, G(keepalive_interval_s), 1, 32767, false, NULL},
    {"tcp-keepalive-count", SC_GLOBAL, set_uint, G(keepalive_count), 1, 127, false, NULL},
    {"tcp-user-timeout", SC_GLOBAL, set_uint, G(user_timeout_s), 0, 86400, false, NULL},
    {"dscp", SC_GLOBAL, set_dscp, G(dscp), 0, 63, false, NULL},
    {"max-sessions", SC_GLOBAL, set_uint, G(max_sessions), 1, 65535, false, NULL},
    {"shutdown-timeout", SC_GLOBAL, set_uint, G(shutdown_timeout_s), 0, 600, false, NULL},
    {"redirect-timeout", SC_GLOBAL, set_uint, G(redirect_timeout_s), 1, 60, false, NULL},
    {"iSNS", SC_GLOBAL, set_bool, G(isns_on), 0, 0, false, NULL},
    {"iSNSServerIP", SC_GLOBAL, NULL, 0, 0, 0, true, NULL},
    {"iSNSServer", SC_GLOBAL, NULL, 0, 0, 0, true, NULL},
    {"iSNSServerPort", SC_GLOBAL, set_uint, G(isns_port), 1, 65535, false, NULL},
    {"iSNSAccessControl", SC_GLOBAL, set_bool, G(isns_access), 0, 0, false, NULL},
    {"incomingdiscoveryuser", SC_GLOBAL, NULL, 0, 0, 0, true, NULL},
    {"outgoingdiscoveryuser", SC_GLOBAL, NULL, 0, 0, 0, true, NULL},
    {"login-failure-delay", SC_GLOBAL, set_uint, G(login_delay_ms), 0, 10000, false, NULL},
    {"chap-algorithms", SC_GLOBAL, set_chap_algs, G(chap_algs), 0, 0, false, NULL},
    {"chap-legacy-sha1-7", SC_GLOBAL, set_flag, G(chap_sha1_7), 0, 0, false, NULL},
    /* the daemon (then for all targets) or a target */
    {"incominguser", SC_GLOBAL | SC_TARGET, NULL, 0, 0, 0, true, NULL},
    {"outgoinguser", SC_GLOBAL | SC_TARGET, NULL, 0, 0, 0, true, NULL},
    /* a target */
    {"backing-store", SC_TARGET, NULL, 0, 0, 0, true, NULL},
    {"direct-store", SC_TARGET, NULL, 0, 0, 0, true,
     "direct-store is not understood by this version; use backing-store with vendor_id, product_id, "
     "product_rev and scsi_sn"},
    {"driver", SC_TARGET, set_driver, 0, 0, 0, false, NULL},
    {"portal-group", SC_TARGET, NULL, 0, 0, 65535, true, NULL},
    {"initiator-address", SC_TARGET, NULL, 0, 0, 0, true, NULL},
    {"initiator-name", SC_TARGET, NULL, 0, 0, 0, true, NULL},
    {"local-address", SC_TARGET, NULL, 0, 0, 0, true, NULL},
    {"discoverable", SC_TARGET, set_discoverable, T(hidden), 0, 0, false, NULL},
    {"ids", SC_TARGET, set_ids, T(ids), 0, 0, false, NULL},
    {"controller_tid", SC_TARGET, set_uint, T(tid), 1, 65535, false, NULL},
    {"alias", SC_TARGET, set_ref, T(alias), 0, 255, false, NULL},
    {"state", SC_TARGET, set_state, T(offline), 0, 0, false, NULL},
    {"MaxQueueCmd", SC_TARGET, set_uint, T(max_cmds), 1, 512, false, NULL},
    {"nop_interval", SC_TARGET, set_uint, T(nop_interval_s), 0, 3600, false, NULL},
    {"nop_count", SC_TARGET, set_uint, T(nop_count), 1, 1000, false, NULL},
    {"RedirectAddress", SC_TARGET, NULL, 0, 0, 0, false, NULL},
    {"RedirectPort", SC_TARGET, NULL, 0, 0, 0, false, NULL},
    {"RedirectReason", SC_TARGET, NULL, 0, 0, 0, false, NULL},
    {"RedirectCallback", SC_TARGET, NULL, 0, 0, 0, false, NULL},
    {"redirect-initiator", SC_TARGET, NULL, 0, 0, 0, true, NULL},
    {"MaxXmitDataSegmentLength", SC_TARGET, set_ignored, 0, 0, 0, false, NULL},
    {"IFMarkInt", SC_TARGET, set_ignored, 0, 0, 0, false, NULL},
    {"OFMarkInt", SC_TARGET, set_ignored, 0, 0, 0, false, NULL},
    {"RDMAExtensions", SC_TARGET, set_ignored, 0, 0, 0, false, NULL},
    {"TargetRecvDataSegmentLength", SC_TARGET, set_ignored, 0, 0, 0, false, NULL},
    {"InitiatorRecvDataSegmentLength", SC_TARGET, set_ignored, 0, 0, 0, false, NULL},
    {"MaxOutstandingUnexpectedPDUs", SC_TARGET, set_ignored, 0, 0, 0, false, NULL},
    {"chap-algorithms", SC_TARGET, set_chap_algs, T(chap_algs), 0, 0, false, NULL},
    {"chap-legacy-sha1-7", SC_TARGET, set_flag, T(chap_sha1_7), 0, 0, false, NULL},
    /* logical units */
    {"write-cache", SC_TL, set_bool, L(write_cache), 0, 0, false, NULL},
    {"scsi_id", SC_TL | SC_LIVE, set_text, L(scsi_id), 0, 63, false, NULL},
    {"scsi_sn", SC_TL | SC_LIVE, set_text, L(scsi_sn), 0, 63, false, NULL},
    {"naa", SC_TL | SC_LIVE, set_naa, 0, 0, 0, false, NULL},
    {"eui", SC_TL | SC_LIVE, set_eui, 0, 0, 0, false, NULL},
    {"designator", SC_TL, set_designator, 0, 0, 0, true, NULL},
    {"scsi_sn_width", SC_TL | SC_LIVE, set_uint, L(scsi_sn_width), 0, 63, false, NULL},
    {"vendor_id", SC_TL | SC_LIVE, set_inquiry, L(vendor_id), 0, 8, false, NULL},
    {"product_id", SC_TL | SC_LIVE, set_inquiry, L(product_id), 0, 16, false, NULL},
    {"product_rev", SC_TL | SC_LIVE, set_inquiry, L(product_rev), 0, 4, false, NULL},
    {"sense_format", SC_TL | SC_LIVE, set_sense_format, L(descriptor_sense), 0, 0, false, NULL},
    {"removable", SC_TL | SC_LIVE, set_bool, L(removable), 0, 0, false, NULL},
    {"online", SC_TL | SC_LIVE, set_bool, L(online), 0, 0, false, NULL},
    {"readonly", SC_TL | SC_LIVE, set_bool, L(read_only), 0, 0, false, NULL},
    {"lbppbe", SC_TL | SC_LIVE, set_uint, L(lbppbe), 0, 15, false, NULL},
    {"la_lba", SC_TL | SC_LIVE, set_uint, L(la_lba), 0, 16383, false, NULL},
    {"optimal_xfer_gran", SC_TL | SC_LIVE, set_uint, L(opt_xfer_gran), 0, 65535, false, NULL},
    {"optimal_xfer_len", SC_TL | SC_LIVE, set_uint, L(opt_xfer_len), 0, 0xffffffff, false, NULL},
    {"thin-provisioning", SC_TL, set_bool, L(thin), 0, 0, false, NULL},
    {"thin_provisioning", SC_TL | SC_LIVE, set_bool, L(thin), 0, 0, false, NULL},
    {"rotation_rate", SC_TL | SC_LIVE, set_rotation, 0, 0, 0, false, NULL},
    {"device-type", SC_TL, set_device_type, 0, 0, 0, false, NULL},
    {"bs-type", SC_TL, set_bs_type, 0, 0, 0, false, NULL},
    {"bsopts", SC_TL, set_owned, L(bsopts), 0, 1023, false, NULL},
    {"bsoflags", SC_TL, set_bsoflags, 0, 0, 0, false, NULL},
    {"allow-in-use", SC_TL, set_bool, L(allow_in_use), 0, 0, false, NULL},
    {"block-size", SC_TL, set_block_size, 0, 0, 0, false, NULL},
    {"size", SC_TL, set_size, 0, 0, 1ull << 60, false, NULL},
    {"layer", SC_TL, set_layer, 0, 0, 1023, true, NULL},
    {"lun", SC_TL, set_uint, L(number), 0, 16383, false, NULL},
    {"params", SC_TL, NULL, 0, 0, 0, true, NULL},
    {"mode_page", SC_TL | SC_LIVE, NULL, 0, 0, 0, true,
     "mode pages cannot be given by value in this version"},
    {"path", SC_TL | SC_LIVE, NULL, 0, 0, 0, false,
     "a disk's path is given by backing-store and does not change"},
};
/* clang-format on */

#define ROWS (sizeof table / sizeof *table)

const struct directive *
table_find(const char *name, unsigned scopes)
{
    for (size_t i = 0; i < ROWS; i++) {
        if ((table[i].scopes & scopes) && strcmp(table[i].name, name) == 0)
            return &table[i];
    }
    return NULL;
}

const struct directive *
table_find_any(const char *name)
{
    return table_find(name, ~0u);
}

const char *
conf_directive(unsigned i, bool *understood)
{
    if (i >= ROWS)
        return NULL;
    *understood = !table[i].refuse;
    return table[i].name;
}

/* Edit distance without regard to case, `-` and `_` alike; at most `limit` + 1. */
static unsigned
distance(const char *a, const char *b)
{
    enum { M = 40 };
    unsigned prev[M + 1], cur[M + 1];
    size_t n = strlen(a), m = strlen(b);

    if (n > M || m > M)
        return 99;
    for (size_t j = 0; j <= m; j++)
        prev[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        cur[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            unsigned sub = prev[j - 1] + ((x == '-' ? '_' : x) != (y == '-' ? '_' : y));
            unsigned del = prev[j] + 1, ins = cur[j - 1] + 1;
            cur[j] = sub < del ? sub : del;
            if (ins < cur[j])
                cur[j] = ins;
        }
        memcpy(prev, cur, sizeof prev);
    }
    return prev[m];
}

void
table_suggest(const char *name, unsigned scopes, char *out, size_t size)
{
    const struct directive *best = NULL;
    unsigned best_d = 3;
    size_t n = 0;

    for (size_t i = 0; i < ROWS; i++) {
        unsigned d =
            table[i].scopes & scopes && !table[i].refuse ? distance(name, table[i].name) : 99;
        if (d < best_d) {
            best_d = d;
            best = &table[i];
        }
    }
    out[0] = 0;
    if (best) {
        snprintf(out, size, "; did you mean %s?", best->name);
        return;
    }
    for (size_t i = 0; i < ROWS && n < size; i++) {
        if ((table[i].scopes & scopes) && !table[i].refuse)
            n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "; there are ",
                                  table[i].name);
    }
}
