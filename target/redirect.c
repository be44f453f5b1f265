/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where logins are sent: a target's settings and the decision.  Settings are made on main and are
 * immutable then: a change makes new ones.  See redirect.h.
 */
#include "config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "target/redirect.h"

#define PORT_DEFAULT 3260u
#define HOST_MAX     255u
#define CALLBACK_MAX 1023u
#define WHO_MAX      255u
#define RULES_MAX    4096u

struct rule {
    char who[WHO_MAX + 1];
    struct acl *acl; /* matches who */
    bool stays;      /* not redirected */
    struct redirect_to to;
};

struct redirect {
    struct ref ref;
    char host[HOST_MAX + 1]; /* "": none; as given, without brackets */
    unsigned port;
    bool permanent;
    struct redirect_to fixed; /* of the three; text "" without a host */
    char callback[CALLBACK_MAX + 1];
    unsigned nrules;
    struct rule *rules; /* in the order given */
};

/* --- addresses ------------------------------------------------------------------------------- */

static bool
parse_port(const char *s, unsigned *port)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(s, &end, 10);
    if (!isdigit((unsigned char)s[0]) || *end != '\0' || errno != 0 || v == 0 || v > 65535)
        return false;
    *port = (unsigned)v;
    return true;
}

/* Host and port apart; brackets go. */
static bool
split(const char *text, char host[HOST_MAX + 1], unsigned *port)
{
    const char *colon = strchr(text, ':'), *end = text + strlen(text), *tail = NULL;
    if (text[0] == '[') {
        const char *close = strchr(text, ']');
        if (close == NULL || (close[1] != '\0' && close[1] != ':'))
            return false;
        text++;
        end = close;
        tail = close[1] == ':' ? close + 2 : NULL;
    } else if (colon != NULL && strchr(colon + 1, ':') == NULL) {
        end = colon;
        tail = colon + 1;
    }
    size_t n = (size_t)(end - text);
    if (n == 0 || n > HOST_MAX)
        return false;
    memcpy(host, text, n);
    host[n] = '\0';
    return tail == NULL || parse_port(tail, port);
}

/* RFC 1123 as far as it matters here: no byte that could end or alter the text key. */
static bool
is_host_name(const char *s)
{
    bool letter = false;
    if (s[0] == '.' || s[0] == '-')
        return false;
    for (; *s != '\0'; s++) {
        if (!isalnum((unsigned char)*s) && *s != '-' && *s != '.')
            return false;
        letter = letter || isalpha((unsigned char)*s);
    }
    return letter; /* else it would be an IPv4 address gone wrong */
}

static int
make_to(const char *host, unsigned port, struct redirect_to *to)
{
    struct sockaddr_in *in4 = (void *)&to->addr;
    struct sockaddr_in6 *in6 = (void *)&to->addr;
    char ip[INET6_ADDRSTRLEN];

    memset(to, 0, sizeof *to);
    if (inet_pton(AF_INET, host, &in4->sin_addr) == 1) {
        if (in4->sin_addr.s_addr == 0)
            return -EINVAL;
        in4->sin_family = AF_INET;
        in4->sin_port = htons((uint16_t)port);
        snprintf(to->text, sizeof to->text, "%s:%u", host, port);
        return 0;
    }
    if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
        if (IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr) ||
            inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof ip) == NULL)
            return -EINVAL;
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons((uint16_t)port);
        snprintf(to->text, sizeof to->text, "[%s]:%u", ip, port);
        return 0;
    }
    memset(&to->addr, 0, sizeof to->addr);
    if (!is_host_name(host))
        return -EINVAL;
    snprintf(to->text, sizeof to->text, "%.255s:%u", host, port);
    return 0;
}

int
redirect_parse_to(const char *text, unsigned port, struct redirect_to *to, char *err,
                  size_t errsize)
{
    char host[HOST_MAX + 1];
    if (split(text, host, &port) && make_to(host, port, to) == 0)
        return 0;
    snprintf(err, errsize,
             "\"%.100s\" is no address: ADDRESS or ADDRESS:PORT, IPv6 in brackets, "
             "is wanted",
             text);
    return -EINVAL;
}

