/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * promise run URL JOURNAL SECONDS SEED [BLOCKS]
 * promise check JOURNAL IMAGE CUT_NS
 * promise check JOURNAL -             for each line `CUT_NS IMAGE` of the standard input
 * promise final JOURNAL URL
 *
 * The client's side of the power-loss proof.  `run` keeps 16 commands in flight: writes of 1..8
 * blocks, a third with FUA, reads that check, SYNCHRONIZE CACHE.  It writes one journal line when a
 * command is sent and one when its GOOD has arrived, with CLOCK_MONOTONIC nanoseconds.  Every
 * 512-byte sector carries its number, the generation of the write and a hash, so a torn one shows.
 * Writes in flight never overlap, so the order of generations in a sector is known.
 *
 * `check` takes the image that a power cut at CUT_NS left and says whether every promise holds:
 * a write that was acknowledged before the cut and had FUA, or whose acknowledgement came before
 * a flush was sent that was itself acknowledged before the cut, or (write cache off) any
 * acknowledged one, must be there, or a newer one sent before the cut; nothing else may be.
 * `final` does so over a LUN that came back after kill -9: every acknowledged write must be there.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>

#define SECTOR      512u
#define DEPTH       16
#define MAX_SECTORS 64u
#define MAGIC       0x50524f4d49534521ull

enum kind { K_WRITE, K_FUA, K_FLUSH, K_READ };

struct slot {
    bool busy;
    enum kind kind;
    uint64_t id; /* generation of a write, number of a flush */
    uint32_t lba, n;
    unsigned char buf[MAX_SECTORS * SECTOR];
    struct scsi_iovec iov;
};

struct run {
    struct iscsi_context *is;
    int lun;
    FILE *journal;
    uint32_t nsectors, unit;
    bool wce;
    uint64_t next_id, rng, acked;
    uint64_t end_ns;
    unsigned inflight;
    int failed;
    uint64_t *newest; /* per sector: generation last acknowledged */
    struct slot slots[DEPTH];
};

static uint64_t
now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static uint64_t
rng_next(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s;
}

static uint64_t
fill_word(uint64_t sector, uint64_t gen, unsigned i)
{
    uint64_t x = (sector * 0x9e3779b97f4a7c15ull) ^ (gen * 0xc2b2ae3d27d4eb4full) ^ i;
    x ^= x >> 29;
    return x * 0xbf58476d1ce4e5b9ull;
}

static void
stamp(unsigned char *p, uint64_t sector, uint64_t gen)
{
    uint64_t w[SECTOR / 8];
    w[0] = MAGIC;
    w[1] = sector;
    w[2] = gen;
    for (unsigned i = 3; i < SECTOR / 8; i++)
        w[i] = fill_word(sector, gen, i);
    memcpy(p, w, SECTOR);
}

/* The generation a sector holds, 0 for never written; -1: torn or misplaced. */
static int64_t
generation(const unsigned char *p, uint64_t sector)
{
    uint64_t w[SECTOR / 8];
    memcpy(w, p, SECTOR);
    bool zero = true;
    for (unsigned i = 0; i < SECTOR / 8; i++)
        zero = zero && w[i] == 0;
    if (zero)
        return 0;
    if (w[0] != MAGIC || w[1] != sector)
        return -1;
    for (unsigned i = 3; i < SECTOR / 8; i++)
        if (w[i] != fill_word(sector, w[2], i))
            return -1;
    return (int64_t)w[2];
}

static bool
overlaps_busy(const struct run *r, uint32_t lba, uint32_t n)
{
    for (unsigned i = 0; i < DEPTH; i++) {
        const struct slot *s = &r->slots[i];
        if (s->busy && s->kind != K_FLUSH && lba < s->lba + s->n && s->lba < lba + n)
            return true;
    }
    return false;
}

static void on_done(struct iscsi_context *is, int status, void *data, void *priv);

struct pair {
    struct run *r;
    struct slot *s;
    struct scsi_task *t;
};

