/* shutdown.c - shutting down: it waits, then cancels, then reports the remaining fibers; afterwards old handles are
 * invalid and it can start again. */
#include "harness.h"

#include "../capture.h"
#include "../crew.h"
#include "../ending.h"
#include "../gate.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>
#include <unistd.h>

static void *give_back(void *arg) {
    return arg;
}

static _Atomic int ended;

static void *count(void *arg) {
    cc__add(&ended, 1);
    return arg;
}

TEST(nothing_runs) {
    CHECK_EQ(cc_runtime_shutdown(0), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(0), 0);
    CHECK_EQ(cc_runtime_shutdown(0), 0); /* twice */
    CHECK_EQ(cc_worker_count(), 0);
}

/* ---- it waits ---- */

static void *yield_and_count(void *arg) {
    for (int i = 0; i < 100; i++) cc_yield();
    CHECK_EQ(cc_spawn(NULL, count, NULL, NULL), 0); /* while it waits, new tasks are accepted */
    CHECK_EQ(cc_sleep_ms(2), 0);
    return count(arg);
}

TEST_WORKERS(waits_for_tasks) {
    for (int i = 0; i < 100; i++) CHECK_EQ(cc_spawn(NULL, yield_and_count, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(ended, 200);
}

/* A task that has ended and whose handle nobody used does not count. */
TEST_WORKERS(handles_do_not_keep_it_up) {
    CCTask tasks[50];
    for (int i = 0; i < 50; i++) tasks[i] = cc_fiber_spawn_task(count, NULL);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(ended, 50);
    for (int i = 0; i < 50; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), ESRCH);
}

/* ---- it cancels ---- */

static void *sleep_for_ever(void *arg) {
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    return count(arg);
}

static void *sleep_an_hour(void *arg) {
    CHECK_EQ(cc_sleep_ms(3600 * 1000), ECANCELED);
    return count(arg);
}

TEST_WORKERS(cancels_sleeps) {
    for (int i = 0; i < 100; i++) CHECK_EQ(cc_spawn(NULL, i % 2 ? sleep_for_ever : sleep_an_hour, NULL, NULL), 0);
    end_by_cancelling();
    CHECK_EQ(ended, 100);
}

/* A join is cancelled although its task continues: the task here ends only when its joiner has returned. */
static _Atomic bool joiner_is_back;

static void *spin_until_joiner_is_back(void *arg) {
    while (!cc__get(&joiner_is_back)) sched_yield();
    return arg;
}

static void *join_it(void *arg) {
    CCTask *task = arg, before = *task;
    int rc = cc_task_join_until(task, NULL, cc_after_ms(3600 * 1000));
    CHECK_EQ(rc, ECANCELED);
    CHECK(task->id == before.id); /* the handle stays valid: */
    cc__set(&joiner_is_back, true);
    do rc = cc_task_join(task, NULL);
    while (rc == ECANCELED);
    CHECK_EQ(rc, 0);
    return count(NULL);
}

TEST(cancels_joins) {
    for (unsigned workers = 2; workers <= 8; workers *= 2) {
        CCRuntimeConfig config = {.workers = workers};
        CHECK_EQ(cc_runtime_init(&config), 0);
        cc__set(&joiner_is_back, false);
        cc__set(&ended, 0);
        CCTask task = cc_fiber_spawn_task(spin_until_joiner_is_back, NULL);
        CHECK_EQ(cc_spawn(NULL, join_it, &task, NULL), 0);
        end_by_cancelling();
        CHECK_EQ(ended, 1);
    }
}

/* Fibers whose waits are cancelled wait again, several times. */
static void *sleep_stubbornly(void *arg) {
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
    return count(arg);
}

TEST_WORKERS(cancels_again_and_again) {
    for (int i = 0; i < 20; i++) CHECK_EQ(cc_spawn(NULL, sleep_stubbornly, NULL, NULL), 0);
    end_by_cancelling();
    CHECK_EQ(ended, 20);
}

/* A chain of joins that ends in a sleep: all of them end. Among them are joins that run their task themselves. */
static _Atomic int begun;

CC_TASK(chain, { int n; }) {
    cc__add(&begun, 1);
    if (self->n == 0) return sleep_for_ever(NULL);
    CCTask next = CC_GO(chain, .n = self->n - 1);
    int rc = self->n % 2 ? cc_task_join(&next, NULL) : cc_task_join_until(&next, NULL, cc_after_ms(3600 * 1000));
    CHECK(rc == 0 || rc == ECANCELED);
    return count(NULL);
}

TEST_WORKERS(cancels_chains) {
    for (int i = 0; i < 10; i++) CHECK_EQ(cc_task_detach(&(CCTask){CC_GO(chain, .n = 9).id}), 0);
    while (cc__get(&begun) < 100) sched_yield();
    end_by_cancelling();
    CHECK_EQ(ended, 100);
}

/* An OS thread that joins gets the task's result: the cancelled task ends, and the thread does not stay blocked. */
struct waiting {
    CCTask task;
    int rc;
    void *result;
    _Atomic bool begun;
};

static void join_in_thread(int index, void *arg) {
    struct waiting *w = (struct waiting *)arg + index;
    cc__set(&w->begun, true);
    w->rc = cc_task_join(&w->task, &w->result);
}

TEST_WORKERS(threads_in_a_join) {
    struct crew crew;
    struct waiting waiting[4] = {0};
    for (int i = 0; i < 4; i++) waiting[i].task = cc_fiber_spawn_task(sleep_for_ever, &waiting[i]);
    crew_start(&crew, 4, join_in_thread, waiting);
    for (int i = 0; i < 4; i++)
        while (!cc__get(&waiting[i].begun)) sched_yield();
    end_by_cancelling();
    crew_join(&crew);
    for (int i = 0; i < 4; i++) {
        /* ESRCH or ECANCELED: it had begun, but came too late. */
        CHECK(waiting[i].rc == 0 || waiting[i].rc == ESRCH || waiting[i].rc == ECANCELED);
        if (waiting[i].rc == 0) CHECK(waiting[i].result == &waiting[i]);
    }
}

/* ---- it refuses ---- */

static _Atomic int stage;

/* Wakes when new tasks are refused, tries all ways to start one, and delays the shutdown. */
static void *spawn_during_shutdown(void *arg) {
    CCTask task = {33};
    int rc;
    do { /* a shutdown that has timed out meanwhile accepts them again */
        CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED);
        rc = cc_spawn(&task, give_back, NULL, NULL);
    } while (rc == 0);
    CHECK_EQ(rc, ECANCELED);
    CHECK_EQ(task.id, 0);
    CHECK_EQ(cc_run(give_back, NULL, NULL), ECANCELED);
    CHECK_EQ(cc_spawn(NULL, give_back, NULL, &(CCSpawnOptions){.name = "late"}), ECANCELED);
    CHECK_EQ(cc_fiber_spawn_task(give_back, NULL).id, 0);
    cc__set_release(&stage, 1);
    while (cc__get_acquire(&stage) == 1) sched_yield();
    return arg;
}