static bool
parse_reason(const char *s, bool *permanent)
{
    *permanent = strcasecmp(s, "Permanent") == 0;
    return *permanent || strcasecmp(s, "Temporary") == 0;
}

/* --- settings -------------------------------------------------------------------------------- */

struct redirect *
redirect_get(struct redirect *r)
{
    ref_get(&r->ref);
    return r;
}

static void
rule_fini(const struct rule *rule)
{
    acl_put(rule->acl);
}

void
redirect_put(struct redirect *r)
{
    if (r == NULL || !ref_put(&r->ref))
        return;
    for (unsigned i = 0; i < r->nrules; i++)
        rule_fini(&r->rules[i]);
    free(r->rules);
    free(r);
}

static struct redirect *
copy(const struct redirect *old)
{
    struct redirect *r = xcalloc(1, sizeof *r);
    r->port = PORT_DEFAULT;
    if (old != NULL)
        *r = *old;
    ref_init(&r->ref);
    r->rules = xcalloc(r->nrules + 1, sizeof *r->rules);
    for (unsigned i = 0; i < r->nrules; i++) {
        r->rules[i] = old->rules[i];
        acl_get(r->rules[i].acl);
    }
    return r;
}

static bool
is_none(const char *value)
{
    return value[0] == '\0' || strcasecmp(value, "none") == 0;
}

static int
set_address(struct redirect *r, const char *value, char *err, size_t errsize)
{
    struct redirect_to to;
    if (is_none(value)) {
        r->host[0] = '\0';
        return 0;
    }
    if (redirect_parse_to(value, r->port, &to, err, errsize) < 0)
        return -EINVAL;
    (void)split(value, r->host, &r->port);
    return 0;
}

static int
set_port(struct redirect *r, const char *value, char *err, size_t errsize)
{
    r->port = PORT_DEFAULT;
    if (is_none(value) || parse_port(value, &r->port))
        return 0;
    snprintf(err, errsize, "a number from 1 to 65535 is wanted, not \"%.40s\"", value);
    return -EINVAL;
}

static int
set_reason(struct redirect *r, const char *value, char *err, size_t errsize)
{
    r->permanent = false;
    if (is_none(value) || parse_reason(value, &r->permanent))
        return 0;
    snprintf(err, errsize, "Temporary or Permanent is wanted, not \"%.40s\"", value);
    return -EINVAL;
}

static int
set_callback(struct redirect *r, const char *value, char *err, size_t errsize)
{
    if (is_none(value)) {
        r->callback[0] = '\0';
        return 0;
    }
    if (value[0] != '/' || strlen(value) > CALLBACK_MAX) {
        snprintf(err, errsize, "the absolute path of a program is wanted, not \"%.100s\"", value);
        return -EINVAL;
    }
    snprintf(r->callback, sizeof r->callback, "%s", value);
    return 0;
}

static bool
looks_like_name(const char *who)
{
    return strncasecmp(who, "iqn.", 4) == 0 || strncasecmp(who, "eui.", 4) == 0 ||
           strncasecmp(who, "naa.", 4) == 0 || strpbrk(who, "*?") != NULL;
}

/* The rule of exactly this WHO goes, is replaced in its place, or comes last (takes `rule`). */
static bool
put_rule(struct redirect *r, struct rule *rule, bool gone)
{
    unsigned i = 0;
    while (i < r->nrules && strcmp(r->rules[i].who, rule->who) != 0)
        i++;
    if (i == RULES_MAX)
        return false;
    if (i < r->nrules)
        rule_fini(&r->rules[i]);
    if (gone) {
        rule_fini(rule);
        if (i < r->nrules) {
            r->nrules--;
            memmove(&r->rules[i], &r->rules[i + 1], (r->nrules - i) * sizeof *r->rules);
        }
        return true;
    }
    if (i == r->nrules)
        r->rules = xrealloc(r->rules, ++r->nrules * sizeof *r->rules);
    r->rules[i] = *rule;
    return true;
}

