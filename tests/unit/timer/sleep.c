/* sleep.c - sleeping: never early, in fibers and OS threads; times in the far future and the past, saturation. */
#include "harness.h"

#include "../crew.h"
#include "../ending.h"
#include "sched/policy.h"
#include "sched/sched.h"
#include "timer/timer.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- points in time ---- */

TEST(deadlines_saturate) {
    uint64_t before = cc_now_ns();
    CCDeadline soon = cc_after_ns(1000), later = cc_after_ms(1000);
    uint64_t after = cc_now_ns();
    CHECK(before > 0 && after >= before);
    CHECK(soon.ns >= before + 1000 && soon.ns <= after + 1000);
    CHECK(later.ns >= before + 1000000000 && later.ns <= after + 1000000000);
    CHECK_EQ(cc_after_ns(UINT64_MAX).ns, UINT64_MAX);
    CHECK_EQ(cc_after_ns(UINT64_MAX - before / 2).ns, UINT64_MAX);
    CHECK_EQ(cc_after_ms(UINT64_MAX).ns, UINT64_MAX);
    CHECK_EQ(cc_after_ms(UINT64_MAX / 1000000 + 1).ns, UINT64_MAX);
    CHECK_EQ(CC_FOREVER.ns, UINT64_MAX);
    CHECK(cc_after_ns(0).ns >= before);
    CHECK_EQ(cc_worker_count(), 0); /* none of this starts the runtime */
}

static void check_sleeps(void) {
    CHECK_EQ(cc_sleep_until(CC_PASSED), 0);
    CHECK_EQ(cc_sleep_until((CCDeadline){cc_now_ns()}), 0);
    CHECK_EQ(cc_sleep_ms(0), 0);
    for (uint64_t ns = 1; ns < 20 * 1000 * 1000; ns *= 4) {
        CCDeadline deadline = cc_after_ns(ns);
        CHECK_EQ(cc_sleep_until(deadline), 0);
        CHECK(cc_now_ns() >= deadline.ns);
    }
    uint64_t before = cc_now_ns();
    CHECK_EQ(cc_sleep_ms(3), 0);
    CHECK(cc_now_ns() >= before + 3000000);
}

static void *check_sleeps_in_fiber(void *arg) {
    check_sleeps();
    return arg;
}

TEST_WORKERS(never_early_in_a_fiber) {
    CHECK_EQ(cc_run(check_sleeps_in_fiber, NULL, NULL), 0);
}

/* IDLE-8. While timers come in quick succession a worker sleeps until several are due, as soon as it has noticed; on a
 * busy machine it wakes less often still. */
static void *sleep_often(void *arg) {
    enum { TIMES = 4000, STEP_NS = 50 * 1000, SLACK_NS = 2000 * 1000 };
    CCStats before, after;
    CHECK_EQ(cc_stats(&before, sizeof before), 0);
    uint64_t begin = cc_now_ns();
    for (uint64_t i = 0; i < TIMES; i++) {
        CCDeadline due = {begin + i * STEP_NS};
        CHECK_EQ(cc_sleep_until(due), 0);
        CHECK(cc_now_ns() >= due.ns);
    }
    uint64_t took = cc_now_ns() - begin;
    CHECK_EQ(cc_stats(&after, sizeof after), 0);
    CHECK((after.sleeps - before.sleeps) * SLACK_NS <= 8 * took); /* the watcher sleeps and wakes beside it */
    return arg;
}

TEST_WORKERS(timers_in_quick_succession_share_a_wake) {
    CHECK_EQ(setenv("CC_TIMER_SLACK_US", "2000", 1), 0);
    CHECK_EQ(cc_run(sleep_often, NULL, NULL), 0);
}

enum { NEAR = TIMER_WAKES * (TIMER_NEAR_NS - 1), FAR = TIMER_WAKES * (TIMER_FAR_NS + 1), MS = 1000 * 1000 };

