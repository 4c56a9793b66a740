/* join.c - a task's result reaches all joiners: fibers or OS threads, before, while and after the task runs, one
 * or many. */
#include "harness.h"

#include "../contexts.h"
#include "../crew.h"
#include "../gate.h"
#include "../joiners.h"
#include "task/task.h"
#include "wait/arm.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>

static void *give_back(void *arg) {
    return arg;
}

/* Runs until somebody opens the gate that it gets. */
static void *wait_at(void *gate) {
    gate_wait(gate);
    return gate;
}

/* ---- plain ---- */

static void join_plain(void) {
    int x;
    for (long i = 0; i < test_rounds(1000, 50000); i++) {
        CCTask task = cc_fiber_spawn_task(give_back, &x);
        CHECK(task.id != 0);
        void *result = NULL;
        CHECK_EQ(cc_task_join(&task, &result), 0);
        CHECK(result == &x);
        CHECK_EQ(task.id, 0);
    }
    CCTask task = cc_fiber_spawn_task(give_back, &x);
    CHECK_EQ(cc_task_join(&task, NULL), 0); /* nobody asks for the result */
    CHECK_EQ(cc_spawn(&task, give_back, &x, NULL), 0);
    CHECK(cc_block_on(task) == &x);
    void *result = &result;
    CHECK_EQ(cc_run(give_back, NULL, &result), 0);
    CHECK(result == NULL);
    CHECK_EQ(cc_run(give_back, &x, NULL), 0);
}

TEST_WORKERS(plain) {
    in_both_contexts(join_plain);
}

/* ---- bad arguments ---- */

static void join_badly(void) {
    CCTask none = {0};
    void *result = &none;
    CHECK_EQ(cc_task_join(NULL, &result), EINVAL);
    CHECK_EQ(cc_task_join(&none, &result), EINVAL);
    CHECK_EQ(cc_task_join_try(NULL, &result), EINVAL);
    CHECK_EQ(cc_task_join_try(&none, &result), EINVAL);
    CHECK_EQ(cc_task_join_until(NULL, &result, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_task_join_until(&none, &result, CC_PASSED), EINVAL);
    CHECK_EQ(cc_task_detach(NULL), EINVAL);
    CHECK_EQ(cc_task_detach(&none), EINVAL);
    CHECK(cc_block_on(none) == NULL);
    CHECK(result == &none); /* an error stores nothing */
    CHECK_EQ(cc_run(NULL, &none, &result), EINVAL);
    CHECK_EQ(cc_fiber_spawn_task(NULL, &none).id, 0);
    CCTask task = {77};
    CHECK_EQ(cc_spawn(&task, NULL, NULL, NULL), EINVAL);
    CHECK_EQ(task.id, 0);
    CHECK_EQ(cc_spawn(NULL, NULL, NULL, NULL), EINVAL);
}

TEST(bad_arguments) {
    join_badly();
    CHECK_EQ(cc_worker_count(), 0); /* nothing has started the runtime */
    in_both_contexts(join_badly);
}

/* Ids that no task ever had: every slot and generation that is possible. */
static void join_inventions(void) {
    static const CCFiberId inventions[] = {
        1,          UINT32_MAX,     UINT64_C(1) << 32,          UINT64_C(1) << 63,
        UINT64_MAX, UINT64_MAX - 1, UINT64_C(0xffffffff) << 32, (UINT64_C(1) << 32) + 1,
        8192,       8193,           UINT64_C(134217728),        UINT64_C(134217729)};
    void *result = NULL;
    for (size_t i = 0; i < array_len(inventions); i++) {
        CCTask task = {inventions[i]}, copy = {55};
        CHECK_EQ(cc_task_join(&task, &result), ESRCH);
        CHECK_EQ(cc_task_join_try(&task, &result), ESRCH);
        CHECK_EQ(cc_task_join_until(&task, &result, CC_FOREVER), ESRCH);
        CHECK_EQ(cc_task_join_until(&task, &result, CC_PASSED), ESRCH);
        CHECK_EQ(cc_task_detach(&task), ESRCH);
        CHECK_EQ(cc_task_dup(&task, &copy), ESRCH);
        CHECK_EQ(copy.id, 0);
        CHECK(cc_block_on(task) == NULL);
        CHECK_EQ(task.id, inventions[i]);
    }
}

TEST(invented_ids) {
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0); /* the runtime runs, and has one slab of records */
    in_both_contexts(join_inventions);
}

/* ---- try and until ---- */

