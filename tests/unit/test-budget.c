/* SPDX-License-Identifier: BSD-2-Clause */
/* Budgets: hierarchy, waiters, order, the shared level. */
#include "config.h"

#include <pthread.h>
#include <string.h>

#include "base/budget.h"
#include "base/clock.h"
#include "base/worker.h"
#include "tests/unit/unit.h"

static struct worker *w;
static struct budget daemon_budget;
static char ran[64]; /* names of waiters in the order in which they were served */

struct waiter {
    char name;
    struct budget_wait bw;
};

static void
on_bytes(struct budget_wait *bw)
{
    size_t n = strlen(ran);
    ran[n] = container_of(bw, struct waiter, bw)->name;
    ran[n + 1] = '\0';
}

static void
wait_for(struct budget *b, struct waiter *wt, char name, uint64_t bytes)
{
    wt->name = name;
    budget_wait(b, &wt->bw, bytes, on_bytes);
}

static void
start(uint64_t worker_bytes, uint64_t daemon_bytes)
{
    struct worker_opts o = {
        .engine = ENGINE_POOL, .mem_bytes = worker_bytes, .parent = &daemon_budget};
    clock_fake_set(1000000);
    budget_init(&daemon_budget, NULL, NULL, daemon_bytes);
    w = worker_new_local(&o);
    ran[0] = '\0';
}

static void
finish(void)
{
    worker_free_local(w);
    CU_ASSERT_EQUAL(daemon_budget.used, 0);
    budget_fini(&daemon_budget);
    clock_fake_off();
}

static void
test_hierarchy(void)
{
    struct budget s;
    start(1000, 1500);
    budget_init(&s, worker_budget(w), w, 600);
    CU_ASSERT_TRUE(budget_take(&s, 500));
    CU_ASSERT_EQUAL(s.used, 500);
    CU_ASSERT_EQUAL(worker_budget(w)->used, 500);
    CU_ASSERT_EQUAL(daemon_budget.used, 500);
    CU_ASSERT_FALSE(budget_take(&s, 101)); /* its own limit */
    CU_ASSERT_TRUE(budget_take(worker_budget(w), 450));
    CU_ASSERT_FALSE(budget_take(&s, 51)); /* the worker's */
    CU_ASSERT_TRUE(budget_take(&daemon_budget, 500));
    CU_ASSERT_FALSE(budget_take(&s, 51)); /* the daemon's */
    CU_ASSERT_EQUAL(s.used, 500);         /* a failure takes nothing anywhere */
    CU_ASSERT_EQUAL(worker_budget(w)->used, 950);
    CU_ASSERT_EQUAL(daemon_budget.used, 1450);
    CU_ASSERT_TRUE(budget_take(&s, 50));
    budget_give(&s, 550);
    budget_give(worker_budget(w), 450);
    budget_give(&daemon_budget, 500);
    CU_ASSERT_FALSE(budget_take(&s, UINT64_MAX) && s.used == 0);
    if (s.used)
        budget_give(&s, s.used);
    budget_fini(&s);
    finish();
}

static void
test_larger_than_limit(void)
{
    struct budget s;
    start(1000, 1500);
    budget_init(&s, worker_budget(w), w, 100);
    CU_ASSERT_TRUE(budget_take(&s, 5000)); /* nothing is used: it could never be served else */
    CU_ASSERT_FALSE(budget_take(&s, 1));
    budget_give(&s, 5000);
    CU_ASSERT_TRUE(budget_take(&s, 1));
    CU_ASSERT_FALSE(budget_take(&s, 5000));
    budget_give(&s, 1);
    budget_fini(&s);
    finish();
}

