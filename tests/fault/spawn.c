/* spawn.c - spawns and first runs without memory: ENOMEM from the spawn, or from the join of a task that got
 * no stack; all others continue. */
#include "fail.h"
#include "harness.h"

#include "../unit/contexts.h"
#include "../unit/crew.h"
#include "../unit/joiners.h"
#include "task/task.h"
#include "wait/arm.h"

#include <ccc/ccc.h>
#include <sched.h>

static _Atomic long ran;

static void *count(void *arg) {
    cc__add(&ran, 1);
    return arg;
}

/* ---- options: a block of memory each ---- */

static const CCSpawnOptions kinds[] = {
    {.name = "named"},
    {.arg_size = 200},
    {.name = "both", .arg_size = CC_SPAWN_ARG_MAX},
    {.name = "small", .stack_size = CC_STACK_SIZE_MIN},
    {.stack_size = 2 * 1024 * 1024},
};

static void spawn_each_kind(void) {
    static char bytes[CC_SPAWN_ARG_MAX];
    for (size_t kind = 0; kind < array_len(kinds); kind++) {
        bool failed_once = false;
        for (long n = 1; n < 100; n++) {
            CCTask task = {6};
            cc__set(&ran, 0);
            fail_arm(n, FAIL_MEMORY | FAIL_MAP, n % 2 == 0);
            int rc = cc_spawn(&task, count, bytes, &kinds[kind]);
            CHECK(rc == 0 || rc == ENOMEM);
            CHECK_EQ(rc == 0, task.id != 0);
            int joined = rc == 0 ? cc_task_join(&task, NULL) : ENOMEM;
            long failed = fail_disarm();
            CHECK(joined == 0 || joined == ENOMEM);
            CHECK_EQ(task.id, 0);
            CHECK_EQ(cc__get(&ran), joined == 0); /* it has run, or it has not */
            if (joined != 0) CHECK(failed > 0);
            failed_once = failed_once || failed > 0;
            CHECK_EQ(cc_spawn(&task, count, bytes, &kinds[kind]), 0);
            CHECK_EQ(cc_task_join(&task, NULL), 0);
            if (failed == 0) break;
            CHECK(n < 99);
        }
        CHECK(failed_once);
    }
}

TEST_WORKERS(with_options) {
    fail_begin();
    in_both_contexts(spawn_each_kind);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(fail.blocks, 0); /* every block is freed, that of a task without a stack too */
    CHECK_EQ(fail.mapped, 0);
}

/* ---- records: a mapping for some thousands ---- */

static _Atomic bool stop;

/* Spawns until the records run out: the spawn fails, the others are not affected, and there are free records again
 * later. */
