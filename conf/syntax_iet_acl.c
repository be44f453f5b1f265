/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IET's initiators.allow, initiators.deny and targets.allow.  They are looked for beside ietd.conf,
 * then in /etc/iet and /etc, where IET itself looks.  Where they say who is admitted they stay in
 * use, by directives that have their meaning.  Else (0.4 without a deny file, none of them, a file
 * that another one includes: directives would hold for that one's targets too; or asked for) they
 * become rules of each target.  Of a file the first line that names the target, or ALL, is the one
 * that counts.
 *
 *   initiators.deny exists   admitted is whom it does not name, or initiators.allow does (both
 *                            generations)
 *   it does not              1.4.19: whom initiators.allow names; nobody when there is no such
 * file. 0.4: everybody, whatever initiators.allow says targets.allow exists     a target is at the
 * addresses that its line names, and at no others
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/syntax.h"

enum { ALLOW, DENY, TARGETS, FILES };
static const char *const names[FILES] = {"initiators.allow", "initiators.deny", "targets.allow"};
static const char *const directives[FILES] = {"initiators-allow", "initiators-deny",
                                              "targets-allow"};

struct entry {
    char *text;
    struct conf_pos pos;
    enum { ENTRY_ALL, ENTRY_ADDRESS, ENTRY_NAME, ENTRY_OTHER } kind;
};

struct line {
    char *target;
    struct conf_pos pos;
    struct entry *v;
    unsigned n;
};

struct acl_file {
    struct conf_file *file; /* NULL: there is none */
    char *text;             /* NULL: it cannot be read */
    size_t len;
    struct line *v;
    size_t n;
};

struct iet_access {
    const struct syntax_in *in;
    struct acl_file f[FILES];
    bool in_use; /* by directives */
};

/* --- reading --------------------------------------------------------------------------------- */

static bool
is_address(char *text)
{
    char *t = text;
    size_t n = strlen(t);

    if (t[0] == '[') { /* [IPv6] or [IPv6]/bits: ours are without brackets */
        char *close = strchr(t, ']');
        if (!close || (close[1] && close[1] != '/'))
            return false;
        memmove(close, close + 1, n - (size_t)(close - t));
        memmove(t, t + 1, strlen(t));
        return strspn(t, "0123456789abcdefABCDEF:./") == strlen(t);
    }
    size_t k = strspn(t, "0123456789./");
    if (k == n && strchr(t, '.'))
        return true;
    return strchr(t, ':') && strspn(t, "0123456789abcdefABCDEF:./") == n;
}

/* IET's names are regular expressions (basic) between ^ and $, ours patterns with *, ? and sets. */
static bool
name_pattern(char *text)
{
    char *out = text;
    const char *p = text + (text[0] == '^');

    for (; *p; p++) {
        if (p[0] == '$' && !p[1])
            break;
        if (p[0] == '.' && p[1] == '*') {
            *out++ = '*';
            p++;
        } else if (p[0] == '\\' && p[1] == '.') {
            *out++ = '.';
            p++;
        } else if (p[1] == '*' || strchr("*?[]\\^$", *p)) {
            return false;
        } else {
            *out++ = *p; /* a dot: that character alone, of all that IET would take */
        }
    }
    *out = 0;
    return out > text;
}

static void
add_entries(struct iet_access *a, unsigned which, struct line *l, char *text, struct conf_pos pos)
{
    char *start = text;
    while (*text) {
        size_t n = strcspn(text, ",");
        char *one = text + strspn(text, " \t"), *end = text + n;
        text = *end ? end + 1 : end;
        *end = 0;
        while (end > one && isspace((unsigned char)end[-1]))
            *--end = 0;
        if (one >= end)
            continue;
        l->v = xrealloc(l->v, (l->n + 1) * sizeof *l->v);
        struct entry *e = &l->v[l->n++];
        *e = (struct entry){.text = xstrdup(one), .pos = pos};
        e->pos.col = pos.col + (unsigned)(one - start);
        if (strcmp(one, "ALL") == 0)
            e->kind = ENTRY_ALL;
        else if (is_address(e->text))
            e->kind = ENTRY_ADDRESS;
        else if (memcpy(e->text, one, strlen(one) + 1), name_pattern(e->text))
            e->kind = ENTRY_NAME;
        else { /* as it was written: it is told */
            memcpy(e->text, one, strlen(one) + 1);
            e->kind = ENTRY_OTHER;
        }
        if (which == TARGETS && e->kind > ENTRY_ADDRESS) {
            conf_report_add(a->in->r, true, &e->pos,
                            "targets.allow wants addresses or ALL, not \"%s\"", one);
            e->kind = ENTRY_OTHER;
        }
    }
}

static void
one_line(struct iet_access *a, unsigned which, char *text, unsigned number, bool ended)
{
    struct acl_file *f = &a->f[which];
    char *w = text + strspn(text, " \t\r\v\f");
    size_t n = strcspn(w, " \t\r\v\f");
    struct conf_pos pos = {f->file->name, number, (unsigned)(w - text) + 1};

    if (n == 0 || *w == '#')
        return;
    if (!ended)
        conf_report_add(a->in->r, false, &pos,
                        "the last line has no newline at its end: IET passes over it, here it "
                        "counts");
    char *rest = w + n + (w[n] != 0);
    w[n] = 0;
    f->v = (f->n & (f->n - 1)) == 0 ? xrealloc(f->v, (f->n ? 2 * f->n : 1) * sizeof *f->v) : f->v;
    struct line *l = &f->v[f->n++];
    *l = (struct line){.target = xstrdup(w), .pos = pos};
    pos.col = (unsigned)(rest - text) + 1;
    add_entries(a, which, l, rest, pos);
}

static void
parse(struct iet_access *a, unsigned which, const char *text, size_t len)
{
    unsigned number = 1;
    for (size_t i = 0; i < len; number++) {
        const char *nl = memchr(text + i, '\n', len - i);
        size_t n = nl ? (size_t)(nl - text) - i : len - i;
        char *line = xmalloc(n + 1);
        memcpy(line, text + i, n);
        line[n] = 0;
        one_line(a, which, line, number, nl != NULL);
        free(line);
        i += n + 1;
    }
}

/* True: it exists. Complained when it cannot be read: what it forbids must not be opened. */
static bool
try_file(struct iet_access *a, unsigned which, const char *path)
{
    const struct syntax_in *in = a->in;
    struct conf_stat st;
    char *text = NULL;
    size_t len = 0;
    int rc = in->src->read(in->src->arg, path, 1u << 20, &text, &len, &st);

    if (rc == -ENOENT || rc == -ENOTDIR || rc == -ENODATA)
        return false;
    struct conf_file *f = xcalloc(1, sizeof *f);
    f->name = xstrdup(path);
    f->parent = in->file;
    f->st = st;
    f->next = in->raw->files;
    in->raw->files = f;
    a->f[which].file = f;
    if (rc < 0) {
        struct conf_pos pos = {f->name, 0, 0};
        conf_report_add(in->r, true, &pos, "cannot read the file: %s", strerror(-rc));
        return true;
    }
    a->f[which].text = text;
    a->f[which].len = len;
    return true;
}

static void
find_file(struct iet_access *a, unsigned which)
{
    static const char *const dirs[] = {NULL, "/etc/iet", "/etc"}; /* NULL: that of ietd.conf */
    const char *conf = a->in->file->name, *slash = strrchr(conf, '/');
    struct conf_pos pos = {conf, 0, 0};

    for (unsigned i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char *path = dirs[i] ? xasprintf("%s/%s", dirs[i], names[which])
                     : slash ? xasprintf("%.*s/%s", (int)(slash - conf), conf, names[which])
                             : xstrdup(names[which]);
        bool found = try_file(a, which, path);
        if (found && dirs[i] && strncmp(conf, dirs[i], strlen(dirs[i])) != 0)
            conf_report_add(a->in->r, false, &pos, "%s is in force too: IET looks there", path);
        free(path);
        if (found)
            return;
    }
}

static bool
stay_in_use(const struct iet_access *a)
{
    const struct syntax_in *in = a->in;
    const struct conf_file *f = a->f[DENY].file;

    if (!f && in->syntax != CONF_SYNTAX_IET04)
        f = a->f[ALLOW].file;
    return f && f->name[0] == '/' && in->syntax != CONF_SYNTAX_IET_RULES && !in->file->parent;
}

struct iet_access *
iet_access_read(const struct syntax_in *in)
{
    struct iet_access *a = xcalloc(1, sizeof *a);
    struct conf_pos pos = {in->file->name, 0, 0};

    a->in = in;
    for (unsigned i = 0; i < FILES && in->src; i++)
        find_file(a, i);
    a->in_use = stay_in_use(a);
    for (unsigned i = 0; i < FILES && !a->in_use; i++) {
        if (a->f[i].text)
            parse(a, i, a->f[i].text, a->f[i].len);
    }
    if (in->syntax == CONF_SYNTAX_IET04 && !a->f[DENY].file)
        conf_report_add(in->r, false, &pos,
                        "no initiators.deny: everybody is admitted, as IET 0.4 has it; with "
                        "syntax iet (1.4.19) initiators.allow says who is");
    else if (in->syntax != CONF_SYNTAX_IET04 && !a->f[DENY].file && !a->f[ALLOW].file)
        conf_report_add(in->r, false, &pos,
                        "neither initiators.allow nor initiators.deny: nobody is admitted, as "
                        "IET 1.4.19 has it; with syntax iet-0.4 everybody is");
    return a;
}

void
iet_access_free(struct iet_access *a)
{
    for (unsigned i = 0; i < FILES; i++) {
        for (size_t k = 0; k < a->f[i].n; k++) {
            for (unsigned m = 0; m < a->f[i].v[k].n; m++)
                free(a->f[i].v[k].v[m].text);
            free(a->f[i].v[k].v);
            free(a->f[i].v[k].target);
        }
        free(a->f[i].v);
        source_wipe_free(a->f[i].text, a->f[i].len);
    }
    free(a);
}

/* --- a target's rules ------------------------------------------------------------------------ */

static const struct line *
pick(const struct acl_file *f, const char *target)
{
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->v[i].target, "ALL") == 0 || strcasecmp(f->v[i].target, target) == 0)
            return &f->v[i];
    }
    return NULL;
}

