/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ietd.conf of the iSCSI Enterprise Target -> raw nodes of our directives.  A line is a word and
 * what it says; words count whatever their case; accounts before the first Target are those of
 * discovery. The access files beside it are read by syntax_iet_acl.c.
 */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/syntax.h"

struct iet {
    const struct syntax_in *in;
    struct syntax_list top, block; /* block: of the target that is being read */
    struct raw_node *target;
    struct iet_access *access;
    struct conf_pos pos; /* of the line's first word */
    const char *line;    /* the whole line, to find columns in */
    unsigned nop_interval, nop_timeout;
    struct conf_pos nop_pos;
    struct raw_node *outgoing; /* the last OutgoingUser of this part */
};

struct iet_word {
    const char *name;
    void (*take)(struct iet *p, const struct iet_word *w, char *rest);
    const char *ours; /* name here; or why there is none */
};

static struct conf_pos
at(const struct iet *p, const char *s)
{
    struct conf_pos pos = p->pos;
    pos.col = (unsigned)(s - p->line) + 1;
    return pos;
}

/* The next word of *s, cut off there; NULL: none. */
static char *
word(char **s)
{
    char *w = *s + strspn(*s, " \t");
    char *end = w + strcspn(w, " \t");

    if (!*w)
        return NULL;
    *s = *end ? end + 1 : end;
    *end = 0;
    return w;
}

static struct syntax_list *
here(struct iet *p)
{
    return p->target ? &p->block : &p->top;
}

static bool
missing(struct iet *p, const struct iet_word *w, const char *value)
{
    if (value)
        return false;
    conf_report_add(p->in->r, true, &p->pos, "%s wants a value", w->name);
    return true;
}

/* --- what a line may be ---------------------------------------------------------------------- */

static void
take_value(struct iet *p, const struct iet_word *w, char *rest)
{
    char *v = word(&rest);
    if (!missing(p, w, v))
        syntax_add(here(p), p->in->file, p->pos, at(p, v), w->ours ? w->ours : w->name, v);
}

static void
take_text(struct iet *p, const struct iet_word *w, char *rest)
{
    rest += strspn(rest, " \t");
    if (!missing(p, w, *rest ? rest : NULL))
        syntax_add(here(p), p->in->file, p->pos, at(p, rest), w->ours, rest);
}

static void
take_loss(struct iet *p, const struct iet_word *w, char *rest)
{
    (void)rest;
    conf_report_loss(p->in->r, &p->pos, "%s has no equivalent: %s", w->name, w->ours);
}

/* 0 is what IET has without the line: nothing is lost. */
static void
take_limit(struct iet *p, const struct iet_word *w, char *rest)
{
    char *v = word(&rest);
    if (!missing(p, w, v) && strcmp(v, "0") != 0)
        take_loss(p, w, rest);
}

static void
take_isns_access(struct iet *p, const struct iet_word *w, char *rest)
{
    char *v = word(&rest);
    if (!missing(p, w, v))
        syntax_add(&p->top, p->in->file, p->pos, at(p, v), w->name,
                   strcasecmp(v, "Yes") == 0 ? "On" : "Off");
}

static void
take_account(struct iet *p, const struct iet_word *w, char *rest)
{
    static const char *const names[2][2] = {{"incomingdiscoveryuser", "outgoingdiscoveryuser"},
                                            {"incominguser", "outgoinguser"}};
    bool out = tolower((unsigned char)w->name[0]) == 'o';
    char *user = word(&rest), *secret = word(&rest);

    if (!secret) {
        conf_report_add(p->in->r, true, &p->pos, "%s wants a name and a secret", w->name);
        return;
    }
    if (out && p->outgoing) {
        conf_report_loss(p->in->r, &p->outgoing->pos,
                         "%s has no equivalent: IET took the last one of several, at line %u; "
                         "this one can go",
                         w->name, p->pos.line);
        p->outgoing->name[0] = 0; /* left out when all is read */
    }
    char *u = syntax_quoted(user), *s = syntax_quoted(secret);
    char *both = xasprintf("%s %s", u, s);
    struct raw_node *n =
        syntax_add(here(p), p->in->file, p->pos, at(p, user), names[p->target != NULL][out], both);
    p->outgoing = out ? n : p->outgoing;
    free(u);
    secret_free_text(s);
    secret_free_text(both);
    secret_wipe(secret, strlen(secret));
}

