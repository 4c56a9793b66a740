/* lock.c - the contended paths of the one-word lock. */
#include "sync/lock.h"

#include "arch/cpu.h"
#include "plat/futex.h"

/* Longer than any critical section of ours takes (tens of ns), shorter than a futex sleep (3 us). Guess. */
enum { SPINS = 60 };

void cc__lock_slow(struct lock *lock) {
    for (int i = 0; i < SPINS; i++) {
        cc__cpu_relax();
        if (cc__lock_try(lock)) return;
    }
    /* From here on we may have company: take it as 2, so that our release wakes the next one. */
    while (cc__swap(&lock->word, 2) != 0) cc__futex_wait(&lock->word, 2, CC_FUTEX_FOREVER);
}

void cc__lock_release_slow(struct lock *lock) {
    cc__futex_wake(&lock->word, 1);
}

#ifdef CC_TSAN
__attribute__((noinline, disable_sanitizer_instrumentation)) void cc__lock_release_hidden(struct lock *lock) {
    if (cc__swap(&lock->word, 0) == 2) cc__lock_release_slow(lock);
}
#endif
