/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mode pages: MODE SENSE and MODE SELECT (6 and 10), SPC-4 6.11 to 6.14, SBC-3 6.4.
 *
 * Pages are rows (mode_table.c); the few bits an initiator may change are rows too, and everything
 * that depends on them (changeable values, validation, effect) comes from there.  A MODE SELECT is
 * checked whole before anything changes.  What must be durable first (a flush when the write cache
 * goes off, the saved values) belongs to a mode_change, which outlives an aborted command.
 *
 * Handlers run on the command's worker; mode_load on main.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cstore.h"
#include "base/log.h"
#include "base/pool.h"
#include "base/worker.h"
#include "scsi/priv.h"

/* --- the bits that an initiator may change --------------------------------------------------- */

struct mode_bit {
    uint8_t page, byte, bit;
    size_t value; /* offset of a bool in struct mode_values */
};

static const struct mode_bit mode_bits[] = {
    {0x08, 2, 2, offsetof(struct mode_values, wce)},
    {0x0a, 2, 2, offsetof(struct mode_values, d_sense)},
    {0x0a, 4, 3, offsetof(struct mode_values, swp)},
};
#define N_BITS (sizeof mode_bits / sizeof mode_bits[0])

static bool *
value_of(struct mode_values *v, const struct mode_bit *b)
{
    return (bool *)((char *)v + b->value);
}

static bool
bit_is_in(const struct mode_bit *b, const struct mode_page *pg)
{
    return pg->sub == 0 && b->page == pg->page;
}

static bool
page_is_changeable(const struct mode_page *pg)
{
    for (size_t i = 0; i < N_BITS; i++)
        if (bit_is_in(&mode_bits[i], pg))
            return true;
    return false;
}

static void
page_values(const struct mode_page *pg, struct mode_values *v, uint8_t out[MODE_PAGE_MAX])
{
    memcpy(out, pg->base, MODE_PAGE_MAX);
    for (size_t i = 0; i < N_BITS; i++)
        if (bit_is_in(&mode_bits[i], pg) && *value_of(v, &mode_bits[i]))
            out[mode_bits[i].byte] |= (uint8_t)(1u << mode_bits[i].bit);
}

static void
page_mask(const struct mode_page *pg, uint8_t out[MODE_PAGE_MAX])
{
    memset(out, 0, MODE_PAGE_MAX);
    memcpy(out, pg->base, pg->sub != 0 ? 4 : 2);
    for (size_t i = 0; i < N_BITS; i++)
        if (bit_is_in(&mode_bits[i], pg))
            out[mode_bits[i].byte] |= (uint8_t)(1u << mode_bits[i].bit);
}

static const struct mode_page *
page_find(const struct mode_table *t, uint8_t page, uint8_t sub)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->v[i].page == page && t->v[i].sub == sub)
            return &t->v[i];
    return NULL;
}

static bool
page_code_exists(const struct mode_table *t, uint8_t page)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->v[i].page == page)
            return true;
    return page == 0x3f;
}

/* The settings may give the unit other pages at any time. */
static void
pages_copy(struct lun *lun, struct mode_table *out)
{
    pthread_mutex_lock(&lun->lock);
    *out = lun->pages;
    pthread_mutex_unlock(&lun->lock);
}

/* --- effect ---------------------------------------------------------------------------------- */

void
mode_publish(struct lun *lun, const struct mode_values *v)
{
    lun->cur = *v;
    atomic_store(&lun->d_sense, v->d_sense);
    be_set_write_cache(lun->be, v->wce);
    atomic_fetch_add_explicit(&lun->generation, 1, memory_order_release);
}

/* --- the saved record: what was saved, and what the configuration said then ------------------ */

#define RECORD_LEN 8

static uint8_t
pack(const struct mode_values *v)
{
    return (uint8_t)(v->wce | v->swp << 1 | v->d_sense << 2);
}

static struct mode_values
unpack(uint8_t b)
{
    return (struct mode_values){.wce = b & 1, .swp = b >> 1 & 1, .d_sense = b >> 2 & 1};
}