static void shut_down_in_thread(int index, void *arg) {
    (void)index, (void)arg;
    int rc;
    while ((rc = cc_runtime_shutdown(300)) == ETIMEDOUT) {
    }
    CHECK_EQ(rc, 0);
}

TEST_WORKERS(refuses_new_tasks) {
    struct crew crew;
    CHECK_EQ(cc_spawn(NULL, spawn_during_shutdown, NULL, NULL), 0);
    crew_start(&crew, 1, shut_down_in_thread, NULL);
    while (cc__get_acquire(&stage) == 0) sched_yield();
    CCTask task = {33};
    while (cc_spawn(&task, give_back, NULL, NULL) == 0) sched_yield(); /* an OS thread; as above */
    CHECK_EQ(task.id, 0);
    cc__set_release(&stage, 2);
    crew_join(&crew);
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0); /* and then they are accepted again */
}

/* ---- it names who is left ---- */

static _Atomic bool stop;
static _Atomic bool running;

static void *be_stubborn(void *arg) {
    cc__set(&running, true);
    while (!cc__get(&stop)) {
    }
    return count(arg);
}

TEST_WORKERS(names_who_still_runs) {
    CCSpawnOptions options = {.name = "stubborn as a mule"};
    CCTask task, other;
    CHECK_EQ(cc_spawn(&task, be_stubborn, &options, &options), 0);
    while (!cc__get(&running)) sched_yield();
    unsigned workers = cc_worker_count();
    static struct capture capture;
    for (int i = 0; i < 2; i++) {
        capture_start(&capture);
        CHECK_EQ(cc_runtime_shutdown(0), ETIMEDOUT);
        const char *said = capture_end(&capture);
        CHECK(contains(said, "stubborn as a mule"));
        CHECK(contains(said, "runs on worker") && contains(said, "be_stubborn"));
        CHECK(contains(said, "1 task still runs"));
    }
    /* The runtime goes on. */
    CHECK_EQ(cc_worker_count(), workers);
    CHECK_EQ(cc_spawn(&other, give_back, &other, NULL), 0);
    CHECK_EQ(cc_task_join_try(&task, NULL), EAGAIN);
    cc__set(&stop, true);
    void *result = NULL;
    CHECK_EQ(cc_task_join(&task, &result), 0);
    CHECK(result == &options);
    CHECK(cc_block_on(other) == &other);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_worker_count(), 0);
}