static void
journal_sent(struct run *r, const struct slot *s)
{
    static const char names[] = {'W', 'U', 'F'};
    if (s->kind != K_READ)
        fprintf(r->journal, "%c %" PRIu64 " %" PRIu64 " %u %u\n", names[s->kind], now_ns(), s->id,
                s->lba, s->n);
}

static int
send_one(struct run *r, struct slot *s)
{
    uint64_t x = rng_next(&r->rng);
    unsigned dice = (unsigned)(x % 100);
    s->kind = dice < 45 ? K_WRITE : dice < 70 ? K_FUA : dice < 76 ? K_FLUSH : K_READ;
    uint32_t units = r->nsectors / r->unit;
    s->n = (1 + (uint32_t)(x >> 8) % (MAX_SECTORS / r->unit)) * r->unit;
    if (dice % 3 != 0 && s->n > 8 * r->unit)
        s->n = r->unit;
    s->lba = (uint32_t)((x >> 24) % units) * r->unit;
    if (s->lba + s->n > r->nsectors)
        s->lba = r->nsectors - s->n;
    if (s->kind != K_FLUSH && overlaps_busy(r, s->lba, s->n))
        return 0;
    struct pair *p = calloc(1, sizeof *p);
    if (!p)
        return -1;
    p->r = r;
    p->s = s;
    s->id = ++r->next_id;
    s->busy = true;
    uint32_t bs = r->unit * SECTOR;
    journal_sent(r, s);
    if (s->kind == K_FLUSH) {
        p->t = iscsi_synchronizecache10_task(r->is, r->lun, 0, 0, 0, 0, on_done, p);
    } else if (s->kind == K_READ) {
        p->t = iscsi_read16_task(r->is, r->lun, s->lba / r->unit, s->n * SECTOR, (int)bs, 0, 0, 0,
                                 0, 0, on_done, p);
    } else {
        for (uint32_t i = 0; i < s->n; i++)
            stamp(s->buf + i * SECTOR, s->lba + i, s->id);
        p->t = iscsi_write16_task(r->is, r->lun, s->lba / r->unit, s->buf, s->n * SECTOR, (int)bs,
                                  0, 0, s->kind == K_FUA, 0, 0, on_done, p);
    }
    if (!p->t)
        return -1;
    r->inflight++;
    return 0;
}

static void
check_read(struct run *r, const struct slot *s, const struct scsi_task *t)
{
    if (t->datain.size != (int)(s->n * SECTOR)) {
        fprintf(stderr, "promise: short read at sector %u\n", s->lba);
        r->failed = 1;
        return;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        int64_t g = generation(t->datain.data + i * SECTOR, s->lba + i);
        if (g < 0 || (uint64_t)g != r->newest[s->lba + i]) {
            fprintf(stderr, "promise: sector %u holds generation %" PRId64 ", not %" PRIu64 "\n",
                    s->lba + i, g, r->newest[s->lba + i]);
            r->failed = 1;
        }
    }
}

static void
on_done(struct iscsi_context *is, int status, void *data, void *priv)
{
    struct pair *p = priv;
    struct run *r = p->r;
    struct slot *s = p->s;
    (void)data;
    r->inflight--;
    s->busy = false;
    if (status == SCSI_STATUS_GOOD) {
        if (s->kind == K_READ) {
            check_read(r, s, p->t);
        } else {
            fprintf(r->journal, "A %" PRIu64 " %" PRIu64 "\n", now_ns(), s->id);
            r->acked++;
            if (s->kind != K_FLUSH)
                for (uint32_t i = 0; i < s->n; i++)
                    r->newest[s->lba + i] = s->id;
        }
    } else if (status != SCSI_STATUS_CANCELLED) {
        fprintf(stderr, "promise: status %d: %s\n", status, iscsi_get_error(is));
        r->failed = 1;
    }
    if (p->t)
        scsi_free_scsi_task(p->t);
    free(p);
}