static void
test_order(void)
{
    struct budget s;
    struct waiter a, b, c;
    start(1000, 1500);
    budget_init(&s, worker_budget(w), w, 100);
    CU_ASSERT_TRUE(budget_take(&s, 90));
    wait_for(&s, &a, 'a', 80);
    wait_for(&s, &b, 'b', 5);
    wait_for(&s, &c, 'c', 5);
    CU_ASSERT_FALSE(budget_take(&s, 1)); /* fits, but does not overtake */
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "");
    budget_give(&s, 90);
    CU_ASSERT_STRING_EQUAL(ran, ""); /* never inside a call */
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "abc");
    CU_ASSERT_EQUAL(s.used, 90);
    CU_ASSERT_TRUE(budget_take(&s, 10));
    budget_give(&s, 100);
    budget_fini(&s);
    finish();
}

static void
test_wait_when_there(void)
{
    struct budget s;
    struct waiter a;
    start(1000, 1500);
    budget_init(&s, worker_budget(w), w, 100);
    wait_for(&s, &a, 'a', 50);
    CU_ASSERT_STRING_EQUAL(ran, "");
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "a");
    budget_wait_cancel(&s, &a.bw); /* nothing any more */
    CU_ASSERT_EQUAL(s.used, 50);
    budget_give(&s, 50);
    budget_fini(&s);
    finish();
}

static void
test_cancel(void)
{
    struct budget s;
    struct waiter a, b, c, z;
    start(1000, 1500);
    memset(&z, 0, sizeof z);
    budget_init(&s, worker_budget(w), w, 100);
    budget_wait_cancel(&s, &z.bw); /* zeroed */
    CU_ASSERT_TRUE(budget_take(&s, 60));
    wait_for(&s, &a, 'a', 80);
    wait_for(&s, &b, 'b', 30);
    wait_for(&s, &c, 'c', 30);
    budget_wait_cancel(&s, &a.bw); /* the first one held up the second */
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "b");
    budget_give(&s, 60);
    budget_wait_cancel(&s, &c.bw); /* granted, not run: given back */
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "b");
    CU_ASSERT_EQUAL(s.used, 30);
    budget_give(&s, 30);
    budget_fini(&s);
    finish();
}

/* Two sessions wait for the worker's bytes: they take turns, and nobody else comes before. */
static void
test_parent_full(void)
{
    struct budget s, t;
    struct waiter a, b, c, d;
    start(100, 1500);
    budget_init(&s, worker_budget(w), w, 1000);
    budget_init(&t, worker_budget(w), w, 1000);
    CU_ASSERT_TRUE(budget_take(worker_budget(w), 100));
    wait_for(&s, &a, 'a', 40);
    wait_for(&s, &b, 'b', 40);
    wait_for(&t, &c, 'c', 40);
    wait_for(&t, &d, 'd', 40);
    budget_give(worker_budget(w), 10);
    CU_ASSERT_FALSE(budget_take(&t, 5));
    CU_ASSERT_FALSE(budget_take(worker_budget(w), 5));
    budget_give(worker_budget(w), 80); /* 90 free: two of them */
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "ac");
    budget_give(&s, 40);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "acb");
    budget_wait_cancel(&t, &d.bw);
    CU_ASSERT_TRUE(budget_take(&t, 10));
    budget_give(&s, 40);
    budget_give(&t, 50);
    budget_give(worker_budget(w), 10);
    budget_fini(&s);
    budget_fini(&t);
    finish();
}

/* Cancelling the one that a level was kept for lets the next session in. */
static void
test_parent_cancel(void)
{
    struct budget s, t;
    struct waiter a, b;
    start(100, 1500);
    budget_init(&s, worker_budget(w), w, 1000);
    budget_init(&t, worker_budget(w), w, 1000);
    CU_ASSERT_TRUE(budget_take(&s, 50));
    wait_for(&s, &a, 'a', 90);
    wait_for(&t, &b, 'b', 30);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "");
    budget_wait_cancel(&s, &a.bw);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "b");
    budget_give(&s, 50);
    budget_give(&t, 30);
    budget_fini(&s);
    budget_fini(&t);
    finish();
}

