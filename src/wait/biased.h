/* biased.h - how a fiber waits for objects that are biased to its worker: it holds the worker's biased lock, which the
 * after-switch action releases. Inline for the reason that sched/park.h gives.
 */
#ifndef CC_WAIT_BIASED_H
#define CC_WAIT_BIASED_H

#include "sched/park.h"
#include "wait/wait.h"

/* After the switch: PARKED, then releases the biased lock. In wait.c. */
void cc__wait_after_biased(struct worker *w, void *fiber);
void cc__wait_after_select_biased(struct worker *w, void *fiber);

/* Parks a fiber without a deadline, whose sole waiter is linked: for a channel (PARK_QUEUE), or for a select's struct
 * arms (PARK_SELECT). */
CC_INLINE enum wake_reason cc__wait_biased(struct worker *w, struct fiber *self, enum park_reason reason,
                                           const void *object) {
    cc__count(w, parks[reason]);
    cc__probe3(park, self, reason, object);
    cc__fiber_note_object(self, object);
    w = cc__park_biased(w, self, reason, reason == PARK_SELECT ? cc__wait_after_select_biased : cc__wait_after_biased,
                        self);
    self = cc__get(&w->core.current); /* the same value, but from the worker's cache line instead of the stack's */
    return (enum wake_reason)cc__word_reason(cc__get_acquire(&self->word)); /* pairs with the claim */
}

#endif