static void *spawn_until_full(void *arg) {
    (void)arg;
    enum { MOST = 20000 }; /* a slab holds 8,192 */
    static CCTask tasks[MOST];
    cc__set(&stop, false);
    cc__set(&ran, 0);
    int n = 0, rc = 0;
    fail_arm(1, FAIL_MAP, true);
    while (n < MOST && (rc = cc_spawn(&tasks[n], count, NULL, NULL)) == 0) n++;
    CHECK_EQ(cc_spawn(&tasks[n], count, NULL, &(CCSpawnOptions){.name = "one too many"}), ENOMEM);
    CHECK(fail_disarm() > 0);
    CHECK_EQ(rc, ENOMEM);
    CHECK_EQ(tasks[n].id, 0);
    CHECK(n > 0);
    for (int i = 0; i < n; i++) {
        rc = cc_task_join(&tasks[i], NULL);
        CHECK(rc == 0 || rc == ENOMEM); /* some got no stack while no mapping could be had */
    }
    for (int i = 0; i < 100; i++) CHECK_EQ(cc_spawn(&tasks[i], count, NULL, NULL), 0);
    for (int i = 0; i < 100; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    return NULL;
}

TEST_WORKERS(no_more_records) {
    fail_begin();
    CHECK_EQ(cc_run(spawn_until_full, NULL, NULL), 0);
    (void)spawn_until_full(NULL);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(fail.blocks, 0);
}

/* ---- stacks ---- */

enum { LARGE = 32 * 1024 * 1024 };

static struct {
    CCTask task;
    int rc;
    void *result;
} joiners[12];

static void *join_in_fiber(void *arg) {
    size_t i = (size_t)arg;
    joiners[i].rc = cc_task_join(&joiners[i].task, &joiners[i].result);
    return NULL;
}

static void join_in_thread(int index, void *arg) {
    (void)arg;
    (void)join_in_fiber((void *)(uintptr_t)(index + 6));
}

static _Atomic bool busy;

static void *hog_the_worker(void *arg) {
    cc__set(&busy, true);
    while (!cc__get(&stop)) {
    }
    return arg;
}

/* Many wait for a task that never gets a stack: all joins return the error. */
TEST(every_joiner_gets_the_error) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    struct crew crew;
    CCTask fibers[6], task;
    CCSpawnOptions options = {.stack_size = LARGE, .name = "unlucky"};
    for (int round = 0; round < 5; round++) {
        cc__set(&stop, false);
        cc__set(&busy, false);
        cc__set(&ran, 0);
        /* The joining fibers wait already when the one worker gets to the task. */
        CCTask hog = {0};
        CHECK_EQ(cc_spawn(&hog, hog_the_worker, NULL, NULL), 0);
        while (!cc__get(&busy)) sched_yield();
        CHECK_EQ(cc_spawn(&task, count, NULL, &options), 0);
        for (size_t i = 0; i < 12; i++) CHECK_EQ(cc_task_dup(&task, &joiners[i].task), 0);
        for (size_t i = 0; i < 12; i++) joiners[i].rc = -1, joiners[i].result = &task;
        crew_start(&crew, 6, join_in_thread, NULL);
        while (joiners_of(task) < 6) sched_yield();
        for (size_t i = 0; i < 6; i++) fibers[i] = cc_fiber_spawn_task(join_in_fiber, (void *)i);
        fail_arm(1, FAIL_MAP, true);
        cc__set(&stop, true);
        CHECK_EQ(cc_task_join(&hog, NULL), 0);
        crew_join(&crew);
        for (int i = 0; i < 6; i++) {
            int rc = cc_task_join(&fibers[i], NULL);
            CHECK(rc == 0 || rc == ENOMEM); /* they are short of stacks themselves */
            if (rc == ENOMEM) joiners[i].rc = ENOMEM, joiners[i].task.id = 0;
        }
        CHECK(fail_disarm() > 0);
        for (size_t i = 0; i < 12; i++) {
            CHECK_EQ(joiners[i].rc, ENOMEM);
            CHECK_EQ(joiners[i].task.id, 0); /* the handle is consumed */
        }
        CHECK_EQ(cc_task_join_try(&task, NULL), ENOMEM); /* one handle was left */
        CHECK_EQ(task.id, 0);
        CHECK_EQ(cc__get(&ran), 0);
    }
    CHECK_EQ(cc_run(count, NULL, NULL), 0);
    CHECK_EQ(cc__get(&ran), 1);
}

/* Each way to join, and a task that nobody joins. */
static void run_without_a_stack(void) {
    CCSpawnOptions options = {.stack_size = LARGE};
    CCTask task, old;
    void *result = &task;
    cc__set(&ran, 0);
    fail_arm(1, FAIL_MAP, true);
    CHECK_EQ(cc_spawn(&task, count, NULL, &options), 0);
    old = task;
    CHECK_EQ(cc_task_join(&task, &result), ENOMEM);
    CHECK_EQ(task.id, 0);
    CHECK_EQ(cc_task_join(&old, NULL), ESRCH);
    CHECK_EQ(cc_spawn(&task, count, NULL, &options), 0);
    CHECK_EQ(cc_task_join_until(&task, NULL, cc_after_ms(60 * 1000)), ENOMEM);
    CHECK_EQ(task.id, 0);
    CHECK_EQ(cc_spawn(&task, count, NULL, &options), 0);
    int rc;
    while ((rc = cc_task_join_try(&task, NULL)) == EAGAIN) cc_yield();
    CHECK_EQ(rc, ENOMEM);
    CHECK_EQ(cc_spawn(&task, count, &task, &options), 0);
    CHECK(cc_block_on(task) == NULL);
    CHECK_EQ(cc_spawn(NULL, count, NULL, &options), 0);
    CHECK_EQ(cc_spawn(&task, count, NULL, &options), 0);
    CHECK_EQ(cc_task_detach(&task), 0);
    CHECK_EQ(cc_spawn(&task, count, NULL, &options), 0);
    CHECK_EQ(cc_task_join(&task, NULL), ENOMEM); /* the detached ones before it have ended as well, or will */
    CHECK(fail_disarm() > 0);
    CHECK_EQ(cc__get(&ran), 0);
    CHECK_EQ(cc_spawn(&task, count, &task, &options), 0);
    CHECK(cc_block_on(task) == &task);
}

