/* cc_sync.h - mutex, rwlock, condition, semaphore, wait group, once, event, barrier: fibers park, OS threads block, in
 * any combination.
 *
 * A zero-initialised object is ready to use: a static object, or {0}, needs no call before its first use, and none
 * after its last. The fields are private. An object in use must not be copied or moved. A caller whose call has
 * returned 0 may free the object if no other call follows: the unlock, release, done, signal or set that ended its wait
 * no longer touches the object's memory.
 *
 * Forms: the plain form waits as long as necessary; _try never waits and returns EAGAIN; _until returns ETIMEDOUT when
 * the deadline has passed. An operation that need not wait succeeds even if the deadline has passed. _uncancellable
 * waits as long as necessary, also in a cancelled fiber: for code that cannot fail, such as clean-up.
 *
 * Every call that waits may return
 *   ECANCELED  a fiber's wait was cancelled; nothing was taken, and no signal or permit is lost;
 *   ENOMEM     _until only: no memory for a timer; nothing was taken;
 * and every call EINVAL for NULL. A caller that gets an error does not hold the lock, so compilers warn if the result
 * of a wait is ignored. Contexts: all calls may be made by fibers and OS threads, also before the runtime starts; none
 * from a signal handler.
 */
#ifndef CCC_CC_SYNC_H
#define CCC_CC_SYNC_H

#include <ccc/cc_base.h>
#include <ccc/cc_time.h>

CC_BEGIN_DECLS

/* ---- mutex ---- */

/* Mutual exclusion. The fiber (or OS thread) that took the lock owns it, whichever worker it runs on; it is not
 * recursive. Any caller may take a free mutex, but a waiter that was woken and lost it sixteen times, or has waited for
 * a millisecond, is handed the lock. An unlock by a caller that does not hold the mutex aborts the program with a
 * message that names the mutex, the holder and the caller. A lock by its holder does so in a debug build. If the holder
 * ends without an unlock, the mutex stays locked, and belongs to no later fiber or thread. */
typedef struct CCMutex {
    uint32_t word;
    uint32_t spare;
    uint64_t owner;
} CCMutex;

/* Takes the lock. ECANCELED, ETIMEDOUT, EAGAIN, ENOMEM: not taken; do not unlock. Switches; _try does not. */
CC_API CC_MUST_CHECK int cc_mutex_lock(CCMutex *m);
CC_API CC_MUST_CHECK int cc_mutex_lock_try(CCMutex *m);
CC_API CC_MUST_CHECK int cc_mutex_lock_until(CCMutex *m, CCDeadline deadline);
/* The same, but cannot be cancelled: returns 0, unless m is NULL. */
CC_API int cc_mutex_lock_uncancellable(CCMutex *m);
/* Releases it. Does not switch. */
CC_API int cc_mutex_unlock(CCMutex *m);

/* ---- reader-writer lock ---- */

/* Any number of readers, or one writer. Waiting callers are queued, and new readers wait while a writer waits: so a
 * reader must not take the lock a second time, because it would deadlock with a waiting writer. Any caller may take a
 * free lock, but a waiter that was woken and lost it sixteen times, or has waited for a millisecond, is handed the
 * lock: neither side starves the other. */
typedef struct CCRWLock {
    uint32_t word;
    uint32_t lock;
    void *first;
    uint64_t owner;
} CCRWLock;

/* As for a mutex, an unlock by a caller that does not hold the lock aborts the program. If a caller that holds several
 * read locks unlocks one that it does not hold, this is detected at its last unlock. Switches; _try and the unlocks do
 * not. */
CC_API CC_MUST_CHECK int cc_rwlock_read_lock(CCRWLock *rw);
CC_API CC_MUST_CHECK int cc_rwlock_read_lock_try(CCRWLock *rw);
CC_API CC_MUST_CHECK int cc_rwlock_read_lock_until(CCRWLock *rw, CCDeadline deadline);
CC_API int cc_rwlock_read_lock_uncancellable(CCRWLock *rw);
CC_API int cc_rwlock_read_unlock(CCRWLock *rw);
CC_API CC_MUST_CHECK int cc_rwlock_write_lock(CCRWLock *rw);
CC_API CC_MUST_CHECK int cc_rwlock_write_lock_try(CCRWLock *rw);
CC_API CC_MUST_CHECK int cc_rwlock_write_lock_until(CCRWLock *rw, CCDeadline deadline);
CC_API int cc_rwlock_write_lock_uncancellable(CCRWLock *rw);
CC_API int cc_rwlock_write_unlock(CCRWLock *rw);

/* ---- condition ---- */

/* Waits for a condition that a mutex guards. */
typedef struct CCCond {
    uint32_t spare;
    uint32_t lock;
    void *first;
} CCCond;

/* Unlocks m, waits for a signal, and locks m again. Unlocking and starting to wait are atomic with respect to code that
 * changes the condition under m. The caller holds m, and on return holds it again, whatever the outcome: the second
 * lock has no deadline and cannot be cancelled. 0: a signal or broadcast ended the wait; another caller may have
 * changed the condition before m was locked again, so check it in a loop. ECANCELED, ETIMEDOUT: no signal was consumed.
 * EINVAL, ENOMEM: m was not unlocked in between. Switches. */
