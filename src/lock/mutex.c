/* mutex.c - one word in the mutex, everything else in the parking lot. README.md has the states of the word.
 *
 * MUTEX-1  A waiter sets WAITERS with fast_unlock off, under the bucket's lock, and is queued before it releases that
 *          lock.
 * MUTEX-2  While there are waiters and WAITERS is not set, one waiter is awake: the designated waiter, woken by the
 *          unlock that cleared WAITERS. It takes the lock with WAITERS set, or sets WAITERS again and queues at the
 *          front. So unlocks in between need not wake any waiter.
 * MUTEX-3  A designated waiter that lost PASSED_MAX races, or has waited for STARVING_NS, is starving: the next unlock
 *          hands it the lock, without freeing it in between.
 * MUTEX-4  An unlock's last access to the mutex releases it or hands it over, under the bucket's lock or in one atomic
 *          operation. After that it uses only the address.
 */
#include "lock/mutex.h"

#include "lock/parking_lot.h"
#include "lock/spin.h"
#include "os/clock.h"
#include "sched/park.h"
#include "sim/sim.h"
#include "wait/cancel.h"

#include <errno.h>

enum { LOCKED = 1, WAITERS = 2 };

CC_INLINE bool try_lock(struct mutex *m, uint32_t with) {
    uint32_t expected = 0;
    return cc__get(&m->word) == 0 && cc__cas(&m->word, &expected, LOCKED | with); /* pairs with the unlocks */
}

static bool try_lock_again(void *m, uint32_t with) {
    return try_lock(m, with);
}

static bool spin(struct mutex *m, struct bucket *bucket, uint32_t with) {
    return cc__spin(&bucket->spin_failures, SPIN_PAUSES, &m->owner, try_lock_again, m, with);
}

/* ---- waiting ---- */

/* Under the bucket's lock: takes the mutex if it is free (true); else sets WAITERS, which stays until we are queued. */
static bool take_or_mark_locked(struct mutex *m, struct bucket *bucket) {
    uint32_t word = cc__get(&m->word);
    for (;;) {
        if (word == 0) {
            uint32_t with = cc__bucket_first_locked(bucket, m) != NULL ? WAITERS : 0;
            if (cc__cas(&m->word, &word, LOCKED | with)) return true;
        } else if ((word & WAITERS) || cc__cas(&m->word, &word, LOCKED | WAITERS)) {
            return false;
        }
    }
}

/* The designated waiter gives up before it is queued again: designates another one. */
static void pass_on(struct mutex *m, struct bucket *bucket) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__bucket_enter(bucket);
    if (cc__bucket_first_locked(bucket, m) != NULL && take_or_mark_locked(m, bucket)) {
        cc__bucket_claim_locked(bucket, m, &wakes);
        cc__set_release(&m->word, 0);
    }
    cc__lock_release(&bucket->lock);
    cc__wakes_flush_any(&wakes);
}

static int lock_slow(struct mutex *m, uint64_t deadline, bool cancellable) {
    struct bucket *bucket = cc__bucket_of(m);
    if (cc__sim_on()) {
        cc__upcall_sim_point();
        if (try_lock(m, 0)) return 0;
    }
    cc__holder_again(&m->owner, "cc_mutex_lock: mutex", m);
    if (spin(m, bucket, 0)) return 0;
    struct bucket_node parked = {.key = m};
    struct wait_what what = {PARK_MUTEX, m};
    uint64_t since = cc__clock_now();
    for (unsigned passed = 0;;) {
        int rc = cc__waiter_init(&parked.node.waiter, cc__worker(), deadline);
        if (unlikely(rc != 0)) {
            if (passed > 0) pass_on(m, bucket);
            return rc;
        }
        cc__bucket_enter(bucket);
        if (take_or_mark_locked(m, bucket)) {
            cc__lock_release(&bucket->lock);
            return 0;
        }
        cc__bucket_push_locked(bucket, &parked, passed > 0);
        enum wake_reason reason = cc__wait_locked(&parked.node.waiter, &bucket->lock, what);
        if (likely(reason == WAKE_OBJECT)) {
            if (parked.granted || try_lock(m, WAITERS) || spin(m, bucket, WAITERS)) return 0;
            passed++;
            parked.node.flag = passed >= PASSED_MAX || cc__clock_now() - since >= STARVING_NS;
            continue;
        }
        cc__lock_take(&bucket->lock);
        if (parked.node.linked) cc__bucket_remove_locked(bucket, &parked);
        cc__lock_release(&bucket->lock);
        if (reason == WAKE_TIMER) return ETIMEDOUT;
        if (cancellable) return ECANCELED;
    }
}

CC_INLINE bool take(struct mutex *m, struct fiber *self) {
    uint32_t expected = cc__sim_zero();
    uint64_t holder = cc__holder_of(self); /* before the compare-and-swap, which later loads wait for */
    /* Pairs with the unlocks. */
    if (unlikely(!cc__cas(&m->word, &expected, LOCKED))) return false;
    cc__set(&m->owner, holder);
    return true;
}

/* For an OS thread, for a fiber that should yield, and if the mutex is held. Slow paths are tail calls: their callers
 * need no frame. */
static CC_NOINLINE int lock_apart(struct mutex *m, uint64_t deadline, bool cancellable) {
    struct worker *w = cc__worker();
    if (w == NULL || cc__get(&w->runq.preempt) != 0) {
        if (w != NULL) w = cc__sched_preempted(w);
        if (take(m, cc__sched_current(w))) return 0;
    }
    /* A cancellation lasts until the fiber leaves its scope: every wait would end at once, and after a grace period
     * even a shielded one. */
    bool held = !cancellable && cc__cancel_hold();
    int rc = lock_slow(m, deadline, cancellable); /* without a deadline and a cancellation it cannot fail */
    cc__cancel_unhold(held);
    if (likely(rc == 0)) cc__holder_enter(&m->owner);
    return rc;
}