static void *park_stubbornly(void *arg) {
    CHECK_EQ(cc_fiber_set_name(arg), 0);
    while (!cc__get(&stop)) (void)cc_sleep_until(CC_FOREVER); /* ignores the cancellation */
    return count(NULL);
}

/* Many are left: some are named, the rest is counted. */
TEST_WORKERS(names_some_of_many) {
    for (int i = 0; i < 30; i++) CHECK_EQ(cc_spawn(NULL, park_stubbornly, "sleepyhead", NULL), 0);
    static struct capture capture;
    capture_start(&capture);
    int rc = cc_runtime_shutdown(1);
    const char *said = capture_end(&capture);
    CHECK_EQ(rc, ETIMEDOUT);
    CHECK(contains(said, "30 tasks still run"));
    CHECK(contains(said, "sleepyhead"));
    CHECK(contains(said, "more like them"));
    cc__set(&stop, true);
    end_by_cancelling();
    CHECK_EQ(ended, 30);
}

/* ---- from a fiber ---- */

static void *shut_down_in_fiber(void *arg) {
    CHECK_EQ(cc_runtime_shutdown(0), EDEADLK);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), EDEADLK);
    CHECK(cc_worker_count() > 0);
    return arg;
}

TEST_WORKERS(from_a_fiber) {
    CHECK_EQ(cc_run(shut_down_in_fiber, NULL, NULL), 0);
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
}

/* ---- in a blocking call: the shutdown would wait for it ---- */

static void *shut_down_in_call(void *arg) {
    CHECK(!cc_in_fiber());
    CHECK_EQ(cc_runtime_shutdown(0), EDEADLK);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), EDEADLK);
    return arg;
}

static void *call_shut_down(void *arg) {
    CHECK_EQ(cc_blocking(shut_down_in_call, NULL, NULL), 0);
    return arg;
}

TEST_WORKERS(in_a_blocking_call) {
    CHECK_EQ(cc_run(call_shut_down, NULL, NULL), 0);
    CCBlockingOptions options = {.may_abandon = true}; /* also by a thread that is not a worker */
    CHECK_EQ(cc_blocking_ex(shut_down_in_call, NULL, NULL, &options, CC_FOREVER), 0);
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
}

/* ---- by what else a shutdown waits for ---- */

static _Atomic uint32_t shutting_down;

/* A start that waited for the shutdown would wait for itself. */
static void start_meanwhile(void *context) {
    (void)context;
    while (!cc__get(&shutting_down)) sched_yield();
    usleep(20 * 1000); /* mostly the shutdown waits by then */
    CHECK_EQ(cc_runtime_init(NULL), EALREADY);
    CHECK_EQ(cc_sim_run(7, give_back, NULL, NULL), EALREADY);
}

static void *call_start(void *arg) {
    start_meanwhile(NULL);
    return arg;
}

static void *call_start_blocking(void *arg) {
    CHECK_EQ(cc_blocking(call_start, NULL, NULL), 0);
    return arg;
}

TEST(a_start_in_a_blocking_call) {
    CCTask task = cc_fiber_spawn_task(call_start_blocking, NULL);
    CHECK_EQ(cc_task_detach(&task), 0);
    cc__set(&shutting_down, true);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST(a_start_in_a_hook) {
    CCIsland *island;
    CHECK_EQ(cc_island_create(&island, &(CCIslandConfig){.on_start = start_meanwhile}), 0);
    cc__set(&shutting_down, true);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_island_free(island), 0);
}

static int start_and_shut_down(void *item, void *context) {
    (void)item, (void)context;
    CHECK_EQ(cc_runtime_init(NULL), EALREADY);
    CHECK_EQ(cc_runtime_shutdown(0), EDEADLK);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), EDEADLK);
    return 0;
}

static void *stay(void *arg) {
    (void)cc_sleep_until(CC_FOREVER);
    return arg;
}

