/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Disk requests, the same tests on both engines.  The file lies in the build directory, so that
 * O_DIRECT is tried on a real file system and not on tmpfs.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/counter.h"
#include "base/disk.h"
#include "base/helper.h"
#include "base/worker.h"
#include "tests/unit/unit.h"

#define FILE_BYTES (1024u * 1024u)

static enum disk_engine engine;
static struct worker *w;
static char path[64];
static int fd = -1;

static void
start(unsigned entries)
{
    struct worker_opts o = {.engine = engine, .ring_entries = entries};
    w = worker_new_local(&o);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    CU_ASSERT_EQUAL(worker_engine(w), engine);
    snprintf(path, sizeof path, "./unit-disk-%d.tmp", (int)getpid());
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(ftruncate(fd, FILE_BYTES), 0);
    for (unsigned i = 0; i < FILE_BYTES / 4096; i++) {
        char b[4096];
        memset(b, (int)(i & 255), sizeof b);
        CU_ASSERT_EQUAL(pwrite(fd, b, sizeof b, (off_t)i * 4096), 4096);
    }
}

static void
finish(void)
{
    CU_ASSERT_EQUAL(disk_in_flight(w), 0);
    worker_free_local(w);
    close(fd);
    unlink(path);
}

struct rq {
    struct disk_req req;
    struct iovec iov[4];
    bool done;
    int res;
    bool in_submit;
};

static void
on_done(struct disk_req *req, int res)
{
    struct rq *r = container_of(req, struct rq, req);
    CU_ASSERT_FALSE(r->done);
    CU_ASSERT_FALSE(r->in_submit);
    r->done = true;
    r->res = res;
}

static void
submit(struct rq *r)
{
    r->req.done = on_done;
    r->req.iov = r->iov;
    r->done = false;
    r->in_submit = true;
    disk_submit(w, &r->req);
    r->in_submit = false;
}

static void
turn_until(const struct rq *r)
{
    for (int i = 0; i < 10000 && !r->done; i++)
        worker_turn(w, true);
    CU_ASSERT_TRUE_FATAL(r->done);
}

static int
run(struct rq *r)
{
    submit(r);
    turn_until(r);
    return r->res;
}

static void
test_read_write(void)
{
    start(0);
    struct rq r;
    char a[100], b[5000], c[7];
    memset(&r, 0, sizeof r);
    r.req.op = DISK_READV;
    r.req.fd = fd;
    r.req.off = 4090;
    r.req.niov = 1;
    r.iov[0] = (struct iovec){a, 12};
    CU_ASSERT_EQUAL(run(&r), 12);
    CU_ASSERT_EQUAL(a[5], 0);
    CU_ASSERT_EQUAL(a[6], 1);
    /* gathered write, scattered read */
    memset(a, 'a', sizeof a);
    memset(b, 'b', sizeof b);
    memset(c, 'c', sizeof c);
    r.req.op = DISK_WRITEV;
    r.req.niov = 3;
    r.iov[0] = (struct iovec){a, sizeof a};
    r.iov[1] = (struct iovec){b, sizeof b};
    r.iov[2] = (struct iovec){c, sizeof c};
    CU_ASSERT_EQUAL(run(&r), 5107);
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    r.req.op = DISK_READV;
    CU_ASSERT_EQUAL(run(&r), 5107);
    CU_ASSERT_EQUAL(a[99], 'a');
    CU_ASSERT_EQUAL(b[0], 'b');
    CU_ASSERT_EQUAL(b[4999], 'b');
    r.req.op = DISK_WRITEV;
    r.req.niov = 1;
    r.req.rwf = RWF_DSYNC;
    CU_ASSERT_EQUAL(run(&r), 100);
    finish();
}

static void
test_short_and_errors(void)
{
    start(0);
    struct rq r;
    char a[8192];
    memset(&r, 0, sizeof r);
    r.req.op = DISK_READV;
    r.req.fd = fd;
    r.req.niov = 1;
    r.iov[0] = (struct iovec){a, sizeof a};
    r.req.off = FILE_BYTES - 100;
    CU_ASSERT_EQUAL(run(&r), 100); /* reported, not continued */
    r.req.off = FILE_BYTES;
    CU_ASSERT_EQUAL(run(&r), 0);
    r.req.fd = -1;
    CU_ASSERT_EQUAL(run(&r), -EBADF);
    r.req.fd = open(path, O_RDONLY | O_CLOEXEC);
    r.req.op = DISK_WRITEV;
    CU_ASSERT_EQUAL(run(&r), -EBADF);
    close(r.req.fd);
    finish();
}

