/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers: messages, broadcast, deferred work, timers on a faked and the real clock, ownership. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/helper.h"
#include "base/worker.h"
#include "tests/unit/unit.h"

static char trace[256];

static void
mark(char c)
{
    size_t n = strlen(trace);
    if (n + 1 < sizeof trace) {
        trace[n] = c;
        trace[n + 1] = '\0';
    }
}

static struct worker *
local(void)
{
    struct worker_opts o = {.engine = ENGINE_POOL};
    trace[0] = '\0';
    struct worker *w = worker_new_local(&o);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    return w;
}

/* --- messages -------------------------------------------------------------------------------- */

static void
on_char(struct worker *w, void *arg)
{
    worker_assert_owner(w);
    mark(*(char *)arg);
}

static void
on_repost(struct worker *w, void *arg)
{
    mark('r');
    worker_post(w, on_char, arg);
}

static void
test_post_own(void)
{
    struct worker *w = local();
    char a = 'a', b = 'b', c = 'c';
    worker_post(w, on_char, &a);
    worker_post(w, on_repost, &c);
    worker_post(w, on_char, &b);
    CU_ASSERT_STRING_EQUAL(trace, "");
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(trace, "arb"); /* what is posted meanwhile is a later turn's */
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(trace, "arbc");
    worker_free_local(w);
}

struct seq {
    unsigned from, next;
};

static atomic_uint seq_bad, seq_seen;

struct seq_msg {
    struct seq *s;
    unsigned n;
};

static void
on_seq(struct worker *w, void *arg)
{
    struct seq_msg *m = arg;
    worker_assert_owner(w);
    if (worker_self() != w || m->n != m->s->next)
        atomic_fetch_add(&seq_bad, 1);
    m->s->next = m->n + 1; /* on w only */
    atomic_fetch_add(&seq_seen, 1);
    free(m);
}

struct poster {
    struct worker *to;
    struct seq s;
    pthread_t t;
};

static void *
post_many(void *arg)
{
    struct poster *p = arg;
    for (unsigned i = 0; i < 2000; i++) {
        struct seq_msg *m = malloc(sizeof *m);
        m->s = &p->s;
        m->n = i;
        worker_post(p->to, on_seq, m);
    }
    return NULL;
}

/* Three threads post to one worker: each one's messages come in order, none is lost. */
static void
test_post_threads(void)
{
    struct worker_opts o = {.id = 3};
    struct worker *w = worker_start(&o);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    CU_ASSERT_EQUAL(worker_id(w), 3);
    struct poster p[3];
    memset(p, 0, sizeof p);
    for (int i = 0; i < 3; i++) {
        p[i].to = w;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&p[i].t, NULL, post_many, &p[i]), 0);
    }
    for (int i = 0; i < 3; i++)
        pthread_join(p[i].t, NULL);
    worker_stop(w); /* after all of them */
    worker_join(w);
    CU_ASSERT_EQUAL(atomic_load(&seq_seen), 6000);
    CU_ASSERT_EQUAL(atomic_load(&seq_bad), 0);
}

/* --- broadcast ------------------------------------------------------------------------------- */

static atomic_uint bc_ran;
static bool bc_done;

static void
on_bc(struct worker *w, void *arg)
{
    (void)arg;
    worker_assert_owner(w);
    atomic_fetch_add(&bc_ran, 1);
}

static void
on_bc_done(struct worker *back, void *arg)
{
    worker_assert_owner(back);
    CU_ASSERT_PTR_EQUAL(arg, &bc_done);
    bc_done = true;
}

static void
broadcast_and_wait(struct worker *back)
{
    atomic_store(&bc_ran, 0);
    bc_done = false;
    worker_broadcast(on_bc, &bc_done, back, on_bc_done);
    CU_ASSERT_FALSE(bc_done);
    for (int i = 0; i < 1000 && !bc_done; i++)
        worker_turn(back, true);
    CU_ASSERT_TRUE(bc_done);
}

static void
test_broadcast(void)
{
    struct worker *back = local(), *w[3];
    worker_set_publish(NULL, 0);
    broadcast_and_wait(back); /* nobody: done all the same */
    CU_ASSERT_EQUAL(atomic_load(&bc_ran), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct worker_opts o = {.id = i};
        w[i] = worker_start(&o);
        CU_ASSERT_PTR_NOT_NULL_FATAL(w[i]);
    }
    worker_set_publish(w, 3);
    CU_ASSERT_EQUAL(worker_count(), 3);
    CU_ASSERT_PTR_EQUAL(worker_at(1), w[1]);
    broadcast_and_wait(back);
    CU_ASSERT_EQUAL(atomic_load(&bc_ran), 3);
    worker_stop(w[1]); /* counts as having run it, whether it takes the message or not */
    broadcast_and_wait(back);
    CU_ASSERT(atomic_load(&bc_ran) >= 2);
    worker_stop(w[0]);
    worker_stop(w[2]);
    worker_set_publish(NULL, 0);
    for (int i = 0; i < 3; i++)
        worker_join(w[i]);
    CU_ASSERT_EQUAL(worker_count(), 0);
    worker_free_local(back);
}