static void
record_put(uint8_t out[RECORD_LEN], const struct mode_values *saved, const struct mode_values *def)
{
    memcpy(out, "mode01", 6);
    out[6] = pack(saved);
    out[7] = pack(def);
}

/* A value that the configuration changed since it was saved is the configuration's. */
void
mode_load(struct lun *lun)
{
    void *rec = NULL;
    int64_t n = lun->cstore != NULL ? cstore_read(lun->cstore, lun->mode_record, &rec) : 0;

    lun->saved = lun->def;
    if (n == RECORD_LEN && memcmp(rec, "mode01", 6) == 0) {
        uint8_t def = ((uint8_t *)rec)[7], val = ((uint8_t *)rec)[6];
        uint8_t keep = (uint8_t) ~(def ^ pack(&lun->def)); /* 1: not changed since */
        lun->saved = unpack((uint8_t)((val & keep) | (pack(&lun->def) & (uint8_t)~keep)));
    } else if (n > 0) {
        log_event(LL_WARN, LA_SCSI, "mode-record-bad name=%s", lun->mode_record);
    }
    free(rec);
    mode_publish(lun, &lun->saved);
}

/* --- MODE SENSE ------------------------------------------------------------------------------ */

enum { PC_CURRENT, PC_CHANGEABLE, PC_DEFAULT, PC_SAVED };

static void
put_page(struct wcur *w, const struct mode_page *pg, unsigned pc, struct mode_values *v, bool ps)
{
    uint8_t b[MODE_PAGE_MAX];

    if (pc == PC_CHANGEABLE)
        page_mask(pg, b);
    else
        page_values(pg, v, b);
    if (ps && page_is_changeable(pg))
        b[0] |= 0x80;
    wcur_bytes(w, b, pg->len);
}

static void
put_block_descriptor(struct wcur *w, const struct lun *lun, bool llbaa)
{
    uint64_t n = lun_nblocks(lun);

    if (llbaa) {
        wcur_be64(w, n);
        wcur_be32(w, 0);
        wcur_be32(w, lun->block_size);
    } else {
        wcur_be32(w, n > UINT32_MAX ? UINT32_MAX : (uint32_t)n);
        wcur_u8(w, 0);
        wcur_be24(w, lun->block_size);
    }
}

struct mode_sense_req {
    bool ten, dbd, llbaa;
    unsigned pc;
    uint8_t page, sub;
};

static bool
page_is_asked(const struct mode_page *pg, const struct mode_sense_req *r)
{
    if (r->page != 0x3f && r->page != pg->page)
        return false;
    return r->sub == 0xff || r->sub == pg->sub;
}

/* Everything after the header; false: no such page. */
static bool
put_body(struct wcur *w, struct lun *lun, const struct mode_table *t,
         const struct mode_sense_req *r, unsigned *bd_len)
{
    bool found = false;

    if (!r->dbd)
        put_block_descriptor(w, lun, r->llbaa);
    *bd_len = (unsigned)w->len;

    pthread_mutex_lock(&lun->lock);
    struct mode_values v = r->pc == PC_DEFAULT ? lun->def
                           : r->pc == PC_SAVED ? lun->saved
                                               : lun->cur;
    bool ps = lun->cstore != NULL;
    pthread_mutex_unlock(&lun->lock);
    for (unsigned i = 0; i < t->n; i++) {
        if (!page_is_asked(&t->v[i], r))
            continue;
        put_page(w, &t->v[i], r->pc, &v, ps);
        found = true;
    }
    return found;
}

static uint8_t
device_specific(struct lun *lun)
{
    struct be_info info;

    be_info(lun->be, &info);
    pthread_mutex_lock(&lun->lock);
    bool wp = lun->conf.read_only || lun->cur.swp || info.read_only;
    pthread_mutex_unlock(&lun->lock);
    return (uint8_t)(0x10 | (wp ? 0x80 : 0)); /* DPOFUA, WP */
}