static struct iscsi_context *
login(const char *text, int *lun)
{
    struct iscsi_context *is = iscsi_create_context("iqn.2026-11.org.evtgt:promise");
    struct iscsi_url *url = is ? iscsi_parse_full_url(is, text) : NULL;
    if (!url)
        return NULL;
    iscsi_set_targetname(is, url->target);
    iscsi_set_session_type(is, ISCSI_SESSION_NORMAL);
    iscsi_set_noautoreconnect(is, 1);
    iscsi_set_timeout(is, 30);
    *lun = url->lun;
    if (iscsi_full_connect_sync(is, url->portal, url->lun) != 0) {
        fprintf(stderr, "promise: %s\n", iscsi_get_error(is));
        return NULL;
    }
    iscsi_destroy_url(url);
    return is;
}

/* Fills in block size, capacity and whether the write cache is on. */
static int
probe(struct run *r)
{
    struct scsi_task *t = iscsi_readcapacity16_sync(r->is, r->lun);
    struct scsi_readcapacity16 *rc = t ? scsi_datain_unmarshall(t) : NULL;
    if (!rc || rc->block_length % SECTOR || rc->block_length / SECTOR > MAX_SECTORS)
        return -1;
    r->unit = rc->block_length / SECTOR;
    uint64_t n = (rc->returned_lba + 1) * r->unit;
    if (n < r->nsectors)
        r->nsectors = (uint32_t)n;
    scsi_free_scsi_task(t);
    t = iscsi_modesense6_sync(r->is, r->lun, 1, SCSI_MODESENSE_PC_CURRENT, SCSI_MODEPAGE_CACHING, 0,
                              255);
    struct scsi_mode_sense *ms = t ? scsi_datain_unmarshall(t) : NULL;
    struct scsi_mode_page *mp = ms ? scsi_modesense_get_page(ms, SCSI_MODEPAGE_CACHING, 0) : NULL;
    if (!mp)
        return -1;
    r->wce = mp->caching.wce != 0;
    scsi_free_scsi_task(t);
    return 0;
}

static int
loop(struct run *r)
{
    while (!r->failed) {
        bool over = now_ns() >= r->end_ns;
        if (over && r->inflight == 0)
            break;
        for (unsigned i = 0; i < DEPTH && !over; i++)
            if (!r->slots[i].busy && send_one(r, &r->slots[i]) != 0)
                return -1;
        struct pollfd pfd = {.fd = iscsi_get_fd(r->is), .events = (short)iscsi_which_events(r->is)};
        if (poll(&pfd, 1, 1000) < 0 || iscsi_service(r->is, pfd.revents) < 0) {
            fprintf(r->journal, "X %" PRIu64 "\n", now_ns());
            return 1; /* the target is gone: what a kill -9 test wants */
        }
    }
    return r->failed ? -1 : 0;
}

static int
run(int argc, char **argv)
{
    static struct run r;
    r.nsectors = argc > 6 ? (uint32_t)strtoul(argv[6], NULL, 10) : 8192;
    r.rng = strtoull(argv[5], NULL, 10) * 0x9e3779b97f4a7c15ull + 88172645463325252ull;
    r.journal = fopen(argv[3], "w");
    r.is = login(argv[2], &r.lun);
    if (!r.journal || !r.is || probe(&r) != 0)
        return 2;
    r.newest = calloc(r.nsectors, sizeof *r.newest);
    if (!r.newest)
        return 2;
    fprintf(r.journal, "H %u %u\n", r.nsectors, r.wce);
    fflush(r.journal); /* who will kill the daemon waits for it */
    r.end_ns = now_ns() + strtoull(argv[4], NULL, 10) * 1000000000u;
    int rc = loop(&r);
    if (fclose(r.journal) != 0)
        return 2;
    printf("%" PRIu64 " acknowledged of %" PRIu64 "\n", r.acked, r.next_id);
    return rc < 0 ? 1 : 0;
}

