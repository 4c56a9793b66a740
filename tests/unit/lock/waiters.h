/* waiters.h - the waiters of a lock: one that is in a queue, under the queue's lock, is parked. And parties that make
 * one call each. */
#ifndef CCC_TESTS_UNIT_LOCK_WAITERS_H
#define CCC_TESTS_UNIT_LOCK_WAITERS_H

#include "../../battery/battery.h"
#include "../contexts.h"
#include "../ending.h"

#include "lock/parking_lot.h"
#include "lock/wait_word.h"

/* How many queue up of a wait word: any object of cc_sync.h but the mutex. */
BATTERY_UNUSED static int queued(void *object) {
    struct wait_word *ww = object;
    int n = 0;
    cc__lock_take(&ww->lock);
    struct link *first = cc__get(&ww->queue.first);
    for (struct link *l = first; l != NULL; n++) {
        l = cc__get(&l->next);
        if (l == first) l = NULL;
    }
    cc__lock_release(&ww->lock);
    return n;
}

BATTERY_UNUSED static void await_queued(void *object, int n) {
    while (queued(object) != n) cc_yield();
}

/* How many wait for a mutex. */
BATTERY_UNUSED static int mutex_waiters(CCMutex *m) {
    struct bucket *bucket = cc__bucket_of(m);
    int n = 0;
    cc__lock_take(&bucket->lock);
    struct bucket_node *first = cc__bucket_first_locked(bucket, m);
    if (first != NULL) {
        struct link *l = &first->node.link;
        do {
            n++;
            l = cc__get(&l->next);
        } while (l != &first->node.link);
    }
    cc__lock_release(&bucket->lock);
    return n;
}

BATTERY_UNUSED static void await_mutex_waiters(CCMutex *m, int n) {
    while (mutex_waiters(m) != n) cc_yield();
}

/* One call of a party: what it waits for, and its result. */
struct wish {
    void *object;
    int (*call)(void *object, CCDeadline deadline);
    CCDeadline deadline;
    atomic_int returned; /* -1 until then */
};

BATTERY_UNUSED static void *make_call(void *arg) {
    struct wish *w = arg;
    atomic_store(&w->returned, w->call(w->object, w->deadline));
    return NULL;
}

BATTERY_UNUSED static void wish_init(struct wish *w, int (*call)(void *, CCDeadline), void *object,
                                     CCDeadline deadline) {
    w->object = object;
    w->call = call;
    w->deadline = deadline;
    atomic_init(&w->returned, -1);
}

/* The calls in one shape. CC_FOREVER takes the plain form, so that both are tested. */
#define CALL(name, type, plain, until)                                      \
    BATTERY_UNUSED static int name(void *o, CCDeadline d) {                 \
        return d.ns == UINT64_MAX ? plain((type *)o) : until((type *)o, d); \
    }
CALL(call_mutex, CCMutex, cc_mutex_lock, cc_mutex_lock_until)
CALL(call_read, CCRWLock, cc_rwlock_read_lock, cc_rwlock_read_lock_until)
CALL(call_write, CCRWLock, cc_rwlock_write_lock, cc_rwlock_write_lock_until)
CALL(call_sem, CCSem, cc_sem_acquire, cc_sem_acquire_until)
CALL(call_group, CCWaitGroup, cc_wait_group_wait, cc_wait_group_wait_until)
CALL(call_event, CCEvent, cc_event_wait, cc_event_wait_until)
CALL(call_barrier, CCBarrier, cc_barrier_wait, cc_barrier_wait_until)

/* A condition with its mutex; the call locks, waits once, and unlocks. */
struct watch {
    CCCond cond; /* first: the queue is found here */
    CCMutex mutex;
};

BATTERY_UNUSED static int call_cond(void *o, CCDeadline d) {
    struct watch *w = o;
    CHECK_EQ(cc_mutex_lock(&w->mutex), 0);
    int rc = d.ns == UINT64_MAX ? cc_cond_wait(&w->cond, &w->mutex) : cc_cond_wait_until(&w->cond, &w->mutex, d);
    CHECK_EQ(cc_mutex_lock_try(&w->mutex), EAGAIN); /* the mutex is held, whatever the result */
    CHECK_EQ(cc_mutex_unlock(&w->mutex), 0);
    return rc;
}

BATTERY_UNUSED static const CCDeadline past = {1};

/* A deadline that passes: not early, and off the queue afterwards. */
BATTERY_UNUSED static void times_out(int (*call)(void *, CCDeadline), void *object) {
    CHECK_EQ(call(object, past), ETIMEDOUT);
    CCDeadline soon = cc_after_ms(2);
    CHECK_EQ(call(object, soon), ETIMEDOUT);
    CHECK(cc_now_ns() >= soon.ns);
}

/* What one caller sees of an object, on an OS thread and in a fiber; it needs no runtime, and does not start one. */
#define TESTS_ALONE(no_object, use_alone) \
    TEST(bad_arguments) {                 \
        in_both_contexts(no_object);      \
    }                                     \
    TEST(alone) {                         \
        in_both_contexts(use_alone);      \
    }                                     \
    TEST(alone_without_a_runtime) {       \
        no_object();                      \
        use_alone();                      \
        CHECK_EQ(cc_worker_count(), 0);   \
    }

/* An OS thread and a fiber, with a partner that is a fiber or an OS thread. */
BATTERY_UNUSED static void *with_both(void *with) {
    (*(void (**)(enum parties))with)(FIBERS);
    (*(void (**)(enum parties))with)(THREADS);
    return NULL;
}

BATTERY_UNUSED static void in_all_pairs(void (*with)(enum parties partner)) {
    (void)with_both(&with);
    CHECK_EQ(cc_run(with_both, &with, NULL), 0);
}

#endif
