/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration -> targets and portals; checks of iSCSI values for conf/.  With apply_store.c and
 * main.c the only code that sees conf/.  Main only.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/cstore.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "target/apply.h"
#include "target/apply_access.h"
#include "target/apply_store.h"
#include "target/isns.h"
#include "target/model.h"
#include "target/redirect.h"

#define START_DEADLINE_MS 10000 /* stores that take longer come up later */

/* --- the host's seed ------------------------------------------------------------------------- */

int
apply_seed(void)
{
    void *p = NULL;
    int64_t n = cstore_read(model.cstore, "host-seed", &p);

    if (n == (int64_t)sizeof model.seed) {
        memcpy(model.seed, p, sizeof model.seed);
        free(p);
        return 0;
    }
    free(p);
    /* a damaged seed must not be replaced silently: every default identity would change */
    if (n != -ENOENT)
        return n < 0 ? (int)n : -EBADMSG;
    if (getrandom(model.seed, sizeof model.seed, 0) != (ssize_t)sizeof model.seed)
        return -EIO;
    return cstore_write_sync(model.cstore, "host-seed", model.seed, sizeof model.seed);
}

/* --- what conf/ asks ------------------------------------------------------------------------- */

static bool
key_known(const char *name)
{
    struct key_values kv;
    const char *n;
    char value[256];

    keys_defaults(&kv);
    for (unsigned i = 0; i < KEY_COUNT; i++) {
        if (keys_show(&kv, i, &n, value, sizeof value) && strcasecmp(n, name) == 0)
            return true;
    }
    return false;
}

static int
check_key(const char *name, const char *value, char *err, size_t errsize, void *arg)
{
    struct key_values kv;
    (void)arg;
    if (!key_known(name))
        return -ENOENT;
    keys_defaults(&kv);
    return keys_set(&kv, name, value, err, errsize);
}

static int
check_target_name(const char *name, char *out, char *err, size_t errsize, void *arg)
{
    const char *why = "";
    (void)arg;
    if (name_normalise(name, strlen(name), out, &why) == 0)
        return 0;
    snprintf(err, errsize, "%s", why);
    return -EINVAL;
}

static int
check_rule(const char *const *addrs, const char *const *names, char *err, size_t errsize,
           char *warn, size_t warnsize)
{
    struct acl *a = acl_new(addrs, names, err, errsize, warn, warnsize);
    if (!a)
        return -EINVAL;
    acl_put(a);
    return 0;
}

static int
check_address(const char *text, char *err, size_t errsize, char *warn, size_t warnsize, void *arg)
{
    const char *addrs[] = {text, NULL};
    (void)arg;
    return check_rule(addrs, NULL, err, errsize, warn, warnsize);
}

static int
check_initiator(const char *text, char *err, size_t errsize, void *arg)
{
    const char *names[] = {text, NULL};
    (void)arg;
    return check_rule(NULL, names, err, errsize, NULL, 0);
}

static int
check_redirect(const char *name, const char *value, char *err, size_t errsize, void *arg)
{
    int rc;
    (void)arg;
    redirect_put(redirect_with(NULL, name, value, &rc, err, errsize));
    return rc;
}

static int
check_isns_server(const char *text, char *err, size_t errsize, void *arg)
{
    struct isns_settings s;
    (void)arg;
    isns_settings_init(&s);
    if (strpbrk(text, ", \t")) {
        snprintf(err, errsize, "one address; another server has a line of its own");
        return -EINVAL;
    }
    snprintf(s.servers, sizeof s.servers, "%s", text);
    return isns_settings_check(&s, err, errsize);
}

static int
check_lun(const struct conf_lun *l, char *err, size_t errsize, void *arg)
{
    (void)arg;
    return apply_store_check(l, err, errsize);
}

int
apply_chap_algs(const char *text, unsigned *out)
{
    return conf_parse_chap_algs(text, out); /* conf/ numbers them as CHAP_ALG_* does */
}

bool
apply_can_hold(const char *text)
{
    return conf_can_write(text);
}

const struct conf_checks *
apply_checks(void)
{
    static const struct conf_checks checks = {.key = check_key,
                                              .target_name = check_target_name,
                                              .address = check_address,
                                              .initiator = check_initiator,
                                              .access = apply_access_check,
                                              .redirect = check_redirect,
                                              .isns_server = check_isns_server,
                                              .lun = check_lun};
    return &checks;
}

/* --- the start ------------------------------------------------------------------------------- */

static int
open_conf_portal(const struct conf_portal *cp, char *err, size_t errsize)
{
    const struct portal_spec spec = apply_portal_spec(cp);
    char why[384];

    int rc = portal_open(&spec, true, why, sizeof why);
    if (rc < 0)
        snprintf(err, errsize, "%s:%u:%u: %s", cp->pos.file, cp->pos.line, cp->pos.col, why);
    return rc;
}

