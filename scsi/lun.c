/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logical units: creation, live changes, state.  Counted and shared by all workers; what the data
 * path reads per command is atomic or compared by `generation`, the rest is under lun->lock.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pool.h"
#include "scsi/priv.h"

/* --- checks ---------------------------------------------------------------------------------- */

static bool
is_ascii_field(const char *s)
{
    for (; *s != '\0'; s++)
        if (*s < 0x20 || *s > 0x7e) /* SPC-4 4.3.1 */
            return false;
    return true;
}

/* A chain of whole designation descriptors of the logical unit (SPC-4 7.8.6.1). */
static bool
is_designators(const struct lun_ident *id)
{
    size_t at = 0;

    if (id->raw_len > sizeof id->raw)
        return false;
    while (at + 4 <= id->raw_len) {
        const uint8_t *d = id->raw + at;
        if (d[0] < 1 || d[0] > 3 || d[1] > 8 || d[2] != 0 || d[3] == 0)
            return false;
        at += 4u + d[3];
    }
    return at == id->raw_len;
}

static const char *
conf_fault(const struct lun_conf *c)
{
    const struct lun_ident *id = &c->ident;

    if (c->block_size != 512 && c->block_size != 4096)
        return "block size must be 512 or 4096";
    if (c->lbppbe > 15)
        return "lbppbe must be 0..15";
    if (c->la_lba > 0x3fff)
        return "la_lba must be 0..16383";
    if (!is_ascii_field(c->vendor_id) || !is_ascii_field(c->product_id) ||
        !is_ascii_field(c->product_rev) || !is_ascii_field(id->t10_id) ||
        !is_ascii_field(id->serial))
        return "vendor_id, product_id, product_rev, scsi_id and scsi_sn must be printable ASCII";
    if (id->naa_len != 0 && id->naa_len != 8 && id->naa_len != 16)
        return "the NAA identifier must have 8 or 16 bytes";
    if (id->eui_len != 0 && id->eui_len != 8 && id->eui_len != 12 && id->eui_len != 16)
        return "the EUI-64 identifier must have 8, 12 or 16 bytes";
    if (!is_designators(id))
        return "the designators are not whole";
    if (id->serial_width >= sizeof id->serial)
        return "the serial number is too wide";
    if (id->naa_len == 0 && id->eui_len == 0 && id->t10_id[0] == '\0')
        return "the unit has no identifier";
    return NULL;
}

/* Does what the backend found fit the block size? Only meaningful once it is ready. */
static bool
is_fit(const struct lun_conf *c, struct backend *be)
{
    struct be_info info;

    if (be_state(be) != BE_READY)
        return true;
    be_info(be, &info);
    return info.block_size != 0 && c->block_size % info.block_size == 0 &&
           info.size >= c->block_size;
}

static void
set_default(char *field, size_t size, const char *value)
{
    if (field[0] != '\0')
        return;
    size_t n = strnlen(value, size - 1);
    memcpy(field, value, n);
    field[n] = '\0';
    if (n != 0 && field[n - 1] == '.') /* a version cut after a dot */
        field[n - 1] = '\0';
}

static void
fill_defaults(struct lun_conf *c)
{
    set_default(c->vendor_id, sizeof c->vendor_id, "EVTGT");
    set_default(c->product_id, sizeof c->product_id, "VIRTUAL-DISK");
    set_default(c->product_rev, sizeof c->product_rev, PACKAGE_VERSION);
}

/* Record of saved mode pages: named by what identifies the unit. */
static char *
record_name(const struct lun_ident *id)
{
    const uint8_t *p = id->naa_len != 0 ? id->naa : (const uint8_t *)id->serial;
    size_t n = id->naa_len != 0 ? id->naa_len : strlen(id->serial);
    char name[8 + 2 * sizeof id->serial + 1] = "mode-";
    size_t at = strlen(name);

    for (size_t i = 0; i < n; i++, at += 2)
        snprintf(name + at, sizeof name - at, "%02x", p[i]);
    return xstrdup(name);
}

/* --- life ------------------------------------------------------------------------------------ */