static void
test_other_ops(void)
{
    start(0);
    struct rq r;
    struct stat st;
    char a[4096];
    memset(&r, 0, sizeof r);
    r.req.op = DISK_NOP;
    r.req.fd = -1;
    CU_ASSERT_EQUAL(run(&r), 0);
    r.req.fd = fd;
    r.req.op = DISK_FDATASYNC;
    CU_ASSERT_EQUAL(run(&r), 0);
    r.req.op = DISK_FALLOCATE;
    r.req.mode = 0;
    r.req.off = 0;
    r.req.len = FILE_BYTES + 65536;
    CU_ASSERT_EQUAL(run(&r), 0);
    CU_ASSERT_EQUAL(fstat(fd, &st), 0);
    CU_ASSERT_EQUAL(st.st_size, FILE_BYTES + 65536);
    r.req.mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    r.req.off = 8192;
    r.req.len = 8192;
    int res = run(&r);
    CU_ASSERT(res == 0 || res == -EOPNOTSUPP);
    if (res == 0) {
        CU_ASSERT_EQUAL(pread(fd, a, sizeof a, 8192), 4096);
        CU_ASSERT_EQUAL(a[0], 0);
        CU_ASSERT_EQUAL(a[4095], 0);
    }
    finish();
}

/*
 * One O_DIRECT read on a regular file and nothing else in the loop: its completion must wake the
 * loop.  A ring with DEFER_TASKRUN in epoll hangs here.
 */
static void
test_lone_direct_read(void)
{
    start(0);
    int dfd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (dfd < 0) {
        CU_ASSERT_EQUAL(errno, EINVAL); /* no O_DIRECT here (tmpfs) */
        finish();
        return;
    }
    CU_ASSERT_EQUAL(fsync(fd), 0);
    for (unsigned i = 0; i < 20; i++) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        struct buf *b = buf_get(worker_bufs(w), 4096);
        struct rq r;
        memset(&r, 0, sizeof r);
        r.req.op = DISK_READV;
        r.req.fd = dfd;
        r.req.off = i * 8192;
        r.req.niov = 1;
        r.iov[0] = (struct iovec){b->p, 4096};
        uint64_t t = clock_ms();
        CU_ASSERT_EQUAL(run(&r), 4096);
        CU_ASSERT(clock_ms() - t < 2000);
        CU_ASSERT_EQUAL(b->p[4095], (uint8_t)(i * 2));
        buf_put(b);
    }
    close(dfd);
    finish();
}

/* The same on a worker's thread, which really sleeps in its loop. */
static struct rq thread_rq;
static struct buf *thread_buf;
static pthread_mutex_t thread_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t thread_cond = PTHREAD_COND_INITIALIZER;
static bool thread_done;
static int thread_res;
static uint8_t thread_byte;

static void
on_thread_done(struct disk_req *req, int res)
{
    worker_assert_owner(req->w);
    pthread_mutex_lock(&thread_lock);
    thread_done = true;
    thread_res = res;
    thread_byte = thread_buf->p[4095];
    buf_put(thread_buf);
    pthread_cond_signal(&thread_cond);
    pthread_mutex_unlock(&thread_lock);
}

static void
on_thread_read(struct worker *tw, void *arg)
{
    memset(&thread_rq, 0, sizeof thread_rq);
    thread_buf = buf_get(worker_bufs(tw), 4096);
    thread_rq.iov[0] = (struct iovec){thread_buf->p, 4096};
    thread_rq.req.op = DISK_READV;
    thread_rq.req.fd = *(int *)arg;
    thread_rq.req.off = 3 * 4096;
    thread_rq.req.iov = thread_rq.iov;
    thread_rq.req.niov = 1;
    thread_rq.req.done = on_thread_done;
    disk_submit(tw, &thread_rq.req);
}

