/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of values of the daemon, its portals and its targets: each reads a text into a field and
 * shows the field as a text that reads the same.  (Those of logical units: types_lun.c.)
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

static bool
field_bool(const void *obj, const struct directive *d)
{
    return *(const bool *)((const char *)obj + d->off);
}

static unsigned
field_uint(const void *obj, const struct directive *d)
{
    return *(const unsigned *)(const void *)((const char *)obj + d->off);
}

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

static bool
show_uint(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)i;
    if (field_uint(obj, d) == CONF_UNSET)
        return false;
    text_add(out, "%u", field_uint(obj, d));
    return true;
}

const struct conf_type type_uint = {set_uint, show_uint};

static int
set_bool(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    if (conf_parse_bool(value, (bool *)((char *)obj + d->off)) < 0) {
        snprintf(out->err, out->errsize, "%s wants on or off, not \"%s\"", d->name, value);
        return -EINVAL;
    }
    return 0;
}

static bool
show_bool(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)i;
    text_add(out, "%s", field_bool(obj, d) ? "on" : "off");
    return true;
}

const struct conf_type type_bool = {set_bool, show_bool};
/* Another name of a directive: it is read and never written. */
const struct conf_type type_bool_alias = {set_bool, NULL};

uint64_t
type_parse_bytes(const char *value, uint64_t max)
{
    static const char units[] = "KMGT";
    char num[32];
    size_t n = strlen(value);
    unsigned shift = 0;
    uint64_t v;

    if (n == 0 || n >= sizeof num)
        return 0;
    memcpy(num, value, n + 1);
    const char *u = strchr(units, toupper((unsigned char)num[n - 1]));
    if (u && *u) {
        shift = 10 * (unsigned)(u - units + 1);
        num[n - 1] = 0;
    }
    return conf_parse_uint(num, 1, max >> shift, &v) == 0 ? v << shift : 0;
}

/* A limit within [min, max] bytes; 0 is none. */
static int
set_bytes(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    uint64_t v = type_parse_bytes(value, d->max);

    if (strcmp(value, "0") != 0 && v < d->min) {
        snprintf(out->err, out->errsize,
                 "%s wants bytes, or a number with K, M, G or T, from %lluM on, or 0 for its "
                 "default, not "
                 "\"%s\"",
                 d->name, (unsigned long long)d->min >> 20, value);
        return -EINVAL;
    }
    *(uint64_t *)(void *)((char *)obj + d->off) = v;
    return 0;
}

static bool
show_bytes(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    uint64_t v = *(const uint64_t *)(const void *)((const char *)obj + d->off);
    (void)i;
    text_add(out, "%llu", (unsigned long long)v);
    return v != 0;
}

const struct conf_type type_bytes = {set_bytes, show_bytes};
const struct conf_type type_bytes_alias = {set_bytes, NULL};

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

static bool
show_text(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)i;
    const char *s = (const char *)obj + d->off;
    text_add(out, "%s", s);
    return *s != 0;
}

const struct conf_type type_text = {set_text, show_text};
const struct conf_type type_inquiry = {set_inquiry, show_text};

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

static bool
show_ref(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)i;
    const char *s = *(const char *const *)(const void *)((const char *)obj + d->off);
    text_add(out, "%s", s ? s : "");
    return s != NULL;
}

const struct conf_type type_ref = {set_ref, show_ref};
const struct conf_type type_state_dir = {set_state_dir, show_ref};

/* Whether they exist is for the start to find out. */
static int
set_user(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    const char *colon = strchr(value, ':');
    if (strpbrk(value, " \t/") || value[0] == ':' ||
        (colon && (colon[1] == '\0' || strchr(colon + 1, ':')))) {
        snprintf(out->err, out->errsize, "user wants NAME or NAME:GROUP, not \"%s\"", value);
        return -EINVAL;
    }
    return set_ref(obj, d, value, out);
}

const struct conf_type type_user = {set_user, show_ref};

