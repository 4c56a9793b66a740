/* backoff.h - waiting for a step of another thread that issues no wake.
 *
 * For steps that take nanoseconds unless the other thread has lost its CPU: spins a little, yields a few times, then
 * takes naps of growing length. The naps are needed for progress: a thread at real-time priority does not yield its CPU
 * to threads of lower priority; if the other thread needs the same CPU, it runs only while this one sleeps.
 */
#ifndef CC_SYNC_BACKOFF_H
#define CC_SYNC_BACKOFF_H

#include "base/attr.h"

struct backoff {
    unsigned steps; /* initially 0 */
};

/* Called once between two checks. */
CC_COLD void cc__backoff(struct backoff *backoff);

#endif
