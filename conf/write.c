/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct conf -> canonical text, and what differs between two of them: both by the table of
 * directives, so that nothing is written that is not read, nor forgotten in a comparison.  What has
 * its default value is not written, except what is counted up where it is not said: the numbers of
 * targets and logical units.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/priv.h"

/* --- texts ----------------------------------------------------------------------------------- */

static void
need(struct text *t, size_t more)
{
    if (t->n + more + 1 > t->cap) {
        t->cap = 2 * (t->n + more) + 64;
        t->p = source_grow(t->p, t->n, t->cap);
    }
}

static void
add_bytes(struct text *t, const char *p, size_t n)
{
    need(t, n);
    memcpy(t->p + t->n, p, n);
    t->n += n;
    t->p[t->n] = 0;
}

void
text_add(struct text *t, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n > 0) {
        need(t, (size_t)n);
        vsnprintf(t->p + t->n, (size_t)n + 1, fmt, again);
        t->n += (size_t)n;
    }
    va_end(again);
}

void
text_reset(struct text *t)
{
    if (t->n)
        secret_wipe(t->p, t->n);
    t->n = 0;
    t->left_out = false;
    if (t->p)
        t->p[0] = 0;
}

void
text_fini(struct text *t)
{
    source_wipe_free(t->p, t->n);
    *t = (struct text){.secrets = t->secrets};
}

/* Each of `which` behind a backslash. */
static void
add_escaped(struct text *t, const char *s, size_t n, const char *which)
{
    for (size_t i = 0; i < n; i++) {
        if (strchr(which, s[i]))
            add_bytes(t, "\\", 1);
        add_bytes(t, s + i, 1);
    }
}

void
text_add_word(struct text *t, const char *word, size_t len)
{
    bool plain = len != 0 && word[0] != '"' && word[0] != '@';
    for (size_t i = 0; i < len && plain; i++)
        plain = (unsigned char)word[i] > ' ';
    if (plain) {
        add_bytes(t, word, len);
        return;
    }
    /* "\@ and so on: no file's name */
    text_add(t, "\"%s", len && word[0] == '@' ? "\\" : "");
    add_escaped(t, word, len, "\"\\");
    text_add(t, "\"");
}

/* True: stands for itself where a value is read, but for #, which raw.c takes behind a backslash
 * in quotes and out of them. */
static bool
is_plain(const char *v)
{
    size_t n = strlen(v);
    if (n == 0 || strchr("\"'=<", v[0]) || v[n - 1] == '\\')
        return false;
    if (strstr(v, "\\\"") || strstr(v, "/*"))
        return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)v[i];
        if (c < ' ' || c == 0x7f || (c == ' ' && (i == 0 || i == n - 1)))
            return false;
    }
    return true;
}

static void
add_value(struct text *t, const char *v)
{
    bool plain = is_plain(v);
    text_add(t, "%s", plain ? "" : "\"");
    add_escaped(t, v, strlen(v), plain ? "#" : "\"#");
    text_add(t, "%s", plain ? "" : "\"");
}

/* --- directives ------------------------------------------------------------------------------ */

struct writer {
    struct text out, value, fallback;
    unsigned depth;
};

static void
indent(struct writer *w)
{
    for (unsigned i = 0; i < w->depth; i++)
        text_add(&w->out, "    ");
}

static void
put_line(struct writer *w, const char *name, const char *value)
{
    indent(w);
    text_add(&w->out, "%s ", name);
    add_value(&w->out, value);
    text_add(&w->out, "\n");
}

static void
open_block(struct writer *w, const char *name, const char *value)
{
    indent(w);
    text_add(&w->out, "<%s ", name);
    add_value(&w->out, value);
    text_add(&w->out, ">\n");
    w->depth++;
}

static void
close_block(struct writer *w, const char *name)
{
    w->depth--;
    indent(w);
    text_add(&w->out, "</%s>\n", name);
}

