/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iscsi-load: a load generator and data checker for iSCSI targets, built on
 * the public asynchronous API of libiscsi.
 *
 * One thread drives any number of sessions (libiscsi has one connection per
 * session) from one poll loop.  Every command's SCSI status and residual are
 * checked.  With --verify every block carries a pattern derived from its LBA
 * and a generation number, the program remembers the generation it last saw
 * acknowledged for each slot, and any lost, stale, torn or misplaced block is
 * counted; after the timed part the whole span is read back and checked.
 *
 * One JSON object goes to stdout.  Exit status: 0 clean, 1 errors were seen,
 * 2 usage or login, 3 the target stopped answering.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#ifndef SCSI_STATUS_TASK_SET_FULL
#define SCSI_STATUS_TASK_SET_FULL 0x28
#endif

/* Latency histogram: 64 linear steps inside each power of two of nanoseconds,
 * so a bucket is at most 1.6 % wide. */
#define HSUB     64
#define HBUCKETS (HSUB * 48)

enum phase { PH_FILL, PH_TIMED, PH_READBACK, PH_DONE };

struct worker;
struct session;

struct io {
    struct session *s;
    uint64_t slot;
    uint64_t t_submit;
    uint32_t gen; /* generation being written */
    bool is_write;
    unsigned char *buf;
    struct scsi_iovec iov;
    struct io *next_free;
};

struct session {
    struct worker *w;
    struct iscsi_context *ctx;
    int lun;
    unsigned inflight;
    uint64_t seq; /* next slot in sequential mode */
    struct io *ios, *free;
    bool dead;
};

struct worker {
    pthread_t thr;
    unsigned id;
    struct session *ss;
    struct pollfd *pfds;
    unsigned n;
    unsigned inflight;
    enum phase phase;
    uint64_t slot0, nslots; /* slots this worker may touch */
    uint64_t cursor;        /* fill and read-back position */
    uint32_t *gen;          /* acknowledged generation of each own slot */
    uint8_t *busy;
    uint64_t rng;
    uint64_t t_from, t_to; /* measured window */
    bool stop;
    bool stalled;
    uint64_t ops, rd, wr, bytes;
    uint64_t all_ops;
    uint64_t errors, retries, bad_blocks, bad_slots, checked;
    uint64_t lat_sum, lat_max;
    uint64_t *hist;
    char first_error[256];
};

static struct {
    const char *url;
    const char *initiator;
    uint64_t bs, span;
    unsigned qd, sessions, threads;
    unsigned read_pct;
    bool random, verify, fill, fua;
    double secs, warm;
    uint64_t seed;
    int digest;
    unsigned stall_s;
} o = {
    .initiator = "iqn.2026-01.test.bench:load",
    .bs = 4096,
    .qd = 1,
    .sessions = 1,
    .threads = 1,
    .read_pct = 100,
    .random = true,
    .secs = 5,
    .warm = 0.3,
    .seed = 1,
    .stall_s = 15,
};

static uint32_t lbs; /* logical block size */
static uint64_t nblocks;
static uint64_t slot_blocks;
static pthread_barrier_t barrier;

