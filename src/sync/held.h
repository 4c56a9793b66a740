/* held.h - in debug builds: which internal locks the calling thread holds, and where it took them.
 *
 * A fiber that parks with one would leave it locked until it is woken; a waker that flushes under one lets fibers
 * contend for it. A lock that parking itself releases has been handed to the after-switch action by cc__lock_leave,
 * which runs on the same OS thread: so the list is per thread, independent of the fibers that run on it.
 *
 * HELD-1  PARK-UNDER-LOCK: a fiber that leaves its worker holds no lock but those that it has handed over.
 * HELD-2  WAKE-FLUSH-UNDER-LOCK: fibers are made ready, and workers are notified, with no lock held (local wakes:
 *         WAIT-4).
 * HELD-3  A lock is released by the thread that took it.
 */
#ifndef CC_SYNC_HELD_H
#define CC_SYNC_HELD_H

#include "base/attr.h"

struct lock;

#ifdef CC_DEBUG
void cc__held_took(struct lock *lock); /* called where the lock was taken: records that place */
void cc__held_releases(struct lock *lock);
void cc__held_hands_over(struct lock *lock);
void cc__held_check_park(void);
void cc__held_check_flush(void);
#else
CC_INLINE void cc__held_took(struct lock *lock) {
    (void)lock;
}
CC_INLINE void cc__held_releases(struct lock *lock) {
    (void)lock;
}
CC_INLINE void cc__held_hands_over(struct lock *lock) {
    (void)lock;
}
CC_INLINE void cc__held_check_park(void) {}
CC_INLINE void cc__held_check_flush(void) {}
#endif

#endif
