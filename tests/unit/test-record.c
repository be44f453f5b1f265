/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The power-loss layer and its replay tool: random writes and flushes, several at once, then 200
 * cuts.  What each image may hold is worked out here again, from what this test saw, pair by
 * pair, without the log.
 */
#include "config.h"

int replay_main(int argc, char **argv);
#define main replay_main
#include "tests/lib/replay.c"
#undef main

#include "tests/unit/be_unit.h"

#define SECTORS 64u
#define SIZE    (SECTORS * 512u)
#define OPS     400u
#define DEPTH   8u
#define NEVER   UINT64_MAX
#define BASE_ID 0xba5eba5eu

struct seen {
    struct bu_io b;
    uint8_t *buf;
    enum io_op op;
    bool fua;
    uint32_t first, n; /* sectors */
    uint64_t submit, done;
};

static struct seen ops[OPS];
static unsigned nops;
static uint64_t now; /* the number the next record has */
static uint32_t rng;
static char log_path[128], base_path[128], image_path[128];

static uint32_t
rnd(uint32_t n)
{
    rng = rng * 1664525u + 1013904223u;
    return (rng >> 9) % n;
}

static void
stamp(uint8_t *p, uint32_t id, uint32_t sector)
{
    for (unsigned i = 0; i < 512; i += 8) {
        memcpy(p + i, &id, 4);
        memcpy(p + i + 4, &sector, 4);
    }
}

/* --- the run --------------------------------------------------------------------------------- */

static void
on_seen(struct io *io)
{
    struct seen *s = io_frame(io)->arg;
    s->done = now++;
    s->b.ends++;
    CU_ASSERT_EQUAL(io->res, 0);
    free(s->buf);
    s->buf = NULL;
}

static void
start_one(struct backend *be)
{
    struct seen *s = &ops[nops];
    uint32_t kind = rnd(20);
    memset(s, 0, sizeof(*s));
    s->op = kind < 13 ? IO_WRITE : kind < 15 ? IO_ZERO : kind < 16 ? IO_DISCARD : IO_FLUSH;
    s->first = rnd(SECTORS);
    s->n = s->op == IO_FLUSH ? 0 : 1 + rnd(SECTORS - s->first < 12 ? SECTORS - s->first : 12);
    s->fua = s->op != IO_FLUSH && rnd(6) == 0;
    s->done = NEVER;
    if (s->op == IO_WRITE) {
        s->buf = malloc(s->n * 512u);
        for (uint32_t i = 0; i < s->n; i++)
            stamp(s->buf + i * 512u, nops + 1, s->first + i);
    }
    struct io *io = &s->b.io;
    s->b.iov = (struct iovec){s->buf, s->n * 512u};
    io->iov = &s->b.iov;
    io->niov = s->buf != NULL;
    io->op = (uint8_t)s->op;
    io->flags = s->fua ? IO_FUA : 0;
    io->w = bu_w;
    io->offset = s->first * 512u;
    io->len = s->n * 512u;
    io_push(io, on_seen, s);
    s->submit = now++;
    nops++;
    be_submit(be, io);
}

/* Up to `until` operations, at most DEPTH at once. */
static void
run(struct backend *be, unsigned until)
{
    while (nops < until) {
        if (be_in_flight(be) < 1 + rnd(DEPTH))
            start_one(be);
        else
            worker_turn(bu_w, true);
    }
    while (be_in_flight(be) > 0)
        worker_turn(bu_w, true);
}