static void
put_header(struct wcur *w, const struct mode_sense_req *r, uint8_t specific, size_t body,
           unsigned bd_len)
{
    if (r->ten) {
        wcur_be16(w, (uint16_t)(body + 6));
        wcur_u8(w, 0);
        wcur_u8(w, specific);
        wcur_be16(w, r->llbaa && bd_len != 0 ? 0x0100 : 0); /* LONGLBA */
        wcur_be16(w, (uint16_t)bd_len);
    } else {
        wcur_u8(w, (uint8_t)(body + 3));
        wcur_u8(w, 0);
        wcur_u8(w, specific);
        wcur_u8(w, (uint8_t)bd_len);
    }
}

void
mode_sense(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    const uint8_t *cdb = cmd->cdb;
    bool ten = cdb[0] == 0x5a;
    struct mode_sense_req r = {
        .ten = ten,
        .dbd = (cdb[1] & 0x08) != 0,
        .llbaa = ten && (cdb[1] & 0x10) != 0,
        .pc = cdb[2] >> 6,
        .page = cdb[2] & 0x3f,
        .sub = cdb[3],
    };
    uint8_t mem[16 + MODE_BYTES_MAX];
    struct mode_table t;
    struct wcur body = wcur_init(mem, sizeof mem), w;
    unsigned bd_len;

    pages_copy(cmd->lu, &t);
    if (!page_code_exists(&t, r.page)) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD(2, 5));
        return;
    }
    if (r.page == 0x3f && r.sub != 0 && r.sub != 0xff) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD_BYTE(3));
        return;
    }
    if (r.pc == PC_SAVED && cmd->lu->cstore == NULL) {
        scsi_fail(cmd, SENSE_SAVING_NOT_SUPPORTED, NO_FIELD);
        return;
    }
    if (!put_body(&body, cmd->lu, &t, &r, &bd_len)) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD_BYTE(3));
        return;
    }
    if (!scsi_reply(cmd, &w))
        return;
    put_header(&w, &r, device_specific(cmd->lu), body.len, bd_len);
    wcur_bytes(&w, mem, wcur_stored(&body));
    scsi_data_in(cmd, (uint32_t)w.len);
}

/* --- MODE SELECT: making a change durable, then public --------------------------------------- */

struct mode_change {
    struct scsi_cmd *cmd; /* NULL: aborted meanwhile */
    struct worker *w;
    struct lun *lun; /* reference */
    struct mode_values v;
    bool save;
    bool flushed; /* the cache goes off */
    struct io io;
};

static void
change_end(struct mode_change *mc, int err)
{
    struct lun *lun = mc->lun;
    struct scsi_cmd *cmd = mc->cmd;
    bool changed = false;

    pthread_mutex_lock(&lun->lock);
    lun->mode_busy = NULL;
    if (err == 0 && mc->save)
        lun->saved = mc->v; /* true even when aborted: it is what a restart will find */
    if (err == 0 && mc->flushed && atomic_load(&lun->be->write_cache))
        err = -ECANCELED; /* a reset put it on again: what came since is not flushed */
    if (err == 0 && cmd != NULL) {
        changed = memcmp(&lun->cur, &mc->v, sizeof mc->v) != 0;
        mode_publish(lun, &mc->v);
    } else {
        be_set_write_cache(lun->be, lun->cur.wce);
    }
    pthread_mutex_unlock(&lun->lock);

    if (changed)
        ua_set_lun(lun, UA_MODE_CHANGED, cmd->nx);
    if (cmd != NULL) {
        cmd->change = NULL;
        cmd->scratch[0] = (uint32_t)-err;
        scsi_unpark(cmd);
    }
    lun_put(lun);
    free(mc);
}

static void
on_saved(void *arg, int err)
{
    change_end(arg, err);
}

static void
change_save(struct mode_change *mc)
{
    uint8_t rec[RECORD_LEN];

    if (mc->cmd == NULL)
        mc->save = false; /* aborted in time */
    if (!mc->save) {
        change_end(mc, 0);
        return;
    }
    pthread_mutex_lock(&mc->lun->lock);
    record_put(rec, &mc->v, &mc->lun->def);
    pthread_mutex_unlock(&mc->lun->lock);
    cstore_write(mc->lun->cstore, mc->lun->mode_record, rec, sizeof rec, mc->w, on_saved, mc);
}