/* The timer of the join_until above needs memory, not a mapping; its worker may have to get some, which is
 * allowed. */
TEST_WORKERS(no_stack_at_first_run) {
    fail_begin();
    CHECK_EQ(cc_run(count, NULL, NULL), 0); /* there are records */
    run_without_a_stack();
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(fail.blocks, 0);
}

static void *run_without_a_stack_in_fiber(void *arg) {
    run_without_a_stack();
    return arg;
}

TEST_WORKERS(no_stack_at_first_run_in_a_fiber) {
    fail_begin();
    CHECK_EQ(cc_run(run_without_a_stack_in_fiber, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(fail.blocks, 0);
}

/* ---- guards ---- */

/* If no guard can be made, the runtime reports it once and continues. */
TEST_WORKERS(no_guards) {
    CHECK_EQ(cc_run(count, NULL, NULL), 0);
    fail_arm(1, FAIL_ADVICE, true);
    CCSpawnOptions options = {.stack_size = LARGE};
    CCTask tasks[20];
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_spawn(&tasks[i], count, NULL, &options), 0);
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK(fail_disarm() > 0);
    CHECK_EQ(cc__get(&ran), 21);
}

/* Another fiber's stack gets no guard, on the thread that this one runs on: errno does not change. */
static void *yield_to_one_without_a_guard(void *arg) {
    CCSpawnOptions options = {.stack_size = LARGE};
    CCTask task;
    fail_arm(1, FAIL_ADVICE, true);
    CHECK_EQ(cc_spawn(&task, count, NULL, &options), 0);
    cc__errno_set(EXDEV);
    cc_yield();
    CHECK_EQ(cc__errno_get(), EXDEV);
    CHECK(fail_disarm() > 0);
    CHECK_EQ(cc_task_join_try(&task, NULL), 0); /* it has run meanwhile */
    return arg;
}

TEST(no_guards_and_errno) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(yield_to_one_without_a_guard, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* ---- everything short for a while ---- */

static void *work(void *arg) {
    CCTask children[5];
    for (int i = 0; i < 5; i++) {
        CCSpawnOptions options = {.name = i % 2 ? "child" : NULL, .stack_size = i == 4 ? 64 * 1024 : 0};
        int rc = cc_spawn(&children[i], count, NULL, &options);
        CHECK(rc == 0 || rc == ENOMEM);
    }
    int rc = cc_sleep_until(cc_after_ns(1000));
    CHECK(rc == 0 || rc == ENOMEM);
    for (int i = 0; i < 5; i++) {
        if (children[i].id == 0) continue;
        rc = cc_task_join(&children[i], NULL);
        CHECK(rc == 0 || rc == ENOMEM);
    }
    return arg;
}

/* Calls fail at random while many fibers work: each error is a documented one, and nothing hangs. */
TEST_WORKERS(random_shortage) {
    fail_begin();
    uint64_t random = test_seed();
    for (long round = 0; round < test_rounds(40, 2000); round++) {
        CCTask tasks[50];
        fail_arm(1 + (long)(test_random(&random) % 60), FAIL_ALL & ~FAIL_THREAD, test_random(&random) % 2);
        for (int i = 0; i < 50; i++) {
            CCSpawnOptions options = {.name = "worker"};
            int rc = cc_spawn(&tasks[i], work, NULL, i % 2 ? &options : NULL);
            CHECK(rc == 0 || rc == ENOMEM);
        }
        for (int i = 0; i < 50; i++) {
            if (tasks[i].id == 0) continue;
            int rc = cc_task_join(&tasks[i], NULL);
            CHECK(rc == 0 || rc == ENOMEM);
        }
        if (round % 4 == 0) CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0); /* while it lasts */
        (void)fail_disarm();
        CHECK_EQ(cc_run(work, NULL, NULL), 0);
    }
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(fail.blocks, 0);
    CHECK_EQ(fail.mapped, 0);
}
