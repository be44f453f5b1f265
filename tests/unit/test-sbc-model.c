/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random mixes of block commands, many in flight, against a plain array in memory.  The commands
 * of one batch touch ranges that do not overlap, so that the array says what must come of each.
 * A seed from EVTGT_SEED; it is printed.
 */
#include "tests/unit/sbc_cdb.h"
#include "tests/unit/sbc_file.h"
#include "tests/unit/scsi_fake.h"
#include "tests/unit/unit.h"

#define MIB   (1024u * 1024u)
#define STORE (24u * MIB)

enum { LANES = 6, LANE = STORE / LANES };
enum kind { READ, WRITE, SAME, UNMAP, VERIFY, VERIFY_ONE, WRITE_VERIFY, SYNC, KINDS };

struct lane {
    struct fcmd c;
    enum kind kind;
    uint64_t from; /* bytes */
    uint32_t len, sent;
    bool miscompare, is_over;
    uint32_t wrong_at;
    uint8_t *buf; /* data-out or data-in */
};

static uint8_t model[STORE];
static struct lane lanes[LANES];
static uint32_t state;

static uint32_t
rnd(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state % n;
}

static uint32_t
random_len(uint32_t bs, uint32_t room)
{
    static const uint32_t caps[] = {4096, 65536, 600 * 1024, LANE};
    uint32_t cap = caps[rnd(4)];
    if (cap > room)
        cap = room;
    return (1 + rnd(cap / bs)) * bs;
}

static uint8_t
form(uint8_t ten, uint8_t twelve, uint8_t sixteen)
{
    const uint8_t f[] = {ten, twelve, sixteen};
    return f[rnd(3)];
}

static void
start_unmap(struct fake *f, struct lane *l, uint32_t bs)
{
    uint8_t cdb[10] = {0x42, 0, 0, 0, 0, 0, 0, 0, 24};

    memset(l->buf, 0, 24);
    put_be16(l->buf, 22);
    put_be16(l->buf + 2, 16);
    put_be64(l->buf + 8, l->from / bs);
    put_be32(l->buf + 16, l->len / bs);
    memset(model + l->from, 0, l->len);
    fake_init(f, &l->c, cdb, 10, NULL, 0, l->buf, 24);
}

static void
start_same(struct fake *f, struct lane *l, uint32_t bs)
{
    bool unmap = rnd(2) == 0, none = rnd(3) == 0;
    uint8_t byte1 = (uint8_t)(unmap ? 0x08 : 0);
    uint8_t op = l->len / bs <= 0xffff && !none && rnd(2) == 0 ? 0x41 : 0x93;

    if (none)
        byte1 |= 0x01;
    if (none || rnd(2) == 0)
        memset(l->buf, 0, bs);
    else
        sbc_fill(l->buf, bs, state);
    for (uint32_t i = 0; i < l->len; i += bs)
        memcpy(model + l->from + i, l->buf, bs);
    struct cdb d = cdb_block(op, byte1, l->from / bs, l->len / bs);
    fake_init(f, &l->c, d.b, d.len, NULL, 0, l->buf, none ? 0 : bs);
}

/* BYTCHK 01b; now and then with one wrong byte. */
static void
start_verify(struct fake *f, struct lane *l, uint32_t bs)
{
    struct cdb d = cdb_block(form(0x2f, 0xaf, 0x8f), 0x02, l->from / bs, l->len / bs);

    memcpy(l->buf, model + l->from, l->len);
    l->miscompare = rnd(3) == 0;
    if (l->miscompare) {
        l->wrong_at = rnd(l->len);
        l->buf[l->wrong_at] ^= (uint8_t)(1 + rnd(255));
    }
    fake_init(f, &l->c, d.b, d.len, NULL, 0, l->buf, l->len);
}

/* BYTCHK 11b against what lies there: how far the first block repeats itself is known. */
static void
start_verify_one(struct fake *f, struct lane *l, uint32_t bs)
{
    struct cdb d = cdb_block(form(0x2f, 0xaf, 0x8f), 0x06, l->from / bs, l->len / bs);

    memcpy(l->buf, model + l->from, bs);
    l->miscompare = false;
    for (uint32_t i = 0; i < l->len; i++) {
        if (model[l->from + i] != l->buf[i % bs]) {
            l->miscompare = true;
            l->wrong_at = i;
            break;
        }
    }
    fake_init(f, &l->c, d.b, d.len, NULL, 0, l->buf, bs);
}

static void
start_write(struct fake *f, struct lane *l, uint32_t bs, bool verify)
{
    uint8_t op = verify ? form(0x2e, 0xae, 0x8e) : form(0x2a, 0xaa, 0x8a);
    uint8_t byte1 = (uint8_t)(verify ? rnd(2) << 1 : rnd(4) << 3);
    struct cdb d = cdb_block(op, byte1, l->from / bs, l->len / bs);

    l->sent = l->len;
    if (!verify && rnd(4) == 0) /* the initiator sends fewer blocks */
        l->sent = (1 + rnd(l->len / bs)) * bs;
    sbc_fill(l->buf, l->len, state);
    memcpy(model + l->from, l->buf, l->sent);
    fake_init(f, &l->c, d.b, d.len, NULL, 0, l->buf, l->sent);
}

