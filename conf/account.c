/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `incominguser NAME SECRET [INITIATOR...]`, `outgoinguser NAME SECRET` and their kin for
 * discovery.  SECRET is the secret itself (then the file should be nobody else's to read), or @ and
 * the absolute path of a file that holds it in its first line.  The secret moves from the raw tree
 * into a struct secret at once; what it leaves behind is wiped.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/priv.h"

#define NAME_MAX_BYTES  255u
#define SECRET_FILE_MAX 4096u /* bytes; its first line counts */
#define SECRET_ADVISED  12u   /* bytes: 96 bits, RFC 7143 9.2.1 */

struct word {
    char *p; /* NULL: there is none; else the caller's to wipe and free */
    size_t at;
    bool open;    /* begins with a quote that is not closed */
    bool literal; /* is what it is, even when it begins with @ */
};

/* The end of a word in double quotes: a quote that has no backslash before it, and a blank or the
 * end behind it; NULL: not closed. */
static const char *
quoted_end(const char *p)
{
    for (p++; *p && *p != '"'; p++) {
        if (*p == '\\' && (p[1] == '"' || p[1] == '\\'))
            p++;
    }
    return *p && (p[1] == '\0' || p[1] == ' ' || p[1] == '\t') ? p : NULL;
}

/* The first word of *s, which moves behind it.  In double quotes it may have blanks and #; \" and
 * \\ are a quote and a backslash there, and one that begins with \@ is no file's name. */
static struct word
next_word(const char **s, const char *start)
{
    const char *p = *s + strspn(*s, " \t");
    const char *end = *p == '"' ? quoted_end(p) : NULL;
    size_t n = strcspn(p, " \t"), k = 0;
    struct word w = {.open = *p == '"' && !end};

    if (end) {
        p++;
        w.literal = p[0] == '\\' && p[1] == '@';
        p += w.literal;
        n = (size_t)(end - p);
    }
    *s = end ? end + 1 : p + n;
    w.at = (size_t)(p - start);
    if (n == 0)
        return w;
    w.p = xmalloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        if (end && p[i] == '\\' && (p[i + 1] == '"' || p[i + 1] == '\\'))
            i++;
        w.p[k++] = p[i];
    }
    w.p[k] = 0;
    return w;
}

void
account_show(const struct conf_account *a, struct text *out)
{
    text_add_word(out, a->user, strlen(a->user));
    text_add(out, " ");
    if (out->secrets) {
        text_add_word(out, (const char *)secret_bytes(a->secret), secret_len(a->secret));
    } else {
        text_add(out, "@/secret-left-out");
        out->left_out = true;
    }
    for (unsigned i = 0; i < a->nnames; i++) {
        text_add(out, " ");
        text_add_word(out, a->names[i], strlen(a->names[i]));
    }
}

/* NULL: the file is fit to hold a secret. */
static const char *
unfit(const struct conf_source *src, const struct conf_stat *st)
{
    if (!st->is_file)
        return "no regular file";
    if (st->uid != 0 && st->uid != src->uid)
        return "it belongs to another user";
    if (st->mode & 077)
        return "others may read or write it: chmod 600";
    return NULL;
}

/* The first line of text, as a secret; NULL and why. */
static struct secret *
first_line(const char *text, size_t n, const char **why)
{
    const char *nl = memchr(text, '\n', n);
    size_t len = nl ? (size_t)(nl - text) : n;

    if (len != 0 && text[len - 1] == '\r')
        len--;
    if (len == 0)
        *why = "its first line is empty";
    else if (len > SECRET_MAX)
        *why = "its first line is longer than 255 bytes";
    else if (memchr(text, 0, len))
        *why = "a NUL byte in its first line";
    else
        return secret_new(text, len);
    return NULL;
}

int
account_secret_file(const struct conf_source *src, const char *path, struct secret **out, char *err,
                    size_t errsize)
{
    struct conf_stat st = {0};
    const char *why = NULL;
    char *text = NULL;
    size_t n = 0;
    int rc = src->read(src->arg, path, SECRET_FILE_MAX, &text, &n, &st);

    if (rc < 0)
        why = strerror(-rc);
    else if (!(why = unfit(src, &st)))
        *out = first_line(text, n, &why);
    source_wipe_free(text, n);
    if (!why)
        return 0;
    snprintf(err, errsize, "%s: %s", path, why);
    return -EINVAL;
}

int
conf_secret_file(const char *path, struct secret **out, char *err, size_t errsize)
{
    const struct conf_source src = conf_source_files();
    return account_secret_file(&src, path, out, err, errsize);
}

