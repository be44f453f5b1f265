/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion: three small scripts ask `evtgtadm complete WORDS...` for what may stand in the place
 * of the last word. The answer, from the table of verbs: a line a candidate with a tab and its
 * explanation; "@files" or "@dirs": the shell offers files.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "tools/adm.h"
#include "tools/verb.h"
#include "tools/verb_parts.h"

static void
offer(const char *start, const char *word, size_t n, const char *help)
{
    size_t k = strlen(start);
    if (k <= n && strncmp(word, start, k) == 0)
        printf("%.*s\t%s\n", (int)n, word, help);
}

static void
on_no_daemon(int status, const char *text)
{
    (void)status;
    (void)text;
    (void)fflush(NULL);
    _Exit(0); /* there is nothing to offer */
}

void
complete_place(const char *start, const char *place)
{
    if (strchr(place, '|')) {
        for (const char *p = place; *p;) {
            size_t n = strcspn(p, "|");
            offer(start, p, n, "");
            p += n;
            p += *p == '|';
        }
    } else if (strncmp(place, "TARGET", 6) == 0) {
        adm_dying = on_no_daemon;
        (void)fflush(stdout);
        find_names_print(NULL);
    } else if (strncmp(place, "FILE", 4) == 0 || strncmp(place, "PATH", 4) == 0) {
        puts("@files");
    } else if (strncmp(place, "VERB", 4) == 0) {
        const struct verb *v;
        for (unsigned i = 0; (v = verb_at(i)); i++) {
            if (!(v->flags & VF_HIDDEN))
                offer(start, v->name, strcspn(v->name, " "), "");
        }
    }
}

/* The n-th word of "A [B] C..." without its brackets and dots; false: no argument can stand there.
 */
static bool
place_at(const char *spec, unsigned n, char *out, size_t size)
{
    for (unsigned at = 0; *spec; at++) {
        size_t k = strcspn(spec, " "), skip = spec[0] == '[';
        snprintf(out, size, "%.*s", (int)(k - skip), spec + skip);
        bool many = strstr(out, "...") != NULL;
        out[strcspn(out, "].")] = 0;
        if (at == n || many)
            return true;
        spec += k;
        spec += *spec == ' ';
    }
    return false;
}

static const struct verb_opt *
opt_named(const struct verb *v, const char *name, size_t n)
{
    const struct verb_opt *o;
    for (o = v->opts; o && o->name; o++) {
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0)
            return o;
    }
    for (unsigned i = 0; (o = verb_common(v, i)); i++) {
        if (strlen(o->name) == n && strncmp(o->name, name, n) == 0)
            return o;
    }
    return NULL;
}

static void
offer_opt(const char *start, const struct verb_opt *o)
{
    char *word = xasprintf("--%s", o->name);
    offer(start, word, strlen(word), o->help);
    free(word);
}

static void
offer_opts(const struct verb *v, const char *start)
{
    const struct verb_opt *o;
    for (o = v->opts; o && o->name; o++)
        offer_opt(start, o);
    for (unsigned i = 0; (o = verb_common(v, i)); i++)
        offer_opt(start, o);
}

/* words: those after the verb's own; the last is the one to complete. */
static void
complete_verb(const struct verb *v, const char *const *words, unsigned n)
{
    const struct verb_opt *wants = NULL;
    const char *last = words[n - 1];
    unsigned args = 0;
    char place[64];

    for (unsigned i = 0; i + 1 < n; i++) {
        const char *w = words[i];
        if (wants) {
            wants = NULL;
        } else if (strncmp(w, "--", 2) == 0) {
            size_t k = strcspn(w + 2, "=");
            const struct verb_opt *o = opt_named(v, w + 2, k);
            if (o && o->arg && o->arg[0] != '[' && !w[2 + k])
                wants = o;
        } else {
            args++;
        }
    }
    if (wants)
        complete_place(last, wants->arg);
    else if (last[0] == '-')
        offer_opts(v, last);
    else if (place_at(v->args, args, place, sizeof place))
        complete_place(last, place);
}

int
verb_complete(struct call *c)
{
    const char *const *w = c->args;
    const struct verb *v;
    const char *before = "";

    if (c->nargs == 0)
        return 0;
    for (unsigned i = 0; (v = verb_at(i)); i++) {
        size_t n = strcspn(v->name, " ");
        if (v->flags & VF_HIDDEN)
            continue;
        if (c->nargs == 1) {
            bool again = strncmp(before, v->name, n) == 0 && strlen(before) >= n &&
                         (before[n] == ' ' || !before[n]);
            if (!again)
                offer(w[0], v->name, n, v->name[n] ? "" : v->summary);
            before = v->name;
            continue;
        }
        if (strlen(w[0]) != n || strncmp(v->name, w[0], n) != 0)
            continue;
        if (v->name[n] && c->nargs == 2)
            offer(w[1], v->name + n + 1, strlen(v->name + n + 1), v->summary);
        else if (!v->name[n])
            complete_verb(v, w + 1, c->nargs - 1);
        else if (strcmp(v->name + n + 1, w[1]) == 0)
            complete_verb(v, w + 2, c->nargs - 2);
    }
    return 0;
}

