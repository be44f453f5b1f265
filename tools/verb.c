/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain verbs: the command line by the table of verbs.c, calls to the daemon, errors.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/pool.h"
#include "tools/adm.h"
#include "tools/verb.h"

static struct call *the_call; /* for what ends the process deep inside a call */

/* --- errors ---------------------------------------------------------------------------------- */

/* What the daemon did, or may have done, needs what was made for it: nothing is taken back. */
static void
undo_all(struct call *c)
{
    if (c->in_doubt && c->nundo) {
        fprintf(stderr, "%s: what was made before stays: the daemon may use it\n", adm_name);
        c->nundo = 0;
    }
    while (c->nundo) {
        struct undo u = c->undo[--c->nundo];
        u.fn(c, u.arg);
    }
}

void
verb_undo(struct call *c, void (*fn)(struct call *c, void *arg), void *arg)
{
    if (c->nundo < sizeof c->undo / sizeof *c->undo)
        c->undo[c->nundo++] = (struct undo){fn, arg};
}

void
verb_undo_none(struct call *c)
{
    c->nundo = 0;
}

static void
end_with(struct call *c, int status, const char *code, const char *hint, const char *text)
{
    char *plain = out_plain(text);
    if (c->json) {
        json_t *e = json_pack("{ss ss}", "code", code, "message", plain);
        if (hint)
            json_object_set_new(e, "hint", json_string(hint));
        json_t *o = json_pack("{si sb so}", "v", 1, "ok", 0, "error", e);
        json_dumpf(o, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        putchar('\n');
    }
    fprintf(stderr, "%s: %s\n", adm_name, plain);
    if (hint)
        fprintf(stderr, "%s\n", hint);
    (void)fflush(NULL);
    _exit(status);
}

void
verb_fail(struct call *c, int status, const char *code, const char *hint, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    undo_all(c);
    end_with(c, status, code, hint, text);
    abort();
}

void
verb_usage(struct call *c, const char *fmt, ...)
{
    char text[2048];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    undo_all(c);
    char *line = c->v ? help_usage(c->v) : xstrdup("VERB ...");
    char *hint = xasprintf("usage: %s %s\nMore: %s help%s%s", adm_name, line, adm_name,
                           c->v ? " " : "", c->v ? c->v->name : "");
    end_with(c, VERB_USAGE, "usage", hint, text);
    abort();
}

/* adm_die inside a call: no daemon, no answer. */
static void
on_dying(int status, const char *text)
{
    if (!the_call)
        return;
    struct call *c = the_call;
    the_call = NULL;
    c->in_doubt = adm_unanswered;
    undo_all(c);
    end_with(c, status, status == ENOTCONN ? "no-daemon" : "no-answer",
             status == ENOTCONN ? "Start it: systemctl start evtgtd, or evtgtd(8); --socket names "
                                  "another socket."
                                : NULL,
             text);
}

/* --- the daemon ------------------------------------------------------------------------------ */

/* An error that does not say that nothing was done. */
static bool
is_doubtful(const json_t *reply)
{
    static const char *const codes[] = {"timeout", "not-saved"};
    const char *code = j_str(json_object_get(reply, "error"), "code");

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (strcmp(codes[i], code) == 0)
            return true;
    }
    return false;
}

json_t *
verb_try(struct call *c, const char *mode, const char *op, json_t *args)
{
    if (!args)
        args = json_object();
    if (c->persist && strcmp(op, "show") != 0)
        json_object_set_new(args, "persist", json_true());
    json_t *req = json_pack("{si ss ss so}", "v", 1, "mode", mode, "op", op, "args", args);
    if (!req)
        verb_usage(c, "what is given must be UTF-8");
    json_t *reply = adm_call(c->socket, req);
    json_decref(req);
    c->in_doubt = is_doubtful(reply);
    return reply;
}

