/* driver.c - the table of drivers: a driver beside the timers is started, polled, waited in and stopped. */
#include "harness.h"

#include "../ending.h"
#include "os/clock.h"
#include "sched/driver.h"
#include "wait/wait.h"

#include <ccc/ccc.h>
#include <errno.h>

/* One event for all workers: a fiber, and when it is due. */
static struct {
    struct fiber *_Atomic fiber;
    _Atomic uint64_t ticket, due;
    _Atomic unsigned started, stopped;
    struct lock lock;
} event;

static bool start(unsigned workers) {
    CHECK(workers >= 1);
    cc__set(&event.due, UINT64_MAX);
    cc__add(&event.started, 1);
    return true;
}

static void stop(void) {
    cc__add(&event.stopped, 1);
}

static uint64_t next_due(unsigned worker, bool exact) {
    (void)exact;
    return worker == 0 ? cc__get_seq(&event.due) : UINT64_MAX;
}

static uint32_t poll(unsigned worker, uint64_t now, struct link *list) {
    if (worker != 0 || now < cc__get_seq(&event.due)) return 0;
    cc__lock_take(&event.lock);
    struct fiber *f = now >= cc__get(&event.due) ? cc__get(&event.fiber) : NULL;
    uint32_t n = f != NULL && cc__state_claim(f, cc__get(&event.ticket), WAKE_OBJECT) == CLAIM_WON;
    if (n != 0) cc__list_push_back(list, &f->link);
    if (f != NULL) cc__set_seq(&event.due, UINT64_MAX);
    cc__lock_release(&event.lock);
    return n;
}

static bool pending(void) {
    return cc__get(&event.due) != UINT64_MAX;
}

static const struct driver driver = {start, stop, next_due, poll, pending, NULL, NULL};

static void *await_event(void *arg) {
    _Atomic uint32_t flag = 0;
    struct fiber *self = cc__sched_current(cc__worker());
    uint64_t ticket = cc__park_open(self, PARK_IO), due = cc__clock_now() + *(uint64_t *)arg;
    cc__lock_take(&event.lock);
    cc__set(&event.fiber, self);
    cc__set(&event.ticket, ticket);
    cc__set_seq(&event.due, due);
    cc__lock_release(&event.lock);
    CHECK_EQ(cc__park_if(self, &flag, 0), WAKE_OBJECT);
    CHECK(cc__clock_now() >= due);
    CHECK(cc__clock_now() < due + UINT64_C(5000000000));
    return arg;
}

/* The workers sleep, one of them until the event is due. The longest of these times is long enough for a search for
 * deadlocks. */
