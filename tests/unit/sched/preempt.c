/* preempt.c - fibers that never have to wait do not keep their workers from others (NEXT-3). */
#include "harness.h"

#include "os/cpus.h"
#include "sync/atomic.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdlib.h>

static _Atomic bool stop;
static CCChan *full; /* it has a value and room for another, always */
static CCMutex mutex;
static CCRWLock rwlock;
static CCSem permits = CC_SEM_INIT(32);

/* ---- calls that are always ready ---- */

static void send_and_receive(void) {
    int v = 1;
    CHECK_EQ(cc_chan_send(full, &v, sizeof v), 0);
    CHECK_EQ(cc_chan_recv(full, &v, sizeof v), 0);
}

static void send_and_receive_in_time(void) {
    int v = 1;
    CHECK_EQ(cc_chan_send_until(full, &v, sizeof v, cc_after_ms(60000)), 0);
    CHECK_EQ(cc_chan_recv_until(full, &v, sizeof v, cc_after_ms(60000)), 0);
}

static void select_either(void) {
    int sent = 1, received;
    CC_MATCH(CC_SEND(full, &sent, NULL), CC_RECV(full, &received, NULL)) {
    case 0:
        CHECK_EQ(cc_chan_recv_try(full, &received, sizeof received), 0);
        break;
    case 1:
        CHECK_EQ(cc_chan_send_try(full, &sent, sizeof sent), 0);
        break;
    }
}

static void select_when(void) {
    int sent = 1, received;
    CC_WHEN {
        CC_ON_SEND(full, &sent) CHECK_EQ(cc_chan_recv_try(full, &received, sizeof received), 0);
        CC_ON_RECV(full, &received) CHECK_EQ(cc_chan_send_try(full, &sent, sizeof sent), 0);
    }
}

static void lock_and_unlock(void) {
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
}

static void read_and_unlock(void) {
    CHECK_EQ(cc_rwlock_read_lock(&rwlock), 0);
    CHECK_EQ(cc_rwlock_read_unlock(&rwlock), 0);
}

static void write_and_unlock(void) {
    CHECK_EQ(cc_rwlock_write_lock(&rwlock), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rwlock), 0);
}

static void take_permit(void) {
    CHECK_EQ(cc_sem_acquire(&permits), 0);
    CHECK_EQ(cc_sem_release(&permits, 1), 0);
}

/* ---- beside others ---- */

static void *never_waits(void *call) {
    void (*const *fn)(void) = call;
    while (!cc__get(&stop)) (*fn)();
    return NULL;
}

static void *sleeps(void *arg) {
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_sleep_ms(1), 0);
    cc__set(&stop, true);
    return arg;
}

/* As many as there are workers, and one more; the pool cannot grow. It hangs if none of them lets the sleeper run. */
static void *crowd(void *call) {
    unsigned n = cc_worker_count() + 1;
    if (n > cc__cpus_usable() + 1 && getenv("TEST_EMULATED") != NULL)
        SKIP("under emulators it sometimes hangs beside other programs, which is not understood");
    CCTask tasks[32], sleeper = cc_fiber_spawn_task(sleeps, NULL);
    CHECK(n <= 32);
    cc__set(&stop, false);
    full = cc_chan_create(sizeof(int), 64);
    for (int v = 0; v < 32; v++) CHECK_EQ(cc_chan_send(full, &v, sizeof v), 0);
    for (unsigned i = 0; i < n; i++) tasks[i] = cc_fiber_spawn_task(never_waits, call);
    for (unsigned i = 0; i < n; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(cc_task_join(&sleeper, NULL), 0);
    cc_chan_free(full);
    return NULL;
}

static void run_crowd(void (*call)(void)) {
    CHECK_EQ(setenv("CC_PREEMPT", "1", 1), 0);
    CHECK_EQ(cc_run(crowd, &call, NULL), 0);
}

TEST_WORKERS(sends_and_receives) {
    run_crowd(send_and_receive);
}
TEST_WORKERS(sends_and_receives_with_deadlines) {
    run_crowd(send_and_receive_in_time);
}
/* Channels that are measured or logged take other paths. */
TEST_WORKERS(timed_sends_and_receives) {
    CHECK_EQ(setenv("CC_TRACE", "timing", 1), 0);
    run_crowd(send_and_receive);
}
TEST_WORKERS(selects) {
    run_crowd(select_either);
}
TEST_WORKERS(timed_selects) {
    CHECK_EQ(setenv("CC_TRACE", "timing", 1), 0);
    run_crowd(select_either);
}
TEST_WORKERS(selects_with_bodies) {
    run_crowd(select_when);
}
TEST_WORKERS(locks) {
    run_crowd(lock_and_unlock);
}
TEST_WORKERS(read_locks) {
    run_crowd(read_and_unlock);
}
TEST_WORKERS(write_locks) {
    run_crowd(write_and_unlock);
}
TEST_WORKERS(permits_of_semaphores) {
    run_crowd(take_permit);
}

/* ---- beside short tasks ---- */

enum { SHORT = 300 };

static _Atomic uint32_t short_ended;

static void *ends_at_once(void *arg) {
    cc__add(&short_ended, 1);
    return arg;
}

/* Returns how often tasks have ended between two of its calls. */
static void *never_waits_and_counts(void *arg) {
    uint32_t before = 0, times = 0;
    for (uint32_t now; (now = cc__get(&short_ended)) < SHORT; before = now) {
        times += now != before;
        send_and_receive();
    }
    *(uint32_t *)arg = times;
    return NULL;
}

static void *many_short(void *arg) {
    uint32_t times = 0;
    int v = 1;
    full = cc_chan_create(sizeof v, 4);
    CHECK_EQ(cc_chan_send(full, &v, sizeof v), 0);
    CCTask task = cc_fiber_spawn_task(never_waits_and_counts, &times);
    CC_NURSERY(n) {
        for (int i = 0; i < SHORT; i++) CHECK_EQ(cc_nursery_go(n, ends_at_once, NULL, 0), 0);
    }
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    CHECK(times < SHORT / 2); /* one after each of its turns would take 4 ms each */
    cc_chan_free(full);
    return arg;
}

TEST(short_tasks_get_more_than_a_turn_each) {
    CHECK_EQ(setenv("CC_PREEMPT", "1", 1), 0);
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(many_short, NULL, NULL), 0);
}

