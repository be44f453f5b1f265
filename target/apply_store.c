/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Backing stores and their logical units: opening in helper jobs, identity, live changes, end.
 * Called by apply.c, admin and watch.c.  Main only, but for the bodies of helper jobs.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/opener.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "target/apply_saved.h"
#include "target/apply_store.h"

#define CLOSE_WAIT_MS 2000

static void
fill_opts(struct be_opts *o, const struct conf_lun *l, const char *type)
{
    *o = (struct be_opts){
        .type = type,
        .path = l->path,
        .block_size = l->block_size,
        .read_only = l->read_only,
        .direct = l->direct,
        .write_cache = l->write_cache && !l->sync,
        .allow_in_use = l->allow_in_use,
        .null_size = l->size,
        .bsopts = l->bsopts,
        .layers = l->layers,
        .algorithm = l->algorithm != CONF_UNSET ? conf_zram_algorithms[l->algorithm] : NULL,
        .level = l->level,
        .chunk_size = l->chunk_size,
        .mem_limit = l->mem_limit,
    };
}

int
apply_store_check(const struct conf_lun *l, char *err, size_t errsize)
{
    struct be_opts o;
    /* the kind of a path is found out when it is opened: either kind takes the same options */
    fill_opts(&o, l, l->bs == CONF_BS_AUTO ? "fileio" : conf_bs_name(l->bs));
    struct backend *be = be_new(&o, err, errsize);
    if (!be)
        return -EINVAL;
    be_put(be);
    return lun_mode_pages_check(l->mode_pages, err, errsize);
}

/* --- helper jobs: one at a time a store ------------------------------------------------------ */

static void
on_job_done(struct helper_job *job)
{
    struct store *s = container_of(job, struct store, job);
    void (*then)(struct store *) = s->then;

    worker_assert_owner(model.main);
    s->busy = false;
    s->then = NULL;
    if (then)
        then(s);
    apply_store_drop(s); /* the job's user */
}

bool
apply_store_run(struct store *s, struct helper_lane *lane, void (*fn)(struct helper_job *job),
                void (*then)(struct store *s))
{
    worker_assert_owner(model.main);
    if (s->busy)
        return false;
    s->busy = true;
    s->users++;
    s->then = then;
    s->job = (struct helper_job){.run = fn, .done = on_job_done, .w = model.main, .lane = lane};
    helper_submit(&s->job);
    return true;
}

/* --- opening --------------------------------------------------------------------------------- */

static void
job_kind(struct helper_job *job)
{
    struct store *s = container_of(job, struct store, job);
    struct stat st;
    bool found = false;
    if (s->conf->bs == CONF_BS_AUTO) { /* else the place need not be looked at */
        int fd = opener_open(s->conf->path, O_PATH | O_CLOEXEC, 0);
        found = fd >= 0 && fstat(fd, &st) == 0;
        if (fd >= 0)
            close(fd);
    }
    s->result = (int)conf_lun_kind(s->conf, found ? &st : NULL);
}

static void
job_open(struct helper_job *job)
{
    struct store *s = container_of(job, struct store, job);
    s->result = be_open(s->be);
}

static void
permit_path(const char *path, bool made, void *arg)
{
    (void)arg;
    if (path[0] != '/') /* a store without a file */
        return;
    int rc = made ? opener_permit_new(path) : opener_permit(path);
    if (rc == -EPERM)
        log_event(
            LL_ERROR, LA_BACKEND,
            "not-granted path=%s why=\"what was saved names it, and root never granted it: not "
            "in the configuration file, nor by an admin request of root's\" then=\"it is not "
            "opened; the configuration file, or root's evtgtadm lun remove and lun add, grant "
            "it\"",
            LOG_ESC(path));
    else if (rc < 0)
        log_event(LL_ERROR, LA_BACKEND, "permit path=%s error=%s", LOG_ESC(path), strerror(-rc));
}

/* The paths of the store and its layers, before the backend is made, too: its type may not be known
 * without a look, and the look has to be permitted. */
