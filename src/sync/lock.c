/* lock.c - the contended path of the one-word lock. */
#include "sync/lock.h"

#include "arch/cpu.h"
#include "plat/thread.h"

enum {
    SPINS = 100, /* 4 us: longer than any section takes unless its holder lost the CPU. Guess */
    YIELDS = 20,
    NAP_NS = 50 * 1000,
};

void cc__lock_slow(struct lock *lock) {
    for (unsigned i = 0; !cc__lock_try(lock); i++) {
        if (i < SPINS)
            cc__cpu_relax();
        else if (i < SPINS + YIELDS)
            cc__thread_yield();
        else
            cc__thread_nap(NAP_NS);
    }
}

#ifdef CC_TSAN
CC_NOINLINE CC_NO_TSAN void cc__lock_release_hidden(struct lock *lock) {
    cc__set_release(&lock->word, 0);
}
#endif
