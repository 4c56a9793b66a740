/* yield.c - a yield lets all other ready fibers run first: fresh, woken, yielded, and sent by other threads. */
#include "harness.h"

#include "../crew.h"
#include "../gate.h"

#include <ccc/ccc.h>

static void on_one_worker(CCTaskFn fn) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(fn, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* On one worker plain variables are shared safely; but the race detector sees fibers as threads. */
static _Atomic int ran;

static void *run_once(void *arg) {
    cc__add(&ran, 1);
    return arg;
}

/* ---- the fresh ---- */

static void *yield_once_for_children(void *arg) {
    enum { CHILDREN = 3 };
    for (long round = 0; round < test_rounds(20000, 1000000); round++) {
        CCTask children[CHILDREN];
        cc__set(&ran, 0);
        for (int i = 0; i < CHILDREN; i++) children[i] = cc_fiber_spawn_task(run_once, NULL);
        cc_yield();
        CHECK_EQ(cc__get(&ran), CHILDREN);
        for (int i = 0; i < CHILDREN; i++) CHECK_EQ(cc_task_join_try(&children[i], NULL), 0);
    }
    return arg;
}

TEST(fresh_ones_run_first) {
    on_one_worker(yield_once_for_children);
}

/* ---- the woken ---- */

static struct gate gate;

static void *wait_and_run(void *arg) {
    for (;;) {
        gate_wait(&gate);
        gate_close(&gate);
        if (cc__add(&ran, 1) < 0) return arg;
    }
}

static void *yield_once_for_woken(void *arg) {
    CCTask waiter = cc_fiber_spawn_task(wait_and_run, NULL);
    cc_yield();
    for (long round = 0; round < test_rounds(20000, 1000000); round++) {
        cc__set(&ran, 0);
        CHECK(gate_open(&gate));
        cc_yield();
        CHECK_EQ(cc__get(&ran), 1);
    }
    cc__set(&ran, -1);
    CHECK(gate_open(&gate));
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    return arg;
}

TEST(woken_one_runs_first) {
    on_one_worker(yield_once_for_woken);
}

/* ---- the yielded ---- */

enum { TURNS_MAX = 1 << 16, YIELDERS = 7 };
static _Atomic int turns[TURNS_MAX];
static _Atomic int turn_count;

static void *take_turns(void *me) {
    for (int i = 0; i < 500; i++) {
        int turn = cc__add(&turn_count, 1);
        CHECK(turn < TURNS_MAX);
        cc__set(&turns[turn], (int)(intptr_t)me);
        cc_yield();
    }
    return NULL;
}

static void *watch_turns(void *arg) {
    CCTask yielders[YIELDERS];
    for (intptr_t i = 0; i < YIELDERS; i++) yielders[i] = cc_fiber_spawn_task(take_turns, (void *)i);
    for (int i = 0; i < YIELDERS; i++) CHECK_EQ(cc_task_join_until(&yielders[i], NULL, CC_FOREVER), 0);
    /* After the first round each window of as many turns as there are fibers holds each of them once. */
    for (int at = YIELDERS; at < 400 * YIELDERS; at++) {
        unsigned seen = 0;
        for (int i = 0; i < YIELDERS; i++) seen |= 1u << cc__get(&turns[at + i]);
        CHECK_EQ(seen, (1u << YIELDERS) - 1);
    }
    return arg;
}

TEST(yielders_take_turns) {
    on_one_worker(watch_turns);
}

/* ---- all kinds at once ---- */

static _Atomic bool stop;

static void *yield_for_ever(void *arg) {
    while (!cc__get(&stop)) {
        cc__add_relaxed((_Atomic long *)arg, 1);
        cc_yield();
    }
    return NULL;
}

static void *yield_among_all(void *arg) {
    _Atomic long turns_of_other = 0;
    CCTask other = cc_fiber_spawn_task(yield_for_ever, (void *)&turns_of_other);
    CCTask waiter = cc_fiber_spawn_task(wait_and_run, NULL);
    cc_yield();
    for (long round = 0; round < test_rounds(10000, 500000); round++) {
        cc__set(&ran, 0);
        long before = cc__get(&turns_of_other);
        CCTask child = cc_fiber_spawn_task(run_once, NULL);
        CHECK(gate_open(&gate));
        CCTask second = cc_fiber_spawn_task(run_once, NULL);
        cc_yield();
        CHECK_EQ(cc__get(&ran), 3);
        CHECK_EQ(cc__get(&turns_of_other), before + 1);
        CHECK_EQ(cc_task_join(&child, NULL), 0);
        CHECK_EQ(cc_task_join(&second, NULL), 0);
    }
    cc__set(&stop, true);
    cc__set(&ran, -1);
    CHECK(gate_open(&gate));
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    return arg;
}

TEST(all_others_run_first) {
    on_one_worker(yield_among_all);
}

/* ---- what is not in the own queues ---- */

static void *yield_until_ran(void *arg) {
    while (cc__get(&ran) == 0) cc_yield();
    return arg;
}

/* A lone fiber that yields in a loop lets fibers run that another thread spawns. */
TEST_WORKERS(sent_from_a_thread) {
    for (long round = 0; round < test_rounds(200, 10000); round++) {
        cc__set(&ran, 0);
        CCTask lone = cc_fiber_spawn_task(yield_until_ran, NULL);
        CCTask sent = cc_fiber_spawn_task(run_once, NULL);
        CHECK_EQ(cc_task_join(&sent, NULL), 0);
        CHECK_EQ(cc_task_join(&lone, NULL), 0);
    }
}

static void *sleep_then_run(void *arg) {
    CHECK_EQ(cc_sleep_ms(1), 0);
    return run_once(arg);
}

/* And fibers whose timers are due. */
TEST_WORKERS(woken_by_a_timer) {
    for (int round = 0; round < 10; round++) {
        cc__set(&ran, 0);
        CCTask lone = cc_fiber_spawn_task(yield_until_ran, NULL);
        CCTask sleeper = cc_fiber_spawn_task(sleep_then_run, NULL);
        CHECK_EQ(cc_task_join(&sleeper, NULL), 0);
        CHECK_EQ(cc_task_join(&lone, NULL), 0);
    }
}

/* ---- alone ---- */

static void *yield_alone(void *arg) {
    CCFiberId me = cc_fiber_id();
    for (long i = 0; i < test_rounds(300000, 10000000); i++) cc_yield();
    CHECK(cc_fiber_id() == me);
    return arg;
}

TEST_WORKERS(alone) {
    void *result = NULL;
    CHECK_EQ(cc_run(yield_alone, &stop, &result), 0);
    CHECK(result == &stop);
}

TEST(outside_a_fiber) {
    cc_yield(); /* before the runtime runs: does not start it */
    CHECK_EQ(cc_worker_count(), 0);
    CHECK_EQ(cc_run(run_once, NULL, NULL), 0);
    for (int i = 0; i < 1000; i++) cc_yield();
    CHECK_EQ(ran, 1);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    cc_yield();
    CHECK_EQ(cc_worker_count(), 0);
}
