/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Admin verbs that carry what the control store holds of disks to another machine: config export,
 * config import.  What is carried is named by kind; saved configuration is not, `dump` has it.
 *
 * An import is all or nothing: the whole of it is one record of its own first, then its records are
 * put in their places, then it goes; a start that finds it finishes it (admin_import_recover).
 * Main only, but for the bodies of helper jobs.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/cstore.h"
#include "base/pool.h"
#include "target/admin.h"
#include "target/admin_priv.h"

#define FORMAT        "evtgt-state"
#define STATE_VERSION 1
#define JOURNAL       "import"
#define RECORDS_MAX   65536u
#define RECORD_MAX    (64u * 1024)

/* What may be carried; a record of another name is not understood here. */
static const struct {
    const char *name;
    bool is_start; /* of a name */
    size_t min, max;
} kinds[] = {
    {"host-seed", false, sizeof model.seed, sizeof model.seed}, /* identities of disks */
    {"mode-", true, 1, RECORD_MAX},                             /* saved mode pages */
};

struct record {
    char *name;
    uint8_t *data;
    size_t len;
};

struct records {
    struct record *v;
    size_t n;
};

static bool
is_carried(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t k = strlen(kinds[i].name);
        bool fits = kinds[i].is_start ? strncmp(name, kinds[i].name, k) == 0 && name[k]
                                      : strcmp(name, kinds[i].name) == 0;
        if (fits)
            return len >= kinds[i].min && len <= kinds[i].max;
    }
    return false;
}

static void
records_fini(struct records *rs)
{
    for (size_t i = 0; i < rs->n; i++) {
        free(rs->v[i].name);
        free(rs->v[i].data);
    }
    free(rs->v);
    *rs = (struct records){NULL, 0};
}

/* Takes over data. */
static void
records_add(struct records *rs, const char *name, void *data, size_t len)
{
    if ((rs->n & (rs->n - 1)) == 0)
        rs->v = xrealloc(rs->v, (rs->n ? 2 * rs->n : 1) * sizeof *rs->v);
    rs->v[rs->n++] = (struct record){xstrdup(name), data, len};
}

static const struct record *
records_find(const struct records *rs, const char *name)
{
    for (size_t i = 0; i < rs->n; i++) {
        if (strcmp(rs->v[i].name, name) == 0)
            return &rs->v[i];
    }
    return NULL;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(((const struct record *)a)->name, ((const struct record *)b)->name);
}

/* Over names, lengths and bytes in the order of the names. */
static void
checksum(const struct records *rs, char out[9])
{
    uint32_t crc = CRC32C_INIT;
    uint8_t b[4];

    for (size_t i = 0; i < rs->n; i++) {
        char head[300];
        int n = snprintf(head, sizeof head, "%s %zu\n", rs->v[i].name, rs->v[i].len);
        crc = crc32c_add(crc, head, (size_t)n);
        crc = crc32c_add(crc, rs->v[i].data, rs->v[i].len);
    }
    crc32c_final(crc, b);
    snprintf(out, 9, "%02x%02x%02x%02x", b[0], b[1], b[2], b[3]);
}

/* --- as JSON --------------------------------------------------------------------------------- */

static json_t *
records_json(const struct records *rs)
{
    json_t *a = json_array();
    char sum[9];

    for (size_t i = 0; i < rs->n; i++) {
        char *hex = xmalloc(2 * rs->v[i].len + 1);
        for (size_t k = 0; k < rs->v[i].len; k++)
            snprintf(hex + 2 * k, 3, "%02x", rs->v[i].data[k]);
        hex[2 * rs->v[i].len] = 0;
        json_array_append_new(a, json_pack("{ss ss}", "name", rs->v[i].name, "hex", hex));
        free(hex);
    }
    checksum(rs, sum);
    return json_pack("{ss si so ss}", "format", FORMAT, "version", STATE_VERSION, "records", a,
                     "crc32c", sum);
}

static int
digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* NULL: not an even number of hexadecimal digits. */
static uint8_t *
unhex(const char *hex, size_t n)
{
    uint8_t *data = xmalloc(n / 2 + 1);
    for (size_t i = 0; i < n; i += 2) {
        int a = digit(hex[i]), b = i + 1 < n ? digit(hex[i + 1]) : -1;
        if (a < 0 || b < 0) {
            free(data);
            return NULL;
        }
        data[i / 2] = (uint8_t)(a << 4 | b);
    }
    return data;
}