/* --- the scripts ----------------------------------------------------------------------------- */

static const char bash_script[] =
    "# bash completion of @N; made by `evtgtadm completion bash`\n"
    "_@N()\n"
    "{\n"
    "    local line word words cur i\n"
    "    # by blanks alone: readline also parts words at colons\n"
    "    read -r -a words <<<\"${COMP_LINE:0:COMP_POINT}\"\n"
    "    [[ ${COMP_LINE:0:COMP_POINT} == *[[:blank:]] ]] && words+=('')\n"
    "    cur=${words[${#words[@]}-1]}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        word=${line%%$'\\t'*}\n"
    "        if [[ $word == @files ]]; then\n"
    "            compopt -o filenames 2>/dev/null\n"
    "            while IFS= read -r line; do COMPREPLY+=(\"$line\"); done < <(compgen -f -- "
    "\"$cur\")\n"
    "        elif [[ $word == \"$cur\"* ]]; then\n"
    "            COMPREPLY+=(\"$word\")\n"
    "        fi\n"
    "    done < <(@A \"${words[@]:1}\" 2>/dev/null)\n"
    "    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then\n"
    "        for i in \"${!COMPREPLY[@]}\"; do\n"
    "            COMPREPLY[i]=${COMPREPLY[i]#\"${cur%\"${cur##*:}\"}\"}\n"
    "        done\n"
    "    fi\n"
    "}\n"
    "complete -F _@N @N\n";

static const char zsh_script[] = "#compdef @N\n"
                                 "# zsh completion of @N; made by `evtgtadm completion zsh`\n"
                                 "_@N()\n"
                                 "{\n"
                                 "    local line word help\n"
                                 "    local -a found\n"
                                 "    while IFS= read -r line; do\n"
                                 "        word=${line%%$'\\t'*}\n"
                                 "        help=${line#*$'\\t'}\n"
                                 "        if [[ $word == @files ]]; then\n"
                                 "            _files\n"
                                 "        elif [[ $line == *$'\\t'?* ]]; then\n"
                                 "            found+=(\"${word//:/\\\\:}:$help\")\n"
                                 "        else\n"
                                 "            found+=(\"${word//:/\\\\:}\")\n"
                                 "        fi\n"
                                 "    done < <(@A \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
                                 "    if (( ${#found} )); then _describe @N found; fi\n"
                                 "}\n"
                                 "if [[ ${funcstack[1]} == _@N ]]; then _@N \"$@\"; "
                                 "elif (( $+functions[compdef] )); then compdef _@N @N; fi\n";

static const char fish_script[] = "# fish completion of @N; made by `evtgtadm completion fish`\n"
                                  "function __@N_complete\n"
                                  "    set -l words (commandline -opc) (commandline -ct)\n"
                                  "    for line in (@A $words[2..-1] 2>/dev/null)\n"
                                  "        if test \"$line\" = @files\n"
                                  "            __fish_complete_path (commandline -ct)\n"
                                  "        else\n"
                                  "            echo $line\n"
                                  "        end\n"
                                  "    end\n"
                                  "end\n"
                                  "complete -c @N -f -a '(__@N_complete)'\n";

static const struct {
    const char *name, *script, *ask; /* @A of evtgtadm itself */
} shells[] = {
    {"bash", bash_script, "\"${words[0]}\" complete"},
    {"zsh", zsh_script, "\"${words[1]}\" complete"},
    {"fish", fish_script, "$words[1] complete"},
};

/* With the name (@N) and the question (@A) in it. */
static void
print_script(const char *script, const char *program, const char *ask)
{
    for (const char *p = script; *p; p++) {
        if (p[0] == '@' && p[1] == 'N') {
            fputs(program, stdout);
        } else if (p[0] == '@' && p[1] == 'A') {
            fputs(ask, stdout);
        } else {
            putchar(*p);
            continue;
        }
        p++;
    }
}

int
verb_completion(struct call *c)
{
    const char *shell = call_arg(c, 0), *program = c->nargs > 1 ? call_arg(c, 1) : NULL;

    if (program && !complete_knows(program))
        verb_usage(c, "evtgtadm is not called %s", program);
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shell, shells[i].name) != 0)
            continue;
        char *ask = program ? xasprintf("evtgtadm complete-of %s", program) : NULL;
        print_script(shells[i].script, program ? program : "evtgtadm", ask ? ask : shells[i].ask);
        free(ask);
        return 0;
    }
    verb_usage(c, "a shell is bash, zsh or fish, not %s", shell);
}
