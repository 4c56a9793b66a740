/* hand.h - the short way to wake one fiber from a worker: claim it, do something for it, enqueue it, in one go.
 *
 *   if (cc__hand_begin(w, waiter)) {   the waiter is claimed: its frame stays until the end
 *       ... copy, set its error ...
 *       cc__hand_end(w, waiter->fiber);   it is in this worker's slot; do not touch it again
 *   }
 *   ... release the object's lock ...
 *   cc__hand_tell(w);                  somebody may be waiting for work
 *
 * All of it happens inside the worker's biased lock (sched/claim.c), so a sole claim is a store;
 * any other is a compare-and-swap.
 */
#ifndef CC_WAIT_HAND_H
#define CC_WAIT_HAND_H

#include "sched/runq.h"
#include "wait/wait.h"

/* True if the short way is open: else the waiter is for struct wakes. */
CC_INLINE bool cc__hand_possible(struct worker *w, const struct waiter *waiter) {
    return w != NULL && waiter->fiber != NULL;
}

/* Inside the worker's biased lock. False: somebody else has claimed it. */
CC_INLINE bool cc__hand_claim_inside(struct waiter *waiter) {
    return !cc__get(&waiter->sole) || unlikely(cc__get_acquire(&cc__sched.contested)) /* CLAIM-2 */
               ? cc__state_claim(waiter->fiber, waiter->ticket, WAKE_OBJECT) == CLAIM_WON
               : cc__state_wake_sole(waiter->fiber, WAKE_OBJECT);
}

/* False: somebody else has claimed it. */
CC_INLINE bool cc__hand_begin(struct worker *w, struct waiter *waiter) {
    cc__bias_enter(&w->runq.bias);
    bool won = cc__hand_claim_inside(waiter);
    if (unlikely(!won)) cc__bias_leave(&w->runq.bias);
    return won;
}

CC_INLINE void cc__hand_end(struct worker *w, struct fiber *f) {
    cc__san_release(&f->word); /* we are through with its frame */
    cc__runq_slot_owner(&w->runq, f);
    cc__count(w, wakes_local);
    cc__bias_leave(&w->runq.bias);
}

CC_INLINE void cc__hand_tell(struct worker *w) {
    cc__held_check_flush();
    cc__runq_tell(w, 1);
}

#endif