struct lun *
lun_new(const struct lun_conf *conf, struct backend *be, char *err, size_t errsize)
{
    static atomic_uint_fast64_t last_id;
    const char *fault = conf_fault(conf);
    struct mode_table pages;

    if (fault == NULL && !is_fit(conf, be))
        fault = "block size and backing store do not fit";
    if (fault != NULL) {
        snprintf(err, errsize, "%s", fault);
        return NULL;
    }
    if (mode_table_make(&pages, conf->mode_pages, err, errsize) < 0)
        return NULL;
    struct lun *lun = xcalloc(1, sizeof *lun);
    ref_init(&lun->ref);
    lun->id = atomic_fetch_add(&last_id, 1) + 1;
    lun->pages = pages;
    lun->be = be;
    lun->conf = *conf;
    lun->conf.mode_pages = NULL;
    fill_defaults(&lun->conf);
    lun->block_size = conf->block_size;
    lun->block_shift = (uint8_t)__builtin_ctz(conf->block_size);
    atomic_init(&lun->generation, 1);
    atomic_init(&lun->online, conf->online);
    atomic_init(&lun->must_ack, conf->volatile_ack);
    pthread_mutex_init(&lun->lock, NULL);
    list_init(&lun->nexuses);
    list_init(&lun->orphan_cmds);
    list_init(&lun->range_waiters);
    lun->cstore = conf->cstore;
    lun->mode_record = record_name(&conf->ident);
    lun->def = (struct mode_values){conf->write_cache, conf->swp, conf->descriptor_sense};
    mode_load(lun);
    return lun;
}

struct lun *
lun_get(struct lun *lun)
{
    ref_get(&lun->ref);
    return lun;
}

void
lun_put(struct lun *lun)
{
    if (!ref_put(&lun->ref))
        return;
    be_put(lun->be);
    pthread_mutex_destroy(&lun->lock);
    free(lun->mode_record);
    free(lun);
}

struct backend *
lun_backend(struct lun *lun)
{
    return lun->be;
}

const struct lun_conf *
lun_conf(const struct lun *lun)
{
    return &lun->conf;
}

void
lun_conf_copy(struct lun *lun, struct lun_conf *out)
{
    pthread_mutex_lock(&lun->lock);
    *out = lun->conf;
    pthread_mutex_unlock(&lun->lock);
}

/* --- live changes ---------------------------------------------------------------------------- */

static void
bump(struct lun *lun)
{
    atomic_fetch_add_explicit(&lun->generation, 1, memory_order_release);
}

static bool
is_inquiry_changed(const struct lun_conf *a, const struct lun_conf *b)
{
    return memcmp(&a->ident, &b->ident, sizeof a->ident) != 0 ||
           strcmp(a->vendor_id, b->vendor_id) != 0 || strcmp(a->product_id, b->product_id) != 0 ||
           strcmp(a->product_rev, b->product_rev) != 0 || a->removable != b->removable ||
           a->thin != b->thin || a->opt_xfer_gran != b->opt_xfer_gran ||
           a->opt_xfer_len != b->opt_xfer_len || a->rotation_rate != b->rotation_rate;
}

/* What READ CAPACITY(16) tells beside the size (SBC-3 5.16.2). */
static bool
is_capacity_changed(const struct lun_conf *a, const struct lun_conf *b)
{
    return a->lbppbe != b->lbppbe || a->la_lba != b->la_lba || a->thin != b->thin;
}

int
lun_check(const struct lun *lun, const struct lun_conf *conf, char *err, size_t errsize)
{
    struct lun_conf c = *conf;
    struct mode_table pages;

    fill_defaults(&c);
    const char *fault = conf_fault(&c);
    if (fault == NULL && c.block_size != lun->block_size)
        fault = "the block size of a unit cannot change while it lives";
    if (fault == NULL)
        return mode_table_make(&pages, c.mode_pages, err, errsize) < 0 ? -1 : 0;
    snprintf(err, errsize, "%s", fault);
    return -1;
}