static int
open_portals(const struct conf *c, char *err, size_t errsize)
{
    struct portal_spec any = {.tpgt = 1};
    char err6[256];

    for (unsigned i = 0; i < c->nportals; i++) {
        int rc = open_conf_portal(&c->portals[i], err, errsize);
        if (rc < 0)
            return rc;
    }
    model.usual_portals = c->nportals == 0 && !c->no_portals;
    if (!model.usual_portals)
        return 0;
    hostport_parse("0.0.0.0", &any.at, err, errsize);
    int rc = portal_open(&any, true, err, errsize);
    if (rc < 0)
        return rc;
    /* a host without IPv6 is no error when nobody asked for it; another's port is */
    hostport_parse("::", &any.at, err, errsize);
    rc = portal_open(&any, true, err6, sizeof err6);
    if (rc == -EADDRINUSE || rc == -EACCES) {
        snprintf(err, errsize, "%s", err6);
        return rc;
    }
    if (rc < 0)
        log_event(LL_NOTICE, LA_NET, "no-ipv6 why=\"%s\"", err6);
    return 0;
}

/* An interface got or lost an address. */
static void
on_portals_changed(void)
{
    char err[512] = "";
    if (model_publish(NULL, NULL, err, sizeof err) < 0)
        log_event(LL_ERROR, LA_NET, "publish-failed why=\"%s\"", err);
}

/* One start: counts the stores that are still being opened. */
struct starting {
    unsigned pending;
    bool over; /* done was called: whoever comes now comes late */
    struct worker_timer deadline;
    const struct conf *conf;
    void (*done)(void *arg, const char *err);
    void *arg;
};

static void
portals_published(void *arg)
{
    struct starting *st = arg;
    st->done(st->arg, "");
}

/* Only now do portals accept: an initiator that comes earlier must find nobody (and try again)
 * rather than be told that its target does not exist. */
static void
targets_published(void *arg)
{
    struct starting *st = arg;
    char err[512] = "";

    portal_on_change(on_portals_changed);
    if (open_portals(st->conf, err, sizeof err) < 0)
        st->done(st->arg, err);
    else if (model_publish(portals_published, st, err, sizeof err) < 0)
        log_abort("checked configuration does not hold: %s", err);
}

static void
start_over(struct starting *st)
{
    char err[512] = "";

    st->over = true;
    worker_timer_stop(&st->deadline);
    list_each(it, &model.stores) {
        struct store *s = container_of(it, struct store, link);
        if (!s->lun)
            apply_store_make_lun(s);
    }
    /* access lists were judged with the configuration: this cannot fail */
    if (model_publish(targets_published, st, err, sizeof err) < 0)
        log_abort("checked configuration does not hold: %s", err);
}

static void
on_deadline(struct worker_timer *t)
{
    struct starting *st = container_of(t, struct starting, deadline);
    log_event(LL_WARN, LA_DAEMON, "stores-slow pending=%u", st->pending);
    start_over(st);
}

static void
on_opened(struct store *s)
{
    struct starting *st = s->arg;
    apply_store_settle(s, s->result);
    if (--st->pending == 0) {
        if (!st->over)
            start_over(st);
    }
}

/* A store that is in the model already and may be the same logical unit. */
static struct store *
find_shared(const struct conf_lun *l)
{
    list_each(it, model_stores_at(l->path)) {
        struct store *s = container_of(it, struct store, path_link);
        if (l->bs != CONF_BS_NULL && l->path[0] && conf_lun_same(s->conf, l))
            return s;
    }
    return NULL;
}

static void
add_lun(struct model_target *t, const struct conf_lun *l)
{
    struct store *s = find_shared(l);
    char alone[ISCSI_NAME_MAX + 32];

    if (!s) {
        snprintf(alone, sizeof alone, "%s %d", t->name, l->number);
        s = apply_store_new(l, alone);
        model_lun_add(t, (unsigned)l->number, s);
        apply_store_drop(s);
    } else {
        model_lun_add(t, (unsigned)l->number, s);
    }
}

static void
add_target(const struct conf_target *ct)
{
    struct model_target *t = model_target_new(ct->tid, ct->name);

    apply_target_set(t, ct);
    for (unsigned i = 0; i < ct->nluns; i++)
        add_lun(t, &ct->luns[i]);
}

void
apply_start(const struct conf *c, void (*done)(void *arg, const char *err), void *arg)
{
    static struct starting st; /* there is one start */

    apply_globals_set(c);
    model.started = conf_new();
    conf_copy_globals(model.started, c);
    for (unsigned i = 0; i < c->ntargets; i++)
        add_target(&c->targets[i]);
    apply_unbound_set(&c->unbound);
    st = (struct starting){.conf = c, .done = done, .arg = arg, .pending = 1};
    worker_timer_init(&st.deadline, model.main, on_deadline);
    worker_timer_start_ms(&st.deadline, START_DEADLINE_MS);
    list_each(it, &model.stores) {
        struct store *s = container_of(it, struct store, link);
        st.pending++;
        s->arg = &st;
        apply_store_open(s, on_opened);
    }
    if (--st.pending == 0)
        start_over(&st);
}