/* What would help, by the code of the refusal. */
static const struct {
    const char *code, *words, *hint;
} hints[] = {
    {"target-active", NULL,
     "Its sessions are in `session list TARGET`; --force does it to them nevertheless, `drain "
     "TARGET` asks their initiators to leave."},
    {"invalid", "remove it and add it again",
     "`lun remove TARGET LUN` leaves the file; then `lun add TARGET PATH --lun LUN --set "
     "NAME=VALUE`."},
    {"invalid", "unknown parameter", NULL},
    {"invalid", "opened anew",
     "It cannot change while it is served: `lun remove` it (the file stays) and `lun add` it again "
     "with --set NAME=VALUE."},
    {"lun-active", "in use by",
     "Have them log out, or the disk unmounted and then --force: it takes the LUN away from them."},
    {"lun-active", NULL, "Commands are at work: try again, or --force fails them."},
    {"removal-prevented", NULL,
     "An initiator has it mounted, it seems; --force takes it away nevertheless."},
    {"target-exists", NULL, "`target list` shows what there is."},
    {"lun-exists", NULL,
     "Without --lun the first free number is taken; `lun list TARGET` shows all."},
    {"account-exists", NULL, "`account remove USER` first, or `account bind USER TARGET`."},
    {"no-account", NULL, "`account list` shows all, `account add USER` makes one."},
    {"no-rule", NULL, "`acl list TARGET` shows the rules as they were given."},
    {"invalid", "in use: ",
     "Free it first. --force serves it nevertheless; two that write to one disk destroy what is "
     "on it."},
    {"invalid", "lock", "Free it first; --force serves it nevertheless."},
};

void
verb_refused(struct call *c, const json_t *reply)
{
    const json_t *e = json_object_get(reply, "error");
    const char *code = j_str(e, "code"), *text = j_str(e, "message"), *hint = NULL;

    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        if (strcmp(hints[i].code, code) != 0 || (hints[i].words && !strstr(text, hints[i].words)))
            continue;
        hint = hints[i].hint;
        break;
    }
    verb_fail(c, VERB_NOT_DONE, *code ? code : "invalid", hint, "%s",
              *text ? text : "the daemon's answer makes no sense");
}

json_t *
verb_ask(struct call *c, const char *mode, const char *op, json_t *args)
{
    json_t *reply = verb_try(c, mode, op, args);
    if (!j_is(reply, "ok"))
        verb_refused(c, reply);
    json_t *data = json_object_get(reply, "data");
    json_incref(data);
    json_decref(reply);
    return data;
}

/* --- values ---------------------------------------------------------------------------------- */

bool
verb_parse_size(const char *text, uint64_t *out)
{
    static const char units[] = "KMGTP";
    char *end;
    uint64_t n, scale = 1, part = 0, ten = 1;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    n = strtoull(text, &end, 10);
    if (errno)
        return false;
    if (*end == '.') { /* 1.5T: at most six digits count */
        for (end++; isdigit((unsigned char)*end); end++) {
            if (ten < 1000000) {
                part = part * 10 + (uint64_t)(*end - '0');
                ten *= 10;
            }
        }
        if (ten == 1)
            return false;
    }
    const char *u = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (u) {
        scale = 1ull << (10 * (unsigned)(u - units + 1));
        end++;
    }
    if (strcasecmp(end, "iB") == 0 && u)
        end += 2;
    else if (strcasecmp(end, "B") == 0)
        end++;
    if (*end || (ten > 1 && !u) || n > (1ull << 62) / scale)
        return false;
    *out = n * scale + part * (scale / ten) + part * (scale % ten) / ten;
    return *out > 0 && *out <= 1ull << 62;
}

uint64_t
verb_size(struct call *c, const char *text)
{
    uint64_t v;
    if (!verb_parse_size(text, &v))
        verb_usage(c, "\"%s\" is no size: bytes, or a number with K, M, G, T or P, such as 500G",
                   text);
    return v;
}

char *
verb_size_text(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned u = 0;
    uint64_t tenths = bytes;

    while (tenths >= 1024 && u < 6 && tenths < 1ull << 60) {
        tenths /= 1024;
        u++;
    }
    if (u == 0)
        return xasprintf("%llu B", (unsigned long long)bytes);
    uint64_t unit = 1ull << (10 * u), rest = bytes % unit;
    uint64_t digit = rest / (unit / 10 ? unit / 10 : 1);
    if (digit > 9)
        digit = 9;
    if (digit == 0)
        return xasprintf("%llu %s", (unsigned long long)(bytes / unit), units[u]);
    return xasprintf("%llu.%llu %s", (unsigned long long)(bytes / unit), (unsigned long long)digit,
                     units[u]);
}

unsigned
verb_number(struct call *c, const char *what, const char *text, unsigned min, unsigned max)
{
    char *end;
    errno = 0;
    unsigned long v = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || errno || v < min || v > max)
        verb_usage(c, "%s wants a number from %u to %u, not \"%s\"", what, min, max, text);
    return (unsigned)v;
}

bool
verb_sure(struct call *c, const char *fmt, ...)
{
    char line[64];
    va_list ap;

    if (c->yes)
        return true;
    if (!isatty(STDIN_FILENO))
        return false;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs(" Type yes: ", stderr);
    (void)fflush(stderr);
    if (!fgets(line, sizeof line, stdin))
        return false;
    line[strcspn(line, "\r\n")] = 0;
    return strcmp(line, "yes") == 0;
}

