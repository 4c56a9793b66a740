/* spin.c - whether a lock call spins before it waits: only while the holder runs. */
#include "harness.h"

#include "lock/spin.h"

#include "os/thread.h"
#include "sched/sched.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdlib.h>

static _Atomic uint32_t failures;
static _Atomic uint64_t holder;
static unsigned tries;

static bool never(void *lock, uint32_t arg) {
    (void)lock, (void)arg;
    tries++;
    return false;
}

/* Whether a call tries several times. */
static bool spins(void) {
    tries = 0;
    cc__set(&failures, 0);
    CHECK(!cc__spin(&failures, 1, &holder, never, NULL, 0));
    CHECK_EQ(cc__get(&failures), tries > 0);
    return tries > 0;
}

static void *waits(void *event) {
    CHECK_EQ(cc_event_wait(event), 0);
    return NULL;
}

static _Atomic bool keeps, over;

static void *keep_worker(void *arg) {
    cc__set(&keeps, true);
    while (!cc__get(&over)) cc__thread_nap(1000000);
    return arg;
}

/* The other worker is kept, so that the state of a fiber changes only where this one waits. */
static void *check(void *arg) {
    static CCEvent event;
    CCTask keeper = cc_fiber_spawn_task(keep_worker, NULL);
    while (!cc__get(&keeps)) cc__thread_nap(1000000);
    CHECK(spins()); /* nothing is known of the holder */
    CCTask task = cc_fiber_spawn_task(waits, &event);
    cc__set(&holder, task.id);
    CHECK(!spins()); /* it is ready */
    while (cc_task_join_until(&task, NULL, cc_after_ms(1)) != ETIMEDOUT) continue;
    CHECK(!spins()); /* it waits */
    struct fiber *self = cc__sched_current(cc__worker());
    CHECK(self != NULL);
    cc__set(&holder, cc__pool_id(self));
    CHECK(spins()); /* it runs */
    cc__set(&holder, UINT64_C(1) << 63 | 1);
    CHECK(spins()); /* an OS thread */
    cc__set(&over, true);
    CHECK_EQ(cc_task_join(&keeper, NULL), 0);
    CHECK_EQ(cc_event_set(&event), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    return arg;
}

static void start(void) {
    if (cc__affinity_single()) SKIP("this process may use one CPU only");
    CCRuntimeConfig config = {.workers = 2, .max_workers = 2};
    CHECK_EQ(setenv("CC_MIN_WORKERS", "2", 1), 0);
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc__get(&cc__sched.count), 2);
}

/* The runtime may end while an OS thread spins: that does not look at the record of a fiber. */
TEST(an_os_thread_spins_whatever_the_holder_does) {
    static CCEvent event;
    start();
    CCTask task = cc_fiber_spawn_task(waits, &event);
    cc__set(&holder, task.id);
    CHECK(spins());
    CHECK_EQ(cc_event_set(&event), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
}

TEST(while_the_holder_runs) {
    start();
    CHECK_EQ(cc_run(check, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}