CC_INLINE int lock(struct mutex *m, uint64_t deadline, bool cancellable) {
    struct worker *w = cc__worker();
    struct fiber *self = cc__sched_current(w);
    if (likely(self != NULL && cc__get(&w->runq.preempt) == 0 && take(m, self))) return 0;
    return lock_apart(m, deadline, cancellable);
}

void cc__mutex_lock_again(struct mutex *m) {
    (void)lock(m, WAIT_FOREVER, false);
}

/* ---- unlocking ---- */

/* An unlock stored 0 and then found fast_unlock off: its store may have cleared WAITERS. The mutex is already released,
 * and its memory may be freed. */
static CC_NOINLINE int wake_after_store(const void *key) {
    struct bucket *bucket = cc__bucket_of(key);
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&bucket->lock);
    cc__bucket_claim_locked(bucket, key, &wakes);
    cc__lock_release(&bucket->lock);
    cc__wakes_flush_any(&wakes);
    return 0;
}

/* The caller holds the mutex, and there are or were waiters. */
static void unlock_to_waiter(struct mutex *m, struct bucket *bucket) {
    struct wakes wakes;
    cc__wakes_init(&wakes);
    cc__lock_take(&bucket->lock);
    struct bucket_node *waiter = cc__bucket_claim_locked(bucket, m, &wakes);
    if (waiter != NULL && waiter->node.flag) {
        waiter->granted = true; /* its frame stays until the flush */
        if (cc__bucket_first_locked(bucket, m) == NULL) cc__set(&m->word, LOCKED);
    } else {
        cc__set_release(&m->word, 0); /* pairs with the next lock; only the holder writes the word here */
    }
    cc__lock_release(&bucket->lock);
    cc__wakes_flush_any(&wakes);
}

/* There is a waiter, or this is a simulation. */
static CC_NOINLINE int unlock_slow(struct mutex *m, struct bucket *bucket) {
    uint32_t held = LOCKED;
    cc__sim_point();                    /* other fibers find it held */
    if (!cc__cas(&m->word, &held, 0)) { /* pairs with the next lock */
        unlock_to_waiter(m, bucket);
    }
    cc__sim_point();
    return 0;
}

static CC_NOINLINE int unlock_by_cas(struct mutex *m, struct bucket *bucket) {
    uint32_t held = cc__sim_one();                                             /* LOCKED */
    if (unlikely(!cc__cas(&m->word, &held, 0))) return unlock_slow(m, bucket); /* pairs with the next lock */
    cc__bucket_count_unlock(bucket);
    return 0;
}

CC_INLINE int unlock_held(struct mutex *m, struct bucket *bucket) {
    cc__holder_clear(&m->owner);
    /* WAITERS while fast_unlock is on was set by a waiter that has left. */
    if (unlikely(!cc__get(&bucket->fast_unlock))) return unlock_by_cas(m, bucket);
    cc__set_release(&m->word, 0); /* pairs with the next lock */
    /* "Word = 0, then look at fast_unlock" against "fast_unlock off, then look at the word" in cc__bucket_enter: the
     * light half. fast_unlock is on only where the heavy half works. */
    cc__compiler_fence();
    return likely(cc__get(&bucket->fast_unlock)) ? 0 : wake_after_store(m);
}

/* By an OS thread, or by a caller that does not hold it. Apart, as lock_apart is. */
static CC_NOINLINE int unlock_apart(struct mutex *m) {
    cc__holder_check(&m->owner, cc__get(&m->word) != 0, "cc_mutex_unlock: mutex", m);
    return unlock_held(m, cc__bucket_of(m));
}

void cc__mutex_unlock_to_wait(struct mutex *m) {
    cc__holder_check(&m->owner, cc__get(&m->word) != 0, "cc_cond_wait: mutex", m);
    (void)unlock_held(m, cc__bucket_of(m));
}

/* ---- the calls ---- */

int cc_mutex_lock(CCMutex *mutex) {
    if (unlikely(mutex == NULL)) return EINVAL;
    return lock(cc__mutex_of(mutex), WAIT_FOREVER, true);
}

int cc_mutex_lock_until(CCMutex *mutex, CCDeadline deadline) {
    if (unlikely(mutex == NULL)) return EINVAL;
    return lock(cc__mutex_of(mutex), cc__wait_deadline(deadline), true);
}

int cc_mutex_lock_try(CCMutex *mutex) {
    if (unlikely(mutex == NULL)) return EINVAL;
    struct mutex *m = cc__mutex_of(mutex);
    cc__sim_point();
    if (!try_lock(m, 0)) return EAGAIN;
    cc__holder_enter(&m->owner);
    return 0;
}

int cc_mutex_lock_uncancellable(CCMutex *mutex) {
    if (unlikely(mutex == NULL)) return EINVAL;
    return lock(cc__mutex_of(mutex), WAIT_FOREVER, false);
}

int cc_mutex_unlock(CCMutex *mutex) {
    if (unlikely(mutex == NULL)) return EINVAL;
    struct mutex *m = cc__mutex_of(mutex);
    struct fiber *self = cc__sched_current(cc__worker());
    if (unlikely(self == NULL || cc__get(&m->owner) != cc__holder_of(self))) return unlock_apart(m);
    return unlock_held(m, cc__bucket_of(m));
}