/* --- the command line ------------------------------------------------------------------------ */

const char *
call_each(const struct call *c, const char *name, unsigned *i)
{
    for (; *i < c->ngiven; (*i)++) {
        if (strcmp(c->given[*i].opt->name, name) == 0)
            return c->given[(*i)++].value;
    }
    return NULL;
}

const char *
call_opt(const struct call *c, const char *name)
{
    const char *v, *last = NULL;
    for (unsigned i = 0; (v = call_each(c, name, &i));)
        last = v;
    return last;
}

const char *
call_arg(const struct call *c, unsigned n)
{
    return n < c->nargs ? c->args[n] : NULL;
}

/* Option number i of a verb, its own and the common ones. */
static const struct verb_opt *
opt_at(const struct verb *v, unsigned i)
{
    unsigned own = 0;
    while (v->opts && v->opts[own].name)
        own++;
    return i < own ? &v->opts[i] : verb_common(v, i - own);
}

/* By its name or a beginning of it that fits one only. */
static const struct verb_opt *
find_opt(struct call *c, const char *word, size_t n)
{
    const struct verb_opt *o, *hit = NULL;

    for (unsigned i = 0; (o = opt_at(c->v, i)); i++) {
        if (strncmp(o->name, word, n) != 0)
            continue;
        if (!o->name[n])
            return o;
        if (hit)
            verb_usage(c, "--%.*s can be --%s or --%s", (int)n, word, hit->name, o->name);
        hit = o;
    }
    if (!hit)
        verb_usage(c, "there is no option --%.*s here", (int)n, word);
    return hit;
}

/* "a|b|c" */
static bool
is_choice(const char *list, const char *value)
{
    size_t n = strlen(value);
    for (const char *p = list; n;) {
        size_t k = strcspn(p, "|");
        if (k == n && strncmp(p, value, n) == 0)
            return true;
        if (!p[k])
            return false;
        p += k + 1;
    }
    return false;
}

/* Takes word i, and the one after it when that is its value; the last index used. */
static int
take_opt(struct call *c, char **argv, int argc, int i)
{
    const char *word = argv[i] + 2, *eq = strchr(word, '='), *value = "";
    const struct verb_opt *o = find_opt(c, word, eq ? (size_t)(eq - word) : strlen(word));
    bool may = o->arg && o->arg[0] == '[';

    if (eq && !o->arg)
        verb_usage(c, "--%s takes no value", o->name);
    if (eq) {
        value = eq + 1;
    } else if (o->arg && !may) {
        if (i + 1 >= argc)
            verb_usage(c, "--%s wants %s", o->name, o->arg);
        value = argv[++i];
    }
    if (o->arg && strchr(o->arg, '|') && !is_choice(o->arg, value))
        verb_usage(c, "--%s wants %s, not \"%s\"", o->name, o->arg, value);
    for (unsigned k = 0; k < c->ngiven; k++) {
        if (c->given[k].opt == o && !o->many)
            verb_usage(c, "--%s is given twice", o->name);
    }
    c->given[c->ngiven++] = (struct given){o, value};
    return i;
}

/* Least and most arguments of "A [B] C...". */
static void
args_want(const char *spec, unsigned *least, unsigned *most)
{
    *least = *most = 0;
    while (*spec) {
        size_t n = strcspn(spec, " ");
        if (spec[0] != '[')
            (*least)++;
        if (*most != ~0u)
            (*most)++;
        for (size_t i = 0; i + 2 < n; i++) {
            if (strncmp(spec + i, "...", 3) == 0)
                *most = ~0u;
        }
        spec += n;
        spec += *spec == ' ';
    }
}

static void
take_words(struct call *c, int argc, char **argv)
{
    bool only_args = false;
    unsigned least, most;

    c->args = xcalloc((size_t)argc + 1, sizeof *c->args);
    c->given = xcalloc((size_t)argc + 1, sizeof *c->given);
    for (int i = 0; i < argc; i++) {
        if (!only_args && strcmp(argv[i], "--") == 0)
            only_args = true;
        else if (!only_args && strcmp(argv[i], "-h") == 0)
            c->given[c->ngiven++] = (struct given){find_opt(c, "help", 4), ""};
        else if (!only_args && strncmp(argv[i], "--", 2) == 0)
            i = take_opt(c, argv, argc, i);
        else if (!only_args && argv[i][0] == '-' && argv[i][1] &&
                 !isdigit((unsigned char)argv[i][1]))
            verb_usage(c, "there is no option %s here; options have two dashes", argv[i]);
        else
            c->args[c->nargs++] = argv[i];
    }
    c->socket = call_opt(c, "socket");
    c->json = call_opt(c, "json") != NULL;
    c->persist = call_opt(c, "persist") != NULL;
    c->yes = call_opt(c, "yes") != NULL;
    if (call_opt(c, "help"))
        return;
    args_want(c->v->args, &least, &most);
    if (c->nargs < least)
        verb_usage(c, "%s wants %s", c->v->name, c->v->args);
    if (c->nargs > most)
        verb_usage(c, "\"%s\" is too much here", c->args[most]);
}

