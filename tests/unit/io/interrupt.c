/* interrupt.c - the end of a fiber wakes the worker that waits for descriptors.
 *
 * It does so on its worker's stack, as no fiber: the race detector must not report that this and the worker, which
 * fires timers at the same depth, use the same stack memory. So the case is for the stage `tsan`.
 */
#include "pair.h"

#include <stdatomic.h>

enum { JOINERS = 6, SLEEPERS = 8, WORK_NS = 100 * 1000 };

static atomic_bool over;

static void *wait_for_byte(void *pipe) {
    CHECK_EQ(cc_fd_wait(((struct pair *)pipe)->in, CC_READABLE, NULL), 0);
    return NULL;
}

CC_TASK(keep_timers, { uint64_t ns; }) {
    while (!atomic_load(&over)) CHECK_EQ(cc_sleep_until(cc_after_ns(self->ns)), 0);
    return NULL;
}

static void *end_later(void *arg) {
    CHECK_EQ(cc_sleep_until(cc_after_ns(2 * WORK_NS)), 0);
    return arg;
}

/* Its work is worth a wake of another worker. */
CC_TASK(join_and_work, { CCTask task; }) {
    CHECK_EQ(cc_task_join(&self->task, NULL), 0);
    for (uint64_t end = cc_now_ns() + WORK_NS; cc_now_ns() < end;) {
    }
    return NULL;
}

static void *end_many(void *arg) {
    for (long i = 0, n = test_scale(300); i < n; i++) {
        CCTask task = cc_fiber_spawn_task(end_later, NULL), copy, joiners[JOINERS];
        for (int k = 0; k < JOINERS; k++) {
            CHECK_EQ(cc_task_dup(&task, &copy), 0);
            joiners[k] = CC_GO(join_and_work, .task = copy);
        }
        for (int k = 0; k < JOINERS; k++) CHECK_EQ(cc_task_join(&joiners[k], NULL), 0);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
    return arg;
}

TEST(an_end_wakes_the_poller) {
    struct pair pipe = make_pipe(true);
    CCTask sleepers[SLEEPERS], waiter;
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 2}), 0);
    waiter = cc_fiber_spawn_task(wait_for_byte, &pipe);
    for (unsigned i = 0; i < SLEEPERS; i++) sleepers[i] = CC_GO(keep_timers, .ns = 20000 + 10000 * i);
    CHECK_EQ(cc_run(end_many, NULL, NULL), 0);
    atomic_store(&over, true);
    for (int i = 0; i < SLEEPERS; i++) CHECK_EQ(cc_task_join(&sleepers[i], NULL), 0);
    put(pipe.out, 1);
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    close_pair(pipe);
}