/* A file with secrets is its owner's alone. Files of other targets are often not: told, taken. */
static void
judge_file(const struct account_ctx *ctx, const struct raw_node *n, const struct conf_pos *pos)
{
    struct conf_file *f = n->file;
    bool ours = file_syntax(f) == CONF_SYNTAX_EVTGT;

    if (f->told || !f->st.is_file)
        return;
    if (f->st.mode & 077) {
        conf_report_add(ctx->r, ours, pos,
                        "%s holds a secret and others may read or write it (mode %03o): chmod 600 "
                        "%s, or keep the accounts in an included file of mode 600, or the secret "
                        "alone in one and write @/PATH",
                        f->name, f->st.mode & 0777, f->name);
        f->told = true;
    } else if (ours && f->st.uid != 0 && f->st.uid != ctx->src->uid) {
        conf_report_add(ctx->r, true, pos,
                        "%s holds a secret and belongs to another user (uid %u): chown it to root",
                        f->name, (unsigned)f->st.uid);
        f->told = true;
    }
}

/* The secret of a directive, or NULL: complained. Takes over and wipes `word`. */
static struct secret *
take_secret(const struct account_ctx *ctx, const struct raw_node *n, const struct conf_pos *pos,
            struct word w)
{
    struct conf_report *r = ctx->r;
    struct secret *s = NULL;
    char err[512];
    char *word = w.p;
    size_t len = strlen(word);

    if (!w.literal && word[0] == '@' && word[1] == '/') {
        if (account_secret_file(ctx->src, word + 1, &s, err, sizeof err) < 0)
            conf_report_add(r, true, pos, "%s: %s", n->name, err);
    } else if (len > SECRET_MAX) {
        conf_report_add(r, true, pos, "%s: a secret holds at most %u bytes", n->name, SECRET_MAX);
    } else {
        s = secret_new(word, len);
        if (!w.literal && word[0] == '@')
            conf_report_add(r, false, pos,
                            "%s: this is taken for the secret itself; one in a file is written "
                            "@/PATH, from the root",
                            n->name);
        judge_file(ctx, n, pos);
    }
    if (s && secret_len(s) < SECRET_ADVISED)
        conf_report_add(r, false, pos,
                        "%s: the secret has %zu bytes; one of less than %u can be found by trying "
                        "(RFC 7143 9.2.1)",
                        n->name, secret_len(s), SECRET_ADVISED);
    secret_free_text(word);
    return s;
}

void
conf_name_look(struct conf_report *r, const struct conf_pos *pos, const char *directive,
               const char *name)
{
    static const char *const types[] = {"iqn.", "eui.", "naa."};
    size_t plain = strcspn(name, "*?[");
    for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
        if (strncasecmp(name, types[i], plain < 4 ? plain : 4) == 0)
            return;
    }
    conf_report_add(r, false, pos,
                    "%s: \"%s\" fits no initiator: names begin with iqn., eui. or naa.", directive,
                    name);
}

static void
take_names(const struct account_ctx *ctx, const struct raw_node *n, struct conf_account *a,
           const char *rest)
{
    const struct conf_checks *ck = ctx->ck;
    struct conf_report *r = ctx->r;
    char err[512] = "";
    for (struct word w; (w = next_word(&rest, n->value)).p;) {
        struct conf_pos pos = n->vpos;
        char *word = w.p;
        pos.col += (unsigned)w.at;
        if (a->outgoing)
            conf_report_add(r, true, &pos,
                            "%s wants a name and a secret; only an incominguser can be limited to "
                            "initiators",
                            n->name);
        else if (ck->initiator && ck->initiator(word, err, sizeof err, ck->arg) < 0)
            conf_report_add(r, true, &pos, "%s: %s", n->name, err);
        else
            conf_name_look(r, &pos, n->name, word);
        a->names = xrealloc(a->names, (a->nnames + 1) * sizeof *a->names);
        a->names[a->nnames++] = word;
    }
}

/* Against those that are in the list already. */
static void
compare(struct conf_report *r, const struct conf_accounts *list, const struct conf_account *a)
{
    for (unsigned i = 0; i < list->n; i++) {
        const struct conf_account *b = &list->v[i];
        if (a->outgoing && b->outgoing)
            conf_report_add(r, true, &a->pos, "a second outgoing account; the first is at %s",
                            WHERE(&b->pos));
        else if (a->outgoing == b->outgoing && strcmp(a->user, b->user) == 0 &&
                 (!a->nnames || !b->nnames))
            conf_report_add(r, true, &a->pos, "account %s is given twice; the first is at %s",
                            a->user, WHERE(&b->pos));
        else if (a->outgoing != b->outgoing && secret_same(a->secret, b->secret))
            conf_report_add(r, true, &a->pos,
                            "the same secret for both directions (RFC 7143 9.2.1); the other is at "
                            "%s",
                            WHERE(&b->pos));
    }
}

