/* basics.c - each object alone, on an OS thread and in a fiber: zero is ready, the three forms, bad
 * arguments. */
#include "looking.h"

static const CCDeadline past = {1};

static void no_object(void) {
    CCMutex m = {0};
    CCCond c = {0};
    CHECK_EQ(cc_mutex_lock(NULL), EINVAL);
    CHECK_EQ(cc_mutex_lock_try(NULL), EINVAL);
    CHECK_EQ(cc_mutex_lock_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_mutex_unlock(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_read_lock(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_read_lock_try(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_read_lock_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_rwlock_read_unlock(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_write_lock(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_write_lock_try(NULL), EINVAL);
    CHECK_EQ(cc_rwlock_write_lock_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_rwlock_write_unlock(NULL), EINVAL);
    CHECK_EQ(cc_cond_wait(NULL, &m), EINVAL);
    CHECK_EQ(cc_cond_wait(&c, NULL), EINVAL);
    CHECK_EQ(cc_cond_wait_until(&c, NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_cond_signal(NULL), EINVAL);
    CHECK_EQ(cc_cond_broadcast(NULL), EINVAL);
    CHECK_EQ(cc_sem_acquire(NULL), EINVAL);
    CHECK_EQ(cc_sem_acquire_try(NULL), EINVAL);
    CHECK_EQ(cc_sem_acquire_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_sem_release(NULL, 1), EINVAL);
    CHECK_EQ(cc_wait_group_add(NULL, 1), EINVAL);
    CHECK_EQ(cc_wait_group_done(NULL), EINVAL);
    CHECK_EQ(cc_wait_group_wait(NULL), EINVAL);
    CHECK_EQ(cc_wait_group_wait_try(NULL), EINVAL);
    CHECK_EQ(cc_wait_group_wait_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_once(NULL, NULL, NULL), EINVAL);
    CCOnce once = {0};
    CHECK_EQ(cc_once(&once, NULL, NULL), EINVAL);
    CHECK_EQ(cc_event_set(NULL), EINVAL);
    CHECK_EQ(cc_event_reset(NULL), EINVAL);
    CHECK_EQ(cc_event_wait(NULL), EINVAL);
    CHECK_EQ(cc_event_wait_try(NULL), EINVAL);
    CHECK_EQ(cc_event_wait_until(NULL, CC_FOREVER), EINVAL);
    CCBarrier nobody = {0};
    CHECK_EQ(cc_barrier_wait(NULL), EINVAL);
    CHECK_EQ(cc_barrier_wait_until(NULL, CC_FOREVER), EINVAL);
    CHECK_EQ(cc_barrier_wait(&nobody), EINVAL);
}

TEST(bad_arguments) {
    in_both_contexts(no_object);
}

/* A deadline that passes: not early, and off the queue afterwards. */
static void times_out(int (*call)(void *, CCDeadline), void *object) {
    CHECK_EQ(call(object, past), ETIMEDOUT);
    CCDeadline soon = cc_after_ms(2);
    CHECK_EQ(call(object, soon), ETIMEDOUT);
    CHECK(cc_now_ns() >= soon.ns);
}

static void mutex_alone(void) {
    static CCMutex m;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_mutex_lock(&m), 0);
        CHECK_EQ(cc_mutex_lock_try(&m), EAGAIN);
        CHECK_EQ(cc_mutex_unlock(&m), 0);
        CHECK_EQ(cc_mutex_lock_try(&m), 0);
        CHECK_EQ(cc_mutex_unlock(&m), 0);
        CHECK_EQ(cc_mutex_lock_until(&m, past), 0); /* what can be done at once is done */
        CHECK_EQ(cc_mutex_unlock(&m), 0);
    }
    CHECK_EQ(m.word, 0);
}

TEST(mutex) {
    in_both_contexts(mutex_alone);
}

static void rwlock_alone(void) {
    static CCRWLock rw;
    CHECK_EQ(cc_rwlock_read_lock(&rw), 0);
    CHECK_EQ(cc_rwlock_read_lock_try(&rw), 0);
    CHECK_EQ(cc_rwlock_write_lock_try(&rw), EAGAIN);
    times_out(call_write, &rw);
    CHECK_EQ(cc_rwlock_read_lock_until(&rw, past), 0); /* the writer that left is in nobody's way */
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_rwlock_read_unlock(&rw), 0);
    CHECK_EQ(cc_rwlock_write_lock(&rw), 0);
    CHECK_EQ(cc_rwlock_write_lock_try(&rw), EAGAIN);
    CHECK_EQ(cc_rwlock_read_lock_try(&rw), EAGAIN);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    CHECK_EQ(cc_rwlock_write_lock_until(&rw, past), 0);
    CHECK_EQ(cc_rwlock_write_unlock(&rw), 0);
    CHECK_EQ(rw.word, 0);
    CHECK(rw.first == NULL);
}

TEST(rwlock) {
    in_both_contexts(rwlock_alone);
}

static void cond_alone(void) {
    static struct watch w;
    CHECK_EQ(cc_cond_signal(&w.cond), 0); /* nobody there: it is not kept */
    CHECK_EQ(cc_cond_broadcast(&w.cond), 0);
    times_out(call_cond, &w);
    CHECK(w.cond.first == NULL);
    CHECK_EQ(w.mutex.word, 0);
}

TEST(cond) {
    in_both_contexts(cond_alone);
}

static void sem_alone(void) {
    CCSem s = {0}, three = CC_SEM_INIT(3);
    CHECK_EQ(cc_sem_acquire_try(&s), EAGAIN);
    times_out(call_sem, &s);
    CHECK_EQ(cc_sem_release(&s, 2), 0);
    CHECK_EQ(cc_sem_release(&s, 0), 0);
    CHECK_EQ(cc_sem_acquire(&s), 0);
    CHECK_EQ(cc_sem_acquire_until(&s, past), 0);
    CHECK_EQ(cc_sem_acquire_try(&s), EAGAIN);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_sem_acquire_try(&three), 0);
    CHECK_EQ(cc_sem_acquire_try(&three), EAGAIN);
    CHECK_EQ(cc_sem_release(&s, UINT32_MAX), EOVERFLOW);
    CHECK_EQ(cc_sem_release(&s, CC_SEM_MAX), 0);
    CHECK_EQ(cc_sem_release(&s, 1), EOVERFLOW);
    CHECK_EQ(cc_sem_acquire(&s), 0);
    CHECK_EQ(cc_sem_release(&s, 1), 0);
    CHECK_EQ(s.word, CC_SEM_MAX);
}

TEST(sem) {
    in_both_contexts(sem_alone);
}

static void group_alone(void) {
    CCWaitGroup wg = {0};
    CHECK_EQ(cc_wait_group_wait(&wg), 0);
    CHECK_EQ(cc_wait_group_wait_try(&wg), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_wait_group_add(&wg, 3), 0);
        CHECK_EQ(cc_wait_group_add(&wg, 0), 0);
        CHECK_EQ(cc_wait_group_done(&wg), 0);
        CHECK_EQ(cc_wait_group_wait_try(&wg), EAGAIN);
        times_out(call_group, &wg);
        CHECK_EQ(cc_wait_group_add(&wg, -2), 0);
        CHECK_EQ(cc_wait_group_wait(&wg), 0);
        CHECK_EQ(cc_wait_group_wait_until(&wg, past), 0);
    }
    CHECK(wg.first == NULL);
}

TEST(wait_group) {
    in_both_contexts(group_alone);
}

static void count(void *n) {
    ++*(int *)n;
}

static void once_alone(void) {
    CCOnce once = {0};
    int n = 0;
    for (int i = 0; i < 5; i++) CHECK_EQ(cc_once(&once, count, &n), 0);
    CHECK_EQ(n, 1);
}

TEST(once) {
    in_both_contexts(once_alone);
}

static void event_alone(void) {
    CCEvent e = {0};
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(cc_event_wait_try(&e), EAGAIN);
        times_out(call_event, &e);
        CHECK_EQ(cc_event_set(&e), 0);
        CHECK_EQ(cc_event_set(&e), 0);
        CHECK_EQ(cc_event_wait(&e), 0);
        CHECK_EQ(cc_event_wait_try(&e), 0);
        CHECK_EQ(cc_event_wait_until(&e, past), 0);
        CHECK_EQ(cc_event_reset(&e), 0);
        CHECK_EQ(cc_event_reset(&e), 0);
    }
    CHECK_EQ(e.word, 0);
}

TEST(event) {
    in_both_contexts(event_alone);
}

static void barrier_alone(void) {
    CCBarrier one = CC_BARRIER_INIT(1), two = CC_BARRIER_INIT(2);
    for (int i = 0; i < 3; i++) CHECK_EQ(cc_barrier_wait(&one), 0);
    times_out(call_barrier, &two);
    CHECK_EQ(two.arrived, 0); /* who has left does not count */
}

TEST(barrier) {
    in_both_contexts(barrier_alone);
}

/* They need no runtime, and do not start it. */
TEST(without_a_runtime) {
    no_object();
    mutex_alone();
    rwlock_alone();
    cond_alone();
    sem_alone();
    group_alone();
    once_alone();
    event_alone();
    barrier_alone();
    CHECK_EQ(cc_worker_count(), 0);
}
