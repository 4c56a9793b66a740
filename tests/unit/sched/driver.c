/* driver.c - the table of drivers: one beside the timers is started, polled, slept for and stopped. */
#include "harness.h"

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

static const struct driver driver = {start, stop, next_due, poll, pending};

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

/* The workers sleep, one of them until the event is due. At the longest of these times somebody looks for deadlocks. */
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

/* The runtime does not start, and does another time. */
TEST(start_fails) {
    static const struct driver broken = {fails, stop, next_due, poll, pending};
    cc__drivers[1] = &broken;
    CHECK_EQ(cc_runtime_init(NULL), ENOMEM);
    cc__drivers[1] = NULL;
    CHECK_EQ(cc_runtime_init(NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(UINT64_MAX), 0);
}