static bool
record_read(const json_t *o, struct records *rs, char *err, size_t errsize)
{
    const json_t *hex = json_object_get(o, "hex");
    const char *name = json_string_value(json_object_get(o, "name"));
    size_t n = json_string_length(hex);

    if (!name || !json_is_string(hex)) {
        snprintf(err, errsize, "a record has no \"name\" and \"hex\"");
        return false;
    }
    if (!is_carried(name, n / 2)) {
        snprintf(err, errsize, "record %.100s: this daemon knows none of that name and length",
                 name);
        return false;
    }
    if (records_find(rs, name)) {
        snprintf(err, errsize, "record %.100s is there twice", name);
        return false;
    }
    uint8_t *data = unhex(json_string_value(hex), n);
    if (!data) {
        snprintf(err, errsize, "record %.100s: \"hex\" is no hexadecimal text", name);
        return false;
    }
    records_add(rs, name, data, n / 2);
    return true;
}

static bool
records_read(const json_t *o, struct records *rs, char *err, size_t errsize)
{
    const char *format = json_string_value(json_object_get(o, "format"));
    const char *sum = json_string_value(json_object_get(o, "crc32c"));
    const json_t *list = json_object_get(o, "records");
    json_int_t version = json_integer_value(json_object_get(o, "version"));
    char want[9];
    json_t *v;
    size_t i;

    *rs = (struct records){NULL, 0};
    if (!format || strcmp(format, FORMAT) != 0) {
        snprintf(err, errsize, "\"format\" wants \"" FORMAT "\"");
        return false;
    }
    if (version != STATE_VERSION) {
        snprintf(err, errsize, "version %lld; this daemon reads %d", (long long)version,
                 STATE_VERSION);
        return false;
    }
    if (!json_is_array(list) || json_array_size(list) > RECORDS_MAX) {
        snprintf(err, errsize, "\"records\" wants an array of at most %u records", RECORDS_MAX);
        return false;
    }
    json_array_foreach(list, i, v)
    {
        if (!record_read(v, rs, err, errsize))
            return false;
    }
    if (!records_find(rs, "host-seed")) {
        snprintf(err, errsize, "the record host-seed is missing");
        return false;
    }
    qsort(rs->v, rs->n, sizeof *rs->v, by_name);
    checksum(rs, want);
    if (!sum || strcmp(sum, want) != 0) {
        snprintf(err, errsize, "\"crc32c\" is not that of the records: it was damaged or changed");
        return false;
    }
    return true;
}

/* --- the control store ----------------------------------------------------------------------- */

struct listing {
    struct cstore *cs;
    struct records rs;
    bool with_data;
    int err;
};

static void
on_name(const char *name, void *arg)
{
    struct listing *l = arg;
    void *data = NULL;
    int64_t n = 0;

    if (!is_carried(name, sizeof model.seed) && !is_carried(name, 1))
        return; /* of another kind */
    if (l->with_data) {
        n = cstore_read(l->cs, name, &data);
        if (n < 0 || !is_carried(name, (size_t)n)) {
            l->err = n < 0 ? (int)n : -EBADMSG;
            log_event(LL_ERROR, LA_ADMIN, "export record=%s error=%s", name, strerror(-l->err));
            free(data);
            return;
        }
    }
    records_add(&l->rs, name, data, (size_t)n);
}

/* What there is of it, in the order of the names. 0 or -errno. Blocking. */
static int
list_records(struct cstore *cs, bool with_data, struct records *rs)
{
    struct listing l = {.cs = cs, .with_data = with_data};
    int rc = cstore_each(cs, on_name, &l);

    if (l.rs.n)
        qsort(l.rs.v, l.rs.n, sizeof *l.rs.v, by_name);
    *rs = l.rs;
    return rc < 0 ? rc : l.err;
}

/* The control store holds these records, and no others of their kinds. Blocking. */
static int
store_records(struct cstore *cs, const struct records *rs)
{
    struct records had;
    int rc = list_records(cs, false, &had);

    for (size_t i = 0; i < had.n && rc == 0; i++) {
        if (!records_find(rs, had.v[i].name))
            rc = cstore_write_sync(cs, had.v[i].name, NULL, 0);
    }
    for (size_t i = 0; i < rs->n && rc == 0; i++)
        rc = cstore_write_sync(cs, rs->v[i].name, rs->v[i].data, rs->v[i].len);
    records_fini(&had);
    return rc;
}

int
admin_import_recover(struct cstore *cs)
{
    void *text;
    struct records rs;
    char err[256] = "";
    int64_t n = cstore_read(cs, JOURNAL, &text);

    if (n == -ENOENT)
        return 0;
    if (n < 0)
        return (int)n;
    json_t *o = json_loadb(text, (size_t)n, 0, NULL);
    int rc = records_read(o, &rs, err, sizeof err) ? store_records(cs, &rs) : -EBADMSG;
    if (rc == 0)
        rc = cstore_write_sync(cs, JOURNAL, NULL, 0);
    if (rc == 0)
        log_event(LL_NOTICE, LA_ADMIN, "import-finished records=%zu", rs.n);
    else
        log_event(LL_ERROR, LA_ADMIN, "import-left why=\"%s\"", *err ? err : strerror(-rc));
    records_fini(&rs);
    json_decref(o);
    free(text);
    return rc;
}

