/* held.c - parking and waking under an internal lock is detected in debug builds, with the name of the lock. */
#include "harness.h"

#include "../gate.h"
#include "sync/lock.h"

#include <ccc/ccc.h>

#ifdef CC_DEBUG
#define DEBUG_ONLY() ((void)0)
#else
#define DEBUG_ONLY() SKIP("locks are watched in debug builds only")
#endif

static struct lock first, second;

static void *sleep_under_lock(void *unused) {
    (void)unused;
    cc__lock_take(&first);
    cc__lock_take(&second);
    cc__lock_release(&first);
    CHECK_EQ(cc_sleep_ms(1), 0);
    return NULL;
}

TEST_DIES(sleep, "HELD-1: PARK-UNDER-LOCK: a fiber leaves its worker while the thread holds: 0x", .signal = SIGABRT) {
    DEBUG_ONLY();
    cc_run(sleep_under_lock, NULL, NULL);
}

static void *yield_under_lock(void *unused) {
    (void)unused;
    cc__lock_take(&first);
    cc_yield();
    return NULL;
}

TEST_DIES(yield, "PARK-UNDER-LOCK", .signal = SIGABRT) {
    DEBUG_ONLY();
    cc_run(yield_under_lock, NULL, NULL);
}

/* The lock that the wait releases is handed over, the other one is not. */
static void *wait_under_lock(void *other) {
    struct waiter waiter;
    CHECK_EQ(cc__waiter_init(&waiter, cc__worker(), cc_after_ms(1).ns), 0);
    if (other != NULL) cc__lock_take(other);
    cc__lock_take(&first);
    CHECK_EQ(cc__wait_locked(&waiter, &first, (struct wait_what){PARK_FLAG, NULL}), WAKE_TIMER);
    return NULL;
}

TEST_DIES(wait, "(handed over), taken at", .signal = SIGABRT) {
    DEBUG_ONLY();
    cc_run(wait_under_lock, &second, NULL);
}

TEST(handed_over_is_not_held) {
    CHECK_EQ(cc_run(wait_under_lock, NULL, NULL), 0);
    cc__lock_take(&first); /* it was released, or is about to be: after the switch, which the timer does not wait for */
    cc__lock_release(&first);
}

static struct gate gate;

static void *wait_at_gate(void *unused) {
    (void)unused;
    gate_wait(&gate);
    return NULL;
}

static void open_under_lock(void) {
    CCTask task = cc_fiber_spawn_task(wait_at_gate, NULL);
    while (cc__get_seq(&gate.fiber) == NULL || cc__word_state(cc__get(&cc__get(&gate.fiber)->word)) != FIBER_PARKED)
        cc_yield();
    cc__lock_take(&first);
    (void)gate_open(&gate);
    cc__lock_release(&first);
    (void)cc_task_join(&task, NULL);
}

TEST_DIES(wake, "HELD-2: WAKE-FLUSH-UNDER-LOCK: fibers are woken while the thread holds: 0x", .signal = SIGABRT) {
    DEBUG_ONLY();
    open_under_lock();
}

TEST_DIES(flush, "WAKE-FLUSH-UNDER-LOCK", .signal = SIGABRT) {
    DEBUG_ONLY();
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&first);
    cc__wakes_flush(&wakes);
}

TEST_DIES(release_twice, "HELD-3", .signal = SIGABRT) {
    DEBUG_ONLY();
    cc__lock_take(&first);
    cc__lock_release(&first);
    cc__lock_release(&first);
}

/* More than are named: those beyond are counted, and all are released in any order. */
TEST(many) {
    static struct lock locks[100];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 100; i++) cc__lock_take(&locks[i]);
        for (int i = 0; i < 100; i++) cc__lock_release(&locks[round == 0 ? i : 99 - i]);
    }
    CHECK_EQ(cc_run(wait_under_lock, NULL, NULL), 0);
}
