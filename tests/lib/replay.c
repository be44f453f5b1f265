/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay: makes, from the log of the `record` layer and the store's image from before, one image
 * that a loss of power could have left behind.  backends/record.h has the format and the rules.
 *
 *   replay LOG BASE OUT [--cut SEQ] [--seed S]   power is lost before record SEQ (default: after
 *                                                the last); the seed chooses among what is legal;
 *                                                prints ns=TIME of the last record before the cut
 *   replay LOG BASE -                            one image for each line `SEQ SEED OUT` of the
 *                                                standard input, and a line ns=TIME for each: the
 *                                                log is read once
 *   replay --info LOG                            prints the number of records
 *
 * The seed's remainder by 4 is the character of the image: 0 each sector on its own, 1 everything
 * arrived, 2 nothing but what had to, 3 each write as a whole or not at all.  So 1 and 2 show the
 * extremes and the rest what lies between.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/record.h"

/* A write, zero or discard; flushes only set `flushed`. */
struct op {
    uint64_t submit, done; /* done: UINT64_MAX, not before the cut */
    uint64_t offset, len;
    uint64_t data; /* where in the log; 0: zeros */
    bool is_flush, is_fua, is_ok, is_durable;
};

struct touch {
    uint64_t sector;
    uint32_t op;
};

struct replay {
    unsigned char *log; /* mapped */
    size_t log_len;
    uint64_t nrec;   /* whole records in the log */
    uint32_t *op_of; /* by seq of the SUBMIT */
    uint64_t *ns_of; /* by seq: when it was written */
    uint64_t room_rec;
    struct op *all;
    uint32_t nall, room_ops;
    struct touch *touches; /* of all ops, by sector, then op */
    size_t ntouches;
    /* Of one cut: what of them was submitted before it, as it stood then. */
    struct op *ops;
    uint32_t nops;
    uint64_t seed;
};

/* Sectors that follow one another, to be written at once. */
struct out {
    int fd;
    const char *path;
    uint64_t first, n; /* sectors */
    unsigned char buf[1 << 20];
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)fputs("replay: ", stderr);
    (void)vfprintf(stderr, fmt, ap);
    (void)fputc('\n', stderr);
    va_end(ap);
    exit(2);
}

static void *
grow(void *p, size_t n, size_t size)
{
    p = reallocarray(p, n, size);
    if (p == NULL)
        die("out of memory");
    return p;
}

/* A good mix of two numbers (the finaliser of splitmix64): no state, so that an op's fate does
 * not depend on the order of questions. */
static uint64_t
mix(uint64_t seed, uint64_t v)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + v + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* --- reading the log ------------------------------------------------------------------------- */

static void
take_submit(struct replay *r, const struct record *rec, uint64_t data)
{
    struct op op = {.submit = rec->seq, .done = UINT64_MAX, .offset = rec->offset, .len = rec->len};
    op.data = rec->op == RECORD_WRITE ? data : 0;
    op.is_flush = rec->op == RECORD_FLUSH;
    op.is_fua = (rec->flags & RECORD_FUA) != 0;
    if (rec->offset % RECORD_SECTOR != 0 || rec->len % RECORD_SECTOR != 0)
        die("record %" PRIu64 ": no whole sectors", rec->seq);
    if (r->nall == r->room_ops) {
        r->room_ops = r->room_ops * 2 + 1024;
        r->all = grow(r->all, r->room_ops, sizeof(*r->all));
    }
    r->op_of[rec->seq] = r->nall;
    r->all[r->nall++] = op;
}

static void
take(struct replay *r, const struct record *rec, uint64_t data)
{
    switch (rec->kind) {
    case RECORD_OPEN:
        for (uint32_t i = 0; i < r->nall; i++) {
            if (r->all[i].done == UINT64_MAX)
                r->all[i].done = rec->seq;
        }
        break;
    case RECORD_SUBMIT:
        take_submit(r, rec, data);
        break;
    case RECORD_DONE:
        if (rec->ref >= rec->seq || r->op_of[rec->ref] == UINT32_MAX)
            die("record %" PRIu64 ": ends nothing", rec->seq);
        r->all[r->op_of[rec->ref]].done = rec->seq;
        r->all[r->op_of[rec->ref]].is_ok = rec->res == 0;
        break;
    default:
        die("record %" PRIu64 ": kind %u", rec->seq, rec->kind);
    }
}

static void
map_log(struct replay *r, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        die("%s: %s", path, strerror(errno));
    r->log_len = (size_t)st.st_size;
    r->log = r->log_len == 0 ? NULL : mmap(NULL, r->log_len, PROT_READ, MAP_PRIVATE, fd, 0);
    if (r->log == MAP_FAILED)
        die("%s: %s", path, strerror(errno));
    close(fd);
}

static void
room_for_record(struct replay *r)
{
    if (r->nrec < r->room_rec)
        return;
    r->room_rec = r->room_rec * 2 + 1024;
    r->op_of = grow(r->op_of, r->room_rec, sizeof(*r->op_of));
    r->ns_of = grow(r->ns_of, r->room_rec, sizeof(*r->ns_of));
}