static void
on_cache_flushed(struct io *io)
{
    struct mode_change *mc = io_frame(io)->arg;

    if (io->res != 0)
        change_end(mc, io->res);
    else
        change_save(mc);
}

/* The cache goes off: what is in it goes to the medium, what comes now is written through. */
static void
change_flush(struct mode_change *mc)
{
    be_set_write_cache(mc->lun->be, false);
    mc->flushed = true;
    mc->io.op = IO_FLUSH;
    mc->io.w = mc->w;
    mc->io.len = be_size(mc->lun->be);
    io_push(&mc->io, on_cache_flushed, mc);
    be_submit(mc->lun->be, &mc->io);
}

static void
on_changed(struct scsi_cmd *cmd)
{
    if (cmd->scratch[0] != 0)
        scsi_fail(cmd, SENSE_HARDWARE_ERROR, NO_FIELD);
    else
        scsi_good(cmd);
}

void
mode_abandon(struct scsi_cmd *cmd)
{
    if (cmd->change != NULL)
        cmd->change->cmd = NULL;
    cmd->change = NULL;
}

static void
change_start(struct scsi_cmd *cmd, const struct mode_values *v, bool save)
{
    struct lun *lun = cmd->lu;
    struct mode_change *mc = xcalloc(1, sizeof *mc);

    pthread_mutex_lock(&lun->lock);
    bool busy = lun->mode_busy != NULL;
    bool flush = lun->cur.wce && !v->wce && be_state(lun->be) == BE_READY;
    if (!busy)
        lun->mode_busy = mc;
    pthread_mutex_unlock(&lun->lock);
    if (busy) {
        free(mc);
        scsi_status(cmd, SAM_BUSY);
        return;
    }
    *mc = (struct mode_change){.cmd = cmd, .w = cmd->w, .lun = lun_get(lun), .v = *v, .save = save};
    cmd->change = mc;
    scsi_park(cmd, NULL, PARK_PERSIST, on_changed);
    if (flush)
        change_flush(mc);
    else
        change_save(mc);
}

/* --- MODE SELECT: validation ----------------------------------------------------------------- */

static bool
bad_parameter(struct scsi_cmd *cmd, uint32_t field)
{
    scsi_fail(cmd, SENSE_INVALID_FIELD_IN_PARAMETERS, field);
    return false;
}

static bool
bad_length(struct scsi_cmd *cmd)
{
    scsi_fail(cmd, SENSE_PARAMETER_LIST_LENGTH, NO_FIELD);
    return false;
}

static unsigned
top_bit(unsigned v)
{
    return 31u - (unsigned)__builtin_clz(v);
}

/* The format cannot be changed: a descriptor must say what is. */
static bool
check_block_descriptor(struct scsi_cmd *cmd, unsigned off, bool longlba)
{
    const uint8_t *p = cmd->data + off;
    uint64_t have = lun_nblocks(cmd->lu);
    uint64_t n = longlba ? get_be64(p) : get_be32(p);
    uint32_t size = longlba ? get_be32(p + 12) : get_be24(p + 5);
    uint64_t all = longlba ? UINT64_MAX : UINT32_MAX;

    if (n != 0 && n != all && n != have)
        return bad_parameter(cmd, FIELD_BYTE(off));
    if (longlba ? get_be32(p + 8) != 0 : p[4] != 0)
        return bad_parameter(cmd, FIELD_BYTE(off + (longlba ? 8 : 4)));
    if (size != cmd->lu->block_size)
        return bad_parameter(cmd, FIELD_BYTE(off + (longlba ? 12 : 5)));
    return true;
}

/* Header and block descriptor; *off: where the pages start. MODE DATA LENGTH and the device
 * specific parameter are ignored in a MODE SELECT (SPC-4 7.5.5, SBC-3 6.4.1). */