static inline uint64_t
now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline uint64_t
rnd(struct worker *w)
{
    uint64_t x = w->rng;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    w->rng = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

static inline unsigned
hidx(uint64_t ns)
{
    unsigned e;
    if (ns < HSUB)
        return (unsigned)ns;
    e = 63u - (unsigned)__builtin_clzll(ns) - 6u;
    unsigned i = (e + 1) * HSUB + (unsigned)((ns >> e) & (HSUB - 1));
    return i < HBUCKETS ? i : HBUCKETS - 1;
}

static uint64_t
hval(unsigned i) /* middle of a bucket */
{
    if (i < HSUB)
        return i;
    unsigned e = i / HSUB - 1;
    return ((uint64_t)(HSUB + i % HSUB) << e) + ((UINT64_C(1) << e) >> 1);
}

/* --- the pattern ------------------------------------------------------- */

static inline uint64_t
mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Word 0 is the LBA, word 1 the generation, the rest follows from both. */
static void
stamp(unsigned char *p, uint64_t lba, uint32_t gen)
{
    for (uint64_t b = 0; b < slot_blocks; b++, lba++, p += lbs) {
        uint64_t k = mix(lba * 2 + 1) ^ mix(((uint64_t)gen << 32) ^ o.seed);
        uint64_t v = lba, g = gen;
        memcpy(p, &v, 8);
        memcpy(p + 8, &g, 8);
        for (uint32_t i = 16; i < lbs; i += 8) {
            v = k + i * UINT64_C(0x9e3779b97f4a7c15);
            memcpy(p + i, &v, 8);
        }
    }
}

static unsigned
check(struct worker *w, const unsigned char *p, uint64_t lba, uint32_t gen)
{
    unsigned bad = 0;
    for (uint64_t b = 0; b < slot_blocks; b++, lba++, p += lbs) {
        uint64_t k = mix(lba * 2 + 1) ^ mix(((uint64_t)gen << 32) ^ o.seed);
        uint64_t v, g, diff;
        memcpy(&v, p, 8);
        memcpy(&g, p + 8, 8);
        diff = (v ^ lba) | (g ^ gen);
        for (uint32_t i = 16; i < lbs; i += 8) {
            uint64_t x;
            memcpy(&x, p + i, 8);
            diff |= x ^ (k + i * UINT64_C(0x9e3779b97f4a7c15));
        }
        if (diff) {
            if (!bad && !w->first_error[0])
                snprintf(w->first_error, sizeof w->first_error,
                         "data: lba %" PRIu64 " generation %u expected, found lba %" PRIu64
                         " generation %" PRIu64,
                         lba, gen, v, g);
            bad++;
        }
    }
    return bad;
}

/* --- the engine -------------------------------------------------------- */

static void done(struct iscsi_context *ctx, int status, void *data, void *priv);

static void
fail(struct worker *w, struct session *s, const char *what, int status, const struct scsi_task *t)
{
    w->errors++;
    if (w->first_error[0])
        return;
    snprintf(w->first_error, sizeof w->first_error, "%s: status 0x%x sense %x/%04x: %.120s", what,
             (unsigned)status, t ? (unsigned)t->sense.key : 0,
             t ? (unsigned)t->sense.ascq & 0xffff : 0, iscsi_get_error(s->ctx));
}

static void
issue(struct io *io)
{
    struct session *s = io->s;
    struct scsi_task *t;
    uint64_t lba = io->slot * slot_blocks;

    if (io->is_write)
        t = iscsi_write16_task(s->ctx, s->lun, lba, io->buf, (uint32_t)o.bs, (int)lbs, 0, 0, o.fua,
                               0, 0, done, io);
    else
        t = iscsi_read16_iov_task(s->ctx, s->lun, lba, (uint32_t)o.bs, (int)lbs, 0, 0, 0, 0, 0,
                                  done, io, &io->iov, 1);
    if (!t) {
        fail(s->w, s, "submit", 0, NULL);
        s->dead = true;
        if (o.verify)
            s->w->busy[io->slot - s->w->slot0] = 0;
        io->next_free = s->free;
        s->free = io;
        return;
    }
    s->inflight++;
    s->w->inflight++;
}

/* Pick the next operation for a session; false when its phase has no more. */
static bool
next(struct session *s, uint64_t now)
{
    struct worker *w = s->w;
    struct io *io = s->free;
    uint64_t i;

    if (!io || s->dead)
        return false;
    switch (w->phase) {
    case PH_FILL:
    case PH_READBACK:
        if (w->cursor >= w->nslots)
            return false;
        i = w->cursor++;
        io->is_write = w->phase == PH_FILL;
        break;
    case PH_TIMED:
        if (now >= w->t_to)
            return false;
        if (o.random) {
            i = (uint64_t)(((__uint128_t)rnd(w) * w->nslots) >> 64);
        } else {
            i = s->seq++;
            if (s->seq >= w->nslots)
                s->seq = 0;
        }
        io->is_write = o.read_pct == 0 || (o.read_pct < 100 && rnd(w) % 100 >= o.read_pct);
        if (o.verify) {
            /* One command per slot at a time, so that the content
             * is always exactly known. */
            uint64_t tries = 0;
            while (w->busy[i]) {
                if (++i >= w->nslots)
                    i = 0;
                if (++tries > w->nslots)
                    return false;
            }
        }
        break;
    default:
        return false;
    }
    s->free = io->next_free;
    io->slot = w->slot0 + i;
    io->t_submit = now;
    if (o.verify) {
        w->busy[i] = 1;
        if (io->is_write) {
            io->gen = w->gen[i] + 1;
            stamp(io->buf, io->slot * slot_blocks, io->gen);
        }
    }
    issue(io);
    return true;
}

static void
done(struct iscsi_context *ctx, int status, void *data, void *priv)
{
    struct scsi_task *t = data;
    struct io *io = priv;
    struct session *s = io->s;
    struct worker *w = s->w;
    uint64_t now = now_ns();

    (void)ctx;
    s->inflight--;
    w->inflight--;
    if (status == SCSI_STATUS_BUSY || status == SCSI_STATUS_TASK_SET_FULL ||
        (status == SCSI_STATUS_CHECK_CONDITION && t && t->sense.key == SCSI_SENSE_UNIT_ATTENTION)) {
        w->retries++;
        if (t)
            scsi_free_scsi_task(t);
        if (!w->stop && !s->dead)
            issue(io);
        return;
    }
    if (status != SCSI_STATUS_GOOD) {
        fail(w, s, io->is_write ? "write" : "read", status, t);
        if (status == SCSI_STATUS_CANCELLED || status == SCSI_STATUS_ERROR)
            s->dead = true;
    } else if (t->residual_status != SCSI_RESIDUAL_NO_RESIDUAL) {
        fail(w, s, "residual", (int)t->residual, t);
    } else {
        uint64_t i = io->slot - w->slot0;
        w->all_ops++;
        if (o.verify && io->is_write) {
            w->gen[i] = io->gen;
        } else if (o.verify) {
            unsigned bad = check(w, io->buf, io->slot * slot_blocks, w->gen[i]);
            w->checked++;
            w->bad_blocks += bad;
            w->bad_slots += bad != 0;
        }
        if (w->phase == PH_TIMED && now >= w->t_from && now < w->t_to) {
            uint64_t lat = now - io->t_submit;
            w->ops++;
            if (io->is_write)
                w->wr++;
            else
                w->rd++;
            w->bytes += o.bs;
            w->lat_sum += lat;
            if (lat > w->lat_max)
                w->lat_max = lat;
            w->hist[hidx(lat)]++;
        }
    }
    if (t)
        scsi_free_scsi_task(t);
    if (o.verify)
        w->busy[io->slot - w->slot0] = 0;
    io->next_free = s->free;
    s->free = io;
    if (!w->stop)
        next(s, now);
}

static void
pump(struct worker *w)
{
    uint64_t last = now_ns();

    for (unsigned k = 0; k < w->n; k++)
        while (next(&w->ss[k], last))
            ;
    while (w->inflight) {
        uint64_t before = w->all_ops + w->retries + w->errors;
        bool any = false;
        for (unsigned k = 0; k < w->n; k++) {
            struct session *s = &w->ss[k];
            w->pfds[k].fd = s->dead ? -1 : iscsi_get_fd(s->ctx);
            w->pfds[k].events = (short)iscsi_which_events(s->ctx);
            any |= !s->dead;
        }
        if (!any)
            return;
        int r = poll(w->pfds, w->n, 1000);
        if (r < 0 && errno != EINTR)
            return;
        for (unsigned k = 0; r > 0 && k < w->n; k++) {
            struct session *s = &w->ss[k];
            if (!w->pfds[k].revents)
                continue;
            if (iscsi_service(s->ctx, w->pfds[k].revents) != 0) {
                if (!s->dead)
                    fail(w, s, "connection", 0, NULL);
                s->dead = true;
                continue;
            }
            /* Send what the completions queued without another poll. */
            if (iscsi_which_events(s->ctx) & POLLOUT && iscsi_service(s->ctx, POLLOUT) != 0) {
                if (!s->dead)
                    fail(w, s, "connection", 0, NULL);
                s->dead = true;
            }
        }
        uint64_t now = now_ns();
        if (w->all_ops + w->retries + w->errors != before)
            last = now;
        else if (now - last > (uint64_t)o.stall_s * 1000000000u) {
            w->stalled = true;
            snprintf(w->first_error, sizeof w->first_error,
                     "stalled: %u commands unanswered for %u s", w->inflight, o.stall_s);
            return;
        }
    }
}

static void *
worker(void *arg)
{
    struct worker *w = arg;

    if (o.verify || o.fill) {
        w->phase = PH_FILL;
        w->cursor = 0;
        pump(w);
    }
    pthread_barrier_wait(&barrier);
    uint64_t t0 = now_ns();
    w->t_from = t0 + (uint64_t)(o.warm * 1e9);
    w->t_to = w->t_from + (uint64_t)(o.secs * 1e9);
    w->phase = PH_TIMED;
    if (!w->stalled)
        pump(w);
    pthread_barrier_wait(&barrier);
    if (o.verify && !w->stalled) {
        w->phase = PH_READBACK;
        w->cursor = 0;
        pump(w);
    }
    w->phase = PH_DONE;
    w->stop = true;
    return NULL;
}

/* --- set-up ------------------------------------------------------------ */

static int
open_session(struct session *s, unsigned idx)
{
    char name[256];
    snprintf(name, sizeof name, "%s", o.initiator);
    s->ctx = iscsi_create_context(name);
    if (!s->ctx)
        return -1;
    struct iscsi_url *u = iscsi_parse_full_url(s->ctx, o.url);
    if (!u) {
        fprintf(stderr, "iscsi-load: %s\n", iscsi_get_error(s->ctx));
        return -1;
    }
    iscsi_set_targetname(s->ctx, u->target);
    iscsi_set_session_type(s->ctx, ISCSI_SESSION_NORMAL);
    iscsi_set_header_digest(s->ctx,
                            o.digest ? ISCSI_HEADER_DIGEST_CRC32C : ISCSI_HEADER_DIGEST_NONE);
    iscsi_set_isid_random(s->ctx, (uint32_t)getpid() & 0xffffff, idx & 0xffff);
    iscsi_set_noautoreconnect(s->ctx, 1);
    if (u->user[0])
        iscsi_set_initiator_username_pwd(s->ctx, u->user, u->passwd);
    s->lun = u->lun;
    int r = iscsi_full_connect_sync(s->ctx, u->portal, u->lun);
    if (r != 0)
        fprintf(stderr, "iscsi-load: login: %s\n", iscsi_get_error(s->ctx));
    iscsi_destroy_url(u);
    return r;
}

static int
probe(struct session *s)
{
    for (int i = 0; i < 10; i++) {
        struct scsi_task *t = iscsi_testunitready_sync(s->ctx, s->lun);
        int st = t ? t->status : -1;
        if (t)
            scsi_free_scsi_task(t);
        if (st == SCSI_STATUS_GOOD)
            break;
    }
    if (nblocks)
        return 0;
    struct scsi_task *t = iscsi_readcapacity16_sync(s->ctx, s->lun);
    struct scsi_readcapacity16 *rc;
    if (!t || t->status != SCSI_STATUS_GOOD || !(rc = scsi_datain_unmarshall(t))) {
        fprintf(stderr, "iscsi-load: READ CAPACITY(16): %s\n", iscsi_get_error(s->ctx));
        return -1;
    }
    lbs = rc->block_length;
    nblocks = rc->returned_lba + 1;
    scsi_free_scsi_task(t);
    return 0;
}

static uint64_t
size_arg(const char *a)
{
    char *e;
    uint64_t v = strtoull(a, &e, 0);
    switch (*e | 32) {
    case 'k':
        v <<= 10;
        break;
    case 'm':
        v <<= 20;
        break;
    case 'g':
        v <<= 30;
        break;
    }
    return v;
}

_Noreturn static void
usage(void)
{
    fputs("usage: iscsi-load [options] iscsi://[user%pass@]host[:port]/iqn/lun\n"
          "  -b, --bs SIZE        bytes per command (4k)\n"
          "  -q, --qd N           commands in flight per session (1)\n"
          "  -s, --sessions N     sessions, one connection each (1)\n"
          "  -T, --threads N      threads; sessions are dealt out to them (1)\n"
          "  -r, --read PCT       percentage of reads (100)\n"
          "  -p, --pattern P      rand or seq (rand)\n"
          "  -t, --time SECS      measured seconds (5)\n"
          "  -w, --warmup SECS    unmeasured seconds before that (0.3)\n"
          "  -S, --span SIZE      use only the first SIZE bytes (all; 64m with --verify)\n"
          "  -v, --verify         stamp, check, and read everything back at the end\n"
          "  -f, --fill           write the span once before measuring\n"
          "  -F, --fua            set FUA on writes\n"
          "  -d, --digest         ask for CRC32C header digests\n"
          "  -i, --initiator IQN  initiator name\n"
          "  -k, --stall SECS     give up after this long without an answer (15)\n"
          "      --seed N         random seed (1)\n",
          stderr);
    exit(2);
}

static unsigned
number_arg(const char *text)
{
    char *end;
    unsigned long v = strtoul(text, &end, 10);
    if (end == text || *end || v > 1u << 20)
        usage();
    return (unsigned)v;
}

static double
seconds_arg(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || v < 0)
        usage();
    return v;
}