/* One of a few words, as its number. */
static int
set_word(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    const char *const *words = d->type->words;
    char all[128] = "";
    size_t k = 0;

    for (unsigned i = 0; words[i]; i++) {
        if (strcasecmp(value, words[i]) == 0) {
            *(unsigned *)(void *)((char *)obj + d->off) = i;
            return 0;
        }
        k += (size_t)snprintf(all + k, sizeof all - k, "%s%s",
                              i == 0         ? ""
                              : words[i + 1] ? ", "
                                             : " or ",
                              words[i]);
    }
    snprintf(out->err, out->errsize, "%s wants %s, not \"%s\"", d->name, all, value);
    return -EINVAL;
}

static bool
show_word(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)i;
    if (field_uint(obj, d) == CONF_UNSET)
        return false;
    text_add(out, "%s", d->type->words[field_uint(obj, d)]);
    return true;
}

static const char *const placements[] = {"spread", "affine", NULL};
static const char *const ids[] = {"evtgt", "tgt", "iet", NULL};
static const char *const filters[] = {"name", "portal", "all", "authenticated", NULL};

const char *const conf_zram_algorithms[] = {"lz4", "lz4hc", "zstd", "deflate", NULL};

const struct conf_type type_zram_algorithm = {set_word, show_word, .words = conf_zram_algorithms};
const struct conf_type type_zram_algorithm_alias = {set_word, NULL, .words = conf_zram_algorithms};
const struct conf_type type_placement = {set_word, show_word, .words = placements};
const struct conf_type type_ids = {set_word, show_word, .words = ids};
const struct conf_type type_discovery_filter = {set_word, show_word, .words = filters};

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

static bool
show_state(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)i;
    text_add(out, "%s", field_bool(obj, d) ? "offline" : "ready");
    return true;
}

const struct conf_type type_state = {set_state, show_state};

static const char *const chap_names[][2] = {
    {"md5", "5"}, {"sha1", "6"}, {"sha256", "7"}, {"sha3-256", "8"}};
#define CHAP_NAMES (sizeof chap_names / sizeof *chap_names)

int
conf_parse_chap_algs(const char *text, unsigned *out)
{
    unsigned bits = 0;
    for (const char *p = text;; p++) {
        p += strspn(p, " \t");
        size_t n = strcspn(p, ", \t");
        unsigned bit = 0;
        for (unsigned i = 0; i < CHAP_NAMES; i++) {
            for (unsigned k = 0; k < 2; k++) {
                if (strlen(chap_names[i][k]) == n && strncasecmp(chap_names[i][k], p, n) == 0)
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

static bool
show_chap_algs(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)i;
    unsigned bits = field_uint(obj, d);
    if (bits == CONF_UNSET)
        return false;
    for (unsigned k = 0; k < CHAP_NAMES; k++) {
        if (bits & 1u << k)
            text_add(out, "%s%s", out->n ? "," : "", chap_names[k][0]);
    }
    return true;
}

const struct conf_type type_chap_algs = {set_chap_algs, show_chap_algs};

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

static bool
show_flag(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)i;
    if (field_uint(obj, d) == CONF_UNSET)
        return false;
    text_add(out, "%s", field_uint(obj, d) ? "on" : "off");
    return true;
}

const struct conf_type type_flag = {set_flag, show_flag};

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

static bool
show_discoverable(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)i;
    text_add(out, "%s", field_bool(obj, d) ? "no" : "yes");
    return true;
}

const struct conf_type type_discoverable = {set_discoverable, show_discoverable};

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

/* As tgt-admin: every other word is no. */
static int
set_ignore_errors(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    *(bool *)(void *)((char *)obj + d->off) = strcmp(value, "yes") == 0;
    return set_ignored(obj, d, value, out);
}

static int
set_control_port(void *obj, const struct directive *d, const char *value, struct setter_out *out)
{
    int rc = type_uint.set(obj, d, value, out);
    return rc < 0 ? rc : set_ignored(obj, d, value, out);
}

/* What changes nothing is not written. */
const struct conf_type type_ignore_errors = {set_ignore_errors, NULL};
const struct conf_type type_control_port = {set_control_port, NULL};
const struct conf_type type_driver = {set_driver, NULL};
const struct conf_type type_ignored = {set_ignored, NULL};

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

static bool
show_owned(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)i;
    const char *s = *(char *const *)(const void *)((const char *)obj + d->off);
    text_add(out, "%s", s);
    return *s != 0;
}

