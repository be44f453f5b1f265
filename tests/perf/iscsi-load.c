/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iscsi-load: a load generator and data checker for iSCSI targets.
 *
 * One thread drives any number of sessions from one poll loop, by one of two engines (load.h):
 * libiscsi's public asynchronous API, or an initiator of its own (raw), which costs far less and
 * knows data digests.  Every command's SCSI status and residual are checked.  With --verify every
 * block carries a pattern derived from its LBA and a generation number, the program remembers the
 * generation it last saw acknowledged for each slot, and any lost, stale, torn or misplaced block
 * is counted; after the timed part the whole span is read back and checked.
 *
 * The clock is read once a turn of the loop, when an answer has come: what one receive brings has
 * one time.
 *
 * One JSON object goes to stdout.  Exit status: 0 clean, 1 errors were seen, 2 usage or login,
 * 3 the target stopped answering.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tests/perf/load.h"

enum { GOOD = 0x00, CHECK_CONDITION = 0x02, BUSY = 0x08, TASK_SET_FULL = 0x28 };
#define UNIT_ATTENTION 6

/* Latency histogram: 64 linear steps inside each power of two of nanoseconds,
 * so a bucket is at most 1.6 % wide. */
#define HSUB     64
#define HBUCKETS (HSUB * 48)