static void join_impatiently(void) {
    struct gate gate = {0};
    CCTask task = cc_fiber_spawn_task(wait_at, &gate);
    void *result = &task;
    for (int i = 0; i < 100; i++) CHECK_EQ(cc_task_join_try(&task, &result), EAGAIN);
    CHECK_EQ(cc_task_join_until(&task, &result, CC_PASSED), ETIMEDOUT);
    CCDeadline soon = cc_after_ms(2);
    CHECK_EQ(cc_task_join_until(&task, &result, soon), ETIMEDOUT);
    CHECK(cc_now_ns() >= soon.ns);
    CHECK(result == &task);
    CHECK(task.id != 0);
    CHECK_EQ(joiners_of(task), 0); /* a joiner that timed out is unlinked */
    (void)gate_open(&gate);
    CHECK_EQ(cc_task_join_until(&task, &result, cc_after_ms(60 * 1000)), 0);
    CHECK(result == &gate);
    CHECK_EQ(task.id, 0);
}

TEST_WORKERS(try_and_until) {
    in_both_contexts(join_impatiently);
}

static void join_ended(void) {
    int x;
    for (int way = 0; way < 4; way++) {
        CCTask task = cc_fiber_spawn_task(give_back, &x), copy;
        CHECK_EQ(cc_task_dup(&task, &copy), 0);
        CHECK_EQ(cc_task_join_until(&copy, NULL, cc_after_ms(60 * 1000)), 0); /* it has ended now */
        void *result = NULL;
        switch (way) {
        case 0:
            CHECK_EQ(cc_task_join(&task, &result), 0);
            break;
        case 1:
            CHECK_EQ(cc_task_join_try(&task, &result), 0);
            break;
        case 2:
            CHECK_EQ(cc_task_join_until(&task, &result, CC_PASSED), 0);
            break; /* no wait, no timeout */
        default:
            result = cc_block_on(task);
        }
        CHECK(result == &x);
    }
}

TEST_WORKERS(after_the_end) {
    in_both_contexts(join_ended);
}

/* The deadline and the end race: the result is one of the two, and the handle is consumed only if it is the end. */
static void *run_a_little(void *arg) {
    for (uintptr_t i = 0; i < (uintptr_t)arg % 64; i++) cc_yield();
    return arg;
}

static void join_at_the_last_moment(void) {
    uint64_t random = test_seed();
    for (long i = 0; i < test_rounds(500, 50000); i++) {
        void *arg = (void *)(uintptr_t)(test_random(&random) | 1), *result = NULL;
        CCTask task = cc_fiber_spawn_task(run_a_little, arg);
        int rc = cc_task_join_until(&task, &result, cc_after_ns(test_random(&random) % 20000));
        CHECK(rc == 0 || rc == ETIMEDOUT);
        CHECK_EQ(rc == 0, task.id == 0);
        if (rc == ETIMEDOUT) CHECK_EQ(cc_task_join(&task, &result), 0);
        CHECK(result == arg);
    }
}

TEST_WORKERS(deadline_meets_end) {
    in_both_contexts(join_at_the_last_moment);
}

/* ---- an OS thread joins a task in each of its states ---- */

TEST_WORKERS(thread_joins_a_running_task) {
    for (long i = 0; i < test_rounds(50, 5000); i++) {
        struct gate gate = {0};
        CCTask task = cc_fiber_spawn_task(wait_at, &gate);
        while (cc__get_seq(&gate.fiber) == NULL) sched_yield(); /* it runs, or has parked */
        (void)gate_open(&gate);
        CHECK(cc_block_on(task) == &gate);
    }
}

static _Atomic bool spinning, stop;

static void *spin(void *arg) {
    cc__set(&spinning, true);
    while (!cc__get(&stop)) {
    }
    return arg;
}

/* The only worker is busy: the task cannot start before the join waits. */
struct pair {
    CCTask task;
    void *result;
    int rc;
};

static void join_one(int index, void *arg) {
    struct pair *pair = arg;
    pair[index].rc = cc_task_join(&pair[index].task, &pair[index].result);
}

TEST(thread_joins_a_task_that_has_not_started) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CCTask busy = cc_fiber_spawn_task(spin, NULL);
    while (!cc__get(&spinning)) sched_yield();
    struct pair pair = {.task = cc_fiber_spawn_task(give_back, &config)};
    struct crew crew;
    CCTask watched = pair.task;
    crew_start(&crew, 1, join_one, &pair);
    while (joiners_of(watched) == 0) sched_yield();
    cc__set(&stop, true);
    crew_join(&crew);
    CHECK_EQ(pair.rc, 0);
    CHECK(pair.result == &config);
    CHECK_EQ(cc_task_join(&busy, NULL), 0);
}

/* ---- many joiners ---- */

enum { FIBERS = 20, THREADS = 6, JOINERS = FIBERS + THREADS };
static struct pair joiners[JOINERS];

static void *join_in_fiber(void *arg) {
    struct pair *pair = arg;
    /* Three ways to wait. */
    int way = (int)(pair - joiners) % 3;
    pair->rc = way == 0   ? cc_task_join(&pair->task, &pair->result)
               : way == 1 ? cc_task_join_until(&pair->task, &pair->result, cc_after_ms(60 * 1000))
                          : cc_task_join_until(&pair->task, &pair->result, CC_FOREVER);
    return NULL;
}