TEST(slack_begins_and_ends_with_the_rate_of_timers) {
    CHECK_EQ(cc__policy_timer_slack(0, MS, FAR, TIMER_WAKES), 0);
    CHECK_EQ(cc__policy_timer_slack(0, MS, NEAR, TIMER_WAKES), TIMER_SLACK_MIN_NS);
    CHECK_EQ(cc__policy_timer_slack(0, 1000, NEAR, TIMER_WAKES), 1000); /* CC_TIMER_SLACK_US=1 */
    CHECK_EQ(cc__policy_timer_slack(MS, MS, FAR, TIMER_WAKES), 0);
}

TEST(slack_grows_until_a_wake_fires_several_timers) {
    uint64_t few = TIMER_WAKES * TIMER_FEW - 1, many = TIMER_WAKES * TIMER_MANY;
    CHECK_EQ(cc__policy_timer_slack(TIMER_SLACK_MIN_NS, MS, NEAR, few), 2 * TIMER_SLACK_MIN_NS);
    CHECK_EQ(cc__policy_timer_slack(MS - 1, MS, NEAR, few), MS);
    CHECK_EQ(cc__policy_timer_slack(MS, MS, NEAR, few), MS);
    CHECK_EQ(cc__policy_timer_slack(MS, MS, NEAR, few + 1), MS);
    CHECK_EQ(cc__policy_timer_slack(MS, MS, NEAR, many), MS / 2);
    CHECK_EQ(cc__policy_timer_slack(TIMER_SLACK_MIN_NS, MS, NEAR, many), TIMER_SLACK_MIN_NS);
}

/* A ticker of a millisecond is exact, and so is a timer after a pause. */
static uint64_t slack(void) {
    return cc__get(&cc__sched.idle.timers.slack);
}

static void *sleep_in_steps(void *arg) {
    for (uint64_t i = 0, next = cc_now_ns(); i < 1000; i++)
        CHECK_EQ(cc_sleep_until((CCDeadline){next += 50 * 1000}), 0);
    printf("slack of %llu ns\n", (unsigned long long)slack());
    CHECK_EQ(cc_sleep_ms(20), 0);
    CHECK_EQ(slack(), 0);
    for (uint64_t i = 0; i < 2 * TIMER_WAKES; i++) {
        CHECK_EQ(cc_sleep_ms(1), 0);
        CHECK_EQ(slack(), 0);
    }
    return arg;
}

TEST_WORKERS(timers_are_exact_again_after_a_pause) {
    CHECK_EQ(cc_run(sleep_in_steps, NULL, NULL), 0);
}

static void check_sleeps_in_thread(int index, void *arg) {
    (void)index, (void)arg;
    check_sleeps();
}

TEST(never_early_in_a_thread) {
    crew_run(4, check_sleeps_in_thread, NULL);
    CHECK_EQ(cc_worker_count(), 0); /* a thread sleeps without the runtime */
}

/* ---- many at once ---- */

static void *sleep_randomly(void *seed) {
    uint64_t random = (uint64_t)(uintptr_t)seed;
    for (int i = 0; i < 3; i++) {
        CCDeadline deadline = cc_after_ns(test_random(&random) % (10 * 1000 * 1000));
        CHECK_EQ(cc_sleep_until(deadline), 0);
        CHECK(cc_now_ns() >= deadline.ns);
    }
    return seed;
}