static void
option(int c)
{
    switch (c) {
    case 'b':
        o.bs = size_arg(optarg);
        break;
    case 'q':
        o.qd = number_arg(optarg);
        break;
    case 's':
        o.sessions = number_arg(optarg);
        break;
    case 'T':
        o.threads = number_arg(optarg);
        break;
    case 'r':
        o.read_pct = number_arg(optarg);
        break;
    case 'p':
        if (strcmp(optarg, "rand") && strcmp(optarg, "seq"))
            usage();
        o.random = optarg[0] == 'r';
        break;
    case 't':
        o.secs = seconds_arg(optarg);
        break;
    case 'w':
        o.warm = seconds_arg(optarg);
        break;
    case 'S':
        o.span = size_arg(optarg);
        break;
    case 'v':
        o.verify = true;
        break;
    case 'f':
        o.fill = true;
        break;
    case 'F':
        o.fua = true;
        break;
    case 'd':
        o.digest = 1;
        break;
    case 'i':
        o.initiator = optarg;
        break;
    case 'k':
        o.stall_s = number_arg(optarg);
        break;
    case 1000:
        o.seed = strtoull(optarg, NULL, 0);
        break;
    default:
        usage();
    }
}

static void
arguments(int argc, char **argv)
{
    static const struct option lo[] = {{"bs", 1, 0, 'b'},
                                       {"qd", 1, 0, 'q'},
                                       {"sessions", 1, 0, 's'},
                                       {"threads", 1, 0, 'T'},
                                       {"read", 1, 0, 'r'},
                                       {"pattern", 1, 0, 'p'},
                                       {"time", 1, 0, 't'},
                                       {"warmup", 1, 0, 'w'},
                                       {"span", 1, 0, 'S'},
                                       {"verify", 0, 0, 'v'},
                                       {"fill", 0, 0, 'f'},
                                       {"fua", 0, 0, 'F'},
                                       {"digest", 0, 0, 'd'},
                                       {"initiator", 1, 0, 'i'},
                                       {"stall", 1, 0, 'k'},
                                       {"seed", 1, 0, 1000},
                                       {0, 0, 0, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "b:q:s:T:r:p:t:w:S:vfFdi:k:", lo, NULL)) != -1)
        option(c);
    if (optind + 1 != argc || !o.qd || !o.sessions || !o.threads || !o.bs || o.read_pct > 100)
        usage();
    o.url = argv[optind];
    if (o.threads > o.sessions)
        o.threads = o.sessions;
}