/* A thread that selects is inside the runtime if it waits for a task. */
TEST(in_a_callback_of_a_select) {
    CCTask task = cc_fiber_spawn_task(stay, NULL);
    CCChan *pool =
        cc_chan_create_ex(&(CCChanConfig){.elem_size = sizeof(int), .capacity = 1, .on_create = start_and_shut_down});
    size_t chosen;
    int item;
    CCCase cases[] = {CC_JOIN(&task, NULL, NULL), CC_RECV(pool, &item, NULL)};
    CHECK_EQ(cc_select(cases, 2, CC_FOREVER, &chosen), 0);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(cc_task_cancel(&task), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    cc_chan_free(pool);
}

/* ---- afterwards ---- */

static void check_dead(CCTask task) {
    CCTask before = task, copy = {3};
    void *result = &copy;
    CHECK_EQ(cc_task_join(&task, &result), ESRCH);
    CHECK_EQ(cc_task_join_try(&task, &result), ESRCH);
    CHECK_EQ(cc_task_join_until(&task, &result, CC_PASSED), ESRCH);
    CHECK_EQ(cc_task_join_until(&task, &result, CC_FOREVER), ESRCH);
    CHECK_EQ(cc_task_detach(&task), ESRCH);
    CHECK_EQ(cc_task_dup(&task, &copy), ESRCH);
    CHECK_EQ(copy.id, 0);
    CHECK(cc_block_on(task) == NULL);
    CHECK(result == &copy);
    CHECK(task.id == before.id);
}

static void *check_dead_in_fiber(void *task) {
    check_dead(*(CCTask *)task);
    return NULL;
}

TEST_WORKERS(old_handles_are_invalid) {
    enum { RUNS = 5 };
    CCTask old[RUNS];
    for (int i = 0; i < RUNS; i++) {
        old[i] = cc_fiber_spawn_task(give_back, NULL);
        CHECK(old[i].id != 0);
        for (int k = 0; k < i; k++) check_dead(old[k]); /* while it runs again */
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        for (int k = 0; k <= i; k++) check_dead(old[k]); /* while it does not */
        CHECK_EQ(cc_worker_count(), 0);                  /* and none of that has started it */
    }
    CHECK_EQ(cc_run(check_dead_in_fiber, &old[RUNS - 1], NULL), 0);
}

TEST_WORKERS(other_calls_afterwards) {
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK(!cc_in_fiber());
    CHECK_EQ(cc_fiber_id(), 0);
    CHECK_EQ(cc_fiber_set_name("x"), EPERM);
    CHECK_EQ(cc_fiber_name()[0], '\0');
    CHECK_EQ(cc_sleep_ms(1), 0);
    cc_yield();
    CHECK(cc_now_ns() > 0);
    CHECK_EQ(cc_worker_count(), 0);
    int x;
    CHECK(cc_block_on(cc_fiber_spawn_task(give_back, &x)) == &x); /* a spawn starts it again */
    CHECK(cc_worker_count() > 0);
}

/* ---- many at once ---- */

static void shut_down_at_once(int index, void *arg) {
    (void)index, (void)arg;
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

TEST_WORKERS(many_shutdowns) {
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(cc_spawn(NULL, yield_and_count, NULL, NULL), 0);
        crew_run(6, shut_down_at_once, NULL);
        CHECK_EQ(cc_worker_count(), 0);
    }
    CHECK_EQ(ended, 20);
}

/* Starts, uses and shutdowns mixed: every call gives one of the answers that its header allows. */
static void use_and_end(int index, void *arg) {
    (void)arg;
    uint64_t random = test_seed() + (uint64_t)index;
    for (long i = 0; i < test_rounds(150, 10000); i++) {
        CCTask task, copy;
        int rc, x;
        switch (test_random(&random) % 6) {
        case 0:
            rc = cc_runtime_shutdown(1);
            CHECK(rc == 0 || rc == ETIMEDOUT);
            break;
        case 1:
            rc = cc_runtime_init(NULL);
            CHECK(rc == 0 || rc == EALREADY);
            break;
        case 2:
            CHECK(cc_worker_count() <= 16);
            break;
        default:
            rc = cc_spawn(&task, give_back, &x, NULL);
            CHECK(rc == 0 || rc == ECANCELED);
            if (rc != 0) break;
            rc = cc_task_dup(&task, &copy);
            CHECK(rc == 0 || rc == ESRCH || rc == ECANCELED);
            if (rc == 0) {
                rc = cc_task_detach(&copy);
                CHECK(rc == 0 || rc == ESRCH || rc == ECANCELED);
            }
            void *result = NULL;
            rc = cc_task_join(&task, &result);
            CHECK(rc == 0 || rc == ESRCH || rc == ECANCELED);
            if (rc == 0) CHECK(result == &x);
        }
    }
}

TEST_WORKERS(everything_at_once) {
    crew_run(4, use_and_end, NULL);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc_run(give_back, NULL, NULL), 0);
}
