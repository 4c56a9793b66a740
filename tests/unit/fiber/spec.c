/* spec.c - the assertions that CC_SPEC_ASSERT=1 adds: each catches a seeded error, and none fails in a correct program.
 */
#include "harness.h"

#include "fiber/spec.h"
#include "sched/wake.h"
#include "wait/cancel.h"

#include <ccc/ccc.h>
#include <stdlib.h>

static void assert_spec(void) {
    CHECK_EQ(setenv("CC_SPEC_ASSERT", "1", 1), 0);
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK(cc__trace_on(TRACE_SPEC));
}

static _Atomic int running, enough;

static void *spin(void *self) {
    *(struct fiber **)self = cc__sched_current(cc__worker());
    running = 1;
    while (!enough) {
    }
    return NULL;
}

/* A thread wakes a running fiber. */
TEST_DIES(enqueue_running, "SPEC-1", .signal = SIGABRT) {
    struct fiber *f;
    assert_spec();
    CCTask task = cc_fiber_spawn_task(spin, &f);
    while (!running) cc_yield();
    cc__sched_ready(f);
    enough = 1;
    (void)cc_task_join(&task, NULL);
}

/* A fiber enqueues itself, and is enqueued a second time when it yields. */
static void *ready_myself(void *unused) {
    (void)unused;
    cc__sched_ready(cc__sched_current(cc__worker()));
    cc_yield();
    cc_yield();
    return NULL;
}

#ifdef CC_DEBUG
TEST_DIES(enqueue_myself, "SPEC-1", .signal = SIGABRT) {
#else
TEST_DIES(enqueue_myself, "fatal: S", .signal = SIGABRT) { /* STATE-2 or SPEC-2, when it is taken */
#endif
    assert_spec();
    (void)cc_run(ready_myself, NULL, NULL);
    (void)cc_runtime_shutdown(UINT64_MAX); /* not before its worker has taken it */
}

static struct fiber fake = {.slot = 7, .generation = 3};

TEST_DIES(run_a_stray, "SPEC-2", .signal = SIGABRT) {
    cc__set(&fake.word, cc__word_make(0, 5, 0, FIBER_RUNNABLE | WORD_FRESH));
    cc__spec_run(&fake, 5);
    cc__spec_run(&fake, 6);
}

TEST_DIES(run_parked, "SPEC-2", .signal = SIGABRT) {
    cc__set(&fake.word, cc__word_make(0, 5, PARK_JOIN, FIBER_PARKED));
    cc__spec_run(&fake, 5);
}

/* Through the claim itself. */
TEST_DIES(claim_without_reason, "SPEC-3", .signal = SIGABRT) {
    cc__trace_set(TRACE_SPEC);
    cc__set(&fake.word, cc__word_make(0, 5, PARK_JOIN, FIBER_PARKED));
    CHECK_EQ(cc__state_claim(&fake, 0, WAKE_OBJECT), CLAIM_WON);
    cc__set(&fake.word, cc__word_make(0, 5, PARK_NONE, FIBER_PARKING));
    (void)cc__state_claim(&fake, 0, WAKE_OBJECT);
}

/* A fiber parks itself on its own stack. */
static void *park_here(void *unused) {
    (void)unused;
    struct fiber *self = cc__sched_current(cc__worker());
    uint64_t ticket = cc__state_ticket(self);
    cc__state_park(self, PARK_FLAG);
    (void)cc__cancel_parked(self, ticket);
    return NULL;
}

TEST_DIES(park_on_own_stack, "SPEC-4", .signal = SIGABRT) {
    assert_spec();
    (void)cc_run(park_here, NULL, NULL);
}

/* ---- a program of many parts ---- */

static CCChan *ch;

static void *child(void *arg) {
    long value = (long)(uintptr_t)arg;
    CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(cc_chan_send(ch, &value, sizeof value), 0);
    return NULL;
}

static void *parent(void *unused) {
    (void)unused;
    long n = test_scale(300), sum = 0, value;
    CC_NURSERY(nursery) {
        for (long i = 0; i < n; i++) CHECK_EQ(cc_nursery_spawn(nursery, child, (void *)(uintptr_t)i), 0);
        for (long i = 0; i < n; i++) {
            CHECK_EQ(cc_chan_recv_until(ch, &value, sizeof value, cc_after_ms(100000)), 0);
            sum += value;
            if (i % 7 == 0) cc_yield();
        }
    }
    CHECK_EQ(sum, n * (n - 1) / 2);
    return NULL;
}

TEST_WORKERS(a_program, .timeout = 120) {
    assert_spec();
    ch = cc_chan_create(sizeof(long), 2);
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_run(parent, NULL, NULL), 0);
    cc_chan_free(ch);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}
