/* lock.c - the contended path of the one-word lock. */
#include "sync/lock.h"

#include "arch/cpu.h"
#include "os/thread.h"
#include "sync/policy.h"

void cc__lock_slow(struct lock *lock) {
    unsigned wait = 1, waited = 0;
    while (waited < LOCK_PATIENCE) {
        for (unsigned i = 0; i < wait; i++) cc__cpu_relax();
        if (cc__lock_look_and_grab(lock)) return;
        waited += wait;
        if (wait < LOCK_PAUSES) wait *= 2;
    }
    for (unsigned i = 0; !cc__lock_look_and_grab(lock); i++) {
        if (i < LOCK_YIELDS)
            cc__thread_yield();
        else
            cc__thread_nap_for_lock(LOCK_NAP_NS);
    }
}

void cc__lock_take_long(struct lock *lock) {
    while (!cc__lock_try(lock)) cc__thread_nap(LOCK_LONG_NAP_NS);
}

#ifdef CC_TSAN /* what lock.h and atomic.h hide from the race detector */
CC_NOINLINE CC_NO_TSAN void cc__set_release_hidden(_Atomic uint64_t *p, uint64_t v) {
    cc__set_release(p, v);
}

CC_NOINLINE CC_NO_TSAN void cc__lock_release_hidden(struct lock *lock) {
    cc__held_releases(lock);
    cc__set_release(&lock->word, 0);
}
#endif
