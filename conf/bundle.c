/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bundles: what a configuration is made of, read once, carried as JSON, read again.  A recording
 * source takes down what the reader asks the file system for; a bundle's own source answers the
 * same questions from what was taken down.  What is missing answers -ENODATA.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/secret.h"
#include "conf/priv.h"

#define BUNDLE_VERSION 1
#define ENTRIES_MAX    (CONF_FILES_MAX + 1 + CONF_SECRETS_MAX)
#define LISTS_MAX      CONF_FILES_MAX
#define PATH_BYTES     4096u
#define ERROR_MAX      4095 /* the greatest errno */

/* What reading one file gave. */
struct entry {
    char *path, *text; /* text NULL: error */
    size_t len;
    int error; /* -errno, or 0 */
    struct conf_stat st;
};

struct list {
    char *pattern, **names;
    size_t n;
    int error;
};

struct conf_bundle {
    char *name;
    enum conf_syntax syntax;
    bool in_memory; /* entries[0] is the text; else the root is a file */
    uid_t uid;      /* who read */
    struct entry *entries;
    size_t nentries;
    struct list *lists;
    size_t nlists;
    size_t bytes, listed; /* of all texts, names of all lists */
    size_t at,
        list_at; /* where to look next: questions come again in the order of the first time */
    bool full;   /* something was left out */
};

static struct conf_bundle *
bundle_new(const char *name, enum conf_syntax syntax, uid_t uid)
{
    struct conf_bundle *b = xcalloc(1, sizeof *b);
    b->name = xstrdup(name);
    b->syntax = syntax;
    b->uid = uid;
    return b;
}

void
conf_bundle_free(struct conf_bundle *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->nentries; i++) {
        free(b->entries[i].path);
        source_wipe_free(b->entries[i].text, b->entries[i].len);
    }
    for (size_t i = 0; i < b->nlists; i++) {
        free(b->lists[i].pattern);
        conf_names_free(b->lists[i].names, b->lists[i].n);
    }
    free(b->entries);
    free(b->lists);
    free(b->name);
    free(b);
}

const char *
conf_bundle_name(const struct conf_bundle *b)
{
    return b->name;
}

/* n is a power of two or 0: room for twice as many. */
static void *
room(void *v, size_t n, size_t size)
{
    return (n & (n - 1)) == 0 ? xrealloc(v, (n ? 2 * n : 1) * size) : v;
}

static struct entry *
add_entry(struct conf_bundle *b, const char *path)
{
    b->entries = room(b->entries, b->nentries, sizeof *b->entries);
    struct entry *e = &b->entries[b->nentries++];
    *e = (struct entry){.path = xstrdup(path)};
    return e;
}

static struct list *
add_list(struct conf_bundle *b, const char *pattern)
{
    b->lists = room(b->lists, b->nlists, sizeof *b->lists);
    struct list *l = &b->lists[b->nlists++];
    *l = (struct list){.pattern = xstrdup(pattern)};
    return l;
}

static struct entry *
find_entry(struct conf_bundle *b, const char *path)
{
    for (size_t i = 0; i < b->nentries; i++) {
        size_t k = (b->at + i) % b->nentries;
        if (strcmp(b->entries[k].path, path) == 0) {
            b->at = k + 1;
            return &b->entries[k];
        }
    }
    return NULL;
}

static struct list *
find_list(struct conf_bundle *b, const char *pattern)
{
    for (size_t i = 0; i < b->nlists; i++) {
        size_t k = (b->list_at + i) % b->nlists;
        if (strcmp(b->lists[k].pattern, pattern) == 0) {
            b->list_at = k + 1;
            return &b->lists[k];
        }
    }
    return NULL;
}

static char *
copy_text(const char *text, size_t len)
{
    char *t = xmalloc(len + 1);
    if (len)
        memcpy(t, text, len);
    t[len] = 0;
    return t;
}

/* --- a bundle as a source -------------------------------------------------------------------- */

static int
give_entry(const struct entry *e, size_t max, char **text, size_t *len, struct conf_stat *st)
{
    if (e->error)
        return e->error;
    if (e->len > max)
        return -EFBIG;
    *text = copy_text(e->text, e->len);
    *len = e->len;
    *st = e->st;
    return 0;
}