static void
test_shared_full(void)
{
    struct budget s, t;
    struct waiter a, b;
    start(1000, 100);
    budget_init(&s, worker_budget(w), w, 1000);
    budget_init(&t, worker_budget(w), w, 1000);
    CU_ASSERT_TRUE(budget_take(&daemon_budget, 100)); /* as another worker would */
    wait_for(&s, &a, 'a', 40);
    wait_for(&t, &b, 'b', 40);
    budget_give(&daemon_budget, 60); /* no word of it reaches this worker */
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "");
    CU_ASSERT_FALSE(budget_take(&t, 5)); /* behind a and b */
    clock_fake_advance(10000);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "a");
    clock_fake_advance(10000);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "a");
    budget_give(&s, 40); /* own bytes: at once */
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "ab");
    budget_give(&t, 40);
    budget_give(&daemon_budget, 40);
    budget_fini(&s);
    budget_fini(&t);
    finish();
}

static void *
churn(void *arg)
{
    unsigned *got = arg;
    for (int i = 0; i < 20000; i++)
        if (budget_take(&daemon_budget, 7)) {
            (*got)++;
            budget_give(&daemon_budget, 7);
        }
    return NULL;
}

static void
test_shared_threads(void)
{
    pthread_t t[3];
    unsigned got[3] = {0};
    budget_init(&daemon_budget, NULL, NULL, 15);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, churn, &got[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(t[i], NULL);
        CU_ASSERT(got[i] > 0);
    }
    CU_ASSERT_EQUAL(daemon_budget.used, 0);
    budget_fini(&daemon_budget);
}

/* Sessions whose peers never take what they asked for fill the worker: one that holds nothing
 * still gets its first bytes, from the reserve, and again when it has given them back. */
static void
test_reserve(void)
{
    struct budget hog, good, third;
    struct waiter hogs = {0}, a = {0}, b = {0}, c = {0};
    start(1000, 10000);
    worker_budget(w)->reserve = 500;
    budget_init(&hog, worker_budget(w), w, 5000);
    budget_init(&good, worker_budget(w), w, 600);
    budget_init(&third, worker_budget(w), w, 600);
    CU_ASSERT_TRUE(budget_take(&hog, 900));
    CU_ASSERT_FALSE(budget_take(&hog, 200)); /* it holds something: no reserve for it */
    wait_for(&hog, &hogs, 'h', 200);
    CU_ASSERT_TRUE(budget_take(&good, 300)); /* past the one that waits */
    CU_ASSERT_FALSE(budget_take(&good, 100));
    wait_for(&good, &a, 'a', 300);
    wait_for(&good, &b, 'b', 100);
    CU_ASSERT_FALSE(budget_take(&third, 400)); /* the reserve has an end, too */
    wait_for(&third, &c, 'c', 400);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "");
    budget_give(&good, 300); /* holds nothing now: its turn before the hog's */
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "a");
    budget_give(&good, 300);
    worker_turn(w, false);
    CU_ASSERT_STRING_EQUAL(ran, "ab");
    budget_give(&hog, 900);
    worker_turn(w, false);
    CU_ASSERT_EQUAL(strlen(ran), 4); /* nobody is left waiting */
    CU_ASSERT_EQUAL(worker_budget(w)->used, 100 + 200 + 400);
    budget_give(&good, 100);
    budget_give(&hog, 200);
    budget_give(&third, 400);
    budget_fini(&hog);
    budget_fini(&good);
    budget_fini(&third);
    finish();
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"every level or none", test_hierarchy},
        {"more than the limit when unused", test_larger_than_limit},
        {"a reserve for who holds nothing", test_reserve},
        {"waiters in order, not overtaken", test_order},
        {"waiting for what is there", test_wait_when_there},
        {"cancel", test_cancel},
        {"the worker's level full", test_parent_full},
        {"cancel of a blocked child", test_parent_cancel},
        {"the shared level full", test_shared_full},
        {"the shared level from threads", test_shared_threads},
    };
    return UNIT_RUN("budget", tests);
}
