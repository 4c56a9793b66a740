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

/* A fiber waits without a deadline, its waiter is sole and on its lists: for a channel (PARK_QUEUE), or for a select's
 * struct arms (PARK_SELECT). */
CC_INLINE enum wake_reason cc__wait_biased(struct worker *w, struct fiber *self, enum park_reason reason,
                                           const void *object) {
    cc__count(w, parks[reason]);
    cc__probe3(park, self, reason, object);
    cc__fiber_note_object(self, object);
    w = cc__park_biased(w, self, reason, reason == PARK_SELECT ? cc__wait_after_select_biased : cc__wait_after_biased,
                        self);
    self = cc__get(&w->core.current); /* still the same, and in the worker's line, not in one of the stack */
    return (enum wake_reason)cc__word_reason(cc__get_acquire(&self->word)); /* pairs with the claim */
}

#endif