/* The commands of one session; -1 without memory. */
static int
session_ios(struct worker *w, struct session *s)
{
    s->ios = calloc(o.qd, sizeof *s->ios);
    if (!s->ios)
        return -1;
    for (unsigned q = 0; q < o.qd; q++) {
        struct io *io = &s->ios[q];
        io->s = s;
        if (posix_memalign((void **)&io->buf, 4096, o.bs))
            return -1;
        for (uint64_t b = 0; b < o.bs; b += 8) {
            uint64_t v = rnd(w);
            memcpy(io->buf + b, &v, 8);
        }
        io->iov.iov_base = io->buf;
        io->iov.iov_len = o.bs;
        io->next_free = s->free;
        s->free = io;
    }
    return 0;
}

/* Deals sessions and slots out. Threads share nothing: each owns a contiguous part. */
static int
worker_init(struct worker *w, unsigned i, struct session *ss, struct pollfd *pf, uint64_t slots)
{
    w->id = i;
    w->n = o.sessions / o.threads + (i < o.sessions % o.threads);
    w->ss = ss;
    w->pfds = pf;
    w->slot0 = slots * i / o.threads;
    w->nslots = slots * (i + 1) / o.threads - w->slot0;
    w->rng = mix(o.seed * 1000 + i) | 1;
    w->hist = calloc(HBUCKETS, sizeof *w->hist);
    if (!w->hist)
        return -1;
    if (o.verify) {
        w->gen = calloc(w->nslots, sizeof *w->gen);
        w->busy = calloc(w->nslots, 1);
        if (!w->gen || !w->busy)
            return -1;
    }
    for (unsigned k = 0; k < w->n; k++) {
        w->ss[k].w = w;
        w->ss[k].seq = w->nslots * k / w->n;
        if (session_ios(w, &w->ss[k]))
            return -1;
    }
    return 0;
}

