/* stress.h - shared by the stress programs: OS threads that must start, one fiber that runs the case, a
 * gate, and a flag that detects a fiber that runs in two places.
 */
#ifndef CCC_TESTS_STRESS_H
#define CCC_TESTS_STRESS_H

#include "done.h"
#include "harness.h"

#include "wait/wait.h"

#include <ccc/ccc.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRESS_UNUSED __attribute__((unused))

/* ---- the runtime ---- */

/* Everything that was started has ended: the runtime has nothing to wait for, so this also checks its counts. */
STRESS_UNUSED static void finish(void) {
    count_what_was_done();
    CHECK_EQ(cc_runtime_shutdown(60 * 1000), 0);
}

STRESS_UNUSED static void start(unsigned workers) {
    CCRuntimeConfig config = {.workers = workers};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_worker_count(), workers);
}

/* Runs fn(arg) in a fiber and ends the runtime. */
STRESS_UNUSED static void run_and_finish(CCTaskFn fn, void *arg) {
    CHECK_EQ(cc_run(fn, arg, NULL), 0);
    finish();
}

STRESS_UNUSED static CCTask spawn(CCTaskFn fn, void *arg) {
    CCTask task;
    CHECK_EQ(cc_spawn(&task, fn, arg, NULL), 0);
    return task;
}

STRESS_UNUSED static void *join(CCTask task) {
    void *result = NULL;
    CHECK_EQ(cc_task_join(&task, &result), 0);
    return result;
}

/* ---- small things ---- */

STRESS_UNUSED static pthread_t start_thread(void *(*fn)(void *), void *arg) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, fn, arg), 0);
    return thread;
}

STRESS_UNUSED static void join_thread(pthread_t thread) {
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

STRESS_UNUSED static void *allocate(size_t count, size_t size) {
    void *p = calloc(count, size);
    CHECK(p != NULL);
    return p;
}

/* 0 … n - 1. */
STRESS_UNUSED static uint64_t below(uint64_t *rng, uint64_t n) {
    return test_random(rng) % n;
}

/* Uses the CPU for about ns nanoseconds, without a call that could switch or sleep. */
STRESS_UNUSED static void compute_ns(uint64_t ns) {
    uint64_t end = cc_now_ns() + ns;
    while (cc_now_ns() < end) {
    }
}

/* ---- no fiber runs twice at once ---- */

struct presence {
    atomic_int here;
};

STRESS_UNUSED static void arrive(struct presence *p) {
    CHECK_EQ(atomic_exchange(&p->here, 1), 0);
}

STRESS_UNUSED static void leave(struct presence *p) {
    CHECK_EQ(atomic_exchange(&p->here, 0), 1);
}

/* ---- a bell: one fiber waits, anybody rings ---- */

/* The owner waits for a ring; a ring before the wait counts. One ring ends one wait. */
struct bell {
    _Atomic uint32_t rung;
    struct fiber *_Atomic fiber;
    _Atomic uint64_t ticket;
};

/* By a fiber. Returns how often it was woken without a ring. */
STRESS_UNUSED static unsigned bell_wait(struct bell *bell) {
    struct fiber *self = cc__sched_current(cc__worker());
    unsigned in_vain = 0;
    atomic_store(&bell->fiber, self);
    for (;; in_vain++) {
        uint64_t ticket = cc__park_open(self, PARK_FLAG);
        atomic_store(&bell->ticket, ticket);
        unsigned reason = cc__park_if(self, &bell->rung, 0);
        CHECK(reason == 0 || reason == WAKE_OBJECT || reason == WAKE_CANCEL);
        if (atomic_exchange(&bell->rung, 0) != 0) return in_vain;
    }
}

STRESS_UNUSED static void bell_ring(struct bell *bell) {
    atomic_store(&bell->rung, 1);
    struct fiber *f = atomic_load(&bell->fiber);
    if (f != NULL) cc__fiber_wake(f, atomic_load(&bell->ticket), WAKE_OBJECT);
}

/* ---- a gate: any number join the task that waits behind it ---- */

struct gate {
    struct bell bell;
    CCTask task;
};

static void *gate_main(void *arg) {
    struct gate *gate = arg;
    bell_wait(&gate->bell);
    return gate;
}

STRESS_UNUSED static void gate_close(struct gate *gate) {
    memset(gate, 0, sizeof *gate);
    gate->task = spawn(gate_main, gate);
}

/* All joiners of copies of gate->task continue. */
STRESS_UNUSED static void gate_open(struct gate *gate) {
    bell_ring(&gate->bell);
}

#endif