static unsigned
count(const struct line *l, unsigned kind)
{
    unsigned n = 0;
    for (unsigned i = 0; l && i < l->n; i++)
        n += l->v[i].kind == kind;
    return n;
}

static void
admit_all(const struct iet_access *a, const struct raw_node *t, struct syntax_list *list)
{
    syntax_add(list, t->file, t->pos, t->pos, "initiator-address", "ALL");
    (void)a;
}

/* Whom a line of initiators.allow names. */
static void
admit(struct iet_access *a, const struct raw_node *t, const struct line *l,
      struct syntax_list *list)
{
    if (!l)
        return;
    if (count(l, ENTRY_ALL)) {
        admit_all(a, t, list);
        return;
    }
    bool mixed = count(l, ENTRY_ADDRESS) && count(l, ENTRY_NAME) + count(l, ENTRY_OTHER);
    for (unsigned i = 0; i < l->n; i++) {
        const struct entry *e = &l->v[i];
        if (e->kind == ENTRY_OTHER || (mixed && e->kind == ENTRY_NAME))
            conf_report_loss(
                a->in->r, &e->pos, "\"%s\" has no equivalent for target %s: %s; it is not admitted",
                e->text, t->value,
                e->kind == ENTRY_OTHER
                    ? "a regular expression; write an initiator-name with *, ? and [..]"
                    : "IET admits who has the address or the name, here both are wanted where both "
                      "are given; name its address instead");
        else
            syntax_add(list, a->f[ALLOW].file, e->pos, e->pos,
                       e->kind == ENTRY_NAME ? "initiator-name" : "initiator-address", e->text);
    }
}