static void
take_nop(struct iet *p, const struct iet_word *w, char *rest)
{
    char *v = word(&rest);
    uint64_t n = 0;

    if (missing(p, w, v))
        return;
    if (conf_parse_uint(v, 0, 3600, &n) < 0) {
        struct conf_pos pos = at(p, v);
        conf_report_add(p->in->r, true, &pos, "%s wants a number of seconds, not \"%s\"", w->name,
                        v);
        return;
    }
    p->nop_pos = p->pos;
    *(strcmp(w->ours, "interval") == 0 ? &p->nop_interval : &p->nop_timeout) = (unsigned)n;
}

/* --- logical units --------------------------------------------------------------------------- */

struct lun {
    char *path, *type, *mode;
    uint64_t sectors, block;
    struct syntax_list list;
};

static void
lun_number(struct iet *p, const struct conf_pos *pos, const char *key, const char *v, uint64_t *out)
{
    if (conf_parse_uint(v, 1, UINT64_MAX >> 12, out) < 0)
        conf_report_add(p->in->r, true, pos, "%s wants a number, not \"%s\"", key, v);
}

static void
lun_param(struct iet *p, struct lun *l, char *key, char *v)
{
    struct conf_pos pos = at(p, key), vpos = at(p, v);

    if (strcasecmp(key, "Path") == 0)
        l->path = v;
    else if (strcasecmp(key, "Type") == 0)
        l->type = v;
    else if (strcasecmp(key, "IOMode") == 0)
        l->mode = v;
    else if (strcasecmp(key, "ScsiId") == 0)
        syntax_add(&l->list, p->in->file, pos, vpos, "scsi_id", v);
    else if (strcasecmp(key, "ScsiSN") == 0)
        syntax_add(&l->list, p->in->file, pos, vpos, "scsi_sn", v);
    else if (strcasecmp(key, "BlockSize") == 0) {
        lun_number(p, &vpos, key, v, &l->block);
        syntax_add(&l->list, p->in->file, pos, vpos, "block-size", v);
    } else if (strcasecmp(key, "Sectors") == 0)
        lun_number(p, &vpos, key, v, &l->sectors);
    else
        conf_report_loss(p->in->r, &pos,
                         "%s=%s has no equivalent: IET has no such parameter and passed over it; "
                         "take it out",
                         key, v);
}

static void
lun_params(struct iet *p, struct lun *l, char *rest)
{
    while (*rest) {
        char *one = rest + strspn(rest, " \t");
        char *comma = one + strcspn(one, ",");
        rest = *comma ? comma + 1 : comma;
        *comma = 0;
        for (char *e = one + strlen(one); e > one && isspace((unsigned char)e[-1]);)
            *--e = 0;
        char *eq = strchr(one, '=');
        struct conf_pos pos = at(p, one);
        if (!*one)
            continue;
        if (!eq) {
            conf_report_add(p->in->r, true, &pos, "Lun wants NAME=VALUE, not \"%s\"", one);
            continue;
        }
        *eq = 0;
        lun_param(p, l, one, eq + 1);
    }
}

/* Caching and access, by IOMode. */
static void
lun_mode(struct iet *p, struct lun *l, bool null)
{
    const char *m = l->mode ? l->mode : "wt";
    struct conf_pos pos = l->mode ? at(p, l->mode) : p->pos;

    if (strcasecmp(m, "ro") == 0)
        syntax_add(&l->list, p->in->file, pos, pos, "readonly", "on");
    else if (strcasecmp(m, "wb") != 0 && strcasecmp(m, "wt") != 0)
        conf_report_add(p->in->r, true, &pos, "IOMode wants ro, wb or wt, not \"%s\"", m);
    /* IET writes through unless told otherwise; blockio always */
    if (!null && (strcasecmp(m, "wb") != 0 || (l->type && strcasecmp(l->type, "blockio") == 0)))
        syntax_add(&l->list, p->in->file, pos, pos, "write-cache", "off");
}