/* copies: the joiners share one handle instead of having one each. */
static void many_joiners(bool copies) {
    for (long round = 0; round < test_rounds(20, 2000); round++) {
        struct gate gate = {0};
        struct crew crew;
        CCTask task = cc_fiber_spawn_task(wait_at, &gate), waiting[FIBERS], last = task;
        while (cc__get_seq(&gate.fiber) == NULL) sched_yield(); /* it has started: no joiner can run it itself */
        for (int i = 0; i < JOINERS; i++) {
            joiners[i] = (struct pair){.task = task, .rc = -1};
            if (!copies) CHECK_EQ(cc_task_dup(&task, &joiners[i].task), 0);
        }
        for (int i = 0; i < FIBERS; i++) waiting[i] = cc_fiber_spawn_task(join_in_fiber, &joiners[i]);
        crew_start(&crew, THREADS, join_one, joiners + FIBERS);
        while (joiners_of(task) < JOINERS) sched_yield();
        (void)gate_open(&gate);
        for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_task_join(&waiting[i], NULL), 0);
        crew_join(&crew);
        for (int i = 0; i < JOINERS; i++) {
            CHECK_EQ(joiners[i].rc, 0);
            CHECK(joiners[i].result == &gate);
            CHECK_EQ(joiners[i].task.id, 0);
        }
        /* The first handle was given to all of them, or is still there. */
        CHECK_EQ(cc_task_join(&task, NULL), copies ? ESRCH : 0);
        CHECK_EQ(cc_task_join(&last, NULL), ESRCH);
    }
}

TEST_WORKERS(many_joiners_with_a_handle_each) {
    many_joiners(false);
}

TEST_WORKERS(many_joiners_with_copies_of_one) {
    many_joiners(true);
}

/* Some of the waiters give up while the task ends. */
static void *join_briefly(void *arg) {
    struct pair *pair = arg;
    uint64_t random = (uint64_t)(uintptr_t)pair ^ cc_now_ns();
    do pair->rc = cc_task_join_until(&pair->task, &pair->result, cc_after_ns(test_random(&random) % 50000));
    while (pair->rc == ETIMEDOUT);
    return NULL;
}

static void join_briefly_in_thread(int index, void *arg) {
    (void)join_briefly((struct pair *)arg + index);
}

TEST_WORKERS(joiners_come_and_go) {
    for (long round = 0; round < test_rounds(20, 2000); round++) {
        struct crew crew;
        CCTask task = cc_fiber_spawn_task(run_a_little, (void *)(uintptr_t)63), waiting[FIBERS];
        for (int i = 0; i < JOINERS; i++) {
            joiners[i] = (struct pair){.rc = -1};
            CHECK_EQ(cc_task_dup(&task, &joiners[i].task), 0);
        }
        for (int i = 0; i < FIBERS; i++) waiting[i] = cc_fiber_spawn_task(join_briefly, &joiners[i]);
        crew_start(&crew, THREADS, join_briefly_in_thread, joiners + FIBERS);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
        crew_join(&crew);
        for (int i = 0; i < FIBERS; i++) CHECK_EQ(cc_task_join(&waiting[i], NULL), 0);
        for (int i = 0; i < JOINERS; i++) {
            CHECK_EQ(joiners[i].rc, 0);
            CHECK_EQ((uintptr_t)joiners[i].result, 63);
        }
    }
}

/* ---- many spawners ---- */

static void spawn_and_join(int index, void *arg) {
    (void)arg;
    enum { BATCH = 100 };
    CCTask tasks[BATCH];
    for (long round = 0; round < test_rounds(30, 2000); round++) {
        for (uintptr_t i = 0; i < BATCH; i++)
            tasks[i] = cc_fiber_spawn_task(give_back, (void *)((uintptr_t)index * 1000 + i + 1));
        for (uintptr_t i = 0; i < BATCH; i++) {
            void *result = NULL;
            CHECK_EQ(cc_task_join(&tasks[i], &result), 0);
            CHECK_EQ((uintptr_t)result, (uintptr_t)index * 1000 + i + 1);
        }
    }
}

/* The runtime is started by whichever comes first. */
TEST_WORKERS(many_threads_spawn) {
    crew_run(8, spawn_and_join, NULL);
    CHECK(cc_worker_count() > 0);
}

/* ---- detached ---- */

static _Atomic long ended;

static void *count(void *arg) {
    cc__add(&ended, 1);
    return arg;
}

static void spawn_detached(void) {
    for (long i = 0; i < test_rounds(500, 20000); i++) {
        CHECK_EQ(cc_spawn(NULL, count, NULL, NULL), 0);
        CCTask task = cc_fiber_spawn_task(count, NULL);
        CHECK_EQ(cc_task_detach(&task), 0);
        CHECK_EQ(task.id, 0);
    }
}

TEST_WORKERS(detached_tasks_run) {
    in_both_contexts(spawn_detached);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(ended, 4 * test_rounds(500, 20000));
}
