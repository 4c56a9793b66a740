/* local_wake.h - the fast path for a worker that wakes one fiber: claims it, does something for it, and puts it into
 * its own slot.
 *
 *   if (cc__local_wake_begin(w, waiter)) {    the waiter is claimed: its frame stays until the end
 *       ... copy, set its error ...
 *       cc__local_wake_end(w, waiter->fiber); it is in this worker's slot; do not touch it again
 *   }
 *   ... release the object's lock ...
 *   cc__local_wake_tell(w);                   another worker may be searching
 *
 * From begin to end the worker holds its biased lock (sched/wake.c), so a sole claim is a store; any other is a
 * compare-and-swap.
 */
#ifndef CC_WAIT_LOCAL_WAKE_H
#define CC_WAIT_LOCAL_WAKE_H

#include "sched/island.h"
#include "sched/record.h"
#include "sched/runq.h"
#include "wait/wait.h"

/* The caller holds the worker's biased lock. False: another claim has won. */
CC_INLINE bool cc__local_wake_claim(struct worker *w, struct waiter *waiter) {
    if (!cc__get(&waiter->sole) || unlikely(cc__get_acquire(&cc__sched.contested))) /* CLAIM-2 */
        return cc__state_claim(waiter->fiber, waiter->ticket, WAKE_OBJECT) == CLAIM_WON;
    if (unlikely(!cc__state_wake_sole(waiter->fiber, WAKE_OBJECT))) return false;
    cc__sched_record_wake(w, waiter->fiber, WAKE_OBJECT);
    return true;
}

/* False: another claim was first. */
CC_INLINE bool cc__local_wake_begin(struct worker *w, struct waiter *waiter) {
    cc__bias_enter(&w->runq.bias);
    bool won = cc__local_wake_claim(w, waiter);
    if (unlikely(!won)) cc__bias_leave(&w->runq.bias);
    return won;
}

CC_INLINE void cc__local_wake_end(struct worker *w, struct fiber *f) {
    cc__san_release(&f->word); /* no access to its frame from here on */
    cc__runq_slot_owner(&w->runq, f);
    cc__count(w, wakes_local);
    cc__bias_leave(&w->runq.bias);
}

CC_INLINE void cc__local_wake_tell(struct worker *w) {
    cc__held_check_flush();
    cc__runq_tell(w, 1);
}

#endif
