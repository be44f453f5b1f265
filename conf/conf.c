/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entry points of the room: reports, reading, freeing, and the small value parsers.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "conf/conf.h"
#include "conf/priv.h"

#define MSG_MAX 1000 /* a file of nonsense must not fill the memory with complaints */

void
conf_report_init(struct conf_report *r)
{
    memset(r, 0, sizeof *r);
}

void
conf_report_fini(struct conf_report *r)
{
    for (unsigned i = 0; i < r->n; i++) {
        free(r->v[i].file);
        free(r->v[i].text);
    }
    free(r->v);
    memset(r, 0, sizeof *r);
}

static void __attribute__((format(printf, 4, 0)))
add_msg(struct conf_report *r, struct conf_msg m, const struct conf_pos *pos, const char *fmt,
        va_list ap)
{
    char text[1024];

    if (m.is_error)
        r->nerrors++;
    if (m.is_loss)
        r->nlosses++;
    if (r->n >= MSG_MAX)
        return;
    vsnprintf(text, sizeof text, fmt, ap);
    if ((r->n & (r->n + 1)) == 0 || r->n == 0)
        r->v = xrealloc(r->v, (2 * (size_t)r->n + 2) * sizeof *r->v);
    m.file = xstrdup(pos->file);
    m.line = pos->line;
    m.col = pos->col;
    m.text = xstrdup(text);
    r->v[r->n++] = m;
}

void
conf_report_add(struct conf_report *r, bool is_error, const struct conf_pos *pos, const char *fmt,
                ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_msg(r, (struct conf_msg){.is_error = is_error}, pos, fmt, ap);
    va_end(ap);
}

void
conf_report_loss(struct conf_report *r, const struct conf_pos *pos, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_msg(r, (struct conf_msg){.is_loss = true}, pos, fmt, ap);
    va_end(ap);
}

void
conf_report_admin(struct conf_report *r, const struct conf_pos *pos, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_msg(r, (struct conf_msg){.is_loss = true, .is_admin = true}, pos, fmt, ap);
    va_end(ap);
}

struct conf *
conf_new(void)
{
    struct conf *c = xcalloc(1, sizeof *c);
    c->workers = c->affine = CONF_UNSET;
    c->login_timeout_s = c->max_half_open = c->max_sessions = CONF_UNSET;
    c->max_half_open_per_addr = c->keepalive_idle_s = c->keepalive_interval_s = CONF_UNSET;
    c->keepalive_count = c->user_timeout_s = c->dscp = CONF_UNSET;
    c->redirect_timeout_s = c->nop_interval_s = c->nop_count = CONF_UNSET;
    c->isns_port = c->autosave = c->ids = c->control_port = CONF_UNSET;
    c->shutdown_timeout_s = c->busy_poll_us = CONF_UNSET;
    c->chap_algs = c->chap_sha1_7 = c->login_delay_ms = CONF_UNSET;
    return c;
}

void
conf_target_init(struct conf_target *t)
{
    memset(t, 0, sizeof *t);
    t->nop_interval_s = t->nop_count = t->max_cmds = CONF_UNSET;
    t->ids = t->chap_algs = t->chap_sha1_7 = CONF_UNSET;
}

void
conf_target_fini(struct conf_target *t)
{
    for (unsigned k = 0; k < t->nluns; k++)
        conf_lun_fini(&t->luns[k]);
    free(t->luns);
    free(t->keys);
    free(t->addrs);
    free(t->locals);
    free(t->redirects);
    free(t->names);
    conf_accounts_fini(&t->accounts);
    free(t->binds);
    memset(t, 0, sizeof *t);
}

void
conf_free(struct conf *c)
{
    if (!c)
        return;
    for (unsigned i = 0; i < c->ntargets; i++)
        conf_target_fini(&c->targets[i]);
    free(c->targets);
    free(c->portals);
    conf_accounts_fini(&c->accounts);
    conf_accounts_fini(&c->discovery);
    conf_accounts_fini(&c->unbound);
    for (unsigned i = 0; i < CONF_ACCESS_FILES; i++)
        conf_access_fini(&c->access[i]);
    free(c->isns_servers);
    raw_free(c->raw);
    conf_kept_free(c);
    free(c);
}

enum conf_syntax
conf_syntax_of(const struct conf *c)
{
    const struct conf_file *f = c->raw ? c->raw->files : NULL;
    while (f && f->parent)
        f = f->next;
    return f ? file_syntax(f) : CONF_SYNTAX_EVTGT;
}

static struct conf *
finish(struct conf_raw *raw, const struct conf_source *src, const struct conf_checks *checks,
       struct conf_report *r)
{
    struct conf *c = build(raw, src, checks, r);
    if (r->nerrors) {
        conf_free(c);
        return NULL;
    }
    return c;
}

struct conf *
conf_read(const char *path, const struct conf_checks *checks, struct conf_report *r)
{
    const struct conf_source src = conf_source_files();
    return finish(raw_read(&src, path, CONF_SYNTAX_AUTO, r), &src, checks, r);
}

struct conf *
conf_parse(const char *name, const char *text, size_t len, const struct conf_checks *checks,
           struct conf_report *r)
{
    const struct conf_source src = conf_source_files();
    return finish(raw_parse(name, CONF_SYNTAX_AUTO, text, len, r), &src, checks, r);
}

struct conf *
conf_read_bundle(struct conf_bundle *b, const struct conf_checks *checks, struct conf_report *r)
{
    const struct conf_source src = bundle_source(b);
    return finish(bundle_raw(b, &src, r), &src, checks, r);
}

int
conf_parse_bool(const char *text, bool *out)
{
    static const char *const yes[] = {"1", "on", "yes", "true"};
    static const char *const no[] = {"0", "off", "no", "false"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (strcasecmp(text, yes[i]) == 0) {
            *out = true;
            return 0;
        }
        if (strcasecmp(text, no[i]) == 0) {
            *out = false;
            return 0;
        }
    }
    return -EINVAL;
}

int
conf_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    unsigned base = 10;
    const char *p = text;
    uint64_t v = 0;

    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        base = 16;
        p += 2;
    }
    if (!*p)
        return -EINVAL;
    for (; *p; p++) {
        unsigned c = (unsigned char)*p, d;
        if (c >= '0' && c <= '9')
            d = c - '0';
        else if (base == 16 && isxdigit((int)c))
            d = (unsigned)tolower((int)c) - 'a' + 10;
        else
            return -EINVAL;
        if (v > (UINT64_MAX - d) / base)
            return -EINVAL;
        v = v * base + d;
    }
    if (v < min || v > max)
        return -EINVAL;
    *out = v;
    return 0;
}