/* Opens the sessions and returns the slots to use; 0 and a message when it cannot be. */
static uint64_t
open_all(struct session *ss)
{
    for (unsigned i = 0; i < o.sessions; i++)
        if (open_session(&ss[i], i) || probe(&ss[i]))
            return 0;
    if (lbs < 16 || o.bs % lbs) {
        fprintf(stderr, "iscsi-load: block size of the unit is %u\n", lbs);
        return 0;
    }
    slot_blocks = o.bs / lbs;
    if (o.verify && !o.span)
        o.span = 64u << 20;
    uint64_t slots = nblocks / slot_blocks;
    if (o.span && o.span / o.bs < slots)
        slots = o.span / o.bs;
    if (slots < (uint64_t)o.threads * (o.verify ? o.qd * o.sessions : 1)) {
        fprintf(stderr, "iscsi-load: span too small\n");
        return 0;
    }
    return slots;
}

static void
add_up(struct worker *sum, const struct worker *w)
{
    sum->ops += w->ops;
    sum->rd += w->rd;
    sum->wr += w->wr;
    sum->bytes += w->bytes;
    sum->errors += w->errors;
    sum->retries += w->retries;
    sum->bad_blocks += w->bad_blocks;
    sum->bad_slots += w->bad_slots;
    sum->checked += w->checked;
    sum->lat_sum += w->lat_sum;
    sum->stalled |= w->stalled;
    sum->all_ops += w->all_ops;
    if (w->lat_max > sum->lat_max)
        sum->lat_max = w->lat_max;
    if (w->first_error[0] && !sum->first_error[0])
        memcpy(sum->first_error, w->first_error, sizeof sum->first_error);
    for (unsigned b = 0; b < HBUCKETS; b++)
        sum->hist[b] += w->hist[b];
}

