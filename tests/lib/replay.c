/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * replay: makes, from the log of the `record` layer and the store's image from before, one image
 * that a loss of power could have left behind.  backends/record.h has the format and the rules.
 *
 *   replay LOG BASE OUT [--cut SEQ] [--seed S]   power is lost before record SEQ (default: after
 *                                                the last); the seed chooses among what is legal;
 *                                                prints ns=TIME of the last record before the cut
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
    int log;
    uint64_t nrec; /* whole records in the log */
    struct op *ops;
    uint32_t nops;
    uint32_t *op_of; /* by seq of the SUBMIT */
    struct touch *touches;
    size_t ntouches;
    uint64_t seed, cut;
    uint64_t last_ns; /* when the last record before the cut was written */
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
    r->ops = grow(r->ops, r->nops + 1u, sizeof(*r->ops));
    r->op_of[rec->seq] = r->nops;
    r->ops[r->nops++] = op;
}

static void
take(struct replay *r, const struct record *rec, uint64_t data)
{
    switch (rec->kind) {
    case RECORD_OPEN:
        for (uint32_t i = 0; i < r->nops; i++) {
            if (r->ops[i].done == UINT64_MAX)
                r->ops[i].done = rec->seq;
        }
        break;
    case RECORD_SUBMIT:
        take_submit(r, rec, data);
        break;
    case RECORD_DONE:
        if (rec->ref >= rec->seq || r->op_of[rec->ref] == UINT32_MAX)
            die("record %" PRIu64 ": ends nothing", rec->seq);
        r->ops[r->op_of[rec->ref]].done = rec->seq;
        r->ops[r->op_of[rec->ref]].is_ok = rec->res == 0;
        break;
    default:
        die("record %" PRIu64 ": kind %u", rec->seq, rec->kind);
    }
}

/* All whole records; those before the cut are taken. */
static void
load(struct replay *r, const char *path)
{
    struct record rec;
    struct stat st;
    uint64_t at = 0;
    r->log = open(path, O_RDONLY | O_CLOEXEC);
    if (r->log < 0 || fstat(r->log, &st) != 0)
        die("%s: %s", path, strerror(errno));
    while (pread(r->log, &rec, sizeof(rec), (off_t)at) == (ssize_t)sizeof(rec)) {
        if (rec.magic != RECORD_MAGIC || rec.seq != r->nrec)
            die("%s: no record at %" PRIu64, path, at);
        if (rec.data_len > (uint64_t)st.st_size - at - sizeof(rec))
            break; /* torn by a kill */
        r->op_of = grow(r->op_of, r->nrec + 1, sizeof(*r->op_of));
        r->op_of[r->nrec++] = UINT32_MAX;
        if (rec.seq < r->cut) {
            take(r, &rec, at + sizeof(rec));
            r->last_ns = rec.ns;
        }
        at += sizeof(rec) + rec.data_len;
    }
}

/* --- the rules ------------------------------------------------------------------------------- */

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
    for (uint32_t i = 0; i < r->nops; i++)
        n += r->ops[i].is_flush ? 0 : r->ops[i].len / RECORD_SECTOR;
    r->touches = grow(NULL, n + 1, sizeof(*r->touches));
    for (uint32_t i = 0; i < r->nops; i++) {
        const struct op *op = &r->ops[i];
        for (uint64_t s = 0; !op->is_flush && s < op->len / RECORD_SECTOR; s++)
            r->touches[r->ntouches++] =
                (struct touch){.sector = op->offset / RECORD_SECTOR + s, .op = i};
    }
}

static int
cmp_touch(const void *a, const void *b)
{
    const struct touch *x = a, *y = b;
    if (x->sector != y->sector)
        return x->sector < y->sector ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
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
put_sector(const struct replay *r, int out, uint64_t sector, const struct op *op)
{
    char buf[RECORD_SECTOR] = {0};
    uint64_t at = sector * RECORD_SECTOR;
    if (op->data != 0 && pread(r->log, buf, sizeof(buf), (off_t)(op->data + at - op->offset)) !=
                             (ssize_t)sizeof(buf))
        die("the log: %s", strerror(errno));
    if (pwrite(out, buf, sizeof(buf), (off_t)at) != (ssize_t)sizeof(buf))
        die("the image: %s", strerror(errno));
}

static void
make_image(struct replay *r, const char *base, const char *path)
{
    int out = copy_base(base, path);
    mark_durable(r);
    list_touches(r);
    qsort(r->touches, r->ntouches, sizeof(*r->touches), cmp_touch);
    for (size_t i = 0, n; i < r->ntouches; i += n) {
        for (n = 1; i + n < r->ntouches && r->touches[i + n].sector == r->touches[i].sector;)
            n++;
        long k = choose(r, &r->touches[i], (long)n);
        if (k >= 0)
            put_sector(r, out, r->touches[i].sector, &r->ops[r->touches[i + (size_t)k].op]);
    }
    if (close(out) != 0)
        die("%s: %s", path, strerror(errno));
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

int
main(int argc, char **argv)
{
    struct replay r = {.cut = UINT64_MAX};
    if (argc == 3 && strcmp(argv[1], "--info") == 0) {
        r.cut = 0;
        load(&r, argv[2]);
        printf("%" PRIu64 "\n", r.nrec);
    } else {
        if (argc < 4 || argc % 2 != 0)
            die("usage: replay LOG BASE OUT [--cut SEQ] [--seed S] | replay --info LOG");
        for (int i = 4; i < argc; i += 2) {
            if (strcmp(argv[i], "--cut") == 0)
                r.cut = number(argv[i + 1]);
            else if (strcmp(argv[i], "--seed") == 0)
                r.seed = number(argv[i + 1]);
            else
                die("unknown option %s", argv[i]);
        }
        load(&r, argv[1]);
        make_image(&r, argv[2], argv[3]);
        printf("ns=%" PRIu64 "\n", r.last_ns);
    }
    close(r.log);
    free(r.ops);
    free(r.op_of);
    free(r.touches);
    return 0;
}