const struct conf_type type_owned = {set_owned, show_owned};

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

const struct conf_type type_dscp = {set_dscp, show_uint};

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

static bool
show_advertise(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_portal *p = obj;
    (void)d;
    (void)i;
    text_add(out, "%s", p->advertise);
    return *p->advertise != 0;
}

const struct conf_type type_advertise = {set_advertise, show_advertise};

/* --- lists: read by build.c, written from here ----------------------------------------------- */

static bool
show_kv(const struct conf_kv *v, unsigned n, unsigned i, struct text *out)
{
    if (i >= n)
        return false;
    text_add(out, "%s", v[i].value);
    return true;
}

static bool
show_addrs(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_target *t = obj;
    (void)d;
    return show_kv(t->addrs, t->naddrs, i, out);
}

static bool
show_names(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_target *t = obj;
    (void)d;
    return show_kv(t->names, t->nnames, i, out);
}

static bool
show_locals(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_target *t = obj;
    (void)d;
    return show_kv(t->locals, t->nlocals, i, out);
}

static bool
show_isns(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf *c = obj;
    (void)d;
    return show_kv(c->isns_servers, c->nisns_servers, i, out);
}

static bool
show_access(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_access *a = (const void *)((const char *)obj + d->off);
    (void)i;
    text_add(out, "%s", a->path ? a->path : "");
    return a->path != NULL;
}

static bool
same_access(const void *a, const void *b, const struct directive *d)
{
    return conf_access_same((const void *)((const char *)a + d->off),
                            (const void *)((const char *)b + d->off));
}

/* The settings of redirection stand in one list; the i-th of this name. */
static bool
show_redirect(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    const struct conf_target *t = obj;
    for (unsigned k = 0; k < t->nredirects; k++) {
        if (strcmp(t->redirects[k].name, d->name) == 0 && i-- == 0)
            return show_kv(t->redirects, t->nredirects, k, out);
    }
    return false;
}

static bool
show_bind(const struct conf_target *t, bool portal, unsigned i, struct text *out)
{
    for (unsigned k = 0; k < t->nbinds; k++) {
        const struct conf_bind *b = &t->binds[k];
        if ((*b->name != 0) != portal || i-- != 0)
            continue;
        if (portal)
            text_add(out, "%s", b->name);
        else
            text_add(out, "%u", b->group);
        return true;
    }
    return false;
}

static bool
show_bind_portal(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)d;
    return show_bind(obj, true, i, out);
}

static bool
show_bind_group(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    (void)d;
    return show_bind(obj, false, i, out);
}

static bool
show_account(const void *obj, const struct directive *d, bool outgoing, unsigned i,
             struct text *out)
{
    const struct conf_accounts *list = (const void *)((const char *)obj + d->off);
    for (unsigned k = 0; k < list->n; k++) {
        if (list->v[k].outgoing == outgoing && i-- == 0) {
            account_show(&list->v[k], out);
            return true;
        }
    }
    return false;
}

static bool
show_incoming(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    return show_account(obj, d, false, i, out);
}

static bool
show_outgoing(const void *obj, const struct directive *d, unsigned i, struct text *out)
{
    return show_account(obj, d, true, i, out);
}

const struct conf_type type_initiator_address = {NULL, show_addrs};
const struct conf_type type_initiator_name = {NULL, show_names};
const struct conf_type type_local_address = {NULL, show_locals};
const struct conf_type type_isns_server = {NULL, show_isns};
const struct conf_type type_access = {NULL, show_access, .same = same_access};
const struct conf_type type_redirect = {NULL, show_redirect};
const struct conf_type type_bind_portal = {NULL, show_bind_portal};
const struct conf_type type_bind_group = {NULL, show_bind_group};
const struct conf_type type_incoming = {NULL, show_incoming};
const struct conf_type type_outgoing = {NULL, show_outgoing};