/* The i-th value of a row; "" and false when there is none. */
static bool
show(const struct directive *d, const void *obj, unsigned i, struct text *out)
{
    text_reset(out);
    if (d->type->show(obj, d, i, out))
        return true;
    text_reset(out);
    return false;
}

static bool
same_text(const struct text *a, const struct text *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0);
}

/* All rows of a scope, but what is as in `plain`, an object with nothing set. */
static void
put_rows(struct writer *w, enum conf_scope scope, const void *obj, const void *plain)
{
    const struct directive *d;

    for (unsigned r = 0; (d = table_row(r)); r++) {
        if (!table_shown(d, scope))
            continue;
        for (unsigned i = 0; show(d, obj, i, &w->value); i++) {
            bool given = show(d, plain, i, &w->fallback);
            if (!given || !same_text(&w->value, &w->fallback)) {
                if (w->value.left_out) {
                    indent(w);
                    text_add(&w->out, "# the secret of the next line is left out\n");
                }
                put_line(w, d->name, w->value.n ? w->value.p : "");
            }
            if (!d->many)
                break;
        }
    }
}

static void
put_portal(struct writer *w, const struct conf_portal *p)
{
    struct conf_portal plain = {.group = 1};

    if (p->group == 1 && !*p->advertise) {
        put_line(w, "portal", p->at.name);
        return;
    }
    open_block(w, "portal", p->at.name);
    put_rows(w, SC_PORTAL, p, &plain);
    close_block(w, "portal");
}

static void
put_globals(struct writer *w, const struct conf *c)
{
    struct conf *plain = conf_new();

    put_rows(w, SC_GLOBAL, c, plain);
    if (c->no_portals && c->nportals == 0)
        put_line(w, "portal", "none");
    for (unsigned i = 0; i < c->nportals; i++)
        put_portal(w, &c->portals[i]);
    conf_free(plain);
}

static void
put_lun(struct writer *w, const struct conf_lun *l)
{
    const char *name = l->direct_store ? "direct-store" : "backing-store";
    struct conf_lun plain;

    conf_lun_init(&plain);
    open_block(w, name, *l->path ? l->path : "none");
    put_rows(w, SC_LUN, l, &plain);
    close_block(w, name);
    conf_lun_fini(&plain);
}

static void
put_target(struct writer *w, const struct conf_target *t)
{
    struct conf_target plain;

    conf_target_init(&plain);
    open_block(w, "target", t->name);
    /* rows of both scopes are the logical units', and stand in their blocks */
    put_rows(w, SC_TARGET, t, &plain);
    for (unsigned i = 0; i < t->nkeys; i++)
        put_line(w, t->keys[i].name, t->keys[i].value);
    for (unsigned i = 0; i < t->nluns; i++)
        put_lun(w, &t->luns[i]);
    close_block(w, "target");
}

static void
writer_init(struct writer *w, unsigned flags)
{
    *w = (struct writer){.value.secrets = flags & CONF_WRITE_SECRETS};
    need(&w->out, 0);
    w->out.p[0] = 0;
}

static char *
writer_end(struct writer *w)
{
    text_fini(&w->value);
    text_fini(&w->fallback);
    return w->out.p;
}

char *
conf_write(const struct conf *c, unsigned flags)
{
    struct writer w;

    writer_init(&w, flags);
    put_globals(&w, c);
    for (unsigned i = 0; i < c->ntargets; i++) {
        if (w.out.n)
            text_add(&w.out, "\n");
        put_target(&w, &c->targets[i]);
    }
    return writer_end(&w);
}

char *
conf_write_globals(const struct conf *c, unsigned flags)
{
    struct writer w;

    writer_init(&w, flags);
    put_globals(&w, c);
    return writer_end(&w);
}

char *
conf_write_target(const struct conf_target *t, unsigned flags)
{
    struct writer w;

    writer_init(&w, flags);
    put_target(&w, t);
    return writer_end(&w);
}

bool
conf_can_write(const char *value)
{
    return strlen(value) <= RAW_VALUE_MAX && !strchr(value, '\n');
}