static struct backend *
begin(const char *name, bool write_cache)
{
    char layers[256];
    (void)snprintf(log_path, sizeof(log_path), "%s/%s.log", bu_dir, name);
    (void)snprintf(base_path, sizeof(base_path), "%s/%s.base", bu_dir, name);
    (void)snprintf(image_path, sizeof(image_path), "%s/%s.image", bu_dir, name);
    const char *path = bu_file(bu_dir, name, SIZE);
    (void)unlink(log_path);
    uint8_t sector[512];
    int fd = open(path, O_RDWR | O_CLOEXEC), base = open(base_path, O_RDWR | O_CREAT, 0600);
    for (uint32_t s = 0; s < SECTORS; s++) {
        stamp(sector, BASE_ID, s);
        CU_ASSERT_EQUAL(pwrite(fd, sector, 512, s * 512), 512);
        CU_ASSERT_EQUAL(pwrite(base, sector, 512, s * 512), 512);
    }
    close(fd);
    close(base);
    (void)snprintf(layers, sizeof(layers), "record:file=%s", log_path);
    nops = 0;
    now = 1; /* OPEN was 0 */
    return bu_open_opts(&(struct be_opts){
        .path = path, .block_size = 512, .write_cache = write_cache, .layers = layers});
}

/* --- what an image may hold ------------------------------------------------------------------ */

static bool write_cache_on;

static bool
is_durable_at(const struct seen *s, uint64_t cut)
{
    if (s->op == IO_FLUSH || s->done >= cut)
        return false;
    if (s->fua || !write_cache_on)
        return true;
    for (unsigned i = 0; i < nops; i++) {
        if (ops[i].op == IO_FLUSH && ops[i].submit > s->done && ops[i].done < cut)
            return true;
    }
    return false;
}

static bool
has_sector(const struct seen *s, uint32_t sector)
{
    return sector >= s->first && sector < s->first + s->n;
}

/* May the sector hold what `s` (NULL: nobody) put there? */
static bool
may_hold(const struct seen *s, uint32_t sector, uint64_t cut)
{
    if (s != NULL && (s->submit >= cut || !has_sector(s, sector)))
        return false;
    for (unsigned i = 0; i < nops; i++) {
        const struct seen *d = &ops[i];
        if (d == s || !has_sector(d, sector) || !is_durable_at(d, cut))
            continue;
        if (s == NULL || (s->done < cut && s->done < d->submit))
            return false;
    }
    return true;
}

static unsigned n_old, n_unflushed; /* how often an image was not simply the last state */

static bool
is_legal(const uint8_t *p, uint32_t sector, uint64_t cut)
{
    uint8_t expect[512];
    uint32_t id;
    memcpy(&id, p, 4);
    if (bu_is_zero(p, 512)) {
        for (unsigned i = 0; i < nops; i++) {
            if ((ops[i].op == IO_ZERO || ops[i].op == IO_DISCARD) && may_hold(&ops[i], sector, cut))
                return true;
        }
        return false;
    }
    stamp(expect, id, sector);
    if (memcmp(p, expect, 512) != 0)
        return false; /* torn inside a sector */
    if (id == BASE_ID)
        return may_hold(NULL, sector, cut);
    if (id == 0 || id > nops || ops[id - 1].op != IO_WRITE)
        return false;
    const struct seen *s = &ops[id - 1];
    n_unflushed += !is_durable_at(s, cut);
    for (unsigned i = id; i < nops; i++) {
        if (has_sector(&ops[i], sector) && ops[i].submit > s->done && ops[i].done < cut) {
            n_old++;
            break;
        }
    }
    return may_hold(s, sector, cut);
}

static void
replay_at(uint64_t cut, uint64_t seed)
{
    char c[32], s[32];
    (void)snprintf(c, sizeof(c), "%" PRIu64, cut);
    (void)snprintf(s, sizeof(s), "%" PRIu64, seed);
    char *argv[] = {(char *)"replay", log_path, base_path, image_path, (char *)"--cut", c,
                    (char *)"--seed", s,        NULL};
    CU_ASSERT_EQUAL(replay_main(8, argv), 0);
}

