/* inject.h - the global queue: runnable fibers that belong to no worker. Lock-free rings, one for every few workers,
 * and an unbounded list for the overflow.
 *
 * INJECT-1  A put never blocks and never fails: what does not fit into the ring goes to the list.
 * INJECT-2  While the list is not empty, puts go to the list, so that its fibers are not overtaken for ever.
 * INJECT-3  A take begins with the ring near the caller, and every few times with another one: no ring depends on the
 *           workers near it.
 */
#ifndef CC_SCHED_INJECT_H
#define CC_SCHED_INJECT_H

#include "sched/sched.h"

void cc__inject_put(struct fiber *f);
/* Empties `list` (n fibers). */
void cc__inject_put_all(struct link *list, uint32_t n);

/* Takes up to n fibers, and appends them to `list`; returns how many. 0: all rings and the list were empty, each when
 * it was checked. w: the calling worker, or NULL. */
uint32_t cc__inject_take(struct worker *w, uint32_t n, struct link *list);

CC_INLINE uint64_t cc__inject_len(void) {
    uint64_t n = cc__get_seq(&cc__sched.overflow.count);
    for (unsigned i = 0; i < cc__sched.ring_count; i++) n += cc__ring_len(&cc__sched.rings[i]);
    return n;
}

#endif
