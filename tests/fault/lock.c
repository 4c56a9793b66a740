/* lock.c - waits in cc_sync.h with a deadline when there is no memory for the timer: ENOMEM, nothing is
 * acquired, and the object serves the next caller. */
#include "fail.h"
#include "harness.h"

#include <ccc/ccc.h>

static CCMutex mutex, cond_mutex;
static CCRWLock rw;
static CCCond cond;
static CCSem sem;
static CCWaitGroup group;
static CCEvent event;
static CCBarrier barrier = CC_BARRIER_INIT(2);

/* No timer was ever armed on this runtime: the first needs memory. */
static void *wait_for_all(void *unused) {
    CCDeadline later = cc_after_ms(3600 * 1000);
    CHECK_EQ(cc_mutex_lock(&cond_mutex), 0);
    fail_arm(1, FAIL_MEMORY, true);
    CHECK_EQ(cc_mutex_lock_until(&mutex, later), ENOMEM);
    CHECK_EQ(cc_rwlock_read_lock_until(&rw, later), ENOMEM);
    CHECK_EQ(cc_rwlock_write_lock_until(&rw, later), ENOMEM);
    CHECK_EQ(cc_cond_wait_until(&cond, &cond_mutex, later), ENOMEM);
    CHECK_EQ(cc_mutex_lock_try(&cond_mutex), EAGAIN); /* still held */
    CHECK_EQ(cc_sem_acquire_until(&sem, later), ENOMEM);
    CHECK_EQ(cc_wait_group_wait_until(&group, later), ENOMEM);
    CHECK_EQ(cc_event_wait_until(&event, later), ENOMEM);
    CHECK_EQ(cc_barrier_wait_until(&barrier, later), ENOMEM);
    CHECK(fail_disarm() > 0);
    CHECK_EQ(cc_mutex_unlock(&cond_mutex), 0);
    return unused;
}

TEST_WORKERS(no_memory_for_a_timer) {
    fail_begin();
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CHECK_EQ(cc_wait_group_add(&group, 1), 0);
    CHECK_EQ(cc_run(wait_for_all, NULL, NULL), 0);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    CHECK_EQ(cc_wait_group_done(&group), 0);
    CHECK_EQ(mutex.word, 0);
    CHECK_EQ(rw.word, 0);
    CHECK_EQ(sem.word, 0);
    CHECK_EQ(event.word, 0);
    CHECK_EQ(barrier.arrived, 0);
    CHECK(rw.first == NULL && cond.first == NULL && sem.first == NULL && group.first == NULL && event.first == NULL);
    CHECK_EQ(cc_runtime_shutdown(10000), 0);
}