static int
give_list(const struct list *l, char ***names, size_t *n)
{
    if (l->error)
        return l->error;
    *names = xcalloc(l->n + 1, sizeof **names);
    for (*n = 0; *n < l->n; ++*n)
        (*names)[*n] = xstrdup(l->names[*n]);
    return 0;
}

static int
bundle_read(void *arg, const char *path, size_t max, char **text, size_t *len, struct conf_stat *st)
{
    const struct entry *e = find_entry(arg, path);
    return e ? give_entry(e, max, text, len, st) : -ENODATA;
}

static int
bundle_list(void *arg, const char *pattern, char ***names, size_t *n)
{
    const struct list *l = find_list(arg, pattern);
    return l ? give_list(l, names, n) : -ENODATA;
}

struct conf_source
bundle_source(struct conf_bundle *b)
{
    b->at = b->list_at = 0;
    return (struct conf_source){bundle_read, bundle_list, b, b->uid};
}

struct conf_raw *
bundle_raw(const struct conf_bundle *b, const struct conf_source *src, struct conf_report *r)
{
    if (b->in_memory)
        return raw_parse(b->name, b->syntax, b->entries[0].text, b->entries[0].len, r);
    return raw_read(src, b->name, b->syntax, r);
}

/* --- taking down ----------------------------------------------------------------------------- */

static int
record_read(void *arg, const char *path, size_t max, char **text, size_t *len, struct conf_stat *st)
{
    struct conf_bundle *b = arg;
    const struct conf_source files = conf_source_files();
    struct entry *e = find_entry(b, path);

    if (e)
        return give_entry(e, max, text, len, st);
    if (b->nentries == ENTRIES_MAX) {
        b->full = true;
        return -E2BIG;
    }
    e = add_entry(b, path);
    size_t left = CONF_BYTES_MAX - b->bytes;
    e->error = files.read(files.arg, path, max < left ? max : left, &e->text, &e->len, &e->st);
    if (e->error == -EFBIG && left < max)
        b->full = true;
    if (e->error == 0)
        b->bytes += e->len;
    return give_entry(e, max, text, len, st);
}

static int
record_list(void *arg, const char *pattern, char ***names, size_t *n)
{
    struct conf_bundle *b = arg;
    const struct conf_source files = conf_source_files();
    struct list *l = find_list(b, pattern);

    if (l)
        return give_list(l, names, n);
    if (b->nlists == LISTS_MAX) {
        b->full = true;
        return -E2BIG;
    }
    l = add_list(b, pattern);
    l->error = files.list(files.arg, pattern, &l->names, &l->n);
    b->listed += l->error == 0 ? l->n : 0;
    if (b->listed > CONF_LISTED_MAX)
        b->full = true;
    return give_list(l, names, n);
}

/* Reads and builds once, with nothing judged: all that is asked for is in the bundle then. */
static void
take_down(struct conf_bundle *b)
{
    const struct conf_source files = conf_source_files();
    const struct conf_source src = {record_read, record_list, b, files.uid};
    struct conf_report ignored;

    conf_report_init(&ignored);
    conf_free(build(bundle_raw(b, &src, &ignored), &src, NULL, &ignored));
    conf_report_fini(&ignored);
}

struct conf_bundle *
conf_bundle_read(const char *path, enum conf_syntax syntax, struct conf_report *r)
{
    struct conf_bundle *b = bundle_new(path, syntax, conf_source_files().uid);
    const struct conf_pos pos = {path, 0, 0};

    take_down(b);
    const struct entry *root = find_entry(b, path);
    if (root && root->error == 0 && !b->full)
        return b;
    if (b->full)
        conf_report_add(r, true, &pos,
                        "the configuration is more than %u MiB in %u files, or lists more than %u "
                        "names",
                        CONF_BYTES_MAX >> 20, CONF_FILES_MAX, CONF_LISTED_MAX);
    else
        conf_report_add(r, true, &pos, "cannot read the file: %s",
                        strerror(root ? -root->error : ENODATA));
    conf_bundle_free(b);
    return NULL;
}

struct conf_bundle *
conf_bundle_text(const char *name, enum conf_syntax syntax, const char *text, size_t len)
{
    struct conf_bundle *b = bundle_new(name, syntax, conf_source_files().uid);
    struct entry *e = add_entry(b, name);

    b->in_memory = true;
    e->text = copy_text(text, len);
    e->len = b->bytes = len;
    take_down(b);
    return b;
}