static void
each_path(const struct store *s, void (*fn)(const char *path, bool made, void *arg), void *arg)
{
    struct be_opts o;
    char err[512];

    if (s->be) {
        be_each_path(s->be, fn, arg);
        return;
    }
    fill_opts(&o, s->conf, conf_bs_name(conf_lun_kind(s->conf, NULL)));
    struct backend *be = be_new(&o, err, sizeof err);
    if (be) { /* else it will be said when it is made in earnest */
        be_each_path(be, fn, arg);
        be_put(be);
    }
}

void
apply_store_paths(const struct conf_lun *l, void (*fn)(const char *path, bool made, void *arg),
                  void *arg)
{
    struct conf_lun copy;
    const struct store s = {.conf = &copy};

    conf_lun_copy(&copy, l);
    each_path(&s, fn, arg);
    conf_lun_fini(&copy);
}

void
apply_store_permit(const struct conf_lun *l)
{
    apply_store_paths(l, permit_path, NULL);
}

int
apply_store_check_writable(const struct store *s, char *err, size_t errsize)
{
    struct be_info info = {.read_only = false};

    if (s->be)
        be_info(s->be, &info);
    if (!info.read_only)
        return 0;
    snprintf(err, errsize, "the backing store was opened read-only");
    return -EINVAL;
}

struct open_wait {
    void (*then)(struct store *s);
    void *arg;
};

static void
on_open_done(struct store *s)
{
    struct open_wait *ow = s->arg;
    void (*then)(struct store *) = ow->then;
    s->arg = ow->arg;
    free(ow);
    then(s);
}

static void
on_kind_known(struct store *s)
{
    struct be_opts o;
    char err[512] = "";

    if (s->is_gone) {
        s->result = -ECANCELED;
        on_open_done(s);
        return;
    }
    snprintf(s->type, sizeof s->type, "%s", conf_bs_name((enum conf_bs)s->result));
    fill_opts(&o, s->conf, s->type);
    s->be = be_new(&o, err, sizeof err);
    if (!s->be) {
        log_event(LL_ERROR, LA_BACKEND, "refused path=%s why=\"%s\"", LOG_ESC(s->conf->path), err);
        s->result = -EINVAL;
        on_open_done(s);
        return;
    }
    if (!*s->conf->path && !conf_bs_made(s->conf->bs)) { /* a unit without a medium */
        s->result = 0;
        on_open_done(s);
        return;
    }
    if (!apply_store_run(s, NULL, job_open, on_open_done))
        abort();
}

void
apply_store_open(struct store *s, void (*then)(struct store *s))
{
    struct open_wait *ow = xmalloc(sizeof *ow);
    *ow = (struct open_wait){then, s->arg};
    s->arg = ow;
    each_path(s, permit_path, NULL); /* now, while who asked for it can vouch for it */
    if (!apply_store_run(s, NULL, job_kind, on_kind_known))
        abort(); /* a new store: nothing else can run */
}

static void
job_close(struct helper_job *job)
{
    be_close(container_of(job, struct store, job)->be);
}

bool
apply_store_close(struct store *s, void (*then)(struct store *s))
{
    return apply_store_run(s, NULL, job_close, then);
}

bool
apply_store_reopen(struct store *s, void (*then)(struct store *s))
{
    return apply_store_run(s, NULL, job_open, then);
}

const char *
apply_store_why(const struct store *s, char *buf, size_t size)
{
    const char *e = s->be ? be_error(s->be) : "";
    if (*e)
        snprintf(buf, size, "%s", e);
    else
        snprintf(buf, size, "%s: %s", s->conf->path, strerror(s->result < 0 ? -s->result : EIO));
    return buf;
}

/* --- the logical unit ------------------------------------------------------------------------ */

static void on_gone_late(struct worker_timer *t);

struct store *
apply_store_new(const struct conf_lun *l, const char *alone_id)
{
    struct store *s = xcalloc(1, sizeof *s);

    worker_assert_owner(model.main);
    s->conf = xmalloc(sizeof *s->conf);
    conf_lun_copy(s->conf, l);
    s->alone_id = xstrdup(alone_id);
    s->users = 1;
    worker_timer_init(&s->gone_late, model.main, on_gone_late);
    list_each(it, model_stores_at(l->path)) {
        struct store *o = container_of(it, struct store, path_link);
        if (l->path[0] && !o->is_leaving && !o->is_gone && strcmp(o->conf->path, l->path) == 0)
            s->is_twin = o->is_twin = true;
    }
    list_init(&s->ident_link);
    list_add_tail(&model.stores, &s->link);
    list_add_tail(model_stores_at(l->path), &s->path_link);
    return s;
}