/* All whole records. */
static void
load(struct replay *r, const char *path)
{
    struct record rec;
    size_t at = 0;
    map_log(r, path);
    while (r->log_len - at >= sizeof(rec)) {
        memcpy(&rec, r->log + at, sizeof(rec));
        if (rec.magic != RECORD_MAGIC || rec.seq != r->nrec)
            die("%s: no record at %zu", path, at);
        if (rec.data_len > r->log_len - at - sizeof(rec))
            break; /* torn by a kill */
        room_for_record(r);
        r->op_of[r->nrec] = UINT32_MAX;
        r->ns_of[r->nrec++] = rec.ns;
        take(r, &rec, at + sizeof(rec));
        at += sizeof(rec) + rec.data_len;
    }
}

/* --- the rules ------------------------------------------------------------------------------- */

/* The ops as they stood at the cut: what ended behind it had not ended. */
static void
ops_at(struct replay *r, uint64_t cut)
{
    r->ops = grow(r->ops, r->nall + 1u, sizeof(*r->ops));
    for (r->nops = 0; r->nops < r->nall && r->all[r->nops].submit < cut; r->nops++) {
        struct op *op = &r->ops[r->nops];
        *op = r->all[r->nops];
        if (op->done >= cut) {
            op->done = UINT64_MAX;
            op->is_ok = false;
        }
    }
}

static void
mark_durable(struct replay *r)
{
    uint64_t flushed = 0; /* submit of the last good flush */
    for (uint32_t i = 0; i < r->nops; i++) {
        if (r->ops[i].is_flush && r->ops[i].is_ok && r->ops[i].submit > flushed)
            flushed = r->ops[i].submit;
    }
    for (uint32_t i = 0; i < r->nops; i++) {
        struct op *op = &r->ops[i];
        op->is_durable = !op->is_flush && op->is_ok && (op->is_fua || op->done < flushed);
    }
}

static void
list_touches(struct replay *r)
{
    size_t n = 0;
    for (uint32_t i = 0; i < r->nall; i++)
        n += r->all[i].is_flush ? 0 : r->all[i].len / RECORD_SECTOR;
    r->touches = grow(NULL, n + 1, sizeof(*r->touches));
    for (uint32_t i = 0; i < r->nall; i++) {
        const struct op *op = &r->all[i];
        for (uint64_t s = 0; !op->is_flush && s < op->len / RECORD_SECTOR; s++)
            r->touches[r->ntouches++] =
                (struct touch){.sector = op->offset / RECORD_SECTOR + s, .op = i};
    }
}

/* By sector; those of one sector stay as they are, in the order of their ops. */
static void
sort_touches(struct replay *r)
{
    uint64_t all = 0; /* bits that a sector's number has */
    for (size_t i = 0; i < r->ntouches; i++)
        all |= r->touches[i].sector;
    struct touch *other = grow(NULL, r->ntouches + 1, sizeof(*other));
    for (unsigned shift = 0; shift < 64 && all >> shift != 0; shift += 16) {
        static size_t place[1 << 16];
        memset(place, 0, sizeof(place));
        for (size_t i = 0; i < r->ntouches; i++)
            place[(uint16_t)(r->touches[i].sector >> shift)]++;
        size_t sum = 0;
        for (size_t k = 0; k < sizeof(place) / sizeof(place[0]); k++) {
            size_t n = place[k];
            place[k] = sum;
            sum += n;
        }
        for (size_t i = 0; i < r->ntouches; i++)
            other[place[(uint16_t)(r->touches[i].sector >> shift)]++] = r->touches[i];
        struct touch *sorted = other;
        other = r->touches;
        r->touches = sorted;
    }
    free(other);
}

/* Which of the n touches of one sector its content is of; -1: what was there at first. */
static long
choose(const struct replay *r, const struct touch *t, long n)
{
    uint64_t last_durable = 0; /* submit of the last durable write */
    bool any_durable = false;
    for (long i = 0; i < n; i++) {
        const struct op *op = &r->ops[t[i].op];
        if (op->is_durable && op->submit >= last_durable) {
            last_durable = op->submit;
            any_durable = true;
        }
    }
    long legal = any_durable ? 0 : 1, pick = -1, newest = -1, oldest = -1;
    uint64_t character = r->seed % 4;
    for (long i = 0; i < n; i++) {
        const struct op *op = &r->ops[t[i].op];
        if (any_durable && op->done < last_durable)
            continue;
        legal++;
        newest = i;
        if (any_durable && op->submit == last_durable)
            oldest = i;
        bool taken = character == 0
                         ? mix(r->seed, t[i].sector << 20 ^ (uint64_t)i) % (uint64_t)legal == 0
                         : (op->is_durable || mix(r->seed, op->submit) % 2 == 0);
        if (taken)
            pick = i;
    }
    if (character == 1)
        return newest;
    if (character == 2)
        return oldest;
    return pick;
}

/* --- making the image ------------------------------------------------------------------------ */