/* --- checking -----------------------------------------------------------------------------------
 */

struct event {
    char kind;
    uint64_t sent, acked; /* ns; acked 0: never */
    uint32_t lba, n;
};

struct history {
    struct event *ev; /* by id */
    uint64_t n, room;
    uint32_t nsectors;
    bool wce;
};

/* Up to four numbers behind the line's letter; how many.  By hand: a journal has 100000 lines and
 * a thousand cuts read it, and sscanf takes ten times as long. */
static int
numbers(const char *p, uint64_t v[4])
{
    int n = 0;
    while (n < 4 && *p == ' ') {
        char *end;
        v[n] = strtoull(p + 1, &end, 10);
        if (end == p + 1)
            break;
        n++;
        p = end;
    }
    return n;
}

static int
history_sent(struct history *h, uint64_t id, struct event e)
{
    if (id >= h->room) {
        uint64_t room = (id + 1) * 2;
        struct event *ev = realloc(h->ev, room * sizeof *ev);
        if (!ev)
            return -1;
        memset(ev + h->room, 0, (room - h->room) * sizeof *ev);
        h->ev = ev;
        h->room = room;
    }
    h->ev[id] = e;
    h->n = id >= h->n ? id + 1 : h->n;
    return 0;
}

static int
history_read(const char *path, struct history *h)
{
    FILE *f = fopen(path, "r");
    char line[160];
    unsigned wce;
    if (!f || !fgets(line, sizeof line, f) || sscanf(line, "H %u %u", &h->nsectors, &wce) != 2)
        return -1;
    h->wce = wce != 0;
    while (fgets(line, sizeof line, f)) {
        uint64_t v[4] = {0}; /* time, number, first sector, sectors */
        if (numbers(line + 1, v) < 2)
            continue; /* the mark of a lost target, or a line cut by a kill */
        if (line[0] == 'A') {
            if (v[1] < h->n)
                h->ev[v[1]].acked = v[0];
        } else {
            struct event e = {line[0], v[0], 0, (uint32_t)v[2], (uint32_t)v[3]};
            if (history_sent(h, v[1], e) != 0)
                return -1;
        }
    }
    fclose(f);
    return 0;
}

/* Whether write `e` had to be on stable storage at `cut`; last_flush: latest time at which an
 * acknowledged flush was sent. */
static bool
is_durable(const struct history *h, const struct event *e, uint64_t cut, uint64_t last_flush)
{
    if (e->acked == 0 || e->acked >= cut)
        return false;
    return e->kind == 'U' || !h->wce || e->acked <= last_flush;
}

static int
verify(const struct history *h, uint64_t cut, bool all_acked,
       int (*read_sector)(void *arg, uint32_t sector, unsigned char *buf), void *arg)
{
    uint64_t last_flush = 0;
    for (uint64_t i = 1; i < h->n; i++)
        if (h->ev[i].kind == 'F' && h->ev[i].acked && h->ev[i].acked < cut &&
            h->ev[i].sent > last_flush)
            last_flush = h->ev[i].sent;
    if (all_acked)
        last_flush = UINT64_MAX;
    uint64_t *must = calloc(h->nsectors, sizeof *must);
    if (!must)
        return -1;
    unsigned long promises = 0;
    for (uint64_t i = 1; i < h->n; i++) {
        const struct event *e = &h->ev[i];
        if ((e->kind == 'W' || e->kind == 'U') && is_durable(h, e, cut, last_flush))
            for (uint32_t s = e->lba; s < e->lba + e->n; s++, promises++)
                must[s] = i > must[s] ? i : must[s];
    }
    int bad = 0;
    for (uint32_t s = 0; s < h->nsectors; s++) {
        unsigned char buf[SECTOR];
        if (read_sector(arg, s, buf) != 0)
            return -1;
        int64_t g = generation(buf, s);
        const struct event *e = g > 0 && (uint64_t)g < h->n ? &h->ev[g] : NULL;
        const char *why = NULL;
        if (g < 0 || (g > 0 && (!e || s < e->lba || s >= e->lba + e->n)))
            why = "torn or misplaced";
        else if ((uint64_t)g < must[s])
            why = "lost";
        else if (e && e->sent >= cut)
            why = "from after the cut";
        if (why && bad++ < 5)
            fprintf(stderr, "sector %u: %s: holds %" PRId64 ", promised %" PRIu64 "\n", s, why, g,
                    must[s]);
    }
    free(must);
    printf("%lu promises, %d broken\n", promises, bad);
    (void)fflush(stdout); /* somebody waits for it */
    return bad ? 1 : 0;
}

