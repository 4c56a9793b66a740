/* bias.h - a biased lock: its owner takes it with two stores and a load; other threads can revoke it for a moment, at
 * the price of a membarrier.
 *
 *   owner: two stores and a load       another thread
 *   owner = INSIDE                     if owner == WAITING: give up
 *   -- light barrier --                lock(others), or give up
 *   if revoked: owner = WAITING,       revoked = 1
 *      lock(others), owner = INSIDE,   -- heavy barrier --
 *      unlock(others),                 while owner == INSIDE: spin, or give up: revoked = 0, unlock(others)
 *      -- light barrier --
 *   ... the guarded data is ours ...   ... the guarded data is ours ...
 *   owner = AWAY (release)             revoked = 0 (release)
 *                                      unlock(others)
 *
 * BIAS-1  By BARRIER-1 the owner sees revoked, or the other sees INSIDE: never both inside.
 * BIAS-2  An owner that saw revoked waits on `others`, which the other holds throughout; when it has it, no one else is
 *         inside, and it says INSIDE before it lets go.
 * BIAS-3  The other waits for the owner only for a bounded time: an owner that lost its CPU stalls nobody.
 * BIAS-4  Nobody new comes while the owner waits: each other gets in at most once before it does.
 * BIAS-5  A light barrier lies between INSIDE and whatever the owner does inside, whichever way it came in. So others
 *         may make pairs of their own with INSIDE: they change a word that the owner looks at inside (a channel's bias,
 *         a waiter's `sole`, `contested`), have a heavy barrier, and wait until the owner is not INSIDE.
 *
 * Ordering: what the owner wrote inside is released by AWAY and acquired by the other's look at it; what the other
 * wrote is released by revoked = 0 (and by the unlock) and acquired by the owner's next look at revoked (or its lock).
 */
#ifndef CC_SYNC_BIAS_H
#define CC_SYNC_BIAS_H

#include "sync/barrier.h"
#include "sync/lock.h"

enum { CC__BIAS_AWAY, CC__BIAS_INSIDE, CC__BIAS_WAITING };

struct bias {
    _Atomic uint32_t owner;   /* one of the above; written by the owner alone */
    _Atomic uint32_t revoked; /* written under `others` */
    struct lock others;
};

void cc__bias_enter_slow(struct bias *bias);

/* The owner. Short, never parks inside. */
CC_INLINE void cc__bias_enter(struct bias *bias) {
    cc__set(&bias->owner, CC__BIAS_INSIDE);
    cc__barrier_light();
    if (unlikely(cc__get_acquire(&bias->revoked))) cc__bias_enter_slow(bias); /* pairs with cc__bias_release */
}
CC_INLINE void cc__bias_leave(struct bias *bias) {
    cc__set_release(&bias->owner, CC__BIAS_AWAY); /* pairs with the wait in cc__bias_revoke */
}

/* Anyone else. False: somebody is at it already, or the owner did not leave in time. */
bool cc__bias_revoke(struct bias *bias);
void cc__bias_release(struct bias *bias);

#endif
