/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which target a file was written for, and what the readers of foreign syntaxes share.
 */
#include "config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/syntax.h"

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Words that begin a line of ietd.conf and none of ours. */
static bool
is_iet_word(const char *p, size_t n)
{
    static const char *const words[] = {"Target", "IncomingUser", "OutgoingUser", "Lun"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i]) == n && memcmp(words[i], p, n) == 0)
            return true;
    }
    return false;
}

enum conf_syntax
syntax_guess(const char *path, const char *text, size_t len)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;

    /* the name is tgt's alone: read as ours, its disks would change their identities in silence */
    if (strstr(path, "/etc/tgt/") || strcmp(base, "targets.conf") == 0)
        return CONF_SYNTAX_TGT;
    if (strcmp(base, "ietd.conf") == 0)
        return CONF_SYNTAX_IET;
    if (ends_with(base, ".json"))
        return CONF_SYNTAX_LIO;
    for (size_t i = 0; i < len;) {
        const char *nl = memchr(text + i, '\n', len - i);
        size_t end = nl ? (size_t)(nl - text) : len;
        while (i < end && isspace((unsigned char)text[i]))
            i++;
        size_t w = i;
        while (w < end && !isspace((unsigned char)text[w]))
            w++;
        if (w > i && text[i] == '{')
            return CONF_SYNTAX_LIO;
        if (w > i && is_iet_word(text + i, w - i))
            return CONF_SYNTAX_IET;
        if (w > i && text[i] != '#' && text[i] != 'i') /* iSNSServer is a word of both */
            break;
        i = end + 1;
    }
    return CONF_SYNTAX_AUTO;
}

void
syntax_list_init(struct syntax_list *list)
{
    list->first = NULL;
    list->tail = &list->first;
}

struct raw_node *
syntax_add(struct syntax_list *list, struct conf_file *file, struct conf_pos pos,
           struct conf_pos vpos, const char *name, const char *value)
{
    struct raw_node *n = xcalloc(1, sizeof *n);
    n->file = file;
    n->pos = pos;
    n->vpos = vpos;
    n->name = xstrdup(name);
    n->value = xstrdup(value);
    *list->tail = n;
    list->tail = &n->next;
    return n;
}

struct raw_node *
syntax_addf(struct syntax_list *list, struct conf_file *file, struct conf_pos pos, const char *name,
            const char *fmt, ...)
{
    char value[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    return syntax_add(list, file, pos, pos, name, value);
}

char *
syntax_quoted(const char *word)
{
    struct text t = {.secrets = true};
    text_add_word(&t, word, strlen(word));
    return t.p;
}
