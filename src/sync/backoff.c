/* backoff.c - spin, yield, nap. */
#include "sync/backoff.h"

#include "arch/cpu.h"
#include "os/thread.h"

enum {
    SPINS = 100,        /* a few times what is waited for */
    YIELDS = 20,        /* guess: enough for a thread that has to get one turn */
    NAP_NS = 50 * 1000, /* the first; each is twice as long as the one before ... */
    NAP_DOUBLES = 4,    /* ... up to 0.8 ms, of the order of a scheduler's time slice */
};

void cc__backoff(struct backoff *backoff) {
    unsigned step = backoff->steps;
    if (step < SPINS + YIELDS + NAP_DOUBLES) backoff->steps++;
    if (step < SPINS)
        cc__cpu_relax();
    else if (step < SPINS + YIELDS)
        cc__thread_yield();
    else
        cc__thread_nap((long)NAP_NS << (step - SPINS - YIELDS));
}