struct options o = {
    .initiator = "iqn.2026-01.test.bench:load",
    .engine = &engine_libiscsi,
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

uint32_t lbs;
uint64_t slot_blocks;
static uint64_t nblocks;
static pthread_barrier_t barrier;

uint64_t
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

/* --- commands ---------------------------------------------------------- */

static void
fail(struct worker *w, const char *what, const struct outcome *r)
{
    w->errors++;
    if (!w->first_error[0])
        snprintf(w->first_error, sizeof w->first_error, "%s: status 0x%x sense %x/%04x: %.120s",
                 what, (unsigned)r->status, r->key, r->ascq, r->why ? r->why : "");
}

void
load_dead(struct session *s, const char *why)
{
    if (!s->dead && s->w)
        fail(s->w, "connection", &(struct outcome){.status = LOAD_LOST, .why = why});
    s->dead = true;
}

static void
give_back(struct io *io)
{
    if (o.verify)
        io->s->w->busy[io->slot - io->s->w->slot0] = 0;
    io->next_free = io->s->free;
    io->s->free = io;
}

static void
issue(struct io *io)
{
    struct session *s = io->s;

    if (!o.engine->issue(io)) {
        load_dead(s, "a command cannot be queued");
        give_back(io);
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
count(struct worker *w, const struct io *io)
{
    uint64_t lat = w->now - io->t_submit;

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
    if (w->now - w->t_last > w->gap_max)
        w->gap_max = w->now - w->t_last;
    w->t_last = w->now;
}

void
load_done(struct io *io, const struct outcome *r)
{
    struct session *s = io->s;
    struct worker *w = s->w;

    s->inflight--;
    w->inflight--;
    if (r->status == BUSY || r->status == TASK_SET_FULL ||
        (r->status == CHECK_CONDITION && r->key == UNIT_ATTENTION)) {
        w->retries++;
        if (!w->stop && !s->dead)
            issue(io);
        return;
    }
    if (r->status != GOOD) {
        fail(w, io->is_write ? "write" : "read", r);
        if (r->status == LOAD_LOST)
            s->dead = true;
    } else if (r->off_by) {
        fail(w, "residual", r);
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
        if (w->phase == PH_TIMED && w->now >= w->t_from && w->now < w->t_to)
            count(w, io);
    }
    if (o.think_ns && w->phase == PH_TIMED) {
        io->due = w->now + o.think_ns;
        io->next_free = NULL;
        *w->think_end = io;
        w->think_end = &io->next_free;
        return;
    }
    give_back(io);
    if (!w->stop)
        next(s, w->now);
}

/* Commands that have waited for --think make place for the next ones; tells how long until the
 * first of the others is due, at most a second. */
static uint64_t
think(struct worker *w)
{
    uint64_t now = w->think ? now_ns() : 0;

    while (w->think && w->think->due <= now) {
        struct io *io = w->think;
        struct session *s = io->s;
        w->think = io->next_free;
        if (!w->think)
            w->think_end = &w->think;
        give_back(io);
        next(s, now);
    }
    for (unsigned k = 0; now && k < w->n; k++)
        if (!w->ss[k].dead && o.engine->flush(&w->ss[k]))
            load_dead(&w->ss[k], "lost");
    return w->think && w->think->due - now < 1000000000u ? w->think->due - now : 1000000000u;
}

/* Waits for answers: by poll, or in the receive itself where there is but one socket to wait for.
 * False: no session lives, or poll fails. */
static bool
turn(struct worker *w)
{
    const struct engine *e = o.engine;
    uint64_t ns = think(w);
    struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
                          .tv_nsec = (long)(ns % 1000000000u)};
    bool any = false, wait = e->can_wait && w->n == 1 && !w->think;

    for (unsigned k = 0; k < w->n; k++) {
        struct session *s = &w->ss[k];
        w->pfds[k].fd = s->dead ? -1 : e->fd(s);
        w->pfds[k].events = s->dead ? 0 : e->events(s);
        w->pfds[k].revents = 0;
        any |= !s->dead;
    }
    if (!any)
        return false;
    wait &= w->pfds[0].events == POLLIN;
    if (wait)
        w->pfds[0].revents = POLLIN;
    else if (ppoll(w->pfds, w->n, &ts, NULL) < 0)
        return errno == EINTR;
    for (unsigned k = 0; k < w->n; k++) {
        struct session *s = &w->ss[k];
        if (w->pfds[k].revents && e->service(s, w->pfds[k].revents, wait))
            load_dead(s, "lost");
        /* What the completions queued leaves without another poll. */
        if (!s->dead && e->flush(s))
            load_dead(s, "lost");
    }
    return true;
}

static void
pump(struct worker *w)
{
    uint64_t last = now_ns();

    w->now = last;
    w->think_end = &w->think;
    for (unsigned k = 0; k < w->n; k++) {
        while (next(&w->ss[k], last))
            ;
        if (!w->ss[k].dead && o.engine->flush(&w->ss[k]))
            load_dead(&w->ss[k], "lost");
    }
    while (w->inflight || w->think) {
        uint64_t before = w->all_ops + w->retries + w->errors;
        if (!turn(w))
            return;
        if (w->all_ops + w->retries + w->errors != before) {
            last = w->now;
        } else if (now_ns() - last > (uint64_t)o.stall_s * 1000000000u) {
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
    w->t_last = w->t_from;
    w->phase = PH_TIMED;
    if (!w->stalled)
        pump(w);
    if (w->gap_max < w->t_to - w->t_last) /* nothing more until the end */
        w->gap_max = w->t_to - w->t_last;
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
          "  -d, --digest         CRC32C header digests\n"
          "  -D, --data-digest    CRC32C data digests (raw only)\n"
          "  -e, --engine E       libiscsi or raw: the initiator (libiscsi)\n"
          "      --think US       wait so long between an answer and the next command (0)\n"
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
        o.header_digest = true;
        break;
    case 'D':
        o.data_digest = true;
        break;
    case 'e':
        if (strcmp(optarg, "raw") && strcmp(optarg, "libiscsi"))
            usage();
        o.engine = optarg[0] == 'r' ? &engine_raw : &engine_libiscsi;
        break;
    case 'i':
        o.initiator = optarg;
        break;
    case 'k':
        o.stall_s = number_arg(optarg);
        break;
    case 1001:
        o.think_ns = 1000ull * number_arg(optarg);
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
    static const struct option lo[] = {{"bs", 1, 0, 'b'},       {"qd", 1, 0, 'q'},
                                       {"sessions", 1, 0, 's'}, {"threads", 1, 0, 'T'},
                                       {"read", 1, 0, 'r'},     {"pattern", 1, 0, 'p'},
                                       {"time", 1, 0, 't'},     {"warmup", 1, 0, 'w'},
                                       {"span", 1, 0, 'S'},     {"verify", 0, 0, 'v'},
                                       {"fill", 0, 0, 'f'},     {"fua", 0, 0, 'F'},
                                       {"digest", 0, 0, 'd'},   {"data-digest", 0, 0, 'D'},
                                       {"engine", 1, 0, 'e'},   {"initiator", 1, 0, 'i'},
                                       {"stall", 1, 0, 'k'},    {"seed", 1, 0, 1000},
                                       {"think", 1, 0, 1001},   {0, 0, 0, 0}};
    int c;
    while ((c = getopt_long(argc, argv, "b:q:s:T:r:p:t:w:S:vfFdDe:i:k:", lo, NULL)) != -1)
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
        io->itt = q;
        io->len = (uint32_t)o.bs;
        io->keep = o.verify;
        io->next_free = s->free;
        s->free = io;
    }
    return 0;
}

/* Deals sessions out. */
static void
deal(struct worker *w, unsigned i, struct session *ss, struct pollfd *pf)
{
    w->id = i;
    w->n = o.sessions / o.threads + (i < o.sessions % o.threads);
    w->ss = ss;
    w->pfds = pf;
    for (unsigned k = 0; k < w->n; k++)
        ss[k].w = w;
}

/* Deals slots out. Threads share nothing: each owns a contiguous part. */
static int
worker_init(struct worker *w, unsigned i, uint64_t slots)
{
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
        if (o.engine->open(&ss[i], i) || o.engine->capacity(&ss[i], &lbs, &nblocks))
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
    if (w->gap_max > sum->gap_max)
        sum->gap_max = w->gap_max;
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
    printf("{\"engine\":\"%s\",\"bs\":%" PRIu64
           ",\"qd\":%u,\"sessions\":%u,\"threads\":%u,\"read_pct\":%u,"
           "\"pattern\":\"%s\",\"secs\":%.3f,\"ops\":%" PRIu64 ",\"iops\":%.1f,"
           "\"MBps\":%.2f,\"lat_us\":{\"mean\":%.1f,\"p50\":%.1f,\"p99\":%.1f,"
           "\"p99.9\":%.1f,\"max\":%.1f},\"gap_us\":%.1f,\"reads\":%" PRIu64 ",\"writes\":%" PRIu64
           ",\"total_ops\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"retries\":%" PRIu64
           ",\"verify\":%s,\"slots_checked\":%" PRIu64 ",\"bad_slots\":%" PRIu64
           ",\"bad_blocks\":%" PRIu64 ",\"stalled\":%s,\"client_cpu_s\":%.2f,"
           "\"first_error\":\"%s\"}\n",
           o.engine->name, o.bs, o.qd, o.sessions, o.threads, o.read_pct, o.random ? "rand" : "seq",
           o.secs, sum->ops, (double)sum->ops / o.secs, (double)sum->bytes / o.secs / 1e6,
           sum->ops ? (double)sum->lat_sum / (double)sum->ops / 1000.0 : 0.0, pct[0], pct[1],
           pct[2], (double)sum->lat_max / 1000.0, (double)sum->gap_max / 1000.0, sum->rd, sum->wr,
           sum->all_ops, sum->errors, sum->retries, o.verify ? "true" : "false", sum->checked,
           sum->bad_slots, sum->bad_blocks, sum->stalled ? "true" : "false",
           (double)ru.ru_utime.tv_sec + (double)ru.ru_utime.tv_usec / 1e6 +
               (double)ru.ru_stime.tv_sec + (double)ru.ru_stime.tv_usec / 1e6,
           sum->first_error);
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    arguments(argc, argv);
    prctl(PR_SET_TIMERSLACK, 1ul); /* --think is as exact as the machine allows */
    struct session *ss = calloc(o.sessions, sizeof *ss);
    struct worker *ws = calloc(o.threads, sizeof *ws);
    struct pollfd *pf = calloc(o.sessions, sizeof *pf);
    struct worker sum = {.hist = calloc(HBUCKETS, sizeof *sum.hist)};
    if (!ss || !ws || !pf || !sum.hist)
        return 2;
    for (unsigned i = 0, at = 0; i < o.threads; at += ws[i].n, i++)
        deal(&ws[i], i, ss + at, pf + at);
    uint64_t slots = open_all(ss);
    if (!slots)
        return 2;
    for (unsigned i = 0; i < o.threads; i++)
        if (worker_init(&ws[i], i, slots))
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
            o.engine->close(&ss[i]);
    _exit(sum.errors || sum.bad_slots ? 1 : 0); /* the kernel takes the memory back */
}
