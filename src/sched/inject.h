/* inject.h - the global queue: runnable fibers that belong to no worker. A ring without locks, an unbounded
 * list behind it.
 *
 * INJECT-1  A put never blocks and never fails: what the ring cannot take goes to the list.
 * INJECT-2  While the list holds any, puts go to the list, so that nobody overtakes for ever.
 */
#ifndef CC_SCHED_INJECT_H
#define CC_SCHED_INJECT_H

#include "sched/sched.h"

void cc__inject_put(struct fiber *f);
/* Empties `list` (n fibers). */
void cc__inject_put_all(struct link *list, uint32_t n);

/* Takes up to n, appends them to `list`; returns how many. */
uint32_t cc__inject_take(uint32_t n, struct link *list);

CC_INLINE uint64_t cc__inject_len(void) {
    return cc__ring_len(&cc__sched.ring) + cc__get_seq(&cc__sched.overflow.count);
}

#endif
