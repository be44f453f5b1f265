/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs of the configuration as a whole: check, reload, dump, save, forget, saved. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/pool.h"
#include "tools/adm.h"
#include "tools/verb.h"
#include "tools/verb_parts.h"

/* --- check ----------------------------------------------------------------------------------- */

/* evtgtd beside us; it knows what is right. */
static char *
daemon_program(void)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n > 0) {
        self[n] = 0;
        char *slash = strrchr(self, '/');
        if (slash) {
            *slash = 0;
            char *path = xasprintf("%s/evtgtd", self);
            if (access(path, X_OK) == 0)
                return path;
            free(path);
        }
    }
    return xstrdup("evtgtd");
}

/* Runs it with what it says in *out (heap); its exit status. */
static int
run_daemon(struct call *c, char *const argv[], char **out)
{
    int fds[2], status = 0;
    size_t n = 0, cap = 4096;
    char *text = xmalloc(cap);

    if (pipe2(fds, 0) < 0)
        verb_fail(c, VERB_NOT_DONE, "run", NULL, "pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(fds[1], STDOUT_FILENO);
        (void)dup2(fds[1], STDERR_FILENO);
        close(fds[0]);
        close(fds[1]);
        execvp(argv[0], argv);
        dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    close(fds[1]);
    for (;;) {
        if (n + 1 == cap)
            text = xrealloc(text, cap *= 2);
        ssize_t k = read(fds[0], text + n, cap - n - 1);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            break;
        n += (size_t)k;
    }
    close(fds[0]);
    text[n] = 0;
    *out = text;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || !WIFEXITED(status))
        verb_fail(c, VERB_NOT_DONE, "run", NULL, "%s cannot be run", argv[0]);
    return WEXITSTATUS(status);
}

/* "FILE:LINE:COL: error: TEXT" */
static json_t *
message_json(char *line)
{
    static const char *const kinds[] = {": error: ", ": warning: "};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char *at = strstr(line, kinds[i]), *file = line;
        long num[2] = {0, 0};
        if (!at)
            continue;
        *at = 0;
        for (int k = 1; k >= 0; k--) {
            char *colon = strrchr(file, ':'), *end;
            if (!colon || !colon[1])
                break;
            num[k] = strtol(colon + 1, &end, 10);
            if (*end) {
                num[k] = 0;
                break;
            }
            *colon = 0;
        }
        return json_pack("{ss si si sb ss}", "file", file, "line", (int)num[0], "col", (int)num[1],
                         "error", i == 0, "text", at + strlen(kinds[i]));
    }
    return json_pack("{ss si si sb ss}", "file", "", "line", 0, "col", 0, "error", 0, "text", line);
}

