/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LIO's portal group -> who may log in, accounts, disks.  LIO can map other disks, under other
 * numbers, for each initiator; here all that may log in to a target see the same.  So the mapping
 * of the first initiator is taken, and one who sees something else is left out rather than let in.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/syntax_lio.h"

struct access {
    struct lio *p;
    json_t *tpg, *attrs;
    struct syntax_list *list;
    bool chap, dynamic, read_only;
    json_t *model; /* the ACL whose mapping is taken; NULL: every LUN as it is */
    unsigned admitted;
    json_t *mutual; /* the first that has a mutual account */
};

static const struct lio_attr acl_attrs[] = {
    {"dataout_timeout", 3, "there is no such setting"},
    {"dataout_timeout_retries", 5, "there is no such setting"},
    {"default_erl", 0, "write ErrorRecoveryLevel in the target"},
    {"nopin_timeout", 15, "nop_interval is one for the target"},
    {"nopin_response_timeout", 30, "nop_count is one for the target"},
    {"random_datain_pdu_offsets", 0, "data are sent in order"},
    {"random_datain_seq_offsets", 0, "data are sent in order"},
    {"random_r2t_offsets", 0, "data are asked for in order"},
};

static json_t *
mapped(json_t *acl, long long tpg_lun)
{
    json_t *m;
    size_t i;

    json_array_foreach(lio_list(acl, "mapped_luns"), i, m)
    {
        if (lio_number(m, "tpg_lun", -1) == tpg_lun)
            return m;
    }
    return NULL;
}

/* Do both see the same disks, under the same numbers, with the same rights? */
static bool
same_mapping(json_t *a, json_t *b)
{
    json_t *m;
    size_t i;

    if (json_array_size(lio_list(a, "mapped_luns")) != json_array_size(lio_list(b, "mapped_luns")))
        return false;
    json_array_foreach(lio_list(a, "mapped_luns"), i, m)
    {
        json_t *o = mapped(b, lio_number(m, "tpg_lun", -1));
        if (!o || lio_number(m, "index", 0) != lio_number(o, "index", 0) ||
            lio_number(m, "write_protect", 0) != lio_number(o, "write_protect", 0))
            return false;
    }
    return true;
}

/* One of the mutual accounts can be the target's. */
static void
mutual(struct access *a, json_t *acl)
{
    const char *user = lio_text(acl, "chap_mutual_userid");
    const char *secret = lio_text(acl, "chap_mutual_password");

    if (!user || !secret)
        return;
    if (!a->mutual) {
        a->mutual = acl;
        lio_account(a->p, a->list, acl, "chap_mutual_", "outgoinguser", NULL);
        return;
    }
    if (strcmp(user, lio_text(a->mutual, "chap_mutual_userid")) != 0 ||
        strcmp(secret, lio_text(a->mutual, "chap_mutual_password")) != 0)
        lio_loss(a->p, acl, "chap_mutual_userid",
                 "a target proves itself by one account to all; the first is taken");
}

/* False: it must not be let in. */
static bool
account(struct access *a, json_t *acl, const char *initiator)
{
    long long own = lio_number(json_object_get(acl, "attributes"), "authentication", -1);
    bool chap = own < 0 ? a->chap : own != 0;
    bool has = lio_text(acl, "chap_userid") && lio_text(acl, "chap_password");

    if (chap && !has) {
        lio_loss(a->p, acl, "node_wwn",
                 "authentication is wanted and there is no account: LIO refuses it every login; it "
                 "is not admitted");
        return false;
    }
    if (!chap && has) {
        lio_loss(a->p, acl, "chap_userid",
                 "authentication is off, LIO does not ask for this account; write it as "
                 "incominguser to have it asked for");
        return true;
    }
    if (!chap && a->chap) {
        lio_loss(a->p, acl, "node_wwn",
                 "the others must authenticate, this one need not; a target asks all of them or "
                 "none; it is not admitted");
        return false;
    }
    if (chap) {
        lio_account(a->p, a->list, acl, "chap_", "incominguser", initiator);
        mutual(a, acl);
    }
    return true;
}

static void
one_acl(struct access *a, json_t *acl)
{
    const char *name = lio_text(acl, "node_wwn");
    json_t *attrs = json_object_get(acl, "attributes");

    if (!name)
        return;
    if (!same_mapping(acl, a->model)) {
        lio_loss(a->p, acl, "node_wwn",
                 "it sees other disks than the first initiator; all see the same here; it is not "
                 "admitted: give it a target of its own");
        return;
    }
    if (!account(a, acl, name))
        return;
    lio_attributes(a->p, attrs, acl_attrs, sizeof acl_attrs / sizeof *acl_attrs);
    lio_add(a->p, a->list, acl, "node_wwn", "initiator-name", name);
    a->admitted++;
}

static void
disks(struct access *a)
{
    json_t *lun;
    size_t i;

    json_array_foreach(lio_list(a->tpg, "luns"), i, lun)
    {
        const char *object = lio_text(lun, "storage_object");
        long long number = lio_number(lun, "index", (long long)i);
        bool read_only = a->read_only;
        json_t *m = a->model ? mapped(a->model, number) : NULL;

        if (!object)
            continue;
        if (a->model && !m) {
            lio_loss(a->p, lun, "index", "no initiator sees this disk; it is left out");
            continue;
        }
        if (m) {
            number = lio_number(m, "index", number);
            read_only = read_only || lio_number(m, "write_protect", 0);
        }
        lio_disk(a->p, lun, object, number, read_only, a->list);
    }
}

/* Everybody may log in, and sees all disks, perhaps for reading only. */
static void
admit_all(struct access *a)
{
    lio_add(a->p, a->list, a->attrs, "generate_node_acls", "initiator-address", "ALL");
    a->read_only = a->read_only || lio_number(a->attrs, "demo_mode_write_protect", 1);
    if (!a->chap)
        return;
    if (lio_text(a->tpg, "chap_userid") && lio_text(a->tpg, "chap_password")) {
        lio_account(a->p, a->list, a->tpg, "chap_", "incominguser", NULL);
        mutual(a, a->tpg);
        return;
    }
    lio_loss(a->p, a->attrs, "authentication",
             "authentication is wanted and there is no account: LIO refuses every login; the "
             "target is offline");
    lio_add(a->p, a->list, a->attrs, "authentication", "state", "offline");
}

void
lio_access(struct lio *p, json_t *tpg, struct syntax_list *list)
{
    json_t *attrs = json_object_get(tpg, "attributes"), *acls = lio_list(tpg, "node_acls"), *o;
    struct access a = {.p = p,
                       .tpg = tpg,
                       .attrs = attrs,
                       .list = list,
                       .chap = lio_number(attrs, "authentication", 0) != 0,
                       .dynamic = lio_number(attrs, "generate_node_acls", 0) != 0,
                       .read_only = lio_number(attrs, "prod_mode_write_protect", 0) != 0,
                       .model = json_array_get(acls, 0)};
    size_t i;

    json_array_foreach(acls, i, o) one_acl(&a, o);
    if (a.dynamic && !a.model)
        admit_all(&a);
    else if (a.dynamic)
        lio_loss(p, attrs, "generate_node_acls",
                 "there are rights for some initiators and others for everybody else; only those "
                 "that are named are admitted");
    disks(&a);
}
