/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper pool: results on the worker, lanes, cancel, growth. */
#include "config.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "base/helper.h"
#include "base/worker.h"
#include "tests/unit/unit.h"

static struct worker *w;

struct job {
    struct helper_job job;
    char name;
    sem_t *entered, *gate; /* or NULL */
    bool ran, done;
    pthread_t thread;
};

static char order[64];

static void
on_run(struct helper_job *hj)
{
    struct job *j = container_of(hj, struct job, job);
    j->thread = pthread_self();
    if (j->entered)
        sem_post(j->entered);
    if (j->gate)
        while (sem_wait(j->gate) != 0)
            ;
    j->ran = true;
}

static void
on_done(struct helper_job *hj)
{
    struct job *j = container_of(hj, struct job, job);
    CU_ASSERT_PTR_EQUAL(worker_self(), w);
    CU_ASSERT_TRUE(j->ran);
    CU_ASSERT_FALSE(pthread_equal(j->thread, pthread_self()));
    size_t n = strlen(order);
    order[n] = j->name;
    order[n + 1] = '\0';
    j->done = true;
}

static void
submit(struct job *j, char name, struct helper_lane *lane, sem_t *entered, sem_t *gate)
{
    memset(j, 0, sizeof *j);
    j->job.run = on_run;
    j->job.done = on_done;
    j->job.w = w;
    j->job.lane = lane;
    j->name = name;
    j->entered = entered;
    j->gate = gate;
    helper_submit(&j->job);
}

static void
turn_until(const bool *flag)
{
    for (int i = 0; i < 1000 && !*flag; i++)
        worker_turn(w, true);
    CU_ASSERT_TRUE_FATAL(*flag);
}

static void
start(unsigned min, unsigned max)
{
    struct worker_opts o = {.engine = ENGINE_POOL};
    CU_ASSERT_EQUAL_FATAL(helper_pool_start(min, max), 0);
    w = worker_new_local(&o);
    order[0] = '\0';
}

static void
finish(void)
{
    worker_free_local(w);
    helper_pool_stop();
}

static void
test_done_on_worker(void)
{
    struct job a;
    start(1, 1);
    submit(&a, 'a', NULL, NULL, NULL);
    CU_ASSERT_FALSE(a.done);
    turn_until(&a.done);
    submit(&a, 'b', NULL, NULL, NULL); /* the same job again */
    turn_until(&a.done);
    CU_ASSERT_STRING_EQUAL(order, "ab");
    finish();
}

/* A hung lane holds as many threads as it may, and others get through. */
static void
test_lane(void)
{
    struct helper_lane slow, one;
    struct job s[4], other, o[3];
    sem_t entered, gate;
    start(1, 3);
    sem_init(&entered, 0, 0);
    sem_init(&gate, 0, 0);
    helper_lane_init(&slow, 2);
    helper_lane_init(&one, 1);
    for (int i = 0; i < 4; i++)
        submit(&s[i], 's', &slow, &entered, &gate);
    sem_wait(&entered);
    sem_wait(&entered);
    submit(&other, 'x', NULL, NULL, NULL);
    turn_until(&other.done);
    for (int i = 0; i < 3; i++) /* a lane of one is a queue in order */
        submit(&o[i], (char)('1' + i), &one, NULL, NULL);
    turn_until(&o[2].done);
    CU_ASSERT_STRING_EQUAL(order, "x123");
    CU_ASSERT_NOT_EQUAL(sem_trywait(&entered), 0); /* the other two wait in the lane */
    for (int i = 0; i < 4; i++)
        sem_post(&gate);
    for (int i = 0; i < 4; i++)
        turn_until(&s[i].done);
    CU_ASSERT_STRING_EQUAL(order, "x123ssss");
    helper_lane_fini(&slow);
    helper_lane_fini(&one);
    finish();
    sem_destroy(&entered);
    sem_destroy(&gate);
}

static void
test_cancel(void)
{
    struct helper_lane lane;
    struct job running, queued, in_lane, last;
    sem_t entered, gate;
    start(1, 1);
    sem_init(&entered, 0, 0);
    sem_init(&gate, 0, 0);
    helper_lane_init(&lane, 1);
    submit(&running, 'r', NULL, &entered, &gate);
    sem_wait(&entered);
    submit(&queued, 'q', &lane, NULL, NULL);
    submit(&in_lane, 'l', &lane, NULL, NULL);
    submit(&last, 'z', &lane, NULL, NULL);
    CU_ASSERT_FALSE(helper_cancel(&running.job));
    CU_ASSERT_TRUE(helper_cancel(&in_lane.job));
    CU_ASSERT_FALSE(helper_cancel(&in_lane.job));
    CU_ASSERT_TRUE(helper_cancel(&queued.job)); /* and the next of the lane moves up */
    sem_post(&gate);
    turn_until(&last.done);
    CU_ASSERT_FALSE(helper_cancel(&last.job));
    CU_ASSERT_STRING_EQUAL(order, "rz");
    CU_ASSERT_FALSE(queued.ran);
    CU_ASSERT_FALSE(in_lane.ran);
    helper_lane_fini(&lane);
    finish();
    sem_destroy(&entered);
    sem_destroy(&gate);
}

/* Jobs that wait for each other need as many threads: the pool grows up to its maximum. */
static void
test_growth(void)
{
    struct job j[4], extra;
    sem_t entered, gate;
    start(1, 4);
    sem_init(&entered, 0, 0);
    sem_init(&gate, 0, 0);
    for (int i = 0; i < 4; i++)
        submit(&j[i], 'j', NULL, &entered, &gate);
    for (int i = 0; i < 4; i++)
        sem_wait(&entered);
    submit(&extra, 'e', NULL, &entered, NULL);
    CU_ASSERT_NOT_EQUAL(sem_trywait(&entered), 0);
    for (int i = 0; i < 4; i++)
        sem_post(&gate);
    turn_until(&extra.done);
    for (int i = 0; i < 4; i++)
        turn_until(&j[i].done);
    finish();
    sem_destroy(&entered);
    sem_destroy(&gate);
}

/* Neither the worker nor the pool waits for a job that hangs. */
static void
test_hung_at_exit(void)
{
    static struct job j; /* static: it outlives the test */
    static sem_t entered, gate;
    start(1, 1);
    sem_init(&entered, 0, 0);
    sem_init(&gate, 0, 0);
    submit(&j, 'h', NULL, &entered, &gate);
    sem_wait(&entered);
    worker_free_local(w); /* w stays: the job points to it */
    helper_pool_stop();
    CU_ASSERT_FALSE(j.done);
    sem_post(&gate);
}

int
main(void)
{
    static const struct unit_test tests[] = {
        {"done on the worker", test_done_on_worker},
        {"lanes", test_lane},
        {"cancel", test_cancel},
        {"growth", test_growth},
        {"a hung job at exit", test_hung_at_exit},
    };
    return UNIT_RUN("helper", tests);
}
