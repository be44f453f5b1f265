/* SPDX-License-Identifier: BSD-2-Clause */
/* What verbs print: JSON, sentences, aligned tables, colours on a terminal. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "tools/adm.h"
#include "tools/verb.h"

const char *
j_str(const json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s ? s : "";
}

long long
j_num(const json_t *o, const char *name)
{
    return (long long)json_integer_value(json_object_get(o, name));
}

bool
j_is(const json_t *o, const char *name)
{
    return json_is_true(json_object_get(o, name));
}

bool
verb_json(struct call *c, json_t *data)
{
    if (!c->json) {
        json_decref(data);
        return false;
    }
    json_t *o = json_pack("{si sb so}", "v", 1, "ok", 1, "data", data ? data : json_object());
    json_dumpf(o, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(o);
    return true;
}

void
verb_say(const struct call *c, const char *fmt, ...)
{
    va_list ap;
    if (c->json)
        return;
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
}

void
verb_warn(const struct call *c, const char *fmt, ...)
{
    char text[4096];
    va_list ap;
    (void)c;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s: warning: %s\n", adm_name, text);
}

/* --- colours --------------------------------------------------------------------------------- */

bool
out_is_coloured(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && strcmp(term, "dumb") != 0 && isatty(STDOUT_FILENO);
}

static const char *const codes[] = {
    [PLAIN] = "", [GOOD] = "\033[32m", [BAD] = "\033[31m", [ODD] = "\033[33m", [HEAD] = "\033[1m"};

char *
out_paint(enum colour colour, const char *text)
{
    if (colour == PLAIN || !out_is_coloured())
        return xstrdup(text);
    return xasprintf("%s%s\033[0m", codes[colour], text);
}

char *
out_plain(const char *text)
{
    char *s = xstrdup(text);
    for (unsigned char *p = (unsigned char *)s; *p; p++) {
        if ((*p < 0x20 && *p != '\n') || *p == 0x7f)
            *p = '?';
        else if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) /* C1 controls */
            p[0] = p[1] = '?';
    }
    return s;
}

/* --- tables ---------------------------------------------------------------------------------- */

/* Code points; wide ones count as one. */
static size_t
width(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

void
table_init(struct table *t, unsigned ncols, const char *const heads[])
{
    *t = (struct table){.ncols = 0};
    t->ncols = ncols;
    for (unsigned i = 0; i < ncols; i++)
        table_cell(t, HEAD, "%s", heads[i]);
}

void
table_cell(struct table *t, enum colour colour, const char *fmt, ...)
{
    char text[1024];
    unsigned col = 0;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct row *last = t->nrows ? &t->rows[t->nrows - 1] : NULL;
    while (last && col < t->ncols && last->cell[col])
        col++;
    if (!last || col == t->ncols) {
        t->rows = xrealloc(t->rows, (t->nrows + 1) * sizeof *t->rows);
        last = &t->rows[t->nrows++];
        *last = (struct row){.cell = {NULL}};
        col = 0;
    }
    last->cell[col] = out_plain(text);
    last->colour[col] = colour;
}

void
table_print(struct table *t)
{
    size_t widths[CELLS_MAX] = {0};

    for (unsigned r = 0; r < t->nrows; r++) {
        for (unsigned k = 0; k < t->ncols && t->rows[r].cell[k]; k++) {
            size_t n = width(t->rows[r].cell[k]);
            widths[k] = n > widths[k] ? n : widths[k];
        }
    }
    for (unsigned r = 0; r < t->nrows; r++) {
        for (unsigned k = 0; k < t->ncols && t->rows[r].cell[k]; k++) {
            const char *text = t->rows[r].cell[k];
            char *painted = out_paint(t->rows[r].colour[k], text);
            bool last = k + 1 == t->ncols;
            printf("%s%*s", painted, last ? 0 : (int)(widths[k] - width(text) + 2), "");
            free(painted);
        }
        putchar('\n');
    }
    for (unsigned r = 0; r < t->nrows; r++) {
        for (unsigned k = 0; k < t->ncols; k++)
            free(t->rows[r].cell[k]);
    }
    free(t->rows);
    *t = (struct table){.ncols = 0};
}
