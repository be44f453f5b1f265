/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw tree -> struct conf: every directive is looked up and judged, then what must be unique is
 * compared.  Goes on after an error, so that all of them are reported at once.
 */
#include "config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "conf/syntax.h"

struct builder {
    struct conf *c;
    const struct conf_source *src;
    const struct conf_checks *ck;
    struct conf_report *r;
    bool access_rules; /* access files say who gets in, where a target does not */
};

#define LUN_NUMBER_MAX 16383

/* Unknown here: known elsewhere, or near to something, or the list. */
static void
complain_unknown(struct builder *b, const struct raw_node *n, unsigned scope, const char *level)
{
    const struct directive *any = table_find_any(n->name);
    char hint[1024];

    if (any) {
        const char *place = any->scopes & SC_GLOBAL   ? "outside of any block"
                            : any->scopes & SC_TARGET ? "in a <target> block"
                            : any->scopes & SC_PORTAL ? "in a <portal> block"
                                                      : "in a <backing-store> block";
        conf_report_add(b->r, true, &n->pos, "%s does not belong %s; it stands %s", n->name, level,
                        place);
        return;
    }
    table_suggest(n->name, scope, hint, sizeof hint);
    conf_report_add(b->r, true, &n->pos, "unknown directive \"%.100s\" %s%s", n->name, level, hint);
}

static void
complain_twice(struct builder *b, const struct raw_node *n, const struct conf_pos *first)
{
    conf_report_add(b->r, true, &n->pos, "%s is given twice; the first is at %s", n->name,
                    WHERE(first));
}

/* An earlier sibling of the same name, or NULL. */
static const struct raw_node *
earlier(const struct raw_node *first, const struct raw_node *n)
{
    for (const struct raw_node *k = first; k && k != n; k = k->next) {
        if (strcmp(k->name, n->name) == 0)
            return k;
    }
    return NULL;
}

static bool
is_store(const struct raw_node *n)
{
    return strcmp(n->name, "backing-store") == 0 || strcmp(n->name, "direct-store") == 0;
}

/* Rules common to all rows. False: complained, skip it. */
static bool
row_ok(struct builder *b, const struct raw_node *first, const struct raw_node *n,
       const struct directive *d, bool may_block)
{
    const struct raw_node *twin;

    if (d->refuse) {
        conf_report_add(b->r, true, &n->pos, "%s: %s", n->name, d->refuse);
        return false;
    }
    if (n->is_block && !may_block) {
        conf_report_add(b->r, true, &n->pos, "%s is no block; write it as `%s value`", n->name,
                        n->name);
        return false;
    }
    if (!d->many && (twin = earlier(first, n))) {
        complain_twice(b, n, &twin->pos);
        return false;
    }
    /* only what stores nothing may be without a path, which is said by "" */
    if (!*n->value && !(n->quoted && is_store(n))) {
        conf_report_add(b->r, true, &n->vpos, "%s wants a value", n->name);
        return false;
    }
    return true;
}

static bool
run_setter(struct builder *b, void *obj, const struct raw_node *n, const struct directive *d)
{
    char err[512] = "", warn[512] = "";
    struct setter_out out = {err, sizeof err, warn, sizeof warn};

    if (d->type->set(obj, d, n->value, &out) < 0) {
        conf_report_add(b->r, true, &n->vpos, "%s", err);
        return false;
    }
    if (*warn && !n->told)
        conf_report_add(b->r, false, &n->vpos, "%s", warn);
    return true;
}

/* --- logical units --------------------------------------------------------------------------- */

static void
note_place(struct conf_lun *l, const char *name, const struct conf_pos *pos)
{
    static const char *const names[LUN_AT_COUNT] = {"lun", "scsi_id", "scsi_sn",
                                                    "naa", "eui",     "designator"};
    for (unsigned i = 0; i < LUN_AT_COUNT; i++) {
        if (strcmp(name, names[i]) == 0)
            l->at[i] = *pos;
    }
}

