/* held.h - in debug builds: which internal locks the calling thread holds, and where it took them.
 *
 * A fiber that parks holding one would leave it locked for as long as it sleeps; a waker that flushes under one lets
 * fibers run into it. A lock that parking itself releases has been handed to the after-switch action by
 * cc__lock_leave, and that runs on the same OS thread: so the list is the thread's, whatever fibers come and go.
 *
 * HELD-1  PARK-UNDER-LOCK: a fiber that leaves its worker holds no lock but those that it has handed over.
 * HELD-2  WAKE-FLUSH-UNDER-LOCK: fibers are made ready, and workers are told of them, with no lock held (local wakes:
 *         WAIT-4).
 * HELD-3  A lock is released by the thread that took it.
 */
#ifndef CC_SYNC_HELD_H
#define CC_SYNC_HELD_H

#include "base/attr.h"

struct lock;

#ifdef CC_DEBUG
void cc__held_took(struct lock *lock); /* called where the lock was taken: that place is remembered */
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