int
lun_update(struct lun *lun, const struct lun_conf *conf, char *err, size_t errsize)
{
    struct lun_conf c = *conf;
    struct mode_table pages;

    if (lun_check(lun, conf, err, errsize) < 0)
        return -1;
    if (mode_table_make(&pages, c.mode_pages, err, errsize) < 0)
        return -1;
    fill_defaults(&c);
    c.mode_pages = NULL;

    pthread_mutex_lock(&lun->lock);
    struct lun_conf old = lun->conf;
    struct mode_values v = lun->cur;
    lun->conf = c;
    lun->def = (struct mode_values){c.write_cache, c.swp, c.descriptor_sense};
    /* what the configuration changes wins; what it leaves alone stays as the initiators set it */
    if (c.write_cache != old.write_cache)
        v.wce = lun->saved.wce = c.write_cache;
    if (c.swp != old.swp)
        v.swp = lun->saved.swp = c.swp;
    if (c.descriptor_sense != old.descriptor_sense)
        v.d_sense = lun->saved.d_sense = c.descriptor_sense;
    bool mode_changed = memcmp(&v, &lun->cur, sizeof v) != 0 || c.read_only != old.read_only ||
                        memcmp(&pages, &lun->pages, sizeof pages) != 0;
    bool cache_goes_off = lun->cur.wce && !v.wce;
    lun->pages = pages;
    mode_publish(lun, &v);
    pthread_mutex_unlock(&lun->lock);

    if (cache_goes_off) /* who reads WCE=0 sends no SYNCHRONIZE CACHE for what is in it */
        lun_flush(lun);
    if (is_inquiry_changed(&old, &c))
        ua_set_lun(lun, UA_INQUIRY_CHANGED, NULL);
    if (is_capacity_changed(&old, &c))
        ua_set_lun(lun, UA_CAPACITY_CHANGED, NULL);
    if (mode_changed)
        ua_set_lun(lun, UA_MODE_CHANGED, NULL);
    if (c.volatile_ack != old.volatile_ack)
        lun_volatile_set(lun, c.volatile_ack);
    if (c.online != atomic_load(&lun->online))
        lun_set_online(lun, c.online);
    return 0;
}

void
lun_set_online(struct lun *lun, bool online)
{
    pthread_mutex_lock(&lun->lock);
    lun->conf.online = online;
    bool changed = atomic_exchange(&lun->online, online) != online;
    bump(lun);
    pthread_mutex_unlock(&lun->lock);
    if (changed && online)
        ua_set_lun(lun, UA_MEDIUM_CHANGED, NULL);
}

void
lun_follow(struct lun *lun, struct lun *old)
{
    lun->follows = old->id;
    lun->first_ua = 0;
    if (lun_not_ready(lun) == 0)
        lun->first_ua |= 1u << UA_MEDIUM_CHANGED;
    if (lun_nblocks(lun) != lun_nblocks(old) || lun->block_size != old->block_size ||
        is_capacity_changed(&lun->conf, &old->conf) || lun_is_thin(lun) != lun_is_thin(old))
        lun->first_ua |= 1u << UA_CAPACITY_CHANGED;
    if (is_inquiry_changed(&lun->conf, &old->conf))
        lun->first_ua |= 1u << UA_INQUIRY_CHANGED;
    if (memcmp(&lun->cur, &old->cur, sizeof lun->cur) != 0 ||
        memcmp(&lun->pages, &old->pages, sizeof lun->pages) != 0 ||
        lun->conf.read_only != old->conf.read_only)
        lun->first_ua |= 1u << UA_MODE_CHANGED;
    pthread_mutex_lock(&old->lock);
    struct scsi_stat past = old->past;
    pthread_mutex_unlock(&old->lock);
    lun->past = past;
}

void
lun_stat_past(struct lun *lun, struct scsi_stat *out)
{
    pthread_mutex_lock(&lun->lock);
    *out = lun->past;
    pthread_mutex_unlock(&lun->lock);
}

void
lun_probed(struct lun *lun, unsigned be_events)
{
    pthread_mutex_lock(&lun->lock);
    bool fit = is_fit(&lun->conf, lun->be);
    atomic_store(&lun->misfit, !fit);
    if (be_events & BE_EV_CAME) /* of a volatile store: other contents than before */
        memset(&lun->told, 0, sizeof lun->told);
    bump(lun);
    pthread_mutex_unlock(&lun->lock);

    if (!fit)
        log_event(LL_ERROR, LA_SCSI, "misfit block_size=%u path=%s", lun->block_size,
                  LOG_ESC(be_path(lun->be)));
    if (be_events & BE_EV_CAME)
        ua_set_lun(lun, UA_MEDIUM_CHANGED, NULL);
    if (be_events & BE_EV_GREW)
        ua_set_lun(lun, UA_CAPACITY_CHANGED, NULL);
}