static void
test_lone_direct_read_thread(void)
{
    start(0);
    struct worker_opts o = {.engine = engine};
    struct worker *tw = worker_start(&o);
    CU_ASSERT_PTR_NOT_NULL_FATAL(tw);
    int dfd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (dfd < 0)
        dfd = open(path, O_RDONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL(fsync(fd), 0);
    for (int i = 0; i < 20; i++) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        thread_done = false;
        worker_post(tw, on_thread_read, &dfd);
        struct timespec until;
        clock_deadline(&until, 5000);
        pthread_mutex_lock(&thread_lock);
        int err = 0;
        while (!thread_done && err == 0)
            err = pthread_cond_timedwait(&thread_cond, &thread_lock, &until);
        CU_ASSERT_TRUE_FATAL(thread_done);
        CU_ASSERT_EQUAL(thread_res, 4096);
        CU_ASSERT_EQUAL(thread_byte, 3);
        pthread_mutex_unlock(&thread_lock);
    }
    close(dfd);
    worker_stop(tw);
    worker_join(tw);
    finish();
}

/* More requests at once than the ring has entries, and than it has completions for. */
static void
test_many(void)
{
    enum { N = 1000 };
    start(8);
    static struct rq r[N];
    static char b[N][512];
    uint64_t enters = counter_sum(CT_DISK_ENTERS), sent = counter_sum(CT_DISK_SUBMITTED);
    memset(r, 0, sizeof r);
    for (unsigned i = 0; i < N; i++) {
        r[i].req.op = DISK_READV;
        r[i].req.fd = fd;
        r[i].req.off = i % 256 * 4096ull;
        r[i].req.niov = 1;
        r[i].iov[0] = (struct iovec){b[i], 512};
        submit(&r[i]);
    }
    CU_ASSERT_EQUAL(disk_in_flight(w), N);
    for (unsigned i = 0; i < N; i++) {
        turn_until(&r[i]);
        CU_ASSERT_EQUAL(r[i].res, 512);
        CU_ASSERT_EQUAL((uint8_t)b[i][511], (uint8_t)i);
    }
    CU_ASSERT_EQUAL(counter_sum(CT_DISK_SUBMITTED) - sent, N);
    if (engine == ENGINE_RING)
        CU_ASSERT(counter_sum(CT_DISK_ENTERS) - enters < N / 2);
    finish();
}

/* A turn's requests go to the kernel in one call. */
static void
test_one_enter(void)
{
    enum { N = 64 };
    start(0);
    static struct rq r[N];
    memset(r, 0, sizeof r);
    uint64_t enters = counter_sum(CT_DISK_ENTERS);
    for (unsigned i = 0; i < N; i++) {
        r[i].req.op = DISK_NOP;
        r[i].req.fd = -1;
        submit(&r[i]);
    }
    for (unsigned i = 0; i < N; i++)
        turn_until(&r[i]);
    if (engine == ENGINE_RING)
        CU_ASSERT_EQUAL(counter_sum(CT_DISK_ENTERS) - enters, 1);
    finish();
}

/* A request that hangs (an empty pipe): canceled, or taken back before it started. */
static void
test_cancel(void)
{
    start(0);
    int p[2];
    char a[4], b[4];
    struct rq r, q;
    struct helper_lane lane;
    helper_lane_init(&lane, 1);
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    memset(&r, 0, sizeof r);
    r.req.op = DISK_READV;
    r.req.fd = p[0];
    r.req.off = UINT64_MAX; /* -1: the file's own position */
    r.req.niov = 1;
    r.req.lane = &lane;
    r.iov[0] = (struct iovec){a, sizeof a};
    q = r;
    q.iov[0] = (struct iovec){b, sizeof b};
    submit(&r);
    submit(&q);
    for (int i = 0; i < 20; i++) {
        worker_turn(w, false);
        usleep(1000);
    }
    CU_ASSERT_FALSE(r.done);
    CU_ASSERT_EQUAL(disk_in_flight(w), 2);
    disk_cancel(&q.req);
    disk_cancel(&q.req);
    CU_ASSERT_FALSE(q.done);
    turn_until(&q);
    CU_ASSERT_EQUAL(q.res, -ECANCELED);
    CU_ASSERT_FALSE(r.done);
    disk_cancel(&r.req);
    if (engine == ENGINE_POOL) { /* it runs: only its own end ends it */
        worker_turn(w, false);
        CU_ASSERT_FALSE(r.done);
        CU_ASSERT_EQUAL(write(p[1], "abcd", 4), 4);
        turn_until(&r);
        CU_ASSERT_EQUAL(r.res, 4);
    } else {
        turn_until(&r);
        CU_ASSERT_EQUAL(r.res, -ECANCELED);
    }
    disk_cancel(&r.req); /* over: nothing */
    CU_ASSERT_EQUAL(disk_in_flight(w), 0);
    close(p[0]);
    close(p[1]);
    finish();
    helper_lane_fini(&lane);
}

