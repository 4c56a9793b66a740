/* lock_end.c - the runtime is shut down, and all fibers cancelled, while they use locks; the objects serve the next
 * runtime: cancelled waiters have consumed nothing.
 */
#include "../battery/battery.h"
#include "../unit/ending.h"

#include "lock/wait_word.h"

enum { FIBERS_HERE = 24 };

static CCMutex mutex;
static CCRWLock rw;
static CCSem sem = CC_SEM_INIT(2);
static CCMutex bell_mutex;
static CCCond bell;
static long guarded;
static atomic_long inside, cancelled;

static bool got(int rc) {
    if (rc == ECANCELED) atomic_fetch_add(&cancelled, 1);
    CHECK(rc == 0 || rc == ECANCELED);
    return rc == 0;
}

/* 1: cancelled. */
static int one_of(uint64_t r) {
    switch (r % 4) {
    case 0:
        if (!got(cc_mutex_lock(&mutex))) return 1;
        guarded++;
        (void)cc_sleep_until(cc_after_ns(r >> 8 & 0x3fff));
        guarded--;
        CHECK_EQ(cc_mutex_unlock(&mutex), 0);
        return 0;
    case 1:
        if (!got(r & 64 ? cc_rwlock_read_lock(&rw) : cc_rwlock_write_lock(&rw))) return 1;
        (void)cc_sleep_until(cc_after_ns(r >> 8 & 0x3fff));
        CHECK_EQ(r & 64 ? cc_rwlock_read_unlock(&rw) : cc_rwlock_write_unlock(&rw), 0);
        return 0;
    case 2:
        if (!got(cc_sem_acquire(&sem))) return 1;
        CHECK(atomic_fetch_add(&inside, 1) < 2);
        (void)cc_sleep_until(cc_after_ns(r >> 8 & 0x3fff));
        atomic_fetch_sub(&inside, 1);
        CHECK_EQ(cc_sem_release(&sem, 1), 0);
        return 0;
    default:
        if (!got(cc_mutex_lock(&bell_mutex))) return 1;
        int rc = cc_cond_wait_until(&bell, &bell_mutex, cc_after_ns(r >> 8 & 0xffff));
        CHECK_EQ(cc_mutex_lock_try(&bell_mutex), EAGAIN);
        CHECK_EQ(cc_mutex_unlock(&bell_mutex), 0);
        CHECK_EQ(cc_cond_signal(&bell), 0);
        return rc == ETIMEDOUT || got(rc) ? 0 : 1;
    }
}

/* Returns when it has been cancelled; a cancelled sleep, with the lock, does not count. */
static void *lock_until_cancelled(void *arg) {
    uint64_t rng = (uintptr_t)arg;
    while (one_of(test_random(&rng)) == 0) {
    }
    return NULL;
}

TEST_WORKERS(cancelled_in_the_middle, .timeout = 120) {
    uint64_t rng = test_seed();
    for (long round = 0; round < test_rounds(8, 1000); round++) {
        for (int i = 0; i < FIBERS_HERE; i++) {
            CCTask task;
            CHECK_EQ(cc_spawn(&task, lock_until_cancelled, (void *)(uintptr_t)(test_random(&rng) | 1), NULL), 0);
            CHECK_EQ(cc_task_detach(&task), 0);
        }
        /* An OS thread takes part: it is not cancelled, and gets what cancelled waiters would have got. */
        for (int i = 0; i < 50; i++) CHECK_EQ(one_of(test_random(&rng)), 0);
        end_after(600);
        CHECK_EQ(mutex.word, 0);
        CHECK_EQ(bell_mutex.word, 0);
        CHECK_EQ(rw.word, 0);
        CHECK_EQ(sem.word, 2);
        CHECK_EQ(guarded, 0);
        CHECK(rw.first == NULL && sem.first == NULL && bell.first == NULL);
    }
    CHECK(cancelled > 0);
}