static void
copy_range(int in, int out, off_t from, off_t to)
{
    static char buf[1 << 20];
    while (from < to) {
        size_t want = to - from < (off_t)sizeof(buf) ? (size_t)(to - from) : sizeof(buf);
        ssize_t n = pread(in, buf, want, from);
        if (n <= 0 || pwrite(out, buf, (size_t)n, from) != n)
            die("copy of the base: %s", n == 0 ? "it shrank" : strerror(errno));
        from += n;
    }
}

static int
copy_base(const char *base, const char *path)
{
    struct stat st;
    int in = open(base, O_RDONLY | O_CLOEXEC);
    if (in < 0 || fstat(in, &st) != 0)
        die("%s: %s", base, strerror(errno));
    int out = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out < 0 || ftruncate(out, st.st_size) != 0)
        die("%s: %s", path, strerror(errno));
    for (off_t at = 0; (at = lseek(in, at, SEEK_DATA)) >= 0;) {
        off_t end = lseek(in, at, SEEK_HOLE);
        copy_range(in, out, at, end);
        at = end;
    }
    close(in);
    return out;
}

static void
put_rest(struct out *o)
{
    size_t len = (size_t)o->n * RECORD_SECTOR;
    if (len != 0 && pwrite(o->fd, o->buf, len, (off_t)(o->first * RECORD_SECTOR)) != (ssize_t)len)
        die("%s: %s", o->path, strerror(errno));
    o->n = 0;
}

static void
put_sector(const struct replay *r, struct out *o, uint64_t sector, const struct op *op)
{
    if (o->n != 0 && (sector != o->first + o->n || o->n == sizeof(o->buf) / RECORD_SECTOR))
        put_rest(o);
    if (o->n == 0)
        o->first = sector;
    unsigned char *to = o->buf + o->n++ * RECORD_SECTOR;
    if (op->data != 0)
        memcpy(to, r->log + op->data + (sector * RECORD_SECTOR - op->offset), RECORD_SECTOR);
    else
        memset(to, 0, RECORD_SECTOR);
}

static void
make_image(struct replay *r, const char *base, const char *path, uint64_t cut)
{
    static struct out o;
    o.fd = copy_base(base, path);
    o.path = path;
    ops_at(r, cut);
    mark_durable(r);
    for (size_t i = 0, all; i < r->ntouches; i += all) {
        size_t n = 0; /* those before the cut: they come first */
        for (all = 0; i + all < r->ntouches && r->touches[i + all].sector == r->touches[i].sector;
             all++)
            n += r->touches[i + all].op < r->nops;
        long k = n == 0 ? -1 : choose(r, &r->touches[i], (long)n);
        if (k >= 0)
            put_sector(r, &o, r->touches[i].sector, &r->ops[r->touches[i + (size_t)k].op]);
    }
    put_rest(&o);
    if (close(o.fd) != 0)
        die("%s: %s", path, strerror(errno));
    uint64_t last = cut < r->nrec ? cut : r->nrec;
    printf("ns=%" PRIu64 "\n", last == 0 ? 0 : r->ns_of[last - 1]);
    (void)fflush(stdout); /* somebody waits for it */
}

static uint64_t
number(const char *text)
{
    char *end;
    errno = 0;
    uint64_t v = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || text[0] < '0' || text[0] > '9')
        die("'%s' is not a number", text);
    return v;
}

static void
make_many(struct replay *r, const char *base)
{
    char line[4500], path[4096];
    while (fgets(line, sizeof(line), stdin) != NULL) {
        uint64_t cut;
        if (sscanf(line, "%" SCNu64 " %" SCNu64 " %4095[^\n]", &cut, &r->seed, path) != 3)
            die("'%s' is not SEQ SEED OUT", line);
        make_image(r, base, path, cut);
    }
}

int
main(int argc, char **argv)
{
    struct replay r = {0};
    if (argc == 3 && strcmp(argv[1], "--info") == 0) {
        load(&r, argv[2]);
        printf("%" PRIu64 "\n", r.nrec);
    } else {
        uint64_t cut = UINT64_MAX;
        if (argc < 4 || argc % 2 != 0)
            die("usage: replay LOG BASE OUT [--cut SEQ] [--seed S] | replay LOG BASE - | "
                "replay --info LOG");
        for (int i = 4; i < argc; i += 2) {
            if (strcmp(argv[i], "--cut") == 0)
                cut = number(argv[i + 1]);
            else if (strcmp(argv[i], "--seed") == 0)
                r.seed = number(argv[i + 1]);
            else
                die("unknown option %s", argv[i]);
        }
        load(&r, argv[1]);
        list_touches(&r);
        sort_touches(&r);
        if (strcmp(argv[3], "-") == 0)
            make_many(&r, argv[2]);
        else
            make_image(&r, argv[2], argv[3], cut);
    }
    if (r.log != NULL)
        munmap(r.log, r.log_len);
    free(r.all);
    free(r.ops);
    free(r.op_of);
    free(r.ns_of);
    free(r.touches);
    return 0;
}