static void
lun_directive(struct builder *b, struct conf_lun *l, const struct raw_node *first,
              const struct raw_node *n)
{
    const struct directive *d = table_find(n->name, SC_LUN);
    char err[512] = "", warn[512] = "";

    if (!d) {
        complain_unknown(b, n, SC_LUN, "in a <backing-store> block");
        return;
    }
    if (!row_ok(b, first, n, d, false))
        return;
    if (conf_lun_set(l, false, n->name, n->value, err, sizeof err, warn, sizeof warn) < 0) {
        conf_report_add(b->r, true, &n->vpos, "%s", err);
        return;
    }
    if (*warn)
        conf_report_add(b->r, false, &n->vpos, "%s", warn);
    note_place(l, n->name, &n->vpos);
    if (strcmp(n->name, "params") == 0) { /* may hold identities: the best place known */
        for (unsigned i = LUN_AT_ID; i < LUN_AT_COUNT; i++)
            l->at[i] = l->at[i].file ? l->at[i] : n->vpos;
    }
}

static void
build_lun(struct builder *b, struct conf_target *t, const struct conf_lun *defaults,
          const struct raw_node *n)
{
    char err[512] = "";
    struct conf_lun l;

    conf_lun_copy(&l, defaults);
    l.pos = n->pos;
    free(l.path);
    l.path = xstrdup(strcmp(n->value, "none") == 0 ? "" : n->value); /* no medium */
    l.direct_store = strcmp(n->name, "direct-store") == 0;
    unsigned before = b->r->nerrors;
    if (n->children) {
        /* layers and designators of the block replace those of the target */
        bool fresh_layers = false, fresh_designators = false;
        for (const struct raw_node *k = n->children; k; k = k->next) {
            if (strcmp(k->name, "layer") == 0 && !fresh_layers) {
                l.layers[0] = 0;
                fresh_layers = true;
            }
            if (strcmp(k->name, "designator") == 0 && !fresh_designators) {
                l.designators_len = 0;
                fresh_designators = true;
            }
            lun_directive(b, &l, n->children, k);
        }
    }
    if (b->r->nerrors == before && conf_lun_check(&l, err, sizeof err) < 0)
        conf_report_add(b->r, true, l.path[0] == '/' || conf_bs_made(l.bs) ? &n->pos : &n->vpos,
                        "%s", err);
    else if (b->r->nerrors == before && b->ck->lun &&
             b->ck->lun(&l, err, sizeof err, b->ck->arg) < 0)
        conf_report_add(b->r, true, &n->pos, "%s", err);
    if ((t->nluns & (t->nluns - 1)) == 0) /* room for twice as many */
        t->luns = xrealloc(t->luns, (t->nluns ? 2 * t->nluns : 1) * sizeof *t->luns);
    t->luns[t->nluns++] = l;
}