/* --- as JSON --------------------------------------------------------------------------------- */

/* Bytes as a text of Unicode, whatever they are. */
static json_t *
json_bytes(const char *p, size_t n)
{
    char *u = xmalloc(2 * n + 1);
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned c = (unsigned char)p[i];
        if (c == 0)
            c = 0x100;
        if (c < 0x80) {
            u[k++] = (char)c;
        } else {
            u[k++] = (char)(0xc0 | c >> 6);
            u[k++] = (char)(0x80 | (c & 0x3f));
        }
    }
    json_t *j = json_stringn_nocheck(u, k);
    source_wipe_free(u, k);
    return j;
}

/* The other way, with a NUL behind; NULL: not such a text, or more than max bytes. */
static char *
bytes_of(const json_t *j, size_t max, size_t *len)
{
    if (!json_is_string(j))
        return NULL;
    const char *u = json_string_value(j);
    size_t n = json_string_length(j), k = 0;
    if (n > 2 * max)
        return NULL;
    char *p = xmalloc(n + 1);
    for (size_t i = 0; i < n; i++) {
        unsigned c = (unsigned char)u[i];
        if (c >= 0x80 && i + 1 < n)
            c = (c & 0x1f) << 6 | ((unsigned char)u[++i] & 0x3f);
        else if (c >= 0x80)
            c = 0;
        if (c == 0 || c > 0x100 || k == max) {
            source_wipe_free(p, k);
            return NULL;
        }
        p[k++] = (char)(c & 0xff);
    }
    p[k] = 0;
    *len = k;
    return p;
}

static json_t *
json_text(const char *s)
{
    return json_bytes(s, strlen(s));
}

json_t *
conf_bundle_pack(const struct conf_bundle *b)
{
    json_t *files = json_array(), *lists = json_array();

    for (size_t i = 0; i < b->nentries; i++) {
        const struct entry *e = &b->entries[i];
        json_array_append_new(
            files, e->error
                       ? json_pack("{s:o, s:i}", "path", json_text(e->path), "error", -e->error)
                       : json_pack("{s:o, s:o, s:b, s:i, s:I, s:I}", "path", json_text(e->path),
                                   "text", json_bytes(e->text, e->len), "regular",
                                   (int)e->st.is_file, "mode", (int)e->st.mode, "uid",
                                   (json_int_t)e->st.uid, "gid", (json_int_t)e->st.gid));
    }
    for (size_t i = 0; i < b->nlists; i++) {
        const struct list *l = &b->lists[i];
        json_t *names = json_array();
        for (size_t k = 0; k < l->n; k++)
            json_array_append_new(names, json_text(l->names[k]));
        json_array_append_new(lists, json_pack("{s:o, s:o, s:i}", "pattern", json_text(l->pattern),
                                               "names", names, "error", -l->error));
    }
    return json_pack("{s:i, s:o, s:s, s:b, s:I, s:o, s:o}", "version", BUNDLE_VERSION, "name",
                     json_text(b->name), "syntax", conf_syntax_name(b->syntax), "memory",
                     (int)b->in_memory, "uid", (json_int_t)b->uid, "files", files, "lists", lists);
}

/* Whole numbers from 0 to max; false: it is none. */
static bool
get_uint(const json_t *o, const char *key, uint64_t max, uint64_t *out)
{
    const json_t *j = json_object_get(o, key);
    if (!json_is_integer(j) || json_integer_value(j) < 0 || (uint64_t)json_integer_value(j) > max)
        return false;
    *out = (uint64_t)json_integer_value(j);
    return true;
}

/* A path: text without NUL. */
static char *
get_path(const json_t *o, const char *key)
{
    size_t len = 0;
    char *p = bytes_of(json_object_get(o, key), PATH_BYTES, &len);
    if (p && (len == 0 || strlen(p) != len)) {
        free(p);
        return NULL;
    }
    return p;
}