/* --- export ---------------------------------------------------------------------------------- */

struct carrying {
    struct helper_job job;
    struct admin_req *r;
    struct cstore *cs;
    struct records rs;
    char *journal; /* import */
    int rc;
};

static void
carrying_free(struct carrying *c)
{
    records_fini(&c->rs);
    free(c->journal);
    free(c);
}

static void
job_export(struct helper_job *job)
{
    struct carrying *c = container_of(job, struct carrying, job);
    c->rc = list_records(c->cs, true, &c->rs);
}

static void
on_exported(struct helper_job *job)
{
    struct carrying *c = container_of(job, struct carrying, job);

    if (c->rc < 0)
        admin_fail(c->r, AE_INVALID, "the control store cannot be read: %s", strerror(-c->rc));
    else
        admin_ok(c->r, records_json(&c->rs));
    carrying_free(c);
}

static void
carry(struct carrying *c, void (*run)(struct helper_job *), void (*done)(struct helper_job *))
{
    c->cs = model.cstore;
    c->job = (struct helper_job){.run = run, .done = done, .w = model.main};
    helper_submit(&c->job);
}

void
admin_config_export(struct admin_req *r)
{
    struct carrying *c = xcalloc(1, sizeof *c);
    c->r = r;
    carry(c, job_export, on_exported);
}

/* --- import ---------------------------------------------------------------------------------- */

static void
job_import(struct helper_job *job)
{
    struct carrying *c = container_of(job, struct carrying, job);

    c->rc = cstore_write_sync(c->cs, JOURNAL, c->journal, strlen(c->journal));
    if (c->rc == 0)
        c->rc = store_records(c->cs, &c->rs);
    if (c->rc == 0)
        c->rc = cstore_write_sync(c->cs, JOURNAL, NULL, 0);
}

static void
on_replaced(void *arg)
{
    struct carrying *c = arg;
    admin_ok(c->r, json_pack("{sI}", "records", (json_int_t)c->rs.n));
    carrying_free(c);
}

static void
on_imported(struct helper_job *job)
{
    struct carrying *c = container_of(job, struct carrying, job);

    if (c->rc < 0) {
        admin_fail(
            c->r, AE_INVALID,
            "the control store cannot be written: %s; what was begun is finished by the next "
            "start",
            strerror(-c->rc));
        carrying_free(c);
        return;
    }
    memcpy(model.seed, records_find(&c->rs, "host-seed")->data, sizeof model.seed);
    log_event(LL_NOTICE, LA_ADMIN, "import records=%zu", c->rs.n);
    apply_store_replace_all(on_replaced, c);
}

static void
on_counted(struct admin_req *r, json_t *sessions)
{
    struct carrying *c = r->data;
    bool force = json_is_true(json_object_get(r->args, "force"));

    if (admin_is_late(r)) {
        admin_ok(r, NULL); /* nobody waits for it any more: nothing is done */
    } else if (json_array_size(sessions) && !force) {
        const json_t *s = json_array_get(sessions, 0);
        admin_fail(r, AE_TARGET_ACTIVE,
                   "%zu sessions, of %s and others: their disks would become others",
                   json_array_size(sessions), json_string_value(json_object_get(s, "initiator")));
    } else if (json_is_true(json_object_get(r->args, "pretend"))) {
        admin_ok(r, json_pack("{sI}", "records", (json_int_t)c->rs.n));
    } else {
        carry(c, job_import, on_imported);
        return;
    }
    carrying_free(c);
}

void
admin_config_import(struct admin_req *r)
{
    struct carrying *c = xcalloc(1, sizeof *c);
    const json_t *state = json_object_get(r->args, "state");
    char err[256] = "";

    c->r = r;
    if (!records_read(state, &c->rs, err, sizeof err)) {
        admin_fail(r, AE_INVALID, "\"state\": %s", err);
        carrying_free(c);
        return;
    }
    c->journal = json_dumps(state, JSON_COMPACT);
    if (!c->journal || strlen(c->journal) > CSTORE_MAX) {
        admin_fail(r, AE_INVALID, "\"state\" holds more than %u bytes", CSTORE_MAX);
        carrying_free(c);
        return;
    }
    r->data = c;
    admin_sess_gather(r, NULL, on_counted);
}