static int
set_rule(struct redirect *r, const char *value, char *err, size_t errsize)
{
    char who[WHO_MAX + 1], where[REDIRECT_TEXT], reason[16] = "Temporary", more[2];
    int n = sscanf(value, "%255s %271s %15s %1s", who, where, reason, more);
    struct rule rule = {.stays = false};
    bool permanent;

    if (n < 2 || n > 3 || !parse_reason(reason, &permanent)) {
        snprintf(err, errsize,
                 "WHO ADDRESS[:PORT] [Temporary|Permanent], WHO here or WHO none is "
                 "wanted, not \"%.100s\"",
                 value);
        return -EINVAL;
    }
    if (acl_is_iface(who)) {
        snprintf(err, errsize, "interfaces are not followed here; a network address is wanted");
        return -EINVAL;
    }
    bool gone = strcmp(where, "none") == 0;
    rule.stays = strcmp(where, "here") == 0;
    if (!gone && !rule.stays && redirect_parse_to(where, PORT_DEFAULT, &rule.to, err, errsize) < 0)
        return -EINVAL;
    rule.to.permanent = permanent;
    const char *one[] = {who, NULL};
    bool name = looks_like_name(who);
    rule.acl = acl_new(name ? NULL : one, name ? one : NULL, err, errsize, NULL, 0);
    if (rule.acl == NULL)
        return -EINVAL;
    snprintf(rule.who, sizeof rule.who, "%s", who);
    if (put_rule(r, &rule, gone))
        return 0;
    rule_fini(&rule);
    snprintf(err, errsize, "a target holds at most %u rules", RULES_MAX);
    return -EINVAL;
}

static const struct setting {
    const char *name;
    int (*set)(struct redirect *r, const char *value, char *err, size_t errsize);
} settings[] = {
    {"RedirectAddress", set_address}, {"RedirectPort", set_port},
    {"RedirectReason", set_reason},   {"RedirectCallback", set_callback},
    {"redirect-initiator", set_rule},
};

const char *
redirect_odd(const struct redirect *r)
{
    if (r == NULL || r->port == PORT_DEFAULT || r->host[0] != '\0' || redirect_callback(r) != NULL)
        return NULL;
    return "RedirectPort has no effect without RedirectAddress";
}

struct redirect *
redirect_with(const struct redirect *old, const char *name, const char *value, int *rc, char *err,
              size_t errsize)
{
    *rc = -ENOENT;
    for (unsigned i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strcasecmp(settings[i].name, name) != 0)
            continue;
        char why[400] = "";
        struct redirect *r = copy(old);
        *rc = settings[i].set(r, value, why, sizeof why);
        r->fixed.text[0] = '\0';
        if (*rc == 0 && r->host[0] != '\0')
            *rc = make_to(r->host, r->port, &r->fixed);
        r->fixed.permanent = r->permanent;
        if (*rc == 0)
            return r;
        snprintf(err, errsize, "%s: %s", settings[i].name, why);
        redirect_put(r);
        return NULL;
    }
    return NULL;
}

bool
redirect_show(const struct redirect *r, unsigned i, const char **name, char *value, size_t size)
{
    if (r == NULL)
        return false;
    if (i >= 4) { /* the rules come last */
        if (i - 4 >= r->nrules)
            return false;
        const struct rule *rule = &r->rules[i - 4];
        *name = settings[4].name;
        snprintf(value, size, "%s %s%s", rule->who, rule->stays ? "here" : rule->to.text,
                 rule->stays          ? ""
                 : rule->to.permanent ? " Permanent"
                                      : " Temporary");
        return true;
    }
    *name = settings[i].name;
    if (i == 0)
        snprintf(value, size, "%s", r->host);
    else if (i == 1)
        snprintf(value, size, "%u", r->port);
    else if (i == 2)
        snprintf(value, size, "%s", r->permanent ? "Permanent" : "Temporary");
    else
        snprintf(value, size, "%s", r->callback);
    return true;
}

const char *
redirect_callback(const struct redirect *r)
{
    return r->callback[0] != '\0' ? r->callback : NULL;
}