static int
by_number(const void *a, const void *b)
{
    const struct conf_lun *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Explicit numbers first; the others take the lowest free number from 1, in order. */
static void
number_luns(struct builder *b, struct conf_target *t)
{
    const struct conf_lun **by = xcalloc(LUN_NUMBER_MAX + 1, sizeof *by);

    for (unsigned i = 0; i < t->nluns; i++) {
        const struct conf_lun *l = &t->luns[i];
        if (l->number < 0)
            continue;
        if (by[l->number])
            conf_report_add(b->r, true, &l->at[LUN_AT_NUMBER],
                            "LUN %d is given twice in this target; the first is at %s", l->number,
                            WHERE(&by[l->number]->at[LUN_AT_NUMBER]));
        else
            by[l->number] = l;
    }
    int next = 1;
    for (unsigned i = 0; i < t->nluns; i++) {
        if (t->luns[i].number >= 0)
            continue;
        while (next <= LUN_NUMBER_MAX && by[next])
            next++;
        if (next > LUN_NUMBER_MAX) {
            conf_report_add(b->r, true, &t->luns[i].pos, "more logical units than numbers (%d)",
                            LUN_NUMBER_MAX);
            break;
        }
        t->luns[i].number = next++;
    }
    free(by);
    if (t->nluns)
        qsort(t->luns, t->nluns, sizeof *t->luns, by_number);
}

/* --- targets --------------------------------------------------------------------------------- */

static void
add_kv(struct conf_kv **v, unsigned *n, const struct raw_node *node)
{
    *v = xrealloc(*v, (*n + 1) * sizeof **v);
    (*v)[(*n)++] = (struct conf_kv){node->name, node->value, node->pos};
}

/* An operational key, or unknown. */
static void
target_key(struct builder *b, struct conf_target *t, const struct raw_node *first,
           const struct raw_node *n)
{
    char err[512] = "";
    int rc = b->ck->key ? b->ck->key(n->name, n->value, err, sizeof err, b->ck->arg) : -ENOENT;
    const struct raw_node *twin;

    if (rc == -ENOENT) {
        complain_unknown(b, n, SC_TARGET, "in a <target> block");
    } else if (n->is_block) {
        conf_report_add(b->r, true, &n->pos, "%s is no block; write it as `%s value`", n->name,
                        n->name);
    } else if ((twin = earlier(first, n))) {
        complain_twice(b, n, &twin->pos);
    } else if (rc < 0) {
        conf_report_add(b->r, true, &n->vpos, "%s", err);
    } else {
        if (rc > 0 && file_syntax(n->file) == CONF_SYNTAX_EVTGT)
            conf_report_add(b->r, false, &n->vpos, "%s", err);
        else if (rc > 0)
            conf_report_loss(b->r, &n->vpos, "%s", err);
        add_kv(&t->keys, &t->nkeys, n);
    }
}

static void
target_access(struct builder *b, struct conf_target *t, const struct raw_node *n)
{
    char err[512] = "", warn[512] = "";
    bool name = strcmp(n->name, "initiator-name") == 0;
    int rc = 0;

    if (!name && b->ck->address)
        rc = b->ck->address(n->value, err, sizeof err, warn, sizeof warn, b->ck->arg);
    else if (name && b->ck->initiator)
        rc = b->ck->initiator(n->value, err, sizeof err, b->ck->arg);
    if (rc < 0) {
        conf_report_add(b->r, true, &n->vpos, "%s: %s", n->name, err);
        return;
    }
    if (*warn)
        conf_report_add(b->r, false, &n->vpos, "%s: %s", n->name, warn);
    if (name)
        conf_name_look(b->r, &n->vpos, n->name, n->value);
    if (name)
        add_kv(&t->names, &t->nnames, n);
    else if (strcmp(n->name, "local-address") == 0)
        add_kv(&t->locals, &t->nlocals, n);
    else
        add_kv(&t->addrs, &t->naddrs, n);
}

/* Directives that name an account. False: it is none. */
static bool
account_directive(struct builder *b, struct conf_accounts *own, const struct raw_node *n)
{
    const struct account_ctx ctx = {b->src, b->ck, b->r};
    bool in = strncmp(n->name, "outgoing", 8) != 0;
    if (strcmp(n->name, "incominguser") == 0 || strcmp(n->name, "outgoinguser") == 0)
        conf_account_add(&ctx, own, !in, n);
    else if (strcmp(n->name, "incomingdiscoveryuser") == 0 ||
             strcmp(n->name, "outgoingdiscoveryuser") == 0)
        conf_account_add(&ctx, &b->c->discovery, !in, n);
    else if (strcmp(n->name, "account") == 0)
        conf_account_add(&ctx, &b->c->unbound, false, n);
    else
        return false;
    return true;
}

/* ::1:3260 is an address; whoever writes one that ends like a port of iSCSI may mean another. */
static void
look_at_port(struct builder *b, const struct raw_node *n)
{
    const char *colon = strrchr(n->value, ':');
    struct in6_addr all, front;
    char text[64];

    if (!colon || strncmp(colon, ":326", 4) != 0 || !isdigit((unsigned char)colon[4]) ||
        inet_pton(AF_INET6, n->value, &all) != 1)
        return;
    snprintf(text, sizeof text, "%.*s", (int)(colon - n->value), n->value);
    if (inet_pton(AF_INET6, text, &front) == 1)
        conf_report_add(b->r, false, &n->vpos,
                        "portal: %s is an address without a port; did you mean [%s]%s?", n->value,
                        text, colon);
}

/* `portal` and `portal-group` in a target. That they exist is looked at when all is read. */
static void
target_bind(struct builder *b, struct conf_target *t, const struct raw_node *n)
{
    struct conf_bind bind = {.pos = n->vpos};
    struct hostport at = {.name = ""};
    char err[256] = "";
    uint64_t group = 0;

    if (strcmp(n->name, "portal") == 0) {
        if (hostport_parse(n->value, &at, err, sizeof err) < 0) {
            conf_report_add(b->r, true, &n->vpos, "portal: %s", err);
            return;
        }
        look_at_port(b, n);
        memcpy(bind.name, at.name, sizeof bind.name);
    } else if (conf_parse_uint(n->value, 0, 65535, &group) < 0) {
        conf_report_add(b->r, true, &n->vpos,
                        "portal-group wants a number from 0 to 65535, not \"%s\"", n->value);
        return;
    }
    bind.group = (unsigned)group;
    t->binds = xrealloc(t->binds, (t->nbinds + 1) * sizeof *t->binds);
    t->binds[t->nbinds++] = bind;
}

static bool
is_bind(const struct raw_node *n)
{
    return strcmp(n->name, "portal") == 0 || strcmp(n->name, "portal-group") == 0;
}

static bool
is_redirect(const struct raw_node *n)
{
    return strncasecmp(n->name, "redirect", 8) == 0;
}

static void
target_redirect(struct builder *b, struct conf_target *t, const struct raw_node *n)
{
    char err[512] = "";
    if (b->ck->redirect && b->ck->redirect(n->name, n->value, err, sizeof err, b->ck->arg) < 0)
        conf_report_add(b->r, true, &n->vpos, "%s", err);
    else
        add_kv(&t->redirects, &t->nredirects, n);
}

static bool
is_lun_directive(const struct raw_node *n)
{
    const struct directive *d = table_find(n->name, SC_LUN);
    return d && strcmp(n->name, "include") != 0;
}

static void
target_directive(struct builder *b, struct conf_target *t, const struct raw_node *first,
                 const struct raw_node *n)
{
    const struct directive *d = table_find(n->name, SC_TARGET);

    if (!d)
        target_key(b, t, first, n);
    else if (is_lun_directive(n) || is_store(n))
        return; /* done apart: the order of these does not matter */
    else if (!row_ok(b, first, n, d, false))
        return;
    else if (d->type && d->type->set)
        t->tid_auto = (run_setter(b, t, n, d) && n->by_rule) || t->tid_auto;
    else if (is_bind(n))
        target_bind(b, t, n);
    else if (is_redirect(n))
        target_redirect(b, t, n);
    else if (!account_directive(b, &t->accounts, n))
        target_access(b, t, n);
}

static void
target_luns(struct builder *b, struct conf_target *t, const struct raw_node *block)
{
    const struct raw_node *lun = NULL;
    struct conf_lun defaults;
    unsigned stores = 0;

    conf_lun_init(&defaults);
    for (const struct raw_node *n = block->children; n; n = n->next) {
        if (is_store(n))
            stores++;
        if (!is_lun_directive(n))
            continue;
        lun_directive(b, &defaults, block->children, n);
        if (strcmp(n->name, "lun") == 0)
            lun = n;
    }
    if (lun && stores > 1) {
        conf_report_add(b->r, true, &lun->pos,
                        "lun for several backing stores; write <backing-store PATH> blocks, each "
                        "with its own lun");
        defaults.number = -1;
    }
    for (const struct raw_node *n = block->children; n; n = n->next) {
        const struct directive *d = table_find(n->name, SC_TARGET);
        if (d && is_store(n) && row_ok(b, block->children, n, d, true))
            build_lun(b, t, &defaults, n);
    }
    conf_lun_fini(&defaults);
    number_luns(b, t);
}

/* Nobody gets in unless the file says who; tgt's own files mean everybody. */
static void
default_access(struct builder *b, struct conf_target *t, const struct raw_node *n)
{
    static const char all[] = "ALL";

    if (t->naddrs || t->nnames || b->access_rules)
        return;
    if (file_syntax(n->file) == CONF_SYNTAX_TGT) {
        conf_report_add(b->r, false, &n->pos,
                        "target %s names no initiator: everybody is admitted (syntax tgt)",
                        t->name);
        t->addrs = xcalloc(1, sizeof *t->addrs);
        t->addrs[t->naddrs++] = (struct conf_kv){"initiator-address", all, n->pos};
    } else {
        conf_report_add(b->r, false, &n->pos,
                        "target %s names no initiator: nobody can log in; add `initiator-address "
                        "ALL`, an address or an initiator-name",
                        t->name);
    }
}

static void
build_target(struct builder *b, const struct raw_node *n)
{
    struct conf *c = b->c;
    struct conf_target t;
    char err[512] = "";

    conf_target_init(&t);
    t.pos = n->pos;
    t.given = n->value;
    t.unserved = n->unserved;
    if (!n->is_block) {
        conf_report_add(b->r, true, &n->pos, "a target is a block: <target NAME> ... </target>");
        return;
    }
    if (strlen(n->value) > CONF_NAME_MAX) {
        conf_report_add(b->r, true, &n->vpos, "a target name holds at most %d bytes",
                        CONF_NAME_MAX);
    } else if (b->ck->target_name) {
        if (b->ck->target_name(n->value, t.name, err, sizeof err, b->ck->arg) < 0)
            conf_report_add(b->r, true, &n->vpos, "\"%s\" is no target name: %s", n->value, err);
    } else {
        snprintf(t.name, sizeof t.name, "%s", n->value);
    }
    for (unsigned i = 0; i < c->ntargets && t.name[0]; i++) {
        if (strcmp(c->targets[i].name, t.name) == 0)
            conf_report_add(b->r, true, &n->pos, "target %s is given twice; the first is at %s",
                            t.name, WHERE(&c->targets[i].pos));
    }
    for (const struct raw_node *k = n->children; k; k = k->next)
        target_directive(b, &t, n->children, k);
    target_luns(b, &t, n);
    if (*t.name)
        default_access(b, &t, n);
    c->targets = xrealloc(c->targets, (c->ntargets + 1) * sizeof *c->targets);
    c->targets[c->ntargets++] = t;
}

/* --- the daemon ------------------------------------------------------------------------------ */

static void
portal_directive(struct builder *b, struct conf_portal *p, const struct raw_node *first,
                 const struct raw_node *n)
{
    const struct directive *d = table_find(n->name, SC_PORTAL);

    if (!d)
        complain_unknown(b, n, SC_PORTAL, "in a <portal> block");
    else if (row_ok(b, first, n, d, false))
        run_setter(b, p, n, d);
}

static void
build_portal(struct builder *b, const struct raw_node *n)
{
    struct conf *c = b->c;
    struct conf_portal p = {.pos = n->pos, .group = 1};
    char err[256] = "";
    bool none = strcmp(n->value, "none") == 0;

    if (c->no_portals || (none && (c->nportals || n->is_block))) {
        conf_report_add(b->r, true, &n->vpos,
                        "portal none means that there is no other portal, and no block");
        return;
    }
    c->no_portals = none;
    if (none)
        return;
    if (hostport_parse(n->value, &p.at, err, sizeof err) < 0) {
        conf_report_add(b->r, true, &n->vpos, "portal: %s", err);
        return;
    }
    look_at_port(b, n);
    for (unsigned i = 0; i < c->nportals; i++) {
        if (strcmp(p.at.name, c->portals[i].at.name) == 0) {
            complain_twice(b, n, &c->portals[i].pos);
            return;
        }
    }
    for (const struct raw_node *k = n->children; k; k = k->next)
        portal_directive(b, &p, n->children, k);
    c->portals = xrealloc(c->portals, (c->nportals + 1) * sizeof *c->portals);
    c->portals[c->nportals++] = p;
}

/* iSNSServerIP (tgt) or iSNSServer (IET); given twice: tried in that order. */
static void
build_isns_server(struct builder *b, const struct raw_node *n)
{
    struct conf *c = b->c;
    char err[256] = "";

    for (unsigned i = 0; i < c->nisns_servers; i++) {
        if (strcmp(c->isns_servers[i].value, n->value) == 0) {
            complain_twice(b, n, &c->isns_servers[i].pos);
            return;
        }
    }
    if (b->ck->isns_server && b->ck->isns_server(n->value, err, sizeof err, b->ck->arg) < 0)
        conf_report_add(b->r, true, &n->vpos, "%s: %s", n->name, err);
    else
        add_kv(&c->isns_servers, &c->nisns_servers, n);
}

static const struct raw_node *
find_top(const struct raw_node *top, const char *name)
{
    while (top && strcmp(top->name, name) != 0)
        top = top->next;
    return top;
}

/* What the iSNS directives say together. IET has no `iSNS On`: there the server's name says it. */
static void
check_isns(struct builder *b, const struct raw_node *top)
{
    struct conf *c = b->c;
    const struct raw_node *on = find_top(top, "iSNS"), *server = find_top(top, "iSNSServerIP"),
                          *iet = find_top(top, "iSNSServer"),
                          *access = find_top(top, "iSNSAccessControl");

    if (!on && iet)
        c->isns_on = true;
    if (c->isns_on && !server && !iet)
        conf_report_add(b->r, true, &on->pos, "iSNS On wants an iSNSServerIP");
    if (!c->isns_on && server)
        conf_report_add(b->r, false, &server->pos, "iSNSServerIP has no effect without `iSNS On`");
    if (!c->isns_on && c->isns_access)
        conf_report_add(b->r, true, &access->pos,
                        "iSNSAccessControl On wants `iSNS On`: nobody would say who may log in");
}

static void
build_access(struct builder *b, const struct raw_node *n, const struct directive *d)
{
    const struct account_ctx ctx = {b->src, b->ck, b->r};
    struct conf_access *a = (void *)((char *)b->c + d->off);
    access_read(&ctx, a, (enum conf_access_file)(a - b->c->access), n);
}

static void
build_global(struct builder *b, const struct raw_node *first, const struct raw_node *n)
{
    const struct directive *d = table_find(n->name, SC_GLOBAL);

    if (!d) {
        complain_unknown(b, n, SC_GLOBAL, "outside of any block");
    } else if (!row_ok(b, first, n, d,
                       strcmp(n->name, "target") == 0 || strcmp(n->name, "portal") == 0)) {
        return;
    } else if (d->type && d->type->set) {
        run_setter(b, b->c, n, d);
    } else if (account_directive(b, &b->c->accounts, n)) {
        return;
    } else if (strcmp(n->name, "target") == 0) {
        build_target(b, n);
    } else if (strcmp(n->name, "portal") == 0) {
        build_portal(b, n);
    } else if (strncmp(n->name, "iSNS", 4) == 0) {
        build_isns_server(b, n);
    } else if (d->type == &type_access) {
        build_access(b, n, d);
    } else if (strcmp(n->value, "tgt") == 0) {
        n->file->syntax = CONF_SYNTAX_TGT;
    } else {
        conf_report_add(b->r, true, &n->vpos, "syntax wants tgt, not \"%s\"", n->value);
    }
}

/* --- across targets -------------------------------------------------------------------------- */

/* Identities of LUNs that do not say their own, by the rules of the target they come from. */
static void
fill_ids(struct builder *b, struct conf_target *t)
{
    unsigned ids = t->ids != CONF_UNSET ? t->ids : b->c->ids;
    char err[256];

    t->ids = ids; /* also where the target goes somewhere without the rest of this file */
    for (unsigned i = 0; i < t->nluns && ids != CONF_UNSET && ids != IDS_EVTGT; i++) {
        if (conf_lun_ids(&t->luns[i], (enum conf_ids)ids, t->tid, t->given, err, sizeof err) < 0)
            conf_report_add(b->r, true, &t->luns[i].pos, "%s", err);
    }
}

static void
check_tids(const struct conf *c, struct conf_report *r)
{
    const struct conf_target **by = xcalloc(TID_MAX + 1, sizeof *by);

    for (unsigned i = 0; i < c->ntargets; i++) {
        const struct conf_target *t = &c->targets[i];
        if (by[t->tid & TID_MAX])
            conf_report_add(r, true, &t->pos,
                            "controller_tid %u is given twice; the first is target %s at %s",
                            t->tid, by[t->tid & TID_MAX]->name, WHERE(&by[t->tid & TID_MAX]->pos));
        else
            by[t->tid & TID_MAX] = t;
    }
    free(by);
}

/* A target must not be bound to what is not there: it would be out of reach by a slip. */
static void
check_binds(const struct conf *c, const struct conf_target *t, struct conf_report *r)
{
    for (unsigned i = 0; i < t->nbinds; i++) {
        const struct conf_bind *bind = &t->binds[i];
        bool found = c->nportals == 0 && !*bind->name && bind->group == 1;
        for (unsigned k = 0; k < c->nportals && !found; k++)
            found = *bind->name ? strcmp(bind->name, c->portals[k].at.name) == 0
                                : bind->group == c->portals[k].group;
        if (found)
            continue;
        if (*bind->name)
            conf_report_add(r, true, &bind->pos,
                            "there is no portal %s; portals are declared outside of the targets",
                            bind->name);
        else
            conf_report_add(r, true, &bind->pos, "no portal is in group %u", bind->group);
    }
}

/* As IET has it, targets.allow alone admits nobody; of ours it would say nothing about who. */
static void
check_access(struct builder *b)
{
    const struct conf_access *targets = &b->c->access[CONF_TARGETS_ALLOW];
    if (targets->path && !b->access_rules)
        conf_report_add(
            b->r, true, &targets->pos,
            "targets-allow wants initiators-allow or initiators-deny beside it; where one "
            "target is shown says its local-address");
}

void
conf_check_across(const struct conf *c, struct conf_report *r)
{
    check_tids(c, r);
    for (unsigned i = 0; i < c->ntargets; i++)
        conf_accounts_check(r, &c->targets[i].accounts, &c->accounts);
    conf_accounts_check(r, &c->discovery, &c->discovery);
    for (unsigned i = 0; i < c->ntargets; i++)
        check_binds(c, &c->targets[i], r);
    compare_luns(c, r);
}

/* tgt keeps the quote as a part of the value. Of accounts each word is looked at (account.c). */
static void
check_quotes(struct builder *b, const struct raw_node *n)
{
    for (; n; n = n->next) {
        check_quotes(b, n->children);
        if (!n->open || strncmp(n->name, "incoming", 8) == 0 ||
            strncmp(n->name, "outgoing", 8) == 0 || strcmp(n->name, "account") == 0)
            continue;
        if (file_syntax(n->file) == CONF_SYNTAX_EVTGT)
            conf_report_add(b->r, true, &n->vpos, "%s: a quote is not closed", n->name);
        else
            conf_report_add(b->r, false, &n->vpos,
                            "%s: a quote is not closed; it is a part of the value", n->name);
    }
}

struct conf *
build(struct conf_raw *raw, const struct conf_source *src, const struct conf_checks *checks,
      struct conf_report *r)
{
    static const struct conf_checks none;
    struct builder b = {conf_new(), src, checks ? checks : &none, r, false};

    b.c->raw = raw;
    b.access_rules =
        find_top(raw->top, "initiators-allow") || find_top(raw->top, "initiators-deny");
    /* `syntax` first: it holds for the whole file, wherever it stands */
    for (struct raw_node *n = raw->top; n; n = n->next) {
        if (strcmp(n->name, "syntax") == 0 && strcmp(n->value, "tgt") == 0)
            n->file->syntax = CONF_SYNTAX_TGT;
    }
    check_quotes(&b, raw->top);
    syntax_tgt(raw, r);
    for (const struct raw_node *n = raw->top; n; n = n->next)
        build_global(&b, raw->top, n);
    check_access(&b);
    check_isns(&b, raw->top);
    conf_number(b.c, b.ck->running, b.ck->running_stays);
    for (unsigned i = 0; i < b.c->ntargets; i++)
        fill_ids(&b, &b.c->targets[i]);
    conf_unbound_only(b.c, r);
    if (!checks || !checks->part)
        conf_check_across(b.c, r);
    return b.c;
}