static int
from_file(void *arg, uint32_t sector, unsigned char *buf)
{
    (void)sector; /* one after the other */
    return fread(buf, SECTOR, 1, arg) == 1 ? 0 : -1;
}

static int
check(const struct history *h, const char *image, uint64_t cut)
{
    FILE *f = fopen(image, "r");
    if (!f)
        return -1;
    static char buf[1 << 20];
    (void)setvbuf(f, buf, _IOFBF, sizeof buf);
    int rc = verify(h, cut, false, from_file, f);
    fclose(f);
    return rc;
}

/* The first that is broken does not end it. */
static int
check_many(const struct history *h)
{
    char line[4500], image[4096];
    int rc = 0;
    while (fgets(line, sizeof line, stdin)) {
        uint64_t cut;
        if (sscanf(line, "%" SCNu64 " %4095[^\n]", &cut, image) != 2)
            return -1;
        int one = check(h, image, cut);
        if (one < 0)
            return -1;
        rc |= one;
    }
    return rc;
}

struct reader {
    struct run r;
    uint32_t first, n;
    unsigned char data[MAX_SECTORS * SECTOR];
};

static int
from_lun(void *arg, uint32_t sector, unsigned char *buf)
{
    struct reader *rd = arg;
    if (rd->n == 0 || sector < rd->first || sector >= rd->first + rd->n) {
        struct scsi_task *t =
            iscsi_read16_sync(rd->r.is, rd->r.lun, sector / rd->r.unit, sizeof rd->data,
                              (int)(rd->r.unit * SECTOR), 0, 0, 0, 0, 0);
        if (!t || t->status != SCSI_STATUS_GOOD || t->datain.size != (int)sizeof rd->data)
            return -1;
        memcpy(rd->data, t->datain.data, sizeof rd->data);
        scsi_free_scsi_task(t);
        rd->first = sector;
        rd->n = MAX_SECTORS;
    }
    memcpy(buf, rd->data + (size_t)(sector - rd->first) * SECTOR, SECTOR);
    return 0;
}

int
main(int argc, char **argv)
{
    struct history h = {0};
    if (argc >= 6 && strcmp(argv[1], "run") == 0)
        return run(argc, argv);
    bool many = argc == 4 && strcmp(argv[3], "-") == 0;
    if ((many || argc == 5) && strcmp(argv[1], "check") == 0) {
        if (history_read(argv[2], &h) != 0)
            return 2;
        int rc = many ? check_many(&h) : check(&h, argv[3], strtoull(argv[4], NULL, 10));
        free(h.ev);
        return rc < 0 ? 2 : rc;
    }
    if (argc == 4 && strcmp(argv[1], "final") == 0) {
        static struct reader rd;
        rd.r.nsectors = UINT32_MAX;
        rd.r.is = login(argv[3], &rd.r.lun);
        if (history_read(argv[2], &h) != 0 || !rd.r.is || probe(&rd.r) != 0)
            return 2;
        int rc = verify(&h, UINT64_MAX, true, from_lun, &rd);
        free(h.ev);
        return rc < 0 ? 2 : rc;
    }
    fprintf(stderr, "usage: promise run URL JOURNAL SECONDS SEED [SECTORS] | "
                    "check JOURNAL {IMAGE CUT_NS | -} | final JOURNAL URL\n");
    return 2;
}