static void
take_lun(struct iet *p, const struct iet_word *w, char *rest)
{
    struct lun l = {.block = 512};
    char *number = word(&rest);
    bool null = false;

    if (missing(p, w, number))
        return;
    syntax_list_init(&l.list);
    syntax_add(&l.list, p->in->file, p->pos, at(p, number), "lun", number);
    lun_params(p, &l, rest);
    if (l.type) {
        struct conf_pos pos = at(p, l.type);
        null = strcasecmp(l.type, "nullio") == 0;
        if (null || strcasecmp(l.type, "blockio") == 0)
            syntax_add(&l.list, p->in->file, pos, pos, "bs-type", null ? "null" : "blockio");
        else if (strcasecmp(l.type, "fileio") != 0)
            conf_report_add(p->in->r, true, &pos,
                            "Type wants fileio, blockio or nullio, not \"%s\"", l.type);
    }
    if (null && l.sectors)
        syntax_addf(&l.list, p->in->file, p->pos, "size", "%llu",
                    (unsigned long long)(l.sectors * l.block));
    else if (null)
        conf_report_add(p->in->r, true, &p->pos, "Type=nullio wants Sectors=NUMBER");
    else if (!l.path)
        conf_report_add(p->in->r, true, &p->pos, "Lun wants Path=FILE");
    lun_mode(p, &l, null);
    const char *path = l.path ? l.path : "null";
    struct raw_node *n = syntax_add(&p->block, p->in->file, p->pos, l.path ? at(p, path) : p->pos,
                                    "backing-store", path);
    n->is_block = true;
    n->children = l.list.first;
}

/* --- the file -------------------------------------------------------------------------------- */

/* What is only known at the end of a target. */
static void
end_part(struct iet *p)
{
    if (p->target) {
        if (p->nop_interval) {
            unsigned t = p->nop_timeout, i = p->nop_interval;
            syntax_addf(&p->block, p->in->file, p->nop_pos, "nop_interval", "%u", i);
            /* IET gives up after one ping without an answer, at the latest when the next is due */
            syntax_add(&p->block, p->in->file, p->nop_pos, p->nop_pos, "nop_count", "1");
            if (t > 0 && t < i)
                conf_report_loss(p->in->r, &p->nop_pos,
                                 "NOPTimeout %u has no equivalent: a connection that does not "
                                 "answer is given up after %u seconds, when the next ping is due",
                                 t, i);
        }
        iet_access_nodes(p->access, p->target, &p->block);
        p->target->children = p->block.first;
    }
    p->nop_interval = p->nop_timeout = 0;
    p->outgoing = NULL;
}

static void
take_target(struct iet *p, const struct iet_word *w, char *rest)
{
    char *name = word(&rest);

    end_part(p);
    p->target = NULL;
    if (missing(p, w, name))
        return;
    p->target = syntax_add(&p->top, p->in->file, p->pos, at(p, name), "target", name);
    p->target->is_block = true;
    syntax_list_init(&p->block);
    syntax_add(&p->block, p->in->file, p->pos, p->pos, "ids", "iet");
}

static const struct iet_word words[] = {
    {"Target", take_target, NULL},
    {"iSNSServer", take_value, NULL},
    {"iSNSAccessControl", take_isns_access, NULL},
    {"IncomingUser", take_account, NULL},
    {"OutgoingUser", take_account, NULL},
    {"Lun", take_lun, NULL},
    {"Alias", take_text, "alias"},
    {"MaxSessions", take_limit,
     "it limited the sessions of one target; max-sessions limits those of the daemon"},
    {"Wthreads", take_loss,
     "it was the number of threads for one target; here workers serve all targets, see `workers`"},
    {"Type", take_loss, "every target serves disks; take it out"},
    {"QueuedCommands", take_value, "MaxQueueCmd"},
    {"NOPInterval", take_nop, "interval"},
    {"NOPTimeout", take_nop, "timeout"},
    {"MaxConnections", take_value, NULL},
    {"InitialR2T", take_value, NULL},
    {"ImmediateData", take_value, NULL},
    {"MaxRecvDataSegmentLength", take_value, NULL},
    {"MaxXmitDataSegmentLength", take_loss,
     "it limited what is sent at once; the initiator's MaxRecvDataSegmentLength alone does here"},
    {"MaxBurstLength", take_value, NULL},
    {"FirstBurstLength", take_value, NULL},
    {"DefaultTime2Wait", take_value, NULL},
    {"DefaultTime2Retain", take_value, NULL},
    {"MaxOutstandingR2T", take_value, NULL},
    {"DataPDUInOrder", take_value, NULL},
    {"DataSequenceInOrder", take_value, NULL},
    {"ErrorRecoveryLevel", take_value, NULL},
    {"HeaderDigest", take_value, NULL},
    {"DataDigest", take_value, NULL},
    {"IFMarker", take_value, NULL},
    {"OFMarker", take_value, NULL},
    {"IFMarkInt", take_loss, "markers are not sent (RFC 7143 dropped them); take it out"},
    {"OFMarkInt", take_loss, "markers are not sent (RFC 7143 dropped them); take it out"},
};
#define NGLOBAL 5 /* of words: those that may stand before the first Target */

