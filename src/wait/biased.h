/* biased.h - how a fiber waits on a biased channel: it holds its worker's biased lock, which the after-switch action
 * releases. Inline for the reason that sched/park.h gives.
 */
#ifndef CC_WAIT_BIASED_H
#define CC_WAIT_BIASED_H

#include "sched/park.h"
#include "wait/wait.h"

/* After the switch: PARKED, then releases the biased lock. In wait.c. */
void cc__wait_after_biased(struct worker *w, void *fiber);

/* As cc__wait_sole_locked, for an object that is guarded by the worker's biased lock. */
CC_INLINE enum wake_reason cc__wait_sole_biased(struct worker *w, struct fiber *self, const void *channel) {
    cc__count(w, parks[PARK_QUEUE]);
    cc__fiber_note_object(self, channel);
    w = cc__park_biased(w, self, cc__wait_after_biased, self);
    self = cc__get(&w->core.current); /* still the same, and in the worker's line, not in one of the stack */
    return (enum wake_reason)cc__word_reason(cc__get_acquire(&self->word)); /* pairs with the claim */
}

#endif