/* --- deferred work ---------------------------------------------------------------------------- */

struct def {
    struct deferred d;
    struct worker *w;
    char name;
    struct def *ready, *flush, *cancel; /* what it defers or cancels when it runs */
    int again;
};

static void
on_def(struct deferred *d)
{
    struct def *e = container_of(d, struct def, d);
    mark(e->name);
    if (e->ready)
        worker_defer(e->w, &e->ready->d);
    if (e->flush)
        worker_defer_flush(e->w, &e->flush->d);
    if (e->cancel)
        deferred_cancel(&e->cancel->d);
    if (e->again > 0) {
        e->again--;
        worker_defer(e->w, d);
    }
}

static void
def_init(struct def *e, struct worker *w, char name)
{
    memset(e, 0, sizeof *e);
    deferred_init(&e->d, on_def);
    e->w = w;
    e->name = name;
}

static void
test_defer_order(void)
{
    struct worker *w = local();
    struct def a, b, c, f, g;
    def_init(&a, w, 'a');
    def_init(&b, w, 'b');
    def_init(&c, w, 'c');
    def_init(&f, w, 'F');
    def_init(&g, w, 'G');
    worker_defer_flush(w, &f.d);
    worker_defer_flush(w, &f.d);
    worker_defer(w, &a.d);
    worker_defer(w, &a.d); /* queued already */
    worker_defer(w, &b.d);
    a.flush = &g;
    b.ready = &c; /* ready work of ready work comes before any flush */
    CU_ASSERT_STRING_EQUAL(trace, "");
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(trace, "abcFG");
    trace[0] = '\0';
    a.flush = b.ready = NULL;
    f.ready = &a; /* a flush that makes something ready: done in the same turn */
    a.flush = &g;
    worker_defer_flush(w, &f.d);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(trace, "FaG");
    worker_free_local(w);
}

static void
test_defer_cancel(void)
{
    struct worker *w = local();
    struct def a, b, c;
    def_init(&a, w, 'a');
    def_init(&b, w, 'b');
    def_init(&c, w, 'c');
    worker_defer(w, &a.d);
    worker_defer(w, &b.d);
    worker_defer(w, &c.d);
    a.cancel = &b; /* taken from the batch that is being run */
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(trace, "ac");
    deferred_cancel(&a.d); /* idempotent */
    worker_free_local(w);
}

/* Work that makes itself ready again does not keep the loop from turning. */
static void
test_defer_bound(void)
{
    struct worker *w = local();
    struct def a;
    def_init(&a, w, 'a');
    a.again = 100000;
    worker_defer(w, &a.d);
    worker_turn(w, true);
    CU_ASSERT(a.again > 0);
    CU_ASSERT(a.again < 100000);
    for (int i = 0; i < 10000 && a.again > 0; i++)
        worker_turn(w, true); /* sleeps never */
    CU_ASSERT_EQUAL(a.again, 0);
    worker_free_local(w);
}

/* --- timers ---------------------------------------------------------------------------------- */

struct tm_ {
    struct worker_timer t;
    char name;
    unsigned again;
};

static void
on_tm(struct worker_timer *t)
{
    struct tm_ *e = container_of(t, struct tm_, t);
    CU_ASSERT_FALSE(worker_timer_is_active(t));
    mark(e->name);
    if (e->again > 0) {
        e->again--;
        worker_timer_start_ms(t, 10);
    }
}

static void
test_timer_fake(void)
{
    clock_fake_set(777777);
    struct worker *w = local();
    struct tm_ a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c', .again = 2};
    struct tm_ zero;
    memset(&zero, 0, sizeof zero);
    CU_ASSERT_FALSE(worker_timer_is_active(&zero.t));
    worker_timer_init(&a.t, w, on_tm);
    worker_timer_init(&b.t, w, on_tm);
    worker_timer_init(&c.t, w, on_tm);
    worker_timer_start_ms(&a.t, 2000);
    worker_timer_start_ms(&b.t, 1000);
    CU_ASSERT_TRUE(worker_timer_is_active(&a.t));
    worker_turn(w, false);
    clock_fake_advance(999999);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(trace, "");
    clock_fake_advance(1);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(trace, "b");
    worker_timer_start_ms(&a.t, 5000); /* restarts */
    worker_timer_start_ms(&b.t, 6000);
    clock_fake_advance(4000000);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(trace, "b");
    clock_fake_advance(9000000);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(trace, "bab"); /* in the order in which they were due */
    worker_timer_start_ms(&c.t, 10);
    for (int i = 0; i < 5; i++) {
        clock_fake_advance(10000);
        worker_turn(w, false);
    }
    CU_ASSERT_STRING_EQUAL(trace, "babccc");
    worker_timer_start_ms(&a.t, 1);
    worker_timer_stop(&a.t);
    worker_timer_stop(&a.t);
    clock_fake_advance(10000000);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(trace, "babccc");
    worker_free_local(w);
    clock_fake_off();
}