static bool
check_header(struct scsi_cmd *cmd, bool ten, uint32_t len, uint32_t *off)
{
    const uint8_t *p = cmd->data;
    uint32_t hdr = ten ? 8 : 4;

    if (len < hdr)
        return bad_length(cmd);
    if (p[ten ? 2 : 1] != 0)
        return bad_parameter(cmd, FIELD_BYTE(ten ? 2 : 1));
    if (ten && (p[4] & 0xfe) != 0)
        return bad_parameter(cmd, FIELD(4, top_bit(p[4])));
    if (ten && p[5] != 0)
        return bad_parameter(cmd, FIELD(5, top_bit(p[5])));

    bool longlba = ten && (p[4] & 0x01) != 0;
    uint32_t bd = ten ? get_be16(p + 6) : p[3];
    if (bd != 0 && bd != (longlba ? 16u : 8u))
        return bad_parameter(cmd, FIELD_BYTE(ten ? 6 : 3));
    if (len - hdr < bd)
        return bad_length(cmd);
    *off = hdr + bd;
    return bd == 0 || check_block_descriptor(cmd, hdr, longlba);
}

/* One page at off: what it asks for goes to *v. */
static bool
take_page(struct scsi_cmd *cmd, const struct mode_table *t, uint32_t len, uint32_t *off,
          struct mode_values *v)
{
    const uint8_t *p = cmd->data + *off;
    uint32_t left = len - *off;
    uint8_t have[MODE_PAGE_MAX], mask[MODE_PAGE_MAX];

    if (left < 2)
        return bad_length(cmd);
    bool spf = (p[0] & 0x40) != 0;
    if (spf && left < 4)
        return bad_length(cmd);
    const struct mode_page *pg = page_find(t, p[0] & 0x3f, spf ? p[1] : 0);
    if (pg == NULL)
        return bad_parameter(cmd, page_code_exists(t, p[0] & 0x3f) && spf ? FIELD_BYTE(*off + 1)
                                                                          : FIELD(*off, 5));
    if (spf != (pg->sub != 0))
        return bad_parameter(cmd, FIELD(*off, 6));
    uint32_t plen = spf ? 4u + get_be16(p + 2) : 2u + p[1];
    if (plen != pg->len)
        return bad_parameter(cmd, FIELD_BYTE(*off + (spf ? 2 : 1)));
    if (left < plen)
        return bad_length(cmd);

    page_values(pg, v, have);
    page_mask(pg, mask);
    for (uint32_t i = spf ? 4 : 2; i < plen; i++) {
        unsigned bad = (unsigned)(p[i] ^ have[i]) & (unsigned)(uint8_t)~mask[i];
        if (bad != 0)
            return bad_parameter(cmd, FIELD(*off + i, top_bit(bad)));
    }
    for (size_t i = 0; i < N_BITS; i++)
        if (bit_is_in(&mode_bits[i], pg))
            *value_of(v, &mode_bits[i]) = (p[mode_bits[i].byte] >> mode_bits[i].bit & 1) != 0;
    *off += plen;
    return true;
}

void
mode_select(struct scsi_cmd *cmd)
{
    worker_assert_owner(cmd->w);
    bool ten = cmd->cdb[0] == 0x55;
    bool save = (cmd->cdb[1] & 0x01) != 0;
    uint32_t len = cmd->alloc_len, off;

    if (save && cmd->lu->cstore == NULL) {
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD(1, 0));
        return;
    }
    if (len == 0) {
        scsi_good(cmd);
        return;
    }
    if ((cmd->cdb[1] & 0x10) == 0) { /* PF=0: vendor specific pages, of which there are none */
        scsi_fail(cmd, SENSE_INVALID_FIELD_IN_CDB, FIELD(1, 4));
        return;
    }
    pthread_mutex_lock(&cmd->lu->lock);
    struct mode_values v = cmd->lu->cur;
    struct mode_table t = cmd->lu->pages;
    pthread_mutex_unlock(&cmd->lu->lock);

    if (!check_header(cmd, ten, len, &off))
        return;
    while (off < len)
        if (!take_page(cmd, &t, len, &off, &v))
            return;
    change_start(cmd, &v, save);
}