TEST_WORKERS(many_sleepers) {
    enum { MANY = 2000 };
    static CCTask tasks[MANY];
    uint64_t seed = test_seed();
    long count = test_rounds(MANY, MANY);
    for (long i = 0; i < count; i++)
        tasks[i] = cc_fiber_spawn_task(sleep_randomly, (void *)(uintptr_t)(seed + (uint64_t)i));
    for (long i = 0; i < count; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}

/* A sleeper parks and does not block its worker: all of them sleep at the same time, or the case never ends. */
enum { SLEEPERS = 100 };
static _Atomic int sleeping;

static void *sleep_until_all_do(void *arg) {
    cc__add(&sleeping, 1);
    do {
        CHECK_EQ(cc_sleep_ms(1), 0);
    } while (cc__get(&sleeping) < SLEEPERS);
    return arg;
}

TEST_WORKERS(sleepers_overlap) {
    CCTask tasks[SLEEPERS];
    for (int i = 0; i < SLEEPERS; i++) tasks[i] = cc_fiber_spawn_task(sleep_until_all_do, NULL);
    for (int i = 0; i < SLEEPERS; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
}

/* An earlier deadline than all others is seen although the workers sleep already for a later one. */
static _Atomic int woken;

static void *sleep_and_count(void *ms) {
    CHECK_EQ(cc_sleep_ms((uint64_t)(uintptr_t)ms), 0);
    cc__add(&woken, 1);
    return NULL;
}

static void *sleep_for_an_hour(void *arg) {
    CHECK_EQ(cc_sleep_ms(3600 * 1000), ECANCELED);
    cc__add(&woken, 1);
    return arg;
}

TEST_WORKERS(earlier_one_comes_later) {
    CCTask late = cc_fiber_spawn_task(sleep_for_an_hour, NULL);
    CCTask soon[5];
    for (int i = 0; i < 5; i++) {
        soon[i] = cc_fiber_spawn_task(sleep_and_count, (void *)(uintptr_t)(1 + i));
        CHECK_EQ(cc_task_join(&soon[i], NULL), 0);
    }
    CHECK_EQ(cc__get(&woken), 5); /* joined, and the late one still sleeps */
    CHECK_EQ(cc_task_cancel(&late), 0);
    CHECK_EQ(cc_task_join(&late, NULL), 0);
    CHECK_EQ(cc__get(&woken), 6);
}

/* ---- waits that end early ---- */

static void *yield_once(void *arg) {
    cc_yield();
    return arg;
}

static void *join_with_far_deadlines(void *arg) {
    uint32_t most = 0;
    for (long i = 0; i < test_rounds(20000, 500000); i++) {
        CCTask child = cc_fiber_spawn_task(yield_once, NULL);
        CHECK_EQ(cc_task_join_until(&child, NULL, cc_after_ms(3600 * 1000)), 0);
        uint32_t count = cc__timer_count(cc__worker());
        if (count > most) most = count;
    }
    CHECK(most <= 256);
    return arg;
}

TEST_WORKERS(timers_of_ended_waits_do_not_pile_up) {
    CHECK_EQ(cc_run(join_with_far_deadlines, NULL, NULL), 0);
}

/* ---- a worker that was to wake for a timer computes ---- */

static CCEvent go;
static _Atomic bool falls_asleep, slept;

static unsigned asleep(void) {
    return want_idle(cc__get(&cc__sched.want));
}

static void *compute_on_signal(void *arg) {
    CHECK_EQ(cc_event_wait(&go), 0);
    while (!atomic_load(&slept)) {
    }
    return arg;
}

static void *sleep_while_all_do(void *other) {
    CHECK_EQ(cc_spawn(other, compute_on_signal, NULL, NULL), 0);
    cc_yield(); /* it waits, on this worker */
    while (asleep() + 1 < cc__sched_open()) {
    } /* one of the others is the watcher, so this worker will not be */
    atomic_store(&falls_asleep, true);
    CHECK_EQ(cc_sleep_ms(50), 0);
    atomic_store(&slept, true);
    return NULL;
}

/* The watcher gives up its role, as all sleep, and the timer sleeper is notified. */
TEST_WORKERS(another_sleeper_wakes_for_the_timer) {
    CHECK_EQ(cc_runtime_init(NULL), 0);
    if (cc__sched_open() == 1) SKIP("needs two workers");
    CCTask computer, sleeper = cc_fiber_spawn_task(sleep_while_all_do, &computer);
    while (!atomic_load(&falls_asleep)) CHECK_EQ(cc_sleep_ms(1), 0);
    while (!atomic_load(&slept) && (asleep() < cc__sched_open() || cc__get(&cc__sched.idle.watcher) != NULL))
        CHECK_EQ(cc_sleep_ms(1), 0);
    CHECK_EQ(cc_event_set(&go), 0);
    CHECK_EQ(cc_task_join(&sleeper, NULL), 0);
    CHECK_EQ(cc_task_join(&computer, NULL), 0);
}

/* ---- a fiber arms a timer for others and computes ---- */

static CCEvent nobody_sets;
static _Atomic bool ended_in_time;

static void *wait_below(void *arg) {
    CHECK_EQ(cc_event_wait(&nobody_sets), ECANCELED);
    atomic_store(&ended_in_time, true);
    return arg;
}

struct arming {
    CCNursery *nursery;
    uint64_t ms;
};

static void *arm_and_compute(void *arg) {
    const struct arming *a = arg;
    CHECK_EQ(cc_nursery_spawn(a->nursery, wait_below, NULL), 0);
    cc_yield(); /* it waits */
    while (asleep() + 1 < cc__sched_open()) {
    } /* one of the others is the watcher, so this worker will not be */
    atomic_store(&falls_asleep, true);
    CHECK_EQ(cc_event_wait(&go), 0);
    CHECK_EQ(cc_nursery_set_deadline(a->nursery, cc_after_ms(a->ms)), 0);
    while (!atomic_load(&ended_in_time)) {
    }
    return NULL;
}

/* All sleep, and nobody has a role. One worker is woken, for the fiber that arms the timer; the others have no other
 * reason to wake. */
static void compute_under_a_deadline(uint64_t ms) {
    CHECK_EQ(cc_runtime_init(NULL), 0);
    if (cc__sched_open() == 1) SKIP("needs two workers");
    for (int round = 0; round < 4; round++) {
        atomic_store(&ended_in_time, false);
        atomic_store(&falls_asleep, false);
        CHECK_EQ(cc_event_reset(&go), 0);
        struct arming a = {cc_nursery_create(NULL), ms};
        CCTask computer = cc_fiber_spawn_task(arm_and_compute, &a);
        while (!atomic_load(&falls_asleep) || asleep() < cc__sched_open() || cc__get(&cc__sched.idle.watcher) != NULL)
            CHECK_EQ(cc_sleep_ms(1), 0);
        CHECK_EQ(cc_event_set(&go), 0);
        CHECK_EQ(cc_task_join(&computer, NULL), 0);
        CHECK_EQ(cc_nursery_wait(a.nursery), ETIMEDOUT);
        CHECK_EQ(cc_nursery_free(a.nursery), 0);
    }
}

TEST_WORKERS(a_deadline_passes_while_its_fiber_computes) {
    compute_under_a_deadline(2);
}

TEST_WORKERS(a_far_deadline_passes_while_its_fiber_computes) {
    compute_under_a_deadline(300);
}

/* ---- times that never come ---- */

static _Atomic int cancelled;

static void *sleep_for_ever(void *ns) {
    int rc = cc_sleep_until((CCDeadline){(uint64_t)(uintptr_t)ns});
    CHECK_EQ(rc, ECANCELED);
    cc__add(&cancelled, 1);
    return NULL;
}

TEST_WORKERS(for_ever_until_shutdown) {
    static const uint64_t ends[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_MAX / 2, INT64_MAX, (uint64_t)INT64_MAX + 1};
    CCTask tasks[array_len(ends)];
    for (size_t i = 0; i < array_len(ends); i++)
        tasks[i] = cc_fiber_spawn_task(sleep_for_ever, (void *)(uintptr_t)ends[i]);
    CCTask short_one = cc_fiber_spawn_task(sleep_and_count, (void *)(uintptr_t)2);
    CHECK_EQ(cc_task_join(&short_one, NULL), 0); /* far times do not keep near ones from firing */
    CHECK_EQ(cc_task_join_try(&tasks[0], NULL), EAGAIN);
    end_by_cancelling();
    CHECK_EQ(cancelled, array_len(ends));
}