TEST_WORKERS(sleepers_wake_for_it, .timeout = 60) {
    uint64_t waits[] = {0, 1000, 1000 * 1000, 30 * 1000 * 1000, 400 * 1000 * 1000};
    cc__set(&event.started, 0);
    cc__set(&event.stopped, 0);
    cc__drivers[1] = &driver;
    CHECK_EQ(cc_runtime_init(NULL), 0);
    for (unsigned i = 0; i < array_len(waits); i++) CHECK_EQ(cc_run(await_event, &waits[i], NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    cc__drivers[1] = NULL;
    CHECK_EQ(cc__get(&event.started), 1);
    CHECK_EQ(cc__get(&event.stopped), 1);
}

static void *yields(void *arg) {
    while (!cc__get_acquire((_Atomic uint32_t *)arg)) cc_yield();
    return NULL;
}

/* A worker that always has something to run polls it too. */
TEST_WORKERS(busy_workers_poll_it, .timeout = 60) {
    static _Atomic uint32_t over;
    uint64_t wait = 2 * 1000 * 1000;
    cc__set(&over, 0);
    cc__drivers[1] = &driver;
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CCTask busy[4];
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_spawn(&busy[i], yields, &over, NULL), 0);
    CHECK_EQ(cc_run(await_event, &wait, NULL), 0);
    cc__set_release(&over, 1);
    for (int i = 0; i < 4; i++) CHECK_EQ(cc_task_join(&busy[i], NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    cc__drivers[1] = NULL;
}

static bool fails(unsigned workers) {
    (void)workers;
    return false;
}

/* The runtime fails to start, and starts at the next attempt. */
TEST(start_fails) {
    static const struct driver broken = {fails, stop, next_due, poll, pending, NULL, NULL};
    cc__drivers[1] = &broken;
    CHECK_EQ(cc_runtime_init(NULL), ENOMEM);
    cc__drivers[1] = NULL;
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}

/* ---- a driver in which a worker can block ---- */

enum { INTERRUPTED = 1, RAISED = 2 };
static _Atomic uint32_t signals; /* futex */
static _Atomic unsigned blocked, interrupts;

static void signal_it(uint32_t what) {
    cc__or(&signals, what);
    cc__futex_wake(&signals, 1);
}

static bool wait_for_signal(uint64_t until) {
    CHECK_EQ(cc__add(&blocked, 1), 0); /* one at a time */
    bool raised = false, over = false;
    while (!over) {
        uint32_t seen = cc__get_acquire(&signals);
        raised = (seen & RAISED) != 0;
        over = seen != 0 || (until != UINT64_MAX && cc__clock_now() >= until);
        if (!over) cc__futex_wait(&signals, 0, until);
    }
    cc__and_seq(&signals, ~(uint32_t)INTERRUPTED);
    cc__sub_seq(&blocked, 1);
    return raised;
}

static void interrupt(void) {
    cc__add(&interrupts, 1);
    signal_it(INTERRUPTED);
}

static uint64_t never_due(unsigned worker, bool exact) {
    (void)worker, (void)exact;
    return UINT64_MAX;
}

static uint32_t poll_signal(unsigned worker, uint64_t now, struct link *list) {
    (void)worker, (void)now;
    if (!(cc__get_acquire(&signals) & RAISED)) return 0;
    cc__lock_take(&event.lock);
    /* Not that of the next fiber: another thread may have taken the event before this one had the lock. */
    bool raised = (cc__and_seq(&signals, ~(uint32_t)RAISED) & RAISED) != 0;
    struct fiber *f = raised ? cc__get(&event.fiber) : NULL;
    enum claim claim = f != NULL ? cc__state_claim(f, cc__get(&event.ticket), WAKE_OBJECT) : CLAIM_LOST;
    if (claim != CLAIM_LOST) cc__set(&event.fiber, NULL);
    if (claim == CLAIM_WON) cc__list_push_back(list, &f->link);
    cc__lock_release(&event.lock);
    return claim == CLAIM_WON;
}

static bool is_awaited(void) {
    return cc__get(&event.fiber) != NULL;
}

static const struct driver blocking = {start, stop, never_due, poll_signal, is_awaited, wait_for_signal, interrupt};

static void *await_signal(void *arg) {
    _Atomic uint32_t flag = 0;
    struct fiber *self = cc__sched_current(cc__worker());
    uint64_t ticket = cc__park_open(self, PARK_IO);
    cc__lock_take(&event.lock);
    cc__set(&event.ticket, ticket);
    cc__set(&event.fiber, self);
    cc__lock_release(&event.lock);
    CHECK_EQ(cc__park_if(self, &flag, 0), WAKE_OBJECT);
    return arg;
}

static void *await_signal_or_end(void *arg) {
    _Atomic uint32_t flag = 0;
    struct fiber *self = cc__sched_current(cc__worker());
    uint64_t ticket = cc__park_open(self, PARK_IO);
    cc__set(&event.ticket, ticket);
    cc__set(&event.fiber, self);
    CHECK_EQ(cc__park_if(self, &flag, 0), WAKE_CANCEL);
    cc__set(&event.fiber, NULL);
    return arg;
}

static void *nothing(void *arg) {
    return arg;
}

static void begin_blocking(void) {
    cc__set(&signals, 0);
    cc__set(&interrupts, 0);
    cc__set(&event.fiber, NULL);
    cc__drivers[1] = &blocking;
    CHECK_EQ(cc_runtime_init(NULL), 0);
}

static void end_blocking(void) {
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
    CHECK_EQ(cc__get(&blocked), 0);
    cc__drivers[1] = NULL;
}

/* Nobody wakes a worker: the one that blocks in the driver finds the event. */
TEST_WORKERS(an_event_ends_the_sleep, .timeout = 60) {
    begin_blocking();
    for (unsigned i = 0; i < 60; i++) {
        CCTask task;
        CHECK_EQ(cc_spawn(&task, await_signal, NULL, NULL), 0);
        while (!is_awaited()) cc_sleep_ms(1);
        if (i % 3 != 0) cc_sleep_ms(i % 3 == 1 ? 1 : 8); /* they are awake, search, or all sleep */
        signal_it(RAISED);
        CHECK_EQ(cc_task_join(&task, NULL), 0);
    }
    end_blocking();
}

/* The poller is the only worker, or one of many. */
TEST_WORKERS(a_wake_interrupts_the_driver, .timeout = 60) {
    begin_blocking();
    CCTask task;
    CHECK_EQ(cc_spawn(&task, await_signal, NULL, NULL), 0);
    for (unsigned i = 0; i < 300; i++) {
        CHECK_EQ(cc_run(nothing, NULL, NULL), 0);
        if (i % 10 == 0) cc_sleep_ms(1);
    }
    while (cc_worker_count() == 1 && cc__get(&interrupts) == 0) { /* it was not asleep, on a busy machine */
        while (cc__get(&blocked) == 0) cc_sleep_ms(1);
        CHECK_EQ(cc_run(nothing, NULL, NULL), 0);
    }
    CHECK(is_awaited());
    signal_it(RAISED);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    end_blocking();
}

/* A shutdown cancels the wait of the fiber while a worker blocks in the driver. */
TEST_WORKERS(a_shutdown_interrupts_the_driver, .timeout = 60) {
    begin_blocking();
    CCTask task;
    CHECK_EQ(cc_spawn(&task, await_signal_or_end, NULL, NULL), 0);
    while (!is_awaited()) cc_sleep_ms(1);
    cc_sleep_ms(5);
    end_by_cancelling();
    CHECK_EQ(cc__get(&blocked), 0);
    cc__drivers[1] = NULL;
}
