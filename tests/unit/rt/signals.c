/* signals.c - system calls that a signal interrupts: waits do not end early, and nothing is lost. */
#include "harness.h"

#include "../../programs/where.h"
#include "../crew.h"
#include "../gate.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

static _Atomic long handled;

static void on_signal(int signal) {
    (void)signal;
    atomic_fetch_add(&handled, 1);
}

/* Without SA_RESTART: every system call that can be interrupted is. */
static void catch_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
}

static pthread_t target;
static _Atomic bool stop;

static void shoot_at_thread(int index, void *arg) {
    (void)index, (void)arg;
    while (!cc__get(&stop)) {
        CHECK_EQ(pthread_kill(target, SIGUSR1), 0);
        sched_yield();
    }
}

static void *wait_at(void *gate) {
    gate_wait(gate);
    return gate;
}

static void *open_it(void *gate) {
    CHECK_EQ(cc_sleep_ms(3), 0);
    (void)gate_open(gate);
    return NULL;
}

/* The thread sleeps and joins while another sends it signals. */
TEST_WORKERS(a_thread_that_waits) {
    if (UNDER_TSAN) SKIP("the race detector deadlocks if a signal comes while it frees memory");
    struct crew crew;
    test_touch_stack();
    catch_signals();
    target = pthread_self();
    crew_start(&crew, 1, shoot_at_thread, NULL);
    for (long i = 0; i < test_rounds(10, 500); i++) {
        CCDeadline deadline = cc_after_ms(2);
        CHECK_EQ(cc_sleep_until(deadline), 0);
        CHECK(cc_now_ns() >= deadline.ns);
        struct gate gate = {0};
        CCTask task = cc_fiber_spawn_task(wait_at, &gate);
        deadline = cc_after_ms(2);
        CHECK_EQ(cc_task_join_until(&task, NULL, deadline), ETIMEDOUT);
        CHECK(cc_now_ns() >= deadline.ns);
        CCTask opener = cc_fiber_spawn_task(open_it, &gate);
        void *result = NULL;
        CHECK_EQ(cc_task_join(&task, &result), 0);
        CHECK(result == &gate);
        CHECK_EQ(cc_task_join(&opener, NULL), 0);
        if (i % 5 == 0) CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    }
    cc__set(&stop, true);
    crew_join(&crew);
    CHECK(handled > 0);
}

/* The workers get signals, asleep and at work, on fibers' stacks and their own. */
static pthread_t workers[64];
static _Atomic unsigned worker_count;

static void *sleep_and_check(void *arg) {
    for (int i = 0; i < 10; i++) {
        CCDeadline deadline = cc_after_ns(500 * 1000);
        CHECK_EQ(cc_sleep_until(deadline), 0);
        CHECK(cc_now_ns() >= deadline.ns);
        cc_yield();
    }
    return arg;
}

static void shoot_at_workers(int index, void *arg) {
    (void)index, (void)arg;
    for (unsigned i = 0; !cc__get(&stop); i++) {
        CHECK_EQ(pthread_kill(workers[i % cc__get(&worker_count)], SIGUSR1), 0);
        sched_yield();
    }
}

TEST_WORKERS(workers) {
    if (UNDER_TSAN) SKIP("the race detector deadlocks if a signal comes while it frees memory");
    struct crew crew;
    catch_signals();
    CCTask tasks[50];
    CHECK_EQ(cc_runtime_init(NULL), 0);
    for (unsigned i = 0; i < cc__sched.count; i++) workers[i] = cc__sched.workers[i].thread;
    cc__set(&worker_count, cc__sched.count);
    crew_start(&crew, 1, shoot_at_workers, NULL);
    for (long round = 0; round < test_rounds(5, 200); round++) {
        for (int i = 0; i < 50; i++) tasks[i] = cc_fiber_spawn_task(sleep_and_check, NULL);
        for (int i = 0; i < 50; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    }
    cc__set(&stop, true);
    crew_join(&crew);
    CHECK(handled > 0);
}