/* The verb that the first words name, and how many they are. */
static const struct verb *
find_verb(int argc, char **argv, int *used)
{
    const struct verb *v;
    for (unsigned i = 0; (v = verb_at(i)); i++) {
        const char *space = strchr(v->name, ' ');
        size_t n = space ? (size_t)(space - v->name) : strlen(v->name);
        if (strncmp(v->name, argv[0], n) != 0 || argv[0][n])
            continue;
        *used = space ? 2 : 1;
        if (!space || (argc > 1 && strcmp(space + 1, argv[1]) == 0))
            return v;
    }
    return NULL;
}

/* Words that almost name a verb: what is offered instead. */
static void
unknown(struct call *c, int argc, char **argv)
{
    if (help_is_group(argv[0]) && (argc < 2 || argv[1][0] == '-')) {
        help_group(argv[0]);
        bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
        (void)fflush(NULL);
        _exit(asked ? 0 : VERB_USAGE);
    }
    char *hint = help_is_group(argv[0]) ? xasprintf("`%s help %s` lists them.", adm_name, argv[0])
                                        : xasprintf("`%s help` lists all.", adm_name);
    end_with(c, VERB_USAGE, "usage", hint,
             xasprintf("there is no verb %s%s%s", argv[0], help_is_group(argv[0]) ? " " : "",
                       help_is_group(argv[0]) ? argv[1] : ""));
}

/* How many words, from argv[0] on, are options that every verb has, before the verb. */
static int
leading(int argc, char **argv)
{
    int n = 0;

    while (n < argc) {
        if (strcmp(argv[n], "--socket") == 0)
            n += 2;
        else if (strncmp(argv[n], "--socket=", 9) == 0 || strcmp(argv[n], "--json") == 0 ||
                 strcmp(argv[n], "--persist") == 0)
            n++;
        else
            break;
    }
    return n;
}

bool
verbs_are_meant(int argc, char **argv)
{
    int n = argc > 1 ? leading(argc - 1, argv + 1) + 1 : argc;
    return n < argc && argv[n][0] && argv[n][0] != '-';
}

/* Options that stand before the verb, behind it. */
static char **
verb_first(int argc, char **argv)
{
    int before = leading(argc, argv), words = 0;
    char **out = xcalloc((size_t)argc + 1, sizeof *out);

    if (!find_verb(argc - before, argv + before, &words))
        words = argc - before;
    memcpy(out, argv + before, (size_t)words * sizeof *out);
    memcpy(out + words, argv, (size_t)before * sizeof *out);
    memcpy(out + words + before, argv + before + words,
           (size_t)(argc - before - words) * sizeof *out);
    return out;
}

int
verbs_main(int argc, char **argv)
{
    struct call c = {.nargs = 0};
    int used = 0;

    argc--;
    argv = verb_first(argc, argv + 1);
    for (int i = 0; i < argc; i++) /* so that errors of the command line come as wanted */
        c.json |= strcmp(argv[i], "--json") == 0;
    c.v = find_verb(argc, argv, &used);
    if (!c.v)
        unknown(&c, argc, argv);
    the_call = &c;
    adm_dying = on_dying;
    int status = 0;
    bool wants_help =
        argc > used && (strcmp(argv[used], "--help") == 0 || strcmp(argv[used], "-h") == 0);
    if ((c.v->flags & (VF_HIDDEN | VF_OWN)) && !wants_help) {
        c.args = (const char **)argv + used;
        c.nargs = (unsigned)(argc - used);
        status = c.v->run(&c);
    } else {
        take_words(&c, argc - used, argv + used);
        if (call_opt(&c, "help"))
            help_verb(c.v);
        else
            status = c.v->run(&c);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: cannot write the answer\n", adm_name);
        status = VERB_NOT_DONE;
    }
    (void)fflush(NULL);
    _exit(status); /* what the verb still holds goes with the process */
}