/* Another store that is the same thing by another path; from now on s is found so, too. */
static bool
has_like(struct store *s, const char *identity)
{
    struct list *like = model_stores_like(identity);

    if (list_is_empty(&s->ident_link))
        list_add_tail(like, &s->ident_link);
    list_each(it, like) {
        const struct store *o = container_of(it, struct store, ident_link);
        if (o != s && !o->is_gone && !o->is_leaving && strcmp(be_identity(o->be), identity) == 0)
            return true;
    }
    return false;
}

/* What the identifiers that are not given are made of.  A scsi_id that is given names the unit,
 * whatever medium is in it; else the store does; and the settings tell units with the same store
 * apart. */
static void
identity_text(struct store *s, char *buf, size_t size)
{
    const struct conf_lun *l = s->conf;
    const char *id = s->be ? be_identity(s->be) : "";
    bool twin = s->is_twin;

    if (*id)
        twin |= has_like(s, id);
    else
        id = s->alone_id;
    const char *kind = *l->scsi_id ? "scsi_id " : "";
    if (*l->scsi_id)
        id = l->scsi_id;
    if (!twin)
        snprintf(buf, size, "%s%s", kind, id);
    else
        snprintf(buf, size, "%s%s|%s|%s|%s|%s|%u|%d%d%d%d%d", kind, id, l->layers, l->bsopts,
                 l->vendor_id, l->product_id, l->block_size, l->read_only, l->write_cache, l->thin,
                 l->removable, l->direct);
}

static void
fill(char *field, size_t size, const char *own, const char *device)
{
    if (!*own && *device)
        snprintf(field, size, "%s", device);
}

/* direct-store: what the settings do not say is the device's. */
static void
as_device(const struct conf_lun *l, const struct be_ident *d, struct lun_conf *c)
{
    fill(c->ident.serial, sizeof c->ident.serial, l->scsi_sn, d->serial);
    fill(c->vendor_id, sizeof c->vendor_id, l->vendor_id, d->vendor);
    fill(c->product_id, sizeof c->product_id, l->product_id, d->product);
    fill(c->product_rev, sizeof c->product_rev, l->product_rev, d->rev);
}

void
apply_store_lun_conf(struct store *s, struct lun_conf *c)
{
    const struct conf_lun *l = s->conf;
    struct be_info info = {.block_size = 0};
    char text[8192];

    *c = (struct lun_conf){0};
    if (s->be)
        be_info(s->be, &info);
    identity_text(s, text, sizeof text);
    lun_ident_default(&c->ident, model.seed, text);
    if (l->naa_len) {
        memcpy(c->ident.naa, l->naa, sizeof c->ident.naa);
        c->ident.naa_len = l->naa_len;
    }
    if (l->eui_len) {
        memcpy(c->ident.eui, l->eui, sizeof c->ident.eui);
        c->ident.eui_len = l->eui_len;
    }
    if (*l->scsi_id)
        snprintf(c->ident.t10_id, sizeof c->ident.t10_id, "%s", l->scsi_id);
    if (*l->scsi_sn)
        snprintf(c->ident.serial, sizeof c->ident.serial, "%s", l->scsi_sn);
    c->ident.serial_width = (uint8_t)l->scsi_sn_width;
    memcpy(c->ident.raw, l->designators, l->designators_len);
    c->ident.raw_len = l->designators_len;
    snprintf(c->vendor_id, sizeof c->vendor_id, "%s", l->vendor_id);
    snprintf(c->product_id, sizeof c->product_id, "%s", l->product_id);
    snprintf(c->product_rev, sizeof c->product_rev, "%s", l->product_rev);
    if (l->direct_store)
        as_device(l, &info.device, c);
    c->block_size = l->block_size ? l->block_size : info.block_size == 4096 ? 4096 : 512;
    c->lbppbe = (uint8_t)(l->lbppbe != CONF_UNSET ? l->lbppbe : 0);
    if (l->lbppbe == CONF_UNSET && info.phys_block_size > c->block_size) {
        while (c->lbppbe < 15 && (c->block_size << c->lbppbe) < info.phys_block_size)
            c->lbppbe++;
    }
    c->la_lba = (uint16_t)l->la_lba;
    c->opt_xfer_gran = (uint16_t)l->opt_xfer_gran;
    c->opt_xfer_len = l->opt_xfer_len;
    c->rotation_rate = (uint16_t)(l->rotation_rate != CONF_UNSET ? l->rotation_rate : 0xffff);
    c->thin = l->thin || l->bs == CONF_BS_ZRAM;
    c->volatile_ack = l->volatile_ack;
    c->read_only = l->read_only;
    c->removable = l->removable;
    c->write_cache = l->write_cache && !l->sync;
    c->descriptor_sense = l->descriptor_sense;
    c->online = l->online;
    c->mode_pages = l->mode_pages;
    c->cstore = model.cstore;
}

