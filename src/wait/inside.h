/* inside.h - waiting for a channel that is biased: the caller has entered its worker's biased lock and stays inside until
 * it has left its stack. Inline for the reason that sched/park.h has.
 */
#ifndef CC_WAIT_INSIDE_H
#define CC_WAIT_INSIDE_H

#include "sched/park.h"
#include "wait/wait.h"

/* After the switch: PARKED, and outside. In wait.c. */
void cc__wait_after_inside(struct worker *w, void *fiber);

/* As cc__wait_sole_locked, for an object that is guarded by the worker's biased lock. */
CC_INLINE enum wake_reason cc__wait_sole_inside(struct worker *w, struct fiber *self, const void *channel) {
    cc__count(w, parks[PARK_QUEUE]);
    cc__fiber_note_object(self, channel);
    w = cc__park_inside(w, self, cc__wait_after_inside, self);
    self = cc__get(&w->core.current); /* still the same, and in the worker's line, not in one of the stack */
    return (enum wake_reason)cc__word_reason(cc__get_acquire(&self->word)); /* pairs with the claim */
}

#endif
