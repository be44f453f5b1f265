/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `initiators-allow`, `initiators-deny` and `targets-allow`: the access files of IET.  A line is a
 * target's name or ALL, and a comma list of whom it is about; # starts a line of comment.  What the
 * lines mean is the caller's to judge.  Called by build.c, and by who looks whether they changed.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "conf/priv.h"

#define BLANKS " \t\r\v\f" /* isspace, within a line */

/* One line, which ends in a NUL. */
static void
take_line(struct conf_access *a, enum conf_access_file which, const struct conf_checks *ck,
          struct conf_report *r, char *line, unsigned number, bool ended)
{
    char err[512] = "", warn[512] = "";
    size_t from = strspn(line, BLANKS), word = strcspn(line + from, BLANKS);
    char *rest = line + from + word;

    if (word == 0 || line[from] == '#')
        return;
    if (*rest)
        *rest++ = 0;
    rest += strspn(rest, BLANKS);
    for (size_t n = strlen(rest); n && strchr(BLANKS, rest[n - 1]); n--)
        rest[n - 1] = 0;
    const struct conf_pos pos = {a->path, number, (unsigned)from + 1};
    if (ck && ck->access &&
        ck->access(which, line + from, rest, err, sizeof err, warn, sizeof warn, ck->arg) < 0) {
        conf_report_add(r, true, &pos, "%s", err);
        return;
    }
    if (*warn)
        conf_report_add(r, false, &pos, "%s", warn);
    if (!ended)
        conf_report_add(r, false, &pos,
                        "the last line has no newline at its end: IET passes over it, here it "
                        "counts");
    a->lines = xrealloc(a->lines, (a->n + 1) * sizeof *a->lines);
    a->lines[a->n++] = (struct conf_access_line){pos, xstrdup(line + from), xstrdup(rest)};
}

bool
conf_access_text(struct conf_access *a, enum conf_access_file which, const char *text, size_t len,
                 const struct conf_checks *ck, struct conf_report *r)
{
    const struct conf_pos pos = {a->path, 0, 0};
    const unsigned errors = r->nerrors;
    unsigned number = 1;

    if (len && memchr(text, 0, len)) {
        conf_report_add(r, true, &pos, "a NUL byte in it: this is not a text file");
        return false;
    }
    char *copy = xasprintf("%.*s", (int)len, text);
    for (char *p = copy, *end; *p; p = end, number++) {
        end = p + strcspn(p, "\n");
        bool ended = *end;
        if (ended)
            *end++ = 0;
        take_line(a, which, ck, r, p, number, ended);
    }
    free(copy);
    return r->nerrors == errors;
}

void
access_read(const struct account_ctx *ctx, struct conf_access *a, enum conf_access_file which,
            const struct raw_node *n)
{
    struct conf_stat st;
    char *text = NULL;
    size_t len = 0;

    if (n->value[0] != '/') {
        conf_report_add(ctx->r, true, &n->vpos, "%s wants an absolute path, not \"%s\"", n->name,
                        n->value);
        return;
    }
    int rc = ctx->src->read(ctx->src->arg, n->value, CONF_ACCESS_MAX, &text, &len, &st);
    if (rc < 0) {
        conf_report_add(ctx->r, true, &n->vpos, "%s: cannot read %s: %s", n->name, n->value,
                        strerror(-rc));
        return;
    }
    a->pos = n->pos;
    a->path = n->value;
    if (!st.is_file && strcmp(n->value, "/dev/null") != 0) /* a pipe reads as empty, by chance */
        conf_report_add(ctx->r, true, &n->vpos, "%s: %s is no regular file", n->name, n->value);
    else
        (void)conf_access_text(a, which, text, len, ctx->ck, ctx->r);
    source_wipe_free(text, len);
}

bool
conf_access_same(const struct conf_access *a, const struct conf_access *b)
{
    if (!a->path != !b->path || a->n != b->n || (a->path && strcmp(a->path, b->path) != 0))
        return false;
    for (unsigned i = 0; i < a->n; i++) {
        if (strcmp(a->lines[i].target, b->lines[i].target) != 0 ||
            strcmp(a->lines[i].entries, b->lines[i].entries) != 0)
            return false;
    }
    return true;
}

void
conf_access_fini(struct conf_access *a)
{
    for (unsigned i = 0; i < a->n; i++) {
        free(a->lines[i].target);
        free(a->lines[i].entries);
    }
    free(a->lines);
}