static bool
is_tuned(const struct conf_lun *a, const struct conf_lun *b)
{
    return a->size != b->size || a->algorithm != b->algorithm || a->level != b->level ||
           a->mem_limit != b->mem_limit;
}

int
apply_store_tune(struct store *s, const struct conf_lun *next, char *err, size_t errsize)
{
    struct be_opts o;

    if (next->bs != CONF_BS_ZRAM || !s->be || !is_tuned(s->conf, next))
        return 0;
    fill_opts(&o, next, s->type);
    if (be_tune(s->be, &o) < 0) {
        snprintf(err, errsize, "%s", be_error(s->be));
        return -EINVAL;
    }
    if (next->size > s->conf->size && s->lun)
        lun_probed(s->lun, BE_EV_GREW);
    return 0;
}

int
apply_store_make_lun(struct store *s)
{
    struct lun_conf c;
    char err[512] = "";

    if (!s->be)
        return -EINVAL;
    apply_store_lun_conf(s, &c);
    s->lun = lun_new(&c, be_get(s->be), err, sizeof err);
    if (!s->lun) {
        be_put(s->be); /* the reference that lun_new did not take */
        log_event(LL_ERROR, LA_SCSI, "lun-refused path=%s why=\"%s\"", LOG_ESC(s->conf->path), err);
        return -EINVAL;
    }
    s->identity_known = be_state(s->be) == BE_READY;
    return 0;
}

static void
on_replaced(void *arg)
{
    lun_put(arg);
}

/* The store was missing so far: its LUN had neither the right identity nor block size.  Another
 * LUN takes its place; initiators see a change of the LUN inventory. */
static void
replace_lun(struct store *s)
{
    struct lun *old = s->lun;
    char err[512] = "";

    if (apply_store_make_lun(s) < 0) {
        s->lun = old;
        return;
    }
    list_each(it, &model.targets) {
        struct model_target *t = container_of(it, struct model_target, link);
        list_each(l, &t->luns) {
            if (container_of(l, struct model_lun, link)->store == s)
                model_touch_luns(t);
        }
    }
    if (model_publish(on_replaced, old, err, sizeof err) < 0)
        log_abort("what was published before does not hold: %s", err);
}

struct replacing {
    struct lun **olds;
    unsigned n;
    void (*done)(void *arg);
    void *arg;
};

static void
on_all_replaced(void *arg)
{
    struct replacing *rp = arg;
    for (unsigned i = 0; i < rp->n; i++)
        lun_put(rp->olds[i]);
    rp->done(rp->arg);
    free(rp->olds);
    free(rp);
}

void
apply_store_replace_all(void (*done)(void *arg), void *arg)
{
    struct replacing *rp = xcalloc(1, sizeof *rp);
    char err[512] = "";

    worker_assert_owner(model.main);
    rp->done = done;
    rp->arg = arg;
    list_each(it, &model.stores)
        rp->n++;
    rp->olds = xcalloc(rp->n + 1, sizeof(struct lun *));
    rp->n = 0;
    list_each(it, &model.stores) {
        struct store *s = container_of(it, struct store, link);
        struct lun *old = s->lun;
        if (!old || s->is_gone)
            continue;
        if (apply_store_make_lun(s) < 0)
            s->lun = old;
        else
            rp->olds[rp->n++] = old;
    }
    list_each(it, &model.targets)
        model_touch_luns(container_of(it, struct model_target, link));
    if (model_publish(on_all_replaced, rp, err, sizeof err) < 0)
        log_abort("what was published before does not hold: %s", err);
}