static void
report(struct worker *sum)
{
    double pct[3] = {0}, want[3] = {0.50, 0.99, 0.999};
    uint64_t acc = 0;
    for (unsigned b = 0, k = 0; b < HBUCKETS && k < 3; b++) {
        acc += sum->hist[b];
        while (k < 3 && sum->ops && (double)acc >= want[k] * (double)sum->ops)
            pct[k++] = (double)hval(b) / 1000.0;
    }
    struct rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    for (char *p = sum->first_error; *p; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < 32)
            *p = ' ';
    printf("{\"bs\":%" PRIu64 ",\"qd\":%u,\"sessions\":%u,\"threads\":%u,\"read_pct\":%u,"
           "\"pattern\":\"%s\",\"secs\":%.3f,\"ops\":%" PRIu64 ",\"iops\":%.1f,"
           "\"MBps\":%.2f,\"lat_us\":{\"mean\":%.1f,\"p50\":%.1f,\"p99\":%.1f,"
           "\"p99.9\":%.1f,\"max\":%.1f},\"reads\":%" PRIu64 ",\"writes\":%" PRIu64
           ",\"total_ops\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"retries\":%" PRIu64
           ",\"verify\":%s,\"slots_checked\":%" PRIu64 ",\"bad_slots\":%" PRIu64
           ",\"bad_blocks\":%" PRIu64 ",\"stalled\":%s,\"client_cpu_s\":%.2f,"
           "\"first_error\":\"%s\"}\n",
           o.bs, o.qd, o.sessions, o.threads, o.read_pct, o.random ? "rand" : "seq", o.secs,
           sum->ops, (double)sum->ops / o.secs, (double)sum->bytes / o.secs / 1e6,
           sum->ops ? (double)sum->lat_sum / (double)sum->ops / 1000.0 : 0.0, pct[0], pct[1],
           pct[2], (double)sum->lat_max / 1000.0, sum->rd, sum->wr, sum->all_ops, sum->errors,
           sum->retries, o.verify ? "true" : "false", sum->checked, sum->bad_slots, sum->bad_blocks,
           sum->stalled ? "true" : "false",
           (double)ru.ru_utime.tv_sec + (double)ru.ru_utime.tv_usec / 1e6 +
               (double)ru.ru_stime.tv_sec + (double)ru.ru_stime.tv_usec / 1e6,
           sum->first_error);
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    arguments(argc, argv);
    struct session *ss = calloc(o.sessions, sizeof *ss);
    struct worker *ws = calloc(o.threads, sizeof *ws);
    struct pollfd *pf = calloc(o.sessions, sizeof *pf);
    struct worker sum = {.hist = calloc(HBUCKETS, sizeof *sum.hist)};
    if (!ss || !ws || !pf || !sum.hist)
        return 2;
    uint64_t slots = open_all(ss);
    if (!slots)
        return 2;
    for (unsigned i = 0, at = 0; i < o.threads; at += ws[i].n, i++)
        if (worker_init(&ws[i], i, ss + at, pf + at, slots))
            return 2;
    pthread_barrier_init(&barrier, NULL, o.threads);
    for (unsigned i = 1; i < o.threads; i++)
        if (pthread_create(&ws[i].thr, NULL, worker, &ws[i]))
            return 2;
    worker(&ws[0]);
    for (unsigned i = 1; i < o.threads; i++)
        pthread_join(ws[i].thr, NULL);
    for (unsigned i = 0; i < o.threads; i++)
        add_up(&sum, &ws[i]);
    report(&sum);
    if (sum.stalled)
        _exit(3);
    for (unsigned i = 0; i < o.sessions; i++)
        if (!ss[i].dead)
            iscsi_logout_sync(ss[i].ctx);
    _exit(sum.errors || sum.bad_slots ? 1 : 0); /* the kernel takes the memory back */
}