/* A cancel of what still waits for room in the ring, and of what is in it when it is full. */
static void
test_cancel_waiting(void)
{
    enum { N = 400 };
    if (engine == ENGINE_POOL)
        return;
    start(4);
    static struct rq r[N];
    static char b[N][4];
    int p[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    memset(r, 0, sizeof r);
    for (unsigned i = 0; i < N; i++) {
        r[i].req.op = DISK_READV;
        r[i].req.fd = p[0];
        r[i].req.off = UINT64_MAX;
        r[i].req.niov = 1;
        r[i].iov[0] = (struct iovec){b[i], 4};
        submit(&r[i]);
    }
    worker_turn(w, false);
    for (unsigned i = 0; i < N; i++)
        disk_cancel(&r[i].req);
    for (unsigned i = 0; i < N; i++) {
        turn_until(&r[i]);
        CU_ASSERT_EQUAL(r[i].res, -ECANCELED);
    }
    close(p[0]);
    close(p[1]);
    finish();
}

/* A completion that submits again, deep. */
static struct rq chain;
static unsigned chain_left;

static void
on_chain(struct disk_req *req, int res)
{
    CU_ASSERT_EQUAL(res, 0);
    if (chain_left-- > 0)
        disk_submit(req->w, req);
    else
        chain.done = true;
}

static void
test_chain(void)
{
    start(0);
    memset(&chain, 0, sizeof chain);
    chain_left = 500;
    chain.req.op = DISK_NOP;
    chain.req.fd = -1;
    chain.req.done = on_chain;
    disk_submit(w, &chain.req);
    turn_until(&chain);
    finish();
}

/* A worker ends at once though a device hangs, and what the request needs stays. */
static struct rq *hung_rq;

static void
on_hung(struct worker *tw, void *arg)
{
    (void)arg;
    disk_submit(tw, &hung_rq->req);
}

static void
test_hung_at_exit(void)
{
    static struct rq keep[2]; /* one an engine; outlive the test */
    static char mem[2][4];
    struct worker_opts o = {.engine = engine};
    struct worker *tw = worker_start(&o);
    int p[2];
    CU_ASSERT_PTR_NOT_NULL_FATAL(tw);
    CU_ASSERT_EQUAL_FATAL(pipe2(p, O_CLOEXEC), 0);
    hung_rq = &keep[engine == ENGINE_RING];
    hung_rq->iov[0] = (struct iovec){mem[engine == ENGINE_RING], 4};
    hung_rq->req.op = DISK_READV;
    hung_rq->req.fd = p[0];
    hung_rq->req.off = UINT64_MAX;
    hung_rq->req.iov = hung_rq->iov;
    hung_rq->req.niov = 1;
    hung_rq->req.done = on_done;
    worker_post(tw, on_hung, NULL);
    worker_stop(tw);
    uint64_t t = clock_ms();
    worker_join(tw);
    CU_ASSERT(clock_ms() - t < 1000);
    CU_ASSERT_FALSE(hung_rq->done);
    close(p[1]); /* lets the helper go */
    usleep(20000);
    close(p[0]);
}

/* Where the kernel refuses rings (here: seccomp, as in containers), AUTO takes the pool, RING says
 * why. In a child: a filter stays for ever. */
static void
test_refused(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {.len = sizeof code / sizeof code[0], .filter = code};
    fflush(stdout);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        struct worker_opts o = {.engine = ENGINE_RING};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &prog))
            _exit(0); /* cannot be tried here */
        errno = 0;
        if (worker_new_local(&o) || errno != EPERM)
            _exit(1);
        o.engine = ENGINE_AUTO;
        struct worker *lw = worker_new_local(&o);
        _exit(lw && worker_engine(lw) == ENGINE_POOL ? 0 : 2);
    }
    int status = -1;
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_EQUAL(status, 0);
}

