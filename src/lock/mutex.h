/* mutex.h - what the condition variable needs from the mutex. */
#ifndef CC_LOCK_MUTEX_H
#define CC_LOCK_MUTEX_H

#include "lock/holder.h"

#include <ccc/cc_sync.h>

/* A CCMutex as the library sees it: C++ has no _Atomic, so the public struct has plain fields. */
struct mutex {
    _Atomic uint32_t word; /* mutex.c */
    uint32_t unused;
    _Atomic uint64_t owner; /* holder.h */
};

_Static_assert(sizeof(struct mutex) == sizeof(CCMutex), "the public struct");

CC_INLINE struct mutex *cc__mutex_of(CCMutex *m) {
    return (struct mutex *)(void *)m;
}

/* Unlocks before a wait for a condition; aborts the program unless the caller holds the mutex. */
void cc__mutex_unlock_to_wait(struct mutex *m);
/* Locks after that wait; without a deadline, and not cancelled. */
void cc__mutex_lock_again(struct mutex *m);

#endif