CC_API CC_MUST_CHECK int cc_cond_wait(CCCond *c, CCMutex *m);
CC_API CC_MUST_CHECK int cc_cond_wait_until(CCCond *c, CCMutex *m, CCDeadline deadline);
/* Wakes the longest waiter, or all waiters. Does nothing without waiters. With or without the mutex held. Does not
 * switch. */
CC_API int cc_cond_signal(CCCond *c);
CC_API int cc_cond_broadcast(CCCond *c);

/* ---- semaphore ---- */

/* A number of permits; {0} has none, CC_SEM_INIT(n) has n. Waiters are served in FIFO order. */
typedef struct CCSem {
    uint32_t word;
    uint32_t lock;
    void *first;
} CCSem;

#define CC_SEM_MAX 0x7fffffffu
#define CC_SEM_INIT(n) \
    { (n), 0, 0 }

/* Takes one permit; on an error none. Switches; _try does not. */
CC_API CC_MUST_CHECK int cc_sem_acquire(CCSem *s);
CC_API CC_MUST_CHECK int cc_sem_acquire_try(CCSem *s);
CC_API CC_MUST_CHECK int cc_sem_acquire_until(CCSem *s, CCDeadline deadline);
CC_API int cc_sem_acquire_uncancellable(CCSem *s);
/* Releases n permits, to waiters first. EOVERFLOW: there would be more than CC_SEM_MAX; none is released. Does not
 * switch. */
CC_API int cc_sem_release(CCSem *s, uint32_t n);

/* ---- wait group ---- */

/* Counts operations in progress and waits until there are none. It may be reused once the count was 0. */
typedef struct CCWaitGroup {
    uint32_t word;
    uint32_t lock;
    void *first;
} CCWaitGroup;

/* Adds n, which may be negative, to the count; when that reaches 0, all waits return. A count
 * below 0 or beyond INT32_MAX aborts the program with a message. While there are or may be waiters, add only while the
 * count is not 0. Does not switch. */
CC_API int cc_wait_group_add(CCWaitGroup *wg, int32_t n);
/* Subtracts 1. Does not switch. */
CC_API int cc_wait_group_done(CCWaitGroup *wg);
/* Waits until the count is 0. After an error this wait has not seen it at 0. Switches; _try does not. */
CC_API CC_MUST_CHECK int cc_wait_group_wait(CCWaitGroup *wg);
CC_API CC_MUST_CHECK int cc_wait_group_wait_try(CCWaitGroup *wg);
CC_API CC_MUST_CHECK int cc_wait_group_wait_until(CCWaitGroup *wg, CCDeadline deadline);

/* ---- once ---- */

/* Runs a function once: the first caller runs it while the others wait. */
typedef struct CCOnce {
    uint32_t word;
    uint32_t lock;
    void *first;
    uint64_t owner;
} CCOnce;

/* The first call runs fn(arg) on the caller's stack; the others wait until it has returned. 0: fn has returned, and its
 * writes are visible. ECANCELED: fn may still be running elsewhere. If a panic or a C++ exception leaves fn, it does
 * not count as run: one of the waiters, or the next call, runs its own fn. A call for the same object from within fn
 * deadlocks; a debug build aborts with a message. Switches. */
CC_API CC_MUST_CHECK int cc_once(CCOnce *once, void (*fn)(void *arg), void *arg);

/* ---- event ---- */

/* Set or not set; {0} is not set. */
typedef struct CCEvent {
    uint32_t word;
    uint32_t lock;
    void *first;
} CCEvent;

/* Sets the event: all waits return, and so do those that start before a reset. Does not switch. */
CC_API int cc_event_set(CCEvent *e);
/* Resets the event. Waits ended by the last set still return 0. Does not switch. */
CC_API int cc_event_reset(CCEvent *e);
/* Waits until the event is set. Switches; _try does not. */
CC_API CC_MUST_CHECK int cc_event_wait(CCEvent *e);
CC_API CC_MUST_CHECK int cc_event_wait_try(CCEvent *e);
CC_API CC_MUST_CHECK int cc_event_wait_until(CCEvent *e, CCDeadline deadline);

/* ---- barrier ---- */

/* A reusable barrier for a fixed number of parties: CCBarrier b = CC_BARRIER_INIT(4). */
typedef struct CCBarrier {
    uint32_t parties;
    uint32_t lock;
    void *first;
    uint32_t arrived;
    uint32_t spare;
} CCBarrier;

#define CC_BARRIER_INIT(n) \
    { (n), 0, 0, 0, 0 }

/* Waits until all parties have arrived; then all continue, and the next round begins. ECANCELED, ETIMEDOUT: the caller
 * has left and does not count; the others wait for another caller in its place. Once all have arrived each of them gets
 * 0, also one whose deadline passes at that moment. EINVAL: a barrier for 0 parties. Switches. */
CC_API CC_MUST_CHECK int cc_barrier_wait(CCBarrier *b);
CC_API CC_MUST_CHECK int cc_barrier_wait_until(CCBarrier *b, CCDeadline deadline);

CC_END_DECLS

#endif