static void
one_line(struct iet *p, char *line, unsigned number)
{
    char *rest = line;

    p->line = line;
    char *first = word(&rest);
    if (!first || *first == '#')
        return;
    p->pos = (struct conf_pos){p->in->file->name, number, (unsigned)(first - line) + 1};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcasecmp(words[i].name, first) != 0)
            continue;
        if (i >= NGLOBAL && !p->target)
            conf_report_loss(p->in->r, &p->pos,
                             "%s has no equivalent: before the first Target, IET passed over it; "
                             "put it below the Target that it is for",
                             words[i].name);
        else
            words[i].take(p, &words[i], rest);
        return;
    }
    conf_report_loss(p->in->r, &p->pos,
                     "\"%.100s\" has no equivalent: IET knows no such word and passed over the "
                     "line; take it out",
                     first);
}

/* OutgoingUser lines that a later one replaced. */
static void
drop_unnamed(struct raw_node **list)
{
    while (*list) {
        struct raw_node *n = *list;
        drop_unnamed(&n->children);
        if (*n->name) {
            list = &n->next;
            continue;
        }
        *list = n->next;
        n->next = NULL;
        raw_nodes_free(n);
    }
}

static const struct raw_node *
next_lun(const struct raw_node **target, const struct raw_node *n)
{
    n = n ? n->next : NULL;
    for (;;) {
        for (; n; n = n->next) {
            if (n->is_block)
                return n;
        }
        do {
            *target = (*target)->next;
        } while (*target && !(*target)->is_block);
        if (!*target)
            return NULL;
        n = (*target)->children;
    }
}

static int
by_path(const void *a, const void *b)
{
    return strcmp((*(struct raw_node *const *)a)->value, (*(struct raw_node *const *)b)->value);
}

/* IET lets several targets have one store, each as a disk of its own. */
static void
share_stores(struct iet *p)
{
    struct raw_node head = {.next = p->top.first}, **v = NULL;
    const struct raw_node *t = &head, *n = NULL;
    size_t k = 0;

    while ((n = next_lun(&t, n))) {
        v = xrealloc(v, (k + 1) * sizeof *v);
        memcpy(&v[k++], &n, sizeof n);
    }
    if (k)
        qsort(v, k, sizeof *v, by_path);
    for (size_t i = 0; i < k; i++) {
        bool twin =
            v[i]->value[0] == '/' && ((i > 0 && strcmp(v[i]->value, v[i - 1]->value) == 0) ||
                                      (i + 1 < k && strcmp(v[i]->value, v[i + 1]->value) == 0));
        struct syntax_list list = {v[i]->children, &v[i]->children};
        while (*list.tail)
            list.tail = &(*list.tail)->next;
        if (twin)
            syntax_add(&list, v[i]->file, v[i]->pos, v[i]->pos, "allow-in-use", "yes");
    }
    free(v);
}

struct raw_node *
syntax_iet(const struct syntax_in *in)
{
    struct iet p = {.in = in};
    const char *s = in->text, *end = in->text + in->len;
    unsigned number = 1;

    syntax_list_init(&p.top);
    syntax_list_init(&p.block);
    p.access = iet_access_read(in);
    iet_access_global(p.access, &p.top);
    if (!in->file->parent) { /* targets that are made later are as IET would have made them */
        const struct conf_pos pos = {in->file->name, 1, 1};
        syntax_add(&p.top, in->file, pos, pos, "ids", "iet");
    }
    while (s < end) {
        char *line = xmalloc((size_t)(end - s) < 65536 ? (size_t)(end - s) + 1 : 65537);
        size_t n = 0, lines = 0;
        bool more = true;
        /* a backslash at the end continues the line */
        while (more && s < end) {
            const char *nl = memchr(s, '\n', (size_t)(end - s));
            size_t k = nl ? (size_t)(nl - s) : (size_t)(end - s);
            size_t use = k && s[k - 1] == '\r' ? k - 1 : k;
            more = use && s[use - 1] == '\\' && nl;
            use -= more;
            use = n + use > 65536 ? 65536 - n : use;
            memcpy(line + n, s, use);
            n += use;
            s += k + (nl != NULL);
            lines++;
        }
        for (size_t i = 0; i < n; i++) {
            if (line[i] == 0 || line[i] == '\v' || line[i] == '\f' || line[i] == '\r')
                line[i] = ' ';
        }
        line[n] = 0;
        one_line(&p, line, number);
        number += (unsigned)lines;
        secret_wipe(line, n);
        free(line);
    }
    end_part(&p);
    drop_unnamed(&p.top.first);
    share_stores(&p);
    iet_access_free(p.access);
    return p.top.first;
}