static void
target_addresses(struct iet_access *a, const struct raw_node *t, struct syntax_list *list)
{
    const struct line *l = pick(&a->f[TARGETS], t->value);

    if (!a->f[TARGETS].file || count(l, ENTRY_ALL))
        return;
    for (unsigned i = 0; l && i < l->n; i++) {
        if (l->v[i].kind == ENTRY_ADDRESS)
            syntax_add(list, a->f[TARGETS].file, l->v[i].pos, l->v[i].pos, "local-address",
                       l->v[i].text);
    }
    if (count(l, ENTRY_ADDRESS))
        return;
    struct conf_pos pos = {a->f[TARGETS].file->name, 0, 0};
    conf_report_add(a->in->r, false, l ? &l->pos : &pos,
                    "target %s is at no address: it is offline, as it is out of reach in IET",
                    t->value);
    syntax_add(list, a->f[TARGETS].file, l ? l->pos : t->pos, l ? l->pos : t->pos, "state",
               "offline");
}

void
iet_access_global(const struct iet_access *a, struct syntax_list *list)
{
    const struct conf_pos pos = {a->in->file->name, 1, 1};

    for (unsigned i = 0; i < FILES && a->in_use; i++) {
        if (a->f[i].text)
            syntax_add(list, a->in->file, pos, pos, directives[i], a->f[i].file->name);
    }
}

void
iet_access_nodes(struct iet_access *a, const struct raw_node *t, struct syntax_list *list)
{
    const struct line *allow = pick(&a->f[ALLOW], t->value), *deny = pick(&a->f[DENY], t->value);

    if (a->in_use)
        return;
    if (!a->f[DENY].file && a->in->syntax == CONF_SYNTAX_IET04) {
        admit_all(a, t, list);
    } else if (!a->f[DENY].file || count(deny, ENTRY_ALL)) {
        admit(a, t, allow, list);
    } else if (!deny || deny->n == 0 || count(allow, ENTRY_ALL)) {
        admit_all(a, t, list);
    } else {
        conf_report_loss(
            a->in->r, &deny->pos,
            "initiators.deny has no equivalent for target %s: it admits everybody but "
            "some; only whom initiators.allow names is admitted: add who else is to be",
            t->value);
        admit(a, t, allow, list);
    }
    target_addresses(a, t, list);
}
