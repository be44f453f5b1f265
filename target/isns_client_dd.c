/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Discovery domains as the iSNS client was told them -> the sets that are published with the
 * targets.  The number of names and their memory are bounded: a name beyond is one that is not
 * admitted, and that is logged.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "target/isns_client.h"
#include "target/model.h"

#define NAMES_MAX  4096u              /* of one target */
#define BYTES_MAX  ((size_t)64 << 20) /* of all sets */
#define PUBLISH_MS 20                 /* many answers, one publication */

static struct worker_timer publish_timer;

static void
on_publish(struct worker_timer *t)
{
    char err[512] = "";
    (void)t;
    if (model_publish(NULL, NULL, err, sizeof err) < 0)
        log_event(LL_ERROR, LA_NET, "isns-publish-failed why=\"%s\"", err);
}

void
isns_client_domains_init(struct worker *main_worker)
{
    worker_timer_init(&publish_timer, main_worker, on_publish);
}

struct names {
    char (*text)[ISCSI_NAME_MAX + 1];
    unsigned n, room;
    unsigned left_out, not_names;
};

static void
add_name(struct names *v, const char *name)
{
    if (v->n == NAMES_MAX) {
        v->left_out++;
        return;
    }
    if (v->n == v->room) {
        v->room = v->room ? 2 * v->room : 16;
        v->text = xrealloc(v->text, v->room * sizeof *v->text);
    }
    snprintf(v->text[v->n++], sizeof *v->text, "%s", name);
}

/* Objects of the answer: a name, then its type (RFC 4171 5.6.4). The key in front of the delimiter
 * is the one we asked with, empty. False: malformed. */
static bool
read_names(struct cur *body, struct names *v)
{
    char raw[ISCSI_NAME_MAX + 2], name[ISCSI_NAME_MAX + 1] = "";
    struct isns_attr a;
    bool behind = false; /* the delimiter */

    while (isns_attr_next(body, &a)) {
        const char *why;
        uint32_t type;
        if (a.tag == ISNS_DELIMITER) {
            behind = true;
        } else if (behind && a.tag == ISNS_NAME) {
            name[0] = '\0';
            if (!isns_attr_text(&a, raw, sizeof raw) ||
                name_fold(raw, strlen(raw), name, &why) != 0) {
                name[0] = '\0';
                v->not_names++;
            }
        } else if (behind && a.tag == ISNS_NODE_TYPE) {
            if (name[0] != '\0' && isns_attr_u32(&a, &type) && (type & ISNS_TYPE_INITIATOR))
                add_name(v, name);
            name[0] = '\0';
        }
    }
    return cur_ok(body);
}

static size_t
bytes_of_others(const struct model_target *but)
{
    size_t bytes = 0;
    list_each(it, &model.targets) {
        const struct model_target *t = container_of(it, struct model_target, link);
        if (t != but && t->dd != NULL)
            bytes += isns_dd_bytes(t->dd);
    }
    return bytes;
}

static void
set_domain(struct model_target *t, const struct names *v)
{
    const char **ptr = xcalloc((size_t)v->n + 1, sizeof *ptr);
    for (unsigned i = 0; i < v->n; i++)
        ptr[i] = v->text[i];
    struct isns_dd *dd = isns_dd_new(ptr, v->n);
    free(ptr);
    if (isns_dd_bytes(dd) + bytes_of_others(t) > BYTES_MAX) {
        log_event(LL_WARN, LA_NET,
                  "isns-domain target=%s why=\"too many initiators in all: nobody "
                  "is admitted\"",
                  LOG_ESC(t->name));
        isns_dd_put(dd);
        dd = isns_dd_new(NULL, 0);
    }
    if (v->left_out != 0 || v->not_names != 0)
        log_event(LL_WARN, LA_NET, "isns-domain target=%s left_out=%u not_names=%u",
                  LOG_ESC(t->name), v->left_out, v->not_names);
    if (t->dd != NULL && isns_dd_same(t->dd, dd)) {
        isns_dd_put(dd);
        return;
    }
    isns_dd_put(t->dd);
    t->dd = dd;
    log_event(LL_INFO, LA_NET, "isns-domain target=%s initiators=%u", LOG_ESC(t->name),
              isns_dd_count(dd));
    model_touch(t);
    if (!worker_timer_is_active(&publish_timer))
        worker_timer_start_ms(&publish_timer, PUBLISH_MS);
}

bool
isns_client_domains(const char *target, struct cur body)
{
    struct model_target *t = model_target_by_name(target);
    struct names v = {0};
    bool ok = read_names(&body, &v);

    if (ok && t != NULL)
        set_domain(t, &v);
    free(v.text);
    return ok;
}

void
isns_client_domains_drop(void)
{
    list_each(it, &model.targets) {
        struct model_target *t = container_of(it, struct model_target, link);
        isns_dd_put(t->dd);
        t->dd = NULL;
    }
}
