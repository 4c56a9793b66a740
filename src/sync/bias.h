/* bias.h - a biased lock: its owner takes it with two stores and a load; other threads can revoke it temporarily, at
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
 * BIAS-1  By BARRIER-1 the owner sees `revoked`, or the revoker sees INSIDE: never are both inside.
 * BIAS-2  An owner that saw `revoked` waits for `others`, which the revoker holds throughout; once the owner holds it,
 *         no other thread is inside, and the owner writes INSIDE before it unlocks.
 * BIAS-3  The revoker waits for the owner only for a bounded time: an owner that lost its CPU stalls no other thread.
 * BIAS-4  No new revoker starts while the owner waits: each gets in at most once before the owner.
 * BIAS-5  There is a light barrier between INSIDE and everything the owner does inside, on both paths. So other threads
 *         may use INSIDE for pairs of their own: they change a word that the owner reads inside (a channel's bias, a
 *         waiter's `sole`, `contested`), issue a heavy barrier, and wait until the owner is not INSIDE.
 *
 * Ordering: AWAY releases what the owner wrote inside, and the revoker's load of `owner` acquires it; revoked = 0 (and
 * the unlock) releases what the revoker wrote, and the owner's next load of `revoked` (or its lock) acquires it.
 */
#ifndef CC_SYNC_BIAS_H
#define CC_SYNC_BIAS_H

#include "sync/barrier.h"
#include "sync/lock.h"

enum { CC__BIAS_AWAY, CC__BIAS_INSIDE, CC__BIAS_WAITING };

struct bias {
    _Atomic uint32_t owner;   /* one of the above; written only by the owner */
    _Atomic uint32_t revoked; /* written under `others` */
    struct lock others;
};

void cc__bias_enter_slow(struct bias *bias);

/* For the owner. The section is short and never parks. */
CC_INLINE void cc__bias_enter(struct bias *bias) {
    cc__set(&bias->owner, CC__BIAS_INSIDE);
    cc__barrier_light();
    if (unlikely(cc__get_acquire(&bias->revoked))) cc__bias_enter_slow(bias); /* pairs with cc__bias_release */
}
CC_INLINE void cc__bias_leave(struct bias *bias) {
    cc__set_release(&bias->owner, CC__BIAS_AWAY); /* pairs with the wait in cc__bias_revoke */
}

/* For any other thread. False: another thread is revoking it, or the owner did not leave in time. */
bool cc__bias_revoke(struct bias *bias);
void cc__bias_release(struct bias *bias);

#endif
