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

/* Names for which a place stands: TARGET, FILE, a|b|c. */
static void
offer_place(const char *start, const char *place)
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
        offer_place(last, wants->arg);
    else if (last[0] == '-')
        offer_opts(v, last);
    else if (place_at(v->args, args, place, sizeof place))
        offer_place(last, place);
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
    "# bash completion of evtgtadm; made by `evtgtadm completion bash`\n"
    "_evtgtadm()\n"
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
    "    done < <(\"${words[0]}\" complete \"${words[@]:1}\" 2>/dev/null)\n"
    "    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then\n"
    "        for i in \"${!COMPREPLY[@]}\"; do\n"
    "            COMPREPLY[i]=${COMPREPLY[i]#\"${cur%\"${cur##*:}\"}\"}\n"
    "        done\n"
    "    fi\n"
    "}\n"
    "complete -F _evtgtadm evtgtadm\n";

static const char zsh_script[] =
    "#compdef evtgtadm\n"
    "# zsh completion of evtgtadm; made by `evtgtadm completion zsh`\n"
    "_evtgtadm()\n"
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
    "    done < <(\"${words[1]}\" complete \"${(@)words[2,CURRENT]}\" 2>/dev/null)\n"
    "    if (( ${#found} )); then _describe evtgtadm found; fi\n"
    "}\n"
    "if [[ ${funcstack[1]} == _evtgtadm ]]; then _evtgtadm \"$@\"; "
    "elif (( $+functions[compdef] )); then compdef _evtgtadm evtgtadm; fi\n";

static const char fish_script[] =
    "# fish completion of evtgtadm; made by `evtgtadm completion fish`\n"
    "function __evtgtadm_complete\n"
    "    set -l words (commandline -opc) (commandline -ct)\n"
    "    for line in ($words[1] complete $words[2..-1] 2>/dev/null)\n"
    "        if test \"$line\" = @files\n"
    "            __fish_complete_path (commandline -ct)\n"
    "        else\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c evtgtadm -f -a '(__evtgtadm_complete)'\n";

int
verb_completion(struct call *c)
{
    const char *shell = call_arg(c, 0);
    if (strcmp(shell, "bash") == 0)
        fputs(bash_script, stdout);
    else if (strcmp(shell, "zsh") == 0)
        fputs(zsh_script, stdout);
    else if (strcmp(shell, "fish") == 0)
        fputs(fish_script, stdout);
    else
        verb_usage(c, "a shell is bash, zsh or fish, not %s", shell);
    return 0;
}