static void
test_timer_real(void)
{
    struct worker *w = local();
    struct tm_ a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
    worker_timer_init(&a.t, w, on_tm);
    worker_timer_init(&b.t, w, on_tm);
    worker_timer_init(&c.t, w, on_tm);
    usleep(30000); /* the loop's idea of now is old */
    uint64_t start = clock_us();
    worker_timer_start_ms(&a.t, 120);
    worker_timer_start_ms(&b.t, 20);
    worker_timer_start_us(&c.t, 0);
    while (strlen(trace) < 2)
        worker_turn(w, true);
    CU_ASSERT_STRING_EQUAL(trace, "cb");
    CU_ASSERT(clock_us() - start >= 20000); /* never early */
    while (strlen(trace) < 3)
        worker_turn(w, true);
    CU_ASSERT(clock_us() - start >= 120000);
    worker_free_local(w);
}

/* --- life ------------------------------------------------------------------------------------ */

static void
on_main_stop(struct worker *w, void *arg)
{
    mark(*(char *)arg);
    worker_stop(w);
}

static void
test_main_worker(void)
{
    struct worker_opts o = {0};
    char m = 'm';
    for (int i = 0; i < 2; i++) { /* it can be made again */
        trace[0] = '\0';
        struct worker *w = worker_main_init(&o);
        CU_ASSERT_PTR_NOT_NULL_FATAL(w);
        CU_ASSERT_EQUAL(worker_engine(w), ENGINE_POOL);
        CU_ASSERT_PTR_EQUAL(worker_self(), w);
        CU_ASSERT_PTR_EQUAL(worker_loop(w), ev_default_loop(0));
        worker_post(w, on_main_stop, &m);
        worker_run(w);
        CU_ASSERT_STRING_EQUAL(trace, "m");
        worker_main_fini(w);
        CU_ASSERT_PTR_NULL(worker_self());
    }
}

static atomic_uint turns;

static void
on_turns(struct worker *w, void *arg)
{
    (void)arg;
    atomic_store(&turns, ev_iteration(worker_loop(w)));
}

/* A worker with nothing to do sleeps. */
static void
test_idle(void)
{
    static const enum disk_engine engines[] = {ENGINE_AUTO, ENGINE_POOL};
    for (int e = 0; e < 2; e++) {
        struct worker_opts o = {.engine = engines[e]};
        struct worker *w = worker_start(&o);
        CU_ASSERT_PTR_NOT_NULL_FATAL(w);
        worker_post(w, on_turns, NULL);
        usleep(50000);
        unsigned before = atomic_load(&turns);
        usleep(500000);
        worker_post(w, on_turns, NULL);
        usleep(50000);
        CU_ASSERT(atomic_load(&turns) - before <= 3);
        worker_stop(w);
        worker_join(w);
    }
}

static void
test_orphans(void)
{
    struct worker *w = local();
    struct list a, b;
    list_init(&a);
    list_init(&b);
    worker_orphan_add(w, &a);
    worker_orphan_add(w, &b);
    CU_ASSERT_EQUAL(worker_orphan_count(w), 2);
    worker_orphan_del(w, &a);
    worker_orphan_del(w, &b);
    CU_ASSERT_EQUAL(worker_orphan_count(w), 0);
    worker_free_local(w);
}

/* Touching another thread's worker aborts. */
static void
test_assert_owner(void)
{
    struct worker_opts o = {.engine = ENGINE_POOL};
    struct worker *w = worker_start(&o);
    CU_ASSERT_PTR_NOT_NULL_FATAL(w);
    fflush(stdout);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        worker_assert_owner(w);
        _exit(0);
    }
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    worker_stop(w);
    worker_join(w);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"post to oneself", test_post_own},
        {"post from threads", test_post_threads},
        {"broadcast", test_broadcast},
        {"order of deferred work", test_defer_order},
        {"cancel deferred work", test_defer_cancel},
        {"deferred work is bounded", test_defer_bound},
        {"timers on a faked clock", test_timer_fake},
        {"timers on the real clock", test_timer_real},
        {"the main worker", test_main_worker},
        {"an idle worker sleeps", test_idle},
        {"orphans", test_orphans},
        {"ownership", test_assert_owner},
    };
    if (helper_pool_start(1, 4) < 0)
        return 1;
    int rc = UNIT_RUN("worker", tests);
    helper_pool_stop();
    return rc;
}