/* --- the program's answer -------------------------------------------------------------------- */

bool
redirect_read_answer(const char *line, struct redirect_to *to, char *err, size_t errsize)
{
    char text[REDIRECT_TEXT + 32], host[HOST_MAX + 3];
    char *part[4] = {NULL, NULL, NULL, NULL}, *save = NULL;
    unsigned port = PORT_DEFAULT, n = 0;
    size_t len = strcspn(line, "\r\n");
    bool permanent = false;

    memset(to, 0, sizeof *to);
    while (len > 0 && isblank((unsigned char)line[len - 1]))
        len--;
    if (len == 0)
        return true;
    snprintf(err, errsize, "ADDRESS:PORT:REASON was expected, not \"%.*s\"",
             len < 100 ? (int)len : 100, line);
    if (len >= sizeof text)
        return false;
    memcpy(text, line, len);
    text[len] = '\0';
    /* The address keeps its brackets: colons in it are its own. */
    char *rest = text[0] == '[' ? strchr(text, ']') : text;
    rest = rest != NULL ? strchr(rest, ':') : NULL;
    if (rest != NULL)
        *rest++ = '\0';
    for (char *p = rest != NULL ? strtok_r(rest, ":", &save) : NULL; p != NULL;
         p = strtok_r(NULL, ":", &save)) {
        if (n == 4)
            return false;
        part[n++] = p;
    }
    /* PORT:REASON or PORT:TAG:REASON: nothing less, so that no chance word is taken for a host. A
     * portal group tag has no place in the TargetAddress of a redirection (RFC 7143 13.8). */
    if (n < 2 || n > 3 || !parse_port(part[0], &port) || !parse_reason(part[n - 1], &permanent) ||
        (n == 3 && strspn(part[1], "0123456789") != strlen(part[1])))
        return false;
    if (strlen(text) >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%s", text);
    if (redirect_parse_to(host, port, to, err, errsize) < 0)
        return false;
    to->permanent = permanent;
    return true;
}

/* --- the decision ---------------------------------------------------------------------------- */

/* Is that where the connection came in? IPv4 in IPv6's clothes is IPv4. */
static bool
is_here(const struct redirect_to *to, const struct sockaddr_storage *local)
{
    char text[64];
    return to->addr.ss_family != 0 && strcmp(portal_text(local, text, sizeof text), to->text) == 0;
}

void
redirect_moved(const struct conn *c, const struct redirect_to *to, struct redirect_answer *a)
{
    if (is_here(to, &c->local))
        return;
    a->status = to->permanent ? LS_MOVED_PERM : LS_MOVED_TEMP;
    a->why = to->permanent ? "the target has moved for good" : "the target has moved for now";
    memcpy(a->to, to->text, sizeof a->to);
}

void
redirect_static(const struct conn *c, const struct redirect *r, struct redirect_answer *a)
{
    if (r->fixed.text[0] != '\0')
        redirect_moved(c, &r->fixed, a);
}

static void
drained(const struct conn *c, const struct drain *d, struct redirect_answer *a)
{
    if (d->to.text[0] != '\0')
        redirect_moved(c, &d->to, a);
    if (a->status != LS_OK)
        return;
    a->status = LS_UNAVAILABLE;
    a->why = "the target is being drained";
}

void
redirect_decide(const struct conn *c, const struct tgt_node *n, const char *initiator,
                struct redirect_answer *a)
{
    const struct redirect *r = n->redirect;

    *a = (struct redirect_answer){.status = LS_OK, .why = ""};
    if (n->drain != NULL) {
        drained(c, n->drain, a);
        return;
    }
    if (r == NULL)
        return;
    for (unsigned i = 0; i < r->nrules; i++) {
        const struct rule *rule = &r->rules[i];
        if (!acl_admits(rule->acl, (const struct sockaddr *)&c->peer, initiator))
            continue;
        if (!rule->stays)
            redirect_moved(c, &rule->to, a);
        return;
    }
    if (redirect_callback(r) != NULL)
        a->status = LS_ASKING;
    else
        redirect_static(c, r, a);
}
