/* park_if.c - the simplest wait: a wake before, during or after the park is never lost, and a stale one has no
 * effect. */
#include "harness.h"

#include "../crew.h"
#include "../ending.h"
#include "../gate.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <sched.h>

static struct fiber *self(void) {
    return cc__sched_current(cc__worker());
}

/* ---- the orders, one at a time ---- */

static void *flag_changed_before(void *arg) {
    _Atomic uint32_t flag = 1;
    uint64_t ticket = cc__park_open(self(), PARK_FLAG);
    CHECK_EQ(cc__park_if(self(), &flag, 0), 0);
    CHECK(!cc__fiber_wake(self(), ticket, WAKE_OBJECT)); /* the wait is over */
    cc_yield();                                          /* and the fiber is as before */
    return arg;
}

TEST_WORKERS(flag_has_changed_before) {
    CHECK_EQ(cc_run(flag_changed_before, NULL, NULL), 0);
}

static void *woken_before(void *arg) {
    _Atomic uint32_t flag = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t ticket = cc__park_open(self(), PARK_FLAG);
        CHECK(cc__fiber_wake(self(), ticket, WAKE_CANCEL));  /* latched */
        CHECK(!cc__fiber_wake(self(), ticket, WAKE_OBJECT)); /* the second one is too late */
        CHECK_EQ(cc__park_if(self(), &flag, 0), WAKE_CANCEL);
        CHECK(!cc__fiber_wake(self(), ticket, WAKE_OBJECT));
    }
    return arg;
}

TEST_WORKERS(wake_comes_before_the_park) {
    CHECK_EQ(cc_run(woken_before, NULL, NULL), 0);
}

static struct {
    struct fiber *_Atomic fiber;
    _Atomic uint64_t ticket;
    _Atomic uint32_t flag;
    _Atomic unsigned woken_by;
} shared;

static void *park_once(void *arg) {
    cc__set(&shared.ticket, cc__park_open(self(), PARK_FLAG));
    cc__set_release(&shared.fiber, self());
    cc__set(&shared.woken_by, cc__park_if(self(), &shared.flag, 0));
    return arg;
}

/* By a fiber on the same worker, which can only run once the other has parked. */
static void *wake_parked(void *arg) {
    CCTask waiter = cc_fiber_spawn_task(park_once, NULL);
    cc_yield();
    struct fiber *f = cc__get(&shared.fiber);
    uint64_t ticket = cc__get(&shared.ticket);
    CHECK_EQ(cc__word_state(cc__get(&f->word)), FIBER_PARKED);
    CHECK_EQ(cc__word_reason(cc__get(&f->word)), PARK_FLAG);
    CHECK(!cc__fiber_wake(f, ticket - WORD_TICKET_ONE, WAKE_OBJECT)); /* stale */
    CHECK(!cc__fiber_wake(f, ticket + WORD_TICKET_ONE, WAKE_OBJECT));
    CHECK_EQ(cc__word_state(cc__get(&f->word)), FIBER_PARKED);
    CHECK_EQ(cc_task_join_try(&waiter, NULL), EAGAIN);
    CHECK(cc__fiber_wake(f, ticket, WAKE_TIMER));
    CHECK(!cc__fiber_wake(f, ticket, WAKE_OBJECT));
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    CHECK_EQ(cc__get(&shared.woken_by), WAKE_TIMER);
    CHECK(!cc__fiber_wake(f, ticket, WAKE_OBJECT)); /* the fiber has ended, its record remains */
    return arg;
}

TEST(wake_comes_after_the_park) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(wake_parked, NULL, NULL), 0);
}

/* A wake with the ticket of an earlier fiber does not reach the fiber that reuses its record. */
static void *reuse_the_record(void *arg) {
    CCTask first = cc_fiber_spawn_task(park_once, NULL);
    cc_yield();
    struct fiber *f = cc__get(&shared.fiber);
    uint64_t stale = cc__get(&shared.ticket);
    CHECK(cc__fiber_wake(f, stale, WAKE_OBJECT));
    CHECK_EQ(cc_task_join(&first, NULL), 0);
    for (int i = 0; i < 100; i++) { /* the record that was just returned is the next one taken */
        CCTask next = cc_fiber_spawn_task(park_once, NULL);
        cc_yield();
        CHECK(cc__get(&shared.fiber) == f);
        CHECK(!cc__fiber_wake(f, stale, WAKE_OBJECT));
        CHECK_EQ(cc__word_state(cc__get(&f->word)), FIBER_PARKED);
        CHECK(cc__fiber_wake(f, cc__get(&shared.ticket), WAKE_OBJECT));
        CHECK_EQ(cc_task_join(&next, NULL), 0);
    }
    return arg;
}

TEST(stale_ticket_of_an_earlier_fiber) {
    CCRuntimeConfig config = {.workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(reuse_the_record, NULL, NULL), 0);
}

/* ---- from an OS thread, at any moment ---- */

static struct gate gate;

static void *pass_gate_often(void *rounds) {
    for (intptr_t i = 0; i < (intptr_t)rounds; i++) {
        gate_wait(&gate);
        gate_close(&gate);
    }
    return NULL;
}

/* The thread opens as soon as it sees the gate closed: before, while and after the fiber parks. */
TEST_WORKERS(woken_by_a_thread) {
    long rounds = test_rounds(20000, 1000000) / 4;
    CCTask waiter = cc_fiber_spawn_task(pass_gate_often, (void *)rounds);
    for (int rc; (rc = cc_task_join_try(&waiter, NULL)) != 0;) {
        CHECK_EQ(rc, EAGAIN);
        if (cc__get(&gate.open) == 0)
            (void)gate_open(&gate);
        else
            sched_yield();
    }
}

/* ---- several wakers ---- */

static _Atomic long wins;
static _Atomic bool stop;

static void wake_whoever_parks(int index, void *arg) {
    (void)index, (void)arg;
    while (!cc__get(&stop)) {
        struct fiber *f = cc__get_acquire(&shared.fiber);
        if (f == NULL || !cc__fiber_wake(f, cc__get_acquire(&shared.ticket), WAKE_OBJECT)) {
            sched_yield();
            continue;
        }
        cc__add(&wins, 1);
    }
}

static void *park_often(void *rounds) {
    for (intptr_t i = 0; i < (intptr_t)rounds; i++) {
        cc__set_release(&shared.ticket, cc__park_open(self(), PARK_FLAG));
        cc__set_release(&shared.fiber, self());
        CHECK_EQ(cc__park_if(self(), &shared.flag, 0), WAKE_OBJECT);
    }
    return NULL;
}

/* Three threads try to end every wait with tickets that may be stale by then: each wait is ended by exactly one of
 * them. */
TEST_WORKERS(each_wait_is_ended_once) {
    struct crew crew;
    intptr_t rounds = test_rounds(3000, 100000);
    CCTask waiter = cc_fiber_spawn_task(park_often, (void *)rounds);
    crew_start(&crew, 3, wake_whoever_parks, NULL);
    CHECK_EQ(cc_task_join(&waiter, NULL), 0);
    cc__set(&stop, true);
    crew_join(&crew);
    CHECK_EQ(wins, rounds);
}

/* ---- shutdown ---- */

TEST_WORKERS(cancelled_by_shutdown) {
    CHECK_EQ(cc_spawn(NULL, park_once, NULL, NULL), 0);
    while (cc__get_acquire(&shared.fiber) == NULL) sched_yield();
    end_by_cancelling();
    CHECK_EQ(shared.woken_by, WAKE_CANCEL);
}
