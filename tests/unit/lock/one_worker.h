/* one_worker.h - one worker: a fiber that was cancelled runs when its canceller waits, and not before. So each case is
 * one schedule. */
#ifndef CCC_TESTS_UNIT_LOCK_ONE_WORKER_H
#define CCC_TESTS_UNIT_LOCK_ONE_WORKER_H

#include "../../battery/battery.h"

BATTERY_UNUSED static void *result_of(int rc) {
    return (void *)(intptr_t)rc;
}

BATTERY_UNUSED static CCTask start(CCTaskFn fn) {
    CCTask task = cc_fiber_spawn_task(fn, NULL);
    cc_yield(); /* until it waits: one after the other, they queue up in this order */
    return task;
}

BATTERY_UNUSED static void ends_with(CCTask task, int rc) {
    void *result;
    CHECK_EQ(cc_task_join(&task, &result), 0);
    CHECK_EQ((intptr_t)result, rc);
}

BATTERY_UNUSED static void on_one_worker(CCTaskFn fn) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(fn, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* The first is cancelled, then one thing is given: the second has it. */
BATTERY_UNUSED static void past_the_first(CCTaskFn want, void (*give)(void)) {
    CCTask first = start(want), second = start(want);
    CHECK_EQ(cc_task_cancel(&first), 0);
    give();
    ends_with(second, 0);
    ends_with(first, ECANCELED);
}

#endif