bool
lun_reset_state(struct lun *lun)
{
    pthread_mutex_lock(&lun->lock);
    bool cache_goes_off = lun->cur.wce && !lun->saved.wce;
    lun->reserved_by = NULL;
    lun->prevent = 0;
    atomic_store(&lun->stopped, false);
    list_each(it, &lun->nexuses) {
        struct nexus *nx = container_of(it, struct nexus, on_lun);
        nx->prevent = false;
    }
    mode_publish(lun, &lun->saved);
    pthread_mutex_unlock(&lun->lock);
    return cache_goes_off;
}

void
lun_forget_nexus(struct lun *lun, struct nexus *nx)
{
    if (lun->reserved_by == nx) {
        lun->reserved_by = NULL;
        bump(lun);
    }
    if (nx->prevent) {
        nx->prevent = false;
        lun->prevent--;
    }
}

/* --- state ----------------------------------------------------------------------------------- */

static uint32_t
not_ready(uint16_t asc)
{
    return (uint32_t)SK_NOT_READY << 16 | asc;
}

uint32_t
lun_not_ready(struct lun *lun)
{
    bool offline = !atomic_load_explicit(&lun->online, memory_order_relaxed);

    if (offline || be_state(lun->be) != BE_READY ||
        atomic_load_explicit(&lun->misfit, memory_order_relaxed)) {
        pthread_mutex_lock(&lun->lock);
        bool removable = lun->conf.removable;
        pthread_mutex_unlock(&lun->lock);
        return not_ready(removable ? 0x3a00 : offline ? 0x0412 : 0x0400);
    }
    if (atomic_load_explicit(&lun->ejected, memory_order_relaxed))
        return not_ready(0x3a00);
    if (lun_awaits_ack(lun))
        return not_ready(0x0403); /* manual intervention required */
    if (atomic_load_explicit(&lun->stopped, memory_order_relaxed))
        return not_ready(0x0402); /* initializing command required */
    return 0;
}

static const char *
reason_of(struct lun *lun)
{
    if (!atomic_load(&lun->online))
        return "offline";
    if (be_state(lun->be) != BE_READY) {
        const char *e = be_error(lun->be);
        if (e[0] == '\0' && lun->conf.removable && be_path(lun->be)[0] == '\0')
            return "no medium";
        return e[0] != '\0' ? e : "the backing store is not open";
    }
    if (atomic_load(&lun->misfit))
        return "block size and backing store do not fit";
    if (atomic_load(&lun->ejected))
        return "ejected by an initiator";
    if (lun_awaits_ack(lun))
        return "volatile: it is empty, and nobody has acknowledged that";
    if (atomic_load(&lun->stopped))
        return "stopped by an initiator";
    return "";
}

void
lun_state(struct lun *lun, struct lun_state *out)
{
    struct be_info info;

    memset(out, 0, sizeof *out);
    be_info(lun->be, &info);
    out->thin = lun_is_thin(lun);
    out->ready = lun_not_ready(lun) == 0;
    pthread_mutex_lock(&lun->lock);
    out->nblocks = lun_nblocks(lun);
    out->block_size = lun->block_size;
    out->online = atomic_load(&lun->online);
    out->read_only = lun->conf.read_only || info.read_only;
    out->swp = lun->cur.swp;
    out->wce = lun->cur.wce;
    out->removable = lun->conf.removable;
    out->is_volatile = info.is_volatile;
    out->awaits_ack = lun_awaits_ack(lun);
    out->reserved = lun->reserved_by != NULL;
    out->prevent_removal = lun->prevent != 0;
    list_each(it, &lun->nexuses)
        out->itns += !container_of(it, struct nexus, on_lun)->dead;
    snprintf(out->reason, sizeof out->reason, "%s", reason_of(lun));
    pthread_mutex_unlock(&lun->lock);
    out->flush_failed = be_flush_failed(lun->be);
}
