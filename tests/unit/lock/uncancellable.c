/* uncancellable.c - waits that go on although their fiber is cancelled, and leave the cancellation as it was. */
#include "looking.h"

static CCMutex mutex;
static CCRWLock rwlock;
static CCSem sem;
static CCEvent never;
static _Atomic int got;

static void *lock_mutex(void *unused) {
    CHECK_EQ(cc_mutex_lock_uncancellable(&mutex), 0);
    cc__add(&got, 1);
    CHECK_EQ(cc_event_wait(&never), ECANCELED); /* still cancelled */
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    return unused;
}

static void *lock_to_read(void *unused) {
    CHECK_EQ(cc_rwlock_read_lock_uncancellable(&rwlock), 0);
    cc__add(&got, 1);
    CHECK_EQ(cc_event_wait(&never), ECANCELED);
    CHECK_EQ(cc_rwlock_read_unlock(&rwlock), 0);
    return unused;
}

static void *lock_to_write(void *unused) {
    CHECK_EQ(cc_rwlock_write_lock_uncancellable(&rwlock), 0);
    cc__add(&got, 1);
    CHECK_EQ(cc_event_wait(&never), ECANCELED);
    CHECK_EQ(cc_rwlock_write_unlock(&rwlock), 0);
    return unused;
}

static void *acquire(void *unused) {
    CHECK_EQ(cc_sem_acquire_uncancellable(&sem), 0);
    cc__add(&got, 1);
    CHECK_EQ(cc_event_wait(&never), ECANCELED);
    CHECK_EQ(cc_sem_release(&sem, 1), 0);
    return unused;
}

enum { EACH = 3 };

/* Some are cancelled before their wait, some while it lasts; none gets anything before it is given. */
TEST_WORKERS(waits_although_cancelled) {
    CHECK_EQ(cc_mutex_lock(&mutex), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rwlock), 0);
    CCTaskFn fns[] = {lock_mutex, lock_to_read, lock_to_write, acquire};
    CCTask tasks[4 * EACH];
    for (int i = 0; i < 4 * EACH; i++) {
        tasks[i] = cc_fiber_spawn_task(fns[i % 4], NULL);
        if (i % 3 == 0) CHECK_EQ(cc_task_cancel(&tasks[i]), 0);
    }
    while (mutex_waiters(&mutex) != EACH) cc_yield();
    await_queued(&rwlock, 2 * EACH);
    await_queued(&sem, EACH);
    for (int i = 0; i < 4 * EACH; i++) CHECK_EQ(cc_task_cancel(&tasks[i]), 0);
    CHECK_EQ(mutex_waiters(&mutex), EACH);
    CHECK_EQ(queued(&rwlock), 2 * EACH);
    CHECK_EQ(queued(&sem), EACH);
    CHECK_EQ(cc__get(&got), 0);
    CHECK_EQ(cc_mutex_unlock(&mutex), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rwlock), 0);
    CHECK_EQ(cc_sem_release(&sem, 1), 0);
    for (int i = 0; i < 4 * EACH; i++) CHECK_EQ(cc_task_join(&tasks[i], NULL), 0);
    CHECK_EQ(cc__get(&got), 4 * EACH);
}

TEST(null_is_refused) {
    CHECK_EQ(cc_mutex_lock_uncancellable(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_read_lock_uncancellable(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_write_lock_uncancellable(NULL), EINVAL);
    CHECK_EQ(cc_sem_acquire_uncancellable(NULL), EINVAL);
}
