/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of a JSON file walked beside the tree that jansson made of it.  Objects keep the order
 * of their keys, so the two walks meet the same values.  Small constants are shared by jansson:
 * places are remembered for keys, objects and arrays only.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "conf/syntax_json.h"

struct place {
    const void *what; /* a key's iterator, an object, an array */
    size_t off;
};

struct json_places {
    const char *file, *text;
    size_t len, pos;
    struct place *v;
    size_t n;
    size_t *lines, nlines; /* where they begin */
};

static void
add(struct json_places *p, const void *what)
{
    if ((p->n & (p->n - 1)) == 0)
        p->v = xrealloc(p->v, (p->n ? 2 * p->n : 1) * sizeof *p->v);
    p->v[p->n++] = (struct place){what, p->pos};
}

static void
blanks(struct json_places *p)
{
    while (p->pos < p->len && strchr(" \t\r\n,:", p->text[p->pos]))
        p->pos++;
}

static void
skip_string(struct json_places *p)
{
    for (p->pos++; p->pos < p->len && p->text[p->pos] != '"'; p->pos++)
        p->pos += p->text[p->pos] == '\\';
    p->pos++;
}

/* The text is right: jansson took it. */
static void
walk(struct json_places *p, json_t *v)
{
    const char *key;
    json_t *item;
    size_t i;

    blanks(p);
    if (p->pos >= p->len)
        return;
    if (json_is_object(v)) {
        add(p, v);
        p->pos++;
        json_object_foreach(v, key, item)
        {
            blanks(p);
            add(p, json_object_key_to_iter(key));
            skip_string(p);
            walk(p, item);
        }
        blanks(p);
        p->pos++;
    } else if (json_is_array(v)) {
        add(p, v);
        p->pos++;
        json_array_foreach(v, i, item) walk(p, item);
        blanks(p);
        p->pos++;
    } else if (p->text[p->pos] == '"') {
        skip_string(p);
    } else {
        while (p->pos < p->len && !strchr(" \t\r\n,]}", p->text[p->pos]))
            p->pos++;
    }
}

static int
by_what(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t)((const struct place *)a)->what;
    uintptr_t y = (uintptr_t)((const struct place *)b)->what;
    return x < y ? -1 : x > y;
}

struct json_places *
json_places_new(const char *file, const char *text, size_t len, json_t *root)
{
    struct json_places *p = xcalloc(1, sizeof *p);

    *p = (struct json_places){.file = file, .text = text, .len = len};
    walk(p, root);
    if (p->n)
        qsort(p->v, p->n, sizeof *p->v, by_what);
    p->lines = xmalloc(sizeof *p->lines);
    p->lines[p->nlines++] = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\n')
            continue;
        if ((p->nlines & (p->nlines - 1)) == 0)
            p->lines = xrealloc(p->lines, 2 * p->nlines * sizeof *p->lines);
        p->lines[p->nlines++] = i + 1;
    }
    return p;
}

void
json_places_free(struct json_places *p)
{
    free(p->v);
    free(p->lines);
    free(p);
}

static struct conf_pos
place(const struct json_places *p, const void *what)
{
    struct place key = {what, 0}, *at;
    size_t lo = 0, hi = p->nlines;

    at = p->n ? bsearch(&key, p->v, p->n, sizeof *p->v, by_what) : NULL;
    if (!at)
        return (struct conf_pos){p->file, 0, 0};
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (p->lines[mid] <= at->off)
            lo = mid;
        else
            hi = mid;
    }
    return (struct conf_pos){p->file, (unsigned)lo + 1, (unsigned)(at->off - p->lines[lo]) + 1};
}

struct conf_pos
json_places_key(const struct json_places *p, json_t *object, const char *key)
{
    return place(p, json_object_iter_at(object, key));
}

struct conf_pos
json_places_of(const struct json_places *p, const json_t *value)
{
    return place(p, value);
}
