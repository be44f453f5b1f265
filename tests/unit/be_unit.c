/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fixture of the backends' unit tests; see be_unit.h.
 */
#include "config.h"

#include "tests/unit/be_unit.h"

#include <ftw.h>

struct worker *bu_w;
char bu_dir[64], bu_mem_dir[64];

static int
on_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static void
scratch(char *dir, size_t size, const char *under)
{
    if (under == NULL || snprintf(dir, size, "%s/evtgt-unit-XXXXXX", under) >= (int)size ||
        mkdtemp(dir) == NULL)
        dir[0] = '\0';
}

static int
run_engine(const char *suite, const struct bu_case *cases, unsigned n, enum disk_engine engine)
{
    const char *name = engine == ENGINE_RING ? "ring" : "pool";
    char title[64];
    bu_w = worker_new_local(&(struct worker_opts){.engine = engine, .ring_entries = 64});
    if (bu_w == NULL) {
        printf("%s: no worker with the %s engine here: %s\n", suite, name, strerror(errno));
        return engine == ENGINE_RING ? 0 : 1;
    }
    (void)snprintf(title, sizeof(title), "%s, %s", suite, name);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite s = CU_add_suite(title, NULL, NULL);
    for (unsigned i = 0; i < n; i++)
        CU_add_test(s, cases[i].name, cases[i].fn);
    CU_basic_set_mode(CU_BRM_VERBOSE);
    CU_basic_run_tests();
    int failed = (int)CU_get_number_of_failures();
    CU_cleanup_registry();
    worker_free_local(bu_w);
    bu_w = NULL;
    return failed;
}

int
bu_main(const char *suite, const struct bu_case *cases, unsigned n)
{
    const char *tmp = getenv("TMPDIR");
    setvbuf(stdout, NULL, _IOLBF, 0);
    scratch(bu_dir, sizeof(bu_dir), tmp != NULL ? tmp : "/var/tmp");
    scratch(bu_mem_dir, sizeof(bu_mem_dir), "/dev/shm");
    if (bu_dir[0] == '\0' || helper_pool_start(2, 16) != 0)
        return 1;
    int failed = run_engine(suite, cases, n, ENGINE_RING);
    failed += run_engine(suite, cases, n, ENGINE_POOL);
    helper_pool_stop();
    (void)nftw(bu_dir, on_remove, 8, FTW_DEPTH | FTW_PHYS);
    if (bu_mem_dir[0] != '\0')
        (void)nftw(bu_mem_dir, on_remove, 8, FTW_DEPTH | FTW_PHYS);
    return failed != 0;
}

static void
on_done(struct io *io)
{
    struct bu_io *b = io_frame(io)->arg;
    CU_ASSERT_FALSE(b->in_submit);
    b->ends++;
    b->res = io->res;
}

void
bu_start(struct backend *be, struct bu_io *b, enum io_op op, uint64_t off, void *buf, uint64_t len,
         unsigned flags)
{
    b->iov = (struct iovec){.iov_base = buf, .iov_len = len};
    b->io.op = (uint8_t)op;
    b->io.flags = (uint8_t)flags;
    b->io.w = bu_w;
    b->io.offset = off;
    b->io.len = len;
    if (b->io.iov == NULL && buf != NULL) {
        b->io.iov = &b->iov;
        b->io.niov = 1;
    }
    b->io.nframes = 0;
    b->ends = 0;
    b->in_submit = true;
    io_push(&b->io, on_done, b);
    be_submit(be, &b->io);
    b->in_submit = false;
}

/* A timer keeps each turn short, so that waiting ends when nothing comes. */
static void
on_tick(struct worker_timer *t)
{
    (void)t;
}

static void
turn_short(unsigned ms)
{
    struct worker_timer t;
    worker_timer_init(&t, bu_w, on_tick);
    worker_timer_start_ms(&t, ms);
    worker_turn(bu_w, true);
    worker_timer_stop(&t);
}

int
bu_wait(struct bu_io *b)
{
    uint64_t end = clock_ms() + 10000;
    while (b->ends == 0 && clock_ms() < end)
        turn_short(50);
    CU_ASSERT_EQUAL(b->ends, 1);
    return b->ends == 1 ? b->res : -ETIME;
}

int
bu_do(struct backend *be, enum io_op op, uint64_t off, void *buf, uint64_t len, unsigned flags)
{
    struct bu_io b = {0};
    bu_start(be, &b, op, off, buf, len, flags);
    int res = bu_wait(&b);
    if (b.ends != 1)
        abort(); /* b is on this stack and the backend has it */
    return res;
}

void
bu_turn_ms(unsigned ms)
{
    uint64_t end = clock_ms() + ms;
    while (clock_ms() < end)
        turn_short(2);
}

struct backend *
bu_open_opts(const struct be_opts *o)
{
    char err[256] = "";
    struct backend *be = be_new(o, err, sizeof(err));
    if (be == NULL)
        printf("be_new: %s\n", err);
    CU_ASSERT_PTR_NOT_NULL_FATAL(be);
    int r = be_open(be);
    if (r != 0)
        printf("be_open: %d %s\n", r, be_error(be));
    CU_ASSERT_EQUAL_FATAL(r, 0);
    CU_ASSERT_EQUAL(be_state(be), BE_READY);
    return be;
}

struct backend *
bu_open(const char *type, const char *path, bool direct, const char *layers)
{
    return bu_open_opts(&(struct be_opts){.type = type,
                                          .path = path,
                                          .block_size = 512,
                                          .direct = direct,
                                          .write_cache = true,
                                          .layers = layers,
                                          .null_size = 64 * MIB});
}

void
bu_close(struct backend *be)
{
    be_close(be);
    CU_ASSERT_EQUAL(be_in_flight(be), 0);
    be_put(be);
    bu_turn_ms(5); /* helpers that close descriptors */
}

const char *
bu_file(const char *dir, const char *name, uint64_t size)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    (void)unlink(path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(ftruncate(fd, (off_t)size), 0);
    close(fd);
    return path;
}

uint8_t *
bu_mem(size_t len, unsigned seed)
{
    void *p = NULL;
    if (posix_memalign(&p, 4096, len) != 0)
        abort();
    uint32_t x = seed * 2654435761u + 1;
    for (size_t i = 0; i < len; i++) {
        x = x * 1664525u + 1013904223u;
        ((uint8_t *)p)[i] = (uint8_t)(x >> 24);
    }
    return p;
}

bool
bu_is_zero(const void *p, size_t len)
{
    const uint8_t *b = p;
    for (size_t i = 0; i < len; i++) {
        if (b[i] != 0)
            return false;
    }
    return true;
}

char *
bu_slurp(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = calloc(1, MIB);
    CU_ASSERT_TRUE_FATAL(fd >= 0 && text != NULL);
    CU_ASSERT_TRUE(read(fd, text, MIB - 1) >= 0);
    close(fd);
    return text;
}

void
bu_touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    close(fd);
}