void
apply_store_probed(struct store *s, unsigned be_events)
{
    worker_assert_owner(model.main);
    if (s->is_gone || !s->lun || !be_events)
        return;
    if ((be_events & BE_EV_CAME) && !s->identity_known)
        replace_lun(s);
    if (be_events & BE_EV_CAME)
        log_event(LL_NOTICE, LA_BACKEND, "came path=%s", LOG_ESC(s->conf->path));
    if (be_events & BE_EV_GONE)
        log_event(LL_ERROR, LA_BACKEND, "gone path=%s", LOG_ESC(s->conf->path));
    lun_probed(s->lun, be_events);
}

/* Says which logical unit suffers, and that it is not for good. */
static void
log_not_opened(const struct store *s)
{
    const struct model_target *t = NULL;
    unsigned number = 0;
    char why[512];

    list_each(it, &model.targets) {
        struct model_target *mt = container_of(it, struct model_target, link);
        list_each(l, &mt->luns) {
            const struct model_lun *ml = container_of(l, struct model_lun, link);
            if (ml->store != s || t)
                continue;
            t = mt;
            number = ml->number;
        }
    }
    log_event(LL_ERROR, LA_BACKEND, "not-opened target=%s lun=%u why=\"%s\" then=\"tried again\"",
              t ? LOG_ESC(t->name) : "", number, apply_store_why(s, why, sizeof why));
}

void
apply_store_settle(struct store *s, int result)
{
    if (result < 0 && !s->is_gone)
        log_not_opened(s);
    if (s->is_gone)
        return;
    if (!s->lun)
        (void)apply_store_make_lun(s);
    else if (result == 0)
        apply_store_probed(s, BE_EV_CAME);
}

/* --- the end --------------------------------------------------------------------------------- */

static void
store_free(struct store *s)
{
    void (*gone)(void *) = s->gone;
    void *arg = s->gone_arg;

    worker_timer_stop(&s->gone_late);
    list_del(&s->link);
    list_del(&s->path_link);
    list_del(&s->ident_link);
    if (s->lun)
        lun_put(s->lun);
    if (s->be)
        be_put(s->be);
    conf_lun_fini(s->conf);
    free(s->conf);
    free(s->alone_id);
    free(s);
    if (gone)
        gone(arg);
}

static void
revoke_path(const char *path, bool made, void *arg)
{
    const struct store *s = arg;
    (void)made;
    if (path[0] != '/')
        return;
    list_each(it, model_stores_at(path)) {
        const struct store *o = container_of(it, struct store, path_link);
        if (o != s && strcmp(o->conf->path, path) == 0)
            return;
    }
    if (!apply_saved_has_path(path)) /* else a reload may want it, and nobody vouches for that */
        (void)opener_revoke(path);
}

void
apply_store_drop(struct store *s)
{
    worker_assert_owner(model.main);
    if (--s->users)
        return;
    if (s->is_gone) {
        store_free(s);
        return;
    }
    if (!s->permit_stays)
        each_path(s, revoke_path, s);
    if (!s->be) {
        store_free(s);
        return;
    }
    s->is_gone = true;
    if (!apply_store_run(s, NULL, job_close, NULL)) /* no user, so no job */
        abort();
}

static void
on_gone_late(struct worker_timer *t)
{
    struct store *s = container_of(t, struct store, gone_late);
    void (*gone)(void *) = s->gone;

    s->gone = NULL;
    log_event(LL_WARN, LA_BACKEND, "close-slow path=%s", LOG_ESC(s->conf->path));
    if (gone)
        gone(s->gone_arg);
}

void
apply_store_drop_then(struct store *s, void (*gone)(void *arg), void *arg)
{
    /* the caller is the last one but for a job of our own */
    if (s->users > 1u + s->busy) {
        apply_store_drop(s);
        gone(arg);
        return;
    }
    s->gone = gone;
    s->gone_arg = arg;
    worker_timer_start_ms(&s->gone_late, CLOSE_WAIT_MS);
    apply_store_drop(s);
}
