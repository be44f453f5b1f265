/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `initiators-allow`, `initiators-deny` and `targets-allow`: the access files of IET.  A line is a
 * target's name or ALL, and a comma list of whom it is about; # starts a line of comment.  What the
 * lines mean is the caller's to judge.  Called by build.c.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "conf/priv.h"

#define FILE_MAX_BYTES (1u << 20)

/* One line, which ends in a NUL. */
static void
take_line(const struct account_ctx *ctx, struct conf_access *a, enum conf_access_file which,
          char *line, unsigned number)
{
    char err[512] = "", warn[512] = "";
    size_t from = strspn(line, " \t\r"), word = strcspn(line + from, " \t\r");
    char *rest = line + from + word;

    if (word == 0 || line[from] == '#')
        return;
    if (*rest)
        *rest++ = 0;
    rest += strspn(rest, " \t\r");
    for (size_t n = strlen(rest); n && strchr(" \t\r", rest[n - 1]); n--)
        rest[n - 1] = 0;
    const struct conf_pos pos = {a->path, number, (unsigned)from + 1};
    if (ctx->ck->access && ctx->ck->access(which, line + from, rest, err, sizeof err, warn,
                                           sizeof warn, ctx->ck->arg) < 0) {
        conf_report_add(ctx->r, true, &pos, "%s", err);
        return;
    }
    if (*warn)
        conf_report_add(ctx->r, false, &pos, "%s", warn);
    a->lines = xrealloc(a->lines, (a->n + 1) * sizeof *a->lines);
    a->lines[a->n++] = (struct conf_access_line){pos, xstrdup(line + from), xstrdup(rest)};
}

void
access_read(const struct account_ctx *ctx, struct conf_access *a, enum conf_access_file which,
            const struct raw_node *n)
{
    struct conf_stat st;
    char *text = NULL, *copy;
    size_t len = 0;
    unsigned number = 1;

    if (n->value[0] != '/') {
        conf_report_add(ctx->r, true, &n->vpos, "%s wants an absolute path, not \"%s\"", n->name,
                        n->value);
        return;
    }
    int rc = ctx->src->read(ctx->src->arg, n->value, FILE_MAX_BYTES, &text, &len, &st);
    if (rc < 0) {
        conf_report_add(ctx->r, true, &n->vpos, "%s: cannot read %s: %s", n->name, n->value,
                        strerror(-rc));
        return;
    }
    if (len && memchr(text, 0, len)) {
        conf_report_add(ctx->r, true, &n->vpos, "%s: a NUL byte in %s: this is not a text file",
                        n->name, n->value);
        source_wipe_free(text, len);
        return;
    }
    a->pos = n->pos;
    a->path = n->value;
    copy = xasprintf("%.*s", (int)len, text);
    for (char *p = copy, *end; *p; p = end, number++) {
        end = p + strcspn(p, "\n");
        if (*end)
            *end++ = 0;
        take_line(ctx, a, which, p, number);
    }
    free(copy);
    source_wipe_free(text, len);
}

bool
access_same(const struct conf_access *a, const struct conf_access *b)
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
access_fini(struct conf_access *a)
{
    for (unsigned i = 0; i < a->n; i++) {
        free(a->lines[i].target);
        free(a->lines[i].entries);
    }
    free(a->lines);
}