static void
check_image(uint64_t cut, uint64_t seed)
{
    static uint8_t image[SIZE];
    replay_at(cut, seed);
    int fd = open(image_path, O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL(read(fd, image, SIZE), SIZE);
    close(fd);
    for (uint32_t s = 0; s < SECTORS; s++) {
        if (!is_legal(image + s * 512u, s, cut)) {
            printf("cut %" PRIu64 " seed %" PRIu64 " sector %u\n", cut, seed, s);
            CU_FAIL("an image that no power loss could leave");
            return;
        }
    }
}

/* --- cases ----------------------------------------------------------------------------------- */

static void
random_cuts(uint32_t seed, bool write_cache)
{
    rng = seed;
    write_cache_on = write_cache;
    printf("(seed %u) ", seed);
    struct backend *be = begin("power", write_cache);
    n_old = n_unflushed = 0;
    run(be, OPS);
    bu_close(be);
    for (unsigned i = 0; i < 200; i++)
        check_image(rnd((uint32_t)now + 1), i);
    if (write_cache) {
        CU_ASSERT_TRUE(n_unflushed > 0);
        CU_ASSERT_TRUE(n_old > 0);
    }
}

static void
test_random_cuts(void)
{
    const char *env = getenv("EVTGT_SEED");
    random_cuts(env != NULL ? (uint32_t)strtoul(env, NULL, 10) : 20240601, true);
}

static void
test_cache_off(void)
{
    random_cuts(77, false);
}

/* The last state is what the store holds, when all arrived. */
static void
test_everything(void)
{
    static uint8_t a[SIZE], b[SIZE];
    rng = 5;
    write_cache_on = true;
    struct backend *be = begin("all", true);
    while (nops < 100) { /* one at a time, so that the order is known */
        start_one(be);
        while (be_in_flight(be) > 0)
            worker_turn(bu_w, true);
    }
    char store[128];
    (void)snprintf(store, sizeof(store), "%s", be_path(be));
    bu_close(be);
    replay_at(now, 1);
    int fd = open(store, O_RDONLY | O_CLOEXEC), fd2 = open(image_path, O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL(read(fd, a, SIZE), SIZE);
    CU_ASSERT_EQUAL(read(fd2, b, SIZE), SIZE);
    CU_ASSERT_EQUAL(memcmp(a, b, SIZE), 0);
    close(fd);
    close(fd2);
    char *argv[] = {(char *)"replay", (char *)"--info", log_path, NULL};
    CU_ASSERT_EQUAL(replay_main(3, argv), 0);
}

/* A daemon that was killed: half a record at the end, and the next run goes on behind. */
static void
test_log_goes_on(void)
{
    rng = 9;
    write_cache_on = true;
    struct backend *be = begin("again", true);
    char store[128], layers[256];
    (void)snprintf(store, sizeof(store), "%s", be_path(be));
    (void)snprintf(layers, sizeof(layers), "record:file=%s", log_path);
    run(be, 100);
    bu_close(be);
    int fd = open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC);
    struct record torn = {
        .magic = RECORD_MAGIC, .seq = now, .kind = RECORD_SUBMIT, .data_len = 512};
    CU_ASSERT_EQUAL(write(fd, &torn, sizeof(torn)), sizeof(torn));
    CU_ASSERT_EQUAL(write(fd, &torn, 10), 10);
    close(fd);
    be = bu_open("fileio", store, false, layers);
    now++; /* its OPEN */
    run(be, 200);
    bu_close(be);
    for (unsigned i = 0; i < 50; i++)
        check_image(rnd((uint32_t)now + 1), i);
    /* something else under the name is no log */
    fd = open(log_path, O_WRONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL(pwrite(fd, "x", 1, 0), 1);
    close(fd);
    char err[128];
    be = be_new(&(struct be_opts){.path = store, .layers = layers}, err, sizeof(err));
    CU_ASSERT_EQUAL(be_open(be), -EBADMSG);
    be_put(be);
}

int
main(void)
{
    static const struct bu_case cases[] = {
        {"200 cuts through random writes and flushes", test_random_cuts},
        {"200 cuts, write cache off", test_cache_off},
        {"everything arrived", test_everything},
        {"a log goes on after a kill", test_log_goes_on},
    };
    return bu_main("record", cases, sizeof(cases) / sizeof(cases[0]));
}
