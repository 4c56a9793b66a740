/* blocking.c - a pool that gets no more threads: its calls wait for those that it has, and for the system to have more
 * again. */
#include "fail.h"
#include "harness.h"

#include "sync/atomic.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>

static CCPool *pool;
static CCEvent over;
static _Atomic bool stays;

static void *stay(void *arg) {
    cc__set(&stays, true);
    CHECK_EQ(cc_event_wait(&over), 0);
    return arg;
}

static void *stay_in_pool(void *arg) {
    CHECK_EQ(cc_blocking_ex(stay, NULL, NULL, &(CCBlockingOptions){.pool = pool}, CC_FOREVER), 0);
    return arg;
}

static void *give_back(void *arg) {
    return arg;
}

static void *call_it(void *options) {
    void *result = NULL;
    CHECK_EQ(cc_blocking_ex(give_back, &pool, &result, options, CC_FOREVER), 0);
    CHECK(result == &pool);
    return options;
}

/* The only thread is busy for as long as the second call has not returned. */
static void behind_a_call_that_stays(bool may_abandon) {
    CCTask first, second;
    CCBlockingOptions options = {.may_abandon = may_abandon};
    cc__set(&stays, false);
    CHECK_EQ(cc_pool_create(&pool, 2), 0);
    options.pool = pool;
    CHECK_EQ(cc_spawn(&first, stay_in_pool, NULL, NULL), 0);
    while (!cc__get(&stays)) sched_yield();
    fail_arm(1, FAIL_THREAD, true);
    CHECK_EQ(cc_spawn(&second, call_it, &options, NULL), 0);
    while (atomic_load(&fail.failed) < 2) sched_yield();
    CHECK_EQ(cc_task_join_try(&second, NULL), EAGAIN);
    CHECK(fail_disarm() >= 2);
    CHECK_EQ(cc_task_join(&second, NULL), 0);
    cc_event_set(&over);
    CHECK_EQ(cc_task_join(&first, NULL), 0);
    cc_event_reset(&over);
    while (cc_pool_free(pool) == EBUSY) sched_yield();
}

TEST_WORKERS(a_thread_is_started_later) {
    behind_a_call_that_stays(false);
    behind_a_call_that_stays(true);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}