/* NULL, or what is wrong. */
static const char *
unpack_file(struct conf_bundle *b, const json_t *o)
{
    uint64_t error = 0, mode, uid, gid;
    char *path = get_path(o, "path");

    if (!path)
        return "path";
    struct entry *e = add_entry(b, path);
    free(path);
    if (json_object_get(o, "error")) {
        if (!get_uint(o, "error", ERROR_MAX, &error) || error == 0)
            return "error";
        e->error = -(int)error;
        return NULL;
    }
    if (!get_uint(o, "mode", 07777, &mode) || !get_uint(o, "uid", UINT32_MAX, &uid) ||
        !get_uint(o, "gid", UINT32_MAX, &gid) || !json_is_boolean(json_object_get(o, "regular")))
        return "mode, uid, gid or regular";
    e->st = (struct conf_stat){json_is_true(json_object_get(o, "regular")), (unsigned)mode,
                               (uid_t)uid, (gid_t)gid};
    e->text = bytes_of(json_object_get(o, "text"), CONF_BYTES_MAX - b->bytes, &e->len);
    if (!e->text)
        return "text";
    b->bytes += e->len;
    return NULL;
}

static const char *
unpack_list(struct conf_bundle *b, const json_t *o)
{
    const json_t *names = json_object_get(o, "names");
    uint64_t error;
    char *pattern = get_path(o, "pattern");

    if (!pattern)
        return "pattern";
    struct list *l = add_list(b, pattern);
    free(pattern);
    if (!get_uint(o, "error", ERROR_MAX, &error))
        return "error";
    l->error = -(int)error;
    size_t n = json_array_size(names);
    if (!json_is_array(names) || n > CONF_LISTED_MAX - b->listed)
        return "names";
    l->names = xcalloc(n + 1, sizeof *l->names);
    for (size_t i = 0; i < n; i++) {
        size_t len = 0;
        char *name = bytes_of(json_array_get(names, i), PATH_BYTES, &len);
        if (!name || strlen(name) != len) {
            free(name);
            return "names";
        }
        l->names[l->n++] = name;
        b->listed++;
    }
    return NULL;
}

static const char *
unpack_head(struct conf_bundle *b, const json_t *json)
{
    const char *syntax = json_string_value(json_object_get(json, "syntax"));
    uint64_t v;

    if (!get_uint(json, "version", BUNDLE_VERSION, &v) || v != BUNDLE_VERSION)
        return "version";
    if (!syntax || !conf_syntax_find(syntax, &b->syntax))
        return "syntax";
    if (!json_is_boolean(json_object_get(json, "memory")))
        return "memory";
    b->in_memory = json_is_true(json_object_get(json, "memory"));
    if (!get_uint(json, "uid", UINT32_MAX, &v))
        return "uid";
    b->uid = (uid_t)v;
    return NULL;
}

/* An array of at most max; each by `one`. NULL, or what is wrong, in buf. */
static const char *
unpack_array(struct conf_bundle *b, const json_t *json, const char *key, size_t max,
             const char *(*one)(struct conf_bundle *, const json_t *), char *buf, size_t size)
{
    const json_t *v = json_object_get(json, key);

    if (!json_is_array(v) || json_array_size(v) > max) {
        snprintf(buf, size, "%s: want an array of at most %zu", key, max);
        return buf;
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *what = one(b, json_array_get(v, i));
        if (what) {
            snprintf(buf, size, "%s[%zu]: %s", key, i, what);
            return buf;
        }
    }
    return NULL;
}

struct conf_bundle *
conf_bundle_unpack(const json_t *json, char *err, size_t errsize)
{
    char buf[128];
    char *name = json_is_object(json) ? get_path(json, "name") : NULL;
    const char *what = "name";
    struct conf_bundle *b = NULL;

    if (name) {
        b = bundle_new(name, CONF_SYNTAX_AUTO, 0);
        what = unpack_head(b, json);
        if (!what)
            what = unpack_array(b, json, "files", ENTRIES_MAX, unpack_file, buf, sizeof buf);
        if (!what)
            what = unpack_array(b, json, "lists", LISTS_MAX, unpack_list, buf, sizeof buf);
        if (!what && b->in_memory && (b->nentries == 0 || b->entries[0].error))
            what = "files: a text in memory is the first of them";
        free(name);
    }
    if (!what)
        return b;
    snprintf(err, errsize, "this is no configuration in a bundle, or too much of it: %s", what);
    conf_bundle_free(b);
    return NULL;
}
