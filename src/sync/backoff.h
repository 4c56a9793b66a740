/* backoff.h - waiting for the next step of another thread that will not wake us.
 *
 * For steps that take it nanoseconds, unless it has lost its CPU. So: a little spinning, a few turns given to whoever
 * else is ready, then naps that become longer. The naps are not for saving time. A thread at real-time priority gives
 * its CPU to nobody of lower priority by yielding: if the other one is on the same CPU, it goes on only while we sleep.
 */
#ifndef CC_SYNC_BACKOFF_H
#define CC_SYNC_BACKOFF_H

#include "base/attr.h"

struct backoff {
    unsigned steps; /* 0 to begin with */
};

/* Once between two looks. */
CC_COLD void cc__backoff(struct backoff *backoff);

#endif
