/* SPDX-License-Identifier: BSD-2-Clause */
/* Help, usage lines and the completion, all from the table of verbs. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "tools/adm.h"
#include "tools/verb.h"

/* --- help ------------------------------------------------------------------------------------ */

static size_t
group_len(const char *name)
{
    return strcspn(name, " ");
}

bool
help_is_group(const char *word)
{
    const struct verb *v;
    for (unsigned i = 0; (v = verb_at(i)); i++) {
        size_t n = group_len(v->name);
        if (v->name[n] && strlen(word) == n && strncmp(v->name, word, n) == 0)
            return true;
    }
    return false;
}

char *
help_usage(const struct verb *v)
{
    char *s = xasprintf("%s%s%s", v->name, *v->args ? " " : "", v->args);
    for (const struct verb_opt *o = v->opts; o && o->name; o++) {
        bool may = o->arg && o->arg[0] == '[';
        char *next = xasprintf("%s [--%s%s%s%s]%s", s, o->name,
                               may      ? "[="
                               : o->arg ? " "
                                        : "",
                               may      ? o->arg + 1
                               : o->arg ? o->arg
                                        : "",
                               "", o->many ? "..." : "");
        free(s);
        s = next;
    }
    return s;
}

/* "  --name ARG" padded, then the help, wrapped. */
static void
print_opt(const struct verb_opt *o)
{
    enum { COL = 26, WIDTH = 78 };
    bool may = o->arg && o->arg[0] == '[';
    char *head = xasprintf("  --%s%s%s", o->name,
                           may      ? "[="
                           : o->arg ? " "
                                    : "",
                           may      ? o->arg + 1
                           : o->arg ? o->arg
                                    : "");
    size_t at = strlen(head);

    fputs(head, stdout);
    if (at + 2 > COL) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", (int)(COL - at), "");
    at = COL;
    for (const char *p = o->help; *p;) {
        size_t n = strcspn(p, " ");
        if (at + n > WIDTH && at > COL) {
            printf("\n%*s", COL, "");
            at = COL;
        }
        printf("%s%.*s", at > COL ? " " : "", (int)n, p);
        at += n + (at > COL);
        p += n;
        p += strspn(p, " ");
    }
    putchar('\n');
    free(head);
}

void
help_verb(const struct verb *v)
{
    char *usage = help_usage(v);
    const struct verb_opt *o;

    printf("usage: %s %s\n\n%s\n", adm_name, usage, v->summary);
    if (v->text)
        printf("\n%s\n", v->text);
    printf("\nOptions:\n");
    for (o = v->opts; o && o->name; o++)
        print_opt(o);
    for (unsigned i = 0; (o = verb_common(v, i)); i++)
        print_opt(o);
    if (v->examples) {
        printf("\nExamples:\n");
        for (const char *p = v->examples; *p;) {
            size_t n = strcspn(p, "\n");
            printf("  %s %.*s\n", adm_name, (int)n, p);
            p += n;
            p += *p == '\n';
        }
    }
    free(usage);
}

static void
print_line(const struct verb *v)
{
    char *head = xasprintf("%s%s%s", v->name, *v->args ? " " : "", v->args);
    printf("  %-38s %s\n", head, v->summary);
    free(head);
}

void
help_group(const char *group)
{
    const struct verb *v;
    size_t n = strlen(group);

    for (unsigned i = 0; (v = verb_at(i)); i++) {
        if (group_len(v->name) == n && strncmp(v->name, group, n) == 0)
            print_line(v);
    }
    printf("\n`%s help %s VERB` has the options and examples.\n", adm_name, group);
}

void
help_all(void)
{
    const struct verb *v;
    const char *last = "";

    printf("usage: %s VERB ...            plain verbs, below\n"
           "       %s --mode ... --op ... as tgtadm has it: %s --help\n",
           adm_name, adm_name, adm_name);
    for (unsigned i = 0; (v = verb_at(i)); i++) {
        size_t n = group_len(v->name);
        if (v->flags & VF_HIDDEN)
            continue;
        if (strncmp(last, v->name, n) != 0 || last[n] != v->name[n] || (!v->name[n] && last[n]))
            printf("%s", v->name[n] || !*last || last[group_len(last)] ? "\n" : "");
        last = v->name;
        print_line(v);
    }
    printf(
        "\nTargets go by name, by an end of the name that no other has, or by tid; sizes as 500G.\n"
        "`%s help VERB` or `%s VERB --help` has the options and examples.\n"
        "Exit status: 0 done, 1 not done, 2 wrong usage, 107 no daemon.\n",
        adm_name, adm_name);
}

static const struct verb *
verb_named(const char *a, const char *b)
{
    const struct verb *v;
    for (unsigned i = 0; (v = verb_at(i)); i++) {
        char *name = b ? xasprintf("%s %s", a, b) : xstrdup(a);
        bool hit = strcmp(v->name, name) == 0 && !(v->flags & VF_HIDDEN);
        free(name);
        if (hit)
            return v;
    }
    return NULL;
}

int
verb_help(struct call *c)
{
    const char *a = call_arg(c, 0), *b = call_arg(c, 1);
    const struct verb *v = a ? verb_named(a, b) : NULL;

    if (!a)
        help_all();
    else if (v)
        help_verb(v);
    else if (!b && help_is_group(a))
        help_group(a);
    else
        verb_usage(c, "there is no verb %s%s%s", a, b ? " " : "", b ? b : "");
    return 0;
}
