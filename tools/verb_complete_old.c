/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion of the programs that evtgtadm also is: `evtgtadm complete-of PROGRAM WORDS...` offers
 * what may stand in the place of the last word, as `complete` does for the plain verbs. The options
 * are those of the programs' own tables.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/pool.h"
#include "tools/adm.h"
#include "tools/verb.h"
#include "tools/verb_parts.h"

static const struct old {
    const char *name;
    const struct option *(*longs)(unsigned i); /* NULL: letters */
} olds[] = {
    {"tgtadm", tgtadm_longs}, {"tgt-admin", tgt_admin_longs}, {"tgt-setup-lun", NULL},
    {"tgtimg", tgtimg_longs}, {"ietadm", ietadm_longs},
};

/* What an option's value may be. */
static const struct {
    const char *program, *option, *place;
} values[] = {
    {"tgtadm", "mode", "system|target|logicalunit|portal|session|connection|account|lld"},
    {"tgtadm", "op",
     "new|delete|show|update|bind|unbind|stat|start|stop|drain|undrain|renegotiate"},
    {"tgtadm", "lld", "iscsi"},
    {"tgtadm", "backing-store", "FILE"},
    {"tgtadm", "bstype", "rdwr|aio|fileio|blockio|null"},
    {"tgtadm", "bsoflags", "direct|sync"},
    {"tgtadm", "blocksize", "512|4096"},
    {"tgtadm", "device-type", "disk"},
    {"tgtadm", "targetname", "TARGET"},
    {"tgtadm", "password-file", "FILE"},
    {"tgtadm", "socket", "FILE"},
    {"tgt-admin", "conf", "FILE"},
    {"tgt-admin", "delete", "ALL|TARGET"},
    {"tgt-admin", "offline", "ALL|TARGET"},
    {"tgt-admin", "ready", "ALL|TARGET"},
    {"tgt-admin", "update", "ALL|TARGET"},
    {"tgt-setup-lun", "d", "FILE"},
    {"tgt-setup-lun", "b", "rdwr|aio|fileio|blockio|null"},
    {"tgt-setup-lun", "B", "512|4096"},
    {"tgt-setup-lun", "t", "iscsi"},
    {"tgtimg", "op", "new"},
    {"tgtimg", "device-type", "disk"},
    {"tgtimg", "type", "disk"},
    {"tgtimg", "file", "FILE"},
    {"ietadm", "op", "new|delete|show|update"},
    {"ietadm", "password-file", "FILE"},
    {"ietadm", "socket", "FILE"},
};

static const struct old *
find(const char *name)
{
    for (size_t i = 0; i < sizeof olds / sizeof *olds; i++) {
        if (strcmp(olds[i].name, name) == 0)
            return &olds[i];
    }
    return NULL;
}

bool
complete_knows(const char *program)
{
    return find(program) != NULL;
}

static void
offer_value(const struct old *o, const char *option, const char *start)
{
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (strcmp(values[i].program, o->name) != 0 || strcmp(values[i].option, option) != 0)
            continue;
        const char *place = values[i].place, *target = strstr(place, "|TARGET");
        char *words =
            xasprintf("%.*s|", target ? (int)(target - place) : (int)strlen(place), place);
        bool names = strcmp(place, "FILE") == 0 || strcmp(place, "TARGET") == 0;
        complete_place(start, names ? place : words);
        if (target)
            complete_place(start, "TARGET");
        free(words);
    }
}

/* The option that wants the next word as its value, or NULL. */
static const char *
wants_value(const struct old *o, const char *word)
{
    static char letter[2];
    const struct option *t;

    if (word[0] != '-' || !word[1] || strchr(word, '='))
        return NULL;
    if (!o->longs) {
        const char *p = word[2] ? NULL : strchr(tgt_setup_lun_letters, word[1]);
        letter[0] = word[1];
        return p && *p != ':' && p[1] == ':' ? letter : NULL;
    }
    for (unsigned i = 0; (t = o->longs(i)); i++) {
        for (; t->name; t++) {
            bool is = word[1] == '-' ? strcmp(t->name, word + 2) == 0
                                     : !word[2] && t->val == (unsigned char)word[1];
            if (is)
                return t->has_arg == required_argument ? t->name : NULL;
        }
    }
    return NULL;
}

static void
offer_options(const struct old *o, const char *start)
{
    const struct option *t;
    const size_t n = strlen(start);

    for (const char *p = tgt_setup_lun_letters; !o->longs && *p; p++) {
        char word[3] = {'-', *p, 0};
        if (*p != ':' && strncmp(word, start, n) == 0)
            puts(word);
    }
    for (unsigned i = 0; o->longs && (t = o->longs(i)); i++) {
        for (; t->name; t++) {
            char *word = xasprintf("--%s", t->name);
            if (strncmp(word, start, n) == 0)
                puts(word);
            free(word);
        }
    }
}

int
verb_complete_of(struct call *c)
{
    const struct old *o = c->nargs > 1 ? find(c->args[0]) : NULL;
    const char *last, *option;

    if (!o)
        return 0;
    last = c->args[c->nargs - 1];
    option = c->nargs > 2 ? wants_value(o, c->args[c->nargs - 2]) : NULL;
    if (option)
        offer_value(o, option, last);
    else if (last[0] == '-' || !*last)
        offer_options(o, last);
    return 0;
}
