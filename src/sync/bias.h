/* bias.h - a lock that belongs to one thread and costs it nothing; others can take it away for a moment, at a
 * price.
 *
 * Owner:   busy = 1; light barrier; look at revoked.      Two stores and a load, no read-modify-write.
 * Others:  hold `others`; revoked = 1; heavy barrier; wait until busy == 0.
 *
 *   owner                              another thread
 *   busy = 1                           lock(others)
 *   -- light barrier --                revoked = 1
 *   if revoked: busy = 0,              -- heavy barrier --
 *      lock(others), busy = 1,         while busy: spin, or give up: revoked = 0, unlock(others)
 *      unlock(others)                  ... the guarded data is ours ...
 *   ... the guarded data is ours ...   revoked = 0 (release)
 *   busy = 0 (release)                 unlock(others)
 *
 * BIAS-1  By BARRIER-1 the owner sees revoked, or the other sees busy: never both inside.
 * BIAS-2  An owner that saw revoked waits on `others`, which the other holds throughout; when it has it, no one
 *         else is inside, and it sets busy before it lets go.
 * BIAS-3  The other waits for busy only for a bounded time: an owner that lost its CPU inside stalls nobody.
 *
 * Ordering: what the owner wrote inside is released by busy = 0 and acquired by the other's look at busy; what
 * the other wrote is released by revoked = 0 (and by the unlock) and acquired by the owner's next look at
 * revoked (or its lock).
 */
#ifndef CC_SYNC_BIAS_H
#define CC_SYNC_BIAS_H

#include "sync/barrier.h"
#include "sync/lock.h"

struct bias {
    _Atomic uint32_t busy;    /* written by the owner alone */
    _Atomic uint32_t revoked; /* written under `others` */
    struct lock others;
};

void cc__bias_enter_slow(struct bias *bias);

/* The owner. Short, never parks inside. */
CC_INLINE void cc__bias_enter(struct bias *bias) {
    cc__set(&bias->busy, 1);
    cc__barrier_light();
    if (unlikely(cc__get_acquire(&bias->revoked))) cc__bias_enter_slow(bias); /* pairs with cc__bias_release */
}
CC_INLINE void cc__bias_leave(struct bias *bias) {
    cc__set_release(&bias->busy, 0); /* pairs with the wait in cc__bias_revoke */
}

/* Anyone else. False: somebody is at it already, or the owner did not leave in time. */
bool cc__bias_revoke(struct bias *bias);
void cc__bias_release(struct bias *bias);

#endif
