/* late.c - a wait was ended by a cancellation, and its fiber has not run yet, when what it waited for is given: that goes
 * past it, to the next in the queue (WAITQ-2).
 *
 * One worker: whoever is cancelled runs when its canceller waits, and not before. So each case is one schedule. */
#include "harness.h"

#include <ccc/ccc.h>
#include <errno.h>
#include <stdint.h>

static CCMutex mutex;
static CCRWLock rw;
static CCCond cond;
static CCSem sem;
static CCBarrier barrier = CC_BARRIER_INIT(2);

static void *result_of(int rc) {
    return (void *)(intptr_t)rc;
}

static CCTask start(CCTaskFn fn) {
    CCTask task = cc_fiber_spawn_task(fn, NULL);
    cc_yield(); /* until it waits: one after the other, they queue up in this order */
    return task;
}

static void ends_with(CCTask task, int rc) {
    void *result;
    CHECK_EQ(cc_task_join(&task, &result), 0);
    CHECK_EQ((intptr_t)result, rc);
}

static void on_one_worker(CCTaskFn fn) {
    CHECK_EQ(cc_runtime_init(&(CCRuntimeConfig){.workers = 1, .max_workers = 1}), 0);
    CHECK_EQ(cc_run(fn, NULL, NULL), 0);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}

/* ---- one thing, and two who want it ---- */

/* The first is cancelled, then one thing is given: the second has it. */
static void past_the_first(CCTaskFn want, void (*give)(void)) {
    CCTask first = start(want), second = start(want);
    CHECK_EQ(cc_task_cancel(&first), 0);
    give();
    ends_with(second, 0);
    ends_with(first, ECANCELED);
}

static void *wait_for_signal(void *arg) {
    (void)arg;
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    int rc = cc_cond_wait(&cond, &mutex);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    return result_of(rc);
}

static void signal_once(void) {
    CHECK_EQ(cc_cond_signal(&cond), 0);
}

static void *signals(void *arg) {
    past_the_first(wait_for_signal, signal_once);
    return arg;
}

TEST(a_signal) {
    on_one_worker(signals);
}

static void *take_permit(void *arg) {
    (void)arg;
    return result_of(cc_sem_acquire(&sem));
}

static void release_three(void) {
    CHECK_EQ(cc_sem_release(&sem, 3), 0);
}

/* What is left over is there for whoever comes. */
static void *permits(void *arg) {
    past_the_first(take_permit, release_three);
    for (int left = 2; left > 0; left--) CHECK_EQ(cc_sem_acquire_try(&sem), 0);
    CHECK_EQ(cc_sem_acquire_try(&sem), EAGAIN);
    return arg;
}

TEST(permits_of_a_semaphore) {
    on_one_worker(permits);
}

static void *lock_and_unlock(void *arg) {
    (void)arg;
    int rc = cc_mutex_lock(&mutex);
    if (rc == 0) CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    return result_of(rc);
}

static void unlock(void) {
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
}

static void *mutexes(void *arg) {
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    past_the_first(lock_and_unlock, unlock);
    CHECK_EQ(cc_mutex_lock_try(&mutex), 0);
    unlock();
    return arg;
}

TEST(a_mutex) {
    on_one_worker(mutexes);
}

static void *write_and_unlock(void *arg) {
    (void)arg;
    int rc = cc_rwlock_write_lock(&rw);
    if (rc == 0) CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    return result_of(rc);
}

static void write_unlock(void) {
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
}

static void *writers(void *arg) {
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    past_the_first(write_and_unlock, write_unlock);
    return arg;
}

TEST(a_lock_for_writing) {
    on_one_worker(writers);
}

/* ---- what a leave does to those behind ---- */

static void *read_and_unlock(void *arg) {
    (void)arg;
    int rc = cc_rwlock_read_lock(&rw);
    if (rc == 0) CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    return result_of(rc);
}

/* A writer stands between those who read and those who want to; when it goes, they are together. */
static void *readers(void *arg) {
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    CCTask writer = start(write_and_unlock), reader = start(read_and_unlock);
    CHECK_EQ(cc_rwlock_read_lock_try(&rw), EAGAIN);
    CHECK_EQ(cc_task_cancel(&writer), 0);
    ends_with(reader, 0);
    ends_with(writer, ECANCELED);
    CHECK_EQ(cc_rwlock_read_lock_try(&rw), 0);
    CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    return arg;
}

TEST(readers_behind_a_writer_that_leaves) {
    on_one_worker(readers);
}

/* ---- a barrier ---- */

static void *meet(void *arg) {
    (void)arg;
    return result_of(cc_barrier_wait(&barrier));
}

/* It was cancelled before the barrier opened, and was counted all the same: it has passed. One that is gone is not. */
static void *meetings(void *arg) {
    CCTask first = start(meet);
    CHECK_EQ(cc_task_cancel(&first), 0);
    CHECK_EQ(cc_barrier_wait(&barrier), 0);
    ends_with(first, 0);

    CCTask second = start(meet);
    CHECK_EQ(cc_task_cancel(&second), 0);
    ends_with(second, ECANCELED);
    CHECK_EQ(cc_barrier_wait_until(&barrier, cc_after_ms(5)), ETIMEDOUT);
    return arg;
}

TEST(a_barrier_that_opens) {
    on_one_worker(meetings);
}