#ifdef EVTGT_DEBUG
/* Giving a buffer back while the kernel may still write to it is caught in debug builds. */
static void
test_freed_early(void)
{
    fflush(stdout);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        struct worker_opts o = {.engine = engine};
        struct worker *lw = worker_new_local(&o);
        struct buf *b = lw ? buf_get(worker_bufs(lw), 4096) : NULL;
        struct rq *r = calloc(1, sizeof *r);
        int p[2];
        if (!b || !r || pipe2(p, O_CLOEXEC) < 0)
            _exit(1);
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        r->iov[0] = (struct iovec){b->p, 4096};
        r->req.op = DISK_READV;
        r->req.fd = p[0];
        r->req.off = UINT64_MAX;
        r->req.niov = 1;
        r->req.iov = r->iov;
        r->req.done = on_done;
        disk_submit(lw, &r->req);
        buf_put(b);
        _exit(0);
    }
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}
#endif

static void
on_ring(void (*fn)(void))
{
    engine = ENGINE_RING;
    struct worker_opts o = {.engine = ENGINE_RING};
    struct worker *probe = worker_new_local(&o);
    if (!probe) { /* seccomp, io_uring_disabled, an old kernel */
        printf("(no io_uring: %s) ", strerror(errno));
        o.engine = ENGINE_AUTO;
        probe = worker_new_local(&o);
        CU_ASSERT_PTR_NOT_NULL_FATAL(probe);
        CU_ASSERT_EQUAL(worker_engine(probe), ENGINE_POOL);
        worker_free_local(probe);
        return;
    }
    worker_free_local(probe);
    fn();
}

static void
on_pool(void (*fn)(void))
{
    engine = ENGINE_POOL;
    fn();
}

#define BOTH(name)                                                                                 \
    static void ring_##name(void)                                                                  \
    {                                                                                              \
        on_ring(test_##name);                                                                      \
    }                                                                                              \
    static void pool_##name(void)                                                                  \
    {                                                                                              \
        on_pool(test_##name);                                                                      \
    }

BOTH(read_write)
BOTH(short_and_errors)
BOTH(other_ops)
BOTH(lone_direct_read)
BOTH(lone_direct_read_thread)
BOTH(many)
BOTH(one_enter)
BOTH(cancel)
BOTH(cancel_waiting)
BOTH(chain)
BOTH(hung_at_exit)
#ifdef EVTGT_DEBUG
BOTH(freed_early)
#endif

int
main(void)
{
    static const struct unit_test tests[] = {
        {"ring: read, write", ring_read_write},
        {"pool: read, write", pool_read_write},
        {"ring: short transfers, errors", ring_short_and_errors},
        {"pool: short transfers, errors", pool_short_and_errors},
        {"ring: nop, sync, allocate", ring_other_ops},
        {"pool: nop, sync, allocate", pool_other_ops},
        {"ring: a lone O_DIRECT read", ring_lone_direct_read},
        {"pool: a lone O_DIRECT read", pool_lone_direct_read},
        {"ring: a lone O_DIRECT read, sleeping loop", ring_lone_direct_read_thread},
        {"pool: a lone O_DIRECT read, sleeping loop", pool_lone_direct_read_thread},
        {"ring: more than fits", ring_many},
        {"pool: more than fits", pool_many},
        {"ring: one enter a turn", ring_one_enter},
        {"pool: a batch", pool_one_enter},
        {"ring: cancel", ring_cancel},
        {"pool: cancel", pool_cancel},
        {"ring: cancel when full", ring_cancel_waiting},
        {"pool: cancel when full", pool_cancel_waiting},
        {"ring: submit from done", ring_chain},
        {"pool: submit from done", pool_chain},
        {"ring: a hung request at exit", ring_hung_at_exit},
        {"pool: a hung request at exit", pool_hung_at_exit},
        {"no ring to be had", test_refused},
#ifdef EVTGT_DEBUG
        {"ring: a buffer freed too early", ring_freed_early},
        {"pool: a buffer freed too early", pool_freed_early},
#endif
    };
    if (helper_pool_start(2, 8) < 0)
        return 1;
    int rc = UNIT_RUN("disk", tests);
    helper_pool_stop();
    return rc;
}