/* ---- forms that do not switch ---- */

static _Atomic bool others_ran;

static void *notes_its_turn(void *arg) {
    cc__set(&others_ran, true);
    return arg;
}

/* Longer than it takes until the turn is too long: the next call that may switch yields. */
static void *tries(void *arg) {
    CCTask other = cc_fiber_spawn_task(notes_its_turn, NULL);
    int v = 1;
    full = cc_chan_create(sizeof v, 4);
    for (CCDeadline end = cc_after_ms(100); !cc_deadline_has_passed(end);) {
        CHECK_EQ(cc_chan_send_try(full, &v, sizeof v), 0);
        CHECK_EQ(cc_chan_recv_try(full, &v, sizeof v), 0);
        CHECK_EQ(cc_chan_recv_try(full, &v, sizeof v), EAGAIN);
    }
    CHECK(!cc__get(&others_ran));
    while (!cc__get(&others_ran)) {
        CHECK_EQ(cc_chan_send(full, &v, sizeof v), 0);
        CHECK_EQ(cc_chan_recv(full, &v, sizeof v), 0);
    }
    CHECK_EQ(cc_task_join(&other, NULL), 0);
    cc_chan_free(full);
    return arg;
}

TEST(tries_do_not_switch) {
    CHECK_EQ(setenv("CC_PREEMPT", "1", 1), 0);
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(tries, NULL, NULL), 0);
}

/* ---- calls that wait ---- */

static CCChan *rendezvous; /* a send that does not wait needs a receiver that does */

static void receive(void) {
    int v = 0;
    CHECK_EQ(cc_chan_recv(rendezvous, &v, sizeof v), 0);
}

static void receive_in_time(void) {
    int v = 0;
    CHECK_EQ(cc_chan_recv_until(rendezvous, &v, sizeof v, cc_after_ms(60000)), 0);
}

static void select_receive(void) {
    int v = 0;
    CC_MATCH(CC_RECV(rendezvous, &v, NULL)) {}
}

static void *computes_and(void *call) {
    void (*const *fn)(void) = call;
    for (CCDeadline end = cc_after_ms(100); !cc_deadline_has_passed(end);) {
    }
    (*fn)();
    return NULL;
}

/* After its long turn the fiber waits. If it yielded before that, whoever knows that it has run, and so that it waits,
 * could free the channel too early. */
static void *waits_at_once(void *call) {
    int v = 1;
    rendezvous = cc_chan_create(sizeof v, 0);
    CCTask task = cc_fiber_spawn_task(computes_and, call);
    cc_yield();
    CHECK_EQ(cc_chan_send_try(rendezvous, &v, sizeof v), 0);
    CHECK_EQ(cc_task_join(&task, NULL), 0);
    cc_chan_free(rendezvous);
    return NULL;
}

static void run_wait(void (*call)(void)) {
    CHECK_EQ(setenv("CC_PREEMPT", "1", 1), 0);
    CCRuntimeConfig config = {.workers = 1, .max_workers = 1};
    CHECK_EQ(cc_runtime_init(&config), 0);
    CHECK_EQ(cc_run(waits_at_once, &call, NULL), 0);
}

TEST(a_receive_that_waits_does_not_yield_first) {
    run_wait(receive);
}
TEST(a_receive_with_a_deadline_that_waits_does_not_yield_first) {
    run_wait(receive_in_time);
}
TEST(a_timed_receive_that_waits_does_not_yield_first) {
    CHECK_EQ(setenv("CC_TRACE", "timing", 1), 0);
    run_wait(receive);
}
TEST(a_select_that_waits_does_not_yield_first) {
    run_wait(select_receive);
}
