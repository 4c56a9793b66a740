/* inject.h - the global queue: runnable fibers that belong to no worker. Rings without locks, one for every few
 * workers, and an unbounded list behind them.
 *
 * INJECT-1  A put never blocks and never fails: what the ring cannot take goes to the list.
 * INJECT-2  While the list holds any, puts go to the list, so that nobody overtakes for ever.
 * INJECT-3  Whoever takes begins with the ring near it, and every few times with another one: no ring is left to
 *           workers that do not come.
 */
#ifndef CC_SCHED_INJECT_H
#define CC_SCHED_INJECT_H

#include "sched/sched.h"

void cc__inject_put(struct fiber *f);
/* Empties `list` (n fibers). */
void cc__inject_put_all(struct link *list, uint32_t n);

/* Takes up to n, appends them to `list`; returns how many. 0: all rings and the list were empty, each when it was
 * looked at. w: the caller; NULL: no worker. */
uint32_t cc__inject_take(struct worker *w, uint32_t n, struct link *list);

CC_INLINE uint64_t cc__inject_len(void) {
    uint64_t n = cc__get_seq(&cc__sched.overflow.count);
    for (unsigned i = 0; i < cc__sched.ring_count; i++) n += cc__ring_len(&cc__sched.rings[i]);
    return n;
}

#endif
