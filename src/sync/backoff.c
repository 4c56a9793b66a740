/* backoff.c - spin, yield, nap. */
#include "sync/backoff.h"

#include "os/thread.h"

void cc__backoff(struct backoff *backoff) {
    unsigned step = backoff->steps;
    if (step < BACKOFF_SPINS + BACKOFF_YIELDS + BACKOFF_NAP_DOUBLES) backoff->steps++;
    if (step < BACKOFF_SPINS)
        cc__cpu_relax();
    else if (step < BACKOFF_SPINS + BACKOFF_YIELDS)
        cc__thread_yield();
    else
        cc__thread_nap_for_lock((long)BACKOFF_NAP_NS << (step - BACKOFF_SPINS - BACKOFF_YIELDS));
}
