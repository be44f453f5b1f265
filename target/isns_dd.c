/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sets of initiator names, see isns_dd.h.  One block holds the sorted table and the texts.
 */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/ref.h"
#include "target/isns_dd.h"

struct isns_dd {
    struct ref ref;
    unsigned n;
    size_t bytes;       /* of the whole block */
    const char *name[]; /* sorted; they point behind the table */
};

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct isns_dd *
isns_dd_new(const char *const *names, unsigned n)
{
    const char **sorted = xcalloc((size_t)n + 1, sizeof *sorted);
    size_t text = 0;
    unsigned kept = 0;

    for (unsigned i = 0; i < n; i++)
        sorted[i] = names[i];
    if (n != 0)
        qsort(sorted, n, sizeof *sorted, by_text);
    for (unsigned i = 0; i < n; i++) {
        if (kept != 0 && strcmp(sorted[kept - 1], sorted[i]) == 0)
            continue;
        text += strlen(sorted[i]) + 1;
        sorted[kept++] = sorted[i];
    }
    size_t bytes = sizeof(struct isns_dd) + kept * sizeof(char *) + text;
    struct isns_dd *dd = xcalloc(1, bytes);
    ref_init(&dd->ref);
    dd->n = kept;
    dd->bytes = bytes;
    char *to = (char *)&dd->name[kept];
    for (unsigned i = 0; i < kept; i++) {
        size_t len = strlen(sorted[i]) + 1;
        dd->name[i] = memcpy(to, sorted[i], len);
        to += len;
    }
    free(sorted);
    return dd;
}

struct isns_dd *
isns_dd_get(struct isns_dd *dd)
{
    ref_get(&dd->ref);
    return dd;
}

void
isns_dd_put(struct isns_dd *dd)
{
    if (dd != NULL && ref_put(&dd->ref))
        free(dd);
}

bool
isns_dd_admits(const struct isns_dd *dd, const char *initiator)
{
    return dd->n != 0 && bsearch(&initiator, dd->name, dd->n, sizeof *dd->name, by_text) != NULL;
}

unsigned
isns_dd_count(const struct isns_dd *dd)
{
    return dd->n;
}

size_t
isns_dd_bytes(const struct isns_dd *dd)
{
    return dd->bytes;
}

bool
isns_dd_same(const struct isns_dd *a, const struct isns_dd *b)
{
    if (a->n != b->n)
        return false;
    for (unsigned i = 0; i < a->n; i++) {
        if (strcmp(a->name[i], b->name[i]) != 0)
            return false;
    }
    return true;
}