int
verb_check(struct call *c)
{
    const char *file = call_arg(c, 0);
    char *program = daemon_program(), *out, *save = NULL;
    char *argv[] = {program, (char[]){"-t"}, file ? (char[]){"-c"} : NULL,
                    file ? xstrdup(file) : NULL, NULL};
    int status = run_daemon(c, argv, &out);

    if (!c->json) {
        fputs(out, status ? stderr : stdout);
        if (!status && !*out)
            verb_say(c, "No error in %s.", file ? file : SYSCONFDIR "/evtgt.conf");
        return status ? VERB_NOT_DONE : 0;
    }
    json_t *messages = json_array();
    for (char *line = strtok_r(out, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        json_array_append_new(messages, message_json(line));
    json_t *o = json_pack("{si sb s{so}}", "v", 1, "ok", status == 0, "data", "messages", messages);
    json_dumpf(o, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    putchar('\n');
    return status ? VERB_NOT_DONE : 0;
}

int
verb_convert(struct call *c)
{
    char **argv = xcalloc(c->nargs + 2, sizeof *argv);
    argv[0] = xstrdup("convert");
    for (unsigned i = 0; i < c->nargs; i++)
        argv[i + 1] = (char *)(uintptr_t)c->args[i];
    adm_dying = NULL; /* it has statuses of its own */
    return convert_main((int)c->nargs + 1, argv);
}

/* --- changes --------------------------------------------------------------------------------- */

/* What `how` of a change means to people. */
static const char *
how_words(const char *how)
{
    static const char *const words[][2] = {
        {"live", "at once"},
        {"sessions", "its sessions end or log in again"},
        {"lun", "the LUN is taken away and made anew"},
        {"restart", "only a new start of the daemon does it"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(how, words[i][0]) == 0)
            return words[i][1];
    }
    return how;
}

void
conf_print_messages(const json_t *data)
{
    json_t *m;
    size_t i;
    json_array_foreach(json_object_get(data, "messages"), i, m)
    {
        if (j_num(m, "line"))
            fprintf(stderr, "%s:%lld:%lld: %s: %s\n", j_str(m, "file"), j_num(m, "line"),
                    j_num(m, "col"), j_is(m, "error") ? "error" : "warning", j_str(m, "text"));
        else
            fprintf(stderr, "%s: %s: %s\n", j_str(m, "file"),
                    j_is(m, "error") ? "error" : "warning", j_str(m, "text"));
    }
}

void
conf_print_changes(const json_t *data)
{
    static const char *const heads[] = {"TARGET", "CHANGE", "HOW"};
    struct table tab;
    json_t *ch;
    size_t i;

    table_init(&tab, 3, heads);
    json_array_foreach(json_object_get(data, "changes"), i, ch)
    {
        const char *how = j_str(ch, "how"), *target = j_str(ch, "target");
        table_cell(&tab, PLAIN, "%s", *target ? target : "(the daemon)");
        table_cell(&tab, PLAIN, "%s", j_str(ch, "what"));
        table_cell(&tab, strcmp(how, "live") == 0 ? GOOD : ODD, "%s", how_words(how));
    }
    table_print(&tab);
}

int
verb_reload(struct call *c)
{
    bool pretend = call_opt(c, "pretend") != NULL;
    json_t *reply =
        verb_try(c, "config", "reload",
                 json_pack("{sb sb}", "force", call_opt(c, "force") != NULL, "pretend", pretend));
    if (!j_is(reply, "ok")) {
        if (!c->json)
            conf_print_messages(json_object_get(reply, "data"));
        verb_refused(c, reply);
    }
    json_t *data = json_object_get(reply, "data");
    if (verb_json(c, json_incref(data)))
        return 0;
    conf_print_messages(data);
    if (!json_array_size(json_object_get(data, "changes"))) {
        verb_say(c, "Nothing differs: nothing was changed.");
        return 0;
    }
    conf_print_changes(data);
    if (pretend)
        verb_say(c, "Nothing was changed; `evtgtadm reload` does it.");
    return 0;
}

int
verb_dump(struct call *c)
{
    const char *target = call_arg(c, 0);
    json_t *args = json_pack("{sb}", "secrets", call_opt(c, "secrets") != NULL);

    if (target) {
        struct target_id id = find_target(c, target);
        json_object_set_new(args, "target", json_string(id.name));
    }
    json_t *data = verb_ask(c, "config", "dump", args);
    if (verb_json(c, json_incref(data)))
        return 0;
    fputs(j_str(data, "text"), stdout);
    return 0;
}

/* --- saved ----------------------------------------------------------------------------------- */

/* What is named: targets, which may be gone already, and what stands outside of them. */
static json_t *
saved_args(struct call *c)
{
    json_t *names = json_array(), *args = json_object();
    const char *a;

    for (unsigned i = 0; (a = call_arg(c, i)); i++) {
        char *name = find_saved_name(c, a);
        json_array_append_new(names, json_string(name));
        free(name);
    }
    if (json_array_size(names))
        json_object_set(args, "targets", names);
    if (call_opt(c, "globals"))
        json_object_set_new(args, "globals", json_true());
    json_decref(names);
    return args;
}

int
verb_save(struct call *c)
{
    json_t *args = saved_args(c);
    bool named = json_object_size(args) > 0;
    json_t *data = verb_ask(c, "config", "save", args);
    if (verb_json(c, json_incref(data)))
        return 0;
    verb_say(c, "Saved: %s now outlives a restart and stands before the configuration file.",
             named ? "what was named" : "everything there is");
    verb_say(c, "`evtgtadm saved` lists it, `evtgtadm forget` takes it back.");
    return 0;
}

int
verb_forget(struct call *c)
{
    json_t *data = verb_ask(c, "config", "forget", saved_args(c));
    if (verb_json(c, json_incref(data)))
        return 0;
    verb_say(c, "Forgotten. What runs now stays until the next reload or start, which takes the "
                "configuration file's word again.");
    return 0;
}

int
verb_saved(struct call *c)
{
    json_t *data = verb_ask(c, "config", "saved", NULL), *s;
    size_t i;

    if (verb_json(c, json_incref(data)))
        return 0;
    json_t *all = json_object_get(data, "saved");
    if (*j_str(data, "error"))
        printf("The record of what is saved cannot be read: %s\n"
               "It is kept, and nothing can be saved, until `evtgtadm forget` removes it.\n",
               j_str(data, "error"));
    else if (!json_array_size(all))
        verb_say(c, "Nothing is saved: the next start has what the configuration file says.");
    json_array_foreach(all, i, s)
    {
        const char *target = j_str(s, "target");
        printf("%s  %s%s\n", j_str(s, "when"), *target ? target : "(the daemon)",
               j_is(s, "deleted") ? " (deleted)" : "");
        if (*j_str(s, "error"))
            printf("    not used, kept until it is forgotten: %s\n", j_str(s, "error"));
    }
    if (j_is(data, "autosave"))
        verb_say(c, "autosave is on: every change is saved.");
    return 0;
}
