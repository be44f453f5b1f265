/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two workers submit without pause to one store while this thread probes, closes and opens it,
 * renames its file away and back, lets it grow, turns the cache off and on and asks everything.
 * Every request must end once, with a result that fits.  For ThreadSanitizer above all.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/clock.h"
#include "base/helper.h"
#include "base/worker.h"

#define WORKERS 2
#define DEPTH   8
#define SIZE    (1024u * 1024u)
#define RUN_MS  1500

static struct backend *be;
static atomic_bool stop;
static atomic_uint active, done_ok, done_refused, bad;

struct stream {
    struct worker *w;
    struct io io;
    struct iovec iov;
    uint32_t rng;
    uint8_t *buf;
    struct deferred again;
};

static struct stream streams[WORKERS * DEPTH];

static void stream_next(struct stream *s);

static void
on_again(struct deferred *d)
{
    stream_next(container_of(d, struct stream, again));
}

static void
on_done(struct io *io)
{
    struct stream *s = io_frame(io)->arg;
    if (io->res == 0)
        atomic_fetch_add(&done_ok, 1);
    else if (io->res == -ENXIO)
        atomic_fetch_add(&done_refused, 1);
    else
        atomic_fetch_add(&bad, 1);
    worker_defer(s->w, &s->again);
}

static void
stream_next(struct stream *s)
{
    static const enum io_op ops[] = {IO_READ, IO_READ, IO_WRITE, IO_WRITE, IO_ZERO, IO_FLUSH};
    if (atomic_load(&stop)) {
        atomic_fetch_sub(&active, 1);
        return;
    }
    s->rng = s->rng * 1664525u + 1013904223u;
    s->iov = (struct iovec){.iov_base = s->buf, .iov_len = 4096};
    s->io = (struct io){.op = (uint8_t)ops[(s->rng >> 8) % 6],
                        .flags = (s->rng >> 16) % 8 == 0 ? IO_FUA : 0,
                        .w = s->w,
                        .offset = (s->rng >> 20) % (SIZE / 4096) * 4096,
                        .len = 4096,
                        .iov = &s->iov,
                        .niov = 1};
    io_push(&s->io, on_done, s);
    be_submit(be, &s->io);
}

static void
stream_start(struct worker *w, void *arg)
{
    struct stream *s = arg;
    (void)w;
    deferred_init(&s->again, on_again);
    stream_next(s);
}

static void
pause_ms(unsigned ms)
{
    usleep(ms * 1000);
}

/* One round of all that can be done to a store from outside. */
static void
disturb(const char *path, const char *away, unsigned round)
{
    struct be_info in;
    be_info(be, &in);
    (void)be_error(be);
    (void)be_identity(be);
    (void)be_in_flight(be);
    be_set_write_cache(be, round % 3 != 0);
    switch (round % 4) {
    case 0:
        be_close(be);
        pause_ms(1);
        for (int i = 0; i < 500 && be_open(be) != 0; i++) /* until the last request let go */
            pause_ms(1);
        break;
    case 1:
        if (rename(path, away) != 0 || (be_probe(be) & BE_EV_GONE) == 0)
            atomic_fetch_add(&bad, 1);
        pause_ms(1);
        if (rename(away, path) != 0 || (be_probe(be) & BE_EV_CAME) == 0)
            atomic_fetch_add(&bad, 1);
        break;
    case 2:
        if (truncate(path, (off_t)(SIZE + round * 4096u)) != 0 || (be_probe(be) & BE_EV_GREW) == 0)
            atomic_fetch_add(&bad, 1);
        break;
    default:
        (void)be_probe(be);
    }
    if (be_state(be) != BE_READY)
        atomic_fetch_add(&bad, 1);
    pause_ms(3);
}

static int
run(const char *dir, enum disk_engine engine, bool direct)
{
    struct worker *w[WORKERS];
    char path[128], away[128], err[128];
    (void)snprintf(path, sizeof(path), "%s/store", dir);
    (void)snprintf(away, sizeof(away), "%s/away", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, SIZE) != 0)
        return 1;
    close(fd);
    be = be_new(&(struct be_opts){.path = path,
                                  .block_size = 512,
                                  .direct = direct,
                                  .write_cache = true,
                                  .layers = "delay:us=50,op=read"},
                err, sizeof(err));
    if (be == NULL || be_open(be) != 0)
        return 1;
    atomic_store(&stop, false);
    for (unsigned i = 0; i < WORKERS; i++) {
        w[i] = worker_start(&(struct worker_opts){.id = i, .engine = engine});
        if (w[i] == NULL)
            return 1;
    }
    atomic_store(&active, WORKERS * DEPTH);
    for (unsigned i = 0; i < WORKERS * DEPTH; i++) {
        struct stream *s = &streams[i];
        s->w = w[i % WORKERS];
        s->rng = i * 7919u + 1;
        s->buf = aligned_alloc(4096, 4096);
        memset(s->buf, (int)i, 4096);
        worker_post(s->w, stream_start, s);
    }
    uint64_t end = clock_ms() + RUN_MS;
    for (unsigned round = 0; clock_ms() < end; round++)
        disturb(path, away, round);
    atomic_store(&stop, true);
    for (int i = 0; i < 5000 && atomic_load(&active) > 0; i++)
        pause_ms(1);
    unsigned left = atomic_load(&active) + be_in_flight(be);
    be_close(be);
    pause_ms(20);
    for (unsigned i = 0; i < WORKERS; i++)
        worker_stop(w[i]);
    for (unsigned i = 0; i < WORKERS; i++)
        worker_join(w[i]);
    be_put(be);
    for (unsigned i = 0; i < WORKERS * DEPTH; i++)
        free(streams[i].buf);
    (void)unlink(path);
    return left != 0;
}

int
main(void)
{
    char dirs[2][64] = {"", "/dev/shm/evtgt-unit-XXXXXX"};
    const char *tmp = getenv("TMPDIR");
    int failed = 0;
    (void)snprintf(dirs[0], sizeof(dirs[0]), "%s/evtgt-unit-XXXXXX",
                   tmp != NULL ? tmp : "/var/tmp");
    if (helper_pool_start(2, 8) != 0)
        return 1;
    for (unsigned i = 0; i < 2; i++) {
        if (mkdtemp(dirs[i]) == NULL)
            continue;
        failed += run(dirs[i], ENGINE_AUTO, false);
        failed += run(dirs[i], ENGINE_POOL, i == 0);
        (void)rmdir(dirs[i]);
    }
    helper_pool_stop();
    printf("done=%u refused=%u bad=%u failed=%d\n", atomic_load(&done_ok),
           atomic_load(&done_refused), atomic_load(&bad), failed);
    return failed != 0 || atomic_load(&bad) != 0 || atomic_load(&done_ok) == 0 ||
           atomic_load(&done_refused) == 0;
}
