/* lock.h - a lock of one word for short critical sections inside the runtime.
 *
 * One compare-and-swap to take, one store to release: 9 ns together; a release that has to check for sleepers costs
 * another read-modify-write (8 ns). So there are no wakes: a thread that finds the lock held spins a little, then
 * yields its CPU, then naps. The sections are tens of nanoseconds long; a waiter gets beyond the spin only if the
 * holder was preempted, and then the holder needs the CPU. A fiber never parks while it holds one, except that parking
 * itself releases the lock of the object it waits on, after the switch.
 *
 * LOCK-1  0 free, 1 held. Only the holder changes it from 1.
 */
#ifndef CC_SYNC_LOCK_H
#define CC_SYNC_LOCK_H

#include "base/san.h"
#include "sync/atomic.h"
#include "sync/held.h"

struct lock {
    _Atomic uint32_t word;
};

void cc__lock_slow(struct lock *lock);
/* Takes a lock that is held while its holder writes, to a pipe that nobody reads, say: unlike for other locks, a worker
 * that waits for it is blocked (sched/pressure.c). */
void cc__lock_take_long(struct lock *lock);

/* One attempt, not reported to sync/held.h. */
CC_INLINE bool cc__lock_grab(struct lock *lock) {
    uint32_t free_word = 0;
    return cc__cas(&lock->word, &free_word, 1);
}

CC_INLINE bool cc__lock_look_and_grab(struct lock *lock) {
    return cc__get(&lock->word) == 0 && cc__lock_grab(lock);
}

CC_INLINE bool cc__lock_try(struct lock *lock) {
    if (!cc__lock_look_and_grab(lock)) return false;
    cc__held_took(lock);
    return true;
}

/* The same without a load first: for a lock that is expected to be free. */
CC_INLINE bool cc__lock_try_now(struct lock *lock) {
    if (!cc__lock_grab(lock)) return false;
    cc__held_took(lock);
    return true;
}

CC_INLINE void cc__lock_take(struct lock *lock) {
    if (unlikely(!cc__lock_grab(lock))) cc__lock_slow(lock);
    cc__held_took(lock);
}

CC_INLINE void cc__lock_release(struct lock *lock) {
    cc__held_releases(lock);
    cc__set_release(&lock->word, 0); /* pairs with the CAS of the next holder */
}

/* The release as an after-switch action. The fiber that just switched away took the lock, and to the race detector it
 * alone must release it. It has called cc__lock_leave before the switch; this store is hidden from the race detector,
 * which would otherwise order the fiber that happens to run next. */
#ifdef CC_TSAN
void cc__lock_release_hidden(struct lock *lock);
#else
CC_INLINE void cc__lock_release_hidden(struct lock *lock) {
    cc__lock_release(lock);
}
#endif
CC_INLINE void cc__lock_leave(struct lock *lock) {
    cc__held_hands_over(lock);
    cc__san_release(&lock->word);
}

#endif
