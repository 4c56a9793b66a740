/* backoff.h - waiting for a step of another thread that issues no wake.
 *
 * For steps that take nanoseconds unless the other thread has lost its CPU: spins a little, yields a few times, then
 * takes naps of growing length. The naps are needed for progress: a thread at real-time priority does not yield its CPU
 * to threads of lower priority; if the other thread needs the same CPU, it runs only while this one sleeps.
 */
#ifndef CC_SYNC_BACKOFF_H
#define CC_SYNC_BACKOFF_H

#include "arch/cpu.h"
#include "base/attr.h"
#include "sync/policy.h"

struct backoff {
    unsigned steps; /* initially 0 */
};

/* Called once between two checks. */
CC_COLD void cc__backoff(struct backoff *backoff);

/* Called after a compare-and-swap that another thread won. With many contenders the cache line moves all the time;
 * longer pauses mean fewer of them. pauses: initially 1. */
CC_INLINE void cc__backoff_contended(unsigned *pauses) {
    for (unsigned i = 0; i < *pauses; i++) cc__cpu_relax();
    if (*pauses < BACKOFF_PAUSES) *pauses *= 2;
}

#endif
