/* barrier.h - an asymmetric memory barrier: the rare side pays for both sides.
 *
 * A pair "store A, then look at B" against "store B, then look at A" needs a full barrier on both sides.
 * When one side runs a million times as often as the other, it uses cc__barrier_light (a compiler fence) and
 * the rare side uses cc__barrier_heavy: membarrier(2) makes every running thread of the process execute a
 * full barrier. Measured on a 2-core virtual machine: 20 us while the other core runs our threads, 0.2 us
 * otherwise; the interrupted thread loses nothing measurable. Without membarrier, or if the program disables it
 * (CC_MEMBARRIER=0), both sides use a CPU fence.
 *
 * BARRIER-1  Of one light and one heavy side that race, at least one sees the other's store.
 */
#ifndef CC_SYNC_BARRIER_H
#define CC_SYNC_BARRIER_H

#include "sync/atomic.h"

extern bool cc__barrier_asymmetric; /* written once, before the first worker starts */

/* Checks whether the system has membarrier; membarrier == false: assumes that it has not. Before the workers start; may
 * be called again. */
void cc__barrier_init(bool membarrier);

CC_INLINE void cc__barrier_light(void) {
    cc__compiler_fence();
    if (unlikely(!cc__barrier_asymmetric)) cc__full_fence();
}

void cc__barrier_heavy(void);

#endif