static void
start(struct fake *f, struct lane *l, unsigned n, uint32_t bs)
{
    struct cdb d;

    l->from = (uint64_t)n * LANE + rnd(LANE / bs) * bs;
    l->len = random_len(bs, (uint32_t)((n + 1) * (uint64_t)LANE - l->from));
    l->miscompare = l->is_over = false;
    l->kind = (enum kind)rnd(KINDS);
    switch (l->kind) {
    case READ:
        d = cdb_block(form(0x28, 0xa8, 0x88), (uint8_t)(rnd(4) << 3), l->from / bs, l->len / bs);
        l->sent = rnd(4) == 0 ? 1 + rnd(l->len) : l->len;
        fake_init(f, &l->c, d.b, d.len, l->buf, l->sent, NULL, 0);
        break;
    case WRITE:
        start_write(f, l, bs, false);
        break;
    case WRITE_VERIFY:
        start_write(f, l, bs, true);
        break;
    case SAME:
        start_same(f, l, bs);
        break;
    case UNMAP:
        start_unmap(f, l, bs);
        break;
    case VERIFY:
        start_verify(f, l, bs);
        break;
    case VERIFY_ONE:
        start_verify_one(f, l, bs);
        break;
    default:
        d = cdb_block(rnd(2) ? 0x35 : 0x91, (uint8_t)(rnd(2) << 1), 0, 0);
        fake_init(f, &l->c, d.b, d.len, NULL, 0, NULL, 0);
        break;
    }
    l->c.now = rnd(2) == 0;
    fake_submit(&l->c);
}

static void
finish(struct lane *l)
{
    l->is_over = true;
    if (l->miscompare) {
        CU_ASSERT(fake_failed(&l->c, 0x0e, 0x1d00));
        CU_ASSERT_EQUAL(fake_sense(&l->c).info, l->wrong_at);
    } else {
        CU_ASSERT_EQUAL(l->c.c.status, SAM_GOOD);
    }
    if (l->kind == READ) {
        CU_ASSERT_EQUAL(l->c.in_len, l->sent);
        CU_ASSERT(memcmp(l->buf, model + l->from, l->sent) == 0);
    }
    CU_ASSERT(l->c.max_window <= MIB);
    fake_release(&l->c);
}

/* As they end: those that wait for memory get it from those that are over. */
static void
finish_all(struct fake *f)
{
    for (unsigned over = 0; over < LANES;) {
        bool any = false;
        for (unsigned i = 0; i < LANES; i++) {
            if (lanes[i].is_over || !lanes[i].c.done)
                continue;
            finish(&lanes[i]);
            any = true;
            over++;
        }
        if (!any)
            worker_turn(f->w, true);
    }
}

static void
mix(uint32_t bs, bool no_cache, enum disk_engine engine, unsigned rounds)
{
    struct fake f;

    fake_open(&f, &(struct fake_opts){.type = "fileio",
                                      .path = sbc_file(STORE),
                                      .block_size = bs,
                                      .thin = true,
                                      .no_cache = no_cache,
                                      .engine = engine,
                                      .budget = 3 * MIB});
    memset(model, 0, sizeof model);
    for (unsigned r = 0; r < rounds; r++) {
        for (unsigned i = 0; i < LANES; i++)
            start(&f, &lanes[i], i, bs);
        finish_all(&f);
        if (CU_get_number_of_failures() != 0)
            break;
    }
    static uint8_t file[STORE];
    sbc_file_read(0, file, STORE);
    CU_ASSERT(memcmp(file, model, STORE) == 0);
    while (atomic_load(&f.lun->background) != 0)
        worker_turn(f.w, true);
    CU_ASSERT_EQUAL(atomic_load(&f.budget.used), 0);
    fake_close(&f);
    unlink(sbc_path);
}

static void
test_512(void)
{
    mix(512, false, ENGINE_AUTO, 150);
}

static void
test_4096(void)
{
    mix(4096, false, ENGINE_AUTO, 150);
}

static void
test_write_through(void)
{
    mix(512, true, ENGINE_AUTO, 30);
}

static void
test_pool(void)
{
    mix(512, false, ENGINE_POOL, 60);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"512-byte blocks", test_512},
        {"4096-byte blocks", test_4096},
        {"no write cache", test_write_through},
        {"helper pool", test_pool},
    };
    const char *seed = getenv("EVTGT_SEED");

    state = seed != NULL ? (uint32_t)strtoul(seed, NULL, 0) : 0x5bc5bc01;
    if (state == 0)
        state = 1;
    printf("EVTGT_SEED=%u\n", state);
    for (unsigned i = 0; i < LANES; i++)
        lanes[i].buf = malloc(LANE);
    alarm(300);
    int rc = UNIT_RUN("sbc-model", tests);
    for (unsigned i = 0; i < LANES; i++)
        free(lanes[i].buf);
    return rc;
}
