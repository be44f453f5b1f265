/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files -> lines -> raw tree, without meaning.  The rules are those of targets.conf as tgt-admin
 * reads it: `#` starts a comment anywhere unless escaped (\#) or in double quotes; a line that
 * starts with a slash and a star is a comment up to the closing pair; a backslash at the end
 * continues the line; a name and its value are parted by blanks or by `=`; <name value> ...
 * </name> is a block; `include` takes a file, a directory or a pattern.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/syntax.h"

#define DEPTH_MAX      16
#define LINE_MAX_BYTES (64u << 10)
#define BLOCK_MAX      4 /* nesting; two are used */

/* Where a run of bytes of the logical line came from. */
struct seg {
    size_t off;
    unsigned line, col;
};

struct parser {
    struct conf_raw *raw;
    struct conf_report *r;
    const struct conf_source *src;     /* NULL: include is not allowed */
    struct raw_node *block[BLOCK_MAX]; /* open blocks, outermost first */
    struct raw_node **tail[BLOCK_MAX + 1];
    unsigned nblocks;
    unsigned nfiles;
    size_t bytes;
};

/* One file being read. */
struct input {
    struct parser *p;
    struct conf_file *file;
    const char *text;
    size_t len, pos;
    unsigned line; /* of text[pos] */
    unsigned depth;
    unsigned base_blocks; /* blocks that were open when the file began */
    bool in_comment;
    char *buf; /* the logical line, NUL-terminated */
    size_t buflen, bufcap;
    struct seg *segs;
    size_t nsegs, segcap;
};

static void read_path(struct parser *p, struct conf_file *parent, const struct conf_pos *from,
                      const char *path, unsigned depth);

static struct conf_pos
at(const struct input *in, size_t off)
{
    struct conf_pos pos = {in->file->name, 1, 1};
    for (size_t i = 0; i < in->nsegs && in->segs[i].off <= off; i++) {
        pos.line = in->segs[i].line;
        pos.col = in->segs[i].col + (unsigned)(off - in->segs[i].off);
    }
    return pos;
}

static void
buf_add(struct input *in, const char *s, size_t n, unsigned line, unsigned col)
{
    if (in->buflen + n + 1 > in->bufcap) {
        in->bufcap = 2 * (in->buflen + n + 1);
        in->buf = source_grow(in->buf, in->buflen, in->bufcap);
    }
    if (in->nsegs == in->segcap) {
        in->segcap = 2 * in->segcap + 4;
        in->segs = xrealloc(in->segs, in->segcap * sizeof *in->segs);
    }
    in->segs[in->nsegs++] = (struct seg){in->buflen, line, col};
    memcpy(in->buf + in->buflen, s, n);
    in->buflen += n;
    in->buf[in->buflen] = 0;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The next physical line without its end; false at the end of the text. */
static bool
physical_line(struct input *in, const char **s, size_t *n)
{
    if (in->pos >= in->len)
        return false;
    const char *start = in->text + in->pos;
    const char *nl = memchr(start, '\n', in->len - in->pos);
    *s = start;
    *n = nl ? (size_t)(nl - start) : in->len - in->pos;
    in->pos += *n + (nl ? 1 : 0);
    in->line++;
    if (*n && start[*n - 1] == '\r')
        --*n;
    return true;
}

/* Joins continued lines into in->buf; comments that fill a line are never continued. */
static bool
logical_line(struct input *in)
{
    const char *s;
    size_t n;

    in->buflen = 0;
    in->nsegs = 0;
    buf_add(in, "", 0, in->line + 1, 1);
    while (physical_line(in, &s, &n)) {
        size_t lead = 0;
        while (lead < n && is_blank(s[lead]))
            lead++;
        bool more = n && s[n - 1] == '\\' && !(lead < n && s[lead] == '#');
        if (more)
            n--;
        if (in->buflen == 0)
            lead = 0;
        else if (lead > n)
            lead = n;
        buf_add(in, s + lead, n - lead, in->line, (unsigned)lead + 1);
        if (!more)
            return true;
        if (in->buflen > LINE_MAX_BYTES)
            break;
    }
    return in->buflen != 0;
}

/* Cuts the comment off; `\#` becomes `#` (the positions after it on the line shift with it). */
static void
cut_comment(struct input *in)
{
    bool quoted = false;
    char *b = in->buf;
    for (size_t i = 0; i < in->buflen; i++) {
        if (b[i] == '\\' && (b[i + 1] == '#' || b[i + 1] == '"')) {
            if (b[i + 1] == '#') {
                memmove(b + i, b + i + 1, in->buflen - i);
                in->buflen--;
            } else {
                i++;
            }
        } else if (b[i] == '"') {
            /* a quote that is never closed does not protect */
            if (quoted || strchr(b + i + 1, '"'))
                quoted = !quoted;
        } else if (b[i] == '#' && !quoted) {
            in->buflen = i;
            b[i] = 0;
            break;
        }
    }
    while (in->buflen && isspace((unsigned char)b[in->buflen - 1]))
        b[--in->buflen] = 0;
    char *star = strstr(b, " /*");
    if (star && in->buflen >= 5 && strcmp(b + in->buflen - 2, "*/") == 0) {
        in->buflen = (size_t)(star - b);
        *star = 0;
    }
}

/* Whether the value is one text in quotes; `"a b" "c d"` are two. */
static bool
is_quoted(const char *s, size_t n)
{
    if (n < 2 || (s[0] != '"' && s[0] != '\'') || s[n - 1] != s[0])
        return false;
    for (size_t i = 1; i + 1 < n; i++) {
        if (s[i] == '\\' && s[i + 1] == '"')
            i++;
        else if (s[i] == s[0] && is_blank(s[i + 1]))
            return false;
    }
    return true;
}

/* Whether it begins with a double quote that is the only one. */
static bool
is_open(const char *s, size_t n)
{
    if (n == 0 || s[0] != '"')
        return false;
    for (size_t i = 1; i < n; i++) {
        if (s[i] == '"')
            return false;
        if (s[i] == '\\' && i + 1 < n)
            i++;
    }
    return true;
}

/* Takes the quotes off; \" is a quote. */
static char *
unquote(const char *s, size_t n, bool quoted)
{
    if (quoted) {
        s++;
        n -= 2;
    }
    char *out = xmalloc(n + 1);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' && i + 1 < n && s[i + 1] == '"')
            i++;
        out[k++] = s[i];
    }
    out[k] = 0;
    return out;
}

/* Name and value out of buf[from, to). */
static struct raw_node *
node_new(struct input *in, size_t from, size_t to)
{
    struct raw_node *n = xcalloc(1, sizeof *n);
    const char *b = in->buf;
    size_t e = from, v;

    while (e < to && !is_blank(b[e]) && b[e] != '=')
        e++;
    v = e;
    while (v < to && is_blank(b[v]))
        v++;
    if (v < to && b[v] == '=') {
        v++;
        while (v < to && is_blank(b[v]))
            v++;
    }
    size_t end = to;
    while (end > v && is_blank(b[end - 1]))
        end--;
    n->file = in->file;
    n->pos = at(in, from);
    n->name = xmalloc(e - from + 1);
    memcpy(n->name, b + from, e - from);
    n->name[e - from] = 0;
    n->quoted = is_quoted(b + v, end - v);
    n->open = !n->quoted && is_open(b + v, end - v);
    n->value = unquote(b + v, end - v, n->quoted);
    n->vpos = at(in, v + n->quoted);
    return n;
}

static void
node_free(struct raw_node *n)
{
    free(n->name);
    secret_free_text(n->value);
    free(n->unserved);
    free(n);
}

static void
node_add(struct parser *p, struct raw_node *n)
{
    *p->tail[p->nblocks] = n;
    p->tail[p->nblocks] = &n->next;
}

static void
open_block(struct input *in, size_t from)
{
    struct parser *p = in->p;
    struct conf_pos pos = at(in, from);

    if (in->buf[in->buflen - 1] != '>') {
        conf_report_add(p->r, true, &pos, "a block starts with <name value>: the \">\" is missing");
        return;
    }
    size_t f = from + 1;
    while (is_blank(in->buf[f]))
        f++;
    struct raw_node *n = node_new(in, f, in->buflen - 1);
    n->is_block = true;
    n->pos = pos;
    if (!*n->name || p->nblocks == BLOCK_MAX) {
        if (*n->name)
            conf_report_add(p->r, true, &pos, "blocks are nested too deep");
        else
            conf_report_add(p->r, true, &pos, "a block without a name");
        node_free(n);
        return;
    }
    node_add(p, n);
    p->block[p->nblocks++] = n;
    p->tail[p->nblocks] = &n->children;
}

static void
close_block(struct input *in, size_t from)
{
    struct parser *p = in->p;
    struct conf_pos pos = at(in, from);
    const char *name = in->buf + from + 2;
    size_t n = strcspn(name, "> \t");

    if (in->buf[in->buflen - 1] != '>') {
        conf_report_add(p->r, true, &pos, "a block ends with </name>: the \">\" is missing");
        return;
    }
    if (p->nblocks <= in->base_blocks) {
        conf_report_add(p->r, true, &pos, "</%.*s> closes a block that is not open in this file",
                        (int)n, name);
        return;
    }
    const struct raw_node *open = p->block[p->nblocks - 1];
    if (strlen(open->name) != n || memcmp(open->name, name, n) != 0) {
        conf_report_add(p->r, true, &pos, "</%.*s> closes <%s> of line %u; want </%s>", (int)n,
                        name, open->name, open->pos.line, open->name);
    }
    p->nblocks--;
}

/* True when the line is an include (done or complained about). */
static bool
try_include(struct input *in, size_t from)
{
    struct parser *p = in->p;
    const char *s = in->buf + from;
    size_t end = in->buflen;

    if (strncmp(s, "<<include", 9) == 0 && end > from + 2 && strcmp(in->buf + end - 2, ">>") == 0) {
        from += 2;
        end -= 2;
    } else if (strncmp(s, "include", 7) != 0 || !(is_blank(s[7]) || s[7] == '=' || !s[7])) {
        return false;
    }
    struct raw_node *n = node_new(in, from, end);
    if (!*n->value)
        conf_report_add(p->r, true, &n->pos, "include wants a file, a directory or a pattern");
    else if (!p->src)
        conf_report_add(p->r, true, &n->pos, "include is not allowed here");
    else
        read_path(p, in->file, &n->vpos, n->value, in->depth + 1);
    node_free(n);
    return true;
}

/* `name <<END`: the value is the lines up to END, joined by blanks. */
static bool
heredoc(struct input *in, struct raw_node *n)
{
    const struct conf_pos pos = n->vpos;
    char *end = xstrdup(n->value + 2 + strspn(n->value + 2, " \t"));
    size_t len = strlen(end), used = 0, k;
    char *value = xstrdup("");
    const char *s;
    bool found = false;

    if (len >= 2 && strchr("\"'", end[0]) && end[len - 1] == end[0]) {
        memmove(end, end + 1, len -= 2);
        end[len] = 0;
    }
    while (*end && !found && used <= RAW_VALUE_MAX && physical_line(in, &s, &k)) {
        while (k && is_blank(*s))
            s++, k--;
        while (k && is_blank(s[k - 1]))
            k--;
        found = k == len && memcmp(s, end, len) == 0;
        if (found || memchr(s, 0, k))
            continue;
        if (!used)
            n->vpos = (struct conf_pos){in->file->name, in->line, 1};
        value = source_grow(value, used, used + k + 2);
        if (used)
            value[used++] = ' ';
        memcpy(value + used, s, k);
        value[used += k] = 0;
    }
    if (!*end)
        conf_report_add(in->p->r, true, &pos, "<< wants a word that ends the value");
    else if (!found)
        conf_report_add(in->p->r, true, &pos, "<<%s: no line \"%s\" ends it", end, end);
    free(end);
    secret_free_text(n->value);
    n->value = value;
    return found;
}

static void
one_line(struct input *in)
{
    struct parser *p = in->p;
    size_t f = 0;

    while (is_blank(in->buf[f]))
        f++;
    if (in->in_comment || (in->buf[f] == '/' && in->buf[f + 1] == '*')) {
        in->in_comment = !strstr(in->buf + (in->in_comment ? 0 : f + 2), "*/");
        return;
    }
    struct conf_pos pos = at(in, f);
    if (in->buflen > LINE_MAX_BYTES) {
        conf_report_add(p->r, true, &pos, "the line is longer than %u bytes", LINE_MAX_BYTES);
        return;
    }
    if (strlen(in->buf) != in->buflen) {
        pos = at(in, strlen(in->buf));
        conf_report_add(p->r, true, &pos, "a NUL byte: this is not a text file");
        return;
    }
    cut_comment(in);
    if (f >= in->buflen || try_include(in, f))
        return;
    if (in->buf[f] == '<' && in->buf[f + 1] == '/') {
        close_block(in, f);
    } else if (in->buf[f] == '<') {
        open_block(in, f);
    } else {
        struct raw_node *n = node_new(in, f, in->buflen);
        if (!*n->name) {
            conf_report_add(p->r, true, &n->pos, "a directive without a name");
            node_free(n);
        } else if (!n->quoted && strncmp(n->value, "<<", 2) == 0 && !heredoc(in, n)) {
            node_free(n);
        } else if (strlen(n->value) > RAW_VALUE_MAX) {
            conf_report_add(p->r, true, &n->vpos, "the value is longer than %u bytes",
                            RAW_VALUE_MAX);
            node_free(n);
        } else {
            node_add(p, n);
        }
    }
}

enum conf_syntax
file_syntax(const struct conf_file *f)
{
    while (f->syntax == CONF_SYNTAX_AUTO && f->parent)
        f = f->parent;
    return f->syntax == CONF_SYNTAX_AUTO ? CONF_SYNTAX_EVTGT : f->syntax;
}

static struct conf_file *
file_new(struct parser *p, struct conf_file *parent, const char *name)
{
    struct conf_file *f = xcalloc(1, sizeof *f);
    f->name = xstrdup(name);
    f->parent = parent;
    f->next = p->raw->files;
    p->raw->files = f;
    p->nfiles++;
    return f;
}

/* True: the file is IET's or LIO's, and read. */
static bool
foreign(struct parser *p, struct conf_file *file, const char *text, size_t len)
{
    if (file->syntax == CONF_SYNTAX_AUTO)
        file->syntax = syntax_guess(file->name, text, len);
    struct syntax_in in = {p->raw, file, p->src, p->r, file->syntax, text, len};
    bool lio = file->syntax == CONF_SYNTAX_LIO;
    if (!lio && file->syntax != CONF_SYNTAX_IET && file->syntax != CONF_SYNTAX_IET04 &&
        file->syntax != CONF_SYNTAX_IET_RULES)
        return false;
    if (p->nblocks) {
        struct conf_pos pos = {file->name, 0, 0};
        conf_report_add(p->r, true, &pos, "a file of IET or LIO cannot be included in a block");
        return true;
    }
    struct raw_node **tail = p->tail[0];
    *tail = lio ? syntax_lio(&in) : syntax_iet(&in);
    while (*tail)
        tail = &(*tail)->next;
    p->tail[0] = tail;
    return true;
}

static void
read_text(struct parser *p, struct conf_file *file, const char *text, size_t len, unsigned depth)
{
    struct input in = {
        .p = p, .file = file, .text = text, .len = len, .depth = depth, .base_blocks = p->nblocks};

    if (foreign(p, file, text, len))
        return;
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        in.pos = 3;
    while (logical_line(&in))
        one_line(&in);
    while (p->nblocks > in.base_blocks) {
        const struct raw_node *b = p->block[--p->nblocks];
        conf_report_add(p->r, true, &b->pos, "<%s> is never closed; want </%s>", b->name, b->name);
    }
    source_wipe_free(in.buf, in.bufcap);
    free(in.segs);
}

static struct conf_raw *
raw_new(struct parser *p, const struct conf_source *src, struct conf_report *r)
{
    *p = (struct parser){.raw = xcalloc(1, sizeof(struct conf_raw)), .r = r, .src = src};
    p->tail[0] = &p->raw->top;
    return p->raw;
}

static void
read_one(struct parser *p, struct conf_file *parent, const struct conf_pos *from, const char *path,
         unsigned depth)
{
    struct conf_stat st = {0};
    char *text = NULL;
    size_t len = 0;

    if (p->nfiles >= CONF_FILES_MAX) {
        conf_report_add(p->r, true, from, "more than %u files", CONF_FILES_MAX);
        return;
    }
    int rc = p->src->read(p->src->arg, path, CONF_BYTES_MAX - p->bytes, &text, &len, &st);
    if (rc < 0) {
        conf_report_add(p->r, true, from, "cannot read %s: %s", path, strerror(-rc));
        return;
    }
    p->bytes += len;
    struct conf_file *f = file_new(p, parent, path);
    f->st = st;
    read_text(p, f, text, len, depth);
    source_wipe_free(text, len);
}

/* An include: relative paths start at the including file's directory; a pattern may match
 * nothing, a plain path must exist. */
static void
read_path(struct parser *p, struct conf_file *parent, const struct conf_pos *from, const char *path,
          unsigned depth)
{
    char **names = NULL;
    size_t n = 0;

    if (depth > DEPTH_MAX) {
        conf_report_add(p->r, true, from, "files include each other more than %d deep", DEPTH_MAX);
        return;
    }
    const char *slash = strrchr(parent->name, '/');
    char *full = path[0] == '/' || !slash
                     ? xstrdup(path)
                     : xasprintf("%.*s/%s", (int)(slash - parent->name), parent->name, path);
    int rc = p->src->list(p->src->arg, full, &names, &n);
    if (rc == -ENOTDIR)
        read_one(p, parent, from, full, depth);
    else if (rc < 0)
        conf_report_add(p->r, true, from, "cannot read %s: %s", full, strerror(-rc));
    for (size_t i = 0; rc == 0 && i < n; i++)
        read_one(p, parent, from, names[i], depth);
    if (rc == 0)
        conf_names_free(names, n);
    free(full);
}

struct conf_raw *
raw_read(const struct conf_source *src, const char *path, enum conf_syntax syntax,
         struct conf_report *r)
{
    struct parser p;
    struct conf_raw *raw = raw_new(&p, src, r);
    struct conf_file *f = file_new(&p, NULL, path);
    char *text = NULL;
    size_t len = 0;

    f->syntax = syntax;
    int rc = src->read(src->arg, path, CONF_BYTES_MAX, &text, &len, &f->st);
    if (rc < 0) {
        struct conf_pos pos = {f->name, 0, 0};
        conf_report_add(r, true, &pos, "cannot read the file: %s", strerror(-rc));
        return raw;
    }
    p.bytes = len;
    read_text(&p, f, text, len, 0);
    source_wipe_free(text, len);
    return raw;
}

struct conf_raw *
raw_parse(const char *name, enum conf_syntax syntax, const char *text, size_t len,
          struct conf_report *r)
{
    struct parser p;
    struct conf_raw *raw = raw_new(&p, NULL, r);
    struct conf_file *f = file_new(&p, NULL, name);

    f->syntax = syntax;
    read_text(&p, f, text, len, 0);
    return raw;
}

void
raw_nodes_free(struct raw_node *n)
{
    while (n) {
        struct raw_node *next = n->next;
        raw_nodes_free(n->children);
        node_free(n);
        n = next;
    }
}

void
raw_free(struct conf_raw *raw)
{
    if (!raw)
        return;
    raw_nodes_free(raw->top);
    while (raw->files) {
        struct conf_file *f = raw->files;
        raw->files = f->next;
        free(f->name);
        free(f);
    }
    free(raw);
}