void
conf_account_add(const struct account_ctx *ctx, struct conf_accounts *list, bool outgoing,
                 const struct raw_node *n)
{
    struct conf_report *r = ctx->r;
    struct conf_account a = {.pos = n->pos, .outgoing = outgoing};
    const char *rest = n->value;
    struct conf_pos pos = n->vpos;
    struct word user = next_word(&rest, n->value), w = next_word(&rest, n->value);

    a.user = user.p;
    pos.col += (unsigned)w.at;
    if (!user.p || !w.p) {
        conf_report_add(r, true, &n->vpos, "%s wants a name and a secret", n->name);
        secret_free_text(w.p);
    } else if (user.open || w.open) {
        conf_report_add(r, true, user.open ? &n->vpos : &pos, "%s: a quote is not closed", n->name);
        secret_free_text(w.p);
    } else if (strlen(a.user) > NAME_MAX_BYTES) {
        conf_report_add(r, true, &n->vpos, "%s: a name holds at most %u bytes", n->name,
                        NAME_MAX_BYTES);
        secret_free_text(w.p);
    } else {
        a.secret = take_secret(ctx, n, &pos, w);
        take_names(ctx, n, &a, rest);
    }
    secret_wipe(n->value, strlen(n->value));
    if (!a.secret) {
        conf_account_fini(&a);
        return;
    }
    compare(r, list, &a);
    list->v = xrealloc(list->v, (list->n + 1) * sizeof *list->v);
    list->v[list->n++] = a;
}

void
conf_account_fini(struct conf_account *a)
{
    for (unsigned i = 0; i < a->nnames; i++)
        free(a->names[i]);
    free(a->names);
    free(a->user);
    secret_put(a->secret);
}

void
conf_accounts_fini(struct conf_accounts *list)
{
    for (unsigned i = 0; i < list->n; i++)
        conf_account_fini(&list->v[i]);
    free(list->v);
}

/* A bound account of that name, secret, and limits; NULL: none. */
static const struct conf_account *
bound_in(const struct conf_accounts *list, const struct conf_account *a)
{
    for (unsigned i = 0; i < list->n; i++) {
        const struct conf_account *b = &list->v[i];
        if (strcmp(a->user, b->user) == 0 && secret_same(a->secret, b->secret) &&
            (a->nnames == 0) == (b->nnames == 0))
            return b;
    }
    return NULL;
}

void
conf_unbound_only(struct conf *c, struct conf_report *r)
{
    struct conf_accounts *list = &c->unbound;
    unsigned n = 0;

    for (unsigned i = 0; i < list->n; i++) {
        struct conf_account *a = &list->v[i];
        const struct conf_account *b = bound_in(&c->accounts, a);
        b = b ? b : bound_in(&c->discovery, a);
        for (unsigned k = 0; k < c->ntargets && !b; k++)
            b = bound_in(&c->targets[k].accounts, a);
        if (!b) {
            list->v[n++] = *a;
            continue;
        }
        if (r)
            conf_report_add(r, false, &a->pos, "account %s is bound at %s: this line says nothing",
                            a->user, WHERE(&b->pos));
        conf_account_fini(a);
    }
    list->n = n;
}

static bool
has(const struct conf_accounts *list, bool outgoing)
{
    for (unsigned i = 0; i < list->n; i++) {
        if (list->v[i].outgoing == outgoing)
            return true;
    }
    return false;
}

void
conf_accounts_check(struct conf_report *r, const struct conf_accounts *own,
                    const struct conf_accounts *common)
{
    const struct conf_accounts *in = has(own, false) ? own : common;
    const struct conf_accounts *out = has(own, true) ? own : common;
    const struct conf_account *o = NULL;

    for (unsigned i = 0; i < out->n; i++)
        o = out->v[i].outgoing ? &out->v[i] : o;
    if (!o)
        return;
    if (!has(in, false) && out == own)
        conf_report_add(
            r, false, &o->pos,
            "an outgoing account without an incoming one has no effect: nobody is asked "
            "to authenticate");
    for (unsigned i = 0; in != out && i < in->n; i++) {
        const struct conf_account *a = &in->v[i];
        if (!a->outgoing && secret_same(a->secret, o->secret))
            conf_report_add(r, true, &a->pos,
                            "the same secret for both directions (RFC 7143 9.2.1); the other is at "
                            "%s",
                            WHERE(&o->pos));
    }
}
