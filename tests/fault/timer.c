/* timer.c - waits with a deadline when there is no memory for the timer: ENOMEM at once, the handle stays valid,
 * nothing hangs. */
#include "fail.h"
#include "harness.h"

#include "../unit/ending.h"

#include "timer/timer.h"
#include "wait/wait.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>

static _Atomic int short_of_memory, slept; /* sleeps that got no timer, and completed sleeps */

static void *sleep_a_little(void *arg) {
    CCDeadline deadline = cc_after_ms(2);
    int rc = cc_sleep_until(deadline);
    CHECK(rc == 0 || rc == ENOMEM);
    if (rc == 0) CHECK(cc_now_ns() >= deadline.ns);
    cc__add(rc == 0 ? &slept : &short_of_memory, 1);
    return arg;
}

/* Enough sleepers that a heap has to grow several times; each growth is failed in turn. What fails may also be
 * optional: a worker takes more stacks than it needs at once. */
TEST_WORKERS(sleeps) {
    fail_begin();
    enum { SLEEPERS = 300 };
    bool complete = false, reported = false;
    for (long n = 1; !complete; n++) {
        CCTask tasks[SLEEPERS];
        cc__set(&short_of_memory, 0);
        cc__set(&slept, 0);
        CHECK_EQ(cc_runtime_init(NULL), 0);
        fail_arm(n, FAIL_MEMORY, n % 2 == 0);
        for (int i = 0; i < SLEEPERS; i++) CHECK_EQ(cc_spawn(&tasks[i], sleep_a_little, NULL, NULL), 0);
        int without_stack = 0; /* the block that a new arena of stacks needs may be the one that failed */
        for (int i = 0; i < SLEEPERS; i++) {
            int rc = cc_task_join(&tasks[i], NULL);
            CHECK(rc == 0 || rc == ENOMEM);
            without_stack += rc == ENOMEM;
        }
        complete = fail_disarm() == 0;
        CHECK_EQ(cc__get(&slept) + cc__get(&short_of_memory) + without_stack, SLEEPERS);
        if (complete) CHECK_EQ(cc__get(&short_of_memory) + without_stack, 0);
        reported |= cc__get(&short_of_memory) > 0;
        CHECK_EQ(cc_run(sleep_a_little, NULL, NULL), 0);
        CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
        CHECK_EQ(fail.blocks, 0);
        CHECK(n < 200);
    }
    CHECK(reported);
}

static _Atomic long looks;

static void look_at_all_timers(void) {
    if (cc__worker() == NULL) return;
    (void)cc__timer_driver.pending(); /* takes the lock of every heap: for ever, if the caller holds one */
    cc__add(&looks, 1);
}

/* A heap grows without its lock, which others need to fire timers. */
TEST_WORKERS(grows_unlocked, .timeout = 20) {
    enum { SLEEPERS = 300 };
    CCTask tasks[SLEEPERS];
    CHECK_EQ(cc_runtime_init(NULL), 0);
    atomic_store(&fail.at_memory, look_at_all_timers);
    for (int i = 0; i < SLEEPERS; i++) CHECK_EQ(cc_spawn(&tasks[i], sleep_a_little, NULL, NULL), 0);
    for (int i = 0; i < SLEEPERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    atomic_store(&fail.at_memory, NULL);
    CHECK(cc__get(&looks) > 0);
    CHECK_EQ(cc__get(&slept), SLEEPERS);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

static _Atomic bool begun;

static void *never_end(void *arg) {
    cc__set(&begun, true);
    CHECK_EQ(cc_sleep_until(CC_FOREVER), ECANCELED); /* needs no timer */
    return arg;
}

static int never_publish(void *object, struct waiter *waiter, void *io) {
    (void)object, (void)waiter, (void)io;
    CHECK(!"a wait without memory is published");
    return EBADF;
}

static const struct waitable_ops never_ops = {never_publish, NULL};

/* The first timed waits on a fresh runtime, none of which gets its memory. */
static void *wait_without_memory(void *arg) {
    CCTask task = *(CCTask *)arg, before = task;
    void *result = &task;
    fail_arm(1, FAIL_MEMORY, true);
    CHECK_EQ(cc_task_join_until(&task, &result, cc_after_ms(60 * 1000)), ENOMEM);
    CHECK(task.id == before.id && result == &task); /* the wait failed, not the task */
    CHECK_EQ(cc_sleep_ms(60 * 1000), ENOMEM);
    CHECK_EQ(cc__fiber_wait(&task, NULL, &never_ops, cc_after_ms(60 * 1000).ns, PARK_QUEUE), ENOMEM);
    CHECK_EQ(cc_sleep_ms(0), 0); /* a call that does not wait needs no memory */
    CHECK_EQ(cc_task_join_try(&task, NULL), EAGAIN);
    CHECK(fail_disarm() >= 3);
    CHECK_EQ(cc_task_join_until(&task, &result, cc_after_ms(1)), ETIMEDOUT);
    CHECK_EQ(cc_sleep_ms(1), 0);
    return NULL;
}

TEST_WORKERS(first_timers) {
    fail_begin();
    for (int i = 0; i < 5; i++) {
        CCTask task = cc_fiber_spawn_task(never_end, NULL);
        CHECK_EQ(cc_run(wait_without_memory, &task, NULL), 0);
        end_by_cancelling();
        CHECK_EQ(fail.blocks, 0);
    }
}

/* OS threads have no timers: they need no memory to wait. */
TEST_WORKERS(threads_need_none) {
    CCTask task = cc_fiber_spawn_task(never_end, NULL);
    while (!cc__get(&begun)) sched_yield(); /* it has its stack */
    fail_arm(1, FAIL_ALL, true);
    CHECK_EQ(cc_task_join_until(&task, NULL, cc_after_ms(2)), ETIMEDOUT);
    CHECK_EQ(cc_sleep_ms(1), 0);
    end_by_cancelling(); /* nor does a shutdown */
    (void)fail_disarm();
    CHECK_EQ(cc_worker_count(), 0);
}
